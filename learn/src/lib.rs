//! Classical machine learning with scikit-learn's names and habits, on tensors that may be larger than
//! memory.
//!
//! Data are read pass by pass: each pass is a plan over the chunks of a tensor whose results are small, and
//! is bounded in memory before it runs.

#![forbid(unsafe_code)]

pub mod datasets;
pub mod metrics;
pub mod model_selection;

pub use tharsis_numeric::{Error, Result};
