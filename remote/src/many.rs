//! Many calls at a time: a parallel `map` over an iterator, and references in the order in which they are
//! ready.
//!
//! At most so many calls are unfinished as the caller says: items are taken from the iterator, and calls
//! made, as results are taken. So the iterator may be without end, and results may be larger than the memory.

use crate::current::is_task_cancelled;
use crate::error::{Error, Result};
use crate::handles::Connection;
use crate::reference::ObjectRef;
use crate::settle::{self, Timeout};
use crate::watchlist::Watchlist;
use serde::de::DeserializeOwned;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Items for which calls are made one by one. In a task that is cancelled the next one fails, as the last
/// one: such a task waits for nothing, so one that goes on at failures would make calls without end.
pub(crate) struct Items<I> {
    items: I,
    is_over: bool,
}

/// Values in the order of their items; made by [`map`].
pub struct Map<I, F, T> {
    items: Items<I>,
    call: F,
    outstanding_max: usize,
    outstanding: VecDeque<ObjectRef<T>>,
}

/// Values as they come, each with the place of its item; made by [`map_as_completed`].
pub struct MapAsCompleted<I, F, T> {
    items: Items<I>,
    call: F,
    outstanding_max: usize,
    count: usize,
    outstanding: AsCompleted<T>,
}

/// References in the order in which they are ready; made by [`as_completed`].
pub struct AsCompleted<T> {
    watched: Watchlist,
    waiting: HashMap<usize, ObjectRef<T>>,
    ready: VecDeque<(usize, ObjectRef<T>)>,
    /// That of the references, if any has one.
    connection: Option<Arc<Connection>>,
}

/// Calls a function for each item, at most `outstanding_max` (at least one) at a time: the values, in the
/// order of the items.
///
/// Calls are made as values are taken; nothing is called before the first is. A failure is the value of its
/// item, and the items behind it go on. The iterator ends with the items. Dropping it drops the references to
/// values that were not taken. In a task that is cancelled, the next item fails with `Cancelled`, and is the
/// last.
pub fn map<I, F, T>(items: I, outstanding_max: usize, call: F) -> Map<I::IntoIter, F, T>
where
    I: IntoIterator,
    F: FnMut(I::Item) -> ObjectRef<T>,
{
    let outstanding_max = outstanding_max.max(1);
    let items = Items::new(items.into_iter());
    Map { items, call, outstanding_max, outstanding: VecDeque::new() }
}

/// As [`map`], but with the values in the order in which they are ready: pairs of the item's place, counted
/// from 0, and its value.
pub fn map_as_completed<I, F, T>(
    items: I,
    outstanding_max: usize,
    call: F,
) -> MapAsCompleted<I::IntoIter, F, T>
where
    I: IntoIterator,
    F: FnMut(I::Item) -> ObjectRef<T>,
{
    let (items, outstanding_max) = (Items::new(items.into_iter()), outstanding_max.max(1));
    MapAsCompleted { items, call, outstanding_max, count: 0, outstanding: as_completed([]) }
}

/// The references, each with its place in the given order, in the order in which they are ready: when their
/// tasks have ended, with a value or without.
///
/// Those that are ready at the same time come in the given order. An item is an error only if the connection
/// is lost, or in a task that is cancelled; then there are no more.
pub fn as_completed<T>(references: impl IntoIterator<Item = ObjectRef<T>>) -> AsCompleted<T> {
    let mut all = AsCompleted {
        watched: Watchlist::default(),
        waiting: HashMap::new(),
        ready: VecDeque::new(),
        connection: None,
    };
    for (place, reference) in references.into_iter().enumerate() {
        all.push(place, reference);
    }
    all
}

/// The value of the reference that has one first, with its place in the given order. Failures count only if
/// there is nothing else; the other tasks go on.
///
/// # Errors
/// The failure that came last, if all references failed; `InvalidArgument` without references.
pub fn get_any<T: DeserializeOwned>(references: &[ObjectRef<T>]) -> Result<(usize, T)> {
    let mut last = Error::argument("there are no references, so none has a value".to_owned());
    for ready in as_completed(references.iter().cloned()) {
        let (place, reference) = ready?;
        match reference.get() {
            Ok(value) => return Ok((place, value)),
            Err(error) => last = error,
        }
    }
    Err(last)
}

impl<I: Iterator> Items<I> {
    pub(crate) fn new(items: I) -> Self {
        Self { items, is_over: false }
    }

    /// Makes the call for the next item.
    pub(crate) fn call_next<T>(
        &mut self,
        call: impl FnOnce(I::Item) -> ObjectRef<T>,
    ) -> Option<ObjectRef<T>> {
        if self.is_over {
            return None;
        }
        let item = self.items.next()?;
        self.is_over = is_task_cancelled();
        Some(if self.is_over { ObjectRef::failed(settle::cancelled()) } else { call(item) })
    }
}

impl<T> AsCompleted<T> {
    /// Number of references that were not given yet.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len() + self.ready.len()
    }

    /// Adds a reference with its place.
    pub(crate) fn push(&mut self, place: usize, reference: ObjectRef<T>) {
        if self.connection.is_none() {
            self.connection = reference.handle().connection().cloned();
        }
        self.watched.add(place, reference.handle());
        self.waiting.insert(place, reference);
    }

    /// Moves those that are ready, at least one unless the timeout ends before.
    fn await_some(&mut self, timeout: Option<Duration>) -> Result<()> {
        if let Some(connection) = &self.connection {
            self.watched.wait(&connection.link, 1, timeout.map(Timeout::from))?;
        }
        while self.watched.ready_count() > 0
            && let Some(place) = self.watched.take_first()
        {
            let Some(reference) = self.waiting.remove(&place) else { continue };
            reference.handle().fetch_if_ready();
            self.ready.push_back((place, reference));
        }
        Ok(())
    }

    /// The next reference that is ready, with its place. If the connection is lost, all of them are: each
    /// says so when it is read.
    pub(crate) fn next_ready(&mut self) -> Option<(usize, ObjectRef<T>)> {
        self.next_ready_within(None)
    }

    /// As [`AsCompleted::next_ready`], within a timeout. It may end early with none if one was removed.
    pub(crate) fn next_ready_within(&mut self, timeout: Option<Duration>) -> Option<(usize, ObjectRef<T>)> {
        if self.ready.is_empty() && !self.waiting.is_empty() && self.await_some(timeout).is_err() {
            self.give_up();
        }
        self.ready.pop_front()
    }

    /// Removes the reference of a place, ready or not.
    pub(crate) fn remove(&mut self, place: usize) {
        match self.waiting.remove(&place) {
            Some(reference) => self.watched.remove(reference.handle()),
            None => self.ready.retain(|(ready, _)| *ready != place),
        }
    }

    /// Gives up waiting: all references are taken for ready, in their order.
    fn give_up(&mut self) {
        let mut rest: Vec<_> = self.waiting.drain().collect();
        rest.sort_unstable_by_key(|(place, _)| *place);
        rest.iter().for_each(|(_, reference)| self.watched.remove(reference.handle()));
        self.ready.extend(rest);
    }
}

impl<T> Drop for AsCompleted<T> {
    fn drop(&mut self) {
        self.waiting.values().for_each(|reference| self.watched.remove(reference.handle()));
    }
}

impl<T> Iterator for AsCompleted<T> {
    type Item = Result<(usize, ObjectRef<T>)>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.is_empty() && !self.waiting.is_empty() {
            if let Err(lost) = self.await_some(None) {
                self.waiting.clear();
                return Some(Err(lost));
            }
        }
        self.ready.pop_front().map(Ok)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len(), Some(self.len()))
    }
}

impl<I, F, T> Iterator for Map<I, F, T>
where
    I: Iterator,
    F: FnMut(I::Item) -> ObjectRef<T>,
    T: DeserializeOwned,
{
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        while self.outstanding.len() < self.outstanding_max
            && let Some(reference) = self.items.call_next(&mut self.call)
        {
            self.outstanding.push_back(reference);
        }
        let first = self.outstanding.pop_front()?;
        Some(first.get())
    }
}

impl<I, F, T> Iterator for MapAsCompleted<I, F, T>
where
    I: Iterator,
    F: FnMut(I::Item) -> ObjectRef<T>,
    T: DeserializeOwned,
{
    type Item = (usize, Result<T>);

    fn next(&mut self) -> Option<(usize, Result<T>)> {
        while self.outstanding.len() < self.outstanding_max
            && let Some(reference) = self.items.call_next(&mut self.call)
        {
            self.outstanding.push(self.count, reference);
            self.count += 1;
        }
        let (place, reference) = self.outstanding.next_ready()?;
        Some((place, reference.get()))
    }
}

impl<I, F, T> fmt::Debug for Map<I, F, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Map({} of at most {} calls outstanding)", self.outstanding.len(), self.outstanding_max)
    }
}

impl<I, F, T> fmt::Debug for MapAsCompleted<I, F, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, max) = (self.outstanding.len(), self.outstanding_max);
        write!(f, "MapAsCompleted({count} of at most {max} calls outstanding)")
    }
}

impl<T> fmt::Debug for AsCompleted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AsCompleted({} references waiting, {} ready)", self.waiting.len(), self.ready.len())
    }
}
