//! Tests of what jobs may hold at a lender: parts that are given, paid, owed and returned.

use super::*;
use crate::lease::LeaseKey;
use tharsis_types::{FunctionId, LeaseId};

const JOB: JobId = JobId(1);
const OTHER: JobId = JobId(2);
const HOME: NodeId = NodeId(9);

/// A lender of four CPUs to a job whose quota is two.
struct Bench {
    leases: Leases,
    next: u64,
    effects: Vec<Effect>,
    others: Vec<Effect>,
    workers: BTreeMap<LeaseKey, ClientId>,
}

fn cpus(count: f64) -> Resources {
    Resources::cpus(count).unwrap()
}

fn wanted(count: f64) -> QuotaMessage {
    QuotaMessage::Wanted { job: JOB, amount: cpus(count) }
}

fn returned(count: f64) -> QuotaMessage {
    QuotaMessage::Returned { job: JOB, amount: cpus(count) }
}

impl Bench {
    fn new() -> Self {
        let mut leases = Leases::new(cpus(4.0));
        let terms = JobQuota { home: HOME, quota: "cpus=2".parse().unwrap() };
        leases.set_quota(JOB, Some(&Arc::new(terms)));
        Self { leases, next: 0, effects: Vec::new(), others: Vec::new(), workers: BTreeMap::new() }
    }

    fn ask(&mut self, job: JobId, count: f64, wait: bool) -> LeaseKey {
        self.next += 1;
        let key = (NodeId(1), LeaseId(self.next));
        let class = TaskClass { resources: cpus(count), ..TaskClass::new(job, FunctionId(1), "f") };
        self.leases.request(key, Arc::new(class), wait, 0, &mut self.effects);
        key
    }

    fn grant(&mut self, count: f64) {
        self.leases.quota_granted(HOME, JOB, &cpus(count), &mut self.effects);
    }

    fn recall(&mut self, count: f64, in_use: bool, keep: bool) {
        let recalled = Recalled { amount: cpus(count), in_use, keep };
        self.leases.quota_recalled(HOME, JOB, recalled, |_| false, &mut self.effects);
    }

    /// Starts workers as they are asked for; returns what the home is told.
    fn told(&mut self) -> Vec<QuotaMessage> {
        let mut told = Vec::new();
        while !self.effects.is_empty() {
            for effect in std::mem::take(&mut self.effects) {
                match effect {
                    Effect::StartWorker { start, .. } => {
                        let client = ClientId(start as u32);
                        assert!(self.leases.worker_ready(start, client, &mut self.effects));
                    }
                    Effect::Granted(key, client) => drop(self.workers.insert(key, client)),
                    Effect::Quota(HOME, message) => told.push(message),
                    other => self.others.push(other),
                }
            }
            self.leases.check();
        }
        told
    }

    fn runs(&self, key: LeaseKey) -> bool {
        self.workers.contains_key(&key)
    }
}

#[test]
fn a_request_waits_for_a_part_of_the_quota_and_delays_no_other_job() {
    let mut bench = Bench::new();
    let (first, second) = (bench.ask(JOB, 1.0, false), bench.ask(JOB, 0.5, false));
    assert_eq!(bench.told(), [wanted(1.0)], "the first says what it lacks");
    assert!(!bench.runs(first) && bench.leases.waiting_count() == 0);
    let other = bench.ask(OTHER, 4.0, false);
    assert_eq!(bench.told(), [wanted(0.0)], "there is no room for them any more");
    assert!(bench.runs(other));
    bench.leases.end(other, &mut bench.effects);
    assert_eq!(bench.told(), [wanted(1.0)]);
    bench.grant(1.0);
    assert_eq!(bench.told(), [wanted(0.5)]);
    assert!(bench.runs(first) && !bench.runs(second));
    bench.leases.end(first, &mut bench.effects);
    assert_eq!(bench.told(), [wanted(0.0)]);
    assert!(bench.runs(second), "what the first held is a part for the second");
    assert_eq!(bench.leases.held_of_quota(JOB), Some(&cpus(0.5)));
}

#[test]
fn a_request_beyond_the_quota_keeps_no_other_of_its_job_from_its_part() {
    let mut bench = Bench::new();
    let (beyond, within) = (bench.ask(JOB, 3.0, true), bench.ask(JOB, 1.0, true));
    assert_eq!(bench.told(), [wanted(1.0)]);
    bench.grant(1.0);
    bench.told();
    assert!(bench.runs(within) && !bench.runs(beyond));
}

#[test]
fn what_a_blocked_worker_lends_is_for_others_of_its_job() {
    let mut bench = Bench::new();
    let parent = bench.ask(JOB, 1.0, true);
    bench.grant(1.0);
    bench.told();
    bench.leases.blocked(bench.workers[&parent], &mut bench.effects);
    let child = bench.ask(JOB, 1.0, true);
    bench.told();
    assert!(bench.runs(child));
    bench.leases.unblocked(bench.workers[&parent], &mut bench.effects);
    assert_eq!(bench.told(), [wanted(1.0)], "there are CPUs, and no part");
    assert_eq!(bench.others, []);
    bench.recall(1.0, true, true);
    bench.told();
    assert_eq!(bench.others, [Effect::Recall(child)]);
    bench.leases.end(child, &mut bench.effects);
    assert_eq!(bench.told(), [wanted(0.0)]);
    assert!(bench.others.contains(&Effect::Resume(bench.workers[&parent])));
}

#[test]
fn a_part_goes_back_when_it_is_not_in_use_and_nobody_else_takes_it() {
    let mut bench = Bench::new();
    let (first, second) = (bench.ask(JOB, 1.0, true), bench.ask(JOB, 1.0, true));
    bench.grant(2.0);
    bench.told();
    bench.leases.end(second, &mut bench.effects);
    bench.recall(2.0, false, false);
    assert_eq!(bench.told(), [returned(1.0)]);
    let third = bench.ask(JOB, 1.0, true);
    assert_eq!(bench.told(), [wanted(1.0)]);
    bench.leases.end(first, &mut bench.effects);
    assert_eq!(bench.told(), [returned(1.0)], "it was asked back before");
    assert!(!bench.runs(third));
    bench.grant(1.0);
    bench.told();
    assert!(bench.runs(third));
}

/// Somebody has a lease of the job here when the first request comes that says the quota.
#[test]
fn parts_pay_first_for_what_was_held_before_the_quota_was_known() {
    let mut bench = Bench::new();
    bench.leases.set_quota(JOB, None);
    let early = bench.ask(JOB, 1.0, true);
    assert_eq!((bench.told(), bench.runs(early)), (vec![], true));
    let terms = JobQuota { home: HOME, quota: "cpus=2".parse().unwrap() };
    bench.leases.set_quota(JOB, Some(&Arc::new(terms)));
    let (second, third) = (bench.ask(JOB, 1.0, true), bench.ask(JOB, 1.0, true));
    assert_eq!(bench.told(), [wanted(1.0)]);
    bench.grant(1.0);
    assert_eq!(bench.told(), [wanted(1.0)], "that was for the first");
    assert!(!bench.runs(second));
    bench.grant(1.0);
    assert_eq!(bench.told(), [wanted(1.0)]);
    assert!(bench.runs(second) && !bench.runs(third), "all of the quota is in use");
    bench.grant(1.0);
    assert_eq!(bench.told(), [returned(1.0)], "nobody gives more than the quota");
    bench.leases.end(early, &mut bench.effects);
    bench.told();
    assert!(bench.runs(third), "it was given for");
    for key in [second, third] {
        bench.leases.end(key, &mut bench.effects);
    }
    bench.recall(2.0, false, false);
    assert!(bench.told().contains(&returned(2.0)), "all that was given goes back");
}

#[test]
fn what_ends_unpaid_is_no_part() {
    let mut bench = Bench::new();
    bench.leases.set_quota(JOB, None);
    let early = bench.ask(JOB, 2.0, true);
    bench.told();
    let terms = JobQuota { home: HOME, quota: "cpus=2".parse().unwrap() };
    bench.leases.set_quota(JOB, Some(&Arc::new(terms)));
    bench.leases.end(early, &mut bench.effects);
    let next = bench.ask(JOB, 1.0, true);
    assert_eq!((bench.told(), bench.runs(next)), (vec![wanted(1.0)], false));
    bench.grant(1.0);
    bench.told();
    assert!(bench.runs(next));
}

#[test]
fn leases_of_a_job_that_has_not_begun_end_when_it_begins() {
    let mut bench = Bench::new();
    bench.leases.set_quota(JOB, None);
    let (busy, idle, waits) =
        (bench.ask(JOB, 1.0, true), bench.ask(JOB, 1.0, true), bench.ask(JOB, 4.0, true));
    let other = bench.ask(OTHER, 1.0, true);
    bench.told();
    let (client, mut doomed) = (bench.workers[&busy], Vec::new());
    bench.leases.end_made_up(JOB, |worker| worker == client, &mut doomed, &mut bench.effects);
    bench.told();
    assert_eq!(doomed, [client]);
    assert!(bench.others.contains(&Effect::Denied(waits)) && bench.others.contains(&Effect::Revoked(idle)));
    assert_eq!([busy, idle, other].map(|key| bench.leases.worker(key).is_some()), [true, false, true]);
    assert_eq!((bench.leases.lease_count(), bench.leases.waiting_count()), (2, 0));
}

/// A member has named the right node before the driver was known, and another quota.
#[test]
fn parts_stay_when_the_quota_turns_out_to_be_another() {
    let mut bench = Bench::new();
    let first = bench.ask(JOB, 1.0, true);
    bench.grant(2.0);
    bench.told();
    let terms = JobQuota { home: HOME, quota: "cpus=4".parse().unwrap() };
    bench.leases.set_quota(JOB, Some(&Arc::new(terms)));
    let second = bench.ask(JOB, 1.0, true);
    assert_eq!(bench.told(), [], "there is a part for it");
    assert!(bench.runs(first) && bench.runs(second));
    bench.recall(2.0, false, false);
    bench.leases.end(first, &mut bench.effects);
    bench.leases.end(second, &mut bench.effects);
    assert_eq!(bench.told(), [returned(1.0), returned(1.0)]);
}

#[test]
fn only_the_home_gives_and_no_more_than_the_quota() {
    let mut bench = Bench::new();
    let first = bench.ask(JOB, 1.0, true);
    bench.told();
    bench.leases.quota_granted(NodeId(8), JOB, &cpus(1.0), &mut bench.effects);
    bench.grant(3.0);
    let all = Resources { cpu: u64::MAX, ..Resources::default() };
    bench.leases.quota_granted(HOME, JOB, &all, &mut bench.effects);
    let back = QuotaMessage::Returned { job: JOB, amount: all };
    assert_eq!((bench.told(), bench.runs(first)), (vec![returned(3.0), back], false));
    assert_eq!(bench.others, [Effect::Quota(NodeId(8), returned(1.0))], "it is not taken");
}

/// A member has said the quota of the job before the node of its driver, and said less.
#[test]
fn a_grant_that_is_not_taken_goes_back_and_is_asked_for_again() {
    let mut bench = Bench::new();
    let terms = |text: &str| Arc::new(JobQuota { home: HOME, quota: text.parse().unwrap() });
    bench.leases.set_quota(JOB, Some(&terms("cpus=1")));
    let (first, second) = (bench.ask(JOB, 1.0, true), bench.ask(JOB, 1.0, true));
    assert_eq!(bench.told(), [wanted(1.0)]);
    // Asked for already by the same node, whatever the quota is.
    bench.leases.set_quota(JOB, Some(&terms("cpus=1")));
    bench.leases.look_again(&mut bench.effects);
    assert_eq!(bench.told(), []);
    bench.grant(1.0);
    assert_eq!((bench.told(), bench.runs(first)), (vec![wanted(1.0)], true));
    bench.grant(1.0);
    assert_eq!((bench.told(), bench.runs(second)), (vec![returned(1.0)], false));
    bench.leases.set_quota(JOB, Some(&terms("cpus=4")));
    bench.leases.look_again(&mut bench.effects);
    assert_eq!(bench.told(), [wanted(1.0)]);
    bench.grant(1.0);
    bench.told();
    assert!(bench.runs(second));
    bench.leases.quota_granted(HOME, OTHER, &cpus(1.0), &mut bench.effects);
    assert_eq!(bench.told(), [QuotaMessage::Returned { job: OTHER, amount: cpus(1.0) }], "it is not known");
}

/// A member says of very many jobs that they have quotas, and asks for leases of each.
#[test]
fn quotas_of_jobs_that_wait_for_nothing_here_are_not_looked_at() {
    const COUNT: u32 = 2_000;
    let mut bench = Bench::new();
    let terms = Arc::new(JobQuota { home: HOME, quota: "cpus=2".parse().unwrap() });
    for job in (10..).take(COUNT as usize).map(JobId) {
        bench.leases.set_quota(job, Some(&terms));
        let asked = bench.ask(job, 1.0, true);
        bench.leases.end(asked, &mut bench.effects);
    }
    bench.told();
    bench.leases.quotas.balanced = 0;
    for _ in 0..10 {
        let other = bench.ask(OTHER, 1.0, true);
        bench.told();
        assert!(bench.runs(other));
        bench.leases.end(other, &mut bench.effects);
    }
    assert_eq!((bench.told(), bench.leases.quotas.balanced), (vec![], 0));
    let first = bench.ask(JOB, 1.0, true);
    assert_eq!((bench.told(), bench.runs(first)), (vec![wanted(1.0)], false));
    assert_eq!(bench.leases.quotas.balanced, 1, "the one that waits");
}
