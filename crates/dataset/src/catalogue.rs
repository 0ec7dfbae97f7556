//! The well-known public data sets: name, shape, metric, files and where they lie.
//!
//! What is here: the entries of `catalogue.toml` (data: a new set needs no Rust), look-up by name
//! with suggestions, and where each file of a set belongs on disk. What is not: transfers (see
//! [`crate::fetch`]).

use crate::{DatasetError, OpenOptions};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use types::Metric;

/// One set of the catalogue.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// Name, as its publisher has it; also its folder below the data directory.
    pub name: String,
    /// Short name of who publishes it.
    pub source: String,
    /// The publisher's own title.
    pub source_title: String,
    /// What checksums the publisher gives, in words.
    pub checksums: String,
    /// Base rows, where known.
    pub rows: Option<u64>,
    /// Queries, where known.
    pub queries: Option<u64>,
    /// Dimensions, where known.
    pub dim: Option<u64>,
    /// The metric in the publisher's word (`euclidean`, `jaccard`).
    pub metric: String,
    /// Type of a component: `f32`, `u8`, `i8`, `bit`, `set`, `sparse`.
    pub element: String,
    /// How its files are laid out.
    pub layout: Layout,
    /// What the publisher says of its size, in bytes, rounded.
    pub about_bytes: Option<u64>,
    /// What a user should know.
    pub note: Option<String>,
    /// Why it can be fetched but not opened yet. None where it can be opened.
    pub unsupported: Option<String>,
    /// Its files, the base vectors first.
    pub files: Vec<FileEntry>,
}

/// How the files of a set are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// One HDF5 file, as ann-benchmarks writes it.
    Hdf5,
    /// fbin, u8bin or i8bin with truth in the knn layout.
    BigAnn,
    /// A folder of parquet files.
    Vectordbbench,
    /// Sparse matrices.
    Csr,
    /// A packed folder.
    Archive,
}

impl Layout {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Layout::Hdf5 => "hdf5",
            Layout::BigAnn => "big-ann",
            Layout::Vectordbbench => "parquet",
            Layout::Csr => "csr",
            Layout::Archive => "archive",
        }
    }
}

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Base vectors; in an HDF5 file everything.
    Base,
    /// Queries.
    Queries,
    /// True neighbours over all rows.
    Truth,
    /// True neighbours under a filter.
    FilteredTruth,
    /// Labels of the base rows.
    Labels,
    /// Tag bags of base or query rows.
    Tags,
    /// Everything, packed.
    Archive,
}

/// One file of a set.
#[derive(Clone, Debug, Serialize)]
pub struct FileEntry {
    /// Name on disk.
    pub name: String,
    /// What it holds.
    pub role: Role,
    /// Where it lies, in the order in which the places are tried.
    pub urls: Vec<String>,
    /// Exact size on disk, where known.
    pub bytes: Option<u64>,
    /// SHA-256 of the file on disk in hex, where the publisher or a private mirror gives one.
    pub sha256: Option<String>,
    /// Whether the set is of use without it.
    pub optional: bool,
    /// Only the first so many rows of an fbin-like file; its header is rewritten.
    pub crop_rows: Option<u64>,
}

impl Entry {
    /// The metric, where Annvil has it.
    pub fn metric(&self) -> Option<Metric> {
        self.metric.parse().ok()
    }

    /// About how many bytes it takes on disk, for estimates: the publisher's figure, else from the
    /// shape. None where the shape is not known.
    pub fn disk_bytes(&self) -> Option<u64> {
        let width = match self.element.as_str() {
            "f32" => 4,
            "u8" | "i8" => 1,
            _ => return self.about_bytes,
        };
        let rows = self.rows?.checked_add(self.queries.unwrap_or(0))?;
        self.about_bytes.or_else(|| rows.checked_mul(self.dim?)?.checked_mul(width))
    }

    /// Its folder below the data directory `root`.
    pub fn dir(&self, root: &Path) -> PathBuf {
        root.join(&self.name)
    }

    /// What to open once it is fetched below `root`: exactly the files that fetching makes.
    ///
    /// # Errors
    /// Where a needed file is missing (the message names it and the command that brings it), or
    /// the set cannot be opened yet.
    pub fn local(&self, root: &Path) -> Result<(PathBuf, OpenOptions), DatasetError> {
        let dir = self.dir(root);
        for file in self.files.iter().filter(|file| !file.optional) {
            let path = dir.join(&file.name);
            if !path.is_file() {
                return Err(DatasetError::invalid(
                    &path,
                    format!(
                        "this file of {name} is missing; run: annvil dataset fetch {name}",
                        name = self.name
                    ),
                ));
            }
        }
        if let Some(why) = &self.unsupported {
            return Err(DatasetError::invalid(&dir, format!("{} cannot be opened yet: {why}", self.name)));
        }
        let of = |role| self.files.iter().find(|file| file.role == role).map(|file| dir.join(&file.name));
        let mut options = OpenOptions::default();
        let path = match self.layout {
            Layout::Vectordbbench => dir,
            Layout::Hdf5 | Layout::Csr | Layout::Archive => of(Role::Base).unwrap_or(dir),
            Layout::BigAnn => {
                options.queries = of(Role::Queries);
                options.truth = of(Role::Truth);
                of(Role::Base).unwrap_or(dir)
            }
        };
        if self.layout != Layout::Hdf5 {
            options.metric = self.metric();
        }
        Ok((path, options))
    }
}

/// All sets, in the order of the file: by publisher.
pub fn list() -> &'static [Entry] {
    static ENTRIES: OnceLock<Vec<Entry>> = OnceLock::new();
    ENTRIES.get_or_init(|| {
        parse(include_str!("catalogue.toml")).expect("the built-in catalogue is checked by a test")
    })
}

/// The set named `name`; case and the difference of `-` and `_` do not count.
///
/// # Errors
/// Where there is none; the message suggests the nearest names.
pub fn find(name: &str) -> Result<&'static Entry, DatasetError> {
    let wanted = plain(name);
    if let Some(entry) = list().iter().find(|entry| plain(&entry.name) == wanted) {
        return Ok(entry);
    }
    let nearest = suggestions(&wanted);
    let hint = if nearest.is_empty() { String::new() } else { format!("; near it: {}", nearest.join(", ")) };
    Err(DatasetError::Usage(format!(
        "no data set {name:?} in the catalogue{hint}; all of them: annvil dataset list"
    )))
}

fn plain(name: &str) -> String {
    name.trim().to_ascii_lowercase().replace('_', "-")
}

/// Up to four names that hold the wanted text, are held by it, or differ in few letters.
fn suggestions(wanted: &str) -> Vec<&'static str> {
    let mut near: Vec<(usize, &str)> = list()
        .iter()
        .filter_map(|entry| {
            let name = plain(&entry.name);
            let within = wanted.len() >= 3 && (name.contains(wanted) || wanted.contains(&name));
            let distance = edit_distance(wanted, &name);
            (within || distance <= 1 + name.len() / 4).then_some((distance, entry.name.as_str()))
        })
        .collect();
    near.sort_by_key(|(distance, _)| *distance);
    near.into_iter().take(4).map(|(_, name)| name).collect()
}

/// Levenshtein's distance (Wagner and Fischer 1974), by bytes.
fn edit_distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCatalogue {
    source: Vec<RawSource>,
    set: Vec<RawSet>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSource {
    name: String,
    title: String,
    mirrors: Vec<String>,
    checksums: String,
    #[serde(default)]
    bundle: Vec<RawFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSet {
    source: String,
    name: String,
    rows: Option<u64>,
    queries: Option<u64>,
    dim: Option<u64>,
    metric: String,
    element: String,
    layout: Layout,
    about_bytes: Option<u64>,
    note: Option<String>,
    unsupported: Option<String>,
    #[serde(default)]
    bundle: bool,
    files: Vec<RawFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    path: Option<String>,
    url: Option<String>,
    #[serde(default)]
    also: Vec<String>,
    role: Role,
    save_as: Option<String>,
    bytes: Option<u64>,
    sha256: Option<String>,
    #[serde(default)]
    optional: bool,
    crop_rows: Option<u64>,
    #[serde(default)]
    values: Vec<String>,
}

fn parse(text: &str) -> Result<Vec<Entry>, String> {
    let raw: RawCatalogue = toml::from_str(text).map_err(|error| error.to_string())?;
    let sources = raw.source;
    raw.set.into_iter().map(|set| entry(set, &sources)).collect()
}

fn entry(set: RawSet, sources: &[RawSource]) -> Result<Entry, String> {
    let source = sources
        .iter()
        .find(|source| source.name == set.source)
        .ok_or_else(|| format!("{}: unknown source {:?}", set.name, set.source))?;
    // VectorDBBench's files lie in a folder of the set's name, the others beside each other.
    let folder = if set.layout == Layout::Vectordbbench { format!("{}/", set.name) } else { String::new() };
    let bundle = if set.bundle { source.bundle.as_slice() } else { &[] };
    let mut files = Vec::new();
    for raw in set.files.iter().chain(bundle) {
        expand(raw, source, &folder, &mut files).map_err(|error| format!("{}: {error}", set.name))?;
    }
    Ok(Entry {
        name: set.name,
        source: source.name.clone(),
        source_title: source.title.clone(),
        checksums: source.checksums.clone(),
        rows: set.rows,
        queries: set.queries,
        dim: set.dim,
        metric: set.metric,
        element: set.element,
        layout: set.layout,
        about_bytes: set.about_bytes,
        note: set.note,
        unsupported: set.unsupported,
        files,
    })
}

/// Adds the file, or one for each of its values.
fn expand(raw: &RawFile, source: &RawSource, folder: &str, files: &mut Vec<FileEntry>) -> Result<(), String> {
    let one = |value: &str| -> Result<FileEntry, String> {
        let (place, urls): (String, Vec<String>) = match (&raw.path, &raw.url) {
            (Some(path), None) => {
                let path = path.replace("{}", value);
                let urls = source.mirrors.iter().map(|base| format!("{base}/{folder}{path}")).collect();
                (path, urls)
            }
            (None, Some(url)) => (url.clone(), std::iter::once(url).chain(&raw.also).cloned().collect()),
            _ => return Err("a file has either path or url".to_owned()),
        };
        let last = place.rsplit('/').next().unwrap_or(&place).to_owned();
        Ok(FileEntry {
            name: raw.save_as.as_ref().map_or(last, |name| name.replace("{}", value)),
            role: raw.role,
            urls,
            bytes: raw.bytes,
            sha256: raw.sha256.clone(),
            optional: raw.optional,
            crop_rows: raw.crop_rows,
        })
    };
    if raw.values.is_empty() {
        files.push(one("")?);
    }
    for value in &raw.values {
        files.push(one(value)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_entry_is_whole() {
        let entries = parse(include_str!("catalogue.toml")).unwrap();
        assert!(entries.len() > 90, "{} sets", entries.len());
        let mut names = HashSet::new();
        for entry in &entries {
            assert!(names.insert(plain(&entry.name)), "{} stands twice", entry.name);
            assert!(
                entry.metric().is_some() || entry.unsupported.is_some(),
                "{}: metric {}",
                entry.name,
                entry.metric
            );
            let mut on_disk = HashSet::new();
            for file in &entry.files {
                assert!(on_disk.insert(&file.name), "{}: {} twice", entry.name, file.name);
                assert!(!file.name.contains(['/', '\\', '{']), "{}: {}", entry.name, file.name);
                assert!(!file.urls.is_empty(), "{}: {} lies nowhere", entry.name, file.name);
                assert!(file.urls.iter().all(|url| url.starts_with("http") && !url.contains('{')));
            }
            let needed = entry.files.iter().filter(|file| !file.optional).count();
            assert!(needed > 0 && !entry.files[0].optional, "{}", entry.name);
            if entry.layout == Layout::BigAnn {
                let (rows, dim) = (entry.rows.unwrap(), entry.dim.unwrap());
                let width = if entry.element == "f32" { 4 } else { 1 };
                assert_eq!(entry.files[0].bytes, Some(8 + rows * dim * width), "{}", entry.name);
            }
        }
    }

    #[test]
    fn parts_and_filters_of_a_parquet_set_are_named_one_by_one() {
        let entry = find("Cohere-Large-10M").unwrap();
        let names: Vec<&str> = entry.files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names[0], "shuffle_train-00-of-10.parquet");
        assert!(names.contains(&"shuffle_train-09-of-10.parquet"));
        assert!(names.contains(&"neighbors_int_99.5p.parquet"));
        assert!(names.contains(&"neighbors_labels_label_0.1p.parquet"));
        assert_eq!(entry.files.iter().filter(|file| !file.optional).count(), 12);
        assert!(entry.files[0].urls[0].ends_with("/cohere_large_10m/shuffle_train-00-of-10.parquet"));
        assert_eq!(entry.disk_bytes(), Some(10_001_000 * 768 * 4));
    }

    #[test]
    fn a_wrong_name_gets_the_nearest_ones() {
        for (wrong, right) in [
            ("sift-128-euclidian", "sift-128-euclidean"),
            ("glove", "glove-100-angular"),
            ("cohere_medium_1M ", "cohere_medium_1m"),
            ("bigan-10M", "bigann-10M"),
        ] {
            match find(wrong) {
                Ok(entry) => assert_eq!(entry.name, right),
                Err(error) => assert!(error.to_string().contains(right), "{error}"),
            }
        }
        let error = find("qqqqqqqqqqqqqqqqqqqqqqqqqqqq").unwrap_err().to_string();
        assert!(error.contains("annvil dataset list") && !error.contains("near it"), "{error}");
    }

    #[test]
    fn a_missing_file_is_named_with_the_command_that_brings_it() {
        let root = tempfile::tempdir().unwrap();
        let entry = find("bigann-10M").unwrap();
        let dir = entry.dir(root.path());
        std::fs::create_dir_all(&dir).unwrap();
        for name in ["base.u8bin", "queries.u8bin", "truth.ibin"] {
            let error = entry.local(root.path()).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("annvil dataset fetch bigann-10M"), "{error}");
            std::fs::write(dir.join(name), "").unwrap();
        }
        let (path, options) = entry.local(root.path()).unwrap();
        assert_eq!(path, dir.join("base.u8bin"));
        assert_eq!(options.truth, Some(dir.join("truth.ibin")));
        assert_eq!(options.metric, Some(Metric::L2));
    }
}
