//! API of a driver or a worker: remote functions, references, put, get and wait.
//!
//! This crate is the client of a node on the same machine. It knows no decisions (placement of tasks,
//! lifetime of objects), no tensors, no control store and no gRPC; it speaks [`tharsis_protos::records`] over
//! two rings in shared memory, and reads and writes objects in place.
//!
//! Users see it through the crate `tharsis`. Reading order:
//!
//! | concern | module |
//! |---|---|
//! | reading of the inbound ring, and waking of threads that wait for values | `pump` |
//! | sending of records, and the loss of the node | `link` |
//! | memory in which large values are written | `regions`, `uses` |
//! | state of each reference | `news`, `handles` |
//! | encoding and decoding of values | `memory`, `codec`, `values` |
//! | the task of a thread, the queue of a worker | `task`, `work` |
//! | dispatch of records from the node | `dispatch` |
//! | waiting for values and reading them | `settle`, `awaiting`, `reference`, `get`, `watchlist`, `awaited`, `many`, `actor_pool` |
//! | clients, and the client of a thread | `classes`, [`client`], [`current`] |
//! | from a call to a task | `placement`, `planned`, `options`, `call`, `actor`, `named`, `registry`, `graph`, `submit`, `new_group`, `stream`, `connect` |
//! | execution of a task | `context`, `hosted`, `checkpoint`, `groups`, `producer`, `worker` |
//!
//! Files further down may use those above, and never the other way round: records from the node go from the
//! link to the handles and the work through the trait `link::Receiver`.
//!
//! Invariants:
//! 1. A thread never waits while it dispatches (`link`).
//! 2. Every reader of bytes of the arena holds a pin on them (`memory`).
//! 3. A reference leaves this process only through a record that names it (`codec`).
//! 4. When the connection ends, every wait ends with an error (`link`, `dispatch`).
//! 5. A handle keeps its connection, and so its reader; nothing that the link owns keeps the link (`link`).

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod actor;
mod actor_pool;
mod answers;
mod awaited;
mod awaiting;
mod call;
mod checkpoint;
mod classes;
pub mod client;
mod codec;
mod connect;
mod context;
mod credit;
pub mod current;
mod dispatch;
mod error;
mod exit;
mod get;
mod graph;
mod groups;
mod handles;
mod hosted;
mod link;
mod many;
mod memory;
mod named;
mod names;
mod new_group;
mod news;
mod options;
mod panics;
mod placement;
mod planned;
mod producer;
mod pump;
mod reason;
mod reference;
mod regions;
mod registry;
mod settle;
mod speculate;
mod stream;
mod submit;
mod task;
mod uses;
mod values;
mod watchlist;
mod work;
mod worker;

pub use actor::{Actor, kill, restart};
pub use actor_pool::{ActorPool, PoolMap, PoolMapAsCompleted};
pub use awaited::{Awaited, Parted, Wait, wait};
pub use call::{IntoArg, Parameter, Returns, Values};
pub use checkpoint::{Checkpoint, checkpoint};
pub use client::{Client, ClientParts, Names};
pub use connect::{Leave, SharedProcess, SharedWorker, connect};
pub use context::{Context, EnteredTask, context};
pub use dispatch::LogSink;
pub use error::{Error, Result};
pub use exit::exit;
pub use get::{cancel, get_all, locations};
pub use graph::{Keep, TaskGraph};
pub use many::{AsCompleted, Map, MapAsCompleted, as_completed, get_any, map, map_as_completed};
pub use named::{ActorName, Namespaces, list_named_actors};
pub use new_group::{Bundle, NewGroup, placement_group};
pub use options::{MAX_RETRIES_DEFAULT, Options};
pub use placement::PlacementGroup;
pub use planned::Planned;
pub use reference::{ObjectRef, RefFuture};
pub use regions::Place;
pub use registry::function_table;
pub use settle::Timeout;
pub use speculate::{MapSpeculating, map_speculating};
pub use stream::ObjectRefStream;
pub use submit::put;
pub use tharsis_types::task::{LabelSelector, LabelTerm};
pub use tharsis_types::{
    BundleNodes, Executed, Failure, FailureKind, JobId, NodeId, ObjectId, RefId, Resources, Strategy, TaskId,
};
pub use uses::Use;
#[cfg(feature = "arrow")]
pub use values::Batch;
pub use values::{Array, Blob, Element};
pub use worker::run_worker;

/// Items for generated code, not for users.
#[doc(hidden)]
pub mod generated {
    pub use crate::actor::{Actor, ActorHandle};
    pub use crate::call::{Arguments, PlainError, Probe, TaskCall, TypedError};
    pub use crate::checkpoint::{BeginsAnew, Continues, Continuing};
    pub use crate::named::find;
    pub use crate::names::IfThere;
    pub use crate::options::MAX_RETRIES_DEFAULT;
    pub use crate::planned::PlannedResult;
    pub use crate::producer::Producer;
    pub use crate::registry::{Definition, Method, Registered, Remote};
    pub use crate::stream::end_of_stream;
    pub use crate::submit::{Call, Output};
    pub use inventory;
    pub use serde;
    pub use tharsis_types::task::Role;
}
