//! The other nodes: links to the members, and what waits for nodes that are not members yet.
//!
//! | a node is | kept in | until |
//! |---|---|---|
//! | unknown: somebody spoke of it | `unknown`, with the messages for it | it joins, or [`UNKNOWN_WAIT`] is over: then it is dead |
//! | a member | `links` | it leaves |
//!
//! A dead node is in neither: nothing may be sent to it any more, which the caller knows from its ledger.

use crate::event::Action;
use crate::link::Link;
use crate::peer::{Load, Message, Packet};
use crate::{MS, Now};
use std::collections::{BTreeMap, VecDeque};
use tharsis_types::{JobId, NodeId};

/// News of a node that joined may be later than a reference that it owns; what never joined within this time
/// is dead.
const UNKNOWN_WAIT: Now = 2_000 * MS;
/// How often a node that changed tells others how busy it is.
const REPORT_EVERY: Now = 20 * MS;
/// Ended jobs that a node remembers to tell those who join.
const ENDED_JOBS_MAX: usize = 1024;

/// The other nodes, as far as messages are concerned.
#[derive(Debug)]
pub(super) struct Peers {
    links: BTreeMap<NodeId, Link>,
    unknown: BTreeMap<NodeId, UnknownPeer>,
    /// Jobs that ended here, newest last, for nodes that hear of this one only now.
    ended_jobs: VecDeque<JobId>,
    /// What the members were last told of how busy this node is, and when.
    reported: Load,
    reported_at: Now,
}

/// A node that somebody spoke of and that is not a member as far as this one knows.
#[derive(Debug)]
struct UnknownPeer {
    /// When it is given up.
    until: Now,
    messages: Vec<Message>,
}

impl Peers {
    /// No other nodes; `load` is how busy this one is.
    pub(super) fn new(load: Load) -> Self {
        let (links, unknown, ended_jobs) = Default::default();
        Self { links, unknown, ended_jobs, reported: load, reported_at: 0 }
    }

    /// A node has joined: it gets what waited for it, how busy this one is, and which jobs have ended.
    pub(super) fn joined(&mut self, node: NodeId, load: Load) {
        let link = self.links.entry(node).or_default();
        let waiting = self.unknown.remove(&node).map(|peer| peer.messages).unwrap_or_default();
        waiting.into_iter().for_each(|message| link.push(message));
        link.push(Message::LoadReport { free: load.free, waiting: load.waiting });
        self.ended_jobs.iter().for_each(|job| link.push(Message::JobEnded { job: *job }));
    }

    /// A node has left, or was never here.
    pub(super) fn left(&mut self, node: NodeId) {
        self.links.remove(&node);
        self.unknown.remove(&node);
    }

    /// Nodes that somebody spoke of and that did not join in time.
    pub(super) fn give_up_unknown(&mut self, now: Now) -> Vec<NodeId> {
        let late = |(node, peer): (&NodeId, &UnknownPeer)| (peer.until <= now).then_some(*node);
        let dead: Vec<_> = self.unknown.iter().filter_map(late).collect();
        dead.iter().for_each(|node| drop(self.unknown.remove(node)));
        dead
    }

    /// Sends a message to another node; one that is not known yet gets it when it joins.
    pub(super) fn send(&mut self, now: Now, to: NodeId, message: Message) {
        match self.links.get_mut(&to) {
            Some(link) => link.push(message),
            None => {
                let until = now + UNKNOWN_WAIT;
                let peer = self.unknown.entry(to).or_insert(UnknownPeer { until, messages: Vec::new() });
                peer.messages.push(message);
            }
        }
    }

    /// A job has ended here: all members hear it, and those who join later.
    pub(super) fn job_ended(&mut self, job: JobId) {
        if self.ended_jobs.len() == ENDED_JOBS_MAX {
            self.ended_jobs.pop_front();
        }
        self.ended_jobs.push_back(job);
        self.links.values_mut().for_each(|link| link.push(Message::JobEnded { job }));
    }

    /// The messages in a packet that are new; none of a node that is no member.
    pub(super) fn receive(
        &mut self,
        now: Now,
        from: NodeId,
        packet: Packet,
    ) -> impl Iterator<Item = Message> + use<> {
        self.links.get_mut(&from).map(|link| link.receive(now, packet)).into_iter().flatten()
    }

    /// Tells the members how busy this node is, if that changed and the last time was long enough ago.
    pub(super) fn report(&mut self, now: Now, load: Load) {
        if self.links.is_empty() || now < self.reported_at + REPORT_EVERY || load == self.reported {
            return;
        }
        self.reported_at = now;
        for link in self.links.values_mut() {
            link.push(Message::LoadReport { free: load.free.clone(), waiting: load.waiting });
        }
        self.reported = load;
    }

    /// Packs what is to be sent, now or again.
    pub(super) fn transmit(&mut self, now: Now, out: &mut Vec<Action>) {
        for (to, link) in &mut self.links {
            let mut packets = Vec::new();
            link.transmit(now, &mut packets);
            out.extend(packets.into_iter().map(|packet| Action::Send { to: *to, packet }));
        }
    }

    /// When a link has something to send again, a report is due, or an unknown node is given up.
    pub(super) fn next_timeout(&self, load: &Load) -> Option<Now> {
        let links = self.links.values().filter_map(Link::next_timeout).min();
        let is_due = !self.links.is_empty() && *load != self.reported;
        let report = is_due.then(|| self.reported_at + REPORT_EVERY);
        let unknown = self.unknown.values().map(|peer| peer.until).min();
        [links, report, unknown].into_iter().flatten().min()
    }

    /// Messages that no member has acknowledged.
    pub(super) fn unacknowledged(&self) -> usize {
        self.links.values().map(Link::unacknowledged).sum()
    }

    /// What is kept although nothing is under way.
    pub(super) fn leftovers(&self) -> [(&'static str, usize); 2] {
        [("nodes that never joined", self.unknown.len()), ("unacknowledged messages", self.unacknowledged())]
    }

    /// Asserts that a node is a member or unknown, not both.
    pub(super) fn check(&self) {
        let both = self.unknown.keys().find(|node| self.links.contains_key(node));
        assert!(both.is_none(), "{both:?} is a member and unknown");
        assert!(self.ended_jobs.len() <= ENDED_JOBS_MAX, "too many ended jobs");
        for peer in self.unknown.values() {
            assert!(!peer.messages.is_empty(), "nobody spoke of an unknown peer");
        }
    }
}
