//! Conditions that NumPy warns of: divisions by zero, invalid values and overflows.
//!
//! For loops of plain arithmetic (sums, differences, products, reductions by them, conversions to a shorter
//! float), the CPU's sticky flags tell, as in NumPy: reading them once per block costs nothing measurable.
//! Other functions raise flags in their internal steps, which say nothing about the result. Their results are
//! checked instead: one pass without branches over numbers in the first-level cache. The arguments are looked
//! at only if a result is not finite.
//!
//! Not watched: SciPy's functions, which warn of nothing there, complex functions beyond sums and products,
//! half precision, matrix products and variances.

use crate::chunk::Buffer;
use crate::cpu::{self, Kernel, Raised};
use crate::dtype::DType;
use crate::element::Element;
use crate::ufunc::{Arg, BinaryOp, Operand, UnaryOp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// Conditions that NumPy's `errstate` distinguishes; underflow is ignored, which is NumPy's default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Condition {
    DivideByZero,
    Invalid,
    Overflow,
}

/// A function, and a condition that it raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Warning {
    /// The condition that was raised.
    pub condition: Condition,
    function: Function,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Function {
    Unary(UnaryOp),
    Binary(BinaryOp),
    Cast,
    Reduce,
    Accumulate,
}

/// Warnings, once per function and condition.
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
            Function::Cast => "cast",
            Function::Reduce => "reduce",
            Function::Accumulate => "accumulate",
        };
        write!(f, "{condition} encountered in {function}")
    }
}

/// Runs a loop of plain arithmetic and notes the conditions that the CPU raises in it.
pub(crate) fn watched<R>(function: Function, warnings: &mut Warnings, run: impl FnOnce() -> R) -> R {
    cpu::clear_raised();
    let made = run();
    note_raised(cpu::raised(), function, warnings);
    made
}

/// Notes the conditions raised by a function.
pub(crate) fn note_raised(raised: Raised, function: Function, warnings: &mut Warnings) {
    if !raised.any() {
        return;
    }
    let found = [
        (raised.divide, Condition::DivideByZero),
        (raised.invalid, Condition::Invalid),
        (raised.overflow, Condition::Overflow),
    ];
    let found = found.into_iter().filter(|(is_raised, _)| *is_raised);
    warnings.extend(found.map(|(_, condition)| Warning { condition, function }));
}

/// Whether the loop of a function of two arguments raises flags exactly where NumPy warns.
pub(crate) fn is_plain(op: BinaryOp, dtype: DType) -> bool {
    let is_inexact = matches!(dtype, DType::F32 | DType::F64 | DType::C64 | DType::C128);
    is_inexact && matches!(op, BinaryOp::Add | BinaryOp::Subtract | BinaryOp::Multiply)
}

/// Checks the first `n` arguments of a conversion of floats to integers. An argument is invalid if it does
/// not fit the integer type through which it is converted.
pub(crate) fn look_cast(from: DType, to: DType, x: Operand<'_>, n: usize, warnings: &mut Warnings) {
    // Small integers are converted through 32 bits, and negative numbers through signed integers, which wrap.
    let (low, high) = match to {
        DType::I8 | DType::I16 | DType::I32 | DType::U8 | DType::U16 => (-2_147_483_649.0, 2_147_483_648.0),
        DType::U32 => (-2_147_483_649.0, 4_294_967_296.0),
        DType::I64 => (BELOW_I64, -I64_MIN),
        DType::U64 => (BELOW_I64, 2.0 * -I64_MIN),
        _ => return,
    };
    let fits = match from {
        DType::F32 => fit::<f32>(x, n, low, high),
        DType::F64 => fit::<f64>(x, n, low, high),
        _ => true,
    };
    if !fits {
        warnings.insert(Warning { condition: Condition::Invalid, function: Function::Cast });
    }
}

const I64_MIN: f64 = i64::MIN as f64;
/// The largest float below all integers of 64 bits.
const BELOW_I64: f64 = I64_MIN.next_down();

fn fit<T: Float>(x: Operand<'_>, n: usize, low: f64, high: f64) -> bool {
    match x.arg::<T>(n) {
        Arg::Block(block) => cpu::dispatch(AllWithin { block, low, high }),
        Arg::One(x) => low < x.into() && x.into() < high,
    }
}

/// Whether all numbers of a block lie strictly between two bounds.
struct AllWithin<'a, T> {
    block: &'a [T],
    low: f64,
    high: f64,
}

impl<T: Float> Kernel for AllWithin<'_, T> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let AllWithin { block, low, high } = self;
        block.iter().fold(true, |all, &x| all & (low < x.into()) & (x.into() < high))
    }
}

/// Whether the results of a function of this cost are checked.
fn is_watched(cost: f64) -> bool {
    COST_MIN <= cost
}

/// Checks the first `n` results of a function of one argument of `dtype`.
pub(crate) fn look_unary(
    op: UnaryOp,
    dtype: DType,
    x: Operand<'_>,
    out: &Buffer,
    n: usize,
    warnings: &mut Warnings,
) {
    if !is_watched(op.cost()) || op.is_special() {
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
        DType::F32 => {
            look::<f32>(out, n, |i, y| note_one(y, [at::<f32>(x, n, i)], |[x]| pole(x), false, &mut note))
        }
        DType::F64 => {
            look::<f64>(out, n, |i, y| note_one(y, [at::<f64>(x, n, i)], |[x]| pole(x), false, &mut note))
        }
        _ => {}
    }
}

/// Checks the first `n` results of a function of two arguments of `dtype`.
pub(crate) fn look_binary(
    op: BinaryOp,
    dtype: DType,
    [a, b]: [Operand<'_>; 2],
    out: &Buffer,
    n: usize,
    warnings: &mut Warnings,
) {
    if !is_watched(op.cost()) || op.is_special() {
        return;
    }
    let mut note = |condition| {
        warnings.insert(Warning { condition, function: Function::Binary(op) });
    };
    let pole = |[a, b]: [f64; 2]| match op {
        BinaryOp::Divide | BinaryOp::FloorDivide => b == 0.0 && a.is_finite(),
        BinaryOp::Power => a == 0.0 && b < 0.0,
        _ => false,
    };
    // NumPy compares the arguments of these two, and a comparison with NaN is invalid.
    let compares = matches!(op, BinaryOp::Logaddexp | BinaryOp::Logaddexp2);
    let divides = matches!(op, BinaryOp::FloorDivide | BinaryOp::Remainder | BinaryOp::Fmod);
    macro_rules! integers {
        ($($dtype:ident => $t:ty),*) => {
            match dtype {
                DType::F32 => look::<f32>(out, n, |i, y| {
                    note_one(y, [at::<f32>(a, n, i), at::<f32>(b, n, i)], pole, compares, &mut note)
                }),
                DType::F64 => look::<f64>(out, n, |i, y| {
                    note_one(y, [at::<f64>(a, n, i), at::<f64>(b, n, i)], pole, compares, &mut note)
                }),
                $(DType::$dtype if divides && has_zero::<$t>(b, n) => note(Condition::DivideByZero),)*
                _ => {}
            }
        };
    }
    integers!(I8 => i8, I16 => i16, I32 => i32, I64 => i64, U8 => u8, U16 => u16, U32 => u32, U64 => u64);
}

/// A float of a block as float64.
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
    compares: bool,
    note: &mut impl FnMut(Condition),
) {
    let has_nan = args.iter().any(|arg| arg.is_nan());
    if has_nan && !compares {
        return;
    }
    if y.is_nan() || has_nan {
        note(Condition::Invalid);
    } else if pole(args) {
        note(Condition::DivideByZero);
    } else if args.iter().all(|arg| arg.is_finite()) {
        note(Condition::Overflow);
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

/// Cheaper functions are not checked: a division, which has this cost, takes ten times as long as the check.
const COST_MIN: f64 = 4.0;
