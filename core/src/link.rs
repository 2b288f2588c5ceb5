//! Delivery between two nodes: every message once, in order, as long as both live.
//!
//! Packets may be lost, late, doubled or out of order (a connection that breaks and is made again does all of
//! that). Each direction numbers its messages; the receiver takes only the next number and acknowledges in
//! every packet the messages that it has, and says if one is missing before one that it has seen; the sender
//! repeats from there (go-back-N: losses are rare, so nothing is kept out of order). When no acknowledgement
//! came for a while it asks, and repeats nothing: over a slow connection what it sent is still on its way,
//! and the question arrives behind it. A node that restarts has a new id, hence a new link: node ids are
//! session ids.
//!
//! The machines above therefore need no request ids, no duplicate checks and no timers of their own.

use crate::Now;
use std::collections::VecDeque;
use tharsis_types::peer::{Message, Packet};

/// Maximum number of messages in flight.
const WINDOW_MESSAGES: usize = 4096;
/// Maximum number of messages in one packet.
const PACKET_MESSAGES: usize = 256;
/// Delay before the first question; it doubles up to [`REPEAT_MAX`].
const REPEAT_MIN: Now = 50 * crate::MS;
/// Longest delay before a question.
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
    /// Whether the last packet came too early: messages before it are lost.
    lacks: bool,
    /// The message from which all was repeated since the last question: packets that were on their way say
    /// once more that it is lacking.
    repeated_from: Option<u64>,
    repeat_at: Option<Now>,
    repeat_after: Now,
    /// Since when messages are under way and nothing comes from the peer.
    silent_since: Option<Now>,
}

impl Link {
    /// Queues a message for the other node.
    pub fn push(&mut self, message: Message) {
        self.queue.push_back(message);
    }

    /// Takes a packet and returns the messages that are new, in order.
    pub fn receive(&mut self, now: Now, packet: Packet) -> impl Iterator<Item = Message> + use<> {
        self.silent_since = self.silent_since.map(|_| now);
        self.acknowledge(now, packet.acknowledged);
        if packet.lacks && packet.acknowledged == self.base && self.repeated_from != Some(self.base) {
            self.repeated_from = Some(self.base);
            self.sent = 0;
            self.repeat_at = None;
        }
        let count = packet.messages.len() as u64;
        if 0 < count || packet.asks {
            self.owes_acknowledgement = true;
            self.lacks = self.expected < packet.first;
        }
        let known = self.expected.saturating_sub(packet.first);
        let take = if packet.first <= self.expected { count.saturating_sub(known) } else { 0 };
        self.expected += take;
        packet.messages.into_iter().skip((count - take) as usize)
    }

    /// Appends the packets to send now.
    pub fn transmit(&mut self, now: Now, out: &mut Vec<Packet>) {
        let asks = self.repeat_at.is_some_and(|at| at <= now);
        if asks {
            self.repeated_from = None;
            self.repeat_after = (self.repeat_after * 2).min(REPEAT_MAX);
            self.repeat_at = None;
        }
        let until = self.queue.len().min(WINDOW_MESSAGES);
        // Packets with messages are answered as well as questions are.
        let is_question = asks && self.sent == until;
        while self.sent < until {
            let end = until.min(self.sent + PACKET_MESSAGES);
            let messages = self.queue.range(self.sent..end).cloned().collect();
            out.push(self.packet(messages));
            self.sent = end;
        }
        if is_question || self.owes_acknowledgement {
            let packet = self.packet(Vec::new());
            out.push(Packet { asks: is_question, ..packet });
        }
        if self.sent > 0 {
            self.silent_since.get_or_insert(now);
        }
        if self.sent > 0 && self.repeat_at.is_none() {
            self.repeat_after = self.repeat_after.max(REPEAT_MIN);
            self.repeat_at = Some(now + self.repeat_after);
        }
    }

    /// When [`Link::transmit`] has something to ask.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Now> {
        self.repeat_at
    }

    /// Since when messages are under way and nothing has come from the peer. One that lives answers
    /// questions.
    #[must_use]
    pub fn silent_since(&self) -> Option<Now> {
        self.silent_since
    }

    /// Messages that have not been acknowledged.
    #[must_use]
    pub fn unacknowledged(&self) -> usize {
        self.queue.len()
    }

    /// A packet of messages behind those that were sent.
    fn packet(&mut self, messages: Vec<Message>) -> Packet {
        self.owes_acknowledgement = false;
        let (first, lacks) = (self.base + self.sent as u64, std::mem::take(&mut self.lacks));
        Packet { first, acknowledged: self.expected, asks: false, lacks, messages }
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
        self.silent_since = (self.sent > 0).then_some(now);
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

    /// Messages that are sent in this round.
    fn sent(link: &mut Link, now: Now) -> Vec<Packet> {
        let mut out = Vec::new();
        link.transmit(now, &mut out);
        out
    }

    /// A connection that takes 30 s for what is under way, in order and without a loss.
    #[test]
    fn nothing_is_repeated_over_a_slow_connection() {
        const COUNT: u64 = 6_000;
        const PACKET_TIME: Now = 1_200 * crate::MS;
        let (mut a, mut b) = (Link::default(), Link::default());
        (0..COUNT).for_each(|n| a.push(numbered(n)));
        let (mut wire, mut taken, mut carried, mut now) = (VecDeque::new(), 0, 0, 0);
        let mut free_at = 0;
        while taken < COUNT {
            for packet in sent(&mut a, now) {
                carried += packet.messages.len() as u64;
                let time = if packet.messages.is_empty() { 0 } else { PACKET_TIME };
                free_at = now.max(free_at) + time;
                wire.push_back((free_at, packet));
            }
            now += 10 * crate::MS;
            while wire.front().is_some_and(|(at, _)| *at <= now) {
                let (_, packet) = wire.pop_front().unwrap();
                taken += b.receive(now, packet).count() as u64;
                for answer in sent(&mut b, now) {
                    assert_eq!(a.receive(now, answer).count(), 0);
                }
            }
        }
        assert_eq!(carried, COUNT);
    }

    /// A connection that breaks loses all that is on its way.
    #[test]
    fn what_is_lost_is_repeated_as_soon_as_it_is_missed() {
        let (mut a, mut b) = (Link::default(), Link::default());
        (0..1_000).for_each(|n| a.push(numbered(n)));
        assert_eq!(sent(&mut a, 0).len(), 4, "all are lost");
        assert!(sent(&mut a, REPEAT_MIN - 1).is_empty());
        a.push(numbered(1_000));
        let later = sent(&mut a, 1);
        assert_eq!(later.iter().map(|packet| packet.messages.len()).collect::<Vec<_>>(), [1]);
        for packet in later {
            assert_eq!(b.receive(2, packet).count(), 0);
        }
        let answer = sent(&mut b, 2).remove(0);
        assert!(answer.lacks && answer.acknowledged == 0);
        let mut again = a.receive(3, answer.clone()).map(drop).collect::<Vec<_>>();
        again.extend(a.receive(3, answer).map(drop));
        let repeated = sent(&mut a, 3);
        assert_eq!(repeated.iter().map(|packet| packet.messages.len()).sum::<usize>(), 1_001);
        let taken: Vec<_> = repeated.into_iter().flat_map(|packet| b.receive(4, packet)).collect();
        assert_eq!(taken, (0..1_001).map(numbered).collect::<Vec<_>>());
        // Without anything later, a question shows it.
        (0..3).for_each(|n| b.push(numbered(n)));
        assert_eq!(sent(&mut b, 5).len(), 1, "lost");
        let question = sent(&mut b, 5 + 2 * REPEAT_MIN).remove(0);
        assert!(question.asks && question.messages.is_empty());
        assert_eq!(a.receive(6, question).count(), 0);
        let answer = sent(&mut a, 6).remove(0);
        assert!(answer.lacks);
        assert_eq!(b.receive(7, answer).count(), 0);
        assert_eq!(sent(&mut b, 7).remove(0).messages.len(), 3);
    }

    #[test]
    fn a_peer_is_silent_from_the_first_message_that_it_does_not_answer_on() {
        let (mut a, mut b) = (Link::default(), Link::default());
        assert_eq!(a.silent_since(), None);
        a.push(numbered(0));
        let first = sent(&mut a, 5).remove(0);
        a.push(numbered(1));
        let second = sent(&mut a, 9).remove(0);
        sent(&mut a, 9 + REPEAT_MAX);
        assert_eq!(a.silent_since(), Some(5), "since the first, whatever is asked");
        for (now, packet, silent_since) in [(10, first, Some(10)), (12, second, None)] {
            assert_eq!(b.receive(now, packet).count(), 1);
            let answer = sent(&mut b, now).remove(0);
            assert_eq!(a.receive(now, answer).count(), 0);
            assert_eq!(a.silent_since(), silent_since);
        }
        a.push(numbered(2));
        sent(&mut a, 20);
        let late = Packet { first: 0, acknowledged: 2, asks: false, lacks: false, messages: Vec::new() };
        assert_eq!(a.receive(30, late).count(), 0);
        assert_eq!(a.silent_since(), Some(30), "it lives");
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
