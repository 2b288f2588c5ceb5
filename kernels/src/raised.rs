//! What NumPy warns of: divisions by zero, invalid values and overflows in element-wise functions.
//!
//! Results are looked at after each block of a function that takes long enough for the look not to matter: one pass without
//! branches over numbers that are in the first-level cache. Only where a result is not finite are the arguments looked at.
//! Additions, products and conversions are too fast for that and are not watched.

use crate::chunk::Buffer;
use crate::cpu::{self, Kernel};
use crate::dtype::DType;
use crate::element::Element;
use crate::ufunc::{Arg, BinaryOp, Operand, UnaryOp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// What NumPy's `errstate` tells apart; underflow is ignored, as NumPy does unless asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Condition {
    DivideByZero,
    Invalid,
    Overflow,
}

/// A function whose result was not finite though its arguments were.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Warning {
    /// What was met.
    pub condition: Condition,
    function: Function,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
enum Function {
    Unary(UnaryOp),
    Binary(BinaryOp),
}

/// Each function and condition once.
pub type Warnings = BTreeSet<Warning>;

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let condition = match self.condition {
            Condition::DivideByZero => "divide by zero",
            Condition::Invalid => "invalid value",
            Condition::Overflow => "overflow",
        };
        let function = match self.function {
            Function::Unary(op) => op.name(),
            Function::Binary(op) => op.name(),
        };
        write!(f, "{condition} encountered in {function}")
    }
}

/// Whether results of this function are looked at.
fn is_watched(cost: f64) -> bool {
    COST_MIN <= cost
}

/// Looks at the first `n` results of a function of one argument of `dtype`.
pub(crate) fn look_unary(
    op: UnaryOp,
    dtype: DType,
    x: Operand<'_>,
    out: &Buffer,
    n: usize,
    warnings: &mut Warnings,
) {
    if !is_watched(op.cost()) {
        return;
    }
    let mut note = |condition| {
        warnings.insert(Warning { condition, function: Function::Unary(op) });
    };
    let pole = |x: f64| match op {
        UnaryOp::Log | UnaryOp::Log2 | UnaryOp::Log10 | UnaryOp::Reciprocal => x == 0.0,
        UnaryOp::Log1p => x == -1.0,
        UnaryOp::Arctanh => x.abs() == 1.0,
        _ => false,
    };
    match dtype {
        DType::F32 => look::<f32>(out, n, |i, y| note_one(y, [at::<f32>(x, n, i)], |[x]| pole(x), &mut note)),
        DType::F64 => look::<f64>(out, n, |i, y| note_one(y, [at::<f64>(x, n, i)], |[x]| pole(x), &mut note)),
        _ => {}
    }
}

/// Looks at the first `n` results of a function of two arguments of `dtype`.
pub(crate) fn look_binary(
    op: BinaryOp,
    dtype: DType,
    [a, b]: [Operand<'_>; 2],
    out: &Buffer,
    n: usize,
    warnings: &mut Warnings,
) {
    if !is_watched(op.cost()) {
        return;
    }
    let mut note = |condition| {
        warnings.insert(Warning { condition, function: Function::Binary(op) });
    };
    let pole = |[a, b]: [f64; 2]| match op {
        BinaryOp::Divide | BinaryOp::FloorDivide => b == 0.0,
        BinaryOp::Power => a == 0.0 && b < 0.0,
        _ => false,
    };
    let divides = matches!(op, BinaryOp::FloorDivide | BinaryOp::Remainder | BinaryOp::Fmod);
    macro_rules! integers {
        ($($dtype:ident => $t:ty),*) => {
            match dtype {
                DType::F32 => look::<f32>(out, n, |i, y| {
                    note_one(y, [at::<f32>(a, n, i), at::<f32>(b, n, i)], pole, &mut note)
                }),
                DType::F64 => look::<f64>(out, n, |i, y| {
                    note_one(y, [at::<f64>(a, n, i), at::<f64>(b, n, i)], pole, &mut note)
                }),
                $(DType::$dtype if divides && has_zero::<$t>(b, n) => note(Condition::DivideByZero),)*
                _ => {}
            }
        };
    }
    integers!(I8 => i8, I16 => i16, I32 => i32, I64 => i64, U8 => u8, U16 => u16, U32 => u32, U64 => u64);
}

/// What a float of a block is as float64.
trait Float: Element + Into<f64> {
    fn is_finite_number(self) -> bool;
}

impl Float for f32 {
    #[inline(always)]
    fn is_finite_number(self) -> bool {
        self.abs() < f32::INFINITY
    }
}

impl Float for f64 {
    #[inline(always)]
    fn is_finite_number(self) -> bool {
        self.abs() < f64::INFINITY
    }
}

/// Whether all numbers of a block are finite.
struct AllFinite<'a, T>(&'a [T]);

impl<T: Float> Kernel for AllFinite<'_, T> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        self.0.iter().fold(true, |all, x| all & x.is_finite_number())
    }
}

/// Calls `visit` with each result that is not finite.
fn look<T: Float>(out: &Buffer, n: usize, mut visit: impl FnMut(usize, f64)) {
    let out = &out.elements::<T>()[..n];
    if cpu::dispatch(AllFinite(out)) {
        return;
    }
    let odd = out.iter().enumerate().filter(|(_, y)| !y.is_finite_number());
    odd.for_each(|(i, &y)| visit(i, y.into()));
}

fn note_one<const N: usize>(
    y: f64,
    args: [f64; N],
    pole: impl Fn([f64; N]) -> bool,
    note: &mut impl FnMut(Condition),
) {
    if args.iter().any(|arg| arg.is_nan()) {
        return;
    }
    if y.is_nan() {
        note(Condition::Invalid);
    } else if args.iter().all(|arg| arg.is_finite()) {
        note(if pole(args) { Condition::DivideByZero } else { Condition::Overflow });
    }
}

fn at<T: Float>(x: Operand<'_>, n: usize, i: usize) -> f64 {
    match x.arg::<T>(n) {
        Arg::Block(block) => block[i].into(),
        Arg::One(value) => value.into(),
    }
}

fn has_zero<T: Element + Default>(x: Operand<'_>, n: usize) -> bool {
    match x.arg::<T>(n) {
        Arg::Block(block) => block.contains(&T::default()),
        Arg::One(value) => value == T::default(),
    }
}

/// A division takes ten times as long as the look.
const COST_MIN: f64 = 4.0;
