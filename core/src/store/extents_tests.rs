//! Tests of the arena's free ranges: their consistency, and the fill of an arena when a range does not fit.

use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;

proptest! {
    #[test]
    fn ranges_never_overlap_and_all_comes_back(ops in proptest::collection::vec((0u64..5000, any::<u16>()), 1..400)) {
        let mut extents = Extents::new(1 << 17);
        let mut taken: Vec<Extent> = Vec::new();
        for (len, choice) in ops {
            if choice % 3 > 0 {
                let new = if choice % 3 == 1 { extents.take(len) } else { extents.take_pages(len) };
                if let Some(new) = new {
                    prop_assert!(new.len >= len);
                    prop_assert!(choice % 3 == 1 || (new.offset % PAGE == 0 && new.len % PAGE == 0));
                    prop_assert!(taken.iter().all(|t| t.offset + t.len <= new.offset || new.offset + new.len <= t.offset));
                    taken.push(new);
                } else {
                    let needed = if choice % 3 == 1 { rounded(len) } else { len.max(1).next_multiple_of(PAGE) + PAGE };
                    prop_assert!(extents.largest_free_bytes() < needed, "there is a hole for it");
                }
            } else if !taken.is_empty() {
                let old = taken.swap_remove(choice as usize % taken.len());
                let half = rounded(old.len / 2).min(old.len);
                extents.give(Extent { offset: old.offset, len: half }).unwrap();
                let first_half = Extent { offset: old.offset, len: half };
                prop_assert!(extents.give(first_half).is_err(), "given twice");
                if half < old.len {
                    extents.give(Extent { offset: old.offset + half, len: old.len - half }).unwrap();
                }
            }
            prop_assert_eq!(extents.used_bytes(), taken.iter().map(|t| t.len).sum::<u64>());
            assert_books_agree(&extents);
        }
        for t in taken {
            extents.give(t).unwrap();
        }
        prop_assert_eq!(extents.largest_free_bytes(), 1 << 17);
    }

    #[test]
    fn from_a_mebibyte_on_ranges_begin_at_a_page(lens in proptest::collection::vec(1u64..40 << 20, 1..40)) {
        let mut extents = Extents::new(1 << 30);
        for len in lens {
            let Some(taken) = extents.take(len) else { continue };
            let align = if len < PAGED { ALIGN } else { PAGE };
            prop_assert!(taken.offset.is_multiple_of(align));
            prop_assert!(len <= taken.len && taken.offset + taken.len <= 1 << 30);
        }
    }
}

/// Asserts that both orders hold the same holes, and that no two of these touch.
fn assert_books_agree(extents: &Extents) {
    let mut by_class: Vec<Extent> = (0..CLASSES).flat_map(|class| extents.holes(class)).collect();
    by_class.sort_by_key(|hole| hole.offset);
    assert_eq!(by_class, extents.free().collect::<Vec<_>>());
    assert!(by_class.windows(2).all(|two| two[0].offset + two[0].len < two[1].offset));
    for class in 0..CLASSES {
        assert_eq!(extents.classes >> class & 1 == 1, !extents.by_class[class].is_empty());
    }
}

#[test]
fn ranges_outside_are_refused() {
    let mut extents = Extents::new(4096);
    assert!(extents.give(Extent { offset: 0, len: 64 }).is_err());
    assert!(extents.give(Extent { offset: u64::MAX - 63, len: 64 }).is_err());
    assert!(extents.take(4097).is_none());
    assert!(extents.take(u64::MAX).is_none() && extents.take_pages(u64::MAX).is_none());
    assert_eq!(extents.take(1), Some(Extent { offset: 0, len: 64 }));
}

#[test]
fn small_and_large_ranges_grow_towards_each_other() {
    let mut extents = Extents::new(1 << 30);
    let small = extents.take(100).unwrap();
    let large = extents.take(SMALL_MAX + 1).unwrap();
    assert_eq!(small.offset, 0);
    assert!((1 << 30) - PAGE < large.offset + large.len);
}

/// The size of the arena of the traces; nothing is stored in it.
const ARENA: u64 = 4 << 30;
/// Number of runs of each trace, with different random numbers.
const RUNS: u64 = 40;

/// The next of a sequence of numbers that look random (xorshift).
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// A size of 1 KB to 256 MB; each factor of two is as likely as any other.
fn size(state: &mut u64) -> u64 {
    let exponent = (next(state) >> 11) as f64 / (1u64 << 53) as f64;
    (1e3 * 256e3f64.powf(exponent)) as u64
}

fn share_in_use(extents: &Extents) -> f64 {
    extents.used_bytes() as f64 / ARENA as f64
}

/// Adds objects. When one does not fit, the oldest are freed until it does, as in a node that evicts and
/// spills. Returns the mean share of the arena in use when an object did not fit at once.
fn objects_that_go_in_the_order_they_came(state: &mut u64) -> f64 {
    let mut extents = Extents::new(ARENA);
    let mut live = VecDeque::new();
    let mut shares = Vec::new();
    for _ in 0..3000 {
        let len = size(state);
        let mut found = extents.take(len);
        if found.is_none() {
            shares.push(share_in_use(&extents));
        }
        while found.is_none() {
            extents.give(live.pop_front().unwrap()).unwrap();
            found = extents.take(len);
        }
        live.extend(found);
    }
    shares.iter().sum::<f64>() / shares.len() as f64
}

/// Adds 3000 objects and frees others in any order, so that at most seven tenths are in use; then only adds.
/// Returns the share of the arena in use when an object did not fit.
fn objects_that_die_in_any_order(state: &mut u64) -> f64 {
    let mut extents = Extents::new(ARENA);
    let mut live = Vec::new();
    for _ in 0..3000 {
        let len = size(state);
        while 0.7 * (ARENA as f64) < (extents.used_bytes() + len) as f64 {
            let dying = live.swap_remove(next(state) as usize % live.len());
            extents.give(dying).unwrap();
        }
        live.extend(extents.take(len));
    }
    while extents.take(size(state)).is_some() {}
    share_in_use(&extents)
}

/// The mean over runs of a trace.
fn mean(trace: fn(&mut u64) -> f64) -> f64 {
    let runs = (1..=RUNS).map(|run| trace(&mut run.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    runs.sum::<f64>() / RUNS as f64
}

#[test]
fn nine_tenths_are_in_use_before_something_does_not_fit() {
    let in_order = mean(objects_that_go_in_the_order_they_came);
    assert!(0.9 <= in_order, "{in_order}");
    let in_any_order = mean(objects_that_die_in_any_order);
    assert!(0.9 <= in_any_order, "{in_any_order}");
    println!("in use when something does not fit: {in_order:.3} in order, {in_any_order:.3} in any order");
}
