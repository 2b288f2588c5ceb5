//! Tests of the arena and of its mappings.

use super::*;
use rustix::fs::fstat;

const PAGE: u64 = 4096;

fn arena() -> Arena {
    Arena::create(1).unwrap()
}

fn client(arena: &Arena) -> Arc<ArenaMap> {
    Arc::new(ArenaMap::from_fd(arena.fd(), arena.len()).unwrap())
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
