//! scikit-learn's `ensemble`: models of many trees, or of other models.

mod ada_boost;
mod bagging;
mod boosting;
mod drawn;
mod forest;
mod hist_classifier;
mod hist_regressor;
mod importances;
mod isolation;
mod stacking;
mod voting;

pub use ada_boost::{
    AdaBoostClassifier, AdaBoostLoss, AdaBoostRegressor, FittedAdaBoostClassifier, FittedAdaBoostRegressor,
};
pub use bagging::{BaggingClassifier, BaggingRegressor, FittedBaggingClassifier, FittedBaggingRegressor};
pub use boosting::EarlyStopping;
pub use forest::{
    ExtraTreesClassifier, ExtraTreesRegressor, FittedExtraTreesClassifier, FittedExtraTreesRegressor,
    FittedRandomForestClassifier, FittedRandomForestRegressor, RandomForestClassifier, RandomForestRegressor,
};
pub use hist_classifier::{FittedHistGradientBoostingClassifier, HistGradientBoostingClassifier};
pub use hist_regressor::{
    FittedHistGradientBoostingRegressor, HistGradientBoostingRegressor, RegressionLoss,
};
pub(crate) use importances::tree_importances;
pub use isolation::{FittedIsolationForest, IsolationForest};
pub use stacking::{
    FittedStackingClassifier, FittedStackingRegressor, StackMethod, StackingClassifier, StackingRegressor,
};
pub use voting::{FittedVotingClassifier, FittedVotingRegressor, Voting, VotingClassifier, VotingRegressor};
