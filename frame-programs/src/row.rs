//! One line of the tables of operations.

use super::Failure;
use super::args::Args;
use super::value::Value;

/// Function of an operation: gets the last part of the name, since several operations may share it, and the
/// arguments.
pub(super) type Run = fn(&str, &mut Args) -> Result<Value, Failure>;

/// A name, a signature, a line of documentation and a function of arguments.
pub(super) type Row = (&'static str, &'static str, &'static str, Run);

/// Rows of an operation of series and of frames.
macro_rules! both {
    ($($name:literal $signature:literal $doc:literal $run:ident),*) => {
        &[$((concat!("pd.Series.", $name), $signature, $doc, $run),
            (concat!("pd.DataFrame.", $name), $signature, $doc, $run)),*]
    };
}
pub(super) use both;
