//! Random programs, determined by a seed.

use super::plain::{Kind, Plain, broadcast, size};
use super::program::{Binary, REDUCTIONS, Step, Unary};
use tharsis_numeric::Chunks;

/// Larger arrays are not tried: the plain evaluator is slow.
const ELEMENTS_MAX: usize = 600;
/// Larger numbers are not tried: whole numbers of all kinds must be exact as float64.
const NUMBER_MAX: f64 = 1e12;

/// A sequence of numbers from a seed (SplitMix64).
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn shuffled(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        (1..n).for_each(|i| order.swap(i, self.below(i + 1)));
        order
    }
}

/// A program with the values that the plain evaluator gives for it. `masks` also selects by masks, whose
/// sizes are known only after a run.
pub fn program(seed: u64, masks: bool) -> (Vec<Step>, Vec<Plain>) {
    let mut dice = Dice::new(seed);
    let (mut steps, mut values) = (Vec::<Step>::new(), Vec::new());
    // Whether a value does not depend on the order of operations.
    let mut exact = Vec::new();
    for _ in 0..1 + dice.below(2) {
        let input = input(&mut dice);
        values.push(input.plain(&values));
        steps.push(input);
        exact.push(true);
    }
    let length = 1 + dice.below(7);
    while steps.len() < length + 1 {
        let Some(step) = step(&mut dice, &values, masks) else { continue };
        let is_exact = step.args().iter().all(|&arg| exact[arg]);
        if step.needs_exact() && !is_exact {
            continue;
        }
        let value = step.plain(&values);
        if value.data.len() <= ELEMENTS_MAX && value.data.iter().all(|x| x.abs() < NUMBER_MAX) {
            values.push(value);
            exact.push(is_exact && !step.rounds());
            steps.push(step);
        }
    }
    (steps, values)
}

fn input(dice: &mut Dice) -> Step {
    let rank = dice.pick(&[0, 1, 1, 2, 2, 2, 3, 3, 3, 4]);
    let shape: Vec<usize> =
        (0..rank).map(|_| dice.pick(&[0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 7, 11, 13])).collect();
    let kind = dice.pick(&[Kind::Bool, Kind::Int, Kind::Int, Kind::Float, Kind::Float, Kind::Float]);
    let plain = Plain::make(kind, shape.clone(), |_| match kind {
        Kind::Bool => dice.below(2) as f64,
        _ => dice.below(9) as f64 - 4.0,
    });
    let chunks = match dice.below(10) {
        0..3 => None,
        3 => Some(Chunks::Auto),
        4 => Some(Chunks::Lengths(shape.iter().map(|&extent| uneven(dice, extent)).collect())),
        _ => Some(chunks(dice, &shape)),
    };
    Step::Input { plain, chunks }
}

/// Pieces of 1, 2 or 3 elements along all axes, or of any number along each.
fn chunks(dice: &mut Dice, shape: &[usize]) -> Chunks {
    match dice.below(6) {
        small @ 0..3 => Chunks::Each(small + 1),
        _ => Chunks::PerAxis(shape.iter().map(|&extent| 1 + dice.below(extent.max(1))).collect()),
    }
}

/// Pieces of several lengths along an axis.
fn uneven(dice: &mut Dice, extent: usize) -> Vec<usize> {
    let (mut lengths, mut left) = (Vec::new(), extent);
    while 0 < left {
        lengths.push(1 + dice.below(left));
        left -= lengths.last().copied().unwrap_or(left);
    }
    if lengths.is_empty() { vec![0] } else { lengths }
}

/// The latest values are taken more often, so that programs are deep.
fn value(dice: &mut Dice, values: &[Plain]) -> usize {
    let last = values.len() - 1;
    if dice.chance(70) { last } else { dice.below(values.len()) }
}

fn step(dice: &mut Dice, values: &[Plain], masks: bool) -> Option<Step> {
    let a = value(dice, values);
    let x = &values[a];
    let rank = x.shape.len();
    let axis = if rank == 0 { None } else { Some(dice.below(rank)) };
    Some(match dice.below(if masks { 34 } else { 32 }) {
        0..3 => {
            let op = dice.pick(&Unary::ALL);
            op.takes(x).then_some(Step::Unary(op, a))?
        }
        3..6 => {
            let (op, b) = (dice.pick(&Binary::ALL), dice.below(values.len()));
            let is_bool = x.kind == Kind::Bool && values[b].kind == Kind::Bool;
            broadcast(&x.shape, &values[b].shape)?;
            (!(is_bool && matches!(op, Binary::Subtract))).then_some(Step::Binary(op, a, b))?
        }
        6 => {
            let (c, b) = (dice.below(values.len()), dice.below(values.len()));
            let shape = broadcast(&x.shape, &values[b].shape)?;
            broadcast(&values[c].shape, &shape)?;
            (values[c].kind == Kind::Bool).then_some(Step::Where(c, a, b))?
        }
        7..16 => reduction(dice, a, x)?,
        16 => Step::Cumsum(a, axis?),
        17 => Step::Transpose(a, dice.shuffled(rank)),
        18..20 => take(dice, a, x, axis?)?,
        20 => Step::Reshape(a, reshaped(dice, size(&x.shape))),
        21 => Step::Flip(a, axis?),
        22 => {
            let mut shape = x.shape.clone();
            shape.insert(0, 1 + dice.below(3));
            Step::BroadcastTo(a, shape)
        }
        23..25 => Step::Rechunk(a, chunks(dice, &x.shape)),
        25 => {
            let (b, axis) = (dice.below(values.len()), axis?);
            let others = |shape: &[usize]| {
                let mut shape = shape.to_vec();
                shape.get_mut(axis).map(|extent| *extent = 0)?;
                Some(shape)
            };
            (others(&x.shape) == others(&values[b].shape)).then_some(Step::Concatenate(a, b, axis))?
        }
        26 => {
            let b = dice.below(values.len());
            (x.shape == values[b].shape).then_some(Step::Stack(a, b, dice.below(rank + 1)))?
        }
        27 => {
            let b = dice.below(values.len());
            let fits = rank == 2 && values[b].shape.len() == 2 && x.shape[1] == values[b].shape[0];
            (fits && x.kind != Kind::Bool && values[b].kind != Kind::Bool).then_some(Step::Matmul(a, b))?
        }
        28..30 => Step::Sort(a, axis?),
        30 => Step::Argsort(a, axis?),
        31 => Step::Roll(a, axis?, dice.below(9) as i64 - 4),
        _ => {
            let mask = dice.below(values.len());
            let fits = values[mask].shape.len() == 1 && x.shape.first() == values[mask].shape.first();
            fits.then_some(Step::Filter(a, mask))?
        }
    })
}

fn reduction(dice: &mut Dice, a: usize, x: &Plain) -> Option<Step> {
    let with = dice.pick(&REDUCTIONS);
    let rank = x.shape.len();
    let mut axes = match dice.below(4) {
        0 => (0..rank).collect(),
        1 | 2 if 0 < rank => vec![rank - 1],
        _ => {
            let mut axes = dice.shuffled(rank);
            axes.truncate(1 + dice.below(rank.max(1)));
            axes
        }
    };
    axes.sort_unstable();
    with.takes(x.kind, &x.shape, &axes).then_some(Step::Reduce {
        with,
        of: a,
        axes,
        keepdims: dice.chance(25),
    })
}

fn take(dice: &mut Dice, a: usize, x: &Plain, axis: usize) -> Option<Step> {
    let extent = x.shape[axis];
    if extent == 0 {
        return None;
    }
    let start = dice.below(extent);
    let step: i64 = dice.pick(&[1, 1, 2, 3, -1, -2]);
    let reach = if 0 < step { extent - start } else { start + 1 };
    let most = reach.div_ceil(step.unsigned_abs() as usize);
    Some(Step::Take { of: a, axis, start, step, count: 1 + dice.below(most) })
}

/// A shape with a given number of elements.
fn reshaped(dice: &mut Dice, count: usize) -> Vec<usize> {
    let mut shape = Vec::new();
    let mut left = count;
    for _ in 0..dice.below(3) {
        let divisors: Vec<usize> = (1..=left.min(12)).filter(|n| left.is_multiple_of(*n)).collect();
        let Some(&extent) = divisors.get(dice.below(divisors.len().max(1))) else { break };
        shape.push(extent);
        left /= extent;
    }
    shape.push(left);
    let at = dice.below(shape.len());
    shape.swap(0, at);
    shape
}
