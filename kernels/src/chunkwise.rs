//! Functions of whole chunks: scans, selections, the functions of [`crate::lines`], and the factorizations of
//! [`crate::factor`].

use crate::chunk::{Buffer, Chunk};
use crate::correlate::correlate;
use crate::cosine::Cosine;
use crate::draw::Draw;
use crate::dtype::DType;
use crate::element::Bool;
use crate::error::KernelError;
use crate::exchange::Measure;
use crate::factor::{self, Factor};
use crate::fourier::Fourier;
use crate::linear::Linear;
use crate::linear::tile::Tile;
use crate::lines::{self, Lines};
use crate::order::Direction;
use crate::select::Select;
use crate::tally::Tally;
use crate::ufunc::Number;
use num_complex::Complex;
use serde::{Deserialize, Serialize};

/// A function of chunks that needs all of their elements at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ChunkFunction {
    /// Running sums or products along an axis: (x) or (x, carry) to the shape of x, where `carry` has extent
    /// 1 along the axis.
    Scan {
        /// The running operation.
        scan: Scan,
        /// The axis that is scanned.
        axis: usize,
        /// Whether each result excludes the element at its own position.
        exclusive: bool,
    },
    /// Number of rows and of selected rows: see [`Select::count`].
    CountSelected(Select),
    /// The selected rows: see [`Select::run`].
    Select(Select),
    /// A function along one axis.
    Lines(Lines),
    /// Positions on axes of these extents in one: see [`lines::flat_positions`].
    FlatPositions(Vec<usize>),
    /// The first argument, if the second has no false element: (..) and (..) of bool.
    Require {
        /// The error if one is false, a `ValueError`.
        message: String,
        /// Whether it is a `ZeroDivisionError` instead.
        divides: bool,
    },
    /// The first elements along an axis and their positions: see [`lines::top`].
    Top {
        /// The axis.
        axis: usize,
        /// Their number.
        count: usize,
        /// The order.
        direction: Direction,
    },
    /// A measure of an exchange that is not planned yet.
    Measure(Measure),
    /// Fourier transforms along an axis: see [`Fourier::run_parts`].
    Fourier(Fourier),
    /// Cosine transforms along an axis: see [`Cosine::run_parts`].
    Cosine(Cosine),
    /// Results of a function of stacks of matrices: see [`Linear::run`].
    Linear {
        /// The function.
        function: Linear,
        /// The numbers of the results.
        parts: Vec<usize>,
    },
    /// A random number, or a row of them, for each element of random bits: see [`Draw::run`].
    Draw(Draw),
    /// Sums of products of a line with a shorter one: see [`correlate`].
    Correlate,
    /// A histogram: see [`Tally::run`].
    Tally(Tally),
    /// A step of a factorization by tiles.
    Tile(Tile),
    /// A factorization: (m, n) to the shape given by [`Factor::shape`].
    Factor(Factor),
    /// Rows of the orthonormal factor of all rows: see [`factor::basis_rows`].
    BasisRows,
}

/// Operation that a scan accumulates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Scan {
    Sum,
    Prod,
}

impl ChunkFunction {
    /// The axis along which the argument may be several chunks, each behind the other, if there is one.
    pub fn parts_along(&self) -> Option<usize> {
        match self {
            ChunkFunction::Fourier(fourier) => Some(fourier.axis),
            ChunkFunction::Cosine(cosine) => Some(cosine.axis),
            _ => None,
        }
    }

    /// Whether it uses several threads if they are granted.
    pub fn takes_threads(&self) -> bool {
        matches!(self, ChunkFunction::Linear { function, .. } if function.takes_threads())
    }

    /// Applies the function, on up to `threads` threads. The result does not depend on their number.
    ///
    /// # Errors
    /// `NoLoop` for a dtype that it is not defined for.
    pub fn run(&self, args: &[Chunk], threads: usize) -> Result<Vec<Chunk>, KernelError> {
        match self {
            ChunkFunction::CountSelected(select) => Ok(vec![select.count(&args[0])?]),
            ChunkFunction::Select(select) => Ok(vec![select.run(args)?]),
            ChunkFunction::Lines(lines) => Ok(vec![lines.run(args)?]),
            ChunkFunction::FlatPositions(extents) => Ok(vec![lines::flat_positions(args, extents)?]),
            ChunkFunction::Require { message, divides } => {
                let is_met = args[1].to_vec::<Bool>()?.iter().all(|met| met.get());
                let class = if *divides { KernelError::ZeroDivision } else { KernelError::Value };
                let refused = || class(message.clone());
                if is_met { Ok(vec![args[0].to_contiguous()?]) } else { Err(refused()) }
            }
            ChunkFunction::Top { axis, count, direction } => lines::top(args, *axis, *count, *direction),
            ChunkFunction::Measure(measure) => Ok(vec![measure.run(args)?]),
            ChunkFunction::Fourier(fourier) => Ok(vec![fourier.run_parts(args)?]),
            ChunkFunction::Cosine(cosine) => Ok(vec![cosine.run_parts(args)?]),
            ChunkFunction::Linear { function, parts } => function.run_parts(parts, args, threads),
            ChunkFunction::Draw(draw) => Ok(vec![draw.run(&args[0])?]),
            ChunkFunction::Correlate => Ok(vec![correlate(&args[0], &args[1])?]),
            ChunkFunction::Tally(tally) => Ok(vec![tally.run(args)?]),
            ChunkFunction::Tile(tile) => tile.run(args),
            ChunkFunction::Factor(factor) => Ok(vec![factor.run(&args[0])?]),
            ChunkFunction::BasisRows => Ok(vec![factor::basis_rows(&args[0], &args[1])?]),
            ChunkFunction::Scan { scan, axis, exclusive } => {
                let carry = args.get(1);
                let made = match args[0].dtype() {
                    DType::I64 => run_scan::<i64>(*scan, *axis, *exclusive, &args[0], carry),
                    DType::U64 => run_scan::<u64>(*scan, *axis, *exclusive, &args[0], carry),
                    DType::F64 => run_scan::<f64>(*scan, *axis, *exclusive, &args[0], carry),
                    DType::C128 => run_scan::<Complex<f64>>(*scan, *axis, *exclusive, &args[0], carry),
                    dtype => Err(KernelError::NoLoop { function: "scan", dtypes: vec![dtype] }),
                };
                Ok(vec![made?])
            }
        }
    }
}

fn run_scan<T: Number>(
    scan: Scan,
    axis: usize,
    exclusive: bool,
    x: &Chunk,
    carry: Option<&Chunk>,
) -> Result<Chunk, KernelError> {
    let step = |a: T, b: T| match scan {
        Scan::Sum => a.plus(b),
        Scan::Prod => a.times(b),
    };
    let (elements, carry) = (x.to_vec::<T>()?, carry.map(|carry| carry.to_vec::<T>()).transpose()?);
    let len = x.shape()[axis];
    let inner: usize = x.shape()[axis + 1..].iter().product();
    // Value before the first element. For sums it is minus zero, which keeps the sign of zeros.
    let neutral = match scan {
        Scan::Sum => T::ZERO.negated(),
        Scan::Prod => T::ONE,
    };
    let mut out = Buffer::for_overwrite(elements.len() * std::mem::size_of::<T>());
    let to = out.elements_mut::<T>();
    for (outer, block) in elements.chunks(len.max(1) * inner.max(1)).enumerate() {
        for column in 0..inner {
            // The first chunk of a product starts from its first element, not from one: one times an infinite
            // complex number is another number.
            let is_first = |carry: &T| matches!(scan, Scan::Prod) && *carry == neutral;
            let carried = carry.as_ref().map(|carry| carry[outer * inner + column]);
            let mut running = carried.filter(|carry| !is_first(carry));
            for row in 0..len {
                let at = row * inner + column;
                let next = running.map_or(block[at], |running| step(running, block[at]));
                to[outer * len * inner + at] = if exclusive { running.unwrap_or(neutral) } else { next };
                running = Some(next);
            }
        }
    }
    Chunk::contiguous(T::DTYPE, x.shape(), out)
}
