//! The data set that is built into the program, so that a first run needs no file and no network:
//! 10,000 base rows and 500 queries of 384 float16, sentence embeddings (all-MiniLM-L6-v2) of the
//! one-line descriptions of Debian packages, with the packages' section, size and architecture. It
//! has no truth.

use crate::{Dataset, DatasetError, OpenOptions, npy, parquet};
use std::{path::Path, sync::Arc};
use types::{ByteStore, Metric};

/// Bytes at an address that suits every kernel.
#[repr(C, align(64))]
struct Aligned<T: ?Sized>(T);

static BASE: &Aligned<[u8]> = &Aligned(*include_bytes!("../builtin/base.npy"));
static QUERIES: &Aligned<[u8]> = &Aligned(*include_bytes!("../builtin/queries.npy"));
static COLUMNS: &[u8] = include_bytes!("../builtin/columns.parquet");
static QUERY_COLUMNS: &[u8] = include_bytes!("../builtin/query-columns.parquet");

/// Opens the built-in data set.
///
/// # Errors
/// None that a user could cause: the files are part of the program.
pub fn builtin() -> Result<Dataset, DatasetError> {
    let options = OpenOptions::default();
    let vectors = |name: &str, bytes: &'static [u8]| {
        let store: Arc<dyn ByteStore> = Arc::new(bytes);
        npy::vectors_in(Path::new(name), store, name, &options).map(|flat| flat.vectors)
    };
    let base = vectors("built-in base", &BASE.0)?;
    let queries = vectors("built-in queries", &QUERIES.0)?;
    let mut dataset = Dataset::new("builtin", base, queries);
    dataset.metric = Some(Metric::Cosine);
    let columns = |name: &str, bytes, rows| parquet::read_columns_in(Path::new(name), bytes, rows).map(Some);
    dataset.columns = columns("built-in columns", COLUMNS, dataset.base.rows())?;
    dataset.query_columns = columns("built-in query columns", QUERY_COLUMNS, dataset.queries.rows())?;
    Ok(dataset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::{ColumnType, Element};

    #[test]
    fn it_has_vectors_and_columns_of_one_length() {
        let set = builtin().unwrap();
        assert_eq!((set.base.rows(), set.queries.rows(), set.base.dim()), (10_000, 500, 384));
        assert_eq!((set.base.element(), set.ids.len(), set.truth.is_none()), (Element::F16, 10_000, true));
        let columns = set.columns.as_ref().unwrap();
        let kinds: Vec<_> = columns.iter().map(|c| (c.name.as_str(), c.kind())).collect();
        assert!(kinds.contains(&("section", ColumnType::Text)), "{kinds:?}");
        assert!(kinds.contains(&("installed_kib", ColumnType::Int)), "{kinds:?}");
        assert!(kinds.contains(&("arch_all", ColumnType::Bool)), "{kinds:?}");
        assert_eq!(set.query_columns.as_ref().unwrap().rows(), 500);
        let first = set.base.row(0);
        let norm: f32 = first.iter().map(|v| v * v).sum();
        assert!((norm - 1.0).abs() < 0.01, "embeddings are of unit length: {norm}");
    }
}
