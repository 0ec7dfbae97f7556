//! What can't be brought about from outside: a port that is taken between looking and using.

use super::*;
use crate::server::{Budget, DataDir, find_program};
use engine::Definition;
use std::cell::Cell;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Not a test by itself: listens on the port of the environment, or fails where it is taken.
#[test]
fn child_that_listens() {
    let Some(port) = std::env::var_os("TOY_PORT") else { return };
    let port: u16 = port.to_str().unwrap().parse().unwrap();
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    for connection in listener.incoming() {
        drop(connection);
    }
}

fn toy(top: &Path) -> (ServerDef, Found) {
    let program = top.join("toyd");
    let text = "#!/bin/sh\n[ $1 = version ] && echo toy && exit\n\
                TOY_PORT=$1 exec \"$TOY\" --exact server::start::tests::child_that_listens --nocapture\n";
    std::fs::write(&program, text).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let definition = format!(
        r#"
name = "toy"
title = "Toy"
summary = "For tests."
protocol = "fake"
index = [{{ kind = "hnsw" }}]
capabilities = {{ metrics = ["l2"], elements = ["f32"], build_time = "after_load" }}
[server]
program = "toyd"
install = "nothing"
version = ["{{{{ program }}}}", "version"]
start = ["{{{{ program }}}}", "{{{{ port }}}}"]
stop_signal = "TERM"
address = "{{{{ port }}}}"
environment = {{ TOY = "{}" }}
"#,
        std::env::current_exe().unwrap().display()
    );
    let def = Definition::parse(&definition, "toy").unwrap().server.unwrap();
    let found = find_program("toy", &def, Some(&program)).unwrap();
    (def, found)
}

fn options(top: &Path) -> StartOptions {
    let budget = Budget { memory_bytes: Some(1 << 30), ..Budget::default() };
    StartOptions { budget, ..StartOptions::new(DataDir::PrivateBelow(top.join("run")), top.join("log")) }
}

#[test]
fn another_port_is_tried_where_one_was_taken_meanwhile() {
    let top = tempfile::tempdir().unwrap();
    let (def, found) = toy(top.path());
    let other = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let taken = other.local_addr().unwrap().port();
    let tries = Cell::new(0);
    let ports = || {
        tries.set(tries.get() + 1);
        if tries.get() < 3 { Ok(taken) } else { free_port() }
    };
    let server = start_on(&def, &found, &options(top.path()), &AtomicBool::new(false), ports).unwrap();
    assert_eq!(tries.get(), 3);
    assert!(server.port() != taken && server.address() == server.port().to_string());
}

/// The port of another program is not taken for the server's, and trying comes to an end.
#[test]
fn a_port_that_is_always_taken_ends_in_the_servers_own_words() {
    let top = tempfile::tempdir().unwrap();
    let (def, found) = toy(top.path());
    let other = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let taken = other.local_addr().unwrap().port();
    let tries = Cell::new(0);
    let ports = || {
        tries.set(tries.get() + 1);
        Ok(taken)
    };
    let error = start_on(&def, &found, &options(top.path()), &AtomicBool::new(false), ports).unwrap_err();
    assert!(matches!(error, ServerError::Died { .. }) && tries.get() == PORTS, "{error}");
    assert_eq!(std::fs::read_dir(top.path().join("run")).unwrap().count(), 0);
}
