//! Rows of numbers: a view of bytes that some store keeps alive.
//!
//! One view covers an owned buffer, a mapped fbin body, an fvecs file (whose rows are apart by a
//! length field) and an HDF5 array in place: an offset to the first row and a stride between rows.

use half::{f16, slice::HalfFloatSliceExt};
use serde::{Deserialize, Serialize};
use std::{borrow::Cow, fmt, ops::Range, sync::Arc};

/// Bytes that stay where they are while someone holds the store: a `Vec<u8>`, a mapped file.
///
/// The hints are for bytes that lie in a file and come into memory when they are touched. They
/// change no byte, and a store in memory ignores them. Ranges are byte places in [`Self::bytes`];
/// what lies past the end is left out.
pub trait ByteStore: Send + Sync {
    /// All the bytes.
    fn bytes(&self) -> &[u8];

    /// Whether the bytes lie in a file, so that memory need not hold them all.
    fn is_mapped(&self) -> bool {
        false
    }

    /// Whether the bytes are in memory already, judged by a sample of them; false where that cannot be
    /// told.
    fn is_resident(&self, _range: Range<usize>) -> bool {
        true
    }

    /// Asks for the bytes to be read. Does not wait for them, except for a place in the queue of the
    /// disk.
    fn will_need(&self, _range: Range<usize>) {}

    /// Reads the bytes: afterwards touching them waits for no disk.
    fn make_resident(&self, _range: Range<usize>) {}

    /// Gives back the memory that the bytes take, here and in the cache of the kernel. Touched again,
    /// they are read again, so this is safe whoever else uses them.
    fn no_longer_needed(&self, _range: Range<usize>) {}
}

impl ByteStore for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }
}

impl ByteStore for &'static [u8] {
    fn bytes(&self) -> &[u8] {
        self
    }
}

struct FloatStore(Vec<f32>);

impl ByteStore for FloatStore {
    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}

/// The type of one component, as stored (little-endian).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Element {
    /// 32-bit float.
    F32,
    /// IEEE half precision.
    F16,
    /// Signed byte.
    I8,
    /// Unsigned byte.
    U8,
    /// One bit; eight to a byte, the first in the highest bit (as `numpy.packbits`).
    Bit,
}

impl Element {
    /// Bytes that a row of `dim` components takes.
    pub fn row_bytes(self, dim: usize) -> usize {
        match self {
            Element::F32 => dim * 4,
            Element::F16 => dim * 2,
            Element::I8 | Element::U8 => dim,
            Element::Bit => dim.div_ceil(8),
        }
    }

    /// The name in `describe` and in `dataset.toml`.
    pub fn name(self) -> &'static str {
        match self {
            Element::F32 => "f32",
            Element::F16 => "f16",
            Element::I8 => "i8",
            Element::U8 => "u8",
            Element::Bit => "bit",
        }
    }
}

impl std::str::FromStr for Element {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let all = [Element::F32, Element::F16, Element::I8, Element::U8, Element::Bit];
        let found = all.into_iter().find(|e| e.name() == word.trim().to_ascii_lowercase());
        found.ok_or_else(|| format!("unknown element type {word:?}; known: f32, f16, i8, u8, bit"))
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Rows that do not fit the bytes given for them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{rows} rows of {dim} {element} need {needed} bytes from offset {offset}, there are {found}")]
pub struct ShapeError {
    /// Rows asked for.
    pub rows: usize,
    /// Components in a row.
    pub dim: usize,
    /// Type of a component.
    pub element: Element,
    /// Where the first row begins.
    pub offset: usize,
    /// Bytes that the rows take.
    pub needed: u128,
    /// Bytes after the offset.
    pub found: usize,
}

/// `rows` x `dim` numbers, row by row. Cloning and slicing share the store.
#[derive(Clone)]
pub struct Vectors {
    store: Arc<dyn ByteStore>,
    offset: usize,
    stride: usize,
    rows: usize,
    dim: usize,
    element: Element,
}

impl fmt::Debug for Vectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vectors({} x {} {})", self.rows, self.dim, self.element)
    }
}

impl Vectors {
    /// A view of `store`: row i begins at `offset + i * stride`.
    ///
    /// # Errors
    /// Where the store is shorter than that, or the stride shorter than a row.
    pub fn view(
        store: Arc<dyn ByteStore>,
        offset: usize,
        stride: usize,
        rows: usize,
        dim: usize,
        element: Element,
    ) -> Result<Self, ShapeError> {
        let found = store.bytes().len().saturating_sub(offset);
        let row = element.row_bytes(dim);
        let needed = match rows {
            0 => 0,
            _ => (rows as u128 - 1) * stride as u128 + row as u128,
        };
        if needed > found as u128 || stride < row {
            return Err(ShapeError { rows, dim, element, offset, needed, found });
        }
        Ok(Vectors { store, offset, stride, rows, dim, element })
    }

    /// Owned rows without gaps; `bytes` holds exactly `rows * element.row_bytes(dim)` bytes.
    ///
    /// # Errors
    /// Where the length is another.
    pub fn from_bytes(bytes: Vec<u8>, rows: usize, dim: usize, element: Element) -> Result<Self, ShapeError> {
        let needed = rows as u128 * element.row_bytes(dim) as u128;
        if needed != bytes.len() as u128 {
            let found = bytes.len();
            return Err(ShapeError { rows, dim, element, offset: 0, needed, found });
        }
        Self::view(Arc::new(bytes), 0, element.row_bytes(dim), rows, dim, element)
    }

    /// Owned f32 rows.
    ///
    /// # Errors
    /// Where `values` is not `rows * dim` long.
    pub fn from_f32(values: Vec<f32>, rows: usize, dim: usize) -> Result<Self, ShapeError> {
        let element = Element::F32;
        let (found, needed) = (values.len() * 4, rows as u128 * dim as u128 * 4);
        if needed != found as u128 {
            return Err(ShapeError { rows, dim, element, offset: 0, needed, found });
        }
        Self::view(Arc::new(FloatStore(values)), 0, dim * 4, rows, dim, element)
    }

    /// The same bytes of the same store as rows of `dim` components of another type.
    ///
    /// # Errors
    /// Where such a row is longer than those.
    pub fn read_as(&self, dim: usize, element: Element) -> Result<Self, ShapeError> {
        Self::view(Arc::clone(&self.store), self.offset, self.stride, self.rows, dim, element)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Components in a row.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Type of a component.
    pub fn element(&self) -> Element {
        self.element
    }

    /// Bytes that the numbers of all rows take (without gaps).
    pub fn payload_bytes(&self) -> u64 {
        self.rows as u64 * self.element.row_bytes(self.dim) as u64
    }

    /// The bytes of row `i`.
    ///
    /// # Panics
    /// Where `i` is not below `rows`.
    pub fn row_bytes(&self, i: usize) -> &[u8] {
        assert!(i < self.rows, "row {i} of {}", self.rows);
        let start = self.offset + i * self.stride;
        &self.store.bytes()[start..start + self.element.row_bytes(self.dim)]
    }

    /// Row `i` as f32: borrowed where it is stored so, else decoded (bits to 0.0 and 1.0).
    pub fn row(&self, i: usize) -> Cow<'_, [f32]> {
        let bytes = self.row_bytes(i);
        if self.element == Element::F32
            && let Ok(floats) = bytemuck::try_cast_slice::<u8, f32>(bytes)
        {
            return Cow::Borrowed(floats);
        }
        let mut out = vec![0.0; self.dim];
        self.row_into(i, &mut out);
        Cow::Owned(out)
    }

    /// Writes row `i` as f32 into `out`, which is `dim` long.
    pub fn row_into(&self, i: usize, out: &mut [f32]) {
        decode_f32(self.element, self.row_bytes(i), out);
    }

    /// The rows `range` of this view.
    pub fn slice(&self, range: Range<usize>) -> Vectors {
        assert!(range.start <= range.end && range.end <= self.rows, "rows {range:?} of {}", self.rows);
        Vectors { offset: self.offset + range.start * self.stride, rows: range.len(), ..self.clone() }
    }

    /// Whether the rows lie in a mapped file, so that they may be more than memory holds.
    pub fn is_mapped(&self) -> bool {
        self.store.is_mapped()
    }

    /// Bytes of the store from the first to the last of `rows`, with the gaps between them.
    pub fn spanned_bytes(&self, rows: Range<usize>) -> u64 {
        self.span(rows).len() as u64
    }

    /// Whether `rows` are in memory already; see [`ByteStore::is_resident`].
    pub fn is_resident(&self, rows: Range<usize>) -> bool {
        self.store.is_resident(self.span(rows))
    }

    /// Asks for `rows` to be read ahead; see [`ByteStore::will_need`].
    ///
    /// # Panics
    /// As all methods that take rows: where they reach past the last row.
    pub fn will_need(&self, rows: Range<usize>) {
        self.store.will_need(self.span(rows));
    }

    /// Waits until `rows` are in memory; see [`ByteStore::make_resident`].
    pub fn make_resident(&self, rows: Range<usize>) {
        self.store.make_resident(self.span(rows));
    }

    /// Gives back the memory of `rows`; see [`ByteStore::no_longer_needed`].
    pub fn no_longer_needed(&self, rows: Range<usize>) {
        self.store.no_longer_needed(self.span(rows));
    }

    fn span(&self, rows: Range<usize>) -> Range<usize> {
        assert!(rows.start <= rows.end && rows.end <= self.rows, "rows {rows:?} of {}", self.rows);
        let start = self.offset + rows.start * self.stride;
        match rows.len() {
            0 => start..start,
            more => start..start + (more - 1) * self.stride + self.element.row_bytes(self.dim),
        }
    }

    /// This view and `next` as one, where `next` lies right behind it in the same store.
    pub fn join(&self, next: &Vectors) -> Option<Vectors> {
        let fits = Arc::ptr_eq(&self.store, &next.store)
            && self.offset + self.rows * self.stride == next.offset
            && (self.stride, self.dim, self.element) == (next.stride, next.dim, next.element);
        fits.then(|| Vectors { rows: self.rows + next.rows, ..self.clone() })
    }

    /// A copy of the rows named, in that order.
    pub fn select(&self, rows: impl IntoIterator<Item = usize>) -> Vectors {
        let mut bytes = Vec::new();
        let mut count = 0;
        for row in rows {
            bytes.extend_from_slice(self.row_bytes(row));
            count += 1;
        }
        let stride = self.element.row_bytes(self.dim);
        Vectors { store: Arc::new(bytes), offset: 0, stride, rows: count, ..self.clone() }
    }

    /// All rows one after the other without gaps, where they are stored so.
    pub fn contiguous_bytes(&self) -> Option<&[u8]> {
        let row = self.element.row_bytes(self.dim);
        (self.stride == row).then(|| &self.store.bytes()[self.offset..self.offset + self.rows * row])
    }

    /// All numbers as one f32 slice, where they are stored so and aligned.
    pub fn as_f32(&self) -> Option<&[f32]> {
        if self.element != Element::F32 {
            return None;
        }
        bytemuck::try_cast_slice(self.contiguous_bytes()?).ok()
    }
}

/// Decodes one stored row of `element` into f32; bits become 0.0 and 1.0.
pub(crate) fn decode_f32(element: Element, bytes: &[u8], out: &mut [f32]) {
    match element {
        Element::F32 => {
            for (slot, raw) in out.iter_mut().zip(bytes.chunks_exact(4)) {
                *slot = f32::from_le_bytes([raw[0], raw[1], raw[2], raw[3]]);
            }
        }
        Element::F16 => {
            // Where the bytes are aligned, the conversion instructions of the CPU are used.
            if let Ok(halves) = bytemuck::try_cast_slice::<u8, f16>(bytes)
                && halves.len() == out.len()
                && cfg!(target_endian = "little")
            {
                halves.convert_to_f32_slice(out);
                return;
            }
            for (slot, raw) in out.iter_mut().zip(bytes.chunks_exact(2)) {
                *slot = f16::from_le_bytes([raw[0], raw[1]]).to_f32();
            }
        }
        Element::I8 => {
            for (slot, &raw) in out.iter_mut().zip(bytes) {
                *slot = f32::from(i8::from_le_bytes([raw]));
            }
        }
        Element::U8 => {
            for (slot, &raw) in out.iter_mut().zip(bytes) {
                *slot = f32::from(raw);
            }
        }
        Element::Bit => {
            for (i, slot) in out.iter_mut().enumerate() {
                *slot = f32::from(bytes[i / 8] >> (7 - i % 8) & 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strided_view_reads_the_rows_between_the_gaps() {
        let mut bytes = Vec::new();
        for row in 0..3 {
            bytes.extend_from_slice(&2_i32.to_le_bytes());
            bytes.extend_from_slice(&(row as f32).to_le_bytes());
            bytes.extend_from_slice(&(row as f32 + 0.5).to_le_bytes());
        }
        let v = Vectors::view(Arc::new(bytes), 4, 12, 3, 2, Element::F32).unwrap();
        assert_eq!(v.row(2).as_ref(), [2.0, 2.5]);
        assert_eq!(v.slice(1..3).row(0).as_ref(), [1.0, 1.5]);
        assert_eq!(v.select([2, 0]).row(1).as_ref(), [0.0, 0.5]);
        let joined = v.slice(0..1).join(&v.slice(1..3)).unwrap();
        assert_eq!((joined.rows(), joined.row(2).as_ref()), (3, [2.0, 2.5].as_slice()));
        assert!(v.slice(0..1).join(&v.slice(2..3)).is_none());
        assert!(v.contiguous_bytes().is_none());
    }

    /// Keeps what it was asked.
    struct Asked(Vec<u8>, std::sync::Mutex<Vec<(char, Range<usize>)>>);

    impl ByteStore for Asked {
        fn bytes(&self) -> &[u8] {
            &self.0
        }

        fn will_need(&self, range: Range<usize>) {
            self.1.lock().unwrap().push(('w', range));
        }

        fn make_resident(&self, range: Range<usize>) {
            self.1.lock().unwrap().push(('r', range));
        }

        fn no_longer_needed(&self, range: Range<usize>) {
            self.1.lock().unwrap().push(('n', range));
        }
    }

    #[test]
    fn hints_name_the_bytes_of_the_rows_of_a_view() {
        let store = Arc::new(Asked(vec![0; 100], std::sync::Mutex::default()));
        let v = Vectors::view(store.clone(), 4, 12, 8, 8, Element::U8).unwrap().slice(1..8);
        v.will_need(0..7);
        v.make_resident(2..4);
        v.no_longer_needed(3..3);
        assert_eq!(*store.1.lock().unwrap(), [('w', 16..96), ('r', 40..60), ('n', 52..52)]);
        assert_eq!((v.spanned_bytes(2..4), v.is_mapped()), (20, false));
    }

    #[test]
    fn short_bytes_are_refused_with_both_numbers() {
        let error = Vectors::from_bytes(vec![0; 31], 4, 2, Element::F32).unwrap_err().to_string();
        assert!(error.contains("32") && error.contains("31"), "{error}");
    }

    #[test]
    fn bits_come_highest_first() {
        let v = Vectors::from_bytes(vec![0b1010_0000, 0b1000_0000], 1, 9, Element::Bit).unwrap();
        assert_eq!(v.row(0).as_ref(), [1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
        let bytes = Vectors::from_bytes(vec![0, 0, 0b1010_0000, 0b1000_0000], 2, 2, Element::U8).unwrap();
        assert_eq!(bytes.read_as(9, Element::Bit).unwrap().row(1), v.row(0));
        assert!(bytes.read_as(17, Element::Bit).is_err());
    }
}
