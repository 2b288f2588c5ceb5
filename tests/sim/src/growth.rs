//! Growth: what a cluster of many nodes costs each of them, when idle and when busy.
//!
//! The nodes are the product's own, as in [`crate::run`]; everything else is as simple as it can be, so that
//! thousands of nodes fit: no faults, a network with one delay, workers that start after one delay, tasks
//! that take a fixed time and return a number. What is counted is what goes over the network.
//!
//! Every fourth node has a driver that keeps a number of tasks under way. They may run anywhere.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tharsis_core::event::{Member, OutputValue, TaskOutcome};
use tharsis_core::node::Config;
use tharsis_core::{Action, Event, MS, Node, Now, Operation, Record, Value};
use tharsis_types::hash::IdMap;
use tharsis_types::peer::{Message, Packet};
use tharsis_types::task::Output;
use tharsis_types::{
    ClientId, FunctionId, JobId, NodeId, ObjectId, Placement, RefId, Resources, TaskArgs, TaskClass, TaskId,
};

/// Time of a packet from node to node.
const NETWORK: Now = MS / 5;
/// Time of a record between a client and its node.
const RING: Now = MS / 50;
/// Time until a worker has started.
const START: Now = 10 * MS;
/// Time that a task takes, plus up to as much again.
const TASK: Now = 10 * MS;
/// One node in so many has a driver.
const DRIVERS_EVERY: usize = 4;
/// CPUs of each node.
const CPUS: u64 = 2;
/// The driver of a node; workers have higher ids.
const DRIVER: ClientId = ClientId(1);

/// The size and the load of a cluster.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Number of nodes.
    pub nodes: usize,
    /// Tasks that each driver keeps under way.
    pub tasks_each: u64,
    /// Virtual time of the idle and the busy stage each, in milliseconds.
    pub stage_ms: u64,
    /// Maximum number of nodes of a small cluster.
    pub small_cluster_max: usize,
}

/// Costs of a stage, per node and second of virtual time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Costs {
    /// Messages sent.
    pub messages: f64,
    /// Packets sent.
    pub packets: f64,
    /// Bytes of packets sent.
    pub bytes: f64,
    /// Requests for leases sent to other nodes.
    pub requests: f64,
    /// The part of the requests that was denied, in percent.
    pub denied_percent: f64,
}

/// Costs of a cluster.
#[derive(Clone, Copy, Debug, Default)]
pub struct Growth {
    /// Number of nodes.
    pub nodes: usize,
    /// Packets that the joins of all nodes caused, per node.
    pub join_packets: f64,
    /// While nothing happens.
    pub idle: Costs,
    /// While tasks run.
    pub busy: Costs,
    /// Tasks that ended while busy, per second of virtual time.
    pub tasks_per_s: f64,
    /// Nodes with which a node exchanged packets, on average.
    pub links_mean: f64,
    /// The same for the node with most.
    pub links_max: usize,
    /// Tasks placed, run and answered per second of one real core that decides for all nodes.
    pub decisions_per_s: f64,
    /// Answers that were wrong.
    pub wrong: u64,
}

/// Something that will happen.
enum Happening {
    Event(Event),
    Settle,
    Tick,
}

struct Host {
    node: Node,
    settles: bool,
    tick_at: Option<Now>,
    next_client: u32,
    links: BTreeSet<usize>,
    /// Number of calls of its driver.
    submitted: u64,
    root: TaskId,
}

struct World {
    load: Load,
    packet_bytes: PacketBytes,
    now: Now,
    hosts: Vec<Host>,
    index_of: IdMap<NodeId, usize>,
    agenda: BTreeMap<(Now, u64), (usize, Happening)>,
    order: u64,
    is_submitting: bool,
    counts: Counts,
    wrong: u64,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    messages: u64,
    packets: u64,
    bytes: u64,
    requests: u64,
    denials: u64,
    tasks: u64,
}

/// Bytes of a packet from one node to another on the wire. This crate does not know the wire.
pub type PacketBytes = fn(NodeId, NodeId, &Packet) -> usize;

/// Measures a cluster.
#[must_use]
pub fn measure(load: Load, packet_bytes: PacketBytes) -> Growth {
    let mut world = World::new(load, packet_bytes);
    world.join_all();
    let nodes = load.nodes as f64;
    let join_packets = world.counts.packets as f64 / nodes;
    let idle = world.stage();
    world.begin_drivers();
    let began = cpu_ns();
    let busy = world.stage();
    let tasks = world.counts.tasks;
    let cpu_s = (cpu_ns() - began) as f64 / 1e9;
    world.is_submitting = false;
    world.run_until(Now::MAX);
    let links = world.hosts.iter().map(|host| host.links.len());
    Growth {
        nodes: load.nodes,
        join_packets,
        idle,
        busy,
        tasks_per_s: tasks as f64 * 1e3 / load.stage_ms as f64,
        links_mean: links.clone().sum::<usize>() as f64 / nodes,
        links_max: links.max().unwrap_or(0),
        decisions_per_s: tasks as f64 / cpu_s,
        wrong: world.wrong + world.hosts.iter().map(Host::unanswered).sum::<u64>(),
    }
}

impl Host {
    /// Calls of its driver that were not answered.
    fn unanswered(&self) -> u64 {
        let snapshot = self.node.snapshot();
        (snapshot.task_count + snapshot.object_count) as u64
    }
}

impl World {
    fn new(load: Load, packet_bytes: PacketBytes) -> Self {
        let hosts: Vec<_> = (0..load.nodes).map(|index| Host::new(index, load.small_cluster_max)).collect();
        let index_of = hosts.iter().enumerate().map(|(index, host)| (host.node.id(), index)).collect();
        Self {
            load,
            packet_bytes,
            now: 1_000 * MS,
            hosts,
            index_of,
            agenda: BTreeMap::new(),
            order: 0,
            is_submitting: true,
            counts: Counts::default(),
            wrong: 0,
        }
    }

    /// Every node hears of every other one.
    fn join_all(&mut self) {
        let members: Vec<_> = (0..self.hosts.len()).map(|index| Arc::new(member(index))).collect();
        for index in 0..self.hosts.len() {
            for (other, member) in members.iter().enumerate() {
                if other != index {
                    self.feed(index, Event::MemberJoined(Arc::clone(member)));
                }
            }
        }
        self.run_until(self.now + 1_000 * MS);
    }

    /// Runs for the time of a stage and returns what it cost.
    fn stage(&mut self) -> Costs {
        self.counts = Counts::default();
        self.run_until(self.now + self.load.stage_ms * MS);
        let counts = self.counts;
        let per = self.hosts.len() as f64 * self.load.stage_ms as f64 / 1e3;
        Costs {
            messages: counts.messages as f64 / per,
            packets: counts.packets as f64 / per,
            bytes: counts.bytes as f64 / per,
            requests: counts.requests as f64 / per,
            denied_percent: counts.denials as f64 * 100.0 / counts.requests.max(1) as f64,
        }
    }

    fn begin_drivers(&mut self) {
        for index in (0..self.hosts.len()).step_by(DRIVERS_EVERY) {
            let job = self.hosts[index].root.job();
            self.feed(index, Event::DriverJoined { client: DRIVER, job, weight: 100, quota: None });
            let class = TaskClass {
                call_site: "growth.rs:1".into(),
                resources: Resources { cpu: Resources::UNIT, ..Resources::default() },
                placement: Placement::Default,
                max_retries: 3,
                ..TaskClass::new(job, FunctionId(1), "scrambled")
            };
            let defined = Event::ClassDefined { client: DRIVER, class: 0, definition: Ok(Arc::new(class)) };
            self.feed(index, defined);
            (0..self.load.tasks_each).for_each(|_| self.submit(index));
        }
    }

    fn submit(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        let number = host.submitted;
        host.submitted += 1;
        let task = host.root.child(number);
        let args = TaskArgs { payload: number.to_le_bytes().into(), ..TaskArgs::default() };
        let tokens = [number].into_iter().collect();
        self.feed(index, Event::Submitted { client: DRIVER, run: None, class: 0, task, tokens, args });
    }

    fn run_until(&mut self, end: Now) {
        while let Some(entry) = self.agenda.first_entry() {
            if end < entry.key().0 {
                break;
            }
            let ((when, _), (index, happening)) = entry.remove_entry();
            self.now = when;
            match happening {
                Happening::Event(event) => self.feed(index, event),
                Happening::Settle => self.settle(index),
                Happening::Tick if self.hosts[index].tick_at == Some(when) => {
                    self.hosts[index].tick_at = None;
                    self.feed(index, Event::Tick);
                }
                Happening::Tick => {}
            }
        }
        self.now = self.now.max(if end == Now::MAX { 0 } else { end });
    }

    fn at(&mut self, when: Now, index: usize, happening: Happening) {
        self.order += 1;
        self.agenda.insert((when, self.order), (index, happening));
    }

    fn feed(&mut self, index: usize, event: Event) {
        let mut out = Vec::new();
        self.hosts[index].node.handle(self.now, event, &mut out);
        self.perform(index, out);
        if !self.hosts[index].settles {
            self.hosts[index].settles = true;
            self.at(self.now, index, Happening::Settle);
        }
    }

    fn settle(&mut self, index: usize) {
        let mut out = Vec::new();
        let host = &mut self.hosts[index];
        host.settles = false;
        host.node.settle(self.now, &mut out);
        let next = host.node.next_timeout(self.now).map(|at| at.max(self.now + 1));
        let is_earlier = next.is_some_and(|at| host.tick_at.is_none_or(|known| at < known));
        if let Some(at) = next.filter(|_| is_earlier) {
            host.tick_at = Some(at);
            self.at(at, index, Happening::Tick);
        }
        self.perform(index, out);
    }

    fn perform(&mut self, index: usize, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Do(Operation::Send { to, packet }) => self.send(index, to, packet),
                Action::Do(Operation::StartWorker { start, .. }) => {
                    let host = &mut self.hosts[index];
                    host.next_client += 1;
                    let client = ClientId(host.next_client);
                    let ready = Event::WorkerReady { start, client };
                    self.at(self.now + START, index, Happening::Event(ready));
                }
                Action::Tell { client, record: Record::Run { run } } => self.start(index, client, run),
                Action::Tell { record: Record::Value { token, object, .. }, .. } => {
                    self.answered(index, token, object);
                }
                _ => {}
            }
        }
    }

    fn send(&mut self, index: usize, to: NodeId, packet: Packet) {
        let is = |kind: fn(&Message) -> bool| packet.messages.iter().filter(|m| kind(m)).count() as u64;
        self.counts.packets += 1;
        self.counts.messages += packet.messages.len() as u64;
        self.counts.requests += is(|m| matches!(m, Message::LeaseRequest { .. }));
        self.counts.denials += is(|m| matches!(m, Message::LeaseDenied { .. }));
        let from = self.hosts[index].node.id();
        self.counts.bytes += (self.packet_bytes)(from, to, &packet) as u64;
        let Some(receiver) = self.index_of.get(&to).copied() else { return };
        self.hosts[index].links.insert(receiver);
        self.at(self.now + NETWORK, receiver, Happening::Event(Event::PacketReceived { from, packet }));
    }

    fn start(&mut self, index: usize, client: ClientId, run: u32) {
        let Some(view) = self.hosts[index].node.run(run) else { return };
        let payload: &[u8] = view.payload;
        let number = payload.try_into().map(u64::from_le_bytes).unwrap_or_default();
        let run_ns = TASK + scrambled(number) % TASK;
        let value = OutputValue::Inline(scrambled(number).to_le_bytes().as_slice().into());
        let outcome = TaskOutcome::Returned([Output { value, nested: Vec::new() }].into_iter().collect());
        let ended = Event::Finished { client, run, run_ns, outcome };
        self.at(self.now + run_ns, index, Happening::Event(ended));
    }

    /// The driver has an answer: it checks it, drops it and calls again.
    fn answered(&mut self, index: usize, token: u64, object: ObjectId) {
        let right = scrambled(token).to_le_bytes();
        let value = self.hosts[index].node.value(object);
        self.wrong += u64::from(!matches!(value, Some(Value::Inline(bytes)) if bytes[..] == right));
        self.counts.tasks += 1;
        let owner = self.hosts[index].node.id();
        let reference = RefId { object, owner };
        let released = Event::Released { client: DRIVER, token, reference };
        self.at(self.now + RING, index, Happening::Event(released));
        if self.is_submitting {
            self.submit(index);
        }
    }
}

impl Host {
    fn new(index: usize, small_cluster_max: usize) -> Self {
        let config = Config {
            member: member(index),
            store_bytes: 1 << 20,
            annex_bytes: 0,
            create_timeout: 1_000 * MS,
            can_spill: false,
            high_water_bytes: u64::MAX,
            low_water_bytes: u64::MAX,
            relay_bytes_min: 1 << 20,
            lineage_bytes_max: 0,
            queued_tasks_max: usize::MAX,
            small_cluster_max,
        };
        Self {
            node: Node::new(config),
            settles: false,
            tick_at: None,
            next_client: DRIVER.0,
            links: BTreeSet::new(),
            submitted: 0,
            root: TaskId::root(JobId(index as u32 + 1)),
        }
    }
}

/// A node as the control store describes it. Ids are spread, as random ones are.
fn member(index: usize) -> Member {
    let resources = Resources { cpu: CPUS * Resources::UNIT, ..Resources::default() };
    Member { node: NodeId(scrambled(index as u64) | 1), resources, labels: Vec::new() }
}

/// The value of a task.
fn scrambled(number: u64) -> u64 {
    crate::rng::mix(number, 7)
}

/// CPU time of this thread, which other processes do not prolong.
fn cpu_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}
