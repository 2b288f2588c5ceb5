//! Numbers the rows of a plan: exactly, or only so that their order can be found again.
//!
//! An exact number needs the number of rows of all partitions before, so a plan is cut below it. A key of
//! the order needs nothing: it has the partition in its upper bits, and the row of the partition below.

use super::task::TaskInputs;
use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{
    DFSchema, DFSchemaRef, Result, Statistics, exec_datafusion_err, internal_err, not_impl_err,
};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, SortExpr, UserDefinedLogicalNodeCore};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{
    Distribution, EquivalenceProperties, LexOrdering, OrderingRequirements, PhysicalExpr, PhysicalSortExpr,
};
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, InputDistributionRequirements,
    PlanProperties, ReplaceChildrenOptions,
};
use futures::StreamExt;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

/// Bits of a key for the row of a partition.
const ROW_BITS: u32 = 36;
/// Bits of a key in all, which leaves room for what is put above it.
pub(crate) const KEY_BITS: u32 = 50;

/// Partitions whose rows a key can tell apart, at most.
pub(super) const KEYED_PARTITIONS_MAX: usize = 1 << (KEY_BITS - ROW_BITS);

/// The meaning of a row's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Numbering {
    /// The position in the whole table, from 0.
    Exact,
    /// A number that grows in the order of the rows.
    Key,
}

/// The logical node: its input with one more column, of type int64, at the end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RowNumber {
    pub(crate) input: LogicalPlan,
    pub(crate) column: String,
    pub(crate) numbering: Numbering,
    /// The order in which rows are numbered; empty if it is that of the input. A sort below would not do:
    /// planning drops sorts that nothing asks for.
    pub(crate) order: Vec<SortExpr>,
    schema: DFSchemaRef,
}

impl RowNumber {
    /// Adds a column with the numbers of rows to a plan.
    pub(crate) fn plan(
        input: LogicalPlan,
        column: &str,
        numbering: Numbering,
        order: Vec<SortExpr>,
    ) -> Result<LogicalPlan> {
        let node = RowNumber::new(input, column.to_owned(), numbering, order)?;
        Ok(LogicalPlan::Extension(Extension { node: Arc::new(node) }))
    }

    fn new(
        input: LogicalPlan,
        column: String,
        numbering: Numbering,
        order: Vec<SortExpr>,
    ) -> Result<RowNumber> {
        let mut fields: Vec<_> =
            input.schema().iter().map(|(table, field)| (table.cloned(), Arc::clone(field))).collect();
        fields.push((None, Arc::new(field(&column))));
        let metadata = input.schema().metadata().clone();
        let schema = Arc::new(DFSchema::new_with_metadata(fields, metadata)?);
        Ok(RowNumber { input, column, numbering, order, schema })
    }
}

impl PartialOrd for RowNumber {
    fn partial_cmp(&self, other: &RowNumber) -> Option<std::cmp::Ordering> {
        (&self.column, self.numbering).partial_cmp(&(&other.column, other.numbering))
    }
}

impl UserDefinedLogicalNodeCore for RowNumber {
    fn name(&self) -> &str {
        "RowNumber"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        self.order.iter().map(|key| key.expr.clone()).collect()
    }

    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        match self.numbering {
            // Fewer rows below would give other numbers.
            Numbering::Exact => self.schema.fields().iter().map(|field| field.name().clone()).collect(),
            Numbering::Key => HashSet::from([self.column.clone()]),
        }
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RowNumber: {} ({:?})", self.column, self.numbering)
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<RowNumber> {
        let order = exprs.into_iter().zip(&self.order).map(|(expr, key)| SortExpr { expr, ..key.clone() });
        match inputs.pop() {
            Some(input) => RowNumber::new(input, self.column.clone(), self.numbering, order.collect()),
            None => internal_err!("RowNumber without an input"),
        }
    }

    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let fields = self.input.schema().fields();
        let mut needed: Vec<usize> =
            output_columns.iter().copied().filter(|&column| column < fields.len()).collect();
        for column in self.order.iter().flat_map(|key| key.expr.column_refs()) {
            let at = fields.iter().position(|field| *field.name() == column.name)?;
            if !needed.contains(&at) {
                needed.push(at);
            }
        }
        needed.sort_unstable();
        Some(vec![needed])
    }
}

/// The physical node.
#[derive(Debug)]
pub(crate) struct RowNumberExec {
    pub(super) input: Arc<dyn ExecutionPlan>,
    pub(super) column: String,
    pub(super) numbering: Numbering,
    /// For exact numbers: the stage that makes the input, whose row counts are needed. `None` before the
    /// plan is cut, and if there is one partition only.
    pub(super) counted: Option<usize>,
    /// The order that the rows must have. A fragment does not have it any more: its input has the order.
    pub(super) order: Option<LexOrdering>,
    properties: Arc<PlanProperties>,
}

impl RowNumberExec {
    pub(crate) fn new(
        input: Arc<dyn ExecutionPlan>,
        column: String,
        numbering: Numbering,
        counted: Option<usize>,
        order: Option<LexOrdering>,
    ) -> RowNumberExec {
        let mut fields = input.schema().fields().to_vec();
        fields.push(Arc::new(field(&column)));
        let schema = Arc::new(Schema::new_with_metadata(fields, input.schema().metadata().clone()));
        let number = Arc::new(Column::new(&column, input.schema().fields().len()));
        let equivalence =
            EquivalenceProperties::new_with_orderings(schema, [[PhysicalSortExpr::new_default(number)]]);
        let properties = PlanProperties::new(
            equivalence,
            input.output_partitioning().clone(),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        RowNumberExec { input, column, numbering, counted, order, properties: Arc::new(properties) }
    }

    /// The number of a partition's first row.
    fn first(&self, partition: usize, context: &TaskContext) -> Result<i64> {
        match (self.numbering, self.counted) {
            (Numbering::Key, _) if partition >> (KEY_BITS - ROW_BITS) > 0 => {
                not_impl_err!("the rows of {partition} partitions have no keys")
            }
            (Numbering::Key, _) => Ok((partition as i64) << ROW_BITS),
            (Numbering::Exact, None) if partition == 0 => Ok(0),
            (Numbering::Exact, None) => internal_err!("rows of several partitions are numbered before a cut"),
            (Numbering::Exact, Some(stage)) => {
                let inputs = context.session_config().get_extension::<TaskInputs>();
                let inputs =
                    inputs.ok_or_else(|| exec_datafusion_err!("a fragment was run without its inputs"))?;
                inputs.rows_before(stage, partition)
            }
        }
    }
}

impl DisplayAs for RowNumberExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RowNumberExec: {} ({:?})", self.column, self.numbering)
    }
}

impl ExecutionPlan for RowNumberExec {
    fn name(&self) -> &'static str {
        "RowNumberExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![match self.order {
            Some(_) => Distribution::SinglePartition,
            None => Distribution::UnspecifiedDistribution,
        }])
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![self.order.clone().map(OrderingRequirements::from)]
    }

    /// It does, but the planner would move sorts below it then, and rows would get other numbers.
    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match children.pop() {
            Some(input) => {
                let (column, order) = (self.column.clone(), self.order.clone());
                Ok(Arc::new(RowNumberExec::new(input, column, self.numbering, self.counted, order)))
            }
            None => internal_err!("RowNumberExec without an input"),
        }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mode = datafusion::physical_plan::ChildrenPropertiesMode::Recompute;
        self.replace_children(children, ReplaceChildrenOptions::new(mode))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let mut next = self.first(partition, &context)?;
        let schema = self.schema();
        let numbered = Arc::clone(&schema);
        let input = self.input.execute(partition, context)?;
        let stream = input.map(move |batch| {
            let batch = batch?;
            let end = next + batch.num_rows() as i64;
            let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(next..end));
            next = end;
            let mut columns = batch.columns().to_vec();
            columns.push(numbers);
            Ok(RecordBatch::try_new(Arc::clone(&numbered), columns)?)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream)))
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(
        &self,
        input: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.schema());
        if let Some(input) = input.first() {
            statistics.num_rows = input.num_rows;
            statistics.total_byte_size = input.total_byte_size.to_inexact();
        }
        Ok(Arc::new(statistics))
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }
}

fn field(column: &str) -> Field {
    Field::new(column, DataType::Int64, false)
}
