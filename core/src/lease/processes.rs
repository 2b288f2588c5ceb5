//! Processes of workers: one worker has a process of its own, another shares one with others of its job.
//!
//! A worker with GPUs is started for its lease, because a process learns once which devices it may use: in
//! its environment, before it begins. It serves that lease alone, and ends with it. What it had taken stays
//! in use until its process is gone: its memory on the devices goes no sooner, and the next process there
//! would find no room. A lease of the same devices may get a worker that was started for another one that
//! ended before.
//!
//! Workers of actors share a process if the class of their constructor says so: each is a thread of it. A
//! shared process begins with its first worker and ends with its last one. Its number is all that the machine
//! knows of it: a worker that is started in a process that is gone meanwhile begins another one.

use super::gpus::{Part, numbers};
use super::{CutOff, Effect, Lease, LeaseKey, Leases, worker_mut};
use std::collections::{BTreeMap, BTreeSet};
use tharsis_types::{ClientId, JobId};

/// Workers of one shared process, at most: what is lost together if it crashes.
const WORKERS_PER_PROCESS_MAX: usize = 256;

/// A shared process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessNumber(pub u64);

/// A worker that is being started.
#[derive(Clone, Debug)]
pub(super) struct Start {
    pub(super) job: JobId,
    /// The process that it shares; none if it gets one of its own.
    pub(super) process: Option<ProcessNumber>,
    /// The GPUs that it is told of.
    pub(super) gpus: Vec<u32>,
}

impl Start {
    /// The worker for a placed lease, before its process is known.
    pub(super) fn for_lease(lease: &Lease) -> Self {
        Self { job: lease.class.job, process: None, gpus: numbers(&lease.gpus) }
    }

    /// Whether it is one that a lease needs.
    pub(super) fn suits(&self, lease: &Lease) -> bool {
        lease.class.shared_process == self.process.is_some() && self.suits_but_process(lease)
    }

    /// Whether it is of the job of a lease, and has its GPUs.
    pub(super) fn suits_but_process(&self, lease: &Lease) -> bool {
        lease.class.job == self.job && has_numbers(&lease.gpus, &self.gpus)
    }
}

fn has_numbers(parts: &[Part], gpus: &[u32]) -> bool {
    parts.iter().map(|(device, _)| device).eq(gpus)
}

/// Shared processes, and how many workers each has.
#[derive(Debug, Default)]
pub(super) struct Processes {
    next: u64,
    shared: BTreeMap<ProcessNumber, Members>,
    /// Those that have room for another worker.
    open: BTreeSet<(JobId, ProcessNumber)>,
}

#[derive(Debug)]
struct Members {
    job: JobId,
    /// Workers that are there or are being started.
    count: usize,
}

impl Processes {
    /// Finds room for a worker of a job: in the first of its processes that has some, else in a new one.
    pub(super) fn enter(&mut self, job: JobId) -> ProcessNumber {
        let of_job = (job, ProcessNumber(0))..=(job, ProcessNumber(u64::MAX));
        let number = match self.open.range(of_job).next() {
            Some((_, number)) => *number,
            None => {
                self.next += 1;
                self.open.insert((job, ProcessNumber(self.next)));
                ProcessNumber(self.next)
            }
        };
        let members = self.shared.entry(number).or_insert(Members { job, count: 0 });
        members.count += 1;
        if members.count == WORKERS_PER_PROCESS_MAX {
            self.open.remove(&(job, number));
        }
        number
    }

    /// A worker is gone, or did not start.
    pub(super) fn leave(&mut self, process: Option<ProcessNumber>) {
        let Some(number) = process else { return };
        let members = self.shared.get_mut(&number);
        assert!(members.is_some(), "{number:?} is left and has nobody");
        let Some(members) = members else { return };
        members.count -= 1;
        if members.count == 0 {
            self.open.remove(&(members.job, number));
            self.shared.remove(&number);
        } else {
            self.open.insert((members.job, number));
        }
    }
}

impl Leases {
    /// Whether a worker is one that a lease needs.
    pub(super) fn suits(&self, client: ClientId, lease: &Lease) -> bool {
        let worker = &self.workers[&client];
        worker.job == lease.class.job
            && worker.process.is_some() == lease.class.shared_process
            && has_numbers(&lease.gpus, &worker.gpus)
    }

    /// Whether a worker was started for a lease with GPUs.
    pub(super) fn has_gpus(&self, client: ClientId) -> bool {
        self.workers.get(&client).is_some_and(|worker| !worker.gpus.is_empty())
    }

    /// Stops a worker with GPUs whose lease has ended. What it took stays in use until
    /// [`Leases::worker_gone`].
    pub(super) fn stop_with_gpus(
        &mut self,
        client: ClientId,
        (key, lease): (LeaseKey, Lease),
        out: &mut Vec<Effect>,
    ) {
        let worker = worker_mut(&mut self.workers, client);
        assert!(worker.lease.is_some(), "{client:?} ends a lease that it does not have");
        let (job, lent) = (worker.job, worker.lent.take());
        let Lease { class, pool, gpus, .. } = lease;
        let taken = class.resources.clone();
        self.cut_off.insert(client, CutOff { job, pool, taken, gpus, lent });
        self.bundles.cut_off(pool, key);
        pool.into_iter().for_each(|(group, _)| self.waiting.group_changed(group));
        self.resuming.retain(|resuming| *resuming != client);
        self.host_gone(client, out);
        self.forget_worker(client);
        out.push(Effect::StopWorker(client));
    }

    /// A worker gets no more work and is about to end. What it took is free at once, unless it has GPUs: then
    /// [`Leases::worker_gone`] frees it.
    pub fn worker_ends(&mut self, client: ClientId, out: &mut Vec<Effect>) {
        if self.has_gpus(client) { self.worker_cut_off(client, out) } else { self.worker_gone(client, out) }
    }

    /// Number of workers that are being started of those that a lease needs.
    pub(super) fn coming(&self, lease: &Lease) -> usize {
        self.starts.values().filter(|start| start.suits(lease)).count()
    }

    /// Asserts that the workers of each shared process are counted.
    pub(super) fn check_processes(&self) {
        let mut counted = BTreeMap::<ProcessNumber, usize>::new();
        let of_starts = self.starts.values().filter_map(|start| start.process);
        for process in self.workers.values().filter_map(|worker| worker.process).chain(of_starts) {
            *counted.entry(process).or_default() += 1;
        }
        for (number, members) in &self.processes.shared {
            let is_open = self.processes.open.contains(&(members.job, *number));
            assert_eq!(is_open, members.count < WORKERS_PER_PROCESS_MAX, "room in {number:?}");
        }
        assert!(self.processes.open.iter().all(|(_, number)| self.processes.shared.contains_key(number)));
        let known = self.processes.shared.iter().map(|(number, members)| (*number, members.count));
        assert!(known.eq(counted), "workers of shared processes are miscounted");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_filled_before_the_next_one_begins() {
        let (mut processes, job) = (Processes::default(), JobId(1));
        for _ in 0..WORKERS_PER_PROCESS_MAX {
            assert_eq!(processes.enter(job), ProcessNumber(1));
        }
        assert_eq!(processes.enter(job), ProcessNumber(2));
        assert_eq!(processes.enter(JobId(2)), ProcessNumber(3), "jobs share no process");
        processes.leave(Some(ProcessNumber(1)));
        assert_eq!(processes.enter(job), ProcessNumber(1));
        processes.leave(Some(ProcessNumber(2)));
        processes.leave(None);
        for _ in 0..WORKERS_PER_PROCESS_MAX {
            processes.leave(Some(ProcessNumber(1)));
        }
        assert_eq!(processes.enter(job), ProcessNumber(4), "a process that has ended is not used again");
    }
}
