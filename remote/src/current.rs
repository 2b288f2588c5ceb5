//! The client and the task that the current thread works for.
//!
//! A program normally has one client, made by `init` or by the worker loop: the *global* one. A thread can be
//! bound to another one, so that several runtimes live in one process; the threads of embedded workers are.

use crate::client::Client;
use crate::error::{Error, Result};
use crate::settle;
use crate::task::{TaskState, own_task, own_task_has_ended};
use parking_lot::RwLock;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tharsis_types::{FailureKind, ObjectId, TaskId};

pub use crate::task::is_in_task;

/// Text of the error of a thread that goes on for a task which has ended.
const TASK_ENDED: &str = "the task that this thread has entered has ended";

static GLOBAL: RwLock<Option<Client>> = RwLock::new(None);
/// Version of the global client, by which threads know whether their copy is current.
static VERSION: AtomicU64 = AtomicU64::new(1);

thread_local! {
    static BOUND: RefCell<Vec<Client>> = const { RefCell::new(Vec::new()) };
    static COPY: RefCell<(u64, Option<Client>)> = const { RefCell::new((0, None)) };
}

/// The client that this thread works for.
///
/// # Errors
/// `Shutdown` if there is none, `Cancelled` if the thread has [entered](crate::Context::enter) a task that
/// has ended.
pub fn current() -> Result<Client> {
    if own_task_has_ended() {
        return Err(Error::new(FailureKind::Cancelled, TASK_ENDED));
    }
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

/// Whether the task of this thread is cancelled, or has ended: it waits for nothing any more.
pub(crate) fn is_task_cancelled() -> bool {
    let task = || current().ok().and_then(|client| settle::ended_with(client.link()));
    own_task_has_ended() || task().is_some_and(|task| task.is_cancelled())
}

/// Makes `client` the global one, for all threads that are not bound to another; `None` removes it.
pub fn set_global(client: Option<Client>) {
    *GLOBAL.write() = client;
    VERSION.fetch_add(1, Ordering::Release);
}

/// Removes `client` if it is the global one.
pub fn unset_global(client: &Client) {
    let mut global = GLOBAL.write();
    if global.as_ref().is_some_and(|known| known.is_same(client)) {
        *global = None;
        VERSION.fetch_add(1, Ordering::Release);
    }
}

/// Binds the current thread to a client until the returned value is dropped. Bindings nest.
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

/// The id of a call of this thread, whose function and arguments hash to `content`.
///
/// A task may run again, and its calls may then come in another order, or be different ones. So their ids
/// contain a hash of their content too. Calls of other threads are numbered by the process: the task of such
/// a thread is unknown and may have ended, and the thread must not take numbers of the running task.
pub(crate) fn next_child(client: &Client, content: impl FnOnce() -> u128) -> TaskId {
    match repeatable_task(client) {
        Some(state) => state.next_call(client.job(), content()),
        None => {
            let root = client.root();
            root.task.child(root.next_child_number())
        }
    }
}

/// The id of a value that this thread puts. A task that runs again and puts the same value gets the same id
/// if the value is hashed; otherwise the value gets a unique id.
pub(crate) fn next_put(client: &Client, content: impl FnOnce() -> Option<u128>) -> ObjectId {
    if let Some(state) = repeatable_task(client)
        && let Some(content) = content()
    {
        return state.next_hashed_put(client.job(), content);
    }
    client.root().next_put()
}

/// The task that this thread runs and that may run again elsewhere. A driver runs none, and most submissions
/// come from drivers.
fn repeatable_task(client: &Client) -> Option<Arc<TaskState>> {
    let link = client.link();
    if link.is_worker { own_task(link.serial) } else { None }
}

/// The run of this thread, if its worker runs several at the same time: its node cannot know which of them
/// calls something.
pub(crate) fn run_beside_others(client: &Client) -> Option<u32> {
    if !client.link().is_worker {
        return None;
    }
    client.work().groups()?;
    task(client).slot
}

/// The task of this thread: the one that it runs, else the one that the client runs, else the client's root.
pub(crate) fn task(client: &Client) -> Arc<TaskState> {
    // A driver runs no tasks; most submissions come from drivers.
    let task = if client.link().is_worker { client.work().task_of_thread(client.link()) } else { None };
    task.unwrap_or_else(|| Arc::clone(client.root()))
}
