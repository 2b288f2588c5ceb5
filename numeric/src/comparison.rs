//! Exact comparisons of integers without a common integer dtype: int64 with uint64, and numbers beyond the
//! dtype of the other operand.

use crate::operand::{Operand, cast, is_below, is_beyond};
use crate::tensor::Tensor;
use std::cmp::Ordering;
use tharsis_kernels::{BinaryOp, DType, Kind};

/// The comparison of `a` with `b`; `None` if a loop in their common dtype does it.
#[track_caller]
pub(crate) fn exactly(op: BinaryOp, a: &Operand, b: &Operand) -> Option<Tensor> {
    let swapped = swapped(op)?;
    let (left, right) = (a.dtype(), b.dtype());
    Some(match (a, b) {
        (Operand::Tensor(x), number) if is_beyond(number, left) => {
            constant(x, holds(op, if is_below(number) { Ordering::Greater } else { Ordering::Less }))
        }
        (number, Operand::Tensor(x)) if is_beyond(number, right) => {
            constant(x, holds(swapped, if is_below(number) { Ordering::Greater } else { Ordering::Less }))
        }
        (Operand::Tensor(x), Operand::Tensor(y)) if is_mixed(left, right) => signed_with_unsigned(op, x, y),
        (Operand::Tensor(x), Operand::Tensor(y)) if is_mixed(right, left) => {
            signed_with_unsigned(swapped, y, x)
        }
        _ => return None,
    })
}

fn is_mixed(signed: Option<DType>, unsigned: Option<DType>) -> bool {
    signed.is_some_and(|dtype| dtype.kind() == Kind::Signed) && unsigned == Some(DType::U64)
}

/// Compares a signed number that is not negative as an unsigned one; a negative one is less than all
/// unsigned.
#[track_caller]
fn signed_with_unsigned(op: BinaryOp, signed: &Tensor, unsigned: &Tensor) -> Tensor {
    let compared = Tensor::apply(tharsis_graph::ops::Binary(op), &[&cast(signed, DType::U64), unsigned]);
    if holds(op, Ordering::Less) {
        signed.less(0).logical_or(&compared)
    } else {
        signed.greater_equal(0).logical_and(&compared)
    }
}

/// `value` in the shape of `x`, which may be unknown.
#[track_caller]
fn constant(x: &Tensor, value: bool) -> Tensor {
    if value { x.equal(x) } else { x.not_equal(x) }
}

/// Whether the comparison is true for two numbers in this order.
fn holds(op: BinaryOp, order: Ordering) -> bool {
    match op {
        BinaryOp::Equal => order.is_eq(),
        BinaryOp::NotEqual => order.is_ne(),
        BinaryOp::Less => order.is_lt(),
        BinaryOp::LessEqual => order.is_le(),
        BinaryOp::Greater => order.is_gt(),
        _ => order.is_ge(),
    }
}

/// The comparison whose result on (b, a) is that of `op` on (a, b); `None` if `op` is no comparison.
fn swapped(op: BinaryOp) -> Option<BinaryOp> {
    Some(match op {
        BinaryOp::Equal | BinaryOp::NotEqual => op,
        BinaryOp::Less => BinaryOp::Greater,
        BinaryOp::LessEqual => BinaryOp::GreaterEqual,
        BinaryOp::Greater => BinaryOp::Less,
        BinaryOp::GreaterEqual => BinaryOp::LessEqual,
        _ => return None,
    })
}
