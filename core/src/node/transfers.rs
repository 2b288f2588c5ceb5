//! Objects that come from other nodes: from whom they are read, and who waits for them in turn.
//!
//! A small object is read from a holder at once. Of a large one the holder is asked first: it says *now*, or
//! names another node that has it soon (see [`crate::relay`]). The place for the object is there before
//! anybody is asked, so that nobody waits for a node that waits for room.

use super::Node;
use crate::event::{Action, Extent};
use crate::peer::Message;
use crate::relay::{Have, Turn, Wish};
use std::sync::Arc;
use tharsis_types::{Failure, FailureKind, NodeId, ObjectId};

/// A holder is asked so often before its copy counts as unreadable: those it names may turn out to be of no
/// use.
const ASKS_MAX: u8 = 4;

/// An object that some node was asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    into: Extent,
    /// Bytes from the start that are there already.
    done_bytes: u64,
    /// Who has the object.
    holder: NodeId,
    asks: u8,
    /// Who was asked last: the holder, or whoever it, or they, named.
    last: NodeId,
}

impl Node {
    /// Reads an object from another node, after asking it if the object is large.
    pub(super) fn begin_transfer(
        &mut self,
        object: ObjectId,
        holder: NodeId,
        into: Extent,
        done_bytes: u64,
        out: &mut Vec<Action>,
    ) {
        if into.len < self.config.relay_bytes_min {
            out.push(Action::Pull { object, from: holder, into, done_bytes });
            return;
        }
        if !self.view.knows(holder) {
            // It left while the transfer waited for room: it would never answer.
            return self.pull_failed(object, holder, done_bytes, "it is gone", out);
        }
        self.asked.insert(object, Asked { into, done_bytes, holder, asks: 1, last: holder });
        self.send(holder, Message::ReadRequest { object, sent: false, in_vain: None });
    }

    /// Another node wants to read an object here.
    pub(super) fn read_wanted(&mut self, object: ObjectId, wish: Wish) {
        let have = if self.store.find(object).is_some() || self.store.is_spilled(object) {
            Have::All
        } else if self.asked.contains_key(&object) || self.read_from.contains_key(&object) {
            Have::Some
        } else {
            Have::Nothing
        };
        if let Some(turn) = self.relay.wanted(object, wish, have) {
            self.send(wish.reader, Message::ReadReply { object, turn });
        }
    }

    /// A node that was asked for an object answers.
    pub(super) fn read_answered(
        &mut self,
        object: ObjectId,
        from: NodeId,
        turn: Turn,
        out: &mut Vec<Action>,
    ) {
        let asked = self.asked.get(&object).copied().filter(|asked| asked.last == from);
        match (asked, turn) {
            (Some(asked), Turn::Now) => {
                self.asked.remove(&object);
                self.read_from.insert(object, from);
                let Asked { into, done_bytes, .. } = asked;
                out.push(Action::Pull { object, from, into, done_bytes });
            }
            (Some(asked), Turn::At(next)) if next != self.id && self.view.knows(next) => {
                self.asked.insert(object, Asked { last: next, ..asked });
                self.send(next, Message::ReadRequest { object, sent: true, in_vain: None });
            }
            (Some(asked), Turn::At(_) | Turn::Never) => self.ask_again(object, asked, out),
            (None, Turn::Now) => self.send(from, Message::ReadEnded { object }),
            (None, Turn::At(_) | Turn::Never) => {}
        }
    }

    /// Whoever was asked is of no use: the holder is asked again, or the transfer has failed.
    fn ask_again(&mut self, object: ObjectId, asked: Asked, out: &mut Vec<Action>) {
        let Asked { holder, last, asks, .. } = asked;
        if last == holder || asks >= ASKS_MAX || !self.view.knows(holder) {
            self.asked.remove(&object);
            self.tell_waiting(object, false);
            let cause = "neither it nor those that it named have it";
            return self.pull_failed(object, holder, asked.done_bytes, cause, out);
        }
        self.asked.insert(object, Asked { last: holder, asks: asks + 1, ..asked });
        self.send(holder, Message::ReadRequest { object, sent: false, in_vain: Some(last) });
    }

    /// A transfer broke off, or a copy cannot be read back: the next holder is tried.
    ///
    /// What was put is the same on all holders, so the next one goes on where this one ended. A result may
    /// have been made twice, and not alike: it is read anew.
    pub(super) fn pull_failed(
        &mut self,
        object: ObjectId,
        from: NodeId,
        done_bytes: u64,
        cause: &str,
        out: &mut Vec<Action>,
    ) {
        self.transfer_ended(object, false);
        let into = self.store.receiving(object).filter(|_| from != self.id && object.is_put());
        match into {
            Some(into) => drop(self.begun.insert(object, (into, done_bytes))),
            None => self.store.received(object, false),
        }
        let cause = if from == self.id {
            self.copy_lost(object, out);
            format!("it could not be read back from disk: {cause}")
        } else {
            format!("it could not be read from node {from}: {cause}")
        };
        self.pull_change(out, |pulls, room, effects| pulls.failed(object, from, cause, room, effects));
        if self.begun.remove(&object).is_some() {
            self.store.received(object, false);
        }
    }

    /// A transfer has ended, one way or the other: its source has room for another, and those who wait here
    /// go on.
    pub(super) fn transfer_ended(&mut self, object: ObjectId, complete: bool) {
        if let Some(from) = self.read_from.remove(&object) {
            self.send(from, Message::ReadEnded { object });
            self.tell_waiting(object, complete);
        }
    }

    /// Those who were sent here and wait read now, or go elsewhere.
    fn tell_waiting(&mut self, object: ObjectId, complete: bool) {
        let (waiting, turn) = match complete {
            true => (self.relay.arrived(object), Turn::Now),
            false => (self.relay.lost(object), Turn::Never),
        };
        for node in waiting {
            self.send(node, Message::ReadReply { object, turn });
        }
    }

    /// A node is gone that may read here, or was asked for something.
    pub(super) fn transfers_with_gone(&mut self, node: NodeId, out: &mut Vec<Action>) {
        self.relay.node_gone(node);
        let mut asked: Vec<_> =
            self.asked.iter().filter(|(_, a)| a.last == node).map(|(object, a)| (*object, *a)).collect();
        asked.sort_unstable_by_key(|(object, _)| *object);
        asked.into_iter().for_each(|(object, a)| self.ask_again(object, a, out));
    }

    /// There is no memory behind the place that an object was to be read into. Its copies, here on disk or
    /// elsewhere, are as good as before.
    pub(super) fn no_memory_for(&mut self, object: ObjectId, cause: &str, out: &mut Vec<Action>) {
        self.transfer_ended(object, false);
        let (kind, what) = match self.store.is_in_annex(object) {
            true => (FailureKind::OutOfDisk, "room on disk"),
            false => (FailureKind::OutOfMemory, "memory"),
        };
        self.store.received(object, false);
        let text = format!("no {what} to read object {object} into: {cause}");
        self.pull_refused(object, &Arc::new(Failure::new(kind, text)), out);
    }
}
