//! Lineage: how stored objects were made, for as long as somebody may want them made again.
//!
//! The task of a stored output is *kept* when it has ended. Its arguments stay in the ledger for it, though
//! not always in memory: an argument that can itself be made again, and that only lineage needs, lets go of
//! its bytes; one that was put keeps them. An object whose bytes are gone is made again when somebody wants
//! it, once however many do, and before it what it was made of, as far as that is gone too.
//!
//! What was *dropped* to make room was cheap to make, by this node's choice, so it costs no retry. What was
//! *lost* does. Kept tasks take memory: above the limit the oldest are forgotten, and what only they could
//! make is lost for good if it is lost at all.

use super::references::{Origin, Unkept};
use super::{Effect, Object, Owner, Task, TaskState, because};
use crate::event::Value;
use crate::slab::Slot;
use std::collections::BTreeMap;
use std::sync::Arc;
use tharsis_types::hash::IdMap;
use tharsis_types::{Failure, FailureKind, ObjectId, failure};

/// Kept tasks.
#[derive(Debug)]
pub(super) struct Lineage {
    /// By age.
    kept: BTreeMap<u64, Slot<Task>>,
    clock: u64,
    bytes: usize,
    bytes_max: usize,
    forgotten_count: u64,
}

/// How much the ledger remembers of finished tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineageUsage {
    /// Tasks.
    pub task_count: usize,
    /// Bytes that they take.
    pub bytes: usize,
    /// Tasks that were forgotten because they took more than the limit.
    pub forgotten_count: u64,
}

impl Lineage {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { kept: BTreeMap::new(), clock: 0, bytes: 0, bytes_max, forgotten_count: 0 }
    }

    /// The places of all kept tasks.
    pub(super) fn slots(&self) -> impl Iterator<Item = Slot<Task>> {
        self.kept.values().copied()
    }

    pub(super) fn usage(&self) -> LineageUsage {
        LineageUsage { task_count: self.kept.len(), bytes: self.bytes, forgotten_count: self.forgotten_count }
    }
}

impl Task {
    fn kept_bytes(&self) -> usize {
        let inputs = self
            .inputs
            .as_ref()
            .map_or(0, |i| size_of_val(i.dependencies.as_slice()) + size_of_val(i.nested.as_slice()));
        size_of::<Self>() + self.payload.len() + inputs
    }

    fn input_slots(&self) -> Vec<Slot<Object>> {
        let inputs = self.inputs.as_deref();
        inputs.map_or_else(Vec::new, |i| {
            i.dependencies.iter().map(|(_, slot)| *slot).chain(i.nested.iter().copied()).collect()
        })
    }

    fn dependency_slots(&self) -> Vec<Slot<Object>> {
        let inputs = self.inputs.as_deref();
        inputs.map_or_else(Vec::new, |i| i.dependencies.iter().map(|(_, slot)| *slot).collect())
    }

    pub(super) fn output_slots(&self) -> impl Iterator<Item = Option<Slot<Object>>> {
        std::iter::once(self.first_output).chain(self.more_outputs.iter().flatten().copied())
    }
}

impl Owner {
    /// How much is remembered of finished tasks.
    #[must_use]
    pub fn lineage_usage(&self) -> LineageUsage {
        self.lineage.usage()
    }

    /// Time it took to make an object of this node's ledger, if its function is declared pure, and it can be
    /// made again from what is there and was never dropped before.
    #[must_use]
    pub fn recompute_ns(&self, object: ObjectId) -> Option<u64> {
        let entry = self.references.by_id(&object).filter(|o| !o.origin().was_dropped())?;
        let task = self.tasks.get(entry.origin().lineage_task()?)?;
        let is_there = |slot: &Slot<Object>| self.references[*slot].is_there();
        let pure = self.classes.get(task.class).is_some_and(|class| class.definition.pure);
        (pure && self.is_kept(task) && task.input_slots().iter().all(is_there)).then_some(task.run_ns)
    }

    /// Keeps a task that has ended: its arguments stay for it.
    pub(super) fn keep(&mut self, slot: Slot<Task>, out: &mut Vec<Effect>) {
        self.lineage.clock += 1;
        let since = self.lineage.clock;
        let Some(task) = self.tasks.get_mut(slot) else { return };
        task.state = TaskState::Kept { since };
        self.lineage.bytes += task.kept_bytes();
        let (inputs, outputs) = (task.input_slots(), task.output_slots().flatten().collect::<Vec<_>>());
        self.lineage.kept.insert(since, slot);
        inputs.into_iter().for_each(|input| self.references.add_need(input));
        for output in outputs {
            let old = self.references.set_lineage_task(output, slot);
            let id = self.references[output].id();
            // Its task was submitted anew while the ledger still kept it.
            for input in old.map(|old| self.output_gone(id, output, old)).unwrap_or_default() {
                self.free_if_unused(input, out);
            }
        }
    }

    /// Whether a task's outputs are worth remembering how to make.
    pub(super) fn is_worth_keeping(&self, slot: Slot<Task>) -> bool {
        let Some(task) = self.tasks.get(slot) else { return false };
        let retried = self.class_of(slot).is_some_and(|class| class.max_retries != 0);
        retried && !task.cancelled && !self.ended_jobs.contains(task.id.job())
    }

    /// Forgets the oldest kept tasks until the others take no more than they may.
    pub(super) fn bound_lineage(&mut self, out: &mut Vec<Effect>) {
        while self.lineage.bytes_max < self.lineage.bytes {
            let Some((_, slot)) = self.lineage.kept.first_key_value() else { return };
            let slot = *slot;
            self.lineage.forgotten_count += 1;
            self.forget_task(slot, Unkept::Forgotten, out);
        }
    }

    /// A task that has ended is cancelled: what it made stays, and is not made again if it is lost. What was
    /// dropped to make room was not lost, so that such a task stays kept.
    pub(super) fn cancel_kept(&mut self, slot: Slot<Task>, out: &mut Vec<Effect>) {
        let Some(task) = self.tasks.get(slot) else { return };
        let is_there = |output: Slot<Object>| self.references[output].is_there();
        if task.output_slots().flatten().all(is_there) {
            self.forget_task(slot, Unkept::Cancelled, out);
        }
    }

    /// Forgets a kept task: what it made cannot be made again.
    pub(super) fn forget_task(&mut self, slot: Slot<Task>, why: Unkept, out: &mut Vec<Effect>) {
        let Some(task) = self.tasks.get(slot).filter(|t| self.is_kept(t)) else { return };
        for output in task.output_slots().flatten().collect::<Vec<_>>() {
            self.references.forget_lineage_task(output, slot, Some(why));
        }
        for input in self.take_kept(slot) {
            self.free_if_unused(input, out);
        }
    }

    /// A task that ran again ends without values: it is not kept.
    pub(super) fn forget_lineage_of(&mut self, slot: Slot<Task>, outputs: &[Slot<Object>]) {
        if self.lineage.clock == 0 {
            // No task was ever kept: most programs return nothing large.
            return;
        }
        for output in outputs {
            self.references.forget_lineage_task(*output, slot, None);
        }
    }

    /// An entry with a lineage task is gone: so is that task with its last output. Returns arguments to look at.
    pub(super) fn output_gone(
        &mut self,
        object: ObjectId,
        place: Slot<Object>,
        lineage_task: Slot<Task>,
    ) -> Vec<Slot<Object>> {
        let Some(task) = self.tasks.get_mut(lineage_task) else { return Vec::new() };
        if task.id != object.task {
            return Vec::new();
        }
        if task.first_output == Some(place) {
            task.first_output = None;
        }
        for output in task.more_outputs.iter_mut().flatten().filter(|output| **output == Some(place)) {
            *output = None;
        }
        let is_last = task.output_slots().all(|output| output.is_none());
        if is_last { self.take_kept(lineage_task) } else { Vec::new() }
    }

    /// Takes a kept task out of the ledger; returns its arguments, which it needs no more.
    fn take_kept(&mut self, slot: Slot<Task>) -> Vec<Slot<Object>> {
        if !self.tasks.get(slot).is_some_and(|t| self.is_kept(t)) {
            return Vec::new();
        }
        let inputs = self.unkeep(slot);
        self.tasks.remove(slot);
        inputs
    }

    /// A kept task is kept no more; returns its arguments.
    fn unkeep(&mut self, slot: Slot<Task>) -> Vec<Slot<Object>> {
        let Some(task) = self.tasks.get(slot) else { return Vec::new() };
        let TaskState::Kept { since } = task.state else { return Vec::new() };
        self.lineage.kept.remove(&since);
        self.lineage.bytes -= task.kept_bytes();
        let inputs = task.input_slots();
        inputs.iter().for_each(|input| self.references.drop_need(*input));
        inputs
    }

    fn is_kept(&self, task: &Task) -> bool {
        matches!(task.state, TaskState::Kept { .. })
    }

    /// Has an object whose bytes are gone made again, and before it what that needs. What cannot be made
    /// fails, with the cause for which the object was lost.
    pub(super) fn recompute(&mut self, slot: Slot<Object>, cause: Option<&str>, out: &mut Vec<Effect>) {
        let mut wanted = vec![slot];
        while let Some(object) = wanted.pop() {
            // Another one that cannot be computed may have freed it with the tasks that it failed.
            if self.references.get(object).is_none_or(|o| o.producer().is_some()) {
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

    /// The task that makes an object again, its retry taken.
    fn lineage_task_for(&mut self, slot: Slot<Object>) -> Result<Slot<Task>, Failure> {
        let object = &self.references[slot];
        let (id, origin) = (object.id(), object.origin());
        let Some(lineage_task) = origin.lineage_task() else { return Err(self.no_lineage(id, origin)) };
        let Some(task) = self.tasks.get_mut(lineage_task) else { return Err(self.no_lineage(id, origin)) };
        if self.ended_jobs.contains(task.id.job()) {
            return Err(Failure::new(FailureKind::Shutdown, "the driver of the job is gone"));
        }
        if !origin.is_dropped() {
            if task.retries_left == 0 {
                let text = format!("object {id} was lost, and its task has no retries left");
                let failure = Failure::new(FailureKind::RetriesExhausted, text);
                return Err(self.located_failure(lineage_task, &failure, self.me).as_ref().clone());
            }
            task.retries_left -= i32::from(task.retries_left > 0);
        }
        task.attempt += 1;
        Ok(lineage_task)
    }

    fn no_lineage(&self, id: ObjectId, origin: Origin) -> Failure {
        match origin.unkept() {
            Some(Unkept::Cancelled) => {
                let text = format!("object {id} was lost, and its task was cancelled: it does not run again");
                let task = failure::Origin { task: Some(id.task), ..failure::Origin::default() };
                return Failure::new(FailureKind::Cancelled, text).at(task);
            }
            Some(Unkept::Forgotten) => {
                let limit = match self.lineage.bytes_max {
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

    /// A kept task runs again; arguments whose bytes are gone are appended to `wanted`.
    fn run_again(&mut self, slot: Slot<Task>, wanted: &mut Vec<Slot<Object>>, out: &mut Vec<Effect>) {
        let inputs = self.unkeep(slot);
        self.expect_outputs(slot);
        let mut missing = 0;
        inputs.into_iter().for_each(|input| self.references.add_use(input));
        // References inside arguments are asked for by the task itself, if it wants them.
        for input in self.tasks.get(slot).map(Task::dependency_slots).unwrap_or_default() {
            self.references.clear_gone(input);
            if self.references[input].value().is_none() {
                missing += 1;
                self.references.add_dependent(input, slot);
                wanted.push(input);
            }
        }
        if let Some(task) = self.tasks.get_mut(slot) {
            task.state = TaskState::Waiting { missing };
            *self.unfinished.entry(task.id.job()).or_default() += 1;
        }
        let failed = self.failed_input(slot);
        match failed {
            Some(cause) => self.fail_dependent(slot, &cause, out),
            None if missing == 0 => self.enqueue_first(slot),
            None => {}
        }
    }

    fn failed_input(&self, slot: Slot<Task>) -> Option<Arc<Failure>> {
        let inputs = self.tasks.get(slot)?.inputs.as_ref()?;
        let mut values = inputs.dependencies.iter().filter_map(|(_, s)| self.references[*s].value());
        values.find_map(|value| match value {
            Value::Failed(failure) => Some(failure.clone()),
            _ => None,
        })
    }

    /// The outputs of a task that runs again wait for it; those that were freed get an entry that goes when
    /// it ends.
    fn expect_outputs(&mut self, slot: Slot<Task>) {
        let Some(task) = self.tasks.get(slot) else { return };
        let (id, places) = (task.id, task.output_slots().collect::<Vec<_>>());
        let mut outputs = Vec::with_capacity(places.len());
        for (index, place) in places.into_iter().enumerate() {
            let output = ObjectId::output(id, index as u32);
            let known = place.or_else(|| self.references.find(&output));
            let place = known.unwrap_or_else(|| self.references.insert_output(output));
            self.references.set_producer(place, slot);
            self.references.clear_gone(place);
            outputs.push(Some(place));
        }
        if let Some(task) = self.tasks.get_mut(slot)
            && let Some((first, more)) = outputs.split_first()
        {
            task.first_output = *first;
            task.more_outputs = (!more.is_empty()).then(|| more.into());
        }
    }

    /// Asserts that kept tasks are those that say so; returns how many of them need each object.
    pub(super) fn check_lineage(&self) -> IdMap<Slot<Object>, u32> {
        let mut needed: IdMap<Slot<Object>, u32> = IdMap::default();
        let mut bytes = 0;
        for (since, slot) in &self.lineage.kept {
            let task = self.tasks.get(*slot);
            let is_kept = task.is_some_and(|t| t.state == TaskState::Kept { since: *since });
            assert!(is_kept, "{slot:?} is not that of a kept task: {task:?}");
            let Some(task) = task else { continue };
            task.input_slots().into_iter().for_each(|input| *needed.entry(input).or_default() += 1);
            bytes += task.kept_bytes();
        }
        assert_eq!(bytes, self.lineage.bytes, "bytes of kept tasks");
        let count = self.tasks.iter().filter(|(_, t)| self.is_kept(t)).count();
        assert_eq!(count, self.lineage.kept.len(), "kept tasks");
        needed
    }
}
