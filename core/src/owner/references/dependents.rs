//! The tasks that wait for a value.

use crate::owner::Task;
use crate::slab::Slot;
use smallvec::SmallVec;
use tharsis_types::hash::IdMap;

/// A list is walked to remove a task from it up to this length. From then on, it is found by an index.
const WALKED_MAX: usize = 32;

/// Tasks that wait for a value, once for each argument, in the order in which they came.
///
/// Nearly always the value comes, and all are taken. Then this is a plain list. When many are removed one by
/// one, because their job ends or they are cancelled, the places are looked up in an index, which is made by
/// the first removal.
#[derive(Debug, Default)]
pub(super) struct Dependents {
    /// `None` where a task was removed.
    places: Vec<Option<Slot<Task>>>,
    index: Option<Box<Index>>,
    /// Places looked at by removals, for a test.
    #[cfg(test)]
    steps: usize,
}

#[derive(Debug, Default)]
struct Index {
    /// The places of each task.
    of: IdMap<Slot<Task>, SmallVec<[u32; 2]>>,
    /// Number of places without a task.
    removed: usize,
}

impl Index {
    fn add(&mut self, task: Slot<Task>, place: usize) {
        self.of.entry(task).or_default().push(place as u32);
    }
}

impl Dependents {
    /// Adds a task as the last.
    pub(super) fn push(&mut self, task: Slot<Task>) {
        if let Some(index) = &mut self.index {
            index.add(task, self.places.len());
        }
        self.places.push(Some(task));
    }

    /// Removes all entries of a task.
    pub(super) fn remove(&mut self, task: Slot<Task>) {
        if self.places.len() <= WALKED_MAX {
            return self.retain(|other| other != task);
        }
        let mut index = self.index.take().unwrap_or_else(|| self.make_index());
        for place in index.of.remove(&task).unwrap_or_default() {
            self.places[place as usize] = None;
            index.removed += 1;
            self.count_steps(1);
        }
        if self.places.len() < 2 * index.removed {
            self.retain(|_| true);
        } else {
            self.index = Some(index);
        }
    }

    fn make_index(&mut self) -> Box<Index> {
        self.count_steps(self.places.len());
        let mut index = Box::<Index>::default();
        for (place, task) in self.places.iter().enumerate() {
            task.iter().for_each(|task| index.add(*task, place));
        }
        index
    }

    /// Keeps some of the tasks, without gaps between them.
    fn retain(&mut self, stays: impl Fn(Slot<Task>) -> bool) {
        self.count_steps(self.places.len());
        self.places.retain(|place| place.is_some_and(&stays));
        self.index = None;
    }

    fn count_steps(&mut self, _count: usize) {
        #[cfg(test)]
        {
            self.steps += _count;
        }
    }

    /// Takes all tasks out.
    pub(super) fn take(&mut self) -> Vec<Slot<Task>> {
        let taken = std::mem::take(self);
        taken.places.into_iter().flatten().collect()
    }

    /// The tasks, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Slot<Task>> {
        self.places.iter().copied().flatten()
    }

    /// Whether no task waits.
    pub(super) fn is_empty(&self) -> bool {
        self.places.len() == self.index.as_ref().map_or(0, |index| index.removed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slab::Slab;

    fn slots(count: usize) -> Vec<Slot<Task>> {
        let mut places = Slab::<u8>::default();
        (0..count).map(|_| Slot::from_number(places.insert(0).number())).collect()
    }

    #[test]
    fn what_is_left_stands_in_order_whatever_is_removed() {
        for count in [5, WALKED_MAX, WALKED_MAX + 1, 200] {
            let slots = slots(count);
            let (mut dependents, mut expected) = (Dependents::default(), Vec::new());
            for round in 0..3 {
                for (n, slot) in slots.iter().enumerate() {
                    // Some take the value twice.
                    for _ in 0..=usize::from(n % 5 == 0) {
                        dependents.push(*slot);
                        expected.push(*slot);
                    }
                }
                for n in (0..count).filter(|n| n % 3 != round) {
                    dependents.remove(slots[n]);
                    expected.retain(|slot| *slot != slots[n]);
                    assert_eq!(dependents.is_empty(), expected.is_empty());
                }
                assert!(dependents.iter().eq(expected.iter().copied()), "{count} in round {round}");
            }
            assert_eq!(dependents.take(), expected);
            assert!(dependents.is_empty() && dependents.take().is_empty());
        }
    }

    /// The end of a job with 10^6 tasks that wait for one value must not take the node's thread for minutes.
    #[test]
    fn removing_each_of_many_takes_a_few_steps_each() {
        const COUNT: usize = 100_000;
        for backwards in [false, true] {
            let mut slots = slots(COUNT);
            let mut dependents = Dependents::default();
            slots.iter().for_each(|slot| dependents.push(*slot));
            if backwards {
                slots.reverse();
            }
            slots.into_iter().for_each(|slot| dependents.remove(slot));
            assert!(dependents.is_empty());
            assert!(dependents.steps < 10 * COUNT, "{} steps", dependents.steps);
        }
    }
}
