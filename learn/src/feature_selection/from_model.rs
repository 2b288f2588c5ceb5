//! Features that count enough for a model.

use super::importance::{Magnitude, magnitudes};
use super::support::Support;
use crate::base::{Estimator, FitOptions, Predict, Transform};
use crate::bounds::check;
use crate::checks::{Training, refused};
use crate::held::{FittedAny, Regresses, inner, unknown};
use crate::linear_model::FittedElasticNetCV;
use crate::params::{Parameter, Params, Setting, field};
use crate::saved::{Save, decoded, encoded};
use std::any::Any;
use std::fmt;
use tharsis_numeric::{Result, Tensor};

const NAME: &str = "SelectFromModel";
/// The threshold of models that make coefficients zero.
const ALMOST_ZERO: f64 = 1e-5;

/// The number from which on a feature counts enough.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum SelectionThreshold {
    /// 1e-5 for a `Lasso` and its like, else the mean.
    #[default]
    Default,
    /// This number.
    Number(f64),
    /// A multiple of the mean.
    Mean(f64),
    /// A multiple of the median.
    Median(f64),
}

impl From<f64> for SelectionThreshold {
    fn from(number: f64) -> SelectionThreshold {
        SelectionThreshold::Number(number)
    }
}

impl Parameter for SelectionThreshold {
    fn words(_: usize) -> String {
        "a float, a str of 'mean' or 'median' with a factor, or None".to_owned()
    }

    fn of(value: &Setting) -> Option<SelectionThreshold> {
        let text = match value {
            Setting::None => return Some(SelectionThreshold::Default),
            Setting::Text(text) => text,
            number => return f64::of(number).map(SelectionThreshold::Number),
        };
        let (factor, reference) = match text.split_once('*') {
            Some((factor, reference)) => (factor.trim().parse().ok()?, reference.trim()),
            None => (1.0, text.as_str()),
        };
        match reference {
            "mean" => Some(SelectionThreshold::Mean(factor)),
            "median" => Some(SelectionThreshold::Median(factor)),
            _ => None,
        }
    }

    fn setting(&self) -> Setting {
        let scaled = |factor: f64, word: &str| -> Setting {
            if factor == 1.0 { word.into() } else { Setting::Text(format!("{factor:?}*{word}")) }
        };
        match *self {
            SelectionThreshold::Default => Setting::None,
            SelectionThreshold::Number(number) => number.setting(),
            SelectionThreshold::Mean(factor) => scaled(factor, "mean"),
            SelectionThreshold::Median(factor) => scaled(factor, "median"),
        }
    }
}

/// scikit-learn's `SelectFromModel`: the features whose coefficients or importances in a model reach a
/// threshold.
///
/// ```
/// use tharsis_learn::feature_selection::SelectFromModel;
/// use tharsis_learn::linear_model::LinearRegression;
/// use tharsis_numeric::array;
/// let x = array([1.0, 5.0, 2.0, 3.0, 3.0, 7.0, 4.0, 1.0]).reshape(&[4, 2]);
/// let selector = SelectFromModel::new(LinearRegression::new());
/// let model = selector.fit(&x, &array([2.0, 4.0, 6.0, 8.0]), ..)?;
/// assert_eq!(model.support(), [true, false]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct SelectFromModel<E> {
    estimator: E,
    threshold: SelectionThreshold,
    norm_order: f64,
    max_features: Option<usize>,
}

/// A fitted [`SelectFromModel`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FittedSelectFromModel<M> {
    /// scikit-learn's `estimator_`: the model of all features.
    pub model: M,
    /// scikit-learn's `threshold_`.
    pub threshold: f64,
    support: Support,
}

impl<E> SelectFromModel<E> {
    /// scikit-learn's defaults: features that count as much as the mean of all.
    pub fn new(estimator: E) -> SelectFromModel<E> {
        SelectFromModel {
            estimator,
            threshold: SelectionThreshold::Default,
            norm_order: 1.0,
            max_features: None,
        }
    }

    /// scikit-learn's `threshold`: the number from which on a feature counts enough.
    pub fn threshold(self, threshold: impl Into<SelectionThreshold>) -> SelectFromModel<E> {
        SelectFromModel { threshold: threshold.into(), ..self }
    }

    /// scikit-learn's `norm_order`: the norm of coefficients of several scores; not zero.
    pub fn norm_order(self, norm_order: f64) -> SelectFromModel<E> {
        SelectFromModel { norm_order, ..self }
    }

    /// scikit-learn's `max_features`: the most features, those that count most.
    pub fn max_features(self, max_features: impl Into<Option<usize>>) -> SelectFromModel<E> {
        SelectFromModel { max_features: max_features.into(), ..self }
    }
}

impl<E> SelectFromModel<E>
where
    E: Estimator + Params,
    E::Fitted: Predict + Save + fmt::Debug + Send + Sync + 'static,
{
    /// Fits the model on samples (n, d) and their targets.
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, and for a model without coefficients or importances;
    /// errors of the fit.
    #[track_caller]
    pub fn fit(
        &self,
        x: &Tensor,
        y: &Tensor,
        options: impl Into<FitOptions>,
    ) -> Result<FittedSelectFromModel<E::Fitted>> {
        self.fit_any(x, Some(y), &options.into())
    }

    /// The threshold of the magnitudes of a model.
    fn bound(&self, model: &E::Fitted, scores: &[f64]) -> f64 {
        let mean = || scores.iter().sum::<f64>() / scores.len() as f64;
        match self.threshold {
            SelectionThreshold::Number(number) => number,
            SelectionThreshold::Mean(factor) => factor * mean(),
            SelectionThreshold::Median(factor) => {
                let mut sorted = scores.to_vec();
                sorted.sort_by(f64::total_cmp);
                let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
                factor * (low + high) / 2.0
            }
            SelectionThreshold::Default if self.makes_zeros(model) => ALMOST_ZERO,
            SelectionThreshold::Default => mean(),
        }
    }

    /// True if a penalty on absolute values alone has made coefficients zero.
    fn makes_zeros(&self, model: &E::Fitted) -> bool {
        let params = self.estimator.params();
        let param = |wanted: &str| params.iter().find(|(name, _)| name == wanted).map(|(_, value)| value);
        match self.estimator.estimator() {
            name if name.contains("Lasso") => true,
            "ElasticNet" => param("l1_ratio").and_then(f64::of).is_some_and(is_whole),
            "ElasticNetCV" => chosen_ratio(model).is_some_and(is_whole),
            _ => param("penalty").is_some_and(|penalty| penalty.to_string() == "'l1'"),
        }
    }
}

/// True if a part is the whole, as far as NumPy's `isclose` tells.
fn is_whole(part: f64) -> bool {
    (part - 1.0).abs() <= 1e-5 + 1e-8
}

/// The part of the absolute values that an `ElasticNetCV` has chosen.
fn chosen_ratio<M: 'static>(model: &M) -> Option<f64> {
    let model: &dyn Any = model;
    let chosen: Option<&FittedElasticNetCV> = match model.downcast_ref::<FittedAny<Regresses>>() {
        Some(held) => held.downcast_ref(),
        None => model.downcast_ref(),
    };
    chosen.map(|chosen| chosen.l1_ratio)
}

impl<E> Estimator for SelectFromModel<E>
where
    E: Estimator + Params,
    E::Fitted: Predict + Save + fmt::Debug + Send + Sync + 'static,
{
    type Fitted = FittedSelectFromModel<E::Fitted>;

    fn takes_weights(&self) -> bool {
        self.estimator.takes_weights()
    }

    fn takes_nan(&self) -> bool {
        self.estimator.takes_nan()
    }

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        y: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedSelectFromModel<E::Fitted>> {
        let is_norm = self.norm_order != 0.0 && !self.norm_order.is_nan();
        check(NAME, "norm_order", is_norm, "a float that is not 0", self.norm_order)?;
        let training = Training::supervised(NAME, x, y, options)?;
        let columns = training.columns;
        if let Some(most) = self.max_features.filter(|&most| columns < most) {
            return Err(refused(format!("max_features ==  {most}, must be <= {columns}.")));
        }
        let model =
            self.estimator.fit_any(&training.x, Some(training.target()?), &training.weighted_options())?;
        let scores = magnitudes(&model, columns, Magnitude::Norm(self.norm_order))?;
        let threshold = self.bound(&model, &scores);
        let mut order: Vec<usize> = (0..columns).collect();
        order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        let most = self.max_features.unwrap_or(columns);
        let mut mask = vec![false; columns];
        order[..most].iter().for_each(|&column| mask[column] = threshold <= scores[column]);
        let support = Support { model: NAME, mask, takes_nan: self.estimator.takes_nan() };
        Ok(FittedSelectFromModel { model, threshold, support })
    }
}

impl<E: Params> Params for SelectFromModel<E> {
    fn estimator(&self) -> &'static str {
        NAME
    }

    fn params(&self) -> Vec<(String, Setting)> {
        let own = [
            ("threshold".to_owned(), self.threshold.setting()),
            ("norm_order".to_owned(), self.norm_order.setting()),
            ("max_features".to_owned(), self.max_features.setting()),
        ];
        own.into_iter().chain(inner("estimator", &self.estimator)).collect()
    }

    #[track_caller]
    fn set(&mut self, name: &str, value: &Setting) -> Result<()> {
        if let Some(inner) = name.strip_prefix("estimator__") {
            return self.estimator.set(inner, value);
        }
        match name {
            "threshold" => self.threshold = field(NAME, name, value, 0)?,
            "norm_order" => self.norm_order = field(NAME, name, value, 0)?,
            "max_features" => self.max_features = field(NAME, name, value, 0)?,
            _ => return Err(unknown(NAME, &["estimator", "max_features", "norm_order", "threshold"], name)),
        }
        Ok(())
    }
}

impl<M> FittedSelectFromModel<M> {
    /// scikit-learn's `get_support`: whether each feature is chosen; (d,).
    #[must_use]
    pub fn support(&self) -> &[bool] {
        &self.support.mask
    }

    /// The chosen features of samples, as an expression: (n, d) to (n, k). Carries a `ValueError` for another
    /// number of features.
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        self.support.transform(x)
    }

    /// Samples with zeros in the place of features that were left out: (n, k) to (n, d).
    #[track_caller]
    pub fn inverse_transform(&self, x: &Tensor) -> Tensor {
        self.support.inverse_transform(x)
    }
}

impl<M> Transform for FittedSelectFromModel<M> {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        FittedSelectFromModel::transform(self, x)
    }

    #[track_caller]
    fn inverse(&self, x: &Tensor) -> Option<Tensor> {
        Some(self.inverse_transform(x))
    }

    /// A step of a pipeline needs its choice of features, and no model.
    fn step_body(&self) -> Option<Result<(&'static str, Vec<u8>)>> {
        Some(self.support.kind_and_body())
    }

    fn feature_names_out(&self, names: &[String]) -> Option<Vec<String>> {
        self.support.names(names)
    }
}

impl<M: Save> Save for FittedSelectFromModel<M> {
    const KIND: &'static str = NAME;

    #[track_caller]
    fn body(&self) -> Result<Vec<u8>> {
        let (kind, body) = self.model.kind_and_body()?;
        encoded(&(self.threshold, &self.support, kind, body))
    }

    fn of_body(body: &[u8]) -> Option<FittedSelectFromModel<M>> {
        let (threshold, support, kind, body): (f64, Support, String, Vec<u8>) = decoded(body)?;
        let model = M::of_kind(&kind, &body)?;
        support.is_sound(&[]).then_some(FittedSelectFromModel { model, threshold, support })
    }
}

impl<M> fmt::Display for FittedSelectFromModel<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (chosen, all) = (self.support.chosen().len(), self.support.mask.len());
        write!(f, "{NAME}: {chosen} of {all} features, threshold {}", self.threshold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AnyRegressor;
    use crate::linear_model::{ElasticNet, ElasticNetCV};
    use tharsis_numeric::arange;

    fn threshold<E>(estimator: E) -> f64
    where
        E: Estimator + Params,
        E::Fitted: Predict + Save + fmt::Debug + Send + Sync + 'static,
    {
        let x = (arange(40) * 7 % 11).reshape(&[20, 2]);
        SelectFromModel::new(estimator).fit(&x, &x.sum(1), ..).unwrap().threshold
    }

    #[test]
    fn the_least_coefficients_count_if_a_net_has_absolute_values_alone() {
        for ratio in [1.0, 0.999_995] {
            let chosen = ElasticNetCV::new().l1_ratio([0.999_995, ratio]);
            assert_eq!(threshold(chosen.clone()), ALMOST_ZERO);
            assert_eq!(threshold(AnyRegressor::new(chosen)), ALMOST_ZERO);
            assert_eq!(threshold(ElasticNet::new().l1_ratio(ratio)), ALMOST_ZERO);
        }
        let (chosen, one) = (ElasticNetCV::new().l1_ratio([0.5, 0.9]), ElasticNet::new().l1_ratio(0.999));
        assert!(ALMOST_ZERO < threshold(chosen).min(threshold(one)));
    }
}
