//! Rows that wait for their readers: in memory while there is room, else in a file.

use crate::engine::{Environment, SpillFile};
use crate::error::{Error, Result};
use crate::stage::{KeptPart, OutputRows, PartBatches};
use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Each output of a running task may have a file. Columns of whole batches are larger and pass by it.
const FILE_BUFFER_BYTES: usize = 64 << 10;

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

    /// Takes these bytes; `false` if there is no room for them.
    fn take(&self, bytes: usize) -> bool {
        let fits = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.max);
        self.used.try_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }
}

/// Bytes that are taken from a budget, and given back on drop.
#[derive(Debug)]
struct Share {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Share {
    /// Takes more bytes; `false` if there is no room for them.
    fn grow(&mut self, bytes: usize) -> bool {
        let grows = self.budget.take(bytes);
        self.bytes += if grows { bytes } else { 0 };
        grows
    }
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
    file_bytes: usize,
}

/// The first rows are in memory, those for which there was no room in a file.
struct Place {
    memory: Vec<RecordBatch>,
    file: Option<SpillFile>,
    _share: Share,
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let file = self.file.as_ref().map(|file| file.path());
        write!(f, "{} batches in memory, more in {file:?}", self.memory.len())
    }
}

impl Rows {
    /// Bytes of the rows that wait in a file.
    pub(super) fn file_bytes(&self) -> usize {
        self.file_bytes
    }
}

impl KeptPart for Rows {
    fn fetch(&self) -> Result<Vec<RecordBatch>> {
        self.batches()?.collect()
    }

    fn batches(&self) -> Result<PartBatches<'static>> {
        let memory = self.place.memory.clone().into_iter().map(Ok);
        let Some(file) = &self.place.file else { return Ok(Box::new(memory)) };
        // The file is there as long as one reads it.
        let place = Arc::clone(&self.place);
        let read = read(file)?.map(move |batch| {
            let _place = &place;
            Ok(batch?)
        });
        Ok(Box::new(memory.chain(read)))
    }

    fn rows(&self) -> usize {
        self.rows
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

/// The rows of an output while its task makes them.
pub(super) struct GrowingRows {
    memory: Vec<RecordBatch>,
    share: Share,
    file: Option<(SpillFile, Writer)>,
    files: Environment,
    rows: usize,
    bytes: usize,
    file_bytes: usize,
}

type Writer = StreamWriter<BufWriter<Box<dyn datafusion::execution::SpillWriter>>>;

impl GrowingRows {
    /// No rows yet. They stay in memory while they fit the budget.
    pub(super) fn new(budget: &Arc<Budget>, files: &Environment) -> GrowingRows {
        let share = Share { budget: Arc::clone(budget), bytes: 0 };
        let files = files.clone();
        GrowingRows { memory: Vec::new(), share, file: None, files, rows: 0, bytes: 0, file_bytes: 0 }
    }
}

impl OutputRows for GrowingRows {
    type Kept = Rows;

    fn push(&mut self, batch: RecordBatch) -> Result<()> {
        let bytes = batch.get_array_memory_size();
        self.rows += batch.num_rows();
        self.bytes += bytes;
        // Rows that follow some of the file follow them there.
        if self.file.is_none() && self.share.grow(bytes) {
            self.memory.push(batch);
            return Ok(());
        }
        let (_, writer) = match &mut self.file {
            Some(file) => file,
            none => none.insert(create(&self.files, batch.schema_ref())?),
        };
        self.file_bytes += bytes;
        Ok(writer.write(&batch)?)
    }

    fn finish(self) -> Result<Rows> {
        let GrowingRows { memory, share, file, rows, bytes, file_bytes, .. } = self;
        let file = file.map(|(file, writer)| close(writer).map(|()| file)).transpose()?;
        Ok(Rows { place: Arc::new(Place { memory, file, _share: share }), rows, bytes, file_bytes })
    }
}

fn create(files: &Environment, schema: &Schema) -> Result<(SpillFile, Writer)> {
    let file = files.spill_file("rows between stages")?;
    let writer = BufWriter::with_capacity(FILE_BUFFER_BYTES, file.open_writer()?);
    Ok((file, StreamWriter::try_new(writer, schema)?))
}

fn close(writer: Writer) -> Result<()> {
    let writer = writer.into_inner()?.into_inner().map_err(|error| error.into_error().to_string());
    Ok(writer.map_err(Error::Internal)?.finish()?)
}

/// Reads the batches of a file.
fn read(file: &SpillFile) -> Result<StreamReader<BufReader<File>>> {
    let path = file.path().ok_or_else(|| Error::Internal("rows between stages have no file".to_owned()))?;
    let opened = File::open(path).map_err(|error| Error::io(&path.display().to_string(), &error))?;
    Ok(StreamReader::try_new(BufReader::with_capacity(FILE_BUFFER_BYTES, opened), None)?)
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

    fn kept(batches: &[RecordBatch], budget: &Arc<Budget>, files: &Environment) -> Rows {
        let mut growing = GrowingRows::new(budget, files);
        batches.iter().for_each(|batch| growing.push(batch.clone()).expect("room"));
        growing.finish().expect("rows")
    }

    #[test]
    fn rows_beyond_the_budget_wait_in_a_file_and_come_back_equal() {
        let files = Environment::new(1 << 20, Vec::new()).expect("a temporary folder");
        let budget = Budget::new(100_000);
        let first = kept(&[batch(1_000), batch(10)], &budget, &files);
        // The last batch would fit the memory, but comes after one that is in the file.
        let second = kept(&[batch(20), batch(9_000), batch(7)], &budget, &files);
        assert_eq!((first.place.memory.len(), first.file_bytes()), (2, 0));
        assert_eq!(second.place.memory.len(), 1);
        assert!(0 < second.file_bytes() && second.file_bytes() < second.bytes());
        let path = second.place.file.as_ref().expect("a file").path().expect("a local file").to_owned();
        assert_eq!(first.fetch().expect("rows"), [batch(1_000), batch(10)]);
        assert_eq!(second.fetch().expect("rows"), [batch(20), batch(9_000), batch(7)]);
        assert_eq!((second.rows(), first.rows()), (9_027, 1_010));
        // One who reads keeps the file.
        let mut reading = second.batches().expect("a file");
        assert_eq!(reading.next().expect("a batch").expect("rows"), batch(20));
        drop((first, second));
        assert_eq!(reading.by_ref().collect::<Result<Vec<_>>>().expect("rows"), [batch(9_000), batch(7)]);
        drop(reading);
        assert!(!path.exists());
        assert_eq!(budget.used.load(Ordering::Relaxed), 0);
    }
}
