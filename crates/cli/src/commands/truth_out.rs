//! The files that `annvil truth` and `annvil truth merge` write.

use crate::{args::TruthFormat, exit::usage_error};
use dataset::Dataset;
use runner::truth::MergedJob;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use types::{Metric, Truth};

/// What a truth is of: enough to tell whether it fits a data set.
pub(super) struct TruthOf {
    pub(super) name: String,
    pub(super) metric: Metric,
    pub(super) k: usize,
    pub(super) rows: u64,
    pub(super) dim: u64,
    base_hash: String,
    queries_hash: String,
    columns_hash: Option<String>,
}

impl TruthOf {
    pub(super) fn of_dataset(dataset: &Dataset, metric: Metric, k: usize) -> TruthOf {
        let hashes = dataset.hashes();
        TruthOf {
            name: dataset.name.clone(),
            metric,
            k,
            rows: dataset.base.rows() as u64,
            dim: dataset.base.dim() as u64,
            base_hash: hashes.base.clone(),
            queries_hash: hashes.queries.clone(),
            columns_hash: hashes.columns.clone(),
        }
    }

    pub(super) fn of_parts(merged: &MergedJob) -> TruthOf {
        let job = &merged.job;
        TruthOf {
            name: merged.dataset.clone(),
            metric: job.metric,
            k: job.k as usize,
            rows: job.rows,
            dim: job.dim,
            base_hash: merged.base_hash.clone(),
            queries_hash: job.queries_hash.clone(),
            columns_hash: job.columns_hash.clone(),
        }
    }

    /// What differs from `other`, as `what, ours, theirs`.
    pub(super) fn difference(&self, other: &TruthOf) -> Option<(&'static str, String, String)> {
        let parts = |of: &TruthOf| {
            let columns = of.columns_hash.clone().filter(|_| self.columns_hash.is_some());
            [
                ("metric", of.metric.to_string()),
                ("base", of.base_hash.clone()),
                ("queries", of.queries_hash.clone()),
                ("columns", columns.unwrap_or_else(|| "none".into())),
            ]
        };
        let mut pairs = parts(self).into_iter().zip(parts(other));
        pairs.find(|(a, b)| a.1 != b.1).map(|(a, b)| (a.0, a.1, b.1))
    }

    /// How it was made, for a file beside the truth.
    fn provenance(&self, filter: Option<&str>) -> Value {
        json!({
            "metric": self.metric, "k": self.k, "filter": filter, "method": "exact search in float64",
            "tool": format!("annvil {}", env!("CARGO_PKG_VERSION")), "base_hash": self.base_hash,
            "queries_hash": self.queries_hash, "columns_hash": filter.and(self.columns_hash.as_ref()),
        })
    }
}

/// Where truths go, known before anything is computed: one file, or a folder with one for each filter
/// and an `index.json`.
pub(super) struct Out {
    /// The file of each case.
    files: Vec<PathBuf>,
    filters: Vec<Option<String>>,
    format: TruthFormat,
    folder: Option<PathBuf>,
}

impl Out {
    /// `filters` as typed; `format` for a folder.
    pub(super) fn new(path: &Path, format: TruthFormat, filters: &[Option<String>]) -> anyhow::Result<Out> {
        let shown = path.display();
        let ending = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
        let formats = [TruthFormat::Ibin, TruthFormat::Hdf5, TruthFormat::Json];
        let known = formats.into_iter().find(|format| format.ending() == ending);
        let is_folder = path.is_dir() || shown.to_string().ends_with('/');
        let out = match known {
            Some(format) if !is_folder => {
                if filters.len() > 1 {
                    let count = filters.len();
                    let text = format!(
                        "--out {shown} holds one truth, there are {count}: name a folder (--out truths/)"
                    );
                    return Err(usage_error(text));
                }
                Out { files: vec![path.to_owned()], filters: filters.to_vec(), format, folder: None }
            }
            None if !is_folder && (filters.len() == 1 || !ending.is_empty()) => {
                return Err(usage_error(format!(
                    "--out {shown}: write a truth as .ibin (big-ann), .hdf5 or .json, or name a folder (--out truths/)"
                )));
            }
            _ => {
                let width = filters.len().to_string().len();
                let name = |(i, filter): (usize, &Option<String>)| {
                    let slug = slug(filter.as_deref().unwrap_or("all rows"));
                    path.join(format!("{:0width$}-{slug}.{}", i + 1, format.ending()))
                };
                let files = filters.iter().enumerate().map(name).collect();
                Out { files, filters: filters.to_vec(), format, folder: Some(path.to_owned()) }
            }
        };
        let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !parent.is_dir() {
            return Err(usage_error(format!("--out {shown}: there is no folder {}", parent.display())));
        }
        if out.format == TruthFormat::Hdf5
            && let Some(there) = out.files.iter().find(|file| file.exists())
        {
            let there = there.display();
            return Err(usage_error(format!("{there} exists already; remove it or name another file")));
        }
        Ok(out)
    }

    /// Whether the vectors are written too.
    pub(super) fn needs_vectors(&self) -> bool {
        self.format == TruthFormat::Hdf5
    }

    /// The file of a case.
    pub(super) fn target(&self, case: usize) -> &Path {
        &self.files[case]
    }

    /// Writes the truth of a case. Formats without room for where it comes from get a file beside
    /// them that says it.
    pub(super) fn write(
        &self,
        case: usize,
        dataset: Option<&Dataset>,
        truth: &Truth,
        of: &TruthOf,
    ) -> anyhow::Result<()> {
        if let Some(folder) = &self.folder {
            let fault = |e| usage_error(format!("cannot create {}: {e}", folder.display()));
            std::fs::create_dir_all(folder).map_err(fault)?;
        }
        let path = self.target(case);
        let provenance = of.provenance(self.filters[case].as_deref());
        if self.format != TruthFormat::Json {
            let mut beside = path.as_os_str().to_owned();
            beside.push(".json");
            write_whole(Path::new(&beside), &serde_json::to_vec_pretty(&provenance)?)?;
        }
        match (self.format, dataset) {
            (TruthFormat::Ibin, _) => dataset::write::truth_ibin(path, truth)?,
            (TruthFormat::Json, _) => write_json(truth, &provenance, path)?,
            (TruthFormat::Hdf5, Some(dataset)) => {
                let mut whole = dataset.clone();
                (whole.truth, whole.metric) = (Some(truth.clone()), Some(of.metric));
                dataset::write::hdf5(&whole, path)?;
            }
            (TruthFormat::Hdf5, None) => return Err(no_vectors(path)),
        }
        Ok(())
    }

    /// Writes the index of a folder.
    pub(super) fn finish(&self, of: &TruthOf) -> anyhow::Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let mut index = of.provenance(None);
        if let Some(index) = index.as_object_mut() {
            index.remove("filter");
        }
        let filtered = self.filters.iter().any(Option::is_some);
        index["columns_hash"] = json!(of.columns_hash.as_ref().filter(|_| filtered));
        let file = |(file, filter): (&PathBuf, &Option<String>)| json!({ "file": file.file_name().map(|n| n.to_string_lossy()), "filter": filter });
        index["truths"] = self.files.iter().zip(&self.filters).map(file).collect();
        write_whole(&folder.join("index.json"), &serde_json::to_vec_pretty(&index)?)
    }
}

/// That a format needs what parts do not have.
pub(super) fn no_vectors(path: &Path) -> anyhow::Error {
    let path = path.display();
    usage_error(format!(
        "{path}: HDF5 holds the vectors too, parts do not; give the data set with --dataset, or write .ibin"
    ))
}

/// A filter as a part of a file name: `cat10-q-and-num-100000`.
fn slug(filter: &str) -> String {
    let mut slug = String::new();
    for word in filter.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()) {
        if slug.len() + word.len() >= 48 {
            break;
        }
        if !slug.is_empty() {
            slug.push('-');
        }
        slug.push_str(&word.to_ascii_lowercase());
    }
    slug
}

fn write_json(truth: &Truth, provenance: &Value, path: &Path) -> anyhow::Result<()> {
    let lists: Vec<Value> = (0..truth.queries())
        .map(|query| {
            let rows: Vec<u32> = truth.of(query).iter().map(|n| n.row).collect();
            let distances: Vec<f64> = truth.of(query).iter().map(|n| n.distance).collect();
            json!({ "query": query, "matching": truth.matching(query), "rows": rows, "distances": distances })
        })
        .collect();
    let mut whole = provenance.clone();
    whole["lists"] = json!(lists);
    write_whole(path, &serde_json::to_vec(&whole)?)
}

/// Writes a file that is there whole or not at all.
fn write_whole(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    let fault = |e: std::io::Error| usage_error(format!("cannot write {}: {e}", path.display()));
    std::fs::write(&temporary, bytes).map_err(fault)?;
    std::fs::rename(&temporary, path).map_err(fault)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_a_file_for_each_filter_and_one_file_holds_one_truth() {
        let filters = [None, Some("cat10 = {q} AND num < 100000".to_owned())];
        let out = Out::new(Path::new("truths/"), TruthFormat::Json, &filters).expect("a folder");
        assert_eq!(out.target(0), Path::new("truths/1-all-rows.json"));
        assert_eq!(out.target(1), Path::new("truths/2-cat10-q-and-num-100000.json"));
        let fault = |path: &str, filters: &[Option<String>]| {
            Out::new(Path::new(path), TruthFormat::Ibin, filters).err().expect("refused").to_string()
        };
        assert!(fault("t.ibin", &filters).contains("name a folder"));
        assert!(fault("t.npy", &filters).contains(".ibin (big-ann)"));
        assert!(fault("t", &filters[..1]).contains(".ibin (big-ann)"));
        assert!(fault("no-such-folder/t.ibin", &filters[..1]).contains("there is no folder"));
        assert!(Out::new(Path::new("t.ibin"), TruthFormat::Json, &filters[..1]).is_ok());
    }
}
