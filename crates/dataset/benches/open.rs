//! How long a large file takes to open, and how much memory: 1,000,000 x 1,536 float32 (6 GB) as
//! fbin and as contiguous HDF5 must be open in less than a second with less than 100 MB resident.
//!
//! The files are sparse: nothing is written but their headers. Run with
//! `cargo bench -p dataset --bench open`; `cargo test` runs it too, as the check that it is.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use dataset::{OpenOptions, open, write};
use std::{
    fs::{self, File},
    io::Write,
    path::Path,
    time::{Duration, Instant},
};

const ROWS: u32 = 1_000_000;
const DIM: u32 = 1536;
const MOST_TIME: Duration = Duration::from_secs(1);
const MOST_RESIDENT_KIB: u64 = 100 * 1024;

fn main() {
    let dir = tempfile::tempdir().expect("a directory for the files");
    let fbin = dir.path().join("base.fbin");
    let header = [ROWS.to_le_bytes(), DIM.to_le_bytes()].concat();
    sparse(&fbin, &header, 8 + u64::from(ROWS) * u64::from(DIM) * 4);
    sparse(
        &dir.path().join("queries.fbin"),
        &[100_u32.to_le_bytes(), DIM.to_le_bytes()].concat(),
        8 + 100 * 1536 * 4,
    );
    timed("fbin", &fbin);

    let set = open(&fbin, &OpenOptions::default()).expect("opened a moment ago");
    let (head, length) = write::hdf5_head(&set);
    let hdf5 = dir.path().join("large.hdf5");
    sparse(&hdf5, &head, length);
    drop(set);
    timed("hdf5", &hdf5);
}

/// A file of `length` bytes that takes only the room of its header.
fn sparse(path: &Path, header: &[u8], length: u64) {
    let mut file = File::create(path).expect("a new file");
    file.write_all(header).expect("the header");
    file.set_len(length).expect("a file system with sparse files");
}

fn timed(name: &str, path: &Path) {
    let start = Instant::now();
    let set = open(path, &OpenOptions::default()).expect("a good file");
    let took = start.elapsed();
    assert_eq!((set.base.rows(), set.base.dim(), set.queries.rows()), (1_000_000, 1536, 100));
    let last = set.base.row(set.base.rows() - 1);
    assert!(last.iter().all(|v| *v == 0.0), "the hole reads as zeros");
    let peak = resident_kib("VmHWM:");
    println!(
        "{name}: {ROWS} x {DIM} float32 open in {took:?}, peak resident {:?} MiB",
        peak.map(|kib| kib / 1024)
    );
    assert!(took < MOST_TIME, "{name} took {took:?}");
    assert!(peak.is_none_or(|kib| kib < MOST_RESIDENT_KIB), "{name}: {peak:?} KiB resident");
}

/// A line of /proc/self/status; none where there is no such file.
fn resident_kib(line: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|l| l.strip_prefix(line))?.split_whitespace().next()?.parse().ok()
}
