//! Lazy tensor expressions, and the chunk plans made of them.
//!
//! This crate knows nothing of clusters, processes or files. `tharsis_kernels` computes on the elements of
//! one chunk.
//!
//! # Design
//! - A [`Node`] is an [`Operator`] applied to nodes. Shapes and dtypes are known at once
//!   ([`Operator::infer`]); nothing is computed.
//! - [`lower`](lower::lower) turns nodes into a [`Plan`]: equal expressions are merged, chains of
//!   element-wise steps with their sources, views and first reduction steps become one program, domains are
//!   cut into chunks.
//! - A [`Plan`] is data that travels (serde): stages are templates of tasks, and a task is a pair of numbers.
//!   Its size does not depend on the number of chunks.
//! - [`Runnable`] tells the inputs and outputs of a task, and runs it: pure functions of plan, task and
//!   chunks. So anything that can call a function on chunks can run a plan.
//! - [`schedule`](schedule::schedule) orders tasks depth-first and bounds the memory before anything runs.
//! - [`Batches`] groups small tasks, for executors for which submitting a task is expensive.
//! - A [`Foreign`] function is one that plans name but do not contain: a user's, or the reading of a file.
//! - A program with sizes that are known only after a run is executed in [`phases`].
//! - An [`Executor`] runs jobs. [`LocalExecutor`] does so on threads of this process; the task engine brings
//!   its own.
//!
//! Results for a given chunking are the same to the bit on any number of threads: the result of a task
//! depends on the plan alone, and partial results are merged in an order that the plan fixes.
//!
//! # Adding an operator
//! Implement [`Operator`] in one file of [`ops`]: `infer` and `lower`. Fusion, tiling, order, bound and
//! `explain` follow.
//!
//! Read [`node`], [`ops`], then [`mod@lower`], [`mod@plan`], [`task`], [`mod@schedule`], [`execute`],
//! [`batch`].

#![forbid(unsafe_code)]

pub mod batch;
pub mod chunk_table;
pub mod error;
pub mod execute;
pub mod explain;
mod extent;
pub mod foreign;
mod homes;
pub mod lower;
pub mod node;
pub mod ops;
pub mod phases;
pub mod plan;
mod resident;
pub mod schedule;
pub mod shape;
pub mod task;
pub mod tiling;

pub use batch::{BatchLimits, Batches};
pub use error::{EngineFailure, Error};
pub use execute::{Executor, Job, LocalExecutor, Metrics, Outcome, Progress, plan, tasks_left_behind};
pub use explain::Explanation;
pub use foreign::{Foreign, ForeignName};
pub use lower::Limits;
pub use node::{Meta, Node, NodeRef, Operator};
pub use phases::run;
pub use plan::Plan;
pub use resident::{KeptChunk, Resident, ResidentChunk};
pub use task::Runnable;
pub use tiling::Chunks;
