//! Transformers beside each other.

use super::args::{N_JOBS, class};
use super::held::Mapper;
use super::model::{Described, Model};
use super::object::{Class, Instance};
use crate::base::Task;
use crate::compose::{ColumnTransformer, Columns, FittedColumnTransformer, Remainder};
use crate::pipeline::FeatureUnion;
use tharsis_numeric::protocol::{Failure, Scope, Value};
use tharsis_numeric::{DType, Index, Scalar, Tensor};
use tharsis_programs::{Argument, Bound, Kind, Param, Preset, Row};

static COLUMNS: Class = Class {
    absent: &["named_transformers_", "output_indices_", "transformers_"],
    ..Class::unsupervised("ColumnTransformer")
};
static UNION: Class = Class { absent: &["named_transformers"], ..Class::unsupervised("FeatureUnion") };

const WEIGHTS: Param = Param::new("transformer_weights", Kind::Anything, Preset::None).keyword().fixed();
const VERBOSE: Param = Param::new("verbose", Kind::Boolean, Preset::Boolean(false)).keyword().fixed();
const NAMES_OUT: Param =
    Param::new("verbose_feature_names_out", Kind::OneOf(&[Kind::Boolean, Kind::Text]), Preset::Boolean(true))
        .keyword()
        .fixed();

/// The transformers of several.
pub(super) const ROWS: &[Row<Value, Scope>] = &[
    class(
        "sk.compose.ColumnTransformer",
        &[
            Param::needed("transformers", Kind::Sequence),
            Param::new(
                "remainder",
                Kind::OneOf(&[Kind::Choice(&["drop", "passthrough"]), Kind::Object]),
                Preset::Text("drop"),
            )
            .keyword(),
            // Results are dense.
            Param::new("sparse_threshold", Kind::Real, Preset::Real(0.3)).keyword(),
            N_JOBS,
            WEIGHTS,
            VERBOSE,
            NAMES_OUT,
        ],
        "transformers of some columns each, whose results stand beside each other",
        |args, _| Instance::made_from(&COLUMNS, args, of_columns(args)?),
    ),
    class(
        "sk.pipeline.FeatureUnion",
        &[Param::needed("transformer_list", Kind::Sequence), N_JOBS, WEIGHTS, VERBOSE, NAMES_OUT],
        "the results of several transformers of the same samples, beside each other",
        |args, _| Instance::made_from(&UNION, args, of_all(args)?),
    ),
];

/// The elements of a list of tuples of so many.
fn tuples<'a, const N: usize>(args: &'a Bound<Value>, name: &str) -> Result<Vec<&'a [Value; N]>, Failure> {
    let wrong = || Failure::value(format!("'{name}' should be a list of tuples of {N} elements"));
    let (Value::List(tuples) | Value::Tuple(tuples)) = args.value(name)? else { return Err(wrong()) };
    let tuple = |value: &'a Value| match value {
        Value::List(parts) | Value::Tuple(parts) => <&[Value; N]>::try_from(&parts[..]).map_err(|_| wrong()),
        _ => Err(wrong()),
    };
    tuples.iter().map(tuple).collect()
}

/// The name of a part.
fn text(value: &Value) -> Result<&str, Failure> {
    match value {
        Value::Text(name) => Ok(name),
        _ => Err(Failure::kind(format!("expected the name of a part, found {}", value.look()))),
    }
}

/// The columns that a value tells: places, a slice of them, names, or whether each column is one of them.
fn columns_of(value: &Value) -> Result<Columns, Failure> {
    match value {
        Value::Number(_) | Value::Text(_) => {
            return Err(Failure::missing("one column, as an axis less: a list of one column is there"));
        }
        &Value::Index(Index::Slice { start, stop, step }) => {
            return Ok(Columns::Slice { start, stop, step });
        }
        Value::List(parts) | Value::Tuple(parts) if parts.is_empty() => {
            return Ok(Columns::At(Vec::new()));
        }
        Value::List(parts) | Value::Tuple(parts)
            if parts.iter().all(|part| matches!(part, Value::Text(_))) =>
        {
            let names = parts.iter().map(|part| text(part).map(str::to_owned));
            return Ok(Columns::Named(names.collect::<Result<_, _>>()?));
        }
        _ => {}
    }
    let places = super::args::tensor_of(value.clone())?;
    match places.dtype()? {
        DType::Bool => Ok(Columns::Mask(places.to_vec::<bool>()?)),
        dtype if dtype.is_integer() => {
            // A place beyond int64 is none of a feature, and is refused as the largest one is.
            let place = |place: i128| i64::try_from(place).unwrap_or(i64::MAX);
            Ok(Columns::At(super::args::whole_numbers(&places)?.into_iter().map(place).collect()))
        }
        _ => Err(Failure::value(
            "No valid specification of the columns. Only a scalar, list or slice of all integers or all strings, or \
             boolean mask is allowed",
        )),
    }
}

fn of_columns(args: &Bound<Value>) -> Result<ColumnTransformer, Failure> {
    let mut made = ColumnTransformer::new();
    for [name, estimator, columns] in tuples::<3>(args, "transformers")? {
        let (name, columns) = (text(name)?, columns_of(columns)?);
        made = match estimator {
            Value::Text(word) if word == "drop" => made.dropped(name, columns),
            Value::Text(word) if word == "passthrough" => made.passthrough(name, columns),
            estimator => made.part(name, Mapper::of(estimator)?, columns),
        };
    }
    Ok(made.remainder(match args.value("remainder")? {
        Value::Text(word) if word == "drop" => Remainder::drop(),
        Value::Text(_) => Remainder::passthrough(),
        estimator => Remainder::of(Mapper::of(estimator)?),
    }))
}

fn of_all(args: &Bound<Value>) -> Result<FeatureUnion, Failure> {
    let mut made = FeatureUnion::new();
    for [name, estimator] in tuples::<2>(args, "transformer_list")? {
        let name = text(name)?;
        made = match estimator {
            Value::Text(word) if word == "drop" => made.dropped(name),
            Value::Text(word) if word == "passthrough" => made.passthrough(name),
            estimator => made.part(name, Mapper::of(estimator)?),
        };
    }
    Ok(made)
}

impl Described for FittedColumnTransformer {
    const METHODS: &'static [&'static str] = &["transform"];
    const TASK: Task = Task::Unsupervised;
    const HAS_NAMES: bool = true;
}

impl Model for FittedColumnTransformer {
    fn map(&self, method: &str, x: &Tensor) -> Option<Tensor> {
        (method == "transform").then(|| self.transform(x))
    }

    fn names(&self, names: &[String]) -> Option<Vec<String>> {
        crate::base::Transform::feature_names_out(self, names)
    }

    fn attribute(&self, name: &str) -> Option<Value> {
        (name == "sparse_output_").then_some(Value::Number(Scalar::Bool(false)))
    }
}
