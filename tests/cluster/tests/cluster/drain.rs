//! Nodes that drain: what runs ends, nothing new comes, and what lies there alone is moved.

use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;
use tharsis::prelude::*;
use tharsis::{LocalCluster, LocalNode, NodeId, Resources, SpillChoice, SpillFolder, observe};
use tharsis_cluster_tests::{SOON, Scenario, await_that, driver, scenarios};
use tharsis_protos::report::DrainRow;

const MIB: usize = 1 << 20;
/// Bytes of a store that holds the largest value.
const LARGE_STORE_BYTES: u64 = 256 << 20;
/// Bytes of a store that holds a few values.
const SMALL_STORE_BYTES: u64 = 16 << 20;
/// Long enough for any drain that has nothing to wait for.
const LONG: Duration = Duration::from_secs(60);
/// Time limit of the end of a process that drained.
const END_WAIT: Duration = Duration::from_secs(20);

pub const ALL: &[Scenario] = scenarios![
    an_only_copy_is_read_without_a_second_run,
    copies_on_disk_are_moved_as_well,
    sigterm_drains_a_node,
    a_second_signal_ends_the_drain,
    a_job_keeps_its_node_until_it_ends;
    alone:
        an_idle_node_leaves_within_a_second,
        a_busy_node_ends_its_runs_and_gets_no_new_ones,
        the_deadline_ends_what_still_runs,
];

/// Nodes, and a folder for what they and the tasks write. The first node has no CPUs and the driver.
struct Field {
    cluster: LocalCluster,
    folder: TempDir,
}

impl Field {
    fn new(store_bytes: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut field = Self { cluster: LocalCluster::empty(), folder };
        field.add("home", 0.0, store_bytes);
        ["a", "b"].iter().for_each(|zone| field.add(zone, 2.0, store_bytes));
        field
    }

    fn add(&mut self, zone: &str, cpus: f64, store_bytes: u64) {
        let path = self.folder.path().join(format!("spill {zone}"));
        let folders = vec![SpillFolder { path, quota_bytes: 1 << 30 }];
        let node = LocalNode {
            resources: Resources::cpus(cpus).unwrap(),
            labels: vec![("zone".to_owned(), zone.to_owned())],
            store_bytes,
            spill: SpillChoice { folders, ..SpillChoice::default() },
        };
        self.cluster.add(node).unwrap();
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn node(&self, index: usize) -> NodeId {
        self.cluster.node(index).unwrap()
    }

    /// Drains a node, and waits for the end of its process.
    fn drain(&mut self, index: usize, within: Duration) -> DrainRow {
        let row = observe::drain(self.cluster.socket(index).unwrap(), within, |_| {}).unwrap();
        self.await_end(index);
        row
    }

    /// Waits until a node has ended with status 0, and the others know.
    fn await_end(&mut self, index: usize) {
        let status = self.cluster.await_end(index, END_WAIT).unwrap();
        assert!(status.success(), "{status}");
        self.cluster.await_count(2, END_WAIT).unwrap();
    }

    fn terminate(&self, index: usize) {
        let pid = i32::try_from(self.cluster.pid(index).unwrap()).ok().and_then(Pid::from_raw).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
    }
}

fn now_ms() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()
}

fn lines(path: &str) -> usize {
    fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

fn note(path: &str) {
    let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(b"x\n").unwrap();
}

/// Bytes that no other seed has, and that do not compress.
fn noise(len: usize, seed: u64) -> Blob {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = vec![0; len];
    for word in bytes.chunks_exact_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        word.copy_from_slice(&state.to_le_bytes());
    }
    Blob::from(bytes)
}

#[remote(max_retries = 0)]
fn make(len: usize, seed: u64, runs: String) -> Blob {
    note(&runs);
    noise(len, seed)
}

/// Its node, and the time when it started.
#[remote(max_retries = 0)]
fn works(index: u64, ms: u64, runs: String) -> (u64, NodeId, u128) {
    let started = now_ms();
    note(&runs);
    std::thread::sleep(Duration::from_millis(ms));
    (index, context().unwrap().node(), started)
}

#[remote(max_retries = 1)]
fn sleeps_at_first(runs: String) -> NodeId {
    note(&runs);
    if lines(&runs) == 1 {
        std::thread::sleep(Duration::from_secs(300));
    }
    context().unwrap().node()
}

#[remote(max_retries = 0)]
fn is_noise(value: Blob, len: usize, seed: u64) -> bool {
    value == noise(len, seed)
}

fn an_idle_node_leaves_within_a_second() {
    let mut field = Field::new(SMALL_STORE_BYTES);
    let begin = Instant::now();
    let row = field.drain(1, LONG);
    assert!(row.is_clean, "{row:?}");
    assert!(
        begin.elapsed() < Duration::from_secs(2),
        "the end of its process included: {:?}",
        begin.elapsed()
    );
    let took_ms = LONG.as_millis() as u64 - row.remaining_ms;
    assert!(took_ms < 1000, "it drained for {took_ms} ms");
}

/// Tasks that may not run again are spread over two nodes. One of them drains: all have their answers, each
/// ran once, and none starts there any more.
fn a_busy_node_ends_its_runs_and_gets_no_new_ones() {
    let mut field = Field::new(SMALL_STORE_BYTES);
    let runtime = driver(&field.cluster, 0);
    let _entered = runtime.enter();
    let path = field.path("runs");
    let calls: Vec<_> = (0..80).map(|index| works::remote(index, 50, path.clone())).collect();
    await_that("both nodes work", || {
        let runs = |index| field.cluster.report(index).unwrap().running_count;
        0 < runs(1) && 0 < runs(2)
    });
    let drained_ms = now_ms();
    let leaving = field.node(1);
    let row = field.drain(1, LONG);
    assert!(row.is_clean, "{row:?}");
    let answers: Vec<_> = calls.iter().map(|call| call.get_timeout(SOON).unwrap()).collect();
    assert!(answers.iter().map(|(index, ..)| *index).eq(0..80), "each has its own answer");
    assert_eq!(lines(&path), 80, "each ran once");
    let there = |after_ms| answers.iter().filter(|(_, node, at)| *node == leaving && after_ms <= *at).count();
    assert!(0 < there(0), "the node had worked");
    // Runs that were with a worker may have begun while the order was on its way.
    assert_eq!(there(drained_ms + 300), 0, "runs begun on the node while it drained");
}

fn an_only_copy_is_read_without_a_second_run() {
    let mut field = Field::new(LARGE_STORE_BYTES);
    let runtime = driver(&field.cluster, 0);
    let _entered = runtime.enter();
    let (len, path) = (100 * MIB, field.path("runs"));
    let value = make::options().node(field.node(1), true).remote(len, 7, path.clone());
    let made = Wait { num_returns: 1, timeout: Some(SOON.into()), fetch: false };
    assert_eq!(wait(std::slice::from_ref(&value), made).unwrap().0.len(), 1);
    assert_eq!(tharsis::locations(&value).unwrap(), [field.node(1)]);
    let begin = Instant::now();
    let row = field.drain(1, LONG);
    println!("100 MiB moved in {} ms", LONG.as_millis() as u64 - row.remaining_ms);
    assert!(row.is_clean && row.moved == 1 && len as u64 <= row.moved_bytes, "{row:?}");
    assert!(begin.elapsed() < Duration::from_secs(30));
    assert!(!tharsis::locations(&value).unwrap().contains(&field.node(1)));
    assert!(is_noise::remote(&value, len, 7).get_timeout(SOON).unwrap());
    assert_eq!(lines(&path), 1, "it was made once");
}

/// A node has more values than its store holds: some lie on its disk alone.
fn copies_on_disk_are_moved_as_well() {
    let mut field = Field::new(SMALL_STORE_BYTES);
    let runtime = driver(&field.cluster, 0);
    let _entered = runtime.enter();
    let path = field.path("runs");
    let values: Vec<_> = (0..24)
        .map(|seed| make::options().node(field.node(1), true).remote(MIB, seed, path.clone()))
        .collect();
    let made = Wait { num_returns: values.len(), timeout: Some(SOON.into()), fetch: false };
    assert_eq!(wait(&values, made).unwrap().0.len(), values.len());
    let spilled = field.cluster.report(1).unwrap().store.spilled_count;
    assert!(4 < spilled, "{spilled} values are on disk");
    let row = field.drain(1, LONG);
    assert!(row.is_clean && row.moved == 24, "{row:?}");
    for (value, seed) in values.iter().zip(0..) {
        assert!(is_noise::remote(value, MIB, seed).get_timeout(SOON).unwrap(), "value {seed}");
    }
    assert_eq!(lines(&path), values.len(), "each was made once");
}

/// A task that runs past the deadline is cut off, and runs again on another node if it may.
fn the_deadline_ends_what_still_runs() {
    let mut field = Field::new(SMALL_STORE_BYTES);
    let runtime = driver(&field.cluster, 0);
    let _entered = runtime.enter();
    let path = field.path("runs");
    let call = sleeps_at_first::options().node(field.node(1), true).remote(path.clone());
    await_that("the task runs", || lines(&path) == 1);
    let begin = Instant::now();
    let row = field.drain(1, Duration::from_secs(1));
    let took = begin.elapsed();
    assert!(Duration::from_millis(900) < took && took < Duration::from_secs(4), "it left after {took:?}");
    assert!(row.is_over && !row.is_clean && row.runs == 1, "{row:?}");
    assert_eq!(call.get_timeout(SOON).unwrap(), field.node(2));
    assert_eq!(lines(&path), 2);
}

fn sigterm_drains_a_node() {
    let mut field = Field::new(SMALL_STORE_BYTES);
    let runtime = driver(&field.cluster, 0);
    let _entered = runtime.enter();
    let [path, works_path] = ["runs", "works"].map(|name| field.path(name));
    let value = make::options().node(field.node(1), true).remote(MIB, 3, path.clone());
    let made = Wait { num_returns: 1, timeout: Some(SOON.into()), fetch: false };
    assert_eq!(wait(std::slice::from_ref(&value), made).unwrap().0.len(), 1);
    let call = works::options().node(field.node(1), true).remote(5, 1000, works_path.clone());
    await_that("the task runs", || lines(&works_path) == 1);
    field.terminate(1);
    let draining = |field: &Field| {
        let nodes = field.cluster.report(0).unwrap().nodes;
        nodes.iter().any(|row| row.node == field.node(1).0 && row.is_draining)
    };
    await_that("the others know that it drains", || draining(&field));
    field.await_end(1);
    assert_eq!(call.get_timeout(SOON).unwrap().0, 5);
    assert!(is_noise::remote(&value, MIB, 3).get_timeout(SOON).unwrap());
    assert_eq!((lines(&path), lines(&works_path)), (1, 1), "each ran once");
}

fn a_second_signal_ends_the_drain() {
    let mut field = Field::new(SMALL_STORE_BYTES);
    let runtime = driver(&field.cluster, 0);
    let _entered = runtime.enter();
    let path = field.path("runs");
    let call = sleeps_at_first::options().node(field.node(1), true).remote(path.clone());
    await_that("the task runs", || lines(&path) == 1);
    field.terminate(1);
    await_that("it drains", || field.cluster.report(1).unwrap().nodes[0].is_draining);
    let begin = Instant::now();
    field.terminate(1);
    field.await_end(1);
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    assert_eq!(call.get_timeout(SOON).unwrap(), field.node(2));
}

/// The node of a driver stays until the job has ended, and its tasks run on other nodes. A new driver is
/// refused meanwhile.
fn a_job_keeps_its_node_until_it_ends() {
    let mut field = Field::new(SMALL_STORE_BYTES);
    let runtime = driver(&field.cluster, 1);
    let entered = runtime.enter();
    let socket = field.cluster.socket(1).unwrap().to_owned();
    let leaving = field.node(1);
    let drained = std::thread::spawn(move || observe::drain(&socket, LONG, |_| {}).unwrap());
    await_that("it drains", || field.cluster.report(1).unwrap().nodes[0].is_draining);
    let again = observe::drain(field.cluster.socket(1).unwrap(), LONG, |_| {}).unwrap_err();
    assert!(again.to_string().contains("AlreadyDraining"), "{again}");
    let refused = tharsis::init().address(field.cluster.socket(1).unwrap().display().to_string()).start();
    assert!(refused.is_err_and(|error| error.to_string().contains("drains")), "a new job is refused");
    let path = field.path("runs");
    for index in 0..4 {
        let (_, node, _) = works::remote(index, 1, path.clone()).get_timeout(SOON).unwrap();
        assert_ne!(node, leaving);
    }
    assert!(!drained.is_finished());
    drop(entered);
    drop(runtime);
    let row = drained.join().unwrap();
    assert!(row.is_clean, "{row:?}");
    field.await_end(1);
}
