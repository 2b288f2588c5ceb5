//! Formats at the borders between processes: messages between nodes, drivers and the control store, and
//! records in local rings.
//!
//! The control store shows a trait of plain values to implement ([`control::Service`]), a function that
//! mounts it on a port, and a stub that calls it; generated types stay inside, whatever arrives is checked
//! here, once, and a message that is not what it should be is a [`BadMessage`] that names the field. What two
//! nodes tell each other is converted by the node itself ([`peer`] says why), with the checks of [`message`].
//!
//! This crate knows nothing of decisions and stores nothing.
//!
//! Every connection between processes of different machines begins with a proof that it is of the cluster
//! ([`proof`]).
//!
//! Read [`control`] first (the control store), then [`peer`] (the stream between two nodes), [`handshake`]
//! and [`records`] (between a node and the processes on its machine).

#![forbid(unsafe_code)]

pub mod call;
pub mod caller;
pub mod connection;
pub mod control;
pub mod handshake;
pub mod inventory;
pub mod join;
pub mod knock;
pub mod listing;
pub mod logs;
pub mod message;
pub mod names;
pub mod owners;
pub mod peer;
pub mod port;
pub mod proof;
pub mod records;
pub mod report;
pub mod revoked;
pub mod rights;
pub mod runs;
pub mod scrape;
pub mod submission;

/// The notes of an authority, for control stores that keep them.
pub mod rows {
    pub use tharsis_identity::Row;
}

mod crowds;
mod descriptors;
mod generated;
mod hexadecimal;
mod mount;
mod shares;
mod unproved;
mod within;

pub use call::{CallError, Refusal, RefusalCode};
pub use message::{BadMessage, Problem};
