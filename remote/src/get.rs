//! Reading values: `get`, `get` of many, `wait`, and the same for `.await`.
//!
//! A blocking call first looks at what is here, then asks the node for bytes that exist elsewhere, then
//! waits. A task that waits lends its slot: after a short spin (its child may be done in a moment) it reports
//! itself blocked and hands back tasks that it was sent ahead, and before it goes on it asks for its slot
//! again.

use crate::client::{Client, Core};
use crate::codec::{self, Payload};
use crate::current;
use crate::error::{Error, Result};
use crate::handles::{Handle, State, Waiter};
use crate::memory::Mapped;
use crate::pump::Wish;
use crate::reference::ObjectRef;
use crate::worker::Loan;
use serde::de::DeserializeOwned;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering};
use std::task::Context;
use std::thread;
use std::time::{Duration, Instant};
use tharsis_protos::records::FromClient;
use tharsis_types::{Failure, FailureKind, NodeId};

/// A task spins this long before it lends its slot.
const LEND_AFTER: Duration = Duration::from_micros(10);
/// With a timeout of 0, bytes that are in the local store but not mapped yet get this long.
const MAP_GRACE: Duration = Duration::from_millis(10);

/// How long to wait: seconds as a number, or a `Duration`.
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
    /// The moment it ends; `None` if that is beyond what a clock can say.
    fn deadline(self) -> Result<Option<Instant>> {
        match self.0 {
            Limit::For(duration) => Ok(Instant::now().checked_add(duration)),
            Limit::Bad(seconds) => {
                Err(Error::argument(format!("a timeout of {seconds} s: it must be 0 or more")))
            }
        }
    }

    fn is_zero(self) -> bool {
        self.0 == Limit::For(Duration::ZERO)
    }
}

/// References that are ready, and the others.
pub type Parted<T> = (Vec<ObjectRef<T>>, Vec<ObjectRef<T>>);

/// How [`wait`] waits; `Wait::default()` waits for one reference, without end, and starts to fetch bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wait {
    /// How many references must be ready.
    pub num_returns: usize,
    /// How long to wait at most.
    pub timeout: Option<Timeout>,
    /// Whether to start fetching the bytes of what is ready.
    pub fetch: bool,
}

impl Default for Wait {
    fn default() -> Self {
        Self { num_returns: 1, timeout: None, fetch: true }
    }
}

/// Waits for several values and reads them, in order.
///
/// # Errors
/// The first failure in order; `GetTimeout` and `InvalidArgument` as for [`ObjectRef::get_timeout`].
pub fn get_all<T: DeserializeOwned>(references: &[ObjectRef<T>], timeout: Option<Timeout>) -> Result<Vec<T>> {
    let handles: Vec<_> = references.iter().map(|reference| Arc::clone(reference.handle())).collect();
    settle(&handles, timeout)?;
    handles.iter().map(|handle| decode_now(handle)).collect()
}

/// Waits until some references are ready, and parts them into ready and not ready, both in their given order.
///
/// A reference is ready when its task has ended, with a value or without. At most `num_returns` are reported
/// ready.
///
/// # Errors
/// `InvalidArgument` for a reference given twice, for more `num_returns` than references, for a bad timeout;
/// the loss of the connection. Running out of time is no error: fewer are ready then.
pub fn wait<T>(references: &[ObjectRef<T>], options: Wait) -> Result<Parted<T>> {
    if options.num_returns > references.len() {
        let (wanted, given) = (options.num_returns, references.len());
        return Err(Error::argument(format!("num_returns is {wanted}, with {given} references")));
    }
    let mut seen = HashSet::with_capacity(references.len());
    if let Some(twice) = references.iter().find(|reference| !seen.insert(reference.id())) {
        return Err(Error::argument(format!("{twice:?} is given twice")));
    }
    let handles: Vec<_> = references.iter().map(|reference| Arc::clone(reference.handle())).collect();
    wait_for_count(&handles, options)?;
    let mut ready = Vec::with_capacity(options.num_returns);
    let mut rest = Vec::with_capacity(references.len() - options.num_returns);
    for reference in references {
        if ready.len() < options.num_returns && reference.handle().look(State::is_ready) {
            if options.fetch {
                reference.handle().fetch_if_ready();
            }
            ready.push(reference.clone());
        } else {
            rest.push(reference.clone());
        }
    }
    Ok((ready, rest))
}

/// The nodes that hold the value, as far as this client's node knows: none while there is no value, the owner
/// for a value small enough to stay with it, otherwise those with a copy in their store. A node knows all
/// copies of what it owns, and of what it borrows those that its owner last told of.
///
/// # Errors
/// The loss of the connection.
pub fn locations<T>(reference: &ObjectRef<T>) -> Result<Vec<NodeId>> {
    let Some(client) = reference.handle().client() else { return Ok(Vec::new()) };
    let answers = &client.core().locations;
    let request = answers.expect();
    client.send(&FromClient::Locate { request, reference: reference.id() })?;
    answers.take(client.core(), request)
}

/// Stops the task behind a reference.
///
/// A waiting task is removed, a running one is told (see [`crate::Context::is_cancelled`]) or, with `force`,
/// its worker is killed; `recursive` does the same to the tasks it submitted. A task that has ended is left
/// alone.
///
/// # Errors
/// The loss of the connection.
pub fn cancel<T>(reference: &ObjectRef<T>, force: bool, recursive: bool) -> Result<()> {
    match reference.handle().client() {
        Some(client) => client.send(&FromClient::Cancel { reference: reference.id(), force, recursive }),
        None => Ok(()),
    }
}

pub(crate) fn one<T: DeserializeOwned>(handle: &Arc<Handle>, timeout: Option<Timeout>) -> Result<T> {
    if timeout.is_some() || !handle.look(State::is_final) {
        settle(std::slice::from_ref(handle), timeout)?;
    }
    decode_now(handle)
}

/// Decodes the value of a handle that was final a moment ago: the node may have wanted its bytes back
/// meanwhile.
fn decode_now<T: DeserializeOwned>(handle: &Arc<Handle>) -> Result<T> {
    loop {
        if let Some(decoded) = decode_final(handle) {
            return decoded;
        }
        settle(std::slice::from_ref(handle), None)?;
    }
}

/// Waits until every handle is final.
fn settle(handles: &[Arc<Handle>], timeout: Option<Timeout>) -> Result<()> {
    let deadline = timeout.map(Timeout::deadline).transpose()?.flatten();
    let Some(client) = handles.iter().find_map(|handle| handle.client().cloned()) else { return Ok(()) };
    if timeout.is_some_and(Timeout::is_zero) {
        return settle_now(&client, handles);
    }
    for handle in handles {
        handle.fetch_if_ready();
    }
    let mut waiting = Waiting::new(&client);
    let outcome = handles.iter().try_for_each(|handle| settle_one(handle, &mut waiting, deadline, handles));
    waiting.end()?;
    outcome
}

/// Takes only what is here: reads the ring once, and maps what lies in the local store.
fn settle_now(client: &Client, handles: &[Arc<Handle>]) -> Result<()> {
    client.core().drain();
    let asked: Vec<_> = handles.iter().map(|handle| handle.fetch_if_ready()).collect();
    let grace = Instant::now().checked_add(MAP_GRACE);
    for (handle, asked) in handles.iter().zip(asked) {
        if asked || handle.look(|state| matches!(state, State::Fetching)) {
            let mut wish = Wish {
                is_true: &mut || handle.look(State::is_final),
                subscribe: &mut || handle.watch(State::is_final, this_thread),
            };
            client.core().wait(&mut wish, grace);
        }
        if !handle.look(State::is_final) {
            return Err(timed_out(client, handles));
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
        let core = handle.client().unwrap_or(waiting.client).core();
        let mut wish = Wish {
            is_true: &mut || handle.look(State::has_moved),
            subscribe: &mut || handle.watch(State::has_moved, this_thread),
        };
        if !waiting.wait(core, &mut wish, deadline)? {
            return Err(if core.is_lost() { core.loss() } else { timed_out(waiting.client, all) });
        }
        handle.fetch_if_ready();
    }
    Ok(())
}

fn this_thread() -> Waiter {
    Waiter::Thread(thread::current())
}

fn timed_out(client: &Client, handles: &[Arc<Handle>]) -> Error {
    let missing = handles.iter().filter(|handle| !handle.look(State::is_final)).count();
    let first = handles.iter().find(|handle| !handle.look(State::is_final));
    let name = first.map(|handle| handle.reference().object.to_string()).unwrap_or_default();
    let all = handles.len();
    let text =
        format!("{missing} of {all} values are not here in time, first {name}, at node {}", client.node());
    Error::new(FailureKind::GetTimeout, text)
}

/// Waits until `num_returns` handles are ready or the time is over.
fn wait_for_count(handles: &[Arc<Handle>], options: Wait) -> Result<()> {
    let deadline = options.timeout.map(Timeout::deadline).transpose()?.flatten();
    let Some(client) = handles.iter().find_map(|handle| handle.client().cloned()) else { return Ok(()) };
    handles.iter().for_each(|handle| handle.ask_if_held());
    client.core().drain();
    let is_ready = |handle: &&Arc<Handle>| handle.look(State::is_ready);
    let missing = options.num_returns.saturating_sub(handles.iter().filter(is_ready).count());
    if missing == 0 || options.timeout.is_some_and(Timeout::is_zero) {
        return Ok(());
    }
    let counter = Arc::new(Counter { left: AtomicIsize::new(0), thread: thread::current() });
    let mut ready = 0;
    for handle in handles {
        if handle.watch(State::is_ready, || Waiter::Counter(Arc::clone(&counter))) {
            ready += 1;
        }
    }
    // What changed meanwhile has counted down already; the sum is right in any order.
    counter.left.fetch_add(options.num_returns.saturating_sub(ready) as isize, Ordering::SeqCst);
    let is_enough = || counter.left.load(Ordering::SeqCst) <= 0;
    let mut waiting = Waiting::new(&client);
    let mut wish = Wish { is_true: &mut || is_enough(), subscribe: &mut || is_enough() };
    let outcome = waiting.wait(client.core(), &mut wish, deadline);
    handles.iter().for_each(|handle| handle.unwatch(&counter));
    waiting.end()?;
    match outcome {
        Ok(false) if client.core().is_lost() => Err(client.core().loss()),
        other => other.map(|_| ()),
    }
}

/// Counts handles that became ready, and wakes its thread when they are enough.
pub(crate) struct Counter {
    left: AtomicIsize,
    thread: thread::Thread,
}

impl Counter {
    pub(crate) fn count_down(&self) {
        if self.left.fetch_sub(1, Ordering::SeqCst) <= 1 {
            self.thread.unpark();
        }
    }
}

/// A wait, and the slot that a task lends for its time. A thread that a task has started waits like the task.
struct Waiting<'a> {
    client: &'a Client,
    is_task: bool,
    loan: Option<Loan>,
}

impl<'a> Waiting<'a> {
    fn new(client: &'a Client) -> Self {
        let is_task = client.core().is_worker && current::task(client).slot.is_some();
        Self { client, is_task, loan: None }
    }

    fn wait(&mut self, core: &Core, wish: &mut Wish<'_>, deadline: Option<Instant>) -> Result<bool> {
        if self.is_task && self.loan.is_none() {
            let soon = Instant::now() + LEND_AFTER;
            let is_last = deadline.is_some_and(|deadline| deadline <= soon);
            if core.wait(wish, Some(if is_last { deadline.unwrap_or(soon) } else { soon })) || is_last {
                return Ok((wish.is_true)());
            }
            self.loan = Some(self.client.core().lend_slot()?);
        }
        Ok(core.wait(wish, deadline))
    }

    /// Waits until the task has its slot again.
    fn end(self) -> Result<()> {
        self.loan.map_or(Ok(()), |loan| self.client.core().reclaim_slot(loan))
    }
}

/// Registers the task of `context` unless the handle is final; says whether it is.
pub(crate) fn poll_final(handle: &Arc<Handle>, context: &Context<'_>) -> bool {
    handle.fetch_if_ready();
    handle.watch(State::is_final, || Waiter::Task(context.waker().clone()))
}

/// Decodes the value of a handle; `None` if it is not final.
pub(crate) fn decode_final<T: DeserializeOwned>(handle: &Arc<Handle>) -> Option<Result<T>> {
    let client = handle.client();
    match handle.state() {
        State::Inline(bytes) => Some(codec::decode(client, &Payload::Inline(bytes))),
        State::Local { .. } => {
            let client = client?;
            let Some((extent, view)) = handle.view() else {
                // Let go of meanwhile, to be fetched again; or given back with the connection.
                return client.core().is_lost().then(|| Err(client.core().loss()));
            };
            let mapped = Mapped::new(client, extent, Arc::new(view));
            Some(mapped.and_then(|mapped| codec::decode(Some(client), &Payload::Mapped(mapped))))
        }
        State::Failed(failure) => Some(Err(Error::shared(failure))),
        State::Held | State::Pending | State::Ready | State::Fetching => None,
    }
}

/// The failure of a reference that never reached a node.
pub(crate) fn early_failure(handle: &Handle) -> Option<Error> {
    if handle.client().is_some() {
        return None;
    }
    let cause = match handle.state() {
        State::Failed(failure) => (*failure).clone(),
        _ => Failure::new(FailureKind::Internal, "a reference without a client has no failure"),
    };
    let failure = Failure::new(FailureKind::DependencyFailed, "an argument could not be submitted");
    Some(failure.because(cause).into())
}
