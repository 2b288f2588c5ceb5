//! Parameters without a type as sides of unions.
//!
//! PREPARE gives such a side the type of the other sides before it has a value, which would cut 2.5 to 2
//! beside a whole number.

use crate::error::{Error, Result};
use crate::value::is_text;
use arrow::datatypes::DataType;
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan};
use std::sync::Arc;

/// Refuses parameters without a type beside sides of types that might cut their values.
pub(in crate::sql) fn check_parameters(
    inputs: &[Arc<LogicalPlan>],
    types: &[Vec<Option<DataType>>],
) -> Result<()> {
    for (at, (side, own)) in inputs.iter().zip(types).enumerate() {
        // Columns that have a type are not looked for in all sides of a side.
        for (column, _) in own.iter().enumerate().filter(|(_, dtype)| dtype.is_none()) {
            let others = types.iter().enumerate().filter(|(other, _)| *other != at);
            let known = others.filter_map(|(_, types)| types.get(column)?.as_ref());
            let known: Vec<&DataType> = known.filter(|dtype| !dtype.is_null()).collect();
            // Those of all sides are cast to the type of the first one.
            let is_kept = at != 0 && !known.is_empty() && !known.into_iter().any(may_cut);
            if let Some(name) = parameter(side, column).filter(|_| !is_kept) {
                return Err(Error::Type(format!(
                    "the type of {name} in a side of UNION is not known: declare it, as in prepare p(double), \
                     or write a cast such as {name}::double"
                )));
            }
        }
    }
    Ok(())
}

/// Whether values of other types may lose something in this one. All have a text, and numbers beside floats
/// are floats in any case.
fn may_cut(dtype: &DataType) -> bool {
    !is_text(dtype) && *dtype != DataType::Float64
}

/// The name of the parameter without a type that a column is.
pub(super) fn parameter(mut rows: &LogicalPlan, mut at: usize) -> Option<&str> {
    loop {
        rows = match rows {
            LogicalPlan::Projection(made) => {
                let mut value = made.expr.get(at)?;
                while let Expr::Alias(alias) = value {
                    value = &alias.expr;
                }
                match value {
                    Expr::Column(column) => at = made.input.schema().maybe_index_of_column(column)?,
                    Expr::Placeholder(parameter) => {
                        let dtype = parameter.field.as_ref().map(|field| field.data_type());
                        return dtype.is_none_or(|dtype| dtype.is_null()).then_some(parameter.id.as_str());
                    }
                    _ => return None,
                }
                &made.input
            }
            LogicalPlan::Distinct(Distinct::All(rows)) => rows,
            LogicalPlan::Filter(filter) => &filter.input,
            LogicalPlan::Limit(limit) => &limit.input,
            LogicalPlan::Sort(sort) => &sort.input,
            LogicalPlan::SubqueryAlias(alias) => &alias.input,
            LogicalPlan::Union(union) => return union.inputs.iter().find_map(|side| parameter(side, at)),
            _ => return None,
        };
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::small_tables::{rows_in, session_of};

    #[test]
    fn parameters_without_a_type_are_no_sides() {
        let mut session = session_of(&[]);
        for query in [
            "select x from (select 1 as x union all select $1) s",
            "select 1 as x union all select $1",
            "select $1 as x union select 1",
            "select $1 as x union all select 'a'",
            "select 1 as x union all select distinct $1",
            "select 1 as x union all select y from (select $1 as y) s",
            "select null as x union all select $1",
            "select $1 as x union all select $2",
        ] {
            let error = session.run(&format!("prepare p as {query}")).expect_err(query);
            assert_eq!(error.class(), "TypeError", "{query}: {error}");
            assert!(error.to_string().contains("the type of $1 in a side of UNION is not known"), "{error}");
        }
        for (name, query, execute, expected) in [
            ("a(double)", "select sum(x) from (select 1 as x union all select $1) s", "a(2.5)", "3.5"),
            ("b", "select sum(x) from (select 1 as x union all select $1::double) s", "b(2.5)", "3.5"),
            ("c", "select sum(x) from (select 1 as x union all select 2 where 2 < $1) s", "c(5)", "3"),
            ("d", "select max(x) from (select 'a' as x union all select $1) s", "d('b')", "b"),
            ("e", "select sum(x) from (select 0.5 as x union all select $1) s", "e(2)", "2.5"),
        ] {
            session.run(&format!("prepare {name} as {query}")).expect(query);
            assert_eq!(rows_in(&mut session, &format!("execute {execute}")), [expected], "{query}");
        }
    }
}
