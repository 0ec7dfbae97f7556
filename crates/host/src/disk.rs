//! The disk below a path: file system, kind, space.

use crate::tree::Tree;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What a path is stored on. None is unknown (a network or overlay file system has no disk to name).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Disk {
    /// File system: `ext4`, `xfs`, `tmpfs` (memory) …
    pub file_system: Option<String>,
    /// Block device, such as `nvme0n1p2`.
    pub device: Option<String>,
    /// Whether it says that it turns. A virtual disk says what its host chose to.
    pub rotational: Option<bool>,
    /// Size of the file system.
    pub total_bytes: Option<u64>,
    /// Space that this user may still fill.
    pub free_bytes: Option<u64>,
}

/// A line of mountinfo.
struct Mount {
    point: String,
    kind: String,
    source: String,
}

impl Disk {
    /// The disk that `path` lies on, or its nearest folder that exists.
    pub fn of(path: &Path) -> Self {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.into());
        let there = absolute.ancestors().find_map(|folder| folder.canonicalize().ok());
        let Some(there) = there else { return Disk::default() };
        let space = rustix::fs::statvfs(&there).ok();
        let mut disk = Disk::mounted(&Tree::machine(), &there);
        disk.total_bytes = space.as_ref().and_then(|s| s.f_blocks.checked_mul(s.f_frsize));
        disk.free_bytes = space.as_ref().and_then(|s| s.f_bavail.checked_mul(s.f_frsize));
        disk
    }

    /// File system and device by the table of mounts.
    fn mounted(tree: &Tree, path: &Path) -> Self {
        let table = tree.text("proc/self/mountinfo").unwrap_or_default();
        // Among mounts on one point the last one covers the others, and max_by_key keeps the last.
        let mount = table
            .lines()
            .filter_map(parse)
            .filter(|mount| path.starts_with(&mount.point))
            .max_by_key(|mount| mount.point.len());
        let Some(mount) = mount else { return Disk::default() };
        let device = mount.source.strip_prefix("/dev/").and_then(|name| block_name(tree, name));
        let rotational = device.as_deref().and_then(|name| rotational(tree, name));
        Disk { file_system: Some(mount.kind), device, rotational, ..Disk::default() }
    }
}

fn parse(line: &str) -> Option<Mount> {
    let (left, right) = line.split_once(" - ")?;
    let mut right = right.split(' ');
    Some(Mount {
        point: unescape(left.split(' ').nth(4)?),
        kind: right.next()?.into(),
        source: unescape(right.next()?),
    })
}

/// Undoes the octal escapes of mountinfo (space, tab, newline, backslash).
fn unescape(text: &str) -> String {
    let escapes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    escapes.iter().fold(text.into(), |text: String, (from, to)| text.replace(from, to))
}

/// The kernel's name of the device `/dev/<name>`, which may be a link (`mapper/vg-root` to `dm-0`).
fn block_name(tree: &Tree, name: &str) -> Option<String> {
    let real = tree.path(&format!("dev/{name}")).canonicalize().ok();
    let real = real.as_deref().and_then(Path::file_name).and_then(|n| n.to_str()).unwrap_or(name);
    tree.exists(&format!("sys/class/block/{real}")).then(|| real.to_string())
}

fn rotational(tree: &Tree, device: &str) -> Option<bool> {
    // A partition has no queue of its own; that of its disk is one folder up, past the link.
    let folder = tree.path(&format!("sys/class/block/{device}")).canonicalize().ok()?;
    let read = |folder: &Path| std::fs::read_to_string(folder.join("queue/rotational")).ok();
    match read(&folder).or_else(|| read(folder.parent()?))?.trim() {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_mount_and_the_disk_of_a_partition() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let mounts = "\
27 1 254:0 / / rw,relatime - ext4 /dev/nvme0n1p2 rw
28 27 0:25 / /data\\040x rw - tmpfs tmpfs rw
";
        for (path, text) in [
            ("proc/self/mountinfo", mounts),
            ("sys/class/block/nvme0n1/queue/rotational", "0\n"),
            ("sys/class/block/nvme0n1/nvme0n1p2/partition", "2\n"),
        ] {
            std::fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            std::fs::write(root.join(path), text).unwrap();
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink("nvme0n1/nvme0n1p2", root.join("sys/class/block/nvme0n1p2")).unwrap();
        let tree = Tree::at(root);
        let disk = Disk::mounted(&tree, Path::new("/data/file"));
        assert_eq!((disk.file_system.as_deref(), disk.device.as_deref()), (Some("ext4"), Some("nvme0n1p2")));
        assert_eq!(disk.rotational, Some(false));
        let memory = Disk::mounted(&tree, Path::new("/data x/file"));
        assert_eq!((memory.file_system.as_deref(), memory.device), (Some("tmpfs"), None));
        assert_eq!(memory.rotational, None);
    }

    #[test]
    fn the_disk_of_a_path_that_does_not_exist_yet_is_that_of_its_folder() {
        let here = Disk::of(Path::new("."));
        let free = here.free_bytes.unwrap();
        assert!(here.total_bytes.unwrap() >= free);
        assert_eq!(Disk::of(Path::new("not/yet/there")).total_bytes, here.total_bytes);
    }
}
