//! Nodes on which workers of a job do not start: they are left out for a while.

use crate::{MS, Now};
use std::collections::BTreeMap;
use std::sync::Arc;
use tharsis_types::{Failure, JobId, NodeId};

/// Number of failures in a row after which a node is left out.
const IN_A_ROW: u32 = 3;
/// The time for which a node is left out. Then it is asked again: the fault may have been repaired.
const LEFT_OUT_FOR: Now = 10_000 * MS;

/// Nodes where workers did not start, and the reasons.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    nodes: BTreeMap<(JobId, NodeId), Refusal>,
}

#[derive(Debug)]
struct Refusal {
    in_a_row: u32,
    until: Now,
    why: Arc<Failure>,
}

impl Refusals {
    /// A worker of a job did not start on a node. Returns whether the node is left out from now on.
    pub(super) fn failed(&mut self, now: Now, job: JobId, node: NodeId, why: &Arc<Failure>) -> bool {
        let fresh = || Refusal { in_a_row: 0, until: 0, why: why.clone() };
        let refusal = self.nodes.entry((job, node)).or_insert_with(fresh);
        refusal.in_a_row += 1;
        refusal.why = why.clone();
        let is_left_out = IN_A_ROW <= refusal.in_a_row;
        if is_left_out {
            refusal.until = now + LEFT_OUT_FOR;
        }
        is_left_out
    }

    /// A worker of a job runs on a node.
    pub(super) fn started(&mut self, job: JobId, node: NodeId) {
        self.nodes.remove(&(job, node));
    }

    pub(super) fn job_ended(&mut self, job: JobId) {
        self.nodes.retain(|(of, _), _| *of != job);
    }

    pub(super) fn node_gone(&mut self, node: NodeId) {
        self.nodes.retain(|(_, at), _| *at != node);
    }

    /// Nodes on which a job is not to be placed while there are others.
    pub(super) fn left_out(&self, now: Now, job: JobId) -> Vec<NodeId> {
        let of_job = self.of(job).filter(|(_, refusal)| now < refusal.until);
        of_job.map(|(node, _)| node).collect()
    }

    /// When a node that is left out may be asked again.
    pub(super) fn next_timeout(&self, now: Now) -> Option<Now> {
        self.nodes.values().map(|refusal| refusal.until).filter(|until| now < *until).min()
    }

    /// The reason why a job cannot run on some node, for people.
    pub(super) fn explain(&self, job: JobId) -> Option<String> {
        let (node, refusal) = self.of(job).find(|(_, refusal)| IN_A_ROW <= refusal.in_a_row)?;
        Some(format!("workers do not start on node {node}: {}", refusal.why.message))
    }

    fn of(&self, job: JobId) -> impl Iterator<Item = (NodeId, &Refusal)> {
        let all = self.nodes.range((job, NodeId(0))..=(job, NodeId(u64::MAX)));
        all.map(|((_, node), refusal)| (*node, refusal))
    }
}
