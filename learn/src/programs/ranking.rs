//! Metrics of scores and probabilities, and their curves.

use super::args::{
    LABELS, count, function, integer_if_given, integers_if_given, pair, real_if_given, weights,
};
use super::classification::{WEIGHT, Y_TRUE, average, score};
use super::model::real;
use crate::metrics::{
    AveragePrecision, Brier, Hinge, LogLoss, MultiClass, PrecisionRecallOptions, Roc, RocAuc, TopK, auc,
    average_precision_score, brier_score_loss, hinge_loss, log_loss, precision_recall_curve, roc_auc_score,
    roc_curve, top_k_accuracy_score,
};
use tharsis_numeric::Tensor;
use tharsis_numeric::protocol::{Failure, Scope, Value};
use tharsis_programs::{Argument, Kind, Look, Param, Preset, Row};

const Y_SCORE: Param = Param::needed("y_score", Kind::Array);
const Y_PROBA: Param = Param::needed("y_proba", Kind::Array);
const NORMALIZE: Param = Param::new("normalize", Kind::Boolean, Preset::Boolean(true)).keyword();
const LABEL: Kind = Kind::OneOf(&[Kind::Integer, Kind::Real, Kind::Text, Kind::None]);
const POS_LABEL: Param =
    Param::new("pos_label", LABEL, Preset::None).keyword().only(Kind::OneOf(&[Kind::Integer, Kind::None]));
const AVERAGES: Kind = Kind::OneOf(&[Kind::Choice(&["micro", "macro", "samples", "weighted"]), Kind::None]);
const AVERAGE: Param = Param::new("average", AVERAGES, Preset::Text("macro"))
    .keyword()
    .only(Kind::OneOf(&[Kind::Choice(&["micro", "macro", "weighted"]), Kind::None]));

const fn drop_intermediate(default: bool) -> Param {
    Param::new("drop_intermediate", Kind::Boolean, Preset::Boolean(default)).keyword()
}

/// The metrics of scores and probabilities.
pub(super) const ROWS: &[Row<Value, Scope>] = &[
    function(
        "sk.metrics.roc_auc_score",
        &[
            Y_TRUE,
            Y_SCORE,
            AVERAGE,
            WEIGHT,
            Param::new("max_fpr", Kind::OneOf(&[Kind::Real, Kind::None]), Preset::None).keyword(),
            Param::new("multi_class", Kind::Choice(&["raise", "ovr", "ovo"]), Preset::Text("raise"))
                .keyword(),
            LABELS,
        ],
        "area under the curve of true over false positives",
        |args, _| {
            let (y_true, y_score) = pair(args, "y_true", "y_score")?;
            let options = RocAuc {
                average: average(args)?,
                sample_weight: weights(args)?,
                max_fpr: real_if_given(args, "max_fpr")?,
                multi_class: match args.text("multi_class")? {
                    "ovr" => Some(MultiClass::OneVersusRest),
                    "ovo" => Some(MultiClass::OneVersusOne),
                    _ => None,
                },
                labels: integers_if_given(args, "labels")?,
            };
            Ok(score(roc_auc_score(&y_true, &y_score, options)?))
        },
    ),
    function(
        "sk.metrics.average_precision_score",
        &[
            Y_TRUE,
            Y_SCORE,
            AVERAGE,
            Param::new("pos_label", LABEL, Preset::Integer(1)).keyword().only(Kind::Integer),
            WEIGHT,
        ],
        "mean precision over the steps of recall",
        |args, _| {
            let (y_true, y_score) = pair(args, "y_true", "y_score")?;
            let options = AveragePrecision {
                average: average(args)?,
                pos_label: args.integer("pos_label")?,
                sample_weight: weights(args)?,
            };
            Ok(score(average_precision_score(&y_true, &y_score, options)?))
        },
    ),
    function(
        "sk.metrics.top_k_accuracy_score",
        &[
            Y_TRUE,
            Y_SCORE,
            Param::new("k", Kind::Integer, Preset::Integer(2)).keyword(),
            NORMALIZE,
            WEIGHT,
            LABELS,
        ],
        "share of samples whose class is among the k likeliest",
        |args, _| {
            let (y_true, y_score) = pair(args, "y_true", "y_score")?;
            let options = TopK {
                k: count(args, "k", 1)?,
                normalize: args.boolean("normalize")?,
                sample_weight: weights(args)?,
                labels: integers_if_given(args, "labels")?,
            };
            Ok(real(top_k_accuracy_score(&y_true, &y_score, options)?))
        },
    ),
    function(
        "sk.metrics.roc_curve",
        &[Y_TRUE, Y_SCORE, POS_LABEL, WEIGHT, drop_intermediate(true)],
        "rates of false and of true positives, and their thresholds",
        |args, _| {
            let (y_true, y_score) = pair(args, "y_true", "y_score")?;
            let options = Roc {
                pos_label: integer_if_given(args, "pos_label")?,
                sample_weight: weights(args)?,
                drop_intermediate: args.boolean("drop_intermediate")?,
            };
            let curve = roc_curve(&y_true, &y_score, options)?;
            curves([curve.fpr, curve.tpr, curve.thresholds])
        },
    ),
    function(
        "sk.metrics.precision_recall_curve",
        &[Y_TRUE, Y_SCORE, POS_LABEL, WEIGHT, drop_intermediate(false)],
        "precision and recall, and their thresholds",
        |args, _| {
            let (y_true, y_score) = pair(args, "y_true", "y_score")?;
            let options = PrecisionRecallOptions {
                pos_label: integer_if_given(args, "pos_label")?,
                sample_weight: weights(args)?,
                drop_intermediate: args.boolean("drop_intermediate")?,
            };
            let curve = precision_recall_curve(&y_true, &y_score, options)?;
            curves([curve.precision, curve.recall, curve.thresholds])
        },
    ),
    function(
        "sk.metrics.auc",
        &[Param::needed("x", Kind::Array), Param::needed("y", Kind::Array)],
        "area under a curve of points",
        |args, _| {
            let (x, y) = pair(args, "x", "y")?;
            Ok(real(auc(&x, &y)?))
        },
    ),
    function(
        "sk.metrics.log_loss",
        &[Y_TRUE, Y_PROBA, NORMALIZE, WEIGHT, LABELS],
        "negative logarithm of the probability of the true class",
        |args, _| {
            let (y_true, y_proba) = pair(args, "y_true", "y_proba")?;
            let options = LogLoss {
                normalize: args.boolean("normalize")?,
                sample_weight: weights(args)?,
                labels: integers_if_given(args, "labels")?,
            };
            Ok(real(log_loss(&y_true, &y_proba, options)?))
        },
    ),
    function(
        "sk.metrics.brier_score_loss",
        &[
            Y_TRUE,
            Y_PROBA,
            WEIGHT,
            POS_LABEL,
            LABELS,
            Param::new(
                "scale_by_half",
                Kind::OneOf(&[Kind::Boolean, Kind::Choice(&["auto"])]),
                Preset::Text("auto"),
            )
            .keyword(),
        ],
        "mean square of what probabilities miss",
        |args, _| {
            let (y_true, y_proba) = pair(args, "y_true", "y_proba")?;
            let options = Brier {
                sample_weight: weights(args)?,
                pos_label: integer_if_given(args, "pos_label")?,
                labels: integers_if_given(args, "labels")?,
                scale_by_half: match args.value("scale_by_half")?.look() {
                    Look::Boolean(is_halved) => Some(is_halved),
                    _ => None,
                },
            };
            Ok(real(brier_score_loss(&y_true, &y_proba, options)?))
        },
    ),
    function(
        "sk.metrics.hinge_loss",
        &[Y_TRUE, Param::needed("pred_decision", Kind::Array), LABELS, WEIGHT],
        "mean of what scores lack to a margin of 1",
        |args, _| {
            let (y_true, scores) = pair(args, "y_true", "pred_decision")?;
            let labels = integers_if_given(args, "labels")?;
            Ok(real(hinge_loss(&y_true, &scores, Hinge { labels, sample_weight: weights(args)? })?))
        },
    ),
];

/// The parts of a curve.
fn curves(parts: [Tensor; 3]) -> Result<Value, Failure> {
    for part in &parts {
        part.check()?;
    }
    Ok(Value::Tuple(parts.into_iter().map(Value::Tensor).collect()))
}
