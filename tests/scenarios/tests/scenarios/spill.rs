//! D: files with spilled values, slow ones, and clients that wait for room.

use crate::memory::{MIB, make_noise, noise};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};
use tharsis::SpillChoice;
use tharsis::prelude::*;
use tharsis_protos::inventory::{ClientKind, Inventory, PlaceRow};
use tharsis_protos::report::StoreRow;
use tharsis_scenarios::mounted::Mounted;
use tharsis_scenarios::{
    Mode, SOON, Scenario, Session, await_file, await_within, files_below, mark, marks, open_gate, processes,
    scenarios, scratch, spill_to,
};

pub const ALL: &[Scenario] = scenarios![
    Both:
        b2_an_argument_outlives_full_stores,
        d2_a_file_goes_with_its_last_value,
        d2_dropped_while_written,
        d2_a_file_is_deleted,
        d4_full_disk,
        d5_slow_disk,
        c11_only_what_is_pure_and_quick_runs_again_for_room,
        d6_larger_than_the_store,
        d6_larger_than_the_store_and_no_room,
        d6_larger_than_the_store_and_no_disk,
        d6_larger_than_the_store_and_no_quota,
        d12_first_come_first_served,
        nothing_is_left_when_all_is_dropped;
    Processes:
        d12_a_queued_client_dies,
        every_byte_is_explained_while_values_are_spilled,
        workers_know_the_spill_directories;
];

/// Longest time for which a file may outlive the last value in it.
const FILE_WAIT: Duration = Duration::from_secs(2);
/// Longest time until a node is empty after the last reference was dropped.
const EMPTY_WAIT: Duration = Duration::from_secs(5);

/// A session whose disk is slow.
fn start_slow(mode: Mode, store_bytes: usize, bytes_per_s: u64) -> Session {
    mode.start_spilling(2, |init, spill| {
        let spill = SpillChoice { bytes_per_s_max: Some(bytes_per_s), ..spill };
        init.store_bytes(store_bytes as u64).spill(spill)
    })
}

#[remote]
fn is_noise_after(gate: String, value: Blob, _signal: u8, seed: u64) -> bool {
    await_file(&gate);
    value == noise(4 * MIB, seed)
}

#[remote]
fn signal(path: String) -> u8 {
    await_file(&path);
    0
}

#[remote]
fn scratch_variable() -> String {
    std::env::var(tharsis::process::WORKER_SCRATCH_VARIABLE).unwrap()
}

/// Libraries of a worker put their temporary files where the node spills.
fn workers_know_the_spill_directories(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    assert_eq!(scratch_variable::remote().get_timeout(20.0).unwrap(), session.path("spill"));
}

/// An argument of a waiting task stays, although only the task refers to it and the store is filled over and
/// over.
fn b2_an_argument_outlives_full_stores(mode: Mode) {
    let session = mode.start_with(2, |init| init.store_bytes(16 << 20));
    let _entered = session.enter();
    let gate = session.path("gate");
    let waits = signal::remote(gate.clone());
    let read = is_noise_after::remote(gate.clone(), put(&noise(4 * MIB, 7)).unwrap(), &waits, 7);
    for round in 0..4 {
        let fillers: Vec<_> = (0..20).map(|seed| put(&noise(MIB, 100 * round + seed)).unwrap()).collect();
        drop(fillers);
    }
    open_gate(&gate);
    assert!(read.get_timeout(20.0).unwrap());
    drop(waits);
    session.await_report("the argument is gone", |r| r.store.object_count + r.store.spilled_count == 0);
    drop(read);
    session.await_quiet();
}

/// The file stays for one value of many, and goes with the last.
fn d2_a_file_goes_with_its_last_value(mode: Mode) {
    let session = mode.start_with(1, |init| init.store_bytes(16 << 20));
    let _entered = session.enter();
    let mut values: Vec<_> = (0..32).map(|seed| put(&noise(MIB, seed)).unwrap()).collect();
    let spilled = session.await_report("values are spilled", |r| r.store.spilled_count > 12).store;
    let files = session.spill_files().len();
    assert!(0 < files && files < spilled.spilled_count, "{files} files: values share them");
    // The oldest is on disk for certain.
    let kept = values.swap_remove(0);
    drop(values);
    session.await_report("the others are gone", |r| r.store.spilled_count == 1 && r.object_count == 1);
    await_within(FILE_WAIT, "one file is left", || session.spill_files().len() == 1);
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(session.spill_files().len(), 1, "the file of a living value is gone");
    assert!(kept.get_timeout(10.0).unwrap() == noise(MIB, 0));
    drop(kept);
    await_within(FILE_WAIT, "the file is gone", || session.spill_files().is_empty());
    session.await_quiet();
}

/// A value that is dropped while it is written leaves neither a file nor memory.
fn d2_dropped_while_written(mode: Mode) {
    let session = start_slow(mode, 16 << 20, 4 << 20);
    let _entered = session.enter();
    // A value that was put can only be written; a result might be dropped instead.
    let values: Vec<_> = (0..14).map(|seed| put(&noise(MIB, seed)).unwrap()).collect();
    session.await_report("a write is under way", |_| !session.spill_files().is_empty());
    let before = session.store();
    drop(values);
    await_within(EMPTY_WAIT, "no file is left", || session.spill_files().is_empty());
    session.await_quiet();
    assert!(before.spilled_count < 3, "the write had not ended: {before:?}");
    await_within(EMPTY_WAIT, "no byte is left", || free_of_objects(&session));
}

/// Nothing but what clients were granted is in use: at most one region each.
fn free_of_objects(session: &Session) -> bool {
    session.store().object_count == 0 && session.store().used_bytes <= 2 << 20
}

/// Bytes that the disk of [`d4_full_disk`] has.
const DISK_BYTES: u64 = 48 << 20;
/// Time for which a client waits for room, and a little more.
const GRACE: Duration = Duration::from_secs(14);

/// With memory and disk full, what is new is refused with the reason, everything else can be read, and once
/// there is space all goes on.
fn d4_full_disk(mode: Mode) {
    let place = scratch().join(format!("disk {}", mode.name()));
    let Some(disk) = Mounted::tmpfs(&place, DISK_BYTES) else {
        let _removed = std::fs::remove_dir(&place);
        return;
    };
    let session = mode.start_with(1, |init| init.store_bytes(16 << 20).spill(spill_to(disk.path())));
    let entered = session.enter();
    let mut values = Vec::new();
    let error = loop {
        assert!(values.len() < 96, "96 MiB fit into 16 and 48");
        let asked = Instant::now();
        let value = put(&noise(MIB, values.len() as u64));
        assert!(asked.elapsed() < GRACE, "it took {:?}", asked.elapsed());
        match value {
            Ok(value) => values.push(value),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), FailureKind::OutOfDisk, "{error}");
    assert!(values.len() > 20, "only {} values fit", values.len());
    for (seed, value) in values.iter().enumerate().rev() {
        assert!(value.get_timeout(5.0).unwrap() == noise(MIB, seed as u64), "value {seed} differs");
    }
    assert_eq!(add_one::remote(1).get_timeout(5.0).unwrap(), 2);
    values.truncate(4);
    await_within(SOON, "a put goes through again", || put(&noise(MIB, 1000)).is_ok());
    values.extend((4..24).map(|seed| put(&noise(MIB, seed)).unwrap()));
    for (seed, value) in values.iter().enumerate() {
        assert!(value.get_timeout(20.0).unwrap() == noise(MIB, seed as u64), "value {seed} differs");
    }
    drop(values);
    session.await_quiet();
    await_within(EMPTY_WAIT, "no file is left", || files_below(disk.path()).is_empty());
    drop(entered);
    drop(session);
    drop(disk);
    std::fs::remove_dir(place).unwrap();
}

/// Somebody deletes the files: what is in them can be read, and what comes later goes into new ones.
fn d2_a_file_is_deleted(mode: Mode) {
    let session = mode.start_with(1, |init| init.store_bytes(16 << 20));
    let _entered = session.enter();
    let mut values: Vec<_> = (0..24).map(|seed| put(&noise(MIB, seed)).unwrap()).collect();
    let before = session.await_report("some are on disk", |r| 8 <= r.store.spilled_count).store;
    let deleted = session.spill_files();
    deleted.iter().for_each(|file| std::fs::remove_file(file).unwrap());
    values.extend((24..48).map(|seed| put(&noise(MIB, seed)).unwrap()));
    let more = before.spilled_count + 16;
    session.await_report("more are on disk", |r| more <= r.store.spilled_count);
    assert!(!deleted.is_empty() && !session.spill_files().is_empty());
    for (seed, value) in values.iter().enumerate() {
        assert!(value.get_timeout(20.0).unwrap() == noise(MIB, seed as u64), "value {seed} differs");
    }
    drop(values);
    session.await_quiet();
}

/// A disk that is much too slow costs time, no value, and nobody else anything.
fn d5_slow_disk(mode: Mode) {
    let session = start_slow(mode, 16 << 20, 6 << 20);
    let _entered = session.enter();
    let writer = put_many::remote(24);
    let (mut longest, mut during) = (Duration::ZERO, 0);
    while !writer.is_ready() {
        let asked = Instant::now();
        assert_eq!(add_one::remote(1).get_timeout(10.0).unwrap(), 2);
        longest = longest.max(asked.elapsed());
        during += 1;
    }
    assert!(during > 10, "{during} calls while values were put");
    assert!(longest < Duration::from_secs(1), "a call took {longest:?}");
    let values = writer.get_timeout(20.0).unwrap();
    for (seed, value) in values.iter().enumerate() {
        assert!(value.get_timeout(20.0).unwrap() == noise(MIB, seed as u64), "value {seed} differs");
    }
    drop((writer, values));
    session.await_quiet();
}

#[remote]
fn made(ms: u64, runs: String) -> Blob {
    mark(&runs);
    std::thread::sleep(Duration::from_millis(ms));
    noise(8 * MIB, 7)
}

#[remote(pure = true)]
fn made_purely(ms: u64, runs: String) -> Blob {
    mark(&runs);
    std::thread::sleep(Duration::from_millis(ms));
    noise(8 * MIB, 7)
}

/// Number of runs of a call whose value is pushed out of memory, onto a disk that takes a second for it and
/// another to read it back.
fn runs_when_pushed_out(mode: Mode, call: impl FnOnce(String) -> ObjectRef<Blob>) -> usize {
    let session = start_slow(mode, 16 << 20, 8 << 20);
    let _entered = session.enter();
    // The first value that goes to disk says how slow it is.
    drop((0..28).map(|seed| put(&noise(MIB, seed)).unwrap()).collect::<Vec<_>>());
    let runs = session.path("runs");
    let value = call(runs.clone());
    let is_made = Wait { timeout: Some(20.0.into()), fetch: false, ..Wait::default() };
    assert_eq!(wait(std::slice::from_ref(&value), is_made).unwrap().0.len(), 1);
    let second = put(&noise(12 * MIB, 8)).unwrap();
    session.await_report("the second value pushed the first out", |r| r.store.object_count == 1);
    drop(second);
    assert!(value.get_timeout(20.0).unwrap() == noise(8 * MIB, 7));
    drop(value);
    session.await_quiet();
    marks(&runs)
}

/// A function that has run does not run again for want of memory, however slow the disk is, unless it is
/// declared pure; and what took a second is not done again then either.
fn c11_only_what_is_pure_and_quick_runs_again_for_room(mode: Mode) {
    assert_eq!(runs_when_pushed_out(mode, |runs| made::remote(200, runs)), 1, "quick");
    assert_eq!(runs_when_pushed_out(mode, |runs| made::remote(3_000, runs)), 1, "slow");
    assert_eq!(runs_when_pushed_out(mode, |runs| made_purely::remote(200, runs)), 2, "quick and pure");
    assert_eq!(runs_when_pushed_out(mode, |runs| made_purely::remote(1_200, runs)), 1, "slow and pure");
}

#[remote]
fn put_many(count: u64) -> Vec<ObjectRef<Blob>> {
    (0..count).map(|seed| put(&noise(MIB, seed)).unwrap()).collect()
}

#[remote]
fn add_one(n: u64) -> u64 {
    n + 1
}

#[remote]
fn is_noise_until(mapped: String, gate: String, value: Blob, seed: u64) -> bool {
    mark(&mapped);
    await_file(&gate);
    value == noise(value.len(), seed)
}

/// Bytes on disk of files without a name that the session's node has open in its spill folder.
fn nameless_bytes(session: &Session) -> u64 {
    let folder = session.path("spill");
    let files = std::fs::read_dir(format!("/proc/{}/fd", session.report().pid)).unwrap().flatten();
    let ours = files.filter(|file| {
        let name = std::fs::read_link(file.path()).unwrap_or_default().display().to_string();
        name.starts_with(&folder) && name.ends_with("(deleted)")
    });
    // One file, open twice where the node sends it to others.
    ours.filter_map(|file| std::fs::metadata(file.path()).ok()).map(|m| m.blocks() * 512).max().unwrap_or(0)
}

/// A value larger than the store lies in a file on disk, once, however many read it; its blocks go with it.
fn d6_larger_than_the_store(mode: Mode) {
    let store = 16 * MIB;
    let session = mode.start_with(2, |init| init.store_bytes(store as u64));
    let _entered = session.enter();
    let len = store / 5 * 6;
    let here = put(&noise(len, 1)).unwrap();
    let there = make_noise::remote(len, 2);
    assert!(there.get_timeout(20.0).unwrap() == noise(len, 2));
    drop(there);
    let one = (len as u64..(len + 8192) as u64, 0..store as u64 / 2);
    let has_one =
        |store: &StoreRow| one.0.contains(&store.annex_used_bytes) && one.1.contains(&store.used_bytes);
    session.await_report("one of them is left", |r| has_one(&r.store));
    assert!(one.0.contains(&nameless_bytes(&session)), "{}", nameless_bytes(&session));
    let (mapped, gate) = (session.path("mapped"), session.path("gate"));
    let readers = [(); 2].map(|()| is_noise_until::remote(mapped.clone(), gate.clone(), &here, 1));
    let view = here.get_timeout(20.0).unwrap();
    await_within(SOON, "both tasks have it", || marks(&mapped) == 2);
    let now = session.store();
    assert!(has_one(&now) && now.spilled_count == 0, "a second copy: {now:?}");
    if mode == Mode::Processes {
        let inventory = session.inventory();
        let row = inventory.objects.iter().max_by_key(|row| row.bytes).unwrap();
        assert_eq!((row.place, row.arena_bytes, row.disk_bytes), (PlaceRow::File, 0, now.annex_used_bytes));
        assert_eq!(row.pins.len(), 3, "{row:?}");
    }
    open_gate(&gate);
    assert!(view == noise(len, 1) && readers.iter().all(|r| r.get_timeout(20.0).unwrap()));
    // The small ones have all of the memory for themselves.
    let small: Vec<_> = (0..8).map(|seed| put(&noise(MIB, seed)).unwrap()).collect();
    assert_eq!(session.store().spilled_count, 0);
    drop((here, view, readers, small));
    session.await_quiet();
    assert_eq!(nameless_bytes(&session), 0);
}

/// A full disk and a file that is too small are typed failures with the numbers, and no signal.
fn d6_larger_than_the_store_and_no_room(mode: Mode) {
    let place = scratch().join(format!("disk of one {}", mode.name()));
    let Some(disk) = Mounted::tmpfs(&place, DISK_BYTES) else {
        let _removed = std::fs::remove_dir(&place);
        return;
    };
    let store = 16 * MIB;
    let session = mode.start_with(1, |init| init.store_bytes(store as u64).spill(spill_to(disk.path())));
    let entered = session.enter();
    let large = put(&noise(DISK_BYTES as usize + MIB, 1)).map(drop).unwrap_err();
    assert_eq!(large.kind(), FailureKind::ObjectTooLarge, "{large}");
    for size in [store as u64, DISK_BYTES] {
        assert!(large.to_string().contains(&size.to_string()), "no {size}: {large}");
    }
    let others = disk.path().join("others");
    std::fs::write(&others, vec![1; 32 * MIB]).unwrap();
    let len = store / 5 * 6;
    let here = put(&noise(len, 1)).map(drop).unwrap_err();
    let there = make_noise::remote(len, 2).get_timeout(20.0).unwrap_err();
    for error in [here, there] {
        assert_eq!(error.kind(), FailureKind::OutOfDisk, "{error}");
    }
    std::fs::remove_file(others).unwrap();
    let value = put(&noise(len, 1)).unwrap();
    assert!(value.get_timeout(20.0).unwrap() == noise(len, 1));
    // A second one waits for the first.
    let waits = make_noise::remote(2 * len, 2);
    std::thread::sleep(Duration::from_millis(300));
    drop(value);
    assert!(waits.get_timeout(20.0).unwrap() == noise(2 * len, 2));
    drop(waits);
    session.await_quiet();
    drop(entered);
    drop(session);
    drop(disk);
    std::fs::remove_dir(place).unwrap();
}

/// Spilled values and values larger than the store share a quota, whose numbers the refusal gives.
fn d6_larger_than_the_store_and_no_quota(mode: Mode) {
    let (store, quota) = (16 * MIB, 64 * MIB);
    let session = mode.start_spilling(1, |init, mut spill| {
        spill.folders[0].quota_bytes = quota as u64;
        init.store_bytes(store as u64).spill(spill)
    });
    let _entered = session.enter();
    let small: Vec<_> = (0..48).map(|seed| put(&noise(MIB, seed)).unwrap()).collect();
    session.await_report("most are on disk", |r| 32 <= r.store.spilled_count);
    let error = put(&noise(quota / 2, 1)).map(drop).unwrap_err();
    assert_eq!(error.kind(), FailureKind::OutOfDisk, "{error}");
    assert!(error.to_string().contains("quota"), "{error}");
    for (seed, value) in small.iter().enumerate() {
        assert!(value.get_timeout(20.0).unwrap() == noise(MIB, seed as u64), "value {seed} differs");
    }
    drop(small);
    session.await_quiet();
    let large = put(&noise(quota / 2, 1)).unwrap();
    assert!(large.get_timeout(20.0).unwrap() == noise(quota / 2, 1));
    drop(large);
    session.await_quiet();
}

/// Without a disk it is refused at once, with both sizes.
fn d6_larger_than_the_store_and_no_disk(mode: Mode) {
    let store = 16 * MIB;
    let session = mode.start_with(1, |init| init.store_bytes(store as u64).spill(SpillChoice::default()));
    let _entered = session.enter();
    let len = store / 5 * 6;
    let asked = Instant::now();
    let here = put(&noise(len, 1)).map(drop).unwrap_err();
    let there = make_noise::remote(len, 2).get_timeout(20.0).unwrap_err();
    assert!(asked.elapsed() < Duration::from_secs(8), "{:?}", asked.elapsed());
    for error in [here, there] {
        assert_eq!(error.kind(), FailureKind::ObjectTooLarge, "{error}");
        let text = error.to_string();
        assert!(text.contains(&store.to_string()), "no size of the store: {text}");
        let numbers = text.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse::<usize>().ok());
        assert!(numbers.into_iter().any(|n| (len..len + 8192).contains(&n)), "no size of the value: {text}");
    }
    session.await_quiet();
}

#[remote(max_retries = 0)]
fn puts(len: usize, began: String, done: String, gate: String) -> usize {
    // Made before, so that it is asked for at once: who asks first is what the scenarios are about.
    let bytes = noise(len, 1);
    std::fs::write(began, format!("{}\n", std::process::id())).unwrap();
    let value = put(&bytes).unwrap();
    mark(&done);
    await_file(&gate);
    value.get().unwrap().len()
}

/// A session without a disk and with the given mebibytes free; the values keep the rest.
fn start_almost_full(mode: Mode, free: usize) -> (Session, Vec<ObjectRef<Blob>>) {
    let session = mode.start_with(2, |init| init.store_bytes(32 << 20).spill(SpillChoice::default()));
    let entered = session.enter();
    // Objects of a mebibyte get exactly their room, and a page.
    let values = (0..31 - free as u64).map(|seed| put(&noise(MIB, seed)).unwrap()).collect();
    drop(entered);
    (session, values)
}

/// The first to ask is served first, even if somebody behind would fit.
fn d12_first_come_first_served(mode: Mode) {
    let (session, mut values) = start_almost_full(mode, 6);
    let _entered = session.enter();
    let path = |name: &str| session.path(name);
    let large = puts::remote(10 * MIB, path("began large"), path("large"), path("gate"));
    await_within(SOON, "the first asks", || marks(&path("began large")) == 1);
    std::thread::sleep(Duration::from_millis(300));
    let small = puts::remote(2 * MIB, path("began small"), path("small"), path("gate"));
    await_within(SOON, "the second asks", || marks(&path("began small")) == 1);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!((marks(&path("large")), marks(&path("small"))), (0, 0), "the second overtook the first");
    values.truncate(values.len() - 8);
    await_within(SOON, "both have room", || marks(&path("large")) + marks(&path("small")) == 2);
    open_gate(&path("gate"));
    assert_eq!((large.get().unwrap(), small.get().unwrap()), (10 * MIB, 2 * MIB));
    drop((values, large, small));
    session.await_quiet();
}

/// A client that dies in the queue stands in nobody's way.
fn d12_a_queued_client_dies(mode: Mode) {
    let (session, values) = start_almost_full(mode, 6);
    let _entered = session.enter();
    let path = |name: &str| session.path(name);
    let large = puts::remote(10 * MIB, path("began large"), path("large"), path("gate"));
    await_within(SOON, "the first asks", || marks(&path("began large")) == 1);
    std::thread::sleep(Duration::from_millis(300));
    let small = puts::remote(2 * MIB, path("began small"), path("small"), path("gate"));
    await_within(SOON, "the second asks", || marks(&path("began small")) == 1);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(marks(&path("small")), 0, "the second overtook the first");
    let pid = std::fs::read_to_string(path("began large")).unwrap();
    processes::signal(pid.trim().parse().unwrap(), rustix::process::Signal::KILL);
    assert_eq!(large.get_timeout(10.0).unwrap_err().kind(), FailureKind::WorkerCrashed);
    open_gate(&path("gate"));
    assert_eq!(small.get_timeout(10.0).unwrap(), 2 * MIB);
    drop((values, large, small));
    session.await_quiet();
}

/// With the last reference goes everything: objects, pins and files.
fn nothing_is_left_when_all_is_dropped(mode: Mode) {
    let session = mode.start_with(2, |init| init.store_bytes(16 << 20));
    let _entered = session.enter();
    let mut values: Vec<_> = (0..20).map(|seed| put(&noise(MIB, seed)).unwrap()).collect();
    values.extend((20..40).map(|seed| make_noise::remote(MIB, seed)));
    // Some are looked at, some stand inside another, some are on disk alone.
    let views: Vec<_> = values.iter().step_by(7).map(|v| v.get_timeout(20.0).unwrap()).collect();
    let nested = put(&values[..5].to_vec()).unwrap();
    let full = session.store();
    assert!(full.pinned_count > 0 && full.spilled_count > 0, "{full:?}");
    assert!(!session.spill_files().is_empty());
    drop((values, views, nested));
    await_within(EMPTY_WAIT, "objects, pins and files are gone", || {
        let store = session.store();
        (store.object_count, store.pinned_count, store.spilled_count) == (0, 0, 0)
            && session.spill_files().is_empty()
    });
    session.await_quiet();
}

/// Takes longer than the disk of the test below, which else would not be asked.
#[remote]
fn make_slowly(len: usize, seed: u64) -> Blob {
    std::thread::sleep(Duration::from_millis(150));
    noise(len, seed)
}

/// The report of the store adds up at every moment, and says who keeps a value and what made it.
fn every_byte_is_explained_while_values_are_spilled(mode: Mode) {
    let session = start_slow(mode, 16 << 20, 24 << 20);
    let _entered = session.enter();
    let values: Vec<_> = (0..24).map(|seed| make_slowly::remote(MIB, seed)).collect();
    let mut seen = Vec::new();
    let until = Instant::now() + SOON;
    while seen.len() < 4 && Instant::now() < until {
        let inventory = session.inventory();
        assert_adds_up(&inventory);
        seen.extend(inventory.objects.iter().map(|row| row.place));
        seen.sort_unstable_by_key(|place| format!("{place:?}"));
        seen.dedup();
        seen.retain(|place| *place != PlaceRow::Receiving && *place != PlaceRow::Freed);
    }
    // In memory, on disk, on both, and on the way.
    assert_eq!(seen.len(), 4, "{seen:?}");
    let view = values[0].get_timeout(20.0).unwrap();
    let inventory = session.inventory();
    assert_adds_up(&inventory);
    let id = values[0].id().object.to_string();
    let row = inventory.objects.iter().find(|row| row.object == id).unwrap();
    let driver = inventory.clients.iter().find(|client| client.kind == ClientKind::Driver).unwrap();
    assert_eq!(driver.pid, std::process::id());
    assert_eq!((&row.pins[..], &row.clients[..]), (&[(driver.client, 1)][..], &[(driver.client, 1)][..]));
    let site = &inventory.sites[row.site.unwrap() as usize];
    assert!(site.name.contains("make_slowly") && site.call_site.contains("spill.rs"), "{site:?}");
    assert!(row.made_in_ns.unwrap() > 1_000, "{row:?}");
    let own = put(&noise(MIB, 100)).unwrap();
    let inventory = session.inventory();
    let id = own.id().object.to_string();
    let row = inventory.objects.iter().find(|row| row.object == id).unwrap();
    let site = &inventory.sites[row.site.unwrap() as usize];
    assert!(site.name == "put" && site.call_site.contains("spill.rs"), "{site:?}");
    drop((view, values, own));
    session.await_quiet();
    let inventory = session.inventory();
    assert_adds_up(&inventory);
    assert!(inventory.objects.is_empty(), "{inventory:?}");
}

/// Bytes in use are those of objects and grants, with free ones they are the store; and so on disk.
#[track_caller]
fn assert_adds_up(inventory: &Inventory) {
    let store = inventory.store;
    let used = inventory.object_bytes() + inventory.granted_bytes() + inventory.superseded_bytes;
    assert_eq!(used, store.used_bytes, "{inventory:#?}");
    assert_eq!(used + inventory.free_bytes, store.capacity_bytes);
    let on_disk = inventory.objects.iter().map(|row| row.disk_bytes).sum::<u64>();
    assert_eq!(on_disk + inventory.other_disk_bytes, store.spilled_bytes, "{inventory:#?}");
    let in_memory = inventory.objects.iter().filter(|row| row.arena_bytes > 0).count();
    assert_eq!(in_memory, store.object_count);
}
