//! Some of the features of samples, and the way back.

use crate::base::Transform;
use crate::checks::{in_dtype_of, samples_for, unchecked_for};
use crate::dense::positions;
use crate::saved::{EstimatorName, Save, name_among, saved};
use ndarray::Array1;
use serde::{Deserialize, Deserializer, Serialize};
use tharsis_numeric::{Result, Tensor, concatenate, where_};

/// The chosen ones of so many features.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Support {
    #[serde(deserialize_with = "selector")]
    pub(crate) model: EstimatorName,
    /// Whether each feature is chosen; (d,).
    pub(crate) mask: Vec<bool>,
    /// Whether samples may have NaN, and infinity too, as scikit-learn's selectors have it.
    pub(crate) takes_nan: bool,
}

/// The estimators that have it.
const SELECTORS: &[&str] = &[
    "RFE",
    "SelectFdr",
    "SelectFpr",
    "SelectFromModel",
    "SelectFwe",
    "SelectKBest",
    "SelectPercentile",
    "SequentialFeatureSelector",
    "VarianceThreshold",
];

fn selector<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<&'static str, D::Error> {
    name_among(deserializer, SELECTORS)
}

impl Support {
    /// Whether these are of the same features.
    pub(crate) fn is_sound(&self, others: &[&Array1<f64>]) -> bool {
        !self.mask.is_empty() && others.iter().all(|other| other.len() == self.mask.len())
    }

    /// The chosen features, ascending.
    pub(crate) fn chosen(&self) -> Vec<usize> {
        (0..self.mask.len()).filter(|&at| self.mask[at]).collect()
    }

    /// The chosen features of samples: (n, d) to (n, k); floats keep their dtype. Carries a `ValueError` for
    /// another number of features; when run for NaN and infinity, if they are refused.
    #[track_caller]
    pub(crate) fn transform(&self, x: &Tensor) -> Tensor {
        let samples_for = if self.takes_nan { unchecked_for } else { samples_for };
        match samples_for(self.model, x, self.mask.len()) {
            Ok(samples) => in_dtype_of(x, samples.take_at(&positions(&self.chosen()), 1)),
            Err(error) => Tensor::from(error),
        }
    }

    /// The names of the chosen features.
    pub(crate) fn names(&self, names: &[String]) -> Option<Vec<String>> {
        crate::feature_names::at(names, &self.chosen(), self.mask.len())
    }

    /// Samples with zeros in the place of features that are not chosen: (n, k) to (n, d). Carries a
    /// `ValueError` when run for NaN and infinity.
    #[track_caller]
    pub(crate) fn inverse_transform(&self, x: &Tensor) -> Tensor {
        match self.filled_up(x) {
            Ok(made) => in_dtype_of(x, made),
            Err(error) => Tensor::from(error),
        }
    }

    #[track_caller]
    fn filled_up(&self, x: &Tensor) -> Result<Tensor> {
        let chosen = self.chosen();
        let samples = samples_for(self.model, x, chosen.len())?;
        if chosen.is_empty() {
            return Ok(samples);
        }
        let first = samples.get(&[(..).into(), (..1i64).into()]);
        let zeros = where_(&first.isnan().logical_or(true), 0.0, &first);
        let mut places = vec![chosen.len(); self.mask.len()];
        chosen.iter().enumerate().for_each(|(at, &column)| places[column] = at);
        Ok(concatenate(&[&samples, &zeros], 1).take_at(&positions(&places), 1))
    }
}

saved!(Support, "Support", |support| support.is_sound(&[]));

/// A choice of features alone: the step of a saved pipeline.
impl Transform for Support {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        Support::transform(self, x)
    }

    #[track_caller]
    fn inverse(&self, x: &Tensor) -> Option<Tensor> {
        Some(self.inverse_transform(x))
    }

    fn step_body(&self) -> Option<Result<(&'static str, Vec<u8>)>> {
        Some(self.kind_and_body())
    }

    fn feature_names_out(&self, names: &[String]) -> Option<Vec<String>> {
        self.names(names)
    }
}
