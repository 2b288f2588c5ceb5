//! Disks that break under a directory, lose power, or contain foreign files.

use super::dir::SpillDir;
use super::error::SpillError;
use super::file::{Faults, Operation};
use super::header::BLOCK_BYTES;
use super::mounted::{Mounted, skip};
use super::options::{DirCondition, SpillOptions};
use super::tests::{key, noise, segment_files, small_segments};
use crate::arena::Arena;
use crate::transfer::ReadAt;
use rustix::io::Errno;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

const BLOCK: usize = BLOCK_BYTES as usize;

/// The folder of the only session in a directory.
fn session_folder(dir: &Path) -> PathBuf {
    let mut folders = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    folders.find(|path| path.file_name().unwrap().to_str().unwrap().starts_with("tharsis-spill-")).unwrap()
}

/// Writes objects until one is refused; returns those that were stored, and the error of the last.
fn fill(dir: &SpillDir, object: &[u8]) -> (Vec<u64>, SpillError) {
    let mut stored = Vec::new();
    loop {
        match dir.write(&key(stored.len() as u64), &[object]) {
            Ok(_) => stored.push(stored.len() as u64),
            Err(error) => return (stored, error),
        }
        assert!(stored.len() < 100, "nothing is refused");
    }
}

/// `spill-file`: "EIO on write" and "on read", of a real disk: the directory is failed, and no wrong byte is
/// returned.
#[test]
fn a_disk_that_breaks_fails_the_directory_and_gives_nothing_wrong() {
    let Some(disk) = Mounted::ext4(256 << 20) else { return };
    let dir = SpillDir::open(disk.path(), u64::MAX, &SpillOptions::default()).unwrap();
    let object = noise(2 * BLOCK, 1);
    dir.write(&key(1000), &[&object]).unwrap();
    if !dir.usage().is_direct {
        return skip("the page cache hides the broken disk");
    }
    let Some(()) = disk.break_disk(24 << 20) else { return };
    let (stored, refused) = fill(&dir, &object);
    // A file system that cannot write its journal turns read-only.
    assert!(matches!(refused, SpillError::Io { .. } | SpillError::ReadOnly { .. }), "{refused:?}");
    let usage = dir.usage();
    assert_eq!((usage.condition, usage.objects_count), (DirCondition::Failed, stored.len() as u64 + 1));
    assert!(dir.write(&key(2000), &[b"x"]).is_err_and(|error| error.is_of_directory()));
    for number in stored.into_iter().chain([1000]) {
        let mut back = vec![0; object.len()];
        match dir.read_into(&key(number), 0, &mut back) {
            Ok(()) => assert!(back == object),
            Err(error) => assert!(matches!(error, SpillError::Io { .. }), "{error:?}"),
        }
    }
}

#[test]
fn a_disk_that_is_gone_gives_errors_and_no_bytes() {
    let Some(disk) = Mounted::ext4(64 << 20) else { return };
    let dir = SpillDir::open(disk.path(), u64::MAX, &SpillOptions::default()).unwrap();
    let object = noise(BLOCK + 100, 2);
    dir.write(&key(1), &[&object]).unwrap();
    if !dir.usage().is_direct {
        return skip("the page cache hides the broken disk");
    }
    let Some(()) = disk.break_disk(4096) else { return };
    let refused = dir.read_into(&key(1), 0, &mut vec![0; object.len()]);
    assert!(matches!(refused, Err(SpillError::Io { .. })), "{refused:?}");
}

/// Bytes of the annex that are sent to other nodes are read, not mapped. The other nodes get an error, and
/// this node survives.
#[test]
fn an_annex_that_cannot_be_read_is_an_error() {
    const MEMORY: u64 = 2 << 20;
    let Some(disk) = Mounted::ext4(64 << 20) else { return };
    let dir = Arc::new(SpillDir::open(disk.path(), u64::MAX, &SpillOptions::default()).unwrap());
    let arena = Arena::with_annex(MEMORY, Some(dir.annex().unwrap())).unwrap();
    let value = noise(8 << 20, 1);
    arena.allocate(MEMORY, value.len() as u64).unwrap();
    // As a client would write it, except that no page is mapped: mapped pages would stay in memory.
    let file = File::from(arena.annex_fd().unwrap().try_clone_to_owned().unwrap());
    file.write_all_at(&value, 0).unwrap();
    let reader = arena.disk_reader(MEMORY, value.len() as u64).unwrap();
    let mut back = vec![0; 1 << 20];
    reader.read_at(3 << 20, &mut back).unwrap();
    assert!(reader.total_bytes() == 8 << 20 && back == value[3 << 20..4 << 20]);
    file.sync_all().unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    let Some(()) = disk.break_disk(4096) else { return };
    let refused = reader.read_at(3 << 20, &mut back).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(Errno::IO.raw_os_error()), "{refused}");
    assert!(arena.disk_reader(0, 1).is_none(), "memory is no disk");
}

/// `spill-file`: "ENOSPC in the middle of a write": "no endless retry", also where the file system says it
/// has room.
#[test]
fn a_disk_that_promised_too_much_is_full_until_it_has_more() {
    let Some(disk) = Mounted::thin_ext4(512 << 20, 64 << 20) else { return };
    let dir = SpillDir::open(disk.path(), u64::MAX, &small_segments(16 << 20)).unwrap();
    let object = noise(2 * BLOCK, 1);
    let (stored, refused) = fill(&dir, &object);
    // Some kernels do not give the reason to the file system, which then sees only an error.
    if !matches!(refused, SpillError::NoSpace { .. }) {
        assert!(matches!(refused, SpillError::Io { .. } | SpillError::ReadOnly { .. }), "{refused:?}");
        return skip("this kernel does not tell a file system that its disk is full");
    }
    let before = (dir.usage().used_bytes, segment_files(disk.path()));
    assert!(100 << 20 < dir.usage().file_system_free_bytes, "it still promises");
    let again = dir.write(&key(500), &[b"x"]);
    assert!(matches!(again, Err(SpillError::NoSpace { .. })), "{again:?}");
    assert_eq!((dir.usage().used_bytes, segment_files(disk.path())), before, "nothing was tried");
    assert_eq!(dir.usage().condition, DirCondition::Full);
    stored.into_iter().for_each(|number| assert!(dir.remove(&key(number))));
    assert_eq!(dir.usage().condition, DirCondition::Usable, "what was removed is room");
}

/// `spill-file`: "power cut before fsync": nothing claims to be durable, and what is left is swept.
#[test]
fn after_a_power_cut_a_directory_begins_empty() {
    let Some(disk) = Mounted::ext4(96 << 20) else { return };
    let dir = SpillDir::open(disk.path(), u64::MAX, &SpillOptions::default()).unwrap();
    (0..4).for_each(|number| assert!(dir.write(&key(number), &[&noise(2 * BLOCK, number)]).is_ok()));
    // The folder itself has reached the disk; the state of its files is unspecified.
    rustix::fs::syncfs(fs::File::open(session_folder(disk.path())).unwrap()).unwrap();
    (4..6).for_each(|number| assert!(dir.write(&key(number), &[&noise(BLOCK, number)]).is_ok()));
    let Some(found) = disk.after_a_power_cut() else { return };
    assert!(session_folder(found.path()).exists(), "something is left to sweep");
    let next = SpillDir::open(found.path(), u64::MAX, &SpillOptions::default()).unwrap();
    assert!(segment_files(found.path()).is_empty());
    assert!((0..6).all(|number| next.len_of(&key(number)).is_none()));
    next.write(&key(0), &[b"anew"]).unwrap();
    let mut back = [0; 4];
    next.read_into(&key(0), 0, &mut back).unwrap();
    assert_eq!(&back, b"anew");
}

/// `spill-file`: "file deleted while referenced": its bytes can be read until it is closed, nothing more is
/// written to it, and the directory stays usable.
#[test]
fn a_deleted_file_is_read_to_its_end_and_takes_nothing_more() {
    let root = tempfile::tempdir().unwrap();
    let dir = SpillDir::open(root.path(), u64::MAX, &small_segments(3 * 8192)).unwrap();
    let object = |number| vec![number as u8; 5000];
    // The first file is full, the second has room.
    (0..3).for_each(|number| assert!(dir.write(&key(number), &[&object(number)]).is_ok()));
    let files = segment_files(root.path());
    assert_eq!(files.len(), 2);
    files.iter().for_each(|file| fs::remove_file(file).unwrap());
    (3..8).for_each(|number| assert!(dir.write(&key(number), &[&object(number)]).is_ok()));
    assert_eq!((dir.usage().condition, dir.usage().objects_count), (DirCondition::Usable, 8));
    assert!(segment_files(root.path()).iter().all(|file| !files.contains(file)), "in files of their own");
    for number in 0..8 {
        let mut back = [0; 5000];
        dir.read_into(&key(number), 0, &mut back).unwrap();
        assert!(back[..] == object(number) && dir.remove(&key(number)));
    }
    assert_eq!((dir.usage().used_bytes, dir.usage().segments_count), (0, 0));
}

/// `spill-file`: "file is a FIFO / device / symlink / directory": refused, not followed, not waited for.
#[test]
fn what_stands_where_a_file_should_go_is_not_touched() {
    type Plant = fn(&Path, &Path);
    let plants: [Plant; 4] = [
        |place, _| assert!(Command::new("mkfifo").arg(place).status().unwrap().success()),
        |place, victim| symlink(victim, place).unwrap(),
        |place, _| fs::create_dir(place).unwrap(),
        |place, _| fs::write(place, b"theirs").unwrap(),
    ];
    for plant in plants {
        let root = tempfile::tempdir().unwrap();
        let victim = root.path().join("victim");
        fs::write(&victim, b"precious").unwrap();
        let dir = SpillDir::open(&root.path().join("spill"), u64::MAX, &small_segments(8192)).unwrap();
        let place = session_folder(&root.path().join("spill")).join("segment-0");
        plant(&place, &victim);
        let before = fs::symlink_metadata(&place).unwrap().file_type();
        let refused = dir.write(&key(1), &[b"x"]);
        assert!(matches!(refused, Err(SpillError::Io { .. })), "{refused:?}");
        assert_eq!(dir.usage().objects_count, 0);
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
        assert_eq!(fs::symlink_metadata(&place).unwrap().file_type(), before);
        // The next file has another name.
        dir.write(&key(1), &[b"x"]).unwrap();
        assert_eq!((dir.usage().condition, dir.usage().objects_count), (DirCondition::Usable, 1));
    }
}

/// Fails the first writes with EDQUOT, and counts all writes.
struct OverQuota(AtomicU32);

impl Faults for OverQuota {
    fn before(&self, operation: Operation, _offset: u64) -> Option<io::Error> {
        let is_write = operation == Operation::Write;
        (is_write && self.0.fetch_add(1, Ordering::Relaxed) == 1).then(|| Errno::DQUOT.into())
    }
}

/// `spill-file`: "quota reached (EDQUOT)": same as a full disk. Quotas of the system do not bind the
/// superuser, so the error is injected.
#[test]
fn a_quota_of_the_system_is_a_full_disk() {
    let root = tempfile::tempdir().unwrap();
    let faults = Arc::new(OverQuota(AtomicU32::new(0)));
    let options = SpillOptions { faults: Some(faults.clone()), ..small_segments(1 << 20) };
    let dir = SpillDir::open(root.path(), u64::MAX, &options).unwrap();
    dir.write(&key(1), &[b"x"]).unwrap();
    let refused = dir.write(&key(2), &[b"x"]);
    assert!(matches!(refused, Err(SpillError::NoSpace { .. })), "{refused:?}");
    assert_eq!((dir.usage().condition, dir.usage().objects_count), (DirCondition::Full, 1));
    assert!(matches!(dir.write(&key(2), &[b"x"]), Err(SpillError::NoSpace { .. })));
    assert_eq!(faults.0.load(Ordering::Relaxed), 2, "not tried again");
    assert!(dir.remove(&key(1)));
    dir.write(&key(2), &[b"x"]).unwrap();
}
