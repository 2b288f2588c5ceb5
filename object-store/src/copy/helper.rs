//! A second thread for copies. It is kept, since starting a thread takes as long as copying a mebibyte.
//!
//! A process has one helper, for one copy at a time. The copying thread offers it a share of the work and
//! begins with its own share. A share that the helper has not begun when the rest is done is taken back, so
//! that no copy waits for a thread to wake up.

use crate::error::StoreError;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Time for which the helper spins for the next copy before it sleeps: copies often come in groups.
const SPIN: Duration = Duration::from_micros(100);
/// Number of checks between two yields to other threads.
const LOOKS_PER_YIELD: u32 = 32;

/// The side that does the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The thread that asked for the copy.
    Here,
    /// The helper thread.
    There,
}

/// Calls `work` on this thread and, if the helper is free, on the helper too; returns when both are done.
///
/// # Errors
/// If `work` panicked on the helper.
pub(super) fn share(work: &(dyn Fn(Side) + Sync)) -> Result<(), StoreError> {
    let has_panicked = AtomicBool::new(false);
    let work = |side| match side {
        Side::Here => work(Side::Here),
        Side::There => {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| work(Side::There))) {
                has_panicked.store(true, Ordering::Relaxed);
                // Its drop may panic.
                std::mem::forget(panic);
            }
        }
    };
    let offer = HELPER.get_or_init(Helper::start).and_then(|helper| helper.offer(&work));
    work(Side::Here);
    drop(offer);
    if has_panicked.load(Ordering::Relaxed) {
        Err(StoreError::system("copy", io::Error::other("a thread panicked")))
    } else {
        Ok(())
    }
}

static HELPER: OnceLock<Option<&'static Helper>> = OnceLock::new();

struct Helper {
    state: Mutex<State>,
    wake: Condvar,
    /// Whether there is a job; read without the lock.
    is_offered: AtomicBool,
    /// Number of the last finished job.
    done: AtomicU64,
}

#[derive(Default)]
struct State {
    job: Option<Job>,
    /// Number of the last offered job.
    offered: u64,
    is_asleep: bool,
}

/// Work that lives until its offer is dropped.
struct Job(&'static (dyn Fn(Side) + Sync));

/// A job that the helper runs, or may take.
struct Offer<'w> {
    helper: &'static Helper,
    number: u64,
    _work: &'w (dyn Fn(Side) + Sync),
}

impl Helper {
    /// `None` if there is only one processor, or the thread cannot be started.
    fn start() -> Option<&'static Helper> {
        if thread::available_parallelism().is_ok_and(|n| n.get() == 1) {
            return None;
        }
        let helper: &'static Helper = Box::leak(Box::new(Helper {
            state: Mutex::default(),
            wake: Condvar::new(),
            is_offered: AtomicBool::new(false),
            done: AtomicU64::new(0),
        }));
        thread::Builder::new().name("copy".into()).spawn(|| helper.run()).ok().map(|_| helper)
    }

    /// Offers a job; `None` if there is one already.
    fn offer<'w>(&'static self, work: &'w (dyn Fn(Side) + Sync)) -> Option<Offer<'w>> {
        let mut state = self.lock();
        if state.job.is_some() || self.done.load(Ordering::Acquire) < state.offered {
            return None;
        }
        // SAFETY: only the lifetime changes. The helper calls it no more once the offer is dropped, and the
        // offer borrows it until then; it does not leave `share`, so it is always dropped.
        let job =
            unsafe { std::mem::transmute::<&'w (dyn Fn(Side) + Sync), &'static (dyn Fn(Side) + Sync)>(work) };
        state.job = Some(Job(job));
        state.offered += 1;
        let number = state.offered;
        self.is_offered.store(true, Ordering::Release);
        if state.is_asleep {
            self.wake.notify_one();
        }
        drop(state);
        Some(Offer { helper: self, number, _work: work })
    }

    fn run(&self) {
        loop {
            let (job, number) = self.next();
            (job.0)(Side::There);
            self.done.store(number, Ordering::Release);
        }
    }

    /// The next job, and its number.
    fn next(&self) -> (Job, u64) {
        let mut sleep_at = Instant::now() + SPIN;
        loop {
            for _ in 0..LOOKS_PER_YIELD {
                if self.is_offered.load(Ordering::Acquire) {
                    break;
                }
                std::hint::spin_loop();
            }
            if self.is_offered.load(Ordering::Acquire) {
                let mut state = self.lock();
                self.is_offered.store(false, Ordering::Relaxed);
                if let Some(job) = state.job.take() {
                    return (job, state.offered);
                }
            } else if sleep_at <= Instant::now() {
                let mut state = self.lock();
                state.is_asleep = true;
                while state.job.is_none() {
                    state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                state.is_asleep = false;
                sleep_at = Instant::now() + SPIN;
            } else {
                thread::yield_now();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Offer<'_> {
    fn drop(&mut self) {
        let mut state = self.helper.lock();
        if state.offered == self.number && state.job.take().is_some() {
            self.helper.is_offered.store(false, Ordering::Relaxed);
            self.helper.done.store(self.number, Ordering::Release);
            return;
        }
        drop(state);
        let mut looks = 0;
        while self.helper.done.load(Ordering::Acquire) < self.number {
            std::hint::spin_loop();
            looks += 1;
            if looks % LOOKS_PER_YIELD == 0 {
                thread::yield_now();
            }
        }
    }
}

#[cfg(not(models))]
#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn a_panic_is_an_error_of_its_own_copy_only() {
        let is_over = AtomicBool::new(false);
        let counts = thread::scope(|scope| {
            let bad = scope.spawn(|| {
                let fail = |side| {
                    if side == Side::There {
                        std::panic::resume_unwind(Box::new("a copy that fails"));
                    }
                    thread::sleep(SPIN);
                };
                let failed = (0..1_000).filter(|_| share(&fail).is_err()).count();
                is_over.store(true, Ordering::Relaxed);
                failed
            });
            let good = scope.spawn(|| {
                let mut failed = 0;
                while !is_over.load(Ordering::Relaxed) {
                    failed += usize::from(share(&|_| ()).is_err());
                }
                failed
            });
            (bad.join().unwrap(), good.join().unwrap())
        });
        assert!(HELPER.get().is_none_or(Option::is_none) || 0 < counts.0, "the helper took none");
        assert_eq!(counts.1, 0);
    }

    #[test]
    fn all_work_is_done_however_many_ask_for_help() {
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for round in 0..500 {
                        let (next, sum) = (AtomicUsize::new(0), AtomicUsize::new(0));
                        share(&|_| {
                            while let piece = next.fetch_add(1, Ordering::Relaxed)
                                && piece < 10
                            {
                                sum.fetch_add(piece, Ordering::Relaxed);
                            }
                        })
                        .unwrap();
                        assert_eq!(sum.into_inner(), 45);
                        if round % 100 == 0 {
                            // Long enough for the helper to fall asleep.
                            thread::sleep(10 * SPIN);
                        }
                    }
                });
            }
        });
    }
}
