//! Placement groups and the tasks inside: made, placed, lost, placed again, removed.
//!
//! [`super::groups`] owns the bundles and what is known of groups; this file carries a change of one on to
//! objects, tasks and leases.

use super::groups::{Gone, Grant, GroupStage, Nodes};
use super::{Effect, Object, Owner, Pending, Task};
use crate::Now;
use crate::event::Value;
use crate::slab::Slot;
use std::sync::Arc;
use tharsis_types::{
    BundleNodes, Dependency, Failure, FailureKind, GroupSpec, LeaseId, NodeId, ObjectId, Placement, TaskId,
};

/// Groups of this node's ledger.
impl Owner {
    /// A call asks for a placement group: it is planned in the next round.
    pub(super) fn enter_group(&mut self, slot: Slot<Task>, spec: &GroupSpec) {
        self.tasks.set_group(slot);
        let (task, is_detached) = (&self.tasks[slot], self.class_of(slot).detached);
        let id = task.id();
        if let Some(output) = task.output_slots().flatten().next() {
            self.groups.enter(output, (slot, id), spec, is_detached);
            if is_detached {
                self.references.add_use(output);
            }
        }
    }

    /// Plans groups whose bundles have no nodes.
    pub(super) fn plan_groups(&mut self, view: &mut crate::place::View, out: &mut Vec<Effect>) {
        while let Some(group) = self.groups.next_dirty() {
            let Some((job, spec)) = self.groups.demand(group) else { continue };
            if let Some(failure) = self.schedule.beyond_quota(job, &spec.total()) {
                self.end_group(group, &failure, out);
                continue;
            }
            let terms = self.schedule.quota(job).cloned();
            let quota = terms.as_ref().map(|terms| &terms.quota);
            let schedule = &mut self.schedule;
            self.groups.plan(group, view, quota, || schedule.name_lease(), out);
        }
    }

    /// Tells where the bundles of a group are.
    pub(super) fn publish_group(&mut self, group: Slot<Object>, out: &mut Vec<Effect>) {
        let Some(task) = self.groups.task(group) else { return };
        let value = Value::Inline(self.groups.nodes(group).to_bytes());
        if self.references[group].value().is_some() {
            self.references.await_again(group, task);
        }
        self.fill(group, value, None, Vec::new(), out);
    }

    /// Ends a group with a failure: its bundles are given back, and its tasks fail.
    pub(super) fn end_group(&mut self, group: Slot<Object>, failure: &Failure, out: &mut Vec<Effect>) {
        let Some(Gone { task, was_detached }) = self.groups.ends(group, out) else { return };
        if self.references[group].value().is_some() {
            self.references.await_again(group, task);
        }
        let failure = self.located_failure(task, failure, self.me);
        self.fail(task, &failure, out);
        if was_detached {
            self.unuse(group, out);
        }
    }

    /// Nothing refers to an object any more: if it was a group, it is removed.
    pub(super) fn group_freed(&mut self, object: Slot<Object>, out: &mut Vec<Effect>) {
        if self.groups.is_empty() {
            return;
        }
        self.groups.known.freed(object);
        if let Some(Gone { task, was_detached }) = self.groups.ends(object, out) {
            assert!(!was_detached, "a group that needs no handles was freed");
            let (_, inputs) = self.tasks.end(task);
            assert!(inputs.is_none(), "a call that made a placement group refers to something");
        }
    }

    /// Only lineage refers to an object: if it is a group, it is removed, and what would have to be computed
    /// inside fails.
    pub(super) fn group_unneeded(&mut self, object: Slot<Object>, out: &mut Vec<Effect>) {
        if self.groups.task(object).is_some() {
            self.group_freed(object, out);
            self.references.set_unneeded(object, Value::Failed(Arc::new(removed())));
        }
    }

    /// The nodes of the bundles of a group of this ledger.
    #[must_use]
    pub fn bundle_nodes(&self, group: ObjectId) -> Option<BundleNodes> {
        let object = self.references.find(&group).filter(|object| self.groups.task(*object).is_some())?;
        Some(self.groups.nodes(object))
    }

    /// The members of the cluster have changed.
    pub fn members_changed(&mut self) {
        self.groups.members_changed();
    }

    /// Groups with bundles that have no nodes, and the reasons.
    pub(super) fn pending_groups(&self) -> impl Iterator<Item = Pending> {
        self.groups.iter().filter(|group| group.stage != GroupStage::Placed).map(|group| Pending {
            name: self.name_of(group.task).to_owned(),
            resources: group.spec.total(),
            count: group.nodes.iter().filter(|node| node.is_none()).count(),
            reason: group.reason,
            task: Some(self.tasks[group.task].id()),
        })
    }
}

/// Leases that hold bundles.
impl Owner {
    /// A node holds a bundle. False if the lease is none of a bundle.
    pub(super) fn bundle_granted(&mut self, lease: LeaseId, out: &mut Vec<Effect>) -> bool {
        match self.groups.granted(lease) {
            Grant::Stale => return false,
            Grant::Waits => {}
            Grant::Whole(group) => self.publish_group(group, out),
        }
        true
    }

    /// A node drains, and wants a bundle back.
    pub(super) fn bundle_recalled(&mut self, lease: LeaseId, out: &mut Vec<Effect>) {
        if let Some(group) = self.groups.recalled(lease, out) {
            self.publish_group(group, out);
        }
    }

    /// A bundle is gone. False if the lease was none of a bundle.
    pub(super) fn bundle_lost(&mut self, lease: LeaseId, out: &mut Vec<Effect>) -> bool {
        match self.groups.lost(lease, out) {
            Err(_) => return false,
            Ok(None) => {}
            Ok(Some(group)) => self.publish_group(group, out),
        }
        true
    }

    /// A node is gone, and its bundles with it.
    pub(super) fn bundles_of_gone(&mut self, node: NodeId, out: &mut Vec<Effect>) {
        for group in self.groups.node_gone(node, out) {
            self.publish_group(group, out);
        }
        self.groups.known.node_gone(node);
    }

    /// Goes on with groups whose time has come.
    pub(super) fn expire_groups(&mut self, now: Now, out: &mut Vec<Effect>) {
        for (group, reason) in self.groups.expire(now, out) {
            let text = format!("the placement group cannot be placed: {reason}");
            self.end_group(group, &Failure::new(FailureKind::Infeasible, text), out);
        }
        let (due, sure) = self.groups.known.take_due(now);
        sure.into_iter().for_each(|group| self.schedule.dirty_inside(group));
        for group in due {
            // The failure of tasks of another one may have freed it.
            if self.groups.known.has(group) {
                self.look_for_group(group, out);
            }
        }
    }
}

/// Tasks inside groups.
impl Owner {
    /// Notes the group of a task whose arguments are known. Returns the failure if the task names none.
    pub(super) fn enter_known(&mut self, slot: Slot<Task>, group: TaskId) -> Result<(), Failure> {
        let first = self.tasks[slot].dependencies().first().copied();
        let is_its = |(dependency, object): &(Dependency, Slot<Object>)| {
            dependency.parameter == Dependency::GROUP
                && self.references[*object].id() == ObjectId::output(group, 0)
        };
        let Some((_, object)) = first.filter(is_its) else {
            let text = "a task was placed in a group that it does not refer to";
            return Err(Failure::new(FailureKind::InvalidArgument, text));
        };
        if self.groups.known.enter(group, object) {
            self.group_told(object);
        }
        Ok(())
    }

    /// An object has its value: if it is a group of tasks here, they are placed there, or fail.
    pub(super) fn group_told(&mut self, object: Slot<Object>) {
        if !self.groups.known.has(object) {
            return;
        }
        let entry = &self.references[object];
        let no_group = || Nodes::Gone(Arc::new(no_group()));
        let nodes = match entry.value() {
            None => return,
            Some(Value::Failed(failure)) => Nodes::Gone(failure.clone()),
            Some(Value::Inline(bytes)) => BundleNodes::from_bytes(bytes).map_or_else(no_group, Nodes::At),
            Some(Value::Stored { .. }) => no_group(),
        };
        let is_abroad = entry.owner().is_some();
        if let Some(group) = self.groups.known.told(object, nodes, is_abroad) {
            self.schedule.dirty_inside(group);
        }
    }

    /// Asks the owner of a group where its bundles are, because what it said before does not hold.
    fn look_for_group(&mut self, group: Slot<Object>, out: &mut Vec<Effect>) {
        let object = &self.references[group];
        let Some(owner) = object.owner() else { return self.group_told(group) };
        match object.value() {
            Some(Value::Failed(_)) => self.group_told(group),
            _ if self.is_gone(owner) => {
                let text = format!("node {owner}, which owned the placement group, is gone");
                self.lose(group, removed().because(Failure::new(FailureKind::NodeDied, text)), out);
            }
            _ => {
                self.references.forget_value(group);
                self.references.ask_owner(group, out);
            }
        }
    }

    /// A request for a lease was denied: if it was for a bundle, the bundle may not be there any more.
    pub(super) fn denied_inside(&mut self, lease: LeaseId) {
        if let Some(group) = self.schedule.group_of(lease) {
            self.groups.known.was_denied(group);
        }
    }

    /// The failure of a task whose run has failed: one that ended with its bundle says why there is no group
    /// any more, as far as that is known here.
    pub(super) fn failure_of_evicted(&self, slot: Slot<Task>, failure: Arc<Failure>) -> Arc<Failure> {
        let cause =
            if failure.kind == FailureKind::GroupRemoved { self.failure_of_group(slot) } else { None };
        match cause {
            Some(cause) if cause.kind != FailureKind::GroupRemoved => {
                Arc::new((*failure).clone().because((*cause).clone()))
            }
            _ => failure,
        }
    }

    /// The failure of a task's group, if there is no group any more.
    pub(super) fn failure_of_group(&self, slot: Slot<Task>) -> Option<Arc<Failure>> {
        let Placement::Group { group, .. } = self.class_of(slot).placement else { return None };
        match self.groups.known.nodes(group) {
            Nodes::Gone(failure) => Some(failure),
            Nodes::At(_) | Nodes::Unknown => None,
        }
    }
}

/// The failure of all that was to happen inside a group that was removed.
pub(super) fn removed() -> Failure {
    Failure::new(FailureKind::GroupRemoved, "the placement group was removed")
}

fn no_group() -> Failure {
    Failure::new(FailureKind::InvalidArgument, "the reference is no placement group")
}
