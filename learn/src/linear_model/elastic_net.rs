//! Least squares with penalties on the absolute values and on the squares of the coefficients.

use super::descent::{Descended, Penalty, Products, descend};
use super::least::Least;
use super::line::{self, Line};
use crate::base::{Estimator, FitOptions, Predict, predicts};
use crate::checks::{Nan, Training, refused};
use crate::params::parameters;
use crate::passes::{Centred, Moments};
use crate::saved::saved;
use crate::states::{all_finite, lost, matrix};
use ndarray::{Array1, Array2, ArrayD, Axis};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use tharsis_numeric::{Result, Tensor};

/// scikit-learn's `ElasticNet`: the least mean of squares of what is left of the targets, by two, plus
/// `alpha` times a mix of the absolute values and of half the squares of the coefficients.
///
/// ```
/// use tharsis_learn::linear_model::ElasticNet;
/// use tharsis_numeric::array;
/// let x = array([-1.0, 1.0]).reshape(&[2, 1]);
/// let model = ElasticNet::new().alpha(1.0).l1_ratio(0.5).fit(&x, &array([-2.0, 2.0]), ..)?;
/// assert!(model.converged && (model.coef[[0]] - 1.0).abs() < 1e-12);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct ElasticNet {
    name: &'static str,
    alpha: f64,
    l1_ratio: f64,
    fit_intercept: bool,
    max_iter: usize,
    tol: f64,
    positive: bool,
}

/// scikit-learn's `Lasso`: [`ElasticNet`] with a penalty on absolute values alone, which makes coefficients
/// zero.
///
/// ```
/// use tharsis_learn::linear_model::Lasso;
/// use tharsis_numeric::array;
/// let x = array([-1.0, 0.1, 1.0, 0.1, 0.0, -0.2]).reshape(&[3, 2]);
/// let model = Lasso::new().alpha(0.5).fit(&x, &array([-2.0, 2.0, 0.0]), ..)?;
/// assert_eq!(model.coef[[1]], 0.0);
/// assert!((model.coef[[0]] - 1.25).abs() < 1e-12);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct Lasso {
    net: ElasticNet,
}

/// A fitted [`ElasticNet`] or [`Lasso`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedElasticNet {
    /// scikit-learn's `coef_`; (d,), or (k, d) for several targets.
    pub coef: ArrayD<f64>,
    /// scikit-learn's `intercept_`; (), or (k,) for several targets.
    pub intercept: ArrayD<f64>,
    /// scikit-learn's `n_iter_`: rounds over all coefficients; one number for each target.
    pub n_iter: Vec<usize>,
    /// scikit-learn's `dual_gap_`: a bound on the distance from the least objective; one number for each
    /// target.
    pub dual_gap: Vec<f64>,
    /// Whether all gaps are within the tolerance. Otherwise `max_iter` rounds were not enough.
    pub converged: bool,
    name: Name,
}

parameters!(
    ElasticNet,
    |model| model.name,
    [
        "alpha" => alpha, "l1_ratio" => l1_ratio, "fit_intercept" => fit_intercept, "max_iter" => max_iter >= 1,
        "tol" => tol, "positive" => positive
    ]
);

impl Default for ElasticNet {
    fn default() -> ElasticNet {
        ElasticNet {
            name: "ElasticNet",
            alpha: 1.0,
            l1_ratio: 0.5,
            fit_intercept: true,
            max_iter: 1000,
            tol: 1e-4,
            positive: false,
        }
    }
}

impl ElasticNet {
    /// An estimator with scikit-learn's defaults: `alpha` is 1, `l1_ratio` a half, `max_iter` 1000, `tol`
    /// 1e-4.
    ///
    /// ```
    /// use tharsis_learn::linear_model::ElasticNet;
    /// use tharsis_numeric::array;
    /// let x = array([-1.0, 1.0]).reshape(&[2, 1]);
    /// assert!(ElasticNet::new().fit(&x, &array([-2.0, 2.0]), ..)?.converged);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn new() -> ElasticNet {
        ElasticNet::default()
    }

    /// scikit-learn's `alpha`: the weight of the penalty, not negative.
    ///
    /// ```
    /// use tharsis_learn::linear_model::ElasticNet;
    /// use tharsis_numeric::array;
    /// let x = array([-1.0, 1.0]).reshape(&[2, 1]);
    /// let model = ElasticNet::new().alpha(100.0).fit(&x, &array([-2.0, 2.0]), ..)?;
    /// assert_eq!(model.coef[[0]], 0.0);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn alpha(self, alpha: f64) -> ElasticNet {
        ElasticNet { alpha, ..self }
    }

    /// scikit-learn's `l1_ratio`: the part of the absolute values in the penalty, from 0 to 1.
    ///
    /// ```
    /// use tharsis_learn::linear_model::ElasticNet;
    /// use tharsis_numeric::array;
    /// let x = array([-1.0, 1.0]).reshape(&[2, 1]);
    /// let model = ElasticNet::new().l1_ratio(0.0).fit(&x, &array([-2.0, 2.0]), ..)?;
    /// assert!((model.coef[[0]] - 1.0).abs() < 1e-12);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn l1_ratio(self, l1_ratio: f64) -> ElasticNet {
        ElasticNet { l1_ratio, ..self }
    }

    /// scikit-learn's `fit_intercept`: whether the line need not go through zero.
    ///
    /// ```
    /// use tharsis_learn::linear_model::ElasticNet;
    /// use tharsis_numeric::array;
    /// let x = array([1.0, 2.0]).reshape(&[2, 1]);
    /// let model = ElasticNet::new().fit_intercept(false).fit(&x, &array([2.0, 4.0]), ..)?;
    /// assert_eq!(model.intercept.sum(), 0.0);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn fit_intercept(self, fit_intercept: bool) -> ElasticNet {
        ElasticNet { fit_intercept, ..self }
    }

    /// scikit-learn's `max_iter`: the most rounds over all coefficients; not zero.
    ///
    /// ```
    /// use tharsis_learn::linear_model::ElasticNet;
    /// use tharsis_numeric::array;
    /// let x = array([-1.0, 1.0, 1.0, 1.5, -3.0, 2.0]).reshape(&[3, 2]);
    /// let lasting = ElasticNet::new().alpha(1e-3).tol(0.0).max_iter(2);
    /// assert!(!lasting.fit(&x, &array([-2.0, 2.0, 1.0]), ..)?.converged);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn max_iter(self, max_iter: usize) -> ElasticNet {
        ElasticNet { max_iter, ..self }
    }

    /// scikit-learn's `tol`: the bound on the duality gap, in parts of the squares of the targets; not
    /// negative.
    ///
    /// ```
    /// use tharsis_learn::linear_model::ElasticNet;
    /// use tharsis_numeric::array;
    /// let x = array([-1.0, 1.0]).reshape(&[2, 1]);
    /// assert!(ElasticNet::new().tol(1e-10).fit(&x, &array([-2.0, 2.0]), ..)?.dual_gap[0] < 1e-9);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn tol(self, tol: f64) -> ElasticNet {
        ElasticNet { tol, ..self }
    }

    /// scikit-learn's `positive`: whether coefficients may not be negative.
    ///
    /// ```
    /// use tharsis_learn::linear_model::ElasticNet;
    /// use tharsis_numeric::array;
    /// let x = array([-1.0, 1.0]).reshape(&[2, 1]);
    /// let model = ElasticNet::new().alpha(0.1).positive(true).fit(&x, &array([2.0, -2.0]), ..)?;
    /// assert_eq!(model.coef[[0]], 0.0);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn positive(self, positive: bool) -> ElasticNet {
        ElasticNet { positive, ..self }
    }

    /// Fits the model on samples (n, d) and targets (n,) or (n, k), of real dtypes. One pass; the descent
    /// reads its sums alone. If there are fewer samples than features, they are held in memory instead.
    ///
    /// ```
    /// use tharsis_learn::linear_model::ElasticNet;
    /// use tharsis_numeric::{arange, array};
    /// let model = ElasticNet::new().fit(&arange(3).reshape(&[3, 1]), &array([1.0, 1.0, 1.0]), ..)?;
    /// assert_eq!((model.coef[[0]], model.intercept.sum()), (0.0, 1.0));
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, shapes that do not fit, no samples, no features,
    /// complex numbers, NaN, infinity, and weights that are negative or all zero; `OverflowError` for sums
    /// beyond float64; errors of the passes.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<FittedElasticNet> {
        self.fit_any(x, Some(y), &options.into())
    }

    #[track_caller]
    fn check(&self) -> Result<()> {
        let wrong = if !is_at_least_0(self.alpha) {
            ("alpha", "a float in the range [0.0, inf)", self.alpha)
        } else if !(0.0..=1.0).contains(&self.l1_ratio) {
            ("l1_ratio", "a float in the range [0.0, 1.0]", self.l1_ratio)
        } else if !is_at_least_0(self.tol) {
            ("tol", "a float in the range [0.0, inf)", self.tol)
        } else if self.max_iter == 0 {
            ("max_iter", "an int in the range [1, inf)", 0.0)
        } else {
            return Ok(());
        };
        let (parameter, range, found) = wrong;
        let name = self.name;
        Err(refused(format!("The '{parameter}' parameter of {name} must be {range}. Got {found} instead.")))
    }

    /// The minimum for each target, with the means and the sum of the weights.
    #[track_caller]
    fn descents(&self, training: &Training, targets: &Tensor) -> Result<Minima> {
        let around = line::around(self.fit_intercept);
        let with_penalty = |weight: f64| Penalty {
            l1: self.alpha * self.l1_ratio * weight,
            l2: self.l2(weight),
            positive: self.positive,
            max_iter: self.max_iter,
            tol: self.tol,
        };
        if training.rows < training.columns {
            let centred = Centred::of(training, targets, around)?;
            training.check_held(training.rows, training.columns)?;
            let states = training.engine.run(&[&centred.x.t(), &centred.y.t()])?;
            if !all_finite(&states) {
                return Err(training.not_finite(Nan::Refused));
            }
            let [columns, targets] = <[_; 2]>::try_from(states).map_err(|_| lost())?;
            let (columns, targets) = (matrix(columns)?, matrix(targets)?);
            let penalty = with_penalty(centred.weight);
            let made = targets.outer_iter().map(|target| {
                let products = Products::Samples { columns: columns.view(), target: target.view() };
                descend(&products, penalty, || training.engine.check_time())
            });
            let made = made.collect::<Result<_>>()?;
            let Centred { mean, target_mean, weight, .. } = centred;
            return Ok(Minima { made, mean, target_mean, weight });
        }
        let moments = Moments::of(training, Some(targets), around)?;
        let penalty = with_penalty(moments.weight);
        let made = moments.cross.axis_iter(Axis(1)).zip(&moments.target_squares).map(|(cross, &squares)| {
            let products = Products::Columns { gram: moments.gram.view(), cross, squares };
            descend(&products, penalty, || training.engine.check_time())
        });
        let made = made.collect::<Result<_>>()?;
        let Moments { mean, target_mean, weight, .. } = moments;
        Ok(Minima { made, mean, target_mean, weight })
    }

    /// The minimum without an L1 penalty, which has a formula; the gap of a descent would have no bound.
    #[track_caller]
    fn least(&self, training: &Training, targets: &Tensor) -> Result<Minima> {
        let around = line::around(self.fit_intercept);
        let Least { slopes, mean, target_mean } =
            Least::of(training, targets, around, |weight| self.l2(weight))?;
        let made = slopes.axis_iter(Axis(1)).map(|coef| Descended {
            coef: coef.to_owned(),
            gap: 0.0,
            gap_max: 0.0,
            rounds: 1,
        });
        Ok(Minima { made: made.collect(), mean, target_mean, weight: 1.0 })
    }

    /// The penalty on squares, in units of a sum over samples.
    fn l2(&self, weight: f64) -> f64 {
        self.alpha * (1.0 - self.l1_ratio) * weight
    }
}

/// Whether a number is finite and not negative.
pub(super) fn is_at_least_0(number: f64) -> bool {
    0.0 <= number && number.is_finite()
}

/// The minima for several targets.
struct Minima {
    made: Vec<Descended>,
    mean: Array1<f64>,
    target_mean: Array1<f64>,
    /// The sum of the weights of samples.
    weight: f64,
}

parameters!(
    Lasso,
    "Lasso",
    [
        "alpha" => net.alpha, "fit_intercept" => net.fit_intercept, "max_iter" => net.max_iter >= 1,
        "tol" => net.tol, "positive" => net.positive
    ]
);

impl Default for Lasso {
    fn default() -> Lasso {
        Lasso { net: ElasticNet { name: "Lasso", l1_ratio: 1.0, ..ElasticNet::default() } }
    }
}

impl Lasso {
    /// An estimator with scikit-learn's defaults: `alpha` is 1, `max_iter` 1000, `tol` 1e-4.
    ///
    /// ```
    /// use tharsis_learn::linear_model::Lasso;
    /// use tharsis_numeric::array;
    /// let x = array([-1.0, 1.0]).reshape(&[2, 1]);
    /// assert_eq!(Lasso::new().fit(&x, &array([-0.5, 0.5]), ..)?.coef[[0]], 0.0);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn new() -> Lasso {
        Lasso::default()
    }

    /// As [`ElasticNet::alpha`].
    ///
    /// ```
    /// use tharsis_learn::linear_model::Lasso;
    /// use tharsis_numeric::array;
    /// let x = array([-1.0, 1.0]).reshape(&[2, 1]);
    /// let model = Lasso::new().alpha(0.5).fit(&x, &array([-2.0, 2.0]), ..)?;
    /// assert!((model.coef[[0]] - 1.5).abs() < 1e-12);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn alpha(self, alpha: f64) -> Lasso {
        Lasso { net: self.net.alpha(alpha) }
    }

    /// As [`ElasticNet::fit_intercept`].
    ///
    /// ```
    /// use tharsis_learn::linear_model::Lasso;
    /// use tharsis_numeric::array;
    /// let x = array([1.0, 2.0]).reshape(&[2, 1]);
    /// let model = Lasso::new().fit_intercept(false).fit(&x, &array([2.0, 4.0]), ..)?;
    /// assert_eq!(model.intercept.sum(), 0.0);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn fit_intercept(self, fit_intercept: bool) -> Lasso {
        Lasso { net: self.net.fit_intercept(fit_intercept) }
    }

    /// As [`ElasticNet::max_iter`].
    ///
    /// ```
    /// use tharsis_learn::linear_model::Lasso;
    /// use tharsis_numeric::array;
    /// let x = array([-1.0, 1.0]).reshape(&[2, 1]);
    /// assert_eq!(Lasso::new().max_iter(1).fit(&x, &array([-2.0, 2.0]), ..)?.n_iter, [1]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn max_iter(self, max_iter: usize) -> Lasso {
        Lasso { net: self.net.max_iter(max_iter) }
    }

    /// As [`ElasticNet::tol`].
    ///
    /// ```
    /// use tharsis_learn::linear_model::Lasso;
    /// use tharsis_numeric::array;
    /// let x = array([-1.0, 1.0]).reshape(&[2, 1]);
    /// assert!(Lasso::new().tol(1e-8).fit(&x, &array([-2.0, 2.0]), ..)?.converged);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn tol(self, tol: f64) -> Lasso {
        Lasso { net: self.net.tol(tol) }
    }

    /// As [`ElasticNet::positive`].
    ///
    /// ```
    /// use tharsis_learn::linear_model::Lasso;
    /// use tharsis_numeric::array;
    /// let x = array([-1.0, 1.0]).reshape(&[2, 1]);
    /// let model = Lasso::new().alpha(0.1).positive(true).fit(&x, &array([2.0, -2.0]), ..)?;
    /// assert_eq!(model.coef[[0]], 0.0);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn positive(self, positive: bool) -> Lasso {
        Lasso { net: self.net.positive(positive) }
    }

    /// As [`ElasticNet::fit`].
    ///
    /// ```
    /// use tharsis_learn::linear_model::Lasso;
    /// use tharsis_numeric::array;
    /// let x = array([-1.0, 1.0]).reshape(&[2, 1]);
    /// let model = Lasso::new().alpha(1.0).fit(&x, &array([-4.0, 4.0]), ..)?;
    /// assert!((model.coef[[0]] - 3.0).abs() < 1e-12);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`ElasticNet::fit`].
    #[track_caller]
    pub fn fit(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<FittedElasticNet> {
        self.net.fit(x, y, options)
    }
}

impl FittedElasticNet {
    /// The predictions for samples (n, d), as an expression: (n,), or (n, k) for several targets; float64.
    ///
    /// ```
    /// use tharsis_learn::linear_model::Lasso;
    /// use tharsis_numeric::{arange, array};
    /// let model = Lasso::new().fit(&arange(2).reshape(&[2, 1]), &array([1.0, 1.0]), ..)?;
    /// assert_eq!(model.predict(&arange(3).reshape(&[3, 1])).to_vec::<f64>()?, [1.0, 1.0, 1.0]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for another number of features.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        line::predict(self.name.0, x, &self.coef, &self.intercept)
    }

    /// R² of the predictions for samples (n, d) with these targets.
    ///
    /// ```
    /// use tharsis_learn::linear_model::Lasso;
    /// use tharsis_numeric::{arange, array};
    /// let (x, y) = (arange(3).reshape(&[3, 1]), array([0.0, 1.0, 2.0]));
    /// assert_eq!(Lasso::new().fit(&x, &y, ..)?.score(&x, &y, ..)?, 0.0);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for shapes that do not fit, NaN and infinity; errors of the pass.
    #[track_caller]
    pub fn score(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<f64> {
        self.score_any(x, y, &options.into())
    }
}

impl Estimator for ElasticNet {
    type Fitted = FittedElasticNet;

    #[track_caller]
    fn fit_any(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Result<FittedElasticNet> {
        self.check()?;
        let training = Training::supervised(self.name, x, y, options)?;
        let one_axis = training.has_one_target()?;
        let targets = training.target_columns()?;
        let has_formula = self.alpha * self.l1_ratio == 0.0 && !self.positive;
        let Minima { made, mean, target_mean, weight } =
            if has_formula { self.least(&training, &targets)? } else { self.descents(&training, &targets)? };
        let mut slopes = Array2::zeros((training.columns, made.len()));
        for (mut column, made) in slopes.axis_iter_mut(Axis(1)).zip(&made) {
            column.assign(&made.coef);
        }
        if slopes.iter().any(|slope: &f64| !slope.is_finite()) {
            return Err(training.beyond_float64());
        }
        let Line { coef, intercept } = Line::through(&slopes, &mean, &target_mean, one_axis);
        Ok(FittedElasticNet {
            coef,
            intercept,
            n_iter: made.iter().map(|made| made.rounds).collect(),
            // In the units of the objective, which is a mean.
            dual_gap: made.iter().map(|made| made.gap / weight).collect(),
            converged: made.iter().all(|made| made.gap <= made.gap_max),
            name: Name(self.name),
        })
    }
}

impl Estimator for Lasso {
    type Fitted = FittedElasticNet;

    #[track_caller]
    fn fit_any(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Result<FittedElasticNet> {
        self.net.fit_any(x, y, options)
    }
}

saved!(FittedElasticNet, "ElasticNet", |model| line::is_sound(&model.coef, &model.intercept));

predicts!(FittedElasticNet, Regression, |model| model.name.0);

impl fmt::Display for FittedElasticNet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        line::show(f, self.name.0, &self.coef, &self.intercept)?;
        let state = if self.converged { "converged" } else { "not converged" };
        write!(f, "\n  {state} after {:?} rounds", self.n_iter)
    }
}

/// The name of the estimator, in saved models as whether it is the second one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name(&'static str);

impl Name {
    pub(super) const LASSO: Name = Name("Lasso");
    pub(super) const NET: Name = Name("ElasticNet");

    /// Whether it is the second one.
    pub(super) fn is_lasso(self) -> bool {
        self.0 == Name::LASSO.0
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_bool(self.is_lasso())
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Name, D::Error> {
        Ok(if bool::deserialize(deserializer)? { Name::LASSO } else { Name::NET })
    }
}
