//! Linear regression whose penalties are variances that the samples tell: one pass, then steps on its sums.
//!
//! The evidence is maximized as in MacKay, "Bayesian Interpolation" (1992), for one variance of all
//! coefficients, and for one of each (Tipping, "Sparse Bayesian Learning and the Relevance Vector Machine",
//! 2001).

use super::least::{Factors, well_conditioned};
use super::line::{self, Line, line_model};
use super::sums::{Remainder, Sums};
use crate::base::{Estimator, FitOptions};
use crate::bounds::{check_count, check_not_negative, check_positive};
use crate::checks::{Training, samples_for};
use crate::dense::{eigh, solve_positive, spectrum, tensor};
use crate::params::estimator;
use crate::passes::{Around, Centred};
use ndarray::{Array1, Array2, ArrayD, Axis, Slice};
use serde::{Deserialize, Serialize};
use tharsis_numeric::{Result, Tensor};

estimator! {
    /// scikit-learn's `BayesianRidge`: [`Ridge`](super::Ridge) whose penalty is the one under which the
    /// samples are most likely.
    ///
    /// ```
    /// use tharsis_learn::linear_model::BayesianRidge;
    /// use tharsis_numeric::array;
    /// let x = array([-2.0, -1.0, 0.0, 1.0, 2.0]).reshape(&[5, 1]);
    /// let model = BayesianRidge::new().fit(&x, &array([-4.0, -2.1, 0.0, 2.1, 4.0]), ..)?;
    /// assert!((model.coef[[0]] - 2.0).abs() < 0.1 && model.converged);
    /// assert!(model.predict_std(&x).to_vec::<f64>()?.iter().all(|&deviation| deviation < 0.2));
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    BayesianRidge {
        /// scikit-learn's `max_iter`: the most steps.
        max_iter "max_iter" >= 1: usize, usize = 300;
        /// scikit-learn's `tol`: the change of all coefficients together at which steps end.
        tol "tol": f64, f64 = 1e-3;
        /// scikit-learn's `alpha_1`: the shape of the gamma distribution of `alpha` before the samples.
        alpha_1 "alpha_1": f64, f64 = 1e-6;
        /// scikit-learn's `alpha_2`: the rate of that distribution.
        alpha_2 "alpha_2": f64, f64 = 1e-6;
        /// scikit-learn's `lambda_1`: the shape of the gamma distribution of `lambda` before the samples.
        lambda_1 "lambda_1": f64, f64 = 1e-6;
        /// scikit-learn's `lambda_2`: the rate of that distribution.
        lambda_2 "lambda_2": f64, f64 = 1e-6;
        /// scikit-learn's `alpha_init`: the first `alpha`; by default one by the variance of the targets.
        alpha_init "alpha_init": Option<f64>, impl Into<Option<f64>> = None;
        /// scikit-learn's `lambda_init`: the first `lambda`; 1 by default.
        lambda_init "lambda_init": Option<f64>, impl Into<Option<f64>> = None;
        /// scikit-learn's `fit_intercept`: whether the line need not go through zero.
        fit_intercept "fit_intercept": bool, bool = true;
    }
}

estimator! {
    /// scikit-learn's `ARDRegression`: [`BayesianRidge`] with a penalty for each coefficient, which takes
    /// those away that the samples do not need.
    ///
    /// ```
    /// use tharsis_learn::linear_model::ARDRegression;
    /// use tharsis_numeric::array;
    /// let x = array([-2.0, 1.0, -1.0, -1.0, 0.0, 0.0, 1.0, -1.0, 2.0, 1.0]).reshape(&[5, 2]);
    /// let model = ARDRegression::new().fit(&x, &array([-4.0, -2.1, 0.0, 2.1, 4.0]), ..)?;
    /// assert!((model.coef[[0]] - 2.0).abs() < 0.1 && model.coef[[1]].abs() < 0.01);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ARDRegression {
        /// As [`BayesianRidge::max_iter`].
        max_iter "max_iter" >= 1: usize, usize = 300;
        /// As [`BayesianRidge::tol`].
        tol "tol": f64, f64 = 1e-3;
        /// As [`BayesianRidge::alpha_1`].
        alpha_1 "alpha_1": f64, f64 = 1e-6;
        /// As [`BayesianRidge::alpha_2`].
        alpha_2 "alpha_2": f64, f64 = 1e-6;
        /// As [`BayesianRidge::lambda_1`].
        lambda_1 "lambda_1": f64, f64 = 1e-6;
        /// As [`BayesianRidge::lambda_2`].
        lambda_2 "lambda_2": f64, f64 = 1e-6;
        /// scikit-learn's `threshold_lambda`: the penalty from which on a coefficient is zero.
        threshold_lambda "threshold_lambda": f64, f64 = 1e4;
        /// As [`BayesianRidge::fit_intercept`].
        fit_intercept "fit_intercept": bool, bool = true;
    }
}

/// A fitted [`BayesianRidge`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedBayesianRidge {
    /// scikit-learn's `coef_`; (d,).
    pub coef: ArrayD<f64>,
    /// scikit-learn's `intercept_`; ().
    pub intercept: ArrayD<f64>,
    /// scikit-learn's `alpha_`: one by the variance of the targets around the line.
    pub alpha: f64,
    /// scikit-learn's `lambda_`: one by the variance of the coefficients.
    pub lambda: f64,
    /// scikit-learn's `sigma_`: the covariance of the coefficients; (d, d).
    pub sigma: Array2<f64>,
    /// scikit-learn's `X_offset_`: the means of the features, or zeros; (d,).
    pub x_offset: Array1<f64>,
    /// scikit-learn's `n_iter_`: the steps.
    pub n_iter: usize,
    /// Whether the coefficients have stopped to change.
    pub converged: bool,
}

/// A fitted [`ARDRegression`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedARDRegression {
    /// scikit-learn's `coef_`; (d,).
    pub coef: ArrayD<f64>,
    /// scikit-learn's `intercept_`; ().
    pub intercept: ArrayD<f64>,
    /// scikit-learn's `alpha_`: one by the variance of the targets around the line.
    pub alpha: f64,
    /// scikit-learn's `lambda_`: one by the variance of each coefficient; (d,).
    pub lambda: Array1<f64>,
    /// scikit-learn's `sigma_`: the covariance of the k coefficients that are not taken away; (k, k).
    pub sigma: Array2<f64>,
    /// scikit-learn's `X_offset_`: the means of the features, or zeros; (d,).
    pub x_offset: Array1<f64>,
    /// scikit-learn's `n_iter_`: the steps.
    pub n_iter: usize,
    /// Whether the coefficients have stopped to change.
    pub converged: bool,
    threshold_lambda: f64,
}

/// The samples of a fit as the steps see them.
struct Evidence {
    sums: Sums,
    cross: Array1<f64>,
    remainder: Remainder,
    /// The most directions in which the samples may vary.
    rank: usize,
    /// One by the variance of the targets.
    alpha: f64,
}

impl Evidence {
    #[track_caller]
    fn of(training: &Training, fit_intercept: bool) -> Result<Evidence> {
        let targets = training.one_target()?;
        let around = line::around(fit_intercept);
        let sums = Sums::of(training, &targets, Around::Mean)?;
        // The variance is around the mean, wherever the line goes.
        let variance = sums.squares[0] / sums.weight;
        let sums = sums.around(around);
        let cross = sums.cross.column(0).to_owned();
        let remainder = sums.remainder(training, &targets)?;
        let rank = training.rows - usize::from(fit_intercept);
        Ok(Evidence { sums, cross, remainder, rank, alpha: 1.0 / (variance + f64::EPSILON) })
    }

    /// The squares that coefficients leave of the targets.
    fn left(&self, coef: &Array1<f64>) -> f64 {
        self.remainder.at(&self.sums.gram, coef)
    }

    /// Coefficients and intercept.
    #[track_caller]
    fn line(&self, training: &Training, coef: Array1<f64>) -> Result<Line> {
        if coef.iter().any(|coef| !coef.is_finite()) {
            return Err(training.beyond_float64());
        }
        Ok(Line::through(&coef.insert_axis(Axis(1)), &self.sums.mean, &self.sums.target_mean, true))
    }
}

/// Directions of features, along which samples vary independently.
struct Directions {
    /// The squares of samples along them, descending; (r,).
    values: Array1<f64>,
    /// (d, r).
    vectors: Array2<f64>,
    /// Products of samples and targets along them; (r,). Where samples do not vary, there are none but by
    /// rounding.
    along: Array1<f64>,
    /// The targets along those of samples that belong to them, (r,), and their squares beside these; of
    /// factors of the samples.
    targets: Option<(Array1<f64>, f64)>,
}

impl Directions {
    /// Those of products, or of factors if lines go through zero and the products are close to singular:
    /// those of samples far from zero have lost all directions across.
    #[track_caller]
    fn of(training: &Training, evidence: &Evidence, fit_intercept: bool) -> Result<Directions> {
        let gram = &evidence.sums.gram;
        if !fit_intercept && training.columns <= training.rows && well_conditioned(gram)?.is_none() {
            let centred = Centred::of(training, &training.one_target()?, Around::Zero)?;
            let Factors { singular, vectors, along, beside } = Factors::of(training, &centred)?;
            let targets = along.column(0).to_owned();
            let along = &targets * &singular;
            let values = singular.mapv(|value| value * value);
            return Ok(Directions { values, vectors, along, targets: Some((targets, beside.sum())) });
        }
        let (values, vectors) = spectrum(gram, evidence.rank)?;
        let mut along = vectors.t().dot(&evidence.cross);
        along.zip_mut_with(&values, |along, &value| *along = if 0.0 < value { *along } else { 0.0 });
        Ok(Directions { values, vectors, along, targets: None })
    }

    /// One by the squares along the directions with this penalty. With none, directions without samples have
    /// no coefficient.
    fn shares(&self, penalty: f64) -> Array1<f64> {
        self.values.mapv(|value| match value + penalty {
            0.0 => 0.0,
            sum => 1.0 / sum,
        })
    }

    /// The coefficients of these shares.
    fn coef(&self, shares: &Array1<f64>) -> Array1<f64> {
        self.vectors.dot(&(&self.along * shares))
    }

    /// The squares that the coefficients of these shares leave of the targets.
    fn left(&self, shares: &Array1<f64>, evidence: &Evidence) -> f64 {
        let Some((targets, beside)) = &self.targets else { return evidence.left(&self.coef(shares)) };
        let along = targets.iter().zip(&self.values).zip(shares);
        beside + along.map(|((target, value), share)| (target * (1.0 - value * share)).powi(2)).sum::<f64>()
    }
}

/// The sum of the changes of coefficients.
fn change(one: &Array1<f64>, other: &Array1<f64>) -> f64 {
    one.iter().zip(other).map(|(one, other)| (one - other).abs()).sum()
}

impl BayesianRidge {
    /// Fits the model on samples (n, d) and targets (n,), of real dtypes. One pass, rarely two.
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, shapes that do not fit, no samples, no features,
    /// complex numbers, NaN, infinity, and weights that are negative or all zero; `OverflowError` for sums
    /// beyond float64; errors of the passes.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<FittedBayesianRidge> {
        self.fit_any(x, Some(y), &options.into())
    }

    #[track_caller]
    fn check(&self) -> Result<()> {
        let name = "BayesianRidge";
        check_gammas(name, [self.alpha_1, self.alpha_2, self.lambda_1, self.lambda_2])?;
        check_positive(name, "tol", self.tol)?;
        check_count(name, "max_iter", self.max_iter, 1)?;
        check_not_negative(name, "alpha_init", self.alpha_init.unwrap_or(0.0))?;
        check_not_negative(name, "lambda_init", self.lambda_init.unwrap_or(0.0))
    }
}

impl ARDRegression {
    /// As [`BayesianRidge::fit`].
    ///
    /// # Errors
    /// As there; `TypeError` for weights, which scikit-learn does not take either.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<FittedARDRegression> {
        self.fit_any(x, Some(y), &options.into())
    }

    #[track_caller]
    fn check(&self) -> Result<()> {
        let name = "ARDRegression";
        check_gammas(name, [self.alpha_1, self.alpha_2, self.lambda_1, self.lambda_2])?;
        check_positive(name, "tol", self.tol)?;
        check_count(name, "max_iter", self.max_iter, 1)?;
        check_not_negative(name, "threshold_lambda", self.threshold_lambda)
    }
}

/// Checks the parameters of both gamma distributions.
#[track_caller]
fn check_gammas(name: &str, found: [f64; 4]) -> Result<()> {
    for (parameter, found) in ["alpha_1", "alpha_2", "lambda_1", "lambda_2"].into_iter().zip(found) {
        check_not_negative(name, parameter, found)?;
    }
    Ok(())
}

impl Estimator for BayesianRidge {
    type Fitted = FittedBayesianRidge;

    #[track_caller]
    fn fit_any(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Result<FittedBayesianRidge> {
        self.check()?;
        let training = Training::supervised("BayesianRidge", x, y, options)?;
        let evidence = Evidence::of(&training, self.fit_intercept)?;
        let directions = Directions::of(&training, &evidence, self.fit_intercept)?;
        let mut alpha = self.alpha_init.unwrap_or(evidence.alpha);
        let mut lambda = self.lambda_init.unwrap_or(1.0);
        let mut old: Option<Array1<f64>> = None;
        let (mut n_iter, mut converged) = (0, false);
        while n_iter < self.max_iter && !converged {
            training.engine.check_time()?;
            n_iter += 1;
            let shares = directions.shares(lambda / alpha);
            let coef = directions.coef(&shares);
            let known: f64 =
                directions.values.iter().map(|value| alpha * value / (lambda + alpha * value)).sum();
            lambda = (known + 2.0 * self.lambda_1) / (coef.dot(&coef) + 2.0 * self.lambda_2);
            alpha = (evidence.sums.weight - known + 2.0 * self.alpha_1)
                / (directions.left(&shares, &evidence) + 2.0 * self.alpha_2);
            converged = old.is_some_and(|old| change(&old, &coef) < self.tol);
            old = Some(coef);
        }
        let coef = directions.coef(&directions.shares(lambda / alpha));
        let Directions { values, vectors, .. } = directions;
        let spread = values.mapv(|value| 1.0 / (alpha * value + lambda)).insert_axis(Axis(1));
        let sigma = vectors.dot(&(&vectors.t() * &spread));
        let Line { coef, intercept } = evidence.line(&training, coef)?;
        let x_offset = evidence.sums.mean;
        Ok(FittedBayesianRidge { coef, intercept, alpha, lambda, sigma, x_offset, n_iter, converged })
    }
}

/// The covariance of the coefficients that are kept, (k, k), with these penalties (k,).
#[track_caller]
fn covariance(gram: &Array2<f64>, kept: &[usize], alpha: f64, lambda: &Array1<f64>) -> Result<Array2<f64>> {
    let precision = Array2::from_shape_fn((kept.len(), kept.len()), |(row, column)| {
        let own = if row == column { lambda[kept[row]] } else { 0.0 };
        alpha * gram[[kept[row], kept[column]]] + own
    });
    if let Some(inverse) = solve_positive(&precision, &Array2::eye(kept.len()))? {
        return Ok(inverse);
    }
    let (values, vectors) = eigh(&precision)?;
    let bound = values.last().map_or(0.0, |largest| largest * f64::EPSILON * kept.len() as f64);
    let inverse = values.mapv(|value| if bound < value { 1.0 / value } else { 0.0 });
    Ok(vectors.dot(&(&vectors.t() * &inverse.insert_axis(Axis(1)))))
}

/// The samples as they tell coefficients whose penalties are given.
struct Posterior<'a> {
    gram: &'a Array2<f64>,
    cross: &'a Array1<f64>,
    /// A factor of the products (d, r) and the targets along its directions (r,), of samples that vary in
    /// fewer directions than there are features: the rounding of products is more than small penalties.
    factor: Option<(Array2<f64>, Array1<f64>)>,
}

impl Posterior<'_> {
    #[track_caller]
    fn of(evidence: &Evidence) -> Result<Posterior<'_>> {
        let (gram, cross) = (&evidence.sums.gram, &evidence.cross);
        let mut factor = None;
        if evidence.rank < gram.nrows() {
            let (values, vectors) = spectrum(gram, evidence.rank)?;
            let kept = Slice::from(..values.iter().filter(|&&value| 0.0 < value).count());
            let roots = values.slice_axis(Axis(0), kept).mapv(f64::sqrt);
            let vectors = vectors.slice_axis(Axis(1), kept);
            factor = Some((&vectors * &roots, vectors.t().dot(cross) / &roots));
        }
        Ok(Posterior { gram, cross, factor })
    }

    /// The coefficients that are kept, (k,), and their covariance, (k, k).
    #[track_caller]
    fn at(&self, kept: &[usize], alpha: f64, lambda: &Array1<f64>) -> Result<(Array1<f64>, Array2<f64>)> {
        if let Some((factor, along)) = &self.factor
            && factor.ncols() < kept.len()
        {
            let one_by: Array1<f64> = kept.iter().map(|&column| 1.0 / lambda[column]).collect();
            return by_factor((&factor.select(Axis(0), kept), along), alpha, &one_by);
        }
        let sigma = covariance(self.gram, kept, alpha, lambda)?;
        let cross: Array1<f64> = kept.iter().map(|&column| self.cross[column]).collect();
        Ok((sigma.dot(&cross) * alpha, sigma))
    }
}

/// Coefficients and their covariance by Woodbury's identity: of a factor (k, r) of the products of k
/// features, r < k, the targets along its directions (r,), and one by the penalties (k,).
#[track_caller]
fn by_factor(
    (factor, along): (&Array2<f64>, &Array1<f64>),
    alpha: f64,
    one_by: &Array1<f64>,
) -> Result<(Array1<f64>, Array2<f64>)> {
    let scaled = factor * &one_by.view().insert_axis(Axis(1));
    let mut inner = factor.t().dot(&scaled);
    inner.diag_mut().mapv_inplace(|value| value + 1.0 / alpha);
    let (values, vectors) = eigh(&inner)?;
    let turned = scaled.dot(&vectors);
    let shares = values.mapv(|value| 1.0 / value.max(1.0 / alpha));
    let coef = turned.dot(&(vectors.t().dot(along) * &shares));
    let mut sigma = (&turned * &shares).dot(&turned.t()) * -1.0;
    sigma.diag_mut().zip_mut_with(one_by, |value, one_by| *value += one_by);
    Ok((coef, sigma))
}

impl Estimator for ARDRegression {
    type Fitted = FittedARDRegression;

    fn takes_weights(&self) -> bool {
        false
    }

    #[track_caller]
    fn fit_any(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Result<FittedARDRegression> {
        self.check()?;
        let training = Training::supervised("ARDRegression", x, y, options)?.without_weights()?;
        training.check_least(2, 1)?;
        let evidence = Evidence::of(&training, self.fit_intercept)?;
        let columns = training.columns;
        let posterior = Posterior::of(&evidence)?;
        let mut alpha = evidence.alpha;
        let mut lambda: Array1<f64> = Array1::ones(columns);
        let mut kept: Vec<usize> = (0..columns).collect();
        let mut coef: Array1<f64> = Array1::zeros(columns);
        let (mut n_iter, mut converged) = (0, false);
        while n_iter < self.max_iter && !converged && !kept.is_empty() {
            training.engine.check_time()?;
            n_iter += 1;
            let old = coef.clone();
            let (found, sigma) = posterior.at(&kept, alpha, &lambda)?;
            set_kept(&mut coef, &kept, &found);
            let mut known = 0.0;
            for (at, &column) in kept.iter().enumerate() {
                let own = 1.0 - lambda[column] * sigma[[at, at]];
                known += own;
                lambda[column] =
                    (own + 2.0 * self.lambda_1) / (coef[column] * coef[column] + 2.0 * self.lambda_2);
            }
            alpha = (training.rows as f64 - known + 2.0 * self.alpha_1)
                / (evidence.left(&coef) + 2.0 * self.alpha_2);
            kept.retain(|&column| lambda[column] < self.threshold_lambda);
            for column in 0..columns {
                if self.threshold_lambda <= lambda[column] {
                    coef[column] = 0.0;
                }
            }
            converged = 1 < n_iter && change(&old, &coef) < self.tol;
        }
        let sigma = if kept.is_empty() {
            Array2::zeros((0, 0))
        } else {
            let (found, sigma) = posterior.at(&kept, alpha, &lambda)?;
            set_kept(&mut coef, &kept, &found);
            sigma
        };
        let converged = converged || kept.is_empty();
        let Line { coef, intercept } = evidence.line(&training, coef)?;
        let (x_offset, threshold_lambda) = (evidence.sums.mean, self.threshold_lambda);
        Ok(FittedARDRegression {
            coef,
            intercept,
            alpha,
            lambda,
            sigma,
            x_offset,
            n_iter,
            converged,
            threshold_lambda,
        })
    }
}

/// Sets the coefficients that are kept.
fn set_kept(coef: &mut Array1<f64>, kept: &[usize], found: &Array1<f64>) {
    for (&column, &found) in kept.iter().zip(found) {
        coef[column] = found;
    }
}

/// The deviations of predictions: of the targets around the line, and of the line.
#[track_caller]
fn deviations(centred: &Tensor, sigma: &Array2<f64>, alpha: f64) -> Tensor {
    // Rounding of large features may be more than the variance of a line that is known to the last digits.
    let of_line = (centred.matmul(&tensor(sigma)) * centred).sum(1).maximum(0.0);
    (of_line + 1.0 / alpha).sqrt()
}

impl FittedBayesianRidge {
    /// The standard deviation of each prediction for samples (n, d), as an expression; (n,): scikit-learn's
    /// `predict` with `return_std`. Carries a `ValueError` for another number of features.
    #[track_caller]
    pub fn predict_std(&self, x: &Tensor) -> Tensor {
        match samples_for("BayesianRidge", x, self.coef.len()) {
            Ok(x) => deviations(&(x - tensor(&self.x_offset)), &self.sigma, self.alpha),
            Err(error) => Tensor::from(error),
        }
    }
}

impl FittedARDRegression {
    /// The standard deviation of each prediction, as [`FittedBayesianRidge::predict_std`].
    #[track_caller]
    pub fn predict_std(&self, x: &Tensor) -> Tensor {
        let kept: Vec<usize> =
            (0..self.lambda.len()).filter(|&column| self.lambda[column] < self.threshold_lambda).collect();
        match samples_for("ARDRegression", x, self.coef.len()) {
            Ok(x) if kept.is_empty() => x.sum(1) * 0.0 + (1.0 / self.alpha).sqrt(),
            Ok(x) => {
                let centred = (x - tensor(&self.x_offset)).take_at(&crate::dense::positions(&kept), 1);
                deviations(&centred, &self.sigma, self.alpha)
            }
            Err(error) => Tensor::from(error),
        }
    }
}

line_model!(FittedBayesianRidge, "BayesianRidge", |_model| "BayesianRidge", |model| {
    let columns = model.coef.len();
    model.coef.ndim() == 1 && model.sigma.dim() == (columns, columns) && model.x_offset.len() == columns
});
line_model!(FittedARDRegression, "ARDRegression", |_model| "ARDRegression", |model| {
    let (columns, threshold) = (model.coef.len(), model.threshold_lambda);
    let kept = model.lambda.iter().filter(|lambda| **lambda < threshold).count();
    model.coef.ndim() == 1
        && model.lambda.len() == columns
        && model.sigma.dim() == (kept, kept)
        && model.x_offset.len() == columns
});
