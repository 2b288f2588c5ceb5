//! Results of a search: the table of scores, and the best model.

use super::candidates::Candidate;
use super::scoring::Scoring;
use super::table::CvResults;
use crate::base::{ByClass, FitOptions, Predict, PredictProba, Task, Transform};
use crate::saved::{Save, decoded, encoded};
use crate::{Error, Result};
use std::fmt;
use tharsis_numeric::Tensor;

/// A fitted [`GridSearchCV`](super::GridSearchCV) or [`RandomizedSearchCV`](super::RandomizedSearchCV). It
/// predicts and maps as its best model.
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
    pub(super) scoring: Scoring,
    pub(super) best_model: M,
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

    fn feature_names_out(&self, names: &[String]) -> Option<Vec<String>> {
        self.best_model.feature_names_out(names)
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
