//! Tests of the crate from outside: operators, plans and their execution.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod execution;
mod operators;
mod plans;
mod programs;
