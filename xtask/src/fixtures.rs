//! What the tests need and the repository does not hold: fixture files made by Python, a browser.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::steps::{Step, say};

/// What the script that makes the fixtures imports.
const PACKAGES: [&str; 3] = ["numpy", "h5py", "pyarrow"];

/// Where the fixture files lie.
pub(crate) fn folder(root: &Path) -> PathBuf {
    root.join("target/fixtures/fx")
}

/// Makes the fixtures with `../shared/fixtures/make_fixtures.py`, unless that very script made them before.
pub(crate) fn prepare(root: &Path) -> Step {
    let script = root.join("../shared/fixtures/make_fixtures.py");
    let Ok(source) = fs::read(&script) else {
        return Step::skipped("../shared/fixtures/make_fixtures.py is missing, so fixtures are not made");
    };
    let home = root.join("target/fixtures");
    let made_by = home.join("made_by.py");
    if folder(root).is_dir() && fs::read(&made_by).is_ok_and(|before| before == source) {
        say("made already by the same script");
        return Step::Passed;
    }
    let python = match python(root) {
        Ok(python) => python,
        Err(error) => return Step::Skipped(format!("no Python with numpy, h5py and pyarrow: {error:#}")),
    };
    match make(&python, &script, &home).and_then(|()| fs::write(&made_by, source).context("made_by.py")) {
        Ok(()) => Step::Passed,
        Err(error) => Step::Failed(vec![format!("{error:#}")]),
    }
}

/// Runs the script beside the old files and swaps the folders, so that no test sees half of them.
fn make(python: &Path, script: &Path, home: &Path) -> Result<()> {
    let script = script.canonicalize().context("the script's path")?;
    let (fresh, old) = (home.join("fresh"), home.join("old"));
    for folder in [&fresh, &old] {
        if folder.exists() {
            fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display()))?;
        }
    }
    fs::create_dir_all(&fresh).with_context(|| format!("creating {}", fresh.display()))?;
    run(Command::new(python).arg(script).current_dir(&fresh))?;
    if home.join("fx").exists() {
        fs::rename(home.join("fx"), &old).context("moving the old fixtures away")?;
    }
    fs::rename(fresh.join("fx"), home.join("fx")).context("moving the fixtures into place")?;
    for folder in [fresh, old].iter().filter(|folder| folder.exists()) {
        fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    Ok(())
}

/// A Python with the packages: the one on PATH, else one of our own below `target`.
fn python(root: &Path) -> Result<PathBuf> {
    let system = PathBuf::from("python3");
    if has_packages(&system) {
        return Ok(system);
    }
    let venv = root.join("target/fixtures/venv");
    let python = venv.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    if !has_packages(&python) {
        say("setting up Python packages in target/fixtures/venv");
        run(Command::new(system).args(["-m", "venv", "--clear"]).arg(&venv))?;
        let words = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        run(Command::new(&python).args(words).args(PACKAGES))?;
    }
    Ok(python)
}

fn has_packages(python: &Path) -> bool {
    let import = format!("import {}", PACKAGES.join(", "));
    Command::new(python).args(["-c", &import]).output().is_ok_and(|output| output.status.success())
}

fn run(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.status().with_context(|| format!("starting {program}"))?;
    if !status.success() {
        bail!("{program}: {status}");
    }
    Ok(())
}

/// The browser that opens report pages: `ANNVIL_CHROMIUM`, else the first known name on PATH.
pub(crate) fn chromium() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("ANNVIL_CHROMIUM") {
        return Some(path.into());
    }
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    names.iter().flat_map(|name| folders.iter().map(move |f| f.join(name))).find(|path| path.is_file())
}
