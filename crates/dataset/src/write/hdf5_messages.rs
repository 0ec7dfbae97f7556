//! The few structures of an HDF5 file that Annvil writes, byte by byte, after the "HDF5 File Format
//! Specification Version 3.0" (<https://support.hdfgroup.org/documentation/hdf5/latest/_f_m_t3.html>).

/// Rows and columns.
#[derive(Clone, Copy)]
pub(super) struct Space(pub(super) u64, pub(super) u64);

/// The type of a number; the count is its bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    Float(u8),
    Signed(u8),
    Unsigned(u8),
    /// What h5py makes of numpy's bool: an enumeration of FALSE and TRUE over int8.
    Bool,
}

impl Number {
    /// Bytes of one number.
    pub(super) fn size(self) -> u64 {
        match self {
            Number::Float(size) | Number::Signed(size) | Number::Unsigned(size) => u64::from(size),
            Number::Bool => 1,
        }
    }

    /// The datatype message.
    fn message(self) -> Vec<u8> {
        let size = u32::try_from(self.size()).unwrap_or_default().to_le_bytes();
        match self {
            Number::Signed(bytes) | Number::Unsigned(bytes) => {
                let sign = if matches!(self, Number::Signed(_)) { 0x08 } else { 0 };
                [&[0x10, sign, 0, 0][..], &size, &[0, 0], &[bytes * 8, 0]].concat()
            }
            Number::Float(bytes) => {
                let (exponent, mantissa, bias) = match bytes {
                    2 => (5, 10, 15_u32),
                    _ => (8, 23, 127),
                };
                let bits = bytes * 8;
                // Little-endian, the mantissa's first bit implied, the sign in the last bit.
                let places = [0, 0, bits, 0, mantissa, exponent, 0, mantissa];
                [&[0x11, 0x20, bits - 1, 0][..], &size, &places, &bias.to_le_bytes()].concat()
            }
            Number::Bool => {
                let names = b"FALSE\0TRUE\0";
                [&[0x38, 2, 0, 0][..], &size, &Number::Signed(1).message(), names, &[0, 1]].concat()
            }
        }
    }
}

/// The address that says "nowhere".
pub(super) fn undefined() -> u64 {
    u64::MAX
}

/// Superblock version 2 of a file that ends at `end`.
pub(super) fn superblock(root: u64, end: u64) -> Vec<u8> {
    let mut bytes = b"\x89HDF\r\n\x1a\n\x02\x08\x08\x00".to_vec();
    for address in [0, undefined(), end, root] {
        bytes.extend_from_slice(&address.to_le_bytes());
    }
    sealed(bytes)
}

/// A global heap with the texts, numbered from 1.
pub(super) fn heap(texts: &[&str]) -> Vec<u8> {
    // The library expects a collection to be at least this large.
    const LEAST: usize = 4096;
    let mut objects = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        objects.extend_from_slice(&(index as u16 + 1).to_le_bytes());
        objects.extend_from_slice(&[1, 0, 0, 0, 0, 0]);
        objects.extend_from_slice(&(text.len() as u64).to_le_bytes());
        objects.extend_from_slice(text.as_bytes());
        objects.resize(objects.len().next_multiple_of(8), 0);
    }
    let size = LEAST.max(objects.len() + 32);
    let mut bytes = b"GCOL\x01\0\0\0".to_vec();
    bytes.extend_from_slice(&(size as u64).to_le_bytes());
    bytes.extend_from_slice(&objects);
    // Object 0 is the free room, its own head of 16 bytes included.
    let free = (size - bytes.len()) as u64;
    bytes.extend_from_slice(&[0; 8]);
    bytes.extend_from_slice(&free.to_le_bytes());
    bytes.resize(size, 0);
    bytes
}

/// A version 2 object header in the making.
pub(super) struct Header(Vec<u8>);

impl Header {
    /// Of an object.
    pub(super) fn object() -> Self {
        Header(Vec::new())
    }

    /// Of a group that keeps its links in the header.
    pub(super) fn group() -> Self {
        let mut header = Header(Vec::new());
        let nowhere = undefined().to_le_bytes();
        header.message(0x02, &[&[0, 0][..], &nowhere, &nowhere].concat());
        header.message(0x0a, &[0, 0]);
        header
    }

    fn message(&mut self, kind: u8, body: &[u8]) {
        self.0.push(kind);
        self.0.extend_from_slice(&(body.len() as u16).to_le_bytes());
        self.0.push(0);
        self.0.extend_from_slice(body);
    }

    /// A hard link to the object at `address`.
    pub(super) fn link(&mut self, name: &str, address: u64) {
        let body = [&[1, 0, name.len() as u8][..], name.as_bytes(), &address.to_le_bytes()].concat();
        self.message(0x06, &body);
    }

    /// A text of variable length, `length` bytes long, object `index` of the heap at `heap`. Of
    /// variable length, because h5py gives text of fixed length as bytes, which other tools then
    /// do not find among the names of metrics.
    pub(super) fn text_attribute(&mut self, name: &str, length: usize, heap: u64, index: usize) {
        let base = Number::Unsigned(1).message();
        let datatype = [&[0x19, 0x01, 0x01, 0, 16, 0, 0, 0][..], &base].concat();
        let value =
            [&(length as u32).to_le_bytes()[..], &heap.to_le_bytes(), &(index as u32).to_le_bytes()].concat();
        self.attribute(name, &datatype, &value);
    }

    /// A 64-bit integer.
    pub(super) fn count_attribute(&mut self, name: &str, value: u64) {
        self.attribute(name, &Number::Signed(8).message(), &value.to_le_bytes());
    }

    fn attribute(&mut self, name: &str, datatype: &[u8], value: &[u8]) {
        let scalar = [2, 0, 0, 0];
        let size = |n: usize| (n as u16).to_le_bytes();
        let mut body = vec![3, 0];
        body.extend_from_slice(&size(name.len() + 1));
        body.extend_from_slice(&size(datatype.len()));
        body.extend_from_slice(&size(scalar.len()));
        body.push(0);
        body.extend_from_slice(name.as_bytes());
        body.push(0);
        body.extend_from_slice(datatype);
        body.extend_from_slice(&scalar);
        body.extend_from_slice(value);
        self.message(0x0c, &body);
    }

    /// A contiguous array of `bytes` bytes at `start`.
    pub(super) fn dataset(&mut self, space: Space, number: Number, start: u64, bytes: u64) {
        let dims = [space.0.to_le_bytes(), space.1.to_le_bytes()].concat();
        self.message(0x01, &[&[2, 2, 0, 1][..], &dims].concat());
        self.message(0x03, &number.message());
        // Room is made late, a fill value written where one is set: none is.
        self.message(0x05, &[3, 0x0a]);
        self.message(0x08, &[&[3, 1][..], &start.to_le_bytes(), &bytes.to_le_bytes()].concat());
    }

    /// The header's bytes.
    pub(super) fn finish(self) -> Vec<u8> {
        let mut bytes = b"OHDR\x02\x02".to_vec();
        bytes.extend_from_slice(&(self.0.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&self.0);
        sealed(bytes)
    }
}

/// The bytes with their checksum behind them.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = lookup3(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

/// Bob Jenkins' lookup3 (`hashlittle` with a start of 0), the checksum of HDF5's metadata
/// (<https://burtleburtle.net/bob/c/lookup3.c>).
fn lookup3(bytes: &[u8]) -> u32 {
    let word = |part: &[u8], at: usize| {
        let at_most = |i: usize| part.get(at + i).copied().unwrap_or(0);
        u32::from_le_bytes([at_most(0), at_most(1), at_most(2), at_most(3)])
    };
    let start = 0xdead_beef_u32.wrapping_add(bytes.len() as u32);
    let (mut a, mut b, mut c) = (start, start, start);
    let mut rest = bytes;
    while rest.len() > 12 {
        a = a.wrapping_add(word(rest, 0));
        b = b.wrapping_add(word(rest, 4));
        c = c.wrapping_add(word(rest, 8));
        for (step, turn) in [4, 6, 8, 16, 19, 4].into_iter().enumerate() {
            // The three words take turns; one round of six steps is the published mix.
            let (x, y, z) = match step % 3 {
                0 => (&mut a, &mut c, &mut b),
                1 => (&mut b, &mut a, &mut c),
                _ => (&mut c, &mut b, &mut a),
            };
            *x = x.wrapping_sub(*y) ^ y.rotate_left(turn);
            *y = y.wrapping_add(*z);
        }
        rest = &rest[12..];
    }
    if rest.is_empty() {
        return c;
    }
    a = a.wrapping_add(word(rest, 0));
    b = b.wrapping_add(word(rest, 4));
    c = c.wrapping_add(word(rest, 8));
    for (step, turn) in [14, 11, 25, 16, 4, 14, 24].into_iter().enumerate() {
        let (x, y) = match step % 3 {
            0 => (&mut c, b),
            1 => (&mut a, c),
            _ => (&mut b, a),
        };
        *x = (*x ^ y).wrapping_sub(y.rotate_left(turn));
    }
    c
}

#[cfg(test)]
mod tests {
    use super::lookup3;

    #[test]
    fn the_checksum_is_the_published_one() {
        // The values that driver5 of lookup3.c prints for a start of 0.
        assert_eq!(lookup3(b""), 0xdead_beef);
        assert_eq!(lookup3(b"Four score and seven years ago"), 0x1777_0551);
    }
}
