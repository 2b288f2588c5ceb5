//! Nodes from which nothing could be read lately.
//!
//! A node that is not reached may have its copies still, and a copy that counts as lost is freed there. So
//! its copies stay what they are, and one transfer finds out after a pause whether it is reached again: the
//! others leave their places to what can be read. It may take long, as large objects do, or as a node does
//! that accepts connections and sends nothing. So others find out beside it, each after twice the time that
//! the one before it waited. One that is dead stops being a holder.
//!
//! Objects take turns to find out. One of them may fail by itself, at once and each time, and the others wait
//! for it.

use super::{Order, Pulls, RunName};
use crate::{MS, Now};
use std::collections::BTreeMap;
use std::ops::Bound;
use tharsis_types::{NodeId, ObjectId};

/// Place of an object among the transfers that may start.
type Place = (Order, ObjectId);

/// Maximum number of transfers that are looked at for the one whose turn it is.
const TURNS_MAX: usize = 64;

/// Pauses between tries, at first and later.
const PAUSE_MIN: Now = 250 * MS;
const PAUSE_MAX: Now = 8_000 * MS;

/// Number of times that the wait for transfers that are under way doubles.
const DOUBLINGS_MAX: u32 = 3;

/// A transfer that broke off, or never began, and says nothing of the copy at its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interrupted {
    /// The object.
    pub object: ObjectId,
    /// The node from which it was to be read.
    pub from: NodeId,
    /// Bytes from the start that arrived and are verified.
    pub done_bytes: u64,
    /// Number of the copy of these bytes at that node, if they are of no use with another one; else 0.
    pub copy: u64,
    /// The reason, in words.
    pub cause: String,
}

/// Nodes that were not reached.
#[derive(Debug, Default)]
pub(super) struct Unreached {
    nodes: BTreeMap<NodeId, Pause>,
}

/// Until when a node is left alone.
#[derive(Clone, Copy, Debug)]
struct Pause {
    until: Now,
    length: Now,
    /// Number of transfers that began after a pause and are under way.
    tries: u32,
    /// The last one of these that began.
    last: Option<Place>,
}

impl Unreached {
    /// When a node may be tried again: at once if it is reached.
    pub(super) fn until(&self, node: NodeId) -> Now {
        self.nodes.get(&node).map_or(0, |pause| pause.until)
    }

    /// A transfer begins. While it finds out whether the node is reached, no other one does for a while.
    pub(super) fn tried(&mut self, node: NodeId, now: Now, place: Place) {
        if let Some(pause) = self.nodes.get_mut(&node) {
            pause.until = now + (PAUSE_MAX << pause.tries.min(DOUBLINGS_MAX));
            (pause.tries, pause.last) = (pause.tries + 1, Some(place));
        }
    }

    /// The transfer that was to find out ended for another reason: the next one does. Whether there was one.
    pub(super) fn left(&mut self, node: NodeId, now: Now) -> bool {
        let Some(pause) = self.nodes.get_mut(&node).filter(|pause| 0 < pause.tries) else { return false };
        (pause.until, pause.tries) = (now, pause.tries - 1);
        true
    }

    /// A transfer has not reached a node. Others that were under way then say nothing new.
    pub(super) fn failed(&mut self, node: NodeId, now: Now) {
        let first = Pause { until: now + PAUSE_MIN, length: PAUSE_MIN, tries: 0, last: None };
        let pause = self.nodes.entry(node).or_insert(first);
        if 0 < pause.tries {
            let length = (pause.length * 2).min(PAUSE_MAX);
            *pause = Pause { until: now + length, length, tries: pause.tries - 1, last: pause.last };
        }
    }

    /// A node is reached, or is gone; whether it was not reached so far.
    pub(super) fn remove(&mut self, node: NodeId) -> bool {
        self.nodes.remove(&node).is_some()
    }
}

impl<R: RunName> Pulls<R> {
    /// The transfer that starts next: the most urgent one, or, if that is to find out whether a node is
    /// reached, the one behind the last that was.
    pub(super) fn next_to_start(&self) -> Option<Place> {
        let first = self.startable.first().copied()?;
        let Some(node) = self.due_holder(first.1) else { return Some(first) };
        let Some(last) = self.unreached.nodes.get(&node).and_then(|pause| pause.last) else {
            return Some(first);
        };
        let mut behind = self.startable.range((Bound::Excluded(last), Bound::Unbounded)).take(TURNS_MAX);
        let next = behind.find(|(_, object)| self.due_holder(*object) == Some(node));
        Some(next.copied().unwrap_or(first))
    }

    /// The holder from which an object can be read now.
    fn due_holder(&self, object: ObjectId) -> Option<NodeId> {
        let (node, until) = self.next_holder(self.pulls.get(&object)?)?;
        (until <= self.journal.now()).then_some(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tharsis_types::{JobId, TaskId};

    const NODE: NodeId = NodeId(1);

    fn place() -> Place {
        ((0, 1), ObjectId::put(TaskId::root(JobId(1)), 0))
    }

    #[test]
    fn pauses_double_with_each_try_and_not_with_what_fails_together() {
        let mut unreached = Unreached::default();
        assert_eq!(unreached.until(NODE), 0);
        let (mut now, mut pauses) = (7, Vec::new());
        for _ in 0..8 {
            for _ in 0..3 {
                unreached.failed(NODE, now);
            }
            pauses.push((unreached.until(NODE) - now) / MS);
            now = unreached.until(NODE);
            unreached.tried(NODE, now, place());
            assert_eq!(unreached.until(NODE), now + PAUSE_MAX, "one tries");
            assert!(unreached.left(NODE, now) && !unreached.left(NODE, now));
            assert_eq!(unreached.until(NODE), now, "the next one tries");
            unreached.tried(NODE, now, place());
        }
        assert_eq!(pauses, [250, 500, 1_000, 2_000, 4_000, 8_000, 8_000, 8_000]);
        assert!(unreached.remove(NODE) && !unreached.remove(NODE));
        unreached.tried(NODE, now, place());
        assert_eq!(unreached.until(NODE), 0, "it is reached");
    }

    /// It accepts connections and sends nothing, which each transfer notices after a minute and a half.
    #[test]
    fn a_node_that_sends_nothing_does_not_get_all_transfers() {
        let (mut unreached, mut ends) = (Unreached::default(), Vec::new());
        unreached.failed(NODE, 0);
        let mut most = 0;
        for now in (0..1_000).map(|second| second * 1_000 * MS) {
            while ends.first().is_some_and(|end| *end <= now) {
                ends.remove(0);
                unreached.failed(NODE, now);
            }
            if unreached.until(NODE) <= now {
                unreached.tried(NODE, now, place());
                ends.push(now + 90_000 * MS);
            }
            most = most.max(ends.len());
        }
        assert!((1..=5).contains(&most), "{most} of eight");
    }
}
