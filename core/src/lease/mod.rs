//! Leases of workers and the resources they take (the admission side of a node).
//!
//! A lease gives one worker to one owner for tasks of one resource shape. It goes through *waiting* (no
//! room), *placed* (room is taken, the worker is starting) and *active*. A worker whose task blocks lends the
//! CPU part of its lease; it gets it back before any new lease does, so a nest of blocked tasks always
//! unwinds.
//!
//! Requests are named by the owner: the same request twice is one lease.
//!
//! | file | concern |
//! |---|---|
//! | `mod.rs` | leases and workers as they come and go |
//! | `actors.rs` | workers that belong to actors, and who calls them |
//! | `bundles.rs` | bundles of placement groups |
//! | `check.rs` | the relations that hold in every state |
//! | `demands.rs` | what requests wait for, counted |
//! | `draining.rs` | the end of all leases when the node drains |
//! | `gpus.rs` | GPUs by number |
//! | `idle.rs` | idle workers, and when they are stopped |
//! | `isolation.rs` | what is served while the node reaches nobody |
//! | `placing.rs` | grants and reservations of free resources |
//! | `processes.rs` | which process a worker has, or shares with others |
//! | `quota.rs` | what jobs may hold here of their quotas |
//! | `recall.rs` | choice of the leases that are asked back |
//! | `share.rs` | use of the node by each job so far |
//! | `stock.rs` | free resources of the node or of a bundle |
//! | `taking.rs` | resources that are taken, lent and given back |
//! | `waiting.rs` | requests that wait, in order |

mod actors;
mod bundles;
mod check;
mod demands;
mod draining;
mod gpus;
mod idle;
mod isolation;
mod placing;
mod processes;
mod quota;
mod recall;
mod requests;
mod share;
mod stock;
mod taking;
#[cfg(test)]
mod tests;
mod waiting;

pub use actors::Host;
pub use processes::ProcessNumber;
pub use quota::Recalled;

use crate::Now;
use crate::jobs::JobSet;
use crate::journal::{About, Entry, Fact, Journal};
use actors::Hosts;
use bundles::{Bundles, Pool, held_bundle};
use demands::Demands;
use gpus::Parts;
use idle::Idle;
use processes::{Processes, Start};
use quota::Quotas;
use share::Shares;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use stock::Stock;
use tharsis_types::hash::IdMap;
use tharsis_types::peer::QuotaMessage;
use tharsis_types::{ClientId, JobId, LeaseId, NodeId, Resources, TaskClass};
use waiting::Waiting;

/// A lease, named by the node that asked for it.
pub type LeaseKey = (NodeId, LeaseId);

/// The consequences of a change.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// No room now, and the owner did not want to wait; or no bundle of its group is here.
    Denied(LeaseKey),
    /// The bundle in which a worker has its lease is given up: the worker ends.
    Evict(ClientId),
    /// The owner may use the worker.
    Granted(LeaseKey, ClientId),
    /// A message to the node of a job's driver.
    Quota(NodeId, QuotaMessage),
    /// The owner should stop using the lease soon: others wait.
    Recall(LeaseKey),
    /// The resources of a bundle are set aside.
    Reserved(LeaseKey),
    /// A blocked worker may go on.
    Resume(ClientId),
    /// The lease ended with its worker.
    Revoked(LeaseKey),
    /// A worker process is needed.
    StartWorker {
        /// Number of the start.
        start: u64,
        /// The job that needs it.
        job: JobId,
        /// The process that it shares with others; none if it has one of its own.
        process: Option<ProcessNumber>,
        /// The GPUs of the lease that it is for, by number.
        gpus: Vec<u32>,
    },
    /// A worker is not needed any more.
    StopWorker(ClientId),
}

/// Leases, workers and resources of one node.
#[derive(Debug)]
pub struct Leases {
    total: Resources,
    stock: Stock,
    workers: BTreeMap<ClientId, Worker>,
    /// The workers of each job.
    of_job: BTreeSet<(JobId, ClientId)>,
    idle: Idle,
    hosts: Hosts,
    bundles: Bundles,
    /// Workers that were cut off and still compute.
    cut_off: BTreeMap<ClientId, CutOff>,
    starts: BTreeMap<u64, Start>,
    processes: Processes,
    leases: IdMap<LeaseKey, Lease>,
    waiting: Waiting,
    demands: Demands,
    /// Placed leases, oldest first.
    placed: VecDeque<LeaseKey>,
    /// Workers that want their CPUs back.
    resuming: VecDeque<ClientId>,
    clock: u64,
    shares: Shares,
    quotas: Quotas,
    /// Jobs whose driver is gone.
    ended_jobs: JobSet,
    /// When the first of the present reservations ends.
    reserved_until: Option<Now>,
    /// Whether requests wait although there may be room: the node is short of memory.
    is_held: bool,
    /// The only jobs whose requests are placed, while the node is isolated.
    served: Option<BTreeSet<JobId>>,
    /// The only owner that still gets leases: this node, while it drains.
    only_owner: Option<NodeId>,
    /// This node, if it has no resources: it runs nothing for other owners.
    own_only: Option<NodeId>,
    journal: Journal,
}

#[derive(Debug)]
struct Worker {
    job: JobId,
    /// The process that it shares with others, if it does.
    process: Option<ProcessNumber>,
    /// The GPUs that its process was told of when it began: it serves one lease, which has these.
    gpus: Vec<u32>,
    lease: Option<LeaseKey>,
    /// Time since when it has no lease.
    idle_since: Option<Now>,
    /// Resources it lends while its task is blocked.
    lent: Option<Resources>,
    calls: u32,
}

/// Resources still held by a worker that was cut off.
#[derive(Debug)]
struct CutOff {
    job: JobId,
    pool: Pool,
    taken: Resources,
    gpus: Parts,
    /// The part that it lent when it was cut off: others use it.
    lent: Option<Resources>,
}

#[derive(Debug)]
struct Lease {
    class: Arc<TaskClass>,
    state: State,
    /// The source of its resources, once it is placed.
    pool: Pool,
    /// The GPUs among these.
    gpus: Parts,
    /// Of requests that wait, those of higher urgency are served first.
    urgency: i32,
    /// Its number among all requests, and when it was made.
    asked: u64,
    asked_at: Now,
    /// Its owner was asked to return it.
    recalled: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting(u64),
    Placed,
    Active(ClientId),
    /// It holds a bundle, without a worker.
    Bundle,
}

impl Leases {
    /// A node with these resources and no workers.
    #[must_use]
    pub fn new(total: Resources) -> Self {
        Self {
            stock: Stock::of_node(total.clone()),
            shares: Shares::new(total.clone()),
            total,
            workers: BTreeMap::new(),
            of_job: BTreeSet::new(),
            idle: Idle::default(),
            hosts: Hosts::default(),
            bundles: Bundles::default(),
            cut_off: BTreeMap::new(),
            starts: BTreeMap::new(),
            processes: Processes::default(),
            leases: IdMap::default(),
            waiting: Waiting::default(),
            demands: Demands::default(),
            placed: VecDeque::new(),
            resuming: VecDeque::new(),
            clock: 0,
            quotas: Quotas::default(),
            ended_jobs: JobSet::default(),
            reserved_until: None,
            is_held: false,
            served: None,
            only_owner: None,
            own_only: None,
            journal: Journal::default(),
        }
    }

    /// The resources of the node.
    #[must_use]
    pub fn total(&self) -> &Resources {
        &self.total
    }

    /// Number of requests that wait for resources of the node itself.
    #[must_use]
    pub fn waiting_count(&self) -> usize {
        self.waiting.outside_count() - self.waiting_for_quota()
    }

    /// Workers that run or could run tasks.
    #[must_use]
    pub fn worker_count(&self) -> usize {
        self.workers.len()
    }

    /// Leases, waiting requests included.
    #[must_use]
    pub fn lease_count(&self) -> usize {
        self.leases.len()
    }

    /// All workers, each with its job.
    pub fn workers(&self) -> impl Iterator<Item = (ClientId, JobId)> {
        self.workers.iter().map(|(client, worker)| (*client, worker.job))
    }

    /// Jobs that have leases, requests, workers or quotas here.
    pub fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.busy_jobs().chain(self.quotas.jobs())
    }

    /// Jobs that have leases, requests or workers here.
    pub fn busy_jobs(&self) -> impl Iterator<Item = JobId> {
        let leased = self.leases.values().map(|lease| lease.class.job);
        let cut_off = self.cut_off.values().map(|worker| worker.job);
        leased.chain(self.of_job.iter().map(|(job, _)| *job)).chain(cut_off)
    }

    /// Workers of a job.
    pub fn workers_of(&self, job: JobId) -> impl Iterator<Item = ClientId> {
        self.of_job.range((job, ClientId(0))..=(job, ClientId(u32::MAX))).map(|(_, client)| *client)
    }

    /// Whether a worker's task is blocked, or waits for its CPUs.
    #[must_use]
    pub fn is_blocked(&self, client: ClientId) -> bool {
        self.workers.get(&client).is_some_and(|w| w.lent.is_some())
    }

    /// The driver of a job is gone: its workers end as they become idle.
    pub fn job_ended(&mut self, job: JobId) {
        self.ended_jobs.insert(job);
        self.shares.end(job);
        self.quotas.end(job);
    }

    /// Nothing of a job is here: its weight is forgotten, and its part of a quota, which goes back.
    pub fn forget_job(&mut self, job: JobId, out: &mut Vec<Effect>) {
        self.shares.forget(job);
        self.give_up_quota(job, out);
    }

    /// Sets the time at which the changes that follow happen.
    pub fn advance(&mut self, now: Now) {
        self.shares.advance(now);
        self.journal.tell_time(now);
    }

    /// The remembered history of a lease here.
    pub fn past(&self, (owner, lease): LeaseKey) -> impl Iterator<Item = Entry> {
        self.journal.about(About::Lease(owner, lease))
    }

    fn note(&mut self, (owner, lease): LeaseKey, fact: Fact) {
        self.journal.note(About::Lease(owner, lease), fact);
    }

    /// Weight of a job when jobs share the node; the default is 100.
    #[must_use]
    pub fn weight(&self, job: JobId) -> u32 {
        self.shares.weight(job)
    }

    /// Sets the weight of a job when jobs share the node.
    pub fn set_weight(&mut self, job: JobId, weight: u32) {
        if !self.ended_jobs.contains(job) {
            self.shares.set_weight(job, weight);
        }
    }

    /// The lease of a worker.
    #[must_use]
    pub fn lease_of(&self, client: ClientId) -> Option<LeaseKey> {
        self.workers.get(&client)?.lease
    }

    /// An owner does not need a lease any more.
    pub fn end(&mut self, key: LeaseKey, out: &mut Vec<Effect>) {
        if self.detach(key) {
            return;
        }
        let Some(lease) = self.leases.remove(&key) else { return };
        self.note(key, Fact::LeaseEnded);
        match lease.state {
            State::Waiting(clock) => {
                self.waiting.remove(&lease.class, (Reverse(lease.urgency), clock), key);
                self.waits_no_more(&lease.class);
            }
            State::Placed => {
                self.placed.retain(|k| *k != key);
                self.release(lease.pool, lease.class.job, &lease.class.resources, &lease.gpus);
                self.bundles.leave(lease.pool, key);
            }
            State::Active(client) if self.has_gpus(client) => self.stop_with_gpus(client, (key, lease), out),
            State::Active(client) => {
                self.give_back(client, (key, &lease));
                self.settle(client, &lease.class, out);
            }
            State::Bundle => held_bundle(&lease.class).into_iter().for_each(|id| self.close_bundle(id, out)),
        }
        self.place_waiting(out);
    }

    /// Starts a worker for a job before a lease needs it.
    pub fn prestart(&mut self, job: JobId, out: &mut Vec<Effect>) {
        self.start(Start { job, process: None, gpus: Vec::new() }, out);
    }

    fn start(&mut self, start: Start, out: &mut Vec<Effect>) {
        self.clock += 1;
        let Start { job, process, gpus } = start.clone();
        let before = self.starts.insert(self.clock, start);
        assert!(before.is_none(), "two starts have one number");
        out.push(Effect::StartWorker { start: self.clock, job, process, gpus });
    }

    /// The job a start was made for.
    #[must_use]
    pub fn job_of_start(&self, start: u64) -> Option<JobId> {
        self.starts.get(&start).map(|start| start.job)
    }

    /// The job of a worker. If it has an actor, that runs calls of other jobs too.
    #[must_use]
    pub fn job_of_worker(&self, client: ClientId) -> Option<JobId> {
        self.workers.get(&client).map(|worker| worker.job)
    }

    /// A started worker is ready; false if the start is unknown.
    pub fn worker_ready(&mut self, start: u64, client: ClientId, out: &mut Vec<Effect>) -> bool {
        let Some(Start { job, process, gpus }) = self.starts.remove(&start) else { return false };
        let worker = Worker { job, process, gpus, lease: None, idle_since: None, lent: None, calls: 0 };
        let before = self.workers.insert(client, worker);
        assert!(before.is_none(), "{client:?} is ready twice");
        self.of_job.insert((job, client));
        self.begin_idle(client);
        self.employ(client, out);
        self.rest(client, out);
        true
    }

    /// A worker could not be started: the oldest lease that counted on it ends. Returns that lease.
    pub fn start_failed(&mut self, start: u64, out: &mut Vec<Effect>) -> Option<LeaseKey> {
        let start = self.starts.remove(&start)?;
        self.processes.leave(start.process);
        let counts = |lease: &Lease| start.suits(lease);
        let key = *self.placed.iter().find(|k| self.leases.get(k).is_some_and(counts))?;
        self.end(key, out);
        Some(key)
    }

    /// Cuts off a worker that cannot be stopped: its resources stay in use until [`Leases::worker_gone`].
    pub fn worker_cut_off(&mut self, client: ClientId, out: &mut Vec<Effect>) {
        self.end_idle(client);
        let Some(worker) = self.workers.remove(&client) else { return };
        self.of_job.remove(&(worker.job, client));
        self.processes.leave(worker.process);
        if let Some(key) = worker.lease
            && let Some(lease) = self.leases.remove(&key)
        {
            let (pool, taken, gpus) = (lease.pool, lease.class.resources.clone(), lease.gpus);
            let cut_off = CutOff { job: worker.job, pool, taken, gpus, lent: worker.lent };
            self.cut_off.insert(client, cut_off);
            self.bundles.cut_off(pool, key);
            // If it was to resume there, nothing else was placed.
            pool.into_iter().for_each(|(group, _)| self.waiting.group_changed(group));
            out.push(Effect::Revoked(key));
        }
        self.host_gone(client, out);
        self.resuming.retain(|c| *c != client);
        self.place_waiting(out);
    }

    /// A worker is gone, whether it was cut off before or not.
    pub fn worker_gone(&mut self, client: ClientId, out: &mut Vec<Effect>) {
        if let Some(CutOff { job, pool, taken, gpus, lent }) = self.cut_off.remove(&client) {
            self.release_rest(pool, job, (&taken, &gpus[..]), lent);
            self.bundles.cut_off_gone(pool);
            return self.place_waiting(out);
        }
        let Some(worker) = self.workers.get(&client) else { return };
        if let Some(key) = worker.lease
            && let Some(lease) = self.leases.remove(&key)
        {
            self.give_back(client, (key, &lease));
            out.push(Effect::Revoked(key));
        }
        self.host_gone(client, out);
        self.resuming.retain(|c| *c != client);
        self.forget_worker(client);
        self.place_waiting(out);
    }

    /// A worker's task waits for values: others may use its CPUs.
    pub fn blocked(&mut self, client: ClientId, out: &mut Vec<Effect>) {
        let Some(worker) = self.workers.get_mut(&client) else { return };
        let Some(lease) = worker.lease.and_then(|key| self.leases.get(&key)) else { return };
        if worker.lent.is_none() {
            let part = lease.class.resources.cpu_part();
            let (pool, job) = (lease.pool, lease.class.job);
            worker.lent = Some(part.clone());
            self.release_lent(pool, job, &part);
            self.place_waiting(out);
        }
    }

    /// A worker's task resumes as soon as its CPUs are free; one that needs none, at once: it does not stand
    /// behind those that wait for theirs.
    pub fn unblocked(&mut self, client: ClientId, out: &mut Vec<Effect>) {
        if self.resuming.contains(&client) {
            return;
        }
        let lent = self.workers.get(&client).and_then(|worker| worker.lent.as_ref());
        if lent.is_some_and(Resources::is_nothing) && self.take_lent_back(client) {
            out.push(Effect::Resume(client));
        } else if self.workers.get(&client).is_some_and(|w| w.lent.is_some()) {
            self.resuming.push_back(client);
            self.place_waiting(out);
        } else {
            out.push(Effect::Resume(client));
        }
    }

    /// The task of a worker has ended while its CPUs were lent: its lease ends without them.
    pub fn end_lent(&mut self, client: ClientId, out: &mut Vec<Effect>) {
        let Some(key) = self.workers.get(&client).filter(|w| w.lent.is_some()).and_then(|w| w.lease) else {
            return;
        };
        let resumes = self.resuming.contains(&client);
        out.push(Effect::Revoked(key));
        self.end(key, out);
        if resumes {
            // It has asked for its CPUs meanwhile, and waits for the answer.
            out.push(Effect::Resume(client));
        }
    }

    /// Counts a call; true if the worker has served as many as its class allows.
    pub fn called(&mut self, client: ClientId, max_calls: u32) -> bool {
        let Some(worker) = self.workers.get_mut(&client) else { return false };
        worker.calls += 1;
        max_calls > 0 && worker.calls >= max_calls
    }

    fn find_worker(&mut self, key: LeaseKey, out: &mut Vec<Effect>) {
        let wanted = Start::for_lease(&self.leases[&key]);
        let is_shared = self.leases[&key].class.shared_process;
        let idle = self.idle.newest(wanted.job).filter(|_| !is_shared && wanted.gpus.is_empty());
        if let Some(client) = idle {
            self.employ(client, out);
            return;
        }
        let alike = |key: &&LeaseKey| {
            let lease = self.leases.get(*key);
            lease.is_some_and(|lease| {
                lease.class.shared_process == is_shared && wanted.suits_but_process(lease)
            })
        };
        let needed = self.placed.iter().filter(alike).count();
        if self.coming(&self.leases[&key]) < needed {
            let process = is_shared.then(|| self.processes.enter(wanted.job));
            self.start(Start { process, ..wanted }, out);
        }
    }

    /// Gives an idle worker to the oldest placed lease that it suits.
    fn employ(&mut self, client: ClientId, out: &mut Vec<Effect>) {
        let at = self.placed.iter().position(|key| self.suits(client, &self.leases[key]));
        let Some(key) = at.and_then(|at| self.placed.remove(at)) else { return };
        let worker = worker_mut(&mut self.workers, client);
        assert_eq!(worker.lease, None, "{client:?} has two leases");
        worker.lease = Some(key);
        self.end_idle(client);
        let lease = lease_mut(&mut self.leases, key);
        assert_eq!(lease.state, State::Placed, "{key:?} gets a worker and has no resources");
        lease.state = State::Active(client);
        self.note(key, Fact::Employed(client));
        out.push(Effect::Granted(key, client));
    }

    /// Ends the lease of a worker, which is then used again, kept or stopped.
    fn settle(&mut self, client: ClientId, class: &TaskClass, out: &mut Vec<Effect>) {
        let worker = worker_mut(&mut self.workers, client);
        assert!(worker.lease.is_some(), "{client:?} ends a lease that it does not have");
        worker.lease = None;
        let is_worn_out = class.max_calls > 0 && worker.calls >= class.max_calls;
        let is_shared = worker.process.is_some();
        let had_actor = self.host_gone(client, out);
        self.begin_idle(client);
        if is_worn_out || had_actor || is_shared {
            self.forget_worker(client);
            out.push(Effect::StopWorker(client));
            return;
        }
        self.employ(client, out);
        self.rest(client, out);
    }
}

/// The worker that a lease or a table names; it must exist.
#[allow(clippy::expect_used, reason = "a name of our own for a worker that is gone is a defect here")]
fn worker_mut(workers: &mut BTreeMap<ClientId, Worker>, client: ClientId) -> &mut Worker {
    workers.get_mut(&client).expect("a lease or a list names a worker that is gone")
}

/// The lease that a list names; it must exist.
#[allow(clippy::expect_used, reason = "a name of our own for a lease that is gone is a defect here")]
fn lease_mut(leases: &mut IdMap<LeaseKey, Lease>, key: LeaseKey) -> &mut Lease {
    leases.get_mut(&key).expect("a list names a lease that is gone")
}
