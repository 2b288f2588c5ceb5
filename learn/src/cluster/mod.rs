//! scikit-learn's `cluster`: groups of samples.

mod initial;
mod k_means;

pub use initial::Init;
pub use k_means::{FittedKMeans, KMeans};
