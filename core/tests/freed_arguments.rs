//! Tasks of other nodes that take an object of this node which this node has freed.
//!
//! That happens where a node ends that lent the reference on, and the next one is late to say that it has it.

// A test may panic where it fails, also in shared functions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code, reason = "not every test uses all of it")]
mod host;

use host::{Host, config, member};
use std::sync::Arc;
use tharsis_core::{Event, MS};
use tharsis_types::peer::{DoneOutcome, Message, PushedDependency, PushedTask, RemoteState};
use tharsis_types::{
    ClientId, Dependency, FailureKind, FunctionId, JobId, LeaseId, NodeId, ObjectId, RefId, Resources,
    TaskClass, TaskId,
};

const ME: NodeId = NodeId(1);
const OTHER: NodeId = NodeId(2);
const JOB: JobId = JobId(7);

/// The kind of the failure of a task whose parameter is an object of a job that is not there any more.
fn kind_of(parameter: u16, of: JobId) -> FailureKind {
    let mut host = Host::new(config(member(ME, 4.0)), MS, MS);
    host.feed(Event::MemberJoined(Arc::new(member(OTHER, 4.0))));
    let resources = Resources::cpus(1.0).unwrap();
    let class = Arc::new(TaskClass { resources, ..TaskClass::new(JOB, FunctionId(1), "f") });
    let (lease, wanted) = (LeaseId(1), Arc::clone(&class));
    let message =
        Message::LeaseRequest { lease, class: wanted, wait: true, urgency: 0, weight: 100, quota: None };
    host.hear(OTHER, message);
    let ready = host.ready(ClientId(1));
    host.feed(ready);
    let reference = RefId { object: ObjectId::put(TaskId::root(of), 0), owner: ME };
    let state = RemoteState::Stored { len: 8, holders: vec![ME] };
    let dependency = Dependency { reference, parameter };
    let pushed = PushedTask {
        task: TaskId::root(JOB).child(0),
        attempt: 0,
        class,
        payload: [1].into(),
        dependencies: vec![PushedDependency { dependency, state, nested: Vec::new() }],
        nested: Vec::new(),
        name: None,
    };
    host.hear(OTHER, Message::TaskPush { lease, task: Box::new(pushed) });
    let failed = host.sent.iter().find_map(|message| match message {
        Message::TaskDone { outcome, .. } => match &**outcome {
            DoneOutcome::Failed { failure, .. } => Some(failure.kind),
            DoneOutcome::Returned(_) => None,
        },
        _ => None,
    });
    failed.unwrap()
}

#[test]
fn a_pushed_task_fails_as_one_that_is_submitted_where_the_object_was() {
    assert_eq!(kind_of(0, JOB), FailureKind::ObjectFreed);
    assert_eq!(kind_of(0, JobId(8)), FailureKind::InvalidReference);
    assert_eq!(kind_of(Dependency::ACTOR, JOB), FailureKind::ActorDied);
    assert_eq!(kind_of(Dependency::GROUP, JOB), FailureKind::GroupRemoved);
}
