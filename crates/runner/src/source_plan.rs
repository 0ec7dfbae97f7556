//! What a plan says of a data set beside its path.

use dataset::OpenOptions;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use types::Metric;

/// What the files of a data set do not say about themselves.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SourcePlan {
    /// File with the queries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queries: Option<PathBuf>,
    /// File with the true neighbours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truth: Option<PathBuf>,
    /// File with metadata of the base rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns: Option<PathBuf>,
    /// File with metadata of the query rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query_columns: Option<PathBuf>,
    /// Name of the id column.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id_column: Option<String>,
    /// Name of the vector column.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vector_column: Option<String>,
    /// Name of the column with true neighbours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truth_column: Option<String>,
    /// Leave out rows with NaN or infinity, under cosine also rows that are all zero.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub drop_bad_rows: bool,
}

impl SourcePlan {
    /// What to tell `dataset::open`, with what a plan says elsewhere.
    pub fn open_options(
        &self,
        metric: Option<Metric>,
        limit: Option<usize>,
        cache_dir: Option<PathBuf>,
    ) -> OpenOptions {
        // Taken apart, so that a new field is not forgotten here.
        let SourcePlan {
            queries,
            truth,
            columns,
            query_columns,
            id_column,
            vector_column,
            truth_column,
            drop_bad_rows,
        } = self.clone();
        OpenOptions {
            metric,
            queries,
            truth,
            columns,
            query_columns,
            limit,
            id_column,
            vector_column,
            truth_column,
            cache_dir,
            drop_bad_rows,
        }
    }
}
