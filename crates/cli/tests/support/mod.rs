//! Runs the real binary in a scratch folder of its own.

#![expect(dead_code, reason = "each test file uses a part of the harness")]

use std::{
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

/// A scratch folder, and the binary to run in it.
pub(crate) struct Scratch {
    dir: tempfile::TempDir,
}

/// What a command left behind.
pub(crate) struct Done {
    /// Exit code; none where a signal ended it.
    pub(crate) code: Option<i32>,
    /// Standard output.
    pub(crate) out: String,
    /// Standard error.
    pub(crate) err: String,
}

impl Scratch {
    /// A new, empty one.
    pub(crate) fn new() -> Self {
        Scratch { dir: tempfile::tempdir().expect("a scratch folder") }
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// A command that will run `annvil` here, with a cache of its own.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_annvil"));
        command
            .args(args)
            .current_dir(self.dir.path())
            .env("ANNVIL_CACHE_DIR", self.dir.path().join("cache"))
            .env_remove("NO_COLOR")
            .stdin(Stdio::null());
        command
    }

    /// Runs `annvil` to its end.
    pub(crate) fn annvil(&self, args: &[&str]) -> Done {
        done(self.command(args).output().expect("annvil starts"))
    }

    /// Runs `annvil` and expects exit code 0.
    pub(crate) fn ok(&self, args: &[&str]) -> Done {
        let done = self.annvil(args);
        assert_eq!(done.code, Some(0), "annvil {args:?}\n{}\n{}", done.out, done.err);
        done
    }

    /// The lines of `records.jsonl` of a run directory here.
    pub(crate) fn points(&self, run: &str) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(self.path().join(run).join("records.jsonl")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("a whole line")).collect()
    }

    /// The points of one phase.
    pub(crate) fn sweep(&self, run: &str) -> Vec<serde_json::Value> {
        self.points(run).into_iter().filter(|p| p["phase"] == "sweep").collect()
    }

    /// The manifest of a run directory here.
    pub(crate) fn manifest(&self, run: &str) -> serde_json::Value {
        let text = std::fs::read_to_string(self.path().join(run).join("manifest.json")).expect("a manifest");
        serde_json::from_str(&text).expect("a whole manifest")
    }

    /// Writes a file here.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, text).expect("a scratch file");
        path
    }
}

/// What a finished process left.
pub(crate) fn done(output: Output) -> Done {
    Done {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).expect("UTF-8 on standard output"),
        err: String::from_utf8(output.stderr).expect("UTF-8 on standard error"),
    }
}

/// A small run of fake engines on the first rows of the built-in set: the words of a command line.
pub(crate) fn fake_run<'a>(engine: &'a str, out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut words = vec![
        "run",
        "--engine",
        engine,
        "--out",
        out,
        "--limit",
        "300",
        "--repeats",
        "2",
        "--warmup",
        "10",
        "--min-window",
        "1ms",
        "--no-report",
    ];
    words.extend_from_slice(more);
    words
}

/// A fixture file of cases.md; none (with a word why) where the fixtures are not made, but in CI
/// that is a failure.
pub(crate) fn fixture(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("ANNVIL_FIXTURES")
        .map_or_else(|| workspace().join("target/fixtures/fx"), PathBuf::from);
    needed(folder.join(name), "run cargo xtask test, which makes the fixtures")
}

/// A file of the shared development data, likewise.
pub(crate) fn shared_data(name: &str) -> Option<PathBuf> {
    needed(workspace().join("../shared/data").join(name), "the development data is not beside the project")
}

fn needed(path: PathBuf, hint: &str) -> Option<PathBuf> {
    if path.exists() {
        return Some(path);
    }
    assert!(std::env::var_os("CI").is_none(), "{} is missing: {hint}", path.display());
    // A skipped test says so by name where its output is shown.
    std::io::Write::write_fmt(
        &mut std::io::stderr(),
        format_args!("skipped: {} is missing: {hint}\n", path.display()),
    )
    .expect("standard error");
    None
}

/// The folder of the workspace.
pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
