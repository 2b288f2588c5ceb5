//! Tasks that still run although the time of their plans is over.
//!
//! A task ends at its next batch. One that does not come to it, as within a function of the program, has a
//! thread and memory that the bounds of other plans do not count; nothing can end it. The other threads of
//! its executor end with this.

use super::threads::{Counts, Threads};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Threads with tasks that were left behind, while their executor has them and later.
struct Left {
    threads: Weak<Threads>,
    counts: Arc<Counts>,
}

impl Left {
    fn tasks(&self) -> usize {
        self.threads.upgrade().map_or_else(|| self.counts.tasks(), |threads| threads.tasks())
    }
}

static LEFT: Mutex<Vec<Left>> = Mutex::new(Vec::new());

/// Leaves the tasks of these threads behind, if there are some.
pub(super) fn leave(threads: &Arc<Threads>) {
    let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
    left.retain(|known| 0 < known.tasks() && !Arc::ptr_eq(&known.counts, &threads.counts));
    if 0 < threads.tasks() {
        left.push(Left { threads: Arc::downgrade(threads), counts: Arc::clone(&threads.counts) });
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
    left.iter().map(Left::tasks).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    /// Waits for this number of tasks that run.
    fn wait_for(left: &Left, tasks: usize) {
        let end = Instant::now() + Duration::from_secs(30);
        while left.tasks() != tasks {
            assert!(Instant::now() < end, "{} tasks are left, not {tasks}", left.tasks());
            std::thread::yield_now();
        }
    }

    #[test]
    fn threads_without_a_task_end_and_those_with_one_are_counted() {
        let threads = Arc::new(Threads::new(8).expect("threads"));
        let left = Left { threads: Arc::downgrade(&threads), counts: Arc::clone(&threads.counts) };
        let ((entered, inside), (end, wait)) = (mpsc::channel(), mpsc::channel::<()>());
        threads.handle().expect("threads").spawn(async move {
            entered.send(()).expect("somebody waits");
            let _ended = wait.recv();
        });
        inside.recv().expect("a task that runs");
        assert_eq!(left.tasks(), 1);
        drop(threads);
        assert!(left.threads.upgrade().is_none());
        // One of eight is left; before the others have ended, the task is still one.
        assert_eq!(left.tasks(), 1);
        let time = Instant::now() + Duration::from_secs(30);
        while 1 < left.counts.alive() {
            assert!(Instant::now() < time, "seven threads end");
            std::thread::yield_now();
        }
        assert_eq!((left.tasks(), left.counts.alive()), (1, 1));
        drop(end);
        wait_for(&left, 0);
    }
}
