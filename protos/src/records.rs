//! Records in the rings between a client (driver or worker) and its node.
//!
//! This is the hot path: one record per submitted task, per started task, per finished task. Records are
//! plain little-endian bytes: a kind, fixed fields, then variable parts with their lengths in front. Decoding
//! borrows from the ring and checks every length; whatever does not fit is a [`BadRecord`], and the peer that
//! sent it is cut off. Neither side ever trusts the other's bytes.
//!
//! Both sides are always built from one source (a worker is the driver's executable; a node refuses another
//! protocol version at the handshake), so records carry no version.
//!
//! A *token* names a reference inside its client: slot number in the low half, generation in the high half,
//! so that an answer to a dropped reference is told from one to its successor.
//!
//! Records are in [`FromClient`] and [`ToClient`], by direction; the lists inside them in `records/lists.rs`.

pub mod pack;

mod bytes;
mod from_client;
mod graph;
mod lists;
mod to_client;

pub use from_client::{FromClient, OutcomeView};
pub use graph::{GraphView, PackedGraph};
pub use lists::{ArgumentsView, DependenciesView, NodesView, OutputsView, RefsView, SlotsView, TokensView};
pub use to_client::{CALLS_AT_FIRST, ToClient};

use tharsis_types::{Extent, RefId};

/// Names a reference inside its client.
pub type Token = u64;

/// Bytes of a packed [`RefId`].
pub const REF_BYTES: usize = RefId::LEN;
/// Bytes of a packed [`Dependency`](tharsis_types::task::Dependency).
pub const DEPENDENCY_BYTES: usize = REF_BYTES + 2;
/// Bytes of a packed [`Token`].
pub const TOKEN_BYTES: usize = 8;
const NODE_BYTES: usize = 8;

/// A record that is not what its kind says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("record of {len} bytes, kind {kind}: {problem}")]
pub struct BadRecord {
    /// The first byte.
    pub kind: u8,
    /// Length of the record.
    pub len: usize,
    /// Fault of the record.
    pub problem: &'static str,
}

/// A value on its way between node and client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueView<'a> {
    /// The encoded value itself.
    Inline(&'a [u8]),
    /// In the local arena. Towards a client: pinned for it until it releases the reference or ends the task.
    Local(Extent),
    /// Exists, but is not mapped for this client: ask with [`FromClient::Fetch`].
    Ready {
        /// Bytes of the value.
        len: u64,
    },
    /// There is no value: an encoded `Failure`.
    Failed(&'a [u8]),
}

#[cfg(test)]
mod tests;
