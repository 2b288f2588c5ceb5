//! Runs one partition of a fragment: reads its pieces, gives its outputs.

use super::part::{KeptPart, LocalPart, PartBatches, batches_or_error};
use super::piece::Piece;
use super::ranged;
use crate::error::Result;
use crate::scan::by_file;
use arrow::array::RecordBatch;
use arrow::compute::BatchCoalescer;
use arrow::datatypes::SchemaRef;
use datafusion::common::{DataFusionError, Result as EngineResult};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::metrics::{MetricValue, Time};
use datafusion::physical_plan::repartition::BatchPartitioner;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use futures::StreamExt;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Rows of a batch that a task gives, unless it has fewer.
const BATCH_ROWS: usize = 16 * 1024;

/// The destination of a stage's rows.
#[derive(Clone, Debug)]
pub(crate) enum Output {
    /// One output for each task.
    Whole,
    /// As many outputs as given, by the hash of these columns.
    Hash(Vec<Arc<dyn PhysicalExpr>>, usize),
    /// As many outputs as given, by the number in the last column, which no output has.
    Ranges(usize),
}

impl Output {
    /// The number of outputs of each task.
    pub(crate) fn count(&self) -> usize {
        match self {
            Output::Whole => 1,
            Output::Hash(_, count) | Output::Ranges(count) => *count,
        }
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Output::Whole => f.write_str("one output each"),
            Output::Ranges(count) => write!(f, "{count} outputs each, by range"),
            Output::Hash(columns, count) => {
                let columns: Vec<String> = columns.iter().map(ToString::to_string).collect();
                write!(f, "{count} outputs each, by {}", columns.join(", "))
            }
        }
    }
}

/// The inputs of one task.
#[derive(Debug, Default)]
pub struct TaskInputs {
    pieces: HashMap<Piece, Input>,
    /// Rows that each task of a stage has made, by stage.
    rows: HashMap<usize, Vec<usize>>,
}

/// The rows of a piece, which are read when the operator that needs them asks for them.
#[derive(Debug, Default)]
struct Input {
    parts: Vec<Arc<dyn KeptPart>>,
    /// The rows to read, if not all.
    range: Option<(usize, usize)>,
}

impl TaskInputs {
    /// Adds batches of a piece, after those that it has.
    pub fn insert(&mut self, piece: Piece, batches: Vec<RecordBatch>) {
        self.insert_part(piece, Arc::new(LocalPart(batches)));
    }

    /// Adds the rows of a part to a piece, after those that it has. They are read when an operator asks for
    /// them, and again if another one does.
    pub fn insert_part(&mut self, piece: Piece, part: Arc<dyn KeptPart>) {
        self.pieces.entry(piece).or_default().parts.push(part);
    }

    /// Leaves of a piece the rows from `start` to `end` only.
    pub fn slice(&mut self, piece: Piece, start: usize, end: usize) {
        if let Some(input) = self.pieces.get_mut(&piece) {
            input.range = Some((start, end));
        }
    }

    /// Adds the numbers of rows of a stage's tasks.
    pub fn insert_rows(&mut self, stage: usize, rows: Vec<usize>) {
        self.rows.insert(stage, rows);
    }

    /// The batches of these pieces, one after the other. A part is opened when those before it were read.
    pub(super) fn batches(self: &Arc<TaskInputs>, pieces: Vec<Piece>) -> EngineResult<PartBatches<'static>> {
        for piece in &pieces {
            let missing = || DataFusionError::Internal(format!("{piece:?} was not given to the task"));
            self.pieces.get(piece).ok_or_else(missing)?;
        }
        let inputs = Arc::clone(self);
        let input = move |piece| inputs.pieces.get(&piece).map(Input::batches);
        Ok(Box::new(pieces.into_iter().filter_map(input).flatten()))
    }

    /// Number of rows that the tasks of a stage before this one have made.
    pub(super) fn rows_before(&self, stage: usize, task: usize) -> EngineResult<i64> {
        let missing = || DataFusionError::Internal(format!("the rows of stage {stage} were not counted"));
        let rows = self.rows.get(&stage).ok_or_else(missing)?;
        Ok(rows.iter().take(task).sum::<usize>() as i64)
    }
}

impl Input {
    /// The batches of the parts, without the rows outside of the range.
    fn batches(&self) -> PartBatches<'static> {
        let parts = self.parts.clone().into_iter();
        let Some((start, end)) = self.range else {
            return Box::new(parts.flat_map(|part| batches_or_error(part.batches())));
        };
        let mut from = 0;
        Box::new(parts.flat_map(move |part| {
            let to = from + part.rows();
            let (first, after) = (start.clamp(from, to) - from, end.clamp(from, to) - from);
            from = to;
            rows_of(&part, first, after)
        }))
    }
}

/// The rows of a part from `start` to `end`. It is not opened for none.
fn rows_of(part: &Arc<dyn KeptPart>, start: usize, end: usize) -> PartBatches<'static> {
    if start == end {
        return Box::new(std::iter::empty());
    }
    let mut from = 0;
    Box::new(batches_or_error(part.batches()).filter_map(move |batch| {
        let Ok(batch) = batch else { return Some(batch) };
        let to = from + batch.num_rows();
        let (first, after) = (start.clamp(from, to), end.clamp(from, to));
        let kept = (first < after).then(|| Ok(batch.slice(first - from, after - first)));
        from = to;
        kept
    }))
}

/// The place of the rows of one output while a task makes them.
pub trait OutputRows {
    /// The rows when all are made.
    type Kept;

    /// Adds rows after those that were added.
    ///
    /// # Errors
    /// There is no room for them.
    fn push(&mut self, batch: RecordBatch) -> Result<()>;

    /// No more rows come.
    ///
    /// # Errors
    /// As [`OutputRows::push`].
    fn finish(self) -> Result<Self::Kept>;
}

impl OutputRows for Vec<RecordBatch> {
    type Kept = Vec<RecordBatch>;

    fn push(&mut self, batch: RecordBatch) -> Result<()> {
        Vec::push(self, batch);
        Ok(())
    }

    fn finish(self) -> Result<Vec<RecordBatch>> {
        Ok(self)
    }
}

/// The rows that a task has made.
#[derive(Debug)]
pub struct TaskRows<Rows = Vec<RecordBatch>> {
    /// The batches of each output.
    pub outputs: Vec<Rows>,
    /// Bytes that its operators wrote to files because memory did not suffice.
    pub spilled_bytes: usize,
}

/// Runs a partition of a fragment to its end. Each of its outputs is collected in a place of its own, made by
/// its number.
pub(crate) async fn run<Rows: OutputRows>(
    fragment: &Arc<dyn ExecutionPlan>,
    partition: usize,
    output: &Output,
    context: Arc<TaskContext>,
    place: impl Fn(usize) -> Rows,
) -> Result<TaskRows<Rows::Kept>> {
    let plan = by_file(Arc::clone(fragment))?;
    let mut stream = plan.execute(partition, context)?;
    let mut outputs = Outputs::new(output, fragment.schema(), place)?;
    while let Some(batch) = stream.next().await {
        outputs.push(batch?)?;
    }
    Ok(TaskRows { outputs: outputs.finish()?, spilled_bytes: spilled_bytes(&plan, Some(partition)) })
}

/// Bytes that the operators of a fragment have written to files in a partition, or in all of them. Tasks of
/// one process may share the operators.
fn spilled_bytes(plan: &Arc<dyn ExecutionPlan>, partition: Option<usize>) -> usize {
    let metrics = plan.metrics().unwrap_or_default();
    let of_task = metrics.iter().filter(|metric| partition.is_none() || metric.partition() == partition);
    let own = of_task.filter_map(|metric| match metric.value() {
        MetricValue::SpilledBytes(bytes) => Some(bytes.value()),
        _ => None,
    });
    let children = plan.children().into_iter().map(|child| {
        let same =
            child.output_partitioning().partition_count() == plan.output_partitioning().partition_count();
        spilled_bytes(child, partition.filter(|_| same))
    });
    own.sum::<usize>() + children.sum::<usize>()
}

/// Parts the rows of a task among its outputs.
struct Outputs<Rows> {
    parting: Parting,
    collected: Vec<Collected<Rows>>,
}

/// The way from a row to its output.
enum Parting {
    Whole,
    Hash(Box<BatchPartitioner>),
    Ranges,
}

/// The rows of an output: whole batches in their place, and the rows of the next one.
struct Collected<Rows> {
    next: BatchCoalescer,
    whole: Rows,
}

impl<Rows: OutputRows> Outputs<Rows> {
    fn new(output: &Output, schema: SchemaRef, place: impl Fn(usize) -> Rows) -> Result<Outputs<Rows>> {
        let (parting, schema) = match output {
            Output::Whole => (Parting::Whole, schema),
            Output::Ranges(_) => (Parting::Ranges, ranged::without_range(&schema)),
            Output::Hash(columns, count) => {
                let hash = BatchPartitioner::new_hash_partitioner(columns.clone(), *count, Time::default())?;
                (Parting::Hash(Box::new(hash)), schema)
            }
        };
        let next = || BatchCoalescer::new(Arc::clone(&schema), BATCH_ROWS);
        let collected = (0..output.count()).map(|number| Collected { next: next(), whole: place(number) });
        Ok(Outputs { parting, collected: collected.collect() })
    }

    fn push(&mut self, batch: RecordBatch) -> Result<()> {
        let collected = &mut self.collected;
        match &mut self.parting {
            Parting::Whole => collected[0].push(batch)?,
            Parting::Hash(hash) => {
                hash.partition(batch, |output, batch| Ok(collected[output].push(batch)?))?
            }
            Parting::Ranges => {
                for (output, batch) in ranged::part(&batch, collected.len())? {
                    collected[output].push(batch)?;
                }
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<Vec<Rows::Kept>> {
        self.collected.into_iter().map(Collected::finish).collect()
    }
}

impl<Rows: OutputRows> Collected<Rows> {
    fn push(&mut self, batch: RecordBatch) -> Result<()> {
        self.next.push_batch(batch)?;
        self.keep()
    }

    /// Moves batches that are whole to their place.
    fn keep(&mut self) -> Result<()> {
        while let Some(batch) = self.next.next_completed_batch() {
            self.whole.push(batch)?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Rows::Kept> {
        self.next.finish_buffered_batch()?;
        self.keep()?;
        self.whole.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::stage::piece::PieceSource;
    use arrow::array::{ArrayRef, AsArray, Int64Array};
    use arrow::datatypes::Int64Type;

    /// Rows that cannot be read.
    #[derive(Debug)]
    struct Unreadable(usize);

    impl KeptPart for Unreadable {
        fn fetch(&self) -> Result<Vec<RecordBatch>> {
            Err(Error::Lost("it was read".to_owned()))
        }

        fn rows(&self) -> usize {
            self.0
        }

        fn bytes(&self) -> usize {
            0
        }
    }

    fn numbers(from: i64, to: i64) -> Arc<dyn KeptPart> {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(from..to));
        Arc::new(LocalPart(vec![RecordBatch::try_from_iter([("n", numbers)]).expect("a column")]))
    }

    fn read(inputs: TaskInputs, piece: Piece) -> Result<Vec<i64>> {
        let batches = Arc::new(inputs).batches(vec![piece])?.collect::<Result<Vec<_>>>()?;
        let values =
            batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().iter());
        Ok(values.copied().collect())
    }

    #[test]
    fn only_parts_with_wanted_rows_are_read() {
        let piece = Piece { source: PieceSource::Stage(0), task: 0, output: 0 };
        let given = |start, end| {
            let mut inputs = TaskInputs::default();
            inputs.insert_part(piece, Arc::new(Unreadable(10)));
            inputs.insert_part(piece, numbers(10, 20));
            inputs.insert_part(piece, numbers(20, 25));
            inputs.insert_part(piece, Arc::new(Unreadable(5)));
            inputs.slice(piece, start, end);
            inputs
        };
        assert_eq!(read(given(12, 25), piece).expect("rows"), (12..25).collect::<Vec<_>>());
        assert_eq!(read(given(20, 21), piece).expect("rows"), [20]);
        assert!(matches!(read(given(9, 12), piece), Err(Error::Lost(_))));
    }
}
