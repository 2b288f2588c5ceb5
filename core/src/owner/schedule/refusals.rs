//! Nodes on which workers of a job do not start: they are left out for a while.

use crate::{MS, Now};
use std::collections::BTreeMap;
use std::sync::Arc;
use tharsis_types::{Failure, JobId, NodeId};

/// Failures within this time of one that counted have its cause, as when several starts meet a machine that
/// is short of memory for a moment: they count with it. For this time no further start is tried there.
const COUNTED_EVERY: Now = 1_000 * MS;
/// Number of counted failures in a row after which a node is left out.
const IN_A_ROW: u32 = 3;
/// The time for which a node is left out. Then it is asked again: the fault may have been repaired.
const LEFT_OUT_FOR: Now = 10_000 * MS;
/// Failures are forgotten after this time without another one: they say nothing about the next start.
const FORGOTTEN_AFTER: Now = 60_000 * MS;

/// Nodes where workers did not start, and the reasons.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    nodes: BTreeMap<(JobId, NodeId), Refusal>,
}

#[derive(Debug)]
struct Refusal {
    in_a_row: u32,
    counted_at: Now,
    failed_at: Now,
    until: Now,
    /// Whether the end of that time was noticed.
    is_over: bool,
    why: Arc<Failure>,
}

impl Refusal {
    fn is_left_out(&self) -> bool {
        IN_A_ROW <= self.in_a_row
    }
}

impl Refusals {
    /// A worker of a job did not start on a node. Returns whether the node is left out from now on.
    pub(super) fn failed(&mut self, now: Now, job: JobId, node: NodeId, why: &Arc<Failure>) -> bool {
        let why = why.clone();
        let fresh = || Refusal {
            in_a_row: 0,
            counted_at: 0,
            failed_at: now,
            until: 0,
            is_over: true,
            why: why.clone(),
        };
        let refusal = self.nodes.entry((job, node)).or_insert_with(fresh);
        if refusal.failed_at + FORGOTTEN_AFTER <= now {
            refusal.in_a_row = 0;
        }
        refusal.failed_at = now;
        refusal.why = why;
        if refusal.in_a_row == 0 || refusal.counted_at + COUNTED_EVERY <= now {
            refusal.in_a_row += 1;
            refusal.counted_at = now;
            refusal.is_over = false;
            refusal.until = now + if refusal.is_left_out() { LEFT_OUT_FOR } else { COUNTED_EVERY };
        }
        refusal.is_left_out()
    }

    /// The reason why no worker of a job is started on a node at this moment, although the node is not left
    /// out, for people.
    pub(super) fn pause(&self, now: Now, job: JobId, node: NodeId) -> Option<String> {
        let refusal = self.nodes.get(&(job, node))?;
        let is_paused = now < refusal.until && !refusal.is_left_out();
        is_paused.then(|| {
            let why = &refusal.why.message;
            format!("a worker did not start on node {node}, which is tried again within a second: {why}")
        })
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
    pub(super) fn next_timeout(&self) -> Option<Now> {
        self.nodes.values().filter(|refusal| !refusal.is_over).map(|refusal| refusal.until).min()
    }

    /// Whether a node may be asked again that was left out when this was asked before.
    pub(super) fn take_ended(&mut self, now: Now) -> bool {
        let ended = self.nodes.values_mut().filter(|refusal| !refusal.is_over && refusal.until <= now);
        ended.map(|refusal| refusal.is_over = true).count() > 0
    }

    /// The reason why a job cannot run on some node, for people.
    pub(super) fn explain(&self, job: JobId) -> Option<String> {
        let (node, refusal) = self.of(job).find(|(_, refusal)| refusal.is_left_out())?;
        Some(format!("workers do not start on node {node}: {}", refusal.why.message))
    }

    fn of(&self, job: JobId) -> impl Iterator<Item = (NodeId, &Refusal)> {
        let all = self.nodes.range((job, NodeId(0))..=(job, NodeId(u64::MAX)));
        all.map(|((_, node), refusal)| (*node, refusal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tharsis_types::FailureKind;

    const JOB: JobId = JobId(1);
    const NODE: NodeId = NodeId(7);

    fn why(text: &str) -> Arc<Failure> {
        Arc::new(Failure::new(FailureKind::WorkerStartFailed, text.to_owned()))
    }

    #[test]
    fn failures_at_once_count_as_one() {
        let mut refusals = Refusals::default();
        for at in [0, 1, 500 * MS, 999 * MS] {
            assert!(!refusals.failed(at, JOB, NODE, &why("no memory")), "at {at}");
        }
        assert!(refusals.pause(999 * MS, JOB, NODE).unwrap().contains("no memory"));
        assert_eq!(refusals.pause(1_000 * MS, JOB, NODE), None, "the next start is tried");
        assert_eq!(refusals.next_timeout(), Some(1_000 * MS));
        assert!(!refusals.take_ended(999 * MS) && refusals.take_ended(1_000 * MS));
        assert_eq!((refusals.next_timeout(), refusals.take_ended(1_001 * MS)), (None, false));
        assert!(!refusals.failed(1_000 * MS, JOB, NODE, &why("no memory")));
        assert!(refusals.failed(2_000 * MS, JOB, NODE, &why("no memory")), "the third in a row");
        assert_eq!(refusals.left_out(2_001 * MS, JOB), [NODE]);
        assert_eq!(refusals.left_out(12_000 * MS, JOB), []);
        assert!(refusals.failed(12_000 * MS, JOB, NODE, &why("no memory")), "and at once again");
    }

    #[test]
    fn old_failures_are_forgotten() {
        let mut refusals = Refusals::default();
        for turn in 0..10 {
            assert!(!refusals.failed(turn * FORGOTTEN_AFTER, JOB, NODE, &why("no memory")), "turn {turn}");
        }
        assert!(!refusals.failed(9 * FORGOTTEN_AFTER + COUNTED_EVERY, JOB, NODE, &why("no memory")));
        refusals.started(JOB, NODE);
        assert!(!refusals.failed(9 * FORGOTTEN_AFTER + 2 * COUNTED_EVERY, JOB, NODE, &why("no memory")));
    }
}
