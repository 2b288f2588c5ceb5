//! Connections of a port that have not proved themselves, and which of them ends when there are too many.
//! Decides only; `port.rs` accepts and ends them.
//!
//! Nobody knows yet who is behind one: a member whose handshake is under way, or somebody who keeps silent.
//! So addresses have equal shares: of too many, one of the address that has most ends, or of one that has
//! about as many. A handshake takes a fraction of a second, so the oldest is most likely to be silent: that
//! one ends. But a crowd of members behind one address, all of which come back at once, would end its own
//! handshakes in that way for ever: of a crowd all of which have come within [`SETTLING`] the middle one
//! ends. Slow handshakes among the older half then come to their end, and a newcomer has the time in which
//! half a crowd comes behind it, however many come. (`crowds_tests.rs` tries such crowds.)

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;
use tokio::time::Instant;

/// The time that a handshake may take before its connection may be ended for a newer one of its address.
const SETTLING: Duration = Duration::from_secs(1);
/// An address with this part of the connections of the one that has most has about as many.
const NEAR: usize = 4;
/// So many connections of one address are a crowd.
const CROWD: usize = 8;

/// Connections that have not proved themselves, the oldest first, each with what ends it.
#[derive(Debug)]
pub(crate) struct Unproved<T>(VecDeque<One<T>>);

#[derive(Debug)]
struct One<T> {
    source: IpAddr,
    since: Instant,
    handle: T,
}

impl<T> Default for Unproved<T> {
    fn default() -> Unproved<T> {
        Unproved(VecDeque::new())
    }
}

impl<T> Unproved<T> {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes a new one up, of an address or network.
    pub(crate) fn add(&mut self, source: IpAddr, since: Instant, handle: T) {
        self.0.push_back(One { source, since, handle });
    }

    /// Forgets those that have proved themselves, or are over.
    pub(crate) fn forget(&mut self, is_over: impl Fn(&T) -> bool) {
        self.0.retain(|one| !is_over(&one.handle));
    }

    /// Takes the one out that ends for others; none if there are none.
    pub(crate) fn take_one(&mut self, now: Instant) -> Option<T> {
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        for one in &self.0 {
            *counts.entry(one.source).or_insert(0) += 1;
        }
        let most = counts.values().max().copied()?;
        let count = |one: &One<T>| counts.get(&one.source).copied().unwrap_or(0);
        let has_time = |one: &One<T>| now.saturating_duration_since(one.since) < SETTLING && CROWD <= most;
        let oldest = self.0.iter().position(|one| most <= NEAR * count(one) && !has_time(one));
        let middle = || {
            let source = self.0.iter().rfind(|one| count(one) == most)?.source;
            let of_source = self.0.iter().enumerate().filter(|(_, one)| one.source == source);
            of_source.map(|(at, _)| at).nth(most / 2)
        };
        let ends = oldest.or_else(middle)?;
        self.0.remove(ends).map(|one| one.handle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those that end, one after the other, of connections of this age from these addresses.
    fn ended(sources: &[u8], age: Duration, count: usize) -> Vec<usize> {
        let (start, mut unproved) = (Instant::now(), Unproved::default());
        for (at, source) in sources.iter().enumerate() {
            unproved.add(IpAddr::from([10, 0, 0, *source]), start, at);
        }
        (0..count).filter_map(|_| unproved.take_one(start + age)).collect()
    }

    #[test]
    fn of_an_address_with_most_the_oldest_ends_once_it_had_its_time() {
        let sources = [&[1][..], &[2; CROWD + 2]].concat();
        assert_eq!(ended(&sources, SETTLING, 3), [1, 2, 3]);
        assert_eq!(ended(&sources, SETTLING / 2, 3), [6, 5, 7], "older handshakes and new ones go on");
        assert!(ended(&[], SETTLING, 1).is_empty());
    }

    #[test]
    fn among_addresses_with_about_as_many_the_oldest_of_all_ends() {
        let sources = [&[1; 3][..], &[2; CROWD + 1]].concat();
        assert_eq!(ended(&sources, SETTLING, 2), [0, 3], "two are not about as many as nine");
        assert_eq!(ended(&sources, Duration::ZERO, 2), [7, 8], "the one that has most");
        assert_eq!(ended(&[1, 2, 3, 3], Duration::ZERO, 2), [0, 1], "nobody is a crowd");
    }
}
