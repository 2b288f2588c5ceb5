//! Task classes by number. They are forgotten when their job has ended.
//!
//! Tasks name their class by a number of this node, and so do the workers that run them. A number is used
//! again only after its job has ended and nothing of the job is left here. A task is of a class of its own
//! job. The worker of an actor runs calls of all jobs that have a handle, and outlives them: it is told when
//! a number has another class than the one that it knows.

use super::jobs::{EndedJobs, job_ended};
use super::tasks::Tasks;
use super::{Owner, Schedule, Shape};
use crate::Now;
use crate::slab::{Slab, Slot};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Index;
use std::sync::Arc;
use tharsis_types::hash::IdMap;
use tharsis_types::{ClientId, Failure, FailureKind, JobId, TaskClass};

/// Common properties of calls from one place with the same options.
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
    /// The numbers that clients use for classes; for a class that no call may use, the reason.
    of_client: BTreeMap<(ClientId, u32), Result<Slot<Class>, Arc<Failure>>>,
}

impl Index<Slot<Class>> for Classes {
    type Output = Class;

    fn index(&self, class: Slot<Class>) -> &Class {
        &self.entries[class]
    }
}

impl Classes {
    /// A class that may have been forgotten.
    pub(super) fn get(&self, class: Slot<Class>) -> Option<&Class> {
        self.entries.get(class)
    }

    /// The class of a client's number, if a call of a job with this number of results may use it.
    pub(super) fn callable(
        &self,
        (client, number): (ClientId, u32),
        job: JobId,
        returns: usize,
        ended: &EndedJobs,
    ) -> Result<Slot<Class>, Arc<Failure>> {
        let unknown = |text: String| Arc::new(Failure::new(FailureKind::Internal, text));
        let Some(class) = self.of_client.get(&(client, number)) else {
            return Err(unknown(format!("task class {number} was never named")));
        };
        let class = class.clone()?;
        let known = &self[class].definition;
        if ended.contains(known.job) {
            return Err(job_ended());
        }
        let invalid = |text: String| Arc::new(Failure::new(FailureKind::InvalidArgument, text));
        // A class goes with its job: a call of another one would be left without.
        if known.job != job {
            return Err(invalid(format!("a call of job {job} of a class of job {}", known.job)));
        }
        if known.returns as usize != returns {
            return Err(invalid(format!("{returns} references for {} returns", known.returns)));
        }
        Ok(class)
    }

    /// Asserts that every class is found by its definition and has a shape, and that tasks are of classes of
    /// their own jobs.
    pub(super) fn check(&self, schedule: &Schedule, tasks: &Tasks) {
        assert_eq!(self.by_definition.len(), self.entries.len(), "a class is found twice, or not at all");
        let mut named = self.of_client.values().flatten();
        assert!(named.all(|class| self.get(*class).is_some()), "a client names a class that is gone");
        for (slot, class) in self.entries.iter() {
            let name = &class.definition.name;
            assert_eq!(self.by_definition.get(&class.definition), Some(&slot), "class {name} is misfiled");
            assert!(schedule.has_shape(class.shape), "class {name} has no shape");
        }
        for (_, task) in tasks.iter() {
            let job = self[task.class()].definition.job;
            assert_eq!(task.id().job(), job, "task {} is of a class of another job", task.id());
        }
    }

    /// Number of classes of ended jobs that are not forgotten yet.
    pub(super) fn of_ended_jobs(&self, ended: &EndedJobs) -> usize {
        self.entries.iter().filter(|(_, class)| ended.contains(class.definition.job)).count()
    }

    pub(super) fn forget_client(&mut self, client: ClientId) {
        let mut of_client = self.of_client.split_off(&(client, 0));
        let mut others = match client.0.checked_add(1) {
            Some(next) => of_client.split_off(&(ClientId(next), 0)),
            None => BTreeMap::new(),
        };
        self.of_client.append(&mut others);
    }

    /// Forgets the classes of some jobs. Clients that outlive their job (a worker that is a thread) still
    /// have the numbers, while the slots are used again for classes of other jobs.
    fn forget_jobs(&mut self, is_over: impl Fn(JobId) -> bool) {
        let of_jobs = self.entries.iter().filter(|(_, class)| is_over(class.definition.job));
        let gone: BTreeSet<_> = of_jobs.map(|(slot, _)| slot).collect();
        if gone.is_empty() {
            return;
        }
        for slot in &gone {
            let class = self.entries.take(*slot);
            let named = self.by_definition.remove(&class.definition);
            assert!(named.is_some(), "class {} is not found by what it is", class.definition.name);
        }
        for named in self.of_client.values_mut() {
            if matches!(named, Ok(class) if gone.contains(class)) {
                *named = Err(job_ended());
            }
        }
    }
}

impl Owner {
    /// The slot of a class, which is entered if it is new.
    pub fn intern_class(&mut self, definition: &Arc<TaskClass>) -> Slot<Class> {
        if let Some(known) = self.classes.by_definition.get(definition) {
            return *known;
        }
        self.jobs.class_entered(definition.job);
        let shape = self.schedule.shape_of(definition);
        let class = self.classes.entries.insert(Class { definition: definition.clone(), shape });
        self.classes.by_definition.insert(definition.clone(), class);
        class
    }

    /// Names a class for later submissions of a client.
    pub fn define_class(&mut self, client: ClientId, number: u32, definition: &Arc<TaskClass>) {
        let class = if self.jobs.contains(definition.job) {
            Err(job_ended())
        } else {
            Ok(self.intern_class(definition))
        };
        self.classes.of_client.insert((client, number), class);
    }

    /// Names a class that no call may use.
    pub fn refuse_class(&mut self, client: ClientId, number: u32, failure: Arc<Failure>) {
        self.classes.of_client.insert((client, number), Err(failure));
    }

    /// Forgets the classes and shapes of ended jobs that have no task and no lease left. Walks all tasks, but
    /// rarely: [`EndedJobs::is_time`].
    pub(super) fn forget_ended_jobs(&mut self, now: Now) {
        if !self.jobs.is_time(now) {
            return;
        }
        let tasks = self.tasks.iter().map(|(_, task)| task.id().job());
        let busy: BTreeSet<JobId> =
            tasks.chain(self.schedule.leased_jobs()).filter(|job| self.jobs.is_ending(*job)).collect();
        let is_over = |job: JobId| self.jobs.is_ending(job) && !busy.contains(&job);
        self.classes.forget_jobs(is_over);
        self.schedule.forget_jobs(is_over);
        self.jobs.keep(busy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Value;
    use crate::owner::{Submission, TRIM_AFTER};
    use crate::testing::class;
    use tharsis_types::{NodeId, ObjectId, TaskArgs, TaskId};

    #[test]
    fn a_client_that_outlives_its_job_cannot_call_the_class_that_took_the_number() {
        let mut owner = Owner::new(NodeId(1), 0);
        let mut out = Vec::new();
        let (old, new) = (ClientId(1), ClientId(2));
        owner.define_class(old, 0, &class(1));
        owner.drop_job(JobId(1), &mut out);
        owner.plan_trim(0);
        owner.trim(TRIM_AFTER, &mut out);
        owner.define_class(new, 0, &class(2));
        assert_eq!(owner.classes.entries.len(), 1, "the class of the job that has ended is gone");
        assert_refused(&mut owner, old, FailureKind::Shutdown);
    }

    #[test]
    fn a_call_of_a_class_of_another_job_is_refused() {
        let mut owner = Owner::new(NodeId(1), 0);
        owner.define_class(ClientId(1), 0, &class(2));
        assert_refused(&mut owner, ClientId(1), FailureKind::InvalidArgument);
    }

    /// A call of job 1 of a client's class 0 fails, and is not queued.
    fn assert_refused(owner: &mut Owner, client: ClientId, kind: FailureKind) {
        let task = TaskId::root(JobId(1));
        let args = TaskArgs { payload: [1].into(), ..TaskArgs::default() };
        let tokens = [0].into_iter().collect();
        let call =
            Submission { client, parent: None, depth: 0, deadline: None, class: 0, task, tokens, args };
        owner.submit(call, &mut Vec::new());
        owner.check(std::iter::empty());
        assert_eq!(owner.counts(), (1, 0), "nothing was queued");
        let failed = owner.value_ref(ObjectId::output(task, 0));
        assert!(matches!(failed, Some(Value::Failed(f)) if f.kind == kind), "{failed:?}");
    }
}
