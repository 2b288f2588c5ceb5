//! `2 * interval '1 minute'`, `interval '1 day' / 2`: lengths of time and numbers.
//!
//! The library takes both for intervals, and refuses the operator. It asks this planner first.

use crate::functions::time_spans::{divided, times};
use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result as EngineResult, ScalarValue};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::sqlparser::ast::BinaryOperator;
use datafusion::logical_expr::{Expr, ExprSchemable, Operator};
use std::sync::Arc;

/// The planner of these operators.
pub(in crate::sql) fn planner() -> Arc<dyn ExprPlanner> {
    Arc::new(IntervalOperators)
}

#[derive(Debug)]
struct IntervalOperators;

impl ExprPlanner for IntervalOperators {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> EngineResult<PlannerResult<RawBinaryExpr>> {
        let (left, right) = (&expr.left, &expr.right);
        let planned = match expr.op {
            BinaryOperator::Multiply if is_number(right, schema) && is_span(left, schema) => {
                Some(times(left.clone(), right.clone()))
            }
            BinaryOperator::Multiply if is_span(right, schema) && is_number(left, schema) => {
                Some(times(right.clone(), left.clone()))
            }
            BinaryOperator::Divide if is_number(right, schema) && is_span(left, schema) => {
                Some(divided(left.clone(), right.clone()))
            }
            _ => None,
        };
        Ok(planned.map_or_else(|| PlannerResult::Original(expr), PlannerResult::Planned))
    }
}

fn is_number(value: &Expr, schema: &DFSchema) -> bool {
    match value {
        Expr::Literal(ScalarValue::Null, _) => true,
        value => value.get_type(schema).is_ok_and(|dtype| dtype.is_numeric()),
    }
}

fn is_span(value: &Expr, schema: &DFSchema) -> bool {
    match value {
        // Their types are not asked for: those of a chain of operators would be, for each of them.
        Expr::BinaryExpr(binary) if !matches!(binary.op, Operator::Plus | Operator::Minus) => false,
        value => {
            let dtype = value.get_type(schema);
            dtype.is_ok_and(|dtype| matches!(dtype, DataType::Interval(_) | DataType::Duration(_)))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::small_tables::{cells, session_of};

    #[test]
    fn intervals_are_multiplied_and_divided_as_in_postgresql() {
        let mut session = session_of(&[]);
        let of_durations = "timestamp '2024-01-01 04:00:00' - timestamp '2024-01-01 00:00:00'";
        for (value, expected) in [
            ("2 * interval '1 minute'", "interval '2 minutes'"),
            ("interval '1 minute' * 2", "interval '2 minutes'"),
            ("2 * interval '1 day' * 3", "interval '6 days'"),
            ("-1 * interval '1 month'", "interval '-1 month'"),
            ("1.5 * interval '1 day'", "interval '1 day 12 hours'"),
            ("interval '1 month' * 1.5", "interval '1 month 15 days'"),
            ("interval '1 day' * 0.1", "interval '2 hours 24 minutes'"),
            ("decimal '2.5' * interval '1 hour'", "interval '2 hours 30 minutes'"),
            ("arrow_cast(3, 'UInt64') * interval '1 second'", "interval '3 seconds'"),
            ("(interval '1 hour' + interval '1 minute') * 2", "interval '2 hours 2 minutes'"),
            ("interval '1 day' / 2", "interval '12 hours'"),
            ("interval '1 month' / 2", "interval '15 days'"),
            ("interval '1 hour' / 0.5", "interval '2 hours'"),
            ("(timestamp '2024-01-01 02:00:00' - timestamp '2024-01-01 00:00:00') * 2", of_durations),
            ("(timestamp '2024-01-01 08:00:00' - timestamp '2024-01-01 00:00:00') / 2", of_durations),
        ] {
            let query = format!("select {value} = {expected}");
            assert_eq!(cells(&mut session, &query), [["true"]], "{value}");
        }
        for value in ["null * interval '1 day'", "interval '1 day' / null"] {
            assert_eq!(cells(&mut session, &format!("select ({value}) is null")), [["true"]], "{value}");
        }
    }

    #[test]
    fn columns_are_numbers_of_intervals() {
        let mut session = session_of(&[
            "create table t (n int, x double) as values (2, 1.5), (-3, -0.5), (null, null)",
            "create view v as select n, n * interval '1 minute' as i from t",
        ]);
        let start = "timestamp '2024-01-01 00:00:00'";
        for (value, of_table, expected) in [
            ("n * interval '1 minute'", "t", ["2023-12-31 23:57:00", "2024-01-01 00:02:00", "NULL"]),
            ("interval '1 hour' / n", "t", ["2023-12-31 23:40:00", "2024-01-01 00:30:00", "NULL"]),
            ("x * interval '1 hour'", "t", ["2023-12-31 23:30:00", "2024-01-01 01:30:00", "NULL"]),
            ("interval '3 hours' / x", "t", ["2023-12-31 18:00:00", "2024-01-01 02:00:00", "NULL"]),
            ("i", "v", ["2023-12-31 23:57:00", "2024-01-01 00:02:00", "NULL"]),
        ] {
            let query = format!("select {start} + {value} from {of_table} order by n");
            assert_eq!(cells(&mut session, &query).concat(), expected, "{value}");
        }
        let query = "select count(*) from t where timestamp '2024-01-01 00:01:00' - n * interval '1 minute' < \
                     timestamp '2024-01-01 00:00:00'";
        assert_eq!(cells(&mut session, query), [["1"]]);
    }

    #[test]
    fn lengths_of_time_without_room_are_errors() {
        let mut session = session_of(&["create table t as values (9223372036854775807, 0)"]);
        for (value, class) in [
            ("column1 * interval '1 hour'", "OverflowError"),
            ("9223372036854775807 * interval '1 hour'", "OverflowError"),
            ("interval '1 day' * 1e300", "OverflowError"),
            ("interval '1 day' / column2", "ZeroDivisionError"),
            ("interval '1 day' / 0", "ZeroDivisionError"),
        ] {
            let error = session.run(&format!("select {value} from t")).expect_err(value);
            assert_eq!(error.class(), class, "{value}: {error}");
        }
    }
}
