//! The library under frames alone: what benchmarks and tests compare with.

use crate::error::{Error, Result};
use crate::table::Table;
use arrow::array::RecordBatch;
use datafusion::prelude::{SessionConfig, SessionContext};
use std::sync::Arc;
use tokio::runtime::Runtime;

/// The library under frames, with its own plans and settings, on threads of this process.
///
/// ```
/// use tharsis_dataframe::Library;
/// let library = Library::new(2)?;
/// library.run("create table t as values (1, 'one'), (2, 'two')")?;
/// assert_eq!(library.table("select column2 as name from t")?.column::<String>("name")?.len(), 2);
/// # Ok::<(), tharsis_dataframe::Error>(())
/// ```
pub struct Library {
    session: SessionContext,
    runtime: Runtime,
}

impl Library {
    /// A session with no tables, with this many threads and no bound on memory.
    ///
    /// # Errors
    /// `Internal` if the threads cannot be started.
    pub fn new(threads: usize) -> Result<Library> {
        let threads = threads.max(1);
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build();
        let runtime = runtime.map_err(|error| Error::Internal(format!("no threads: {error}")))?;
        let config = SessionConfig::new().with_target_partitions(threads);
        Ok(Library { session: SessionContext::new_with_config(config), runtime })
    }

    /// Runs one statement to its end; gives the rows of a query.
    ///
    /// # Errors
    /// Those of [`sql`](crate::sql()), and errors of the run.
    pub fn run(&self, statement: &str) -> Result<Vec<RecordBatch>> {
        self.runtime.block_on(async { Ok(self.session.sql(statement).await?.collect().await?) })
    }

    /// The rows of a query as a table.
    ///
    /// # Errors
    /// As [`Library::run`].
    pub fn table(&self, query: &str) -> Result<Table> {
        self.runtime.block_on(async {
            let frame = self.session.sql(query).await?;
            let schema = Arc::new(frame.schema().as_arrow().clone());
            Table::new(&schema, &frame.collect().await?, Vec::new())
        })
    }
}

impl std::fmt::Debug for Library {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Library({})", self.session.session_id())
    }
}
