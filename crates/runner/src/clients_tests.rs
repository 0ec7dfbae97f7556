//! The closed loop against engines whose behaviour is known.

use crate::{LoopSpec, Measured, conductor::closed_loop};
use engine::{Batch, Control, Engine, EngineError, ErrorKind, IndexSpec, Params, SearchSpec, TableSpec};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use types::{Element, Filters, Metric, Vectors};

const ROWS: usize = 50;
const QUERIES: usize = 40;

fn fake(options: &str) -> Arc<dyn Engine> {
    let definition = engines::find(&format!("fake:{options}")).expect("the options are the fake's");
    let engine: Arc<dyn Engine> =
        Arc::from(engines::open(&definition, None, &engines::Passwords::default()).expect("it opens"));
    let index = IndexSpec { kind: "hnsw".into(), metric: Metric::L2, params: Params::new(), threads: 1 };
    let base = rows(ROWS);
    let table = TableSpec {
        name: "t".into(),
        dim: 2,
        element: Element::F32,
        metric: Metric::L2,
        rows: ROWS,
        columns: Vec::new(),
        indexed_columns: Vec::new(),
        load: Default::default(),
        index: index.clone(),
    };
    engine.create(&table).expect("a table");
    let mut session = engine.connect().expect("a session");
    session.insert(&Batch { keys: 0..ROWS as u64, vectors: &base, columns: None }).expect("rows");
    engine.finish_load().expect("the load ends");
    engine.build(&index, &Control::default()).expect("an index");
    engine
}

fn rows(count: usize) -> Vectors {
    Vectors::from_f32((0..count * 2).map(|i| i as f32).collect(), count, 2).expect("a shape")
}

fn spec(clients: usize) -> LoopSpec {
    LoopSpec {
        clients,
        warmup: 8,
        repeats: 3,
        min_window: Duration::ZERO,
        query_limit: Duration::from_secs(30),
        point_limit: Duration::from_secs(60),
        most_ids: 3,
    }
}

fn measure(engine: &Arc<dyn Engine>, spec: &LoopSpec) -> Result<Measured, EngineError> {
    let search = SearchSpec { queries: rows(QUERIES), k: 3, effort: Some(10), filters: Filters::None };
    let search = engine.encode(search)?;
    closed_loop(engine, &search, spec, &AtomicBool::new(false), &mut |_, _| {})
}

/// Every query of the set once a pass, whatever the number of clients.
#[test]
fn clients_share_the_query_set_without_gap_or_overlap() {
    for clients in [1, 3, 7, 64] {
        let measured = measure(&fake(""), &spec(clients)).expect("it is measured");
        assert_eq!(measured.windows.len(), 3);
        assert_eq!(measured.warmup_queries, 8);
        for window in &measured.windows {
            let mut asked: Vec<u32> = window.clients.iter().flat_map(|c| &c.sent).map(|s| s.query).collect();
            asked.sort_unstable();
            assert_eq!(asked, (0..QUERIES as u32).collect::<Vec<_>>(), "{clients} clients");
            for client in &window.clients {
                for (i, sent) in client.sent.iter().enumerate() {
                    assert!(sent.sent_ns <= sent.done_ns && sent.done_ns <= client.ended_ns);
                    assert_eq!(client.ids_of(i).len(), 3);
                    let near = u64::from(sent.query);
                    assert_eq!(client.ids_of(i)[0], near, "the answer belongs to its query");
                }
            }
        }
    }
}

/// Throughput is answered / wall time: 8 clients that wait 5 ms each do not add up to one.
#[test]
fn throughput_is_by_wall_time_and_the_window_is_filled_by_whole_passes() {
    let mut spec = spec(8);
    spec.min_window = Duration::from_millis(200);
    let measured = measure(&fake("service_ms=5"), &spec).expect("it is measured");
    for window in &measured.windows {
        assert_eq!(window.answered() % QUERIES as u64, 0, "whole passes");
        assert!(window.seconds() > 0.15, "{} s", window.seconds());
        let most = 8.0 / 0.005;
        assert!(window.throughput() <= most * 1.001, "{} is more than {most}", window.throughput());
        assert!(window.throughput() > most * 0.2, "{} is far below {most}", window.throughput());
    }
}

#[test]
fn failures_are_counted_with_their_kind_and_are_no_throughput() {
    let measured = measure(&fake("fail_share=1.0"), &spec(2)).expect("it is measured");
    for window in &measured.windows {
        assert_eq!((window.answered(), window.throughput()), (0, 0.0));
        for client in &window.clients {
            assert_eq!(client.errors.len(), client.sent.len());
            assert!(client.errors.iter().all(|(_, kind, _)| *kind == ErrorKind::Refused));
        }
    }
}

#[test]
fn a_client_that_hangs_fails_the_point_and_is_left_behind() {
    let mut spec = spec(2);
    spec.query_limit = Duration::from_millis(300);
    let started = Instant::now();
    let error = measure(&fake("hang_at_search=20"), &spec).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(error.to_string().contains("--query-timeout"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[test]
fn windows_before_a_limit_are_kept_and_the_point_says_so() {
    let mut spec = spec(1);
    spec.query_limit = Duration::from_millis(300);
    // 8 warm-up queries and one window of 40 pass before the 60th search hangs.
    let measured = measure(&fake("hang_at_search=60"), &spec).expect("it keeps what it has");
    assert_eq!(measured.windows.len(), 1);
    assert_eq!(measured.cut_short.expect("a reason").kind(), ErrorKind::Timeout);
}

#[test]
fn a_point_that_takes_too_long_names_its_option() {
    let mut spec = spec(1);
    spec.point_limit = Duration::from_millis(100);
    let error = measure(&fake("service_ms=20"), &spec).unwrap_err();
    assert!(error.to_string().contains("--point-timeout"), "{error}");
}

#[test]
fn a_point_can_be_interrupted() {
    let engine = fake("service_ms=50");
    let search = SearchSpec { queries: rows(QUERIES), k: 3, effort: Some(10), filters: Filters::None };
    let search = engine.encode(search).expect("it encodes");
    let flag = AtomicBool::new(false);
    let error =
        closed_loop(&engine, &search, &spec(1), &flag, &mut |_, _| flag.store(true, Ordering::Relaxed))
            .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stopped);
}
