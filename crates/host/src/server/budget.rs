//! What a server may use: memory and processors, and which processors are its own.

use super::error::ServerError;
use crate::{Limit, Machine};
use engine::Names;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;

/// What the user grants and what the server is to hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Memory in bytes. None: half of what this machine or container has. The server keeps to it
    /// by its settings, no control group holds it down.
    pub memory_bytes: Option<u64>,
    /// Processors. None: all, shared with the client.
    pub cpus: Option<NonZeroU32>,
    /// Bytes of the vectors that will be loaded.
    pub vectors_bytes: u64,
    /// Rows that will be loaded.
    pub rows: u64,
}

/// The budget with everything decided; kept in the manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Granted {
    /// Memory in bytes, which the settings are computed from.
    pub memory_bytes: u64,
    /// Whether that is the default, half of the memory.
    pub memory_by_default: bool,
    /// Processors, which the settings are computed from.
    pub cpus: u32,
    /// Where server and client run.
    pub placement: Placement,
    /// Bytes of the vectors that will be loaded.
    pub vectors_bytes: u64,
    /// Rows that will be loaded.
    pub rows: u64,
}

/// Where the server and its client run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// Both on all processors: nothing else was asked for.
    Shared,
    /// Both on all processors, because keeping them apart would leave the client none.
    TooFew {
        /// Processors that were asked for.
        asked: u32,
        /// Processors that this process may use.
        usable: u32,
    },
    /// Each on its own: the server is pinned to the first, the client may pin itself to the rest
    /// ([`pin_this_thread`]).
    Apart {
        /// Processors of the server, by number.
        server: Vec<usize>,
        /// Processors left.
        client: Vec<usize>,
    },
}

impl Budget {
    /// Decides what is open, for this machine.
    ///
    /// # Errors
    /// [`ServerError::MemoryUnknown`] where no memory was named and the machine does not tell its own.
    pub fn grant(&self) -> Result<Granted, ServerError> {
        let machine = Machine::read();
        let quota = machine.cgroup.cpus.and_then(Limit::value);
        let allowed = usable_cpus();
        let usable = u32::try_from(allowed.len()).unwrap_or(u32::MAX).max(1);
        let of_quota = quota.map_or(usable, |cpus| (cpus.ceil() as u32).clamp(1, usable));
        let memory = self.memory_bytes.or_else(|| Some(memory_of(&machine)? / 2));
        Ok(Granted {
            memory_bytes: memory.ok_or(ServerError::MemoryUnknown)?,
            memory_by_default: self.memory_bytes.is_none(),
            cpus: self.cpus.map_or(of_quota, |asked| asked.get().min(usable)),
            placement: place(&allowed, self.cpus),
            vectors_bytes: self.vectors_bytes,
            rows: self.rows,
        })
    }
}

impl Granted {
    /// The server's own processors; none where it shares all.
    pub fn server_cpus(&self) -> Option<&[usize]> {
        match &self.placement {
            Placement::Apart { server, .. } => Some(server),
            Placement::Shared | Placement::TooFew { .. } => None,
        }
    }

    /// The names that the rules of a definition use.
    pub(super) fn names(&self, names: &mut Names) {
        const MIB: u64 = 1 << 20;
        names
            .set("memory_mib", self.memory_bytes / MIB)
            .set("cpus", self.cpus)
            .set("vectors_mib", self.vectors_bytes.div_ceil(MIB))
            .set("rows", self.rows);
    }
}

/// What the machine or the container has, whichever is less.
fn memory_of(machine: &Machine) -> Option<u64> {
    let limit = machine.cgroup.memory_bytes.and_then(Limit::value);
    machine.memory.total_bytes.into_iter().chain(limit).min()
}

fn place(allowed: &[usize], asked: Option<NonZeroU32>) -> Placement {
    let Some(asked) = asked else { return Placement::Shared };
    match usize::try_from(asked.get()) {
        Ok(count) if count < allowed.len() => {
            Placement::Apart { server: allowed[..count].to_vec(), client: allowed[count..].to_vec() }
        }
        _ => {
            Placement::TooFew { asked: asked.get(), usable: u32::try_from(allowed.len()).unwrap_or(u32::MAX) }
        }
    }
}

/// The processors this thread may run on, ascending; empty where the system does not tell.
#[cfg(target_os = "linux")]
fn usable_cpus() -> Vec<usize> {
    let Ok(set) = rustix::thread::sched_getaffinity(None) else { return Vec::new() };
    (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect()
}

#[cfg(not(target_os = "linux"))]
fn usable_cpus() -> Vec<usize> {
    Vec::new()
}

/// Lets the calling thread, and every thread and process that it starts from now on, run on these
/// processors only.
///
/// # Errors
/// Where the system refuses, or knows no such thing.
#[cfg(target_os = "linux")]
pub fn pin_this_thread(cpus: &[usize]) -> std::io::Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    for &cpu in cpus {
        if cpu >= rustix::thread::CpuSet::MAX_CPU {
            return Err(std::io::ErrorKind::InvalidInput.into());
        }
        set.set(cpu);
    }
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}

/// Lets the calling thread run on these processors only: not on this system.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn pin_this_thread(_cpus: &[usize]) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    #[test]
    fn the_server_gets_the_first_processors_and_the_client_the_rest() {
        let asked = |n| NonZeroU32::new(n);
        assert_eq!(
            place(&[2, 3, 5, 9], asked(3)),
            Placement::Apart { server: vec![2, 3, 5], client: vec![9] }
        );
        assert_eq!(place(&[2, 3], asked(2)), Placement::TooFew { asked: 2, usable: 2 });
        assert_eq!(place(&[], asked(1)), Placement::TooFew { asked: 1, usable: 0 });
        assert_eq!(place(&[0, 1], None), Placement::Shared);
    }

    #[test]
    fn half_of_what_the_container_has() {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("proc/meminfo", "MemTotal: 8388608 kB\n"),
            ("proc/self/cgroup", "0::/a\n"),
            ("proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
            ("sys/fs/cgroup/a/memory.max", "4294967296\n"),
        ] {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        assert_eq!(memory_of(&Machine::read_in(&Tree::at(folder.path()))), Some(4 << 30));
        std::fs::write(folder.path().join("sys/fs/cgroup/a/memory.max"), "max\n").unwrap();
        assert_eq!(memory_of(&Machine::read_in(&Tree::at(folder.path()))), Some(8 << 30));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_machine_grants_something_and_what_is_named_counts() {
        let own = Budget::default().grant().unwrap();
        assert!(own.memory_by_default && own.memory_bytes > 64 << 20 && own.cpus >= 1, "{own:?}");
        let named =
            Budget { memory_bytes: Some(3 << 30), cpus: NonZeroU32::new(1), vectors_bytes: 1, rows: 7 };
        let granted = named.grant().unwrap();
        assert_eq!((granted.memory_bytes, granted.cpus, granted.memory_by_default), (3 << 30, 1, false));
        let mut names = Names::default();
        granted.names(&mut names);
        let rule =
            engine::Template::try_from("{{ memory_mib }} {{ cpus }} {{ vectors_mib }} {{ rows }}".to_owned());
        assert_eq!(rule.unwrap().fill(&names).unwrap(), "3072 1 1 7");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_pinned_thread_sees_its_processors_only() {
        let all = usable_cpus();
        let last = vec![*all.last().unwrap()];
        let seen = std::thread::spawn({
            let last = last.clone();
            move || {
                pin_this_thread(&last).unwrap();
                usable_cpus()
            }
        });
        assert_eq!(seen.join().unwrap(), last);
        assert_eq!(usable_cpus(), all, "other threads are left alone");
        assert!(pin_this_thread(&[usize::MAX]).is_err());
    }
}
