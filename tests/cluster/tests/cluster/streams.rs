//! I3: streams between nodes.

use tharsis::NodeId;
use tharsis::prelude::*;
use tharsis_cluster_tests::{SOON, Scenario, driver, scenarios, small_cluster};

pub const ALL: &[Scenario] = scenarios![i3_a_stream_crosses_nodes, i3_a_stream_goes_on_when_its_node_dies,];

/// Numbers with the node that made them, and large bytes for every tenth.
#[remote]
fn made(count: u64) -> Result<impl Iterator<Item = (u64, NodeId, Blob)>, Error> {
    let node = context()?.node();
    Ok((0..count).map(move |n| {
        let len = if n % 10 == 0 { 100_000 } else { 0 };
        (n, node, Blob::from(vec![n as u8; len]))
    }))
}

#[remote]
fn numbers_of(stream: ObjectRefStream<(u64, NodeId, Blob)>) -> Result<Vec<u64>, Error> {
    stream.map(|item| item.get().map(|(n, ..)| n)).collect()
}

fn i3_a_stream_crosses_nodes() {
    let cluster = small_cluster(2, 2.0);
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    let [here, there] = [0, 1].map(|index| cluster.node(index).unwrap());
    let mut stream = made::options().node(there, false).remote(100);
    for n in 0..30 {
        let item = stream.next_timeout(SOON).unwrap().unwrap();
        let (number, node, bytes) = item.get_timeout(SOON).unwrap();
        assert_eq!((number, node), (n, there));
        assert!(bytes.iter().all(|byte| u64::from(*byte) == n));
    }
    let rest = numbers_of::options().node(there, false).remote(stream);
    assert_eq!(rest.get_timeout(SOON).unwrap(), (30..100).collect::<Vec<_>>());
    let away = numbers_of::options().node(there, false).remote(made::options().node(here, false).remote(50));
    assert_eq!(away.get_timeout(SOON).unwrap(), (0..50).collect::<Vec<_>>());
}

#[remote]
fn numbered(count: u64) -> Result<impl Iterator<Item = (u64, NodeId)>, Error> {
    let node = context()?.node();
    Ok((0..count).map(move |n| (n, node)))
}

fn i3_a_stream_goes_on_when_its_node_dies() {
    let mut cluster = small_cluster(2, 2.0);
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    let [here, there] = [0, 1].map(|index| cluster.node(index).unwrap());
    let mut stream = numbered::options().node(there, true).unconsumed_max(4).remote(40);
    let mut found = Vec::new();
    while let Some(item) = stream.next_timeout(SOON).unwrap() {
        found.push(item.get_timeout(SOON).unwrap());
        if found.len() == 10 {
            cluster.kill(1);
        }
    }
    assert!(found.iter().map(|(n, _)| *n).eq(0..40), "each item once, in order");
    assert_eq!((found[0].1, found[39].1), (there, here));
}
