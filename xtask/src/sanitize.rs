//! `cargo xtask sanitize`: the tests of unsafe code, watched for accesses that Rust does not allow.
//!
//! Two tools, each where it is installed. Miri interprets the kernels, so it sees every access, but
//! knows only a part of the instructions: the plain level and AVX2. The address sanitizer watches the
//! compiled code, SIMD included, and the maps of files; what inline assembly reads it does not see.

use std::path::Path;
use std::process::Command;

use crate::fixtures;
use crate::steps::{Step, Steps, cargo};

/// Packages with unsafe code, or whose tests drive it over odd shapes.
const WATCHED: [&str; 3] = ["kernel", "exact", "dataset"];

/// Runs what this machine can; with `kernel_only` the kernels alone, which builds in seconds.
pub(crate) fn run(root: &Path, ci: bool, kernel_only: bool) -> bool {
    let mut steps = Steps::new(ci);
    let nightly = has_nightly();
    if nightly && has_miri() {
        steps.run("miri", || Step::command(&mut miri(root)));
    } else {
        let why = "no Miri; rustup toolchain install nightly --component miri --component rust-src";
        steps.run("miri", || Step::skipped(why));
    }
    if !cfg!(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))) {
        steps.run("address", || Step::skipped("the address sanitizer is tried on Linux only"));
        return steps.finish(None);
    }
    let watched = if kernel_only { &WATCHED[..1] } else { &WATCHED[..] };
    for package in watched {
        steps.run(&format!("address {package}"), || {
            Step::command(address(root, nightly).args(["--package", package]))
        });
    }
    steps.finish(None)
}

/// A cargo of the nightly toolchain where there is one. Else the stable one, told to take options
/// that are not stable; nothing of it is kept, so that is no harm.
fn unstable(root: &Path, nightly: bool) -> Command {
    let mut command = if nightly { nightly_cargo(root) } else { cargo(root) };
    if !nightly {
        command.env("RUSTC_BOOTSTRAP", "1");
    }
    command
}

fn nightly_cargo(root: &Path) -> Command {
    let mut command = Command::new("rustup");
    command.current_dir(root).args(["run", "nightly", "cargo"]);
    // Set by the cargo that runs us, for its own toolchain.
    for name in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN", "CARGO_MANIFEST_DIR"] {
        command.env_remove(name);
    }
    command
}

fn address(root: &Path, nightly: bool) -> Command {
    let mut command = unstable(root, nightly);
    // The target is named so that build scripts and macros are not sanitized.
    command.args(["test", "--release", "--lib", "--tests", "--target", host_triple()]);
    command.env("RUSTFLAGS", "-Zsanitizer=address");
    command.env("CARGO_TARGET_DIR", root.join("target/sanitize"));
    command.env("ANNVIL_FIXTURES", fixtures::folder(root));
    command
}

fn miri(root: &Path) -> Command {
    let mut command = nightly_cargo(root);
    command.args(["miri", "test", "--release", "--package", "kernel", "--lib"]);
    if cfg!(target_arch = "x86_64") {
        command.env("RUSTFLAGS", "-Ctarget-feature=+avx2,+fma,+popcnt");
    }
    command.env("CARGO_TARGET_DIR", root.join("target/sanitize"));
    command
}

fn host_triple() -> &'static str {
    if cfg!(target_arch = "aarch64") { "aarch64-unknown-linux-gnu" } else { "x86_64-unknown-linux-gnu" }
}

fn has_nightly() -> bool {
    succeeds(Command::new("rustup").args(["run", "nightly", "rustc", "--version"]))
}

/// Whether Miri and the sources of the standard library, which it interprets, are there.
fn has_miri() -> bool {
    let words = ["run", "nightly", "rustc", "--print", "sysroot"];
    let sysroot = Command::new("rustup").args(words).output();
    let sources = sysroot.is_ok_and(|output| {
        let sysroot = String::from_utf8_lossy(&output.stdout).trim().to_string();
        Path::new(&sysroot).join("lib/rustlib/src/rust/library/Cargo.lock").exists()
    });
    sources && succeeds(Command::new("rustup").args(["run", "nightly", "cargo", "miri", "--version"]))
}

/// Whether the command starts and ends well; its output is not shown.
fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}
