//! A node that a test tells one event after the other, and what it has done so far.

// A test may panic where it fails, also in shared functions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, VecDeque};
use tharsis_core::event::{Member, TaskOutcome};
use tharsis_core::node::Config;
use tharsis_core::{Action, Event, MS, Node, Now, Operation, Record};
use tharsis_types::peer::{Message, Packet};
use tharsis_types::{ClientId, NodeId, Resources, TaskId};

/// A member that offers CPUs alone.
pub fn member(node: NodeId, cpus: f64) -> Member {
    Member { node, resources: Resources::cpus(cpus).unwrap(), labels: Vec::new() }
}

/// A configuration with little memory, no disk, and no bound on tasks.
pub fn config(member: Member) -> Config {
    Config {
        member,
        store_bytes: 1 << 20,
        annex_bytes: 0,
        create_timeout: 1000 * MS,
        can_spill: false,
        high_water_bytes: u64::MAX,
        low_water_bytes: u64::MAX,
        relay_bytes_min: 1 << 20,
        lineage_bytes_max: 1 << 20,
        queued_tasks_max: usize::MAX,
        small_cluster_max: usize::MAX,
    }
}

/// A node, with what its workers and the other members have been told.
pub struct Host {
    pub node: Node,
    /// Time of the last event.
    now: Now,
    /// Time from one event to the next.
    step: Now,
    /// Number of the next message of each member.
    next: BTreeMap<NodeId, u64>,
    /// Workers that have not started yet, the oldest first.
    pub starts: VecDeque<u64>,
    /// Workers of tasks that run, and the numbers of these runs.
    pub runs: BTreeMap<TaskId, (ClientId, u32)>,
    /// Messages to other members.
    pub sent: Vec<Message>,
}

impl Host {
    /// A node whose first event comes a step after `now`.
    pub fn new(config: Config, now: Now, step: Now) -> Self {
        let (starts, runs, sent) = (VecDeque::new(), BTreeMap::new(), Vec::new());
        Self { node: Node::new(config), now, step, next: BTreeMap::new(), starts, runs, sent }
    }

    /// The node handles an event, the only one of its batch; returns all its actions.
    pub fn feed(&mut self, event: Event) -> Vec<Action> {
        self.now += self.step;
        let mut out = Vec::new();
        self.node.handle(self.now, event, &mut out);
        self.node.settle(self.now, &mut out);
        self.node.check();
        for action in &out {
            match action {
                Action::Do(Operation::StartWorker { start, .. }) => self.starts.push_back(*start),
                Action::Do(Operation::Send { packet, .. }) => self.sent.extend_from_slice(&packet.messages),
                Action::Tell { client, record: Record::Run { run } } => {
                    let task = self.node.run(*run).unwrap().task;
                    let before = self.runs.insert(task, (*client, *run));
                    assert!(before.is_none(), "{task} runs twice");
                }
                _ => {}
            }
        }
        out
    }

    /// The next message of a member arrives, alone in its packet.
    pub fn hear(&mut self, from: NodeId, message: Message) -> Vec<Action> {
        let packet = self.next_packet(from, message);
        self.feed(Event::PacketReceived { from, packet })
    }

    /// The packet in which the next message of a member comes.
    pub fn next_packet(&mut self, from: NodeId, message: Message) -> Packet {
        let first = self.next.entry(from).or_default();
        let packet = Packet::new(*first, 0, vec![message]);
        *first += 1;
        packet
    }

    /// The oldest start ends with a worker.
    pub fn ready(&mut self, client: ClientId) -> Event {
        Event::WorkerReady { start: self.starts.pop_front().unwrap(), client }
    }

    /// The run of a task ends.
    pub fn finished(&mut self, task: TaskId, outcome: TaskOutcome) -> Event {
        let (client, run) = self.runs.remove(&task).unwrap();
        Event::Finished { client, run, run_ns: 1, outcome }
    }
}
