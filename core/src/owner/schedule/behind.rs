//! Nodes that fall behind: tasks stand in line before a node because it has their arguments, and would wait
//! there for longer than these take to another node.
//!
//! Half of such a line, its end, goes to the common queue, which all nodes serve, also the one that is
//! behind. If that was too little, the next look moves half of the rest.

use super::{End, Schedule, Shape, Turn};
use crate::owner::Task;
use crate::owner::tasks::Tasks;
use crate::place::{Choice, View, Wishes};
use crate::slab::Slot;
use crate::{MS, Now};
use tharsis_types::{NodeId, Placement};

/// The time in which a node gets through its line if it is not behind.
const BEHIND_AFTER: Now = 20 * MS;

/// A node that is behind with the tasks of a shape.
#[derive(Debug)]
pub(in crate::owner) struct Behind {
    node: NodeId,
    /// The time that the last task in its line will wait.
    pub(in crate::owner) wait: Now,
}

impl Schedule {
    /// Nodes that are behind with the tasks of a shape while others have room for them.
    pub(in crate::owner) fn behind(&mut self, now: Now, slot: Slot<Shape>, view: &mut View) -> Vec<Behind> {
        let shape = &self.shapes[slot];
        if shape.near.is_empty() {
            return Vec::new();
        }
        let look_at = now + BEHIND_AFTER;
        self.look_at = Some(self.look_at.map_or(look_at, |known| known.min(look_at)));
        if !shape.queue.is_empty() || shape.key.placement != Placement::Default {
            return Vec::new();
        }
        let behind = shape.near.keys().filter_map(|node| {
            let wait = self.wait_near(now, shape, *node)?;
            (BEHIND_AFTER <= wait).then_some(Behind { node: *node, wait })
        });
        let mut behind: Vec<_> = behind.collect();
        behind.retain(|behind| self.has_room_besides(now, slot, behind.node, view));
        behind
    }

    /// The time that the last task in the line of a node will wait; `None` if the node has no worker for it.
    fn wait_near(&self, now: Now, shape: &Shape, node: NodeId) -> Option<Now> {
        let there = shape.leases.iter().map(|id| &self.leases[id]).filter(|used| used.node == node);
        let granted = there.filter(|used| used.is_granted() && !used.recalled);
        let (mut workers, mut longest) = (0, 0);
        for used in granted {
            workers += 1;
            if !used.in_flight.is_empty() {
                longest = longest.max(now.saturating_sub(used.active_at));
            }
        }
        // A task that runs for longer than the others did says more about this node than they do.
        let run_ns = shape.run_ns().max(longest);
        run_ns.saturating_mul(shape.near.get(&node)?.len() as u64).checked_div(workers)
    }

    /// Whether a node besides `node` would start a task of a shape now.
    fn has_room_besides(&self, now: Now, slot: Slot<Shape>, node: NodeId, view: &mut View) -> bool {
        let shape = &self.shapes[slot];
        let mut leases = shape.leases.iter().map(|id| &self.leases[id]);
        if leases.any(|used| used.node != node && used.is_usable() && used.in_flight.is_empty()) {
            return true;
        }
        if !self.has_quota_left(slot) {
            return false;
        }
        let mut left_out = self.refusals.left_out(now, shape.key.job);
        left_out.push(node);
        let key = &shape.key;
        let wishes = Wishes { left_out: &left_out, ..Wishes::default() };
        matches!(view.choose(now, &key.resources, &key.placement, wishes), Choice::Now(_))
    }

    /// Moves the last half of a line to the common queue, as far as it is worth it for its tasks.
    pub(in crate::owner) fn relieve(
        &mut self,
        slot: Slot<Shape>,
        behind: &Behind,
        tasks: &Tasks,
        is_worth_it: impl Fn(&Task) -> bool,
    ) {
        let shape = &mut self.shapes[slot];
        let Some(line) = shape.near.get_mut(&behind.node) else { return };
        for _ in 0..line.len().div_ceil(2) {
            let Some(last) = line.pop_last() else { break };
            let task = &tasks[last];
            if !is_worth_it(task) {
                line.push(Turn::of(task, End::Back), last);
                break;
            }
            // From the last one on, each before those that were moved.
            shape.queue.push(Turn::of(task, End::Front), last);
        }
        if line.is_empty() {
            shape.near.remove(&behind.node);
        }
    }

    /// Marks the shapes that have lines before nodes, to see whether these are behind.
    pub(super) fn look_for_behind(&mut self, now: Now) {
        if self.look_at.take_if(|at| *at <= now).is_some() {
            let (shapes, busy) = (&self.shapes, &self.busy);
            self.dirty.extend(busy.iter().filter(|slot| !shapes[**slot].near.is_empty()));
        }
    }
}
