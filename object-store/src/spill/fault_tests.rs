//! Disks that are full, gone, read-only or broken. Where a file system can be mounted they are real.

use super::dir::SpillDir;
use super::error::{CorruptPart, SpillError};
use super::file::{Faults, Operation};
use super::header::BLOCK_BYTES;
use super::mounted::Mounted;
use super::options::{DirCondition, SpillOptions};
use super::set::{SpillPlace, SpillSet};
use super::tests::{key, noise, segment_files, small_segments};
use crate::arena::Arena;
use crate::error::{NoSpace, StoreError};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

const BLOCK: usize = BLOCK_BYTES as usize;

/// Fails one kind of operation with one error, after a number of successes and for a number of operations.
struct Broken {
    operation: Operation,
    errno: Errno,
    good_count: AtomicI64,
    bad_count: i64,
}

impl Faults for Broken {
    fn before(&self, operation: Operation, _offset: u64) -> Option<io::Error> {
        if operation != self.operation {
            return None;
        }
        let left = self.good_count.fetch_sub(1, Ordering::Relaxed);
        (left <= 0 && -self.bad_count < left).then(|| self.errno.into())
    }
}

fn broken(operation: Operation, errno: Errno, good_count: i64, bad_count: i64) -> SpillOptions {
    let good_count = AtomicI64::new(good_count);
    let faults = Broken { operation, errno, good_count, bad_count };
    SpillOptions { faults: Some(Arc::new(faults)), ..SpillOptions::default() }
}

/// A process has as many threads as it may.
#[test]
fn an_object_is_read_where_no_thread_can_verify_it() {
    let root = tempfile::tempdir().unwrap();
    let options = broken(Operation::Thread, Errno::AGAIN, 0, i64::MAX);
    let dir = SpillDir::open(root.path(), u64::MAX, &options).unwrap();
    let object = noise(3 * BLOCK + 5, 1);
    dir.write(&key(1), &[&object]).unwrap();
    let mut back = vec![0; object.len()];
    dir.read_into(&key(1), 0, &mut back).unwrap();
    assert!(back == object);
    let mut part = vec![0; BLOCK + 2];
    dir.read_into(&key(1), BLOCK as u64 - 1, &mut part).unwrap();
    assert!(part == object[BLOCK - 1..2 * BLOCK + 1]);
}

/// `spill-file`: "ENOSPC in the middle of a write": partial file removed, directory marked full, tried again
/// only once there is space.
fn fills_up(path: &Path) {
    let dir = SpillDir::open(path, u64::MAX, &SpillOptions::default()).unwrap();
    let object = noise(3 * BLOCK, 1);
    let mut stored = Vec::new();
    let refused = (0..100).find_map(|number| match dir.write(&key(number), &[&object]) {
        Ok(_) => {
            stored.push(number);
            None
        }
        Err(error) => Some(error),
    });
    match refused {
        Some(SpillError::NoSpace { cause, .. }) => {
            assert!(object.len() as u64 <= cause.needed_bytes, "{cause:?}");
            assert!(cause.available_bytes < 40 << 20, "{cause:?}");
        }
        other => panic!("{other:?}"),
    }
    let usage = dir.usage();
    assert_eq!((usage.condition, usage.objects_count), (DirCondition::Full, stored.len() as u64));
    // The space that the torn write took is free again.
    let on_disk: u64 = segment_files(path).iter().map(|path| fs::metadata(path).unwrap().len()).sum();
    assert_eq!(on_disk, usage.used_bytes);
    assert!(matches!(dir.write(&key(500), &[b"x"]), Err(SpillError::NoSpace { .. })));
    let mut back = vec![0; object.len()];
    for number in &stored {
        dir.read_into(&key(*number), 0, &mut back).unwrap();
        assert!(back == object);
    }
    stored.iter().for_each(|number| assert!(dir.remove(&key(*number))));
    dir.write(&key(501), &[&object]).unwrap();
    assert_eq!(dir.usage().condition, DirCondition::Usable);
}

#[test]
fn a_full_disk_leaves_no_half_object_and_is_used_again_when_it_has_space() {
    if let Some(disk) = Mounted::tmpfs("size=64m") {
        fills_up(disk.path());
    }
    if let Some(disk) = Mounted::ext4(96 << 20) {
        fills_up(disk.path());
    }
}

/// A process that was forked has the files open until it ends. What is removed is free all the same.
#[test]
fn what_is_removed_is_free_though_another_process_has_it_open() {
    let folder = tempfile::tempdir().unwrap();
    let dir = SpillDir::open(folder.path(), u64::MAX, &small_segments(8192)).unwrap();
    dir.write(&key(1), &[&noise(3 * BLOCK, 1)]).unwrap();
    let files = segment_files(folder.path());
    let open: Vec<File> = files.iter().map(|path| File::open(path).unwrap()).collect();
    let on_disk = || open.iter().map(|file| file.metadata().unwrap().len()).sum::<u64>();
    assert!(3 * BLOCK as u64 <= on_disk());
    assert!(dir.remove(&key(1)));
    assert_eq!(on_disk(), 0);
}

/// `spill-file`: "100 % of inodes used": same as a full disk.
#[test]
fn a_disk_without_inodes_is_full() {
    let Some(disk) = Mounted::tmpfs("size=64m,nr_inodes=4") else { return };
    let dir = SpillDir::open(disk.path(), u64::MAX, &small_segments(8192)).unwrap();
    let refused = (0..10).find_map(|number| dir.write(&key(number), &[b"x"]).err());
    assert!(matches!(refused, Some(SpillError::NoSpace { .. })), "{refused:?}");
}

/// `spill-file`: "file system remounted read-only": same as a failed directory.
#[test]
fn a_disk_that_turns_read_only_takes_nothing_more_and_can_be_read() {
    let Some(disk) = Mounted::tmpfs("size=64m") else { return };
    let dir = SpillDir::open(disk.path(), u64::MAX, &small_segments(8192)).unwrap();
    dir.write(&key(1), &[b"before"]).unwrap();
    // Files that are open for writing keep a file system writable; the next segment does not.
    let remounted = Command::new("mount").args(["-o", "remount,ro"]).arg(disk.path()).output().unwrap();
    if !remounted.status.success() {
        // The file system could not be remounted, so the error is injected.
        let options = broken(Operation::Write, Errno::ROFS, 0, i64::MAX);
        read_only(&SpillDir::open(disk.path(), u64::MAX, &options).unwrap());
    } else {
        read_only(&dir);
    }
    let mut back = [0; 6];
    dir.read_into(&key(1), 0, &mut back).unwrap();
    assert_eq!(&back, b"before");
    assert!(
        SpillDir::open(&disk.path().join("new"), 1, &SpillOptions::default()).is_ok()
            || remounted.status.success()
    );
}

fn read_only(dir: &SpillDir) {
    for number in 10..12 {
        let refused = dir.write(&key(number), &[b"after"]);
        assert!(matches!(refused, Err(SpillError::ReadOnly { .. })), "{refused:?}");
    }
    assert_eq!(dir.usage().condition, DirCondition::Failed);
}

/// `spill-file`: "spill dir removed at run time": marked failed, spilling moves to the next directory.
#[test]
fn a_removed_directory_is_noticed_and_the_next_one_takes_over() {
    let root = tempfile::tempdir().unwrap();
    let place = |name: &str, quota_bytes| SpillPlace { path: root.path().join(name), quota_bytes };
    let set = SpillSet::open(&[place("a", 1 << 40), place("b", 1 << 30)], &SpillOptions::default()).unwrap();
    // Both are on the same file system, so both have the same room in spite of the quotas, and the first is
    // chosen.
    set.write(&key(1), &[b"one"]).unwrap();
    let first = set.usage().iter().position(|usage| usage.objects_count == 1).unwrap();
    let (gone, left) = if first == 0 { ("a", 1) } else { ("b", 0) };
    fs::remove_dir_all(root.path().join(gone)).unwrap();
    (2..6).for_each(|number| assert!(set.write(&key(number), &[b"later"]).is_ok()));
    let usage = set.usage();
    assert_eq!(usage[first].condition, DirCondition::Failed);
    assert_eq!((usage[left].condition, usage[left].objects_count), (DirCondition::Usable, 4));
    // The file has lost its name, but not its bytes.
    let mut back = [0; 3];
    set.read_into(&key(1), 0, &mut back).unwrap();
    assert_eq!(&back, b"one");
    assert!(set.remove(&key(1)));
}

#[test]
fn a_directory_removed_before_its_first_file_is_noticed() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("spill");
    let dir = SpillDir::open(&path, u64::MAX, &SpillOptions::default()).unwrap();
    fs::remove_dir_all(&path).unwrap();
    for number in 0..2 {
        let refused = dir.write(&key(number), &[b"x"]);
        assert!(matches!(refused, Err(SpillError::Removed { .. })), "{refused:?}");
    }
}

/// `spill-file`: "EIO on write / fsync": the directory is failed after one, and fsync is never tried again.
#[test]
fn a_write_that_fails_anywhere_leaves_nothing_and_fails_the_directory() {
    let object = noise(3 * BLOCK + 9, 2);
    // The writes are three blocks, the rest, then the header.
    for good_count in 0..5 {
        let root = tempfile::tempdir().unwrap();
        let options = broken(Operation::Write, Errno::IO, good_count, i64::MAX);
        let dir = SpillDir::open(root.path(), u64::MAX, &options).unwrap();
        let refused = dir.write(&key(1), &[&object]);
        assert!(matches!(refused, Err(SpillError::Io { .. })), "{refused:?}");
        let usage = dir.usage();
        assert_eq!((usage.condition, usage.used_bytes, usage.objects_count), (DirCondition::Failed, 0, 0));
        assert!(segment_files(root.path()).is_empty());
        assert!(matches!(dir.read_into(&key(1), 0, &mut [0]), Err(SpillError::NotFound { .. })));
        assert!(matches!(dir.write(&key(2), &[b"x"]), Err(SpillError::Io { .. })));
    }
}

#[test]
fn a_sync_that_fails_is_not_tried_again() {
    // Only buffered writes are synced; if shared memory takes direct writes, there is nothing to test.
    let root = tempfile::tempdir_in("/dev/shm").unwrap();
    let options = broken(Operation::Sync, Errno::IO, 0, 1);
    let dir = SpillDir::open(root.path(), u64::MAX, &options).unwrap();
    if !dir.usage().is_direct {
        assert!(matches!(dir.write(&key(1), &[b"x"]), Err(SpillError::Io { .. })));
        assert!(matches!(dir.write(&key(1), &[b"x"]), Err(SpillError::Io { .. })));
        assert_eq!((dir.usage().condition, dir.usage().objects_count), (DirCondition::Failed, 0));
    }
}

/// `spill-file`: "EIO on read": three tries, then the caller reads another copy.
#[test]
fn a_read_is_tried_three_times() {
    for (bad_count, comes_back) in [(2, true), (3, false)] {
        let root = tempfile::tempdir().unwrap();
        let dir = SpillDir::open(root.path(), u64::MAX, &broken(Operation::Read, Errno::IO, 0, bad_count));
        let dir = dir.unwrap();
        dir.write(&key(1), &[b"value"]).unwrap();
        let mut back = [0; 5];
        let result = dir.read_into(&key(1), 0, &mut back);
        assert_eq!((result.is_ok(), &back == b"value"), (comes_back, comes_back), "{result:?}");
        assert_eq!(dir.usage().condition, DirCondition::Usable);
    }
}

/// `spill-file`: "two files swapped", "old file of a previous session with the same name".
#[test]
fn the_bytes_of_another_object_or_session_are_refused() {
    let root = tempfile::tempdir().unwrap();
    let open = |name: &str| SpillDir::open(&root.path().join(name), u64::MAX, &small_segments(8192)).unwrap();
    let (dir, other) = (open("a"), open("b"));
    let fill = |dir: &SpillDir| (1..3).for_each(|n| assert!(dir.write(&key(n), &[&noise(4000, n)]).is_ok()));
    fill(&dir);
    fill(&other);
    let contents = |name: &str| -> Vec<Vec<u8>> {
        segment_files(&root.path().join(name)).iter().map(|path| fs::read(path).unwrap()).collect()
    };
    let (ours, theirs) = (contents("a"), contents("b"));
    let files = segment_files(&root.path().join("a"));
    // First the bytes of another object, then those of the same object of another session.
    for bytes in [&ours[1], &theirs[0]] {
        File::options().write(true).open(&files[0]).unwrap().write_all_at(bytes, 0).unwrap();
        match dir.read_into(&key(1), 0, &mut [0; 4000]) {
            Err(SpillError::Corrupt { part: CorruptPart::WrongObject, .. }) => {}
            other => panic!("{other:?}"),
        }
    }
    let done = dir.compact(u64::MAX).unwrap();
    assert_eq!(done.moved_bytes, 0);
}

/// `spill-file`: "quota reached": same as a full disk, with the two numbers.
#[test]
fn a_quota_is_kept_and_named() {
    let root = tempfile::tempdir().unwrap();
    let dir = SpillDir::open(root.path(), 20_000, &SpillOptions::default()).unwrap();
    dir.write(&key(1), &[&[1; 5000]]).unwrap();
    match dir.write(&key(2), &[&[1; 5000]]) {
        Err(SpillError::Quota { cause, .. }) => {
            assert_eq!((cause.needed_bytes, cause.available_bytes), (12_288, 20_000 - 12_288));
        }
        other => panic!("{other:?}"),
    }
    assert!(dir.remove(&key(1)));
    dir.write(&key(2), &[&[1; 5000]]).unwrap();
}

/// Values larger than memory and those that are spilled take no more than the quota together.
#[test]
fn the_annex_counts_against_the_quota() {
    const MEMORY: u64 = 2 << 20;
    let root = tempfile::tempdir().unwrap();
    let dir = Arc::new(SpillDir::open(root.path(), 12 << 20, &SpillOptions::default()).unwrap());
    let arena = Arena::with_annex(MEMORY, Some(dir.annex().unwrap())).unwrap();
    let object = noise(3 << 20, 1);
    dir.write(&key(1), &[&object]).unwrap();
    dir.write(&key(2), &[&object]).unwrap();
    arena.allocate(MEMORY, 4 << 20).unwrap();
    let usage = dir.usage();
    assert_eq!(usage.annex_bytes, 4 << 20);
    assert!((10 << 20..11 << 20).contains(&usage.used_bytes), "{usage:?}");
    assert!(matches!(dir.write(&key(3), &[&object]), Err(SpillError::Quota { .. })));
    let refused = arena.allocate(MEMORY + (4 << 20), 4 << 20).unwrap_err();
    let has_numbers = |space: &NoSpace| space.needed_bytes == 4 << 20 && space.available_bytes < 2 << 20;
    assert!(matches!(&refused, StoreError::NoSpace(space) if has_numbers(space)), "{refused}");
    // The space of removed objects is freed when the annex needs it.
    assert!(dir.remove(&key(1)) && 0 < dir.usage().dead_bytes);
    arena.allocate(MEMORY + (4 << 20), 4 << 20).unwrap();
    assert_eq!((dir.usage().annex_bytes, dir.usage().dead_bytes), (8 << 20, 0));
    // Space freed by the annex is room for spilled objects.
    assert!(dir.write(&key(3), &[&object]).is_err());
    arena.punch(MEMORY, 8 << 20).unwrap();
    dir.write(&key(3), &[&object]).unwrap();
    assert_eq!(dir.usage().annex_bytes, 0);
    // A process may map the annex after the node has ended.
    drop(dir);
    arena.allocate(MEMORY, 12 << 20).unwrap();
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0, "the annex keeps no folder");
}

#[test]
fn corruption_met_by_compaction_is_reported_and_the_rest_is_kept() {
    let root = tempfile::tempdir().unwrap();
    let dir = SpillDir::open(root.path(), u64::MAX, &small_segments(1 << 20)).unwrap();
    (0..10).for_each(|number| assert!(dir.write(&key(number), &[&noise(60_000, number)]).is_ok()));
    (2..10).for_each(|number| assert!(dir.remove(&key(number))));
    let file = File::options().write(true).open(&segment_files(root.path())[0]).unwrap();
    file.write_all_at(b"damage", 30_000).unwrap();
    let done = dir.compact(u64::MAX).unwrap();
    assert_eq!(done.corrupt, [key(0)]);
    assert!(matches!(dir.read_into(&key(0), 0, &mut [0; 10]), Err(SpillError::Corrupt { .. })));
    let mut back = vec![0; 60_000];
    dir.read_into(&key(1), 0, &mut back).unwrap();
    assert!(back == noise(60_000, 1));
}
