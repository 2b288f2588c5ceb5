//! NumPy's functions of dtypes: casts, common dtypes, kinds, and limits of numbers.

use crate::error::{Error, Result};
use crate::operand::Operand;
use tharsis_graph::Error as GraphError;
use tharsis_kernels::{DType, Kind, can_cast_same_kind, promote, promote_all};

/// NumPy's casting rules: which conversions are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Casting {
    /// To the same dtype.
    No,
    /// To a dtype that holds every value.
    Safe,
    /// To a dtype of the same or a higher kind: not float to integer, not signed to unsigned.
    SameKind,
    /// To any dtype.
    Unsafe,
}

impl Casting {
    /// The rule of this NumPy name.
    ///
    /// ```
    /// use tharsis_numeric::dtypes::Casting;
    /// assert_eq!(Casting::named("same_kind").ok(), Some(Casting::SameKind));
    /// ```
    ///
    /// # Errors
    /// `ValueError` for other names.
    #[track_caller]
    pub fn named(name: &str) -> Result<Casting> {
        match name {
            "no" | "equiv" => Ok(Casting::No),
            "safe" => Ok(Casting::Safe),
            "same_kind" => Ok(Casting::SameKind),
            "unsafe" => Ok(Casting::Unsafe),
            _ => {
                let text = "casting must be one of 'no', 'equiv', 'safe', 'same_kind', or 'unsafe'";
                Err(Error::here(GraphError::Value(format!("{text} (got '{name}')"))))
            }
        }
    }
}

/// NumPy's `can_cast`: whether a rule allows the conversion of a dtype to another.
///
/// ```
/// use tharsis_numeric::DType;
/// use tharsis_numeric::dtypes::{Casting, can_cast};
/// assert!(can_cast(DType::I32, DType::F64, Casting::Safe));
/// assert!(!can_cast(DType::I64, DType::F32, Casting::Safe));
/// ```
pub fn can_cast(from: DType, to: DType, rule: Casting) -> bool {
    match rule {
        Casting::No => from == to,
        Casting::Safe => promote(from, to) == to,
        Casting::SameKind => can_cast_same_kind(from, to),
        Casting::Unsafe => true,
    }
}

/// NumPy's `result_type`: the dtype of an operation on these operands; numbers take that of the tensors if it
/// is of their kind or a higher one.
///
/// ```
/// use tharsis_numeric::dtypes::result_type;
/// use tharsis_numeric::{DType, arange};
/// assert_eq!(result_type([arange(3).into(), 1.5.into()])?, DType::F64);
/// assert_eq!(result_type([arange(3).astype(DType::F32).into(), 1.5.into()])?, DType::F32);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// `ValueError` for no operands; the error of a tensor.
#[track_caller]
pub fn result_type(operands: impl IntoIterator<Item = Operand>) -> Result<DType> {
    let (mut strong, mut weak) = (Vec::new(), Vec::new());
    for operand in operands {
        match operand {
            Operand::Tensor(tensor) => strong.push(tensor.dtype()?),
            Operand::Number(number) => weak.push(number),
            Operand::Large(_) => {
                let text = "Python int too large to convert to C long".to_owned();
                return Err(Error::here(GraphError::Overflow(text)));
            }
        }
    }
    // Of numbers the one of the highest kind decides.
    let highest = weak.into_iter().max_by_key(|number| number.dtype().kind());
    match (strong.is_empty(), highest) {
        (true, None) => {
            let text = "at least one array or dtype is required".to_owned();
            Err(Error::here(GraphError::Value(text)))
        }
        (true, Some(number)) => Ok(number.dtype()),
        (false, None) => Ok(promote_all(strong)),
        (false, Some(number)) => Ok(Operand::Number(number).joined(promote_all(strong))),
    }
}

/// NumPy's `isdtype` with the name of a kind: whether a dtype is of this kind.
///
/// ```
/// use tharsis_numeric::DType;
/// use tharsis_numeric::dtypes::is_dtype;
/// assert!(is_dtype(DType::F32, "real floating")? && !is_dtype(DType::Bool, "numeric")?);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// `ValueError` if there is no such kind.
#[track_caller]
pub fn is_dtype(dtype: DType, kind: &str) -> Result<bool> {
    Ok(match kind {
        "bool" => dtype == DType::Bool,
        "signed integer" => dtype.kind() == Kind::Signed,
        "unsigned integer" => dtype.kind() == Kind::Unsigned,
        "integral" => dtype.is_integer(),
        "real floating" => dtype.is_float(),
        "complex floating" => dtype.is_complex(),
        "numeric" => dtype != DType::Bool,
        _ => {
            let text = format!("kind argument is a string, but '{kind}' is not a known kind name.");
            return Err(Error::here(GraphError::Value(text)));
        }
    })
}

/// NumPy's `finfo`: limits of the numbers of a float dtype.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FloatInfo {
    /// The dtype of floats, or of the parts of complex numbers.
    pub dtype: DType,
    /// Bits of a number.
    pub bits: u32,
    /// Bits of the exponent.
    pub exponent_bits: u32,
    /// Bits of the fraction.
    pub fraction_bits: u32,
    /// The largest number; the smallest one is its negative.
    pub max: f64,
}

impl FloatInfo {
    /// Distance from 1 to the next number.
    ///
    /// ```
    /// use tharsis_numeric::{DType, dtypes::finfo};
    /// assert_eq!(finfo(DType::F64)?.eps(), f64::EPSILON);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    pub fn eps(&self) -> f64 {
        2f64.powi(-(self.fraction_bits as i32))
    }

    /// Exponent of the smallest number with all its digits.
    ///
    /// ```
    /// use tharsis_numeric::{DType, dtypes::finfo};
    /// assert_eq!(finfo(DType::F64)?.min_exponent(), -1022);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    pub fn min_exponent(&self) -> i32 {
        2 - (1 << (self.exponent_bits - 1))
    }

    /// The smallest positive number with all its digits.
    ///
    /// ```
    /// use tharsis_numeric::{DType, dtypes::finfo};
    /// assert_eq!(finfo(DType::F64)?.smallest_normal(), f64::MIN_POSITIVE);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    pub fn smallest_normal(&self) -> f64 {
        2f64.powi(self.min_exponent())
    }

    /// The smallest positive number.
    ///
    /// ```
    /// use tharsis_numeric::{DType, dtypes::finfo};
    /// assert_eq!(finfo(DType::F64)?.smallest_subnormal(), 5e-324);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    pub fn smallest_subnormal(&self) -> f64 {
        self.smallest_normal() * self.eps()
    }

    /// Number of decimal digits that every number keeps.
    ///
    /// ```
    /// use tharsis_numeric::{DType, dtypes::finfo};
    /// assert_eq!(finfo(DType::F32)?.precision(), 6);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    pub fn precision(&self) -> u32 {
        (f64::from(self.fraction_bits) * std::f64::consts::LOG10_2) as u32
    }
}

/// NumPy's `finfo`: limits of the numbers of a float dtype, or of the parts of a complex one.
///
/// ```
/// use tharsis_numeric::{DType, dtypes::finfo};
/// assert_eq!(finfo(DType::C64)?.max, f64::from(f32::MAX));
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// `ValueError` for integers and bool.
#[track_caller]
pub fn finfo(dtype: DType) -> Result<FloatInfo> {
    let dtype = dtype.real_part();
    let (exponent_bits, fraction_bits, max) = match dtype {
        DType::F16 => (5, 10, 65504.0),
        DType::BF16 => (8, 7, tharsis_kernels::bf16::MAX.to_f64()),
        DType::F32 => (8, 23, f64::from(f32::MAX)),
        DType::F64 => (11, 52, f64::MAX),
        _ => {
            let text = format!("data type <class 'numpy.{dtype}'> not inexact");
            return Err(Error::here(GraphError::Value(text)));
        }
    };
    Ok(FloatInfo { dtype, bits: 8 * dtype.size_bytes() as u32, exponent_bits, fraction_bits, max })
}

/// NumPy's `iinfo`: limits of the numbers of an integer dtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct IntegerInfo {
    pub dtype: DType,
    pub bits: u32,
    pub min: i128,
    pub max: i128,
}

/// NumPy's `iinfo`: limits of the numbers of an integer dtype.
///
/// ```
/// use tharsis_numeric::{DType, dtypes::iinfo};
/// assert_eq!((iinfo(DType::I8)?.min, iinfo(DType::U64)?.max), (-128, u64::MAX.into()));
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// `ValueError` for other dtypes.
#[track_caller]
pub fn iinfo(dtype: DType) -> Result<IntegerInfo> {
    let bits = 8 * dtype.size_bytes() as u32;
    let (min, max) = match dtype.kind() {
        Kind::Signed => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
        Kind::Unsigned => (0, (1i128 << bits) - 1),
        _ => {
            let letter = match dtype.kind() {
                Kind::Bool => 'b',
                Kind::Complex => 'c',
                _ => 'f',
            };
            return Err(Error::here(GraphError::Value(format!("Invalid integer data type '{letter}'."))));
        }
    };
    Ok(IntegerInfo { dtype, bits, min, max })
}
