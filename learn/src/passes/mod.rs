//! Passes over data: plans whose results are small arrays.
//!
//! Estimators share the shapes of their passes. A pass is a few tensor expressions that one plan computes, so
//! that chunks are read for all of them together, and runs on threads, workers and nodes alike.

mod centred;
mod chunks;
mod classes;
mod columns;
mod coordinates;
mod functions;
mod glm;
mod lloyd;
mod moments;
mod non_negative;
mod pairs;
mod rows;

pub(crate) use centred::Centred;
pub(crate) use chunks::{in_chunks_for, in_fixed_chunks};
pub(crate) use classes::ClassMeans;
pub(crate) use columns::{ColumnSums, column_ends};
pub(crate) use coordinates::step as non_negative_step;
pub(crate) use functions::{RowFunction, find_foreign};
pub(crate) use glm::{LinearPass, Link};
pub(crate) use lloyd::{Clusters, Lloyd, relative_distances};
pub(crate) use moments::{Around, Moments, is_constant};
pub(crate) use non_negative::NonNegative;
pub(crate) use pairs::{PairPass, merged_bytes, others_of_block};
pub(crate) use rows::{RowPass, STATES_TOGETHER};
