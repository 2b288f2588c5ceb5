//! Scores of models by the names of scikit-learn's scorers.

use crate::Result;
use crate::base::{ByClass, FitOptions, Predict};
use crate::labels::is_not_whole;
use crate::metrics::inputs::{Pass, value_error};
use crate::metrics::options::Weighted;
use crate::metrics::{
    Accuracy, Average, AveragePrecision, Averaged, BalancedAccuracy, Brier, Explained, LogLoss, MultiClass,
    Regression, RocAuc, Score, TopK, accuracy_score, adjusted_mutual_info_score, adjusted_rand_score,
    average_precision_score, balanced_accuracy_score, brier_score_loss, completeness_score,
    d2_absolute_error_score, explained_variance_score, f1_score, fowlkes_mallows_score, homogeneity_score,
    jaccard_score, log_loss, matthews_corrcoef, max_error, mean_absolute_error,
    mean_absolute_percentage_error, mean_gamma_deviance, mean_poisson_deviance, mean_squared_error,
    mean_squared_log_error, median_absolute_error, mutual_info_score, normalized_mutual_info_score,
    precision_score, r2_score, rand_score, recall_score, roc_auc_score, root_mean_squared_error,
    root_mean_squared_log_error, top_k_accuracy_score, v_measure_score,
};
use tharsis_numeric::run::with_default;
use tharsis_numeric::{DType, Index, Tensor};

/// A score of what a model tells; more is better.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scoring {
    scorer: Option<&'static Scorer>,
}

#[derive(Debug)]
struct Scorer {
    name: &'static str,
    reads: Reads,
}

/// The part of what a model tells that a score compares with the targets.
#[derive(Debug)]
enum Reads {
    /// Predicted labels.
    Labels(fn(&Tensor, &Tensor, Weights) -> Result<f64>),
    /// Predicted numbers.
    Numbers(fn(&Tensor, &Tensor, Weights) -> Result<f64>),
    /// Probabilities of classes.
    Probabilities(fn(&Predicted) -> Result<f64>),
    /// Decisions, or else probabilities of classes.
    Decisions(fn(&Predicted) -> Result<f64>),
}

/// Weights of samples, if there are any.
type Weights = Option<Tensor>;

/// Labels, and what a model tells of each class.
struct Predicted {
    y: Tensor,
    /// (n,) for the greater one of two classes, else (n, k).
    values: Tensor,
    /// (n,) for the lesser one of two classes, by which it is the greater one that is ranked last.
    lesser: Tensor,
    /// The classes of the columns, ascending.
    classes: Vec<i64>,
    weights: Weights,
}

const fn of_labels(name: &'static str, score: fn(&Tensor, &Tensor, Weights) -> Result<f64>) -> Scorer {
    Scorer { name, reads: Reads::Labels(score) }
}

const fn of_numbers(name: &'static str, score: fn(&Tensor, &Tensor, Weights) -> Result<f64>) -> Scorer {
    Scorer { name, reads: Reads::Numbers(score) }
}

const fn of_probabilities(name: &'static str, score: fn(&Predicted) -> Result<f64>) -> Scorer {
    Scorer { name, reads: Reads::Probabilities(score) }
}

const fn of_decisions(name: &'static str, score: fn(&Predicted) -> Result<f64>) -> Scorer {
    Scorer { name, reads: Reads::Decisions(score) }
}

/// A score by class under its name, and with `_macro`, `_micro` and `_weighted` behind it.
macro_rules! averages {
    ($score:ident, $name:literal) => {
        [
            of_labels($name, |y, p, w| Ok($score(y, p, averaged(w, Average::Binary))?.value())),
            of_labels(concat!($name, "_macro"), |y, p, w| {
                Ok($score(y, p, averaged(w, Average::Macro))?.value())
            }),
            of_labels(concat!($name, "_micro"), |y, p, w| {
                Ok($score(y, p, averaged(w, Average::Micro))?.value())
            }),
            of_labels(concat!($name, "_weighted"), |y, p, w| {
                Ok($score(y, p, averaged(w, Average::Weighted))?.value())
            }),
        ]
    };
}

/// Scores of predicted labels.
const OF_LABELS: &[Scorer] = &[
    of_labels("accuracy", |y, p, sample_weight| {
        accuracy_score(y, p, Accuracy { sample_weight, ..Accuracy::default() })
    }),
    of_labels("balanced_accuracy", |y, p, sample_weight| {
        balanced_accuracy_score(y, p, BalancedAccuracy { sample_weight, ..BalancedAccuracy::default() })
    }),
    of_labels("matthews_corrcoef", |y, p, sample_weight| matthews_corrcoef(y, p, Weighted { sample_weight })),
];

/// Scores of predicted numbers.
const OF_NUMBERS: &[Scorer] = &[
    of_numbers("d2_absolute_error_score", |y, p, w| Ok(d2_absolute_error_score(y, p, weighted(w))?.value())),
    of_numbers("explained_variance", |y, p, w| Ok(explained_variance_score(y, p, explained(w))?.value())),
    // The largest error has no weights.
    of_numbers("neg_max_error", |y, p, _| Ok(-max_error(y, p)?)),
    of_numbers("neg_mean_absolute_error", |y, p, w| less(mean_absolute_error(y, p, weighted(w)))),
    of_numbers("neg_mean_absolute_percentage_error", |y, p, w| {
        less(mean_absolute_percentage_error(y, p, weighted(w)))
    }),
    of_numbers("neg_mean_gamma_deviance", |y, p, sample_weight| {
        Ok(-mean_gamma_deviance(y, p, Weighted { sample_weight })?)
    }),
    of_numbers("neg_mean_poisson_deviance", |y, p, sample_weight| {
        Ok(-mean_poisson_deviance(y, p, Weighted { sample_weight })?)
    }),
    of_numbers("neg_mean_squared_error", |y, p, w| less(mean_squared_error(y, p, weighted(w)))),
    of_numbers("neg_mean_squared_log_error", |y, p, w| less(mean_squared_log_error(y, p, weighted(w)))),
    of_numbers("neg_median_absolute_error", |y, p, w| less(median_absolute_error(y, p, weighted(w)))),
    of_numbers("neg_root_mean_squared_error", |y, p, w| less(root_mean_squared_error(y, p, weighted(w)))),
    of_numbers("neg_root_mean_squared_log_error", |y, p, w| {
        less(root_mean_squared_log_error(y, p, weighted(w)))
    }),
    of_numbers("r2", |y, p, w| Ok(r2_score(y, p, explained(w))?.value())),
];

/// Scores of probabilities and decisions.
const OF_CLASSES: &[Scorer] = &[
    of_decisions("average_precision", |predicted| {
        let options =
            AveragePrecision { sample_weight: predicted.weights.clone(), ..AveragePrecision::default() };
        Ok(average_precision_score(&predicted.y, predicted.of_label_one()?, options)?.value())
    }),
    of_probabilities("neg_brier_score", |predicted| {
        let options = Brier {
            sample_weight: predicted.weights.clone(),
            pos_label: predicted.classes.last().copied(),
            labels: Some(predicted.classes.clone()),
            ..Brier::default()
        };
        Ok(-brier_score_loss(&predicted.y, &predicted.values, options)?)
    }),
    of_probabilities("neg_log_loss", |predicted| {
        let options = LogLoss {
            sample_weight: predicted.weights.clone(),
            labels: Some(predicted.classes.clone()),
            ..LogLoss::default()
        };
        Ok(-log_loss(&predicted.y, &predicted.values, options)?)
    }),
    of_decisions("roc_auc", |predicted| predicted.area(None, Average::Macro)),
    of_probabilities("roc_auc_ovo", |predicted| {
        predicted.area(Some(MultiClass::OneVersusOne), Average::Macro)
    }),
    of_probabilities("roc_auc_ovo_weighted", |predicted| {
        predicted.area(Some(MultiClass::OneVersusOne), Average::Weighted)
    }),
    of_probabilities("roc_auc_ovr", |predicted| {
        predicted.area(Some(MultiClass::OneVersusRest), Average::Macro)
    }),
    of_probabilities("roc_auc_ovr_weighted", |predicted| {
        predicted.area(Some(MultiClass::OneVersusRest), Average::Weighted)
    }),
    of_decisions("top_k_accuracy", |predicted| {
        let options = TopK {
            sample_weight: predicted.weights.clone(),
            labels: Some(predicted.classes.clone()),
            ..TopK::default()
        };
        top_k_accuracy_score(&predicted.y, &predicted.values, options)
    }),
];

/// Scores of clusters against labels, which have no weights.
const OF_CLUSTERS: &[Scorer] = &[
    of_labels("adjusted_mutual_info_score", |y, p, _| adjusted_mutual_info_score(y, p, ..)),
    of_labels("adjusted_rand_score", |y, p, _| adjusted_rand_score(y, p)),
    of_labels("completeness_score", |y, p, _| completeness_score(y, p)),
    of_labels("fowlkes_mallows_score", |y, p, _| fowlkes_mallows_score(y, p)),
    of_labels("homogeneity_score", |y, p, _| homogeneity_score(y, p)),
    of_labels("mutual_info_score", |y, p, _| mutual_info_score(y, p)),
    of_labels("normalized_mutual_info_score", |y, p, _| normalized_mutual_info_score(y, p, ..)),
    of_labels("rand_score", |y, p, _| rand_score(y, p)),
    of_labels("v_measure_score", |y, p, _| v_measure_score(y, p, ..)),
];

/// All scores.
const SCORERS: &[&[Scorer]] = &[
    OF_LABELS,
    &averages!(f1_score, "f1"),
    &averages!(jaccard_score, "jaccard"),
    &averages!(precision_score, "precision"),
    &averages!(recall_score, "recall"),
    OF_NUMBERS,
    OF_CLASSES,
    OF_CLUSTERS,
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

/// The score of an error: less of it is better.
fn less(error: Result<Score>) -> Result<f64> {
    Ok(-error?.value())
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

impl Predicted {
    #[track_caller]
    fn new(y: &Tensor, (classes, values): ByClass<'_>, options: &FitOptions) -> Result<Predicted> {
        let column = |at: i64| values.get(&[Index::from(..), Index::from(at)]);
        let (values, lesser) = match *values.shape()? {
            [_, 2] if classes.len() == 2 => (column(1), column(0)),
            _ => (values.clone(), -&values),
        };
        Ok(Predicted {
            y: whole_labels(y)?,
            values,
            lesser,
            classes: classes.to_vec(),
            weights: options.weights().cloned(),
        })
    }

    /// The values for the label 1, which the score looks for among two classes, as scikit-learn's does.
    ///
    /// # Errors
    /// `ValueError` if the model has two other classes.
    #[track_caller]
    fn of_label_one(&self) -> Result<&Tensor> {
        match self.classes[..] {
            [1, _] => Ok(&self.lesser),
            [_, 1] => Ok(&self.values),
            [a, b] => {
                Err(value_error(format!("pos_label=1 is not a valid label: It should be one of [{a} {b}]")))
            }
            _ => Ok(&self.values),
        }
    }

    /// The area under the receiver operating characteristic.
    #[track_caller]
    fn area(&self, multi_class: Option<MultiClass>, average: Average) -> Result<f64> {
        let options = RocAuc {
            average,
            multi_class,
            sample_weight: self.weights.clone(),
            labels: Some(self.classes.clone()),
            ..RocAuc::default()
        };
        Ok(roc_auc_score(&self.y, &self.values, options)?.value())
    }
}

impl Scoring {
    /// The score of this name. Scores of labels: `accuracy`, `balanced_accuracy`, `matthews_corrcoef`, and
    /// `f1`, `jaccard`, `precision`, `recall` (also with `_macro`, `_micro`, `_weighted`). Of numbers: `r2`,
    /// `explained_variance`, `d2_absolute_error_score`, and errors with `neg_` before them. Of probabilities
    /// or decisions of classes: `average_precision`, `neg_brier_score`, `neg_log_loss`, `roc_auc` (also with
    /// `_ovo`, `_ovr`, `_weighted`), `top_k_accuracy`. Of clusters: `adjusted_rand_score` and its like.
    ///
    /// A test set that lacks a class is scored by the classes of the model, where scikit-learn's
    /// `neg_log_loss` is NaN.
    ///
    /// ```
    /// use tharsis_learn::datasets::load_breast_cancer;
    /// use tharsis_learn::model_selection::{Scoring, Validation, cross_val_score};
    /// use tharsis_learn::naive_bayes::GaussianNB;
    /// let data = load_breast_cancer()?;
    /// let options = Validation { scoring: Scoring::named("roc_auc")?, ..Validation::default() };
    /// let areas = cross_val_score(&GaussianNB::new(), &data.data, &data.target, options)?;
    /// assert!(areas.iter().all(|&area| 0.97 < area));
    /// assert!(Scoring::named("mean_squared_error").is_err());
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for another name.
    #[track_caller]
    pub fn named(name: &str) -> Result<Scoring> {
        let mut all = SCORERS.iter().copied().flatten();
        let scorer = all.find(|scorer| scorer.name == name).ok_or_else(|| {
            let mut names: Vec<&str> = SCORERS.iter().copied().flatten().map(|scorer| scorer.name).collect();
            names.sort_unstable();
            value_error(format!(
                "The 'scoring' parameter must be a str among {names:?}, or the model's own score. Got '{name}' \
                 instead."
            ))
        })?;
        Ok(Scoring { scorer: Some(scorer) })
    }

    /// Whether it is not the model's own score.
    pub(super) fn is_named(&self) -> bool {
        self.scorer.is_some()
    }

    /// The name: `score` for the model's own score.
    pub fn name(&self) -> &'static str {
        self.scorer.map_or("score", |scorer| scorer.name)
    }

    /// The score of a model on samples and their targets, by weights if the options have them. The largest
    /// error and scores of clusters have none.
    ///
    /// # Errors
    /// `ValueError` for a score of labels and targets that are not whole, and for a score of probabilities or
    /// decisions that the model does not tell; those of the score.
    #[track_caller]
    pub(crate) fn of<M: Predict>(
        self,
        model: &M,
        x: &Tensor,
        y: &Tensor,
        options: &FitOptions,
    ) -> Result<f64> {
        let Some(scorer) = self.scorer else { return model.score_any(x, y, options) };
        let lacks = |methods: &str| {
            let name = model.name();
            value_error(format!("{name} has none of the following attributes: {methods}."))
        };
        with_default(options.chosen_executor(), || match scorer.reads {
            Reads::Labels(score) => score(&whole_labels(y)?, &model.predict(x), options.weights().cloned()),
            Reads::Numbers(score) => score(y, &model.predict(x), options.weights().cloned()),
            Reads::Probabilities(score) => {
                let predicted = model.probabilities(x).ok_or_else(|| lacks("predict_proba"))?;
                score(&Predicted::new(y, predicted, options)?)
            }
            Reads::Decisions(score) => {
                let predicted = model.decisions(x).or_else(|| model.probabilities(x));
                let predicted = predicted.ok_or_else(|| lacks("decision_function, predict_proba"))?;
                score(&Predicted::new(y, predicted, options)?)
            }
        })
    }
}
