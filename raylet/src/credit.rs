//! Calls that a driver may send: as many as its job may have unfinished, and no more.
//!
//! The driver is told a number up to which it counts, and its threads wait before they go beyond it. So a job
//! that has too many unfinished tasks holds calls back where they are made, and not in the ring, where they
//! would hold all that comes behind them: values for the tasks that wait, and the cancellation of these.

use tharsis_core::{MS, Now};
use tharsis_protos::records::CALLS_AT_FIRST;

/// A driver is granted at least this part of what its job may have, so that it does not hear of each call.
const PARTS: u64 = 8;
/// After so long it is granted what there is, if that is less: actors, placement groups and long tasks may
/// leave no more for ever.
const PART_WAIT: Now = 5 * MS;
/// Calls beyond what was granted that are read: wakers that make calls cannot wait.
const BEYOND_MAX: u64 = 4096;

/// The calls of one driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credit {
    sent: u64,
    granted: u64,
    /// Time since when there is less room than a part.
    short_since: Option<Now>,
}

/// The outcome of a look at the room for calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// The driver has enough.
    Enough,
    /// The driver is to be told that it may send so many, all together.
    More(u64),
    /// There is no room: it has to be looked at again when tasks end.
    Short,
    /// There is little room: it has to be looked at again then, or when tasks end.
    Later(Now),
}

impl Default for Credit {
    fn default() -> Self {
        Self { sent: 0, granted: CALLS_AT_FIRST, short_since: None }
    }
}

impl Credit {
    /// Calls of the driver were read.
    pub fn spend(&mut self, calls: u64) {
        self.sent = self.sent.saturating_add(calls);
    }

    /// Whether a driver goes on although it has sent what it may.
    #[must_use]
    pub fn is_overdrawn(&self) -> bool {
        self.granted.checked_add(BEYOND_MAX).is_some_and(|most| most <= self.sent)
    }

    /// Grants what there is room for, of `most` that the job may have.
    pub fn grant(&mut self, now: Now, room: u64, most: u64) -> Grant {
        let (left, part) = (self.granted.saturating_sub(self.sent), (most / PARTS).max(1));
        if part <= left {
            self.short_since = None;
            return Grant::Enough;
        }
        let more = room.saturating_sub(left);
        if more < part {
            let at = *self.short_since.get_or_insert(now) + PART_WAIT;
            if more == 0 {
                return Grant::Short;
            }
            if now < at {
                return Grant::Later(at);
            }
        }
        self.short_since = None;
        self.granted = self.sent.saturating_add(room);
        Grant::More(self.granted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_granted_and_what_is_unfinished_are_no_more_than_a_job_may_have() {
        const MOST: u64 = 100_000;
        let (mut credit, mut unfinished, mut told, mut messages) = (Credit::default(), 0, CALLS_AT_FIRST, 0);
        for round in 0..1000 {
            // It sends all that it may; none of the first tasks ends.
            let calls = told - credit.sent;
            credit.spend(calls);
            unfinished += calls;
            match credit.grant(0, MOST - unfinished, MOST) {
                Grant::More(granted) => (told, messages) = (granted, messages + 1),
                Grant::Enough => panic!("it has sent everything"),
                Grant::Short | Grant::Later(_) => assert!(MOST * 7 / 8 < unfinished),
            }
            assert!(unfinished + told - credit.sent <= MOST && !credit.is_overdrawn());
            if 500 < round {
                unfinished -= unfinished.min(1000);
            }
        }
        // One at first, and then one for each eighth that ended.
        assert!((2..=50).contains(&messages), "{messages}");
    }

    #[test]
    fn a_job_that_may_have_one_task_gets_one_call_after_the_other() {
        let mut credit = Credit::default();
        credit.spend(CALLS_AT_FIRST);
        assert_eq!(credit.grant(0, 0, 1), Grant::Short);
        assert_eq!(credit.grant(0, 1, 1), Grant::More(CALLS_AT_FIRST + 1));
        assert_eq!(credit.grant(0, 1, 1), Grant::Enough);
        credit.spend(1);
        assert_eq!(credit.grant(0, 0, 1), Grant::Short);
    }

    #[test]
    fn a_job_that_is_nearly_filled_by_what_lives_on_gets_what_is_left() {
        const MOST: u64 = 100;
        let (mut credit, lives) = (Credit::default(), 92);
        credit.spend(CALLS_AT_FIRST);
        assert_eq!(credit.grant(7, MOST - lives, MOST), Grant::Later(7 + PART_WAIT));
        assert_eq!(credit.grant(9, MOST - lives, MOST), Grant::Later(7 + PART_WAIT));
        assert_eq!(credit.grant(7 + PART_WAIT, MOST - lives, MOST), Grant::More(CALLS_AT_FIRST + 8));
        // It may send all of these: nothing more fits, however long it waits.
        assert_eq!(credit.grant(8 + PART_WAIT, MOST - lives, MOST), Grant::Short);
        credit.spend(8);
        assert_eq!(credit.grant(9 * PART_WAIT, 0, MOST), Grant::Short);
        assert_eq!(credit.grant(9 * PART_WAIT, 3, MOST), Grant::More(CALLS_AT_FIRST + 11));
        // Tasks that end meanwhile may make room for a part.
        credit.spend(3);
        assert!(matches!(credit.grant(9 * PART_WAIT, 1, MOST), Grant::Later(_)));
        assert_eq!(credit.grant(9 * PART_WAIT, 50, MOST), Grant::More(CALLS_AT_FIRST + 61));
    }

    #[test]
    fn numbers_stay_within_bounds() {
        let mut credit = Credit::default();
        assert_eq!(credit.grant(0, u64::MAX, u64::MAX), Grant::More(u64::MAX));
        credit.spend(u64::MAX);
        credit.spend(1);
        assert!(!credit.is_overdrawn());
    }

    #[test]
    fn a_driver_that_does_not_count_is_noticed() {
        let mut credit = Credit::default();
        credit.spend(CALLS_AT_FIRST + BEYOND_MAX - 1);
        assert!(!credit.is_overdrawn());
        credit.spend(1);
        assert!(credit.is_overdrawn());
    }
}
