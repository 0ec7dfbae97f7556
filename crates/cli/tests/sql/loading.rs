//! Ways of loading: workers, batches, ordinary inserts, an index that grows with the rows, ordinary indexes on
//! columns. However they went in, all rows are counted and found.

use crate::{
    cases::run_words,
    servers::{Database, MariaDb, Postgres, Product, clean, database, open_scratch, point, says, words},
    support::Scratch,
};
use serde_json::Value;

/// Loads by these words and expects every row: the load and the build.
fn loads(database: &Database, more: &str) -> (Value, Value) {
    let (s, engine) = (Scratch::new(), database.product.engine());
    let more: Vec<&str> = more.split_whitespace().collect();
    let done = database.run(&s, "r", &[&["--effort", "40"][..], &more].concat());
    assert_eq!(done.code, Some(0), "{more:?}\n{}\n{}", done.out, done.err);
    let load = point(&s, "r", engine, "load");
    assert_eq!((&load["load_rows"], &load["load_rows_counted"]), (&500.into(), &500.into()), "{load}");
    let sweep = point(&s, "r", engine, "sweep");
    assert!(sweep["recall"].as_f64().is_some_and(|r| r > 0.95), "{more:?}: {sweep}");
    (load, point(&s, "r", engine, "build"))
}

/// cases.md 63: workers and batch size stand beside the load time.
fn workers_and_batches(product: Product) {
    let Some(database) = database(product, "loading") else { return };
    for (more, workers, batch) in [
        ("--load-workers 3 --batch 100", 3, 100),
        // More workers than batches, and a last batch of 3 rows.
        ("--load insert --load-workers 4 --batch 7", 4, 7),
        ("--load insert --batch 1 --load-workers 2", 2, 1),
        ("--load insert", 1, 1000),
        ("--batch 10000 --load-workers 5", 5, 10_000),
    ] {
        let (load, build) = loads(&database, more);
        assert_eq!(
            (&load["load_workers"], &load["load_batch_rows"]),
            (&workers.into(), &batch.into()),
            "{load}"
        );
        assert!(load["load_seconds"].as_f64().is_some_and(|s| s > 0.0), "{load}");
        assert_eq!(build["built_during_load"], false, "{build}");
    }
}

#[test]
fn case_63_postgresql_loads_by_several_workers_in_batches_of_any_size() {
    workers_and_batches(Postgres);
}

#[test]
fn case_63_mariadb_loads_by_several_workers_in_batches_of_any_size() {
    workers_and_batches(MariaDb);
}

#[test]
fn an_index_that_grows_with_the_rows_is_whole_after_the_load() {
    if let Some(database) = database(Postgres, "during_load") {
        let (_, build) = loads(&database, "--param build_time=during_load --load-workers 3 --batch 20");
        assert_eq!((&build["built_during_load"], &build["index_kind_read"]), (&true.into(), &"hnsw".into()));
    }
    if let Some(database) = database(MariaDb, "during_load") {
        let more = "--param build_time=during_load --param storage=MyISAM --load-workers 2 --batch 50";
        let (_, build) = loads(&database, more);
        assert_eq!(build["built_during_load"], true, "{build}");
        assert_eq!(build["params_read"]["storage"], "MyISAM", "{build}");
    }
}

/// Writers into one graph collide: such batches are sent again, counted, and no row is lost or there twice.
#[test]
fn case_63_conflicts_between_mariadbs_writers_are_tried_again_and_counted() {
    let Some(database) = database(MariaDb, "conflicts") else { return };
    let (load, _) = loads(&database, "--param build_time=during_load --load-workers 6 --batch 5");
    assert!(load["load_retries"].as_u64().is_some_and(|n| n > 0), "{load}");
    let (load, _) = loads(&database, "--load-workers 1");
    assert_eq!(load["load_retries"], 0, "{load}");
}

/// `--index-column` makes an ordinary index: PostgreSQL's log has the statement, MariaDB's plan names it.
#[test]
fn a_column_gets_an_index_of_its_own_where_it_is_asked_for() {
    let filter = ["--filter", "section = {q}", "--index-column", "section"];
    if let Some(program) = Postgres.program_option() {
        let s = open_scratch();
        let logged = Postgres
            .toml()
            .replace("max_connections = \"300\"", "max_connections = \"300\"\nlog_statement = \"ddl\"");
        s.write("logged.toml", &logged);
        let more = [&filter[..], &["--program", &program, "--server-memory", "600MB"]].concat();
        let done = crate::support::done(
            clean(&s, &words("./logged.toml", None, "r", &more)).output().expect("annvil starts"),
        );
        assert_eq!(done.code, Some(0), "{}\n{}", done.out, done.err);
        let log = std::fs::read_to_string(s.path().join("r/logs/pgvector.log")).expect("a log");
        says(&log, &["CREATE INDEX annvil_builtin_c0 ON annvil_builtin (\"c_section\")"]);
        assert_eq!(s.manifest("r")["plan"]["load"]["index_columns"], serde_json::json!(["section"]));
    }
    if let Some(database) = database(MariaDb, "index_column") {
        let s = Scratch::new();
        let done = database.run(&s, "r", &filter);
        assert_eq!(done.code, Some(0), "{}\n{}", done.out, done.err);
        let plan = |filtered: bool| {
            let found = s.sweep("r").into_iter().find(|p| p["filter"].is_string() == filtered);
            found.expect("a point")["query_plan"].as_str().unwrap_or_default().to_owned()
        };
        says(&plan(true), &["annvil_builtin_c0"]);
        assert!(!plan(false).contains("annvil_builtin_c0"), "{}", plan(false));
    }
}

/// A column that the data set has not is refused before anything is made.
#[test]
fn an_index_on_a_column_that_is_not_there_is_refused() {
    let s = Scratch::new();
    let more = ["--filter", "section = {q}", "--index-column", "sektion", "--limit", "300"];
    let done = s.annvil(&run_words("flat", "r", &more));
    assert_eq!(done.code, Some(2), "{}\n{}", done.out, done.err);
    says(&done.err, &["sektion", "section"]);
    assert!(!s.path().join("r").exists());
}
