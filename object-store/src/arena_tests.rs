//! Tests of the arena and of its mappings.

use super::*;
use crate::annex::Quota;
use crate::error::NoSpace;
use rustix::fs::fstat;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

const PAGE: u64 = 4096;

fn arena() -> Arena {
    Arena::create(1).unwrap()
}

fn client(arena: &Arena) -> Arc<ArenaMap> {
    Arc::new(ArenaMap::from_fd(arena.fd(), arena.len()).unwrap())
}

fn faults_of_this_thread() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    let (_, behind_name) = stat.rsplit_once(')').unwrap();
    behind_name.split_whitespace().nth(7).unwrap().parse().unwrap()
}

#[test]
fn what_a_client_writes_the_others_read() {
    let arena = arena();
    assert_eq!(arena.len(), ARENA_UNIT_BYTES);
    let (writer, reader) = (client(&arena), client(&arena));
    writer.grant(PAGE, 2 * PAGE).unwrap();
    writer.make_pages(PAGE, 2 * PAGE).unwrap();
    let mut slot = writer.write(PAGE + 64, 100).unwrap();
    slot.fill(7);
    assert_eq!((slot.offset(), slot.len()), (PAGE + 64, 100));
    drop(slot);
    writer.retire(PAGE, 2 * PAGE).unwrap();
    for map in [&writer, &reader, arena.map()] {
        assert_eq!(map.read(PAGE + 64, 100).unwrap(), [7; 100]);
        assert_eq!(map.read(PAGE + 63, 1).unwrap(), [0]);
    }
    let slice = reader.slice(PAGE + 163, 2).unwrap();
    drop(reader);
    assert_eq!(slice.as_ref(), [7, 0]);
}

#[test]
fn only_granted_ranges_are_writable() {
    let arena = arena();
    let map = client(&arena);
    assert!(matches!(map.write(0, 1), Err(StoreError::NotGranted { .. })));
    assert!(matches!(map.grant(1, PAGE), Err(StoreError::Misaligned { .. })));
    assert!(matches!(map.grant(arena.len(), PAGE), Err(StoreError::OutOfBounds { .. })));
    assert!(matches!(map.grant(u64::MAX - PAGE + 1, PAGE), Err(StoreError::OutOfBounds { .. })));
    map.grant(0, PAGE).unwrap();
    map.grant(PAGE, PAGE).unwrap();
    map.write(PAGE - 8, 16).unwrap().fill(1);
    map.retire(0, PAGE).unwrap();
    assert!(matches!(map.write(PAGE - 8, 16), Err(StoreError::NotGranted { .. })));
    map.write(PAGE, PAGE).unwrap().fill(2);
    assert!(map.read(0, arena.len()).is_ok());
    assert!(map.read(1, arena.len()).is_err());
    assert!(map.read(u64::MAX, 2).is_err());
    arena.map().write(5 * PAGE, 64).unwrap().fill(3);
}

/// The older grant is of a region whose objects were freed, and their bytes granted anew, before it was
/// retired.
#[test]
fn a_grant_that_ends_leaves_a_newer_one_that_overlaps_it() {
    let arena = arena();
    let map = client(&arena);
    map.grant(0, 4 * PAGE).unwrap();
    map.grant(PAGE, 4 * PAGE).unwrap();
    let slot = map.write(PAGE, 64).unwrap();
    map.retire(0, 4 * PAGE).unwrap();
    drop(slot);
    assert!(matches!(map.write(0, 1), Err(StoreError::NotGranted { .. })));
    map.write(PAGE, 4 * PAGE).unwrap().fill(1);
    map.retire(PAGE, 4 * PAGE).unwrap();
    assert!(matches!(map.write(PAGE, 1), Err(StoreError::NotGranted { .. })));
}

#[test]
fn a_slot_is_exclusive_while_it_lives() {
    let arena = arena();
    let map = client(&arena);
    map.grant(0, 4 * PAGE).unwrap();
    let slot = map.write(64, 64).unwrap();
    let neighbour = map.write(128, 64).unwrap();
    assert!(matches!(map.write(127, 1), Err(StoreError::WriteUnderway { .. })));
    assert!(matches!(map.read(0, 65), Err(StoreError::WriteUnderway { .. })));
    assert!(matches!(map.retire(0, PAGE), Err(StoreError::WriteUnderway { .. })));
    drop(slot);
    assert!(map.read(0, 128).is_ok());
    assert!(map.read(0, 129).is_err());
    drop(neighbour);
    map.retire(0, PAGE).unwrap();
    map.retire(PAGE, 0).unwrap();
}

#[test]
fn pages_come_and_go() {
    let arena = Arena::create(32 << 20).unwrap();
    let blocks = || fstat(arena.fd()).unwrap().st_blocks as u64 * 512;
    assert_eq!(blocks(), 0);
    let map = arena.map();
    map.make_pages(100, 8 << 20).unwrap();
    map.make_pages(200, PAGE).unwrap();
    assert_eq!(blocks(), (8 << 20) + PAGE);
    map.write(PAGE, 8).unwrap().fill(9);
    arena.punch(PAGE - 1, 2 * PAGE).unwrap();
    assert_eq!(map.read(PAGE, 8).unwrap(), [0; 8]);
    let before = blocks();
    arena.punch(4 * PAGE, 2 * PAGE).unwrap();
    map.make_pages(4 * PAGE, 2 * PAGE).unwrap();
    assert_eq!(blocks(), before, "pages that were given back are made again");
    arena.punch(0, arena.len()).unwrap();
    assert!(map.make_pages(0, arena.len() + 1).is_err());
    assert!(arena.punch(arena.len(), 1).is_err());
}

#[test]
fn pages_that_another_wrote_are_mapped_and_those_between_are_made() {
    let arena = Arena::create(2 << 20).unwrap();
    let (first, second) = (client(&arena), client(&arena));
    first.grant(0, arena.len()).unwrap();
    for (page, value) in [(0, 1), (1, 2), (6, 3), (9, 4)] {
        first.write(page * PAGE, PAGE).unwrap().fill(value);
    }
    first.make_pages(3 * PAGE, PAGE).unwrap();
    first.retire(0, arena.len()).unwrap();
    second.grant(0, 12 * PAGE).unwrap();
    // Up to a page that was written, the range is mapped for reading, which makes the pages between too.
    second.make_pages(0, 10 * PAGE).unwrap();
    assert_eq!(fstat(arena.fd()).unwrap().st_blocks as u64 * 512, 10 * PAGE);
    second.make_pages(0, 12 * PAGE).unwrap();
    assert_eq!(fstat(arena.fd()).unwrap().st_blocks as u64 * 512, 12 * PAGE);
    let values: Vec<u8> = (0..12).map(|page| second.read(page * PAGE + 7, 1).unwrap()[0]).collect();
    assert_eq!(values, [1, 2, 0, 0, 0, 0, 3, 0, 0, 4, 0, 0]);
    let before = faults_of_this_thread();
    second.write(0, 12 * PAGE).unwrap().fill(5);
    assert!(faults_of_this_thread() < before + 6, "pages that were made are writable without a fault each");
    assert_eq!(first.read(0, 12 * PAGE).unwrap(), [5; 12 * PAGE as usize]);
}

#[test]
fn an_unsealed_or_wrong_file_is_refused() {
    let fd = memfd_create("unsealed", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    ftruncate(&fd, 4096).unwrap();
    assert!(matches!(ArenaMap::from_fd(&fd, 4096), Err(StoreError::Mismatch { .. })));
    let arena = arena();
    assert!(ArenaMap::from_fd(arena.fd(), arena.len() + 1).is_err());
    assert!(ftruncate(arena.fd(), 0).is_err());
    assert!(Arena::create(0).is_err());
    assert!(Arena::create(u64::MAX).is_err());
}

const MEMORY: u64 = ARENA_UNIT_BYTES;
const ANNEX: u64 = 4 * ARENA_UNIT_BYTES;

/// A quota of this many bytes.
struct Left(Arc<AtomicU64>);

impl Quota for Left {
    fn take(&self, bytes: u64) -> Result<(), NoSpace> {
        let available_bytes = self.0.load(Ordering::Relaxed);
        let over = NoSpace { needed_bytes: bytes, available_bytes, place: "a quota" };
        self.0.store(available_bytes.checked_sub(bytes).ok_or(over)?, Ordering::Relaxed);
        Ok(())
    }

    fn give(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    fn make_room(&self) -> bool {
        false
    }
}

/// An arena with an annex. Its folder is removed, since the annex does not need it any more.
fn with_annex() -> Arena {
    with_annex_of(&Arc::new(AtomicU64::new(u64::MAX)))
}

fn with_annex_of(left: &Arc<AtomicU64>) -> Arena {
    let folder = tempfile::tempdir().unwrap();
    let dir = fs::File::open(folder.path()).unwrap();
    let file = AnnexFile::create(dir.as_fd(), ANNEX + 1, Box::new(Left(Arc::clone(left)))).unwrap();
    assert_eq!((file.len(), fs::read_dir(folder.path()).unwrap().count()), (ANNEX, 0), "it has no name");
    Arena::with_annex(1, Some(file)).unwrap()
}

fn annex_client(arena: &Arena) -> Arc<ArenaMap> {
    let annex = (arena.annex_fd().unwrap(), arena.annex_len());
    Arc::new(ArenaMap::from_fds(arena.fd(), arena.len(), Some(annex)).unwrap())
}

#[test]
fn the_annex_is_behind_the_memory_and_has_blocks_where_something_is() {
    let arena = with_annex();
    assert_eq!((arena.len(), arena.annex_len(), arena.map().len()), (MEMORY, ANNEX, MEMORY + ANNEX));
    let blocks = || fstat(arena.annex_fd().unwrap()).unwrap().st_blocks as u64 * 512;
    assert_eq!(blocks(), 0);
    let len = 3 << 20;
    arena.allocate(MEMORY, len).unwrap();
    assert_eq!(blocks(), len);
    let (writer, reader) = (annex_client(&arena), annex_client(&arena));
    writer.grant(MEMORY, len).unwrap();
    let mut slot = writer.write(MEMORY, len).unwrap();
    let bytes = vec![7; len as usize];
    crate::copy_large(&mut slot, &[&bytes]).unwrap();
    drop(slot);
    writer.retire(MEMORY, len).unwrap();
    writer.grant(0, PAGE).unwrap();
    writer.write(0, 8).unwrap().fill(1);
    for map in [&writer, &reader, arena.map()] {
        assert_eq!(map.read(MEMORY, len).unwrap(), bytes);
        assert_eq!(map.read(0, 9).unwrap(), [1, 1, 1, 1, 1, 1, 1, 1, 0]);
    }
    assert_eq!((blocks(), arena.file_at(MEMORY + 5).1, arena.file_at(5).1), (len, 5, 5));
    arena.punch(MEMORY, len).unwrap();
    assert_eq!((blocks(), reader.read(MEMORY, 1).unwrap()), (0, &[0][..]));
    arena.map().make_pages(MEMORY, PAGE).unwrap();
    assert_eq!(blocks(), PAGE, "what the node itself writes gets blocks too");
}

#[test]
fn a_byte_of_the_annex_counts_once_and_as_long_as_it_has_a_block() {
    let left = Arc::new(AtomicU64::new(4 << 20));
    let arena = with_annex_of(&left);
    let left = || left.load(Ordering::Relaxed);
    arena.allocate(MEMORY, 2 << 20).unwrap();
    assert_eq!(left(), 2 << 20);
    // The node writes received bytes through its own map, in pieces, and may write into existing pages.
    arena.map().make_pages(MEMORY + (1 << 20), 2 << 20).unwrap();
    arena.map().make_pages(0, MEMORY).unwrap();
    assert_eq!(left(), 1 << 20);
    for refused in
        [arena.allocate(MEMORY, 5 << 20), arena.map().make_pages(MEMORY + (3 << 20), (1 << 20) + 1)]
    {
        let refused = refused.unwrap_err();
        let is_ours = |space: &NoSpace| space.place == "a quota" && space.available_bytes == 1 << 20;
        assert!(matches!(&refused, StoreError::NoSpace(space) if is_ours(space)), "{refused}");
    }
    let blocks = fstat(arena.annex_fd().unwrap()).unwrap().st_blocks as u64 * 512;
    assert_eq!((blocks, left()), (3 << 20, 1 << 20), "a range that is refused takes nothing");
    arena.punch(MEMORY, 5 << 20).unwrap();
    assert_eq!(left(), 4 << 20);
}

#[test]
fn no_range_is_in_memory_and_in_the_annex() {
    let arena = with_annex();
    let map = annex_client(&arena);
    assert!(matches!(map.read(MEMORY - 1, 2), Err(StoreError::OutOfBounds { .. })));
    assert!(matches!(map.grant(MEMORY - PAGE, 2 * PAGE), Err(StoreError::OutOfBounds { .. })));
    assert!(map.read(MEMORY + ANNEX, 1).is_err());
    assert!(arena.punch(MEMORY - PAGE, 2 * PAGE).is_err());
    let wrong = (arena.annex_fd().unwrap(), ANNEX - 1);
    let refused = ArenaMap::from_fds(arena.fd(), arena.len(), Some(wrong));
    assert!(matches!(refused, Err(StoreError::Mismatch { .. })));
}

#[test]
fn a_full_disk_is_an_error_and_no_signal() {
    let Some(disk) = crate::spill::mounted::Mounted::tmpfs("size=8m") else { return };
    let dir = fs::File::open(disk.path()).unwrap();
    let left = Arc::new(AtomicU64::new(u64::MAX));
    let file = AnnexFile::create(dir.as_fd(), u64::MAX, Box::new(Left(left))).unwrap();
    assert_eq!(file.len(), 8 << 20, "no more than the file system has");
    let arena = Arena::with_annex(1, Some(file)).unwrap();
    fs::write(disk.path().join("others"), vec![1; 6 << 20]).unwrap();
    let refused = arena.allocate(MEMORY, 4 << 20).unwrap_err();
    assert!(matches!(&refused, StoreError::NoSpace(space) if space.needed_bytes == 4 << 20), "{refused}");
    assert!(arena.map().make_pages(MEMORY, 4 << 20).is_err());
    arena.punch(MEMORY, 4 << 20).unwrap();
    arena.allocate(MEMORY, 1 << 20).unwrap();
    arena.map().write(MEMORY, 1 << 20).unwrap().fill(1);
}

#[test]
fn a_fork_reads_values_and_writes_none() {
    let arena = arena();
    assert_eq!(client(&arena).is_inherited(), (true, false));
    assert_eq!(arena.map().is_inherited(), (true, false));
}
