//! Sessions as the runner of SQL logic tests wants them.

use crate::cell::{Kind, rows};
use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use datafusion::prelude::SessionContext;
use sqllogictest::{DB, DBOutput};
use std::panic::{AssertUnwindSafe, catch_unwind};
use tharsis::frame::{SqlAnswer, SqlSession};

/// A session of frames, or one of DataFusion alone to compare it with.
pub(crate) enum Engine {
    Frames(SqlSession),
    Library(Box<(SessionContext, tokio::runtime::Runtime)>),
}

/// An error of a statement.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The session refused it, or its run failed.
    #[error("{0}")]
    Refused(String),
    /// The session panicked.
    #[error("the session panicked: {0}")]
    Panicked(String),
}

impl Engine {
    fn answer(&mut self, statement: &str) -> Result<DBOutput<Kind>, EngineError> {
        match self {
            Engine::Frames(session) => {
                let answer = session.execute(statement);
                match answer.map_err(|error| EngineError::Refused(error.root().to_string()))? {
                    SqlAnswer::Done => Ok(DBOutput::StatementComplete(0)),
                    SqlAnswer::Changed(count) => {
                        Ok(DBOutput::Rows { types: vec![Kind::Integer], rows: vec![vec![count.to_string()]] })
                    }
                    SqlAnswer::Rows(table) => output(&table.batch().schema(), &[table.batch().clone()]),
                }
            }
            Engine::Library(library) => {
                let (session, runtime) = library.as_mut();
                let (schema, batches) = runtime
                    .block_on(async {
                        let frame = session.sql(statement).await?;
                        let schema = frame.schema().as_arrow().clone();
                        Ok((schema, frame.collect().await?))
                    })
                    .map_err(|error: datafusion::error::DataFusionError| {
                        EngineError::Refused(error.to_string())
                    })?;
                if schema.fields().is_empty() && batches.iter().all(|batch| batch.num_rows() == 0) {
                    Ok(DBOutput::StatementComplete(0))
                } else {
                    output(&schema, &batches)
                }
            }
        }
    }
}

fn output(schema: &Schema, batches: &[RecordBatch]) -> Result<DBOutput<Kind>, EngineError> {
    let types = schema.fields().iter().map(|field| Kind::of(field.data_type())).collect();
    let mut all = Vec::new();
    for batch in batches {
        all.extend(rows(batch).map_err(|error| EngineError::Refused(error.to_string()))?);
    }
    Ok(DBOutput::Rows { types, rows: all })
}

impl DB for Engine {
    type Error = EngineError;
    type ColumnType = Kind;

    fn run(&mut self, statement: &str) -> Result<DBOutput<Kind>, EngineError> {
        // A defect in one statement must not hide those in others.
        let outcome = catch_unwind(AssertUnwindSafe(|| self.answer(statement)));
        outcome.unwrap_or_else(|payload| {
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
            Err(EngineError::Panicked(text.unwrap_or("without a message").to_owned()))
        })
    }

    /// The files name the engine that they were written for.
    fn engine_name(&self) -> &str {
        "DataFusion"
    }
}
