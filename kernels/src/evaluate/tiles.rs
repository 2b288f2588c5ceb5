//! Several steps on a few elements at a time, so that a processor overlaps them.
//!
//! A step of its own goes over a whole block before the next one begins. Here a *tile* of 128 elements goes
//! through all steps of a group: while a root or a division of one tile is under way, the processor makes the
//! random numbers of the next. Sums have the lanes of a block's, so they are the same to the bit.
//!
//! Each operation is one loop over a tile, and all stand in one function, so that an operation costs a jump
//! or two. Random numbers that one operation of two arguments uses are made in it (`Drawn`), and a function
//! of one argument behind it is applied in the same loop: numbers and roots then share the processor.
//!
//! The operations are those whose flags of the CPU say all that NumPy warns of. What a group computes is
//! thrown away if any flag was raised, and the steps are run one by one (`super::grouped`).

use crate::cpu::Kernel;
use crate::dtype::DType;
use crate::fold::{LANES, better};
use crate::layout::Run;
use crate::random::Key;
use crate::ufunc::{Compare, Operand, vector_exp};
use std::ops::Range;

/// Elements of a tile: more cost less per element, of fewer a processor overlaps more.
pub(super) const TILE: usize = 4 * LANES;
/// Values of each dtype that a group may have.
pub(super) const TILES_MAX: usize = 24;

/// The number of a tile.
pub(super) type TileId = u8;

/// Operations on a tile. Names without a dtype are of float64, those with `Short` of float32.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum TileKind {
    /// The elements of input `a`.
    Load,
    /// First operation, on the numbers of source `a`.
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
    /// Tile `a` goes to the block of the result.
    Store,
    StoreShort,
    /// Tile `a` is added up.
    Sum,
    /// Tile `a` is compared.
    Max,
    Min,
    MaxShort,
    MinShort,
}

/// First operation on a number of a source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    /// The number, which is a position.
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

/// Operation on the result in the same loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Then {
    Nothing,
    Absolute,
    Negative,
    Sqrt,
    Square,
}

/// One operation on tiles. The result's number is above those of its arguments of the same dtype.
#[derive(Clone, Copy, Debug)]
pub(super) struct TileOp {
    pub(super) kind: TileKind,
    pub(super) a: u8,
    pub(super) b: u8,
    pub(super) to: TileId,
    /// Numbers of maps, in the order in which they are applied, and of ramps.
    pub(super) numbers: [f64; 2],
}

/// The elements of a block that a group reads.
#[derive(Clone, Copy, Debug)]
pub(super) enum Input<'a> {
    Wide(&'a [f64]),
    Short(&'a [f32]),
}

impl<'a> Input<'a> {
    /// The first `len` elements of a block, which is one of floats.
    pub(super) fn of(block: Operand<'a>, dtype: DType, len: usize) -> Input<'a> {
        match (block, dtype) {
            (Operand::Block(buffer, at), DType::F32) => Input::Short(&buffer.elements()[at..at + len]),
            (Operand::Block(buffer, at), _) => Input::Wide(&buffer.elements()[at..at + len]),
            // Constants fill tiles of their own.
            (Operand::One(_), _) => Input::Wide(&[]),
        }
    }
}

/// A function of the index over one run: numbers `base + step * element`, scaled for random numbers.
#[derive(Clone, Debug)]
pub(super) struct TileSource {
    key: Key,
    base: u64,
    step: u64,
    /// `step` times the place in a tile.
    lanes: Tile<u64>,
}

impl TileSource {
    /// The indices of a run, for random numbers of this key if there is one.
    pub(super) fn new(key: Option<Key>, run: Run) -> TileSource {
        let scaled = |x: i64| if key.is_some() { Key::scale(x as u64) } else { x as u64 };
        let lanes = Tile(std::array::from_fn(|i| scaled((i as i64).wrapping_mul(run.stride))));
        let key = key.unwrap_or(Key::new(0, 0));
        TileSource { key, base: scaled(run.offset), step: scaled(run.stride), lanes }
    }
}

/// Values of tiles; they stay from one tile to the next, as constants do for all.
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

/// Lanes of a fold: sums, as `block_sum` has them, or extremes.
#[derive(Clone, Debug)]
pub(super) struct Lanes<T> {
    values: [T; LANES],
    /// The last values, if they do not fill a tile: they are compared last, so that the first of equals wins,
    /// as it does in a block.
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

    /// Writes what is to be compared of a block of `len` elements, and says how many those are.
    pub(super) fn write(&self, out: &mut [T], len: usize) -> usize {
        let rest = len % TILE;
        out[..LANES].copy_from_slice(&self.values);
        out[LANES..LANES + rest].copy_from_slice(&self.rest[..rest]);
        LANES + rest
    }
}

/// A group on one block.
pub(super) struct TileRun<'a> {
    /// The last one says what becomes of the values.
    pub(super) ops: &'a [TileOp],
    pub(super) sources: &'a [TileSource],
    pub(super) inputs: &'a [Input<'a>],
    pub(super) tiles: &'a mut Tiles,
    /// The elements, counted from the beginning of the task's part.
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

/// The numbers of a source for a tile: the first, and how far the others are from it.
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

/// Copies the elements of a block, whose last tile may be short: behind it the first one stands again.
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
        // Of float32 too it is computed in float64, as the step does it.
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

/// A tile and random numbers, and what is done to the result.
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

/// Sets each element of a tile. Its arguments tell the compiler that the tiles are different ones, and it is
/// a loop and not an iterator's function, which would not always be compiled for the CPU of the caller.
#[inline(always)]
fn each<A: Copy, B>(out: &mut [B; TILE], x: &[A; TILE], y: &[A; TILE], f: impl Fn(A, A) -> B) {
    for i in 0..TILE {
        out[i] = f(x[i], y[i]);
    }
}

/// As [`each`], of two kinds of elements.
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
