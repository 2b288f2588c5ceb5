//! Several steps on a few elements at a time, so that the processor overlaps them.
//!
//! A separate step runs over a whole block before the next step begins. Here a *tile* of 128 elements goes
//! through all steps of a group: while roots or divisions of one tile are in flight, the processor computes
//! the random numbers of the next one. Sums use the same lanes as sums of blocks, so they are the same to the
//! bit.
//!
//! Each operation is one loop over a tile, and all are in one function, so that an operation costs a jump or
//! two. Random numbers whose only user is an operation of two arguments are computed in its loop (`Drawn`),
//! and a function of one argument behind it is applied there too: random numbers and roots then overlap.
//!
//! The operations are those for which the flags of the CPU tell all that NumPy would warn of. If any flag was
//! raised, the results of the group are discarded and the steps run one by one (`super::grouped`).

use crate::cpu::Kernel;
use crate::dtype::DType;
use crate::fold::{LANES, better};
use crate::layout::Run;
use crate::random::Key;
use crate::ufunc::{Compare, Operand, vector_exp};
use std::ops::Range;

/// Elements of a tile. A larger tile costs less per element; a smaller one lets the processor overlap more.
pub(super) const TILE: usize = 4 * LANES;
/// Upper bound on the values of each dtype in a group.
pub(super) const TILES_MAX: usize = 24;

/// The number of a tile.
pub(super) type TileId = u8;

/// Operations on a tile. Names without a dtype are of float64, those with `Short` of float32.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum TileKind {
    /// The elements of input `a`.
    Load,
    /// The first operation, on the numbers of source `a`.
    Number(Number),
    /// Random numbers of source `a`, narrowed.
    UniformShort,
    /// Tile `a` and the random numbers of source `b`, in one loop.
    Drawn(Draw, Then),
    DrawnShort(Draw, Then),
    /// A map of tile `a`.
    Map(Map),
    /// float32 to float64.
    Widen,
    /// float64 to float32.
    Narrow,
    /// Tiles `a` and `b`, which is `a` for functions of one argument.
    Wide(Arithmetic),
    Short(Arithmetic),
    /// Stores tile `a` in the block of the result.
    Store,
    StoreShort,
    /// Adds tile `a` to the lanes of the sum.
    Sum,
    /// Merges tile `a` into the lanes of the extreme.
    Max,
    Min,
    MaxShort,
    MinShort,
}

/// First operation on a number of a source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    /// The number itself, a position.
    Position,
    /// `first + second * position`.
    Ramp,
    /// A random number.
    Uniform,
    /// A random number with a map.
    Mapped(Map),
    UniformSquare,
}

/// A map with constants, in the order in which they are applied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Map {
    Add,
    Mul,
    AddMul,
    MulAdd,
}

/// Arithmetic on tiles of one dtype.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Arithmetic {
    Absolute,
    Add,
    Divide,
    Exp,
    Maximum,
    Minimum,
    Multiply,
    Negative,
    Reciprocal,
    Sqrt,
    Square,
    Subtract,
}

/// Combination of a random number `r` with an element `x`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Draw {
    /// `x + r`.
    Add,
    /// `x - r`.
    Subtract,
    /// `r - x`.
    SubtractFrom,
    /// `x * r`.
    Multiply,
}

/// Function applied to the result in the same loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Then {
    Nothing,
    Absolute,
    Negative,
    Sqrt,
    Square,
}

/// One operation on tiles. The id of its result is above those of its arguments of the same dtype.
#[derive(Clone, Copy, Debug)]
pub(super) struct TileOp {
    pub(super) kind: TileKind,
    pub(super) a: u8,
    pub(super) b: u8,
    pub(super) to: TileId,
    /// Constants of maps, in the order in which they are applied, and of ramps.
    pub(super) numbers: [f64; 2],
}

/// The elements of a block that a group reads.
#[derive(Clone, Copy, Debug)]
pub(super) enum Input<'a> {
    Wide(&'a [f64]),
    Short(&'a [f32]),
}

impl<'a> Input<'a> {
    /// The first `len` elements of a block of floats.
    pub(super) fn of(block: Operand<'a>, dtype: DType, len: usize) -> Input<'a> {
        match (block, dtype) {
            (Operand::Block(buffer, at), DType::F32) => Input::Short(&buffer.elements()[at..at + len]),
            (Operand::Block(buffer, at), _) => Input::Wide(&buffer.elements()[at..at + len]),
            // Constants fill tiles once (`Tiles::fill`), and are not read from blocks.
            (Operand::One(_), _) => Input::Wide(&[]),
        }
    }
}

/// A function of the index over one run: the numbers `base + step * element`, scaled for random numbers.
#[derive(Clone, Debug)]
pub(super) struct TileSource {
    key: Key,
    base: u64,
    step: u64,
    /// `step` times the position in a tile.
    lanes: Tile<u64>,
}

impl TileSource {
    /// The indices of a run; for random numbers if there is a key.
    pub(super) fn new(key: Option<Key>, run: Run) -> TileSource {
        let scaled = |x: i64| if key.is_some() { Key::scale(x as u64) } else { x as u64 };
        let lanes = Tile(std::array::from_fn(|i| scaled((i as i64).wrapping_mul(run.stride))));
        let key = key.unwrap_or(Key::new(0, 0));
        TileSource { key, base: scaled(run.offset), step: scaled(run.stride), lanes }
    }
}

/// Values of the tiles. They persist between tiles, so constants are filled in once for all.
#[derive(Clone, Debug)]
pub(super) struct Tiles {
    wide: [Tile<f64>; TILES_MAX],
    short: [Tile<f32>; TILES_MAX],
    pub(super) lanes: Lanes<f64>,
    pub(super) lanes_short: Lanes<f32>,
}

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Tile<T>([T; TILE]);

impl Default for Tiles {
    fn default() -> Tiles {
        Tiles {
            wide: [Tile([0.0; TILE]); TILES_MAX],
            short: [Tile([0.0; TILE]); TILES_MAX],
            lanes: Lanes { values: [0.0; LANES], rest: [0.0; TILE] },
            lanes_short: Lanes { values: [0.0; LANES], rest: [0.0; TILE] },
        }
    }
}

impl Tiles {
    /// Fills tiles with constants.
    pub(super) fn fill(&mut self, wide: &[(TileId, f64)], short: &[(TileId, f32)]) {
        wide.iter().for_each(|&(tile, x)| self.wide[tile as usize].0 = [x; TILE]);
        short.iter().for_each(|&(tile, x)| self.short[tile as usize].0 = [x; TILE]);
    }
}

/// Lanes of a fold: sums in the order of `block_sum`, or extremes.
#[derive(Clone, Debug)]
pub(super) struct Lanes<T> {
    values: [T; LANES],
    /// The last values, if they do not fill a tile. They are compared last, so that the first of equals wins,
    /// as in a block.
    rest: [T; TILE],
}

impl<T: Copy> Lanes<T> {
    /// Begins a block with this value in each lane.
    pub(super) fn begin(&mut self, begin: T) {
        self.values = [begin; LANES];
    }

    pub(super) fn values(&self) -> [T; LANES] {
        self.values
    }

    /// Writes the candidates of the extreme of a block of `len` elements, and returns their number.
    pub(super) fn write(&self, out: &mut [T], len: usize) -> usize {
        let rest = len % TILE;
        out[..LANES].copy_from_slice(&self.values);
        out[LANES..LANES + rest].copy_from_slice(&self.rest[..rest]);
        LANES + rest
    }
}

/// A group on one block.
pub(super) struct TileRun<'a> {
    /// Operations in order; the last one stores or folds the values.
    pub(super) ops: &'a [TileOp],
    pub(super) sources: &'a [TileSource],
    pub(super) inputs: &'a [Input<'a>],
    pub(super) tiles: &'a mut Tiles,
    /// The elements, counted from the beginning of the task's region.
    pub(super) elements: Range<usize>,
    /// Destination of stored values.
    pub(super) out: &'a mut [f64],
    pub(super) out_short: &'a mut [f32],
}

impl Kernel for TileRun<'_> {
    type Output = ();

    #[inline(always)]
    fn run(mut self) {
        let (mut at, count) = (0, self.elements.len());
        while at < count {
            let len = (count - at).min(TILE);
            for op in self.ops {
                self.one(op, at, len);
            }
            at += len;
        }
    }
}

impl TileRun<'_> {
    /// Runs an operation on the tile of the `len` elements from `at` on.
    #[inline(always)]
    fn one(&mut self, op: &TileOp, at: usize, len: usize) {
        let Tiles { wide, short, lanes, lanes_short } = &mut *self.tiles;
        let (a, b, to) = (op.a as usize, op.b as usize, op.to as usize);
        let numbers = |source: usize| Numbers::new(&self.sources[source], self.elements.start + at);
        match op.kind {
            TileKind::Load => match self.inputs[a] {
                Input::Wide(block) => load(&block[at..at + len], &mut wide[to].0),
                Input::Short(block) => load(&block[at..at + len], &mut short[to].0),
            },
            TileKind::Number(number) => make(number, numbers(a), &mut wide[to].0, op.numbers),
            TileKind::UniformShort => {
                let Numbers { key, first, lanes } = numbers(a);
                each(&mut short[to].0, lanes, lanes, |lane, _| {
                    key.uniform_scaled(first.wrapping_add(lane)) as f32
                });
            }
            TileKind::Drawn(how, then) => {
                let (before, rest) = wide.split_at_mut(to);
                drawn(how, then, &before[a].0, numbers(b), &mut rest[0].0);
            }
            TileKind::DrawnShort(how, then) => {
                let (before, rest) = short.split_at_mut(to);
                drawn(how, then, &before[a].0, numbers(b), &mut rest[0].0);
            }
            TileKind::Map(map) => {
                let (before, rest) = wide.split_at_mut(to);
                mapped(map, &before[a].0, &mut rest[0].0, op.numbers);
            }
            TileKind::Widen => each(&mut wide[to].0, &short[a].0, &short[a].0, |x, _| f64::from(x)),
            TileKind::Narrow => each(&mut short[to].0, &wide[a].0, &wide[a].0, |x, _| x as f32),
            TileKind::Wide(op) => {
                let (before, rest) = wide.split_at_mut(to);
                arithmetic(op, &before[a].0, &before[b].0, &mut rest[0].0);
            }
            TileKind::Short(op) => {
                let (before, rest) = short.split_at_mut(to);
                arithmetic(op, &before[a].0, &before[b].0, &mut rest[0].0);
            }
            TileKind::Store => self.out[at..at + len].copy_from_slice(&wide[a].0[..len]),
            TileKind::StoreShort => self.out_short[at..at + len].copy_from_slice(&short[a].0[..len]),
            TileKind::Sum if len < TILE => {
                wide[a].0[..len].iter().enumerate().for_each(|(i, x)| lanes.values[i % LANES] += x);
            }
            TileKind::Sum => merge(&mut lanes.values, &wide[a].0, |sum, x| sum + x),
            TileKind::Max | TileKind::Min if len < TILE => lanes.rest = wide[a].0,
            TileKind::Max => merge(&mut lanes.values, &wide[a].0, better::<f64, true>),
            TileKind::Min => merge(&mut lanes.values, &wide[a].0, better::<f64, false>),
            TileKind::MaxShort | TileKind::MinShort if len < TILE => lanes_short.rest = short[a].0,
            TileKind::MaxShort => merge(&mut lanes_short.values, &short[a].0, better::<f32, true>),
            TileKind::MinShort => merge(&mut lanes_short.values, &short[a].0, better::<f32, false>),
        }
    }
}

/// The numbers of a source for one tile: the first, and the distances of all from it.
#[derive(Clone, Copy)]
struct Numbers<'a> {
    key: Key,
    first: u64,
    lanes: &'a [u64; TILE],
}

impl Numbers<'_> {
    #[inline(always)]
    fn new(source: &TileSource, element: usize) -> Numbers<'_> {
        let first = source.base.wrapping_add(source.step.wrapping_mul(element as u64));
        Numbers { key: source.key, first, lanes: &source.lanes.0 }
    }
}

/// Copies the elements of a block into a tile. The last tile may be short; it is padded with its first
/// element.
#[inline(always)]
fn load<T: Copy>(block: &[T], out: &mut [T; TILE]) {
    match <&[T; TILE]>::try_from(block) {
        Ok(block) => *out = *block,
        Err(_) => {
            out[..block.len()].copy_from_slice(block);
            out[block.len()..].fill(block[0]);
        }
    }
}

#[inline(always)]
fn make(number: Number, source: Numbers<'_>, out: &mut [f64; TILE], [first, second]: [f64; 2]) {
    let Numbers { key, first: begin, lanes } = source;
    let at = |lane: u64| begin.wrapping_add(lane) as i64 as f64;
    let random = |lane: u64| key.uniform_scaled(begin.wrapping_add(lane));
    match number {
        Number::Position => each(out, lanes, lanes, |lane, _| at(lane)),
        Number::Ramp => each(out, lanes, lanes, |lane, _| first + at(lane) * second),
        Number::Uniform => each(out, lanes, lanes, |lane, _| random(lane)),
        Number::UniformSquare => each(out, lanes, lanes, |lane, _| random(lane) * random(lane)),
        Number::Mapped(Map::Add) => each(out, lanes, lanes, |lane, _| random(lane) + first),
        Number::Mapped(Map::Mul) => each(out, lanes, lanes, |lane, _| random(lane) * first),
        Number::Mapped(Map::AddMul) => each(out, lanes, lanes, |lane, _| (random(lane) + first) * second),
        Number::Mapped(Map::MulAdd) => each(out, lanes, lanes, |lane, _| random(lane) * first + second),
    }
}

#[inline(always)]
fn mapped(map: Map, x: &[f64; TILE], out: &mut [f64; TILE], [first, second]: [f64; 2]) {
    match map {
        Map::Add => each(out, x, x, |x, _| x + first),
        Map::Mul => each(out, x, x, |x, _| x * first),
        Map::AddMul => each(out, x, x, |x, _| (x + first) * second),
        Map::MulAdd => each(out, x, x, |x, _| x * first + second),
    }
}

/// A float of tiles.
trait TileNumber: Compare + crate::ufunc::Number {
    fn of(x: f64) -> Self;
    fn wide(self) -> f64;
    fn root(self) -> Self;
    fn magnitude(self) -> Self;
    fn over(self, other: Self) -> Self;
}

macro_rules! tile_number {
    ($($t:ty),*) => {$(
        impl TileNumber for $t {
            #[inline(always)]
            fn of(x: f64) -> $t { x as $t }
            #[inline(always)]
            fn wide(self) -> f64 { self as f64 }
            #[inline(always)]
            fn root(self) -> $t { self.sqrt() }
            #[inline(always)]
            fn magnitude(self) -> $t { self.abs() }
            #[inline(always)]
            fn over(self, other: $t) -> $t { self / other }
        }
    )*};
}
tile_number!(f32, f64);

#[inline(always)]
fn arithmetic<T: TileNumber>(op: Arithmetic, x: &[T; TILE], y: &[T; TILE], out: &mut [T; TILE]) {
    match op {
        Arithmetic::Absolute => each(out, x, y, |x, _| x.magnitude()),
        Arithmetic::Add => each(out, x, y, |x, y| x.plus(y)),
        Arithmetic::Divide => each(out, x, y, |x, y| x.over(y)),
        // Computed in float64 for float32 too, as the step does.
        Arithmetic::Exp => each(out, x, y, |x, _| T::of(vector_exp(x.wide()))),
        Arithmetic::Maximum => each(out, x, y, |x, y| x.larger(y)),
        Arithmetic::Minimum => each(out, x, y, |x, y| x.smaller(y)),
        Arithmetic::Multiply => each(out, x, y, |x, y| x.times(y)),
        Arithmetic::Negative => each(out, x, y, |x, _| x.negated()),
        Arithmetic::Reciprocal => each(out, x, y, |x, _| T::ONE.over(x)),
        Arithmetic::Sqrt => each(out, x, y, |x, _| x.root()),
        Arithmetic::Square => each(out, x, y, |x, _| x.times(x)),
        Arithmetic::Subtract => each(out, x, y, |x, y| x.minus(y)),
    }
}

/// Combines a tile with random numbers, and applies a function to the result.
#[inline(always)]
fn drawn<T: TileNumber>(how: Draw, then: Then, x: &[T; TILE], source: Numbers<'_>, out: &mut [T; TILE]) {
    match how {
        Draw::Add => drawn_then(then, x, source, out, |x, r| x.plus(r)),
        Draw::Subtract => drawn_then(then, x, source, out, |x, r| x.minus(r)),
        Draw::SubtractFrom => drawn_then(then, x, source, out, |x, r| r.minus(x)),
        Draw::Multiply => drawn_then(then, x, source, out, |x, r| x.times(r)),
    }
}

#[inline(always)]
fn drawn_then<T: TileNumber>(
    then: Then,
    x: &[T; TILE],
    Numbers { key, first, lanes }: Numbers<'_>,
    out: &mut [T; TILE],
    f: impl Fn(T, T) -> T,
) {
    let f = |x: T, lane: u64| f(x, T::of(key.uniform_scaled(first.wrapping_add(lane))));
    match then {
        Then::Nothing => draw(out, x, lanes, f),
        Then::Absolute => draw(out, x, lanes, |x, lane| f(x, lane).magnitude()),
        Then::Negative => draw(out, x, lanes, |x, lane| f(x, lane).negated()),
        Then::Sqrt => draw(out, x, lanes, |x, lane| f(x, lane).root()),
        Then::Square => draw(out, x, lanes, |x, lane| {
            let value = f(x, lane);
            value.times(value)
        }),
    }
}

/// Sets each element of a tile. Its arguments tell the compiler that the tiles do not overlap. It is a loop
/// because a closure of an iterator would not always be compiled for the CPU of the caller.
#[inline(always)]
fn each<A: Copy, B>(out: &mut [B; TILE], x: &[A; TILE], y: &[A; TILE], f: impl Fn(A, A) -> B) {
    for i in 0..TILE {
        out[i] = f(x[i], y[i]);
    }
}

/// As [`each`], for two element types.
#[inline(always)]
fn draw<A: Copy, C: Copy>(out: &mut [A; TILE], x: &[A; TILE], y: &[C; TILE], f: impl Fn(A, C) -> A) {
    for i in 0..TILE {
        out[i] = f(x[i], y[i]);
    }
}

/// Merges the elements of a tile into lanes.
#[inline(always)]
fn merge<T: Copy>(lanes: &mut [T; LANES], x: &[T; TILE], f: impl Fn(T, T) -> T) {
    for group in x.as_chunks::<LANES>().0 {
        for i in 0..LANES {
            lanes[i] = f(lanes[i], group[i]);
        }
    }
}
