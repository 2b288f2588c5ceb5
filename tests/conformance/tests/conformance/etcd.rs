//! The service over a real etcd that is in trouble: its history is compacted, it is out of space, or it has
//! forgotten who was let in.

use crate::{node, own};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tharsis_conformance::etcd::{EtcdGuard, EtcdProcess};
use tharsis_conformance::relay::Relay;
use tharsis_gcs::{
    Backend, ClientOptions, Control, ControlClient, ControlOptions, Etcd, EtcdOptions, EtcdTls, EtcdUser,
    Membership, Server, StoreError, serve,
};
use tharsis_protos::connection::Gate;
use tharsis_protos::control::{JobEnd, JobRequest, LeftReason, NodeChange};
use tharsis_protos::{CallError, RefusalCode};
use tharsis_types::{JobId, NodeId};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tonic::service::Routes;

const TTL: Duration = Duration::from_secs(3);
const SOON: Duration = Duration::from_secs(20);
/// Time without a change after those that come together.
const BRIEF: Duration = Duration::from_millis(1500);
/// Room for the records, and for what etcd allocates ahead.
const SMALL_BYTES: u64 = 4 << 20;

/// A control store over an etcd, and a client that knows no other one: it is not announced.
struct Store {
    server: Server,
    client: ControlClient,
}

fn options(endpoint: &str) -> EtcdOptions {
    EtcdOptions {
        endpoints: vec![endpoint.to_owned()],
        cluster: "troubles".to_owned(),
        user: None,
        tls: None,
    }
}

async fn store(endpoint: &str) -> Store {
    store_with(options(endpoint)).await
}

async fn store_with(options: EtcdOptions) -> Store {
    let etcd: Arc<dyn Backend> = Arc::new(Etcd::connect(options).await.unwrap());
    let control =
        Control::start(etcd, ControlOptions { lease_ttl: TTL, cluster: None, owner: None }).await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = serve(control, listener, Gate::new(own().trust), Routes::default()).unwrap();
    let patience = ClientOptions { call_deadline: Duration::from_secs(5), patience: SOON };
    let (client, _) = ControlClient::connect(&server.address().to_string(), &own(), patience).await.unwrap();
    Store { server, client }
}

fn job(driver_node: u64) -> JobRequest {
    JobRequest {
        name: "train".to_owned(),
        namespace: "team".to_owned(),
        code_unit: None,
        driver_node: NodeId(driver_node),
        entrypoint: "train".to_owned(),
        request: [1; 16],
        terms: None,
    }
}

/// Renews the leases of nodes until it is aborted. An answer that they are gone is a panic; a store that
/// does not renew is not.
fn keep_alive(client: &ControlClient, nodes: &[u64]) -> JoinHandle<()> {
    let (client, nodes) = (client.clone(), nodes.to_vec());
    tokio::spawn(async move {
        loop {
            for id in &nodes {
                let known = client.keep_alive(NodeId(*id)).await;
                assert!(!matches!(known, Ok(false)), "node {id} is declared dead");
            }
            sleep(TTL / 8).await;
        }
    })
}

/// The next changes, until there is none for the time of `quiet`.
async fn changes(membership: &mut Membership, quiet: Duration) -> Vec<NodeChange> {
    let mut changes = Vec::new();
    let mut wait = SOON;
    while let Ok(change) = timeout(wait, membership.next()).await {
        changes.push(change.unwrap());
        wait = quiet;
    }
    changes
}

/// Asserts that there is no change for a time.
async fn assert_none(membership: &mut Membership, time: Duration, why: &str) {
    let change = timeout(time, membership.next()).await;
    assert!(change.is_err(), "{why}: {change:?}");
}

async fn listed(client: &ControlClient) -> BTreeSet<u64> {
    client.list_nodes().await.unwrap().nodes.into_iter().map(|node| node.id.0).collect()
}

fn joined(id: u64) -> NodeChange {
    NodeChange::Joined(node(id))
}

/// One control store is cut off from etcd for longer than a lease. Meanwhile others join and leave, and etcd
/// forgets that they did.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_that_resumes_at_a_compacted_revision_shows_who_is_there() {
    let etcd = EtcdProcess::start().await;
    let relay = Relay::start(etcd.endpoint());
    let direct = store(etcd.endpoint()).await;
    let cut = store(relay.endpoint()).await;
    let mut membership = cut.client.membership();
    for id in [1, 2, 3] {
        direct.client.register_node(&node(id), 0).await.unwrap();
    }
    let stay = keep_alive(&direct.client, &[2, 3]);
    let first = keep_alive(&direct.client, &[1]);
    assert_eq!(changes(&mut membership, BRIEF).await, [joined(1), joined(2), joined(3)]);
    // A watch that is up to date does not notice.
    etcd.compact().await;
    direct.client.register_node(&node(4), 0).await.unwrap();
    let fourth = keep_alive(&direct.client, &[4]);
    assert_eq!(changes(&mut membership, TTL).await, [joined(4)]);

    relay.cut();
    first.abort();
    assert!(direct.client.unregister_node(NodeId(1), "drained").await.unwrap());
    for id in [5, 6] {
        direct.client.register_node(&node(id), 0).await.unwrap();
    }
    let fifth = keep_alive(&direct.client, &[5]);
    assert!(direct.client.unregister_node(NodeId(6), "drained").await.unwrap());
    sleep(TTL * 3 / 2).await;
    for _ in 0..50 {
        direct.client.kv_put("ns", Bytes::from_static(b"k"), Bytes::from_static(b"v")).await.unwrap();
    }
    etcd.compact().await;
    relay.join();
    // The leave is known, its reason is not.
    let gone = NodeChange::Left { node: NodeId(1), reason: LeftReason::Expired };
    assert_eq!(changes(&mut membership, TTL * 2).await, [gone, joined(5)], "nobody else comes or goes");
    for client in [&direct.client, &cut.client] {
        assert_eq!(listed(client).await, BTreeSet::from([2, 3, 4, 5]));
    }
    // The watch that began anew goes on, and deaths are seen again.
    fourth.abort();
    let dead = NodeChange::Left { node: NodeId(4), reason: LeftReason::Expired };
    assert_eq!(changes(&mut membership, BRIEF).await, [dead]);
    for task in [stay, fifth] {
        assert!(!task.is_finished());
        task.abort();
    }
    drop(membership);
    cut.server.stop().await.unwrap();
    direct.server.stop().await.unwrap();
}

fn assert_names_the_cause(error: &CallError) {
    assert_eq!(error.refusal_code(), Some(RefusalCode::ResourceExhausted), "{error}");
    let text = error.to_string();
    assert!(["etcd is out of space", "compact", "defrag", "disarm"].iter().all(|word| text.contains(word)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_etcd_that_is_out_of_space_refuses_joins_and_kills_nobody() {
    let etcd = EtcdProcess::start_small(SMALL_BYTES).await;
    let Store { server, client } = store(etcd.endpoint()).await;
    let mut membership = client.membership();
    for id in [1, 2, 3] {
        client.register_node(&node(id), 0).await.unwrap();
    }
    let job = client.register_job(&job(3)).await.unwrap();
    let stay = keep_alive(&client, &[1, 2]);
    let third = keep_alive(&client, &[3]);
    assert_eq!(changes(&mut membership, BRIEF).await, [joined(1), joined(2), joined(3)]);

    etcd.fill().await;
    let other = JobRequest { request: [2; 16], ..self::job(1) };
    let begin = Instant::now();
    assert_names_the_cause(&client.register_node(&node(4), 0).await.unwrap_err());
    assert!(begin.elapsed() < SOON / 2, "it is refused at once: {:?}", begin.elapsed());
    assert_names_the_cause(&client.register_job(&other).await.unwrap_err());
    assert_none(&mut membership, TTL * 2, "leases are renewed").await;

    // It hangs as well, until all leases have run out. Nobody can have a new one.
    etcd.hang();
    sleep(TTL * 3 / 2).await;
    etcd.resume();
    assert_none(&mut membership, TTL * 5 / 2, "nobody is declared dead").await;

    // Whoever leaves, leaves: its record is deleted without a word about why.
    third.abort();
    assert!(client.unregister_node(NodeId(3), "drained").await.unwrap());
    let gone = NodeChange::Left { node: NodeId(3), reason: LeftReason::Expired };
    assert_eq!(changes(&mut membership, TTL).await, [gone]);
    assert_eq!(listed(&client).await, BTreeSet::from([1, 2]));

    etcd.make_room().await;
    client.register_node(&node(4), 0).await.unwrap();
    let fourth = keep_alive(&client, &[4]);
    assert_eq!(changes(&mut membership, BRIEF).await, [joined(4)]);
    assert_eq!(ended(&client, job).await.message, "its driver's node 0000000000000003 has left");
    fourth.abort();
    let dead = NodeChange::Left { node: NodeId(4), reason: LeftReason::Expired };
    assert_eq!(changes(&mut membership, BRIEF).await, [dead], "deaths are seen again");
    assert!(!stay.is_finished());
    stay.abort();
    drop(membership);
    server.stop().await.unwrap();
}

/// etcd gives a token for a password, and has forgotten all tokens when it is started again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_etcd_with_certificates_and_users_is_used_on_after_its_restart() {
    let (mut etcd, EtcdGuard { tls, user }) = EtcdProcess::start_guarded().await;
    let plain = options(etcd.endpoint());
    let guarded = |password: &str| EtcdOptions {
        tls: Some(tls.clone()),
        user: Some(EtcdUser { name: user.name.clone(), password: password.to_owned() }),
        ..plain.clone()
    };
    let anonymous = EtcdOptions { tls: Some(EtcdTls { identity: None, ..tls.clone() }), ..plain.clone() };
    let no_user = EtcdOptions { user: None, ..guarded("") };
    for (refused, why) in
        [(anonymous, ""), (no_user, "permission denied"), (guarded("wrong"), "invalid user")]
    {
        let error = Etcd::connect(refused).await.map(drop).unwrap_err();
        assert!(matches!(error, StoreError::Connect { .. }) && error.to_string().contains(why), "{error}");
    }

    let Store { server, client } = store_with(guarded(&user.password)).await;
    let mut membership = client.membership();
    client.register_node(&node(1), 0).await.unwrap();
    let first = keep_alive(&client, &[1]);
    let job = client.register_job(&job(1)).await.unwrap();
    assert_eq!(changes(&mut membership, BRIEF).await, [joined(1)]);
    etcd.restart().await;
    client.register_node(&node(2), 0).await.unwrap();
    let second = keep_alive(&client, &[2]);
    assert_eq!(changes(&mut membership, TTL * 2).await, [joined(2)], "the watch goes on, and the leases");
    etcd.change_users().await;
    client.kv_put("ns", Bytes::from_static(b"k"), Bytes::from_static(b"v")).await.unwrap();
    first.abort();
    let dead = NodeChange::Left { node: NodeId(1), reason: LeftReason::Expired };
    assert_eq!(changes(&mut membership, BRIEF).await, [dead], "deaths are seen");
    assert_eq!(ended(&client, job).await.message, "its driver's node 0000000000000001 has left");
    assert!(!second.is_finished());
    second.abort();
    drop(membership);
    server.stop().await.unwrap();
}

/// Waits for the end of a job.
async fn ended(client: &ControlClient, job: JobId) -> JobEnd {
    let begin = Instant::now();
    loop {
        let jobs = client.list_jobs(JobId(0), 0).await.unwrap().jobs;
        if let Some(end) = jobs.into_iter().find(|found| found.id == job).unwrap().end {
            return end;
        }
        assert!(begin.elapsed() < SOON, "the job has not ended");
        sleep(TTL / 8).await;
    }
}
