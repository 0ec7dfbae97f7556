//! Nothing is left behind when the process that started a server is killed.

mod common;

use common::*;
use engine::ServerDef;
use host::server::{DataDir, Found, Server, StartOptions};
use rustix::process::{Pid, Signal, kill_process_group};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const WHICH: &str = "ANNVIL_TEST_STARTS";
const BELOW: &str = "ANNVIL_TEST_BELOW";
/// Makes the data for ever, by a child of its own.
const SLOW: &str = "[[server.initialise]]\nrun = [\"/bin/sh\", \"-c\", \"echo step; sleep 1000 & wait\"]";

fn which(name: &str, top: &Path) -> Option<(ServerDef, Found)> {
    match name {
        "toy" | "kept" => Some(toy(top)),
        "slow" => Some(toy_of(top, "exit 1", SLOW)),
        "stubborn" => Some(toy_of(
            top,
            "setsid sleep 1000 & trap '' TERM\nTOY_PORT=$2 exec \"$TOY_LISTENER\" --exact common::child_that_listens --nocapture",
            "",
        )),
        name => real(name).map(|real| (real.def, real.found)),
    }
}

/// Not a test by itself: starts the server that the environment names and waits to be killed.
#[test]
fn child_that_starts_a_server() {
    let Ok(name) = std::env::var(WHICH) else { return };
    let below = std::env::var(BELOW).unwrap();
    let top = Path::new(&below);
    let (def, found) = which(&name, top).unwrap();
    let mut options = options(top);
    if name == "kept" {
        options.data = DataDir::Kept(top.join("kept"));
    }
    if name == "stubborn" {
        options.grace = std::time::Duration::from_millis(300);
    }
    let server: Server = start(&def, &found, &options).unwrap();
    std::fs::write(top.join("started"), server.pid().to_string()).unwrap();
    loop {
        std::thread::park();
    }
}

/// Starts the child in a process group of its own, as a shell does.
fn parent(name: &str, top: &Path) -> Child {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_starts_a_server", "--nocapture"])
        .env(WHICH, name)
        .env(BELOW, top)
        .process_group(0)
        .stdout(Stdio::null())
        .spawn();
    child.unwrap()
}

/// Kills the child's process group with `signal`, as a terminal does with Ctrl-C, while a server
/// `name` runs.
fn killed(name: &str, signal: Signal, top: &Path) {
    let mut child = parent(name, top);
    until("the server has started", || {
        assert!(child.try_wait().unwrap().is_none(), "the child ended by itself");
        let ready = if name == "slow" { log(top).contains("step") } else { top.join("started").exists() };
        ready && processes_of(&top.join("run")).len() >= 2
    });
    let before = processes_of(&top.join("run"));
    assert_eq!(left_in(top).len(), 1, "its folder is there while it runs");
    kill_process_group(Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap(), signal).unwrap();
    child.wait().unwrap();
    until("the data are removed", || left_in(top).is_empty());
    until("no process is left", || processes_of(&top.join("run")).is_empty());
    until("none of those that ran", || before.iter().all(|&pid| dead(pid)));
}

fn dead(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .ok()
        .is_none_or(|stat| stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('Z')))
}

#[test]
fn a_toy_ends_cleanly_after_kill_9() {
    let top = folder();
    killed("toy", Signal::KILL, top.path());
    let text = log(top.path());
    assert!(
        text.contains("annvil: the process that started this server is gone") && text.contains("toy ends")
    );
}

#[test]
fn a_toy_ends_cleanly_after_ctrl_c() {
    let top = folder();
    killed("toy", Signal::INT, top.path());
    assert!(log(top.path()).contains("toy ends"), "it was stopped by its own signal, not by Ctrl-C");
}

/// The next start waits until the guard has stopped the server of the process that was killed.
#[test]
fn kept_data_can_be_used_again_at_once() {
    let top = folder();
    let mut child = parent("kept", top.path());
    until("the server has started", || top.path().join("started").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    let (def, found) = toy(top.path());
    let data = DataDir::Kept(top.path().join("kept"));
    let server = start(&def, &found, &StartOptions { data, ..options(top.path()) }).unwrap();
    let first = std::fs::read_to_string(top.path().join("started")).unwrap();
    assert!(dead(first.parse().unwrap()) && server.is_alive());
    assert!(server.stop().unwrap().clean);
    let rows = std::fs::read_to_string(top.path().join("kept/data/rows")).unwrap();
    assert_eq!(rows.lines().count(), 2);
}

#[test]
fn one_that_does_not_stop_is_killed_by_the_guard() {
    let top = folder();
    killed("stubborn", Signal::KILL, top.path());
}

#[test]
fn a_step_of_the_initialising_is_ended() {
    let top = folder();
    killed("slow", Signal::KILL, top.path());
}

#[test]
fn postgresql_and_its_children_end_after_kill_9() {
    let top = folder();
    if real("pgvector").is_some() {
        killed("pgvector", Signal::KILL, top.path());
        assert!(log(top.path()).contains("database system is shut down"), "{}", log(top.path()));
    }
}

#[test]
fn mariadb_ends_after_kill_9() {
    let top = folder();
    if real("mariadb").is_some() {
        killed("mariadb", Signal::KILL, top.path());
        assert!(log(top.path()).contains("Shutdown complete"), "{}", log(top.path()));
    }
}
