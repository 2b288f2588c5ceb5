//! Rows of `VALUES`.
//!
//! The library refuses texts beside times, intervals and truth values in a column of VALUES, which it takes
//! beside them in a UNION. A literal there stands for a value of the type that the others are written with,
//! as in PostgreSQL and DuckDB. Rows of a table have the types of its columns: the library casts each value
//! of theirs by itself.

use super::value_numbers::write_numbers;
use datafusion::logical_expr::sqlparser::ast::{
    CastKind, DataType, Expr, Query, SetExpr, Statement, TimezoneInfo, TypedString, Value, Values, VisitMut,
    VisitorMut,
};
use std::ops::ControlFlow;

/// Writes the literals beside such values as casts to their type, wherever a statement has VALUES that are
/// not rows of a table.
pub(in crate::sql) fn write_types(part: &mut impl VisitMut) {
    // It breaks off at statements whose rows have the types of a table.
    let _whole = part.visit(&mut Writer);
}

/// The rows of a statement to which the library gives the types of a table.
pub(in crate::sql) fn rows_of_table(statement: &mut Statement) -> Option<&mut Query> {
    match statement {
        Statement::Insert(insert) => insert.source.as_deref_mut(),
        Statement::CreateTable(table) if !table.columns.is_empty() => table.query.as_deref_mut(),
        _ => None,
    }
}

/// Visits the queries within rows of a table, and not the rows themselves.
pub(in crate::sql) fn within<V: VisitorMut>(rows: &mut Query, visitor: &mut V) -> ControlFlow<V::Break> {
    if let Some(with) = &mut rows.with {
        with.visit(visitor)?;
    }
    within_sides(&mut rows.body, visitor)
}

fn within_sides<V: VisitorMut>(rows: &mut SetExpr, visitor: &mut V) -> ControlFlow<V::Break> {
    match rows {
        SetExpr::SetOperation { left, right, .. } => {
            within_sides(left, visitor)?;
            within_sides(right, visitor)
        }
        SetExpr::Query(rows) => within(rows, visitor),
        rows => rows.visit(visitor),
    }
}

struct Writer;

impl VisitorMut for Writer {
    type Break = ();

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<()> {
        let Some(rows) = rows_of_table(statement) else { return ControlFlow::Continue(()) };
        within(rows, self)?;
        ControlFlow::Break(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let mut sides = vec![&mut *query.body];
        while let Some(side) = sides.pop() {
            match side {
                SetExpr::Values(values) => write(values),
                SetExpr::SetOperation { left, right, .. } => sides.extend([&mut **left, &mut **right]),
                _ => {}
            }
        }
        ControlFlow::Continue(())
    }
}

fn write(values: &mut Values) {
    let width = values.rows.first().map_or(0, |row| row.content.len());
    for column in 0..width {
        let numbers = values.rows.iter_mut().filter_map(|row| row.content.get_mut(column));
        write_numbers(&mut numbers.collect::<Vec<_>>());
        let written = values.rows.iter().filter_map(|row| written_type(row.content.get(column)?));
        // A day beside a time is one, and both are moments beside a moment: the library leaves the zone out.
        let Some(data_type) = written.max_by_key(|dtype| rank(dtype)).map(without_digits) else { continue };
        let is_moment = rank(&data_type) == MOMENTS;
        let others = values.rows.iter_mut().filter_map(|row| row.content.get_mut(column));
        let others = others.filter(|value| is_text(value) || (is_moment && is_reading(value)));
        others.for_each(|value| *value = cast(value, &data_type));
    }
}

/// The type that a value is written with.
fn written_type(value: &Expr) -> Option<&DataType> {
    let dtype = match value {
        Expr::TypedString(TypedString { data_type, .. }) | Expr::Cast { data_type, .. } => data_type,
        Expr::Interval(_) => &INTERVAL,
        Expr::Value(literal) if matches!(literal.value, Value::Boolean(_)) => &DataType::Boolean,
        Expr::Nested(inner) => return written_type(inner),
        _ => return None,
    };
    (0 < rank(dtype)).then_some(dtype)
}

static INTERVAL: DataType = DataType::Interval { fields: None, precision: None };

/// The place of a type among those that texts stand for; 0 for types of other values.
fn rank(dtype: &DataType) -> u8 {
    match dtype {
        DataType::Timestamp(_, TimezoneInfo::Tz | TimezoneInfo::WithTimeZone) => MOMENTS,
        DataType::Timestamp(..) | DataType::Datetime(_) => 2,
        DataType::Boolean | DataType::Date | DataType::Interval { .. } | DataType::Time(..) => 1,
        _ => 0,
    }
}

/// The place of moments among types.
const MOMENTS: u8 = 3;

/// The type with all digits of seconds. Those that one value is cut to are not cut off others.
fn without_digits(dtype: &DataType) -> DataType {
    match dtype {
        DataType::Timestamp(_, zone) => DataType::Timestamp(None, *zone),
        dtype => dtype.clone(),
    }
}

/// Whether a value is a day or a time without a zone.
fn is_reading(value: &Expr) -> bool {
    let is_one = |dtype: &DataType| matches!(dtype, DataType::Date) || rank(dtype) == 2;
    written_type(value).is_some_and(is_one)
}

fn is_text(value: &Expr) -> bool {
    matches!(value, Expr::Value(literal) if matches!(literal.value, Value::SingleQuotedString(_)))
}

fn cast(text: &Expr, data_type: &DataType) -> Expr {
    let (expr, data_type) = (Box::new(text.clone()), data_type.clone());
    Expr::Cast { kind: CastKind::Cast, expr, data_type, array: false, format: None }
}

#[cfg(test)]
mod tests {
    use crate::sql::small_tables::{cells, session_of};

    #[test]
    fn texts_beside_times_are_times() {
        let mut session = session_of(&["create table t (ts timestamp, b boolean)"]);
        for (values, condition) in [
            ("(timestamp '2024-01-02 10:00'), ('2024-01-02 6:00')", "max(x) - min(x) = interval '4 hours'"),
            ("('2024-01-02 6:00'), (timestamp '2024-01-02 10:00')", "max(x) - min(x) = interval '4 hours'"),
            ("(null), ('2024-01-02'), ('2024-01-02 6:00'::timestamp)", "min(x) = timestamp '2024-01-02'"),
            ("(date '2024-01-02'), ('2024-01-03')", "max(x) = date '2024-01-03'"),
            (
                "(date '2024-01-02'), ('2024-01-03 6:00'), (timestamp '2024-01-01')",
                "max(x) = timestamp '2024-01-03 06:00:00'",
            ),
            (
                "(timestamp '2024-01-01'), ('2024-01-03T06:00:00Z'), ('2024-01-02'::timestamptz)",
                "max(x) = timestamptz '2024-01-03 06:00:00'",
            ),
            ("(time '10:00'), ('11:00')", "max(x) = time '11:00'"),
            ("(interval '1 day'), ('2 days')", "max(x) = interval '2 days'"),
            ("(true), ('false')", "not bool_and(x) and bool_or(x)"),
            ("('a'), ('b')", "max(x) = 'b'"),
        ] {
            let query = format!("select {condition} from (values {values}) s (x)");
            assert_eq!(cells(&mut session, &query), [["true"]], "{query}");
        }
        cells(
            &mut session,
            "insert into t values (timestamp '2024-01-02', 'true'), ('2024-01-02 6:00', false)",
        );
        assert_eq!(
            cells(&mut session, "select max(ts)::text, min(b) from t"),
            [["2024-01-02T06:00:00", "false"]]
        );
        let error = session.run("values (date '2024-01-02'), ('tomorrow')").expect_err("a day");
        assert_eq!(error.class(), "ValueError", "{error}");
    }

    #[test]
    fn rows_of_a_table_have_the_types_of_its_columns() {
        let mut session = session_of(&["set timezone = 'Europe/Berlin'"]);
        for (dtype, values, condition) in [
            (
                "timestamp",
                "(date '2024-01-02'), ('2024-01-03 06:00')",
                "min(v) = timestamp '2024-01-02 00:00:00' and max(v) = timestamp '2024-01-03 06:00:00'",
            ),
            (
                "timestamptz",
                "(timestamp '2024-01-02 00:00:00'), ('2024-01-03T06:00:00+02:00')",
                "min(v) = '2024-01-01T23:00:00Z'::timestamptz and max(v) = '2024-01-03T04:00:00Z'::timestamptz",
            ),
            ("text", "(true), ('yes')", "min(v) = 'true' and max(v) = 'yes'"),
            ("text", "(date '2024-01-02'), ('n/a')", "min(v) = '2024-01-02' and max(v) = 'n/a'"),
            ("text", "(timestamp '2024-01-02 10:00:00'), ('2024-01-02 6:00')", "min(v) = '2024-01-02 6:00'"),
        ] {
            cells(&mut session, &format!("create table made (v {dtype}) as values {values}"));
            cells(&mut session, &format!("create table filled (v {dtype})"));
            cells(&mut session, &format!("insert into filled values {values}"));
            for table in ["made", "filled"] {
                let query = format!("select {condition} from {table}");
                assert_eq!(cells(&mut session, &query), [["true"]], "{query} of {dtype}");
                cells(&mut session, &format!("drop table {table}"));
            }
        }
    }

    #[test]
    fn days_and_readings_beside_moments_are_on_their_clock() {
        let mut session = session_of(&["set timezone = 'Europe/Berlin'"]);
        for (values, condition) in [
            (
                "(date '2024-03-31'), (timestamptz '2024-03-31 00:30:00'), (null)",
                "min(x) = '2024-03-30T23:00:00Z'::timestamptz and max(x) - min(x) = interval '30 minutes'",
            ),
            (
                "('2024-03-31'::timestamptz), (timestamp '2024-03-31 02:30:00'), ('2024-03-31 03:00')",
                "max(x) = '2024-03-31T01:00:00Z'::timestamptz and count(distinct x) = 2",
            ),
            ("('2024-01-02 10:00:00'::timestamp(0)), ('2024-01-02 10:00:00.5')", "count(distinct x) = 2"),
        ] {
            let query = format!("select {condition} from (values {values}) s (x)");
            assert_eq!(cells(&mut session, &query), [["true"]], "{query}");
        }
    }
}
