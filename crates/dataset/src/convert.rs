//! Numbers as foreign files store them, turned into the element types that Annvil searches.
//!
//! What is kept: f32, f16, i8, u8, and booleans as bits. What is converted: f64 and wider integers
//! become f32, with a notice that says whether any value changed.

use crate::DatasetError;
use half::f16;
use std::path::Path;
use types::Element;

/// How a file stores one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    /// IEEE float of 2, 4 or 8 bytes.
    Float(usize),
    /// Signed integer of 1, 2, 4 or 8 bytes.
    Signed(usize),
    /// Unsigned integer of 1, 2, 4 or 8 bytes.
    Unsigned(usize),
    /// A byte that is 0 or 1.
    Bool,
}

impl Stored {
    /// Bytes of one number.
    pub(crate) fn size(self) -> usize {
        match self {
            Stored::Float(size) | Stored::Signed(size) | Stored::Unsigned(size) => size,
            Stored::Bool => 1,
        }
    }

    /// The name in messages, as numpy says it.
    pub(crate) fn name(self) -> String {
        match self {
            Stored::Float(size) => format!("float{}", size * 8),
            Stored::Signed(size) => format!("int{}", size * 8),
            Stored::Unsigned(size) => format!("uint{}", size * 8),
            Stored::Bool => "bool".to_owned(),
        }
    }

    /// The element type that it is read as.
    pub(crate) fn element(self) -> Element {
        match self {
            Stored::Float(2) => Element::F16,
            Stored::Signed(1) => Element::I8,
            Stored::Unsigned(1) => Element::U8,
            Stored::Bool => Element::Bit,
            Stored::Float(_) | Stored::Signed(_) | Stored::Unsigned(_) => Element::F32,
        }
    }

    /// Whether the bytes can be used as they lie, where they are little-endian.
    pub(crate) fn in_place(self) -> bool {
        matches!(self, Stored::Float(2 | 4) | Stored::Signed(1) | Stored::Unsigned(1))
    }

    /// One number, exact for all but 64-bit integers above 2^53 (see [`Stored::integer`]).
    pub(crate) fn value(self, raw: &[u8], big: bool) -> f64 {
        match self {
            Stored::Float(2) => f64::from(f16::from_bits(word(raw, big) as u16)),
            Stored::Float(4) => f64::from(f32::from_bits(word(raw, big) as u32)),
            Stored::Float(_) => f64::from_bits(word(raw, big)),
            Stored::Signed(_) => signed(raw, big) as f64,
            Stored::Unsigned(_) | Stored::Bool => word(raw, big) as f64,
        }
    }

    /// One number as an integer; none where it is a float, or above `i64::MAX`.
    pub(crate) fn integer(self, raw: &[u8], big: bool) -> Option<i64> {
        match self {
            Stored::Float(_) => None,
            Stored::Signed(_) => Some(signed(raw, big)),
            Stored::Unsigned(_) | Stored::Bool => i64::try_from(word(raw, big)).ok(),
        }
    }
}

/// The bits of up to eight bytes.
fn word(raw: &[u8], big: bool) -> u64 {
    let fold = |acc: u64, byte: &u8| acc << 8 | u64::from(*byte);
    if big { raw.iter().fold(0, fold) } else { raw.iter().rev().fold(0, fold) }
}

fn signed(raw: &[u8], big: bool) -> i64 {
    let unused = 64 - 8 * raw.len().clamp(1, 8) as u32;
    (word(raw, big) << unused).cast_signed() >> unused
}

/// Turns rows of `stored` numbers into rows of `element`, and counts what that changed.
pub(crate) struct Converter {
    stored: Stored,
    big: bool,
    element: Element,
    dim: usize,
    rows: u64,
    inexact: u64,
}

impl Converter {
    /// For rows of `dim` numbers.
    pub(crate) fn new(stored: Stored, big: bool, dim: usize) -> Self {
        Converter { stored, big, element: stored.element(), dim, rows: 0, inexact: 0 }
    }

    /// The element type that comes out.
    pub(crate) fn element(&self) -> Element {
        self.element
    }

    /// Bytes of one row going in.
    pub(crate) fn row_bytes_in(&self) -> usize {
        self.dim * self.stored.size()
    }

    /// Appends the rows in `raw` (whole rows) to `out`. `path` and `part` name the file and the
    /// array in an error.
    pub(crate) fn convert(
        &mut self,
        path: &Path,
        part: &str,
        raw: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), DatasetError> {
        if self.dim == 0 {
            return Ok(());
        }
        for row in raw.chunks_exact(self.row_bytes_in()) {
            let wrong = match self.element {
                Element::Bit => self.pack(row, out),
                Element::F32 => self.float(row, out),
                Element::F16 | Element::I8 | Element::U8 => {
                    for number in row.chunks_exact(self.stored.size()) {
                        let mut bytes = [0; 2];
                        bytes[..number.len()].copy_from_slice(number);
                        if self.big {
                            bytes[..number.len()].reverse();
                        }
                        out.extend_from_slice(&bytes[..number.len()]);
                    }
                    None
                }
            };
            if let Some(reason) = wrong {
                return Err(DatasetError::invalid(path, format!("{part}, row {}: {reason}", self.rows)));
            }
            self.rows += 1;
        }
        Ok(())
    }

    fn pack(&self, row: &[u8], out: &mut Vec<u8>) -> Option<String> {
        let start = out.len();
        out.resize(start + self.dim.div_ceil(8), 0);
        for (i, raw) in row.chunks_exact(self.stored.size()).enumerate() {
            let value = self.stored.value(raw, self.big);
            if value == 1.0 {
                out[start + i / 8] |= 1 << (7 - i % 8);
            } else if value != 0.0 {
                return Some(format!("component {i} is {value}, a boolean is 0 or 1"));
            }
        }
        None
    }

    fn float(&mut self, row: &[u8], out: &mut Vec<u8>) -> Option<String> {
        for (i, raw) in row.chunks_exact(self.stored.size()).enumerate() {
            let value = self.stored.value(raw, self.big);
            let short = value as f32;
            if short.is_infinite() && value.is_finite() {
                return Some(format!("component {i} is {value}, which float32 cannot hold; scale the data"));
            }
            let kept = match self.stored {
                Stored::Float(_) => f64::from(short) == value || value.is_nan(),
                _ => self.integer_kept(raw, short),
            };
            self.inexact += u64::from(!kept);
            out.extend_from_slice(&short.to_le_bytes());
        }
        None
    }

    fn integer_kept(&self, raw: &[u8], short: f32) -> bool {
        // Through i128, because a u64 or an i64 may have no exact f64.
        let exact = match self.stored {
            Stored::Signed(_) => i128::from(signed(raw, self.big)),
            _ => i128::from(word(raw, self.big)),
        };
        short as i128 == exact
    }

    /// What the reader of `part` should say to the user.
    pub(crate) fn notices(&self, part: &str) -> Vec<String> {
        let from = self.stored.name();
        if self.element != Element::F32 || self.stored == Stored::Float(4) {
            return Vec::new();
        }
        let total = self.rows * self.dim as u64;
        let change = match self.inexact {
            0 => "all values exactly".to_owned(),
            n => format!("{n} of {total} values are rounded"),
        };
        vec![format!("{part}: {from} is read as float32, {change}")]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn convert(stored: Stored, big: bool, dim: usize, raw: &[u8]) -> (Vec<u8>, Vec<String>) {
        let mut converter = Converter::new(stored, big, dim);
        let mut out = Vec::new();
        converter.convert(Path::new("f"), "train", raw, &mut out).unwrap();
        (out, converter.notices("train"))
    }

    fn floats(bytes: &[u8]) -> Vec<f32> {
        bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
    }

    #[test]
    fn integers_of_all_widths_and_both_orders_keep_their_sign() {
        let (out, said) = convert(Stored::Signed(2), true, 2, &[0xff, 0xfe, 0x01, 0x00]);
        assert_eq!(floats(&out), [-2.0, 256.0]);
        assert_eq!(said, ["train: int16 is read as float32, all values exactly"]);
        let raw: Vec<u8> = [(1_u64 << 24) + 1, u64::MAX].iter().flat_map(|v| v.to_le_bytes()).collect();
        let (out, said) = convert(Stored::Unsigned(8), false, 2, &raw);
        assert_eq!(floats(&out), [16_777_216.0, 18_446_744_073_709_551_615.0]);
        assert_eq!(said, ["train: uint64 is read as float32, 2 of 2 values are rounded"]);
        let (out, said) = convert(Stored::Signed(1), true, 2, &[0xff, 0x7f]);
        assert_eq!((out, said.len()), (vec![0xff, 0x7f], 0));
    }

    #[test]
    fn a_double_that_float32_cannot_hold_is_refused_not_made_infinite() {
        let mut converter = Converter::new(Stored::Float(8), false, 1);
        let raw = 1e300_f64.to_le_bytes();
        let error = converter.convert(Path::new("f"), "train", &raw, &mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("row 0"), "{error}");
    }

    #[test]
    fn booleans_become_bits_highest_first_and_other_numbers_are_refused() {
        let (out, _) = convert(Stored::Bool, false, 9, &[1, 0, 1, 0, 0, 0, 0, 0, 1]);
        assert_eq!(out, [0b1010_0000, 0b1000_0000]);
        let mut converter = Converter::new(Stored::Bool, false, 2);
        let error = converter.convert(Path::new("f"), "train", &[1, 7], &mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("is 7"), "{error}");
    }
}
