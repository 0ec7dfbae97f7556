//! What surrounds the process: its command line, and where it keeps what can be made again.

use std::path::PathBuf;

/// The cache: `--cache-dir`, else `$XDG_CACHE_HOME/annvil`, else `~/.cache/annvil`; none where
/// there is no home either.
pub(crate) fn cache_dir(given: Option<&PathBuf>) -> Option<PathBuf> {
    let from_env = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    given
        .cloned()
        .or_else(|| from_env("XDG_CACHE_HOME").map(|d| d.join("annvil")))
        .or_else(|| from_env("HOME").map(|d| d.join(".cache").join("annvil")))
}

/// The command line as records keep it, credentials masked.
#[expect(clippy::disallowed_methods, reason = "the one place that reads the command line beside clap")]
pub(crate) fn command_line() -> Vec<String> {
    record::mask_command(std::env::args())
}
