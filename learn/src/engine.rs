//! Runs plans on an executor.

use crate::states::lost;
use ndarray::ArrayD;
use std::sync::Arc;
use tharsis_cancel::RunEnds;
use tharsis_graph::Executor;
use tharsis_kernels::Element;
use tharsis_numeric::errstate::{ErrState, Reaction, errstate};
use tharsis_numeric::run::{settle, with_default};
use tharsis_numeric::{DType, Error, Result, Tensor, execute};

/// A part of what can be stored that the values of one expression may take.
const STORED_SHARE: u64 = 3;

/// Looks whether a handle of this thread was cancelled: for loops that compute here.
///
/// # Errors
/// `Cancelled`.
#[track_caller]
pub(crate) fn check_cancelled() -> Result<()> {
    RunEnds::of(None).check().map_err(Error::here)
}

/// Runs passes on an executor.
#[derive(Clone)]
pub(crate) struct Engine {
    executor: Arc<dyn Executor>,
}

impl Engine {
    pub(crate) fn new(executor: Arc<dyn Executor>) -> Engine {
        Engine { executor }
    }

    /// The executor of the passes.
    pub(crate) fn executor(&self) -> Arc<dyn Executor> {
        self.executor.clone()
    }

    /// Bytes that a plan may take.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.executor.limits().memory_bytes
    }

    /// The values of an expression, kept in the store.
    ///
    /// # Errors
    /// As [`execute`].
    #[track_caller]
    pub(crate) fn stored(&self, expression: &Tensor) -> Result<Tensor> {
        let ignored = Reaction::Ignore;
        let _quiet = errstate(ErrState { divide: ignored, invalid: ignored, over: ignored });
        execute(&[expression], &*self.executor)?.0.pop().ok_or_else(lost)
    }

    /// As [`Engine::stored`] if they are at most a third of what can be stored; else each pass makes them
    /// again.
    ///
    /// # Errors
    /// As there.
    #[track_caller]
    pub(crate) fn kept(&self, expression: &Tensor) -> Result<Tensor> {
        let extents = expression.shape()?.iter();
        let elements = extents.fold(1u64, |all, &extent| all.saturating_mul(extent as u64));
        let bytes = elements.saturating_mul(size_of::<f64>() as u64);
        if bytes <= self.executor.limits().stored_bytes / STORED_SHARE {
            return self.stored(expression);
        }
        Ok(expression.clone())
    }

    /// As [`Engine::stored`] if so many bytes, which a round of a loop holds at the same time, are at most
    /// what can be stored. Else each pass makes the values again, those of all rounds before it as well.
    ///
    /// # Errors
    /// As there.
    #[track_caller]
    pub(crate) fn held(&self, expression: &Tensor, round_bytes: u64) -> Result<Tensor> {
        if round_bytes <= self.executor.limits().stored_bytes {
            return self.stored(expression);
        }
        Ok(expression.clone())
    }

    /// Asks the executor whether there is time left, by a plan of one number: for loops between passes.
    ///
    /// # Errors
    /// `TimeoutError`; other errors of the executor.
    #[track_caller]
    pub(crate) fn check_time(&self) -> Result<()> {
        self.run(&[&Tensor::number(0.0)]).map(drop)
    }

    /// Runs a function whose own passes are those of this executor.
    pub(crate) fn within<T>(&self, run: impl FnOnce() -> T) -> T {
        with_default(self.executor.clone(), run)
    }

    /// The values of several expressions, by one plan, as float64. Conditions such as a division by zero are
    /// for the caller to see in the values.
    ///
    /// # Errors
    /// As [`execute`].
    #[track_caller]
    pub(crate) fn run(&self, expressions: &[&Tensor]) -> Result<Vec<ArrayD<f64>>> {
        let ignored = Reaction::Ignore;
        let _quiet = errstate(ErrState { divide: ignored, invalid: ignored, over: ignored });
        let wide: Vec<Tensor> = expressions.iter().map(|expression| expression.astype(DType::F64)).collect();
        let (made, _) = execute(&wide.iter().collect::<Vec<_>>(), &*self.executor)?;
        made.iter().map(|made| made.fetch_on::<f64>(&*self.executor)).collect()
    }

    /// The elements of an expression (n,) of integers of which only running tells the size, at most `most`;
    /// their number if there are more.
    ///
    /// # Errors
    /// As [`execute`].
    #[track_caller]
    pub(crate) fn integers(
        &self,
        expression: &Tensor,
        most: u64,
    ) -> Result<std::result::Result<Vec<i64>, u64>> {
        let (made, _) = execute(&[&expression.astype(DType::I64)], &*self.executor)?;
        let Some(made) = made.first() else { return Ok(Ok(Vec::new())) };
        let count = made.size()?;
        if most < count {
            return Ok(Err(count));
        }
        Ok(Ok(made.fetch_on::<i64>(&*self.executor)?.into_iter().collect()))
    }

    /// The elements of several expressions (n,) of which only running tells the sizes, at most `most` each,
    /// by one plan; the number of those of one that has more.
    ///
    /// # Errors
    /// As [`execute`].
    #[track_caller]
    pub(crate) fn elements<T: Element>(
        &self,
        expressions: &[&Tensor],
        most: u64,
    ) -> Result<std::result::Result<Vec<Vec<T>>, u64>> {
        let (made, _) = execute(expressions, &*self.executor)?;
        for made in &made {
            let count = made.size()?;
            if most < count {
                return Ok(Err(count));
            }
        }
        let fetched = made.iter().map(|made| Ok(made.fetch_on::<T>(&*self.executor)?.into_iter().collect()));
        Ok(Ok(fetched.collect::<Result<_>>()?))
    }

    /// The same tensors with all sizes known. Runs what unknown sizes depend on.
    ///
    /// # Errors
    /// As [`settle`].
    #[track_caller]
    pub(crate) fn with_sizes(&self, tensors: &[&Tensor]) -> Result<Vec<Tensor>> {
        let mut known = true;
        for tensor in tensors {
            known &= tensor.is_known()?;
        }
        if known {
            return Ok(tensors.iter().map(|&tensor| tensor.clone()).collect());
        }
        Ok(settle(tensors, &*self.executor)?.0)
    }
}
