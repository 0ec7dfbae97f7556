//! The rows of the fake engine.

use crate::reference::{distance, nearest};
use crate::{Batch, EngineError, ErrorKind};
use std::collections::HashMap;
use std::ops::Range;
use types::{Columns, Filter, Metric};

/// Rows in the order of insertion; a key inserted again takes a new place.
pub(super) struct Store {
    dim: usize,
    metric: Metric,
    keys: Vec<u64>,
    vectors: Vec<f32>,
    live: Vec<bool>,
    places: HashMap<u64, usize>,
    segments: Vec<(Range<usize>, Option<Columns>)>,
}

impl Store {
    pub(super) fn new(dim: usize, metric: Metric) -> Self {
        Store {
            dim,
            metric,
            keys: Vec::new(),
            vectors: Vec::new(),
            live: Vec::new(),
            places: HashMap::new(),
            segments: Vec::new(),
        }
    }

    pub(super) fn rows(&self) -> usize {
        self.places.len()
    }

    pub(super) fn dim(&self) -> usize {
        self.dim
    }

    pub(super) fn bytes(&self) -> u64 {
        (self.rows() * (self.dim * 4 + 8)) as u64
    }

    /// Whether the key was ever inserted, deleted or not.
    pub(super) fn knew(&self, key: u64) -> bool {
        self.keys.contains(&key)
    }

    pub(super) fn check(&self, batch: &Batch<'_>, any_dimension: bool) -> Result<(), EngineError> {
        let refused = |what: String| Err(EngineError::new(ErrorKind::Refused, what));
        if batch.vectors.dim() != self.dim && !any_dimension {
            return refused(format!(
                "fake: vectors of {} dimensions, the table has {}",
                batch.vectors.dim(),
                self.dim
            ));
        }
        let rows = batch.keys.end.saturating_sub(batch.keys.start);
        if rows != batch.vectors.rows() as u64 {
            return refused(format!("fake: {rows} keys for {} vectors", batch.vectors.rows()));
        }
        if let Some(key) = batch.keys.clone().find(|key| self.places.contains_key(key)) {
            return refused(format!("fake: key {key} is in the table already"));
        }
        Ok(())
    }

    pub(super) fn insert(&mut self, batch: &Batch<'_>) {
        let start = self.keys.len();
        for (i, key) in batch.keys.clone().enumerate() {
            self.places.insert(key, self.keys.len());
            self.keys.push(key);
            self.live.push(true);
            let mut row = batch.vectors.row(i).into_owned();
            row.resize(self.dim, 0.0);
            self.vectors.extend_from_slice(&row);
        }
        self.segments.push((start..self.keys.len(), batch.columns.cloned()));
    }

    /// Takes the rows inserted by the last call away again.
    pub(super) fn lose_last_batch(&mut self) {
        if let Some((places, _)) = self.segments.last() {
            let keys = self.keys[places.clone()].to_vec();
            self.delete(&keys, false);
        }
    }

    /// Deletes keys; as ghosts they are counted no more but still found.
    pub(super) fn delete(&mut self, keys: &[u64], ghosts: bool) {
        for key in keys {
            if let Some(place) = self.places.remove(key) {
                self.live[place] = ghosts;
            }
        }
    }

    /// The `wanted` nearest rows that pass `filter`, nearest first.
    pub(super) fn scan(
        &self,
        query: &[f32],
        wanted: usize,
        filter: Option<&Filter>,
    ) -> Result<Vec<u64>, EngineError> {
        let mut found = Vec::with_capacity(self.keys.len());
        for (places, columns) in &self.segments {
            let passing = match (filter, columns) {
                (None, _) => None,
                (Some(filter), Some(columns)) => Some(filter.rows(columns).map_err(refused)?),
                (Some(filter), None) => {
                    let empty = Columns::default();
                    Some(filter.rows(&empty).map_err(refused)?)
                }
            };
            for (i, place) in places.clone().enumerate() {
                if self.live[place] && passing.as_ref().is_none_or(|rows| rows.contains(i)) {
                    let row = &self.vectors[place * self.dim..(place + 1) * self.dim];
                    found.extend(distance(self.metric, query, row).map(|d| (d, self.keys[place])));
                }
            }
        }
        Ok(nearest(found, wanted).into_iter().map(|(_, key)| key).collect())
    }

    /// Those of `keys` whose rows pass `filter`, in the same order.
    pub(super) fn keep_passing(&self, keys: Vec<u64>, filter: &Filter) -> Vec<u64> {
        let passes = |key: &u64| {
            let Some(&place) = self.places.get(key) else { return false };
            let segment = self.segments.iter().find(|(places, _)| places.contains(&place));
            segment.is_some_and(|(places, columns)| {
                columns.as_ref().is_some_and(|columns| filter.passes(columns, place - places.start))
            })
        };
        keys.into_iter().filter(passes).collect()
    }
}

fn refused(error: types::FilterError) -> EngineError {
    EngineError::caused(ErrorKind::Refused, format!("fake: {error}"), error)
}
