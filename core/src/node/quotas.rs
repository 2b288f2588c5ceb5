//! Quotas of jobs: who hears of them, and the messages between the node of a driver and those that lend.
//!
//! A message of this node to itself waits for the end of the step: a part that is given leads to the next
//! request for one.

use super::Node;
use super::terms::Said;
use crate::event::Action;
use crate::lease::Recalled;
use std::sync::Arc;
use tharsis_types::peer::{Message, QuotaMessage};
use tharsis_types::{JobId, JobQuota, NodeId, Quota, Resources};

impl Node {
    /// A job begins at this node, with a quota or without: whatever a member has said of it before.
    pub(super) fn begin_job(&mut self, job: JobId, weight: u32, quota: Option<Quota>) {
        let terms = quota.map(|quota| {
            self.budgets.begin(job, &quota);
            Arc::new(JobQuota { home: self.id, quota })
        });
        self.leases.set_weight(job, weight);
        self.quota_heard(job, terms.as_ref());
        self.terms.begins(job, self.id, Said { weight, quota: terms });
    }

    /// This node lends to a job, and may own tasks of it: it has a quota or none.
    pub(super) fn quota_heard(&mut self, job: JobId, terms: Option<&Arc<JobQuota>>) {
        self.leases.set_quota(job, terms);
        self.owner.set_quota(job, terms);
    }

    /// Resources that a job with a quota holds here, of those that it bounds.
    #[must_use]
    pub fn held_of_quota(&self, job: JobId) -> Option<&Resources> {
        self.leases.held_of_quota(job)
    }

    /// A message from the node of a driver, or to it.
    pub(super) fn quota_message(&mut self, from: NodeId, message: QuotaMessage, out: &mut Vec<Action>) {
        let mut told = Vec::new();
        match message {
            QuotaMessage::Granted { job, amount } => {
                self.lease_change(out, |leases, effects| leases.quota_granted(from, job, &amount, effects));
            }
            QuotaMessage::Recalled { job, amount, in_use, keep } => {
                let recalled = Recalled { amount, in_use, keep };
                let mut effects = Vec::new();
                let runs = &self.runs;
                let is_idle = |client| !runs.is_busy(client);
                self.leases.quota_recalled(from, job, recalled, is_idle, &mut effects);
                self.apply_leases(effects, out);
            }
            QuotaMessage::Returned { job, amount } => self.budgets.returned(from, job, &amount, &mut told),
            QuotaMessage::Wanted { job, amount } => self.budgets.wanted(from, job, &amount, &mut told),
        }
        self.tell_of_quotas(told);
    }

    /// Sends messages about quotas.
    pub(super) fn tell_of_quotas(&mut self, told: Vec<(NodeId, QuotaMessage)>) {
        for (to, message) in told {
            if to == self.id {
                self.quota_messages.push_back(message)
            } else {
                self.send(to, Message::Quota(message))
            }
        }
    }

    /// Carries out the messages of this node to itself.
    pub(super) fn settle_quotas(&mut self, out: &mut Vec<Action>) {
        while let Some(message) = self.quota_messages.pop_front() {
            self.quota_message(self.id, message, out);
            self.apply(out);
        }
    }

    /// Goes on with requests for parts of quotas that have waited.
    pub(super) fn expire_quotas(&mut self) {
        let mut told = Vec::new();
        self.budgets.expire(self.now, &mut told);
        self.tell_of_quotas(told);
    }

    /// A node is gone, and what jobs held there with it.
    pub(super) fn quotas_of_gone(&mut self, node: NodeId) {
        let mut told = Vec::new();
        self.budgets.node_gone(node, &mut told);
        self.tell_of_quotas(told);
    }
}
