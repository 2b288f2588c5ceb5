//! Values of parameters that do not fit the types of their statement.
//!
//! PREPARE gives a parameter without a type that of what it is compared with, and EXECUTE casts its value: of
//! `n >= $1` the library made `n >= 2` for 2.5, which is true for other rows, and `n + $1` of a recursive
//! part stayed `n` for 0.5. So it does in VALUES, with the type of the other values. Such values are refused.
//! Parameters that INSERT and UPDATE put into columns are cast to their types, as all values there are. Whole
//! numbers are never times, which the library would take them for.

use super::float_decimals::decimal;
use super::moment_types::{is_day, is_time};
use super::type_names::type_name;
use crate::error::{Error, Result};
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan, Prepare, Statement};
use datafusion::optimizer::simplify_expressions::{ExprSimplifier, SimplifyContext};
use std::collections::{BTreeSet, HashMap};

/// The parameters of prepared statements, by the names of these.
#[derive(Default)]
pub(in crate::sql) struct Parameters(HashMap<String, Vec<Parameter>>);

/// A parameter that has a type.
pub(in crate::sql) struct Parameter {
    at: usize,
    dtype: DataType,
    /// Whether it is a value of a column of a table alone, which is cast as all of them are.
    is_stored: bool,
}

/// A statement that is prepared, with its parameters, or forgotten.
pub(in crate::sql) type Noted = (String, Option<Vec<Parameter>>);

impl Parameters {
    /// The types of parameters to note or to forget when this statement has run.
    ///
    /// # Errors
    /// `ValueError` for one that executes another one with values that do not fit.
    pub(in crate::sql) fn checked(&self, plan: &LogicalPlan) -> Result<Option<Noted>> {
        let LogicalPlan::Statement(statement) = plan else { return Ok(None) };
        Ok(match statement {
            Statement::Execute(execute) => {
                for parameter in self.0.get(&execute.name).into_iter().flatten() {
                    if let Some(value) = execute.parameters.get(parameter.at) {
                        check(value, parameter, &execute.name)?;
                    }
                }
                None
            }
            Statement::Prepare(prepare) => Some((prepare.name.clone(), Some(parameters_of(prepare)?))),
            Statement::Deallocate(deallocate) => Some((deallocate.name.clone(), None)),
            _ => None,
        })
    }

    /// Notes what a statement has changed.
    pub(in crate::sql) fn note(&mut self, noted: Option<Noted>) {
        match noted {
            Some((name, Some(types))) => {
                self.0.insert(name, types);
            }
            Some((name, None)) => {
                self.0.remove(&name);
            }
            None => {}
        }
    }
}

/// The parameters of a statement, and the types that their values are cast to.
fn parameters_of(prepare: &Prepare) -> Result<Vec<Parameter>> {
    let is_of_table = matches!(&*prepare.input, LogicalPlan::Dml(_));
    let (mut asked, mut in_rows) = (BTreeSet::new(), Vec::new());
    prepare.input.apply_with_subqueries(|node| {
        if let LogicalPlan::Values(rows) = node {
            in_rows.extend(rows.values.iter().flatten().filter_map(cast_in_rows));
        }
        node.apply_expressions(|expr| {
            if !is_parameter(expr) {
                expr.apply(|part| {
                    if let Expr::Placeholder(parameter) = part {
                        asked.extend(place(&parameter.id));
                    }
                    Ok(TreeNodeRecursion::Continue)
                })?;
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    let fields = prepare.fields.iter().enumerate().map(|(at, field)| {
        let is_stored = is_of_table && !asked.contains(&at);
        Parameter { at, dtype: field.data_type().clone(), is_stored }
    });
    Ok(fields.chain(in_rows).collect())
}

/// Whether a value is a parameter as it is, or with a cast.
fn is_parameter(mut value: &Expr) -> bool {
    loop {
        value = match value {
            Expr::Alias(alias) => &alias.expr,
            Expr::Cast(cast) => &cast.expr,
            value => return matches!(value, Expr::Placeholder(_)),
        };
    }
}

/// The place of a parameter among all.
fn place(parameter: &str) -> Option<usize> {
    let number: usize = parameter.strip_prefix('$')?.parse().ok()?;
    number.checked_sub(1)
}

/// A parameter without a type in VALUES, which has the type of the others.
fn cast_in_rows(value: &Expr) -> Option<Parameter> {
    let Expr::Cast(cast) = value else { return None };
    match &*cast.expr {
        Expr::Placeholder(parameter) if parameter.field.is_none() => {
            let (at, dtype) = (place(&parameter.id)?, cast.field.data_type().clone());
            Some(Parameter { at, dtype, is_stored: false })
        }
        _ => None,
    }
}

fn check(value: &Expr, parameter: &Parameter, statement: &str) -> Result<()> {
    let Parameter { at, dtype, is_stored } = parameter;
    let refused =
        |value: &ScalarValue| Err(other_value(value, dtype, &format!("${} of {statement}", at + 1)));
    // EXECUTE takes literals, and what is one when it is simplified.
    let simplifier = ExprSimplifier::new(SimplifyContext::default());
    let Ok(Expr::Literal(number, metadata)) = simplifier.simplify(value.clone()) else { return Ok(()) };
    let own = number.data_type();
    if is_time(dtype) && own.is_integer() && !number.is_null() {
        return refused(&number);
    }
    let has_time = is_day(dtype) && matches!(own, DataType::Timestamp(..));
    let may_be_cut =
        has_time || (own.is_floating() || own.is_decimal()) && (dtype.is_integer() || dtype.is_decimal());
    let may_be_cut = may_be_cut && !is_stored;
    // One that has no room is an error of the cast.
    let Some(cast) = number.cast_to(dtype).ok().filter(|_| may_be_cut && !number.is_null()) else {
        return Ok(());
    };
    // The cast of a float multiplies it, and may give a neighbour of the decimal that is written.
    let literal = Expr::Literal(number.clone(), metadata);
    let written = decimal(&literal).filter(|_| dtype.is_decimal()).unwrap_or_else(|| number.clone());
    let is_written =
        |cast: &ScalarValue| cast.cast_to(&written.data_type()).is_ok_and(|back| back == written);
    if written.cast_to(dtype).is_ok_and(|meant| meant == cast) && is_written(&cast) {
        return Ok(());
    }
    refused(&number)
}

/// The error of a value that is none of the type of its parameter.
fn other_value(value: &ScalarValue, dtype: &DataType, parameter: &str) -> Error {
    // Times are shown as numbers otherwise.
    let value = value.cast_to(&DataType::Utf8).unwrap_or_else(|_| value.clone());
    Error::Value(format!(
        "{parameter} is a {}, and {value} is none: write another value, or declare another type, as in \
         prepare p(double)",
        type_name(dtype)
    ))
}

#[cfg(test)]
mod tests {
    use crate::sql::small_tables::{cells, rows_in, session_of};

    #[test]
    fn values_that_do_not_fit_their_parameters_are_refused() {
        let mut session = session_of(&[
            "create table t (n bigint, d decimal(12, 3)) as values (2, 0.125), (3, 123456.789)",
            "prepare least as select count(*) from t where n >= $1",
            "prepare rounds as with recursive r as (select 1 as n union all select n + $1 from r where n < 3)
             select count(*) from r",
            "prepare equal as select count(*) from t where d = $1",
            "prepare declared(double) as select count(*) from t where n >= $1 and d < $1",
            "prepare whole(int) as select count(*) from t where n >= $1",
            "prepare added as insert into t values ($1, $2)",
            "prepare changed as update t set d = $1 where n = $2",
            "prepare gone as delete from t where n >= $1",
            "prepare listed as select count(*) from (values (1), ($1)) v (x) where x = 2",
            "create table days (d date) as values (date '2024-01-02')",
            "prepare since as select count(*) from days where d >= $1",
            "prepare day as insert into days values ($1)",
        ]);
        for (execute, told) in [
            ("least(2.5)", "$1 of least is a BIGINT, and 2.5 is none"),
            ("rounds(0.5)", "$1 of rounds is a BIGINT"),
            ("equal(0.1254)", "$1 of equal is a DECIMAL(12,3)"),
            ("listed(2.5)", "$1 of listed is a BIGINT"),
            ("least(1.0 + 1.5)", "$1 of least is a BIGINT, and 2.5 is none"),
            ("whole(2.5)", "$1 of whole is a INTEGER"),
            ("changed(0.1254, 2.5)", "$2 of changed is a BIGINT"),
            ("gone(2.5)", "$1 of gone is a BIGINT"),
            ("since(2024)", "$1 of since is a DATE, and 2024 is none"),
            ("day(20240102)", "$1 of day is a DATE, and 20240102 is none"),
            (
                "since(timestamp '2024-01-02 10:00:00')",
                "$1 of since is a DATE, and 2024-01-02T10:00:00 is none",
            ),
        ] {
            let error = session.run(&format!("execute {execute}")).expect_err(execute);
            assert_eq!(error.class(), "ValueError", "{execute}: {error}");
            assert!(error.to_string().contains(told), "{execute}: {error}");
        }
        for (execute, expected) in [
            ("least(3.0)", "1"),
            ("least(2)", "2"),
            ("rounds(2)", "2"),
            ("equal(123456.789)", "1"),
            ("listed(2)", "1"),
            ("least(round(2.5))", "1"),
            ("whole(2.5::int)", "2"),
            ("since(date '2024-01-02')", "1"),
            ("since('2024-01-03')", "0"),
            ("since(timestamp '2024-01-02 00:00:00')", "1"),
        ] {
            assert_eq!(rows_in(&mut session, &format!("execute {execute}")), [expected], "{execute}");
        }
        assert_eq!(rows_in(&mut session, "execute declared(1.5)"), ["1"]);
        cells(&mut session, "execute added(7, 0.1254)");
        assert_eq!(rows_in(&mut session, "select d from t where n = 7"), ["0.125"]);
        cells(&mut session, "execute changed(0.5014, 2)");
        assert_eq!(rows_in(&mut session, "select d from t where n = 2"), ["0.501"]);
        cells(&mut session, "execute day(timestamp '2024-01-05 10:00:00')");
        assert_eq!(rows_in(&mut session, "execute since('2024-01-05')"), ["1"]);
        cells(&mut session, "deallocate least");
        cells(&mut session, "prepare least(double) as select count(*) from t where n >= $1");
        assert_eq!(rows_in(&mut session, "execute least(2.5)"), ["2"]);
    }
}
