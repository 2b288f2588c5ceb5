//! References of clients: the holders of an object, and the clients that wait for its value.
//!
//! A client names a reference by a token and an object id. Both come from outside: naming a reference that
//! the client does not hold changes nothing.

use super::{Object, References};
use crate::event::Value;
use crate::owner::Effect;
use crate::slab::Slot;
use tharsis_types::{ClientId, NodeId, ObjectId, RefId};

/// The task or the call that made an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MadeBy {
    /// Name of the task; `put` for a call that put the value.
    pub name: String,
    /// `file:line` of the call.
    pub call_site: String,
    /// Time spent in the function by the last run, in nanoseconds; 0 for a call that put the value.
    pub run_ns: u64,
}

/// References to an object by kind, as far as the ledger of this node knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holders {
    /// Its owner, if that is another node.
    pub owner: Option<NodeId>,
    /// Clients with references, and their number.
    pub clients: Vec<(ClientId, u32)>,
    /// Unfinished tasks that take it and values that contain its reference.
    pub uses: u32,
    /// Finished tasks whose results could be computed again with it.
    pub lineage: u32,
    /// Nodes that borrowed it, and the number of their borrows.
    pub borrowers: Vec<(NodeId, u32)>,
    /// The task that made it, if that is remembered.
    pub made_by: Option<MadeBy>,
}

impl References {
    /// The entry of an object that a client names by its token.
    pub(in crate::owner) fn find_named(
        &self,
        client: ClientId,
        token: u64,
        object: &ObjectId,
    ) -> Option<Slot<Object>> {
        self.objects.find_named(client, token, object)
    }

    /// Adds an entry for a value that a client puts, or for an output of a task that it submits.
    pub(in crate::owner) fn insert_made(
        &mut self,
        id: ObjectId,
        maker: ClientId,
        token: u64,
    ) -> Slot<Object> {
        let mut object = Object::new(id);
        object.maker = Some(maker);
        object.token = token;
        self.objects.insert(object)
    }

    /// Notes the call that put a value.
    pub(in crate::owner) fn put_at(&mut self, object: ObjectId, site: Box<str>) {
        if !site.is_empty()
            && let Some(entry) = self.objects.by_id_mut(&object)
        {
            entry.links().put_at = Some(site);
        }
    }

    /// A client found a reference inside a value; `None` if this node owned the object and has freed it.
    pub(in crate::owner) fn held(
        &mut self,
        client: ClientId,
        reference: RefId,
        out: &mut Vec<Effect>,
    ) -> Option<Slot<Object>> {
        let slot = self.find_or_proxy(reference, out)?;
        *self.objects[slot].links().holders.entry(client).or_default() += 1;
        self.objects.refers(client, slot);
        Some(slot)
    }

    /// A client dropped a reference; returns the entry if there is one.
    pub(in crate::owner) fn released(
        &mut self,
        client: ClientId,
        token: u64,
        object: ObjectId,
    ) -> Option<Slot<Object>> {
        let slot = self.objects.find_named(client, token, &object)?;
        let entry = &mut self.objects[slot];
        let made = entry.maker == Some(client) && entry.token == token;
        if made {
            entry.maker = None;
        }
        if let Some(links) = entry.links.as_mut() {
            links.fetchers.retain(|waiting| *waiting != (client, token));
            // A client that drops a reference that it does not hold has no count.
            if let Some(count) = links.holders.get_mut(&client).filter(|_| !made) {
                *count -= 1;
                if *count == 0 {
                    links.holders.remove(&client);
                }
            }
        }
        if made {
            self.objects.unname(client, token, slot)
        } else {
            self.objects.let_go(client, slot)
        }
        Some(slot)
    }

    /// A client wants a value sent when there is one. Returns true if there is none yet: nothing was sent,
    /// and the value must be asked for.
    pub(in crate::owner) fn fetch(
        &mut self,
        client: ClientId,
        token: u64,
        slot: Slot<Object>,
        out: &mut Vec<Effect>,
    ) -> bool {
        let entry = &self.objects[slot];
        let object = entry.id;
        match &entry.value {
            Some(Value::Stored { .. }) => out.push(Effect::Serve { client, token, object }),
            Some(_) => out.push(Effect::Deliver { client, token, object }),
            None => {
                let is_maker = entry.maker == Some(client) && entry.token == token;
                self.add_fetcher(slot, client, token);
                if !is_maker {
                    self.objects.refers(client, slot);
                }
                return true;
            }
        }
        false
    }

    /// Notes that a client waits for the value of its reference.
    pub(in crate::owner) fn add_fetcher(&mut self, slot: Slot<Object>, client: ClientId, token: u64) {
        self.objects[slot].links().fetchers.push((client, token));
    }

    /// Takes all entries to which a client that is gone refers.
    pub(in crate::owner) fn take_held_by(&mut self, client: ClientId) -> Vec<Slot<Object>> {
        self.objects.take_held_by(client)
    }

    /// Removes the references of a client that is gone from an entry.
    pub(in crate::owner) fn forget_client(&mut self, slot: Slot<Object>, client: ClientId) {
        let object = &mut self.objects[slot];
        if object.maker == Some(client) {
            object.maker = None;
        }
        if let Some(links) = object.links.as_mut() {
            links.holders.remove(&client);
            links.fetchers.retain(|(c, _)| *c != client);
        }
    }

    /// References to an object by kind; the caller adds `made_by`.
    pub(in crate::owner) fn holders(&self, object: &Object) -> Holders {
        let mut holders = Holders {
            clients: object.maker.map(|maker| (maker, 1)).into_iter().collect(),
            uses: object.uses,
            ..Holders::default()
        };
        if let Some(links) = &object.links {
            holders.owner = links.owner;
            holders.clients.extend(links.holders.iter().map(|(client, count)| (*client, *count)));
            holders.borrowers.extend(links.borrowers.iter().map(|(node, count)| (*node, *count)));
            holders.lineage = links.origin.needed_by;
        }
        holders
    }
}
