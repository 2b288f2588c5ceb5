//! scikit-learn's `calibration`: probabilities from what classifiers tell.

use crate::base::{Estimator, FitOptions, Predict, classifies};
use crate::checks::{Nan, Training, refused};
use crate::held::{AnyClassifier, Classifies, FittedAny, Response, holds};
use crate::isotonic::{FittedIsotonicRegression, IsotonicRegression, OutOfBounds};
use crate::labels::{Classes, largest, log_sum_exp, spread};
use crate::model_selection::{Fit, Folds, Validation, cross_val_tell, each_split};
use crate::params::{Auto, Params, words};
use crate::saved::{Save, saved};
use crate::states::lost;
use crate::svm::LinearSVC;
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::{Axes, DType, Index, Result, Tensor, concatenate, where_};

const NAME: &str = "CalibratedClassifierCV";
/// Decisions from which on they are scaled.
const DECISIONS_MAX: f64 = 30.0;
/// Most steps of a solver.
const STEPS_MAX: usize = 100;
/// The part of a step that is worth no other try.
const SHORTEST: f64 = 1e-4;
/// The slope of a sample at which a curve is found.
const FLAT: f64 = 1e-12;
/// The part of a factor by which its bounds differ in the end.
const END: f64 = 1e-12;
/// Bounds of the logarithm of a temperature.
const TEMPERATURE_LOG_MAX: f64 = 10.0;
/// The least probability of a logarithm.
const LEAST_CHANCE: f64 = 1e-12;

/// The way from decisions to probabilities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CalibrationMethod {
    /// A logistic curve (Platt).
    #[default]
    Sigmoid,
    /// A line that never falls.
    Isotonic,
    /// One factor for the scores of all classes.
    Temperature,
}

words!(
    CalibrationMethod,
    [
        "sigmoid" => CalibrationMethod::Sigmoid, "isotonic" => CalibrationMethod::Isotonic,
        "temperature" => CalibrationMethod::Temperature
    ]
);

/// scikit-learn's `CalibratedClassifierCV`: probabilities from what a classifier tells of samples that it has
/// not seen.
///
/// Decisions of the test sets are stored; curves are found by passes over them. A model whose training set
/// lacks a class gives it no probability; if it knows two of more classes, its curve is that of the greater
/// one, where scikit-learn gives all of the probability to the lesser one.
///
/// ```
/// use tharsis_learn::calibration::CalibratedClassifierCV;
/// use tharsis_learn::datasets::load_iris;
/// let iris = load_iris()?;
/// let model = CalibratedClassifierCV::new().fit(&iris.data, &iris.target, ..)?;
/// assert!(model.predict_proba(&iris.data).sum(1).isclose(1.0, 0.0, 1e-9).all(..).item()?.is_true());
/// assert!(0.9 < model.score(&iris.data, &iris.target, ..)?);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct CalibratedClassifierCV {
    estimator: AnyClassifier,
    method: CalibrationMethod,
    folds: Option<Folds>,
    ensemble: Auto<bool>,
}

/// A fitted [`CalibratedClassifierCV`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedCalibratedClassifierCV {
    /// scikit-learn's `classes_`, ascending; (k,).
    pub classes: Vec<i64>,
    models: Vec<Calibrated>,
}

/// A classifier and its curves.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Calibrated {
    model: FittedAny<Classifies>,
    curves: Curves,
}

/// The way of a classifier to probabilities.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Curves {
    /// One for the greater one of two classes, or one for each class that the classifier knows.
    Each(Vec<Curve>),
    /// The factor of all scores.
    Temperature(f64),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Curve {
    /// 1 / (1 + exp(a x + b)).
    Sigmoid {
        a: f64,
        b: f64,
    },
    Isotonic(FittedIsotonicRegression),
}

holds!(
    CalibratedClassifierCV,
    NAME,
    "estimator" => estimator,
    ["method" => method, "ensemble" => ensemble]
);

impl Default for CalibratedClassifierCV {
    fn default() -> CalibratedClassifierCV {
        CalibratedClassifierCV {
            estimator: AnyClassifier::new(LinearSVC::new()),
            method: CalibrationMethod::Sigmoid,
            folds: None,
            ensemble: Auto(None),
        }
    }
}

impl CalibratedClassifierCV {
    /// A [`LinearSVC`], five folds, and logistic curves.
    pub fn new() -> CalibratedClassifierCV {
        CalibratedClassifierCV::default()
    }

    /// scikit-learn's `estimator`: the classifier.
    pub fn estimator<E>(self, estimator: E) -> CalibratedClassifierCV
    where
        E: Estimator + Params + Clone + Send + Sync + 'static,
        E::Fitted: Predict + Save + fmt::Debug + Send + Sync + 'static,
    {
        self.any(AnyClassifier::new(estimator))
    }

    /// As [`estimator`](CalibratedClassifierCV::estimator), of a type that is not told.
    pub fn any(self, estimator: AnyClassifier) -> CalibratedClassifierCV {
        CalibratedClassifierCV { estimator, ..self }
    }

    /// scikit-learn's `method`: the way to probabilities.
    pub fn method(self, method: CalibrationMethod) -> CalibratedClassifierCV {
        CalibratedClassifierCV { method, ..self }
    }

    /// scikit-learn's `cv`: the splits.
    pub fn cv(self, folds: impl Into<Folds>) -> CalibratedClassifierCV {
        CalibratedClassifierCV { folds: Some(folds.into()), ..self }
    }

    /// scikit-learn's `ensemble`: whether the mean of the models of all splits is told. Otherwise it is one
    /// model of all samples, with a curve of the decisions of all test sets; by default that is so of a
    /// [`FrozenEstimator`](crate::frozen::FrozenEstimator).
    pub fn ensemble(self, ensemble: bool) -> CalibratedClassifierCV {
        CalibratedClassifierCV { ensemble: Auto(Some(ensemble)), ..self }
    }

    /// Fits the classifiers and their curves on samples (n, d) and labels (n,), whole numbers.
    ///
    /// # Errors
    /// `ValueError` for an estimator that does not classify, classes of fewer samples than folds, and folds
    /// of one sample; errors of the fits.
    #[track_caller]
    pub fn fit(
        &self,
        x: &Tensor,
        y: &Tensor,
        options: impl Into<FitOptions>,
    ) -> Result<FittedCalibratedClassifierCV> {
        self.fit_any(x, Some(y), &options.into())
    }

    /// A model with the weights of the samples, if it takes weights.
    #[track_caller]
    fn model(&self, x: &Tensor, y: &Tensor, options: &FitOptions) -> Result<FittedAny<Classifies>> {
        if self.estimator.takes_weights() {
            return self.estimator.fit_any(x, Some(y), options);
        }
        self.estimator.fit_any(x, Some(y), &options.unweighted())
    }

    /// The curves of what a model tells of samples.
    #[track_caller]
    fn curves(&self, told: &Told<'_>, options: &FitOptions) -> Result<Curves> {
        if self.method == CalibrationMethod::Temperature {
            return told.temperature().map(Curves::Temperature);
        }
        let curve = |column: usize| {
            let (place, is_class) = told.column(column)?;
            if self.method == CalibrationMethod::Isotonic {
                let line = IsotonicRegression::new().out_of_bounds(OutOfBounds::Clip);
                return line.fit(&place, &is_class, options).map(Curve::Isotonic);
            }
            told.sigmoid(&place, &is_class)
        };
        Ok(Curves::Each((0..told.columns()).map(curve).collect::<Result<_>>()?))
    }

    /// A model and its curves of other samples.
    #[track_caller]
    fn calibrated(&self, classes: &[i64], train: &Fit, test: &Fit) -> Result<Calibrated> {
        let model = self.model(&train.x, &train.y, &train.options)?;
        let Response { classes: known, values, is_decision } = model.response(&test.x)?;
        let values = columns(values, known.len())?;
        let training = Training::supervised(NAME, &values, Some(&test.y), &test.options)?;
        let told = Told::new(&training, known, classes, is_decision)?;
        let curves = self.curves(&told, &test.options)?;
        Ok(Calibrated { model, curves })
    }

    /// As [`calibrated`](CalibratedClassifierCV::calibrated), of all samples and what models of splits tell
    /// of their test sets.
    #[track_caller]
    fn crossed(&self, training: &Training, validation: Validation, classes: &[i64]) -> Result<Calibrated> {
        let (x, y) = (&training.x, training.target()?);
        let options = training.weighted_options();
        let model = self.model(x, y, &options)?;
        let is_decision = model.response(x)?.is_decision;
        let values = cross_val_tell(&self.estimator, x, y, validation, |model, x| {
            let Response { classes, values, .. } = model.response(x)?;
            Ok((classes.to_vec(), columns(values, classes.len())?))
        })?;
        let told = Training::supervised(NAME, &values, Some(y), &options)?;
        let told = Told::new(&told, classes, classes, is_decision)?;
        let curves = self.curves(&told, &options)?;
        Ok(Calibrated { model, curves })
    }
}

/// Columns of what a model tells: one for two classes, else one for each.
#[track_caller]
fn columns(values: Tensor, classes: usize) -> Result<Tensor> {
    Ok(match values.ndim()? {
        1 => values.expand_dims(1),
        _ if classes == 2 => values.get(&[Index::from(..), Index::from(1i64..)]),
        _ => values,
    })
}

/// Decisions or probabilities of samples, and their classes.
struct Told<'a> {
    /// Samples whose features are what the model tells.
    training: &'a Training,
    values: Tensor,
    /// The positions of the classes that the model knows.
    positions: Vec<i64>,
    /// The number of all classes.
    classes: usize,
    labels: Tensor,
    is_decision: bool,
}

impl<'a> Told<'a> {
    #[track_caller]
    fn new(training: &'a Training, known: &[i64], classes: &[i64], is_decision: bool) -> Result<Told<'a>> {
        let values = training.engine.kept(&training.x)?;
        let labels = training.engine.kept(&Classes::of_part(training, classes)?.positions())?;
        let positions = positions_among(known, classes)?;
        Ok(Told { training, values, positions, classes: classes.len(), labels, is_decision })
    }

    fn columns(&self) -> usize {
        if self.positions.len() == 2 { 1 } else { self.positions.len() }
    }

    /// A column, and whether each sample is of its class; (n,).
    #[track_caller]
    fn column(&self, column: usize) -> Result<(Tensor, Tensor)> {
        let class = if self.columns() == 1 { self.positions.last() } else { self.positions.get(column) };
        let place = self.values.get(&[Index::from(..), Index::from(column as i64)]);
        Ok((place, self.labels.equal(*class.ok_or_else(lost)?).astype(DType::F64)))
    }

    /// The position of the class of each sample among those that the model knows, and 1 for each sample of
    /// such a class, 0 for others; (n,).
    fn known_labels(&self) -> (Tensor, Option<Tensor>) {
        if self.positions.len() == self.classes {
            return (self.labels.clone(), None);
        }
        let known = |class: usize| self.positions.binary_search(&(class as i64)).ok();
        let places: Vec<i64> = (0..self.classes).map(|class| known(class).unwrap_or(0) as i64).collect();
        let is_known: Vec<f64> =
            (0..self.classes).map(|class| f64::from(u8::from(known(class).is_some()))).collect();
        let places = Tensor::from_elements(&[self.classes], &places).take_at(&self.labels, 0);
        let is_known = Tensor::from_elements(&[self.classes], &is_known).take_at(&self.labels, 0);
        (places, Some(is_known))
    }

    /// Samples times their weights.
    fn weighted(&self, of: Tensor) -> Tensor {
        match &self.training.weight {
            Some(weight) => of * weight,
            None => of,
        }
    }

    /// Sums of expressions (n,), with weights.
    #[track_caller]
    fn sums(&self, of: Vec<Tensor>) -> Result<Vec<f64>> {
        let sums: Vec<Tensor> = of.into_iter().map(|of| self.weighted(of).sum(..)).collect();
        let sums = self.training.engine.run(&sums.iter().collect::<Vec<_>>())?;
        let sums: Vec<f64> = sums.iter().map(|sum| sum.sum()).collect();
        if sums.iter().all(|sum| sum.is_finite()) {
            Ok(sums)
        } else {
            Err(self.training.not_finite(Nan::Refused))
        }
    }

    /// Platt's curve: a step of Newton's method is a pass.
    #[track_caller]
    fn sigmoid(&self, place: &Tensor, is_class: &Tensor) -> Result<Curve> {
        let largest = self.training.engine.run(&[&place.abs().max(..)])?.pop().ok_or_else(lost)?.sum();
        let scale = if DECISIONS_MAX <= largest { largest } else { 1.0 };
        let place = place / scale;
        let counts = self.sums(vec![is_class.clone(), 1.0 - is_class])?;
        let [positive, negative] = <[f64; 2]>::try_from(counts).map_err(|_| lost())?;
        let (high, low) = ((positive + 1.0) / (positive + 2.0), 1.0 / (negative + 2.0));
        let target = is_class * (high - low) + low;
        // The loss and its slopes where the score is -(a x + b).
        let state = |[a, b]: [f64; 2]| -> Result<[f64; 6]> {
            let score = -(&place * a + b);
            let loss = score.maximum(0.0) - &score * &target + (-score.abs()).exp().log1p();
            let chance = 1.0 / ((-&score).exp() + 1.0);
            let (slope, bend) = (&target - &chance, &chance * (1.0 - &chance));
            let sums = vec![loss, &slope * &place, slope, &bend * &place * &place, &bend * &place, bend];
            <[f64; 6]>::try_from(self.sums(sums)?).map_err(|_| lost())
        };
        let mut at = [0.0, ((negative + 1.0) / (positive + 1.0)).ln()];
        let mut now = state(at)?;
        for _ in 0..STEPS_MAX {
            let [loss, by_a, by_b, aa, ab, bb] = now;
            if by_a.abs().max(by_b.abs()) <= FLAT * (positive + negative) {
                break;
            }
            // A curve that is flat in one direction is not moved along it.
            let tiny = f64::EPSILON * (aa + bb) + f64::MIN_POSITIVE;
            let (aa, bb) = (aa + tiny, bb + tiny);
            let determinant = aa * bb - ab * ab;
            let step = [(bb * by_a - ab * by_b) / determinant, (aa * by_b - ab * by_a) / determinant];
            let mut part = 1.0;
            let next = loop {
                let next = [at[0] - part * step[0], at[1] - part * step[1]];
                let found = state(next)?;
                if found[0] <= loss || part < SHORTEST {
                    break (next, found);
                }
                part /= 2.0;
            };
            (at, now) = next;
            if part < SHORTEST {
                break;
            }
        }
        Ok(Curve::Sigmoid { a: at[0] / scale, b: at[1] })
    }

    /// The factor of the scores with the least loss: steps of Newton's method between bounds. Samples of
    /// classes that the model does not know have no score, and do not count.
    #[track_caller]
    fn temperature(&self) -> Result<f64> {
        if self.positions.len() < 2 {
            return Ok(1.0);
        }
        let scores = logits(&self.values, self.is_decision)?;
        let (labels, is_known) = self.known_labels();
        let counted = |of: Tensor| match &is_known {
            Some(is_known) => of * is_known,
            None => of,
        };
        let own = scores.take_along_axis(&labels.expand_dims(1), 1).squeeze(Some(&[1]));
        let (mut least, mut most) = ((-TEMPERATURE_LOG_MAX).exp(), TEMPERATURE_LOG_MAX.exp());
        let mut factor = 1.0;
        for _ in 0..STEPS_MAX {
            let scaled = &scores * factor;
            let chances = (&scaled - log_sum_exp(&scaled)).exp();
            let mean = (&chances * &scores).sum(1);
            let bend = (&chances * scores.square()).sum(1) - mean.square();
            let sums = self.sums(vec![counted(mean - &own), counted(bend)])?;
            let [slope, bend] = <[f64; 2]>::try_from(sums).map_err(|_| lost())?;
            if slope == 0.0 && 0.0 < bend {
                break;
            }
            // Without a sample on the wrong side the largest factor is the best.
            if slope <= 0.0 {
                least = factor;
            } else {
                most = factor;
            }
            let newton = factor - slope / bend;
            let next = if least < newton && newton < most { newton } else { (least * most).sqrt() };
            let moved = (next - factor).abs();
            factor = next;
            if moved <= 1e-12 * factor || most <= least * (1.0 + END) {
                break;
            }
        }
        Ok(factor)
    }
}

/// The positions of classes among others.
#[track_caller]
fn positions_among(known: &[i64], classes: &[i64]) -> Result<Vec<i64>> {
    let position = |class: &i64| classes.binary_search(class).map(|at| at as i64).map_err(|_| lost());
    known.iter().map(position).collect()
}

/// Scores of all classes from what a model tells, one column for two of them.
#[track_caller]
fn logits(values: &Tensor, is_decision: bool) -> Result<Tensor> {
    let is_one = values.shape()?.last() == Some(&1);
    let first = match (is_one, is_decision) {
        (true, true) => -values,
        (true, false) => 1.0 - values,
        (false, true) => return Ok(values.clone()),
        (false, false) => return Ok((values + LEAST_CHANCE).log()),
    };
    let both = concatenate(&[&first, values], 1);
    Ok(if is_decision { both } else { (both + LEAST_CHANCE).log() })
}

/// The number of splits, if it is told without the samples.
fn number(folds: &Folds) -> Option<usize> {
    Some(match folds {
        Folds::Count(count) => *count,
        Folds::KFold(folds) => folds.n_splits,
        Folds::Stratified(folds) => folds.n_splits,
        Folds::Group(folds) => folds.n_splits,
        Folds::TimeSeries(folds) => folds.n_splits,
        Folds::Shuffle(folds) => folds.n_splits,
        Folds::LeaveOneOut | Folds::Splits(_) => return None,
    })
}

impl Estimator for CalibratedClassifierCV {
    type Fitted = FittedCalibratedClassifierCV;

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        y: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedCalibratedClassifierCV> {
        self.estimator.check()?;
        // One column of labels is as one axis, for folds and curves alike.
        let is_column = y.is_some_and(|y| matches!(y.shape(), Ok([_, 1])));
        let line = y.filter(|_| is_column).map(|y| y.squeeze(Some(&[1])));
        let training = Training::supervised(NAME, x, line.as_ref().or(y), options)?;
        let classes = Classes::of(&training)?;
        if matches!(self.folds, Some(Folds::LeaveOneOut)) {
            return Err(refused("LeaveOneOut cross-validation does not allow all classes in test splits."));
        }
        if let Some(folds) = self.folds.as_ref().and_then(number) {
            let counts = training.engine.run(&[&classes.indicators().sum(0)])?.pop().ok_or_else(lost)?;
            if counts.iter().any(|&count| count < folds as f64) {
                return Err(refused(format!(
                    "Requesting {folds}-fold cross-validation but provided less than {folds} examples for at \
                     least one class."
                )));
            }
        }
        let values = classes.values;
        let cv = self.folds.clone().unwrap_or_default();
        let fit = training.weighted_options();
        let validation = Validation { cv, fit, ..Validation::default() };
        let models = if self.ensemble.0.unwrap_or(!self.estimator.is_frozen()) {
            let y = training.target()?;
            each_split(&training.x, y, validation, FittedAny::<Classifies>::TASK, |train, test| {
                self.calibrated(&values, train, test)
            })?
        } else {
            vec![self.crossed(&training, validation, &values)?]
        };
        Ok(FittedCalibratedClassifierCV { classes: values, models })
    }
}

impl Calibrated {
    /// The probabilities of samples; (n, k). A class that the model does not know has none.
    #[track_caller]
    fn chances(&self, x: &Tensor, classes: &[i64]) -> Result<Tensor> {
        let Response { classes: known, values, is_decision } = self.model.response(x)?;
        let values = columns(values, known.len())?;
        let positions = positions_among(known, classes)?;
        let curves = match &self.curves {
            Curves::Temperature(_) if known.len() < 2 => {
                return Ok(spread(&(&values * 0.0 + 1.0), &positions, classes.len()));
            }
            Curves::Temperature(factor) => {
                let scores = logits(&values, is_decision)? * *factor;
                return Ok(spread(&(&scores - log_sum_exp(&scores)).exp(), &positions, classes.len()));
            }
            Curves::Each(curves) => curves,
        };
        let parts = curves.iter().enumerate().map(|(at, curve)| {
            let place = values.get(&[Index::from(..), Index::from(at as i64)]);
            let chance = match curve {
                Curve::Sigmoid { a, b } => 1.0 / ((place * *a + *b).exp() + 1.0),
                Curve::Isotonic(line) => line.predict(&place),
            };
            chance.expand_dims(1)
        });
        let mut parts: Vec<Tensor> = parts.collect();
        if let ([greater], 2) = (&parts[..], known.len()) {
            let lesser = 1.0 - greater;
            parts.insert(0, lesser);
        }
        let chances = concatenate(&parts.iter().collect::<Vec<_>>(), 1);
        if let (2, 2) = (known.len(), classes.len()) {
            return Ok(chances);
        }
        let chances = spread(&chances, &positions, classes.len());
        let sums = chances.sum(Axes::from(1).keepdims());
        let is_none = sums.equal(0.0);
        let divisor = where_(&is_none, 1.0, &sums);
        Ok(where_(&is_none, 1.0 / classes.len() as f64, chances / divisor))
    }

    fn is_sound(&self) -> bool {
        match &self.curves {
            Curves::Each(curves) => !curves.is_empty(),
            Curves::Temperature(factor) => factor.is_finite(),
        }
    }
}

impl FittedCalibratedClassifierCV {
    /// scikit-learn's `calibrated_classifiers_`: the model of each split, or the only one.
    pub fn estimators(&self) -> impl Iterator<Item = &FittedAny<Classifies>> {
        self.models.iter().map(|calibrated| &calibrated.model)
    }

    /// The labels of samples (n, d), as an expression; (n,), int64.
    ///
    /// # Errors
    /// Those that the results of the models carry.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        largest(&self.predict_proba(x), &self.classes)
    }

    /// The probabilities of classes, (n, k), as an expression.
    ///
    /// # Errors
    /// As [`predict`](FittedCalibratedClassifierCV::predict).
    #[track_caller]
    pub fn predict_proba(&self, x: &Tensor) -> Tensor {
        let parts = self.models.iter().map(|model| model.chances(x, &self.classes));
        let parts: Result<Vec<Tensor>> = parts.collect();
        let sum = |parts: Vec<Tensor>| parts.into_iter().reduce(|sum, part| sum + part);
        match parts.map(sum) {
            Ok(Some(sum)) => sum / self.models.len() as f64,
            Ok(None) => Tensor::from(lost()),
            Err(error) => Tensor::from(error),
        }
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

classifies!(FittedCalibratedClassifierCV, NAME);
saved!(FittedCalibratedClassifierCV, NAME, |model| {
    !model.classes.is_empty() && !model.models.is_empty() && model.models.iter().all(Calibrated::is_sound)
});

impl fmt::Display for FittedCalibratedClassifierCV {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{NAME} of classes {:?}", self.classes)?;
        for Calibrated { model, curves } in &self.models {
            write!(f, "\n  {model}")?;
            match curves {
                Curves::Temperature(factor) => write!(f, ", temperature {}", 1.0 / factor)?,
                Curves::Each(curves) => write!(f, ", {} curves", curves.len())?,
            }
        }
        Ok(())
    }
}
