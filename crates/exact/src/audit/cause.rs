//! What explains lists that are wrong: each explanation is tried on some of them, in an order in which
//! the more particular one comes first.

use super::list::{List, Standing, distances};
use super::{AuditAsk, Job, Question, Rows, Wrong, head};
use crate::distance::{Measure, check_metric};
use crate::{ExactError, is_chance_level};
use serde::Serialize;
use std::collections::HashMap;
use types::{Metric, Neighbour, RowSet};

/// Wrong lists on which explanations are tried.
const TRIED: usize = 200;
/// Share of them that an explanation must give.
const EXPLAINED: f64 = 0.98;
/// Share of neighbours that are right where a truth may be the answer of an approximate search.
const APPROXIMATE: f64 = 0.5;
/// Share of neighbours up to which a truth is one of other vectors. Chance can be a few times what equal
/// odds give, where some rows are near to everything.
const STRANGERS: f64 = 0.1;
/// Share of lists up to which wrong ones are exceptions.
const FEW: f64 = 0.02;
/// Length of list beginnings by which lists of other queries are recognised.
const BEGINNING: usize = 10;

/// Why lists are wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Cause {
    /// The right rows, the farthest first.
    FarthestFirst,
    /// The right rows, by row number.
    ByRow,
    /// The right rows in no order.
    Unsorted,
    /// Row numbers are too high by so many (counted from 1, not from 0), or too low.
    RowShift {
        /// How much too high.
        by: i64,
    },
    /// The list of a larger base: without the rows that are not here it is right.
    LargerBase {
        /// The largest row named.
        largest_row: u32,
    },
    /// The query itself, a row of the base at distance 0, was left out.
    QueryLeftOut,
    /// Of rows that are equal only one is listed.
    DuplicatesLeftOut,
    /// The truth under another metric.
    OtherMetric {
        /// Which.
        metric: Metric,
    },
    /// The truth without the filter.
    FilterIgnored,
    /// Rows that do not pass: the truth of another filter or of other columns.
    OtherFilter,
    /// The truth of the first rows only.
    FirstRows {
        /// The largest row named.
        largest_row: u32,
    },
    /// Lists of other queries: their order is another.
    OtherQueries,
    /// Right, but the lists end too soon.
    TooShort,
    /// Rows are repeated.
    Repeated,
    /// Hardly more agreement than by chance.
    OtherVectors,
    /// Most rows are right and some nearer ones are missing.
    Approximate,
    /// Nearly all lists are right, and nothing explains the few others.
    FewLists,
    /// None of these.
    Unknown,
}

/// An explanation, the lists that it explains, and those tried.
type Found = (Cause, (usize, usize));

impl Job<'_> {
    /// What explains the wrong lists, with how many of those tried it explains.
    pub(super) fn cause(&self, lists: &[List]) -> Result<Option<Found>, ExactError> {
        let wrong: Vec<&List> = lists.iter().filter(|l| l.standing == Standing::Different).collect();
        let tried = &wrong[..wrong.len().min(TRIED)];
        if tried.is_empty() {
            return Ok(None);
        }
        let cheap = [by_order(tried), self.shift(tried), self.larger_base(tried), self.other_queries(tried)];
        let few = wrong_share(lists) <= FEW;
        let cheap = cheap.into_iter().flatten().find(|found| !(few && found.0 == Cause::Unsorted));
        if cheap.is_some() {
            return Ok(cheap);
        }
        if let Some(found) = self.left_out(tried)? {
            return Ok(Some(found));
        }
        for (cause, metric, rows) in self.other_questions() {
            let right = match (cause, rows) {
                (Cause::FirstRows { largest_row }, _) => {
                    let rows = RowSet::from_fn(self.ask.base.rows(), |row| row <= largest_row as usize);
                    self.right_if(tried, metric, Rows::Same(&rows))?
                }
                (_, Some(filter)) => self.right_if(tried, metric, Rows::Filter(filter))?,
                (_, None) => self.right_if(tried, metric, Rows::All)?,
            };
            if let Some(found) = enough(cause, right, tried.len()) {
                return Ok(Some(found));
            }
        }
        Ok(Some((self.general(lists, tried), (0, tried.len()))))
    }

    /// Other questions that the truth may be the answer to.
    fn other_questions(&self) -> Vec<(Cause, Metric, Option<&crate::FilterRows>)> {
        let ask = &self.ask;
        let mut out = Vec::new();
        if ask.filter.is_some() {
            out.push((Cause::FilterIgnored, ask.metric, None));
        }
        for metric in Metric::ALL {
            if metric != ask.metric && check_metric(metric, ask.base.element()).is_ok() {
                out.push((Cause::OtherMetric { metric }, metric, ask.filter));
            }
        }
        let largest = largest_row(ask);
        if let Some(largest_row) =
            largest.filter(|&row| ask.filter.is_none() && (row as usize) + 1 < ask.base.rows())
        {
            out.push((Cause::FirstRows { largest_row }, ask.metric, None));
        }
        out
    }

    /// How many of the lists are right as answers to another question.
    fn right_if(&self, tried: &[&List], metric: Metric, rows: Rows<'_>) -> Result<usize, ExactError> {
        let filter = match rows {
            Rows::Filter(filter) => Some(filter),
            Rows::All | Rows::Same(_) => None,
        };
        let ask = AuditAsk { metric, filter, ..self.ask };
        let numbers: Vec<usize> = tried.iter().map(|list| list.query).collect();
        let exact = self.search(&numbers, Question { metric, depth: ask.k, rows })?;
        let right = |(at, &query): (usize, &usize)| {
            List::new(&ask, query, exact.of(at).to_vec(), exact.matching(at)).standing != Standing::Different
        };
        Ok(numbers.iter().enumerate().filter(|&pair| right(pair)).count())
    }

    /// Row numbers that are all too high or too low by the same.
    fn shift(&self, tried: &[&List]) -> Option<Found> {
        let mut votes: HashMap<i64, usize> = HashMap::from([(1, 0), (-1, 0)]);
        for list in tried {
            if let (Some(named), Some(exact)) = (list.named.first(), list.exact.first()) {
                *votes.entry(i64::from(named.row) - i64::from(exact.row)).or_default() += 1;
            }
        }
        votes.remove(&0);
        let mut candidates: Vec<(i64, usize)> = votes.into_iter().collect();
        candidates.sort_by_key(|&(by, votes)| (std::cmp::Reverse(votes), by.abs(), by < 0));
        let right = |list: &&&List, by: i64| {
            let rows = list.named.iter().map(|n| u32::try_from(i64::from(n.row) - by).ok());
            same(list, &self.distances(list, rows), &list.exact[..list.wanted])
        };
        candidates.into_iter().take(4).find_map(|(by, _)| {
            // Most candidates fail on the first lists already.
            if tried.iter().take(8).filter(|list| right(list, by)).count() * 2 < tried.len().min(8) {
                return None;
            }
            let count = tried.iter().filter(|list| right(list, by)).count();
            enough(Cause::RowShift { by }, count, tried.len())
        })
    }

    fn distances(&self, list: &List, rows: impl Iterator<Item = Option<u32>>) -> Vec<f64> {
        let ask = &self.ask;
        let measure = Measure::new(ask.base, ask.queries, list.query, ask.metric);
        distances(&measure, ask.base.rows(), rows)
    }

    /// Right but for rows that this base does not have.
    fn larger_base(&self, tried: &[&List]) -> Option<Found> {
        let largest_row = largest_row(&self.ask).filter(|&row| row as usize >= self.ask.base.rows())?;
        let right = |list: &&&List| {
            let here = list.named.iter().zip(&list.distances);
            let here: Vec<f64> =
                here.filter(|(n, _)| (n.row as usize) < self.ask.base.rows()).map(|(_, &d)| d).collect();
            same(list, &here, &list.exact[..here.len().min(list.wanted)])
        };
        enough(Cause::LargerBase { largest_row }, tried.iter().filter(right).count(), tried.len())
    }

    /// Lists that stand at another query's place.
    fn other_queries(&self, tried: &[&List]) -> Option<Found> {
        let length = BEGINNING.min(self.ask.k);
        let rows = |list: &[Neighbour]| -> Vec<u32> { list.iter().take(length).map(|n| n.row).collect() };
        if length < 2 {
            return None;
        }
        let mut places: HashMap<Vec<u32>, usize> = HashMap::new();
        for query in 0..self.ask.truth.queries() {
            places.entry(rows(head(self.ask.truth, query, length))).or_insert(query);
        }
        let elsewhere = |list: &&&List| {
            let beginning = &list.exact[..list.wanted.min(length)];
            beginning.len() == length && places.get(&rows(beginning)).is_some_and(|&q| q != list.query)
        };
        enough(Cause::OtherQueries, tried.iter().filter(elsewhere).count(), tried.len())
    }

    /// The query itself, or equal rows but for one, left out.
    fn left_out(&self, tried: &[&List]) -> Result<Option<Found>, ExactError> {
        let numbers: Vec<usize> = tried.iter().map(|list| list.query).collect();
        let depth = self.ask.k.saturating_mul(3).saturating_add(200).min(self.ask.base.rows());
        let exact = self.search(&numbers, Question::asked(&self.ask, depth))?;
        let fits = |list: &List, expected: &[Neighbour]| {
            let length = expected.len().min(self.ask.k);
            // Shorter than asked may be because the search ended; half a list is proof enough.
            list.named.len() >= length
                && length * 2 >= list.wanted
                && same(list, &list.distances[..length], &expected[..length])
        };
        let (mut without_query, mut without_equals) = (0, 0);
        for (at, list) in tried.iter().enumerate() {
            let deep = exact.of(at);
            let others: Vec<Neighbour> = deep.iter().filter(|n| !self.is_query(list, n)).copied().collect();
            let all_but_one = deep.iter().position(|n| self.is_query(list, n)).map(|first| {
                let mut rest = deep.to_vec();
                rest.remove(first);
                rest
            });
            let removed = others.len() < deep.len();
            without_query += usize::from(
                removed && (fits(list, &others) || all_but_one.is_some_and(|rest| fits(list, &rest))),
            );
            let distinct = self.distinct(list, deep);
            without_equals += usize::from(distinct.len() < deep.len() && fits(list, &distinct));
        }
        Ok(enough(Cause::QueryLeftOut, without_query, tried.len())
            .or_else(|| enough(Cause::DuplicatesLeftOut, without_equals, tried.len())))
    }

    /// Whether the row is the query's own vector.
    fn is_query(&self, list: &List, row: &Neighbour) -> bool {
        match self.ask.metric {
            // The only metric under which a vector is not nearest to itself.
            Metric::InnerProduct => self.ask.base.row(row.row as usize) == self.ask.queries.row(list.query),
            _ => row.distance <= list.slack.at(0.0),
        }
    }

    /// Of rows with equal vectors the first.
    fn distinct(&self, list: &List, deep: &[Neighbour]) -> Vec<Neighbour> {
        let base = self.ask.base;
        let mut kept: Vec<Neighbour> = Vec::new();
        for row in deep {
            let near = kept.iter().rev().take_while(|k| list.slack.ties(k.distance, row.distance));
            let bytes = base.row_bytes(row.row as usize);
            if near.into_iter().all(|k| base.row_bytes(k.row as usize) != bytes) {
                kept.push(*row);
            }
        }
        kept
    }

    /// What can be said without an explanation.
    fn general(&self, lists: &[List], tried: &[&List]) -> Cause {
        let all = |wrong: Wrong| tried.iter().all(|l| l.difference.as_ref().is_some_and(|d| d.what == wrong));
        if all(Wrong::TooShort) {
            return Cause::TooShort;
        }
        if all(Wrong::Repeated) {
            return Cause::Repeated;
        }
        let wanted: usize = lists.iter().map(|l| l.wanted).sum();
        let agreement = lists.iter().map(|l| l.right).sum::<usize>() as f64 / wanted.max(1) as f64;
        if wrong_share(lists) <= FEW {
            return Cause::FewLists;
        }
        let strangers =
            tried.iter().filter(|l| l.difference.as_ref().is_some_and(|d| d.what == Wrong::FilterFails));
        if strangers.count() * 2 > tried.len() {
            Cause::OtherFilter
        } else if agreement <= STRANGERS
            || is_chance_level(agreement, self.ask.k, self.ask.base.rows(), lists.len())
        {
            Cause::OtherVectors
        } else if agreement >= APPROXIMATE && all(Wrong::NearerMissing) {
            Cause::Approximate
        } else {
            Cause::Unknown
        }
    }
}

/// Share of lists that are wrong.
fn wrong_share(lists: &[List]) -> f64 {
    let wrong = lists.iter().filter(|l| l.standing == Standing::Different).count();
    wrong as f64 / lists.len().max(1) as f64
}

/// The right rows in a wrong order.
fn by_order(tried: &[&List]) -> Option<Found> {
    let all = tried.len();
    if !tried.iter().all(|list| list.only_order) {
        return None;
    }
    let farthest_first = |list: &&&List| {
        let reversed: Vec<f64> = list.distances.iter().rev().copied().collect();
        same(list, &reversed, &list.exact[..list.wanted])
    };
    let by_row = |list: &&&List| list.named.windows(2).all(|pair| pair[0].row < pair[1].row);
    enough(Cause::FarthestFirst, tried.iter().filter(farthest_first).count(), all)
        .or_else(|| enough(Cause::ByRow, tried.iter().filter(by_row).count(), all))
        .or(Some((Cause::Unsorted, (all, all))))
}

/// Whether the distances are those of the rows expected, ties aside.
fn same(list: &List, distances: &[f64], expected: &[Neighbour]) -> bool {
    distances.len() == expected.len()
        && distances.iter().zip(expected).all(|(&d, n)| list.slack.ties(d, n.distance))
}

fn enough(cause: Cause, count: usize, tried: usize) -> Option<Found> {
    (count > 0 && count as f64 >= EXPLAINED * tried as f64).then_some((cause, (count, tried)))
}

/// The largest row that the truth names among the neighbours compared.
fn largest_row(ask: &AuditAsk<'_>) -> Option<u32> {
    (0..ask.truth.queries()).flat_map(|q| head(ask.truth, q, ask.k)).map(|n| n.row).max()
}
