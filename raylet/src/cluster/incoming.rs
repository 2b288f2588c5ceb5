//! Packets that come from another node.

use super::outbox::Peer;
use crate::inbox::{Inbox, Input};
use futures::StreamExt;
use prost::Message;
use tharsis_protos::peer::wire::Packet;
use tharsis_protos::peer::{Incoming, convert};
use tharsis_types::NodeId;

/// Bytes of a message that has none of its own, about.
const MESSAGE_BYTES: usize = 256;

/// Passes packets on until the stream ends; whether the other node closed it.
pub(super) async fn receive(me: NodeId, peer: &Peer, inbox: &Inbox, incoming: &mut Incoming) -> bool {
    let from = peer.info.id;
    while let Some(packet) = incoming.next().await {
        let bytes = packet.as_ref().map_or(0, bytes_of);
        let decoded =
            packet.map_err(|e| e.to_string()).and_then(|p| convert::decode(p).map_err(|bad| bad.to_string()));
        match decoded {
            Ok(received) if received.from == from && received.to == me => {
                if peer.is_closed() {
                    return false;
                }
                peer.note_use();
                if let Some(fault) = received.fault {
                    tracing::warn!(%from, %fault, "a message cannot be read: it is passed over");
                }
                let room = peer.room.take(bytes).await;
                inbox.put(Input::Packet { from, packet: received.packet, room });
            }
            Ok(received) => {
                tracing::warn!(%from, claimed = %received.from, "packet of another node: stream is cut off");
                return false;
            }
            Err(problem) => {
                tracing::info!(%from, problem, "stream has ended");
                return false;
            }
        }
    }
    true
}

/// The memory that a packet takes, about.
fn bytes_of(packet: &Packet) -> usize {
    packet.encoded_len() + packet.messages.len() * MESSAGE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::poll;
    use std::collections::BTreeMap;
    use std::pin::pin;
    use std::sync::Arc;
    use tharsis_object_store::bell::BELL_BOARD_BYTES;
    use tharsis_object_store::{BellBoard, Segment};
    use tharsis_protos::control::NodeInfo;
    use tharsis_types::peer::{self, Message};
    use tharsis_types::{LeaseId, Resources};

    const ME: NodeId = NodeId(1);
    const OTHER: NodeId = NodeId(2);

    /// Another member, with room for so many small packets.
    fn member(packets: usize) -> Peer {
        let info = NodeInfo {
            id: OTHER,
            listen: String::new(),
            host: String::new(),
            local_socket: String::new(),
            resources: Resources::default(),
            labels: BTreeMap::new(),
        };
        Peer::new(info, packets << 10)
    }

    #[tokio::test]
    async fn a_packet_in_the_name_or_to_the_name_of_another_node_ends_the_stream() {
        let other = NodeId(3);
        for (from, to) in [(other, ME), (OTHER, other), (ME, OTHER)] {
            let segment = Arc::new(Segment::anonymous(BELL_BOARD_BYTES).unwrap());
            let (inbox, peer) = (Inbox::new(BellBoard::at(&segment, 0).unwrap()), member(4));
            let packet = |n| peer::Packet::new(n, 0, vec![Message::LeaseReturned { lease: LeaseId(n) }]);
            let packets = [(OTHER, ME, 0), (from, to, 1), (OTHER, ME, 2)]
                .into_iter()
                .flat_map(|(from, to, n)| convert::encode(from, to, &packet(n)));
            let packets: Vec<_> = packets.map(Ok).collect();
            let mut incoming: Incoming = futures::stream::iter(packets).boxed();
            let is_closed = receive(ME, &peer, &inbox, &mut incoming).await;
            assert!(!is_closed, "the other node has not closed it");
            assert_eq!(std::iter::from_fn(|| inbox.take()).count(), 1, "from {from} to {to}");
        }
    }

    #[tokio::test]
    async fn a_member_that_sends_faster_than_the_loop_takes_has_to_wait() {
        const COUNT: u64 = 40;
        const ROOM: usize = 4;
        let segment = Arc::new(Segment::anonymous(BELL_BOARD_BYTES).unwrap());
        let (inbox, peer) = (Inbox::new(BellBoard::at(&segment, 0).unwrap()), member(ROOM));
        let packet = |n| peer::Packet::new(n, 0, vec![Message::LeaseReturned { lease: LeaseId(n) }]);
        let packets: Vec<_> = (0..COUNT).flat_map(|n| convert::encode(OTHER, ME, &packet(n))).collect();
        let mut incoming: Incoming = futures::stream::iter(packets.into_iter().map(Ok)).boxed();
        let mut receiving = pin!(receive(ME, &peer, &inbox, &mut incoming));
        let mut taken = 0;
        while poll!(&mut receiving).is_pending() {
            let waiting: Vec<_> = std::iter::from_fn(|| inbox.take()).collect();
            assert!((1..=ROOM).contains(&waiting.len()), "{} packets wait", waiting.len());
            for input in waiting {
                let Input::Packet { from: OTHER, packet, .. } = input else {
                    panic!("a packet of the member")
                };
                assert_eq!(packet.first, taken, "in order");
                taken += 1;
            }
        }
        let rest = std::iter::from_fn(|| inbox.take()).count();
        assert!(rest <= ROOM, "{rest} packets wait");
        assert_eq!(taken as usize + rest, COUNT as usize);
    }
}
