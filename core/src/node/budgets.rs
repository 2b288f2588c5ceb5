//! Budgets: the books of quotas, on the nodes of the drivers whose jobs have them.
//!
//! A quota bounds what a job holds in the whole cluster. The node of its driver gives parts of it away, on
//! request, to the nodes that lend resources to the job; each counts what the job holds there against its own
//! part (`lease/quota.rs`). So the job never holds more than its quota, and nobody has to be asked while a
//! part is enough.
//!
//! Requests are served in the order in which they came, each as a whole. While the first one cannot be
//! served, the other nodes are asked to return what they do not use, and after a while one node after the
//! other to ask leases back. Not at once: a lease that was granted a moment ago has no task yet.

use crate::{MS, Now};
use std::collections::BTreeMap;
use tharsis_types::peer::QuotaMessage;
use tharsis_types::{JobId, NodeId, Quota, Resources};

/// Time after which leases are asked back for the first request; it doubles with each one.
const RECALL_AFTER: Now = 10 * MS;
/// The longest time between two of them.
const RECALL_MAX: Now = 640 * MS;

/// Quotas of the jobs whose drivers are at this node.
#[derive(Debug, Default)]
pub(super) struct Budgets {
    jobs: BTreeMap<JobId, Budget>,
    now: Now,
}

#[derive(Debug)]
struct Budget {
    quota: Quota,
    /// The part that no node has.
    free: Resources,
    /// The part of each node.
    given: BTreeMap<NodeId, Resources>,
    /// Amounts that nodes want beside their parts, in the order in which they asked.
    wants: Vec<(NodeId, Resources)>,
    /// When leases are asked back for the first of them, and the pause after that.
    recall: Option<(Now, Now)>,
    /// The node that was asked last for one.
    asked: Option<NodeId>,
}

/// Messages to nodes.
type Told = Vec<(NodeId, QuotaMessage)>;

impl Budgets {
    /// Sets the time at which the changes that follow happen.
    pub(super) fn tell_time(&mut self, now: Now) {
        self.now = now;
    }

    /// A job with a quota begins.
    pub(super) fn begin(&mut self, job: JobId, quota: &Quota) {
        let budget = Budget {
            free: quota.all(),
            quota: quota.clone(),
            given: BTreeMap::new(),
            wants: Vec::new(),
            recall: None,
            asked: None,
        };
        self.jobs.entry(job).or_insert(budget);
    }

    /// A job has ended.
    pub(super) fn end(&mut self, job: JobId) {
        self.jobs.remove(&job);
    }

    /// A node says what it lacks for a job: nothing, or a part of the quota.
    pub(super) fn wanted(&mut self, from: NodeId, job: JobId, amount: &Resources, out: &mut Told) {
        let Some(budget) = self.jobs.get_mut(&job) else { return };
        let amount = budget.quota.part(amount);
        let at = budget.wants.iter().position(|(node, _)| *node == from);
        match at {
            // Other nodes say what they like.
            _ if !budget.quota.all().fits(&amount) => return,
            Some(at) if amount.is_nothing() => {
                budget.wants.remove(at);
                if at == 0 {
                    budget.recall = None;
                }
            }
            Some(at) => budget.wants[at].1 = amount,
            None if amount.is_nothing() => return,
            None => budget.wants.push((from, amount)),
        }
        budget.serve(self.now, job, out);
    }

    /// A node returns a part.
    pub(super) fn returned(&mut self, from: NodeId, job: JobId, amount: &Resources, out: &mut Told) {
        let Some(budget) = self.jobs.get_mut(&job) else { return };
        let amount = budget.quota.part(amount);
        if budget.given.get_mut(&from).is_some_and(|given| given.take(&amount)) {
            budget.free.give(&amount);
            budget.serve(self.now, job, out);
        }
    }

    /// A node is gone, and what jobs held there with it.
    pub(super) fn node_gone(&mut self, node: NodeId, out: &mut Told) {
        let now = self.now;
        for (job, budget) in &mut self.jobs {
            if let Some(given) = budget.given.remove(&node) {
                budget.free.give(&given);
            }
            if budget.wants.first().is_some_and(|(first, _)| *first == node) {
                budget.recall = None;
            }
            budget.wants.retain(|(wants, _)| *wants != node);
            budget.serve(now, *job, out);
        }
    }

    /// When [`Budgets::expire`] has something to do.
    pub(super) fn next_timeout(&self) -> Option<Now> {
        self.jobs.values().filter_map(|budget| budget.recall).map(|(at, _)| at).min()
    }

    /// Asks leases in use back for requests that have waited.
    pub(super) fn expire(&mut self, now: Now, out: &mut Told) {
        self.now = now;
        for (job, budget) in &mut self.jobs {
            if budget.recall.is_some_and(|(at, _)| at <= now) {
                budget.recall_in_use(now, *job, out);
            }
        }
    }

    /// Asserts that no part is given twice.
    pub(super) fn check(&self, is_member: impl Fn(NodeId) -> bool) {
        for (job, budget) in &self.jobs {
            let mut all = budget.free.clone();
            budget.given.values().for_each(|given| all.give(given));
            let whole = budget.quota.all();
            assert!(all.fits(&whole) && whole.fits(&all), "parts of the quota of {job} do not add up");
            let known = budget.given.keys().chain(budget.wants.iter().map(|(node, _)| node));
            assert!(known.copied().all(&is_member), "a node that is gone has a part of the quota of {job}");
            let waits = !budget.wants.is_empty();
            assert_eq!(waits, budget.recall.is_some(), "{job}: whoever waits for the quota is helped");
        }
    }

    /// Sizes of tables that must be empty when nothing is under way.
    pub(super) fn leftovers(&self) -> [(&'static str, usize); 1] {
        [("nodes that want a part of a quota", self.jobs.values().map(|budget| budget.wants.len()).sum())]
    }
}

impl Budget {
    /// Serves requests from the first on, as far as possible.
    fn serve(&mut self, now: Now, job: JobId, out: &mut Told) {
        while let Some((node, amount)) = self.wants.first().cloned() {
            if !self.free.take(&amount) {
                if self.recall.is_none() {
                    self.recall = Some((now + RECALL_AFTER, RECALL_AFTER));
                    let has_part = |(to, given): (&NodeId, &Resources)| *to != node && !given.is_nothing();
                    let nodes: Vec<_> =
                        self.given.iter().filter(|part| has_part(*part)).map(|(to, _)| *to).collect();
                    nodes.into_iter().for_each(|to| self.ask_back(job, to, false, out));
                }
                return;
            }
            self.wants.remove(0);
            self.recall = None;
            self.given.entry(node).or_default().give(&amount);
            out.push((node, QuotaMessage::Granted { job, amount }));
        }
    }

    /// Has the next node ask a lease in use back for the first request.
    fn recall_in_use(&mut self, now: Now, job: JobId, out: &mut Told) {
        let Some((_, pause)) = self.recall else { return };
        let pause = (2 * pause).min(RECALL_MAX);
        self.recall = Some((now + pause, pause));
        let has_part = |(node, given): (&NodeId, &Resources)| (!given.is_nothing()).then_some(*node);
        let after = |node: &NodeId| self.asked.is_none_or(|asked| asked < *node);
        let mut holders = self.given.iter().filter_map(has_part);
        let next = holders.clone().find(after).or_else(|| holders.next());
        if let Some(to) = next {
            self.asked = next;
            self.ask_back(job, to, true, out);
        }
    }

    fn ask_back(&self, job: JobId, to: NodeId, in_use: bool, out: &mut Told) {
        let Some((first, amount)) = self.wants.first() else { return };
        let (amount, keep) = (amount.without(&self.free), *first == to);
        out.push((to, QuotaMessage::Recalled { job, amount, in_use, keep }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: JobId = JobId(1);
    const A: NodeId = NodeId(1);
    const B: NodeId = NodeId(2);

    fn cpus(count: f64) -> Resources {
        Resources::cpus(count).unwrap()
    }

    fn budgets(quota: &str) -> Budgets {
        let mut budgets = Budgets::default();
        budgets.begin(JOB, &quota.parse().unwrap());
        budgets
    }

    fn told(change: impl FnOnce(&mut Told)) -> Told {
        let mut out = Told::new();
        change(&mut out);
        out
    }

    fn granted(to: NodeId, count: f64) -> (NodeId, QuotaMessage) {
        (to, QuotaMessage::Granted { job: JOB, amount: cpus(count) })
    }

    fn recalled(to: NodeId, count: f64, in_use: bool, keep: bool) -> (NodeId, QuotaMessage) {
        (to, QuotaMessage::Recalled { job: JOB, amount: cpus(count), in_use, keep })
    }

    #[test]
    fn parts_are_given_in_order_and_asked_back_for_the_first_who_waits() {
        let mut budgets = budgets("cpus=4");
        assert_eq!(told(|out| budgets.wanted(A, JOB, &cpus(3.0), out)), [granted(A, 3.0)]);
        assert_eq!(told(|out| budgets.wanted(B, JOB, &cpus(2.0), out)), [recalled(A, 1.0, false, false)]);
        assert_eq!(told(|out| budgets.wanted(A, JOB, &cpus(1.0), out)), [], "B was first");
        budgets.check(|_| true);
        assert_eq!(told(|out| budgets.returned(A, JOB, &cpus(1.0), out)).first(), Some(&granted(B, 2.0)));
        let out = told(|out| budgets.expire(budgets.next_timeout().unwrap(), out));
        assert_eq!(out, [recalled(A, 1.0, true, true)], "what A frees it keeps");
        let out = told(|out| budgets.expire(budgets.next_timeout().unwrap(), out));
        assert_eq!(out, [recalled(B, 1.0, true, false)], "each node in turn");
        assert_eq!(told(|out| budgets.wanted(A, JOB, &Resources::default(), out)), []);
        assert_eq!((budgets.next_timeout(), budgets.leftovers()[0].1), (None, 0));
        budgets.check(|_| true);
    }

    #[test]
    fn the_part_of_a_node_that_is_gone_is_given_to_others() {
        let mut budgets = budgets("cpus=2");
        budgets.wanted(A, JOB, &cpus(2.0), &mut Told::new());
        budgets.wanted(B, JOB, &cpus(1.0), &mut Told::new());
        assert_eq!(told(|out| budgets.node_gone(A, out)), [granted(B, 1.0)]);
        budgets.check(|node| node == B);
    }

    #[test]
    fn a_node_that_asks_or_returns_too_much_changes_nothing() {
        let mut budgets = budgets("cpus=2");
        budgets.wanted(A, JOB, &cpus(1.0), &mut Told::new());
        for bad in [cpus(3.0), Resources { cpu: u64::MAX, ..Resources::default() }] {
            assert_eq!(told(|out| budgets.wanted(A, JOB, &bad, out)), []);
            assert_eq!(told(|out| budgets.returned(A, JOB, &bad, out)), []);
            assert_eq!(told(|out| budgets.returned(B, JOB, &bad, out)), []);
        }
        assert_eq!(told(|out| budgets.wanted(A, JobId(2), &cpus(1.0), out)), [], "another job");
        budgets.check(|_| true);
        assert_eq!(told(|out| budgets.wanted(B, JOB, &cpus(1.0), out)), [granted(B, 1.0)]);
    }
}
