//! Times of statements.
//!
//! A text stands for a time without seconds too, `'2024-03-30 6:00'`, where it is cast to one or compared
//! with one. A moment is read on the clock of its zone, whatever it becomes: the library takes that of UTC
//! for `ts::timestamp`, and that of the zone for `ts::date`, where it panics near the end of its calendar.
//! `to_timestamp(text, format)` of the library leaves an hour out that has no minute; it has one here, and
//! formats of which other parts would be left out are refused.

use super::plans::with_parts;
use crate::error::Result;
use crate::functions::full_formats::{FULL_FORMATS, Parts, behind_minutes, full_formats};
use crate::functions::full_times::{FULL_TIMES, full_time, full_times};
use crate::functions::local_times::local_times;
use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result as EngineResult, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, Operator, TryCast, cast, lit,
};
use std::sync::Arc;

/// The plan whose times are those that statements mean.
pub(super) fn as_meant(plan: LogicalPlan) -> Result<LogicalPlan> {
    Ok(with_parts(plan, with_time)?)
}

fn with_time(part: Expr, schema: &DFSchema) -> EngineResult<Transformed<Expr>> {
    let meant = match &part {
        Expr::Cast(Cast { expr, field }) => of_cast(expr, field.data_type(), false, schema)
            .map(|expr| Expr::Cast(Cast { expr: Box::new(expr), field: field.clone() })),
        Expr::TryCast(TryCast { expr, field }) => of_cast(expr, field.data_type(), true, schema)
            .map(|expr| Expr::TryCast(TryCast { expr: Box::new(expr), field: field.clone() })),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_of_times(*op) => {
            beside_times(&[left.as_ref(), right.as_ref()], &part, schema)
        }
        Expr::Between(between) => {
            let values = [between.expr.as_ref(), between.low.as_ref(), between.high.as_ref()];
            beside_times(&values, &part, schema)
        }
        Expr::InList(among) => {
            let values: Vec<&Expr> = std::iter::once(among.expr.as_ref()).chain(&among.list).collect();
            beside_times(&values, &part, schema)
        }
        Expr::Case(case) => {
            let whens = case.when_then_expr.iter().map(|(when, _)| when.as_ref());
            let value = case.expr.as_deref();
            value.and_then(|value| {
                let values: Vec<&Expr> = std::iter::once(value).chain(whens).collect();
                beside_times(&values, &part, schema)
            })
        }
        Expr::ScalarFunction(call) if call.func.name() == "nullif" => {
            beside_times(&call.args.iter().collect::<Vec<&Expr>>(), &part, schema)
        }
        Expr::ScalarFunction(call) if matches!(call.func.name(), "date_part" | "date_trunc") => {
            of_part(call, schema)
        }
        Expr::ScalarFunction(call) if is_timestamp(call) => timestamp(call, schema)?,
        _ => None,
    };
    Ok(meant.map_or_else(|| Transformed::no(part), Transformed::yes))
}

/// The value that is cast in the place of another one; `None` for that one itself. A cast that fails is an
/// error, or missing.
fn of_cast(value: &Expr, to: &DataType, or_missing: bool, schema: &DFSchema) -> Option<Expr> {
    match (value.get_type(schema).ok()?, to) {
        (
            DataType::Timestamp(_, Some(_)),
            DataType::Timestamp(_, None) | DataType::Date32 | DataType::Date64,
        ) => Some(local_times(value.clone(), or_missing)),
        (_, DataType::Timestamp(..) | DataType::Date32 | DataType::Date64) => full_text(value, schema),
        _ => None,
    }
}

fn is_text(dtype: &DataType) -> bool {
    matches!(dtype, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// The texts of a dictionary, which functions of the library refuse; `None` for other values.
fn of_dictionary(value: &Expr, schema: &DFSchema) -> Option<Expr> {
    match value.get_type(schema).ok()? {
        DataType::Dictionary(_, texts) if is_text(&texts) => Some(cast(value.clone(), *texts)),
        _ => None,
    }
}

/// Texts with full times; `None` for texts that have them.
fn full(texts: &Expr) -> Option<Expr> {
    match texts {
        Expr::Literal(..) => full_literal(texts),
        // The plan of a view comes here again.
        Expr::ScalarFunction(call) if call.func.name() == FULL_TIMES => None,
        texts => Some(full_times(texts.clone())),
    }
}

fn full_literal(text: &Expr) -> Option<Expr> {
    let Expr::Literal(value, metadata) = text else { return None };
    let full = match value {
        ScalarValue::Utf8(Some(text)) => ScalarValue::Utf8(Some(full_time(text)?)),
        ScalarValue::LargeUtf8(Some(text)) => ScalarValue::LargeUtf8(Some(full_time(text)?)),
        ScalarValue::Utf8View(Some(text)) => ScalarValue::Utf8View(Some(full_time(text)?)),
        _ => return None,
    };
    Some(Expr::Literal(full, metadata.clone()))
}

/// Whether an operator takes a text beside a time for another time.
pub(super) fn is_of_times(operator: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, Minus, NotEq};
    matches!(operator, Eq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom | Lt | LtEq | Minus | NotEq)
}

/// An expression of these values with full times in the texts of it, if one of the values is a time.
fn beside_times(values: &[&Expr], whole: &Expr, schema: &DFSchema) -> Option<Expr> {
    let is_time = |value: &&Expr| matches!(value.get_type(schema), Ok(DataType::Timestamp(..)));
    if !values.iter().any(is_time) || !values.iter().any(|value| full_text(value, schema).is_some()) {
        return None;
    }
    let make_full = |value: &mut Expr| {
        if let Some(full) = full_text(value, schema) {
            *value = full;
        }
    };
    let mut whole = whole.clone();
    match &mut whole {
        Expr::BinaryExpr(BinaryExpr { left, right, .. }) => {
            make_full(left);
            make_full(right);
        }
        Expr::Between(between) => {
            make_full(&mut between.expr);
            make_full(&mut between.low);
            make_full(&mut between.high);
        }
        Expr::Case(case) => {
            case.expr.iter_mut().for_each(|value| make_full(value));
            case.when_then_expr.iter_mut().for_each(|(when, _)| make_full(when));
        }
        Expr::InList(among) => {
            make_full(&mut among.expr);
            among.list.iter_mut().for_each(make_full);
        }
        Expr::ScalarFunction(call) => call.args.iter_mut().for_each(make_full),
        _ => return None,
    }
    Some(whole)
}

/// A text with full times; `None` for one that has them, and for other values.
fn full_text(value: &Expr, schema: &DFSchema) -> Option<Expr> {
    if let Some(texts) = of_dictionary(value, schema) {
        return full(&texts);
    }
    if value.get_type(schema).is_ok_and(|dtype| is_text(&dtype)) { full(value) } else { None }
}

/// A part of a time in a text, or the begin of one: its second argument is the time.
fn of_part(call: &ScalarFunction, schema: &DFSchema) -> Option<Expr> {
    let [part, time] = call.args.as_slice() else { return None };
    full_text(time, schema).map(|time| call.func.call(vec![part.clone(), time]))
}

fn is_timestamp(call: &ScalarFunction) -> bool {
    let name = call.func.name();
    name.starts_with("to_timestamp") || name == "to_unixtime"
}

/// A call that makes moments of texts; `None` for one that is right as it is.
fn timestamp(call: &ScalarFunction, schema: &DFSchema) -> EngineResult<Option<Expr>> {
    let texts: Vec<Option<Expr>> = call.args.iter().map(|arg| of_dictionary(arg, schema)).collect();
    if texts.iter().any(Option::is_some) {
        let args = texts.into_iter().zip(&call.args).map(|(texts, arg)| texts.unwrap_or_else(|| arg.clone()));
        let plain = ScalarFunction::new_udf(Arc::clone(&call.func), args.collect());
        let meant = timestamp(&plain, schema)?;
        return Ok(Some(meant.unwrap_or(Expr::ScalarFunction(plain))));
    }
    let [text, formats @ ..] = call.args.as_slice() else { return Ok(None) };
    if !text.get_type(schema).is_ok_and(|dtype| is_text(&dtype)) {
        return Ok(None);
    }
    if formats.is_empty() {
        return Ok(full(text).map(|text| call.func.call(vec![text])));
    }
    for format in formats {
        if !format.get_type(schema).is_ok_and(|dtype| is_text(&dtype)) || is_full(format) {
            return Ok(None);
        }
        if let Some(format) = literal(format) {
            Parts::checked(format)?;
        }
    }
    let is_right = |format: &Expr| literal(format).is_some_and(|format| !Parts::of(format).lacks_minutes());
    if formats.iter().all(is_right) {
        return Ok(None);
    }
    // Minutes stand before them all: the library wants a zone at the end.
    let both = BinaryExpr::new(Box::new(lit("00 ")), Operator::StringConcat, Box::new(text.clone()));
    let formats = formats.iter().map(|format| match literal(format) {
        Some(format) => lit(behind_minutes(format)),
        None => full_formats(format.clone()),
    });
    Ok(Some(call.func.call(std::iter::once(Expr::BinaryExpr(both)).chain(formats).collect())))
}

/// Whether a format is behind minutes: the plan of a view comes here again.
fn is_full(format: &Expr) -> bool {
    matches!(format, Expr::ScalarFunction(call) if call.func.name() == FULL_FORMATS)
}

fn literal(format: &Expr) -> Option<&str> {
    match format {
        Expr::Literal(value, _) => value.try_as_str().flatten(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::SqlSession;

    #[track_caller]
    fn assert_value(session: &mut SqlSession, value: &str, expected: &str) {
        let rows = session.run(&format!("select {value} from t"));
        assert_eq!(rows.unwrap_or_else(|error| panic!("{value}: {error}")), [[expected]], "{value}");
    }

    #[test]
    fn times_need_no_seconds() {
        let mut session = SqlSession::default();
        let made = "create table t as select timestamp '2024-03-30 06:00:00' as n, '2024-03-30 6:05' as s";
        session.run(made).expect("a table");
        for (value, expected) in [
            ("timestamp '2024-01-02 10:30'", "2024-01-02 10:30:00"),
            ("'2024-03-30 6:00:00'::timestamp", "2024-03-30 06:00:00"),
            ("cast('2024-03-30T6:00' as timestamp)", "2024-03-30 06:00:00"),
            ("try_cast('2024-03-30 25:00' as timestamp)", "NULL"),
            ("cast('2024-03-30 6:00' as date)", "2024-03-30"),
            ("extract(hour from timestamptz '2024-03-30 6:00+02')", "4"),
            ("s::timestamp", "2024-03-30 06:05:00"),
            ("to_timestamp(s)", "2024-03-30 06:05:00"),
            ("n = '2024-03-30 6:00'", "true"),
            ("'2024-03-30 5:59' < n", "true"),
            ("n between '2024-03-30 5:00' and '2024-03-30 6:00'", "true"),
            ("n in ('2024-03-30 7:00', '2024-03-30 6:00')", "true"),
            ("n is distinct from '2024-03-30 6:00'", "false"),
            ("n::text || ' 6:00'", "2024-03-30T06:00:00 6:00"),
            ("cast(s as date)", "2024-03-30"),
            ("try_cast('x' || s as date)", "NULL"),
            ("n < s", "true"),
            ("n between s and s", "false"),
            ("s in (n, n + interval '5 minutes')", "true"),
            ("case n when '2024-03-30 6:00' then 1 else 2 end", "1"),
            ("case s when n then 1 else 2 end", "2"),
            ("nullif(n, '2024-03-30 6:00')", "NULL"),
            ("date_trunc('hour', '2024-03-30 6:05')", "2024-03-30 06:00:00"),
            ("extract(minute from s::timestamp)", "5"),
            ("arrow_cast(s, 'Dictionary(Int32, Utf8)')::timestamp", "2024-03-30 06:05:00"),
            ("n < arrow_cast(s, 'Dictionary(Int32, Utf8)')", "true"),
            ("to_timestamp(arrow_cast(s, 'Dictionary(Int32, Utf8)'))", "2024-03-30 06:05:00"),
        ] {
            assert_value(&mut session, value, expected);
        }
        session.run("create view v as select s::timestamp as n from t").expect("a view");
        session.run("create view w as select n from v where n > '2024-03-30 6:04'").expect("a view");
        assert_eq!(session.run("select n from w").expect("a row"), [["2024-03-30 06:05:00"]]);
        session.run("insert into t values ('2024-03-31 7:00', 'x')").expect("a row");
        session.run("update t set n = '2024-03-31 8:00' where n > '2024-03-31 6:00'").expect("a row");
        assert_eq!(session.run("select max(n) from t").expect("a row"), [["2024-03-31 08:00:00"]]);
        session.run("select timestamp '2024-03-30 25:00'").expect_err("no such hour");
    }

    #[test]
    fn moments_are_read_on_the_clock_of_their_zone() {
        let mut session = SqlSession::default();
        let berlin = "arrow_cast('2024-03-30T23:30:00Z', 'Timestamp(Microsecond, Some(\"Europe/Berlin\"))')";
        session.run(&format!("create table t as select {berlin} as ts")).expect("a table");
        for (value, expected) in [
            ("ts::date", "2024-03-31"),
            ("ts::timestamp::date", "2024-03-31"),
            ("try_cast(ts as timestamp)::date", "2024-03-31"),
            ("ts::time", "00:30:00"),
            ("ts::timestamp::time", "00:30:00"),
            ("ts::timestamp", "2024-03-31 00:30:00"),
            ("extract(hour from ts)", "0"),
            ("extract(hour from ts::timestamp)", "0"),
            ("ts::timestamp = timestamp '2024-03-31 00:30:00'", "true"),
        ] {
            assert_value(&mut session, value, expected);
        }
    }

    #[test]
    fn moments_without_a_local_time_are_errors_or_missing() {
        let mut session = SqlSession::default();
        let moment = "arrow_cast(n, 'Timestamp(Microsecond, Some(\"Asia/Tokyo\"))')";
        for last in [1 - i64::MAX, i64::MAX, 8_210_266_876_799_999_999] {
            session.run(&format!("create or replace table m as select {last} as n")).expect("a table");
            session
                .run(&format!("create or replace table t as select {moment} as ts from m"))
                .expect("a table");
            for kind in ["timestamp", "date"] {
                assert_value(&mut session, &format!("try_cast(ts as {kind}) is null"), "true");
                let error = session.run(&format!("select ts::{kind} from t")).expect_err("no such time");
                assert_eq!(error.class(), "ValueError", "{kind}: {error}");
            }
        }
    }

    #[test]
    fn formats_lose_no_part_of_a_time() {
        let mut session = SqlSession::default();
        session.run("create table t as select '01/02/2024 10' as s, '01/02/24 10 PM' as p").expect("a table");
        for (value, expected) in [
            ("to_timestamp('01/02/2024 10', '%d/%m/%Y %H')", "2024-02-01 10:00:00"),
            ("to_timestamp(s, '%d/%m/%Y %H')", "2024-02-01 10:00:00"),
            ("to_timestamp(p, '%d/%m/%y %I %p')", "2024-02-01 22:00:00"),
            ("to_timestamp(s, '%Y', '%d/%m/%Y %-H')", "2024-02-01 10:00:00"),
            ("to_timestamp(s || ':30', '%d/%m/%Y %H', '%d/%m/%Y %H:%M')", "2024-02-01 10:30:00"),
            ("to_timestamp(s || ':30', '%d/%m/%Y %R')", "2024-02-01 10:30:00"),
            ("to_timestamp(nullif(s, s), '%d/%m/%Y %H')", "NULL"),
            ("to_timestamp('01/02/2024', '%d/%m/%Y')", "2024-02-01 00:00:00"),
            ("to_unixtime('01/01/1970 01', '%d/%m/%Y %H')", "3600"),
            ("to_timestamp(arrow_cast(s, 'Dictionary(Int32, Utf8)'), '%d/%m/%Y %H')", "2024-02-01 10:00:00"),
            ("to_timestamp(s, arrow_cast('%d/%m/%Y %H', 'Dictionary(Int32, Utf8)'))", "2024-02-01 10:00:00"),
        ] {
            assert_value(&mut session, value, expected);
        }
        for format in ["%d/%m/%Y %I", "%d/%m/%Y %M", "%d/%m/%Y %p", "%d/%m/%Y %H %S", "%d/%m/%Y %H:%M.%f"] {
            let error = session.run(&format!("select to_timestamp(s, '{format}') from t"));
            let error = error.expect_err("a part that would be left out");
            assert_eq!(error.class(), "ValueError", "{error}");
            assert!(error.to_string().contains("the format"), "{error}");
        }
    }

    #[test]
    fn formats_that_are_no_literals_lose_no_part_of_a_time() {
        let mut session = SqlSession::default();
        let made = "create table t as select * from (values ('01/02/2024 10', '%d/%m/%Y %H'), \
                    ('02/02/2024 11:30', '%d/%m/%Y %R'), ('x', null)) as v(s, f)";
        session.run(made).expect("a table");
        let rows = session.run("select to_timestamp(s, f) from t order by s").expect("rows");
        assert_eq!(rows, [["2024-02-01 10:00:00"], ["2024-02-02 11:30:00"], ["NULL"]]);
        session.run("create view v as select to_timestamp(s, f) as n from t").expect("a view");
        let rows = session.run("select n from v order by n").expect("rows");
        assert_eq!(rows, [["2024-02-01 10:00:00"], ["2024-02-02 11:30:00"], ["NULL"]]);
        for call in [
            "to_timestamp(s, '%d/%m/%Y' || ' %H')",
            "to_timestamp('01/02/2024 10', '%d/%m/%Y' || ' %H')",
            "to_timestamp(s, '%Y', case when s > 'x' then '%Y' else '%d/%m/%Y %H' end)",
        ] {
            let rows = session.run(&format!("select {call} from t where s = '01/02/2024 10'"));
            assert_eq!(
                rows.unwrap_or_else(|error| panic!("{call}: {error}")),
                [["2024-02-01 10:00:00"]],
                "{call}"
            );
        }
        session.run("prepare p(text) as select to_timestamp('01/02/2024 10', $1)").expect("a statement");
        let rows = session.run("execute p('%d/%m/%Y %H')").expect("a row");
        assert_eq!(rows, [["2024-02-01 10:00:00"]]);
        let error = session.run("select to_timestamp(s, '%d/%m/%Y' || ' %I') from t").expect_err("no half");
        assert_eq!(error.class(), "ValueError", "{error}");
        assert!(error.to_string().contains("has an hour from 1 to 12, %I, without %p"), "{error}");
    }
}
