//! Rows that exist: parts of a frame in memory, or in the store of a cluster.

use crate::error::Result;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

/// PartBatches of a part in the order of rows.
pub type PartBatches<'a> = Box<dyn Iterator<Item = Result<RecordBatch>> + Send + 'a>;

/// A part of a frame that an executor made and keeps where it likes.
pub trait KeptPart: Any + Debug + Send + Sync {
    /// The batches, copied to this process if they are elsewhere.
    ///
    /// # Errors
    /// The store that keeps them cannot give them.
    fn fetch(&self) -> Result<Vec<RecordBatch>>;

    /// The batches one after the other, so that those of a file need not be in memory at once.
    ///
    /// # Errors
    /// As [`KeptPart::fetch`]; later errors come in the place of batches.
    fn batches(&self) -> Result<PartBatches<'static>> {
        Ok(Box::new(self.fetch()?.into_iter().map(Ok)))
    }

    /// Number of rows, known without a fetch.
    fn rows(&self) -> usize;

    /// Bytes of the columns, known without a fetch.
    fn bytes(&self) -> usize;
}

/// The batches that were opened, or the error in their place.
pub(crate) fn batches_or_error(opened: Result<PartBatches<'static>>) -> PartBatches<'static> {
    opened.unwrap_or_else(|error| Box::new(std::iter::once(Err(error))))
}

/// PartBatches in the memory of this process.
#[derive(Clone, Debug, Default)]
pub struct LocalPart(pub Vec<RecordBatch>);

impl KeptPart for LocalPart {
    fn fetch(&self) -> Result<Vec<RecordBatch>> {
        Ok(self.0.clone())
    }

    fn rows(&self) -> usize {
        self.0.iter().map(RecordBatch::num_rows).sum()
    }

    fn bytes(&self) -> usize {
        self.0.iter().map(RecordBatch::get_array_memory_size).sum()
    }
}

/// Parts one after the other, as one. The library reads several parts at the same time and gives their rows
/// in any order.
#[derive(Debug)]
pub(crate) struct JoinedParts(pub(crate) Vec<Arc<dyn KeptPart>>);

impl KeptPart for JoinedParts {
    fn fetch(&self) -> Result<Vec<RecordBatch>> {
        self.batches()?.collect()
    }

    fn batches(&self) -> Result<PartBatches<'static>> {
        let parts = self.0.clone().into_iter();
        Ok(Box::new(parts.flat_map(|part| batches_or_error(part.batches()))))
    }

    fn rows(&self) -> usize {
        self.0.iter().map(|part| part.rows()).sum()
    }

    fn bytes(&self) -> usize {
        self.0.iter().map(|part| part.bytes()).sum()
    }
}

/// A table whose rows exist, in parts that follow each other in the order of rows.
#[derive(Clone, Debug)]
pub struct Resident {
    /// Names and types of the columns.
    pub schema: SchemaRef,
    /// The parts in order.
    pub parts: Vec<Arc<dyn KeptPart>>,
}

impl Resident {
    /// A table in the memory of this process.
    #[must_use]
    pub fn local(schema: SchemaRef, parts: Vec<Vec<RecordBatch>>) -> Resident {
        let parts = parts.into_iter().map(|batches| Arc::new(LocalPart(batches)) as Arc<dyn KeptPart>);
        Resident { schema, parts: parts.collect() }
    }

    /// Number of rows of all parts.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.parts.iter().map(|part| part.rows()).sum()
    }

    /// Bytes of all parts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.parts.iter().map(|part| part.bytes()).sum()
    }

    /// All batches, in the order of rows.
    ///
    /// # Errors
    /// The store that keeps them cannot give them.
    pub fn fetch(&self) -> Result<Vec<RecordBatch>> {
        let mut batches = Vec::new();
        for part in &self.parts {
            batches.extend(part.fetch()?);
        }
        Ok(batches)
    }
}
