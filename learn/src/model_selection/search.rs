//! Searches for the parameters whose models score best.

use super::candidates::{Candidate, ParamDistributions, ParamGrid};
use super::scoring::Scoring;
use super::table::{CvResults, Numbers, ScoreTable, array};
use super::validation::{Problem, Validation, check_some_fit};
use crate::base::{ByClass, Estimator, FitOptions, Predict, PredictProba, Task, Transform};
use crate::held::{inner, unknown};
use crate::metrics::inputs::value_error;
use crate::params::{Params, Setting};
use crate::saved::{Save, decoded, encoded};
use crate::{Error, Result};
use std::fmt;
use tharsis_numeric::Tensor;

/// scikit-learn's `GridSearchCV`: fits with all combinations of some values of parameters, each scored on
/// folds, and a last fit with the best ones on all samples.
///
/// ```
/// use tharsis_learn::datasets::load_diabetes;
/// use tharsis_learn::linear_model::Ridge;
/// use tharsis_learn::model_selection::{GridSearchCV, ParamGrid};
/// let data = load_diabetes()?;
/// let grid = ParamGrid::new().values("alpha", [0.01, 0.1, 1.0]);
/// let search = GridSearchCV::new(Ridge::new(), grid).fit(&data.data, &data.target, ..)?;
/// assert_eq!(search.best_params[0].1.to_string(), "0.01");
/// assert_eq!(search.cv_results.rank_test_score[search.best_index], 1);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct GridSearchCV<E> {
    search: Search<E>,
    grids: Vec<ParamGrid>,
}

/// scikit-learn's `RandomizedSearchCV`: as [`GridSearchCV`], with values that are drawn.
///
/// ```
/// use tharsis_learn::datasets::load_diabetes;
/// use tharsis_learn::linear_model::Ridge;
/// use tharsis_learn::model_selection::{Distribution, ParamDistributions, RandomizedSearchCV};
/// let data = load_diabetes()?;
/// let drawn = ParamDistributions::new().draw("alpha", Distribution::LogUniform { low: 1e-3, high: 10.0 });
/// let search = RandomizedSearchCV::new(Ridge::new(), drawn).n_iter(4);
/// assert_eq!(search.fit(&data.data, &data.target, ..)?.cv_results.params.len(), 4);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct RandomizedSearchCV<E> {
    search: Search<E>,
    distributions: ParamDistributions,
    n_iter: usize,
    random_state: u64,
}

/// The part that both searches have.
#[derive(Clone, Debug)]
struct Search<E> {
    estimator: E,
    validation: Validation,
}

/// A fitted [`GridSearchCV`] or [`RandomizedSearchCV`]. It predicts and maps as its best model.
#[derive(Debug)]
#[non_exhaustive]
pub struct FittedSearch<M> {
    /// scikit-learn's `best_params_`.
    pub best_params: Candidate,
    /// scikit-learn's `best_score_`: the mean score of the test sets.
    pub best_score: f64,
    /// scikit-learn's `best_index_`: the first candidate of rank 1.
    pub best_index: usize,
    /// scikit-learn's `cv_results_`.
    pub cv_results: CvResults,
    /// scikit-learn's `n_splits_`.
    pub n_splits: usize,
    /// Errors of the fits and scores that failed.
    pub failures: Vec<Error>,
    scoring: Scoring,
    best_model: M,
}

macro_rules! options {
    ($search:ident) => {
        impl<E> $search<E> {
            /// Folds, score and other options of the validation. Those of fits are replaced by the options
            /// of [`fit`](Self::fit).
            ///
            /// ```
            /// use tharsis_learn::model_selection::{Folds, Validation};
            /// let validation = Validation { cv: 3.into(), ..Validation::default() };
            /// assert!(matches!(validation.cv, Folds::Count(3)));
            /// ```
            pub fn validation(mut self, validation: impl Into<Validation>) -> $search<E> {
                self.search.validation = validation.into();
                self
            }
        }

        impl<E: Estimator<Fitted: Predict> + Params + Clone> $search<E> {
            /// Fits all candidates on the folds, and the best one on all samples (n, d) and targets. Weights
            /// of samples, if there are any, are those of fits and of scores.
            ///
            /// ```
            /// use tharsis_learn::linear_model::Ridge;
            /// use tharsis_learn::model_selection::{GridSearchCV, ParamGrid};
            /// use tharsis_numeric::{arange, zeros};
            /// let grid = ParamGrid::new().values("alhpa", [1.0]);
            /// let refused = GridSearchCV::new(Ridge::new(), grid).fit(&zeros(&[9, 1]), &arange(9), ..);
            /// let text = refused.err().map(|error| error.to_string()).unwrap_or_default();
            /// assert!(text.starts_with("Invalid parameter 'alhpa' for estimator Ridge()."), "{text}");
            /// ```
            ///
            /// # Errors
            /// `ValueError` for names that are no parameters, for no candidates, for splits that do not fit
            /// the data, and if all fits fail; errors of a fit if options of the validation say
            /// [`ErrorScore::Raise`](super::ErrorScore::Raise); errors of the last fit.
            #[track_caller]
            pub fn fit(
                &self,
                x: &Tensor,
                y: &Tensor,
                options: impl Into<FitOptions>,
            ) -> Result<FittedSearch<E::Fitted>> {
                self.fit_any(x, Some(y), &options.into())
            }

            /// scikit-learn's search with `refit=False`: as [`fit`](Self::fit), without the last fit. The
            /// result has no model.
            ///
            /// # Errors
            /// As [`fit`](Self::fit).
            #[track_caller]
            pub fn search(
                &self,
                x: &Tensor,
                y: &Tensor,
                options: impl Into<FitOptions>,
            ) -> Result<FittedSearch<()>> {
                Ok(self.search.results(self.candidates()?, x, y, &options.into())?.0)
            }
        }

        impl<E: Estimator<Fitted: Predict> + Params + Clone> Estimator for $search<E> {
            type Fitted = FittedSearch<E::Fitted>;

            fn takes_weights(&self) -> bool {
                self.search.estimator.takes_weights()
            }

            #[track_caller]
            fn fit_any(
                &self,
                x: &Tensor,
                y: Option<&Tensor>,
                options: &FitOptions,
            ) -> Result<FittedSearch<E::Fitted>> {
                let y = y.ok_or_else(|| value_error("a search needs targets, but the target y is None."))?;
                self.search.fitted(self.candidates()?, x, y, options)
            }
        }
    };
}
options!(GridSearchCV);
options!(RandomizedSearchCV);

macro_rules! nested {
    ($search:ident, $name:literal, $known:expr) => {
        /// The parameters of the estimator, behind `estimator__`.
        impl<E: Params> Params for $search<E> {
            fn estimator(&self) -> &'static str {
                $name
            }

            fn params(&self) -> Vec<(String, Setting)> {
                inner("estimator", &self.search.estimator).collect()
            }

            #[track_caller]
            fn set(&mut self, name: &str, value: &Setting) -> Result<()> {
                match name.strip_prefix("estimator__") {
                    Some(inner) => self.search.estimator.set(inner, value),
                    None => Err(unknown($name, $known, name)),
                }
            }
        }
    };
}
nested!(
    GridSearchCV,
    "GridSearchCV",
    &["cv", "error_score", "estimator", "param_grid", "refit", "return_train_score", "scoring"]
);
nested!(
    RandomizedSearchCV,
    "RandomizedSearchCV",
    &["cv", "error_score", "estimator", "n_iter", "param_distributions", "random_state", "refit", "scoring"]
);

impl<E> Search<E> {
    fn new(estimator: E) -> Search<E> {
        Search { estimator, validation: Validation::default() }
    }
}

impl<E> GridSearchCV<E> {
    /// A search through a grid, or several grids one behind the other, with five folds and the model's own
    /// score.
    ///
    /// ```
    /// use tharsis_learn::model_selection::{GridSearchCV, ParamGrid};
    /// use tharsis_learn::linear_model::Lasso;
    /// let few = ParamGrid::new().values("alpha", [1.0]).values("positive", [true, false]);
    /// let search = GridSearchCV::new(Lasso::new(), vec![few, ParamGrid::new().values("alpha", [9.0])]);
    /// assert!(format!("{search:?}").contains("positive"));
    /// ```
    pub fn new(estimator: E, grids: impl Into<Vec<ParamGrid>>) -> GridSearchCV<E> {
        GridSearchCV { search: Search::new(estimator), grids: grids.into() }
    }

    fn candidates(&self) -> Result<Vec<Candidate>> {
        let mut all = Vec::new();
        for grid in &self.grids {
            all.extend(grid.candidates()?);
        }
        Ok(all)
    }
}

impl<E> RandomizedSearchCV<E> {
    /// A search of ten draws, with five folds and the model's own score.
    ///
    /// ```
    /// use tharsis_learn::linear_model::Ridge;
    /// use tharsis_learn::model_selection::{Distribution, ParamDistributions, RandomizedSearchCV};
    /// let drawn = ParamDistributions::new().draw("alpha", Distribution::Uniform { low: 0.0, high: 2.0 });
    /// assert!(format!("{:?}", RandomizedSearchCV::new(Ridge::new(), drawn)).contains("n_iter: 10"));
    /// ```
    pub fn new(estimator: E, distributions: ParamDistributions) -> RandomizedSearchCV<E> {
        RandomizedSearchCV { search: Search::new(estimator), distributions, n_iter: 10, random_state: 0 }
    }

    /// scikit-learn's `n_iter`: the number of candidates; fewer if lists have no more combinations.
    pub fn n_iter(self, n_iter: usize) -> RandomizedSearchCV<E> {
        RandomizedSearchCV { n_iter, ..self }
    }

    /// scikit-learn's `random_state`: the seed of the draws. They are not scikit-learn's.
    pub fn random_state(self, random_state: u64) -> RandomizedSearchCV<E> {
        RandomizedSearchCV { random_state, ..self }
    }

    fn candidates(&self) -> Result<Vec<Candidate>> {
        self.distributions.candidates(self.n_iter, self.random_state)
    }
}

/// An estimator with the parameters of a candidate.
#[track_caller]
fn with_candidate<E: Params + Clone>(estimator: &E, candidate: &Candidate) -> Result<E> {
    let mut estimator = estimator.clone();
    for (name, value) in candidate {
        estimator.set(name, value)?;
    }
    Ok(estimator)
}

impl<E: Estimator<Fitted: Predict> + Params + Clone> Search<E> {
    #[track_caller]
    fn fitted(
        &self,
        candidates: Vec<Candidate>,
        x: &Tensor,
        y: &Tensor,
        options: &FitOptions,
    ) -> Result<FittedSearch<E::Fitted>> {
        let (found, problem) = self.results(candidates, x, y, options)?;
        let whole = problem.whole();
        let best = with_candidate(&self.estimator, &found.best_params)?;
        let best_model = best.fit_any(&whole.x, Some(&whole.y), &whole.options)?;
        let FittedSearch {
            best_params, best_score, best_index, cv_results, n_splits, failures, scoring, ..
        } = found;
        Ok(FittedSearch {
            best_params,
            best_score,
            best_index,
            cv_results,
            n_splits,
            failures,
            scoring,
            best_model,
        })
    }

    /// The scores of all candidates, and the data.
    #[track_caller]
    fn results(
        &self,
        candidates: Vec<Candidate>,
        x: &Tensor,
        y: &Tensor,
        options: &FitOptions,
    ) -> Result<(FittedSearch<()>, Problem)> {
        self.check_names(&candidates)?;
        let validation = Validation { fit: options.clone(), ..self.validation.clone() };
        let scoring = validation.scoring;
        let names: Vec<&str> = validation.further_scoring.iter().map(Scoring::name).collect();
        let mut further: Vec<Numbers> = names.iter().map(|_| Numbers::default()).collect();
        let mut problem = Problem::new(x, y, validation, E::Fitted::TASK)?;
        problem.weighs_scores = true;
        let (rows, columns) = (candidates.len(), problem.splits.len());
        let (mut table, mut failures, mut fitted) = (Table::default(), Vec::new(), 0);
        for candidate in &candidates {
            // A value out of its range fails the fits of this candidate alone.
            let estimator = with_candidate(&self.estimator, candidate);
            let made = problem.validated(usize::MAX, |fit| {
                estimator.clone()?.fit_any(&fit.x, Some(&fit.y), &fit.options)
            })?;
            fitted += made.fitted();
            table.scores.add(made.test_score, made.train_score);
            for (numbers, made) in further.iter_mut().zip(made.further) {
                numbers.add(made.test_score, made.train_score);
            }
            table.fit_time.extend(made.fit_time);
            table.score_time.extend(made.score_time);
            failures.extend(made.failures);
        }
        check_some_fit(&failures, fitted, rows * columns)?;
        let further = further.into_iter().zip(names);
        let further = further.map(|(numbers, name)| numbers.table(name, (rows, columns)));
        let cv_results = table.results(candidates, further.collect::<Result<_>>()?, (rows, columns))?;
        let best_index = cv_results.rank_test_score.iter().position(|&rank| rank == 1).unwrap_or(0);
        let found = FittedSearch {
            best_params: cv_results.params.get(best_index).cloned().unwrap_or_default(),
            best_score: cv_results.mean_test_score.get(best_index).copied().unwrap_or(f64::NAN),
            best_index,
            cv_results,
            n_splits: columns,
            failures,
            scoring,
            best_model: (),
        };
        Ok((found, problem))
    }

    /// Checks that there are candidates, and that all their names are parameters.
    #[track_caller]
    fn check_names(&self, candidates: &[Candidate]) -> Result<()> {
        if candidates.is_empty() {
            return Err(value_error(
                "No fits were performed. Was the CV iterator empty? Were there no candidates?",
            ));
        }
        let known = self.estimator.params();
        for (name, value) in candidates.iter().flatten() {
            if !known.iter().any(|(known, _)| known == name) {
                self.estimator.clone().set(name, value)?;
            }
        }
        Ok(())
    }
}

/// Numbers of all candidates, split by split.
#[derive(Default)]
struct Table {
    scores: Numbers,
    fit_time: Vec<f64>,
    score_time: Vec<f64>,
}

impl Table {
    fn results(
        self,
        params: Vec<Candidate>,
        further: Vec<ScoreTable>,
        shape: (usize, usize),
    ) -> Result<CvResults> {
        let ScoreTable {
            split_test_score,
            mean_test_score,
            std_test_score,
            rank_test_score,
            split_train_score,
            ..
        } = self.scores.table("score", shape)?;
        Ok(CvResults {
            params,
            split_test_score,
            mean_test_score,
            std_test_score,
            rank_test_score,
            split_train_score,
            further,
            fit_time: array(self.fit_time, shape)?,
            score_time: array(self.score_time, shape)?,
        })
    }
}

impl<M> FittedSearch<M> {
    /// scikit-learn's `best_estimator_`: the model of the best parameters, fitted on all samples.
    #[must_use]
    pub fn best_model(&self) -> &M {
        &self.best_model
    }
}

impl<M: Predict> FittedSearch<M> {
    /// The predictions of the best model for samples (n, d), as an expression.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        self.best_model.predict(x)
    }

    /// The probabilities of classes by the best model, as an expression; none if it tells none.
    pub(crate) fn chances(&self, x: &Tensor) -> Option<Tensor> {
        self.best_model.probabilities(x).map(|(_, chances)| chances)
    }

    /// The decisions of the best model, as an expression; none if it tells none.
    pub(crate) fn decided(&self, x: &Tensor) -> Option<Tensor> {
        self.best_model.decisions(x).map(|(_, decisions)| decisions)
    }

    /// The name of the score by which was chosen.
    pub(crate) fn scored_by(&self) -> &'static str {
        self.scoring.name()
    }

    /// The score of the best model, by the score of the search.
    ///
    /// # Errors
    /// Those of the score.
    #[track_caller]
    pub fn score(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<f64> {
        self.score_any(x, y, &options.into())
    }
}

impl<M: Predict> Predict for FittedSearch<M> {
    const TASK: Task = M::TASK;

    fn name(&self) -> &'static str {
        self.best_model.name()
    }

    #[track_caller]
    fn predict(&self, x: &Tensor) -> Tensor {
        self.best_model.predict(x)
    }

    fn class_labels(&self) -> Option<&[i64]> {
        self.best_model.class_labels()
    }

    #[track_caller]
    fn probabilities(&self, x: &Tensor) -> Option<ByClass<'_>> {
        self.best_model.probabilities(x)
    }

    #[track_caller]
    fn decisions(&self, x: &Tensor) -> Option<ByClass<'_>> {
        self.best_model.decisions(x)
    }

    #[track_caller]
    fn score_any(&self, x: &Tensor, y: &Tensor, options: &FitOptions) -> Result<f64> {
        self.scoring.of(&self.best_model, x, y, options)
    }
}

impl<M: PredictProba> PredictProba for FittedSearch<M> {
    fn classes(&self) -> &[i64] {
        self.best_model.classes()
    }

    #[track_caller]
    fn predict_proba(&self, x: &Tensor) -> Tensor {
        self.best_model.predict_proba(x)
    }

    #[track_caller]
    fn predict_log_proba(&self, x: &Tensor) -> Tensor {
        self.best_model.predict_log_proba(x)
    }
}

impl<M: Transform> Transform for FittedSearch<M> {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        self.best_model.transform(x)
    }
}

/// The part of a search in a file beside its model: the best candidate, its score and place, the table, the
/// number of splits and the name of the score.
type SavedSearch = (Candidate, f64, usize, CvResults, usize, Option<String>);

impl<M: Save> Save for FittedSearch<M> {
    const KIND: &'static str = "Search";

    /// Without the `failures`, which are errors of this process.
    #[track_caller]
    fn body(&self) -> Result<Vec<u8>> {
        let scoring = self.scoring.is_named().then(|| self.scoring.name().to_owned());
        let (kind, body) = self.best_model.kind_and_body()?;
        let (params, results) = (&self.best_params, &self.cv_results);
        encoded(&((params, self.best_score, self.best_index, results, self.n_splits, scoring), kind, body))
    }

    fn of_body(body: &[u8]) -> Option<FittedSearch<M>> {
        let (search, kind, body): (SavedSearch, String, Vec<u8>) = decoded(body)?;
        let (best_params, best_score, best_index, cv_results, n_splits, scoring) = search;
        let scoring = match scoring {
            Some(name) => Scoring::named(&name).ok()?,
            None => Scoring::default(),
        };
        if cv_results.params.len() <= best_index || !cv_results.is_sound(n_splits) {
            return None;
        }
        Some(FittedSearch {
            best_params,
            best_score,
            best_index,
            cv_results,
            n_splits,
            failures: Vec::new(),
            scoring,
            best_model: M::of_kind(&kind, &body)?,
        })
    }
}

impl<M: fmt::Display> fmt::Display for FittedSearch<M> {
    /// The best parameters with their score, and the text of the best model.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "best of {} candidates:", self.cv_results.params.len())?;
        for (name, value) in &self.best_params {
            write!(f, " {name}={value}")?;
        }
        write!(f, ", mean score {}\n{}", self.best_score, self.best_model)
    }
}
