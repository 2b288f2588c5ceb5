//! One entry of the ledger: an owned object, or a proxy of another node's.

use super::dependents::Dependents;
use crate::event::Value;
use crate::owner::Task;
use crate::slab::Slot;
use std::collections::{BTreeMap, BTreeSet};
use tharsis_types::{ClientId, NodeId, ObjectId};

/// One entry of the ledger: an owned object, or a proxy of another node's.
#[derive(Debug)]
pub struct Object {
    pub(super) id: ObjectId,
    /// The client that submitted its task or put it, while that client refers to it.
    pub(super) maker: Option<ClientId>,
    pub(super) token: u64,
    /// Unfinished tasks and containing objects that need it.
    pub(super) uses: u32,
    /// Its task while that is unfinished.
    pub(super) producer: Option<Slot<Task>>,
    pub(super) value: Option<Value>,
    pub(super) links: Option<Box<Links>>,
}

/// Fields that few objects have.
#[derive(Debug, Default)]
pub(super) struct Links {
    /// For a proxy, the owner. `None` for an own object.
    pub(super) owner: Option<NodeId>,
    /// References of clients, other than the reference of the maker. A client adds to its count when it finds
    /// a reference in a value, and takes from it when it drops one; a count of zero is removed.
    pub(super) holders: BTreeMap<ClientId, u32>,
    /// References of clients that wait for the value. Emptied when the value is there.
    pub(super) fetchers: Vec<(ClientId, u64)>,
    /// Tasks that wait for the value, once for each argument. Emptied when the value is there.
    pub(super) dependents: Dependents,
    /// Objects whose references stand inside the value. Each counts as one use of that object.
    pub(super) nested: Vec<Slot<Object>>,
    /// Nodes that borrowed it from this node, and the number of their borrows. They give back as many.
    pub(super) borrowers: BTreeMap<NodeId, u32>,
    /// For a proxy or former proxy, the nodes that this node borrowed it from, and the number of borrows.
    /// They are given back with the entry.
    pub(super) borrowed_from: BTreeMap<NodeId, u32>,
    /// For a former proxy, the node that owned it: values that name that owner may still exist.
    pub(super) former_owner: Option<NodeId>,
    /// Nodes that asked for its state while it had no value.
    pub(super) askers: BTreeSet<NodeId>,
    /// Nodes with a copy; the first made it, or was told to keep it. For a proxy, as far as this node was
    /// told.
    pub(super) copies: Vec<NodeId>,
    /// For a proxy, whether its owner was asked for its state and has not answered.
    pub(super) asked: bool,
    /// For a proxy, the number of times that none of the copies named by its owner could be read.
    pub(super) losses: u8,
    /// Origin of the value.
    pub(super) origin: Origin,
    /// The call that put it, as `file:line`.
    pub(super) put_at: Option<Box<str>>,
}

/// Origin of a value: decides whether it can be computed again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::owner) struct Origin {
    /// The kept task that made it.
    pub(super) lineage_task: Option<Slot<Task>>,
    /// Kept tasks that take it as argument.
    pub(super) needed_by: u32,
    /// Its bytes were dropped to make room, and not computed again since.
    pub(super) dropped: bool,
    /// It was dropped before: it is spilled the next time. Otherwise two tasks whose arguments do not fit
    /// together would drop each other's arguments for ever.
    pub(super) was_dropped: bool,
    /// Its task was kept and is not any more.
    pub(super) unkept: Option<Unkept>,
    /// It is a placement group that was removed because only lineage referred to it. A call that makes it
    /// again makes another one.
    pub(super) unneeded: bool,
}

/// Reason why a task that could compute a value again is not kept any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::owner) enum Unkept {
    /// It was cancelled after it had ended.
    Cancelled,
    /// Kept tasks took more memory than the limit.
    Forgotten,
}

impl Origin {
    /// The kept task that made the value.
    pub(in crate::owner) fn lineage_task(&self) -> Option<Slot<Task>> {
        self.lineage_task
    }

    /// Whether its bytes were dropped to make room, and not computed again since.
    pub(in crate::owner) fn is_dropped(&self) -> bool {
        self.dropped
    }

    /// Whether it was dropped at any time.
    pub(in crate::owner) fn was_dropped(&self) -> bool {
        self.was_dropped
    }

    /// Reason why its task is not kept any more, if it was.
    pub(in crate::owner) fn unkept(&self) -> Option<Unkept> {
        self.unkept
    }
}

impl Object {
    pub(super) fn new(id: ObjectId) -> Self {
        Self { id, maker: None, token: 0, uses: 0, producer: None, value: None, links: None }
    }

    pub(super) fn links(&mut self) -> &mut Links {
        self.links.get_or_insert_default()
    }

    pub(in crate::owner) fn id(&self) -> ObjectId {
        self.id
    }

    pub(in crate::owner) fn value(&self) -> Option<&Value> {
        self.value.as_ref()
    }

    /// Its task while that is unfinished.
    pub(in crate::owner) fn producer(&self) -> Option<Slot<Task>> {
        self.producer
    }

    /// The node that owns it, if that is another one.
    pub(in crate::owner) fn owner(&self) -> Option<NodeId> {
        self.links.as_ref()?.owner
    }

    pub(in crate::owner) fn origin(&self) -> Origin {
        self.links.as_ref().map(|l| l.origin).unwrap_or_default()
    }

    /// Objects whose references stand inside the value.
    pub(in crate::owner) fn nested(&self) -> &[Slot<Object>] {
        self.links.as_ref().map_or(&[], |l| &l.nested)
    }

    /// Nodes with a copy; the first made it, or was told to keep it.
    pub(in crate::owner) fn copies(&self) -> &[NodeId] {
        self.links.as_ref().map_or(&[], |l| &l.copies)
    }

    /// Tasks that wait for the value.
    pub(in crate::owner) fn dependents(&self) -> impl Iterator<Item = Slot<Task>> {
        self.links.iter().flat_map(|links| links.dependents.iter())
    }

    /// The call that put it, as `file:line`.
    pub(in crate::owner) fn put_at(&self) -> Option<&str> {
        self.links.as_ref()?.put_at.as_deref()
    }

    /// Whether anything but lineage refers to it.
    pub(in crate::owner) fn is_used(&self) -> bool {
        let linked = |l: &Links| !l.holders.is_empty() || !l.borrowers.is_empty();
        self.maker.is_some()
            || self.uses > 0
            || self.producer.is_some()
            || self.links.as_deref().is_some_and(linked)
    }

    /// Whether there is a value that can be read.
    pub(in crate::owner) fn has_bytes(&self) -> bool {
        matches!(self.value, Some(Value::Inline(_) | Value::Stored { .. })) && !self.is_gone()
    }

    /// Whether its value has no bytes on any node.
    pub(in crate::owner) fn is_gone(&self) -> bool {
        matches!(self.value, Some(Value::Stored { .. })) && self.copies().is_empty()
    }

    /// Whether it will not get a value any more because all its copies are gone.
    pub(in crate::owner) fn is_lost(&self) -> bool {
        matches!(&self.value, Some(Value::Failed(failure)) if failure.is_loss())
    }

    /// Whether there is a value whose bytes are not known to be gone.
    pub(in crate::owner) fn is_there(&self) -> bool {
        self.value.is_some() && !self.is_gone()
    }

    /// Whether its value can be computed again.
    pub(super) fn has_lineage(&self) -> bool {
        self.origin().lineage_task.is_some()
    }

    pub(super) fn is_held_by(&self, client: ClientId) -> bool {
        let linked =
            |l: &Links| l.holders.contains_key(&client) || l.fetchers.iter().any(|(c, _)| *c == client);
        self.maker == Some(client) || self.links.as_deref().is_some_and(linked)
    }

    /// Clients that refer to it or wait for its value.
    pub(super) fn clients(&self) -> impl Iterator<Item = ClientId> {
        let links = self.links.as_deref();
        let holders = links.into_iter().flat_map(|l| l.holders.keys().copied());
        let fetchers = links.into_iter().flat_map(|l| l.fetchers.iter().map(|(client, _)| *client));
        self.maker.into_iter().chain(holders).chain(fetchers)
    }
}
