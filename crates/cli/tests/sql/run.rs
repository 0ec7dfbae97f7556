//! A whole run over both servers and both embedded engines, and what stands in its records.

use crate::servers::{MariaDb, Postgres, clean, open_scratch, point, processes, says, section, words};
use crate::support::{Scratch, done};
use serde_json::Value;

/// Four engines, the servers started by annvil. With so many rows PostgreSQL's planner takes the index.
fn four(s: &Scratch) -> Option<Vec<Value>> {
    let (postgres, mariadb) = (Postgres.program_option()?, MariaDb.program_option()?);
    let more = [
        "--engine",
        "mariadb",
        "--engine",
        "usearch",
        "--engine",
        "flat",
        "--program",
        &postgres,
        "--program",
        &mariadb,
        "--limit",
        "3000",
        "--effort",
        "10,40",
        "--server-memory",
        "600MB",
        "--build-threads",
        "2",
    ];
    let mut words = words("pgvector", None, "r", &more);
    words.retain(|w| *w != "--no-report");
    let done = done(clean(s, &words).output().expect("annvil starts"));
    assert_eq!(done.code, Some(0), "{}\n{}", done.out, done.err);
    says(&done.out, &["PostgreSQL with pgvector", "MariaDB", "USearch", "Flat", "Result: VALID"]);
    Some(s.sweep("r"))
}

/// The recall of an engine's sweep, by effort.
fn recalls(sweep: &[Value], engine: &str) -> Vec<f64> {
    let of = sweep.iter().filter(|p| p["engine"] == engine);
    of.map(|p| p["recall"].as_f64().unwrap_or_else(|| panic!("{p}"))).collect()
}

#[test]
fn four_engines_stand_in_one_table_one_report_and_one_record() {
    let s = open_scratch();
    let Some(sweep) = four(&s) else { return };
    assert_eq!(recalls(&sweep, "flat"), [1.0]);
    for engine in ["pgvector", "mariadb", "usearch"] {
        let recall = recalls(&sweep, engine);
        assert!(recall.len() == 2 && recall[0] < recall[1] && recall[1] > 0.95, "{engine}: {recall:?}");
    }
    let page = std::fs::read_to_string(s.path().join("r/report.html")).expect("a report");
    says(&page, &["PostgreSQL with pgvector", "MariaDB", "USearch", "Flat (exact scan)"]);
    // cases.md 66: what is not the same for all stands in the record and on the page.
    let findings = crate::cases::findings(&s, "r");
    says(&findings, &["unequal_parameters", "quantization is not the same for all engines"]);
    says(&page, &["quantization is not the same for all engines"]);
    for (engine, version) in [("pgvector", "18."), ("mariadb", "11.8")] {
        manifest_tells(&section(&s, "r", engine), engine, version);
        records_tell(&s, engine);
    }
    says(section(&s, "r", "pgvector")["version"].as_str().unwrap_or_default(), &["pgvector 0."]);
    let left: Vec<_> = processes(&s.path().display().to_string());
    assert!(left.is_empty(), "{left:?}");
    let folder = std::fs::read_dir(s.path().join("r")).expect("the run").filter_map(Result::ok);
    let names: Vec<String> = folder.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    assert!(!names.iter().any(|n| n.starts_with("server-")), "{names:?}");
    for log in ["logs/pgvector.log", "logs/mariadb.log"] {
        let text = std::fs::read_to_string(s.path().join("r").join(log)).expect("a log");
        assert!(text.contains("ready"), "{log}: {text}");
    }
}

/// Version, client, settings with defaults, and how the server was started (design rule 11, cases.md 60, 67).
fn manifest_tells(section: &Value, engine: &str, version: &str) {
    says(section["version"].as_str().unwrap_or_default(), &[version]);
    assert!(section["client"].as_str().is_some_and(|c| c.ends_with(char::is_numeric)), "{section}");
    says(section["protocol"].as_str().unwrap_or_default(), &["encoding is before it"]);
    let settings = section["settings"].as_array().expect("settings");
    assert!(settings.len() > 200, "{engine}: {} settings", settings.len());
    let named =
        |name: &str| settings.iter().find(|s| s["name"] == name).unwrap_or_else(|| panic!("no {name}"));
    let (setting, given) = match engine {
        "pgvector" => ("max_connections", "300"),
        _ => ("max_connections", "300"),
    };
    let read = named(setting);
    assert_eq!(read["value"], given, "{read}");
    assert_ne!(read["default"], read["value"], "{read}");
    let server = &section["server"];
    says(&server["program"].to_string(), &["/"]);
    assert_eq!(server["granted"]["memory_bytes"], 600_000_000, "{server}");
    assert_eq!(server["granted"]["rows"], 3000, "{server}");
    assert_eq!(server["settings"]["max_connections"], "300", "{server}");
    assert_eq!(section["address"], Value::Null);
}

/// Index read back, plan, sizes and memory (cases.md 65, 71, 85).
fn records_tell(s: &Scratch, engine: &str) {
    let (load, build) = (point(s, "r", engine, "load"), point(s, "r", engine, "build"));
    assert_eq!((&load["load_rows"], &load["load_rows_counted"]), (&3000.into(), &3000.into()));
    assert_eq!(build["index_kind_read"], "hnsw", "{build}");
    assert_eq!(build["params_read"]["m"], 16, "{build}");
    // The rows alone are 384 numbers of 4 bytes (2 where PostgreSQL compresses nothing).
    for (what, least) in
        [("table_bytes", 3000 * 384 * 2), ("index_bytes", 3000 * 384), ("disk_bytes", 3000 * 384)]
    {
        assert!(build[what].as_u64().is_some_and(|n| n > least), "{engine}: {what} is {}", build[what]);
    }
    let memory = [&load["load_memory_bytes"], &build["memory_peak_bytes"], &build["memory_after_bytes"]];
    let memory = memory.map(|m| m.as_u64().unwrap_or_else(|| panic!("{engine}: {memory:?}")));
    assert!(memory.iter().all(|&m| (10 << 20..2 << 30).contains(&m)), "{engine}: {memory:?}");
    assert!(memory[1] >= memory[2], "{engine}: the peak is below what is left: {memory:?}");
    let search = point(s, "r", engine, "sweep");
    let first = s.sweep("r").into_iter().find(|p| p["engine"] == engine).expect("a point");
    assert_eq!(first["uses_index"], true, "{first}");
    let plan = search["query_plan"].as_str().unwrap_or_default();
    let part = if engine == "pgvector" { "annvil_builtin" } else { "Handler_read_rnd_next" };
    says(plan, &[part]);
    let series =
        std::fs::read_to_string(s.path().join(format!("r/series/{engine}.jsonl"))).expect("a series");
    assert!(series.lines().count() > 1, "{engine}: {series}");
}
