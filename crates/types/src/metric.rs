//! The distance under which neighbours are near.

use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// How near two vectors are. A smaller distance is nearer, in every metric:
///
/// | metric | distance |
/// |---|---|
/// | `L2` | Euclidean norm of the difference (not squared) |
/// | `Cosine` | 1 - cosine similarity, 0 to 2; undefined for a zero vector |
/// | `InnerProduct` | minus the dot product |
/// | `Hamming` | number of differing bits |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Euclidean distance.
    L2,
    /// 1 - cosine similarity.
    Cosine,
    /// Minus the dot product.
    InnerProduct,
    /// Number of differing bits.
    Hamming,
}

impl Metric {
    /// Every metric, in the order in which help lists them.
    pub const ALL: [Metric; 4] = [Metric::L2, Metric::Cosine, Metric::InnerProduct, Metric::Hamming];

    /// The words that files and people use for the metrics, for messages.
    pub const ACCEPTED: &'static str = "l2 (euclidean), cosine (angular), ip (dot, inner_product), hamming";

    /// The name in records and definitions.
    pub fn name(self) -> &'static str {
        match self {
            Metric::L2 => "l2",
            Metric::Cosine => "cosine",
            Metric::InnerProduct => "inner_product",
            Metric::Hamming => "hamming",
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A word that is no metric we know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown metric {0:?}; known: {known}", known = Metric::ACCEPTED)]
pub struct UnknownMetric(pub String);

impl FromStr for Metric {
    type Err = UnknownMetric;

    fn from_str(word: &str) -> Result<Self, UnknownMetric> {
        let plain: String =
            word.trim().to_ascii_lowercase().chars().filter(char::is_ascii_alphanumeric).collect();
        match plain.as_str() {
            "l2" | "euclidean" | "euclid" | "l2distance" => Ok(Metric::L2),
            "cosine" | "angular" | "cos" | "cosinesimil" => Ok(Metric::Cosine),
            "ip" | "dot" | "dotproduct" | "innerproduct" | "mips" => Ok(Metric::InnerProduct),
            "hamming" | "bit" => Ok(Metric::Hamming),
            _ => Err(UnknownMetric(word.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_peers_are_understood() {
        for (word, metric) in [
            ("euclidean", Metric::L2),
            ("Angular", Metric::Cosine),
            ("Cosine", Metric::Cosine),
            ("dot", Metric::InnerProduct),
            ("INNER_PRODUCT", Metric::InnerProduct),
            ("hamming", Metric::Hamming),
        ] {
            assert_eq!(word.parse(), Ok(metric), "{word}");
        }
        let error = "jaccard".parse::<Metric>().unwrap_err().to_string();
        assert!(error.contains("jaccard") && error.contains("cosine"), "{error}");
    }
}
