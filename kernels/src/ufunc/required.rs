//! Samples that must be numbers: functions that hand their argument on, or refuse it.
//!
//! Estimators check with them what they read. As element-wise functions they are fused with the arithmetic
//! behind them, so a check writes no chunk and needs no pass. The texts are those of scikit-learn, the only
//! library whose checks these are.

use super::functions::{IsFinite, IsInf};
use super::map::{Arg, UnaryFn};
use crate::chunk::Buffer;
use crate::cpu::{self, Kernel, Level};
use crate::element::{Bool, Element};
use crate::error::KernelError;

/// Copies `n` elements.
///
/// # Errors
/// `Value` for infinity, and for NaN unless it is taken for a value that is missing.
pub(super) fn required<T>(
    x: Arg<'_, T>,
    out: &mut Buffer,
    n: usize,
    takes_nan: bool,
) -> Result<(), KernelError>
where
    T: Element,
    IsFinite: UnaryFn<T, Out = Bool>,
    IsInf: UnaryFn<T, Out = Bool>,
{
    let out = &mut out.elements_mut::<T>()[..n];
    let is_sound = if takes_nan {
        cpu::dispatch(Copied::<T, IsInf, false> { x, out, _of: std::marker::PhantomData })
    } else {
        cpu::dispatch(Copied::<T, IsFinite, true> { x, out, _of: std::marker::PhantomData })
    };
    if is_sound {
        return Ok(());
    }
    let is_nan = |x: T| !IsFinite::apply(x).get() && !IsInf::apply(x).get();
    let has_nan = match x {
        Arg::Block(block) => block.iter().any(|&x| is_nan(x)),
        Arg::One(x) => is_nan(x),
    };
    if has_nan && !takes_nan {
        return Err(KernelError::Value("Input X contains NaN.".to_owned()));
    }
    Err(KernelError::Value(format!(
        "Input X contains infinity or a value too large for dtype('{}').",
        T::DTYPE.name()
    )))
}

/// Copies elements, and tells whether the answer of `F` is the expected one for each of them.
struct Copied<'a, T, F, const EXPECTED: bool> {
    x: Arg<'a, T>,
    out: &'a mut [T],
    _of: std::marker::PhantomData<F>,
}

impl<T: Element, F: UnaryFn<T, Out = Bool>, const EXPECTED: bool> Kernel for Copied<'_, T, F, EXPECTED> {
    type Output = bool;
    const LEVEL: Level = Level::Avx2;

    #[inline(always)]
    fn run(self) -> bool {
        let is_sound = |x: T| F::apply(x).get() == EXPECTED;
        match self.x {
            Arg::Block(x) => self.out.iter_mut().zip(x).fold(true, |all, (out, &x)| {
                *out = x;
                all & is_sound(x)
            }),
            Arg::One(x) => {
                self.out.fill(x);
                self.out.is_empty() || is_sound(x)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::chunk::Buffer;
    use crate::dtype::DType;
    use crate::scalar::Scalar;
    use crate::ufunc::{Operand, UnaryOp, run_unary};

    /// The copy, or the text of the error.
    fn copied(op: UnaryOp, numbers: &[f64]) -> Result<Vec<f64>, String> {
        let mut x = Buffer::zeroed(size_of_val(numbers));
        x.elements_mut::<f64>()[..numbers.len()].copy_from_slice(numbers);
        let mut out = Buffer::zeroed(size_of_val(numbers));
        let made = run_unary(op, DType::F64, Operand::Block(&x, 0), &mut out, numbers.len());
        made.map(|()| out.elements::<f64>()[..numbers.len()].to_vec()).map_err(|error| error.to_string())
    }

    #[test]
    fn numbers_are_copied_and_others_refused_at_each_place() {
        const INFINITE: &str = "Input X contains infinity or a value too large for dtype('float64').";
        let numbers: Vec<f64> = (0..37).map(|at| if at % 2 == 0 { f64::MAX } else { -0.0 }).collect();
        for op in [UnaryOp::RequireFinite, UnaryOp::RequireNotInfinite] {
            assert_eq!(copied(op, &numbers).unwrap(), numbers);
            for at in 0..numbers.len() {
                for bad in [f64::INFINITY, f64::NEG_INFINITY] {
                    let mut wrong = numbers.clone();
                    wrong[at] = bad;
                    assert_eq!(copied(op, &wrong).unwrap_err(), INFINITE, "{op:?} at {at}");
                }
            }
        }
        let mut gap = numbers;
        gap[30] = f64::NAN;
        assert_eq!(copied(UnaryOp::RequireFinite, &gap).unwrap_err(), "Input X contains NaN.");
        assert!(copied(UnaryOp::RequireNotInfinite, &gap).unwrap()[30].is_nan());
        gap[3] = f64::INFINITY;
        // As in scikit-learn, NaN is told first.
        assert_eq!(copied(UnaryOp::RequireFinite, &gap).unwrap_err(), "Input X contains NaN.");
        assert_eq!(copied(UnaryOp::RequireNotInfinite, &gap).unwrap_err(), INFINITE);
    }

    #[test]
    fn one_value_for_all_is_looked_at() {
        let mut out = Buffer::zeroed(8 * size_of::<f32>());
        let mut run = |value: f64| {
            let x = Operand::One(Scalar::Float(value));
            run_unary(UnaryOp::RequireFinite, DType::F32, x, &mut out, 8).map_err(|error| error.to_string())
        };
        assert!(run(1.5).is_ok());
        assert_eq!(run(f64::NAN).unwrap_err(), "Input X contains NaN.");
        let infinite = "Input X contains infinity or a value too large for dtype('float32').";
        assert_eq!(run(f64::INFINITY).unwrap_err(), infinite);
    }
}
