//! Memory of the checks from one look at the cluster to the next, and of cuts.

use std::collections::{BTreeMap, BTreeSet};
use tharsis_core::Now;
use tharsis_types::{NodeId, ObjectId, RefId, TaskId};

/// Groups as the world knows them.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    /// All that were ever asked for, and their kinds.
    pub(crate) made: BTreeMap<RefId, u32>,
    /// Every node that ever had a bundle.
    pub(crate) nodes: BTreeMap<TaskId, BTreeSet<NodeId>>,
}

/// Tasks that wait although there is room, and since when.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    /// The time of the next look.
    pub(crate) next_look: Now,
    /// Tasks that are queued, by the node of their ledger.
    pub(crate) tasks: BTreeMap<(NodeId, TaskId), Since>,
    /// Placement groups whose bundles have no nodes.
    pub(crate) groups: BTreeMap<TaskId, Now>,
    /// Tasks that wait for their slot.
    pub(crate) resuming: BTreeMap<TaskId, Now>,
    /// News between any hosts may be late until then, as some did not reach each other.
    pub(crate) news_late: Now,
    /// Large objects that a node asked of one that it does not reach.
    pub(crate) asked: BTreeMap<(NodeId, ObjectId, NodeId), Now>,
    /// Hosts that count as unable to serve or to ask until some time.
    pub(crate) upset: BTreeMap<usize, Now>,
}

/// Since when there has been room for a task without a break.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Since {
    /// Room anywhere.
    pub(crate) room: Now,
    /// Room where nothing waits that is larger.
    pub(crate) own_room: Option<Now>,
}

/// Two hosts that do not reach each other for a while.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    pub(crate) hosts: (usize, usize),
    pub(crate) until: Now,
    /// Whether messages pass.
    pub(crate) is_of_transfers: bool,
}

impl Cut {
    /// Whether it is between these two.
    pub(crate) fn is_between(&self, a: usize, b: usize) -> bool {
        self.hosts == (a, b) || self.hosts == (b, a)
    }
}
