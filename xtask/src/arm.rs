//! `cargo xtask arm`: the kernels and the exact search, built for 64-bit Arm and tested under qemu-user.
//!
//! What is not here: installing what that needs. Where something is missing it is named.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fixtures;
use crate::steps::{Step, Steps, cargo};

const TARGET: &str = "aarch64-unknown-linux-gnu";
const LINKER: &str = "aarch64-linux-gnu-gcc";
const QEMU: &str = "qemu-aarch64";
/// Where Debian puts the libraries of the other machine.
const LIBRARIES: &str = "/usr/aarch64-linux-gnu";

/// CPUs that are emulated: one without the dot-product instructions, and one with all there is.
const CPUS: [&str; 2] = ["cortex-a57", "max"];

/// Runs the tests; with `kernel_only` those that need none of the other crates.
pub(crate) fn run(root: &Path, ci: bool, kernel_only: bool) -> bool {
    let mut steps = Steps::new(ci);
    let missing = missing();
    if !missing.is_empty() {
        let why = format!("missing here: {}", missing.join("; "));
        steps.run("arm", || Step::skipped(&why));
        return steps.finish(None);
    }
    for cpu in CPUS {
        steps.run(&format!("kernel {cpu}"), || Step::command(&mut tests(root, "kernel", cpu)));
    }
    if !kernel_only {
        steps.run("exact max", || Step::command(&mut tests(root, "exact", "max")));
    }
    steps.finish(None)
}

fn tests(root: &Path, package: &str, cpu: &str) -> Command {
    let mut command = cargo(root);
    command.args(["test", "--release", "--target", TARGET, "--package", package, "--lib", "--tests"]);
    command.env("ANNVIL_FIXTURES", fixtures::folder(root));
    if !native() {
        command.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", LINKER);
        let runner = format!("{QEMU} -L {LIBRARIES} -cpu {cpu}");
        command.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", runner);
    }
    command
}

/// Whether this machine is one.
fn native() -> bool {
    cfg!(all(target_arch = "aarch64", target_os = "linux"))
}

/// What is not installed, with how to install it.
fn missing() -> Vec<&'static str> {
    let mut missing = Vec::new();
    if !library_of_target().is_some_and(|folder| has_core(&folder)) {
        missing.push("Rust's library for the target (rustup target add aarch64-unknown-linux-gnu)");
    }
    if native() {
        return missing;
    }
    if !on_path(LINKER) {
        missing.push("a linker (Debian: gcc-aarch64-linux-gnu)");
    }
    if !Path::new(LIBRARIES).join("lib/libc.so.6").exists() {
        missing.push("the C library (Debian: libc6-dev-arm64-cross)");
    }
    if !on_path(QEMU) {
        missing.push("an emulator (Debian: qemu-user)");
    }
    missing
}

fn library_of_target() -> Option<PathBuf> {
    let words = ["--print", "target-libdir", "--target", TARGET];
    let output = Command::new("rustc").args(words).output().ok()?;
    Some(PathBuf::from(String::from_utf8(output.stdout).ok()?.trim()))
}

fn has_core(folder: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with("libcore-"))
}

fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
