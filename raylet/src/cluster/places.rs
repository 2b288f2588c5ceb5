//! Admission of readers: places for the connections over which other nodes read, as a table without clocks or
//! sockets.
//!
//! A connection keeps its place while nothing is read over it, because the next object of the same node comes
//! soon. When places are short, those that were idle for longest make way. One node has a limited share of
//! them, so that it cannot keep the others out. Whoever gets none is told so and asks again.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tharsis_types::NodeId;

/// Connections that are served at a time.
pub const PLACES_MAX: usize = 256;
/// Of these, for one node; its pulls and the programs that it fetches need fewer.
pub const PLACES_PER_NODE_MAX: usize = 32;
const _: () = assert!(8 * PLACES_PER_NODE_MAX <= PLACES_MAX, "no few nodes take all places");
/// A connection that was idle for this long makes way when places are short.
pub const IDLE_MAX: Duration = Duration::from_secs(10);

/// The places of a node that sends.
#[derive(Debug, Default)]
pub struct Places {
    next: u64,
    held: BTreeMap<u64, Place>,
}

#[derive(Debug)]
struct Place {
    /// Node that has it, as it says; connections without a node share one's limit.
    node: Option<NodeId>,
    /// Since when nothing is read over it; none while something is.
    idle_since: Option<Instant>,
}

/// The outcome for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// There is no place now.
    Busy,
    /// It has this place; the connection of another one is to be ended for it, if one is named.
    Seated {
        /// Its place.
        place: u64,
        /// Connection whose end makes room.
        instead_of: Option<u64>,
    },
}

impl Places {
    /// Takes in a connection of a node, if there is a place for it.
    pub fn enter(&mut self, node: Option<NodeId>, now: Instant) -> Entry {
        let of_node = self.held.values().filter(|place| place.node == node).count();
        let instead_of = if PLACES_PER_NODE_MAX <= of_node {
            self.longest_idle(now, |place| place.node == node)
        } else if PLACES_MAX <= self.held.len() {
            self.longest_idle(now, |_| true)
        } else {
            return Entry::Seated { place: self.seat(node, now), instead_of: None };
        };
        let Some(gone) = instead_of else { return Entry::Busy };
        self.held.remove(&gone);
        Entry::Seated { place: self.seat(node, now), instead_of }
    }

    /// Something is read over a connection, or no longer.
    pub fn working(&mut self, place: u64, is_working: bool, now: Instant) {
        if let Some(place) = self.held.get_mut(&place) {
            place.idle_since = (!is_working).then_some(now);
        }
    }

    /// A connection has ended.
    pub fn leave(&mut self, place: u64) {
        self.held.remove(&place);
    }

    fn seat(&mut self, node: Option<NodeId>, now: Instant) -> u64 {
        let place = self.next;
        self.next += 1;
        // Whoever says nothing at all is idle from the start.
        self.held.insert(place, Place { node, idle_since: Some(now) });
        assert!(self.held.len() <= PLACES_MAX, "more places than there are");
        place
    }

    fn longest_idle(&self, now: Instant, which: impl Fn(&Place) -> bool) -> Option<u64> {
        let idle = self.held.iter().filter(|(_, place)| which(place));
        let idle = idle.filter_map(|(number, place)| Some((place.idle_since?, *number)));
        let (since, number) = idle.min()?;
        (IDLE_MAX <= now.saturating_duration_since(since)).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn seated(entry: Entry) -> u64 {
        match entry {
            Entry::Seated { place, .. } => place,
            Entry::Busy => panic!("there is no place"),
        }
    }

    #[test]
    fn one_node_keeps_nobody_else_out() {
        let (mut places, now) = (Places::default(), Instant::now());
        for _ in 0..PLACES_PER_NODE_MAX {
            seated(places.enter(None, now));
        }
        assert_eq!(places.enter(None, now + IDLE_MAX - SECOND), Entry::Busy);
        seated(places.enter(Some(NodeId(1)), now));
        // The oldest of its own make way after a while.
        let entry = places.enter(None, now + IDLE_MAX);
        assert!(matches!(entry, Entry::Seated { instead_of: Some(0), .. }), "{entry:?}");
    }

    #[test]
    fn the_longest_idle_makes_way_and_who_works_does_not() {
        let (mut places, now) = (Places::default(), Instant::now());
        let all: Vec<u64> =
            (0..PLACES_MAX as u64).map(|n| seated(places.enter(Some(NodeId(n)), now))).collect();
        let stranger = Some(NodeId(u64::MAX));
        places.working(all[0], true, now);
        places.working(all[1], true, now);
        places.working(all[1], false, now + SECOND);
        assert_eq!(places.enter(stranger, now + SECOND), Entry::Busy);
        let later = now + IDLE_MAX;
        for expected in &all[2..] {
            let Entry::Seated { place, instead_of } = places.enter(stranger, later) else {
                panic!("{expected} keeps its place")
            };
            assert_eq!(instead_of, Some(*expected));
            places.working(place, true, later);
            places.leave(place);
            seated(places.enter(Some(NodeId(1000 + expected)), later));
        }
        assert_eq!(places.enter(stranger, later), Entry::Busy, "the second is idle for less");
        assert!(matches!(places.enter(stranger, later + SECOND), Entry::Seated { instead_of: Some(1), .. }));
    }
}
