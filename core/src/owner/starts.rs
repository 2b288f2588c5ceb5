//! Tasks on their way to a worker: the data for their start, and tasks that come back unstarted.

use super::deadlines::unreached_failure;
use super::tasks::TaskState;
use super::{Effect, Ended, Object, Owner, Task};
use crate::Now;
use crate::event::Value;
use crate::slab::Slot;
use std::sync::Arc;
use tharsis_types::limits::LARGE_RECORD_BYTES_MAX;
use tharsis_types::peer::{DoneOutcome, PushedDependency, PushedTask};
use tharsis_types::{
    Attempt, Dependency, Failure, FailureKind, LeaseId, NodeId, ObjectId, TaskClass, TaskId,
};

/// Maximum bytes of a message to another node that starts a task.
const PUSH_BYTES_MAX: usize = 2 * LARGE_RECORD_BYTES_MAX;
/// Bytes that a reference takes in a message, with its frame.
const REFERENCE_BYTES: usize = 40;

/// Facts needed to start a task, read from the ledger.
#[derive(Debug)]
pub struct StartView<'a> {
    /// Id of the task.
    pub id: TaskId,
    /// The number of the attempt.
    pub attempt: Attempt,
    /// Its class.
    pub class: &'a Arc<TaskClass>,
    /// Number of the class in this node.
    pub class_number: u32,
    /// Arguments by value.
    pub payload: &'a [u8],
    /// Arguments by reference.
    pub dependencies: &'a [(Dependency, Slot<Object>)],
    /// The name of the call, if it has one of its own.
    pub own_name: Option<&'a str>,
}

impl Owner {
    /// Depth of a task: the number of tasks of this node it is nested in; the task of a run may have ended.
    #[must_use]
    pub fn depth(&self, task: Slot<Task>) -> u16 {
        self.tasks.get(task).map_or(0, Task::depth)
    }

    /// Facts needed to start a task that was to be sent under this lease, if it still is.
    #[must_use]
    pub fn start_view(&self, task: Slot<Task>, lease: LeaseId) -> Option<StartView<'_>> {
        self.tasks.get(task).filter(|t| t.is_sent_under(lease)).map(|_| self.view(task))
    }

    /// The same for an attempt that was started before. Its task may have ended, and another task may have
    /// its slot and its lease: the arguments of that task must not be taken for those of this attempt.
    #[must_use]
    pub fn view_of_attempt(
        &self,
        slot: Slot<Task>,
        task: TaskId,
        attempt: Attempt,
        lease: LeaseId,
    ) -> Option<StartView<'_>> {
        self.tasks.is_sent(slot, task, lease, attempt).then(|| self.view(slot))
    }

    fn view(&self, slot: Slot<Task>) -> StartView<'_> {
        let task = &self.tasks[slot];
        StartView {
            id: task.id(),
            attempt: task.attempt(),
            class: &self.classes[task.class()].definition,
            class_number: task.class().number(),
            payload: task.payload(),
            dependencies: task.dependencies(),
            own_name: self.tasks.name(slot).map(|name| &**name),
        }
    }

    /// A task as it is sent to another node; its references count as lent to that node. `None` if an argument
    /// is being computed again, or if the task has ended meanwhile.
    pub fn push_view(&mut self, task: Slot<Task>, to: NodeId) -> Option<PushedTask> {
        let entry = self.tasks.get(task)?;
        let name = self.tasks.name(task).cloned();
        let class = self.classes[entry.class()].definition.clone();
        let (task, attempt, payload) = (entry.id(), entry.attempt(), entry.payload().clone());
        if entry.dependencies().iter().any(|(_, slot)| self.references[*slot].value().is_none()) {
            return None;
        }
        let nested = entry.nested().iter().map(|slot| self.references.lend(*slot, to)).collect();
        let push = |(dependency, slot): &(Dependency, Slot<Object>)| {
            // The reference of the client may be out of date: an object whose task ran again on another node
            // has another owner.
            let dependency = Dependency { reference: self.references.lend(*slot, to), ..*dependency };
            let (state, nested) = self.references.remote_state(*slot, to);
            PushedDependency { dependency, state, nested }
        };
        let dependencies = entry.dependencies().iter().map(push).collect();
        Some(PushedTask { task, attempt, class, payload, dependencies, nested, name })
    }

    /// A task that was to be sent stays here: an argument is being computed again.
    pub fn not_sent(&mut self, lease: LeaseId, slot: Slot<Task>, out: &mut Vec<Effect>) {
        // It may have been failed since.
        if self.tasks.get(slot).is_some_and(|t| t.is_sent_under(lease)) {
            self.actors.close(lease);
            self.left_lease(lease, slot);
            self.restore(slot, false, out);
        }
    }

    /// Fails a task whose arguments do not fit into the message that starts it. Returns whether it did.
    pub fn refuse_oversized(
        &mut self,
        now: Now,
        to: NodeId,
        lease: LeaseId,
        slot: Slot<Task>,
        out: &mut Vec<Effect>,
    ) -> bool {
        let Some(task) = self.tasks.get(slot).filter(|t| t.is_sent_under(lease)) else { return false };
        let limit = if to == self.me { LARGE_RECORD_BYTES_MAX } else { PUSH_BYTES_MAX };
        let bytes = self.start_bytes(task, to);
        if bytes <= limit {
            return false;
        }
        let text = format!(
            "its arguments take {bytes} bytes of messages, the limit is {limit}: pass fewer references, or a \
             value that contains them"
        );
        let failure = Arc::new(Failure::new(FailureKind::InvalidArgument, text));
        let ended = Ended { lease, task: task.id(), attempt: task.attempt(), run_ns: 0, node: self.me };
        let outcome = DoneOutcome::Failed { error_type: String::new(), failure };
        self.ended_slot(now, slot, &ended, outcome, out);
        true
    }

    /// Upper bound on the bytes of the message that starts a task, without its class and its payload.
    fn start_bytes(&self, task: &Task, to: NodeId) -> usize {
        let is_pushed = to != self.me;
        let bytes_of = |slot: &Slot<Object>| {
            let object = &self.references[*slot];
            let inline = match object.value() {
                Some(Value::Inline(bytes)) => bytes.len(),
                _ => 0,
            };
            REFERENCE_BYTES + inline + if is_pushed { object.nested().len() * REFERENCE_BYTES } else { 0 }
        };
        let given: usize = task.dependencies().iter().map(|(_, slot)| bytes_of(slot)).sum();
        given + if is_pushed { task.nested().len() * REFERENCE_BYTES } else { 0 }
    }

    /// Takes back tasks that were sent. If they were `started`, they become new attempts. A task that is not
    /// sent under the lease any more is ignored.
    pub fn given_back(
        &mut self,
        lease: LeaseId,
        tasks: &[(TaskId, Attempt)],
        started: bool,
        out: &mut Vec<Effect>,
    ) {
        for (task, attempt) in tasks.iter().rev() {
            if let Some(slot) = self.sent_task(*task, lease, *attempt) {
                let unread = self.node_of(slot).filter(|node| !started && self.take_unread(slot, *node));
                self.left_lease(lease, slot);
                match unread {
                    Some(node) => self.restore_elsewhere(slot, node, out),
                    None => self.restore(slot, started, out),
                }
            }
        }
        self.lease_paused(lease);
        self.actors.close(lease);
    }

    /// Whether nothing more may be started under a lease: it is an attachment, and a call of it came back.
    pub fn is_closed(&self, lease: LeaseId) -> bool {
        self.actors.is_closed(lease)
    }

    /// The task that another node or a worker names, if this attempt is still sent under this lease.
    pub(super) fn sent_task(&self, id: TaskId, lease: LeaseId, attempt: Attempt) -> Option<Slot<Task>> {
        let output = self.references.find(&ObjectId::output(id, 0))?;
        let producer = self.references[output].producer();
        let slot = producer.or_else(|| self.actors.constructor(output))?;
        self.tasks.is_sent(slot, id, lease, attempt).then_some(slot)
    }

    /// Puts a task that was sent back to the head of the common queue, as another attempt if it was started
    /// or may have been. If an argument is being computed again, it waits instead; if it was cancelled or its
    /// job has ended, it fails.
    pub(super) fn restore(&mut self, slot: Slot<Task>, started: bool, out: &mut Vec<Effect>) {
        if self.is_constructor(slot) && self.actor_stops(slot) {
            return self.try_again(slot, out);
        }
        if started {
            self.tasks.next_attempt(slot);
        }
        let task = &self.tasks[slot];
        let failure = match (task.is_cancelled(), self.jobs.contains(task.id().job())) {
            (_, true) => super::jobs::job_ended(),
            (true, false) => Arc::new(Failure::new(FailureKind::Cancelled, "cancelled before it started")),
            (false, false) if self.waits_again(slot, out) => return,
            (false, false) => return self.requeue_first(slot),
        };
        let failure = self.located_failure(slot, &failure, self.me);
        self.fail(slot, &failure, out);
    }

    /// A node does not reach a copy of an object that it was to read for a task, or cannot read one.
    pub fn not_read(&mut self, node: NodeId, object: ObjectId) {
        self.unread = Some((node, object));
    }

    /// Whether a task comes back from a node for such an object.
    fn take_unread(&mut self, slot: Slot<Task>, node: NodeId) -> bool {
        let Some((_, object)) = self.unread.filter(|(reader, _)| *reader == node) else { return false };
        let mut inputs = self.tasks[slot].dependencies().iter();
        let is_for_it = inputs.any(|(_, input)| self.references[*input].id() == object);
        if is_for_it {
            self.unread = None;
        }
        is_for_it
    }

    /// Puts a task back that a node could not start because it does not reach an argument: other nodes come
    /// first. It fails if its timeout is over since the first of them gave it back.
    fn restore_elsewhere(&mut self, slot: Slot<Task>, node: NodeId, out: &mut Vec<Effect>) {
        let task = &self.tasks[slot];
        let is_over = task.is_cancelled() || self.jobs.contains(task.id().job());
        if is_over || task.is_call() || self.is_constructor(slot) {
            return self.restore(slot, false, out);
        }
        if self.waits_again(slot, out) {
            return;
        }
        let timeout_ms = self.class_of(slot).timeout_ms;
        if 0 < timeout_ms && self.tasks.has_come_back_for(slot, timeout_ms) {
            let failure = self.located_failure(slot, &unreached_failure(timeout_ms), node);
            return self.fail(slot, &failure, out);
        }
        self.requeue_elsewhere(slot, node);
    }

    /// Constructs an actor again whose worker was taken away, if it has a restart left.
    fn try_again(&mut self, slot: Slot<Task>, out: &mut Vec<Effect>) {
        if self.take_retry(slot) {
            return self.try_after_pause(slot);
        }
        let gone = || Arc::new(Failure::new(FailureKind::WorkerCrashed, "the worker of the actor is gone"));
        let failure = self.failure_of_group(slot).unwrap_or_else(gone);
        let failure = self.located_failure(slot, &failure, self.me);
        self.fail(slot, &failure, out);
    }

    /// Makes a task wait if some of its arguments are being computed again; true if so.
    fn waits_again(&mut self, slot: Slot<Task>, out: &mut Vec<Effect>) -> bool {
        let mut awaited = Vec::new();
        for (_, object) in self.tasks[slot].dependencies() {
            let entry = &self.references[*object];
            if entry.value().is_none() {
                awaited.push(entry.id());
                self.references.add_dependent(*object, slot);
            }
        }
        if awaited.is_empty() {
            return false;
        }
        self.tasks.sent_to_waiting(slot, awaited.len() as u32);
        // One that was lost with its owner and has another one since was asked for of nobody.
        awaited.into_iter().for_each(|object| self.ask_if_awaited(object, out));
        true
    }

    /// The node to which a task was sent, if it is sent.
    pub(super) fn node_of(&self, slot: Slot<Task>) -> Option<NodeId> {
        let TaskState::Sent { lease } = self.tasks[slot].state() else { return None };
        Some(self.actors.node_of(lease).unwrap_or_else(|| self.schedule.node_of(lease)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Member;
    use crate::owner::Submission;
    use crate::place::View;
    use crate::testing::class;
    use tharsis_types::{ClientId, JobId, Resources, TaskArgs};

    #[test]
    fn an_attempt_does_not_read_the_arguments_of_the_task_that_took_its_slot_and_its_lease() {
        let (me, driver) = (NodeId(1), ClientId(1));
        let mut view =
            View::new(Member { node: me, resources: Resources::default(), labels: Vec::new() }, usize::MAX);
        let mut owner = Owner::new(me, 0);
        let mut out = Vec::new();
        owner.define_class(driver, 0, &class(1));
        let tasks = [0, 1].map(|number| TaskId::root(JobId(1)).child(number));
        let mut started = Vec::new();
        for task in tasks {
            let args = TaskArgs { payload: [1].into(), ..TaskArgs::default() };
            let tokens = [0].into_iter().collect();
            owner.submit(
                Submission {
                    client: driver,
                    parent: None,
                    depth: 0,
                    deadline: None,
                    class: 0,
                    task,
                    tokens,
                    args,
                },
                &mut out,
            );
            out.clear();
            owner.schedule(1, &mut view, &mut out);
            if let [Effect::RequestLease { lease, .. }] = out[..] {
                owner.lease_granted(1, lease, me, &mut Vec::new());
                out.clear();
                owner.schedule(1, &mut view, &mut out);
            }
            let [Effect::Start { lease, task: slot, .. }] = out[..] else { panic!("{out:?}") };
            assert!(owner.view_of_attempt(slot, task, 0, lease).is_some());
            assert!(owner.view_of_attempt(slot, task, 1, lease).is_none(), "another attempt");
            started.push((slot, lease));
            if task == tasks[0] {
                let outcome = DoneOutcome::Returned(Default::default());
                let ended = Ended { lease, task, attempt: 0, run_ns: 1, node: me };
                assert!(owner.ended(1, &ended, outcome, &mut out));
            }
        }
        let [(slot, lease), second] = started[..] else { panic!("{started:?}") };
        assert_eq!((slot, lease), second, "the second task has both");
        assert_eq!(owner.start_view(slot, lease).map(|view| view.id), Some(tasks[1]));
        assert!(owner.view_of_attempt(slot, tasks[0], 0, lease).is_none());
    }
}
