//! The control store: its back ends, its service, who may call it, several of them, and a real etcd in
//! trouble.
//!
//! | file | tests |
//! |---|---|
//! | `backends.rs` | every check of the suite against every back end |
//! | `service.rs` | the service over loopback: membership, jobs, code units, keys |
//! | `doors.rs` | every call by every role with every certificate, at heads and members |
//! | `crowds.rs` | machines and strangers that ask a head without end |
//! | `identity.rs` | roles, certificates and tokens |
//! | `limits.rs` | requests that would hold a node up |
//! | `ports.rs` | what is concluded from ports of members, and what askers learn |
//! | `protocol.rs` | the files of the protocol, for tests that go through all of it |
//! | `stores.rs` | several control stores over one back end |
//! | `etcd.rs` | the service over an etcd that is compacted, full, or asks for users |

#![forbid(unsafe_code)]

mod backends;
mod crowds;
mod doors;
mod etcd;
mod identity;
mod limits;
mod ports;
mod protocol;
mod service;
mod stores;

use std::collections::BTreeMap;
use tharsis_protos::connection::Credentials;
use tharsis_protos::control::NodeInfo;
use tharsis_protos::proof::Secret;
use tharsis_types::{NodeId, Resources};

/// Credentials of all members of clusters with a secret.
fn own() -> Credentials {
    Credentials::with_secret(Secret::from_bytes([7; 32]), None)
}

/// A node that has a value in each field.
fn node(id: u64) -> NodeInfo {
    let mut resources = Resources::cpus(4.0).unwrap();
    resources.set_custom("tpu", 2.0).unwrap();
    NodeInfo {
        id: NodeId(id),
        listen: format!("127.0.0.1:{}", 7000 + id),
        host: "a-boot-id".to_owned(),
        local_socket: format!("/run/tharsis/{id}"),
        resources,
        labels: BTreeMap::from([("zone".to_owned(), "a".to_owned())]),
    }
}
