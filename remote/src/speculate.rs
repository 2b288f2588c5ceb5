//! A parallel `map` that makes a call again when it takes much longer than the others.
//!
//! Both calls are tasks of their own, so the engine knows nothing of this: the value of the one that ends
//! first is given, once, and the other one is cancelled. That is right only for functions whose calls can run
//! twice and give the same value each time, so it is never done unasked.

use crate::current::is_task_cancelled;
use crate::error::Result;
use crate::get::cancel;
use crate::handles::State;
use crate::many::{AsCompleted, Items, as_completed};
use crate::reference::ObjectRef;
use serde::de::DeserializeOwned;
use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

/// Calls that must have ended before another one is compared with them.
const ENDED_MIN: usize = 5;
/// Calls that are compared with: the last ones, because the next ones are like them.
const ENDED_MAX: usize = 64;
/// Calls that end sooner than this are not worth another one.
const WAIT_MIN: Duration = Duration::from_millis(10);

/// Values in the order of their items, of calls that are made again when they take long; made by
/// [`map_speculating`].
pub struct MapSpeculating<I: Iterator, F, T> {
    items: Items<I>,
    call: F,
    outstanding_max: usize,
    factor: f64,
    /// Calls whose values were not taken, in order.
    calls: VecDeque<Call<I::Item, T>>,
    /// The number of the first of them.
    first: usize,
    /// Unfinished attempts: twice the number of the call, plus one for its second attempt.
    attempts: AsCompleted<T>,
    /// The times of the calls that ended last.
    took: VecDeque<Duration>,
}

struct Call<A, T> {
    /// `None` once it was made again.
    item: Option<A>,
    /// When it was made.
    since: Instant,
    /// Unfinished attempts.
    running: Vec<(usize, ObjectRef<T>)>,
    ended: Option<ObjectRef<T>>,
}

/// As [`map`](crate::map), for calls that may be made twice: one that takes longer than `factor` times the
/// median of those that ended last is made again, once, while the first goes on. The one that has a value
/// first counts, and the other is cancelled by force, with what it has called.
///
/// This hides slow or hanging machines and disks. It is for functions that give the same value each time and
/// do nothing else: a call may run twice, to its end. A call is made again only when five have ended, when it
/// takes 10 ms, and when fewer than `outstanding_max` calls are unfinished, so mostly near the end of the
/// items. A failure counts only if no other attempt is left. A `factor` below 1 is taken for 1.
pub fn map_speculating<I, F, T>(
    items: I,
    outstanding_max: usize,
    factor: f64,
    call: F,
) -> MapSpeculating<I::IntoIter, F, T>
where
    I: IntoIterator,
    I::Item: Clone,
    F: FnMut(I::Item) -> ObjectRef<T>,
{
    MapSpeculating {
        items: Items::new(items.into_iter()),
        call,
        outstanding_max: outstanding_max.max(1),
        factor: factor.max(1.0),
        calls: VecDeque::new(),
        first: 0,
        attempts: as_completed([]),
        took: VecDeque::new(),
    }
}

impl<I, F, T> MapSpeculating<I, F, T>
where
    I: Iterator,
    I::Item: Clone,
    F: FnMut(I::Item) -> ObjectRef<T>,
{
    /// Makes calls for the next items, as far as there is room.
    fn fill(&mut self) {
        while self.calls.len() < self.outstanding_max
            && self.attempts.len() < self.outstanding_max
            && let Some((item, reference)) = self.call_next()
        {
            let key = 2 * (self.first + self.calls.len());
            self.attempts.push(key, reference.clone());
            let running = vec![(key, reference)];
            self.calls.push_back(Call { item, since: Instant::now(), running, ended: None });
        }
    }

    /// Makes the call for the next item, and returns the item if the call was made.
    fn call_next(&mut self) -> Option<(Option<I::Item>, ObjectRef<T>)> {
        let (mut kept, call) = (None, &mut self.call);
        let reference = self.items.call_next(|item: I::Item| {
            kept = Some(item.clone());
            call(item)
        })?;
        Some((kept, reference))
    }

    /// The time after which a call is made again; `None` if too few have ended.
    fn limit(&self) -> Option<Duration> {
        if self.took.len() < ENDED_MIN {
            return None;
        }
        let mut took: Vec<_> = self.took.iter().collect();
        let middle = took.len() / 2;
        let (_, median, _) = took.select_nth_unstable(middle);
        let limit = Duration::try_from_secs_f64(median.as_secs_f64() * self.factor);
        Some(limit.unwrap_or(Duration::MAX).max(WAIT_MIN))
    }

    /// Makes overdue calls again, as far as there is room; returns the time until the next one is overdue.
    fn make_again(&mut self) -> Option<Duration> {
        let limit = self.limit().filter(|_| !is_task_cancelled())?;
        let now = Instant::now();
        for (at, call) in self.calls.iter_mut().enumerate().filter(|(_, call)| call.ended.is_none()) {
            if self.outstanding_max <= self.attempts.len() {
                return None;
            }
            let Some(item) = call.item.take() else { continue };
            let age = now.duration_since(call.since);
            if age < limit {
                // The calls behind it were made later.
                call.item = Some(item);
                return Some(limit - age);
            }
            let key = 2 * (self.first + at) + 1;
            let reference = (self.call)(item);
            self.attempts.push(key, reference.clone());
            call.running.push((key, reference));
        }
        None
    }

    /// An attempt has ended: its value is that of the call, unless it has failed and another one goes on.
    fn ended(&mut self, key: usize, reference: ObjectRef<T>) {
        let Some(call) = (key / 2).checked_sub(self.first).and_then(|at| self.calls.get_mut(at)) else {
            return;
        };
        call.running.retain(|(running, _)| *running != key);
        let has_failed = reference.handle().look(|state| matches!(state, State::Failed(_)));
        if call.ended.is_some() || has_failed && !call.running.is_empty() {
            return;
        }
        call.ended = Some(reference);
        if self.took.len() == ENDED_MAX {
            self.took.pop_front();
        }
        self.took.push_back(call.since.elapsed());
        for (key, other) in call.running.drain(..) {
            self.attempts.remove(key);
            // If the connection is lost, all others say so.
            let _ = cancel(&other, true, true);
        }
    }
}

impl<I, F, T> Iterator for MapSpeculating<I, F, T>
where
    I: Iterator,
    I::Item: Clone,
    F: FnMut(I::Item) -> ObjectRef<T>,
    T: DeserializeOwned,
{
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        loop {
            self.fill();
            if self.calls.front()?.ended.is_some() {
                self.first += 1;
                return self.calls.pop_front()?.ended.map(|reference| reference.get());
            }
            let until_next = self.make_again();
            if let Some((key, reference)) = self.attempts.next_ready_within(until_next) {
                self.ended(key, reference);
            }
        }
    }
}

impl<I: Iterator, F, T> fmt::Debug for MapSpeculating<I, F, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, max) = (self.attempts.len(), self.outstanding_max);
        write!(f, "MapSpeculating({count} of at most {max} calls outstanding)")
    }
}
