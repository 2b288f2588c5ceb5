//! Peers: links to the other members, messages for nodes that have not joined yet, and broadcasts.
//!
//! A peer is *unknown* if a message must be sent to it before it has joined: a reference that it owns may
//! arrive before the news that it joined. Messages wait until it joins. A peer that does not join within
//! [`UNKNOWN_WAIT`] is dead.
//!
//! | state | where | enters by | leaves by |
//! |---|---|---|---|
//! | unknown | `unknown` | `send` | `joined`, `left` |
//! | member | `links` | `joined` | `left` |

use crate::event::{Action, Operation};
use crate::journal::{About, Entry, Fact, Journal};
use crate::link::Link;
use crate::place::Load;
use crate::{MS, Now};
use std::collections::{BTreeMap, VecDeque};
use tharsis_types::peer::{Message, Packet};
use tharsis_types::{JobId, NodeId};

/// An unknown peer that has not joined within this time is dead.
const UNKNOWN_WAIT: Now = 2_000 * MS;
/// Shortest interval between two reports of a node's load.
const REPORT_EVERY: Now = 20 * MS;
/// Maximum number of ended jobs that a node remembers for nodes that join.
const ENDED_JOBS_MAX: usize = 1024;

/// Links to the other nodes, and messages for unknown ones.
#[derive(Debug)]
pub(super) struct Peers {
    links: BTreeMap<NodeId, Link>,
    unknown: BTreeMap<NodeId, Unknown>,
    /// Jobs that ended here, newest last, for nodes that join later.
    ended_jobs: VecDeque<JobId>,
    /// The load that the peers were told last.
    reported: Load,
    reported_at: Now,
    journal: Journal,
}

/// A node that has messages to be sent to it and is not a member, as far as this node knows.
#[derive(Debug)]
struct Unknown {
    /// When it is given up.
    until: Now,
    messages: Vec<Message>,
}

impl Peers {
    /// No peers yet; `load` is the load of this node when it starts.
    pub(super) fn new(load: Load) -> Self {
        Self {
            links: BTreeMap::new(),
            unknown: BTreeMap::new(),
            ended_jobs: VecDeque::new(),
            reported: load,
            reported_at: 0,
            journal: Journal::default(),
        }
    }

    /// Sets the time at which the changes that follow happen.
    pub(super) fn tell_time(&mut self, now: Now) {
        self.journal.tell_time(now);
    }

    /// When a node joined and left, as far as it is remembered.
    pub(super) fn past(&self, node: NodeId) -> impl Iterator<Item = Entry> {
        self.journal.about(About::Peer(node))
    }

    /// A node joined: it gets the messages that waited for it, this node's load and the jobs that ended.
    pub(super) fn joined(&mut self, node: NodeId, load: Load) {
        let mut link = Link::default();
        let waiting = self.unknown.remove(&node).map(|unknown| unknown.messages);
        waiting.into_iter().flatten().for_each(|message| link.push(message));
        link.push(Message::LoadReport { free: load.free, waiting: load.waiting });
        self.ended_jobs.iter().for_each(|job| link.push(Message::JobEnded { job: *job }));
        let before = self.links.insert(node, link);
        assert!(before.is_none(), "{node} joined twice");
        self.journal.note(About::Peer(node), Fact::Joined);
    }

    /// A node is gone, and with it all messages for it.
    pub(super) fn left(&mut self, node: NodeId) {
        self.links.remove(&node);
        self.unknown.remove(&node);
        self.journal.note(About::Peer(node), Fact::Left);
    }

    /// Sends a message to another node; one that is not a member yet gets it when it joins, unless it is
    /// dead.
    pub(super) fn send(&mut self, now: Now, to: NodeId, message: Message, is_dead: impl Fn(NodeId) -> bool) {
        if let Some(link) = self.links.get_mut(&to) {
            assert!(!self.unknown.contains_key(&to), "{to} is a member and unknown");
            link.push(message);
        } else if !is_dead(to) {
            let until = now + UNKNOWN_WAIT;
            let unknown = self.unknown.entry(to).or_insert_with(|| Unknown { until, messages: Vec::new() });
            unknown.messages.push(message);
        }
    }

    /// The messages of a packet that are new, in order; `None` if it is not from a member.
    pub(super) fn receive(
        &mut self,
        now: Now,
        from: NodeId,
        packet: Packet,
    ) -> Option<impl Iterator<Item = Message> + use<>> {
        Some(self.links.get_mut(&from)?.receive(now, packet))
    }

    /// A driver of this node is gone: tells all members, and later those that join.
    pub(super) fn job_ended(&mut self, job: JobId) {
        if self.ended_jobs.len() == ENDED_JOBS_MAX {
            self.ended_jobs.pop_front();
        }
        self.ended_jobs.push_back(job);
        assert!(self.ended_jobs.len() <= ENDED_JOBS_MAX, "more ended jobs are remembered than may be");
        self.links.values_mut().for_each(|link| link.push(Message::JobEnded { job }));
    }

    /// Reports the load of this node to the members, if it changed and the last report is old enough.
    pub(super) fn report(&mut self, now: Now, load: impl FnOnce() -> Load) {
        if self.links.is_empty() || now < self.reported_at + REPORT_EVERY {
            return;
        }
        let load = load();
        if load == self.reported {
            return;
        }
        self.reported_at = now;
        for link in self.links.values_mut() {
            link.push(Message::LoadReport { free: load.free.clone(), waiting: load.waiting });
        }
        self.reported = load;
    }

    /// Appends the packets to send now.
    pub(super) fn transmit(&mut self, now: Now, out: &mut Vec<Action>) {
        for (to, link) in &mut self.links {
            let mut packets = Vec::new();
            link.transmit(now, &mut packets);
            out.extend(packets.into_iter().map(|packet| Action::Do(Operation::Send { to: *to, packet })));
        }
    }

    /// Unknown peers whose time to join is over: they are dead.
    pub(super) fn overdue(&self, now: Now) -> Vec<NodeId> {
        let late = |(node, unknown): (&NodeId, &Unknown)| (unknown.until <= now).then_some(*node);
        self.unknown.iter().filter_map(late).collect()
    }

    /// When [`Peers::transmit`], [`Peers::overdue`] or [`Peers::report`] has something to do.
    pub(super) fn next_timeout(&self, load: impl FnOnce() -> Load) -> Option<Now> {
        let repeat = self.links.values().filter_map(Link::next_timeout).min();
        let give_up = self.unknown.values().map(|unknown| unknown.until).min();
        let has_news = !self.links.is_empty() && load() != self.reported;
        let report = has_news.then(|| self.reported_at + REPORT_EVERY);
        [repeat, give_up, report].into_iter().flatten().min()
    }

    /// Messages that are not acknowledged.
    pub(super) fn unacknowledged(&self) -> usize {
        self.links.values().map(Link::unacknowledged).sum()
    }

    /// Asserts that a node is a member or unknown, never both; `members` are those of the view.
    pub(super) fn check(&self, members: impl Iterator<Item = NodeId>) {
        assert!(members.eq(self.links.keys().copied()), "every other member has a link, and nobody else");
        for (node, unknown) in &self.unknown {
            assert!(!self.links.contains_key(node), "{node} is a member and unknown");
            assert!(!unknown.messages.is_empty(), "nothing waits for {node} to join");
        }
        assert!(self.ended_jobs.len() <= ENDED_JOBS_MAX, "ended jobs are remembered without a bound");
    }

    /// Sizes of tables that must be empty when nothing is under way.
    pub(super) fn leftovers(&self) -> [(&'static str, usize); 2] {
        [("nodes that never joined", self.unknown.len()), ("unacknowledged messages", self.unacknowledged())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let mut peers = Peers::new(Load::default());
        peers.job_ended(JobId(7));
        peers.send(0, PEER, ended(1), |_| false);
        peers.check([].into_iter());
        assert_eq!(peers.next_timeout(Load::default), Some(UNKNOWN_WAIT));
        peers.joined(PEER, Load::default());
        peers.check([PEER].into_iter());
        let report = Message::LoadReport { free: Load::default().free, waiting: 0 };
        assert_eq!(sent(&mut peers, 0), [ended(1), report, ended(7)]);
    }

    #[test]
    fn an_unknown_peer_that_does_not_join_is_given_up() {
        let mut peers = Peers::new(Load::default());
        peers.send(0, PEER, ended(1), |_| false);
        peers.send(0, NodeId(3), ended(1), |node| node == NodeId(3));
        assert!(peers.overdue(UNKNOWN_WAIT - 1).is_empty());
        assert_eq!(peers.overdue(UNKNOWN_WAIT), [PEER], "nothing waits for the dead");
        peers.left(PEER);
        assert!(peers.leftovers().iter().all(|(_, count)| *count == 0));
    }

    #[test]
    fn a_load_is_reported_when_it_changed_and_some_time_after_the_last() {
        let mut peers = Peers::new(Load::default());
        peers.joined(PEER, Load::default());
        assert_eq!(sent(&mut peers, 0).len(), 1);
        let load = |waiting| move || Load { waiting, ..Load::default() };
        for (now, waiting, expected) in
            [(0, 1, 0), (REPORT_EVERY, 1, 1), (REPORT_EVERY + 1, 2, 0), (2 * REPORT_EVERY, 1, 0)]
        {
            peers.report(now, load(waiting));
            assert_eq!(sent(&mut peers, now).len(), expected, "at {now}");
        }
        assert_eq!(peers.next_timeout(load(2)), Some(REPEAT_AT.min(2 * REPORT_EVERY)));
    }

    /// When the first packet is sent again.
    const REPEAT_AT: Now = 50 * MS;
}
