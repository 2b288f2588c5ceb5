//! Features that are added, or left out, as scores on folds say.

use super::support::Support;
use crate::base::{Estimator, FitOptions, Predict, Transform};
use crate::bounds::check;
use crate::checks::{Nan, Training, refused};
use crate::dense::positions;
use crate::held::{inner, unknown};
use crate::model_selection::{Share, Validation, cross_val_score};
use crate::params::{Auto, Parameter, Params, Setting, field, words};
use crate::saved::{Save, saved};
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::{Result, Tensor};

const NAME: &str = "SequentialFeatureSelector";

/// The way of a [`SequentialFeatureSelector`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SelectionDirection {
    /// From no features on.
    #[default]
    Forward,
    /// From all features on.
    Backward,
}

words!(
    SelectionDirection,
    ["forward" => SelectionDirection::Forward, "backward" => SelectionDirection::Backward]
);

/// scikit-learn's `SequentialFeatureSelector`: adds the feature with which models score best on folds, or
/// leaves out the one without which they do, until there are as many as wanted.
///
/// ```
/// use tharsis_learn::datasets::load_diabetes;
/// use tharsis_learn::feature_selection::SequentialFeatureSelector;
/// use tharsis_learn::linear_model::Ridge;
/// use tharsis_learn::model_selection::Share;
/// let data = load_diabetes()?;
/// let selector = SequentialFeatureSelector::new(Ridge::new()).n_features_to_select(Share::Count(2));
/// let model = selector.fit(&data.data, &data.target, ..)?;
/// // The body mass index, and one of the six tests of blood serum.
/// assert!(model.support()[2] && model.support()[8]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct SequentialFeatureSelector<E> {
    estimator: E,
    n_features_to_select: Auto<Share>,
    tol: Option<f64>,
    direction: SelectionDirection,
    validation: Validation,
}

/// A fitted [`SequentialFeatureSelector`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedSequentialFeatureSelector {
    support: Support,
}

impl<E> SequentialFeatureSelector<E> {
    /// scikit-learn's defaults: half of the features, by five folds and the model's own score.
    pub fn new(estimator: E) -> SequentialFeatureSelector<E> {
        SequentialFeatureSelector {
            estimator,
            n_features_to_select: Auto(None),
            tol: None,
            direction: SelectionDirection::Forward,
            validation: Validation::default(),
        }
    }

    /// scikit-learn's `n_features_to_select`: the features that are chosen, as a number or a part; without it
    /// as many as raise the score by `tol`, or half.
    pub fn n_features_to_select(self, count: impl Into<Option<Share>>) -> SequentialFeatureSelector<E> {
        SequentialFeatureSelector { n_features_to_select: Auto(count.into()), ..self }
    }

    /// scikit-learn's `tol`: the rise of the score from which on there is another step; without a number of
    /// features.
    pub fn tol(self, tol: impl Into<Option<f64>>) -> SequentialFeatureSelector<E> {
        SequentialFeatureSelector { tol: tol.into(), ..self }
    }

    /// scikit-learn's `direction`: whether features are added or left out.
    pub fn direction(self, direction: SelectionDirection) -> SequentialFeatureSelector<E> {
        SequentialFeatureSelector { direction, ..self }
    }

    /// Folds, score and other options of the validation. Those of fits are replaced by those of `fit`.
    pub fn validation(self, validation: impl Into<Validation>) -> SequentialFeatureSelector<E> {
        SequentialFeatureSelector { validation: validation.into(), ..self }
    }

    /// Features that are chosen of so many.
    #[track_caller]
    fn wanted(&self, columns: usize) -> Result<usize> {
        let is_part = |part: f64| 0.0 < part && part <= 1.0;
        match self.n_features_to_select.0 {
            None if self.tol.is_some() => Ok(columns - 1),
            // scikit-learn moves half of the features, rounded down: backwards those that are left out.
            None if self.direction == SelectionDirection::Backward => Ok(columns - columns / 2),
            None => Ok(columns / 2),
            Some(Share::Count(count)) if columns <= count => {
                Err(refused("n_features_to_select must be < n_features."))
            }
            Some(Share::Count(count)) => {
                let wanted =
                    "a str among {'auto'}, a float in the range (0.0, 1.0] or an int in the range [1, inf)";
                check(NAME, "n_features_to_select", 0 < count, wanted, count)?;
                Ok(count)
            }
            Some(Share::Fraction(part)) => {
                let wanted =
                    "a str among {'auto'}, a float in the range (0.0, 1.0] or an int in the range [1, inf)";
                check(NAME, "n_features_to_select", is_part(part), wanted, part)?;
                Ok((part * columns as f64) as usize)
            }
        }
    }
}

impl<E: Estimator<Fitted: Predict>> SequentialFeatureSelector<E> {
    /// Fits models on the folds of samples (n, d) and their targets, one for each feature that may be added
    /// or left out.
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, one feature, folds that do not fit, and NaN and
    /// infinity of which a model cannot make a score; errors of the fits.
    #[track_caller]
    pub fn fit(
        &self,
        x: &Tensor,
        y: &Tensor,
        options: impl Into<FitOptions>,
    ) -> Result<FittedSequentialFeatureSelector> {
        self.fit_any(x, Some(y), &options.into())
    }
}

impl<E: Estimator<Fitted: Predict>> Estimator for SequentialFeatureSelector<E> {
    type Fitted = FittedSequentialFeatureSelector;

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
    ) -> Result<FittedSequentialFeatureSelector> {
        let training = Training::supervised(NAME, x, y, options)?;
        let columns = training.columns;
        training.check_least(1, 2)?;
        if !self.estimator.takes_nan() {
            training.check_finite(Nan::Refused)?;
        }
        let is_forward = self.direction == SelectionDirection::Forward;
        let may_fall = self.tol.is_none_or(|tol| 0.0 < tol);
        if is_forward && !may_fall {
            return Err(refused("tol must be strictly positive when doing forward selection"));
        }
        let wanted = self.wanted(columns)?;
        let is_auto = self.n_features_to_select.0.is_none() && self.tol.is_some();
        let steps = if is_auto || is_forward { wanted } else { columns - wanted };
        // The features that are chosen, or those that are left out.
        let mut moved: Vec<usize> = Vec::new();
        let mut before = f64::NEG_INFINITY;
        let validation = Validation { fit: training.weighted_options(), ..self.validation.clone() };
        for _ in 0..steps {
            let mut best: Option<(f64, usize)> = None;
            for column in (0..columns).filter(|column| !moved.contains(column)) {
                let of = |at: &usize| (moved.contains(at) || *at == column) == is_forward;
                let chosen: Vec<usize> = (0..columns).filter(of).collect();
                let part = training.x.take_at(&positions(&chosen), 1);
                let scores = cross_val_score(&self.estimator, &part, training.target()?, validation.clone())?;
                let score = scores.iter().sum::<f64>() / scores.len() as f64;
                if best.is_none_or(|(most, _)| most < score || most.is_nan()) {
                    best = Some((score, column));
                }
            }
            let Some((score, column)) = best else { break };
            if is_auto && self.tol.is_some_and(|tol| score - before < tol) {
                break;
            }
            before = score;
            moved.push(column);
        }
        let mask = (0..columns).map(|column| moved.contains(&column) == is_forward).collect();
        let takes_nan = self.estimator.takes_nan();
        Ok(FittedSequentialFeatureSelector { support: Support { model: NAME, mask, takes_nan } })
    }
}

impl<E: Params> Params for SequentialFeatureSelector<E> {
    fn estimator(&self) -> &'static str {
        NAME
    }

    fn params(&self) -> Vec<(String, Setting)> {
        let own = [
            ("n_features_to_select".to_owned(), self.n_features_to_select.setting()),
            ("tol".to_owned(), self.tol.setting()),
            ("direction".to_owned(), self.direction.setting()),
        ];
        own.into_iter().chain(inner("estimator", &self.estimator)).collect()
    }

    #[track_caller]
    fn set(&mut self, name: &str, value: &Setting) -> Result<()> {
        if let Some(inner) = name.strip_prefix("estimator__") {
            return self.estimator.set(inner, value);
        }
        match name {
            "n_features_to_select" => self.n_features_to_select = field(NAME, name, value, 1)?,
            "tol" => self.tol = field(NAME, name, value, 0)?,
            "direction" => self.direction = field(NAME, name, value, 0)?,
            _ => {
                let known =
                    ["cv", "direction", "estimator", "n_features_to_select", "n_jobs", "scoring", "tol"];
                return Err(unknown(NAME, &known, name));
            }
        }
        Ok(())
    }
}

impl FittedSequentialFeatureSelector {
    /// scikit-learn's `support_`: whether each feature is chosen; (d,).
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

saved!(FittedSequentialFeatureSelector, NAME, |model| model.support.is_sound(&[]));

impl Transform for FittedSequentialFeatureSelector {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        FittedSequentialFeatureSelector::transform(self, x)
    }

    #[track_caller]
    fn inverse(&self, x: &Tensor) -> Option<Tensor> {
        Some(self.inverse_transform(x))
    }

    fn step_body(&self) -> Option<Result<(&'static str, Vec<u8>)>> {
        Some(self.support.kind_and_body())
    }

    fn feature_names_out(&self, names: &[String]) -> Option<Vec<String>> {
        self.support.names(names)
    }
}

impl fmt::Display for FittedSequentialFeatureSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{NAME}: {} of {} features", self.support.chosen().len(), self.support.mask.len())
    }
}
