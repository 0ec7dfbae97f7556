//! HDF5 in the layout of ann-benchmarks: `train`, `test`, `neighbors`, `distances`, and the
//! attributes `distance`, `type`, `dimension`, `point_type`.
//!
//! A contiguous little-endian array is mapped where it lies in the file; what is chunked,
//! compressed, big-endian or of another type is streamed into a flat copy. Sparse sets are refused.

use crate::{
    Dataset, DatasetError, OpenOptions,
    convert::Stored,
    flat::Flat,
    hdf5_attrs::Attrs,
    hdf5_raw as raw,
    hdf5_types::{is_whole, number_type, type_name},
    lzf,
    mapping::Mapped,
    neighbours::{Against, Table, coverage},
    table::{Array, MAX_DIM},
    tidy,
};
use hdf5_reader::{
    FilterRegistry, Hdf5File,
    filters::FilterFn,
    messages::{HdfMessage, layout::DataLayout},
};
use std::{borrow::Cow, path::Path};
use types::{ByteStore, Element, Metric, Truth, Vectors};

/// What a file begins with.
pub(crate) const MAGIC: &[u8] = b"\x89HDF\r\n\x1a\n";

/// Deflate cannot shrink more than this; an array that claims more was never written.
const LARGEST_RATIO: u128 = 1100;

/// Whether the signature stands where HDF5 looks for it behind a block of the user's own: at 512 and
/// at every doubling of it.
pub(crate) fn is_behind_user_block(path: &Path) -> Result<bool, DatasetError> {
    let store = Mapped::open(path)?;
    let bytes = store.bytes();
    let mut places = std::iter::successors(Some(512_usize), |at| at.checked_mul(2));
    Ok(places.by_ref().take_while(|&at| at < bytes.len()).any(|at| bytes[at..].starts_with(MAGIC)))
}

/// A whole data set.
pub(crate) fn open(path: &Path, options: &OpenOptions) -> Result<Dataset, DatasetError> {
    let file = Hdf5::open(path)?;
    let attrs = Attrs::read(path, &file.file, options.metric)?;
    file.refuse_sparse(&attrs)?;
    let base = file.vectors("train", options.limit, attrs.packed_bits, options)?;
    let queries = file.vectors("test", None, attrs.packed_bits, options)?;
    let cut = file.rows("train")? > base.vectors.rows();
    let mut dataset = Dataset::new(crate::format::stem(path), base.vectors, queries.vectors);
    dataset.metric = attrs.metric;
    dataset.notices = [attrs.notices, base.notices, queries.notices].concat();
    // The truth of all rows is none of a part of them.
    if file.has("neighbors") && cut {
        dataset.notices.push(tidy::TRUTH_DROPPED.to_owned());
    } else if file.has("neighbors") && options.truth.is_none() && options.queries.is_none() {
        let against = Against { base_rows: dataset.base.rows(), queries: dataset.queries.rows() };
        dataset.truth = Some(file.truth(against, attrs.metric, dataset.base.dim(), &mut dataset.notices)?);
    }
    Ok(dataset)
}

/// The vectors of a file that is named for its queries: `test`, or `train` where that is all.
pub(crate) fn queries(path: &Path, options: &OpenOptions) -> Result<Flat, DatasetError> {
    let file = Hdf5::open(path)?;
    let attrs = Attrs::read(path, &file.file, options.metric)?;
    file.refuse_sparse(&attrs)?;
    let part = if file.has("test") { "test" } else { "train" };
    file.vectors(part, None, attrs.packed_bits, options)
}

/// The `neighbors` and `distances` of a file that is named for its truth.
pub(crate) fn truth(
    path: &Path,
    against: Against,
    base: &Vectors,
    notices: &mut Vec<String>,
) -> Result<Truth, DatasetError> {
    let file = Hdf5::open(path)?;
    let metric = (base.element() == Element::Bit).then_some(Metric::Hamming);
    file.truth(against, metric, base.dim(), notices)
}

struct Hdf5<'a> {
    path: &'a Path,
    file: Hdf5File,
}

/// The shape and number type of an array that is a table of numbers.
struct Shape {
    rows: usize,
    dim: usize,
    stored: Stored,
    big: bool,
}

impl<'a> Hdf5<'a> {
    fn open(path: &'a Path) -> Result<Self, DatasetError> {
        let mut filters = FilterRegistry::new();
        let lzf: FilterFn = Box::new(|filter, data, _element| lzf::decode(&filter.client_data, data));
        filters.register(lzf::FILTER, lzf);
        let options = hdf5_reader::OpenOptions::default().with_filter_registry(filters);
        let file = Hdf5File::open_with_options(path, options).map_err(|e| broken(path, &e))?;
        Ok(Hdf5 { path, file })
    }

    fn has(&self, part: &str) -> bool {
        self.file.dataset(part).is_ok()
    }

    fn invalid(&self, reason: impl Into<String>) -> DatasetError {
        DatasetError::invalid(self.path, reason)
    }

    fn array(&self, part: &str) -> Result<hdf5_reader::Dataset, DatasetError> {
        self.file.dataset(part).map_err(|error| {
            let listed = self.file.root_group().and_then(|root| root.member_names());
            match listed {
                Ok((_, names)) if !names.iter().any(|name| name == part) => {
                    let found = if names.is_empty() { "no array".to_owned() } else { names.join(", ") };
                    self.invalid(format!(
                        "there is no array {part:?} at the top of the file; ann-benchmarks files have train, \
                         test, neighbors and distances, this one has {found}"
                    ))
                }
                _ => broken(self.path, &error),
            }
        })
    }

    fn rows(&self, part: &str) -> Result<usize, DatasetError> {
        let rows = self.array(part)?.shape().first().copied().unwrap_or_default();
        usize::try_from(rows).map_err(|_large| self.invalid(format!("{part} has {rows} rows, too many")))
    }

    /// Sets of items (jaccard), said by an attribute or shown by the shape.
    fn refuse_sparse(&self, attrs: &Attrs) -> Result<(), DatasetError> {
        if !attrs.sparse && attrs.unknown_metric.is_none() {
            return Ok(());
        }
        let train = self.array("train")?;
        let kind = type_name(train.dtype());
        let metric =
            attrs.unknown_metric.as_deref().or(attrs.metric.map(Metric::name)).unwrap_or("not named");
        let what = if attrs.sparse { "a sparse set" } else { "a metric that Annvil does not know" };
        Err(self.invalid(format!(
            "{what}: metric {metric:?}, train is {} of {kind}; Annvil searches dense rows of one length by {}",
            shape_text(train.shape()),
            Metric::ACCEPTED
        )))
    }

    /// Shape and type of `part`, refused where it is no table of numbers.
    fn shape(&self, part: &str) -> Result<Shape, DatasetError> {
        let array = self.array(part)?;
        let (dims, datatype) = (array.shape(), array.dtype());
        let plain = number_type(datatype).filter(|_| array.raw_datatype().is_ok_and(|raw| is_whole(&raw)));
        let Some((stored, big)) = plain else {
            return Err(self.invalid(format!(
                "{part} is {} of {}; Annvil reads rows of numbers of one length",
                shape_text(dims),
                type_name(datatype)
            )));
        };
        let [rows, dim] = *dims else {
            return Err(self.invalid(format!(
                "{part} has the shape {}; vectors are rows of a table with 2 dimensions (sparse sets are not read)",
                shape_text(dims)
            )));
        };
        match (usize::try_from(rows), usize::try_from(dim)) {
            (Ok(rows), Ok(dim)) => Ok(Shape { rows, dim, stored, big }),
            _ => Err(self.invalid(format!("{part} is {rows} x {dim}, more than this machine can address"))),
        }
    }

    fn vectors(
        &self,
        part: &str,
        limit: Option<usize>,
        packed_bits: Option<usize>,
        options: &OpenOptions,
    ) -> Result<Flat, DatasetError> {
        let Shape { rows, dim, stored, big } = self.shape(part)?;
        let read = limit.unwrap_or(rows).min(rows);
        let array = Array { path: self.path, part, rows: read, dim, stored, big };
        let mut flat = self.place(&array, rows, options)?;
        if let Some(bits) = packed_bits.filter(|bits| bits.div_ceil(8) == dim && *bits > dim)
            && flat.vectors.element() == Element::U8
        {
            let packed = flat.vectors.read_as(bits, Element::Bit);
            flat.vectors = packed.map_err(|e| self.invalid(e.to_string()))?;
            flat.notices.push(format!("{part}: uint8 is read as {bits} packed bits a row"));
        }
        Ok(flat)
    }

    /// Maps or streams the first rows of an array that has `all` rows in the file.
    fn place(&self, array: &Array<'_>, all: usize, options: &OpenOptions) -> Result<Flat, DatasetError> {
        let data = self.array(array.part)?;
        let row_bytes = array.dim as u128 * array.stored.size() as u128;
        let payload = all as u128 * row_bytes;
        if let Some(address) = self.contiguous(&data)? {
            if payload == 0 {
                return array.mapped(options, Mapped::open(self.path)?, 0, 0);
            }
            let Some(address) = address else {
                return Err(self.invalid(format!("the numbers of {} are not in this file", array.part)));
            };
            let store = Mapped::open(self.path)?;
            let length = store.bytes().len();
            let end = u128::from(address) + payload;
            if end > length as u128 {
                return Err(self.invalid(format!(
                    "{} takes the bytes up to {end}, the file has {length}: it is incomplete, fetch it again",
                    array.part
                )));
            }
            let offset = usize::try_from(address)
                .map_err(|_large| self.invalid(format!("{} lies at {address}", array.part)))?;
            return array.mapped(options, store, offset, 0);
        }
        self.check_filled(array.part, payload)?;
        let granule = data.chunks().and_then(|chunk| usize::try_from(*chunk.first()?).ok()).unwrap_or(1);
        array.streamed(options, granule, |start, rows| {
            let block = raw::rows(&data, array.stored.size(), start, rows);
            block.map(Cow::Owned).map_err(|e| broken(self.path, &e))
        })
    }

    /// Where a contiguous array begins in the file: none where it is stored in another way, and
    /// `Some(None)` where its numbers lie in no place of this file.
    fn contiguous(&self, data: &hdf5_reader::Dataset) -> Result<Option<Option<u64>>, DatasetError> {
        let header = self.file.get_or_parse_header(data.address()).map_err(|e| broken(self.path, &e))?;
        let mut found = None;
        for message in &header.messages {
            match message {
                HdfMessage::DataLayout(layout) => {
                    if let DataLayout::Contiguous { address, .. } = layout.layout {
                        let undefined = address == u64::MAX;
                        let base = self.file.superblock().base_address;
                        found = Some(address.checked_add(base).filter(|_| !undefined));
                    }
                }
                HdfMessage::ExternalFiles(_) => return Ok(Some(None)),
                _ => {}
            }
        }
        Ok(found)
    }

    /// Refuses an array that claims far more numbers than the file can hold.
    fn check_filled(&self, part: &str, payload: u128) -> Result<(), DatasetError> {
        let length = u128::from(self.file.storage().len());
        if payload > length.saturating_mul(LARGEST_RATIO) {
            return Err(self.invalid(format!(
                "{part} would be {payload} bytes, but the file has only {length}: it was never filled"
            )));
        }
        Ok(())
    }

    /// `neighbors` with `distances`, where there are any.
    fn truth(
        &self,
        against: Against,
        metric: Option<Metric>,
        dim: usize,
        notices: &mut Vec<String>,
    ) -> Result<Truth, DatasetError> {
        let ids = self.small("neighbors", against)?;
        let distances = match self.has("distances") {
            true => Some(self.small("distances", against)?),
            false => None,
        };
        let (shape, raw) = &ids;
        let size = shape.stored.size();
        if let Some((other, _)) = &distances
            && other.dim != shape.dim
        {
            return Err(self.invalid(format!(
                "neighbors is {} wide, distances {}: they do not belong together",
                shape.dim, other.dim
            )));
        }
        let id = |entry: usize| {
            let number = raw.get(entry * size..(entry + 1) * size).unwrap_or_default();
            let id = shape.stored.integer(number, shape.big);
            id.ok_or_else(|| {
                self.invalid(format!("neighbors holds {}, not row numbers", shape.stored.name()))
            })
        };
        let factor = match &distances {
            Some((shape, raw)) if metric == Some(Metric::Hamming) => hamming_factor(shape, raw, dim),
            _ => 1.0,
        };
        if factor != 1.0 {
            notices.push(format!("distances are fractions of differing bits; they are multiplied by {dim}"));
        }
        let distance = |entry: usize| match &distances {
            Some((shape, raw)) => {
                let size = shape.stored.size();
                let number = raw.get(entry * size..(entry + 1) * size).unwrap_or_default();
                let distance = shape.stored.value(number, shape.big);
                // A fraction in float32 times the dimension is only nearly a whole number of bits.
                if factor == 1.0 { distance } else { (distance * factor).round() }
            }
            None => f64::NAN,
        };
        Table { path: self.path, queries: shape.rows, width: shape.dim, id, distance }.truth(against)
    }

    /// A table that is read whole, once its shape is known to fit the queries.
    fn small(&self, part: &str, against: Against) -> Result<(Shape, Vec<u8>), DatasetError> {
        let shape = self.shape(part)?;
        if shape.rows != against.queries || shape.dim == 0 {
            return Err(coverage(self.path, shape.rows, shape.dim, against.queries));
        }
        let bytes = shape.rows as u128 * shape.dim as u128 * shape.stored.size() as u128;
        self.check_filled(part, bytes)?;
        if shape.dim > MAX_DIM {
            return Err(self.invalid(format!("{part} is {} wide; at most {MAX_DIM} can be read", shape.dim)));
        }
        let raw = self.array(part)?.read_raw_bytes().map_err(|e| broken(self.path, &e))?;
        if raw.len() as u128 != bytes {
            return Err(self.invalid(format!("{part} has {} bytes where its shape takes {bytes}", raw.len())));
        }
        Ok((shape, raw))
    }
}

/// ann-benchmarks gives hamming distances as a fraction of the dimension; others count bits.
fn hamming_factor(shape: &Shape, raw: &[u8], dim: usize) -> f64 {
    let mut fractions = false;
    for number in raw.chunks_exact(shape.stored.size()) {
        let value = shape.stored.value(number, shape.big);
        // Infinity pads short lists.
        if value > 1.0 && value.is_finite() {
            return 1.0;
        }
        fractions |= value > 0.0 && value < 1.0;
    }
    if fractions { dim as f64 } else { 1.0 }
}

fn shape_text(dims: &[u64]) -> String {
    match dims {
        [] => "a single value".to_owned(),
        [n] => format!("{n} rows in one dimension"),
        dims => dims.iter().map(u64::to_string).collect::<Vec<_>>().join(" x "),
    }
}

/// An error of the HDF5 reader, on one line.
pub(crate) fn broken(path: &Path, error: &hdf5_reader::error::Error) -> DatasetError {
    let text = error.to_string().replace('\n', " ");
    DatasetError::invalid(path, format!("not readable as HDF5 ({text}); is the file complete?"))
}
