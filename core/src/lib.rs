//! Every decision of the engine, and no I/O.
//!
//! [`Node`] is one node's share of the decisions: it takes an [`Event`], changes its state and appends the
//! [`Action`]s that follow. It is made of machines that can be read one at a time:
//!
//! | module | decides |
//! |---|---|
//! | [`link`] | repetition of messages between two nodes, so that the others may assume order and no loss |
//! | [`owner`] | the state of objects, the references to them, their tasks, and when a task may start |
//! | [`lease`] | which worker runs for which owner, and which resources are in use |
//! | [`place`] | on which node a task should run |
//! | [`pull`] | which objects are fetched from other nodes, in what order |
//! | [`relay`] | which nodes may read a large object here, and which are redirected to another reader |
//! | [`store`] | where in the arena an object lies, which clients map it, which copies can be evicted |
//! | [`memory`] | when the memory of a node is read next, and when too much is in use |
//! | [`node`] | how the machines above act together |
//! | [`ends`] | whether a job has ended, as another member says: a machine of its own, beside the node |
//! | [`journal`] | nothing: it records the last transitions of each machine, for people |
//!
//! This crate must not know tokio, clocks, threads, sockets, protobuf, disks or the functions of tasks: time
//! comes in as an argument, everything random is derived from ids, and outcomes of I/O come back as events.
//! The product (`raylet`) and the simulator (`tests/sim`) drive the same code.
//!
//! Invariants, checked by [`Node::check`] after every event in tests:
//! 1. Resources in use never exceed those the node has.
//! 2. An object with a reference, a waiting task or a borrower is not freed; one without any is.
//! 3. A task is queued, leased, or finished: never two of them, never none.
//! 4. An attempt of a task is started at most once.
//! 5. An extent of the arena belongs to one object or region.

#![forbid(unsafe_code)]

pub mod ends;
pub mod event;
pub mod jobs;
pub mod journal;
pub mod lease;
pub mod link;
pub mod memory;
pub mod node;
pub mod owner;
pub mod place;
pub mod pull;
pub mod relay;
pub mod slab;
pub mod store;
#[cfg(test)]
mod testing;

pub use event::{Action, Event, Operation, Record, TaskOutcome, Value};
pub use node::Node;

/// Time since some fixed moment, in nanoseconds; only differences mean anything.
pub type Now = u64;

/// Nanoseconds in a millisecond.
pub const MS: Now = 1_000_000;
