//! Futures of tasks: their runtime, and the slot that a task lends while it awaits.

use crate::error::{Error, Result};
use crate::link::{LentSlot, Link};
use crate::task::own_task;
use std::cell::{Cell, RefCell};

thread_local! {
    static RUNTIME: RefCell<Option<tokio::runtime::Runtime>> = const { RefCell::new(None) };
    /// References that futures on this thread await.
    static AWAITED: Cell<usize> = const { Cell::new(0) };
    /// The slot of this thread's task, lent while it awaits.
    static LENT: Cell<Option<LentSlot>> = const { Cell::new(None) };
}

/// Runs a future of the running task to its end, on a runtime that this thread keeps.
pub(crate) fn block_on<F: Future>(link: &Link, future: F) -> Result<F::Output> {
    // Taken while in use, so that a panic in the future does not leave it borrowed.
    let runtime = match RUNTIME.take() {
        Some(runtime) => runtime,
        None => tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|cause| Error::internal(format!("cannot start an async runtime: {cause}")))?,
    };
    let mut future = std::pin::pin!(future);
    let output = runtime.block_on(std::future::poll_fn(|context| {
        let polled = future.as_mut().poll(context);
        if polled.is_pending() && AWAITED.get() > 0 && link.is_worker && LENT.get().is_none() {
            // If the connection is gone, the awaited references fail and the future continues.
            LENT.set(link.lend_slot().ok());
        }
        polled
    }));
    RUNTIME.set(Some(runtime));
    Ok(output)
}

/// Notes that a future of this thread begins to wait for a reference.
pub(crate) fn enter_await() {
    AWAITED.set(AWAITED.get() + 1);
}

/// Notes that a future of this thread ends its wait; a task that lent its slot takes it back.
pub(crate) fn leave_await(link: &Link) {
    AWAITED.set(AWAITED.get().saturating_sub(1));
    if own_task(link.serial).is_some()
        && let Some(lent) = LENT.take()
    {
        let _ = link.reclaim_slot(lent);
    }
}
