//! scikit-learn's `compose`: transformers of some columns each, and a regressor of targets that are mapped.

use crate::base::{Estimator, FitOptions, Predict, Transform, predicts};
use crate::checks::{Training, refused};
use crate::held::{AnyRegressor, FittedAny, Regresses, inner, unknown};
use crate::linear_model::LinearRegression;
use crate::params::{Params, Setting};
use crate::pipeline::{is_read_again, read_step};
use crate::saved::{Save, decoded, encoded};
use std::fmt;
use std::sync::Arc;
use tharsis_graph::Error as GraphError;
use tharsis_numeric::{Error, Result, Tensor};

pub use crate::column_transformer::{ColumnTransformer, FittedColumnTransformer};
pub use crate::step_parts::{Columns, Remainder};

const NAME: &str = "TransformedTargetRegressor";

/// A function of targets.
type Map = fn(&Tensor) -> Tensor;

/// scikit-learn's `TransformedTargetRegressor`: a regressor of targets that are mapped, whose predictions are
/// mapped back. The mapped targets are an expression that the passes of the regressor compute.
///
/// ```
/// use tharsis_learn::compose::TransformedTargetRegressor;
/// use tharsis_numeric::{Tensor, arange};
/// let x = arange(6).reshape(&[6, 1]);
/// let y = arange(6).exp();
/// let estimator = TransformedTargetRegressor::new().functions(Tensor::log, Tensor::exp);
/// let model = estimator.fit(&x, &y, ..)?;
/// assert!((model.score(&x, &y, ..)? - 1.0).abs() < 1e-9);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct TransformedTargetRegressor {
    regressor: AnyRegressor,
    transformer: Option<Box<dyn Mapping>>,
    functions: Option<(Map, Map)>,
}

/// A fitted [`TransformedTargetRegressor`].
#[derive(Clone)]
#[non_exhaustive]
pub struct FittedTransformedTargetRegressor {
    /// scikit-learn's `regressor_`: the model of the mapped targets.
    pub regressor: FittedAny<Regresses>,
    mapped: Mapped,
    /// Whether targets have one axis.
    is_line: bool,
}

/// The way from targets to what the regressor predicts, and back.
#[derive(Clone)]
enum Mapped {
    Itself,
    Functions(Map),
    Model(Arc<dyn Transform + Send + Sync>),
}

/// A transformer of targets of any type.
pub(crate) trait Mapping: fmt::Debug + Send + Sync {
    fn fitted(&self, y: &Tensor, options: &FitOptions) -> Result<Arc<dyn Transform + Send + Sync>>;

    fn params(&self) -> &dyn Params;

    fn params_mut(&mut self) -> &mut dyn Params;

    fn boxed(&self) -> Box<dyn Mapping>;
}

impl<E> Mapping for E
where
    E: Estimator + Params + Clone + fmt::Debug + Send + Sync + 'static,
    E::Fitted: Transform + Send + Sync + 'static,
{
    #[track_caller]
    fn fitted(&self, y: &Tensor, options: &FitOptions) -> Result<Arc<dyn Transform + Send + Sync>> {
        Ok(Arc::new(self.fit_any(y, None, options)?))
    }

    fn params(&self) -> &dyn Params {
        self
    }

    fn params_mut(&mut self) -> &mut dyn Params {
        self
    }

    fn boxed(&self) -> Box<dyn Mapping> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Mapping> {
    fn clone(&self) -> Box<dyn Mapping> {
        (**self).boxed()
    }
}

impl Default for TransformedTargetRegressor {
    fn default() -> TransformedTargetRegressor {
        let regressor = AnyRegressor::new(LinearRegression::new());
        TransformedTargetRegressor { regressor, transformer: None, functions: None }
    }
}

impl TransformedTargetRegressor {
    /// A [`LinearRegression`] of the targets as they are.
    pub fn new() -> TransformedTargetRegressor {
        TransformedTargetRegressor::default()
    }

    /// scikit-learn's `regressor`: the regressor of the mapped targets.
    pub fn regressor<E>(self, regressor: E) -> TransformedTargetRegressor
    where
        E: Estimator + Params + Clone + Send + Sync + 'static,
        E::Fitted: Predict + Save + fmt::Debug + Send + Sync + 'static,
    {
        self.any(AnyRegressor::new(regressor))
    }

    /// As [`regressor`](TransformedTargetRegressor::regressor), of a type that is not told.
    pub fn any(self, regressor: AnyRegressor) -> TransformedTargetRegressor {
        TransformedTargetRegressor { regressor, ..self }
    }

    /// scikit-learn's `transformer`: maps targets as samples of one feature, or of as many as there are
    /// targets, and back.
    ///
    /// ```
    /// use tharsis_learn::compose::TransformedTargetRegressor;
    /// use tharsis_learn::preprocessing::StandardScaler;
    /// use tharsis_numeric::arange;
    /// let x = arange(6).reshape(&[6, 1]);
    /// let estimator = TransformedTargetRegressor::new().transformer(StandardScaler::new());
    /// let model = estimator.fit(&x, &(arange(6) * 2.0), ..)?;
    /// assert!((model.predict(&x).to_vec::<f64>()?[5] - 10.0).abs() < 1e-9);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn transformer<E>(self, transformer: E) -> TransformedTargetRegressor
    where
        E: Estimator + Params + Clone + fmt::Debug + Send + Sync + 'static,
        E::Fitted: Transform + Send + Sync + 'static,
    {
        TransformedTargetRegressor { transformer: Some(Box::new(transformer)), ..self }
    }

    /// As [`transformer`](TransformedTargetRegressor::transformer), of a type that is not told.
    pub(crate) fn mapping(self, map: Box<dyn Mapping>) -> TransformedTargetRegressor {
        TransformedTargetRegressor { transformer: Some(map), ..self }
    }

    /// scikit-learn's `func` and `inverse_func`: functions that map targets and their predictions back. A
    /// model with functions cannot be saved.
    pub fn functions(self, func: Map, inverse_func: Map) -> TransformedTargetRegressor {
        TransformedTargetRegressor { functions: Some((func, inverse_func)), ..self }
    }

    /// Fits the regressor on samples (n, d) and their mapped targets, (n,) or (n, k).
    ///
    /// # Errors
    /// `ValueError` for a transformer and functions at once, a transformer that has no way back, and an
    /// estimator that is no regressor; errors of the fits.
    #[track_caller]
    pub fn fit(
        &self,
        x: &Tensor,
        y: &Tensor,
        options: impl Into<FitOptions>,
    ) -> Result<FittedTransformedTargetRegressor> {
        self.fit_any(x, Some(y), &options.into())
    }
}

impl Estimator for TransformedTargetRegressor {
    type Fitted = FittedTransformedTargetRegressor;

    fn takes_weights(&self) -> bool {
        self.regressor.takes_weights()
    }

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        y: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedTransformedTargetRegressor> {
        self.regressor.check()?;
        let training = Training::supervised(NAME, x, y, options)?;
        // A transformer may take NaN for numbers that are missing.
        training.check_finite_target()?;
        let is_line = training.target()?.ndim()? == 1;
        let targets = training.target_columns()?;
        let (made, mapped) = match (&self.transformer, self.functions) {
            (Some(_), Some(_)) => {
                let text = "'transformer' and functions 'func'/'inverse_func' cannot both be set.";
                return Err(refused(text));
            }
            (Some(transformer), None) => {
                let model = transformer.fitted(&targets, &training.options())?;
                let made = model.transform(&targets);
                if model.inverse(&made).is_none() {
                    let name = transformer.params().estimator();
                    return Err(refused(format!("'{name}' object has no attribute 'inverse_transform'")));
                }
                (made, Mapped::Model(model))
            }
            (None, Some((func, inverse_func))) => (func(&targets), Mapped::Functions(inverse_func)),
            (None, None) => (targets, Mapped::Itself),
        };
        let made = if made.shape()?.last() == Some(&1) { made.squeeze(Some(&[1])) } else { made };
        let regressor = self.regressor.fit_any(&training.x, Some(&made), &training.weighted_options())?;
        Ok(FittedTransformedTargetRegressor { regressor, mapped, is_line })
    }
}

impl Params for TransformedTargetRegressor {
    fn estimator(&self) -> &'static str {
        NAME
    }

    fn params(&self) -> Vec<(String, Setting)> {
        let of_regressor = inner("regressor", self.regressor.params());
        let of_transformer = self.transformer.iter().flat_map(|map| inner("transformer", map.params()));
        of_regressor.chain(of_transformer).collect()
    }

    #[track_caller]
    fn set(&mut self, name: &str, value: &Setting) -> Result<()> {
        match (name.split_once("__"), &mut self.transformer) {
            (Some(("regressor", param)), _) => self.regressor.params_mut().set(param, value),
            (Some(("transformer", param)), Some(map)) => map.params_mut().set(param, value),
            _ => {
                let known = ["regressor", "transformer", "func", "inverse_func", "check_inverse"];
                Err(unknown(NAME, &known, name))
            }
        }
    }
}

impl FittedTransformedTargetRegressor {
    /// The predictions for samples (n, d), mapped back, as an expression; (n,) or (n, k).
    ///
    /// # Errors
    /// Those that the predictions of the regressor carry.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        self.told(x).unwrap_or_else(Tensor::from)
    }

    #[track_caller]
    fn told(&self, x: &Tensor) -> Result<Tensor> {
        let told = self.regressor.predict(x);
        let told = if told.ndim()? == 1 { told.expand_dims(1) } else { told };
        let back = match &self.mapped {
            Mapped::Itself => told,
            Mapped::Functions(inverse) => inverse(&told),
            Mapped::Model(model) => {
                model.inverse(&told).ok_or_else(|| refused("the transformer has no way back"))?
            }
        };
        let is_one = self.is_line && back.shape()?.last() == Some(&1);
        Ok(if is_one { back.squeeze(Some(&[1])) } else { back })
    }

    /// R² of the predictions for samples (n, d) with these targets.
    ///
    /// # Errors
    /// `ValueError` for shapes that do not fit; errors of the pass.
    #[track_caller]
    pub fn score(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<f64> {
        self.score_any(x, y, &options.into())
    }
}

predicts!(FittedTransformedTargetRegressor, Regression, NAME);

/// The name of a transformer's type, and its numbers; none without a transformer.
type SavedMap = Option<(String, Vec<u8>)>;

impl Save for FittedTransformedTargetRegressor {
    const KIND: &'static str = NAME;

    /// `NotImplemented` for functions, and for a transformer of a type that has no place in files.
    #[track_caller]
    fn body(&self) -> Result<Vec<u8>> {
        let missing =
            |what: &str| Error::here(GraphError::NotImplemented(format!("{what} of a saved {NAME}")));
        let map: SavedMap = match &self.mapped {
            Mapped::Itself => None,
            Mapped::Functions(_) => return Err(missing("functions")),
            Mapped::Model(model) => {
                let saved = model.step_body().filter(is_read_again);
                let (kind, body) = saved.ok_or_else(|| missing("this transformer"))??;
                Some((kind.to_owned(), body))
            }
        };
        encoded(&(&self.regressor, map, self.is_line))
    }

    fn of_body(body: &[u8]) -> Option<FittedTransformedTargetRegressor> {
        let (regressor, map, is_line): (FittedAny<Regresses>, SavedMap, bool) = decoded(body)?;
        let mapped = match map {
            None => Mapped::Itself,
            Some((kind, body)) => Mapped::Model(Arc::from(read_step(&kind, &body)?)),
        };
        Some(FittedTransformedTargetRegressor { regressor, mapped, is_line })
    }
}

impl fmt::Debug for FittedTransformedTargetRegressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FittedTransformedTargetRegressor({:?})", self.regressor)
    }
}

impl fmt::Display for FittedTransformedTargetRegressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{NAME}\n  regressor: {}", self.regressor)
    }
}
