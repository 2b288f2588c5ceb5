//! Leases and bundles that a member asks for in the name of a job that has not begun.
//!
//! Jobs are numbered one after the other, so a member can name the next one. Such a bundle needs no worker,
//! and would stay for as long as the member likes, and count against the quota of the job.

// A test may panic where it fails, also in shared functions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::VecDeque;
use std::sync::Arc;
use tharsis_core::event::Member;
use tharsis_core::node::Config;
use tharsis_core::{Action, Event, MS, Node, Now, Operation, Record};
use tharsis_types::peer::{Message, Packet};
use tharsis_types::{
    ClientId, FunctionId, JobId, LeaseId, NodeId, Placement, Resources, TaskArgs, TaskClass, TaskId,
};

const ME: NodeId = NodeId(1);
const STRANGER: NodeId = NodeId(2);
const NEXT: JobId = JobId(7);
const DRIVER: ClientId = ClientId(1);

struct World {
    node: Node,
    now: Now,
    /// Number of the next message of the stranger.
    next: u64,
    starts: VecDeque<u64>,
    /// Workers that were told to run something.
    runs: Vec<ClientId>,
    /// Messages to the stranger.
    answers: Vec<Message>,
}

fn cpus(count: f64) -> Resources {
    Resources::cpus(count).unwrap()
}

fn member(node: NodeId, count: f64) -> Member {
    Member { node, resources: cpus(count), labels: Vec::new() }
}

fn class(count: f64) -> TaskClass {
    TaskClass { resources: cpus(count), ..TaskClass::new(NEXT, FunctionId(1), "f") }
}

impl World {
    fn new() -> Self {
        let config = Config {
            member: member(ME, 4.0),
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
        };
        let (starts, runs, answers) = (VecDeque::new(), Vec::new(), Vec::new());
        let mut world = Self { node: Node::new(config), now: MS, next: 0, starts, runs, answers };
        // It has no room, so that tasks run here.
        world.feed(Event::MemberJoined(Arc::new(member(STRANGER, 0.0))));
        world
    }

    fn feed(&mut self, event: Event) {
        self.now += MS;
        let mut out = Vec::new();
        self.node.handle(self.now, event, &mut out);
        self.node.settle(self.now, &mut out);
        self.node.check();
        for action in out {
            match action {
                Action::Do(Operation::StartWorker { start, .. }) => self.starts.push_back(start),
                Action::Do(Operation::Send { packet, .. }) => self.answers.extend(packet.messages),
                Action::Tell { client, record: Record::Run { .. } } => self.runs.push(client),
                _ => {}
            }
        }
    }

    /// The stranger asks for a lease of a job that has not begun, without a quota.
    fn asks(&mut self, lease: u64, class: TaskClass) {
        let (lease, class) = (LeaseId(lease), Arc::new(class));
        let message =
            Message::LeaseRequest { lease, class, wait: true, urgency: 0, weight: 100, quota: None };
        let packet = Packet::new(self.next, 0, vec![message]);
        self.next += 1;
        self.feed(Event::PacketReceived { from: STRANGER, packet });
    }

    /// The job begins, and its driver submits a task.
    fn begins(&mut self, quota: Option<&str>, count: f64) {
        let quota = quota.map(|quota| quota.parse().unwrap());
        self.feed(Event::DriverJoined { client: DRIVER, job: NEXT, weight: 100, quota });
        let definition = Ok(Arc::new(class(count)));
        self.feed(Event::ClassDefined { client: DRIVER, class: 0, definition });
        let (task, tokens, args) =
            (TaskId::root(NEXT).child(0), [1].into_iter().collect(), TaskArgs::default());
        self.feed(Event::Submitted { client: DRIVER, run: None, class: 0, task, tokens, args });
        let mut client = 10;
        while let Some(start) = self.starts.pop_front() {
            client += 1;
            self.feed(Event::WorkerReady { start, client: ClientId(client) });
        }
    }
}

#[test]
fn a_job_has_all_of_its_quota_whatever_was_asked_in_its_name_before() {
    for quota in [None, Some("cpus=2"), Some("cpus=4")] {
        for count in [1.0, 2.0] {
            let mut world = World::new();
            let placement = Placement::Bundle { group: TaskId::root(NEXT).child(9), index: 0 };
            world.asks(1, TaskClass { placement, ..class(2.0) });
            world.begins(quota, count);
            assert_eq!(world.runs.len(), 1, "quota {quota:?}, a task of {count} CPUs");
            let held = cpus(count);
            assert_eq!(world.node.held_of_quota(NEXT), quota.map(|_| &held));
            let revoked = Message::LeaseRevoked { lease: LeaseId(1) };
            assert!(world.answers.contains(&revoked), "the stranger hears of it");
        }
    }
}

#[test]
fn requests_and_leases_in_the_name_of_a_job_end_when_it_begins() {
    let mut world = World::new();
    // One has room and waits for a worker, one has none.
    world.asks(1, class(3.0));
    world.asks(2, class(4.0));
    world.begins(Some("cpus=4"), 4.0);
    assert_eq!(world.runs.len(), 1);
    for lease in [1, 2].map(LeaseId) {
        let is_denied =
            |answer: &Message| matches!(answer, Message::LeaseDenied { lease: of, .. } if *of == lease);
        assert!(world.answers.iter().any(is_denied), "{lease:?}");
    }
}
