//! Ends of tasks: returned, failed, tried again, cancelled.

use super::calls::call_refused;
use super::grouped::removed;
use super::references::Unkept;
use super::tasks::{OutputSlots, TaskState};
use super::{Effect, Ended, Object, Owner, Task};
use crate::Now;
use crate::event::Value;
use crate::slab::Slot;
use std::sync::Arc;
use tharsis_types::failure::Origin;
use tharsis_types::peer::{DoneOutcome, DoneValue, Message};
use tharsis_types::task::{Output, Outputs};
use tharsis_types::{Dependency, Failure, FailureKind, JobId, NodeId, ObjectId, TaskClass, TaskId};

/// Attempts that end.
impl Owner {
    /// An attempt ended; true if it was still awaited, false if it was stale and its outputs were dropped.
    pub fn ended(&mut self, now: Now, ended: &Ended, outcome: DoneOutcome, out: &mut Vec<Effect>) -> bool {
        self.ended_at(now, None, ended, outcome, out)
    }

    /// As [`Owner::ended`], for a task whose slot is known if it is still there.
    pub fn ended_at(
        &mut self,
        now: Now,
        place: Option<Slot<Task>>,
        ended: &Ended,
        outcome: DoneOutcome,
        out: &mut Vec<Effect>,
    ) -> bool {
        let (id, lease, attempt) = (ended.task, ended.lease, ended.attempt);
        let known = place.filter(|slot| self.tasks.is_sent(*slot, id, lease, attempt));
        let Some(slot) = known.or_else(|| self.sent_task(id, lease, attempt)) else {
            if let DoneOutcome::Returned(outputs) = outcome {
                self.drop_returned(id, ended.node, &outputs, out);
            }
            return false;
        };
        self.ended_slot(now, slot, ended, outcome, out);
        true
    }

    /// As [`Owner::ended_at`], for a task that is still sent under the lease.
    pub(super) fn ended_slot(
        &mut self,
        now: Now,
        slot: Slot<Task>,
        ended: &Ended,
        outcome: DoneOutcome,
        out: &mut Vec<Effect>,
    ) {
        match &outcome {
            DoneOutcome::Returned(outputs) if self.is_constructor(slot) => {
                return self.actor_lives(slot, ended, outputs, out);
            }
            DoneOutcome::Failed { .. } if self.is_constructor(slot) => drop(self.actor_stops(slot)),
            _ => {}
        }
        if self.tasks[slot].is_call() {
            self.actors.came_back(ended.lease, slot)
        } else {
            self.schedule.sent_ended(now, ended.lease, slot, ended.run_ns)
        }
        self.tasks.set_run_ns(slot, ended.run_ns);
        match outcome {
            DoneOutcome::Returned(outputs) => self.succeed(slot, ended.node, outputs, out),
            DoneOutcome::Failed { failure, .. } if self.tasks[slot].is_cancelled() => {
                let failure = self.failure_of_cancelled(slot, &failure);
                let failure = self.located_failure(slot, &failure, ended.node);
                self.fail(slot, &failure, out);
            }
            DoneOutcome::Failed { error_type, failure } => {
                let is_call = self.tasks[slot].is_call();
                let may_retry = match failure.kind {
                    FailureKind::UserError => {
                        self.class_of(slot).retry_on.includes(&error_type) || self.met_loss(slot, &failure)
                    }
                    kind => kind.is_crash() && (!is_call || self.may_call_again(slot, &failure)),
                };
                if may_retry && self.take_retry(slot) {
                    self.try_after_pause(slot);
                } else {
                    let failure = if is_call {
                        self.call_failure(slot, &failure)
                    } else {
                        self.failure_of_evicted(slot, failure)
                    };
                    let failure = self.located_failure(slot, &failure, ended.node);
                    self.fail(slot, &failure, out);
                }
            }
        }
    }

    /// Whether a task failed because it read an object that was lost with a value that it had from an
    /// argument: the argument is computed again for the next attempt, and with it the object inside.
    fn met_loss(&self, slot: Slot<Task>, failure: &Failure) -> bool {
        let mut inputs = self.tasks[slot].dependencies().iter();
        failure.root().is_loss() && inputs.any(|(_, input)| !self.references[*input].is_there())
    }

    /// Takes a retry of a task that is still wanted.
    pub(super) fn take_retry(&mut self, slot: Slot<Task>) -> bool {
        let task = &self.tasks[slot];
        let is_wanted = !task.is_cancelled() && !self.jobs.contains(task.id().job());
        is_wanted && self.tasks.take_retry(slot)
    }

    /// An argument of a waiting task has its value.
    pub(super) fn input_ready(&mut self, slot: Slot<Task>, object: Slot<Object>, out: &mut Vec<Effect>) {
        let Some(is_ready) = self.tasks.input_arrived(slot) else { return };
        match self.references[object].value() {
            Some(Value::Failed(cause)) => {
                let cause = cause.clone();
                let taken = self.tasks[slot].dependencies().iter().find(|(_, taken)| *taken == object);
                let parameter = taken.map_or(0, |(dependency, _)| dependency.parameter);
                self.fail_dependent(slot, parameter, &cause, out);
            }
            // `takes_stored` walks all arguments: it runs once, not for each argument that becomes ready.
            _ if is_ready && self.takes_stored(slot) => self.enqueue_soon(slot),
            _ if is_ready => self.enqueue(slot),
            _ => {}
        }
    }

    /// Whether an argument of a task lies in an arena.
    fn takes_stored(&self, slot: Slot<Task>) -> bool {
        let is_stored = |object: &Object| matches!(object.value(), Some(Value::Stored { .. }));
        self.tasks[slot].dependencies().iter().any(|(_, input)| is_stored(&self.references[*input]))
    }
}

/// Tasks that are cancelled, or whose job has ended.
impl Owner {
    /// Cancels the task of a reference, and with `recursive` the tasks that it submitted on the node that
    /// runs it.
    pub fn cancel(&mut self, object: ObjectId, force: bool, recursive: bool, out: &mut Vec<Effect>) {
        if let Some(graph) = self.graphs.find(object.task) {
            return self.cancel_graph(graph, force, recursive, out);
        }
        // The object may have been freed, or may have been put.
        let Some(output) = self.references.find(&object) else { return };
        if self.groups.task(output).is_some() {
            return self.end_group(output, &removed(), out);
        }
        let entry = &self.references[output];
        let Some(slot) = entry.producer().or_else(|| self.actors.constructor(output)) else {
            if let Some(kept) = entry.origin().lineage_task() {
                self.cancel_kept(kept, out);
            }
            return;
        };
        let unwanted = self.graph_unwanted(slot);
        self.cancel_task(slot, force, recursive, out);
        if let Some(graph) = unwanted.and_then(|id| self.graphs.find(id)) {
            self.cancel_graph(graph, force, recursive, out);
        }
    }

    /// Cancels a task that has not ended.
    fn cancel_task(&mut self, slot: Slot<Task>, force: bool, recursive: bool, out: &mut Vec<Effect>) {
        if let Some(to) = self.node_of(slot) {
            self.tasks.set_cancelled(slot);
            // The worker is not killed for the sake of one call: others are sent to it.
            let force = force && !self.tasks[slot].is_call();
            out.push(Effect::Cancel { to, task: self.tasks[slot].id(), force, recursive });
            return;
        }
        let failure = Failure::new(FailureKind::Cancelled, "cancelled before it started");
        let failure = self.located_failure(slot, &failure, self.me);
        self.fail(slot, &failure, out);
    }

    /// Whether a task or graph that was submitted here may still do something: a task that has not ended, an
    /// actor or a placement group that lives.
    #[must_use]
    pub fn may_go_on(&self, task: TaskId) -> bool {
        let output = self.references.find(&ObjectId::output(task, 0));
        let is_made = |output: &Slot<Object>| {
            self.references[*output].producer().is_some()
                || self.actors.constructor(*output).is_some()
                || self.groups.task(*output).is_some()
        };
        output.as_ref().is_some_and(is_made) || self.graphs.find(task).is_some()
    }

    /// The jobs that have tasks in the ledger, and some that had any.
    pub fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.tasks.jobs()
    }

    /// Whether a job has ended.
    #[must_use]
    pub fn has_ended(&self, job: JobId) -> bool {
        self.jobs.contains(job)
    }

    /// Fails every unfinished task of a job, or cancels it if it was sent; none starts again.
    pub fn drop_job(&mut self, job: JobId, out: &mut Vec<Effect>) {
        self.jobs.add(job);
        self.schedule.job_ended(job);
        self.stop_graphs_of(job, out);
        let failure = super::jobs::job_ended();
        for slot in self.tasks.of_job(job) {
            // The failure of one of them may have ended this one.
            let Some(task) = self.tasks.get(slot) else { continue };
            if task.is_group() {
                let output = task.output_slots().flatten().next();
                output.into_iter().for_each(|output| self.end_group(output, &failure, out));
                continue;
            }
            match task.state() {
                TaskState::Waiting { .. } | TaskState::Queued => self.fail(slot, &failure, out),
                TaskState::Sent { .. } => {
                    // The actor of a call may be that of another job: it does not die with who called it.
                    let (id, force) = (task.id(), !task.is_call());
                    let to = self.node_of(slot).unwrap_or(self.me);
                    out.push(Effect::Cancel { to, task: id, force, recursive: false });
                }
                TaskState::Tombstone => {}
                TaskState::Kept { .. } => self.forget_task(slot, Unkept::Forgotten, out),
            }
        }
    }
}

/// The outcome for the outputs.
impl Owner {
    /// Ends a task with a failure under all its outputs.
    pub(super) fn fail(&mut self, slot: Slot<Task>, failure: &Arc<Failure>, out: &mut Vec<Effect>) {
        self.totals.failed += 1;
        let failure = &self.failure_of_outputs(slot, failure);
        let member = self.tasks[slot].member();
        for output in self.finish(slot, out) {
            self.fill(output, Value::Failed(failure.clone()), None, Vec::new(), out);
            if self.actors.detached_ends(output) {
                self.unuse(output, out);
            }
        }
        if let Some(member) = member {
            self.step_ended(member, Some(failure.clone()), out);
        }
    }

    pub(super) fn fail_dependent(
        &mut self,
        slot: Slot<Task>,
        parameter: u16,
        cause: &Arc<Failure>,
        out: &mut Vec<Effect>,
    ) {
        let failure = dependency_failure(parameter, cause);
        let failure = self.located_failure(slot, &failure, self.me);
        self.fail(slot, &failure, out);
    }

    fn succeed(
        &mut self,
        slot: Slot<Task>,
        node: NodeId,
        returned: Outputs<DoneValue>,
        out: &mut Vec<Effect>,
    ) {
        if let Some(failure) = self.unfit(slot, &returned) {
            self.drop_returned(self.tasks[slot].id(), node, &returned, out);
            let failure = self.located_failure(slot, &failure, node);
            self.fail(slot, &failure, out);
            return;
        }
        self.totals.returned += 1;
        // Adopt the references inside the values before the task drops its own references to the same
        // objects.
        let lender = (node != self.me).then_some(node);
        let inside: smallvec::SmallVec<[_; 1]> =
            returned.iter().map(|o| self.references.adopt_nested(&o.nested, lender, out)).collect();
        let member = self.tasks[slot].member();
        let stored = returned.iter().any(|o| matches!(o.value, DoneValue::Stored { .. }));
        let outputs = if stored && self.is_worth_keeping(slot) && !self.tasks[slot].is_call() {
            self.finish_kept(slot, out)
        } else {
            self.finish(slot, out)
        };
        for ((output, returned), inside) in outputs.into_iter().zip(returned).zip(inside) {
            let value = match returned.value {
                DoneValue::Inline(bytes) => Value::Inline(bytes),
                DoneValue::Stored { len } => Value::Stored { len },
            };
            self.fill(output, value, Some(node), inside, out);
        }
        if let Some(member) = member {
            self.step_ended(member, None, out);
        }
        self.bound_lineage(out);
    }

    /// The failure if the values that a run returned cannot be the outputs of its task.
    fn unfit(&self, slot: Slot<Task>, returned: &[Output<DoneValue>]) -> Option<Failure> {
        let expected = self.tasks[slot].output_count();
        if returned.len() != expected {
            let text = format!("the function returned {} values, {expected} were asked for", returned.len());
            return Some(Failure::new(FailureKind::ReturnsMismatch, text));
        }
        let index = self.differing(slot, returned)?;
        let text = format!(
            "the task ran again for a value of it that was lost, and value {index}, which is still there, \
             came out differently: what it returns is not of one run"
        );
        Some(Failure::new(FailureKind::ObjectLost, text))
    }

    /// The first value of an earlier run that still exists and differs from the value of this run, as far as
    /// the ledger can see. Inline values are compared by bytes, stored ones by length. A value with
    /// references inside names their owners, which depend on the node on which it was made, so it is not
    /// compared. Nor are those of a function that is declared pure: one of them may be about the run itself,
    /// such as the time that it took.
    fn differing(&self, slot: Slot<Task>, returned: &[Output<DoneValue>]) -> Option<usize> {
        if self.class_of(slot).pure {
            return None;
        }
        let outputs = self.tasks[slot].output_slots().flatten();
        outputs.zip(returned).position(|(output, returned)| {
            let left = &self.references[output];
            if !left.has_bytes() || !left.nested().is_empty() || !returned.nested.is_empty() {
                return false;
            }
            match (left.value(), &returned.value) {
                (Some(Value::Inline(old)), DoneValue::Inline(new)) => old != new,
                (Some(Value::Stored { len: old }), DoneValue::Stored { len: new }) => old != new,
                // The client that runs the function chooses how a value is returned.
                _ => false,
            }
        })
    }

    /// Removes a task from the ledger, drops its references and returns its outputs.
    fn finish(&mut self, slot: Slot<Task>, out: &mut Vec<Effect>) -> OutputSlots {
        if self.tasks[slot].is_call() {
            self.actors.leave(slot);
            if self.tasks[slot].state() == TaskState::Queued {
                self.tasks.queued_to_waiting(slot);
            }
        }
        let task = &self.tasks[slot];
        let (is_queued, class) = (task.state() == TaskState::Queued, task.class());
        let (outputs, inputs) = self.tasks.end(slot);
        self.forget_lineage_of(slot, &outputs);
        if is_queued {
            self.schedule.add_tombstone(self.classes[class].shape);
        }
        if let Some(inputs) = inputs {
            self.drop_inputs(slot, &outputs, inputs.slots(), out);
        }
        outputs
    }

    /// Keeps a task as lineage and returns its outputs. From now on lineage needs the references of the task.
    fn finish_kept(&mut self, slot: Slot<Task>, out: &mut Vec<Effect>) -> OutputSlots {
        let outputs = self.keep(slot, out);
        let inputs: Vec<_> = self.tasks[slot].input_slots().collect();
        self.drop_inputs(slot, &outputs, inputs.into_iter(), out);
        outputs
    }

    /// Drops the uses of the references of a task that has ended.
    fn drop_inputs(
        &mut self,
        slot: Slot<Task>,
        outputs: &[Slot<Object>],
        inputs: impl Iterator<Item = Slot<Object>>,
        out: &mut Vec<Effect>,
    ) {
        // The outputs have no value yet, and their task is gone: freeing an input must not free them too.
        outputs.iter().for_each(|output| self.references.add_use(*output));
        for input in inputs {
            self.references.remove_dependent(input, slot);
            self.unuse(input, out);
        }
        outputs.iter().for_each(|output| self.references.drop_use(*output));
    }

    /// Drops outputs that do not count: frees them on the node that made them, and gives their borrows back.
    pub(super) fn drop_returned(
        &mut self,
        task: TaskId,
        node: NodeId,
        outputs: &[Output<DoneValue>],
        out: &mut Vec<Effect>,
    ) {
        for (index, output) in outputs.iter().enumerate() {
            self.drop_value(ObjectId::output(task, index as u32), node, output, out);
        }
    }

    /// Drops a value that does not count, which another node or this one has made.
    pub(super) fn drop_value(
        &mut self,
        object: ObjectId,
        node: NodeId,
        output: &Output<DoneValue>,
        out: &mut Vec<Effect>,
    ) {
        // An earlier attempt may have left its copy, which counts, on that node.
        let counts = self.copies(object).contains(&node);
        if matches!(output.value, DoneValue::Stored { .. }) && !counts {
            out.push(Effect::DropCopy { holder: node, object });
        }
        for reference in output.nested.iter().filter(|_| node != self.me) {
            let message = Message::BorrowReleased { object: reference.object, count: 1 };
            out.push(Effect::Send { to: node, message });
        }
    }

    /// The failure of a task with its name, call site and attempt.
    pub(super) fn located_failure(&self, slot: Slot<Task>, failure: &Failure, node: NodeId) -> Arc<Failure> {
        let (task, class) = (&self.tasks[slot], self.class_of(slot));
        let mut located = failure.clone();
        let pid = located.origin.as_ref().and_then(|o| o.pid);
        located.origin = Some(Box::new(Origin {
            task_name: self.name_of(slot).to_owned(),
            task: Some(task.id()),
            call_site: class.call_site.clone(),
            node: Some(node),
            pid,
            attempt: task.attempt(),
        }));
        Arc::new(located)
    }

    /// The name of a task: that of its call, or that of its class.
    pub(super) fn name_of(&self, slot: Slot<Task>) -> &str {
        self.tasks.name(slot).map_or(self.class_of(slot).name.as_str(), |name| name)
    }

    /// The class of a task.
    pub(super) fn class_of(&self, slot: Slot<Task>) -> &TaskClass {
        &self.classes[self.tasks[slot].class()].definition
    }
}

/// Error of a task whose argument failed: the same root, so that the first error keeps its type.
pub(crate) fn dependency_failure(parameter: u16, cause: &Failure) -> Failure {
    if parameter == Dependency::ACTOR {
        return call_refused(cause);
    }
    if parameter == Dependency::GROUP {
        return cause.clone();
    }
    if parameter == Dependency::SNAPSHOT {
        let text = "the snapshot from which the actor was to continue is lost";
        return Failure::new(FailureKind::DependencyFailed, text).because(cause.clone());
    }
    if cause.kind == FailureKind::DependencyFailed {
        let mut same = cause.clone();
        same.executed = None;
        return same;
    }
    let text = format!("argument {parameter} failed, so the task never ran");
    Failure::new(FailureKind::DependencyFailed, text).because(cause.clone())
}
