//! Operations that select elements by their values.

use super::Failure;
use super::row::{Row, tensor, tuple};
use super::value::Value;
use crate::tensor::Tensor;

/// All operations whose result size is known only after a run.
pub(super) const SELECTIONS: &[Row] = &[
    ("np.argwhere", "(a)", "the coordinates of what is not zero", |_, args| {
        tensor(args.tensor(0, "a")?.argwhere())
    }),
    ("np.compress", "(condition, a, axis=None)", "slices where a condition is true", |name, args| {
        let (x, condition) = if name.starts_with("nd.") {
            (args.tensor(0, "a")?, args.tensor(1, "condition")?)
        } else {
            (args.tensor(1, "a")?, args.tensor(0, "condition")?)
        };
        let axis = args.integers(2, "axis")?.and_then(|axes| axes.first().copied());
        tensor(x.compress(&condition, axis))
    }),
    ("np.extract", "(condition, arr)", "elements where a condition is true", |_, args| {
        let (condition, x) = (args.tensor(0, "condition")?, args.tensor(1, "arr")?);
        tensor(x.ravel().compress(&condition.ravel(), Some(0)))
    }),
    ("np.flatnonzero", "(a)", "where it is not zero, as if flattened", |_, args| {
        tensor(args.tensor(0, "a")?.flatnonzero())
    }),
    ("np.nonzero", "(a)", "where it is not zero, an array for each axis", |_, args| {
        nonzero(&args.tensor(0, "a")?)
    }),
];

/// The coordinates of nonzero elements.
pub(super) fn nonzero(x: &Tensor) -> Result<Value, Failure> {
    tuple(x.nonzero()?)
}
