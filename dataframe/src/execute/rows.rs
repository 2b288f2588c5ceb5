//! Rows that wait for their readers: in memory while there is room, else in a file.

use crate::engine::{Environment, SpillFile};
use crate::error::{Error, Result};
use crate::stage::KeptPart;
use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::datatypes::Schema;
use arrow::ipc::reader::StreamDecoder;
use arrow::ipc::writer::StreamWriter;
use std::io::BufWriter;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The bytes that rows may take in memory.
#[derive(Debug)]
pub(super) struct Budget {
    max: usize,
    used: AtomicUsize,
}

impl Budget {
    pub(super) fn new(bytes: u64) -> Arc<Budget> {
        Arc::new(Budget { max: usize::try_from(bytes).unwrap_or(usize::MAX), used: AtomicUsize::new(0) })
    }

    /// Takes bytes until the share is dropped; `None` if there is no room for them.
    fn take(self: &Arc<Budget>, bytes: usize) -> Option<Share> {
        let fits = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.max);
        self.used.try_update(Ordering::Relaxed, Ordering::Relaxed, fits).ok()?;
        Some(Share { budget: Arc::clone(self), bytes })
    }
}

/// Bytes that are taken from a budget, and given back on drop.
#[derive(Debug)]
struct Share {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The rows of an output of a task.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    place: Arc<Place>,
    rows: usize,
    bytes: usize,
}

enum Place {
    Memory { batches: Vec<RecordBatch>, _share: Option<Share> },
    File(SpillFile),
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::Memory { batches, .. } => write!(f, "{} batches", batches.len()),
            Place::File(file) => write!(f, "{:?}", file.path()),
        }
    }
}

impl Rows {
    /// Keeps rows in memory if they fit the budget, else in a file.
    pub(super) fn keep(batches: Vec<RecordBatch>, budget: &Arc<Budget>, files: &Environment) -> Result<Rows> {
        let rows = batches.iter().map(RecordBatch::num_rows).sum();
        let bytes = batches.iter().map(RecordBatch::get_array_memory_size).sum();
        let place = match (budget.take(bytes), batches.first()) {
            (None, Some(first)) => Place::File(write(first.schema_ref(), &batches, files)?),
            (share, _) => Place::Memory { batches, _share: share },
        };
        Ok(Rows { place: Arc::new(place), rows, bytes })
    }

    /// Bytes of the rows if they wait in a file.
    pub(super) fn file_bytes(&self) -> usize {
        match *self.place {
            Place::Memory { .. } => 0,
            Place::File(_) => self.bytes,
        }
    }
}

impl KeptPart for Rows {
    fn fetch(&self) -> Result<Vec<RecordBatch>> {
        match &*self.place {
            Place::Memory { batches, .. } => Ok(batches.clone()),
            Place::File(file) => read(file),
        }
    }

    fn rows(&self) -> usize {
        self.rows
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

fn write(schema: &Schema, batches: &[RecordBatch], files: &Environment) -> Result<SpillFile> {
    let file = files.spill_file("rows between stages")?;
    let mut writer = StreamWriter::try_new(BufWriter::with_capacity(1 << 20, file.open_writer()?), schema)?;
    for batch in batches {
        writer.write(batch)?;
    }
    let writer = writer.into_inner()?.into_inner().map_err(|error| error.into_error().to_string());
    writer.map_err(Error::Internal)?.finish()?;
    Ok(file)
}

/// The batches of a file, whose columns share one buffer.
fn read(file: &SpillFile) -> Result<Vec<RecordBatch>> {
    let path = file.path().ok_or_else(|| Error::Internal("rows between stages have no file".to_owned()))?;
    let mut bytes =
        Buffer::from(std::fs::read(path).map_err(|error| Error::io(&path.display().to_string(), &error))?);
    let (mut decoder, mut batches) = (StreamDecoder::new(), Vec::new());
    while let Some(batch) = decoder.decode(&mut bytes)? {
        batches.push(batch);
    }
    decoder.finish()?;
    Ok(batches)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, Int64Array, StringArray};

    fn batch(rows: i64) -> RecordBatch {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
        let texts: ArrayRef =
            Arc::new((0..rows).map(|n| (n % 3 != 0).then(|| n.to_string())).collect::<StringArray>());
        RecordBatch::try_from_iter([("n", numbers), ("t", texts)]).expect("equal lengths")
    }

    #[test]
    fn rows_beyond_the_budget_wait_in_a_file_and_come_back_equal() {
        let files = Environment::new(1 << 20, Vec::new()).expect("a temporary folder");
        let budget = Budget::new(100_000);
        let first = Rows::keep(vec![batch(1_000), batch(10)], &budget, &files).expect("memory");
        let second = Rows::keep(vec![batch(9_000), batch(7)], &budget, &files).expect("a file");
        assert!(matches!(*first.place, Place::Memory { .. }));
        let Place::File(file) = &*second.place else { panic!("{second:?} is in memory") };
        let path = file.path().expect("a local file").to_owned();
        assert_eq!(first.fetch().expect("rows"), [batch(1_000), batch(10)]);
        assert_eq!(second.fetch().expect("rows"), [batch(9_000), batch(7)]);
        assert_eq!((second.rows(), first.rows()), (9_007, 1_010));
        drop((first, second));
        assert!(!path.exists());
        assert_eq!(budget.used.load(Ordering::Relaxed), 0);
    }
}
