//! Pages, held against what their bytes can mean: a page of a few bytes may claim two thousand
//! million values, and the library would make room for them.

use super::table::{Field, Table};
use crate::DatasetError;
use ::parquet::{
    column::{
        page::{Page, PageMetadata, PageReader},
        reader::{ColumnReaderImpl, get_column_reader, get_typed_column_reader},
    },
    data_type::DataType,
    errors::{ParquetError, Result},
};

/// So many values are believed of any page: rows that repeat compress to almost nothing.
const ALWAYS_BELIEVED: u64 = 1 << 26;

/// Beyond that, a byte of the page stands for at most so many.
const VALUES_A_BYTE: u64 = 8;

/// The reader of one column of one row group.
pub(super) fn reader<T: DataType>(
    table: &Table,
    field: &Field,
    group: usize,
) -> std::result::Result<ColumnReaderImpl<T>, DatasetError> {
    let row_group = table.reader.get_row_group(group).map_err(|e| table.broken(field, &e))?;
    let pages = row_group.get_column_page_reader(field.leaf).map_err(|e| table.broken(field, &e))?;
    let column = row_group.metadata().column(field.leaf).column_descr_ptr();
    Ok(get_typed_column_reader(get_column_reader(column, Box::new(Checked(pages)))))
}

struct Checked(Box<dyn PageReader>);

impl Iterator for Checked {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Checked {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let Some(page) = self.0.get_next_page()? else { return Ok(None) };
        let (values, bytes) = (u64::from(page.num_values()), page.buffer().len() as u64);
        if believable(values, bytes) {
            return Ok(Some(page));
        }
        Err(ParquetError::General(format!("a page of {bytes} bytes claims {values} values")))
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.0.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.0.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.0.at_record_boundary()
    }
}

fn believable(values: u64, bytes: u64) -> bool {
    values <= ALWAYS_BELIEVED.max(bytes.saturating_mul(VALUES_A_BYTE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_pages_need_bytes() {
        for (values, bytes, expected) in
            [(1 << 26, 10, true), (1 << 27, 10, false), (1 << 28, 1 << 25, true), (u64::MAX, u64::MAX, true)]
        {
            assert_eq!(believable(values, bytes), expected, "{values} in {bytes}");
        }
    }
}
