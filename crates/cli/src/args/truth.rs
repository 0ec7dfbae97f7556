//! `annvil truth`.

use super::{OpenArgs, PathBuf};
use clap::Args;

/// `annvil truth`.
#[derive(Debug, Args)]
pub(crate) struct TruthArgs {
    /// File or directory, or `builtin`
    #[arg(value_name = "DATASET")]
    pub(crate) dataset: String,
    /// Neighbours of each query
    #[arg(long, default_value_t = 100)]
    pub(crate) k: usize,
    /// Only rows that pass, such as "cat10 = {q} AND num < 100000"; may be repeated
    #[arg(long = "filter", value_name = "FILTER")]
    pub(crate) filters: Vec<String>,
    /// File to write: .ibin (big-ann), .hdf5 or .json; the cache keeps it in any case
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Compare with the truth that the data set brings, instead of writing
    #[arg(long)]
    pub(crate) compare: bool,
    /// Threads; all CPUs where none is given
    #[arg(long)]
    pub(crate) threads: Option<usize>,
    /// Instruction set, for tests and benchmarks: portable, neon, avx2, avx512; the answer is the same
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub(crate) kernel: Option<String>,
    /// What the file does not say.
    #[command(flatten)]
    pub(crate) open: OpenArgs,
}
