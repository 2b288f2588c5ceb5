//! F2: actors that continue from their last checkpoint when they are started again, one node.

use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};
use tharsis::prelude::*;
use tharsis::{Checkpoint, actor, checkpoint};
use tharsis_scenarios::restarts::{self, SnapshotRow};
use tharsis_scenarios::{Mode, Scenario, await_within, mark, marks, processes, scenarios};

pub const ALL: &[Scenario] = scenarios![
    Both:
        f2_a_checkpoint_is_one_of_an_actor_in_its_methods,
        f2_snapshots_that_are_replaced_are_freed;
    Processes:
        f2_the_table_of_checkpoints,
        f2_every_nth_change_is_a_checkpoint,
        f2_snapshots_of_methods_that_run_at_the_same_time_keep_their_order,
        f2_a_large_snapshot_keeps_what_is_inside,
        f2_a_snapshot_that_cannot_be_restored_ends_the_actor;
];

/// Long enough for what happens at once.
const AT_ONCE: f64 = 20.0;

/// An actor that counts, and takes a checkpoint whenever its value is a multiple of `every`.
struct Counter {
    value: i64,
    every: i64,
}

#[actor(max_restarts = -1)]
impl Counter {
    fn new(every: i64) -> Self {
        Self { value: 0, every }
    }

    fn add(&mut self, exits: Option<(String, Exit)>) -> Result<i64, Error> {
        let exits = exits.filter(|(path, _)| marks(path) == 0);
        self.value += 1;
        if let Some((path, Exit::BeforeCheckpoint)) = &exits {
            exit(path);
        }
        if 0 < self.every && self.value % self.every == 0 {
            checkpoint(self)?;
        }
        if let Some((path, Exit::AfterCheckpoint)) = &exits {
            exit(path);
        }
        Ok(self.value)
    }

    fn value(&self) -> i64 {
        self.value
    }

    fn pid(&self) -> u32 {
        std::process::id()
    }
}

impl Checkpoint for Counter {
    type Snapshot = i64;

    fn snapshot(&self) -> i64 {
        self.value
    }

    fn restore(&mut self, snapshot: i64) {
        self.value = snapshot;
    }
}

/// The place at which a call ends its process, the first time.
#[derive(Clone, Copy, Serialize, Deserialize)]
enum Exit {
    BeforeCheckpoint,
    AfterCheckpoint,
}

fn exit(path: &str) {
    mark(path);
    std::process::exit(0);
}

/// An actor that runs several calls at the same time, and takes a checkpoint after every second change.
struct Tally(AtomicI64);

#[actor(max_restarts = 1, max_concurrency = 2, checkpoint_every = 2)]
impl Tally {
    fn new() -> Self {
        Self(AtomicI64::new(0))
    }

    fn add(&mut self) -> i64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn pid(&self) -> u32 {
        std::process::id()
    }
}

impl Checkpoint for Tally {
    type Snapshot = i64;

    fn snapshot(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }

    fn restore(&mut self, snapshot: i64) {
        self.0 = AtomicI64::new(snapshot);
    }
}

/// An actor of which two methods take a checkpoint at the same time. The snapshot of the first takes long.
#[derive(Default)]
struct Pair {
    value: AtomicI64,
    /// Whether the first snapshot has read the value, and whether the second one is kept.
    is_read: AtomicBool,
    is_kept: AtomicBool,
}

#[actor(max_restarts = 1, max_concurrency = 2)]
impl Pair {
    fn new() -> Self {
        Self::default()
    }

    fn first(&self) -> Result<(), Error> {
        self.value.store(1, Ordering::SeqCst);
        checkpoint(self)
    }

    fn second(&self) -> Result<(), Error> {
        await_within(Duration::from_secs(20), "a snapshot", || self.is_read.load(Ordering::SeqCst));
        self.value.store(2, Ordering::SeqCst);
        checkpoint(self)?;
        self.is_kept.store(true, Ordering::SeqCst);
        Ok(())
    }

    fn value(&self) -> i64 {
        self.value.load(Ordering::SeqCst)
    }

    fn pid(&self) -> u32 {
        std::process::id()
    }
}

impl Checkpoint for Pair {
    type Snapshot = i64;

    fn snapshot(&self) -> i64 {
        let value = self.value.load(Ordering::SeqCst);
        if value == 1 {
            self.is_read.store(true, Ordering::SeqCst);
            // The second one would be kept by now if it did not wait for this one.
            let until = Instant::now() + Duration::from_secs(1);
            while !self.is_kept.load(Ordering::SeqCst) && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        value
    }

    fn restore(&mut self, snapshot: i64) {
        self.value = AtomicI64::new(snapshot);
    }
}

/// An actor whose state is large, and has references.
struct Shelf {
    bytes: Blob,
    first: Option<ObjectRef<String>>,
}

#[actor(max_restarts = 1)]
impl Shelf {
    fn new() -> Self {
        Self { bytes: Blob::from(Vec::new()), first: None }
    }

    fn fill(&mut self, byte: u8, len: usize, first: Vec<ObjectRef<String>>) -> Result<usize, Error> {
        self.bytes = Blob::from(vec![byte; len]);
        self.first = first.into_iter().next();
        checkpoint(self)?;
        Ok(self.bytes.len())
    }

    fn read(&self) -> Result<(usize, u8, String), Error> {
        let first = self.first.as_ref().map(ObjectRef::get).transpose()?.unwrap_or_default();
        Ok((self.bytes.len(), self.bytes.last().copied().unwrap_or(0), first))
    }

    fn pid(&self) -> u32 {
        std::process::id()
    }
}

impl Checkpoint for Shelf {
    type Snapshot = (Blob, Option<ObjectRef<String>>);

    fn snapshot(&self) -> Self::Snapshot {
        (self.bytes.clone(), self.first.clone())
    }

    fn restore(&mut self, (bytes, first): Self::Snapshot) {
        assert!(bytes.first() != Some(&13), "thirteen is not restored");
        (self.bytes, self.first) = (bytes, first);
    }
}

#[remote]
fn checkpoint_here() -> String {
    checkpoint(&Counter { value: 1, every: 1 }).unwrap_err().to_string()
}

/// Kills the process of an actor, and makes a call until one does not reach it any more.
fn kill<T: serde::de::DeserializeOwned>(
    pid: &ObjectRef<u32>,
    call: impl Fn() -> ObjectRef<T>,
) -> Result<T, Error> {
    let pid = pid.get_timeout(AT_ONCE).unwrap();
    processes::signal(pid, Signal::KILL);
    await_within(Duration::from_secs(10), "the process ends", || !processes::runs(pid));
    loop {
        match call().get_timeout(AT_ONCE) {
            Err(error) if error.kind() == FailureKind::ActorUnavailable => {}
            outcome => return outcome,
        }
    }
}

fn f2_a_checkpoint_is_one_of_an_actor_in_its_methods(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let error = checkpoint(&Counter { value: 1, every: 1 }).unwrap_err();
    assert_eq!(error.kind(), FailureKind::InvalidArgument, "{error}");
    let text = checkpoint_here::remote().get_timeout(AT_ONCE).unwrap();
    assert!(text.contains("no method of an actor"), "{text}");
    let counter = Counter::remote(1);
    assert_eq!(counter.add(None).get_timeout(AT_ONCE).unwrap(), 1);
    drop(counter);
    session.await_quiet();
}

fn f2_snapshots_that_are_replaced_are_freed(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let shelf = Shelf::remote();
    // Together many times the store.
    for byte in 0..40 {
        assert_eq!(shelf.fill(byte, 8 << 20, Vec::new()).get_timeout(AT_ONCE).unwrap(), 8 << 20);
    }
    let first = vec![put(&"inside".to_owned()).unwrap()];
    shelf.fill(1, 10, first).get_timeout(AT_ONCE).unwrap();
    assert_eq!(shelf.read().get_timeout(AT_ONCE).unwrap(), (10, 1, "inside".to_owned()));
    drop(shelf);
    session.await_quiet();
}

fn f2_the_table_of_checkpoints(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let rows = restarts::snapshot_rows();
    assert!(5 < rows.len(), "the table has {} rows", rows.len());
    for (number, row) in rows.iter().enumerate() {
        for is_shared in [false, true] {
            let path = session.path(&format!("exited{number}{is_shared}"));
            assert_eq!(lose(row, is_shared, path), row.value, "{row:?}, shared process: {is_shared}");
        }
    }
    session.await_quiet();
}

/// Loses an actor as a row says, after five calls; returns the value with which it goes on.
fn lose(row: &SnapshotRow, is_shared: bool, path: String) -> i64 {
    let options = Counter::options().max_task_retries(row.max_task_retries).shared_process(is_shared);
    let counter = options.remote(row.every);
    let calls: Vec<_> = (0..5).map(|_| counter.add(None)).collect();
    assert_eq!(get_all(&calls, Some(AT_ONCE.into())).unwrap(), [1, 2, 3, 4, 5]);
    let exit = match row.event.as_str() {
        "the process is killed" => {
            return kill(&counter.pid(), || counter.value()).unwrap();
        }
        "the process exits in a call, before its checkpoint" => Exit::BeforeCheckpoint,
        "the process exits in a call, after its checkpoint" => Exit::AfterCheckpoint,
        other => panic!("the table has a row of an unknown event: {other}"),
    };
    let call = counter.add(Some((path, exit))).get_timeout(AT_ONCE);
    let expected = if row.max_task_retries == 0 { "unavailable, unknown" } else { "value" };
    assert_eq!(restarts::outcome(&call), expected);
    counter.value().get_timeout(AT_ONCE).unwrap()
}

fn f2_every_nth_change_is_a_checkpoint(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let tally = Tally::remote();
    let calls: Vec<_> = (0..5).map(|_| tally.add()).collect();
    assert_eq!(get_all(&calls, Some(AT_ONCE.into())).unwrap().len(), 5);
    let after = kill(&tally.pid(), || tally.add());
    assert_eq!(after.unwrap(), 5, "the fourth call took the last checkpoint");
    drop((tally, calls));
    session.await_quiet();
}

/// Whoever has seen the second one return knows that it counts.
fn f2_snapshots_of_methods_that_run_at_the_same_time_keep_their_order(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let pair = Pair::remote();
    let calls = [pair.first(), pair.second()];
    get_all(&calls, Some(AT_ONCE.into())).unwrap();
    assert_eq!(kill(&pair.pid(), || pair.value()).unwrap(), 2, "the later state");
    drop((pair, calls));
    session.await_quiet();
}

fn f2_a_large_snapshot_keeps_what_is_inside(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let shelf = Shelf::remote();
    let first = vec![put(&"inside".to_owned()).unwrap()];
    shelf.fill(7, 4 << 20, first).get_timeout(AT_ONCE).unwrap();
    assert_eq!(kill(&shelf.pid(), || shelf.read()).unwrap(), (4 << 20, 7, "inside".to_owned()));
    drop(shelf);
    session.await_quiet();
}

fn f2_a_snapshot_that_cannot_be_restored_ends_the_actor(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let shelf = Shelf::remote();
    shelf.fill(13, 100, Vec::new()).get_timeout(AT_ONCE).unwrap();
    let error = kill(&shelf.pid(), || shelf.read()).unwrap_err();
    assert_eq!(error.kind(), FailureKind::ActorDied, "{error}");
    assert!(error.failure().root().message.contains("thirteen is not restored"), "{error}");
    drop(shelf);
    session.await_quiet();
}
