//! Calls spread over actors, each of which has one at a time.

use crate::error::Result;
use crate::handles::State;
use crate::many::{AsCompleted, Items, as_completed};
use crate::reference::ObjectRef;
use serde::de::DeserializeOwned;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use tharsis_types::FailureKind;

/// Items per actor whose calls may be made before the value of an earlier item is there.
const AHEAD_MAX: usize = 16;

/// Actors that share the calls for many items: an actor gets the next item when it has answered for the one
/// before.
///
/// An actor that has died leaves the pool when the iterator that noticed it is dropped, so that later items
/// do not go to it; the last one stays, as somebody has to fail what is asked of the pool. An actor that is
/// restarted has not died.
pub struct ActorPool<H> {
    actors: Vec<H>,
}

impl<H> ActorPool<H> {
    /// A pool of actors, given by their handles.
    pub fn new(actors: impl IntoIterator<Item = H>) -> Self {
        Self { actors: actors.into_iter().collect() }
    }

    /// Number of actors in the pool: those that it was made of, less those that it has seen to be dead.
    #[must_use]
    pub fn len(&self) -> usize {
        self.actors.len()
    }

    /// Whether there are no actors. Such a pool calls nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.actors.is_empty()
    }

    /// Gives the handles of the actors that are in the pool.
    #[must_use]
    pub fn into_actors(self) -> Vec<H> {
        self.actors
    }

    /// Calls a method for each item: the values, in the order of the items.
    ///
    /// Calls are made as values are taken. A failure is the value of its item. An actor that died fails the
    /// item that it had, and gets no more; if all have died, the last one fails the rest. Without actors
    /// there are no values. If the iterator is dropped, calls that run go on.
    pub fn map<'a, I, F, T>(&'a mut self, items: I, call: F) -> PoolMap<'a, H, I::IntoIter, F, T>
    where
        I: IntoIterator,
        F: FnMut(&H, I::Item) -> ObjectRef<T>,
    {
        let ahead_max = AHEAD_MAX * self.actors.len();
        let calls = PoolCalls::new(&mut self.actors, items.into_iter(), call);
        PoolMap { calls, next: 0, early: HashMap::new(), ahead_max }
    }

    /// As [`ActorPool::map`], but with the values as they come: pairs of the item's place, counted from 0,
    /// and its value.
    pub fn map_as_completed<'a, I, F, T>(
        &'a mut self,
        items: I,
        call: F,
    ) -> PoolMapAsCompleted<'a, H, I::IntoIter, F, T>
    where
        I: IntoIterator,
        F: FnMut(&H, I::Item) -> ObjectRef<T>,
    {
        PoolMapAsCompleted(PoolCalls::new(&mut self.actors, items.into_iter(), call))
    }
}

/// The calls of a pool for items.
struct PoolCalls<'a, H, I, F, T> {
    actors: &'a mut Vec<H>,
    /// Actors that have no call, by their places in the pool.
    idle: Vec<usize>,
    /// The actors that run the calls of these places.
    busy: HashMap<usize, usize>,
    /// Actors that have died, but for the last one.
    dead: BTreeSet<usize>,
    running: AsCompleted<T>,
    items: Items<I>,
    call: F,
    count: usize,
}

impl<'a, H, I, F, T> PoolCalls<'a, H, I, F, T>
where
    I: Iterator,
    F: FnMut(&H, I::Item) -> ObjectRef<T>,
{
    fn new(actors: &'a mut Vec<H>, items: I, call: F) -> Self {
        let idle = (0..actors.len()).rev().collect();
        let (busy, dead, running) = (HashMap::new(), BTreeSet::new(), as_completed([]));
        Self { actors, idle, busy, dead, running, items: Items::new(items), call, count: 0 }
    }

    /// The next call that has ended, and its place. Calls only for items with places below `end`.
    fn next(&mut self, end: usize) -> Option<(usize, ObjectRef<T>)> {
        while self.count < end
            && let Some(&place) = self.idle.last()
            && let Some(actor) = self.actors.get(place)
            && let Some(reference) = self.items.call_next(|item| (self.call)(actor, item))
        {
            self.running.push(self.count, reference);
            self.busy.insert(self.count, place);
            self.idle.pop();
            self.count += 1;
        }
        let (place, reference) = self.running.next_ready()?;
        let Some(actor) = self.busy.remove(&place) else { return Some((place, reference)) };
        // A dead actor answers at once, and would get one item after the other. The last one stays: somebody
        // has to fail the rest.
        let is_last = self.idle.is_empty() && self.busy.is_empty();
        if !is_last && has_died(&reference) {
            self.dead.insert(actor);
        } else {
            self.idle.push(actor);
        }
        Some((place, reference))
    }
}

impl<H, I, F, T> Drop for PoolCalls<'_, H, I, F, T> {
    fn drop(&mut self) {
        let mut place = 0;
        self.actors.retain(|_| {
            place += 1;
            !self.dead.contains(&(place - 1))
        });
    }
}

/// Whether a call ended because its actor will run no more calls.
fn has_died<T>(call: &ObjectRef<T>) -> bool {
    let kind = |state: &State| match state {
        State::Failed(failure) => Some(failure.kind),
        _ => None,
    };
    call.handle().look(kind) == Some(FailureKind::ActorDied)
}

/// Values in the order of their items; made by [`ActorPool::map`].
pub struct PoolMap<'a, H, I, F, T> {
    calls: PoolCalls<'a, H, I, F, T>,
    /// The place of the value to give next.
    next: usize,
    /// Calls that ended before those of earlier items.
    early: HashMap<usize, ObjectRef<T>>,
    /// Items between the value to give next and that of the last call, at most.
    ahead_max: usize,
}

impl<H, I, F, T> Iterator for PoolMap<'_, H, I, F, T>
where
    I: Iterator,
    F: FnMut(&H, I::Item) -> ObjectRef<T>,
    T: DeserializeOwned,
{
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        loop {
            if let Some(reference) = self.early.remove(&self.next) {
                self.next += 1;
                return Some(reference.get());
            }
            let (place, reference) = self.calls.next(self.next + self.ahead_max)?;
            self.early.insert(place, reference);
        }
    }
}

/// Values as they come, each with the place of its item; made by [`ActorPool::map_as_completed`].
pub struct PoolMapAsCompleted<'a, H, I, F, T>(PoolCalls<'a, H, I, F, T>);

impl<H, I, F, T> Iterator for PoolMapAsCompleted<'_, H, I, F, T>
where
    I: Iterator,
    F: FnMut(&H, I::Item) -> ObjectRef<T>,
    T: DeserializeOwned,
{
    type Item = (usize, Result<T>);

    fn next(&mut self) -> Option<(usize, Result<T>)> {
        let (place, reference) = self.0.next(usize::MAX)?;
        Some((place, reference.get()))
    }
}

impl<H> fmt::Debug for ActorPool<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ActorPool({} actors)", self.actors.len())
    }
}

impl<H, I, F, T> fmt::Debug for PoolMap<'_, H, I, F, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PoolMap({} calls running)", self.calls.running.len())
    }
}

impl<H, I, F, T> fmt::Debug for PoolMapAsCompleted<'_, H, I, F, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PoolMapAsCompleted({} calls running)", self.0.running.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    /// Values of 1 000 items by ten actors, of which those with these numbers are dead: failures, and calls
    /// by actor. Calls of the others go on until all of a round are made.
    fn failures(dead: &[usize]) -> (usize, Vec<usize>) {
        let mut pool = ActorPool::new(0..10);
        let mut calls = vec![0; 10];
        let kind = |actor: &usize| {
            if dead.contains(actor) { FailureKind::ActorDied } else { FailureKind::UserError }
        };
        let call = |actor: &usize, _: u32| {
            calls[*actor] += 1;
            ObjectRef::<u32>::failed(Error::new(kind(actor), "no"))
        };
        let ends: Vec<_> = pool.map(0..1_000, call).map(|value| value.unwrap_err().kind()).collect();
        assert_eq!(ends.len(), 1_000, "each item has its value");
        (ends.iter().filter(|kind| **kind == FailureKind::ActorDied).count(), calls)
    }

    #[test]
    fn the_dead_leave_the_pool_and_the_last_one_stays() {
        let call = |dead: &'static [usize]| {
            move |actor: &usize, _: u32| {
                let kind = if dead.contains(actor) { FailureKind::ActorDied } else { FailureKind::UserError };
                ObjectRef::<u32>::failed(Error::new(kind, "no"))
            }
        };
        let mut pool = ActorPool::new(0..4);
        assert_eq!(pool.map(0..10, call(&[1, 2])).count(), 10);
        assert_eq!((pool.len(), &pool.actors), (2, &vec![0, 3]));
        let kinds: Vec<_> = pool.map(0..10, call(&[1, 2])).map(|value| value.unwrap_err().kind()).collect();
        assert_eq!(kinds, [FailureKind::UserError; 10], "nothing more goes to the dead");
        assert_eq!(pool.map_as_completed(0..10, call(&[0, 3])).count(), 10);
        assert_eq!(pool.len(), 1, "it fails what is asked of the pool");
        assert_eq!(pool.map(0..10, call(&[0, 3])).count(), 10);
        assert_eq!(pool.into_actors().len(), 1);
    }

    #[test]
    fn a_dead_actor_fails_one_item() {
        let (failed, calls) = failures(&[0, 3, 9]);
        assert_eq!((failed, calls[0], calls[3], calls[9]), (3, 1, 1, 1), "{calls:?}");
        assert_eq!(failures(&[]).0, 0);
        assert_eq!(failures(&(0..10).collect::<Vec<_>>()).0, 1_000, "nobody is left to compute them");
    }
}
