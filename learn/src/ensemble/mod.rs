//! scikit-learn's `ensemble`: models of many trees.

mod boosting;
mod forest;
mod hist_classifier;
mod hist_regressor;
mod isolation;

pub use boosting::EarlyStopping;
pub use forest::{
    ExtraTreesClassifier, ExtraTreesRegressor, FittedExtraTreesClassifier, FittedExtraTreesRegressor,
    FittedRandomForestClassifier, FittedRandomForestRegressor, RandomForestClassifier, RandomForestRegressor,
};
pub use hist_classifier::{FittedHistGradientBoostingClassifier, HistGradientBoostingClassifier};
pub use hist_regressor::{
    FittedHistGradientBoostingRegressor, HistGradientBoostingRegressor, RegressionLoss,
};
pub use isolation::{FittedIsolationForest, IsolationForest};
