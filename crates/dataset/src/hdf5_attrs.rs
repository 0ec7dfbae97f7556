//! What the attributes of an ann-benchmarks file say, however they are written: as Unicode or byte
//! strings, of fixed or variable length, single or in an array of one, or not at all.

use crate::{DatasetError, hdf5::broken, table::MAX_DIM};
use hdf5_reader::{Attribute, Hdf5File};
use std::path::Path;
use types::Metric;

/// The attributes at the top of a file.
#[derive(Debug, Default)]
pub(crate) struct Attrs {
    /// The metric: of the options, else of the file.
    pub(crate) metric: Option<Metric>,
    /// The file's word where it is no metric of ours and the options name none.
    pub(crate) unknown_metric: Option<String>,
    /// `type` says "sparse", or the metric is one over sets.
    pub(crate) sparse: bool,
    /// Bits in a row where `point_type` says "bit" and `dimension` how many.
    pub(crate) packed_bits: Option<usize>,
    /// What the user should know.
    pub(crate) notices: Vec<String>,
}

impl Attrs {
    /// Reads them; `chosen` is the metric of the options, which has the last word.
    pub(crate) fn read(path: &Path, file: &Hdf5File, chosen: Option<Metric>) -> Result<Attrs, DatasetError> {
        let root = file.root_group().map_err(|e| broken(path, &e))?;
        let values = root.attributes().map_err(|e| broken(path, &e))?;
        let kind = text(&values, "type").unwrap_or_default();
        let mut attrs = Attrs { sparse: kind.eq_ignore_ascii_case("sparse"), ..Attrs::default() };
        if text(&values, "point_type").is_some_and(|t| t.eq_ignore_ascii_case("bit")) {
            attrs.packed_bits = whole(&values, "dimension");
        }
        attrs.metric = chosen;
        let Some(word) = text(&values, "distance").filter(|word| !word.is_empty()) else {
            return Ok(attrs);
        };
        attrs.sparse |= word.eq_ignore_ascii_case("jaccard");
        match (word.parse::<Metric>(), chosen) {
            (Ok(metric), None) => attrs.metric = Some(metric),
            (Ok(metric), Some(chosen)) if metric != chosen => attrs.notices.push(format!(
                "the file says {word:?}, the option {chosen}: {chosen} is used, its truth may not fit"
            )),
            (Ok(_), Some(_)) => {}
            (Err(_), None) => attrs.unknown_metric = Some(word),
            (Err(_), Some(chosen)) => {
                attrs.notices.push(format!("the file's metric {word:?} is unknown; {chosen} is used"));
            }
        }
        Ok(attrs)
    }
}

/// The text of an attribute, where it is one.
fn text(values: &[Attribute], name: &str) -> Option<String> {
    let value = values.iter().find(|value| value.name == name)?;
    let text = match value.read_strings() {
        Ok(texts) if texts.len() == 1 => texts.into_iter().next()?,
        _ => value.read_string().ok()?,
    };
    let text = text.trim_matches(|c: char| c == '\0' || c.is_whitespace());
    // Scripts that turned bytes into text the simple way left Python's wrapper in the file.
    let unwrapped = text.strip_prefix("b'").and_then(|t| t.strip_suffix('\''));
    Some(unwrapped.unwrap_or(text).to_owned())
}

/// The whole number of an attribute, where it is one.
fn whole(values: &[Attribute], name: &str) -> Option<usize> {
    let number = values.iter().find(|value| value.name == name)?.read_as_f64().ok()?;
    (number >= 0.0 && number <= MAX_DIM as f64 && number.fract() == 0.0).then_some(number as usize)
}
