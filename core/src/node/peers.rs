//! Peers: links to the other members that this node has something to say to, and messages for nodes that have
//! not joined yet.
//!
//! A link is made when the first message goes to a member or comes from it, and lasts as long as the member
//! does: its numbers of messages outlive the connections below. Members that never exchange a message have
//! none. A peer is *unknown* if a message must be sent to it before it has joined: a reference that it owns
//! may arrive before the news that it joined. Messages wait until it joins. This node may hear of joins late,
//! and that says nothing about the other one: whether it lives, only the control store knows, which is asked
//! after [`ASK_AFTER`], and again at intervals of [`ASK_EVERY`] until it answers or the peer joins.
//!
//! | state | where | enters by | leaves by |
//! |---|---|---|---|
//! | unknown | `unknown` | `send` | `joined`, `left` |
//! | linked | `links` | `joined`, `send`, `receive` | `left` |
//!
//! A round of a node costs time for links with messages under way (`busy`), not for all.

use crate::event::{Action, Operation};
use crate::journal::{About, Entry, Fact, Journal};
use crate::link::Link;
use crate::{MS, Now};
use std::collections::{BTreeMap, BTreeSet};
use tharsis_types::NodeId;
use tharsis_types::limits::UNKNOWN_NODE_WAIT_MS;
use tharsis_types::peer::{Message, Packet};

/// The news of most joins is a moment late.
const ASK_AFTER: Now = 50 * MS;
/// A member from which nothing comes for so long is not reached: one that lives answers within a second.
const SILENT_AFTER: Now = 5_000 * MS;
/// The control store may be away for a while.
const ASK_EVERY: Now = UNKNOWN_NODE_WAIT_MS * MS;

/// Links to other nodes, and messages for unknown ones.
#[derive(Debug, Default)]
pub(super) struct Peers {
    links: BTreeMap<NodeId, Link>,
    /// Links that have messages or an acknowledgement to send, or to repeat.
    busy: BTreeSet<NodeId>,
    unknown: BTreeMap<NodeId, Unknown>,
    journal: Journal,
}

/// A node that has messages to be sent to it and is not a member, as far as this node knows.
#[derive(Debug)]
struct Unknown {
    /// When the control store is asked whether it is a member.
    ask_at: Now,
    messages: Vec<Message>,
}

/// The standing of a node in the cluster, as this one knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It was a member and is gone.
    Dead,
    /// A member of the cluster.
    Member,
    /// It was never heard of.
    Unknown,
}

impl Peers {
    /// Sets the time at which the changes that follow happen.
    pub(super) fn tell_time(&mut self, now: Now) {
        self.journal.tell_time(now);
    }

    /// When a node joined and left, as far as it is remembered.
    pub(super) fn past(&self, node: NodeId) -> impl Iterator<Item = Entry> {
        self.journal.about(About::Peer(node))
    }

    /// A node joined: it gets the messages that waited for it.
    pub(super) fn joined(&mut self, node: NodeId) {
        assert!(!self.links.contains_key(&node), "{node} joined twice");
        let waiting = self.unknown.remove(&node).map(|unknown| unknown.messages);
        waiting.into_iter().flatten().for_each(|message| self.push(node, message));
        self.journal.note(About::Peer(node), Fact::Joined);
    }

    /// A node is gone, and with it all messages for it.
    pub(super) fn left(&mut self, node: NodeId) {
        self.links.remove(&node);
        self.busy.remove(&node);
        self.unknown.remove(&node);
        self.journal.note(About::Peer(node), Fact::Left);
    }

    /// Sends a message to another node; one that is not a member yet gets it when it joins, unless it is
    /// dead.
    pub(super) fn send(
        &mut self,
        now: Now,
        to: NodeId,
        message: Message,
        standing: impl FnOnce() -> Standing,
    ) {
        if self.links.contains_key(&to) {
            return self.push(to, message);
        }
        match standing() {
            Standing::Dead => {}
            Standing::Member => self.push(to, message),
            Standing::Unknown => {
                let unknown = || Unknown { ask_at: now + ASK_AFTER, messages: Vec::new() };
                self.unknown.entry(to).or_insert_with(unknown).messages.push(message);
            }
        }
    }

    /// The messages of a packet of a member that are new, in order.
    pub(super) fn receive(
        &mut self,
        now: Now,
        from: NodeId,
        packet: Packet,
    ) -> impl Iterator<Item = Message> + use<> {
        self.busy.insert(from);
        self.links.entry(from).or_default().receive(now, packet)
    }

    /// Appends the packets to send now.
    pub(super) fn transmit(&mut self, now: Now, out: &mut Vec<Action>) {
        let links = &mut self.links;
        self.busy.retain(|to| {
            let Some(link) = links.get_mut(to) else { return false };
            let mut packets = Vec::new();
            link.transmit(now, &mut packets);
            out.extend(packets.into_iter().map(|packet| Action::Do(Operation::Send { to: *to, packet })));
            0 < link.unacknowledged()
        });
    }

    /// Unknown peers of which the control store is to be asked now.
    pub(super) fn take_unknown(&mut self, now: Now) -> Vec<NodeId> {
        let mut due = Vec::new();
        for (node, unknown) in self.unknown.iter_mut().filter(|(_, unknown)| unknown.ask_at <= now) {
            unknown.ask_at = now + ASK_EVERY;
            due.push(*node);
        }
        due
    }

    /// When [`Peers::transmit`] or [`Peers::take_unknown`] has something to do.
    pub(super) fn next_timeout(&self) -> Option<Now> {
        let repeat = self.busy.iter().filter_map(|node| self.links.get(node)?.next_timeout()).min();
        let ask = self.unknown.values().map(|unknown| unknown.ask_at).min();
        repeat.into_iter().chain(ask).min()
    }

    /// When a member counts as not reached, if messages are on their way to it and nothing comes from it.
    pub(super) fn silent_at(&self, node: NodeId) -> Option<Now> {
        Some(self.links.get(&node)?.silent_since()? + SILENT_AFTER)
    }

    /// Messages that are not acknowledged.
    pub(super) fn unacknowledged(&self) -> usize {
        self.busy.iter().filter_map(|node| self.links.get(node)).map(Link::unacknowledged).sum()
    }

    /// Asserts that a node is a member or unknown, never both, and that no link waits that is not busy.
    pub(super) fn check(&self, is_member: impl Fn(NodeId) -> bool) {
        for (node, link) in &self.links {
            assert!(is_member(*node), "{node} has a link and is not a member");
            let is_busy = self.busy.contains(node);
            assert!(is_busy || link.unacknowledged() == 0, "messages for {node} are not sent");
        }
        assert!(self.busy.iter().all(|node| self.links.contains_key(node)), "a link is busy and not there");
        for (node, unknown) in &self.unknown {
            assert!(!is_member(*node), "{node} is a member and unknown");
            assert!(!unknown.messages.is_empty(), "nothing waits for {node} to join");
        }
    }

    /// Sizes of tables that must be empty when nothing is under way.
    pub(super) fn leftovers(&self) -> [(&'static str, usize); 2] {
        [("nodes that never joined", self.unknown.len()), ("unacknowledged messages", self.unacknowledged())]
    }

    fn push(&mut self, to: NodeId, message: Message) {
        self.links.entry(to).or_default().push(message);
        self.busy.insert(to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tharsis_types::JobId;

    const PEER: NodeId = NodeId(2);

    fn ended(job: u32) -> Message {
        Message::JobEnded { job: JobId(job) }
    }

    /// Messages that are on their way.
    fn sent(peers: &mut Peers, now: Now) -> Vec<Message> {
        let mut out = Vec::new();
        peers.transmit(now, &mut out);
        let messages = |action| match action {
            Action::Do(Operation::Send { packet, .. }) => packet.messages,
            _ => Vec::new(),
        };
        out.into_iter().flat_map(messages).collect()
    }

    #[test]
    fn messages_for_an_unknown_peer_wait_for_it_to_join() {
        let mut peers = Peers::default();
        peers.send(0, PEER, ended(1), || Standing::Unknown);
        peers.check(|_| false);
        assert_eq!(peers.next_timeout(), Some(ASK_AFTER));
        peers.joined(PEER);
        peers.check(|node| node == PEER);
        assert_eq!(sent(&mut peers, 0), [ended(1)]);
    }

    #[test]
    fn an_unknown_peer_is_asked_for_until_there_is_an_answer() {
        let mut peers = Peers::default();
        peers.send(0, PEER, ended(1), || Standing::Unknown);
        peers.send(0, NodeId(3), ended(1), || Standing::Dead);
        assert!(peers.take_unknown(ASK_AFTER - 1).is_empty());
        assert_eq!(peers.take_unknown(ASK_AFTER), [PEER], "nothing waits for the dead");
        assert!(peers.take_unknown(ASK_AFTER + 1).is_empty());
        assert_eq!(peers.next_timeout(), Some(ASK_AFTER + ASK_EVERY), "the control store may be away");
        assert_eq!(peers.take_unknown(ASK_AFTER + ASK_EVERY), [PEER]);
        peers.send(ASK_AFTER + ASK_EVERY, PEER, ended(2), || Standing::Unknown);
        assert_eq!(peers.unknown[&PEER].messages.len(), 2, "it may join all the same");
        peers.left(PEER);
        assert!(peers.leftovers().iter().all(|(_, count)| *count == 0));
    }

    #[test]
    fn a_member_without_messages_costs_nothing() {
        let mut peers = Peers::default();
        (2..1_000).for_each(|node| peers.joined(NodeId(node)));
        assert!(peers.links.is_empty() && peers.next_timeout().is_none());
        peers.send(0, PEER, ended(1), || Standing::Member);
        assert_eq!((sent(&mut peers, 0).len(), peers.busy.len()), (1, 1));
        let all = Packet::new(0, 1, vec![ended(2)]);
        assert_eq!(peers.receive(1, PEER, all).collect::<Vec<_>>(), [ended(2)]);
        assert!(sent(&mut peers, 1).is_empty(), "only an acknowledgement is sent");
        assert!(peers.busy.is_empty() && peers.next_timeout().is_none());
        peers.check(|_| true);
    }
}
