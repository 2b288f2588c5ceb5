//! SQL over frames.

use crate::engine::{block_on, session};
use crate::error::{Error, Result};
use crate::frame::{DataFrame, Frame};
use crate::table::Table;
use datafusion::catalog::view::ViewTable;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
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
    let session = SessionContext::new_with_state(session(1));
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

/// The result of a query over Parquet files by the library under frames alone, in this process, with its own
/// plan: the floor of benchmarks.
///
/// # Errors
/// As [`sql`], and errors of the run.
pub fn sql_by_library(query: &str, files: &[(&str, String)], threads: usize) -> Result<Table> {
    let run = async {
        let config = SessionConfig::new().with_target_partitions(threads.max(1));
        let session = SessionContext::new_with_config(config);
        for (name, path) in files {
            session.register_parquet(*name, path, ParquetReadOptions::default()).await?;
        }
        let frame = session.sql(query).await?;
        let schema = Arc::new(frame.schema().as_arrow().clone());
        Ok(Table::new(&schema, &frame.collect().await?, Vec::new())?)
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads.max(1)).enable_all().build();
    runtime.map_err(|error| Error::Internal(format!("no threads: {error}")))?.block_on(run)
}
