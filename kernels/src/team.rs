//! Threads of one kernel.
//!
//! An executor grants a kernel a number of threads ([`crate::Scratch::grant_threads`]). Results must not
//! depend on it: work is cut into items by sizes alone, and what they give is put together in their order.
//!
//! [`each`] starts threads for one round of items. A [`Team`] keeps them for thousands of short steps, as the
//! reduction of a matrix to tridiagonal form needs: between steps its threads spin for a few microseconds
//! before they sleep, since waking a thread takes longer than many steps do. A step has no closure of its own
//! (one that borrows from the caller could not be sent to threads that exist already without `unsafe`): it is
//! a value, which one function for all steps looks at.
//!
//! Threads claim an item by raising a counter that has the number of the step in its upper half. So a thread
//! that wakes late cannot claim items of a later step by mistake.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};

/// Calls `work` with each item, on up to `threads` threads.
pub(crate) fn each<I: Send>(threads: usize, items: Vec<I>, work: impl Fn(I) + Sync) {
    if threads <= 1 || items.len() <= 1 {
        return items.into_iter().for_each(work);
    }
    let helpers = threads.min(items.len()) - 1;
    let items = Mutex::new(items.into_iter());
    let next = || items.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).next();
    let take_all = || {
        while let Some(item) = next() {
            work(item);
        }
    };
    std::thread::scope(|scope| {
        (0..helpers).for_each(|_| {
            scope.spawn(take_all);
        });
        take_all();
    });
}

/// Threads that do the items of one step after the other, the caller being one of them.
pub(crate) struct Team<'a, S> {
    shared: &'a Shared<S>,
    work: &'a (dyn Fn(S, usize) + Sync),
    threads: usize,
}

struct Shared<S> {
    /// Number of the step in the upper half, and the first item that nobody has claimed in the lower one.
    next: AtomicU64,
    /// Items of this step that are done.
    done: AtomicUsize,
    order: Mutex<Order<S>>,
    changed: Condvar,
    /// Whether a thread has panicked: its item will never be done.
    is_broken: AtomicBool,
}

#[derive(Clone, Copy)]
struct Order<S> {
    /// The step; `None` before the first and after the last one.
    step: Option<S>,
    number: u32,
    items: usize,
    sleeping: usize,
    is_over: bool,
}

/// Calls `lead` with a team of `threads` threads that do `work` for each item of the steps it asks for.
pub(crate) fn with_team<S: Copy + Send, R>(
    threads: usize,
    work: impl Fn(S, usize) + Sync,
    lead: impl FnOnce(&Team<'_, S>) -> R,
) -> R {
    let order = Order { step: None, number: 0, items: 0, sleeping: 0, is_over: false };
    let shared = Shared {
        next: AtomicU64::new(0),
        done: AtomicUsize::new(0),
        order: Mutex::new(order),
        changed: Condvar::new(),
        is_broken: AtomicBool::new(false),
    };
    let team = Team { shared: &shared, work: &work, threads: threads.max(1) };
    std::thread::scope(|scope| {
        for _ in 1..team.threads {
            scope.spawn(|| shared.help(&work));
        }
        let _ended = EndAtDrop(&shared);
        lead(&team)
    })
}

/// Sends the helpers home, also when the leader panics.
struct EndAtDrop<'a, S: Copy>(&'a Shared<S>);

impl<S: Copy> Drop for EndAtDrop<'_, S> {
    fn drop(&mut self) {
        self.0.publish(None, 0);
    }
}

/// Tells the leader that an item will never be done.
struct BreakAtDrop<'a>(&'a AtomicBool);

impl Drop for BreakAtDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

impl<S: Copy + Send> Team<'_, S> {
    /// Does the items of a step and returns when all are done.
    pub(crate) fn run(&self, step: S, items: usize) {
        if self.threads == 1 {
            return (0..items).for_each(|item| (self.work)(step, item));
        }
        let number = self.shared.publish(Some(step), items);
        self.shared.take_items(step, number, items, self.work);
        let mut spins = 0;
        while self.shared.done.load(Ordering::Acquire) < items {
            if self.shared.is_broken.load(Ordering::Acquire) {
                // The scope of the threads passes the panic on.
                return;
            }
            pause(&mut spins);
        }
    }
}

impl<S: Copy> Shared<S> {
    fn lock(&self) -> MutexGuard<'_, Order<S>> {
        self.order.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Begins a step, or ends all of them; the number of the step.
    fn publish(&self, step: Option<S>, items: usize) -> u32 {
        let mut order = self.lock();
        let number = order.number.wrapping_add(1);
        *order = Order { step, number, items, is_over: step.is_none(), ..*order };
        self.done.store(0, Ordering::Relaxed);
        self.next.store(u64::from(number) << 32, Ordering::Release);
        if 0 < order.sleeping {
            self.changed.notify_all();
        }
        number
    }

    fn help(&self, work: &(dyn Fn(S, usize) + Sync)) {
        let broken = BreakAtDrop(&self.is_broken);
        let mut seen = 0;
        while let Some(Order { step: Some(step), number, items, .. }) = self.wait_beyond(seen) {
            seen = number;
            self.take_items(step, number, items, work);
        }
        std::mem::forget(broken);
    }

    /// The step after number `seen`; `None` if there is none any more.
    fn wait_beyond(&self, seen: u32) -> Option<Order<S>> {
        let is_same = || (self.next.load(Ordering::Acquire) >> 32) as u32 == seen;
        let mut spins = 0;
        while is_same() && spins < SPINS_MAX {
            pause(&mut spins);
        }
        let mut order = self.lock();
        while order.number == seen {
            order.sleeping += 1;
            order = self.changed.wait(order).unwrap_or_else(|poisoned| poisoned.into_inner());
            order.sleeping -= 1;
        }
        (!order.is_over).then_some(*order)
    }

    fn take_items(&self, step: S, number: u32, items: usize, work: &(dyn Fn(S, usize) + Sync)) {
        let mut next = self.next.load(Ordering::Acquire);
        while (next >> 32) as u32 == number && ((next as u32) as usize) < items {
            match self.next.compare_exchange_weak(next, next + 1, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    work(step, (next as u32) as usize);
                    self.done.fetch_add(1, Ordering::AcqRel);
                    next = self.next.load(Ordering::Acquire);
                }
                Err(now) => next = now,
            }
        }
    }
}

/// Waits a moment: first on the core, then by offering it to other threads.
fn pause(spins: &mut u32) {
    *spins = spins.saturating_add(1);
    if *spins < SPINS_BEFORE_YIELD { std::hint::spin_loop() } else { std::thread::yield_now() }
}

/// About ten microseconds.
const SPINS_BEFORE_YIELD: u32 = 500;
const SPINS_MAX: u32 = 600;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_item_is_done_once_by_any_number_of_threads() {
        for threads in 1..4 {
            let sums = Mutex::new(0);
            each(threads, (0..100).collect(), |item: u64| *sums.lock().unwrap() += 1 << (item % 50));
            assert_eq!(sums.into_inner().unwrap(), 2 * ((1u64 << 50) - 1));
        }
    }

    #[test]
    fn steps_follow_each_other() {
        for threads in 1..5 {
            let counts: Vec<AtomicUsize> = (0..7).map(|_| AtomicUsize::new(0)).collect();
            let work = |step: usize, item: usize| {
                assert_eq!(counts[item].fetch_add(1, Ordering::Relaxed), step, "an earlier step is not done");
            };
            with_team(threads, work, |team| (0..2000).for_each(|step| team.run(step, 7)));
            assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 2000));
        }
    }

    #[test]
    fn a_panic_of_a_thread_ends_the_team() {
        let work = |_: usize, item: usize| assert_ne!(item, 3, "item 3 fails");
        let run = || with_team(3, work, |team| (0..50).for_each(|step| team.run(step, 5)));
        assert!(std::panic::catch_unwind(run).is_err());
    }
}
