//! The connection of one client with its node: a ring each way and a bell for the client, in one segment.
//!
//! The node makes the segment and attaches first; the client attaches to existing rings. The node's bell is
//! not here: all clients of a node share its board.

use crate::bell::{BELL_BYTES, Bell};
use crate::error::StoreError;
use crate::ring::{Consumer, Producer, RingPlace};
use crate::segment::Segment;
use std::sync::Arc;
use tharsis_types::limits::{LARGE_RECORD_BYTES_MAX, RING_BYTES};

const TO_NODE_OFFSET: usize = 128;
const FROM_NODE_OFFSET: usize = TO_NODE_OFFSET + RingPlace::bytes(RING_BYTES);
const _: () = assert!(BELL_BYTES <= TO_NODE_OFFSET, "the bell stands in front of the rings");

/// One side of a connection.
pub struct Channel {
    /// Writes to the other side.
    pub producer: Producer,
    /// Reads from the other side.
    pub consumer: Consumer,
    /// The client's bell.
    pub bell: Bell,
}

impl Channel {
    /// Bytes of the segment.
    pub const BYTES: usize = FROM_NODE_OFFSET + RingPlace::bytes(RING_BYTES);

    /// Makes both rings in a fresh segment and takes the node's side.
    ///
    /// # Errors
    /// `BadSize` or `OutOfBounds` if the segment is smaller than [`Channel::BYTES`].
    pub fn node_side(segment: &Arc<Segment>) -> Result<Channel, StoreError> {
        let (to_node, from_node) = places(segment)?;
        to_node.format()?;
        from_node.format()?;
        Channel::attach(segment, from_node, to_node)
    }

    /// Takes the client's side of a segment that the node made.
    ///
    /// # Errors
    /// `Mismatch` if the node did not make it.
    pub fn client_side(segment: &Arc<Segment>) -> Result<Channel, StoreError> {
        let (to_node, from_node) = places(segment)?;
        Channel::attach(segment, to_node, from_node)
    }

    fn attach(segment: &Arc<Segment>, write: RingPlace, read: RingPlace) -> Result<Channel, StoreError> {
        Ok(Channel {
            producer: Producer::attach(write, LARGE_RECORD_BYTES_MAX)?,
            consumer: Consumer::attach(read, LARGE_RECORD_BYTES_MAX)?,
            bell: Bell::at(segment, 0)?,
        })
    }
}

fn places(segment: &Arc<Segment>) -> Result<(RingPlace, RingPlace), StoreError> {
    let to_node = RingPlace::new(Arc::clone(segment), TO_NODE_OFFSET, RING_BYTES)?;
    let from_node = RingPlace::new(Arc::clone(segment), FROM_NODE_OFFSET, RING_BYTES)?;
    Ok((to_node, from_node))
}
