//! Calls of clients: a task and its outputs are entered, and it waits for its arguments.

use super::calls::call_refused;
use super::grouped::removed;
use super::tasks::{Inputs, NewTask, OutputSlots};
use super::{Effect, Object, Owner, Task, dependency_failure};
use crate::Now;
use crate::event::{Tokens, Value};
use crate::slab::Slot;
use std::sync::Arc;
use tharsis_types::task::Role;
use tharsis_types::{ClientId, Dependency, Failure, FailureKind, JobId, ObjectId, Placement, RefId, TaskId};

/// A submission as the ledger needs it.
#[derive(Debug)]
pub struct Submission {
    /// The submitter.
    pub client: ClientId,
    /// The task that calls, if the submitter runs tasks that have nothing to do with each other. The calls of
    /// an actor by one submitter and task keep their order.
    pub parent: Option<TaskId>,
    /// Depth: the number of tasks of this node in which it is nested, as far as the node knows.
    pub depth: u16,
    /// When the time of the task that called it is over.
    pub deadline: Option<Now>,
    /// The client's number of the class.
    pub class: u32,
    /// Id of the task.
    pub task: TaskId,
    /// Names of the outputs in the client.
    pub tokens: Tokens,
    /// The arguments.
    pub args: tharsis_types::TaskArgs,
}

impl Owner {
    /// A client calls a function.
    pub fn submit(&mut self, submission: Submission, out: &mut Vec<Effect>) {
        let Submission { client, parent, depth, deadline, class: number, task: id, tokens, args } =
            submission;
        let count = tokens.len() as u32;
        let is_fresh = (0..count).all(|index| self.references.find(&ObjectId::output(id, index)).is_none());
        if !is_fresh && (self.is_known(id, count) || self.is_under_way(id, count)) {
            self.share_outputs(client, id, &tokens, out);
            return;
        }
        self.totals.submitted += 1;
        let class = self.callable_class((client, number), id.job(), tokens.len());
        let outputs = self.insert_outputs(client, id, &tokens, is_fresh, out);
        let class = match class {
            Ok(class) => class,
            Err(failure) => {
                self.totals.failed += 1;
                for output in outputs {
                    self.fill(output, Value::Failed(failure.clone()), None, Vec::new(), out);
                }
                return;
            }
        };
        if outputs.is_empty() {
            return;
        }
        let definition = Arc::clone(&self.classes[class].definition);
        let (retries, role) = (definition.max_retries, definition.role);
        let (payload, outputs) = (args.payload, &outputs[..]);
        let new = NewTask { id, class, retries, depth, priority: 0, member: None, payload, outputs };
        let slot = self.tasks.insert(new);
        if let Some(name) = args.name {
            self.tasks.set_name(slot, name);
        }
        outputs.iter().for_each(|output| self.references.set_producer(*output, slot));
        self.set_deadline(slot, deadline);
        if self.classes[class].definition.detached {
            self.detach(slot);
        }
        if let Placement::Reserve(spec) = &definition.placement {
            return self.enter_group(slot, spec);
        }
        let is_inside = matches!(definition.placement, Placement::Group { .. });
        if args.dependencies.is_empty() && args.nested.is_empty() && role != Role::Method && !is_inside {
            return self.enqueue(slot);
        }
        // Asking for an argument may fail it at once. The task is woken only when all its arguments are
        // entered.
        let held = self.wakes.hold();
        let missing = self.add_inputs(slot, &args.dependencies, &args.nested, out);
        let missing = match role {
            Role::Method => {
                missing.and_then(|missing| self.enter_line(slot, (client, parent)).map(|()| missing))
            }
            Role::Task | Role::Constructor => missing,
        };
        self.inputs_entered(slot, missing, out);
        self.wake(held, out);
    }

    /// The references of a task are noted, of which it waits for so many: it is queued if for none, and fails
    /// with their failure.
    pub(super) fn inputs_entered(
        &mut self,
        slot: Slot<Task>,
        missing: Result<u32, Failure>,
        out: &mut Vec<Effect>,
    ) {
        let missing = match self.class_of(slot).placement {
            Placement::Group { group, .. } => {
                missing.and_then(|missing| self.enter_known(slot, group).map(|()| missing))
            }
            _ => missing,
        };
        match missing {
            Err(failure) => self.fail(slot, &Arc::new(failure), out),
            Ok(0) => self.enqueue(slot),
            Ok(_) => {}
        }
    }

    /// Whether all outputs of a task have values or will get them, so that a call of it needs no run.
    fn is_known(&self, id: TaskId, count: u32) -> bool {
        let is_live = |index| {
            let output = self.references.by_id(&ObjectId::output(id, index));
            output.is_some_and(|output| self.references.is_live(output))
        };
        (0..count).all(is_live)
    }

    /// Whether a task of this id is under way. Then all its outputs are known, unless the client has given
    /// the same id to two calls with different numbers of results: the first call stands.
    fn is_under_way(&self, id: TaskId, count: u32) -> bool {
        let output = |index| self.references.by_id(&ObjectId::output(id, index));
        (0..count).filter_map(output).any(|output| output.producer().is_some())
    }

    /// Entries for the outputs of a task; unless all are fresh, entries of an earlier run are used again.
    fn insert_outputs(
        &mut self,
        client: ClientId,
        id: TaskId,
        tokens: &[u64],
        is_fresh: bool,
        out: &mut Vec<Effect>,
    ) -> OutputSlots {
        let insert = |(index, token): (usize, &u64)| {
            let object = ObjectId::output(id, index as u32);
            if let Some(slot) = if is_fresh { None } else { self.references.find(&object) } {
                self.references.take_over(slot, out);
                self.references.held(client, RefId { object, owner: self.me }, out);
                self.references.add_fetcher(slot, client, *token);
                return slot;
            }
            self.references.insert_made(object, client, *token)
        };
        tokens.iter().enumerate().map(insert).collect()
    }

    /// A task that is known already is submitted again (its parent runs again): the client shares its
    /// outputs.
    fn share_outputs(&mut self, client: ClientId, id: TaskId, tokens: &[u64], out: &mut Vec<Effect>) {
        for (index, token) in tokens.iter().enumerate() {
            self.share_output(client, ObjectId::output(id, index as u32), *token, out);
        }
    }

    /// A client shares an output under a name of its own.
    pub(super) fn share_output(
        &mut self,
        client: ClientId,
        object: ObjectId,
        token: u64,
        out: &mut Vec<Effect>,
    ) {
        let Some(slot) = self.references.held(client, RefId { object, owner: self.me }, out) else {
            // The task has no such output, or asking for another one has freed it.
            out.push(Effect::Deliver { client, token, object });
            return;
        };
        match self.references[slot].value() {
            None => {
                self.references.add_fetcher(slot, client, token);
                self.ask_for(slot, out);
            }
            Some(_) => out.push(Effect::Deliver { client, token, object }),
        }
    }

    /// Notes the references of a call; returns the number of arguments that it has to wait for, or its
    /// failure.
    fn add_inputs(
        &mut self,
        slot: Slot<Task>,
        dependencies: &[Dependency],
        nested: &[RefId],
        out: &mut Vec<Effect>,
    ) -> Result<u32, Failure> {
        let mut inputs = Inputs { dependencies: Vec::with_capacity(dependencies.len()), nested: Vec::new() };
        let (mut missing, mut failed) = (0, None);
        for dependency in dependencies {
            let Some(object) = self.references.adopt(dependency.reference, None, out) else {
                failed = Some(unknown_argument(self.tasks[slot].id().job(), *dependency));
                continue;
            };
            inputs.dependencies.push((*dependency, object));
            match self.enter_input(slot, dependency.parameter, object, out) {
                Ok(count) => missing += count,
                Err(failure) => failed = Some(failure),
            }
        }
        inputs.nested = self.references.adopt_nested(nested, None, out);
        self.tasks.set_inputs(slot, inputs, missing);
        failed.map_or(Ok(missing), Err)
    }

    /// A task takes an argument: returns 1 if it has to wait for it, or the failure if it has failed.
    pub(super) fn enter_input(
        &mut self,
        slot: Slot<Task>,
        parameter: u16,
        object: Slot<Object>,
        out: &mut Vec<Effect>,
    ) -> Result<u32, Failure> {
        self.lose_orphan(object, out);
        match self.references[object].value() {
            Some(Value::Failed(cause)) => Err(dependency_failure(parameter, cause)),
            Some(_) => Ok(0),
            None => {
                self.references.add_dependent(object, slot);
                self.ask_for(object, out);
                Ok(1)
            }
        }
    }
}

/// The failure of a task of a job one of whose arguments its owner, which is this node, does not know.
pub(crate) fn unknown_argument(job: JobId, argument: Dependency) -> Failure {
    let object = argument.reference.object;
    let unknown = if job == object.task.job() {
        Failure::new(FailureKind::ObjectFreed, format!("argument {object} was freed"))
    } else {
        let text = format!("argument {object} belongs to another session");
        Failure::new(FailureKind::InvalidReference, text)
    };
    match argument.parameter {
        Dependency::ACTOR => call_refused(&unknown),
        Dependency::GROUP => removed(),
        _ => unknown,
    }
}
