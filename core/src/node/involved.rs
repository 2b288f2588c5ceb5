//! Involved nodes: those that this node asked for leases on behalf of a job, or whose actors a job called,
//! and that must hear of its end.
//!
//! A node has something of a job of another node only because somebody asked it for a lease, or called an
//! actor there. So the end of a job goes the ways that its requests went: from the node of its driver to
//! those it asked, from these to those that they asked. It arrives everywhere, on the same links as the
//! requests and after them, and nobody else is troubled. (The refused design: to tell all members, which
//! opens a link to each for every job.)
//!
//! If a node on the way is gone, nobody knows whom it asked: whoever asked it tells all members.
//!
//! So a node hears of the end of a job from nodes that have no say in it. It takes that for a question to the
//! control store (`Operation::ConfirmEnd`).

use std::collections::{BTreeMap, BTreeSet};
use tharsis_types::{JobId, NodeId};

/// The involved nodes of the jobs that run.
#[derive(Debug, Default)]
pub(super) struct Involved {
    jobs: BTreeMap<JobId, Asked>,
}

/// The nodes that must hear of the end of a job.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// Nodes that were asked for leases, or called.
    pub(super) nodes: BTreeSet<NodeId>,
    /// Whether another one was asked and is gone.
    pub(super) some_gone: bool,
}

impl Involved {
    /// A node is asked for a lease on behalf of a job, or called.
    pub(super) fn ask(&mut self, job: JobId, node: NodeId) {
        self.jobs.entry(job).or_default().nodes.insert(node);
    }

    /// The jobs that involve other nodes.
    pub(super) fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.jobs.keys().copied()
    }

    /// A node is gone.
    pub(super) fn node_gone(&mut self, node: NodeId) {
        for asked in self.jobs.values_mut() {
            asked.some_gone |= asked.nodes.remove(&node);
        }
    }

    /// A job has ended: the nodes to tell, the first time that this node hears of it.
    pub(super) fn end(&mut self, job: JobId) -> Asked {
        self.jobs.remove(&job).unwrap_or_default()
    }

    /// Asserts that the involved nodes are members, and that the jobs run.
    pub(super) fn check(&self, is_member: impl Fn(NodeId) -> bool, has_ended: impl Fn(JobId) -> bool) {
        for (job, asked) in &self.jobs {
            assert!(asked.nodes.iter().all(|node| is_member(*node)), "a node that is gone is involved");
            assert!(!has_ended(*job), "{job} has ended and involves nodes");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_were_asked_are_told_once() {
        let mut involved = Involved::default();
        let (job, other) = (JobId(1), JobId(2));
        for (job, node) in [(job, 5), (job, 5), (job, 6), (other, 7)] {
            involved.ask(job, NodeId(node));
        }
        involved.node_gone(NodeId(7));
        let nodes = BTreeSet::from([NodeId(5), NodeId(6)]);
        assert_eq!(involved.end(job), Asked { nodes, some_gone: false });
        assert_eq!(involved.end(job), Asked::default());
        assert!(involved.end(other).some_gone, "whom it asked is not known");
    }
}
