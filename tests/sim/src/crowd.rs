//! Steps per event: the cost of an event that touches little, beside a crowd that it does not touch.
//!
//! A world of its own, without faults: one node, with so many each of tasks that run, that wait for resources
//! and that wait for a value, values that are kept, actors, and placement groups with a task that runs inside
//! and one that waits. Then small things are done again and again. `tests/costs` counts the instructions of
//! each beside a small and a large crowd: a step that walks over a table of the crowd takes more of them by
//! each entry.

use std::sync::Arc;
use tharsis_core::event::{Member, OutputValue, TaskOutcome};
use tharsis_core::node::Config;
use tharsis_core::{Action, Event, MS, Node, Now, Operation, Record};
use tharsis_types::task::{Output, Role};
use tharsis_types::{
    ClientId, Dependency, Failure, FailureKind, FunctionId, GroupSpec, JobId, NodeId, ObjectId, Placement,
    RefId, Resources, Strategy, TaskArgs, TaskClass, TaskId,
};

const DRIVER: ClientId = ClientId(1);
const JOB: JobId = JobId(1);
const NODE: NodeId = NodeId(1);
/// Time from one event to the next: so little that nothing is done because of it.
const STEP: Now = MS / 10_000;
/// Something of the node that groups of touches reserve, since all CPUs are taken.
const SEATS: &str = "seats";

/// The function, and the number of the class, of tasks that take a CPU and do not end.
const BUSY: u32 = 1;
/// Of tasks that take nothing and end at once.
const QUICK: u32 = 2;
/// Of actors.
const ACTOR: u32 = 3;
/// Of their methods.
const METHOD: u32 = 4;
/// Of tasks like the first ones, of another shape: what they hold is looked at for each of that shape.
const RUNNING: u32 = 7;
/// Of groups that reserve a CPU.
const GROUP: u32 = 5;
/// Of groups that reserve nothing that others want.
const SEAT: u32 = 6;
/// Numbers of classes of tasks inside groups start here: of such that do not end, if even.
const INSIDE: u32 = 10;

/// Something small that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// A task runs, and its value is dropped.
    Call,
    /// A task that waits for resources is cancelled.
    Cancel,
    /// A value is asked for.
    Fetch,
    /// A placement group is made, a task runs inside, and both are dropped.
    Group,
    /// A task runs inside a placement group that stays, and its value is dropped.
    Inside,
    /// A driver comes, calls a function, and goes.
    Job,
    /// A method of an actor runs, and its value is dropped.
    Method,
    /// A value is put and dropped.
    Put,
    /// A task that waits for a value of others is cancelled.
    Wait,
}

/// A node with a crowd.
#[derive(Debug)]
pub struct Crowd {
    node: Node,
    now: Now,
    out: Vec<Action>,
    /// Runs of workers that end at once.
    sent: Vec<(ClientId, u32)>,
    /// Values that clients were told of.
    told: Vec<(ClientId, u64, ObjectId)>,
    walks: bool,
    next_client: u32,
    next_job: u32,
    /// The number of the next call or value of the driver, and its token.
    next: u64,
    /// The value of a task that does not end.
    awaited: RefId,
    /// An actor.
    actor: RefId,
    /// A value that is kept, with its token.
    kept: (u64, RefId),
    /// A group, and the number of the class of tasks inside that end at once.
    group: (u32, RefId),
    /// The number of the next class of tasks inside a group; an even one.
    next_inside: u32,
}

impl Crowd {
    /// A node with so many of each. With `walks`, a walk over all tasks is planted behind each event.
    ///
    /// # Panics
    /// If they do not all live.
    #[must_use]
    pub fn new(size: u64, walks: bool) -> Self {
        // All of them are taken, by tasks and by groups.
        let resources = Resources { cpu: 2 * size * Resources::UNIT, ..seats(2) };
        let config = Config {
            member: Member { node: NODE, resources, labels: Vec::new() },
            store_bytes: 1 << 20,
            annex_bytes: 0,
            create_timeout: 1_000 * MS,
            queued_tasks_max: usize::MAX,
            small_cluster_max: 16,
            can_spill: false,
            high_water_bytes: u64::MAX,
            low_water_bytes: u64::MAX,
            relay_bytes_min: 1 << 20,
            lineage_bytes_max: 64 << 20,
        };
        let none = reference(TaskId::root(JOB));
        let mut crowd = Self {
            node: Node::new(config),
            now: MS,
            out: Vec::new(),
            sent: Vec::new(),
            told: Vec::new(),
            walks: false,
            next_client: DRIVER.0,
            next_job: JOB.0,
            next: 0,
            awaited: none,
            actor: none,
            kept: (0, none),
            group: (0, none),
            next_inside: INSIDE,
        };
        crowd.join(DRIVER, JOB);
        crowd.fill(size);
        crowd.walks = walks;
        crowd
    }

    /// A driver joins, and names its classes.
    fn join(&mut self, client: ClientId, job: JobId) {
        self.feed(Event::DriverJoined { client, job, weight: 100, quota: None });
        for number in [BUSY, QUICK, ACTOR, METHOD, RUNNING, GROUP, SEAT] {
            let function = if number == RUNNING { BUSY } else { number };
            let mut class = TaskClass::new(job, FunctionId(u64::from(function)), "crowd");
            class.priority = i32::from(number == RUNNING);
            match number {
                BUSY | RUNNING => class.resources.cpu = Resources::UNIT,
                ACTOR => (class.role, class.shared_process) = (Role::Constructor, true),
                METHOD => class.role = Role::Method,
                GROUP => {
                    class.placement = reserve(Resources { cpu: Resources::UNIT, ..Resources::default() })
                }
                SEAT => class.placement = reserve(seats(1)),
                _ => {}
            }
            self.define(client, number, class);
        }
    }

    fn define(&mut self, client: ClientId, number: u32, class: TaskClass) {
        self.feed(Event::ClassDefined { client, class: number, definition: Ok(Arc::new(class)) });
    }

    /// A group of a class, with a class of tasks inside that do not end, and one of tasks that do: the first
    /// takes a CPU of it. Returns the number of the first class, and the group.
    fn make_group(&mut self, class: u32) -> (u32, RefId) {
        let (_, group) = self.call(class, None);
        self.settle();
        let number = self.next_inside;
        self.next_inside += 2;
        for (number, function) in [(number, BUSY), (number + 1, QUICK)] {
            let mut inside = TaskClass::new(JOB, FunctionId(u64::from(function)), "crowd");
            inside.placement = Placement::Group { group: group.object.task, bundle: None };
            inside.resources.cpu = if function == BUSY { Resources::UNIT } else { 0 };
            self.define(DRIVER, number, inside);
        }
        (number, group)
    }

    fn fill(&mut self, size: u64) {
        for _ in 0..size {
            self.awaited = self.call(RUNNING, None).1;
            self.settle();
            let (number, group) = self.make_group(GROUP);
            for _ in 0..2 {
                self.call(number, Some(Dependency { reference: group, parameter: Dependency::GROUP }));
            }
            self.group = (number + 1, group);
            self.settle();
            assert_eq!(self.told.len(), 1, "the group is placed, and nothing else ends");
            self.told.clear();
        }
        for _ in 0..size {
            self.call(BUSY, None);
            self.call(QUICK, Some(Dependency { reference: self.awaited, parameter: 0 }));
            self.kept = self.put();
            self.actor = self.call(ACTOR, None).1;
            self.settle();
            self.told.clear();
        }
        assert_eq!(self.node.list_actors().len() as u64, size, "all actors live");
    }

    /// Does something small, and drops what comes of it.
    ///
    /// # Panics
    /// If it does not come to an end.
    pub fn touch(&mut self, touch: Touch) {
        match touch {
            Touch::Call => {
                self.call(QUICK, None);
            }
            Touch::Group => {
                let (number, group) = self.make_group(SEAT);
                self.call(number + 1, Some(Dependency { reference: group, parameter: Dependency::GROUP }));
                self.settle();
                assert_eq!(self.told.len(), 2, "the group is placed, and the task inside ends");
            }
            Touch::Inside => {
                let (number, group) = self.group;
                self.call(number, Some(Dependency { reference: group, parameter: Dependency::GROUP }));
            }
            Touch::Method => {
                let actor = Dependency { reference: self.actor, parameter: Dependency::ACTOR };
                self.call(METHOD, Some(actor));
            }
            Touch::Cancel => {
                let (_, reference) = self.call(BUSY, None);
                self.cancel(reference);
            }
            Touch::Wait => {
                let (_, reference) =
                    self.call(QUICK, Some(Dependency { reference: self.awaited, parameter: 0 }));
                self.cancel(reference);
            }
            Touch::Fetch => {
                let (token, reference) = self.kept;
                self.feed(Event::Fetch { client: DRIVER, token, reference });
                self.settle();
                let is_told = self.told.pop().is_some_and(|(_, told, _)| told == token);
                assert!(is_told, "a value that is there is told");
                return;
            }
            Touch::Put => {
                let (token, reference) = self.put();
                self.feed(Event::Released { client: DRIVER, token, reference });
                return self.settle();
            }
            Touch::Job => return self.touch_job(),
        }
        self.settle();
        assert!(!self.told.is_empty(), "{touch:?} comes to an end");
        for (client, token, object) in std::mem::take(&mut self.told) {
            self.feed(Event::Released { client, token, reference: RefId { object, owner: NODE } });
        }
        self.settle();
    }

    fn touch_job(&mut self) {
        self.next_client += 1;
        self.next_job += 1;
        let (client, job) = (ClientId(self.next_client), JobId(self.next_job));
        self.join(client, job);
        self.call_of(client, TaskId::root(job).child(0), QUICK, None, 0);
        self.settle();
        assert_eq!(self.told.len(), 1, "the call of a job comes to an end");
        self.told.clear();
        self.leave(client);
        self.settle();
    }

    fn call(&mut self, class: u32, dependency: Option<Dependency>) -> (u64, RefId) {
        let token = self.next;
        self.next += 1;
        (token, self.call_of(DRIVER, TaskId::root(JOB).child(token), class, dependency, token))
    }

    fn call_of(
        &mut self,
        client: ClientId,
        task: TaskId,
        class: u32,
        dependency: Option<Dependency>,
        token: u64,
    ) -> RefId {
        let tokens = [token].into_iter().collect();
        let args = TaskArgs { dependencies: dependency.into_iter().collect(), ..TaskArgs::default() };
        self.feed(Event::Submitted { client, run: None, class, task, tokens, args });
        reference(task)
    }

    fn put(&mut self) -> (u64, RefId) {
        let token = self.next;
        self.next += 1;
        let object = ObjectId::put(TaskId::root(JOB).child(token), 0);
        let value = OutputValue::Inline([1].as_slice().into());
        self.feed(Event::Put { client: DRIVER, token, object, value, nested: Vec::new(), site: "".into() });
        (token, RefId { object, owner: NODE })
    }

    fn cancel(&mut self, reference: RefId) {
        self.settle();
        self.feed(Event::CancelRequested { reference, force: false, recursive: false });
    }

    fn leave(&mut self, client: ClientId) {
        let failure = Arc::new(Failure::new(FailureKind::Shutdown, "gone"));
        let remains = tharsis_core::event::Remains::Nothing;
        self.feed(Event::ClientGone { client, remains, failure });
    }

    fn feed(&mut self, event: Event) {
        self.now += STEP;
        self.node.handle(self.now, event, &mut self.out);
        if self.walks {
            let tasks = self.node.list_tasks(self.now, 0, |_| false).tasks;
            assert!(tasks.is_empty(), "none is wanted");
        }
    }

    /// Settles until nothing is left to be done at once.
    fn settle(&mut self) {
        if self.node.next_timeout(self.now).is_some_and(|at| at <= self.now) {
            self.feed(Event::Tick);
        }
        loop {
            self.node.settle(self.now, &mut self.out);
            let actions = std::mem::take(&mut self.out);
            if actions.is_empty() && self.sent.is_empty() {
                return;
            }
            actions.into_iter().for_each(|action| self.act(action));
            for (client, run) in std::mem::take(&mut self.sent) {
                let value = OutputValue::Inline([1].as_slice().into());
                let outputs = [Output { value, nested: Vec::new() }].into_iter().collect();
                let outcome = TaskOutcome::Returned(outputs);
                self.feed(Event::Finished { client, run, run_ns: 1_000, outcome });
            }
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Do(Operation::StartWorker { start, .. }) => {
                self.next_client += 1;
                self.feed(Event::WorkerReady { start, client: ClientId(self.next_client) });
            }
            Action::Tell { client, record: Record::Run { run } } => {
                let function = self.node.run(run).map(|view| view.class.function);
                if function.is_some_and(|function| function != FunctionId(u64::from(BUSY))) {
                    self.sent.push((client, run));
                }
            }
            Action::Tell { client, record: Record::StealBack { question, .. } } => {
                self.feed(Event::GivenBack { client, question, returned: Vec::new() });
            }
            Action::Tell { client, record: Record::Value { token, object, .. } } => {
                self.told.push((client, token, object));
            }
            Action::Tell { client, record: Record::Stop }
            | Action::Do(Operation::KillWorker { client, .. }) => self.leave(client),
            _ => {}
        }
    }
}

/// So many seats.
fn seats(count: u64) -> Resources {
    let custom = [(SEATS.to_owned(), count * Resources::UNIT)].into_iter().collect();
    Resources { custom, ..Resources::default() }
}

/// A group of one bundle.
fn reserve(bundle: Resources) -> Placement {
    Placement::Reserve(GroupSpec { bundles: vec![bundle], strategy: Strategy::Pack, patience_ms: 1_000 })
}

/// The reference of the first output of a task.
fn reference(task: TaskId) -> RefId {
    RefId { object: ObjectId::output(task, 0), owner: NODE }
}
