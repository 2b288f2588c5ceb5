//! The samples of a model of a bagging.

use crate::base::Estimator;
use crate::checks::Training;
use crate::held::{AnyEstimator, FittedAny, Tells};
use crate::states::lost;
use tharsis_graph::Error as GraphError;
use tharsis_numeric::{Error, Result, Tensor, concatenate};

/// Most copies of a sample for estimators that take no weights.
const COPIES_MAX: f64 = 1024.0;

/// Samples of one model, and how often each is drawn.
pub(super) struct Drawn<'a> {
    pub(super) training: &'a Training,
    pub(super) x: &'a Tensor,
    pub(super) y: &'a Tensor,
    pub(super) counts: Option<&'a Tensor>,
}

impl Drawn<'_> {
    /// A model by weights.
    #[track_caller]
    pub(super) fn weighted<T: Tells>(&self, estimator: &AnyEstimator<T>) -> Result<FittedAny<T>> {
        let weight = match (self.counts, &self.training.weight) {
            (Some(counts), Some(weight)) => Some(counts * weight),
            (counts, weight) => counts.or(weight.as_ref()).cloned(),
        };
        let options = self.training.options();
        let options = match weight {
            Some(weight) => options.sample_weight(&weight),
            None => options,
        };
        estimator.fit_any(self.x, Some(self.y), &options)
    }

    /// A model by copies of the samples: those that are drawn, those that are drawn twice, and so on.
    #[track_caller]
    pub(super) fn rows<T: Tells>(&self, estimator: &AnyEstimator<T>) -> Result<FittedAny<T>> {
        if self.training.weight.is_some() {
            let text = format!("sample weights of a bagging of {}, which takes none", estimator.name());
            return Err(Error::here(GraphError::NotImplemented(text)));
        }
        let engine = &self.training.engine;
        let Some(counts) = self.counts else {
            return estimator.fit_any(self.x, Some(self.y), &self.training.options());
        };
        let most = engine.run(&[&counts.max(..)])?.pop().ok_or_else(lost)?.sum();
        if COPIES_MAX < most {
            let text = format!("{most} copies of a sample for {}, which takes no weights", estimator.name());
            return Err(Error::here(GraphError::NotImplemented(text)));
        }
        let parts = |tensor: &Tensor| {
            let parts = (0..most as usize).map(|times| tensor.filter(&counts.greater(times as f64)));
            concatenate(&parts.collect::<Vec<_>>().iter().collect::<Vec<_>>(), 0)
        };
        let known = engine.with_sizes(&[&parts(self.x), &parts(self.y)])?;
        let [x, y] = &known[..] else { return Err(lost()) };
        estimator.fit_any(x, Some(y), &self.training.options())
    }
}
