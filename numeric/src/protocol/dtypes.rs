//! Functions of dtypes, and attributes of arrays.

use super::Failure;
use super::args::Args;
use super::row::{Row, tensor};
use super::value::{Value, parse_dtype};
use crate::dtypes::{Casting, can_cast, finfo, iinfo, is_dtype, result_type};
use crate::operand::Operand;
use crate::tensor::Tensor;
use tharsis_kernels::{DType, Kind, Scalar, promote};

/// All functions of dtypes.
pub(super) const DTYPES: &[Row] = &[
    ("np.__array_namespace_info__", "()", "facts about this library for the array API standard", |_, _| {
        Ok(inspection())
    }),
    ("np.can_cast", "(from_, to, casting='safe')", "whether a rule allows a cast", |_, args| {
        let from = match args.need(0, "from_")? {
            Value::Number(_) | Value::Large(_) => {
                return Err(Failure::kind(
                    "can_cast() does not support Python ints, floats, and complex because the result used to \
                     depend on the value.",
                ));
            }
            from => dtype_of(from)?,
        };
        let to = dtype_of(args.need(1, "to")?)?;
        let rule = args.text_or(2, "casting", "safe")?;
        Ok(truth(can_cast(from, to, Casting::named(&rule)?)))
    }),
    ("np.finfo", "(dtype)", "limits of the numbers of a float dtype", |_, args| {
        float_info(dtype_of(args.need(0, "dtype")?)?)
    }),
    ("np.iinfo", "(type)", "limits of the numbers of an integer dtype", |_, args| {
        let info = iinfo(dtype_of(args.need(0, "type")?)?)?;
        let whole = |number: i128| match i64::try_from(number) {
            Ok(number) => Value::Number(Scalar::Int(number)),
            Err(_) => Value::Number(Scalar::Unsigned(number as u64)),
        };
        let parts = vec![whole(info.bits.into()), whole(info.max), whole(info.min), Value::DType(info.dtype)];
        Ok(Value::Fields(&["bits", "max", "min", "dtype"], parts))
    }),
    ("np.iscomplexobj", "(x)", "whether the dtype is complex", |_, args| {
        Ok(truth(dtype_of(args.need(0, "x")?)?.is_complex()))
    }),
    ("np.isdtype", "(dtype, kind)", "whether a dtype is of a kind, or one of several", |_, args| {
        let dtype = match args.need(0, "dtype")? {
            Value::DType(dtype) => dtype,
            other => {
                let text = format!("dtype argument must be a NumPy dtype, but it is a {other:?}.");
                return Err(Failure::kind(text));
            }
        };
        Ok(truth(is_of_kind(dtype, &args.need(1, "kind")?, true)?))
    }),
    ("np.isrealobj", "(x)", "whether the dtype is not complex", |_, args| {
        Ok(truth(!dtype_of(args.need(0, "x")?)?.is_complex()))
    }),
    (
        "np.issubdtype",
        "(arg1, arg2)",
        "whether a dtype is another, or of a family given by name",
        |_, args| {
            let dtype = dtype_of(args.need(0, "arg1")?)?;
            Ok(truth(is_in_family(dtype, args.need(1, "arg2")?)?))
        },
    ),
    (
        "np.min_scalar_type",
        "(a)",
        "the smallest dtype that holds a number; of an array its own",
        |_, args| {
            Ok(Value::DType(match args.need(0, "a")? {
                Value::Number(number) => smallest(number),
                other => dtype_of(other)?,
            }))
        },
    ),
    (
        "np.promote_types",
        "(type1, type2)",
        "the smallest dtype to which both can be cast safely",
        |_, args| {
            let (a, b) = (dtype_of(args.need(0, "type1")?)?, dtype_of(args.need(1, "type2")?)?);
            Ok(Value::DType(promote(a, b)))
        },
    ),
    ("np.result_type", "(*arrays_and_dtypes)", "the dtype of an operation on all of them", |_, args| {
        let operand = |value: Value| match value {
            Value::DType(dtype) => Ok(Operand::Tensor(crate::create::zeros(&[]).astype(dtype))),
            Value::Text(text) => Ok(Operand::Tensor(crate::create::zeros(&[]).astype(parse_dtype(&text)?))),
            value => value.operand(),
        };
        let operands = args.rest(0).into_iter().map(operand).collect::<Result<Vec<_>, Failure>>()?;
        Ok(Value::DType(result_type(operands)?))
    }),
    ("nd.T", "(x)", "axes in reverse order", |_, args| tensor(args.tensor(0, "x")?.t())),
    ("nd.device", "(x)", "the device of the elements: cpu", |_, args| {
        let _checked = args.tensor(0, "x")?;
        Ok(Value::Text("cpu".to_owned()))
    }),
    ("nd.dtype", "(x)", "the type of the elements", |_, args| {
        Ok(Value::DType(args.tensor(0, "x")?.dtype()?))
    }),
    ("nd.itemsize", "(x)", "bytes of an element", |_, args| {
        Ok(count(args.tensor(0, "x")?.dtype()?.size_bytes() as u64))
    }),
    ("nd.nbytes", "(x)", "bytes of all elements", |_, args| Ok(count(sized(args)?.nbytes()?))),
    ("nd.to_device", "(x, device)", "the same array: the only device is cpu", |_, args| {
        let x = args.tensor(0, "x")?;
        match args.need(1, "device")? {
            Value::Text(device) if device == "cpu" => tensor(x),
            other => Err(Failure::value(format!("Unsupported device: {other:?}; there is only cpu"))),
        }
    }),
    ("np.ndim", "(a)", "number of axes", |_, args| Ok(count(args.tensor(0, "a")?.ndim()? as u64))),
    ("np.shape", "(a)", "extents of all axes", |_, args| {
        let extents = sized(args)?.shape()?.iter().map(|&extent| count(extent as u64)).collect();
        Ok(Value::Tuple(extents))
    }),
    ("np.size", "(a, axis=None)", "number of elements, or the extent of an axis", |_, args| {
        let x = sized(args)?;
        match args.take(1, "axis") {
            None | Some(Value::None) => Ok(count(x.size()?)),
            Some(axis) => {
                let axis = tharsis_graph::shape::normalize_axis(axis.integer()?, x.ndim()?)?;
                Ok(count(x.shape()?[axis] as u64))
            }
        }
    }),
];

fn truth(is_true: bool) -> Value {
    Value::Number(Scalar::Bool(is_true))
}

fn count(number: u64) -> Value {
    Value::Number(i64::try_from(number).map_or(Scalar::Unsigned(number), Scalar::Int))
}

/// The first argument, with its size known.
fn sized(args: &mut Args) -> Result<Tensor, Failure> {
    let x = args.tensor(0, "a")?;
    Ok(if x.is_known()? { x } else { x.compute_chunk_sizes()? })
}

/// A dtype as such or by its name, or that of an array or a number.
fn dtype_of(value: Value) -> Result<DType, Failure> {
    match value {
        Value::DType(dtype) => Ok(dtype),
        Value::Text(text) => parse_dtype(&text),
        other => Ok(other.tensor()?.dtype()?),
    }
}

fn is_of_kind(dtype: DType, kind: &Value, may_be_several: bool) -> Result<bool, Failure> {
    match kind {
        Value::DType(other) => Ok(dtype == *other),
        Value::Text(kind) => Ok(is_dtype(dtype, kind)?),
        Value::Tuple(kinds) if may_be_several => {
            let found = kinds.iter().map(|kind| is_of_kind(dtype, kind, false));
            Ok(found.collect::<Result<Vec<_>, _>>()?.contains(&true))
        }
        other => Err(Failure::kind(format!(
            "kind argument must be comprised of NumPy dtypes or strings only, but is a {other:?}."
        ))),
    }
}

fn is_in_family(dtype: DType, family: Value) -> Result<bool, Failure> {
    let name = match &family {
        Value::Text(name) => name.as_str(),
        _ => return Ok(dtype == dtype_of(family)?),
    };
    Ok(match name {
        "generic" => true,
        "number" => dtype != DType::Bool,
        "integer" => dtype.is_integer(),
        "signedinteger" => dtype.kind() == Kind::Signed,
        "unsignedinteger" => dtype.kind() == Kind::Unsigned,
        "inexact" => Kind::Float <= dtype.kind(),
        "floating" => dtype.is_float(),
        "complexfloating" => dtype.is_complex(),
        name => dtype == parse_dtype(name)?,
    })
}

/// NumPy's `min_scalar_type` of a number.
fn smallest(number: Scalar) -> DType {
    let first = |candidates: &[DType], fits: &dyn Fn(DType) -> bool| {
        candidates.iter().copied().find(|&dtype| fits(dtype)).unwrap_or(candidates[candidates.len() - 1])
    };
    let within = |number: f64, dtype: DType| {
        !number.is_finite() || finfo(dtype).is_ok_and(|info| number.abs() <= info.max)
    };
    match number {
        Scalar::Bool(_) => DType::Bool,
        Scalar::Int(whole) if whole < 0 => {
            let signed = [DType::I8, DType::I16, DType::I32, DType::I64];
            first(&signed, &|dtype| iinfo(dtype).is_ok_and(|info| info.min <= whole.into()))
        }
        Scalar::Int(_) | Scalar::Unsigned(_) => {
            let unsigned = [DType::U8, DType::U16, DType::U32, DType::U64];
            first(&unsigned, &|dtype| iinfo(dtype).is_ok_and(|info| number.to_i128() <= info.max))
        }
        Scalar::Float(x) => first(&[DType::F16, DType::F32, DType::F64], &|dtype| within(x, dtype)),
        Scalar::Complex(re, im) => {
            first(&[DType::C64, DType::C128], &|dtype| within(re, dtype) && within(im, dtype))
        }
    }
}

fn float_info(dtype: DType) -> Result<Value, Failure> {
    let info = finfo(dtype)?;
    let float = |x: f64| Value::Number(Scalar::Float(x));
    let whole = |n: i64| Value::Number(Scalar::Int(n));
    let (digits, bits) = (i64::from(info.fraction_bits), i64::from(info.exponent_bits));
    const NAMES: &[&str] = &[
        "bits",
        "dtype",
        "eps",
        "epsneg",
        "iexp",
        "machep",
        "max",
        "maxexp",
        "min",
        "minexp",
        "negep",
        "nexp",
        "nmant",
        "precision",
        "resolution",
        "smallest_normal",
        "smallest_subnormal",
        "tiny",
    ];
    let parts = vec![
        whole(info.bits.into()),
        Value::DType(info.dtype),
        float(info.eps()),
        float(info.eps() / 2.0),
        whole(bits),
        whole(-digits),
        float(info.max),
        whole((2 - info.min_exponent()).into()),
        float(-info.max),
        whole(info.min_exponent().into()),
        whole(-digits - 1),
        whole(bits),
        whole(digits),
        whole(info.precision().into()),
        float(10f64.powi(-(info.precision() as i32))),
        float(info.smallest_normal()),
        float(info.smallest_subnormal()),
        float(info.smallest_normal()),
    ];
    Ok(Value::Fields(NAMES, parts))
}

/// The answers of the standard's inspection functions.
fn inspection() -> Value {
    let text = |text: &str| Value::Text(text.to_owned());
    let capabilities = Value::Fields(
        &["boolean indexing", "data-dependent shapes", "max dimensions"],
        vec![truth(true), truth(true), count(tharsis_graph::shape::RANK_MAX as u64)],
    );
    let defaults = Value::Fields(
        &["real floating", "complex floating", "integral", "indexing"],
        [DType::F64, DType::C128, DType::I64, DType::I64].map(Value::DType).to_vec(),
    );
    let dtypes = DType::ALL.into_iter().filter(|dtype| !matches!(dtype, DType::F16 | DType::BF16));
    Value::Fields(
        &["capabilities", "default_device", "default_dtypes", "devices", "dtypes"],
        vec![
            capabilities,
            text("cpu"),
            defaults,
            Value::List(vec![text("cpu")]),
            Value::List(dtypes.map(Value::DType).collect()),
        ],
    )
}
