//! Linear support vector machines with squared losses: their primal problems, which are smooth, by L-BFGS.
//!
//! As in liblinear the intercept is the coefficient of one more feature, so the penalty counts it as well.

use crate::base::{Estimator, FitOptions, Predict, predicts};
use crate::bounds::{check_not_negative, check_positive};
use crate::checks::Training;
use crate::labels::{Classes, chosen_label, linear_scores};
use crate::linear_model::line::line_model;
use crate::linear_model::minimize::Measure;
use crate::linear_model::penalized::{Penalized, Solution};
use crate::linear_model::ridge_classifier::{are_scores_sound, show_scores, signs};
use crate::params::{estimator, words};
use crate::passes::{LinearPass, Link};
use crate::saved::saved;
use ndarray::{Array1, Array2, ArrayD};
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_graph::Error as GraphError;
use tharsis_numeric::{Error, Result, Tensor};

/// The loss of a classifier by what is missing to a score of 1 on the right side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HingeLoss {
    /// The part that is missing. Refused by `fit`: it has no slope everywhere.
    Hinge,
    /// The square of what is missing.
    SquaredHinge,
}

words!(HingeLoss, ["hinge" => HingeLoss::Hinge, "squared_hinge" => HingeLoss::SquaredHinge]);

/// The loss of a regressor by the distance beyond `epsilon`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TubeLoss {
    /// The distance: scikit-learn's default. Refused by `fit`: it has no slope everywhere.
    EpsilonInsensitive,
    /// The square of the distance.
    SquaredEpsilonInsensitive,
}

words!(
    TubeLoss,
    [
        "epsilon_insensitive" => TubeLoss::EpsilonInsensitive,
        "squared_epsilon_insensitive" => TubeLoss::SquaredEpsilonInsensitive,
    ]
);

estimator! {
    /// scikit-learn's `LinearSVC`: classes on the sides of planes with a wide margin.
    ///
    /// ```
    /// use tharsis_learn::svm::LinearSVC;
    /// use tharsis_numeric::array;
    /// let x = array([-2.0, -1.0, 1.0, 2.0]).reshape(&[4, 1]);
    /// let model = LinearSVC::new().fit(&x, &array([7i64, 7, 9, 9]), ..)?;
    /// assert_eq!(model.predict(&array([-3.0, 5.0]).reshape(&[2, 1])).to_vec::<i64>()?, [7, 9]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    LinearSVC {
        /// scikit-learn's `loss`.
        loss "loss": HingeLoss, HingeLoss = HingeLoss::SquaredHinge;
        /// scikit-learn's `tol`: the largest part of the slope at the minimum, in parts of that at the start;
        /// more than zero.
        tol "tol": f64, f64 = 1e-4;
        /// scikit-learn's `C`: the weight of the losses, more than zero.
        c "C": f64, f64 = 1.0;
        /// scikit-learn's `fit_intercept`: whether scores need not be zero at zero.
        fit_intercept "fit_intercept": bool, bool = true;
        /// scikit-learn's `intercept_scaling`: the value of the feature whose coefficient the intercept is,
        /// more than zero; the larger, the less the penalty counts it.
        intercept_scaling "intercept_scaling": f64, f64 = 1.0;
        /// scikit-learn's `max_iter`: the most steps of the solver.
        max_iter "max_iter": usize, usize = 1000;
    }
}

estimator! {
    /// scikit-learn's `LinearSVR`: a line that forgives distances up to `epsilon`. Its default loss is not
    /// there: `fit` refuses it, so that no other one is taken in its place unseen.
    ///
    /// ```
    /// use tharsis_learn::svm::{LinearSVR, TubeLoss};
    /// use tharsis_numeric::array;
    /// let x = array([-2.0, -1.0, 1.0, 2.0]).reshape(&[4, 1]);
    /// let estimator = LinearSVR::new().loss(TubeLoss::SquaredEpsilonInsensitive).c(1e3);
    /// let model = estimator.fit(&x, &array([-4.0, -2.0, 2.0, 4.0]), ..)?;
    /// assert!((model.coef[[0]] - 2.0).abs() < 1e-2);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    LinearSVR {
        /// scikit-learn's `epsilon`: the distance that is forgiven, not negative.
        epsilon "epsilon": f64, f64 = 0.0;
        /// As [`LinearSVC::tol`].
        tol "tol": f64, f64 = 1e-4;
        /// As [`LinearSVC::c`].
        c "C": f64, f64 = 1.0;
        /// scikit-learn's `loss`, which each fit needs: the default is refused.
        loss "loss": TubeLoss, TubeLoss = TubeLoss::EpsilonInsensitive;
        /// As [`LinearSVC::fit_intercept`].
        fit_intercept "fit_intercept": bool, bool = true;
        /// As [`LinearSVC::intercept_scaling`].
        intercept_scaling "intercept_scaling": f64, f64 = 1.0;
        /// As [`LinearSVC::max_iter`].
        max_iter "max_iter": usize, usize = 1000;
    }
}

/// A fitted [`LinearSVC`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedLinearSVC {
    /// scikit-learn's `classes_`, ascending; (k,).
    pub classes: Vec<i64>,
    /// scikit-learn's `coef_`; (1, d) for two classes, else (k, d).
    pub coef: Array2<f64>,
    /// scikit-learn's `intercept_`; (1,) for two classes, else (k,).
    pub intercept: Array1<f64>,
    /// scikit-learn's `n_iter_`: steps of the solver. Each reads the samples once, rarely more often.
    pub n_iter: usize,
    /// Whether the solver has found the minimum within `tol`.
    pub converged: bool,
}

/// A fitted [`LinearSVR`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedLinearSVR {
    /// scikit-learn's `coef_`; (d,).
    pub coef: ArrayD<f64>,
    /// scikit-learn's `intercept_`, there (1,); ().
    pub intercept: ArrayD<f64>,
    /// scikit-learn's `n_iter_`: steps of the solver. Each reads the samples once, rarely more often.
    pub n_iter: usize,
    /// Whether the solver has found the minimum within `tol`.
    pub converged: bool,
}

/// The parameters of both.
struct Machine {
    c: f64,
    tol: f64,
    fit_intercept: bool,
    intercept_scaling: f64,
    max_iter: usize,
}

impl Machine {
    #[track_caller]
    fn check(&self, name: &str) -> Result<()> {
        check_positive(name, "C", self.c)?;
        check_positive(name, "tol", self.tol)?;
        check_positive(name, "intercept_scaling", self.intercept_scaling)
    }

    /// The minimum for each target, (n, k).
    #[track_caller]
    fn solved(&self, training: &Training, targets: Tensor, link: Link) -> Result<Solution> {
        let scores = targets.shape()?[1];
        let pass = LinearPass::new(training, targets, link);
        let weight = training.weight_sum()?;
        let penalty = 1.0 / (self.c * weight);
        let problem = Penalized {
            penalty,
            intercept_penalty: penalty / (self.intercept_scaling * self.intercept_scaling),
            fit_intercept: self.fit_intercept,
            tol: (self.tol, Measure::Own),
            max_iter: self.max_iter,
        };
        let start = (&Array2::zeros((scores, training.columns)), &Array1::zeros(scores));
        problem.solve(&pass, start, weight)
    }
}

/// The error of a loss that has no slope everywhere, with the one to write instead.
#[track_caller]
fn not_smooth(loss: &str, other: &str) -> Error {
    Error::here(GraphError::NotImplemented(format!(
        "{loss}: the solver here needs a loss with a slope everywhere; write loss='{other}', \
         whose models are other ones"
    )))
}

impl LinearSVC {
    /// Fits the model on samples (n, d), of any real dtype, and labels (n,), whole numbers: a pass for each
    /// step, rarely more.
    ///
    /// # Errors
    /// `NotImplemented` for the loss `Hinge`; `ValueError` for parameters out of their ranges, one class,
    /// labels that are not whole, shapes that do not fit, no samples, no features, complex numbers, NaN,
    /// infinity, and weights that are negative or all zero; errors of the passes.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<FittedLinearSVC> {
        self.fit_any(x, Some(y), &options.into())
    }
}

impl LinearSVR {
    /// Fits the model on samples (n, d) and targets (n,), of real dtypes: a pass for each step, rarely more.
    ///
    /// # Errors
    /// `NotImplemented` for the default loss, `EpsilonInsensitive`; `ValueError` for parameters out of their
    /// ranges, shapes that do not fit, no samples, no features, complex numbers, NaN, infinity, and weights
    /// that are negative or all zero; errors of the passes.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<FittedLinearSVR> {
        self.fit_any(x, Some(y), &options.into())
    }
}

impl Estimator for LinearSVC {
    type Fitted = FittedLinearSVC;

    #[track_caller]
    fn fit_any(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Result<FittedLinearSVC> {
        let LinearSVC { loss, tol, c, fit_intercept, intercept_scaling, max_iter } = *self;
        let machine = Machine { c, tol, fit_intercept, intercept_scaling, max_iter };
        machine.check("LinearSVC")?;
        if loss == HingeLoss::Hinge {
            return Err(not_smooth("loss='hinge' of LinearSVC", "squared_hinge"));
        }
        let training = Training::supervised("LinearSVC", x, y, options)?;
        let classes = Classes::of(&training)?.at_least_two()?;
        let Solution { coef, intercept, rounds, converged } =
            machine.solved(&training, signs(&classes), Link::SquaredHinge)?;
        Ok(FittedLinearSVC { classes: classes.values, coef, intercept, n_iter: rounds, converged })
    }
}

impl Estimator for LinearSVR {
    type Fitted = FittedLinearSVR;

    #[track_caller]
    fn fit_any(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Result<FittedLinearSVR> {
        let LinearSVR { epsilon, tol, c, loss, fit_intercept, intercept_scaling, max_iter } = *self;
        let machine = Machine { c, tol, fit_intercept, intercept_scaling, max_iter };
        machine.check("LinearSVR")?;
        check_not_negative("LinearSVR", "epsilon", epsilon)?;
        if loss == TubeLoss::EpsilonInsensitive {
            let loss = "loss='epsilon_insensitive' of LinearSVR, which is the default";
            return Err(not_smooth(loss, "squared_epsilon_insensitive"));
        }
        let training = Training::supervised("LinearSVR", x, y, options)?;
        let Solution { coef, intercept, rounds, converged } =
            machine.solved(&training, training.one_target()?, Link::SquaredTube(epsilon))?;
        let (coef, intercept) = (coef.row(0).to_owned().into_dyn(), ndarray::arr0(intercept[0]).into_dyn());
        Ok(FittedLinearSVR { coef, intercept, n_iter: rounds, converged })
    }
}

impl FittedLinearSVC {
    /// scikit-learn's `decision_function`: the scores of samples (n, d), as an expression; (n,) for two
    /// classes, else (n, k). Carries a `ValueError` for another number of features.
    #[track_caller]
    pub fn decision_function(&self, x: &Tensor) -> Tensor {
        linear_scores("LinearSVC", x, &self.coef, &self.intercept)
    }

    /// The labels of samples (n, d), as an expression; (n,), int64. Carries a `ValueError` for another number
    /// of features; when run for NaN.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        chosen_label(&self.decision_function(x), &self.classes)
    }

    /// The share of samples (n, d) whose label is predicted, or of their weights.
    ///
    /// # Errors
    /// `ValueError` for shapes that do not fit; errors of the pass.
    #[track_caller]
    pub fn score(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<f64> {
        self.score_any(x, y, &options.into())
    }
}

saved!(FittedLinearSVC, "LinearSVC", |model| {
    2 <= model.classes.len() && are_scores_sound(&model.classes, &model.coef, &model.intercept)
});

predicts!(FittedLinearSVC, Classification, "LinearSVC"; decision_function as decisions);

impl fmt::Display for FittedLinearSVC {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show_scores(f, "LinearSVC", &self.classes, (&self.coef, &self.intercept))
    }
}

line_model!(FittedLinearSVR, "LinearSVR", |_model| "LinearSVR", |model| model.coef.ndim() == 1);
