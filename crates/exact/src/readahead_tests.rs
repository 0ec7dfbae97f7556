use super::*;
use types::{ByteStore, Element};

const ROW: usize = 16;

/// A store that keeps account of which rows are in memory, as a file would be.
struct Store {
    bytes: Vec<u8>,
    log: Mutex<Log>,
    /// How long a read takes.
    pause: Duration,
}

#[derive(Default)]
struct Log {
    resident: Vec<bool>,
    asked: Vec<bool>,
    most: usize,
    unasked: usize,
}

impl Store {
    fn of_rows(rows: usize, pause: Duration) -> (Arc<Store>, Vectors) {
        let log = Log { resident: vec![false; rows], asked: vec![false; rows], ..Log::default() };
        let store = Arc::new(Store { bytes: vec![7; rows * ROW], log: Mutex::new(log), pause });
        let base = Vectors::view(store.clone(), 0, ROW, rows, ROW, Element::U8).unwrap();
        (store, base)
    }

    fn resident(&self, rows: Range<usize>) -> usize {
        self.log.lock().unwrap().resident[rows].iter().filter(|r| **r).count()
    }
}

impl ByteStore for Store {
    fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn is_mapped(&self) -> bool {
        true
    }

    fn is_resident(&self, range: Range<usize>) -> bool {
        self.resident(range.start / ROW..range.end / ROW) == range.len() / ROW
    }

    fn will_need(&self, range: Range<usize>) {
        self.log.lock().unwrap().asked[range.start / ROW..range.end / ROW].fill(true);
    }

    fn make_resident(&self, range: Range<usize>) {
        std::thread::sleep(self.pause);
        let mut log = self.log.lock().unwrap();
        let rows = range.start / ROW..range.end / ROW;
        log.unasked += log.asked[rows.clone()].iter().filter(|asked| !**asked).count();
        log.resident[rows].fill(true);
        log.most = log.most.max(log.resident.iter().filter(|r| **r).count());
    }

    fn no_longer_needed(&self, range: Range<usize>) {
        self.log.lock().unwrap().resident[range.start / ROW..range.end / ROW].fill(false);
    }
}

fn wait_for(what: impl Fn() -> bool) {
    let start = Instant::now();
    while !what() {
        assert!(start.elapsed() < Duration::from_secs(20), "nothing happened");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn every_range_is_resident_when_handed_out_and_never_more_than_the_budget() {
    let (store, base) = Store::of_rows(1000, Duration::from_micros(100));
    let budget = 100 * ROW as u64;
    let mut ranges = Vec::new();
    for rows in ReadAhead::new(&base, read_blocks(&base, 3..997, Some(budget), 5), Some(budget), None) {
        assert_eq!(store.resident(rows.clone()), rows.len());
        ranges.push(rows);
    }
    assert_eq!((ranges[0].clone(), ranges[1].clone(), ranges.last().unwrap().end), (3..28, 28..53, 997));
    assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
    wait_for(|| store.resident(0..1000) == 0);
    let log = store.log.lock().unwrap();
    assert!(log.most <= 100, "{} rows", log.most);
    assert_eq!(log.unasked, 0, "the kernel is asked before it is waited for");
}

#[test]
fn the_next_ranges_come_in_while_one_is_in_use() {
    let (store, base) = Store::of_rows(1000, Duration::ZERO);
    let budget = 100 * ROW as u64;
    let mut walk = ReadAhead::new(&base, [0..20, 20..40, 40..60, 500..560], Some(budget), None);
    assert_eq!(walk.next(), Some(0..20));
    wait_for(|| store.resident(20..60) == 40);
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(store.resident(500..560), 0, "with these it would be 120 rows");
    assert_eq!(walk.next(), Some(20..40));
    wait_for(|| store.resident(500..560) == 60 && store.resident(0..20) == 0);
}

#[test]
fn ranges_larger_than_the_budget_are_read_one_ahead() {
    let (store, base) = Store::of_rows(100, Duration::ZERO);
    let mut walk = ReadAhead::new(&base, [0..30, 30..60, 60..90], Some(1), None);
    assert_eq!(walk.next(), Some(0..30));
    wait_for(|| store.resident(30..60) == 30);
    assert_eq!(store.resident(60..90), 0);
    assert_eq!(walk.by_ref().collect::<Vec<_>>(), [30..60, 60..90]);
    assert_eq!(walk.next(), None);
    wait_for(|| store.resident(0..100) == 0);
}

#[test]
fn what_fits_the_budget_or_has_none_stays_in_memory() {
    for budget in [Some(100 * ROW as u64), None] {
        let (store, base) = Store::of_rows(100, Duration::ZERO);
        let walk = ReadAhead::new(&base, [0..30, 30..60, 60..100], budget, None);
        assert_eq!(walk.count(), 3);
        assert_eq!(store.resident(0..100), 100);
    }
}

#[test]
fn what_is_in_memory_already_is_handed_on_at_once() {
    let (store, base) = Store::of_rows(100, Duration::from_millis(50));
    store.make_resident(0..100 * ROW);
    store.log.lock().unwrap().asked.fill(false);
    let walk = ReadAhead::new(&base, [0..30, 30..100], None, None);
    assert_eq!(walk.count(), 2);
    assert!(!store.log.lock().unwrap().asked.contains(&true), "nobody asks for it again");
}

#[test]
fn a_stop_is_quick_on_a_slow_disk_and_what_was_read_is_given_back() {
    let (store, base) = Store::of_rows(1000, Duration::from_millis(30));
    let budget = 160 * ROW as u64;
    let stop = AtomicBool::new(false);
    let mut walk = ReadAhead::new(&base, [0..10, 10..410, 410..810], Some(budget), Some(&stop));
    assert_eq!(walk.next(), Some(0..10));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(50));
            stop.store(true, Ordering::Relaxed);
        });
        // The second range takes 40 steps of 30 ms.
        let start = Instant::now();
        assert_eq!(walk.next(), None);
        drop(walk);
        assert!(start.elapsed() < Duration::from_millis(600), "{:?}", start.elapsed());
    });
    let shared = Arc::strong_count(&store);
    assert!(shared <= 3, "{shared}");
    wait_for(|| Arc::strong_count(&store) == 2);
    assert_eq!(store.resident(0..1000), 0);
}

#[test]
fn vectors_in_memory_are_handed_on_by_no_thread() {
    let base = Vectors::from_bytes(vec![0; 1000], 100, 10, Element::U8).unwrap();
    assert_eq!(read_blocks(&base, 5..100, Some(1), 7), vec![5..100; 1]);
    let walk = ReadAhead::new(&base, [0..50, 50..50, 50..100], Some(1), None);
    assert!(walk.reader.is_none());
    assert_eq!(walk.collect::<Vec<_>>(), [0..50, 50..100]);
}

#[test]
fn blocks_cover_the_rows_in_whole_multiples_whatever_the_budget() {
    let (_store, base) = Store::of_rows(1000, Duration::ZERO);
    for budget in [None, Some(0), Some(999), Some(4 * 300 * ROW as u64), Some(u64::MAX)] {
        for multiple in [0, 1, 7, 1024] {
            let all = read_blocks(&base, 10..990, budget, multiple);
            assert_eq!((all[0].start, all.last().unwrap().end), (10, 990));
            assert!(all.windows(2).all(|pair| pair[0].end == pair[1].start));
            assert!(all[..all.len() - 1].iter().all(|rows| rows.len() % multiple.max(1) == 0));
        }
    }
    assert_eq!(read_blocks(&base, 0..1000, Some(4 * 300 * ROW as u64), 7)[0], 0..294);
    assert_eq!(read_blocks(&base, 4..4, None, 7), vec![4..4; 1]);
}
