//! Real servers for the tests, databases on them, and `annvil` pointed at them.

use crate::support::{Done, Scratch, done};
use engine::{Definition, ServerDef};
use host::server::{Budget, DataDir, Found, Server, StartOptions, find_program};
use mysql::prelude::Queryable;
use serde_json::Value;
use std::{
    fs::Permissions,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{OnceLock, atomic::AtomicBool},
    thread,
    time::{Duration, Instant},
};

pub(crate) use Product::{MariaDb, Postgres};

static GO_ON: AtomicBool = AtomicBool::new(false);

/// One of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Product {
    Postgres,
    MariaDb,
}

impl Product {
    /// The engine's name on the command line.
    pub(crate) fn engine(self) -> &'static str {
        match self {
            Postgres => "pgvector",
            MariaDb => "mariadb",
        }
    }

    /// The user with every right, as the definition has it.
    pub(crate) fn admin(self) -> &'static str {
        match self {
            Postgres => "postgres",
            MariaDb => "root",
        }
    }

    pub(crate) fn scheme(self) -> &'static str {
        match self {
            Postgres => "postgres",
            MariaDb => "mysql",
        }
    }

    /// The definition file.
    pub(crate) fn toml(self) -> &'static str {
        match self {
            Postgres => include_str!("../../../../engines/pgvector.toml"),
            MariaDb => include_str!("../../../../engines/mariadb.toml"),
        }
    }

    /// The program that the environment names; none, with a word, where it names none.
    pub(crate) fn program(self) -> Option<PathBuf> {
        let variable = match self {
            Postgres => "ANNVIL_POSTGRES",
            MariaDb => "ANNVIL_MARIADBD",
        };
        let program = std::env::var_os(variable).map(PathBuf::from);
        if program.is_none() {
            skipped(&format!("{variable} names no server, run cargo xtask servers"));
        }
        program
    }

    /// `--program` of this product.
    pub(crate) fn program_option(self) -> Option<String> {
        Some(format!("{}={}", self.engine(), self.program()?.display()))
    }
}

/// Says by name that a test is skipped; in CI that is a failure.
pub(crate) fn skipped(why: &str) {
    let test = thread::current().name().unwrap_or("a test").to_owned();
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{test}: {why}");
    passed_over(why);
}

/// The same for what a machine may lack without a fault of ours, such as the right to mount.
pub(crate) fn passed_over(why: &str) {
    let test = thread::current().name().unwrap_or("a test").to_owned();
    // Not caught by the harness, so that it shows.
    std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("skipped {test}: {why}\n"))
        .expect("standard error");
}

/// A server of a test's own.
pub(crate) struct Own {
    pub(crate) product: Product,
    pub(crate) server: Server,
}

impl Own {
    /// Starts one with its data below `below`. `change` makes the definition's server section another.
    pub(crate) fn start_as(
        product: Product,
        data: DataDir,
        port: Option<u16>,
        change: impl FnOnce(&mut ServerDef),
    ) -> Option<Own> {
        let program = product.program()?;
        let definition = Definition::parse(product.toml(), product.engine()).expect("a definition built in");
        let mut def = definition.server.expect("a server");
        change(&mut def);
        let name = product.engine();
        let found: Found = find_program(name, &def, Some(&program)).unwrap_or_else(|e| panic!("{e}"));
        let log = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.log"));
        let budget =
            Budget { memory_bytes: Some(512 << 20), vectors_bytes: 16 << 20, rows: 10_000, cpus: None };
        let options = StartOptions { budget, port, ..StartOptions::new(data, log) };
        let server = Server::start(&def, &found, &options, &GO_ON).unwrap_or_else(|e| panic!("{e}"));
        Some(Own { product, server })
    }

    /// Starts one in a folder for temporary files.
    pub(crate) fn start(product: Product) -> Option<Own> {
        Own::start_as(product, DataDir::PrivateBelow(std::env::temp_dir()), None, |_| ())
    }

    /// A new database of this server, with nothing in it.
    pub(crate) fn database(&self, name: &str) -> Database {
        let password = self.server.password().expect("a password").reveal().to_owned();
        let database = Database {
            product: self.product,
            port: self.server.port(),
            user: self.product.admin().to_owned(),
            password,
            name: name.to_owned(),
        };
        let first = if self.product == Postgres { "postgres" } else { "annvil" };
        Database { name: first.to_owned(), ..database.clone() }.sql(&format!("CREATE DATABASE {name}"));
        database
    }
}

/// The server that all tests share. It is stopped, and its data go, by its guard when this process ends.
fn shared(product: Product) -> Option<&'static Own> {
    static POSTGRES: OnceLock<Option<Own>> = OnceLock::new();
    static MARIADB: OnceLock<Option<Own>> = OnceLock::new();
    let slot = match product {
        Postgres => &POSTGRES,
        MariaDb => &MARIADB,
    };
    slot.get_or_init(|| Own::start(product)).as_ref()
}

/// A database on the shared server, of the test that names it.
pub(crate) fn database(product: Product, name: &str) -> Option<Database> {
    // Asked each time, so that each test that must do without says so.
    product.program()?;
    Some(shared(product)?.database(name))
}

/// A database, and who comes in.
#[derive(Clone, Debug)]
pub(crate) struct Database {
    pub(crate) product: Product,
    pub(crate) port: u16,
    pub(crate) user: String,
    pub(crate) password: String,
    pub(crate) name: String,
}

impl Database {
    /// The address without the password.
    pub(crate) fn at(&self) -> String {
        let Database { product, port, user, name, .. } = self;
        format!("{}://{user}@127.0.0.1:{port}/{name}", product.scheme())
    }

    /// The same for someone else.
    pub(crate) fn of(&self, user: &str, password: &str) -> Database {
        Database { user: user.to_owned(), password: password.to_owned(), ..self.clone() }
    }

    /// Runs statements: the first column of the last one's rows.
    pub(crate) fn sql(&self, text: &str) -> Vec<String> {
        self.try_sql(text).unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    /// The same where it may fail.
    pub(crate) fn try_sql(&self, text: &str) -> Result<Vec<String>, String> {
        match self.product {
            Postgres => {
                let program = self.product.program().expect("its server runs");
                let mut psql = std::process::Command::new(program.with_file_name("psql"));
                psql.args([
                    "-X",
                    "-A",
                    "-t",
                    "-q",
                    "-P",
                    "null=NULL",
                    "-v",
                    "ON_ERROR_STOP=1",
                    "-h",
                    "127.0.0.1",
                ]);
                psql.args(["-p", &self.port.to_string(), "-U", &self.user, "-d", &self.name, "-c", text]);
                let done = psql.env("PGPASSWORD", &self.password).output().map_err(|e| e.to_string())?;
                if !done.status.success() {
                    return Err(String::from_utf8_lossy(&done.stderr).into_owned());
                }
                let first = |line: &str| line.split('|').next().unwrap_or_default().to_owned();
                Ok(String::from_utf8_lossy(&done.stdout).lines().map(first).collect())
            }
            MariaDb => {
                let options = mysql::OptsBuilder::new()
                    .ip_or_hostname(Some("127.0.0.1"))
                    .tcp_port(self.port)
                    .user(Some(&self.user))
                    .pass(Some(&self.password))
                    .db_name(Some(&self.name))
                    .prefer_socket(false);
                let mut client = mysql::Conn::new(options).map_err(|e| e.to_string())?;
                let mut last = Vec::new();
                for statement in text.split(';').filter(|s| !s.trim().is_empty()) {
                    let rows: Vec<mysql::Row> = client.query(statement).map_err(|e| e.to_string())?;
                    let text = |row: mysql::Row| mysql::from_value::<String>(row[0].clone());
                    last = rows.into_iter().map(text).collect();
                }
                Ok(last)
            }
        }
    }

    /// `annvil` with the password in the environment.
    pub(crate) fn annvil(&self, s: &Scratch, args: &[&str]) -> Done {
        let mut command = clean(s, args);
        command.env("ANNVIL_PASSWORD", &self.password);
        done(command.output().expect("annvil starts"))
    }

    /// `annvil run` of this engine on the first rows of the built-in set, into `out`.
    pub(crate) fn run(&self, s: &Scratch, out: &str, more: &[&str]) -> Done {
        self.annvil(s, &words(self.product.engine(), Some(&self.at()), out, more))
    }

    /// The same, started and left to itself.
    pub(crate) fn spawn(&self, s: &Scratch, args: &[&str]) -> Child {
        let mut command = clean(s, args);
        command.env("ANNVIL_PASSWORD", &self.password);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("annvil starts")
    }

    /// Tables of our name in the database.
    pub(crate) fn tables(&self) -> Vec<String> {
        let schema = if self.product == Postgres { "'public'" } else { "DATABASE()" };
        self.sql(&format!("SELECT table_name FROM information_schema.tables WHERE table_schema = {schema}"))
    }
}

/// `annvil` without a password or a password file of whoever runs the tests.
pub(crate) fn clean(s: &Scratch, args: &[&str]) -> Command {
    let mut command = s.command(args);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("ANNVIL_PASSWORD") {
            command.env_remove(name);
        }
    }
    for name in ["PGPASSWORD", "PGPASSFILE", "MYSQL_PWD"] {
        command.env_remove(name);
    }
    command.env("HOME", s.path());
    command
}

/// The words of a run as short as one can be: 500 rows of the built-in set, one effort.
pub(crate) fn words<'a>(
    engine: &'a str,
    at: Option<&'a str>,
    out: &'a str,
    more: &[&'a str],
) -> Vec<&'a str> {
    let mut words = vec!["run", "--engine", engine];
    if let Some(at) = at {
        words.extend(["--at", at]);
    }
    words.extend(["--out", out, "--no-report", "--quiet"]);
    let short = [
        ["--limit", "500"],
        ["--effort", "10"],
        ["--repeats", "2"],
        ["--warmup", "5"],
        ["--min-window", "1ms"],
        ["--build-threads", "1"],
    ];
    for pair in short {
        let whole = pair[0] == "--limit" && more.contains(&"--dataset");
        if !more.contains(&pair[0]) && !whole {
            words.extend(pair);
        }
    }
    words.extend(more);
    words
}

/// A scratch folder that the server's user may enter.
pub(crate) fn open_scratch() -> Scratch {
    let s = Scratch::new();
    std::fs::set_permissions(s.path(), Permissions::from_mode(0o755)).expect("a folder of ours");
    s
}

/// The point of a phase, of an engine.
pub(crate) fn point(s: &Scratch, run: &str, engine: &str, phase: &str) -> Value {
    let of = |p: &Value| p["phase"] == phase && p["engine"].as_str().is_some_and(|e| e.starts_with(engine));
    let found = s.points(run).into_iter().rev().find(of);
    found.unwrap_or_else(|| panic!("{run} has no {phase} of {engine}"))
}

/// The manifest's section of an engine.
pub(crate) fn section(s: &Scratch, run: &str, engine: &str) -> Value {
    let manifest = s.manifest(run);
    let engines = manifest["engines"].as_object().expect("engines");
    let found = engines.iter().find(|(name, _)| name.starts_with(engine)).map(|(_, entry)| entry.clone());
    found.unwrap_or_else(|| panic!("{run} has no {engine}"))
}

/// Waits until `holds` gives something.
pub(crate) fn until<T>(what: &str, mut holds: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = holds() {
            return found;
        }
        assert!(begin.elapsed() < Duration::from_secs(90), "not within 90 s: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// The living processes whose command line holds `part`, by number.
pub(crate) fn processes(part: &str) -> Vec<(u32, String)> {
    let entries = std::fs::read_dir("/proc").expect("a proc file system").filter_map(Result::ok);
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let line = |pid: u32| {
        let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let text = String::from_utf8_lossy(&bytes).replace('\0', " ");
        text.contains(part).then_some((pid, text))
    };
    pids.filter_map(line).filter(|(pid, _)| *pid != std::process::id()).collect()
}

/// Kills a process as no server expects it.
pub(crate) fn kill_9(pid: u32) {
    let status = Command::new("kill").args(["-KILL", &pid.to_string()]).status().expect("kill");
    assert!(status.success(), "{pid} was gone before it was killed");
}

/// Fails unless `text` holds every part.
#[track_caller]
pub(crate) fn says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
}
