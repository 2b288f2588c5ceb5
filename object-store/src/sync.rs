//! The primitives of the shared-memory protocols, either the real ones or the model checker's.
//!
//! `positions`, `bell`, `deferred` and `carve` import atomics, fences and the futex from here only, so the
//! model tests (the package in `models`) run the product's own code.

#[cfg(models)]
pub(crate) use model::*;
#[cfg(not(models))]
pub(crate) use real::*;

#[cfg(not(models))]
mod real {
    pub(crate) use std::hint::spin_loop;
    pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
    pub(crate) use std::sync::{Mutex, MutexGuard};
    pub(crate) use std::thread::yield_now;

    use rustix::thread::futex;
    use std::sync::PoisonError;
    use std::time::Duration;

    /// Locks, and ignores poison of a thread that panicked.
    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A word in shared memory that threads of any process can sleep on.
    #[repr(transparent)]
    pub(crate) struct FutexWord(AtomicU32);

    impl FutexWord {
        pub(crate) fn value(&self) -> &AtomicU32 {
            &self.0
        }

        /// Sleeps while the word holds `expected`, at most for `timeout`; may wake up spuriously.
        pub(crate) fn wait(&self, expected: u32, timeout: Option<Duration>) {
            // `Timespec` holds any duration of less than 2^63 seconds; a longer one counts as no deadline.
            let timeout = timeout.and_then(|t| futex::Timespec::try_from(t).ok());
            // Not private: the peer is another process. After every outcome (woken, changed, timed out,
            // interrupted) the caller checks its condition again.
            let _ = futex::wait(&self.0, futex::Flags::empty(), expected, timeout.as_ref());
        }

        /// Wakes every sleeper.
        pub(crate) fn wake_all(&self) {
            let _ = futex::wake(&self.0, futex::Flags::empty(), i32::MAX as u32);
        }
    }
}

#[cfg(models)]
mod model {
    pub(crate) use loom::hint::spin_loop;
    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
    pub(crate) use loom::sync::{Mutex, MutexGuard};
    pub(crate) use loom::thread::yield_now;

    use loom::sync::Condvar;
    use std::time::Duration;

    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap()
    }

    /// A futex as the kernel keeps it: compare and sleep are one step under the kernel's lock.
    pub(crate) struct FutexWord {
        value: AtomicU32,
        kernel: Mutex<()>,
        queue: Condvar,
    }

    impl FutexWord {
        /// Futexes of the store lie in shared memory; only models make one.
        #[cfg(test)]
        pub(crate) fn new() -> FutexWord {
            FutexWord { value: AtomicU32::new(0), kernel: Mutex::new(()), queue: Condvar::new() }
        }

        pub(crate) fn value(&self) -> &AtomicU32 {
            &self.value
        }

        pub(crate) fn wait(&self, expected: u32, _timeout: Option<Duration>) {
            let kernel = self.kernel.lock().unwrap();
            if self.value.load(Ordering::SeqCst) == expected {
                drop(self.queue.wait(kernel).unwrap());
            }
        }

        pub(crate) fn wake_all(&self) {
            let _kernel = self.kernel.lock().unwrap();
            self.queue.notify_all();
        }
    }
}
