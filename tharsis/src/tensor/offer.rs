//! Default executor of the tensors of a thread: that of the thread's runtime.

use super::RemoteExecutor;
use super::kept::is_same;
use crate::runtime::Runtime;
use std::sync::{Arc, PoisonError, RwLock};
use tharsis_graph::Executor;
use tharsis_remote::{Client, current};

/// Executors of the runtimes that are active in this process.
static ACTIVE: RwLock<Vec<Arc<RemoteExecutor>>> = RwLock::new(Vec::new());

/// A runtime has started.
pub(crate) fn enter(runtime: &Runtime) {
    tharsis_numeric::offer_executor(offer);
    let executor = Arc::new(RemoteExecutor::new(runtime));
    ACTIVE.write().unwrap_or_else(PoisonError::into_inner).push(executor);
}

/// A runtime ends.
pub(crate) fn leave(client: &Client) {
    ACTIVE
        .write()
        .unwrap_or_else(PoisonError::into_inner)
        .retain(|executor| !is_same(&executor.client, client));
}

/// The executor of the current thread's runtime. There is none in a task: it computes its tensors itself.
fn offer() -> Option<Arc<dyn Executor>> {
    let client = current::current().ok()?;
    let active = ACTIVE.read().unwrap_or_else(PoisonError::into_inner);
    let executor = active.iter().find(|executor| is_same(&executor.client, &client))?;
    Some(executor.clone())
}
