//! How a server ended, and its last words.

use crate::tree::Tree;
use std::fmt;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

/// How many lines of a log are quoted.
const LINES: usize = 4;
/// How many characters of a line.
const LONGEST: usize = 300;
/// How much of a log's end is looked at.
const TAIL_BYTES: u64 = 16 << 10;
/// How much of a log is looked through for the words of a server that is ready.
const START_BYTES: u64 = 1 << 20;

/// How a process ended. It shows as words that follow its name: `ended with code 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Exit code; none where a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Whether the kernel killed a process of this machine for want of memory while it ran. None: the
    /// kernel does not tell.
    pub out_of_memory: Option<bool>,
}

impl Ending {
    pub(super) fn new(status: ExitStatus, kills: OomKills) -> Self {
        Ending { code: status.code(), signal: status.signal(), out_of_memory: kills.since().map(|n| n > 0) }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "ended with code {code}"),
            (None, Some(signal)) => {
                write!(f, "was killed by signal {signal}")?;
                match (signal, self.out_of_memory) {
                    (9, Some(true)) => f.write_str(" (KILL): the kernel had run out of memory"),
                    (9, Some(false)) => {
                        f.write_str(" (KILL), which the kernel did not send for want of memory")
                    }
                    (9, None) => f.write_str(" (KILL), perhaps by the kernel for want of memory"),
                    (6, _) => f.write_str(" (ABRT: it gave up by itself)"),
                    (7, _) => f.write_str(" (BUS: a crash, or a full disk below a mapped file)"),
                    (11, _) => f.write_str(" (SEGV: a crash)"),
                    (2, _) => f.write_str(" (INT)"),
                    (15, _) => f.write_str(" (TERM)"),
                    _ => Ok(()),
                }
            }
            (None, None) => f.write_str("ended, how is not known"),
        }
    }
}

/// The kernel's count of processes killed for want of memory (of the whole machine), at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct OomKills(Option<u64>);

impl OomKills {
    pub(super) fn now() -> Self {
        OomKills(Tree::machine().text("proc/vmstat").as_deref().and_then(oom_kills))
    }

    /// How many more there are now; none where the kernel does not tell.
    pub(super) fn since(self) -> Option<u64> {
        Some(OomKills::now().0?.saturating_sub(self.0?))
    }
}

fn oom_kills(vmstat: &str) -> Option<u64> {
    vmstat.lines().find_map(|line| line.strip_prefix("oom_kill "))?.trim().parse().ok()
}

/// A log, from the place where our own server begins to write.
#[derive(Clone, Debug)]
pub(super) struct Log {
    pub(super) path: PathBuf,
    from: u64,
}

impl Log {
    /// Opens (or makes) a log; what follows is written behind what it holds.
    pub(super) fn open(path: &Path) -> std::io::Result<(Self, File)> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
        let from = file.metadata()?.len();
        Ok((Log { path: path.canonicalize()?, from }, file))
    }

    /// The last lines, those that speak of an error if any do, and where the log is; one line.
    pub(super) fn words(&self) -> String {
        let lines = self.lines().unwrap_or_default();
        let path = self.path.display();
        if lines.is_empty() {
            return format!("it said nothing (log: {path})");
        }
        format!("its last words: {} (log: {path})", lines.join(" / "))
    }

    /// Whether the server has said these words.
    pub(super) fn holds(&self, words: &str) -> bool {
        let Ok(text) = self.read(self.from, START_BYTES) else { return false };
        text.contains(words)
    }

    fn lines(&self) -> std::io::Result<Vec<String>> {
        let end = std::fs::metadata(&self.path)?.len();
        Ok(telling(&self.read(end.saturating_sub(TAIL_BYTES).max(self.from), TAIL_BYTES)?))
    }

    fn read(&self, from: u64, bytes: u64) -> std::io::Result<String> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(from))?;
        let mut text = Vec::new();
        file.take(bytes).read_to_end(&mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

fn telling(text: &str) -> Vec<String> {
    let all: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let of_error = |line: &&&str| {
        let small = line.to_lowercase();
        ["fatal", "panic", "error", "exec:"].iter().any(|word| small.contains(word))
    };
    let errors: Vec<&str> = all.iter().filter(of_error).copied().collect();
    let chosen = if errors.is_empty() { &all } else { &errors };
    chosen[chosen.len().saturating_sub(LINES)..]
        .iter()
        .map(|line| line.chars().take(LONGEST).collect())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ending_says_what_happened() {
        let text = |code, signal, out_of_memory| Ending { code, signal, out_of_memory }.to_string();
        assert_eq!(text(Some(1), None, Some(true)), "ended with code 1");
        assert!(text(None, Some(9), Some(true)).contains("out of memory"));
        assert!(text(None, Some(9), Some(false)).contains("did not send"));
        assert!(text(None, Some(9), None).contains("perhaps"));
        assert_eq!(text(None, Some(11), Some(true)), "was killed by signal 11 (SEGV: a crash)");
    }

    #[test]
    fn the_kernels_count_is_read() {
        assert_eq!(oom_kills("nr_free 1\noom_kill 3\noom_kill_x 4\n"), Some(3));
        assert_eq!(oom_kills("nr_free 1\n"), None);
    }

    #[test]
    fn last_words_are_those_of_errors_and_of_this_start_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logs/toy.log");
        let (_, mut file) = Log::open(&path).unwrap();
        std::io::Write::write_all(&mut file, b"FATAL: of an earlier start\n").unwrap();
        let (log, mut file) = Log::open(&path).unwrap();
        assert!(log.words().starts_with("it said nothing (log: "), "{}", log.words());
        std::io::Write::write_all(&mut file, b"one\n\ntwo\nthree\nfour\nfive\n").unwrap();
        assert!(log.words().contains("words: two / three / four / five (log: "), "{}", log.words());
        std::io::Write::write_all(&mut file, b"FATAL:  port taken\nbye\n").unwrap();
        assert!(log.words().contains("words: FATAL:  port taken (log: "), "{}", log.words());
        assert!(log.holds("port taken") && !log.holds("earlier start"));
        std::io::Write::write_all(&mut file, &[b'x'; 40_000]).unwrap();
        assert!(log.words().len() < 600, "a long line is cut");
    }
}
