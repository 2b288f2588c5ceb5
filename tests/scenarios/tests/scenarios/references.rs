//! B: counting references, and borrowing them.
//!
//! For a behaviour about an actor that keeps a reference, a task keeps it in a static of its worker:
//! with one CPU and no waiting tasks, one worker serves all calls.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};
use std::time::Duration;
use tharsis::prelude::*;
use tharsis::{NodeId, RefId};
use tharsis_scenarios::{Mode, Scenario, Session, await_file, open_gate, scenarios};

pub const ALL: &[Scenario] = scenarios![
    Both:
        a_result_holds_very_many_references,
        what_is_too_large_for_a_message_fails,
        b1_copies,
        b2_pending_dependency,
        b3_borrower_outlives_owners_handle,
        b4_borrower_chain,
        b5_captured_in_an_object,
        b6_reference_inside_an_object,
        b8_escape_by_manual_serialization,
        b10_flat_store_in_a_loop;
    Processes:
        b3_death_of_the_borrower_frees,
        b4_crash_of_the_last_borrower_frees,
        b9_owner_death;
];

/// References in one result: more than a message of 16 MiB holds.
const MANY: usize = 700_000;
/// More than any message holds.
const TOO_MANY: usize = 2_500_000;

/// Returns a reference many times.
#[remote]
fn repeat(reference: ObjectRef<i64>, count: usize) -> Vec<ObjectRef<i64>> {
    vec![reference; count]
}

/// An error with as much to say as it likes.
#[derive(Debug, Serialize, Deserialize, thiserror::Error)]
#[error("{0}")]
struct Verbose(String);

#[remote]
fn fail_at_length(len: usize) -> Result<(), Verbose> {
    Err(Verbose("x".repeat(len)))
}

/// Whatever does not fit into a message is a failure, and never a `get` without end.
fn what_is_too_large_for_a_message_fails(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let one = put(&7_i64).unwrap();
    let error = repeat::remote(&one, TOO_MANY).get_timeout(50.0).unwrap_err();
    assert_eq!(error.kind(), FailureKind::InvalidArgument, "{error}");
    assert!(error.to_string().contains("the limit"), "{error}");
    let error = fail_at_length::remote(80 << 20).get_timeout(50.0).unwrap_err();
    assert_eq!(error.kind(), FailureKind::UserError);
    assert!(error.to_string().contains("the limit"), "what was left out is said");
    drop(one);
    session.await_quiet();
}

/// A result may have very many references.
fn a_result_holds_very_many_references(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let one = put(&7_i64).unwrap();
    let many = repeat::remote(&one, MANY).get_timeout(50.0).unwrap();
    assert_eq!((many.len(), many[MANY - 1].get().unwrap()), (MANY, 7));
    drop((one, many));
    session.await_quiet();
}

const MIB: usize = 1 << 20;

fn blob(len: usize, seed: u8) -> Blob {
    Blob::from((0..len).map(|i| (i as u8).wrapping_mul(31).wrapping_add(seed)).collect::<Vec<_>>())
}

/// FNV-1a over every 64th byte and the length.
fn digest(blob: &Blob) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    blob.iter().step_by(64).fold(0xcbf2_9ce4_8422_2325 ^ blob.len() as u64, step)
}

#[remote]
fn digest_of(blob: Blob) -> u64 {
    digest(&blob)
}

/// The value lives until the last of many clones is dropped.
fn b1_copies(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let reference = put(&blob(100_000, 1)).unwrap();
    let mut clones: Vec<_> = (0..20).map(|_| reference.clone()).collect();
    drop(reference);
    while let Some(last) = clones.pop() {
        assert_eq!(session.store().object_count, 1);
        drop(last);
    }
    session.await_quiet();
}

#[remote]
fn gate(path: String) -> bool {
    await_file(&path);
    true
}

#[remote]
fn digest_after(_gate: bool, blob: Blob) -> u64 {
    digest(&blob)
}

#[remote]
fn panic_after(_gate: bool, blob: Blob) -> u64 {
    panic!("{} bytes", blob.len())
}

#[remote]
fn length_after(_gate: bool, text: String) -> usize {
    text.len()
}

/// An argument whose caller dropped it waits in a full store with its task, and goes with it.
fn b2_pending_dependency(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let path = session.path("gate");
    let signal = gate::remote(path.clone());
    let (good, bad) = (blob(8 * MIB, 2), blob(8 * MIB, 3));
    let wanted = digest(&good);
    let ends_well = digest_after::remote(&signal, put(&good).unwrap());
    let ends_badly = panic_after::remote(&signal, put(&bad).unwrap());
    session.await_objects(2);
    // An inline argument takes no room in the store at any time.
    let short = length_after::remote(&signal, put(&"x".repeat(100)).unwrap());
    let filler = fill(&session);
    assert_eq!(session.store().object_count, 2 + filler.len());
    open_gate(&path);
    assert_eq!((ends_well.get().unwrap(), short.get().unwrap()), (wanted, 100));
    assert_eq!(ends_badly.get().unwrap_err().kind(), FailureKind::Panicked);
    session.await_objects(filler.len());
    drop((filler, signal, ends_well, ends_badly, short));
    session.await_quiet();
}

/// Puts objects until there is room for no more.
fn fill(session: &Session) -> Vec<ObjectRef<Blob>> {
    let mut filler = Vec::new();
    loop {
        let store = session.store();
        let free = (store.capacity_bytes - store.used_bytes) as usize;
        if free < 2 * MIB {
            return filler;
        }
        filler.push(put(&blob((free / 2).max(MIB), 0)).unwrap());
    }
}

/// References that tasks keep in this process, by node: embedded sessions share it.
static KEPT: LazyLock<Mutex<HashMap<NodeId, Vec<ObjectRef<Blob>>>>> = LazyLock::new(Mutex::default);

#[remote]
fn keep(references: Vec<ObjectRef<Blob>>) -> u32 {
    let node = context().unwrap().node();
    KEPT.lock().unwrap().entry(node).or_default().extend(references);
    std::process::id()
}

#[remote]
fn digest_kept() -> Result<u64, Error> {
    let node = context().unwrap().node();
    let first = KEPT.lock().unwrap().get(&node).and_then(|kept| kept.first().cloned());
    Ok(digest(&first.expect("something is kept").get()?))
}

/// Drops one of what is kept; says how many are left.
#[remote]
fn drop_one() -> usize {
    let node = context().unwrap().node();
    let mut kept = KEPT.lock().unwrap();
    let ours = kept.entry(node).or_default();
    let last = ours.pop();
    let left = ours.len();
    drop(kept);
    drop(last);
    left
}

#[remote(max_retries = 0)]
fn abort() {
    std::process::abort()
}

/// A task keeps two copies of a reference beyond its end: the value lives as long as one of them.
fn b3_borrower_outlives_owners_handle(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let value = blob(300_000, 4);
    let reference = put(&value).unwrap();
    keep::remote(vec![reference.clone(), reference.clone()]).get().unwrap();
    drop(reference);
    assert_eq!(digest_kept::remote().get().unwrap(), digest(&value));
    assert_eq!(drop_one::remote().get().unwrap(), 1);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(session.store().object_count, 1);
    assert_eq!(digest_kept::remote().get().unwrap(), digest(&value));
    assert_eq!(drop_one::remote().get().unwrap(), 0);
    session.await_quiet();
}

/// As above, but the worker that keeps the copies is killed.
fn b3_death_of_the_borrower_frees(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let reference = put(&blob(300_000, 5)).unwrap();
    let keeper = keep::remote(vec![reference.clone(), reference.clone()]).get().unwrap();
    drop(reference);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(session.store().object_count, 1);
    let error = abort::remote().get().unwrap_err();
    assert_eq!(error.failure().origin.as_ref().unwrap().pid, Some(keeper), "the keeper was killed");
    session.await_quiet();
}

#[remote]
fn relay(left: u32, mut borrowed: Vec<ObjectRef<Blob>>, gate: String) -> Result<u64, Error> {
    if left == 0 {
        await_file(&gate);
        return Ok(digest(&borrowed[0].get()?));
    }
    let next = relay::remote(left - 1, borrowed.clone(), gate);
    borrowed.clear();
    next.get()
}

/// Through five tasks, each of which drops its own copy: the last one reads.
fn b4_borrower_chain(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let gate = session.path("gate");
    let value = blob(300_000, 6);
    let reference = put(&value).unwrap();
    let read = relay::remote(4, vec![reference.clone()], gate.clone());
    drop(reference);
    session.await_report("all five run", |r| r.task_count == 5 && r.running_count == 5);
    assert_eq!(session.store().object_count, 1);
    open_gate(&gate);
    assert_eq!(read.get().unwrap(), digest(&value));
    session.await_objects(0);
    drop(read);
    session.await_quiet();
}

#[remote(max_retries = 0)]
fn relay_to_crash(left: u32, borrowed: Vec<ObjectRef<Blob>>) -> Result<u64, Error> {
    if left == 0 {
        std::process::abort();
    }
    relay_to_crash::remote(left - 1, borrowed).get()
}

/// As above, but the last one crashes.
fn b4_crash_of_the_last_borrower_frees(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let read = relay_to_crash::remote(4, vec![put(&blob(300_000, 7)).unwrap()]);
    let error = read.get().unwrap_err();
    assert_eq!(error.failure().root().kind, FailureKind::WorkerCrashed, "{error}");
    drop((read, error));
    session.await_quiet();
}

/// Tools of a function beside its arguments.
#[derive(Serialize, Deserialize)]
struct Captured {
    table: ObjectRef<Blob>,
    offset: u64,
}

#[remote]
fn look_up(captured: Captured, by: u64) -> Result<u64, Error> {
    Ok(digest(&captured.table.get()?) + captured.offset + by)
}

/// Remote functions capture nothing; what stands for it is an object that holds the reference.
fn b5_captured_in_an_object(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let value = blob(300_000, 8);
    let table = put(&value).unwrap();
    let captured = put(&Captured { table: table.clone(), offset: 3 }).unwrap();
    drop(table);
    for by in 0..5 {
        assert_eq!(look_up::remote(&captured, by).get().unwrap(), digest(&value) + 3 + by);
    }
    drop(captured);
    session.await_quiet();
}

/// A reference taken out of an object twice outlives the object and its twin.
fn b6_reference_inside_an_object(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let value = blob(300_000, 9);
    let outer = put(&vec![put(&value).unwrap()]).unwrap();
    let first = outer.get().unwrap().remove(0);
    let second = outer.get().unwrap().remove(0);
    drop(outer);
    drop(first);
    session.await_objects(1);
    assert!(second.get().unwrap() == value);
    drop(second);
    session.await_quiet();
}

/// A reference that leaves as a bare id and comes back as a live one.
enum Smuggled {
    Id(RefId),
    Live(ObjectRef<Blob>),
}

impl Serialize for Smuggled {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Id(id) => id.serialize(serializer),
            Self::Live(reference) => reference.id().serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Smuggled {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        ObjectRef::deserialize(deserializer).map(Self::Live)
    }
}

#[remote]
fn digest_smuggled(smuggled: Smuggled) -> Result<u64, Error> {
    match smuggled {
        Smuggled::Live(reference) => Ok(digest(&reference.get_timeout(10.0)?)),
        Smuggled::Id(_) => Ok(0),
    }
}

/// References do not become bytes outside tasks, and an id that got out by a trick pins nothing.
fn b8_escape_by_manual_serialization(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let value = blob(300_000, 10);
    let reference = put(&value).unwrap();
    assert!(postcard::to_allocvec(&reference).is_err());
    let id = reference.id();
    let bytes = postcard::to_allocvec(&id).unwrap();
    assert!(postcard::from_bytes::<ObjectRef<Blob>>(&bytes).is_err());
    // An id works while the object lives, and says so once it does not.
    assert_eq!(digest_smuggled::remote(Smuggled::Id(id)).get().unwrap(), digest(&value));
    drop(reference);
    session.await_objects(0);
    let error = digest_smuggled::remote(Smuggled::Id(id)).get().unwrap_err();
    assert_eq!(error.failure().root().kind, FailureKind::ObjectFreed, "{error}");
    session.await_quiet();
}

#[remote(max_calls = 1)]
fn puts(seed: u8) -> Result<(u32, ObjectRef<Blob>, ObjectRef<u64>), Error> {
    Ok((std::process::id(), put(&blob(300_000, seed))?, put(&u64::from(seed))?))
}

/// Values that a worker put are there after its end, large and small.
fn b9_owner_death(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let made = puts::remote(11);
    let (pid, large, small) = made.get().unwrap();
    drop(made);
    tharsis_scenarios::await_within(Duration::from_secs(10), "the worker ends", || {
        !tharsis_scenarios::processes::runs(pid)
    });
    assert!(large.get().unwrap() == blob(300_000, 11));
    assert_eq!(small.get().unwrap(), 11);
    assert_eq!(digest_of::remote(&large).get().unwrap(), digest(&blob(300_000, 11)));
    drop((large, small));
    session.await_quiet();
}

/// A thousand rounds of put, task and get: the store stays as full as one round makes it.
fn b10_flat_store_in_a_loop(mode: Mode) {
    let object = 4 * MIB;
    let session = mode.start(1);
    let _entered = session.enter();
    let value = blob(object, 12);
    let wanted = digest(&value);
    let mut peak = 0;
    for round in 0..1_000 {
        let reference = put(&value).unwrap();
        let read = digest_of::remote(&reference);
        assert_eq!(read.get().unwrap(), wanted);
        if round % 20 == 0 {
            peak = peak.max(session.store().used_bytes);
            assert!(session.spill_files().is_empty(), "something was spilled");
        }
    }
    // One page more for each: an object begins with its head.
    assert!(peak <= 4 * (object as u64 + 4096), "{peak} bytes at the peak");
    session.await_quiet();
}
