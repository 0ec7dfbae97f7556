use super::*;
use crate::Column;

/// SplitMix64.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % n as u64) as usize
    }

    fn table(&mut self, rows: usize) -> Columns {
        let floats = [0.0, -0.0, 1.0, 2.5, -3.0, f64::NAN, f64::INFINITY];
        let mut pick = |n: usize| (self.below(8) > 0).then(|| self.below(n));
        let mut make = |n: usize| -> Vec<Option<usize>> { (0..rows).map(|_| pick(n)).collect() };
        let ints = make(9).into_iter().map(|v| v.map(|v| v as i64 - 3)).collect();
        let numbers = make(floats.len()).into_iter().map(|v| v.map(|v| floats[v])).collect();
        let bools = make(2).into_iter().map(|v| v.map(|v| v == 1)).collect();
        let texts = make(6).into_iter().map(|v| v.map(|v| "abcdef"[..v].to_owned())).collect();
        let column = |name: &str, data| Column { name: name.into(), data };
        Columns::new(vec![
            column("i", ColumnData::Int(ints)),
            column("f", ColumnData::Float(numbers)),
            column("b", ColumnData::Bool(bools)),
            column("t", ColumnData::Text(texts)),
        ])
        .unwrap()
    }

    fn value(&mut self, field: &str) -> Value {
        match field {
            "i" => Value::Int(self.below(10) as i64 - 4),
            "b" => Value::Bool(self.below(2) == 1),
            "t" => Value::Text("abcdef"[..self.below(6)].to_owned()),
            _ if self.below(2) == 0 => Value::Int(self.below(3) as i64),
            _ => Value::Float([-0.0, 2.5, -3.0, f64::INFINITY][self.below(4)]),
        }
    }

    fn filter(&mut self, depth: usize) -> Filter {
        let field = ["i", "f", "b", "t"][self.below(4)];
        match self.below(if depth == 0 { 3 } else { 5 }) {
            0 => Filter::Eq(field.into(), self.value(field)),
            1 => {
                let values = (0..self.below(4)).map(|_| self.value(field)).collect();
                Filter::In(field.into(), values)
            }
            2 => {
                let field = if field == "b" { "i" } else { field };
                let mut bound = || (self.below(3) > 0).then(|| (self.value(field), self.below(2) == 0));
                Filter::Range { field: field.into(), low: bound(), high: bound() }
            }
            3 => Filter::And((0..self.below(4)).map(|_| self.filter(depth - 1)).collect()),
            _ => Filter::Or((0..self.below(4)).map(|_| self.filter(depth - 1)).collect()),
        }
    }
}

#[test]
fn many_filters_at_once_give_what_each_gives_row_by_row() {
    let mut numbers = Numbers(7);
    for rows in [0, 1, 63, 64, 65, 500] {
        for _ in 0..40 {
            let columns = numbers.table(rows);
            let filters: Vec<Filter> = (0..numbers.below(30)).map(|_| numbers.filter(2)).collect();
            let sets = row_sets(&filters.iter().collect::<Vec<_>>(), &columns).unwrap();
            assert_eq!(sets.len(), filters.len());
            for (filter, set) in filters.iter().zip(sets) {
                let plain = RowSet::from_fn(rows, |row| filter.passes(&columns, row));
                assert_eq!(set, plain, "{filter} over {rows} rows");
                assert_eq!(set, filter.rows(&columns).unwrap(), "{filter}");
            }
        }
    }
}

#[test]
fn a_filter_that_does_not_fit_is_named_as_alone() {
    let columns = Numbers(1).table(10);
    let filters: Vec<Filter> = ["i = 1", "t = 3", "z = 1"].iter().map(|text| text.parse().unwrap()).collect();
    let together = row_sets(&filters.iter().collect::<Vec<_>>(), &columns).unwrap_err();
    assert_eq!(together, filters[1].rows(&columns).unwrap_err());
}
