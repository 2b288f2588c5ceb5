//! One line of the tables of operations.

use super::Failure;
use super::args::Args;
use super::value::Value;

/// Function of an operation: gets the last part of the name, since several operations may share it, and the
/// arguments.
pub(super) type Run = fn(&str, &mut Args) -> Result<Value, Failure>;

/// A name, a signature, a line of documentation and a function of arguments.
pub(super) type Row = (&'static str, &'static str, &'static str, Run);
