//! Parts rows by ranges of a sort's keys, so that each range is sorted by a task of its own.
//!
//! The bounds of the ranges are quantiles of a sample of the rows, which an earlier stage takes. A range may
//! be larger than its share if many rows have equal keys, since these stay together.

use super::row_number::{Numbering, RowNumberExec};
use arrow::array::{ArrayRef, Int32Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result, ScalarValue, Statistics, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, Literal};
use datafusion::physical_expr::{
    EquivalenceProperties, LexOrdering, Partitioning, PhysicalExpr, PhysicalSortExpr,
};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
    ReplaceChildrenOptions,
};
use futures::{StreamExt, TryStreamExt};
use std::fmt;
use std::sync::Arc;

/// One row of so many is in the sample; a power of two.
const ROWS_PER_SAMPLE: i64 = 512;
/// The column with the number of a row's range.
const RANGE: &str = "__range";

/// Whether rows can be parted by these keys.
pub(super) fn supports(ordering: &LexOrdering, schema: &Schema) -> bool {
    sort_fields(ordering, schema).is_ok_and(|fields| RowConverter::supports_fields(&fields))
}

/// The keys of a sample of the rows of each partition.
pub(super) fn sample(
    input: Arc<dyn ExecutionPlan>,
    ordering: &LexOrdering,
) -> Result<Arc<dyn ExecutionPlan>> {
    let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new("__row", input.schema().fields().len()));
    let literal = |value: i64| -> Arc<dyn PhysicalExpr> { Arc::new(Literal::new(ScalarValue::from(value))) };
    let numbered = RowNumberExec::new(input, "__row".to_owned(), Numbering::Key, None, None);
    let low_bits = BinaryExpr::new(column, Operator::BitwiseAnd, literal(ROWS_PER_SAMPLE - 1));
    let is_sampled = BinaryExpr::new(Arc::new(low_bits), Operator::Eq, literal(0));
    let sampled = FilterExec::try_new(Arc::new(is_sampled), Arc::new(numbered))?;
    let keys = ordering.iter().enumerate().map(|(at, key)| (Arc::clone(&key.expr), format!("key_{at}")));
    Ok(Arc::new(ProjectionExec::try_new(keys.collect::<Vec<_>>(), Arc::new(sampled))?))
}

/// Adds the number of its range to each row, as the last column.
#[derive(Debug)]
pub(super) struct RangeExec {
    pub(super) input: Arc<dyn ExecutionPlan>,
    /// The keys of the sample, in one partition.
    pub(super) samples: Arc<dyn ExecutionPlan>,
    pub(super) ordering: LexOrdering,
    pub(super) count: usize,
    properties: Arc<PlanProperties>,
}

impl RangeExec {
    pub(super) fn new(
        input: Arc<dyn ExecutionPlan>,
        samples: Arc<dyn ExecutionPlan>,
        ordering: LexOrdering,
        count: usize,
    ) -> RangeExec {
        let mut fields = input.schema().fields().to_vec();
        fields.push(Arc::new(Field::new(RANGE, DataType::Int32, false)));
        let schema = Arc::new(Schema::new_with_metadata(fields, input.schema().metadata().clone()));
        let partitions = input.output_partitioning().partition_count();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(partitions),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        RangeExec { input, samples, ordering, count, properties: Arc::new(properties) }
    }
}

impl DisplayAs for RangeExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RangeExec: {} ranges of [{}]", self.count, self.ordering)
    }
}

impl ExecutionPlan for RangeExec {
    fn name(&self) -> &'static str {
        "RangeExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input, &self.samples]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match <[_; 2]>::try_from(children) {
            Ok([input, samples]) => {
                Ok(Arc::new(RangeExec::new(input, samples, self.ordering.clone(), self.count)))
            }
            Err(children) => internal_err!("RangeExec with {} inputs", children.len()),
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
        let samples = self.samples.execute(0, Arc::clone(&context))?;
        let input = self.input.execute(partition, context)?;
        let keys = Keys::new(self.ordering.clone(), &self.input.schema())?;
        let (schema, count) = (self.schema(), self.count);
        let numbered = Arc::clone(&schema);
        let rows = async move {
            let samples = samples.try_collect::<Vec<_>>().await?;
            let bounds = keys.bounds(&samples, count)?;
            Ok::<_, DataFusionError>(input.map(move |batch| keys.number(batch?, &bounds, &numbered)))
        };
        let stream = futures::stream::once(rows).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream)))
    }

    fn statistics_from_inputs(&self, _: &[Arc<Statistics>], _: &StatisticsArgs) -> Result<Arc<Statistics>> {
        Ok(Arc::new(Statistics::new_unknown(&self.schema())))
    }
}

/// The keys of a sort as rows of bytes, which compare as the sort does.
struct Keys {
    ordering: LexOrdering,
    converter: RowConverter,
}

impl Keys {
    fn new(ordering: LexOrdering, schema: &Schema) -> Result<Keys> {
        let converter = RowConverter::new(sort_fields(&ordering, schema)?)?;
        Ok(Keys { ordering, converter })
    }

    /// The first keys of all ranges but the first.
    fn bounds(&self, samples: &[RecordBatch], count: usize) -> Result<Vec<OwnedRow>> {
        let mut rows = Vec::new();
        for batch in samples {
            rows.extend(self.converter.convert_columns(batch.columns())?.iter().map(|row| row.owned()));
        }
        rows.sort_unstable();
        let bound = |range: usize| rows.get(range * rows.len() / count).cloned();
        Ok((1..count).filter_map(bound).collect())
    }

    fn number(&self, batch: RecordBatch, bounds: &[OwnedRow], schema: &Arc<Schema>) -> Result<RecordBatch> {
        let rows = batch.num_rows();
        let keys = self.ordering.iter().map(|key| key.expr.evaluate(&batch)?.into_array(rows));
        let keys = self.converter.convert_columns(&keys.collect::<Result<Vec<_>>>()?)?;
        let range = |key| bounds.partition_point(|bound| bound.row() <= key) as i32;
        let ranges: ArrayRef = Arc::new(Int32Array::from_iter_values(keys.iter().map(range)));
        let mut columns = batch.columns().to_vec();
        columns.push(ranges);
        Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
    }
}

fn sort_fields(ordering: &LexOrdering, schema: &Schema) -> Result<Vec<SortField>> {
    let field =
        |key: &PhysicalSortExpr| Ok(SortField::new_with_options(key.expr.data_type(schema)?, key.options));
    ordering.iter().map(field).collect()
}
