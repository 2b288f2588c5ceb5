//! Call functions remotely and get futures; compute with tensors on the same engine.
//!
//! ```
//! use tharsis::prelude::*;
//!
//! #[remote]
//! fn square(x: i64) -> i64 {
//!     x * x
//! }
//!
//! #[remote]
//! fn add(x: i64, y: i64) -> i64 {
//!     x + y
//! }
//!
//! #[tharsis::main]
//! fn main() -> Result<(), Error> {
//!     let _runtime = tharsis::init().start()?;
//!     let (a, b) = (square::remote(3), square::remote(4));
//!     // References are arguments like values: `add` runs when both squares are there.
//!     assert_eq!(add::remote(&a, &b).get()?, 25);
//!     Ok(())
//! }
//! ```
//!
//! Tensors are NumPy's, lazy and in chunks (feature `tensor`, module `tensor`). Nothing is
//! computed before `item`; then a plan that is bounded in memory runs as remote tasks:
//!
//! ```
//! # #[cfg(feature = "arrays")]
//! # fn main() -> Result<(), tharsis::Error> {
//! use tharsis::tensor::random::default_rng;
//!
//! let _runtime = tharsis::init().start()?;
//! let points = default_rng(42).random(&[1_000_000, 2]);
//! let inside = (&points * &points).sum(1).sqrt().less(1.0).count_nonzero(..);
//! let pi = 4.0 * inside.item()?.to_f64() / 1e6;
//! assert!((pi - std::f64::consts::PI).abs() < 0.01);
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "arrays"))]
//! # fn main() {}
//! ```
//!
//! The same program runs embedded (as above: no server, no set-up), on one machine and on a cluster
//! (`init().address(..)`). Workers are the same program: nodes start its executable, and `#[tharsis::main]`
//! turns such a process into a worker. An embedded program needs no such attribute; otherwise a start without
//! it is refused.
//!
//! **One runtime.** [`Init::start`] makes the runtime of the whole program, of which there is one at a time:
//! a second one is refused until the first is dropped. A program with several runtimes uses
//! [`Init::start_local`] and [`Runtime::enter`]. A task cannot start one: it uses the runtime that runs it.
//!
//! **Values** are all types that serde can encode. [`Blob`], [`Array`] and `Batch` (feature `arrow`, on by
//! default) are read in place, without a copy, and may be part of other values.
//!
//! **Waiting.** [`ObjectRef::get`], [`get_all`], [`wait`] block; `.await` on an [`ObjectRef`] does not. A
//! task that waits lends its slot to others, so nested calls do not deadlock.
//!
//! **Errors** of tasks and tensors are an [`Error`]: it tells what failed, where and why, and what to do. An
//! error value of a remote function keeps its type, see [`Error::downcast`].
//!
//! This crate knows no sockets and no wire messages; it combines `tharsis-remote` (the client) with the node
//! of an embedded program.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

// Generated code refers to `::tharsis`, in this crate too.
extern crate self as tharsis;

mod actors;
#[cfg(all(feature = "dataframe", feature = "arrays"))]
mod between;
mod cluster;
pub mod collective;
mod embedded;
#[cfg(any(feature = "arrays", feature = "dataframe"))]
mod error_class;
mod folders;
#[cfg(feature = "dataframe")]
pub mod frame;
mod init;
#[doc(hidden)]
pub mod join;
#[doc(hidden)]
pub mod machine;
#[cfg(any(feature = "dataframe", feature = "arrays"))]
mod object;
pub mod observe;
mod part;
#[doc(hidden)]
pub mod process;
mod queue;
mod runtime;
mod shared_process;
#[doc(hidden)]
pub mod spill_dirs;
mod start;
#[cfg(feature = "arrays")]
pub mod tensor;

pub use actors::{ActorInfo, ActorState};
pub use cluster::{LocalCluster, LocalNode};
pub use init::{Init, init};
pub use queue::Queue;
pub use runtime::{Entered, Runtime};
pub use tharsis_cancel::Cancel;
/// Classical machine learning with scikit-learn's names, on tensors.
#[cfg(feature = "learn")]
pub use tharsis_learn as learn;
pub use tharsis_macros::{actor, main, remote};
pub use tharsis_raylet::{SpillChoice, SpillFolder};
#[cfg(feature = "arrow")]
pub use tharsis_remote::Batch;
#[doc(hidden)]
pub use tharsis_remote::{__actor_option_setters, __option_setters, __stream_option_setters};
pub use tharsis_remote::{
    Actor, ActorName, ActorPool, Array, AsCompleted, Awaited, Blob, Bundle, BundleNodes, Checkpoint, Context,
    Element, EnteredTask, Error, Executed, Failure, FailureKind, IntoArg, JobId, Keep, LabelSelector,
    LabelTerm, Map, MapAsCompleted, MapSpeculating, Namespaces, NewGroup, NodeId, ObjectId, ObjectRef,
    ObjectRefStream, Options, PlacementGroup, Planned, PoolMap, PoolMapAsCompleted, RefFuture, RefId,
    Resources, Result, Returns, Strategy, TaskGraph, TaskId, Timeout, Values, Wait, as_completed, cancel,
    checkpoint, context, exit, get_all, get_any, kill, list_named_actors, locations, map, map_as_completed,
    map_speculating, placement_group, put, restart, wait,
};

/// Waits for a value and reads it; the same as [`ObjectRef::get`].
///
/// # Errors
/// As [`ObjectRef::get`].
pub fn get<T: serde::de::DeserializeOwned>(reference: &ObjectRef<T>) -> Result<T> {
    reference.get()
}

/// Names that most programs use: `use tharsis::prelude::*`.
pub mod prelude {
    #[cfg(feature = "arrow")]
    pub use crate::Batch;
    pub use crate::{
        Array, Awaited, Blob, Error, FailureKind, ObjectRef, ObjectRefStream, Planned, Returns, TaskGraph,
        Values, Wait, actor, cancel, context, get, get_all, init, kill, put, remote, wait,
    };
}

/// The programs in the README and the book run as tests.
#[cfg(doctest)]
mod book {
    #[doc = include_str!("../../README.md")]
    #[doc = include_str!("../../docs/first-steps.md")]
    #[doc = include_str!("../../docs/tasks-and-objects.md")]
    #[doc = include_str!("../../docs/placement-groups.md")]
    #[doc = include_str!("../../docs/jobs.md")]
    #[doc = include_str!("../../docs/actors.md")]
    #[doc = include_str!("../../docs/streams.md")]
    #[doc = include_str!("../../docs/graphs.md")]
    #[doc = include_str!("../../docs/clusters.md")]
    #[doc = include_str!("../../docs/errors.md")]
    #[doc = include_str!("../../docs/coming-from-ray.md")]
    #[doc = include_str!("../../docs/coming-from-dask.md")]
    #[cfg_attr(feature = "tensor", doc = include_str!("../../docs/tensors.md"))]
    #[cfg_attr(feature = "dataframe", doc = include_str!("../../docs/frames.md"))]
    #[cfg_attr(feature = "learn", doc = include_str!("../../docs/learn.md"))]
    struct Pages;
}

/// Items for generated code, not for users.
#[doc(hidden)]
pub mod generated {
    pub use crate::process::{block_on, enter};
    pub use tharsis_remote::generated::*;
}
