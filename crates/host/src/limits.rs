//! Limits of this process: open files, threads.

use crate::tree::Tree;
use serde::{Deserialize, Serialize};

/// A limit that may be none at all, which is not the same as unknown.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit<T> {
    /// There is no limit.
    Unlimited,
    /// The largest allowed value.
    At(T),
}

impl<T: PartialOrd + Copy> Limit<T> {
    /// The value; none where there is no limit.
    pub fn value(self) -> Option<T> {
        match self {
            Limit::Unlimited => None,
            Limit::At(value) => Some(value),
        }
    }

    /// The tighter of two.
    pub(crate) fn tighter(self, other: Self) -> Self {
        match (self, other) {
            (Limit::At(a), Limit::At(b)) => Limit::At(if b < a { b } else { a }),
            (Limit::Unlimited, other) => other,
            (limit, Limit::Unlimited) => limit,
        }
    }
}

/// What this process may have (`/proc/self/limits`: the values of getrlimit). None is unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Files open at once, as set now (RLIMIT_NOFILE, soft): a client connection takes one.
    pub open_files: Option<Limit<u64>>,
    /// Files open at once, as far as the process may raise it (hard).
    pub open_files_hard: Option<Limit<u64>>,
    /// Threads and processes of this user (RLIMIT_NPROC, soft).
    pub threads: Option<Limit<u64>>,
    /// Bytes that may be locked in memory (RLIMIT_MEMLOCK, soft).
    pub locked_memory_bytes: Option<Limit<u64>>,
}

impl Limits {
    pub(crate) fn read(tree: &Tree) -> Self {
        tree.text("proc/self/limits").map(|text| Limits::parse(&text)).unwrap_or_default()
    }

    fn parse(text: &str) -> Self {
        let row = |name: &str| {
            let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
            let mut words = rest.split_whitespace().map(limit);
            Some((words.next()??, words.next()??))
        };
        let files = row("Max open files");
        Limits {
            open_files: files.map(|(soft, _)| soft),
            open_files_hard: files.map(|(_, hard)| hard),
            threads: row("Max processes").map(|(soft, _)| soft),
            locked_memory_bytes: row("Max locked memory").map(|(soft, _)| soft),
        }
    }
}

fn limit(word: &str) -> Option<Limit<u64>> {
    match word {
        "unlimited" => Some(Limit::Unlimited),
        number => number.parse().ok().map(Limit::At),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_parsed() {
        let text = "\
Limit                     Soft Limit           Hard Limit           Units
Max processes             96551                96551                processes
Max open files            1024                 1048576              files
Max locked memory         unlimited            unlimited            bytes";
        let limits = Limits::parse(text);
        assert_eq!(limits.open_files, Some(Limit::At(1024)));
        assert_eq!(limits.open_files_hard, Some(Limit::At(1_048_576)));
        assert_eq!(limits.threads, Some(Limit::At(96_551)));
        assert_eq!(limits.locked_memory_bytes, Some(Limit::Unlimited));
        assert_eq!(Limits::parse("Max open files"), Limits::default());
    }

    #[test]
    fn no_limit_and_unknown_differ_in_json() {
        let limits = Limits { threads: Some(Limit::Unlimited), ..Limits::default() };
        let json = serde_json::to_string(&limits).unwrap();
        assert!(json.contains("\"threads\":\"unlimited\"") && json.contains("\"open_files\":null"), "{json}");
        assert_eq!(serde_json::from_str::<Limits>(&json).unwrap(), limits);
    }

    #[test]
    fn the_tighter_limit_wins() {
        assert_eq!(Limit::At(2.0).tighter(Limit::At(1.5)), Limit::At(1.5));
        assert_eq!(Limit::Unlimited.tighter(Limit::At(1)), Limit::At(1));
        assert_eq!(Limit::<u64>::Unlimited.tighter(Limit::Unlimited), Limit::Unlimited);
    }
}
