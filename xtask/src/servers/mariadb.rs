//! MariaDB 11.8, from Debian's packages in a folder laid out like MariaDB's own archives: bin/ and
//! share/. The programs there are scripts that run the packages' programs through the packages' own
//! loader and libraries, so the system may be older.

use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use std::process::Command;

use super::{Fault, Place, Recipe, debian, expect_series, files, shell, version_in};

/// The release of Debian with MariaDB 11.8.
const SUITE: &str = "trixie";

const PACKAGES: [&str; 2] = ["mariadb-server-core", "mariadb-client-core"];

/// What a data directory is made of, in `share`.
const TABLES: [&str; 6] = [
    "mariadb_system_tables.sql",
    "mariadb_performance_tables.sql",
    "mariadb_system_tables_data.sql",
    "fill_help_tables.sql",
    "maria_add_gis_sp_bootstrap.sql",
    "mariadb_sys_schema.sql",
];

/// MariaDB's server and client.
pub(crate) fn recipe() -> Recipe {
    Recipe {
        name: "MariaDB 11.8",
        variable: "ANNVIL_MARIADBD",
        folder: "mariadb-11.8",
        program: "bin/mariadbd",
        made_from: format!("packages of Debian {SUITE}: {}", PACKAGES.join(" ")),
        make,
        inspect,
    }
}

fn make(place: &Place) -> Result<(), Fault> {
    if cfg!(not(target_os = "linux")) {
        return Err(Fault::Cannot("prepared on Linux only; ANNVIL_MARIADBD can name a program".into()));
    }
    let folder = &place.folder;
    debian::unpack(SUITE, &PACKAGES, &folder.join("root"), &folder.join("apt"))?;
    let libraries = libraries(&folder.join("root"))?;
    // The server looks for its plugins here; what is needed is built in.
    files::create_folder(&folder.join("root/usr/lib/mysql/plugin"))?;
    files::link("root/usr/share/mariadb", &folder.join("share"))?;
    files::create_folder(&folder.join("bin"))?;
    let server_options = "--basedir=\"$home\" --lc-messages-dir=\"$home/share\" \
                          --character-sets-dir=\"$home/share/charsets\" \
                          --plugin-dir=\"$home/root/usr/lib/mysql/plugin\"";
    let client_options = "--character-sets-dir=\"$home/share/charsets\"";
    for (name, program, options) in
        [("mariadbd", "usr/sbin/mariadbd", server_options), ("mariadb", "usr/bin/mariadb", client_options)]
    {
        files::write_program(&folder.join("bin").join(name), &script(&libraries, program, options))?;
    }
    Ok(())
}

/// The folder of libraries and the loader in it, below `root`.
struct Libraries {
    folder: String,
    loader: String,
}

/// Debian keeps both in `usr/lib/<machine>-linux-gnu`.
fn libraries(root: &Path) -> Result<Libraries> {
    let lib = root.join("usr/lib");
    let names = |path: &Path| -> Result<Vec<String>> {
        let entries = fs::read_dir(path).with_context(|| format!("listing {}", path.display()))?;
        Ok(entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
    };
    for machine in names(&lib)?.iter().filter(|name| name.contains("-linux-gnu")) {
        if let Some(loader) = names(&lib.join(machine))?.iter().find(|name| is_loader(name)) {
            let folder = format!("usr/lib/{machine}");
            return Ok(Libraries { loader: format!("{folder}/{loader}"), folder });
        }
    }
    anyhow::bail!("no loader of programs in {}/*-linux-gnu; is libc6 among the packages?", lib.display())
}

/// `ld-linux-x86-64.so.2`, `ld-linux-aarch64.so.1`, `ld64.so.2`.
fn is_loader(name: &str) -> bool {
    (name.starts_with("ld-linux") || name.starts_with("ld64")) && name.contains(".so.")
}

/// A program that becomes (keeps its process id) the one at `program` below `root`. The server insists
/// that options about option files come first.
fn script(libraries: &Libraries, program: &str, options: &str) -> String {
    let Libraries { folder, loader } = libraries;
    format!(
        r#"#!/bin/sh
# Made by `cargo xtask servers`: runs {program} with the loader and libraries beside it.
set -eu
home=$(dirname "$(dirname "$(readlink -f "$0")")")
first=
case ${{1-}} in --no-defaults | --defaults-* | --print-defaults) first=$1; shift ;; esac
exec "$home/root/{loader}" --argv0 "$0" --library-path "$home/root/{folder}" \
    "$home/root/{program}" ${{first:+"$first"}} {options} "$@"
"#
    )
}

fn inspect(folder: &Path) -> Result<String> {
    let mut found = Vec::new();
    for program in ["mariadbd", "mariadb"] {
        let mut command = Command::new(folder.join("bin").join(program));
        found.push(shell::run(command.args(["--no-defaults", "--version"]))?);
    }
    let version = version_in(after(&found[0], "Ver")?)?;
    expect_series("MariaDB", "11.8", version)?;
    for table in TABLES.iter().chain(&["charsets/Index.xml", "english/errmsg.sys"]) {
        let path = folder.join("share").join(table);
        fs::metadata(&path).with_context(|| format!("looking at {}", path.display()))?;
    }
    Ok(format!("MariaDB {version}"))
}

/// What follows `word`: the path of the program, which is printed first, may hold digits.
fn after<'a>(text: &'a str, word: &str) -> Result<&'a str> {
    let found = text.split_once(&format!(" {word} ")).map(|(_, rest)| rest);
    found.with_context(|| format!("no version in `{}`", text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loader_is_told_from_libraries() {
        for name in ["ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "ld64.so.2"] {
            assert!(is_loader(name), "{name}");
        }
        for name in ["libdl.so.2", "libc.so.6", "ld-linux", "ld.so.cache"] {
            assert!(!is_loader(name), "{name}");
        }
    }

    /// The script with a loader that only prints its arguments, in a folder with a space in its name.
    #[cfg(unix)]
    #[test]
    fn the_script_passes_its_arguments_in_the_order_that_the_server_wants() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap().join("a b");
        let lib = home.join("root/usr/lib/x86_64-linux-gnu");
        fs::create_dir_all(&lib).unwrap();
        fs::create_dir_all(home.join("bin")).unwrap();
        files::write_program(&lib.join("ld-linux-x86-64.so.2"), "#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
            .unwrap();
        let program = home.join("bin/mariadbd");
        let libraries = libraries(&home.join("root")).unwrap();
        let text = script(&libraries, "usr/sbin/mariadbd", "--basedir=\"$home\"");
        files::write_program(&program, &text).unwrap();
        let words = ["--no-defaults", "--basedir=x y", "--port=1"];
        let printed = shell::run(Command::new(&program).args(words)).unwrap();
        let home = home.display();
        let wanted = format!(
            "--argv0\n{home}/bin/mariadbd\n--library-path\n{home}/root/usr/lib/x86_64-linux-gnu\n\
             {home}/root/usr/sbin/mariadbd\n--no-defaults\n--basedir={home}\n--basedir=x y\n--port=1\n"
        );
        assert_eq!(printed, wanted);
        let printed = shell::run(&mut Command::new(&program)).unwrap();
        assert!(printed.ends_with(&format!("mariadbd\n--basedir={home}\n")), "{printed}");
    }

    #[test]
    fn digits_in_the_programs_path_are_no_version() {
        let printed = "/a/11.4 x/mariadbd  Ver 11.8.9-MariaDB for Linux";
        assert_eq!(version_in(after(printed, "Ver").unwrap()).unwrap(), "11.8.9-MariaDB");
        assert!(after("mariadbd", "Ver").is_err());
    }
}
