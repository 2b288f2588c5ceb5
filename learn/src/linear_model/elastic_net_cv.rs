//! Elastic nets whose penalty is chosen by folds: one read of the samples for all folds and penalties.

use super::descent::{Descended, Penalty, Products, descend_from};
use super::elastic_net::{Name, is_at_least_0};
use super::least::solved;
use super::line::{self, Line, line_model};
use super::sums::Sums;
use crate::base::{Estimator, FitOptions};
use crate::bounds::{check, check_count, check_folds, check_positive};
use crate::checks::{Training, refused};
use crate::params::{Parameter, Setting, estimator};
use ndarray::{Array1, Array3, ArrayD, Axis};
use serde::{Deserialize, Serialize};
use tharsis_numeric::{Result, Tensor};

/// The folds if no number is given.
const FOLDS: usize = 5;
/// The penalties where no feature goes with the targets: scikit-learn's, the resolution of decimal digits.
const NO_PENALTY: f64 = 1e-15;

/// The penalties that a choice tries: so many from the least one that leaves no coefficients downwards, or
/// these.
#[derive(Clone, Debug, PartialEq)]
pub enum Alphas {
    /// So many, in equal ratios.
    Count(usize),
    /// These.
    List(Vec<f64>),
}

impl From<usize> for Alphas {
    fn from(count: usize) -> Alphas {
        Alphas::Count(count)
    }
}

impl From<Vec<f64>> for Alphas {
    fn from(list: Vec<f64>) -> Alphas {
        Alphas::List(list)
    }
}

impl<const N: usize> From<[f64; N]> for Alphas {
    fn from(list: [f64; N]) -> Alphas {
        Alphas::List(list.into())
    }
}

impl Parameter for Alphas {
    fn words(least: usize) -> String {
        format!("{} or an array-like", usize::words(least))
    }

    fn of(value: &Setting) -> Option<Alphas> {
        usize::of(value).map(Alphas::Count).or_else(|| Vec::of(value).map(Alphas::List))
    }

    #[track_caller]
    fn read(value: &Setting) -> Result<Option<Alphas>> {
        match usize::of(value) {
            Some(count) => Ok(Some(Alphas::Count(count))),
            None => Ok(Vec::read(value)?.map(Alphas::List)),
        }
    }

    fn setting(&self) -> Setting {
        match self {
            Alphas::Count(count) => count.setting(),
            Alphas::List(list) => list.setting(),
        }
    }
}

/// One part of the absolute values in the penalty, or several that are tried.
#[derive(Clone, Debug, PartialEq)]
pub struct L1Ratios(Vec<f64>);

impl From<f64> for L1Ratios {
    fn from(ratio: f64) -> L1Ratios {
        L1Ratios(vec![ratio])
    }
}

impl From<Vec<f64>> for L1Ratios {
    fn from(list: Vec<f64>) -> L1Ratios {
        L1Ratios(list)
    }
}

impl<const N: usize> From<[f64; N]> for L1Ratios {
    fn from(list: [f64; N]) -> L1Ratios {
        L1Ratios(list.into())
    }
}

impl Parameter for L1Ratios {
    fn words(_: usize) -> String {
        "a float in the range [0.0, 1.0] or an array-like".to_owned()
    }

    fn of(value: &Setting) -> Option<L1Ratios> {
        f64::of(value).map(L1Ratios::from).or_else(|| Vec::of(value).map(L1Ratios))
    }

    #[track_caller]
    fn read(value: &Setting) -> Result<Option<L1Ratios>> {
        match f64::of(value) {
            Some(ratio) => Ok(Some(ratio.into())),
            None => Ok(Vec::read(value)?.map(L1Ratios)),
        }
    }

    fn setting(&self) -> Setting {
        match self.0[..] {
            [ratio] => ratio.setting(),
            _ => self.0.setting(),
        }
    }
}

estimator! {
    /// scikit-learn's `LassoCV`: [`Lasso`](super::Lasso) with the penalty that tells folds best which it has
    /// not seen.
    ///
    /// ```
    /// use tharsis_learn::linear_model::LassoCV;
    /// use tharsis_numeric::arange;
    /// let x = arange(20).reshape(&[10, 2]) % 7;
    /// let y = x.take_at(&arange(1), 1).ravel() * 2.0 + 1.0;
    /// let model = LassoCV::new().alphas(20).fit(&x, &y, ..)?;
    /// assert_eq!((model.alphas.len(), model.mse_path.shape()), (20, &[20, 5][..]));
    /// assert!((model.coef[[0]] - 2.0).abs() < 0.01);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    LassoCV {
        /// scikit-learn's `eps`: the least penalty in parts of the largest one.
        eps "eps": f64, f64 = 1e-3;
        /// scikit-learn's `alphas`: the penalties that are tried, or their number.
        alphas "alphas" >= 1: Alphas, impl Into<Alphas> = Alphas::Count(100);
        /// As [`ElasticNet::fit_intercept`](super::ElasticNet::fit_intercept).
        fit_intercept "fit_intercept": bool, bool = true;
        /// As [`ElasticNet::max_iter`](super::ElasticNet::max_iter), for each penalty.
        max_iter "max_iter" >= 1: usize, usize = 1000;
        /// As [`ElasticNet::tol`](super::ElasticNet::tol).
        tol "tol": f64, f64 = 1e-4;
        /// scikit-learn's `cv`: the number of consecutive folds, at least 2; 5 by default.
        cv "cv" >= 2: Option<usize>, impl Into<Option<usize>> = None;
        /// As [`ElasticNet::positive`](super::ElasticNet::positive).
        positive "positive": bool, bool = false;
    }
}

estimator! {
    /// scikit-learn's `ElasticNetCV`: [`ElasticNet`](super::ElasticNet) with the penalty that tells folds
    /// best which it has not seen.
    ///
    /// ```
    /// use tharsis_learn::linear_model::ElasticNetCV;
    /// use tharsis_numeric::arange;
    /// let x = arange(20).reshape(&[10, 2]) % 7;
    /// let y = x.take_at(&arange(1), 1).ravel() * 2.0 + 1.0;
    /// let model = ElasticNetCV::new().l1_ratio([0.5, 0.9]).alphas(20).fit(&x, &y, ..)?;
    /// assert_eq!((model.l1_ratio, model.mse_path.shape()), (0.9, &[2, 20, 5][..]));
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ElasticNetCV {
        /// scikit-learn's `l1_ratio`: the part of the absolute values in the penalty, from 0 to 1, or several
        /// that are tried.
        l1_ratio "l1_ratio": L1Ratios, impl Into<L1Ratios> = L1Ratios::from(0.5);
        /// scikit-learn's `eps`: the least penalty in parts of the largest one.
        eps "eps": f64, f64 = 1e-3;
        /// scikit-learn's `alphas`: the penalties that are tried, or their number.
        alphas "alphas" >= 1: Alphas, impl Into<Alphas> = Alphas::Count(100);
        /// As [`ElasticNet::fit_intercept`](super::ElasticNet::fit_intercept).
        fit_intercept "fit_intercept": bool, bool = true;
        /// As [`ElasticNet::max_iter`](super::ElasticNet::max_iter), for each penalty.
        max_iter "max_iter" >= 1: usize, usize = 1000;
        /// As [`ElasticNet::tol`](super::ElasticNet::tol).
        tol "tol": f64, f64 = 1e-4;
        /// scikit-learn's `cv`: the number of consecutive folds, at least 2; 5 by default.
        cv "cv" >= 2: Option<usize>, impl Into<Option<usize>> = None;
        /// As [`ElasticNet::positive`](super::ElasticNet::positive).
        positive "positive": bool, bool = false;
    }
}

/// A fitted [`LassoCV`] or [`ElasticNetCV`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedElasticNetCV {
    /// scikit-learn's `coef_`; (d,).
    pub coef: ArrayD<f64>,
    /// scikit-learn's `intercept_`; ().
    pub intercept: ArrayD<f64>,
    /// scikit-learn's `alpha_`: the penalty that was chosen.
    pub alpha: f64,
    /// scikit-learn's `l1_ratio_`: the part of the absolute values that was chosen.
    pub l1_ratio: f64,
    /// scikit-learn's `alphas_`: the penalties that were tried, descending; (alphas,), or (ratios, alphas)
    /// for several parts of absolute values and no list of penalties.
    pub alphas: ArrayD<f64>,
    /// scikit-learn's `mse_path_`: the mean of squares of each fold; (ratios, alphas, folds) without axes of
    /// one element.
    pub mse_path: ArrayD<f64>,
    /// scikit-learn's `n_iter_`: rounds over all coefficients of the last fit.
    pub n_iter: usize,
    /// scikit-learn's `dual_gap_`: a bound on the distance of the last fit from the least objective.
    pub dual_gap: f64,
    /// Whether that gap is within the tolerance. Otherwise `max_iter` rounds were not enough.
    pub converged: bool,
    name: Name,
}

impl LassoCV {
    /// Fits the model on samples (n, d) and targets (n,), of real dtypes. One pass, which keeps a matrix (d,
    /// d) for each fold.
    ///
    /// # Errors
    /// As [`ElasticNet::fit`](super::ElasticNet::fit); `ValueError` for more folds than samples, weights that
    /// are all zero in a fold, and no penalties.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<FittedElasticNetCV> {
        self.fit_any(x, Some(y), &options.into())
    }
}

impl ElasticNetCV {
    /// As [`LassoCV::fit`].
    ///
    /// # Errors
    /// As [`LassoCV::fit`].
    #[track_caller]
    pub fn fit(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<FittedElasticNetCV> {
        self.fit_any(x, Some(y), &options.into())
    }

    #[track_caller]
    fn check(&self, name: &str) -> Result<()> {
        check_positive(name, "eps", self.eps)?;
        check_count(name, "max_iter", self.max_iter, 1)?;
        check_folds(name, self.cv)?;
        check(name, "tol", is_at_least_0(self.tol), "a float in the range [0.0, inf)", self.tol)?;
        for &ratio in &self.l1_ratio.0 {
            let wanted = "a float in the range [0.0, 1.0] or an array-like";
            check(name, "l1_ratio", (0.0..=1.0).contains(&ratio), wanted, ratio)?;
        }
        match &self.alphas {
            Alphas::Count(count) => {
                check(name, "alphas", 0 < *count, "an int in the range [1, inf) or an array-like", count)?;
                if self.l1_ratio.0.contains(&0.0) {
                    return Err(refused(
                        "Automatic alpha grid generation is not supported for l1_ratio=0. Please supply a grid \
                         by providing your estimator with the appropriate `alphas=` argument.",
                    ));
                }
            }
            Alphas::List(list) => {
                if let Some((at, alpha)) = list.iter().enumerate().find(|(_, alpha)| !is_at_least_0(**alpha))
                {
                    return Err(refused(format!("alphas[{at}] == {alpha:?}, must be >= 0.0.")));
                }
                if list.is_empty() {
                    return Err(refused("alphas is empty: there is no penalty to choose"));
                }
            }
        }
        if self.l1_ratio.0.is_empty() {
            return Err(refused("l1_ratio is empty: there is no part of absolute values to choose"));
        }
        Ok(())
    }

    /// The penalties of a part of absolute values, descending, for these samples.
    fn grid(&self, sums: &Sums, ratio: f64) -> Vec<f64> {
        let count = match &self.alphas {
            Alphas::Count(count) => *count,
            Alphas::List(list) => {
                let mut list = list.clone();
                list.sort_by(|a, b| b.total_cmp(a));
                return list;
            }
        };
        let pulls = sums.cross.iter().map(|pull| if self.positive { *pull } else { pull.abs() });
        let largest = pulls.fold(0.0, f64::max) / (sums.weight * ratio);
        if largest <= NO_PENALTY {
            return vec![NO_PENALTY; count];
        }
        let step = self.eps.ln() / (count.saturating_sub(1).max(1)) as f64;
        (0..count).map(|at| largest * (step * at as f64).exp()).collect()
    }

    fn penalty(&self, alpha: f64, ratio: f64, weight: f64) -> Penalty {
        Penalty {
            l1: alpha * ratio * weight,
            l2: alpha * (1.0 - ratio) * weight,
            positive: self.positive,
            max_iter: self.max_iter,
            tol: self.tol,
        }
    }

    /// The means of squares of a test fold; one for each penalty.
    #[track_caller]
    fn path(
        &self,
        training: &Training,
        (train, test): (&Sums, &Sums),
        (alphas, ratio): (&[f64], f64),
    ) -> Result<Vec<f64>> {
        let products = products(train);
        let mut coef = Array1::zeros(train.mean.len());
        let mut path = Vec::with_capacity(alphas.len());
        for &alpha in alphas {
            let penalty = self.penalty(alpha, ratio, train.weight);
            coef = descend_from(coef, &products, penalty, || training.engine.check_time())?.coef;
            path.push(test.left(&coef, train, 0));
        }
        Ok(path)
    }

    /// The minimum of a penalty for all samples.
    #[track_caller]
    fn best(&self, training: &Training, sums: &Sums, (alpha, ratio): (f64, f64)) -> Result<Descended> {
        let penalty = self.penalty(alpha, ratio, sums.weight);
        if penalty.l1 == 0.0
            && !self.positive
            && let Some(slopes) = solved(&sums.gram, &sums.cross, penalty.l2)?
        {
            return Ok(Descended { coef: slopes.column(0).to_owned(), gap: 0.0, gap_max: 0.0, rounds: 1 });
        }
        let start = Array1::zeros(sums.mean.len());
        descend_from(start, &products(sums), penalty, || training.engine.check_time())
    }

    #[track_caller]
    fn fitted(
        &self,
        name: &'static str,
        (x, y, options): (&Tensor, Option<&Tensor>, &FitOptions),
    ) -> Result<FittedElasticNetCV> {
        self.check(name)?;
        let training = Training::supervised(name, x, y, options)?;
        let targets = training.one_target()?;
        let around = line::around(self.fit_intercept);
        let parts = Sums::of_folds(&training, &targets, self.cv.unwrap_or(FOLDS))?;
        let all = Sums::without(&parts, None)?.around(around);
        let ratios = &self.l1_ratio.0;
        if let Alphas::Count(count) = self.alphas {
            training.check_held(count, ratios.len().saturating_mul(parts.len()))?;
        }
        let grids: Vec<Vec<f64>> = ratios.iter().map(|&ratio| self.grid(&all, ratio)).collect();
        let count = grids.first().map_or(0, Vec::len);
        let mut squares = Array3::zeros((ratios.len(), count, parts.len()));
        for (fold, test) in parts.iter().enumerate() {
            let train = Sums::without(&parts, Some(fold))?.around(around);
            for (at, (&ratio, alphas)) in ratios.iter().zip(&grids).enumerate() {
                let path = self.path(&training, (&train, test), (alphas, ratio))?;
                squares.index_axis_mut(Axis(2), fold).row_mut(at).assign(&Array1::from(path));
            }
        }
        let (mut best, mut least) = ((0, 0), f64::INFINITY);
        for (at, squares) in squares.outer_iter().enumerate() {
            for (alpha, squares) in squares.outer_iter().enumerate() {
                // Folds count alike, whatever they weigh: as in scikit-learn.
                let mean = squares.sum() / squares.len() as f64;
                if mean < least {
                    (best, least) = ((at, alpha), mean);
                }
            }
        }
        let (alpha, l1_ratio) = (grids[best.0][best.1], ratios[best.0]);
        let made = self.best(&training, &all, (alpha, l1_ratio))?;
        if made.coef.iter().any(|coef| !coef.is_finite()) {
            return Err(training.beyond_float64());
        }
        let slopes = made.coef.insert_axis(Axis(1));
        let Line { coef, intercept } = Line::through(&slopes, &all.mean, &all.target_mean, true);
        let alphas = match (&self.alphas, grids.len()) {
            (Alphas::Count(_), 2..) => {
                ndarray::Array2::from_shape_fn((grids.len(), count), |(at, alpha)| grids[at][alpha])
                    .into_dyn()
            }
            _ => Array1::from(grids.into_iter().next().unwrap_or_default()).into_dyn(),
        };
        Ok(FittedElasticNetCV {
            coef,
            intercept,
            alpha,
            l1_ratio,
            alphas,
            mse_path: squeezed(squares.into_dyn()),
            n_iter: made.rounds,
            dual_gap: made.gap / all.weight,
            converged: made.gap <= made.gap_max,
            name: if name == "LassoCV" { Name::LASSO } else { Name::NET },
        })
    }
}

/// The data of a descent.
fn products(sums: &Sums) -> Products<'_> {
    Products::Columns { gram: sums.gram.view(), cross: sums.cross.column(0), squares: sums.squares[0] }
}

/// The array without axes of one element.
fn squeezed(mut array: ArrayD<f64>) -> ArrayD<f64> {
    for axis in (0..array.ndim()).rev() {
        if array.shape()[axis] == 1 {
            array = array.index_axis_move(Axis(axis), 0);
        }
    }
    array
}

impl Estimator for LassoCV {
    type Fitted = FittedElasticNetCV;

    #[track_caller]
    fn fit_any(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Result<FittedElasticNetCV> {
        let LassoCV { eps, alphas, fit_intercept, max_iter, tol, cv, positive } = self.clone();
        let l1_ratio = L1Ratios::from(1.0);
        let net = ElasticNetCV { l1_ratio, eps, alphas, fit_intercept, max_iter, tol, cv, positive };
        net.fitted("LassoCV", (x, y, options))
    }
}

impl Estimator for ElasticNetCV {
    type Fitted = FittedElasticNetCV;

    #[track_caller]
    fn fit_any(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Result<FittedElasticNetCV> {
        self.fitted("ElasticNetCV", (x, y, options))
    }
}

line_model!(
    FittedElasticNetCV,
    "ElasticNetCV",
    |model| if model.name.is_lasso() { "LassoCV" } else { "ElasticNetCV" },
    |model| model.coef.ndim() == 1
);
