//! `DESCRIBE`, with the types that statements have, `SHOW TABLES`, with the tables of users, and what the
//! library tells of columns.

use crate::error::Result;
use crate::frame::DataFrame;
use crate::sql::names::namesakes::{plain_name, plain_values};
use crate::sql::plans::projection;
use crate::sql::values::type_names::type_name;
use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Fields, Schema};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, Result as EngineResult, TableReference};
use datafusion::execution::SessionState;
use datafusion::logical_expr::sqlparser::ast::{DescribeAlias, Statement as SqlStatement};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::sql::parser::Statement;
use std::sync::Arc;

/// The tables of users. The library shows those about tables, too.
const TABLES: &str = "select table_name, table_type from information_schema.tables \
                      where table_schema <> 'information_schema' order by table_name";

/// A statement that shows tables as a query of them; any other one as it is.
pub(in crate::sql) fn as_query(statement: Statement, state: &SessionState) -> Result<Statement> {
    let Statement::Statement(shown) = &statement else { return Ok(statement) };
    // With more words it is another statement, which the library refuses.
    if !matches!(**shown, SqlStatement::ShowTables { .. }) || shown.to_string() != "SHOW TABLES" {
        return Ok(statement);
    }
    Ok(state.sql_to_statement(TABLES, &state.config().options().sql_parser.dialect)?)
}

/// The query that a statement describes, and that it does; any other statement as it is. The library would
/// describe the types that the query has before the rules for values.
pub(in crate::sql) fn query_of(statement: Statement) -> (Statement, bool) {
    let Statement::Statement(statement) = statement else { return (statement, false) };
    match *statement {
        SqlStatement::Explain {
            describe_alias: DescribeAlias::Desc | DescribeAlias::Describe,
            statement: query,
            ..
        } if matches!(*query, SqlStatement::Query(_)) => (Statement::Statement(query), true),
        statement => (Statement::Statement(Box::new(statement)), false),
    }
}

/// The plan of a description in the words of SQL; any other plan as it is.
pub(in crate::sql) fn in_sql(plan: LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::DescribeTable(described) = &plan else { return Ok(plan) };
    of_columns(described.schema.fields())
}

/// The plan of a description of these columns.
pub(in crate::sql) fn of_columns(columns: &Fields) -> Result<LogicalPlan> {
    let (mut names, mut types, mut nullable) = (Vec::new(), Vec::new(), Vec::new());
    for field in columns.iter() {
        names.push(plain_name(field.name()).to_owned());
        types.push(type_name(field.data_type()));
        nullable.push(if field.is_nullable() { "YES" } else { "NO" });
    }
    let column = |name: &str| Field::new(name, DataType::Utf8, false);
    let schema = Schema::new(vec![column("column_name"), column("data_type"), column("is_nullable")]);
    let schema = Arc::new(schema);
    let texts: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(names)),
        Arc::new(StringArray::from(types)),
        Arc::new(StringArray::from(nullable)),
    ];
    let rows = RecordBatch::try_new(Arc::clone(&schema), texts)?;
    DataFrame::from_batches(schema, vec![rows]).frame()?.visible()
}

/// The plan that reads names of columns without the tags that those of views have.
pub(in crate::sql) fn without_tags(plan: LogicalPlan) -> EngineResult<LogicalPlan> {
    let changed = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::TableScan(ref scan) if has_columns(&scan.table_name) => {
            plain_columns(node).map(Transformed::yes)
        }
        node => Ok(Transformed::no(node)),
    })?;
    Ok(changed.data)
}

/// Whether a table tells of columns.
fn has_columns(table: &TableReference) -> bool {
    table.schema() == Some("information_schema") && table.table() == "columns"
}

fn plain_columns(scan: LogicalPlan) -> EngineResult<LogicalPlan> {
    let columns = scan.schema().iter().map(|(table, field)| {
        let column = Expr::Column(Column::new(table.cloned(), field.name()));
        if field.name() == "column_name" {
            plain_values(column).alias_qualified(table.cloned(), field.name())
        } else {
            column
        }
    });
    let columns = columns.collect();
    projection(columns, Arc::new(scan)).map(Arc::unwrap_or_clone)
}

#[cfg(test)]
mod tests {
    use crate::sql::SqlSession;

    #[test]
    fn tables_of_users_are_shown() {
        let mut session = SqlSession::default();
        session.run("create table t (a bigint)").expect("a table");
        session.run("create view v as select 1 as a").expect("a view");
        let expected = [["t", "BASE TABLE"], ["v", "VIEW"]];
        assert_eq!(session.run("show tables").expect("rows"), expected);
        assert!(session.run("show full tables").is_err());
    }

    #[test]
    fn views_tell_what_was_written() {
        let mut session = SqlSession::default();
        session.run("create table t (a bigint)").expect("a table");
        let view = "create view v as select a::double, sum(a), a, a from t group by a";
        session.run(&format!("{view};")).expect("a view");
        let definition = "select definition from information_schema.views where table_name = 'v'";
        assert_eq!(session.run(definition).expect("a row"), [[view]]);
        let view = "create view s as summarize t";
        session.run(&format!("{view};")).expect("a view");
        assert_eq!(session.run(&definition.replace("'v'", "'s'")).expect("a row"), [[view]]);
    }

    #[test]
    fn columns_of_one_name_are_told_without_tags() {
        let mut session = SqlSession::default();
        session.run("create table t (a bigint, b bigint)").expect("a table");
        session.run("create view v as select a, b as a, b from t").expect("a view");
        let names = "select c.column_name from information_schema.columns c where c.table_name = 'v'";
        let rows = session.run(&format!("{names} order by ordinal_position")).expect("rows");
        assert_eq!(rows, [["a"], ["a"], ["b"]]);
        let rows = session.run(&format!("{names} and column_name = 'a'")).expect("rows");
        assert_eq!(rows.len(), 2);
        for query in ["explain select a, a + 1 as a from t", "explain analyze select a, a + 1 as a from t"] {
            let text = session.run(query).expect("a plan").concat().concat();
            assert!(!text.contains(['\u{2063}', '\u{2064}']), "{query}: {text}");
        }
    }

    #[test]
    fn columns_are_described_by_types_of_statements() {
        let mut session = SqlSession::default();
        session.run("create table t (a bigint, b text, c decimal(10, 2) not null)").expect("a table");
        let expected = [["a", "BIGINT", "YES"], ["b", "VARCHAR", "YES"], ["c", "DECIMAL(10,2)", "NO"]];
        assert_eq!(session.run("describe t").expect("rows"), expected);
        let rows = session.run("describe select a, [1.5] as l from t").expect("rows");
        assert_eq!([&rows[0][1], &rows[1][1]], ["BIGINT", "DOUBLE[]"]);
        for (query, expected) in [
            ("select 1 as x union all select 2.5", "DOUBLE"),
            ("select 1 as x except select c from t", "DECIMAL(22,2)"),
            ("select coalesce(c, 2.5::double) as x from t", "DOUBLE"),
        ] {
            for word in ["describe", "desc"] {
                assert_eq!(session.run(&format!("{word} {query}")).expect(query)[0][1], expected, "{query}");
            }
        }
    }
}
