//! Tasks that need no resources: a node has room for any number of them, and each has a worker.

// A test may panic where it fails, also in shared functions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code, reason = "not every test uses all of it")]
mod host;

use host::{Host, config, member};
use std::sync::Arc;
use tharsis_core::{Event, MS};
use tharsis_types::peer::{DoneOutcome, DoneValue, Message};
use tharsis_types::task::Output;
use tharsis_types::{
    ClientId, Dependency, FunctionId, JobId, LeaseId, NodeId, ObjectId, RefId, Resources, TaskArgs,
    TaskClass, TaskId,
};

const ME: NodeId = NodeId(1);
const HOLDER: NodeId = NodeId(2);
const JOB: JobId = JobId(1);
const DRIVER: ClientId = ClientId(1);

fn task(n: u64) -> TaskId {
    TaskId::root(JOB).child(n)
}

fn submitted(n: u64, class: u32, argument: Option<RefId>) -> Event {
    let dependency = argument.map(|reference| Dependency { reference, parameter: 0 });
    let dependencies = dependency.into_iter().collect();
    let args = TaskArgs { payload: [1].into(), dependencies, ..TaskArgs::default() };
    let (task, tokens) = (task(n), [n].into_iter().collect());
    Event::Submitted { client: DRIVER, run: None, class, task, tokens, args }
}

/// The holder grants all leases that it is asked for.
fn grant(host: &mut Host) -> Vec<LeaseId> {
    let mut granted = Vec::new();
    loop {
        let asked = host.sent.drain(..).filter_map(|message| match message {
            Message::LeaseRequest { lease, .. } => Some(lease),
            _ => None,
        });
        let asked: Vec<_> = asked.collect();
        if asked.is_empty() {
            return granted;
        }
        for lease in asked {
            host.hear(HOLDER, Message::LeaseGranted { lease });
            granted.push(lease);
        }
    }
}

/// None of them ends, and no time passes.
#[test]
fn tasks_without_resources_have_as_many_workers_beside_their_arguments_as_elsewhere() {
    let mut host = Host::new(config(member(ME, 1.0)), MS, 1);
    host.feed(Event::MemberJoined(Arc::new(member(HOLDER, 2.0))));
    host.feed(Event::DriverJoined { client: DRIVER, job: JOB, weight: 100, quota: None });
    for (number, cpus) in [(0, 2.0), (1, 0.0)] {
        let resources = Resources::cpus(cpus).unwrap();
        let class = TaskClass { resources, ..TaskClass::new(JOB, FunctionId(1), "f") };
        host.feed(Event::ClassDefined { client: DRIVER, class: number, definition: Ok(Arc::new(class)) });
    }
    host.feed(submitted(1, 0, None));
    let makes = grant(&mut host);
    let [lease] = makes[..] else { panic!("{makes:?}") };
    let output = Output { value: DoneValue::Stored { len: 1 << 20 }, nested: Vec::new() };
    let outcome = Box::new(DoneOutcome::Returned([output].into_iter().collect()));
    host.hear(HOLDER, Message::TaskDone { lease, task: task(1), attempt: 0, run_ns: 1, outcome });
    let reference = RefId { object: ObjectId::output(task(1), 0), owner: ME };
    let mut count = 0;
    for n in 2..200 {
        host.feed(submitted(n, 1, Some(reference)));
        count += grant(&mut host).len();
    }
    assert_eq!(count, 64);
}
