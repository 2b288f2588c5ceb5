//! scikit-learn's `neighbors`: classes by the nearest of their centres.

mod nearest_centroid;

pub use nearest_centroid::{CentroidMetric, CentroidPriors, FittedNearestCentroid, NearestCentroid};
