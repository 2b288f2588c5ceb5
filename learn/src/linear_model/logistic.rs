//! Classes whose odds are linear in the features.

use crate::base::{Estimator, FitOptions, Predict, classifies};
use crate::checks::{Training, refused};
use crate::labels::{Classes, chosen_label, linear_scores, log_chances};
use crate::linear_model::minimize::Measure;
use crate::linear_model::penalized::{Penalized, Solution};
use crate::params::parameters;
use crate::passes::{LinearPass, Link};
use crate::saved::saved;
use crate::show;
use ndarray::{Array1, Array2, Axis};
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::{Result, Tensor};

/// scikit-learn's `LogisticRegression` with an L2 penalty and its default solver, L-BFGS: two classes by one
/// score, more of them by a score for each (softmax).
///
/// Labels are whole numbers of any dtype.
///
/// ```
/// use tharsis_learn::linear_model::LogisticRegression;
/// use tharsis_numeric::array;
/// let x = array([-2.0, -1.0, 1.0, 2.0]).reshape(&[4, 1]);
/// let model = LogisticRegression::new().fit(&x, &array([7i64, 7, 9, 9]), ..)?;
/// assert_eq!(model.classes, [7, 9]);
/// assert_eq!(model.predict(&array([-3.0, 5.0]).reshape(&[2, 1])).to_vec::<i64>()?, [7, 9]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct LogisticRegression {
    c: f64,
    fit_intercept: bool,
    tol: f64,
    max_iter: usize,
}

/// A fitted [`LogisticRegression`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedLogisticRegression {
    /// scikit-learn's `classes_`, ascending; (k,).
    pub classes: Vec<i64>,
    /// scikit-learn's `coef_`; (1, d) for two classes, else (k, d).
    pub coef: Array2<f64>,
    /// scikit-learn's `intercept_`; (1,) for two classes, else (k,).
    pub intercept: Array1<f64>,
    /// scikit-learn's `n_iter_`: steps of the solver. Each reads the samples once, rarely more often.
    pub n_iter: usize,
    /// Whether the solver has found the minimum within `tol`. Otherwise `max_iter` steps were not enough, or
    /// rounding hides the way down.
    pub converged: bool,
}

parameters!(
    LogisticRegression,
    "LogisticRegression",
    ["C" => c, "tol" => tol, "fit_intercept" => fit_intercept, "max_iter" => max_iter]
);

impl Default for LogisticRegression {
    fn default() -> LogisticRegression {
        LogisticRegression { c: 1.0, fit_intercept: true, tol: 1e-4, max_iter: 100 }
    }
}

impl LogisticRegression {
    /// An estimator with scikit-learn's defaults: `C` is 1, `tol` 1e-4, `max_iter` 100.
    ///
    /// ```
    /// use tharsis_learn::linear_model::LogisticRegression;
    /// use tharsis_numeric::array;
    /// let x = array([-1.0, 1.0]).reshape(&[2, 1]);
    /// assert!(LogisticRegression::new().fit(&x, &array([0i64, 1]), ..)?.converged);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn new() -> LogisticRegression {
        LogisticRegression::default()
    }

    /// scikit-learn's `C`: the weight of the samples against the penalty, positive; infinity for no penalty.
    ///
    /// ```
    /// use tharsis_learn::linear_model::LogisticRegression;
    /// use tharsis_numeric::array;
    /// let (x, y) = (array([-1.0, 1.0]).reshape(&[2, 1]), array([0i64, 1]));
    /// let small = LogisticRegression::new().c(0.1).fit(&x, &y, ..)?;
    /// let large = LogisticRegression::new().c(10.0).fit(&x, &y, ..)?;
    /// assert!(small.coef[[0, 0]] < large.coef[[0, 0]]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn c(self, c: f64) -> LogisticRegression {
        LogisticRegression { c, ..self }
    }

    /// scikit-learn's `fit_intercept`: whether scores need not be zero at zero.
    ///
    /// ```
    /// use tharsis_learn::linear_model::LogisticRegression;
    /// use tharsis_numeric::array;
    /// let x = array([1.0, 2.0]).reshape(&[2, 1]);
    /// let model = LogisticRegression::new().fit_intercept(false).fit(&x, &array([0i64, 1]), ..)?;
    /// assert_eq!(model.intercept[0], 0.0);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn fit_intercept(self, fit_intercept: bool) -> LogisticRegression {
        LogisticRegression { fit_intercept, ..self }
    }

    /// scikit-learn's `tol`: the largest part of the slope at the minimum; positive.
    ///
    /// ```
    /// use tharsis_learn::linear_model::LogisticRegression;
    /// use tharsis_numeric::array;
    /// let x = array([-1.0, 1.0]).reshape(&[2, 1]);
    /// assert!(LogisticRegression::new().tol(1e-8).fit(&x, &array([0i64, 1]), ..)?.converged);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn tol(self, tol: f64) -> LogisticRegression {
        LogisticRegression { tol, ..self }
    }

    /// scikit-learn's `max_iter`: the most steps of the solver.
    ///
    /// ```
    /// use tharsis_learn::linear_model::LogisticRegression;
    /// use tharsis_numeric::array;
    /// let x = array([-1.0, 1.5]).reshape(&[2, 1]);
    /// let model = LogisticRegression::new().max_iter(1).fit(&x, &array([0i64, 1]), ..)?;
    /// assert!(!model.converged && model.n_iter == 1);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn max_iter(self, max_iter: usize) -> LogisticRegression {
        LogisticRegression { max_iter, ..self }
    }

    /// Fits the model on samples (n, d), of any real dtype, and labels (n,), whole numbers.
    ///
    /// ```
    /// use tharsis_learn::linear_model::LogisticRegression;
    /// use tharsis_numeric::array;
    /// let x = array([0.0, 0.1, 5.0, 5.1, 9.0, 9.1]).reshape(&[6, 1]);
    /// let y = array([0i64, 0, 1, 1, 2, 2]);
    /// let model = LogisticRegression::new().fit(&x, &y, ..)?;
    /// assert_eq!((model.coef.dim(), model.score(&x, &y, ..)?), ((3, 1), 1.0));
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, one class, labels that are not whole, shapes that do
    /// not fit, no samples, no features, complex numbers, NaN, infinity, and weights that are negative or all
    /// zero; errors of the passes.
    #[track_caller]
    pub fn fit(
        &self,
        x: &Tensor,
        y: &Tensor,
        options: impl Into<FitOptions>,
    ) -> Result<FittedLogisticRegression> {
        self.fit_any(x, Some(y), &options.into())
    }

    #[track_caller]
    fn check(&self) -> Result<()> {
        let wrong = [("C", self.c), ("tol", self.tol)].into_iter().find(|(_, number)| {
            let is_positive = 0.0 < *number;
            !is_positive
        });
        match wrong {
            None => Ok(()),
            Some((parameter, found)) => Err(refused(format!(
                "The '{parameter}' parameter of LogisticRegression must be a float in the range (0.0, inf]. \
                 Got {found} instead."
            ))),
        }
    }
}

impl FittedLogisticRegression {
    /// scikit-learn's `decision_function`: the scores of samples (n, d), as an expression; (n,) for two
    /// classes, else (n, k).
    ///
    /// ```
    /// use tharsis_learn::linear_model::LogisticRegression;
    /// use tharsis_numeric::array;
    /// let x = array([-1.0, 1.0]).reshape(&[2, 1]);
    /// let scores = LogisticRegression::new().fit(&x, &array([0i64, 1]), ..)?.decision_function(&x);
    /// assert!(scores.to_vec::<f64>()?[0] < 0.0);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for another number of features.
    #[track_caller]
    pub fn decision_function(&self, x: &Tensor) -> Tensor {
        linear_scores("LogisticRegression", x, &self.coef, &self.intercept)
    }

    /// The labels of samples (n, d), as an expression; (n,), int64.
    ///
    /// ```
    /// use tharsis_learn::linear_model::LogisticRegression;
    /// use tharsis_numeric::array;
    /// let x = array([-1.0, 1.0]).reshape(&[2, 1]);
    /// let model = LogisticRegression::new().fit(&x, &array([0i64, 1]), ..)?;
    /// assert_eq!(model.predict(&x).to_vec::<i64>()?, [0, 1]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for another number of features; when run for NaN.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        chosen_label(&self.decision_function(x), &self.classes)
    }

    /// The probability of each class, in ascending order, for samples (n, d), as an expression; (n, k).
    ///
    /// ```
    /// use tharsis_learn::linear_model::LogisticRegression;
    /// use tharsis_numeric::array;
    /// let x = array([-1.0, 1.0]).reshape(&[2, 1]);
    /// let chances = LogisticRegression::new().fit(&x, &array([0i64, 1]), ..)?.predict_proba(&x);
    /// assert!(chances.sum(1).isclose(1.0, 0.0, 1e-12).all(..).item()?.is_true());
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for another number of features.
    #[track_caller]
    pub fn predict_proba(&self, x: &Tensor) -> Tensor {
        self.predict_log_proba(x).exp()
    }

    /// The logarithms of [`predict_proba`](FittedLogisticRegression::predict_proba), which do not run out at
    /// small probabilities.
    ///
    /// ```
    /// use tharsis_learn::linear_model::LogisticRegression;
    /// use tharsis_numeric::array;
    /// let x = array([-1.0, 1.0]).reshape(&[2, 1]);
    /// let model = LogisticRegression::new().fit(&x, &array([0i64, 1]), ..)?;
    /// let far = array([-1e6]).reshape(&[1, 1]);
    /// assert!(model.predict_log_proba(&far).to_vec::<f64>()?[1] < -1e5);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`predict_proba`](FittedLogisticRegression::predict_proba).
    #[track_caller]
    pub fn predict_log_proba(&self, x: &Tensor) -> Tensor {
        log_chances(&self.decision_function(x), &self.classes)
    }

    /// The share of samples (n, d) whose label is predicted, or of their weights.
    ///
    /// ```
    /// use tharsis_learn::linear_model::LogisticRegression;
    /// use tharsis_numeric::array;
    /// let (x, y) = (array([-1.0, 1.0]).reshape(&[2, 1]), array([0i64, 1]));
    /// assert_eq!(LogisticRegression::new().fit(&x, &y, ..)?.score(&x, &y, ..)?, 1.0);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for shapes that do not fit; errors of the pass.
    #[track_caller]
    pub fn score(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<f64> {
        self.score_any(x, y, &options.into())
    }
}

impl Estimator for LogisticRegression {
    type Fitted = FittedLogisticRegression;

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        y: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedLogisticRegression> {
        self.check()?;
        let training = Training::supervised("LogisticRegression", x, y, options)?;
        let classes = Classes::of(&training)?.at_least_two()?;
        self.fitted(&training, classes, None)
    }
}

impl LogisticRegression {
    /// As [`fit`](LogisticRegression::fit) of a part of some data, whose classes are those of all: a model of
    /// all of them, whose scores of a class without samples are as small as steps have made them. Steps begin
    /// at another model, if there is one.
    #[track_caller]
    pub(super) fn fit_part(
        &self,
        (x, y, options): (&Tensor, &Tensor, &FitOptions),
        classes: &[i64],
        from: Option<&FittedLogisticRegression>,
    ) -> Result<FittedLogisticRegression> {
        self.check()?;
        let training = Training::supervised("LogisticRegression", x, Some(y), options)?;
        self.fitted(&training, Classes::of_part(&training, classes)?, from)
    }

    #[track_caller]
    fn fitted(
        &self,
        training: &Training,
        classes: Classes,
        from: Option<&FittedLogisticRegression>,
    ) -> Result<FittedLogisticRegression> {
        let (targets, link, scores) = match classes.values.len() {
            2 => (classes.is_last(), Link::Logistic, 1),
            many => (classes.indicators(), Link::Softmax, many),
        };
        let pass = LinearPass::new(training, targets, link);
        let weight = training.weight_sum()?;
        let problem = Penalized {
            penalty: 1.0 / (self.c * weight),
            intercept_penalty: 0.0,
            fit_intercept: self.fit_intercept,
            tol: (self.tol, Measure::One),
            max_iter: self.max_iter,
        };
        let zeros = (Array2::zeros((scores, training.columns)), Array1::zeros(scores));
        let start = from.map_or((&zeros.0, &zeros.1), |from| (&from.coef, &from.intercept));
        let Solution { coef, intercept, rounds, converged } = problem.solve(&pass, start, weight)?;
        Ok(FittedLogisticRegression { classes: classes.values, coef, intercept, n_iter: rounds, converged })
    }
}

saved!(FittedLogisticRegression, "LogisticRegression", |model| {
    let scores = if model.classes.len() == 2 { 1 } else { model.classes.len() };
    2 <= model.classes.len()
        && model.coef.nrows() == scores
        && model.intercept.len() == scores
        && 0 < model.coef.ncols()
});

classifies!(FittedLogisticRegression, "LogisticRegression", predict_log_proba; decision_function);

impl fmt::Display for FittedLogisticRegression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (features, classes) = (self.coef.ncols(), &self.classes);
        write!(f, "LogisticRegression of {features} features, classes {classes:?}")?;
        for (at, coef) in self.coef.axis_iter(Axis(0)).enumerate() {
            show::line(f, &format!("coef[{at}]"), coef)?;
        }
        show::line(f, "intercept", &self.intercept)?;
        let state = if self.converged { "converged" } else { "not converged" };
        write!(f, "\n  {state} after {} iterations", self.n_iter)
    }
}
