//! scikit-learn's `discriminant_analysis`: classes with normal distributions.

mod linear;
mod priors;
mod quadratic;

pub use linear::{FittedLinearDiscriminantAnalysis, LinearDiscriminantAnalysis};
pub use quadratic::{FittedQuadraticDiscriminantAnalysis, QuadraticDiscriminantAnalysis};
