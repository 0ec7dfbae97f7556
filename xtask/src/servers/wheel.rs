//! Packages of Python's index, through pip and its own settings. Only files are taken: nothing of a
//! package is run here.

use anyhow::Result;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Fault, Place, files, shell};
use crate::steps::say;

/// Unpacks the wheel of `requirement` (`name>=1.2,<2`) for this machine into `into`, without what it
/// depends on.
pub(crate) fn unpack(place: &Place, requirement: &str, into: &Path) -> Result<(), Fault> {
    let python = python_with_pip(place)?;
    let words = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"];
    let wheel_only = ["--no-deps", "--only-binary", ":all:", "--no-compile", "--retries", "2"];
    let mut command = Command::new(python);
    command.args(words).args(wheel_only).arg("--target").arg(into).arg(requirement);
    // Settings of the user that --target does not go with.
    command.env("PIP_USER", "no").env("PIP_REQUIRE_VIRTUALENV", "no");
    shell::run(&mut command).map_err(|error| {
        Fault::Cannot(format!(
            "pip got no `{requirement}` for this system (is the network there?): {error:#}"
        ))
    })?;
    Ok(())
}

/// The user's Python where it has pip, else the system's, else one of our own in the cache. It is found
/// again by each call: a Python that was there may have gone.
fn python_with_pip(place: &Place) -> Result<PathBuf, Fault> {
    for known in ["python3", "/usr/bin/python3"] {
        let python = PathBuf::from(known);
        if has_pip(&python) && all_may_run(&python) {
            return Ok(python);
        }
    }
    let venv = place.cache.join("pip");
    let python = venv.join("bin/python");
    if has_pip(&python) {
        return Ok(python);
    }
    say(&format!("python3 has no pip; setting one up in {}", venv.display()));
    let made = shell::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv));
    made.map_err(|error| {
        let advice = "install python3 with pip or venv (Debian: python3-venv)";
        Fault::Cannot(format!("no Python with pip; {advice}: {error:#}"))
    })?;
    files::open_to_all(&venv)?;
    Ok(python)
}

fn has_pip(python: &Path) -> bool {
    let output = Command::new(python).args(["-m", "pip", "--version"]).output();
    output.is_ok_and(|output| output.status.success())
}

/// Whether the user that root's servers run as can enter the interpreter's folder: root may have one of
/// its own.
fn all_may_run(python: &Path) -> bool {
    let closed = |path: String| files::closed_folder(Path::new(&path)).is_some();
    !(files::is_root() && executable(python).is_ok_and(closed))
}

/// The path of the interpreter that wheels are unpacked for: compiled modules fit no other.
pub(crate) fn interpreter(place: &Place) -> Result<String, Fault> {
    Ok(executable(&python_with_pip(place)?)?)
}

fn executable(python: &Path) -> Result<String> {
    let printed = shell::run(Command::new(python).args(["-c", "import sys; print(sys.executable)"]))?;
    Ok(printed.trim().to_string())
}
