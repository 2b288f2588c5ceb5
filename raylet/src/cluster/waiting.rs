//! Packets that wait for a stream to another node.
//!
//! They are bounded by number and by bytes: over a slow connection a few large ones would fill the memory.
//! Packets that find no room are dropped, and sent again when the other node misses them. What comes behind a
//! dropped one is dropped too until all that wait have gone: the other node takes messages in order only, so
//! it could do nothing with them but ask, and they would keep the room that the dropped one needs.

use prost::Message as _;
use std::collections::VecDeque;
use tharsis_protos::peer::wire::Packet;

/// Packets that wait for one stream.
const PACKETS_MAX: usize = 1024;
/// Bytes that wait for one stream, unless one packet alone has more.
const BYTES_MAX: usize = 64 << 20;

/// Packets that wait, oldest first.
#[derive(Default)]
pub(super) struct Waiting {
    packets: VecDeque<Packet>,
    bytes: usize,
    /// Messages were dropped since the queue was last empty.
    has_dropped: bool,
}

impl Waiting {
    /// Adds a packet; false if there is no room for it.
    pub(super) fn push(&mut self, packet: Packet) -> bool {
        let bytes = packet.encoded_len();
        self.has_dropped &= !self.packets.is_empty();
        let fits = self.packets.is_empty() || self.bytes + bytes <= BYTES_MAX;
        // Acknowledgements and questions have no place in the order of messages, and a question is what shows
        // that some were dropped.
        let has_messages = !packet.messages.is_empty();
        if !fits || self.packets.len() == PACKETS_MAX || has_messages && self.has_dropped {
            self.has_dropped |= has_messages;
            return false;
        }
        self.bytes += bytes;
        self.packets.push_back(packet);
        true
    }

    /// Takes the oldest packet.
    pub(super) fn pop(&mut self) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.bytes -= packet.encoded_len();
        Some(packet)
    }

    /// Whether none waits.
    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tharsis_protos::peer::wire::{Message, TaskPush, message::Kind};

    fn packet(bytes: usize) -> Packet {
        let push = TaskPush { payload: vec![0; bytes].into(), ..TaskPush::default() };
        let messages = vec![Message { kind: Some(Kind::TaskPush(push)) }];
        Packet { messages, ..Packet::default() }
    }

    #[test]
    fn packets_are_bounded_by_number_and_by_bytes() {
        let mut waiting = Waiting::default();
        assert!((0..PACKETS_MAX).all(|_| waiting.push(packet(1))) && !waiting.push(packet(1)));
        while waiting.pop().is_some() {}
        assert_eq!(waiting.bytes, 0);
        assert!(waiting.push(packet(BYTES_MAX + 1)), "one alone may have more");
        assert!(!waiting.push(packet(1)));
        waiting.pop();
        assert!((0..3).all(|_| waiting.push(packet(BYTES_MAX / 4))));
        assert!(!waiting.push(packet(BYTES_MAX / 4)), "with what is around it, it is too much");
    }

    #[test]
    fn nothing_passes_messages_that_were_dropped() {
        let mut waiting = Waiting::default();
        assert!(waiting.push(packet(BYTES_MAX / 2)) && waiting.push(packet(1)));
        assert!(!waiting.push(packet(BYTES_MAX)), "no room for it");
        assert!(!waiting.push(packet(1)), "it has room, and would arrive before what was dropped");
        let question = Packet { asks: true, ..Packet::default() };
        assert!(waiting.push(question), "it brings no message");
        waiting.pop();
        assert!(!waiting.push(packet(1)));
        while waiting.pop().is_some() {}
        assert!(waiting.push(packet(BYTES_MAX)) && !waiting.push(packet(1)), "one alone, and no room behind");
        waiting.pop();
        assert!(waiting.push(packet(1)), "all that waited have gone");
    }
}
