//! Scores of an estimator on folds that its fits have not seen.

use super::folds::{GroupKFold, KFold, LeaveOneOut, TimeSeriesSplit};
use super::rows::{Rows, Split};
use super::scoring::{Scoring, whole_labels};
use super::shuffle::ShuffleSplit;
use super::strata::StratifiedKFold;
use crate::base::{Estimator, FitOptions, Predict, PredictProba, Task};
use crate::metrics::inputs::{settled, value_error};
use crate::metrics::options::defaults;
use crate::{Error, Result};
use std::time::Instant;
use tharsis_numeric::run::with_default;
use tharsis_numeric::{Index, Tensor, arange, concatenate};

/// The splits of a validation.
#[derive(Clone, Debug)]
pub enum Folds {
    /// So many folds: stratified by class for classifiers of one target, else consecutive ones.
    Count(usize),
    /// Consecutive or shuffled folds.
    KFold(KFold),
    /// Folds with the shares of the classes.
    Stratified(StratifiedKFold),
    /// Folds that part no group.
    Group(GroupKFold),
    /// Each row once.
    LeaveOneOut,
    /// Test sets that follow their training sets.
    TimeSeries(TimeSeriesSplit),
    /// Random test sets.
    Shuffle(ShuffleSplit),
    /// These splits.
    Splits(Vec<Split>),
}

impl Default for Folds {
    fn default() -> Folds {
        Folds::Count(5)
    }
}

macro_rules! from {
    ($($type:ty => $variant:ident),* $(,)?) => {$(
        impl From<$type> for Folds {
            fn from(folds: $type) -> Folds {
                Folds::$variant(folds)
            }
        }
    )*};
}
from!(
    usize => Count, KFold => KFold, StratifiedKFold => Stratified, GroupKFold => Group,
    TimeSeriesSplit => TimeSeries, ShuffleSplit => Shuffle, Vec<Split> => Splits,
);

impl From<LeaveOneOut> for Folds {
    fn from(_: LeaveOneOut) -> Folds {
        Folds::LeaveOneOut
    }
}

/// The score of a fit that fails.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ErrorScore {
    /// The validation fails with it.
    Raise,
    /// This number; the error is told beside the scores.
    Number(f64),
}

/// Classes of errors that data and parameters cause. Others, such as the end of the time, end a validation.
const MISTAKES: &[&str] = &[
    "FloatingPointError",
    "LinAlgError",
    "NotImplemented",
    "OverflowError",
    "TypeError",
    "ValueError",
    "ZeroDivisionError",
];

/// Options of validations and searches.
#[derive(Clone, Debug)]
pub struct Validation {
    /// scikit-learn's `cv`: the splits.
    pub cv: Folds,
    /// The score; by default the model's own. A search chooses by it.
    pub scoring: Scoring,
    /// Further scores of the same models: scikit-learn's `scoring` with several names.
    pub further_scoring: Vec<Scoring>,
    /// The group of each sample, for folds that part no group; (n,).
    pub groups: Option<Tensor>,
    /// The score of a fit that fails.
    pub error_score: ErrorScore,
    /// Whether the training sets are scored as well.
    pub return_train_score: bool,
    /// Options of all fits. As in scikit-learn, weights are those of fits alone; searches score by them, too.
    pub fit: FitOptions,
}

impl Default for Validation {
    fn default() -> Validation {
        Validation {
            cv: Folds::default(),
            scoring: Scoring::default(),
            further_scoring: Vec::new(),
            groups: None,
            error_score: ErrorScore::Number(f64::NAN),
            return_train_score: false,
            fit: FitOptions::new(),
        }
    }
}

defaults!(Validation);

impl From<FitOptions> for Validation {
    fn from(fit: FitOptions) -> Validation {
        Validation { fit, ..Validation::default() }
    }
}

/// The results of [`cross_validate`], one for each split.
#[derive(Debug)]
#[non_exhaustive]
pub struct Validated<M> {
    /// The scores of the test sets.
    pub test_score: Vec<f64>,
    /// The scores of the training sets, if the options ask for them.
    pub train_score: Vec<f64>,
    /// The further scores of the options, in their order.
    pub further: Vec<FurtherScore>,
    /// Seconds of the fits.
    pub fit_time: Vec<f64>,
    /// Seconds of the scores.
    pub score_time: Vec<f64>,
    /// scikit-learn's `estimator`: the models; none of a fit that failed.
    pub models: Vec<Option<M>>,
    /// Errors of the fits and scores that failed.
    pub failures: Vec<Error>,
}

/// A further score of [`cross_validate`], for each split.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FurtherScore {
    /// The name of the score.
    pub name: &'static str,
    /// scikit-learn's `test_` and the name: the scores of the test sets.
    pub test_score: Vec<f64>,
    /// scikit-learn's `train_` and the name: those of the training sets, if the options ask for them.
    pub train_score: Vec<f64>,
}

/// scikit-learn's `cross_val_score`: the score of the test set of each split.
///
/// ```
/// use tharsis_learn::datasets::load_iris;
/// use tharsis_learn::linear_model::LogisticRegression;
/// use tharsis_learn::model_selection::cross_val_score;
/// let iris = load_iris()?;
/// let scores = cross_val_score(&LogisticRegression::new().max_iter(300), &iris.data, &iris.target, ..)?;
/// assert_eq!(scores.len(), 5);
/// assert!(scores.iter().all(|&score| 0.9 < score));
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`cross_validate`].
#[track_caller]
pub fn cross_val_score<E>(
    estimator: &E,
    x: &Tensor,
    y: &Tensor,
    options: impl Into<Validation>,
) -> Result<Vec<f64>>
where
    E: Estimator<Fitted: Predict>,
{
    Ok(cross_validate(estimator, x, y, options)?.test_score)
}

/// scikit-learn's `cross_validate`: fits on the training set of each split, and scores on its test set.
///
/// ```
/// use tharsis_learn::linear_model::LinearRegression;
/// use tharsis_learn::model_selection::{Validation, cross_validate};
/// use tharsis_numeric::arange;
/// let x = arange(20).reshape(&[20, 1]);
/// let options = Validation { cv: 4.into(), return_train_score: true, ..Validation::default() };
/// let found = cross_validate(&LinearRegression::new(), &x, &x.squeeze(None), options)?;
/// assert!(found.test_score.iter().chain(&found.train_score).all(|score| (score - 1.0).abs() < 1e-9));
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// `ValueError` for no splits, for splits that do not fit the data, for strata of targets that are not whole,
/// and if all fits fail; the first error of a fit or a score if options say [`ErrorScore::Raise`].
#[track_caller]
pub fn cross_validate<E>(
    estimator: &E,
    x: &Tensor,
    y: &Tensor,
    options: impl Into<Validation>,
) -> Result<Validated<E::Fitted>>
where
    E: Estimator<Fitted: Predict>,
{
    let options = options.into();
    let problem = Problem::new(x, y, options, E::Fitted::TASK)?;
    let found = problem.validated(usize::MAX, |fit| estimator.fit_any(&fit.x, Some(&fit.y), &fit.options))?;
    check_some_fit(&found.failures, found.fitted(), problem.splits.len())?;
    Ok(found)
}

/// scikit-learn's `cross_val_predict`: for each sample the prediction of the fit that has not seen it; (n,)
/// or (n, k), an expression.
///
/// ```
/// use tharsis_learn::linear_model::LinearRegression;
/// use tharsis_learn::model_selection::cross_val_predict;
/// use tharsis_numeric::arange;
/// let x = arange(10).reshape(&[10, 1]);
/// let found = cross_val_predict(&LinearRegression::new(), &x, &x.squeeze(None), ..)?.to_vec::<f64>()?;
/// assert!((found[7] - 7.0).abs() < 1e-9);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// `ValueError` for splits whose test sets do not hold each sample once; errors of the fits.
#[track_caller]
pub fn cross_val_predict<E>(
    estimator: &E,
    x: &Tensor,
    y: &Tensor,
    options: impl Into<Validation>,
) -> Result<Tensor>
where
    E: Estimator<Fitted: Predict>,
{
    let problem = Problem::new(x, y, options.into(), E::Fitted::TASK)?;
    problem.told(|fit, test| Ok(estimator.fit_any(&fit.x, Some(&fit.y), &fit.options)?.predict(test)))
}

/// As [`cross_val_predict`], of probabilities; (n, k). A fit that has not seen all classes tells others.
///
/// ```
/// use tharsis_learn::model_selection::cross_val_predict_proba;
/// use tharsis_learn::naive_bayes::GaussianNB;
/// use tharsis_numeric::arange;
/// let x = arange(40).reshape(&[40, 1]);
/// let y = x.squeeze(None).less(20);
/// assert_eq!(cross_val_predict_proba(&GaussianNB::new(), &x, &y, ..)?.shape()?, [40, 2]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`cross_val_predict`]; `ValueError` if a training set lacks a class.
#[track_caller]
pub fn cross_val_predict_proba<E>(
    estimator: &E,
    x: &Tensor,
    y: &Tensor,
    options: impl Into<Validation>,
) -> Result<Tensor>
where
    E: Estimator<Fitted: Predict + PredictProba>,
{
    cross_val_tell(estimator, x, y, options.into(), |model, test| {
        Ok((model.classes().to_vec(), model.predict_proba(test)))
    })
}

/// As [`cross_val_predict`], of what `tell` says of the models of the fits: the classes that a model knows,
/// and columns, (n, k).
///
/// # Errors
/// As [`cross_val_predict_proba`]; those of `tell`.
#[track_caller]
pub(crate) fn cross_val_tell<E>(
    estimator: &E,
    x: &Tensor,
    y: &Tensor,
    options: Validation,
    tell: impl Fn(&E::Fitted, &Tensor) -> Result<(Vec<i64>, Tensor)>,
) -> Result<Tensor>
where
    E: Estimator<Fitted: Predict>,
{
    let problem = Problem::new(x, y, options, E::Fitted::TASK)?;
    let mut first: Option<Vec<i64>> = None;
    problem.told(|fit, test| {
        let model = estimator.fit_any(&fit.x, Some(&fit.y), &fit.options)?;
        let (found, told) = tell(&model, test)?;
        check_classes(&found, first.get_or_insert_with(|| found.clone()))?;
        Ok(told)
    })
}

/// The results of a function of the training set and the test set of each split.
///
/// # Errors
/// As [`cross_validate`]; those of the function.
#[track_caller]
pub(crate) fn each_split<T>(
    x: &Tensor,
    y: &Tensor,
    options: Validation,
    task: Task,
    mut run: impl FnMut(&Fit, &Fit) -> Result<T>,
) -> Result<Vec<T>> {
    let problem = Problem::new(x, y, options, task)?;
    let splits = problem.splits.iter();
    splits.map(|split| run(&problem.part(&split.train), &problem.part(&split.test))).collect()
}

/// Checks that the classes of a fit are those of the first one.
#[track_caller]
fn check_classes(found: &[i64], first: &[i64]) -> Result<()> {
    if found == first {
        return Ok(());
    }
    Err(value_error(format!(
        "Number of classes in training fold ({}) does not match total number of classes ({}). Results may not be \
         appropriate for your use case. Use a cross-validation technique resulting in properly stratified folds",
        found.len(),
        first.len()
    )))
}

impl<M> Validated<M> {
    /// The number of fits that have succeeded.
    pub(super) fn fitted(&self) -> usize {
        self.models.iter().flatten().count()
    }
}

/// Data of a validation, with known sizes, and their splits.
pub(super) struct Problem {
    x: Tensor,
    y: Tensor,
    pub(super) options: Validation,
    pub(super) splits: Vec<Split>,
    /// Whether scores count samples by the weights of fits.
    pub(super) weighs_scores: bool,
}

/// The training set or the test set of a split.
pub(crate) struct Fit {
    pub(crate) x: Tensor,
    pub(crate) y: Tensor,
    pub(crate) options: FitOptions,
}

impl Fit {
    /// The number of samples.
    pub(super) fn rows(&self) -> Result<usize> {
        let x = with_default(self.options.chosen_executor(), || settled(&[&self.x]))?.remove(0);
        Ok(x.shape()?.first().copied().unwrap_or(0))
    }

    /// The first samples, at most so many.
    #[track_caller]
    pub(super) fn first(self, most: usize) -> Result<Fit> {
        if most == usize::MAX {
            return Ok(self);
        }
        let end = most.min(self.rows()?) as i64;
        let part = |tensor: &Tensor| tensor.get(&[Index::from(0..end)]);
        let options = match self.options.weights() {
            Some(weights) => self.options.clone().sample_weight(&part(weights)),
            None => self.options.clone(),
        };
        Ok(Fit { x: part(&self.x), y: part(&self.y), options })
    }
}

impl Problem {
    /// # Errors
    /// `ValueError` for lengths that differ, and for splits that do not fit the data.
    #[track_caller]
    pub(super) fn new(x: &Tensor, y: &Tensor, options: Validation, task: Task) -> Result<Problem> {
        let executor = options.fit.chosen_executor();
        with_default(executor, || {
            let mut known = settled(&[x, y])?;
            let (Some(y), Some(x)) = (known.pop(), known.pop()) else {
                return Err(value_error("an input has been lost"));
            };
            if let (Some(rows), Some(targets)) = (x.shape()?.first(), y.shape()?.first())
                && rows != targets
            {
                return Err(value_error(format!(
                    "Found input variables with inconsistent numbers of samples: [{rows}, {targets}]"
                )));
            }
            let splits = splits(&x, &y, &options, task)?;
            if splits.is_empty() {
                return Err(value_error(
                    "No fits were performed. Was the CV iterator empty? Were there no candidates?",
                ));
            }
            let rows = x.shape()?.first().copied().unwrap_or(0);
            for part in splits.iter().flat_map(|split| [&split.train, &split.test]) {
                part.check_count(rows)?;
            }
            Ok(Problem { x, y, options, splits, weighs_scores: false })
        })
    }

    /// The samples of some rows, with their targets and weights.
    pub(super) fn part(&self, rows: &Rows) -> Fit {
        let options = &self.options.fit;
        let options = match options.weights() {
            Some(weights) => options.clone().sample_weight(&rows.of(weights)),
            None => options.clone(),
        };
        Fit { x: rows.of(&self.x), y: rows.of(&self.y), options }
    }

    /// The number of samples.
    pub(super) fn rows(&self) -> Result<usize> {
        Ok(self.x.shape()?.first().copied().unwrap_or(0))
    }

    /// The number of classes of the targets.
    #[track_caller]
    pub(super) fn classes(&self) -> Result<usize> {
        self.within(|| Ok(settled(&[&self.y.unique()])?.remove(0).shape()?.first().copied().unwrap_or(0)))
    }

    /// Runs a function whose own passes are those of the executor of the options.
    pub(super) fn within<T>(&self, run: impl FnOnce() -> T) -> T {
        with_default(self.options.fit.chosen_executor(), run)
    }

    /// All samples.
    pub(super) fn whole(&self) -> Fit {
        Fit { x: self.x.clone(), y: self.y.clone(), options: self.options.fit.clone() }
    }

    /// The results of fits on the training sets of all splits, of each at most so many samples.
    ///
    /// # Errors
    /// The first error of a fit or a score if the options say so.
    #[track_caller]
    pub(super) fn validated<M: Predict>(
        &self,
        most: usize,
        fit: impl Fn(&Fit) -> Result<M>,
    ) -> Result<Validated<M>> {
        let further = self.options.further_scoring.iter().map(|scoring| FurtherScore {
            name: scoring.name(),
            test_score: Vec::new(),
            train_score: Vec::new(),
        });
        let mut found = Validated {
            test_score: Vec::new(),
            train_score: Vec::new(),
            further: further.collect(),
            fit_time: Vec::new(),
            score_time: Vec::new(),
            models: Vec::new(),
            failures: Vec::new(),
        };
        for split in &self.splits {
            let training = self.part(&split.train).first(most)?;
            let started = Instant::now();
            let model = match fit(&training) {
                Ok(model) => Some(model),
                Err(error) => {
                    self.failed(error, &mut found.failures)?;
                    None
                }
            };
            found.fit_time.push(started.elapsed().as_secs_f64());
            let started = Instant::now();
            let mut test = self.scores(model.as_ref(), &self.part(&split.test), &mut found.failures)?;
            found.test_score.push(test.remove(0));
            found.further.iter_mut().zip(test).for_each(|(further, score)| further.test_score.push(score));
            if self.options.return_train_score {
                let mut train = self.scores(model.as_ref(), &training, &mut found.failures)?;
                found.train_score.push(train.remove(0));
                let further = found.further.iter_mut().zip(train);
                further.for_each(|(further, score)| further.train_score.push(score));
            }
            found.score_time.push(started.elapsed().as_secs_f64());
            found.models.push(model);
        }
        Ok(found)
    }

    /// All scores of a model on a part of the samples, the first one by which is chosen.
    #[track_caller]
    fn scores<M: Predict>(
        &self,
        model: Option<&M>,
        part: &Fit,
        failures: &mut Vec<Error>,
    ) -> Result<Vec<f64>> {
        let all = std::iter::once(&self.options.scoring).chain(&self.options.further_scoring);
        let one = |scoring: &Scoring| {
            let made = model.map(|model| self.scored(*scoring, model, part));
            match (made, self.options.error_score) {
                (Some(Ok(score)), _) => Ok(score),
                (Some(Err(error)), _) => self.failed(error, failures),
                (None, ErrorScore::Number(number)) => Ok(number),
                (None, ErrorScore::Raise) => Ok(f64::NAN),
            }
        };
        all.map(one).collect()
    }

    /// A score of a model on a part of the samples.
    #[track_caller]
    fn scored<M: Predict>(&self, scoring: Scoring, model: &M, part: &Fit) -> Result<f64> {
        let Fit { x, y, options } = part;
        let options = if self.weighs_scores { options.clone() } else { options.unweighted() };
        scoring.of(model, x, y, &options)
    }

    /// The score of what has failed, whose error is kept.
    fn failed(&self, error: Error, failures: &mut Vec<Error>) -> Result<f64> {
        match self.options.error_score {
            ErrorScore::Number(number) if MISTAKES.contains(&error.class()) => {
                failures.push(error);
                Ok(number)
            }
            _ => Err(error),
        }
    }

    /// Results of fits for their test sets, in the order of the samples.
    #[track_caller]
    fn told(&self, mut tell: impl FnMut(&Fit, &Tensor) -> Result<Tensor>) -> Result<Tensor> {
        let rows = self.rows()?;
        let tests: Vec<Tensor> = self.splits.iter().map(|split| split.test.indices()).collect();
        let positions = concatenate(&tests.iter().collect::<Vec<_>>(), 0);
        let order = positions.argsort(0);
        let is_partition = with_default(self.options.fit.chosen_executor(), || {
            let positions = settled(&[&positions])?.remove(0);
            if *positions.shape()? != [rows] {
                return Ok(false);
            }
            positions.sort(0).equal(arange(rows)).all(..).item().map(|all| all.is_true())
        })?;
        if !is_partition {
            return Err(value_error("cross_val_predict only works for partitions"));
        }
        let made = self.splits.iter().map(|split| tell(&self.part(&split.train), &split.test.of(&self.x)));
        let made = made.collect::<Result<Vec<Tensor>>>()?;
        Ok(concatenate(&made.iter().collect::<Vec<_>>(), 0).take_at(&order, 0))
    }
}

/// The splits of the options.
#[track_caller]
fn splits(x: &Tensor, y: &Tensor, options: &Validation, task: Task) -> Result<Vec<Split>> {
    let labels = || -> Result<Tensor> {
        let y = whole_labels(y)?;
        Ok(if y.ndim()? == 2 { y.squeeze(Some(&[1])) } else { y })
    };
    Ok(match &options.cv {
        // Labels of several columns have no strata.
        Folds::Count(n_splits)
            if task == Task::Classification && !matches!(y.shape()?, [_, columns] if *columns != 1) =>
        {
            StratifiedKFold { n_splits: *n_splits, ..StratifiedKFold::default() }.split(&labels()?)?.collect()
        }
        Folds::Count(n_splits) => KFold { n_splits: *n_splits, ..KFold::default() }.split(x)?.collect(),
        Folds::KFold(folds) => folds.split(x)?.collect(),
        Folds::Stratified(folds) => folds.split(&labels()?)?.collect(),
        Folds::Group(folds) => match &options.groups {
            Some(groups) => folds.split(groups)?.collect(),
            None => return Err(value_error("The 'groups' parameter should not be None.")),
        },
        Folds::LeaveOneOut => LeaveOneOut.split(x)?.collect(),
        Folds::TimeSeries(folds) => folds.split(x)?.collect(),
        Folds::Shuffle(folds) => folds.split(x)?.collect(),
        Folds::Splits(splits) => splits.clone(),
    })
}

/// Checks that some of the fits have succeeded.
///
/// # Errors
/// `ValueError` with the first failure if none has.
#[track_caller]
pub(super) fn check_some_fit(failures: &[Error], fitted: usize, fits: usize) -> Result<()> {
    match failures.first() {
        Some(first) if fitted == 0 => Err(value_error(format!(
            "All the {fits} fits failed.\nIt is very likely that your model is misconfigured.\nYou can try to debug \
             the error by setting error_score='raise'.\n\nBelow are more details about the failures:\n{}: {first}",
            first.class()
        ))),
        _ => Ok(()),
    }
}
