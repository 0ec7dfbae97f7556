//! ann-benchmarks HDF5, written row by row at any size: the crates that write HDF5 keep all numbers
//! in memory. The file is what `libver = v108` would give: superblock 2, version 2 object headers,
//! links in the root's header, contiguous arrays (which Annvil maps in place).

use super::{
    Part, has_distances,
    hdf5_messages::{Header, Number, Space, heap, superblock, undefined},
    left_out,
};
use crate::{Dataset, DatasetError};
use std::{io::Write, path::Path};
use types::{Element, Metric, Truth, Vectors};

/// Arrays begin at a multiple of this, so that rows in place are aligned for any kernel.
const ALIGN: u64 = 64;

/// Writes `train`, `test` and, where there is truth, `neighbors` and `distances`, with the
/// attributes `distance`, `dimension`, `type` and `point_type`. Hamming distances are written as the
/// fraction of differing bits, as ann-benchmarks has them; lists that are shorter end in -1.
/// Returns what was left out, a sentence each.
///
/// # Errors
/// Where `path` exists or cannot be written.
pub fn hdf5(dataset: &Dataset, path: &Path) -> Result<Vec<String>, DatasetError> {
    let mut part = Part::create(path)?;
    let arrays = arrays(dataset);
    let texts = attributes(dataset);
    let layout = Layout::new(&arrays, &texts, dataset.base.dim());
    part.write(|out| {
        out.write_all(&layout.head)?;
        let mut at = layout.head.len() as u64;
        for (array, &start) in arrays.iter().zip(&layout.starts) {
            if start == undefined() {
                continue;
            }
            for _ in at..start {
                out.write_all(&[0])?;
            }
            array.body.write(out)?;
            at = start + array.bytes();
        }
        Ok(())
    })?;
    part.finish()?;
    Ok(left_out(dataset, "HDF5 in the layout of ann-benchmarks"))
}

/// Everything that [`hdf5`] writes before the first number, and how long the whole file is. For the
/// benchmark of opening, which makes a file of holes.
#[doc(hidden)]
pub fn hdf5_head(dataset: &Dataset) -> (Vec<u8>, u64) {
    let arrays = arrays(dataset);
    let layout = Layout::new(&arrays, &attributes(dataset), dataset.base.dim());
    (layout.head, layout.end)
}

/// One array of the file.
struct Array<'a> {
    name: &'static str,
    rows: usize,
    columns: usize,
    number: Number,
    body: Body<'a>,
}

impl<'a> Array<'a> {
    fn of(name: &'static str, vectors: &'a Vectors) -> Self {
        let number = match vectors.element() {
            Element::F32 => Number::Float(4),
            Element::F16 => Number::Float(2),
            Element::I8 => Number::Signed(1),
            Element::U8 => Number::Unsigned(1),
            Element::Bit => Number::Bool,
        };
        Array { name, rows: vectors.rows(), columns: vectors.dim(), number, body: Body::Vectors(vectors) }
    }

    fn bytes(&self) -> u64 {
        self.rows as u64 * self.columns as u64 * self.number.size()
    }
}

enum Body<'a> {
    Vectors(&'a Vectors),
    Ids(&'a Truth, Number),
    /// Distances, each times a factor.
    Distances(&'a Truth, f64),
}

impl Body<'_> {
    fn write(&self, out: &mut impl Write) -> std::io::Result<()> {
        match self {
            Body::Vectors(vectors) if vectors.element() == Element::Bit => {
                let mut row = vec![0; vectors.dim()];
                for i in 0..vectors.rows() {
                    let bits = vectors.row_bytes(i);
                    for (at, slot) in row.iter_mut().enumerate() {
                        *slot = bits[at / 8] >> (7 - at % 8) & 1;
                    }
                    out.write_all(&row)?;
                }
                Ok(())
            }
            Body::Vectors(vectors) => {
                (0..vectors.rows()).try_for_each(|i| out.write_all(vectors.row_bytes(i)))
            }
            Body::Ids(truth, number) => each(truth, |neighbour| {
                let id = neighbour.map_or(-1, |n| i64::from(n.row));
                out.write_all(&id.to_le_bytes()[..number.size() as usize])
            }),
            Body::Distances(truth, factor) => each(truth, |neighbour| {
                let distance = neighbour.map_or(f32::INFINITY, |n| (n.distance * factor) as f32);
                out.write_all(&distance.to_le_bytes())
            }),
        }
    }
}

fn each(
    truth: &Truth,
    mut write: impl FnMut(Option<&types::Neighbour>) -> std::io::Result<()>,
) -> std::io::Result<()> {
    for query in 0..truth.queries() {
        let list = truth.of(query);
        (0..truth.depth()).try_for_each(|at| write(list.get(at)))?;
    }
    Ok(())
}

fn arrays(dataset: &Dataset) -> Vec<Array<'_>> {
    let mut arrays = vec![Array::of("train", &dataset.base), Array::of("test", &dataset.queries)];
    if let Some(truth) = &dataset.truth {
        let (rows, columns) = (truth.queries(), truth.depth());
        let wide = i32::try_from(dataset.base.rows()).is_err();
        let number = if wide { Number::Signed(8) } else { Number::Signed(4) };
        arrays.push(Array { name: "neighbors", rows, columns, number, body: Body::Ids(truth, number) });
        if has_distances(truth) {
            let factor = match dataset.metric {
                Some(Metric::Hamming) => 1.0 / dataset.base.dim() as f64,
                _ => 1.0,
            };
            let (number, body) = (Number::Float(4), Body::Distances(truth, factor));
            arrays.push(Array { name: "distances", rows, columns, number, body });
        }
    }
    arrays
}

/// The text attributes.
fn attributes(dataset: &Dataset) -> Vec<(&'static str, &'static str)> {
    let bits = dataset.base.element() == Element::Bit;
    let mut texts = vec![("type", "dense"), ("point_type", if bits { "bit" } else { "float" })];
    texts.extend(dataset.metric.map(|metric| {
        let word = match metric {
            Metric::L2 => "euclidean",
            Metric::Cosine => "angular",
            Metric::InnerProduct => "dot",
            Metric::Hamming => "hamming",
        };
        ("distance", word)
    }));
    texts
}

/// Everything before the numbers, and where each array begins.
struct Layout {
    head: Vec<u8>,
    starts: Vec<u64>,
    end: u64,
}

impl Layout {
    fn new(arrays: &[Array<'_>], texts: &[(&str, &str)], dim: usize) -> Self {
        // The sizes of headers do not depend on the addresses in them: laid out once with
        // addresses of 0 to learn where things go, then for good.
        let words: Vec<&str> = texts.iter().map(|(_, word)| *word).collect();
        let heap = heap(&words);
        let root = |heap_at: u64, objects: &[u64]| {
            let mut header = Header::group();
            for (array, &at) in arrays.iter().zip(objects) {
                header.link(array.name, at);
            }
            for (index, (name, word)) in texts.iter().enumerate() {
                header.text_attribute(name, word.len(), heap_at, index + 1);
            }
            header.count_attribute("dimension", dim as u64);
            header.finish()
        };
        let object = |array: &Array<'_>, start: u64| {
            let mut header = Header::object();
            header.dataset(
                Space(array.rows as u64, array.columns as u64),
                array.number,
                start,
                array.bytes(),
            );
            header.finish()
        };
        let root_at = superblock(0, 0).len() as u64;
        let heap_at = (root_at + root(0, &vec![0; arrays.len()]).len() as u64).next_multiple_of(8);
        let mut at = heap_at + heap.len() as u64;
        let mut objects = Vec::new();
        for array in arrays {
            objects.push(at);
            at = (at + object(array, 0).len() as u64).next_multiple_of(8);
        }
        let mut starts = Vec::new();
        for array in arrays {
            if array.bytes() == 0 {
                starts.push(undefined());
                continue;
            }
            at = at.next_multiple_of(ALIGN);
            starts.push(at);
            at += array.bytes();
        }
        let mut head = superblock(root_at, at);
        let mut place = |at: u64, bytes: &[u8]| {
            head.resize(at as usize, 0);
            head.extend_from_slice(bytes);
        };
        place(root_at, &root(heap_at, &objects));
        place(heap_at, &heap);
        for ((array, &object_at), &start) in arrays.iter().zip(&objects).zip(&starts) {
            place(object_at, &object(array, start));
        }
        Layout { head, starts, end: at }
    }
}
