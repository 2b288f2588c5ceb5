//! scikit-learn's `neighbors`: the samples of a fit that are near to others, and what they tell of these.
//!
//! Distances are of differences, so they are exact to rounding wherever zero is. All pairs of rows are looked
//! at, block by block, and of each block the nearest rows are kept: memory is that of the neighbours, not of
//! the pairs.

pub(crate) mod block;
pub(crate) mod donors;
mod foreign;
mod k_classifier;
mod k_regressor;
mod local_outlier_factor;
mod means;
pub(crate) mod metric;
mod nearest;
mod nearest_centroid;
mod radius_classifier;
mod radius_regressor;
pub(crate) mod reference;
mod setters;
mod wire;

pub use foreign::find_foreign;
pub use k_classifier::{FittedKNeighborsClassifier, KNeighborsClassifier};
pub use k_regressor::{FittedKNeighborsRegressor, KNeighborsRegressor};
pub use local_outlier_factor::{FittedLocalOutlierFactor, LocalOutlierFactor};
pub use metric::{Metric, Weights};
pub use nearest::{FittedNearestNeighbors, NearestNeighbors, NeighborsWithin};
pub use nearest_centroid::{CentroidMetric, CentroidPriors, FittedNearestCentroid, NearestCentroid};
pub use radius_classifier::{FittedRadiusNeighborsClassifier, OutlierLabel, RadiusNeighborsClassifier};
pub use radius_regressor::{FittedRadiusNeighborsRegressor, RadiusNeighborsRegressor};
pub use reference::Neighbors;
