//! State of a task or an object, and the reason why it waits, in words for people, as far as the ledger
//! knows.

use super::schedule::Shape;
use super::tasks::TaskState;
use super::{Object, Owner, Task};
use crate::event::Value;
use crate::journal::Entry;
use crate::slab::Slot;
use crate::{MS, Now};
use tharsis_types::{LeaseId, NodeId, ObjectId, Resources, TaskClass, TaskId};

/// Maximum number of arguments that are told one by one.
const ARGUMENTS_TOLD_MAX: usize = 8;
/// Maximum number of nodes and of clients that are told one by one.
const HOLDERS_TOLD_MAX: usize = 8;

/// The ledger's knowledge of a task.
#[derive(Debug)]
pub(crate) struct TaskStory {
    /// In words.
    pub(crate) lines: Vec<String>,
    /// The node to which it was sent, and the lease.
    pub(crate) sent: Option<(NodeId, LeaseId)>,
    /// Resources it needs, if it is queued.
    pub(crate) demand: Option<Resources>,
    /// The shape whose leases it needs or has.
    shape: Option<Slot<Shape>>,
}

/// The ledger's knowledge of an object.
#[derive(Debug)]
pub(crate) struct ObjectStory {
    /// In words.
    pub(crate) lines: Vec<String>,
    /// The task that computes it.
    pub(crate) producer: Option<TaskId>,
}

/// Tasks.
impl Owner {
    /// State of a task; `None` if the ledger does not have it.
    pub(crate) fn task_story(&self, now: Now, id: TaskId) -> Option<TaskStory> {
        let slot = self.find_task(id)?;
        let (task, class) = (&self.tasks[slot], self.class_of(slot));
        let shape = self.classes[task.class()].shape;
        let mut lines = vec![format!("task {id}: {}, attempt {}", called(class), task.attempt())];
        let ms = now.saturating_sub(task.since()) / MS;
        lines.push(format!("{} ({ms} ms)", self.state_of(slot)));
        if let Some(until) = self.tasks.pauses.until(slot) {
            lines.push(format!("it is tried again in {} ms", until.saturating_sub(now) / MS));
        }
        let (mut sent, mut demand) = (None, None);
        let needs_lease =
            !task.is_call() && matches!(task.state(), TaskState::Queued | TaskState::Sent { .. });
        match task.state() {
            TaskState::Waiting { .. } => lines.extend(self.missing_arguments(task)),
            TaskState::Queued if task.is_call() => {
                lines.push("it stands in the line of its caller, or its actor is not reached".to_owned());
            }
            TaskState::Queued => {
                lines.extend(self.schedule.describe(shape));
                demand = Some(self.schedule.resources(shape).clone());
            }
            TaskState::Sent { lease } => sent = self.node_of(slot).map(|node| (node, lease)),
            TaskState::Kept { .. } | TaskState::Tombstone => {}
        }
        if task.is_cancelled() {
            lines.push("a client cancelled it".to_owned());
        }
        Some(TaskStory { lines, sent, demand, shape: needs_lease.then_some(shape) })
    }

    /// The remembered history of a task.
    pub(crate) fn task_past(&self, id: TaskId) -> impl Iterator<Item = Entry> {
        self.tasks.past(id)
    }

    /// The remembered history of the leases of a task's shape.
    pub(crate) fn shape_past(&self, story: &TaskStory) -> impl Iterator<Item = Entry> {
        story.shape.into_iter().flat_map(|shape| self.schedule.past(shape))
    }

    /// The tasks that make the arguments for which a task waits.
    pub(crate) fn awaited_by(&self, id: TaskId) -> Vec<TaskId> {
        let Some(slot) = self.find_unfinished(id) else { return Vec::new() };
        let TaskState::Waiting { .. } = self.tasks[slot].state() else { return Vec::new() };
        let inputs = self.tasks[slot].dependencies().iter().map(|(_, object)| &self.references[*object]);
        let missing = inputs.filter(|object| object.value().is_none());
        missing.filter_map(|object| object.producer()).map(|producer| self.tasks[producer].id()).collect()
    }

    /// The actor of a call that has its arguments and is not sent, by the task that constructed it.
    pub(crate) fn actor_of_call(&self, id: TaskId) -> Option<TaskId> {
        let slot = self.find_unfinished(id)?;
        let task = &self.tasks[slot];
        let in_line = task.is_call() && task.state() == TaskState::Queued;
        in_line.then(|| self.references[self.actors.actor_of(slot)].id().task)
    }

    /// Whether a task of this ledger has not ended.
    pub(crate) fn is_unfinished(&self, id: TaskId) -> bool {
        self.find_unfinished(id).is_some()
    }

    /// A call of an actor in a few words: its name and the actor's; `None` for other tasks.
    pub(crate) fn called(&self, id: TaskId) -> Option<String> {
        let slot = self.find_unfinished(id).filter(|slot| self.tasks[*slot].is_call())?;
        let actor = self.actors.actor_of(slot);
        let of = match self.actors.constructor(actor) {
            Some(constructor) => {
                format!("{} of actor {}", self.name_of(constructor), self.references[actor].id().task)
            }
            None => format!("actor {}", self.references[actor].id().task),
        };
        Some(format!("task {id} ({}) of {of}", self.name_of(slot)))
    }

    /// A task by its id, if it has not ended: its outputs name it. An actor that lives is not found.
    fn find_unfinished(&self, id: TaskId) -> Option<Slot<Task>> {
        let producer = self.references.by_id(&ObjectId::output(id, 0))?.producer()?;
        (self.tasks[producer].id() == id).then_some(producer)
    }

    /// A task by its id. Only people look up tasks by id, so there is no table for it.
    fn find_task(&self, id: TaskId) -> Option<Slot<Task>> {
        let output = self.references.by_id(&ObjectId::output(id, 0));
        let made_by = output.and_then(|o| o.producer().or(o.origin().lineage_task()));
        let known = made_by.filter(|slot| self.tasks[*slot].id() == id);
        known.or_else(|| self.tasks.iter().find(|(_, task)| task.id() == id).map(|(slot, _)| slot))
    }

    /// The state of a task in a few words.
    fn state_of(&self, slot: Slot<Task>) -> String {
        let task = &self.tasks[slot];
        match task.state() {
            TaskState::Waiting { .. } if self.tasks.pauses.until(slot).is_some() => {
                "waiting: its last attempt failed, and there is a pause before the next one".to_owned()
            }
            TaskState::Waiting { .. } if task.is_group() => {
                "a placement group: the call stays while the group does".to_owned()
            }
            TaskState::Waiting { missing } => {
                format!("waiting: {missing} of {} arguments without a value", task.dependencies().len())
            }
            TaskState::Queued => "queued, all its arguments are there".to_owned(),
            TaskState::Sent { lease } => {
                let node = self.actors.node_of(lease).unwrap_or_else(|| self.schedule.node_of(lease));
                format!("sent to node {node} under lease {}", lease.0)
            }
            TaskState::Kept { .. } => {
                "ended, and kept to compute its outputs again if they are lost".to_owned()
            }
            TaskState::Tombstone => "ended in its queue".to_owned(),
        }
    }

    /// The arguments that a task waits for, and the reason why each has no value.
    fn missing_arguments(&self, task: &Task) -> Vec<String> {
        let is_missing = |slot: &Slot<Object>| self.references[*slot].value().is_none();
        let missing = task.dependencies().iter().filter(|(_, slot)| is_missing(slot));
        let line = |(dependency, slot): &(tharsis_types::Dependency, Slot<Object>)| {
            let object = &self.references[*slot];
            format!(
                "argument {} is {}, {}",
                dependency.parameter,
                object.id(),
                self.why_without_value(object)
            )
        };
        missing.take(ARGUMENTS_TOLD_MAX).map(line).collect()
    }
}

/// Objects.
impl Owner {
    /// State of an object; `None` if the ledger does not know it.
    pub(crate) fn object_story(&self, id: ObjectId) -> Option<ObjectStory> {
        let object = self.references.by_id(&id)?;
        let what = match object.value() {
            None => self.why_without_value(object),
            Some(Value::Failed(failure)) => format!("failed: {:?}: {}", failure.kind, failure.message),
            Some(Value::Inline(bytes)) => format!("has a value of {} bytes, kept in the ledger", bytes.len()),
            Some(Value::Stored { len }) => {
                format!("has a value of {len} bytes, in the stores of {}", nodes(object.copies()))
            }
        };
        let mut lines = vec![format!("object {id}: {what}")];
        if let Some(made_by) = self.holders(id).and_then(|holders| holders.made_by) {
            lines.push(format!("made by {} called at {}", made_by.name, known(&made_by.call_site)));
        }
        lines.extend(self.kept_by(object));
        let producer = object.producer().map(|slot| self.tasks[slot].id());
        Some(ObjectStory { lines, producer })
    }

    /// The remembered history of an object.
    pub(crate) fn object_past(&self, id: ObjectId) -> impl Iterator<Item = Entry> {
        self.references.past(id)
    }

    /// The reason why an object has no value.
    fn why_without_value(&self, object: &Object) -> String {
        if let Some(owner) = object.owner() {
            return if self.is_gone(owner) {
                format!("of node {owner}, which is gone")
            } else {
                format!("of node {owner}, which has not said that it has a value")
            };
        }
        match object.producer() {
            Some(slot) => {
                let (task, name) = (&self.tasks[slot], self.name_of(slot));
                format!("computed by task {} ({name}), {}", task.id(), self.state_of(slot))
            }
            None if object.origin().lineage_task().is_some() => {
                "not in memory, and computed again when somebody wants it".to_owned()
            }
            None => "without a value, and nothing computes it".to_owned(),
        }
    }

    /// References to an object, in words.
    fn kept_by(&self, object: &Object) -> Option<String> {
        let holders = self.references.holders(object);
        let clients = holders.clients.iter().take(HOLDERS_TOLD_MAX);
        let mut parts: Vec<_> = clients.map(|(client, _)| format!("client {}", client.0)).collect();
        let borrowers = holders.borrowers.iter().take(HOLDERS_TOLD_MAX);
        parts.extend(borrowers.map(|(node, count)| format!("node {node} ({count} times)")));
        if 0 < holders.uses {
            parts.push(format!("{} tasks or values", holders.uses));
        }
        if 0 < holders.lineage {
            parts.push(format!("{} kept tasks", holders.lineage));
        }
        (!parts.is_empty()).then(|| format!("kept by {}", parts.join(", ")))
    }
}

/// The name of a function and where it was called.
fn called(class: &TaskClass) -> String {
    format!("{} called at {}", class.name, known(&class.call_site))
}

fn known(call_site: &str) -> &str {
    if call_site.is_empty() { "an unknown place" } else { call_site }
}

/// Nodes in one phrase.
fn nodes(all: &[NodeId]) -> String {
    match all {
        [] => "no node".to_owned(),
        _ => {
            let names: Vec<_> =
                all.iter().take(HOLDERS_TOLD_MAX).map(|node| format!("node {node}")).collect();
            let untold = all.len() - names.len();
            let more = if 0 < untold { format!(" and {untold} more") } else { String::new() };
            format!("{}{more}", names.join(", "))
        }
    }
}
