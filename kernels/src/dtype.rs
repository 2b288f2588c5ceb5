//! Element types and NumPy's promotion between them.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The type of a tensor's elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum DType {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    BF16,
    F32,
    F64,
    C64,
    C128,
}

/// Family of a dtype, in the order in which NumPy promotes between families.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Kind {
    Bool,
    Unsigned,
    Signed,
    Float,
    Complex,
}

/// The name is that of no supported dtype.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("data type '{0}' not understood")]
pub struct UnknownDType(pub String);

impl DType {
    /// All dtypes, in declaration order.
    pub const ALL: [DType; 15] = [
        DType::Bool,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::U8,
        DType::U16,
        DType::U32,
        DType::U64,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
        DType::C64,
        DType::C128,
    ];

    /// Bytes per element.
    pub const fn size_bytes(self) -> usize {
        match self {
            DType::Bool | DType::I8 | DType::U8 => 1,
            DType::I16 | DType::U16 | DType::F16 | DType::BF16 => 2,
            DType::I32 | DType::U32 | DType::F32 => 4,
            DType::I64 | DType::U64 | DType::F64 | DType::C64 => 8,
            DType::C128 => 16,
        }
    }

    /// The dtype of words as wide as its elements. What moves elements, whatever they mean, is compiled for
    /// these five only.
    pub const fn words(self) -> DType {
        match self.size_bytes() {
            1 => DType::U8,
            2 => DType::U16,
            4 => DType::U32,
            8 => DType::U64,
            _ => DType::C128,
        }
    }

    /// The family of this dtype.
    pub const fn kind(self) -> Kind {
        match self {
            DType::Bool => Kind::Bool,
            DType::U8 | DType::U16 | DType::U32 | DType::U64 => Kind::Unsigned,
            DType::I8 | DType::I16 | DType::I32 | DType::I64 => Kind::Signed,
            DType::F16 | DType::BF16 | DType::F32 | DType::F64 => Kind::Float,
            DType::C64 | DType::C128 => Kind::Complex,
        }
    }

    /// Whether this is a signed or unsigned integer (not `bool`).
    pub const fn is_integer(self) -> bool {
        matches!(self.kind(), Kind::Signed | Kind::Unsigned)
    }

    /// Whether elements have an imaginary part.
    pub const fn is_complex(self) -> bool {
        matches!(self.kind(), Kind::Complex)
    }

    /// Whether this is a real floating-point type.
    pub const fn is_float(self) -> bool {
        matches!(self.kind(), Kind::Float)
    }

    /// The real type that holds the parts of a complex one; others are themselves.
    pub const fn real_part(self) -> DType {
        match self {
            DType::C64 => DType::F32,
            DType::C128 => DType::F64,
            other => other,
        }
    }

    /// The type of arithmetic on this type: half-precision types are computed in `f32` and rounded back.
    pub const fn compute(self) -> DType {
        match self {
            DType::F16 | DType::BF16 => DType::F32,
            other => other,
        }
    }

    /// The smallest float that NumPy's functions of real numbers use for this dtype.
    pub const fn to_inexact(self) -> DType {
        match self {
            DType::Bool | DType::I8 | DType::U8 => DType::F16,
            DType::I16 | DType::U16 => DType::F32,
            DType::I32 | DType::U32 | DType::I64 | DType::U64 => DType::F64,
            other => other,
        }
    }

    /// The dtype of NumPy's sums and products: small integers widen to 64 bits, everything else stays.
    pub const fn accumulator(self) -> DType {
        match self.kind() {
            Kind::Bool | Kind::Signed => DType::I64,
            Kind::Unsigned => DType::U64,
            _ => self,
        }
    }

    /// NumPy's name, such as `float64`.
    pub const fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::I8 => "int8",
            DType::I16 => "int16",
            DType::I32 => "int32",
            DType::I64 => "int64",
            DType::U8 => "uint8",
            DType::U16 => "uint16",
            DType::U32 => "uint32",
            DType::U64 => "uint64",
            DType::F16 => "float16",
            DType::BF16 => "bfloat16",
            DType::F32 => "float32",
            DType::F64 => "float64",
            DType::C64 => "complex64",
            DType::C128 => "complex128",
        }
    }

    /// The array-interface code without byte order, such as `f8`.
    pub const fn code(self) -> &'static str {
        match self {
            DType::Bool => "b1",
            DType::I8 => "i1",
            DType::I16 => "i2",
            DType::I32 => "i4",
            DType::I64 => "i8",
            DType::U8 => "u1",
            DType::U16 => "u2",
            DType::U32 => "u4",
            DType::U64 => "u8",
            DType::F16 => "f2",
            DType::BF16 => "V2",
            DType::F32 => "f4",
            DType::F64 => "f8",
            DType::C64 => "c8",
            DType::C128 => "c16",
        }
    }

    /// The little-endian array-interface string, such as `<f8` or `|b1`.
    pub fn typestr(self) -> String {
        let order = if self.size_bytes() == 1 { '|' } else { '<' };
        format!("{order}{}", self.code())
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DType {
    type Err = UnknownDType;

    /// Accepts NumPy's names (`float64`, `double`) and little-endian codes (`<f8`, `f8`).
    fn from_str(text: &str) -> Result<DType, UnknownDType> {
        let bare = text.strip_prefix(['<', '|', '=']).unwrap_or(text);
        let found = DType::ALL.into_iter().find(|d| d.name() == bare || d.code() == bare);
        let alias = match bare {
            "bool_" | "?" => Some(DType::Bool),
            "int" | "intp" | "int_" | "long" => Some(DType::I64),
            "uint" | "uintp" => Some(DType::U64),
            "half" => Some(DType::F16),
            "single" => Some(DType::F32),
            "float" | "double" => Some(DType::F64),
            "csingle" => Some(DType::C64),
            "complex" | "cdouble" => Some(DType::C128),
            _ => None,
        };
        found.or(alias).ok_or_else(|| UnknownDType(text.to_owned()))
    }
}

/// The smallest dtype to which both can be cast safely, as NumPy's `promote_types`.
///
/// `bfloat16`, which NumPy lacks, behaves as a float of the rank of `float16`; the two together give
/// `float32`.
pub fn promote(a: DType, b: DType) -> DType {
    if a == b {
        return a;
    }
    let (low, high) = if a.kind() <= b.kind() { (a, b) } else { (b, a) };
    match (low.kind(), high.kind()) {
        (Kind::Bool, _) => high,
        (Kind::Unsigned, Kind::Signed) => promote_signs(low, high),
        (Kind::Unsigned | Kind::Signed, Kind::Float) => promote_float(low.to_inexact(), high),
        (Kind::Unsigned | Kind::Signed | Kind::Float, Kind::Complex) => {
            to_complex(promote_float(low.to_inexact(), high.real_part()))
        }
        (Kind::Float, Kind::Float) => promote_float(low, high),
        _ => wider(low, high),
    }
}

/// The common dtype of several, as NumPy's `result_type`. Dtypes of the highest family are combined first, so
/// that integers among them do not widen a float twice.
pub fn promote_all(dtypes: impl IntoIterator<Item = DType>) -> DType {
    let mut sorted: Vec<DType> = dtypes.into_iter().collect();
    sorted.sort_by_key(|dtype| std::cmp::Reverse((dtype.kind(), dtype.size_bytes())));
    sorted.into_iter().reduce(promote).unwrap_or(DType::F64)
}

/// The complex dtype whose parts hold `real`.
pub fn to_complex(real: DType) -> DType {
    match real {
        DType::F64 | DType::I32 | DType::I64 | DType::U32 | DType::U64 | DType::C128 => DType::C128,
        _ => DType::C64,
    }
}

fn promote_signs(unsigned: DType, signed: DType) -> DType {
    if unsigned.size_bytes() < signed.size_bytes() {
        return signed;
    }
    match unsigned {
        DType::U8 => DType::I16,
        DType::U16 => DType::I32,
        DType::U32 => DType::I64,
        _ => DType::F64,
    }
}

fn promote_float(a: DType, b: DType) -> DType {
    match (a, b) {
        (DType::F16, DType::BF16) | (DType::BF16, DType::F16) => DType::F32,
        _ => wider(a, b),
    }
}

fn wider(a: DType, b: DType) -> DType {
    if a.size_bytes() < b.size_bytes() { b } else { a }
}

/// Whether NumPy's casting rule `same_kind` allows the cast.
pub fn can_cast_same_kind(from: DType, to: DType) -> bool {
    from.kind() <= to.kind() && !(from.kind() == Kind::Signed && to.kind() == Kind::Unsigned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promotion_is_that_of_numpy_where_it_surprises() {
        assert_eq!(promote(DType::I64, DType::U64), DType::F64);
        assert_eq!(promote(DType::I8, DType::U8), DType::I16);
        assert_eq!(promote(DType::I32, DType::F32), DType::F64);
        assert_eq!(promote(DType::I16, DType::F16), DType::F32);
        assert_eq!(promote(DType::F64, DType::C64), DType::C128);
        assert_eq!(promote(DType::I64, DType::C64), DType::C128);
        assert_eq!(promote(DType::U8, DType::C64), DType::C64);
        assert_eq!(promote(DType::Bool, DType::I8), DType::I8);
    }

    #[test]
    fn promotion_commutes_and_is_idempotent() {
        for a in DType::ALL {
            for b in DType::ALL {
                assert_eq!(promote(a, b), promote(b, a));
                assert_eq!(promote(a, promote(a, b)), promote(a, b), "{a} {b}");
            }
        }
    }

    #[test]
    fn names_and_codes_parse_back() {
        for d in DType::ALL {
            assert_eq!(d.name().parse(), Ok(d));
            assert_eq!(d.typestr().parse(), Ok(d));
        }
        assert!("float99".parse::<DType>().is_err());
    }
}
