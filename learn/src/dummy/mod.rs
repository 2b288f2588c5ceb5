//! scikit-learn's `dummy`: predictions that do not read the samples, for other models to be measured by.

mod classifier;
mod regressor;

pub use classifier::{ClassStrategy, DummyClassifier, FittedDummyClassifier};
pub use regressor::{Constant, DummyRegressor, FittedDummyRegressor, TargetStrategy};
