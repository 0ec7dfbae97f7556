//! `dataset.toml`.

use crate::{Dataset, DatasetError};
use serde::{Deserialize, Serialize};
use std::{fs, path::Path};
use types::{Element, Metric};

/// The only kind that this version knows: one dense vector a row.
pub(super) const KIND: &str = "dense";

/// The version of the layout that is written, and the newest that is read.
const FORMAT: i64 = 1;

/// What a data set directory holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// What a row is; `dense`.
    pub kind: String,
    /// Version of the layout.
    pub format: i64,
    /// Name of the set.
    pub name: String,
    /// Metric, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric: Option<Metric>,
    /// What the reader of the source said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// Shape of the base.
    pub base: Shape,
    /// Shape of the queries.
    pub queries: Shape,
    /// The files.
    pub files: FileEntries,
    /// Content hashes: the same for the same numbers in any format.
    pub hashes: ContentHashes,
    /// Where the truth comes from; none where there is no truth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truth: Option<TruthEntry>,
    /// Where everything comes from.
    pub provenance: Provenance,
}

/// Rows x dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    /// Number of rows.
    pub rows: usize,
    /// Components of a row.
    pub dim: usize,
    /// Type of a component.
    pub element: Element,
}

/// One file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// Name, in the directory.
    pub file: String,
    /// Size.
    pub bytes: u64,
    /// BLAKE3 of the file, 64 hex digits.
    pub blake3: String,
}

/// Every file by its role.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileEntries {
    /// Base vectors.
    pub base: FileEntry,
    /// Query vectors.
    pub queries: FileEntry,
    /// Ids, where they are not row numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ids: Option<FileEntry>,
    /// Metadata of the base.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns: Option<FileEntry>,
    /// Metadata of the queries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query_columns: Option<FileEntry>,
    /// True neighbours over all rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truth: Option<FileEntry>,
    /// True neighbours under filters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filtered_truth: Option<FileEntry>,
    /// Those filters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filters: Option<FileEntry>,
}

impl FileEntries {
    /// All files there are.
    pub fn all(&self) -> impl Iterator<Item = &FileEntry> {
        let optional =
            [&self.ids, &self.columns, &self.query_columns, &self.truth, &self.filtered_truth, &self.filters];
        [&self.base, &self.queries].into_iter().chain(optional.into_iter().flatten())
    }
}

/// [`crate::Hashes`], as written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContentHashes {
    /// Of the base vectors.
    pub base: String,
    /// Of the query vectors.
    pub queries: String,
    /// Of base and query columns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns: Option<String>,
    /// Of the truth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truth: Option<String>,
}

/// How the truth was made, and for what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TruthEntry {
    /// Metric.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric: Option<Metric>,
    /// Neighbours a query.
    pub k: usize,
    /// How: "exact scan ..." or "as given by FILE".
    pub method: String,
    /// Name and version of the program.
    pub tool: String,
    /// Content hash of the base it was made for.
    pub base: String,
    /// Content hash of the queries it was made for.
    pub queries: String,
}

/// Where a data set comes from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// The file or recipe that it was made from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The command that makes it again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// How the truth was made; "as given by the source" where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truth_method: Option<String>,
}

impl Manifest {
    pub(super) fn new(dataset: &Dataset, provenance: &Provenance, files: FileEntries) -> Self {
        let shape = |v: &types::Vectors| Shape { rows: v.rows(), dim: v.dim(), element: v.element() };
        let hashes = dataset.hashes();
        let truth = dataset.truth.as_ref().map(|truth| TruthEntry {
            metric: dataset.metric,
            k: truth.depth(),
            method: provenance.truth_method.clone().unwrap_or_else(|| "as given by the source".to_owned()),
            tool: concat!("annvil ", env!("CARGO_PKG_VERSION")).to_owned(),
            base: hashes.base.clone(),
            queries: hashes.queries.clone(),
        });
        Manifest {
            kind: KIND.to_owned(),
            format: FORMAT,
            name: dataset.name.clone(),
            metric: dataset.metric,
            notices: dataset.notices.clone(),
            base: shape(&dataset.base),
            queries: shape(&dataset.queries),
            files,
            hashes: ContentHashes {
                base: hashes.base.clone(),
                queries: hashes.queries.clone(),
                columns: hashes.columns.clone(),
                truth: hashes.truth.clone(),
            },
            truth,
            provenance: provenance.clone(),
        }
    }

    pub(super) fn to_text(&self) -> Result<String, String> {
        toml::to_string(self).map_err(|e| format!("dataset.toml cannot be made: {e}"))
    }

    /// Reads and checks `path`; kind and version come first, so that a newer file is refused by
    /// what it is and not by a field that this version does not know.
    pub(super) fn read(path: &Path) -> Result<Self, DatasetError> {
        let text = fs::read_to_string(path).map_err(DatasetError::io("read", path))?;
        let wrong = |e: toml::de::Error| DatasetError::invalid(path, e.to_string().trim().replace('\n', " "));
        let table: toml::Table = text.parse().map_err(wrong)?;
        match table.get("kind").and_then(toml::Value::as_str) {
            Some(KIND) => {}
            Some(other) => {
                let reason =
                    format!("kind {other:?} is not known; this version reads {KIND:?} (one vector a row)");
                return Err(DatasetError::invalid(path, reason));
            }
            None => {
                return Err(DatasetError::invalid(path, format!("no kind; a data set says kind = {KIND:?}")));
            }
        }
        match table.get("format").and_then(toml::Value::as_integer) {
            Some(1..=FORMAT) => {}
            Some(newer) => {
                let reason = format!("format {newer}, this version reads up to {FORMAT}: use a newer annvil");
                return Err(DatasetError::invalid(path, reason));
            }
            None => {
                return Err(DatasetError::invalid(
                    path,
                    format!("no format; a data set says format = {FORMAT}"),
                ));
            }
        }
        let manifest: Manifest = toml::from_str(&text).map_err(wrong)?;
        for file in manifest.files.all() {
            // A manifest from elsewhere must not make us read outside its directory.
            if file.file.is_empty() || file.file.contains(['/', '\\']) || file.file == ".." {
                let reason = format!("file {:?} is no plain name", file.file);
                return Err(DatasetError::invalid(path, reason));
            }
        }
        Ok(manifest)
    }
}
