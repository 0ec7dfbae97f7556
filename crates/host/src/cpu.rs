//! The processor: model, cores, instruction sets, clock governor, NUMA nodes.

use crate::tree::{Tree, field, list_len};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Instruction sets that distance kernels use, by their names in `/proc/cpuinfo` (x86-64 and Arm).
const FLAGS: [&str; 22] = [
    "sse4_2",
    "f16c",
    "fma",
    "avx",
    "avx2",
    "avx_vnni",
    "avx512f",
    "avx512bw",
    "avx512vl",
    "avx512_vnni",
    "avx512_vpopcntdq",
    "avx512_bf16",
    "avx512_fp16",
    "amx_tile",
    "amx_int8",
    "amx_bf16",
    "asimd",
    "asimdhp",
    "asimddp",
    "sve",
    "sve2",
    "bf16",
];

/// Arm core names by part number of implementer 0x41 (the kernel's `cputype.h`).
const ARM_PARTS: [(&str, &str); 6] = [
    ("0xd08", "Arm Cortex-A72"),
    ("0xd0b", "Arm Cortex-A76"),
    ("0xd0c", "Arm Neoverse-N1"),
    ("0xd40", "Arm Neoverse-V1"),
    ("0xd49", "Arm Neoverse-N2"),
    ("0xd4f", "Arm Neoverse-V2"),
];

/// The processors of the machine and those this process may use. None is unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// Model, as the processor names itself.
    pub model: Option<String>,
    /// Processors that the scheduler sees and that are switched on.
    pub logical: Option<u32>,
    /// Cores; fewer than `logical` where a core runs two threads.
    pub cores: Option<u32>,
    /// Sockets.
    pub sockets: Option<u32>,
    /// Processors this process may run on, as a list such as `0-3,8`.
    pub allowed: Option<String>,
    /// How many those are.
    pub allowed_count: Option<u32>,
    /// Instruction sets of interest for distances (`avx2`, `avx512_vnni`, `asimd` = NEON …).
    pub flags: Option<Vec<String>>,
    /// Clock governor of each processor, different ones once (`performance`). In virtual machines
    /// it cannot be read as a rule, and is unknown then.
    pub governor: Option<Vec<String>>,
    /// Whether the clock may rise above its nominal rate.
    pub boost: Option<bool>,
    /// Size of one level 2 cache.
    pub l2_bytes: Option<u64>,
    /// Size of one level 3 cache.
    pub l3_bytes: Option<u64>,
    /// NUMA nodes.
    pub numa: Option<Vec<NumaNode>>,
}

/// Processors and memory that are close to each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NumaNode {
    /// Number of the node.
    pub node: u32,
    /// Its processors, as a list such as `0-3,8`.
    pub cpus: Option<String>,
    /// Its memory.
    pub memory_bytes: Option<u64>,
}

impl Cpu {
    pub(crate) fn read(tree: &Tree) -> Self {
        let info = tree.text("proc/cpuinfo").unwrap_or_default();
        let allowed = tree
            .text("proc/self/status")
            .and_then(|status| field(&status, "Cpus_allowed_list").map(String::from));
        let cpus = tree.numbered("sys/devices/system/cpu", "cpu");
        let topology = |file: &str| {
            let read = |cpu: &u32| tree.text(&format!("sys/devices/system/cpu/cpu{cpu}/topology/{file}"));
            // A processor that is switched off has no topology.
            count(cpus.iter().filter_map(read))
        };
        Cpu {
            model: model(&info),
            logical: logical(&info)
                .or_else(|| tree.text("sys/devices/system/cpu/online").and_then(|list| list_len(&list))),
            cores: topology("thread_siblings_list"),
            sockets: topology("physical_package_id"),
            allowed_count: allowed.as_deref().and_then(list_len),
            allowed,
            flags: flags(&info),
            governor: governor(tree, &cpus),
            boost: boost(tree),
            l2_bytes: cache(tree, 2),
            l3_bytes: cache(tree, 3),
            numa: numa(tree),
        }
    }
}

fn model(info: &str) -> Option<String> {
    if let Some(name) = field(info, "model name") {
        return Some(name.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    let (maker, part) = (field(info, "CPU implementer")?, field(info, "CPU part")?);
    let known = ARM_PARTS.iter().find(|(number, _)| maker == "0x41" && *number == part);
    Some(known.map_or_else(|| format!("implementer {maker} part {part}"), |(_, name)| (*name).into()))
}

fn logical(info: &str) -> Option<u32> {
    let lines = info.lines().filter(|line| line.split(':').next().is_some_and(|n| n.trim() == "processor"));
    u32::try_from(lines.count()).ok().filter(|count| *count > 0)
}

fn flags(info: &str) -> Option<Vec<String>> {
    let all: BTreeSet<&str> =
        field(info, "flags").or_else(|| field(info, "Features"))?.split_whitespace().collect();
    Some(FLAGS.iter().filter(|flag| all.contains(**flag)).map(|flag| (*flag).into()).collect())
}

/// The number of different values; none where there is no value.
fn count(values: impl Iterator<Item = String>) -> Option<u32> {
    let different: BTreeSet<String> = values.collect();
    u32::try_from(different.len()).ok().filter(|count| *count > 0)
}

fn governor(tree: &Tree, cpus: &[u32]) -> Option<Vec<String>> {
    let read = |cpu: &u32| tree.text(&format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"));
    let different: BTreeSet<String> = cpus.iter().filter_map(read).collect();
    (!different.is_empty()).then(|| different.into_iter().collect())
}

fn boost(tree: &Tree) -> Option<bool> {
    let off = tree.number("sys/devices/system/cpu/intel_pstate/no_turbo").map(|off| off == 0);
    off.or_else(|| tree.number("sys/devices/system/cpu/cpufreq/boost").map(|on| on == 1))
}

/// Size of the unified cache of `level` that the first processor uses.
fn cache(tree: &Tree, level: u64) -> Option<u64> {
    let folder = "sys/devices/system/cpu/cpu0/cache";
    let indexes = tree.numbered(folder, "index");
    let index = indexes.iter().find(|i| tree.number(&format!("{folder}/index{i}/level")) == Some(level))?;
    let kib: u64 = tree.text(&format!("{folder}/index{index}/size"))?.strip_suffix('K')?.parse().ok()?;
    kib.checked_mul(1024)
}

fn numa(tree: &Tree) -> Option<Vec<NumaNode>> {
    let folder = "sys/devices/system/node";
    let nodes: Vec<NumaNode> = tree
        .numbered(folder, "node")
        .into_iter()
        .map(|node| NumaNode {
            node,
            cpus: tree.text(&format!("{folder}/node{node}/cpulist")),
            memory_bytes: tree
                .text(&format!("{folder}/node{node}/meminfo"))
                .and_then(|text| node_total(&text)),
        })
        .collect();
    (!nodes.is_empty()).then_some(nodes)
}

/// Reads `Node 0 MemTotal:  24731708 kB`.
fn node_total(text: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.split_once("MemTotal:"))?.1;
    rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARM: &str = "\
processor\t: 0
Features\t: fp asimd evtstrm aes asimdhp asimddp sve bf16
CPU implementer\t: 0x41
CPU part\t: 0xd40

processor\t: 1
CPU implementer\t: 0x41
CPU part\t: 0xd40
";

    #[test]
    fn x86_and_arm_are_named() {
        let x86 =
            "processor\t: 0\nmodel name\t: Intel(R)  Xeon(R) Gold\nflags\t\t: fpu avx2 avx512f hypervisor\n";
        assert_eq!(model(x86).as_deref(), Some("Intel(R) Xeon(R) Gold"));
        assert_eq!(flags(x86), Some(vec!["avx2".into(), "avx512f".into()]));
        assert_eq!(model(ARM).as_deref(), Some("Arm Neoverse-V1"));
        assert_eq!(logical(ARM), Some(2));
        assert_eq!(flags(ARM).unwrap(), ["asimd", "asimdhp", "asimddp", "sve", "bf16"]);
        let odd = ARM.replace("0xd40", "0xfff");
        assert_eq!(model(&odd).as_deref(), Some("implementer 0x41 part 0xfff"));
        assert_eq!((model(""), logical(""), flags("")), (None, None, None));
    }

    #[test]
    fn a_nodes_memory_is_read() {
        assert_eq!(node_total("Node 0 MemTotal:       2048 kB\nNode 0 MemFree: 1 kB"), Some(2048 * 1024));
        assert_eq!(node_total("Node 0 MemFree: 1 kB"), None);
    }
}
