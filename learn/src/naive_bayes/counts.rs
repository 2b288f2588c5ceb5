//! Sums of the samples of each class, by one plan.

use crate::checks::{Nan, Training, refused};
use crate::labels::Classes;
use crate::score::check_some_weight;
use crate::states::{all_finite, lost, matrix, vector};
use ndarray::{Array1, Array2};
use tharsis_numeric::{Result, Tensor};

/// Sums of counts.
pub(crate) struct Counts {
    /// The weights of each class; (k,).
    pub(crate) class: Array1<f64>,
    /// The weighted sums of the features of each class; (k, d).
    pub(crate) feature: Array2<f64>,
}

/// Numbers that features may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Range {
    Any,
    NotNegative,
}

impl Counts {
    /// The sums of these features (n, d) of the training data, by class. One pass.
    ///
    /// # Errors
    /// `ValueError` for NaN, infinity, and negative numbers where they are refused; `OverflowError` for sums
    /// beyond float64; errors of the pass.
    #[track_caller]
    pub(crate) fn of(
        training: &Training,
        features: &Tensor,
        classes: &Classes,
        range: Range,
    ) -> Result<Counts> {
        let member = classes.indicators();
        let member = match &training.weight {
            None => member,
            Some(weight) => member * weight.expand_dims(1),
        };
        // Of the samples themselves: a comparison has hidden NaN in the features.
        let least = training.x.min(..);
        let sums = [member.t().matmul(features), member.sum(0), least, training.x.max(..)];
        let states = training.engine.run(&sums.iter().collect::<Vec<_>>())?;
        if !all_finite(&states) {
            return Err(training.not_finite(Nan::Refused));
        }
        let [feature, class, least, _] = <[_; 4]>::try_from(states).map_err(|_| lost())?;
        check_some_weight(class.sum())?;
        if range == Range::NotNegative && least.sum() < 0.0 {
            let name = training.estimator;
            return Err(refused(format!("Negative values in data passed to {name} (input X).")));
        }
        Ok(Counts { class: vector(class)?, feature: matrix(feature)? })
    }

    /// The logarithms of the shares of the classes, or of equal shares.
    pub(crate) fn log_priors(&self, from_counts: bool) -> Array1<f64> {
        if from_counts {
            let all = self.class.sum().ln();
            return self.class.mapv(|count| count.ln() - all);
        }
        Array1::from_elem(self.class.len(), -(self.class.len() as f64).ln())
    }
}
