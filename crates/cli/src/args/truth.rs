//! `annvil truth`.

use super::{OpenArgs, PathBuf};
use clap::{Args, Subcommand, ValueEnum, builder::ArgPredicate};
use std::{str::FromStr, time::Duration};

/// `annvil truth`.
#[derive(Debug, Args)]
#[command(subcommand_negates_reqs = true)]
pub(crate) struct TruthArgs {
    /// What to do with truths that are there.
    #[command(subcommand)]
    pub(crate) command: Option<TruthCommand>,
    /// File or directory, or `builtin` (a file named merge is ./merge)
    #[arg(value_name = "DATASET", required = true)]
    pub(crate) dataset: Option<String>,
    /// Neighbours of each query; with --check as many as the file has
    #[arg(long, default_value_t = 100, default_value_if("check", ArgPredicate::IsPresent, "1000000"))]
    pub(crate) k: usize,
    /// Only rows that pass, such as "cat10 = {q} AND num < 100000"; may be repeated: all are searched in
    /// one scan
    #[arg(long = "filter", value_name = "FILTER")]
    pub(crate) filters: Vec<String>,
    /// Also without a filter, in the same scan as the filters
    #[arg(long, requires = "filters")]
    pub(crate) unfiltered: bool,
    /// File to write: .ibin (big-ann), .hdf5 or .json; for several filters a folder; for a shard its part;
    /// the cache keeps truths in any case
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Format of the files in a folder
    #[arg(long, value_enum, default_value_t = TruthFormat::Ibin, value_name = "FORMAT")]
    pub(crate) format: TruthFormat,
    /// Compare with the truth that the data set brings, instead of writing
    #[arg(long)]
    pub(crate) compare: bool,
    /// Only shard N of M, from 1/M to M/M; --out takes its part for `annvil truth merge`
    #[arg(long, value_name = "N/M", requires = "out", conflicts_with = "compare")]
    pub(crate) shard: Option<Shard>,
    /// A truth to check.
    #[command(flatten)]
    pub(crate) checking: CheckFileArgs,
    /// How to search.
    #[command(flatten)]
    pub(crate) search: SearchArgs,
    /// What the file does not say.
    #[command(flatten)]
    pub(crate) open: OpenArgs,
}

/// A truth to check, ours or another tool's.
#[derive(Clone, Debug, Args)]
pub(crate) struct CheckFileArgs {
    /// Check this file of truth list by list, and say which rule orders its ties or what is wrong:
    /// ivecs, ibin, bin, gt, npy, hdf5, parquet, json, or a file of Annvil's cache
    #[arg(long, value_name = "FILE", conflicts_with_all = ["out", "compare", "shard", "unfiltered"])]
    pub(crate) check: Option<PathBuf>,
    /// Queries that are computed again, 0 for all; all where that takes a minute or so, where none is given
    #[arg(long, value_name = "N", requires = "check")]
    pub(crate) sample: Option<usize>,
    /// Only this case of a file with several filters
    #[arg(long, value_name = "NAME", requires = "check")]
    pub(crate) case: Option<String>,
}

/// How to search; the answer does not depend on it.
#[derive(Clone, Debug, Args)]
pub(crate) struct SearchArgs {
    /// Threads; all CPUs where none is given
    #[arg(long)]
    pub(crate) threads: Option<usize>,
    /// Memory that the search may take, such as 2GiB; the base is mapped and does not count
    #[arg(long, value_parser = types::units::parse_bytes, value_name = "SIZE")]
    pub(crate) memory: Option<u64>,
    /// Instruction set, for tests and benchmarks: portable, neon, avx2, avx512, amx
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub(crate) kernel: Option<String>,
    /// How pairs are ruled out, for tests and benchmarks
    #[arg(long, value_enum, default_value_t = MethodArg::Auto, value_name = "NAME", hide_short_help = true)]
    pub(crate) method: MethodArg,
    /// Whether filters share a scan, for tests and benchmarks
    #[arg(long, value_enum, default_value_t = FilterPlanArg::Auto, value_name = "PLAN", hide_short_help = true)]
    pub(crate) filter_plan: FilterPlanArg,
    /// How often the state is kept; a search that is killed loses at most this much
    #[arg(long, default_value = "30s", value_parser = types::units::parse_duration, value_name = "TIME", hide_short_help = true)]
    pub(crate) keep_every: Duration,
}

/// [`exact::Method`] on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MethodArg {
    /// The cheapest, judged on a sample.
    Auto,
    /// Products in float32.
    F32,
    /// Products of 8-bit integers with a proven bound.
    Int8,
    /// Products of 16-bit integers with a proven bound.
    Int16,
}

/// [`exact::Sharing`] on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FilterPlanArg {
    /// By the cost rule.
    Auto,
    /// All filters of the same queries in one scan.
    Scan,
    /// Each filter reads its own rows.
    Rows,
}

/// The sub-commands.
#[derive(Debug, Subcommand)]
pub(crate) enum TruthCommand {
    /// Merge the parts that --shard wrote, exactly as one run would have found it
    Merge(MergeArgs),
}

/// `annvil truth merge`.
#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// Parts, in any order
    #[arg(required = true, value_name = "PART")]
    pub(crate) parts: Vec<PathBuf>,
    /// File to write: .ibin (big-ann), .hdf5 or .json; for several filters a folder
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Format of the files in a folder
    #[arg(long, value_enum, default_value_t = TruthFormat::Ibin, value_name = "FORMAT")]
    pub(crate) format: TruthFormat,
    /// The data set that the parts are of: checked, and needed for .hdf5, which holds the vectors too
    #[arg(long, value_name = "DATASET")]
    pub(crate) dataset: Option<String>,
    /// What its file does not say.
    #[command(flatten)]
    pub(crate) open: OpenArgs,
}

/// Formats of a truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TruthFormat {
    /// big-ann: ids, then distances.
    Ibin,
    /// One HDF5 file in the ann-benchmarks layout, with the vectors.
    Hdf5,
    /// Lists of rows and distances, with what they are of.
    Json,
}

impl TruthFormat {
    /// The ending of its files.
    pub(crate) fn ending(self) -> &'static str {
        match self {
            TruthFormat::Ibin => "ibin",
            TruthFormat::Hdf5 => "hdf5",
            TruthFormat::Json => "json",
        }
    }
}

/// A shard as typed: 3/16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    /// Which, from 1.
    pub(crate) number: u32,
    /// Of how many.
    pub(crate) of: u32,
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/').and_then(|(n, m)| Some((n.parse().ok()?, m.parse().ok()?)));
        match parts {
            Some((number, of)) if 1 <= number && number <= of => Ok(Shard { number, of }),
            Some((0, of)) if of > 0 => Err(format!(
                "shards are numbered from 1: 1/{of} to {of}/{of}; where yours count from 0, add 1, as in $((SLURM_ARRAY_TASK_ID + 1))/{of}"
            )),
            _ => Err("write it like 3/16, from 1/16 to 16/16".to_owned()),
        }
    }
}
