//! Element-wise functions as methods, under NumPy's names, and Rust's operators.
//!
//! Shapes may clash and dtypes may be refused: the tensor that comes of it carries the error, see [`Tensor`].
//! Operators take tensors by value or by reference, and numbers on either side.

use crate::comparison;
use crate::operand::{Operand, cast, is_below, is_beyond, pair, pair_in};
use crate::tensor::{Tensor, carry};
use tharsis_graph::Error as GraphError;
use tharsis_graph::ops::{Binary, Cast, Unary, Where};
use tharsis_kernels::{BinaryOp, DType, Kind, Scalar, UnaryOp, can_cast_same_kind, promote_all};

/// Applies a function of one argument by its kernel name.
///
/// # Errors
/// `TypeError` if it is not defined for the dtype.
#[track_caller]
pub fn unary(op: UnaryOp, x: &Tensor) -> Tensor {
    Tensor::apply(Unary(op), &[x])
}

/// Applies a function of two arguments by its kernel name; shapes are broadcast.
///
/// # Errors
/// `ValueError` if the shapes do not broadcast, `TypeError` if it is not defined for the dtypes,
/// `OverflowError` if a number does not fit the dtype beside it.
#[track_caller]
pub fn binary(op: BinaryOp, a: impl Into<Operand>, b: impl Into<Operand>) -> Tensor {
    let (a, b) = (a.into(), b.into());
    if let (BinaryOp::Power, Operand::Tensor(base), Operand::Number(exponent)) = (op, &a, &b)
        && let Some(special) = power_by_number(base, *exponent)
    {
        return special;
    }
    if let Some(compared) = comparison::exactly(op, &a, &b) {
        return compared;
    }
    let (a, b) = pair_in(op, a, b);
    Tensor::apply(Binary(op), &[&a, &b])
}

/// The exponents for which NumPy has a faster way.
#[track_caller]
fn power_by_number(base: &Tensor, exponent: Scalar) -> Option<Tensor> {
    let dtype = base.dtype().ok()?;
    let faster = match exponent {
        Scalar::Int(exponent) if dtype.kind() == Kind::Signed && exponent < 0 => {
            let text = "integers to negative integer powers are not allowed";
            return Some(Tensor::refused(GraphError::Value(text.to_owned()), &[base]));
        }
        Scalar::Int(2) if dtype != DType::Bool => UnaryOp::Square,
        Scalar::Float(2.0) if dtype.kind() >= Kind::Float => UnaryOp::Square,
        Scalar::Float(0.5) if dtype.is_float() => UnaryOp::Sqrt,
        _ => return None,
    };
    Some(unary(faster, base))
}

macro_rules! unary_methods {
    ($($(#[$doc:meta])* $name:ident: $op:ident;)*) => {
        impl Tensor {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// `TypeError` if it is not defined for the dtype.
                #[track_caller]
                pub fn $name(&self) -> Tensor {
                    unary(UnaryOp::$op, self)
                }
            )*
        }
    };
}

unary_methods! {
    /// Absolute value; of complex numbers the modulus.
    abs: Absolute;
    /// Inverse cosine.
    arccos: Arccos;
    /// Inverse hyperbolic cosine.
    arccosh: Arccosh;
    /// Inverse sine.
    arcsin: Arcsin;
    /// Inverse hyperbolic sine.
    arcsinh: Arcsinh;
    /// Inverse tangent.
    arctan: Arctan;
    /// Inverse hyperbolic tangent.
    arctanh: Arctanh;
    /// Number of ones in the absolute value of an integer.
    bitwise_count: BitwiseCount;
    /// Cube root.
    cbrt: Cbrt;
    /// Smallest whole number not below.
    ceil: Ceil;
    /// Complex conjugate.
    conj: Conjugate;
    /// Cosine.
    cos: Cos;
    /// Hyperbolic cosine.
    cosh: Cosh;
    /// Radians to degrees.
    degrees: Degrees;
    /// e to the power of each element.
    exp: Exp;
    /// 2 to the power of each element.
    exp2: Exp2;
    /// `exp(x) - 1`, exact near zero.
    expm1: Expm1;
    /// Absolute value as a float.
    fabs: Fabs;
    /// Largest whole number not above.
    floor: Floor;
    /// Imaginary part.
    imag: Imag;
    /// Bits inverted.
    invert: Invert;
    /// Whether neither infinite nor NaN.
    isfinite: Isfinite;
    /// Whether infinite.
    isinf: Isinf;
    /// Whether NaN.
    isnan: Isnan;
    /// Natural logarithm.
    log: Log;
    /// Decimal logarithm.
    log10: Log10;
    /// `log(1 + x)`, exact near zero.
    log1p: Log1p;
    /// Binary logarithm.
    log2: Log2;
    /// Whether zero or false.
    logical_not: LogicalNot;
    /// The negative.
    negative: Negative;
    /// The element itself.
    positive: Positive;
    /// Degrees to radians.
    radians: Radians;
    /// Real part.
    real: Real;
    /// One divided by each element.
    reciprocal: Reciprocal;
    /// Nearest whole number, halves to even.
    rint: Rint;
    /// -1, 0 or 1; of complex numbers the direction.
    sign: Sign;
    /// Whether the sign bit is set.
    signbit: Signbit;
    /// Sine.
    sin: Sin;
    /// Hyperbolic sine.
    sinh: Sinh;
    /// Distance to the next float.
    spacing: Spacing;
    /// Square root.
    sqrt: Sqrt;
    /// Product with itself.
    square: Square;
    /// Tangent.
    tan: Tan;
    /// Hyperbolic tangent.
    tanh: Tanh;
    /// Whole number toward zero.
    trunc: Trunc;
}

macro_rules! binary_methods {
    ($($(#[$doc:meta])* $name:ident: $op:ident;)*) => {
        impl Tensor {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// `ValueError` if the shapes do not broadcast, `TypeError` if it is not defined for the
                /// dtypes.
                #[track_caller]
                pub fn $name(&self, other: impl Into<Operand>) -> Tensor {
                    binary(BinaryOp::$op, self, other)
                }
            )*
        }
    };
}

binary_methods! {
    /// Sum.
    add: Add;
    /// Angle of the point (`other`, `self`).
    arctan2: Arctan2;
    /// Bits set in both.
    bitwise_and: BitwiseAnd;
    /// Bits set in either.
    bitwise_or: BitwiseOr;
    /// Bits set in one of them.
    bitwise_xor: BitwiseXor;
    /// Magnitude of the one with the sign of the other.
    copysign: Copysign;
    /// True quotient.
    divide: Divide;
    /// Whether equal.
    equal: Equal;
    /// Quotient rounded down.
    floor_divide: FloorDivide;
    /// The larger, ignoring NaN.
    fmax: Fmax;
    /// The smaller, ignoring NaN.
    fmin: Fmin;
    /// Remainder with the sign of the dividend.
    fmod: Fmod;
    /// Greatest common divisor.
    gcd: Gcd;
    /// Whether greater.
    greater: Greater;
    /// Whether greater or equal.
    greater_equal: GreaterEqual;
    /// 0 for negative, 1 for positive elements, `other` for zeros.
    heaviside: Heaviside;
    /// Length of the hypotenuse.
    hypot: Hypot;
    /// Least common multiple.
    lcm: Lcm;
    /// Bits shifted up.
    left_shift: LeftShift;
    /// Whether less.
    less: Less;
    /// Whether less or equal.
    less_equal: LessEqual;
    /// `x * 2^i`, where `i` is a whole number.
    ldexp: Ldexp;
    /// Logarithm of the sum of exponentials.
    logaddexp: Logaddexp;
    /// Binary logarithm of the sum of powers of two.
    logaddexp2: Logaddexp2;
    /// Whether both are true.
    logical_and: LogicalAnd;
    /// Whether either is true.
    logical_or: LogicalOr;
    /// Whether one of them is true.
    logical_xor: LogicalXor;
    /// The larger; NaN if either is.
    maximum: Maximum;
    /// The smaller; NaN if either is.
    minimum: Minimum;
    /// Product.
    multiply: Multiply;
    /// The next float toward the other.
    nextafter: Nextafter;
    /// Whether different.
    not_equal: NotEqual;
    /// Power.
    power: Power;
    /// Remainder with the sign of the divisor.
    remainder: Remainder;
    /// Bits shifted down.
    right_shift: RightShift;
    /// Difference.
    subtract: Subtract;
}

impl Tensor {
    /// The same values in another dtype, converted as NumPy's `astype` does.
    ///
    /// # Errors
    /// None; every dtype converts to every other.
    #[track_caller]
    pub fn astype(&self, dtype: DType) -> Tensor {
        Tensor::apply(Cast(dtype), &[self])
    }

    /// The same values in another dtype if no kind of value is lost: not float to integer, not signed to
    /// unsigned.
    ///
    /// # Errors
    /// `TypeError` if the kinds do not allow it.
    #[track_caller]
    pub fn astype_same_kind(&self, dtype: DType) -> Tensor {
        let from = carry!(self.dtype());
        if !can_cast_same_kind(from, dtype) {
            let message = format!("cannot cast from {from} to {dtype} according to the rule 'same_kind'");
            return Tensor::refused(GraphError::Type(message), &[self]);
        }
        self.astype(dtype)
    }

    /// Elements limited to `low..=high`; NaN stays NaN.
    ///
    /// # Errors
    /// `ValueError` if the shapes do not broadcast.
    #[track_caller]
    pub fn clip(&self, low: impl Into<Operand>, high: impl Into<Operand>) -> Tensor {
        self.clip_to(Some(low.into()), Some(high.into()))
    }

    /// As [`Tensor::clip`], without a bound where there is none. A whole number beyond the dtype of an
    /// integer tensor bounds nothing.
    ///
    /// # Errors
    /// As [`Tensor::clip`]; `OverflowError` for bounds that no element can keep to.
    #[track_caller]
    pub fn clip_to(&self, low: Option<Operand>, high: Option<Operand>) -> Tensor {
        let dtype = carry!(self.dtype());
        let low = low.filter(|low| !is_beyond(low, Some(dtype)) || !is_below(low));
        let high = high.filter(|high| !is_beyond(high, Some(dtype)) || is_below(high));
        match (low, high) {
            (None, None) => self.positive(),
            (Some(low), None) => self.maximum(low),
            (None, Some(high)) => self.minimum(high),
            (Some(low), Some(high)) => {
                // Both bounds take part in the dtype, tensors before numbers.
                let strong = [&low, &high].into_iter().filter_map(Operand::dtype);
                let common = promote_all(strong.chain([dtype]));
                let dtype = low.joined(high.joined(common));
                let (low, high) = (low.beside(dtype), high.beside(dtype));
                cast(self, dtype).maximum(&low).minimum(&high)
            }
        }
    }
}

/// Elements of `a` where `condition` is true, else of `b`; all three are broadcast.
///
/// # Errors
/// `ValueError` if the shapes do not broadcast.
#[track_caller]
pub fn where_(condition: &Tensor, a: impl Into<Operand>, b: impl Into<Operand>) -> Tensor {
    let (a, b) = pair(a.into(), b.into());
    Tensor::apply(Where, &[condition, &a, &b])
}

// One integer and one float type on the left: with more of them the type of a literal would be ambiguous.
macro_rules! operators {
    ($($Trait:ident, $method:ident, $op:ident;)*) => {$(
        operators!(@tensor $Trait, $method, $op, Tensor);
        operators!(@tensor $Trait, $method, $op, &Tensor);
        operators!(@numbers $Trait, $method, $op: bool, i64, f64, tharsis_kernels::Complex<f64>);
    )*};
    (@tensor $Trait:ident, $method:ident, $op:ident, $left:ty) => {
        impl<R: Into<Operand>> std::ops::$Trait<R> for $left {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, right: R) -> Tensor {
                binary(BinaryOp::$op, self, right)
            }
        }
    };
    (@numbers $Trait:ident, $method:ident, $op:ident: $($number:ty),*) => {$(
        impl std::ops::$Trait<&Tensor> for $number {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, right: &Tensor) -> Tensor {
                binary(BinaryOp::$op, self, right)
            }
        }
        impl std::ops::$Trait<Tensor> for $number {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, right: Tensor) -> Tensor {
                binary(BinaryOp::$op, self, right)
            }
        }
    )*};
}

operators! {
    Add, add, Add;
    BitAnd, bitand, BitwiseAnd;
    BitOr, bitor, BitwiseOr;
    BitXor, bitxor, BitwiseXor;
    Div, div, Divide;
    Mul, mul, Multiply;
    Rem, rem, Remainder;
    Sub, sub, Subtract;
}

// No numbers on the left: there, Rust's own shifts are meant.
operators!(@tensor Shl, shl, LeftShift, Tensor);
operators!(@tensor Shl, shl, LeftShift, &Tensor);
operators!(@tensor Shr, shr, RightShift, Tensor);
operators!(@tensor Shr, shr, RightShift, &Tensor);

// The name is bound to the new expression; who has the old one keeps it.
macro_rules! assigning_operators {
    ($($Trait:ident, $method:ident, $op:ident;)*) => {$(
        impl<R: Into<Operand>> std::ops::$Trait<R> for Tensor {
            #[track_caller]
            fn $method(&mut self, right: R) {
                *self = binary(BinaryOp::$op, &*self, right);
            }
        }
    )*};
}

assigning_operators! {
    AddAssign, add_assign, Add;
    DivAssign, div_assign, Divide;
    MulAssign, mul_assign, Multiply;
    SubAssign, sub_assign, Subtract;
}

// One argument, by value and by reference.
macro_rules! unary_operators {
    ($($Trait:ident, $method:ident, $op:ident, $operand:ty;)*) => {$(
        impl std::ops::$Trait for $operand {
            type Output = Tensor;
            #[track_caller]
            fn $method(self) -> Tensor {
                unary(UnaryOp::$op, &self)
            }
        }
    )*};
}

unary_operators! {
    Neg, neg, Negative, Tensor;
    Neg, neg, Negative, &Tensor;
    Not, not, Invert, Tensor;
    Not, not, Invert, &Tensor;
}
