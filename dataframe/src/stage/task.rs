//! Runs one partition of a fragment: reads its pieces, gives its outputs.

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
    pieces: HashMap<Piece, Vec<RecordBatch>>,
    /// Rows that each task of a stage has made, by stage.
    rows: HashMap<usize, Vec<usize>>,
}

impl TaskInputs {
    /// Adds batches of a piece, after those that it has.
    pub fn insert(&mut self, piece: Piece, batches: Vec<RecordBatch>) {
        self.pieces.entry(piece).or_default().extend(batches);
    }

    /// Leaves of a piece the rows from `start` to `end` only.
    pub fn slice(&mut self, piece: Piece, start: usize, end: usize) {
        let Some(batches) = self.pieces.get_mut(&piece) else { return };
        let mut from = 0;
        for batch in batches.iter_mut() {
            let to = from + batch.num_rows();
            let (first, after) = (start.clamp(from, to), end.clamp(from, to));
            *batch = batch.slice(first - from, after.max(first) - first);
            from = to;
        }
        batches.retain(|batch| 0 < batch.num_rows());
    }

    /// Adds the numbers of rows of a stage's tasks.
    pub fn insert_rows(&mut self, stage: usize, rows: Vec<usize>) {
        self.rows.insert(stage, rows);
    }

    /// The batches of these pieces, one after the other.
    pub(super) fn batches(&self, pieces: &[Piece]) -> EngineResult<Vec<RecordBatch>> {
        let mut batches = Vec::new();
        for piece in pieces {
            let found = self.pieces.get(piece);
            let missing = || DataFusionError::Internal(format!("{piece:?} was not given to the task"));
            batches.extend(found.ok_or_else(missing)?.iter().cloned());
        }
        Ok(batches)
    }

    /// Number of rows that the tasks of a stage before this one have made.
    pub(super) fn rows_before(&self, stage: usize, task: usize) -> EngineResult<i64> {
        let missing = || DataFusionError::Internal(format!("the rows of stage {stage} were not counted"));
        let rows = self.rows.get(&stage).ok_or_else(missing)?;
        Ok(rows.iter().take(task).sum::<usize>() as i64)
    }
}

/// The rows that a task has made.
#[derive(Debug)]
pub struct TaskRows {
    /// The batches of each output.
    pub outputs: Vec<Vec<RecordBatch>>,
    /// Bytes that its operators wrote to files because memory did not suffice.
    pub spilled_bytes: usize,
}

/// Runs a partition of a fragment to its end.
pub(crate) async fn run(
    fragment: &Arc<dyn ExecutionPlan>,
    partition: usize,
    output: &Output,
    context: Arc<TaskContext>,
) -> Result<TaskRows> {
    let plan = by_file(Arc::clone(fragment))?;
    let mut stream = plan.execute(partition, context)?;
    let mut outputs = Outputs::new(output, fragment.schema())?;
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

/// Collects the rows of a task by output.
struct Outputs {
    parting: Parting,
    collected: Vec<BatchCoalescer>,
}

/// The way from a row to its output.
enum Parting {
    Whole,
    Hash(Box<BatchPartitioner>),
    Ranges,
}

impl Outputs {
    fn new(output: &Output, schema: SchemaRef) -> Result<Outputs> {
        let (parting, schema) = match output {
            Output::Whole => (Parting::Whole, schema),
            Output::Ranges(_) => (Parting::Ranges, ranged::without_range(&schema)),
            Output::Hash(columns, count) => {
                let hash = BatchPartitioner::new_hash_partitioner(columns.clone(), *count, Time::default())?;
                (Parting::Hash(Box::new(hash)), schema)
            }
        };
        let coalescer = || BatchCoalescer::new(Arc::clone(&schema), BATCH_ROWS);
        let collected = std::iter::repeat_with(coalescer).take(output.count()).collect();
        Ok(Outputs { parting, collected })
    }

    fn push(&mut self, batch: RecordBatch) -> Result<()> {
        let collected = &mut self.collected;
        match &mut self.parting {
            Parting::Whole => collected[0].push_batch(batch)?,
            Parting::Hash(hash) => {
                hash.partition(batch, |output, batch| Ok(collected[output].push_batch(batch)?))?
            }
            Parting::Ranges => {
                for (output, batch) in ranged::part(&batch, collected.len())? {
                    collected[output].push_batch(batch)?;
                }
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<Vec<Vec<RecordBatch>>> {
        let finish = |mut coalescer: BatchCoalescer| {
            coalescer.finish_buffered_batch()?;
            Ok(std::iter::from_fn(|| coalescer.next_completed_batch()).collect())
        };
        self.collected.into_iter().map(finish).collect()
    }
}
