//! Methods of estimators, and their attributes.

use super::args::{ARRAY_OR_NONE, INTEGER_OR_NONE, array, array_if_given, count, function, texts_if_given};
use super::model::real;
use super::object::{Instance, Labels, Samples};
use tharsis_numeric::protocol::{Failure, Scope, Value};
use tharsis_programs::{Argument, Bound, Form, Kind, Param, Preset, Row};

const ESTIMATOR: Param = Param::needed("estimator", Kind::Object);
const X: Param = Param::needed("X", Kind::Array);
const Y: Param = Param::new("y", ARRAY_OR_NONE, Preset::None);

/// Weights of samples: one for each, or the same for all.
const SAMPLE_WEIGHT: Param =
    Param::new("sample_weight", Kind::OneOf(&[Kind::Array, Kind::Real, Kind::None]), Preset::None);

/// Names of features, or none.
const NAMES: Kind = Kind::OneOf(&[Kind::Sequence, Kind::None]);

const MAPPED: &[Param] = &[ESTIMATOR, X];
const SAMPLED: &[Param] = &[ESTIMATOR, X, Y, SAMPLE_WEIGHT];

/// A method that maps samples: the function that reads it tells its name.
macro_rules! map {
    ($method:literal, $doc:literal) => {
        Row {
            name: concat!("sk.", $method),
            form: Form::Method,
            params: MAPPED,
            doc: $doc,
            run: |args, scope| mapped(args, scope, $method),
        }
    };
}

/// The methods of estimators.
pub(super) const ROWS: &[Row<Value, Scope>] = &[
    sampled(
        "sk.fit",
        "fits an estimator, changes it, and returns it; y is needed by those that are supervised",
        |args, scope| {
            fitted(args, scope)?;
            Ok(args.value("estimator")?.clone())
        },
    ),
    sampled("sk.fit_predict", "fits an estimator of clusters; the cluster of each sample", |args, scope| {
        let instance = Instance::in_value(args.value("estimator")?)?;
        let labels = instance.class().fit_predict.ok_or_else(|| instance.lacks("fit_predict"))?;
        let instance = fitted(args, scope)?;
        match labels {
            Labels::Attribute(name) => instance.attribute(name),
            Labels::Method(name) => instance.map(name, &array(args, "X")?),
        }
    }),
    sampled("sk.fit_transform", "fits a transformer; its samples, mapped", |args, scope| {
        let instance = Instance::in_value(args.value("estimator")?)?;
        instance.check_has("transform").map_err(|_| instance.lacks("fit_transform"))?;
        if instance.is_of_sets() {
            return fitted(args, scope)?.map_sets("transform", args.value("X")?, scope);
        }
        instance.fit_transform(&Samples::of(args, instance.class().is_supervised, scope)?, scope)
    }),
    map!("decision_function", "scores of samples, whose signs or order tell their classes"),
    Row {
        name: "sk.get_feature_names_out",
        form: Form::Method,
        params: &[ESTIMATOR, Param::new("input_features", NAMES, Preset::None)],
        doc: "names of the features that a transformer makes, from those of its samples: x0, x1 and so on",
        run: |args, _| {
            let names = texts_if_given(args, "input_features")?;
            Instance::in_value(args.value("estimator")?)?.names(names)
        },
    },
    Row {
        name: "sk.kneighbors",
        form: Form::Method,
        params: &[
            ESTIMATOR,
            Param::new("X", ARRAY_OR_NONE, Preset::None),
            Param::new("n_neighbors", INTEGER_OR_NONE, Preset::None),
            Param::new("return_distance", Kind::Boolean, Preset::Boolean(true)),
        ],
        doc: "distances and numbers of the nearest samples of a fit; without X those of its own samples",
        run: |args, _| {
            let instance = Instance::in_value(args.value("estimator")?)?;
            let is_given = args.some("n_neighbors")?.is_some();
            let count = if is_given { Some(count(args, "n_neighbors", 1)?) } else { None };
            let found = instance.kneighbors(array_if_given(args, "X")?.as_ref(), count)?;
            let [distances, indices] = [found.distances, found.indices].map(Value::Tensor);
            Ok(if args.boolean("return_distance")? {
                Value::Tuple(vec![distances, indices])
            } else {
                indices
            })
        },
    },
    map!("inverse_transform", "samples from what they were mapped to"),
    map!("predict", "targets, labels or clusters of samples"),
    map!("predict_log_proba", "logarithms of the probabilities of classes"),
    map!("predict_proba", "probabilities of classes, which ascend"),
    map!("score_samples", "logarithms of the likelihoods of samples"),
    map!("transform", "samples, mapped"),
    sampled(
        "sk.score",
        "quality of a model on samples: R², accuracy, or what scikit-learn has",
        |args, scope| {
            let instance = Instance::in_value(args.value("estimator")?)?;
            instance.check_has("score")?;
            let weight = args.value("sample_weight")?.look();
            // As in scikit-learn, whose metrics take no single weight, while its clusterings do.
            if instance.class().is_supervised && weight.number().is_some() {
                return Err(Failure::value(format!(
                    "The 'sample_weight' parameter of score must be an array-like or None. Got {weight} instead."
                )));
            }
            let samples = Samples::of(args, instance.class().is_supervised, scope)?;
            Ok(real(instance.score(&samples)?))
        },
    ),
    function(
        "sk.attr",
        &[ESTIMATOR, Param::needed("name", Kind::Text)],
        "a parameter of an estimator, or an attribute of its model",
        |args, _| Instance::in_value(args.value("estimator")?)?.attribute(args.text("name")?),
    ),
];

/// A method that takes samples, targets and weights.
const fn sampled(
    name: &'static str,
    doc: &'static str,
    run: fn(&mut Bound<Value>, &Scope) -> Result<Value, Failure>,
) -> Row<Value, Scope> {
    Row { name, form: Form::Method, params: SAMPLED, doc, run }
}

/// The samples of a call, mapped by a method.
fn mapped(args: &Bound<Value>, scope: &Scope, method: &str) -> Result<Value, Failure> {
    let instance = Instance::in_value(args.value("estimator")?)?;
    if instance.is_of_sets() {
        return instance.map_sets(method, args.value("X")?, scope);
    }
    instance.map(method, &array(args, "X")?)
}

/// The estimator of a call, fitted to its samples.
fn fitted<'a>(args: &'a Bound<Value>, scope: &Scope) -> Result<&'a Instance, Failure> {
    let instance = Instance::in_value(args.value("estimator")?)?;
    if instance.is_of_sets() {
        if args.is_given("sample_weight") {
            let name = instance.class().name;
            let text = format!("{name}.fit() got an unexpected keyword argument 'sample_weight'");
            return Err(Failure::kind(text));
        }
        instance.fit_sets(args.value("X")?)?;
        return Ok(instance);
    }
    instance.fit(&Samples::of(args, instance.class().is_supervised, scope)?, scope)?;
    Ok(instance)
}
