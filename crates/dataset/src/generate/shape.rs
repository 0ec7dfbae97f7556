//! Where a generated row lies: a cluster, a spot in it, a relative, and noise.
//!
//! In a space of at most [`RANK`] latent dimensions whose spread falls off as j^-1/4:
//!
//! ```text
//! root(i)   = centre of i's spot + t_i * g_i             t_i uniform between 0.4 and 1 x WITHIN
//! latent(i) = centre of j's spot + sqrt(1 - s^2) * t_j * g_j + s * t_i * g'_i
//! row(i)    = map * latent(i) + offset + noise
//! ```
//!
//! with j uniform among the rows 0..=i (for a query: among all base rows) and s uniform between 0
//! and 1. Every row is thereby the relative of an earlier one, some very near: this gives the
//! small and widely spread ratios of the 1st to the 100th neighbour distance of real text.

use super::{Part, Recipe};
use half::f16;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;
use types::{Element, Metric};

/// Most latent dimensions.
const RANK: usize = 128;
/// Spots in a cluster.
pub(super) const TOPICS: usize = 16;
/// Share of the latent variance that is between clusters.
const BETWEEN_CLUSTERS: f64 = 0.10;
/// Largest spread of a row around its spot, as a share of the whole spread.
const WITHIN: f64 = 0.82;
/// Length of the common offset: random pairs of real embeddings are not quite at right angles.
const OFFSET: f64 = 0.3;
/// Length of the noise in all dimensions.
const NOISE: f64 = 0.05;

/// What all rows share.
#[derive(Debug)]
pub(super) struct Shape {
    dim: usize,
    rank: usize,
    /// Cumulative cluster weights out of 2^32.
    weights: Vec<u64>,
    /// Spot centres, `clusters * TOPICS` x rank.
    centres: Vec<f32>,
    /// Spread of each latent dimension; squares sum to 1.
    spread: Vec<f32>,
    /// rank x dim.
    map: Vec<f32>,
    offset: Vec<f32>,
    /// For each cluster a far one.
    far: Vec<u32>,
}

/// Buffers of one thread.
pub(super) struct Scratch {
    own: Vec<f32>,
    latent: Vec<f32>,
    vector: Vec<f32>,
}

impl Scratch {
    /// The row last made.
    pub(super) fn vector(&self) -> &[f32] {
        &self.vector
    }
}

/// Where a row belongs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) cluster: u32,
    pub(super) topic: u32,
}

/// The draws at the head of a row's stream.
struct Root {
    place: Place,
    scale: f32,
}

impl Shape {
    pub(super) fn new(recipe: &Recipe) -> Shape {
        let rank = RANK.min(recipe.dim);
        let spread: Vec<f64> = (1..=rank).map(|j| 1.0 / (j as f64).sqrt().sqrt()).collect();
        let length = spread.iter().map(|s| s * s).sum::<f64>().sqrt();
        let spread: Vec<f32> = spread.iter().map(|s| (s / length) as f32).collect();

        let mut rng = recipe.stream("map", 0);
        let unit = 1.0 / (recipe.dim as f64).sqrt();
        let map = normals(&mut rng, rank * recipe.dim, unit);
        let offset = normals(&mut rng, recipe.dim, unit * OFFSET);

        let mut rng = recipe.stream("centres", 0);
        let coarse = normals(&mut rng, recipe.clusters * rank, BETWEEN_CLUSTERS.sqrt());
        let fine_share = 1.0 - WITHIN * WITHIN - BETWEEN_CLUSTERS;
        let mut centres = normals(&mut rng, recipe.clusters * TOPICS * rank, fine_share.sqrt());
        for (spot, centre) in centres.chunks_exact_mut(rank).enumerate() {
            let cluster = &coarse[spot / TOPICS * rank..][..rank];
            for ((value, &cluster), &spread) in centre.iter_mut().zip(cluster).zip(&spread) {
                *value = (*value + cluster) * spread;
            }
        }
        let far = far_clusters(&coarse, &spread, recipe.clusters);
        let weights = cumulative_weights(recipe.clusters);
        Shape { dim: recipe.dim, rank, weights, centres, spread, map, offset, far }
    }

    pub(super) fn scratch(&self) -> Scratch {
        Scratch { own: vec![0.0; self.rank], latent: vec![0.0; self.rank], vector: vec![0.0; self.dim] }
    }

    /// A cluster far from `cluster`.
    pub(super) fn far(&self, cluster: u32) -> u32 {
        self.far[cluster as usize]
    }

    /// The cluster and spot of a row: those of the row whose relative it is.
    pub(super) fn place(&self, recipe: &Recipe, part: Part, row: u64) -> Place {
        let mut rng = recipe.stream(stream_of(part), row);
        let own = self.root(&mut rng);
        let relative = relative(recipe, part, row, &mut rng);
        if part == Part::Base && relative == row {
            return own.place;
        }
        self.root(&mut recipe.stream("base", relative)).place
    }

    /// Makes one row; it is then in `scratch`.
    pub(super) fn row(&self, recipe: &Recipe, part: Part, row: u64, scratch: &mut Scratch) {
        let Scratch { own, latent, vector } = scratch;
        let mut rng = recipe.stream(stream_of(part), row);
        let own_root = self.root(&mut rng);
        let relative = relative(recipe, part, row, &mut rng);
        let nearness = unit(&mut rng);
        let length = 0.8 + 0.4 * unit(&mut rng);
        own.fill_with(|| normal(&mut rng));

        let mut family = recipe.stream("base", relative);
        let root = self.root(&mut family);
        // The head of a row's stream has three more draws before its deviation would begin; the
        // root's deviation has a place of its own, past everything else in the stream.
        family.set_word_pos(1 << 40);
        let kept = root.scale * (1.0 - nearness * nearness).sqrt();
        let moved = own_root.scale * nearness;
        let spot = root.place.cluster as usize * TOPICS + root.place.topic as usize;
        let centre = &self.centres[spot * self.rank..][..self.rank];
        for (j, value) in latent.iter_mut().enumerate() {
            *value = centre[j] + (kept * normal(&mut family) + moved * own[j]) * self.spread[j];
        }

        let noise = (NOISE / (self.dim as f64).sqrt()) as f32;
        for (value, &offset) in vector.iter_mut().zip(&self.offset) {
            *value = offset + noise * normal(&mut rng);
        }
        for (&latent, line) in latent.iter().zip(self.map.chunks_exact(self.dim)) {
            for (value, &map) in vector.iter_mut().zip(line) {
                *value += latent * map;
            }
        }
        match recipe.metric {
            Metric::Cosine => scale_to(vector, 1.0),
            Metric::InnerProduct => scale_to(vector, length),
            Metric::L2 | Metric::Hamming => {}
        }
    }

    fn root(&self, rng: &mut ChaCha8Rng) -> Root {
        let at = rng.next_u64() >> 32;
        let cluster = self.weights.partition_point(|&end| end <= at) as u32;
        let topic = below(rng, TOPICS as u64) as u32;
        let scale = WITHIN as f32 * (0.4 + 0.6 * unit(rng));
        Root { place: Place { cluster, topic }, scale }
    }
}

fn stream_of(part: Part) -> &'static str {
    match part {
        Part::Base => "base",
        Part::Queries => "queries",
    }
}

/// The base row whose relative this row is.
fn relative(recipe: &Recipe, part: Part, row: u64, rng: &mut ChaCha8Rng) -> u64 {
    match part {
        Part::Base => below(rng, row + 1),
        Part::Queries => below(rng, recipe.rows as u64),
    }
}

/// Uniform below `n`: the high half of a product (Lemire 2019, without the rejection: the bias is
/// below 2^-32 for all n here).
pub(super) fn below(rng: &mut ChaCha8Rng, n: u64) -> u64 {
    ((u128::from(rng.next_u64()) * u128::from(n)) >> 64) as u64
}

/// Uniform in [0, 1), a multiple of 2^-24.
fn unit(rng: &mut ChaCha8Rng) -> f32 {
    (rng.next_u64() >> 40) as f32 / 16_777_216.0
}

/// Nearly normal, mean 0, variance 1: the sum of four uniform 16-bit numbers (Irwin-Hall), which
/// needs no logarithm and is therefore the same on every machine. Values lie within +-3.47; a
/// component of a row is the sum of up to 128 of them.
fn normal(rng: &mut ChaCha8Rng) -> f32 {
    /// sqrt(3) / 2^16.
    const SCALE: f32 = 1.732_050_8 / 65_536.0;
    let bits = rng.next_u64();
    let sum = (bits & 0xFFFF) + (bits >> 16 & 0xFFFF) + (bits >> 32 & 0xFFFF) + (bits >> 48);
    (sum as f32 - 131_070.0) * SCALE
}

fn normals(rng: &mut ChaCha8Rng, count: usize, scale: f64) -> Vec<f32> {
    (0..count).map(|_| normal(rng) * scale as f32).collect()
}

/// Cluster i has weight 1 / (i + n / 20), given as ends out of 2^32.
fn cumulative_weights(clusters: usize) -> Vec<u64> {
    let weight = |i: usize| 1.0 / (i as f64 + clusters as f64 / 20.0);
    let total: f64 = (0..clusters).map(weight).sum();
    let mut sum = 0.0;
    let mut ends: Vec<u64> = (0..clusters)
        .map(|i| {
            sum += weight(i);
            (sum / total * 4_294_967_296.0) as u64
        })
        .collect();
    if let Some(last) = ends.last_mut() {
        *last = 1 << 32;
    }
    ends
}

/// For each cluster the one at the widest angle from it, among the larger half (the first ones),
/// so that a filter on it finds rows.
fn far_clusters(coarse: &[f32], spread: &[f32], clusters: usize) -> Vec<u32> {
    let rank = spread.len();
    let mut centres = coarse.to_vec();
    for centre in centres.chunks_exact_mut(rank) {
        for (value, &spread) in centre.iter_mut().zip(spread) {
            *value *= spread;
        }
        scale_to(centre, 1.0);
    }
    let candidates = clusters.div_ceil(2).max(2).min(clusters);
    let dot = |a: usize, b: usize| -> f32 {
        let (a, b) = (&centres[a * rank..][..rank], &centres[b * rank..][..rank]);
        a.iter().zip(b).map(|(x, y)| x * y).sum()
    };
    (0..clusters)
        .map(|own| {
            let far = (0..candidates)
                .filter(|&other| other != own)
                .min_by(|&a, &b| dot(own, a).total_cmp(&dot(own, b)));
            far.unwrap_or(own) as u32
        })
        .collect()
}

/// Scales to a Euclidean length; a zero vector stays.
fn scale_to(vector: &mut [f32], length: f32) {
    let norm = vector.iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>().sqrt();
    if norm > 0.0 {
        let factor = (f64::from(length) / norm) as f32;
        for value in vector {
            *value *= factor;
        }
    }
}

/// Writes a row as `element`. Bytes span four times the usual size of a component, 1 / sqrt(dim);
/// unsigned ones are moved up by 128; a bit is set where the component is above 0.
pub(super) fn encode(element: Element, vector: &[f32], out: &mut [u8]) {
    let step = 127.0 / 4.0 * (vector.len() as f64).sqrt();
    let byte = |value: f32| (f64::from(value) * step).round().clamp(-127.0, 127.0);
    match element {
        Element::F32 => {
            for (slot, value) in out.chunks_exact_mut(4).zip(vector) {
                slot.copy_from_slice(&value.to_le_bytes());
            }
        }
        Element::F16 => {
            for (slot, &value) in out.chunks_exact_mut(2).zip(vector) {
                slot.copy_from_slice(&f16::from_f32(value).to_le_bytes());
            }
        }
        Element::I8 => {
            for (slot, &value) in out.iter_mut().zip(vector) {
                *slot = (byte(value) as i8).to_le_bytes()[0];
            }
        }
        Element::U8 => {
            for (slot, &value) in out.iter_mut().zip(vector) {
                *slot = (byte(value) + 128.0) as u8;
            }
        }
        Element::Bit => {
            out.fill(0);
            for (i, _) in vector.iter().enumerate().filter(|(_, value)| **value > 0.0) {
                out[i / 8] |= 1 << (7 - i % 8);
            }
        }
    }
}
