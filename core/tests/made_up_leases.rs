//! Leases and bundles that a member asks for in the name of a job that has not begun.
//!
//! Jobs are numbered one after the other, so a member can name the next one. Such a bundle needs no worker,
//! and would stay for as long as the member likes, and count against the quota of the job.

// A test may panic where it fails, also in shared functions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code, reason = "not every test uses all of it")]
mod host;

use host::{Host, config, member};
use std::sync::Arc;
use tharsis_core::{Event, MS};
use tharsis_types::peer::Message;
use tharsis_types::{
    ClientId, FunctionId, JobId, LeaseId, NodeId, Placement, Resources, TaskArgs, TaskClass, TaskId,
};

const ME: NodeId = NodeId(1);
const STRANGER: NodeId = NodeId(2);
const NEXT: JobId = JobId(7);
const DRIVER: ClientId = ClientId(1);

fn cpus(count: f64) -> Resources {
    Resources::cpus(count).unwrap()
}

fn class(count: f64) -> TaskClass {
    TaskClass { resources: cpus(count), ..TaskClass::new(NEXT, FunctionId(1), "f") }
}

/// A node that knows of the stranger. That one has no room, so that tasks run here.
fn beside_stranger() -> Host {
    let mut host = Host::new(config(member(ME, 4.0)), MS, MS);
    host.feed(Event::MemberJoined(Arc::new(member(STRANGER, 0.0))));
    host
}

impl Host {
    /// The stranger asks for a lease of a job that has not begun, without a quota.
    fn asks(&mut self, lease: u64, class: TaskClass) {
        let (lease, class) = (LeaseId(lease), Arc::new(class));
        let message =
            Message::LeaseRequest { lease, class, wait: true, urgency: 0, weight: 100, quota: None };
        self.hear(STRANGER, message);
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
        while !self.starts.is_empty() {
            client += 1;
            let event = self.ready(ClientId(client));
            self.feed(event);
        }
    }
}

#[test]
fn a_job_has_all_of_its_quota_whatever_was_asked_in_its_name_before() {
    for quota in [None, Some("cpus=2"), Some("cpus=4")] {
        for count in [1.0, 2.0] {
            let mut host = beside_stranger();
            let placement = Placement::Bundle { group: TaskId::root(NEXT).child(9), index: 0 };
            host.asks(1, TaskClass { placement, ..class(2.0) });
            host.begins(quota, count);
            assert_eq!(host.runs.len(), 1, "quota {quota:?}, a task of {count} CPUs");
            let held = cpus(count);
            assert_eq!(host.node.held_of_quota(NEXT), quota.map(|_| &held));
            let revoked = Message::LeaseRevoked { lease: LeaseId(1) };
            assert!(host.sent.contains(&revoked), "the stranger hears of it");
        }
    }
}

#[test]
fn requests_and_leases_in_the_name_of_a_job_end_when_it_begins() {
    let mut host = beside_stranger();
    // One has room and waits for a worker, one has none.
    host.asks(1, class(3.0));
    host.asks(2, class(4.0));
    host.begins(Some("cpus=4"), 4.0);
    assert_eq!(host.runs.len(), 1);
    for lease in [1, 2].map(LeaseId) {
        let is_denied =
            |answer: &Message| matches!(answer, Message::LeaseDenied { lease: of, .. } if *of == lease);
        assert!(host.sent.iter().any(is_denied), "{lease:?}");
    }
}
