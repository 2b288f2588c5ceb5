//! One step of a program on one block.

use super::{Bound, Compiled, Leaf, Scratch, Source, chain, chain_input, operand, sources};
use crate::chunk::Buffer;
use crate::cpu::{self, Kernel, Level};
use crate::dtype::DType;
use crate::element::{Bool, CastFrom, Element};
use crate::error::KernelError;
use crate::fold::{Fold, block_sum};
use crate::program::StepOp;
use crate::raised::{Function, Warnings, is_plain, look_binary, look_cast, look_unary, watched};
use crate::ufunc::{Arg, Compare, Map1, Number, Operand, UnaryFn, UnaryOp, run_binary, run_unary};
use crate::with_element;
use num_complex::Complex;
use std::marker::PhantomData;

/// Operation of a step on a block.
struct Made {
    out: Buffer,
    warnings: Warnings,
}

impl Compiled {
    pub(super) fn run_step(
        &self,
        index: usize,
        bound: &Bound,
        start: usize,
        end: usize,
        scratch: &mut Scratch,
    ) -> Result<(), KernelError> {
        let Source::Register(register) = bound.sources[index] else { return Ok(()) };
        let mut made = Made { out: scratch.take(register), warnings: scratch.take_warnings() };
        let result = self.compute(index, bound, start, end, scratch, &mut made);
        scratch.put_back(register, made.out);
        scratch.warnings = made.warnings;
        result
    }

    fn compute(
        &self,
        index: usize,
        bound: &Bound,
        start: usize,
        end: usize,
        scratch: &Scratch,
        made: &mut Made,
    ) -> Result<(), KernelError> {
        let Made { out, warnings } = made;
        let step = &self.program().steps[index];
        let width = step.width();
        let n = (end - start) * width;
        let arg = |value| operand(bound, scratch, value, start);
        let dtype_of = |value: usize| self.program().steps[value].dtype;
        match step.op {
            StepOp::Load { .. } | StepOp::Index { .. } => {
                fill_leaf(&bound.leaves[index], start * width, end * width, out)
            }
            StepOp::Const(scalar) => {
                with_element!(step.dtype, T => out.elements_mut::<T>()[..n].fill(T::from_scalar(scalar)))
            }
            StepOp::Cast(a) => {
                watched_cast(Function::Cast, [dtype_of(a), step.dtype], arg(a), made, n);
                look_cast(dtype_of(a), step.dtype, arg(a), n, &mut made.warnings);
            }
            StepOp::Narrow(a) => {
                watched_cast(Function::Reduce, [dtype_of(a), step.dtype], arg(a), made, n);
            }
            StepOp::Unary(op @ UnaryOp::Square, a) => {
                watched(Function::Unary(op), warnings, || run_unary(op, dtype_of(a), arg(a), out, n))?;
            }
            StepOp::Unary(op, a) => {
                run_unary(op, dtype_of(a), arg(a), out, n)?;
                look_unary(op, dtype_of(a), arg(a), out, n, warnings);
            }
            StepOp::Binary(op, a, b) if is_plain(op, dtype_of(a)) => {
                let args = [arg(a), arg(b)];
                watched(Function::Binary(op), warnings, || run_binary(op, dtype_of(a), args, out, n))?;
            }
            StepOp::Binary(op, a, b) => {
                run_binary(op, dtype_of(a), [arg(a), arg(b)], out, n)?;
                look_binary(op, dtype_of(a), [arg(a), arg(b)], out, n, warnings);
            }
            StepOp::Where(c, a, b) => {
                with_element!(step.dtype, T => select::<T>(arg(c).arg(n), arg(a).arg(n), arg(b).arg(n), out))
            }
            StepOp::Chain { source, map, pairs } => {
                let width = if pairs { 2 } else { width };
                let input = chain_input(bound, scratch, source, start);
                let (start, end) = (start * width, end * width);
                cpu::clear_raised();
                chain::store(map, input, pairs, start, end, out);
                chain::attribute(cpu::raised(), map, input, start..end, pairs, warnings);
            }
            StepOp::RowFold(fold, a) => {
                // The result may be wide too, if its rows are folded once more.
                let row_width = self.program().steps[a].width() / width;
                let mut run = || row_fold(fold, dtype_of(a), arg(a), row_width, out, n);
                match fold {
                    Fold::Sum | Fold::Prod => watched(Function::Reduce, warnings, run)?,
                    _ => run()?,
                }
            }
        }
        Ok(())
    }
}

fn fill_leaf(leaf: &Leaf, start: usize, end: usize, out: &mut Buffer) {
    match leaf {
        Leaf::None => {}
        Leaf::Gather { chunk, layout } => sources::gather(chunk, layout, start, end, out),
        Leaf::Index { map, layout } => sources::index(*map, layout, start, end, out),
    }
}

struct Cast<B>(PhantomData<B>);

impl<A, B: Element + CastFrom<A>> UnaryFn<A> for Cast<B> {
    type Out = B;
    #[inline(always)]
    fn apply(x: A) -> B {
        B::cast_from(x)
    }
}

/// A conversion, watched for overflow if the target has fewer bits.
fn watched_cast(function: Function, [from, to]: [DType; 2], x: Operand<'_>, made: &mut Made, n: usize) {
    let Made { out, warnings } = made;
    match to {
        DType::F32 | DType::C64 => watched(function, warnings, || cast(from, to, x, out, n)),
        _ => cast(from, to, x, out, n),
    }
}

fn cast(from: DType, to: DType, x: Operand<'_>, out: &mut Buffer, n: usize) {
    with_element!(from, A => with_element!(to, B => cast_block::<A, B>(x.arg(n), &mut out.elements_mut()[..n])))
}

fn cast_block<A: Element, B: Element + CastFrom<A>>(x: Arg<'_, A>, out: &mut [B]) {
    let wide = |d: DType| matches!(d, DType::F32 | DType::F64 | DType::I64 | DType::I32 | DType::Bool);
    let kernel = Map1::<A, Cast<B>> { x, out };
    // Only the conversions that large jobs use most are worth three copies of their loop.
    if wide(A::DTYPE) && wide(B::DTYPE) { cpu::dispatch(kernel) } else { kernel.run() }
}

fn select<T: Element>(condition: Arg<'_, Bool>, a: Arg<'_, T>, b: Arg<'_, T>, out: &mut Buffer) {
    let pick = |i: usize, arg: Arg<'_, T>| match arg {
        Arg::Block(block) => block[i],
        Arg::One(value) => value,
    };
    match (condition, a, b) {
        (Arg::Block(c), Arg::Block(a), Arg::Block(b)) => {
            let out = out.elements_mut::<T>().iter_mut();
            out.zip(c)
                .zip(a.iter().zip(b))
                .for_each(|((out, c), (&a, &b))| *out = if c.get() { a } else { b });
        }
        (Arg::Block(c), a, b) => {
            let out = out.elements_mut::<T>().iter_mut();
            out.zip(c).enumerate().for_each(|(i, (out, c))| *out = pick(i, if c.get() { a } else { b }));
        }
        (Arg::One(c), a, b) => match if c.get() { a } else { b } {
            Arg::Block(block) => out.elements_mut::<T>()[..block.len()].copy_from_slice(block),
            Arg::One(value) => out.elements_mut::<T>().fill(value),
        },
    }
}

fn row_fold(
    fold: Fold,
    dtype: DType,
    x: Operand<'_>,
    width: usize,
    out: &mut Buffer,
    rows: usize,
) -> Result<(), KernelError> {
    let refused = || KernelError::NoLoop { function: fold.name(), dtypes: vec![dtype] };
    macro_rules! numbers {
        ($f:ident) => {
            match dtype {
                DType::I64 => $f::<i64>(x, width, out, rows),
                DType::U64 => $f::<u64>(x, width, out, rows),
                DType::F64 => $f::<f64>(x, width, out, rows),
                DType::C128 => $f::<Complex<f64>>(x, width, out, rows),
                _ => return Err(refused()),
            }
        };
    }
    match fold {
        Fold::Sum => numbers!(row_sums),
        Fold::Prod => numbers!(row_products),
        Fold::Any => reduce_rows(x, width, out, rows, |row: &[Bool]| Bool::from(row.iter().any(|b| b.get()))),
        Fold::All => reduce_rows(x, width, out, rows, |row: &[Bool]| Bool::from(row.iter().all(|b| b.get()))),
        Fold::CountTrue => {
            reduce_rows(x, width, out, rows, |row: &[Bool]| row.iter().map(|b| i64::from(b.0)).sum::<i64>());
        }
        Fold::Max => extremes::<true>(dtype, x, width, out, rows).ok_or_else(refused)?,
        Fold::Min => extremes::<false>(dtype, x, width, out, rows).ok_or_else(refused)?,
        _ => return Err(refused()),
    }
    Ok(())
}

/// Reduces each row to one element. A constant argument stands for rows of one repeated element.
fn reduce_rows<T: Element, R: Element>(
    x: Operand<'_>,
    width: usize,
    out: &mut Buffer,
    rows: usize,
    mut f: impl FnMut(&[T]) -> R,
) {
    let out = &mut out.elements_mut::<R>()[..rows];
    match x.arg::<T>(rows * width) {
        Arg::Block(block) => {
            out.iter_mut().zip(block.chunks_exact(width)).for_each(|(out, row)| *out = f(row))
        }
        Arg::One(value) => out.fill(f(&vec![value; width])),
    }
}

fn row_sums<T: Number>(x: Operand<'_>, width: usize, out: &mut Buffer, rows: usize) {
    match (width, x.arg::<T>(rows * width)) {
        (2, Arg::Block(x)) => cpu::dispatch(ShortSums::<T, 2> { x, out: &mut out.elements_mut()[..rows] }),
        (3, Arg::Block(x)) => cpu::dispatch(ShortSums::<T, 3> { x, out: &mut out.elements_mut()[..rows] }),
        (4, Arg::Block(x)) => cpu::dispatch(ShortSums::<T, 4> { x, out: &mut out.elements_mut()[..rows] }),
        _ => reduce_rows(x, width, out, rows, block_sum::<T>),
    }
}

struct ShortSums<'a, T, const W: usize> {
    x: &'a [T],
    out: &'a mut [T],
}

impl<T: Number, const W: usize> Kernel for ShortSums<'_, T, W> {
    type Output = ();
    const LEVEL: Level = Level::Avx2;

    #[inline(always)]
    fn run(self) {
        for (out, row) in self.out.iter_mut().zip(self.x.chunks_exact(W)) {
            let mut sum = row[0];
            for &x in &row[1..W] {
                sum = sum.plus(x);
            }
            *out = sum;
        }
    }
}

fn row_products<T: Number>(x: Operand<'_>, width: usize, out: &mut Buffer, rows: usize) {
    reduce_rows(x, width, out, rows, |row: &[T]| row.iter().fold(T::ONE, |product, &x| product.times(x)));
}

fn extremes<const MAX: bool>(
    dtype: DType,
    x: Operand<'_>,
    width: usize,
    out: &mut Buffer,
    rows: usize,
) -> Option<()> {
    fn of<T: Compare, const MAX: bool>(x: Operand<'_>, width: usize, out: &mut Buffer, rows: usize) {
        let better = |a: T, &b: &T| if MAX { a.larger(b) } else { a.smaller(b) };
        reduce_rows(x, width, out, rows, |row: &[T]| row[1..].iter().fold(row[0], better));
    }
    match dtype {
        DType::Bool => of::<Bool, MAX>(x, width, out, rows),
        DType::I8 => of::<i8, MAX>(x, width, out, rows),
        DType::I16 => of::<i16, MAX>(x, width, out, rows),
        DType::I32 => of::<i32, MAX>(x, width, out, rows),
        DType::I64 => of::<i64, MAX>(x, width, out, rows),
        DType::U8 => of::<u8, MAX>(x, width, out, rows),
        DType::U16 => of::<u16, MAX>(x, width, out, rows),
        DType::U32 => of::<u32, MAX>(x, width, out, rows),
        DType::U64 => of::<u64, MAX>(x, width, out, rows),
        DType::F32 => of::<f32, MAX>(x, width, out, rows),
        DType::F64 => of::<f64, MAX>(x, width, out, rows),
        DType::C64 => of::<Complex<f32>, MAX>(x, width, out, rows),
        DType::C128 => of::<Complex<f64>, MAX>(x, width, out, rows),
        DType::F16 | DType::BF16 => return None,
    }
    Some(())
}
