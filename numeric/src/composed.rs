//! Element-wise functions composed of others. They fuse into one loop, like a function with its own kernel.

use crate::elementwise::{binary, unary, where_};
use crate::operand::{Operand, cast};
use crate::tensor::{Tensor, carry};
use tharsis_graph::Error as GraphError;
use tharsis_kernels::{BinaryOp, DType, Kind, Scalar, UnaryOp};

impl Tensor {
    /// NumPy's `angle`: the angle of complex numbers in radians, 0 or pi for real ones; gives floats.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// assert_eq!(array([1.0, -1.0]).angle().to_vec::<f64>()?, [0.0, std::f64::consts::PI]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    #[track_caller]
    pub fn angle(&self) -> Tensor {
        let dtype = carry!(self.dtype());
        if dtype.is_complex() {
            return self.imag().arctan2(self.real());
        }
        let dtype = if dtype == DType::Bool { DType::F64 } else { dtype.to_inexact() };
        let x = cast(self, dtype);
        x.zeros_of().arctan2(&x)
    }

    /// NumPy's `divmod`: the quotient rounded down, and the remainder; shapes are broadcast, the common
    /// dtype.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// let (quotient, rest) = arange(5).divmod(2);
    /// assert_eq!(quotient.to_vec::<i64>()?, [0, 0, 1, 1, 2]);
    /// assert_eq!(rest.to_vec::<i64>()?, [0, 1, 0, 1, 0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::floor_divide`].
    #[track_caller]
    pub fn divmod(&self, other: impl Into<Operand>) -> (Tensor, Tensor) {
        let other = other.into();
        (self.floor_divide(other.clone()), self.remainder(other))
    }

    /// NumPy's `fix`: rounded towards zero; the dtype stays.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// assert_eq!(array([1.7, -1.7]).fix().to_vec::<f64>()?, [1.0, -1.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `TypeError` for complex numbers.
    #[track_caller]
    pub fn fix(&self) -> Tensor {
        self.trunc()
    }

    /// NumPy's `float_power`: powers in float64, or complex128; shapes are broadcast.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// assert_eq!(arange(3).float_power(-1).to_vec::<f64>()?, [f64::INFINITY, 1.0, 0.5]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` if the shapes do not broadcast.
    #[track_caller]
    pub fn float_power(&self, exponent: impl Into<Operand>) -> Tensor {
        let exponent = exponent.into().alone();
        let complex = carry!(self.dtype()).is_complex() || carry!(exponent.dtype()).is_complex();
        let dtype = if complex { DType::C128 } else { DType::F64 };
        cast(self, dtype).power(cast(&exponent, dtype))
    }

    /// NumPy's `frexp`: mantissas, from 0.5 to 1 in absolute value, and exponents (int32), so that
    /// `x = mantissa * 2^exponent`.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let (mantissa, power) = array([12.0]).frexp();
    /// assert_eq!(mantissa.to_vec::<f64>()?, [0.75]);
    /// assert_eq!(power.to_vec::<i32>()?, [4]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `TypeError` for complex numbers.
    #[track_caller]
    pub fn frexp(&self) -> (Tensor, Tensor) {
        let power = unary(UnaryOp::FrexpExponent, self);
        (unary(UnaryOp::FrexpMantissa, self), cast(&power, DType::I32))
    }

    /// NumPy's `isclose`: whether elements are as close as `atol + rtol * |other|`; infinities if they are
    /// equal, NaN never; shapes are broadcast; gives bool.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// assert_eq!(array([1.0, 2.0]).isclose(1.000_001, 1e-5, 0.0).to_vec::<bool>()?, [true, false]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` if the shapes do not broadcast.
    #[track_caller]
    pub fn isclose(&self, other: impl Into<Operand>, rtol: f64, atol: f64) -> Tensor {
        let y = match other.into() {
            Operand::Number(number @ (Scalar::Int(_) | Scalar::Unsigned(_))) => {
                Operand::Number(Scalar::Float(number.to_f64()))
            }
            other => other,
        };
        // Differences of floats are computed in their own dtype, as in NumPy.
        let y = y.beside(carry!(self.dtype()));
        let y = if carry!(y.dtype()).kind() < Kind::Float { cast(&y, DType::F64) } else { y };
        let near = (self - &y).abs().less_equal(y.abs() * rtol + atol);
        near.logical_and(y.isfinite()).logical_or(self.equal(&y))
    }

    /// NumPy's `iscomplex`: whether there is an imaginary part other than zero; gives bool.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// assert_eq!(array([1.0, 2.0]).iscomplex().to_vec::<bool>()?, [false, false]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    #[track_caller]
    pub fn iscomplex(&self) -> Tensor {
        if carry!(self.dtype()).is_complex() {
            self.imag().not_equal(0)
        } else {
            self.isnan().logical_and(false)
        }
    }

    /// NumPy's `isreal`: whether there is no imaginary part other than zero; gives bool.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// assert_eq!(array([1.0, 2.0]).isreal().to_vec::<bool>()?, [true, true]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    #[track_caller]
    pub fn isreal(&self) -> Tensor {
        if carry!(self.dtype()).is_complex() { self.imag().equal(0) } else { self.isnan().logical_or(true) }
    }

    /// NumPy's `isneginf`: whether minus infinity; gives bool.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// assert_eq!(array([f64::NEG_INFINITY, 0.0]).isneginf().to_vec::<bool>()?, [true, false]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `TypeError` for complex numbers.
    #[track_caller]
    pub fn isneginf(&self) -> Tensor {
        self.signbit().logical_and(self.isinf())
    }

    /// NumPy's `isposinf`: whether plus infinity; gives bool.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// assert_eq!(array([f64::INFINITY, 0.0]).isposinf().to_vec::<bool>()?, [true, false]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `TypeError` for complex numbers.
    #[track_caller]
    pub fn isposinf(&self) -> Tensor {
        self.signbit().logical_not().logical_and(self.isinf())
    }

    /// NumPy's `modf`: the fractional and the whole part, each with the sign of the number; floats.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let (fraction, whole) = array([-2.5]).modf();
    /// assert_eq!((fraction.to_vec::<f64>()?, whole.to_vec::<f64>()?), (vec![-0.5], vec![-2.0]));
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `TypeError` for complex numbers.
    #[track_caller]
    pub fn modf(&self) -> (Tensor, Tensor) {
        let dtype = self.dtype().map_or(DType::F64, DType::to_inexact);
        let x = cast(self, dtype);
        let whole = x.trunc();
        let fraction = where_(&x.isinf(), x.zeros_of(), &x - &whole).copysign(&x);
        (fraction, whole)
    }

    /// NumPy's `nan_to_num`: replaces NaN by `nan`, and infinities by the largest and smallest number of the
    /// dtype, which stays.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// assert_eq!(array([f64::NAN, f64::INFINITY]).nan_to_num(0.0).to_vec::<f64>()?, [0.0, f64::MAX]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    #[track_caller]
    pub fn nan_to_num(&self, nan: f64) -> Tensor {
        let largest = match carry!(self.dtype()) {
            dtype if dtype.is_complex() => return self.by_parts(|part| part.nan_to_num(nan)),
            DType::F16 => 65504.0,
            DType::BF16 => tharsis_kernels::bf16::MAX.to_f64(),
            DType::F32 => f64::from(f32::MAX),
            DType::F64 => f64::MAX,
            _ => return self.clone(),
        };
        let finite = self.clip(-largest, largest);
        where_(&self.isnan(), nan, &finite)
    }

    /// NumPy's `round`: rounded to `decimals` decimals, halves to even; the dtype stays.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// assert_eq!(array([0.5, 1.25]).round(1).to_vec::<f64>()?, [0.5, 1.2]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `TypeError` for bool.
    #[track_caller]
    pub fn round(&self, decimals: u32) -> Tensor {
        let dtype = carry!(self.dtype());
        if dtype.is_integer() {
            return self.clone();
        }
        if decimals == 0 {
            return self.rint();
        }
        if dtype.is_complex() {
            return self.by_parts(|part| part.round(decimals));
        }
        if dtype == DType::Bool {
            let text = "Cannot cast ufunc 'multiply' output from dtype('float64') to dtype('bool') with casting \
                        rule 'same_kind'";
            return Tensor::refused(GraphError::Type(text.to_owned()), &[self]);
        }
        let scale = 10f64.powi(decimals as i32);
        self.multiply(scale).rint().divide(scale)
    }

    /// NumPy's `i0`: the modified Bessel function of the first kind, order 0. Floats keep their dtype, other
    /// real numbers give float64.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// assert_eq!(array([0.0]).i0().to_vec::<f64>()?, [1.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `TypeError` for complex numbers.
    #[track_caller]
    pub fn i0(&self) -> Tensor {
        let dtype = carry!(self.dtype());
        if dtype.is_complex() {
            let text = "i0 not supported for complex values".to_owned();
            return Tensor::refused(GraphError::Type(text), &[self]);
        }
        let x = if dtype.is_float() { self.clone() } else { self.astype(DType::F64) };
        crate::elementwise::unary(UnaryOp::I0, &x)
    }

    /// NumPy's `sinc`: `sin(pi x) / (pi x)`, 1 at zero; floats and complex numbers.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// assert_eq!(array([0.0]).sinc().to_vec::<f64>()?, [1.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    #[track_caller]
    pub fn sinc(&self) -> Tensor {
        let angle = self.multiply(std::f64::consts::PI);
        // As NumPy: zero is replaced by a number so near zero that its sine rounds to the number itself.
        let near = match carry!(angle.dtype()) {
            DType::F16 => 2f64.powi(-10),
            DType::BF16 => 2f64.powi(-7),
            DType::F32 => 2f64.powi(-23),
            DType::F64 => 2f64.powi(-52),
            _ => 1e-20,
        };
        let angle = where_(&angle.equal(0.0), near, &angle);
        angle.sin().divide(&angle)
    }

    /// A function of real numbers applied to the real and to the imaginary part.
    #[track_caller]
    fn by_parts(&self, f: impl Fn(&Tensor) -> Tensor) -> Tensor {
        binary(BinaryOp::FromParts, f(&self.real()), f(&self.imag()))
    }

    /// Zeros in the shape of this tensor, which may be unknown.
    #[track_caller]
    fn zeros_of(&self) -> Tensor {
        let dtype = carry!(self.dtype());
        cast(&cast(&self.isnan(), dtype).multiply(0.0), dtype)
    }
}

#[cfg(test)]
mod tests {
    use crate::Tensor;

    #[test]
    fn parts_of_infinities_and_zeros_keep_their_sign() {
        let x = Tensor::from_elements(&[5], &[2.5, -0.5, f64::INFINITY, f64::NEG_INFINITY, -0.0]);
        let (fraction, whole) = x.modf();
        let fraction = fraction.fetch::<f64>().unwrap().into_raw_vec_and_offset().0;
        assert_eq!(fraction, [0.5, -0.5, 0.0, 0.0, 0.0]);
        let signs: Vec<bool> = fraction.iter().map(|x| x.is_sign_negative()).collect();
        assert_eq!(signs, [false, true, false, true, true]);
        assert_eq!(whole.fetch::<f64>().unwrap()[[2]], f64::INFINITY);
    }
}
