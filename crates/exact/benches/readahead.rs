//! Reading a base larger than the budget: `ReadAhead` against plain `read()` of the same file and
//! against pages that come when they are touched.
//!
//! `cargo bench -p exact --bench readahead -- [GiB] [budget in MiB] [rounds]` (4, 512, 3) makes a file
//! in the target directory, drops it from the kernel's cache before every pass, and prints GB/s and the
//! peak of the resident memory. The rows are added up, which is faster than any disk; with a search
//! in place of that, its speed is the lower of the two.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use exact::{ReadAhead, read_blocks};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;
use types::Vectors;

const DIM: usize = 768;

fn say(text: &str) {
    // A closed pipe is no reason to stop.
    drop(writeln!(std::io::stdout(), "{text}"));
}

#[expect(clippy::disallowed_methods, reason = "a bench is a program and has arguments of its own")]
fn main() {
    let numbers: Vec<usize> = std::env::args().filter_map(|word| word.parse().ok()).collect();
    let number = |i: usize, usual: usize| numbers.get(i).copied().unwrap_or(usual);
    let (gib, mib, rounds) = (number(0, 4), number(1, 512), number(2, 3));
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readahead.fbin");
    let file = Removed(path.clone());
    make(&path, (gib << 30) / (DIM * 4));
    let set = dataset::open(&path, &dataset::OpenOptions::default()).expect("made a moment ago");
    let base = &set.base;
    let budget = (mib as u64) << 20;
    say(&format!(
        "{} x {DIM} f32, {:.1} GB, budget {mib} MiB",
        base.rows(),
        base.payload_bytes() as f64 / 1e9
    ));
    for _ in 0..rounds {
        pass(base, "read()", || read(&path));
        pass(base, "ReadAhead", || {
            let blocks = read_blocks(base, 0..base.rows(), Some(budget), 1024);
            let mut walk = ReadAhead::new(base, blocks, Some(budget), None);
            let sum = walk.by_ref().map(|rows| add_up(&base.slice(rows))).fold(0, u64::wrapping_add);
            print!("  waited {:.2} s", walk.waited().as_secs_f64());
            sum
        });
        pass(base, "as touched", || add_up(base));
    }
    drop(file);
}

/// The file goes when the benchmark ends, also by a panic.
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let _gone = fs::remove_file(&self.0);
    }
}

fn make(path: &Path, rows: usize) {
    let mut file = File::create(path).expect("a new file in the target directory");
    let header = [(rows as u32).to_le_bytes(), (DIM as u32).to_le_bytes()].concat();
    file.write_all(&header).expect("the header");
    let mut block = vec![0_u8; 1024 * DIM * 4];
    let mut state = 1_u64;
    for start in (0..rows).step_by(1024) {
        for eight in block.chunks_exact_mut(8) {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            eight.copy_from_slice(&(state >> 2 & 0x3f7f_ffff_3f7f_ffff).to_le_bytes());
        }
        let bytes = 1024.min(rows - start) * DIM * 4;
        file.write_all(&block[..bytes]).expect("room for the file");
    }
    file.sync_all().expect("written to the disk");
}

fn pass(base: &Vectors, name: &str, work: impl FnOnce() -> u64) {
    base.no_longer_needed(0..base.rows());
    // Linux sets the peak back to the present size.
    let _unsupported = fs::write("/proc/self/clear_refs", "5");
    let (start, cpu) = (Instant::now(), cpu_seconds());
    let sum = work();
    let took = start.elapsed().as_secs_f64();
    let cpu = cpu_seconds() - cpu;
    say(&format!(
        "  {name}: {:.2} GB/s, {took:.2} s, {cpu:.2} s of CPU, peak resident {} MiB (sum {sum:x})",
        base.payload_bytes() as f64 / 1e9 / took,
        peak_mib().map_or_else(|| "?".to_owned(), |mib| mib.to_string()),
    ));
    base.no_longer_needed(0..base.rows());
}

fn read(path: &Path) -> u64 {
    let mut file = File::open(path).expect("the file made before");
    file.read_exact(&mut [0; 8]).expect("the header");
    let mut block = vec![0_u8; 1024 * DIM * 4];
    let mut sum = 0_u64;
    loop {
        let mut filled = 0;
        while let Ok(more @ 1..) = file.read(&mut block[filled..]) {
            filled += more;
        }
        if filled == 0 {
            return sum;
        }
        sum = sum.wrapping_add(add(&block[..filled]));
    }
}

fn add_up(rows: &Vectors) -> u64 {
    add(rows.contiguous_bytes().expect("fbin has no gaps"))
}

fn add(bytes: &[u8]) -> u64 {
    let words =
        bytes.chunks_exact(4).map(|word| u64::from(u32::from_le_bytes([word[0], word[1], word[2], word[3]])));
    words.fold(0, u64::wrapping_add)
}

/// CPU time of this process, kernel's included; 0 where unknown. On a busy machine it tells a slow
/// method from one that had to wait for its turn.
fn cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(11).take(2).filter_map(|word| word.parse::<f64>().ok());
    // Linux counts in hundredths of a second for programs, whatever its own clock.
    ticks.sum::<f64>() / 100.0
}

/// The peak of this process's resident memory, mapped files included.
fn peak_mib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? >> 10)
}
