//! Copies that nodes keep instead of those that leave: the owner believes only those that it has asked.

// A test may panic where it fails, also in shared functions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code, reason = "not every test uses all of it")]
mod host;

use host::{Host, config, member};
use std::sync::Arc;
use tharsis_core::event::OutputValue;
use tharsis_core::{Action, Event, MS, Operation, Record};
use tharsis_types::peer::{DrainMessage, Message};
use tharsis_types::{ClientId, Extent, JobId, NodeId, ObjectId, RefId, TaskId};

const ME: NodeId = NodeId(1);
const LEAVING: NodeId = NodeId(2);
const DRIVER: ClientId = ClientId(1);

fn object() -> ObjectId {
    ObjectId::put(TaskId::root(JobId(1)), 0)
}

/// A node that drains and owns an object, of which another one has a copy that drains as well.
fn host() -> Host {
    let mut host = Host::new(config(member(ME, 4.0)), MS, MS);
    for node in 2..20 {
        host.feed(Event::MemberJoined(Arc::new(member(NodeId(node), 4.0))));
    }
    host.feed(Event::DriverJoined { client: DRIVER, job: JobId(1), weight: 100, quota: None });
    let said = host.feed(Event::RegionWanted { client: DRIVER, request: 1, bytes: 4_096 });
    let granted = said.iter().find_map(|action| match action {
        Action::Tell { record: Record::Region { region: Ok(region), .. }, .. } => Some(*region),
        _ => None,
    });
    let value = OutputValue::Written(Extent { len: 64, ..granted.unwrap() });
    let (nested, site) = (Vec::new(), "".into());
    host.feed(Event::Put { client: DRIVER, token: 1, object: object(), value, nested, site });
    host.feed(Event::DrainWanted { within: 60_000 * MS });
    host.hear(LEAVING, Message::Drain(DrainMessage::Begun));
    host.hear(LEAVING, Message::HolderAdded { object: object() });
    host
}

/// Whether the owner has a node that drains free its copy, as this one says that it keeps one.
fn believes(host: &mut Host, keeper: NodeId) -> bool {
    host.sent.clear();
    host.hear(keeper, Message::Drain(DrainMessage::CopyKept { object: object() }));
    host.sent.contains(&Message::ObjectFree { object: object() })
}

#[test]
fn only_nodes_that_were_asked_to_keep_a_copy_have_those_freed_that_leave() {
    let mut host = host();
    assert!(!believes(&mut host, NodeId(3)), "nobody was asked");
    let said = host.hear(LEAVING, Message::Drain(DrainMessage::CopyLeaving { object: object() }));
    let asked = said.iter().find_map(|action| match action {
        Action::Do(Operation::Send { to, packet }) => {
            packet.messages.iter().find_map(|message| match message {
                Message::Drain(DrainMessage::CopyMove { others, .. }) => Some((*to, others.clone())),
                _ => None,
            })
        }
        _ => None,
    });
    let (first, others) = asked.unwrap();
    let stranger = (4..20).map(NodeId).find(|node| *node != first && !others.contains(node)).unwrap();
    assert!(!believes(&mut host, stranger));
    assert!(believes(&mut host, *others.last().unwrap()), "the others may have passed it on");
    assert!(!believes(&mut host, first), "there is nothing more to free");
}

/// A copy leaves, and then something ends that.
fn asked_is_empty_after(end: impl FnOnce(&mut Host)) -> bool {
    let mut host = host();
    let is_asked = |host: &Host| {
        host.node.leftovers().iter().any(|(table, _)| *table == "copies that others were asked to keep")
    };
    host.hear(LEAVING, Message::Drain(DrainMessage::CopyLeaving { object: object() }));
    assert!(is_asked(&host));
    end(&mut host);
    !is_asked(&host)
}

#[test]
fn nobody_stays_asked_for_a_copy_that_does_not_leave_any_more() {
    let reference = RefId { object: object(), owner: ME };
    assert!(asked_is_empty_after(|host| {
        host.feed(Event::MemberLeft { node: LEAVING });
    }));
    assert!(asked_is_empty_after(|host| {
        host.hear(LEAVING, Message::HolderRemoved { object: object() });
    }));
    assert!(asked_is_empty_after(|host| {
        host.feed(Event::Released { client: DRIVER, token: 1, reference });
    }));
    assert!(!asked_is_empty_after(|host| {
        host.hear(NodeId(3), Message::HolderRemoved { object: object() });
    }));
}
