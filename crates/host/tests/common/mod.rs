//! A small server to start and stop, and the programs of real ones.
#![expect(dead_code, reason = "each test file uses a part of this")]
#![expect(clippy::print_stdout, reason = "a skipped test says so")]

use engine::{Definition, ServerDef};
use host::server::{Budget, DataDir, Found, Server, ServerError, StartOptions, find_program};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

pub(crate) static GO_ON: AtomicBool = AtomicBool::new(false);

/// The toy: it keeps its arguments, listens by a child and ends cleanly on TERM.
const TOY: &str = r#"
echo "toy starts: $*"
echo "toy may see: $(env | cut -d= -f1 | sort | tr '\n' ' ')"
echo "toy adds a row" >>"$1/rows"
TOY_PORT=$2 "$TOY_LISTENER" --exact common::child_that_listens --nocapture &
child=$!
trap 'kill $child; echo "toy ends"; exit 0' TERM
wait $child
"#;

/// Not a test by itself: listens on the port of the environment until it is killed.
#[test]
fn child_that_listens() {
    let Some(port) = std::env::var_os("TOY_PORT") else { return };
    let port: u16 = port.to_str().unwrap().parse().unwrap();
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    for connection in listener.incoming() {
        drop(connection);
    }
}

/// A temporary folder that other users may enter (a database server may run as another).
pub(crate) fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    folder
}

/// A whole definition around a `[server]` section.
pub(crate) fn definition(name: &str, server: &str) -> ServerDef {
    let head = format!(
        "name = \"{name}\"\ntitle = \"For tests\"\nsummary = \"For tests.\"\nprotocol = \"fake\"\n\
         index = [{{ kind = \"hnsw\" }}]\n\
         capabilities = {{ metrics = [\"l2\"], elements = [\"f32\"], build_time = \"after_load\" }}\n"
    );
    Definition::parse(&format!("{head}{server}"), name).unwrap().server.unwrap()
}

/// A toy whose program is `script`, after it has told its version.
pub(crate) fn toy_of(top: &Path, script: &str, more: &str) -> (ServerDef, Found) {
    let program = top.join("toyd");
    let text = format!("#!/bin/sh\ncase $1 in --version) echo 'toy 1.0'; exit ;; esac\n{script}\n");
    std::fs::write(&program, text).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let server = format!(
        r#"
[server]
program = "toyd"
install = "nothing"
version = ["{{{{ program }}}}", "--version"]
start = ["{{{{ program }}}}", "{{{{ data }}}}", "{{{{ port }}}}"]
setting_argument = ["--{{{{ name }}}}={{{{ value }}}}"]
stop_signal = "TERM"
address = "toy://127.0.0.1:{{{{ port }}}}/"
environment = {{ TOY_LISTENER = "{}" }}
{more}
"#,
        std::env::current_exe().unwrap().display()
    );
    let def = definition("toy", &server);
    let found = find_program("toy", &def, Some(&program)).unwrap();
    (def, found)
}

pub(crate) fn toy(top: &Path) -> (ServerDef, Found) {
    toy_of(top, TOY, "[server.settings]\ncache = \"{{ memory_mib // 4 }}MB\"\nworkers = \"{{ cpus }}\"")
}

/// Private data and a log below `top`, and little memory.
pub(crate) fn options(top: &Path) -> StartOptions {
    StartOptions {
        budget: Budget { memory_bytes: Some(512 << 20), vectors_bytes: 8 << 20, rows: 1000, cpus: None },
        patience: Duration::from_secs(300),
        grace: Duration::from_secs(60),
        ..StartOptions::new(DataDir::PrivateBelow(top.join("run")), top.join("logs/server.log"))
    }
}

pub(crate) fn start(def: &ServerDef, found: &Found, options: &StartOptions) -> Result<Server, ServerError> {
    Server::start(def, found, options, &GO_ON)
}

pub(crate) fn log(top: &Path) -> String {
    std::fs::read_to_string(top.join("logs/server.log")).unwrap_or_default()
}

/// What lies in the folder for private data.
pub(crate) fn left_in(top: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(top.join("run")).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// Waits until `what` holds.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(180), "not within three minutes: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The numbers of all living processes whose command line or working folder is of `folder`.
pub(crate) fn processes_of(folder: &Path) -> Vec<u32> {
    let folder = folder.to_str().unwrap();
    let pids = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let works_in = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains(folder) || works_in.to_string_lossy().contains(folder)
    })
    .filter(|&pid| pid != std::process::id())
    .collect()
}

pub(crate) fn kill_9(pid: u32) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

/// A real server: its section and the program that the environment names.
pub(crate) struct Real {
    pub(crate) def: ServerDef,
    pub(crate) found: Found,
}

/// The server `name` (`pgvector`, `mariadb`); none, with a word, where the environment names no program.
pub(crate) fn real(name: &str) -> Option<Real> {
    let (variable, section) = match name {
        "pgvector" => ("ANNVIL_POSTGRES", include_str!("../../../../engines/pgvector.toml")),
        _ => ("ANNVIL_MARIADBD", include_str!("../../../../engines/mariadb.toml")),
    };
    let Some(program) = std::env::var_os(variable) else {
        let test = std::thread::current().name().unwrap_or("?").to_owned();
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{test}: {variable} names no server");
        println!("skipped {test}: {variable} names no server, run cargo xtask test");
        return None;
    };
    let def = Definition::parse(section, name).unwrap().server.unwrap();
    let found = find_program(name, &def, Some(Path::new(&program))).unwrap_or_else(|e| panic!("{e}"));
    Some(Real { def, found })
}

/// Asks a real server by the client program that lies beside it: the answer or the error.
pub(crate) fn ask(server: &Server, password: &str, sql: &str) -> Result<String, String> {
    let folder = server.found().program.parent().unwrap();
    let port = server.port().to_string();
    let mut command = if server.found().engine == "pgvector" {
        let mut psql = Command::new(folder.join("psql"));
        psql.args([
            "-X",
            "-A",
            "-t",
            "-h",
            "127.0.0.1",
            "-U",
            "postgres",
            "-p",
            &port,
            "-c",
            sql,
            "postgres",
        ]);
        psql.env("PGPASSWORD", password);
        psql
    } else {
        let mut client = Command::new(folder.join("mariadb"));
        client.args(["--no-defaults", "-N", "-h", "127.0.0.1", "-u", "root", "-P", &port, "-e", sql]);
        client.env("MYSQL_PWD", password);
        client
    };
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}
