//! Polls among the members, and what follows from their outcome.

use crate::cluster::outbox::Contact;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::time::Duration;
use tharsis_types::NodeId;
use tokio::time::Instant;

/// Maximum number of members that are looked at.
const MEMBERS_MAX: usize = 64;
/// Number of times by which the members that count this node as alive outnumber the others, if not all are
/// looked at.
const POLL_MARGIN: usize = 3;

/// The finding of a look at those who may count this node as alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nobody does, as it seems.
    Nobody,
    /// Those who accept connections may.
    Ports,
    /// Most of these have answered since the look before.
    Members,
}

/// The findings of one look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Around {
    /// Those who may count this node as alive.
    pub found: Found,
    /// Whether more of the members that were asked have refused this node as none lately than have answered.
    pub is_denied: bool,
}

/// The answer to a look at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// It accepts connections.
    Accepts,
    /// Its port is closed.
    Refuses,
    /// Nothing comes from there.
    Silent,
}

/// The members that one look goes to.
pub(super) struct Poll {
    pub(super) some: Vec<Contact>,
    /// Whether a stream with any member is up.
    is_linked: bool,
    /// Number of times by which those that count this node as alive have to outnumber the others.
    margin: usize,
}

/// Statements of members about this node, over their streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Said {
    /// Number of those that have answered it as a member.
    answers: usize,
    /// Number of those that have refused it as none.
    denials: usize,
}

impl Poll {
    /// The members that a node looks at, of all.
    pub(super) fn of(me: NodeId, all: Vec<Contact>) -> Poll {
        let is_linked = all.iter().any(|member| member.is_up);
        let margin = if MEMBERS_MAX < all.len() { POLL_MARGIN } else { 1 };
        Poll { some: some_of(me, all), is_linked, margin }
    }

    /// Counts the answers since they were asked, and the refusals of this time.
    pub(super) fn said(&self, asked: Option<Instant>, now: Instant, lately: Duration) -> Said {
        let has_answered =
            |member: &&Contact| asked.is_some_and(|asked| member.has_answered(asked.into_std()));
        let is_late = |at: std::time::Instant| lately < now.into_std().saturating_duration_since(at);
        let denies = |member: &&Contact| member.denied.is_some_and(|at| !is_late(at));
        Said {
            answers: self.some.iter().filter(has_answered).count(),
            denials: self.some.iter().filter(denies).count(),
        }
    }

    /// Finds who is there by the looks at the control stores and at these members, and by what they have
    /// said.
    pub(super) fn finds(&self, stores: &[Look], members: &[Look], said: Said) -> Around {
        let Said { answers, denials } = said;
        let is_denied = answers + usize::from(1 < self.some.len()) < denials;
        if !decide(stores, members, self.is_linked, self.margin) {
            return Around { found: Found::Nobody, is_denied };
        }
        // Two nodes that were cut off together may still count each other.
        let accepts = members.iter().filter(|look| **look == Look::Accepts).count();
        let is_answered = self.margin * accepts.saturating_sub(answers) < answers;
        Around { found: if is_answered { Found::Members } else { Found::Ports }, is_denied }
    }
}

/// The members that are no control stores.
pub(super) fn others(mut members: Vec<Contact>, stores: &[String]) -> Vec<Contact> {
    members.retain(|member| !stores.contains(&member.address));
    members
}

/// The members that a node looks at: by chance, and the same ones at each look.
pub(super) fn some_of(me: NodeId, mut members: Vec<Contact>) -> Vec<Contact> {
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    members.sort_by_cached_key(|member| hasher.hash_one((me, member.node)));
    members.truncate(MEMBERS_MAX);
    members
}

/// Decides by the looks at the control stores and at some members, and by whether a stream with any member is
/// up: so many times as many members have to accept connections as are silent.
fn decide(stores: &[Look], members: &[Look], is_linked: bool, margin: usize) -> bool {
    let count = |look| members.iter().filter(|found| **found == look).count();
    stores.contains(&Look::Accepts) || is_linked && margin * count(Look::Silent) < count(Look::Accepts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn who_is_counted_as_alive() {
        use Look::{Accepts, Refuses, Silent};
        let decide =
            |stores: &[Look], members: &[Look], is_linked| super::decide(stores, members, is_linked, 1);
        // The control store is away, its machine is there or not, and members are linked.
        assert!(decide(&[Refuses], &[Accepts], true) && decide(&[Silent], &[Accepts, Accepts, Silent], true));
        // Another control store is there.
        assert!(decide(&[Silent, Accepts], &[], false));
        // Cut off from the control store alone: members have ended their streams.
        assert!(!decide(&[Silent], &[Accepts, Accepts], false));
        // Cut off together with one that is linked, as two nodes of one machine are.
        assert!(!decide(&[Silent], &[Accepts, Silent], true));
        assert!(!decide(&[Refuses], &[Accepts, Silent, Silent], true));
        // Members that ended with the control store are none.
        assert!(decide(&[Refuses], &[Accepts, Refuses, Refuses], true));
        // Whoever is alone is not, whatever refuses.
        assert!(!decide(&[Refuses], &[Refuses], true) && !decide(&[], &[], false));
    }

    /// Half of a cluster is cut off; as many of them as a poll looks at are found by chance.
    #[test]
    fn the_outcome_of_a_poll_has_to_be_clear_and_that_of_a_look_at_all_need_not() {
        let poll = |count: u64| {
            Poll::of(NodeId(9_999), (0..count).map(|n| contact(n, &n.to_string(), true)).collect())
        };
        let (exact, poll) = (poll(MEMBERS_MAX as u64), poll(MEMBERS_MAX as u64 + 1));
        assert_eq!((exact.some.len(), poll.some.len()), (MEMBERS_MAX, MEMBERS_MAX));
        let found = |poll: &Poll, accepts: usize, answers: usize| {
            let look = |n| if n < accepts { Look::Accepts } else { Look::Silent };
            let looks: Vec<_> = (0..MEMBERS_MAX).map(look).collect();
            poll.finds(&[Look::Silent], &looks, Said { answers, denials: 0 }).found
        };
        assert_eq!((found(&exact, 32, 0), found(&exact, 33, 0)), (Found::Nobody, Found::Ports));
        assert_eq!((found(&poll, 48, 0), found(&poll, 49, 0)), (Found::Nobody, Found::Ports));
        // Those that accept connections answer, or most of them.
        assert_eq!((found(&exact, 60, 30), found(&exact, 60, 31)), (Found::Ports, Found::Members));
        assert_eq!((found(&poll, 60, 45), found(&poll, 60, 46)), (Found::Ports, Found::Members));
    }

    #[test]
    fn one_that_refuses_this_node_is_not_enough_where_there_are_others() {
        let is_denied = |count: u64, answers: usize, denials: usize| {
            let poll = Poll::of(NodeId(9), (0..count).map(|n| contact(n, "member:1", false)).collect());
            poll.finds(&[], &[], Said { answers, denials }).is_denied
        };
        assert!(is_denied(1, 0, 1), "there is nobody else to ask");
        assert!(!is_denied(2, 0, 1) && is_denied(2, 0, 2), "the other one may be cut off");
        assert!(!is_denied(16, 1, 2) && is_denied(16, 1, 3));
    }

    #[test]
    fn a_refusal_of_long_ago_counts_no_longer() {
        let at = Instant::now();
        let denied = Contact { denied: Some(at.into_std()), ..contact(1, "member:1", false) };
        let poll = Poll::of(NodeId(9), vec![denied]);
        let lately = Duration::from_secs(5);
        let denials = |seconds| poll.said(None, at + Duration::from_secs(seconds), lately).denials;
        assert_eq!([0, 5, 6].map(denials), [1, 1, 0]);
    }

    /// A head and two workers: the head's machine goes away.
    #[test]
    fn the_silence_of_a_head_is_counted_once() {
        let stores = ["head:1".to_owned()];
        let is_counted = |is_worker_linked| {
            let members = vec![contact(1, "head:1", true), contact(2, "worker:1", is_worker_linked)];
            let members = others(members, &stores);
            assert_eq!(members, [contact(2, "worker:1", is_worker_linked)]);
            decide(&[Look::Silent], &[Look::Accepts], members[0].is_up, 1)
        };
        assert!(is_counted(true));
        // The stream with the silent head only seems to be up.
        assert!(!is_counted(false));
    }

    /// Half of a cluster is cut off together, and these have streams with each other only.
    #[test]
    fn those_who_are_cut_off_together_have_their_part_in_a_look() {
        let samples: Vec<Vec<Contact>> = (100..164)
            .map(|me| some_of(NodeId(me), (0..200).map(|n| contact(n, &n.to_string(), n < 100)).collect()))
            .collect();
        let linked = |some: &Vec<Contact>| some.iter().filter(|member| member.is_up).count();
        let sum: usize = samples.iter().map(linked).sum();
        assert!((1_850..2_250).contains(&sum), "{sum} of {}", samples.len() * MEMBERS_MAX);
        let counts_as_alive = |some: &&Vec<Contact>| {
            let look = |member: &Contact| if member.is_up { Look::Accepts } else { Look::Silent };
            decide(&[Look::Silent], &some.iter().map(look).collect::<Vec<_>>(), true, POLL_MARGIN)
        };
        let alive = samples.iter().filter(counts_as_alive).count();
        assert_eq!(alive, 0, "some go on, cut off from most");
        assert!(samples.iter().all(|some| some.len() == MEMBERS_MAX));
        let asked: BTreeSet<NodeId> = samples.iter().flatten().map(|member| member.node).collect();
        assert_eq!(asked.len(), 200, "nobody is asked by all, and everybody by some");
        let again = (0..200).rev().map(|n| contact(n, &n.to_string(), n < 100)).collect();
        assert_eq!(some_of(NodeId(100), again), samples[0], "the next look is at the same ones");
    }

    fn contact(node: u64, address: &str, is_up: bool) -> Contact {
        Contact { node: NodeId(node), address: address.to_owned(), is_up, came: None, denied: None }
    }
}
