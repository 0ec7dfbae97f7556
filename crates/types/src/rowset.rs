//! A set of row numbers, as a bitmap.

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
        self.words.iter().enumerate().flat_map(|(i, &word)| {
            std::iter::successors((word != 0).then_some(word), |w| {
                let rest = w & (w - 1);
                (rest != 0).then_some(rest)
            })
            .map(move |w| i * 64 + w.trailing_zeros() as usize)
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
        set.set(3, false);
        set.set(4, true);
        set.set(4, true);
        assert_eq!(
            (set.count(), set.contains(3), set.contains(4), set.contains(900)),
            (29, false, true, false)
        );
    }
}
