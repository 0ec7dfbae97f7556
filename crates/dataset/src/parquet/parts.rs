//! Which files make up a set: several parts in order, a glob, and the names that VectorDBBench uses.

use crate::DatasetError;
use std::{
    cmp::Ordering,
    fs,
    path::{Path, PathBuf},
};

/// The files found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The base vectors' parts, in order.
    pub(crate) base: Vec<PathBuf>,
    /// The query vectors' parts, where they lie beside the base under a usual name.
    pub(crate) queries: Vec<PathBuf>,
    /// `neighbors.parquet`.
    pub(crate) truth: Option<PathBuf>,
    /// `neighbors_*.parquet`: the case (`int_99p`) and the file.
    pub(crate) filtered: Vec<(String, PathBuf)>,
    /// `filtered-truth.parquet`: all cases in one table.
    pub(crate) filtered_table: Option<PathBuf>,
    /// `scalar_labels.parquet`.
    pub(crate) labels: Option<PathBuf>,
    /// `columns.parquet`.
    pub(crate) columns: Option<PathBuf>,
    /// `query-columns.parquet`.
    pub(crate) query_columns: Option<PathBuf>,
    /// What was chosen among several, for the user.
    pub(crate) notices: Vec<String>,
}

impl Layout {
    /// Whether there is truth of any kind.
    pub(crate) fn has_truth(&self) -> bool {
        self.truth.is_some() || !self.filtered.is_empty() || self.filtered_table.is_some()
    }
}

/// Finds the files that belong to `path`: a directory, one part, a single file, or a glob
/// (`*` and `?` in the file name).
pub(crate) fn find(path: &Path) -> Result<Layout, DatasetError> {
    if path.is_dir() {
        return directory(path, None);
    }
    let name = file_name(path);
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !path.exists() && name.contains(['*', '?']) {
        let mut base: Vec<PathBuf> =
            list(parent)?.into_iter().filter(|file| glob(&name, &file_name(file))).collect();
        if base.is_empty() {
            return Err(DatasetError::invalid(path, "no file matches"));
        }
        base.sort_by(|a, b| natural(&file_name(a), &file_name(b)));
        complete(parent, &base)?;
        let beside = base.iter().all(|file| TRAIN.contains(&split(file).0.as_str()));
        let found =
            if beside { directory(parent, Some(base))? } else { Layout { base, ..Layout::default() } };
        return Ok(found);
    }
    if !path.exists() {
        let reason = "no such file or directory".to_owned();
        return Err(DatasetError::invalid(path, reason));
    }
    let (stem, part) = split(path);
    if !TRAIN.contains(&stem.as_str()) {
        return Ok(Layout { base: vec![path.to_owned()], ..Layout::default() });
    }
    let base = match part {
        None => vec![path.to_owned()],
        Some(_) => group(&list(parent)?, &stem, parent)?,
    };
    let several = base.len();
    let mut layout = directory(parent, Some(base))?;
    if several > 1 {
        layout.notices.push(format!("{name} is one of {several} parts; all are read, in order"));
    }
    Ok(layout)
}

const TRAIN: [&str; 2] = ["train", "shuffle_train"];
const TEST: [&str; 3] = ["test", "queries", "query"];

fn directory(dir: &Path, base: Option<Vec<PathBuf>>) -> Result<Layout, DatasetError> {
    let files = list(dir)?;
    let mut notices = Vec::new();
    let base = match base {
        Some(base) => base,
        None => {
            let (plain, shuffled) = (group(&files, TRAIN[0], dir)?, group(&files, TRAIN[1], dir)?);
            if !plain.is_empty() && !shuffled.is_empty() {
                notices.push(
                    "both train and shuffle_train are there; train is read (the rows are the same)"
                        .to_owned(),
                );
            }
            if plain.is_empty() { shuffled } else { plain }
        }
    };
    if base.is_empty() {
        let names: Vec<String> = files.iter().take(8).map(|file| file_name(file)).collect();
        let found = if names.is_empty() { "no parquet file at all".to_owned() } else { names.join(", ") };
        let reason =
            format!("no train.parquet, train-00-of-NN.parquet or shuffle_train... here, but {found}; ");
        return Err(DatasetError::invalid(
            dir,
            reason + "name the file with the base vectors, or a glob such as 'dir/base-*.parquet'",
        ));
    }
    let one = |wanted: &[&str]| files.iter().find(|f| wanted.contains(&split(f).0.as_str())).cloned();
    let mut queries = Vec::new();
    for stem in TEST {
        if queries.is_empty() {
            queries = group(&files, stem, dir)?;
        }
    }
    let mut filtered: Vec<(String, PathBuf)> = files
        .iter()
        .filter_map(|file| Some((split(file).0.strip_prefix("neighbors_")?.to_owned(), file.clone())))
        .collect();
    filtered.sort_by(|a, b| natural(&a.0, &b.0));
    Ok(Layout {
        base,
        queries,
        truth: one(&["neighbors", "truth"]),
        filtered,
        filtered_table: one(&["filtered-truth", "filtered_truth"]),
        labels: one(&["scalar_labels"]),
        columns: one(&["columns"]),
        query_columns: one(&["query-columns", "query_columns"]),
        notices,
    })
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The parquet files of `dir`.
fn list(dir: &Path) -> Result<Vec<PathBuf>, DatasetError> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).map_err(DatasetError::io("list", dir))? {
        let path = entry.map_err(DatasetError::io("list", dir))?.path();
        if path.extension().is_some_and(|end| end.eq_ignore_ascii_case("parquet")) && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The stem in lower case and, for `train-03-of-10.parquet`, part and number of parts.
fn split(path: &Path) -> (String, Option<(u64, u64)>) {
    let stem = path.file_stem().map(|s| s.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let parts = || {
        let (rest, total) = stem.rsplit_once("-of-")?;
        let (name, part) = rest.rsplit_once('-')?;
        Some((name.to_owned(), Some((part.parse().ok()?, total.parse().ok()?))))
    };
    parts().unwrap_or((stem.clone(), None))
}

/// The parts of `stem` among `files`, in order; the single file where there is one.
fn group(files: &[PathBuf], stem: &str, dir: &Path) -> Result<Vec<PathBuf>, DatasetError> {
    if let Some(single) = files.iter().find(|file| split(file) == (stem.to_owned(), None)) {
        return Ok(vec![single.clone()]);
    }
    let mut parts: Vec<PathBuf> = files.iter().filter(|file| split(file).0 == stem).cloned().collect();
    parts.sort_by_key(|file| split(file).1);
    complete(dir, &parts)?;
    Ok(parts)
}

/// Where names count their parts ("-00-of-02"), all must be there, from 0 or from 1.
fn complete(dir: &Path, files: &[PathBuf]) -> Result<(), DatasetError> {
    let parts: Vec<(u64, u64)> = files.iter().filter_map(|file| split(file).1).collect();
    let Some(&(first, total)) = parts.first().filter(|_| parts.len() == files.len()) else { return Ok(()) };
    let start = u64::from(first > 0);
    for (expected, &(part, of)) in (start..).zip(&parts) {
        if of != total {
            let reason = format!("parts of two sets, one of {total} files and one of {of}; keep one");
            return Err(DatasetError::invalid(dir, reason));
        }
        if part != expected {
            return Err(DatasetError::invalid(
                dir,
                format!("part {expected} of {total} is missing; get it anew"),
            ));
        }
    }
    if parts.len() as u64 != total {
        let reason = format!(
            "{} of {total} parts are here, part {} is missing",
            parts.len(),
            parts.len() as u64 + start
        );
        return Err(DatasetError::invalid(dir, reason + "; get it anew"));
    }
    Ok(())
}

/// Compares names so that `part-2` comes before `part-10`.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    loop {
        let (number_a, rest_a) = leading_number(a);
        let (number_b, rest_b) = leading_number(b);
        if let (Some(x), Some(y)) = (number_a, number_b) {
            match x.cmp(&y) {
                Ordering::Equal => (a, b) = (rest_a, rest_b),
                other => return other,
            }
            continue;
        }
        let (mut chars_a, mut chars_b) = (a.chars(), b.chars());
        match (chars_a.next(), chars_b.next()) {
            (None, None) => return Ordering::Equal,
            (x, y) if x != y => return x.cmp(&y),
            _ => (a, b) = (chars_a.as_str(), chars_b.as_str()),
        }
    }
}

fn leading_number(text: &str) -> (Option<u64>, &str) {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    (text[..end].parse().ok(), &text[end..])
}

/// Whether `name` matches `pattern`: `*` is any run of characters, `?` any one.
fn glob(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    // matched[j]: the pattern so far matches the first j characters.
    let mut matched = vec![false; name.len() + 1];
    matched[0] = true;
    for &p in &pattern {
        if p == '*' {
            for j in 1..matched.len() {
                matched[j] |= matched[j - 1];
            }
        } else {
            for j in (1..matched.len()).rev() {
                matched[j] = matched[j - 1] && (p == '?' || p == name[j - 1]);
            }
            matched[0] = false;
        }
    }
    matched[name.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_and_natural_order() {
        for (pattern, name, expected) in [
            ("train-*.parquet", "train-00-of-02.parquet", true),
            ("*.parquet", "a.parquet", true),
            ("a?c*", "abcdef", true),
            ("a?c*", "ac", false),
            ("a*b", "aXbY", false),
        ] {
            assert_eq!(glob(pattern, name), expected, "{pattern} {name}");
        }
        assert_eq!(natural("part-2", "part-10"), Ordering::Less);
        assert_eq!(natural("b", "a2"), Ordering::Greater);
    }

    #[test]
    fn a_missing_part_is_named() {
        let dir = tempfile::tempdir().unwrap();
        for part in ["00", "02"] {
            fs::write(dir.path().join(format!("train-{part}-of-03.parquet")), b"").unwrap();
        }
        let error = find(dir.path()).unwrap_err().to_string();
        assert!(error.contains("part 1 of 3 is missing"), "{error}");
        fs::write(dir.path().join("train-01-of-03.parquet"), b"").unwrap();
        let found = find(&dir.path().join("train-02-of-03.parquet")).unwrap();
        assert_eq!(found.base.len(), 3);
        assert_eq!(found.notices.len(), 1);
        fs::remove_file(dir.path().join("train-02-of-03.parquet")).unwrap();
        let error = find(dir.path()).unwrap_err().to_string();
        assert!(error.contains("part 2 is missing"), "{error}");
    }

    #[test]
    fn a_directory_without_a_base_says_what_it_found() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("points.parquet"), b"").unwrap();
        let error = find(dir.path()).unwrap_err().to_string();
        assert!(error.contains("points.parquet") && error.contains("glob"), "{error}");
    }
}
