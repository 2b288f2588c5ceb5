//! Steps of preparation and a last estimator, as one.

use super::args::class;
use super::held::{Mapper, MemberModel, any, steps, told_methods};
use super::model::{Described, Model, classes, supervised_score};
use super::object::{Class, Instance};
use crate::base::{FitOptions, Predict, Task, Transform};
use crate::held::{Classifies, FittedAny, Regresses, Tells};
use crate::pipeline::{FittedPipeline, Pipeline};
use tharsis_numeric::Tensor;
use tharsis_numeric::protocol::{Failure, Scope, Value};
use tharsis_programs::{Kind, Param, Preset, Row};

static PREDICTS: Class = Class { absent: ABSENT, ..Class::supervised("Pipeline") };
static MAPS: Class = Class { absent: ABSENT, ..Class::unsupervised("Pipeline") };

const ABSENT: &[&str] = &["named_steps"];

/// The pipeline.
pub(super) const ROWS: &[Row<Value, Scope>] = &[class(
    "sk.pipeline.Pipeline",
    &[
        Param::needed("steps", Kind::Sequence),
        Param::new("transform_input", Kind::OneOf(&[Kind::Sequence, Kind::None]), Preset::None)
            .keyword()
            .fixed(),
        Param::new("memory", Kind::OneOf(&[Kind::Text, Kind::None]), Preset::None).keyword().fixed(),
        Param::new("verbose", Kind::Boolean, Preset::Boolean(false)).keyword().fixed(),
    ],
    "steps of preparation, and an estimator of what they make",
    |args, _| {
        let (steps, (name, last)) = steps(args, "steps")?;
        let prepared =
            steps.into_iter().fold(Pipeline::new(), |pipeline, (name, step)| pipeline.step(&name, step));
        match Mapper::task(last)? {
            Task::Classification => {
                Instance::made_from(&PREDICTS, args, prepared.last(name, any::<Classifies>(last)?))
            }
            Task::Regression => {
                Instance::made_from(&PREDICTS, args, prepared.last(name, any::<Regresses>(last)?))
            }
            Task::Unsupervised => Instance::made_from(&MAPS, args, prepared.last(name, last_map(last)?)),
        }
    },
)];

/// A transformer at the end of a pipeline.
fn last_map(value: &Value) -> Result<Mapper, Failure> {
    let missing = |_| Failure::missing("a pipeline whose last step neither predicts a target nor transforms");
    Mapper::of(value).map_err(missing)
}

impl<T: Tells> Described for FittedPipeline<FittedAny<T>> {
    const METHODS: &'static [&'static str] = told_methods::<T>();
    const TASK: Task = T::TASK;
}

impl<T: Tells> Model for FittedPipeline<FittedAny<T>> {
    fn map(&self, method: &str, x: &Tensor) -> Option<Tensor> {
        match method {
            "predict" => Some(self.predict(x)),
            "predict_proba" => self.probabilities(x).map(|(_, chances)| chances),
            "decision_function" => self.decisions(x).map(|(_, decisions)| decisions),
            _ => None,
        }
    }

    fn score(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> crate::Result<f64> {
        supervised_score(self, x, y, options)
    }

    fn attribute(&self, name: &str) -> Option<Value> {
        if name == "classes_" { self.class_labels().map(classes) } else { None }
    }
}

impl Described for FittedPipeline<MemberModel> {
    const METHODS: &'static [&'static str] = &["transform"];
    const TASK: Task = Task::Unsupervised;
    const HAS_NAMES: bool = true;
}

impl Model for FittedPipeline<MemberModel> {
    fn map(&self, method: &str, x: &Tensor) -> Option<Tensor> {
        (method == "transform").then(|| Transform::transform(self, x))
    }

    fn names(&self, names: &[String]) -> Option<Vec<String>> {
        crate::base::Transform::feature_names_out(self, names)
    }

    fn attribute(&self, _: &str) -> Option<Value> {
        None
    }
}
