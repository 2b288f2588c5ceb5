//! The task of a thread, and the numbers of its calls and puts.

use crate::error::{Error, Result};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use tharsis_types::{Attempt, ObjectId, TaskClass, TaskId};

/// A running task, or the root task of a driver's threads.
pub(crate) struct TaskState {
    pub(crate) task: TaskId,
    pub(crate) attempt: Attempt,
    /// Number of the start; `None` for a root.
    pub(crate) slot: Option<u32>,
    pub(crate) class: Option<Arc<TaskClass>>,
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
        class: Option<Arc<TaskClass>>,
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

    /// The number of the next call of this task.
    pub(crate) fn next_child_number(&self) -> u64 {
        self.children.fetch_add(1, Ordering::Relaxed)
    }

    /// The number of the next value that this task puts.
    ///
    /// # Errors
    /// `InvalidArgument` if it has put the largest allowed number of values.
    pub(crate) fn next_put_number(&self) -> Result<u32> {
        let count = self.puts.fetch_add(1, Ordering::Relaxed);
        if count < ObjectId::PUT_BASE {
            Ok(count)
        } else {
            // Stays at the bound; the numbers up to the wrap are enough for concurrent calls.
            self.puts.store(ObjectId::PUT_BASE, Ordering::Relaxed);
            Err(Error::argument(format!("a task cannot put more than {} values", ObjectId::PUT_BASE)))
        }
    }
}

thread_local! {
    /// The task that runs on this thread, and the serial number of its link.
    static TASK: RefCell<Option<(u32, Arc<TaskState>)>> = const { RefCell::new(None) };
}

/// Whether this thread runs a task.
#[must_use]
pub fn is_in_task() -> bool {
    TASK.with_borrow(Option::is_some)
}

/// The task that runs on this thread for the link with this serial number.
pub(crate) fn own_task(serial: u32) -> Option<Arc<TaskState>> {
    TASK.with_borrow(|task| task.as_ref().filter(|(of, _)| *of == serial).map(|(_, state)| Arc::clone(state)))
}

/// The task that runs on this thread, for any client.
pub(crate) fn any_own_task() -> Option<Arc<TaskState>> {
    TASK.with_borrow(|task| task.as_ref().map(|(_, state)| Arc::clone(state)))
}

/// Sets the task of this thread and returns the previous one.
pub(crate) fn replace_task(task: Option<(u32, Arc<TaskState>)>) -> Option<(u32, Arc<TaskState>)> {
    TASK.with_borrow_mut(|slot| std::mem::replace(slot, task))
}
