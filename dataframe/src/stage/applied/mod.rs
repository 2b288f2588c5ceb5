//! Functions of the program as operators of plans: what they are called with, and what comes out.
//!
//! An operator's inputs have, in this order: keys of groups, levels of an index, columns, and columns that
//! are only passed (keys of the order of rows, or all that a row keeps). Functions get the levels and
//! columns.

mod apply;
mod collect;
mod exec;
mod infer;
mod logical;
mod unit;

pub(crate) use apply::Apply;
pub(crate) use exec::AppliedExec;
pub(crate) use infer::{Made, empty, made_of};
pub(crate) use logical::Applied;
pub(crate) use unit::{OrderColumn, Passing, Spec, Unit};
