//! The connection of one client with its node: a ring each way and a bell for the client, in one segment.
//!
//! The node makes the segment and attaches first; the client attaches to existing rings. The node's bell is
//! not here: all clients of a node share its board.
//!
//! The rings of a worker that shares its process are small: their pages are allocated in advance, and such
//! workers are many. The size of the segment says which rings it has.

use crate::bell::{BELL_BYTES, Bell};
use crate::error::StoreError;
use crate::ring::{Consumer, Producer, RingPlace};
use crate::segment::Segment;
use std::sync::Arc;
use tharsis_types::limits::{INLINE_BYTES_MAX, KIB, LARGE_RECORD_BYTES_MAX, RING_BYTES};

const TO_NODE_OFFSET: usize = 128;
/// Bytes of each ring of a worker that shares its process.
const SMALL_RING_BYTES: usize = 32 * KIB;
const _: () = assert!(INLINE_BYTES_MAX * 8 <= SMALL_RING_BYTES, "an inline value goes in one piece");
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
    pub const BYTES: usize = TO_NODE_OFFSET + 2 * RingPlace::bytes(RING_BYTES);
    /// Bytes of the segment of a worker that shares its process.
    pub const SMALL_BYTES: usize = TO_NODE_OFFSET + 2 * RingPlace::bytes(SMALL_RING_BYTES);

    /// Makes both rings in a fresh segment and takes the node's side.
    ///
    /// # Errors
    /// `BadSize` or `OutOfBounds` if the segment is smaller than [`Channel::SMALL_BYTES`].
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
    let ring_bytes = if segment.len() < Channel::BYTES { SMALL_RING_BYTES } else { RING_BYTES };
    let from_node_offset = TO_NODE_OFFSET + RingPlace::bytes(ring_bytes);
    let to_node = RingPlace::new(Arc::clone(segment), TO_NODE_OFFSET, ring_bytes)?;
    let from_node = RingPlace::new(Arc::clone(segment), from_node_offset, ring_bytes)?;
    Ok((to_node, from_node))
}

#[cfg(not(models))]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::PendingLarge;

    #[test]
    fn a_small_channel_carries_what_is_larger_than_its_rings() {
        let segment = Arc::new(Segment::anonymous(Channel::SMALL_BYTES).unwrap());
        let mut node = Channel::node_side(&segment).unwrap();
        let mut client = Channel::client_side(&segment).unwrap();
        let sent: Vec<u8> = (0..4 * SMALL_RING_BYTES).map(|at| (at % 251) as u8).collect();
        let mut pending = PendingLarge::new(sent.clone());
        let mut received = Vec::new();
        while received.is_empty() {
            node.producer.try_push_large(&mut pending).unwrap();
            node.producer.publish();
            client.consumer.drain(usize::MAX, |record| received = record.to_vec()).unwrap();
        }
        assert!(received == sent, "{} bytes came", received.len());
    }
}
