//! The estimators of naive Bayes: they differ in their likelihoods, and have their methods from here.

/// The setters of estimators that have a `smoothing`.
macro_rules! smoothing_parameters {
    ($name:ident) => {
        impl $name {
            /// scikit-learn's `alpha`: what is added to each count; not negative; 1 by default.
            ///
            /// ```
            #[doc = concat!("use tharsis_learn::naive_bayes::", stringify!($name), ";")]
            /// use tharsis_numeric::array;
            /// let (x, y) = (array([5i64, 0, 0, 5]).reshape(&[2, 2]), array([0i64, 1]));
            #[doc = concat!("let sure = ", stringify!($name), "::new().alpha(0.0).fit(&x, &y, ..)?.predict_proba(&x);")]
            /// assert!(sure.max(1).greater(0.999).all(..).item()?.is_true());
            /// # Ok::<(), tharsis_learn::Error>(())
            /// ```
            pub fn alpha(mut self, alpha: f64) -> $name {
                self.smoothing.alpha = alpha;
                self
            }

            /// scikit-learn's `fit_prior`: whether classes are as likely as in the samples, or all equally
            /// likely.
            ///
            /// ```
            #[doc = concat!("use tharsis_learn::naive_bayes::", stringify!($name), ";")]
            /// use tharsis_numeric::{array, ones};
            /// let y = array([0i64, 1, 1, 1]);
            #[doc = concat!("let model = ", stringify!($name), "::new().fit_prior(false).fit(&ones(&[4, 2]), &y, ..)?;")]
            /// assert_eq!(model.class_log_prior[0], 0.5f64.ln());
            /// # Ok::<(), tharsis_learn::Error>(())
            /// ```
            pub fn fit_prior(mut self, fit_prior: bool) -> $name {
                self.smoothing.fit_prior = fit_prior;
                self
            }

            /// scikit-learn's `class_prior`: the probabilities of the classes, in ascending order of these.
            ///
            /// ```
            #[doc = concat!("use tharsis_learn::naive_bayes::", stringify!($name), ";")]
            /// use tharsis_numeric::{array, ones};
            /// let y = array([0i64, 1]);
            #[doc = concat!("let model = ", stringify!($name), "::new().class_prior(&[0.2, 0.8]).fit(&ones(&[2, 2]), &y, ..)?;")]
            /// assert_eq!(model.class_log_prior[0], 0.2f64.ln());
            /// # Ok::<(), tharsis_learn::Error>(())
            /// ```
            pub fn class_prior(mut self, class_prior: &[f64]) -> $name {
                self.smoothing.class_prior = Some(class_prior.to_vec());
                self
            }
        }
    };
}
pub(super) use smoothing_parameters;

/// The methods of a model with a joint likelihood of samples and `classes`, and when its predictions are
/// refused as they run.
macro_rules! likely_classes {
    ($fitted:ident, $text:literal, $refused:literal) => {
        impl $fitted {
            /// The labels of samples (n, d), as an expression; (n,), int64.
            ///
            /// ```
            #[doc = concat!("use tharsis_learn::naive_bayes::", $text, ";")]
            /// use tharsis_numeric::array;
            /// let x = array([5i64, 0, 0, 5]).reshape(&[2, 2]);
            #[doc = concat!("let model = ", $text, "::new().fit(&x, &array([3i64, 4]), ..)?;")]
            /// assert_eq!(model.predict(&x).to_vec::<i64>()?, [3, 4]);
            /// # Ok::<(), tharsis_learn::Error>(())
            /// ```
            ///
            /// # Errors
            #[doc = concat!("`ValueError` for another number of features; when run for ", $refused, ".")]
            #[track_caller]
            pub fn predict(&self, x: &tharsis_numeric::Tensor) -> tharsis_numeric::Tensor {
                super::likelihood::predict(self.joint(x), &self.classes)
            }

            /// The probability of each class, in ascending order, for samples (n, d), as an expression; (n,
            /// k).
            ///
            /// ```
            #[doc = concat!("use tharsis_learn::naive_bayes::", $text, ";")]
            /// use tharsis_numeric::array;
            /// let x = array([5i64, 0, 0, 5]).reshape(&[2, 2]);
            #[doc = concat!("let chances = ", $text, "::new().fit(&x, &array([3i64, 4]), ..)?.predict_proba(&x);")]
            /// assert!(chances.sum(1).isclose(1.0, 0.0, 1e-12).all(..).item()?.is_true());
            /// # Ok::<(), tharsis_learn::Error>(())
            /// ```
            ///
            /// # Errors
            /// `ValueError` for another number of features.
            #[track_caller]
            pub fn predict_proba(&self, x: &tharsis_numeric::Tensor) -> tharsis_numeric::Tensor {
                self.predict_log_proba(x).exp()
            }

            /// The logarithms of the probabilities of the classes.
            ///
            /// ```
            #[doc = concat!("use tharsis_learn::naive_bayes::", $text, ";")]
            /// use tharsis_numeric::array;
            /// let x = array([5i64, 0, 0, 5]).reshape(&[2, 2]);
            #[doc = concat!("let logs = ", $text, "::new().fit(&x, &array([3i64, 4]), ..)?.predict_log_proba(&x);")]
            /// assert_eq!(logs.shape()?, [2, 2]);
            /// # Ok::<(), tharsis_learn::Error>(())
            /// ```
            ///
            /// # Errors
            /// `ValueError` for another number of features.
            #[track_caller]
            pub fn predict_log_proba(&self, x: &tharsis_numeric::Tensor) -> tharsis_numeric::Tensor {
                super::likelihood::log_proba(self.joint(x))
            }

            /// The share of samples (n, d) whose label is predicted, or of their weights.
            ///
            /// ```
            #[doc = concat!("use tharsis_learn::naive_bayes::", $text, ";")]
            /// use tharsis_numeric::array;
            /// let (x, y) = (array([5i64, 0, 0, 5]).reshape(&[2, 2]), array([3i64, 4]));
            #[doc = concat!("assert_eq!(", $text, "::new().fit(&x, &y, ..)?.score(&x, &y, ..)?, 1.0);")]
            /// # Ok::<(), tharsis_learn::Error>(())
            /// ```
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

        crate::base::classifies!($fitted, $text, predict_log_proba);
    };
}
pub(super) use likely_classes;
