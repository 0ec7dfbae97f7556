//! The state of a search on disk, so that a search that was stopped or killed goes on.

use crate::{Preparation, event::Event};
use dataset::Dataset;
use exact::{ExactError, PartHeader, PartReader, Partial, Search, write_part};
use std::{
    path::PathBuf,
    time::{Duration, Instant},
};
use types::units;

/// Saving may take this part of the time at most: states of gigabytes are saved more rarely.
const SAVING_SHARE: u32 = 20;

/// Where the state of one search is kept.
pub(super) struct Keep {
    /// The file; none where there is no place for it.
    pub(super) path: Option<PathBuf>,
    /// What the search is of, with nothing searched.
    pub(super) header: PartHeader,
    /// How often to save.
    pub(super) every: Duration,
    next: Instant,
    saved: usize,
}

/// What an earlier run found: its state, and the digests of its rows.
pub(super) type Earlier = (Partial, Vec<[u8; 32]>);

impl Keep {
    /// Keeps the state of the search `header` in `path`.
    pub(super) fn new(path: Option<PathBuf>, header: PartHeader, every: Duration) -> Keep {
        let saved = header.begin as usize;
        Keep { path, header, every, next: Instant::now() + every, saved }
    }

    /// The state of an earlier run, where it is of this very search; said to the user.
    pub(super) fn load(&mut self, dataset: &Dataset, with: &Preparation<'_>) -> Option<Earlier> {
        let path = self.path.clone().filter(|path| path.exists())?;
        match self.read(dataset) {
            Ok(earlier) => {
                self.saved = earlier.0.rows().end;
                let (at, end) = (units::count(self.saved as u64), units::count(self.header.end));
                let text = format!("continues at row {at} of {end}, from {}", path.display());
                (with.events)(&Event::Note(&text));
                Some(earlier)
            }
            Err(reason) => {
                let text = format!("begins anew: the kept state cannot be used: {reason}");
                (with.events)(&Event::Warning(&text));
                None
            }
        }
    }

    fn read(&self, dataset: &Dataset) -> Result<Earlier, String> {
        let path = self.path.as_deref().ok_or("there is none")?;
        let reader = PartReader::open(path).map_err(|e| e.to_string())?;
        let found = reader.header();
        let (ours, name) = (&self.header, path.display());
        if let Some((what, ours, theirs)) = ours.job.difference(&found.job) {
            return Err(format!("{name} is of another search: the {what} is {theirs}, not {ours}"));
        }
        if (found.begin, found.end, &found.tool) != (ours.begin, ours.end, &ours.tool) {
            return Err(format!("{name} is of other rows or another version"));
        }
        let digests = reader.digests().to_vec();
        let rows = found.begin as usize..found.searched as usize;
        if ours.job.base_hash.is_none() && dataset::chunk_digests(&dataset.base, rows) != digests {
            return Err(format!("{name} is of other vectors"));
        }
        Ok((reader.into_partial().map_err(|e| e.to_string())?, digests))
    }

    /// Saves the state where it is time to.
    pub(super) fn now_and_then(
        &mut self,
        search: &Search<'_>,
        digests: &[[u8; 32]],
    ) -> Result<(), ExactError> {
        if Instant::now() < self.next {
            return Ok(());
        }
        let begun = Instant::now();
        let result = self.save(search.found(), digests);
        self.next = Instant::now() + self.every.max(begun.elapsed() * SAVING_SHARE);
        result
    }

    /// Saves the state, unless just this one is saved.
    pub(super) fn save(&mut self, found: &Partial, digests: &[[u8; 32]]) -> Result<(), ExactError> {
        let at = found.rows().end;
        let Some(path) = self.path.as_deref().filter(|_| at != self.saved) else { return Ok(()) };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            let io = |source| ExactError::PartIo { action: "create", path: folder.to_owned(), source };
            std::fs::create_dir_all(folder).map_err(io)?;
        }
        write_part(path, &PartHeader { searched: at as u64, ..self.header.clone() }, digests, found)?;
        self.saved = at;
        Ok(())
    }

    /// What to tell the user of a stop.
    pub(super) fn stopped(&self) -> String {
        let (at, end) = (units::count(self.saved as u64), units::count(self.header.end));
        match &self.path {
            None => "nothing is kept: there is no cache directory (--cache-dir)".to_owned(),
            Some(_) if self.saved as u64 == self.header.begin => {
                "stopped before anything was finished".to_owned()
            }
            Some(path) => format!(
                "stopped at row {at} of {end}; kept in {}: the same command goes on there",
                path.display()
            ),
        }
    }

    /// Removes the state: the result is written.
    pub(super) fn remove(&self) {
        if let Some(path) = &self.path {
            // A state that stays is found finished by the next run; it does no harm.
            drop(std::fs::remove_file(path));
        }
    }
}
