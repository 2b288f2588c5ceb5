//! Logistic regression whose penalty is chosen by scores on folds.

use crate::Setting;
use crate::base::{ByClass, Estimator, FitOptions, Predict, Task};
use crate::bounds::check_count;
use crate::checks::{Training, refused};
use crate::labels::Classes;
use crate::linear_model::{FittedLogisticRegression, LogisticRegression};
use crate::model_selection::{Fit, Folds, Scoring, Validation, each_split};
use crate::params::{Parameter, estimator};
use crate::saved::saved;
use crate::show;
use crate::states::lost;
use ndarray::{Array1, Array2, Array4, Axis};
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::{Result, Tensor};

const NAME: &str = "LogisticRegressionCV";
/// The ends of penalties that are not given, as powers of ten.
const POWERS: f64 = 4.0;

/// The values of `C` among which is chosen.
#[derive(Clone, Debug, PartialEq)]
pub enum Cs {
    /// So many between 1e-4 and 1e4, whose logarithms are evenly spaced.
    Count(usize),
    /// These.
    Values(Vec<f64>),
}

impl From<usize> for Cs {
    fn from(count: usize) -> Cs {
        Cs::Count(count)
    }
}

impl<const N: usize> From<[f64; N]> for Cs {
    fn from(values: [f64; N]) -> Cs {
        Cs::Values(values.to_vec())
    }
}

impl Parameter for Cs {
    fn words(_: usize) -> String {
        "an int in the range [1, inf) or an array-like".to_owned()
    }

    fn of(value: &Setting) -> Option<Cs> {
        Vec::of(value).map(Cs::Values).or_else(|| usize::of(value).map(Cs::Count))
    }

    #[track_caller]
    fn read(value: &Setting) -> Result<Option<Cs>> {
        match value {
            Setting::Array(_) => Ok(Vec::read(value)?.map(Cs::Values)),
            other => Ok(Cs::of(other)),
        }
    }

    fn setting(&self) -> Setting {
        match self {
            Cs::Count(count) => count.setting(),
            Cs::Values(values) => values.setting(),
        }
    }
}

impl Cs {
    /// The values, in their order.
    fn values(&self) -> Vec<f64> {
        match self {
            Cs::Values(values) => values.clone(),
            Cs::Count(1) => vec![10f64.powf(-POWERS)],
            Cs::Count(count) => {
                let step = 2.0 * POWERS / (*count as f64 - 1.0);
                (0..*count).map(|at| 10f64.powf(-POWERS + step * at as f64)).collect()
            }
        }
    }
}

estimator! {
    /// scikit-learn's `LogisticRegressionCV` with an L2 penalty: the weight of the penalty is the one whose
    /// models score best on folds, and with it all samples are fitted.
    ///
    /// ```
    /// use tharsis_learn::datasets::load_iris;
    /// use tharsis_learn::linear_model::LogisticRegressionCV;
    /// let iris = load_iris()?;
    /// let estimator = LogisticRegressionCV::new().cs([0.01, 1.0]).cv(3).max_iter(300);
    /// let model = estimator.fit(&iris.data, &iris.target, ..)?;
    /// assert_eq!((model.c, model.scores.dim()), (1.0, (3, 2)));
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    LogisticRegressionCV {
        /// scikit-learn's `Cs`: the values of `C` among which is chosen.
        cs "Cs" >= 1: Cs, impl Into<Cs> = Cs::Count(10);
        /// scikit-learn's `fit_intercept`: whether scores need not be zero at zero.
        fit_intercept "fit_intercept": bool, bool = true;
        /// scikit-learn's `cv`: the number of folds, stratified by class; five by default.
        cv "cv" >= 2: Option<usize>, impl Into<Option<usize>> = None;
        /// scikit-learn's `scoring`: the name of a score; the share of right labels by default.
        scoring "scoring": Option<String>, impl Into<Option<String>> = None;
        /// scikit-learn's `tol`: the largest part of the slope at the minimum; positive.
        tol "tol": f64, f64 = 1e-4;
        /// scikit-learn's `max_iter`: the most steps of a fit.
        max_iter "max_iter": usize, usize = 100;
        /// scikit-learn's `refit`: whether all samples are fitted with the best value. Otherwise coefficients
        /// are means of the best ones of the folds.
        refit "refit": bool, bool = true;
    }
}

/// A fitted [`LogisticRegressionCV`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedLogisticRegressionCV {
    /// scikit-learn's `Cs_`: the values among which was chosen.
    pub cs: Vec<f64>,
    /// scikit-learn's `C_`: the chosen one, or the mean of those of the folds.
    pub c: f64,
    /// scikit-learn's `scores_`, the same for all classes; (folds, values).
    pub scores: Array2<f64>,
    /// scikit-learn's `coefs_paths_`, intercepts last; (scores, folds, values, d or d + 1).
    pub coefs_paths: Array4<f64>,
    /// scikit-learn's `n_iter_`; (folds, values).
    pub n_iter: Array2<usize>,
    /// The model with the chosen value.
    pub model: FittedLogisticRegression,
    scoring: Option<String>,
}

impl LogisticRegressionCV {
    /// Fits the models on samples (n, d), of any real dtype, and labels (n,), whole numbers.
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, an unknown score, one class, folds that do not fit,
    /// labels that are not whole, and those of [`LogisticRegression`]; errors of the passes.
    #[track_caller]
    pub fn fit(
        &self,
        x: &Tensor,
        y: &Tensor,
        options: impl Into<FitOptions>,
    ) -> Result<FittedLogisticRegressionCV> {
        self.fit_any(x, Some(y), &options.into())
    }

    fn with(&self, c: f64) -> LogisticRegression {
        let estimator = LogisticRegression::new().c(c).tol(self.tol).max_iter(self.max_iter);
        estimator.fit_intercept(self.fit_intercept)
    }

    /// The models of all values of a training set, and their scores on a test set. As in scikit-learn, the
    /// steps of each begin at the model of the value before.
    #[track_caller]
    fn path(
        &self,
        (cs, classes): (&[f64], &[i64]),
        scoring: Scoring,
        (train, test): (&Fit, &Fit),
    ) -> Result<Path> {
        let mut path = Path::with_capacity(cs.len());
        for &c in cs {
            let before = path.last().map(|(model, _)| model);
            let model = self.with(c).fit_part((&train.x, &train.y, &train.options), classes, before)?;
            let score = scoring.of(&model, &test.x, &test.y, &test.options)?;
            path.push((model, score));
        }
        Ok(path)
    }

    /// The coefficients of a model with its intercepts, a row for each score.
    fn row(&self, model: &FittedLogisticRegression) -> Array2<f64> {
        let mut row = model.coef.clone();
        if self.fit_intercept {
            // As long as there are scores.
            let _ = row.push_column(model.intercept.view());
        }
        row
    }
}

/// Models of ascending values, and their scores.
type Path = Vec<(FittedLogisticRegression, f64)>;

/// The means of the coefficients and intercepts of one model of each fold.
///
/// # Errors
/// An error if there are no folds.
#[track_caller]
fn mean_of(folds: &[Path], chosen: &[usize]) -> Result<FittedLogisticRegression> {
    let models = || folds.iter().zip(chosen).filter_map(|(path, &value)| path.get(value));
    let mut mean = models().next().ok_or_else(lost)?.0.clone();
    mean.coef.fill(0.0);
    mean.intercept.fill(0.0);
    for (model, _) in models() {
        mean.coef += &model.coef;
        mean.intercept += &model.intercept;
    }
    mean.coef /= chosen.len() as f64;
    mean.intercept /= chosen.len() as f64;
    mean.converged = models().all(|(model, _)| model.converged);
    Ok(mean)
}

/// The place of the first of the largest numbers.
fn best(scores: impl Iterator<Item = f64>) -> usize {
    let mut found = (0, f64::NEG_INFINITY);
    for (at, score) in scores.enumerate() {
        if found.1 < score {
            found = (at, score);
        }
    }
    found.0
}

impl Estimator for LogisticRegressionCV {
    type Fitted = FittedLogisticRegressionCV;

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        y: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedLogisticRegressionCV> {
        if let Cs::Count(count) = self.cs {
            check_count(NAME, "Cs", count, 1)?;
        }
        if matches!(&self.cs, Cs::Values(values) if values.is_empty()) {
            return Err(refused("Cs must have at least one value"));
        }
        let scoring = match &self.scoring {
            Some(name) => Scoring::named(name)?,
            None => Scoring::default(),
        };
        let training = Training::supervised(NAME, x, y, options)?;
        if let Cs::Count(count) = self.cs {
            training.check_held(count, training.columns.saturating_add(1))?;
        }
        let cs = self.cs.values();
        let classes = Classes::of(&training)?.at_least_two()?.values;
        let (x, y) = (&training.x, training.target()?);
        let cv = self.cv.map_or_else(Folds::default, Folds::Count);
        let validation = Validation { cv, fit: training.weighted_options(), ..Validation::default() };
        let folds = each_split(x, y, validation, Task::Classification, |train, test| {
            self.path((&cs, &classes), scoring, (train, test))
        })?;
        let first = folds.first().and_then(|path| path.first()).ok_or_else(lost)?;
        let (scores, features) = self.row(&first.0).dim();
        let model = |fold: usize, value: usize| &folds[fold][value].0;
        let shape = (folds.len(), cs.len());
        let table = Array2::from_shape_fn(shape, |(fold, value)| folds[fold][value].1);
        let rows: Vec<Vec<Array2<f64>>> =
            folds.iter().map(|path| path.iter().map(|(model, _)| self.row(model)).collect()).collect();
        let coefs_paths =
            Array4::from_shape_fn((scores, shape.0, shape.1, features), |(score, fold, value, feature)| {
                rows[fold][value].get((score, feature)).copied().unwrap_or(f64::NAN)
            });
        let n_iter = Array2::from_shape_fn(shape, |(fold, value)| model(fold, value).n_iter);
        let (c, chosen) = if self.refit {
            let value = best(table.sum_axis(Axis(0)).into_iter());
            let from = mean_of(&folds, &vec![value; folds.len()])?;
            let all = (x, y, &training.weighted_options());
            (cs[value], self.with(cs[value]).fit_part(all, &classes, Some(&from))?)
        } else {
            let chosen: Vec<usize> =
                table.axis_iter(Axis(0)).map(|scores| best(scores.iter().copied())).collect();
            let mean = mean_of(&folds, &chosen)?;
            (chosen.iter().map(|&value| cs[value]).sum::<f64>() / chosen.len() as f64, mean)
        };
        let scoring = self.scoring.clone();
        Ok(FittedLogisticRegressionCV { cs, c, scores: table, coefs_paths, n_iter, model: chosen, scoring })
    }
}

impl FittedLogisticRegressionCV {
    /// The scores of samples (n, d), as an expression; (n,) for two classes, else (n, k).
    ///
    /// # Errors
    /// `ValueError` for another number of features.
    #[track_caller]
    pub fn decision_function(&self, x: &Tensor) -> Tensor {
        self.model.decision_function(x)
    }

    /// The labels of samples (n, d), as an expression; (n,), int64.
    ///
    /// # Errors
    /// As [`decision_function`](FittedLogisticRegressionCV::decision_function); when run for NaN.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        self.model.predict(x)
    }

    /// The probability of each class, in ascending order, as an expression; (n, k).
    ///
    /// # Errors
    /// As [`decision_function`](FittedLogisticRegressionCV::decision_function).
    #[track_caller]
    pub fn predict_proba(&self, x: &Tensor) -> Tensor {
        self.model.predict_proba(x)
    }

    /// The logarithms of the probabilities.
    ///
    /// # Errors
    /// As [`decision_function`](FittedLogisticRegressionCV::decision_function).
    #[track_caller]
    pub fn predict_log_proba(&self, x: &Tensor) -> Tensor {
        self.model.predict_log_proba(x)
    }

    /// The score of the fit on samples (n, d) and their labels.
    ///
    /// # Errors
    /// `ValueError` for shapes that do not fit; errors of the pass.
    #[track_caller]
    pub fn score(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<f64> {
        self.score_any(x, y, &options.into())
    }
}

impl Predict for FittedLogisticRegressionCV {
    const TASK: Task = Task::Classification;

    fn name(&self) -> &'static str {
        NAME
    }

    #[track_caller]
    fn predict(&self, x: &Tensor) -> Tensor {
        self.model.predict(x)
    }

    fn class_labels(&self) -> Option<&[i64]> {
        Some(&self.model.classes)
    }

    #[track_caller]
    fn probabilities(&self, x: &Tensor) -> Option<ByClass<'_>> {
        Some((&self.model.classes, self.predict_proba(x)))
    }

    #[track_caller]
    fn decisions(&self, x: &Tensor) -> Option<ByClass<'_>> {
        Some((&self.model.classes, self.decision_function(x)))
    }

    #[track_caller]
    fn score_any(&self, x: &Tensor, y: &Tensor, options: &FitOptions) -> Result<f64> {
        let scoring = match &self.scoring {
            Some(name) => Scoring::named(name)?,
            None => Scoring::default(),
        };
        scoring.of(&self.model, x, y, options)
    }
}

saved!(FittedLogisticRegressionCV, NAME, |model| {
    let (folds, values) = model.scores.dim();
    let columns = model.model.coef.ncols();
    values == model.cs.len()
        && model.n_iter.dim() == (folds, values)
        && 2 <= model.model.classes.len()
        && 0 < columns
        && model.model.coef.nrows() == model.model.intercept.len()
        && model.model.coef.nrows()
            == if model.model.classes.len() == 2 { 1 } else { model.model.classes.len() }
});

impl fmt::Display for FittedLogisticRegressionCV {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{NAME} with C = {}: {}", self.c, self.model)?;
        let means: Array1<f64> = self.scores.mean_axis(Axis(0)).unwrap_or_default();
        show::line(f, "mean scores", &means)
    }
}
