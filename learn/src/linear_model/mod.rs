//! scikit-learn's `linear_model`: models that are linear in the features.

mod active;
mod bayesian;
mod descent;
mod elastic_net;
mod elastic_net_cv;
mod far;
mod generalized;
mod huber;
mod lars;
mod lars_cv;
mod least;
pub(crate) mod line;
mod linear_regression;
mod logistic;
mod logistic_cv;
pub(crate) mod minimize;
pub(crate) mod penalized;
mod pursuit;
mod ridge;
pub(crate) mod ridge_classifier;
mod ridge_cv;
mod stochastic;
mod stochastic_models;
mod sums;

pub use bayesian::{ARDRegression, BayesianRidge, FittedARDRegression, FittedBayesianRidge};
pub use elastic_net::{ElasticNet, FittedElasticNet, Lasso};
pub use elastic_net_cv::{Alphas, ElasticNetCV, FittedElasticNetCV, L1Ratios, LassoCV};
pub use generalized::{FittedGeneralized, GammaRegressor, PoissonRegressor, TweedieLink, TweedieRegressor};
pub use huber::{FittedHuberRegressor, HuberRegressor};
pub use lars::{Criterion, FittedLars, FittedLassoLarsIC, Lars, LassoLars, LassoLarsIC};
pub use lars_cv::{
    FittedLassoLarsCV, FittedOrthogonalMatchingPursuitCV, LassoLarsCV, OrthogonalMatchingPursuitCV,
};
pub use linear_regression::{FittedLinearRegression, LinearRegression};
pub use logistic::{FittedLogisticRegression, LogisticRegression};
pub use logistic_cv::{Cs, FittedLogisticRegressionCV, LogisticRegressionCV};
pub use pursuit::{FittedOrthogonalMatchingPursuit, OrthogonalMatchingPursuit};
pub use ridge::{FittedRidge, Ridge};
pub use ridge_classifier::{FittedRidgeClassifier, RidgeClassifier};
pub use ridge_cv::{FittedRidgeCV, FittedRidgeClassifierCV, RidgeCV, RidgeClassifierCV};
pub use stochastic::{LearningRate, StochasticLoss, StochasticPenalty};
pub use stochastic_models::{
    FittedStochasticClassifier, FittedStochasticRegressor, PassiveAggressiveClassifier,
    PassiveAggressiveRegressor, PassiveDistance, PassiveLoss, Perceptron, SGDClassifier, SGDRegressor,
};
