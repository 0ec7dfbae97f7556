//! The facts of a machine as lines for people, and what about them may spoil a measurement.

use crate::{Limit, Machine};
use types::units;

const UNKNOWN: &str = "unknown";

impl Machine {
    /// Each fact as (name, value); `unknown` where it could not be read.
    pub fn describe(&self) -> Vec<(&'static str, String)> {
        let (cpu, memory, disk) = (&self.cpu, &self.memory, &self.disk);
        vec![
            ("system", text(self.system.as_ref())),
            ("kernel", text(self.kernel.as_ref())),
            ("architecture", self.architecture.clone()),
            ("CPU", text(cpu.model.as_ref())),
            (
                "processors",
                format!(
                    "{} logical, {} cores, {} sockets; allowed: {}",
                    text(cpu.logical.as_ref()),
                    text(cpu.cores.as_ref()),
                    text(cpu.sockets.as_ref()),
                    text(cpu.allowed.as_ref())
                ),
            ),
            ("CPU flags", joined(cpu.flags.as_deref())),
            ("caches", format!("L2 {}, L3 {}", size(cpu.l2_bytes), size(cpu.l3_bytes))),
            ("governor", joined(cpu.governor.as_deref())),
            ("boost", text(cpu.boost.map(|on| if on { "on" } else { "off" }).as_ref())),
            ("NUMA nodes", text(cpu.numa.as_ref().map(Vec::len).as_ref())),
            ("memory", format!("{}, {} available", size(memory.total_bytes), size(memory.available_bytes))),
            ("swap", format!("{}, {} free", size(memory.swap_total_bytes), size(memory.swap_free_bytes))),
            ("huge pages", text(memory.transparent_hugepages.as_ref())),
            ("CPU limit", limit(self.cgroup.cpus, |cpus| format!("{cpus} CPUs"))),
            ("memory limit", limit(self.cgroup.memory_bytes, units::bytes)),
            ("open files", limit(self.limits.open_files, units::count)),
            ("threads", limit(self.limits.threads, units::count)),
            ("disk", self.disk_line()),
            ("disk free", format!("{} of {}", size(disk.free_bytes), size(disk.total_bytes))),
            ("clock", text(self.clock_source.as_ref())),
            (
                "load",
                self.load_average
                    .map_or_else(|| UNKNOWN.into(), |[one, five, ten]| format!("{one} {five} {ten}")),
            ),
            ("seen", if self.hints.is_empty() { "nothing special".into() } else { self.hints.join("; ") }),
        ]
    }

    fn disk_line(&self) -> String {
        let kind = match self.disk.rotational {
            Some(true) => "says it turns",
            Some(false) => "solid state",
            None => "kind unknown",
        };
        format!("{} on {}, {kind}", text(self.disk.file_system.as_ref()), text(self.disk.device.as_ref()))
    }

    /// What may spoil a measurement here, a sentence each with what to do. Unknown facts give none.
    pub fn warnings(&self) -> Vec<String> {
        let mut found = Vec::new();
        if let Some(governor) = &self.cpu.governor
            && governor.iter().any(|name| name != "performance")
        {
            let names = governor.join(", ");
            found.push(format!(
                "CPU governor is {names}: figures will vary with the clock; set it to performance"
            ));
        }
        if let (Some([load, ..]), Some(cpus)) = (self.load_average, self.usable_cpus())
            && load > cpus / 2.0
        {
            found.push(format!(
                "load is {load:.1} on {cpus} CPUs: something else is running; wait until it has ended"
            ));
        }
        if let Some(clock) = &self.clock_source
            && matches!(clock.as_str(), "hpet" | "acpi_pm" | "jiffies")
        {
            found.push(format!(
                "clock source is {clock}, which costs a microsecond a reading; short latencies are too high"
            ));
        }
        if let (Some(total), Some(free)) = (self.memory.swap_total_bytes, self.memory.swap_free_bytes)
            && free < total / 2
        {
            let used = units::bytes(total - free);
            found.push(format!("{used} of swap is in use: memory was short; free it before measuring"));
        }
        if let Some(Limit::At(files)) = self.limits.open_files
            && files < 1024
        {
            found
                .push(format!("only {files} files may be open, and each client takes some; raise ulimit -n"));
        }
        found
    }
}

fn text<T: ToString>(value: Option<&T>) -> String {
    value.map_or_else(|| UNKNOWN.into(), T::to_string)
}

fn size(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| UNKNOWN.into(), units::bytes)
}

fn joined(words: Option<&[String]>) -> String {
    match words {
        None => UNKNOWN.into(),
        Some([]) => "none of interest".into(),
        Some(words) => words.join(" "),
    }
}

fn limit<T>(limit: Option<Limit<T>>, show: impl Fn(T) -> String) -> String {
    match limit {
        None => UNKNOWN.into(),
        Some(Limit::Unlimited) => "none".into(),
        Some(Limit::At(value)) => show(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(machine: &Machine, name: &str) -> String {
        machine.describe().into_iter().find(|(n, _)| *n == name).unwrap().1
    }

    #[test]
    fn what_is_not_known_says_so_and_warns_of_nothing() {
        let blank = Machine::default();
        for name in ["CPU", "governor", "memory limit", "load", "huge pages"] {
            assert_eq!(value(&blank, name), UNKNOWN, "{name}");
        }
        assert_eq!(blank.warnings(), Vec::<String>::new());
    }

    #[test]
    fn no_limit_is_not_unknown() {
        let mut machine = Machine::default();
        machine.cgroup.memory_bytes = Some(Limit::Unlimited);
        machine.cgroup.cpus = Some(Limit::At(1.5));
        assert_eq!(value(&machine, "memory limit"), "none");
        assert_eq!(value(&machine, "CPU limit"), "1.5 CPUs");
    }

    #[test]
    fn each_warning_names_its_figure() {
        let mut machine = Machine::default();
        machine.cpu.governor = Some(vec!["performance".into(), "powersave".into()]);
        machine.cpu.allowed_count = Some(2);
        machine.load_average = Some([1.5, 0.0, 0.0]);
        machine.clock_source = Some("hpet".into());
        machine.memory.swap_total_bytes = Some(4 << 30);
        machine.memory.swap_free_bytes = Some(1 << 30);
        machine.limits.open_files = Some(Limit::At(256));
        let warnings = machine.warnings();
        for (warning, word) in warnings.iter().zip(["powersave", "1.5", "hpet", "3.0 GiB", "256"]) {
            assert!(warning.contains(word), "{warning}");
        }
        assert_eq!(warnings.len(), 5);
        machine.cpu.governor = Some(vec!["performance".into()]);
        machine.load_average = Some([0.2, 0.0, 0.0]);
        assert_eq!(machine.warnings().len(), 3);
    }
}
