//! Which way of screening is the cheapest for a scan: tried on some of its rows and queries.

use crate::ExactError;
use crate::block::Block;
use crate::frame::MOST_DIM;
use crate::method::Method;
use crate::scan::{Bounds, Job, Scan};
use crate::source::{Source, Which, count};
use crate::topk::Scored;
use rayon::prelude::*;
use std::ops::Range;
use types::Metric;

/// Rows and queries on which methods are compared.
const TRIAL_ROWS: usize = 1024;
const TRIAL_QUERIES: usize = 64;
/// Fewer rows or queries than these are not worth a trial.
const TRIAL_FROM_ROWS: usize = 8192;
pub(crate) const TRIAL_FROM_QUERIES: usize = 24;

impl Scan<'_> {
    /// The cheapest method, judged on some rows and queries.
    pub(crate) fn choose(&self, rows: &Range<usize>) -> Result<Method, ExactError> {
        let most = self.cases.iter().map(|case| count(*case, rows)).max().unwrap_or(0);
        let plain = self.metric == Metric::Hamming || self.base.dim() > MOST_DIM || self.base.dim() == 0;
        if plain || most < TRIAL_FROM_ROWS || self.asked.len() < TRIAL_FROM_QUERIES {
            return Ok(Method::F32);
        }
        let every = self.asked.len().div_ceil(TRIAL_QUERIES);
        let asked: Vec<usize> = self.asked.iter().copied().step_by(every).collect();
        // The largest case alone: most pairs are its.
        let largest = self.cases.last().copied().flatten();
        let cases = [largest];
        let trial = |method| Scan { asked: &asked, cases: &cases, method, watch: &|_| false, ..*self };
        let sample = (most / TRIAL_ROWS).max(1) as u64;
        let depth = (self.k * TRIAL_ROWS).div_ceil(most) + 1;
        let scan = trial(Method::F32);
        let all: Vec<usize> = (0..asked.len()).collect();
        let nothing = [vec![[].as_slice(); asked.len()]];
        let unbound = vec![vec![f64::INFINITY; asked.len()]];
        let (which, ranks) = (Which::Sample(sample), None);
        let job = Job { k: depth, bounds: &unbound, earlier: &nothing, trusting: false, which, ranks };
        let (found, _) = scan.pass(&all, rows, &job)?;
        let last = |list: &Vec<Scored>| list.get(depth - 1).map_or(f64::INFINITY, |last| last.key);
        let bounds: Bounds = found.lists.iter().map(|lists| lists.iter().map(last).collect()).collect();
        let pairs = found.matching[0].max(1) as f64 * asked.len() as f64;
        let rate = |method| {
            let scan = trial(method);
            Ok::<_, ExactError>(scan.count(&bounds, Source::new(&cases, rows.clone(), which))? as f64 / pairs)
        };
        let (level, dim, queries) = (self.level, self.base.dim(), self.asked.len());
        let mut cheapest = (Method::F32, f64::INFINITY);
        for method in [Method::Int8, Method::Int16, Method::F32] {
            let cost = method.cost(level, dim, queries, rate(method)?);
            if cost < cheapest.1 {
                cheapest = (method, cost);
            }
        }
        Ok(cheapest.0)
    }

    /// How many pairs of the rows of `source` are not ruled out by the bounds.
    fn count(&self, bounds: &Bounds, mut source: Source<'_>) -> Result<u64, ExactError> {
        let setting = self.setting(1, false, 0);
        let all: Vec<usize> = (0..self.asked.len()).collect();
        let nothing = [vec![[].as_slice(); all.len()]];
        let mut tiles = self.tiles(&setting, &all, 1, bounds, &nothing);
        let chunk = source.take(4 * TRIAL_ROWS);
        let mut block = Block::default();
        self.load(&mut block, &chunk, &setting)?;
        Ok(tiles.par_iter_mut().map(|tile| tile.count(&setting, &block)).sum())
    }
}
