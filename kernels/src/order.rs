//! The order in which elements are sorted: NumPy's, in which NaN comes last and zeros of both signs are
//! equal.
//!
//! Every element has a key, a number whose own order is that of the elements. So comparisons are those of
//! integers, whatever the dtype.

use crate::chunk::Buffer;
use crate::cpu::{Kernel, dispatch};
use crate::element::{Bool, Element};
use crate::radix;
use bytemuck::{Pod, Zeroable};
use half::{bf16, f16};
use num_complex::Complex;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// An element with a place in the order of sorting.
pub trait Ordered: Element {
    /// Number whose order is that of the elements; equal for elements that sorting takes for equal.
    type Key: Key;
    /// The key of this element.
    fn key(self) -> Self::Key;
    /// An element with this key, which elements of one dtype have.
    fn of_key(key: Self::Key) -> Self;
}

/// The key of an element.
pub trait Key: Pod + Ord + Into<Wide> {
    /// Whether [`Key::prefix`] is the whole key.
    const IS_NARROW: bool;
    /// The upper 64 bits: of two keys, the smaller has no larger one.
    fn prefix(self) -> u64;
    /// The key of the opposite order.
    fn flipped(self) -> Self;
    /// The key that became this wide one.
    fn narrowed(wide: Wide) -> Self;
}

/// A key of any dtype: of two keys of one dtype, the smaller stays smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable, Serialize, Deserialize)]
#[repr(C)]
pub struct Wide {
    /// The upper half.
    pub high: u64,
    /// The lower half.
    pub low: u64,
}

/// Whether the smallest element comes first, or the largest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Direction {
    /// The smallest first, NaN last.
    Ascending,
    /// The largest first, NaN before it. Equal elements keep their order.
    Descending,
}

impl Direction {
    /// The order of two keys.
    #[inline(always)]
    pub fn compare<K: Ord>(self, a: &K, b: &K) -> Ordering {
        match self {
            Direction::Ascending => a.cmp(b),
            Direction::Descending => b.cmp(a),
        }
    }

    /// A key that ascends in this direction.
    #[inline(always)]
    pub fn ascending<K: Key>(self, key: K) -> K {
        match self {
            Direction::Ascending => key,
            Direction::Descending => key.flipped(),
        }
    }
}

impl Key for Wide {
    const IS_NARROW: bool = false;
    #[inline(always)]
    fn prefix(self) -> u64 {
        self.high
    }
    #[inline(always)]
    fn flipped(self) -> Wide {
        Wide { high: !self.high, low: !self.low }
    }
    #[inline(always)]
    fn narrowed(wide: Wide) -> Wide {
        wide
    }
}

macro_rules! unsigned {
    ($($ty:ty),*) => {$(
        impl From<$ty> for Wide {
            fn from(key: $ty) -> Wide {
                Wide { high: 0, low: u64::from(key) }
            }
        }
        impl Key for $ty {
            const IS_NARROW: bool = true;
            #[inline(always)]
            fn prefix(self) -> u64 { u64::from(self) }
            #[inline(always)]
            fn flipped(self) -> $ty { !self }
            #[inline(always)]
            fn narrowed(wide: Wide) -> $ty { wide.low as $ty }
        }
        impl Ordered for $ty {
            type Key = $ty;
            #[inline(always)]
            fn key(self) -> $ty { self }
            #[inline(always)]
            fn of_key(key: $ty) -> $ty { key }
        }
    )*};
}
unsigned!(u8, u16, u32, u64);

macro_rules! signed {
    ($($ty:ty as $unsigned:ty),*) => {$(
        impl Ordered for $ty {
            type Key = $unsigned;
            #[inline(always)]
            fn key(self) -> $unsigned { self as $unsigned ^ (1 << (<$unsigned>::BITS - 1)) }
            #[inline(always)]
            fn of_key(key: $unsigned) -> $ty { (key ^ (1 << (<$unsigned>::BITS - 1))) as $ty }
        }
    )*};
}
signed!(i8 as u8, i16 as u16, i32 as u32, i64 as u64);

impl Ordered for Bool {
    type Key = u8;
    #[inline(always)]
    fn key(self) -> u8 {
        self.0
    }
    #[inline(always)]
    fn of_key(key: u8) -> Bool {
        Bool(key)
    }
}

macro_rules! floats {
    ($($ty:ty as $bits:ty, $zero:expr;)*) => {$(
        impl Ordered for $ty {
            type Key = $bits;
            /// The bits of a float are ordered like its magnitude: those of negative ones are inverted, and
            /// positive ones put above them.
            #[inline(always)]
            fn key(self) -> $bits {
                if self.is_nan() {
                    return <$bits>::MAX;
                }
                let bits = if self == $zero { 0 } else { self.to_bits() };
                let sign = 1 << (<$bits>::BITS - 1);
                if bits & sign == 0 { bits | sign } else { !bits }
            }
            #[inline(always)]
            fn of_key(key: $bits) -> $ty {
                let sign = 1 << (<$bits>::BITS - 1);
                <$ty>::from_bits(if key & sign == 0 { !key } else { key ^ sign })
            }
        }
    )*};
}
floats! {
    f16 as u16, f16::from_bits(0);
    bf16 as u16, bf16::from_bits(0);
    f32 as u32, 0.0;
    f64 as u64, 0.0;
}

macro_rules! complex {
    ($($ty:ty),*) => {$(
        impl Ordered for Complex<$ty> {
            type Key = Wide;
            /// Ordered by the real part, then by the imaginary one. Those with a NaN part come behind all
            /// others: first those with only a NaN imaginary part, then those with only a NaN real part.
            #[inline]
            fn key(self) -> Wide {
                let (re, im) = (f64::from(self.re), f64::from(self.im));
                match (re.is_nan(), im.is_nan()) {
                    (false, false) => Wide { high: re.key(), low: im.key() },
                    (false, true) => Wide { high: NAN_IMAGINARY, low: re.key() },
                    (true, false) => Wide { high: NAN_REAL, low: im.key() },
                    (true, true) => Wide { high: u64::MAX, low: u64::MAX },
                }
            }
            fn of_key(Wide { high, low }: Wide) -> Complex<$ty> {
                let (first, second) = (f64::of_key(high) as $ty, f64::of_key(low) as $ty);
                match high {
                    NAN_IMAGINARY => Complex::new(second, <$ty>::NAN),
                    NAN_REAL => Complex::new(<$ty>::NAN, second),
                    u64::MAX => Complex::new(<$ty>::NAN, <$ty>::NAN),
                    _ => Complex::new(first, second),
                }
            }
        }
    )*};
}
complex!(f32, f64);

/// Upper halves of keys above that of infinity, which no number has.
const NAN_IMAGINARY: u64 = u64::MAX - 2;
const NAN_REAL: u64 = u64::MAX - 1;

/// Sorts elements; equal ones keep their order.
pub(crate) fn sort_elements<T: Ordered>(elements: &mut [T], direction: Direction) {
    let key = |x: &T| direction.ascending(x.key());
    if elements.len() <= radix::FEW || !T::Key::IS_NARROW {
        return elements.sort_by_key(key);
    }
    let alike = told_apart_by_bits(elements);
    let mut memory = Buffer::for_overwrite(size_of_val(elements));
    let scratch = &mut memory.elements_mut::<T>()[..elements.len()];
    // Keys in place of the elements need no memory.
    let (keys, scratch) =
        (bytemuck::cast_slice_mut::<T, T::Key>(elements), bytemuck::cast_slice_mut(scratch));
    dispatch(IntoKeys::<T> { keys, direction });
    radix::sort_by_key(keys, scratch, |key| key.prefix());
    dispatch(OutOfKeys::<T> { keys, direction });
    for alike in alike {
        let at = elements.partition_point(|x| key(x) < key(&alike[0]));
        elements[at..at + alike.len()].copy_from_slice(&alike);
    }
}

/// Sorts the elements of pieces that follow one another into one place; equal ones keep their order.
///
/// They are dealt from the pieces to parts of all keys that stay in the cache, each of which is then sorted.
pub(crate) fn sort_pieces<T: Ordered>(pieces: &[&[T]], to: &mut [T], direction: Direction) {
    assert_eq!(to.len(), pieces.iter().map(|piece| piece.len()).sum::<usize>(), "a place for each element");
    let survey = (T::Key::IS_NARROW && PART_LEN < to.len()).then(|| Survey::of(pieces, direction));
    let Some(Survey { are_plain: true, low, high }) = survey else {
        let mut rest = &mut *to;
        for piece in pieces {
            let (place, behind) = rest.split_at_mut(piece.len());
            place.copy_from_slice(piece);
            rest = behind;
        }
        return sort_elements(to, direction);
    };
    let bits = u64::BITS - (high - low).leading_zeros();
    let part_count = (to.len() / PART_LEN).next_power_of_two().min(PARTS_MAX);
    let shift = bits.saturating_sub(part_count.ilog2());
    let digits = Digits { direction, low, shift };
    let mut ends = vec![0usize; 1 + ((high - low) >> shift) as usize];
    digits.each(pieces, |digit, _| ends[digit] += 1);
    let longest = ends.iter().copied().max().unwrap_or(0);
    let mut start = 0;
    for end in &mut ends {
        start += std::mem::replace(end, start);
    }
    let keys = bytemuck::cast_slice_mut::<T, T::Key>(to);
    digits.each(pieces, |digit, key| {
        keys[ends[digit]] = key;
        ends[digit] += 1;
    });
    let mut memory = Buffer::for_overwrite(longest * size_of::<T>());
    let scratch = bytemuck::cast_slice_mut::<T, T::Key>(memory.elements_mut::<T>());
    let mut start = 0;
    for end in ends {
        let part = &mut keys[start..end];
        radix::sort_by_key(part, &mut scratch[..end - start], |key| key.prefix());
        dispatch(OutOfKeys::<T> { keys: part, direction });
        start = end;
    }
}

/// Elements of a part: the part and its scratch stay in the second-level cache, and the tables of its sort
/// are small beside it.
const PART_LEN: usize = 8 << 10;
/// Most parts that are filled beside one another: as many lines as the first-level cache has, or twice as
/// many.
const PARTS_MAX: usize = 1 << 10;
/// Elements whose keys are found before the first of them is used.
const AT_ONCE: usize = 512;

/// The range of keys, and whether keys tell the bits of all elements.
struct Survey {
    are_plain: bool,
    low: u64,
    high: u64,
}

impl Survey {
    fn of<T: Ordered>(pieces: &[&[T]], direction: Direction) -> Survey {
        let none = Survey { are_plain: true, low: u64::MAX, high: 0 };
        pieces.iter().flat_map(|piece| piece.chunks(AT_ONCE)).fold(none, |all, elements| {
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

/// A digit of keys: their distance from the lowest one without the lower bits.
#[derive(Clone, Copy)]
struct Digits {
    direction: Direction,
    low: u64,
    shift: u32,
}

impl Digits {
    /// Calls `visit` with the digit and the key of each element in turn.
    #[inline(always)]
    fn each<T: Ordered>(self, pieces: &[&[T]], mut visit: impl FnMut(usize, T::Key)) {
        let (mut digits, mut keys) = ([0; AT_ONCE], [T::Key::zeroed(); AT_ONCE]);
        for elements in pieces.iter().flat_map(|piece| piece.chunks(AT_ONCE)) {
            dispatch(FindDigits { of: self, elements, digits: &mut digits, keys: &mut keys });
            let found = digits.iter().zip(&keys).take(elements.len());
            found.for_each(|(&digit, &key)| visit(digit as usize, key));
        }
    }
}

/// Finds the digits and keys of elements. Without branches, so that it runs in vectors.
struct FindDigits<'a, T: Ordered> {
    of: Digits,
    elements: &'a [T],
    digits: &'a mut [u32; AT_ONCE],
    keys: &'a mut [T::Key; AT_ONCE],
}

impl<T: Ordered> Kernel for FindDigits<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for ((digit, key), x) in self.digits.iter_mut().zip(self.keys).zip(self.elements) {
            *key = self.of.direction.ascending(x.key());
            *digit = ((key.prefix() - self.of.low) >> self.of.shift) as u32;
        }
    }
}

/// Replaces elements, given by their bits, by their keys.
struct IntoKeys<'a, T: Ordered> {
    keys: &'a mut [T::Key],
    direction: Direction,
}

impl<T: Ordered> Kernel for IntoKeys<'_, T> {
    type Output = ();

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
    radix::sort_by_key(placed, scratch, |placed| placed.key);
    placed.iter().for_each(|placed| each(placed.place as usize));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that keys ascend strictly.
    fn ascending<T: Ordered>(elements: &[T]) {
        for pair in elements.windows(2) {
            let (a, b) = (pair[0].key(), pair[1].key());
            assert!(a < b && a.into() < b.into() && b.flipped() < a.flipped(), "{pair:?}");
            assert!(T::of_key(a).key() == a && T::Key::narrowed(a.into()) == a, "{pair:?}");
        }
    }

    #[test]
    fn keys_ascend_with_their_elements() {
        ascending(&[i8::MIN, -1, 0, 1, i8::MAX]);
        ascending(&[i64::MIN, -1, 0, 1, i64::MAX]);
        ascending(&[0, 1, u64::MAX]);
        ascending(&[Bool(0), Bool(1)]);
        let tiny = f64::from_bits(1);
        ascending(&[f64::NEG_INFINITY, -1.5, -tiny, 0.0, tiny, 1.5, f64::MAX, f64::INFINITY, f64::NAN]);
        ascending(&[f32::NEG_INFINITY, f32::MIN, -1.0, 0.0, 1.0, f32::INFINITY, f32::NAN]);
        ascending(&[f16::NEG_INFINITY, f16::from_f32(-1.0), f16::from_f32(0.0), f16::INFINITY, f16::NAN]);
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        let parts = [(-inf, 0.0), (0.0, -1.0), (0.0, 1.0), (1.0, -inf), (inf, inf), (1.0, nan), (2.0, nan)];
        let behind = [(nan, -1.0), (nan, inf), (nan, nan)];
        let all: Vec<Complex<f64>> =
            parts.iter().chain(&behind).map(|&(re, im)| Complex::new(re, im)).collect();
        ascending(&all);
    }

    #[test]
    fn zeros_are_equal_and_so_are_nans_of_any_bits() {
        assert_eq!((-0.0f64).key(), 0.0f64.key());
        assert_eq!((-f32::NAN).key(), f32::NAN.key());
        assert_eq!(Complex::new(-0.0, 0.0f32).key(), Complex::new(0.0, -0.0f32).key());
    }

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
        pieces_are_sorted(&(0..LEN).map(|at| at.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect::<Vec<u64>>());
        let complex = |pair: &[f64]| Complex::new(pair[0], pair[1]);
        pieces_are_sorted(&numbers.chunks_exact(2).map(complex).collect::<Vec<Complex<f64>>>());
        pieces_are_sorted::<i32>(&[]);
    }
}
