//! Servers killed with SIGKILL while a run loads, builds or searches: the run says so, ends with code 5, and
//! goes on where it was once the server is back.

use crate::{
    servers::{
        Database, MariaDb, Own, Postgres, Product, clean, kill_9, open_scratch, processes, says, until, words,
    },
    support::{Done, Scratch, done},
};
use host::server::DataDir;
use serde_json::Value;
use std::{collections::BTreeSet, process::Child};

/// A server on a port and data of its own, which can be started again after it was killed.
struct Mortal {
    product: Product,
    folder: tempfile::TempDir,
    own: Option<Own>,
    port: u16,
}

impl Mortal {
    fn born(product: Product) -> Option<(Mortal, Database)> {
        let folder = tempfile::tempdir().expect("a folder");
        let open = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
        std::fs::set_permissions(folder.path(), open).expect("a folder of ours");
        let mut mortal = Mortal { product, folder, own: None, port: 0 };
        mortal.live(None)?;
        let own = mortal.own.as_ref()?;
        mortal.port = own.server.port();
        let database = own.database("mortal");
        Some((mortal, database))
    }

    fn live(&mut self, port: Option<u16>) -> Option<()> {
        let data = DataDir::Kept(self.folder.path().join("kept"));
        self.own = Some(Own::start_as(self.product, data, port, |_| ())?);
        Some(())
    }

    fn kill(&mut self) {
        kill_9(self.own.as_ref().expect("it lives").server.pid());
    }

    /// After a kill: what is left of it ends, and it starts again where it was.
    fn live_again(&mut self) {
        self.own = None;
        self.live(Some(self.port)).expect("the program is there still");
    }
}

/// Long enough to be killed in: rows one statement at a time, an index that takes its time, many efforts.
const SLOW: &[&str] = &["--limit", "600", "--load", "insert", "--effort", "10,20,40", "--clients", "1,2"];

/// Starts a run, kills the server when `now`, and gives what the run said.
fn killed_when(
    s: &Scratch,
    mortal: &mut Mortal,
    database: &Database,
    m: &str,
    now: impl Fn() -> bool,
) -> Done {
    // Else the points of the run before are there at once.
    if s.path().join("r").exists() {
        std::fs::remove_dir_all(s.path().join("r")).expect("a folder of ours");
    }
    let (at, m) = (database.at(), format!("m={m}"));
    let more = [SLOW, &["--batch", "1", "--param", &m]].concat();
    let mut child = database.spawn(s, &words(database.product.engine(), Some(&at), "r", &more));
    until("the moment", || runs_on(&mut child).then(|| now().then_some(())).flatten());
    mortal.kill();
    done(child.wait_with_output().expect("it ends"))
}

/// Fails where a run is through before its moment came.
fn runs_on(child: &mut Child) -> bool {
    assert!(child.try_wait().expect("it can be asked").is_none(), "the run ended too soon");
    true
}

/// Code 5, the server's end in words, and no figure for what was not measured.
fn ended_by_the_kill(s: &Scratch, done: &Done, engine: &str, phase: &str) {
    assert_eq!(done.code, Some(5), "{phase}\n{}\n{}", done.out, done.err);
    let error = done.err.lines().find(|l| l.starts_with("error: ")).unwrap_or_default();
    says(error, &[engine, "127.0.0.1:"]);
    let words =
        ["closed the connection", "connection broke", "no server answers", "shutting down", "terminating"];
    assert!(words.iter().any(|w| error.contains(w)), "{phase}: {error}");
    let failed: Vec<Value> = s.points("r").into_iter().filter(|p| p["status"] != "valid").collect();
    assert!(!failed.is_empty(), "{phase}: every point is valid");
    for point in &failed {
        assert_eq!(
            (&point["status"], &point["code"]),
            (&"failed".into(), &"unreachable".into()),
            "{phase}: {point}"
        );
        assert!(point["throughput"].is_null() && point["recall"].is_null(), "{phase}: {point}");
    }
    let first = &failed[0]["phase"];
    assert_eq!(first, phase, "the first point that failed: {}", failed[0]);
    assert_eq!(s.manifest("r")["verdict"]["valid"], false);
}

/// Goes on: every point valid, those from before kept, none twice.
fn goes_on(s: &Scratch, resumed: &Done) {
    assert_eq!(resumed.code, Some(0), "{}\n{}", resumed.out, resumed.err);
    let valid: Vec<Value> = s.points("r").into_iter().filter(|p| p["status"] == "valid").collect();
    let keys: BTreeSet<&str> = valid.iter().filter_map(|p| p["key"].as_str()).collect();
    assert_eq!((valid.len(), keys.len()), (8, 8), "load, build and six points, each once");
    assert_eq!(s.manifest("r")["verdict"]["valid"], true);
}

const RESUME: [&str; 5] = ["run", "--resume", "--out", "r", "--quiet"];

fn killed_in_every_phase(product: Product, building: &str, heavy: &str) {
    let Some((mut mortal, database)) = Mortal::born(product) else { return };
    let (s, engine) = (Scratch::new(), product.engine());
    let rows = || database.try_sql("SELECT count(*) FROM annvil_builtin").unwrap_or_default();
    let some = || rows().first().and_then(|n| n.parse::<u64>().ok()).is_some_and(|n| n > 0);
    let done = killed_when(&s, &mut mortal, &database, "16", some);
    ended_by_the_kill(&s, &done, engine, "load");
    mortal.live_again();
    goes_on(&s, &database.annvil(&s, &RESUME));

    let builds = || database.try_sql(building).is_ok_and(|rows| !rows.is_empty());
    let done = killed_when(&s, &mut mortal, &database, heavy, builds);
    ended_by_the_kill(&s, &done, engine, "build");
    mortal.live_again();
    goes_on(&s, &database.annvil(&s, &RESUME));

    let done = killed_when(&s, &mut mortal, &database, "16", || !s.sweep("r").is_empty());
    ended_by_the_kill(&s, &done, engine, "sweep");
    let kept = s.points("r").into_iter().filter(|p| p["status"] == "valid").count();
    assert!((3..8).contains(&kept), "{kept} points were finished before the kill");
    mortal.live_again();
    goes_on(&s, &database.annvil(&s, &RESUME));
    let again = s.sweep("r").iter().filter(|p| p["flags"].to_string().contains("rebuilt")).count();
    assert_eq!(again, 8 - kept, "those measured on an index built anew are marked");
    assert_eq!(database.tables(), Vec::<String>::new());
}

#[test]
fn postgresql_killed_during_load_build_and_sweep() {
    killed_in_every_phase(Postgres, "SELECT pid FROM pg_stat_progress_create_index", "64");
}

#[test]
fn mariadb_killed_during_load_build_and_sweep() {
    let building = "SELECT id FROM information_schema.processlist WHERE info LIKE 'ALTER TABLE annvil%'";
    killed_in_every_phase(MariaDb, building, "48");
}

/// A server that annvil started itself: its end and last words stand in the message, nothing of it is left,
/// and a resumed run starts another.
#[test]
fn a_server_of_annvils_own_killed_during_a_sweep() {
    for product in [Postgres, MariaDb] {
        let Some(program) = product.program_option() else { continue };
        let s = open_scratch();
        let more = [SLOW, &["--batch", "100", "--program", &program, "--server-memory", "600MB"]].concat();
        let mut command = clean(&s, &words(product.engine(), None, "r", &more));
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let mut child = command.spawn().expect("annvil starts");
        until("a point", || runs_on(&mut child).then(|| (!s.sweep("r").is_empty()).then_some(())).flatten());
        kill_9(server_of(&s));
        let done = done(child.wait_with_output().expect("it ends"));
        assert_eq!(done.code, Some(5), "{}\n{}", done.out, done.err);
        says(&done.err, &["error: ", product.engine(), "the server ", "signal 9", ".log"]);
        assert_eq!(processes(&s.path().display().to_string()), []);
        nothing_left(&s);
        goes_on(&s, &crate::support::done(clean(&s, &RESUME).output().expect("annvil starts")));
        assert_eq!(processes(&s.path().display().to_string()), []);
        nothing_left(&s);
    }
}

/// The server itself: it and its guard, a shell, name the scratch folder in their command lines.
fn server_of(s: &Scratch) -> u32 {
    let ours = processes(&s.path().display().to_string());
    let is_server = |line: &str| !line.starts_with("/bin/sh");
    ours.iter().find(|(_, line)| is_server(line)).map(|(pid, _)| *pid).unwrap_or_else(|| panic!("{ours:?}"))
}

fn nothing_left(s: &Scratch) {
    let entries = std::fs::read_dir(s.path().join("r")).expect("the run").filter_map(Result::ok);
    let names: Vec<String> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    assert!(!names.iter().any(|n| n.starts_with("server-")), "{names:?}");
}
