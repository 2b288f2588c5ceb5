//! Rows of a frame as Arrow batches, while they are computed, and streams of batches from and to other
//! libraries.

use super::{DataFrame, Frame};
use crate::error::{Error, Result};
use crate::execute::{Executor, Streamed, default_executor};
use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use std::sync::Arc;

impl DataFrame {
    /// The rows as Arrow batches, in their order, with the index if it has names. The first ones come while
    /// later ones are computed; each is let go when it was taken, and what is left is not computed when the
    /// batches are dropped.
    ///
    /// ```
    /// use tharsis_dataframe::DataFrame;
    /// let frame = DataFrame::from_columns([("n", vec![1, 2, 3].into())]);
    /// let mut rows = 0;
    /// for batch in frame.iter_batches()? {
    ///     rows += batch?.num_rows();
    /// }
    /// assert_eq!(rows, 3);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error that the frame carries, or one of planning. Errors of the run come in the place of batches.
    pub fn iter_batches(&self) -> Result<Batches> {
        self.iter_batches_on(default_executor())
    }

    /// As [`DataFrame::iter_batches`], computed by an executor.
    ///
    /// # Errors
    /// As [`DataFrame::iter_batches`].
    pub fn iter_batches_on(&self, executor: Arc<dyn Executor>) -> Result<Batches> {
        let plan = self.frame()?.with_named_index()?.output()?;
        let streamed = Streamed::new(plan, executor)?;
        let schema = streamed.schema()?;
        Ok(Batches { schema, streamed: Some(streamed) })
    }

    /// The rows as a stream of Arrow's C interface, which other libraries of this process read: they come
    /// while they are computed, as with [`DataFrame::iter_batches`].
    ///
    /// # Errors
    /// As [`DataFrame::iter_batches`].
    pub fn to_arrow_stream(&self) -> Result<FFI_ArrowArrayStream> {
        Ok(FFI_ArrowArrayStream::new(Box::new(Reader(self.iter_batches()?))))
    }

    /// A frame of all batches of a stream of Arrow's C interface, from another library of this process.
    /// Columns are not copied.
    ///
    /// ```
    /// use tharsis_dataframe::DataFrame;
    /// let frame = DataFrame::from_columns([("n", vec![1, 2, 3].into())]);
    /// let again = DataFrame::from_arrow_stream(frame.to_arrow_stream()?)?;
    /// assert_eq!(again.col("n").sum()?.as_i64(), Some(6));
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    ///
    /// # Errors
    /// An error of the stream.
    #[track_caller]
    pub fn from_arrow_stream(stream: FFI_ArrowArrayStream) -> Result<DataFrame> {
        let reader = ArrowArrayStreamReader::try_new(stream)?;
        let schema = reader.schema();
        let batches = reader.collect::<std::result::Result<Vec<_>, ArrowError>>()?;
        let frame = DataFrame::from_batches(schema, batches);
        frame.check()?;
        Ok(frame)
    }
}

impl Frame {
    /// The frame with its index as columns, if all levels have names, else with an index of positions.
    pub(crate) fn with_named_index(&self) -> Result<Frame> {
        if !self.index.is_empty() && self.index.iter().all(|level| level.name.is_some()) {
            self.index_as_columns()
        } else {
            Ok(Frame { index: Vec::new(), ..self.clone() })
        }
    }
}

/// The rows of a frame as Arrow batches.
pub struct Batches {
    schema: SchemaRef,
    /// `None` after the last rows, and after an error.
    streamed: Option<Streamed>,
}

impl Batches {
    /// Names and types of the columns.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Result<RecordBatch>> {
        let batch = self.streamed.as_mut()?.next().transpose();
        if !matches!(batch, Some(Ok(_))) {
            self.streamed = None;
        }
        batch
    }
}

impl std::fmt::Debug for Batches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Batches({} columns)", self.schema.fields().len())
    }
}

/// Batches as Arrow's interface of readers wants them.
struct Reader(Batches);

impl Iterator for Reader {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let external = |error: Error| ArrowError::ExternalError(Box::new(error));
        self.0.next().map(|batch| batch.map_err(external))
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }
}
