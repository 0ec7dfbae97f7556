//! CPU and memory limits of the control group (container, service) that this process is in.
//!
//! A limit may stand at any group from our own up to the top, so all are read and the tightest counts.
//! Version 1 has a hierarchy for each controller, version 2 one for all; a machine may have both mounted.

use crate::Limit;
use crate::tree::Tree;
use serde::{Deserialize, Serialize};

/// Version 1 writes "no limit" as the largest multiple of a page; no machine has an eighth of that.
const V1_UNLIMITED: u64 = 1 << 60;

/// Limits by control group. None is unknown (no control groups, or not readable).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cgroup {
    /// CPU time a second of wall time: 1.5 is one and a half processors.
    pub cpus: Option<Limit<f64>>,
    /// Memory, page cache included.
    pub memory_bytes: Option<Limit<u64>>,
    /// Version of the hierarchy that limits memory: 1 or 2.
    pub version: Option<u8>,
}

/// Where one controller's groups lie.
#[derive(Debug, PartialEq)]
struct Place {
    version: u8,
    /// Folder of the top group.
    mount: String,
    /// Our group below it, without leading slash; empty for the top.
    group: String,
}

impl Cgroup {
    pub(crate) fn read(tree: &Tree) -> Self {
        let (Some(groups), Some(mounts)) = (tree.text("proc/self/cgroup"), tree.text("proc/self/mountinfo"))
        else {
            return Cgroup::default();
        };
        let memory = place(&groups, &mounts, "memory");
        Cgroup {
            cpus: place(&groups, &mounts, "cpu")
                .and_then(|place| tightest(&place, |g| cpus(tree, &place, g))),
            memory_bytes: memory
                .as_ref()
                .and_then(|place| tightest(place, |group| memory_limit(tree, place, group))),
            version: memory.map(|place| place.version),
        }
    }
}

/// The hierarchy that has `controller`: version 1 where one names it, else version 2.
fn place(groups: &str, mounts: &str, controller: &str) -> Option<Place> {
    let group = |version: u8| {
        groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            let wanted = match version {
                1 => controllers.split(',').any(|name| name == controller),
                _ => controllers.is_empty(),
            };
            wanted.then_some(path)
        })
    };
    [1, 2].into_iter().find_map(|version| {
        let path = group(version)?;
        let (root, mount) = mounts.lines().find_map(|line| mount(line, version, controller))?;
        // In a container the mount may begin at our group; its path is then told from the host's top.
        let below = path.strip_prefix(root.trim_end_matches('/')).unwrap_or("");
        Some(Place { version, mount, group: below.trim_matches('/').into() })
    })
}

/// Root and mount point of a line of mountinfo, where it mounts the hierarchy asked for.
fn mount(line: &str, version: u8, controller: &str) -> Option<(String, String)> {
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ').skip(3);
    let (root, point) = (left.next()?, left.next()?);
    let mut right = right.split(' ');
    let (kind, options) = (right.next()?, right.nth(1)?);
    let wanted = match version {
        1 => kind == "cgroup" && options.split(',').any(|option| option == controller),
        _ => kind == "cgroup2",
    };
    wanted.then(|| (root.into(), point.into()))
}

/// The tightest limit from our group up to the top; none where no group states one.
fn tightest<T: PartialOrd + Copy>(
    place: &Place,
    read: impl Fn(&str) -> Option<Limit<T>>,
) -> Option<Limit<T>> {
    let mut group = place.group.as_str();
    let mut found: Option<Limit<T>> = None;
    loop {
        if let Some(limit) = read(group) {
            found = Some(found.map_or(limit, |before| before.tighter(limit)));
        }
        if group.is_empty() {
            return found.or_else(|| {
                // The top group of version 2 has no limit files: it has no limit.
                (place.version == 2 && place.group.is_empty()).then_some(Limit::Unlimited)
            });
        }
        group = group.rsplit_once('/').map_or("", |(above, _)| above);
    }
}

fn memory_limit(tree: &Tree, place: &Place, group: &str) -> Option<Limit<u64>> {
    let folder = format!("{}/{group}", place.mount);
    if place.version == 2 {
        return match tree.text(&format!("{folder}/memory.max"))?.as_str() {
            "max" => Some(Limit::Unlimited),
            bytes => bytes.parse().ok().map(Limit::At),
        };
    }
    let bytes = tree.number(&format!("{folder}/memory.limit_in_bytes"))?;
    Some(if bytes >= V1_UNLIMITED { Limit::Unlimited } else { Limit::At(bytes) })
}

fn cpus(tree: &Tree, place: &Place, group: &str) -> Option<Limit<f64>> {
    let folder = format!("{}/{group}", place.mount);
    let (quota, period) = if place.version == 2 {
        let text = tree.text(&format!("{folder}/cpu.max"))?;
        let (quota, period) = text.split_once(' ')?;
        (quota.to_string(), period.trim().to_string())
    } else {
        let read = |name: &str| tree.text(&format!("{folder}/cpu.cfs_{name}_us"));
        (read("quota")?, read("period")?)
    };
    if quota == "max" || quota == "-1" {
        return Some(Limit::Unlimited);
    }
    let (quota, period): (f64, f64) = (quota.parse().ok()?, period.parse().ok()?);
    (quota > 0.0 && period > 0.0).then(|| Limit::At(quota / period))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with the files given as (path, text).
    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Tree) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let tree = Tree::at(folder.path());
        (folder, tree)
    }

    const V2_MOUNT: &str = "31 23 0:28 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n";

    #[test]
    fn version_2_takes_the_tightest_group() {
        let (_folder, tree) = tree(&[
            ("proc/self/cgroup", "0::/a/b\n"),
            ("proc/self/mountinfo", V2_MOUNT),
            ("sys/fs/cgroup/a/memory.max", "1000\n"),
            ("sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("sys/fs/cgroup/a/b/cpu.max", "150000 100000\n"),
            ("sys/fs/cgroup/a/cpu.max", "max 100000\n"),
        ]);
        let found = Cgroup::read(&tree);
        assert_eq!(found.memory_bytes, Some(Limit::At(1000)));
        assert_eq!(found.cpus, Some(Limit::At(1.5)));
        assert_eq!(found.version, Some(2));
    }

    #[test]
    fn version_1_beside_an_empty_version_2() {
        let mounts = "\
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
38 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";
        let (_folder, tree) = tree(&[
            ("proc/self/cgroup", "4:memory:/job\n1:cpu,cpuacct:/\n0::/\n"),
            ("proc/self/mountinfo", mounts),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "4294967296\n"),
            ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
        ]);
        let found = Cgroup::read(&tree);
        assert_eq!(found.memory_bytes, Some(Limit::At(4 << 30)));
        assert_eq!(found.cpus, Some(Limit::Unlimited));
        assert_eq!(found.version, Some(1));
    }

    #[test]
    fn a_container_whose_mount_begins_at_its_own_group() {
        let mounts = "31 23 0:28 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
        let (_folder, tree) = tree(&[
            ("proc/self/cgroup", "0::/docker/abc\n"),
            ("proc/self/mountinfo", mounts),
            ("sys/fs/cgroup/memory.max", "536870912\n"),
        ]);
        assert_eq!(Cgroup::read(&tree).memory_bytes, Some(Limit::At(512 << 20)));
    }

    #[test]
    fn the_top_has_no_limit_and_a_hidden_group_is_unknown() {
        let (_folder, top) = tree(&[("proc/self/cgroup", "0::/\n"), ("proc/self/mountinfo", V2_MOUNT)]);
        assert_eq!(Cgroup::read(&top).memory_bytes, Some(Limit::Unlimited));
        let (_folder, hidden) = tree(&[("proc/self/cgroup", "0::/x\n"), ("proc/self/mountinfo", V2_MOUNT)]);
        assert_eq!(Cgroup::read(&hidden).memory_bytes, None);
        let (_folder, none) = tree(&[]);
        assert_eq!(Cgroup::read(&none), Cgroup::default());
    }
}
