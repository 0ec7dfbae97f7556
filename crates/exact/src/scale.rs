//! Which scale the distances of a foreign truth are on.

/// From our distance and the dimensions.
type Scale = fn(f64, f64) -> f64;

const SCALES: [(&str, Scale); 8] = [
    ("distance", |d, _| d),
    ("squared distance", |d, _| d * d),
    ("Euclidean distance of unit vectors", |d, _| (2.0 * d).max(0.0).sqrt()),
    ("squared Euclidean distance of unit vectors", |d, _| 2.0 * d),
    ("cosine similarity", |d, _| 1.0 - d),
    ("dot product", |d, _| -d),
    ("share of the bits", |d, dim| d / dim),
    ("angle", |d, _| (1.0 - d).clamp(-1.0, 1.0).acos()),
];

/// Takes pairs of distances and says on which scale the second ones are.
pub(crate) struct ScaleFit {
    dim: f64,
    fits: [bool; SCALES.len()],
    any: bool,
}

impl ScaleFit {
    /// For vectors of `dim` components.
    pub(crate) fn new(dim: usize) -> ScaleFit {
        ScaleFit { dim: dim as f64, fits: [true; SCALES.len()], any: false }
    }

    /// Takes one pair; what is not finite says nothing.
    pub(crate) fn add(&mut self, ours: f64, theirs: f64) {
        if ours.is_nan() || !theirs.is_finite() {
            return;
        }
        self.any = true;
        for (fit, (_, scale)) in self.fits.iter_mut().zip(&SCALES) {
            let expected = scale(ours, self.dim);
            let allowed = 1e-3 * expected.abs() + 1e-3 * ours.abs().min(1.0) + 1e-6;
            *fit &= (theirs - expected).abs() <= allowed;
        }
    }

    /// The scale: the first that fits all pairs, "unknown" where none does, none without pairs.
    pub(crate) fn name(&self) -> Option<&'static str> {
        let name = self.fits.iter().position(|&fit| fit).map_or("unknown", |at| SCALES[at].0);
        self.any.then_some(name)
    }
}
