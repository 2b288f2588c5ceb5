//! Bundles that are set aside while no holder of one of their objects is reached.
//!
//! | state | where | enters by | leaves by |
//! |---|---|---|---|
//! | set aside | `aside` | `set_aside` | `end_pauses`, or the end of the bundle |

use super::{Effect, Interrupted, Pull, Pulls, Purpose, RunName, Stage, known_mut};
use crate::journal::Fact;
use crate::{MS, Now};
use tharsis_types::{NodeId, ObjectId};

/// A copy that is to be moved is left to another node when it was set aside so often.
const MOVE_ASIDES_MAX: u32 = 2;

/// A run is to go back when its arguments were set aside so often: another node may reach their holders.
pub(super) const ARGUMENT_ASIDES_MAX: u32 = 4;

/// The owner of an object that gives way to others each time its holders are tried is asked so often.
const ASK_PAUSE: Now = 64_000 * MS;

impl<R: RunName> Pulls<R> {
    /// A transfer was interrupted, or its source was not reached, which says nothing of the copy there. If
    /// more has come than before, the next holder goes on at once, or this one if no other can; else this one
    /// is left alone for a while.
    pub fn interrupted(&mut self, ended: Interrupted, room_bytes: u64, out: &mut Vec<Effect<R>>) {
        let Interrupted { object, from, done_bytes, copy, cause } = ended;
        let (source, was_running) = (self.source_of(object, from), self.is_running(object));
        self.set_running(object, None);
        self.note(object, Fact::PullFailed(from));
        let before = self.pulls.get(&object).map_or(0, |pull| pull.done_bytes);
        let is_holder = self.pulls.get(&object).is_some_and(|pull| pull.holders.contains(&source));
        if before < done_bytes {
            self.reached(source);
        } else if is_holder {
            let before = self.unreached.until(source);
            self.unreached.failed(source, self.journal.now());
            self.hurry_to(before, self.unreached.until(source));
        } else if was_running {
            // Its copy has gone meanwhile.
            self.left(source);
        }
        if let Some(pull) = self.pulls.get_mut(&object) {
            (pull.interruptions, pull.asked_at) = (pull.interruptions + 1, None);
            pull.done_bytes = before.max(done_bytes);
            if before < done_bytes && copy != 0 {
                pull.cause = Some(cause);
            } else {
                pull.broke_off(source, cause);
            }
            if pull.needed_by.is_empty() {
                self.give_up(object, out);
            }
        }
        self.advance(room_bytes, out);
    }

    /// Tries holders again that were not reached.
    pub fn end_pauses(&mut self, room_bytes: u64, out: &mut Vec<Effect<R>>) {
        let now = self.journal.now();
        let later = self.aside.split_off(&(now + 1, (0, 0)));
        for ((_, order), purpose) in std::mem::replace(&mut self.aside, later) {
            known_mut(&mut self.bundles, &purpose).stage = Stage::Queued;
            self.queue.insert(order, purpose);
        }
        self.advance(room_bytes, out);
    }

    /// When [`Pulls::end_pauses`] has something to do.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Now> {
        self.aside.first_key_value().map(|((until, _), _)| *until)
    }

    /// Whether no holder of the object is reached: they are tried again later.
    #[must_use]
    pub fn is_aside(&self, object: ObjectId) -> bool {
        self.pulls.get(&object).is_some_and(|pull| self.aside_until(pull).is_some())
    }

    /// Since when a bundle was set aside again and again and none of its objects came; none if it is not set
    /// aside now.
    #[must_use]
    pub fn aside_since(&self, purpose: Purpose<R>) -> Option<Now> {
        let bundle = self.bundles.get(&purpose)?;
        bundle.aside_since.filter(|_| matches!(bundle.stage, Stage::Aside(_)))
    }

    /// The holder that is tried next, and from when on: of those that are reached the first.
    pub(super) fn next_holder(&self, pull: &Pull<R>) -> Option<(NodeId, Now)> {
        let holders = pull.holders.iter().map(|holder| (*holder, self.unreached.until(*holder)));
        holders.min_by_key(|(_, until)| *until)
    }

    /// Until when nobody tries to read an object.
    pub(super) fn aside_until(&self, pull: &Pull<R>) -> Option<Now> {
        let until = |purpose| match self.bundles.get(purpose)?.stage {
            Stage::Aside(until) => Some(until),
            Stage::Queued | Stage::Admitted => None,
        };
        let is_idle = pull.running.is_none() && pull.admitted.is_empty();
        pull.needed_by.values().filter(|_| is_idle).filter_map(until).min()
    }

    /// No holder of an object is reached before a time: the bundles that wait for it leave their room to
    /// others. A copy that is to be moved is kept by another node in the end, and a run may go back.
    pub(super) fn set_aside(&mut self, object: ObjectId, until: Now, out: &mut Vec<Effect<R>>) {
        let pull = known_mut(&mut self.pulls, &object);
        pull.done_bytes = 0;
        let cause = pull.cause.clone();
        let waiting = pull.admitted.iter().filter_map(|order| pull.needed_by.get(order));
        let waiting: Vec<_> = waiting.copied().collect();
        let now = self.journal.now();
        for purpose in waiting {
            let bundle = known_mut(&mut self.bundles, &purpose);
            assert_eq!(bundle.stage, Stage::Admitted, "{purpose:?} waits for {object}");
            if matches!(purpose, Purpose::Move(_)) && MOVE_ASIDES_MAX <= bundle.asides {
                self.remove(purpose);
                out.push(Effect::Lost { purpose, object, cause: cause.clone() });
                continue;
            }
            if let Purpose::Arguments(run) = purpose {
                let is_late = ARGUMENT_ASIDES_MAX <= bundle.asides;
                out.push(if is_late { Effect::Late(run, object) } else { Effect::Aside(run) });
            }
            (bundle.stage, bundle.asides) = (Stage::Aside(until), bundle.asides.saturating_add(1));
            bundle.aside_since.get_or_insert(now);
            let (order, bytes) = (bundle.order, bundle.bytes);
            let missing: Vec<_> = bundle.missing.iter().copied().collect();
            self.give_back(bytes);
            self.aside.insert((until, order), purpose);
            for object in missing {
                let pull = known_mut(&mut self.pulls, &object);
                let was_startable_at = pull.startable_at();
                pull.admitted.remove(&order);
                let startable_at = pull.startable_at();
                self.move_startable(object, was_startable_at, startable_at);
            }
        }
        if let Some(pull) = self.pulls.get_mut(&object) {
            let asks = pull.asked_at.is_none_or(|at| at + ASK_PAUSE <= now);
            if asks {
                pull.asked_at = Some(now);
            }
            out.push(Effect::Unreached { object, asks });
        }
    }

    /// The bundles that wait for an object are queued again now, if they were set aside: its holders have
    /// changed.
    pub(super) fn hurry(&mut self, object: ObjectId) {
        let purposes = self.pulls.get(&object).into_iter().flat_map(|pull| pull.needed_by.values());
        let purposes: Vec<_> = purposes.copied().collect();
        purposes.into_iter().for_each(|purpose| self.hurry_bundle(purpose));
    }

    fn hurry_bundle(&mut self, purpose: Purpose<R>) {
        let now = self.journal.now();
        let Some(bundle) = self.bundles.get_mut(&purpose) else { return };
        if let Stage::Aside(until) = bundle.stage {
            bundle.stage = Stage::Aside(now);
            self.aside.remove(&(until, bundle.order));
            self.aside.insert((now, bundle.order), purpose);
        }
    }

    /// A try has ended: what was set aside until a time because of it is queued again when its node is tried
    /// next, if that is earlier.
    fn hurry_to(&mut self, before: Now, until: Now) {
        if before <= until {
            return;
        }
        let behind = self.aside.range((before, (0, 0))..=(before, (u8::MAX, u64::MAX)));
        let behind: Vec<_> = behind.map(|((_, order), purpose)| (*order, *purpose)).collect();
        for (order, purpose) in behind {
            known_mut(&mut self.bundles, &purpose).stage = Stage::Aside(until);
            self.aside.remove(&(before, order));
            self.aside.insert((until, order), purpose);
        }
    }

    /// A node is reached, or is gone: whatever was set aside may be because of it.
    pub(super) fn reached(&mut self, node: NodeId) {
        if self.unreached.remove(node) {
            self.hurry_all();
        }
    }

    /// A transfer from a node has ended and says nothing of it: another one finds out whether it is reached.
    pub(super) fn left(&mut self, node: NodeId) {
        if self.unreached.left(node, self.journal.now()) {
            self.hurry_all();
        }
    }

    fn hurry_all(&mut self) {
        let purposes: Vec<_> = self.aside.values().copied().collect();
        purposes.into_iter().for_each(|purpose| self.hurry_bundle(purpose));
    }
}
