//! Values of parameters that do not fit the types of their statement.
//!
//! PREPARE gives a parameter without a type that of what it is compared with, and EXECUTE casts its value: of
//! `n >= $1` the library made `n >= 2` for 2.5, which is true for other rows, and `n + $1` of a recursive
//! part stayed `n` for 0.5. So it does in VALUES, with the type of the other values. Such values are refused.
//! Parameters that INSERT and UPDATE put into columns are cast to their types, as all values there are.

use super::float_decimals::decimal;
use super::type_names::type_name;
use crate::error::{Error, Result};
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan, Prepare, Statement};
use datafusion::optimizer::simplify_expressions::{ExprSimplifier, SimplifyContext};
use std::collections::{BTreeSet, HashMap};

/// The places and the types of the parameters of prepared statements, by the names of these.
#[derive(Default)]
pub(in crate::sql) struct Parameters(HashMap<String, Vec<(usize, DataType)>>);

/// A statement that is prepared, with its types, or forgotten.
pub(in crate::sql) type Noted = (String, Option<Vec<(usize, DataType)>>);

impl Parameters {
    /// The types of parameters to note or to forget when this statement has run.
    ///
    /// # Errors
    /// `ValueError` for one that executes another one with values that do not fit.
    pub(in crate::sql) fn checked(&self, plan: &LogicalPlan) -> Result<Option<Noted>> {
        let LogicalPlan::Statement(statement) = plan else { return Ok(None) };
        Ok(match statement {
            Statement::Execute(execute) => {
                for (at, dtype) in self.0.get(&execute.name).into_iter().flatten() {
                    if let Some(value) = execute.parameters.get(*at) {
                        check(value, dtype, &format!("${} of {}", at + 1, execute.name))?;
                    }
                }
                None
            }
            Statement::Prepare(prepare) => Some((prepare.name.clone(), Some(types_of(prepare)?))),
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

/// The types that values of parameters are cast to, but for those that are values of columns of a table.
fn types_of(prepare: &Prepare) -> Result<Vec<(usize, DataType)>> {
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
    let fields = prepare.fields.iter().enumerate();
    let fields = fields.filter(|(at, _)| !is_of_table || asked.contains(at));
    Ok(fields.map(|(at, field)| (at, field.data_type().clone())).chain(in_rows).collect())
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

/// The place of a parameter without a type in VALUES, and the type of the others.
fn cast_in_rows(value: &Expr) -> Option<(usize, DataType)> {
    let Expr::Cast(cast) = value else { return None };
    match &*cast.expr {
        Expr::Placeholder(parameter) if parameter.field.is_none() => {
            Some((place(&parameter.id)?, cast.field.data_type().clone()))
        }
        _ => None,
    }
}

fn check(value: &Expr, dtype: &DataType, parameter: &str) -> Result<()> {
    // EXECUTE takes literals, and what is one when it is simplified.
    let simplifier = ExprSimplifier::new(SimplifyContext::default());
    let Ok(Expr::Literal(number, metadata)) = simplifier.simplify(value.clone()) else { return Ok(()) };
    let own = number.data_type();
    let may_be_cut = (own.is_floating() || own.is_decimal()) && (dtype.is_integer() || dtype.is_decimal());
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
    Err(Error::Value(format!(
        "{parameter} is a {}, and {number} is none: write another value, or declare another type, as in \
         prepare p(double)",
        type_name(dtype)
    )))
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
        ] {
            assert_eq!(rows_in(&mut session, &format!("execute {execute}")), [expected], "{execute}");
        }
        assert_eq!(rows_in(&mut session, "execute declared(1.5)"), ["1"]);
        cells(&mut session, "execute added(7, 0.1254)");
        assert_eq!(rows_in(&mut session, "select d from t where n = 7"), ["0.125"]);
        cells(&mut session, "execute changed(0.5014, 2)");
        assert_eq!(rows_in(&mut session, "select d from t where n = 2"), ["0.501"]);
        cells(&mut session, "deallocate least");
        cells(&mut session, "prepare least(double) as select count(*) from t where n >= $1");
        assert_eq!(rows_in(&mut session, "execute least(2.5)"), ["2"]);
    }
}
