//! Places where the tasks of statements run.

use crate::engine::{Engine, EngineError};
use clap::ValueEnum;
use datafusion::prelude::{SessionConfig, SessionContext};
use sqllogictest::DB;
use std::sync::Arc;
use tharsis::Runtime;
use tharsis::frame::{Executor, LocalExecutor, RemoteExecutor, SqlSession};

/// Partitions of plans: those with which the public files were written.
const PARTITIONS: usize = 4;
/// Memory of operators.
const MEMORY_BYTES: u64 = 1 << 30;
/// Workers that run tasks.
const WORKERS: usize = 2;

/// A place of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Place {
    /// Threads of this process.
    Threads,
    /// Remote tasks of an embedded runtime: fragments travel as bytes, rows as objects.
    Embedded,
    /// Worker processes.
    Workers,
    /// Threads of DataFusion alone, without tasks.
    Library,
}

/// A place where sessions can be made.
pub struct Started {
    /// None for the library.
    executor: Option<Arc<dyn Executor>>,
    _runtime: Option<Runtime>,
}

impl Place {
    /// All places of tasks.
    pub const ALL: [Place; 3] = [Place::Threads, Place::Embedded, Place::Workers];

    /// Starts the executor.
    ///
    /// # Errors
    /// The runtime does not start.
    pub fn start(self) -> tharsis::Result<Started> {
        let init = || tharsis::init().num_cpus(PARTITIONS as f64).store_bytes(MEMORY_BYTES);
        let runtime = match self {
            Place::Threads | Place::Library => None,
            Place::Embedded => Some(init().start_local()?),
            Place::Workers => Some(init().workers(WORKERS).start_local()?),
        };
        let executor: Arc<dyn Executor> = match &runtime {
            None => Arc::new(LocalExecutor::sized(PARTITIONS, MEMORY_BYTES)),
            Some(runtime) => {
                Arc::new(RemoteExecutor::new(runtime).partitions(PARTITIONS).memory_bytes(MEMORY_BYTES))
            }
        };
        let executor = (self != Place::Library).then_some(executor);
        Ok(Started { executor, _runtime: runtime })
    }
}

impl Started {
    /// A session without tables, that runs these statements first.
    pub(crate) fn engine(&self, setup: &[&str]) -> Result<Engine, EngineError> {
        let mut engine = match &self.executor {
            Some(executor) => Engine::Frames(SqlSession::on(Arc::clone(executor)).part_rows_min(1)),
            None => {
                let config = SessionConfig::new().with_target_partitions(PARTITIONS);
                let session = SessionContext::new_with_config(config.with_information_schema(true));
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                let runtime = runtime.map_err(|error| EngineError::Refused(error.to_string()))?;
                Engine::Library(Box::new((session, runtime)))
            }
        };
        for statement in setup {
            engine.run(statement)?;
        }
        Ok(engine)
    }
}
