//! scikit-learn's `kernel_approximation`: features whose products are nearly a kernel of samples.

mod additive_chi2;
mod count_sketch;
mod fourier;
mod nystroem;

pub use additive_chi2::{AdditiveChi2Sampler, FittedAdditiveChi2Sampler};
pub use count_sketch::{FittedPolynomialCountSketch, PolynomialCountSketch};
pub use fourier::{FittedRBFSampler, FittedSkewedChi2Sampler, Gamma, RBFSampler, SkewedChi2Sampler};
pub use nystroem::{FittedNystroem, Kernel, Nystroem};

/// Components that no model has.
pub(super) const COMPONENTS_MAX: usize = 1 << 32;
