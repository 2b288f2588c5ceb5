//! Copies that move off a node that drains, and those that become the first.
//!
//! The node that drains tells the owner of each copy ([`DrainMessage::CopyLeaving`]). The owner asks a node
//! that stays to keep a copy ([`DrainMessage::CopyMove`]). That node reads it, keeps it as a primary copy,
//! and tells the owner ([`DrainMessage::CopyKept`]). Then the owner frees the copy on the node that drains. A
//! node without room passes the request on to the next one that the owner named.
//!
//! A copy that was only read is evicted when room is needed. If the one that is kept goes, with its node or
//! its disk, the owner has the node with the next one keep that, by a [`DrainMessage::CopyMove`] of its own
//! without an answer.
//!
//! The owner remembers which nodes it has asked, and for which ones that drain: only these may answer, and
//! only those copies go. It may forget that. The node that drains tells it again of copies that are still
//! there, and the owner asks the same nodes in the same order: a node that is reading the copy already
//! ignores it.
//!
//! | state of a copy that is to be kept here | where | enters by | leaves by |
//! |---|---|---|---|
//! | being read | `under_way`, a bundle of [`crate::pull`] | `copy_offered` | `move_arrived`, `move_failed` |
//!
//! | state of a copy that leaves, at the owner | where | enters by | leaves by |
//! |---|---|---|---|
//! | asked for | `asked` | `copy_leaves` | `kept`, `copy_goes`, `node_gone`, or when there are too many |

use super::Node;
use crate::event::{Action, Value};
use crate::owner;
use crate::pull::{Missing, Purpose};
use smallvec::SmallVec;
use tharsis_types::hash::IdMap;
use tharsis_types::peer::{DrainMessage, Message};
use tharsis_types::{NodeId, ObjectId, RefId};

/// Maximum number of own objects of which it is remembered who was asked to keep a copy: nodes that drain
/// tell of fewer at a time.
const ASKED_MAX: usize = 4_096;

/// Copies that are read here to be kept, and nodes that were asked to keep copies of own objects.
#[derive(Debug, Default)]
pub(super) struct Moves {
    under_way: IdMap<ObjectId, Offer>,
    asked: IdMap<ObjectId, Asked>,
}

/// Nodes that were asked to keep a copy of an own object.
#[derive(Debug, Default)]
struct Asked {
    /// The nodes that drain and have told of their copies.
    leaving: SmallVec<[NodeId; 1]>,
    /// The nodes that may keep one instead.
    keepers: SmallVec<[NodeId; 4]>,
}

/// A request to keep a copy.
#[derive(Clone, Debug)]
struct Offer {
    reference: RefId,
    len: u64,
    /// The node that drains, or the owner.
    from: NodeId,
    /// Nodes to pass it on to.
    others: Vec<NodeId>,
}

impl Moves {
    /// Whether an object is being read to be kept.
    pub(super) fn is_under_way(&self, object: ObjectId) -> bool {
        self.under_way.contains_key(&object)
    }

    /// These nodes are asked to keep a copy instead of one that leaves.
    fn asks(&mut self, object: ObjectId, leaving: NodeId, keepers: &[NodeId]) {
        if ASKED_MAX <= self.asked.len() && !self.asked.contains_key(&object) {
            self.asked.clear();
        }
        let asked = self.asked.entry(object).or_default();
        if !asked.leaving.contains(&leaving) {
            asked.leaving.push(leaving);
        }
        for keeper in keepers {
            if !asked.keepers.contains(keeper) {
                asked.keepers.push(*keeper);
            }
        }
    }

    /// A node keeps a copy; the nodes that drain and need not keep theirs, if it was asked.
    fn kept(&mut self, object: ObjectId, keeper: NodeId) -> Option<SmallVec<[NodeId; 1]>> {
        self.asked.get(&object)?.keepers.contains(&keeper).then_some(())?;
        Some(self.asked.remove(&object)?.leaving)
    }

    /// The copy of a node goes: it needs no other one instead.
    pub(super) fn copy_goes(&mut self, object: ObjectId, node: NodeId) {
        if let Some(asked) = self.asked.get_mut(&object) {
            asked.leaving.retain(|leaving| *leaving != node);
            if asked.leaving.is_empty() {
                self.asked.remove(&object);
            }
        }
    }

    /// A node is gone, and its copies with it.
    pub(super) fn node_gone(&mut self, node: NodeId) {
        self.asked.retain(|_, asked| {
            asked.leaving.retain(|leaving| *leaving != node);
            !asked.leaving.is_empty()
        });
    }

    /// Bytes that are on their way here.
    fn coming_bytes(&self) -> u64 {
        self.under_way.values().map(|offer| offer.len).sum()
    }

    /// Asserts that every copy that is to be kept is being read; `is_wanted` says which are.
    pub(super) fn check(&self, is_wanted: impl Fn(ObjectId) -> bool) {
        assert!(
            self.under_way.keys().all(|object| is_wanted(*object)),
            "nobody reads a copy that is to be kept"
        );
    }

    /// Sizes of tables that must be empty when nothing is under way.
    pub(super) fn leftovers(&self) -> [(&'static str, usize); 2] {
        [
            ("copies that are read to be kept", self.under_way.len()),
            ("copies that others were asked to keep", self.asked.len()),
        ]
    }
}

impl Node {
    /// Carries out a message about a node that drains.
    pub(super) fn drain_message(&mut self, from: NodeId, message: DrainMessage, out: &mut Vec<Action>) {
        match message {
            DrainMessage::Begun => {
                self.view.drains(from);
                self.owner.members_changed();
                self.owner.dirty_all();
            }
            DrainMessage::CopyKept { object } => self.kept_elsewhere(from, object),
            DrainMessage::CopyLeaving { object } => self.copy_leaves(from, object, out),
            DrainMessage::CopyMove { reference, len, from, others } => {
                self.copy_offered(Offer { reference, len, from, others }, out)
            }
        }
    }
}

/// The owner's part.
impl Node {
    /// A node that drains has a copy of an object.
    fn copy_leaves(&mut self, from: NodeId, object: ObjectId, out: &mut Vec<Action>) {
        let holders = self.owner.copies(object);
        let is_counted = self.owner.owns(object) && holders.contains(&from);
        let len = match self.owner.value_ref(object) {
            Some(Value::Stored { len }) if is_counted => *len,
            _ => return self.send(from, Message::ObjectFree { object }),
        };
        let keepers = self.view.keepers(object, holders);
        self.moves.asks(object, from, &keepers);
        let mut keepers = keepers.into_iter();
        let Some(first) = keepers.next() else { return };
        let reference = RefId { object, owner: self.id };
        let message = DrainMessage::CopyMove { reference, len, from, others: keepers.collect() };
        self.route(first, Message::Drain(message), out);
    }

    /// The copy of a node has become the first one of an own object.
    pub(super) fn copy_is_value(
        &mut self,
        holder: NodeId,
        object: ObjectId,
        len: u64,
        out: &mut Vec<Action>,
    ) {
        if holder == self.id {
            return self.store.promote(object);
        }
        let (reference, from) = (RefId { object, owner: self.id }, self.id);
        let message = DrainMessage::CopyMove { reference, len, from, others: Vec::new() };
        self.route(holder, Message::Drain(message), out);
    }

    /// Another node says that it keeps a copy. If it was not asked, that is one copy more.
    fn kept_elsewhere(&mut self, holder: NodeId, object: ObjectId) {
        match self.moves.kept(object, holder) {
            Some(leaving) => self.copy_kept(holder, object, &leaving),
            None => self.copy_told(holder, object, true),
        }
    }

    /// A node keeps a copy: those on the nodes that drain and have told of them are not needed any more.
    fn copy_kept(&mut self, holder: NodeId, object: ObjectId, leaving: &[NodeId]) {
        self.copy_told(holder, object, true);
        if !self.owner.owns(object) {
            return;
        }
        self.owner.copy_kept(holder, object);
        let copies = self.owner.copies(object);
        let leaves = |node: &NodeId| *node != holder && copies.contains(node);
        let leaving: Vec<_> = leaving.iter().copied().filter(leaves).collect();
        for node in leaving {
            self.owner.copy_changed(node, object, false, &mut self.effects);
            self.effects.push(owner::Effect::DropCopy { holder: node, object });
        }
    }
}

/// The part of the node that keeps the copy.
impl Node {
    /// An owner wants a copy kept here.
    fn copy_offered(&mut self, offer: Offer, out: &mut Vec<Action>) {
        let Offer { reference: RefId { object, owner }, len, from, .. } = offer;
        if self.moves.under_way.contains_key(&object) {
            return;
        }
        if from == owner && !self.view.is_draining(owner) {
            // The copy here has become the first one, or its owner is about to hear that it was evicted. An
            // answer could come when the owner has dropped all copies, and count as one that is there.
            if self.copy_len(object).is_some() {
                self.store.promote(object);
            }
            return;
        }
        if self.drain.is_draining() || !self.view.knows(from) && self.copy_len(object).is_none() {
            return self.pass_on(offer, out);
        }
        if self.copy_len(object).is_some() {
            return self.keep_copy(offer.reference);
        }
        if !self.has_room_to_keep(len) {
            return self.pass_on(offer, out);
        }
        self.read_to_keep(offer, out);
    }

    fn read_to_keep(&mut self, offer: Offer, out: &mut Vec<Action>) {
        let Offer { reference: RefId { object, .. }, len, from, .. } = offer;
        self.moves.under_way.insert(object, offer);
        self.want(Purpose::Move(object), vec![Missing { object, len, holders: vec![from] }], out);
    }

    /// Reads the snapshot of an actor from the actor's node, to be kept here; false if there is no room.
    pub(super) fn read_snapshot(
        &mut self,
        from: NodeId,
        object: ObjectId,
        len: u64,
        out: &mut Vec<Action>,
    ) -> bool {
        let has_room = self.has_room_to_keep(len);
        if has_room {
            let reference = RefId { object, owner: self.id };
            self.read_to_keep(Offer { reference, len, from, others: Vec::new() }, out);
        }
        has_room
    }

    /// A copy that is to be kept is here.
    pub(super) fn move_arrived(&mut self, object: ObjectId, out: &mut Vec<Action>) {
        if let Some(offer) = self.moves.under_way.remove(&object) {
            self.keep_copy(offer.reference);
            self.snapshot_read(object, true, out);
        }
    }

    /// A copy that is to be kept could not be read, or there is no room for it: another node may keep it.
    pub(super) fn move_failed(&mut self, object: ObjectId, out: &mut Vec<Action>) {
        if let Some(offer) = self.moves.under_way.remove(&object) {
            self.pass_on(offer, out);
            self.snapshot_read(object, false, out);
        }
    }

    /// Keeps a copy that is here, and tells its owner. The copy of an owner that is gone is nobody's.
    fn keep_copy(&mut self, reference: RefId) {
        let RefId { object, owner } = reference;
        if owner == self.id {
            self.store.promote(object);
            let leaving = self.moves.kept(object, owner).unwrap_or_default();
            self.copy_kept(owner, object, &leaving);
        } else if self.view.knows(owner) {
            self.store.promote(object);
            self.copy_owners.add(object, owner);
            self.send(owner, Message::Drain(DrainMessage::CopyKept { object }));
        }
    }

    /// Passes a request on to the next node. If there is none, the node that drains tells the owner again
    /// after a while.
    fn pass_on(&mut self, offer: Offer, out: &mut Vec<Action>) {
        let Offer { reference, len, from, others } = offer;
        let mut next = others.into_iter().skip_while(|node| *node != self.id && !self.view.knows(*node));
        let Some(to) = next.next().filter(|to| *to != self.id) else { return };
        let message = DrainMessage::CopyMove { reference, len, from, others: next.collect() };
        self.route(to, Message::Drain(message), out);
    }

    /// Whether there is room for a copy that is never evicted. What a disk takes is found out by writing to
    /// it: a copy that finds no room is passed on then.
    fn has_room_to_keep(&self, len: u64) -> bool {
        if self.store.is_for_annex(len) {
            return true;
        }
        self.config.can_spill || self.moves.coming_bytes() + len <= self.store.spare_bytes()
    }
}
