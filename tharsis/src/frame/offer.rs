//! The default executor of a thread's frames, that of the thread's runtime.

use super::RemoteExecutor;
use super::kept::is_same;
use crate::runtime::Runtime;
use std::sync::{Arc, PoisonError, RwLock};
use tharsis_dataframe::Executor;
use tharsis_remote::{Client, current};

/// Executors of the runtimes that are active in this process.
static ACTIVE: RwLock<Vec<Arc<RemoteExecutor>>> = RwLock::new(Vec::new());

/// Registers the executor of a runtime that has started.
pub(crate) fn enter(runtime: &Runtime) {
    tharsis_dataframe::offer_executor(offer);
    let executor = Arc::new(RemoteExecutor::new(runtime));
    ACTIVE.write().unwrap_or_else(PoisonError::into_inner).push(executor);
}

/// Removes the executor of a runtime that ends.
pub(crate) fn leave(client: &Client) {
    ACTIVE
        .write()
        .unwrap_or_else(PoisonError::into_inner)
        .retain(|executor| !is_same(&executor.client, client));
}

/// The executor of the current thread's runtime; `None` in a task, which computes its frames itself.
fn offer() -> Option<Arc<dyn Executor>> {
    let client = current::current().ok()?;
    let active = ACTIVE.read().unwrap_or_else(PoisonError::into_inner);
    let executor = active.iter().find(|executor| is_same(&executor.client, &client))?;
    Some(executor.clone())
}
