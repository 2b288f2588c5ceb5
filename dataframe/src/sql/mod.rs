//! SQL over frames.
//!
//! | concern | module |
//! |---|---|
//! | statements of a session | `session` |
//! | clauses that are refused or written in another way | `understood` |
//! | subqueries in orders, windows, joins and sets of groups | `asked` |
//! | orders by keys whose bounds nobody knows | `sort_keys` |
//! | values of subqueries that depend on the row by other conditions than equality | `unequal` |
//! | names of conditions over subqueries, and of casts | `distinct_names` |
//! | `INTERSECT ALL` and `EXCEPT ALL` | `counted_sets` |
//! | `IS DISTINCT FROM` before `AND` and `OR` | `distinct_from` |
//! | columns that a projection computes for an operator | `below` |
//! | columns of plans | `plans` |
//! | names of rows that are compared with a value | `compared_names` |
//! | the bound on subqueries within each other | `levels` |
//! | tables that statements make and change, and their keys | `session_table`, `change`, `keys` |
//! | plans as texts | `explain` |
//! | files that statements write | `files` |
//! | the order of rows | `order` |
//! | results that have no room | `overflow` |
//! | truth values of rows that move | `moving_rows` |
//! | decimals that are rounded | `digits` |
//! | rows as texts | `row_texts` |
//! | the dialect of runners of tests | `text` |

mod asked;
mod below;
mod change;
mod compared_names;
mod counted_sets;
mod digits;
mod distinct_from;
mod distinct_names;
mod explain;
mod files;
mod keys;
mod levels;
mod moving_rows;
mod order;
mod overflow;
mod plans;
mod row_texts;
mod session;
mod session_table;
mod sort_keys;
mod text;
mod understood;
mod unequal;
mod wrong_joins;

pub use self::session::{SqlAnswer, SqlSession};
pub use text::{sql_line, sql_stream};

use crate::engine::{Settings, block_on, session};
use crate::error::Result;
use crate::frame::{DataFrame, Frame};
use datafusion::catalog::view::ViewTable;
use datafusion::common::TableReference;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::SessionContext;
use std::sync::Arc;

/// The result of an SQL query over named frames.
///
/// Names without quotes in the query are read as lower case, as in PostgreSQL; a table `Sales` is found with
/// quotes and without. The order of the query's rows is that of
/// the frame's, also for the steps after it.
///
/// ```
/// use tharsis_dataframe::{DataFrame, sql};
/// let sales = DataFrame::from_columns([("city", vec!["Oslo", "Rome"].into()), ("sold", vec![3, 5].into())]);
/// let best = sql("select city from sales where sold = (select max(sold) from sales)", &[("sales", &sales)]);
/// assert_eq!(best.col("city").values::<String>()?, [Some("Rome".to_owned())]);
/// # Ok::<(), tharsis_dataframe::Error>(())
/// ```
#[track_caller]
pub fn sql(query: &str, tables: &[(&str, &DataFrame)]) -> DataFrame {
    DataFrame::new(plan(query, tables).and_then(|plan| match order::ordered(&plan)? {
        None => Frame::of_foreign_rows(plan),
        Some((plan, order)) => {
            let mut frame = Frame::of_foreign_rows(plan)?;
            frame.columns.retain(|column| order.iter().all(|key| key.column != *column));
            Ok(Frame { order, ..frame })
        }
    }))
}

fn plan(query: &str, tables: &[(&str, &DataFrame)]) -> Result<LogicalPlan> {
    let session = SessionContext::new_with_state(session(Settings::default()));
    for (name, table) in tables {
        let view = Arc::new(ViewTable::new(table.frame()?.visible()?, None));
        // A name without quotes in the query is one of lower case.
        let lower = name.to_lowercase();
        if tables.iter().all(|(other, _)| *other != lower) {
            session.register_table(TableReference::bare(lower), Arc::clone(&view) as _)?;
        }
        session.register_table(TableReference::bare(*name), view)?;
    }
    block_on(logical(&session.state(), query))
}

/// The plan of a statement, all of whose clauses are in it.
async fn logical(state: &SessionState, text: &str) -> Result<LogicalPlan> {
    let dialect = state.config().options().sql_parser.dialect;
    let mut statement = state.sql_to_statement(text, &dialect)?;
    understood::understand(&mut statement, &|name| state.scalar_functions().contains_key(name))?;
    let plan = state.statement_to_plan(statement).await?;
    levels::check_levels(&plan)?;
    order::with_orders(typed(asked::as_columns(plan)?)?)
}

/// The plan whose numbers have the types and the errors of SQL; its parameters have types.
fn typed(plan: LogicalPlan) -> Result<LogicalPlan> {
    overflow::with_checks(digits::with_digits(plan)?)
}

impl Frame {
    /// A plan of the columns alone. SQL knows no order of rows.
    fn visible(&self) -> Result<LogicalPlan> {
        let columns = self.columns.iter().map(|column| (column.clone(), crate::frame::named(column)));
        let frame = Frame { index: Vec::new(), order: Vec::new(), ..self.clone() };
        Ok(frame.project(columns.collect())?.plan)
    }
}
