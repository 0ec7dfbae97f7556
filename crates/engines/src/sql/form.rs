//! Vectors in the forms in which they travel. Sources: `vector_recv` of pgvector (src/vector.c), the binary formats of
//! `bit` and of arrays in PostgreSQL (`bit_recv`, `array_recv`), MariaDB's documentation of VECTOR.

use engine::{EngineError, ErrorKind, sql::VectorForm};
use std::fmt::Write;
use types::{Element, Vectors};

/// The OID of PostgreSQL's `real`.
const FLOAT4_OID: i32 = 700;

/// Appends row `row` of `vectors` in this form. `scratch` holds `dim` numbers.
///
/// # Errors
/// [`ErrorKind::Unsupported`] where the form has no room for so many dimensions.
pub(crate) fn append(
    form: VectorForm,
    vectors: &Vectors,
    row: usize,
    scratch: &mut Vec<f32>,
    out: &mut Vec<u8>,
) -> Result<(), EngineError> {
    let dim = vectors.dim();
    let too_many = |what| {
        move |e: std::num::TryFromIntError| {
            EngineError::new(ErrorKind::Unsupported, format!("{dim} {what} are too many: {e}"))
        }
    };
    if form == VectorForm::PgBit {
        let bits = i32::try_from(dim).map_err(too_many("bits"))?;
        out.extend_from_slice(&bits.to_be_bytes());
        out.extend_from_slice(vectors.row_bytes(row));
        return Ok(());
    }
    if form == VectorForm::F32Le && vectors.element() == Element::F32 {
        out.extend_from_slice(vectors.row_bytes(row));
        return Ok(());
    }
    scratch.resize(dim, 0.0);
    vectors.row_into(row, scratch);
    match form {
        VectorForm::PgVec => {
            let dims = u16::try_from(dim).map_err(too_many("dimensions"))?;
            out.extend_from_slice(&dims.to_be_bytes());
            out.extend_from_slice(&[0, 0]);
            scratch.iter().for_each(|v| out.extend_from_slice(&v.to_be_bytes()));
        }
        VectorForm::PgFloatArray => {
            let length = i32::try_from(dim).map_err(too_many("dimensions"))?;
            for word in [1, 0, FLOAT4_OID, length, 1] {
                out.extend_from_slice(&word.to_be_bytes());
            }
            for value in scratch.iter() {
                out.extend_from_slice(&4_i32.to_be_bytes());
                out.extend_from_slice(&value.to_be_bytes());
            }
        }
        VectorForm::F32Le => scratch.iter().for_each(|v| out.extend_from_slice(&v.to_le_bytes())),
        VectorForm::Text | VectorForm::Literal => out.extend_from_slice(text(scratch, form).as_bytes()),
        VectorForm::PgBit => unreachable!("handled above"),
    }
    Ok(())
}

/// `[1,2.5]`; as a literal in quotes. The shortest digits that give the same f32 back.
fn text(values: &[f32], form: VectorForm) -> String {
    let quote = if form == VectorForm::Literal { "'" } else { "" };
    let mut text = String::with_capacity(values.len() * 12 + 4);
    text.push_str(quote);
    text.push('[');
    for (i, value) in values.iter().enumerate() {
        let comma = if i == 0 { "" } else { "," };
        // Writing to a String cannot fail.
        let _always = write!(text, "{comma}{value}");
    }
    text.push(']');
    text + quote
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(form: VectorForm, vectors: &Vectors) -> Vec<u8> {
        let mut out = Vec::new();
        append(form, vectors, vectors.rows() - 1, &mut Vec::new(), &mut out).unwrap();
        out
    }

    #[test]
    fn forms_are_those_of_the_databases() {
        let vectors = Vectors::from_f32(vec![9.0, 9.0, 1.0, -2.5], 2, 2).unwrap();
        assert_eq!(encoded(VectorForm::PgVec, &vectors), [0, 2, 0, 0, 0x3f, 0x80, 0, 0, 0xc0, 0x20, 0, 0]);
        assert_eq!(encoded(VectorForm::F32Le, &vectors), [0, 0, 0x80, 0x3f, 0, 0, 0x20, 0xc0]);
        assert_eq!(encoded(VectorForm::Text, &vectors), b"[1,-2.5]");
        assert_eq!(encoded(VectorForm::Literal, &vectors), b"'[1,-2.5]'");
        let array = encoded(VectorForm::PgFloatArray, &vectors);
        assert_eq!(array.len(), 20 + 16);
        assert_eq!(array[8..12], 700_i32.to_be_bytes());
        let bits = Vectors::from_bytes(vec![0b1010_0000], 1, 3, Element::Bit).unwrap();
        assert_eq!(encoded(VectorForm::PgBit, &bits), [0, 0, 0, 3, 0b1010_0000]);
    }

    #[test]
    fn small_integers_become_numbers() {
        let bytes = Vectors::from_bytes(vec![1, 255], 1, 2, Element::I8).unwrap();
        assert_eq!(encoded(VectorForm::Text, &bytes), b"[1,-1]");
        assert_eq!(encoded(VectorForm::F32Le, &bytes), [0, 0, 0x80, 0x3f, 0, 0, 0x80, 0xbf]);
    }
}
