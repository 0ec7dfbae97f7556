//! Marks on a point, each with a sentence for the reader.

use serde::{Deserialize, Serialize};

/// Something that a reader must know about a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flag {
    /// The client's own share was too large.
    ClientLimited,
    /// Repeats differ by more than 10 %.
    Noisy,
    /// Recall fell although the effort rose.
    NotMonotonic,
    /// Fewer rows than there are.
    ShortAnswers,
    /// The index was not used.
    ExactScan,
    /// Not every row is in the index.
    IndexIncomplete,
    /// Measured on an index rebuilt after an interruption.
    Rebuilt,
    /// The same id more than once in an answer.
    Duplicates,
    /// Rows that do not satisfy the filter.
    FilterViolations,
    /// More than k rows.
    ExcessRows,
    /// Ids that are no row of ours.
    UnknownIds,
    /// Answers not in order of distance.
    WrongOrder,
    /// Some queries failed.
    Errors,
    /// Recall was not computed.
    NoRecall,
    /// Fewer queries evaluated than run.
    PartialRecall,
    /// Recall is what random answers would give.
    ChanceLevel,
    /// The exact control did not reach 1.0.
    ControlFailed,
    /// Too few samples for the tail percentiles.
    FewSamples,
    /// More ties at rank k than the truth holds.
    TiesBeyondTruth,
    /// A mark that a newer minor format added.
    #[serde(other)]
    Unknown,
}

impl Flag {
    /// What the mark means for the reader.
    pub fn sentence(self) -> &'static str {
        match self {
            Flag::ClientLimited => {
                "The client, not the engine, was the limit here (its own work, or waiting for a CPU that others used); the figure is a lower bound and not the engine's."
            }
            Flag::Noisy => {
                "The repeats differ by more than 10 %; small differences to other points mean nothing."
            }
            Flag::NotMonotonic => {
                "Recall is lower than at a smaller effort; look at the index or repeat the run."
            }
            Flag::ShortAnswers => {
                "Some answers hold fewer rows than exist; a high throughput here is for less work."
            }
            Flag::ExactScan => "The vector index was not used; this is the speed of an exact scan.",
            Flag::IndexIncomplete => "Not every row was in the index when it was searched.",
            Flag::Rebuilt => {
                "Measured on an index that was rebuilt after an interruption; load and build figures are those of the first build."
            }
            Flag::Duplicates => "Some answers hold the same row more than once; repeats count once.",
            Flag::FilterViolations => "Some returned rows do not satisfy the filter; the point is not valid.",
            Flag::ExcessRows => "Some answers hold more than k rows; only the first k were scored.",
            Flag::UnknownIds => "Some returned ids are no row that was loaded; the point is not valid.",
            Flag::WrongOrder => "Some answers are not sorted by distance.",
            Flag::Errors => "Some queries failed; throughput counts answered queries only.",
            Flag::NoRecall => {
                "Recall was not computed (no truth), so the throughput has no quality beside it."
            }
            Flag::PartialRecall => "Recall was computed over fewer queries than were run.",
            Flag::ChanceLevel => {
                "Recall is what random answers would give; truth, metric or ids do not fit the data."
            }
            Flag::ControlFailed => {
                "The exact control disagrees with the truth: it missed true neighbours or found nearer rows; the truth or the scoring is wrong."
            }
            Flag::FewSamples => "Too few samples for the highest percentiles; they are left out.",
            Flag::TiesBeyondTruth => {
                "More rows tie with the k-th neighbour than the truth lists; ties were judged by recomputed distance."
            }
            Flag::Unknown => {
                "A mark that this version of annvil does not know; a newer one can say what it means."
            }
        }
    }

    /// Whether a point with this mark is not valid.
    pub fn invalidates(self) -> bool {
        matches!(self, Flag::FilterViolations | Flag::UnknownIds | Flag::ChanceLevel | Flag::ControlFailed)
    }

    /// The name in records.
    pub fn name(self) -> String {
        serde_json::to_value(self).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
    }
}
