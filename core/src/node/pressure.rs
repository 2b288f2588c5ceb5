//! Memory pressure: the choice of the worker that is killed, and the outcome of its task.
//!
//! | condition | killed worker | its task |
//! |---|---|---|
//! | a task has more memory than its `memory` option allows | its worker | fails with `OutOfMemory`: it would again |
//! | a limit is reached, and one idle worker has the bytes above it | that worker | none |
//! | a limit is reached otherwise | of the job that uses most, the newest task with retries | runs again |
//! | the same, and no task has retries | of the job that uses most, the newest task | fails with `OutOfMemory` |
//!
//! One worker is killed at a time: the next one only when a reading shows that the one before is gone, or
//! after [`DEATH_WAIT`]. The oldest task stays longest, so something always finishes.
//!
//! Running again costs none of the retries that the user gave: those are for crashes of the task. There are
//! free ones instead: [`FREE_RUNS_MAX`] for a task that shared the memory with others,
//! [`FREE_RUNS_ALONE_MAX`] for a task that ran alone, because a task that does not fit alone never will.
//! After a kill, the node starts nothing new for a while, which doubles each time, so that the remaining
//! tasks can finish. The hold is never longer than [`HOLD_MAX`]: the remaining tasks may wait for the very
//! task that has to start.
//!
//! Above the soft limit nothing new is started while a task runs, whose end may free memory. That hold ends
//! after [`HOLD_MAX`] as well, for the same reason, and begins again with the next reading above the limit.
//!
//! A worker is measured with all processes that it started, and they are killed with it.
//!
//! Workers that are threads of the program cannot be killed, so the memory of an embedded node is not read.

use super::Node;
use crate::event::{Action, Operation};
use crate::memory::{MemoryGauge, MemoryReading, WorkerMemory, time_to_fill_ms};
use crate::{MS, Now};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::sync::Arc;
use tharsis_types::hash::IdMap;
use tharsis_types::{Attempt, ClientId, Failure, FailureKind, JobId, TaskId};

/// A worker with less memory is not worth killing: its work would be lost, and little memory gained.
const WORTH_BYTES: u64 = 16 << 20;
/// Number of times a task that was killed beside others runs again.
const FREE_RUNS_MAX: u32 = 10;
/// Number of times a task that was killed while it ran alone runs again: its worker may still have had memory
/// of earlier tasks.
const FREE_RUNS_ALONE_MAX: u32 = 1;
/// After a kill nothing new is started for this long, and twice as long after the next.
const HOLD_MIN: Now = 100 * MS;
/// Nothing is held back for longer than this.
const HOLD_MAX: Now = 5_000 * MS;
/// Kills that are further apart than this are unrelated: the next hold is short again.
const CALM_AFTER: Now = 30_000 * MS;
/// A worker that was killed and is still there after this long is not waited for.
const DEATH_WAIT: Now = 5_000 * MS;
/// Maximum number of tasks whose kills are remembered.
const REMEMBERED_MAX: usize = 1024;
/// Maximum number of processes in a report.
const REPORTED_MAX: usize = 5;

/// Memory of the workers of a node, and the kills it caused.
#[derive(Debug, Default)]
pub(super) struct Pressure {
    watched: IdMap<ClientId, Watched>,
    /// Workers that were killed and are not gone yet; true if their task runs again.
    doomed: IdMap<ClientId, bool>,
    /// The last worker that was killed to make room, and the time until which its end is awaited.
    dying: Option<(ClientId, Now)>,
    /// Kills that made room, per task, oldest first.
    kills: VecDeque<(TaskId, u32)>,
    /// Number of kills without a calm time between them.
    streak: u32,
    killed_at: Now,
    hold_until: Option<Now>,
    /// End of the hold that the soft limit asks for.
    soft_hold_until: Option<Now>,
    /// Time until the next reading, in milliseconds.
    look_within_ms: Option<u64>,
}

/// The memory of a worker since its task began.
#[derive(Clone, Copy, Debug)]
struct Watched {
    /// The task; none while it is idle.
    run: Option<(TaskId, Attempt)>,
    /// Its memory at the first reading, in bytes.
    first_bytes: u64,
    /// Its highest memory of all readings, in bytes.
    peak_bytes: u64,
}

/// A task that runs in a worker, as far as the node can know.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) task: TaskId,
    pub(super) attempt: Attempt,
    pub(super) name: String,
    /// The time since when it runs.
    pub(super) since: Now,
    /// Its `memory` option, in bytes; 0 if it has none.
    pub(super) memory_bytes: u64,
    pub(super) has_retries: bool,
}

impl Pressure {
    /// Asks for a reading of the memory at once: a task with a limit begins.
    pub(super) fn look_now(&mut self) {
        self.look_within_ms = Some(0);
    }

    /// The reading of the memory that the caller should ask for.
    pub(super) fn take_request(&mut self) -> Option<Action> {
        self.look_within_ms.take().map(|within_ms| Action::Do(Operation::ReadMemory { within_ms }))
    }

    /// When new work may start again.
    pub(super) fn next_timeout(&self) -> Option<Now> {
        self.hold_until.into_iter().chain(self.soft_hold_until).min()
    }

    /// Whether a worker is being killed for its memory.
    pub(super) fn is_doomed(&self, client: ClientId) -> bool {
        self.doomed.contains_key(&client)
    }

    /// A worker is gone; whether its task runs again, if it was killed for its memory.
    pub(super) fn gone(&mut self, client: ClientId) -> bool {
        self.watched.remove(&client);
        self.doomed.remove(&client).unwrap_or(false)
    }

    /// Asserts that the remembered kills and the hold stay within their bounds.
    pub(super) fn check(&self) {
        assert!(self.kills.len() <= REMEMBERED_MAX, "more kills are remembered than may be");
        let hold_max = self.killed_at + HOLD_MAX;
        assert!(self.hold_until.is_none_or(|until| until <= hold_max), "new work is held back for too long");
    }

    /// Notes the memory of a worker during its present task.
    fn watch(&mut self, worker: &WorkerMemory, run: Option<(TaskId, Attempt)>) -> Watched {
        let (first_bytes, peak_bytes) = (worker.bytes, worker.bytes);
        let watched = self.watched.entry(worker.client).or_insert(Watched { run, first_bytes, peak_bytes });
        if watched.run != run {
            *watched = Watched { run, first_bytes, peak_bytes };
        }
        watched.peak_bytes = watched.peak_bytes.max(worker.bytes);
        assert!(watched.first_bytes <= watched.peak_bytes, "a worker had more than its most");
        *watched
    }

    /// Counts a kill of a task; false if it has had all its free runs.
    fn take_free_run(&mut self, task: TaskId, max: u32) -> bool {
        let known = self.kills.iter().position(|(killed, _)| *killed == task);
        let count = known.and_then(|at| self.kills.remove(at)).map_or(1, |(_, count)| count + 1);
        if REMEMBERED_MAX <= self.kills.len() {
            self.kills.pop_front();
        }
        if count <= max {
            self.kills.push_back((task, count));
        }
        assert!(self.kills.len() <= REMEMBERED_MAX, "more kills are remembered than may be");
        count <= max
    }

    /// The time for which nothing new starts after a kill.
    fn next_hold(&mut self, now: Now) -> Now {
        if self.killed_at + CALM_AFTER < now {
            self.streak = 0;
        }
        let hold = HOLD_MIN << self.streak.min(16);
        self.streak += 1;
        assert!(self.killed_at <= now, "a worker was killed in the future");
        self.killed_at = now;
        hold.min(HOLD_MAX)
    }
}

/// A worker that may be killed, with its task.
struct Candidate {
    worker: WorkerMemory,
    /// The job of the worker: its actor may run a call of another one.
    job: JobId,
    running: Running,
}

impl Node {
    /// Acts on a reading of the memory.
    pub(super) fn memory_read(&mut self, reading: &MemoryReading, out: &mut Vec<Action>) {
        let listed = |client: &ClientId| reading.workers.iter().any(|w| w.client == *client);
        self.pressure.watched.retain(|client, _| listed(client));
        let mut headroom = None;
        for worker in &reading.workers {
            let running = self.running(worker.client);
            let watched = self.pressure.watch(worker, running.as_ref().map(|run| (run.task, run.attempt)));
            let Some(run) = running.filter(|run| 0 < run.memory_bytes) else { continue };
            let grown = worker.bytes.saturating_sub(watched.first_bytes);
            if run.memory_bytes < grown {
                self.kill_greedy(worker, &run, watched, out);
            } else {
                headroom = headroom.into_iter().chain([run.memory_bytes - grown]).min();
            }
        }
        self.pressure.look_within_ms = headroom.map(time_to_fill_ms);
        self.follow_soft_limit(reading, out);
        if self.pressure.dying.is_some_and(|(client, until)| listed(&client) && self.now < until) {
            return;
        }
        self.pressure.dying = None;
        if let Some((gauge, whose)) = reading.reached() {
            self.relieve(gauge, whose, reading, out);
        }
    }

    /// Lets new work start again when the hold is over.
    pub(super) fn end_hold(&mut self, now: Now, out: &mut Vec<Action>) {
        let ended = self.pressure.hold_until.take_if(|until| *until <= now);
        let soft_ended = self.pressure.soft_hold_until.take_if(|until| *until <= now);
        if ended.or(soft_ended).is_some() {
            self.resume_unless_held(out);
        }
    }

    /// Holds new work back above the soft limit, while a task runs whose end may free memory.
    fn follow_soft_limit(&mut self, reading: &MemoryReading, out: &mut Vec<Action>) {
        let any_runs = || reading.workers.iter().any(|w| self.running(w.client).is_some());
        if reading.is_over_soft_limit() && any_runs() {
            self.pressure.soft_hold_until.get_or_insert(self.now + HOLD_MAX);
            self.leases.hold_placing();
        } else if self.pressure.soft_hold_until.take().is_some() {
            self.resume_unless_held(out);
        }
    }

    fn resume_unless_held(&mut self, out: &mut Vec<Action>) {
        if self.pressure.next_timeout().is_none() {
            self.lease_change(out, |leases, effects| leases.resume_placing(effects));
        }
    }

    /// Kills a worker whose task takes more memory than its option allows.
    fn kill_greedy(&mut self, worker: &WorkerMemory, run: &Running, watched: Watched, out: &mut Vec<Action>) {
        if self.pressure.is_doomed(worker.client) {
            return;
        }
        assert!(watched.first_bytes < worker.bytes, "a worker is killed for memory that it has not taken");
        self.pressure.doomed.insert(worker.client, false);
        let text = format!(
            "{} took {} on top of the {} that its worker had, its memory option allows {}; peak of process {}: {}",
            run.name,
            mib(worker.bytes - watched.first_bytes),
            mib(watched.first_bytes),
            mib(run.memory_bytes),
            worker.pid,
            mib(watched.peak_bytes),
        );
        let reason = Arc::new(Failure::new(FailureKind::OutOfMemory, text));
        out.push(Action::Do(Operation::KillWorker { client: worker.client, reason }));
    }

    /// Kills the worker that can be spared best.
    fn relieve(&mut self, gauge: MemoryGauge, whose: &str, reading: &MemoryReading, out: &mut Vec<Action>) {
        let worth = |w: &&WorkerMemory| WORTH_BYTES <= w.bytes && !self.pressure.is_doomed(w.client);
        let (mut busy, mut idle, mut actors) = (Vec::new(), Vec::new(), Vec::new());
        for worker in reading.workers.iter().filter(worth).copied() {
            match self.running(worker.client) {
                Some(running) => {
                    let job = self.leases.job_of_worker(worker.client).unwrap_or(running.task.job());
                    busy.push(Candidate { worker, job, running });
                }
                None if self.leases.is_host(worker.client) => actors.push(worker),
                None => idle.push(worker),
            }
        }
        let surplus = gauge.used_bytes - gauge.threshold_bytes().min(gauge.used_bytes);
        let spare = idle.into_iter().filter(|w| surplus <= w.bytes).max_by_key(|w| w.bytes);
        let (worker, runs_again) = match (spare, newest_of_largest_job(&busy)) {
            (Some(worker), _) => {
                self.dismiss_idle(worker.client, out);
                (worker, true)
            }
            (None, Some(victim)) => {
                let max = if busy.len() == 1 { FREE_RUNS_ALONE_MAX } else { FREE_RUNS_MAX };
                let again =
                    victim.running.has_retries && self.pressure.take_free_run(victim.running.task, max);
                (victim.worker, again)
            }
            // An actor that does nothing has a state to lose.
            (None, None) => match actors.into_iter().max_by_key(|w| w.bytes) {
                Some(worker) => (worker, false),
                None => return,
            },
        };
        let text = format!(
            "worker process {} was killed to keep {whose}: {} of {} used; {}; peak of process {}: {}",
            worker.pid,
            mib(gauge.used_bytes),
            mib(gauge.limit_bytes),
            self.largest_processes(reading),
            worker.pid,
            mib(self.pressure.watched.get(&worker.client).map_or(worker.bytes, |w| w.peak_bytes)),
        );
        self.pressure.doomed.insert(worker.client, runs_again);
        self.pressure.dying = Some((worker.client, self.now + DEATH_WAIT));
        self.pressure.hold_until = Some(self.now + self.pressure.next_hold(self.now));
        self.leases.hold_placing();
        let reason = Arc::new(Failure::new(FailureKind::OutOfMemory, text));
        out.push(Action::Do(Operation::KillWorker { client: worker.client, reason }));
    }

    /// Sends no more work to an idle worker that is being killed: nobody could know whether it still started
    /// a run.
    pub(super) fn dismiss_idle(&mut self, client: ClientId, out: &mut Vec<Action>) {
        self.staging_given_back(client, out);
        self.lease_change(out, |leases, effects| leases.worker_ends(client, effects));
    }

    /// Workers by their memory, largest first.
    fn largest_processes(&self, reading: &MemoryReading) -> String {
        let mut all = vec![(reading.store_bytes, "store".to_owned())];
        all.push((reading.process_bytes, "node".to_owned()));
        all.extend(reading.workers.iter().map(|w| {
            let task = self.running(w.client).map_or_else(|| "no task".to_owned(), |run| run.name);
            (w.bytes, format!("process {} ({task})", w.pid))
        }));
        all.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
        let mut text = String::new();
        for (bytes, name) in all.iter().take(REPORTED_MAX) {
            let comma = if text.is_empty() { "" } else { ", " };
            // Writing to a string does not fail.
            let _written = write!(text, "{comma}{name} {}", mib(*bytes));
        }
        text
    }
}

/// Tasks that can run again go first; of these, those of the job that uses most; of these, the newest.
fn newest_of_largest_job(busy: &[Candidate]) -> Option<&Candidate> {
    let any_again = busy.iter().any(|c| c.running.has_retries);
    let candidates = || busy.iter().filter(|c| c.running.has_retries == any_again);
    let mut used = BTreeMap::new();
    for candidate in candidates() {
        *used.entry(candidate.job).or_insert(0) += candidate.worker.bytes;
    }
    let (job, _) = used.into_iter().max_by_key(|(_, bytes)| *bytes)?;
    let of_job = candidates().filter(|c| c.job == job);
    of_job.max_by_key(|c| (c.running.since, c.worker.client))
}

/// Bytes as MiB for people; rounded down.
fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(job: u32, since: Now, mib: u64, has_retries: bool) -> Candidate {
        let worker = WorkerMemory { client: ClientId(since as u32), pid: 0, bytes: mib << 20 };
        let task = TaskId::root(JobId(job)).child(since);
        let (name, memory_bytes, attempt) = (String::new(), 0, 0);
        let running = Running { task, attempt, name, since, memory_bytes, has_retries };
        Candidate { worker, job: JobId(job), running }
    }

    fn chosen(busy: &[Candidate]) -> Option<Now> {
        newest_of_largest_job(busy).map(|c| c.running.since)
    }

    #[test]
    fn the_newest_that_can_run_again_goes() {
        let busy = [candidate(1, 3, 20, true), candidate(1, 5, 20, true), candidate(1, 9, 900, false)];
        assert_eq!(chosen(&busy), Some(5));
        assert_eq!(chosen(&busy[2..]), Some(9));
        assert_eq!(chosen(&[]), None);
    }

    #[test]
    fn a_small_job_does_not_pay_for_a_large_one() {
        let busy = [candidate(1, 1, 500, true), candidate(1, 2, 100, true), candidate(2, 9, 400, true)];
        assert_eq!(chosen(&busy), Some(2));
    }

    #[test]
    fn the_memory_of_an_actor_is_that_of_its_job_whoever_calls_it() {
        let actor = Candidate { job: JobId(1), ..candidate(2, 1, 900, true) };
        let busy = [actor, candidate(1, 3, 10, true), candidate(2, 9, 100, true)];
        assert_eq!(chosen(&busy), Some(3));
    }

    #[test]
    fn free_runs_end_and_only_so_many_tasks_are_remembered() {
        let mut pressure = Pressure::default();
        let task = |n| TaskId::root(JobId(1)).child(n);
        let runs = (0..20).take_while(|_| pressure.take_free_run(task(0), FREE_RUNS_MAX)).count();
        assert_eq!(runs, FREE_RUNS_MAX as usize);
        for n in 0..2 * REMEMBERED_MAX as u64 {
            assert!(pressure.take_free_run(task(n), 1));
        }
        assert_eq!(pressure.kills.len(), REMEMBERED_MAX);
    }

    #[test]
    fn holds_grow_to_a_bound_and_calm_ends_them() {
        let mut pressure = Pressure::default();
        let holds: Vec<_> = (1..10).map(|n| pressure.next_hold(n * MS) / MS).collect();
        assert_eq!(holds, [100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000]);
        assert_eq!(pressure.next_hold(9 * MS + CALM_AFTER + 1), HOLD_MIN);
    }
}
