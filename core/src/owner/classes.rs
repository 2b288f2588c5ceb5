//! Task classes by number, and how they are let go with their job.
//!
//! Tasks name their class by a number of this node, and so do the workers that run them. A number is used
//! again only after its job has ended and nothing of the job is left; workers run tasks of one job alone, so
//! none of them can take a class for another one.

use super::schedule::Shape;
use super::{Owner, TRIM_AFTER};
use crate::Now;
use crate::slab::{Slab, Slot};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tharsis_types::hash::IdMap;
use tharsis_types::{ClientId, Failure, FailureKind, JobId, TaskClass};

/// What calls from one place with the same options have in common.
#[derive(Debug)]
pub struct Class {
    pub(super) definition: Arc<TaskClass>,
    pub(super) shape: Slot<Shape>,
}

/// The classes of a node.
#[derive(Debug, Default)]
pub(super) struct Classes {
    entries: Slab<Class>,
    by_definition: IdMap<Arc<TaskClass>, Slot<Class>>,
    /// The numbers that clients use; of a class that no call may use, the reason.
    of_client: BTreeMap<(ClientId, u32), Result<Slot<Class>, Arc<Failure>>>,
}

impl Classes {
    pub(super) fn get(&self, class: Slot<Class>) -> Option<&Class> {
        self.entries.get(class)
    }

    fn forget_client(&mut self, client: ClientId) {
        let mut of_client = self.of_client.split_off(&(client, 0));
        let mut others = match client.0.checked_add(1) {
            Some(next) => of_client.split_off(&(ClientId(next), 0)),
            None => BTreeMap::new(),
        };
        self.of_client.append(&mut others);
    }

    fn forget_jobs(&mut self, is_over: impl Fn(JobId) -> bool) {
        let of_job = self.entries.iter().filter(|(_, class)| is_over(class.definition.job));
        for class in of_job.map(|(number, _)| number).collect::<Vec<_>>() {
            if let Some(class) = self.entries.remove(class) {
                self.by_definition.remove(&class.definition);
            }
        }
    }
}

impl Owner {
    /// The node-wide number of a class.
    pub fn intern_class(&mut self, definition: &Arc<TaskClass>) -> Slot<Class> {
        if let Some(known) = self.classes.by_definition.get(definition) {
            return *known;
        }
        if self.ended_jobs.contains(definition.job) {
            // Late news of a job that ended.
            self.ending.insert(definition.job);
        }
        let shape = self.shape_of(definition);
        let class = self.classes.entries.insert(Class { definition: definition.clone(), shape });
        self.classes.by_definition.insert(definition.clone(), class);
        class
    }

    /// Names a class for later submissions of a client.
    pub fn define_class(&mut self, client: ClientId, number: u32, definition: &Arc<TaskClass>) {
        let class = match self.ended_jobs.contains(definition.job) {
            true => Err(super::tasks::job_ended()),
            false => Ok(self.intern_class(definition)),
        };
        self.classes.of_client.insert((client, number), class);
    }

    /// Names a class that no call may use.
    pub fn refuse_class(&mut self, client: ClientId, number: u32, failure: Arc<Failure>) {
        self.classes.of_client.insert((client, number), Err(failure));
    }

    /// The class of a client's number, if a call with so many results may use it.
    pub(super) fn callable_class(
        &self,
        client: ClientId,
        number: u32,
        returns: usize,
    ) -> Result<Slot<Class>, Arc<Failure>> {
        let unknown = |text: String| Arc::new(Failure::new(FailureKind::Internal, text));
        let Some(class) = self.classes.of_client.get(&(client, number)) else {
            return Err(unknown(format!("task class {number} was never named")));
        };
        let class = class.clone()?;
        match self.classes.get(class).map(|known| known.definition.as_ref()) {
            Some(known) if self.ended_jobs.contains(known.job) => Err(super::tasks::job_ended()),
            Some(known) if known.returns as usize == returns => Ok(class),
            Some(known) => {
                let text = format!("{returns} references for {} returns", known.returns);
                Err(Arc::new(Failure::new(FailureKind::InvalidArgument, text)))
            }
            // Its job has ended, and this client is about to.
            None => Err(super::tasks::job_ended()),
        }
    }

    /// The class a node-wide number stands for.
    #[must_use]
    pub fn class(&self, slot: Slot<Class>) -> Option<&Arc<TaskClass>> {
        self.classes.get(slot).map(|class| &class.definition)
    }

    pub(super) fn forget_classes_of_client(&mut self, client: ClientId) {
        self.classes.forget_client(client);
    }

    /// Lets go of the classes and shapes of jobs that have ended and of which nothing is left. Looks at all
    /// tasks: called at most so often as [`TRIM_AFTER`] says.
    pub(super) fn forget_ended_jobs(&mut self, now: Now) {
        if self.ending.is_empty() || now < self.forget_at {
            return;
        }
        self.forget_at = now + TRIM_AFTER;
        let tasks = self.tasks.iter().map(|(_, task)| task.id.job());
        let leases = self.leases.values().filter_map(|used| self.job_of_shape(used.shape));
        let busy: BTreeSet<JobId> = tasks.chain(leases).filter(|job| self.ending.contains(job)).collect();
        let is_over = |job: JobId| self.ending.contains(&job) && !busy.contains(&job);
        self.classes.forget_jobs(is_over);
        let shapes: Vec<_> =
            self.shapes.iter().filter(|(_, shape)| is_over(shape.job())).map(|(number, _)| number).collect();
        shapes.into_iter().for_each(|shape| self.forget_shape(shape));
        self.ending = busy;
    }

    /// Classes that are about to be let go.
    pub(super) fn classes_of_ended_jobs(&self) -> usize {
        let all = self.classes.entries.iter();
        all.filter(|(_, class)| self.ended_jobs.contains(class.definition.job)).count()
    }
}
