//! `annvil dataset`.

use super::PathBuf;
use clap::{Args, Subcommand, ValueEnum};
use types::Metric;

/// `annvil dataset`.
#[derive(Debug, Args)]
pub(crate) struct DatasetArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: DatasetCommand,
}

/// The sub-commands.
#[derive(Debug, Subcommand)]
pub(crate) enum DatasetCommand {
    /// List the well-known sets, and those at hand
    List(ListArgs),
    /// Download a well-known set
    Fetch(FetchArgs),
    /// Say what a data set holds: rows, dimensions, norms, contrast, duplicates, columns
    Describe(SourceArgs),
    /// Check a data set and a sample of its truth; exit code 2 where it must not be used
    Validate(ValidateArgs),
    /// Write a data set in another format
    Convert(ConvertArgs),
    /// Make a seeded data set whose contrast is that of real embeddings
    Generate(GenerateArgs),
}

/// Where a data set comes from, and what its file does not say.
#[derive(Clone, Debug, Args)]
pub(crate) struct SourceArgs {
    /// File or directory, or `builtin`
    #[arg(value_name = "DATASET")]
    pub(crate) dataset: String,
    /// What the file does not say.
    #[command(flatten)]
    pub(crate) open: OpenArgs,
}

/// What a file does not say about itself.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct OpenArgs {
    /// Metric, where the file names none: l2, cosine, ip, hamming
    #[arg(long)]
    pub(crate) metric: Option<Metric>,
    /// File with the queries, where the base file holds none
    #[arg(long, value_name = "FILE")]
    pub(crate) queries: Option<PathBuf>,
    /// File with the true neighbours
    #[arg(long, value_name = "FILE")]
    pub(crate) truth: Option<PathBuf>,
    /// Parquet or CSV file with metadata of the base rows
    #[arg(long, value_name = "FILE")]
    pub(crate) columns: Option<PathBuf>,
    /// Parquet or CSV file with metadata of the query rows
    #[arg(long, value_name = "FILE")]
    pub(crate) query_columns: Option<PathBuf>,
    /// Only the first N rows of the base (its truth is then computed anew)
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Name of the id column (parquet, CSV)
    #[arg(long, value_name = "NAME")]
    pub(crate) id_column: Option<String>,
    /// Name of the vector column (parquet, CSV)
    #[arg(long, value_name = "NAME")]
    pub(crate) vector_column: Option<String>,
    /// Name of the column with true neighbours (parquet)
    #[arg(long, value_name = "NAME")]
    pub(crate) truth_column: Option<String>,
    /// Leave out rows with NaN or infinity (under cosine also zero rows) instead of refusing the set
    #[arg(long)]
    pub(crate) drop_bad_rows: bool,
    /// Where computed truth and flat copies are kept
    #[arg(long, value_name = "DIR", env = "ANNVIL_CACHE_DIR")]
    pub(crate) cache_dir: Option<PathBuf>,
}

/// `annvil dataset list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only sets whose name holds this text
    pub(crate) pattern: Option<String>,
}

/// `annvil dataset fetch`.
#[derive(Debug, Args)]
pub(crate) struct FetchArgs {
    /// Name, as `annvil dataset list` shows it
    pub(crate) name: String,
    /// Folder to put it in
    #[arg(long, default_value = "data", value_name = "DIR")]
    pub(crate) to: PathBuf,
    /// Base address to take SET/FILE from instead of the known ones; may be repeated
    #[arg(long = "mirror", value_name = "URL")]
    pub(crate) mirrors: Vec<String>,
    /// Longest wait for a connection, for an answer, and for the next bytes
    #[arg(long, default_value = "60s", value_parser = types::units::parse_duration, value_name = "TIME")]
    pub(crate) fetch_timeout: std::time::Duration,
    /// Times to try each address
    #[arg(long, default_value_t = 4, value_name = "N")]
    pub(crate) tries: u32,
    /// Leave out the files that the set can do without
    #[arg(long)]
    pub(crate) no_optional: bool,
}

/// `annvil dataset validate`.
#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// The data set.
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Queries whose truth is recomputed; 0 for all
    #[arg(long, default_value_t = 100, value_name = "N")]
    pub(crate) sample: usize,
    /// Seed of the sample
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}

/// `annvil dataset convert`.
#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// The data set.
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// What to write: a directory, or a file ending in .hdf5
    #[arg(long, short)]
    pub(crate) out: PathBuf,
    /// Format to write; hdf5 where --out ends in .hdf5, else a directory
    #[arg(long, value_enum)]
    pub(crate) format: Option<FormatArg>,
    /// True neighbours to compute where the set has none; 0 for none
    #[arg(long, default_value_t = 100)]
    pub(crate) k: usize,
}

/// Formats that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatArg {
    /// Annvil's own dataset directory.
    Directory,
    /// One HDF5 file in the ann-benchmarks layout.
    Hdf5,
    /// A folder with base.fbin, queries.fbin and truth.ibin as big-ann has them.
    Fbin,
    /// A folder with train, test and neighbors parquet as VectorDBBench has them.
    Parquet,
}

/// `annvil dataset generate`.
#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    /// Directory to write
    #[arg(long, short)]
    pub(crate) out: PathBuf,
    /// Rows in the base
    #[arg(long, default_value_t = 10_000)]
    pub(crate) rows: usize,
    /// Queries
    #[arg(long, default_value_t = 1000)]
    pub(crate) queries: usize,
    /// Components of a vector
    #[arg(long, default_value_t = 128)]
    pub(crate) dim: usize,
    /// Leave out the metadata columns
    #[arg(long)]
    pub(crate) no_columns: bool,
    /// Clusters
    #[arg(long)]
    pub(crate) clusters: Option<usize>,
    /// Metric: l2, cosine, ip
    #[arg(long, default_value = "cosine")]
    pub(crate) metric: Metric,
    /// Type of a component: f32, f16, i8, u8; hamming takes bits
    #[arg(long, default_value = "f32")]
    pub(crate) element: types::Element,
    /// Seed of every random stream
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// True neighbours to compute; 0 for none
    #[arg(long, default_value_t = 100)]
    pub(crate) k: usize,
    /// Where computed truth is kept
    #[arg(long, value_name = "DIR", env = "ANNVIL_CACHE_DIR")]
    pub(crate) cache_dir: Option<PathBuf>,
}
