//! Missing numbers filled with those of the nearest samples.

use super::missing::Missing;
use super::missing_indicator::{FittedMissingIndicator, MissingIndicator};
use crate::base::{Estimator, FitOptions, Transform};
use crate::bounds::check_count;
use crate::checks::{Training, check_samples, checked_for, in_dtype_of, refused};
use crate::dense::{positions, tensor};
use crate::engine::Engine;
use crate::neighbors::Weights;
use crate::neighbors::donors::{Donors, Filled};
use crate::params::parameters;
use crate::saved::{Save, decoded, encoded, stored};
use crate::show;
use crate::states::{lost, vector};
use ndarray::Array1;
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::select::UNKNOWN;
use tharsis_numeric::{DType, Result, Tensor, concatenate, where_};

const NAME: &str = "KNNImputer";

/// scikit-learn's `KNNImputer`: fills a missing number with the mean of those of the nearest samples of the
/// fit that have one. Samples are near by the numbers that both have.
///
/// ```
/// use tharsis_learn::impute::KNNImputer;
/// use tharsis_numeric::array;
/// let nan = f64::NAN;
/// let x = array([1.0, 2.0, nan, 3.0, 4.0, 3.0, nan, 6.0, 5.0, 8.0, 8.0, 7.0]).reshape(&[4, 3]);
/// let made = KNNImputer::new().n_neighbors(2).fit(&x, ..)?.transform(&x).to_vec::<f64>()?;
/// assert_eq!((made[2], made[6]), (4.0, 5.5));
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct KNNImputer {
    missing_values: f64,
    n_neighbors: usize,
    weights: Weights,
    add_indicator: bool,
    keep_empty_features: bool,
}

/// A fitted [`KNNImputer`]. It holds the samples as the expression that the fit was given.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedKNNImputer {
    /// scikit-learn's `indicator_`, if one was asked for.
    pub indicator: Option<FittedMissingIndicator>,
    /// The mean of each feature, for numbers that no sample tells; NaN of a feature without numbers, which is
    /// left out.
    means: Array1<f64>,
    /// Features without numbers in the fit that are kept: they are 0, whatever samples have there.
    emptied: Vec<usize>,
    n_neighbors: usize,
    weights: Weights,
    missing: Missing,
    /// The samples of the fit; (n, d), float64, NaN for missing numbers.
    #[serde(with = "stored")]
    x: Tensor,
}

parameters!(
    KNNImputer,
    NAME,
    [
        "missing_values" => missing_values, "n_neighbors" => n_neighbors >= 1, "weights" => weights,
        "add_indicator" => add_indicator, "keep_empty_features" => keep_empty_features
    ]
);

impl Default for KNNImputer {
    fn default() -> KNNImputer {
        KNNImputer {
            missing_values: f64::NAN,
            n_neighbors: 5,
            weights: Weights::Uniform,
            add_indicator: false,
            keep_empty_features: false,
        }
    }
}

impl KNNImputer {
    /// An estimator with scikit-learn's defaults: NaN is missing, the mean of 5 neighbours fills it.
    pub fn new() -> KNNImputer {
        KNNImputer::default()
    }

    /// scikit-learn's `missing_values`: the number that stands for a missing one.
    pub fn missing_values(self, missing_values: f64) -> KNNImputer {
        KNNImputer { missing_values, ..self }
    }

    /// scikit-learn's `n_neighbors`: the number of samples whose numbers fill a missing one; not zero.
    pub fn n_neighbors(self, n_neighbors: usize) -> KNNImputer {
        KNNImputer { n_neighbors, ..self }
    }

    /// scikit-learn's `weights`: how much each neighbour counts.
    pub fn weights(self, weights: Weights) -> KNNImputer {
        KNNImputer { weights, ..self }
    }

    /// scikit-learn's `add_indicator`: whether a column of zeros and ones follows for each feature with
    /// missing numbers.
    pub fn add_indicator(self, add_indicator: bool) -> KNNImputer {
        KNNImputer { add_indicator, ..self }
    }

    /// scikit-learn's `keep_empty_features`: whether a feature without numbers is filled with 0 instead of
    /// being left out.
    pub fn keep_empty_features(self, keep_empty_features: bool) -> KNNImputer {
        KNNImputer { keep_empty_features, ..self }
    }

    /// Fits the imputer on samples (n, d), of any real dtype. Two passes.
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, samples of other than two axes, without rows or
    /// features, complex or infinite, and with NaN if another number stands for missing ones; `OverflowError`
    /// for sums beyond float64; `TypeError` for weights; errors of the passes.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedKNNImputer> {
        self.fit_any(x, None, &options.into())
    }
}

impl Estimator for KNNImputer {
    type Fitted = FittedKNNImputer;

    fn takes_weights(&self) -> bool {
        false
    }

    fn takes_nan(&self) -> bool {
        self.missing_values.is_nan()
    }

    #[track_caller]
    fn fit_any(&self, x: &Tensor, _: Option<&Tensor>, options: &FitOptions) -> Result<FittedKNNImputer> {
        check_count(NAME, "n_neighbors", self.n_neighbors, 1)?;
        if self.missing_values.is_infinite() {
            return Err(refused("infinity stands for no missing number"));
        }
        let training = Training::unsupervised(NAME, x, options)?.without_weights()?;
        let missing = Missing(self.missing_values);
        missing.check(&training)?;
        let mask = missing.mask(&training.x, x);
        let there = where_(&mask, f64::NAN, &training.x);
        let states = training.engine.run(&[&there.nanmean(0), &mask.all(0)])?;
        let [means, is_empty] = <[_; 2]>::try_from(states).map_err(|_| lost())?;
        let (mut means, is_empty) = (vector(means)?, vector(is_empty)?);
        let emptied: Vec<usize> =
            (0..means.len()).filter(|&column| self.keep_empty_features && is_empty[column] != 0.0).collect();
        for (mean, &is_empty) in means.iter_mut().zip(&is_empty) {
            if is_empty != 0.0 {
                *mean = if self.keep_empty_features { 0.0 } else { f64::NAN };
            } else if !mean.is_finite() {
                return Err(training.beyond_float64());
            }
        }
        let indicator = MissingIndicator::new().missing_values(self.missing_values).error_on_new(false);
        let indicator = self.add_indicator.then(|| indicator.fitted(&training, x)).transpose()?;
        let (n_neighbors, weights) = (self.n_neighbors.min(training.rows), self.weights);
        Ok(FittedKNNImputer { indicator, means, emptied, n_neighbors, weights, missing, x: there })
    }
}

impl FittedKNNImputer {
    /// Samples (m, d) with missing numbers filled, as an expression; (m, k). Floats keep their dtype. Carries
    /// a `ValueError` for another number of features; when run for infinity, and for NaN unless it stands for
    /// missing numbers.
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        self.filled(x).unwrap_or_else(Tensor::from)
    }

    #[track_caller]
    fn filled(&self, x: &Tensor) -> Result<Tensor> {
        let columns = self.means.len();
        check_samples(NAME, x, columns)?;
        let mut given = x.clone();
        if x.shape()?.contains(&UNKNOWN) {
            given = Engine::new(FitOptions::new().chosen_executor()).with_sizes(&[x])?.remove(0);
        }
        let samples = checked_for(NAME, &given, columns, self.missing.nan())?;
        let there = where_(&self.missing.mask(&samples, &given), f64::NAN, &samples);
        let states = Donors { count: self.n_neighbors, columns }.pass().states(&there, &self.x, &[]);
        let filled = Filled { count: self.n_neighbors, weights: self.weights, columns }.of(&there, &states);
        let mut made = where_(&filled.isnan(), tensor(&self.means), &filled);
        if !self.emptied.is_empty() {
            let numbers = (0..columns).map(|column| f64::from(u8::from(!self.emptied.contains(&column))));
            made = where_(&tensor(&numbers.collect::<Array1<f64>>()).equal(0.0), 0.0, made);
        }
        let kept: Vec<usize> = (0..columns).filter(|&column| !self.means[column].is_nan()).collect();
        if kept.len() < columns {
            made = made.take_at(&positions(&kept), 1);
        }
        if let Some(indicator) = &self.indicator {
            let indicated = indicator.indicate(&samples, &given).astype(DType::F64);
            made = concatenate(&[&made, &indicated], 1);
        }
        Ok(in_dtype_of(&given, made))
    }
}

impl Save for FittedKNNImputer {
    const KIND: &'static str = NAME;

    #[track_caller]
    fn body(&self) -> Result<Vec<u8>> {
        encoded(&FittedKNNImputer { x: Tensor::from_array(&self.x.fetch::<f64>()?), ..self.clone() })
    }

    fn of_body(body: &[u8]) -> Option<FittedKNNImputer> {
        let read: FittedKNNImputer = decoded(body)?;
        let columns = read.means.len();
        let &[rows, own] = read.x.shape().ok()? else { return None };
        let is_sound = own == columns
            && 0 < columns
            && read.emptied.iter().all(|&column| column < columns)
            && (1..=rows).contains(&read.n_neighbors)
            && read.indicator.as_ref().is_none_or(|indicator| indicator.is_sound(columns));
        is_sound.then_some(read)
    }
}

impl Transform for FittedKNNImputer {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        FittedKNNImputer::transform(self, x)
    }

    fn step_body(&self) -> Option<Result<(&'static str, Vec<u8>)>> {
        Some(self.kind_and_body())
    }

    fn feature_names_out(&self, names: &[String]) -> Option<Vec<String>> {
        let kept: Vec<usize> = (0..self.means.len()).filter(|&column| !self.means[column].is_nan()).collect();
        let mut own = crate::feature_names::at(names, &kept, self.means.len())?;
        if let Some(indicator) = &self.indicator {
            own.extend(indicator.feature_names_out(names)?);
        }
        Some(own)
    }
}

impl fmt::Display for FittedKNNImputer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{NAME} of {} features, {} neighbours", self.means.len(), self.n_neighbors)?;
        show::line(f, "means", &self.means)
    }
}
