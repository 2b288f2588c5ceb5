//! Scores of models by the names of scikit-learn's scorers.

use crate::Result;
use crate::base::{FitOptions, Predict};
use crate::labels::is_not_whole;
use crate::metrics::inputs::{Pass, value_error};
use crate::metrics::{
    Accuracy, Average, Averaged, BalancedAccuracy, Explained, Regression, accuracy_score,
    balanced_accuracy_score, explained_variance_score, f1_score, max_error, mean_absolute_error,
    mean_absolute_percentage_error, mean_squared_error, median_absolute_error, precision_score, r2_score,
    recall_score, root_mean_squared_error,
};
use tharsis_numeric::run::with_default;
use tharsis_numeric::{DType, Tensor};

/// A score of predictions; more is better.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scoring {
    scorer: Option<&'static Scorer>,
}

/// A named score of targets and predictions.
#[derive(Debug)]
struct Scorer {
    name: &'static str,
    /// Whether targets are labels.
    is_of_labels: bool,
    score: fn(&Tensor, &Tensor, Weights) -> Result<f64>,
}

/// Weights of samples, if there are any.
type Weights = Option<Tensor>;

const fn of_labels(name: &'static str, score: fn(&Tensor, &Tensor, Weights) -> Result<f64>) -> Scorer {
    Scorer { name, is_of_labels: true, score }
}

const fn of_numbers(name: &'static str, score: fn(&Tensor, &Tensor, Weights) -> Result<f64>) -> Scorer {
    Scorer { name, is_of_labels: false, score }
}

/// All names, ascending.
const SCORERS: &[Scorer] = &[
    of_labels("accuracy", |y, p, sample_weight| {
        accuracy_score(y, p, Accuracy { sample_weight, ..Accuracy::default() })
    }),
    of_labels("balanced_accuracy", |y, p, sample_weight| {
        balanced_accuracy_score(y, p, BalancedAccuracy { sample_weight, ..BalancedAccuracy::default() })
    }),
    of_numbers("explained_variance", |y, p, w| Ok(explained_variance_score(y, p, explained(w))?.value())),
    of_labels("f1", |y, p, w| Ok(f1_score(y, p, averaged(w, Average::Binary))?.value())),
    of_labels("f1_macro", |y, p, w| Ok(f1_score(y, p, averaged(w, Average::Macro))?.value())),
    of_labels("f1_micro", |y, p, w| Ok(f1_score(y, p, averaged(w, Average::Micro))?.value())),
    of_labels("f1_weighted", |y, p, w| Ok(f1_score(y, p, averaged(w, Average::Weighted))?.value())),
    // The largest error has no weights.
    of_numbers("neg_max_error", |y, p, _| Ok(-max_error(y, p)?)),
    of_numbers("neg_mean_absolute_error", |y, p, w| Ok(-mean_absolute_error(y, p, weighted(w))?.value())),
    of_numbers("neg_mean_absolute_percentage_error", |y, p, w| {
        Ok(-mean_absolute_percentage_error(y, p, weighted(w))?.value())
    }),
    of_numbers("neg_mean_squared_error", |y, p, w| Ok(-mean_squared_error(y, p, weighted(w))?.value())),
    of_numbers("neg_median_absolute_error", |y, p, w| Ok(-median_absolute_error(y, p, weighted(w))?.value())),
    of_numbers("neg_root_mean_squared_error", |y, p, w| {
        Ok(-root_mean_squared_error(y, p, weighted(w))?.value())
    }),
    of_labels("precision", |y, p, w| Ok(precision_score(y, p, averaged(w, Average::Binary))?.value())),
    of_labels("precision_macro", |y, p, w| Ok(precision_score(y, p, averaged(w, Average::Macro))?.value())),
    of_numbers("r2", |y, p, w| Ok(r2_score(y, p, explained(w))?.value())),
    of_labels("recall", |y, p, w| Ok(recall_score(y, p, averaged(w, Average::Binary))?.value())),
    of_labels("recall_macro", |y, p, w| Ok(recall_score(y, p, averaged(w, Average::Macro))?.value())),
];

fn averaged(sample_weight: Weights, average: Average) -> Averaged {
    Averaged { sample_weight, average, ..Averaged::default() }
}

fn explained(sample_weight: Weights) -> Explained {
    Explained { sample_weight, ..Explained::default() }
}

fn weighted(sample_weight: Weights) -> Regression {
    Regression { sample_weight, ..Regression::default() }
}

/// Labels in an integer dtype: scikit-learn takes whole floats, such as those of a column of a frame, as
/// well.
///
/// # Errors
/// `ValueError` for numbers that are not whole; errors of the run that tells.
#[track_caller]
pub(super) fn whole_labels(y: &Tensor) -> Result<Tensor> {
    let Some(is_not_whole) = is_not_whole(y)? else { return Ok(y.clone()) };
    let mut pass = Pass::default();
    pass.require(
        &is_not_whole.logical_not(),
        "Supported target types are: ('binary', 'multiclass'). Got 'continuous' instead.",
    );
    pass.run()?;
    Ok(y.astype(DType::I64))
}

impl Scoring {
    /// The score of this name: `accuracy`, `balanced_accuracy`, `explained_variance`, `f1` (also with
    /// `_macro`, `_micro`, `_weighted`), `precision` and `recall` (also with `_macro`), `r2`, and the errors
    /// with `neg_` before them.
    ///
    /// ```
    /// use tharsis_learn::model_selection::Scoring;
    /// assert_eq!(Scoring::named("neg_mean_squared_error")?.name(), "neg_mean_squared_error");
    /// assert!(Scoring::named("mean_squared_error").is_err());
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for another name.
    #[track_caller]
    pub fn named(name: &str) -> Result<Scoring> {
        let found = SCORERS.iter().find(|scorer| scorer.name == name);
        let scorer = found.ok_or_else(|| {
            let names: Vec<&str> = SCORERS.iter().map(|scorer| scorer.name).collect();
            value_error(format!(
                "The 'scoring' parameter must be a str among {names:?}, or the model's own score. Got '{name}' \
                 instead."
            ))
        })?;
        Ok(Scoring { scorer: Some(scorer) })
    }

    /// The name: `score` for the model's own score.
    pub fn name(&self) -> &'static str {
        self.scorer.map_or("score", |scorer| scorer.name)
    }

    /// The score of a model on samples and their targets, by weights if the options have them. The largest
    /// error has none.
    ///
    /// # Errors
    /// `ValueError` for a score of labels and targets that are not whole; those of the score.
    #[track_caller]
    pub(super) fn of<M: Predict>(
        self,
        model: &M,
        x: &Tensor,
        y: &Tensor,
        options: &FitOptions,
    ) -> Result<f64> {
        let Some(scorer) = self.scorer else { return model.score_any(x, y, options) };
        with_default(options.chosen_executor(), || {
            let y = if scorer.is_of_labels { whole_labels(y)? } else { y.clone() };
            (scorer.score)(&y, &model.predict(x), options.weights().cloned())
        })
    }
}
