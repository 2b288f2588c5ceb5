//! scikit-learn's `covariance`: covariance matrices, and their shrinkage towards a multiple of the identity.

mod empirical;
mod fitted;
mod shrunk;

pub use empirical::EmpiricalCovariance;
pub use fitted::FittedCovariance;
pub use shrunk::{LedoitWolf, OAS, ShrunkCovariance};
