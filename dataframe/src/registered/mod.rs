//! Functions of the program: a plan names them, and every process of the program finds them by name.
//!
//! The attribute `function` adds a [`Definition`] to a table that the linker assembles. A function in a plan
//! is a [`Call`]: its name, the hash of its types, its encoded arguments, and the line that called it.

mod arguments;
mod call;
mod chunk;
mod definition;
mod prepared;
mod row;
mod scalar;
mod value;

pub use arguments::{Arguments, encode};
pub(crate) use call::{Call, SentCall};
pub use call::{Function, OverChunk, OverColumn, OverPair, OverRow, OverValue};
pub use chunk::{ChunkParameter, ChunkResult, ColumnResult, chunk, column, table};
pub use definition::{Definition, Registered, inventory};
pub use prepared::{Columns, MadeValues, Prepared};
pub use row::Row;
pub(crate) use scalar::{CalledFunction, SentFunction};
pub use value::{Cell, ValueParameter, ValueResult, parameter};
