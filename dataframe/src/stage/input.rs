//! The leaf of a fragment that reads rows which exist: the output of another stage, or a resident table.

use super::part::Resident;
use super::piece::{Piece, PieceSource};
use super::task::TaskInputs;
use crate::leaf_plan::{Leaf, LeafPlan};
use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use datafusion::common::{DataFusionError, Result, Statistics, exec_datafusion_err, stats::Precision};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering, Partitioning};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, PlanProperties};
use std::fmt;
use std::sync::Arc;

/// The maker of rows that a fragment reads.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// A resident table that no plan has numbered yet. Only plans that were not cut have it.
    Table(Arc<Resident>),
    /// A resident table, by its number in the job.
    Given(usize),
    /// Another stage of the job, by its number.
    Stage(usize),
}

/// The relation between the outputs of a source and the partitions of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// Partition `p` reads what task `p` made.
    Each,
    /// The only partition reads what all tasks made, in their order.
    Gather,
    /// Partition `p` reads output `p` of all tasks, in their order.
    Shuffle(usize),
}

/// Reads rows that exist.
pub(crate) type InputExec = LeafPlan<Input>;

/// The rows that a partition of a reader gives.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub(super) source: Source,
    pub(super) pattern: Pattern,
    /// Number of tasks, or parts, of the source.
    pub(super) tasks: usize,
    /// The columns of the source.
    pub(super) source_schema: SchemaRef,
    /// The columns to read, if not all.
    pub(super) projection: Option<Vec<usize>>,
    /// The order within each partition, if it is known.
    pub(super) ordering: Option<LexOrdering>,
    properties: Arc<PlanProperties>,
}

impl InputExec {
    /// A reader of all columns.
    pub(crate) fn new(
        source: Source,
        pattern: Pattern,
        tasks: usize,
        source_schema: SchemaRef,
        projection: Option<Vec<usize>>,
        ordering: Option<LexOrdering>,
    ) -> Result<InputExec> {
        let schema = match &projection {
            Some(columns) => Arc::new(source_schema.project(columns)?),
            None => Arc::clone(&source_schema),
        };
        let partitions = match pattern {
            Pattern::Each => tasks.max(1),
            Pattern::Gather => 1,
            Pattern::Shuffle(outputs) => outputs,
        };
        let equivalence = match &ordering {
            Some(ordering) => EquivalenceProperties::new_with_orderings(schema, [ordering.clone()]),
            None => EquivalenceProperties::new(schema),
        };
        let properties = PlanProperties::new(
            equivalence,
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let properties = Arc::new(properties);
        Ok(LeafPlan(Input { source, pattern, tasks, source_schema, projection, ordering, properties }))
    }

    /// A reader of a table that is not numbered yet.
    pub(crate) fn of_table(table: &Arc<Resident>, projection: Option<Vec<usize>>) -> Result<InputExec> {
        let schema = Arc::clone(&table.schema);
        InputExec::new(
            Source::Table(Arc::clone(table)),
            Pattern::Each,
            table.parts.len(),
            schema,
            projection,
            None,
        )
    }

    /// The plan of a scan of a table, as the library's planner wants it.
    pub(crate) fn scan_of_table(
        table: &Arc<Resident>,
        projection: Option<&Vec<usize>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(InputExec::of_table(table, projection.cloned())?))
    }

    /// The same reader of a table that has a number now.
    pub(super) fn numbered(&self, number: usize) -> InputExec {
        LeafPlan(Input { source: Source::Given(number), ..self.0.clone() })
    }
}

impl Input {
    /// The pieces that a partition reads, in their order.
    pub(super) fn pieces(&self, partition: usize) -> Vec<Piece> {
        let source = match self.source {
            Source::Stage(stage) => PieceSource::Stage(stage),
            Source::Given(table) => PieceSource::Given(table),
            Source::Table(_) => return Vec::new(),
        };
        let piece = |task, output| Piece { source, task, output };
        match self.pattern {
            Pattern::Each => (partition..self.tasks.min(partition + 1)).map(|task| piece(task, 0)).collect(),
            Pattern::Gather => (0..self.tasks).map(|task| piece(task, 0)).collect(),
            Pattern::Shuffle(_) => (0..self.tasks).map(|task| piece(task, partition)).collect(),
        }
    }
}

impl Leaf for Input {
    const NAME: &'static str = "InputExec";

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Source::Table(table) => write!(f, "table of {} rows", table.rows()),
            Source::Given(number) => write!(f, "table {number}"),
            Source::Stage(number) => write!(f, "stage {number}"),
        }?;
        match self.pattern {
            Pattern::Each => Ok(()),
            Pattern::Gather => write!(f, ", gathered"),
            Pattern::Shuffle(outputs) => write!(f, ", shuffled into {outputs}"),
        }
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let batches = match &self.source {
            Source::Table(table) => {
                let part = table.parts.get(partition);
                part.map(|part| part.batches()).transpose().map_err(external)?
            }
            _ => {
                let inputs = context.session_config().get_extension::<TaskInputs>();
                let inputs =
                    inputs.ok_or_else(|| exec_datafusion_err!("a fragment was run without its inputs"))?;
                Some(inputs.batches(self.pieces(partition))?)
            }
        };
        let (declared, projection) = (Arc::clone(&self.source_schema), self.projection.clone());
        let given = move |batch: crate::Result<RecordBatch>| {
            let batch = as_declared(batch.map_err(external)?, &declared)?;
            Ok(projection.as_ref().map_or(Ok(batch.clone()), |columns| batch.project(columns))?)
        };
        let rows = futures::stream::iter(batches.into_iter().flatten().map(given));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }

    fn statistics(&self) -> Statistics {
        let mut statistics = Statistics::new_unknown(&self.schema());
        if let Source::Table(table) = &self.source {
            statistics.num_rows = Precision::Exact(table.rows());
            statistics.total_byte_size = Precision::Inexact(table.bytes());
        }
        statistics
    }
}

fn external(error: crate::Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// A batch with the schema of its table: tasks may promise more of their columns than the table, or less.
fn as_declared(batch: RecordBatch, declared: &SchemaRef) -> Result<RecordBatch> {
    if batch.schema_ref() == declared {
        return Ok(batch);
    }
    let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(declared), batch.columns().to_vec(), &rows)?)
}
