//! The estimators of trees and forests: they differ in their parameters, and have their methods from here.

/// The setters that trees and forests have.
macro_rules! tree_parameters {
    ($name:ident) => {
        impl $name {
            /// scikit-learn's `max_depth`: the number of splits on the way to a leaf, or `None` for no limit,
            /// the default.
            pub fn max_depth(self, max_depth: impl Into<Option<usize>>) -> $name {
                self.with(|forest| forest.max_depth = max_depth.into())
            }

            /// scikit-learn's `min_samples_split`: the least number of samples of a node that is split; 2 by
            /// default.
            pub fn min_samples_split(self, min_samples_split: usize) -> $name {
                self.with(|forest| forest.min_samples_split = min_samples_split)
            }

            /// scikit-learn's `min_samples_leaf`: the least number of samples of a leaf; 1 by default.
            pub fn min_samples_leaf(self, min_samples_leaf: usize) -> $name {
                self.with(|forest| forest.min_samples_leaf = min_samples_leaf)
            }

            /// scikit-learn's `max_features`: the number of features that are drawn and looked at for a
            /// split. If none of them can split the node, more are drawn.
            pub fn max_features(self, max_features: impl Into<crate::tree::MaxFeatures>) -> $name {
                self.with(|forest| forest.max_features = max_features.into())
            }

            /// scikit-learn's `max_leaf_nodes`: the number of leaves, at least 2, of a tree that grows best
            /// first, or `None` for no limit, the default.
            pub fn max_leaf_nodes(self, max_leaf_nodes: impl Into<Option<usize>>) -> $name {
                self.with(|forest| forest.max_leaf_nodes = max_leaf_nodes.into())
            }

            /// scikit-learn's `min_impurity_decrease`: how much a split must lower the impurity of all
            /// samples; 0 by default.
            pub fn min_impurity_decrease(self, min_impurity_decrease: f64) -> $name {
                self.with(|forest| forest.min_impurity_decrease = min_impurity_decrease)
            }

            /// scikit-learn's `random_state`: the seed of all draws; the numbers are not scikit-learn's.
            pub fn random_state(self, random_state: u64) -> $name {
                self.with(|forest| forest.random_state = random_state)
            }

            fn with(mut self, change: impl FnOnce(&mut crate::tree::forest::Forest)) -> $name {
                change(&mut self.forest);
                self
            }
        }
    };
}
pub(crate) use tree_parameters;

/// The setters that only forests have.
macro_rules! forest_parameters {
    ($name:ident) => {
        impl $name {
            /// scikit-learn's `n_estimators`: the number of trees; 100 by default.
            pub fn n_estimators(self, n_estimators: usize) -> $name {
                self.with(|forest| forest.n_estimators = n_estimators)
            }

            /// scikit-learn's `bootstrap`: whether each tree has samples that are drawn. A sample is in a
            /// tree as often as a draw with replacement of many would have it, and the number of all draws
            /// varies by about its root: so a tree is a function of seed and position, and no rows are
            /// copied.
            pub fn bootstrap(self, bootstrap: bool) -> $name {
                self.with(|forest| forest.bootstrap = bootstrap)
            }

            /// scikit-learn's `oob_score`: whether the forest is scored by the samples that its trees have
            /// not seen, each by the average of these trees; not by default.
            pub fn oob_score(self, oob_score: bool) -> $name {
                self.with(|forest| forest.oob_score = oob_score)
            }

            /// scikit-learn's `max_samples`: the number of draws for a tree as a share of the samples, above
            /// 0 and at most 1, or `None` for 1, the default.
            pub fn max_samples(self, max_samples: impl Into<Option<f64>>) -> $name {
                self.with(|forest| forest.max_samples = max_samples.into().map($crate::params::Fraction))
            }
        }
    };
}
pub(crate) use forest_parameters;

/// A classifier, which is a struct with `forest` and `criterion`, and its model.
macro_rules! tree_classifier {
    ($name:ident, $fitted:ident, $text:literal, $path:literal) => {
        #[doc = concat!("A fitted [`", $text, "`].")]
        #[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
        #[non_exhaustive]
        pub struct $fitted {
            /// scikit-learn's `classes_`, ascending.
            pub classes: Vec<i64>,
            /// scikit-learn's `feature_importances_`: the part that each feature has in what splits lower the
            /// impurity; (d,).
            pub feature_importances: ndarray::Array1<f64>,
            fitted: crate::tree::forest::FittedForest,
        }

        impl $name {
            /// scikit-learn's `criterion`: the impurity that splits make small; Gini's by default.
            pub fn criterion(self, criterion: crate::tree::ClassCriterion) -> $name {
                $name { criterion, ..self }
            }

            /// Fits the trees to samples (n, d), of any real dtype, and labels (n,), whole numbers.
            ///
            /// ```
            /// use tharsis_learn::datasets::load_iris;
            #[doc = concat!("use tharsis_learn::", $path, "::", $text, ";")]
            /// let iris = load_iris()?;
            #[doc = concat!("let model = ", $text, "::new().max_depth(5).fit(&iris.data, &iris.target, ..)?;")]
            /// assert_eq!(model.classes, [0, 1, 2]);
            /// assert!(0.9 < model.score(&iris.data, &iris.target, ..)?);
            /// # Ok::<(), tharsis_learn::Error>(())
            /// ```
            ///
            /// # Errors
            /// `ValueError` for parameters out of their ranges, labels that are not whole, shapes that do
            /// not fit, no samples, no features, complex numbers, infinity, and weights that are negative,
            /// NaN or all zero; `MemoryError` if the bins or the sums of a node do not fit; errors of the
            /// passes.
            #[track_caller]
            pub fn fit(
                &self,
                x: &tharsis_numeric::Tensor,
                y: &tharsis_numeric::Tensor,
                options: impl Into<crate::FitOptions>,
            ) -> tharsis_numeric::Result<$fitted> {
                crate::base::Estimator::fit_any(self, x, Some(y), &options.into())
            }
        }

        impl $fitted {
            /// The labels of samples (n, d), as an expression; (n,), int64.
            ///
            /// # Errors
            /// `ValueError` for another number of features; when run for infinity.
            #[track_caller]
            pub fn predict(&self, x: &tharsis_numeric::Tensor) -> tharsis_numeric::Tensor {
                crate::labels::largest(&self.predict_proba(x), &self.classes)
            }

            /// The probability of each class, in ascending order, for samples (n, d), as an expression; (n,
            /// k).
            ///
            /// # Errors
            /// `ValueError` for another number of features; when run for infinity.
            #[track_caller]
            pub fn predict_proba(&self, x: &tharsis_numeric::Tensor) -> tharsis_numeric::Tensor {
                self.fitted.trees.sums($text, x).unwrap_or_else(tharsis_numeric::Tensor::from)
            }

            /// The share of samples (n, d) whose label is predicted, or of their weights.
            ///
            /// # Errors
            /// `ValueError` for shapes that do not fit; errors of the pass.
            #[track_caller]
            pub fn score(
                &self,
                x: &tharsis_numeric::Tensor,
                y: &tharsis_numeric::Tensor,
                options: impl Into<crate::FitOptions>,
            ) -> tharsis_numeric::Result<f64> {
                crate::base::Predict::score_any(self, x, y, &options.into())
            }
        }

        impl crate::base::Estimator for $name {
            type Fitted = $fitted;

            fn takes_nan(&self) -> bool {
                true
            }

            #[track_caller]
            fn fit_any(
                &self,
                x: &tharsis_numeric::Tensor,
                y: Option<&tharsis_numeric::Tensor>,
                options: &crate::FitOptions,
            ) -> tharsis_numeric::Result<$fitted> {
                self.forest.check($text)?;
                let training = crate::checks::Training::supervised($text, x, y, options)?;
                let executor = options.chosen_executor();
                let (classes, fitted) = self.forest.classes(&training, executor, self.criterion.into())?;
                Ok($fitted { classes, feature_importances: fitted.importances.clone(), fitted })
            }
        }

        impl std::fmt::Display for $fitted {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let features = self.feature_importances.len();
                write!(f, "{} of {features} features, classes {:?}", $text, self.classes)?;
                self.fitted.show(f)
            }
        }

        crate::base::classifies!($fitted, $text);
        crate::saved::saved!($fitted, $text, |model| {
            !model.classes.is_empty()
                && model.fitted.trees.width() == model.classes.len()
                && model.fitted.trees.features() == model.feature_importances.len()
        });
    };
}
pub(crate) use tree_classifier;

/// A regressor, which is a struct with `forest`, and its model.
macro_rules! tree_regressor {
    ($name:ident, $fitted:ident, $text:literal, $path:literal) => {
        #[doc = concat!("A fitted [`", $text, "`].")]
        #[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
        #[non_exhaustive]
        pub struct $fitted {
            /// scikit-learn's `feature_importances_`: the part that each feature has in what splits lower the
            /// squared error; (d,).
            pub feature_importances: ndarray::Array1<f64>,
            fitted: crate::tree::forest::FittedForest,
        }

        impl $name {
            /// Fits the trees to samples (n, d) and targets (n,), of any real dtype.
            ///
            /// ```
            /// use tharsis_learn::datasets::load_diabetes;
            #[doc = concat!("use tharsis_learn::", $path, "::", $text, ";")]
            /// let data = load_diabetes()?;
            #[doc = concat!("let model = ", $text, "::new().max_depth(6).fit(&data.data, &data.target, ..)?;")]
            /// assert_eq!(model.feature_importances.len(), 10);
            /// assert!(0.4 < model.score(&data.data, &data.target, ..)?);
            /// # Ok::<(), tharsis_learn::Error>(())
            /// ```
            ///
            /// # Errors
            /// `ValueError` for parameters out of their ranges, several targets, shapes that do not fit, no
            /// samples, no features, complex numbers, infinity, targets that are NaN, and weights that are
            /// negative, NaN or all zero; `MemoryError` if the bins do not fit; errors of the passes.
            #[track_caller]
            pub fn fit(
                &self,
                x: &tharsis_numeric::Tensor,
                y: &tharsis_numeric::Tensor,
                options: impl Into<crate::FitOptions>,
            ) -> tharsis_numeric::Result<$fitted> {
                crate::base::Estimator::fit_any(self, x, Some(y), &options.into())
            }
        }

        impl $fitted {
            /// The predictions for samples (n, d), as an expression; (n,), float64.
            ///
            /// # Errors
            /// `ValueError` for another number of features; when run for infinity.
            #[track_caller]
            pub fn predict(&self, x: &tharsis_numeric::Tensor) -> tharsis_numeric::Tensor {
                match self.fitted.trees.sums($text, x) {
                    Ok(sums) => sums.squeeze(Some(&[1])),
                    Err(error) => tharsis_numeric::Tensor::from(error),
                }
            }

            /// R² of the predictions for samples (n, d) with these targets.
            ///
            /// # Errors
            /// `ValueError` for shapes that do not fit, NaN and infinity; errors of the pass.
            #[track_caller]
            pub fn score(
                &self,
                x: &tharsis_numeric::Tensor,
                y: &tharsis_numeric::Tensor,
                options: impl Into<crate::FitOptions>,
            ) -> tharsis_numeric::Result<f64> {
                crate::base::Predict::score_any(self, x, y, &options.into())
            }
        }

        impl crate::base::Estimator for $name {
            type Fitted = $fitted;

            fn takes_nan(&self) -> bool {
                true
            }

            #[track_caller]
            fn fit_any(
                &self,
                x: &tharsis_numeric::Tensor,
                y: Option<&tharsis_numeric::Tensor>,
                options: &crate::FitOptions,
            ) -> tharsis_numeric::Result<$fitted> {
                self.forest.check($text)?;
                let training = crate::checks::Training::supervised($text, x, y, options)?;
                let fitted = self.forest.numbers(&training, options.chosen_executor())?;
                Ok($fitted { feature_importances: fitted.importances.clone(), fitted })
            }
        }

        impl std::fmt::Display for $fitted {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{} of {} features", $text, self.feature_importances.len())?;
                self.fitted.show(f)
            }
        }

        crate::base::predicts!($fitted, Regression, $text);
        crate::saved::saved!($fitted, $text, |model| {
            model.fitted.trees.width() == 1
                && model.fitted.trees.features() == model.feature_importances.len()
        });
    };
}
pub(crate) use tree_regressor;

/// The parameters by name that all trees have, and further ones.
macro_rules! named_parameters {
    ($name:ident, [$($further:tt)*]) => {
        crate::params::parameters!(
            $name,
            stringify!($name),
            [
                $($further)*
                "max_depth" => forest.max_depth >= 1,
                "min_samples_split" => forest.min_samples_split >= 2,
                "min_samples_leaf" => forest.min_samples_leaf >= 1,
                "max_features" => forest.max_features >= 1,
                "max_leaf_nodes" => forest.max_leaf_nodes >= 2,
                "min_impurity_decrease" => forest.min_impurity_decrease,
                "random_state" => forest.random_state
            ]
        );
    };
}
pub(crate) use named_parameters;
