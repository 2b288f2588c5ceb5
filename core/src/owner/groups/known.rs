//! The placement groups in which tasks of this ledger run, on whichever node these are made.

use crate::owner::Object;
use crate::slab::Slot;
use crate::{MS, Now};
use std::collections::BTreeSet;
use std::sync::Arc;
use tharsis_types::hash::IdMap;
use tharsis_types::{BundleNodes, Failure, NodeId, TaskId};

/// The time after which the owner of a group is asked again where its bundles are.
const LOOK_AGAIN_AFTER: Now = 10 * MS;
/// As [`LOOK_AGAIN_AFTER`], while the owner places bundles again.
const REPAIR_LOOK_AFTER: Now = 50 * MS;

/// Groups by the task that made them.
#[derive(Debug, Default)]
pub(in crate::owner) struct KnownGroups {
    by_id: IdMap<TaskId, Known>,
    by_object: IdMap<Slot<Object>, TaskId>,
    /// Groups for which something is due, by the first time.
    timed: BTreeSet<(Now, TaskId)>,
    now: Now,
}

#[derive(Debug)]
struct Known {
    object: Slot<Object>,
    nodes: Nodes,
    /// When its owner is asked again.
    look_at: Option<Now>,
    /// A node was asked in vain: until then nothing is asked of any.
    doubt_until: Option<Now>,
}

impl Known {
    fn next_timeout(&self) -> Option<Now> {
        self.look_at.into_iter().chain(self.doubt_until).min()
    }
}

/// The places of the bundles of a group, as far as this node knows.
#[derive(Clone, Debug)]
pub(in crate::owner) enum Nodes {
    /// Nothing was said yet, or the last word was wrong.
    Unknown,
    /// The nodes.
    At(BundleNodes),
    /// There is no group any more.
    Gone(Arc<Failure>),
}

impl KnownGroups {
    pub(super) fn tell_time(&mut self, now: Now) {
        self.now = now;
    }

    /// A task inside a group is entered. Returns whether it is the first one.
    pub(in crate::owner) fn enter(&mut self, group: TaskId, object: Slot<Object>) -> bool {
        if self.by_object.contains_key(&object) {
            return false;
        }
        let known = Known { object, nodes: Nodes::Unknown, look_at: None, doubt_until: None };
        let before = self.by_id.insert(group, known);
        assert!(before.is_none(), "group {group} is two objects");
        self.by_object.insert(object, group);
        true
    }

    /// Whether tasks of this ledger use a group.
    pub(in crate::owner) fn has(&self, object: Slot<Object>) -> bool {
        self.by_object.contains_key(&object)
    }

    /// The object of a group is gone.
    pub(in crate::owner) fn freed(&mut self, object: Slot<Object>) {
        if let Some(group) = self.by_object.remove(&object) {
            let known = self.by_id.remove(&group);
            if let Some(at) = known.and_then(|known| known.next_timeout()) {
                self.timed.remove(&(at, group));
            }
        }
    }

    /// The owner of a group has told where its bundles are. If some are nowhere and the owner is another
    /// node, it is asked again. Returns the group.
    pub(in crate::owner) fn told(
        &mut self,
        object: Slot<Object>,
        nodes: Nodes,
        is_abroad: bool,
    ) -> Option<TaskId> {
        let (now, group) = (self.now, *self.by_object.get(&object)?);
        self.change(group, |known| {
            let is_partial = matches!(&nodes, Nodes::At(at) if at.0.contains(&None));
            known.look_at = (is_partial && is_abroad).then_some(now + REPAIR_LOOK_AFTER);
            known.nodes = nodes;
        });
        Some(group)
    }

    /// Changes a group, and when something is due for it.
    fn change(&mut self, group: TaskId, change: impl FnOnce(&mut Known)) {
        let Some(known) = self.by_id.get_mut(&group) else { return };
        let before = known.next_timeout();
        change(known);
        let timeout = known.next_timeout();
        if before != timeout {
            if let Some(at) = before {
                self.timed.remove(&(at, group));
            }
            self.timed.extend(timeout.map(|at| (at, group)));
        }
    }

    /// A node did not have a bundle that it was said to have.
    pub(in crate::owner) fn was_denied(&mut self, group: TaskId) {
        let until = self.now + LOOK_AGAIN_AFTER;
        self.change(group, |known| {
            known.look_at = known.look_at.or(Some(until));
            known.doubt_until = Some(until);
        });
    }

    /// A node is gone: its bundles are placed anew.
    pub(in crate::owner) fn node_gone(&mut self, node: NodeId) {
        let is_there = |known: &Known| matches!(&known.nodes, Nodes::At(at) if at.0.contains(&Some(node)));
        let there = self.by_id.iter().filter(|(_, known)| is_there(known)).map(|(group, _)| *group);
        let (there, at) = (there.collect::<Vec<_>>(), self.now + LOOK_AGAIN_AFTER);
        for group in there {
            self.change(group, |known| known.look_at = known.look_at.or(Some(at)));
        }
    }

    /// The places of the bundles of a group.
    pub(in crate::owner) fn nodes(&self, group: TaskId) -> Nodes {
        self.by_id.get(&group).map_or(Nodes::Unknown, |known| known.nodes.clone())
    }

    /// Whether a node of a group was asked in vain a moment ago.
    pub(in crate::owner) fn is_in_doubt(&self, group: TaskId) -> bool {
        self.by_id.get(&group).is_some_and(|known| known.doubt_until.is_some_and(|until| self.now < until))
    }

    pub(super) fn next_timeout(&self) -> Option<Now> {
        self.timed.first().map(|(at, _)| *at)
    }

    /// The objects of groups whose owners are to be asked now, and the groups about which a doubt is over.
    pub(in crate::owner) fn take_due(&mut self, now: Now) -> (Vec<Slot<Object>>, Vec<TaskId>) {
        let (mut due, mut sure) = (Vec::new(), Vec::new());
        while let Some((_, group)) = self.timed.first().copied().filter(|(at, _)| *at <= now) {
            self.change(group, |known| {
                sure.extend(known.doubt_until.take_if(|until| *until <= now).map(|_| group));
                if known.look_at.take_if(|at| *at <= now).is_some() {
                    due.push(known.object);
                }
            });
        }
        due.sort_unstable();
        (due, sure)
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn check(&self) {
        assert_eq!(self.by_id.len(), self.by_object.len(), "a group of tasks is found once");
        for (object, group) in &self.by_object {
            assert_eq!(self.by_id.get(group).map(|known| known.object), Some(*object), "{group} is misfiled");
        }
        for (group, known) in &self.by_id {
            let timeout = known.next_timeout();
            assert!(timeout.is_none_or(|at| self.timed.contains(&(at, *group))), "{group} is forgotten");
        }
        let timed = self.by_id.values().filter(|known| known.next_timeout().is_some()).count();
        assert_eq!(timed, self.timed.len(), "what is due for a group that is gone");
    }
}
