//! C: values that the disk lost, one node. Bytes on disk are changed by the scenario, as a bad disk would.

use crate::memory::{MIB, noise};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::time::Duration;
use tharsis::prelude::*;
use tharsis_scenarios::{
    Mode, Scenario, Session, await_file, await_within, mark, marks, open_gate, scenarios,
};

pub const ALL: &[Scenario] = scenarios![
    Both:
        c3_a_put_that_is_lost_is_named,
        c3_lineage_holds_what_was_put,
        c6_a_chain_runs_again_once,
        c6_a_diamond_runs_again_once,
        c7_one_recovery_at_a_time,
        c8_without_retries_lost_is_lost,
        flipped_bytes_are_never_a_value,
        truncated_files_are_never_a_value,
        deleted_files_are_never_a_wrong_value;
];

/// Bytes of the store: a few values fit.
const STORE_BYTES: u64 = 16 << 20;
/// Bytes of a value.
const LEN: usize = MIB;
/// Number of readers at once.
const READERS: usize = 50;

fn start(mode: Mode) -> Session {
    mode.start_spilling(2, |init, mut spill| {
        // So that a value's bytes can be found in a file.
        spill.may_compress = false;
        init.store_bytes(STORE_BYTES).spill(spill)
    })
}

/// Makes a value, and takes long enough that it is better written to disk than made again.
#[remote(max_retries = 3)]
fn source(seed: u64, runs: String) -> Blob {
    mark(&runs);
    std::thread::sleep(Duration::from_millis(200));
    noise(LEN, seed)
}

/// Makes a value of another one: as many bytes, with another seed.
#[remote(max_retries = 3)]
fn next(before: Blob, seed: u64, runs: String) -> Blob {
    mark(&runs);
    std::thread::sleep(Duration::from_millis(200));
    noise(before.len(), seed)
}

#[remote(max_retries = 3)]
fn join(left: Blob, right: Blob, seed: u64, runs: String) -> Blob {
    mark(&runs);
    std::thread::sleep(Duration::from_millis(200));
    noise(left.len().min(right.len()), seed)
}

#[remote]
fn has_seed(value: Blob, seed: u64) -> bool {
    value == noise(LEN, seed)
}

/// Fills the store with other values until those that were there are on disk alone; then only they are there.
fn push_to_disk(session: &Session, count: usize) {
    push_out(session, |spilled| spilled == count);
}

/// The same until as many are on disk as `is_so` says, and the rest is nowhere. Returns how many.
fn push_out(session: &Session, is_so: impl Fn(usize) -> bool) -> usize {
    let fillers: Vec<_> = (0..32).map(|seed| put(&noise(MIB, 1000 + seed)).unwrap()).collect();
    drop(fillers);
    let report = session.await_report("what was there has left the memory", |r| {
        r.store.object_count == 0 && is_so(r.store.spilled_count)
    });
    // Compaction may still move them.
    let sizes = || {
        let files = session.spill_files();
        files.iter().map(|f| (f.clone(), fs::metadata(f).map_or(0, |m| m.len()))).collect::<Vec<_>>()
    };
    let mut before = Vec::new();
    await_within(Duration::from_secs(10), "files stay as they are", || {
        let now = sizes();
        std::thread::sleep(Duration::from_millis(100));
        now == std::mem::replace(&mut before, now.clone())
    });
    report.store.spilled_count
}

/// Place of a value's bytes on disk: the file and the offset of a piece from its middle.
fn find_on_disk(session: &Session, value: &[u8]) -> (File, u64) {
    let piece = &value[LEN / 2..LEN / 2 + 32];
    for path in session.spill_files() {
        let bytes = fs::read(&path).unwrap();
        if let Some(at) = bytes.windows(piece.len()).position(|window| window == piece) {
            return (File::options().write(true).open(path).unwrap(), at as u64);
        }
    }
    panic!("the value is not on disk")
}

/// Damages the one value on disk.
fn damage(session: &Session, seed: u64) {
    let value = noise(LEN, seed);
    let (file, at) = find_on_disk(session, &value);
    file.write_all_at(&[!value[LEN / 2]], at).unwrap();
    file.sync_all().unwrap();
}

/// A value that was put cannot be made again: the error says which.
fn c3_a_put_that_is_lost_is_named(mode: Mode) {
    let session = start(mode);
    let _entered = session.enter();
    let (lost, whole) = (put(&noise(LEN, 1)).unwrap(), put(&noise(LEN, 2)).unwrap());
    push_to_disk(&session, 2);
    damage(&session, 1);
    let error = lost.get_timeout(10.0).unwrap_err();
    assert_eq!(error.kind(), FailureKind::ObjectLost, "{error}");
    assert!(error.to_string().contains(&lost.id().object.to_string()), "{error} does not name it");
    // A task that takes it fails as well, and says why.
    let dependent = has_seed::remote(&lost, 1).get_timeout(10.0).unwrap_err();
    assert!(dependent.to_string().contains(&lost.id().object.to_string()), "{dependent}");
    assert!(whole.get_timeout(10.0).unwrap() == noise(LEN, 2), "its neighbour is read");
    drop((lost, whole));
    session.await_quiet();
}

/// The arguments of a result stay for as long as the result may have to be made again.
fn c3_lineage_holds_what_was_put(mode: Mode) {
    let session = start(mode);
    let _entered = session.enter();
    let runs = session.path("runs");
    let result = next::remote(put(&noise(LEN, 1)).unwrap(), 2, runs.clone());
    // Not read by the driver, which would keep it mapped.
    assert!(has_seed::remote(&result, 2).get_timeout(10.0).unwrap());
    push_to_disk(&session, 2);
    damage(&session, 2);
    assert!(result.get_timeout(10.0).unwrap() == noise(LEN, 2));
    assert_eq!(marks(&runs), 2);
    drop(result);
    session.await_quiet();
}

/// Everybody who waits for the end of a chain whose values are all lost gets it, and each task runs once for
/// all of them.
fn c6_a_chain_runs_again_once(mode: Mode) {
    let session = start(mode);
    let _entered = session.enter();
    let runs: Vec<_> = (0..3).map(|n| session.path(&format!("runs {n}"))).collect();
    let a = source::remote(1, runs[0].clone());
    let b = next::remote(&a, 2, runs[1].clone());
    let c = next::remote(&b, 3, runs[2].clone());
    assert!(has_seed::remote(&c, 3).get_timeout(10.0).unwrap());
    push_to_disk(&session, 3);
    (1..=3).for_each(|seed| damage(&session, seed));
    read_at_once(&c, 3);
    let counts: Vec<_> = runs.iter().map(|path| marks(path)).collect();
    assert_eq!(counts, [2, 2, 2]);
    for (value, seed) in [(&a, 1), (&b, 2)] {
        assert!(value.get_timeout(10.0).unwrap() == noise(LEN, seed));
    }
    assert_eq!(runs.iter().map(|path| marks(path)).sum::<usize>(), 6, "reading what is there runs nothing");
    drop((a, b, c));
    session.await_quiet();
}

/// The same where two tasks took the same value.
fn c6_a_diamond_runs_again_once(mode: Mode) {
    let session = start(mode);
    let _entered = session.enter();
    let runs: Vec<_> = (0..4).map(|n| session.path(&format!("runs {n}"))).collect();
    let a = source::remote(1, runs[0].clone());
    let (left, right) = (next::remote(&a, 2, runs[1].clone()), next::remote(&a, 3, runs[2].clone()));
    let c = join::remote(&left, &right, 4, runs[3].clone());
    assert!(has_seed::remote(&c, 4).get_timeout(10.0).unwrap());
    push_to_disk(&session, 4);
    (1..=4).for_each(|seed| damage(&session, seed));
    read_at_once(&c, 4);
    let counts: Vec<_> = runs.iter().map(|path| marks(path)).collect();
    assert_eq!(counts, [2, 2, 2, 2]);
    drop((a, left, right, c));
    session.await_quiet();
}

/// Makes a value, when it may.
#[remote(max_retries = 3)]
fn source_after(seed: u64, runs: String, gate: String) -> Blob {
    mark(&runs);
    await_file(&gate);
    std::thread::sleep(Duration::from_millis(200));
    noise(LEN, seed)
}

/// A reader that asks while a value is made again starts nothing more; a value lost once more is made once
/// more.
fn c7_one_recovery_at_a_time(mode: Mode) {
    let session = start(mode);
    let _entered = session.enter();
    let (runs, gate) = (session.path("runs"), session.path("gate"));
    open_gate(&gate);
    let value = source_after::remote(1, runs.clone(), gate.clone());
    assert!(has_seed::remote(&value, 1).get_timeout(10.0).unwrap());
    push_to_disk(&session, 1);
    damage(&session, 1);
    fs::remove_file(&gate).unwrap();
    // Tasks read it: the driver would keep it mapped, and off the disk.
    let first = has_seed::remote(&value, 1);
    await_within(Duration::from_secs(10), "it is made again", || marks(&runs) == 2);
    let second = has_seed::remote(&value, 1);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(marks(&runs), 2, "a second recovery began beside the first");
    open_gate(&gate);
    assert!(first.get_timeout(20.0).unwrap() && second.get_timeout(20.0).unwrap());
    assert_eq!(marks(&runs), 2);
    // Whether it goes to disk this time or is dropped at once is up to the node.
    if push_out(&session, |spilled| spilled <= 1) == 1 {
        damage(&session, 1);
    }
    assert!(value.get_timeout(20.0).unwrap() == noise(LEN, 1));
    assert_eq!(marks(&runs), 3);
    drop((value, first, second));
    session.await_quiet();
}

/// Half of the readers are tasks, half are threads of the driver.
fn read_at_once(value: &ObjectRef<Blob>, seed: u64) {
    let tasks: Vec<_> = (0..READERS / 2).map(|_| has_seed::remote(value, seed)).collect();
    std::thread::scope(|scope| {
        for _ in 0..READERS / 2 {
            scope.spawn(|| {
                assert!(value.get_timeout(20.0).unwrap() == noise(LEN, seed));
            });
        }
    });
    assert!(get_all(&tasks, Some(20.0.into())).unwrap().into_iter().all(|right| right));
}

/// A task that may not run twice does not.
fn c8_without_retries_lost_is_lost(mode: Mode) {
    let session = start(mode);
    let _entered = session.enter();
    let runs = session.path("runs");
    let value = source::options().max_retries(0).remote(1, runs.clone());
    assert!(has_seed::remote(&value, 1).get_timeout(10.0).unwrap());
    push_to_disk(&session, 1);
    damage(&session, 1);
    let error = value.get_timeout(10.0).unwrap_err();
    assert_eq!((error.kind(), marks(&runs)), (FailureKind::ObjectLost, 1), "{error}");
    drop(value);
    session.await_quiet();
}

/// Reads after files were damaged: every value is right, or an error says that it is lost. Returns how
/// many are.
fn count_lost(values: &[ObjectRef<Blob>]) -> usize {
    let mut lost = 0;
    for (seed, value) in values.iter().enumerate() {
        match value.get_timeout(20.0) {
            Ok(read) => assert!(read == noise(LEN, seed as u64), "value {seed} is wrong"),
            Err(error) => {
                assert_eq!(error.kind(), FailureKind::ObjectLost, "{error}");
                lost += 1;
            }
        }
    }
    lost
}

/// Values of a session that are on disk alone.
fn on_disk(session: &Session) -> Vec<ObjectRef<Blob>> {
    let values: Vec<_> = (0..24).map(|seed| put(&noise(LEN, seed)).unwrap()).collect();
    push_to_disk(session, values.len());
    values
}

/// One byte in a few places of every file.
fn flipped_bytes_are_never_a_value(mode: Mode) {
    let session = start(mode);
    let _entered = session.enter();
    let values = on_disk(&session);
    let mut flipped = 0;
    for path in session.spill_files() {
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let len = file.metadata().unwrap().len();
        // The head, a body, somewhere, and the end.
        for at in [0, 9, 4096, len / 3, len / 2 + 1, len - 1] {
            let mut byte = [0];
            file.read_exact_at(&mut byte, at).unwrap();
            file.write_all_at(&[byte[0] ^ 0x10], at).unwrap();
            flipped += 1;
        }
        file.sync_all().unwrap();
    }
    let lost = count_lost(&values);
    assert!(0 < lost && lost <= flipped, "{lost} lost, {flipped} bytes flipped");
    drop(values);
    session.await_quiet();
}

/// Files that end early, down to nothing.
fn truncated_files_are_never_a_value(mode: Mode) {
    let session = start(mode);
    let _entered = session.enter();
    let values = on_disk(&session);
    let mut lost = 0;
    for part in [3, 2, 0] {
        for path in session.spill_files() {
            // A file goes with the last value in it, which may have been lost the time before.
            let Ok(file) = File::options().write(true).open(&path) else { continue };
            let len = file.metadata().unwrap().len();
            file.set_len(len / 4 * part + u64::from(part > 0)).unwrap();
        }
        let now = count_lost(&values);
        assert!(lost <= now, "a lost value came back");
        lost = now;
    }
    assert!(lost > 0, "nothing was lost with its bytes");
    drop(values);
    session.await_quiet();
}

/// Files that somebody else deletes: what was in them is still read, for the node has them open. It puts
/// nothing more there, and goes on in memory.
fn deleted_files_are_never_a_wrong_value(mode: Mode) {
    let session = start(mode);
    let _entered = session.enter();
    let values = on_disk(&session);
    session.spill_files().iter().for_each(|path| fs::remove_file(path).unwrap());
    assert_eq!(count_lost(&values), 0);
    drop(values);
    session.await_quiet();
    let more: Vec<_> = (24..32).map(|seed| put(&noise(LEN, seed)).unwrap()).collect();
    for (value, seed) in more.iter().zip(24..) {
        assert!(value.get_timeout(10.0).unwrap() == noise(LEN, seed));
    }
    drop(more);
    session.await_quiet();
}
