//! Count of the readers and writers of the node's memory through a client.
//!
//! The node gives the memory of a client to others only when the client reports that it is unused, or when
//! its process is gone. So values outlive the runtime that they came from, and code that still runs after its
//! worker was given up writes to memory that is still its own. The connection counts as one use; after it and
//! all other uses have ended, no new one can begin.

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

type Action = Box<dyn FnOnce() + Send>;

/// The uses of one client.
pub(crate) struct Uses {
    count: AtomicUsize,
    /// Actions to run when the last use has ended.
    at_end: Mutex<Vec<Action>>,
}

/// One use; it ends when this is dropped.
pub struct Use(Arc<Uses>);

impl Uses {
    /// The uses of a new client, and the use of its connection.
    pub(crate) fn new() -> (Arc<Self>, Use) {
        let uses = Arc::new(Self { count: AtomicUsize::new(1), at_end: Mutex::default() });
        (Arc::clone(&uses), Use(uses))
    }

    /// Begins a use; `None` if all have ended.
    #[inline]
    pub(crate) fn begin(self: &Arc<Self>) -> Option<Use> {
        let one_more = |count: usize| count.checked_add(1).filter(|_| count > 0);
        self.count.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).ok()?;
        Some(Use(Arc::clone(self)))
    }

    /// Runs `action` once when all uses have ended; at once if they have already.
    pub(crate) fn at_end(&self, action: Action) {
        self.at_end.lock().push(action);
        if self.count.load(Ordering::Acquire) == 0 {
            self.run_actions();
        }
    }

    fn run_actions(&self) {
        let actions = std::mem::take(&mut *self.at_end.lock());
        actions.into_iter().for_each(|action| action());
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.run_actions();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_comes_once_and_with_the_last_use() {
        let (uses, connection) = Uses::new();
        let ends = Arc::new(AtomicUsize::new(0));
        let count = |ends: &Arc<AtomicUsize>| {
            let ends = Arc::clone(ends);
            Box::new(move || {
                let _before = ends.fetch_add(1, Ordering::SeqCst);
            })
        };
        uses.at_end(count(&ends));
        let view = uses.begin().unwrap();
        drop(connection);
        let other = uses.begin().unwrap();
        drop((view, uses.begin()));
        assert_eq!(ends.load(Ordering::SeqCst), 0, "one is left");
        drop(other);
        assert_eq!((ends.load(Ordering::SeqCst), uses.begin().is_none()), (1, true));
        uses.at_end(count(&ends));
        assert_eq!(ends.load(Ordering::SeqCst), 2, "it is over already");
    }
}
