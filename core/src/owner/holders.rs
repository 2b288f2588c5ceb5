//! Who refers to an object, and what made it, for people who ask why it is still there.

use super::{Object, Owner};
use tharsis_types::{ClientId, NodeId, ObjectId};

/// Who keeps an object, as far as the ledger of this node knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holders {
    /// The node that answers for it, if that is another one.
    pub owner: Option<NodeId>,
    /// Clients with references, and how many.
    pub clients: Vec<(ClientId, u32)>,
    /// Unfinished tasks that take it and values that contain its reference.
    pub uses: u32,
    /// Finished tasks whose results could be made again with it.
    pub lineage: u32,
    /// Nodes that it was lent to, and how often.
    pub borrowers: Vec<(NodeId, u32)>,
    /// What made it, if that is remembered.
    pub made_by: Option<MadeBy>,
}

/// The task or the call that made an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MadeBy {
    /// Name of the task; `put` for a call that put the value.
    pub name: String,
    /// `file:line` of the call.
    pub call_site: String,
    /// Time in the function when it last ended, in nanoseconds; 0 for a call that put the value.
    pub run_ns: u64,
}

impl Owner {
    /// Who keeps an object; `None` if the ledger does not know it.
    #[must_use]
    pub fn holders(&self, object: ObjectId) -> Option<Holders> {
        let entry = self.objects.by_id(&object)?;
        let mut holders = Holders {
            clients: entry.maker.map(|maker| (maker, 1)).into_iter().collect(),
            uses: entry.uses,
            made_by: self.made_by(entry),
            ..Holders::default()
        };
        if let Some(links) = &entry.links {
            holders.owner = links.owner;
            holders.clients.extend(links.holders.iter().map(|(client, count)| (*client, *count)));
            holders.borrowers.extend(links.borrowers.iter().map(|(node, count)| (*node, *count)));
            holders.lineage = links.origin.needed_by;
        }
        Some(holders)
    }

    fn made_by(&self, entry: &Object) -> Option<MadeBy> {
        if let Some(site) = entry.links.as_ref().and_then(|links| links.put_at.as_deref()) {
            return Some(MadeBy { name: "put".to_owned(), call_site: site.to_owned(), run_ns: 0 });
        }
        let slot = entry.origin().lineage_task().or(entry.producer)?;
        let (task, class) = (self.tasks.get(slot)?, self.class_of(slot)?);
        Some(MadeBy { name: class.name.clone(), call_site: class.call_site.clone(), run_ns: task.run_ns })
    }
}
