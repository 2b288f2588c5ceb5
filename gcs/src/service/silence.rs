//! Members that have not been heard of for a while, and what a look at their ports shows. Decides only;
//! `hang.rs` waits and looks.
//!
//! A process that was stopped, or spins, keeps its connections: nothing breaks, and only its lease would tell
//! after ten seconds. But the system of its machine still accepts connections for it, while nobody answers on
//! them. So a member that is silent for `Silences::limit` is looked at:
//!
//! | the connection is | the member | therefore |
//! |---|---|---|
//! | accepted and answered | lives, and its renewals are late or go to another control store | nothing |
//! | refused | has ended | the members whose streams broke report it (`suspects.rs`) |
//! | not accepted in time | is cut off, or its machine is down or too busy | its lease decides |
//! | accepted, twice, and never answered | hangs | it is declared dead |
//!
//! That takes a quarter of a lease and a second or two, so whoever runs nodes that stand still at times (a
//! frozen container, swapping, a debugger) gives them longer leases.
//!
//! If the looks themselves took longer than they may, this process or its machine stood still, and they show
//! nothing.

use std::collections::HashMap;
use std::time::Duration;
use tharsis_types::NodeId;
use tokio::time::Instant;

/// Longest time between two renewals of a lease.
const RENEWAL_PACE_MAX: Duration = Duration::from_secs(1);
/// Renewals within the time of one lease.
const RENEWALS_PER_LEASE: u32 = 4;
/// The part of a lease for which a member is silent before it is looked at.
const SILENT_PART: u32 = 4;

/// Time between two renewals of a lease that lasts for `lease_ttl`.
#[must_use]
pub fn renewal_pace(lease_ttl: Duration) -> Duration {
    (lease_ttl / RENEWALS_PER_LEASE).min(RENEWAL_PACE_MAX)
}

/// Times at which this control store last heard of each member.
#[derive(Debug)]
pub(super) struct Silences {
    /// Time without renewals after which a member is looked at.
    limit: Duration,
    heard: HashMap<NodeId, Heard>,
}

#[derive(Clone, Copy, Debug)]
struct Heard {
    at: Instant,
    /// It is being looked at.
    is_examined: bool,
}

/// Result of one look at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// The process that listens there answered, or closed the connection.
    Answered,
    /// Nobody accepted the connection in time, or it was refused.
    NotAccepted,
    /// The connection was accepted and nothing came on it in time.
    Silent,
}

/// State of a silent member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing can be said: the looks took too long themselves.
    Unknown,
    /// Its process hangs.
    Hangs,
    /// It lives, or its lease decides.
    Leave,
}

/// The verdict of several looks that took `elapsed` together and should have taken `expected` at most.
pub(super) fn verdict(looks: &[Look], elapsed: Duration, expected: Duration) -> Verdict {
    if looks.iter().any(|look| *look != Look::Silent) {
        return Verdict::Leave;
    }
    if expected < elapsed { Verdict::Unknown } else { Verdict::Hangs }
}

impl Silences {
    pub(super) fn new(lease_ttl: Duration) -> Self {
        // Two renewals may be lost or late.
        let limit = (renewal_pace(lease_ttl) * 5 / 2).max(lease_ttl / SILENT_PART);
        Self { limit, heard: HashMap::new() }
    }

    /// A member renewed its lease.
    pub(super) fn heard(&mut self, node: NodeId, now: Instant) {
        self.heard.insert(node, Heard { at: now, is_examined: false });
    }

    /// When a member was last heard of here.
    pub(super) fn heard_at(&self, node: NodeId) -> Option<Instant> {
        self.heard.get(&node).map(|heard| heard.at)
    }

    /// A node is no member any more, or calls another control store now.
    pub(super) fn forget(&mut self, node: NodeId) {
        self.heard.remove(&node);
    }

    /// This process itself stood still: everybody has the whole time again.
    pub(super) fn restart(&mut self, now: Instant) {
        self.heard.values_mut().for_each(|heard| *heard = Heard { at: now, is_examined: false });
    }

    /// Members to look at now. Each is named once, until it is heard of again.
    pub(super) fn due(&mut self, now: Instant) -> Vec<NodeId> {
        let mut due = Vec::new();
        for (node, heard) in &mut self.heard {
            if !heard.is_examined && self.limit <= now.saturating_duration_since(heard.at) {
                heard.is_examined = true;
                due.push(*node);
            }
        }
        due
    }

    /// Whether a look at a member begins now. One that is heard of here is looked at when it is due.
    pub(super) fn begins_look(&mut self, node: NodeId, now: Instant) -> bool {
        let is_unheard = !self.heard.contains_key(&node);
        if is_unheard {
            self.heard.insert(node, Heard { at: now, is_examined: true });
        }
        is_unheard
    }

    /// Time at which the next member is due, if no renewals come. Renewals and new members only make it
    /// later.
    pub(super) fn next_due(&self, now: Instant) -> Instant {
        let waiting = self.heard.values().filter(|heard| !heard.is_examined);
        waiting.map(|heard| heard.at).min().unwrap_or(now) + self.limit
    }

    /// A member was looked at. Returns whether it is to be declared dead: it hangs, and was not heard of
    /// meanwhile.
    pub(super) fn examined(&mut self, node: NodeId, verdict: Verdict, now: Instant) -> bool {
        let is_silent = self.heard.get(&node).is_some_and(|heard| heard.is_examined);
        match verdict {
            Verdict::Hangs => return is_silent,
            Verdict::Unknown if is_silent => self.heard(node, now),
            // The next renewal brings it back.
            Verdict::Leave if is_silent => self.forget(node),
            Verdict::Unknown | Verdict::Leave => {}
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(10);
    const NODE: NodeId = NodeId(1);
    const SECOND: Duration = Duration::from_secs(1);

    fn silent_since(start: Instant) -> Silences {
        let mut silences = Silences::new(TTL);
        silences.heard(NODE, start);
        assert_eq!(silences.next_due(start), start + silences.limit);
        assert!(silences.due(start + SECOND * 2).is_empty());
        assert_eq!(silences.due(start + SECOND * 3), [NODE]);
        assert!(silences.due(start + SECOND * 4).is_empty(), "it is being looked at");
        silences
    }

    #[test]
    fn a_member_that_hangs_is_declared_dead_unless_it_is_heard_of() {
        let start = Instant::now();
        let mut silences = silent_since(start);
        assert!(silences.examined(NODE, Verdict::Hangs, start + SECOND * 5));
        let mut silences = silent_since(start);
        silences.heard(NODE, start + SECOND * 4);
        assert!(!silences.examined(NODE, Verdict::Hangs, start + SECOND * 5));
        assert_eq!(silences.due(start + SECOND * 7), [NODE], "its time began again");
    }

    #[test]
    fn a_member_that_answers_elsewhere_is_left_alone_until_it_is_heard_of() {
        let start = Instant::now();
        let mut silences = silent_since(start);
        assert!(!silences.examined(NODE, Verdict::Leave, start + SECOND * 5));
        assert!(silences.due(start + SECOND * 60).is_empty());
        silences.heard(NODE, start + SECOND * 60);
        assert_eq!(silences.due(start + SECOND * 63), [NODE]);
    }

    #[test]
    fn a_head_that_is_never_heard_of_here_is_looked_at_again_and_again() {
        let start = Instant::now();
        let mut silences = Silences::new(TTL);
        assert!(silences.begins_look(NODE, start));
        assert!(!silences.begins_look(NODE, start + SECOND), "one look at a time");
        assert!(silences.due(start + SECOND * 60).is_empty());
        assert!(!silences.examined(NODE, Verdict::Leave, start + SECOND * 2));
        assert!(silences.begins_look(NODE, start + SECOND * 2));
        assert!(silences.examined(NODE, Verdict::Hangs, start + SECOND * 4));
        silences.heard(NODE, start + SECOND * 5);
        assert!(!silences.begins_look(NODE, start + SECOND * 6), "it renews its lease here");
    }

    #[test]
    fn looks_that_took_too_long_are_repeated_and_a_standstill_accuses_nobody() {
        let start = Instant::now();
        let mut silences = silent_since(start);
        assert!(!silences.examined(NODE, Verdict::Unknown, start + SECOND * 20));
        assert!(silences.due(start + SECOND * 21).is_empty());
        assert_eq!(silences.due(start + SECOND * 23), [NODE]);
        silences.restart(start + SECOND * 100);
        assert!(!silences.examined(NODE, Verdict::Hangs, start + SECOND * 101));
        assert!(silences.due(start + SECOND * 102).is_empty());
    }

    #[test]
    fn only_silence_in_every_look_and_in_time_is_a_hang() {
        let silent = [Look::Silent; 2];
        assert_eq!(verdict(&silent, SECOND, SECOND * 2), Verdict::Hangs);
        assert_eq!(verdict(&silent, SECOND * 3, SECOND * 2), Verdict::Unknown);
        for other in [Look::Answered, Look::NotAccepted] {
            assert_eq!(verdict(&[Look::Silent, other], SECOND, SECOND * 2), Verdict::Leave);
            assert_eq!(verdict(&[other, Look::Silent], SECOND * 3, SECOND * 2), Verdict::Leave);
        }
    }

    #[test]
    fn a_longer_lease_is_a_longer_patience_with_a_process_that_stands_still() {
        let start = Instant::now();
        for (ttl, patience) in [(2, 1.25), (10, 2.5), (60, 15.0), (600, 150.0)] {
            let mut silences = Silences::new(SECOND * ttl);
            silences.heard(NODE, start);
            assert_eq!(
                silences.next_due(start),
                start + Duration::from_secs_f64(patience),
                "lease of {ttl} s"
            );
            assert!(silences.due(start + Duration::from_secs_f64(patience - 0.1)).is_empty());
        }
    }

    #[test]
    fn leases_are_renewed_each_second_or_four_times() {
        assert_eq!(renewal_pace(TTL), SECOND);
        assert_eq!(renewal_pace(SECOND), SECOND / 4);
    }
}
