//! Which client and which task the current thread works for.
//!
//! A program normally has one client, made by `init` or by the worker loop: the *global* one. A thread can be
//! bound to another one, so that several runtimes live in one process; the threads of embedded workers are.

use crate::client::Client;
use crate::error::{Error, Result};
use crate::worker::RunClass;
use parking_lot::RwLock;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use tharsis_types::{Attempt, ObjectId, TaskId};

/// A task that runs, or the root that a driver's threads work for.
pub(crate) struct TaskState {
    pub(crate) task: TaskId,
    pub(crate) attempt: Attempt,
    /// Number of the start; `None` for a root.
    pub(crate) slot: Option<u32>,
    pub(crate) class: Option<Arc<RunClass>>,
    pub(crate) is_cancelled: AtomicBool,
    children: AtomicU64,
    puts: AtomicU32,
}

impl TaskState {
    pub(crate) fn root(task: TaskId) -> Self {
        Self::new(task, 0, None, None)
    }

    pub(crate) fn new(
        task: TaskId,
        attempt: Attempt,
        slot: Option<u32>,
        class: Option<Arc<RunClass>>,
    ) -> Self {
        let is_cancelled = AtomicBool::new(false);
        Self {
            task,
            attempt,
            slot,
            class,
            is_cancelled,
            children: AtomicU64::new(0),
            puts: AtomicU32::new(0),
        }
    }

    fn next_child_number(&self) -> u64 {
        self.children.fetch_add(1, Ordering::Relaxed)
    }

    fn next_put_number(&self) -> Result<u32> {
        let count = self.puts.fetch_add(1, Ordering::Relaxed);
        if count < ObjectId::PUT_BASE {
            Ok(count)
        } else {
            // Stays above the bound: there are more than enough numbers left up to the wrap.
            self.puts.store(ObjectId::PUT_BASE, Ordering::Relaxed);
            Err(Error::argument(format!("a task cannot put more than {} values", ObjectId::PUT_BASE)))
        }
    }
}

static GLOBAL: RwLock<Option<Client>> = RwLock::new(None);
/// Changes with the global client, so that threads can keep a copy.
static VERSION: AtomicU64 = AtomicU64::new(1);

thread_local! {
    static BOUND: RefCell<Vec<Client>> = const { RefCell::new(Vec::new()) };
    static COPY: RefCell<(u64, Option<Client>)> = const { RefCell::new((0, None)) };
    static TASK: RefCell<Option<(u32, Arc<TaskState>)>> = const { RefCell::new(None) };
}

/// Whether this thread runs a task.
#[must_use]
pub fn is_in_task() -> bool {
    TASK.with_borrow(Option::is_some)
}

/// The client that this thread works for.
///
/// # Errors
/// `Shutdown` if there is none.
pub fn current() -> Result<Client> {
    if let Some(client) = BOUND.with_borrow(|bound| bound.last().cloned()) {
        return Ok(client);
    }
    COPY.with_borrow_mut(|(version, copy)| {
        let now = VERSION.load(Ordering::Acquire);
        if *version != now {
            *copy = GLOBAL.read().clone();
            *version = now;
        }
        copy.clone().ok_or_else(Error::not_started)
    })
}

/// Makes `client` the one of all threads that are not bound to another; `None` takes it away.
pub fn set_global(client: Option<Client>) {
    *GLOBAL.write() = client;
    VERSION.fetch_add(1, Ordering::Release);
}

/// Takes `client` away if it is the global one.
pub fn unset_global(client: &Client) {
    let mut global = GLOBAL.write();
    if global.as_ref().is_some_and(|known| known.is_same(client)) {
        *global = None;
        VERSION.fetch_add(1, Ordering::Release);
    }
}

/// Binds the current thread to a client until the answer is dropped. Bindings nest.
#[must_use = "the binding ends when this is dropped"]
pub fn bind(client: Client) -> Binding {
    BOUND.with_borrow_mut(|bound| bound.push(client));
    Binding { not_send: std::marker::PhantomData }
}

/// A thread's binding to a client.
#[derive(Debug)]
pub struct Binding {
    not_send: std::marker::PhantomData<*const ()>,
}

impl Drop for Binding {
    fn drop(&mut self) {
        let _ = self.not_send;
        let client = BOUND.with_borrow_mut(Vec::pop);
        drop(client);
    }
}

/// The task that runs on this very thread for `client`.
pub(crate) fn own_task(client: &Client) -> Option<Arc<TaskState>> {
    let serial = client.core().serial;
    TASK.with_borrow(|task| task.as_ref().filter(|(of, _)| *of == serial).map(|(_, state)| Arc::clone(state)))
}

/// The id of a call of this thread, whose function and arguments hash to `content`.
///
/// A task may run again, and its calls then come in another order, or are other calls: they are named by
/// content as well. Calls of other threads are numbered by the process. Nobody can tell which task such a
/// thread works for, or whether that has ended, and it must not take numbers away from the task that runs.
pub(crate) fn next_child(client: &Client, content: impl FnOnce() -> u128) -> TaskId {
    match repeatable_task(client) {
        Some(state) => state.task.call(state.next_child_number(), content()),
        None => {
            let root = &client.core().root;
            root.task.child(root.next_child_number())
        }
    }
}

/// The id of a value that this thread puts. A task that runs again and puts the same gets the same id if
/// there is a hash of the value; without one, the value gets an id that nothing else ever has.
pub(crate) fn next_put(client: &Client, content: impl FnOnce() -> Option<u128>) -> Result<ObjectId> {
    if let Some(state) = repeatable_task(client)
        && let Some(content) = content()
    {
        let number = state.next_put_number()?;
        return Ok(ObjectId::put(state.task.call(u64::from(number), content), number));
    }
    let root = &client.core().root;
    Ok(ObjectId::put(root.task, root.next_put_number()?))
}

/// The task whose code this thread runs, which may run again elsewhere. A driver runs none: the path of most
/// submissions.
fn repeatable_task(client: &Client) -> Option<Arc<TaskState>> {
    if client.core().is_worker { own_task(client) } else { None }
}

/// The task that this thread works for: its own, else the one that the client runs, else the client's root.
pub(crate) fn task(client: &Client) -> Arc<TaskState> {
    let core = client.core();
    // A driver runs no tasks: the path of most submissions.
    let task = if core.is_worker { own_task(client).or_else(|| core.desk.running()) } else { None };
    task.unwrap_or_else(|| Arc::clone(&core.root))
}

/// The task that runs on this thread, whatever its client.
pub(crate) fn any_own_task() -> Option<Arc<TaskState>> {
    TASK.with_borrow(|task| task.as_ref().map(|(_, state)| Arc::clone(state)))
}

/// Sets the task of this thread and returns the one before.
pub(crate) fn replace_task(task: Option<(u32, Arc<TaskState>)>) -> Option<(u32, Arc<TaskState>)> {
    TASK.with_borrow_mut(|slot| std::mem::replace(slot, task))
}
