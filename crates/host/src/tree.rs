//! Reading small text files below one root: `/`, or a folder of stored texts in tests.

use std::path::PathBuf;

/// The folder that stands for `/`.
#[derive(Clone, Debug)]
pub(crate) struct Tree(PathBuf);

impl Tree {
    /// The machine we run on.
    pub(crate) fn machine() -> Self {
        Tree("/".into())
    }

    /// A folder that holds `proc`, `sys` …
    #[cfg(test)]
    pub(crate) fn at(root: &std::path::Path) -> Self {
        Tree(root.into())
    }

    /// The path of `below` (without leading slash) in this tree.
    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.0.join(below.trim_start_matches('/'))
    }

    /// A file's text without the space around it; none where it cannot be read or holds nothing.
    pub(crate) fn text(&self, below: &str) -> Option<String> {
        let text = String::from_utf8_lossy(&std::fs::read(self.path(below)).ok()?).into_owned();
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_string())
    }

    /// A file that holds one number.
    pub(crate) fn number(&self, below: &str) -> Option<u64> {
        self.text(below)?.parse().ok()
    }

    /// Whether there is such a file or folder.
    pub(crate) fn exists(&self, below: &str) -> bool {
        self.path(below).exists()
    }

    /// The numbers N of the entries `prefixN` of a folder, ascending.
    pub(crate) fn numbered(&self, folder: &str, prefix: &str) -> Vec<u32> {
        let Ok(entries) = std::fs::read_dir(self.path(folder)) else { return Vec::new() };
        let mut numbers: Vec<u32> = entries
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.strip_prefix(prefix)?.parse().ok())
            .collect();
        numbers.sort_unstable();
        numbers
    }
}

/// The value after `key:` in lines such as `MemTotal:  123 kB`, first match.
pub(crate) fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim())
    })
}

/// A field given in kB, in bytes.
pub(crate) fn field_kb(text: &str, key: &str) -> Option<u64> {
    let number: u64 = field(text, key)?.strip_suffix("kB")?.trim().parse().ok()?;
    number.checked_mul(1024)
}

/// How many numbers a list such as `0-3,8` names; none where it is no such list.
pub(crate) fn list_len(list: &str) -> Option<u32> {
    list.trim().split(',').try_fold(0_u32, |sum, part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        sum.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_lists_are_read() {
        let text = "MemTotal:       24731708 kB\nHugePages_Total:       0\nodd line\n";
        assert_eq!(field_kb(text, "MemTotal"), Some(24_731_708 * 1024));
        assert_eq!(field(text, "HugePages_Total"), Some("0"));
        assert_eq!(field_kb(text, "HugePages_Total"), None);
        assert_eq!(field(text, "Mem"), None);
        assert_eq!(list_len("0-3,8,10-11"), Some(7));
        for bad in ["", "3-1", "a", "0-", "0-4294967295"] {
            assert_eq!(list_len(bad), None, "{bad}");
        }
    }
}
