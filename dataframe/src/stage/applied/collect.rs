//! Collects the rows of a partition into what functions are called with.

use super::unit::{Spec, Unit};
use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::{SortColumn, concat_batches, lexsort_to_indices, partition, take_record_batch};
use arrow::datatypes::SchemaRef;
use arrow::row::{OwnedRow, RowConverter, Rows, SortField};
use datafusion::common::Result;
use datafusion::execution::memory_pool::MemoryReservation;
use std::sync::Arc;

/// Most rows of a chunk, unless one batch has more.
const CHUNK_ROWS: usize = 1 << 17;
/// Bytes from which rows are a chunk.
const CHUNK_BYTES: usize = 16 << 20;

/// Rows that are collected for the next calls.
#[derive(Debug)]
pub(super) struct Collector {
    spec: Arc<Spec>,
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    rows: usize,
    bytes: usize,
    /// Counts the bytes as taken.
    reservation: MemoryReservation,
    groups: Option<Groups>,
}

/// The keys of the group whose rows are collected.
#[derive(Debug)]
struct Groups {
    converter: RowConverter,
    last: Option<OwnedRow>,
}

impl Groups {
    fn new(schema: &SchemaRef, keys: usize) -> Result<Groups> {
        let fields = schema.fields().iter().take(keys);
        let fields = fields.map(|field| SortField::new(field.data_type().clone())).collect();
        Ok(Groups { converter: RowConverter::new(fields)?, last: None })
    }

    /// The keys of each row, and the rows at which another group begins.
    fn starts(&mut self, keys: &[ArrayRef]) -> Result<Vec<usize>> {
        let rows: Rows = self.converter.convert_columns(keys)?;
        let differs = |at: usize| match at {
            0 => self.last.as_ref().is_some_and(|last| last.row() != rows.row(0)),
            at => rows.row(at - 1) != rows.row(at),
        };
        let starts = (0..rows.num_rows()).filter(|at| differs(*at)).collect();
        self.last = rows.num_rows().checked_sub(1).map(|last| rows.row(last).owned());
        Ok(starts)
    }
}

impl Collector {
    pub(super) fn new(
        spec: Arc<Spec>,
        schema: SchemaRef,
        reservation: MemoryReservation,
    ) -> Result<Collector> {
        let groups = (spec.unit == Unit::Group).then(|| Groups::new(&schema, spec.keys)).transpose()?;
        Ok(Collector { spec, schema, batches: Vec::new(), rows: 0, bytes: 0, reservation, groups })
    }

    /// Adds rows; gives the units that are complete.
    pub(super) fn push(&mut self, batch: RecordBatch) -> Result<Vec<RecordBatch>> {
        if batch.num_rows() == 0 {
            return Ok(Vec::new());
        }
        match self.spec.unit {
            Unit::Group => self.push_groups(&batch),
            Unit::Whole => {
                self.add(batch)?;
                Ok(Vec::new())
            }
            Unit::Chunk | Unit::ChunkGroup | Unit::Pair => {
                let mut complete = Vec::new();
                if CHUNK_ROWS < self.rows + batch.num_rows() && 0 < self.rows {
                    complete.push(self.flush()?);
                }
                self.add(batch)?;
                if CHUNK_ROWS <= self.rows || CHUNK_BYTES <= self.bytes {
                    complete.push(self.flush()?);
                }
                self.units(complete)
            }
        }
    }

    /// The units of the rows that are left.
    pub(super) fn finish(&mut self) -> Result<Vec<RecordBatch>> {
        // A function of all rows is called without any, too.
        if self.rows == 0 && self.spec.unit != Unit::Whole {
            return Ok(Vec::new());
        }
        let last = self.flush()?;
        self.units(vec![last])
    }

    fn add(&mut self, batch: RecordBatch) -> Result<()> {
        let bytes = batch.get_array_memory_size();
        if matches!(self.spec.unit, Unit::Group | Unit::Whole) {
            self.reservation.try_grow(bytes)?;
        }
        self.rows += batch.num_rows();
        self.bytes += bytes;
        self.batches.push(batch);
        Ok(())
    }

    fn push_groups(&mut self, batch: &RecordBatch) -> Result<Vec<RecordBatch>> {
        let keys = &batch.columns()[..self.spec.keys];
        let starts = match &mut self.groups {
            Some(groups) => groups.starts(keys)?,
            None => Vec::new(),
        };
        let mut complete = Vec::new();
        let mut from = 0;
        for start in starts {
            if from < start {
                self.add(batch.slice(from, start - from))?;
            }
            complete.push(self.flush()?);
            from = start;
        }
        self.add(batch.slice(from, batch.num_rows() - from))?;
        Ok(complete)
    }

    /// All rows that are collected, as one batch.
    fn flush(&mut self) -> Result<RecordBatch> {
        let batches = std::mem::take(&mut self.batches);
        (self.rows, self.bytes) = (0, 0);
        self.reservation.free();
        match <[_; 1]>::try_from(batches) {
            Ok([batch]) => Ok(batch),
            Err(batches) => Ok(concat_batches(&self.schema, &batches)?),
        }
    }

    /// Chunks as the units of this operator.
    fn units(&self, chunks: Vec<RecordBatch>) -> Result<Vec<RecordBatch>> {
        if self.spec.unit != Unit::ChunkGroup {
            return Ok(chunks);
        }
        let mut groups = Vec::new();
        for chunk in chunks {
            let sorted = self.by_keys(&chunk)?;
            let ranges = partition(&sorted.columns()[..self.spec.keys])?.ranges();
            groups.extend(ranges.into_iter().map(|range| sorted.slice(range.start, range.len())));
        }
        Ok(groups)
    }

    /// The rows of a chunk by their keys, then in their order.
    fn by_keys(&self, chunk: &RecordBatch) -> Result<RecordBatch> {
        let keys = chunk.columns()[..self.spec.keys].iter();
        let keys = keys.map(|key| SortColumn { values: Arc::clone(key), options: None });
        let order = self.spec.order.iter().flatten().map(|key| SortColumn {
            values: Arc::clone(chunk.column(key.column)),
            options: Some(key.options()),
        });
        let indices = lexsort_to_indices(&keys.chain(order).collect::<Vec<_>>(), None)?;
        Ok(take_record_batch(chunk, &indices)?)
    }
}
