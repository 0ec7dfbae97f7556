//! Standard output is data, standard error is talk; nothing but text when piped; help is whole.

mod support;

use support::{Scratch, fake_run};

/// Every command that a script may read, small.
fn commands<'a>() -> Vec<Vec<&'a str>> {
    vec![
        vec!["dataset", "list", "sift"],
        vec!["dataset", "describe", "builtin", "--limit", "500"],
        vec!["dataset", "validate", "builtin", "--limit", "500"],
        vec!["dataset", "generate", "--out", "made", "--rows", "200", "--queries", "5", "--dim", "8"],
        vec!["dataset", "convert", "made", "--out", "made.hdf5", "--format", "hdf5"],
        vec!["truth", "made", "--k", "5"],
        vec!["truth", "made", "--k", "5", "--filter", "cat10 = {q}", "--filter", "num < 1000"],
        vec!["engine", "list"],
        vec!["engine", "show", "usearch"],
        vec!["engine", "check", "flat"],
        fake_run("fake", "r", &["--effort", "10"]),
        fake_run("fake", "dry", &["--effort", "10", "--dry-run"]),
        vec!["report", "r"],
        vec!["compare", "r", "r"],
        vec!["explain", "r", "fake:10", "--query", "3"],
        vec!["doctor", "--ceiling", "0.05"],
    ]
}

#[test]
fn json_is_json_and_text_is_plain() {
    for json in [true, false] {
        let s = Scratch::new();
        for mut args in commands() {
            if json {
                args.push("--json");
            }
            let done = s.ok(&args);
            for text in [&done.out, &done.err] {
                assert!(!text.contains('\x1b') && !text.contains('\r'), "{args:?}: {text:?}");
            }
            assert!(!done.out.trim().is_empty(), "{args:?} says nothing");
            if json {
                let value: serde_json::Value =
                    serde_json::from_str(&done.out).unwrap_or_else(|e| panic!("{args:?}: {e}: {}", done.out));
                assert!(value.is_object() || value.is_array(), "{args:?}");
                assert!(!done.out.contains("NaN"), "{args:?}");
            }
        }
    }
}

#[test]
fn help_names_every_limit_with_its_default() {
    let s = Scratch::new();
    let help = s.ok(&["run", "--help"]).out;
    for option in [
        "--load-timeout",
        "--build-timeout",
        "--ready-timeout",
        "--query-timeout",
        "--point-timeout",
        "--max-errors",
        "--max-client-share",
    ] {
        let at = help.find(option).unwrap_or_else(|| panic!("{option} is not in the help"));
        assert!(
            help[at..at + 220.min(help.len() - at)].contains("[default:"),
            "{option} has no default in the help"
        );
    }
    for command in ["run", "dataset", "truth", "engine", "report", "compare", "explain", "doctor"] {
        s.ok(&[command, "--help"]);
    }
    assert!(s.ok(&["--version"]).out.starts_with("annvil 0."));
}

#[test]
fn quiet_says_nothing_on_standard_error_when_all_is_well() {
    let s = Scratch::new();
    let done = s.ok(&fake_run("fake", "r", &["--effort", "10", "--quiet"]));
    assert_eq!(done.err, "");
}

/// cases.md 95: no call leaves the machine.
#[test]
fn case_95_a_run_works_with_the_network_switched_off() {
    let s = Scratch::new();
    let probe = std::process::Command::new("unshare").args(["-rn", "true"]).output();
    if !probe.is_ok_and(|o| o.status.success()) {
        return;
    }
    let run = s.command(&["run", "--plan", "smoke", "--out", "r"]);
    let mut offline = std::process::Command::new("unshare");
    offline.args(["-rn", "--"]).arg(run.get_program()).args(run.get_args()).current_dir(s.path());
    offline.env("ANNVIL_CACHE_DIR", s.path().join("cache"));
    let done = support::done(offline.output().expect("unshare"));
    assert_eq!(done.code, Some(0), "{}\n{}", done.out, done.err);
    assert!(s.path().join("r/report.html").exists());
}
