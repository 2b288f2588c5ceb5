//! Scores of models by the names of scikit-learn's scorers.

use crate::Result;
use crate::base::{FitOptions, Predict};
use crate::metrics::inputs::value_error;
use crate::metrics::{
    Average, accuracy_score, balanced_accuracy_score, explained_variance_score, f1_score, max_error,
    mean_absolute_error, mean_absolute_percentage_error, mean_squared_error, median_absolute_error,
    precision_score, r2_score, recall_score, root_mean_squared_error,
};
use tharsis_numeric::Tensor;
use tharsis_numeric::run::with_default;

/// A score of predictions; more is better.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scoring {
    scorer: Option<&'static Scorer>,
}

/// A named score of targets and predictions.
#[derive(Debug)]
struct Scorer {
    name: &'static str,
    score: fn(&Tensor, &Tensor) -> Result<f64>,
}

/// All names, ascending.
const SCORERS: &[Scorer] = &[
    Scorer { name: "accuracy", score: |y, p| accuracy_score(y, p, ..) },
    Scorer { name: "balanced_accuracy", score: |y, p| balanced_accuracy_score(y, p, ..) },
    Scorer { name: "explained_variance", score: |y, p| Ok(explained_variance_score(y, p, ..)?.value()) },
    Scorer { name: "f1", score: |y, p| Ok(f1_score(y, p, ..)?.value()) },
    Scorer { name: "f1_macro", score: |y, p| Ok(f1_score(y, p, Average::Macro)?.value()) },
    Scorer { name: "f1_micro", score: |y, p| Ok(f1_score(y, p, Average::Micro)?.value()) },
    Scorer { name: "f1_weighted", score: |y, p| Ok(f1_score(y, p, Average::Weighted)?.value()) },
    Scorer { name: "neg_max_error", score: |y, p| Ok(-max_error(y, p)?) },
    Scorer { name: "neg_mean_absolute_error", score: |y, p| Ok(-mean_absolute_error(y, p, ..)?.value()) },
    Scorer {
        name: "neg_mean_absolute_percentage_error",
        score: |y, p| Ok(-mean_absolute_percentage_error(y, p, ..)?.value()),
    },
    Scorer { name: "neg_mean_squared_error", score: |y, p| Ok(-mean_squared_error(y, p, ..)?.value()) },
    Scorer { name: "neg_median_absolute_error", score: |y, p| Ok(-median_absolute_error(y, p, ..)?.value()) },
    Scorer {
        name: "neg_root_mean_squared_error",
        score: |y, p| Ok(-root_mean_squared_error(y, p, ..)?.value()),
    },
    Scorer { name: "precision", score: |y, p| Ok(precision_score(y, p, ..)?.value()) },
    Scorer { name: "precision_macro", score: |y, p| Ok(precision_score(y, p, Average::Macro)?.value()) },
    Scorer { name: "r2", score: |y, p| Ok(r2_score(y, p, ..)?.value()) },
    Scorer { name: "recall", score: |y, p| Ok(recall_score(y, p, ..)?.value()) },
    Scorer { name: "recall_macro", score: |y, p| Ok(recall_score(y, p, Average::Macro)?.value()) },
];

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

    /// The score of a model on samples and their targets.
    ///
    /// # Errors
    /// Those of the score.
    #[track_caller]
    pub(super) fn of<M: Predict>(
        self,
        model: &M,
        x: &Tensor,
        y: &Tensor,
        options: &FitOptions,
    ) -> Result<f64> {
        match self.scorer {
            None => model.score_any(x, y, options),
            Some(scorer) => with_default(options.chosen_executor(), || (scorer.score)(y, &model.predict(x))),
        }
    }
}
