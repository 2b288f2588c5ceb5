//! Several cheap steps in one loop: a source, one or two maps, and a destination.
//!
//! A separate step costs a load and a store per element, which is most of the time of an addition. The chains
//! here are a list, not a rule: float64 sources through an addition and a product, or a square, stored, added
//! up in pairs, or summed. Other combinations form a group (`super::group`), in which a chain is a source.
//! The list stays because a source, a map and a sum in one loop are a fifth faster than in a group. The
//! arithmetic is that of the separate steps, operation by operation, so results are the same to the bit.

use crate::chunk::Buffer;
use crate::cpu::{self, Kernel, Raised};
use crate::fold::{LANES, add_lanes};
use crate::layout::{Layout, Run};
use crate::program::{ChainMap, IndexMap};
use crate::raised::{Function, Warnings, watched};
use crate::random::Key;
use crate::stream::{LINE_NUMBERS, Line, Stream};
use crate::ufunc::{BinaryOp, Operand, UnaryOp};
use std::hint::black_box;
use std::ops::Range;

/// Source of the elements of a chain, for one block.
#[derive(Clone, Copy)]
pub(super) enum ChainInput<'a> {
    Block(Operand<'a>),
    Index { source: IndexSource, layout: &'a Layout },
}

/// A function of the index that a chain can compute itself; values of other functions are read from a block.
#[derive(Clone, Copy, Debug)]
pub(super) enum IndexSource {
    Position,
    Ramp { start: f64, step: f64 },
    Uniform(Key),
}

impl IndexSource {
    pub(super) fn of(map: IndexMap) -> Option<IndexSource> {
        match map {
            IndexMap::Position => Some(IndexSource::Position),
            IndexMap::Ramp { start, step } => Some(IndexSource::Ramp { start, step }),
            IndexMap::Uniform(key) => Some(IndexSource::Uniform(key)),
            IndexMap::OpenUnit(_) | IndexMap::Below { .. } => None,
        }
    }
}

/// Writes the values of the elements `start..end` of the input, or if `pairs` the sums of neighbours.
pub(super) fn store(
    map: ChainMap,
    input: ChainInput<'_>,
    pairs: bool,
    start: usize,
    end: usize,
    out: &mut Buffer,
) {
    let width = if pairs { 2 } else { 1 };
    let out = &mut out.elements_mut::<f64>()[..(end - start) / width];
    let mut at = 0;
    each_source(input, start, end, |source, len| {
        let out = &mut out[at / width..(at + len) / width];
        if pairs {
            with_source(source, map, Pairs { out })
        } else {
            with_source(source, map, Store { out })
        }
        at += len;
    });
}

/// Writes the values of the elements `start..end` of the input with stores that bypass the cache.
pub(super) fn store_around(
    map: ChainMap,
    input: ChainInput<'_>,
    start: usize,
    end: usize,
    out: &mut [f64],
    stream: &mut Stream,
) {
    let mut at = 0;
    each_source(input, start, end, |source, len| {
        with_source(source, map, Around { out: &mut out[at..at + len], stream });
        at += len;
    });
}

/// The sum of the values of the elements `start..end` of the input.
pub(super) fn sum(map: ChainMap, input: ChainInput<'_>, start: usize, end: usize) -> f64 {
    let mut total = 0.0;
    each_source(input, start, end, |source, len| total += with_source(source, map, Sum { len }));
    total
}

/// If flags were raised by a chain in the elements `range` of its input, runs its operations one by one to
/// find out which of them raised a condition, and notes warnings for these.
pub(super) fn attribute(
    raised: Raised,
    map: ChainMap,
    input: ChainInput<'_>,
    range: Range<usize>,
    pairs: bool,
    warnings: &mut Warnings,
) {
    if !raised.any() {
        return;
    }
    let mut values = Buffer::for_overwrite(range.len() * size_of::<f64>());
    store(ChainMap::Identity, input, false, range.start, range.end, &mut values);
    let values = &mut values.elements_mut::<f64>()[..range.len()];
    let mut apply = |function: Function, f: &dyn Fn(f64) -> f64| {
        watched(function, warnings, || {
            values.iter_mut().for_each(|x| *x = f(*x));
            black_box(&mut *values);
        });
    };
    let (sum, product) = (Function::Binary(BinaryOp::Add), Function::Binary(BinaryOp::Multiply));
    match map {
        ChainMap::Identity => {}
        ChainMap::Add { addend } => apply(sum, &|x| x + addend),
        ChainMap::Mul { factor } => apply(product, &|x| x * factor),
        ChainMap::AddMul { addend, factor } => {
            apply(sum, &|x| x + addend);
            apply(product, &|x| x * factor);
        }
        ChainMap::MulAdd { factor, addend } => {
            apply(product, &|x| x * factor);
            apply(sum, &|x| x + addend);
        }
        ChainMap::Square => apply(Function::Unary(UnaryOp::Square), &|x| x * x),
    }
    if pairs {
        watched(Function::Reduce, warnings, || {
            for pair in values.chunks_exact(2) {
                black_box(pair[0] + pair[1]);
            }
        });
    }
}

/// Writes the values of a function of the index over one run.
pub(super) fn store_run(source: IndexSource, run: Run, out: &mut [f64]) {
    with_source(index_source(source, run), ChainMap::Identity, Store { out });
}

fn index_source<'a>(source: IndexSource, run: Run) -> AnySource<'a> {
    match source {
        IndexSource::Position => AnySource::Position(run),
        IndexSource::Ramp { start, step } => AnySource::Ramp(run, start, step),
        IndexSource::Uniform(key) => AnySource::Uniform(run, key),
    }
}

#[derive(Clone, Copy)]
enum AnySource<'a> {
    Block(&'a [f64]),
    Position(Run),
    Ramp(Run, f64, f64),
    Uniform(Run, Key),
}

/// Calls `visit` with a source for each run of the input.
fn each_source<'a>(
    input: ChainInput<'a>,
    start: usize,
    end: usize,
    mut visit: impl FnMut(AnySource<'a>, usize),
) {
    match input {
        ChainInput::Block(Operand::Block(buffer, offset)) => {
            visit(AnySource::Block(&buffer.elements()[offset..offset + end - start]), end - start);
        }
        ChainInput::Block(Operand::One(_)) => {}
        ChainInput::Index { source, layout } => {
            layout.for_each_run(start, end, |run| visit(index_source(source, run), run.len));
        }
    }
}

/// A source, read in groups of elements. The part that the elements of a group share is computed once per
/// group (`Cursor`), the part that depends on the place in the group once per block (`Lane`). So an element
/// of an index function costs one addition and not two products.
trait SourceFn {
    type Cursor: Copy;
    type Lane: Copy;
    /// Value shared by all elements `i` places behind the beginning of a group.
    fn lane(&self, i: usize) -> Self::Lane;
    /// Value shared by the elements `at..at + len`.
    fn cursor(&self, at: usize, len: usize) -> Self::Cursor;
    /// The element `i` places behind the beginning of a group.
    fn value(&self, cursor: Self::Cursor, lane: Self::Lane, i: usize) -> f64;
}

struct Block<'a>(&'a [f64]);
impl<'a> SourceFn for Block<'a> {
    type Cursor = &'a [f64];
    type Lane = ();
    #[inline(always)]
    fn lane(&self, _: usize) {}
    #[inline(always)]
    fn cursor(&self, at: usize, len: usize) -> &'a [f64] {
        &self.0[at..at + len]
    }
    #[inline(always)]
    fn value(&self, cursor: &'a [f64], (): (), i: usize) -> f64 {
        cursor[i]
    }
}

struct Position(Run);
impl SourceFn for Position {
    type Cursor = i64;
    type Lane = i64;
    #[inline(always)]
    fn lane(&self, i: usize) -> i64 {
        (i as i64).wrapping_mul(self.0.stride)
    }
    #[inline(always)]
    fn cursor(&self, at: usize, _: usize) -> i64 {
        self.0.offset.wrapping_add((at as i64).wrapping_mul(self.0.stride))
    }
    #[inline(always)]
    fn value(&self, cursor: i64, lane: i64, _: usize) -> f64 {
        cursor.wrapping_add(lane) as f64
    }
}

struct Ramp(Position, f64, f64);
impl SourceFn for Ramp {
    type Cursor = i64;
    type Lane = i64;
    #[inline(always)]
    fn lane(&self, i: usize) -> i64 {
        self.0.lane(i)
    }
    #[inline(always)]
    fn cursor(&self, at: usize, len: usize) -> i64 {
        self.0.cursor(at, len)
    }
    #[inline(always)]
    fn value(&self, cursor: i64, lane: i64, i: usize) -> f64 {
        self.1 + self.0.value(cursor, lane, i) * self.2
    }
}

struct Uniform(Position, Key);
impl SourceFn for Uniform {
    type Cursor = u64;
    type Lane = u64;
    #[inline(always)]
    fn lane(&self, i: usize) -> u64 {
        Key::scale(self.0.lane(i) as u64)
    }
    #[inline(always)]
    fn cursor(&self, at: usize, len: usize) -> u64 {
        Key::scale(self.0.cursor(at, len) as u64)
    }
    #[inline(always)]
    fn value(&self, cursor: u64, lane: u64, _: usize) -> f64 {
        self.1.uniform_scaled(cursor.wrapping_add(lane))
    }
}

trait MapFn: Copy {
    fn apply(self, x: f64) -> f64;
}

#[derive(Clone, Copy)]
struct Identity;
impl MapFn for Identity {
    #[inline(always)]
    fn apply(self, x: f64) -> f64 {
        x
    }
}

#[derive(Clone, Copy)]
struct Add(f64);
impl MapFn for Add {
    #[inline(always)]
    fn apply(self, x: f64) -> f64 {
        x + self.0
    }
}

#[derive(Clone, Copy)]
struct Mul(f64);
impl MapFn for Mul {
    #[inline(always)]
    fn apply(self, x: f64) -> f64 {
        x * self.0
    }
}

/// One after the other.
#[derive(Clone, Copy)]
struct Then<A, B>(A, B);
impl<A: MapFn, B: MapFn> MapFn for Then<A, B> {
    #[inline(always)]
    fn apply(self, x: f64) -> f64 {
        self.1.apply(self.0.apply(x))
    }
}

#[derive(Clone, Copy)]
struct Square;
impl MapFn for Square {
    #[inline(always)]
    fn apply(self, x: f64) -> f64 {
        x * x
    }
}

/// Destination of the values.
trait Sink {
    type Output;
    fn take<S: SourceFn, M: MapFn>(self, source: S, map: M) -> Self::Output;
}

struct Store<'a> {
    out: &'a mut [f64],
}
impl Sink for Store<'_> {
    type Output = ();
    #[inline(always)]
    fn take<S: SourceFn, M: MapFn>(self, source: S, map: M) {
        let lanes: [S::Lane; LANES] = std::array::from_fn(|i| source.lane(i));
        let mut groups = self.out.chunks_exact_mut(LANES);
        let mut at = 0;
        for group in &mut groups {
            let cursor = source.cursor(at, LANES);
            for (i, (out, &lane)) in group.iter_mut().zip(&lanes).enumerate() {
                *out = map.apply(source.value(cursor, lane, i));
            }
            at += LANES;
        }
        for out in groups.into_remainder() {
            *out = map.apply(source.value(source.cursor(at, 1), lanes[0], 0));
            at += 1;
        }
    }
}

/// Destination that writes whole lines with stores that bypass the cache.
struct Around<'a> {
    out: &'a mut [f64],
    stream: &'a mut Stream,
}
impl Sink for Around<'_> {
    type Output = ();
    #[inline(always)]
    fn take<S: SourceFn, M: MapFn>(self, source: S, map: M) {
        let lanes: [S::Lane; LANES] = std::array::from_fn(|i| source.lane(i));
        let single = |at: usize| map.apply(source.value(source.cursor(at, 1), lanes[0], 0));
        let (head, lines, _) = bytemuck::pod_align_to_mut::<f64, Line>(self.out);
        let mut at = head.len();
        let mut groups = lines.chunks_exact_mut(LANES / LINE_NUMBERS);
        for group in &mut groups {
            let cursor = source.cursor(at, LANES);
            for (line, first) in group.iter_mut().zip((0..LANES).step_by(LINE_NUMBERS)) {
                let value = |i: usize| map.apply(source.value(cursor, lanes[first + i], first + i));
                self.stream.line(line, std::array::from_fn(value));
            }
            at += LANES;
        }
        let head = head.len();
        self.out[..head].iter_mut().enumerate().for_each(|(i, out)| *out = single(i));
        self.out[at..].iter_mut().zip(at..).for_each(|(out, i)| *out = single(i));
    }
}

struct Pairs<'a> {
    out: &'a mut [f64],
}
impl Sink for Pairs<'_> {
    type Output = ();
    #[inline(always)]
    fn take<S: SourceFn, M: MapFn>(self, source: S, map: M) {
        let even: [S::Lane; LANES / 2] = std::array::from_fn(|i| source.lane(2 * i));
        let odd: [S::Lane; LANES / 2] = std::array::from_fn(|i| source.lane(2 * i + 1));
        let mut groups = self.out.chunks_exact_mut(LANES / 2);
        let mut at = 0;
        for group in &mut groups {
            let cursor = source.cursor(at, LANES);
            for i in 0..LANES / 2 {
                let first = map.apply(source.value(cursor, even[i], 2 * i));
                group[i] = first + map.apply(source.value(cursor, odd[i], 2 * i + 1));
            }
            at += LANES;
        }
        for out in groups.into_remainder() {
            let cursor = source.cursor(at, 2);
            *out = map.apply(source.value(cursor, even[0], 0)) + map.apply(source.value(cursor, odd[0], 1));
            at += 2;
        }
    }
}

struct Sum {
    len: usize,
}
impl Sink for Sum {
    type Output = f64;
    /// Sums in the same lanes as `block_sum`.
    #[inline(always)]
    fn take<S: SourceFn, M: MapFn>(self, source: S, map: M) -> f64 {
        let lanes: [S::Lane; LANES] = std::array::from_fn(|i| source.lane(i));
        let mut sums = [0.0f64; LANES];
        let whole = self.len / LANES * LANES;
        let mut at = 0;
        while at < whole {
            let cursor = source.cursor(at, LANES);
            for (i, (sum, &lane)) in sums.iter_mut().zip(&lanes).enumerate() {
                *sum += map.apply(source.value(cursor, lane, i));
            }
            at += LANES;
        }
        for (i, sum) in sums.iter_mut().enumerate().take(self.len - whole) {
            *sum += map.apply(source.value(source.cursor(whole + i, 1), lanes[0], 0));
        }
        add_lanes(sums)
    }
}

struct Chain<S, M, K> {
    source: S,
    map: M,
    sink: K,
}

impl<S: SourceFn, M: MapFn, K: Sink> Kernel for Chain<S, M, K> {
    type Output = K::Output;

    #[inline(always)]
    fn run(self) -> K::Output {
        self.sink.take(self.source, self.map)
    }
}

fn with_source<K: Sink>(source: AnySource<'_>, map: ChainMap, sink: K) -> K::Output {
    match source {
        AnySource::Block(block) => with_map(Block(block), map, sink),
        AnySource::Position(run) => with_map(Position(run), map, sink),
        AnySource::Ramp(run, start, step) => with_map(Ramp(Position(run), start, step), map, sink),
        AnySource::Uniform(run, key) => with_map(Uniform(Position(run), key), map, sink),
    }
}

fn with_map<S: SourceFn, K: Sink>(source: S, map: ChainMap, sink: K) -> K::Output {
    match map {
        ChainMap::Identity => cpu::dispatch(Chain { source, map: Identity, sink }),
        ChainMap::Add { addend } => cpu::dispatch(Chain { source, map: Add(addend), sink }),
        ChainMap::Mul { factor } => cpu::dispatch(Chain { source, map: Mul(factor), sink }),
        ChainMap::AddMul { addend, factor } => {
            cpu::dispatch(Chain { source, map: Then(Add(addend), Mul(factor)), sink })
        }
        ChainMap::MulAdd { factor, addend } => {
            cpu::dispatch(Chain { source, map: Then(Mul(factor), Add(addend)), sink })
        }
        ChainMap::Square => cpu::dispatch(Chain { source, map: Square, sink }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: [ChainMap; 6] = [
        ChainMap::Identity,
        ChainMap::Add { addend: 0.1 },
        ChainMap::Mul { factor: 0.3 },
        ChainMap::AddMul { addend: 0.1, factor: 0.3 },
        ChainMap::MulAdd { factor: 0.3, addend: 0.1 },
        ChainMap::Square,
    ];

    /// Runs that begin and end anywhere, so that lines and groups are cut at every position.
    #[test]
    fn values_stored_around_the_cache_are_the_same_wherever_lines_begin() {
        let Some(mut stream) = Stream::for_bytes(usize::MAX) else { return };
        let key = Key::new(1, 2);
        let elements: Vec<f64> = (0..400).map(|i| f64::from(i) * 0.7).collect();
        let block = Buffer::shared(std::sync::Arc::new(bytemuck::cast_slice::<f64, u8>(&elements).to_vec()));
        for (rows, columns) in [(1, 400), (5, 67), (23, 9), (2, 129)] {
            let layout = Layout::new(&[rows, columns], &[1000, 3], 17);
            let sources = [
                ChainInput::Index { source: IndexSource::Position, layout: &layout },
                ChainInput::Index { source: IndexSource::Ramp { start: 0.5, step: 0.1 }, layout: &layout },
                ChainInput::Index { source: IndexSource::Uniform(key), layout: &layout },
                ChainInput::Block(Operand::Block(&block, 0)),
            ];
            for (input, map) in sources.iter().flat_map(|input| MAPS.map(|map| (*input, map))) {
                let n = rows * columns;
                let mut plain = Buffer::zeroed(n * size_of::<f64>());
                store(map, input, false, 0, n, &mut plain);
                for skew in 0..LINE_NUMBERS {
                    let mut around = Buffer::zeroed((skew + n + 1) * size_of::<f64>());
                    let out = around.elements_mut::<f64>();
                    store_around(map, input, 0, n, &mut out[skew..skew + n], &mut stream);
                    assert_eq!(out[skew..skew + n], plain.elements::<f64>()[..n], "{map:?} at {skew}");
                    assert!(out[..skew].iter().chain(&out[skew + n..]).all(|x| *x == 0.0));
                }
            }
        }
    }
}
