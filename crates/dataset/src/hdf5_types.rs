//! Which HDF5 types are numbers that Annvil reads, and what the others are called in a refusal.

use crate::convert::Stored;
use hdf5_reader::{ByteOrder, Datatype, VarLenKind};

/// The number type, and whether it is big-endian; none for what is no plain number.
pub(crate) fn number_type(datatype: &Datatype) -> Option<(Stored, bool)> {
    match datatype {
        Datatype::FixedPoint { size: size @ (1 | 2 | 4 | 8), signed, byte_order } => {
            let size = usize::from(*size);
            let stored = if *signed { Stored::Signed(size) } else { Stored::Unsigned(size) };
            Some((stored, *byte_order == ByteOrder::BigEndian))
        }
        Datatype::FloatingPoint { size: size @ (2 | 4 | 8), byte_order } => {
            Some((Stored::Float(usize::from(*size)), *byte_order == ByteOrder::BigEndian))
        }
        // What h5py writes for numpy's bool.
        Datatype::Enum { base, members }
            if matches!(**base, Datatype::FixedPoint { size: 1, .. })
                && members.len() == 2
                && members.iter().any(|m| m.name == "TRUE") =>
        {
            Some((Stored::Bool, false))
        }
        _ => None,
    }
}

/// Whether the datatype message is that of numbers which fill their bytes, floats as IEEE 754 lays
/// them out (bfloat16 has the size of float16, but another exponent).
pub(crate) fn is_whole(message: &[u8]) -> bool {
    let half = |at: usize| Some(u16::from_le_bytes(message.get(at..at + 2)?.try_into().ok()?));
    let byte = |at: usize| message.get(at).copied();
    let (Some(class), Some(size)) = (byte(0), byte(4)) else { return false };
    let bits = u16::from(size) * 8;
    match class & 0x0f {
        0 => half(8) == Some(0) && half(10) == Some(bits),
        1 => {
            let (exponent, mantissa) = match size {
                2 => (5, 10),
                4 => (8, 23),
                _ => (11, 52),
            };
            let layout = [byte(12), byte(13), byte(14), byte(15)];
            let ieee = layout == [Some(mantissa), Some(exponent), Some(0), Some(mantissa)];
            half(8) == Some(0) && half(10) == Some(bits) && ieee
        }
        _ => true,
    }
}

/// What a type is called in a refusal.
pub(crate) fn type_name(datatype: &Datatype) -> String {
    match datatype {
        Datatype::VarLen { kind: VarLenKind::Sequence, base, .. } => {
            format!("rows of varying length (ragged) of {}", type_name(base))
        }
        Datatype::VarLen { .. } | Datatype::String { .. } => "text".to_owned(),
        Datatype::Compound { .. } => "compound records".to_owned(),
        other => number_type(other)
            .map_or_else(|| "a type that is no plain number".to_owned(), |(stored, _)| stored.name()),
    }
}
