//! Requests that would hold a node up: long ones, of which the length alone takes memory, and streams that
//! nobody reads.

use super::identity::{Cluster, credentials};
use crate::protocol::Protocol;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use std::collections::HashMap;
use std::time::Duration;
use tharsis_conformance::raw;
use tharsis_identity::{Role, Tls};
use tharsis_protos::peer::REQUEST_BYTES_MAX;
use tharsis_protos::rights::RIGHTS;
use tharsis_types::limits::MESSAGE_BYTES_MAX;

/// Streams of one call that a machine may have open at a node.
const STREAMS_MAX: usize = 16;

#[tokio::test]
async fn requests_of_calls_but_packets_of_links_are_short() {
    let (cluster, protocol) = (Cluster::start().await, Protocol::read());
    let mut callers = HashMap::new();
    for role in Role::ALL {
        callers.insert(role.name(), credentials(Tls::new(&cluster.machine(role).await).unwrap(), None));
    }
    for rpc in protocol.rpcs.iter().filter(|rpc| rpc.name != "Link") {
        let (_, roles) = RIGHTS.iter().find(|(call, _)| *call == rpc.name).unwrap();
        let is_of_peer = rpc.service.ends_with(".Peer");
        let bytes_max = if is_of_peer { REQUEST_BYTES_MAX } else { MESSAGE_BYTES_MAX };
        let path = format!("/{}/{}", rpc.service, rpc.name);
        let own = &callers[roles[0].name()];
        let refused = raw::call(&cluster.address(), own, &path, vec![0; bytes_max + 1]).await.unwrap_err();
        assert_eq!(refused.code(), tonic::Code::ResourceExhausted, "{}: {refused}", rpc.name);
    }
}

#[tokio::test]
async fn a_machine_has_few_streams_of_a_node_open() {
    let (cluster, protocol) = (Cluster::holding().await, Protocol::read());
    let address = cluster.address();
    for call in ["Drain", "JobOutput", "Logs", "Runs"] {
        let own = credentials(Tls::new(&cluster.machine(Role::Operator).await).unwrap(), None);
        let path = format!("/{}/{call}", protocol.rpc(call).service);
        // The first field is the node.
        let message = [&[9][..], &1_u64.to_le_bytes()].concat();
        let open = (0..=STREAMS_MAX).map(|_| raw::call(&address, &own, &path, message.clone()));
        let mut open: FuturesUnordered<_> = open.collect();
        let refused = open.next().await.unwrap().unwrap_err();
        assert_eq!(refused.code(), tonic::Code::ResourceExhausted, "{call}: {refused}");
        let another = tokio::time::timeout(Duration::from_millis(200), open.next()).await;
        assert!(another.is_err(), "{call}: {another:?}");
    }
}
