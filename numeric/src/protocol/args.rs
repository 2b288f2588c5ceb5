//! The arguments of one call, taken by position or by name.

use super::Failure;
use super::value::{Value, parse_dtype};
use crate::random::Generator;
use crate::reduction::Axes;
use crate::tensor::Tensor;
use std::collections::HashMap;
use std::sync::Arc;
use tharsis_graph::Chunks;
use tharsis_kernels::DType;

/// The arguments of one call. Arguments that the operation does not take are refused as not implemented.
pub struct Args {
    positional: Vec<Option<Value>>,
    keywords: HashMap<String, Value>,
    generator: Arc<Generator>,
    chunks: Chunks,
    checks: Vec<Check>,
}

/// A condition of which a program is warned if it does not hold.
pub(super) struct Check {
    /// One bool.
    pub(super) holds: Tensor,
    pub(super) warning: &'static str,
}

impl Args {
    /// Arguments of one call; `generator` is used where they name none, and `chunks` for sparse matrices that
    /// it makes.
    pub(super) fn new(
        positional: Vec<Value>,
        keywords: HashMap<String, Value>,
        generator: Arc<Generator>,
        chunks: Chunks,
    ) -> Args {
        let positional = positional.into_iter().map(Some).collect();
        Args { positional, keywords, generator, chunks, checks: Vec::new() }
    }

    /// Warns if a condition does not hold, which is looked at when the program runs.
    pub(super) fn warn_unless(&mut self, holds: Tensor, warning: &'static str) {
        self.checks.push(Check { holds, warning });
    }

    /// The generator to draw from. If it is the first argument, the positions of the others count from the
    /// next one.
    pub(super) fn generator(&mut self) -> Arc<Generator> {
        match self.positional.first() {
            Some(Some(Value::Generator(generator))) => {
                let generator = generator.clone();
                self.positional.remove(0);
                generator
            }
            _ => self.generator.clone(),
        }
    }

    /// The tiles of sparse matrices.
    pub(super) fn tiles(&self) -> Chunks {
        match &self.chunks {
            Chunks::PerAxis(sizes) if sizes.len() != 2 => Chunks::Auto,
            chunks => chunks.clone(),
        }
    }

    /// The shape of random numbers; a single one if there is none.
    pub(super) fn size(&mut self, position: usize) -> Result<Vec<usize>, Failure> {
        self.integers(position, "size")?.map_or(Ok(Vec::new()), |extents| extents_of(&extents))
    }

    /// Takes the argument at a position, or else by name.
    pub(super) fn take(&mut self, position: usize, name: &str) -> Option<Value> {
        let positional = self.positional.get_mut(position).and_then(Option::take);
        positional.or_else(|| self.keywords.remove(name))
    }

    pub(super) fn need(&mut self, position: usize, name: &str) -> Result<Value, Failure> {
        self.take(position, name).ok_or_else(|| Failure::kind(format!("missing required argument: '{name}'")))
    }

    /// As [`Args::need`], where two functions have different names for the argument.
    pub(super) fn need_either(&mut self, position: usize, name: &str, other: &str) -> Result<Value, Failure> {
        match self.take(position, name) {
            Some(value) => Ok(value),
            None => self.need(usize::MAX, other),
        }
    }

    pub(super) fn tensor(&mut self, position: usize, name: &str) -> Result<Tensor, Failure> {
        self.need(position, name)?.tensor()
    }

    pub(super) fn tensors(&mut self, position: usize, name: &str) -> Result<Vec<Tensor>, Failure> {
        Args::parts(self.need(position, name)?)
    }

    /// The arrays of a sequence.
    pub(super) fn parts(sequence: Value) -> Result<Vec<Tensor>, Failure> {
        match sequence {
            Value::Tuple(parts) | Value::List(parts) => parts.into_iter().map(Value::tensor).collect(),
            other => Err(Failure::kind(format!("expected a sequence of arrays, found {other:?}"))),
        }
    }

    pub(super) fn integer_or(&mut self, position: usize, name: &str, default: i64) -> Result<i64, Failure> {
        match self.take(position, name) {
            None | Some(Value::None) => Ok(default),
            Some(value) => value.integer(),
        }
    }

    pub(super) fn integers(&mut self, position: usize, name: &str) -> Result<Option<Vec<i64>>, Failure> {
        match self.take(position, name) {
            None | Some(Value::None) => Ok(None),
            Some(value) => Ok(Some(value.integers()?)),
        }
    }

    pub(super) fn flag(&mut self, position: usize, name: &str, default: bool) -> Result<bool, Failure> {
        match self.take(position, name) {
            None | Some(Value::None) => Ok(default),
            Some(Value::Number(number)) => Ok(number.is_true()),
            Some(other) => Err(Failure::kind(format!("{name}: expected true or false, found {other:?}"))),
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
            None | Some(Value::None) => Ok(default),
            Some(value) => value.real(),
        }
    }

    pub(super) fn shape(&mut self, position: usize, name: &str) -> Result<Vec<usize>, Failure> {
        extents_of(&self.need(position, name)?.integers()?)
    }

    pub(super) fn axes(&mut self, position: usize) -> Result<Axes, Failure> {
        let axes = match self.take(position, "axis") {
            None | Some(Value::None) => Axes::default(),
            Some(axes @ (Value::Tuple(_) | Value::List(_))) => Axes::from(axes.integers()?),
            Some(axis) => Axes::from(axis.integer()?),
        };
        Ok(if self.flag(usize::MAX, "keepdims", false)? { axes.keepdims() } else { axes })
    }

    /// All positional arguments from a position on.
    pub(super) fn rest(&mut self, from: usize) -> Vec<Value> {
        self.positional.iter_mut().skip(from).filter_map(Option::take).collect()
    }

    /// The name of an option.
    pub(super) fn text_or(&mut self, position: usize, name: &str, default: &str) -> Result<String, Failure> {
        match self.take(position, name) {
            None => Ok(default.to_owned()),
            Some(Value::Text(text)) => Ok(text),
            Some(other) => Err(Failure::kind(format!("{name}: expected text, found {other:?}"))),
        }
    }

    /// Takes the options that say where and in which order elements lie: there is one device, and C order.
    pub(super) fn placement(&mut self) -> Result<(), Failure> {
        match self.take(usize::MAX, "device") {
            None | Some(Value::None) => {}
            Some(Value::Text(device)) if device == "cpu" => {}
            Some(other) => {
                return Err(Failure::value(format!("Unsupported device: {other:?}; there is only cpu")));
            }
        }
        match self.take(usize::MAX, "order") {
            None | Some(Value::None) => Ok(()),
            Some(Value::Text(order)) if matches!(order.as_str(), "C" | "K" | "A") => Ok(()),
            Some(order) => Err(Failure::missing(format!("order {order:?}: elements are always in C order"))),
        }
    }

    /// Refuses arguments that the operation has not taken; gives the conditions to look at.
    pub(super) fn finish(self) -> Result<Vec<Check>, Failure> {
        let extra = self.positional.iter().position(Option::is_some).map(|at| format!("argument {at}"));
        let named =
            self.keywords.into_iter().find(|(_, value)| !matches!(value, Value::None)).map(|(name, _)| name);
        match extra.or(named) {
            Some(what) => Err(Failure::missing(format!("the option {what} is not implemented"))),
            None => Ok(self.checks),
        }
    }
}

/// Extents that are not negative.
pub(super) fn extents_of(extents: &[i64]) -> Result<Vec<usize>, Failure> {
    let extents: Result<Vec<usize>, _> = extents.iter().map(|&extent| usize::try_from(extent)).collect();
    extents.map_err(|_| Failure::value("negative dimensions are not allowed"))
}
