//! Waits until handles are final, and reads their values.
//!
//! A blocking call first checks for local values, then requests bytes that exist elsewhere, then waits. A
//! task that waits lends its slot: after a short spin (its child may be done in a moment) it reports itself
//! blocked and hands back tasks that were sent ahead. Before it continues it asks for its slot again.
//!
//! A task that is cancelled waits for nothing any more: its waits, and those of its threads, end with
//! `Cancelled`. Of the threads that a method has started these are the ones that have entered it. It still
//! gets what is in the local store.

use crate::codec::{self, Payload};
use crate::error::{Error, Result};
use crate::handles::{Handle, State, Waiter};
use crate::link::{LentSlot, Link};
use crate::memory::Mapped;
use crate::pump::{Condition, Reader};
use crate::task::{Sleep, Sleeper, TaskState, own_task};
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::task::Context;
use std::thread;
use std::time::{Duration, Instant};
use tharsis_types::{Failure, FailureKind};

/// Time for which a task spins before it lends its slot.
const LEND_AFTER: Duration = Duration::from_micros(10);
/// With a timeout of 0, bytes that are in the local store but not mapped yet get this long.
const MAP_GRACE: Duration = Duration::from_millis(10);

/// The time to wait: seconds as a number, or a `Duration`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timeout(Limit);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    Bad(f64),
    For(Duration),
}

impl From<Duration> for Timeout {
    fn from(duration: Duration) -> Self {
        Self(Limit::For(duration))
    }
}

impl From<f64> for Timeout {
    fn from(seconds: f64) -> Self {
        match Duration::try_from_secs_f64(seconds) {
            Ok(duration) => Self(Limit::For(duration)),
            Err(_) if seconds > 0.0 => Self(Limit::For(Duration::MAX)),
            Err(_) => Self(Limit::Bad(seconds)),
        }
    }
}

impl Timeout {
    /// The end of the timeout; `None` if a clock cannot represent it.
    pub(crate) fn deadline(self) -> Result<Option<Instant>> {
        match self.0 {
            Limit::For(duration) => Ok(Instant::now().checked_add(duration)),
            Limit::Bad(seconds) => {
                Err(Error::argument(format!("a timeout of {seconds} s: it must be 0 or more")))
            }
        }
    }

    pub(crate) fn is_zero(self) -> bool {
        self.0 == Limit::For(Duration::ZERO)
    }
}

pub(crate) fn one<T: DeserializeOwned>(handle: &Arc<Handle>, timeout: Option<Timeout>) -> Result<T> {
    if timeout.is_some() || !handle.look(State::is_final) {
        settle(std::slice::from_ref(handle), timeout)?;
    }
    decode_now(handle)
}

/// Decodes the value of a handle that was final a moment ago: the node may have taken its bytes back
/// meanwhile.
pub(crate) fn decode_now<T: DeserializeOwned>(handle: &Arc<Handle>) -> Result<T> {
    loop {
        if let Some(decoded) = decode_final(handle) {
            return decoded;
        }
        settle(std::slice::from_ref(handle), None)?;
    }
}

/// Waits until every handle is final.
pub(crate) fn settle(handles: &[Arc<Handle>], timeout: Option<Timeout>) -> Result<()> {
    let deadline = timeout.map(Timeout::deadline).transpose()?.flatten();
    let Some(link) =
        handles.iter().find_map(|handle| handle.connection().map(|connection| Arc::clone(&connection.link)))
    else {
        return Ok(());
    };
    if timeout.is_some_and(Timeout::is_zero) {
        return settle_now(&link, handles);
    }
    for handle in handles {
        handle.fetch_if_ready();
    }
    let mut waiting = Waiting::new(&link);
    if waiting.is_cancelled() {
        return settle_now(&link, handles).map_err(|_| cancelled());
    }
    let outcome = handles.iter().try_for_each(|handle| settle_one(handle, &mut waiting, deadline, handles));
    waiting.end()?;
    outcome
}

/// Takes only local values: reads the ring once, and maps values of the local store.
fn settle_now(link: &Link, handles: &[Arc<Handle>]) -> Result<()> {
    link.drain();
    let asked: Vec<_> = handles.iter().map(|handle| handle.fetch_if_ready()).collect();
    let grace = Instant::now().checked_add(MAP_GRACE);
    for (handle, asked) in handles.iter().zip(asked) {
        if asked || handle.look(|state| matches!(state, State::Fetching)) {
            let mut condition = Condition {
                is_met: &mut || handle.look(State::is_final),
                subscribe: &mut || handle.watch(State::is_final, this_thread),
            };
            link.wait(&mut condition, grace);
        }
        if !handle.look(State::is_final) {
            return Err(timed_out(link, handles));
        }
    }
    Ok(())
}

fn settle_one(
    handle: &Arc<Handle>,
    waiting: &mut Waiting<'_>,
    deadline: Option<Instant>,
    all: &[Arc<Handle>],
) -> Result<()> {
    while !handle.look(State::is_final) {
        let link = handle.connection().map_or(waiting.link, |connection| &*connection.link);
        let mut condition = Condition {
            is_met: &mut || handle.look(State::has_moved),
            subscribe: &mut || handle.watch(State::has_moved, this_thread),
        };
        if !waiting.wait(link, &mut condition, deadline)? {
            return Err(if link.is_lost() { link.loss() } else { timed_out(waiting.link, all) });
        }
        handle.fetch_if_ready();
    }
    Ok(())
}

/// Waits until the task behind a handle has ended, with a value or without.
pub(crate) fn until_ready(handle: &Arc<Handle>, timeout: Option<Timeout>) -> Result<()> {
    let deadline = timeout.map(Timeout::deadline).transpose()?.flatten();
    let Some(connection) = handle.connection() else { return Ok(()) };
    let link = &connection.link;
    handle.ask_if_held();
    let mut waiting = Waiting::new(link);
    let mut condition = Condition {
        is_met: &mut || handle.look(State::is_ready),
        subscribe: &mut || handle.watch(State::is_ready, this_thread),
    };
    if timeout.is_some_and(Timeout::is_zero) {
        link.drain();
    }
    let outcome = waiting.wait(link, &mut condition, deadline);
    waiting.end()?;
    if outcome? {
        Ok(())
    } else if link.is_lost() {
        Err(link.loss())
    } else {
        Err(Error::new(FailureKind::GetTimeout, "the next item is not made in time"))
    }
}

fn this_thread() -> Waiter {
    Waiter::Thread(thread::current())
}

fn timed_out(link: &Link, handles: &[Arc<Handle>]) -> Error {
    let missing = handles.iter().filter(|handle| !handle.look(State::is_final)).count();
    let first = handles.iter().find(|handle| !handle.look(State::is_final));
    let name = first.map(|handle| handle.reference().object.to_string()).unwrap_or_default();
    let all = handles.len();
    let text = format!("{missing} of {all} values are not here in time, first {name}, at node {}", link.node);
    Error::new(FailureKind::GetTimeout, text)
}

/// Whether the task of this thread is cancelled, so that a future does not wait for a handle; else the
/// cancellation wakes it from now on.
pub(crate) fn is_cancelled_or_wakes(
    handle: &Handle,
    sleep: &mut Option<Sleep>,
    context: &Context<'_>,
) -> bool {
    let task = handle.connection().and_then(|connection| ended_with(&connection.link));
    let Some(task) = task else {
        *sleep = None;
        return false;
    };
    Sleep::renew(sleep, &task, context.waker());
    task.is_cancelled()
}

/// The task whose cancellation ends the waits of this thread. A thread of an actor that has entered no call
/// waits for itself: whatever call runs meanwhile has nothing to do with it.
pub(crate) fn ended_with(link: &Link) -> Option<Arc<TaskState>> {
    let is_own = own_task(link.serial).is_some();
    link.task().filter(|task| is_own || !task.is_call())
}

/// The error of a wait of a task that is cancelled.
pub(crate) fn cancelled() -> Error {
    Error::new(FailureKind::Cancelled, "the task that waits for the value was cancelled")
}

/// A wait, and the slot that a task lends meanwhile. A thread that a task has started waits like the task.
pub(crate) struct Waiting<'a> {
    link: &'a Link,
    /// Whether this thread belongs to a task, which lends its slot.
    is_task: bool,
    /// The task whose cancellation ends the wait.
    task: Option<Arc<TaskState>>,
    lent: Option<LentSlot>,
}

impl<'a> Waiting<'a> {
    pub(crate) fn new(link: &'a Link) -> Self {
        Self { link, is_task: link.task().is_some(), task: ended_with(link), lent: None }
    }

    fn is_cancelled(&self) -> bool {
        self.task.as_ref().is_some_and(|task| task.is_cancelled())
    }

    /// Waits for a condition; false if the deadline passed or the connection was lost first.
    ///
    /// # Errors
    /// `Cancelled` if the task that waits is; the loss of the connection.
    pub(crate) fn wait(
        &mut self,
        link: &Link,
        condition: &mut Condition<'_>,
        deadline: Option<Instant>,
    ) -> Result<bool> {
        if !self.is_task {
            return Ok(link.wait(condition, deadline));
        }
        let task = self.task.clone();
        let is_cancelled = || task.as_ref().is_some_and(|task| task.is_cancelled());
        // A thread that reads by itself hears of the cancellation as it comes.
        let mut sleep = None;
        let mut either = Condition {
            is_met: &mut || (condition.is_met)() || is_cancelled(),
            subscribe: &mut || {
                if sleep.is_none() {
                    sleep = task.as_ref().map(|task| task.sleep(Sleeper::Thread(thread::current())));
                }
                (condition.subscribe)() || is_cancelled()
            },
        };
        let is_over = self.wait_and_lend(link, &mut either, deadline)?;
        // Another thread may have acted on it meanwhile, so that it was met and is not.
        if is_over && is_cancelled() && !(condition.is_met)() {
            return Err(cancelled());
        }
        Ok(is_over)
    }

    fn wait_and_lend(
        &mut self,
        link: &Link,
        condition: &mut Condition<'_>,
        deadline: Option<Instant>,
    ) -> Result<bool> {
        if self.lent.is_none() {
            let soon = Instant::now() + LEND_AFTER;
            let is_last = deadline.is_some_and(|deadline| deadline <= soon);
            let is_over = link.wait(condition, Some(if is_last { deadline.unwrap_or(soon) } else { soon }));
            if is_over || is_last {
                return Ok(is_over);
            }
            self.lent = Some(self.link.lend_slot()?);
        }
        Ok(link.wait(condition, deadline))
    }

    /// Waits until the task has its slot again.
    pub(crate) fn end(self) -> Result<()> {
        self.lent.map_or(Ok(()), |lent| self.link.reclaim_slot(lent))
    }
}

/// Registers the task of `context` unless the handle is final; returns whether it is.
pub(crate) fn poll_final(handle: &Arc<Handle>, context: &Context<'_>) -> bool {
    handle.fetch_if_ready();
    handle.watch(State::is_final, || Waiter::Task(context.waker().clone()))
}

/// Decodes the value of a handle; `None` if it is not final.
pub(crate) fn decode_final<T: DeserializeOwned>(handle: &Arc<Handle>) -> Option<Result<T>> {
    let connection = handle.connection();
    match handle.state() {
        State::Inline(bytes) => Some(codec::decode(connection, &Payload::Inline(bytes))),
        State::Local { .. } => {
            let connection = connection?;
            let Some((extent, view)) = handle.view() else {
                // Unmapped meanwhile, to be fetched again; or returned to the node with the connection.
                let link = &connection.link;
                return link.is_lost().then(|| Err(link.loss()));
            };
            let mapped = Mapped::new(connection, extent, Arc::new(view));
            Some(mapped.and_then(|mapped| codec::decode(Some(connection), &Payload::Mapped(mapped))))
        }
        State::Failed(failure) => Some(Err(Error::shared(failure))),
        State::Held | State::Pending | State::Ready | State::Fetching => None,
    }
}

/// The failure of a reference that never reached a node.
pub(crate) fn early_failure(handle: &Handle) -> Option<Error> {
    if handle.connection().is_some() {
        return None;
    }
    let cause = match handle.state() {
        State::Failed(failure) => (*failure).clone(),
        _ => Failure::new(FailureKind::Internal, "a reference without a connection has no failure"),
    };
    let failure = Failure::new(FailureKind::DependencyFailed, "an argument could not be submitted");
    Some(failure.because(cause).into())
}
