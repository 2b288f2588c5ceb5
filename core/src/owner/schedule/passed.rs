//! Tasks that a node gave back because it does not reach an argument: it is passed over for them while
//! another one would start them.
//!
//! The node that has most of the arguments comes first, since it reaches its own copies. If no other node has
//! room, the tasks go to the end of the common queue, which all nodes serve, that one too: the way from there
//! may be back. If it is not, they come back after as many tries, and the others are asked again.

use super::requests::REQUESTS_MAX;
use super::{LeaseUse, Passed, Schedule, Shape, Turn};
use crate::Now;
use crate::owner::tasks::Tasks;
use crate::owner::{Effect, Task};
use crate::place::{Choice, View, Wishes};
use crate::slab::Slot;

impl Schedule {
    /// Puts a queued task into the queue of all nodes but one.
    pub(in crate::owner) fn push_passed(
        &mut self,
        shape: Slot<Shape>,
        passed: Passed,
        turn: Turn,
        slot: Slot<Task>,
    ) {
        self.dirty.insert(shape);
        self.shapes[shape].push_besides(Some(passed), turn, slot);
    }

    /// Asks other nodes for leases for the tasks of a shape for which one is passed over. If none would start
    /// them, they go to the common queue.
    pub(super) fn pass_on(
        &mut self,
        now: Now,
        slot: Slot<Shape>,
        tasks: &Tasks,
        view: &mut View,
        out: &mut Vec<Effect>,
    ) {
        let shape = &self.shapes[slot];
        if shape.passed.is_empty() {
            return;
        }
        let passed: Vec<_> = shape.passed.iter().map(|(passed, line)| (*passed, line.len())).collect();
        for (passed, count) in passed {
            if !self.request_besides(now, slot, passed, count, view, out) {
                self.shapes[slot].forget_passed(passed, tasks);
            }
        }
    }

    /// Asks for leases on others than the node that is passed over. False if there is none for the tasks, and
    /// none to be had soon: the node that is passed over may reach the arguments before.
    fn request_besides(
        &mut self,
        now: Now,
        slot: Slot<Shape>,
        passed: Passed,
        count: usize,
        view: &mut View,
        out: &mut Vec<Effect>,
    ) -> bool {
        if self.shape_beyond_quota(slot).is_some() {
            return false;
        }
        let me = self.me;
        let serves = |used: &LeaseUse| {
            let is_idle = used.in_flight.is_empty() && !used.recalled && !used.paused;
            let is_late = used.waits() && (used.node != me || used.is_old(now));
            used.node != passed.node && is_idle && !is_late
        };
        let shape = &self.shapes[slot];
        let mut have = shape.leases.iter().filter(|id| serves(&self.leases[*id])).count();
        let mut left_out = self.refusals.left_out(now, shape.key.job);
        left_out.push(passed.node);
        left_out.extend(self.requested(slot).filter(|used| used.waits()).map(|used| used.node));
        while have < count.min(REQUESTS_MAX) && self.has_quota_left(slot) && !self.is_crowded(now, slot) {
            let key = &self.shapes[slot].key;
            let wishes = Wishes { near: passed.near, left_out: &left_out, ..Wishes::default() };
            let Choice::Now(node) = view.choose(now, &key.resources, &key.placement, wishes) else { break };
            // This node would deny at once what cannot be served yet, and be asked again at once.
            self.request(slot, node, node == me, now, view, out);
            have += 1;
        }
        0 < have
    }
}
