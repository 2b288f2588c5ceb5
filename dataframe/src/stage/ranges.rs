//! Parts rows by ranges of a sort's keys, so that each range is sorted by a task of its own.
//!
//! The bounds of the ranges are quantiles of a sample of the rows, which an earlier stage takes. A range may
//! be larger than its share if many rows have equal keys, since these stay together.

use super::row_number::{Numbering, RowNumberExec};
use super::subqueries::visit_roots;
use arrow::array::{
    Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray, Int32Array, PrimitiveArray, RecordBatch,
    downcast_primitive_array,
};
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
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        visit_roots(self.ordering.iter().map(|key| &key.expr), visit)
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

    /// The bounds of so many ranges.
    fn bounds(&self, samples: &[RecordBatch], count: usize) -> Result<Bounds> {
        let mut rows = Vec::new();
        for batch in samples {
            rows.extend(self.converter.convert_columns(batch.columns())?.iter().map(|row| row.owned()));
        }
        rows.sort_unstable();
        let bound = |range: usize| rows.get(range * rows.len() / count).cloned();
        let rows: Vec<OwnedRow> = (1..count).filter_map(bound).collect();
        let columns = self.converter.convert_rows(rows.iter().map(OwnedRow::row))?;
        let only = <[ArrayRef; 1]>::try_from(columns).ok().map(|[column]| column);
        Ok(Bounds { rows, only: only.filter(|column| column.null_count() == 0) })
    }

    fn number(&self, batch: RecordBatch, bounds: &Bounds, schema: &Arc<Schema>) -> Result<RecordBatch> {
        let rows = batch.num_rows();
        let keys = self.ordering.iter().map(|key| key.expr.evaluate(&batch)?.into_array(rows));
        let keys = keys.collect::<Result<Vec<_>>>()?;
        let ranges = match self.ranges_of_values(&keys[0], bounds) {
            Some(ranges) => ranges,
            None => {
                let keys = self.converter.convert_columns(&keys)?;
                let range = |key| bounds.rows.partition_point(|bound| bound.row() <= key) as i32;
                Int32Array::from_iter_values(keys.iter().map(range))
            }
        };
        let mut columns = batch.columns().to_vec();
        columns.push(Arc::new(ranges));
        Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
    }

    /// The ranges of the values of an only key, if they can be compared without making bytes of them.
    fn ranges_of_values(&self, values: &ArrayRef, bounds: &Bounds) -> Option<Int32Array> {
        let bounds = bounds.only.as_ref()?;
        let descending = self.ordering.first().options.descending;
        if values.null_count() != 0 {
            return None;
        }
        downcast_primitive_array!(
            values => Some(ranges_of(values, bounds.as_primitive_opt()?, descending)),
            _ => None
        )
    }
}

/// The first keys of all ranges but the first.
struct Bounds {
    rows: Vec<OwnedRow>,
    /// The values of an only key, none of which is missing.
    only: Option<ArrayRef>,
}

/// The range of each value: the number of bounds that it does not come before.
fn ranges_of<T: ArrowPrimitiveType>(
    values: &PrimitiveArray<T>,
    bounds: &PrimitiveArray<T>,
    descending: bool,
) -> Int32Array {
    let bounds = bounds.values();
    let range = |value: &T::Native| {
        if descending {
            bounds.partition_point(|bound| bound.is_ge(*value))
        } else {
            bounds.partition_point(|bound| bound.is_le(*value))
        }
    };
    Int32Array::from_iter_values(values.values().iter().map(|value| range(value) as i32))
}

fn sort_fields(ordering: &LexOrdering, schema: &Schema) -> Result<Vec<SortField>> {
    let field =
        |key: &PhysicalSortExpr| Ok(SortField::new_with_options(key.expr.data_type(schema)?, key.options));
    ordering.iter().map(field).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::Float64Array;
    use arrow::compute::SortOptions;

    /// The ranges of a column by bounds of the same column.
    fn ranges(values: &ArrayRef, bounds: &ArrayRef, options: SortOptions) -> Vec<i32> {
        let schema = Schema::new(vec![Field::new("k", values.data_type().clone(), true)]);
        let key = PhysicalSortExpr::new(Arc::new(Column::new("k", 0)), options);
        let ordering = LexOrdering::new([key]).expect("a key");
        let keys = Keys::new(ordering, &schema).expect("keys");
        let batch = |column: &ArrayRef| {
            RecordBatch::try_new(Arc::new(schema.clone()), vec![Arc::clone(column)]).expect("a batch")
        };
        let bounds = keys.bounds(&[batch(bounds)], bounds.len()).expect("bounds");
        let numbered = Schema::new(vec![schema.field(0).clone(), Field::new(RANGE, DataType::Int32, false)]);
        let made = keys.number(batch(values), &bounds, &Arc::new(numbered)).expect("ranges");
        made.column(1).as_primitive::<arrow::datatypes::Int32Type>().values().to_vec()
    }

    #[test]
    fn values_get_the_ranges_that_their_bytes_get() {
        let specials = [f64::NEG_INFINITY, -1.5, -0.0, 0.0, 2.0, 2.0, f64::INFINITY, f64::NAN, -f64::NAN];
        let values: ArrayRef = Arc::new(Float64Array::from(specials.to_vec()));
        let with_null: Vec<Option<f64>> = specials.iter().copied().map(Some).chain([None]).collect();
        let with_null: ArrayRef = Arc::new(Float64Array::from(with_null));
        for descending in [false, true] {
            for nulls_first in [false, true] {
                let options = SortOptions { descending, nulls_first };
                // A missing value takes the way by bytes for all.
                let mut by_bytes = ranges(&with_null, &values, options);
                by_bytes.pop();
                assert_eq!(ranges(&values, &values, options), by_bytes, "{options:?}");
                assert!(by_bytes.contains(&0) && by_bytes.contains(&8), "{by_bytes:?}");
            }
        }
    }
}
