//! Matching pursuit: features are chosen one after the other, each the one that goes most with what those
//! before leave of the target. One pass makes the Gram matrix. Lines through zero of samples far from it are
//! pursued on a factor of the samples.

use super::active::Active;
use super::lars::fits;
use super::least::{upper_factor, well_conditioned};
use super::line::{self, Line, line_model};
use super::sums::Sums;
use crate::base::{Estimator, FitOptions};
use crate::bounds::{check, check_not_negative};
use crate::checks::{Training, refused};
use crate::model_selection::KFold;
use crate::params::estimator;
use crate::passes::{Around, Centred};
use ndarray::{Array1, Array2, ArrayD, Axis, Slice, concatenate};
use serde::{Deserialize, Serialize};
use tharsis_numeric::{Result, Tensor};

/// The cosine between a feature and what is left of the target below which it is rounding of their sums.
const UNCORRELATED: f64 = 1e-12;
/// A part in so many of the features is chosen by default.
const SHARE: usize = 10;
/// A feature must have so many times as much beside the others as rounding leaves of a sum of them.
const MARGIN: f64 = 4.0;

estimator! {
    /// scikit-learn's `OrthogonalMatchingPursuit`: least squares on few features, chosen one after the other.
    ///
    /// ```
    /// use tharsis_learn::linear_model::OrthogonalMatchingPursuit;
    /// use tharsis_numeric::array;
    /// let x = array([-1.0, 1.0, 0.0, 0.0, 1.0, 1.0]).reshape(&[3, 2]);
    /// let model = OrthogonalMatchingPursuit::new().fit(&x, &array([-2.0, 0.0, 2.0]), ..)?;
    /// assert!((model.coef[[0]] - 2.0).abs() < 1e-12 && model.coef[[1]] == 0.0);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    OrthogonalMatchingPursuit {
        /// scikit-learn's `n_nonzero_coefs`: the number of features, at least 1; a tenth of all by default.
        /// It has no effect beside `tol`.
        n_nonzero_coefs "n_nonzero_coefs" >= 1: Option<usize>, impl Into<Option<usize>> = None;
        /// scikit-learn's `tol`: the squares of what is left of the target at which the choice ends.
        tol "tol": Option<f64>, impl Into<Option<f64>> = None;
        /// scikit-learn's `fit_intercept`: whether the line need not go through zero.
        fit_intercept "fit_intercept": bool, bool = true;
    }
}

/// A fitted [`OrthogonalMatchingPursuit`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedOrthogonalMatchingPursuit {
    /// scikit-learn's `coef_`; (d,).
    pub coef: ArrayD<f64>,
    /// scikit-learn's `intercept_`; ().
    pub intercept: ArrayD<f64>,
    /// scikit-learn's `n_iter_`: the number of features that were chosen.
    pub n_iter: usize,
    /// scikit-learn's `n_nonzero_coefs_`: the number that was asked for, without `tol`.
    pub n_nonzero_coefs: Option<usize>,
}

fits! {
    OrthogonalMatchingPursuit, FittedOrthogonalMatchingPursuit;
}

impl Estimator for OrthogonalMatchingPursuit {
    type Fitted = FittedOrthogonalMatchingPursuit;

    fn takes_weights(&self) -> bool {
        false
    }

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        y: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedOrthogonalMatchingPursuit> {
        let name = "OrthogonalMatchingPursuit";
        check_not_negative(name, "tol", self.tol.unwrap_or(0.0))?;
        let is_sound = self.n_nonzero_coefs != Some(0);
        check(name, "n_nonzero_coefs", is_sound, "an int in the range [1, inf) or None", 0)?;
        let training = Training::supervised(name, x, y, options)?.without_weights()?;
        let columns = training.columns;
        let n_nonzero_coefs = match self.tol {
            Some(_) => None,
            None => Some(self.n_nonzero_coefs.unwrap_or((columns / SHARE).max(1))),
        };
        if n_nonzero_coefs.is_some_and(|count| columns < count) {
            return Err(refused("The number of atoms cannot be more than the number of features"));
        }
        let target = training.one_target()?;
        let sums = Sums::of(&training, &target, line::around(self.fit_intercept))?;
        let most = n_nonzero_coefs.unwrap_or(columns);
        let look = || training.engine.check_time();
        // Products of samples far from zero have lost all directions across.
        let has_lost =
            !self.fit_intercept && columns <= training.rows && well_conditioned(&sums.gram)?.is_none();
        let path = if has_lost {
            Coordinates::of(&training, &target)?.pursued(most, self.tol, look)?
        } else {
            pursued(&sums, most, self.tol, look)?
        };
        let n_iter = path.len();
        let coef = path.into_iter().last().unwrap_or_else(|| Array1::zeros(columns));
        if coef.iter().any(|coef| !coef.is_finite()) {
            return Err(training.beyond_float64());
        }
        let Line { coef, intercept } =
            Line::through(&coef.insert_axis(Axis(1)), &sums.mean, &sums.target_mean, true);
        Ok(FittedOrthogonalMatchingPursuit { coef, intercept, n_iter, n_nonzero_coefs })
    }
}

/// The coefficients of a pursuit of at most so many features, to a square of what is left: those of each
/// number of features, ascending. `look` fails if there is no time left.
pub(super) fn pursued(
    sums: &Sums,
    most: usize,
    tol: Option<f64>,
    mut look: impl FnMut() -> Result<()>,
) -> Result<Vec<Array1<f64>>> {
    let (cross, columns) = (sums.cross.column(0), sums.mean.len());
    let mut active = Active::default();
    let mut path: Vec<Array1<f64>> = Vec::new();
    while active.columns.len() < most {
        look()?;
        let left = path.last().map_or_else(|| cross.to_owned(), |coef| &cross - &sums.gram.dot(coef));
        let (mut next, mut largest) = (None, 0.0);
        for (column, left) in left.iter().enumerate() {
            if !active.columns.contains(&column) && largest < left.abs() {
                (next, largest) = (Some(column), left.abs());
            }
        }
        // The rest has nothing of the features, or those that are left are others' sums.
        let Some(next) = next else { break };
        let length = sums.gram[[next, next]].sqrt();
        if largest <= UNCORRELATED * length * sums.squares[0].sqrt()
            || !active.push(&sums.gram, next, f64::EPSILON.sqrt() * length)
        {
            break;
        }
        let own = active.solve(active.columns.iter().map(|&column| cross[column]).collect());
        let coef = active.spread(&own, columns);
        let squares = sums.squares[0] - cross.dot(&coef);
        path.push(coef);
        if tol.is_some_and(|tol| squares <= tol) {
            break;
        }
    }
    Ok(path)
}

/// Samples and their target in coordinates of which there are few: factors of parts, one below the other.
pub(super) struct Coordinates {
    /// The number of samples.
    rows: usize,
    /// Features, and the target behind them; (r, d + 1).
    upper: Array2<f64>,
}

impl Coordinates {
    /// Those of a line through zero. One pass.
    #[track_caller]
    pub(super) fn of(training: &Training, target: &Tensor) -> Result<Coordinates> {
        let centred = Centred::of(training, target, Around::Zero)?;
        Ok(Coordinates { rows: training.rows, upper: upper_factor(training, &centred)? })
    }

    /// Those of so many consecutive folds. Each sample is read once.
    #[track_caller]
    pub(super) fn of_folds(training: &Training, target: &Tensor, folds: usize) -> Result<Vec<Coordinates>> {
        let splits = KFold { n_splits: folds, ..KFold::default() }.split(&training.x)?;
        let parts = splits.map(|split| {
            let part = training.part(|tensor| split.test.of(tensor))?;
            Coordinates::of(&part, &split.test.of(target))
        });
        parts.collect()
    }

    /// Those of all parts but one, or of all.
    ///
    /// # Errors
    /// `ValueError` if there are none.
    #[track_caller]
    pub(super) fn without(parts: &[Coordinates], left_out: Option<usize>) -> Result<Coordinates> {
        let (mut rows, mut uppers) = (0, Vec::new());
        for (at, part) in parts.iter().enumerate() {
            if Some(at) != left_out {
                rows += part.rows;
                uppers.push(part.upper.view());
            }
        }
        let upper = concatenate(Axis(0), &uppers).map_err(|error| refused(error.to_string()))?;
        Ok(Coordinates { rows, upper })
    }

    /// The mean of the squares that slopes (d,) leave of the target.
    pub(super) fn left(&self, slopes: &Array1<f64>) -> f64 {
        let last = slopes.len();
        let features = self.upper.slice_axis(Axis(1), Slice::from(..last));
        let left = &self.upper.column(last) - &features.dot(slopes);
        left.dot(&left) / self.rows as f64
    }

    /// The pursuit that [`pursued`] makes of products.
    pub(super) fn pursued(
        &self,
        most: usize,
        tol: Option<f64>,
        look: impl FnMut() -> Result<()>,
    ) -> Result<Vec<Array1<f64>>> {
        let columns = self.upper.ncols() - 1;
        let factored = Factored {
            features: self.upper.slice_axis(Axis(1), Slice::from(..columns)).to_owned(),
            left: self.upper.column(columns).to_owned(),
            rounding: MARGIN * f64::EPSILON * self.rows.max(columns) as f64,
            columns: Vec::new(),
            basis: Vec::new(),
            parts: Vec::new(),
            along: Vec::new(),
        };
        factored.pursued(most, tol, look)
    }
}

/// A pursuit under way, in coordinates of samples and their target.
struct Factored {
    /// (r, d).
    features: Array2<f64>,
    /// The part of the target that is left; (r,).
    left: Array1<f64>,
    /// The part of a length that is rounding.
    rounding: f64,
    /// The features that were chosen, in the order in which they came.
    columns: Vec<usize>,
    /// The direction that each of them adds, of length 1; (r,).
    basis: Vec<Array1<f64>>,
    /// Their parts along these directions, to the own one.
    parts: Vec<Vec<f64>>,
    /// The target along the directions.
    along: Vec<f64>,
}

impl Factored {
    /// The coefficients of each number of features, ascending.
    fn pursued(
        mut self,
        most: usize,
        tol: Option<f64>,
        mut look: impl FnMut() -> Result<()>,
    ) -> Result<Vec<Array1<f64>>> {
        let nothing = UNCORRELATED * length(&self.left);
        let mut path = Vec::new();
        while self.columns.len() < most {
            look()?;
            if length(&self.left) <= nothing || !self.push() {
                break;
            }
            path.push(self.coef());
            let squares = self.left.dot(&self.left);
            if tol.is_some_and(|tol| squares <= tol) {
                break;
            }
        }
        Ok(path)
    }

    /// Chooses the feature that goes most with what is left, the first one of equal columns. Whether there is
    /// one that is no sum of others.
    fn push(&mut self) -> bool {
        let products = self.features.t().dot(&self.left);
        let (mut next, mut largest) = (None, 0.0);
        for (column, product) in products.iter().enumerate() {
            if !self.columns.contains(&column) && largest < product.abs() * (1.0 - UNCORRELATED) {
                (next, largest) = (Some(column), product.abs());
            }
        }
        let Some(next) = next else { return false };
        let mut own = self.features.column(next).to_owned();
        let rounding = self.rounding * length(&own);
        let mut parts = taken_off(&mut own, &self.basis);
        let rest = length(&own);
        if largest <= rounding * length(&self.left) || rest <= rounding {
            return false;
        }
        own /= rest;
        parts.push(rest);
        self.columns.push(next);
        self.parts.push(parts);
        self.basis.push(own);
        self.along.push(0.0);
        let more = taken_off(&mut self.left, &self.basis);
        self.along.iter_mut().zip(more).for_each(|(along, more)| *along += more);
        true
    }

    /// The coefficients of all features; (d,).
    fn coef(&self) -> Array1<f64> {
        let mut coef: Array1<f64> = Array1::zeros(self.features.ncols());
        for (at, &column) in self.columns.iter().enumerate().rev() {
            let later = self.columns.iter().zip(&self.parts).skip(at + 1);
            let known: f64 = later.map(|(&later, parts)| parts[at] * coef[later]).sum();
            coef[column] = (self.along[at] - known) / self.parts[at][at];
        }
        coef
    }
}

fn length(vector: &Array1<f64>) -> f64 {
    vector.dot(vector).sqrt()
}

/// Takes the parts of a vector along directions off it, twice, since the first time leaves rounding of them.
/// The parts.
fn taken_off(vector: &mut Array1<f64>, directions: &[Array1<f64>]) -> Vec<f64> {
    let mut parts = vec![0.0; directions.len()];
    for _ in 0..2 {
        for (part, direction) in parts.iter_mut().zip(directions) {
            let more = direction.dot(&*vector);
            vector.scaled_add(-more, direction);
            *part += more;
        }
    }
    parts
}

line_model!(
    FittedOrthogonalMatchingPursuit,
    "OrthogonalMatchingPursuit",
    |_model| "OrthogonalMatchingPursuit",
    |model| model.coef.ndim() == 1
);
