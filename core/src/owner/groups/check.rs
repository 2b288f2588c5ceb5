//! The relations that hold between groups, their bundles and their leases in every state.

use super::{Groups, Seat, State};
use crate::owner::Object;
use crate::slab::Slot;

impl Groups {
    /// Sizes of tables that must be empty when nothing is under way.
    pub(in crate::owner) fn leftovers(&self) -> [(&'static str, usize); 3] {
        let known = self.known.len();
        [("placement groups", self.all.len()), ("bundles", self.held.len()), ("groups of tasks", known)]
    }

    /// Asserts that leases and bundles agree, and that each group is in the state of its bundles.
    pub(in crate::owner) fn check(&self) {
        let detached = self.all.values().filter(|group| group.is_detached);
        self.detached_of.check(detached.map(|group| group.job));
        let mut leases = 0;
        for (slot, group) in &self.all {
            let id = group.id;
            let places = group.seats.iter().filter_map(|seat| seat.place()).map(|(_, lease)| lease);
            for lease in places.chain(group.leaving.keys().copied()) {
                assert_eq!(self.held.group(lease), Some(*slot), "a lease of group {id} is misfiled");
                leases += 1;
            }
            let count = |is: fn(Seat) -> bool| group.seats.iter().filter(|seat| is(**seat)).count();
            let (trying, placed) = (count(Seat::is_of_attempt), count(|seat| seat.placed_at().is_some()));
            match group.state {
                State::Whole => assert_eq!(placed, group.seats.len(), "group {id} is not whole"),
                State::Asking(_) => {
                    assert_eq!(trying + placed, group.seats.len(), "group {id} asks for a part");
                    assert!(0 < trying, "group {id} asks for nothing");
                }
                State::Planned => {
                    assert!(self.dirty.contains(&(group.number, *slot)), "group {id} is forgotten");
                }
                State::Behind | State::Again(_) | State::Impossible(..) => {}
            }
            assert!(matches!(group.state, State::Asking(_)) || trying == 0, "group {id} keeps an attempt");
            let is_behind = group.state == State::Behind;
            assert_eq!(is_behind, self.held.stands_behind(*slot), "group {id} stands behind others");
            assert_eq!(group.timer, group.next_timeout(), "group {id} has another time than it says");
            assert!(group.timer.is_none_or(|at| self.timers.contains(&(at, *slot))), "{id} is not timed");
        }
        let timed = self.all.values().filter(|group| group.timer.is_some()).count();
        assert_eq!(self.timers.len(), timed, "a group is timed twice, or is gone");
        assert_eq!(leases, self.held.len(), "a lease without a bundle");
        self.held.check();
        let is_there = |(_, slot): &(u64, Slot<Object>)| self.all.contains_key(slot);
        assert!(self.dirty.iter().all(is_there), "a group is planned and gone");
        self.known.check();
    }
}
