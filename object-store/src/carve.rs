//! Sharing of a writable range between the threads of a client.
//!
//! A thread takes a part while it holds the lock of the owner of the [`Carver`]. It writes to the part and
//! reports it to the node without that lock, so reports may come in another order than the parts have in the
//! range, and the node must not rely on their order. `loom_tests` checks the store's accounts under this
//! rule.

/// A range; parts are taken from its front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carver {
    len: u64,
    used: u64,
}

impl Carver {
    /// A range without any part taken.
    pub fn new(len: u64) -> Self {
        Self { len, used: 0 }
    }

    /// Takes a part that begins at a multiple of `align`; `None` if it does not fit.
    pub fn take(&mut self, len: u64, align: u64) -> Option<u64> {
        let begin = self.used.checked_next_multiple_of(align)?;
        let before = self.used;
        self.used = begin.checked_add(len).filter(|end| *end <= self.len)?;
        assert!(before <= begin && begin.is_multiple_of(align), "a part overlaps the one before it");
        Some(begin)
    }

    /// Whether more than half of it is taken.
    pub fn is_half_used(&self) -> bool {
        self.used > self.len / 2
    }
}

#[cfg(not(models))]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_aligned_and_never_overlap() {
        let mut carver = Carver::new(256);
        assert_eq!(
            (carver.take(10, 64), carver.take(64, 64), carver.is_half_used()),
            (Some(0), Some(64), false)
        );
        assert_eq!((carver.take(65, 64), carver.take(u64::MAX, 64)), (Some(128), None));
        assert_eq!(
            (carver.take(1, 64), carver.is_half_used()),
            (None, true),
            "a part would begin behind the end"
        );
    }
}

#[cfg(models)]
#[cfg(test)]
#[allow(unsafe_code)]
mod loom_tests {
    use super::*;
    use crate::sync::{Mutex, lock};
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;
    use tharsis_core::store::Store;
    use tharsis_types::{ClientId, Extent, JobId, ObjectId, TaskId};

    const PART_BYTES: u64 = 64;
    const REGION_BYTES: u64 = 4096;

    struct Shared {
        carver: Mutex<Carver>,
        parts: [UnsafeCell<u32>; 2],
        reports: Mutex<Vec<(u32, Extent)>>,
    }

    /// Takes a part, writes a value to it, and reports that it is complete.
    fn put(shared: &Shared, value: u32) {
        let offset = lock(&shared.carver).take(PART_BYTES, PART_BYTES).unwrap();
        // SAFETY: the part was taken by this thread alone; loom checks exactly this claim.
        shared.parts[(offset / PART_BYTES) as usize].with_mut(|part| unsafe { *part = value });
        lock(&shared.reports).push((value, Extent { offset, len: PART_BYTES }));
    }

    /// Two threads of a client store values while the node processes their reports and grants the ranges that
    /// are free then. The receiver of a range writes to it. Loom reports a part that two threads write at
    /// once.
    #[test]
    fn loom_threads_of_a_client_store_at_once() {
        loom::model(|| {
            let shared = Arc::new(Shared {
                carver: Mutex::new(Carver::new(REGION_BYTES)),
                parts: [UnsafeCell::new(0), UnsafeCell::new(0)],
                reports: Mutex::new(Vec::new()),
            });
            let (writer, object) = (ClientId(1), |n| ObjectId::put(TaskId::root(JobId(1)), n));
            let mut store = Store::new(REGION_BYTES);
            store.grant(writer, REGION_BYTES, &mut Vec::new()).unwrap();
            let threads = [1, 2].map(|value| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || put(&shared, value))
            });
            let mut sealed = Vec::new();
            while sealed.len() < 2 {
                let reports = std::mem::take(&mut *lock(&shared.reports));
                if reports.is_empty() {
                    thread::yield_now();
                }
                for (value, extent) in reports {
                    sealed.push((value, store.seal(writer, object(value), extent).unwrap()));
                    if let Ok(free) = store.receive(object(9), PART_BYTES, &mut Vec::new()) {
                        // SAFETY: nobody else writes to a free range; loom checks exactly this claim.
                        shared.parts[(free.offset / PART_BYTES) as usize]
                            .with_mut(|part| unsafe { *part = 9 });
                    }
                }
            }
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            for (value, extent) in sealed {
                // SAFETY: nobody writes any more.
                let found = shared.parts[(extent.offset / PART_BYTES) as usize].with(|part| unsafe { *part });
                assert_eq!(found, value);
            }
        });
    }
}
