//! Values in shared memory stay what they are, whoever writes, reads and lets go of others at the same time.

use crate::memory::{MIB, noise};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};
use std::time::Duration;
use tharsis::NodeId;
use tharsis::prelude::*;
use tharsis_scenarios::{
    Mode, Scenario, Session, await_file, await_within, mark, marks, open_gate, scenarios,
};

pub const ALL: &[Scenario] = scenarios![
    Both:
        blocked_tasks_give_room_back,
        kept_arguments_stay_where_they_are,
        threads_store_at_once,
        values_outlive_their_runtime,
        values_outlive_their_worker,
        what_runs_on_writes_to_memory_of_its_own;
    // Threads that a task starts belong to its process; embedded, that is the driver's.
    Processes:
        threads_of_a_task_store_at_once,
        values_outlive_their_connection;
];

/// References that tasks keep in this process, by node: embedded sessions share it.
static HOARD: LazyLock<Mutex<HashMap<NodeId, Vec<Blob>>>> = LazyLock::new(Mutex::default);

#[remote]
fn keep(blob: Blob) -> usize {
    let len = blob.len();
    let node = tharsis::context().unwrap().node();
    HOARD.lock().unwrap().entry(node).or_default().push(blob);
    len
}

#[remote]
fn kept_differ() -> usize {
    let node = tharsis::context().unwrap().node();
    let kept = HOARD.lock().unwrap().remove(&node).unwrap_or_default();
    assert_eq!(kept.len(), 1, "another worker has them");
    kept.iter().filter(|blob| blob.iter().any(|byte| *byte != 7)).count()
}

/// A task puts its argument into a static; whoever is short of memory then does not get its bytes.
fn kept_arguments_stay_where_they_are(mode: Mode) {
    let session = mode.start_with(1, |init| init.store_bytes(32 << 20));
    let _entered = session.enter();
    let blob = put(&Blob::from(vec![7; 6 * MIB])).unwrap();
    assert_eq!(keep::remote(&blob).get_timeout(10.0).unwrap(), 6 * MIB);
    drop(blob);
    let others: Vec<_> = (0..24).map(|seed| put(&noise(4 * MIB, seed)).unwrap()).collect();
    for (seed, other) in others.iter().enumerate() {
        assert!(other.get_timeout(20.0).unwrap() == noise(4 * MIB, seed as u64), "value {seed} differs");
    }
    assert_eq!(kept_differ::remote().get_timeout(10.0).unwrap(), 0);
    drop(others);
    session.await_quiet();
}

/// Values that one thread stores, and keeps at most.
const STORED: u64 = 150;
const KEPT: usize = 20;

/// Stores values of 4 to 200 KB, keeps some, reads them in another order; how many came back.
fn store_and_read(thread: u64) -> Result<u64, Error> {
    let mut state = thread * 7919 + 1;
    let mut kept = Vec::new();
    let mut right_count = 0;
    for _ in 0..STORED {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (len, byte) = (4_200 + (state >> 33) as usize % 200_000, ((state >> 20) as u8).max(1));
        kept.push((put(&Blob::from(vec![byte; len]))?, len, byte));
        if kept.len() > KEPT {
            let (reference, len, byte): (ObjectRef<Blob>, _, _) =
                kept.swap_remove((state >> 40) as usize % kept.len());
            let blob = reference.get_timeout(20.0)?;
            assert!(blob.len() == len && blob.iter().all(|b| *b == byte), "{len} bytes of {byte} differ");
            right_count += 1;
        }
    }
    Ok(right_count)
}

/// Eight threads of one client: who begins to write first is not done first.
fn threads_store_at_once(mode: Mode) {
    let session = mode.start(1);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|thread| {
                let session = &session;
                scope.spawn(move || {
                    let _entered = session.enter();
                    store_and_read(thread).unwrap()
                })
            })
            .collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), STORED - KEPT as u64);
        }
    });
    session.await_quiet();
}

#[remote]
fn store_in_threads() -> Result<Blob, Error> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || store_and_read(thread))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap().map(drop))
    })?;
    Ok(Blob::from(vec![9; MIB / 8]))
}

/// The same inside a task, whose result is stored beside what its threads have stored.
fn threads_of_a_task_store_at_once(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let results: Vec<_> = (0..2).map(|_| store_in_threads::remote()).collect();
    for result in &results {
        let blob = result.get_timeout(40.0).unwrap();
        assert!(blob.len() == MIB / 8 && blob.iter().all(|byte| *byte == 9));
    }
    drop(results);
    session.await_quiet();
}

#[remote]
fn sevens(len: usize) -> Blob {
    Blob::from(vec![7; len])
}

fn is_sevens(blob: &Blob, len: usize) -> bool {
    blob.len() == len && blob.iter().all(|byte| *byte == 7)
}

/// Values of a task and of this program, one of them too large for the memory of the store, and a reference
/// that was not read.
fn take_values() -> (Vec<Blob>, ObjectRef<Blob>) {
    let stored = put(&Blob::from(vec![7; 5 * MIB])).unwrap();
    let unread = put(&Blob::from(vec![7; MIB])).unwrap();
    let results = [5 * MIB, 40 * MIB].map(|len| sevens::remote(len).get_timeout(20.0).unwrap());
    let values = [stored.get().unwrap()].into_iter().chain(results).collect();
    (values, unread)
}

fn are_whole(values: &[Blob]) -> bool {
    let lens = [5 * MIB, 5 * MIB, 40 * MIB];
    values.len() == lens.len() && values.iter().zip(lens).all(|(blob, len)| is_sevens(blob, len))
}

/// Values are read after the runtime was dropped, while others use a store.
fn values_outlive_their_runtime(mode: Mode) {
    let small = |init: tharsis::Init| init.store_bytes(32 << 20);
    let (values, unread) = {
        let session = mode.start_with(1, small);
        let _entered = session.enter();
        take_values()
    };
    assert!(are_whole(&values));
    // Bytes that are still there, or a word of why not.
    match unread.get() {
        Ok(blob) => assert!(is_sevens(&blob, MIB)),
        Err(error) => assert_eq!(error.kind(), FailureKind::Shutdown),
    }
    let session = mode.start_with(1, small);
    let _entered = session.enter();
    let others: Vec<_> = (0..8).map(|seed| put(&noise(4 * MIB, seed)).unwrap()).collect();
    assert!(are_whole(&values));
    drop(others);
}

/// The node goes on and its memory goes to others, all but what this program still looks at.
fn values_outlive_their_connection(mode: Mode) {
    let session = mode.start_with(1, |init| init.store_bytes(32 << 20));
    let socket = session.runtime().socket().unwrap().to_owned();
    let (values, unread) = {
        let other = tharsis::init().address(socket.display().to_string()).start_local().unwrap();
        let _entered = other.enter();
        take_values()
    };
    let _entered = session.enter();
    for round in 0..3 {
        let others: Vec<_> = (0..8).map(|seed| put(&noise(4 * MIB, 8 * round + seed)).unwrap()).collect();
        assert!(are_whole(&values), "values changed in round {round}");
        drop(others);
    }
    assert_eq!(unread.get().unwrap_err().kind(), FailureKind::Shutdown);
    let used = |session: &Session| session.store().used_bytes + session.store().annex_used_bytes;
    assert!((50 * MIB..60 * MIB).contains(&(used(&session) as usize)), "{:?}", session.store());
    // Then they go, and with them their room.
    drop((values, unread));
    session.await_quiet();
}

#[remote(max_calls = 1)]
fn keep_and_end(blob: Blob) -> usize {
    let len = blob.len();
    let node = tharsis::context().unwrap().node();
    HOARD.lock().unwrap().entry(node).or_default().push(blob);
    len
}

/// A worker that is a thread ends, and what its task has kept is still there.
fn values_outlive_their_worker(mode: Mode) {
    let session = mode.start_with(1, |init| init.store_bytes(32 << 20));
    let _entered = session.enter();
    let blob = put(&Blob::from(vec![7; 6 * MIB])).unwrap();
    assert_eq!(keep_and_end::remote(&blob).get_timeout(10.0).unwrap(), 6 * MIB);
    drop(blob);
    let others: Vec<_> = (0..12).map(|seed| put(&noise(4 * MIB, seed)).unwrap()).collect();
    if mode == Mode::Embedded {
        let kept = HOARD.lock().unwrap().remove(&session.runtime().node()).unwrap();
        assert!(kept[0].iter().all(|byte| *byte == 7), "bytes changed when the worker ended");
    }
    drop(others);
    session.await_quiet();
}

/// Looks at its argument and stores a value when it should be dead already; says whether the argument
/// changed.
#[remote]
fn runs_on(started: String, go: String, ended: String, blob: Blob) -> Blob {
    mark(&started);
    await_file(&go);
    if blob.iter().all(|byte| *byte == 7) {
        mark(&ended);
    }
    Blob::from(vec![0xee; 100_000])
}

/// A task is out of time. Where its worker is a thread it runs on, and spoils nothing.
fn what_runs_on_writes_to_memory_of_its_own(mode: Mode) {
    let session = mode.start_with(1, |init| init.store_bytes(16 << 20));
    let _entered = session.enter();
    assert_eq!(sevens::remote(100_000).get_timeout(10.0).unwrap().len(), 100_000, "its worker has a region");
    let path = |name| session.path(name);
    let argument = put(&Blob::from(vec![7; 100_000])).unwrap();
    let late = runs_on::options().timeout(Duration::from_millis(200)).remote(
        path("started"),
        path("go"),
        path("ended"),
        &argument,
    );
    assert_eq!(late.get_timeout(10.0).unwrap_err().kind(), FailureKind::TimedOut);
    drop((argument, late));
    let values: Vec<_> = (0..120).map(|n| put(&Blob::from(vec![n as u8; 100_000])).unwrap()).collect();
    if mode == Mode::Embedded {
        let free = session.report().nodes[0].free.clone();
        assert!(!free.contains("CPU"), "its CPU is taken: {free}");
    }
    open_gate(&path("go"));
    assert_eq!(sevens::remote(100_000).get_timeout(10.0).unwrap().len(), 100_000, "the CPU is back");
    assert!(mode == Mode::Processes || marks(&path("ended")) == 1, "its argument changed");
    for (n, value) in values.iter().enumerate() {
        assert!(value.get_timeout(10.0).unwrap().iter().all(|byte| *byte == n as u8), "value {n} changed");
    }
    drop(values);
    session.await_quiet();
}

/// A reference inside a value: the task that gets it starts before the value is there.
#[derive(Serialize, Deserialize)]
struct Held {
    go: ObjectRef<bool>,
}

#[remote]
fn waits_between(held: Held, seed: u64) -> Result<Blob, Error> {
    let stored = put(&noise(10_000, seed))?;
    held.go.get()?;
    assert!(stored.get()? == noise(10_000, seed), "value {seed} changed");
    Ok(noise(20_000, seed))
}

#[remote]
fn opened(path: String) -> bool {
    await_file(&path);
    true
}

/// More tasks wait, each with a value of its own, than a region for each fits into the store.
fn blocked_tasks_give_room_back(mode: Mode) {
    const TASKS: u64 = 80;
    let session = mode.start_with(2, |init| init.store_bytes(64 << 20));
    let _entered = session.enter();
    let path = session.path("go");
    let go = opened::options().num_cpus(0.0).remote(path.clone());
    let all: Vec<_> = (0..TASKS).map(|seed| waits_between::remote(Held { go: go.clone() }, seed)).collect();
    await_within(Duration::from_secs(40), "each has stored its value", || {
        // Those, what the tasks will return, and what all wait for.
        session.report().object_count == 2 * TASKS as usize + 1
    });
    open_gate(&path);
    for (seed, value) in all.iter().enumerate() {
        assert!(value.get_timeout(40.0).unwrap() == noise(20_000, seed as u64), "value {seed} differs");
    }
    drop((all, go));
    session.await_quiet();
}
