//! What stands between annvil and a server: password, port, network, database, rights, a table of someone
//! else, a full disk. Each has a message of its own and exit code 5, and a run that began can be resumed.

use crate::{
    cases::findings,
    disk::Disk,
    servers::{Database, MariaDb, Own, Postgres, Product, database, point, says, skipped, words},
    support::{Done, Scratch},
};
use std::{
    net::TcpListener,
    process::Command,
    time::{Duration, Instant},
};

/// A run that could not begin: code 5, one line, nothing written.
fn stays_out(database: &Database, at: &str, parts: &[&str]) {
    let s = Scratch::new();
    let begin = Instant::now();
    let done = database.annvil(&s, &words(database.product.engine(), Some(at), "r", &[]));
    // cases.md 118 wants 10 s; a machine that is busy with other tests gets a little more.
    assert!(begin.elapsed() < Duration::from_secs(15), "{at} took {:?}", begin.elapsed());
    assert_eq!((done.code, done.out.as_str()), (Some(5), ""), "{at}\n{}", done.err);
    assert_eq!(done.err.lines().count(), 1, "{at}\n{}", done.err);
    assert!(done.err.starts_with("error: "), "{}", done.err);
    says(&done.err, &[&[database.product.engine()][..], parts].concat());
    let said = done.err.to_lowercase();
    for part in parts.iter().map(|p| p.to_lowercase()) {
        assert_eq!(said.matches(&part).count(), 1, "{part:?} is said more than once: {}", done.err);
    }
    assert!(!s.path().join("r").exists(), "a run directory was made");
}

/// cases.md 118: each its own message.
fn messages_of_no_access(product: Product, wrong_password: &str, no_database: &str) {
    let Some(database) = database(product, "no_access") else { return };
    let place = format!("127.0.0.1:{}", database.port);
    let at = database.at();
    stays_out(
        &database.of(&database.user, "not-it"),
        &at,
        &[&place, wrong_password, "check user and password"],
    );
    let nobody = format!("{}://ghost@{place}/{}", product.scheme(), database.name);
    stays_out(&database, &nobody, &[wrong_password, "ghost"]);
    let free = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port();
    let wrong_port = at.replace(&database.port.to_string(), &free.to_string());
    stays_out(&database, &wrong_port, &["no server answers at", "refused", "is it running"]);
    stays_out(&database, &at.replace("/no_access", "/nowhere"), &[no_database]);
    let unknown = at.replace("127.0.0.1", "no-such-host.invalid");
    stays_out(&database, &unknown, &["no server answers at no-such-host.invalid", "lookup"]);
    // An address that nothing has (RFC 5737): a network may refuse it or say nothing.
    stays_out(&database, &at.replace("127.0.0.1", "192.0.2.1"), &["no server answers at 192.0.2.1"]);
}

#[test]
fn case_118_what_keeps_postgresql_closed_is_said_in_one_line() {
    messages_of_no_access(Postgres, "password authentication failed", "does not exist");
}

#[test]
fn case_118_what_keeps_mariadb_closed_is_said_in_one_line() {
    messages_of_no_access(MariaDb, "Access denied for user", "Unknown database");
}

/// Something that takes the port and never speaks, as a port forwarded to nothing does.
#[test]
fn case_118_a_port_that_takes_the_call_and_says_nothing_is_given_up() {
    let mute = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = mute.local_addr().expect("its address").port();
    std::thread::scope(|scope| {
        for product in [Postgres, MariaDb] {
            let (user, name) = (product.admin().to_owned(), "x".to_owned());
            let database = Database { product, port, user, password: "p".to_owned(), name };
            scope.spawn(move || {
                stays_out(&database, &database.at(), &["no server answers at", "no answer within"]);
            });
        }
    });
}

#[test]
fn without_a_password_the_ways_to_give_one_are_named() {
    for product in [Postgres, MariaDb] {
        let Some(database) = database(product, "no_password") else { continue };
        let s = Scratch::new();
        let at = database.at();
        let words = words(product.engine(), Some(&at), "r", &[]);
        let done = crate::support::done(crate::servers::clean(&s, &words).output().expect("annvil starts"));
        assert_eq!(done.code, Some(5), "{}", done.err);
        says(&done.err, &["ANNVIL_PASSWORD", "--password-file", "--ask-password"]);
    }
}

/// A run whose set-up failed: code 5, the reason once in the error, failed points, no figures.
fn set_up_fails(s: &Scratch, database: &Database, more: &[&str], code: &str, parts: &[&str]) -> Done {
    let done = database.run(s, "r", more);
    assert_eq!(done.code, Some(5), "{}\n{}", done.out, done.err);
    says(&done.err, &[&["error: ", database.product.engine()][..], parts].concat());
    for phase in ["load", "build", "sweep"] {
        let point = point(s, "r", database.product.engine(), phase);
        assert_eq!((&point["status"], &point["code"]), (&"failed".into(), &code.into()), "{point}");
        assert!(point["throughput"].is_null() && point["build_seconds"].is_null(), "{point}");
        says(point["reason"].as_str().unwrap_or_default(), parts);
    }
    assert_eq!(s.manifest("r")["verdict"]["valid"], false);
    done
}

/// Once what was in the way is gone, the run goes on to its end.
fn resumes(s: &Scratch, database: &Database) {
    let done = database.annvil(s, &["run", "--resume", "--out", "r", "--no-report", "--quiet"]);
    assert_eq!(done.code, Some(0), "{}\n{}", done.out, done.err);
    for phase in ["load", "build", "sweep"] {
        let point = point(s, "r", database.product.engine(), phase);
        assert_eq!(point["status"], "valid", "{point}");
    }
    assert_eq!(s.manifest("r")["verdict"]["valid"], true, "{}", findings(s, "r"));
}

#[test]
fn a_postgresql_user_who_may_only_read_is_named_and_the_run_goes_on_once_allowed() {
    let Some(database) = database(Postgres, "reader") else { return };
    database.sql("CREATE EXTENSION vector; CREATE ROLE reader LOGIN PASSWORD 'r'; CREATE ROLE frozen LOGIN PASSWORD 'f'");
    let s = Scratch::new();
    let reader = database.of("reader", "r");
    set_up_fails(&s, &reader, &[], "denied", &["permission denied for schema public"]);
    assert_eq!(database.tables(), Vec::<String>::new());
    database.sql("GRANT CREATE ON SCHEMA public TO reader");
    resumes(&s, &reader);
    // A standby, or a user for reports, lets nobody write.
    database.sql(
        "GRANT CREATE ON SCHEMA public TO frozen; ALTER ROLE frozen SET default_transaction_read_only = on",
    );
    let s = Scratch::new();
    set_up_fails(&s, &database.of("frozen", "f"), &[], "denied", &["read-only transaction"]);
    database.sql("ALTER ROLE frozen RESET default_transaction_read_only");
    resumes(&s, &database.of("frozen", "f"));
}

#[test]
fn a_mariadb_user_who_may_only_read_is_named_and_the_run_goes_on_once_allowed() {
    let Some(database) = database(MariaDb, "reader") else { return };
    database.sql("CREATE USER reader IDENTIFIED BY 'r'; GRANT SELECT ON reader.* TO reader");
    let s = Scratch::new();
    let reader = database.of("reader", "r");
    set_up_fails(&s, &reader, &[], "denied", &["command denied to user 'reader'"]);
    database.sql("GRANT ALL ON reader.* TO reader");
    resumes(&s, &reader);
}

#[test]
fn a_table_that_annvil_did_not_make_is_left_alone() {
    for product in [Postgres, MariaDb] {
        let Some(database) = database(product, "foreign_table") else { continue };
        database.sql("CREATE TABLE annvil_builtin (mine INT); INSERT INTO annvil_builtin VALUES (42)");
        let s = Scratch::new();
        let parts = ["annvil_builtin", "was not made by Annvil", "drop or rename it"];
        set_up_fails(&s, &database, &[], "refused", &parts);
        assert_eq!(database.sql("SELECT mine FROM annvil_builtin"), ["42"]);
        database.sql("ALTER TABLE annvil_builtin RENAME TO mine_again");
        resumes(&s, &database);
        assert_eq!(database.sql("SELECT mine FROM mine_again"), ["42"]);
    }
}

/// Rows that do not fit: failed for want of space, in the server's words, and measured once there is some.
fn fills_up(database: &Database, disk: &Disk, s: &Scratch, engine: &str, words: &str) {
    let at = database.at();
    let done = database.annvil(s, &crate::servers::words(engine, Some(&at), "r", &["--limit", "3000"]));
    assert_eq!(done.code, Some(4), "{}\n{}", done.out, done.err);
    says(&done.err, &["error: not valid", words]);
    let load = point(s, "r", database.product.engine(), "load");
    assert_eq!((&load["status"], &load["code"]), (&"failed".into(), &"overloaded".into()), "{load}");
    says(load["reason"].as_str().unwrap_or_default(), &["rows ", "could not be inserted", words]);
    disk.grow(400);
    resumes(s, database);
}

#[test]
fn a_full_disk_of_postgresql_is_said_and_the_run_goes_on_with_more_room() {
    let Some(disk) = Disk::of_its_own(100) else { return };
    // Its own, because a server whose disk is gone is none for others.
    let Some(own) = Own::start(Postgres) else { return };
    let database = own.database("before_full_disk");
    let folder = disk.folder();
    give_to_the_server(&folder);
    let place = folder.display();
    database.sql(&format!("CREATE TABLESPACE small LOCATION '{place}'"));
    database.sql("CREATE DATABASE full_disk TABLESPACE small");
    disk.leave_free(2);
    let small = Database { name: "full_disk".to_owned(), ..database.clone() };
    let s = Scratch::new();
    fills_up(&small, &disk, &s, "pgvector", "No space left on device");
    // The disk goes after the server, whose last checkpoint writes to it.
    drop(own);
}

#[test]
fn a_full_disk_of_mariadb_is_said_and_the_run_goes_on_with_more_room() {
    let Some(database) = database(MariaDb, "full_disk") else { return };
    let Some(disk) = Disk::of_its_own(4) else { return };
    let folder = disk.folder();
    give_to_the_server(&folder);
    let s = Scratch::new();
    let ours = "COMMENT='made by annvil'";
    assert!(MariaDb.toml().contains(ours));
    let here = format!("DATA DIRECTORY='{}' {ours}", folder.display());
    s.write("small.toml", &MariaDb.toml().replace(ours, &here));
    fills_up(&database, &disk, &s, "./small.toml", "is full");
}

/// PostgreSQL wants to own the folder of a tablespace.
fn give_to_the_server(folder: &std::path::Path) {
    let done = Command::new("chown").arg("nobody").arg(folder).status().expect("chown");
    if !done.success() {
        skipped("there is no user nobody");
    }
}
