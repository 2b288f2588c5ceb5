//! scikit-learn's `feature_selection`: features that tell something.

mod from_model;
mod importance;
mod rfe;
mod rule;
mod scores;
mod select;
mod sequential;
mod support;
mod survival;
mod variance_threshold;

pub use from_model::{FittedSelectFromModel, SelectFromModel, SelectionThreshold};
pub use rfe::{FittedRFE, RFE};
pub use scores::{Scores, chi2, f_classif, f_regression};
pub use select::{
    FittedSelect, ScoreFunction, SelectFdr, SelectFpr, SelectFwe, SelectKBest, SelectPercentile,
};
pub use sequential::{FittedSequentialFeatureSelector, SelectionDirection, SequentialFeatureSelector};
pub(crate) use support::Support;
pub use variance_threshold::{FittedVarianceThreshold, VarianceThreshold};
