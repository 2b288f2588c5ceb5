//! Programs of several operations, made from a seed, and the effect of each operation on tensors and on plain
//! arrays.

use super::plain::{Kind, Plain, broadcast, size};
use tharsis_numeric::index::slice;
use tharsis_numeric::{Axes, Chunks, DType, Index, Tensor, concatenate, stack, where_};

/// An operation on values of the program, named by their numbers.
#[derive(Clone, Debug)]
pub enum Step {
    Input { plain: Plain, chunks: Option<Chunks> },
    Unary(Unary, usize),
    Binary(Binary, usize, usize),
    Where(usize, usize, usize),
    Reduce { with: Reduction, of: usize, axes: Vec<usize>, keepdims: bool },
    Cumsum(usize, usize),
    Sort(usize, usize),
    Argsort(usize, usize),
    Roll(usize, usize, i64),
    Transpose(usize, Vec<usize>),
    Take { of: usize, axis: usize, start: usize, step: i64, count: usize },
    Reshape(usize, Vec<usize>),
    Flip(usize, usize),
    BroadcastTo(usize, Vec<usize>),
    Rechunk(usize, Chunks),
    Concatenate(usize, usize, usize),
    Stack(usize, usize, usize),
    Matmul(usize, usize),
    Filter(usize, usize),
}

#[derive(Clone, Copy, Debug)]
pub enum Unary {
    Negative,
    Absolute,
    Square,
    Not,
    ToBool,
    ToInt,
    ToFloat,
    AddTwo,
    TimesThree,
    FromOne,
}

#[derive(Clone, Copy, Debug)]
pub enum Binary {
    Add,
    Subtract,
    Multiply,
    Maximum,
    Minimum,
    Less,
    Equal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    Sum,
    Prod,
    Max,
    Min,
    Any,
    All,
    CountNonzero,
    Mean,
    Var,
    Ptp,
    Argmax,
    Argmin,
}

pub const REDUCTIONS: [Reduction; 12] = [
    Reduction::Sum,
    Reduction::Prod,
    Reduction::Max,
    Reduction::Min,
    Reduction::Any,
    Reduction::All,
    Reduction::CountNonzero,
    Reduction::Mean,
    Reduction::Var,
    Reduction::Ptp,
    Reduction::Argmax,
    Reduction::Argmin,
];

impl Reduction {
    /// Whether there is a result for this kind and these extents.
    pub fn takes(self, kind: Kind, shape: &[usize], axes: &[usize]) -> bool {
        use Reduction::*;
        let is_empty = axes.iter().any(|&axis| shape[axis] == 0);
        match self {
            Max | Min => !is_empty,
            Ptp => !is_empty && kind != Kind::Bool,
            // NumPy's have one axis, or none at all.
            Argmax | Argmin => !is_empty && (axes.len() == 1 || axes.len() == shape.len()),
            Mean | Var => !is_empty,
            Sum | Prod | Any | All | CountNonzero => true,
        }
    }

    fn plain(self, x: &Plain, axes: &[usize], keepdims: bool) -> Plain {
        use Reduction::*;
        let bool = |b: bool| f64::from(u8::from(b));
        let first = |row: &[f64], best: f64| row.iter().position(|x| *x == best).expect("it is there") as f64;
        let max = |row: &[f64]| row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let min = |row: &[f64]| row.iter().copied().fold(f64::INFINITY, f64::min);
        let mean = |row: &[f64]| row.iter().sum::<f64>() / row.len() as f64;
        let whole = x.kind.max(Kind::Int);
        match self {
            Sum => x.reduce(whole, axes, keepdims, |row| row.iter().sum()),
            Prod => x.reduce(whole, axes, keepdims, |row| row.iter().product()),
            Max => x.reduce(x.kind, axes, keepdims, max),
            Min => x.reduce(x.kind, axes, keepdims, min),
            Any => x.reduce(Kind::Bool, axes, keepdims, |row| bool(row.iter().any(|x| *x != 0.0))),
            All => x.reduce(Kind::Bool, axes, keepdims, |row| bool(row.iter().all(|x| *x != 0.0))),
            CountNonzero => {
                x.reduce(Kind::Int, axes, keepdims, |row| row.iter().filter(|x| **x != 0.0).count() as f64)
            }
            Mean => x.reduce(Kind::Float, axes, keepdims, mean),
            Var => x.reduce(Kind::Float, axes, keepdims, |row| {
                let mean = mean(row);
                row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / row.len() as f64
            }),
            Ptp => x.reduce(x.kind, axes, keepdims, |row| max(row) - min(row)),
            Argmax => x.reduce(Kind::Int, axes, keepdims, |row| first(row, max(row))),
            Argmin => x.reduce(Kind::Int, axes, keepdims, |row| first(row, min(row))),
        }
    }

    fn tensor(self, x: &Tensor, axes: Axes) -> Tensor {
        use Reduction::*;
        match self {
            Sum => x.sum(axes),
            Prod => x.prod(axes),
            Max => x.max(axes),
            Min => x.min(axes),
            Any => x.any(axes),
            All => x.all(axes),
            CountNonzero => x.count_nonzero(axes),
            Mean => x.mean(axes),
            Var => x.var(axes),
            Ptp => x.ptp(axes),
            Argmax => x.argmax(axes),
            Argmin => x.argmin(axes),
        }
    }
}

/// Axes as an argument; the default if all are selected, so that this form is tested too.
fn axes_of(axes: &[usize], rank: usize, keepdims: bool) -> Axes {
    let axes = if axes.len() == rank {
        Axes::default()
    } else {
        Axes::from(axes.iter().map(|&axis| axis as i64).collect::<Vec<_>>())
    };
    if keepdims { axes.keepdims() } else { axes }
}

impl Step {
    /// The values that it reads.
    pub fn args(&self) -> Vec<usize> {
        match self {
            Step::Input { .. } => vec![],
            Step::Unary(_, a)
            | Step::Cumsum(a, _)
            | Step::Sort(a, _)
            | Step::Argsort(a, _)
            | Step::Roll(a, ..)
            | Step::Transpose(a, _)
            | Step::Reshape(a, _)
            | Step::Flip(a, _)
            | Step::BroadcastTo(a, _)
            | Step::Rechunk(a, _) => vec![*a],
            Step::Reduce { of, .. } | Step::Take { of, .. } => vec![*of],
            Step::Binary(_, a, b)
            | Step::Concatenate(a, b, _)
            | Step::Stack(a, b, _)
            | Step::Matmul(a, b)
            | Step::Filter(a, b) => vec![*a, *b],
            Step::Where(a, b, c) => vec![*a, *b, *c],
        }
    }

    /// Whether it rounds, so that its result depends on the order of operations.
    pub fn rounds(&self) -> bool {
        matches!(self, Step::Reduce { with: Reduction::Mean | Reduction::Var, .. })
    }

    /// Whether a difference in the last digit of an argument changes the result much.
    pub fn needs_exact(&self) -> bool {
        use Reduction::*;
        match self {
            Step::Unary(op, _) => matches!(op, Unary::Not | Unary::ToBool | Unary::ToInt),
            Step::Binary(op, ..) => matches!(op, Binary::Less | Binary::Equal),
            Step::Reduce { with, .. } => matches!(with, Argmax | Argmin | Any | All | CountNonzero),
            Step::Filter(..) | Step::Argsort(..) => true,
            _ => false,
        }
    }

    pub fn plain(&self, values: &[Plain]) -> Plain {
        let truth = |b: bool| f64::from(u8::from(b));
        match self {
            Step::Input { plain, .. } => plain.clone(),
            Step::Unary(op, a) => op.plain(&values[*a]),
            Step::Binary(op, a, b) => op.plain(&values[*a], &values[*b]),
            Step::Where(c, a, b) => {
                let (c, a, b) = (&values[*c], &values[*a], &values[*b]);
                let chosen = a.zip(b, a.kind.max(b.kind), |x, _| x);
                let other = a.zip(b, a.kind.max(b.kind), |_, y| y);
                let shape = broadcast(&c.shape, &chosen.shape).expect("the shapes fit");
                let (c, x, y) =
                    (c.broadcast_to(&shape), chosen.broadcast_to(&shape), other.broadcast_to(&shape));
                let pick = |i: usize| if c.data[i] != 0.0 { x.data[i] } else { y.data[i] };
                Plain { kind: x.kind, data: (0..size(&shape)).map(pick).collect(), shape }
            }
            Step::Reduce { with, of, axes, keepdims } => with.plain(&values[*of], axes, *keepdims),
            Step::Cumsum(a, axis) => values[*a].cumsum(*axis),
            Step::Sort(a, axis) => values[*a].sort(*axis),
            Step::Argsort(a, axis) => values[*a].argsort(*axis),
            Step::Roll(a, axis, shift) => values[*a].roll(*axis, *shift),
            Step::Transpose(a, order) => values[*a].transpose(order),
            Step::Take { of, axis, start, step, count } => values[*of].take(*axis, *start, *step, *count),
            Step::Reshape(a, shape) => values[*a].reshape(shape.clone()),
            Step::Flip(a, axis) => {
                let extent = values[*a].shape[*axis];
                values[*a].take(*axis, extent.saturating_sub(1), -1, extent)
            }
            Step::BroadcastTo(a, shape) => values[*a].broadcast_to(shape),
            Step::Rechunk(a, _) => values[*a].map(values[*a].kind, |x| x),
            Step::Concatenate(a, b, axis) => values[*a].concatenate(&values[*b], *axis),
            Step::Stack(a, b, axis) => {
                let with_axis = |x: &Plain| {
                    let mut shape = x.shape.clone();
                    shape.insert(*axis, 1);
                    x.reshape(shape)
                };
                with_axis(&values[*a]).concatenate(&with_axis(&values[*b]), *axis)
            }
            Step::Matmul(a, b) => values[*a].matmul(&values[*b]),
            Step::Filter(a, mask) => {
                let mask = values[*mask].map(Kind::Bool, |x| truth(x != 0.0));
                values[*a].filter(&mask)
            }
        }
    }

    pub fn tensor(&self, values: &[Tensor]) -> Tensor {
        let signed = |shape: &[usize]| shape.iter().map(|&n| n as i64).collect::<Vec<_>>();
        match self {
            Step::Input { plain, chunks } => {
                let whole = input(plain);
                match chunks {
                    Some(chunks) => whole.rechunk(chunks.clone()),
                    None => whole,
                }
            }
            Step::Unary(op, a) => op.tensor(&values[*a]),
            Step::Binary(op, a, b) => op.tensor(&values[*a], &values[*b]),
            Step::Where(c, a, b) => where_(&values[*c], &values[*a], &values[*b]),
            Step::Reduce { with, of, axes, keepdims } => {
                let x = &values[*of];
                with.tensor(x, axes_of(axes, x.ndim().expect("it is no error"), *keepdims))
            }
            Step::Cumsum(a, axis) => values[*a].cumsum(*axis as i64),
            Step::Sort(a, axis) => values[*a].sort(*axis as i64),
            Step::Argsort(a, axis) => values[*a].argsort(*axis as i64),
            Step::Roll(a, axis, shift) => values[*a].roll(&[(*axis as i64, *shift)]),
            Step::Transpose(a, order) => values[*a].transpose(&signed(order)),
            Step::Take { of, axis, start, step, count } => {
                let stop = *start as i64 + *step * *count as i64;
                let stop = (0 <= stop).then_some(stop);
                let mut index = vec![Index::from(..); *axis];
                index.push(slice(*start as i64, stop, *step));
                values[*of].get(&index)
            }
            Step::Reshape(a, shape) => values[*a].reshape(&signed(shape)),
            Step::Flip(a, axis) => values[*a].flip(Some(&[*axis as i64])),
            Step::BroadcastTo(a, shape) => values[*a].broadcast_to(shape),
            Step::Rechunk(a, chunks) => values[*a].rechunk(chunks.clone()),
            Step::Concatenate(a, b, axis) => concatenate(&[&values[*a], &values[*b]], *axis as i64),
            Step::Stack(a, b, axis) => stack(&[&values[*a], &values[*b]], *axis as i64),
            Step::Matmul(a, b) => values[*a].matmul(&values[*b]),
            Step::Filter(a, mask) => values[*a].filter(&values[*mask].astype(DType::Bool)),
        }
    }
}

fn input(plain: &Plain) -> Tensor {
    let whole = Tensor::from_elements(&plain.shape, &plain.data);
    match plain.kind {
        Kind::Bool => whole.astype(DType::Bool),
        Kind::Int => whole.astype(DType::I64),
        Kind::Float => whole,
    }
}

impl Unary {
    pub const ALL: [Unary; 10] = [
        Unary::Negative,
        Unary::Absolute,
        Unary::Square,
        Unary::Not,
        Unary::ToBool,
        Unary::ToInt,
        Unary::ToFloat,
        Unary::AddTwo,
        Unary::TimesThree,
        Unary::FromOne,
    ];

    pub fn takes(self, x: &Plain) -> bool {
        use Unary::*;
        match self {
            Negative | Absolute | Square | AddTwo | TimesThree | FromOne => x.kind != Kind::Bool,
            Not | ToBool | ToFloat => true,
            ToInt => x.data.iter().all(|x| x.abs() < 1e9),
        }
    }

    fn plain(self, x: &Plain) -> Plain {
        use Unary::*;
        let truth = |b: bool| f64::from(u8::from(b));
        match self {
            Negative => x.map(x.kind, |x| 0.0 - x),
            Absolute => x.map(x.kind, f64::abs),
            Square => x.map(x.kind, |x| x * x),
            Not => x.map(Kind::Bool, |x| truth(x == 0.0)),
            ToBool => x.map(Kind::Bool, |x| truth(x != 0.0)),
            ToInt => x.map(Kind::Int, f64::trunc),
            ToFloat => x.map(Kind::Float, |x| x),
            AddTwo => x.map(x.kind, |x| x + 2.0),
            TimesThree => x.map(x.kind, |x| x * 3.0),
            FromOne => x.map(x.kind, |x| 1.0 - x),
        }
    }

    fn tensor(self, x: &Tensor) -> Tensor {
        use Unary::*;
        match self {
            Negative => x.negative(),
            Absolute => x.abs(),
            Square => x.square(),
            Not => x.logical_not(),
            ToBool => x.astype(DType::Bool),
            ToInt => x.astype(DType::I64),
            ToFloat => x.astype(DType::F64),
            AddTwo => x.add(2),
            TimesThree => x.multiply(3),
            FromOne => Tensor::number(1).subtract(x),
        }
    }
}

impl Binary {
    pub const ALL: [Binary; 7] = [
        Binary::Add,
        Binary::Subtract,
        Binary::Multiply,
        Binary::Maximum,
        Binary::Minimum,
        Binary::Less,
        Binary::Equal,
    ];

    fn plain(self, a: &Plain, b: &Plain) -> Plain {
        use Binary::*;
        let truth = |b: bool| f64::from(u8::from(b));
        let kind = a.kind.max(b.kind);
        match self {
            // For bool, the sum is "or" and the product "and".
            Add if kind == Kind::Bool => a.zip(b, kind, f64::max),
            Add => a.zip(b, kind, |x, y| x + y),
            Subtract => a.zip(b, kind, |x, y| x - y),
            Multiply => a.zip(b, kind, |x, y| x * y),
            Maximum => a.zip(b, kind, f64::max),
            Minimum => a.zip(b, kind, f64::min),
            Less => a.zip(b, Kind::Bool, |x, y| truth(x < y)),
            Equal => a.zip(b, Kind::Bool, |x, y| truth(x == y)),
        }
    }

    fn tensor(self, a: &Tensor, b: &Tensor) -> Tensor {
        use Binary::*;
        match self {
            Add => a.add(b),
            Subtract => a.subtract(b),
            Multiply => a.multiply(b),
            Maximum => a.maximum(b),
            Minimum => a.minimum(b),
            Less => a.less(b),
            Equal => a.equal(b),
        }
    }
}
