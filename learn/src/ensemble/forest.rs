//! Forests: trees of drawn samples, features or thresholds, averaged.

use crate::tree::family::{
    forest_parameters, named_parameters, tree_classifier, tree_parameters, tree_regressor,
};
use crate::tree::forest::Forest;
use crate::tree::{ClassCriterion, MaxFeatures};

/// scikit-learn's `RandomForestClassifier`, on bins: the average of trees, each of drawn samples, that look
/// at drawn features for each split.
///
/// All trees grow in the same passes. Bins are those of
/// [`DecisionTreeClassifier`](crate::tree::DecisionTreeClassifier).
///
/// ```
/// use tharsis_learn::datasets::load_wine;
/// use tharsis_learn::ensemble::RandomForestClassifier;
/// let wine = load_wine()?;
/// let model = RandomForestClassifier::new().n_estimators(20).fit(&wine.data, &wine.target, ..)?;
/// assert!(0.98 < model.score(&wine.data, &wine.target, ..)?);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct RandomForestClassifier {
    forest: Forest,
    criterion: ClassCriterion,
}

/// scikit-learn's `RandomForestRegressor`, on bins: the average of trees, each of drawn samples. Passes and
/// bins are those of [`RandomForestClassifier`].
///
/// ```
/// use tharsis_learn::datasets::load_diabetes;
/// use tharsis_learn::ensemble::RandomForestRegressor;
/// let data = load_diabetes()?;
/// let model = RandomForestRegressor::new().n_estimators(10).fit(&data.data, &data.target, ..)?;
/// assert!(0.8 < model.score(&data.data, &data.target, ..)?);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct RandomForestRegressor {
    forest: Forest,
}

/// scikit-learn's `ExtraTreesClassifier`, on bins: the average of trees that draw a threshold for each of
/// some drawn features, and take the best of these.
///
/// A feature with more than 255 distinct values has the bounds of its bins as thresholds. Passes are those of
/// [`RandomForestClassifier`].
///
/// ```
/// use tharsis_learn::datasets::load_wine;
/// use tharsis_learn::ensemble::ExtraTreesClassifier;
/// let wine = load_wine()?;
/// let model = ExtraTreesClassifier::new().n_estimators(20).fit(&wine.data, &wine.target, ..)?;
/// assert_eq!(model.score(&wine.data, &wine.target, ..)?, 1.0);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct ExtraTreesClassifier {
    forest: Forest,
    criterion: ClassCriterion,
}

/// scikit-learn's `ExtraTreesRegressor`, on bins: the average of trees that draw a threshold for each
/// feature, and take the best. Thresholds are those of [`ExtraTreesClassifier`].
///
/// ```
/// use tharsis_learn::datasets::load_diabetes;
/// use tharsis_learn::ensemble::ExtraTreesRegressor;
/// let data = load_diabetes()?;
/// let model = ExtraTreesRegressor::new().n_estimators(10).fit(&data.data, &data.target, ..)?;
/// assert!(0.99 < model.score(&data.data, &data.target, ..)?);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct ExtraTreesRegressor {
    forest: Forest,
}

macro_rules! defaults {
    ($name:ident, $forest:expr $(, $criterion:ident)?) => {
        impl Default for $name {
            fn default() -> $name {
                $name { forest: $forest $(, $criterion: ClassCriterion::Gini)? }
            }
        }

        impl $name {
            /// An estimator with scikit-learn's defaults: a hundred trees.
            pub fn new() -> $name {
                $name::default()
            }
        }

        tree_parameters!($name);
        forest_parameters!($name);
        named_parameters!(
            $name,
            [
                "n_estimators" => forest.n_estimators >= 1,
                $("criterion" => $criterion,)?
                "bootstrap" => forest.bootstrap,
                "oob_score" => forest.oob_score,
                "max_samples" => forest.max_samples,
            ]
        );
    };
}

macro_rules! out_of_bag {
    ($($fitted:ident),*) => {$(
        impl $fitted {
            /// scikit-learn's `oob_score_`: the accuracy, or R², of samples that some trees have not seen;
            /// NaN if there are none. `None` if it was not asked for.
            pub fn oob_score(&self) -> Option<f64> {
                self.fitted.oob_score
            }
        }
    )*};
}

defaults!(RandomForestClassifier, Forest::random_forest(MaxFeatures::Sqrt), criterion);
tree_classifier!(RandomForestClassifier, FittedRandomForestClassifier, "RandomForestClassifier", "ensemble");
defaults!(RandomForestRegressor, Forest::random_forest(MaxFeatures::All));
tree_regressor!(RandomForestRegressor, FittedRandomForestRegressor, "RandomForestRegressor", "ensemble");
defaults!(ExtraTreesClassifier, Forest::extra_trees(MaxFeatures::Sqrt), criterion);
tree_classifier!(ExtraTreesClassifier, FittedExtraTreesClassifier, "ExtraTreesClassifier", "ensemble");
defaults!(ExtraTreesRegressor, Forest::extra_trees(MaxFeatures::All));
tree_regressor!(ExtraTreesRegressor, FittedExtraTreesRegressor, "ExtraTreesRegressor", "ensemble");
out_of_bag!(FittedRandomForestClassifier, FittedRandomForestRegressor);
out_of_bag!(FittedExtraTreesClassifier, FittedExtraTreesRegressor);
