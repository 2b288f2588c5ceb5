//! scikit-learn's `mixture`: samples of several distributions.

mod covariances;
mod gaussian;
mod step;

pub use covariances::CovarianceType;
pub use gaussian::{FittedGaussianMixture, GaussianMixture, MixtureInit};
