//! A regular expression of a definition, checked when the file is read.

use regex_lite::Regex;
use serde::{Deserialize, Serialize};

/// A regular expression whose first group is what is looked for.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern(Regex);

impl TryFrom<String> for Pattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let regex = Regex::new(&text).map_err(|e| format!("the pattern {text:?} can't be used: {e}"))?;
        if regex.captures_len() < 2 {
            return Err(format!("the pattern {text:?} has no group (...) for the value"));
        }
        Ok(Pattern(regex))
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> String {
        pattern.0.as_str().to_owned()
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Pattern {
    /// What the first group matches in `text`; none where the pattern does not match.
    pub fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        self.0.captures(text).and_then(|found| found.get(1)).map(|group| group.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_group_is_the_value_and_a_pattern_without_one_is_refused() {
        let m = Pattern::try_from("`M`=([0-9]+)".to_owned()).unwrap();
        assert_eq!(m.find("VECTOR KEY `iv` (`v`) `M`=16 `DISTANCE`=cosine"), Some("16"));
        assert_eq!(m.find("KEY (`v`)"), None);
        assert!(Pattern::try_from("M=[0-9]+".to_owned()).unwrap_err().contains("group"));
        assert!(Pattern::try_from("M=(".to_owned()).unwrap_err().contains("M=("));
    }
}
