//! Ranges of numbers of dtypes: NumPy converts elements of arrays without a check, but refuses Python numbers
//! that do not fit.

use super::Failure;
use tharsis_kernels::{DType, Kind, Scalar};

/// Refuses a number that a dtype cannot hold.
///
/// # Errors
/// `OverflowError` for numbers out of range or infinite, `ValueError` for NaN, `TypeError` for complex
/// numbers.
pub(super) fn check_number(number: Scalar, dtype: DType) -> Result<(), Failure> {
    let overflow = |text: String| Err(Failure::new("OverflowError", text));
    match number {
        Scalar::Complex(..) if dtype.is_integer() => Err(Failure::kind(
            "int() argument must be a string, a bytes-like object or a real number, not 'complex'",
        )),
        Scalar::Complex(..) if !dtype.is_complex() && dtype != DType::Bool => {
            Err(Failure::kind("float() argument must be a string or a real number, not 'complex'"))
        }
        _ if !dtype.is_integer() => Ok(()),
        Scalar::Float(x) if x.is_nan() => Err(Failure::value("cannot convert float NaN to integer")),
        Scalar::Float(x) if x.is_infinite() => {
            overflow("cannot convert float infinity to integer".to_owned())
        }
        Scalar::Float(x) if 2f64.powi(64) <= x.abs() => too_large(),
        Scalar::Float(x) => check_whole(x.trunc() as i128, dtype),
        Scalar::Int(n) => check_whole(n.into(), dtype),
        Scalar::Unsigned(n) => check_whole(n.into(), dtype),
        _ => Ok(()),
    }
}

fn check_whole(number: i128, dtype: DType) -> Result<(), Failure> {
    let bits = 8 * dtype.size_bytes() as u32;
    let is_signed = dtype.kind() == Kind::Signed;
    let (low, high) = if is_signed {
        (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
    } else {
        (0, (1i128 << bits) - 1)
    };
    if (low..=high).contains(&number) {
        return Ok(());
    }
    match dtype {
        DType::I64 => too_large(),
        _ => {
            let text = format!("Python integer {number} out of bounds for {dtype}");
            Err(Failure::new("OverflowError", text))
        }
    }
}

fn too_large() -> Result<(), Failure> {
    Err(Failure::new("OverflowError", "Python int too large to convert to C long"))
}
