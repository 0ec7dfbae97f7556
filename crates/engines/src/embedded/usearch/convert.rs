//! In which form vectors go to the library.

use super::Point;
use engine::{EngineError, ErrorKind, IndexSpec, Param};
use types::{Element, Metric, Vectors};
use usearch::{MetricKind, ScalarKind};

/// What is handed over, and what the index makes of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    hand: Hand,
    pub(super) scalar: ScalarKind,
    pub(super) metric: MetricKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hand {
    /// f32; the library converts.
    Floats,
    /// The signed bytes as stored.
    Bytes,
    /// The bits as stored.
    Bits,
    /// A bit for each component: whether it is above 0.
    Signs,
}

/// One vector as handed over.
pub(super) enum Handed<'a> {
    Floats(&'a [f32]),
    Bytes(&'a [i8]),
    Bits(&'a [u8]),
}

/// All queries of a point as handed over.
pub(super) struct Queries {
    hand: Hand,
    row: usize,
    floats: Vec<f32>,
    bytes: Vec<u8>,
}

impl Form {
    /// The form for rows of `element` under the index asked for.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] where the quantization can't keep what the metric needs.
    pub(super) fn new(element: Element, index: &IndexSpec) -> Result<Self, EngineError> {
        let unsupported =
            |what: String| Err(EngineError::new(ErrorKind::Unsupported, format!("usearch: {what}")));
        let quantization = match index.params.get("quantization") {
            Some(Param::Text(word)) => word.as_str(),
            _ => "f32",
        };
        let (bits, hamming) = (element == Element::Bit, index.metric == Metric::Hamming);
        if bits != hamming {
            return unsupported(format!(
                "{} on rows of {element}; hamming is for bits and bits for hamming",
                index.metric
            ));
        }
        if bits && quantization != "b1" {
            return unsupported(format!("quantization {quantization} on rows of bits; use b1"));
        }
        let metric = match index.metric {
            Metric::L2 => MetricKind::L2sq,
            Metric::Cosine => MetricKind::Cos,
            Metric::InnerProduct => MetricKind::IP,
            Metric::Hamming => MetricKind::Hamming,
        };
        let (hand, scalar, metric) = match quantization {
            "f32" => (Hand::Floats, ScalarKind::F32, metric),
            "f16" => (Hand::Floats, ScalarKind::F16, metric),
            "bf16" => (Hand::Floats, ScalarKind::BF16, metric),
            "i8" if element == Element::I8 => (Hand::Bytes, ScalarKind::I8, metric),
            "i8" if index.metric == Metric::Cosine => (Hand::Floats, ScalarKind::I8, metric),
            "i8" => {
                let why = "its conversion keeps only the direction of a vector; use another one, or cosine";
                return unsupported(format!(
                    "quantization i8 under {} on rows of {element}: {why}",
                    index.metric
                ));
            }
            "b1" if bits => (Hand::Bits, ScalarKind::B1, MetricKind::Hamming),
            "b1" => (Hand::Signs, ScalarKind::B1, MetricKind::Hamming),
            other => return unsupported(format!("quantization {other:?}; it has f32, f16, bf16, i8, b1")),
        };
        Ok(Form { hand, scalar, metric })
    }

    /// Whether queries of `element` can be handed over.
    fn element(self) -> Option<Element> {
        match self.hand {
            Hand::Bytes => Some(Element::I8),
            Hand::Bits => Some(Element::Bit),
            Hand::Floats | Hand::Signs => None,
        }
    }

    /// Row `row` of `vectors`; `floats` and `bytes` are memory to use.
    pub(super) fn row<'a>(
        self,
        vectors: &'a Vectors,
        row: usize,
        floats: &'a mut Vec<f32>,
        bytes: &'a mut Vec<u8>,
    ) -> Handed<'a> {
        match self.hand {
            Hand::Bytes => Handed::Bytes(as_signed(vectors.row_bytes(row))),
            Hand::Bits => Handed::Bits(vectors.row_bytes(row)),
            Hand::Floats => {
                floats.resize(vectors.dim(), 0.0);
                vectors.row_into(row, floats);
                Handed::Floats(floats)
            }
            Hand::Signs => {
                floats.resize(vectors.dim(), 0.0);
                vectors.row_into(row, floats);
                bytes.clear();
                signs(floats, bytes);
                Handed::Bits(bytes)
            }
        }
    }

    /// All queries of a point.
    ///
    /// # Errors
    /// Where rows go over as stored and the queries are stored otherwise.
    pub(super) fn queries(self, point: &Point) -> Result<Queries, EngineError> {
        if let Some(element) = self.element().filter(|&element| element != point.element()) {
            let what = format!("usearch: queries of {} for an index that takes {element}", point.element());
            return Err(EngineError::new(ErrorKind::Refused, what));
        }
        let mut queries = Queries { hand: self.hand, row: 0, floats: Vec::new(), bytes: Vec::new() };
        for query in 0..point.queries() {
            match self.hand {
                Hand::Bytes | Hand::Bits => queries.bytes.extend_from_slice(point.raw(query)),
                Hand::Floats => queries.floats.extend_from_slice(point.floats(query)),
                Hand::Signs => signs(point.floats(query), &mut queries.bytes),
            }
        }
        let all = queries.floats.len().max(queries.bytes.len());
        queries.row = all.checked_div(point.queries()).unwrap_or(0);
        Ok(queries)
    }
}

impl Queries {
    /// Query `query`.
    pub(super) fn get(&self, query: usize) -> Handed<'_> {
        let place = query * self.row..(query + 1) * self.row;
        match self.hand {
            Hand::Floats => Handed::Floats(&self.floats[place]),
            Hand::Bytes => Handed::Bytes(as_signed(&self.bytes[place])),
            Hand::Bits | Hand::Signs => Handed::Bits(&self.bytes[place]),
        }
    }
}

/// Appends a bit for each component, set where it is above 0, the first in the highest bit.
fn signs(floats: &[f32], bytes: &mut Vec<u8>) {
    let byte = |eight: &[f32]| {
        eight.iter().enumerate().fold(0, |byte, (i, &value)| byte | (u8::from(value > 0.0) << (7 - i)))
    };
    bytes.extend(floats.chunks(8).map(byte));
}

fn as_signed(bytes: &[u8]) -> &[i8] {
    bytemuck::cast_slice(bytes)
}
