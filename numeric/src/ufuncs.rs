//! NumPy's element-wise functions as methods: a table. A row has the name, the function of the kernels, the
//! class of its dtypes, and an example that is a test.

use crate::elementwise::{binary, unary};
use crate::operand::Operand;
use crate::tensor::Tensor;
use tharsis_kernels::{BinaryOp, UnaryOp};

/// Text on the dtypes of arguments and result; the classes are those of `tharsis_kernels::ufunc`.
macro_rules! dtypes {
    (Number) => {
        "The dtype stays; `TypeError` for bool."
    };
    (NumberOrBool) => {
        "The dtype stays; bool counts as int8."
    };
    (Inexact) => {
        "Floats and complex numbers keep their dtype, integers become floats."
    };
    (Real) => {
        "Floats keep their dtype, integers become floats; `TypeError` for complex numbers."
    };
    (Rounding) => {
        "The dtype stays, integers as they are; `TypeError` for complex numbers."
    };
    (Question) => {
        "Gives bool."
    };
    (RealQuestion) => {
        "Gives bool; `TypeError` for complex numbers."
    };
    (Logical) => {
        "Takes any dtype, of which zero is false; gives bool."
    };
    (Bits) => {
        "Integers and bool, whose dtype stays; `TypeError` for others."
    };
    (BitCount) => {
        "Integers and bool; gives uint8; `TypeError` for others."
    };
    (Magnitude) => {
        "The dtype stays; complex numbers give floats."
    };
    (Common) => {
        "Gives the common dtype."
    };
    (CommonNotBool) => {
        "Gives the common dtype; `TypeError` for two bools."
    };
    (Divide) => {
        "Gives the common float or complex dtype; integers give float64."
    };
    (CommonReal) => {
        "Gives the common float dtype; `TypeError` for complex numbers."
    };
    (Floored) => {
        "Gives the common dtype; `TypeError` for complex numbers."
    };
    (Power) => {
        "Gives the common dtype; bool counts as int8."
    };
    (Compare) => {
        "Compares in the common dtype, integers exactly; gives bool."
    };
    (Integer) => {
        "Gives the common integer dtype, bool counts as int8; `TypeError` for others."
    };
    (IntegerNotBool) => {
        "Gives the common integer dtype; `TypeError` for others."
    };
    (Scaled) => {
        "Gives the float dtype of the first; the second is of integers."
    };
}

macro_rules! unary_methods {
    ($(#[doc = $doc:literal] $name:ident: $op:ident $numpy:literal $class:ident $x:tt => $t:ident $y:tt;)*) => {
        /// A line about each function, for the list of operations.
        pub(crate) const UNARY_DOCS: &[(UnaryOp, &str)] = &[$((UnaryOp::$op, $doc)),*];

        impl Tensor {
            $(
                #[doc = $doc]
                ///
                #[doc = concat!("NumPy's `", $numpy, "`: element-wise, in the shape of the tensor. ", dtypes!($class))]
                ///
                /// ```
                #[doc = concat!("let x = tharsis_numeric::array(", stringify!($x), ");")]
                #[doc = concat!("assert_eq!(x.", stringify!($name), "().to_vec::<", stringify!($t), ">()?, ", stringify!($y), ");")]
                /// # Ok::<(), tharsis_numeric::Error>(())
                /// ```
                #[track_caller]
                pub fn $name(&self) -> Tensor {
                    unary(UnaryOp::$op, self)
                }
            )*
        }
    };
}

unary_methods! {
    /// Absolute value; for complex numbers the modulus.
    abs: Absolute "absolute" Magnitude [-2.0, 3.0] => f64 [2.0, 3.0];
    /// Inverse cosine.
    arccos: Arccos "arccos" Inexact [1.0] => f64 [0.0];
    /// Inverse hyperbolic cosine.
    arccosh: Arccosh "arccosh" Inexact [1.0] => f64 [0.0];
    /// Inverse sine.
    arcsin: Arcsin "arcsin" Inexact [0.0, 1.0] => f64 [0.0, std::f64::consts::FRAC_PI_2];
    /// Inverse hyperbolic sine.
    arcsinh: Arcsinh "arcsinh" Inexact [0.0] => f64 [0.0];
    /// Inverse tangent.
    arctan: Arctan "arctan" Inexact [0.0, 1.0] => f64 [0.0, std::f64::consts::FRAC_PI_4];
    /// Inverse hyperbolic tangent.
    arctanh: Arctanh "arctanh" Inexact [0.0] => f64 [0.0];
    /// Number of ones in the absolute value of an integer.
    bitwise_count: BitwiseCount "bitwise_count" BitCount [7i64, -8] => u8 [3, 1];
    /// Cube root.
    cbrt: Cbrt "cbrt" Real [27.0, -8.0] => f64 [3.0, -2.0];
    /// Smallest whole number that is not below.
    ceil: Ceil "ceil" Rounding [1.2, -1.2] => f64 [2.0, -1.0];
    /// Complex conjugate.
    conj: Conjugate "conjugate" NumberOrBool [1.5, -2.0] => f64 [1.5, -2.0];
    /// Cosine.
    cos: Cos "cos" Inexact [0.0] => f64 [1.0];
    /// Hyperbolic cosine.
    cosh: Cosh "cosh" Inexact [0.0] => f64 [1.0];
    /// Radians to degrees.
    degrees: Degrees "degrees" Real [0.0, std::f64::consts::PI] => f64 [0.0, 180.0];
    /// e to the power of each element.
    exp: Exp "exp" Inexact [0.0] => f64 [1.0];
    /// 2 to the power of each element.
    exp2: Exp2 "exp2" Inexact [3.0, -1.0] => f64 [8.0, 0.5];
    /// `exp(x) - 1`, exact near zero.
    expm1: Expm1 "expm1" Inexact [0.0, 1e-20] => f64 [0.0, 1e-20];
    /// Absolute value as a float.
    fabs: Fabs "fabs" Real [-2i64] => f64 [2.0];
    /// Largest whole number that is not above.
    floor: Floor "floor" Rounding [1.8, -1.2] => f64 [1.0, -2.0];
    /// Imaginary part.
    imag: Imag "imag" Magnitude [1.5] => f64 [0.0];
    /// Bits inverted.
    invert: Invert "invert" Bits [0i64, 5] => i64 [-1, -6];
    /// Whether neither infinite nor NaN.
    isfinite: Isfinite "isfinite" Question [1.0, f64::INFINITY, f64::NAN] => bool [true, false, false];
    /// Whether infinite.
    isinf: Isinf "isinf" Question [1.0, f64::INFINITY, f64::NAN] => bool [false, true, false];
    /// Whether NaN.
    isnan: Isnan "isnan" Question [1.0, f64::INFINITY, f64::NAN] => bool [false, false, true];
    /// Natural logarithm.
    log: Log "log" Inexact [1.0, std::f64::consts::E] => f64 [0.0, 1.0];
    /// Decimal logarithm.
    log10: Log10 "log10" Inexact [1.0, 1000.0] => f64 [0.0, 3.0];
    /// `log(1 + x)`, exact near zero.
    log1p: Log1p "log1p" Inexact [0.0, 1e-20] => f64 [0.0, 1e-20];
    /// Binary logarithm.
    log2: Log2 "log2" Inexact [1.0, 8.0] => f64 [0.0, 3.0];
    /// Whether zero or false.
    logical_not: LogicalNot "logical_not" Logical [0.0, 2.0] => bool [true, false];
    /// The negative.
    negative: Negative "negative" Number [1.0, -2.0] => f64 [-1.0, 2.0];
    /// The element itself.
    positive: Positive "positive" Number [1.0, -2.0] => f64 [1.0, -2.0];
    /// Degrees to radians.
    radians: Radians "radians" Real [0.0, 180.0] => f64 [0.0, std::f64::consts::PI];
    /// Real part.
    real: Real "real" Magnitude [1.5] => f64 [1.5];
    /// One divided by each element.
    reciprocal: Reciprocal "reciprocal" NumberOrBool [2.0, -4.0] => f64 [0.5, -0.25];
    /// Nearest whole number, halves to even.
    rint: Rint "rint" Inexact [0.5, 1.5, -1.7] => f64 [0.0, 2.0, -2.0];
    /// -1, 0 or 1; for complex numbers the direction.
    sign: Sign "sign" Number [-2.0, 0.0, 5.0] => f64 [-1.0, 0.0, 1.0];
    /// Whether the sign bit is set.
    signbit: Signbit "signbit" RealQuestion [-0.0, 0.0] => bool [true, false];
    /// Sine.
    sin: Sin "sin" Inexact [0.0] => f64 [0.0];
    /// Hyperbolic sine.
    sinh: Sinh "sinh" Inexact [0.0] => f64 [0.0];
    /// Distance to the next float.
    spacing: Spacing "spacing" Real [1.0] => f64 [f64::EPSILON];
    /// Square root.
    sqrt: Sqrt "sqrt" Inexact [4.0, 2.25] => f64 [2.0, 1.5];
    /// Product with itself.
    square: Square "square" NumberOrBool [3i64, -4] => i64 [9, 16];
    /// Tangent.
    tan: Tan "tan" Inexact [0.0] => f64 [0.0];
    /// Hyperbolic tangent.
    tanh: Tanh "tanh" Inexact [0.0] => f64 [0.0];
    /// Whole number toward zero.
    trunc: Trunc "trunc" Rounding [1.8, -1.8] => f64 [1.0, -1.0];
}

macro_rules! binary_methods {
    ($(#[doc = $doc:literal] $name:ident: $op:ident $class:ident $x:tt, $y:tt => $t:ident $z:tt;)*) => {
        /// A line about each function, for the list of operations.
        pub(crate) const BINARY_DOCS: &[(BinaryOp, &str)] = &[$((BinaryOp::$op, $doc)),*];

        impl Tensor {
            $(
                #[doc = $doc]
                ///
                #[doc = concat!("NumPy's `", stringify!($name), "`: element-wise, shapes are broadcast. ", dtypes!($class))]
                ///
                /// ```
                /// use tharsis_numeric::array;
                #[doc = concat!("let x = array(", stringify!($x), ");")]
                #[doc = concat!(
                    "assert_eq!(x.", stringify!($name), "(array(", stringify!($y), ")).to_vec::<",
                    stringify!($t), ">()?, ", stringify!($z), ");"
                )]
                /// # Ok::<(), tharsis_numeric::Error>(())
                /// ```
                ///
                /// # Errors
                /// `ValueError` if the shapes do not broadcast.
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
    add: Add Common [1.0, 2.0], [10.0, 20.0] => f64 [11.0, 22.0];
    /// Angle of the point (`other`, `self`).
    arctan2: Arctan2 CommonReal [0.0, 1.0], [1.0, 0.0] => f64 [0.0, std::f64::consts::FRAC_PI_2];
    /// Bits set in both.
    bitwise_and: BitwiseAnd Bits [12i64], [10i64] => i64 [8];
    /// Bits set in either.
    bitwise_or: BitwiseOr Bits [12i64], [10i64] => i64 [14];
    /// Bits set in one of them.
    bitwise_xor: BitwiseXor Bits [12i64], [10i64] => i64 [6];
    /// Magnitude of `self` with the sign of `other`.
    copysign: Copysign CommonReal [1.0, -2.0], [-0.0, 3.0] => f64 [-1.0, 2.0];
    /// True quotient.
    divide: Divide Divide [1i64, 3], [2i64] => f64 [0.5, 1.5];
    /// Whether equal.
    equal: Equal Compare [1i64, 2], [1.0] => bool [true, false];
    /// Quotient rounded down.
    floor_divide: FloorDivide Floored [7i64, -7], [2i64] => i64 [3, -4];
    /// The larger, ignoring NaN.
    fmax: Fmax Common [1.0, f64::NAN], [2.0] => f64 [2.0, 2.0];
    /// The smaller, ignoring NaN.
    fmin: Fmin Common [1.0, f64::NAN], [2.0] => f64 [1.0, 2.0];
    /// Remainder with the sign of the dividend.
    fmod: Fmod Floored [7i64, -7], [3i64] => i64 [1, -1];
    /// Greatest common divisor.
    gcd: Gcd IntegerNotBool [12i64, 7], [18i64] => i64 [6, 1];
    /// Whether greater.
    greater: Greater Compare [1.0, 3.0], [2.0] => bool [false, true];
    /// Whether greater or equal.
    greater_equal: GreaterEqual Compare [1.0, 2.0], [2.0] => bool [false, true];
    /// 0 for negative, 1 for positive elements, `other` for zeros.
    heaviside: Heaviside CommonReal [-1.5, 0.0, 2.0], [0.5] => f64 [0.0, 0.5, 1.0];
    /// Length of the hypotenuse.
    hypot: Hypot CommonReal [3.0], [4.0] => f64 [5.0];
    /// Least common multiple.
    lcm: Lcm IntegerNotBool [4i64], [6i64] => i64 [12];
    /// Bits shifted up.
    left_shift: LeftShift Integer [1i64, 3], [2i64] => i64 [4, 12];
    /// Whether less.
    less: Less Compare [1.0, 3.0], [2.0] => bool [true, false];
    /// Whether less or equal.
    less_equal: LessEqual Compare [2.0, 3.0], [2.0] => bool [true, false];
    /// `x * 2^i`, where `i` is a whole number.
    ldexp: Ldexp Scaled [1.5], [3i64] => f64 [12.0];
    /// Logarithm of the sum of exponentials.
    logaddexp: Logaddexp CommonReal [f64::NEG_INFINITY], [2.0] => f64 [2.0];
    /// Binary logarithm of the sum of powers of two.
    logaddexp2: Logaddexp2 CommonReal [3.0], [3.0] => f64 [4.0];
    /// Whether both are true.
    logical_and: LogicalAnd Logical [0.0, 2.0], [1.0] => bool [false, true];
    /// Whether either is true.
    logical_or: LogicalOr Logical [0.0, 2.0], [0.0] => bool [false, true];
    /// Whether one of them is true.
    logical_xor: LogicalXor Logical [0.0, 2.0], [1.0] => bool [true, false];
    /// The larger; NaN if either is.
    maximum: Maximum Common [1.0, 3.0], [2.0] => f64 [2.0, 3.0];
    /// The smaller; NaN if either is.
    minimum: Minimum Common [1.0, 3.0], [2.0] => f64 [1.0, 2.0];
    /// Product.
    multiply: Multiply Common [2.0, 3.0], [0.5] => f64 [1.0, 1.5];
    /// The next float toward the other.
    nextafter: Nextafter CommonReal [1.0], [2.0] => f64 [1.0 + f64::EPSILON];
    /// Whether different.
    not_equal: NotEqual Compare [1.0, 2.0], [2.0] => bool [true, false];
    /// Power.
    power: Power Power [2i64, 3], [3i64] => i64 [8, 27];
    /// Remainder with the sign of the divisor.
    remainder: Remainder Floored [7i64, -7], [3i64] => i64 [1, 2];
    /// Bits shifted down.
    right_shift: RightShift Integer [8i64, -8], [2i64] => i64 [2, -2];
    /// Difference.
    subtract: Subtract CommonNotBool [5.0, 1.0], [2.0] => f64 [3.0, -1.0];
}
