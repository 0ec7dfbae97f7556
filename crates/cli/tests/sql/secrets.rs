//! cases.md 115: passwords come from the environment, a file or the address, and stay in the process: none in
//! the run directory, in what is printed, or in the command line of a process that annvil starts.

use crate::{
    cases::has_flag,
    servers::{
        Database, MariaDb, Postgres, Product, clean, database, open_scratch, point, processes, says, until,
        words,
    },
    support::{Done, Scratch, done},
};
use std::{
    fs::Permissions,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// A password that must be encoded in an address, and how it stands there.
const PASSWORD: &str = "s3cr3t/Hunter@2";
const ENCODED: &str = "s3cr3t%2FHunter%402";
/// What would betray it in any form.
const TELLTALE: [&str; 2] = ["s3cr3t", "Hunter"];

/// A database with a user of that password.
fn with_user(product: Product, name: &str) -> Option<Database> {
    let database = database(product, name)?;
    match product {
        Postgres => database.sql(&format!(
            "CREATE EXTENSION vector; CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}'; GRANT CREATE ON SCHEMA public TO {name}"
        )),
        MariaDb => {
            database.sql(&format!("CREATE USER {name} IDENTIFIED BY '{PASSWORD}'; GRANT ALL ON {name}.* TO {name}"))
        }
    };
    Some(database.of(name, PASSWORD))
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
        let path = entry.path();
        if path.is_dir() { found.extend(files_below(&path)) } else { found.push(path) }
    }
    found
}

fn holds(bytes: &[u8], word: &str) -> bool {
    bytes.windows(word.len()).any(|w| w == word.as_bytes())
}

/// Neither in what was printed nor in any file of the run.
fn kept_secret(s: &Scratch, done: &Done, telltale: &[&str]) {
    let files = files_below(&s.path().join("r"));
    for word in telltale {
        assert!(!done.out.contains(word) && !done.err.contains(word), "{}\n{}", done.out, done.err);
        for file in &files {
            let bytes = std::fs::read(file).expect("a file of the run");
            assert!(!holds(&bytes, word), "{} holds the password", file.display());
        }
    }
}

/// A run with its report, to its end.
fn whole(mut command: Command, s: &Scratch) -> Done {
    let done = done(command.output().expect("annvil starts"));
    assert_eq!(done.code, Some(0), "{}\n{}", done.out, done.err);
    assert!(files_below(&s.path().join("r")).len() > 5, "no report was written");
    done
}

/// The words of a run that also writes its report and talks.
fn talking<'a>(engine: &'a str, at: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let words = words(engine, Some(at), "r", more);
    words.into_iter().filter(|w| !["--no-report", "--quiet"].contains(w)).collect()
}

fn every_way_in(product: Product, variables: [&str; 3], file: &str, line: &str) {
    let Some(user) = with_user(product, "secretive") else { return };
    let (engine, at) = (product.engine(), user.at());
    for name in variables {
        let s = Scratch::new();
        let mut command = clean(&s, &talking(engine, &at, &[]));
        command.env(name, PASSWORD);
        kept_secret(&s, &whole(command, &s), &TELLTALE);
    }
    let s = Scratch::new();
    s.write("password.txt", &format!("{PASSWORD}\nthe second line is nothing\n"));
    let command = clean(&s, &talking(engine, &at, &["--password-file", "password.txt"]));
    kept_secret(&s, &whole(command, &s), &TELLTALE);
    // The clients' own files, which others must not be able to read.
    let s = Scratch::new();
    let path = s.write(file, line);
    std::fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("a file of ours");
    kept_secret(&s, &whole(clean(&s, &talking(engine, &at, &[])), &s), &TELLTALE);
    std::fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("a file of ours");
    let open = done(clean(&s, &words(engine, Some(&at), "open", &[])).output().expect("annvil starts"));
    assert_eq!(open.code, Some(5), "a password file that others can read was used: {}", open.err);
    in_the_address(&user);
}

/// In the address it is masked wherever the address is kept; a run resumed by its plan takes it from elsewhere.
fn in_the_address(user: &Database) {
    let s = Scratch::new();
    let at = user.at().replacen('@', &format!(":{ENCODED}@"), 1);
    let done = whole(clean(&s, &talking(user.product.engine(), &at, &[])), &s);
    kept_secret(&s, &done, &TELLTALE);
    let manifest = std::fs::read_to_string(s.path().join("r/manifest.json")).expect("a manifest");
    says(&manifest, &["secretive:***@127.0.0.1"]);
    let more = ["run", "--resume", "--out", "r", "--effort", "10,20", "--no-report", "--quiet"];
    let without = crate::support::done(clean(&s, &more).output().expect("annvil starts"));
    assert_eq!(without.code, Some(5), "{}\n{}", without.out, without.err);
    let resumed = user.annvil(&s, &more);
    assert_eq!(resumed.code, Some(0), "{}\n{}", resumed.out, resumed.err);
    let sweep: Vec<_> = s.sweep("r").into_iter().filter(|p| p["status"] == "valid").collect();
    let efforts: Vec<u64> = sweep.iter().filter_map(|p| p["effort"].as_u64()).collect();
    assert_eq!(efforts, [10, 20], "the first point is kept, the second is new");
    assert!(!has_flag(&sweep[0], "rebuilt") && has_flag(&sweep[1], "rebuilt"), "{sweep:?}");
    kept_secret(&s, &resumed, &TELLTALE);
}

#[test]
fn case_115_a_postgresql_password_stays_secret_however_it_is_given() {
    let variables = ["ANNVIL_PASSWORD", "ANNVIL_PASSWORD_PGVECTOR", "PGPASSWORD"];
    every_way_in(Postgres, variables, ".pgpass", &format!("127.0.0.1:*:secretive:secretive:{PASSWORD}\n"));
}

#[test]
fn case_115_a_mariadb_password_stays_secret_however_it_is_given() {
    let variables = ["ANNVIL_PASSWORD", "ANNVIL_PASSWORD_MARIADB", "MYSQL_PWD"];
    every_way_in(
        MariaDb,
        variables,
        ".my.cnf",
        &format!("[client]\nuser = secretive\npassword = \"{PASSWORD}\"\n"),
    );
}

/// The password of a server that annvil starts is its own and random; it stands in a file that only its owner
/// can read, and goes with it.
#[test]
fn case_115_the_password_of_annvils_own_server_is_in_no_command_line_and_no_file_of_the_run() {
    for product in [Postgres, MariaDb] {
        let Some(program) = product.program_option() else { continue };
        let s = open_scratch();
        let more = ["--program", &program, "--server-memory", "600MB", "--effort", "10,20,40"];
        let mut words = words(product.engine(), None, "r", &more);
        words.retain(|w| *w != "--no-report");
        let mut command = clean(&s, &words);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("annvil starts");
        let folder = s.path().display().to_string();
        let marker = until("the server's folder", || {
            let files = files_below(&s.path().join("r"));
            files.into_iter().find(|f| f.ends_with("annvil-server"))
        });
        let secret = until("the password", || {
            let text = std::fs::read_to_string(&marker).unwrap_or_default();
            text.lines().find_map(|l| l.strip_prefix("password = ").map(str::to_owned))
        });
        let mode = std::fs::metadata(&marker).expect("the marker").permissions().mode();
        assert_eq!(mode & 0o077, 0, "others can read the marker: {mode:o}");
        let mut seen = 0;
        until("the end of the load", || {
            let lines = processes(&folder);
            seen = seen.max(lines.len());
            assert!(lines.iter().all(|(_, line)| !line.contains(&secret)), "{lines:?}");
            (!s.points("r").is_empty()).then_some(())
        });
        assert!(seen > 0, "no process of the server was seen");
        let done = done(child.wait_with_output().expect("it ends"));
        assert_eq!(done.code, Some(0), "{}\n{}", done.out, done.err);
        assert_eq!(point(&s, "r", product.engine(), "sweep")["status"], "valid");
        kept_secret(&s, &done, &[&secret]);
    }
}
