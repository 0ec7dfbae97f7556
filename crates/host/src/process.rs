//! One look at a process, or at a process with all its descendants.

use crate::cpu_times::ticks_per_second;
use crate::tree::{Tree, field, field_kb};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a sample covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The process alone: cheap, for an engine embedded in our own process.
    Process,
    /// The process and its descendants: servers with a process for each connection or worker.
    Tree,
}

/// What a process (tree) uses at one moment. Memory in bytes, times and I/O since its start.
///
/// None is unknown: a figure that one process of a tree does not show is unknown for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessSample {
    /// Seconds since the sampler was started; 0 for a single look.
    pub at_s: f64,
    /// Processes covered.
    pub processes: u32,
    /// Anonymous memory (heap, stacks): what a process cannot do without. Summed.
    pub rss_anon_bytes: Option<u64>,
    /// Pages of files: mapped indexes, program text. Summed, so a page that two processes map counts
    /// twice. The kernel can take them back.
    pub rss_file_bytes: Option<u64>,
    /// Shared memory of the process that maps most of it (not summed, because the processes of a
    /// database share one buffer).
    pub rss_shared_bytes: Option<u64>,
    /// The largest resident size that a process had (VmHWM), summed: not below the tree's own peak.
    pub peak_rss_bytes: Option<u64>,
    /// CPU time in programs, seconds, that of ended and waited-for children included.
    pub user_s: f64,
    /// CPU time in the kernel, seconds, likewise.
    pub system_s: f64,
    /// Bytes read from storage (not from the page cache).
    pub read_bytes: Option<u64>,
    /// Bytes sent to storage.
    pub write_bytes: Option<u64>,
    /// Threads.
    pub threads: Option<u32>,
    /// Open files and connections.
    pub open_files: Option<u32>,
}

/// The fields of `/proc/<pid>/stat` that matter here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stat {
    state: char,
    parent: u32,
    /// Ticks, ended children included.
    user: u64,
    system: u64,
    threads: u32,
    /// Ticks after the machine's start; with the pid it names a process for good.
    pub(crate) started: u64,
}

impl ProcessSample {
    /// Looks at process `pid` now; none where there is no such process (any more).
    pub fn read(pid: u32, scope: Scope) -> Option<Self> {
        ProcessSample::read_in(&Tree::machine(), pid, scope)
    }

    pub(crate) fn read_in(tree: &Tree, pid: u32, scope: Scope) -> Option<Self> {
        let root = Stat::read(tree, pid).filter(Stat::alive)?;
        let mut sample = ProcessSample::of(tree, pid, root);
        if scope == Scope::Tree {
            for (pid, stat) in descendants(tree, pid) {
                sample.add(ProcessSample::of(tree, pid, stat));
            }
        }
        Some(sample)
    }

    fn of(tree: &Tree, pid: u32, stat: Stat) -> Self {
        let status = tree.text(&format!("proc/{pid}/status")).unwrap_or_default();
        let io = tree.text(&format!("proc/{pid}/io")).unwrap_or_default();
        let io = |key: &str| field(&io, key).and_then(|bytes| bytes.parse().ok());
        let files = std::fs::read_dir(tree.path(&format!("proc/{pid}/fd"))).ok();
        let ticks = ticks_per_second();
        ProcessSample {
            at_s: 0.0,
            processes: 1,
            rss_anon_bytes: field_kb(&status, "RssAnon"),
            rss_file_bytes: field_kb(&status, "RssFile"),
            rss_shared_bytes: field_kb(&status, "RssShmem"),
            peak_rss_bytes: field_kb(&status, "VmHWM"),
            user_s: stat.user as f64 / ticks,
            system_s: stat.system as f64 / ticks,
            read_bytes: io("read_bytes"),
            write_bytes: io("write_bytes"),
            threads: Some(stat.threads),
            open_files: files.and_then(|entries| u32::try_from(entries.count()).ok()),
        }
    }

    fn add(&mut self, other: ProcessSample) {
        let sum = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        let count = |a: Option<u32>, b: Option<u32>| Some(a?.saturating_add(b?));
        self.processes += other.processes;
        self.rss_anon_bytes = sum(self.rss_anon_bytes, other.rss_anon_bytes);
        self.rss_file_bytes = sum(self.rss_file_bytes, other.rss_file_bytes);
        self.rss_shared_bytes = self.rss_shared_bytes.zip(other.rss_shared_bytes).map(|(a, b)| a.max(b));
        self.peak_rss_bytes = sum(self.peak_rss_bytes, other.peak_rss_bytes);
        self.user_s += other.user_s;
        self.system_s += other.system_s;
        self.read_bytes = sum(self.read_bytes, other.read_bytes);
        self.write_bytes = sum(self.write_bytes, other.write_bytes);
        self.threads = count(self.threads, other.threads);
        self.open_files = count(self.open_files, other.open_files);
    }
}

/// All living processes below `root`, itself left out.
pub(crate) fn descendants(tree: &Tree, root: u32) -> Vec<(u32, Stat)> {
    let mut children: BTreeMap<u32, Vec<(u32, Stat)>> = BTreeMap::new();
    for pid in tree.numbered("proc", "") {
        if let Some(stat) = Stat::read(tree, pid).filter(Stat::alive) {
            children.entry(stat.parent).or_default().push((pid, stat));
        }
    }
    let mut found = Vec::new();
    let mut open = vec![root];
    while let Some(pid) = open.pop() {
        // Taken out, so that no process is visited twice, whatever the texts say.
        for child in children.remove(&pid).unwrap_or_default() {
            open.push(child.0);
            if child.0 != root {
                found.push(child);
            }
        }
    }
    found
}

impl Stat {
    pub(crate) fn read(tree: &Tree, pid: u32) -> Option<Self> {
        Stat::parse(&tree.text(&format!("proc/{pid}/stat"))?)
    }

    /// Fields are numbered as in proc(5). The name (field 2) may hold spaces and brackets, so
    /// counting starts behind its last bracket, at field 3.
    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        // The times of ended children are negative in some old kernels' overflow; they count as 0.
        let children = |field: usize| fields.get(field - 3)?.parse::<i64>().ok()?.max(0).try_into().ok();
        Some(Stat {
            state: fields.first()?.chars().next()?,
            parent: number(4)?.try_into().ok()?,
            user: number(14)?.saturating_add(children(16)?),
            system: number(15)?.saturating_add(children(17)?),
            threads: number(20)?.try_into().ok()?,
            started: number(22)?,
        })
    }

    /// Neither ended nor waiting to be collected.
    pub(crate) fn alive(&self) -> bool {
        !matches!(self.state, 'Z' | 'X' | 'x')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(pid: u32, parent: u32, user: u64) -> String {
        format!("{pid} (a (b) c) S {parent} 1 1 0 -1 4194560 1 0 0 0 {user} 20 30 40 20 0 3 0 777 0 0 0\n")
    }

    fn status(anon: u64, shared: u64) -> String {
        format!("Name:\tx\nVmHWM:\t 900 kB\nRssAnon:\t {anon} kB\nRssFile:\t 8 kB\nRssShmem:\t {shared} kB\n")
    }

    fn write(root: &std::path::Path, pid: u32, files: &[(&str, String)]) {
        let folder = root.join(format!("proc/{pid}"));
        std::fs::create_dir_all(&folder).unwrap();
        for (name, text) in files {
            std::fs::write(folder.join(name), text).unwrap();
        }
    }

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        let found = Stat::parse(&stat(7, 1, 10)).unwrap();
        let expected = Stat { state: 'S', parent: 1, user: 40, system: 60, threads: 3, started: 777 };
        assert_eq!(found, expected);
        assert!(Stat::parse("7 (x) S 1").is_none() && Stat::parse("").is_none());
    }

    #[test]
    fn a_tree_is_summed_and_what_one_hides_is_unknown() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let io = "rchar: 1\nread_bytes: 4096\nwrite_bytes: 512\n".to_string();
        write(root, 10, &[("stat", stat(10, 1, 0)), ("status", status(100, 50)), ("io", io.clone())]);
        write(root, 11, &[("stat", stat(11, 10, 0)), ("status", status(10, 60)), ("io", io)]);
        write(root, 12, &[("stat", stat(12, 11, 0)), ("status", status(1, 5))]);
        write(root, 13, &[("stat", stat(13, 1, 0)), ("status", status(7000, 0))]);
        let tree = Tree::at(root);
        let all = ProcessSample::read_in(&tree, 10, Scope::Tree).unwrap();
        assert_eq!((all.processes, all.threads), (3, Some(9)));
        assert_eq!(all.rss_anon_bytes, Some(111 * 1024));
        assert_eq!(all.rss_shared_bytes, Some(60 * 1024));
        assert_eq!(all.peak_rss_bytes, Some(2700 * 1024));
        assert_eq!(all.read_bytes, None, "process 12 shows no I/O");
        let two = ProcessSample::read_in(&tree, 10, Scope::Process).unwrap();
        assert_eq!((two.processes, two.read_bytes, two.write_bytes), (1, Some(4096), Some(512)));
        assert!(ProcessSample::read_in(&tree, 99, Scope::Tree).is_none());
    }

    #[test]
    fn a_process_that_has_ended_but_was_not_collected_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), 5, &[("stat", stat(5, 1, 0).replace(" S ", " Z "))]);
        assert!(ProcessSample::read_in(&Tree::at(folder.path()), 5, Scope::Process).is_none());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn our_own_memory_shows() {
        let before = ProcessSample::read(std::process::id(), Scope::Process).unwrap();
        let block = vec![1_u8; 64 << 20];
        let after = ProcessSample::read(std::process::id(), Scope::Process).unwrap();
        let grown = after.rss_anon_bytes.unwrap().saturating_sub(before.rss_anon_bytes.unwrap());
        assert!(grown > 48 << 20, "{grown} bytes more for a block of {}", std::hint::black_box(&block).len());
        assert!(after.peak_rss_bytes >= after.rss_anon_bytes && after.threads >= Some(1));
        assert!(after.open_files.unwrap() > 0);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_child_is_in_the_tree() {
        let mut child = std::process::Command::new("sleep").arg("30").spawn().unwrap();
        let alone = ProcessSample::read(std::process::id(), Scope::Process).unwrap();
        let tree = ProcessSample::read(std::process::id(), Scope::Tree).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(alone.processes == 1 && tree.processes >= 2, "{tree:?}");
    }
}
