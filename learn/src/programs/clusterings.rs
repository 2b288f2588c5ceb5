//! Metrics of two clusterings of the same samples.

use super::args::{function, pair};
use super::model::real;
use crate::metrics::{
    AverageMethod, MutualInfo, VMeasure, adjusted_mutual_info_score, adjusted_rand_score, completeness_score,
    contingency_matrix, fowlkes_mallows_score, homogeneity_completeness_v_measure, homogeneity_score,
    mutual_info_score, normalized_mutual_info_score, pair_confusion_matrix, rand_score, v_measure_score,
};
use tharsis_numeric::Tensor;
use tharsis_numeric::protocol::{Failure, Scope, Value};
use tharsis_programs::{Bound, Kind, Param, Preset, Row};

type Args<'a> = &'a Bound<Value>;

const TRUE: Param = Param::needed("labels_true", Kind::Array);
const PRED: Param = Param::needed("labels_pred", Kind::Array);
const BETA: Param = Param::new("beta", Kind::Real, Preset::Real(1.0)).keyword();
const AVERAGE_METHOD: Param = Param::new(
    "average_method",
    Kind::Choice(&["arithmetic", "max", "min", "geometric"]),
    Preset::Text("arithmetic"),
)
.keyword();

/// The metrics of clusterings.
pub(super) const ROWS: &[Row<Value, Scope>] = &[
    function("sk.metrics.rand_score", &[TRUE, PRED], "share of pairs on which both agree", |args, _| {
        plain(args, rand_score)
    }),
    function(
        "sk.metrics.adjusted_rand_score",
        &[TRUE, PRED],
        "share of pairs on which both agree, beyond chance",
        |args, _| plain(args, adjusted_rand_score),
    ),
    function(
        "sk.metrics.fowlkes_mallows_score",
        &[TRUE, PRED],
        "geometric mean of precision and recall of pairs",
        |args, _| plain(args, fowlkes_mallows_score),
    ),
    function(
        "sk.metrics.mutual_info_score",
        &[TRUE, PRED, Param::new("contingency", Kind::Anything, Preset::None).keyword().fixed()],
        "what one clustering tells of the other, in nats",
        |args, _| plain(args, mutual_info_score),
    ),
    function(
        "sk.metrics.normalized_mutual_info_score",
        &[TRUE, PRED, AVERAGE_METHOD],
        "mutual information in parts of the entropies",
        |args, _| mutual(args, normalized_mutual_info_score),
    ),
    function(
        "sk.metrics.adjusted_mutual_info_score",
        &[TRUE, PRED, AVERAGE_METHOD],
        "mutual information beyond chance",
        |args, _| mutual(args, adjusted_mutual_info_score),
    ),
    function(
        "sk.metrics.homogeneity_score",
        &[TRUE, PRED],
        "part of the classes' entropy that clusters tell",
        |args, _| plain(args, homogeneity_score),
    ),
    function(
        "sk.metrics.completeness_score",
        &[TRUE, PRED],
        "part of the clusters' entropy that classes tell",
        |args, _| plain(args, completeness_score),
    ),
    function(
        "sk.metrics.v_measure_score",
        &[TRUE, PRED, BETA],
        "harmonic mean of homogeneity and completeness",
        |args, _| {
            let (labels, clusters) = pair(args, "labels_true", "labels_pred")?;
            Ok(real(v_measure_score(&labels, &clusters, VMeasure { beta: args.real("beta")? })?))
        },
    ),
    function(
        "sk.metrics.homogeneity_completeness_v_measure",
        &[TRUE, PRED, BETA],
        "homogeneity, completeness and their harmonic mean",
        |args, _| {
            let (labels, clusters) = pair(args, "labels_true", "labels_pred")?;
            let options = VMeasure { beta: args.real("beta")? };
            let found = homogeneity_completeness_v_measure(&labels, &clusters, options)?;
            let parts = [found.homogeneity, found.completeness, found.v_measure];
            Ok(Value::Tuple(parts.map(real).to_vec()))
        },
    ),
    function(
        "sk.metrics.cluster.contingency_matrix",
        &[
            TRUE,
            PRED,
            Param::new("eps", Kind::OneOf(&[Kind::Real, Kind::None]), Preset::None).keyword().fixed(),
            Param::new("sparse", Kind::Boolean, Preset::Boolean(false)).keyword().fixed(),
        ],
        "samples of each class (row) in each cluster (column)",
        |args, _| {
            let (labels, clusters) = pair(args, "labels_true", "labels_pred")?;
            Ok(Value::Tensor(contingency_matrix(&labels, &clusters)?))
        },
    ),
    function(
        "sk.metrics.cluster.pair_confusion_matrix",
        &[TRUE, PRED],
        "pairs that are apart or together in each clustering",
        |args, _| {
            let (labels, clusters) = pair(args, "labels_true", "labels_pred")?;
            Ok(Value::Tensor(pair_confusion_matrix(&labels, &clusters)?))
        },
    ),
];

fn plain(args: Args<'_>, metric: fn(&Tensor, &Tensor) -> crate::Result<f64>) -> Result<Value, Failure> {
    let (labels, clusters) = pair(args, "labels_true", "labels_pred")?;
    Ok(real(metric(&labels, &clusters)?))
}

fn mutual(
    args: Args<'_>,
    metric: fn(&Tensor, &Tensor, MutualInfo) -> crate::Result<f64>,
) -> Result<Value, Failure> {
    let (labels, clusters) = pair(args, "labels_true", "labels_pred")?;
    let average_method = match args.text("average_method")? {
        "geometric" => AverageMethod::Geometric,
        "max" => AverageMethod::Max,
        "min" => AverageMethod::Min,
        _ => AverageMethod::Arithmetic,
    };
    Ok(real(metric(&labels, &clusters, MutualInfo { average_method })?))
}
