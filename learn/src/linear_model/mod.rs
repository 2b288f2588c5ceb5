//! scikit-learn's `linear_model`: models that are linear in the features.

mod descent;
mod elastic_net;
mod generalized;
mod least;
mod line;
mod linear_regression;
mod logistic;
mod minimize;
mod penalized;
mod ridge;
mod ridge_classifier;

pub use elastic_net::{ElasticNet, FittedElasticNet, Lasso};
pub use generalized::{FittedGeneralized, GammaRegressor, PoissonRegressor, TweedieLink, TweedieRegressor};
pub use linear_regression::{FittedLinearRegression, LinearRegression};
pub use logistic::{FittedLogisticRegression, LogisticRegression};
pub use ridge::{FittedRidge, Ridge};
pub use ridge_classifier::{FittedRidgeClassifier, RidgeClassifier};
