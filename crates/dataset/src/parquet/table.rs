//! One parquet file: its top-level fields, in the few kinds that vector data comes in, and the
//! translation of the library's errors. Values are read in `lists` and `scalars`.

use crate::DatasetError;
use ::parquet::{
    basic::{ConvertedType, LogicalType, Type as Physical},
    errors::ParquetError,
    file::reader::{ChunkReader, FileReader, SerializedFileReader},
    schema::types::ColumnDescriptor,
};
use std::{
    fs::File,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

/// What one value is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    /// A signed integer of so many bits (dates and times count as integers).
    Int(u8),
    /// An unsigned integer of so many bits.
    UInt(u8),
    F16,
    F32,
    F64,
    Text,
    /// Bytes that nothing says are text; old writers store text so.
    Bytes,
    /// Something else, in words.
    Other(String),
}

/// How values make up a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// One value, or none.
    Scalar,
    /// A list. An element stands where the definition level reaches `element`; below
    /// `element - 1` the list itself is missing.
    List {
        /// The definition level of the list's repeated node.
        element: i16,
    },
    /// Structs, lists of lists.
    Nested,
}

/// A top-level field.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) leaf: usize,
    pub(crate) kind: Kind,
    pub(crate) shape: Shape,
    pub(crate) physical: Physical,
    /// The definition level at which a value is there.
    pub(crate) full: i16,
}

impl Field {
    fn new(name: &str, leaf: usize, column: &ColumnDescriptor) -> Self {
        let shape = match (column.max_rep_level(), column.path().parts().len()) {
            (0, 1) => Shape::Scalar,
            (1, _) => Shape::List { element: column.repeated_ancestor_def_level() },
            _ => Shape::Nested,
        };
        Field {
            name: name.to_owned(),
            leaf,
            kind: kind(column),
            shape,
            physical: column.physical_type(),
            full: column.max_def_level(),
        }
    }

    /// Whether it is a list of numbers.
    pub(crate) fn is_number_list(&self) -> bool {
        matches!(self.shape, Shape::List { .. })
            && matches!(
                self.kind,
                Kind::Int(_) | Kind::UInt(_) | Kind::F16 | Kind::F32 | Kind::F64 | Kind::Bool
            )
    }

    /// Whether it is a list of things that may be ids.
    pub(crate) fn is_id_list(&self) -> bool {
        matches!(self.shape, Shape::List { .. })
            && matches!(self.kind, Kind::Int(_) | Kind::UInt(_) | Kind::Text | Kind::Bytes)
    }

    /// Kind and shape in words, for messages.
    pub(crate) fn describe(&self) -> String {
        let kind = match &self.kind {
            Kind::Bool => "bool".to_owned(),
            Kind::Int(bits) => format!("int{bits}"),
            Kind::UInt(bits) => format!("uint{bits}"),
            Kind::F16 => "float16".to_owned(),
            Kind::F32 => "float32".to_owned(),
            Kind::F64 => "float64".to_owned(),
            Kind::Text => "text".to_owned(),
            Kind::Bytes => "bytes".to_owned(),
            Kind::Other(words) => words.clone(),
        };
        match self.shape {
            Shape::Scalar => kind,
            Shape::List { .. } => format!("list of {kind}"),
            Shape::Nested => format!("nested {kind}"),
        }
    }
}

fn kind(column: &ColumnDescriptor) -> Kind {
    let logical = column.logical_type_ref();
    let converted = column.converted_type();
    if matches!(logical, Some(LogicalType::Decimal(_))) || converted == ConvertedType::DECIMAL {
        return Kind::Other("decimal".to_owned());
    }
    match column.physical_type() {
        Physical::BOOLEAN => Kind::Bool,
        Physical::FLOAT => Kind::F32,
        Physical::DOUBLE => Kind::F64,
        physical @ (Physical::INT32 | Physical::INT64) => {
            let width = if physical == Physical::INT32 { 32 } else { 64 };
            match (logical, converted) {
                (Some(LogicalType::Integer(int)), _) => {
                    let bits = u8::try_from(int.bit_width).unwrap_or(width).min(width);
                    if int.is_signed { Kind::Int(bits) } else { Kind::UInt(bits) }
                }
                (_, ConvertedType::INT_8) => Kind::Int(8),
                (_, ConvertedType::INT_16) => Kind::Int(16),
                (_, ConvertedType::UINT_8) => Kind::UInt(8),
                (_, ConvertedType::UINT_16) => Kind::UInt(16),
                (_, ConvertedType::UINT_32) => Kind::UInt(32),
                (_, ConvertedType::UINT_64) => Kind::UInt(64),
                _ => Kind::Int(width),
            }
        }
        Physical::BYTE_ARRAY => match (logical, converted) {
            (Some(LogicalType::String | LogicalType::Enum | LogicalType::Json), _)
            | (_, ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::JSON) => Kind::Text,
            (None, ConvertedType::NONE) => Kind::Bytes,
            _ => Kind::Other("binary".to_owned()),
        },
        Physical::FIXED_LEN_BYTE_ARRAY if matches!(logical, Some(LogicalType::Float16)) => Kind::F16,
        other => Kind::Other(format!("{other:?}").to_ascii_lowercase()),
    }
}

/// An open parquet file.
pub(crate) struct Table {
    pub(crate) path: PathBuf,
    pub(crate) reader: Box<dyn FileReader>,
    pub(crate) rows: u64,
    pub(crate) fields: Vec<Field>,
}

impl Table {
    /// Opens `path` and reads its footer.
    pub(crate) fn open(path: &Path) -> Result<Self, DatasetError> {
        let file = File::open(path).map_err(DatasetError::io("read", path))?;
        let size = file.metadata().map_err(DatasetError::io("read", path))?.len();
        Self::over(path, file, size)
    }

    /// Reads the footer of `source`, `size` bytes long; `path` names it in messages.
    pub(crate) fn over(
        path: &Path,
        source: impl ChunkReader + 'static,
        size: u64,
    ) -> Result<Self, DatasetError> {
        let reader: Box<dyn FileReader> = guarded(path, || match SerializedFileReader::new(source) {
            Ok(reader) => Ok(Box::new(reader) as Box<dyn FileReader>),
            Err(e) => Err(broken(path, &format!("no parquet file ({size} bytes)"), &e)),
        })?;
        let meta = reader.metadata();
        let mut rows = 0_u64;
        for group in meta.row_groups() {
            let count = u64::try_from(group.num_rows())
                .map_err(|_negative| DatasetError::invalid(path, "a row group claims fewer than 0 rows"))?;
            rows = rows.saturating_add(count);
        }
        let claimed = meta.file_metadata().num_rows();
        if u64::try_from(claimed) != Ok(rows) {
            let reason =
                format!("the footer counts {claimed} rows, the row groups {rows}: the file is damaged");
            return Err(DatasetError::invalid(path, reason));
        }
        let schema = meta.file_metadata().schema_descr();
        let roots: Vec<usize> =
            (0..schema.num_columns()).map(|leaf| schema.get_column_root_idx(leaf)).collect();
        let fields = (0..roots.len())
            .map(|leaf| {
                let mut field = Field::new(schema.get_column_root(leaf).name(), leaf, &schema.column(leaf));
                if roots.iter().filter(|&&root| root == roots[leaf]).count() > 1 {
                    field.shape = Shape::Nested;
                }
                field
            })
            .collect();
        Ok(Table { path: path.to_owned(), reader, rows, fields })
    }

    /// The field named `name`, if there is one.
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// "id (int64), emb (list of float32)".
    pub(crate) fn describe_fields(&self) -> String {
        let words: Vec<String> =
            self.fields.iter().map(|field| format!("{} ({})", field.name, field.describe())).collect();
        words.join(", ")
    }

    /// An error about this file.
    pub(crate) fn invalid(&self, reason: impl Into<String>) -> DatasetError {
        DatasetError::invalid(&self.path, reason)
    }

    /// The library's error about reading `field`.
    pub(crate) fn broken(&self, field: &Field, error: &ParquetError) -> DatasetError {
        broken(&self.path, &format!("column {:?} cannot be read", field.name), error)
    }

    /// The rows of row group `group`.
    pub(crate) fn group_rows(&self, group: usize) -> u64 {
        u64::try_from(self.reader.metadata().row_group(group).num_rows()).unwrap_or(0)
    }
}

fn broken(path: &Path, what: &str, error: &ParquetError) -> DatasetError {
    let cause = error.to_string().replace('\n', " ");
    DatasetError::invalid(path, format!("{what}: {cause}; the file is damaged or cut short, get it anew"))
}

/// Runs a reading step. The parquet library still panics on some damaged files; a foreign file must
/// never end the process, so that becomes an error like any other damage.
pub(crate) fn guarded<T>(
    path: &Path,
    read: impl FnOnce() -> Result<T, DatasetError>,
) -> Result<T, DatasetError> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_panic| {
        Err(DatasetError::invalid(
            path,
            "the parquet library gave up on it; the file is damaged, get it anew",
        ))
    })
}
