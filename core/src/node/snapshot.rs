//! The state of a node in numbers: for people, and for a monitor.

use super::Node;
use crate::owner::{LineageUsage, Pending, Totals};
use crate::store::Usage;
use tharsis_types::Resources;

/// Counts of a node for a monitor.
#[derive(Clone, Debug, PartialEq)]
pub struct Gauges {
    /// Tasks of the ledger since the node started.
    pub totals: Totals,
    /// Its resources.
    pub total: Resources,
    /// The resources that are not in use.
    pub free: Resources,
    /// Its arena; pinned objects are not counted.
    pub store: Usage,
    /// Objects in the ledger.
    pub object_count: usize,
    /// Unfinished tasks in the ledger.
    pub task_count: usize,
    /// Tasks that wait for leases.
    pub queued_count: usize,
    /// Tasks that were sent to workers here.
    pub running_count: usize,
    /// Workers here.
    pub worker_count: usize,
    /// Drivers here.
    pub driver_count: usize,
    /// Leases of workers here, waiting requests included.
    pub lease_count: usize,
    /// Requests for leases that wait for resources.
    pub waiting_count: usize,
    /// Leases that this node's ledger asked for or has.
    pub leased_count: usize,
    /// Objects that are fetched from other nodes or from disk.
    pub pull_count: usize,
    /// Other nodes of the cluster.
    pub peer_count: usize,
    /// Messages to other nodes that are not acknowledged.
    pub unacknowledged_count: usize,
    /// Whether it takes no new work.
    pub is_draining: bool,
}

/// State of a node for people.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Its resources.
    pub total: Resources,
    /// The resources that are not in use.
    pub free: Resources,
    /// Its arena.
    pub store: Usage,
    /// Objects in the ledger.
    pub object_count: usize,
    /// Unfinished tasks in the ledger.
    pub task_count: usize,
    /// Tasks that wait for leases.
    pub queued_count: usize,
    /// Tasks that were sent to workers here.
    pub running_count: usize,
    /// Workers here.
    pub worker_count: usize,
    /// Leases of workers here, waiting requests included.
    pub lease_count: usize,
    /// Leases that this node's ledger asked for or has.
    pub leased_count: usize,
    /// Objects or bundles of objects that are fetched from other nodes.
    pub pull_count: usize,
    /// Messages to other nodes that are not acknowledged.
    pub unacknowledged_count: usize,
    /// Use of memory by kept tasks.
    pub lineage: LineageUsage,
    /// Waiting tasks and their reasons.
    pub pending: Vec<Pending>,
}

impl Node {
    /// The present state of the node, for people.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let (object_count, task_count) = self.owner.counts();
        Snapshot {
            total: self.leases.total().clone(),
            free: self.leases.unused(),
            store: self.store.usage(),
            object_count,
            task_count,
            queued_count: self.owner.queued_count(),
            running_count: self.runs.len(),
            worker_count: self.leases.worker_count(),
            lease_count: self.leases.lease_count(),
            leased_count: self.owner.leased_count(),
            pull_count: self.pulls.len(),
            unacknowledged_count: self.peers.unacknowledged(),
            lineage: self.owner.lineage_usage(),
            pending: self.owner.pending(),
        }
    }

    /// Counts of the node that cost little to know, for a monitor that asks all the time.
    #[must_use]
    pub fn gauges(&self) -> Gauges {
        let (objects, tasks) = self.owner.counts();
        Gauges {
            totals: self.owner.totals(),
            total: self.leases.total().clone(),
            free: self.leases.unused(),
            store: self.store.fill(),
            object_count: objects,
            task_count: tasks,
            queued_count: self.owner.queued_count(),
            running_count: self.runs.len(),
            worker_count: self.leases.worker_count(),
            driver_count: self.clients.driver_count(),
            lease_count: self.leases.lease_count(),
            waiting_count: self.leases.waiting_count(),
            leased_count: self.owner.leased_count(),
            pull_count: self.pulls.object_count(),
            peer_count: self.view.others().count(),
            unacknowledged_count: self.peers.unacknowledged(),
            is_draining: self.drain.is_draining(),
        }
    }
}
