//! Element-wise functions: their names, their dtypes, their loops.
//!
//! To add one: a row in [`UnaryOp`] or [`BinaryOp`] below (name and class; the class gives the dtypes of
//! arguments and result), and an arm with its loop in `unary.rs` or `binary.rs`. Other crates find it by
//! name.

mod binary;
mod complex;
mod functions;
mod map;
mod number;
mod real;
mod required;
mod special;
mod unary;
mod vector_math;

pub(crate) use binary::run_binary;
pub(crate) use map::{Arg, Map1, Operand, UnaryFn};
pub(crate) use number::{Compare, Number};
pub(crate) use real::normal_quantile;
pub(crate) use unary::run_unary;
pub use vector_math::exp as vector_exp;
pub(crate) use vector_math::log as vector_log;

use crate::dtype::{DType, Kind, promote, to_complex};
use crate::error::KernelError;
use serde::{Deserialize, Serialize};

/// The dtypes of one call: every argument is cast to `args`, the function yields `out`.
///
/// Half-precision `args` are computed in `args.compute()` and rounded to `out`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Signature {
    pub args: DType,
    pub out: DType,
}

impl Signature {
    /// Dtype of the result of the loop, before it is rounded to `out`.
    #[must_use]
    pub fn computed(self) -> DType {
        if self.out == self.args { self.args.compute() } else { self.out }
    }
}

#[derive(Clone, Copy)]
enum UnaryClass {
    /// Numbers to the same dtype; `bool` is refused.
    Number,
    /// As `Number`, `bool` taken as int8.
    NumberOrBool,
    /// To the floats or complex numbers that hold the argument.
    Inexact,
    /// As `Inexact`, complex refused.
    Real,
    /// Floats rounded, integers as they are.
    Rounding,
    /// A predicate of a number: `bool`.
    Question,
    /// As `Question`, complex refused.
    RealQuestion,
    /// A predicate of the truth of a value.
    Logical,
    /// Bit patterns of integers and `bool`.
    Bits,
    /// Bit patterns to a count.
    BitCount,
    /// Complex to its real counterpart, others unchanged.
    Magnitude,
    /// SciPy's: float32 stays, all other reals give float64.
    Special,
    /// SciPy's: to float32 if that holds the argument, else to float64; complex refused.
    SpecialNarrow,
}

#[derive(Clone, Copy)]
enum BinaryClass {
    /// To the common dtype.
    Number,
    /// As `Number`, `bool` refused.
    NumberNotBool,
    /// True division: integers give float64.
    Divide,
    /// To the common float, complex refused.
    Real,
    /// Division with remainder: reals, `bool` as int8.
    Floored,
    /// Powers: numbers, `bool` as int8.
    Power,
    /// Comparison in the common dtype.
    Compare,
    /// Truth of both.
    Logical,
    /// Bit patterns of integers and `bool`.
    Bits,
    /// Integers, `bool` as int8.
    Integer,
    /// Integers alone.
    IntegerNotBool,
    /// Two reals to a complex number.
    Parts,
    /// To the float of the first; the second is a whole number that fits 64 bits with a sign.
    Scaled,
    /// SciPy's: two of float32 stay, all other reals give float64.
    Special,
    /// SciPy's: to float32 if that holds both, else to float64; complex refused.
    SpecialNarrow,
}

macro_rules! operations {
    ($(#[$doc:meta])* $Op:ident, $Class:ident: $($name:ident $text:literal $class:ident,)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[allow(missing_docs)]
        pub enum $Op { $($name),* }

        impl $Op {
            /// All of them.
            pub const ALL: &'static [$Op] = &[$($Op::$name),*];

            /// The name in NumPy or SciPy, where they have one.
            pub const fn name(self) -> &'static str {
                match self { $($Op::$name => $text),* }
            }

            /// The function of this NumPy name.
            pub fn from_name(name: &str) -> Option<$Op> {
                $Op::ALL.iter().copied().find(|op| op.name() == name)
            }

            fn class(self) -> $Class {
                match self { $($Op::$name => $Class::$class),* }
            }
        }
    };
}

operations! {
    /// Functions of one argument.
    UnaryOp, UnaryClass:
    Absolute "absolute" Magnitude,
    Arccos "arccos" Inexact,
    Arccosh "arccosh" Inexact,
    Arcsin "arcsin" Inexact,
    Arcsinh "arcsinh" Inexact,
    Arctan "arctan" Inexact,
    Arctanh "arctanh" Inexact,
    BitwiseCount "bitwise_count" BitCount,
    Cbrt "cbrt" Real,
    Ceil "ceil" Rounding,
    Conjugate "conjugate" NumberOrBool,
    Cos "cos" Inexact,
    Cosh "cosh" Inexact,
    Degrees "degrees" Real,
    Entr "entr" SpecialNarrow,
    Erf "erf" Special,
    Erfc "erfc" Special,
    Erfcinv "erfcinv" SpecialNarrow,
    Erfinv "erfinv" SpecialNarrow,
    Exp "exp" Inexact,
    Exp2 "exp2" Inexact,
    Expit "expit" Special,
    Expm1 "expm1" Inexact,
    Fabs "fabs" Real,
    Floor "floor" Rounding,
    FrexpExponent "frexp_exponent" Real,
    FrexpMantissa "frexp_mantissa" Real,
    Gamma "gamma" Special,
    Gammaln "gammaln" Special,
    Gammasgn "gammasgn" Special,
    I0 "i0" Real,
    Imag "imag" Magnitude,
    Invert "invert" Bits,
    Isfinite "isfinite" Question,
    Isinf "isinf" Question,
    Isnan "isnan" Question,
    Log "log" Inexact,
    Log10 "log10" Inexact,
    Log1p "log1p" Inexact,
    Log2 "log2" Inexact,
    LogicalNot "logical_not" Logical,
    Logit "logit" Special,
    Negative "negative" Number,
    NormalQuantile "normal_quantile" Real,
    Positive "positive" Number,
    Radians "radians" Real,
    Real "real" Magnitude,
    Reciprocal "reciprocal" NumberOrBool,
    RequireFinite "require_finite" Real,
    RequireNotInfinite "require_not_infinite" Real,
    Rgamma "rgamma" Special,
    Rint "rint" Inexact,
    Sign "sign" Number,
    Signbit "signbit" RealQuestion,
    Sin "sin" Inexact,
    Sinh "sinh" Inexact,
    Spacing "spacing" Real,
    SpacingHalf "spacing_half" Real,
    Sqrt "sqrt" Inexact,
    Square "square" NumberOrBool,
    Tan "tan" Inexact,
    Tanh "tanh" Inexact,
    Trunc "trunc" Rounding,
}

operations! {
    /// Functions of two arguments.
    BinaryOp, BinaryClass:
    Add "add" Number,
    Arctan2 "arctan2" Real,
    BitwiseAnd "bitwise_and" Bits,
    BitwiseOr "bitwise_or" Bits,
    BitwiseXor "bitwise_xor" Bits,
    Copysign "copysign" Real,
    Divide "divide" Divide,
    Equal "equal" Compare,
    FloorDivide "floor_divide" Floored,
    Fmax "fmax" Number,
    Fmin "fmin" Number,
    Fmod "fmod" Floored,
    FromParts "from_parts" Parts,
    Gcd "gcd" IntegerNotBool,
    Greater "greater" Compare,
    GreaterEqual "greater_equal" Compare,
    Heaviside "heaviside" Real,
    Hypot "hypot" Real,
    KlDiv "kl_div" SpecialNarrow,
    Lcm "lcm" IntegerNotBool,
    Ldexp "ldexp" Scaled,
    LeftShift "left_shift" Integer,
    Less "less" Compare,
    LessEqual "less_equal" Compare,
    Logaddexp "logaddexp" Real,
    Logaddexp2 "logaddexp2" Real,
    LogicalAnd "logical_and" Logical,
    LogicalOr "logical_or" Logical,
    LogicalXor "logical_xor" Logical,
    Maximum "maximum" Number,
    Minimum "minimum" Number,
    Multiply "multiply" Number,
    Nextafter "nextafter" Real,
    NextafterHalf "nextafter_half" Real,
    NotEqual "not_equal" Compare,
    Power "power" Power,
    RelEntr "rel_entr" SpecialNarrow,
    Remainder "remainder" Floored,
    RightShift "right_shift" Integer,
    Subtract "subtract" NumberNotBool,
    Xlog1py "xlog1py" Special,
    Xlogy "xlogy" Special,
}

impl UnaryOp {
    /// The dtypes of a call with an argument of `dtype`.
    ///
    /// # Errors
    /// `NoLoop` where NumPy raises `TypeError`.
    pub fn signature(self, dtype: DType) -> Result<Signature, KernelError> {
        let refused = || KernelError::NoLoop { function: self.name(), dtypes: vec![dtype] };
        let same = |d: DType| Ok(Signature { args: d, out: d });
        match self.class() {
            UnaryClass::Number if dtype == DType::Bool => Err(refused()),
            UnaryClass::Number => same(dtype),
            UnaryClass::NumberOrBool => same(bool_as_int8(dtype)),
            UnaryClass::Real if dtype.is_complex() => Err(refused()),
            // NumPy has no bfloat16.
            UnaryClass::Real if self == UnaryOp::Spacing && dtype == DType::BF16 => Err(refused()),
            UnaryClass::Inexact | UnaryClass::Real => same(dtype.to_inexact()),
            UnaryClass::Rounding if dtype.is_complex() => Err(refused()),
            UnaryClass::Rounding => same(dtype),
            UnaryClass::RealQuestion if dtype.is_complex() => Err(refused()),
            UnaryClass::Question | UnaryClass::RealQuestion => {
                let args = if dtype.kind() < Kind::Float { DType::F64 } else { dtype };
                Ok(Signature { args, out: DType::Bool })
            }
            UnaryClass::Logical => Ok(Signature { args: DType::Bool, out: DType::Bool }),
            UnaryClass::Bits | UnaryClass::BitCount if dtype.kind() > Kind::Signed => Err(refused()),
            UnaryClass::Bits => same(dtype),
            UnaryClass::BitCount => Ok(Signature { args: bool_as_int8(dtype), out: DType::U8 }),
            UnaryClass::Magnitude => Ok(Signature { args: dtype, out: dtype.real_part() }),
            UnaryClass::Special | UnaryClass::SpecialNarrow if dtype.is_complex() => Err(refused()),
            UnaryClass::Special => same(if dtype == DType::F32 { DType::F32 } else { DType::F64 }),
            UnaryClass::SpecialNarrow => same(promote(dtype.to_inexact(), DType::F32)),
        }
    }

    /// Whether this is a function of SciPy, which warns of nothing.
    pub fn is_special(self) -> bool {
        matches!(self.class(), UnaryClass::Special | UnaryClass::SpecialNarrow)
    }
}

impl UnaryOp {
    /// The function that computes this one on arguments of `dtype`, as [`BinaryOp::computing`].
    #[must_use]
    pub fn computing(self, dtype: DType) -> UnaryOp {
        if self == UnaryOp::Spacing && dtype == DType::F16 { UnaryOp::SpacingHalf } else { self }
    }
}

impl BinaryOp {
    /// The dtypes of a call with arguments of `a` and `b`.
    ///
    /// # Errors
    /// `NoLoop` where NumPy raises `TypeError`.
    pub fn signature(self, a: DType, b: DType) -> Result<Signature, KernelError> {
        let refused = || KernelError::NoLoop { function: self.name(), dtypes: vec![a, b] };
        let same = |d: DType| Ok(Signature { args: d, out: d });
        let common = promote(a, b);
        match self.class() {
            BinaryClass::NumberNotBool if common == DType::Bool => Err(refused()),
            BinaryClass::Number | BinaryClass::NumberNotBool => same(common),
            BinaryClass::Divide if common.kind() < Kind::Float => same(DType::F64),
            BinaryClass::Divide => same(common),
            BinaryClass::Real | BinaryClass::Floored if common.is_complex() => Err(refused()),
            BinaryClass::Real => match promote(a.to_inexact(), b.to_inexact()) {
                DType::BF16 if self == BinaryOp::Nextafter => Err(refused()),
                float => same(float),
            },
            BinaryClass::Floored | BinaryClass::Power => same(bool_as_int8(common)),
            BinaryClass::Compare => Ok(Signature { args: common, out: DType::Bool }),
            BinaryClass::Logical => Ok(Signature { args: DType::Bool, out: DType::Bool }),
            BinaryClass::Bits | BinaryClass::Integer if common.kind() > Kind::Signed => Err(refused()),
            BinaryClass::IntegerNotBool if !common.is_integer() => Err(refused()),
            BinaryClass::Bits | BinaryClass::IntegerNotBool => same(common),
            BinaryClass::Integer => same(bool_as_int8(common)),
            BinaryClass::Parts => match promote(promote(a.to_inexact(), b.to_inexact()), DType::F32) {
                float if float.is_complex() => Err(refused()),
                float => Ok(Signature { args: float, out: to_complex(float) }),
            },
            BinaryClass::Scaled if a.is_complex() || b == DType::U64 || b.kind() > Kind::Signed => {
                Err(refused())
            }
            BinaryClass::Scaled => same(a.to_inexact()),
            BinaryClass::Special | BinaryClass::SpecialNarrow if common.is_complex() => Err(refused()),
            BinaryClass::Special if a == DType::F32 && b == DType::F32 => same(DType::F32),
            BinaryClass::Special => same(DType::F64),
            BinaryClass::SpecialNarrow => same(promote(promote(a.to_inexact(), b.to_inexact()), DType::F32)),
        }
    }

    /// Whether this is a function of SciPy, which warns of nothing.
    pub fn is_special(self) -> bool {
        matches!(self.class(), BinaryClass::Special | BinaryClass::SpecialNarrow)
    }

    /// The function that computes this one on arguments of `dtype`. Half precision is widened to float32
    /// first, but a number has other neighbours there.
    #[must_use]
    pub fn computing(self, dtype: DType) -> BinaryOp {
        if self == BinaryOp::Nextafter && dtype == DType::F16 { BinaryOp::NextafterHalf } else { self }
    }

    /// Whether exchanging the two arguments leaves every bit of the result the same.
    pub fn commutes(self) -> bool {
        use BinaryOp::*;
        matches!(self, Add | Multiply | Equal | NotEqual | LogicalAnd | LogicalOr | LogicalXor)
            || matches!(self, BitwiseAnd | BitwiseOr | BitwiseXor)
    }
}

fn bool_as_int8(dtype: DType) -> DType {
    if dtype == DType::Bool { DType::I8 } else { dtype }
}
