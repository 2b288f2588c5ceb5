//! A queue that tasks and actors on all nodes share.

use crate::{Blob, Error, FailureKind, ObjectRef, Result, actor};
use parking_lot::{Condvar, Mutex};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::time::{Duration, Instant};

/// A call of the actor waits no longer than this: then it is made again, so that a caller that was lost
/// leaves nobody who takes an item.
const STEP: Duration = Duration::from_secs(1);
/// Calls of one kind that may wait in the actor, each on a thread. One call more is answered at once, whoever
/// made it comes again, and the other threads are free for those that need not wait.
const WAITING_MAX: usize = 48;
/// The times after which a caller for whom there was no place to wait comes again.
const PAUSES: [u64; 6] = [2, 4, 8, 16, 32, 64];

/// A queue of items, first in, first out, which lives in an actor. Clones, here and elsewhere, are the same
/// queue; it ends with the last of them.
///
/// ```
/// use tharsis::Queue;
/// use tharsis::prelude::*;
///
/// #[remote]
/// fn fill(queue: Queue<u64>) -> Result<(), Error> {
///     (0..10).try_for_each(|n| queue.put(&n))
/// }
///
/// # fn main() -> Result<(), Error> {
/// let _runtime = init().num_cpus(2.0).start()?;
/// // Room for four items: `fill` waits for those who take some.
/// let queue = Queue::new(4);
/// let filled = fill::remote(queue.clone());
/// let taken = (0..10).map(|_| queue.get()).collect::<Result<Vec<_>, _>>()?;
/// assert_eq!(taken.iter().sum::<u64>(), 45);
/// filled.get()?;
/// assert!(queue.try_get()?.is_none());
/// # Ok(())
/// # }
/// ```
///
/// An item that was given to a process that is lost then is lost too.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Queue<T> {
    buffer: BufferHandle,
    item: PhantomData<fn() -> T>,
}

impl<T> Clone for Queue<T> {
    fn clone(&self) -> Self {
        Self { buffer: self.buffer.clone(), item: PhantomData }
    }
}

impl<T> fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Queue<{}>({:?})", std::any::type_name::<T>(), self.buffer)
    }
}

impl<T> Queue<T> {
    /// A queue for at most so many items; 0: without limit.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { buffer: Buffer::remote(capacity), item: PhantomData }
    }

    /// Number of items at the moment.
    ///
    /// # Errors
    /// The failure of the queue's actor.
    pub fn len(&self) -> Result<usize> {
        self.buffer.len().get()
    }

    /// Whether there are no items at the moment.
    ///
    /// # Errors
    /// The failure of the queue's actor.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Adds the value of a reference, which stays in the store: what it refers to need not exist yet.
    ///
    /// # Errors
    /// The failure of the queue's actor.
    pub fn put_ref(&self, item: &ObjectRef<T>) -> Result<()> {
        self.push(Item::Stored(item.clone().cast()), None).map(|_| ())
    }

    /// Adds an item; waits for room. Returns whether there was room in time.
    fn push(&self, item: Item, timeout: Option<Duration>) -> Result<bool> {
        within(timeout, |step| self.buffer.put(item.clone(), step).get()).map(|added| added.is_some())
    }
}

impl<T: Serialize + DeserializeOwned> Queue<T> {
    /// Adds an item; waits while the queue is full.
    ///
    /// # Errors
    /// The failure of the queue's actor; `InvalidArgument` for an item that cannot be encoded, or that has
    /// references inside.
    pub fn put(&self, item: &T) -> Result<()> {
        self.push(encoded(item)?, None).map(|_| ())
    }

    /// Adds an item if there is room within this time. Returns whether there was.
    ///
    /// # Errors
    /// As [`Queue::put`].
    pub fn put_timeout(&self, item: &T, timeout: Duration) -> Result<bool> {
        self.push(encoded(item)?, Some(timeout))
    }

    /// Takes the first item; waits while the queue is empty.
    ///
    /// # Errors
    /// The failure of the queue's actor, or of the task whose result the item is.
    pub fn get(&self) -> Result<T> {
        let item = self.get_within(None)?;
        item.ok_or_else(|| Error::new(FailureKind::Internal, "a wait without an end has ended"))
    }

    /// Takes the first item; `None` if none comes within this time.
    ///
    /// # Errors
    /// As [`Queue::get`].
    pub fn get_timeout(&self, timeout: Duration) -> Result<Option<T>> {
        self.get_within(Some(timeout))
    }

    /// Takes the first item; `None` if there is none.
    ///
    /// # Errors
    /// As [`Queue::get`].
    pub fn try_get(&self) -> Result<Option<T>> {
        self.get_within(Some(Duration::ZERO))
    }

    fn get_within(&self, timeout: Option<Duration>) -> Result<Option<T>> {
        let item = within(timeout, |step| self.buffer.take(step).get())?;
        item.map(|item| match item {
            Item::Stored(reference) => reference.cast::<T>().get(),
            Item::Here(bytes) => postcard::from_bytes(&bytes).map_err(|error| {
                Error::new(FailureKind::DataCorrupt, format!("an item of a queue: {error}"))
            }),
        })
        .transpose()
    }
}

/// Tries again, each time for at most a step, until there is something or the time is over.
fn within<R>(
    timeout: Option<Duration>,
    attempt: impl Fn(Duration) -> Result<Answer<R>>,
) -> Result<Option<R>> {
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let mut pauses = PAUSES.into_iter();
    let mut pause = Duration::ZERO;
    loop {
        let left = deadline.map_or(STEP, |deadline| deadline.saturating_duration_since(Instant::now()));
        match attempt(left.min(STEP))? {
            Answer::Done(found) => return Ok(Some(found)),
            _ if left.is_zero() => return Ok(None),
            Answer::Crowded => {
                pause = pauses.next().map_or(pause, Duration::from_millis);
                std::thread::sleep(pause.min(left));
            }
            Answer::Nothing => {}
        }
    }
}

fn encoded<T: Serialize>(item: &T) -> Result<Item> {
    let bytes = postcard::to_allocvec(item).map_err(|error| {
        Error::new(FailureKind::InvalidArgument, format!("an item of a queue cannot be encoded: {error}"))
    })?;
    Ok(Item::Here(bytes.into()))
}

/// An item on its way.
#[derive(Clone, Serialize, Deserialize)]
enum Item {
    Here(Blob),
    Stored(ObjectRef<()>),
}

/// Answer of the actor.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Answer<R> {
    /// Too many wait already.
    Crowded,
    Done(R),
    /// Not in time.
    Nothing,
}

/// The actor of a queue.
struct Buffer {
    state: Mutex<State>,
    capacity: usize,
    added: Condvar,
    taken: Condvar,
}

#[derive(Default)]
struct State {
    items: VecDeque<Item>,
    /// Calls that wait for room.
    putting: usize,
    /// Calls that wait for an item.
    taking: usize,
}

// Callers that wait have a thread each, within these limits; those that need not wait find one free.
#[actor(max_concurrency = 4, groups(put = 64, take = 64))]
impl Buffer {
    fn new(capacity: usize) -> Self {
        let capacity = if capacity == 0 { usize::MAX } else { capacity };
        Self { state: Mutex::default(), capacity, added: Condvar::new(), taken: Condvar::new() }
    }

    fn len(&self) -> usize {
        self.state.lock().items.len()
    }

    #[method(group = put)]
    fn put(&self, item: Item, timeout: Duration) -> Answer<()> {
        let mut state = self.state.lock();
        let is_full = |state: &mut State| self.capacity <= state.items.len();
        if is_full(&mut state) && !timeout.is_zero() {
            if state.putting == WAITING_MAX {
                return Answer::Crowded;
            }
            state.putting += 1;
            self.taken.wait_while_for(&mut state, is_full, timeout);
            state.putting -= 1;
        }
        if is_full(&mut state) {
            return Answer::Nothing;
        }
        state.items.push_back(item);
        self.added.notify_one();
        Answer::Done(())
    }

    /// The first item, if there is one in time.
    #[method(group = take)]
    fn take(&self, timeout: Duration) -> Answer<Item> {
        let mut state = self.state.lock();
        let is_empty = |state: &mut State| state.items.is_empty();
        if is_empty(&mut state) && !timeout.is_zero() {
            if state.taking == WAITING_MAX {
                return Answer::Crowded;
            }
            state.taking += 1;
            self.added.wait_while_for(&mut state, is_empty, timeout);
            state.taking -= 1;
        }
        let Some(item) = state.items.pop_front() else { return Answer::Nothing };
        self.taken.notify_one();
        Answer::Done(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Far longer than a test may take.
    const LONG: Duration = Duration::from_secs(3_600);

    #[test]
    fn of_very_many_callers_those_without_a_place_to_wait_are_told_at_once() {
        let buffer = Buffer::new(1);
        let put = |timeout| buffer.put(Item::Here(Blob::from(vec![1])), timeout);
        std::thread::scope(|scope| {
            let waiting: Vec<_> = (0..WAITING_MAX).map(|_| scope.spawn(|| buffer.take(LONG))).collect();
            while buffer.state.lock().taking < WAITING_MAX {
                std::thread::yield_now();
            }
            assert!(matches!(buffer.take(LONG), Answer::Crowded));
            assert!(matches!(buffer.take(Duration::ZERO), Answer::Nothing), "nobody waits for nothing");
            // Those that put have places of their own.
            assert!(waiting.iter().all(|_| put(LONG) == Answer::Done(())));
            let taken = waiting.into_iter().map(|waiting| waiting.join().unwrap());
            assert!(taken.into_iter().all(|taken| matches!(taken, Answer::Done(_))));
        });
        assert_eq!((put(Duration::ZERO), put(Duration::ZERO)), (Answer::Done(()), Answer::Nothing), "full");
    }

    #[test]
    fn who_finds_no_place_comes_again_until_its_time_is_over() {
        let asked = Cell::new(0);
        let crowded = |_| {
            asked.set(asked.get() + 1);
            Ok(if asked.get() < 4 { Answer::Crowded } else { Answer::Done(7) })
        };
        assert_eq!(within(Some(LONG), crowded).unwrap(), Some(7));
        assert_eq!(asked.get(), 4);
        let never = |step: Duration| {
            assert!(step <= STEP, "a call that is lost takes an item with it");
            Ok(Answer::<u32>::Crowded)
        };
        assert_eq!(within(Some(Duration::from_millis(10)), never).unwrap(), None);
        assert_eq!(within(Some(Duration::ZERO), never).unwrap(), None);
    }
}
