//! seekdb (OceanBase, MySQL's protocol), from its wheel: a library that starts a server on a local
//! socket. Only on request (`--also seekdb`), because it needs a Python to run.

use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;

use super::{Fault, Place, Recipe, expect_series, files, shell, wheel};

const REQUIREMENT: &str = "pylibseekdb>=1.4,<2";

/// Opens the database and says where it listens. The caller's end of standard input is what ends it,
/// so that it does not outlive a caller that was killed.
const SERVE: &str = r#""""Made by `cargo xtask servers`. Serves the data directory DIR on a local socket: prints the
socket's path, and ends in good order when standard input ends or at SIGTERM."""

import importlib.metadata
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "wheel"))
import pylibseekdb


def stop(number, frame):
    raise SystemExit(0)


if sys.argv[1:] == ["--version"]:
    print("seekdb", importlib.metadata.version("pylibseekdb"))
elif len(sys.argv) != 2:
    sys.exit("usage: seekdb-serve DIR")
else:
    signal.signal(signal.SIGTERM, stop)
    server = pylibseekdb.open(db_dir=os.path.abspath(sys.argv[1]))
    try:
        print(server.connection_options()["unix_socket"], flush=True)
        while sys.stdin.buffer.read(4096):
            pass
    finally:
        server.close()
"#;

/// seekdb.
pub(crate) fn recipe() -> Recipe {
    Recipe {
        name: "seekdb",
        variable: "ANNVIL_SEEKDB",
        folder: "seekdb",
        program: "bin/seekdb-serve",
        made_from: format!("the wheel {REQUIREMENT}"),
        make,
        inspect,
    }
}

fn make(place: &Place) -> Result<(), Fault> {
    if cfg!(not(unix)) {
        return Err(Fault::Cannot("prepared on Unix only; ANNVIL_SEEKDB can name a program".into()));
    }
    let folder = &place.folder;
    wheel::unpack(place, REQUIREMENT, &folder.join("wheel"))?;
    let python = wheel::interpreter(place)?;
    std::fs::write(folder.join("serve.py"), SERVE)
        .with_context(|| format!("writing {}", folder.join("serve.py").display()))?;
    files::create_folder(&folder.join("bin"))?;
    files::write_program(&folder.join("bin/seekdb-serve"), &script(&python))?;
    Ok(())
}

/// A program that becomes the interpreter; isolated, so that no setting of the user's Python gets in.
fn script(python: &str) -> String {
    format!(
        "#!/bin/sh\n# Made by `cargo xtask servers`.\nhome=$(dirname \"$(dirname \"$(readlink -f \"$0\")\")\")\n\
         exec {} -I -B \"$home/serve.py\" \"$@\"\n",
        shell::quoted(python)
    )
}

fn inspect(folder: &Path) -> Result<String> {
    let printed = shell::run(Command::new(folder.join("bin/seekdb-serve")).arg("--version"))?;
    let version = printed.trim().strip_prefix("seekdb ").unwrap_or_default();
    expect_series("seekdb", "1", version)?;
    Ok(format!("seekdb {version}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn the_script_runs_the_file_beside_it_with_the_interpreter_it_was_made_for() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap().join("it's");
        std::fs::create_dir_all(home.join("bin")).unwrap();
        let python = home.join("python");
        files::write_program(&python, "#!/bin/sh\nprintf '%s\\n' \"$@\"\n").unwrap();
        files::write_program(&home.join("bin/seekdb-serve"), &script(python.to_str().unwrap())).unwrap();
        let printed = shell::run(Command::new(home.join("bin/seekdb-serve")).arg("a b")).unwrap();
        assert_eq!(printed, format!("-I\n-B\n{}/serve.py\na b\n", home.display()));
    }
}
