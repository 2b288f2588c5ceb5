//! Fitted models of any estimator, and their attributes as values of programs.

use crate::Result;
use crate::base::{self, FitOptions, Task};
use crate::checks::refused;
use crate::dense::tensor;
use crate::labels::class_tensor;
use crate::neighbors::Neighbors;
use crate::params::Params;
use ndarray::{Array, Dimension};
use std::any::Any;
use std::marker::PhantomData;
use tharsis_numeric::protocol::{Failure, Scope, Value};
use tharsis_numeric::{Scalar, Tensor};

/// An estimator of any type.
pub(super) trait Fit: Send + Sync {
    /// Fits a model.
    fn fit(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Result<Box<dyn Model>>;

    /// A model, and the samples of its fit, where those are not what the model maps them to.
    fn fit_transform(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Option<Result<Crossed>>;

    /// Whether a fit takes sets of labels, which are no array.
    fn is_of_sets(&self) -> bool {
        false
    }

    /// A model of sets of labels; none of estimators of arrays.
    fn fit_sets(&self, _: &Value) -> Option<std::result::Result<Box<dyn Model>, Failure>> {
        None
    }

    /// The methods of its models.
    fn methods(&self) -> &'static [&'static str];

    /// The kind of what its models tell.
    fn task(&self) -> Task;

    /// Whether a fit takes weights of samples.
    fn takes_weights(&self) -> bool;

    /// Whether NaN may stand for missing values.
    fn takes_nan(&self) -> bool;

    /// Whether the features that its models make have names.
    fn has_names(&self) -> bool;

    /// Its parameters by name.
    fn params(&self) -> &dyn Params;

    fn params_mut(&mut self) -> &mut dyn Params;

    fn boxed(&self) -> Box<dyn Fit>;
}

/// A model, and the samples of its fit, mapped in their own way.
pub(super) type Crossed = (Box<dyn Model>, Tensor);

/// A model of any type.
pub(super) trait Model: Any + Send + Sync {
    /// The samples, mapped by a method; none if the model has no such method.
    fn map(&self, method: &str, x: &Tensor) -> Option<Tensor>;

    /// As [`Model::map`], of sets of labels, or to them; none of models of arrays.
    fn map_sets(&self, _: &str, _: &Value, _: &Scope) -> Option<std::result::Result<Value, Failure>> {
        None
    }

    /// scikit-learn's `score`. Callers look for it among the methods first.
    ///
    /// # Errors
    /// Those of the score; `ValueError` if the model has none.
    fn score(&self, _: &Tensor, _: Option<&Tensor>, _: &FitOptions) -> Result<f64> {
        Err(refused("the model has no score"))
    }

    /// scikit-learn's `kneighbors`; none if the model has no such method.
    fn kneighbors(&self, _: Option<&Tensor>, _: Option<usize>) -> Option<Result<Neighbors>> {
        None
    }

    /// The names of the features of results, from those of the samples; none if they have none.
    fn names(&self, _: &[String]) -> Option<Vec<String>> {
        None
    }

    /// The attribute of this name, if the model has it.
    fn attribute(&self, name: &str) -> Option<Value>;

    /// Whether the solver has found what it looked for.
    fn is_converged(&self) -> bool {
        true
    }
}

/// Methods of a type of models, and what they tell.
pub(super) trait Described: Model {
    /// Those of [`Model::map`], and `score`.
    const METHODS: &'static [&'static str];
    /// The kind of the predictions: what the type is as [`base::Predict`], by [`task_of`].
    const TASK: Task;
    /// Whether [`Model::names`] tells names.
    const HAS_NAMES: bool = false;
}

/// The task of a type, for [`task_of`].
pub(super) struct TaskOf<M>(PhantomData<M>);

impl<M: base::Predict> TaskOf<M> {
    pub(super) const TASK: Task = M::TASK;
}

/// The task of types that predict nothing, such as transformers.
pub(super) trait NoTask {
    const TASK: Task = Task::Unsupervised;
}

impl<M> NoTask for TaskOf<M> {}

/// The task of a type of models: its own one if it predicts, which is told from the type alone. Constants of
/// types go before those of traits where both are there, so it takes types without parameters only.
macro_rules! task_of {
    ($model:ty) => {{
        // Of types that predict nothing reads it.
        #[allow(unused_imports)]
        use $crate::programs::model::NoTask;
        <$crate::programs::model::TaskOf<$model>>::TASK
    }};
}
pub(super) use task_of;

/// The names of a type, for [`has_names`] and [`names_of`].
pub(super) struct NamesOf<M>(PhantomData<M>);

impl<M: base::Transform> NamesOf<M> {
    pub(super) const HAS: bool = true;

    pub(super) fn of(model: &M, names: &[String]) -> Option<Vec<String>> {
        model.feature_names_out(names)
    }
}

/// The names of types that make no features.
pub(super) trait NoNames {
    type Model;

    const HAS: bool = false;

    fn of(_: &Self::Model, _: &[String]) -> Option<Vec<String>> {
        None
    }
}

impl<M> NoNames for NamesOf<M> {
    type Model = M;
}

/// Whether a type of models makes features that have names: told from the type alone, as [`task_of`].
macro_rules! has_names {
    ($model:ty) => {{
        // Of types that make features nothing reads it.
        #[allow(unused_imports)]
        use $crate::programs::model::NoNames;
        <$crate::programs::model::NamesOf<$model>>::HAS
    }};
}
pub(super) use has_names;

/// The names of the features that a model of a type makes.
macro_rules! names_of {
    ($model:ty, $own:expr, $names:expr) => {{
        // Of types that make features nothing reads it.
        #[allow(unused_imports)]
        use $crate::programs::model::NoNames;
        <$crate::programs::model::NamesOf<$model>>::of($own, $names)
    }};
}
pub(super) use names_of;

impl<E> Fit for E
where
    E: base::Estimator + Params + Clone + Send + Sync + 'static,
    E::Fitted: Described + 'static,
{
    fn fit(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Result<Box<dyn Model>> {
        Ok(Box::new(self.fit_any(x, y, options)?))
    }

    fn fit_transform(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Option<Result<Crossed>> {
        let made = self.fit_transform_any(x, y, options)?;
        Some(made.map(|(model, samples)| -> Crossed { (Box::new(model), samples) }))
    }

    fn methods(&self) -> &'static [&'static str] {
        <E::Fitted as Described>::METHODS
    }

    fn task(&self) -> Task {
        <E::Fitted as Described>::TASK
    }

    fn takes_weights(&self) -> bool {
        base::Estimator::takes_weights(self)
    }

    fn takes_nan(&self) -> bool {
        base::Estimator::takes_nan(self)
    }

    fn has_names(&self) -> bool {
        <E::Fitted as Described>::HAS_NAMES
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

/// A type of models as [`Model`]: the methods that map samples, the score, and the attributes.
macro_rules! model {
    (
        $model:ty,
        maps: [$($map:ident),*],
        $(results: [$($result:ident),*],)?
        $(options: [$($option:ident),*],)?
        $(neighbors: $kneighbors:ident,)?
        $(score: |$scored:ident, $x:ident, $y:ident, $options:ident| $score:expr,)?
        $(converged: |$solved:ident| $converged:expr,)?
        attributes: |$read:ident| { $($name:literal => $value:expr),* $(,)? } $(,)?
    ) => {
        impl $crate::programs::model::Described for $model {
            const METHODS: &'static [&'static str] = &[
                $(stringify!($map),)*
                $($(stringify!($result),)*)?
                $($(stringify!($option),)*)?
                $(stringify!($kneighbors),)?
                $($crate::programs::model::scored!($scored),)?
            ];
            const TASK: $crate::base::Task = $crate::programs::model::task_of!($model);
            const HAS_NAMES: bool = $crate::programs::model::has_names!($model);
        }

        impl $crate::programs::model::Model for $model {
            fn map(&self, method: &str, x: &tharsis_numeric::Tensor) -> Option<tharsis_numeric::Tensor> {
                $(if method == stringify!($map) {
                    return Some(self.$map(x));
                })*
                $($(if method == stringify!($result) {
                    return Some(self.$result(x).unwrap_or_else(tharsis_numeric::Tensor::from));
                })*)?
                $($(if method == stringify!($option) {
                    return self.$option(x);
                })*)?
                // A model may have no such method at all.
                let _ = (method, x);
                None
            }

            $(fn kneighbors(
                &self,
                x: Option<&tharsis_numeric::Tensor>,
                count: Option<usize>,
            ) -> Option<$crate::Result<$crate::neighbors::Neighbors>> {
                Some(self.$kneighbors(x, count))
            })?

            $(fn score(
                &self,
                x: &tharsis_numeric::Tensor,
                y: Option<&tharsis_numeric::Tensor>,
                options: &$crate::FitOptions,
            ) -> $crate::Result<f64> {
                let ($scored, $x, $y, $options) = (self, x, y, options);
                $score
            })?

            fn names(&self, names: &[String]) -> Option<Vec<String>> {
                $crate::programs::model::names_of!($model, self, names)
            }

            fn attribute(&self, name: &str) -> Option<tharsis_numeric::protocol::Value> {
                let $read = self;
                match name {
                    $($name => Some($value),)*
                    _ => None,
                }
            }

            $(fn is_converged(&self) -> bool {
                let $solved = self;
                $converged
            })?
        }
    };
}
pub(super) use model;

/// The name of the method, where a model has it.
macro_rules! scored {
    ($scored:ident) => {
        "score"
    };
}
pub(super) use scored;

/// The score of a supervised model.
///
/// # Errors
/// `ValueError` without targets; those of the score.
pub(super) fn supervised_score(
    model: &impl base::Predict,
    x: &Tensor,
    y: Option<&Tensor>,
    options: &FitOptions,
) -> Result<f64> {
    let y = y.ok_or_else(|| refused("y should be a 1d array, got None instead."))?;
    model.score_any(x, y, options)
}

/// An array as a value.
pub(super) fn array<D: Dimension>(array: &Array<f64, D>) -> Value {
    Value::Tensor(tensor(array))
}

/// A list of numbers as a value; (n,).
pub(super) fn numbers(numbers: &[f64]) -> Value {
    Value::Tensor(Tensor::from_elements(&[numbers.len()], numbers))
}

/// Whole numbers as a value; (n,), int64.
pub(super) fn wholes(numbers: &[usize]) -> Value {
    let numbers: Vec<i64> = numbers.iter().map(|&number| number as i64).collect();
    Value::Tensor(class_tensor(&numbers))
}

/// Classes as a value; (k,), int64.
pub(super) fn classes(classes: &[i64]) -> Value {
    Value::Tensor(class_tensor(classes))
}

/// A number as a value.
pub(super) fn real(number: f64) -> Value {
    Value::Number(Scalar::Float(number))
}

/// A whole number as a value.
pub(super) fn whole(number: usize) -> Value {
    Value::Number(Scalar::Int(number as i64))
}

/// The only one of several values, or all of them: scikit-learn gives one number for one target.
pub(super) fn one_or_all<T: Copy>(values: &[T], one: fn(T) -> Value, all: fn(&[T]) -> Value) -> Value {
    match *values {
        [value] => one(value),
        _ => all(values),
    }
}
