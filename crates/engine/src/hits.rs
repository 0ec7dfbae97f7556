//! The answer to one query, and how an engine's ids become our keys.

use crate::{EngineError, ErrorKind};

/// Keys of the rows returned, nearest first. Made once for a client and reused, so that the timed
/// path allocates nothing.
#[derive(Clone, Debug, Default)]
pub struct Hits {
    keys: Vec<u64>,
}

impl Hits {
    /// Room for `k` keys.
    pub fn with_capacity(k: usize) -> Self {
        Hits { keys: Vec::with_capacity(k) }
    }

    /// Forgets the last answer.
    pub fn clear(&mut self) {
        self.keys.clear();
    }

    /// Adds the next nearest row.
    pub fn push(&mut self, key: u64) {
        self.keys.push(key);
    }

    /// Adds several keys, nearest first.
    pub fn extend_from_slice(&mut self, keys: &[u64]) {
        self.keys.extend_from_slice(keys);
    }

    /// Adds a key in whatever form the protocol gave it.
    ///
    /// # Errors
    /// [`ErrorKind::WrongAnswer`] where it is no whole number that a key can be; the text names
    /// type and value.
    pub fn push_reply(&mut self, key: ReplyKey<'_>) -> Result<(), EngineError> {
        self.keys.push(key.to_key()?);
        Ok(())
    }

    /// The keys, nearest first.
    pub fn keys(&self) -> &[u64] {
        &self.keys
    }
}

/// A key as protocols give it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReplyKey<'a> {
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Unsigned(u64),
    /// A floating-point number.
    Float(f64),
    /// Text.
    Text(&'a str),
    /// Bytes: decimal digits.
    Bytes(&'a [u8]),
}

impl ReplyKey<'_> {
    /// The key.
    ///
    /// # Errors
    /// As [`Hits::push_reply`].
    pub fn to_key(self) -> Result<u64, EngineError> {
        let key = match self {
            ReplyKey::Int(value) => u64::try_from(value).ok(),
            ReplyKey::Unsigned(value) => Some(value),
            // 2^53: above it neighbouring integers share a float, so the id would be a guess.
            ReplyKey::Float(value)
                if value.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&value) =>
            {
                Some(value as u64)
            }
            ReplyKey::Float(_) => None,
            ReplyKey::Text(text) => text.parse().ok(),
            ReplyKey::Bytes(bytes) => std::str::from_utf8(bytes).ok().and_then(|text| text.parse().ok()),
        };
        key.ok_or_else(|| {
            let message = format!("the engine returned the id {self:?}, which is no row number");
            EngineError::new(ErrorKind::WrongAnswer, message)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// cases.md 39 (M5): the right ids in another type are understood or refused by type.
    #[test]
    fn ids_of_other_types_are_understood_or_refused_by_name() {
        for key in [
            ReplyKey::Int(42),
            ReplyKey::Unsigned(42),
            ReplyKey::Float(42.0),
            ReplyKey::Text("42"),
            ReplyKey::Bytes(b"42"),
        ] {
            assert_eq!(key.to_key().unwrap(), 42);
        }
        for key in [
            ReplyKey::Int(-1),
            ReplyKey::Float(4.2),
            ReplyKey::Float(f64::NAN),
            ReplyKey::Float(1e300),
            ReplyKey::Text("b'42'"),
            ReplyKey::Bytes(&[0xff]),
        ] {
            let error = key.to_key().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::WrongAnswer);
            assert!(error.to_string().contains(&format!("{key:?}")));
        }
    }
}
