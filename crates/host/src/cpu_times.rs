//! What all processors of the machine did: shows whether something else was running beside us.

use crate::tree::Tree;
use serde::{Deserialize, Serialize};

/// Seconds since the machine started, summed over processors (the first line of `/proc/stat`).
/// The difference of two readings says what the machine did between them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CpuTimes {
    /// Running programs or the kernel.
    pub busy_s: f64,
    /// Idle.
    pub idle_s: f64,
    /// Idle while I/O was under way.
    pub io_wait_s: f64,
    /// Taken by the virtual machine's host for others.
    pub stolen_s: f64,
}

impl CpuTimes {
    /// The times until now; none where the system does not tell.
    pub fn read() -> Option<Self> {
        CpuTimes::parse(&Tree::machine().text("proc/stat")?, ticks_per_second())
    }

    /// What was spent since `before`.
    pub fn since(self, before: CpuTimes) -> CpuTimes {
        CpuTimes {
            busy_s: self.busy_s - before.busy_s,
            idle_s: self.idle_s - before.idle_s,
            io_wait_s: self.io_wait_s - before.io_wait_s,
            stolen_s: self.stolen_s - before.stolen_s,
        }
    }

    fn parse(text: &str, ticks: f64) -> Option<Self> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let numbers: Vec<u64> =
            line.split_whitespace().map(|word| word.parse().ok()).collect::<Option<_>>()?;
        // user nice system idle iowait irq softirq steal; guest time is part of user.
        let sum = |fields: &[usize]| {
            let spent = fields
                .iter()
                .try_fold(0_u64, |sum, field| Some(sum.saturating_add(*numbers.get(*field)?)))?;
            Some(spent as f64 / ticks)
        };
        Some(CpuTimes {
            busy_s: sum(&[0, 1, 2, 5, 6])?,
            idle_s: sum(&[3])?,
            io_wait_s: sum(&[4])?,
            stolen_s: sum(&[7])?,
        })
    }
}

/// The unit of times in `/proc`.
pub(crate) fn ticks_per_second() -> f64 {
    rustix::param::clock_ticks_per_second() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_all_processors_is_read() {
        let text = "cpu  100 10 50 1000 20 1 2 7 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        let times = CpuTimes::parse(text, 100.0).unwrap();
        assert_eq!(times, CpuTimes { busy_s: 1.63, idle_s: 10.0, io_wait_s: 0.2, stolen_s: 0.07 });
        assert_eq!(CpuTimes::parse("cpu0 1 2 3", 100.0), None);
        assert_eq!(CpuTimes::parse("cpu 1 x 3", 100.0), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn time_goes_on() {
        let before = CpuTimes::read().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(50));
        let spent = CpuTimes::read().unwrap().since(before);
        assert!(spent.busy_s + spent.idle_s + spent.io_wait_s + spent.stolen_s > 0.0, "{spent:?}");
    }
}
