//! HDF5 in the layout of ann-benchmarks: `train`, `test`, `neighbors`, `distances`, and the
//! attributes `distance`, `type`, `dimension`, `point_type`.
//!
//! A contiguous little-endian array is mapped where it lies in the file; what is chunked,
//! compressed, big-endian or of another type is streamed into a flat copy. Sparse sets are refused.

use crate::{
    Dataset, DatasetError, OpenOptions,
    convert::Stored,
    flat::Flat,
    hdf5_attrs::Attrs,
    mapping::Mapped,
    neighbours::{Against, Table, coverage},
    table::{Array, MAX_DIM},
    tidy,
};
use hdf5_pure::{Datatype, DatatypeByteOrder, File, Layout};
use std::{borrow::Cow, path::Path};
use types::{Element, Metric, Truth, Vectors};

/// What a file begins with.
pub(crate) const MAGIC: &[u8] = b"\x89HDF\r\n\x1a\n";

/// Deflate cannot shrink more than this; an array that claims more was never written.
const LARGEST_RATIO: u128 = 1100;

/// A whole data set.
pub(crate) fn open(path: &Path, options: &OpenOptions) -> Result<Dataset, DatasetError> {
    let file = Hdf5::open(path)?;
    let attrs = Attrs::read(path, &file.file, options.metric)?;
    file.refuse_sparse(&attrs)?;
    let base = file.vectors("train", options.limit, attrs.packed_bits, options)?;
    let queries = file.vectors("test", None, attrs.packed_bits, options)?;
    let cut = file.rows("train")? > base.vectors.rows();
    let mut dataset = Dataset::new(crate::format::stem(path), base.vectors, queries.vectors);
    dataset.metric = attrs.metric;
    dataset.notices = [attrs.notices, base.notices, queries.notices].concat();
    // The truth of all rows is none of a part of them.
    if file.has("neighbors") && cut {
        dataset.notices.push(tidy::TRUTH_DROPPED.to_owned());
    } else if file.has("neighbors") && options.truth.is_none() && options.queries.is_none() {
        let against = Against { base_rows: dataset.base.rows(), queries: dataset.queries.rows() };
        dataset.truth = Some(file.truth(against, attrs.metric, dataset.base.dim(), &mut dataset.notices)?);
    }
    Ok(dataset)
}

/// The vectors of a file that is named for its queries: `test`, or `train` where that is all.
pub(crate) fn queries(path: &Path, options: &OpenOptions) -> Result<Flat, DatasetError> {
    let file = Hdf5::open(path)?;
    let attrs = Attrs::read(path, &file.file, options.metric)?;
    file.refuse_sparse(&attrs)?;
    let part = if file.has("test") { "test" } else { "train" };
    file.vectors(part, None, attrs.packed_bits, options)
}

/// The `neighbors` and `distances` of a file that is named for its truth.
pub(crate) fn truth(
    path: &Path,
    against: Against,
    base: &Vectors,
    notices: &mut Vec<String>,
) -> Result<Truth, DatasetError> {
    let file = Hdf5::open(path)?;
    let metric = (base.element() == Element::Bit).then_some(Metric::Hamming);
    file.truth(against, metric, base.dim(), notices)
}

struct Hdf5<'a> {
    path: &'a Path,
    file: File,
    names: Vec<String>,
}

/// The shape and number type of an array that is a table of numbers.
struct Shape {
    rows: usize,
    dim: usize,
    stored: Stored,
    big: bool,
}

impl<'a> Hdf5<'a> {
    fn open(path: &'a Path) -> Result<Self, DatasetError> {
        let file = File::open_streaming(path).map_err(|e| broken(path, &e))?;
        let names = file.root().datasets().map_err(|e| broken(path, &e))?;
        Ok(Hdf5 { path, file, names })
    }

    fn has(&self, part: &str) -> bool {
        self.names.iter().any(|name| name == part)
    }

    fn invalid(&self, reason: impl Into<String>) -> DatasetError {
        DatasetError::invalid(self.path, reason)
    }

    fn array(&self, part: &str) -> Result<hdf5_pure::Dataset, DatasetError> {
        if !self.has(part) {
            let found = if self.names.is_empty() { "no array".to_owned() } else { self.names.join(", ") };
            return Err(self.invalid(format!(
                "there is no array {part:?} at the top of the file; ann-benchmarks files have train, test, \
                 neighbors and distances, this one has {found}"
            )));
        }
        self.file.dataset(part).map_err(|e| broken(self.path, &e))
    }

    fn rows(&self, part: &str) -> Result<usize, DatasetError> {
        let shape = self.array(part)?.shape().map_err(|e| broken(self.path, &e))?;
        let rows = shape.first().copied().unwrap_or_default();
        usize::try_from(rows).map_err(|_large| self.invalid(format!("{part} has {rows} rows, too many")))
    }

    /// Sets of items (jaccard), said by an attribute or shown by the shape.
    fn refuse_sparse(&self, attrs: &Attrs) -> Result<(), DatasetError> {
        if !attrs.sparse && attrs.unknown_metric.is_none() {
            return Ok(());
        }
        let train = self.array("train")?;
        let shape = train.shape().map_err(|e| broken(self.path, &e))?;
        let kind = train.datatype().map_or_else(|_| "unreadable".to_owned(), |t| type_name(&t));
        let metric =
            attrs.unknown_metric.as_deref().or(attrs.metric.map(Metric::name)).unwrap_or("not named");
        let what = if attrs.sparse { "a sparse set" } else { "a metric that Annvil does not know" };
        Err(self.invalid(format!(
            "{what}: metric {metric:?}, train is {} of {kind}; Annvil searches dense rows of one length by {}",
            shape_text(&shape),
            Metric::ACCEPTED
        )))
    }

    /// Shape and type of `part`, refused where it is no table of numbers.
    fn shape(&self, part: &str) -> Result<Shape, DatasetError> {
        let array = self.array(part)?;
        let dims = array.shape().map_err(|e| broken(self.path, &e))?;
        let datatype = array.datatype().map_err(|e| broken(self.path, &e))?;
        let Some((stored, big)) = number_type(&datatype) else {
            return Err(self.invalid(format!(
                "{part} is {} of {}; Annvil reads rows of numbers of one length",
                shape_text(&dims),
                type_name(&datatype)
            )));
        };
        let [rows, dim] = dims[..] else {
            return Err(self.invalid(format!(
                "{part} has the shape {}; vectors are rows of a table with 2 dimensions (sparse sets are not read)",
                shape_text(&dims)
            )));
        };
        match (usize::try_from(rows), usize::try_from(dim)) {
            (Ok(rows), Ok(dim)) => Ok(Shape { rows, dim, stored, big }),
            _ => Err(self.invalid(format!("{part} is {rows} x {dim}, more than this machine can address"))),
        }
    }

    fn vectors(
        &self,
        part: &str,
        limit: Option<usize>,
        packed_bits: Option<usize>,
        options: &OpenOptions,
    ) -> Result<Flat, DatasetError> {
        let Shape { rows, dim, stored, big } = self.shape(part)?;
        let read = limit.unwrap_or(rows).min(rows);
        let array = Array { path: self.path, part, rows: read, dim, stored, big };
        let mut flat = self.place(&array, rows, options)?;
        if let Some(bits) = packed_bits.filter(|bits| bits.div_ceil(8) == dim && *bits > dim)
            && let (Element::U8, Some(bytes)) = (flat.vectors.element(), flat.vectors.contiguous_bytes())
        {
            let packed = Vectors::from_bytes(bytes.to_vec(), read, bits, Element::Bit);
            flat.vectors = packed.map_err(|e| self.invalid(e.to_string()))?;
            flat.notices.push(format!("{part}: uint8 is read as {bits} packed bits a row"));
        }
        Ok(flat)
    }

    /// Maps or streams the first rows of an array that has `all` rows in the file.
    fn place(&self, array: &Array<'_>, all: usize, options: &OpenOptions) -> Result<Flat, DatasetError> {
        let data = self.array(array.part)?;
        let row_bytes = array.dim as u128 * array.stored.size() as u128;
        let payload = all as u128 * row_bytes;
        match data.layout().map_err(|e| broken(self.path, &e))? {
            Layout::Contiguous { address: None, .. } if payload > 0 => {
                Err(self.invalid(format!("the numbers of {} are not in this file", array.part)))
            }
            Layout::Contiguous { address: Some(address), size } => {
                let store = Mapped::open(self.path)?;
                let length = types::ByteStore::bytes(store.as_ref()).len();
                let end = u128::from(address) + payload;
                if end > length as u128 || u128::from(size) < payload {
                    return Err(self.invalid(format!(
                        "{} takes the bytes up to {end}, the file has {length}: it is incomplete, fetch it again",
                        array.part
                    )));
                }
                let offset = usize::try_from(address)
                    .map_err(|_large| self.invalid(format!("{} lies at {address}", array.part)))?;
                array.mapped(options, store, offset, 0)
            }
            layout => {
                let length = u128::from(self.file.file_size());
                if payload > length.saturating_mul(LARGEST_RATIO) {
                    return Err(self.invalid(format!(
                        "{} would be {payload} bytes, but the file has only {length}: it was never filled",
                        array.part
                    )));
                }
                let granule = match &layout {
                    Layout::Chunked { chunk_shape, .. } => chunk_shape.first().copied().unwrap_or(1),
                    _ => 1,
                };
                let granule = usize::try_from(granule).unwrap_or(1);
                array.streamed(options, granule, |start, rows| {
                    let raw = data.read_raw_rows(start as u64, rows as u64);
                    raw.map(Cow::Owned).map_err(|e| broken(self.path, &e))
                })
            }
        }
    }

    /// `neighbors` with `distances`, where there are any.
    fn truth(
        &self,
        against: Against,
        metric: Option<Metric>,
        dim: usize,
        notices: &mut Vec<String>,
    ) -> Result<Truth, DatasetError> {
        let ids = self.small("neighbors", against)?;
        let distances = match self.has("distances") {
            true => Some(self.small("distances", against)?),
            false => None,
        };
        let (shape, raw) = &ids;
        let size = shape.stored.size();
        if let Some((other, _)) = &distances
            && other.dim != shape.dim
        {
            return Err(self.invalid(format!(
                "neighbors is {} wide, distances {}: they do not belong together",
                shape.dim, other.dim
            )));
        }
        let id = |entry: usize| {
            let number = raw.get(entry * size..(entry + 1) * size).unwrap_or_default();
            let id = shape.stored.integer(number, shape.big);
            id.ok_or_else(|| {
                self.invalid(format!("neighbors holds {}, not row numbers", shape.stored.name()))
            })
        };
        let factor = match &distances {
            Some((shape, raw)) if metric == Some(Metric::Hamming) => hamming_factor(shape, raw, dim),
            _ => 1.0,
        };
        if factor != 1.0 {
            notices.push(format!("distances are fractions of differing bits; they are multiplied by {dim}"));
        }
        let distance = |entry: usize| match &distances {
            Some((shape, raw)) => {
                let size = shape.stored.size();
                let number = raw.get(entry * size..(entry + 1) * size).unwrap_or_default();
                shape.stored.value(number, shape.big) * factor
            }
            None => f64::NAN,
        };
        Table { path: self.path, queries: shape.rows, width: shape.dim, id, distance }.truth(against)
    }

    /// A table that is read whole, once its shape is known to fit the queries.
    fn small(&self, part: &str, against: Against) -> Result<(Shape, Vec<u8>), DatasetError> {
        let shape = self.shape(part)?;
        if shape.rows != against.queries || shape.dim == 0 {
            return Err(coverage(self.path, shape.rows, shape.dim, against.queries));
        }
        let bytes = shape.rows as u128 * shape.dim as u128 * shape.stored.size() as u128;
        let held = u128::from(self.file.file_size()).saturating_mul(LARGEST_RATIO);
        if shape.dim > MAX_DIM || bytes > held {
            return Err(self.invalid(format!("{part} is {} x {}, which cannot be", shape.rows, shape.dim)));
        }
        let raw = self.array(part)?.read_raw().map_err(|e| broken(self.path, &e))?;
        if raw.len() as u128 != bytes {
            return Err(self.invalid(format!("{part} has {} bytes where its shape takes {bytes}", raw.len())));
        }
        Ok((shape, raw))
    }
}

/// ann-benchmarks gives hamming distances as a fraction of the dimension; others count bits.
fn hamming_factor(shape: &Shape, raw: &[u8], dim: usize) -> f64 {
    let mut fractions = false;
    for number in raw.chunks_exact(shape.stored.size()) {
        let value = shape.stored.value(number, shape.big);
        if value > 1.0 {
            return 1.0;
        }
        fractions |= value > 0.0 && value < 1.0;
    }
    if fractions { dim as f64 } else { 1.0 }
}

/// The number type, and whether it is big-endian; none for what is no plain number.
fn number_type(datatype: &Datatype) -> Option<(Stored, bool)> {
    match datatype {
        Datatype::FixedPoint { size, byte_order, layout } => {
            let size = usize::try_from(*size).ok().filter(|size| matches!(size, 1 | 2 | 4 | 8))?;
            let whole = layout.bit_offset == 0 && usize::from(layout.bit_precision) == size * 8;
            let stored = if layout.signed { Stored::Signed(size) } else { Stored::Unsigned(size) };
            whole.then_some((stored, is_big(*byte_order)?))
        }
        Datatype::FloatingPoint { size, byte_order, layout } => {
            let (size, exponent) = match (size, layout.exponent_size) {
                (2, 5) => (2, 15),
                (4, 8) => (4, 127),
                (8, 11) => (8, 1023),
                _ => return None,
            };
            let whole = layout.bit_offset == 0
                && usize::from(layout.bit_precision) == size * 8
                && layout.mantissa_location == 0
                && usize::from(layout.mantissa_size) + usize::from(layout.exponent_size) + 1 == size * 8
                && layout.exponent_bias == exponent;
            whole.then_some((Stored::Float(size), is_big(*byte_order)?))
        }
        // What h5py writes for numpy's bool.
        Datatype::Enumeration { size: 1, members, .. }
            if members.len() == 2 && members.iter().any(|m| m.name == "TRUE") =>
        {
            Some((Stored::Bool, false))
        }
        _ => None,
    }
}

fn is_big(order: DatatypeByteOrder) -> Option<bool> {
    match order {
        DatatypeByteOrder::LittleEndian => Some(false),
        DatatypeByteOrder::BigEndian => Some(true),
        _ => None,
    }
}

/// What a type is called in a refusal.
fn type_name(datatype: &Datatype) -> String {
    if let Some((stored, _)) = number_type(datatype) {
        return stored.name();
    }
    match datatype {
        Datatype::VariableLength { is_string: false, base_type, .. } => {
            format!("rows of varying length (ragged) of {}", type_name(base_type))
        }
        Datatype::VariableLength { .. } | Datatype::String { .. } => "text".to_owned(),
        Datatype::Compound { .. } => "compound records".to_owned(),
        Datatype::Enumeration { .. } => "an enumeration".to_owned(),
        Datatype::FloatingPoint { size, .. } => format!("an unusual {}-bit float", size.saturating_mul(8)),
        _ => "a type that is no number".to_owned(),
    }
}

fn shape_text(dims: &[u64]) -> String {
    match dims {
        [] => "a single value".to_owned(),
        [n] => format!("{n} rows in one dimension"),
        dims => dims.iter().map(u64::to_string).collect::<Vec<_>>().join(" x "),
    }
}

/// An error of the HDF5 reader, on one line.
pub(crate) fn broken(path: &Path, error: &hdf5_pure::Error) -> DatasetError {
    if let hdf5_pure::Error::Io(_) = error {
        return DatasetError::invalid(path, format!("cannot read: {error}"));
    }
    let text = error.to_string().replace('\n', " ");
    DatasetError::invalid(path, format!("not readable as HDF5 ({text}); is the file complete?"))
}
