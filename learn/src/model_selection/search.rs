//! Searches for the parameters whose models score best.

use super::candidates::{Candidate, ParamDistributions, ParamGrid};
use super::found::FittedSearch;
use super::scoring::Scoring;
use super::table::{CvResults, Numbers, ScoreTable, array};
use super::validation::{Problem, Validation, check_some_fit};
use crate::base::{Estimator, FitOptions, Predict};
use crate::metrics::inputs::value_error;
use crate::params::Params;
use crate::{Error, Result};
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

/// The part that all searches have.
#[derive(Clone, Debug)]
pub(super) struct Search<E> {
    pub(super) estimator: E,
    pub(super) validation: Validation,
}

macro_rules! options {
    ($search:ident) => {
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

/// The options of the validation, and the parameters of the estimator: both are of the part `search` that all
/// searches have. `$known` are scikit-learn's names of their own parameters.
macro_rules! searches {
    ($search:ident, $name:expr, $known:expr) => {
        impl<E> $search<E> {
            /// Folds, score and other options of the validation. Those of fits are replaced by the options
            /// of [`fit`](Self::fit).
            ///
            /// ```
            /// use tharsis_learn::model_selection::{Folds, Validation};
            /// let validation = Validation { cv: 3.into(), ..Validation::default() };
            /// assert!(matches!(validation.cv, Folds::Count(3)));
            /// ```
            pub fn validation(
                mut self,
                validation: impl Into<$crate::model_selection::Validation>,
            ) -> $search<E> {
                self.search.validation = validation.into();
                self
            }
        }

        /// The parameters of the estimator, behind `estimator__`.
        impl<E: $crate::params::Params> $crate::params::Params for $search<E> {
            fn estimator(&self) -> &'static str {
                $name
            }

            fn params(&self) -> Vec<(String, $crate::params::Setting)> {
                $crate::held::inner("estimator", &self.search.estimator).collect()
            }

            #[track_caller]
            fn set(&mut self, name: &str, value: &$crate::params::Setting) -> $crate::Result<()> {
                match name.strip_prefix("estimator__") {
                    Some(inner) => self.search.estimator.set(inner, value),
                    None => Err($crate::held::unknown($name, $known, name)),
                }
            }
        }
    };
}
pub(super) use searches;
searches!(
    GridSearchCV,
    "GridSearchCV",
    &["cv", "error_score", "estimator", "param_grid", "refit", "return_train_score", "scoring"]
);
searches!(
    RandomizedSearchCV,
    "RandomizedSearchCV",
    &["cv", "error_score", "estimator", "n_iter", "param_distributions", "random_state", "refit", "scoring"]
);

impl<E> Search<E> {
    pub(super) fn new(estimator: E) -> Search<E> {
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

/// Scores of candidates, one behind the other.
pub(super) struct Scored {
    params: Vec<Candidate>,
    /// The mean score of each candidate on the test sets.
    pub(super) means: Vec<f64>,
    table: Table,
    further: Vec<Numbers>,
    names: Vec<&'static str>,
    failures: Vec<Error>,
    scoring: Scoring,
    splits: usize,
}

impl Scored {
    /// The results, of which a function chooses the best by its place.
    #[track_caller]
    pub(super) fn found(self, choose: impl FnOnce(&CvResults) -> usize) -> Result<FittedSearch<()>> {
        let shape = (self.params.len(), self.splits);
        let further = self.further.into_iter().zip(self.names);
        let further = further.map(|(numbers, name)| numbers.table(name, shape));
        let cv_results = self.table.results(self.params, further.collect::<Result<_>>()?, shape)?;
        let best_index = choose(&cv_results);
        Ok(FittedSearch {
            best_params: cv_results.params.get(best_index).cloned().unwrap_or_default(),
            best_score: cv_results.mean_test_score.get(best_index).copied().unwrap_or(f64::NAN),
            best_index,
            cv_results,
            n_splits: self.splits,
            failures: self.failures,
            scoring: self.scoring,
            best_model: (),
        })
    }
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
        self.refitted(found, &problem)
    }

    /// The results with the model of the best candidate, fitted to all samples.
    #[track_caller]
    pub(super) fn refitted(
        &self,
        found: FittedSearch<()>,
        problem: &Problem,
    ) -> Result<FittedSearch<E::Fitted>> {
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
        let (problem, mut scored) = self.begin(x, y, options)?;
        self.add(&mut scored, candidates, &problem)?;
        let first = |results: &CvResults| results.rank_test_score.iter().position(|&rank| rank == 1);
        let found = scored.found(|results| first(results).unwrap_or(0))?;
        Ok((found, problem))
    }

    /// The data of a search, and no scores yet.
    #[track_caller]
    pub(super) fn begin(&self, x: &Tensor, y: &Tensor, options: &FitOptions) -> Result<(Problem, Scored)> {
        let validation = Validation { fit: options.clone(), ..self.validation.clone() };
        let scoring = validation.scoring;
        let names: Vec<&str> = validation.further_scoring.iter().map(Scoring::name).collect();
        let mut problem = Problem::new(x, y, validation, E::Fitted::TASK)?;
        problem.weighs_scores = true;
        let scored = Scored {
            params: Vec::new(),
            means: Vec::new(),
            table: Table::default(),
            further: names.iter().map(|_| Numbers::default()).collect(),
            names,
            failures: Vec::new(),
            scoring,
            splits: problem.splits.len(),
        };
        Ok((problem, scored))
    }

    /// Adds the scores of some candidates.
    ///
    /// # Errors
    /// `ValueError` if all fits fail; errors of the fits.
    #[track_caller]
    pub(super) fn add(
        &self,
        scored: &mut Scored,
        candidates: Vec<Candidate>,
        problem: &Problem,
    ) -> Result<()> {
        let (mut failures, mut fitted) = (Vec::new(), 0);
        for candidate in &candidates {
            // A value out of its range fails the fits of this candidate alone.
            let estimator = with_candidate(&self.estimator, candidate);
            let made = problem.validated(usize::MAX, |fit| {
                estimator.clone()?.fit_any(&fit.x, Some(&fit.y), &fit.options)
            })?;
            fitted += made.fitted();
            scored.means.push(made.test_score.iter().sum::<f64>() / made.test_score.len() as f64);
            scored.table.scores.add(made.test_score, made.train_score);
            for (numbers, made) in scored.further.iter_mut().zip(made.further) {
                numbers.add(made.test_score, made.train_score);
            }
            scored.table.fit_time.extend(made.fit_time);
            scored.table.score_time.extend(made.score_time);
            failures.extend(made.failures);
        }
        check_some_fit(&failures, fitted, candidates.len() * problem.splits.len())?;
        scored.failures.extend(failures);
        scored.params.extend(candidates);
        Ok(())
    }

    /// Checks that there are candidates, and that all their names are parameters.
    #[track_caller]
    pub(super) fn check_names(&self, candidates: &[Candidate]) -> Result<()> {
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
