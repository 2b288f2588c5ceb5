//! Tests of the store.

use super::*;
use tharsis_types::{FailureKind, JobId, TaskId};

const A: ClientId = ClientId(1);
const B: ClientId = ClientId(2);

fn object(n: u32) -> ObjectId {
    ObjectId::put(TaskId::root(JobId(1)), n)
}

#[test]
fn a_writer_that_dies_leaves_only_what_it_completed() {
    let mut store = Store::new(1 << 20);
    let region = store.grant(A, 65_536, &mut Vec::new()).unwrap();
    store.seal(A, object(0), Extent { offset: region.offset, len: 100 }).unwrap();
    store.check();
    store.client_gone(A);
    store.check();
    assert_eq!(store.usage().used_bytes, 128);
    store.free(object(0));
    assert_eq!(store.usage().used_bytes, 0);
}

#[test]
fn only_free_parts_of_own_regions_can_be_sealed() {
    let mut store = Store::new(1 << 20);
    let region = store.grant(A, 4096, &mut Vec::new()).unwrap();
    let first = Extent { offset: region.offset + 64, len: 64 };
    assert!(store.seal(B, object(0), first).is_err(), "of another client");
    store.seal(A, object(0), first).unwrap();
    assert!(store.seal(A, object(1), first).is_err(), "sealed already");
    assert!(store.seal(A, object(2), Extent { offset: region.offset + 4096, len: 64 }).is_err(), "outside");
    store.check();
}

#[test]
fn objects_of_a_region_can_be_sealed_in_any_order() {
    let mut store = Store::new(1 << 20);
    let region = store.grant(A, 4096, &mut Vec::new()).unwrap();
    let part = |n: u64| Extent { offset: region.offset + n * 64, len: 64 };
    for n in [3, 1, 0, 5, 2] {
        assert_eq!(store.seal(A, object(n), part(n.into())).unwrap(), part(n.into()));
        store.check();
        assert_eq!(store.usage().used_bytes, 4096, "what is between may still be written");
    }
    store.retire(A, region);
    store.check();
    assert_eq!(store.usage().used_bytes, 5 * 64, "what was never sealed is free");
}

#[test]
fn overlapping_objects_are_refused() {
    let mut store = Store::new(1 << 20);
    let region = store.grant(A, 4096, &mut Vec::new()).unwrap();
    let extent = |offset: u64, len: u64| Extent { offset: region.offset + offset, len };
    store.seal(A, object(0), extent(512, 512)).unwrap();
    for (offset, len) in [(512, 512), (448, 128), (960, 128), (576, 64), (0, 4096), (u64::MAX - 63, 64)] {
        let overlapping = Extent { offset: region.offset.wrapping_add(offset), len };
        let refused = store.seal(A, object(1), overlapping).unwrap_err();
        assert_eq!(refused.kind, FailureKind::InvalidArgument, "{offset}+{len}");
        store.check();
    }
    store.seal(A, object(2), extent(448, 64)).unwrap();
    store.seal(A, object(3), extent(1024, 64)).unwrap();
    store.client_gone(A);
    store.check();
    assert_eq!(store.usage().used_bytes, 512 + 128);
}

#[test]
fn pinned_objects_outlive_their_owners_free() {
    let mut store = Store::new(1 << 20);
    let region = store.grant(A, 4096, &mut Vec::new()).unwrap();
    store.seal(A, object(0), Extent { offset: region.offset, len: 64 }).unwrap();
    store.retire(A, region);
    store.pin(B, object(0)).unwrap();
    store.free(object(0));
    assert_eq!(store.usage().used_bytes, 64);
    store.client_gone(B);
    assert_eq!(store.usage().used_bytes, 0);
    store.check();
}

/// A node that reads a copy goes on where it broke off as long as the number is the same.
#[test]
fn a_copy_keeps_its_number_on_disk_and_the_next_copy_has_another() {
    let mut store = Store::new(1 << 20);
    let region = store.grant(A, 4096, &mut Vec::new()).unwrap();
    let part = |n: u64| Extent { offset: region.offset + n * 64, len: 64 };
    assert_eq!(store.copy_number(object(0)), None);
    store.seal(A, object(0), part(0)).unwrap();
    let first = store.copy_number(object(0)).unwrap();
    store.seal(A, object(0), part(1)).unwrap();
    assert_eq!(store.copy_number(object(0)), Some(first), "the first counts");
    store.begin_spill(object(0)).unwrap();
    store.spilled(object(0), true);
    store.drop_primary(object(0));
    assert!(!store.holds(object(0)) && store.is_spilled(object(0)));
    assert_eq!(store.copy_number(object(0)), Some(first));
    store.free(object(0));
    assert_eq!(store.copy_number(object(0)), None);
    store.receive(object(0), 64, &mut Vec::new()).unwrap();
    assert_eq!(store.copy_number(object(0)), None, "nobody reads half of it");
    store.received(object(0), true);
    let second = store.copy_number(object(0)).unwrap();
    assert!(first != 0 && second != 0 && first != second, "{first}, {second}");
    store.check();
}

#[test]
fn what_is_written_twice_counts_once_and_the_writer_keeps_what_it_looks_at() {
    let mut store = Store::new(1 << 20);
    let region = store.grant(A, 4096, &mut Vec::new()).unwrap();
    let [first, second, other] = [0, 64, 128].map(|at| Extent { offset: region.offset + at, len: 64 });
    assert_eq!(store.seal(A, object(0), first).unwrap(), first);
    assert_eq!(store.seal(A, object(0), second).unwrap(), first, "the first counts");
    store.keep_double(B, 7, second);
    store.keep_double(A, 7, second);
    store.seal(A, object(1), other).unwrap();
    store.retire(A, region);
    store.check();
    assert_eq!(store.usage().used_bytes, 3 * 64, "B has no region to keep anything in");
    store.drop_double(A, 7);
    store.check();
    assert_eq!(store.usage().used_bytes, 2 * 64);
    let region = store.grant(B, 4096, &mut Vec::new()).unwrap();
    store.keep_double(B, 1, Extent { offset: region.offset, len: 64 });
    store.client_gone(B);
    store.check();
    assert_eq!(store.usage().used_bytes, 2 * 64, "it goes with its writer");
}

#[test]
fn what_is_written_while_it_is_received_is_kept_and_the_copy_dropped() {
    let mut store = Store::new(1 << 20);
    let region = store.grant(A, 4096, &mut Vec::new()).unwrap();
    store.receive(object(0), 64, &mut Vec::new()).unwrap();
    let written = Extent { offset: region.offset, len: 64 };
    assert_eq!(store.seal(A, object(0), written).unwrap(), written);
    store.check();
    store.received(object(0), true);
    store.retire(A, region);
    store.check();
    assert_eq!((store.find(object(0)), store.usage().used_bytes), (Some(written), 64));
}

#[test]
fn unpinned_copies_make_room_oldest_first() {
    let mut store = Store::new(4 * 4096);
    for n in 0..4 {
        store.receive(object(n), 4096, &mut Vec::new()).unwrap();
        store.received(object(n), true);
    }
    store.pin(A, object(0)).unwrap();
    let mut evicted = Vec::new();
    store.grant(A, 8192, &mut evicted).unwrap();
    assert_eq!(evicted, [object(1), object(2)]);
    let full = store.grant(A, 8192, &mut evicted).unwrap_err();
    assert_eq!(full.kind, FailureKind::StoreFull);
    assert_eq!(store.grant(A, 4 * 4096 + 1, &mut evicted).unwrap_err().kind, FailureKind::ObjectTooLarge);
    store.check();
}

#[test]
fn d6_what_is_larger_than_the_store_lies_in_its_annex() {
    const STORE: u64 = 1 << 20;
    const ANNEX: u64 = 3 << 20;
    let mut store = Store::with_annex(STORE, ANNEX);
    let small = store.grant(A, 65_536, &mut Vec::new()).unwrap();
    assert!(small.offset < STORE);
    let len = STORE / 5 * 6;
    let region = store.grant(A, len, &mut Vec::new()).unwrap();
    assert!(STORE <= region.offset && region.offset.is_multiple_of(4096) && region.len >= len);
    let misplaced = Extent { offset: region.offset + 64, len: 64 };
    assert!(store.seal(A, object(0), misplaced).is_err(), "a page would belong to two");
    let lies = store.seal(A, object(0), Extent { offset: region.offset, len }).unwrap();
    store.retire(A, region);
    store.check();
    let used = store.usage();
    assert_eq!((used.used_bytes, used.annex_used_bytes), (65_536, region.len));
    assert_eq!(store.victim(), None, "it is on disk already");
    assert_eq!((store.pin(A, object(0)), store.pin(B, object(0))), (Some(lies), Some(lies)));
    let full = store.grant(B, 2 * STORE, &mut Vec::new()).unwrap_err();
    assert_eq!(full.kind, FailureKind::StoreFull);
    let refused = store.grant(B, ANNEX + 1, &mut Vec::new()).unwrap_err();
    assert_eq!(refused.kind, FailureKind::ObjectTooLarge);
    for size in [ANNEX + 1, STORE, ANNEX] {
        assert!(refused.message.contains(&size.to_string()), "{size} missing in {}", refused.message);
    }
    store.free(object(0));
    store.client_gone(A);
    assert_eq!(store.take_unneeded(), [], "it is mapped");
    store.client_gone(B);
    store.check();
    assert_eq!(store.take_unneeded(), [region]);
    assert!(store.grant(B, ANNEX, &mut Vec::new()).is_err(), "the disk has not given up the blocks");
    store.blocks_freed(region);
    store.check();
    assert_eq!(store.grant(B, ANNEX, &mut Vec::new()).unwrap(), Extent { offset: STORE, len: ANNEX });
    store.check();
}

#[test]
fn d6_copies_in_the_annex_make_room_there_and_nowhere_else() {
    const STORE: u64 = 1 << 20;
    let mut store = Store::with_annex(STORE, 4 * STORE);
    for n in 0..2 {
        store.receive(object(n), STORE + 1, &mut Vec::new()).unwrap();
        store.received(object(n), true);
    }
    store.check();
    let mut evicted = Vec::new();
    store.grant(A, STORE, &mut evicted).unwrap();
    assert_eq!(evicted, []);
    assert_eq!(store.grant(A, 3 * STORE, &mut evicted).unwrap_err().kind, FailureKind::StoreFull);
    assert_eq!(evicted, [object(0), object(1)], "both must go, and their blocks");
    for extent in store.take_unneeded() {
        store.blocks_freed(extent);
    }
    store.grant(A, 3 * STORE, &mut evicted).unwrap();
    store.check();
}

#[test]
fn a_freed_copy_that_is_looked_at_does_not_count_again_when_its_object_is_made_anew() {
    let mut store = Store::new(1 << 20);
    let region = store.grant(A, 4096, &mut Vec::new()).unwrap();
    let part = |n: u64| Extent { offset: region.offset + n * 64, len: 64 };
    store.seal(A, object(0), part(0)).unwrap();
    assert_eq!(store.pin(B, object(0)), Some(part(0)));
    store.free(object(0));
    assert_eq!(store.seal(A, object(0), part(1)), Ok(part(1)), "what is written now counts");
    assert_eq!(store.pin(B, object(0)), Some(part(1)));
    store.free(object(0));
    store.check();
    let received = store.receive(object(0), 64, &mut Vec::new()).unwrap();
    store.received(object(0), true);
    store.retire(A, region);
    store.check();
    assert_eq!((store.find(object(0)), store.usage().used_bytes), (Some(received), 3 * 64));
    assert!(store.unpin(B, object(0)) && store.pin_again(B, object(0)));
    store.check();
    assert_eq!(store.usage().used_bytes, 3 * 64, "nobody knows which of them it let go of");
    store.client_gone(B);
    store.check();
    assert_eq!(store.usage().used_bytes, 64);
}

#[test]
fn a_reader_of_a_replaced_copy_outlives_a_transfer_that_breaks_off() {
    let mut store = Store::new(1 << 20);
    store.receive(object(0), 64, &mut Vec::new()).unwrap();
    store.received(object(0), true);
    let pinned = store.pin(B, object(0)).unwrap();
    store.free(object(0));
    assert_eq!((store.find(object(0)), store.find_pinned(B, object(0))), (None, Some(pinned)));
    store.receive(object(0), 64, &mut Vec::new()).unwrap();
    assert_eq!((store.find_pinned(B, object(0)), store.find_pinned(A, object(0))), (Some(pinned), None));
    store.check();
    store.received(object(0), false);
    store.check();
    assert_eq!((store.find(object(0)), store.usage().used_bytes), (None, 64), "it is looked at");
    assert!(store.pin_again(B, object(0)) && store.unpin(B, object(0)));
    assert_eq!(store.usage().used_bytes, 64);
    assert!(store.unpin(B, object(0)));
    store.check();
    assert_eq!(store.usage().used_bytes, 0);
}
