//! Runs: tasks that run here, for this node's ledger or another's, in line before their workers.
//!
//! A worker runs its tasks in the order in which they are sent, so the first sent run of its line is the one
//! that has started, as far as the node can know. Runs that are sent stand before those that wait for
//! arguments.
//!
//! | state | meaning | enters by | leaves by |
//! |---|---|---|---|
//! | staging | not all arguments are in the local arena, or it may not begin yet | `insert`, `unsent` | `sent`, `remove` |
//! | sent | with its worker, behind others | `sent` | `mark_first`, `unsent`, `remove` |
//! | sent and first | started, as far as the node can know | `mark_first` | `doom`, `doom_overdue`, `unsent`, `remove` |
//! | doomed | its worker is being killed because of it | `doom`, `doom_overdue` | `unsent`, `remove` |
//!
//! | file | concern |
//! |---|---|
//! | `mod.rs` | runs and the lines of their workers |
//! | `run.rs` | one run |

mod run;

pub use run::{ArgumentValue, RunView};
pub(super) use run::{Lent, Origin, Run, Told};

use crate::Now;
use crate::journal::{self, About, Fact, Journal};
use crate::lease::LeaseKey;
use crate::owner::{Object, Owner};
use crate::pull::Missing;
use crate::slab::{Slab, Slot};
use crate::store::Store;
use run::Stage;
use smallvec::SmallVec;
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, VecDeque};
use std::ops::Index;
use tharsis_types::hash::IdMap;
use tharsis_types::{ClientId, NodeId, ObjectId, TaskId};

/// The runs of a worker, in line.
pub(super) type Line = VecDeque<Slot<Run>>;

/// Runs by worker.
#[derive(Debug, Default)]
pub(super) struct Runs {
    runs: Slab<Run>,
    /// Runs of each worker: those that were sent, in that order (the first has started or is next), then the
    /// others.
    of_worker: IdMap<ClientId, Line>,
    /// Runs of each task: one, but where several owners have made the same task.
    of_task: IdMap<TaskId, SmallVec<[Slot<Run>; 1]>>,
    /// Tasks submitted by each task that runs here.
    children: IdMap<TaskId, Children>,
    /// Runs that have a timeout and have begun, or wait for an argument of which no holder was reached, by
    /// the end of it.
    timed: BTreeSet<(Now, Slot<Run>)>,
    /// Workers of actors that were asked for the calls that they have not begun, and have not answered that
    /// question: what they were sent now would overtake those.
    asked_back: IdMap<ClientId, u32>,
    /// Number of the last question.
    question: u32,
    journal: Journal,
}

/// Tasks that a run has submitted. Those that have ended are left out from time to time, as a run may go on
/// submitting for weeks.
#[derive(Debug, Default)]
struct Children {
    all: Vec<TaskId>,
    /// Number from which on those that have ended are left out.
    full: usize,
}

/// Children of which none is left out.
const CHILDREN_MIN: usize = 64;

impl Index<Slot<Run>> for Runs {
    type Output = Run;

    fn index(&self, slot: Slot<Run>) -> &Run {
        &self.runs[slot]
    }
}

/// Changing.
impl Runs {
    /// Sets the time at which the changes that follow happen.
    pub(super) fn tell_time(&mut self, now: Now) {
        self.journal.tell_time(now);
    }

    /// Adds a run at the end of its worker's line.
    pub(super) fn insert(&mut self, run: Run) -> Slot<Run> {
        assert!(run.is_staging(), "a run of {} is sent before it is known", run.task);
        let (client, task) = (run.client, run.task);
        let slot = self.runs.insert(run);
        self.of_task.entry(task).or_default().push(slot);
        let line = self.of_worker.entry(client).or_default();
        assert_ne!(line.back(), Some(&slot), "{slot:?} stands twice before its worker");
        line.push_back(slot);
        slot
    }

    /// Pins the arguments of a run that are here and returns those that are not.
    pub(super) fn pin_arguments(
        &mut self,
        slot: Slot<Run>,
        owner: &Owner,
        store: &mut Store,
    ) -> Vec<Missing> {
        let run = &mut self.runs[slot];
        let missing = run.pin_arguments(owner, store);
        if !missing.is_empty() {
            self.journal.note(About::Task(run.task), Fact::RunWaits(missing.len() as u32));
        }
        missing
    }

    /// Pins one argument of a run, unless it is pinned or not here.
    pub(super) fn pin_argument(&mut self, slot: Slot<Run>, object: ObjectId, store: &mut Store) {
        self.runs[slot].pin(object, store);
    }

    /// A run goes to its worker: it overtakes those of the line that still wait for arguments.
    pub(super) fn sent(&mut self, slot: Slot<Run>) {
        let run = &mut self.runs[slot];
        assert!(run.is_staging(), "a run of {} is sent twice", run.task);
        if let Some(due) = run.due() {
            self.timed.remove(&(due, slot));
        }
        run.stage = Stage::Sent { first_since: None };
        // For a task of this node without stored arguments, the ledger has already noted it.
        if run.is_lent() || run.has_pins() {
            self.journal.note(About::Task(run.task), Fact::RunSent(run.client));
        }
        // A worker that is just being removed has no line any more.
        let Some(line) = self.of_worker.get_mut(&run.client) else { return };
        let at = line.iter().rposition(|n| *n == slot);
        assert!(at.is_some(), "{slot:?} is not in its worker's line");
        let mut at = at.unwrap_or(0);
        while 0 < at && self.runs[line[at - 1]].is_staging() {
            line.swap(at - 1, at);
            at -= 1;
        }
    }

    /// No holder of an argument of a run is reached: its timeout counts from now on.
    pub(super) fn set_aside(&mut self, slot: Slot<Run>, now: Now) {
        let run = &mut self.runs[slot];
        if run.stage == (Stage::Staging { aside_since: None }) {
            run.stage = Stage::Staging { aside_since: Some(now) };
            self.timed.extend(run.due().map(|due| (due, slot)));
        }
    }

    /// Arguments of a run have come or are on their way: its timeout counts from a later time, or no more.
    pub(super) fn set_aside_later(&mut self, slot: Slot<Run>, aside_since: Option<Now>) {
        let run = &mut self.runs[slot];
        assert!(run.is_staging(), "a run of {} waits for arguments in its worker", run.task);
        if let Some(due) = run.due() {
            self.timed.remove(&(due, slot));
        }
        run.stage = Stage::Staging { aside_since };
        self.timed.extend(run.due().map(|due| (due, slot)));
    }

    /// Runs whose timeout is over since no holder of an argument was reached.
    pub(super) fn overdue_aside(&self, now: Now) -> Vec<Slot<Run>> {
        let due = self.timed.iter().take_while(|(due, _)| *due <= now).map(|(_, slot)| *slot);
        due.filter(|slot| self.runs[*slot].is_staging()).collect()
    }

    /// The worker of an actor is asked for the calls that it has not begun. Returns the number of the
    /// question; `None` if it was asked already.
    pub(super) fn ask_back(&mut self, client: ClientId) -> Option<u32> {
        let Entry::Vacant(asked) = self.asked_back.entry(client) else { return None };
        // Never 0, which is that of questions whose answers need none.
        self.question = self.question % u32::MAX + 1;
        Some(*asked.insert(self.question))
    }

    /// Whether any worker was asked, and has not answered.
    pub(super) fn has_asked_back(&self) -> bool {
        !self.asked_back.is_empty()
    }

    /// Whether a worker was asked, and has not answered.
    pub(super) fn is_asked_back(&self, client: ClientId) -> bool {
        self.asked_back.contains_key(&client)
    }

    /// A worker hands back runs that it has not begun and is to have again: they stand before those that wait
    /// for arguments, in their order. Returns them. The answer to an older question, which it was asked
    /// before it had an actor, is not that to the last one.
    pub(super) fn unsent(
        &mut self,
        client: ClientId,
        question: u32,
        returned: &BTreeSet<Slot<Run>>,
    ) -> Vec<Slot<Run>> {
        if self.asked_back.get(&client) == Some(&question) {
            self.asked_back.remove(&client);
        }
        let Some(line) = self.of_worker.get_mut(&client) else { return Vec::new() };
        let runs = &mut self.runs;
        let is_back = |slot: &Slot<Run>| returned.contains(slot) && !runs[*slot].is_staging();
        let back: Vec<_> = line.iter().copied().filter(is_back).collect();
        for slot in &back {
            let run = &mut runs[*slot];
            if let Some(due) = run.due() {
                self.timed.remove(&(due, *slot));
            }
            run.stage = Stage::Staging { aside_since: None };
        }
        line.make_contiguous().sort_by_key(|slot| runs[*slot].is_staging());
        back
    }

    /// A run reads an argument as its owner told it, not as its sender did.
    pub(super) fn forget_told(&mut self, slot: Slot<Run>, object: ObjectId) {
        if let Some(Run { origin: Origin::Lent(lent), .. }) = self.runs.get_mut(slot) {
            lent.told.remove(&object);
        }
    }

    /// The worker of a run is told to stop it. It may have handed the run back before it hears of that.
    pub(super) fn stops(&mut self, slot: Slot<Run>) {
        self.runs[slot].is_stopping = true;
    }

    /// Whether the worker of a run was told to stop it.
    pub(super) fn is_stopping(&self, slot: Slot<Run>) -> bool {
        self.runs.get(slot).is_some_and(|run| run.is_stopping)
    }

    /// Notes the time from which the first run of a worker may have started; returns the run if that is new.
    pub(super) fn mark_first(&mut self, now: Now, client: ClientId) -> Option<&Run> {
        let first = *self.of_worker.get(&client)?.front()?;
        let run = &mut self.runs[first];
        assert_eq!(run.client, client, "a run of {} stands before another worker", run.task);
        if run.stage != (Stage::Sent { first_since: None }) {
            return None;
        }
        run.stage = Stage::Sent { first_since: Some(now) };
        self.timed.extend(run.due().map(|due| (due, first)));
        Some(run)
    }

    /// The worker of a run is being killed because of it.
    pub(super) fn doom(&mut self, slot: Slot<Run>) {
        let run = &mut self.runs[slot];
        assert!(run.is_first(), "a worker is killed for a run of {} that it has not begun", run.task);
        if let Some(due) = run.due() {
            self.timed.remove(&(due, slot));
        }
        run.stage = Stage::Doomed { first_since: run.begun_since() };
        self.journal.note(About::Task(run.task), Fact::RunDoomed(run.client));
    }

    /// Dooms runs that ran longer than their timeout; returns their workers and the timeouts.
    pub(super) fn doom_overdue(&mut self, now: Now) -> Vec<(ClientId, u64)> {
        let mut overdue = Vec::new();
        while let Some((_, slot)) = self.timed.first().copied().filter(|(due, _)| *due <= now) {
            self.timed.pop_first();
            let run = &mut self.runs[slot];
            run.stage = Stage::Doomed { first_since: run.begun_since() };
            self.journal.note(About::Task(run.task), Fact::RunDoomed(run.client));
            overdue.push((run.client, run.timeout_ms));
        }
        overdue
    }

    /// Removes a run; `None` if an earlier effect of the same step has ended it.
    pub(super) fn remove(&mut self, slot: Slot<Run>) -> Option<Run> {
        let run = self.runs.remove(slot)?;
        if let Entry::Occupied(mut of_task) = self.of_task.entry(run.task) {
            of_task.get_mut().retain(|other| *other != slot);
            if of_task.get().is_empty() {
                of_task.remove();
            }
        }
        if !self.children.is_empty() {
            self.children.remove(&run.task);
        }
        if let Some(due) = run.due() {
            self.timed.remove(&(due, slot));
        }
        if run.is_lent() {
            self.journal.note(About::Task(run.task), Fact::RunEnded(run.client));
        }
        if let Some(line) = self.of_worker.get_mut(&run.client) {
            let before = line.len();
            match line.front() {
                Some(first) if *first == slot => drop(line.pop_front()),
                _ => line.retain(|n| *n != slot),
            }
            assert_eq!(line.len() + 1, before, "{slot:?} is not in its worker's line");
            if line.is_empty() {
                self.of_worker.remove(&run.client);
            }
        }
        Some(run)
    }

    /// Removes the line of a worker that is gone. The caller removes the runs, in the same step.
    pub(super) fn take_line(&mut self, client: ClientId) -> Line {
        self.asked_back.remove(&client);
        self.of_worker.remove(&client).unwrap_or_default()
    }

    /// Clears the pins of the runs of a worker, as [`Run::forget_pins`].
    pub(super) fn forget_pins(&mut self, client: ClientId) {
        for slot in self.of_worker.get(&client).into_iter().flatten() {
            self.runs[*slot].forget_pins();
        }
    }

    /// Notes that a run submits a task; returns that run. Of many children only those are kept that
    /// `may_go_on`.
    pub(super) fn note_child(
        &mut self,
        parent: Slot<Run>,
        child: TaskId,
        may_go_on: impl Fn(TaskId) -> bool,
    ) -> &Run {
        let parent = &self.runs[parent];
        let children = self.children.entry(parent.task).or_default();
        if children.full.max(CHILDREN_MIN) <= children.all.len() {
            children.all.retain(|child| may_go_on(*child));
            // So many more come before all are looked at again: a constant number of looks for each.
            children.full = 2 * children.all.len();
        }
        children.all.push(child);
        parent
    }
}

/// Reading.
impl Runs {
    /// The remembered history of the runs of a task.
    pub(super) fn past(&self, task: TaskId) -> impl Iterator<Item = journal::Entry> {
        self.journal.about(About::Task(task))
    }

    pub(super) fn len(&self) -> usize {
        self.runs.len()
    }

    /// A run by a number from outside, or one that an earlier effect of the same step may have ended.
    pub(super) fn get(&self, slot: Slot<Run>) -> Option<&Run> {
        self.runs.get(slot)
    }

    /// The first run of a worker's line.
    pub(super) fn first(&self, client: ClientId) -> Option<&Run> {
        Some(&self.runs[*self.of_worker.get(&client)?.front()?])
    }

    /// A run of a task, of any owner.
    pub(super) fn find(&self, task: TaskId) -> Option<(Slot<Run>, &Run)> {
        let slot = *self.of_task.get(&task)?.first()?;
        Some((slot, &self.runs[slot]))
    }

    /// The run of a task for one of the owners that have made it.
    pub(super) fn find_for(&self, task: TaskId, owner: NodeId) -> Option<Slot<Run>> {
        self.of_task.get(&task)?.iter().copied().find(|slot| self.runs[*slot].lease.0 == owner)
    }

    /// Tasks submitted by a task that runs here.
    pub(super) fn children(&self, task: TaskId) -> &[TaskId] {
        self.children.get(&task).map_or(&[], |children| &children.all)
    }

    /// The line of a worker as it is now.
    pub(super) fn line(&self, client: ClientId) -> Line {
        self.of_worker.get(&client).cloned().unwrap_or_default()
    }

    /// Whether a run waits for arguments before this one that came under the same lease.
    pub(super) fn waits_behind_another(&self, slot: Slot<Run>) -> bool {
        let run = &self.runs[slot];
        let Some(line) = self.of_worker.get(&run.client) else { return false };
        let before = line.iter().rev().skip_while(|known| **known != slot).skip(1);
        let mut staging = before.map(|known| &self.runs[*known]).take_while(|run| run.is_staging());
        staging.any(|before| before.lease == run.lease)
    }

    /// Runs of a worker that came under a lease and are not sent.
    pub(super) fn staging_under(&self, client: ClientId, lease: LeaseKey) -> Vec<Slot<Run>> {
        let line = self.of_worker.get(&client).into_iter().flatten().copied();
        line.filter(|slot| self.runs[*slot].is_staging() && self.runs[*slot].lease == lease).collect()
    }

    /// The first run of a worker that is not sent, is ready, and stands behind no other under the same lease.
    pub(super) fn first_staging(
        &self,
        client: ClientId,
        is_ready: impl Fn(Slot<Run>) -> bool,
    ) -> Option<Slot<Run>> {
        let line = self.of_worker.get(&client)?;
        let staging = line.iter().rev().take_while(|slot| self.runs[**slot].is_staging()).count();
        let mut waiting = line.iter().skip(line.len() - staging).copied();
        waiting.find(|slot| is_ready(*slot) && !self.waits_behind_another(*slot))
    }

    /// Whether anything is in line for a worker.
    pub(super) fn is_busy(&self, client: ClientId) -> bool {
        self.of_worker.contains_key(&client)
    }

    /// Whether a worker was sent a run.
    pub(super) fn has_sent(&self, client: ClientId) -> bool {
        self.first(client).is_some_and(|run| !run.is_staging())
    }

    /// The run at the front of a worker's line.
    pub(super) fn first_slot(&self, client: ClientId) -> Option<Slot<Run>> {
        self.of_worker.get(&client)?.front().copied()
    }

    /// Whether more than one run is in line for a worker.
    pub(super) fn has_behind(&self, client: ClientId) -> bool {
        self.of_worker.get(&client).is_some_and(|line| 1 < line.len())
    }

    /// All runs.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().map(|(_, run)| run)
    }

    /// References that runs of other nodes' tasks keep, by place in the ledger.
    pub(super) fn lent_slots(&self) -> impl Iterator<Item = Slot<Object>> {
        self.runs
            .iter()
            .flat_map(|(_, run)| match &run.origin {
                Origin::Own(_) => [].iter(),
                Origin::Lent(lent) => lent.references.iter(),
            })
            .copied()
    }

    /// When [`Runs::doom_overdue`] has something to do.
    pub(super) fn next_timeout(&self) -> Option<Now> {
        self.timed.first().map(|(due, _)| *due)
    }

    /// Asserts that every run stands in one line, in order, and that no attempt is started twice.
    pub(super) fn check(&self) {
        let listed: usize = self.of_worker.values().map(VecDeque::len).sum();
        assert_eq!(listed, self.runs.len(), "a run without a worker, or listed twice");
        let of_tasks: usize = self.of_task.values().map(SmallVec::len).sum();
        assert_eq!(of_tasks, self.runs.len(), "a run without a task, or listed twice");
        assert!(self.of_worker.values().all(|line| !line.is_empty()), "a worker has an empty line");
        for (slot, run) in self.runs.iter() {
            let line = &self.of_worker[&run.client];
            assert!(line.contains(&slot), "{slot:?} is not with its worker");
            let staging = |n: &Slot<Run>| self.runs[*n].is_staging();
            assert!(
                line.iter().is_sorted_by_key(staging),
                "a run that is not sent stands before one that is"
            );
            assert!(self.of_task[&run.task].contains(&slot), "{slot:?} is not with its task");
            let is_first = line.front() == Some(&slot);
            assert_eq!(is_first && !run.is_staging(), run.is_first(), "{slot:?} is not marked as first");
            let is_timed = |due| self.timed.contains(&(due, slot));
            assert!(run.due().is_none_or(is_timed), "the end of the time of {slot:?} is not seen");
            // A task of another owner with the same id is another task: its parent ran again elsewhere.
            let same = |r: &Run| r.task == run.task && r.attempt == run.attempt && r.lease.0 == run.lease.0;
            let started = self.runs.iter().filter(|(_, r)| same(r)).count();
            assert_eq!(started, 1, "an attempt of {} is started twice", run.task);
        }
        let timed = self.runs.iter().filter(|(_, run)| run.due().is_some()).count();
        assert_eq!(timed, self.timed.len(), "the time of a run that is gone");
        for parent in self.children.keys() {
            assert!(self.find(*parent).is_some(), "{parent} has submitted tasks and does not run here");
        }
    }

    /// Sizes of tables that must be empty when nothing is under way.
    pub(super) fn leftovers(&self) -> [(&'static str, usize); 5] {
        [
            ("tasks that run", self.of_task.len()),
            ("runs", self.runs.len()),
            ("workers with runs", self.of_worker.len()),
            ("tasks that submitted others", self.children.len()),
            ("workers that were asked for calls", self.asked_back.len()),
        ]
    }
}

#[cfg(test)]
mod tests;
