//! Small disks, for want of space. They are mounts, which only root can make.

use crate::servers::passed_over;
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// A small disk; unmounted when dropped.
pub(crate) struct Disk {
    place: PathBuf,
    _folder: Option<tempfile::TempDir>,
}

impl Disk {
    /// Of so many MB, in a folder of its own; none where this user can't mount.
    pub(crate) fn of_its_own(mb: u64) -> Option<Disk> {
        let folder = tempfile::tempdir().expect("a folder");
        let disk = Disk::over(folder.path(), mb)?;
        Some(Disk { place: disk.leave(), _folder: Some(folder) })
    }

    /// Of so many MB, in place of what a folder holds; none where this user can't mount.
    pub(crate) fn over(place: &Path, mb: u64) -> Option<Disk> {
        let size = format!("size={mb}m,mode=1777");
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(place).output();
        if mount.is_ok_and(|done| done.status.success()) {
            return Some(Disk { place: place.to_owned(), _folder: None });
        }
        passed_over("this user can't mount a small disk (root can)");
        None
    }

    /// Its place, without unmounting it.
    fn leave(mut self) -> PathBuf {
        std::mem::take(&mut self.place)
    }

    /// Leaves so many MB of it free.
    pub(crate) fn leave_free(&self, mb: u64) {
        let disk = Command::new("df").arg("-Pk").arg(&self.place).output().expect("df");
        let text = String::from_utf8_lossy(&disk.stdout).into_owned();
        let used = text.lines().last().and_then(|l| l.split_whitespace().nth(2)).expect("a line");
        self.grow(used.parse::<u64>().expect("KiB") / 1024 + mb);
    }

    /// Makes it so many MB large.
    pub(crate) fn grow(&self, mb: u64) {
        let size = format!("remount,size={mb}m");
        let done = Command::new("mount").args(["-o", &size]).arg(&self.place).status().expect("mount");
        assert!(done.success());
    }

    /// A new folder on it that any user may write to.
    pub(crate) fn folder(&self) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let folder = self.place.join("data");
        std::fs::create_dir(&folder).expect("a new disk");
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).expect("a folder of ours");
        folder
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if !self.place.as_os_str().is_empty() {
            // Lazily: the server may still have files open.
            let _stays_mounted = Command::new("umount").arg("-l").arg(&self.place).status();
        }
    }
}
