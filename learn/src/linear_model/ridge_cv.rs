//! Ridge regression whose penalty is chosen by what each sample, or each fold, loses when it is left out.
//!
//! The loss of a sample has a formula by the diagonal of the hat matrix (Golub, Heath and Wahba, "Generalized
//! Cross-Validation as a Method for Choosing a Good Ridge Parameter", 1979): the eigenvectors of the Gram
//! matrix make it a sum of squares of each sample, so one pass tells it for all penalties together.

use super::least::{CONDITION_MAX, Factors, solved};
use super::line::{self, Line, line_model};
use super::ridge_classifier::{are_scores_sound, show_scores, signs};
use super::sums::Sums;
use crate::base::{Estimator, FitOptions, Predict, predicts};
use crate::bounds::check_folds;
use crate::checks::{Nan, Training, refused};
use crate::dense::{spectrum, tensor};
use crate::labels::{Classes, chosen_label, linear_scores};
use crate::params::estimator;
use crate::passes::{Around, Centred, in_chunks_for};
use crate::saved::saved;
use crate::states::{all_finite, lost, vector};
use ndarray::{Array1, Array2, ArrayD, ArrayView2, Axis, concatenate};
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::{Result, Tensor};

estimator! {
    /// scikit-learn's `RidgeCV`: [`Ridge`](super::Ridge) with the penalty that tells samples best which it
    /// has not seen.
    ///
    /// ```
    /// use tharsis_learn::linear_model::RidgeCV;
    /// use tharsis_numeric::array;
    /// let x = array([-2.0, -1.0, 0.0, 1.0, 2.0]).reshape(&[5, 1]);
    /// let model = RidgeCV::new().alphas([1e-3, 10.0]).fit(&x, &array([-4.0, -2.0, 0.0, 2.0, 4.0]), ..)?;
    /// assert_eq!(model.alpha, 1e-3);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    RidgeCV {
        /// scikit-learn's `alphas`: the penalties that are tried; more than zero, or not negative for folds.
        alphas "alphas": Vec<f64>, impl Into<Vec<f64>> = vec![0.1, 1.0, 10.0];
        /// scikit-learn's `fit_intercept`: whether the line need not go through zero.
        fit_intercept "fit_intercept": bool, bool = true;
        /// scikit-learn's `cv`: the number of consecutive folds, at least 2. Without it each sample is left
        /// out once.
        cv "cv" >= 2: Option<usize>, impl Into<Option<usize>> = None;
    }
}

estimator! {
    /// scikit-learn's `RidgeClassifierCV`: [`RidgeCV`] on targets of 1 for the samples of a class and -1 for
    /// others.
    ///
    /// ```
    /// use tharsis_learn::linear_model::RidgeClassifierCV;
    /// use tharsis_numeric::array;
    /// let x = array([-2.0, -1.0, 1.0, 2.0]).reshape(&[4, 1]);
    /// let model = RidgeClassifierCV::new().fit(&x, &array([7i64, 7, 9, 9]), ..)?;
    /// assert_eq!(model.predict(&array([-3.0, 5.0]).reshape(&[2, 1])).to_vec::<i64>()?, [7, 9]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    RidgeClassifierCV {
        /// scikit-learn's `alphas`: the penalties that are tried, more than zero.
        alphas "alphas": Vec<f64>, impl Into<Vec<f64>> = vec![0.1, 1.0, 10.0];
        /// scikit-learn's `fit_intercept`: whether scores need not be zero at zero.
        fit_intercept "fit_intercept": bool, bool = true;
    }
}

/// A fitted [`RidgeCV`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedRidgeCV {
    /// scikit-learn's `coef_`; (d,), or (k, d) for several targets.
    pub coef: ArrayD<f64>,
    /// scikit-learn's `intercept_`; (), or (k,) for several targets.
    pub intercept: ArrayD<f64>,
    /// scikit-learn's `alpha_`: the penalty that was chosen.
    pub alpha: f64,
    /// scikit-learn's `best_score_`: the mean of the squares that samples lose when they are left out,
    /// negative; the mean of R² for folds.
    pub best_score: f64,
}

/// A fitted [`RidgeClassifierCV`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedRidgeClassifierCV {
    /// scikit-learn's `classes_`, ascending; (k,).
    pub classes: Vec<i64>,
    /// scikit-learn's `coef_`; (1, d) for up to two classes (scikit-learn: (d,)), else (k, d).
    pub coef: Array2<f64>,
    /// scikit-learn's `intercept_`; (1,) for up to two classes, else (k,).
    pub intercept: Array1<f64>,
    /// scikit-learn's `alpha_`: the penalty that was chosen.
    pub alpha: f64,
    /// scikit-learn's `best_score_`: the mean of the squares that samples lose when they are left out,
    /// negative.
    pub best_score: f64,
}

/// The penalty that was chosen, and its slopes.
struct Chosen {
    sums: Sums,
    /// (d, k).
    slopes: Array2<f64>,
    alpha: f64,
    score: f64,
}

impl RidgeCV {
    /// Fits the model on samples (n, d) and targets (n,) or (n, k), of real dtypes. Two passes, and two more
    /// without an intercept if products of the samples have lost a direction; one for folds, which keep a
    /// matrix (d, d) each.
    ///
    /// # Errors
    /// `ValueError` for no penalties, penalties and folds out of their ranges, shapes that do not fit, no
    /// samples, no features, complex numbers, NaN, infinity, and weights that are negative or all zero, also
    /// in a fold; `OverflowError` for sums beyond float64; errors of the passes.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<FittedRidgeCV> {
        self.fit_any(x, Some(y), &options.into())
    }
}

impl RidgeClassifierCV {
    /// Fits the model on samples (n, d), of any real dtype, and labels (n,), whole numbers. Passes as for
    /// [`RidgeCV::fit`], and one or two over the labels.
    ///
    /// # Errors
    /// As [`RidgeCV::fit`]; `ValueError` for labels that are not whole.
    #[track_caller]
    pub fn fit(
        &self,
        x: &Tensor,
        y: &Tensor,
        options: impl Into<FitOptions>,
    ) -> Result<FittedRidgeClassifierCV> {
        self.fit_any(x, Some(y), &options.into())
    }
}

/// Checks the penalties.
#[track_caller]
fn check_alphas(alphas: &[f64], may_be_zero: bool) -> Result<()> {
    if alphas.is_empty() {
        return Err(refused("alphas is empty: there is no penalty to choose"));
    }
    for (at, &alpha) in alphas.iter().enumerate() {
        let is_sound = alpha.is_finite() && (0.0 < alpha || may_be_zero && alpha == 0.0);
        if !is_sound {
            let name = if alphas.len() == 1 { "alphas".to_owned() } else { format!("alphas[{at}]") };
            let sign = if may_be_zero { ">=" } else { ">" };
            return Err(refused(format!("{name} == {alpha:?}, must be {sign} 0.0.")));
        }
    }
    Ok(())
}

/// The slopes (d, k) of each penalty by the eigenvectors of the Gram matrix, which has no negative
/// eigenvalue.
struct Spectrum {
    values: Array1<f64>,
    vectors: Array2<f64>,
    /// The products with the targets along the eigenvectors; (d, k).
    along: Array2<f64>,
}

impl Spectrum {
    #[track_caller]
    fn of(sums: &Sums) -> Result<Spectrum> {
        let (values, vectors) = spectrum(&sums.gram, sums.gram.nrows())?;
        let along = vectors.t().dot(&sums.cross);
        Ok(Spectrum { values, vectors, along })
    }

    /// As [`Spectrum::of`] of products around zero, by factors of the samples themselves. Two passes.
    #[track_caller]
    fn of_samples(training: &Training, targets: &Tensor) -> Result<Spectrum> {
        let centred = Centred::of(training, targets, Around::Zero)?;
        let Factors { singular, vectors, along, .. } = Factors::of(training, &centred)?;
        let values = singular.mapv(|value| value * value);
        Ok(Spectrum { values, vectors, along: along * singular.insert_axis(Axis(1)) })
    }

    /// Whether the products have few digits of a direction, which the least of these penalties does not hide.
    fn is_wide(&self, alphas: &[f64]) -> bool {
        let penalty = alphas.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.values.iter().copied().fold(0.0, f64::max);
        self.values.iter().any(|value| CONDITION_MAX * (value + penalty) < most)
    }

    /// The slopes along the eigenvectors; directions in which samples do not vary have none.
    fn along(&self, alpha: f64) -> Array2<f64> {
        let factors = self.values.mapv(|value| if 0.0 < value { 1.0 / (value + alpha) } else { 0.0 });
        &self.along * &factors.insert_axis(Axis(1))
    }

    fn slopes(&self, alpha: f64) -> Array2<f64> {
        self.vectors.dot(&self.along(alpha))
    }
}

/// The penalty whose squares of what samples lose, when they are left out, are least on average.
#[track_caller]
fn by_samples(training: &Training, targets: &Tensor, alphas: &[f64], fit_intercept: bool) -> Result<Chosen> {
    let sums = Sums::of(training, targets, line::around(fit_intercept))?;
    let mut spectrum = Spectrum::of(&sums)?;
    // Products of samples far from zero have lost what lies across; around means there is nothing to lose.
    if !fit_intercept && training.columns <= training.rows && spectrum.is_wide(alphas) {
        spectrum = Spectrum::of_samples(training, targets)?;
    }
    let squares = squares_left_out(training, targets, (&sums, &spectrum), alphas, fit_intercept)?;
    let (mut best, mut score) = (0, f64::NEG_INFINITY);
    for (at, &square) in squares.iter().enumerate() {
        let found = -square / (training.rows as f64 * sums.squares.len() as f64);
        if score < found {
            (best, score) = (at, found);
        }
    }
    Chosen::of(sums, &spectrum, alphas[best], score)
}

/// The sums of the squares that samples lose when they are left out, of all targets; one for each penalty.
/// One pass.
#[track_caller]
fn squares_left_out(
    training: &Training,
    targets: &Tensor,
    (sums, spectrum): (&Sums, &Spectrum),
    alphas: &[f64],
    fit_intercept: bool,
) -> Result<Vec<f64>> {
    let (columns, count) = (training.columns, sums.squares.len());
    // A column for each target of each penalty.
    let width = alphas.len().saturating_mul(count);
    training.check_held(columns, width)?;
    let slopes: Vec<Array2<f64>> = alphas.iter().map(|&alpha| spectrum.along(alpha)).collect();
    let slopes: Vec<ArrayView2<'_, f64>> = slopes.iter().map(|slopes| slopes.view()).collect();
    let slopes = concatenate(Axis(1), &slopes).map_err(|error| refused(error.to_string()))?;
    let shares = Array2::from_shape_fn((columns, width), |(row, column)| {
        let sum = spectrum.values[row] + alphas[column / count];
        if sum == 0.0 { 0.0 } else { 1.0 / sum }
    });
    let tiles =
        Array2::from_shape_fn((count, width), |(row, column)| f64::from(u8::from(column % count == row)));
    let along = (&training.x - tensor(&sums.mean)).matmul(&tensor(&spectrum.vectors));
    let along = in_chunks_for(&along, columns, columns.max(width));
    let own = if fit_intercept { 1.0 / sums.weight } else { 0.0 };
    let hat = along.square().matmul(&tensor(&shares)) + own;
    let left = (targets - tensor(&sums.target_mean)).matmul(&tensor(&tiles)) - along.matmul(&tensor(&slopes));
    let squares = match training.weight.as_ref().map(|weight| weight.expand_dims(1)) {
        None => (left / (1.0 - hat)).square(),
        Some(weight) => (left / (1.0 - hat * &weight)).square() * weight,
    };
    let states = training.engine.run(&[&squares.sum(0)])?;
    if !all_finite(&states) {
        training.explain_not_finite(Nan::Refused)?;
    }
    let squares = vector(states.into_iter().next().ok_or_else(lost)?)?;
    Ok(squares.to_vec().chunks(count.max(1)).map(|squares| squares.iter().sum()).collect())
}

/// The penalty whose R² of folds is largest on average.
#[track_caller]
fn by_folds(
    training: &Training,
    targets: &Tensor,
    (alphas, around): (&[f64], Around),
    folds: usize,
) -> Result<Chosen> {
    let parts = Sums::of_folds(training, targets, folds)?;
    let mut scores = vec![0.0; alphas.len()];
    for (fold, test) in parts.iter().enumerate() {
        let train = Sums::without(&parts, Some(fold))?.around(around);
        let spectrum = Spectrum::of(&train)?;
        for (score, &alpha) in scores.iter_mut().zip(alphas) {
            *score += r2(&spectrum.slopes(alpha), &train, test) / folds as f64;
        }
    }
    let mut best = 0;
    for (at, &score) in scores.iter().enumerate() {
        if scores[best] < score {
            best = at;
        }
    }
    let sums = Sums::without(&parts, None)?.around(around);
    let spectrum = Spectrum::of(&sums)?;
    Chosen::of(sums, &spectrum, alphas[best], scores[best])
}

/// R² of lines through the means of training samples, of test samples; NaN for fewer than two.
fn r2(slopes: &Array2<f64>, train: &Sums, test: &Sums) -> f64 {
    if test.rows < 2 {
        return f64::NAN;
    }
    let shares = slopes.axis_iter(Axis(1)).enumerate().map(|(target, slopes)| {
        let left = test.left(&slopes.to_owned(), train, target);
        match (left == 0.0, test.squares[target] == 0.0) {
            (true, true) => 1.0,
            (false, true) => 0.0,
            _ => 1.0 - left * test.weight / test.squares[target],
        }
    });
    shares.sum::<f64>() / slopes.ncols() as f64
}

impl Chosen {
    /// The slopes of the penalty.
    #[track_caller]
    fn of(sums: Sums, spectrum: &Spectrum, alpha: f64, score: f64) -> Result<Chosen> {
        let slopes = match solved(&sums.gram, &sums.cross, alpha)? {
            Some(slopes) => slopes,
            None => spectrum.slopes(alpha),
        };
        Ok(Chosen { sums, slopes, alpha, score })
    }

    /// The choice, if all slopes are finite.
    #[track_caller]
    fn checked(self, training: &Training) -> Result<Chosen> {
        if self.slopes.iter().all(|slope| slope.is_finite()) {
            Ok(self)
        } else {
            Err(training.beyond_float64())
        }
    }
}

impl Estimator for RidgeCV {
    type Fitted = FittedRidgeCV;

    #[track_caller]
    fn fit_any(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Result<FittedRidgeCV> {
        check_alphas(&self.alphas, self.cv.is_some())?;
        check_folds("RidgeCV", self.cv)?;
        let training = Training::supervised("RidgeCV", x, y, options)?;
        let one_axis = training.has_one_target()?;
        let targets = training.target_columns()?;
        let around = line::around(self.fit_intercept);
        let chosen = match self.cv {
            None => by_samples(&training, &targets, &self.alphas, self.fit_intercept)?,
            Some(folds) => by_folds(&training, &targets, (&self.alphas, around), folds)?,
        };
        let Chosen { sums, slopes, alpha, score } = chosen.checked(&training)?;
        let Line { coef, intercept } = Line::through(&slopes, &sums.mean, &sums.target_mean, one_axis);
        Ok(FittedRidgeCV { coef, intercept, alpha, best_score: score })
    }
}

line_model!(FittedRidgeCV, "RidgeCV", |_model| "RidgeCV", |_model| true);

impl Estimator for RidgeClassifierCV {
    type Fitted = FittedRidgeClassifierCV;

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        y: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedRidgeClassifierCV> {
        check_alphas(&self.alphas, false)?;
        let training = Training::supervised("RidgeClassifierCV", x, y, options)?;
        let classes = Classes::of(&training)?;
        let targets = signs(&classes);
        let chosen = by_samples(&training, &targets, &self.alphas, self.fit_intercept)?;
        let Chosen { sums, slopes, alpha, score } = chosen.checked(&training)?;
        let intercept = &sums.target_mean - &slopes.t().dot(&sums.mean);
        let coef = slopes.reversed_axes().as_standard_layout().into_owned();
        Ok(FittedRidgeClassifierCV { classes: classes.values, coef, intercept, alpha, best_score: score })
    }
}

impl FittedRidgeClassifierCV {
    /// scikit-learn's `decision_function`: the scores of samples (n, d), as an expression; (n,) for two
    /// classes, else (n, k). Carries a `ValueError` for another number of features.
    #[track_caller]
    pub fn decision_function(&self, x: &Tensor) -> Tensor {
        linear_scores("RidgeClassifierCV", x, &self.coef, &self.intercept)
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

saved!(FittedRidgeClassifierCV, "RidgeClassifierCV", |model| are_scores_sound(
    &model.classes,
    &model.coef,
    &model.intercept
));

predicts!(FittedRidgeClassifierCV, Classification, "RidgeClassifierCV"; decision_function as decisions);

impl fmt::Display for FittedRidgeClassifierCV {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show_scores(f, "RidgeClassifierCV", &self.classes, (&self.coef, &self.intercept))
    }
}
