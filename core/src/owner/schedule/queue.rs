//! A queue of tasks of one shape, the most deeply nested first.
//!
//! Tasks submitted by a task run before the siblings of that task. In the order of arrival, every task of a
//! queue would start, submit its children behind all others and block: there would be as many blocked workers
//! as tasks. The shallowest task gets a turn at intervals, so that a task that submits without end cannot
//! hold up the others.

use super::line::{Line, Turn};
use crate::owner::Task;
use crate::slab::Slot;
use crate::{MS, Now};
use std::collections::BTreeMap;

/// Interval at which the shallowest task gets a turn.
const SHALLOW_EVERY: Now = 100 * MS;

/// A queue by depth.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Tasks that drivers submitted: most tasks.
    base: Line,
    /// Tasks that tasks submitted, by depth; no list is empty.
    nested: BTreeMap<u16, Line>,
    /// When the shallowest task had its last turn.
    shallow_at: Now,
}

impl Queue {
    pub(super) fn len(&self) -> usize {
        self.base.len() + self.nested.values().map(Line::len).sum::<usize>()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.base.is_empty() && self.nested.is_empty()
    }

    /// Whether tasks have priorities.
    pub(super) fn is_ranked(&self) -> bool {
        self.lines().any(Line::is_ranked)
    }

    /// Its tasks by depth.
    pub(super) fn lines(&self) -> impl Iterator<Item = &Line> {
        std::iter::once(&self.base).chain(self.nested.values())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Slot<Task>> {
        self.lines().flat_map(Line::iter)
    }

    /// Puts a task behind or before those of its depth and priority.
    pub(super) fn push(&mut self, turn: Turn, slot: Slot<Task>) {
        let line = match turn.depth {
            0 => &mut self.base,
            depth => self.nested.entry(depth).or_default(),
        };
        line.push(turn, slot);
    }

    /// Takes the task whose turn it is.
    pub(super) fn pop(&mut self, now: Now) -> Option<Slot<Task>> {
        if self.nested.is_empty() {
            self.shallow_at = now;
            return self.base.pop();
        }
        let is_shallow = self.shallow_at + SHALLOW_EVERY <= now;
        if is_shallow {
            self.shallow_at = now;
            if let Some(slot) = self.base.pop() {
                return Some(slot);
            }
        }
        let mut level = if is_shallow { self.nested.first_entry() } else { self.nested.last_entry() }?;
        let slot = level.get_mut().pop();
        assert!(slot.is_some(), "an empty level is kept");
        if level.get().is_empty() {
            level.remove();
        }
        slot
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(&Slot<Task>) -> bool) {
        self.base.retain(&mut keep);
        self.nested.values_mut().for_each(|level| level.retain(&mut keep));
        self.nested.retain(|_, level| !level.is_empty());
    }

    /// Takes all tasks.
    pub(super) fn take(&mut self) -> Vec<Slot<Task>> {
        let all = self.iter().copied().collect();
        *self = Self::default();
        all
    }

    /// Returns the memory of a queue that was long and is empty now.
    pub(super) fn shrink(&mut self) {
        self.base.shrink();
    }

    /// Asserts that every level has tasks, so that the next task is in the first or the last level.
    pub(super) fn check(&self) {
        assert!(!self.nested.contains_key(&0), "tasks of drivers stand beside those of tasks");
        assert!(self.nested.values().all(|level| !level.is_empty()), "an empty level is kept");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::owner::schedule::End;

    #[test]
    fn the_deepest_runs_first_and_the_shallowest_every_so_often() {
        let mut queue = Queue::default();
        let mut push = |depth, end, slot| {
            queue.push(Turn { depth, priority: 0, end }, Slot::from_number(slot));
        };
        (0..3).for_each(|slot| push(0, End::Back, slot));
        (10..14).for_each(|slot| push(1, End::Back, slot));
        push(2, End::Back, 20);
        push(1, End::Front, 9);
        let mut taken: Vec<_> = (0..3).filter_map(|_| queue.pop(1)).collect();
        taken.push(queue.pop(SHALLOW_EVERY).unwrap());
        taken.extend((0..6).filter_map(|_| queue.pop(SHALLOW_EVERY + 1)));
        assert_eq!(taken.into_iter().map(Slot::number).collect::<Vec<_>>(), [20, 9, 10, 0, 11, 12, 13, 1, 2]);
        assert!(queue.is_empty());
    }
}
