//! The `[server]` section: what is read, what is refused.

use crate::{Definition, InputDef, StopSignal};

const HEAD: &str = r#"
name = "toy"
title = "Toy"
summary = "For tests."
protocol = "fake"
[capabilities]
metrics = ["l2"]
elements = ["f32"]
build_time = "after_load"
[[index]]
kind = "hnsw"
"#;

const SERVER: &str = r#"
[server]
program = "toyd"
places = ["/opt/toy-*/bin"]
install = "the package toy"
version = ["{{ program }}", "--version"]
user_when_root = "nobody"
start = ["{{ program }}", "-D", "{{ data }}", "-p", "{{ port }}", "--share={{ share }}"]
setting_argument = ["-c", "{{ name }}={{ value }}"]
stop_signal = "INT"
address = "toy://127.0.0.1:{{ port }}/"
[server.folders.share]
first_of = ["{{ root }}/share/toy", "{{ root }}/share"]
holds = "tables.sql"
[server.environment]
TOY_HOME = "{{ data }}"
[server.settings]
cache = "{{ ([memory_mib * 0.25, vectors_mib + rows * 0.001] | min) | int }}MB"
workers = "{{ cpus }}"
[[server.initialise]]
run = ["{{ folder }}/inittoy", "--password-file={{ password_file }}"]
input = ["use toy;", { file = "{{ share }}/tables.sql" }, "set password '{{ password }}';"]
"#;

fn parse(server: &str) -> Result<Definition, String> {
    Definition::parse(&format!("{HEAD}{server}"), "toy.toml").map_err(|e| e.to_string())
}

#[test]
fn a_whole_section_is_read_and_written_again() {
    let definition = parse(SERVER).unwrap();
    let server = definition.server.clone().unwrap();
    assert_eq!((server.stop_signal, server.stop_signal.name()), (StopSignal::Int, "INT"));
    let input = &server.initialise[0].input;
    assert!(matches!(&input[1], InputDef::File(f) if f.file.text() == "{{ share }}/tables.sql"));
    assert!(matches!(&input[2], InputDef::Line(line) if line.uses().contains("password")));
    assert!(server.uses("share") && server.uses("rows") && !server.uses("temporary"));
    let again = toml::to_string(&definition).unwrap();
    assert_eq!(Definition::parse(&again, "again").unwrap(), definition, "{again}");
}

#[test]
fn a_definition_without_a_server_says_nothing_of_one() {
    let definition = parse("").unwrap();
    assert_eq!(definition.server, None);
    assert!(!toml::to_string(&definition).unwrap().contains("server"));
}

#[test]
fn what_cannot_work_is_refused_with_place_and_reason() {
    for (from, to, words) in [
        ("\"toyd\"", "\"bin/toyd\"", ["server.program", "bin/toyd"]),
        ("\"/opt/toy-*/bin\"", "\"opt\"", ["server.places", "\"opt\""]),
        ("[\"{{ program }}\", \"--version\"]", "[]", ["server.version", "no program"]),
        (
            "\"{{ folder }}/inittoy\", \"--pass",
            "\"{{ password }}\", \"--pass",
            ["initialise.run", "password_file"],
        ),
        ("{{ port }}/", "{{ data }}", ["server.address", "port"]),
        ("\"{{ cpus }}\"", "\"{{ cores }}\"", ["settings.workers", "cores"]),
        ("\"{{ cpus }}\"", "\"{% if rows > 1 %}{{ cores }}{% endif %}\"", ["settings.workers", "cores"]),
        ("{{ root }}/share/toy", "{{ share }}", ["folders.share", "root"]),
        ("server.folders.share", "server.folders.data", ["folders.data", "another meaning"]),
        ("setting_argument = [\"-c\", \"{{ name }}={{ value }}\"]", "", ["setting_argument", "settings"]),
        ("\"INT\"", "\"HUP\"", ["line", "HUP"]),
        ("holds =", "hold =", ["line", "hold"]),
        ("install = \"the package toy\"", "", ["line", "install"]),
    ] {
        assert!(SERVER.contains(from), "{from}");
        let error = parse(&SERVER.replace(from, to)).unwrap_err();
        let all = words.iter().all(|word| error.contains(word));
        assert!(all && error.starts_with("toy.toml: ") && !error.contains('\n'), "{to}: {error}");
    }
}
