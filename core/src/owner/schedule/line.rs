//! Tasks of one depth in the order of their turns: by priority, and those of one priority as they came.
//!
//! Nearly all tasks have priority 0, so these stand in a list of their own.

use crate::owner::Task;
use crate::slab::Slot;
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

/// From this capacity on, the memory of an empty list is given back.
const KEPT: usize = 1024;

/// Position at which a task enters its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::owner) enum End {
    /// Before the others.
    Front,
    /// Behind the others.
    Back,
}

/// The place of a task among others.
#[derive(Clone, Copy, Debug)]
pub(in crate::owner) struct Turn {
    pub(in crate::owner) depth: u16,
    pub(in crate::owner) priority: i32,
    /// Its place among those of its depth and priority.
    pub(in crate::owner) end: End,
}

/// Tasks in order.
#[derive(Debug, Default)]
pub(super) struct Line {
    plain: VecDeque<Slot<Task>>,
    /// Tasks of other priorities than 0, by priority and order.
    ranked: BTreeMap<(Reverse<i32>, i64), Slot<Task>>,
    /// Number of tasks that were put into `ranked`: the distance of the next one from those before.
    count: i64,
}

impl Turn {
    pub(in crate::owner) fn of(task: &Task, end: End) -> Self {
        Self { depth: task.depth(), priority: task.priority(), end }
    }
}

impl Line {
    pub(super) fn len(&self) -> usize {
        self.plain.len() + self.ranked.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.plain.is_empty() && self.ranked.is_empty()
    }

    /// Whether tasks have priorities.
    pub(super) fn is_ranked(&self) -> bool {
        !self.ranked.is_empty()
    }

    /// The priorities of the tasks, highest first.
    pub(super) fn priorities(&self) -> impl Iterator<Item = i32> {
        let ranked = || self.ranked.keys().map(|(Reverse(priority), _)| *priority);
        let plain = std::iter::repeat_n(0, self.plain.len());
        ranked()
            .take_while(|priority| 0 < *priority)
            .chain(plain)
            .chain(ranked().filter(|priority| *priority < 0))
    }

    /// The tasks, in order but for those of low priority, which come before those of none.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Slot<Task>> {
        self.ranked.values().chain(&self.plain)
    }

    /// Puts a task behind or before those of its priority.
    pub(super) fn push(&mut self, turn: Turn, slot: Slot<Task>) {
        if turn.priority != 0 {
            self.count += 1;
            let order = if turn.end == End::Back { self.count } else { -self.count };
            self.ranked.insert((Reverse(turn.priority), order), slot);
            return;
        }
        match turn.end {
            End::Front => self.plain.push_front(slot),
            End::Back => self.plain.push_back(slot),
        }
    }

    /// Takes the task whose turn it is.
    pub(super) fn pop(&mut self) -> Option<Slot<Task>> {
        let is_urgent =
            self.ranked.first_key_value().is_some_and(|((Reverse(priority), _), _)| 0 < *priority);
        if !is_urgent && let Some(slot) = self.plain.pop_front() {
            return Some(slot);
        }
        self.ranked.pop_first().map(|(_, slot)| slot)
    }

    /// Takes the task whose turn comes last.
    pub(super) fn pop_last(&mut self) -> Option<Slot<Task>> {
        let is_low = self.ranked.last_key_value().is_some_and(|((Reverse(priority), _), _)| *priority < 0);
        if !is_low && let Some(slot) = self.plain.pop_back() {
            return Some(slot);
        }
        self.ranked.pop_last().map(|(_, slot)| slot)
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(&Slot<Task>) -> bool) {
        self.plain.retain(&mut keep);
        self.ranked.retain(|_, slot| keep(slot));
    }

    /// Returns the memory of a line that was long and is empty now.
    pub(super) fn shrink(&mut self) {
        if self.plain.is_empty() && KEPT < self.plain.capacity() {
            self.plain = VecDeque::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_higher_priority_comes_first_and_one_priority_in_its_order() {
        let mut line = Line::default();
        let entries = [
            (0, End::Back, 10),
            (-1, End::Back, 20),
            (7, End::Back, 2),
            (7, End::Back, 3),
            (9, End::Back, 0),
            (7, End::Front, 1),
            (0, End::Front, 9),
            (-1, End::Front, 19),
        ];
        for (priority, end, slot) in entries {
            line.push(Turn { depth: 0, priority, end }, Slot::from_number(slot));
        }
        assert_eq!((line.len(), line.iter().count()), (8, 8));
        assert_eq!(line.priorities().collect::<Vec<_>>(), [9, 7, 7, 7, 0, 0, -1, -1]);
        line.retain(|slot| slot.number() != 3);
        let last: Vec<_> = std::iter::from_fn(|| line.pop_last()).map(Slot::number).take(3).collect();
        assert_eq!(last, [20, 19, 10]);
        last.iter().rev().for_each(|slot| {
            let priority = if *slot < 15 { 0 } else { -1 };
            line.push(Turn { depth: 0, priority, end: End::Back }, Slot::from_number(*slot));
        });
        let order: Vec<_> = std::iter::from_fn(|| line.pop()).map(Slot::number).collect();
        assert_eq!(order, [0, 1, 2, 9, 10, 19, 20]);
        assert!(line.is_empty());
    }
}
