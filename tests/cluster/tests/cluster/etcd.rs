//! Several nodes whose control stores keep their tables in a real etcd: who is there, what is written, what
//! goes on without it.

use std::collections::HashSet;
use std::time::{Duration, Instant};
use tharsis::prelude::*;
use tharsis::process::{BackendChoice, EtcdAccess};
use tharsis::{LocalCluster, LocalNode, NodeId};
use tharsis_cluster_tests::{LEASE_TTL, SOON, Scenario, driver, scenarios, small_node};
use tharsis_conformance::etcd::{EtcdProcess, EtcdTrio};
use tharsis_conformance::relay::Relay;

/// Time within which a node that is wrongly declared dead is missed: one lease, and as long again.
const WRONG_DEATH: Duration = LEASE_TTL.saturating_mul(2);

pub const ALL: &[Scenario] = scenarios![
    two_heads_on_one_etcd_are_one_cluster_and_see_a_death,
    nothing_per_task_or_object_is_written,
    work_goes_on_without_a_quorum_and_the_rest_recovers_alone,
    a_server_that_hangs_costs_nobody_the_lease,
    an_etcd_that_was_paused_for_longer_than_a_lease_kills_nobody,
    a_history_that_is_compacted_while_the_store_is_cut_off_is_not_missed,
    an_etcd_that_is_out_of_space_stops_joins_and_no_work,
    a_control_store_that_is_killed_is_not_missed,
    a_control_store_that_hangs_is_not_missed,
];

fn node() -> LocalNode {
    small_node(1.0)
}

/// No nodes yet, over an etcd.
fn cluster(endpoints: Vec<String>) -> LocalCluster {
    let store = BackendChoice::Etcd { endpoints, cluster: "test".to_owned(), access: EtcdAccess::default() };
    LocalCluster::empty().lease_ttl(LEASE_TTL).store(store)
}

fn now<F: Future>(work: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// Keys that are there, and how often anything was ever written.
fn written(endpoint: &str) -> (Vec<String>, i64) {
    now(async {
        let mut client = etcd_client::Client::connect([endpoint], None).await.unwrap();
        let options = etcd_client::GetOptions::new().with_all_keys().with_keys_only();
        let found = client.get("", Some(options)).await.unwrap();
        let keys = found.kvs().iter().map(|kv| String::from_utf8_lossy(kv.key()).into_owned()).collect();
        (keys, found.header().unwrap().revision())
    })
}

#[remote]
fn here_after(ms: u64) -> NodeId {
    std::thread::sleep(Duration::from_millis(ms));
    context().unwrap().node()
}

#[remote]
fn length(blob: Blob) -> usize {
    blob.len()
}

/// Runs tasks until each of these nodes has run one.
fn assert_all_run(nodes: &[NodeId]) {
    for there in nodes {
        let task = here_after::options().node(*there, false).max_retries(0).remote(0);
        assert_eq!(task.get_timeout(SOON).unwrap(), *there);
    }
}

fn two_heads_on_one_etcd_are_one_cluster_and_see_a_death() {
    let etcd = now(EtcdProcess::start());
    let mut cluster = cluster(vec![etcd.endpoint().to_owned()]);
    // Each has a control store of its own; all they share is etcd.
    cluster.add_head(node()).unwrap();
    cluster.add_head(node()).unwrap();
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    let [first, second] = [0, 1].map(|index| cluster.node(index).unwrap());
    assert_all_run(&[first, second]);
    let all: Vec<_> = (0..20).map(|_| here_after::options().spread().remote(20)).collect();
    let ran: HashSet<_> = get_all(&all, Some(SOON.into())).unwrap().into_iter().collect();
    assert_eq!(ran, HashSet::from([first, second]));

    let running: Vec<_> =
        (0..20).map(|_| here_after::options().spread().max_retries(3).remote(100)).collect();
    let begin = Instant::now();
    cluster.kill(1);
    cluster.await_count(1, LEASE_TTL * 5).unwrap();
    assert!(begin.elapsed() < LEASE_TTL * 5, "its lease ran out in etcd");
    for task in &running {
        task.get_timeout(SOON).unwrap();
    }
    let (keys, _) = written(etcd.endpoint());
    assert_eq!(keys.iter().filter(|key| key.contains("/nodes/")).count(), 1, "{keys:?}");
}

fn nothing_per_task_or_object_is_written() {
    let etcd = now(EtcdProcess::start());
    let mut cluster = cluster(vec![etcd.endpoint().to_owned()]);
    cluster.add(node()).unwrap();
    cluster.add(node()).unwrap();
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    // The job, and the program at both nodes.
    assert_all_run(&[cluster.node(0).unwrap(), cluster.node(1).unwrap()]);
    let before = written(etcd.endpoint());
    let nodes = [0, 1].map(|index| cluster.node(index).unwrap());
    let all: Vec<_> = (0..1000).map(|n| here_after::options().node(nodes[n % 2], false).remote(0)).collect();
    let ran: HashSet<_> = get_all(&all, Some(SOON.into())).unwrap().into_iter().collect();
    assert_eq!(ran, HashSet::from(nodes));
    let objects: Vec<_> = (0..100).map(|_| put(&Blob::from(vec![7; 20_000])).unwrap()).collect();
    let lengths: Vec<_> =
        objects.iter().map(|object| length::options().node(nodes[1], false).remote(object)).collect();
    assert!(get_all(&lengths, Some(SOON.into())).unwrap().into_iter().all(|len| len == 20_000));
    assert_eq!(written(etcd.endpoint()), before, "not a key and not a revision more");
}

fn work_goes_on_without_a_quorum_and_the_rest_recovers_alone() {
    let mut etcd = now(EtcdTrio::start());
    let mut cluster = cluster(etcd.endpoints());
    let nodes = add_two(&mut cluster);
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    assert_all_run(&nodes);

    etcd.kill(0);
    etcd.kill(1);
    assert_both_stay(&cluster, nodes, LEASE_TTL * 2);
    // A call that needs the store waits for it.
    let socket = cluster.socket(1).unwrap().display().to_string();
    let late = std::thread::spawn(move || {
        let runtime = init().address(socket).start_local().unwrap();
        let _entered = runtime.enter();
        here_after::remote(0).get_timeout(SOON).unwrap()
    });
    std::thread::sleep(Duration::from_millis(500));
    assert!(!late.is_finished(), "a job has no id without the store");

    etcd.start_again(0);
    etcd.start_again(1);
    now(etcd.await_quorum());
    assert!(nodes.contains(&late.join().unwrap()));
    // Longer than a lease: those that were there stay.
    std::thread::sleep(LEASE_TTL + Duration::from_secs(2));
    assert_all_run(&nodes);
    cluster.add(node()).unwrap();
    assert_all_run(&[cluster.node(2).unwrap()]);
}

/// A request that hangs on one server takes longer than a lease lasts; the others answer.
fn a_server_that_hangs_costs_nobody_the_lease() {
    let etcd = now(EtcdTrio::start());
    let mut cluster = cluster(etcd.endpoints());
    let nodes = add_two(&mut cluster);
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    assert_all_run(&nodes);
    etcd.hang(2);
    assert_both_stay(&cluster, nodes, LEASE_TTL * 4);
}

/// When it goes on, every lease has run out.
fn an_etcd_that_was_paused_for_longer_than_a_lease_kills_nobody() {
    let etcd = now(EtcdProcess::start());
    let mut cluster = cluster(vec![etcd.endpoint().to_owned()]);
    let nodes = add_two(&mut cluster);
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    assert_all_run(&nodes);
    etcd.hang();
    assert_both_stay(&cluster, nodes, LEASE_TTL * 3 / 2);
    etcd.resume();
    assert_both_stay(&cluster, nodes, WRONG_DEATH);
    cluster.add(node()).unwrap();
    assert_all_run(&[cluster.node(2).unwrap()]);
    // A node that dies now is declared dead.
    cluster.kill(1);
    cluster.await_count(2, LEASE_TTL * 5).unwrap();
}

/// The control store loses etcd for longer than a lease, and etcd forgets what happened since.
fn a_history_that_is_compacted_while_the_store_is_cut_off_is_not_missed() {
    let etcd = now(EtcdProcess::start());
    let relay = Relay::start(etcd.endpoint());
    let mut cluster = cluster(vec![relay.endpoint().to_owned()]);
    let nodes = add_two(&mut cluster);
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    assert_all_run(&nodes);
    relay.cut();
    assert_both_stay(&cluster, nodes, LEASE_TTL * 3 / 2);
    now(async {
        // Of another user of etcd, which counts revisions of all.
        let mut client = etcd_client::Client::connect([etcd.endpoint()], None).await.unwrap();
        for number in 0..100 {
            client.put("other", number.to_string(), None).await.unwrap();
        }
        etcd.compact().await;
    });
    relay.join();
    assert_both_stay(&cluster, nodes, WRONG_DEATH);
    let third = cluster.add(node()).unwrap();
    assert_all_run(&[cluster.node(third).unwrap()]);
    cluster.kill(1);
    cluster.await_count(2, LEASE_TTL * 5).unwrap();
}

/// Until an operator makes room: then joins succeed, and nobody did anything else.
fn an_etcd_that_is_out_of_space_stops_joins_and_no_work() {
    let etcd = now(EtcdProcess::start_small(4 << 20));
    let mut cluster = cluster(vec![etcd.endpoint().to_owned()]);
    let nodes = add_two(&mut cluster);
    let dying = cluster.add(node()).unwrap();
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    assert_all_run(&nodes);
    now(etcd.fill());
    for refused in [cluster.add(node()), cluster.add_head(node())] {
        // The status of `ResourceExhausted`; the process has written the cause to stderr.
        let error = refused.unwrap_err().to_string();
        assert!(error.contains("exit status: 6"), "{error}");
    }
    let socket = cluster.socket(0).unwrap().display().to_string();
    let error = init().address(socket).start_local().unwrap_err();
    assert_eq!(error.kind(), FailureKind::ResourceExhausted, "{error}");
    for word in ["etcd is out of space", "compact", "defrag", "disarm"] {
        assert!(error.to_string().contains(word), "{error}");
    }
    // A death is known at once all the same.
    let begin = Instant::now();
    cluster.kill(dying);
    cluster.await_count(2, LEASE_TTL).unwrap();
    println!("a death is known after {:?}", begin.elapsed());
    assert_both_stay(&cluster, nodes, WRONG_DEATH);
    // Every lease runs out, and none can be had.
    etcd.hang();
    assert_both_stay(&cluster, nodes, LEASE_TTL * 3 / 2);
    etcd.resume();
    assert_both_stay(&cluster, nodes, WRONG_DEATH);
    now(etcd.make_room());
    let next = cluster.add(node()).unwrap();
    assert_all_run(&[cluster.node(next).unwrap()]);
    assert_both_stay(&cluster, nodes, WRONG_DEATH);
}

/// All members use the first control store until then.
fn a_control_store_that_is_killed_is_not_missed() {
    assert_not_missed(Duration::from_secs(5), |cluster, head| cluster.kill(head));
}

/// Its node counts as dead: it neither answers nor refuses.
fn a_control_store_that_hangs_is_not_missed() {
    // A new node meets all others, so it waits until that one is known to hang.
    assert_not_missed(Duration::from_secs(10), |cluster, head| cluster.pause(head).unwrap());
}

/// One of two control stores fails under load: tasks that run do not notice, a driver joins within 5 s, and
/// then a node.
fn assert_not_missed(node_within: Duration, fail: impl FnOnce(&mut LocalCluster, usize)) {
    let etcd = now(EtcdProcess::start());
    let mut cluster = cluster(vec![etcd.endpoint().to_owned()]);
    let first = cluster.add_head(node()).unwrap();
    // They are told the first one's address alone, and learn of the second.
    let members = add_two(&mut cluster);
    cluster.add_head(node()).unwrap();
    let runtime = driver(&cluster, 1);
    let _entered = runtime.enter();
    assert_all_run(&members);
    let tasks: Vec<_> = members
        .iter()
        .flat_map(|there| {
            (0..10).map(|_| here_after::options().node(*there, false).max_retries(0).remote(300))
        })
        .collect();
    let begin = Instant::now();
    fail(&mut cluster, first);
    let socket = cluster.socket(2).unwrap().display().to_string();
    let other = init().address(socket).start_local().unwrap();
    println!("a driver joined {:?} after the failure", begin.elapsed());
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    drop(other);
    // It is told both addresses, the failed one's first.
    let third = cluster.add(node()).unwrap();
    println!("a node joined {:?} after the failure", begin.elapsed());
    assert!(begin.elapsed() < node_within, "{:?}", begin.elapsed());
    for task in &tasks {
        assert!(members.contains(&task.get_timeout(SOON).unwrap()));
    }
    // The failed one's node is gone, and nobody else.
    cluster.await_count(4, LEASE_TTL * 5).unwrap();
    assert_all_run(&[members[0], members[1], cluster.node(third).unwrap()]);
}

fn add_two(cluster: &mut LocalCluster) -> [NodeId; 2] {
    [(); 2].map(|()| {
        let index = cluster.add(node()).unwrap();
        cluster.node(index).unwrap()
    })
}

/// All this time both nodes run tasks, and no running node is declared dead.
fn assert_both_stay(cluster: &LocalCluster, nodes: [NodeId; 2], time: Duration) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        assert_all_run(&nodes);
        std::thread::sleep(Duration::from_millis(100));
    }
    for index in 0..2 {
        let members = cluster.report(index).unwrap().nodes.len();
        assert_eq!(members, cluster.running_count(), "nobody is declared dead");
    }
}
