//! A node, or two, whose drivers and workers act at once: what is left are the decisions.

use std::sync::Arc;
use tharsis_core::event::{Member, OutputValue, TaskOutcome};
use tharsis_core::node::Config;
use tharsis_core::{Action, Event, MS, Node, Operation, Record};
use tharsis_types::task::{Output, Role};
use tharsis_types::{
    ClientId, Dependency, Extent, Failure, FailureKind, FunctionId, JobId, NodeId, ObjectId, RefId,
    Resources, TaskArgs, TaskClass, TaskId,
};

/// The driver of each machine.
pub const DRIVER: ClientId = ClientId(1);
/// The class of its tasks, which need a CPU.
pub const TASK: u32 = 0;
/// The class of actors.
pub const CONSTRUCTOR: u32 = 1;
/// The class of their methods.
pub const METHOD: u32 = 2;
/// The number of the call that makes the actor, whose reference is kept.
pub const ACTOR: u64 = 1 << 40;
/// Bytes of an arena.
const STORE_BYTES: u64 = 64 << 20;
/// CPUs of a node that has some.
const CPUS: u64 = 4;

/// Nodes, the first of which has a driver.
pub struct Machine {
    nodes: Vec<Node>,
    now: u64,
    job: TaskId,
    next_client: u32,
    /// Actions of each node that are not carried out.
    out: Vec<Vec<Action>>,
    /// Runs that workers have not finished: the node, the worker, the run.
    sent: Vec<(usize, ClientId, u32)>,
    /// Values that the driver was told of.
    pub told: u64,
    /// The last region that it was granted.
    pub region: Option<Extent>,
    /// Whether workers finish what they start.
    pub workers_finish: bool,
}

impl Machine {
    /// One node.
    pub fn alone() -> Self {
        Self::of(&[CPUS])
    }

    /// A node without CPUs, whose tasks run on another one.
    pub fn beside() -> Self {
        Self::of(&[0, CPUS])
    }

    fn of(cpus: &[u64]) -> Self {
        let member = |index: usize| {
            let resources = Resources { cpu: cpus[index] * Resources::UNIT, ..Resources::default() };
            Member { node: node_id(index), resources, labels: Vec::new() }
        };
        let node = |index: usize| {
            Node::new(Config {
                member: member(index),
                store_bytes: STORE_BYTES,
                annex_bytes: 0,
                create_timeout: 1_000 * MS,
                queued_tasks_max: usize::MAX,
                small_cluster_max: usize::MAX,
                can_spill: false,
                high_water_bytes: u64::MAX,
                low_water_bytes: u64::MAX,
                relay_bytes_min: 1 << 20,
                lineage_bytes_max: 64 << 20,
            })
        };
        let job = JobId(1);
        let mut machine = Self {
            nodes: (0..cpus.len()).map(node).collect(),
            now: MS,
            job: TaskId::root(job),
            next_client: 1,
            out: vec![Vec::new(); cpus.len()],
            sent: Vec::new(),
            told: 0,
            region: None,
            workers_finish: true,
        };
        for about in 0..cpus.len() {
            for index in (0..cpus.len()).filter(|index| *index != about) {
                machine.feed_node(index, Event::MemberJoined(Arc::new(member(about))));
            }
        }
        machine.feed(Event::DriverJoined { client: DRIVER, job, weight: 100, quota: None });
        let task = TaskClass {
            resources: Resources { cpu: Resources::UNIT, ..Resources::default() },
            max_retries: 3,
            ..TaskClass::new(job, FunctionId(1), "costs::task")
        };
        let of_role = |role| TaskClass { role, ..TaskClass::new(job, FunctionId(2), "costs::actor") };
        for (class, definition) in
            [task, of_role(Role::Constructor), of_role(Role::Method)].into_iter().enumerate()
        {
            let (class, definition) = (class as u32, Ok(Arc::new(definition)));
            machine.feed(Event::ClassDefined { client: DRIVER, class, definition });
        }
        machine
    }

    /// An event of the driver's node.
    pub fn feed(&mut self, event: Event) {
        self.feed_node(0, event);
    }

    fn feed_node(&mut self, index: usize, event: Event) {
        self.nodes[index].handle(self.now, event, &mut self.out[index]);
    }

    /// The output of the driver's call with this number.
    pub fn output(&self, number: u64) -> RefId {
        RefId { object: ObjectId::output(self.job.child(number), 0), owner: node_id(0) }
    }

    /// The value that the driver puts under this number.
    pub fn put_id(&self, number: u64) -> RefId {
        RefId { object: ObjectId::put(self.job, number as u32), owner: node_id(0) }
    }

    /// The driver calls a function: the arguments are eight bytes, and references.
    pub fn submit(&mut self, class: u32, number: u64, dependencies: &[(u16, RefId)]) {
        let dependency = |(parameter, reference): &(u16, RefId)| Dependency {
            reference: *reference,
            parameter: *parameter,
        };
        let args = TaskArgs {
            payload: [7; 8].into(),
            dependencies: dependencies.iter().map(dependency).collect(),
            ..TaskArgs::default()
        };
        let task = self.job.child(number);
        let tokens = [number].into_iter().collect();
        self.feed(Event::Submitted { client: DRIVER, run: None, class, task, tokens, args });
    }

    /// The driver puts a value: inline, or what it has written to a range.
    pub fn put(&mut self, number: u64, extent: Option<Extent>) {
        let value =
            extent.map_or_else(|| OutputValue::Inline([7; 64].as_slice().into()), OutputValue::Written);
        let object = self.put_id(number).object;
        self.feed(Event::Put {
            client: DRIVER,
            token: number,
            object,
            value,
            nested: Vec::new(),
            site: "".into(),
        });
    }

    /// The driver drops a reference.
    pub fn release(&mut self, token: u64, reference: RefId) {
        self.feed(Event::Released { client: DRIVER, token, reference });
    }

    /// The driver ends.
    pub fn end_driver(&mut self) {
        let failure = Arc::new(Failure::new(FailureKind::Shutdown, "the driver ended"));
        let remains = tharsis_core::event::Remains::Nothing;
        self.feed(Event::ClientGone { client: DRIVER, remains, failure });
    }

    /// Ends a batch of events, and acts for workers, the driver and the network.
    pub fn turn(&mut self) {
        self.now += 10_000;
        for index in 0..self.nodes.len() {
            self.nodes[index].settle(self.now, &mut self.out[index]);
            for action in std::mem::take(&mut self.out[index]) {
                self.act(index, action);
            }
        }
        if !self.workers_finish {
            return;
        }
        for (index, client, run) in std::mem::take(&mut self.sent) {
            let value = OutputValue::Inline([7; 8].as_slice().into());
            let outputs = [Output { value, nested: Vec::new() }].into_iter().collect();
            let outcome = TaskOutcome::Returned(outputs);
            self.feed_node(index, Event::Finished { client, run, run_ns: 200, outcome });
        }
    }

    fn act(&mut self, index: usize, action: Action) {
        match action {
            Action::Do(Operation::StartWorker { start, .. }) => {
                self.next_client += 1;
                let client = ClientId(self.next_client);
                self.feed_node(index, Event::WorkerReady { start, client });
            }
            Action::Do(Operation::Send { to, packet }) => {
                let from = node_id(index);
                let to = if to == node_id(0) { 0 } else { 1 };
                self.feed_node(to, Event::PacketReceived { from, packet });
            }
            Action::Tell { client, record: Record::Run { run } } => {
                assert!(self.nodes[index].run(run).is_some(), "a run that was announced can be read");
                self.sent.push((index, client, run));
            }
            Action::Tell { record: Record::Region { region, .. }, .. } => self.region = region.ok(),
            Action::Tell { client: DRIVER, record: Record::Value { token, object, .. } } if index == 0 => {
                if token == ACTOR {
                    return;
                }
                self.told += 1;
                let reference = RefId { object, owner: node_id(0) };
                self.release(token, reference);
            }
            _ => {}
        }
    }

    /// Acts until the driver was told of so many values.
    ///
    /// # Panics
    /// If that does not come.
    pub fn turn_until_told(&mut self, told: u64) {
        for _ in 0..1_000_000 {
            if told <= self.told {
                return;
            }
            self.turn();
        }
        assert!(told <= self.told, "the driver was told of {} values of {told}", self.told);
    }
}

fn node_id(index: usize) -> NodeId {
    NodeId(index as u64 + 1)
}
