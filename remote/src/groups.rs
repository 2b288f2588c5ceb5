//! Calls of an actor that run at the same time: groups, their limits, their queues and their threads.
//!
//! The calls of an actor with `max_concurrency` or groups run on threads of their own. A group has at most as
//! many threads as its limit says; they start when a call needs one and stay until the actor ends. Each group
//! has its own queue, so a group whose calls all wait does not hold up the others. The worker loop only moves
//! calls from the connection to the queues.
//!
//! Such an actor keeps its CPUs while its methods wait: a slot could be lent only while all of them wait.

use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;

/// The groups of the actor that lives in this worker. The first is the default one.
pub(crate) struct Groups<R>(Vec<Group<R>>);

struct Group<R> {
    limit: usize,
    line: Mutex<Line<R>>,
    changed: Condvar,
}

struct Line<R> {
    runs: VecDeque<R>,
    threads: usize,
    idle: usize,
    has_ended: bool,
    /// Whether its threads end when no calls are left.
    is_leaving: bool,
}

impl<R> Groups<R> {
    /// Groups with these limits.
    pub(crate) fn new(limits: &[u32]) -> Self {
        let group = |limit: &u32| Group {
            limit: (*limit).max(1) as usize,
            line: Mutex::new(Line {
                runs: VecDeque::new(),
                threads: 0,
                idle: 0,
                has_ended: false,
                is_leaving: false,
            }),
            changed: Condvar::new(),
        };
        Self(limits.iter().map(group).collect())
    }

    /// A group by its number. Only calls made with another version of the actor name one that does not exist.
    fn group(&self, number: u16) -> &Group<R> {
        self.0.get(usize::from(number)).unwrap_or(&self.0[0])
    }

    /// Queues a call. Returns whether the group needs another thread for it, which the caller starts.
    pub(crate) fn push(&self, number: u16, run: R) -> bool {
        let group = self.group(number);
        let mut line = group.line.lock();
        line.runs.push_back(run);
        let needs_thread = line.idle < line.runs.len() && line.threads < group.limit;
        if needs_thread {
            line.threads += 1;
        } else {
            group.changed.notify_one();
        }
        needs_thread
    }

    /// The next call of a group, as soon as there is one; `None` when the actor ends.
    pub(crate) fn next(&self, number: u16) -> Option<R> {
        let group = self.group(number);
        let mut line = group.line.lock();
        loop {
            if line.has_ended {
                return None;
            }
            if let Some(run) = line.runs.pop_front() {
                return Some(run);
            }
            if line.is_leaving {
                return None;
            }
            line.idle += 1;
            group.changed.wait(&mut line);
            line.idle -= 1;
        }
    }

    /// A thread of a group could not be started. Returns the calls that no thread will run.
    pub(crate) fn thread_failed(&self, number: u16) -> Vec<R> {
        let mut line = self.group(number).line.lock();
        line.threads -= 1;
        if line.threads == 0 { line.runs.drain(..).collect() } else { Vec::new() }
    }

    /// Takes a call that has not started out of its queue.
    pub(crate) fn take(&self, is_it: impl Fn(&R) -> bool) -> Option<R> {
        self.0.iter().find_map(|group| {
            let mut line = group.line.lock();
            let at = line.runs.iter().position(&is_it)?;
            line.runs.remove(at)
        })
    }

    /// Takes all calls that have not started out of their queues.
    pub(crate) fn take_all(&self) -> Vec<R> {
        self.0.iter().flat_map(|group| std::mem::take(&mut group.line.lock().runs)).collect()
    }

    /// Ends all threads once the calls that are queued have ended.
    pub(crate) fn leave(&self) {
        for group in &self.0 {
            group.line.lock().is_leaving = true;
            group.changed.notify_all();
        }
    }

    /// Ends all threads that run no call; the others end after theirs.
    pub(crate) fn end(&self) {
        for group in &self.0 {
            group.line.lock().has_ended = true;
            group.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_starts_threads_up_to_its_limit_and_others_do_not_count() {
        let groups = Groups::new(&[1, 2]);
        assert_eq!([0_u32, 1].map(|slot| groups.push(0, slot)), [true, false]);
        assert_eq!([2, 3, 4].map(|slot| groups.push(1, slot)), [true, true, false]);
        assert_eq!([0, 1].map(|number| groups.next(number).unwrap()), [0, 2]);
        assert_eq!(groups.take(|slot| *slot == 4), Some(4));
        assert!(groups.take(|slot| [0, 4].contains(slot)).is_none(), "started, or taken");
        assert_eq!(groups.next(0), Some(1), "calls of a group start in their order");
        groups.end();
        assert!(groups.next(1).is_none(), "calls that have not started are not run");
    }

    #[test]
    fn a_group_that_leaves_runs_the_calls_that_it_has() {
        let groups = Groups::new(&[1]);
        assert!(groups.push(0, 1) && !groups.push(0, 2));
        groups.leave();
        assert_eq!([groups.next(0), groups.next(0), groups.next(0)], [Some(1), Some(2), None]);
    }

    #[test]
    fn calls_are_returned_if_no_thread_can_run_them() {
        let groups = Groups::<u32>::new(&[2]);
        assert!(groups.push(0, 7) && groups.push(0, 8));
        assert!(groups.thread_failed(0).is_empty(), "there is another thread");
        assert_eq!(groups.thread_failed(0).len(), 2);
    }
}
