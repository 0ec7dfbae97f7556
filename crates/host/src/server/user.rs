//! The user that a server runs as where we are root, and what that user can reach.

use super::error::ServerError;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A user of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct User {
    pub(super) name: String,
    pub(super) uid: u32,
    pub(super) gid: u32,
}

/// The user to become: none where we are not root, or where the server does not mind root.
pub(super) fn to_become(engine: &str, wanted: Option<&str>) -> Result<Option<User>, ServerError> {
    let Some(name) = wanted.filter(|_| rustix::process::geteuid().is_root()) else { return Ok(None) };
    let table = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let user = parse(&table, name);
    user.map(Some).ok_or_else(|| ServerError::NoUser { engine: engine.into(), user: name.into() })
}

/// Reads `name:x:uid:gid:…`.
fn parse(table: &str, name: &str) -> Option<User> {
    table.lines().find_map(|line| {
        let mut fields = line.split(':');
        if fields.next()? != name {
            return None;
        }
        let (uid, gid) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
        Some(User { name: name.into(), uid, gid })
    })
}

impl User {
    /// The first folder on the way to `path` (itself included) that this user can't enter.
    pub(super) fn barred(&self, path: &Path) -> Option<PathBuf> {
        let mut way: Vec<&Path> = path.ancestors().collect();
        way.reverse();
        let closed = way.into_iter().find(|folder| {
            std::fs::metadata(folder).is_ok_and(|facts| {
                let needed = match () {
                    () if facts.uid() == self.uid => 0o100,
                    () if facts.gid() == self.gid => 0o010,
                    () => 0o001,
                };
                facts.is_dir() && facts.mode() & needed == 0
            })
        });
        closed.map(PathBuf::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_user_is_read_from_the_table() {
        let table = "root:x:0:0:root:/root:/bin/bash\nodd\nnobody:x:65534:65533::/:/bin/false\nbad:x:y:1\n";
        assert_eq!(parse(table, "nobody"), Some(User { name: "nobody".into(), uid: 65534, gid: 65533 }));
        assert_eq!((parse(table, "odd"), parse(table, "bad"), parse(table, "nobod")), (None, None, None));
    }

    #[test]
    fn the_folder_that_bars_the_way_is_named() {
        let top = tempfile::tempdir().unwrap();
        let closed = top.path().join("closed");
        let deep = closed.join("deep");
        std::fs::create_dir_all(&deep).unwrap();
        let mode =
            |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        mode(top.path(), 0o711);
        mode(&closed, 0o750);
        let stranger = User { name: "x".into(), uid: u32::MAX - 2, gid: u32::MAX - 2 };
        assert_eq!(stranger.barred(&deep), Some(closed.clone()));
        let owner = std::fs::metadata(&closed).unwrap().uid();
        assert_eq!(User { uid: owner, ..stranger.clone() }.barred(&deep), None);
        mode(&closed, 0o751);
        assert_eq!(stranger.barred(&deep), None);
    }
}
