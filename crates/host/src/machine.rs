//! The facts of a machine that belong to every result.

use crate::tree::Tree;
use crate::{Cgroup, Cpu, Disk, Limits, Memory};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What a result was measured on. Kept in the manifest and shown by `doctor`; the machine's name is
/// left out on purpose, since manifests are published. None is unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Operating system with its version, as it names itself: `Debian GNU/Linux 12 (bookworm)`.
    pub system: Option<String>,
    /// Release of the kernel.
    pub kernel: Option<String>,
    /// Instruction set that this program was built for: `x86_64`, `aarch64`.
    pub architecture: String,
    /// Processors.
    pub cpu: Cpu,
    /// Memory.
    pub memory: Memory,
    /// Limits of the container or service.
    pub cgroup: Cgroup,
    /// Limits of the process.
    pub limits: Limits,
    /// The disk that the run directory lies on.
    pub disk: Disk,
    /// Clock that times are read from (`tsc` is fast; `hpet` or `acpi_pm` cost a microsecond).
    pub clock_source: Option<String>,
    /// Processes that ran or wanted to, mean of the last 1, 5 and 15 minutes.
    pub load_average: Option<[f64; 3]>,
    /// What points to a container or a virtual machine; empty where nothing does.
    pub hints: Vec<String>,
}

impl Machine {
    /// Reads all facts, with the disk of the current folder. Takes some milliseconds.
    pub fn read() -> Self {
        Machine::read_with_disk_of(Path::new("."))
    }

    /// Reads all facts, with the disk that `path` lies on or will lie on.
    pub fn read_with_disk_of(path: &Path) -> Self {
        Machine { disk: Disk::of(path), ..Machine::read_in(&Tree::machine()) }
    }

    pub(crate) fn read_in(tree: &Tree) -> Self {
        let release = tree.text("etc/os-release").or_else(|| tree.text("usr/lib/os-release"));
        Machine {
            system: release.as_deref().and_then(pretty_name),
            kernel: tree.text("proc/sys/kernel/osrelease"),
            architecture: std::env::consts::ARCH.into(),
            cpu: Cpu::read(tree),
            memory: Memory::read(tree),
            cgroup: Cgroup::read(tree),
            limits: Limits::read(tree),
            disk: Disk::default(),
            clock_source: tree.text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
            load_average: tree.text("proc/loadavg").as_deref().and_then(load_average),
            hints: hints(tree),
        }
    }

    /// Processors that this process can keep busy: the allowed ones, fewer where a limit on CPU time says so.
    pub fn usable_cpus(&self) -> Option<f64> {
        let count = f64::from(self.cpu.allowed_count.or(self.cpu.logical)?);
        Some(self.cgroup.cpus.and_then(crate::Limit::value).map_or(count, |limit| limit.min(count)))
    }

    /// Memory that this process can have: that of the machine, less where a limit says so.
    pub fn usable_memory_bytes(&self) -> Option<u64> {
        let total = self.memory.total_bytes?;
        Some(self.cgroup.memory_bytes.and_then(crate::Limit::value).map_or(total, |limit| limit.min(total)))
    }
}

fn pretty_name(release: &str) -> Option<String> {
    let value = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    let value = value.trim().trim_matches(['"', '\'']);
    (!value.is_empty()).then(|| value.to_string())
}

fn load_average(text: &str) -> Option<[f64; 3]> {
    let mut numbers = text.split_whitespace().map(|word| word.parse().ok());
    Some([numbers.next()??, numbers.next()??, numbers.next()??])
}

/// Signs of a container or a virtual machine, each with where it was seen.
fn hints(tree: &Tree) -> Vec<String> {
    let mut hints = Vec::new();
    for (file, name) in [(".dockerenv", "docker"), ("run/.containerenv", "podman")] {
        if tree.exists(file) {
            hints.push(format!("container: {name} (/{file})"));
        }
    }
    if tree.exists("var/run/secrets/kubernetes.io") || tree.exists("run/secrets/kubernetes.io") {
        hints.push("container: kubernetes".into());
    }
    let info = tree.text("proc/cpuinfo").unwrap_or_default();
    let flags = crate::tree::field(&info, "flags").unwrap_or_default();
    if flags.split_whitespace().any(|flag| flag == "hypervisor") {
        hints.push("virtual machine (CPU flag hypervisor)".into());
    }
    if let Some(kind) = tree.text("sys/hypervisor/type") {
        hints.push(format!("virtual machine: {kind} (/sys/hypervisor)"));
    }
    let firmware = |file: &str| tree.text(&format!("sys/class/dmi/id/{file}"));
    if let (Some(vendor), Some(product)) = (firmware("sys_vendor"), firmware("product_name")) {
        hints.push(format!("hardware: {vendor} {product}"));
    }
    if tree.text("proc/sys/kernel/osrelease").is_some_and(|k| k.to_lowercase().contains("microsoft")) {
        hints.push("virtual machine: WSL (kernel release)".into());
    }
    hints
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limit;

    #[test]
    fn a_system_that_tells_nothing_is_unknown_throughout() {
        let folder = tempfile::tempdir().unwrap();
        let machine = Machine::read_in(&Tree::at(folder.path()));
        let blank = Machine { architecture: std::env::consts::ARCH.into(), ..Machine::default() };
        assert_eq!(machine, blank);
        assert_eq!((machine.usable_cpus(), machine.usable_memory_bytes()), (None, None));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_machine_is_read_and_survives_json() {
        let machine = Machine::read();
        assert!(machine.cpu.logical >= Some(1) && machine.cpu.allowed_count >= Some(1), "{machine:?}");
        assert!(machine.cpu.allowed_count <= machine.cpu.logical, "{machine:?}");
        assert!(machine.memory.total_bytes > machine.memory.available_bytes, "{machine:?}");
        assert!(machine.kernel.is_some() && machine.limits.open_files.is_some(), "{machine:?}");
        assert!(machine.disk.total_bytes.is_some(), "{machine:?}");
        let json = serde_json::to_string(&machine).unwrap();
        assert_eq!(serde_json::from_str::<Machine>(&json).unwrap(), machine);
        let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        // A name as short as "vm" stands inside other words.
        assert!(name.trim().len() < 6 || !json.contains(name.trim()), "the machine's name is in {json}");
    }

    #[test]
    fn a_manifest_of_an_older_version_has_unknown_fields() {
        let mut json = serde_json::to_value(Machine::default()).unwrap();
        json["cpu"].as_object_mut().unwrap().remove("governor");
        json["memory"].as_object_mut().unwrap().remove("total_bytes");
        assert_eq!(serde_json::from_value::<Machine>(json).unwrap(), Machine::default());
    }

    #[test]
    fn limits_make_a_machine_smaller_but_never_larger() {
        let mut machine = Machine::default();
        machine.cpu.allowed_count = Some(8);
        machine.memory.total_bytes = Some(100);
        assert_eq!(machine.usable_cpus(), Some(8.0));
        machine.cgroup.cpus = Some(Limit::At(1.5));
        machine.cgroup.memory_bytes = Some(Limit::At(40));
        assert_eq!((machine.usable_cpus(), machine.usable_memory_bytes()), (Some(1.5), Some(40)));
        machine.cgroup.cpus = Some(Limit::At(99.0));
        machine.cgroup.memory_bytes = Some(Limit::Unlimited);
        assert_eq!((machine.usable_cpus(), machine.usable_memory_bytes()), (Some(8.0), Some(100)));
    }

    #[test]
    fn names_and_loads_are_parsed() {
        assert_eq!(pretty_name("NAME=x\nPRETTY_NAME=\"Debian 12\"").as_deref(), Some("Debian 12"));
        assert_eq!(pretty_name("NAME=x"), None);
        assert_eq!(load_average("0.50 0.25 0.10 1/100 42"), Some([0.5, 0.25, 0.1]));
        assert_eq!(load_average("0.50 x"), None);
    }
}
