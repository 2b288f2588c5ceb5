//! Several nodes on one machine: where tasks run, how values and programs travel, what happens when a node
//! dies.

use crate::bytes::{digest, pattern};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tharsis::prelude::*;
use tharsis::process::Security;
use tharsis::{FailureKind, LabelTerm, LocalCluster, LocalNode, NodeId, RefId};
use tharsis_cluster_tests::{
    SOON, Scenario, await_within, cluster_of as cluster, driver, scenarios, small_node,
};
use tharsis_protos::connection::Called;
use tharsis_protos::proof::Purpose;

/// Bytes of each store.
const STORE_BYTES: u64 = 512 << 20;
const MIB: usize = 1 << 20;

pub const ALL: &[Scenario] = scenarios![
    a_large_result_crosses,
    a4_wait_without_fetch_moves_nothing,
    e3_affinity_hard_and_soft,
    e3_labels,
    e1_locality,
    d9_transfer_dedup,
    d10_who_gives_up_stops_nobody_else,
    b4_borrower_chain_over_nodes,
    e6_death_of_a_node,
    e6_a_killed_node_is_dead_long_before_its_lease_ends,
    a_node_that_joins_late_is_used,
    errors_keep_their_kind_over_nodes,
    drivers_of_one_program_on_two_nodes_use_both,
    silent_connections_do_not_stop_transfers,
    a_program_joins_at_an_address;
    alone:
        e1_a_node_that_falls_behind_is_helped,
];

fn node(cpus: f64) -> LocalNode {
    LocalNode { store_bytes: STORE_BYTES, ..small_node(cpus) }
}

/// Waits until a value exists, wherever it is.
fn made_ready(reference: &ObjectRef<Blob>) {
    let options = Wait { timeout: Some(SOON.into()), fetch: false, ..Wait::default() };
    let (ready, _) = wait(std::slice::from_ref(reference), options).unwrap();
    assert_eq!(ready.len(), 1);
}

fn blob(len: usize, seed: u64) -> Blob {
    Blob::from(pattern(len, seed))
}

#[remote]
fn make(len: usize, seed: u64) -> Blob {
    blob(len, seed)
}

#[remote]
fn here() -> NodeId {
    context().unwrap().node()
}

#[remote]
fn here_after(ms: u64) -> NodeId {
    std::thread::sleep(Duration::from_millis(ms));
    context().unwrap().node()
}

#[remote]
fn digest_here(blob: Blob) -> (NodeId, u64) {
    (context().unwrap().node(), digest(&blob))
}

#[remote]
fn where_with(_large: Blob, _small: Blob) -> NodeId {
    context().unwrap().node()
}

#[remote]
fn fail(text: String) -> Result<u64, String> {
    Err(text)
}

fn a_large_result_crosses() {
    let len = 100_000_000;
    let cluster = cluster(vec![node(1.0), node(1.0)]);
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    let there = cluster.node(1).unwrap();
    let made = make::options().node(there, false).remote(len, 7);
    made_ready(&made);
    let started = Instant::now();
    let value = made.get_timeout(SOON).unwrap();
    let seconds = started.elapsed().as_secs_f64();
    println!("  100 MB in {:.0} ms: {:.2} GB/s", seconds * 1e3, len as f64 / seconds / 1e9);
    assert_eq!(digest(&value), digest(&blob(len, 7)));
    // And back: an argument that lies here is read there.
    let mine = put(&blob(len, 8)).unwrap();
    let read = digest_here::options().node(there, false).remote(&mine).get_timeout(SOON).unwrap();
    assert_eq!(read, (there, digest(&blob(len, 8))));
    drop((value, made, mine));
    for index in 0..2 {
        await_within(Duration::from_secs(20), "stores are empty", || {
            cluster.report(index).unwrap().store.object_count == 0
        });
    }
}

fn e3_affinity_hard_and_soft() {
    let mut cluster = cluster(vec![node(1.0), node(1.0)]);
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    let (first, second) = (cluster.node(0).unwrap(), cluster.node(1).unwrap());
    for there in [first, second] {
        for soft in [false, true] {
            assert_eq!(here::options().node(there, soft).remote().get_timeout(SOON).unwrap(), there);
        }
    }
    cluster.kill(1);
    cluster.await_count(1, Duration::from_secs(20)).unwrap();
    let error = here::options().node(second, false).remote().get_timeout(SOON).unwrap_err();
    assert_eq!(error.kind(), FailureKind::NodeNotFound, "{error}");
    assert_eq!(here::options().node(second, true).remote().get_timeout(SOON).unwrap(), first);
}

fn e3_labels() {
    let in_zone = |zone: &str| LocalNode { labels: vec![("zone".to_owned(), zone.to_owned())], ..node(1.0) };
    let cluster = cluster(vec![node(1.0), in_zone("a"), in_zone("b")]);
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    let key = || "zone".to_owned();
    let is_in = |zone: &str| LabelTerm::In(key(), vec![zone.to_owned()]);
    let ran_on = |selectors: Vec<Vec<LabelTerm>>| {
        here::options().labels(selectors).remote().get_timeout(SOON).unwrap()
    };
    let [plain, a, b] = [0, 1, 2].map(|index| cluster.node(index).unwrap());
    assert_eq!(ran_on(vec![vec![is_in("a")]]), a);
    assert_eq!(ran_on(vec![vec![is_in("b")]]), b);
    assert_eq!(ran_on(vec![vec![LabelTerm::DoesNotExist(key())]]), plain);
    let not_a = vec![LabelTerm::NotIn(key(), vec!["a".to_owned()]), LabelTerm::Exists(key())];
    assert_eq!(ran_on(vec![not_a]), b);
    assert_eq!(ran_on(vec![vec![is_in("c")], vec![is_in("b")]]), b, "the second list is the fallback");
}

fn e1_locality() {
    let cluster = cluster(vec![node(2.0), node(2.0)]);
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    let there = cluster.node(1).unwrap();
    let large = make::options().node(there, false).remote(100 * MIB, 1);
    made_ready(&large);
    let small = put(&blob(MIB, 2)).unwrap();
    assert_eq!(where_with::remote(&large, &small).get_timeout(SOON).unwrap(), there);
    let mine = put(&blob(100 * MIB, 3)).unwrap();
    let theirs = make::options().node(there, false).remote(MIB, 4);
    made_ready(&theirs);
    assert_eq!(where_with::remote(&mine, &theirs).get_timeout(SOON).unwrap(), cluster.node(0).unwrap());
}

/// Takes a while, and says where.
#[remote]
fn slow_with(_value: Blob) -> NodeId {
    std::thread::sleep(Duration::from_millis(100));
    context().unwrap().node()
}

fn e1_a_node_that_falls_behind_is_helped() {
    let cluster = cluster(vec![node(1.0), node(1.0)]);
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    let there = cluster.node(1).unwrap();
    let value = make::options().node(there, false).remote(MIB, 1);
    made_ready(&value);
    let tasks: Vec<_> = (0..30).map(|_| slow_with::remote(&value)).collect();
    let ran = get_all(&tasks, Some(SOON.into())).unwrap();
    let helped = ran.into_iter().filter(|node| *node != there).count();
    assert!((5..=25).contains(&helped), "{helped} of 30 tasks left the node of their argument");
}

fn a4_wait_without_fetch_moves_nothing() {
    let cluster = cluster(vec![node(1.0), node(1.0)]);
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    let [here, there] = [0, 1].map(|index| cluster.node(index).unwrap());
    let large = make::options().node(there, false).remote(MIB, 7);
    let options = Wait { fetch: false, timeout: Some(SOON.into()), ..Wait::default() };
    assert_eq!(tharsis::wait(std::slice::from_ref(&large), options).unwrap().0.len(), 1);
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(tharsis::locations(&large).unwrap(), [there]);
    assert_eq!(digest(&large.get_timeout(SOON).unwrap()), digest(&blob(MIB, 7)));
    assert_eq!(tharsis::locations(&large).unwrap(), [there, here]);
}

fn d9_transfer_dedup() {
    let len = 8 * MIB;
    let cluster = cluster(vec![node(1.0), node(4.0)]);
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    let there = cluster.node(1).unwrap();
    let value = put(&blob(len, 5)).unwrap();
    let readers: Vec<_> = (0..20).map(|_| digest_here::options().node(there, false).remote(&value)).collect();
    let wanted = (there, digest(&blob(len, 5)));
    assert!(get_all(&readers, Some(SOON.into())).unwrap().into_iter().all(|read| read == wanted));
    let store = cluster.report(1).unwrap().store;
    assert!(store.object_count == 1 && store.used_bytes < 2 * len as u64, "one copy came: {store:?}");
}

/// Makes a value when the time has come.
#[remote]
fn make_after(ms: u64, len: usize, seed: u64) -> Blob {
    std::thread::sleep(Duration::from_millis(ms));
    blob(len, seed)
}

/// Some threads look again and again, each time for a moment only, for a small value and for a large one that
/// another thread reads: the large one comes all the same, and its bytes come once.
fn d10_who_gives_up_stops_nobody_else() {
    let len = 256 * MIB;
    let cluster = cluster(vec![node(1.0), node(2.0)]);
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    let there = cluster.node(1).unwrap();
    let large = make::options().node(there, false).remote(len, 3);
    made_ready(&large);
    let small = make_after::options().node(there, false).remote(2000, MIB, 4);
    let is_read = AtomicBool::new(false);
    let mut gave_up = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(digest(&large.get_timeout(SOON).unwrap()), digest(&blob(len, 3)));
            is_read.store(true, Ordering::Release);
        });
        while !is_read.load(Ordering::Acquire) {
            gave_up += usize::from(large.get_timeout(0.002).is_err());
            gave_up += usize::from(small.get_timeout(0.002).is_err());
        }
    });
    assert!(0 < gave_up, "nobody gave up");
    assert_eq!(digest(&small.get_timeout(SOON).unwrap()), digest(&blob(MIB, 4)));
    let sent = cluster.report(1).unwrap().sent_bytes;
    assert!(sent < (len + len / 2) as u64, "{sent} bytes were sent for {len}");
}

/// Passes the reference on until nobody is left to pass it to; the last one reads it.
#[remote]
fn pass(nested: Vec<ObjectRef<Blob>>, nodes: Vec<NodeId>) -> u64 {
    let Some((next, rest)) = nodes.split_first() else {
        // Time for everyone before to have dropped theirs.
        std::thread::sleep(Duration::from_millis(100));
        return digest(&nested[0].get().unwrap());
    };
    pass::options().node(*next, false).remote(nested, rest.to_vec()).get().unwrap()
}

fn b4_borrower_chain_over_nodes() {
    let len = MIB;
    let cluster = cluster(vec![node(1.0), node(1.0)]);
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    let chain: Vec<_> = (0..5).map(|n| cluster.node(n % 2).unwrap()).collect();
    let value = put(&blob(len, 6)).unwrap();
    let id: RefId = value.id();
    let read = pass::options().node(cluster.node(1).unwrap(), false).remote(vec![value], chain);
    assert_eq!(read.get_timeout(SOON).unwrap(), digest(&blob(len, 6)), "{id:?}");
    drop(read);
    for index in 0..2 {
        await_within(Duration::from_secs(20), "everything is freed", || {
            let report = cluster.report(index).unwrap();
            report.store.object_count == 0 && report.object_count == 0
        });
    }
}

fn e6_death_of_a_node() {
    let mut cluster = cluster(vec![node(1.0), node(1.0)]);
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    let there = cluster.node(1).unwrap();
    assert_eq!(here::options().node(there, false).remote().get_timeout(SOON).unwrap(), there);
    // With retries everything ends well; without, only what had started there is lost.
    let patient: Vec<_> = (0..40).map(|_| here_after::options().spread().max_retries(3).remote(50)).collect();
    let strict: Vec<_> = (0..40).map(|_| here_after::options().spread().max_retries(0).remote(50)).collect();
    std::thread::sleep(Duration::from_millis(400));
    cluster.kill(1);
    for task in &patient {
        task.get_timeout(SOON).unwrap();
    }
    let failed: Vec<_> = strict.iter().filter_map(|task| task.get_timeout(SOON).err()).collect();
    assert!(failed.len() <= 1, "one slot, so one had started: {failed:?}");
    assert!(failed.iter().all(|error| error.kind() == FailureKind::NodeDied), "{failed:?}");
}

fn e6_a_killed_node_is_dead_long_before_its_lease_ends() {
    let long = Duration::from_secs(600);
    let mut cluster = LocalCluster::empty().lease_ttl(long);
    for _ in 0..4 {
        cluster.add(node(1.0)).unwrap();
    }
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    // Node ids are random, so a node opens streams to some members and is called by others.
    for victim in 1..4 {
        let there = cluster.node(victim).unwrap();
        let value = here::options().node(there, true).max_retries(1).remote();
        assert_eq!(value.get_timeout(SOON).unwrap(), there);
        let began = Instant::now();
        cluster.kill(victim);
        cluster.await_count(4 - victim, Duration::from_secs(10)).unwrap();
        println!("node {victim} of 4: everybody knows after {:?}", began.elapsed());
    }
}

fn a_node_that_joins_late_is_used() {
    let mut cluster = cluster(vec![node(1.0)]);
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    let until = std::time::Instant::now() + Duration::from_secs_f64(SOON);
    let mut ran = HashSet::new();
    let mut joined = false;
    while ran.len() < 2 && std::time::Instant::now() < until {
        let all: Vec<_> = (0..20).map(|_| here_after::options().spread().remote(50)).collect();
        if !std::mem::replace(&mut joined, true) {
            cluster.add(node(1.0)).unwrap();
        }
        ran.extend(all.iter().map(|task| task.get_timeout(SOON).unwrap()));
    }
    assert_eq!(ran.len(), 2, "{ran:?}");
}

fn errors_keep_their_kind_over_nodes() {
    let cluster = cluster(vec![node(1.0), node(1.0)]);
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    let there = cluster.node(1).unwrap();
    let error = fail::options().node(there, false).remote("no".to_owned()).get_timeout(SOON).unwrap_err();
    assert_eq!(error.kind(), FailureKind::UserError, "{error}");
    assert_eq!(error.downcast::<String>().as_deref(), Some("no"), "{error}");
}

/// The second node has the program already, by its own driver, and has to start it for the other one's job;
/// and the other way round.
fn drivers_of_one_program_on_two_nodes_use_both() {
    let cluster = cluster(vec![node(1.0), node(1.0)]);
    let nodes = [cluster.node(0).unwrap(), cluster.node(1).unwrap()];
    let drivers = [driver(&cluster, 1), driver(&cluster, 0)];
    for runtime in &drivers {
        let _entered = runtime.enter();
        for there in nodes {
            assert_eq!(here::options().node(there, false).remote().get_timeout(SOON).unwrap(), there);
        }
    }
}

/// Connections of the cluster that say nothing any more take no places from those over which something is
/// read.
fn silent_connections_do_not_stop_transfers() {
    let cluster = cluster(vec![node(1.0), node(1.0)]);
    let address = cluster.address(1).unwrap();
    let own = Security::Secret(tharsis::machine::default_secret_file()).credentials(&[]).unwrap();
    let silent: Vec<_> = (0..300)
        .map(|_| {
            let stream = std::net::TcpStream::connect(address).unwrap();
            own.meet_blocking(stream, Called::Control, Purpose::Transfers).unwrap()
        })
        .collect();
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    let there = cluster.node(1).unwrap();
    let begin = Instant::now();
    for seed in 0..5 {
        let value = make::options().node(there, false).remote(8 * MIB, seed).get_timeout(SOON).unwrap();
        assert_eq!(digest(&value), digest(&blob(8 * MIB, seed)));
    }
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    drop(silent);
}

/// The program has no node of its own on this machine: one starts for it, and leaves with it.
fn a_program_joins_at_an_address() {
    let cluster = cluster(vec![node(1.0)]);
    let head = cluster.address(0).unwrap();
    let runtime = init().address(head).store_bytes(STORE_BYTES).start_local().unwrap();
    let entered = runtime.enter();
    assert_eq!(here::remote().get_timeout(SOON).unwrap(), cluster.node(0).unwrap());
    drop(entered);
    drop(runtime);
    cluster.await_count(1, Duration::from_secs_f64(SOON)).unwrap();
    let nobody = init().address("127.0.0.1:1").store_bytes(STORE_BYTES).start_local().unwrap_err();
    assert!(nobody.to_string().contains("127.0.0.1:1"), "{nobody}");
}
