//! Task classes by number. They are forgotten when nothing uses them, and when their job has ended.
//!
//! Tasks name their class by a number of this node, and so do the workers that run them. A number is used
//! again when no task and no step of a graph is of its class. A worker is told when a number has another
//! class than the one that it knows. A task is of a class of its own job.
//!
//! Calls that differ in an amount of a resource, or are made inside different placement groups, are of a
//! class each, so a program that runs for weeks makes any number of them. From time to time those that
//! nothing uses are found by a walk over all tasks: to count the users of each class would cost every task.
//! The walk is made when so many classes are new that it costs each of them little ([`Classes::is_crowded`]).
//! A client may still call such a class: of that, the definition stays for as long as the client does.

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
    /// The numbers that clients use for classes.
    of_client: IdMap<ClientId, BTreeMap<u32, Named>>,
    /// Number of classes from which on those that nothing uses are looked for, beyond [`CROWD_MIN`].
    crowd: usize,
}

/// A class, as a client has named it.
#[derive(Clone, Debug)]
enum Named {
    /// It is here.
    Here(Slot<Class>),
    /// Nothing was of this class for a while.
    Idle(Arc<TaskClass>),
    /// No call may use it, for this reason.
    Refused(Arc<Failure>),
}

/// The definition of a class that a call may use, and its slot if it is here.
type Callable<'a> = (&'a Arc<TaskClass>, Option<Slot<Class>>);

/// So few classes are kept, whether they are used or not. Debug builds keep fewer, so that classes of the
/// simulator's programs are forgotten and called again.
const CROWD_MIN: usize = if cfg!(debug_assertions) { 4 } else { 64 };
/// Those that nothing uses are looked for when there is a new class for each so many entries that are looked
/// at.
const LOOKS_PER_CLASS: usize = 16;

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

    /// The class of a client's number, and its slot if it is here, if a call of a job with this number of
    /// results may use it.
    fn callable(
        &self,
        (client, number): (ClientId, u32),
        job: JobId,
        returns: usize,
        ended: &EndedJobs,
    ) -> Result<Callable<'_>, Arc<Failure>> {
        let unknown = |text: String| Arc::new(Failure::new(FailureKind::Internal, text));
        let (known, slot) = match self.of_client.get(&client).and_then(|of| of.get(&number)) {
            None => return Err(unknown(format!("task class {number} was never named"))),
            Some(Named::Refused(failure)) => return Err(failure.clone()),
            Some(Named::Here(class)) => (&self[*class].definition, Some(*class)),
            Some(Named::Idle(definition)) => (definition, None),
        };
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
        Ok((known, slot))
    }

    fn name(&mut self, client: ClientId, number: u32, named: Named) {
        self.of_client.entry(client).or_default().insert(number, named);
    }

    /// Whether there are so many classes that it is time to look for those that nothing uses.
    pub(super) fn is_crowded(&self) -> bool {
        CROWD_MIN + self.crowd < self.entries.len()
    }

    /// Forgets classes that are not among the used ones. Returns the shapes of the others.
    fn forget_unused(&mut self, used: &BTreeSet<Slot<Class>>) -> BTreeSet<Slot<Shape>> {
        self.forget(|slot, _| !used.contains(&slot), |definition| Named::Idle(Arc::clone(definition)));
        self.entries.iter().map(|(_, class)| class.shape).collect()
    }

    /// Asserts that every class is found by its definition and has a shape, and that tasks are of classes of
    /// their own jobs.
    pub(super) fn check(&self, schedule: &Schedule, tasks: &Tasks) {
        assert_eq!(self.by_definition.len(), self.entries.len(), "a class is found twice, or not at all");
        let mut named = self.of_client.values().flat_map(BTreeMap::values);
        let is_there = |named: &Named| !matches!(named, Named::Here(class) if self.get(*class).is_none());
        assert!(named.all(is_there), "a client names a class that is gone");
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
        self.of_client.remove(&client);
    }

    /// Forgets the classes of some jobs. Clients that outlive their job (a worker that is a thread) still
    /// have the numbers, while the slots are used again for classes of other jobs.
    fn forget_jobs(&mut self, is_over: impl Fn(JobId) -> bool) {
        self.forget(|_, definition| is_over(definition.job), |_| Named::Refused(job_ended()));
        for named in self.of_client.values_mut().flat_map(BTreeMap::values_mut) {
            if matches!(named, Named::Idle(definition) if is_over(definition.job)) {
                *named = Named::Refused(job_ended());
            }
        }
    }

    /// Forgets some classes; `left` is what clients then have by their names.
    fn forget(
        &mut self,
        is_gone: impl Fn(Slot<Class>, &TaskClass) -> bool,
        left: impl Fn(&Arc<TaskClass>) -> Named,
    ) {
        let gone = self.entries.iter().filter(|(slot, class)| is_gone(*slot, &class.definition));
        let gone: Vec<_> = gone.map(|(slot, _)| slot).collect();
        if gone.is_empty() {
            return;
        }
        let mut names: BTreeMap<Slot<Class>, Named> = BTreeMap::new();
        for slot in gone {
            let class = self.entries.take(slot);
            let named = self.by_definition.remove(&class.definition);
            assert!(named.is_some(), "class {} is not found by what it is", class.definition.name);
            names.insert(slot, left(&class.definition));
        }
        for named in self.of_client.values_mut().flat_map(BTreeMap::values_mut) {
            if let Named::Here(class) = named
                && let Some(left) = names.get(&*class)
            {
                *named = left.clone();
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

    /// The definition of a class.
    pub fn definition(&self, class: Slot<Class>) -> &Arc<TaskClass> {
        &self.classes[class].definition
    }

    /// Names a class for later submissions of a client.
    pub fn define_class(&mut self, client: ClientId, number: u32, definition: &Arc<TaskClass>) {
        let named = if self.jobs.contains(definition.job) {
            Named::Refused(job_ended())
        } else {
            Named::Here(self.intern_class(definition))
        };
        self.classes.name(client, number, named);
    }

    /// Names a class that no call may use.
    pub fn refuse_class(&mut self, client: ClientId, number: u32, failure: Arc<Failure>) {
        self.classes.name(client, number, Named::Refused(failure));
    }

    /// The class of a client's number, if a call of a job with this number of results may use it.
    pub(super) fn callable_class(
        &mut self,
        (client, number): (ClientId, u32),
        job: JobId,
        returns: usize,
    ) -> Result<Slot<Class>, Arc<Failure>> {
        let (definition, slot) = self.classes.callable((client, number), job, returns, &self.jobs)?;
        if let Some(slot) = slot {
            return Ok(slot);
        }
        let definition = Arc::clone(definition);
        let slot = self.intern_class(&definition);
        self.classes.name(client, number, Named::Here(slot));
        Ok(slot)
    }

    /// Forgets classes that nothing uses, and the shapes that no class has any more, if there are many. Walks
    /// all tasks, graphs, and names of classes.
    pub(super) fn forget_unused_classes(&mut self) {
        if !self.classes.is_crowded() {
            return;
        }
        let tasks = self.tasks.iter().map(|(_, task)| task.class());
        let used: BTreeSet<_> = tasks.chain(self.graphs.classes()).collect();
        let shapes = self.classes.forget_unused(&used);
        self.schedule.forget_unused(&shapes);
        let names: usize = self.classes.of_client.values().map(BTreeMap::len).sum();
        let looks = self.tasks.len() + self.graphs.step_count() + names;
        let left = self.classes.entries.len();
        self.classes.crowd = left + left.max(looks / LOOKS_PER_CLASS);
    }

    /// Forgets the classes and shapes of ended jobs that have no task and no lease left.
    pub(super) fn forget_ended_jobs(&mut self, now: Now) {
        if !self.jobs.is_time(now) {
            return;
        }
        let leased = self.schedule.leased_jobs().filter(|job| self.jobs.is_ending(*job));
        let with_tasks = self.jobs.ending().filter(|job| self.tasks.has_any_of(*job));
        let busy: BTreeSet<JobId> = leased.chain(with_tasks).collect();
        let is_over = |job: JobId| self.jobs.is_ending(job) && !busy.contains(&job);
        self.classes.forget_jobs(is_over);
        self.schedule.forget_jobs(is_over);
        self.jobs.ending().filter(|job| is_over(*job)).for_each(|job| self.tasks.forget_job(job));
        self.jobs.keep(busy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Value;
    use crate::owner::{Submission, TRIM_AFTER};
    use crate::testing::class;
    use tharsis_types::{NodeId, ObjectId, Resources, TaskArgs, TaskId};

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
    fn classes_that_are_equal_share_one_definition() {
        let mut owner = Owner::new(NodeId(1), 0);
        let (first, second) = (owner.intern_class(&class(1)), owner.intern_class(&class(1)));
        assert!(Arc::ptr_eq(owner.definition(first), owner.definition(second)));
    }

    /// A class with an amount of its own.
    fn with_memory(memory: u64) -> Arc<TaskClass> {
        let resources = Resources { memory, ..Resources::default() };
        Arc::new(TaskClass { resources, ..(*class(1)).clone() })
    }

    /// A call of job 1 of a client's class.
    fn call(owner: &mut Owner, client: ClientId, class: u32, number: u64) -> TaskId {
        let task = TaskId::root(JobId(1)).child(number);
        let args = TaskArgs { payload: [1].into(), ..TaskArgs::default() };
        let tokens = [number].into_iter().collect();
        let call = Submission { client, parent: None, depth: 0, deadline: None, class, task, tokens, args };
        owner.submit(call, &mut Vec::new());
        task
    }

    #[test]
    fn classes_that_nothing_uses_go_and_come_again_when_they_are_called() {
        const COUNT: u32 = 1_000;
        let (mut owner, mut out) = (Owner::new(NodeId(1), 0), Vec::new());
        let client = ClientId(1);
        (0..COUNT).for_each(|n| owner.define_class(client, n, &with_memory(u64::from(n))));
        let kept = call(&mut owner, client, 5, 1);
        owner.plan_trim(0);
        owner.trim(TRIM_AFTER, &mut out);
        owner.check(std::iter::empty());
        assert_eq!((owner.classes.entries.len(), owner.schedule.shape_count()), (1, 1), "that of {kept}");
        // Each has its own properties, as before.
        for (number, class) in [(2, 7), (3, 5), (4, COUNT - 1)] {
            let task = call(&mut owner, client, class, number);
            let slot = owner.references.by_id(&ObjectId::output(task, 0)).and_then(|o| o.producer()).unwrap();
            assert_eq!(owner.class_of(slot).resources.memory, u64::from(class));
        }
        owner.check(std::iter::empty());
        assert_eq!((owner.classes.entries.len(), owner.counts().1), (3, 4));
    }

    #[test]
    fn a_number_that_is_named_again_means_the_new_class_from_then_on() {
        let mut owner = Owner::new(NodeId(1), 0);
        let client = ClientId(1);
        for n in 1..4 {
            owner.define_class(client, 0, &with_memory(n));
            call(&mut owner, client, 0, n);
        }
        let memory: Vec<_> =
            owner.tasks.iter().map(|(slot, _)| owner.class_of(slot).resources.memory).collect();
        assert_eq!(memory, [1, 2, 3]);
        owner.check(std::iter::empty());
    }

    /// Amounts that never come again: what is kept is bounded by what is used.
    #[test]
    fn new_classes_do_not_add_up_while_a_job_runs() {
        let (mut owner, mut out) = (Owner::new(NodeId(1), 0), Vec::new());
        let (mut most, mut now) = (0, 0);
        for n in 0..20_000 {
            owner.intern_class(&with_memory(n));
            most = most.max(owner.classes.entries.len());
            owner.plan_trim(now);
            now += TRIM_AFTER;
            owner.trim(now, &mut out);
        }
        assert!(most <= CROWD_MIN + 2, "{most} classes");
        assert_eq!(owner.schedule.shape_count(), owner.classes.entries.len());
        owner.check(std::iter::empty());
    }

    /// The walk over all names is made so seldom that it costs each new class little.
    #[test]
    fn classes_of_clients_are_looked_at_a_few_times_each() {
        const COUNT: u32 = 20_000;
        let (mut owner, mut out) = (Owner::new(NodeId(1), 0), Vec::new());
        let (mut looks, mut now) = (0, 0);
        for n in 0..COUNT {
            owner.define_class(ClientId(1), n, &with_memory(u64::from(n)));
            looks += if owner.classes.is_crowded() { n as usize } else { 0 };
            owner.plan_trim(now);
            now += TRIM_AFTER;
            owner.trim(now, &mut out);
        }
        assert!(looks < 40 * COUNT as usize, "{looks} looks at {COUNT} classes");
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
