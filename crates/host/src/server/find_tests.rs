//! Finding programs, with small scripts in place of servers.

use super::*;
use engine::Definition;

/// A definition whose places lie below `top`.
fn definition(top: &Path) -> ServerDef {
    let text = format!(
        r#"
name = "toy"
title = "Toy"
summary = "For tests."
protocol = "fake"
index = [{{ kind = "hnsw" }}]
capabilities = {{ metrics = ["l2"], elements = ["f32"], build_time = "after_load" }}
[server]
program = "toyd"
places = ["{}/opt/toy-*/bin"]
install = "the package toy"
version = ["{{{{ program }}}}", "--version"]
start = ["{{{{ program }}}}"]
stop_signal = "TERM"
address = "toy://127.0.0.1:{{{{ port }}}}"
[server.folders.share]
first_of = ["{{{{ root }}}}/share/toy", "{{{{ root }}}}/share"]
holds = "tables.sql"
"#,
        top.display()
    );
    Definition::parse(&text, "toy.toml").unwrap().server.unwrap()
}

/// A program of `version` in `root`/bin, with or without its share folder.
fn install(root: &Path, script: &str, share: Option<&str>) {
    std::fs::create_dir_all(root.join("bin")).unwrap();
    let program = root.join("bin/toyd");
    std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    if let Some(share) = share {
        std::fs::create_dir_all(root.join(share)).unwrap();
        std::fs::write(root.join(share).join("tables.sql"), "").unwrap();
    }
}

#[test]
fn the_newest_usable_program_is_taken_with_its_folders() {
    let top = tempfile::tempdir().unwrap();
    let real = top.path().canonicalize().unwrap();
    let opt = real.join("opt");
    install(&opt.join("toy-9"), "echo toy 9", Some("share"));
    install(&opt.join("toy-10"), "echo; echo $0 toy 10; echo more", Some("share/toy"));
    install(&opt.join("toy-11"), "echo toy 11", None);
    let def = definition(&real);
    let found = find_on("toy", &def, None, None).unwrap();
    assert_eq!((found.version.as_str(), found.engine.as_str()), ("toy 10", "toy"));
    assert_eq!(found.program, opt.join("toy-10/bin/toyd"));
    assert_eq!(found.folders["share"], opt.join("toy-10/share/toy"));
    // PATH comes before the places, also by a link, whose target's neighbours count.
    let links = real.join("links");
    std::fs::create_dir(&links).unwrap();
    std::os::unix::fs::symlink(opt.join("toy-9/bin/toyd"), links.join("toyd")).unwrap();
    let found = find_on("toy", &def, None, Some(links.as_os_str())).unwrap();
    assert_eq!((found.version.as_str(), &found.program), ("toy 9", &opt.join("toy-9/bin/toyd")));
    // A named program or folder is the only one looked at.
    for named in ["toy-9/bin", "toy-9/bin/toyd"] {
        let found = find_on("toy", &def, Some(&opt.join(named)), None).unwrap();
        assert_eq!(found.version, "toy 9");
    }
}

#[test]
fn nothing_usable_says_where_it_was_looked_for_and_what_was_wrong() {
    let top = tempfile::tempdir().unwrap();
    let real = top.path().canonicalize().unwrap();
    let def = definition(&real);
    let none = find_on("toy", &def, None, None).unwrap_err().to_string();
    let expected = format!(
        "toy: no usable program toyd on this machine (looked in PATH, {}/opt/toy-*/bin); \
         install the package toy, or name it: --program toy=PATH",
        real.display()
    );
    assert_eq!(none, expected);
    let opt = real.join("opt");
    install(&opt.join("toy-1"), "echo broken >&2; exit 3", Some("share"));
    install(&opt.join("toy-2"), "exit 0", Some("share"));
    install(&opt.join("toy-3"), "echo toy 3", None);
    install(&opt.join("toy-4"), "echo toy 4", Some("share"));
    std::fs::set_permissions(opt.join("toy-4/bin/toyd"), PermissionsExt::from_mode(0o644)).unwrap();
    let error = find_on("toy", &def, None, None).unwrap_err().to_string();
    for words in [
        "toy-1/bin/toyd is there, but",
        "--version fails: broken",
        "toy-2/bin/toyd --version says nothing",
        "toy-3/bin/toyd is there, but it comes without tables.sql (not in",
        "toy-4/bin/toyd is there, but it is no program that may be run",
    ] {
        assert!(error.contains(words) && !error.contains('\n'), "{words}: {error}");
    }
}

#[test]
fn a_named_program_that_is_none_is_refused() {
    let top = tempfile::tempdir().unwrap();
    let def = definition(top.path());
    let missing = top.path().join("missing");
    let error = find_on("toy", &def, Some(&missing), None).unwrap_err().to_string();
    assert!(error.starts_with("toy: the program ") && error.contains("missing"), "{error}");
    std::fs::write(&missing, "text").unwrap();
    let error = find_on("toy", &def, Some(&missing), None).unwrap_err().to_string();
    assert!(error.contains("no program that may be run"), "{error}");
}
