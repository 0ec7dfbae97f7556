//! How pairs are screened before float64 decides, and which way is the cheapest here.

use kernel::{Level, Width};

/// How pairs are ruled out. The answer does not depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Method {
    /// The cheapest, judged on a sample of rows and queries.
    #[default]
    Auto,
    /// Dot products in f32.
    F32,
    /// Products of 8-bit integers with a proven bound.
    Int8,
    /// Products of 16-bit integers with a proven bound: half as fast, two hundred times narrower.
    Int16,
}

impl Method {
    /// All, as `--method` accepts them.
    pub const ALL: [Method; 4] = [Method::Auto, Method::F32, Method::Int8, Method::Int16];

    /// `auto`, `f32`, `int8`, `int16`.
    pub fn name(self) -> &'static str {
        match self {
            Method::Auto => "auto",
            Method::F32 => "f32",
            Method::Int8 => "int8",
            Method::Int16 => "int16",
        }
    }

    /// The integers that it multiplies; none for f32.
    pub(crate) fn width(self) -> Option<Width> {
        match self {
            Method::Int8 => Some(Width::Eight),
            Method::Int16 => Some(Width::Sixteen),
            Method::Auto | Method::F32 => None,
        }
    }

    /// The cost of a pair in nanoseconds, about, where `queries` share the work on each row, and
    /// `rate` of the pairs are not ruled out. The figures were fitted on one machine (2 cores of a
    /// Xeon of 2023); only their ratios matter.
    pub(crate) fn cost(self, level: Level, dim: usize, queries: usize, rate: f64) -> f64 {
        let dim = dim as f64;
        // (a component of a pair, a pair, a component of a row)
        let (component, pair, row) = match (self, level) {
            (Method::Int8, Level::Amx) => (0.0006, 0.12, 0.25),
            (Method::Int8, Level::Avx512) => (0.004, 0.15, 0.25),
            (Method::Int8, Level::Avx2 | Level::Neon) => (0.016, 0.4, 0.5),
            (Method::Int8, Level::Portable) => (0.3, 1.5, 1.5),
            (Method::Int16, Level::Avx512 | Level::Amx) => (0.008, 0.15, 0.25),
            (Method::Int16, Level::Avx2 | Level::Neon) => (0.03, 0.4, 0.5),
            (Method::Int16, Level::Portable) => (0.6, 1.5, 1.5),
            (_, Level::Avx512 | Level::Amx) => (0.0115, 0.1, 0.03),
            (_, Level::Avx2 | Level::Neon) => (0.025, 0.2, 0.05),
            (_, Level::Portable) => (0.1, 0.5, 0.1),
        };
        let tile = queries.next_multiple_of(kernel::TILE_QUERIES) as f64 / queries.max(1) as f64;
        tile * (component * dim + pair) + row * dim / queries.max(1) as f64 + rate * (30.0 + 0.15 * dim)
    }
}
