//! Element-wise functions under NumPy's names, and Rust's operators.
//!
//! If shapes clash or a dtype is refused, the resulting tensor carries the error, see [`Tensor`]. Operators
//! take tensors by value or by reference, and numbers on either side.

use crate::comparison;
use crate::operand::{Operand, cast, is_below, is_beyond, pair, pair_in};
use crate::tensor::{Tensor, carry};
use tharsis_graph::Error as GraphError;
use tharsis_graph::ops::{Binary, Cast, Unary, Where};
use tharsis_kernels::{BinaryOp, DType, Kind, Scalar, UnaryOp, can_cast_same_kind, promote_all};

/// Applies one of NumPy's functions of one argument. The result has the shape of the tensor; its dtype
/// depends on the function.
///
/// ```
/// use tharsis_kernels::UnaryOp;
/// use tharsis_numeric::array;
/// use tharsis_numeric::elementwise::unary;
/// assert_eq!(unary(UnaryOp::Sqrt, &array([9.0])).to_vec::<f64>()?, [3.0]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// `TypeError` if it is not defined for the dtype.
#[track_caller]
pub fn unary(op: UnaryOp, x: &Tensor) -> Tensor {
    Tensor::apply(Unary(op), &[x])
}

/// Applies one of NumPy's functions of two arguments. Shapes are broadcast; the dtype depends on the
/// function.
///
/// ```
/// use tharsis_kernels::BinaryOp;
/// use tharsis_numeric::arange;
/// use tharsis_numeric::elementwise::binary;
/// assert_eq!(binary(BinaryOp::Subtract, 10, arange(2)).to_vec::<i64>()?, [10, 9]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
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

/// The exponents for which NumPy has a faster function.
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

impl Tensor {
    /// NumPy's `astype`: the same values in another dtype; any shape.
    ///
    /// ```
    /// use tharsis_numeric::{DType, array};
    /// assert_eq!(array([1.9, -1.9]).astype(DType::I64).to_vec::<i64>()?, [1, -1]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    #[track_caller]
    pub fn astype(&self, dtype: DType) -> Tensor {
        Tensor::apply(Cast(dtype), &[self])
    }

    /// NumPy's `astype(.., casting='same_kind')`: the same values in another dtype of the same or a higher
    /// kind: not float to integer, not signed to unsigned.
    ///
    /// ```
    /// use tharsis_numeric::{DType, ones};
    /// assert_eq!(ones(&[2]).astype_same_kind(DType::F32).dtype()?, DType::F32);
    /// assert_eq!(ones(&[2]).astype_same_kind(DType::I64).check().unwrap_err().class(), "TypeError");
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `TypeError` if the rule does not allow the cast.
    #[track_caller]
    pub fn astype_same_kind(&self, dtype: DType) -> Tensor {
        let from = carry!(self.dtype());
        if !can_cast_same_kind(from, dtype) {
            let message = format!("cannot cast from {from} to {dtype} according to the rule 'same_kind'");
            return Tensor::refused(GraphError::Type(message), &[self]);
        }
        self.astype(dtype)
    }

    /// NumPy's `clip`: elements limited to `low..=high`; NaN stays NaN; shapes are broadcast, dtypes
    /// promoted.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// assert_eq!(arange(4).clip(1, 2).to_vec::<i64>()?, [1, 1, 2, 2]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` if the shapes do not broadcast.
    #[track_caller]
    pub fn clip(&self, low: impl Into<Operand>, high: impl Into<Operand>) -> Tensor {
        self.clip_to(Some(low.into()), Some(high.into()))
    }

    /// NumPy's `clip` with `None`: as [`Tensor::clip`], where either bound may be absent. A whole number
    /// beyond the dtype of an integer tensor bounds nothing.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// assert_eq!(arange(3).clip_to(None, Some(1.into())).to_vec::<i64>()?, [0, 1, 1]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::clip`]; `OverflowError` for bounds that no element can satisfy.
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

/// NumPy's `where`: elements of `a` where `condition` is true, else of `b`; all three are broadcast, the
/// dtypes of `a` and `b` promoted.
///
/// ```
/// use tharsis_numeric::{arange, where_};
/// let x = arange(3);
/// assert_eq!(where_(&x.less(1), -1, &x).to_vec::<i64>()?, [-1, 1, 2]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
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

// No numbers on the left: Rust's own shifts are inferred there.
operators!(@tensor Shl, shl, LeftShift, Tensor);
operators!(@tensor Shl, shl, LeftShift, &Tensor);
operators!(@tensor Shr, shr, RightShift, Tensor);
operators!(@tensor Shr, shr, RightShift, &Tensor);

// Assignment binds the name to the new expression; clones of the old one are unchanged.
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
