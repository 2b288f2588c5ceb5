//! Nodes that know each other by certificates, as on several machines: what works without works with them,
//! and goes on while certificates are replaced.

use crate::bytes::{digest, pattern};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tharsis::prelude::*;
use tharsis::process::{Security, authority_folder};
use tharsis::{LocalCluster, LocalNode, NodeId, Runtime};
use tharsis_cluster_tests::{LEASE_TTL, Scenario, driver, scenarios, small_node};
use tharsis_identity::{Authority, Role, Token};
use tharsis_protos::connection::Called;
use tharsis_protos::proof::Purpose;

const STORE_BYTES: u64 = 128 << 20;
/// Certificates of nodes are replaced at half of this.
const SHORT: Duration = Duration::from_secs(2);
const LONG: Duration = Duration::from_secs(3600);
/// Several lifetimes.
const WHILE_REPLACED: Duration = Duration::from_secs(5);
/// Above the size from which objects are sent as transfers, in several chunks.
const LARGE_BYTES: usize = 9 << 20;
/// Long enough for a busy machine.
const SOON: Duration = Duration::from_secs(60);

pub const ALL: &[Scenario] = scenarios![
    work_and_transfers_go_on_while_certificates_are_replaced,
    work_goes_on_while_the_authority_gets_another_key,
    objects_are_sent_to_members_only,
    a_program_joins_with_a_token_and_leaves_when_it_ends,
    a_drivers_node_gets_no_work_of_others,
];

#[remote]
fn bytes_of(seed: u64, len: usize) -> Blob {
    Blob::from(pattern(len, seed))
}

#[remote]
fn place() -> NodeId {
    context().unwrap().node()
}

#[remote]
fn digest_of(blob: Blob) -> u64 {
    digest(&blob)
}

/// Two nodes, each with one CPU and a resource of its own.
fn cluster(lifetime: Duration) -> (LocalCluster, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut cluster = LocalCluster::empty().lease_ttl(LEASE_TTL).identities(folder.path(), lifetime);
    for name in ["here", "there"] {
        cluster.add(node(name)).unwrap();
    }
    (cluster, folder)
}

fn work_and_transfers_go_on_while_certificates_are_replaced() {
    let (mut cluster, _folder) = cluster(SHORT);
    let runtime = driver(&cluster, 0);
    let entered = runtime.enter();
    work_for(WHILE_REPLACED);
    // A node that joins now connects to all others: their first certificates are over.
    cluster.add(node("more")).unwrap();
    drop(entered);
}

fn work_goes_on_while_the_authority_gets_another_key() {
    let (mut cluster, folder) = cluster(SHORT);
    let runtime = driver(&cluster, 0);
    let entered = runtime.enter();
    let authority = Authority::load(&authority_folder(&folder.path().join("machine-0"))).unwrap();
    let former = authority.anchors().unwrap().hash();
    let [early_token, other_token] = [(), ()].map(|()| authority.make_token(Role::Driver, LONG).unwrap());

    let security = authority.rotate().unwrap();
    assert_eq!(security.former_hash(), Some(former));
    // The head looks for another key every 2 s. Then machines join with tokens of both.
    std::thread::sleep(Duration::from_secs(4));
    cluster.add(node("more")).unwrap();
    let early = joined_with(&cluster, &folder, "early", &early_token).unwrap();
    work_for(WHILE_REPLACED);
    authority.retire(WHILE_REPLACED).unwrap();
    work_for(WHILE_REPLACED);
    // Nobody was lost, the laptop's node included.
    cluster.await_count(4, SOON).unwrap();
    drop(early);
    cluster.await_count(3, SOON).unwrap();
    cluster.add(node("most")).unwrap();
    // A token of the former key admits nobody.
    let refused = joined_with(&cluster, &folder, "late", &other_token).map(drop).unwrap_err().to_string();
    assert!(refused.contains("TLS"), "{refused}");
    drop(entered);
}

/// Tasks on both nodes, with transfers between them.
fn work_for(time: Duration) {
    let until = Instant::now() + time;
    let mut rounds = 0;
    // On a busy machine one round may outlast several certificates.
    while Instant::now() < until || rounds < 2 {
        let made = bytes_of::options().resource("there", 1.0).max_retries(0).remote(rounds, LARGE_BYTES);
        let summed = digest_of::options().resource("here", 1.0).max_retries(0).remote(&made);
        assert_eq!(summed.get().unwrap(), digest(&pattern(LARGE_BYTES, rounds)), "round {rounds}");
        rounds += 1;
    }
}

/// A node with one CPU and a resource of its own.
fn node(name: &str) -> LocalNode {
    let mut node = LocalNode { store_bytes: STORE_BYTES, ..small_node(1.0) };
    node.resources.set_custom(name, 1.0).unwrap();
    node
}

fn objects_are_sent_to_members_only() {
    let (cluster, folder) = cluster(LONG);
    let address = cluster.address(1).unwrap();
    // The identity of the second machine, which is a member; the connection is in the name of no node.
    let security = Security::Identity { folder: folder.path().join("machine-1"), lifetime_ms: 0 };
    let own = security.credentials(&[cluster.address(0).unwrap().to_owned()]).unwrap();
    let stream = std::net::TcpStream::connect(address).unwrap();
    let called = Called::Node(cluster.node(1).unwrap().0);
    let refused = own.meet_blocking(stream, called, Purpose::Transfers).map(drop);
    assert!(refused.is_err_and(|error| error.to_string().contains("role")));
}

/// A runtime of a program on a machine of its own, which joins for the first time.
fn joined(cluster: &LocalCluster, folder: &TempDir, machine: &str) -> tharsis::Result<Runtime> {
    let authority = Authority::load(&authority_folder(&folder.path().join("machine-0"))).unwrap();
    joined_with(cluster, folder, machine, &authority.make_token(Role::Driver, LONG).unwrap())
}

/// As [`joined`], with this token.
fn joined_with(
    cluster: &LocalCluster,
    folder: &TempDir,
    machine: &str,
    token: &Token,
) -> tharsis::Result<Runtime> {
    let identities = folder.path().join(machine);
    let head = cluster.address(0).unwrap();
    init()
        .address(head)
        .token(token.to_string())
        .identity_dir(identities)
        .store_bytes(STORE_BYTES)
        .start_local()
}

fn a_program_joins_with_a_token_and_leaves_when_it_ends() {
    let (cluster, folder) = cluster(LONG);
    for round in 0..2 {
        // The second time its machine has an identity.
        let runtime = joined(&cluster, &folder, "laptop").unwrap();
        let entered = runtime.enter();
        cluster.await_count(3, SOON).unwrap();
        // Both ways: what is made there is read here, what is put here is read there.
        let made = bytes_of::options().resource("there", 1.0).remote(round, LARGE_BYTES);
        assert_eq!(made.get().unwrap()[..], pattern(LARGE_BYTES, round)[..]);
        let put = put(&Blob::from(pattern(LARGE_BYTES, 7))).unwrap();
        let summed = digest_of::options().resource("here", 1.0).remote(&put);
        assert_eq!(summed.get().unwrap(), digest(&pattern(LARGE_BYTES, 7)));
        drop(entered);
        drop(runtime);
        cluster.await_count(2, SOON).unwrap();
    }
}

fn a_drivers_node_gets_no_work_of_others() {
    let (cluster, folder) = cluster(LONG);
    let guest = joined(&cluster, &folder, "laptop").unwrap();
    cluster.await_count(3, SOON).unwrap();
    let runtime = driver(&cluster, 0);
    let entered = runtime.enter();
    let nodes: Vec<_> = (0..40).map(|_| place::remote()).map(|there| there.get().unwrap()).collect();
    let members = [cluster.node(0).unwrap(), cluster.node(1).unwrap()];
    assert!(nodes.iter().all(|node| members.contains(node)), "{nodes:?}");
    drop(entered);
    drop(guest);
}
