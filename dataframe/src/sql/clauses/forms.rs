//! Forms of statements that are written in another way before the rest looks at them.

use super::any_lists::write_lists;
use super::asof_joins;
use super::calls::write_calls;
use super::distinct_from::end_operands;
use super::joins;
use crate::error::{Error, Result};
use crate::sql::depth::flatten;
use crate::sql::names::fields::{normal, write_fields};
use crate::sql::names::labels::write_labels;
use crate::sql::names::namesakes::{Doubles, write_tags};
use crate::sql::names::stars::write_names;
use crate::sql::subqueries::applies::as_laterals;
use crate::sql::values::inner_values::mark_rows;
use crate::sql::values::typed_relations::write_parentheses;
use crate::sql::values::value_rows::write_types;
use datafusion::logical_expr::sqlparser::ast::{
    AssignmentTarget, FromTable, Statement as SqlStatement, TableFactor, Visit, VisitMut,
};
use datafusion::logical_expr::sqlparser::tokenizer::Span;
use datafusion::sql::parser::{CopyToSource, Statement};
use std::collections::BTreeSet;

/// Writes conditions, joins, VALUES, fields, names behind `*`, names of values and calls in the forms that
/// planning wants.
pub(in crate::sql) fn write_forms(statement: &mut (impl Visit + VisitMut), doubles: &Doubles) -> Result<()> {
    flatten(statement)?;
    end_operands(statement)?;
    joins::write_operators(statement);
    asof_joins::write_tables(statement);
    as_laterals(statement);
    write_types(statement);
    write_names(statement)?;
    write_fields(statement);
    write_labels(statement);
    write_tags(statement, doubles);
    write_calls(statement);
    write_lists(statement);
    Ok(())
}

/// The part of a statement that is refused as it is written, and its place.
pub(in crate::sql) fn refused(statement: &mut Statement) -> Option<(Error, Span)> {
    match statement {
        Statement::Statement(statement) => {
            set_twice(statement).or_else(|| of_sample(statement)).or_else(|| refused_join(&mut **statement))
        }
        Statement::CopyTo(copy) => match &mut copy.source {
            CopyToSource::Query(query) => refused_join(&mut **query),
            CopyToSource::Relation(_) => None,
        },
        Statement::Explain(explain) => refused(&mut explain.statement),
        Statement::CreateExternalTable(_) | Statement::Reset(_) => None,
    }
}

fn refused_join(part: &mut (impl Visit + VisitMut)) -> Option<(Error, Span)> {
    asof_joins::refused(part).or_else(|| joins::refused(part))
}

/// A column that an UPDATE sets twice, of whose values the library takes the last one.
fn set_twice(statement: &SqlStatement) -> Option<(Error, Span)> {
    let update = match statement {
        SqlStatement::Update(update) => update,
        SqlStatement::Prepare { statement, .. } => return set_twice(statement),
        _ => return None,
    };
    let mut columns = update.assignments.iter().filter_map(|assignment| match &assignment.target {
        AssignmentTarget::ColumnName(name) => name.0.last()?.as_ident(),
        AssignmentTarget::Tuple(_) => None,
    });
    let mut known = BTreeSet::new();
    let twice = columns.find(|column| !known.insert(normal(column)))?;
    let text = format!("UPDATE sets the column {:?} twice", twice.value);
    Some((Error::Value(text), twice.span))
}

/// A sample of the rows that a statement changes: the library would delete all of them.
fn of_sample(statement: &SqlStatement) -> Option<(Error, Span)> {
    let tables = match statement {
        SqlStatement::Delete(delete) => match &delete.from {
            FromTable::WithFromKeyword(tables) | FromTable::WithoutKeyword(tables) => tables.as_slice(),
        },
        SqlStatement::Update(update) => std::slice::from_ref(&update.table),
        SqlStatement::Prepare { statement, .. } => return of_sample(statement),
        _ => return None,
    };
    let name = tables.iter().find_map(|table| match &table.relation {
        TableFactor::Table { name, sample: Some(_), .. } => name.0.last()?.as_ident(),
        _ => None,
    })?;
    let text = format!("DELETE or UPDATE of a sample of {:?} is not supported", name.value);
    Some((Error::NotImplemented(text), name.span))
}

/// Writes the relations of a statement in the form in which they are planned, behind all other forms.
pub(in crate::sql) fn write_relations(statement: &mut Statement) -> Result<()> {
    match statement {
        Statement::Statement(statement) => {
            mark_rows(&mut **statement)?;
            write_parentheses(&mut **statement)
        }
        Statement::CopyTo(copy) => match &mut copy.source {
            CopyToSource::Query(query) => write_parentheses(&mut **query),
            CopyToSource::Relation(_) => Ok(()),
        },
        Statement::Explain(explain) => write_relations(&mut explain.statement),
        Statement::CreateExternalTable(_) | Statement::Reset(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::small_tables::{cells, rows_in, session_of};

    #[test]
    fn a_column_is_updated_once() {
        let mut session = session_of(&["create table t (a int, \"B\" int) as values (1, 2)"]);
        for update in [
            "update t set a = 3, a = 4",
            "update t set a = 3, \"B\" = 5, A = 4",
            "prepare p as update t set a = 3, a = 4",
        ] {
            let error = session.run(update).expect_err(update);
            assert_eq!(error.class(), "ValueError", "{update}: {error}");
            assert!(error.to_string().contains("twice"), "{update}: {error}");
            assert!(error.sql_place().is_some(), "{update}: {error}");
        }
        cells(&mut session, "update t set a = 3, \"B\" = a");
        assert_eq!(rows_in(&mut session, "select * from t"), ["3 1"]);
    }

    #[test]
    fn samples_of_tables_are_not_changed() {
        let mut session = session_of(&["create table t (a int) as values (1), (2)"]);
        for statement in [
            "delete from t tablesample (50 percent)",
            "delete from t x tablesample (1 rows) where x.a < 3",
            "update t tablesample (50 percent) set a = 3",
            "prepare p as delete from t tablesample (50 percent)",
        ] {
            let error = session.run(statement).expect_err(statement);
            assert_eq!(error.class(), "NotImplemented", "{statement}: {error}");
            assert!(error.sql_place().is_some(), "{statement}: {error}");
        }
        assert_eq!(rows_in(&mut session, "select sum(a) from t"), ["3"]);
    }
}
