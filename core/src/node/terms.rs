//! Terms of jobs, their weights and quotas, as the nodes say them that ask for leases.
//!
//! All nodes say the same of a job, but a member can say what it likes. The record of the job in the control
//! store has the node of its driver and the terms that this one gave: once they are known here, nothing else
//! counts. Until then the first that speaks is believed. The store is asked when two say different things, or
//! when a quota is said: the job waits for parts of it, which come from the node of its driver alone.
//!
//! The record of a node of a former release has no terms. Then that node is believed when it speaks here, and
//! nobody who has not spoken before it is known.
//!
//! | terms of a job | enter by | leave by |
//! |---|---|---|
//! | of the driver here | [`Terms::begins`] | [`Terms::forget`] |
//! | of the first that spoke | [`Terms::heard`] | [`Terms::driver_found`], `heard`, `forget`, [`Terms::leave_out`] |
//! | of the driver elsewhere | `driver_found`, `heard` | `forget`, `leave_out` |
//!
//! A member can ask for leases of jobs that never come. So those of which nothing is here are left out when
//! they have become many.
//!
//! The terms that hold are in the leases as well, each in the machine that counts by it: a weight cannot
//! change before the time until now is charged by the former one (`lease/share.rs`), nor a quota before what
//! is held and given is counted in the resources that the new one bounds (`lease/quota.rs`).
//! [`Node::check_terms`] asserts that both are those that are believed.

use super::Node;
use crate::event::{Action, Operation};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tharsis_types::{JobId, JobQuota, JobTerms, NodeId};

/// Jobs that are kept, whatever is here of them.
const KEPT_MIN: usize = 64;

/// The weight and the quota of a job, as a node says them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Said {
    pub(super) weight: u32,
    pub(super) quota: Option<Arc<JobQuota>>,
}

/// The terms of jobs.
#[derive(Debug, Default)]
pub(super) struct Terms {
    jobs: BTreeMap<JobId, Job>,
    /// Number of jobs from which on those are left out of which nothing is here.
    full: usize,
}

#[derive(Debug)]
struct Job {
    /// The terms that hold.
    said: Said,
    /// The node of the driver, if it is known.
    driver: Option<NodeId>,
    /// Whether the terms are those that the driver gave.
    is_final: bool,
    /// Whether the control store is being asked.
    is_asked: bool,
}

/// Consequences of the terms that a node says.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Heard {
    /// Terms that hold from now on.
    holds: Option<Said>,
    /// Whether to ask for the node of the driver.
    asks: bool,
}

impl Terms {
    /// A job begins at this node: whatever members have said of it, and will say.
    pub(super) fn begins(&mut self, job: JobId, me: NodeId, said: Said) {
        let begun = Job { said, driver: Some(me), is_final: true, is_asked: false };
        self.jobs.insert(job, begun);
    }

    /// Another node says the terms of a job.
    fn heard(&mut self, job: JobId, from: NodeId, said: Said) -> Heard {
        let Some(known) = self.jobs.get_mut(&job) else {
            let is_asked = said.quota.is_some();
            let new = Job { said: said.clone(), driver: None, is_final: false, is_asked };
            self.jobs.insert(job, new);
            return Heard { holds: Some(said), asks: is_asked };
        };
        match known.driver {
            _ if known.is_final => Heard::default(),
            Some(driver) if driver == from => Heard { holds: known.set(said), asks: false },
            Some(_) => Heard::default(),
            None => {
                let asks = !known.is_asked && (known.said != said || said.quota.is_some());
                known.is_asked |= asks;
                Heard { holds: None, asks }
            }
        }
    }

    /// The control store says where the driver of a job is and which terms it gave, or that it does not know
    /// the job so far. Returns the terms that hold from now on, if these are others.
    fn driver_found(&mut self, job: JobId, driver: Option<NodeId>, terms: Option<JobTerms>) -> Option<Said> {
        let known = self.jobs.get_mut(&job)?;
        known.is_asked = false;
        let home = driver.filter(|_| !known.is_final)?;
        known.driver = Some(home);
        if let Some(JobTerms { weight, quota }) = terms {
            let quota = quota.map(|quota| Arc::new(JobQuota { home, quota }));
            return known.set(Said { weight, quota });
        }
        // Another node has spoken for the driver, which gives the parts of its quota.
        let is_false = known.said.quota.as_ref().is_some_and(|terms| terms.home != home);
        is_false.then(|| {
            known.said.quota = None;
            known.said.clone()
        })
    }

    /// A job has ended.
    pub(super) fn forget(&mut self, job: JobId) {
        self.jobs.remove(&job);
    }

    /// Whether so many jobs are known that it is time for [`Terms::leave_out`].
    fn is_full(&self) -> bool {
        self.full.max(KEPT_MIN) <= self.jobs.len()
    }

    /// Forgets the jobs of which nothing is here; returns them.
    fn leave_out(&mut self, is_here: impl Fn(JobId) -> bool) -> Vec<JobId> {
        let gone: Vec<_> = self.jobs.keys().copied().filter(|job| !is_here(*job)).collect();
        gone.iter().for_each(|job| self.forget(*job));
        // So many more come before all are looked at again: a constant number of looks for each.
        self.full = 2 * self.jobs.len();
        gone
    }

    /// Asserts that the driver is known of each job whose terms it gave.
    pub(super) fn check(&self) {
        for (job, known) in &self.jobs {
            assert!(known.driver.is_some() || !known.is_final, "the driver of {job} is not known");
        }
    }
}

impl Job {
    /// The terms that the driver gave are known; returns them if they are others than those that held.
    fn set(&mut self, said: Said) -> Option<Said> {
        self.is_final = true;
        let differs = self.said != said;
        self.said = said;
        differs.then(|| self.said.clone())
    }
}

impl Node {
    /// Another node asks for a lease for a job, and says the terms of that job.
    pub(super) fn asked_by_other(&mut self, from: NodeId, job: JobId, said: Said, out: &mut Vec<Action>) {
        self.listeners.add(self.now, from, self.view.is_small());
        if self.owner.has_ended(job) {
            return;
        }
        if self.terms.is_full() {
            self.leave_out_jobs(out);
        }
        let heard = self.terms.heard(job, from, said);
        self.terms_hold(job, heard.holds, out);
        if heard.asks {
            out.push(Action::Do(Operation::FindDriver { job, from }));
        }
    }

    /// The control store says where the driver of a job is and which terms it gave, or that it does not know
    /// the job.
    pub(super) fn driver_found(
        &mut self,
        job: JobId,
        driver: Option<NodeId>,
        terms: Option<JobTerms>,
        out: &mut Vec<Action>,
    ) {
        let holds = self.terms.driver_found(job, driver, terms);
        self.terms_hold(job, holds, out);
    }

    fn terms_hold(&mut self, job: JobId, said: Option<Said>, out: &mut Vec<Action>) {
        let Some(Said { weight, quota }) = said else { return };
        self.leases.set_weight(job, weight);
        // Parts that were given stay as long as the quota is the same.
        if self.owner.quota(job) != quota.as_ref() {
            self.quota_heard(job, quota.as_ref());
            // Requests may have waited for parts of a quota that the job does not have.
            self.lease_change(out, |leases, effects| leases.look_again(effects));
            self.owner.dirty_all();
        }
    }

    /// Asserts that each job is counted by the terms that are believed.
    pub(super) fn check_terms(&self) {
        self.terms.check();
        for (job, Job { said: Said { weight, quota }, .. }) in &self.terms.jobs {
            if self.owner.has_ended(*job) {
                continue;
            }
            assert_eq!(self.leases.weight(*job), (*weight).max(1), "{job} has another weight");
            assert_eq!(self.leases.quota(*job), quota.as_ref(), "{job} has another quota at the lender");
            assert_eq!(self.owner.quota(*job), quota.as_ref(), "{job} has another quota at the owner");
        }
    }

    /// Forgets the terms of jobs of which nothing is here.
    fn leave_out_jobs(&mut self, out: &mut Vec<Action>) {
        let here = self.leases.busy_jobs().chain(self.owner.jobs()).chain(self.involved.jobs());
        let here: BTreeSet<JobId> = here.collect();
        let clients = &self.clients;
        let gone = self.terms.leave_out(|job| here.contains(&job) || clients.is_driven_here(job));
        let mut effects = Vec::new();
        for job in gone {
            self.owner.set_quota(job, None);
            self.leases.forget_job(job, &mut effects);
        }
        self.apply_leases(effects, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: JobId = JobId(1);
    const HOME: NodeId = NodeId(1);
    const LIAR: NodeId = NodeId(2);
    const OTHER: NodeId = NodeId(3);

    fn said(weight: u32, home: Option<NodeId>) -> Said {
        let quota = |home| Arc::new(JobQuota { home, quota: "cpus=1".parse().unwrap() });
        Said { weight, quota: home.map(quota) }
    }

    fn holds(said: Said) -> Heard {
        Heard { holds: Some(said), asks: false }
    }

    const NOTHING: Heard = Heard { holds: None, asks: false };
    const ASKS: Heard = Heard { holds: None, asks: true };

    fn record(weight: u32, quota: Option<&str>) -> Option<JobTerms> {
        Some(JobTerms { weight, quota: quota.map(|text| text.parse().unwrap()) })
    }

    #[test]
    fn the_record_of_a_job_is_believed_whoever_speaks_first() {
        let mut terms = Terms::default();
        assert_eq!(terms.heard(JOB, LIAR, said(1, None)), holds(said(1, None)));
        assert_eq!(terms.heard(JOB, OTHER, said(1, None)), NOTHING, "nobody says otherwise");
        assert_eq!(terms.heard(JOB, HOME, said(300, None)), ASKS);
        assert_eq!(terms.heard(JOB, OTHER, said(7, None)), NOTHING, "it is asked already");
        assert_eq!(terms.driver_found(JOB, Some(HOME), record(300, None)), Some(said(300, None)));
        terms.check();
        for node in [LIAR, OTHER, HOME] {
            assert_eq!(terms.heard(JOB, node, said(1, Some(HOME))), NOTHING);
        }
        assert_eq!(terms.driver_found(JOB, Some(LIAR), record(1, None)), None, "it is known");
    }

    /// The driver's node never asks here: tasks of the job run at another one, which does.
    #[test]
    fn a_member_gives_a_job_no_quota_takes_none_off_and_gives_it_no_other() {
        let lies = [said(1, None), said(1, Some(LIAR)), said(1, Some(HOME)), {
            let quota = JobQuota { home: HOME, quota: "memory=1TB".parse().unwrap() };
            Said { weight: 1, quota: Some(Arc::new(quota)) }
        }];
        for (honest, given) in [(said(300, None), None), (said(300, Some(HOME)), Some("cpus=1"))] {
            for lie in &lies {
                for is_first in [true, false] {
                    let mut terms = Terms::default();
                    let (first, second) = ((LIAR, lie.clone()), (OTHER, honest.clone()));
                    let order = if is_first { [first, second] } else { [second, first] };
                    for (node, said) in order {
                        terms.heard(JOB, node, said);
                    }
                    assert!(terms.jobs[&JOB].is_asked, "{lie:?} beside {honest:?}");
                    terms.driver_found(JOB, Some(HOME), record(300, given));
                    assert_eq!(terms.heard(JOB, LIAR, lie.clone()), NOTHING);
                    assert_eq!(terms.jobs[&JOB].said, honest);
                    terms.check();
                }
            }
        }
    }

    #[test]
    fn the_node_of_the_driver_is_believed_if_its_record_has_no_terms() {
        let mut terms = Terms::default();
        let heard = terms.heard(JOB, LIAR, said(7, Some(LIAR)));
        assert_eq!(heard, Heard { holds: Some(said(7, Some(LIAR))), asks: true });
        assert_eq!(terms.driver_found(JOB, None, None), None, "it is too early");
        assert_eq!(terms.heard(JOB, LIAR, said(7, Some(LIAR))), ASKS);
        assert_eq!(terms.driver_found(JOB, Some(HOME), None), Some(said(7, None)), "it gives no part");
        assert_eq!(terms.heard(JOB, OTHER, said(1, Some(HOME))), NOTHING);
        assert_eq!(terms.heard(JOB, HOME, said(100, Some(HOME))), holds(said(100, Some(HOME))));
        assert_eq!(terms.heard(JOB, HOME, said(200, Some(HOME))), NOTHING, "it never changes");
        terms.check();
    }

    #[test]
    fn nobody_has_a_say_in_a_job_of_a_driver_here() {
        let mut terms = Terms::default();
        terms.heard(JOB, LIAR, said(1, Some(LIAR)));
        terms.begins(JOB, HOME, said(100, None));
        assert_eq!(terms.heard(JOB, LIAR, said(1, Some(LIAR))), NOTHING);
        assert_eq!(terms.driver_found(JOB, Some(LIAR), record(1, None)), None, "it was asked before");
        terms.check();
    }

    #[test]
    fn jobs_that_never_come_are_left_out() {
        let mut terms = Terms::default();
        let looks = std::cell::Cell::new(0_usize);
        for number in 1..=10_000 {
            if terms.is_full() {
                terms.leave_out(|job| {
                    looks.set(looks.get() + 1);
                    job.0 <= 100
                });
            }
            terms.heard(JobId(number), LIAR, said(1, None));
            assert!(terms.jobs.len() <= 200, "{} jobs are kept", terms.jobs.len());
        }
        assert!((1..=100).all(|number| terms.jobs.contains_key(&JobId(number))), "something is here of them");
        assert!(looks.get() < 30_000, "{} looks", looks.get());
    }
}
