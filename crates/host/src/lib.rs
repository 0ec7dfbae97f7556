//! The machine that measures: what it is, what processes on it use, where a client thread's time goes.
//!
//! What is here: [`Machine`] (facts for the manifest and for `doctor`), [`ProcessSampler`] (memory, CPU,
//! I/O of a process or a process tree over time), [`CpuTimes`] (is the machine busy with something else),
//! [`ThreadClock`] (the time ledger of design rule 2), [`server`] (database servers started and stopped on
//! this machine). What is not: queries and their latencies, printing.
//!
//! Everything comes from `/proc` and `/sys`. What cannot be read, and everything on a system without
//! them, is none, which means unknown; nothing is guessed. Reading is apart from parsing: each
//! parser is a function of a text, so it is tested on any system with texts from others.

mod cgroup;
mod cpu;
mod cpu_times;
mod describe;
mod disk;
mod ledger;
mod limits;
mod machine;
mod memory;
mod process;
mod sampler;
pub mod server;
mod tree;

pub use cgroup::Cgroup;
pub use cpu::{Cpu, NumaNode};
pub use cpu_times::CpuTimes;
pub use disk::Disk;
pub use ledger::{ThreadClock, ThreadLedger};
pub use limits::{Limit, Limits};
pub use machine::Machine;
pub use memory::Memory;
pub use process::{ProcessSample, Scope};
pub use sampler::ProcessSampler;
