//! Estimators whose predictions are the features of a last one.

use crate::base::{ByClass, Estimator, FitOptions, Predict, Task, Transform, predicts};
use crate::checks::{Training, refused};
use crate::held::{
    AnyClassifier, AnyEstimator, AnyRegressor, Classifies, FittedAny, Regresses, Tells, Together,
};
use crate::labels::{Classes, class_tensor};
use crate::linear_model::{LogisticRegression, RidgeCV};
use crate::model_selection::{Folds, Validation, cross_val_tell};
use crate::params::{Parameter, Params, Setting, field, words};
use crate::saved::{Save, saved};
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::{DType, Index, Result, Tensor, concatenate};

/// The method of classifiers whose results are features of the last one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum StackMethod {
    /// The first of the others that a classifier has.
    #[default]
    Auto,
    /// Probabilities; of two classes those of the greater one.
    PredictProba,
    /// Decisions.
    DecisionFunction,
    /// Positions of classes, or predicted numbers.
    Predict,
}

words!(
    StackMethod,
    [
        "auto" => StackMethod::Auto, "predict_proba" => StackMethod::PredictProba,
        "decision_function" => StackMethod::DecisionFunction, "predict" => StackMethod::Predict
    ]
);

/// The part that a [`StackingClassifier`] and a [`StackingRegressor`] have alike.
#[derive(Clone, Debug)]
struct Stacking<T> {
    estimators: Together<T>,
    last: AnyEstimator<T>,
    folds: Folds,
    method: StackMethod,
    passthrough: bool,
}

/// scikit-learn's `StackingClassifier`: what several classifiers tell of samples that they have not seen is
/// what a last one learns from.
///
/// The predictions of the folds are computed once, and stored if they are at most a third of what can be
/// stored.
///
/// ```
/// use tharsis_learn::datasets::load_iris;
/// use tharsis_learn::ensemble::StackingClassifier;
/// use tharsis_learn::naive_bayes::GaussianNB;
/// use tharsis_learn::tree::DecisionTreeClassifier;
/// let iris = load_iris()?;
/// let stacking = StackingClassifier::new()
///     .estimator("tree", DecisionTreeClassifier::new().max_depth(2))
///     .estimator("bayes", GaussianNB::new());
/// let model = stacking.fit(&iris.data, &iris.target, ..)?;
/// assert!(0.9 < model.score(&iris.data, &iris.target, ..)?);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct StackingClassifier {
    stacking: Stacking<Classifies>,
}

/// scikit-learn's `StackingRegressor`: what several regressors predict for samples that they have not seen is
/// what a last one learns from.
///
/// ```
/// use tharsis_learn::datasets::load_diabetes;
/// use tharsis_learn::ensemble::StackingRegressor;
/// use tharsis_learn::linear_model::Ridge;
/// use tharsis_learn::tree::DecisionTreeRegressor;
/// let data = load_diabetes()?;
/// let stacking = StackingRegressor::new()
///     .estimator("tree", DecisionTreeRegressor::new().max_depth(2))
///     .estimator("line", Ridge::new());
/// let model = stacking.fit(&data.data, &data.target, ..)?;
/// assert!(0.4 < model.score(&data.data, &data.target, ..)?);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct StackingRegressor {
    stacking: Stacking<Regresses>,
}

/// The models of a stack.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
struct Stack<T: Tells> {
    models: Vec<(String, StackMethod, FittedAny<T>)>,
    last: FittedAny<T>,
    passthrough: bool,
}

/// A fitted [`StackingClassifier`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedStackingClassifier {
    /// scikit-learn's `classes_`, ascending; (k,).
    pub classes: Vec<i64>,
    stack: Stack<Classifies>,
}

/// A fitted [`StackingRegressor`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedStackingRegressor {
    stack: Stack<Regresses>,
}

const CLASSIFIER: &str = "StackingClassifier";
const REGRESSOR: &str = "StackingRegressor";
const OWN: &[&str] =
    &["estimators", "final_estimator", "cv", "stack_method", "n_jobs", "passthrough", "verbose"];

impl<T: Tells> Stacking<T> {
    fn new(last: AnyEstimator<T>, method: StackMethod) -> Stacking<T> {
        Stacking {
            estimators: Together::default(),
            last,
            folds: Folds::default(),
            method,
            passthrough: false,
        }
    }

    /// Checks what needs no data.
    #[track_caller]
    fn check(&self) -> Result<()> {
        self.estimators.check(OWN)?;
        self.last.check().map_err(|_| {
            let text = format!("'final_estimator' parameter should be a {}. Got {:?}", T::WORD, self.last);
            refused(text)
        })
    }

    /// The models of samples and their targets.
    #[track_caller]
    fn fitted(&self, training: &Training, y: &Tensor) -> Result<Stack<T>> {
        let options = training.weighted_options();
        let x = &training.x;
        let (mut models, mut parts) = (Vec::new(), Vec::new());
        for (name, estimator) in self.estimators.there() {
            let model = estimator.weighted(x, y, &options)?;
            let method = chosen(self.method, name, &model, x)?;
            let validation =
                Validation { cv: self.folds.clone(), fit: options.clone(), ..Validation::default() };
            parts.push(cross_val_tell(estimator, x, y, validation, |model, x| told(model, method, x))?);
            models.push((name.clone(), method, model));
        }
        if self.passthrough {
            parts.push(x.clone());
        }
        let features = concatenate(&parts.iter().collect::<Vec<_>>(), 1);
        let features = training.engine.kept(&features)?;
        let last = self.last.weighted(&features, y, &options)?;
        Ok(Stack { models, last, passthrough: self.passthrough })
    }

    fn takes_weights(&self) -> bool {
        self.estimators.takes_weights() && self.last.takes_weights()
    }

    fn params(&self) -> Vec<(String, Setting)> {
        let own = [("passthrough".to_owned(), self.passthrough.setting())];
        let last = crate::held::inner("final_estimator", self.last.params());
        own.into_iter().chain(self.estimators.params()).chain(last).collect()
    }

    #[track_caller]
    fn set(&mut self, estimator: &str, name: &str, value: &Setting) -> Result<()> {
        if name == "passthrough" {
            self.passthrough = field(estimator, name, value, 0)?;
            return Ok(());
        }
        if let Some(inner) = name.strip_prefix("final_estimator__") {
            return self.last.params_mut().set(inner, value);
        }
        let set = self.estimators.set(name, value);
        set.unwrap_or_else(|| Err(crate::held::unknown(estimator, OWN, name)))
    }
}

/// The method that a model has.
#[track_caller]
fn chosen<T: Tells>(
    method: StackMethod,
    name: &str,
    model: &FittedAny<T>,
    x: &Tensor,
) -> Result<StackMethod> {
    let has_chances = || model.probabilities(x).is_some();
    let has_decisions = || model.decisions(x).is_some();
    let has = match method {
        StackMethod::Auto if has_chances() => return Ok(StackMethod::PredictProba),
        StackMethod::Auto if has_decisions() => return Ok(StackMethod::DecisionFunction),
        StackMethod::Auto => return Ok(StackMethod::Predict),
        StackMethod::PredictProba => has_chances(),
        StackMethod::DecisionFunction => has_decisions(),
        StackMethod::Predict => true,
    };
    if has {
        return Ok(method);
    }
    let method = method.setting();
    Err(refused(
        format!("Underlying estimator {name} does not implement the method {method}.").replace('\'', ""),
    ))
}

/// The results of a model, a column or several, and the classes that it knows.
#[track_caller]
fn told<T: Tells>(model: &FittedAny<T>, method: StackMethod, x: &Tensor) -> Result<(Vec<i64>, Tensor)> {
    let values = match method {
        StackMethod::PredictProba => model.probabilities(x),
        StackMethod::DecisionFunction => model.decisions(x),
        StackMethod::Predict | StackMethod::Auto => None,
    };
    let Some((classes, values)) = values else {
        return Ok((Vec::new(), model.predict(x).astype(DType::F64).expand_dims(1)));
    };
    let columns = match (values.ndim()?, method) {
        (1, _) => values.expand_dims(1),
        (_, StackMethod::PredictProba) if classes.len() == 2 => {
            values.get(&[Index::from(..), Index::from(1i64..)])
        }
        _ => values,
    };
    Ok((classes.to_vec(), columns))
}

impl<T: Tells> Stack<T> {
    /// The features of the last estimator; (n, columns).
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        let mut parts = Vec::with_capacity(self.models.len() + 1);
        for (_, method, model) in &self.models {
            match told(model, *method, x) {
                Ok((_, part)) => parts.push(part),
                Err(error) => return Tensor::from(error),
            }
        }
        if self.passthrough {
            parts.push(x.astype(DType::F64));
        }
        concatenate(&parts.iter().collect::<Vec<_>>(), 1)
    }

    /// The names of the features of the last estimator of a class.
    fn names_out(&self, class: &str, names: &[String]) -> Vec<String> {
        let class = class.to_lowercase();
        let of = |(name, method, model): &(String, StackMethod, FittedAny<T>)| {
            let own = format!("{class}_{name}");
            let classes = match method {
                StackMethod::Predict | StackMethod::Auto => 0,
                _ => model.class_labels().map_or(0, <[i64]>::len),
            };
            // One column tells of two classes.
            if classes <= 2 { vec![own] } else { (0..classes).map(|at| format!("{own}{at}")).collect() }
        };
        let passed: &[String] = if self.passthrough { names } else { &[] };
        self.models.iter().flat_map(of).chain(passed.iter().cloned()).collect()
    }

    fn is_sound(&self) -> bool {
        !self.models.is_empty()
    }
}

/// The methods of both estimators.
macro_rules! stacks {
    ($stacking:ident, $any:ty, $fitted:ty, $name:expr) => {
        impl $stacking {
            /// Adds an estimator to scikit-learn's `estimators`.
            pub fn estimator<E>(self, name: &str, estimator: E) -> $stacking
            where
                E: Estimator + Params + Clone + Send + Sync + 'static,
                E::Fitted: Predict + Save + fmt::Debug + Send + Sync + 'static,
            {
                self.any(name, <$any>::new(estimator))
            }

            /// As `estimator`, of a type that is not told.
            pub fn any(self, name: &str, estimator: $any) -> $stacking {
                self.any_or_none(name, Some(estimator))
            }

            /// Adds a name whose estimator is left out: scikit-learn's `"drop"`. A search leaves one out by
            /// the parameter of its name, which is set to `"drop"`.
            pub fn dropped(self, name: &str) -> $stacking {
                self.any_or_none(name, None)
            }

            pub(crate) fn any_or_none(mut self, name: &str, estimator: Option<$any>) -> $stacking {
                self.stacking.estimators.all.push((name.to_owned(), estimator));
                self
            }

            /// scikit-learn's `final_estimator`: the estimator that learns from what the others tell.
            pub fn final_estimator<E>(self, estimator: E) -> $stacking
            where
                E: Estimator + Params + Clone + Send + Sync + 'static,
                E::Fitted: Predict + Save + fmt::Debug + Send + Sync + 'static,
            {
                self.any_final(<$any>::new(estimator))
            }

            /// As `final_estimator`, of a type that is not told.
            pub fn any_final(mut self, estimator: $any) -> $stacking {
                self.stacking.last = estimator;
                self
            }

            /// scikit-learn's `cv`: the splits; by default five folds.
            pub fn cv(mut self, folds: impl Into<Folds>) -> $stacking {
                self.stacking.folds = folds.into();
                self
            }

            /// scikit-learn's `passthrough`: whether the last estimator sees the samples as well.
            pub fn passthrough(mut self, passthrough: bool) -> $stacking {
                self.stacking.passthrough = passthrough;
                self
            }

            /// Fits all estimators on samples (n, d) and their targets (n,), on all and on the training set
            /// of each fold, and the last one on what they tell of the test sets.
            ///
            /// # Errors
            /// `ValueError` for no estimators, names that stand twice, estimators of another kind, and folds
            /// that do not fit; `TypeError` for weights of samples if an estimator takes none; errors of the
            /// fits.
            #[track_caller]
            pub fn fit(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<$fitted> {
                self.fit_any(x, Some(y), &options.into())
            }
        }

        impl $fitted {
            /// The results of the estimators for samples (n, d), which are the features of the last one, as
            /// an expression.
            ///
            /// # Errors
            /// Those that the predictions of the estimators carry.
            #[track_caller]
            pub fn transform(&self, x: &Tensor) -> Tensor {
                self.stack.transform(x)
            }

            /// The score on samples (n, d) and their targets: the share of right labels, or R².
            ///
            /// # Errors
            /// `ValueError` for shapes that do not fit; errors of the pass.
            #[track_caller]
            pub fn score(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<f64> {
                self.score_any(x, y, &options.into())
            }
        }

        impl Transform for $fitted {
            #[track_caller]
            fn transform(&self, x: &Tensor) -> Tensor {
                self.stack.transform(x)
            }

            fn step_body(&self) -> Option<Result<(&'static str, Vec<u8>)>> {
                Some(self.kind_and_body())
            }

            fn feature_names_out(&self, names: &[String]) -> Option<Vec<String>> {
                Some(self.stack.names_out($name, names))
            }
        }

        impl fmt::Display for $fitted {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($name)?;
                for (name, _, model) in &self.stack.models {
                    write!(f, "\n  {name}: {model}")?;
                }
                write!(f, "\n  final_estimator: {}", self.stack.last)
            }
        }
    };
}

stacks!(StackingClassifier, AnyClassifier, FittedStackingClassifier, CLASSIFIER);
stacks!(StackingRegressor, AnyRegressor, FittedStackingRegressor, REGRESSOR);

impl Default for StackingClassifier {
    fn default() -> StackingClassifier {
        let last = AnyClassifier::new(LogisticRegression::new());
        StackingClassifier { stacking: Stacking::new(last, StackMethod::Auto) }
    }
}

impl Default for StackingRegressor {
    fn default() -> StackingRegressor {
        StackingRegressor { stacking: Stacking::new(AnyRegressor::new(RidgeCV::new()), StackMethod::Predict) }
    }
}

impl StackingClassifier {
    /// No classifiers yet, and a [`LogisticRegression`] as the last one.
    pub fn new() -> StackingClassifier {
        StackingClassifier::default()
    }

    /// scikit-learn's `stack_method`: what the classifiers tell the last one.
    pub fn stack_method(mut self, method: StackMethod) -> StackingClassifier {
        self.stacking.method = method;
        self
    }
}

impl StackingRegressor {
    /// No regressors yet, and a [`RidgeCV`] as the last one.
    pub fn new() -> StackingRegressor {
        StackingRegressor::default()
    }
}

impl Estimator for StackingClassifier {
    type Fitted = FittedStackingClassifier;

    fn takes_weights(&self) -> bool {
        self.stacking.takes_weights()
    }

    fn takes_nan(&self) -> bool {
        self.stacking.estimators.takes_nan()
    }

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        y: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedStackingClassifier> {
        self.stacking.check()?;
        let training = Training::supervised(CLASSIFIER, x, y, options)?;
        let classes = Classes::of(&training)?;
        let stack = self.stacking.fitted(&training, &classes.positions())?;
        Ok(FittedStackingClassifier { classes: classes.values, stack })
    }
}

impl Estimator for StackingRegressor {
    type Fitted = FittedStackingRegressor;

    fn takes_weights(&self) -> bool {
        self.stacking.takes_weights()
    }

    fn takes_nan(&self) -> bool {
        self.stacking.estimators.takes_nan()
    }

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        y: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedStackingRegressor> {
        self.stacking.check()?;
        let training = Training::supervised(REGRESSOR, x, y, options)?;
        let y = training.one_target()?.squeeze(Some(&[1]));
        Ok(FittedStackingRegressor { stack: self.stacking.fitted(&training, &y)? })
    }
}

impl Params for StackingClassifier {
    fn estimator(&self) -> &'static str {
        CLASSIFIER
    }

    fn params(&self) -> Vec<(String, Setting)> {
        let method = ("stack_method".to_owned(), self.stacking.method.setting());
        std::iter::once(method).chain(self.stacking.params()).collect()
    }

    #[track_caller]
    fn set(&mut self, name: &str, value: &Setting) -> Result<()> {
        if name == "stack_method" {
            self.stacking.method = field(CLASSIFIER, name, value, 0)?;
            return Ok(());
        }
        self.stacking.set(CLASSIFIER, name, value)
    }
}

impl Params for StackingRegressor {
    fn estimator(&self) -> &'static str {
        REGRESSOR
    }

    fn params(&self) -> Vec<(String, Setting)> {
        self.stacking.params()
    }

    #[track_caller]
    fn set(&mut self, name: &str, value: &Setting) -> Result<()> {
        self.stacking.set(REGRESSOR, name, value)
    }
}

impl FittedStackingClassifier {
    /// The labels of samples (n, d), as an expression; (n,), int64.
    ///
    /// # Errors
    /// Those that the predictions of the estimators carry.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        class_tensor(&self.classes).take_at(&self.stack.last.predict(&self.transform(x)), 0)
    }

    /// The probabilities of classes, (n, k), as an expression; none if the last estimator tells none.
    ///
    /// # Errors
    /// As [`predict`](FittedStackingClassifier::predict).
    #[track_caller]
    pub fn predict_proba(&self, x: &Tensor) -> Option<Tensor> {
        self.stack.last.probabilities(&self.transform(x)).map(|(_, chances)| chances)
    }

    /// The decisions of the last estimator, as an expression; none if it tells none.
    ///
    /// # Errors
    /// As [`predict`](FittedStackingClassifier::predict).
    #[track_caller]
    pub fn decision_function(&self, x: &Tensor) -> Option<Tensor> {
        self.stack.last.decisions(&self.transform(x)).map(|(_, decisions)| decisions)
    }
}

impl FittedStackingRegressor {
    /// The predictions for samples (n, d), as an expression; (n,).
    ///
    /// # Errors
    /// Those that the predictions of the estimators carry.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        self.stack.last.predict(&self.transform(x))
    }
}

impl Predict for FittedStackingClassifier {
    const TASK: Task = Task::Classification;

    fn name(&self) -> &'static str {
        CLASSIFIER
    }

    #[track_caller]
    fn predict(&self, x: &Tensor) -> Tensor {
        FittedStackingClassifier::predict(self, x)
    }

    fn class_labels(&self) -> Option<&[i64]> {
        Some(&self.classes)
    }

    #[track_caller]
    fn probabilities(&self, x: &Tensor) -> Option<ByClass<'_>> {
        Some((&self.classes, self.predict_proba(x)?))
    }

    #[track_caller]
    fn decisions(&self, x: &Tensor) -> Option<ByClass<'_>> {
        Some((&self.classes, self.decision_function(x)?))
    }
}

predicts!(FittedStackingRegressor, Regression, REGRESSOR);
saved!(FittedStackingClassifier, CLASSIFIER, |model| !model.classes.is_empty() && model.stack.is_sound());
saved!(FittedStackingRegressor, REGRESSOR, |model| model.stack.is_sound());
