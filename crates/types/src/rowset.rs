//! A set of row numbers, as a bitmap.

use std::ops::Range;

/// A subset of the rows 0..`rows`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowSet {
    words: Vec<u64>,
    rows: usize,
    count: usize,
}

impl RowSet {
    /// The rows for which `member` is true.
    pub fn from_fn(rows: usize, mut member: impl FnMut(usize) -> bool) -> Self {
        let mut words = vec![0_u64; rows.div_ceil(64)];
        let mut count = 0;
        for row in 0..rows {
            if member(row) {
                words[row / 64] |= 1 << (row % 64);
                count += 1;
            }
        }
        RowSet { words, rows, count }
    }

    /// The rows whose bits are set: 64 rows to a word, row 0 in the lowest bit. Bits past the end
    /// are cleared.
    ///
    /// # Panics
    /// Where `words` are not as many as `rows` take.
    pub fn from_words(mut words: Vec<u64>, rows: usize) -> Self {
        assert_eq!(words.len(), rows.div_ceil(64), "words for {rows} rows");
        if let Some(last) = words.last_mut().filter(|_| !rows.is_multiple_of(64)) {
            *last &= !(u64::MAX << (rows % 64));
        }
        let count = words.iter().map(|word| word.count_ones() as usize).sum();
        RowSet { words, rows, count }
    }

    /// The rows that are in both.
    ///
    /// # Panics
    /// Where the sets are over different numbers of rows.
    pub fn and(&self, other: &RowSet) -> RowSet {
        self.combined(other, |a, b| a & b)
    }

    /// The rows that are in at least one of the two.
    ///
    /// # Panics
    /// As [`RowSet::and`].
    pub fn or(&self, other: &RowSet) -> RowSet {
        self.combined(other, |a, b| a | b)
    }

    fn combined(&self, other: &RowSet, combine: fn(u64, u64) -> u64) -> RowSet {
        assert_eq!(self.rows, other.rows, "row sets of one length");
        let words = self.words.iter().zip(&other.words).map(|(&a, &b)| combine(a, b)).collect();
        RowSet::from_words(words, self.rows)
    }

    /// All rows.
    pub fn all(rows: usize) -> Self {
        Self::from_fn(rows, |_| true)
    }

    /// Rows that the set is over, members or not.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of members.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether `row` is a member; false past the end.
    pub fn contains(&self, row: usize) -> bool {
        self.words.get(row / 64).is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    /// Adds or removes a row.
    ///
    /// # Panics
    /// Where `row` is not below `rows`.
    pub fn set(&mut self, row: usize, member: bool) {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        if self.contains(row) != member {
            self.words[row / 64] ^= 1 << (row % 64);
            if member { self.count += 1 } else { self.count -= 1 }
        }
    }

    /// The members, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.iter_in(0..self.rows)
    }

    /// The members in `range`, ascending.
    pub fn iter_in(&self, range: Range<usize>) -> impl Iterator<Item = usize> + '_ {
        self.words_in(range).flat_map(|(first, word)| {
            std::iter::successors((word != 0).then_some(word), |w| {
                let rest = w & (w - 1);
                (rest != 0).then_some(rest)
            })
            .map(move |w| first + w.trailing_zeros() as usize)
        })
    }

    /// Number of members in `range`.
    pub fn count_in(&self, range: Range<usize>) -> usize {
        self.words_in(range).map(|(_, word)| word.count_ones() as usize).sum()
    }

    /// The words that touch `range`, each with its first row, members outside cleared.
    fn words_in(&self, range: Range<usize>) -> impl Iterator<Item = (usize, u64)> + '_ {
        let range = range.start..range.end.min(self.rows);
        let words = range.start / 64..range.end.div_ceil(64).max(range.start / 64);
        words.map(move |i| {
            let mut word = self.words[i];
            if i == range.start / 64 {
                word &= u64::MAX << (range.start % 64);
            }
            if i == range.end / 64 {
                word &= !(u64::MAX << (range.end % 64));
            }
            (i * 64, word)
        })
    }

    /// The bitmap: 64 rows to a word, row 0 in the lowest bit.
    pub fn words(&self) -> &[u64] {
        &self.words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_counted_listed_and_changed() {
        let mut set = RowSet::from_fn(200, |row| row % 7 == 3);
        assert_eq!(set.iter().collect::<Vec<_>>(), (0..200).filter(|r| r % 7 == 3).collect::<Vec<_>>());
        assert_eq!(set.count(), 29);
        for range in [0..0, 5..5, 3..4, 0..64, 63..65, 64..128, 10..200, 199..900, 300..301] {
            let plain: Vec<usize> = (0..200).filter(|r| r % 7 == 3 && range.contains(r)).collect();
            assert_eq!(set.iter_in(range.clone()).collect::<Vec<_>>(), plain, "{range:?}");
            assert_eq!(set.count_in(range), plain.len());
        }
        let other = RowSet::from_fn(200, |row| row % 2 == 0);
        let rows = |set: RowSet| (set.count(), set.iter().collect::<Vec<_>>());
        let plain = |keep: &dyn Fn(usize) -> bool| rows(RowSet::from_fn(200, keep));
        assert_eq!(rows(set.and(&other)), plain(&|r| r % 7 == 3 && r % 2 == 0));
        assert_eq!(rows(set.or(&other)), plain(&|r| r % 7 == 3 || r % 2 == 0));
        assert_eq!(RowSet::from_words(vec![u64::MAX; 4], 200), RowSet::all(200));
        set.set(3, false);
        set.set(4, true);
        set.set(4, true);
        assert_eq!(
            (set.count(), set.contains(3), set.contains(4), set.contains(900)),
            (29, false, true, false)
        );
    }
}
