//! A node with a driver and as many workers as it starts, in which every task ends at once.

// A test may panic where it fails, also in shared functions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;
use tharsis_core::event::{Member, OutputValue, TaskOutcome};
use tharsis_core::node::Config;
use tharsis_core::{Action, Event, MS, Node, Operation, Record, Value};
use tharsis_types::task::{Output, Role};
use tharsis_types::{
    ClientId, Dependency, FailureKind, FunctionId, JobId, NodeId, ObjectId, RefId, Resources, TaskArgs,
    TaskClass, TaskId,
};

const DRIVER: ClientId = ClientId(1);
const NODE: NodeId = NodeId(1);
const JOB: JobId = JobId(1);

pub struct Bench {
    pub node: Node,
    root: TaskId,
    now: u64,
    out: Vec<Action>,
    /// Runs that workers have not finished.
    sent: Vec<(ClientId, u32)>,
    next_client: u32,
    pub finished: u64,
    /// Kinds of failures that the driver was told of.
    pub failures: Vec<FailureKind>,
    /// Bytes of the value of each task.
    pub value_bytes: usize,
    /// Whether the driver keeps its references when they have values.
    pub keeps: bool,
}

impl Bench {
    pub fn new() -> Self {
        let resources = Resources { memory: 1 << 40, ..Resources::cpus(2.0).unwrap() };
        let member = Member { node: NODE, resources, labels: Vec::new() };
        let config = Config {
            member,
            store_bytes: 1 << 20,
            annex_bytes: 0,
            create_timeout: 1000 * MS,
            queued_tasks_max: usize::MAX,
            small_cluster_max: usize::MAX,
            can_spill: false,
            high_water_bytes: u64::MAX,
            low_water_bytes: u64::MAX,
            relay_bytes_min: 1 << 20,
            lineage_bytes_max: 64 << 20,
        };
        let root = TaskId::root(JOB);
        let mut bench = Self {
            node: Node::new(config),
            root,
            now: MS,
            out: Vec::new(),
            sent: Vec::new(),
            next_client: 1,
            finished: 0,
            failures: Vec::new(),
            value_bytes: 1,
            keeps: false,
        };
        bench.feed(Event::DriverJoined { client: DRIVER, job: JOB, weight: 100, quota: None });
        let class = TaskClass {
            call_site: "bench.rs:1".into(),
            resources: Resources::cpus(1.0).unwrap(),
            max_retries: 3,
            ..TaskClass::new(JOB, FunctionId(1), "nothing")
        };
        bench.feed(Event::ClassDefined { client: DRIVER, class: 0, definition: Ok(Arc::new(class)) });
        let constructor = TaskClass {
            call_site: "bench.rs:2".into(),
            role: Role::Constructor,
            shared_process: true,
            ..TaskClass::new(JOB, FunctionId(2), "actor")
        };
        bench.feed(Event::ClassDefined { client: DRIVER, class: 1, definition: Ok(Arc::new(constructor)) });
        bench
    }

    fn feed(&mut self, event: Event) {
        self.node.handle(self.now, event, &mut self.out);
    }

    pub fn submit(&mut self, n: u64) {
        self.submit_with(n, 0);
    }

    /// A task that needs an amount of memory which no other one needs.
    pub fn submit_unlike(&mut self, n: u64) {
        let class = n as u32 + 2;
        let resources = Resources { memory: n + 1, ..Resources::cpus(1.0).unwrap() };
        let definition = TaskClass { resources, ..TaskClass::new(JOB, FunctionId(1), "nothing") };
        self.feed(Event::ClassDefined { client: DRIVER, class, definition: Ok(Arc::new(definition)) });
        let (task, tokens) = (self.root.child(n), [n].into_iter().collect());
        let args = TaskArgs { payload: [7; 8].into(), ..TaskArgs::default() };
        self.feed(Event::Submitted { client: DRIVER, run: None, class, task, tokens, args });
    }

    /// Tells the node that time has passed, if it waits for that.
    pub fn tick(&mut self) {
        if self.node.next_timeout(self.now).is_some_and(|at| at <= self.now) {
            self.feed(Event::Tick);
        }
    }

    /// Constructs an actor that shares its process with others.
    pub fn construct(&mut self, n: u64) {
        let (task, tokens) = (self.root.child(n), [n].into_iter().collect());
        let args = TaskArgs::default();
        self.feed(Event::Submitted { client: DRIVER, run: None, class: 1, task, tokens, args });
    }

    /// The driver drops the reference of a task.
    pub fn drop_reference(&mut self, n: u64) {
        let reference = RefId { object: ObjectId::output(self.root.child(n), 0), owner: NODE };
        self.feed(Event::Released { client: DRIVER, token: n, reference });
    }

    /// A task that takes the values of the first tasks.
    pub fn submit_with(&mut self, n: u64, dependency_count: u64) {
        let dependency = |n| Dependency {
            reference: RefId { object: ObjectId::output(self.root.child(n), 0), owner: NODE },
            parameter: 0,
        };
        let dependencies = (0..dependency_count).map(dependency).collect();
        let args = TaskArgs { payload: [7; 8].into(), dependencies, ..TaskArgs::default() };
        let task = self.root.child(n);
        self.feed(Event::Submitted {
            run: None,
            client: DRIVER,
            class: 0,
            task,
            tokens: [n].into_iter().collect(),
            args,
        });
    }

    /// Ends a batch of events, and acts for the workers and the driver.
    pub fn turn(&mut self) {
        self.now += 10_000;
        self.node.settle(self.now, &mut self.out);
        let mut actions = std::mem::take(&mut self.out);
        for action in actions.drain(..) {
            match action {
                Action::Do(Operation::StartWorker { start, .. }) => {
                    self.next_client += 1;
                    self.feed(Event::WorkerReady { start, client: ClientId(self.next_client) });
                }
                Action::Tell { client, record: Record::Run { run } } => {
                    assert!(self.node.run(run).is_some());
                    self.sent.push((client, run));
                }
                Action::Tell { record: Record::Value { token, object, .. }, .. } => {
                    self.finished += 1;
                    if let Some(Value::Failed(failure)) = self.node.value(object) {
                        self.failures.push(failure.kind);
                    }
                    let reference = RefId { object, owner: NODE };
                    if !self.keeps {
                        self.feed(Event::Released { client: DRIVER, token, reference });
                    }
                }
                _ => {}
            }
        }
        // Use the buffer again, which has the capacity of the longest batch.
        if self.out.is_empty() {
            self.out = actions;
        }
        let value = vec![1; self.value_bytes];
        let outcome = || {
            TaskOutcome::Returned(smallvec::smallvec![Output {
                value: OutputValue::Inline(value.as_slice().into()),
                nested: Vec::new(),
            }])
        };
        for (client, run) in std::mem::take(&mut self.sent) {
            self.feed(Event::Finished { client, run, run_ns: 200, outcome: outcome() });
        }
    }

    pub fn empty(&self) {
        self.node.check();
        assert_eq!(self.node.snapshot().object_count, 0);
        let task = ObjectId::output(self.root.child(0), 0);
        assert!(self.node.value(task).is_none());
    }
}

/// CPU time of this thread, which other processes do not prolong.
pub fn cpu_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    stat.split_whitespace().next().unwrap().parse().unwrap()
}
