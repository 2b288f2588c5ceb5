//! scikit-learn's `feature_selection`: features that tell something.

mod rule;
mod scores;
mod select;
mod support;
mod survival;
mod variance_threshold;

pub use scores::{Scores, chi2, f_classif, f_regression};
pub use select::{
    FittedSelect, ScoreFunction, SelectFdr, SelectFpr, SelectFwe, SelectKBest, SelectPercentile,
};
pub use variance_threshold::{FittedVarianceThreshold, VarianceThreshold};
