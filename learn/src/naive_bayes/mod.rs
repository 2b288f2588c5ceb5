//! scikit-learn's `naive_bayes`: classes by the likelihood of each feature on its own.

mod counts;
mod discrete;
mod gaussian;
mod likelihood;

pub use discrete::{BernoulliNB, FittedBernoulliNB, FittedMultinomialNB, MultinomialNB};
pub use gaussian::{FittedGaussianNB, GaussianNB};
