//! Annvil's own data set: a directory whose `dataset.toml` says what every file holds.
//!
//! ```text
//! dataset.toml            kind, format version, name, metric, shapes, files with size and BLAKE3,
//!                         content hashes, where the truth comes from
//! base.fbin               (or .u8bin, .i8bin, .f16bin, .bits) u32 rows, u32 dim, then the rows
//! queries.fbin            the same
//! ids.parquet             where ids are not row numbers
//! columns.parquet, query-columns.parquet, truth.parquet, filtered-truth.parquet, filters.json
//! ```
//!
//! What is here: writing it whole or not at all, and opening it with its vectors mapped. What is not:
//! foreign formats. Truth names row numbers here, whatever ids the rows have.

mod manifest;
#[cfg(test)]
mod tests;

use crate::{Dataset, DatasetError, OpenOptions, mapping::Mapped, parquet};
pub use manifest::{ContentHashes, FileEntries, FileEntry, Manifest, Provenance, Shape, TruthEntry};
use std::{
    fs::{self, File},
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    sync::Arc,
};
use types::{ByteStore, Element, Ids, Vectors};

/// The file that makes a directory a data set.
pub const MANIFEST: &str = "dataset.toml";

/// Bytes before the rows: u32 rows, u32 dimension.
const HEADER_BYTES: usize = 8;

/// Files up to this size are hashed at every opening; larger ones by [`verify`], on request.
const CHECKED_BYTES: u64 = 64 << 20;

/// Whether `path` is such a directory, or its `dataset.toml`.
pub fn is_directory(path: &Path) -> bool {
    path.join(MANIFEST).is_file() || path.file_name().is_some_and(|name| name == MANIFEST)
}

/// Writes `dataset` to the new directory `dir`. Everything is written under another name and
/// renamed at the end, so that there is never half a data set under `dir`.
///
/// # Errors
/// Where `dir` exists already or cannot be written.
pub fn write(dataset: &Dataset, dir: &Path, provenance: &Provenance) -> Result<Manifest, DatasetError> {
    let mut made = None;
    staged(dir, |part| {
        let base = write_vectors(part, "base", &dataset.base)?;
        let queries = write_vectors(part, "queries", &dataset.queries)?;
        made =
            Some(write_rest(dataset, part, provenance, FileEntries { base, queries, ..Default::default() })?);
        Ok(())
    })?;
    made.ok_or_else(|| DatasetError::invalid(dir, "nothing was written"))
}

/// As [`write`], for vectors that do not fit in memory: `make` writes `base` and `queries` into the
/// directory that it is given (under the names of [`vector_file`]) and gives the data set of which
/// they are the mapped vectors.
///
/// # Errors
/// As [`write`], and those of `make`.
pub(crate) fn write_made(
    dir: &Path,
    provenance: &Provenance,
    make: impl FnOnce(&Path) -> Result<Dataset, DatasetError>,
) -> Result<Manifest, DatasetError> {
    let mut made = None;
    staged(dir, |part| {
        let dataset = make(part)?;
        let base = entry(part, &vector_file("base", dataset.base.element()))?;
        let queries = entry(part, &vector_file("queries", dataset.queries.element()))?;
        made = Some(write_rest(
            &dataset,
            part,
            provenance,
            FileEntries { base, queries, ..Default::default() },
        )?);
        Ok(())
    })?;
    made.ok_or_else(|| DatasetError::invalid(dir, "nothing was written"))
}

/// Everything but the vectors; the manifest comes last.
fn write_rest(
    dataset: &Dataset,
    part: &Path,
    provenance: &Provenance,
    vectors: FileEntries,
) -> Result<Manifest, DatasetError> {
    let files = write_tables(dataset, part, vectors)?;
    let manifest = Manifest::new(dataset, provenance, files);
    let path = part.join(MANIFEST);
    let text = manifest.to_text().map_err(|e| DatasetError::invalid(&path, e))?;
    save(&path, text.as_bytes())?;
    Ok(manifest)
}

/// Runs `fill` on a new directory beside `dir`, and renames that to `dir` when it succeeded.
pub(crate) fn staged(
    dir: &Path,
    fill: impl FnOnce(&Path) -> Result<(), DatasetError>,
) -> Result<(), DatasetError> {
    if dir.exists() {
        return Err(DatasetError::invalid(dir, "exists already; remove it or name another directory"));
    }
    let parent = dir.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(DatasetError::io("create", parent))?;
    let name = dir.file_name().map(|n| n.to_string_lossy().into_owned());
    let name = name.ok_or_else(|| DatasetError::invalid(dir, "is no name for a new directory"))?;
    let part = parent.join(format!(".{name}.{}.part", std::process::id()));
    if part.exists() {
        fs::remove_dir_all(&part).map_err(DatasetError::io("remove", &part))?;
    }
    fs::create_dir(&part).map_err(DatasetError::io("create", &part))?;
    let done = fill(&part).and_then(|()| fs::rename(&part, dir).map_err(DatasetError::io("rename", &part)));
    if done.is_err() {
        // The error that is reported is the first one.
        let _gone = fs::remove_dir_all(&part);
    }
    done
}

fn write_tables(dataset: &Dataset, dir: &Path, mut files: FileEntries) -> Result<FileEntries, DatasetError> {
    let by_row = Ids::RowNumbers(dataset.base.rows());
    if !matches!(dataset.ids, Ids::RowNumbers(_)) {
        parquet::write_ids(&dir.join("ids.parquet"), &dataset.ids)?;
        files.ids = Some(entry(dir, "ids.parquet")?);
    }
    for (columns, name, slot) in [
        (&dataset.columns, "columns.parquet", &mut files.columns),
        (&dataset.query_columns, "query-columns.parquet", &mut files.query_columns),
    ] {
        if let Some(columns) = columns {
            parquet::write_columns(&dir.join(name), columns)?;
            *slot = Some(entry(dir, name)?);
        }
    }
    if let Some(truth) = &dataset.truth {
        parquet::write_truth(&dir.join("truth.parquet"), truth, &by_row)?;
        files.truth = Some(entry(dir, "truth.parquet")?);
    }
    if !dataset.filtered.is_empty() {
        parquet::write_filtered(&dir.join("filtered-truth.parquet"), &dataset.filtered, &by_row)?;
        files.filtered_truth = Some(entry(dir, "filtered-truth.parquet")?);
        files.filters = Some(entry(dir, "filters.json")?);
    }
    Ok(files)
}

fn write_vectors(dir: &Path, part: &str, vectors: &Vectors) -> Result<FileEntry, DatasetError> {
    let name = vector_file(part, vectors.element());
    let path = dir.join(&name);
    let count = |n: usize| {
        u32::try_from(n).map_err(|_large| DatasetError::invalid(&path, format!("{n} is too many")))
    };
    let (rows, dim) = (count(vectors.rows())?, count(vectors.dim())?);
    let file = File::create(&path).map_err(DatasetError::io("create", &path))?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    let mut body = || -> std::io::Result<()> {
        out.write_all(&rows.to_le_bytes())?;
        out.write_all(&dim.to_le_bytes())?;
        for row in 0..vectors.rows() {
            out.write_all(vectors.row_bytes(row))?;
        }
        out.flush()?;
        out.get_ref().sync_all()
    };
    body().map_err(DatasetError::io("write", &path))?;
    entry(dir, &name)
}

/// The name of the vector file of `part` (base or queries).
pub(crate) fn vector_file(part: &str, element: Element) -> String {
    let ending = match element {
        Element::F32 => "fbin",
        Element::F16 => "f16bin",
        Element::I8 => "i8bin",
        Element::U8 => "u8bin",
        Element::Bit => "bits",
    };
    format!("{part}.{ending}")
}

fn save(path: &Path, bytes: &[u8]) -> Result<(), DatasetError> {
    let mut file = File::create(path).map_err(DatasetError::io("create", path))?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(DatasetError::io("write", path))
}

fn entry(dir: &Path, name: &str) -> Result<FileEntry, DatasetError> {
    let path = dir.join(name);
    let bytes = fs::metadata(&path).map_err(DatasetError::io("read", &path))?.len();
    Ok(FileEntry { file: name.to_owned(), bytes, blake3: file_hash(&path)? })
}

fn file_hash(path: &Path) -> Result<String, DatasetError> {
    let store = Mapped::open(path)?;
    let mut hasher = blake3::Hasher::new();
    hasher.update_rayon(store.bytes());
    Ok(hasher.finalize().to_hex().to_string())
}

/// Opens the directory at `path` (or the directory of the `dataset.toml` at `path`). Vectors are
/// mapped; files up to 64 MB are held against their BLAKE3, larger ones against their size.
///
/// # Errors
/// Where a file is missing (with the command that makes it), was changed, or says another shape than
/// the manifest; where the manifest is of an unknown kind or a newer version.
pub fn open(path: &Path, options: &OpenOptions) -> Result<Dataset, DatasetError> {
    let dir = root(path);
    let manifest = Manifest::read(&dir.join(MANIFEST))?;
    for file in manifest.files.all() {
        check(&dir, &manifest, file, file.bytes <= CHECKED_BYTES)?;
    }
    let files = &manifest.files;
    let base = read_vectors(&dir.join(&files.base.file), manifest.base)?;
    let queries = read_vectors(&dir.join(&files.queries.file), manifest.queries)?;
    let mut dataset = Dataset::new(manifest.name.clone(), base, queries);
    dataset.metric = options.metric.or(manifest.metric);
    let (by_row, by_query) = (Ids::RowNumbers(dataset.base.rows()), Ids::RowNumbers(dataset.queries.rows()));
    if let Some(ids) = &files.ids {
        dataset.ids = parquet::read_ids_file(&dir.join(&ids.file), dataset.base.rows())?;
    }
    for (file, ids, slot) in [
        (&files.columns, &by_row, &mut dataset.columns),
        (&files.query_columns, &by_query, &mut dataset.query_columns),
    ] {
        if let Some(file) = file {
            *slot = Some(parquet::read_columns_by_row(&dir.join(&file.file), ids.len())?);
        }
    }
    let own = OpenOptions::default();
    let found: Vec<_> = {
        let against = parquet::Against {
            ids: &by_row,
            query_ids: None,
            queries: dataset.queries.rows(),
            columns: dataset.columns.as_ref(),
        };
        let tables = [&files.truth, &files.filtered_truth].into_iter().flatten();
        tables.map(|f| parquet::read_truth(&dir.join(&f.file), &own, &against)).collect::<Result<_, _>>()?
    };
    for table in found {
        dataset.truth = dataset.truth.or(table.truth);
        dataset.filtered.extend(table.filtered);
    }
    Ok(dataset)
}

/// Reads only the manifest.
///
/// # Errors
/// As [`open`], without looking at the other files.
pub fn manifest(path: &Path) -> Result<Manifest, DatasetError> {
    Manifest::read(&root(path).join(MANIFEST))
}

/// Holds every file against its BLAKE3, however large.
///
/// # Errors
/// At the first file that is missing or changed.
pub fn verify(path: &Path) -> Result<(), DatasetError> {
    let dir = root(path);
    let manifest = Manifest::read(&dir.join(MANIFEST))?;
    manifest.files.all().try_for_each(|file| check(&dir, &manifest, file, true))
}

fn root(path: &Path) -> PathBuf {
    match path.file_name() {
        Some(name) if name == MANIFEST => path.parent().unwrap_or(Path::new("")).to_owned(),
        _ => path.to_owned(),
    }
}

fn check(dir: &Path, manifest: &Manifest, file: &FileEntry, hash: bool) -> Result<(), DatasetError> {
    let path = dir.join(&file.file);
    let remedy = match &manifest.provenance.command {
        Some(command) => format!("make the data set again with: {command}"),
        None => "make the data set again with `annvil dataset convert`".to_owned(),
    };
    let found = match fs::metadata(&path) {
        Ok(meta) => meta.len(),
        Err(_missing) => {
            let reason = format!("is missing, though {MANIFEST} lists it; {remedy}");
            return Err(DatasetError::invalid(&path, reason));
        }
    };
    if found != file.bytes {
        let reason = format!("has {found} bytes, {MANIFEST} says {}; {remedy}", file.bytes);
        return Err(DatasetError::invalid(&path, reason));
    }
    if hash && file_hash(&path)? != file.blake3 {
        let reason =
            format!("was changed since it was written (another BLAKE3 than {MANIFEST} says); {remedy}");
        return Err(DatasetError::invalid(&path, reason));
    }
    Ok(())
}

/// Maps a vector file.
pub(crate) fn read_vectors(path: &Path, shape: Shape) -> Result<Vectors, DatasetError> {
    let store: Arc<Mapped> = Mapped::open(path)?;
    let count = |at: usize| {
        let raw = store.bytes().get(at..at + 4).and_then(|raw| raw.try_into().ok());
        raw.map(u32::from_le_bytes).and_then(|n| usize::try_from(n).ok())
    };
    let header = (count(0), count(4));
    let Shape { rows, dim, element } = shape;
    if header != (Some(rows), Some(dim)) {
        let reason =
            format!("its header says {header:?} rows and dimensions, {MANIFEST} says {rows} and {dim}");
        return Err(DatasetError::invalid(path, reason));
    }
    Vectors::view(store, HEADER_BYTES, element.row_bytes(dim), rows, dim, element)
        .map_err(|e| DatasetError::invalid(path, e.to_string()))
}
