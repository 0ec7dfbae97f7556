//! Rows of an HDF5 array as bytes in the file's own order, whatever the number type: the reader
//! decodes into its own types, which have no half floats and would convert what we do ourselves.

use hdf5_reader::{
    Dataset, Datatype, SliceInfo, SliceInfoElem,
    datatype_api::H5Type,
    error::{Error, Result},
};

/// One number of `N` bytes, as stored.
#[derive(Clone, Copy)]
struct Number<const N: usize>([u8; N]);

impl<const N: usize> H5Type for Number<N> {
    fn hdf5_type() -> Datatype {
        Datatype::Opaque { size: N as u32, tag: String::new() }
    }

    fn from_bytes(bytes: &[u8], _dtype: &Datatype) -> Result<Self> {
        let number = bytes.get(..N).and_then(|raw| raw.try_into().ok());
        number
            .map(Number)
            .ok_or_else(|| Error::InvalidData(format!("{} bytes where {N} were expected", bytes.len())))
    }

    fn element_size(_dtype: &Datatype) -> usize {
        N
    }

    fn decode_vec(raw: &[u8], _dtype: &Datatype, count: usize) -> Option<Result<Vec<Self>>> {
        let numbers: Vec<Self> = raw.as_chunks::<N>().0.iter().map(|number| Number(*number)).collect();
        (numbers.len() == count).then_some(Ok(numbers))
    }
}

/// The bytes of the rows `start..start + rows` of a two-dimensional array of `size`-byte numbers.
pub(crate) fn rows(data: &Dataset, size: usize, start: usize, rows: usize) -> Result<Vec<u8>> {
    match size {
        1 => block::<1>(data, start, rows),
        2 => block::<2>(data, start, rows),
        4 => block::<4>(data, start, rows),
        _ => block::<8>(data, start, rows),
    }
}

fn block<const N: usize>(data: &Dataset, start: usize, rows: usize) -> Result<Vec<u8>> {
    let range = |start, end| SliceInfoElem::Slice { start, end, step: 1 };
    let width = data.shape().get(1).copied().unwrap_or_default();
    let selection =
        SliceInfo { selections: vec![range(start as u64, (start + rows) as u64), range(0, width)] };
    let numbers = data.read_slice_parallel::<Number<N>>(&selection)?;
    Ok(numbers.iter().flat_map(|number| number.0).collect())
}
