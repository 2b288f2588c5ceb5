//! Values in place of others, by pairs of them.

use crate::error::Result;
use crate::promotion::{OutOfRange, as_type, of_exprs};
use crate::value::Value;
use arrow::datatypes::DataType;
use datafusion::functions::expr_fn as functions;
use datafusion::logical_expr::expr::Case;
use datafusion::logical_expr::expr_fn::when;
use datafusion::logical_expr::{Expr, lit};
use std::collections::HashSet;

/// One value for each of others, as an expression; the rest is `otherwise`, an expression of a type. Numbers
/// have the type of all of them: that of a choice in a plan is the type of its first value.
pub(crate) fn mapped(expr: &Expr, pairs: &[(Value, Value)], otherwise: (Expr, &DataType)) -> Result<Expr> {
    let (otherwise, own) = otherwise;
    let mut common = own.clone();
    for to in pairs.iter().map(|(_, to)| to).filter(|to| to.dtype().is_numeric()) {
        if !common.is_numeric() && !common.is_null() {
            continue;
        }
        let number = lit(to.0.clone());
        common = match of_exprs((&otherwise, &common), (&number, &to.dtype()), OutOfRange::Widens)? {
            Some(met) => met,
            None if common.is_null() => to.dtype(),
            // Decimals stay what they are if they have the number, which a float has only nearly.
            None if is_held(&number, &common) => common,
            None => DataType::Float64,
        };
    }
    // Other values of a column stay, whose type is then known.
    let of_column = (otherwise == *expr).then_some(own);
    let typed = |expr: Expr, dtype: &DataType| {
        if common.is_numeric() && dtype.is_numeric() { as_type(expr, dtype, &common) } else { expr }
    };
    let otherwise = typed(otherwise, own);
    let mut known = HashSet::new();
    let pairs: Vec<&(Value, Value)> = pairs.iter().filter(|(from, _)| known.insert(&from.0)).collect();
    let (of_missing, pairs): (Vec<_>, Vec<_>) = pairs.into_iter().partition(|(from, _)| from.is_missing());
    let pairs = pairs.into_iter().filter_map(|(from, to)| Some((key(from, of_column)?, to)));
    let (to_missing, pairs): (Vec<_>, Vec<_>) = pairs.partition(|(_, to)| to.is_missing());
    let cases = pairs.into_iter().map(|(from, to)| {
        let to = typed(lit(to.0.clone()), &to.dtype());
        (Box::new(from), Box::new(to))
    });
    let mut found = looked_up(expr, cases.collect(), otherwise);
    if !to_missing.is_empty() {
        let values = to_missing.into_iter().map(|(from, _)| from).collect();
        found = when(expr.clone().in_list(values, false).is_not_true(), found).end()?;
    }
    Ok(match of_missing.first() {
        None => found,
        Some((_, to)) if to.is_missing() => when(expr.clone().is_not_null(), found).end()?,
        Some((_, to)) => {
            when(expr.clone().is_null(), typed(lit(to.0.clone()), &to.dtype())).otherwise(found)?
        }
    })
}

/// Values at most that are compared one after the other. More are looked up in a table of the library, which
/// it makes only where the rest is one value too.
const CASES_FEW: usize = 16;

/// One value for each of others, and another expression for the rest. The expression stands once, however
/// many values there are.
fn looked_up(expr: &Expr, cases: Vec<(Box<Expr>, Box<Expr>)>, otherwise: Expr) -> Expr {
    if cases.is_empty() {
        return otherwise;
    }
    let is_few = cases.len() <= CASES_FEW;
    let case = |otherwise: Option<Expr>| {
        Expr::Case(Case::new(Some(Box::new(expr.clone())), cases, otherwise.map(Box::new)))
    };
    match otherwise {
        value @ Expr::Literal(..) => case(Some(value)),
        value if is_few => case(Some(value)),
        value => functions::coalesce(vec![case(None), value]),
    }
}

/// A value that others are compared with, in the type of their column if that is one of whole numbers; none
/// if no whole number is this value. The library compares whole numbers with floats as floats, of which
/// several whole numbers are one.
fn key(from: &Value, of_column: Option<&DataType>) -> Option<Expr> {
    let own = of_column.filter(|own| own.is_integer() && from.dtype().is_numeric());
    let Some(own) = own else { return Some(lit(from.0.clone())) };
    let held = from.0.cast_to(own).ok()?;
    let back = held.cast_to(&from.dtype()).ok()?;
    (back == from.0).then(|| lit(held))
}

/// Whether a type of decimals has a number of the program as it is.
pub(super) fn is_held(number: &Expr, dtype: &DataType) -> bool {
    let Expr::Literal(number, _) = number else { return false };
    let back = number.cast_to(dtype).and_then(|held| held.cast_to(&number.data_type()));
    dtype.is_decimal() && back.is_ok_and(|back| back == *number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Series;
    use datafusion::common::ScalarValue;
    use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};

    /// The number of columns and comparisons in an expression.
    fn size(expr: &Expr) -> [usize; 2] {
        let mut found = [0; 2];
        expr.apply(|part| {
            found[0] += usize::from(matches!(part, Expr::Column(_)));
            found[1] += usize::from(matches!(part, Expr::BinaryExpr(_)));
            Ok(TreeNodeRecursion::Continue)
        })
        .expect("a walk");
        found
    }

    fn pairs(count: i64) -> Vec<(Value, Value)> {
        (0..count).map(|number| (Value::from(number), Value::from(number * 10))).collect()
    }

    #[test]
    fn values_are_looked_up_and_not_compared_one_by_one() {
        let expr = crate::frame::named("n");
        let rest = (lit(ScalarValue::Null), &DataType::Null);
        assert_eq!(size(&mapped(&expr, &pairs(500), rest).expect("a choice")), [1, 0]);
        let rest = (expr.clone(), &DataType::Int64);
        assert_eq!(size(&mapped(&expr, &pairs(500), rest).expect("a choice")), [2, 0]);
    }

    #[test]
    fn whole_numbers_are_replaced_as_whole_numbers() {
        let large = 1_i64 << 53;
        let numbers = Series::from_values("n", vec![Some(large + 1), Some(large), Some(1), Some(2)]);
        let pairs = [(large as f64, -1_i64), (0.5, 7), (2.0, 8), (f64::INFINITY, 9)];
        let pairs = pairs.map(|(from, to)| (Value::from(from), Value::from(to)));
        let found = numbers.replace(pairs.to_vec()).values::<i64>().expect("numbers");
        assert_eq!(found, [Some(large + 1), Some(-1), Some(1), Some(8)]);
        let mixed = vec![(Value::from(large), Value::missing()), (Value::from(0.5), Value::from(7))];
        let found = numbers.replace(mixed).values::<i64>().expect("numbers");
        assert_eq!(found, [Some(large + 1), None, Some(1), Some(2)]);
    }

    #[test]
    fn many_values_are_put_in_place_of_others_as_few_are() {
        for count in [3, 40] {
            let numbers = Series::from_values("n", vec![Some(0), Some(2), None, Some(99), Some(1)]);
            let found = numbers.map(pairs(count)).values::<i64>().expect("numbers");
            assert_eq!(found, [Some(0), Some(20), None, None, Some(10)], "{count}");
            let mut pairs = pairs(count);
            pairs.push((Value::from(1), Value::from(-7)));
            pairs[2].1 = Value::missing();
            pairs.push((Value::missing(), Value::from(5)));
            let found = numbers.replace(pairs).values::<i64>().expect("numbers");
            assert_eq!(found, [Some(0), None, Some(5), Some(99), Some(10)], "{count}");
        }
        let texts =
            |count: i64| (0..count).map(|at| (Value::from(format!("k{at}")), Value::from(at as f64 / 2.0)));
        let names = Series::from_values("s", vec!["k3", "k0", "z"]);
        let found = names.map(texts(30).collect::<Vec<_>>()).values::<f64>().expect("floats");
        assert_eq!(found, [Some(1.5), Some(0.0), None]);
    }
}
