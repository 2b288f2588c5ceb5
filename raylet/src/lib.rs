//! The node process: drives the machines of `core` with real rings, processes, sockets and memory.
//!
//! Nothing is decided here. [`engine`] is the only loop; [`record_codec`] turns records into events and
//! actions into records; everything that may block happens on other threads that talk to the loop through the
//! [`inbox`].
//!
//! This crate must not know user types, graphs of tensors, or etcd.
//!
//! | read | for |
//! |---|---|
//! | `node` | assembly and end of a node |
//! | [`engine`], [`record_codec`], [`port`], [`credit`] | the loop and the rings of its clients |
//! | [`effects`], [`workers`], [`executable`], [`local`] | carrying out actions: processes, pages, sockets |
//! | [`annex`] | room on disk for values that are larger than the store |
//! | [`spill`] | writing objects to disk and reading them back |
//! | [`drain`] | leaving without loss |
//! | [`init`] | the first process of a container |
//! | [`pressure`] | readings of the memory of the node and its workers |
//! | [`descriptors`] | the limit on open files |
//! | [`gpus`] | names of GPUs, and those that a worker sees |
//! | [`readiness`] | what the manager of services is told |
//! | [`observe`] | traces of tasks |
//! | [`metrics`] | counts for monitors |
//! | [`logs`], [`logbook`] | output of workers |
//! | [`runs`], [`timeline`] | the last runs of tasks, and when they were |
//! | [`submissions`] | programs that the node was given to run |
//! | [`cluster`] | other nodes: membership, links, transfers |

#![forbid(unsafe_code)]

pub mod annex;
mod claim;
pub mod cluster;
pub mod credit;
pub mod descriptors;
pub mod drain;
pub mod effects;
mod embedded;
pub mod engine;
pub mod executable;
pub mod gpus;
mod hello;
pub mod inbox;
pub mod init;
mod inventory;
mod lists;
pub mod local;
pub mod logbook;
pub mod logs;
pub mod metrics;
pub mod names;
mod node;
pub mod observe;
mod own_files;
pub mod port;
pub mod pressure;
pub mod readiness;
pub mod record_codec;
pub mod registry;
pub mod runs;
pub mod spill;
pub mod submissions;
pub mod timeline;
pub mod workers;

pub use embedded::{Embedded, Shared, connect_embedded};
pub use node::{NodeHandle, NodeOptions, Program};
pub use own_files::MARK as FOLDER_MARK;
pub use port::EmbeddedPart;
pub use spill::{SpillChoice, SpillFolder};
pub use tharsis_core::event::Remains;
pub use tharsis_core::lease::ProcessNumber;
pub use workers::{SHARED_PROCESS, Workforce};

use tharsis_types::ClientId;

/// The client id under which objects are pinned while they are sent to other nodes.
pub const TRANSFER_CLIENT: ClientId = ClientId(0);
