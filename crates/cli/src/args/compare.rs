//! `annvil compare`.

use super::PathBuf;
use clap::Args;

/// `annvil compare`.
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Run directory to compare with
    #[arg(value_name = "RUN_A")]
    pub(crate) a: PathBuf,
    /// Run directory in question
    #[arg(value_name = "RUN_B")]
    pub(crate) b: PathBuf,
    /// Share by which a throughput or an index size must differ to be called moved
    #[arg(long, default_value_t = 0.05, value_parser = share, value_name = "SHARE")]
    pub(crate) least_effect: f64,
}

/// A share such as 0.05.
fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=1.0).contains(&value) => Ok(value),
        _ => Err("a share is between 0 and 1, such as 0.05 for 5 %".into()),
    }
}
