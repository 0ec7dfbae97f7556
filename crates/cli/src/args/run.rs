//! `annvil run`.

use super::{OpenArgs, PasswordArgs, PathBuf};
use clap::{Args, ValueEnum};
use std::time::Duration;

/// How rows are inserted.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LoadArg {
    /// The engine's fastest documented way
    Fastest,
    /// Ordinary inserts, so that all engines load by the same kind of statement
    Insert,
}

impl From<LoadArg> for engine::LoadMethod {
    fn from(arg: LoadArg) -> Self {
        match arg {
            LoadArg::Fastest => engine::LoadMethod::Fastest,
            LoadArg::Insert => engine::LoadMethod::Insert,
        }
    }
}

/// `annvil run`. What is given here replaces what the plan says.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Plan: quick, smoke, full, a TOML file, or a run directory whose plan is run again
    #[arg(long, default_value = "quick", value_name = "PLAN")]
    pub(crate) plan: String,
    /// Data set: `builtin`, a file or a directory; may be repeated
    #[arg(long = "dataset", short, value_name = "DATASET")]
    pub(crate) datasets: Vec<String>,
    /// Engine: a name, a definition file, or name:option=value,...; may be repeated
    #[arg(long = "engine", short, value_name = "ENGINE")]
    pub(crate) engines: Vec<String>,
    /// Address of a server that runs already, such as postgres://me@db1/bench: it goes to the first engine
    /// of its protocol that has none; an engine without an address is started by annvil; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) at: Vec<String>,
    /// Program of the server of an engine that annvil starts itself, such as
    /// mariadb=/opt/mariadb/bin/mariadbd; may be repeated
    #[arg(long = "program", value_name = "NAME=PATH")]
    pub(crate) programs: Vec<String>,
    /// Memory that a server started by annvil may use [default: half of the machine's]
    #[arg(long, value_parser = types::units::parse_bytes, value_name = "SIZE")]
    pub(crate) server_memory: Option<u64>,
    /// Processors of its own for such a server [default: all, shared with annvil]
    #[arg(long, value_name = "N")]
    pub(crate) server_cpus: Option<std::num::NonZeroU32>,
    /// Where such a server keeps its data [default: in the run directory, removed at the end]
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Passwords
    #[command(flatten)]
    pub(crate) passwords: PasswordArgs,
    /// Rows asked for
    #[arg(long)]
    pub(crate) k: Option<usize>,
    /// Efforts to sweep, such as 10,20,40
    #[arg(long = "effort", value_delimiter = ',', value_name = "N,...")]
    pub(crate) efforts: Vec<u64>,
    /// Build parameter of every engine that has it, such as m=16; may be repeated
    #[arg(long = "param", value_name = "NAME=VALUE")]
    pub(crate) params: Vec<String>,
    /// Numbers of clients, such as 1,2,4
    #[arg(long, value_delimiter = ',', value_name = "N,...")]
    pub(crate) clients: Vec<usize>,
    /// Windows measured at each point
    #[arg(long)]
    pub(crate) repeats: Option<usize>,
    /// Queries sent before the clock starts
    #[arg(long, value_name = "N")]
    pub(crate) warmup: Option<usize>,
    /// Shortest window, such as 2s
    #[arg(long, value_parser = types::units::parse_duration, value_name = "TIME")]
    pub(crate) min_window: Option<Duration>,
    /// Measure also with this filter, such as "cat10 = {q}"; may be repeated
    #[arg(long = "filter", value_name = "FILTER")]
    pub(crate) filters: Vec<String>,
    /// Threads that insert, each with its own connection
    #[arg(long, value_name = "N")]
    pub(crate) load_workers: Option<usize>,
    /// How rows are inserted: by each engine's fastest way, or by ordinary inserts for all
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) load: Option<LoadArg>,
    /// Rows in an insert [default: 1000, or as the engine's definition says]
    #[arg(long, value_name = "N")]
    pub(crate) batch: Option<usize>,
    /// Column that gets an ordinary index of its own; may be repeated
    #[arg(long = "index-column", value_name = "COLUMN")]
    pub(crate) index_columns: Vec<String>,
    /// Threads of a build; 0 for all CPUs
    #[arg(long, value_name = "N")]
    pub(crate) build_threads: Option<usize>,
    /// Seed of every random stream
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Measure without recall
    #[arg(long)]
    pub(crate) no_recall: bool,
    /// Exit code 3 where an engine reaches this recall at no effort
    #[arg(long, value_name = "RECALL")]
    pub(crate) min_recall: Option<f64>,
    /// Run directory; runs/TIME-PLAN where none is given
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Go on with a run that was interrupted: --out's, or the newest unfinished below runs/
    #[arg(long)]
    pub(crate) resume: bool,
    /// Replace the run in --out; use a data set although its checks fail (the run is then marked)
    #[arg(long)]
    pub(crate) force: bool,
    /// Show what would be done, created and dropped, with an estimate, and stop
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not write the report page
    #[arg(long)]
    pub(crate) no_report: bool,
    /// Longest load [default: 1day]
    #[arg(long, value_parser = types::units::parse_duration, value_name = "TIME")]
    pub(crate) load_timeout: Option<Duration>,
    /// Longest build call [default: 1day]
    #[arg(long, value_parser = types::units::parse_duration, value_name = "TIME")]
    pub(crate) build_timeout: Option<Duration>,
    /// Longest wait for the index to be ready after the build call [default: 4h]
    #[arg(long, value_parser = types::units::parse_duration, value_name = "TIME")]
    pub(crate) ready_timeout: Option<Duration>,
    /// Longest wait for one answer [default: 1m]
    #[arg(long, value_parser = types::units::parse_duration, value_name = "TIME")]
    pub(crate) query_timeout: Option<Duration>,
    /// Longest that all windows of a point may take [default: 1h]
    #[arg(long, value_parser = types::units::parse_duration, value_name = "TIME")]
    pub(crate) point_timeout: Option<Duration>,
    /// Share of failed queries above which a point is not valid [default: 0.01]
    #[arg(long, value_name = "SHARE")]
    pub(crate) max_errors: Option<f64>,
    /// Share of the client's own time above which a point is marked client_limited [default: 0.1]
    #[arg(long, value_name = "SHARE")]
    pub(crate) max_client_share: Option<f64>,
    /// Share of the CPUs that annvil may use before a server's point is marked client_limited [default: 0.8]
    #[arg(long, value_name = "SHARE")]
    pub(crate) max_client_cpu: Option<f64>,
    /// What the data files do not say.
    #[command(flatten)]
    pub(crate) open: OpenArgs,
}
