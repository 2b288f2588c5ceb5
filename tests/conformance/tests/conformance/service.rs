//! The service over loopback: membership, jobs, code units, keys, and messages that are not what they should
//! be.

use crate::{node, own};
use bytes::Bytes;
use futures::future::BoxFuture;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tharsis_conformance::raw;
use tharsis_gcs::{
    Answer, Backend, ClientOptions, Control, ControlClient, ControlOptions, Embedded, EmbeddedLimits,
    KnownStores, Membership, Server, StoreError, StoreLease, Txn, TxnResult, Watch, serve,
};
use tharsis_protos::connection::{Credentials, Gate};
use tharsis_protos::control::{
    ACTORS_NAMESPACE, GROUPS_NAMESPACE, JobProgram, JobRequest, LeftReason, NODES_MAX, NodeChange, NodeInfo,
    PAGE_ENTRIES_MAX, PROTOCOL, Stub, VALUE_BYTES_MAX,
};
use tharsis_protos::proof::Secret;
use tharsis_protos::{CallError, RefusalCode};
use tharsis_types::{CodeUnitId, JobId, JobTerms, NodeId, Resources};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tonic::service::Routes;

/// Long beside a call on a busy machine, short beside the patience of a reader.
const TTL: Duration = Duration::from_millis(2000);

/// A server over any store.
struct Served {
    server: Server,
    client: ControlClient,
}

struct Cluster {
    server: Server,
    client: ControlClient,
    store: Arc<Embedded>,
}

async fn cluster() -> Cluster {
    let store = Arc::new(Embedded::memory(EmbeddedLimits::default()));
    serve_at("127.0.0.1:0", store).await
}

async fn serve_on(listener: TcpListener, store: Arc<dyn Backend>) -> Server {
    let options = ControlOptions { lease_ttl: TTL, cluster: None, owner: None };
    let control = Control::start(store, options).await.unwrap();
    serve(control, listener, Gate::new(own().trust), Routes::default()).unwrap()
}

async fn serve_at(address: &str, store: Arc<Embedded>) -> Cluster {
    let Served { server, client } = serve_over(address, store.clone()).await;
    Cluster { server, client, store }
}

async fn serve_over(address: &str, store: Arc<dyn Backend>) -> Served {
    let server = serve_on(TcpListener::bind(address).await.unwrap(), store).await;
    let (client, info) = connect(&server.address().to_string()).await.unwrap();
    assert_eq!(info.cluster, server.control().cluster());
    Served { server, client }
}

async fn connect(address: &str) -> Result<(ControlClient, tharsis_protos::control::ClusterInfo), CallError> {
    let options = ClientOptions { call_deadline: Duration::from_secs(5), patience: Duration::from_secs(5) };
    ControlClient::connect(address, &own(), options).await
}

fn job(request: u8) -> JobRequest {
    JobRequest {
        name: "train".to_owned(),
        namespace: "team".to_owned(),
        code_unit: Some(CodeUnitId([3; 32])),
        driver_node: NodeId(1),
        entrypoint: "train --fast".to_owned(),
        request: [request; 16],
        terms: Some(JobTerms { weight: 300, quota: Some("cpus=2,licences=1".parse().unwrap()) }),
    }
}

async fn next(membership: &mut Membership) -> NodeChange {
    tokio::time::timeout(Duration::from_secs(10), membership.next()).await.expect("in time").unwrap()
}

fn code(error: CallError) -> RefusalCode {
    error.refusal_code().unwrap_or_else(|| panic!("not refused: {error}"))
}

#[tokio::test]
async fn nodes_join_are_seen_and_leave() {
    let cluster = cluster().await;
    let client = &cluster.client;
    let mut membership = client.membership();
    let done = client.register_node(&node(1), 0).await.unwrap();
    assert_eq!(done.lease_ttl, TTL);
    assert_eq!(client.list_nodes().await.unwrap().nodes, [node(1)]);
    assert!(0 < done.clock_skew_ms, "the node's clock stands at 1970");
    let again = client.register_node(&node(1), 0).await.unwrap();
    assert_eq!(again.lease_ttl, done.lease_ttl, "sent twice, it is done once");
    assert_eq!(next(&mut membership).await, NodeChange::Joined(node(1)));
    client.register_node(&node(2), 0).await.unwrap();
    assert_eq!(next(&mut membership).await, NodeChange::Joined(node(2)));

    assert!(client.keep_alive(NodeId(1)).await.unwrap());

    assert!(client.unregister_node(NodeId(2), "drained").await.unwrap());
    let reason = LeftReason::Unregistered("drained".to_owned());
    assert_eq!(next(&mut membership).await, NodeChange::Left { node: NodeId(2), reason });
    assert!(!client.unregister_node(NodeId(2), "again").await.unwrap());
    assert!(!client.keep_alive(NodeId(2)).await.unwrap());

    let expired = NodeChange::Left { node: NodeId(1), reason: LeftReason::Expired };
    assert_eq!(next(&mut membership).await, expired, "it was not heard of again");
    assert!(!client.keep_alive(NodeId(1)).await.unwrap());
    assert!(client.list_nodes().await.unwrap().nodes.is_empty());
    drop(membership);
    cluster.server.stop().await.unwrap();
}

#[tokio::test]
async fn a_node_that_is_heard_of_stays() {
    let cluster = cluster().await;
    cluster.client.register_node(&node(1), 0).await.unwrap();
    for _ in 0..8 {
        tokio::time::sleep(TTL / 3).await;
        assert!(cluster.client.keep_alive(NodeId(1)).await.unwrap());
    }
    assert_eq!(cluster.client.list_nodes().await.unwrap().nodes, [node(1)]);
    let other = NodeInfo { listen: "127.0.0.1:1".to_owned(), ..node(1) };
    let error = cluster.client.register_node(&other, 0).await.unwrap_err();
    assert_eq!(code(error), RefusalCode::AlreadyExists);
    cluster.server.stop().await.unwrap();
}

#[tokio::test]
async fn a_watcher_that_missed_what_was_compacted_converges() {
    let cluster = cluster().await;
    let client = &cluster.client;
    client.register_node(&node(1), 0).await.unwrap();
    for n in 0..1000_u32 {
        client.kv_put("churn", Bytes::from_static(b"k"), Bytes::from(n.to_string())).await.unwrap();
        if n % 10 == 0 {
            client.keep_alive(NodeId(1)).await.unwrap();
        }
    }
    client.register_node(&node(2), 0).await.unwrap();
    let members = client.list_nodes().await.unwrap();
    cluster.store.compact(members.revision);
    let stub = Stub::new(&client.address(), &own(), Duration::from_secs(5)).unwrap();
    let mut events = stub.watch_nodes(2).await.unwrap();
    loop {
        let event = events.next().await.unwrap().unwrap();
        if let NodeChange::Listed(nodes) = event.change {
            assert_eq!(nodes.iter().map(|node| node.id).collect::<Vec<_>>(), [NodeId(1), NodeId(2)]);
            break;
        }
    }
    client.register_node(&node(3), 0).await.unwrap();
    assert_eq!(events.next().await.unwrap().unwrap().change, NodeChange::Joined(node(3)));
    drop(events);
    cluster.server.stop().await.unwrap();
}

#[tokio::test]
async fn a_restart_of_the_store_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let open = || async { Arc::new(Embedded::open(&path, EmbeddedLimits::default()).await.unwrap()) };
    let first = serve_at("127.0.0.1:0", open().await).await;
    let (client, address) = (first.client.clone(), first.server.address().to_string());
    let mut membership = client.membership();
    client.register_node(&node(1), 0).await.unwrap();
    assert_eq!(next(&mut membership).await, NodeChange::Joined(node(1)));
    let cluster_id = first.server.control().cluster();
    client.kv_put("ns", Bytes::from_static(b"k"), Bytes::from_static(b"v")).await.unwrap();
    first.server.stop().await.unwrap();
    drop(first.store);

    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.kv_get("ns", Bytes::from_static(b"k")).await }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    let second = serve_at(&address, open().await).await;
    assert_eq!(second.server.control().cluster(), cluster_id);
    assert_eq!(waiting.await.unwrap().unwrap().as_deref(), Some(b"v".as_slice()), "reads wait and succeed");
    assert!(client.keep_alive(NodeId(1)).await.unwrap(), "members stay members");
    client.register_node(&node(2), 0).await.unwrap();
    assert_eq!(next(&mut membership).await, NodeChange::Joined(node(2)), "and the watch goes on");
    drop(membership);
    second.server.stop().await.unwrap();
}

/// The store was away for so long that every lease ran out. Who is heard of again stays a member; who is not
/// is declared dead, but only after the time of one lease.
#[tokio::test]
async fn nobody_dies_because_the_store_was_away() {
    let store = Arc::new(Unsteady::new());
    let first = serve_over("127.0.0.1:0", store.clone()).await;
    let client = first.client.clone();
    let mut membership = client.membership();
    let unit = CodeUnitId([1; 32]);
    for id in [1, 2] {
        client.register_node(&node(id), 0).await.unwrap();
        client.put_code_unit(unit, 9, NodeId(id)).await.unwrap();
        assert_eq!(next(&mut membership).await, NodeChange::Joined(node(id)));
    }
    store.pause();
    tokio::time::sleep(TTL * 3 / 2).await;
    assert!(client.keep_alive(NodeId(1)).await.is_err(), "the store does not answer");
    store.resume();
    let resumed = tokio::time::Instant::now();
    assert!(client.keep_alive(NodeId(1)).await.unwrap());
    assert_eq!(client.list_nodes().await.unwrap().nodes, [node(1), node(2)]);
    assert_eq!(client.get_code_unit(unit).await.unwrap().unwrap().holders, [NodeId(1), NodeId(2)]);
    let stays = tokio::spawn({
        let client = client.clone();
        async move {
            for _ in 0..12 {
                tokio::time::sleep(TTL / 4).await;
                assert!(client.keep_alive(NodeId(1)).await.unwrap());
            }
        }
    });
    let expired = NodeChange::Left { node: NodeId(2), reason: LeftReason::Expired };
    assert_eq!(next(&mut membership).await, expired);
    assert!(TTL <= resumed.elapsed(), "it had the time of one lease: {:?}", resumed.elapsed());
    assert!(!client.keep_alive(NodeId(2)).await.unwrap(), "the dead stay dead");
    assert_eq!(client.get_code_unit(unit).await.unwrap().unwrap().holders, [NodeId(1)]);
    stays.await.unwrap();
    assert_eq!(client.list_nodes().await.unwrap().nodes, [node(1)]);
    drop(membership);
    first.server.stop().await.unwrap();
}

/// All leases run out, and then the store is full for a while. Whoever is heard of within the time of one
/// lease after there is room again stays a member, however long the store was full.
#[tokio::test]
async fn nobody_dies_because_the_store_was_full() {
    let store = Arc::new(Unsteady::new());
    let Served { server, client } = serve_over("127.0.0.1:0", store.clone()).await;
    client.register_node(&node(1), 0).await.unwrap();
    for quarters in tharsis_trials::cases(&[4, 7][..], &[4, 6, 7]) {
        store.pause();
        store.fill();
        tokio::time::sleep(TTL * 3 / 2).await;
        store.resume();
        for _ in 0..*quarters {
            tokio::time::sleep(TTL / 4).await;
            assert_eq!(code(client.keep_alive(NodeId(1)).await.unwrap_err()), RefusalCode::ResourceExhausted);
        }
        store.make_room();
        tokio::time::sleep(TTL * 3 / 4).await;
        assert!(client.keep_alive(NodeId(1)).await.unwrap(), "{quarters}: it is declared dead");
    }
    server.stop().await.unwrap();
}

/// A store in memory that answers nothing while it is paused; its leases run out meanwhile, as those of an
/// etcd do whose requests are lost on their way.
#[derive(Debug)]
struct Unsteady {
    store: Embedded,
    paused: tokio::sync::watch::Sender<bool>,
    is_full: AtomicBool,
}

impl Unsteady {
    fn new() -> Unsteady {
        let store = Embedded::memory(EmbeddedLimits::default());
        Unsteady { store, paused: tokio::sync::watch::Sender::new(false), is_full: AtomicBool::new(false) }
    }

    /// Refuses to grant leases until [`Unsteady::make_room`].
    fn fill(&self) {
        self.is_full.store(true, Ordering::Release);
    }

    fn make_room(&self) {
        self.is_full.store(false, Ordering::Release);
    }

    fn pause(&self) {
        self.paused.send_replace(true);
    }

    fn resume(&self) {
        self.paused.send_replace(false);
    }

    /// Asks the store when it is not paused, and lets the answer out when it is not paused.
    fn steadily<'a, T: Send + 'a>(
        &'a self,
        ask: impl FnOnce(&'a Embedded) -> Answer<'a, T> + Send + 'a,
    ) -> Answer<'a, T> {
        Box::pin(async move {
            let mut paused = self.paused.subscribe();
            let wait = paused.wait_for(|paused| !paused);
            if tokio::time::timeout(TTL / 4, wait).await.is_err() {
                return Err(StoreError::Unavailable { what: "test", cause: "paused".to_owned() });
            }
            ask(&self.store).await
        })
    }
}

impl Backend for Unsteady {
    fn txn(&self, txn: Txn) -> Answer<'_, TxnResult> {
        self.steadily(|store| store.txn(txn))
    }

    fn watch(&self, prefix: Vec<u8>, from_revision: u64) -> Answer<'_, Watch> {
        self.store.watch(prefix, from_revision)
    }

    fn lease_grant(&self, ttl: Duration) -> Answer<'_, (StoreLease, Duration)> {
        if self.is_full.load(Ordering::Acquire) {
            let full = StoreError::OutOfSpace { what: "test", cause: "full".to_owned() };
            return Box::pin(std::future::ready(Err(full)));
        }
        self.steadily(move |store| store.lease_grant(ttl))
    }

    fn lease_keep_alive(&self, lease: StoreLease) -> Answer<'_, ()> {
        self.steadily(move |store| store.lease_keep_alive(lease))
    }

    fn lease_revoke(&self, lease: StoreLease) -> Answer<'_, ()> {
        self.steadily(move |store| store.lease_revoke(lease))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.store.close()
    }

    fn place(&self) -> String {
        self.store.place()
    }
}

#[tokio::test]
async fn an_answer_that_comes_too_late_is_asked_for_again() {
    // Takes the first connection and says nothing, as a server whose store hangs; then serves.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let served = tokio::spawn(async move {
        let (silent, _) = listener.accept().await.unwrap();
        tokio::time::sleep(Duration::from_millis(700)).await;
        drop(silent);
        serve_on(listener, Arc::new(Embedded::memory(EmbeddedLimits::default()))).await
    });
    let options =
        ClientOptions { call_deadline: Duration::from_millis(200), patience: Duration::from_secs(20) };
    let client = ControlClient::new(KnownStores::parse(&address), &own(), options).unwrap();
    let first = client.register_job(&job(1)).await.unwrap();
    assert_eq!(client.register_job(&job(1)).await.unwrap(), first, "however often it was sent");
    served.await.unwrap().stop().await.unwrap();
}

/// Ids of jobs would be given out again, to others.
#[tokio::test]
async fn a_member_hears_that_the_tables_went_back_to_an_earlier_state() {
    let cluster = cluster().await;
    for number in 1..=3 {
        cluster.client.register_node(&node(number), 0).await.unwrap();
    }
    let mut membership = cluster.client.membership();
    for _ in 0..3 {
        assert!(matches!(next(&mut membership).await, NodeChange::Joined(_)));
    }
    let address = cluster.server.address().to_string();
    cluster.server.stop().await.unwrap();
    let earlier = serve_at(&address, Arc::new(Embedded::memory(EmbeddedLimits::default()))).await;
    assert!(!membership.is_restored());
    let told = tokio::time::timeout(Duration::from_secs(10), membership.next()).await.expect("in time");
    assert_eq!(code(told.unwrap_err()), RefusalCode::FailedPrecondition);
    assert!(membership.is_restored());
    // It is told once, and the members as they are now after that.
    assert!(matches!(next(&mut membership).await, NodeChange::Left { .. }));
    earlier.server.stop().await.unwrap();
}

/// Revisions alone would not tell: the tables have come further than the member had seen them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_hears_with_its_renewals_that_a_copy_was_restored_and_not_that_a_store_began_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("tables"), folder.path().join("copy"));
    let open = async || Arc::new(Embedded::open(&path, EmbeddedLimits::default()).await.unwrap());
    let Served { server, client } = serve_over("127.0.0.1:0", open().await).await;
    let address = server.address().to_string();
    client.register_node(&node(1), 0).await.unwrap();
    assert!(client.keep_alive(NodeId(1)).await.unwrap());
    server.stop().await.unwrap();
    std::fs::copy(&path, &copy).unwrap();
    for request in 1..=3 {
        let Served { server, .. } = serve_over(&address, open().await).await;
        client.register_job(&job(request)).await.unwrap();
        for _ in 0..2 {
            let _is_known = client.keep_alive(NodeId(1)).await.unwrap();
            assert!(!client.is_restored(), "a control store may start again");
        }
        server.stop().await.unwrap();
    }
    std::fs::copy(&copy, &path).unwrap();
    let Served { server, client: other } = serve_over(&address, open().await).await;
    for n in 0..100 {
        other.kv_put("a", Bytes::from(vec![n]), Bytes::new()).await.unwrap();
    }
    // Whether it still has its lease is another matter: the machine may be busy.
    for renewing in [&other, &client] {
        let _is_known = renewing.keep_alive(NodeId(1)).await.unwrap();
    }
    assert_eq!([&other, &client].map(ControlClient::is_restored), [false, true], "one has seen nothing");
    server.stop().await.unwrap();
}

/// A node does not say that it holds a program no more.
#[tokio::test]
async fn a_node_has_a_bounded_number_of_code_units_and_the_latest_of_them() {
    let cluster = cluster().await;
    let client = &cluster.client;
    for id in [1, 2] {
        client.register_node(&node(id), 0).await.unwrap();
    }
    let unit = |number: u16| {
        let mut bytes = [0; 32];
        bytes[..2].copy_from_slice(&number.to_be_bytes());
        CodeUnitId(bytes)
    };
    client.put_code_unit(unit(0), 7, NodeId(2)).await.unwrap();
    // A job that goes on for long runs one of the oldest.
    client.put_code_unit(unit(3), 7, NodeId(1)).await.unwrap();
    let long = client.register_job(&job(1)).await.unwrap();
    client.put_program(long, unit(3), NodeId(1)).await.unwrap();
    let renewing = client.clone();
    let renewals = tokio::spawn(async move {
        loop {
            for id in [1, 2] {
                assert!(renewing.keep_alive(NodeId(id)).await.unwrap());
            }
            tokio::time::sleep(TTL / 8).await;
        }
    });
    for number in 0..1100 {
        client.put_code_unit(unit(number), 7, NodeId(1)).await.unwrap();
        if number % 100 == 0 {
            // One that is always in use.
            client.put_code_unit(unit(5), 7, NodeId(1)).await.unwrap();
        }
    }
    let holders = async |number| client.get_code_unit(unit(number)).await.unwrap().map(|found| found.holders);
    assert_eq!(holders(0).await, Some(vec![NodeId(2)]));
    assert_eq!(holders(1).await, None);
    assert_eq!(holders(3).await, Some(vec![NodeId(1)]), "nodes that join have to find it");
    assert_eq!(holders(5).await, Some(vec![NodeId(1)]));
    assert_eq!(holders(1099).await, Some(vec![NodeId(1)]));
    renewals.abort();
    cluster.server.stop().await.unwrap();
}

/// A node that was killed removes none of the names of its actors.
#[tokio::test]
async fn names_that_a_node_has_written_go_with_it() {
    let cluster = cluster().await;
    let of_node = async |id| {
        let own = Credentials::with_secret(Secret::from_bytes([7; 32]), Some(NodeId(id)));
        let address = cluster.server.address().to_string();
        let client = ControlClient::connect(&address, &own, ClientOptions::default()).await.unwrap().0;
        client.register_node(&node(id), 0).await.unwrap();
        client
    };
    let (first, second) = (of_node(1).await, of_node(2).await);
    let put = async |client: &ControlClient, table: &str, key: &'static str, value: &'static str| {
        client.kv_put(table, Bytes::from(key), Bytes::from(value)).await.unwrap();
    };
    put(&first, ACTORS_NAMESPACE, "a", "1").await;
    put(&first, GROUPS_NAMESPACE, "a", "1").await;
    put(&first, "users", "a", "1").await;
    put(&first, ACTORS_NAMESPACE, "taken over", "1").await;
    put(&second, ACTORS_NAMESPACE, "taken over", "2").await;
    put(&second, ACTORS_NAMESPACE, "b", "2").await;
    assert!(first.unregister_node(NodeId(1), "it was killed").await.unwrap());
    let keys = async |table| -> Vec<Bytes> {
        second.kv_list(table, Bytes::new(), Bytes::new(), 0).await.unwrap().keys
    };
    let begin = std::time::Instant::now();
    while keys(ACTORS_NAMESPACE).await.len() == 3 || keys(GROUPS_NAMESPACE).await.len() == 1 {
        assert!(begin.elapsed() < Duration::from_secs(30), "names of a node that has left stay");
        tokio::time::sleep(TTL / 8).await;
    }
    assert_eq!(keys(ACTORS_NAMESPACE).await, ["b", "taken over"]);
    assert_eq!(keys(GROUPS_NAMESPACE).await, [""; 0]);
    assert_eq!(keys("users").await, ["a"]);
    // A name that has another record is left alone.
    let [b, other, record] = ["b", "1", "2"].map(Bytes::from);
    assert!(!second.kv_remove(ACTORS_NAMESPACE, b.clone(), other).await.unwrap());
    assert!(second.kv_remove(ACTORS_NAMESPACE, b.clone(), record.clone()).await.unwrap());
    assert!(!second.kv_remove(ACTORS_NAMESPACE, b, record).await.unwrap());
    cluster.server.stop().await.unwrap();
}

/// The copy that is restored is later than the first list, and has the members that were there then.
#[tokio::test]
async fn a_member_hears_that_the_tables_went_back_to_a_state_after_its_first_list() {
    let cluster = cluster().await;
    cluster.client.register_node(&node(1), 0).await.unwrap();
    let mut membership = cluster.client.membership();
    assert_eq!(next(&mut membership).await, NodeChange::Joined(node(1)));
    let change_values = async |client: &ControlClient, count: u8| {
        for n in 0..count {
            client.kv_put("a", Bytes::from(vec![n]), Bytes::new()).await.unwrap();
        }
    };
    change_values(&cluster.client, 60).await;
    cluster.client.register_node(&node(2), 0).await.unwrap();
    assert_eq!(next(&mut membership).await, NodeChange::Joined(node(2)));
    let address = cluster.server.address().to_string();
    cluster.server.stop().await.unwrap();
    // As many changes as had been made between the two.
    let copy = Arc::new(Embedded::memory(EmbeddedLimits::default()));
    let Served { server, client } = serve_over("127.0.0.1:0", copy.clone()).await;
    client.register_node(&node(1), 0).await.unwrap();
    change_values(&client, 30).await;
    let restored = serve_at(&address, copy).await;
    let told = tokio::time::timeout(Duration::from_secs(10), membership.next()).await.expect("in time");
    assert_eq!(code(told.unwrap_err()), RefusalCode::FailedPrecondition);
    assert!(membership.is_restored());
    restored.server.stop().await.unwrap();
    drop(server);
}

#[tokio::test]
async fn job_ids_are_unique_and_requests_count_once() {
    let cluster = cluster().await;
    // Jobs of a node that is no member are ended by the judge.
    cluster.client.register_node(&node(1), 0).await.unwrap();
    let jobs = (0..20).map(|n| {
        let client = cluster.client.clone();
        tokio::spawn(async move { client.register_job(&job(n)).await.unwrap() })
    });
    let ids: Vec<JobId> = futures::future::join_all(jobs).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 20);
    assert!(ids.iter().all(|id| id.0 != 0));
    assert_eq!(
        cluster.client.register_job(&job(7)).await.unwrap(),
        ids[7],
        "the answer was lost, the job was not"
    );

    assert!(cluster.client.finish_job(ids[7], false, "it broke").await.unwrap());
    assert!(cluster.client.finish_job(ids[7], true, "no").await.unwrap(), "the first end stays");
    assert!(!cluster.client.finish_job(JobId(999), true, "").await.unwrap());
    let first = cluster.client.list_jobs(JobId(0), 15).await.unwrap();
    assert_eq!((first.jobs.len(), first.more), (15, true));
    let rest = cluster.client.list_jobs(first.jobs[14].id, 0).await.unwrap();
    assert_eq!((rest.jobs.len(), rest.more), (5, false));
    let ended = first.jobs.iter().chain(&rest.jobs).find(|job| job.id == ids[7]).unwrap();
    assert!(ended.end.as_ref().is_some_and(|end| !end.succeeded && end.message == "it broke"));
    assert_eq!((ended.name.as_str(), ended.code_unit), ("train", Some(CodeUnitId([3; 32]))));
    cluster.server.stop().await.unwrap();
}

#[tokio::test]
async fn code_units_are_held_by_members() {
    let cluster = cluster().await;
    let (client, unit) = (&cluster.client, CodeUnitId([9; 32]));
    assert_eq!(client.get_code_unit(unit).await.unwrap(), None);
    let error = client.put_code_unit(unit, 100, NodeId(1)).await.unwrap_err();
    assert_eq!(code(error), RefusalCode::FailedPrecondition, "only members hold code");
    client.register_node(&node(1), 0).await.unwrap();
    client.register_node(&node(2), 0).await.unwrap();
    client.put_code_unit(unit, 100, NodeId(1)).await.unwrap();
    client.put_code_unit(unit, 100, NodeId(2)).await.unwrap();
    let error = client.put_code_unit(unit, 101, NodeId(2)).await.unwrap_err();
    assert!(error.to_string().contains("has 100 bytes, not 101"), "{error}");
    let found = client.get_code_unit(unit).await.unwrap().unwrap();
    assert_eq!((found.size_bytes, found.holders), (100, vec![NodeId(1), NodeId(2)]));
    client.unregister_node(NodeId(1), "").await.unwrap();
    assert_eq!(client.get_code_unit(unit).await.unwrap().unwrap().holders, [NodeId(2)], "gone with its node");
    cluster.server.stop().await.unwrap();
}

/// The port of a node, which answers whoever knocks.
struct Port {
    listen: String,
    answering: tokio::task::JoinHandle<()>,
    knocks: Arc<AtomicUsize>,
}

impl Port {
    async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let listen = listener.local_addr().unwrap().to_string();
        let knocks = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&knocks);
        let answering = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _written = stream.write_all(b"x").await;
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        Self { listen, answering, knocks }
    }

    async fn await_knock(&self) {
        let until = std::time::Instant::now() + TTL;
        while self.knocks.load(Ordering::Relaxed) == 0 && std::time::Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // The answer is on its way.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    async fn close(self) {
        self.answering.abort();
        let _aborted = self.answering.await;
    }
}

/// Its refusals are not those of the node: the address means something else at the control store.
#[tokio::test]
async fn a_member_that_was_never_reached_is_not_judged_by_refusals() {
    let cluster = cluster().await;
    let client = &cluster.client;
    let unbound = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let listen = unbound.local_addr().unwrap().to_string();
    drop(unbound);
    client.register_node(&NodeInfo { listen, ..node(1) }, 0).await.unwrap();
    assert!(!client.suspect_node(NodeId(1)).await.unwrap());
    assert!(client.keep_alive(NodeId(1)).await.unwrap(), "it lives");
    cluster.server.stop().await.unwrap();
}

/// A firewall rejects what it let through before; the node goes on with its renewals.
#[tokio::test]
async fn a_member_that_renews_its_lease_is_not_judged_by_refusals() {
    let cluster = cluster().await;
    let client = &cluster.client;
    let port = Port::open().await;
    client.register_node(&NodeInfo { listen: port.listen.clone(), ..node(1) }, 0).await.unwrap();
    port.await_knock().await;
    port.close().await;
    let renewing = async {
        loop {
            tokio::time::sleep(TTL / 4).await;
            assert!(client.keep_alive(NodeId(1)).await.unwrap(), "it lives");
        }
    };
    tokio::select! {
        is_dead = client.suspect_node(NodeId(1)) => assert!(!is_dead.unwrap()),
        () = renewing => unreachable!(),
    }
    assert!(client.keep_alive(NodeId(1)).await.unwrap());
    cluster.server.stop().await.unwrap();
}

/// The control store is part of a node: that it runs is proof enough.
#[tokio::test]
async fn a_control_store_never_declares_its_own_node_dead() {
    let store = Arc::new(Embedded::memory(EmbeddedLimits::default()));
    let options = ControlOptions { lease_ttl: TTL, cluster: None, owner: None };
    let control = Control::start(store, options).await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = Port::open().await;
    control.announce(port.listen.clone(), Some(NodeId(1))).await.unwrap();
    let server = serve(control, listener, Gate::new(own().trust), Routes::default()).unwrap();
    let (client, _) = connect(&server.address().to_string()).await.unwrap();
    client.register_node(&NodeInfo { listen: port.listen.clone(), ..node(1) }, 0).await.unwrap();
    port.await_knock().await;
    port.close().await;
    assert!(!client.suspect_node(NodeId(1)).await.unwrap());
    assert!(client.keep_alive(NodeId(1)).await.unwrap());
    server.stop().await.unwrap();
}

#[tokio::test]
async fn a_member_is_dead_when_its_port_is_closed_and_lives_while_it_is_open() {
    let cluster = cluster().await;
    let client = &cluster.client;
    let port = Port::open().await;
    let listen = port.listen.clone();
    client.register_node(&NodeInfo { listen: listen.clone(), ..node(1) }, 0).await.unwrap();
    port.await_knock().await;
    let mut membership = client.membership();
    assert!(matches!(next(&mut membership).await, NodeChange::Joined(_)));
    assert!(client.suspect_node(NodeId(9)).await.unwrap(), "it is no member");
    assert!(!client.suspect_node(NodeId(1)).await.unwrap(), "it listens, and is only slow");
    assert!(client.keep_alive(NodeId(1)).await.unwrap());
    port.close().await;
    let began = std::time::Instant::now();
    let (first, second) = tokio::join!(client.suspect_node(NodeId(1)), client.suspect_node(NodeId(1)));
    assert!(first.unwrap() | second.unwrap(), "two members may tell the same");
    let reason = LeftReason::Unregistered(format!("its process has ended: nobody listens at {listen}"));
    assert_eq!(next(&mut membership).await, NodeChange::Left { node: NodeId(1), reason });
    assert!(began.elapsed() < TTL / 2, "{:?}", began.elapsed());
    assert!(!client.keep_alive(NodeId(1)).await.unwrap(), "a dead node stays dead");
    cluster.server.stop().await.unwrap();
}

#[tokio::test]
async fn a_program_is_set_by_the_node_of_its_job_once_it_holds_it() {
    let cluster = cluster().await;
    let (client, unit, other) = (&cluster.client, CodeUnitId([9; 32]), CodeUnitId([8; 32]));
    let error = client.put_program(JobId(1), unit, NodeId(7)).await.unwrap_err();
    assert_eq!(code(error), RefusalCode::NotFound, "there is no such job");
    let request = job(1);
    let owner = request.driver_node;
    let stranger = NodeId(owner.0 + 1);
    for id in [owner, stranger] {
        client.register_node(&node(id.0), 0).await.unwrap();
    }
    let job = client.register_job(&request).await.unwrap();
    let program = |unit| JobProgram { unit, driver_node: owner };
    assert_eq!(client.get_program(job).await.unwrap(), program(None), "its node has not said yet");
    let error = client.put_program(job, unit, owner).await.unwrap_err();
    assert_eq!(code(error), RefusalCode::FailedPrecondition, "it does not hold the program");
    for unit in [unit, other] {
        client.put_code_unit(unit, 100, owner).await.unwrap();
        client.put_code_unit(unit, 100, stranger).await.unwrap();
    }
    let error = client.put_program(job, unit, stranger).await.unwrap_err();
    assert_eq!(code(error), RefusalCode::PermissionDenied, "it is not its job");
    client.put_program(job, unit, owner).await.unwrap();
    client.put_program(job, unit, owner).await.unwrap();
    let error = client.put_program(job, other, owner).await.unwrap_err();
    assert_eq!(code(error), RefusalCode::AlreadyExists, "a job has one program");
    // No key of a user is in that table.
    let key = Bytes::from(job.to_string());
    let error = client.kv_put("tharsis.programs", key, Bytes::from_static(&[1; 32])).await.unwrap_err();
    assert!(error.to_string().contains("field namespace: begins with tharsis."), "{error}");
    assert_eq!(client.get_program(job).await.unwrap(), program(Some(unit)));
    client.finish_job(job, true, "").await.unwrap();
    for late in [client.get_program(job).await.map(drop), client.put_program(job, unit, owner).await] {
        assert!(late.unwrap_err().to_string().contains("has ended"), "the entry ends with the job");
    }
    cluster.server.stop().await.unwrap();
}

#[tokio::test]
async fn a_job_ends_with_the_node_of_its_driver() {
    let cluster = cluster().await;
    let client = &cluster.client;
    for id in [1, 2] {
        client.register_node(&node(id), 0).await.unwrap();
    }
    let [lost, kept] = [(1, NodeId(1)), (2, NodeId(2))].map(|(number, driver_node)| {
        let request = JobRequest { driver_node, ..job(number) };
        async move { client.register_job(&request).await.unwrap() }
    });
    let (lost, kept) = (lost.await, kept.await);
    client.unregister_node(NodeId(1), "it lost its power").await.unwrap();
    let until = std::time::Instant::now() + 2 * TTL;
    let ends = loop {
        client.keep_alive(NodeId(2)).await.unwrap();
        let jobs = client.list_jobs(JobId(0), 10).await.unwrap().jobs;
        assert!(jobs.iter().all(|info| info.terms == job(1).terms), "{jobs:?}");
        let end = |id| jobs.iter().find(|job| job.id == id).unwrap().end.clone();
        if end(lost).is_some() || until < std::time::Instant::now() {
            break [end(lost), end(kept)];
        }
        tokio::time::sleep(TTL / 20).await;
    };
    let [Some(end), None] = ends else { panic!("{ends:?}") };
    assert!(!end.succeeded);
    assert_eq!(end.message, format!("its driver's node {} has left", NodeId(1)));
    let late = client.get_program(lost).await.unwrap_err();
    assert!(late.to_string().contains("has ended"), "{late}");
    cluster.server.stop().await.unwrap();
}

#[tokio::test]
async fn callers_without_the_secret_are_refused_once_and_for_all() {
    let cluster = cluster().await;
    let address = cluster.server.address().to_string();
    let begin = std::time::Instant::now();
    let stranger = Credentials::with_secret(Secret::from_bytes([8; 32]), Some(NodeId(1)));
    let error = ControlClient::connect(&address, &stranger, ClientOptions::default()).await.map(drop);
    assert_eq!(code(error.unwrap_err()), RefusalCode::Unauthenticated);
    let unproved = tonic::transport::Endpoint::from_shared(format!("http://{address}")).unwrap();
    let mut client = tonic::client::Grpc::new(unproved.connect_lazy());
    client.ready().await.unwrap();
    let list = tonic::codegen::http::uri::PathAndQuery::from_static("/tharsis.control.v1.Control/ListNodes");
    let status = client.unary(tonic::Request::new(Vec::new()), list, raw::Raw).await.unwrap_err();
    assert_ne!(status.code(), tonic::Code::Ok, "{status}");
    assert!(begin.elapsed() < Duration::from_secs(5), "trying again would change nothing");
    cluster.server.stop().await.unwrap();
}

#[tokio::test]
async fn keys_live_in_namespaces() {
    let cluster = cluster().await;
    let client = &cluster.client;
    let key = |text: &str| Bytes::from(text.to_owned());
    assert_eq!(client.kv_get("a", key("k")).await.unwrap(), None);
    client.kv_put("a", key("k"), key("")).await.unwrap();
    assert_eq!(client.kv_get("a", key("k")).await.unwrap(), Some(key("")), "an empty value is a value");
    assert!(!client.kv_put_if_absent("a", key("k"), key("2")).await.unwrap());
    assert!(client.kv_put_if_absent("b", key("k"), key("2")).await.unwrap(), "namespaces are apart");
    for n in 0..30 {
        client.kv_put("list", key(&format!("x{n:02}")), key("v")).await.unwrap();
    }
    client.kv_put("list", key("y"), key("v")).await.unwrap();
    let first = client.kv_list("list", key("x"), Bytes::new(), 20).await.unwrap();
    assert_eq!((first.keys.len(), first.more), (20, true));
    let rest = client.kv_list("list", key("x"), first.keys[19].clone(), 20).await.unwrap();
    assert_eq!((rest.keys.first(), rest.keys.len(), rest.more), (Some(&key("x20")), 10, false));
    assert!(client.kv_delete("a", key("k")).await.unwrap());
    assert!(!client.kv_delete("a", key("k")).await.unwrap());
    const { assert!(30 < PAGE_ENTRIES_MAX) };
    cluster.server.stop().await.unwrap();
}

#[tokio::test]
async fn bad_fields_are_named_and_the_connection_stays() {
    let cluster = cluster().await;
    let client = &cluster.client;
    let many = (0..10_000).map(|n| (format!("r{n}"), 1)).collect();
    let cases: Vec<(NodeInfo, RefusalCode, &str)> = vec![
        (NodeInfo { id: NodeId(0), ..node(1) }, RefusalCode::InvalidArgument, "node.node_id"),
        (
            NodeInfo { listen: "nowhere".to_owned(), ..node(1) },
            RefusalCode::InvalidArgument,
            "node.listen_address",
        ),
        (
            // Others would connect to it.
            NodeInfo { listen: "169.254.169.254:80".to_owned(), ..node(1) },
            RefusalCode::InvalidArgument,
            "node.listen_address",
        ),
        (NodeInfo { host: "a\nb".to_owned(), ..node(1) }, RefusalCode::InvalidArgument, "node.host_id"),
        (NodeInfo { host: "x".repeat(300), ..node(1) }, RefusalCode::ResourceExhausted, "node.host_id"),
        (
            NodeInfo { resources: Resources { cpu: u64::MAX, ..Resources::default() }, ..node(1) },
            RefusalCode::InvalidArgument,
            "node.resources",
        ),
        (
            NodeInfo { resources: Resources { custom: many, ..Resources::default() }, ..node(1) },
            RefusalCode::ResourceExhausted,
            "node",
        ),
    ];
    for (bad, wanted, field) in cases {
        let error = client.register_node(&bad, 0).await.unwrap_err();
        let text = error.to_string();
        assert_eq!(code(error), wanted, "{text}");
        assert!(text.contains(&format!("field {field}")), "{text}");
    }
    let error = client.kv_get("a/b", Bytes::from_static(b"k")).await.unwrap_err();
    assert!(error.to_string().contains("field namespace: has a slash"), "{error}");
    let error = client.kv_get("", Bytes::from_static(b"k")).await.unwrap_err();
    assert!(error.to_string().contains("field namespace: is missing"), "{error}");
    let error =
        client.kv_put("a", Bytes::from_static(b"k"), vec![0; VALUE_BYTES_MAX + 1].into()).await.unwrap_err();
    assert_eq!(code(error), RefusalCode::ResourceExhausted);
    assert!(client.list_nodes().await.is_ok(), "the connection stays up");
    const { assert!(0 < NODES_MAX) };
    cluster.server.stop().await.unwrap();
}

/// Why a call with these bytes is refused.
async fn raw(address: &str, path: &str, message: Vec<u8>) -> tonic::Status {
    raw::call(address, &own(), path, message).await.unwrap_err()
}

#[tokio::test]
async fn other_protocols_and_unreadable_messages_are_refused() {
    let cluster = cluster().await;
    let address = cluster.server.address().to_string();
    let register = "/tharsis.control.v1.Control/RegisterNode";
    // Field 2, the protocol: major 3.
    let status = raw(&address, register, vec![0x12, 2, 0x08, 3]).await;
    assert_eq!(status.code(), tonic::Code::FailedPrecondition);
    let own = format!("speaks {PROTOCOL}");
    assert!(status.message().contains("protocol 3.0") && status.message().contains(&own), "{status}");
    // A newer minor version is served, so the node is what is missing next. Field 99 is unknown and ignored.
    let status = raw(&address, register, vec![0x12, 4, 0x08, 2, 0x10, 7, 0x9a, 6, 1, 0]).await;
    assert_eq!((status.code(), status.message()), (tonic::Code::InvalidArgument, "field node: is missing"));
    let status = raw(&address, register, Vec::new()).await;
    assert_eq!(
        (status.code(), status.message()),
        (tonic::Code::InvalidArgument, "field protocol: is missing")
    );
    let status = raw(&address, register, vec![0x12, 200, 1]).await;
    assert_eq!(status.code(), tonic::Code::InvalidArgument, "cut short: {status}");
    let put = "/tharsis.control.v1.Control/KvPut";
    let status = raw(&address, put, vec![0; (16 << 20) + 1]).await;
    assert_eq!(status.code(), tonic::Code::ResourceExhausted, "too large: {status}");
    let code_unit = "/tharsis.control.v1.Control/GetCodeUnit";
    for length in [0_u8, 31, 33] {
        let mut message = vec![0x0a, length];
        message.resize(2 + usize::from(length), 1);
        let status = raw(&address, code_unit, message).await;
        assert_eq!(status.code(), tonic::Code::InvalidArgument);
        assert!(status.message().starts_with("field hash: has"), "{status}");
    }
    assert!(cluster.client.list_nodes().await.is_ok());
    cluster.server.stop().await.unwrap();
}

#[tokio::test]
async fn a_message_nested_ten_thousand_deep_is_refused() {
    let cluster = cluster().await;
    let address = cluster.server.address().to_string();
    // Groups of a field that no release has.
    let status = raw(&address, "/tharsis.control.v1.Control/KvGet", [0xa3, 0x06].repeat(10_000)).await;
    assert_eq!(status.code(), tonic::Code::InvalidArgument, "{status}");
    assert!(status.message().contains("recursion limit"), "{status}");
    assert!(cluster.client.list_nodes().await.is_ok());
    cluster.server.stop().await.unwrap();
}

#[tokio::test]
async fn a_clock_that_is_years_off_is_measured_and_decides_nothing() {
    let cluster = cluster().await;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let year = Duration::from_secs(365 * 24 * 3600);
    for (id, clock, skew) in [(1, now + year, -(year.as_secs_f64())), (2, now - year, year.as_secs_f64())] {
        let clock_unix_ms = u64::try_from(clock.as_millis()).unwrap();
        let done = cluster.client.register_node(&node(id), clock_unix_ms).await.unwrap();
        assert!((done.clock_skew_ms as f64 / 1e3 - skew).abs() < 60.0, "{} ms", done.clock_skew_ms);
        assert!(cluster.client.keep_alive(NodeId(id)).await.unwrap());
    }
    // As long as a lease and a half, renewed once in between: both clocks would have ended or kept it
    // wrongly.
    tokio::time::sleep(TTL / 2).await;
    assert!(cluster.client.keep_alive(NodeId(1)).await.unwrap());
    tokio::time::sleep(TTL).await;
    let left: Vec<_> = cluster.client.list_nodes().await.unwrap().nodes.iter().map(|node| node.id).collect();
    assert!(!left.contains(&NodeId(2)), "its lease ran out by the store's clock");
    cluster.server.stop().await.unwrap();
}

#[tokio::test]
async fn nobody_there_and_somebody_else_are_told_apart_from_refusals() {
    let [port] = tharsis_trials::free_ports();
    let impatient = ClientOptions { call_deadline: Duration::from_secs(2), patience: Duration::ZERO };
    let error =
        ControlClient::connect(&format!("127.0.0.1:{port}"), &own(), impatient).await.map(drop).unwrap_err();
    assert!(matches!(&error, CallError::Unreachable { cause, .. } if cause.contains("refused")), "{error}");
    let error = ControlClient::connect("127.0.0.1", &own(), impatient).await.map(drop).unwrap_err();
    assert!(error.to_string().contains("is not host:port"), "{error}");
    let mute = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let begin = std::time::Instant::now();
    let address = mute.local_addr().unwrap().to_string();
    let error = ControlClient::connect(&address, &own(), impatient).await.map(drop).unwrap_err();
    assert!(begin.elapsed() < Duration::from_secs(5), "{error}");
}

#[tokio::test]
async fn stopping_ends_watches_and_closes_the_store() {
    let cluster = cluster().await;
    let stub = Stub::new(&cluster.client.address(), &own(), Duration::from_secs(5)).unwrap();
    let mut events = stub.watch_nodes(0).await.unwrap();
    assert!(matches!(events.next().await, Ok(Some(_))));
    let begin = std::time::Instant::now();
    cluster.server.stop().await.unwrap();
    assert!(begin.elapsed() < Duration::from_secs(3));
    assert!(!matches!(events.next().await, Ok(Some(_))));
    assert!(cluster.store.lease_grant(TTL).await.is_err());
}
