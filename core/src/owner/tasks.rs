//! Submission, arguments, ends and retries.

use super::references::Unkept;
use super::{Effect, Inputs, Object, Owner, Submission, Task, TaskState};
use crate::Now;
use crate::event::Value;
use crate::peer::{DoneOutcome, DoneOutput, DoneOutputs, DoneValue};
use crate::slab::Slot;
use std::sync::Arc;
use tharsis_types::failure::Origin;
use tharsis_types::limits::LARGE_RECORD_BYTES_MAX;
use tharsis_types::{
    Attempt, ClientId, Failure, FailureKind, JobId, LeaseId, NodeId, ObjectId, RefId, TaskId,
};

/// An attempt that ended, wherever it ran.
#[derive(Debug)]
pub struct Ended {
    /// The lease it ran under.
    pub lease: LeaseId,
    /// The task.
    pub task: TaskId,
    /// Which attempt.
    pub attempt: Attempt,
    /// Time in the function, in nanoseconds.
    pub run_ns: u64,
    /// The node it ran on.
    pub node: NodeId,
}

/// Bytes of a message to another node that starts a task.
const PUSH_BYTES_MAX: usize = 2 * LARGE_RECORD_BYTES_MAX;
/// Bytes that a reference takes in a message, with its frame.
const REFERENCE_BYTES: usize = 40;

/// Places of a task's outputs in the ledger.
type Outputs = smallvec::SmallVec<[Slot<Object>; 2]>;

impl Owner {
    /// A client calls a function.
    pub fn submit(&mut self, submission: Submission, out: &mut Vec<Effect>) {
        let Submission { client, depth, class: number, task: id, tokens, args } = submission;
        let fresh = (0..tokens.len() as u32)
            .all(|index| self.references.find(&ObjectId::output(id, index)).is_none());
        if !fresh && self.is_known(id, tokens.len() as u32) {
            self.attach(client, id, &tokens, out);
            return;
        }
        let class = match self.callable_class(client, number, tokens.len()) {
            Ok(class) => class,
            Err(failure) => {
                for output in self.insert_outputs(client, id, &tokens, fresh, out) {
                    self.fill(output, Value::Failed(failure.clone()), None, Vec::new(), out);
                }
                return;
            }
        };
        let retries_left = self.class(class).map_or(0, |known| known.max_retries);
        let mut refused = None;
        let outputs = self.insert_outputs(client, id, &tokens, fresh, out);
        let Some((&first_output, more)) = outputs.split_first() else { return };
        let more_outputs = (!more.is_empty()).then(|| more.iter().copied().map(Some).collect());
        let payload = args.payload;
        let state = TaskState::Waiting { missing: 0 };
        let cancelled = false;
        let task = Task {
            id,
            class,
            state,
            attempt: 0,
            retries_left,
            run_ns: 0,
            cancelled,
            depth,
            payload,
            inputs: None,
            first_output: Some(first_output),
            more_outputs,
        };
        let slot = self.tasks.insert(task);
        *self.unfinished.entry(id.job()).or_default() += 1;
        outputs.iter().for_each(|output| self.references.set_producer(*output, slot));
        // Asking for an argument may fail it at once: the task hears of that when all of it is entered.
        let held = self.wakes.hold();
        if refused.is_none() && !(args.dependencies.is_empty() && args.nested.is_empty()) {
            refused = self.add_inputs(slot, &args.dependencies, &args.nested, out).err().map(Arc::new);
        }
        match refused {
            Some(failure) => self.fail(slot, &failure, out),
            None => self.queue_if_ready(slot),
        }
        self.wake(held, out);
    }

    /// An attempt ended; returns whether anyone still waited for it (a stale attempt's outputs must be
    /// dropped).
    pub fn ended(&mut self, now: Now, ended: &Ended, outcome: DoneOutcome, out: &mut Vec<Effect>) -> bool {
        self.ended_at(now, None, ended, outcome, out)
    }

    /// As [`Owner::ended`], for a task whose place in the ledger is known if it is still there.
    pub fn ended_at(
        &mut self,
        now: Now,
        place: Option<Slot<Task>>,
        ended: &Ended,
        outcome: DoneOutcome,
        out: &mut Vec<Effect>,
    ) -> bool {
        let is_it =
            |t: &Task| t.id == ended.task && t.attempt == ended.attempt && t.is_sent_under(ended.lease);
        let known = place.filter(|slot| self.tasks.get(*slot).is_some_and(is_it));
        let Some(slot) = known.or_else(|| self.sent_task(ended.task, ended.lease, ended.attempt)) else {
            self.drop_stale(ended, &outcome, out);
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
        self.lease_done(now, ended.lease, slot, ended.run_ns);
        if let Some(task) = self.tasks.get_mut(slot) {
            task.run_ns = ended.run_ns;
        }
        match outcome {
            DoneOutcome::Returned(outputs) => self.succeed(slot, ended.node, outputs, out),
            DoneOutcome::Failed { failure, .. } if self.tasks.get(slot).is_some_and(|t| t.cancelled) => {
                // However it ended: with its worker, or because a child that was cancelled along failed it
                // first.
                let failure = match failure.kind {
                    FailureKind::Cancelled => failure,
                    _ => Arc::new(
                        Failure::new(FailureKind::Cancelled, "cancelled").because((*failure).clone()),
                    ),
                };
                let failure = self.located_failure(slot, &failure, ended.node);
                self.fail(slot, &failure, out);
            }
            DoneOutcome::Failed { error_type, failure } => {
                let retry = match failure.kind {
                    FailureKind::UserError => {
                        self.class_of(slot).is_some_and(|c| c.retry_on.includes(&error_type))
                    }
                    kind => kind.is_crash(),
                };
                if retry && self.take_retry(slot) {
                    self.enqueue(slot);
                } else {
                    let failure = self.located_failure(slot, &failure, ended.node);
                    self.fail(slot, &failure, out);
                }
            }
        }
    }

    /// A task that was to be sent stays here: an argument is being made again.
    pub fn not_sent(&mut self, lease: LeaseId, slot: Slot<Task>, out: &mut Vec<Effect>) {
        if self.tasks.get(slot).is_some_and(|t| t.is_sent_under(lease)) {
            self.lease_unsent(lease, slot);
            self.restore(slot, false, out);
        }
    }

    /// Fails a task whose arguments do not fit into the message that starts it: nobody could be told to run
    /// it.
    pub fn refuse_oversized(
        &mut self,
        now: Now,
        to: NodeId,
        lease: LeaseId,
        slot: Slot<Task>,
        out: &mut Vec<Effect>,
    ) -> bool {
        let limit = if to == self.me { LARGE_RECORD_BYTES_MAX } else { PUSH_BYTES_MAX };
        let bytes = self.start_bytes(slot, to);
        let Some(task) = self.tasks.get(slot).filter(|t| limit < bytes && t.is_sent_under(lease)) else {
            return false;
        };
        let text = format!(
            "its arguments take {bytes} bytes of messages, the limit is {limit}: pass fewer references, or a value that contains them"
        );
        let failure = Arc::new(Failure::new(FailureKind::InvalidArgument, text));
        let ended = Ended { lease, task: task.id, attempt: task.attempt, run_ns: 0, node: self.me };
        let outcome = DoneOutcome::Failed { error_type: String::new(), failure };
        self.ended_slot(now, slot, &ended, outcome, out);
        true
    }

    /// Bytes of the message that starts a task, at most, beside what its class and its payload take.
    fn start_bytes(&self, slot: Slot<Task>, to: NodeId) -> usize {
        let Some(inputs) = self.tasks.get(slot).and_then(|t| t.inputs.as_ref()) else { return 0 };
        let is_pushed = to != self.me;
        let bytes_of = |slot: &Slot<Object>| {
            let object = &self.references[*slot];
            let inline = match object.value() {
                Some(Value::Inline(bytes)) => bytes.len(),
                _ => 0,
            };
            REFERENCE_BYTES + inline + if is_pushed { object.nested().len() * REFERENCE_BYTES } else { 0 }
        };
        let given: usize = inputs.dependencies.iter().map(|(_, slot)| bytes_of(slot)).sum();
        given + if is_pushed { inputs.nested.len() * REFERENCE_BYTES } else { 0 }
    }

    /// Tasks that were sent come back, and keep neither place nor, if they were `started`, the number of
    /// their attempt.
    pub fn given_back(
        &mut self,
        lease: LeaseId,
        tasks: &[(TaskId, Attempt)],
        started: bool,
        out: &mut Vec<Effect>,
    ) {
        for (task, attempt) in tasks.iter().rev() {
            if let Some(slot) = self.sent_task(*task, lease, *attempt) {
                self.lease_unsent(lease, slot);
                self.restore(slot, started, out);
            }
        }
        self.lease_paused(lease);
    }

    /// Cancels the task behind a reference, and with `recursive` what it submitted where it runs.
    pub fn cancel(&mut self, object: ObjectId, force: bool, recursive: bool, out: &mut Vec<Effect>) {
        let Some(entry) = self.references.by_id(&object) else { return };
        let Some(slot) = entry.producer() else {
            if let Some(lineage_task) = entry.origin().lineage_task() {
                self.cancel_kept(lineage_task, out);
            }
            return;
        };
        let Some(task) = self.tasks.get_mut(slot) else { return };
        let (id, state) = (task.id, task.state);
        if let TaskState::Sent { lease } = state {
            task.cancelled = true;
            let to = self.leases.get(&lease).map_or(self.me, |l| l.node);
            out.push(Effect::Cancel { to, task: id, force, recursive });
            return;
        }
        let failure = self.located_failure(
            slot,
            &Failure::new(FailureKind::Cancelled, "cancelled before it started"),
            self.me,
        );
        self.fail(slot, &failure, out);
    }

    /// Fails every unfinished task of a job, or has it stopped; none starts again.
    pub fn drop_job(&mut self, job: JobId, out: &mut Vec<Effect>) {
        self.ended_jobs.insert(job);
        self.ending.insert(job);
        self.refusals.job_ended(job);
        let doomed = self.tasks_of(job);
        let failure = job_ended();
        for slot in doomed {
            let Some(task) = self.tasks.get(slot) else { continue };
            match task.state {
                TaskState::Waiting { .. } | TaskState::Queued => self.fail(slot, &failure, out),
                TaskState::Sent { lease } => {
                    let to = self.leases.get(&lease).map_or(self.me, |l| l.node);
                    out.push(Effect::Cancel { to, task: task.id, force: true, recursive: false });
                }
                TaskState::Tombstone => {}
                TaskState::Kept { .. } => self.forget_task(slot, Unkept::Forgotten, out),
            }
        }
    }

    /// Tasks of a job, unfinished or kept.
    fn tasks_of(&self, job: JobId) -> Vec<Slot<Task>> {
        let is_its = |slot: &Slot<Task>| self.tasks.get(*slot).is_some_and(|task| task.id.job() == job);
        if self.unfinished_of(job) == 0 {
            // All tasks of others need not be looked at, only those that are kept.
            return self.lineage.slots().filter(is_its).collect();
        }
        self.tasks.iter().map(|(slot, _)| slot).filter(is_its).collect()
    }

    /// An argument of a waiting task has its value.
    pub(super) fn input_ready(&mut self, slot: Slot<Task>, object: Slot<Object>, out: &mut Vec<Effect>) {
        // It may have ended with the failure of another argument that was told at the same time.
        let Some(task) = self.tasks.get_mut(slot) else { return };
        let TaskState::Waiting { missing } = &mut task.state else { return };
        assert!(0 < *missing, "{} is told of an argument that it does not wait for", task.id);
        *missing -= 1;
        let is_ready = *missing == 0;
        let failed = match self.references[object].value() {
            Some(Value::Failed(failure)) => Some(failure.clone()),
            _ => None,
        };
        match failed {
            Some(cause) => self.fail_dependent(slot, &cause, out),
            // Looks at all arguments: once, not for each of them that becomes ready.
            None if is_ready && self.takes_stored(slot) => self.enqueue_soon(slot),
            None if is_ready => self.enqueue(slot),
            None => {}
        }
    }

    /// Whether an argument of a task lies in an arena.
    fn takes_stored(&self, slot: Slot<Task>) -> bool {
        let Some(inputs) = self.tasks.get(slot).and_then(|t| t.inputs.as_ref()) else { return false };
        let is_stored = |object: &Object| matches!(object.value(), Some(Value::Stored { .. }));
        inputs.dependencies.iter().any(|(_, slot)| is_stored(&self.references[*slot]))
    }

    /// The failure of a task with its name, call site and attempt.
    pub(super) fn located_failure(&self, slot: Slot<Task>, failure: &Failure, node: NodeId) -> Arc<Failure> {
        let mut located = failure.clone();
        if let (Some(task), Some(class)) = (self.tasks.get(slot), self.class_of(slot)) {
            let pid = located.origin.as_ref().and_then(|o| o.pid);
            located.origin = Some(Box::new(Origin {
                task_name: class.name.clone(),
                task: Some(task.id),
                call_site: class.call_site.clone(),
                node: Some(node),
                pid,
                attempt: task.attempt,
            }));
        }
        Arc::new(located)
    }

    /// Ends a task with a failure under all its outputs.
    pub(super) fn fail(&mut self, slot: Slot<Task>, failure: &Arc<Failure>, out: &mut Vec<Effect>) {
        let outputs = self.finish(slot, false, out);
        for output in outputs {
            self.fill(output, Value::Failed(failure.clone()), None, Vec::new(), out);
        }
    }

    pub(super) fn class_of(&self, slot: Slot<Task>) -> Option<&tharsis_types::TaskClass> {
        let class = self.tasks.get(slot)?.class;
        self.classes.get(class).map(|c| c.definition.as_ref())
    }

    pub(super) fn take_retry(&mut self, slot: Slot<Task>) -> bool {
        let Some(task) = self.tasks.get_mut(slot) else { return false };
        if task.retries_left == 0 || task.cancelled || self.ended_jobs.contains(task.id.job()) {
            return false;
        }
        task.retries_left -= i32::from(task.retries_left > 0);
        task.attempt += 1;
        true
    }

    /// A task that was sent goes back to the head of its queue, unless nobody wants it any more; as another
    /// attempt if it was started, or may have been.
    pub(super) fn restore(&mut self, slot: Slot<Task>, started: bool, out: &mut Vec<Effect>) {
        let Some(task) = self.tasks.get_mut(slot) else { return };
        task.attempt += u32::from(started);
        let failure = match (task.cancelled, self.ended_jobs.contains(task.id.job())) {
            (_, true) => job_ended(),
            (true, false) => Arc::new(Failure::new(FailureKind::Cancelled, "cancelled before it started")),
            (false, false) if self.waits_again(slot) => return,
            (false, false) => return self.enqueue_first(slot),
        };
        let failure = self.located_failure(slot, &failure, self.me);
        self.fail(slot, &failure, out);
    }

    /// Lets a task wait again if one of its arguments is being made again; true if so.
    fn waits_again(&mut self, slot: Slot<Task>) -> bool {
        let Some(inputs) = self.tasks.get(slot).and_then(|t| t.inputs.as_ref()) else { return false };
        let unmade = |object: &Slot<Object>| self.references[*object].value().is_none();
        let objects: Vec<_> = inputs.dependencies.iter().map(|(_, object)| *object).filter(unmade).collect();
        if let Some(task) = self.tasks.get_mut(slot).filter(|_| !objects.is_empty()) {
            task.state = TaskState::Waiting { missing: objects.len() as u32 };
        }
        objects.iter().for_each(|object| self.references.add_dependent(*object, slot));
        !objects.is_empty()
    }

    /// Whether all outputs of a task are here or will be, so that a call of it needs no run.
    fn is_known(&self, id: TaskId, count: u32) -> bool {
        let is_live = |index| {
            let output = self.references.by_id(&ObjectId::output(id, index));
            output.is_some_and(|output| self.references.is_live(output))
        };
        (0..count).all(is_live)
    }

    /// Entries for the outputs of a task; unless all are fresh, what is left of an earlier run of it is used
    /// again.
    fn insert_outputs(
        &mut self,
        client: ClientId,
        id: TaskId,
        tokens: &[u64],
        fresh: bool,
        out: &mut Vec<Effect>,
    ) -> Outputs {
        let insert = |(index, token): (usize, &u64)| {
            let object = ObjectId::output(id, index as u32);
            if let Some(slot) = if fresh { None } else { self.references.find(&object) } {
                self.references.take_over(slot, out);
                self.held(client, RefId { object, owner: self.me }, out);
                self.references.add_fetcher(slot, client, *token);
                return slot;
            }
            self.references.insert_made(object, client, *token)
        };
        tokens.iter().enumerate().map(insert).collect()
    }

    /// A task that is known already is submitted again (its parent runs again): share what there is.
    fn attach(&mut self, client: ClientId, id: TaskId, tokens: &[u64], out: &mut Vec<Effect>) {
        for (index, token) in tokens.iter().enumerate() {
            let reference = RefId { object: ObjectId::output(id, index as u32), owner: self.me };
            let Some(slot) = self.references.held(client, reference, out) else { continue };
            match self.references[slot].value() {
                None => {
                    self.references.add_fetcher(slot, client, *token);
                    self.ask_for(slot, out);
                }
                Some(_) => out.push(Effect::Deliver { client, token: *token, object: reference.object }),
            }
        }
    }

    fn add_inputs(
        &mut self,
        slot: Slot<Task>,
        dependencies: &[tharsis_types::Dependency],
        nested: &[RefId],
        out: &mut Vec<Effect>,
    ) -> Result<(), Failure> {
        let mut inputs = Inputs { dependencies: Vec::with_capacity(dependencies.len()), nested: Vec::new() };
        let (mut missing, mut failed) = (0, None);
        for dependency in dependencies {
            let Some(object_slot) = self.references.adopt(dependency.reference, None, out) else {
                failed = Some(self.unknown_reference(slot, dependency.reference));
                continue;
            };
            inputs.dependencies.push((*dependency, object_slot));
            self.lose_orphan(object_slot, out);
            match self.references[object_slot].value() {
                Some(Value::Failed(cause)) => failed = Some(dependency_failure(dependency.parameter, cause)),
                Some(_) => {}
                None => {
                    self.references.add_dependent(object_slot, slot);
                    missing += 1;
                    self.ask_for(object_slot, out);
                }
            }
        }
        inputs.nested = self.references.adopt_nested(nested, None, out);
        if let Some(task) = self.tasks.get_mut(slot) {
            task.state = TaskState::Waiting { missing };
            task.inputs = Some(Box::new(inputs));
        }
        failed.map_or(Ok(()), Err)
    }

    fn unknown_reference(&self, slot: Slot<Task>, reference: RefId) -> Failure {
        let job = self.tasks.get(slot).map(|t| t.id.job());
        if job == Some(reference.object.task.job()) {
            Failure::new(FailureKind::ObjectFreed, format!("argument {} was freed", reference.object))
        } else {
            Failure::new(
                FailureKind::InvalidReference,
                format!("argument {} belongs to another session", reference.object),
            )
        }
    }

    fn queue_if_ready(&mut self, slot: Slot<Task>) {
        if self.tasks.get(slot).is_some_and(|t| t.state == TaskState::Waiting { missing: 0 }) {
            self.enqueue(slot);
        }
    }

    pub(super) fn fail_dependent(&mut self, slot: Slot<Task>, cause: &Arc<Failure>, out: &mut Vec<Effect>) {
        let failure = dependency_failure(0, cause);
        let failure = self.located_failure(slot, &failure, self.me);
        self.fail(slot, &failure, out);
    }

    fn succeed(&mut self, slot: Slot<Task>, node: NodeId, returned: DoneOutputs, out: &mut Vec<Effect>) {
        let lender = (node != self.me).then_some(node);
        let expected = self.tasks.get(slot).map_or(0, |t| 1 + t.more_outputs.as_ref().map_or(0, |m| m.len()));
        if returned.len() != expected {
            self.drop_outputs(slot, node, &returned, out);
            let text = format!("the function returned {} values, {expected} were asked for", returned.len());
            let failure = self.located_failure(slot, &Failure::new(FailureKind::ReturnsMismatch, text), node);
            self.fail(slot, &failure, out);
            return;
        }
        if let Some(index) = self.differing(slot, &returned) {
            self.drop_outputs(slot, node, &returned, out);
            let text = format!(
                "the task ran again for a value of it that was lost, and value {index}, which is still there, came \
                 out differently: what it returns is not of one run"
            );
            let failure = self.located_failure(slot, &Failure::new(FailureKind::ObjectLost, text), node);
            self.fail(slot, &failure, out);
            return;
        }
        // Adopt what the values refer to before the task lets go of its own references to the same objects.
        let inside: smallvec::SmallVec<[_; 1]> =
            returned.iter().map(|o| self.references.adopt_nested(&o.nested, lender, out)).collect();
        let stored = returned.iter().any(|o| matches!(o.value, DoneValue::Stored { .. }));
        let is_kept = stored && self.is_worth_keeping(slot);
        let outputs = self.finish(slot, is_kept, out);
        for ((output, returned), inside) in outputs.into_iter().zip(returned).zip(inside) {
            let value = match returned.value {
                DoneValue::Inline(bytes) => Value::Inline(bytes),
                DoneValue::Stored { len } => Value::Stored { len },
            };
            self.fill(output, value, Some(node), inside, out);
        }
        self.bound_lineage(out);
    }

    /// The first value left of an earlier run that this run made otherwise, as far as the ledger can see:
    /// bytes in messages are compared, of those in an arena their number. A value with references inside says
    /// who owns them, which depends on the node that it was made on: it is not compared.
    fn differing(&self, slot: Slot<Task>, returned: &[DoneOutput]) -> Option<usize> {
        let task = self.tasks.get(slot)?;
        let places = std::iter::once(task.first_output).chain(task.more_outputs.iter().flatten().copied());
        places.zip(returned).position(|(place, output)| {
            let Some(left) = place.map(|place| &self.references[place]).filter(|o| o.has_bytes()) else {
                return false;
            };
            if !left.nested().is_empty() || !output.nested.is_empty() {
                return false;
            }
            match (left.value(), &output.value) {
                (Some(Value::Inline(old)), DoneValue::Inline(new)) => old != new,
                (Some(Value::Stored { len: old }), DoneValue::Stored { len: new }) => old != new,
                // Which way a value comes is the choice of the client that runs the function.
                _ => false,
            }
        })
    }

    /// Takes a task out of the ledger or keeps it as lineage, drops its references and returns its outputs.
    fn finish(&mut self, slot: Slot<Task>, is_kept: bool, out: &mut Vec<Effect>) -> Outputs {
        let Some(job) = self.tasks.get(slot).map(|task| task.id.job()) else { return Outputs::new() };
        self.note_finished(job);
        let task = &mut self.tasks[slot];
        let outputs: Outputs = task.output_slots().flatten().collect();
        let inputs = if is_kept { task.inputs.clone() } else { task.inputs.take() };
        if !is_kept {
            self.forget_lineage_of(slot, &outputs);
        }
        let Some(task) = self.tasks.get_mut(slot) else { return outputs };
        if is_kept {
            self.keep(slot, out);
        } else if task.state == TaskState::Queued {
            task.more_outputs = None;
            task.state = TaskState::Tombstone;
            self.add_tombstone(slot);
        } else {
            self.tasks.remove(slot);
        }
        let Some(inputs) = inputs else { return outputs };
        // The outputs have no value yet, but their task is gone: an input that goes must not take them along.
        outputs.iter().for_each(|output| self.references.add_use(*output));
        for input in inputs.dependencies.into_iter().map(|(_, s)| s).chain(inputs.nested) {
            self.references.remove_dependent(input, slot);
            self.unuse(input, out);
        }
        outputs.iter().for_each(|output| self.references.drop_use(*output));
        outputs
    }

    fn note_finished(&mut self, job: JobId) {
        let count = self.unfinished.get_mut(&job).filter(|count| 0 < **count);
        assert!(count.is_some(), "more tasks of {job} end than there are");
        if let Some(count) = count {
            *count -= 1;
            if *count == 0 {
                self.unfinished.remove(&job);
            }
        }
    }

    fn sent_task(&self, id: TaskId, lease: LeaseId, attempt: Attempt) -> Option<Slot<Task>> {
        let slot = self.references.by_id(&ObjectId::output(id, 0))?.producer()?;
        let task = self.tasks.get(slot)?;
        (task.is_sent_under(lease) && task.attempt == attempt).then_some(slot)
    }

    /// The outputs of an attempt nobody waits for are dropped where they lie, and what it borrowed goes back.
    fn drop_stale(&mut self, ended: &Ended, outcome: &DoneOutcome, out: &mut Vec<Effect>) {
        if let DoneOutcome::Returned(outputs) = outcome {
            self.drop_returned(ended.task, ended.node, outputs, out);
        }
    }

    fn drop_outputs(
        &mut self,
        slot: Slot<Task>,
        node: NodeId,
        outputs: &[DoneOutput],
        out: &mut Vec<Effect>,
    ) {
        if let Some(task) = self.tasks.get(slot).map(|t| t.id) {
            self.drop_returned(task, node, outputs, out);
        }
    }

    fn drop_returned(&mut self, task: TaskId, node: NodeId, outputs: &[DoneOutput], out: &mut Vec<Effect>) {
        for (index, output) in outputs.iter().enumerate() {
            let object = ObjectId::output(task, index as u32);
            // An earlier attempt may have left the very copy that counts.
            let counts = self.copies(object).contains(&node);
            if matches!(output.value, DoneValue::Stored { .. }) && !counts {
                out.push(Effect::DropCopy { holder: node, object });
            }
            for reference in output.nested.iter().filter(|_| node != self.me) {
                let message = crate::peer::Message::BorrowReleased { object: reference.object, count: 1 };
                out.push(Effect::Send { to: node, message });
            }
        }
    }
}

impl Task {
    /// Whether its end is still to come.
    pub(super) fn is_unfinished(&self) -> bool {
        !matches!(self.state, TaskState::Tombstone | TaskState::Kept { .. })
    }

    fn is_sent_under(&self, lease: LeaseId) -> bool {
        self.state == TaskState::Sent { lease }
    }
}

/// What a task gets whose argument failed: the same root, so that the first error keeps its type.
pub(crate) fn dependency_failure(parameter: u16, cause: &Failure) -> Failure {
    if cause.kind == FailureKind::DependencyFailed {
        return cause.clone();
    }
    let text = format!("argument {parameter} failed, so the task never ran");
    Failure::new(FailureKind::DependencyFailed, text).because(cause.clone())
}

pub(super) fn job_ended() -> Arc<Failure> {
    Arc::new(Failure::new(FailureKind::Shutdown, "the driver of the job is gone"))
}
