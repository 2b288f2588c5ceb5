//! Tests of trees and ensembles from outside: against answers of scikit-learn and against a search of all
//! trees, for any chunks and threads, and of what is refused.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bad_input;
mod brute_force;
mod invariance;
mod properties;
mod recorded;
