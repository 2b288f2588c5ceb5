//! The disk as spilling sees it: its speed, the bytes that it has taken, and its refusals.

use crate::{MS, Now};
use std::collections::VecDeque;

/// The time for which the disk is left alone after it refused a copy.
const SPILL_PAUSE: Now = 500 * MS;
/// Assumed cost of a thousand bytes to the disk before any were written: a gigabyte a second.
const NS_PER_KB: u64 = 1_000;
/// Number of writes from which the speed of the disk is estimated. [`NS_PER_KB`] stands for missing ones.
const WRITES_REMEMBERED: usize = 7;
/// A value that took this long to make is not dropped, however slow the disk is.
const REMAKE_NS_MAX: u64 = 1_000 * MS;

/// State of the spill directory as seen from here: speed, last refusal, bytes taken.
#[derive(Debug, Default)]
pub(super) struct Disk {
    /// The disk is not tried again before this time.
    pub(super) paused_until: Now,
    /// Reason of its last refusal; none if it took the last copy.
    pub(super) refusal: Option<String>,
    /// Nanoseconds per thousand bytes of the last few writes, oldest first.
    ns_per_kb: VecDeque<u64>,
    /// Total bytes it has taken.
    pub(super) taken_bytes: u64,
}

impl Disk {
    /// A copy was written: its time goes into the estimate of the speed.
    pub(super) fn took(&mut self, write_ns: u64, len: u64) {
        self.refusal = None;
        self.taken_bytes = self.taken_bytes.saturating_add(len);
        if write_ns == 0 || len == 0 {
            return;
        }
        if self.ns_per_kb.len() == WRITES_REMEMBERED {
            self.ns_per_kb.pop_front();
        }
        self.ns_per_kb.push_back(write_ns.saturating_mul(1000) / len);
        assert!(self.ns_per_kb.len() <= WRITES_REMEMBERED, "more writes are remembered than count");
    }

    /// A copy was not written: the disk is left alone for a while.
    pub(super) fn refused(&mut self, now: Now, refusal: String) {
        self.paused_until = now + SPILL_PAUSE;
        self.refusal = Some(refusal);
    }

    /// Time to write a number of bytes and to read them back. The median of the last writes counts, so that a
    /// stalled write does not make the disk look slow.
    fn round_trip_ns(&self, len: u64) -> u64 {
        assert!(self.ns_per_kb.len() <= WRITES_REMEMBERED, "more writes are remembered than count");
        let missing = WRITES_REMEMBERED - self.ns_per_kb.len();
        let mut all: Vec<u64> = self.ns_per_kb.iter().copied().collect();
        all.resize(all.len() + missing, NS_PER_KB);
        all.sort_unstable();
        let median = all[WRITES_REMEMBERED / 2];
        median.saturating_mul(2).saturating_mul(len) / 1000
    }

    /// Whether a value that took `run_ns` to make is better computed again than written to disk and read
    /// back. Never if it took [`REMAKE_NS_MAX`] or longer: its reader would wait that long.
    pub(super) fn prefers_remake(&self, run_ns: u64, len: u64) -> bool {
        run_ns < REMAKE_NS_MAX && run_ns < self.round_trip_ns(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Time to write [`LEN`] bytes at a gigabyte a second.
    const WRITE_NS: u64 = 64_000_000;
    const LEN: u64 = 64_000_000;

    #[test]
    fn one_stalled_write_does_not_make_the_disk_slow() {
        let mut disk = Disk::default();
        assert_eq!(disk.round_trip_ns(LEN), 2 * WRITE_NS);
        disk.took(10_000 * MS, LEN);
        assert_eq!(disk.round_trip_ns(LEN), 2 * WRITE_NS, "a stall at the start");
        (0..20).for_each(|_| disk.took(2 * WRITE_NS, LEN));
        disk.took(10_000 * MS, LEN);
        assert_eq!(disk.round_trip_ns(LEN), 4 * WRITE_NS, "a stall later");
        (0..WRITES_REMEMBERED).for_each(|_| disk.took(10 * WRITE_NS, LEN));
        assert_eq!(disk.round_trip_ns(LEN), 20 * WRITE_NS, "a disk that is slow");
    }

    #[test]
    fn what_took_seconds_to_make_is_never_dropped() {
        let mut disk = Disk::default();
        (0..WRITES_REMEMBERED).for_each(|_| disk.took(20_000 * MS, LEN));
        assert!(disk.prefers_remake(500 * MS, LEN));
        for run_ns in [1_000 * MS, 5_000 * MS, 3_600_000 * MS] {
            assert!(!disk.prefers_remake(run_ns, LEN), "{run_ns} ns");
        }
    }
}
