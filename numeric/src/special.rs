//! SciPy's special functions, as functions of tensors: element-wise, fused as those of NumPy are. Arguments
//! are real; complex ones are a `TypeError`. As in SciPy no value is warned of.

use crate::elementwise::{binary, unary};
use crate::operand::Operand;
use crate::tensor::Tensor;
use tharsis_kernels::{BinaryOp, UnaryOp};

/// Text on the dtypes of arguments and result.
macro_rules! dtypes {
    (Special) => {
        "float32 stays, all others give float64."
    };
    (SpecialNarrow) => {
        "Gives float32 if that holds the arguments, else float64."
    };
}

macro_rules! unary_functions {
    ($(#[doc = $doc:literal] $name:ident: $op:ident $class:ident $x:tt => $y:tt;)*) => {
        /// A line about each function, for the list of operations.
        pub(crate) const SPECIAL_DOCS: &[(UnaryOp, &str)] = &[$((UnaryOp::$op, $doc)),*];

        $(
            #[doc = $doc]
            ///
            #[doc = concat!("SciPy's `special.", stringify!($name), "`: element-wise, in the shape of the tensor. ", dtypes!($class))]
            ///
            /// ```
            /// use tharsis_numeric::{array, special};
            #[doc = concat!("let found = special::", stringify!($name), "(&array(", stringify!($x), "));")]
            #[doc = concat!("assert!(found.isclose(array(", stringify!($y), "), 1e-14, 0.0).all(..).item()?.is_true());")]
            /// # Ok::<(), tharsis_numeric::Error>(())
            /// ```
            ///
            /// # Errors
            /// `TypeError` for complex numbers.
            #[track_caller]
            pub fn $name(x: &Tensor) -> Tensor {
                unary(UnaryOp::$op, x)
            }
        )*
    };
}

unary_functions! {
    /// Entropy of one element, `-x log x`: 0 at zero, negative infinity below.
    entr: Entr SpecialNarrow [0.0, 0.5] => [0.0, 0.34657359027997264];
    /// Error function.
    erf: Erf Special [0.0, 0.5] => [0.0, 0.5204998778130465];
    /// Complementary error function, `1 - erf(x)`.
    erfc: Erfc Special [0.0, 10.0] => [1.0, 2.088487583762545e-45];
    /// Inverse of `erfc`.
    erfcinv: Erfcinv SpecialNarrow [1.0, 0.5] => [0.0, 0.4769362762044699];
    /// Inverse of `erf`.
    erfinv: Erfinv SpecialNarrow [0.0, 0.5] => [0.0, 0.4769362762044699];
    /// Logistic function, `1 / (1 + exp(-x))`.
    expit: Expit Special [0.0, 1.0] => [0.5, 0.7310585786300049];
    /// Gamma function; NaN at the poles below zero, infinite at zero.
    gamma: Gamma Special [5.0, 0.5] => [24.0, 1.772453850905516];
    /// Logarithm of the absolute value of the gamma function.
    gammaln: Gammaln Special [1.0, 100.0] => [0.0, 359.1342053695754];
    /// Sign of the gamma function; NaN at the poles below zero.
    gammasgn: Gammasgn Special [2.0, -0.5, -1.5] => [1.0, -1.0, 1.0];
    /// Inverse of `expit`, `log(x / (1 - x))`.
    logit: Logit Special [0.5, 0.25] => [0.0, -1.0986122886681098];
    /// One divided by the gamma function; 0 at its poles.
    rgamma: Rgamma Special [-1.0, 5.0] => [0.0, 0.041666666666666664];
}

macro_rules! binary_functions {
    ($(#[doc = $doc:literal] $name:ident: $op:ident $class:ident $x:tt, $y:tt => $z:tt;)*) => {
        /// A line about each function, for the list of operations.
        pub(crate) const SPECIAL_BINARY_DOCS: &[(BinaryOp, &str)] = &[$((BinaryOp::$op, $doc)),*];

        $(
            #[doc = $doc]
            ///
            #[doc = concat!("SciPy's `special.", stringify!($name), "`: element-wise, shapes are broadcast. ", dtypes!($class))]
            ///
            /// ```
            /// use tharsis_numeric::{array, special};
            #[doc = concat!("let found = special::", stringify!($name), "(array(", stringify!($x), "), array(", stringify!($y), "));")]
            #[doc = concat!("assert!(found.isclose(array(", stringify!($z), "), 1e-14, 0.0).all(..).item()?.is_true());")]
            /// # Ok::<(), tharsis_numeric::Error>(())
            /// ```
            ///
            /// # Errors
            /// `ValueError` if the shapes do not broadcast; `TypeError` for complex numbers.
            #[track_caller]
            pub fn $name(x: impl Into<Operand>, y: impl Into<Operand>) -> Tensor {
                binary(BinaryOp::$op, x, y)
            }
        )*
    };
}

binary_functions! {
    /// Term of the Kullback-Leibler divergence, `x log(x / y) - x + y`.
    kl_div: KlDiv SpecialNarrow [0.0, 1.0], [2.0] => [2.0, 0.3068528194400547];
    /// Relative entropy of one element, `x log(x / y)`: 0 for x = 0, infinite for negative ones.
    rel_entr: RelEntr SpecialNarrow [0.0, 1.0], [2.0] => [0.0, -0.6931471805599453];
    /// `x log(1 + y)`: 0 for x = 0, whatever number y is.
    xlog1py: Xlog1py Special [0.0, 1.0], [-1.0, 1.0] => [0.0, 0.6931471805599453];
    /// `x log y`: 0 for x = 0, whatever number y is.
    xlogy: Xlogy Special [0.0, 1.0], [0.0, 2.0] => [0.0, 0.6931471805599453];
}
