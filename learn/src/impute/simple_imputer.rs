//! Missing numbers filled with a number for each feature.

use super::missing::Missing;
use super::missing_indicator::{FittedMissingIndicator, MissingIndicator};
use crate::base::{Estimator, FitOptions, Transform};
use crate::checks::{Training, checked_for, in_dtype_of, refused, unchecked_for};
use crate::dense::{positions, tensor};
use crate::params::{parameters, words};
use crate::saved::{Save, saved};
use crate::show;
use crate::states::{lost, vector};
use ndarray::Array1;
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::{DType, Result, Tensor, concatenate, stack, where_};

/// The number that fills a feature.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Statistic {
    /// This number.
    Constant(f64),
    /// The mean of those that are there.
    #[default]
    Mean,
    /// Their median.
    Median,
    /// The one that is there most often; of several the least.
    MostFrequent,
}

/// scikit-learn's `SimpleImputer`: fills missing numbers with the mean of their feature, or with another
/// statistic of it.
///
/// ```
/// use tharsis_learn::impute::SimpleImputer;
/// use tharsis_numeric::array;
/// let x = array([1.0, f64::NAN, 3.0]).reshape(&[3, 1]);
/// let model = SimpleImputer::new().fit(&x, ..)?;
/// assert_eq!(model.transform(&x).to_vec::<f64>()?, [1.0, 2.0, 3.0]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct SimpleImputer {
    missing_values: f64,
    strategy: Strategy,
    /// The constant, which zero is by default.
    fill_value: Option<f64>,
    add_indicator: bool,
    keep_empty_features: bool,
}

/// A fitted [`SimpleImputer`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedSimpleImputer {
    /// scikit-learn's `statistics_`: the numbers that fill; NaN for a feature without numbers, which
    /// `transform` leaves out; (d,).
    pub statistics: Array1<f64>,
    /// scikit-learn's `indicator_`, if one was asked for.
    pub indicator: Option<FittedMissingIndicator>,
    missing: Missing,
}

/// scikit-learn's `strategy`, which has the constant beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strategy {
    Constant,
    Mean,
    Median,
    MostFrequent,
}

words!(
    Strategy,
    [
        "mean" => Strategy::Mean, "median" => Strategy::Median, "most_frequent" => Strategy::MostFrequent,
        "constant" => Strategy::Constant
    ]
);
parameters!(
    SimpleImputer,
    "SimpleImputer",
    [
        "missing_values" => missing_values, "strategy" => strategy, "fill_value" => fill_value,
        "add_indicator" => add_indicator, "keep_empty_features" => keep_empty_features
    ]
);

impl Default for SimpleImputer {
    fn default() -> SimpleImputer {
        SimpleImputer {
            missing_values: f64::NAN,
            strategy: Strategy::Mean,
            fill_value: None,
            add_indicator: false,
            keep_empty_features: false,
        }
    }
}

impl SimpleImputer {
    /// An estimator with scikit-learn's defaults: NaN is missing, the mean fills it.
    pub fn new() -> SimpleImputer {
        SimpleImputer::default()
    }

    /// scikit-learn's `missing_values`: the number that stands for a missing one.
    pub fn missing_values(self, missing_values: f64) -> SimpleImputer {
        SimpleImputer { missing_values, ..self }
    }

    /// scikit-learn's `strategy` (and `fill_value`): the number that fills a feature.
    pub fn strategy(self, strategy: Statistic) -> SimpleImputer {
        let (strategy, fill_value) = match strategy {
            Statistic::Constant(value) => (Strategy::Constant, Some(value)),
            Statistic::Mean => (Strategy::Mean, None),
            Statistic::Median => (Strategy::Median, None),
            Statistic::MostFrequent => (Strategy::MostFrequent, None),
        };
        SimpleImputer { strategy, fill_value, ..self }
    }

    /// scikit-learn's `add_indicator`: whether a column of zeros and ones follows for each feature with
    /// missing numbers.
    pub fn add_indicator(self, add_indicator: bool) -> SimpleImputer {
        SimpleImputer { add_indicator, ..self }
    }

    /// scikit-learn's `keep_empty_features`: whether a feature without numbers is filled with 0, or with the
    /// constant, instead of being left out.
    pub fn keep_empty_features(self, keep_empty_features: bool) -> SimpleImputer {
        SimpleImputer { keep_empty_features, ..self }
    }

    /// Fits the imputer on samples (n, d), of any real dtype. Two passes; a sort of each column for the
    /// median and the most frequent number.
    ///
    /// # Errors
    /// `ValueError` for samples of other than two axes, without rows or features, complex or infinite, and
    /// with NaN if another number stands for missing ones; `OverflowError` for sums beyond float64;
    /// `TypeError` for weights; errors of the passes.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedSimpleImputer> {
        self.fit_any(x, None, &options.into())
    }

    /// The number that fills a feature.
    fn statistic(&self) -> Statistic {
        match self.strategy {
            Strategy::Constant => Statistic::Constant(self.fill_value.unwrap_or(0.0)),
            Strategy::Mean => Statistic::Mean,
            Strategy::Median => Statistic::Median,
            Strategy::MostFrequent => Statistic::MostFrequent,
        }
    }

    /// The statistic of each feature; NaN of one without numbers.
    #[track_caller]
    fn statistics(&self, training: &Training, x: &Tensor) -> Result<Array1<f64>> {
        let mask = Missing(self.missing_values).mask(&training.x, x);
        let there = where_(&mask, f64::NAN, &training.x);
        let is_empty = mask.all(0);
        let wanted = match self.statistic() {
            Statistic::Constant(value) => where_(&is_empty, f64::NAN, value),
            Statistic::Mean => there.nanmean(0),
            Statistic::Median => there.nanmedian(0),
            Statistic::MostFrequent => most_frequent(&there, training.columns),
        };
        let states = training.engine.run(&[&wanted, &is_empty])?;
        let [statistics, is_empty] = <[_; 2]>::try_from(states).map_err(|_| lost())?;
        let (mut statistics, is_empty) = (vector(statistics)?, vector(is_empty)?);
        let empty = match self.statistic() {
            _ if !self.keep_empty_features => f64::NAN,
            Statistic::Constant(value) => value,
            _ => 0.0,
        };
        for (statistic, &is_empty) in statistics.iter_mut().zip(&is_empty) {
            if is_empty != 0.0 {
                *statistic = empty;
            } else if !statistic.is_finite() {
                return Err(training.beyond_float64());
            }
        }
        Ok(statistics)
    }
}

/// The number that is in each column most often, of several the least; NaN counts as none; (d,).
#[track_caller]
fn most_frequent(x: &Tensor, columns: usize) -> Tensor {
    let found: Vec<Tensor> = (0..columns)
        .map(|column| {
            let sorted = x.get(&[(..).into(), (column as i64).into()]).sort(0);
            let counts = sorted.searchsorted_right(&sorted) - sorted.searchsorted(&sorted);
            let counts = where_(&sorted.isnan(), 0, &counts);
            // Of equal counts the first, which is that of the least number.
            sorted.take_at(&counts.argmax(0), 0)
        })
        .collect();
    stack(&found.iter().collect::<Vec<_>>(), 0)
}

impl Estimator for SimpleImputer {
    type Fitted = FittedSimpleImputer;

    fn takes_weights(&self) -> bool {
        false
    }

    fn takes_nan(&self) -> bool {
        self.missing_values.is_nan()
    }

    #[track_caller]
    fn fit_any(&self, x: &Tensor, _: Option<&Tensor>, options: &FitOptions) -> Result<FittedSimpleImputer> {
        if self.missing_values.is_infinite() {
            return Err(refused("infinity stands for no missing number"));
        }
        if matches!(self.statistic(), Statistic::Constant(value) if !value.is_finite()) {
            return Err(refused("a constant that fills missing numbers must be finite"));
        }
        let training = Training::unsupervised("SimpleImputer", x, options)?.without_weights()?;
        let missing = Missing(self.missing_values);
        missing.check(&training)?;
        let statistics = self.statistics(&training, x)?;
        let indicator = MissingIndicator::new().missing_values(self.missing_values).error_on_new(false);
        let indicator = self.add_indicator.then(|| indicator.fitted(&training, x)).transpose()?;
        Ok(FittedSimpleImputer { statistics, indicator, missing })
    }
}

impl FittedSimpleImputer {
    /// The features that have a number to fill with, ascending.
    fn kept(&self) -> Vec<usize> {
        (0..self.statistics.len()).filter(|&at| !self.statistics[at].is_nan()).collect()
    }

    /// Samples (n, d) with missing numbers filled, as an expression; (n, k). Floats keep their dtype. Carries
    /// a `ValueError` for another number of features; when run for infinity, and for NaN unless it stands for
    /// missing numbers.
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        let samples = match checked_for("SimpleImputer", x, self.statistics.len(), self.missing.nan()) {
            Ok(samples) => samples,
            Err(error) => return Tensor::from(error),
        };
        let mut made = where_(&self.missing.mask(&samples, x), tensor(&self.statistics), &samples);
        let kept = self.kept();
        if kept.len() < self.statistics.len() {
            made = made.take_at(&positions(&kept), 1);
        }
        if let Some(indicator) = &self.indicator {
            let indicated = indicator.indicate(&samples, x).astype(DType::F64);
            made = concatenate(&[&made, &indicated], 1);
        }
        in_dtype_of(x, made)
    }

    /// The samples that [`transform`](FittedSimpleImputer::transform) maps to these, (n, k) to (n, d). A
    /// feature without numbers is missing again.
    ///
    /// # Errors
    /// `ValueError` without an indicator, which alone knows what was filled, and for another number of
    /// columns.
    #[track_caller]
    pub fn inverse_transform(&self, x: &Tensor) -> Result<Tensor> {
        let Some(indicator) = &self.indicator else {
            return Err(refused(
                "'inverse_transform' works only when 'SimpleImputer' is instantiated with \
                 'add_indicator=True'. Got 'add_indicator=False' instead.",
            ));
        };
        let (kept, columns) = (self.kept(), self.statistics.len());
        let samples = unchecked_for("SimpleImputer", x, kept.len() + indicator.features.len())?;
        // A column of zeros stands in for those that are not there.
        let none = samples.get(&[(..).into(), (..1i64).into()]) * 0.0;
        let none = where_(&none.isnan(), 0.0, none);
        let wide = concatenate(&[&samples, &none], 1);
        let absent = kept.len() + indicator.features.len();
        let place = |of: &[usize], start: usize| -> Vec<usize> {
            let mut places = vec![absent; columns];
            of.iter().enumerate().for_each(|(at, &column)| places[column] = start + at);
            places
        };
        let values = wide.take_at(&positions(&place(&kept, 0)), 1);
        let was_missing = wide.take_at(&positions(&place(&indicator.features, kept.len())), 1).not_equal(0.0);
        Ok(in_dtype_of(x, where_(&was_missing, self.missing.0, &values)))
    }
}

saved!(FittedSimpleImputer, "SimpleImputer", |model| {
    let columns = model.statistics.len();
    0 < columns && model.indicator.as_ref().is_none_or(|indicator| indicator.is_sound(columns))
});

impl Transform for FittedSimpleImputer {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        FittedSimpleImputer::transform(self, x)
    }

    fn step_body(&self) -> Option<Result<(&'static str, Vec<u8>)>> {
        Some(self.kind_and_body())
    }

    fn feature_names_out(&self, names: &[String]) -> Option<Vec<String>> {
        let mut own = crate::feature_names::at(names, &self.kept(), self.statistics.len())?;
        if let Some(indicator) = &self.indicator {
            own.extend(indicator.feature_names_out(names)?);
        }
        Some(own)
    }
}

impl fmt::Display for FittedSimpleImputer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimpleImputer of {} features", self.statistics.len())?;
        show::line(f, "statistics", &self.statistics)
    }
}
