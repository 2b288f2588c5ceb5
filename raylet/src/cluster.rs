//! Other nodes: stub until it lands.

use std::convert::Infallible;
use tharsis_core::event::Extent;
use tharsis_core::peer::Packet;
use tharsis_types::{NodeId, ObjectId};

/// Connections to the other nodes.
pub struct Cluster(Infallible);

impl Cluster {
    /// Where other nodes reach this one.
    #[must_use]
    pub fn address(&self) -> &str {
        match self.0 {}
    }

    /// Reads an object from another node.
    pub fn pull(&self, _object: ObjectId, _from: NodeId, _into: Extent) {
        match self.0 {}
    }

    /// Sends a packet to another node.
    pub fn send(&self, _to: NodeId, _packet: &Packet) {
        match self.0 {}
    }

    /// Ends all connections.
    pub fn stop(self) {
        match self.0 {}
    }
}
