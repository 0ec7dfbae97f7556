//! Main memory, swap and huge pages.

use crate::tree::{Tree, field, field_kb};
use serde::{Deserialize, Serialize};

/// Memory of the machine (not of the container, see [`crate::Cgroup`]). None is unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// All of it.
    pub total_bytes: Option<u64>,
    /// What programs could still get without swapping, as the kernel estimates it.
    pub available_bytes: Option<u64>,
    /// Swap space.
    pub swap_total_bytes: Option<u64>,
    /// Swap space not in use.
    pub swap_free_bytes: Option<u64>,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub transparent_hugepages: Option<String>,
    /// Huge pages set aside.
    pub hugepages: Option<u64>,
}

impl Memory {
    pub(crate) fn read(tree: &Tree) -> Self {
        let info = tree.text("proc/meminfo").unwrap_or_default();
        let setting = tree.text("sys/kernel/mm/transparent_hugepage/enabled");
        Memory {
            total_bytes: field_kb(&info, "MemTotal"),
            available_bytes: field_kb(&info, "MemAvailable"),
            swap_total_bytes: field_kb(&info, "SwapTotal"),
            swap_free_bytes: field_kb(&info, "SwapFree"),
            transparent_hugepages: setting.as_deref().and_then(chosen).map(String::from),
            hugepages: field(&info, "HugePages_Total").and_then(|pages| pages.parse().ok()),
        }
    }
}

/// The word in brackets of `always [madvise] never`.
fn chosen(text: &str) -> Option<&str> {
    Some(text.split_once('[')?.1.split_once(']')?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_word_is_in_brackets() {
        assert_eq!(chosen("always [madvise] never"), Some("madvise"));
        assert_eq!(chosen("never"), None);
    }
}
