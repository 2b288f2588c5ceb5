//! Operations that sort, search and compare sets.

use super::Failure;
use super::args::Args;
use super::arranged::axis;
use super::row::{Row, tensor};
use super::value::Value;
use crate::sets::Unique;
use crate::tensor::Tensor;

/// All operations on the order of elements.
pub(super) const SETS: &[Row] = &[
    (
        "np.argsort",
        "(a, axis=-1, kind=None, order=None, stable=None, descending=False)",
        "positions of elements in ascending order",
        |_, args| {
            sorted(
                args,
                |x, axis| ordered(x, axis, Tensor::argsort),
                |x, axis| ordered(x, axis, Tensor::argsort_descending),
            )
        },
    ),
    ("np.intersect1d", "(ar1, ar2, assume_unique=False)", "distinct elements of both", |_, args| {
        pair(args, Tensor::intersect1d)
    }),
    (
        "np.isin",
        "(element, test_elements, assume_unique=False, invert=False, kind=None)",
        "whether each is among others",
        |_, args| {
            let (x, among) = (args.tensor(0, "element")?, args.tensor(1, "test_elements")?);
            args.flag(2, "assume_unique", false)?;
            args.take(usize::MAX, "kind");
            let found = x.isin(&among);
            tensor(if args.flag(3, "invert", false)? { found.logical_not() } else { found })
        },
    ),
    (
        "np.searchsorted",
        "(a, v, side='left', sorter=None)",
        "where elements belong in a sorted array",
        |_, args| {
            let (mut x, wanted) = (args.tensor(0, "a")?, args.tensor(1, "v")?);
            let side = args.text_or(2, "side", "left")?;
            match args.take(3, "sorter") {
                None | Some(Value::None) => {}
                Some(sorter) => x = x.take_at(&sorter.tensor()?, 0),
            }
            match side.as_str() {
                "left" => tensor(x.searchsorted(&wanted)),
                "right" => tensor(x.searchsorted_right(&wanted)),
                other => {
                    let text = format!("search side must be one of 'left' or 'right' (got '{other}')");
                    Err(Failure::value(text))
                }
            }
        },
    ),
    ("np.setdiff1d", "(ar1, ar2, assume_unique=False)", "distinct elements of the first alone", |_, args| {
        pair(args, Tensor::setdiff1d)
    }),
    ("np.setxor1d", "(ar1, ar2, assume_unique=False)", "distinct elements of one of both", |_, args| {
        pair(args, Tensor::setxor1d)
    }),
    (
        "np.sort",
        "(a, axis=-1, kind=None, order=None, stable=None, descending=False)",
        "elements in ascending order",
        |_, args| sorted(args, Tensor::sort, Tensor::sort_descending),
    ),
    ("np.union1d", "(ar1, ar2)", "distinct elements of either", |_, args| pair(args, Tensor::union1d)),
    (
        "np.unique",
        "(ar, return_index=False, return_inverse=False, return_counts=False, axis=None, equal_nan=True)",
        "the distinct elements in ascending order",
        |_, args| unique(args),
    ),
    ("np.unique_all", "(x)", "the distinct elements, their places and numbers", |_, args| {
        let Unique { values, indices, inverse_indices, counts } = args.tensor(0, "x")?.unique_all(false);
        fields(
            &["values", "indices", "inverse_indices", "counts"],
            [values, indices, inverse_indices, counts],
        )
    }),
    ("np.unique_counts", "(x)", "the distinct elements and their numbers", |_, args| {
        let found = args.tensor(0, "x")?.unique_all(false);
        fields(&["values", "counts"], [found.values, found.counts])
    }),
    ("np.unique_inverse", "(x)", "the distinct elements, and the place of each among them", |_, args| {
        let found = args.tensor(0, "x")?.unique_all(false);
        fields(&["values", "inverse_indices"], [found.values, found.inverse_indices])
    }),
    ("np.unique_values", "(x)", "the distinct elements in ascending order", |_, args| {
        tensor(args.tensor(0, "x")?.unique_values())
    }),
];

/// A tuple whose parts have names.
pub(super) fn fields<const N: usize>(
    names: &'static [&'static str; N],
    parts: [Tensor; N],
) -> Result<Value, Failure> {
    Ok(Value::Fields(names, parts.into_iter().map(tensor).collect::<Result<_, _>>()?))
}

fn pair(args: &mut Args, of: fn(&Tensor, &Tensor) -> Tensor) -> Result<Value, Failure> {
    let (a, b) = (args.tensor(0, "ar1")?, args.tensor(1, "ar2")?);
    args.flag(2, "assume_unique", false)?;
    tensor(of(&a, &b))
}

/// As NumPy has it, an array without axes has an order of its one element, but is not sorted.
fn ordered(x: &Tensor, axis: i64, of: Along) -> Tensor {
    match (x.ndim(), axis) {
        (Ok(0), 0 | -1) => of(&x.atleast(1), 0),
        _ => of(x, axis),
    }
}

type Along = fn(&Tensor, i64) -> Tensor;

fn sorted(args: &mut Args, up: Along, down: Along) -> Result<Value, Failure> {
    let x = args.tensor(0, "a")?;
    let axis = match args.take(1, "axis") {
        None => Some(-1),
        Some(Value::None) => None,
        Some(axis) => Some(axis.integer()?),
    };
    // Every kind of sorting gives the same here, and is stable.
    match args.take(2, "kind") {
        None | Some(Value::None) => {}
        Some(Value::Text(kind)) if ["quicksort", "mergesort", "heapsort", "stable"].contains(&&*kind) => {}
        Some(other) => {
            return Err(Failure::value(format!(
                "sort kind must be one of 'quick', 'heap', or 'stable' (got {other:?})"
            )));
        }
    }
    args.flag(usize::MAX, "stable", false)?;
    let with = if args.flag(usize::MAX, "descending", false)? { down } else { up };
    match axis {
        Some(axis) => tensor(with(&x, axis)),
        None => tensor(with(&x.in_one_axis(), 0)),
    }
}

fn unique(args: &mut Args) -> Result<Value, Failure> {
    let x = args.tensor(0, "ar")?;
    let wanted = [
        args.flag(1, "return_index", false)?,
        args.flag(2, "return_inverse", false)?,
        args.flag(3, "return_counts", false)?,
    ];
    let axis = axis(args, 4)?;
    let equal_nan = args.flag(usize::MAX, "equal_nan", true)?;
    args.flag(usize::MAX, "sorted", true)?;
    if let Some(axis) = axis {
        return chosen(x.unique_along(axis), wanted);
    }
    if wanted == [false; 3] {
        return tensor(if equal_nan { x.unique() } else { x.unique_values() });
    }
    chosen(x.unique_all(equal_nan), wanted)
}

/// Distinct parts, alone or with what else is wanted of them.
fn chosen(found: Unique, wanted: [bool; 3]) -> Result<Value, Failure> {
    if wanted == [false; 3] {
        return tensor(found.values);
    }
    let parts = [found.indices, found.inverse_indices, found.counts].into_iter().zip(wanted);
    let parts = parts.filter_map(|(part, wanted)| wanted.then_some(part));
    super::row::tuple(std::iter::once(found.values).chain(parts))
}
