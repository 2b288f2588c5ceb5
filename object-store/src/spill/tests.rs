//! Objects in real files: a read returns the written bytes, or an error.

use super::dir::SpillDir;
use super::error::SpillError;
use super::header::{BLOCK_BYTES, Codec};
use super::options::SpillOptions;
use crate::transfer::ObjectKey;
use proptest::prelude::*;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread;

const BLOCK: usize = BLOCK_BYTES as usize;

pub(super) fn key(number: u64) -> ObjectKey {
    let mut key = [7; 20];
    key[..8].copy_from_slice(&number.to_le_bytes());
    key
}

/// Bytes that lz4 cannot make smaller.
pub(super) fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut bytes = vec![0; len];
    for chunk in bytes.chunks_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        chunk.copy_from_slice(&state.to_le_bytes()[..chunk.len()]);
    }
    bytes
}

/// Bytes that lz4 makes much smaller.
fn text(len: usize) -> Vec<u8> {
    (0..len).map(|at| b"the quick brown fox "[at % 20] ^ (at / 4000) as u8).collect()
}

pub(super) fn small_segments(segment_bytes: u64) -> SpillOptions {
    SpillOptions { segment_bytes, small_segments: true, ..SpillOptions::default() }
}

/// The segment files of the only session in a directory, in the order of their numbers.
pub(super) fn segment_files(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(dir)
        .unwrap()
        .flat_map(|session| fs::read_dir(session.unwrap().path()).unwrap())
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

fn read(dir: &SpillDir, number: u64) -> Result<Vec<u8>, SpillError> {
    let len = dir.len_of(&key(number)).unwrap_or(0);
    let mut bytes = vec![0xEE; len as usize];
    dir.read_into(&key(number), 0, &mut bytes).map(|()| bytes)
}

/// Both kinds of file system: one that is usually direct, one that may not be.
fn roots() -> Vec<tempfile::TempDir> {
    vec![tempfile::tempdir().unwrap(), tempfile::tempdir_in("/dev/shm").unwrap()]
}

#[test]
fn objects_of_every_length_come_back_from_any_memory() {
    for root in roots() {
        let dir = SpillDir::open(root.path(), u64::MAX, &SpillOptions::default()).unwrap();
        let lens = [0, 1, 4095, 4096, 4097, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 3 * BLOCK + 4097];
        for (number, &len) in lens.iter().enumerate() {
            let bytes = noise(len + 200, number as u64);
            let object = &bytes[number..number + len];
            // In three parts, cut at odd places.
            let (a, rest) = object.split_at(len / 3);
            let (b, c) = rest.split_at(rest.len() / 2);
            let written = dir.write(&key(number as u64), &[a, &[], b, c]).unwrap();
            assert_eq!((written.object_bytes, written.codec), (len as u64, Codec::Raw));
            assert!(read(&dir, number as u64).unwrap() == object, "{len} bytes");
        }
        assert!(matches!(dir.write(&key(1), &[b"again"]), Err(SpillError::Exists { .. })));
        assert_eq!(dir.len_of(&key(99)), None);
        assert!(matches!(read(&dir, 99), Err(SpillError::NotFound { .. })));
    }
}

#[test]
fn ranges_come_back_and_those_that_leave_the_object_are_refused() {
    let root = tempfile::tempdir().unwrap();
    let dir = SpillDir::open(root.path(), u64::MAX, &SpillOptions::default()).unwrap();
    let bytes = noise(3 * BLOCK + 100, 5);
    dir.write(&key(1), &[&bytes]).unwrap();
    let (end, block) = (bytes.len(), BLOCK);
    let ranges =
        [(0, 1), (block - 1, 2), (5, 2 * block), (block, block), (2 * block, block + 100), (end, 0), (7, 0)];
    for (start, len) in ranges {
        let mut target = vec![0; len];
        dir.read_into(&key(1), start as u64, &mut target).unwrap();
        assert!(target == bytes[start..start + len], "{start}+{len}");
    }
    for (start, len) in [(end as u64, 1), (u64::MAX, 2), (0, end + 1)] {
        let refused = dir.read_into(&key(1), start, &mut vec![0; len]);
        assert!(matches!(refused, Err(SpillError::OutOfRange { .. })), "{refused:?}");
    }
}

#[test]
fn on_a_slow_disk_what_shrinks_is_compressed_and_comes_back() {
    let root = tempfile::tempdir().unwrap();
    let slow = SpillOptions { bytes_per_s_max: Some(40_000_000), ..SpillOptions::default() };
    let dir = SpillDir::open(root.path(), u64::MAX, &slow).unwrap();
    let bytes = text(2 * BLOCK + 12_345);
    // The first object measures the disk.
    assert_eq!(dir.write(&key(0), &[&bytes[..BLOCK]]).unwrap().codec, Codec::Raw);
    let packed = dir.write(&key(1), &[&bytes]).unwrap();
    assert_eq!(packed.codec, Codec::Lz4);
    assert!(packed.stored_bytes < packed.object_bytes / 4, "{packed:?}");
    let mixed = [bytes.as_slice(), &noise(BLOCK, 1)].concat();
    dir.write(&key(2), &[&mixed[..100], &mixed[100..]]).unwrap();
    assert_eq!(dir.write(&key(3), &[&noise(BLOCK, 2)]).unwrap().codec, Codec::Raw);
    assert!(read(&dir, 1).unwrap() == bytes && read(&dir, 2).unwrap() == mixed);
    let mut part = vec![0; 1000];
    dir.read_into(&key(1), BLOCK as u64 - 500, &mut part).unwrap();
    assert_eq!(part, bytes[BLOCK - 500..BLOCK + 500]);
}

#[test]
fn writers_and_readers_at_once_do_not_meet() {
    let root = tempfile::tempdir().unwrap();
    let dir = SpillDir::open(root.path(), u64::MAX, &small_segments(1 << 20)).unwrap();
    thread::scope(|scope| {
        for writer in 0..4 {
            let dir = &dir;
            scope.spawn(move || {
                for round in 0..40 {
                    let number = writer * 1000 + round;
                    let bytes = noise(1000 + 7777 * round as usize, number);
                    dir.write(&key(number), &[&bytes]).unwrap();
                    assert!(read(dir, number).unwrap() == bytes);
                    if round % 3 != 0 {
                        assert!(dir.remove(&key(number)));
                    }
                    if round % 10 == 9 {
                        dir.compact(u64::MAX).unwrap();
                    }
                }
            });
        }
    });
    for number in (0..4).flat_map(|writer| (0..40).step_by(3).map(move |round| writer * 1000 + round)) {
        let bytes = noise(1000 + 7777 * (number % 1000) as usize, number);
        assert!(read(&dir, number).unwrap() == bytes);
        assert!(dir.remove(&key(number)) && !dir.remove(&key(number)));
    }
    let usage = dir.usage();
    assert_eq!((usage.used_bytes, usage.segments_count, usage.objects_count), (0, 0, 0));
    assert!(segment_files(root.path()).is_empty());
}

#[test]
fn compaction_moves_what_lives_in_sparse_segments_and_deletes_them() {
    let root = tempfile::tempdir().unwrap();
    let dir = SpillDir::open(root.path(), u64::MAX, &small_segments(1 << 20)).unwrap();
    for number in 0..64 {
        dir.write(&key(number), &[&noise(60_000, number)]).unwrap();
    }
    let full = dir.usage();
    (0..64).filter(|number| number % 4 != 0).for_each(|number| assert!(dir.remove(&key(number))));
    let done = dir.compact(u64::MAX).unwrap();
    let after = dir.usage();
    assert!(done.corrupt.is_empty());
    assert!(0 < done.moved_bytes && done.moved_bytes <= done.freed_bytes, "{done:?}");
    assert!(after.used_bytes <= full.used_bytes / 2, "{full:?} {after:?}");
    assert!(after.segments_count < full.segments_count);
    for number in (0..64).step_by(4) {
        assert!(read(&dir, number).unwrap() == noise(60_000, number));
    }
}

#[test]
fn long_dead_runs_are_given_back_where_they_are() {
    let root = tempfile::tempdir().unwrap();
    let dir = SpillDir::open(root.path(), 40 << 20, &SpillOptions::default()).unwrap();
    let object = noise(8 << 20, 1);
    (0..4).for_each(|number| assert!(dir.write(&key(number), &[&object]).is_ok()));
    assert!(matches!(dir.write(&key(9), &[&object]), Err(SpillError::Quota { .. })));
    (1..4).for_each(|number| assert!(dir.remove(&key(number))));
    // A write without room frees dead space by itself.
    dir.write(&key(9), &[&object]).unwrap();
    assert!(dir.usage().dead_bytes == 0 && dir.usage().used_bytes < 17 << 20, "{:?}", dir.usage());
    let blocks: u64 = segment_files(root.path())
        .iter()
        .map(|path| std::os::unix::fs::MetadataExt::blocks(&fs::metadata(path).unwrap()))
        .sum();
    assert!(blocks * 512 < 18 << 20, "{blocks} blocks of 512 bytes");
    assert!(read(&dir, 0).unwrap() == object && read(&dir, 9).unwrap() == object);
}

/// `spill-file`: "one bit flipped (header, body, trailer)", "truncated at every byte boundary".
#[test]
fn a_flipped_byte_or_a_cut_at_any_offset_is_found() {
    for root in roots() {
        let slow = SpillOptions { bytes_per_s_max: Some(1 << 20), ..SpillOptions::default() };
        // The first object measures the disk so that the second is compressed.
        for (options, object) in [(SpillOptions::default(), noise(5000, 3)), (slow, text(70_000))] {
            let dir = SpillDir::open(root.path(), u64::MAX, &options).unwrap();
            let lz4 = options.bytes_per_s_max.is_some();
            if lz4 {
                dir.write(&key(0), &[&noise(50_000, 1)]).unwrap();
                dir.remove(&key(0));
            }
            let written = dir.write(&key(1), &[&object]).unwrap();
            assert_eq!(written.codec == Codec::Lz4, lz4);
            every_damage_is_found(&dir, root.path(), &object, written.stored_bytes, lz4);
        }
    }
}

fn every_damage_is_found(dir: &SpillDir, root: &Path, object: &[u8], stored_bytes: u64, is_slow: bool) {
    let path = segment_files(root).pop().unwrap();
    let file = File::options().read(true).write(true).open(path).unwrap();
    assert_eq!(file.metadata().unwrap().len(), stored_bytes);
    let mut good = vec![0; stored_bytes as usize];
    file.read_exact_at(&mut good, 0).unwrap();
    // The slow disk is also slow to read: fewer offsets are tried there, with the ends of every part.
    let step = if is_slow { 499 } else { 1 };
    for at in (0..stored_bytes).step_by(step) {
        let flipped = good[at as usize] ^ (1 << (at % 8));
        file.write_all_at(&[flipped], at).unwrap();
        let found = read(dir, 1);
        assert!(matches!(found, Err(SpillError::Corrupt { .. })), "{found:?} at {at}");
        file.write_all_at(&good[at as usize..=at as usize], at).unwrap();
    }
    for len in (0..stored_bytes).rev().step_by(step) {
        file.set_len(len).unwrap();
        let found = read(dir, 1);
        assert!(matches!(found, Err(SpillError::ShortRead { .. })), "{found:?} at {len}");
    }
    file.write_all_at(&good, 0).unwrap();
    assert!(read(dir, 1).unwrap() == object);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_damage_to_a_larger_object_is_found_in_the_range_that_it_is_in(
        at in 0..2 * BLOCK as u64 + 5000,
        damage in prop::collection::vec(1..=255_u8, 1..50),
        start in 0..2 * BLOCK as u64,
        len in 0..BLOCK,
    ) {
        let root = tempfile::tempdir().unwrap();
        let dir = SpillDir::open(root.path(), u64::MAX, &SpillOptions::default()).unwrap();
        let object = noise(2 * BLOCK + 5000, at);
        dir.write(&key(1), &[&object]).unwrap();
        let file = File::options().read(true).write(true).open(&segment_files(root.path())[0]).unwrap();
        let mut old = vec![0; damage.len()];
        file.read_exact_at(&mut old, at).unwrap();
        let bad: Vec<u8> = old.iter().zip(&damage).map(|(old, damage)| old ^ damage).collect();
        file.write_all_at(&bad, at).unwrap();
        let mut target = vec![0; len];
        // Another block may be intact; a wrong byte is never returned.
        if dir.read_into(&key(1), start, &mut target).is_ok() {
            prop_assert!(target == object[start as usize..start as usize + len]);
        }
        let is_found = matches!(read(&dir, 1), Err(SpillError::Corrupt { .. }));
        prop_assert!(is_found);
    }
}
