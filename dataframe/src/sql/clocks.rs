//! Days beside moments.
//!
//! A day that meets a moment of a zone begins on the clock of this zone, as the text of the day does; the
//! library takes the day of UTC. It is cast to the type of the moment wherever both are compared, subtracted,
//! or values of one column. `to_timestamp` of a moment shows the clock of its zone, as a cast does.

use super::plans::with_parts;
use super::times::is_of_times;
use crate::error::Result;
use crate::functions::local_times::local_times;
use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::expr::{InSubquery, ScalarFunction};
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan};

/// Functions whose arguments are values of one type.
const OF_ONE_TYPE: &[&str] = &["coalesce", "greatest", "ifnull", "least", "nullif", "nvl"];

/// The plan whose days begin on the clocks of the moments beside them.
pub(super) fn of_moments(plan: LogicalPlan) -> Result<LogicalPlan> {
    Ok(with_parts(plan, |mut part, schema| {
        let is_new = match &mut part {
            Expr::InSubquery(among) => beside_rows(among, schema),
            Expr::ScalarFunction(call) if call.func.name().starts_with("to_timestamp") => shown(call, schema),
            part => {
                let mut is_new = false;
                for values in values_of(part) {
                    is_new |= on_one_clock(values, schema);
                }
                is_new
            }
        };
        Ok(if is_new { Transformed::yes(part) } else { Transformed::no(part) })
    })?)
}

/// Values that are compared, and values of one type.
fn values_of(part: &mut Expr) -> [Vec<&mut Expr>; 2] {
    let values = match part {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_of_times(*op) => {
            vec![left.as_mut(), right.as_mut()]
        }
        Expr::Between(between) => {
            vec![between.expr.as_mut(), between.low.as_mut(), between.high.as_mut()]
        }
        Expr::InList(among) => std::iter::once(among.expr.as_mut()).chain(&mut among.list).collect(),
        Expr::ScalarFunction(call) if OF_ONE_TYPE.contains(&call.func.name()) => {
            call.args.iter_mut().collect()
        }
        Expr::Case(case) => {
            let pairs = case.when_then_expr.iter_mut().map(|(when, then)| (when.as_mut(), then.as_mut()));
            let (whens, mut results): (Vec<&mut Expr>, Vec<&mut Expr>) = pairs.unzip();
            results.extend(case.else_expr.as_deref_mut());
            let compared = match case.expr.as_deref_mut() {
                Some(value) => std::iter::once(value).chain(whens).collect(),
                None => Vec::new(),
            };
            return [compared, results];
        }
        _ => Vec::new(),
    };
    [values, Vec::new()]
}

fn is_day(dtype: &DataType) -> bool {
    matches!(dtype, DataType::Date32 | DataType::Date64)
}

fn is_moment(dtype: &DataType) -> bool {
    matches!(dtype, DataType::Timestamp(_, Some(_)))
}

fn cast(value: &mut Expr, to: DataType) {
    *value = Expr::Cast(Cast::new(Box::new(std::mem::take(value)), to));
}

/// Casts the days among values if one of them is a moment; whether there are some.
fn on_one_clock(values: Vec<&mut Expr>, schema: &DFSchema) -> bool {
    if values.len() < 2 {
        return false;
    }
    let types: Vec<Option<DataType>> = values.iter().map(|value| value.get_type(schema).ok()).collect();
    let Some(moment) = types.iter().flatten().find(|dtype| is_moment(dtype)) else { return false };
    let mut is_new = false;
    for (value, dtype) in values.into_iter().zip(&types) {
        if dtype.as_ref().is_some_and(is_day) {
            cast(value, moment.clone());
            is_new = true;
        }
    }
    is_new
}

/// Casts the value beside the rows of a query if one of both are days, and the others moments.
fn beside_rows(among: &mut InSubquery, schema: &DFSchema) -> bool {
    let Some(rows) = among.subquery.subquery.schema().fields().first() else { return false };
    let rows = rows.data_type().clone();
    match among.expr.get_type(schema) {
        Ok(own) if is_day(&own) && is_moment(&rows) => cast(&mut among.expr, rows),
        Ok(own) if is_moment(&own) && is_day(&rows) => {
            *among.expr = local_times(std::mem::take(&mut *among.expr), false);
        }
        _ => return false,
    }
    true
}

/// Shows a moment on its clock if the call has no zone.
fn shown(call: &mut ScalarFunction, schema: &DFSchema) -> bool {
    let whole = Expr::ScalarFunction(call.clone()).get_type(schema);
    if !matches!(whole, Ok(DataType::Timestamp(_, None))) {
        return false;
    }
    match call.args.as_mut_slice() {
        [moment] if moment.get_type(schema).is_ok_and(|dtype| is_moment(&dtype)) => {
            *moment = local_times(std::mem::take(moment), false);
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::small_tables::{cells, session_of};

    #[test]
    fn days_begin_on_the_clock_of_the_moments_beside_them() {
        let of =
            |text: &str| format!("arrow_cast('{text}', 'Timestamp(Microsecond, Some(\"Europe/Berlin\"))')");
        let (half_past, midnight) = (of("2024-03-30T23:30:00Z"), of("2024-03-30T23:00:00Z"));
        let made =
            format!("create table t as select {half_past} as ts, {midnight} as m, date '2024-03-31' as d");
        let mut session = session_of(&[&made]);
        let mut assert_true = |value: &str| {
            let query = format!("select {value} from t");
            assert_eq!(cells(&mut session, &query), [["true"]], "{value}");
        };
        for day in ["d", "date '2024-03-31'", "m"] {
            for value in [
                "ts > @",
                "ts >= @",
                "@ < ts",
                "ts <> @",
                "m = @",
                "m is not distinct from @",
                "ts between @ and date '2024-04-01'",
                "date '2024-03-31' between @ and ts",
                "m in (date '2024-01-01', @)",
                "@ in (ts, m)",
                "ts - @ = ts - m",
                "@ - ts = m - ts",
                "case m when @ then true else false end",
                "case when 0 < length('x') then @ else ts end = m",
                "coalesce(@, ts) = m",
                "nullif(m, @) is null",
                "greatest(ts, @) = ts",
                "least(@, ts) = m",
                "(select count(*) from t x join t y on x.ts > y.d and x.m = y.@) = 1",
                "(select count(*) from t x where x.ts >= @) = 1",
            ] {
                if !(value.contains("y.@") && day.starts_with("date")) {
                    assert_true(&value.replace('@', day));
                }
            }
        }
        assert_true("(select count(*) from t x where x.m in (select d from t)) = 1");
        assert_true("(select count(*) from t x where x.d in (select m from t)) = 1");
        assert_true("ts >= '2024-03-31'");
        assert_true("to_timestamp(ts) = timestamp '2024-03-31 00:30:00'");
        assert_true("to_timestamp_seconds(ts) = ts::timestamp");
        assert_true("to_unixtime(m) = 1711839600");
        // Days alone, and times without a zone, have none.
        assert_true("d = timestamp '2024-03-31 00:00:00'");
        assert_true("coalesce(d, d) = d");
    }
}
