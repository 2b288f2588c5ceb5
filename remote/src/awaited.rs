//! `wait`: references, parted into those that are ready and those that are still awaited.

use crate::error::{Error, Result};
use crate::reference::ObjectRef;
use crate::settle::Timeout;
use crate::watchlist::Watchlist;
use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::ops::Deref;

/// References that are ready, and the others.
pub type Parted<T> = (Vec<ObjectRef<T>>, Awaited<T>);

/// Options of [`wait`]; `Wait::default()` waits for one reference, without a timeout, and starts to fetch
/// bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wait {
    /// Number of references that must be ready.
    pub num_returns: usize,
    /// Longest time to wait.
    pub timeout: Option<Timeout>,
    /// Whether to start fetching the bytes of ready references.
    pub fetch: bool,
}

impl Default for Wait {
    fn default() -> Self {
        Self { num_returns: 1, timeout: None, fetch: true }
    }
}

/// Waits until some references are ready, and splits them into ready and not ready, both in the given order.
///
/// A reference is ready when its task has ended, with a value or without. At most `num_returns` are reported
/// ready: the first ones in order. Those that are not ready are watched from then on, so handing them back to
/// `wait` as they are costs the same for a few and for many. References may be given as a slice, a `Vec` or
/// [`Awaited`].
///
/// # Errors
/// `InvalidArgument` for a reference given twice, for more `num_returns` than references, for a bad timeout;
/// `Cancelled` in a task that is cancelled; the loss of the connection. A timeout is no error: fewer
/// references are ready then.
pub fn wait<T>(references: impl Into<Awaited<T>>, options: Wait) -> Result<Parted<T>> {
    let mut awaited = references.into();
    let ready = awaited.part(options)?;
    Ok((ready, awaited))
}

/// References in an order, of which [`wait`] takes those that are ready. It can be read like a slice.
pub struct Awaited<T> {
    /// In one piece: only removals happen once it is made.
    references: VecDeque<ObjectRef<T>>,
    /// Place of each reference in the list as it was given; they grow.
    places: VecDeque<usize>,
    /// From the first wait on.
    watched: Option<Watchlist>,
}

impl<T> Awaited<T> {
    /// Takes the references that are ready once there are enough, or the timeout is over.
    fn part(&mut self, options: Wait) -> Result<Vec<ObjectRef<T>>> {
        let given = self.references.len();
        if options.num_returns > given {
            let wanted = options.num_returns;
            return Err(Error::argument(format!("num_returns is {wanted}, with {given} references")));
        }
        if self.watched.is_none() {
            self.watched = Some(self.watch()?);
        }
        let Some(watched) = &mut self.watched else { return Ok(Vec::new()) };
        let connected = self.references.iter().find_map(|reference| reference.handle().connection());
        if let Some(connection) = connected.cloned() {
            watched.wait(&connection.link, options.num_returns, options.timeout)?;
        }
        let count = watched.ready_count().min(options.num_returns);
        let taken: Vec<usize> = std::iter::from_fn(|| watched.take_first()).take(count).collect();
        let ready = self.remove(&taken);
        if options.fetch {
            ready.iter().for_each(|reference| {
                reference.handle().fetch_if_ready();
            });
        }
        Ok(ready)
    }

    /// Begins to watch every reference.
    fn watch(&self) -> Result<Watchlist> {
        let mut seen = HashSet::with_capacity(self.references.len());
        if let Some(twice) = self.references.iter().find(|reference| !seen.insert(reference.id())) {
            return Err(Error::argument(format!("{twice:?} is given twice")));
        }
        let mut watched = Watchlist::default();
        for (place, reference) in self.places.iter().zip(&self.references) {
            watched.add(*place, reference.handle());
        }
        Ok(watched)
    }

    /// Removes the references at these places, which grow.
    fn remove(&mut self, places: &[usize]) -> Vec<ObjectRef<T>> {
        /// Removing one moves a quarter of the references on average, at a quarter of the cost of a pass.
        const ONE_BY_ONE_PART: usize = 16;
        if places.len() * ONE_BY_ONE_PART >= self.references.len() {
            return self.remove_in_a_pass(places);
        }
        let found = places.iter().filter_map(|place| {
            let at = self.places.binary_search(place).ok()?;
            self.places.remove(at);
            self.references.remove(at)
        });
        let ready = found.collect();
        self.references.make_contiguous();
        ready
    }

    fn remove_in_a_pass(&mut self, places: &[usize]) -> Vec<ObjectRef<T>> {
        let all = std::mem::take(&mut self.references);
        let count = all.len();
        let all_places = std::mem::take(&mut self.places);
        let mut ready = Vec::with_capacity(places.len());
        self.references.reserve(count - places.len());
        self.places.reserve(count - places.len());
        for (reference, place) in all.into_iter().zip(all_places) {
            if places.get(ready.len()) == Some(&place) {
                ready.push(reference);
            } else {
                self.references.push_back(reference);
                self.places.push_back(place);
            }
        }
        ready
    }
}

impl<T> Drop for Awaited<T> {
    fn drop(&mut self) {
        if let Some(watched) = &self.watched {
            self.references.iter().for_each(|reference| watched.remove(reference.handle()));
        }
    }
}

impl<T> Deref for Awaited<T> {
    type Target = [ObjectRef<T>];

    fn deref(&self) -> &[ObjectRef<T>] {
        self.references.as_slices().0
    }
}

impl<T> From<Vec<ObjectRef<T>>> for Awaited<T> {
    fn from(references: Vec<ObjectRef<T>>) -> Self {
        Self { places: (0..references.len()).collect(), references: references.into(), watched: None }
    }
}

impl<T> From<&[ObjectRef<T>]> for Awaited<T> {
    fn from(references: &[ObjectRef<T>]) -> Self {
        references.to_vec().into()
    }
}

impl<T> From<&Vec<ObjectRef<T>>> for Awaited<T> {
    fn from(references: &Vec<ObjectRef<T>>) -> Self {
        references.clone().into()
    }
}

impl<T, const N: usize> From<&[ObjectRef<T>; N]> for Awaited<T> {
    fn from(references: &[ObjectRef<T>; N]) -> Self {
        references.to_vec().into()
    }
}

impl<T> From<&Awaited<T>> for Awaited<T> {
    fn from(references: &Awaited<T>) -> Self {
        references.to_vec().into()
    }
}

impl<T> FromIterator<ObjectRef<T>> for Awaited<T> {
    fn from_iter<I: IntoIterator<Item = ObjectRef<T>>>(references: I) -> Self {
        references.into_iter().collect::<Vec<_>>().into()
    }
}

impl<T> fmt::Debug for Awaited<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handles::testing;
    use std::sync::Arc;
    use tharsis_types::{Failure, FailureKind};

    /// Number of times that handles are looked at while `count` references are taken one by one, as their
    /// tasks end in an order of no kind.
    fn looks_to_take_one_by_one(count: usize) -> usize {
        const STRIDE: usize = 7_919;
        let references: Vec<_> = (0..count).map(testing::pending).map(ObjectRef::<u8>::new).collect();
        let order = (0..count).map(|turn| turn * STRIDE % count);
        let failure = Arc::new(Failure::new(FailureKind::UserError, "no"));
        let mut open = Awaited::from(&references);
        let before = testing::looks();
        for place in order {
            references[place].handle().fail(&failure);
            let (ready, rest) = wait(open, Wait::default()).unwrap();
            assert_eq!(ready.iter().map(ObjectRef::id).collect::<Vec<_>>(), [references[place].id()]);
            open = rest;
        }
        assert!(open.is_empty());
        testing::looks() - before
    }

    #[test]
    fn taking_one_by_one_looks_at_each_reference_a_few_times() {
        const LOOKS_EACH_MAX: usize = 8;
        for count in [1_000, 10_000] {
            let looks = looks_to_take_one_by_one(count);
            assert!(looks <= LOOKS_EACH_MAX * count, "{looks} looks at {count} references");
        }
    }

    #[test]
    fn a_set_that_is_dropped_is_watched_no_more() {
        let reference = ObjectRef::<u8>::new(testing::pending(0));
        for _ in 0..10 {
            let (ready, rest) =
                wait(std::slice::from_ref(&reference), Wait { timeout: Some(0.0.into()), ..Wait::default() })
                    .unwrap();
            assert_eq!((ready.len(), rest.len(), testing::waiters(reference.handle())), (0, 1, 1));
        }
        assert_eq!(testing::waiters(reference.handle()), 0);
    }

    #[test]
    fn many_that_are_ready_at_once_keep_their_order() {
        let references: Vec<_> = (0..100).map(testing::pending).map(ObjectRef::<u8>::new).collect();
        let failure = Arc::new(Failure::new(FailureKind::UserError, "no"));
        references.iter().rev().step_by(2).for_each(|reference| reference.handle().fail(&failure));
        let ids = |references: &[ObjectRef<u8>]| references.iter().map(ObjectRef::id).collect::<Vec<_>>();
        let (ready, rest) = wait(&references, Wait { num_returns: 100, ..Wait::default() }).unwrap();
        let every_other =
            |first| references.iter().skip(first).step_by(2).map(ObjectRef::id).collect::<Vec<_>>();
        assert_eq!((ids(&ready), ids(&rest)), (every_other(1), every_other(0)));
        let (first, rest) = wait(&references, Wait::default()).unwrap();
        assert_eq!(ids(&first), [references[1].id()]);
        assert_eq!(ids(&rest), [&ids(&references)[..1], &ids(&references)[2..]].concat());
    }
}
