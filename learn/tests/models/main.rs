//! Estimators and models of any type: parameters by name, validations and searches, files, and samples with
//! names.

// A test may stop where it fails, also in what its functions share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod halving;
mod named;
mod parameters;
mod saved;
mod searches;
mod weights;
