//! scikit-learn's `impute`: numbers in the place of missing ones.

mod knn_imputer;
mod missing;
mod missing_indicator;
mod simple_imputer;

pub use knn_imputer::{FittedKNNImputer, KNNImputer};
pub use missing_indicator::{FittedMissingIndicator, IndicatedFeatures, MissingIndicator};
pub use simple_imputer::{FittedSimpleImputer, SimpleImputer, Statistic};
