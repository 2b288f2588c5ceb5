//! Deferred records, sent later for code that must not wait for room in the ring.
//!
//! They are kept in order until a thread that may wait sends them. The sender takes them while it holds the
//! outbox, so their order never changes. It takes them before it pushes a record of its own, so nothing
//! overtakes them: a record that one thread defers is in the ring before any record that another thread
//! pushes because it saw the effect of the first. Otherwise a request for bytes could overtake the release of
//! the same bytes. The answer would then name bytes that no pin keeps in place.

use crate::sync::{AtomicU32, Mutex, Ordering, lock};
use std::collections::VecDeque;

/// A queue of records. The check whether it is empty takes no lock.
pub struct Deferred<R> {
    records: Mutex<VecDeque<R>>,
    /// 1 if there are any. Set under the lock, and read without it.
    has_any: AtomicU32,
}

impl<R> Default for Deferred<R> {
    fn default() -> Self {
        Self { records: Mutex::new(VecDeque::new()), has_any: AtomicU32::new(0) }
    }
}

impl<R> Deferred<R> {
    /// Adds a record behind all others.
    pub fn add(&self, record: R) {
        let mut records = lock(&self.records);
        records.push_back(record);
        self.has_any.store(1, Ordering::SeqCst);
    }

    /// Passes up to `max` records from the front to `send`, removes each that `send` reports as sent, and
    /// stops at the first that it does not. Returns the number of removed records.
    pub fn take_while(&self, max: usize, mut send: impl FnMut(&mut R) -> bool) -> usize {
        let mut records = lock(&self.records);
        let mut count = 0;
        while count < max
            && let Some(first) = records.front_mut()
            && send(first)
        {
            records.pop_front();
            count += 1;
        }
        assert!(count <= max, "more deferred records were sent than may be");
        self.has_any.store(u32::from(!records.is_empty()), Ordering::SeqCst);
        count
    }

    /// Whether there is none. If a thread defers a record and then does something, a thread that sees the
    /// effect also sees the record.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.has_any.load(Ordering::Relaxed) == 0
    }

    /// Number of records that wait.
    pub fn len(&self) -> usize {
        lock(&self.records).len()
    }
}

#[cfg(models)]
#[cfg(test)]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    /// The two records of a client about one value: a release, and a new request for it.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Record {
        Unmapped,
        Fetch,
    }

    struct Client {
        is_mapped: Mutex<bool>,
        deferred: Deferred<Record>,
        ring: Mutex<Vec<Record>>,
    }

    impl Client {
        /// Records that were deferred go first.
        fn push(&self, record: Record) {
            let mut ring = lock(&self.ring);
            if !self.deferred.is_empty() {
                self.deferred.take_while(usize::MAX, |first| {
                    ring.push(*first);
                    true
                });
            }
            ring.push(record);
        }

        fn send_deferred(&self) {
            let mut ring = lock(&self.ring);
            self.deferred.take_while(usize::MAX, |first| {
                ring.push(*first);
                true
            });
        }
    }

    /// One thread releases a value inside a dispatch while another requests it: the node never gets the
    /// request first.
    #[test]
    fn loom_no_record_overtakes_a_deferred_one() {
        loom::model(|| {
            let client = Arc::new(Client {
                is_mapped: Mutex::new(true),
                deferred: Deferred::default(),
                ring: Mutex::new(Vec::new()),
            });
            let dispatcher = {
                let client = Arc::clone(&client);
                thread::spawn(move || {
                    let mut is_mapped = lock(&client.is_mapped);
                    *is_mapped = false;
                    client.deferred.add(Record::Unmapped);
                    drop(is_mapped);
                    client.send_deferred();
                })
            };
            let reader = {
                let client = Arc::clone(&client);
                thread::spawn(move || {
                    let is_mapped = *lock(&client.is_mapped);
                    if !is_mapped {
                        client.push(Record::Fetch);
                    }
                })
            };
            dispatcher.join().unwrap();
            reader.join().unwrap();
            let ring = lock(&client.ring);
            assert!(matches!(ring[..], [Record::Unmapped] | [Record::Unmapped, Record::Fetch]), "{ring:?}");
        });
    }
}
