//! scikit-learn's `isotonic`: lines that never fall, or never rise.

use crate::Setting;
use crate::base::{Estimator, FitOptions, Predict, Transform, predicts};
use crate::checks::{Nan, Training, finite, refused};
use crate::params::{Parameter, estimator, words};
use crate::saved::{Save, saved};
use crate::show;
use crate::states::{lost, matrix};
use ndarray::Array1;
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_graph::ops::Require;
use tharsis_numeric::statistics::Beyond;
use tharsis_numeric::{DType, Index, Result, Tensor, concatenate};

const NAME: &str = "IsotonicRegression";
/// Samples that are read at once.
const BLOCK_ROWS: usize = 1 << 18;
/// Distance of two places that are one.
const APART: f64 = 1e-15;

/// Predictions outside the places of the fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OutOfBounds {
    /// NaN.
    #[default]
    Nan,
    /// That of the nearest place.
    Clip,
    /// An error.
    Raise,
}

words!(
    OutOfBounds,
    ["nan" => OutOfBounds::Nan, "clip" => OutOfBounds::Clip, "raise" => OutOfBounds::Raise]
);

/// The way of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Increasing {
    /// It never falls.
    Rises,
    /// It never rises.
    Falls,
    /// That of the correlation of ranks.
    Auto,
}

impl From<bool> for Increasing {
    fn from(increasing: bool) -> Increasing {
        if increasing { Increasing::Rises } else { Increasing::Falls }
    }
}

impl Parameter for Increasing {
    fn words(_: usize) -> String {
        "a str among {'auto'} or an instance of 'bool'".to_owned()
    }

    fn of(value: &Setting) -> Option<Increasing> {
        match value {
            Setting::Text(text) if text == "auto" => Some(Increasing::Auto),
            Setting::Boolean(increasing) => Some((*increasing).into()),
            _ => None,
        }
    }

    fn setting(&self) -> Setting {
        match self {
            Increasing::Auto => "auto".into(),
            way => (*way == Increasing::Rises).into(),
        }
    }
}

estimator! {
    /// scikit-learn's `IsotonicRegression`: the line of one feature that never falls, or never rises, and is
    /// nearest to the targets.
    ///
    /// The samples are sorted in the store. They are then read in blocks, and neighbours that would fall are
    /// joined, so that the process that fits holds the places where the line bends, and no samples.
    ///
    /// ```
    /// use tharsis_learn::isotonic::IsotonicRegression;
    /// use tharsis_numeric::array;
    /// let (x, y) = (array([1.0, 2.0, 3.0, 4.0]), array([1.0, 3.0, 2.0, 5.0]));
    /// let model = IsotonicRegression::new().fit(&x, &y, ..)?;
    /// assert_eq!(model.predict(&x).to_vec::<f64>()?, [1.0, 2.5, 2.5, 5.0]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    IsotonicRegression {
        /// scikit-learn's `y_min`: the least prediction.
        y_min "y_min": Option<f64>, impl Into<Option<f64>> = None;
        /// scikit-learn's `y_max`: the largest prediction.
        y_max "y_max": Option<f64>, impl Into<Option<f64>> = None;
        /// scikit-learn's `increasing`: whether the line rises.
        increasing "increasing": Increasing, impl Into<Increasing> = Increasing::Rises;
        /// scikit-learn's `out_of_bounds`: predictions outside the places of the fit.
        out_of_bounds "out_of_bounds": OutOfBounds, OutOfBounds = OutOfBounds::Nan;
    }
}

/// A fitted [`IsotonicRegression`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedIsotonicRegression {
    /// scikit-learn's `X_min_`: the first place.
    pub x_min: f64,
    /// scikit-learn's `X_max_`: the last place.
    pub x_max: f64,
    /// scikit-learn's `X_thresholds_`: places where the line bends, ascending.
    pub x_thresholds: Array1<f64>,
    /// scikit-learn's `y_thresholds_`: the line at these places.
    pub y_thresholds: Array1<f64>,
    /// scikit-learn's `increasing_`.
    pub increasing: bool,
    out_of_bounds: OutOfBounds,
}

/// Samples beside each other of which the line is level.
#[derive(Clone, Copy, Debug)]
struct Level {
    first: f64,
    last: f64,
    weight: f64,
    sum: f64,
}

impl Level {
    fn mean(&self) -> f64 {
        self.sum / self.weight
    }
}

/// The levels of samples whose places ascend: pool adjacent violators.
#[derive(Default)]
struct Levels {
    levels: Vec<Level>,
    /// Samples of the place that was read last.
    open: Option<Level>,
}

impl Levels {
    fn add(&mut self, place: f64, target: f64, weight: f64) {
        if weight <= 0.0 {
            return;
        }
        match &mut self.open {
            Some(open) if place - open.first < APART => {
                open.weight += weight;
                open.sum += target * weight;
            }
            _ => {
                self.close();
                self.open = Some(Level { first: place, last: place, weight, sum: target * weight });
            }
        }
    }

    /// Takes the samples of the last place as a level, and joins it with those before that are not below it.
    fn close(&mut self) {
        let Some(mut level) = self.open.take() else { return };
        while let Some(before) = self.levels.pop_if(|before| level.mean() <= before.mean()) {
            level.first = before.first;
            level.weight += before.weight;
            level.sum += before.sum;
        }
        self.levels.push(level);
    }
}

impl IsotonicRegression {
    /// Fits the line to one feature, (n,) or (n, 1), and targets (n,).
    ///
    /// # Errors
    /// `ValueError` for several features, shapes that do not fit, no samples, NaN and infinity, and weights
    /// that are negative or all zero; `MemoryError` if the bends take more than the memory; errors of the
    /// passes.
    #[track_caller]
    pub fn fit(
        &self,
        x: &Tensor,
        y: &Tensor,
        options: impl Into<FitOptions>,
    ) -> Result<FittedIsotonicRegression> {
        self.fit_any(x, Some(y), &options.into())
    }

    /// The levels of the sorted samples, block by block.
    #[track_caller]
    fn levels(training: &Training, y: &Tensor, sign: f64) -> Result<Vec<Level>> {
        let engine = &training.engine;
        let place = training.x.squeeze(Some(&[1]));
        let order = engine.kept(&place.argsort(0))?;
        let mut columns = vec![place, y * sign];
        columns.extend(training.weight.clone());
        let sorted: Vec<Tensor> =
            columns.iter().map(|column| column.take_at(&order, 0).expand_dims(1)).collect();
        let sorted = engine.stored(&concatenate(&sorted.iter().collect::<Vec<_>>(), 1))?;
        let mut levels = Levels::default();
        for start in (0..training.rows).step_by(BLOCK_ROWS) {
            let end = training.rows.min(start + BLOCK_ROWS);
            let block = sorted.get(&[Index::from(start as i64..end as i64)]);
            for row in matrix(engine.run(&[&block])?.pop().ok_or_else(lost)?)?.rows() {
                levels.add(row[0], row[1], row.get(2).copied().unwrap_or(1.0));
            }
            training.check_held(levels.levels.len(), 4)?;
        }
        levels.close();
        Ok(levels.levels)
    }
}

/// Whether targets rise with places, by Spearman's correlation; not if one of them is constant.
#[track_caller]
fn rises(training: &Training, y: &Tensor) -> Result<bool> {
    let rows = training.rows as f64;
    let ranks = |of: &Tensor| {
        let sorted = of.sort(0);
        let below = sorted.searchsorted(of).astype(DType::F64);
        let opposite = -of;
        let above = opposite.sort(0).searchsorted(&opposite).astype(DType::F64);
        // Of equal numbers all have their mean rank; around zero.
        (below - above) * 0.5
    };
    let product = ranks(&training.x.squeeze(Some(&[1]))) * ranks(y);
    let sum = training.engine.run(&[&(product / rows).sum(..)])?.pop().ok_or_else(lost)?.sum();
    if sum != 0.0 {
        return Ok(0.0 < sum);
    }
    let ends = [training.x.min(..), training.x.max(..), y.min(..), y.max(..)];
    let ends = training.engine.run(&ends.iter().collect::<Vec<_>>())?;
    let ends: Vec<f64> = ends.iter().map(|end| end.sum()).collect();
    Ok(ends[0] < ends[1] && ends[2] < ends[3])
}

/// The feature as one column: scikit-learn takes one axis as well.
#[track_caller]
fn as_column(x: &Tensor) -> Result<Tensor> {
    match *x.shape()? {
        [_] => Ok(x.expand_dims(1)),
        [_, 1] | [_, tharsis_numeric::select::UNKNOWN] => Ok(x.clone()),
        // Without samples or features there is another text.
        [0, _] | [_, 0] => Ok(x.clone()),
        _ => Err(refused("Isotonic regression input X should be a 1d array or 2d array with 1 feature")),
    }
}

impl Estimator for IsotonicRegression {
    type Fitted = FittedIsotonicRegression;

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        y: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedIsotonicRegression> {
        let training = Training::supervised(NAME, &as_column(x)?, y, options)?;
        if let shape @ [_, _] = training.target()?.shape()? {
            return Err(refused(format!("y should be a 1d array, got an array of shape {shape:?} instead.")));
        }
        training.check_finite(Nan::Refused)?;
        training.check_finite_target()?;
        training.weight_sum()?;
        let y = training.one_target()?.squeeze(Some(&[1]));
        let increasing = match self.increasing {
            Increasing::Auto => rises(&training, &y)?,
            way => way == Increasing::Rises,
        };
        let sign = if increasing { 1.0 } else { -1.0 };
        let levels = IsotonicRegression::levels(&training, &y, sign)?;
        let (Some(first), Some(last)) = (levels.first(), levels.last()) else { return Err(lost()) };
        let (x_min, x_max) = (first.first, last.last);
        let (least, most) = (self.y_min.unwrap_or(f64::NEG_INFINITY), self.y_max.unwrap_or(f64::INFINITY));
        let mut points: Vec<(f64, f64)> = Vec::with_capacity(2 * levels.len());
        for level in &levels {
            let height = (level.mean() * sign).max(least).min(most);
            if !height.is_finite() {
                return Err(training.beyond_float64());
            }
            points.push((level.first, height));
            if level.first < level.last {
                points.push((level.last, height));
            }
        }
        let bends = |at: usize| {
            let height = |at: usize| points.get(at).map(|point| point.1);
            at == 0 || at + 1 == points.len() || height(at) != height(at - 1) || height(at) != height(at + 1)
        };
        let kept: Vec<(f64, f64)> = (0..points.len()).filter(|&at| bends(at)).map(|at| points[at]).collect();
        Ok(FittedIsotonicRegression {
            x_min,
            x_max,
            x_thresholds: kept.iter().map(|point| point.0).collect(),
            y_thresholds: kept.iter().map(|point| point.1).collect(),
            increasing,
            out_of_bounds: self.out_of_bounds,
        })
    }
}

impl FittedIsotonicRegression {
    /// The line at places, (n,) or (n, 1), as an expression; (n,).
    ///
    /// # Errors
    /// `ValueError` for several features; when run for NaN, and for places outside if those are refused.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        self.told(x).unwrap_or_else(Tensor::from)
    }

    #[track_caller]
    fn told(&self, x: &Tensor) -> Result<Tensor> {
        let shape = x.shape()?.to_vec();
        let place = match shape[..] {
            [_, columns] if 1 < columns && columns != tharsis_numeric::select::UNKNOWN => {
                return Err(refused(format!(
                    "X has {columns} features, but {NAME} is expecting 1 features as input."
                )));
            }
            _ => finite(&as_column(x)?, Nan::Refused).astype(DType::F64).squeeze(Some(&[1])),
        };
        let [points, heights] = [&self.x_thresholds, &self.y_thresholds]
            .map(|numbers| Tensor::from_elements(&[numbers.len()], &numbers.to_vec()));
        let outside = match self.out_of_bounds {
            OutOfBounds::Nan if 1 < self.x_thresholds.len() => Some(f64::NAN),
            _ => None,
        };
        let line = place.interp(&points, &heights, Beyond { left: outside, right: outside, period: None });
        if self.out_of_bounds != OutOfBounds::Raise || self.x_thresholds.len() == 1 {
            return Ok(line);
        }
        let is_within = place.greater_equal(self.x_min).logical_and(place.less_equal(self.x_max));
        let message = "A value in x_new is outside the interpolation range.".to_owned();
        Ok(Tensor::apply(Require { message }, &[&line, &is_within]))
    }

    /// scikit-learn's `transform`: as [`predict`](FittedIsotonicRegression::predict), as one column; (n, 1).
    ///
    /// # Errors
    /// As there.
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        self.predict(x).expand_dims(1)
    }

    /// R² of the line at places with these targets.
    ///
    /// # Errors
    /// `ValueError` for shapes that do not fit; errors of the pass.
    #[track_caller]
    pub fn score(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<f64> {
        self.score_any(&as_column(x)?, y, &options.into())
    }
}

predicts!(FittedIsotonicRegression, Regression, NAME);

saved!(FittedIsotonicRegression, NAME, |model| {
    let ascend = model.x_thresholds.windows(2).into_iter().all(|pair| pair[0] < pair[1]);
    !model.x_thresholds.is_empty() && model.x_thresholds.len() == model.y_thresholds.len() && ascend
});

impl Transform for FittedIsotonicRegression {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        FittedIsotonicRegression::transform(self, x)
    }

    fn step_body(&self) -> Option<Result<(&'static str, Vec<u8>)>> {
        Some(self.kind_and_body())
    }

    fn feature_names_out(&self, _: &[String]) -> Option<Vec<String>> {
        Some(crate::feature_names::numbered(NAME, 1))
    }
}

impl fmt::Display for FittedIsotonicRegression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = if self.increasing { "rises" } else { "falls" };
        write!(f, "{NAME} that {way}, {} places", self.x_thresholds.len())?;
        show::line(f, "X_thresholds", &self.x_thresholds)?;
        show::line(f, "y_thresholds", &self.y_thresholds)
    }
}
