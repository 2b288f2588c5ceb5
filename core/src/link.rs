//! Delivery between two nodes: every message once, in order, as long as both live.
//!
//! Packets may be lost, late, doubled or out of order (a connection that breaks and is made again does all of
//! that). Each direction numbers its messages; the receiver takes only the next number and acknowledges in
//! every packet the messages that it has; the sender repeats from there when no acknowledgement came for a
//! while (go-back-N: losses are rare, so nothing is kept out of order). A node that restarts has a new id,
//! hence a new link: node ids are session ids.
//!
//! The machines above therefore need no request ids, no duplicate checks and no timers of their own.

use crate::Now;
use std::collections::VecDeque;
use tharsis_types::peer::{Message, Packet};

/// Maximum number of messages in flight.
const WINDOW_MESSAGES: usize = 4096;
/// Maximum number of messages in one packet.
const PACKET_MESSAGES: usize = 256;
/// Delay before the first repetition; it doubles up to [`REPEAT_MAX`].
const REPEAT_MIN: Now = 50 * crate::MS;
/// Longest delay before a repetition.
const REPEAT_MAX: Now = 1_000 * crate::MS;

/// One node's end of the exchange with one other node.
#[derive(Debug, Default)]
pub struct Link {
    /// Number of the first message in `queue`: all below it arrived.
    base: u64,
    /// Messages not acknowledged, oldest first.
    queue: VecDeque<Message>,
    /// Number of messages of `queue` that were sent at least once since the last repetition.
    sent: usize,
    /// Number of the next message to take.
    expected: u64,
    /// Whether the peer must be sent an acknowledgement.
    owes_acknowledgement: bool,
    repeat_at: Option<Now>,
    repeat_after: Now,
}

impl Link {
    /// Queues a message for the other node.
    pub fn push(&mut self, message: Message) {
        self.queue.push_back(message);
    }

    /// Takes a packet and returns the messages that are new, in order.
    pub fn receive(&mut self, now: Now, packet: Packet) -> impl Iterator<Item = Message> + use<> {
        self.acknowledge(now, packet.acknowledged);
        let count = packet.messages.len() as u64;
        self.owes_acknowledgement |= count > 0;
        let known = self.expected.saturating_sub(packet.first);
        let take = if packet.first <= self.expected { count.saturating_sub(known) } else { 0 };
        self.expected += take;
        packet.messages.into_iter().skip((count - take) as usize)
    }

    /// Appends the packets to send now.
    pub fn transmit(&mut self, now: Now, out: &mut Vec<Packet>) {
        if self.repeat_at.is_some_and(|at| at <= now) {
            self.sent = 0;
            self.repeat_after = (self.repeat_after * 2).min(REPEAT_MAX);
            self.repeat_at = None;
        }
        let until = self.queue.len().min(WINDOW_MESSAGES);
        while self.sent < until {
            let end = until.min(self.sent + PACKET_MESSAGES);
            let messages = self.queue.range(self.sent..end).cloned().collect();
            out.push(Packet { first: self.base + self.sent as u64, acknowledged: self.expected, messages });
            self.sent = end;
            self.owes_acknowledgement = false;
        }
        if self.owes_acknowledgement {
            self.owes_acknowledgement = false;
            let first = self.base + self.sent as u64;
            out.push(Packet { first, acknowledged: self.expected, messages: Vec::new() });
        }
        if self.sent > 0 && self.repeat_at.is_none() {
            self.repeat_after = self.repeat_after.max(REPEAT_MIN);
            self.repeat_at = Some(now + self.repeat_after);
        }
    }

    /// When [`Link::transmit`] has something to repeat.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Now> {
        self.repeat_at
    }

    /// Messages that have not been acknowledged.
    #[must_use]
    pub fn unacknowledged(&self) -> usize {
        self.queue.len()
    }

    fn acknowledge(&mut self, now: Now, acknowledged: u64) {
        let arrived = acknowledged.saturating_sub(self.base).min(self.queue.len() as u64) as usize;
        if arrived == 0 {
            return;
        }
        self.queue.drain(..arrived);
        self.base += arrived as u64;
        self.sent = self.sent.saturating_sub(arrived);
        self.repeat_after = REPEAT_MIN;
        self.repeat_at = (self.sent > 0).then(|| now + self.repeat_after);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tharsis_types::LeaseId;

    fn numbered(n: u64) -> Message {
        Message::LeaseReturned { lease: LeaseId(n) }
    }

    proptest! {
        /// Whatever the network loses, doubles or delays, both sides see every message once and in order.
        #[test]
        fn every_message_arrives_once_and_in_order(
            count in 1u64..300,
            fates in proptest::collection::vec(0u8..5, 200..1000),
        ) {
            let (mut a, mut b) = (Link::default(), Link::default());
            let (mut at_a, mut at_b) = (Vec::new(), Vec::new());
            let mut late: Vec<(bool, Packet)> = Vec::new();
            let mut now = 0;
            let mut pushed = 0;
            let mut fates = fates.into_iter();
            while at_b.len() < count as usize || at_a.len() < count as usize {
                if pushed < count {
                    a.push(numbered(pushed));
                    b.push(numbered(pushed));
                    pushed += 1;
                }
                now += 30 * crate::MS;
                let (mut from_a, mut from_b) = (Vec::new(), Vec::new());
                a.transmit(now, &mut from_a);
                b.transmit(now, &mut from_b);
                let packets = from_a.into_iter().map(|p| (true, p)).chain(from_b.into_iter().map(|p| (false, p)));
                for (to_b, packet) in packets.collect::<Vec<_>>() {
                    let mut deliver = |p: Packet| {
                        if to_b { at_b.extend(b.receive(now, p)) } else { at_a.extend(a.receive(now, p)) }
                    };
                    match fates.next().unwrap_or(2) {
                        0 => {}
                        1 => { deliver(packet.clone()); deliver(packet) }
                        4 => late.push((to_b, packet)),
                        _ => deliver(packet),
                    }
                }
                if late.len() > 3 {
                    for (to_b, p) in late.drain(..).rev() {
                        if to_b { at_b.extend(b.receive(now, p)) } else { at_a.extend(a.receive(now, p)) }
                    }
                }
                prop_assert!(now < 1_000_000 * crate::MS, "no end in sight");
            }
            let all: Vec<_> = (0..count).map(numbered).collect();
            prop_assert_eq!(&at_a, &all);
            prop_assert_eq!(&at_b, &all);
        }
    }
}
