//! Estimators of any type behind one, for those that hold others.
//!
//! An ensemble holds classifiers of several types, or one whose type its own does not tell. Their models are
//! shared, and saved by the names of their types.

use crate::base::{ByClass, Estimator, FitOptions, Predict, Task};
use crate::checks::refused;
use crate::params::{Params, Setting};
use crate::saved::Save;
use ndarray::ArrayD;
use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use tharsis_graph::Error as GraphError;
use tharsis_numeric::{Error, Result, Tensor};

/// The kind of what the models of an estimator tell.
pub trait Tells: Copy + fmt::Debug + Send + Sync + 'static {
    /// The kind of the predictions.
    const TASK: Task;
    /// The word of errors for such an estimator.
    const WORD: &'static str;
}

/// Models that tell a class.
#[derive(Clone, Copy, Debug)]
pub struct Classifies;

/// Models that tell a number.
#[derive(Clone, Copy, Debug)]
pub struct Regresses;

impl Tells for Classifies {
    const TASK: Task = Task::Classification;
    const WORD: &'static str = "classifier";
}

impl Tells for Regresses {
    const TASK: Task = Task::Regression;
    const WORD: &'static str = "regressor";
}

/// An estimator of any type whose models tell a class ([`AnyClassifier`]) or a number ([`AnyRegressor`]).
#[must_use]
pub struct AnyEstimator<T> {
    held: Box<dyn Held>,
    tells: PhantomData<T>,
}

/// A classifier of any type.
///
/// ```
/// use tharsis_learn::AnyClassifier;
/// use tharsis_learn::base::{Estimator, Predict};
/// use tharsis_learn::linear_model::{FittedLogisticRegression, LogisticRegression};
/// use tharsis_numeric::array;
/// let (x, y) = (array([-1.0, 1.0]).reshape(&[2, 1]), array([3i64, 5]));
/// let model = AnyClassifier::new(LogisticRegression::new()).fit_any(&x, Some(&y), &(..).into())?;
/// assert_eq!(model.predict(&x).to_vec::<i64>()?, [3, 5]);
/// assert!(model.downcast_ref::<FittedLogisticRegression>().is_some());
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
pub type AnyClassifier = AnyEstimator<Classifies>;

/// A regressor of any type.
///
/// ```
/// use tharsis_learn::AnyRegressor;
/// use tharsis_learn::base::{Estimator, Predict};
/// use tharsis_learn::linear_model::Ridge;
/// use tharsis_numeric::{arange, array};
/// let any = AnyRegressor::new(Ridge::new());
/// let model = any.fit_any(&arange(2).reshape(&[2, 1]), Some(&array([1.0, 1.0])), &(..).into())?;
/// assert_eq!(model.predict(&arange(1).reshape(&[1, 1])).to_vec::<f64>()?, [1.0]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
pub type AnyRegressor = AnyEstimator<Regresses>;

/// A model of an [`AnyEstimator`].
#[derive(Clone)]
pub struct FittedAny<T> {
    model: Arc<dyn HeldModel>,
    tells: PhantomData<T>,
}

/// An estimator whose type is not told.
pub(crate) trait Held: Send + Sync {
    /// The model of samples and their targets.
    ///
    /// # Errors
    /// Those of the fit.
    fn fit(&self, x: &Tensor, y: &Tensor, options: &FitOptions) -> Result<Arc<dyn HeldModel>>;

    /// The kind of what its models tell.
    fn task(&self) -> Task;

    /// Whether a fit takes weights of samples.
    fn takes_weights(&self) -> bool;

    fn takes_nan(&self) -> bool;

    /// Whether a fit is a model that was there before.
    fn is_frozen(&self) -> bool;

    fn params(&self) -> &dyn Params;

    fn params_mut(&mut self) -> &mut dyn Params;

    fn boxed(&self) -> Box<dyn Held>;
}

/// A model whose type is not told.
pub(crate) trait HeldModel: fmt::Debug + Send + Sync {
    fn name(&self) -> &'static str;

    fn predict(&self, x: &Tensor) -> Tensor;

    fn class_labels(&self) -> Option<&[i64]>;

    fn probabilities(&self, x: &Tensor) -> Option<ByClass<'_>>;

    fn decisions(&self, x: &Tensor) -> Option<ByClass<'_>>;

    /// The model's own score; none if it has none.
    fn score(&self, x: &Tensor, y: &Tensor, options: &FitOptions) -> Option<Result<f64>>;

    /// The name of the type in files, and the numbers of the model.
    ///
    /// # Errors
    /// As [`Save::body`]; `NotImplemented` if the type has no place in files.
    fn saved(&self) -> Result<(&'static str, Vec<u8>)>;

    /// Coefficients or importances of features, of a model that nobody knows by its type.
    fn importances(&self) -> Option<Importances> {
        None
    }

    fn as_any(&self) -> &dyn Any;
}

impl<E> Held for E
where
    E: Estimator + Params + Clone + Send + Sync + 'static,
    E::Fitted: Predict + Save + fmt::Debug + Send + Sync + 'static,
{
    #[track_caller]
    fn fit(&self, x: &Tensor, y: &Tensor, options: &FitOptions) -> Result<Arc<dyn HeldModel>> {
        Ok(Arc::new(self.fit_any(x, Some(y), options)?))
    }

    fn task(&self) -> Task {
        E::Fitted::TASK
    }

    fn takes_weights(&self) -> bool {
        Estimator::takes_weights(self)
    }

    fn takes_nan(&self) -> bool {
        Estimator::takes_nan(self)
    }

    fn is_frozen(&self) -> bool {
        Estimator::is_frozen(self)
    }

    fn params(&self) -> &dyn Params {
        self
    }

    fn params_mut(&mut self) -> &mut dyn Params {
        self
    }

    fn boxed(&self) -> Box<dyn Held> {
        Box::new(self.clone())
    }
}

impl<M: Predict + Save + fmt::Debug + Send + Sync + 'static> HeldModel for M {
    fn name(&self) -> &'static str {
        Predict::name(self)
    }

    #[track_caller]
    fn predict(&self, x: &Tensor) -> Tensor {
        Predict::predict(self, x)
    }

    fn class_labels(&self) -> Option<&[i64]> {
        Predict::class_labels(self)
    }

    #[track_caller]
    fn probabilities(&self, x: &Tensor) -> Option<ByClass<'_>> {
        Predict::probabilities(self, x)
    }

    #[track_caller]
    fn decisions(&self, x: &Tensor) -> Option<ByClass<'_>> {
        Predict::decisions(self, x)
    }

    #[track_caller]
    fn score(&self, x: &Tensor, y: &Tensor, options: &FitOptions) -> Option<Result<f64>> {
        Some(Predict::score_any(self, x, y, options))
    }

    #[track_caller]
    fn saved(&self) -> Result<(&'static str, Vec<u8>)> {
        self.kind_and_body()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl<T: Tells> AnyEstimator<T> {
    /// An estimator of any type.
    pub fn new<E>(estimator: E) -> AnyEstimator<T>
    where
        E: Estimator + Params + Clone + Send + Sync + 'static,
        E::Fitted: Predict + Save + fmt::Debug + Send + Sync + 'static,
    {
        AnyEstimator::of(Box::new(estimator))
    }

    pub(crate) fn of(held: Box<dyn Held>) -> AnyEstimator<T> {
        AnyEstimator { held, tells: PhantomData }
    }

    /// scikit-learn's name of the estimator.
    pub fn name(&self) -> &'static str {
        self.held.params().estimator()
    }

    pub(crate) fn params(&self) -> &dyn Params {
        self.held.params()
    }

    pub(crate) fn params_mut(&mut self) -> &mut dyn Params {
        self.held.params_mut()
    }

    /// Checks that models tell what they are to tell.
    ///
    /// # Errors
    /// `ValueError` if they do not.
    #[track_caller]
    pub(crate) fn check(&self) -> Result<()> {
        if self.held.task() == T::TASK {
            return Ok(());
        }
        Err(refused(format!("The estimator {} should be a {}.", self.name(), T::WORD)))
    }

    /// The same estimator with another seed, if it has one.
    #[track_caller]
    pub(crate) fn seeded(&self, seed: u64) -> Result<AnyEstimator<T>> {
        let mut other = self.clone();
        let seeds: Vec<String> = self.held.params().params().into_iter().map(|(name, _)| name).collect();
        for name in seeds {
            if name == "random_state" || name.ends_with("__random_state") {
                other.held.params_mut().set(&name, &Setting::Integer(i64::from(seed as u32)))?;
            }
        }
        Ok(other)
    }

    /// The model of samples and their targets, where weights are the caller's to take.
    ///
    /// # Errors
    /// `TypeError` in scikit-learn's words if there are weights and the estimator takes none; those of the
    /// fit.
    #[track_caller]
    pub(crate) fn weighted(&self, x: &Tensor, y: &Tensor, options: &FitOptions) -> Result<FittedAny<T>> {
        self.check()?;
        if options.weights().is_some() && !self.held.takes_weights() {
            let text = format!("Underlying estimator {} does not support sample weights.", self.name());
            return Err(Error::here(GraphError::Type(text)));
        }
        self.fit_any(x, Some(y), options)
    }
}

impl<T> Clone for AnyEstimator<T> {
    fn clone(&self) -> AnyEstimator<T> {
        AnyEstimator { held: self.held.boxed(), tells: PhantomData }
    }
}

impl<T> fmt::Debug for AnyEstimator<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let params = self.held.params();
        let given: Vec<String> =
            params.params().into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        write!(f, "{}({})", params.estimator(), given.join(", "))
    }
}

impl<T: Tells> Estimator for AnyEstimator<T> {
    type Fitted = FittedAny<T>;

    fn takes_weights(&self) -> bool {
        self.held.takes_weights()
    }

    fn takes_nan(&self) -> bool {
        self.held.takes_nan()
    }

    fn is_frozen(&self) -> bool {
        self.held.is_frozen()
    }

    #[track_caller]
    fn fit_any(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Result<FittedAny<T>> {
        self.check()?;
        let y = y.ok_or_else(|| {
            let name = self.name();
            refused(format!("This {name} estimator requires y to be passed, but the target y is None."))
        })?;
        Ok(FittedAny { model: self.held.fit(x, y, options)?, tells: PhantomData })
    }
}

impl<T: Tells> Params for AnyEstimator<T> {
    fn estimator(&self) -> &'static str {
        self.name()
    }

    fn params(&self) -> Vec<(String, Setting)> {
        self.held.params().params()
    }

    #[track_caller]
    fn set(&mut self, name: &str, value: &Setting) -> Result<()> {
        self.held.params_mut().set(name, value)
    }
}

impl<T: Tells> FittedAny<T> {
    /// The model, if it is of this type.
    pub fn downcast_ref<M: 'static>(&self) -> Option<&M> {
        self.model.as_any().downcast_ref()
    }

    /// The model, whatever its type is.
    pub(crate) fn held(&self) -> &dyn HeldModel {
        &*self.model
    }

    pub(crate) fn of(model: Arc<dyn HeldModel>) -> FittedAny<T> {
        FittedAny { model, tells: PhantomData }
    }

    /// The decisions of samples, or else their probabilities, and the classes of the columns.
    ///
    /// # Errors
    /// `ValueError` if the model tells neither.
    #[track_caller]
    pub(crate) fn response(&self, x: &Tensor) -> Result<Response<'_>> {
        if let Some((classes, values)) = self.model.decisions(x) {
            return Ok(Response { classes, values, is_decision: true });
        }
        match self.model.probabilities(x) {
            Some((classes, values)) => Ok(Response { classes, values, is_decision: false }),
            None => {
                let name = self.model.name();
                let wanted = "decision_function, predict_proba";
                Err(refused(format!("{name} has none of the following attributes: {wanted}.")))
            }
        }
    }
}

/// Numbers of a model for each feature, the last axis.
#[derive(Clone, Debug)]
pub(crate) enum Importances {
    /// scikit-learn's `coef_`; (d,) or (k, d).
    Coefficients(ArrayD<f64>),
    /// scikit-learn's `feature_importances_`; (d,).
    Trees(ArrayD<f64>),
}

/// Decisions or probabilities of samples, by class.
pub(crate) struct Response<'a> {
    /// Ascending.
    pub(crate) classes: &'a [i64],
    /// (n, k), or (n,) for the greater one of two classes.
    pub(crate) values: Tensor,
    /// Whether values are decisions and not probabilities.
    pub(crate) is_decision: bool,
}

impl<T: Tells> Predict for FittedAny<T> {
    const TASK: Task = T::TASK;

    fn name(&self) -> &'static str {
        self.model.name()
    }

    #[track_caller]
    fn predict(&self, x: &Tensor) -> Tensor {
        self.model.predict(x)
    }

    fn class_labels(&self) -> Option<&[i64]> {
        self.model.class_labels()
    }

    #[track_caller]
    fn probabilities(&self, x: &Tensor) -> Option<ByClass<'_>> {
        self.model.probabilities(x)
    }

    #[track_caller]
    fn decisions(&self, x: &Tensor) -> Option<ByClass<'_>> {
        self.model.decisions(x)
    }

    #[track_caller]
    fn score_any(&self, x: &Tensor, y: &Tensor, options: &FitOptions) -> Result<f64> {
        let refused = || refused(format!("'{}' object has no attribute 'score'", self.model.name()));
        self.model.score(x, y, options).unwrap_or_else(|| Err(refused()))
    }
}

impl<T> fmt::Debug for FittedAny<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.model.fmt(f)
    }
}

impl<T: Tells> fmt::Display for FittedAny<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.model.name())
    }
}

/// [`Params`] of an estimator that holds another one: its own parameters, as for `parameters`, and those of
/// the one that it holds, behind the name of its parameter and two underlines.
macro_rules! holds {
    (
        $estimator:ty, $name:expr, $word:literal => $($held:ident).+,
        [$($param:literal => $($field:ident).+ $(>= $least:literal)?),* $(,)?]
    ) => {
        impl $crate::Params for $estimator {
            fn estimator(&self) -> &'static str {
                $name
            }

            fn params(&self) -> Vec<(String, $crate::Setting)> {
                let own: Vec<(String, $crate::Setting)> =
                    vec![$(($param.to_owned(), $crate::params::Parameter::setting(&self.$($field).+))),*];
                own.into_iter().chain($crate::held::inner($word, self.$($held).+.params())).collect()
            }

            #[track_caller]
            fn set(&mut self, name: &str, value: &$crate::Setting) -> tharsis_numeric::Result<()> {
                if let Some(inner) = name.strip_prefix(concat!($word, "__")) {
                    return self.$($held).+.params_mut().set(inner, value);
                }
                $(if name == $param {
                    let least: &[usize] = &[$($least)?];
                    let least = least.first().copied().unwrap_or(0);
                    self.$($field).+ = $crate::params::field($name, name, value, least)?;
                    return Ok(());
                })*
                // Of estimators without parameters of their own nothing reads it.
                let _ = value;
                Err($crate::held::unknown($name, &[$word, $($param),*], name))
            }
        }
    };
}
pub(crate) use holds;

/// Parameters of an estimator that another one holds under a name.
pub(crate) fn inner<'a>(
    name: &'a str,
    params: &dyn Params,
) -> impl Iterator<Item = (String, Setting)> + use<'a> {
    params.params().into_iter().map(move |(param, value)| (format!("{name}__{param}"), value))
}

/// The error of a parameter that an estimator with these does not have.
#[track_caller]
pub(crate) fn unknown(estimator: &str, known: &[&str], name: &str) -> Error {
    let mut known = known.to_vec();
    known.sort_unstable();
    let (name, _) = name.split_once("__").unwrap_or((name, ""));
    let known = known.iter().map(|known| format!("'{known}'")).collect::<Vec<_>>().join(", ");
    refused(format!(
        "Invalid parameter '{name}' for estimator {estimator}(). Valid parameters are: [{known}]."
    ))
}

/// Estimators with their names, of which each is there once.
#[derive(Clone, Debug)]
pub(crate) struct Together<T> {
    /// None of an estimator that is left out: scikit-learn's `"drop"`.
    pub(crate) all: Vec<(String, Option<AnyEstimator<T>>)>,
}

/// The word for an estimator that is left out.
pub(crate) const DROP: &str = "drop";

impl<T> Default for Together<T> {
    fn default() -> Together<T> {
        Together { all: Vec::new() }
    }
}

impl<T: Tells> Together<T> {
    /// # Errors
    /// `ValueError` in scikit-learn's words for none, for names that stand twice or have two underlines, and
    /// for estimators that do not tell what they are to tell.
    #[track_caller]
    pub(crate) fn check(&self, own: &[&str]) -> Result<()> {
        if self.all.is_empty() {
            return Err(refused(
                "Invalid 'estimators' attribute, 'estimators' should be a non-empty list of (string, estimator) \
                 tuples.",
            ));
        }
        let names: Vec<&str> = self.all.iter().map(|(name, _)| name.as_str()).collect();
        let shown = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
            names.join(", ")
        };
        if names.iter().enumerate().any(|(at, name)| names[..at].contains(name)) {
            return Err(refused(format!("Names provided are not unique: [{}]", shown(&names))));
        }
        let taken: Vec<&str> = names.iter().copied().filter(|name| own.contains(name)).collect();
        if !taken.is_empty() {
            let taken = shown(&taken);
            return Err(refused(format!("Estimator names conflict with constructor arguments: [{taken}]")));
        }
        let wrong: Vec<&str> = names.iter().copied().filter(|name| name.contains("__")).collect();
        if !wrong.is_empty() {
            return Err(refused(format!("Estimator names must not contain __: got [{}]", shown(&wrong))));
        }
        if self.there().next().is_none() {
            let text = "All estimators are dropped. At least one is required to be an estimator.";
            return Err(refused(text));
        }
        self.there().try_for_each(|(_, estimator)| estimator.check())
    }

    /// The estimators that are not left out, with their names.
    pub(crate) fn there(&self) -> impl Iterator<Item = (&String, &AnyEstimator<T>)> {
        self.all.iter().filter_map(|(name, estimator)| Some((name, estimator.as_ref()?)))
    }

    /// Those of some weights, one for each estimator, that belong to estimators that are not left out.
    pub(crate) fn weights(&self, weights: Option<&Vec<f64>>) -> Option<Vec<f64>> {
        let of = self.all.iter().zip(weights?);
        Some(of.filter(|((_, estimator), _)| estimator.is_some()).map(|(_, &weight)| weight).collect())
    }

    /// Whether all estimators take weights of samples.
    pub(crate) fn takes_weights(&self) -> bool {
        self.there().all(|(_, estimator)| estimator.held.takes_weights())
    }

    /// Whether NaN may stand for missing values in samples of all estimators.
    pub(crate) fn takes_nan(&self) -> bool {
        self.there().all(|(_, estimator)| estimator.held.takes_nan())
    }

    /// Parameters of the estimators, behind their names; the name of one that is left out, and that it is.
    pub(crate) fn params(&self) -> impl Iterator<Item = (String, Setting)> + '_ {
        self.all.iter().flat_map(|(name, estimator)| {
            let own = estimator.iter().flat_map(move |estimator| inner(name, estimator.params()));
            let dropped = estimator.is_none().then(|| (name.clone(), Setting::from(DROP)));
            own.chain(dropped)
        })
    }

    /// Sets a parameter of one of the estimators, or leaves it out; none if it is of no such one.
    #[track_caller]
    pub(crate) fn set(&mut self, name: &str, value: &Setting) -> Option<Result<()>> {
        let (of, param) = match name.split_once("__") {
            Some((of, param)) => (of, Some(param)),
            None => (name, None),
        };
        let (_, estimator) = self.all.iter_mut().find(|(known, _)| known == of)?;
        match (param, value) {
            (Some(param), _) => Some(estimator.as_mut()?.params_mut().set(param, value)),
            (None, Setting::Text(word)) if word == DROP => {
                *estimator = None;
                Some(Ok(()))
            }
            (None, _) => None,
        }
    }
}
