//! Placement groups: who makes them, what runs inside, where their bundles lie, and what is left to others.
//!
//! In some clusters, calls of some kinds make groups, or run inside of one. A group is a reference like
//! others, but nobody reads it, and nothing keeps it for long: whoever holds what others wait for must not
//! wait for them. So handles are dropped after a while, and stand in no values. Tasks inside wait for nothing
//! but their group, which they keep.

use crate::Sabotage;
use crate::client::{Phase, RunRecord};
use crate::cluster::{Cluster, SimEvent};
use crate::oracle::Oracle;
use crate::program::{self, GROUP, GROUP_KINDS, INSIDE};
use std::collections::{BTreeMap, BTreeSet};
use tharsis_core::{Event, MS, Now};
use tharsis_types::{ClientId, Dependency, NodeId, ObjectId, RefId, Strategy, TaskId};

/// Handles of groups are dropped within this time.
const HELD_FOR: Now = 300 * MS;
/// Numbers of classes of tasks inside of groups start here, above those of kinds.
const INSIDE_CLASSES: u32 = 1_000;

/// The rule that bundles keep.
const AS_ASKED: &str = "bundles lie as the strategy of their group asks";
/// The rule that tasks inside keep.
const IN_BUNDLES: &str = "tasks inside of a group run where its bundles are";
/// The rule that all others keep.
const SET_ASIDE: &str = "what a group has reserved is left to what runs inside";

impl Cluster {
    /// The kind that a call of `kind` has in a cluster with groups, and the group in which it runs.
    pub(crate) fn kind_with_groups(
        &self,
        host: usize,
        id: ClientId,
        kind: u32,
        choice: u64,
    ) -> (u32, Option<RefId>) {
        let client = self.hosts[host].clients.get(&id).filter(|_| self.has_groups);
        let Some(client) = client else { return (kind, None) };
        let held = client.context.locals.iter().filter_map(|token| client.refs.get(token));
        let groups: Vec<_> =
            held.map(|held| held.reference).filter(|r| self.oracle.is_group(r.object)).collect();
        match kind {
            7 => (GROUP + (choice % u64::from(GROUP_KINDS)) as u32, None),
            8..=10 if !groups.is_empty() => (INSIDE, Some(groups[(choice % groups.len() as u64) as usize])),
            _ => (kind, None),
        }
    }

    /// Names the class of tasks inside of a group, if the client has not, and returns its number.
    pub(crate) fn name_inside(
        &mut self,
        host: usize,
        id: ClientId,
        group: TaskId,
        choice: u64,
    ) -> Option<u32> {
        let bundle = [None, Some(0), Some(1)][(choice % 3) as usize];
        let client = self.hosts[host].clients.get_mut(&id)?;
        let (job, known) = (client.job, client.inside.len() as u32);
        let number = *client.inside.entry((group, bundle)).or_insert(INSIDE_CLASSES + known);
        if number == INSIDE_CLASSES + known {
            let definition = Ok(program::inside(job, group, bundle));
            self.send(host, id, Event::ClassDefined { client: id, class: number, definition });
        }
        Some(number)
    }

    /// A client has asked for a group: it drops its handle after a while.
    pub(crate) fn group_made(&mut self, host: usize, id: ClientId, token: u64, reference: RefId, kind: u32) {
        self.summary.group_count += 1;
        self.groups.made.insert(reference, kind);
        self.drop_group_later(host, id, token);
    }

    /// A client has a handle of a group, for a while.
    pub(crate) fn drop_group_later(&mut self, host: usize, client: ClientId, token: u64) {
        let when = self.now + self.rng.range(0, HELD_FOR);
        self.at(when, SimEvent::Drop { host, client, token });
    }

    /// References of which none is a group.
    pub(crate) fn without_groups(&self, mut references: Vec<RefId>) -> Vec<RefId> {
        references.retain(|reference| !self.oracle.is_group(reference.object));
        references
    }

    /// A run starts: if it is inside of a group, then where that has a bundle.
    pub(crate) fn check_inside(&mut self, host: usize, record: &RunRecord) {
        let mut arguments = record.arguments.iter();
        let group = arguments.find(|(parameter, ..)| *parameter == Dependency::GROUP).map(|(_, r, _)| *r);
        if group.is_some() != (record.kind == INSIDE) {
            return self.fail(IN_BUNDLES, format!("{} runs inside of {group:?}", record.task));
        }
        let Some(group) = group else { return };
        self.summary.inside_count += 1;
        self.look_at_bundles(group);
        let lives = self.hosts.iter().any(|at| at.alive && at.id == group.owner);
        let node = self.hosts[host].id;
        let is_there = self.groups.nodes.get(&group.object.task).is_some_and(|nodes| nodes.contains(&node));
        if lives && !is_there {
            self.fail(IN_BUNDLES, format!("{} of {} runs on node {node}", record.task, group.object));
        }
    }

    /// Bundles lie where they may, and leave to others what is not reserved.
    pub(crate) fn check_groups(&mut self) {
        let made: Vec<_> = self.groups.made.iter().map(|(reference, kind)| (*reference, *kind)).collect();
        let mut reserved: BTreeMap<NodeId, u64> = BTreeMap::new();
        for (group, kind) in made {
            let spec = program::group_spec(kind);
            let nodes = self.look_at_bundles(group);
            for (node, bundle) in nodes.iter().zip(&spec.bundles).filter(|(node, _)| **node != NodeId(0)) {
                *reserved.entry(*node).or_default() += bundle.cpu;
            }
            let placed: Vec<_> = nodes.iter().filter(|node| **node != NodeId(0)).collect();
            let different: BTreeSet<_> = placed.iter().collect();
            let is_right = match spec.strategy {
                Strategy::StrictPack => different.len() <= 1,
                Strategy::StrictSpread => different.len() == placed.len(),
                Strategy::Pack | Strategy::Spread => true,
            };
            if !is_right {
                let text = format!("{} is on {placed:?}, asked for: {}", group.object, spec.strategy);
                return self.fail(AS_ASKED, text);
            }
        }
        self.check_set_aside(&reserved);
    }

    fn check_set_aside(&mut self, reserved: &BTreeMap<NodeId, u64>) {
        for host in self.hosts.iter().filter(|host| host.alive && !host.node.is_draining()) {
            let computes =
                host.clients.values().filter(|c| matches!(c.phase, Phase::Working | Phase::Region));
            let running = computes.filter_map(|client| client.current.as_ref());
            let outside: u64 = running.filter(|run| run.record.kind != INSIDE).map(|run| run.cpu).sum();
            let reserved = reserved.get(&host.id).copied().unwrap_or(0);
            let total = host.member.resources.cpu;
            if total < outside + reserved {
                let text = format!(
                    "node {} has {total} CPU units, {reserved} reserved, tasks outside use {outside}",
                    host.id
                );
                return self.fail(SET_ASIDE, text);
            }
        }
    }

    /// The nodes of the bundles of a group, as its owner tells them: 0 for those that have none.
    fn look_at_bundles(&mut self, group: RefId) -> Vec<NodeId> {
        let owner = self.hosts.iter().find(|at| at.alive && at.id == group.owner);
        // The call may have been made again on another node: what this one knows of that group is not its
        // own.
        let groups = owner.map(|owner| owner.node.list_groups()).unwrap_or_default();
        let listed = groups.iter().find(|listed| listed.id == group.object.task);
        let listed = listed.into_iter().flat_map(|listed| &listed.nodes);
        let mut nodes: Vec<_> = listed.map(|node| node.unwrap_or(NodeId(0))).collect();
        if self.sabotage == Sabotage::MoveInside {
            // As if its bundles were on the next node.
            let moved = |node: &NodeId| {
                let at = self.hosts.iter().position(|host| host.id == *node);
                at.map_or(*node, |at| self.hosts[(at + 1) % self.hosts.len()].id)
            };
            nodes = nodes.iter().map(moved).collect();
        }
        let known = self.groups.nodes.entry(group.object.task).or_default();
        known.extend(nodes.iter().filter(|node| **node != NodeId(0)));
        nodes
    }
}

impl Oracle {
    /// Whether an object is a placement group.
    pub(crate) fn is_group(&self, object: ObjectId) -> bool {
        !object.is_put()
            && self.tasks.get(&object.task).is_some_and(|facts| (GROUP..INSIDE).contains(&facts.kind))
    }

    /// Whether the cluster may be unable to hold a group: there were never enough nodes, or some have left.
    pub(crate) fn may_be_impossible(&self, group: TaskId) -> bool {
        let kind = self.tasks.get(&group).map_or(0, |facts| facts.kind);
        let is_group = (GROUP..INSIDE).contains(&kind);
        let needed = match program::group_spec(kind.clamp(GROUP, INSIDE - 1)).strategy {
            Strategy::StrictSpread => 2,
            Strategy::Pack | Strategy::Spread | Strategy::StrictPack => 1,
        };
        is_group && (self.nodes_at_start < needed || 0 < self.node_deaths() || 0 < self.drains)
    }

    /// Whether the group in which a task runs may be gone: somebody removed it, its owner or its job is gone,
    /// or only values that may have to be made again referred to it.
    pub(crate) fn may_be_removed(&self, task: TaskId) -> bool {
        let group = ObjectId::output(task, 0);
        let group =
            self.inside.get(&task).map(|group| group.object).or(self.is_group(group).then_some(group));
        let Some(group) = group else { return false };
        let is_cancelled = self.is_cancelled(group.task);
        let is_kept = self.tasks.get(&task).is_some_and(|facts| facts.stores && !facts.started.is_empty());
        let has_ended = self.ended_jobs.contains(&group.task.job());
        is_cancelled || is_kept || has_ended || self.died_near(group)
    }

    /// Whether nobody reads an object: it is the place of something, and no value.
    pub(crate) fn is_place(&self, object: ObjectId) -> bool {
        self.is_actor(object) || self.is_group(object)
    }
}
