//! A row of a table of operations.

use super::Failure;
use super::args::Args;
use super::value::Value;
use crate::tensor::Tensor;

/// Function of an operation: gets the name, since several operations may share it, and the arguments.
pub(super) type Run = fn(&str, &mut Args) -> Result<Value, Failure>;

/// A name, a signature, a line of documentation and a function of arguments.
pub(super) type Row = (&'static str, &'static str, &'static str, Run);

/// A tensor as a value, or the error that it carries.
pub(super) fn tensor(made: Tensor) -> Result<Value, Failure> {
    made.check()?;
    Ok(Value::Tensor(made))
}

/// Several tensors as a tuple, or the first error that one of them carries.
pub(super) fn tuple(made: impl IntoIterator<Item = Tensor>) -> Result<Value, Failure> {
    Ok(Value::Tuple(made.into_iter().map(tensor).collect::<Result<_, _>>()?))
}

/// A name without the module that it is in.
pub(super) fn bare(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}
