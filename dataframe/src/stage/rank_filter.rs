//! Drops rows below a window that a filter on their rank above it would drop.
//!
//! `row_number() over (partition by g order by x) <= 3` asks for the first three rows of each group, but the
//! window sorts all of them. A row that comes after three others of its group in its own partition is not
//! among the first three of all, so it is dropped before rows are exchanged and sorted. What is left is a
//! superset: the window and the filter stay. Of n rows of a group in random order, about k (1 + ln(n / k))
//! are left for the first k.

use arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use arrow::compute::BatchCoalescer;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::row::{RowConverter, SortField};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue, Statistics, internal_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, Literal};
use datafusion::physical_expr::scalar_subquery::ScalarSubqueryExpr;
use datafusion::physical_expr::utils::split_conjunction;
use datafusion::physical_expr::window::{StandardWindowExpr, WindowExpr};
use datafusion::physical_expr::{LexOrdering, PhysicalExpr};
use datafusion::physical_plan::aggregates::group_values::{GroupValues, new_group_values};
use datafusion::physical_plan::aggregates::order::GroupOrdering;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowUDFExpr};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};
use futures::StreamExt;
use std::fmt;
use std::sync::Arc;

/// More first rows of a group than this are not looked for: each takes 16 bytes of every group.
const COUNT_MAX: usize = 16;
/// Rows after which a filter must have shown that it is worth its work.
const TRIAL_ROWS: usize = 1 << 20;

type Plan = Arc<dyn ExecutionPlan>;

/// The plan with a [`RankFilterExec`] below each window whose ranks a filter limits.
pub(super) fn below_windows(plan: Plan) -> Result<Plan> {
    let changed = plan.transform_down(|node| {
        let Some(filter) = node.downcast_ref::<FilterExec>() else { return Ok(Transformed::no(node)) };
        for (column, count) in rank_limits(filter.predicate()) {
            if let Some(input) = below_window(filter.input(), column, count)? {
                return Ok(Transformed::yes(replace_children_if_necessary(node, vec![input])?));
            }
        }
        Ok(Transformed::no(node))
    })?;
    Ok(changed.data)
}

/// The columns that must be at most a number for a row to pass, and these numbers.
fn rank_limits(predicate: &Arc<dyn PhysicalExpr>) -> Vec<(usize, usize)> {
    split_conjunction(predicate).into_iter().filter_map(rank_limit).collect()
}

fn rank_limit(condition: &Arc<dyn PhysicalExpr>) -> Option<(usize, usize)> {
    let condition = condition.downcast_ref::<BinaryExpr>()?;
    let (left, right) = (condition.left(), condition.right());
    let (column, number, is_strict) = match condition.op() {
        Operator::LtEq | Operator::Eq => (left, right, false),
        Operator::Lt => (left, right, true),
        Operator::GtEq => (right, left, false),
        Operator::Gt => (right, left, true),
        _ => return None,
    };
    let column = column.downcast_ref::<Column>()?.index();
    let number = number.downcast_ref::<Literal>()?.value();
    let ScalarValue::UInt64(Some(number)) = number.cast_to(&DataType::UInt64).ok()? else { return None };
    let count = usize::try_from(number).ok()?.checked_sub(usize::from(is_strict))?;
    (1..=COUNT_MAX).contains(&count).then_some((column, count))
}

/// A plan whose column is a rank of a window below, with a filter of the first rows of each group below that.
fn below_window(plan: &Plan, column: usize, count: usize) -> Result<Option<Plan>> {
    let mut input = None;
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let of = projection.expr().get(column).and_then(|made| made.expr.downcast_ref::<Column>());
        if let Some(of) = of {
            input = below_window(projection.input(), of.index(), count)?;
        }
    } else if let Some(window) = plan.downcast_ref::<BoundedWindowAggExec>()
        && let Some(rank) = rank_at(window, column)
    {
        input = below_sort(window.input(), rank, count, false)?;
    }
    input.map(|input| replace_children_if_necessary(Arc::clone(plan), vec![input])).transpose()
}

/// The rank that a column of a window is, if the window has no function that needs more rows than the first.
fn rank_at(window: &BoundedWindowAggExec, column: usize) -> Option<&Arc<dyn WindowExpr>> {
    let functions = window.window_expr();
    let rank = functions.get(column.checked_sub(window.input().schema().fields().len())?)?;
    // Many rows may have one of the first dense ranks.
    let is_limited = rank_name(rank)? != "dense_rank" && functions.iter().all(|other| ranks_as(other, rank));
    is_limited.then_some(rank)
}

/// Whether a function ranks the rows of the same groups in the same order as another.
fn ranks_as(function: &Arc<dyn WindowExpr>, rank: &Arc<dyn WindowExpr>) -> bool {
    rank_name(function).is_some()
        && function.partition_by() == rank.partition_by()
        && function.order_by() == rank.order_by()
}

/// The name of a function whose value depends on the rows of its group before a row alone.
fn rank_name(window: &Arc<dyn WindowExpr>) -> Option<&str> {
    let function = window.as_any().downcast_ref::<StandardWindowExpr>()?.get_standard_func_expr();
    let name = function.as_any().downcast_ref::<WindowUDFExpr>()?.fun().name();
    matches!(name, "row_number" | "rank" | "dense_rank").then_some(name)
}

/// The input of a window with a filter below its sort, and below the exchange that brings groups together.
fn below_sort(
    plan: &Plan,
    rank: &Arc<dyn WindowExpr>,
    count: usize,
    is_sorted: bool,
) -> Result<Option<Plan>> {
    let sorts = plan.downcast_ref::<SortExec>().is_some_and(|sort| sort.fetch().is_none());
    if sorts || plan.is::<RepartitionExec>() {
        let input = below_sort(plan.children()[0], rank, count, is_sorted || sorts)?;
        return input.map(|input| replace_children_if_necessary(Arc::clone(plan), vec![input])).transpose();
    }
    let keys = rank.partition_by().to_vec();
    let Some(ordering) = LexOrdering::new(rank.order_by().iter().cloned()) else { return Ok(None) };
    let schema = plan.schema();
    if keys.iter().chain(ordering.iter().map(|key| &key.expr)).any(reads_subquery) {
        return Ok(None);
    }
    if !is_sorted || !has_groups(&keys, &schema)? || !has_short_keys(&ordering, &schema)? {
        return Ok(None);
    }
    Ok(Some(Arc::new(RankFilterExec::new(Arc::clone(plan), keys, ordering, count))))
}

/// Whether an expression reads the value of a subquery, which the task of the filter does not have.
fn reads_subquery(expr: &Arc<dyn PhysicalExpr>) -> bool {
    expr.downcast_ref::<ScalarSubqueryExpr>().is_some() || expr.children().into_iter().any(reads_subquery)
}

/// Whether rows are in one group if and only if a window has them in one. Floats are equal in one sense and
/// differ in another.
fn has_groups(keys: &[Arc<dyn PhysicalExpr>], schema: &Schema) -> Result<bool> {
    for key in keys {
        let dtype = key.data_type(schema)?;
        let plain = match &dtype {
            DataType::Dictionary(_, values) => values.is_string(),
            dtype => !dtype.is_floating() && !dtype.is_nested(),
        };
        if !plain {
            return Ok(false);
        }
    }
    Ok(!keys.is_empty() && groups_of(keys, schema).is_ok())
}

fn groups_of(keys: &[Arc<dyn PhysicalExpr>], schema: &Schema) -> Result<Box<dyn GroupValues>> {
    let field = |key: &Arc<dyn PhysicalExpr>| Ok(Field::new("key", key.data_type(schema)?, true));
    let fields = keys.iter().map(field).collect::<Result<Vec<_>>>()?;
    new_group_values(Arc::new(Schema::new(fields)), &GroupOrdering::None)
}

/// Whether the keys of an order have a form of at most 16 bytes that compares as they do.
fn has_short_keys(ordering: &LexOrdering, schema: &Schema) -> Result<bool> {
    let mut bytes = 0;
    for key in ordering {
        let dtype = key.expr.data_type(schema)?;
        let width = if dtype == DataType::Boolean { Some(1) } else { dtype.primitive_width() };
        // One more byte tells nulls.
        bytes += width.map_or(usize::MAX / 64, |width| 1 + width);
    }
    Ok(bytes <= size_of::<u128>())
}

/// Passes the rows that may be among the first of their group, and drops others.
#[derive(Debug)]
pub(super) struct RankFilterExec {
    pub(super) input: Plan,
    /// The keys of the groups.
    pub(super) keys: Vec<Arc<dyn PhysicalExpr>>,
    pub(super) ordering: LexOrdering,
    /// The number of first rows of each group.
    pub(super) count: usize,
}

impl RankFilterExec {
    pub(super) fn new(
        input: Plan,
        keys: Vec<Arc<dyn PhysicalExpr>>,
        ordering: LexOrdering,
        count: usize,
    ) -> RankFilterExec {
        RankFilterExec { input, keys, ordering, count }
    }
}

impl DisplayAs for RankFilterExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<String> = self.keys.iter().map(ToString::to_string).collect();
        write!(f, "RankFilterExec: first {} of [{}] by [{}]", self.count, keys.join(", "), self.ordering)
    }
}

impl ExecutionPlan for RankFilterExec {
    fn name(&self) -> &'static str {
        "RankFilterExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Plan> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(self: Arc<Self>, mut children: Vec<Plan>, _: ReplaceChildrenOptions) -> Result<Plan> {
        match children.pop() {
            Some(input) => {
                let (keys, ordering) = (self.keys.clone(), self.ordering.clone());
                Ok(Arc::new(RankFilterExec::new(input, keys, ordering, self.count)))
            }
            None => internal_err!("RankFilterExec without an input"),
        }
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Plan>) -> Result<Plan> {
        let mode = datafusion::physical_plan::ChildrenPropertiesMode::Recompute;
        self.replace_children(children, ReplaceChildrenOptions::new(mode))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let schema = self.schema();
        let input = self.input.execute(partition, Arc::clone(&context))?;
        let reservation = MemoryConsumer::new("RankFilterExec").register(context.memory_pool());
        let batch_rows = context.session_config().batch_size();
        let passed = BatchCoalescer::new(Arc::clone(&schema), batch_rows)
            .with_biggest_coalesce_batch_size(Some(batch_rows / 2));
        let firsts = Some(Firsts::new(self, &schema, reservation)?);
        let filtered = Filtered { input, firsts, passed, has_ended: false };
        let stream = futures::stream::try_unfold(filtered, |mut filtered| async move {
            Ok(filtered.next().await?.map(|batch| (batch, filtered)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream)))
    }

    fn statistics_from_inputs(
        &self,
        input: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.schema());
        if let Some(input) = input.first() {
            let at_most = |number: &Precision<usize>| number.to_inexact();
            statistics.num_rows = at_most(&input.num_rows);
            statistics.total_byte_size = at_most(&input.total_byte_size);
        }
        Ok(Arc::new(statistics))
    }
}

/// The rows of a partition that pass.
struct Filtered {
    input: SendableRecordBatchStream,
    /// `None` after it has given up: all rows pass.
    firsts: Option<Firsts>,
    passed: BatchCoalescer,
    has_ended: bool,
}

impl Filtered {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.passed.next_completed_batch() {
                return Ok(Some(batch));
            }
            if self.has_ended {
                return Ok(None);
            }
            match self.input.next().await.transpose()? {
                None => {
                    self.has_ended = true;
                    self.firsts = None;
                    self.passed.finish_buffered_batch()?;
                }
                Some(batch) => self.pass(batch)?,
            }
        }
    }

    fn pass(&mut self, batch: RecordBatch) -> Result<()> {
        let Some(firsts) = &mut self.firsts else { return Ok(self.passed.push_batch(batch)?) };
        let mask = firsts.mask(&batch)?;
        if !firsts.is_worthwhile() {
            self.firsts = None;
        }
        Ok(self.passed.push_batch_with_filter(batch, &mask)?)
    }
}

/// The first rows of each group so far, by their keys.
struct Firsts {
    keys: Vec<Arc<dyn PhysicalExpr>>,
    ordering: LexOrdering,
    converter: RowConverter,
    groups: Box<dyn GroupValues>,
    count: usize,
    /// `count` numbers for each group in ascending order, the largest number where there is no row.
    numbers: Vec<u128>,
    /// The group of each row of a batch.
    group_of: Vec<usize>,
    rows: usize,
    passed: usize,
    reservation: MemoryReservation,
    has_room: bool,
}

impl Firsts {
    fn new(exec: &RankFilterExec, schema: &SchemaRef, reservation: MemoryReservation) -> Result<Firsts> {
        let field = |key: &datafusion::physical_expr::PhysicalSortExpr| {
            Ok(SortField::new_with_options(key.expr.data_type(schema)?, key.options))
        };
        let fields = exec.ordering.iter().map(field).collect::<Result<Vec<_>>>()?;
        Ok(Firsts {
            keys: exec.keys.clone(),
            ordering: exec.ordering.clone(),
            converter: RowConverter::new(fields)?,
            groups: groups_of(&exec.keys, schema)?,
            count: exec.count,
            numbers: Vec::new(),
            group_of: Vec::new(),
            rows: 0,
            passed: 0,
            reservation,
            has_room: true,
        })
    }

    /// Tells which rows of the next batch come after fewer than `count` rows of their group. Equal rows pass.
    fn mask(&mut self, batch: &RecordBatch) -> Result<BooleanArray> {
        let rows = batch.num_rows();
        let column = |expr: &Arc<dyn PhysicalExpr>| expr.evaluate(batch)?.into_array(rows);
        let keys = self.keys.iter().map(column).collect::<Result<Vec<ArrayRef>>>()?;
        self.groups.intern(&keys, &mut self.group_of)?;
        self.numbers.resize(self.groups.len() * self.count, u128::MAX);
        let order = self.ordering.iter().map(|key| column(&key.expr)).collect::<Result<Vec<_>>>()?;
        let order = self.converter.convert_columns(&order)?;
        let mut passes = Vec::with_capacity(rows);
        for (row, &group) in order.iter().zip(&self.group_of) {
            let firsts = &mut self.numbers[group * self.count..(group + 1) * self.count];
            passes.push(admit(firsts, number(row.data())));
        }
        self.rows += rows;
        self.passed += passes.iter().filter(|&&passes| passes).count();
        let bytes = self.groups.size() + self.numbers.capacity() * size_of::<u128>();
        self.has_room = self.reservation.try_resize(bytes).is_ok();
        Ok(BooleanArray::from(passes))
    }

    /// Whether it has room, and groups have more rows than they keep.
    fn is_worthwhile(&self) -> bool {
        let has_groups = 5 * self.groups.len() < 4 * self.rows;
        // After so many rows a random order would let few pass.
        let is_settled = 8 * self.numbers.len() < self.rows;
        let drops = !is_settled || 10 * self.passed < 9 * self.rows;
        self.has_room && (self.rows < TRIAL_ROWS || (has_groups && drops))
    }
}

/// Whether a row is not after all the first ones of its group, among which it takes its place.
fn admit(firsts: &mut [u128], number: u128) -> bool {
    let Some(last) = firsts.last().copied() else { return false };
    if number < last {
        let place = firsts.partition_point(|&first| first <= number);
        firsts[place..].rotate_right(1);
        firsts[place] = number;
    }
    number <= last
}

/// The keys of a row as one number, which compares as their bytes do.
fn number(bytes: &[u8]) -> u128 {
    let mut padded = [0; size_of::<u128>()];
    let len = bytes.len().min(padded.len());
    padded[..len].copy_from_slice(&bytes[..len]);
    u128::from_be_bytes(padded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::block_on;
    use arrow::array::Int64Array;
    use arrow::compute::SortOptions;
    use datafusion::datasource::memory::MemorySourceConfig;
    use datafusion::execution::memory_pool::GreedyMemoryPool;
    use datafusion::execution::runtime_env::RuntimeEnvBuilder;
    use datafusion::physical_expr::PhysicalSortExpr;
    use datafusion::physical_plan::collect;

    /// The number of rows that pass as one of the first two of their group, with so much memory.
    fn passed(rows: i64, group: impl Fn(i64) -> i64, memory_bytes: usize) -> usize {
        let column = |name, at| Arc::new(Column::new(name, at)) as Arc<dyn PhysicalExpr>;
        let batch = |start: i64| {
            let rows = start..rows.min(start + 8192);
            let mixed = rows.clone().map(|row| row.wrapping_mul(-7_046_029_254_386_353_131) >> 20);
            let groups: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.map(&group)));
            let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(mixed));
            RecordBatch::try_from_iter([("g", groups), ("x", numbers)]).unwrap()
        };
        let batches: Vec<RecordBatch> = (0..rows).step_by(8192).map(batch).collect();
        let schema = batches[0].schema();
        let source = MemorySourceConfig::try_new_exec(&[batches], schema, None).unwrap();
        let ordering = LexOrdering::new([PhysicalSortExpr::new(column("x", 1), SortOptions::default())]);
        let filter = RankFilterExec::new(source, vec![column("g", 0)], ordering.unwrap(), 2);
        let pool = Arc::new(GreedyMemoryPool::new(memory_bytes));
        let environment = RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc().unwrap();
        let context = Arc::new(TaskContext::default().with_runtime(environment));
        let found = block_on(async { Ok(collect(Arc::new(filter), context).await?) }).unwrap();
        found.iter().map(RecordBatch::num_rows).sum()
    }

    #[test]
    fn few_rows_of_large_groups_pass() {
        // Of 100 rows in random order about 2 (1 + ln 50), which is 9.8.
        let found = passed(400_000, |row| row % 4_000, 1 << 30);
        assert!((2 * 4_000..15 * 4_000).contains(&found), "{found}");
        assert_eq!(passed(1_000, |row| row / 2, 1 << 30), 1_000);
    }

    #[test]
    fn a_filter_without_room_or_use_gives_up() {
        assert!(395_000 < passed(400_000, |row| row % 4_000, 1 << 10));
        // A row for each group, until nobody looks any more.
        let (trial, rows) = (TRIAL_ROWS as i64, 3 * TRIAL_ROWS as i64 / 2);
        let group = |row| if row < trial + 8192 { row } else { 0 };
        assert_eq!(passed(rows, group, 1 << 30), rows as usize);
    }

    #[test]
    fn a_row_takes_its_place_among_the_first() {
        let mut firsts = [u128::MAX; 3];
        let taken = [5, 9, 7, 8, 7, 7, 9, 1].map(|number| admit(&mut firsts, number));
        assert_eq!(taken, [true, true, true, true, true, true, false, true]);
        assert_eq!(firsts, [1, 5, 7]);
    }
}
