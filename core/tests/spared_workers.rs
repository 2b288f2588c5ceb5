//! Workers that are to be killed for a task that ends before those behind it are back.
//!
//! Tasks of the driver of this node are sent here by another node, whose sends do not stop for a kill.

// A test may panic where it fails, also in shared functions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code, reason = "not every test uses all of it")]
mod host;

use host::{Host, config, member};
use std::sync::Arc;
use tharsis_core::event::{OutputValue, Remains, TaskOutcome};
use tharsis_core::{Action, Event, MS, Operation, Record};
use tharsis_types::peer::{Message, PushedDependency, PushedTask, RemoteState};
use tharsis_types::task::Output;
use tharsis_types::{
    ClientId, Dependency, Failure, FailureKind, FunctionId, JobId, LeaseId, NodeId, ObjectId, RefId,
    Resources, TaskClass, TaskId,
};

const ME: NodeId = NodeId(1);
const OWNER: NodeId = NodeId(2);
const JOB: JobId = JobId(1);
const DRIVER: ClientId = ClientId(1);
const WORKER: ClientId = ClientId(2);
const LEASE: LeaseId = LeaseId(1);

fn task(n: u64) -> TaskId {
    TaskId::root(JOB).child(n)
}

fn class() -> Arc<TaskClass> {
    Arc::new(TaskClass {
        resources: Resources::cpus(1.0).unwrap(),
        ..TaskClass::new(JOB, FunctionId(1), "f")
    })
}

/// A node with a driver, and a worker that another node has leased.
fn host() -> Host {
    let mut host = Host::new(config(member(ME, 1.0)), MS, MS);
    host.feed(Event::MemberJoined(Arc::new(member(OWNER, 1.0))));
    host.feed(Event::DriverJoined { client: DRIVER, job: JOB, weight: 100, quota: None });
    let wanted = Message::LeaseRequest {
        lease: LEASE,
        class: class(),
        wait: true,
        urgency: 0,
        weight: 100,
        quota: None,
    };
    host.hear(OWNER, wanted);
    let ready = host.ready(WORKER);
    host.feed(ready);
    assert!(host.sent.contains(&Message::LeaseGranted { lease: LEASE }), "{:?}", host.sent);
    host
}

/// A task comes; one that `waits` has an argument that is not here.
fn push(host: &mut Host, n: u64, waits: bool) {
    let reference = RefId { object: ObjectId::put(task(100 + n), 0), owner: OWNER };
    let state = RemoteState::Stored { len: 64, holders: vec![OWNER] };
    let dependency = Dependency { reference, parameter: 0 };
    let argument = PushedDependency { dependency, state, nested: Vec::new() };
    let pushed = PushedTask {
        task: task(n),
        attempt: 0,
        class: class(),
        payload: [1].into(),
        dependencies: waits.then_some(argument).into_iter().collect(),
        nested: Vec::new(),
        name: None,
    };
    host.hear(OWNER, Message::TaskPush { lease: LEASE, task: Box::new(pushed) });
    assert_eq!(host.runs.contains_key(&task(n)), !waits, "task {n} is sent to the worker");
}

fn cancel(host: &mut Host, n: u64) -> Vec<Action> {
    host.hear(OWNER, Message::TaskCancel { task: task(n), force: true, recursive: false })
}

fn end(host: &mut Host, n: u64) -> Vec<Action> {
    let output = Output { value: OutputValue::Inline([7].into()), nested: Vec::new() };
    let ended = host.finished(task(n), TaskOutcome::Returned([output].into_iter().collect()));
    host.feed(ended)
}

fn give_back(host: &mut Host) -> Vec<Action> {
    host.feed(Event::GivenBack { client: WORKER, question: 0, returned: Vec::new() })
}

fn asks_back(said: &[Action]) -> bool {
    said.iter().any(|action| matches!(action, Action::Tell { record: Record::StealBack { .. }, .. }))
}

fn kills(said: &[Action]) -> bool {
    let of_worker =
        |action: &Action| matches!(action, Action::Do(Operation::KillWorker { client: WORKER, .. }));
    said.iter().any(of_worker)
}

/// The worker serves its lease still, and is killed when its job ends.
fn lives(host: &mut Host) {
    push(host, 50, false);
    assert!(!kills(&end(host, 50)));
    assert!(!host.sent.contains(&Message::LeaseRevoked { lease: LEASE }), "{:?}", host.sent);
    let failure = Arc::new(Failure::new(FailureKind::Shutdown, "the driver ended"));
    let said = host.feed(Event::ClientGone { client: DRIVER, remains: Remains::Nothing, failure });
    assert!(kills(&said), "the worker outlives its job: {said:?}");
}

#[test]
fn a_task_ends_when_nothing_behind_it_was_sent() {
    let mut host = host();
    push(&mut host, 1, false);
    push(&mut host, 2, true);
    let said = cancel(&mut host, 1);
    assert!(asks_back(&said) && !kills(&said), "{said:?}");
    assert!(!kills(&end(&mut host, 1)) && !kills(&give_back(&mut host)));
    lives(&mut host);
}

#[test]
fn a_task_ends_when_another_one_has_come_behind_it_meanwhile() {
    let mut host = host();
    push(&mut host, 1, false);
    push(&mut host, 2, true);
    assert!(asks_back(&cancel(&mut host, 1)));
    push(&mut host, 3, true);
    assert!(!kills(&give_back(&mut host)), "it is not alone");
    assert!(!kills(&end(&mut host, 1)));
    lives(&mut host);
}

/// Nothing more is sent there, or it would fail for nothing of its own.
#[test]
fn a_task_ends_in_a_worker_that_is_being_killed_already() {
    for is_asked_back in [false, true] {
        let mut host = host();
        push(&mut host, 1, false);
        if is_asked_back {
            push(&mut host, 2, true);
            assert!(asks_back(&cancel(&mut host, 1)));
        }
        assert!(kills(&cancel(&mut host, 1)), "nothing stands behind it");
        push(&mut host, 3, true);
        let said = cancel(&mut host, 1);
        assert!(!asks_back(&said), "{said:?}");
        end(&mut host, 1);
        assert!(host.sent.contains(&Message::LeaseRevoked { lease: LEASE }), "{:?}", host.sent);
    }
}
