//! The metrics against the answers of scikit-learn that `oracle/record_metrics.py` recorded, with inputs in
//! several kinds of chunks.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::Value;
use tharsis_learn::metrics::*;
use tharsis_learn::{Error, Result};
use tharsis_numeric::{Chunks, DType, Tensor, concatenate};

/// Relative and absolute tolerance: sums are made in another order, logarithms are of another library.
const TOLERANCE: f64 = 1e-9;

/// Ways in which the rows of an input are cut.
#[derive(Clone, Copy, Debug)]
enum Cut {
    Whole,
    /// A chunk for each row.
    Rows,
    /// Chunks of three rows, the last one shorter.
    Ragged,
    /// The number of rows is not known before it runs, and a chunk is empty.
    Late,
}

impl Cut {
    fn of(self, x: &Tensor) -> Tensor {
        let shape = x.shape().unwrap().to_vec();
        match (self, &shape[..]) {
            (Cut::Whole, _) | (_, [] | [0, ..]) => x.clone(),
            (Cut::Rows, [_, rest @ ..]) => x.rechunk(Chunks::PerAxis([&[1], rest].concat())),
            (Cut::Ragged, [_, rest @ ..]) => x.rechunk(Chunks::PerAxis([&[3], rest].concat())),
            (Cut::Late, &[count, ..]) => {
                // Two chunks of rows of which none is kept, and the rows.
                let more = concatenate(&[x, x, x], 0).rechunk(Chunks::PerAxis([&[2], &shape[1..]].concat()));
                let kept = tharsis_numeric::arange(3 * count).greater_equal(2 * count as i64);
                more.filter(&kept.rechunk(Chunks::Each(2)))
            }
        }
    }
}

/// A recorded case whose arrays are cut in one way.
struct Case<'a> {
    arrays: &'a [Value],
    places: &'a [Value],
    options: &'a Value,
    cut: Cut,
}

impl Case<'_> {
    fn array(&self, place: &Value) -> &Value {
        &self.arrays[place.as_u64().unwrap() as usize]
    }

    fn arg(&self, at: usize) -> Tensor {
        self.cut.of(&tensor(self.array(&self.places[at])))
    }

    fn option(&self, name: &str) -> Option<&Value> {
        self.options.get(name).filter(|value| !value.is_null())
    }

    fn number(&self, name: &str, default: f64) -> f64 {
        self.option(name).map_or(default, number)
    }

    fn flag(&self, name: &str, default: bool) -> bool {
        self.option(name).map_or(default, |value| value.as_bool().unwrap())
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.option(name).map(|value| value.as_str().unwrap())
    }

    fn sample_weight(&self) -> Option<Tensor> {
        self.option("sample_weight").map(|place| self.cut.of(&tensor(self.array(place))))
    }

    fn beside(&self) -> Option<Tensor> {
        self.option("Y").map(|place| self.cut.of(&tensor(self.array(place))))
    }

    fn labels(&self) -> Option<Vec<i64>> {
        let place = self.option("labels")?;
        Some(self.array(place).as_array().unwrap().iter().map(|label| label.as_i64().unwrap()).collect())
    }

    fn average(&self, default: Average) -> Average {
        match self.options.get("average") {
            None => default,
            Some(Value::Null) => Average::Each,
            Some(name) => match name.as_str().unwrap() {
                "binary" => Average::Binary,
                "macro" => Average::Macro,
                "micro" => Average::Micro,
                "weighted" => Average::Weighted,
                other => panic!("{other}"),
            },
        }
    }

    fn averaged(&self) -> Averaged {
        Averaged {
            labels: self.labels(),
            pos_label: self.number("pos_label", 1.0) as i64,
            average: self.average(Average::Binary),
            sample_weight: self.sample_weight(),
            zero_division: self.number("zero_division", 0.0),
        }
    }

    fn multioutput(&self) -> MultiOutput {
        match self.option("multioutput") {
            None => MultiOutput::UniformAverage,
            Some(Value::Array(weights)) => MultiOutput::Weights(weights.iter().map(number).collect()),
            Some(name) => match name.as_str().unwrap() {
                "raw_values" => MultiOutput::RawValues,
                "variance_weighted" => MultiOutput::VarianceWeighted,
                other => panic!("{other}"),
            },
        }
    }

    fn regression(&self) -> Regression {
        Regression { sample_weight: self.sample_weight(), multioutput: self.multioutput() }
    }

    fn explained(&self) -> Explained {
        Explained {
            sample_weight: self.sample_weight(),
            multioutput: self.multioutput(),
            force_finite: self.flag("force_finite", true),
        }
    }

    fn pinball(&self) -> Pinball {
        Pinball {
            alpha: self.number("alpha", 0.5),
            sample_weight: self.sample_weight(),
            multioutput: self.multioutput(),
        }
    }

    fn tweedie(&self) -> Tweedie {
        Tweedie { sample_weight: self.sample_weight(), power: self.number("power", 0.0) }
    }

    fn weighted(&self) -> Weighted {
        Weighted { sample_weight: self.sample_weight() }
    }

    fn accuracy(&self) -> Accuracy {
        Accuracy { normalize: self.flag("normalize", true), sample_weight: self.sample_weight() }
    }

    fn mutual_info(&self) -> MutualInfo {
        let average_method = match self.text("average_method") {
            None | Some("arithmetic") => AverageMethod::Arithmetic,
            Some("geometric") => AverageMethod::Geometric,
            Some("max") => AverageMethod::Max,
            Some("min") => AverageMethod::Min,
            Some(other) => panic!("{other}"),
        };
        MutualInfo { average_method }
    }

    fn pos_label(&self) -> Option<i64> {
        self.option("pos_label").map(|label| label.as_i64().unwrap())
    }
}

/// An answer as the recorded ones are written.
#[derive(Debug)]
enum Answer {
    Numbers(Vec<f64>),
    Text(String),
}

impl From<f64> for Answer {
    fn from(value: f64) -> Answer {
        Answer::Numbers(vec![value])
    }
}

impl From<Score> for Answer {
    fn from(score: Score) -> Answer {
        Answer::Numbers(score.values().to_vec())
    }
}

fn of_tensor(x: &Tensor) -> Result<Answer> {
    Ok(Answer::Numbers(x.astype(DType::F64).to_vec()?))
}

/// The answer of this crate for a case.
fn answer(metric: &str, case: &Case) -> Result<Answer> {
    let (a, b) = (case.arg(0), if case.places.len() < 2 { case.arg(0) } else { case.arg(1) });
    Ok(match metric {
        "accuracy_score" => accuracy_score(&a, &b, case.accuracy())?.into(),
        "zero_one_loss" => zero_one_loss(&a, &b, case.accuracy())?.into(),
        "hamming_loss" => hamming_loss(&a, &b, case.weighted())?.into(),
        "matthews_corrcoef" => matthews_corrcoef(&a, &b, case.weighted())?.into(),
        "balanced_accuracy_score" => {
            let (sample_weight, adjusted) = (case.sample_weight(), case.flag("adjusted", false));
            balanced_accuracy_score(&a, &b, BalancedAccuracy { sample_weight, adjusted })?.into()
        }
        "confusion_matrix" => {
            let normalize = case.text("normalize").map(|name| match name {
                "all" => Normalize::All,
                "pred" => Normalize::Pred,
                "true" => Normalize::True,
                other => panic!("{other}"),
            });
            let (labels, sample_weight) = (case.labels(), case.sample_weight());
            of_tensor(&confusion_matrix(&a, &b, Confusion { labels, sample_weight, normalize })?)?
        }
        "multilabel_confusion_matrix" => {
            let (labels, sample_weight) = (case.labels(), case.sample_weight());
            of_tensor(&multilabel_confusion_matrix(&a, &b, ByClass { labels, sample_weight })?)?
        }
        "cohen_kappa_score" => {
            let weights = case.text("weights").map(|name| match name {
                "linear" => Disagreement::Linear,
                "quadratic" => Disagreement::Quadratic,
                other => panic!("{other}"),
            });
            let replace_undefined_by = case.number("replace_undefined_by", f64::NAN);
            let (labels, sample_weight) = (case.labels(), case.sample_weight());
            cohen_kappa_score(&a, &b, Kappa { labels, weights, sample_weight, replace_undefined_by })?.into()
        }
        "precision_score" => precision_score(&a, &b, case.averaged())?.into(),
        "recall_score" => recall_score(&a, &b, case.averaged())?.into(),
        "f1_score" => f1_score(&a, &b, case.averaged())?.into(),
        "jaccard_score" => jaccard_score(&a, &b, case.averaged())?.into(),
        "fbeta_score" => {
            let beta = number(case.array(&case.places[2]));
            fbeta_score(&a, &b, beta, case.averaged())?.into()
        }
        "precision_recall_fscore_support" => {
            let options =
                PrecisionRecall { sample_weight: case.sample_weight(), ..PrecisionRecall::default() };
            let found = precision_recall_fscore_support(&a, &b, options)?;
            let columns = [found.precision.values(), found.recall.values(), found.fscore.values()];
            Answer::Numbers([&columns.concat()[..], &found.support.unwrap()].concat())
        }
        "classification_report" => {
            let names = case.option("target_names").map(|names| {
                names.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
            });
            let options = Report {
                labels: case.labels(),
                target_names: names,
                sample_weight: case.sample_weight(),
                digits: case.number("digits", 2.0) as usize,
                zero_division: case.number("zero_division", 0.0),
            };
            Answer::Text(classification_report(&a, &b, options)?.to_string())
        }
        "log_loss" => {
            let (sample_weight, labels) = (case.sample_weight(), case.labels());
            let normalize = case.flag("normalize", true);
            log_loss(&a, &b, LogLoss { normalize, sample_weight, labels })?.into()
        }
        "brier_score_loss" => {
            let scale_by_half = case.option("scale_by_half").map(|value| value.as_bool().unwrap());
            let (sample_weight, labels) = (case.sample_weight(), case.labels());
            let pos_label = case.pos_label();
            brier_score_loss(&a, &b, Brier { sample_weight, pos_label, labels, scale_by_half })?.into()
        }
        "hinge_loss" => {
            let (labels, sample_weight) = (case.labels(), case.sample_weight());
            hinge_loss(&a, &b, Hinge { labels, sample_weight })?.into()
        }
        "roc_curve" => {
            let (pos_label, sample_weight) = (case.pos_label(), case.sample_weight());
            let drop_intermediate = case.flag("drop_intermediate", true);
            let curve = roc_curve(&a, &b, Roc { pos_label, sample_weight, drop_intermediate })?;
            of_tensor(&concatenate(&[&curve.fpr, &curve.tpr, &curve.thresholds], 0))?
        }
        "precision_recall_curve" => {
            let (pos_label, sample_weight) = (case.pos_label(), case.sample_weight());
            let drop_intermediate = case.flag("drop_intermediate", false);
            let options = PrecisionRecallOptions { pos_label, sample_weight, drop_intermediate };
            let curve = precision_recall_curve(&a, &b, options)?;
            of_tensor(&concatenate(&[&curve.precision, &curve.recall, &curve.thresholds], 0))?
        }
        "auc" => auc(&a, &b)?.into(),
        "roc_auc_score" => {
            let multi_class = case.text("multi_class").map(|name| match name {
                "ovo" => MultiClass::OneVersusOne,
                "ovr" => MultiClass::OneVersusRest,
                other => panic!("{other}"),
            });
            let options = RocAuc {
                average: case.average(Average::Macro),
                sample_weight: case.sample_weight(),
                max_fpr: case.option("max_fpr").map(number),
                multi_class,
                labels: case.labels(),
            };
            roc_auc_score(&a, &b, options)?.into()
        }
        "average_precision_score" => {
            let (average, sample_weight) = (case.average(Average::Macro), case.sample_weight());
            let pos_label = case.pos_label().unwrap_or(1);
            average_precision_score(&a, &b, AveragePrecision { average, pos_label, sample_weight })?.into()
        }
        "top_k_accuracy_score" => {
            let options = TopK {
                k: case.number("k", 2.0) as usize,
                normalize: case.flag("normalize", true),
                sample_weight: case.sample_weight(),
                labels: case.labels(),
            };
            top_k_accuracy_score(&a, &b, options)?.into()
        }
        _ => return answer_of_numbers(metric, case, &a, &b),
    })
}

fn answer_of_numbers(metric: &str, case: &Case, a: &Tensor, b: &Tensor) -> Result<Answer> {
    Ok(match metric {
        "mean_squared_error" => mean_squared_error(a, b, case.regression())?.into(),
        "root_mean_squared_error" => root_mean_squared_error(a, b, case.regression())?.into(),
        "mean_absolute_error" => mean_absolute_error(a, b, case.regression())?.into(),
        "mean_absolute_percentage_error" => mean_absolute_percentage_error(a, b, case.regression())?.into(),
        "median_absolute_error" => median_absolute_error(a, b, case.regression())?.into(),
        "mean_squared_log_error" => mean_squared_log_error(a, b, case.regression())?.into(),
        "root_mean_squared_log_error" => root_mean_squared_log_error(a, b, case.regression())?.into(),
        "d2_absolute_error_score" => d2_absolute_error_score(a, b, case.regression())?.into(),
        "mean_pinball_loss" => mean_pinball_loss(a, b, case.pinball())?.into(),
        "d2_pinball_score" => d2_pinball_score(a, b, case.pinball())?.into(),
        "r2_score" => r2_score(a, b, case.explained())?.into(),
        "explained_variance_score" => explained_variance_score(a, b, case.explained())?.into(),
        "max_error" => max_error(a, b)?.into(),
        "mean_tweedie_deviance" => mean_tweedie_deviance(a, b, case.tweedie())?.into(),
        "mean_poisson_deviance" => mean_poisson_deviance(a, b, case.weighted())?.into(),
        "mean_gamma_deviance" => mean_gamma_deviance(a, b, case.weighted())?.into(),
        "d2_tweedie_score" => d2_tweedie_score(a, b, case.tweedie())?.into(),
        "rand_score" => rand_score(a, b)?.into(),
        "adjusted_rand_score" => adjusted_rand_score(a, b)?.into(),
        "fowlkes_mallows_score" => fowlkes_mallows_score(a, b)?.into(),
        "mutual_info_score" => mutual_info_score(a, b)?.into(),
        "homogeneity_score" => homogeneity_score(a, b)?.into(),
        "completeness_score" => completeness_score(a, b)?.into(),
        "v_measure_score" => v_measure_score(a, b, VMeasure { beta: case.number("beta", 1.0) })?.into(),
        "homogeneity_completeness_v_measure" => {
            let found = homogeneity_completeness_v_measure(a, b, ..)?;
            Answer::Numbers(vec![found.homogeneity, found.completeness, found.v_measure])
        }
        "normalized_mutual_info_score" => normalized_mutual_info_score(a, b, case.mutual_info())?.into(),
        "adjusted_mutual_info_score" => adjusted_mutual_info_score(a, b, case.mutual_info())?.into(),
        _ => of_tensor(&pairwise(metric, case, a))?,
    })
}

fn pairwise(metric: &str, case: &Case, x: &Tensor) -> Tensor {
    let y = case.beside();
    let gamma = case.option("gamma").map(number);
    match metric {
        "euclidean_distances" => {
            euclidean_distances(x, Euclidean { y, squared: case.flag("squared", false) })
        }
        "manhattan_distances" => manhattan_distances(x, Beside { y }),
        "cosine_similarity" => cosine_similarity(x, Beside { y }),
        "cosine_distances" => cosine_distances(x, Beside { y }),
        "haversine_distances" => haversine_distances(x, Beside { y }),
        "linear_kernel" => linear_kernel(x, Beside { y }),
        "polynomial_kernel" => {
            let (degree, coef0) = (case.number("degree", 3.0), case.number("coef0", 1.0));
            polynomial_kernel(x, Polynomial { y, degree, gamma, coef0 })
        }
        "sigmoid_kernel" => sigmoid_kernel(x, Sigmoid { y, gamma, coef0: case.number("coef0", 1.0) }),
        "rbf_kernel" => rbf_kernel(x, Rbf { y, gamma }),
        "laplacian_kernel" => laplacian_kernel(x, Rbf { y, gamma }),
        other => panic!("no such metric: {other}"),
    }
}

/// A number of the record, which has some as text.
fn number(value: &Value) -> f64 {
    match value {
        Value::Bool(value) => f64::from(u8::from(*value)),
        Value::String(text) => text.parse().unwrap(),
        value => value.as_f64().unwrap(),
    }
}

/// All numbers of nested arrays.
fn flat(value: &Value, into: &mut Vec<f64>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| flat(item, into)),
        value => into.push(number(value)),
    }
}

fn shape(value: &Value) -> Vec<usize> {
    let Value::Array(items) = value else { return Vec::new() };
    let inner = items.first().map_or_else(Vec::new, shape);
    [&[items.len()], &inner[..]].concat()
}

fn leaves<'a>(value: &'a Value, into: &mut Vec<&'a Value>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| leaves(item, into)),
        value => into.push(value),
    }
}

/// An array of the record: of booleans, of integers, else of float64.
fn tensor(value: &Value) -> Tensor {
    let (shape, mut found) = (shape(value), Vec::new());
    leaves(value, &mut found);
    if found.iter().all(|leaf| leaf.is_i64()) {
        let labels: Vec<i64> = found.iter().map(|leaf| leaf.as_i64().unwrap()).collect();
        return Tensor::from_elements(&shape, &labels);
    }
    let numbers: Vec<f64> = found.iter().map(|leaf| number(leaf)).collect();
    let numbers = Tensor::from_elements(&shape, &numbers);
    if found.iter().all(|leaf| leaf.is_boolean()) { numbers.astype(DType::Bool) } else { numbers }
}

fn is_close(found: f64, expected: f64) -> bool {
    (found.is_nan() && expected.is_nan())
        || found == expected
        || (found - expected).abs() <= TOLERANCE * expected.abs().max(1.0)
}

/// Why an answer is not the recorded one.
fn difference(found: std::result::Result<Answer, Error>, expected: &Value) -> Option<String> {
    match (found, expected) {
        (Err(error), Value::Object(refusal)) => {
            let class = refusal["error"].as_str().unwrap();
            (error.class() != class).then(|| format!("{class} expected, found {}: {error}", error.class()))
        }
        (Err(error), _) => Some(format!("{error}")),
        (Ok(found), Value::Object(refusal)) => {
            Some(format!("{} expected, found {found:?}", refusal["error"]))
        }
        (Ok(Answer::Text(found)), expected) => {
            (Some(&found[..]) != expected.as_str()).then(|| format!("found\n{found}\nexpected\n{expected}"))
        }
        (Ok(Answer::Numbers(found)), expected) => {
            let mut numbers = Vec::new();
            flat(expected, &mut numbers);
            let same = found.len() == numbers.len()
                && found.iter().zip(&numbers).all(|(&found, &expected)| is_close(found, expected));
            (!same).then(|| format!("found {found:?}, expected {numbers:?}"))
        }
    }
}

/// Runs the recorded cases of some metrics, each with whole inputs and in one other cut.
fn check(is_chosen: impl Fn(&str) -> bool) {
    let record: Value = serde_json::from_str(include_str!("oracle/metrics.json")).unwrap();
    let arrays = record["arrays"].as_array().unwrap();
    let (mut run, mut failed) = (0, Vec::new());
    for (index, case) in record["cases"].as_array().unwrap().iter().enumerate() {
        let metric = case[0].as_str().unwrap();
        if !is_chosen(metric) {
            continue;
        }
        for cut in [Cut::Whole, [Cut::Rows, Cut::Ragged, Cut::Late][index % 3]] {
            let places = case[1].as_array().unwrap();
            let found = answer(metric, &Case { arrays, places, options: &case[2], cut });
            run += 1;
            if let Some(why) = difference(found, &case[3]) {
                let inputs: Vec<&Value> =
                    places.iter().map(|place| &arrays[place.as_u64().unwrap() as usize]).collect();
                failed.push(format!("{metric}{inputs:?} {} {cut:?}: {why}", case[2]));
            }
        }
    }
    assert!(100 < run, "only {run} cases were run");
    assert!(failed.is_empty(), "{} of {run} differ:\n{}", failed.len(), failed.join("\n"));
}

const CLUSTERING: [&str; 10] = [
    "rand_score",
    "adjusted_rand_score",
    "fowlkes_mallows_score",
    "mutual_info_score",
    "homogeneity_score",
    "completeness_score",
    "v_measure_score",
    "homogeneity_completeness_v_measure",
    "normalized_mutual_info_score",
    "adjusted_mutual_info_score",
];

const RANKING: [&str; 6] = [
    "roc_curve",
    "precision_recall_curve",
    "auc",
    "roc_auc_score",
    "average_precision_score",
    "top_k_accuracy_score",
];

const PROBABILITIES: [&str; 3] = ["log_loss", "brier_score_loss", "hinge_loss"];

const LABELS: [&str; 15] = [
    "multilabel_confusion_matrix",
    "accuracy_score",
    "zero_one_loss",
    "hamming_loss",
    "confusion_matrix",
    "balanced_accuracy_score",
    "matthews_corrcoef",
    "cohen_kappa_score",
    "precision_recall_fscore_support",
    "classification_report",
    "precision_score",
    "recall_score",
    "f1_score",
    "fbeta_score",
    "jaccard_score",
];

#[test]
fn metrics_of_labels_are_scikit_learns() {
    check(|metric| LABELS.contains(&metric));
}

#[test]
fn metrics_of_clusterings_are_scikit_learns() {
    check(|metric| CLUSTERING.contains(&metric));
}

#[test]
fn losses_of_probabilities_are_scikit_learns() {
    check(|metric| PROBABILITIES.contains(&metric));
}

#[test]
fn metrics_of_rankings_are_scikit_learns() {
    check(|metric| RANKING.contains(&metric));
}

#[test]
fn metrics_of_numbers_and_of_pairs_of_rows_are_scikit_learns() {
    let others = [&LABELS[..], &CLUSTERING, &PROBABILITIES, &RANKING].concat();
    check(|metric| !others.contains(&metric));
}

#[test]
fn labels_that_are_floats_or_exceed_int64_are_refused() {
    let labels = tharsis_numeric::array([1.0, 0.0]);
    assert_eq!(accuracy_score(&labels, &labels, ..).unwrap_err().class(), "TypeError");
    let large = tharsis_numeric::array([u64::MAX, 0]);
    let error = confusion_matrix(&large, &large, ..).unwrap_err();
    assert_eq!(error.class(), "ValueError");
    assert!(error.to_string().contains("exceed int64"), "{error}");
    let small = tharsis_numeric::array([2u64, 0]);
    assert_eq!(accuracy_score(&small, &tharsis_numeric::array([2i8, 1]), ..).unwrap(), 0.5);
}

#[test]
fn errors_have_scikit_learns_texts_and_the_line_of_the_caller() {
    let (three, four) = (tharsis_numeric::arange(3), tharsis_numeric::arange(4));
    let error = f1_score(&three, &four, ..).unwrap_err();
    assert_eq!(error.location().line(), line!() - 1);
    let text = "Found input variables with inconsistent numbers of samples: [3, 4]";
    assert!(error.to_string().starts_with(text), "{error}");
    let error = f1_score(&three, &three, ..).unwrap_err();
    assert!(error.to_string().starts_with("Target is multiclass but average='binary'."), "{error}");
    let scores = tharsis_numeric::array([0.5, f64::NAN, 1.0]);
    let error = roc_auc_score(&three.equal(1), &scores, ..).unwrap_err();
    assert!(error.to_string().starts_with("Input y_score contains NaN or infinity."), "{error}");
}

#[test]
fn a_table_of_too_many_labels_is_refused_before_it_is_made() {
    let labels = tharsis_numeric::arange(3000) * 1_000_003;
    let error = mutual_info_score(&labels, &labels).unwrap_err();
    assert!(error.to_string().contains("3000 and 3000 distinct values"), "{error}");
}

#[test]
fn cosines_of_the_largest_and_the_smallest_numbers_are_right() {
    let x = tharsis_numeric::array([1e300, 0.0, 1e-300, 1e-300]).reshape(&[2, 2]);
    let found = cosine_similarity(&x, ..).to_vec::<f64>().unwrap();
    let half = 0.5f64.sqrt();
    assert!(
        found.iter().zip([1.0, half, half, 1.0]).all(|(&found, expected)| is_close(found, expected)),
        "{found:?}"
    );
}

#[test]
fn ranks_of_many_samples_are_counted_by_the_distributed_sort() {
    // Longer than what one task sorts. The score of sample i is i / 4 for i of a permutation: ties of four.
    let count = 3 << 19;
    let place = (tharsis_numeric::arange(count) * 5).remainder(count as i64);
    let scores = place.floor_divide(4).rechunk(Chunks::Each(1 << 17));
    let is_positive = place.remainder(3).equal(0);
    let found = roc_auc_score(&is_positive, &scores, ..).unwrap().value();
    let (mut below, mut pairs) = (0.0, 0.0);
    for group in 0..count / 4 {
        let positive = (4 * group..4 * group + 4).filter(|place| place % 3 == 0).count() as f64;
        pairs += positive * (below + 0.5 * (4.0 - positive));
        below += 4.0 - positive;
    }
    let expected = pairs / (below * (count as f64 - below));
    assert!((found - expected).abs() < 1e-12, "{found}, expected {expected}");
}

/// Sums of weights in another order differ by rounding.
#[test]
fn curves_end_at_one() {
    let weights: Vec<f64> = (0..40).map(|at| 0.1 + 0.01 * f64::from(at % 7)).collect();
    let weights = Tensor::from_elements(&[40], &weights);
    let y = tharsis_numeric::arange(40) % 2;
    let score = (tharsis_numeric::arange(40) * 7) % 40;
    for drop_intermediate in [false, true] {
        let options = Roc { sample_weight: Some(weights.clone()), drop_intermediate, ..Roc::default() };
        let curve = roc_curve(&y, &score, options).unwrap();
        for rates in [curve.fpr, curve.tpr] {
            let rates = rates.to_vec::<f64>().unwrap();
            assert_eq!((rates[0], *rates.last().unwrap()), (0.0, 1.0));
        }
        let options = PrecisionRecallOptions {
            sample_weight: Some(weights.clone()),
            drop_intermediate,
            ..PrecisionRecallOptions::default()
        };
        let recall = precision_recall_curve(&y, &score, options).unwrap().recall.to_vec::<f64>().unwrap();
        assert_eq!((recall[0], *recall.last().unwrap()), (1.0, 0.0));
    }
}

#[test]
fn any_weight_of_recall_has_a_score() {
    let (y, found) = (tharsis_numeric::array([1i64, 1, 0, 1]), tharsis_numeric::array([1i64, 0, 1, 0]));
    let recall = recall_score(&y, &found, ..).unwrap().value();
    for beta in [1e8, 1e154, 1e200, f64::MAX, f64::INFINITY] {
        let score = fbeta_score(&y, &found, beta, ..).unwrap().value();
        assert!((score - recall).abs() < 1e-12, "{beta}: {score}");
    }
    for beta in [-1.0, f64::NAN, f64::NEG_INFINITY] {
        let error = fbeta_score(&y, &found, beta, ..).unwrap_err();
        assert!(error.to_string().contains("in the range [0.0, inf]"), "{error}");
    }
}
