//! Days beside moments.
//!
//! A day that meets a moment of a zone begins on the clock of this zone, as the text of the day does; the
//! library takes the day of UTC. It is cast to the type of the moment wherever both are compared, subtracted,
//! or values of one column: within an expression, among the sides of `UNION`, `INTERSECT` and `EXCEPT`, and
//! as keys of `JOIN .. USING`. `to_timestamp` of a moment shows the clock of its zone, as a cast does.

use super::moment_types::{as_moments, beside, cast, check_days, is_day, is_moment, moments_of};
use super::sides_with_moments::with_sides;
use super::types_within::has_times;
use crate::error::Result;
use crate::functions::local_times::local_times;
use crate::sql::plans::{with_other_types, with_parts_of, with_value};
use crate::value::is_text;
use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result as EngineResult};
use datafusion::logical_expr::expr::{InSubquery, ScalarFunction, SetComparison};
use datafusion::logical_expr::logical_plan::Subquery;
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, Operator};
use std::sync::Arc;

/// Functions whose arguments are values of one type; also those of lists, `array_..`.
const OF_ONE_TYPE: &[&str] = &["coalesce", "greatest", "ifnull", "least", "make_array", "nullif", "nvl"];

/// The plan whose days begin on the clocks of the moments beside them.
pub(in crate::sql) fn of_moments(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !has_times(&plan)? {
        return Ok(plan);
    }
    Ok(with_other_types(plan, |node| with_parts_of(node, &on_clocks)?.transform_data(with_sides))?)
}

/// A part of an expression whose days begin on the clocks of the moments beside them.
fn on_clocks(mut part: Expr, schema: &DFSchema) -> EngineResult<Transformed<Expr>> {
    let is_new = match &mut part {
        Expr::InSubquery(InSubquery { expr, subquery, .. })
        | Expr::SetComparison(SetComparison { expr, subquery, .. }) => beside_rows(expr, subquery, schema)?,
        Expr::ScalarFunction(call) if call.func.name().starts_with("to_timestamp") => shown(call, schema),
        Expr::ScalarFunction(call) if call.func.name() == "date_bin" => binned(call, schema)?,
        part => {
            let (takes_numbers, mut is_new) = (takes_numbers(part), false);
            for values in values_of(part) {
                is_new |= on_one_clock(values, takes_numbers, schema)?;
            }
            is_new
        }
    };
    Ok(Transformed::new_transformed(part, is_new))
}

/// Whether a whole number may stand beside a day: a number of days, or a place in a list.
fn takes_numbers(part: &Expr) -> bool {
    match part {
        Expr::BinaryExpr(BinaryExpr { op, .. }) => *op == Operator::Minus,
        Expr::ScalarFunction(call) => call.func.name().starts_with("array_"),
        _ => false,
    }
}

/// Whether an operator takes a text beside a time for another time.
fn is_of_times(operator: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, Minus, NotEq};
    matches!(operator, Eq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom | Lt | LtEq | Minus | NotEq)
}

/// Values that are compared, and values of one type.
pub(in crate::sql) fn values_of(part: &mut Expr) -> [Vec<&mut Expr>; 2] {
    let values = match part {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_of_times(*op) => {
            vec![left.as_mut(), right.as_mut()]
        }
        Expr::Between(between) => {
            vec![between.expr.as_mut(), between.low.as_mut(), between.high.as_mut()]
        }
        Expr::InList(among) => std::iter::once(among.expr.as_mut()).chain(&mut among.list).collect(),
        Expr::ScalarFunction(call) => {
            let others = match call.func.name() {
                "nvl2" => 1,
                name if is_of_one_type(name) => 0,
                _ => return [Vec::new(), Vec::new()],
            };
            // A separator between the elements of a text is none of them.
            let has_elements = call.func.name() != "array_to_string";
            let args = call.args.iter_mut().skip(others);
            args.flat_map(|value| if has_elements { elements(value) } else { vec![value] }).collect()
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

/// The elements of a list that is written as such, in the place of the list.
fn elements(value: &mut Expr) -> Vec<&mut Expr> {
    let is_written = matches!(&*value, Expr::ScalarFunction(call) if call.func.name() == "make_array");
    if is_written && let Expr::ScalarFunction(list) = value {
        return list.args.iter_mut().collect();
    }
    vec![value]
}

fn is_of_one_type(function: &str) -> bool {
    OF_ONE_TYPE.contains(&function) || function.starts_with("array_")
}

/// Casts the days among values, and times without a zone, if one of them is a moment. Whether there are some.
fn on_one_clock(values: Vec<&mut Expr>, takes_numbers: bool, schema: &DFSchema) -> EngineResult<bool> {
    if values.len() < 2 {
        return Ok(false);
    }
    let types: Vec<Option<DataType>> = values.iter().map(|value| value.get_type(schema).ok()).collect();
    if !takes_numbers {
        check_days(types.iter().flatten())?;
    }
    let Some(moments) = types.iter().flatten().find_map(moments_of) else { return Ok(false) };
    let mut is_new = false;
    for (value, dtype) in values.into_iter().zip(&types) {
        let Some(dtype) = dtype else { continue };
        if let Some(to) = beside(Some(dtype), Some(moments)) {
            cast(value, to);
            is_new = true;
        }
    }
    Ok(is_new)
}

/// The type of moments that a value has beside others: one for a day, or a reading of their clock.
fn on_clock_of(dtype: &DataType, others: &DataType) -> Option<DataType> {
    if !is_moment(others) {
        return None;
    }
    is_day(dtype).then(|| others.clone()).or_else(|| as_moments(dtype, others))
}

/// Casts the value beside the rows of a query, or these rows, if the others are moments. Whether it does.
fn beside_rows(value: &mut Expr, rows: &mut Subquery, schema: &DFSchema) -> EngineResult<bool> {
    let Ok(own) = value.get_type(schema) else { return Ok(false) };
    let first = rows.subquery.schema().fields().first().map(|field| field.data_type().clone());
    let Some(of_rows) = first else { return Ok(false) };
    check_days([&own, &of_rows].into_iter())?;
    if let Some(to) = on_clock_of(&own, &of_rows) {
        cast(value, to);
        return Ok(true);
    }
    let Some(to) = on_clock_of(&of_rows, &own) else { return Ok(false) };
    rows.subquery = with_value(Arc::clone(&rows.subquery), |mut value, _| {
        cast(&mut value, to.clone());
        value
    })?;
    Ok(true)
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

/// Has bins of moments begin on their clock, also if a text says where.
fn binned(call: &mut ScalarFunction, schema: &DFSchema) -> EngineResult<bool> {
    let [_, time, origin] = call.args.as_mut_slice() else { return Ok(false) };
    match (time.get_type(schema), origin.get_type(schema)) {
        (Ok(moments), Ok(text)) if is_moment(&moments) && is_text(&text) => {
            *origin = Expr::Cast(Cast::new(Box::new(std::mem::take(origin)), moments));
            Ok(true)
        }
        _ => on_one_clock(vec![time, origin], false, schema),
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::SqlSession;
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
                "nvl2(ts, @, ts) = m",
                "@ = any([ts, m])",
                "array_position([ts, m], @) = 2",
                "m = any([date '2024-01-01', @])",
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
        assert_true("date_bin(interval '1 day', ts, date '2024-03-31') = m");
        assert_true("date_bin(interval '1 day', ts, '2024-03-31') = m");
        assert_true("(select count(*) from t x where x.m = any (select d from t)) = 1");
        assert_true("(select count(*) from t x where x.d >= all (select m from t)) = 1");
        assert_true("(select count(*) from t x where x.ts > all (select d from t)) = 1");
        // Days alone, and times without a zone, have none.
        assert_true("d = timestamp '2024-03-31 00:00:00'");
        assert_true("coalesce(d, d) = d");
    }

    #[test]
    fn days_are_no_whole_numbers() {
        let mut session = session_of(&["create table t as select date '2024-03-31' as d, 5 as n"]);
        for value in [
            "d > 2024",
            "n = d",
            "d is distinct from n",
            "d between 1 and n",
            "d in (n, d)",
            "case d when 5 then true else false end",
            "case when 0 < n then d else n end",
            "greatest(d, n)",
            "(select count(*) from t x where x.d in (select n from t))",
            "(select count(*) from t x where x.n = any (select d from t))",
            "(select count(*) from t x join t y on x.d = y.n)",
            "(select count(*) from t x join (select n as d from t) y using (d))",
        ] {
            let query = format!("select {value} from t");
            let error = session.run(&query).expect_err(&query);
            assert_eq!(error.class(), "ValueError", "{query}: {error}");
            assert!(error.to_string().contains("whole numbers beside days"), "{query}: {error}");
        }
        for value in [
            "d - date '2024-03-30' = 1",
            "array_position([d], d, 1) = 1",
            "case when n = 5 then d end = '2024-03-31'",
        ] {
            assert_eq!(cells(&mut session, &format!("select {value} from t")), [["true"]], "{value}");
        }
    }

    /// A table of days whose midnight is left out or comes twice, and of moments about it.
    fn days_of_the_azores() -> SqlSession {
        let of =
            |text: &str| format!("arrow_cast('{text}', 'Timestamp(Microsecond, Some(\"Atlantic/Azores\"))')");
        let row = |first: &str, earlier: &str, day: &str| {
            format!("select {} as ts, {} as earlier, date '{day}' as d", of(first), of(earlier))
        };
        let made = [
            row("2024-03-31T01:00:00Z", "2024-03-31T00:59:59.999999Z", "2024-03-31"),
            row("2024-10-27T00:00:00Z", "2024-10-26T23:59:59.999999Z", "2024-10-27"),
        ];
        session_of(&[&format!("create table t as {}", made.join(" union all "))])
    }

    #[test]
    fn days_whose_midnight_is_left_out_or_comes_twice_begin_with_their_first_moment() {
        let mut session = days_of_the_azores();
        for day in ["2024-03-31", "2024-10-27"] {
            for moment in ["date '@'", "timestamp '@ 00:00:00'", "d", "d::timestamp", "'@'", "'@ 0:00'"] {
                for condition in [
                    "ts >= ? and earlier < ?",
                    "? = ts",
                    "ts between ? and ? and earlier not between ? and ?",
                    "ts in (?, date '2000-01-01')",
                    "greatest(earlier, ?) = ts",
                    "cast_to_type(?, ts) = ts",
                    "arrow_cast(?, 'Timestamp(Microsecond, Some(\"Atlantic/Azores\"))') = ts",
                    "arrow_try_cast(?, 'Timestamp(Second, Some(\"Atlantic/Azores\"))') = ts",
                ] {
                    let condition = condition.replace('?', moment).replace('@', day);
                    let query = format!("select count(*) from t where d = date '{day}' and {condition}");
                    assert_eq!(cells(&mut session, &query), [["1"]], "{day}: {condition}");
                }
            }
        }
        for condition in [
            "ts in (select d from t)",
            "d in (select ts from t)",
            "ts = any (select d from t)",
            "ts in (select d::timestamp from t)",
            "d::timestamp in (select ts from t)",
            "ts = any (select d::timestamp from t)",
            "earlier not in (select d::timestamp from t)",
            "ts in (select x.d from t x where x.d >= t.d)",
            "earlier not in (select d from t)",
            // The clock shows the midnight of October again.
            "ts + interval '1 hour' not in (select d from t)",
        ] {
            let query = format!("select count(*) from t where {condition}");
            assert_eq!(cells(&mut session, &query), [["2"]], "{condition}");
        }
    }

    #[test]
    fn readings_beside_literal_moments_are_on_the_clock_of_an_offset() {
        let moment = "arrow_cast('2024-03-30T22:30:00Z', 'Timestamp(Microsecond, Some(\"+02:00\"))')";
        let made = format!("create table t as select {moment} as ts, timestamp '2024-03-31 00:30:00' as n");
        let mut session = session_of(&[&made]);
        for condition in ["n = @", "n in (@)", "n = ts", "ts = timestamp '2024-03-31 00:30:00'"] {
            let query = format!("select count(*) from t where {}", condition.replace('@', moment));
            assert_eq!(cells(&mut session, &query), [["1"]], "{condition}");
        }
    }

    #[test]
    fn sides_of_operators_are_on_the_clock_of_their_moments() {
        let mut session = days_of_the_azores();
        for day in ["d", "d::timestamp"] {
            for joined in [
                "t x join (select @ as day from t) y on x.ts = y.day",
                "t x join (select @ as ts from t) y using (ts)",
                "(select @ as ts from t) x join t y using (ts)",
                "(select @ as ts from t) x natural join (select ts from t) y",
            ] {
                let query = format!("select count(*) from {joined}").replace('@', day);
                assert_eq!(cells(&mut session, &query), [["2"]], "{joined}");
            }
            for (rows, count) in [
                ("select ts as x from t union all select @ from t", "4"),
                ("select ts as x from t union select @ from t", "2"),
                ("select @ as x from t union select ts from t", "2"),
                ("select @ as x from t union by name select ts as x from t", "2"),
                ("select ts as x from t intersect select @ from t", "2"),
                ("select @ as x from t intersect select ts from t", "2"),
                ("select @ as x from t intersect all select ts from t", "2"),
                ("select @ as x from t except select earlier from t", "2"),
                ("select @ as x from t except all select earlier from t", "2"),
            ] {
                // The rows are moments of this zone, also those of the first side.
                let of_zone = "min(arrow_typeof(x)) like '%Atlantic/Azores%'";
                let query = format!("select count(*), {of_zone} from ({rows}) s").replace('@', day);
                assert_eq!(cells(&mut session, &query), [[count, "true"]], "{query}");
            }
            let rows = format!("select ts from t except select {day} from t");
            assert_eq!(cells(&mut session, &rows), Vec::<Vec<String>>::new(), "{rows}");
        }
    }

    #[test]
    fn texts_of_columns_stand_for_their_first_moment() {
        let mut session = days_of_the_azores();
        let made = "create table s as select '2024-03-31' as x union all select '2024-10-27 0:00:00.0'";
        cells(&mut session, made);
        cells(&mut session, "set time zone = 'Atlantic/Azores'");
        for rows in [
            "t join s on t.ts = s.x",
            "t, s where ts >= x and earlier < x",
            "t, s where ts = x::timestamptz",
            "t, s where ts = try_cast(x as timestamptz)",
            "t where ts in (select x from s)",
            "s where x in (select ts from t)",
            "(select ts from t union select x from s) u",
            "(select x from s union select ts from t) u",
            "t where ts in ('2024-03-31 00:00:00.0', '2024-10-27 00:00:00.0')",
        ] {
            let query = format!("select count(*) from {rows}");
            assert_eq!(cells(&mut session, &query), [["2"]], "{rows}");
        }
        let prepared = "prepare p(text) as select count(*) from t where ts >= $1 and earlier < $1";
        cells(&mut session, prepared);
        assert_eq!(cells(&mut session, "execute p('2024-10-27')"), [["1"]]);
        assert_eq!(cells(&mut session, "execute p('2024-03-31')"), [["1"]]);
    }

    #[test]
    fn try_cast_reads_what_casts_read() {
        let mut session = session_of(&[
            "set time zone = 'Atlantic/Azores'",
            "create table t as select date '2024-03-31' as d union all select date '2024-10-27'",
        ]);
        for day in ["d", "d::timestamp", "arrow_cast(d, 'Date64')", "'2024-03-31'", "'2024-10-27 0:00'"] {
            let same = format!("try_cast({day} as timestamptz) = {day}::timestamptz");
            let query = format!("select count(*) from t where {same}");
            assert_eq!(cells(&mut session, &query), [["2"]], "{same}");
        }
        for missing in ["nullif(d, d)", "nullif(d, d)::timestamp", "'2024-13-27'"] {
            let query = format!("select count(*) from t where try_cast({missing} as timestamptz) is null");
            assert_eq!(cells(&mut session, &query), [["2"]], "{missing}");
        }
        let missing = "select count(nullif(d, d)::timestamptz) from t";
        assert_eq!(cells(&mut session, missing), [["0"]]);
        let no_rows =
            "select count(d::timestamptz), count(try_cast(d as timestamptz)) from t where d is null";
        assert_eq!(cells(&mut session, no_rows), [["0", "0"]]);
    }

    #[test]
    fn days_of_a_column_begin_on_the_clock_of_its_moments() {
        let of =
            |text: &str| format!("arrow_cast('{text}', 'Timestamp(Microsecond, Some(\"Europe/Berlin\"))')");
        let (half_past, midnight) = (of("2024-03-30T23:30:00Z"), of("2024-03-30T23:00:00Z"));
        let made =
            format!("create table t as select {half_past} as ts, {midnight} as m, date '2024-03-31' as d");
        let mut session = session_of(&[&made]);
        for (rows, expected) in [
            ("select m as x from t union select d from t", 1),
            ("select d as x from t union select m from t", 1),
            ("select d as x from t union all select ts from t", 2),
            ("select d as x from t union select date '2024-03-31' union select m from t", 1),
            ("select d as x from t union by name select m as x from t", 1),
            ("select m as x from t union by name select d as x from t", 1),
            ("select m as x from t intersect select d from t", 1),
            ("select d as x from t intersect select m from t", 1),
            ("select d as x from t intersect all select m from t", 1),
            ("select m as x from t except select d from t", 0),
            ("select d as x from t except select ts from t", 1),
            ("select d as x from t except all select m from t", 0),
            ("select z.m as x from (select d as m from t) y join t z using (m)", 1),
            ("select z.m as x from t z join (select d as m from t) y using (m)", 1),
            ("select z.x from (select d as x from t) y natural join (select m as x from t) z", 1),
        ] {
            let query = format!("select count(*), coalesce(max(extract(hour from x)), 0) from ({rows}) s");
            assert_eq!(cells(&mut session, &query), [[expected.to_string(), "0".to_owned()]], "{rows}");
        }
        // Operators above a union know its moments.
        let both = "select d as x from t union all select m from t";
        for condition in [
            "x = date '2024-03-31'",
            "x::timestamp = timestamp '2024-03-31 00:00:00'",
            "x::date = '2024-03-31'",
        ] {
            let query = format!("select count(*) from ({both}) s where {condition}");
            assert_eq!(cells(&mut session, &query), [["2"]], "{condition}");
        }
    }
}
