//! The operations of programs, by NumPy name.
//!
//! Element-wise functions are those of `tharsis_kernels::ufunc`: a function added there is found here without
//! further code. The rest are tables of rows: a name, a signature, a line of documentation and a function of
//! arguments.

use super::Failure;
use super::args::Args;
use super::composed::COMPOSED;
use super::creation::CREATION;
use super::draws::DRAWS;
use super::dtypes::DTYPES;
use super::matrices::MATRICES;
use super::row::{Row, Run, tensor};
use super::selections::{SELECTIONS, nonzero};
use super::value::Value;
use crate::elementwise::{binary, unary, where_};
use crate::index::Index;
use crate::manipulate::{concatenate, stack};
use crate::reduction::Axes;
use crate::tensor::Tensor;
use crate::ufuncs::{BINARY_DOCS, UNARY_DOCS};
use tharsis_kernels::{BinaryOp, DType, Scalar, UnaryOp};

/// One operation of programs.
pub struct Operation {
    /// Its name, such as `np.add`.
    pub name: String,
    /// Its arguments.
    pub signature: &'static str,
    /// The function.
    pub doc: &'static str,
    /// The operation that this is another name of.
    pub alias_of: Option<&'static str>,
    pub(super) run: Run,
}

/// Building blocks of other functions, without a name in NumPy.
const PARTS: [UnaryOp; 4] =
    [UnaryOp::FrexpExponent, UnaryOp::FrexpMantissa, UnaryOp::NormalQuantile, UnaryOp::SpacingHalf];
const BINARY_PARTS: [BinaryOp; 2] = [BinaryOp::FromParts, BinaryOp::NextafterHalf];

/// The tables of operations that are not element-wise.
const TABLES: &[&[Row]] = &[NAMED, COMPOSED, CREATION, DRAWS, DTYPES, MATRICES, SELECTIONS];

/// All operations that programs may name.
///
/// ```
/// assert!(tharsis_numeric::protocol::registry::all().iter().any(|operation| operation.name == "np.sum"));
/// ```
pub fn all() -> Vec<Operation> {
    let operation = |name: &str, signature, doc, run| Operation {
        name: name.to_owned(),
        signature,
        doc,
        alias_of: None,
        run,
    };
    let rows = TABLES.iter().flat_map(|table| table.iter());
    let mut all: Vec<Operation> =
        rows.map(|&(name, signature, doc, run)| operation(name, signature, doc, run)).collect();
    for op in UnaryOp::ALL.iter().filter(|op| !PARTS.contains(op)) {
        let doc = UNARY_DOCS.iter().find(|(known, _)| known == op).map_or("", |(_, doc)| doc.trim());
        all.push(operation(&format!("np.{}", op.name()), "(x)", doc, run_unary));
    }
    for op in BinaryOp::ALL.iter().filter(|op| !BINARY_PARTS.contains(op)) {
        let doc = BINARY_DOCS.iter().find(|(known, _)| known == op).map_or("", |(_, doc)| doc.trim());
        all.push(operation(&format!("np.{}", op.name()), "(x1, x2)", doc, run_binary));
    }
    for &(name, target) in ALIASES {
        let known = all.iter().find(|operation| operation.name == target);
        let (signature, doc) = known.map_or(("()", ""), |known| (known.signature, known.doc));
        all.push(Operation { alias_of: Some(target), ..operation(name, signature, doc, run_alias) });
    }
    all
}

/// The operation of this name. Methods of arrays (`nd.*`) are the functions of the same name.
///
/// ```
/// use tharsis_numeric::protocol::registry::find;
/// assert_eq!(find("nd.sum").expect("it is there").name, "np.sum");
/// ```
pub fn find(name: &str) -> Option<Operation> {
    let function = name.strip_prefix("nd.").map(|method| format!("np.{method}"));
    let wanted = function.as_deref().unwrap_or(name);
    all().into_iter().find(|operation| operation.name == name || operation.name == wanted)
}

fn bare(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn run_unary(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let op = UnaryOp::from_name(bare(name)).ok_or_else(|| Failure::missing(name))?;
    tensor(unary(op, &args.tensor(0, "x")?))
}

fn run_binary(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let op = BinaryOp::from_name(bare(name)).ok_or_else(|| Failure::missing(name))?;
    let (a, b) = (args.need(0, "x1")?.operand()?, args.need(1, "x2")?.operand()?);
    tensor(binary(op, a, b))
}

fn run_alias(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let function = format!("np.{}", bare(name));
    let target = ALIASES.iter().find(|(alias, _)| *alias == function).map(|(_, target)| *target);
    let target = target.ok_or_else(|| Failure::missing(name))?;
    let operation = find(target).ok_or_else(|| Failure::missing(name))?;
    (operation.run)(target, args)
}

const ALIASES: &[(&str, &str)] = &[
    ("np.abs", "np.absolute"),
    ("np.acos", "np.arccos"),
    ("np.acosh", "np.arccosh"),
    ("np.amax", "np.max"),
    ("np.around", "np.round"),
    ("np.amin", "np.min"),
    ("np.asin", "np.arcsin"),
    ("np.asinh", "np.arcsinh"),
    ("np.atan", "np.arctan"),
    ("np.atan2", "np.arctan2"),
    ("np.atanh", "np.arctanh"),
    ("np.bitwise_invert", "np.invert"),
    ("np.bitwise_left_shift", "np.left_shift"),
    ("np.bitwise_not", "np.invert"),
    ("np.bitwise_right_shift", "np.right_shift"),
    ("np.concat", "np.concatenate"),
    ("np.conj", "np.conjugate"),
    ("np.deg2rad", "np.radians"),
    ("np.mod", "np.remainder"),
    ("np.permute_dims", "np.transpose"),
    ("np.pow", "np.power"),
    ("np.rad2deg", "np.degrees"),
    ("np.true_divide", "np.divide"),
];

/// Everything that is not element-wise.
const NAMED: &[Row] = &[
    ("getitem", "(x, index)", "basic indexing, or a part of a tuple", |_, args| {
        let x = match args.need(0, "x")? {
            Value::Tuple(parts) | Value::Fields(_, parts) => {
                return part_of(parts, args.need(1, "index")?.integer()?);
            }
            other => other.tensor()?,
        };
        let index = args.need(1, "index")?;
        if let Some(mask) = mask_of(&index) {
            return tensor(x.filter(&mask));
        }
        let indices = match index {
            Value::Tuple(parts) => parts.into_iter().map(index_of).collect::<Result<Vec<_>, _>>()?,
            list @ Value::List(_) => return tensor(x.take(&positions(&list)?, 0)),
            one => vec![index_of(one)?],
        };
        tensor(x.get(&indices))
    }),
    ("np.all", "(a, axis=None, keepdims=False)", "whether all are true", |_, args| reduce(args, Tensor::all)),
    ("np.any", "(a, axis=None, keepdims=False)", "whether any is true", |_, args| reduce(args, Tensor::any)),
    ("np.argmax", "(a, axis=None, keepdims=False)", "where the largest is", |_, args| {
        reduce(args, Tensor::argmax)
    }),
    ("np.argmin", "(a, axis=None, keepdims=False)", "where the smallest is", |_, args| {
        reduce(args, Tensor::argmin)
    }),
    ("np.broadcast_to", "(x, shape)", "repeated to a larger shape", |_, args| {
        let x = args.tensor(0, "x")?;
        tensor(x.broadcast_to(&args.shape(1, "shape")?))
    }),
    ("np.clip", "(a, a_min, a_max)", "limited to a range; None is no limit", |_, args| {
        let x = args.tensor(0, "a")?;
        let (low, high) = match (args.take(1, "a_min"), args.take(2, "a_max")) {
            (None, None) => (args.take(usize::MAX, "min"), args.take(usize::MAX, "max")),
            (Some(low), Some(high)) => (Some(low), Some(high)),
            (None, _) => return Err(Failure::kind("clip() missing 1 required positional argument: 'a_min'")),
            (_, None) => return Err(Failure::kind("clip() missing 1 required positional argument: 'a_max'")),
        };
        let bound = |value: Option<Value>| match value {
            None | Some(Value::None) => Ok(None),
            Some(value) => value.operand().map(Some),
        };
        tensor(x.clip_to(bound(low)?, bound(high)?))
    }),
    ("np.concatenate", "(arrays, axis=0)", "arrays behind one another", |_, args| {
        let mut parts = args.tensors(0, "arrays")?;
        let axis = match args.take(1, "axis") {
            None => 0,
            Some(Value::None) => {
                parts = parts.iter().map(Tensor::ravel).collect();
                0
            }
            Some(axis) => axis.integer()?,
        };
        tensor(concatenate(&parts.iter().collect::<Vec<_>>(), axis))
    }),
    ("np.count_nonzero", "(a, axis=None, keepdims=False)", "how many are not zero", |_, args| {
        reduce(args, Tensor::count_nonzero)
    }),
    ("np.cumulative_prod", "(x, axis=None)", "running products", |_, args| {
        scan_one_axis(args, Tensor::cumprod)
    }),
    ("np.cumulative_sum", "(x, axis=None)", "running sums", |_, args| scan_one_axis(args, Tensor::cumsum)),
    ("np.cumprod", "(a, axis=None)", "running products", |_, args| scan(args, Tensor::cumprod)),
    ("np.cumsum", "(a, axis=None)", "running sums", |_, args| scan(args, Tensor::cumsum)),
    ("np.dot", "(a, b)", "products of vectors and matrices", |_, args| {
        let (a, b) = (args.tensor(0, "a")?, args.tensor(1, "b")?);
        tensor(a.dot(&b))
    }),
    ("np.expand_dims", "(a, axis)", "a new axis", |_, args| {
        let x = args.tensor(0, "a")?;
        tensor(x.expand_all_dims(&args.need(1, "axis")?.integers()?))
    }),
    ("np.flip", "(a, axis=None)", "in reverse order", |_, args| {
        let x = args.tensor(0, "a")?;
        tensor(x.flip(args.integers(1, "axis")?.as_deref()))
    }),
    ("np.matmul", "(a, b)", "matrix products", |_, args| {
        let (a, b) = (args.tensor(0, "a")?, args.tensor(1, "b")?);
        tensor(a.matmul(&b))
    }),
    ("np.max", "(a, axis=None, keepdims=False)", "the largest", |_, args| reduce(args, Tensor::max)),
    ("np.mean", "(a, axis=None, keepdims=False)", "the mean", |_, args| reduce(args, Tensor::mean)),
    ("np.min", "(a, axis=None, keepdims=False)", "the smallest", |_, args| reduce(args, Tensor::min)),
    ("np.moveaxis", "(a, source, destination)", "an axis in another place", |_, args| {
        let x = args.tensor(0, "a")?;
        let (from, to) = (args.need(1, "source")?.integers()?, args.need(2, "destination")?.integers()?);
        tensor(x.moveaxes(&from, &to))
    }),
    ("np.nanmax", "(a, axis=None, keepdims=False)", "the largest number", |_, args| {
        reduce(args, Tensor::nanmax)
    }),
    ("np.nanmean", "(a, axis=None, keepdims=False)", "the mean of numbers", |_, args| {
        reduce(args, Tensor::nanmean)
    }),
    ("np.nanmin", "(a, axis=None, keepdims=False)", "the smallest number", |_, args| {
        reduce(args, Tensor::nanmin)
    }),
    ("np.nanprod", "(a, axis=None, keepdims=False)", "the product of numbers", |_, args| {
        reduce(args, Tensor::nanprod)
    }),
    ("np.nansum", "(a, axis=None, keepdims=False)", "the sum of numbers", |_, args| {
        reduce(args, Tensor::nansum)
    }),
    ("np.prod", "(a, axis=None, keepdims=False)", "the product", |_, args| reduce(args, Tensor::prod)),
    ("np.ptp", "(a, axis=None, keepdims=False)", "largest minus smallest", |_, args| {
        reduce(args, Tensor::ptp)
    }),
    ("np.ravel", "(a)", "in one axis", |_, args| tensor(args.tensor(0, "a")?.ravel())),
    ("np.reshape", "(a, shape)", "in another shape", |_, args| {
        let x = args.tensor(0, "a")?;
        tensor(x.reshape(&args.need(1, "shape")?.integers()?))
    }),
    ("np.squeeze", "(a, axis=None)", "without axes of extent 1", |_, args| {
        let x = args.tensor(0, "a")?;
        tensor(x.squeeze(args.integers(1, "axis")?.as_deref()))
    }),
    ("np.stack", "(arrays, axis=0)", "arrays along a new axis", |_, args| {
        let parts = args.tensors(0, "arrays")?;
        let axis = args.integer_or(1, "axis", 0)?;
        tensor(stack(&parts.iter().collect::<Vec<_>>(), axis))
    }),
    ("np.std", "(a, axis=None, ddof=0, keepdims=False)", "the standard deviation", |_, args| {
        let ddof = args.number_or(usize::MAX, "ddof", 0.0)?;
        let (x, axes) = (args.tensor(0, "a")?, args.axes(1)?);
        tensor(x.std_ddof(axes, ddof))
    }),
    ("np.sum", "(a, axis=None, keepdims=False)", "the sum", |_, args| reduce(args, Tensor::sum)),
    ("np.swapaxes", "(a, axis1, axis2)", "two axes exchanged", |_, args| {
        let x = args.tensor(0, "a")?;
        let (a, b) = (args.need(1, "axis1")?.integer()?, args.need(2, "axis2")?.integer()?);
        tensor(x.swapaxes(a, b))
    }),
    ("np.tensordot", "(a, b, axes=2)", "sums of products over axes", |_, args| {
        let (a, b) = (args.tensor(0, "a")?, args.tensor(1, "b")?);
        let (left, right) = match args.take(2, "axes").unwrap_or(Value::Number(Scalar::Int(2))) {
            Value::Tuple(pair) | Value::List(pair) if pair.len() == 2 => {
                (pair[0].integers()?, pair[1].integers()?)
            }
            count => {
                let count = count.integer()?;
                ((-count..0).collect(), (0..count).collect())
            }
        };
        tensor(a.tensordot(&b, &left, &right))
    }),
    ("np.transpose", "(a, axes=None)", "axes in another order", |_, args| {
        let x = args.tensor(0, "a")?;
        match args.integers(1, "axes")? {
            Some(order) => tensor(x.transpose(&order)),
            None => tensor(x.t()),
        }
    }),
    ("np.var", "(a, axis=None, ddof=0, keepdims=False)", "the variance", |_, args| {
        let ddof = args.number_or(usize::MAX, "ddof", 0.0)?;
        let (x, axes) = (args.tensor(0, "a")?, args.axes(1)?);
        tensor(x.var_ddof(axes, ddof))
    }),
    ("np.where", "(condition, x, y)", "one or the other; where it is true if there is neither", |_, args| {
        let condition = args.need(0, "condition")?;
        match args.take(1, "x") {
            None => nonzero(&condition.tensor()?),
            Some(x) => {
                let y = args.need(2, "y")?;
                tensor(where_(&condition.tensor()?, x.operand()?, y.operand()?))
            }
        }
    }),
];

fn reduce(args: &mut Args, with: fn(&Tensor, Axes) -> Tensor) -> Result<Value, Failure> {
    let x = args.tensor(0, "a")?;
    let axes = args.axes(1)?;
    tensor(with(&x, axes))
}

fn scan(args: &mut Args, with: fn(&Tensor, i64) -> Tensor) -> Result<Value, Failure> {
    let x = args.tensor(0, "a")?;
    match args.take(1, "axis") {
        None | Some(Value::None) => tensor(with(&x.ravel(), 0)),
        Some(axis) => tensor(with(&x, axis.integer()?)),
    }
}

/// As [`scan`], but an array of several axes is flattened only on request.
fn scan_one_axis(args: &mut Args, with: fn(&Tensor, i64) -> Tensor) -> Result<Value, Failure> {
    let x = args.tensor(0, "x")?;
    match args.take(1, "axis") {
        Some(Value::None) | None if 1 < x.ndim()? => Err(Failure::value(
            "For arrays which have more than one dimension ``axis`` argument is required.",
        )),
        Some(Value::None) | None => tensor(with(&x, 0)),
        Some(axis) => tensor(with(&x, axis.integer()?)),
    }
}

fn index_of(value: Value) -> Result<Index, Failure> {
    match value {
        Value::Index(index) => Ok(index),
        Value::Number(Scalar::Int(at)) => Ok(Index::At(at)),
        Value::None => Ok(Index::NewAxis),
        other => Err(Failure::missing(format!("indexing with {other:?} is not implemented"))),
    }
}

fn part_of(mut parts: Vec<Value>, index: i64) -> Result<Value, Failure> {
    let at = if index < 0 { index + parts.len() as i64 } else { index };
    match usize::try_from(at) {
        Ok(at) if at < parts.len() => Ok(parts.swap_remove(at)),
        _ => Err(Failure::new("IndexError", "tuple index out of range")),
    }
}

/// The positions in a list of whole numbers.
fn positions(list: &Value) -> Result<Vec<i64>, Failure> {
    list.integers().map_err(|_| Failure::missing(format!("indexing with {list:?} is not implemented")))
}

/// The mask in an index, if it is one.
fn mask_of(index: &Value) -> Option<Tensor> {
    match index {
        Value::Tensor(mask) if mask.dtype().is_ok_and(|dtype| dtype == DType::Bool) => Some(mask.clone()),
        Value::Tuple(parts) => match parts.as_slice() {
            [only] => mask_of(only),
            _ => None,
        },
        Value::List(parts) => {
            let is_bool = |part: &Value| matches!(part, Value::Number(Scalar::Bool(_)));
            let is_mask = !parts.is_empty() && parts.iter().all(is_bool);
            is_mask.then(|| index.clone().tensor().ok()).flatten()
        }
        _ => None,
    }
}
