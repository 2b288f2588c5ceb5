//! Estimators as objects of programs.

use super::args::{N_ESTIMATORS, kept, setting};
use super::model::{Described, Fit, Model};
use crate::base::{self, FitOptions};
use crate::metrics::inputs::settled;
use crate::neighbors::Neighbors;
use crate::params::Params;
use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use tharsis_numeric::protocol::{Failure, Object, Scope, Value};
use tharsis_numeric::{DType, Tensor, full};
use tharsis_programs::{Argument, Bound, Look};

/// A class of estimators in scikit-learn.
pub(super) struct Class {
    pub(super) name: &'static str,
    /// Whether a fit needs targets.
    pub(super) is_supervised: bool,
    /// The result of `fit_predict`, if it has that.
    pub(super) fit_predict: Option<Labels>,
    /// The attribute that is the number of samples of the fit.
    pub(super) samples: Option<&'static str>,
    /// Attributes that are `None` if all of these parameters are false or `None`.
    pub(super) hidden: &'static [(&'static str, &'static [&'static str])],
    /// Attributes of scikit-learn that are not implemented.
    pub(super) absent: &'static [&'static str],
}

impl Class {
    /// A class whose fit needs targets.
    pub(super) const fn supervised(name: &'static str) -> Class {
        Class { name, is_supervised: true, fit_predict: None, samples: None, hidden: &[], absent: &[] }
    }

    /// A class whose fit reads samples alone.
    pub(super) const fn unsupervised(name: &'static str) -> Class {
        Class { is_supervised: false, ..Class::supervised(name) }
    }
}

/// The result of `fit_predict`.
#[derive(Clone, Copy)]
pub(super) enum Labels {
    /// An attribute of the model.
    Attribute(&'static str),
    /// A method of the model, of the samples of the fit.
    Method(&'static str),
}

/// An estimator of a program, with the model of its last fit.
pub(super) struct Instance {
    class: &'static Class,
    params: Vec<(&'static str, Value)>,
    /// As Python shows it: the parameters that were given.
    text: String,
    estimator: Box<dyn Fit>,
    fitted: Mutex<Option<Arc<Fitted>>>,
}

/// A model, and the shape of the samples that it was fitted to.
struct Fitted {
    model: Box<dyn Model>,
    rows: usize,
    /// None of labels, and of models that need no fit.
    columns: Option<usize>,
}

/// Samples of a fit or a score.
pub(super) struct Samples {
    pub(super) x: Tensor,
    pub(super) y: Option<Tensor>,
    pub(super) options: FitOptions,
}

impl Instance {
    /// An estimator with the parameters of a call as a value.
    ///
    /// # Errors
    /// As [`configured`].
    pub(super) fn made<E>(class: &'static Class, args: &Bound<Value>) -> Result<Value, Failure>
    where
        E: base::Estimator + Params + Default + Clone + Send + Sync + 'static,
        E::Fitted: Described + 'static,
    {
        Instance::made_from(class, args, E::default())
    }

    /// As [`Instance::made`], of an estimator that has those already which it is to hold.
    ///
    /// # Errors
    /// As there.
    pub(super) fn made_from<E>(
        class: &'static Class,
        args: &Bound<Value>,
        estimator: E,
    ) -> Result<Value, Failure>
    where
        E: base::Estimator + Params + Clone + Send + Sync + 'static,
        E::Fitted: Described + 'static,
    {
        let estimator = configured(args, estimator)?;
        Ok(Value::Object(Arc::new(Instance::of(class, args, estimator, None))))
    }

    /// As [`Instance::made`], of an estimator that is its own model.
    ///
    /// # Errors
    /// As there.
    pub(super) fn made_fitted<E>(class: &'static Class, args: &Bound<Value>) -> Result<Value, Failure>
    where
        E: base::Estimator<Fitted = E> + Params + Default + Described + Clone + 'static,
    {
        let estimator = configured(args, E::default())?;
        let fitted = Fitted { model: Box::new(estimator.clone()), rows: 0, columns: None };
        Ok(Value::Object(Arc::new(Instance::of(class, args, estimator, Some(fitted)))))
    }

    /// An estimator with the parameters of a call, which it has already, as a value.
    pub(super) fn made_as(
        class: &'static Class,
        args: &Bound<Value>,
        estimator: impl Fit + 'static,
    ) -> Value {
        Value::Object(Arc::new(Instance::of(class, args, estimator, None)))
    }

    fn of(
        class: &'static Class,
        args: &Bound<Value>,
        estimator: impl Fit + 'static,
        fitted: Option<Fitted>,
    ) -> Instance {
        let given = args.iter().filter(|(name, _)| args.is_given(name));
        let given: Vec<String> = given.map(|(name, value)| format!("{name}={}", value.look())).collect();
        Instance {
            class,
            params: args.iter().map(|(name, value)| (name, value.clone())).collect(),
            text: format!("{}({})", class.name, given.join(", ")),
            estimator: Box::new(estimator),
            fitted: Mutex::new(fitted.map(Arc::new)),
        }
    }

    /// The estimator in a value.
    ///
    /// # Errors
    /// `TypeError` for anything else.
    pub(super) fn in_value(value: &Value) -> Result<&Instance, Failure> {
        let Value::Object(object) = value else {
            return Err(Failure::kind(format!("expected an estimator, found {}", value.look())));
        };
        let object: &dyn Any = &**object;
        object.downcast_ref().ok_or_else(|| Failure::kind("expected an estimator, found another object"))
    }

    /// The estimator, without its model.
    pub(super) fn estimator(&self) -> &dyn Fit {
        &*self.estimator
    }

    pub(super) fn class(&self) -> &'static Class {
        self.class
    }

    /// Fits the estimator. The model of the last fit stays if this one fails.
    ///
    /// # Errors
    /// Those of the fit.
    pub(super) fn fit(&self, samples: &Samples, scope: &Scope) -> Result<(), Failure> {
        let Samples { x, y, options } = samples;
        self.keep(self.estimator.fit(x, y.as_ref(), options)?, x, scope)
    }

    /// Fits the estimator, and maps the samples of the fit.
    ///
    /// # Errors
    /// As [`Instance::fit`]; the error that the result carries.
    pub(super) fn fit_transform(&self, samples: &Samples, scope: &Scope) -> Result<Value, Failure> {
        let Samples { x, y, options } = samples;
        let Some(made) = self.estimator.fit_transform(x, y.as_ref(), options) else {
            self.fit(samples, scope)?;
            return self.map("transform", x);
        };
        let (model, made) = made?;
        self.keep(model, x, scope)?;
        made.check()?;
        Ok(Value::Tensor(made))
    }

    fn keep(&self, model: Box<dyn Model>, x: &Tensor, scope: &Scope) -> Result<(), Failure> {
        if !model.is_converged() {
            scope.warn(format!(
                "ConvergenceWarning: the solver of {} has stopped before its tolerance; more steps (max_iter) \
                 or scaled features may help",
                self.class.name
            ));
        }
        let (rows, columns) = match *x.shape()? {
            [rows, columns] => (rows, Some(columns)),
            // Labels.
            [rows] => (rows, None),
            _ => return Err(Failure::value("X has lost an axis")),
        };
        self.hold(Fitted { model, rows, columns });
        Ok(())
    }

    fn hold(&self, fitted: Fitted) {
        *self.fitted.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(fitted));
    }

    /// Whether a fit takes sets of labels, which are no array.
    pub(super) fn is_of_sets(&self) -> bool {
        self.estimator.is_of_sets()
    }

    /// As [`Instance::fit`], to sets of labels.
    ///
    /// # Errors
    /// `TypeError` and `NotImplemented` for other things; those of the fit.
    pub(super) fn fit_sets(&self, sets: &Value) -> Result<(), Failure> {
        let model = self.estimator.fit_sets(sets).ok_or_else(|| self.lacks("fit"))??;
        self.hold(Fitted { model, rows: 0, columns: None });
        Ok(())
    }

    /// As [`Instance::map`], of sets of labels, or to them.
    ///
    /// # Errors
    /// As there; `TypeError` and `NotImplemented` for other things; `MemoryError` for rows that do not fit.
    pub(super) fn map_sets(&self, method: &str, x: &Value, scope: &Scope) -> Result<Value, Failure> {
        let made = self.fitted_for(method)?.model.map_sets(method, x, scope);
        made.ok_or_else(|| self.lacks(method))?
    }

    /// The samples, mapped by a method of the model.
    ///
    /// # Errors
    /// `AttributeError` if the class has no such method; `NotFittedError` before a fit; the error that the
    /// result carries.
    pub(super) fn map(&self, method: &str, x: &Tensor) -> Result<Value, Failure> {
        let fitted = self.fitted_for(method)?;
        let made = fitted.model.map(method, x).ok_or_else(|| self.lacks(method))?;
        made.check()?;
        Ok(Value::Tensor(made))
    }

    /// scikit-learn's `kneighbors`.
    ///
    /// # Errors
    /// As [`Instance::map`].
    pub(super) fn kneighbors(&self, x: Option<&Tensor>, count: Option<usize>) -> Result<Neighbors, Failure> {
        let found = self.fitted_for("kneighbors")?.model.kneighbors(x, count);
        Ok(found.ok_or_else(|| self.lacks("kneighbors"))??)
    }

    /// scikit-learn's `get_feature_names_out`: the names of the features that the model makes, from those of
    /// the samples, which are x0, x1 and so on if none are given.
    ///
    /// # Errors
    /// As [`Instance::map`]; `ValueError` for another number of names.
    pub(super) fn names(&self, given: Option<Vec<String>>) -> Result<Value, Failure> {
        const METHOD: &str = "get_feature_names_out";
        if !self.estimator.has_names() {
            return Err(self.lacks(METHOD));
        }
        let fitted = self.fitted().ok_or_else(|| self.not_fitted())?;
        // Those that need no fit know no features before it.
        let columns = fitted.columns.ok_or_else(|| self.not_fitted())?;
        let names = given.unwrap_or_else(|| (0..columns).map(|at| format!("x{at}")).collect());
        if names.len() != columns {
            return Err(Failure::value(format!(
                "input_features should have length equal to number of features ({columns}), got {}",
                names.len()
            )));
        }
        let made = fitted.model.names(&names).ok_or_else(|| self.lacks(METHOD))?;
        Ok(Value::List(made.into_iter().map(Value::Text).collect()))
    }

    /// The score of the model.
    ///
    /// # Errors
    /// As [`Instance::map`]; those of the score.
    pub(super) fn score(&self, samples: &Samples) -> Result<f64, Failure> {
        let Samples { x, y, options } = samples;
        Ok(self.fitted_for("score")?.model.score(x, y.as_ref(), options)?)
    }

    /// A parameter, or an attribute of the model.
    ///
    /// # Errors
    /// `AttributeError` if there is none, as before a fit; `NotImplemented` if scikit-learn has it.
    pub(super) fn attribute(&self, name: &str) -> Result<Value, Failure> {
        if let Some((_, value)) = self.params.iter().find(|(param, _)| *param == name) {
            return Ok(value.clone());
        }
        let Some(fitted) = self.fitted() else { return Err(self.lacks(name)) };
        if name == "n_features_in_" {
            return fitted.columns.map(super::model::whole).ok_or_else(|| self.lacks(name));
        }
        if Some(name) == self.class.samples {
            return Ok(super::model::whole(fitted.rows));
        }
        let hidden = self.class.hidden.iter().find(|(attribute, _)| *attribute == name);
        if hidden.is_some_and(|(_, params)| params.iter().all(|param| self.is_off(param))) {
            return Ok(Value::None);
        }
        if self.class.absent.contains(&name) {
            return Err(Failure::missing(format!(
                "the attribute {name} of {} is not implemented",
                self.class.name
            )));
        }
        fitted.model.attribute(name).ok_or_else(|| self.lacks(name))
    }

    /// Checks that the class has a method.
    ///
    /// # Errors
    /// `AttributeError` if it has not.
    pub(super) fn check_has(&self, method: &str) -> Result<(), Failure> {
        if self.estimator.methods().contains(&method) { Ok(()) } else { Err(self.lacks(method)) }
    }

    /// The error of an attribute or a method that does not exist.
    pub(super) fn lacks(&self, name: &str) -> Failure {
        let message = format!("'{}' object has no attribute '{name}'", self.class.name);
        Failure { class: "AttributeError".to_owned(), message }
    }

    fn is_off(&self, param: &str) -> bool {
        let is_off = |value: &Value| matches!(value.look(), Look::Boolean(false) | Look::None);
        self.params.iter().any(|(name, value)| *name == param && is_off(value))
    }

    fn fitted(&self) -> Option<Arc<Fitted>> {
        self.fitted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The model, for a method that needs one.
    fn fitted_for(&self, method: &str) -> Result<Arc<Fitted>, Failure> {
        self.check_has(method)?;
        self.fitted().ok_or_else(|| self.not_fitted())
    }

    /// The error of a method that needs a fit.
    fn not_fitted(&self) -> Failure {
        let message = format!(
            "This {} instance is not fitted yet. Call 'fit' with appropriate arguments before using this \
             estimator.",
            self.class.name
        );
        Failure { class: "NotFittedError".to_owned(), message }
    }
}

/// An estimator with those of its parameters that a call has; others it keeps.
///
/// # Errors
/// `ValueError` for values that a parameter does not take; `NotImplemented` for numbers of things that are
/// too large for a process; errors of an array.
fn configured<E: Params>(args: &Bound<Value>, mut estimator: E) -> Result<E, Failure> {
    for (name, _) in estimator.params() {
        let Some((_, value)) = args.iter().find(|(param, _)| *param == name) else { continue };
        // A default that is to change in scikit-learn, which means the one that the estimator has.
        if value.look().equals(&Look::Text("warn")) {
            continue;
        }
        if name == N_ESTIMATORS.name {
            kept(args, &name, 1)?;
        }
        estimator.set(&name, &setting(value)?)?;
    }
    Ok(estimator)
}

impl Samples {
    /// The samples of a fit or a score: `X`, `y` and `sample_weight`, with all sizes known.
    ///
    /// # Errors
    /// `TypeError` without targets, where they are needed; as [`Value::tensor`]; errors of the run that tells
    /// the sizes.
    pub(super) fn of(args: &Bound<Value>, needs_targets: bool, scope: &Scope) -> Result<Samples, Failure> {
        if needs_targets && !args.is_given("y") {
            return Err(args.without("y").into());
        }
        let x = super::args::array(args, "X")?;
        let y = super::args::array_if_given(args, "y")?;
        let (x, weights) = match args.value("sample_weight")?.look().number() {
            Some(weight) => {
                // So many weights as there are rows, which may be known only after a run.
                let x = settled(&[&x])?.remove(0);
                let rows = x.shape()?.first().copied().unwrap_or(0);
                (x, Some(full(&[rows], weight, DType::F64)))
            }
            None => (x, super::args::weights(args)?),
        };
        let given: Vec<&Tensor> = std::iter::once(&x).chain(&y).chain(&weights).collect();
        let mut known = settled(&given)?.into_iter();
        let mut next = || known.next().ok_or_else(|| Failure::value("an input has been lost"));
        let x = next()?;
        let y = y.map(|_| next()).transpose()?;
        let options = FitOptions::new().executor(scope.executor().clone());
        let options = match weights {
            Some(_) => options.sample_weight(&next()?),
            None => options,
        };
        Ok(Samples { x, y, options })
    }
}

impl Object for Instance {
    fn class(&self) -> &str {
        self.class.name
    }
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
