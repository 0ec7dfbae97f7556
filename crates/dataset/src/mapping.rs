//! Files mapped into memory: read by the kernel when touched, never copied.
//!
//! What is here: the mapping, and the hints by which a reader of a file larger than memory has it
//! read at the disk's speed and gives back what it has read. They are hints: where the system does
//! not know one, the pages come when they are touched and go when memory is short. What is not here:
//! the order of reading (`exact::ReadAhead`).

use crate::DatasetError;
use memmap2::Mmap;
use std::{fs::File, ops::Range, path::Path, sync::Arc};
use types::ByteStore;

/// A smallest page; where pages are larger, some are named twice, which costs nothing.
const PAGE: usize = 4096;

/// The usual read-ahead of a device. Linux reads no more than that for one request, and drops the
/// rest of a longer one in silence.
#[cfg(unix)]
const ASK_BYTES: usize = 128 << 10;

/// Pages that are looked at to tell whether a range is in memory.
#[cfg(target_os = "linux")]
const SAMPLED_PAGES: usize = 256;

/// Longer requests gain nothing.
#[cfg(target_os = "linux")]
const MOST_ASK_BYTES: usize = 8 << 20;

/// A whole file, read-only.
pub(crate) struct Mapped {
    /// None for an empty file, which cannot be mapped.
    map: Option<Mmap>,
    /// Kept open for hints about the cache of the kernel, which go by file.
    #[cfg(target_os = "linux")]
    file: File,
    /// Bytes to ask for at a time, once known.
    #[cfg(target_os = "linux")]
    ask_bytes: std::sync::OnceLock<usize>,
}

impl Mapped {
    /// Maps `path`; an empty file gives no bytes.
    pub(crate) fn open(path: &Path) -> Result<Arc<Mapped>, DatasetError> {
        let file = File::open(path).map_err(DatasetError::io("open", path))?;
        Self::of(file, path)
    }

    /// Maps an open file; `path` names it in errors.
    pub(crate) fn of(file: File, path: &Path) -> Result<Arc<Mapped>, DatasetError> {
        let meta = file.metadata().map_err(DatasetError::io("read", path))?;
        if meta.is_dir() {
            return Err(DatasetError::invalid(path, "this is a directory, a file was expected"));
        }
        let map = if meta.len() == 0 {
            None
        } else {
            #[expect(unsafe_code, reason = "mapping a file is the point of this module")]
            // SAFETY: the mapping is never written through. A file that another process shortens
            // meanwhile ends this process with SIGBUS, as with every mapped file; data sets are not
            // changed while they are measured.
            let map = unsafe { Mmap::map(&file) };
            Some(map.map_err(DatasetError::io("map", path))?)
        };
        Ok(Arc::new(Mapped {
            map,
            #[cfg(target_os = "linux")]
            file,
            #[cfg(target_os = "linux")]
            ask_bytes: std::sync::OnceLock::new(),
        }))
    }

    /// The longest request that is taken whole: a disk that counts requests is fastest so.
    #[cfg(target_os = "linux")]
    fn ask_bytes(&self) -> usize {
        *self.ask_bytes.get_or_init(|| read_ahead_bytes(&self.file).unwrap_or(ASK_BYTES))
    }

    #[cfg(all(unix, not(target_os = "linux")))]
    fn ask_bytes(&self) -> usize {
        ASK_BYTES
    }

    /// The pages that `range` touches, as far as the file goes: from the start of the first to the
    /// end of the last. None where there are none.
    fn pages(&self, range: Range<usize>) -> Option<Range<usize>> {
        let length = self.bytes().len();
        let end = range.end.min(length).next_multiple_of(PAGE).min(length);
        let start = range.start / PAGE * PAGE;
        (range.start < range.end && start < end).then_some(start..end)
    }
}

/// The read-ahead of the device that `file` lies on, in whole pages; none where it is not told or so
/// little that reading ahead was turned off.
#[cfg(target_os = "linux")]
fn read_ahead_bytes(file: &File) -> Option<usize> {
    use std::os::unix::fs::MetadataExt;
    let device = file.metadata().ok()?.dev();
    let device = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    // A partition has the setting of its disk, the folder above.
    let places = ["/sys/class/bdi/{}/read_ahead_kb", "/sys/dev/block/{}/../queue/read_ahead_kb"];
    let text = places.iter().find_map(|place| std::fs::read_to_string(place.replace("{}", &device)).ok())?;
    let bytes = text.trim().parse::<usize>().ok()?.checked_mul(1024)? / PAGE * PAGE;
    (bytes >= PAGE).then_some(bytes.min(MOST_ASK_BYTES))
}

impl ByteStore for Mapped {
    fn bytes(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }

    fn is_mapped(&self) -> bool {
        true
    }

    #[cfg(target_os = "linux")]
    fn is_resident(&self, range: Range<usize>) -> bool {
        use rustix::io::{ReadWriteFlags, preadv2};
        let Some(pages) = self.pages(range) else { return true };
        let step = (pages.len() / SAMPLED_PAGES).max(PAGE);
        let cached = |at: usize| {
            let mut byte = [0];
            let into = &mut [std::io::IoSliceMut::new(&mut byte)];
            // Does not wait for the disk: answers with an error where it would have to.
            preadv2(&self.file, into, at as u64, ReadWriteFlags::NOWAIT).is_ok_and(|read| read == 1)
        };
        pages.clone().step_by(step).all(cached) && cached(pages.end - 1)
    }

    #[cfg(not(target_os = "linux"))]
    fn is_resident(&self, _range: Range<usize>) -> bool {
        false
    }

    #[cfg(unix)]
    fn will_need(&self, range: Range<usize>) {
        let (Some(map), Some(pages)) = (&self.map, self.pages(range)) else { return };
        let ask = self.ask_bytes();
        for start in pages.clone().step_by(ask) {
            let bytes = ask.min(pages.end - start);
            if map.advise_range(memmap2::Advice::WillNeed, start, bytes).is_err() {
                return;
            }
        }
    }

    fn make_resident(&self, range: Range<usize>) {
        let (Some(map), Some(pages)) = (&self.map, self.pages(range)) else { return };
        // One call for all pages, where the kernel has it (Linux 5.14).
        #[cfg(target_os = "linux")]
        if map.advise_range(memmap2::Advice::PopulateRead, pages.start, pages.len()).is_ok() {
            return;
        }
        for byte in map[pages].iter().step_by(PAGE) {
            std::hint::black_box(*byte);
        }
    }

    #[cfg(target_os = "linux")]
    fn no_longer_needed(&self, range: Range<usize>) {
        let (Some(map), Some(mut pages)) = (&self.map, self.pages(range.clone())) else { return };
        // The last page may hold the first bytes of what is still to be read. The first page is
        // given back even so: the one before it in the file is no longer needed either.
        if range.end < self.bytes().len() {
            pages.end = range.end / PAGE * PAGE;
        }
        if pages.is_empty() {
            return;
        }
        #[expect(unsafe_code, reason = "the hint is not one that can be given safely on all memory")]
        // SAFETY: the map is of a file and never written, so pages that are dropped are read from
        // the file again when they are touched, with the same bytes in them.
        let dropped = unsafe {
            map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, pages.start, pages.len())
        };
        // What this process still maps stays in the cache of the kernel, hence the order.
        if dropped.is_ok() {
            let length = std::num::NonZeroU64::new(pages.len() as u64);
            // A hint: where it is not taken, the kernel drops the pages when memory is short.
            let _taken =
                rustix::fs::fadvise(&self.file, pages.start as u64, length, rustix::fs::Advice::DontNeed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A mapped file of `length` bytes, byte i being i modulo 251.
    fn file(length: usize) -> (tempfile::TempDir, Arc<Mapped>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, (0..length).map(|i| (i % 251) as u8).collect::<Vec<_>>()).unwrap();
        let mapped = Mapped::open(&path).unwrap();
        (dir, mapped)
    }

    #[test]
    fn hints_leave_the_bytes_as_they_are() {
        for length in [0, 1, PAGE, PAGE + 1, 300 * PAGE + 17] {
            let (_dir, mapped) = file(length);
            assert!(mapped.is_mapped());
            for (start, end) in [(0, length), (5, 9), (PAGE, 3 * PAGE + 5), (length, length + 9), (7, 7)] {
                mapped.will_need(start..end);
                mapped.make_resident(start..end);
                mapped.no_longer_needed(start..end);
                assert_eq!(mapped.bytes().len(), length);
                assert!(mapped.bytes().iter().enumerate().all(|(i, b)| *b == (i % 251) as u8));
            }
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn requests_are_whole_pages_and_neither_none_nor_huge() {
        let (_dir, mapped) = file(PAGE);
        let ask = mapped.ask_bytes();
        assert!(ask.is_multiple_of(PAGE) && (PAGE..=MOST_ASK_BYTES).contains(&ask), "{ask}");
    }

    /// KiB of pages of files that this process has in memory at the mapping of `mapped`.
    #[cfg(target_os = "linux")]
    fn resident_kib(mapped: &Mapped) -> u64 {
        let start = format!("{:x}-", mapped.bytes().as_ptr().addr());
        let maps = fs::read_to_string("/proc/self/smaps").unwrap();
        let of_map = maps.lines().skip_while(|line| !line.starts_with(&start));
        let rss = of_map.skip(1).find_map(|line| line.strip_prefix("Rss:")).unwrap();
        rss.trim().trim_end_matches(" kB").parse().unwrap()
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_given_back_is_no_longer_resident() {
        const LENGTH: usize = 16 << 20;
        let (_dir, mapped) = file(LENGTH);
        // Pages that are not on the disk yet cannot be given back.
        mapped.file.sync_all().unwrap();
        mapped.make_resident(0..LENGTH);
        assert_eq!(resident_kib(&mapped), LENGTH as u64 >> 10);
        assert!(mapped.is_resident(0..LENGTH));
        // Half a page stays, because the bytes behind it are needed.
        mapped.no_longer_needed(100..LENGTH / 2 + 100);
        assert_eq!(resident_kib(&mapped), LENGTH as u64 >> 11);
        mapped.no_longer_needed(LENGTH / 2 + 100..LENGTH);
        assert_eq!(resident_kib(&mapped), 0);
        // A file system in memory (tmpfs) keeps its pages.
        const TMPFS: u64 = 0x0102_1994;
        let kept = rustix::fs::fstatfs(&mapped.file).unwrap().f_type as u64 == TMPFS;
        assert_eq!(mapped.is_resident(0..LENGTH), kept);
    }
}
