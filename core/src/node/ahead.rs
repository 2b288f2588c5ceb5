//! Read-ahead: while a client reads spilled values in order, the next ones are restored before they are asked
//! for.
//!
//! A reader that reads a spilled value and then the one that was spilled next will likely go on. Without
//! read-ahead, the disk and the reader would wait for each other in turn. Read-ahead uses only room that is
//! free or taken by copies that exist elsewhere: nothing is spilled for it, and no request waits for it.

use super::Node;
use crate::event::Action;
use crate::pull::{Missing, Purpose};
use tharsis_types::ObjectId;
use tharsis_types::limits::MIB;

/// Maximum number of readers that are tracked. With more readers, their reads look unordered.
const STREAMS_MAX: usize = 4;
/// Number of steps in order after which read-ahead starts: a single step may be chance.
const STEPS_MIN: u32 = 2;
/// Maximum number of values that are read ahead of one reader.
const AHEAD_MAX: usize = 16;
/// Maximum bytes that are read ahead of one reader.
const AHEAD_BYTES_MAX: u64 = 128 * MIB as u64;
/// Values that are read ahead of one reader take at most 1 / `AHEAD_SHARE` of the store.
const AHEAD_SHARE: u64 = 8;

/// Positions of readers in the order in which values were spilled; the most recent reader is the last.
#[derive(Debug, Default)]
pub(super) struct Streams(Vec<Stream>);

#[derive(Clone, Copy, Debug)]
struct Stream {
    place: u64,
    steps: u32,
}

impl Streams {
    /// Notes that a value was read; true if it continues a sequence. `before` is the place of the value that
    /// was spilled before it and is still on disk.
    fn read(&mut self, place: u64, before: u64) -> bool {
        // A value is noted when it is asked for and again when it arrives.
        let goes_on = |stream: &Stream| (before..=place).contains(&stream.place);
        let at = self.0.iter().rposition(goes_on);
        let steps = match at {
            Some(at) => {
                let stream = self.0.remove(at);
                stream.steps.saturating_add(u32::from(stream.place != place))
            }
            None => 0,
        };
        if self.0.len() == STREAMS_MAX {
            self.0.remove(0);
        }
        self.0.push(Stream { place, steps });
        assert!(self.0.len() <= STREAMS_MAX, "more readers are told apart than may be");
        STEPS_MIN <= steps
    }
}

impl Node {
    /// Whether an object is being read back and nobody waits for it. For tests and the simulator.
    #[must_use]
    pub fn is_only_ahead(&self, object: ObjectId) -> bool {
        self.pulls.is_only_ahead(object)
    }

    /// A client reads an object. If it continues a sequence on disk, the objects behind it are read back
    /// ahead.
    pub(super) fn read_ahead(&mut self, object: ObjectId, out: &mut Vec<Action>) {
        let Some(place) = self.store.place_on_disk(object) else { return };
        let before = self.store.place_before(place).unwrap_or(0);
        assert!(before <= place, "a copy was given to the disk before one that went earlier");
        if !self.streams.read(place, before) {
            return;
        }
        let bytes_max = AHEAD_BYTES_MAX.min(self.config.store_bytes / AHEAD_SHARE);
        let mut bytes = 0;
        let mut wanted = Vec::new();
        for (next, len) in self.store.behind_on_disk(place).take(AHEAD_MAX) {
            bytes += len;
            // A value that is already here counts against the room: it must not be evicted for one that is
            // read later.
            if bytes_max.min(self.store.spare_bytes()) < bytes {
                break;
            }
            if !self.store.holds(next) && !self.pulls.is_wanted(next) {
                wanted.push(Missing { object: next, len, holders: vec![self.id] });
            }
        }
        for missing in wanted {
            self.want_ahead(missing, out);
        }
    }

    /// Starts to read an object ahead, but only if the read can start at once: it must not delay other reads.
    fn want_ahead(&mut self, missing: Missing, out: &mut Vec<Action>) {
        let object = missing.object;
        let purpose = Purpose::Ahead(object);
        self.pull_change(out, |pulls, room, effects| pulls.want(purpose, vec![missing], room, effects));
        if !self.pulls.is_running(object) {
            self.forget_ahead(object, out);
        }
    }

    /// Cancels the read-ahead of an object.
    pub(super) fn forget_ahead(&mut self, object: ObjectId, out: &mut Vec<Action>) {
        if self.pulls.is_wanted(object) {
            self.pull_change(out, |pulls, room, effects| pulls.forget(Purpose::Ahead(object), room, effects));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_in_order_are_told_from_each_other_and_from_those_in_none() {
        let mut streams = Streams::default();
        assert!(!streams.read(10, 9) && !streams.read(50, 49), "nothing was read before");
        assert!(!streams.read(11, 10) && !streams.read(51, 50), "one step may be chance");
        assert!(!streams.read(11, 10), "what is asked for and then comes is one step");
        assert!(streams.read(12, 11) && streams.read(52, 51), "both go on");
        assert!(streams.read(19, 0), "everything between is gone");
        assert!(!streams.read(21, 20), "one is left out");
        assert!(!streams.read(30, 29) && !streams.read(40, 39) && !streams.read(60, 59));
        assert!(!streams.read(53, 52), "of many readers the oldest is forgotten");
    }
}
