//! Starts: how a task of the ledger, or one that another node pushed, becomes a run.

use super::Node;
use super::runs::{ArgumentValue, Lent, Origin, Run, RunView, Told};
use crate::Now;
use crate::event::{Action, Value};
use crate::owner::{Task, decline, unknown_argument, value_told};
use crate::slab::Slot;
use std::sync::Arc;
use tharsis_types::hash::IdMap;
use tharsis_types::peer::{Message, PushedTask};
use tharsis_types::task::Role;
use tharsis_types::{ClientId, LeaseId, NodeId, TaskId};

/// The parent of a submitted task, as far as its node knows it.
#[derive(Debug, Default)]
pub(super) struct Parent {
    pub(super) task: Option<TaskId>,
    /// Depth at which the new task is nested.
    pub(super) depth: u16,
    /// When its time is over: the task must have ended by then.
    pub(super) deadline: Option<Now>,
}

impl Node {
    /// Message that starts a run in a worker; `None` if the run was taken back meanwhile.
    #[must_use]
    pub fn run(&self, run: u32) -> Option<RunView<'_>> {
        let run = self.runs.get(Slot::from_number(run))?;
        let call = run.call(&self.owner)?;
        let arguments = call.dependencies.iter().map(|(dependency, slot)| {
            let (object, value) = call.argument(&self.owner, *slot);
            let value = match value {
                Some(Value::Inline(bytes)) => ArgumentValue::Inline(bytes),
                // Since it was pinned for the run, its owner may have freed the copy or failed, or is asked
                // anew. A run that is announced and not read would wait in its worker for ever.
                Some(Value::Stored { .. } | Value::Failed(_)) | None => {
                    ArgumentValue::Local(self.store.find_pinned(run.client, object)?)
                }
            };
            Some((dependency.parameter, dependency.reference, value))
        });
        Some(RunView {
            client: run.client,
            task: run.task,
            attempt: run.attempt,
            class_number: call.class_number,
            class: call.class,
            payload: call.payload,
            arguments: arguments.collect::<Option<_>>()?,
            name: call.own_name,
        })
    }

    /// The ledger starts one of its tasks.
    pub(super) fn start(&mut self, to: NodeId, lease: LeaseId, task: Slot<Task>, out: &mut Vec<Action>) {
        if self.owner.is_closed(lease) {
            return self.owner.not_sent(lease, task, &mut self.effects);
        }
        if self.owner.refuse_oversized(self.now, to, lease, task, &mut self.effects) {
            return;
        }
        if to == self.id {
            return self.start_local(lease, task, out);
        }
        match self.owner.push_view(task, to) {
            Some(pushed) => {
                let (job, role) = (pushed.class.job, pushed.class.role);
                self.send(to, Message::TaskPush { lease, task: Box::new(pushed) });
                // The lease of the actor may be that of another job.
                if role == Role::Method {
                    self.involve(job, to);
                }
            }
            None => self.owner.not_sent(lease, task, &mut self.effects),
        }
    }

    /// Starts a task of the ledger under a lease of this node.
    fn start_local(&mut self, lease: LeaseId, task: Slot<Task>, out: &mut Vec<Action>) {
        let key = (self.id, lease);
        // An earlier effect of the same step may have ended the task or the lease.
        let Some(view) = self.owner.start_view(task, lease) else { return };
        let Some(client) = self.leases.worker(key) else { return };
        let run = Run::new(client, key, (view.id, view.attempt), view.class, Origin::Own(task));
        self.stage(run, out);
    }

    /// Another node's task arrived under a lease.
    pub(super) fn start_pushed(
        &mut self,
        from: NodeId,
        lease: LeaseId,
        pushed: PushedTask,
        out: &mut Vec<Action>,
    ) {
        let key = (from, lease);
        // First of all: of a node without a lease here no reference is taken, and no value.
        let Some(client) = self.leases.worker(key).filter(|_| !self.leases.is_closed(key)) else {
            return self.refuse_pushed(from, lease, &pushed);
        };
        let mut references = Vec::new();
        let mut dependencies = Vec::new();
        let mut told = IdMap::default();
        let mut freed = None;
        for needed in pushed.dependencies {
            let reference = needed.dependency.reference;
            let object = reference.object;
            let Some(slot) = self.owner.adopt(reference, Some(from), &mut self.effects) else {
                freed = Some(needed.dependency);
                decline(from, &needed.nested, &mut self.effects);
                continue;
            };
            references.push(slot);
            dependencies.push((needed.dependency, slot));
            if self.owner.is_hearsay(slot, from) {
                for inside in &needed.nested {
                    references.extend(self.owner.adopt(*inside, Some(from), &mut self.effects));
                }
                let (value, holders) = value_told(from, object, needed.state);
                told.insert(object, Told { value, holders });
            } else {
                self.owner.owner_told(from, object, needed.state, &needed.nested, &mut self.effects);
            }
        }
        for reference in &pushed.nested {
            references.extend(self.owner.adopt(*reference, Some(from), &mut self.effects));
        }
        // Each packet brings its own copy of the class: one is kept for all its runs.
        let interned = self.owner.intern_class(&pushed.class);
        let (class_number, class) = (interned.number(), self.owner.definition(interned).clone());
        let (payload, name) = (pushed.payload, pushed.name);
        let lent = Lent { class, class_number, payload, dependencies, told, references, name };
        let attempt = (pushed.task, pushed.attempt);
        let run = Run::new(client, key, attempt, &pushed.class, Origin::Lent(Box::new(lent)));
        match freed {
            None => self.stage(run, out),
            Some(argument) => {
                let slot = self.runs.insert(run);
                let failure = Arc::new(unknown_argument(pushed.task.job(), argument));
                self.arguments_refused(slot, failure, out);
            }
        }
    }

    /// A task comes under a lease that ended, or never was: it goes back, with all that was lent with it.
    fn refuse_pushed(&mut self, from: NodeId, lease: LeaseId, pushed: &PushedTask) {
        let tasks = vec![(pushed.task, pushed.attempt)];
        self.send(from, Message::TaskGiveBack { lease, tasks, started: false });
        for needed in &pushed.dependencies {
            decline(from, &[needed.dependency.reference], &mut self.effects);
            decline(from, &needed.nested, &mut self.effects);
        }
        decline(from, &pushed.nested, &mut self.effects);
    }

    fn stage(&mut self, run: Run, out: &mut Vec<Action>) {
        let client = run.client;
        assert_eq!(self.leases.worker(run.lease), Some(client), "a run is not under its worker's lease");
        let slot = self.runs.insert(run);
        // The calls of an actor keep their order: they wait behind the blocked one, and until they may begin.
        let is_held_up = self.leases.is_blocked(client) || !self.may_begin(&self.runs[slot]);
        if is_held_up && !self.leases.is_host(client) {
            self.return_run(slot, out);
        } else {
            self.arguments_ready(slot, out);
        }
    }

    /// Notes the parent of a submitted task: the run that the worker names, or its first run, which is the
    /// one that has started. If an actor runs several at the same time and names none, nothing is known.
    pub(super) fn note_parent(&mut self, client: ClientId, run: Option<u32>, child: TaskId) -> Parent {
        let parent = match run.map(Slot::from_number) {
            // It may name any run: only those that it was sent count.
            Some(named) => {
                let is_its = |run: &Run| run.client == client && !run.is_staging();
                self.runs.get(named).is_some_and(is_its).then_some(named)
            }
            None => self.runs.first_slot(client).filter(|first| !self.runs[*first].rules.concurrent),
        };
        let Some(parent) = parent else { return Parent::default() };
        let may_go_on = |child| self.owner.may_go_on(child);
        let parent = self.runs.note_child(parent, child, may_go_on);
        let (depth, inherited) = match parent.origin {
            Origin::Own(place) => (self.owner.depth(place), self.owner.deadline_of(place, parent.task)),
            Origin::Lent(_) => (0, None),
        };
        let deadline = parent.due().into_iter().chain(inherited).min();
        Parent { task: Some(parent.task), depth: depth.saturating_add(1), deadline }
    }
}
