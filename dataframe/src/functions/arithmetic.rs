//! Arithmetic of rows that the library does not have, or has otherwise: floats without what is no number,
//! quotients rounded down, remainders with the sign of the divisor, powers, and values moved into bounds.
//!
//! Each is one call with its operands as arguments. As expressions of the library's functions, some of them
//! need an operand several times; a chain of such operators would be exponentially long.

use super::on_arrays::on_arrays;
use crate::error::Error;
use crate::promotion::of_numbers;
use crate::value::array_without_nan;
use arrow::array::{Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::compute::cast;
use arrow::compute::kernels::{cmp, zip::zip};
use arrow::datatypes::{
    DataType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use datafusion::common::{Result, exec_datafusion_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::{Arc, OnceLock};

/// The act of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    /// A float, missing where it is not a number, and with one zero.
    Present,
    /// The quotient rounded down.
    FloorDiv,
    /// The remainder with the sign of the divisor.
    Rem,
    /// The first to the power of the second.
    Pow,
    /// The first, not below the second nor above the third; a missing bound is none.
    Clip,
    /// The value itself, which no rule of planning moves: it is computed where it stands.
    Kept,
    /// The first of two equal values. A column that is used twice stays one of the projection below.
    Read,
}

const KINDS: [Kind; 7] =
    [Kind::Present, Kind::FloorDiv, Kind::Rem, Kind::Pow, Kind::Clip, Kind::Kept, Kind::Read];

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Present => "tharsis_present",
            Kind::FloorDiv => "tharsis_floordiv",
            Kind::Rem => "tharsis_mod",
            Kind::Pow => "tharsis_pow",
            Kind::Clip => "tharsis_clip",
            Kind::Kept => "tharsis_kept",
            Kind::Read => "tharsis_read",
        }
    }

    fn arguments(self) -> usize {
        match self {
            Kind::Present | Kind::Kept => 1,
            Kind::FloorDiv | Kind::Rem | Kind::Pow | Kind::Read => 2,
            Kind::Clip => 3,
        }
    }

    /// Its function, of which a process has one.
    fn function(self) -> Arc<ScalarUDF> {
        static FUNCTIONS: [OnceLock<Arc<ScalarUDF>>; KINDS.len()] = [const { OnceLock::new() }; KINDS.len()];
        let made = || {
            // Filters are not pushed below what is volatile, which would put the expression into them.
            let volatility = if self == Kind::Kept { Volatility::Volatile } else { Volatility::Immutable };
            let signature = Signature::user_defined(volatility);
            Arc::new(ScalarUDF::from(Arithmetic { kind: self, signature }))
        };
        match FUNCTIONS.get(self as usize) {
            Some(function) => Arc::clone(function.get_or_init(made)),
            None => made(),
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Arithmetic {
    kind: Kind,
    signature: Signature,
}

impl ScalarUDFImpl for Arithmetic {
    fn name(&self) -> &str {
        self.kind.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        if types.len() != self.kind.arguments() {
            return plan_err!("{} takes {} arguments", self.name(), self.kind.arguments());
        }
        let mut common = types[0].clone();
        for other in &types[1..] {
            common = match (&common, other) {
                (same, other) if same == other => common,
                (_, DataType::Null) => common,
                (DataType::Null, other) => other.clone(),
                (one, other) => match of_numbers(one, other) {
                    Some(found) => found,
                    None => return plan_err!("{} of {one} and {other}", self.name()),
                },
            };
        }
        let common = match self.kind {
            Kind::Clip | Kind::Kept | Kind::Read => common,
            _ if common.is_floating() => common,
            Kind::Present => DataType::Float64,
            _ if common.is_integer() => common,
            _ => DataType::Float64,
        };
        Ok(vec![common; types.len()])
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let first = types.first().cloned();
        first.ok_or_else(|| exec_datafusion_err!("{} without arguments", self.name()))
    }

    fn is_strict(&self) -> bool {
        match self.kind {
            Kind::Present | Kind::FloorDiv | Kind::Rem | Kind::Kept | Kind::Read => true,
            // One to any power is one, and so is anything to the power of zero.
            Kind::Pow | Kind::Clip => false,
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        on_arrays(args, |arrays| self.kind.run(arrays))
    }
}

impl Kind {
    fn run(self, arrays: &[ArrayRef]) -> Result<ArrayRef> {
        match (self, arrays) {
            (Kind::Present, [floats]) => Ok(array_without_nan(floats)),
            (Kind::Kept, [values]) | (Kind::Read, [values, _]) => Ok(Arc::clone(values)),
            (Kind::Clip, [values, low, high]) => {
                // A comparison with a missing bound is missing, and the value stays.
                let raised = zip(&cmp::lt(values, low)?, low, values)?;
                Ok(zip(&cmp::gt(values, high)?, high, &raised)?)
            }
            (_, [left, right]) => self.of_two(left, right),
            (_, others) => Err(exec_datafusion_err!("{} of {} arguments", self.name(), others.len())),
        }
    }

    fn of_two(self, left: &ArrayRef, right: &ArrayRef) -> Result<ArrayRef> {
        match left.data_type() {
            DataType::Int8 => self.whole::<Int8Type>(left, right),
            DataType::Int16 => self.whole::<Int16Type>(left, right),
            DataType::Int32 => self.whole::<Int32Type>(left, right),
            DataType::Int64 => self.whole::<Int64Type>(left, right),
            DataType::UInt8 => self.whole::<UInt8Type>(left, right),
            DataType::UInt16 => self.whole::<UInt16Type>(left, right),
            DataType::UInt32 => self.whole::<UInt32Type>(left, right),
            DataType::UInt64 => self.whole::<UInt64Type>(left, right),
            DataType::Float16 => {
                let single = |array: &ArrayRef| cast(array, &DataType::Float32);
                let made = self.float::<Float32Type>(&single(left)?, &single(right)?)?;
                Ok(array_without_nan(&cast(&made, &DataType::Float16)?))
            }
            DataType::Float32 => self.float::<Float32Type>(left, right),
            DataType::Float64 => self.float::<Float64Type>(left, right),
            other => Err(exec_datafusion_err!("{} of {other}", self.name())),
        }
    }

    fn whole<T: ArrowPrimitiveType>(self, left: &ArrayRef, right: &ArrayRef) -> Result<ArrayRef> {
        let (left, right) = (numbers::<T>(left)?, numbers::<T>(right)?);
        let pairs = left.iter().zip(right);
        let made: PrimitiveArray<T> = match self {
            Kind::FloorDiv => both(pairs, floored_whole),
            Kind::Rem => both(pairs, |left: T::Native, right: T::Native| {
                let floored = floored_whole(left, right)?;
                Some(left.sub_wrapping(floored.mul_wrapping(right)))
            }),
            _ => {
                let one = <T::Native as ArrowNativeTypeOp>::ONE;
                let powers = pairs.map(|pair| match pair {
                    (Some(base), Some(exponent)) => whole_power(base, exponent).map(Some),
                    (Some(base), None) => Ok(base.is_eq(one).then_some(one)),
                    (None, Some(exponent)) => Ok(exponent.is_zero().then_some(one)),
                    (None, None) => Ok(None),
                });
                powers.collect::<Result<PrimitiveArray<T>>>()?
            }
        };
        Ok(Arc::new(made))
    }

    fn float<T: ArrowPrimitiveType>(self, left: &ArrayRef, right: &ArrayRef) -> Result<ArrayRef>
    where
        T::Native: Float,
    {
        let (left, right) = (numbers::<T>(left)?, numbers::<T>(right)?);
        let pairs = left.iter().zip(right);
        let made: PrimitiveArray<T> = match self {
            Kind::FloorDiv => both(pairs, |left, right| Some(floored_float(left, right))),
            Kind::Rem => both(pairs, |left, right| Some(remainder(left, right))),
            _ => {
                let one = T::Native::WHOLE_ONE;
                let powers = pairs.map(|pair| match pair {
                    (Some(base), Some(exponent)) => Some(base.power(exponent)),
                    (Some(base), None) => (base == one).then_some(one),
                    (None, Some(exponent)) => (exponent == T::Native::default()).then_some(one),
                    (None, None) => None,
                });
                powers.collect()
            }
        };
        let made: ArrayRef = Arc::new(made);
        Ok(array_without_nan(&made))
    }
}

fn numbers<T: ArrowPrimitiveType>(array: &ArrayRef) -> Result<&PrimitiveArray<T>> {
    let found = array.as_primitive_opt::<T>();
    found.ok_or_else(|| exec_datafusion_err!("{} for {}", array.data_type(), T::DATA_TYPE))
}

/// A function of the rows in which both sides have a value.
fn both<T: ArrowPrimitiveType>(
    pairs: impl Iterator<Item = (Option<T::Native>, Option<T::Native>)>,
    step: impl Fn(T::Native, T::Native) -> Option<T::Native>,
) -> PrimitiveArray<T> {
    pairs.map(|(left, right)| step(left?, right?)).collect()
}

/// The integer quotient rounded down; missing for a divisor of zero. It wraps.
fn floored_whole<N: ArrowNativeTypeOp>(left: N, right: N) -> Option<N> {
    if right.is_zero() {
        return None;
    }
    let (quotient, rest) = (left.div_wrapping(right), left.mod_wrapping(right));
    let below = !rest.is_zero() && rest.is_lt(N::ZERO) != right.is_lt(N::ZERO);
    Some(if below { quotient.sub_wrapping(N::ONE) } else { quotient })
}

/// The power by squaring. It wraps, as products do.
fn whole_power<N: ArrowNativeTypeOp>(base: N, exponent: N) -> Result<N> {
    if exponent.is_lt(N::ZERO) {
        return Err(negative_exponent().into());
    }
    let two = N::ONE.add_wrapping(N::ONE);
    let (mut power, mut base, mut rest) = (N::ONE, base, exponent);
    while !rest.is_zero() {
        if !rest.mod_wrapping(two).is_zero() {
            power = power.mul_wrapping(base);
        }
        base = base.mul_wrapping(base);
        rest = rest.div_wrapping(two);
    }
    Ok(power)
}

/// The error of whole numbers to a negative power, whose results are none.
pub(crate) fn negative_exponent() -> Error {
    Error::Value("Integers to negative integer powers are not allowed.".to_owned())
}

/// Floats of both widths.
trait Float:
    Copy
    + Default
    + PartialOrd
    + std::ops::Add<Output = Self>
    + std::ops::Div<Output = Self>
    + std::ops::Rem<Output = Self>
    + std::ops::Sub<Output = Self>
{
    const WHOLE_ONE: Self;
    const HALF: Self;

    fn floored(self) -> Self;

    fn power(self, exponent: Self) -> Self;
}

macro_rules! floats {
    ($($float:ident),*) => {
        $(impl Float for $float {
            const WHOLE_ONE: $float = 1.0;
            const HALF: $float = 0.5;

            fn floored(self) -> $float {
                self.floor()
            }

            fn power(self, exponent: $float) -> $float {
                self.powf(exponent)
            }
        })*
    };
}

floats!(f32, f64);

/// The remainder of floats with the sign of the divisor.
fn remainder<F: Float>(left: F, right: F) -> F {
    let (rest, zero) = (left % right, F::default());
    if rest != zero && (rest < zero) != (right < zero) { rest + right } else { rest }
}

/// The quotient of floats rounded down. It is made of the remainder, as the plain quotient may round up to
/// a whole number.
fn floored_float<F: Float>(left: F, right: F) -> F {
    let zero = F::default();
    if right == zero {
        return left / right;
    }
    let rest = left % right;
    let quotient = (left - rest) / right;
    let below = rest != zero && (rest < zero) != (right < zero);
    let quotient = if below { quotient - F::WHOLE_ONE } else { quotient };
    let floored = quotient.floored();
    if quotient - floored > F::HALF { floored + F::WHOLE_ONE } else { floored }
}

/// All functions, for the registry of a session.
pub(super) fn functions() -> [Arc<ScalarUDF>; KINDS.len()] {
    KINDS.map(Kind::function)
}

/// A float that is missing where it is not a number, and has one zero: minus zero would be another key, and
/// differ from zero, for the library. Other numbers become floats.
pub(crate) fn present(expr: Expr) -> Expr {
    Kind::Present.function().call(vec![expr])
}

/// A value that is computed where it stands.
pub(crate) fn kept(value: Expr) -> Expr {
    Kind::Kept.function().call(vec![value])
}

/// Whether an expression is of [`kept`].
pub(crate) fn is_kept(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(call) if call.func.name() == Kind::Kept.name())
}

/// A column of the projection below, which stays there.
pub(crate) fn read(column: Expr) -> Expr {
    Kind::Read.function().call(vec![column.clone(), column])
}

/// Whether a function is [`present`].
pub(crate) fn is_present(function: &ScalarUDF) -> bool {
    function.name() == Kind::Present.name()
}

/// The quotient of two numbers of one type, rounded down.
pub(crate) fn floordiv(left: Expr, right: Expr) -> Expr {
    Kind::FloorDiv.function().call(vec![left, right])
}

/// The remainder of two numbers of one type, with the sign of the divisor.
pub(crate) fn rem(left: Expr, right: Expr) -> Expr {
    Kind::Rem.function().call(vec![left, right])
}

/// A power of two numbers of one type; it is 1 for a base of 1 and for an exponent of 0, also if the other
/// one is missing.
pub(crate) fn pow(base: Expr, exponent: Expr) -> Expr {
    Kind::Pow.function().call(vec![base, exponent])
}

/// A value moved into bounds of its type; a missing bound is none.
pub(crate) fn clip(value: Expr, low: Expr, high: Expr) -> Expr {
    Kind::Clip.function().call(vec![value, low, high])
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Float64Array, Int8Array, Int64Array};

    fn run(kind: Kind, arrays: Vec<ArrayRef>) -> ArrayRef {
        kind.run(&arrays).unwrap()
    }

    fn floats(values: Vec<Option<f64>>) -> ArrayRef {
        Arc::new(Float64Array::from(values))
    }

    fn wholes(values: Vec<Option<i64>>) -> ArrayRef {
        Arc::new(Int64Array::from(values))
    }

    #[test]
    fn floats_that_are_numbers_are_not_copied() {
        let plain = floats(vec![Some(1.0), None, Some(f64::INFINITY)]);
        assert!(Arc::ptr_eq(&run(Kind::Present, vec![Arc::clone(&plain)]), &plain));
        let found = run(Kind::Present, vec![floats(vec![Some(f64::NAN), Some(-0.0), None])]);
        let found = found.as_primitive::<Float64Type>();
        assert!(found.is_null(0) && found.is_null(2));
        assert_eq!(found.value(1).to_bits(), 0.0_f64.to_bits());
    }

    #[test]
    fn powers_of_whole_numbers_are_exact_and_wrap() {
        let base = wholes(vec![Some(3), Some(10), Some(1), None, None, Some(7), Some(-2)]);
        let exponent = wholes(vec![Some(39), Some(20), None, Some(0), Some(1), Some(0), Some(63)]);
        let found = run(Kind::Pow, vec![base, exponent]);
        let wrapped = 10_i64.wrapping_pow(20);
        let expected =
            [Some(4_052_555_153_018_976_267), Some(wrapped), Some(1), Some(1), None, Some(1), Some(i64::MIN)];
        assert_eq!(found.as_primitive::<Int64Type>().iter().collect::<Vec<_>>(), expected);
        let error = Kind::Pow.run(&[wholes(vec![Some(2)]), wholes(vec![Some(-1)])]).unwrap_err();
        assert_eq!(Error::from(error).class(), "ValueError");
    }

    #[test]
    fn whole_quotients_are_rounded_down_and_wrap() {
        let left: ArrayRef = Arc::new(Int8Array::from(vec![7, -7, 7, -7, 5, i8::MIN]));
        let right: ArrayRef = Arc::new(Int8Array::from(vec![2, 2, -2, -2, 0, -1]));
        let found = run(Kind::FloorDiv, vec![Arc::clone(&left), Arc::clone(&right)]);
        let expected = [Some(3), Some(-4), Some(-4), Some(3), None, Some(i8::MIN)];
        assert_eq!(found.as_primitive::<Int8Type>().iter().collect::<Vec<_>>(), expected);
        let found = run(Kind::Rem, vec![left, right]);
        let expected = [Some(1), Some(1), Some(-1), Some(-1), None, Some(0)];
        assert_eq!(found.as_primitive::<Int8Type>().iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn quotients_and_remainders_of_floats_are_those_of_python() {
        let left = floats(vec![Some(1.0), Some(-7.5), Some(7.5), Some(1.0), Some(0.0), Some(-1.0)]);
        let right = floats(vec![Some(0.1), Some(2.0), Some(-2.0), Some(0.0), Some(0.0), Some(f64::INFINITY)]);
        let found = run(Kind::FloorDiv, vec![Arc::clone(&left), Arc::clone(&right)]);
        let expected = [Some(9.0), Some(-4.0), Some(-4.0), Some(f64::INFINITY), None, Some(-1.0)];
        assert_eq!(found.as_primitive::<Float64Type>().iter().collect::<Vec<_>>(), expected);
        let found = run(Kind::Rem, vec![left, right]);
        let expected = [Some(1.0 % 0.1), Some(0.5), Some(-0.5), None, None, Some(f64::INFINITY)];
        assert_eq!(found.as_primitive::<Float64Type>().iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_missing_bound_is_none() {
        let values = wholes(vec![Some(-2), Some(0), None, Some(5)]);
        let bound = |value: Option<i64>| wholes(vec![value; 4]);
        let found = run(Kind::Clip, vec![Arc::clone(&values), bound(Some(-1)), bound(None)]);
        let expected = [Some(-1), Some(0), None, Some(5)];
        assert_eq!(found.as_primitive::<Int64Type>().iter().collect::<Vec<_>>(), expected);
        // The lower one first, as if one were put in place after the other.
        let found = run(Kind::Clip, vec![values, bound(Some(3)), bound(Some(1))]);
        let expected = [Some(3), Some(3), None, Some(1)];
        assert_eq!(found.as_primitive::<Int64Type>().iter().collect::<Vec<_>>(), expected);
    }
}
