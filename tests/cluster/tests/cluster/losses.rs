//! Values on several nodes: spilled where they are and read elsewhere, lost with their node, kept by others.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;
use tharsis::prelude::*;
use tharsis::{
    FailureKind, LabelTerm, LocalCluster, LocalNode, NodeId, Resources, SpillChoice, SpillFolder, observe,
};
use tharsis_cluster_tests::{LEASE_TTL, SOON, Scenario, await_that, driver, scenarios};
use tharsis_protos::inventory::{Inventory, PlaceRow};

const MIB: usize = 1 << 20;
/// Bytes of each store: a few values.
const STORE_BYTES: u64 = 16 << 20;
/// Zone of nodes that do not spill.
const NO_DISK: &str = "no disk";

pub const ALL: &[Scenario] = scenarios![
    c1_a_lost_result_is_made_again_as_often_as_it_may,
    c2_a_copy_becomes_the_value,
    d6_a_value_larger_than_the_stores_travels,
    c8_a_borrower_asks_the_owner,
    c9_a_value_is_made_again_with_what_it_refers_to,
    c10_a_task_that_met_a_loss_runs_again,
    d7_a_spilled_value_is_read_from_elsewhere,
    d13_only_copies_are_evicted,
];

/// Nodes, and a folder for what they and the tasks write.
struct Field {
    cluster: LocalCluster,
    folder: TempDir,
}

impl Field {
    /// Nodes with these labels for their zone; each spills to a folder of its own.
    fn new(zones: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut field = Self { cluster: LocalCluster::empty().lease_ttl(LEASE_TTL), folder };
        zones.iter().for_each(|zone| field.add(zone));
        field
    }

    fn add(&mut self, zone: &str) {
        let path = self.folder.path().join(format!("spill {zone}"));
        let folder = SpillFolder { path, quota_bytes: 1 << 30 };
        let folders = if zone == NO_DISK { Vec::new() } else { vec![folder] };
        let node = LocalNode {
            resources: Resources::cpus(2.0).unwrap(),
            labels: vec![("zone".to_owned(), zone.to_owned())],
            store_bytes: STORE_BYTES,
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

    fn inventory(&self, index: usize) -> Inventory {
        observe::memory(self.cluster.socket(index).unwrap()).unwrap()
    }

    /// Ends a node at once, and waits until the first one knows.
    fn kill(&mut self, index: usize, left: usize) {
        self.cluster.kill(index);
        self.cluster.await_count(left, Duration::from_secs(20)).unwrap();
    }
}

fn in_zone(zone: &str) -> Vec<Vec<LabelTerm>> {
    vec![vec![LabelTerm::In("zone".to_owned(), vec![zone.to_owned()])]]
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

fn runs(path: &str) -> usize {
    fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

/// Waits until values exist, wherever they are.
fn made_ready(values: &[ObjectRef<Blob>]) {
    let options = Wait { num_returns: values.len(), timeout: Some(SOON.into()), fetch: false };
    assert_eq!(wait(values, options).unwrap().0.len(), values.len());
}

#[remote(max_retries = 1)]
fn make(len: usize, seed: u64, runs: String) -> Blob {
    let mut file = OpenOptions::new().create(true).append(true).open(runs).unwrap();
    file.write_all(b"x\n").unwrap();
    // Longer than it takes to write the value to disk: it is not dropped instead.
    std::thread::sleep(Duration::from_millis(50));
    noise(len, seed)
}

#[remote]
fn is_noise(value: Blob, len: usize, seed: u64) -> bool {
    value == noise(len, seed)
}

/// Reads what it was lent when it may.
#[remote]
fn reads_later(nested: Vec<ObjectRef<Blob>>, has_begun: String, gate: String, seed: u64) -> bool {
    fs::write(has_begun, b"").unwrap();
    await_that("the gate is open", || Path::new(&gate).exists());
    nested[0].get().unwrap() == noise(4 * MIB, seed)
}

/// A value that a task puts, and bytes beside its reference, so that both are in the store.
type Around = (ObjectRef<Blob>, Blob);

#[remote]
fn make_around(seed: u64, runs: String) -> Around {
    let mut file = OpenOptions::new().create(true).append(true).open(runs).unwrap();
    file.write_all(b"x\n").unwrap();
    (put(&noise(MIB, seed)).unwrap(), noise(64 << 10, seed))
}

#[remote]
fn is_noise_inside(around: Around, seed: u64) -> tharsis::Result<bool> {
    Ok(around.0.get()? == noise(MIB, seed) && around.1 == noise(64 << 10, seed))
}

/// As `is_noise_inside`, when it may.
#[remote]
fn is_noise_inside_later(around: Around, begun: String, gate: String, seed: u64) -> tharsis::Result<bool> {
    fs::write(begun, b"").unwrap();
    await_that("the gate is open", || Path::new(&gate).exists());
    Ok(around.0.get()? == noise(MIB, seed))
}

/// A result whose node died is recomputed once a node that may run its task joins; not more often than it has
/// retries.
fn c1_a_lost_result_is_made_again_as_often_as_it_may() {
    let mut field = Field::new(&["home", "a"]);
    let runtime = driver(&field.cluster, 0);
    let _entered = runtime.enter();
    let (len, path) = (10_000_000, field.path("runs"));
    let value = make::options().labels(in_zone("a")).remote(len, 1, path.clone());
    let is_read = |value| is_noise::options().labels(in_zone("a")).remote(value, len, 1);
    assert!(is_read(&value).get_timeout(SOON).unwrap());
    field.kill(1, 1);
    let dependent = is_read(&value);
    field.add("a");
    assert!(dependent.get_timeout(SOON).unwrap());
    assert_eq!(runs(&path), 2);
    field.kill(2, 1);
    let error = value.get_timeout(SOON).unwrap_err();
    assert_eq!((error.kind(), runs(&path)), (FailureKind::RetriesExhausted, 2), "{error}");
}

/// A copy of what is gone elsewhere is the value from then on: it is spilled like one, and never evicted.
fn c2_a_copy_becomes_the_value() {
    let mut field = Field::new(&["home", "a"]);
    let runtime = driver(&field.cluster, 0);
    let _entered = runtime.enter();
    let path = field.path("runs");
    let value = make::options().labels(in_zone("a")).remote(4 * MIB, 1, path.clone());
    assert!(value.get_timeout(SOON).unwrap() == noise(4 * MIB, 1));
    field.kill(1, 1);
    let fillers: Vec<_> = (0..32).map(|seed| put(&noise(MIB, 100 + seed)).unwrap()).collect();
    drop(fillers);
    assert!(value.get_timeout(SOON).unwrap() == noise(4 * MIB, 1));
    assert_eq!(runs(&path), 1, "it was made again");
}

/// A borrower of a lost value gets it from the owner, which has it recomputed once.
fn c8_a_borrower_asks_the_owner() {
    let mut field = Field::new(&["home", "a", "b"]);
    let runtime = driver(&field.cluster, 0);
    let _entered = runtime.enter();
    let [path, begun, gate] = ["runs", "begun", "gate"].map(|name| field.path(name));
    let value = make::options().node(field.node(1), true).remote(4 * MIB, 1, path.clone());
    assert!(
        is_noise::options().node(field.node(1), false).remote(&value, 4 * MIB, 1).get_timeout(SOON).unwrap()
    );
    let borrower = reads_later::options().node(field.node(2), false);
    let read = borrower.remote(vec![value], begun.clone(), gate.clone(), 1);
    await_that("the borrower runs", || Path::new(&begun).exists());
    field.kill(1, 2);
    fs::write(gate, b"").unwrap();
    assert!(read.get_timeout(SOON).unwrap());
    assert_eq!(runs(&path), 2);
}

/// A copy of a value is of no use when what it refers to is lost: its task runs again, and makes both.
fn c9_a_value_is_made_again_with_what_it_refers_to() {
    let mut field = Field::new(&["home", "a"]);
    let runtime = driver(&field.cluster, 0);
    let _entered = runtime.enter();
    let path = field.path("runs");
    let around = make_around::options().node(field.node(1), true).remote(1, path.clone());
    // Now this node has a copy of the value, but not of the one inside.
    assert!(around.get_timeout(SOON).unwrap().1 == noise(64 << 10, 1));
    field.kill(1, 1);
    assert!(is_noise_inside::remote(&around, 1).get_timeout(SOON).unwrap());
    assert!(is_noise_inside::remote(&around, 1).get_timeout(SOON).unwrap());
    assert_eq!(runs(&path), 2);
}

/// A task that fails because what an argument refers to was lost runs again, with the argument made anew.
fn c10_a_task_that_met_a_loss_runs_again() {
    let mut field = Field::new(&["home", "a", "b"]);
    let runtime = driver(&field.cluster, 0);
    let _entered = runtime.enter();
    let [path, begun, gate] = ["runs", "begun", "gate"].map(|name| field.path(name));
    let around = make_around::options().node(field.node(1), true).remote(1, path.clone());
    let reader = is_noise_inside_later::options().node(field.node(2), false);
    let read = reader.remote(&around, begun.clone(), gate.clone(), 1);
    await_that("the reader runs", || Path::new(&begun).exists());
    field.kill(1, 2);
    fs::write(gate, b"").unwrap();
    assert!(read.get_timeout(SOON).unwrap());
    assert_eq!(runs(&path), 2);
}

/// A value larger than a store moves from one node's file to another's, both ways, and outlives the node it
/// came from.
fn d6_a_value_larger_than_the_stores_travels() {
    let mut field = Field::new(&["home", "a"]);
    let runtime = driver(&field.cluster, 0);
    let _entered = runtime.enter();
    let (len, path) = (STORE_BYTES as usize * 5 / 2 + 1000, field.path("runs"));
    let in_files = |field: &Field, index| {
        let store = field.cluster.report(index).unwrap().store;
        assert!(store.used_bytes < STORE_BYTES / 2 && store.spilled_count == 0, "{store:?}");
        store.annex_used_bytes
    };
    let one = len as u64..len as u64 + 8192;
    let theirs = make::options().labels(in_zone("a")).remote(len, 1, path.clone());
    assert!(theirs.get_timeout(SOON).unwrap() == noise(len, 1));
    assert!([0, 1].iter().all(|index| one.contains(&in_files(&field, *index))), "a copy at each");
    let ours = put(&noise(len, 2)).unwrap();
    let is_read = |value| is_noise::options().labels(in_zone("a")).remote(value, len, 2);
    assert!(is_read(&ours).get_timeout(SOON).unwrap());
    assert!([0, 1].iter().all(|index| 2 * one.start <= in_files(&field, *index)), "two copies at each");
    field.kill(1, 1);
    assert!(theirs.get_timeout(SOON).unwrap() == noise(len, 1));
    assert_eq!(runs(&path), 1, "the copy counts, nothing was made again");
    drop((theirs, ours));
    await_that("the file is empty", || in_files(&field, 0) == 0);
}

/// A value that is only on disk is sent from there: it takes no room in the store of the node that has it.
fn d7_a_spilled_value_is_read_from_elsewhere() {
    let field = Field::new(&["home", "a"]);
    let runtime = driver(&field.cluster, 0);
    let _entered = runtime.enter();
    let path = field.path("runs");
    let values: Vec<_> = (0..32)
        .map(|seed| make::options().node(field.node(1), false).remote(MIB, seed, path.clone()))
        .collect();
    made_ready(&values);
    let mut before = field.inventory(1);
    await_that("nothing is being written", || {
        before = field.inventory(1);
        before.objects.iter().all(|row| row.place != PlaceRow::Writing)
    });
    let on_disk = |inventory: &Inventory| {
        let rows = inventory.objects.iter().filter(|row| row.place == PlaceRow::Disk);
        rows.map(|row| row.object.clone()).collect::<Vec<_>>()
    };
    let spilled = on_disk(&before);
    assert!(spilled.len() > 8, "{} are on disk alone", spilled.len());
    let mut read_count = 0;
    for (seed, value) in values.iter().enumerate() {
        if spilled.contains(&value.id().object.to_string()) {
            assert!(value.get_timeout(SOON).unwrap() == noise(MIB, seed as u64), "value {seed} differs");
            read_count += 1;
        }
    }
    assert_eq!(read_count, spilled.len());
    let after = field.inventory(1);
    assert!(after.store.used_bytes <= before.store.used_bytes, "{:?}, then {:?}", before.store, after.store);
    assert_eq!(on_disk(&after), spilled, "something was brought back");
    assert_eq!(runs(&path), values.len(), "something was made again");
}

/// Room for what is read from elsewhere is made by copies that were read before, not by what is here alone.
fn d13_only_copies_are_evicted() {
    let field = Field::new(&[NO_DISK, "a"]);
    let runtime = driver(&field.cluster, 0);
    let _entered = runtime.enter();
    let path = field.path("runs");
    // Results that nobody has mapped.
    let primaries: Vec<_> = (0..2)
        .map(|seed| make::options().node(field.node(0), false).remote(3 * MIB, seed, path.clone()))
        .collect();
    made_ready(&primaries);
    let theirs: Vec<_> = (10..16)
        .map(|seed| make::options().node(field.node(1), false).remote(2 * MIB, seed, path.clone()))
        .collect();
    for (value, seed) in theirs.iter().zip(10..) {
        assert!(value.get_timeout(SOON).unwrap() == noise(2 * MIB, seed));
    }
    let here = field.inventory(0);
    let copies = here.objects.iter().filter(|row| row.is_secondary).count();
    assert!(copies < theirs.len(), "all of them are still here: {:?}", here.store);
    for (value, seed) in primaries.iter().zip(0..) {
        assert_eq!(tharsis::locations(value).unwrap(), [field.node(0)]);
        assert!(value.get_timeout(SOON).unwrap() == noise(3 * MIB, seed));
    }
    assert_eq!(runs(&path), theirs.len() + primaries.len());
}
