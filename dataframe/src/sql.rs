//! SQL over frames.

use crate::engine::{Settings, block_on, session};
use crate::error::{Error, Result};
use crate::frame::{DataFrame, Frame};
use crate::table::Table;
use crate::value::Value;
use arrow::array::{Array, ArrayRef};
use arrow::util::display::array_value_to_string;
use datafusion::catalog::view::ViewTable;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{DdlStatement, DmlStatement, LogicalPlan, WriteOp};
use datafusion::prelude::SessionContext;
use serde_json::{Value as Json, json};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The result of an SQL query over named frames.
///
/// Names without quotes are read as lower case, as in PostgreSQL.
///
/// ```
/// use tharsis_dataframe::{DataFrame, sql};
/// let sales = DataFrame::from_columns([("city", vec!["Oslo", "Rome"].into()), ("sold", vec![3, 5].into())]);
/// let best = sql("select city from sales where sold = (select max(sold) from sales)", &[("sales", &sales)]);
/// assert_eq!(best.col("city").values::<String>()?, [Some("Rome".to_owned())]);
/// # Ok::<(), tharsis_dataframe::Error>(())
/// ```
#[track_caller]
#[must_use]
pub fn sql(query: &str, tables: &[(&str, &DataFrame)]) -> DataFrame {
    DataFrame::new(plan(query, tables).and_then(Frame::of_plan))
}

fn plan(query: &str, tables: &[(&str, &DataFrame)]) -> Result<LogicalPlan> {
    let session = SessionContext::new_with_state(session(Settings::default()));
    for (name, table) in tables {
        let view = ViewTable::new(table.frame()?.visible()?, None);
        session.register_table(*name, Arc::new(view))?;
    }
    block_on(async { Ok(session.state().create_logical_plan(query).await?) })
}

/// Tables and views that statements of SQL make, read and drop, from one line to the next.
///
/// ```
/// use tharsis_dataframe::SqlSession;
/// let mut session = SqlSession::default();
/// session.run("create table t as values (1, 'one'), (2, 'two')")?;
/// session.run("insert into t values (3, 'three')")?;
/// assert_eq!(session.run("select count(*) from t")?, [["3"]]);
/// # Ok::<(), tharsis_dataframe::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct SqlSession {
    tables: HashMap<String, DataFrame>,
}

impl SqlSession {
    /// Runs one statement; gives the rows of a query as texts, and no rows for other statements.
    ///
    /// # Errors
    /// `ValueError` for what is no SQL, for unknown names, and for statements that are not supported.
    pub fn run(&mut self, statement: &str) -> Result<Vec<Vec<String>>> {
        let tables: Vec<(&str, &DataFrame)> =
            self.tables.iter().map(|(name, table)| (name.as_str(), table)).collect();
        match plan(statement, &tables)? {
            LogicalPlan::Ddl(statement) => self.define(statement)?,
            LogicalPlan::Dml(statement) => self.change(statement)?,
            LogicalPlan::Statement(statement) => {
                let name = statement.name();
                return Err(Error::NotImplemented(format!("the statement {name} is not supported")));
            }
            query => return texts(&DataFrame::new(Frame::of_plan(query)).collect()?),
        }
        Ok(Vec::new())
    }

    fn define(&mut self, statement: DdlStatement) -> Result<()> {
        match statement {
            DdlStatement::CreateMemoryTable(table) => {
                let name = table.name.to_string();
                if self.is_new(&name, table.if_not_exists, table.or_replace)? {
                    let rows = DataFrame::new(Frame::of_plan((*table.input).clone())).execute()?;
                    self.tables.insert(name, rows);
                }
            }
            DdlStatement::CreateView(view) => {
                let name = view.name.to_string();
                if self.is_new(&name, false, view.or_replace)? {
                    self.tables.insert(name, DataFrame::new(Frame::of_plan((*view.input).clone())));
                }
            }
            DdlStatement::DropTable(table) => self.forget(&table.name.to_string(), table.if_exists)?,
            DdlStatement::DropView(view) => self.forget(&view.name.to_string(), view.if_exists)?,
            other => {
                let name = other.name();
                return Err(Error::NotImplemented(format!("the statement {name} is not supported")));
            }
        }
        Ok(())
    }

    /// Whether a table is to be made; an error if there is one already.
    fn is_new(&self, name: &str, if_not_exists: bool, or_replace: bool) -> Result<bool> {
        match self.tables.contains_key(name) && !or_replace {
            false => Ok(true),
            true if if_not_exists => Ok(false),
            true => Err(Error::Sql(format!("table {name:?} exists already"))),
        }
    }

    fn forget(&mut self, name: &str, if_exists: bool) -> Result<()> {
        match self.tables.remove(name).is_some() || if_exists {
            true => Ok(()),
            false => Err(Error::Sql(format!("there is no table {name:?}"))),
        }
    }

    fn change(&mut self, statement: DmlStatement) -> Result<()> {
        let name = statement.table_name.to_string();
        let table = self.tables.get(&name);
        let table = table.ok_or_else(|| Error::Sql(format!("there is no table {name:?}")))?;
        if !matches!(statement.op, WriteOp::Insert(InsertOp::Append)) {
            let operation = statement.op.to_string();
            return Err(Error::NotImplemented(format!("the statement {operation} is not supported")));
        }
        let added = DataFrame::new(Frame::of_plan((*statement.input).clone()));
        let dtypes = table.dtypes()?;
        let types = dtypes.iter().map(|(label, dtype)| (label.as_str(), dtype.clone()));
        let rows = DataFrame::concat([table, &added.astype(types)], true).execute()?;
        self.tables.insert(name, rows);
        Ok(())
    }
}

/// The rows of a table as texts, as the runner of SQL logic tests wants them.
fn texts(table: &Table) -> Result<Vec<Vec<String>>> {
    let columns = table.batch().columns();
    let row = |row: usize| columns.iter().map(|column| text(column, row)).collect::<Result<Vec<_>>>();
    (0..table.len()).map(row).collect()
}

fn text(column: &ArrayRef, row: usize) -> Result<String> {
    if column.is_null(row) {
        return Ok("NULL".to_owned());
    }
    let value = Value::from_array(column, row)?;
    let dtype = column.data_type();
    Ok(match value.as_f64() {
        Some(float) if dtype.is_floating() => float.to_string(),
        _ => {
            let text = array_value_to_string(column, row)?;
            match dtype.is_temporal() {
                true => text.replacen('T', " ", 1),
                false if text.is_empty() => "(empty)".to_owned(),
                false => text,
            }
        }
    })
}

/// Answers one line of the dialect that runners of SQL logic tests speak with external engines:
/// `{"sql": ".."}` gives `{"result": [["1", "2"]]}` or `{"err": ".."}`.
///
/// ```
/// use serde_json::json;
/// use tharsis_dataframe::{SqlSession, sql_line};
/// let reply = sql_line(&mut SqlSession::default(), &json!({"sql": "select 1, 'a'"}));
/// assert_eq!(reply, json!({"result": [["1", "a"]]}));
/// ```
pub fn sql_line(session: &mut SqlSession, line: &Json) -> Json {
    let Some(statement) = line.get("sql").and_then(Json::as_str) else {
        return json!({"err": "expected {\"sql\": \"..\"}"});
    };
    // A defect in one statement must not take its reader down with it.
    let outcome = catch_unwind(AssertUnwindSafe(|| session.run(statement)));
    match outcome {
        Ok(Ok(rows)) => json!({"result": rows}),
        Ok(Err(error)) => json!({"err": error.root().to_string()}),
        Err(_) => json!({"err": "the evaluator panicked; this is a defect"}),
    }
}

impl Frame {
    /// A plan of the columns alone. SQL knows no order of rows.
    fn visible(&self) -> Result<LogicalPlan> {
        let columns = self.columns.iter().map(|column| (column.clone(), crate::frame::named(column)));
        let frame = Frame { index: Vec::new(), order: Vec::new(), ..self.clone() };
        Ok(frame.project(columns.collect())?.plan)
    }
}
