//! Stable sorting by integer keys.
//!
//! Many items are dealt by the upper bits of their distance from the smallest key, until so few are left
//! together that they stay in the second-level cache. These are sorted by two digits, from the lower one to
//! the upper one; the digits are so wide that few items are equal in both, and those are sorted by
//! comparisons. No pass branches on a key. Before each step the range of keys is measured, so that keys
//! which lie close together, as those of floats do, are told apart as quickly as others.

/// Sorts items by their keys; those with equal keys keep their order. `scratch` is as long as `items`.
pub(crate) fn sort_by_key<P: Copy>(items: &mut [P], scratch: &mut [P], key: impl Fn(&P) -> u64 + Copy) {
    assert_eq!(items.len(), scratch.len(), "a place for each item");
    if items.len() <= FEW {
        return items.sort_by_key(key);
    }
    let Some(Range { low, bits }) = range(items, key) else { return };
    if items.len() <= IN_CACHE_BYTES / size_of::<P>().max(1) {
        let shift = bits.saturating_sub(2 * DIGIT_BITS);
        by_digits(items, scratch, |item| (key(item) - low) >> shift);
        if 0 < shift {
            finish(items, scratch, key, |item| (key(item) - low) >> shift);
        }
        return;
    }
    let shift = bits.saturating_sub(DIGIT_BITS);
    let ends = deal(items, scratch, |item| digit((key(item) - low) >> shift));
    let mut start = 0;
    for end in ends {
        let (part, to) = (&mut scratch[start..end], &mut items[start..end]);
        sort_by_key(part, to, key);
        to.copy_from_slice(part);
        start = end;
    }
}

/// The smallest key, and the number of bits that tell the others apart from it.
struct Range {
    low: u64,
    bits: u32,
}

/// The range of keys; `None` if the items are in order.
fn range<P>(items: &[P], key: impl Fn(&P) -> u64) -> Option<Range> {
    if items.is_sorted_by_key(&key) {
        return None;
    }
    let (mut low, mut high) = (u64::MAX, 0);
    for key in items.iter().map(key) {
        low = low.min(key);
        high = high.max(key);
    }
    Some(Range { low, bits: u64::BITS - (high - low).leading_zeros() })
}

/// The lowest digit of a number.
#[inline(always)]
fn digit(number: u64) -> usize {
    number as usize % DIGITS
}

/// Deals items by a digit to where those of each belong; the ends of these parts.
fn deal<P: Copy>(from: &[P], to: &mut [P], digit: impl Fn(&P) -> usize) -> [usize; DIGITS] {
    let mut counts = [0usize; DIGITS];
    from.iter().for_each(|item| counts[digit(item)] += 1);
    place(from, to, counts, digit)
}

/// Puts each item behind those of smaller digits, of which there are `counts`.
fn place<P: Copy>(
    from: &[P],
    to: &mut [P],
    counts: [usize; DIGITS],
    digit: impl Fn(&P) -> usize,
) -> [usize; DIGITS] {
    let mut ends = counts;
    let mut start = 0;
    for end in &mut ends {
        start += std::mem::replace(end, start);
    }
    for item in from {
        let end = &mut ends[digit(item)];
        to[*end] = *item;
        *end += 1;
    }
    ends
}

/// Sorts items by two digits.
fn by_digits<P: Copy>(items: &mut [P], scratch: &mut [P], prefix: impl Fn(&P) -> u64) {
    let (mut lower, mut upper) = ([0usize; DIGITS], [0usize; DIGITS]);
    for item in items.iter() {
        let prefix = prefix(item);
        lower[digit(prefix)] += 1;
        upper[digit(prefix >> DIGIT_BITS)] += 1;
    }
    place(items, scratch, lower, |item| digit(prefix(item)));
    place(scratch, items, upper, |item| digit(prefix(item) >> DIGIT_BITS));
}

/// Sorts items that are in the order of a part of their keys.
fn finish<P: Copy>(
    items: &mut [P],
    scratch: &mut [P],
    key: impl Fn(&P) -> u64 + Copy,
    prefix: impl Fn(&P) -> u64,
) {
    let mut at = 1;
    while at < items.len() {
        if key(&items[at - 1]) <= key(&items[at]) {
            at += 1;
            continue;
        }
        let of_run = prefix(&items[at]);
        let start = items[..at].iter().rposition(|item| prefix(item) != of_run).map_or(0, |last| last + 1);
        let run = items[at..].iter().position(|item| prefix(item) != of_run);
        let end = run.map_or(items.len(), |length| at + length);
        sort_by_key(&mut items[start..end], &mut scratch[start..end], key);
        at = end;
    }
}

/// So few items are sorted by comparisons.
pub(crate) const FEW: usize = 128;
/// Bits of a digit: as many lines as a first-level cache has are written beside one another.
const DIGIT_BITS: u32 = 9;
const DIGITS: usize = 1 << DIGIT_BITS;
/// Bytes of items that stay in a second-level cache together with their scratch.
const IN_CACHE_BYTES: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs of a key of these bits and a place.
    fn pairs(count: u64, key: impl Fn(u64) -> u64) -> Vec<(u64, u64)> {
        let mixed = |at: u64| (at + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29) ^ at;
        (0..count).map(|at| (key(mixed(mixed(at))), at)).collect()
    }

    fn is_sorted_as_a_stable_sort_does(items: Vec<(u64, u64)>) {
        let (mut expected, mut sorted) = (items.clone(), items);
        let mut scratch = sorted.clone();
        expected.sort_by_key(|&(key, _)| key);
        sort_by_key(&mut sorted, &mut scratch, |&(key, _)| key);
        assert!(sorted == expected, "{} items", sorted.len());
    }

    #[test]
    fn items_of_any_number_and_range_are_sorted_and_equal_ones_keep_their_order() {
        for count in [0, 1, 2, FEW as u64, FEW as u64 + 1, 3000, 8193, 100_000] {
            is_sorted_as_a_stable_sort_does(pairs(count, |mixed| mixed));
            is_sorted_as_a_stable_sort_does(pairs(count, |mixed| mixed % 3));
            is_sorted_as_a_stable_sort_does(pairs(count, |mixed| mixed % 1000 + (1 << 40)));
            is_sorted_as_a_stable_sort_does(pairs(count, |_| u64::MAX));
        }
    }

    #[test]
    fn keys_that_lie_close_together_beside_one_far_off_are_sorted() {
        let far = |mixed: u64| if mixed.is_multiple_of(5000) { u64::MAX } else { mixed % (1 << 20) };
        is_sorted_as_a_stable_sort_does(pairs(100_000, far));
        // Of each octave as many as of all below it.
        is_sorted_as_a_stable_sort_does(pairs(100_000, |mixed| mixed >> (mixed % 64)));
        // Equal in the upper digits of every step.
        is_sorted_as_a_stable_sort_does(pairs(5000, |mixed| ((mixed % 2) << 63) | (mixed % 4096)));
    }

    #[test]
    fn items_in_order_and_in_reverse_are_sorted() {
        is_sorted_as_a_stable_sort_does((0..50_000).map(|at| (at, at)).collect());
        is_sorted_as_a_stable_sort_does((0..50_000).map(|at| (50_000 - at / 2, at)).collect());
    }
}
