//! SQL over frames.
//!
//! | concern | module |
//! |---|---|
//! | statements of a session | `session` |
//! | tables that statements make and change | `session_table`, `change` |
//! | plans as texts | `explain` |
//! | the order of rows | `order` |
//! | rows as texts | `row_texts` |
//! | the dialect of runners of tests | `text` |

mod change;
mod explain;
mod order;
mod row_texts;
mod session;
mod session_table;
mod text;

pub use self::session::{SqlAnswer, SqlSession};
pub use text::{sql_line, sql_stream};

use crate::engine::{Settings, block_on, session};
use crate::error::Result;
use crate::frame::{DataFrame, Frame};
use datafusion::catalog::view::ViewTable;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::SessionContext;
use std::sync::Arc;

/// The result of an SQL query over named frames.
///
/// Names without quotes are read as lower case, as in PostgreSQL. The order of the query's rows is that of
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
        let view = ViewTable::new(table.frame()?.visible()?, None);
        session.register_table(*name, Arc::new(view))?;
    }
    block_on(async { Ok(session.state().create_logical_plan(query).await?) })
}

impl Frame {
    /// A plan of the columns alone. SQL knows no order of rows.
    fn visible(&self) -> Result<LogicalPlan> {
        let columns = self.columns.iter().map(|column| (column.clone(), crate::frame::named(column)));
        let frame = Frame { index: Vec::new(), order: Vec::new(), ..self.clone() };
        Ok(frame.project(columns.collect())?.plan)
    }
}
