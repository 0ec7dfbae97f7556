//! LZF, the compression that h5py offers beside deflate (HDF5 filter 32000). Written from the format
//! as liblzf documents it: a control byte below 32 begins a run of literals, any other a copy of
//! earlier output.

use hdf5_reader::error::{Error, Result};

/// The registered number of the filter.
pub(crate) const FILTER: u16 = 32000;

/// The largest chunk that is unpacked.
const MAX_BYTES: usize = 1 << 32;

/// Unpacks one chunk. The third parameter of the filter is the chunk's size.
pub(crate) fn decode(parameters: &[u32], packed: &[u8]) -> Result<Vec<u8>> {
    let size = parameters.get(2).and_then(|size| usize::try_from(*size).ok());
    // A byte of input gives at most 264 / 3 bytes of output: the header's word alone is not trusted.
    let room = packed.len().saturating_mul(88).saturating_add(264).min(MAX_BYTES);
    unpack(packed, size.unwrap_or(room).min(room))
        .ok_or_else(|| Error::InvalidData("a chunk compressed with lzf is damaged".to_owned()))
}

fn unpack(packed: &[u8], most: usize) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(most);
    let mut rest = packed;
    while let Some(control) = next(&mut rest) {
        if control < 32 {
            let (run, after) = rest.split_at_checked(control + 1)?;
            out.extend_from_slice(run);
            rest = after;
        } else {
            let mut length = control >> 5;
            if length == 7 {
                length += next(&mut rest)?;
            }
            let back = ((control & 31) << 8 | next(&mut rest)?) + 1;
            let start = out.len().checked_sub(back)?;
            // The copy may overlap what it writes: byte by byte.
            for i in start..start + length + 2 {
                out.push(*out.get(i)?);
            }
        }
        if out.len() > most {
            return None;
        }
    }
    Some(out)
}

fn next(rest: &mut &[u8]) -> Option<usize> {
    let (first, after) = rest.split_first()?;
    *rest = after;
    Some(usize::from(*first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_short_and_long_copies_and_damage() {
        assert_eq!(unpack(&[2, 1, 2, 3, 0x20, 2], 100).unwrap(), [1, 2, 3, 1, 2, 3]);
        assert_eq!(unpack(&[0, 9, 0xe0, 3, 0], 100).unwrap(), [9; 13]);
        assert_eq!(unpack(&[0, 9, 0xe0, 3, 0], 12), None, "longer than the chunk");
        assert_eq!(unpack(&[0, 9, 0x20, 5], 100), None, "a copy from before the beginning");
        assert_eq!(unpack(&[5, 1], 100), None, "a run that ends early");
    }
}
