//! The usearch engine: contract under each quantization, efforts side by side, stopping, sizes.

use crate::{find, open};
use engine::{
    Batch, Control, Engine, ErrorKind, Hits, IndexSpec, Param, Params, SearchSpec, Session, TableSpec,
    contract::{self, Outcome},
};
use types::{Element, Filters, Metric, Vectors};

fn quantized(word: &str) -> Params {
    Params::from([("quantization".into(), Param::Text(word.into()))])
}

/// One build thread: several may leave rows unreachable (see the definition's asymmetries), which
/// would make thresholds a matter of luck.
fn check(options: &contract::Options) {
    let options = &contract::Options { threads: 1, ..options.clone() };
    let definition = find("usearch").unwrap();
    let engine = open(&definition, None, &crate::Passwords::default()).unwrap();
    let results = contract::run(&*engine, &definition, options);
    let skipped = results.iter().filter(|r| matches!(r.outcome, Outcome::Skipped(_))).count();
    assert!(skipped <= 1, "only the zero vector is not tested under every metric: {results:?}");
    for result in results {
        assert!(!matches!(result.outcome, Outcome::Failed(_)), "{options:?}: {result:?}");
    }
}

#[test]
fn the_contract_holds_under_each_quantization_and_metric() {
    for (quantization, least_recall) in [("f32", 0.95), ("f16", 0.95), ("bf16", 0.9), ("i8", 0.85)] {
        for metric in [Metric::L2, Metric::Cosine, Metric::InnerProduct] {
            if quantization == "i8" && metric != Metric::Cosine {
                continue;
            }
            let params = quantized(quantization);
            check(&contract::Options {
                metric: Some(metric),
                params,
                least_recall,
                rows: 500,
                ..Default::default()
            });
        }
    }
    // One bit a component finds the neighbourhood, not the order in it.
    let params = quantized("b1");
    check(&contract::Options {
        metric: Some(Metric::Cosine),
        params,
        least_recall: 0.3,
        dim: 128,
        ..Default::default()
    });
    check(&contract::Options {
        metric: Some(Metric::Hamming),
        least_recall: 0.9,
        dim: 100,
        ..Default::default()
    });
    for element in [Element::F16, Element::I8, Element::U8] {
        check(&contract::Options { metric: Some(Metric::L2), element: Some(element), ..Default::default() });
    }
    let (metric, element) = (Some(Metric::L2), Some(Element::I8));
    check(&contract::Options { metric, element, params: quantized("i8"), ..Default::default() });
}

const ROWS: usize = 3000;
const DIM: usize = 24;

fn vectors(rows: usize, seed: u32) -> Vectors {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32 - 0.5
    };
    Vectors::from_f32((0..rows * DIM).map(|_| next()).collect(), rows, DIM).unwrap()
}

fn index(params: &Params, threads: usize) -> IndexSpec {
    find("usearch").unwrap().index_spec(None, Metric::L2, params, threads).unwrap()
}

fn table(index: IndexSpec) -> TableSpec {
    TableSpec {
        name: "t".into(),
        dim: DIM,
        element: Element::F32,
        metric: index.metric,
        rows: ROWS,
        columns: Vec::new(),
        indexed_columns: Vec::new(),
        load: Default::default(),
        index,
    }
}

/// Rows loaded, index not built.
fn loaded(index: &IndexSpec) -> Box<dyn Engine> {
    let engine = open(&find("usearch").unwrap(), None, &crate::Passwords::default()).unwrap();
    engine.create(&table(index.clone())).unwrap();
    let rows = vectors(ROWS, 1);
    engine.connect().unwrap().insert(&Batch { keys: 0..ROWS as u64, vectors: &rows, columns: None }).unwrap();
    engine.finish_load().unwrap();
    engine
}

fn session(engine: &dyn Engine, effort: u64) -> Box<dyn Session> {
    let spec = SearchSpec { queries: vectors(200, 2), k: 10, effort: Some(effort), filters: Filters::None };
    let search = engine.encode(spec).unwrap();
    let mut session = engine.connect().unwrap();
    session.begin(search).unwrap();
    session
}

fn answers(session: &mut dyn Session) -> Vec<Vec<u64>> {
    let mut hits = Hits::with_capacity(10);
    (0..200)
        .map(|query| {
            session.search(query, &mut hits).unwrap();
            hits.keys().to_vec()
        })
        .collect()
}

/// The effort is a field of the index: sessions that differ in it must not disturb each other.
#[test]
fn sessions_of_different_efforts_keep_their_own() {
    let index = index(&Params::new(), 1);
    let engine = loaded(&index);
    engine.build(&index, &Control::default()).unwrap();
    let alone: Vec<_> = [10, 200].map(|effort| answers(&mut *session(&*engine, effort))).to_vec();
    assert_ne!(alone[0], alone[1], "the efforts give different answers");
    let engine = &*engine;
    let together: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = [10, 200]
            .map(|effort| {
                let mut session = session(engine, effort);
                scope.spawn(move || answers(&mut *session))
            })
            .into_iter()
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(alone, together);
}

/// More sessions than the build had threads, connected before and after the build.
#[test]
fn many_sessions_search_at_once() {
    let index = index(&Params::new(), 2);
    let engine = loaded(&index);
    let early: Vec<_> = (0..5).map(|_| engine.connect().unwrap()).collect();
    engine.build(&index, &Control::default()).unwrap();
    let alone = answers(&mut *session(&*engine, 80));
    let late: Vec<_> = (0..40).map(|_| session(&*engine, 80)).collect();
    let alone = &alone;
    std::thread::scope(|scope| {
        for mut session in late {
            scope.spawn(move || assert_eq!(answers(&mut *session), *alone));
        }
    });
    drop(early);
}

#[test]
fn a_build_stops_when_told_and_leaves_no_index() {
    let index = index(&Params::new(), 2);
    let engine = loaded(&index);
    let control = Control::default();
    control.stop();
    assert_eq!(engine.build(&index, &control).unwrap_err().kind(), ErrorKind::Stopped);
    assert_eq!(engine.index_info().unwrap(), None);
    assert!(!engine.readiness().unwrap().ready);
    assert_eq!(engine.sizes().unwrap().index, None);
    let control = Control::default();
    engine.build(&index, &control).unwrap();
    assert_eq!(control.progress_so_far(), (ROWS as u64, ROWS as u64));
}

#[test]
fn one_thread_builds_the_same_graph_again() {
    let index = index(&Params::new(), 1);
    let [first, second] = [(); 2].map(|()| {
        let engine = loaded(&index);
        engine.build(&index, &Control::default()).unwrap();
        answers(&mut *session(&*engine, 20))
    });
    assert_eq!(first, second);
}

/// The index holds graph and vectors in the quantization: f16 saves half of the vectors' bytes.
#[test]
fn index_size_follows_quantization_and_m() {
    let size = |params: &Params| {
        let index = index(params, 2);
        let engine = loaded(&index);
        engine.build(&index, &Control::default()).unwrap();
        let sizes = engine.sizes().unwrap();
        assert_eq!(sizes.table, Some((ROWS * DIM * 4) as u64));
        sizes.index.unwrap() as i64
    };
    let (full, half) = (size(&quantized("f32")), size(&quantized("f16")));
    let saved = (ROWS * DIM * 2) as i64;
    assert!((full - half - saved).abs() < saved / 20, "{full} - {half}, expected {saved}");
    let wide = size(&Params::from([("m".into(), Param::Int(48))]));
    assert!(wide > full + (ROWS * 4 * 32) as i64, "m 48: {wide}, m 16: {full}");
}

/// Half of the rows deleted and inserted again as others, then rebuilt: the answers stay right.
#[test]
fn churn_and_maintenance_keep_the_rows_apart() {
    let index = index(&Params::new(), 1);
    let engine = loaded(&index);
    engine.build(&index, &Control::default()).unwrap();
    let half = ROWS / 2;
    let keys: Vec<u64> = (0..half as u64).collect();
    let mut writer = engine.connect().unwrap();
    writer.delete(&keys).unwrap();
    assert_eq!(engine.row_count().unwrap(), half as u64);
    assert!(answers(&mut *session(&*engine, 80)).iter().flatten().all(|&key| key >= half as u64));
    let others = vectors(half, 99);
    writer.insert(&Batch { keys: 0..half as u64, vectors: &others, columns: None }).unwrap();
    // More rows than the table was made for.
    let more = vectors(10, 7);
    writer.insert(&Batch { keys: ROWS as u64..ROWS as u64 + 10, vectors: &more, columns: None }).unwrap();
    let own = |vectors: &Vectors, first: u64| {
        let spec = SearchSpec { queries: vectors.clone(), k: 1, effort: Some(200), filters: Filters::None };
        let search = engine.encode(spec).unwrap();
        let mut session = engine.connect().unwrap();
        session.begin(search).unwrap();
        let mut hits = Hits::default();
        let found = (0..vectors.rows()).filter(|&query| {
            session.search(query, &mut hits).unwrap();
            hits.keys() == [first + query as u64]
        });
        found.count() as f64 / vectors.rows() as f64
    };
    for maintained in [false, true] {
        if maintained {
            engine.maintain(&Control::default()).unwrap();
        }
        assert!(engine.readiness().unwrap().ready);
        let (new, kept) = (own(&others, 0), own(&vectors(ROWS, 1).slice(half..ROWS), half as u64));
        assert!(new > 0.98 && kept > 0.98 && own(&more, ROWS as u64) == 1.0, "{maintained}: {new} {kept}");
    }
}

#[test]
fn what_a_quantization_cannot_keep_is_refused_in_one_line() {
    let engine = open(&find("usearch").unwrap(), None, &crate::Passwords::default()).unwrap();
    let error = engine.create(&table(index(&quantized("i8"), 1))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("direction"), "{error}");
    let bits = TableSpec { element: Element::Bit, ..table(index(&Params::new(), 1)) };
    assert!(engine.create(&bits).unwrap_err().to_string().contains("hamming"));
    let hamming = find("usearch").unwrap().index_spec(None, Metric::Hamming, &quantized("f32"), 1).unwrap();
    let bits = TableSpec { element: Element::Bit, ..table(hamming) };
    assert!(engine.create(&bits).unwrap_err().to_string().contains("b1"));
}

/// What the definition's asymmetry says of zero vectors under cosine (cases.md 43).
#[test]
fn a_zero_vector_is_at_distance_1_from_others_and_0_from_itself() {
    let definition = find("usearch").unwrap();
    let engine = open(&definition, None, &crate::Passwords::default()).unwrap();
    let index = definition.index_spec(None, Metric::Cosine, &Params::new(), 1).unwrap();
    let mut spec = table(index.clone());
    spec.dim = 2;
    engine.create(&spec).unwrap();
    // Key 0 is zero; from (1, 0) the cosine distances of 1, 2, 3 are 0, 0.29 and 2.
    let rows = Vectors::from_f32(vec![0.0, 0.0, 1.0, 0.0, 1.0, 1.0, -1.0, 0.0], 4, 2).unwrap();
    engine.connect().unwrap().insert(&Batch { keys: 0..4, vectors: &rows, columns: None }).unwrap();
    engine.build(&index, &Control::default()).unwrap();
    let queries = Vectors::from_f32(vec![1.0, 0.0, 0.0, 0.0], 2, 2).unwrap();
    let search =
        engine.encode(SearchSpec { queries, k: 4, effort: Some(10), filters: Filters::None }).unwrap();
    let mut session = engine.connect().unwrap();
    session.begin(search).unwrap();
    let mut hits = Hits::default();
    session.search(0, &mut hits).unwrap();
    assert_eq!(hits.keys(), [1, 2, 0, 3]);
    session.search(1, &mut hits).unwrap();
    assert_eq!((hits.keys().len(), hits.keys()[0]), (4, 0));
}
