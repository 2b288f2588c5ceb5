//! Forests: trees of drawn samples, features or thresholds, averaged.

use crate::tree::family::{
    forest_parameters, named_parameters, tree_classifier, tree_parameters, tree_regressor,
};
use crate::tree::grove::Grove;
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
    grove: Grove,
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
    grove: Grove,
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
    grove: Grove,
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
    grove: Grove,
}

macro_rules! defaults {
    ($name:ident, $grove:expr $(, $criterion:ident)?) => {
        impl Default for $name {
            fn default() -> $name {
                $name { grove: $grove $(, $criterion: ClassCriterion::Gini)? }
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
                "n_estimators" => grove.n_estimators >= 1,
                $("criterion" => $criterion,)?
                "bootstrap" => grove.bootstrap,
                "oob_score" => grove.oob_score,
                "max_samples" => grove.max_samples,
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
                self.planted.oob_score
            }
        }
    )*};
}

defaults!(RandomForestClassifier, Grove::forest(MaxFeatures::Sqrt), criterion);
tree_classifier!(RandomForestClassifier, FittedRandomForestClassifier, "RandomForestClassifier", "ensemble");
defaults!(RandomForestRegressor, Grove::forest(MaxFeatures::All));
tree_regressor!(RandomForestRegressor, FittedRandomForestRegressor, "RandomForestRegressor", "ensemble");
defaults!(ExtraTreesClassifier, Grove::random(MaxFeatures::Sqrt), criterion);
tree_classifier!(ExtraTreesClassifier, FittedExtraTreesClassifier, "ExtraTreesClassifier", "ensemble");
defaults!(ExtraTreesRegressor, Grove::random(MaxFeatures::All));
tree_regressor!(ExtraTreesRegressor, FittedExtraTreesRegressor, "ExtraTreesRegressor", "ensemble");
out_of_bag!(FittedRandomForestClassifier, FittedRandomForestRegressor);
out_of_bag!(FittedExtraTreesClassifier, FittedExtraTreesRegressor);
