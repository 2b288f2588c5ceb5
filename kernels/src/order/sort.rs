//! Sorts of the elements of one chunk, or of pieces that become one.

use super::digits::{Digits, LEVEL_OF_SORTS};
use super::{Direction, Key, Ordered};
use crate::chunk::Buffer;
use crate::cpu::{Kernel, Level, dispatch};
use crate::radix;
use bytemuck::{Pod, Zeroable};

/// Sorts elements; equal ones keep their order.
pub(crate) fn sort_elements<T: Ordered>(elements: &mut [T], direction: Direction) {
    let key = |x: &T| direction.ascending(x.key());
    if !T::Key::IS_NARROW {
        return elements.sort_by_key(key);
    }
    let alike = told_apart_by_bits(elements);
    // Keys in place of the elements need no memory.
    let keys = bytemuck::cast_slice_mut::<T, T::Key>(elements);
    dispatch(IntoKeys::<T> { keys, direction });
    sort_keys(keys);
    dispatch(OutOfKeys::<T> { keys, direction });
    for alike in alike {
        let at = elements.partition_point(|x| key(x) < key(&alike[0]));
        elements[at..at + alike.len()].copy_from_slice(&alike);
    }
}

/// Sorts keys that are their own prefixes. Compiled for each type of keys, not for each of elements.
fn sort_keys<K: Key>(keys: &mut [K]) {
    if keys.len() <= radix::FEW {
        return keys.sort_unstable();
    }
    let mut memory = Buffer::for_overwrite(size_of_val(keys));
    sort_keys_by_way_of(keys, bytemuck::cast_slice_mut(memory.elements_mut::<u8>()));
}

/// As [`sort_keys`], by way of a place for as many keys or more.
fn sort_keys_by_way_of<K: Key>(keys: &mut [K], scratch: &mut [K]) {
    let scratch = &mut scratch[..keys.len()];
    radix::sort_by_key(keys, scratch, |key| key.prefix());
}

/// Sorts the elements of pieces that follow one another into one place; equal ones keep their order.
///
/// They are dealt from the pieces to parts of all keys that stay in the cache, each of which is then sorted.
pub(crate) fn sort_pieces<T: Ordered>(pieces: &[&[T]], to: &mut [T], direction: Direction) {
    assert_eq!(to.len(), pieces.iter().map(|piece| piece.len()).sum::<usize>(), "a place for each element");
    let survey = (T::Key::IS_NARROW && PART_LEN < to.len()).then(|| Survey::of(pieces, direction));
    let Some(Survey { are_plain: true, low, high }) = survey else {
        join(pieces.iter().copied(), to);
        return sort_elements(to, direction);
    };
    let bits = u64::BITS - (high - low).leading_zeros();
    // Two parts or more: keys of all bits cannot lose as many.
    let part_count = to.len().div_ceil(PART_LEN).next_power_of_two().min(PARTS_MAX);
    let digits = Digits::new(direction, low, high, bits.saturating_sub(part_count.ilog2()));
    let mut ends = vec![0usize; digits.count()];
    pieces.iter().for_each(|piece| digits.each(piece, |digit, _| ends[digit] += 1));
    let longest = ends.iter().copied().max().unwrap_or(0);
    let mut start = 0;
    for end in &mut ends {
        start += std::mem::replace(end, start);
    }
    let keys = bytemuck::cast_slice_mut::<T, T::Key>(to);
    let mut deal = |digit: usize, key| {
        keys[ends[digit]] = key;
        ends[digit] += 1;
    };
    pieces.iter().for_each(|piece| digits.each(piece, &mut deal));
    let mut memory = Buffer::for_overwrite(longest * size_of::<T>());
    let scratch = bytemuck::cast_slice_mut::<T, T::Key>(memory.elements_mut::<T>());
    let mut start = 0;
    for end in ends {
        let part = &mut keys[start..end];
        sort_keys_by_way_of(part, scratch);
        dispatch(OutOfKeys::<T> { keys: part, direction });
        start = end;
    }
}

/// Copies pieces to one place, one behind the other.
pub(crate) fn join<'a, T: Copy + 'a>(pieces: impl Iterator<Item = &'a [T]>, mut to: &mut [T]) {
    for piece in pieces {
        let (place, behind) = to.split_at_mut(piece.len());
        place.copy_from_slice(piece);
        to = behind;
    }
}

/// Elements of a part: the part and its scratch stay in the second-level cache, and the tables of its sort
/// are small beside it.
const PART_LEN: usize = 8 << 10;
/// Most parts that are filled beside one another: as many lines as the first-level cache has, or twice as
/// many.
const PARTS_MAX: usize = 1 << 10;
/// Elements that are surveyed at once.
const SURVEY_LEN: usize = 512;

/// The range of keys, and whether keys tell the bits of all elements.
struct Survey {
    are_plain: bool,
    low: u64,
    high: u64,
}

impl Survey {
    fn of<T: Ordered>(pieces: &[&[T]], direction: Direction) -> Survey {
        let none = Survey { are_plain: true, low: u64::MAX, high: 0 };
        pieces.iter().flat_map(|piece| piece.chunks(SURVEY_LEN)).fold(none, |all, elements| {
            let found = dispatch(SurveyOf { elements, direction });
            Survey {
                are_plain: all.are_plain & found.are_plain,
                low: all.low.min(found.low),
                high: all.high.max(found.high),
            }
        })
    }
}

/// Surveys elements. Without branches, so that it runs in vectors.
struct SurveyOf<'a, T> {
    elements: &'a [T],
    direction: Direction,
}

impl<T: Ordered> Kernel for SurveyOf<'_, T> {
    type Output = Survey;
    const LEVEL: Level = LEVEL_OF_SORTS;

    #[inline(always)]
    fn run(self) -> Survey {
        let mut survey = Survey { are_plain: true, low: u64::MAX, high: 0 };
        for x in self.elements {
            let prefix = self.direction.ascending(x.key()).prefix();
            survey.are_plain &= is_plain(x);
            survey.low = survey.low.min(prefix);
            survey.high = survey.high.max(prefix);
        }
        survey
    }
}

/// Replaces elements, given by their bits, by their keys.
struct IntoKeys<'a, T: Ordered> {
    keys: &'a mut [T::Key],
    direction: Direction,
}

impl<T: Ordered> Kernel for IntoKeys<'_, T> {
    type Output = ();
    const LEVEL: Level = LEVEL_OF_SORTS;

    #[inline(always)]
    fn run(self) {
        for place in self.keys {
            *place = self.direction.ascending(bytemuck::cast::<_, T>(*place).key());
        }
    }
}

/// Replaces keys by the bits of their elements.
struct OutOfKeys<'a, T: Ordered> {
    keys: &'a mut [T::Key],
    direction: Direction,
}

impl<T: Ordered> Kernel for OutOfKeys<'_, T> {
    type Output = ();
    const LEVEL: Level = LEVEL_OF_SORTS;

    #[inline(always)]
    fn run(self) {
        for place in self.keys {
            *place = bytemuck::cast(T::of_key(self.direction.ascending(*place)));
        }
    }
}

/// Whether all elements have the bits that [`Ordered::of_key`] gives.
struct ArePlain<'a, T>(&'a [T]);

impl<T: Ordered> Kernel for ArePlain<'_, T> {
    type Output = bool;
    const LEVEL: Level = LEVEL_OF_SORTS;

    #[inline(always)]
    fn run(self) -> bool {
        // No early end within a part, so that it runs in vectors.
        self.0.chunks(1024).all(|part| part.iter().fold(true, |all, x| all & is_plain(x)))
    }
}

/// Whether an element whose key is as wide as it is has the bits that [`Ordered::of_key`] gives.
#[inline(always)]
fn is_plain<T: Ordered>(x: &T) -> bool {
    bytemuck::cast::<T, T::Key>(T::of_key(x.key())) == bytemuck::cast::<T, T::Key>(*x)
}

/// The elements whose keys, as wide as they are, do not tell their bits: the zeros and the NaN, each in their
/// order; none of those that all have the bits that [`Ordered::of_key`] gives.
fn told_apart_by_bits<T: Ordered>(elements: &[T]) -> Vec<Vec<T>> {
    if dispatch(ArePlain(elements)) {
        return Vec::new();
    }
    let mut keys: Vec<T::Key> = Vec::new();
    for x in elements {
        if !is_plain(x) && !keys.contains(&x.key()) {
            keys.push(x.key());
        }
    }
    let with_key = |key| {
        let found = || elements.iter().filter(|x| x.key() == key);
        // Exactly as much memory as there are elements.
        let mut alike = Vec::with_capacity(found().count());
        alike.extend(found());
        alike
    };
    keys.into_iter().map(with_key).collect()
}

/// A key and the place of its element.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Placed {
    key: u64,
    place: u64,
}

/// Sorts keys with their places; equal ones keep their order.
fn sort_placed(placed: &mut [Placed], scratch: &mut [Placed]) {
    radix::sort_by_key(placed, scratch, |placed| placed.key);
}

/// Calls `each` with the places of elements in order; equal ones keep their order.
pub(crate) fn in_order<T: Ordered>(elements: &[T], direction: Direction, mut each: impl FnMut(usize)) {
    let key = |x: &T| direction.ascending(x.key());
    if elements.len() <= radix::FEW || !T::Key::IS_NARROW {
        let mut order: Vec<(T::Key, usize)> = elements.iter().map(key).zip(0..).collect();
        order.sort_unstable();
        return order.iter().for_each(|&(_, place)| each(place));
    }
    let mut memory = [(); 2].map(|()| Buffer::for_overwrite(elements.len() * size_of::<Placed>()));
    let [placed, scratch] = memory.each_mut().map(|memory| {
        &mut bytemuck::cast_slice_mut::<u64, Placed>(memory.elements_mut::<u64>())[..elements.len()]
    });
    for ((to, x), place) in placed.iter_mut().zip(elements).zip(0..) {
        *to = Placed { key: key(x).prefix(), place };
    }
    sort_placed(placed, scratch);
    placed.iter().for_each(|placed| each(placed.place as usize));
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_complex::Complex;

    /// Numbers of many magnitudes, zeros of both signs and NaN of several bits among them.
    fn numbers(count: u64) -> Vec<f64> {
        let number = |at: u64| {
            let mixed = (at + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23);
            match mixed % 50 {
                0 => 0.0,
                1 => -0.0,
                2 => f64::from_bits(f64::NAN.to_bits() | (mixed % 7)),
                3 => -f64::NAN,
                _ => f64::from_bits(mixed & !(1 << 62)),
            }
        };
        (0..count).map(number).collect()
    }

    #[test]
    fn many_elements_are_sorted_as_few_are_to_the_bit() {
        for direction in [Direction::Ascending, Direction::Descending] {
            let numbers = numbers(20_000);
            let (mut sorted, mut expected) = (numbers.clone(), numbers.clone());
            sort_elements(&mut sorted, direction);
            expected.sort_by(|a, b| direction.compare(&a.key(), &b.key()));
            let bits = |elements: &[f64]| elements.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert!(bits(&sorted) == bits(&expected), "{direction:?}");
            let mut ordered = Vec::new();
            in_order(&numbers, direction, |place| ordered.push(numbers[place]));
            assert!(bits(&ordered) == bits(&expected), "{direction:?}, positions");
            let small: Vec<i8> = numbers.iter().map(|x| x.to_bits() as i8).collect();
            let (mut sorted, mut expected) = (small.clone(), small);
            sort_elements(&mut sorted, direction);
            expected.sort_by(|a, b| direction.compare(a, b));
            assert!(sorted == expected, "{direction:?}, int8");
        }
    }

    #[test]
    fn few_elements_are_sorted_to_the_bit() {
        let numbers = numbers(3000);
        for direction in [Direction::Ascending, Direction::Descending] {
            for len in (0..=radix::FEW + 1).chain([2999]) {
                let (mut sorted, mut expected) = (numbers[..len].to_vec(), numbers[..len].to_vec());
                sort_elements(&mut sorted, direction);
                expected.sort_by(|a, b| direction.compare(&a.key(), &b.key()));
                let bits = |elements: &[f64]| elements.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&sorted), bits(&expected), "{len} {direction:?}");
            }
        }
    }

    /// Checks that pieces of these elements, of uneven lengths, are sorted together as a stable sort does.
    fn pieces_are_sorted<T: Ordered>(elements: &[T]) {
        let mut pieces: Vec<&[T]> = vec![&[]];
        let mut rest = elements;
        for len in [1, 0, 700, 3, 5000].into_iter().cycle().take(40) {
            let (piece, behind) = rest.split_at(len.min(rest.len()));
            pieces.push(piece);
            rest = behind;
        }
        pieces.push(rest);
        for direction in [Direction::Ascending, Direction::Descending] {
            let mut expected = elements.to_vec();
            expected.sort_by(|a, b| direction.compare(&a.key(), &b.key()));
            let mut sorted = vec![T::zeroed(); elements.len()];
            sort_pieces(&pieces, &mut sorted, direction);
            let bytes = |elements: &[T]| bytemuck::cast_slice::<T, u8>(elements).to_vec();
            assert!(bytes(&sorted) == bytes(&expected), "{} {direction:?}", T::DTYPE);
        }
    }

    #[test]
    fn pieces_of_many_elements_are_sorted_together_to_the_bit() {
        const LEN: u64 = 60_000;
        let numbers = numbers(LEN);
        let plain = |x: &f64| x.to_bits() != (-0.0f64).to_bits() && !x.is_nan();
        pieces_are_sorted(&numbers);
        pieces_are_sorted(&numbers.iter().copied().filter(plain).collect::<Vec<f64>>());
        // Nearly all in one part, and one far off.
        let close: Vec<f64> = (0..LEN).map(|at| 1.0 + (at * 7919 % 10_007) as f64 * 1e-12).collect();
        pieces_are_sorted(&[&close[..], &[1e300]].concat());
        pieces_are_sorted(&vec![3.5f32; LEN as usize]);
        pieces_are_sorted(&(0..LEN).map(|at| (at * 40_503) as i8).collect::<Vec<i8>>());
        let all_bits: Vec<u64> = (0..LEN).map(|at| at.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
        pieces_are_sorted(&all_bits);
        pieces_are_sorted(&all_bits[..PART_LEN + 1]);
        let complex = |pair: &[f64]| Complex::new(pair[0], pair[1]);
        pieces_are_sorted(&numbers.chunks_exact(2).map(complex).collect::<Vec<Complex<f64>>>());
        pieces_are_sorted::<i32>(&[]);
    }
}
