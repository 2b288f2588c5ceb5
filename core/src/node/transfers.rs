//! Objects that are read from other nodes, and the nodes that wait to read them from here.
//!
//! A small object is read from a holder at once. For a large object, the holder is asked first: it answers
//! *now*, or names another node that will have the object soon (see [`crate::relay`]). The place for the
//! object is allocated before a holder is asked, so that no node waits for one that waits for room.
//!
//! | state of a large object | where | enters by | leaves by |
//! |---|---|---|---|
//! | asked for | `asked` | `begin`, `ask_again` | `answered`, `ask_again` when no node is left to ask |
//! | being read | `read_from` | `answered` | `ended`, `leave_reader` |
//! | interrupted | `begun` | `keep_begun` | `take_begun`, in the same step |
//!
//! [`crate::pull`] decides which objects are read, and tries the next holder when a transfer fails.
//!
//! Nobody is waited for without an end. A node from which nothing comes while messages for it are under way
//! is not reached. One that is reached answers at once, unless it waits for the object itself.
//!
//! A holder that names others has the object: nothing that these say or send counts against its copy.
//!
//! A transfer that broke off goes on with the bytes that are there ([`Part`]).

use super::Node;
use crate::event::{Action, Operation};
use crate::journal::{About, Entry, Fact, Journal};
use crate::pull::Interrupted;
use crate::relay::{Have, Relay, Request};
use crate::{MS, Now};
use std::sync::Arc;
use tharsis_types::hash::IdMap;
use tharsis_types::limits::MIB;
use tharsis_types::peer::{Message, Turn};
use tharsis_types::{Extent, Failure, FailureKind, NodeId, ObjectId};

/// A holder is asked at most this often before its copy counts as unreadable: the nodes that it names may
/// turn out not to have the object.
const ASKS_MAX: u8 = 4;

/// Readers that send us on are followed so far from a holder: no tree of them is higher.
const HOPS_MAX: u8 = 32;

/// The longest time for which a holder is waited for that is reached and does not answer.
const ANSWER_WAIT: Now = 30_000 * MS;

/// The longest time for which a reader is waited for until it has so many bytes, at a rate that no link in
/// use is slower than.
const READER_WAIT: Now = 60_000 * MS;
const READER_BYTES: u64 = 64 * MIB as u64;

/// The consequences of a change.
#[derive(Debug)]
enum Effect {
    /// No node is left to ask: the transfer from this holder has failed. If it `is_interrupted`, nobody says
    /// that the object is not there.
    Failed { object: ObjectId, holder: NodeId, part: Part, is_interrupted: bool },
    /// Read the rest of an object from a node.
    Read { object: ObjectId, from: NodeId, into: Extent, part: Part },
    /// Send a message.
    Send { to: NodeId, message: Message },
}

/// The beginning of an object that has come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Part {
    bytes: u64,
    /// The copy of which it is, by its node and its number there, unless all copies have the same bytes.
    copy: Option<(NodeId, u64)>,
}

impl Part {
    /// Bytes that have come from a node. A value that was put is the same on all nodes. A result may have
    /// been made twice, with different bytes: those of a copy without a number are of no use.
    fn of(object: ObjectId, from: NodeId, bytes: u64, copy: u64) -> Self {
        match copy {
            _ if object.is_put() => Self { bytes, copy: None },
            0 => Self::default(),
            _ => Self { bytes, copy: Some((from, copy)) },
        }
    }

    /// The bytes with which a node can go on, and the number of its copy of which they must be, or 0.
    fn at(self, node: NodeId) -> (u64, u64) {
        match self.copy {
            None => (self.bytes, 0),
            Some((holder, copy)) if holder == node => (self.bytes, copy),
            Some(_) => (0, 0),
        }
    }
}

/// Large objects that are read here, and those that others read from here.
#[derive(Debug, Default)]
pub(super) struct Transfers {
    /// Objects that other nodes were asked for.
    asked: IdMap<ObjectId, Asked>,
    /// Objects that are being read, with the answers that allowed it.
    read_from: IdMap<ObjectId, Asked>,
    /// Interrupted transfers: the partial extent, and the part that was received.
    begun: IdMap<ObjectId, (Extent, Part)>,
    /// Nodes that read from here.
    relay: Relay,
    journal: Journal,
}

/// An object that some node was asked for.
#[derive(Clone, Copy, Debug)]
struct Asked {
    into: Extent,
    /// The part that is there already.
    part: Part,
    /// The holder that was asked first.
    holder: NodeId,
    asks: u8,
    /// Number of times that we were sent on since the holder was asked last.
    hops: u8,
    /// The node that was asked last: the holder, or a node that an answer named.
    last: NodeId,
    /// Until when that one may take to answer.
    until: Now,
}

impl Asked {
    fn late_at(&self, silent_at: &impl Fn(NodeId) -> Option<Now>) -> Now {
        silent_at(self.last).map_or(self.until, |at| at.min(self.until))
    }
}

impl Transfers {
    /// Sets the time at which the changes that follow happen.
    pub(super) fn tell_time(&mut self, now: Now) {
        self.journal.tell_time(now);
    }

    /// The remembered history of an object that other nodes were asked for.
    pub(super) fn past(&self, object: ObjectId) -> impl Iterator<Item = Entry> {
        self.journal.about(About::Object(object))
    }

    /// The node that was asked last for an object, if it has not answered.
    pub(super) fn asked_of(&self, object: ObjectId) -> Option<NodeId> {
        self.asked.get(&object).map(|asked| asked.last)
    }

    /// Asks the holder of a large object for it.
    fn begin(&mut self, object: ObjectId, holder: NodeId, into: Extent, part: Part, out: &mut Vec<Effect>) {
        assert!(!self.read_from.contains_key(&object), "{object} is being read already");
        let until = self.journal.now() + ANSWER_WAIT;
        let asked = Asked { into, part, holder, asks: 1, hops: 0, last: holder, until };
        let before = self.asked.insert(object, asked);
        assert!(before.is_none(), "{object} is asked for twice");
        self.journal.note(About::Object(object), Fact::ReadAsked(holder));
        out.push(Effect::Send {
            to: holder,
            message: Message::ReadRequest { object, sent: false, failed_at: None },
        });
    }

    /// A node that was asked for an object answers. An answer of a node other than the one asked last is
    /// late.
    fn answered(
        &mut self,
        object: ObjectId,
        from: NodeId,
        turn: Turn,
        is_member: impl Fn(NodeId) -> bool,
        out: &mut Vec<Effect>,
    ) {
        let asked = self.asked.get(&object).copied().filter(|asked| asked.last == from);
        match (asked, turn) {
            (Some(asked), Turn::Now) => {
                self.asked.remove(&object);
                let before = self.read_from.insert(object, asked);
                assert!(before.is_none(), "{object} is read from two nodes");
                self.journal.note(About::Object(object), Fact::ReadBegun(from));
                let Asked { into, part, .. } = asked;
                out.push(Effect::Read { object, from, into, part });
            }
            (Some(asked), Turn::At(next)) if is_member(next) && asked.hops < HOPS_MAX => {
                let until = self.journal.now() + READER_WAIT * (1 + asked.into.len / READER_BYTES);
                self.asked.insert(object, Asked { last: next, hops: asked.hops + 1, until, ..asked });
                self.journal.note(About::Object(object), Fact::ReadAsked(next));
                let message = Message::ReadRequest { object, sent: true, failed_at: None };
                out.push(Effect::Send { to: next, message });
            }
            (Some(asked), Turn::At(next)) => {
                // It has just joined or is gone, which one of the two nodes does not know. Or nodes name each
                // other in a circle, and perhaps the holder in it.
                let failed = if next == asked.holder { from } else { next };
                self.asked.insert(object, Asked { last: failed, ..asked });
                self.ask_again(object, false, is_member, out);
            }
            (Some(_), Turn::Never) => self.ask_again(object, false, is_member, out),
            // It was asked twice.
            (None, Turn::Now) if self.read_from.get(&object).is_some_and(|read| read.last == from) => {}
            (None, Turn::Now) => out.push(Effect::Send { to: from, message: Message::ReadEnded { object } }),
            (None, Turn::At(_) | Turn::Never) => {}
        }
    }

    /// The node that was asked last cannot send the object, or does not answer: the holder is asked again, or
    /// the transfer has failed.
    fn ask_again(
        &mut self,
        object: ObjectId,
        is_late: bool,
        is_member: impl Fn(NodeId) -> bool,
        out: &mut Vec<Effect>,
    ) {
        let Some(asked) = self.asked.get(&object).copied() else { return };
        let Asked { holder, last, asks, part, .. } = asked;
        if last == holder || asks >= ASKS_MAX || !is_member(holder) {
            self.asked.remove(&object);
            self.tell_waiting(object, false, out);
            // A holder that names others has the object, whatever these say.
            let is_interrupted = is_member(holder) && (is_late || last != holder);
            return out.push(Effect::Failed { object, holder, part, is_interrupted });
        }
        let until = self.journal.now() + ANSWER_WAIT;
        self.asked.insert(object, Asked { last: holder, asks: asks + 1, hops: 0, until, ..asked });
        let message = Message::ReadRequest { object, sent: false, failed_at: Some(last) };
        out.push(Effect::Send { to: holder, message });
    }

    /// Whether an object is being read from a reader that the holder named.
    fn is_from_reader(&self, object: ObjectId) -> bool {
        self.read_from.get(&object).is_some_and(|read| read.last != read.holder)
    }

    /// A transfer from a reader that the holder named broke off, which says nothing of the holder: it is
    /// asked again. False if it was the holder's own, or that one was asked often enough.
    fn leave_reader(
        &mut self,
        object: ObjectId,
        part: Part,
        is_member: impl Fn(NodeId) -> bool,
        out: &mut Vec<Effect>,
    ) -> bool {
        let Some(read) = self.read_from.get(&object).copied() else { return false };
        if read.last == read.holder || read.asks >= ASKS_MAX || !is_member(read.holder) {
            return false;
        }
        self.read_from.remove(&object);
        out.push(Effect::Send { to: read.last, message: Message::ReadEnded { object } });
        self.asked.insert(object, Asked { part, ..read });
        self.ask_again(object, false, is_member, out);
        true
    }

    /// When an answer is late, by when nodes count as not reached.
    pub(super) fn next_timeout(&self, silent_at: impl Fn(NodeId) -> Option<Now>) -> Option<Now> {
        self.asked.values().map(|asked| asked.late_at(&silent_at)).min()
    }

    /// Objects whose answers are late, in order.
    fn late(&self, now: Now, silent_at: impl Fn(NodeId) -> Option<Now>) -> Vec<ObjectId> {
        let late = self.asked.iter().filter(|(_, asked)| asked.late_at(&silent_at) <= now);
        let mut objects: Vec<_> = late.map(|(object, _)| *object).collect();
        objects.sort_unstable();
        objects
    }

    /// Objects that other nodes were asked for, with the one that was asked last; for tests and the
    /// simulator.
    pub(super) fn asked(&self) -> impl Iterator<Item = (ObjectId, NodeId)> {
        self.asked.iter().map(|(object, asked)| (*object, asked.last))
    }

    /// Another node wants to read an object; `is_here` if all of it is in the store.
    fn wanted(&mut self, object: ObjectId, request: Request, is_here: bool, out: &mut Vec<Effect>) {
        let have = if is_here {
            Have::All
        } else if self.asked.contains_key(&object) || self.read_from.contains_key(&object) {
            Have::Some
        } else {
            Have::Nothing
        };
        if let Some(turn) = self.relay.wanted(object, request, have) {
            out.push(Effect::Send { to: request.reader, message: Message::ReadReply { object, turn } });
        }
    }

    /// Another node has finished reading an object, or gives it up.
    pub(super) fn reader_ended(&mut self, object: ObjectId, reader: NodeId) {
        self.relay.ended(object, reader);
    }

    /// A transfer has ended, complete or not: its source has room for another reader, and the readers that
    /// wait here go on. Small objects and those read back from disk were never asked for: nothing follows for
    /// them.
    fn ended(&mut self, object: ObjectId, is_complete: bool, out: &mut Vec<Effect>) {
        if let Some(Asked { last, .. }) = self.read_from.remove(&object) {
            out.push(Effect::Send { to: last, message: Message::ReadEnded { object } });
            self.tell_waiting(object, is_complete, out);
        }
    }

    /// Tells the readers that wait here to read now, or to go elsewhere.
    fn tell_waiting(&mut self, object: ObjectId, is_complete: bool, out: &mut Vec<Effect>) {
        let (waiting, turn) = if is_complete {
            (self.relay.arrived(object), Turn::Now)
        } else {
            (self.relay.lost(object), Turn::Never)
        };
        let reply = |to| Effect::Send { to, message: Message::ReadReply { object, turn } };
        out.extend(waiting.into_iter().map(reply));
    }

    /// A node that may read here is gone; returns the objects that it was asked for.
    fn node_gone(&mut self, node: NodeId) -> Vec<ObjectId> {
        self.relay.node_gone(node);
        let asked = self.asked.iter().filter(|(_, asked)| asked.last == node);
        let mut objects: Vec<_> = asked.map(|(object, _)| *object).collect();
        objects.sort_unstable();
        objects
    }

    /// Keeps an interrupted transfer: the next holder goes on where this one ended.
    fn keep_begun(&mut self, object: ObjectId, into: Extent, part: Part) {
        assert!(part.bytes <= into.len, "more of {object} has come than there is");
        let before = self.begun.insert(object, (into, part));
        assert!(before.is_none(), "{object} broke off twice");
    }

    /// The location of an object whose transfer was interrupted, and the part that is there.
    pub(super) fn take_begun(&mut self, object: ObjectId) -> Option<(Extent, Part)> {
        self.begun.remove(&object)
    }

    /// Asserts that an object is in one state.
    pub(super) fn check(&self) {
        for object in self.asked.keys() {
            assert!(!self.read_from.contains_key(object), "{object} is asked for and being read");
        }
        assert!(self.begun.is_empty(), "a transfer that broke off goes on, or ends, in the same step");
    }

    /// Sizes of tables that must be empty when nothing is under way.
    pub(super) fn leftovers(&self) -> [(&'static str, usize); 4] {
        [
            ("objects that nodes were asked for", self.asked.len()),
            ("objects that are being read", self.read_from.len()),
            ("objects that others read", self.relay.len()),
            ("transfers that broke off", self.begun.len()),
        ]
    }
}

impl Node {
    /// Changes transfers and carries out the effects.
    fn transfer_change(
        &mut self,
        out: &mut Vec<Action>,
        change: impl FnOnce(&mut Transfers, &dyn Fn(NodeId) -> bool, &mut Vec<Effect>),
    ) {
        let mut effects = Vec::new();
        let (me, view) = (self.id, &self.view);
        change(&mut self.transfers, &|node| node != me && view.knows(node), &mut effects);
        for effect in effects {
            match effect {
                Effect::Failed { object, holder, part, is_interrupted: true } => {
                    self.not_answered(object, holder, part, out)
                }
                Effect::Failed { object, holder, part, is_interrupted: false } => {
                    let cause = "neither it nor those that it named have it";
                    self.pull_failed(object, holder, part.at(holder).0, cause, out)
                }
                Effect::Read { object, from, into, part } => {
                    let (done_bytes, copy) = part.at(from);
                    out.push(Action::Do(Operation::Pull { object, from, into, done_bytes, copy }))
                }
                Effect::Send { to, message } => self.send(to, message),
            }
        }
    }

    /// Reads an object from another node, after asking it if the object is large.
    pub(super) fn begin_transfer(
        &mut self,
        object: ObjectId,
        holder: NodeId,
        into: Extent,
        part: Part,
        out: &mut Vec<Action>,
    ) {
        let (done_bytes, copy) = part.at(holder);
        if self.peers.silent_at(holder).is_some_and(|at| at <= self.now) {
            return self.not_answered(object, holder, part, out);
        }
        if into.len < self.config.relay_bytes_min {
            return out.push(Action::Do(Operation::Pull { object, from: holder, into, done_bytes, copy }));
        }
        if !self.view.knows(holder) {
            // It left while the transfer waited for room: it would never answer.
            return self.pull_failed(object, holder, done_bytes, "it is gone", out);
        }
        self.transfer_change(out, |transfers, _, effects| {
            transfers.begin(object, holder, into, part, effects)
        });
    }

    /// Another node wants to read an object here.
    pub(super) fn read_wanted(&mut self, object: ObjectId, request: Request, out: &mut Vec<Action>) {
        let is_here = self.is_here(object);
        self.transfer_change(out, |transfers, _, effects| {
            transfers.wanted(object, request, is_here, effects)
        });
    }

    /// A node that was asked for an object answers.
    pub(super) fn read_answered(
        &mut self,
        object: ObjectId,
        from: NodeId,
        turn: Turn,
        out: &mut Vec<Action>,
    ) {
        self.transfer_change(out, |transfers, is_member, effects| {
            transfers.answered(object, from, turn, is_member, effects)
        });
    }

    /// A transfer has failed, or a copy cannot be read back: the next holder is tried. It goes on with a
    /// value that was put where this one ended, and reads a result from the start.
    pub(super) fn pull_failed(
        &mut self,
        object: ObjectId,
        from: NodeId,
        done_bytes: u64,
        cause: &str,
        out: &mut Vec<Action>,
    ) {
        let part = Part::of(object, from, done_bytes, 0);
        if self.leaves_reader(object, part, out) {
            return;
        }
        if self.transfers.is_from_reader(object) {
            // The holder was asked often enough, and nobody says that its copy is gone.
            let (copy, cause) = (0, cause.to_owned());
            return self.pull_interrupted(Interrupted { object, from, done_bytes, copy, cause }, out);
        }
        self.transfer_broke_off(object, from, part, out);
        let cause = if from == self.id {
            self.copy_lost(object, out);
            format!("it could not be read back from disk: {cause}")
        } else {
            format!("it could not be read from node {from}: {cause}")
        };
        self.pull_change(out, |pulls, room, effects| pulls.failed(object, from, cause, room, effects));
        self.drop_begun(object);
    }

    /// A transfer broke off, or never began, and says nothing of the copy at its source. What has come is
    /// kept if a holder is tried at once: the next one for a value that was put, the same one for a result.
    pub(super) fn pull_interrupted(&mut self, ended: Interrupted, out: &mut Vec<Action>) {
        let Interrupted { object, from, done_bytes, copy, cause } = ended;
        let part = Part::of(object, from, done_bytes, copy);
        if self.leaves_reader(object, part, out) {
            return;
        }
        self.transfer_broke_off(object, from, part, out);
        let cause = format!("it could not be read from node {from}: {cause}");
        let ended = Interrupted { object, from, done_bytes, copy, cause };
        self.pull_change(out, |pulls, room, effects| pulls.interrupted(ended, room, effects));
        self.drop_begun(object);
    }

    /// A holder does not answer, or names others that do not send the object.
    fn not_answered(&mut self, object: ObjectId, from: NodeId, part: Part, out: &mut Vec<Action>) {
        let (done_bytes, copy) = part.at(from);
        let cause = "nothing comes from it or from those that it names".to_owned();
        self.pull_interrupted(Interrupted { object, from, done_bytes, copy, cause }, out);
    }

    /// Whether the transfer goes on with the holder of an object that is needed, as it broke off at a reader.
    fn leaves_reader(&mut self, object: ObjectId, part: Part, out: &mut Vec<Action>) -> bool {
        let mut has_left = false;
        if self.pulls.is_needed(object) {
            self.transfer_change(out, |transfers, is_member, effects| {
                has_left = transfers.leave_reader(object, part, is_member, effects);
            });
        }
        has_left
    }

    fn transfer_broke_off(&mut self, object: ObjectId, from: NodeId, part: Part, out: &mut Vec<Action>) {
        self.transfer_ended(object, false, out);
        let is_kept = from != self.id && (object.is_put() || 0 < part.bytes);
        match self.store.receiving(object).filter(|_| is_kept) {
            Some(into) => self.transfers.keep_begun(object, into, part),
            None => self.store.received(object, false),
        }
    }

    /// Drops what has come of an object, unless another transfer goes on with it.
    fn drop_begun(&mut self, object: ObjectId) {
        if self.transfers.take_begun(object).is_some() {
            self.store.received(object, false);
        }
    }

    /// Nodes that were asked for objects and do not answer are left for others.
    pub(super) fn leave_silent(&mut self, out: &mut Vec<Action>) {
        let late = self.transfers.late(self.now, |node| self.peers.silent_at(node));
        for object in late {
            self.transfer_change(out, |transfers, is_member, effects| {
                transfers.ask_again(object, true, is_member, effects)
            });
        }
    }

    /// Large objects that other nodes were asked for and have not answered; for tests and the simulator.
    pub fn asked_for(&self) -> impl Iterator<Item = (ObjectId, NodeId)> {
        self.transfers.asked()
    }

    /// A transfer has ended: its source has room for another reader, and the readers that wait here go on.
    pub(super) fn transfer_ended(&mut self, object: ObjectId, is_complete: bool, out: &mut Vec<Action>) {
        self.transfer_change(out, |transfers, _, effects| transfers.ended(object, is_complete, effects));
    }

    /// A node that may read here, or was asked for objects, is gone.
    pub(super) fn transfers_with_gone(&mut self, node: NodeId, out: &mut Vec<Action>) {
        for object in self.transfers.node_gone(node) {
            self.transfer_change(out, |transfers, is_member, effects| {
                transfers.ask_again(object, false, is_member, effects)
            });
        }
    }

    /// There is no memory behind the place into which an object was to be read. Its copies, here on disk or
    /// elsewhere, are unaffected.
    pub(super) fn no_memory_for(&mut self, object: ObjectId, cause: &str, out: &mut Vec<Action>) {
        self.transfer_ended(object, false, out);
        let (kind, what) = if self.store.is_in_annex(object) {
            (FailureKind::OutOfDisk, "room on disk")
        } else {
            (FailureKind::OutOfMemory, "memory")
        };
        self.store.received(object, false);
        let text = format!("no {what} to read object {object} into: {cause}");
        self.pull_refused(object, &Arc::new(Failure::new(kind, text)), out);
    }
}

#[cfg(test)]
mod tests;
