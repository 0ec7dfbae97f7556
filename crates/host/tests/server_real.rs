//! Real servers: PostgreSQL with pgvector, MariaDB. The programs are named by `ANNVIL_POSTGRES` and
//! `ANNVIL_MARIADBD` (`cargo xtask servers`).

mod common;

use common::*;
use host::server::{DataDir, Server, ServerError, StartOptions};
use host::{ProcessSample, Scope};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Statements that make a table with a vector and a query for its row, by engine.
fn statements(name: &str) -> (&'static str, &'static str) {
    match name {
        "pgvector" => (
            "create extension vector; create table t (id int primary key, v vector(3)); insert into t values (7, '[1,2,3]')",
            "select id from t order by v <-> '[1,2,3]' limit 1",
        ),
        _ => (
            "create database x; create table x.t (id int primary key, v vector(3) not null, vector index (v)); \
             insert into x.t values (7, vec_fromtext('[1,2,3]'))",
            "select id from x.t order by vec_distance_euclidean(v, vec_fromtext('[1,2,3]')) limit 1",
        ),
    }
}

fn password(server: &Server) -> &str {
    server.password().unwrap().reveal()
}

fn settings_are_in_force(server: &Server) {
    for (name, value) in server.settings() {
        let (shown, sql) = match server.found().engine.as_str() {
            "pgvector" => (value.clone(), format!("show {name}")),
            _ => (value.clone(), format!("select @@global.{name}")),
        };
        let answer = ask(server, password(server), &sql).unwrap();
        assert_eq!(bytes(&answer), bytes(&shown), "{name}");
    }
}

/// `1GB`, `128MB`, `64M`, plain numbers: as one number.
fn bytes(text: &str) -> u64 {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
    number
        << match &text[digits.len()..] {
            "" => 0,
            "kB" | "K" => 10,
            "MB" | "M" => 20,
            "GB" | "G" => 30,
            other => panic!("{other}"),
        }
}

fn is_started_asked_and_stopped(name: &str) {
    let Some(real) = real(name) else { return };
    let top = folder();
    let server = start(&real.def, &real.found, &options(top.path())).unwrap_or_else(|e| panic!("{e}"));
    let (make, query) = statements(name);
    ask(&server, password(&server), make).unwrap();
    assert_eq!(ask(&server, password(&server), query).unwrap(), "7");
    settings_are_in_force(&server);
    assert!(ask(&server, "", query).is_err() && ask(&server, "wrong", query).is_err());
    let sample = ProcessSample::read(server.pid(), Scope::Tree).unwrap();
    assert!(sample.rss_anon_bytes.is_some_and(|bytes| bytes > 1 << 20), "{sample:?}");
    if name == "pgvector" {
        assert!(sample.processes > 4, "PostgreSQL has a process for each task: {sample:?}");
    }
    let secret = password(&server).to_owned();
    for pid in processes_of(server.folder()) {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&command).contains(&secret), "process {pid} shows the password");
    }
    assert!(!log(top.path()).contains(&secret) && !format!("{server:?}").contains(&secret));
    let stopped = server.stop().unwrap();
    assert!(stopped.clean, "{stopped:?}: {}", log(top.path()));
    assert_eq!((left_in(top.path()), processes_of(top.path())), (vec![], vec![]));
}

fn comes_up_again_on_kept_data(name: &str) {
    let Some(real) = real(name) else { return };
    let top = folder();
    let data = DataDir::Kept(top.path().join("kept"));
    let mut options = StartOptions { data, ..options(top.path()) };
    let (make, query) = statements(name);
    let first = start(&real.def, &real.found, &options).unwrap_or_else(|e| panic!("{e}"));
    ask(&first, password(&first), make).unwrap();
    let before = first.settings().to_vec();
    first.stop().unwrap();
    options.budget.memory_bytes = Some(1 << 30);
    let second = start(&real.def, &real.found, &options).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(ask(&second, password(&second), query).unwrap(), "7");
    assert_ne!(second.settings(), before, "another budget, other settings");
    settings_are_in_force(&second);
    // Killed, not stopped: the data must survive that too.
    kill_9(second.pid());
    until("the end is seen", || !second.is_alive());
    let ending = second.ending().unwrap().to_string();
    assert!(ending.starts_with("was killed by signal 9 (KILL)"), "{ending}");
    drop(second);
    let third = start(&real.def, &real.found, &options).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(ask(&third, password(&third), query).unwrap(), "7");
    third.stop().unwrap();
    assert!(top.path().join("kept/data").is_dir());
    assert_eq!(processes_of(top.path()), Vec::<u32>::new());
}

/// A setting that the server does not know: it says so itself, and its words are in the error.
fn a_wrong_setting_is_told(name: &str, words: &str) {
    let Some(mut real) = real(name) else { return };
    let top = folder();
    real.def.settings.insert("no_such_setting".into(), engine::Template::try_from("1".to_owned()).unwrap());
    let error = start(&real.def, &real.found, &options(top.path())).unwrap_err();
    assert!(matches!(error, ServerError::Died { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains(words) && text.contains("no") && !text.contains('\n'), "{text}");
    assert_eq!((left_in(top.path()), processes_of(top.path())), (vec![], vec![]));
}

/// As root the server runs as another user, who must reach the data.
fn a_closed_folder_is_told(name: &str) {
    let Some(real) = real(name) else { return };
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let top = tempfile::tempdir().unwrap();
    std::fs::set_permissions(top.path(), PermissionsExt::from_mode(0o700)).unwrap();
    let error = start(&real.def, &real.found, &options(top.path())).unwrap_err().to_string();
    let real_top = top.path().canonicalize().unwrap();
    let words = format!("runs as nobody, who can't enter {};", real_top.display());
    assert!(error.contains(&words) && error.contains("--data-dir"), "{error}");
    assert_eq!(left_in(top.path()).len(), 0);
}

#[test]
fn postgresql_is_started_asked_and_stopped() {
    is_started_asked_and_stopped("pgvector");
}

#[test]
fn mariadb_is_started_asked_and_stopped() {
    is_started_asked_and_stopped("mariadb");
}

#[test]
fn postgresql_comes_up_again_on_kept_data() {
    comes_up_again_on_kept_data("pgvector");
}

#[test]
fn mariadb_comes_up_again_on_kept_data() {
    comes_up_again_on_kept_data("mariadb");
}

#[test]
fn a_wrong_setting_of_postgresql_is_told() {
    a_wrong_setting_is_told("pgvector", "unrecognized configuration parameter \"no_such_setting\"");
}

#[test]
fn a_wrong_setting_of_mariadb_is_told() {
    a_wrong_setting_is_told("mariadb", "unknown variable 'no_such_setting=1'");
}

#[test]
fn a_folder_closed_to_postgresql_is_told() {
    a_closed_folder_is_told("pgvector");
}

#[test]
fn a_folder_closed_to_mariadb_is_told() {
    a_closed_folder_is_told("mariadb");
}

/// A process of PostgreSQL that is busy does not notice that its parent is gone.
#[test]
fn a_busy_process_of_a_killed_postgresql_ends_with_it() {
    let Some(real) = real("pgvector") else { return };
    let top = folder();
    let server = start(&real.def, &real.found, &options(top.path())).unwrap_or_else(|e| panic!("{e}"));
    // Longer than any test waits, but not for ever, should it not be ended.
    let busy = "do $$ declare till timestamptz := clock_timestamp() + interval '90 s'; \
                begin while clock_timestamp() < till loop perform 1; end loop; end $$";
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| ask(&server, password(&server), busy));
        let count = "select count(*) from pg_stat_activity where query like 'do $$%' and state = 'active'";
        until("it is busy", || ask(&server, password(&server), count).is_ok_and(|n| n == "1"));
        kill_9(server.pid());
        until("the end is seen", || !server.is_alive());
        assert!(asked.join().unwrap().is_err());
    });
    until("no process is left", || processes_of(&server.folder().join("data")).is_empty());
    assert!(!server.stop().unwrap().clean);
    assert_eq!(left_in(top.path()).len(), 0);
}

/// Two engines at once, each with its own port and folder.
#[test]
fn postgresql_and_mariadb_run_side_by_side() {
    let (Some(one), Some(two)) = (real("pgvector"), real("mariadb")) else { return };
    let top = folder();
    let options = |name: &str| StartOptions { log: Path::new(top.path()).join(name), ..options(top.path()) };
    let a = start(&one.def, &one.found, &options("a.log")).unwrap_or_else(|e| panic!("{e}"));
    let b = start(&two.def, &two.found, &options("b.log")).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(ask(&a, password(&a), "select 1").unwrap(), "1");
    assert_eq!(ask(&b, password(&b), "select 1").unwrap(), "1");
    assert!(a.stop().unwrap().clean && b.stop().unwrap().clean);
}
