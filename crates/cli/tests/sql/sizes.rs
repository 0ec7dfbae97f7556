//! Dimensions, memory, and indexes that did not come about.

use crate::{
    cases::{findings, generated_of, text},
    disk::Disk,
    servers::{MariaDb, Own, Postgres, database, open_scratch, point, says, words},
    support::Scratch,
};
use engine::{ServerDef, Template};
use host::server::DataDir;
use serde_json::Value;

/// cases.md 73: pgvector's index takes 2,000 dimensions, or 4,000 of half a float. Too many are left out with
/// the reason, in the dry run and in the run, and the other engines go on.
#[test]
fn case_73_more_dimensions_than_the_index_takes_are_left_out_with_the_reason() {
    let Some(database) = database(Postgres, "wide") else { return };
    let s = Scratch::new();
    let wide = text(&generated_of(&s, "wide", 300, 10, 2100));
    let at = database.at();
    let reason =
        "an index hnsw of pgvector with quantization=none takes at most 2000 dimensions, the data has 2100";
    let more = ["--dataset", &wide, "--engine", "flat"];
    let dry = [&words("pgvector", Some(&at), "r", &more)[..], &["--dry-run"]].concat();
    let done = database.annvil(&s, &dry);
    assert_eq!(done.code, Some(0), "{}", done.err);
    let flow = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    says(&flow(&done.out), &["left out:"]);
    let done = database.annvil(&s, &words("pgvector", Some(&at), "r", &more));
    assert_eq!(done.code, Some(0), "{}\n{}", done.out, done.err);
    let skipped = point(&s, "r", "pgvector", "sweep");
    assert_eq!((&skipped["status"], &skipped["reason"]), (&"skipped".into(), &reason.into()), "{skipped}");
    assert_eq!(point(&s, "r", "flat", "sweep")["status"], "valid");
    says(&findings(&s, "r"), &[reason]);
    let half = ["--dataset", &wide, "--param", "quantization=halfvec", "--force"];
    let done = database.annvil(&s, &words("pgvector", Some(&at), "r", &half));
    assert_eq!(done.code, Some(0), "{}\n{}", done.out, done.err);
    let sweep = point(&s, "r", "pgvector", "sweep");
    assert!(sweep["status"] == "valid" && sweep["recall"].as_f64().is_some_and(|r| r > 0.8), "{sweep}");
}

/// cases.md 86: nothing of a server elsewhere can be seen, so nothing is said, least of all our own memory.
#[test]
fn case_86_the_memory_of_a_server_elsewhere_is_unknown() {
    for product in [Postgres, MariaDb] {
        let Some(database) = database(product, "elsewhere") else { continue };
        let s = Scratch::new();
        let done = database.run(&s, "r", &[]);
        assert_eq!(done.code, Some(0), "{}", done.err);
        let (load, build) =
            (point(&s, "r", product.engine(), "load"), point(&s, "r", product.engine(), "build"));
        for value in [
            &load["load_memory_bytes"],
            &build["memory_peak_bytes"],
            &build["memory_after_bytes"],
            &build["disk_bytes"],
        ] {
            assert_eq!(*value, Value::Null, "{load}\n{build}");
        }
        // What the engine tells is known.
        assert!(build["index_bytes"].as_u64().is_some_and(|n| n > 8192), "{build}");
        let series = std::fs::read_dir(s.path().join("r/series")).expect("the folder").count();
        assert_eq!(series, 0, "a series of a server that can't be seen");
    }
}

/// cases.md 100: an index that the server gave up on, as where a parallel build has too little shared memory, is
/// not searched.
#[test]
fn case_100_an_index_that_is_not_valid_fails_the_build() {
    let Some(database) = database(Postgres, "invalid_index") else { return };
    let s = Scratch::new();
    let build = "WITH (m = {{ m }}, ef_construction = {{ ef_construction }})\n    \"\"\",";
    assert!(Postgres.toml().contains(build));
    let broken = format!(
        "{build}\n    \"UPDATE pg_index SET indisvalid = false WHERE indexrelid = to_regclass('{{{{ index }}}}')\","
    );
    s.write("broken.toml", &Postgres.toml().replacen(build, &broken, 1));
    let at = database.at();
    let done = database.annvil(&s, &words("./broken.toml", Some(&at), "r", &[]));
    assert_eq!(done.code, Some(4), "{}\n{}", done.out, done.err);
    says(&done.err, &["not valid", "pgvector", "annvil_builtin_iv"]);
    let build = point(&s, "r", "pgvector", "build");
    assert_ne!(build["status"], "valid", "{build}");
    assert!(point(&s, "r", "pgvector", "sweep")["recall"].is_null());
}

/// Shared memory of 8 MB, as a container has 64: a parallel build wants as much as `maintenance_work_mem`. The
/// build fails with the server's words, and is made once there is more.
#[test]
fn case_100_a_parallel_build_without_shared_memory_fails_and_is_told() {
    let in_files = |def: &mut ServerDef| {
        let words = ["-c", "dynamic_shared_memory_type=mmap"];
        def.start.extend(words.map(|w| Template::try_from(w.to_owned()).expect("a template")));
    };
    let s = open_scratch();
    let data = DataDir::Kept(s.path().join("kept"));
    // Made, then started anew on the small memory.
    let Some(own) = Own::start_as(Postgres, data.clone(), None, |_| ()) else { return };
    drop(own);
    let Some(memory) = Disk::over(&s.path().join("kept/data/pg_dynshmem"), 8) else { return };
    let Some(own) = Own::start_as(Postgres, data, None, in_files) else { return };
    let database = own.database("no_shared_memory");
    database.sql("ALTER DATABASE no_shared_memory SET min_parallel_table_scan_size = 0");
    database.sql("ALTER DATABASE no_shared_memory SET maintenance_work_mem = '64MB'");
    let more = ["--build-threads", "3", "--limit", "2000"];
    let done = database.run(&s, "r", &more);
    assert_eq!(done.code, Some(4), "{}\n{}", done.out, done.err);
    says(&done.err, &["error: not valid", "could not resize shared memory segment"]);
    let failed = point(&s, "r", "pgvector", "build");
    assert_eq!(failed["status"], "failed", "{failed}");
    assert!(failed["index_bytes"].is_null() && failed["build_seconds"].is_null(), "{failed}");
    assert!(point(&s, "r", "pgvector", "sweep")["recall"].is_null(), "a table without an index was searched");
    memory.grow(200);
    let done = database.annvil(&s, &["run", "--resume", "--out", "r", "--no-report", "--quiet"]);
    assert_eq!(done.code, Some(0), "{}\n{}", done.out, done.err);
    assert_eq!(point(&s, "r", "pgvector", "build")["build_threads"], 3);
    // A folder can't go while something is mounted in it.
    drop((own, memory));
}

/// cases.md 52: the first search comes after the index is whole, and both times are kept.
#[test]
fn case_52_the_build_ends_when_the_index_is_whole() {
    for product in [Postgres, MariaDb] {
        let Some(database) = database(product, "build_time") else { continue };
        let s = Scratch::new();
        let done = database.run(&s, "r", &["--param", "m=32"]);
        assert_eq!(done.code, Some(0), "{}", done.err);
        let (load, build) =
            (point(&s, "r", product.engine(), "load"), point(&s, "r", product.engine(), "build"));
        let figure = |p: &Value, name: &str| p[name].as_f64().unwrap_or_else(|| panic!("{name}: {p}"));
        let sum =
            figure(&load, "load_seconds") + figure(&build, "build_seconds") + figure(&build, "ready_seconds");
        assert!((figure(&build, "queryable_seconds") - sum).abs() < 1e-6, "{build}");
        assert_eq!(build["params_read"]["m"], 32, "{build}");
        let sweep = point(&s, "r", product.engine(), "sweep");
        assert!(!sweep["flags"].to_string().contains("index_incomplete"), "{sweep}");
    }
}

/// A limit that is passed while the server builds: told with the option, and the server's work is stopped.
#[test]
fn a_build_past_its_limit_is_stopped_on_the_server_too() {
    for (product, heavy, busy) in [
        (
            Postgres,
            ["m=100", "ef_construction=1000"],
            "SELECT pid FROM pg_stat_progress_create_index WHERE datname = current_database()",
        ),
        (
            MariaDb,
            ["m=100", "m=100"],
            "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND info LIKE 'ALTER TABLE annvil%'",
        ),
    ] {
        let Some(database) = database(product, "build_limit") else { continue };
        let s = Scratch::new();
        let more = ["--limit", "4000", "--param", heavy[0], "--param", heavy[1], "--build-timeout", "500ms"];
        let done = database.run(&s, "r", &more);
        assert_eq!(done.code, Some(4), "{}\n{}", done.out, done.err);
        says(&done.err, &["the build was not through after 500ms", "--build-timeout"]);
        let running = database.sql(busy);
        assert!(running.is_empty(), "the server still builds: {running:?}");
        assert_eq!(database.tables(), Vec::<String>::new());
    }
}
