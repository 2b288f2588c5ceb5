//! Metrics of labels.

use super::args::{LABELS, SAMPLE_WEIGHT, count, function, integers_if_given, pair, weights};
use super::model::{numbers, real};
use crate::metrics::{
    Accuracy, Average, Averaged, BalancedAccuracy, ByClass, Confusion, Disagreement, Kappa, Normalize,
    PrecisionRecall, Report, Score, Weighted, accuracy_score, balanced_accuracy_score, classification_report,
    cohen_kappa_score, confusion_matrix, f1_score, fbeta_score, hamming_loss, jaccard_score,
    matthews_corrcoef, multilabel_confusion_matrix, precision_recall_fscore_support, precision_score,
    recall_score, zero_one_loss,
};
use tharsis_numeric::Tensor;
use tharsis_numeric::protocol::{Failure, Scope, Value};
use tharsis_programs::{Argument, Bound, Kind, Look, Param, Preset, Row};

type Args<'a> = &'a Bound<Value>;

/// Digits behind the point of the smallest float.
const DIGITS_MAX: usize = 1074;

pub(super) const Y_TRUE: Param = Param::needed("y_true", Kind::Array);
pub(super) const Y_PRED: Param = Param::needed("y_pred", Kind::Array);
pub(super) const WEIGHT: Param = SAMPLE_WEIGHT.keyword();
const NORMALIZE: Param = Param::new("normalize", Kind::Boolean, Preset::Boolean(true)).keyword();
const POS_LABEL: Param = Param::new(
    "pos_label",
    Kind::OneOf(&[Kind::Integer, Kind::Real, Kind::Text, Kind::None]),
    Preset::Integer(1),
)
.keyword()
.only(Kind::Integer);
const AVERAGES: Kind =
    Kind::OneOf(&[Kind::Choice(&["binary", "micro", "macro", "samples", "weighted"]), Kind::None]);
const AVERAGES_MADE: Kind =
    Kind::OneOf(&[Kind::Choice(&["binary", "micro", "macro", "weighted"]), Kind::None]);
const AVERAGE: Param = Param::new("average", AVERAGES, Preset::Text("binary")).keyword().only(AVERAGES_MADE);
const ZERO_DIVISION: Param =
    Param::new("zero_division", Kind::OneOf(&[Kind::Real, Kind::Choice(&["warn"])]), Preset::Text("warn"))
        .keyword();

const AVERAGED: &[Param] = &[Y_TRUE, Y_PRED, LABELS, POS_LABEL, AVERAGE, WEIGHT, ZERO_DIVISION];
const ACCURACY: &[Param] = &[Y_TRUE, Y_PRED, NORMALIZE, WEIGHT];
const WEIGHTED: &[Param] = &[Y_TRUE, Y_PRED, WEIGHT];

/// The metrics of labels.
pub(super) const ROWS: &[Row<Value, Scope>] = &[
    function("sk.metrics.accuracy_score", ACCURACY, "share of right labels", |args, _| {
        accuracy(args, accuracy_score)
    }),
    function("sk.metrics.zero_one_loss", ACCURACY, "share of wrong labels", |args, _| {
        accuracy(args, zero_one_loss)
    }),
    function("sk.metrics.hamming_loss", WEIGHTED, "share of wrong labels", |args, _| {
        weighted(args, hamming_loss)
    }),
    function(
        "sk.metrics.matthews_corrcoef",
        WEIGHTED,
        "correlation of true and predicted labels",
        |args, _| weighted(args, matthews_corrcoef),
    ),
    function(
        "sk.metrics.balanced_accuracy_score",
        &[Y_TRUE, Y_PRED, WEIGHT, Param::new("adjusted", Kind::Boolean, Preset::Boolean(false)).keyword()],
        "mean of the recalls of the classes",
        |args, _| {
            let (y_true, y_pred) = pair(args, "y_true", "y_pred")?;
            let options =
                BalancedAccuracy { sample_weight: weights(args)?, adjusted: args.boolean("adjusted")? };
            Ok(real(balanced_accuracy_score(&y_true, &y_pred, options)?))
        },
    ),
    function("sk.metrics.precision_score", AVERAGED, "right ones among those predicted", |args, _| {
        averaged(args, precision_score)
    }),
    function("sk.metrics.recall_score", AVERAGED, "those predicted among the true ones", |args, _| {
        averaged(args, recall_score)
    }),
    function("sk.metrics.f1_score", AVERAGED, "harmonic mean of precision and recall", |args, _| {
        averaged(args, f1_score)
    }),
    function("sk.metrics.jaccard_score", AVERAGED, "right ones among those true or predicted", |args, _| {
        averaged(args, jaccard_score)
    }),
    function(
        "sk.metrics.fbeta_score",
        &[
            Y_TRUE,
            Y_PRED,
            Param::needed("beta", Kind::Real).keyword(),
            LABELS,
            POS_LABEL,
            AVERAGE,
            WEIGHT,
            ZERO_DIVISION,
        ],
        "weighted harmonic mean of precision and recall",
        |args, _| {
            let (y_true, y_pred) = pair(args, "y_true", "y_pred")?;
            Ok(score(fbeta_score(&y_true, &y_pred, args.real("beta")?, averages(args)?)?))
        },
    ),
    function(
        "sk.metrics.precision_recall_fscore_support",
        &[
            Y_TRUE,
            Y_PRED,
            Param::new("beta", Kind::Real, Preset::Real(1.0)).keyword(),
            LABELS,
            POS_LABEL,
            Param::new("average", AVERAGES, Preset::None).keyword().only(AVERAGES_MADE),
            Param::new(
                "warn_for",
                Kind::Sequence,
                Preset::Tuple(&[Preset::Text("precision"), Preset::Text("recall"), Preset::Text("f-score")]),
            )
            .keyword()
            .fixed(),
            WEIGHT,
            ZERO_DIVISION,
        ],
        "precision, recall, F-score and true samples of classes",
        |args, _| support(args),
    ),
    function(
        "sk.metrics.confusion_matrix",
        &[
            Y_TRUE,
            Y_PRED,
            LABELS,
            WEIGHT,
            Param::new(
                "normalize",
                Kind::OneOf(&[Kind::Choice(&["true", "pred", "all"]), Kind::None]),
                Preset::None,
            )
            .keyword(),
        ],
        "samples of each true label (row) with each predicted one (column)",
        |args, _| {
            let (y_true, y_pred) = pair(args, "y_true", "y_pred")?;
            let normalize = match args.value("normalize")?.look() {
                Look::Text("true") => Some(Normalize::True),
                Look::Text("pred") => Some(Normalize::Pred),
                Look::Text(_) => Some(Normalize::All),
                _ => None,
            };
            let labels = integers_if_given(args, "labels")?;
            let options = Confusion { labels, sample_weight: weights(args)?, normalize };
            Ok(Value::Tensor(confusion_matrix(&y_true, &y_pred, options)?))
        },
    ),
    function(
        "sk.metrics.multilabel_confusion_matrix",
        &[
            Y_TRUE,
            Y_PRED,
            WEIGHT,
            LABELS,
            Param::new("samplewise", Kind::Boolean, Preset::Boolean(false)).keyword().fixed(),
        ],
        "a confusion matrix of each class and all others",
        |args, _| {
            let (y_true, y_pred) = pair(args, "y_true", "y_pred")?;
            let labels = integers_if_given(args, "labels")?;
            let options = ByClass { labels, sample_weight: weights(args)? };
            Ok(Value::Tensor(multilabel_confusion_matrix(&y_true, &y_pred, options)?))
        },
    ),
    function("sk.metrics.cohen_kappa_score", KAPPA, "agreement beyond chance", |args, _| kappa(args)),
    function("sk.metrics.classification_report", REPORT, "a table of the scores of classes", |args, _| {
        report(args)
    }),
];

const KAPPA: &[Param] = &[
    Param::needed("y1", Kind::Array),
    Param::needed("y2", Kind::Array),
    LABELS,
    Param::new("weights", Kind::OneOf(&[Kind::Choice(&["linear", "quadratic"]), Kind::None]), Preset::None)
        .keyword(),
    WEIGHT,
    Param::new("replace_undefined_by", Kind::Real, Preset::Real(f64::NAN)).keyword(),
];

const REPORT: &[Param] = &[
    Y_TRUE,
    Y_PRED,
    LABELS,
    Param::new("target_names", Kind::OneOf(&[Kind::Sequence, Kind::None]), Preset::None).keyword(),
    WEIGHT,
    Param::new("digits", Kind::Integer, Preset::Integer(2)).keyword(),
    Param::new("output_dict", Kind::Boolean, Preset::Boolean(false)).keyword().fixed(),
    ZERO_DIVISION,
];

/// One number, or an array of them.
pub(super) fn score(score: Score) -> Value {
    match score {
        Score::One(value) => real(value),
        Score::Each(values) => numbers(&values),
    }
}

/// The reduction over classes.
///
/// # Errors
/// `Internal` for a parameter of another kind.
pub(super) fn average(args: Args<'_>) -> Result<Average, Failure> {
    Ok(match args.value("average")?.look() {
        Look::Text("binary") => Average::Binary,
        Look::Text("macro") => Average::Macro,
        Look::Text("micro") => Average::Micro,
        Look::Text(_) => Average::Weighted,
        _ => Average::Each,
    })
}

fn accuracy(
    args: Args<'_>,
    metric: fn(&Tensor, &Tensor, Accuracy) -> crate::Result<f64>,
) -> Result<Value, Failure> {
    let (y_true, y_pred) = pair(args, "y_true", "y_pred")?;
    let options = Accuracy { normalize: args.boolean("normalize")?, sample_weight: weights(args)? };
    Ok(real(metric(&y_true, &y_pred, options)?))
}

/// A metric of true and predicted values that only takes weights.
///
/// # Errors
/// Those of the metric.
pub(super) fn weighted(
    args: Args<'_>,
    metric: fn(&Tensor, &Tensor, Weighted) -> crate::Result<f64>,
) -> Result<Value, Failure> {
    let (y_true, y_pred) = pair(args, "y_true", "y_pred")?;
    Ok(real(metric(&y_true, &y_pred, Weighted { sample_weight: weights(args)? })?))
}

fn zero_division(args: Args<'_>) -> Result<f64, Failure> {
    match args.value("zero_division")?.look() {
        Look::Text(_) => Ok(0.0),
        _ => Ok(args.real("zero_division")?),
    }
}

fn averages(args: Args<'_>) -> Result<Averaged, Failure> {
    Ok(Averaged {
        labels: integers_if_given(args, "labels")?,
        pos_label: args.integer("pos_label")?,
        average: average(args)?,
        sample_weight: weights(args)?,
        zero_division: zero_division(args)?,
    })
}

fn averaged(
    args: Args<'_>,
    metric: fn(&Tensor, &Tensor, Averaged) -> crate::Result<Score>,
) -> Result<Value, Failure> {
    let (y_true, y_pred) = pair(args, "y_true", "y_pred")?;
    Ok(score(metric(&y_true, &y_pred, averages(args)?)?))
}

fn support(args: Args<'_>) -> Result<Value, Failure> {
    let (y_true, y_pred) = pair(args, "y_true", "y_pred")?;
    let Averaged { labels, pos_label, average, sample_weight, zero_division } = averages(args)?;
    let beta = args.real("beta")?;
    let options = PrecisionRecall { beta, labels, pos_label, average, sample_weight, zero_division };
    let found = precision_recall_fscore_support(&y_true, &y_pred, options)?;
    let support = found.support.map_or(Value::None, |support| numbers(&support));
    Ok(Value::Tuple(vec![score(found.precision), score(found.recall), score(found.fscore), support]))
}

fn kappa(args: Args<'_>) -> Result<Value, Failure> {
    let (y1, y2) = pair(args, "y1", "y2")?;
    let options = Kappa {
        labels: integers_if_given(args, "labels")?,
        weights: match args.value("weights")?.look() {
            Look::Text("linear") => Some(Disagreement::Linear),
            Look::Text(_) => Some(Disagreement::Quadratic),
            _ => None,
        },
        sample_weight: weights(args)?,
        replace_undefined_by: args.real("replace_undefined_by")?,
    };
    Ok(real(cohen_kappa_score(&y1, &y2, options)?))
}

/// Digits behind the point: as many as a float can have.
fn digits(args: Args<'_>) -> Result<usize, Failure> {
    match count(args, "digits", 0)? {
        digits if digits <= DIGITS_MAX => Ok(digits),
        digits => Err(Failure::value(format!("digits={digits}: at most {DIGITS_MAX}"))),
    }
}

fn report(args: Args<'_>) -> Result<Value, Failure> {
    let (y_true, y_pred) = pair(args, "y_true", "y_pred")?;
    let target_names = match args.value("target_names")?.look() {
        Look::List(names) | Look::Tuple(names) => {
            let name = |look: Look<'_>| match look {
                Look::Text(name) => name.to_owned(),
                other => other.to_string(),
            };
            Some(names.into_iter().map(name).collect())
        }
        _ => None,
    };
    let options = Report {
        labels: integers_if_given(args, "labels")?,
        target_names,
        sample_weight: weights(args)?,
        digits: digits(args)?,
        zero_division: zero_division(args)?,
    };
    Ok(Value::Text(classification_report(&y_true, &y_pred, options)?.to_string()))
}
