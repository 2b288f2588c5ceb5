//! The arguments of one call, taken by position or by name.

use super::Failure;
use super::value::{Value, parse_dtype};
use crate::reduction::Axes;
use crate::tensor::Tensor;
use std::collections::HashMap;
use tharsis_kernels::DType;

/// The arguments of one call. What is not taken is refused as not implemented.
pub struct Args {
    positional: Vec<Option<Value>>,
    keywords: HashMap<String, Value>,
}

impl Args {
    pub(super) fn new(positional: Vec<Value>, keywords: HashMap<String, Value>) -> Args {
        Args { positional: positional.into_iter().map(Some).collect(), keywords }
    }

    /// The argument at a position or of a name.
    pub(super) fn take(&mut self, position: usize, name: &str) -> Option<Value> {
        let positional = self.positional.get_mut(position).and_then(Option::take);
        positional.or_else(|| self.keywords.remove(name))
    }

    pub(super) fn need(&mut self, position: usize, name: &str) -> Result<Value, Failure> {
        self.take(position, name).ok_or_else(|| Failure::kind(format!("missing required argument: '{name}'")))
    }

    pub(super) fn tensor(&mut self, position: usize, name: &str) -> Result<Tensor, Failure> {
        self.need(position, name)?.tensor()
    }

    pub(super) fn tensors(&mut self, position: usize, name: &str) -> Result<Vec<Tensor>, Failure> {
        match self.need(position, name)? {
            Value::Tuple(parts) => parts.into_iter().map(Value::tensor).collect(),
            other => Err(Failure::kind(format!("expected a sequence of arrays, found {other:?}"))),
        }
    }

    pub(super) fn integer_or(&mut self, position: usize, name: &str, default: i64) -> Result<i64, Failure> {
        self.take(position, name).map_or(Ok(default), |value| value.integer())
    }

    pub(super) fn integers(&mut self, position: usize, name: &str) -> Result<Option<Vec<i64>>, Failure> {
        match self.take(position, name) {
            None | Some(Value::None) => Ok(None),
            Some(value) => Ok(Some(value.integers()?)),
        }
    }

    pub(super) fn flag(&mut self, position: usize, name: &str, default: bool) -> bool {
        match self.take(position, name) {
            Some(Value::Number(number)) => number.is_true(),
            _ => default,
        }
    }

    pub(super) fn dtype(&mut self, position: usize, name: &str) -> Result<Option<DType>, Failure> {
        match self.take(position, name) {
            None | Some(Value::None) => Ok(None),
            Some(Value::DType(dtype)) => Ok(Some(dtype)),
            Some(Value::Text(text)) => parse_dtype(&text).map(Some),
            Some(other) => Err(Failure::kind(format!("expected a dtype, found {other:?}"))),
        }
    }

    pub(super) fn number_or(&mut self, position: usize, name: &str, default: f64) -> Result<f64, Failure> {
        match self.take(position, name) {
            None => Ok(default),
            Some(Value::Number(number)) => Ok(number.to_f64()),
            Some(other) => Err(Failure::kind(format!("expected a number, found {other:?}"))),
        }
    }

    pub(super) fn shape(&mut self, position: usize, name: &str) -> Result<Vec<usize>, Failure> {
        let extents = self.need(position, name)?.integers()?;
        let extent = |&extent: &i64| usize::try_from(extent);
        let shape: Result<Vec<usize>, _> = extents.iter().map(extent).collect();
        shape.map_err(|_| Failure::value("negative dimensions are not allowed"))
    }

    pub(super) fn axes(&mut self, position: usize) -> Result<Axes, Failure> {
        let axes = self.integers(position, "axis")?.map_or(Axes::default(), Axes::from);
        Ok(if self.flag(usize::MAX, "keepdims", false) { axes.keepdims() } else { axes })
    }

    /// Refuses what no operation has asked for.
    pub(super) fn finish(self) -> Result<(), Failure> {
        let extra = self.positional.iter().position(Option::is_some).map(|at| format!("argument {at}"));
        let named =
            self.keywords.into_iter().find(|(_, value)| !matches!(value, Value::None)).map(|(name, _)| name);
        match extra.or(named) {
            Some(what) => Err(Failure::missing(format!("the option {what} is not implemented"))),
            None => Ok(()),
        }
    }
}
