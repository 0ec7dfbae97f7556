//! Modes, links and users of files, which std has for Unix only.

use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// Whether this process is root. Servers then run as another user, who must be able to read them.
#[cfg(unix)]
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether this process is root.
#[cfg(not(unix))]
pub(crate) fn is_root() -> bool {
    false
}

/// Lets every user read all below `path`, enter its folders and run what its owner may run; whatever
/// the umask was. Takes set-user-id away.
#[cfg(unix)]
pub(crate) fn open_to_all(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let kind = fs::symlink_metadata(path).with_context(|| format!("looking at {}", path.display()))?;
    if kind.is_symlink() {
        return Ok(());
    }
    let old = kind.permissions().mode();
    let runs = kind.is_dir() || old & 0o100 != 0;
    let mode = (old & 0o777) | if runs { 0o755 } else { 0o644 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .with_context(|| format!("setting the mode of {}", path.display()))?;
    if kind.is_dir() {
        for entry in fs::read_dir(path).with_context(|| format!("listing {}", path.display()))? {
            open_to_all(&entry.with_context(|| format!("listing {}", path.display()))?.path())?;
        }
    }
    Ok(())
}

/// Nothing to do where files have no modes.
#[cfg(not(unix))]
pub(crate) fn open_to_all(_path: &Path) -> Result<()> {
    Ok(())
}

/// The outermost folder of `path` that other users cannot enter.
#[cfg(unix)]
pub(crate) fn closed_folder(path: &Path) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let mut folders: Vec<&Path> = path.ancestors().collect();
    folders.reverse();
    let closed = |folder: &&Path| {
        fs::metadata(folder).is_ok_and(|found| found.is_dir() && found.permissions().mode() & 0o001 == 0)
    };
    folders.into_iter().find(closed).map(Path::to_path_buf)
}

/// None where folders have no modes.
#[cfg(not(unix))]
pub(crate) fn closed_folder(_path: &Path) -> Option<PathBuf> {
    None
}

/// Makes `path` a link to `target`, which is relative to the folder of `path`.
#[cfg(unix)]
pub(crate) fn link(target: &str, path: &Path) -> Result<()> {
    std::os::unix::fs::symlink(target, path).with_context(|| format!("linking {}", path.display()))
}

/// Servers are prepared on Unix only.
#[cfg(not(unix))]
pub(crate) fn link(_target: &str, path: &Path) -> Result<()> {
    anyhow::bail!("linking {}: not on this system", path.display())
}

/// Writes a program that its owner may run.
pub(crate) fn write_program(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("writing {}", path.display()))?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))
            .with_context(|| format!("setting the mode of {}", path.display()))?;
    }
    Ok(())
}

/// Makes the folder and those above it. As root, new ones can be entered by all.
pub(crate) fn create_folder(path: &Path) -> Result<()> {
    let new: Vec<&Path> = path.ancestors().take_while(|folder| !folder.exists()).collect();
    fs::create_dir_all(path).with_context(|| format!("creating {}", path.display()))?;
    if is_root() {
        for folder in new.into_iter().filter(|folder| !folder.as_os_str().is_empty()) {
            open_to_all(folder)?;
        }
    }
    Ok(())
}

/// Removes a folder with all in it, where there is one.
pub(crate) fn remove(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("removing {}", path.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn all_may_read_and_none_becomes_another_user() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("a");
        fs::create_dir(&folder).unwrap();
        let (text, program) = (folder.join("text"), folder.join("program"));
        for (path, mode) in [(&text, 0o600), (&program, 0o4700), (&folder, 0o700)] {
            if path != &folder {
                fs::write(path, "x").unwrap();
            }
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        link("nowhere", &folder.join("link")).unwrap();
        open_to_all(&folder).unwrap();
        assert_eq!((mode(&text), mode(&program), mode(&folder)), (0o644, 0o755, 0o755));
    }

    #[test]
    fn the_closed_folder_on_the_way_is_named() {
        let home = tempfile::tempdir().unwrap();
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o711)).unwrap();
        let (closed, deep) = (home.path().join("closed"), home.path().join("closed/deep"));
        fs::create_dir_all(&deep).unwrap();
        fs::set_permissions(&deep, fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o711)).unwrap();
        let open_above = closed_folder(home.path());
        assert_eq!(closed_folder(&deep), open_above);
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(closed_folder(&deep), open_above.or(Some(closed)));
    }
}
