//! Checks of the inputs of metrics, and passes over them.

use crate::Result;
use std::collections::VecDeque;
use tharsis_graph::Error as GraphError;
use tharsis_kernels::{DType, Kind};
use tharsis_numeric::run::settle;
use tharsis_numeric::{Error, Native, Tensor, default_executor, execute};

/// Upper bound on the cells of a table of labels that is held in memory.
pub(crate) const CELLS_MAX: usize = 1 << 22;

/// A `ValueError` of the caller's program.
#[track_caller]
pub(crate) fn value_error(text: impl Into<String>) -> Error {
    Error::here(GraphError::Value(text.into()))
}

/// A shape as scikit-learn writes it.
pub(crate) fn shape_text(shape: &[usize]) -> String {
    match shape {
        [length] => format!("({length},)"),
        _ => format!("({})", shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// Numbers between separators.
pub(crate) fn listed<T: ToString>(numbers: &[T], separator: &str) -> String {
    numbers.iter().map(T::to_string).collect::<Vec<_>>().join(separator)
}

/// The same tensors with known shapes.
#[track_caller]
pub(crate) fn settled(tensors: &[&Tensor]) -> Result<Vec<Tensor>> {
    for tensor in tensors {
        tensor.check()?;
    }
    let known = tensors.iter().map(|tensor| tensor.is_known()).collect::<Result<Vec<bool>>>()?;
    if known.into_iter().all(|is_known| is_known) {
        return Ok(tensors.iter().map(|&tensor| tensor.clone()).collect());
    }
    Ok(settle(tensors, &*default_executor())?.0)
}

/// A tensor (n,) of one of shape (n,) or (n, 1).
#[track_caller]
pub(crate) fn column(x: &Tensor) -> Result<Tensor> {
    match x.shape()? {
        [_] => Ok(x.clone()),
        &[count, 1] => Ok(x.reshape(&[count as i64])),
        shape => {
            let shape = shape_text(shape);
            Err(value_error(format!("y should be a 1d array, got an array of shape {shape} instead.")))
        }
    }
}

/// The common length of tensors, at least 1.
///
/// # Errors
/// `ValueError` if their lengths differ or are 0.
#[track_caller]
pub(crate) fn common_length(tensors: &[&Tensor]) -> Result<usize> {
    match equal_lengths(tensors)? {
        0 => {
            let text = "Found empty input array (e.g., `y_true` or `y_pred`) while a minimum of 1 sample is required.";
            Err(value_error(text))
        }
        length => Ok(length),
    }
}

/// The common length of tensors.
///
/// # Errors
/// `ValueError` if their lengths differ.
#[track_caller]
pub(crate) fn equal_lengths(tensors: &[&Tensor]) -> Result<usize> {
    let mut lengths = Vec::new();
    for tensor in tensors {
        match tensor.shape()?.first() {
            Some(&length) => lengths.push(length),
            None => {
                return Err(value_error("Expected an array with at least one axis, got a number instead."));
            }
        }
    }
    let first = lengths.first().copied().unwrap_or(0);
    if lengths.iter().any(|&length| length != first) {
        let lengths = listed(&lengths, ", ");
        let text = format!("Found input variables with inconsistent numbers of samples: [{lengths}]");
        return Err(value_error(text));
    }
    Ok(first)
}

/// Labels (n,) of one of shape (n,) or (n, 1), as int64.
///
/// # Errors
/// `ValueError` for another shape and for labels beyond int64; `TypeError` if they are neither integers nor
/// booleans.
#[track_caller]
pub(crate) fn labels(x: &Tensor, name: &str) -> Result<Tensor> {
    let dtype = x.dtype()?;
    if Kind::Float <= dtype.kind() {
        let text = format!("{name}: labels are integers or booleans, found {dtype}");
        return Err(Error::here(GraphError::Type(text)));
    }
    let labels = column(x)?;
    if dtype == DType::U64 && labels.greater(i64::MAX as u64).any(..).item()?.is_true() {
        return Err(value_error(format!("{name} has labels that exceed int64")));
    }
    Ok(labels.astype(DType::I64))
}

/// Refuses complex numbers; others as float64.
#[track_caller]
pub(crate) fn floats(x: &Tensor, name: &str) -> Result<Tensor> {
    if x.dtype()?.is_complex() {
        let text = format!("Complex data not supported: {name} is of {}", x.dtype()?);
        return Err(value_error(text));
    }
    Ok(x.astype(DType::F64))
}

/// The mean or the sum of per-sample values, weighted or not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Total {
    Mean,
    Sum,
}

impl Total {
    /// The mean if the option `normalize` is set.
    pub(crate) fn normalized(normalize: bool) -> Total {
        if normalize { Total::Mean } else { Total::Sum }
    }
}

/// Small results wanted of one plan, with conditions on the data that it reads.
#[derive(Default)]
pub(crate) struct Pass {
    wanted: Vec<Tensor>,
    conditions: Vec<(Tensor, String)>,
}

impl Pass {
    /// Adds a result.
    pub(crate) fn want(&mut self, result: Tensor) {
        self.wanted.push(result);
    }

    /// Adds the condition that all elements of `holds`, of bool, are true.
    pub(crate) fn require(&mut self, holds: &Tensor, message: impl Into<String>) {
        self.conditions.push((holds.all(..), message.into()));
    }

    /// Adds the condition that all elements are finite.
    pub(crate) fn require_finite(&mut self, x: &Tensor, name: &str) {
        self.require(&x.isfinite(), format!("Input {name} contains NaN or infinity."));
    }

    /// Adds weights of samples: as float64 (n,), all finite. `count` is the number of samples.
    #[track_caller]
    pub(crate) fn weights(&mut self, weights: Option<&Tensor>, count: usize) -> Result<Option<Tensor>> {
        let Some(weights) = weights else { return Ok(None) };
        let weights = settled(&[weights])?.remove(0);
        let shape = weights.shape()?;
        match shape {
            [length] if *length == count => {}
            [length] => {
                let lengths = format!("[{count}, {count}, {length}]");
                let text = format!("Found input variables with inconsistent numbers of samples: {lengths}");
                return Err(value_error(text));
            }
            _ => {
                let text =
                    format!("Sample weights must be 1D array or scalar, got shape {}", shape_text(shape));
                return Err(value_error(text));
            }
        }
        let weights = floats(&weights, "sample_weight")?;
        self.require_finite(&weights, "sample_weight");
        let text = "Sample weights must contain at least one non-zero number.";
        self.require(&weights.not_equal(0.0).any(..), text);
        Ok(Some(weights))
    }

    /// Runs one plan. The results in the order in which they were added.
    ///
    /// # Errors
    /// `ValueError` with the message of the first condition that does not hold.
    #[track_caller]
    pub(crate) fn run(self) -> Result<Found> {
        let conditions = self.conditions.iter().map(|(holds, _)| holds);
        let all: Vec<&Tensor> = self.wanted.iter().chain(conditions).collect();
        let (mut found, _) = execute(&all, &*default_executor())?;
        let holds = found.split_off(self.wanted.len());
        for (holds, (_, message)) in holds.iter().zip(&self.conditions) {
            if !holds.item()?.is_true() {
                return Err(value_error(message.clone()));
            }
        }
        Ok(Found { results: found.into() })
    }

    /// Runs one plan for a mean or a sum over samples (n,), or over the first axis of (n, k): (1,) or (k,)
    /// values.
    ///
    /// # Errors
    /// As [`Pass::run`]; `ZeroDivisionError` for the mean if the weights sum to zero.
    #[track_caller]
    pub(crate) fn total(
        mut self,
        values: &Tensor,
        weights: Option<&Tensor>,
        total: Total,
    ) -> Result<Vec<f64>> {
        let count = values.shape()?.first().copied().unwrap_or(0);
        let values = values.astype(DType::F64);
        match weights {
            None => self.want(values.sum(0)),
            Some(weights) => {
                let along = if values.ndim()? == 1 { weights.clone() } else { weights.expand_dims(1) };
                self.want(values.multiply(along).sum(0));
                self.want(weights.sum(..));
            }
        }
        let mut found = self.run()?;
        let sums = found.next::<f64>()?;
        let divisor = match (total, weights) {
            (Total::Sum, _) => 1.0,
            (Total::Mean, None) => count as f64,
            (Total::Mean, Some(_)) => divisor(found.one()?)?,
        };
        Ok(sums.into_iter().map(|sum| sum / divisor).collect())
    }
}

/// A sum of weights as a divisor.
#[track_caller]
pub(crate) fn divisor(weights: f64) -> Result<f64> {
    if weights == 0.0 {
        let text = "Weights sum to zero, can't be normalized".to_owned();
        return Err(Error::here(GraphError::ZeroDivision(text)));
    }
    Ok(weights)
}

/// The results of a pass, in order.
pub(crate) struct Found {
    results: VecDeque<Tensor>,
}

impl Found {
    /// The next result, at hand on the executor.
    #[track_caller]
    pub(crate) fn tensor(&mut self) -> Result<Tensor> {
        let missing = || Error::here(GraphError::Internal("a pass has too few results".to_owned()));
        self.results.pop_front().ok_or_else(missing)
    }

    /// The elements of the next result.
    #[track_caller]
    pub(crate) fn next<T: Native>(&mut self) -> Result<Vec<T>> {
        self.tensor()?.to_vec()
    }

    /// The next result, of one element.
    #[track_caller]
    pub(crate) fn one(&mut self) -> Result<f64> {
        Ok(self.tensor()?.item()?.to_f64())
    }

    /// The next result, of one label.
    #[track_caller]
    pub(crate) fn label(&mut self) -> Result<i64> {
        self.next::<i64>()?.first().copied().ok_or_else(|| value_error("there are no labels"))
    }
}
