//! Filters of frames as readers of files can prune by them.
//!
//! A frame has a column of floats of a file through [`present`](crate::functions::arithmetic::present), which
//! a reader knows nothing of. A filter that holds for what is present holds for what is in the file too, but
//! for the two zeros of files: the other way round it is of no matter, since the filter runs again over the
//! rows.

use crate::functions::arithmetic::is_present;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::{InList, ScalarFunction};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator, lit};

/// A condition on columns of files that each row has for which all filters hold; `None` if nothing is known.
pub(super) fn wider(filters: &[Expr]) -> Option<Expr> {
    filters.iter().filter_map(wider_one).reduce(Expr::and)
}

fn wider_one(filter: &Expr) -> Option<Expr> {
    match filter {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            wider_one(left).into_iter().chain(wider_one(right)).reduce(Expr::and)
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            Some(wider_one(left)?.or(wider_one(right)?))
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match (&**left, &**right) {
            (value, Expr::Literal(bound, _)) => compared(float_of(value)?, *op, bound),
            (Expr::Literal(bound, _), value) => compared(float_of(value)?, op.swap()?, bound),
            _ => None,
        },
        Expr::IsNotNull(value) => Some(float_of(value)?.is_not_null()),
        Expr::InList(InList { expr, list, negated: false }) => {
            let value = float_of(expr)?;
            let is_plain = |item: &Expr| matches!(item, Expr::Literal(bound, _) if !is_zero(bound));
            list.iter().all(is_plain).then(|| value.in_list(list.clone(), false))
        }
        _ => None,
    }
}

/// The column whose present values an expression has.
fn float_of(expr: &Expr) -> Option<Expr> {
    match expr {
        Expr::ScalarFunction(ScalarFunction { func, args }) if is_present(func) => match &args[..] {
            [column @ Expr::Column(_)] => Some(column.clone()),
            _ => None,
        },
        _ => None,
    }
}

fn compared(column: Expr, op: Operator, bound: &ScalarValue) -> Option<Expr> {
    if bound.is_null() {
        return None;
    }
    // Minus zero is less than zero for the library, and they are one number for frames, which may be compared
    // with either: what is not below a zero begins with minus zero, what is not above ends with the other.
    let [low, high] = if is_zero(bound) { zeros(bound)? } else { [bound.clone(), bound.clone()] };
    Some(match op {
        // A zero of a frame is greater than minus zero, also if it is minus zero in the file.
        Operator::Gt if is_zero(bound) && *bound == low => column.gt_eq(lit(low)),
        Operator::Gt => column.gt(lit(bound.clone())),
        Operator::GtEq => column.gt_eq(lit(low)),
        Operator::Lt => column.lt(lit(bound.clone())),
        Operator::LtEq => column.lt_eq(lit(high)),
        Operator::Eq if is_zero(bound) => column.clone().gt_eq(lit(low)).and(column.lt_eq(lit(high))),
        Operator::Eq => column.eq(lit(low)),
        _ => return None,
    })
}

fn is_zero(bound: &ScalarValue) -> bool {
    matches!(bound, ScalarValue::Float64(Some(0.0)) | ScalarValue::Float32(Some(0.0)))
        || matches!(bound, ScalarValue::Float16(Some(half)) if f32::from(*half) == 0.0)
}

/// Minus zero and zero of the type of a float.
fn zeros(bound: &ScalarValue) -> Option<[ScalarValue; 2]> {
    let of_type = |zero: f64| ScalarValue::Float64(Some(zero)).cast_to(&bound.data_type()).ok();
    Some([of_type(-0.0)?, of_type(0.0)?])
}

#[cfg(test)]
mod tests {
    use super::wider;
    use crate::functions::arithmetic::present;
    use datafusion::logical_expr::{col, lit};

    #[test]
    fn a_filter_of_present_floats_is_one_of_the_column() {
        let x = || present(col("x"));
        let found = wider(&[x().gt(lit(5.0)).and(col("k").eq(lit(1)))]).unwrap();
        assert_eq!(found, col("x").gt(lit(5.0)));
        assert_eq!(wider(&[lit(5.0).gt(x())]).unwrap(), col("x").lt(lit(5.0)));
        let either = x().lt(lit(1.0)).or(x().gt(lit(2.0)));
        assert_eq!(wider(&[either]).unwrap(), col("x").lt(lit(1.0)).or(col("x").gt(lit(2.0))));
    }

    #[test]
    fn zero_of_a_frame_is_both_zeros_of_a_file() {
        let zero = || present(col("x")).eq(lit(0.0));
        assert_eq!(wider(&[zero()]).unwrap(), col("x").gt_eq(lit(-0.0)).and(col("x").lt_eq(lit(0.0))));
        let x = || present(col("x"));
        assert_eq!(wider(&[x().gt_eq(lit(0.0))]).unwrap(), col("x").gt_eq(lit(-0.0)));
        assert_eq!(wider(&[x().gt(lit(0.0))]).unwrap(), col("x").gt(lit(0.0)));
        // Whichever zero the program has.
        assert_eq!(wider(&[x().gt_eq(lit(-0.0))]).unwrap(), col("x").gt_eq(lit(-0.0)));
        assert_eq!(wider(&[x().gt(lit(-0.0))]).unwrap(), col("x").gt_eq(lit(-0.0)));
        assert_eq!(wider(&[lit(-0.0_f32).lt(x())]).unwrap(), col("x").gt_eq(lit(-0.0_f32)));
        assert_eq!(wider(&[x().lt_eq(lit(-0.0))]).unwrap(), col("x").lt_eq(lit(0.0)));
        assert_eq!(wider(&[x().eq(lit(-0.0))]), wider(&[zero()]));
        assert_eq!(wider(&[x().in_list(vec![lit(-0.0)], false)]), None);
    }

    #[test]
    fn a_condition_that_is_not_implied_is_none() {
        assert_eq!(wider(&[present(col("x")).not_eq(lit(1.0))]), None);
        assert_eq!(wider(&[present(col("x")).gt(lit(1.0)).or(col("k").eq(lit(1)))]), None);
        assert_eq!(wider(&[!present(col("x")).gt(lit(1.0))]), None);
    }
}
