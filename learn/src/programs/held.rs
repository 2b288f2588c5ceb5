//! Estimators of programs in others that hold them.

use super::model::{Described, Fit, Model};
use super::object::{Class, Instance};
use crate::base::{ByClass, Estimator, FitOptions, Task, Transform};
use crate::checks::refused;
use crate::compose::Mapping;
use crate::held::{AnyEstimator, Classifies, DROP, Held, HeldModel, Importances, Regresses, Tells};
use crate::params::{Params, Setting};
use crate::{Error, Result};
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use tharsis_graph::Error as GraphError;
use tharsis_numeric::protocol::{Failure, Value};
use tharsis_numeric::{DType, Tensor};
use tharsis_programs::Bound;

/// An estimator of a program.
struct Member {
    estimator: Box<dyn Fit>,
}

/// A transformer of a program, as a step of a pipeline.
pub(super) struct Mapper(Member);

/// A model of a [`Member`].
pub(super) struct MemberModel {
    name: &'static str,
    model: Box<dyn Model>,
    /// Ascending; none of regressors.
    classes: Vec<i64>,
    has_score: bool,
}

impl Member {
    /// A copy of the estimator in a value, without its model.
    ///
    /// # Errors
    /// `TypeError` for anything else.
    fn of(value: &Value) -> std::result::Result<Member, Failure> {
        Ok(Member { estimator: Instance::in_value(value)?.estimator().boxed() })
    }

    #[track_caller]
    fn fitted(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Result<MemberModel> {
        self.told(self.estimator.fit(x, y, options)?)
    }

    /// A model of the estimator, with what is asked of it.
    #[track_caller]
    fn told(&self, model: Box<dyn Model>) -> Result<MemberModel> {
        let classes = match model.attribute("classes_") {
            Some(Value::Tensor(classes)) => classes.astype(DType::I64).to_vec()?,
            _ => Vec::new(),
        };
        let has_score = self.estimator.methods().contains(&"score");
        Ok(MemberModel { name: self.estimator.params().estimator(), model, classes, has_score })
    }
}

/// A name in a pipeline, and the estimator in a value.
type Named<'a> = (&'a str, &'a Value);

/// The transformers of a list of names and estimators, and the last one with its name. Those that are
/// `"passthrough"` or none are left out.
///
/// # Errors
/// `ValueError` for no estimators; `TypeError` for others than transformers before the last one.
pub(super) fn steps<'a>(
    args: &'a Bound<Value>,
    name: &str,
) -> std::result::Result<(Vec<(String, Mapper)>, Named<'a>), Failure> {
    let wrong = || Failure::value("The pipeline is empty or its steps are no (string, estimator) tuples");
    let (Value::List(pairs) | Value::Tuple(pairs)) = args.value(name)? else { return Err(wrong()) };
    let pair = |pair: &'a Value| match pair {
        Value::List(parts) | Value::Tuple(parts) => match &parts[..] {
            [Value::Text(name), estimator] => Ok((name.as_str(), estimator)),
            _ => Err(wrong()),
        },
        _ => Err(wrong()),
    };
    let mut pairs = pairs.iter().map(pair).collect::<std::result::Result<Vec<Named<'a>>, Failure>>()?;
    let last = pairs.pop().ok_or_else(wrong)?;
    let is_there = |(_, value): &Named<'_>| match value {
        Value::None => false,
        Value::Text(word) => word != "passthrough",
        _ => true,
    };
    let step = |(name, value): Named<'_>| Ok((name.to_owned(), Mapper::of(value)?));
    Ok((pairs.into_iter().filter(is_there).map(step).collect::<std::result::Result<_, Failure>>()?, last))
}

/// Estimators around another one, which tell classes or numbers as that does.
pub(super) trait Around {
    /// The estimator around one of a kind.
    type Of<T: Tells>: Estimator<Fitted: Described + 'static> + Params + Clone + Send + Sync + 'static;

    /// The one that a call describes.
    ///
    /// # Errors
    /// Those of the other arguments.
    fn of<T: Tells>(
        args: &Bound<Value>,
        estimator: AnyEstimator<T>,
    ) -> std::result::Result<Self::Of<T>, Failure>;
}

/// The object of a class around the argument `estimator`, a classifier or a regressor.
///
/// # Errors
/// `TypeError` for anything else than an estimator; those of [`Around::of`].
pub(super) fn around<A: Around>(
    class: &'static Class,
    args: &Bound<Value>,
) -> std::result::Result<Value, Failure> {
    let value = args.value("estimator")?;
    let classifier = any::<Classifies>(value)?;
    if classifier.check().is_ok() {
        return Instance::made_from(class, args, A::of(args, classifier)?);
    }
    Instance::made_from(class, args, A::of(args, any::<Regresses>(value)?)?)
}

/// The methods of models that only tell what an estimator of this kind does.
pub(super) const fn told_methods<T: Tells>() -> &'static [&'static str] {
    match T::TASK {
        Task::Classification => &["predict", "predict_proba", "decision_function", "score"],
        Task::Regression | Task::Unsupervised => &["predict", "score"],
    }
}

/// An estimator in a value as one that others hold.
///
/// # Errors
/// `TypeError` for anything else.
pub(super) fn any<T: Tells>(value: &Value) -> std::result::Result<AnyEstimator<T>, Failure> {
    Ok(AnyEstimator::of(Box::new(Member::of(value)?)))
}

/// The estimator of a parameter; none if it is `None`.
///
/// # Errors
/// As [`any`].
pub(super) fn any_if_given<T: Tells>(
    args: &Bound<Value>,
    name: &str,
) -> std::result::Result<Option<AnyEstimator<T>>, Failure> {
    args.some(name)?.map(any).transpose()
}

/// The transformer of a parameter, of targets; none if it is `None`.
///
/// # Errors
/// As [`any`].
pub(super) fn mapping_if_given(
    args: &Bound<Value>,
    name: &str,
) -> std::result::Result<Option<Box<dyn Mapping>>, Failure> {
    let member = args.some(name)?.map(Member::of).transpose()?;
    Ok(member.map(|member| -> Box<dyn Mapping> { Box::new(member) }))
}

/// Names and their estimators.
type Members<T> = Vec<(String, Option<AnyEstimator<T>>)>;

/// The estimators of a list of names and estimators; none of those that are left out.
///
/// # Errors
/// `ValueError` in scikit-learn's words for anything else.
pub(super) fn named<T: Tells>(args: &Bound<Value>, name: &str) -> std::result::Result<Members<T>, Failure> {
    let wrong = || {
        Failure::value(
            "Invalid 'estimators' attribute, 'estimators' should be a non-empty list of (string, estimator) \
             tuples.",
        )
    };
    let (Value::List(pairs) | Value::Tuple(pairs)) = args.value(name)? else { return Err(wrong()) };
    let pair = |pair: &Value| match pair {
        Value::List(parts) | Value::Tuple(parts) => match &parts[..] {
            [Value::Text(name), Value::Text(word)] if word == DROP => Ok((name.clone(), None)),
            [Value::Text(name), estimator] => Ok((name.clone(), Some(any(estimator)?))),
            _ => Err(wrong()),
        },
        _ => Err(wrong()),
    };
    pairs.iter().map(pair).collect()
}

impl Held for Member {
    #[track_caller]
    fn fit(&self, x: &Tensor, y: &Tensor, options: &FitOptions) -> Result<Arc<dyn HeldModel>> {
        Ok(Arc::new(self.fitted(x, Some(y), options)?))
    }

    fn task(&self) -> Task {
        self.estimator.task()
    }

    fn takes_weights(&self) -> bool {
        self.estimator.takes_weights()
    }

    fn takes_nan(&self) -> bool {
        self.estimator.takes_nan()
    }

    fn is_frozen(&self) -> bool {
        false
    }

    fn params(&self) -> &dyn Params {
        self.estimator.params()
    }

    fn params_mut(&mut self) -> &mut dyn Params {
        self.estimator.params_mut()
    }

    fn boxed(&self) -> Box<dyn Held> {
        Box::new(self.copy())
    }
}

impl Member {
    fn copy(&self) -> Member {
        Member { estimator: self.estimator.boxed() }
    }
}

impl Mapper {
    /// The transformer in a value.
    ///
    /// # Errors
    /// `TypeError` for anything else.
    pub(super) fn of(value: &Value) -> std::result::Result<Mapper, Failure> {
        let member = Member::of(value)?;
        if member.estimator.methods().contains(&"transform") {
            return Ok(Mapper(member));
        }
        Err(Failure::kind(format!(
            "All intermediate steps should be transformers and implement fit and transform or be the string \
             'passthrough' '{member:?}' doesn't"
        )))
    }

    /// The kind of what an estimator in a value tells.
    ///
    /// # Errors
    /// `TypeError` for anything else.
    pub(super) fn task(value: &Value) -> std::result::Result<Task, Failure> {
        Ok(Member::of(value)?.estimator.task())
    }
}

impl Clone for Mapper {
    fn clone(&self) -> Mapper {
        Mapper(self.0.copy())
    }
}

impl Estimator for Mapper {
    type Fitted = MemberModel;

    fn takes_weights(&self) -> bool {
        self.0.estimator.takes_weights()
    }

    fn takes_nan(&self) -> bool {
        self.0.estimator.takes_nan()
    }

    #[track_caller]
    fn fit_any(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Result<MemberModel> {
        self.0.fitted(x, y, options)
    }

    #[track_caller]
    fn fit_transform_any(
        &self,
        x: &Tensor,
        y: Option<&Tensor>,
        options: &FitOptions,
    ) -> Option<Result<(MemberModel, Tensor)>> {
        let made = self.0.estimator.fit_transform(x, y, options)?;
        Some(made.and_then(|(model, samples)| Ok((self.0.told(model)?, samples))))
    }
}

impl Params for Mapper {
    fn estimator(&self) -> &'static str {
        self.0.estimator.params().estimator()
    }

    fn params(&self) -> Vec<(String, Setting)> {
        self.0.estimator.params().params()
    }

    #[track_caller]
    fn set(&mut self, name: &str, value: &Setting) -> Result<()> {
        self.0.estimator.params_mut().set(name, value)
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}()", self.estimator.params().estimator())
    }
}

impl Mapping for Member {
    #[track_caller]
    fn fitted(&self, y: &Tensor, options: &FitOptions) -> Result<Arc<dyn Transform + Send + Sync>> {
        Ok(Arc::new(Member::fitted(self, y, None, options)?))
    }

    fn params(&self) -> &dyn Params {
        self.estimator.params()
    }

    fn params_mut(&mut self) -> &mut dyn Params {
        self.estimator.params_mut()
    }

    fn boxed(&self) -> Box<dyn Mapping> {
        Box::new(self.copy())
    }
}

impl MemberModel {
    #[track_caller]
    fn lacks(&self, method: &str) -> Error {
        refused(format!("'{}' object has no attribute '{method}'", self.name))
    }

    #[track_caller]
    fn by_class(&self, method: &str, x: &Tensor) -> Option<ByClass<'_>> {
        Some((self.class_labels()?, self.model.map(method, x)?))
    }
}

impl fmt::Debug for MemberModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl HeldModel for MemberModel {
    fn name(&self) -> &'static str {
        self.name
    }

    #[track_caller]
    fn predict(&self, x: &Tensor) -> Tensor {
        self.model.map("predict", x).unwrap_or_else(|| Tensor::from(self.lacks("predict")))
    }

    fn class_labels(&self) -> Option<&[i64]> {
        (!self.classes.is_empty()).then_some(&self.classes)
    }

    #[track_caller]
    fn probabilities(&self, x: &Tensor) -> Option<ByClass<'_>> {
        self.by_class("predict_proba", x)
    }

    #[track_caller]
    fn decisions(&self, x: &Tensor) -> Option<ByClass<'_>> {
        self.by_class("decision_function", x)
    }

    #[track_caller]
    fn score(&self, x: &Tensor, y: &Tensor, options: &FitOptions) -> Option<Result<f64>> {
        self.has_score.then(|| self.model.score(x, Some(y), options))
    }

    #[track_caller]
    fn saved(&self) -> Result<(&'static str, Vec<u8>)> {
        Err(Error::here(GraphError::NotImplemented("a file of a model of a program".to_owned())))
    }

    fn importances(&self) -> Option<Importances> {
        let numbers = |name: &str| match self.model.attribute(name) {
            Some(Value::Tensor(numbers)) => numbers.fetch::<f64>().ok(),
            _ => None,
        };
        let coefficients = numbers("coef_").map(Importances::Coefficients);
        coefficients.or_else(|| numbers("feature_importances_").map(Importances::Trees))
    }

    /// The model of the library, whose type tells more of it.
    fn as_any(&self) -> &dyn Any {
        &*self.model
    }
}

impl Transform for MemberModel {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        self.model.map("transform", x).unwrap_or_else(|| Tensor::from(self.lacks("transform")))
    }

    #[track_caller]
    fn inverse(&self, x: &Tensor) -> Option<Tensor> {
        self.model.map("inverse_transform", x)
    }

    fn feature_names_out(&self, names: &[String]) -> Option<Vec<String>> {
        self.model.names(names)
    }
}
