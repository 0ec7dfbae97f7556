//! Kernels against obvious loops.
