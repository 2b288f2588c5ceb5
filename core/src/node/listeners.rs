//! Listeners: the nodes that are told the load of this one.
//!
//! In a small cluster these are all members. In a large one they are the [`LISTENERS_MAX`] nodes that asked
//! last for a lease here, each for [`LISTENS_FOR`]: they have work to place, and nobody else needs the news.
//! So an idle node says nothing, and a busy one says the same to as many nodes whatever the size of the
//! cluster. A listener is told only what it was not told before, and everything once after it asked: it takes
//! what it asks for to be taken, and may have been denied.

use crate::place::Load;
use crate::{MS, Now};
use std::collections::BTreeMap;
use tharsis_types::NodeId;

/// Shortest interval between two reports of a node's load.
const REPORT_EVERY: Now = 20 * MS;
/// Maximum number of listeners in a large cluster.
const LISTENERS_MAX: usize = 8;
/// In a large cluster a node listens for this long after it asked.
const LISTENS_FOR: Now = 2_000 * MS;

/// The nodes that are told the load of this one, and what they know of it.
#[derive(Debug)]
pub(super) struct Listeners {
    nodes: BTreeMap<NodeId, Listener>,
    /// The load that the listeners were told last; each of them was told this, unless `some_untold`.
    reported: Load,
    reported_at: Now,
    /// Some listener was not told anything since it began to listen or asked.
    some_untold: bool,
}

#[derive(Debug)]
struct Listener {
    /// When it asked last, or joined.
    since: Now,
    is_told: bool,
}

impl Listeners {
    /// No listeners yet; `load` is the load of this node when it starts.
    pub(super) fn new(load: Load) -> Self {
        Self { nodes: BTreeMap::new(), reported: load, reported_at: 0, some_untold: false }
    }

    /// A node has work to place. In a large cluster, the listener that asked least recently makes room for
    /// it.
    pub(super) fn add(&mut self, now: Now, node: NodeId, is_small: bool) {
        self.nodes.insert(node, Listener { since: now, is_told: false });
        self.some_untold = true;
        if !is_small {
            self.nodes.retain(|_, listener| now < listener.since + LISTENS_FOR);
            while LISTENERS_MAX < self.nodes.len()
                && let Some(oldest) =
                    self.nodes.iter().min_by_key(|(node, listener)| (listener.since, **node))
            {
                let oldest = *oldest.0;
                self.nodes.remove(&oldest);
            }
        }
    }

    /// A node is gone.
    pub(super) fn remove(&mut self, node: NodeId) {
        self.nodes.remove(&node);
    }

    /// The cluster is large from now on: nobody listens who does not ask.
    pub(super) fn clear(&mut self) {
        self.nodes.clear();
    }

    /// The nodes to tell the load now: those that do not know it, if the last report is old enough.
    pub(super) fn report(&mut self, now: Now, is_small: bool, load: Load) -> Vec<NodeId> {
        if now < self.reported_at + REPORT_EVERY || !self.has_news(&load) {
            return Vec::new();
        }
        if !is_small {
            self.nodes.retain(|_, listener| now < listener.since + LISTENS_FOR);
        }
        let is_other = load != self.reported;
        let mut told = Vec::new();
        for (node, listener) in &mut self.nodes {
            if is_other || !listener.is_told {
                listener.is_told = true;
                told.push(*node);
            }
        }
        (self.reported, self.reported_at, self.some_untold) = (load, now, false);
        told
    }

    /// When there is something to report.
    pub(super) fn next_timeout(&self, load: &Load) -> Option<Now> {
        self.has_news(load).then_some(self.reported_at + REPORT_EVERY)
    }

    fn has_news(&self, load: &Load) -> bool {
        !self.nodes.is_empty() && (self.some_untold || *load != self.reported)
    }

    /// Asserts that the listeners are members, and are few in a large cluster.
    pub(super) fn check(&self, is_member: impl Fn(NodeId) -> bool) {
        assert!(self.nodes.keys().all(|node| is_member(*node)), "somebody listens who is not a member");
        let untold = self.nodes.values().any(|listener| !listener.is_told);
        assert!(self.some_untold || !untold, "a listener is not told the load");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: NodeId = NodeId(2);

    fn load(waiting: u32) -> Load {
        Load { waiting, ..Load::default() }
    }

    #[test]
    fn a_load_is_reported_when_it_changed_and_some_time_after_the_last() {
        let mut listeners = Listeners::new(load(0));
        listeners.add(0, PEER, true);
        let start = REPORT_EVERY;
        assert_eq!(listeners.report(start, true, load(0)), [PEER], "it was never told");
        for (now, waiting, expected) in [(0, 1, 0), (1, 1, 1), (1, 2, 0), (2, 1, 0)] {
            let told = listeners.report(start + now * REPORT_EVERY, true, load(waiting));
            assert_eq!(told.len(), expected, "at {now}");
        }
        assert_eq!(listeners.next_timeout(&load(2)), Some(start + 2 * REPORT_EVERY));
        assert_eq!(listeners.next_timeout(&load(1)), None);
    }

    #[test]
    fn whoever_asked_is_told_even_if_nothing_changed_for_others() {
        let mut listeners = Listeners::new(load(0));
        listeners.add(0, PEER, false);
        listeners.add(0, NodeId(3), false);
        assert_eq!(listeners.report(REPORT_EVERY, false, load(0)).len(), 2);
        listeners.add(REPORT_EVERY, PEER, false);
        assert_eq!(listeners.report(2 * REPORT_EVERY, false, load(0)), [PEER]);
    }

    #[test]
    fn in_a_large_cluster_few_listen_and_not_for_ever() {
        let mut listeners = Listeners::new(load(0));
        (1..=1_000).for_each(|n| listeners.add(n, NodeId(n), false));
        let told = listeners.report(REPORT_EVERY, false, load(1));
        let last: Vec<_> = (1_001 - LISTENERS_MAX as u64..=1_000).map(NodeId).collect();
        assert_eq!(told, last);
        assert_eq!(listeners.report(LISTENS_FOR * 2, false, load(2)), []);
        assert_eq!(listeners.next_timeout(&load(3)), None);
    }
}
