//! scikit-learn's `naive_bayes`: classes by the likelihood of each feature on its own.

mod categorical;
mod complement;
mod counts;
mod discrete;
mod family;
mod gaussian;
mod likelihood;

pub use categorical::{CategoricalNB, FittedCategoricalNB, MinCategories};
pub use complement::{ComplementNB, FittedComplementNB};
pub use discrete::{BernoulliNB, FittedBernoulliNB, FittedMultinomialNB, MultinomialNB};
pub use gaussian::{FittedGaussianNB, GaussianNB};
