//! Lineage: the tasks that made stored objects, kept for as long as the objects may have to be computed
//! again.
//!
//! The task of a stored output is *kept* when it has ended. Its arguments stay in the ledger for it, though
//! not always in memory: an argument that only lineage needs loses its bytes if it can be computed again
//! itself; one that was put keeps them. An object whose bytes are gone is computed again when it is wanted,
//! once for all who want it. Arguments whose bytes are gone too are computed before it.
//!
//! A value that was *dropped* to make room costs no retry: this node chose it because it was cheap to make. A
//! value that was *lost* costs one. Kept tasks take memory: above the limit the oldest are forgotten, and
//! values that only they could make are then lost for good if they are lost.
//!
//! A value that was put and is lost cannot be computed, but stored values around it can: they lose their
//! copies too. Their next reader has them computed, and the values inside put anew.
//!
//! [`super::tasks`] owns the kept tasks, [`super::references`] the lineage data of each object.

use super::references::{Origin, Unkept};
use super::tasks::OutputSlots;
use super::{Effect, LineageUsage, Object, Owner, Task, because};
use crate::event::Value;
use crate::slab::Slot;
use std::sync::Arc;
use tharsis_types::{Failure, FailureKind, ObjectId, failure};

/// Tasks that are kept, and forgotten.
impl Owner {
    /// Use of memory by kept tasks.
    #[must_use]
    pub fn lineage_usage(&self) -> LineageUsage {
        self.tasks.lineage_usage()
    }

    /// Time it took to make an object of this node's ledger. `None` unless its function is declared pure, all
    /// its arguments are there, and it was never dropped before.
    #[must_use]
    pub fn recompute_ns(&self, object: ObjectId) -> Option<u64> {
        let entry = self.references.by_id(&object).filter(|o| !o.origin().was_dropped())?;
        let slot = entry.origin().lineage_task()?;
        let task = &self.tasks[slot];
        let may = task.is_kept() && self.class_of(slot).pure;
        (may && task.input_slots().all(|input| self.references[input].is_there())).then_some(task.run_ns())
    }

    /// Whether a task is worth keeping to compute its outputs again.
    pub(super) fn is_worth_keeping(&self, slot: Slot<Task>) -> bool {
        let task = &self.tasks[slot];
        self.class_of(slot).max_retries != 0 && !task.is_cancelled() && !self.jobs.contains(task.id().job())
    }

    /// Keeps a task that has ended, and its arguments with it.
    pub(super) fn keep(&mut self, slot: Slot<Task>, out: &mut Vec<Effect>) -> OutputSlots {
        self.tasks.sent_to_kept(slot);
        let outputs: OutputSlots = self.tasks[slot].output_slots().flatten().collect();
        self.tasks[slot].input_slots().for_each(|input| self.references.add_need(input));
        for output in &outputs {
            // The task was submitted again while the ledger still kept its earlier run.
            if let Some(old) = self.references.set_lineage_task(*output, slot) {
                for input in self.output_gone(*output, old) {
                    self.free_if_unused(input, out);
                }
            }
        }
        outputs
    }

    /// Forgets the oldest kept tasks until the others are within the limit.
    pub(super) fn bound_lineage(&mut self, out: &mut Vec<Effect>) {
        while let Some(slot) = self.tasks.next_to_forget() {
            self.forget_task(slot, Unkept::Forgotten, out);
        }
    }

    /// Cancels a task that has ended: its outputs stay, but are not computed again if they are lost. An
    /// output that was dropped to make room is not lost and must still be computed again, so its task stays
    /// kept.
    pub(super) fn cancel_kept(&mut self, slot: Slot<Task>, out: &mut Vec<Effect>) {
        let is_there = |output: Slot<Object>| self.references[output].is_there();
        if self.tasks[slot].output_slots().flatten().all(is_there) {
            self.forget_task(slot, Unkept::Cancelled, out);
        }
    }

    /// Forgets a kept task: its outputs cannot be computed again.
    pub(super) fn forget_task(&mut self, slot: Slot<Task>, why: Unkept, out: &mut Vec<Effect>) {
        for output in self.tasks[slot].output_slots().flatten() {
            self.references.forget_lineage_task(output, slot, Some(why));
        }
        for input in self.drop_kept(slot) {
            self.free_if_unused(input, out);
        }
    }

    /// A task that ran again ends without values: it is not kept.
    pub(super) fn forget_lineage_of(&mut self, slot: Slot<Task>, outputs: &[Slot<Object>]) {
        if self.tasks.has_kept_any() {
            for output in outputs {
                self.references.forget_lineage_task(*output, slot, None);
            }
        }
    }

    /// The entry of an output is gone. With the last of its outputs, the kept task goes too. Returns its
    /// arguments, which may be unused now.
    pub(super) fn output_gone(&mut self, output: Slot<Object>, kept: Slot<Task>) -> Vec<Slot<Object>> {
        if self.tasks.output_gone(kept, output) { self.drop_kept(kept) } else { Vec::new() }
    }

    /// Removes a kept task from the ledger; returns its arguments, which it does not need any more.
    fn drop_kept(&mut self, slot: Slot<Task>) -> Vec<Slot<Object>> {
        let inputs = self.tasks.kept_to_gone(slot);
        let inputs: Vec<_> = inputs.iter().flat_map(|inputs| inputs.slots()).collect();
        inputs.iter().for_each(|input| self.references.drop_need(*input));
        inputs
    }
}

/// Objects that are computed again.
impl Owner {
    /// Computes an object whose bytes are gone again, and before it the arguments that are gone too. An
    /// object that cannot be computed fails, with the cause for which it was lost. An argument that another
    /// node owns is asked for there: its owner may know of other copies, or has it computed.
    pub(super) fn recompute(&mut self, slot: Slot<Object>, cause: Option<&str>, out: &mut Vec<Effect>) {
        let mut wanted = vec![slot];
        while let Some(object) = wanted.pop() {
            // The failure of another object may have freed it together with the tasks that failed.
            let Some(entry) = self.references.get(object).filter(|o| o.producer().is_none()) else {
                continue;
            };
            if entry.owner().is_some() {
                let id = entry.id();
                self.ask_if_awaited(id, out);
                continue;
            }
            match self.lineage_task_for(object) {
                Ok(task) => self.run_again(task, &mut wanted, out),
                Err(mut failure) => {
                    failure.message = because(failure.message, cause.filter(|_| object == slot));
                    self.lose(object, failure, out);
                }
            }
        }
    }

    /// The task that computes an object again. Takes one of its retries, unless the object was dropped.
    fn lineage_task_for(&mut self, slot: Slot<Object>) -> Result<Slot<Task>, Failure> {
        let object = &self.references[slot];
        let (id, origin) = (object.id(), object.origin());
        let Some(kept) = origin.lineage_task() else { return Err(self.no_lineage(id, origin)) };
        if self.jobs.contains(id.task.job()) {
            return Err(Failure::new(FailureKind::Shutdown, "the driver of the job is gone"));
        }
        if self.is_output_taken(kept) {
            let text = format!("object {id} was lost, and another call has the id of its task");
            return Err(Failure::new(FailureKind::ObjectLost, text));
        }
        if origin.is_dropped() {
            self.tasks.next_attempt(kept);
        } else if !self.tasks.take_retry(kept) {
            let text = format!("object {id} was lost, and its task has no retries left");
            let failure = Failure::new(FailureKind::RetriesExhausted, text);
            return Err(self.located_failure(kept, &failure, self.me).as_ref().clone());
        }
        Ok(kept)
    }

    /// Whether another task is making an output of a kept task whose entry is gone: a client has given the
    /// same id to two calls with different numbers of results.
    fn is_output_taken(&self, kept: Slot<Task>) -> bool {
        let task = &self.tasks[kept];
        let outputs = task.output_slots().enumerate().filter(|(_, output)| output.is_none());
        let find = |(index, _)| self.references.by_id(&ObjectId::output(task.id(), index as u32));
        outputs.filter_map(find).any(|output| output.producer().is_some())
    }

    fn no_lineage(&self, id: ObjectId, origin: Origin) -> Failure {
        match origin.unkept() {
            Some(Unkept::Cancelled) => {
                let text = format!("object {id} was lost, and its task was cancelled: it does not run again");
                let task = failure::Origin { task: Some(id.task), ..failure::Origin::default() };
                return Failure::new(FailureKind::Cancelled, text).at(task);
            }
            Some(Unkept::Forgotten) => {
                let limit = match self.tasks.lineage_bytes_max() {
                    0 => "lineage is off".to_owned(),
                    bytes => format!("lineage is limited to {bytes} bytes"),
                };
                let text = format!("object {id} was lost, and how to make it was forgotten: {limit}");
                return Failure::new(FailureKind::LineageEvicted, text);
            }
            None => {}
        }
        let how = if id.is_put() { ", and it was put, not computed" } else { "" };
        Failure::new(FailureKind::ObjectLost, format!("no copy of object {id} is left{how}"))
    }

    /// Runs a kept task again; arguments whose bytes are gone are appended to `wanted`.
    fn run_again(&mut self, slot: Slot<Task>, wanted: &mut Vec<Slot<Object>>, out: &mut Vec<Effect>) {
        let outputs = self.expect_outputs(slot);
        let task = &self.tasks[slot];
        for input in task.input_slots() {
            self.references.drop_need(input);
            self.references.add_use(input);
        }
        let mut missing = 0;
        // The task itself asks for references inside its arguments, if it needs them.
        for (_, input) in task.dependencies() {
            self.references.clear_gone(*input);
            if self.references[*input].value().is_none() {
                missing += 1;
                self.references.add_dependent(*input, slot);
                wanted.push(*input);
            }
        }
        self.tasks.kept_to_waiting(slot, &outputs, missing);
        match self.failed_input(slot) {
            Some(cause) => self.fail_dependent(slot, 0, &cause, out),
            None if missing == 0 => self.enqueue_first(slot),
            None => {}
        }
    }

    fn failed_input(&self, slot: Slot<Task>) -> Option<Arc<Failure>> {
        let inputs = self.tasks[slot].dependencies().iter();
        inputs.map(|(_, input)| &self.references[*input]).find_map(|object| match object.value() {
            Some(Value::Failed(failure)) => Some(failure.clone()),
            _ => None,
        })
    }

    /// Makes a task that runs again the producer of its outputs. Outputs that were freed get an entry that
    /// goes when the task ends.
    fn expect_outputs(&mut self, slot: Slot<Task>) -> OutputSlots {
        let task = &self.tasks[slot];
        let id = task.id();
        let expect = |(index, known): (usize, Option<Slot<Object>>)| {
            let output = ObjectId::output(id, index as u32);
            let known = known.or_else(|| self.references.find(&output));
            let entry = known.unwrap_or_else(|| self.references.insert_output(output));
            self.references.set_producer(entry, slot);
            self.references.clear_gone(entry);
            entry
        };
        task.output_slots().enumerate().map(expect).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Member;
    use crate::owner::{Ended, Submission};
    use crate::place::View;
    use crate::testing::class;
    use tharsis_types::peer::{DoneOutcome, DoneValue, Message, RemoteState};
    use tharsis_types::task::Output;
    use tharsis_types::{
        Attempt, ClientId, Dependency, JobId, LeaseId, NodeId, RefId, Resources, TaskArgs, TaskClass, TaskId,
    };

    const ME: NodeId = NodeId(1);
    const OWNER: NodeId = NodeId(2);
    const HOLDER: NodeId = NodeId(3);

    fn argument() -> ObjectId {
        ObjectId::put(TaskId::root(JobId(1)), 0)
    }

    fn task() -> TaskId {
        TaskId::root(JobId(1)).child(0)
    }

    fn output() -> ObjectId {
        ObjectId::output(task(), 0)
    }

    /// A ledger with a task that takes an object of `OWNER`, of which `HOLDER` has a copy.
    struct Ledger {
        owner: Owner,
        view: View,
        out: Vec<Effect>,
    }

    impl Ledger {
        fn new() -> Self {
            let member = Member { node: ME, resources: Resources::default(), labels: Vec::new() };
            let (owner, view) = (Owner::new(ME, 1 << 20), View::new(member, usize::MAX));
            let mut ledger = Self { owner, view, out: Vec::new() };
            let client = ClientId(1);
            let definition = TaskClass { max_retries: 3, ..TaskClass::clone(&class(1)) };
            ledger.owner.define_class(client, 0, &Arc::new(definition));
            let reference = RefId { object: argument(), owner: OWNER };
            let dependencies = [Dependency { reference, parameter: 0 }].into_iter().collect();
            let args = TaskArgs { payload: [1].into(), dependencies, ..TaskArgs::default() };
            let (tokens, task) = ([0].into_iter().collect(), task());
            let submission =
                Submission { client, parent: None, depth: 0, deadline: None, class: 0, task, tokens, args };
            ledger.owner.submit(submission, &mut ledger.out);
            ledger.told(OWNER);
            ledger
        }

        /// The task has run, and may run again.
        fn kept() -> Self {
            let mut ledger = Self::new();
            ledger.runs(0);
            ledger.out.clear();
            ledger
        }

        /// The owner of the argument tells where it is.
        fn told(&mut self, owner: NodeId) {
            let state = RemoteState::Stored { len: 8, holders: vec![HOLDER] };
            self.owner.owner_told(owner, argument(), state, &[], &mut self.out);
        }

        /// The task is started as this attempt.
        fn starts(&mut self, attempt: Attempt) -> LeaseId {
            self.out.clear();
            self.owner.schedule(1, &mut self.view, &mut self.out);
            if let [Effect::RequestLease { lease, .. }] = self.out[..] {
                self.owner.lease_granted(1, lease, ME, &mut Vec::new());
                self.out.clear();
                self.owner.schedule(1, &mut self.view, &mut self.out);
            }
            let [Effect::Start { lease, task: slot, .. }] = self.out[..] else { panic!("{:?}", self.out) };
            assert!(self.owner.view_of_attempt(slot, task(), attempt, lease).is_some());
            lease
        }

        fn runs(&mut self, attempt: Attempt) {
            let lease = self.starts(attempt);
            let value = Output { value: DoneValue::Stored { len: 8 }, nested: Vec::new() };
            let outcome = DoneOutcome::Returned([value].into_iter().collect());
            let ended = Ended { lease, task: task(), attempt, run_ns: 1, node: ME };
            assert!(self.owner.ended(1, &ended, outcome, &mut self.out));
            self.owner.check(std::iter::empty());
        }

        /// Questions for the argument that a node was asked.
        fn asked(&self, node: NodeId) -> usize {
            let question = Message::ObjectLocate { object: argument() };
            let question = Effect::Send { to: node, message: question };
            self.out.iter().filter(|effect| **effect == question).count()
        }
    }

    #[test]
    fn the_owner_of_an_argument_is_asked_for_it_when_a_task_runs_again() {
        // The copy of the argument that is known here is gone, or could not be read.
        for is_gone in [true, false] {
            let mut ledger = Ledger::kept();
            if is_gone {
                ledger.owner.copy_changed(HOLDER, argument(), false, &mut ledger.out);
            } else {
                ledger.owner.lost(argument(), None, &mut ledger.out);
            }
            ledger.owner.lost(output(), None, &mut ledger.out);
            assert_eq!(ledger.asked(OWNER), 1, "once");
            assert_eq!(ledger.owner.value_ref(output()), None, "its task waits for the argument");
            ledger.owner.check(std::iter::empty());
            ledger.told(OWNER);
            ledger.runs(1);
            assert_eq!(ledger.owner.value_ref(output()), Some(&Value::Stored { len: 8 }));
        }
    }

    #[test]
    fn an_argument_whose_owner_is_gone_is_lost_with_what_is_made_of_it() {
        let mut ledger = Ledger::kept();
        ledger.owner.node_gone(1, OWNER, &mut ledger.out);
        ledger.owner.copy_changed(HOLDER, argument(), false, &mut ledger.out);
        ledger.owner.lost(output(), None, &mut ledger.out);
        let Some(Value::Failed(failure)) = ledger.owner.value_ref(output()) else { panic!("it has a value") };
        assert_eq!(failure.root().kind, FailureKind::ObjectLost);
        ledger.owner.check(std::iter::empty());
    }

    #[test]
    fn an_argument_that_has_another_owner_is_asked_for_there_when_its_task_comes_back() {
        let mut ledger = Ledger::new();
        let lease = ledger.starts(0);
        ledger.owner.node_gone(1, OWNER, &mut ledger.out);
        ledger.owner.lost(argument(), None, &mut ledger.out);
        // It was made again on another node, which lends it to this one.
        let reference = RefId { object: argument(), owner: HOLDER };
        ledger.owner.adopt(reference, Some(HOLDER), &mut ledger.out).unwrap();
        ledger.out.clear();
        ledger.owner.given_back(lease, &[(task(), 0)], false, &mut ledger.out);
        assert_eq!((ledger.asked(HOLDER), ledger.owner.queued_count()), (1, 0));
        ledger.told(HOLDER);
        assert_eq!(ledger.owner.queued_count(), 1);
    }
}
