//! Every check of the suite against every back end, and what only some of them promise.

use futures::FutureExt;
use futures::future::BoxFuture;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tharsis_conformance::etcd::{EtcdProcess, EtcdTrio};
use tharsis_conformance::{Subject, suite};
use tharsis_gcs::backend::{Response, WatchItem};
use tharsis_gcs::service::{Control, ControlOptions};
use tharsis_gcs::tables::FORMAT;
use tharsis_gcs::{Backend, Embedded, EmbeddedLimits, Etcd, EtcdOptions, Op, Owner, StoreError, Txn};
use tharsis_protos::control::ClusterId;

struct OfEmbedded(Arc<Embedded>);

impl Subject for OfEmbedded {
    fn backend(&self) -> Arc<dyn Backend> {
        self.0.clone()
    }

    fn compact(&self, at: u64) -> BoxFuture<'_, ()> {
        self.0.compact(at);
        Box::pin(std::future::ready(()))
    }
}

struct OfEtcd(Arc<Etcd>, String);

impl Subject for OfEtcd {
    fn backend(&self) -> Arc<dyn Backend> {
        self.0.clone()
    }

    fn compact(&self, at: u64) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut client = etcd_client::Client::connect([&self.1], None).await.unwrap();
            let physical = etcd_client::CompactionOptions::new().with_physical();
            client.compact(at.cast_signed(), Some(physical)).await.unwrap();
        })
    }
}

/// Runs all checks and names those that fail.
async fn run(subject: &dyn Subject) {
    let mut failed = Vec::new();
    for (name, check) in suite::CHECKS {
        let begin = Instant::now();
        if AssertUnwindSafe(check(subject)).catch_unwind().await.is_err() {
            failed.push(name);
        }
        println!("{name}: {} ms", begin.elapsed().as_millis());
    }
    assert!(failed.is_empty(), "failed: {failed:?}");
}

fn etcd(endpoint: &str, cluster: &str) -> EtcdOptions {
    EtcdOptions { endpoints: vec![endpoint.to_owned()], cluster: cluster.to_owned(), user: None, tls: None }
}

fn put(key: &str, value: &str) -> Txn {
    Txn::always(vec![Op::put(key, value)])
}

async fn value(store: &dyn Backend, key: &str) -> Option<String> {
    match store.txn(Txn::always(vec![Op::Get(key.into())])).await.unwrap().responses.remove(0) {
        Response::Found(entry) => entry.map(|entry| String::from_utf8(entry.value).unwrap()),
        other => panic!("{other:?}"),
    }
}

async fn open(path: &Path) -> Embedded {
    Embedded::open(path, EmbeddedLimits::default()).await.unwrap()
}

/// A file system of two megabytes, which only root can mount.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=2m", "none"]).arg(folder.path());
        let is_mounted = mount.output().is_ok_and(|output| output.status.success());
        if !is_mounted {
            tharsis_trials::not_run("no right to mount a file system");
        }
        is_mounted.then_some(Self(folder))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _unmounted = std::process::Command::new("umount").arg(self.0.path()).status();
    }
}

/// A disk that is full for a while: what was answered stays, what was refused is not there, and once there is
/// room the store goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_could_not_be_written_is_written_again() {
    let Some(disk) = SmallDisk::mount() else { return };
    let (path, other) = (disk.0.path().join("state"), disk.0.path().join("other"));
    let store = open(&path).await;
    std::fs::write(&other, vec![1; 1 << 20]).unwrap();
    let large = "x".repeat(100_000);
    let mut written = 0;
    let refused = loop {
        match store.txn(put(&format!("k{written}"), &large)).await {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 100, "the disk is never full");
    };
    assert!(matches!(refused, StoreError::Io { .. }), "{refused}");
    let lost = format!("k{written}");
    assert_eq!(value(&store, &lost).await, None);
    // Reads and renewals go on meanwhile.
    assert!(0 < written && value(&store, "k0").await.is_some());
    std::fs::remove_file(&other).unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    while let Err(error) = store.txn(put("after", "it")).await {
        assert!(Instant::now() < until, "{error}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(open_refuses(&path).await, "the file is its own still");
    store.close().await;
    let again = open(&path).await;
    for index in 0..written {
        assert_eq!(value(&again, &format!("k{index}")).await.as_ref(), Some(&large));
    }
    assert_eq!((value(&again, &lost).await, value(&again, "after").await), (None, Some("it".to_owned())));
    again.close().await;
}

/// Names are resolved in the pool of the runtime, and a name server may not answer for long.
#[test]
fn commits_do_not_wait_for_the_pool_of_the_runtime() {
    let folder = tempfile::tempdir().unwrap();
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        let store = open(&folder.path().join("state")).await;
        let (release, held) = std::sync::mpsc::channel::<()>();
        let lookup = tokio::task::spawn_blocking(move || held.recv());
        let written = tokio::time::timeout(Duration::from_secs(10), store.txn(put("a", "1"))).await;
        written.expect("the commit does not wait for the lookup").unwrap();
        tokio::time::timeout(Duration::from_secs(10), store.close()).await.unwrap();
        drop(release);
        let _ended = lookup.await;
    });
}

async fn open_refuses(path: &Path) -> bool {
    matches!(Embedded::open(path, EmbeddedLimits::default()).await, Err(StoreError::InUse { .. }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_conforms() {
    let store = Arc::new(Embedded::memory(EmbeddedLimits::default()));
    run(&OfEmbedded(store.clone())).await;
    store.close().await;
    assert_eq!(store.txn(put("a", "b")).await, Err(StoreError::Closed));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_conforms() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(open(&folder.path().join("store")).await);
    run(&OfEmbedded(store.clone())).await;
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn etcd_conforms() {
    let process = EtcdProcess::start().await;
    let store = Arc::new(Etcd::connect(etcd(process.endpoint(), "suite")).await.unwrap());
    run(&OfEtcd(store.clone(), process.endpoint().to_owned())).await;
    let mut client = etcd_client::Client::connect([process.endpoint()], None).await.unwrap();
    let all =
        client.get("", Some(etcd_client::GetOptions::new().with_all_keys().with_keys_only())).await.unwrap();
    assert!(all.kvs().iter().all(|kv| kv.key().starts_with(b"/tharsis/suite/")), "all keys are under ours");
    store.close().await;
    assert_eq!(store.txn(put("a", "b")).await, Err(StoreError::Closed));
}

#[tokio::test]
async fn a_file_keeps_what_was_committed_and_begins_leases_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = open(&path).await;
    let (lease, _) = store.lease_grant(Duration::from_millis(4000)).await.unwrap();
    let leased = Op::Put { key: "leased".into(), value: "1".into(), lease: Some(lease) };
    let revision = store.txn(Txn::always(vec![Op::put("kept", "1"), leased])).await.unwrap().revision;
    assert_eq!(
        Embedded::open(&path, EmbeddedLimits::default()).await.map(drop),
        Err(StoreError::InUse { path: path.clone() })
    );
    tokio::time::sleep(Duration::from_millis(2100)).await;
    store.close().await;
    drop(store);

    let store = open(&path).await;
    tokio::time::sleep(Duration::from_millis(2100)).await;
    assert_eq!(value(&store, "kept").await.as_deref(), Some("1"));
    assert_eq!(value(&store, "leased").await.as_deref(), Some("1"), "the lease has its full length again");
    let mut old = store.watch(b"".to_vec(), revision).await.unwrap();
    let item = futures::StreamExt::next(&mut old).await.unwrap().unwrap();
    assert_eq!(item, WatchItem::Compacted { at: revision }, "the history begins with the start");
    let mut new = store.watch(b"".to_vec(), revision + 1).await.unwrap();
    let item = tokio::time::timeout(Duration::from_secs(5), futures::StreamExt::next(&mut new)).await;
    assert!(
        matches!(item, Ok(Some(Ok(WatchItem::Changed { revision: at, .. }))) if at == revision + 1),
        "{item:?}"
    );
    assert_eq!(value(&store, "leased").await, None);
    let (next, _) = store.lease_grant(Duration::from_secs(9)).await.unwrap();
    assert!(lease < next, "leases are never used again");
    store.close().await;
}

#[tokio::test]
async fn a_torn_tail_recovers_to_the_last_commit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = open(&path).await;
    for n in 0..50 {
        store.txn(put(&format!("k/{n}"), &"v".repeat(3000))).await.unwrap();
    }
    let before = std::fs::read(&path).unwrap();
    store.txn(put("last", &"w".repeat(100_000))).await.unwrap();
    // The file as a crash leaves it: not closed.
    let after = std::fs::read(&path).unwrap();
    store.close().await;

    let page = 4096;
    let changed: Vec<usize> = (page..after.len())
        .step_by(page)
        .filter(|at| before.get(*at..*at + page) != after.get(*at..*at + page))
        .collect();
    assert!(2 < changed.len(), "the last commit wrote pages");
    let mut cases = Vec::new();
    for at in &changed {
        // A page that reached the disk by half.
        let mut torn = after.clone();
        torn[*at + page / 2..*at + page].fill(0xa5);
        cases.push((format!("page {at} torn"), torn));
    }
    // The header with the new root reached the disk, none of the pages did.
    let mut headless = before.clone();
    headless.resize(after.len(), 0);
    headless[..page].copy_from_slice(&after[..page]);
    cases.push(("only the header".to_owned(), headless));
    // The file did not grow as far as the header says.
    for cut in [1, page / 2, page, 3 * page + 7] {
        cases.push((format!("{cut} bytes short"), after[..after.len() - cut].to_vec()));
    }
    let mut rolled_back = 0;
    for (name, bytes) in cases {
        let copy = folder.path().join("copy");
        std::fs::write(&copy, bytes).unwrap();
        let store = Embedded::open(&copy, EmbeddedLimits::default()).await;
        let store = store.unwrap_or_else(|error| panic!("{name}: {error}"));
        for n in 0..50 {
            assert_eq!(value(&store, &format!("k/{n}")).await, Some("v".repeat(3000)), "{name}");
        }
        let last = value(&store, "last").await;
        rolled_back += usize::from(last.is_none());
        assert!(last.is_none() || last == Some("w".repeat(100_000)), "{name}: a wrong value");
        store.txn(put("more", "1")).await.unwrap();
        store.close().await;
        std::fs::remove_file(&copy).unwrap();
    }
    assert!(0 < rolled_back, "the damage was where the last commit is");
}

#[tokio::test]
async fn a_file_that_is_not_ours_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    std::fs::write(&path, vec![7; 8192]).unwrap();
    let error = Embedded::open(&path, EmbeddedLimits::default()).await.map(drop).unwrap_err();
    assert!(matches!(&error, StoreError::Io { path: at, .. } if *at == path), "{error}");
    let error = Embedded::open(folder.path().join("none/store"), EmbeddedLimits::default())
        .await
        .map(drop)
        .unwrap_err();
    assert!(error.to_string().contains("No such file"), "{error}");
}

#[tokio::test]
async fn a_full_store_refuses_more_and_takes_less() {
    let limits = EmbeddedLimits { bytes_max: 100_000, ..EmbeddedLimits::default() };
    let store = Embedded::memory(limits);
    store.txn(put("a", &"x".repeat(90_000))).await.unwrap();
    let full = store.txn(put("b", &"x".repeat(20_000))).await;
    assert!(matches!(full, Err(StoreError::NoSpace { limit_bytes: 100_000, .. })), "{full:?}");
    store.txn(put("a", &"x".repeat(50_000))).await.unwrap();
    store.txn(put("b", &"x".repeat(20_000))).await.unwrap();
    store.close().await;
}

#[tokio::test]
async fn a_short_history_says_compacted() {
    let limits = EmbeddedLimits { history_events_max: 10, ..EmbeddedLimits::default() };
    let store = Embedded::memory(limits);
    let mut watch = store.watch(b"".to_vec(), 2).await.unwrap();
    for n in 0..100 {
        store.txn(put("a", &n.to_string())).await.unwrap();
    }
    let item = futures::StreamExt::next(&mut watch).await.unwrap().unwrap();
    assert_eq!(item, WatchItem::Compacted { at: 91 });
    store.close().await;
}

#[tokio::test]
async fn an_etcd_that_cannot_be_used_is_an_error_with_its_cause() {
    let [port] = tharsis_trials::free_ports();
    let wrong = [
        (etcd(&format!("http://127.0.0.1:{port}"), "c"), "onnection refused"),
        (etcd(&format!("https://127.0.0.1:{port}"), "c"), "must begin with http://"),
        (etcd(&format!("ftp://127.0.0.1:{port}"), "c"), "must begin with http://"),
        (etcd(&format!("127.0.0.1:{port}"), "c"), "must begin with http://"),
        (etcd(&format!("http://127.0.0.1:{port}"), "a/b"), "cluster name"),
        (EtcdOptions { endpoints: Vec::new(), ..etcd("", "c") }, "no endpoint"),
    ];
    for (options, cause) in wrong {
        let begin = Instant::now();
        let error = Etcd::connect(options).await.map(drop).unwrap_err();
        assert!(matches!(error, StoreError::Connect { .. }), "{error}");
        assert!(error.to_string().contains(cause), "{error}");
        assert!(begin.elapsed() < Duration::from_secs(10), "{error}");
    }
    // Someone listens and says nothing.
    let mute = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let begin = Instant::now();
    let error = Etcd::connect(etcd(&format!("http://{}", mute.local_addr().unwrap()), "c"))
        .await
        .map(drop)
        .unwrap_err();
    assert!(matches!(error, StoreError::Connect { .. }), "{error}");
    assert!(begin.elapsed() < Duration::from_secs(10), "{error}");
}

#[tokio::test]
async fn without_a_quorum_nothing_is_written_or_read_and_it_comes_back_alone() {
    let mut trio = EtcdTrio::start().await;
    let options = EtcdOptions { endpoints: trio.endpoints(), ..etcd("", "c") };
    let store = Etcd::connect(options).await.unwrap();
    store.txn(put("a", "1")).await.unwrap();
    trio.kill(0);
    trio.kill(1);
    for lost in [put("a", "2"), Txn::always(vec![Op::Get("a".into())])] {
        let begin = Instant::now();
        let error = store.txn(lost).await.unwrap_err();
        assert!(error.is_transient(), "{error}");
        assert!(begin.elapsed() < Duration::from_secs(10), "{error}");
    }
    // Reads look for a server that answers, so that the caller needs no patience once there is a quorum.
    trio.start_again(0);
    trio.start_again(1);
    trio.await_quorum().await;
    let end = Instant::now() + Duration::from_secs(30);
    while let Err(error) = store.txn(put("b", "1")).await {
        assert!(error.is_transient() && Instant::now() < end, "{error}");
    }
    assert!(value(&store, "a").await.is_some());
    store.close().await;
}

#[tokio::test]
async fn with_one_server_down_every_request_finds_another() {
    let mut trio = EtcdTrio::start().await;
    let options = EtcdOptions { endpoints: trio.endpoints(), ..etcd("", "c") };
    let store = Etcd::connect(options.clone()).await.unwrap();
    store.txn(put("a", "0")).await.unwrap();
    trio.kill(2);
    trio.await_quorum().await;
    for round in 1..=50 {
        store.txn(put("a", &round.to_string())).await.unwrap();
        assert_eq!(value(&store, "a").await, Some(round.to_string()));
        let (lease, _) = store.lease_grant(Duration::from_secs(9)).await.unwrap();
        store.lease_keep_alive(lease).await.unwrap();
        store.lease_revoke(lease).await.unwrap();
        let another = Etcd::connect(options.clone()).await.unwrap();
        another.close().await;
    }
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_of_a_former_release_are_taken_over_and_those_of_a_later_one_left_alone() {
    let (folder, process) = (tempfile::tempdir().unwrap(), EtcdProcess::start().await);
    let stores: [Arc<dyn Backend>; 3] = [
        Arc::new(Embedded::memory(EmbeddedLimits::default())),
        Arc::new(open(&folder.path().join("state")).await),
        Arc::new(Etcd::connect(etcd(process.endpoint(), "default")).await.unwrap()),
    ];
    let start = |store: &Arc<dyn Backend>| Control::start(Arc::clone(store), ControlOptions::default());
    for store in stores {
        let before = store.txn(put("meta/format", &(FORMAT + 1).to_string())).await.unwrap().revision;
        let error = start(&store).await.map(drop).unwrap_err();
        assert!(matches!(&error, StoreError::LaterTables { found, .. } if *found == FORMAT + 1), "{error}");
        let after = store.txn(Txn::always(vec![Op::range("")])).await.unwrap().revision;
        assert_eq!(after, before, "nothing was written");
        store.txn(put("meta/format", &(FORMAT - 1).to_string())).await.unwrap();
        let control = start(&store).await.unwrap();
        assert_eq!(value(&*store, "meta/format").await, Some(FORMAT.to_string()));
        control.stop().await;
    }
}

#[tokio::test]
async fn the_key_space_of_another_cluster_is_refused() {
    let process = EtcdProcess::start().await;
    let connect = || async { Arc::new(Etcd::connect(etcd(process.endpoint(), "shared")).await.unwrap()) };
    let options = |id| ControlOptions { cluster: Some(ClusterId([id; 16])), ..ControlOptions::default() };
    let first = Control::start(connect().await, options(1)).await.unwrap();
    assert_eq!(first.cluster(), ClusterId([1; 16]));
    let error = Control::start(connect().await, options(2)).await.map(drop).unwrap_err();
    assert!(
        matches!(&error, StoreError::ClusterMismatch { place, .. } if place.ends_with("/tharsis/shared/")),
        "{error}"
    );
    let second = Control::start(connect().await, ControlOptions::default()).await.unwrap();
    assert_eq!(second.cluster(), first.cluster(), "two servers of one cluster");
    first.stop().await;
    second.stop().await;
}

#[tokio::test]
async fn a_key_space_is_that_of_the_first_who_trusts_somebody() {
    let process = EtcdProcess::start().await;
    let connect = || async { Arc::new(Etcd::connect(etcd(process.endpoint(), "default")).await.unwrap()) };
    let of = |owner| ControlOptions { owner: Some(owner), ..ControlOptions::default() };
    let options = |id| of(Owner::Authority { name: ClusterId([id; 16]), user: Some([1; 16]) });
    // One of a release that named nobody.
    let former = Control::start(connect().await, ControlOptions::default()).await.unwrap();
    let alone = Control::start(connect().await, of(Owner::User([1; 16]))).await.unwrap();
    alone.stop().await;
    let first = Control::start(connect().await, options(1)).await.unwrap();
    assert_eq!(first.cluster(), former.cluster());
    let error = Control::start(connect().await, of(Owner::User([1; 16]))).await.map(drop).unwrap_err();
    assert!(matches!(&error, StoreError::ForeignOwner { .. }), "{error}");
    let error = Control::start(connect().await, options(2)).await.map(drop).unwrap_err();
    assert!(matches!(&error, StoreError::ForeignOwner { .. }), "{error}");
    assert!(error.to_string().contains("--cluster"), "{error}");
    let second = Control::start(connect().await, options(1)).await.unwrap();
    for control in [former, first, second] {
        control.stop().await;
    }
    // It stays so when all of them are gone.
    let error = Control::start(connect().await, options(2)).await.map(drop).unwrap_err();
    assert!(matches!(&error, StoreError::ForeignOwner { .. }), "{error}");
}
