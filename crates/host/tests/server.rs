//! Starting and stopping, with a toy in place of a database.

mod common;

use common::*;
use host::server::{DataDir, Placement, Server, ServerError};
use host::{ProcessSample, Scope};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

#[test]
fn a_server_is_started_with_its_settings_and_stopped_with_nothing_left() {
    let top = folder();
    let (def, found) = toy(top.path());
    let server = start(&def, &found, &options(top.path())).unwrap();
    TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    assert_eq!(server.address(), format!("toy://127.0.0.1:{}/", server.port()));
    assert!(server.password().is_none() && server.is_alive() && server.ending().is_none());
    let cpus = server.granted().cpus;
    let pairs = [("cache".into(), "128MB".into()), ("workers".into(), cpus.to_string())];
    assert_eq!((server.settings(), &server.granted().placement), (&pairs[..], &Placement::Shared));
    let text = log(top.path());
    assert!(text.contains(&format!("{} --cache=128MB --workers={cpus}", server.port())), "{text}");
    let seen = ProcessSample::read(server.pid(), Scope::Tree).unwrap();
    assert!(seen.processes >= 2, "the toy and its child, not the guard: {seen:?}");
    assert!(
        left_in(top.path()).len() == 1 && server.folder().starts_with(top.path().canonicalize().unwrap())
    );
    let stopped = server.stop().unwrap();
    assert!(stopped.clean && stopped.ending.unwrap().code == Some(0), "{stopped:?}");
    assert_eq!((left_in(top.path()), processes_of(top.path())), (vec![], vec![]));
    assert!(log(top.path()).contains("toy ends"));
}

#[test]
fn dropping_a_server_stops_it() {
    let top = folder();
    let (def, found) = toy(top.path());
    drop(start(&def, &found, &options(top.path())).unwrap());
    assert_eq!((left_in(top.path()), processes_of(top.path())), (vec![], vec![]));
    assert!(log(top.path()).contains("toy ends"), "cleanly");
}

/// A password of ours must not reach a program that we do not know.
#[test]
fn a_server_sees_little_of_our_environment() {
    let top = folder();
    let (def, found) = toy(top.path());
    assert!(std::env::vars().any(|(name, _)| name == "CARGO_MANIFEST_DIR"), "which is set for each test");
    drop(start(&def, &found, &options(top.path())).unwrap());
    let text = log(top.path());
    let seen = text.lines().find_map(|line| line.strip_prefix("toy may see: ")).unwrap();
    assert!(seen.contains("LC_ALL ") && seen.contains("TOY_LISTENER") && !seen.contains("CARGO"), "{seen}");
}

#[test]
fn several_servers_run_side_by_side_on_ports_and_data_of_their_own() {
    let top = folder();
    let (def, found) = toy(top.path());
    let (one, two) = (start(&def, &found, &options(top.path())), start(&def, &found, &options(top.path())));
    let (one, two) = (one.unwrap(), two.unwrap());
    assert!(one.port() != two.port() && one.folder() != two.folder() && one.pid() != two.pid());
    one.stop().unwrap();
    assert!(two.is_alive() && TcpStream::connect(("127.0.0.1", two.port())).is_ok());
}

#[test]
fn kept_data_are_there_the_next_time() {
    let top = folder();
    let (def, found) = toy(top.path());
    let data = DataDir::Kept(top.path().join("kept"));
    let options = host::server::StartOptions { data, ..options(top.path()) };
    for rows in 1..=2 {
        let server = start(&def, &found, &options).unwrap();
        let second =
            start(&def, &found, &host::server::StartOptions { grace: Duration::ZERO, ..options.clone() });
        assert!(matches!(&second, Err(ServerError::Data { reason, .. }) if reason.contains("runs on it")));
        server.stop().unwrap();
        let text = std::fs::read_to_string(top.path().join("kept/data/rows")).unwrap();
        assert_eq!(text.lines().count(), rows);
    }
}

#[test]
fn a_server_that_dies_at_start_is_told_with_its_last_words() {
    let top = folder();
    let script = "echo 'LOG: begin'; echo 'FATAL: no such setting' >&2; exit 3";
    let (def, found) = toy_of(top.path(), script, "");
    let error = start(&def, &found, &options(top.path())).unwrap_err().to_string();
    let expected = format!(
        "toy: the server {} ended with code 3 while it started; its last words: FATAL: no such setting (log: {})",
        found.program.display(),
        top.path().canonicalize().unwrap().join("logs/server.log").display()
    );
    assert_eq!(error, expected);
    assert_eq!((left_in(top.path()), processes_of(top.path())), (vec![], vec![]));
}

#[test]
fn a_server_that_never_listens_is_given_up() {
    let top = folder();
    let (def, found) = toy_of(top.path(), "sleep 1000 & wait", "");
    let patience = Duration::from_millis(300);
    let begin = Instant::now();
    let options = host::server::StartOptions { patience, ..options(top.path()) };
    let error = start(&def, &found, &options).unwrap_err();
    assert!(matches!(error, ServerError::Silent { .. }), "{error}");
    assert!(begin.elapsed() >= patience);
    assert!(error.to_string().contains("it said nothing (log: "), "{error}");
    assert_eq!((left_in(top.path()), processes_of(top.path())), (vec![], vec![]));
}

#[test]
fn a_stop_ends_the_start() {
    let top = folder();
    let (def, found) = toy_of(top.path(), "sleep 1000 & wait", "");
    let stop = AtomicBool::new(true);
    let error = Server::start(&def, &found, &options(top.path()), &stop).unwrap_err();
    assert!(matches!(error, ServerError::Stopped { .. }), "{error}");
    assert_eq!((left_in(top.path()), processes_of(top.path())), (vec![], vec![]));
}

#[test]
fn a_port_that_was_asked_for_is_used_or_said_to_be_taken() {
    let top = folder();
    let (def, found) = toy(top.path());
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let options = host::server::StartOptions { port: Some(port), ..options(top.path()) };
    let error = start(&def, &found, &options).unwrap_err();
    assert!(matches!(error, ServerError::PortTaken { port: p, .. } if p == port), "{error}");
    assert_eq!(left_in(top.path()).len(), 0);
    drop(listener);
    assert_eq!(start(&def, &found, &options).unwrap().port(), port);
}

#[test]
fn a_server_that_is_killed_says_so() {
    let top = folder();
    let (def, found) = toy(top.path());
    let server = start(&def, &found, &options(top.path())).unwrap();
    kill_9(server.pid());
    until("the server is seen to be dead", || !server.is_alive());
    let ending = server.ending().unwrap();
    assert_eq!((ending.code, ending.signal), (None, Some(9)));
    assert!(ending.to_string().starts_with("was killed by signal 9 (KILL)"), "{ending}");
    let stopped = server.stop().unwrap();
    assert!(!stopped.clean && stopped.ending == Some(ending));
    // Its child, which had to be killed, was of its group.
    assert_eq!((left_in(top.path()), processes_of(top.path())), (vec![], vec![]));
}

#[test]
fn a_server_that_does_not_stop_is_killed_with_its_children() {
    let top = folder();
    // A child in a session of its own, as those of PostgreSQL are.
    let script = "setsid sleep 1000 & trap '' TERM\n\
                  TOY_PORT=$2 exec \"$TOY_LISTENER\" --exact common::child_that_listens --nocapture";
    let (def, found) = toy_of(top.path(), script, "");
    let options = host::server::StartOptions { grace: Duration::from_millis(200), ..options(top.path()) };
    let server = start(&def, &found, &options).unwrap();
    assert!(processes_of(server.folder()).len() >= 2);
    let stopped = server.stop().unwrap();
    assert!(!stopped.clean && stopped.ending.unwrap().signal == Some(9), "{stopped:?}");
    until("no process is left", || processes_of(top.path()).is_empty());
    assert_eq!(left_in(top.path()).len(), 0);
}

/// Someone killed the guard: the server can be stopped all the same.
#[test]
fn a_server_whose_guard_was_killed_is_stopped() {
    let top = folder();
    let (def, found) = toy(top.path());
    let server = start(&def, &found, &options(top.path())).unwrap();
    let guards: Vec<u32> = processes_of(server.folder())
        .into_iter()
        .filter(|pid| {
            std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap().contains("annvil-guard")
        })
        .collect();
    assert_eq!(guards.len(), 1);
    kill_9(guards[0]);
    assert!(server.stop().unwrap().clean);
    assert_eq!((left_in(top.path()), processes_of(top.path())), (vec![], vec![]));
}

#[test]
fn a_step_gets_its_input_and_a_failing_one_is_told() {
    let top = folder();
    let more = r#"
[[server.initialise]]
run = ["/bin/sh", "-c", "cat >\"$1/input\"; cat \"$2\" >\"$1/password\"; ls -l \"$2\"", "init", "{{ data }}", "{{ password_file }}"]
input = ["first  line", { file = "{{ program }}" }, "password {{ password }}"]
[[server.initialise]]
run = ["/bin/sh", "-c", "test -e \"$1/fail\" || cp -r \"$1\" \"$1/../../copy\"", "init", "{{ data }}"]
"#;
    let (def, found) = toy_of(top.path(), "exit 1", more);
    let error = start(&def, &found, &options(top.path())).unwrap_err();
    assert!(matches!(error, ServerError::Died { .. }), "the steps went well: {error}");
    let copy = |name: &str| std::fs::read_to_string(top.path().join("run/copy").join(name)).unwrap();
    let program = std::fs::read_to_string(&found.program).unwrap();
    let password = copy("password").trim().to_owned();
    assert_eq!(copy("input"), format!("first  line\n{program}\npassword {password}\n"));
    assert!(password.len() == 32 && log(top.path()).contains("-rw------- "), "{}", log(top.path()));
    assert!(!log(top.path()).contains(&password));

    let more = "[[server.initialise]]\nrun = [\"/bin/sh\", \"-c\", \"echo error: the disk is full; exit 4\"]";
    let (def, found) = toy_of(top.path(), "exit 1", more);
    let error = start(&def, &found, &options(top.path())).unwrap_err().to_string();
    let words = "making the data folder failed: /bin/sh ended with code 4; its last words: error: the disk is full (log: ";
    assert!(error.contains(words), "{error}");
    let more = "[[server.initialise]]\nrun = [\"{{ folder }}/inittoy\"]";
    let (def, found) = toy_of(top.path(), "exit 1", more);
    let error = start(&def, &found, &options(top.path())).unwrap_err().to_string();
    assert!(error.contains("inittoy ended with code 127") && error.contains("not found"), "{error}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_server_is_pinned_to_the_first_processors_where_there_are_enough() {
    let top = folder();
    let (def, found) = toy(top.path());
    let mut options = options(top.path());
    options.budget.cpus = std::num::NonZeroU32::new(1);
    let server = start(&def, &found, &options).unwrap();
    let list = |pid: u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim().to_owned()
    };
    match &server.granted().placement {
        Placement::Apart { server: own, client } => {
            assert_eq!((own.len(), list(server.pid())), (1, own[0].to_string()));
            assert!(!client.is_empty() && !client.contains(&own[0]));
            assert_ne!(list(std::process::id()), list(server.pid()), "we are not pinned");
        }
        Placement::TooFew { asked: 1, usable: 1 } => assert_eq!(list(server.pid()), list(std::process::id())),
        other => panic!("{other:?}"),
    }
    assert_eq!(server.settings()[1], ("workers".to_owned(), "1".to_owned()));
}
