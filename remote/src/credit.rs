//! Calls that a driver may send, as its node grants them.

use std::sync::atomic::{AtomicU64, Ordering};
use tharsis_protos::records::CALLS_AT_FIRST;

/// Calls that were sent or are about to be, and how many these may be.
///
/// A thread that may not send yet holds no place in the order: the node counts what arrives, so a place that
/// another thread gives back would be missing from the number that this one waits for.
pub(crate) struct CallCredit {
    counted: AtomicU64,
    granted: AtomicU64,
}

impl CallCredit {
    pub(crate) fn new() -> Self {
        Self { counted: AtomicU64::new(0), granted: AtomicU64::new(CALLS_AT_FIRST) }
    }

    /// Counts calls if one more may be sent; false if none may.
    #[inline]
    pub(crate) fn claim(&self, calls: u64) -> bool {
        let granted = self.granted.load(Ordering::Acquire);
        let more = |counted| if counted < granted { Some(counted + calls) } else { None };
        self.counted.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Counts calls that are sent in any case.
    pub(crate) fn overdraw(&self, calls: u64) {
        self.counted.fetch_add(calls, Ordering::Relaxed);
    }

    /// Calls that were counted are not sent.
    pub(crate) fn give_back(&self, calls: u64) {
        self.counted.fetch_sub(calls, Ordering::Release);
    }

    /// Takes the number of calls that may be sent, all together.
    pub(crate) fn grant(&self, calls: u64) {
        self.granted.fetch_max(calls, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_thread_gives_back_another_one_may_send() {
        let credit = CallCredit::new();
        assert!(credit.claim(CALLS_AT_FIRST - 1) && credit.claim(1));
        assert!(!credit.claim(1), "all are counted");
        credit.give_back(1);
        assert!(credit.claim(1), "the call that was not sent has left its place");
        // The node has read all but one, which was given back, and grants one: there is room for one again.
        credit.give_back(1);
        credit.grant(CALLS_AT_FIRST);
        assert!(credit.claim(1) && !credit.claim(1));
    }

    #[test]
    fn a_graph_goes_as_a_whole_and_an_older_grant_takes_nothing_away() {
        let credit = CallCredit::new();
        assert!(credit.claim(CALLS_AT_FIRST - 1) && credit.claim(100), "one more was allowed");
        credit.grant(CALLS_AT_FIRST + 99);
        credit.grant(CALLS_AT_FIRST);
        assert!(!credit.claim(1));
        credit.overdraw(1);
        credit.grant(CALLS_AT_FIRST + 100);
        assert!(!credit.claim(1), "what was sent in any case counts");
        credit.grant(CALLS_AT_FIRST + 101);
        assert!(credit.claim(1));
    }
}
