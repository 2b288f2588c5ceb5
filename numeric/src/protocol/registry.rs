//! The operations of programs, by NumPy name.
//!
//! Element-wise functions are those of `tharsis_kernels::ufunc`: a function added there is found here without
//! further code. The rest are tables of rows: a name, a signature, a line of documentation and a function of
//! arguments.

use super::Failure;
use super::args::Args;
use super::arranged::ARRANGED;
use super::borders::BORDERS;
use super::composed::COMPOSED;
use super::contractions::CONTRACTIONS;
use super::coordinates::COORDINATES;
use super::creation::CREATION;
use super::distributions::DISTRIBUTIONS;
use super::draws::DRAWS;
use super::dtypes::DTYPES;
use super::fourier::FOURIER;
use super::histograms::HISTOGRAMS;
use super::indexing::INDEXING;
use super::matrices::MATRICES;
use super::reductions::REDUCTIONS;
use super::row::{Row, Run, bare, tensor};
use super::selections::{SELECTIONS, nonzero};
use super::sets::SETS;
use super::sparse::SPARSE;
use super::statistics::STATISTICS;
use super::value::Value;
use crate::elementwise::{binary, unary, where_};
use crate::manipulate::{concatenate, stack};
use crate::special::{SPECIAL_BINARY_DOCS, SPECIAL_DOCS};
use crate::tensor::Tensor;
use crate::ufuncs::{BINARY_DOCS, UNARY_DOCS};
use tharsis_kernels::{BinaryOp, UnaryOp};

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
const PARTS: [UnaryOp; 7] = [
    UnaryOp::FrexpExponent,
    UnaryOp::FrexpMantissa,
    UnaryOp::I0,
    UnaryOp::NormalQuantile,
    UnaryOp::RequireFinite,
    UnaryOp::RequireNotInfinite,
    UnaryOp::SpacingHalf,
];
const BINARY_PARTS: [BinaryOp; 2] = [BinaryOp::FromParts, BinaryOp::NextafterHalf];

/// The tables of operations that are not element-wise.
const TABLES: &[&[Row]] = &[
    NAMED,
    ARRANGED,
    BORDERS,
    COMPOSED,
    CONTRACTIONS,
    COORDINATES,
    CREATION,
    DISTRIBUTIONS,
    DRAWS,
    DTYPES,
    FOURIER,
    HISTOGRAMS,
    INDEXING,
    MATRICES,
    REDUCTIONS,
    SELECTIONS,
    SETS,
    SPARSE,
    STATISTICS,
];

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
    let module = |is_special| if is_special { "scipy.special" } else { "np" };
    for op in UnaryOp::ALL.iter().filter(|op| !PARTS.contains(op)) {
        let mut docs = UNARY_DOCS.iter().chain(SPECIAL_DOCS);
        let doc = docs.find(|(known, _)| known == op).map_or("", |(_, doc)| doc.trim());
        all.push(operation(&format!("{}.{}", module(op.is_special()), op.name()), "(x)", doc, run_unary));
    }
    for op in BinaryOp::ALL.iter().filter(|op| !BINARY_PARTS.contains(op)) {
        let mut docs = BINARY_DOCS.iter().chain(SPECIAL_BINARY_DOCS);
        let doc = docs.find(|(known, _)| known == op).map_or("", |(_, doc)| doc.trim());
        all.push(operation(
            &format!("{}.{}", module(op.is_special()), op.name()),
            "(x1, x2)",
            doc,
            run_binary,
        ));
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
    ("np.moveaxis", "(a, source, destination)", "an axis in another place", |_, args| {
        let x = args.tensor(0, "a")?;
        let (from, to) = (args.need(1, "source")?.integers()?, args.need(2, "destination")?.integers()?);
        tensor(x.moveaxes(&from, &to))
    }),
    ("np.ravel", "(a)", "in one axis", |_, args| tensor(args.tensor(0, "a")?.ravel())),
    ("np.reshape", "(a, shape, copy=None)", "in another shape", |_, args| {
        let x = args.tensor(0, "a")?;
        // An array does not change, so it makes no difference.
        args.flag(usize::MAX, "copy", true)?;
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
    ("np.swapaxes", "(a, axis1, axis2)", "two axes exchanged", |_, args| {
        let x = args.tensor(0, "a")?;
        let (a, b) = (args.need(1, "axis1")?.integer()?, args.need(2, "axis2")?.integer()?);
        tensor(x.swapaxes(a, b))
    }),
    ("np.transpose", "(a, axes=None)", "axes in another order", |_, args| {
        let x = args.tensor(0, "a")?;
        match args.integers(1, "axes")? {
            Some(order) => tensor(x.transpose(&order)),
            None => tensor(x.t()),
        }
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
