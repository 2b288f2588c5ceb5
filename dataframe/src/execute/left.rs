//! Tasks that still run although the time of their plans is over.
//!
//! A task ends at its next batch. One that does not come to it, as within a function of the program, has a
//! thread and memory that the bounds of other plans do not count; nothing can end it.

use std::sync::{Arc, Mutex, PoisonError};

/// Threads with tasks.
pub(super) trait Runs: Send + Sync {
    /// Number of tasks that have not ended.
    fn tasks(&self) -> usize;
}

/// Threads with tasks that were left behind. They are kept until these have ended: threads that are let go do
/// not count them.
static LEFT: Mutex<Vec<Arc<dyn Runs>>> = Mutex::new(Vec::new());

/// Leaves the tasks of these threads behind, if there are some.
pub(super) fn leave(threads: Arc<dyn Runs>) {
    let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
    left.retain(|known| 0 < known.tasks() && !Arc::ptr_eq(known, &threads));
    if 0 < threads.tasks() {
        left.push(threads);
    }
}

/// Number of tasks of this process that still run although the time of their plans is over. Each has a
/// thread, and memory that the bounds of other plans do not count.
///
/// ```
/// assert_eq!(tharsis_dataframe::tasks_left_behind(), 0);
/// ```
#[must_use]
pub fn tasks_left_behind() -> usize {
    let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
    left.retain(|threads| 0 < threads.tasks());
    left.iter().map(|threads| threads.tasks()).sum()
}
