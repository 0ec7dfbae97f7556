//! A parquet file becomes vectors without standing in memory (case 61).
#![cfg(target_os = "linux")]

use dataset::{Dataset, OpenOptions, parquet};
use std::{
    fs,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};
use types::Vectors;

const ROWS: usize = 300_000;
const DIM: usize = 128;

/// Anonymous memory of this process, in MB; mapped files do not count.
fn anonymous_mb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

#[test]
fn a_file_of_150_mb_is_opened_with_less_than_100_mb() {
    let dir = tempfile::tempdir().unwrap();
    {
        // Hardly compressible, but quick to make.
        let value = |i: usize| (i.wrapping_mul(2_654_435_761) % 100_003) as f32 / 7.0;
        let base = Vectors::from_f32((0..ROWS * DIM).map(value).collect(), ROWS, DIM).unwrap();
        let queries = base.slice(0..10);
        parquet::write_parquet(&Dataset::new("large", base, queries), &dir.path().join("large")).unwrap();
    }
    let options = OpenOptions { cache_dir: Some(dir.path().join("cache")), ..OpenOptions::default() };
    let (before, peak, done) = (anonymous_mb(), AtomicU64::new(0), AtomicBool::new(false));
    let set = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                peak.fetch_max(anonymous_mb(), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let set = parquet::open(&dir.path().join("large"), &options);
        done.store(true, Ordering::Relaxed);
        set.unwrap()
    });
    let grown = peak.load(Ordering::Relaxed).saturating_sub(before);
    assert_eq!((set.base.rows(), set.base.dim()), (ROWS, DIM));
    assert!(grown < 100, "{grown} MB more than the {before} MB before");
    // The second time the flat copy is there and nothing is read.
    let start = std::time::Instant::now();
    let again = parquet::open(&dir.path().join("large"), &options).unwrap();
    assert!(start.elapsed() < Duration::from_millis(500), "{:?}", start.elapsed());
    assert_eq!(again.base.row(ROWS - 1), set.base.row(ROWS - 1));
}
