//! Copies in the annex that its disk does not give back.

// A test may panic where it fails, also in shared functions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code, reason = "not every test uses all of it")]
mod host;

use host::{Host, config, member};
use std::sync::Arc;
use tharsis_core::node::Config;
use tharsis_core::{Action, Event, MS, Operation};
use tharsis_types::peer::{Message, RemoteState};
use tharsis_types::{ClientId, JobId, NodeId, ObjectId, RefId, TaskId};

const ME: NodeId = NodeId(1);
const OWNER: NodeId = NodeId(2);
const HOLDER: NodeId = NodeId(3);
const DRIVER: ClientId = ClientId(1);

/// More than the memory of the node.
const LEN: u64 = 2 << 20;

fn object() -> ObjectId {
    ObjectId::put(TaskId::root(JobId(1)).child(1), 0)
}

/// The driver reads the object by another name.
fn read(host: &mut Host, token: u64) -> Vec<Action> {
    let reference = RefId { object: object(), owner: OWNER };
    host.feed(Event::Held { client: DRIVER, token, reference });
    host.feed(Event::Fetch { client: DRIVER, token, reference })
}

fn reads_it(said: &[Action]) -> bool {
    said.iter().any(|action| matches!(action, Action::Do(Operation::Pull { from: HOLDER, .. })))
}

/// A node with a copy in its annex, which its driver has mapped.
fn host() -> Host {
    let config = Config { annex_bytes: 4 * LEN, relay_bytes_min: u64::MAX, ..config(member(ME, 1.0)) };
    let mut host = Host::new(config, MS, MS);
    for node in [OWNER, HOLDER] {
        host.feed(Event::MemberJoined(Arc::new(member(node, 1.0))));
    }
    host.feed(Event::DriverJoined { client: DRIVER, job: JobId(1), weight: 100, quota: None });
    read(&mut host, 1);
    let state = RemoteState::Stored { len: LEN, holders: vec![HOLDER] };
    let told = Message::ObjectState { object: object(), state, nested: Vec::new() };
    assert!(reads_it(&host.hear(OWNER, told)));
    host.feed(Event::PullDone { object: object() });
    assert!(host.node.local_extent(object()).is_some());
    host
}

#[test]
fn a_copy_in_the_annex_that_its_disk_fails_is_gone_for_its_owner_as_well() {
    let mut host = host();
    let is_gone = Message::HolderRemoved { object: object() };
    assert!(!host.sent.contains(&is_gone), "{:?}", host.sent);
    host.feed(Event::CopyLost { object: object() });
    assert!(host.sent.contains(&is_gone), "{:?}", host.sent);
    assert_eq!(host.node.local_extent(object()), None);
    host.sent.clear();
    host.feed(Event::CopyLost { object: object() });
    assert!(!host.sent.contains(&is_gone), "two readers have found it out: {:?}", host.sent);
    assert!(reads_it(&read(&mut host, 2)), "it is read anew");
    host.feed(Event::CopyLost { object: object() });
    host.feed(Event::PullDone { object: object() });
    assert!(host.node.local_extent(object()).is_some(), "that was the old one");
}
