//! Where servers are kept, and how a folder gets there: made beside, checked, marked, then moved into
//! place, so that a folder with a mark is whole even after a kill.

use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use super::{Fault, Place, Recipe, files};
use crate::steps::say;

/// Names the folder; for all users.
const VARIABLE: &str = "ANNVIL_SERVERS";

/// Root's, because the user that servers run as cannot enter root's own folders.
const OF_ROOT: &str = "/var/cache/annvil/servers";

/// The file that says what a folder was made from; written last.
const MARK: &str = "made-from";

/// Folders that are being made begin so; what a killed process left is removed by the next one.
const MAKING: &str = ".making-";

/// Part of each mark: raise it when a recipe makes something else from the same packages.
const LAYOUT: u32 = 1;

/// The folder of all servers.
pub(crate) struct Cache {
    home: PathBuf,
}

impl Cache {
    /// The one that the environment and the user ask for; makes nothing.
    pub(crate) fn of_this_user() -> Result<Cache> {
        let names = [VARIABLE, "XDG_CACHE_HOME", "HOME"];
        let root = files::is_root();
        let home = place(names.map(std::env::var_os), root)?;
        if root && let Some(closed) = files::closed_folder(&home) {
            bail!(
                "{VARIABLE}={} lies in {}, which other users cannot enter, and as root the servers run as \
                 another user; name a folder like {OF_ROOT}",
                home.display(),
                closed.display()
            );
        }
        Ok(Cache { home })
    }

    /// Where it is.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// Where the recipe's server lies, or will.
    pub(crate) fn folder(&self, recipe: &Recipe) -> PathBuf {
        self.home.join(recipe.folder)
    }

    /// The versions of a server that is there, was made by this recipe and still runs.
    pub(crate) fn ready(&self, recipe: &Recipe) -> Option<String> {
        self.look(recipe)?.ok()
    }

    /// None where this recipe made nothing; an error where what it made is damaged.
    fn look(&self, recipe: &Recipe) -> Option<Result<String>> {
        let folder = self.folder(recipe);
        let mark = fs::read_to_string(folder.join(MARK)).ok()?;
        (mark == self::mark(recipe)).then(|| (recipe.inspect)(&folder))
    }

    /// Makes the server, or waits for another process that does, and gives its versions.
    pub(crate) fn make(&self, recipe: &Recipe) -> Result<String, Fault> {
        files::create_folder(&self.home).with_context(|| format!("{VARIABLE} can name another folder"))?;
        // Freed by the system when this process ends, however it ends.
        let _lock = self.lock()?;
        match self.look(recipe) {
            Some(Ok(versions)) => return Ok(versions),
            Some(Err(error)) => say(&format!("{}: damaged: {error:#}", recipe.name)),
            None => {}
        }
        self.remove_leftovers()?;
        say(&format!("{}: making it from {}", recipe.name, recipe.made_from));
        let name = format!("{MAKING}{}-{}", recipe.folder, std::process::id());
        let place = Place { cache: self.home.clone(), folder: self.home.join(name) };
        let made = self.make_in(&place, recipe);
        if made.is_err() {
            // The fault is what counts; what stays is removed by the next call.
            files::remove(&place.folder).unwrap_or(());
        }
        made
    }

    fn make_in(&self, place: &Place, recipe: &Recipe) -> Result<String, Fault> {
        files::create_folder(&place.folder)?;
        (recipe.make)(place)?;
        files::open_to_all(&place.folder)?;
        let versions = (recipe.inspect)(&place.folder)?;
        let mark_path = place.folder.join(MARK);
        fs::write(&mark_path, mark(recipe)).with_context(|| format!("writing {}", mark_path.display()))?;
        files::open_to_all(&mark_path)?;
        let folder = self.folder(recipe);
        files::remove(&folder)?;
        fs::rename(&place.folder, &folder).with_context(|| format!("moving it to {}", folder.display()))?;
        Ok(versions)
    }

    fn lock(&self) -> Result<File> {
        let path = self.home.join(".lock");
        let file = File::options().create(true).truncate(false).write(true).open(&path);
        let file =
            file.with_context(|| format!("opening {}; {VARIABLE} can name another folder", path.display()))?;
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => say("waiting for another `cargo xtask` that prepares servers"),
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("locking {}", path.display()));
            }
        }
        file.lock().with_context(|| format!("locking {}", path.display()))?;
        Ok(file)
    }

    /// Removes half-made folders; only the holder of the lock makes any.
    fn remove_leftovers(&self) -> Result<()> {
        let home = &self.home;
        for entry in fs::read_dir(home).with_context(|| format!("listing {}", home.display()))? {
            let entry = entry.with_context(|| format!("listing {}", home.display()))?;
            if entry.file_name().to_string_lossy().starts_with(MAKING) {
                files::remove(&entry.path())?;
            }
        }
        Ok(())
    }
}

/// The folder for what `ANNVIL_SERVERS`, `XDG_CACHE_HOME` and `HOME` hold.
fn place([own, cache, home]: [Option<OsString>; 3], root: bool) -> Result<PathBuf> {
    let set = |value: Option<OsString>| value.filter(|text| !text.is_empty()).map(PathBuf::from);
    if let Some(own) = set(own) {
        if !own.is_absolute() {
            bail!("{VARIABLE}={} is not an absolute path; tests run in other folders", own.display());
        }
        return Ok(own);
    }
    if root {
        return Ok(OF_ROOT.into());
    }
    // The XDG specification: a relative path is to be ignored.
    let cache = set(cache).filter(|path| path.is_absolute());
    let cache = cache.or_else(|| set(home).map(|home| home.join(".cache")));
    let cache =
        cache.with_context(|| format!("HOME is not set; name a folder for servers with {VARIABLE}"))?;
    Ok(cache.join("annvil/servers"))
}

fn mark(recipe: &Recipe) -> String {
    format!("{}\nlayout {LAYOUT}\n", recipe.made_from)
}

#[cfg(test)]
mod tests;
