//! Types of the values of INSERT and UPDATE.
//!
//! The library casts a value to the type of its column if it has another one when it is planned. Behind that,
//! rules give values other types: a union has those of all its sides, a decimal beside a float is a float,
//! and a day beside a moment is one. The table had rows of another type than its columns then, and no later
//! statement could read them. So each value is cast before these rules, also where its type is that of its
//! column.
//!
//! A whole number is no time of a table, as in other databases: the library's cast takes it for days, or
//! nanoseconds, since 1970, and `20240102` would be a day of the year 57386.

use super::moment_types::is_time;
use super::type_names::type_name;
use crate::error::{Error, Result};
use crate::sql::plans::{columns, projection};
use arrow::datatypes::Field;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result as EngineResult};
use datafusion::logical_expr::{
    DdlStatement, DmlStatement, Expr, ExprSchemable, LogicalPlan, Projection, WriteOp, cast,
};
use std::sync::Arc;

/// The plan whose values for a table have the types of its columns, whatever rules make of them.
pub(in crate::sql) fn with_casts(plan: LogicalPlan) -> EngineResult<LogicalPlan> {
    Ok(match plan {
        LogicalPlan::Dml(made) => LogicalPlan::Dml(of_table(made)?),
        LogicalPlan::Analyze(_) | LogicalPlan::Explain(_) | LogicalPlan::Statement(_) => {
            plan.map_children(|inner| with_casts(inner).map(Transformed::yes))?.data
        }
        LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(made)) => {
            if has_declared_columns(&made.input) {
                check_numbers(&made.input)?;
            }
            LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(made))
        }
        plan => plan,
    })
}

/// Whether the rows of a new table are cast to the types of declared columns, which the library does above
/// their query for each column, whatever type it has.
fn has_declared_columns(rows: &LogicalPlan) -> bool {
    let LogicalPlan::Projection(made) = rows else { return false };
    let is_cast = |value: &Expr| match value {
        Expr::Alias(alias) => {
            matches!(&*alias.expr, Expr::Cast(cast) if matches!(&*cast.expr, Expr::Column(_)))
        }
        _ => false,
    };
    matches!(&*made.input, LogicalPlan::Projection(_) | LogicalPlan::Values(_))
        && made.expr.iter().all(is_cast)
}

fn of_table(mut made: DmlStatement) -> EngineResult<DmlStatement> {
    let is_update = match &made.op {
        WriteOp::Insert(_) => false,
        WriteOp::Update => true,
        _ => return Ok(made),
    };
    check_numbers(&made.input)?;
    let table = made.target.schema();
    made.input = match Arc::unwrap_or_clone(made.input) {
        LogicalPlan::Projection(Projection { expr, input, .. }) => {
            let values = expr.into_iter().zip(table.fields());
            let values = values.map(|(value, field)| of_column(value.unalias(), field, is_update));
            projection(values.collect(), input)?
        }
        rows if is_update => Arc::new(rows),
        rows => {
            let values = columns(&rows).into_iter().zip(table.fields());
            let values = values.map(|(value, field)| of_column(value, field, is_update));
            projection(values.collect(), Arc::new(rows))?
        }
    };
    Ok(made)
}

/// Refuses whole numbers that the library has cast to times: as values of the table, and of VALUES below.
fn check_numbers(rows: &LogicalPlan) -> Result<()> {
    let LogicalPlan::Projection(made) = rows else { return Ok(()) };
    let schema = made.input.schema();
    made.expr.iter().try_for_each(|value| check_number(value, schema))?;
    let LogicalPlan::Values(rows) = &*made.input else { return Ok(()) };
    let no_columns = DFSchema::empty();
    rows.values.iter().flatten().try_for_each(|value| check_number(value, &no_columns))
}

fn check_number(mut value: &Expr, schema: &DFSchema) -> Result<()> {
    while let Expr::Alias(alias) = value {
        value = &alias.expr;
    }
    let Expr::Cast(cast) = value else { return Ok(()) };
    let (own, dtype) = (cast.expr.get_type(schema), cast.field.data_type());
    match own {
        Ok(own) if is_time(dtype) && own.is_integer() => Err(Error::Type(format!(
            "a {} for a {} of the table: write one, such as '2024-12-31'",
            type_name(&own),
            type_name(dtype)
        ))),
        _ => Ok(()),
    }
}

/// The value of a column with its type. A column that an update leaves as it is has it.
fn of_column(value: Expr, field: &Field, is_update: bool) -> Expr {
    let is_cast = match &value {
        Expr::Cast(cast) => cast.field.data_type() == field.data_type(),
        Expr::Column(_) => is_update,
        _ => false,
    };
    let value = if is_cast { value } else { cast(value, field.data_type().clone()) };
    value.alias(field.name())
}

#[cfg(test)]
mod tests {
    use crate::sql::small_tables::{cells, rows_in, session_of};

    #[test]
    fn values_that_rules_give_other_types_are_of_the_table() {
        let mut session =
            session_of(&["create table t (d decimal(38, 18), f double) as values (1.5, null), (2.5, 0.25)"]);
        for statement in ["update t set d = coalesce(f, d)", "insert into t select coalesce(f, d), f from t"]
        {
            cells(&mut session, statement);
            let query = "select min(arrow_typeof(d)), sum(distinct d) = 1.75, count(distinct d) from t";
            assert_eq!(rows_in(&mut session, query), ["Decimal128(38, 18) true 2"], "{statement}");
        }
        for statement in [
            "set timezone = 'Europe/Berlin'",
            "create table m (n timestamp, ts timestamptz, d date)",
            "insert into m values (null, null, '2024-07-01')",
            "update m set n = coalesce(ts, d)",
            "insert into m select coalesce(ts, d), ts, d from m",
        ] {
            cells(&mut session, statement);
        }
        let query = "select count(*) from m where n = timestamp '2024-07-01 00:00:00'";
        assert_eq!(rows_in(&mut session, query), ["2"]);
    }

    #[test]
    fn whole_numbers_are_no_times_of_a_table() {
        let mut session = session_of(&["create table t (n int, d date, ts timestamp)"]);
        cells(&mut session, "insert into t values (1, '2024-01-02', null)");
        for statement in [
            "insert into t values (2, 20240102, null)",
            "insert into t values (2, null, 1704153600)",
            "insert into t (n, d) select n, n from t",
            "insert into t (ts) select n + 1 from t",
            "update t set d = n",
            "update t set ts = 5",
            "prepare p as insert into t (d) values (20240102)",
            "create table c (n int, d date) as values (1, 20240102)",
            "create table c (d date) as select n from t",
        ] {
            let error = session.run(statement).expect_err(statement);
            assert_eq!(error.class(), "TypeError", "{statement}: {error}");
            assert!(error.to_string().contains(" of the table"), "{statement}: {error}");
        }
        cells(&mut session, "create table c as select n::date as d from t");
        cells(&mut session, "update t set ts = d");
        cells(&mut session, "insert into t (d) select (d - date '1970-01-01')::date from t");
        let query = "select count(*) from t where d = '2024-01-02' and ts = timestamp '2024-01-02 00:00:00'";
        assert_eq!(rows_in(&mut session, query), ["1"]);
    }
}
