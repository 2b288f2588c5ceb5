//! State of a node and the cluster for people: part of the handshake of the local socket.

use serde::{Deserialize, Serialize};

/// State of a node, and of the cluster as it sees it, for people.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The node that answers.
    #[serde(with = "crate::hexadecimal")]
    pub node: u64,
    /// Its process.
    pub pid: u32,
    /// Address at which other nodes reach it; empty if it is alone.
    pub address: String,
    /// Address of the control store that it uses; empty if it is alone.
    pub control: String,
    /// Whether it serves a control store itself.
    pub is_head: bool,
    /// All nodes it knows, itself first.
    pub nodes: Vec<NodeRow>,
    /// Its arena: bytes in use and in all, objects, pinned objects.
    pub store: StoreRow,
    /// Bytes that its spill directories may take; 0 if it does not spill.
    pub spill_quota_bytes: u64,
    /// Bytes of objects that it has sent to other nodes.
    pub sent_bytes: u64,
    /// Entries of its ledger: objects and unfinished tasks.
    pub object_count: usize,
    /// Unfinished tasks.
    pub task_count: usize,
    /// Tasks at its workers.
    pub running_count: usize,
    /// Its workers.
    pub worker_count: usize,
    /// Drivers connected to it.
    pub driver_count: usize,
    /// Tasks that wait, by kind, and why.
    pub pending: Vec<PendingRow>,
}

/// One node of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeRow {
    /// Its id.
    #[serde(with = "crate::hexadecimal")]
    pub node: u64,
    /// Address at which other nodes reach it; empty if it is alone, or of a release that does not say it in
    /// JSON.
    #[serde(default)]
    pub address: String,
    /// Its resources.
    pub total: String,
    /// The resources that are not in use.
    pub free: String,
    /// Its labels.
    pub labels: Vec<(String, String)>,
    /// Whether it takes no new work, and leaves soon.
    pub is_draining: bool,
}

impl NodeRow {
    /// The CPUs among its resources, which are printed like `2 CPU, 512 MiB memory`.
    #[must_use]
    pub fn cpus(&self) -> f64 {
        let amount = |part: &str| part.trim().strip_suffix(" CPU").and_then(|amount| amount.parse().ok());
        self.total.split(',').find_map(amount).unwrap_or(0.0)
    }
}

/// Work and objects that are left at a node that drains, and the objects that were moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainRow {
    /// Milliseconds until the node leaves, whatever is left.
    pub remaining_ms: u64,
    /// Whether the node leaves now.
    pub is_over: bool,
    /// Whether nothing was left when it left.
    pub is_clean: bool,
    /// Runs that have not ended.
    pub runs: u64,
    /// Leases of its workers that their owners have not given back.
    pub leases: u64,
    /// Jobs whose drivers are connected to it.
    pub jobs: u64,
    /// Unfinished tasks that it owns.
    pub tasks: u64,
    /// Objects that it owns or that other nodes know through it.
    pub objects: u64,
    /// Copies of other nodes' objects.
    pub copies: u64,
    /// The part of these copies that was put by a call: no task can make it again.
    pub put_copies: u64,
    /// Bytes of the copies.
    pub copy_bytes: u64,
    /// Messages to other nodes that are not acknowledged.
    pub messages: u64,
    /// Copies that other nodes keep now, or that nobody needed any more.
    pub moved: u64,
    /// Bytes of these.
    pub moved_bytes: u64,
    /// Submitted programs that run there.
    pub programs: u64,
}

/// Use of an arena.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreRow {
    /// Bytes in use.
    pub used_bytes: u64,
    /// Bytes in all.
    pub capacity_bytes: u64,
    /// Objects.
    pub object_count: usize,
    /// Objects that somebody maps.
    pub pinned_count: usize,
    /// Objects with a copy on disk.
    pub spilled_count: usize,
    /// Bytes of these.
    pub spilled_bytes: u64,
    /// Bytes in use of the file for values larger than the arena.
    pub annex_used_bytes: u64,
    /// Bytes that it may have; 0 without one.
    pub annex_capacity_bytes: u64,
}

/// Tasks that wait for the same thing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PendingRow {
    /// Name of one of them.
    pub name: String,
    /// Resources that each needs.
    pub resources: String,
    /// Number of waiting tasks.
    pub count: usize,
    /// Why they wait.
    pub reason: String,
    /// The id of one of them; empty if none is wanted any more.
    pub task: String,
}

/// Bytes of a line of a story at most.
pub const STORY_LINE_BYTES_MAX: usize = 4096;

/// A node's knowledge of a task or an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Story {
    /// The node that answers.
    #[serde(with = "crate::hexadecimal")]
    pub node: u64,
    /// Its process.
    pub pid: u32,
    /// Present state and reason for waiting; empty if it is not there any more, or never was.
    pub present: Vec<String>,
    /// Its history, oldest entry first, as far as the node remembers.
    pub past: Vec<PastRow>,
}

/// One entry in the history of a task or an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastRow {
    /// Age of the entry in nanoseconds.
    pub ago_ns: u64,
    /// The entry in words.
    pub what: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use tharsis_types::Resources;

    #[test]
    fn cpus_are_found_in_what_nodes_report() {
        for cpus in [0.5, 2.0, 96.0] {
            let resources = Resources { memory: 5 << 30, ..Resources::cpus(cpus).unwrap() };
            assert_eq!(NodeRow { total: resources.to_string(), ..NodeRow::default() }.cpus(), cpus);
        }
        assert_eq!(NodeRow::default().cpus(), 0.0);
    }

    /// Readers of `--json` count on them (`docs/compatibility.md`): others may come, none may go.
    #[test]
    fn names_of_fields_stay() {
        fn hold(row: &impl Serialize, names: &str) {
            let row = serde_json::to_value(row).unwrap();
            let gone: Vec<&str> = names.split(' ').filter(|name| row.get(*name).is_none()).collect();
            assert!(gone.is_empty(), "{gone:?} of {row}");
        }
        hold(
            &Report::default(),
            "node pid address control is_head nodes store spill_quota_bytes sent_bytes object_count task_count \
             running_count worker_count driver_count pending",
        );
        hold(&NodeRow::default(), "node address total free labels is_draining");
        hold(
            &StoreRow::default(),
            "used_bytes capacity_bytes object_count pinned_count spilled_count spilled_bytes annex_used_bytes \
             annex_capacity_bytes",
        );
        hold(&PendingRow::default(), "name resources count reason task");
        hold(&Story::default(), "node pid present past");
        hold(&PastRow::default(), "ago_ns what");
    }
}
