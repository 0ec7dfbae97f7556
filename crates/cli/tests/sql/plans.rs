//! What the guards find: an index that is not used, is not there, or is not the one asked for, and a cache that
//! is too small. The faults are made in a definition of the test's own.

use crate::{
    cases::{findings, generated_of, has_flag, text},
    servers::{Database, MariaDb, Postgres, clean, database, open_scratch, point, says, section, words},
    support::{Done, Scratch, done},
};

/// Runs a definition that is `from` replaced by `to` in the product's own.
fn run_changed(s: &Scratch, database: &Database, from: &str, to: &str, more: &[&str]) -> Done {
    let toml = database.product.toml();
    assert!(toml.contains(from), "the definition has no {from:?} any more");
    s.write("changed.toml", &toml.replacen(from, to, 1));
    let at = database.at();
    database.annvil(s, &words("./changed.toml", Some(&at), "r", more))
}

/// cases.md 71: an index for another operator is there and whole, but of no use. The answers are right, and the
/// point says that they come from a scan.
#[test]
fn case_71_pgvector_with_a_wrong_operator_class_is_marked_as_exact_scan() {
    let Some(database) = database(Postgres, "wrong_operator") else { return };
    let s = Scratch::new();
    // So few rows are scanned anyway but for this.
    let more = ["--limit", "2000"];
    let done = database.run(&s, "r", &more);
    assert_eq!(done.code, Some(0), "{}\n{}", done.out, done.err);
    let right = point(&s, "r", "pgvector", "sweep");
    assert!(right["uses_index"] == true && !has_flag(&right, "exact_scan"), "{right}");
    says(right["query_plan"].as_str().unwrap_or_default(), &["Index Scan using annvil_builtin_iv"]);
    assert!(right["recall"].as_f64().is_some_and(|r| r < 1.0), "{right}");

    let s = Scratch::new();
    let done = run_changed(&s, &database, "ops = \"vector_cosine_ops\"", "ops = \"vector_ip_ops\"", &more);
    assert_eq!(done.code, Some(0), "{}\n{}", done.out, done.err);
    let wrong = point(&s, "r", "pgvector", "sweep");
    assert!(wrong["uses_index"] == false && has_flag(&wrong, "exact_scan"), "{wrong}");
    assert_eq!(wrong["recall"], 1.0, "{wrong}");
    says(wrong["query_plan"].as_str().unwrap_or_default(), &["Seq Scan on annvil_builtin"]);
    says(&done.out, &["exact scan"]);
    let report = s.ok(&["report", "r"]);
    says(&report.out, &["The vector index was not used; this is the speed of an exact scan."]);
}

/// cases.md 65: asked for an index that is gone when the build is through.
#[test]
fn case_65_an_index_that_is_gone_after_the_build_fails_the_run() {
    if let Some(database) = database(MariaDb, "dropped_index") {
        let s = Scratch::new();
        let build = "build = [\"ALTER TABLE {{ table }} ADD VECTOR INDEX {{ index }} (v) M={{ m }} DISTANCE={{ distance }}\"]";
        let dropping = build.replace("\"]", "\", \"ALTER TABLE {{ table }} DROP INDEX {{ index }}\"]");
        let done = run_changed(&s, &database, build, &dropping, &[]);
        no_index(&s, &done, "mariadb");
        assert_eq!(database.tables(), Vec::<String>::new());
    }
    if let Some(database) = database(Postgres, "dropped_index") {
        let s = Scratch::new();
        let build = "WITH (m = {{ m }}, ef_construction = {{ ef_construction }})\n    \"\"\",";
        let dropping = format!("{build}\n    \"DROP INDEX {{{{ index }}}}\",");
        let done = run_changed(&s, &database, build, &dropping, &[]);
        no_index(&s, &done, "pgvector");
    }
}

fn no_index(s: &Scratch, done: &Done, engine: &str) {
    assert_eq!(done.code, Some(4), "{}\n{}", done.out, done.err);
    let reason = "asked for an index of kind hnsw, the engine has none";
    says(&done.err, &["error: not valid", engine, reason]);
    let build = point(s, "r", engine, "build");
    assert_eq!((&build["status"], &build["code"]), (&"invalid".into(), &"index_mismatch".into()), "{build}");
    let sweep = point(s, "r", engine, "sweep");
    assert!(sweep["status"] == "failed" && sweep["recall"].is_null(), "{sweep}");
    says(&findings(s, "r"), &[reason]);
}

/// cases.md 66: an index with other parameters than asked for.
#[test]
fn case_66_an_index_with_other_parameters_fails_the_run() {
    for (product, from, to) in [
        (Postgres, "WITH (m = {{ m }},", "WITH (m = {{ m // 2 }},"),
        (MariaDb, "(v) M={{ m }} DISTANCE", "(v) M={{ m // 2 }} DISTANCE"),
    ] {
        let Some(database) = database(product, "other_parameters") else { continue };
        let s = Scratch::new();
        let done = run_changed(&s, &database, from, to, &[]);
        assert_eq!(done.code, Some(4), "{}\n{}", done.out, done.err);
        says(&done.err, &["not valid", "asked for m=16, the engine has m=8"]);
    }
    let Some(database) = database(MariaDb, "other_distance") else { return };
    let s = Scratch::new();
    let done = run_changed(&s, &database, "distance = \"cosine\"", "distance = \"euclidean\"", &[]);
    // The definition names its distance twice, so what is read back agrees; the plan does not.
    let point = point(&s, "r", "mariadb", "sweep");
    assert!(done.code == Some(0) && has_flag(&point, "exact_scan"), "{}\n{point}", done.err);
}

/// cases.md 66: build parameters that engines do not share stand in the record and on the page.
#[test]
fn case_66_unequal_parameters_are_named_beside_each_other() {
    let Some(database) = database(MariaDb, "unequal") else { return };
    let s = Scratch::new();
    s.write(
        "plan.toml",
        "name = 'unequal'\ndatasets = ['builtin']\nlimit = 500\nrepeats = 2\nwarmup = 5\nmin_window = '1ms'\n\
         [[engine]]\nname = 'mariadb'\nefforts = [10]\n[[engine.build]]\nparams = { m = 8 }\n\
         [[engine]]\nname = 'usearch'\nefforts = [10]\n[[engine.build]]\nparams = { m = 16 }\n",
    );
    let at = database.at();
    let args = [
        "run",
        "--plan",
        "plan.toml",
        "--engine",
        "mariadb",
        "--engine",
        "usearch",
        "--at",
        &at,
        "--out",
        "r",
        "--quiet",
    ];
    let done = database.annvil(&s, &args);
    assert_eq!(done.code, Some(0), "{}\n{}", done.out, done.err);
    let text = "m is not the same for all engines: 8 in mariadb, 16 in usearch";
    says(&findings(&s, "r"), &["unequal_parameters", text]);
    let page = std::fs::read_to_string(s.path().join("r/report.html")).expect("a report");
    says(&page, &[text]);
}

/// cases.md 70: MariaDB's cache of 16 MiB, its default, below the size of the graph.
#[test]
fn case_70_a_cache_of_16_mib_is_warned_of_with_both_figures() {
    let Some(program) = MariaDb.program_option() else { return };
    let s = open_scratch();
    let rule = "mhnsw_max_cache_size = \"{{ ([memory_mib * 0.4, 16] | max) | int }}M\"";
    assert!(MariaDb.toml().contains(rule));
    s.write("small-cache.toml", &MariaDb.toml().replace(rule, "mhnsw_max_cache_size = \"16M\""));
    // 1,200 rows of 7,000 dimensions, of 2 bytes each in the graph.
    let wide = text(&generated_of(&s, "wide", 1200, 5, 7000));
    let more = [
        "--dataset",
        &wide,
        "--program",
        &program,
        "--server-memory",
        "600MB",
        "--param",
        "m=4",
        "--repeats",
        "1",
    ];
    let done =
        done(clean(&s, &words("./small-cache.toml", None, "r", &more)).output().expect("annvil starts"));
    assert_eq!(done.code, Some(0), "{}\n{}", done.out, done.err);
    let parts = ["mhnsw_max_cache_size is 16.0 MiB, but 16.2 MiB would be needed: a graph that outgrows it"];
    says(&done.err, &["warning: mariadb: ", parts[0]]);
    let entry = section(&s, "r", "mariadb");
    says(&entry["advice"].to_string(), &parts);
    assert_eq!(entry["server"]["settings"]["mhnsw_max_cache_size"], "16M");
    let settings = entry["settings"].as_array().expect("settings");
    let cache = settings.iter().find(|s| s["name"] == "mhnsw_max_cache_size").expect("the setting");
    assert_eq!((&cache["value"], &cache["default"]), (&"16777216".into(), &"16777216".into()));
    says(&findings(&s, "r"), &["advice", parts[0]]);
    assert_eq!(s.manifest("r")["verdict"]["valid"], true, "a warning is no failure");
}

/// The same for PostgreSQL's memory for a build: its own notice is kept, too.
#[test]
fn case_70_maintenance_work_mem_below_the_graph_is_warned_of() {
    let Some(database) = database(Postgres, "small_memory") else { return };
    database.sql("ALTER DATABASE small_memory SET maintenance_work_mem = '1MB'");
    let s = Scratch::new();
    let done = database.run(&s, "r", &["--limit", "2000"]);
    assert_eq!(done.code, Some(0), "{}\n{}", done.out, done.err);
    let said = "maintenance_work_mem is 1.0 MiB, but ";
    says(&done.err, &["warning: pgvector: ", said]);
    says(&section(&s, "r", "pgvector")["advice"].to_string(), &[said, "an HNSW graph that does not fit"]);
    let build = point(&s, "r", "pgvector", "build");
    says(&build["build_remarks"].to_string(), &["hnsw graph no longer fits into maintenance_work_mem"]);
}
