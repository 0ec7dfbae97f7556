//! Where Annvil keeps what can be made again.

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
