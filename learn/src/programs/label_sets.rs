//! Sets of labels as rows of zeros and ones. Sets are lists of lists, which are no array.

use super::args::{ARRAY_OR_NONE, class, integers_if_given, tensor_of};
use super::model::{Crossed, Fit, Model, classes};
use super::object::{Class, Instance};
use crate::Result;
use crate::base::{FitOptions, Task};
use crate::checks::refused;
use crate::params::{Params, Setting};
use crate::preprocessing::{FittedMultiLabelBinarizer, MultiLabelBinarizer};
use std::collections::BTreeSet;
use tharsis_graph::Error as GraphError;
use tharsis_numeric::protocol::{Failure, Scope, Value};
use tharsis_numeric::{Scalar, Tensor};
use tharsis_programs::{Argument, Kind, Param, Preset, Row};

const NAME: &str = "MultiLabelBinarizer";

static SETS: Class = Class::unsupervised(NAME);

/// The estimator of sets.
pub(super) const ROWS: &[Row<Value, Scope>] = &[class(
    "sk.preprocessing.MultiLabelBinarizer",
    &[
        Param::new("classes", ARRAY_OR_NONE, Preset::None).keyword(),
        Param::new("sparse_output", Kind::Boolean, Preset::Boolean(false)).keyword().fixed(),
    ],
    "a column for each label of sets of labels, which are lists of lists",
    |args, _| {
        let classes = integers_if_given(args, "classes")?;
        Ok(Instance::made_as(&SETS, args, LabelSets(MultiLabelBinarizer::new().classes(classes))))
    },
)];

/// An estimator of sets, which fits no arrays.
#[derive(Clone)]
struct LabelSets(MultiLabelBinarizer);

impl LabelSets {
    fn fitted(&self, sets: &Value) -> std::result::Result<Box<dyn Model>, Failure> {
        Ok(Box::new(self.0.fit(&labels_of(sets)?)?))
    }
}

impl Fit for LabelSets {
    fn fit(&self, _: &Tensor, _: Option<&Tensor>, _: &FitOptions) -> Result<Box<dyn Model>> {
        Err(refused(format!("{NAME} takes a list of labels for each sample, and no array")))
    }

    fn fit_transform(&self, _: &Tensor, _: Option<&Tensor>, _: &FitOptions) -> Option<Result<Crossed>> {
        None
    }

    fn is_of_sets(&self) -> bool {
        true
    }

    fn fit_sets(&self, sets: &Value) -> Option<std::result::Result<Box<dyn Model>, Failure>> {
        Some(self.fitted(sets))
    }

    fn methods(&self) -> &'static [&'static str] {
        &["inverse_transform", "transform"]
    }

    fn task(&self) -> Task {
        Task::Unsupervised
    }

    fn takes_weights(&self) -> bool {
        false
    }

    fn takes_nan(&self) -> bool {
        false
    }

    fn has_names(&self) -> bool {
        false
    }

    fn params(&self) -> &dyn Params {
        self
    }

    fn params_mut(&mut self) -> &mut dyn Params {
        self
    }

    fn boxed(&self) -> Box<dyn Fit> {
        Box::new(self.clone())
    }
}

/// No parameters that a search may set: it fits arrays.
impl Params for LabelSets {
    fn estimator(&self) -> &'static str {
        NAME
    }

    fn params(&self) -> Vec<(String, Setting)> {
        Vec::new()
    }

    #[track_caller]
    fn set(&mut self, name: &str, _: &Setting) -> Result<()> {
        Err(crate::held::unknown(NAME, &["classes", "sparse_output"], name))
    }
}

impl Model for FittedMultiLabelBinarizer {
    fn map(&self, _: &str, _: &Tensor) -> Option<Tensor> {
        None
    }

    fn map_sets(
        &self,
        method: &str,
        x: &Value,
        scope: &Scope,
    ) -> Option<std::result::Result<Value, Failure>> {
        match method {
            "inverse_transform" => Some(sets_of(self, x)),
            "transform" => Some(rows_of(self, x, scope)),
            _ => None,
        }
    }

    fn attribute(&self, name: &str) -> Option<Value> {
        (name == "classes_").then(|| classes(&self.classes))
    }
}

/// The rows of sets. This process makes them, so they have to fit its memory.
fn rows_of(
    model: &FittedMultiLabelBinarizer,
    x: &Value,
    scope: &Scope,
) -> std::result::Result<Value, Failure> {
    let sets = labels_of(x)?;
    let numbers = (sets.len() as u64).saturating_mul(model.classes.len() as u64);
    let needed_bytes = numbers.saturating_mul(size_of::<i64>() as u64);
    let limit_bytes = scope.executor().limits().memory_bytes;
    if limit_bytes < needed_bytes {
        return Err(Failure::from(GraphError::Memory { needed_bytes, limit_bytes }));
    }
    let known: BTreeSet<i64> = model.classes.iter().copied().collect();
    let unknown: BTreeSet<i64> =
        sets.iter().flatten().copied().filter(|label| !known.contains(label)).collect();
    if !unknown.is_empty() {
        // In the order of their texts, as there.
        let texts: BTreeSet<String> = unknown.iter().map(i64::to_string).collect();
        let texts: Vec<String> = texts.into_iter().collect();
        scope.warn(format!("UserWarning: unknown class(es) [{}] will be ignored", texts.join(", ")));
    }
    Ok(Value::Tensor(model.transform(&sets)))
}

/// The sets of rows, each a tuple.
fn sets_of(model: &FittedMultiLabelBinarizer, x: &Value) -> std::result::Result<Value, Failure> {
    let whole = |label: &i64| Value::Number(Scalar::Int(*label));
    let sets = model.inverse_transform(&tensor_of(x.clone())?)?;
    Ok(Value::List(sets.iter().map(|set| Value::Tuple(set.iter().map(whole).collect())).collect()))
}

/// The labels of each sample, which are whole numbers.
fn labels_of(sets: &Value) -> std::result::Result<Vec<Vec<i64>>, Failure> {
    let labels = |set: &Value| match set {
        Value::List(_) | Value::Tuple(_) => {
            set.integers().map_err(|_| Failure::missing("labels of sets other than whole numbers"))
        }
        other => Err(Failure::kind(format!("expected a list of labels, found {}", other.look()))),
    };
    match sets {
        Value::List(sets) | Value::Tuple(sets) => sets.iter().map(labels).collect(),
        Value::Tensor(_) => Err(Failure::missing("sets of labels as an array: they are lists")),
        other => Err(Failure::kind(format!("expected lists of labels, found {}", other.look()))),
    }
}
