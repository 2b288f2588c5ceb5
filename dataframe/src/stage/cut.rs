//! Cuts a physical plan where rows are exchanged: what is left are fragments, each partition of which is a
//! task of its own.
//!
//! A task sees nothing of other tasks of its stage. Operators whose partitions share state in one process
//! (joins that collect their left side) are changed first, so that no task needs that state.

use super::applied::AppliedExec;
use super::input::{InputExec, Pattern, Source};
use super::materialized_rows::{MaterializedExec, materialized_rows};
use super::part::Resident;
use super::partitions::{PARTITIONS_MAX, result_bytes};
use super::piece::Needs;
use super::ranges::{self, RangeExec};
use super::rank_filter;
use super::row_number::{KEYED_PARTITIONS_MAX, Numbering, RowNumberExec};
use super::scans;
use super::skew::Splittable;
use super::subqueries::Subqueries;
use super::task::Output;
use crate::engine::TaskOptions;
use crate::error::Result;
use crate::progress::Progress;
use crate::write::WriteExec;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{JoinType, internal_err};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, OrderingRequirements, Partitioning, PhysicalExpr};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, PartitionMode};
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::scalar_subquery::{ScalarSubqueryExec, ScalarSubqueryLink};
use datafusion::physical_plan::sorts::partial_sort::PartialSortExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, displayable};
use std::collections::HashMap;
use std::sync::Arc;

type Plan = Arc<dyn ExecutionPlan>;

/// Fewer bytes are sorted by a merge of the sorted partitions.
const RANGED_BYTES_MIN: u64 = if cfg!(debug_assertions) { 2 << 20 } else { 16 << 20 };
/// Bytes of the rows of a range, about: few enough to be sorted at once, without a merge of sorted runs.
const RANGE_BYTES: u64 = if cfg!(debug_assertions) { 3 << 20 } else { 24 << 20 };

/// A plan as stages: each reads what earlier ones made, the last one makes the result.
#[derive(Clone, Debug)]
pub struct Stages {
    pub(crate) stages: Vec<Stage>,
    pub(crate) tables: Vec<Arc<Resident>>,
    /// Whether each task of the last stage should give its rows in one batch.
    pub(crate) in_one_batch: bool,
    /// Counts of its run, if somebody watches it.
    pub(crate) progress: Progress,
}

/// One fragment, and the destination of its rows.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    pub(crate) fragment: Plan,
    pub(crate) output: Output,
    /// Number of tasks: the partitions of the fragment.
    pub(crate) tasks: usize,
    /// Number of rows, of the first tasks, that its reader wants, if not all.
    pub(crate) enough: Option<usize>,
    /// Inputs whose rows may be parted among several calls for one task.
    pub(crate) splittable: Vec<Splittable>,
    /// Options of tasks that differ from the usual ones.
    pub(crate) options: TaskOptions,
}

impl Stages {
    /// Cuts a plan that was made for a number of partitions. Scans below aggregates, which need less memory
    /// than other tasks, become at most `scans` tasks.
    pub(crate) fn of(plan: Plan, partitions: usize, scans: usize) -> Result<Stages> {
        let mut cutter = Cutter {
            partitions,
            stages: Vec::new(),
            tables: Vec::new(),
            subqueries: Vec::new(),
            materialized: HashMap::new(),
        };
        let parted = |plan| -> Result<Plan> {
            let plan = rank_filter::below_windows(part_joins(sort_whole(plan)?)?)?;
            Ok(scans::in_few_tasks(plan, scans)?)
        };
        for rows in materialized_rows(&plan)? {
            let fragment = cutter.cut(parted(Arc::clone(&rows.plan))?)?;
            let stage = cutter.stage(fragment, Output::Whole)?;
            cutter.materialized.insert(rows.id, stage);
        }
        let fragment = cutter.cut_result(parted(plan)?)?;
        cutter.stage(fragment, Output::Whole)?;
        Ok(Stages {
            stages: cutter.stages,
            tables: cutter.tables,
            in_one_batch: false,
            progress: Progress::default(),
        })
    }

    /// The same stages, whose tasks run with these options.
    pub(crate) fn with_options(mut self, options: &TaskOptions) -> Stages {
        self.stages.iter_mut().for_each(|stage| stage.options.clone_from(options));
        self
    }

    /// The inputs of a task of a stage.
    pub(crate) fn needs(&self, stage: usize, task: usize) -> Needs {
        let mut needs = Needs::default();
        collect_needs(&self.stages[stage].fragment, task, &mut needs);
        needs.pieces.sort_unstable();
        needs.pieces.dedup();
        // Of one stage, the most tasks.
        needs.counts.sort_unstable_by(|one, other| other.cmp(one));
        needs.counts.dedup_by_key(|(stage, _)| *stage);
        needs
    }

    /// Number of tasks of all stages.
    #[must_use]
    pub fn tasks(&self) -> usize {
        self.stages.iter().map(|stage| stage.tasks).sum()
    }

    /// The outputs of a stage and its operators, in words.
    pub(crate) fn texts(&self, stage: usize) -> (String, Vec<String>) {
        let stage = &self.stages[stage];
        let operators = displayable(&*stage.fragment).indent(false).to_string();
        (stage.output.to_string(), operators.lines().map(str::to_owned).collect())
    }
}

struct Cutter {
    /// Outputs of an exchange that only the cutter makes.
    partitions: usize,
    stages: Vec<Stage>,
    tables: Vec<Arc<Resident>>,
    /// Those of the plan, and of plans that it reads values of.
    subqueries: Vec<Subqueries>,
    /// The stages of rows that are made once, by the numbers of these.
    materialized: HashMap<u64, usize>,
}

impl Cutter {
    /// As [`Cutter::cut`], for a plan whose rows may be in several partitions that follow each other.
    fn cut_result(&mut self, plan: Plan) -> Result<Plan> {
        if let Some(merge) = plan.downcast_ref::<SortPreservingMergeExec>() {
            return self.cut_sort(merge);
        }
        if let Some(query) = plan.downcast_ref::<ScalarSubqueryExec>() {
            self.cut_subqueries(query)?;
            return self.cut_result(Arc::clone(query.input()));
        }
        // A chunk is made of rows that follow each other, wherever the partitions begin.
        let chunks = plan.downcast_ref::<AppliedExec>().is_some_and(AppliedExec::takes_chunks);
        let by_row = plan.is::<ProjectionExec>() || plan.is::<FilterExec>() || plan.is::<WriteExec>();
        if chunks || by_row {
            let child = self.cut_result(Arc::clone(plan.children()[0]))?;
            return Ok(replace_children_if_necessary(plan, vec![child])?);
        }
        if let Some(numbers) = plan.downcast_ref::<RowNumberExec>() {
            let child = self.cut_result(Arc::clone(&numbers.input))?;
            return self.number_rows(numbers, child);
        }
        self.cut(plan)
    }

    /// The plan with readers in place of the exchanges below it, for which it makes stages.
    fn cut(&mut self, plan: Plan) -> Result<Plan> {
        if let Some(reader) = self.reader(&plan)? {
            return Ok(reader);
        }
        if plan.is::<RecursiveQueryExec>() {
            let numbered = plan.transform_up(|node| match self.reader(&node)? {
                Some(reader) => Ok(Transformed::yes(reader)),
                None => Ok(Transformed::no(node)),
            });
            // It stays whole.
            return Ok(numbered?.data);
        }
        if let Some(query) = plan.downcast_ref::<ScalarSubqueryExec>() {
            self.cut_subqueries(query)?;
            return self.cut(Arc::clone(query.input()));
        }
        if let Some(exchange) = plan.downcast_ref::<RepartitionExec>() {
            return self.cut_repartition(exchange);
        }
        if let Some(exchange) = plan.downcast_ref::<CoalescePartitionsExec>() {
            return self.cut_coalesce(exchange);
        }
        if let Some(merge) = plan.downcast_ref::<SortPreservingMergeExec>() {
            return self.cut_merge(merge);
        }
        if let Some(numbers) = plan.downcast_ref::<RowNumberExec>() {
            return self.cut_numbers(numbers);
        }
        let shared = shared_input(&plan).filter(|_| plan.output_partitioning().partition_count() > 1);
        let mut children = Vec::new();
        for (at, child) in plan.children().into_iter().cloned().collect::<Vec<_>>().into_iter().enumerate() {
            let child = self.cut(child)?;
            // Otherwise each task would make it anew.
            let again = shared == Some(at) && !child.is::<InputExec>();
            let child = if again { self.gather(child)? } else { child };
            children.push(ordered_for_window(&plan, child)?);
        }
        Ok(replace_children_if_necessary(plan, children)?)
    }

    /// The reader of rows that exist, or that another stage makes, in the place of a leaf of these.
    fn reader(&mut self, leaf: &Plan) -> datafusion::common::Result<Option<Plan>> {
        if let Some(input) = leaf.downcast_ref::<InputExec>() {
            return Ok(Some(self.number(input)));
        }
        let Some(reader) = leaf.downcast_ref::<MaterializedExec>() else { return Ok(None) };
        let Some(&number) = self.materialized.get(&reader.rows.id) else {
            return internal_err!("rows are read before the stage that makes them");
        };
        let Stage { fragment, tasks, .. } = &self.stages[number];
        let (source, columns) = (Source::Stage(number), Some(reader.projection.clone()));
        let reader = InputExec::new(source, Pattern::Each, *tasks, fragment.schema(), columns, None)?;
        Ok(Some(Arc::new(reader)))
    }

    fn number(&mut self, input: &InputExec) -> Plan {
        let Source::Table(table) = &input.source else { return Arc::new(input.clone()) };
        let known = self.tables.iter().position(|known| Arc::ptr_eq(known, table));
        let number = known.unwrap_or_else(|| {
            self.tables.push(Arc::clone(table));
            self.tables.len() - 1
        });
        Arc::new(input.numbered(number))
    }

    /// Makes a stage of each subquery.
    fn cut_subqueries(&mut self, query: &ScalarSubqueryExec) -> Result<()> {
        let mut readers = Vec::new();
        for subquery in query.subqueries() {
            let rows = self.cut(Arc::clone(&subquery.plan))?;
            readers.push(ScalarSubqueryLink { plan: self.gather(rows)?, index: subquery.index });
        }
        self.subqueries.push(Subqueries { readers, values: query.results().clone() });
        Ok(())
    }

    fn stage(&mut self, mut fragment: Plan, output: Output) -> Result<usize> {
        for subqueries in &self.subqueries {
            fragment = subqueries.set_for(fragment)?;
        }
        let tasks = fragment.output_partitioning().partition_count();
        let splittable = Splittable::inputs_of(&fragment);
        let options = TaskOptions::new();
        self.stages.push(Stage { fragment, output, tasks, enough: None, splittable, options });
        Ok(self.stages.len() - 1)
    }

    /// Makes a stage of a fragment; gives its reader.
    fn exchange(&mut self, fragment: Plan, output: Output, pattern: Pattern) -> Result<Plan> {
        let (schema, ordering) = (fragment.schema(), fragment.output_ordering().cloned());
        // A reader of several tasks in one partition reads one sorted run after the other.
        let ordering = ordering.filter(|_| pattern == Pattern::Each);
        let stage = self.stage(fragment, output)?;
        let tasks = self.stages[stage].tasks;
        let reader = InputExec::new(Source::Stage(stage), pattern, tasks, schema, None, ordering)?;
        Ok(Arc::new(reader))
    }

    fn gather(&mut self, fragment: Plan) -> Result<Plan> {
        self.exchange(fragment, Output::Whole, Pattern::Gather)
    }

    fn cut_repartition(&mut self, exchange: &RepartitionExec) -> Result<Plan> {
        let child = self.cut(Arc::clone(exchange.input()))?;
        let Partitioning::Hash(columns, count) = exchange.partitioning() else {
            // Only spreads rows over threads; tasks are spread by the engine.
            return Ok(child);
        };
        let ordering = exchange.preserve_order().then(|| child.output_ordering().cloned()).flatten();
        let reader = self.shuffle(child, columns.clone(), *count)?;
        Ok(match ordering {
            Some(ordering) => sorted(ordering, reader),
            None => reader,
        })
    }

    fn shuffle(&mut self, child: Plan, columns: Vec<Arc<dyn PhysicalExpr>>, count: usize) -> Result<Plan> {
        if count == 1 {
            return if child.output_partitioning().partition_count() == 1 {
                Ok(child)
            } else {
                self.gather(child)
            };
        }
        let reads_value = |column| self.subqueries.iter().any(|known| known.are_read_by(column));
        if columns.iter().any(reads_value) {
            return self.shuffle_by_values(child, columns, count);
        }
        self.exchange(child, Output::Hash(columns, count), Pattern::Shuffle(count))
    }

    /// As [`Cutter::shuffle`], by keys that read values of subqueries. A fragment knows these values, and its
    /// rows are parted behind it. So the keys are columns of the rows on their way.
    fn shuffle_by_values(
        &mut self,
        child: Plan,
        keys: Vec<Arc<dyn PhysicalExpr>>,
        count: usize,
    ) -> Result<Plan> {
        let column = |name: &str, at: usize| Arc::new(Column::new(name, at)) as Arc<dyn PhysicalExpr>;
        let schema = child.schema();
        let own = schema.fields().iter().enumerate();
        let own: Vec<_> = own.map(|(at, field)| (column(field.name(), at), field.name().clone())).collect();
        let names = (own.len()..own.len() + keys.len()).map(|at| (format!("__key_{at}"), at));
        let (names, keys): (Vec<_>, Vec<_>) = names.zip(keys).unzip();
        let columns = names.iter().map(|(name, at)| column(name, *at)).collect();
        let made = keys.into_iter().zip(names).map(|(key, (name, _))| (key, name));
        let with_keys = ProjectionExec::try_new(own.iter().cloned().chain(made).collect::<Vec<_>>(), child)?;
        let output = Output::Hash(columns, count);
        let reader = self.exchange(Arc::new(with_keys), output, Pattern::Shuffle(count))?;
        Ok(Arc::new(ProjectionExec::try_new(own, reader)?))
    }

    fn cut_coalesce(&mut self, exchange: &CoalescePartitionsExec) -> Result<Plan> {
        let child = self.cut(Arc::clone(exchange.input()))?;
        let many = child.output_partitioning().partition_count() > 1;
        let gathered = match exchange.fetch() {
            Some(fetch) if many => {
                let first = self.gather(Arc::new(LocalLimitExec::new(child, fetch)))?;
                if let Some(stage) = self.stages.last_mut() {
                    stage.enough = Some(fetch);
                }
                first
            }
            None if many => self.gather(child)?,
            _ => child,
        };
        Ok(match exchange.fetch() {
            Some(fetch) => Arc::new(GlobalLimitExec::new(gathered, 0, Some(fetch))),
            None => gathered,
        })
    }

    fn cut_merge(&mut self, merge: &SortPreservingMergeExec) -> Result<Plan> {
        let child = self.cut(Arc::clone(merge.input()))?;
        let child = match child.output_partitioning().partition_count() {
            1 => child,
            _ => self.exchange(child, Output::Whole, Pattern::Each)?,
        };
        let merged = SortPreservingMergeExec::new(merge.expr().clone(), child);
        // Of equal rows, those of the first partition come first.
        Ok(Arc::new(merged.with_fetch(merge.fetch()).with_round_robin_repartition(false)))
    }

    /// A sort of many rows: parts them by ranges of the keys, each of which a task sorts. A merge would pass
    /// all of them through one task.
    fn cut_sort(&mut self, merge: &SortPreservingMergeExec) -> Result<Plan> {
        let (ordering, schema) = (merge.expr(), merge.schema());
        let unsorted = match unsorted(merge.input())? {
            Some(unsorted) if merge.fetch().is_none() => unsorted,
            _ => return self.cut_merge(merge),
        };
        let bytes = result_bytes(&unsorted).unwrap_or(0);
        if bytes < RANGED_BYTES_MIN || self.partitions < 2 || !ranges::supports(ordering, &schema) {
            return self.cut_merge(merge);
        }
        let wanted = usize::try_from(bytes / RANGE_BYTES).unwrap_or(usize::MAX).min(PARTITIONS_MAX);
        let count = wanted.max(self.partitions).next_multiple_of(self.partitions);
        let rows = self.cut(unsorted)?;
        let rows = match rows.downcast_ref::<InputExec>() {
            Some(input) if input.pattern == Pattern::Each => rows,
            _ => self.exchange(rows, Output::Whole, Pattern::Each)?,
        };
        let sample = ranges::sample(Arc::clone(&rows), ordering)?;
        let samples = self.exchange(sample, Output::Whole, Pattern::Gather)?;
        let ranged: Plan = Arc::new(RangeExec::new(rows, samples, ordering.clone(), count));
        let stage = self.stage(ranged, Output::Ranges(count))?;
        let tasks = self.stages[stage].tasks;
        let pattern = Pattern::Shuffle(count);
        let reader = InputExec::new(Source::Stage(stage), pattern, tasks, schema, None, None)?;
        Ok(sorted(ordering.clone(), Arc::new(reader)))
    }

    fn cut_numbers(&mut self, numbers: &RowNumberExec) -> Result<Plan> {
        let child = self.cut(Arc::clone(&numbers.input))?;
        self.number_rows(numbers, child)
    }

    fn number_rows(&mut self, numbers: &RowNumberExec, child: Plan) -> Result<Plan> {
        let partitions = child.output_partitioning().partition_count();
        let (child, counted) = match numbers.numbering {
            Numbering::Exact if 1 < partitions => {
                let reader = self.exchange(child, Output::Whole, Pattern::Each)?;
                (reader, Some(self.stages.len() - 1))
            }
            // One partition has the rows of all of them in their order.
            Numbering::Key if KEYED_PARTITIONS_MAX < partitions => (self.gather(child)?, None),
            Numbering::Exact | Numbering::Key => (child, None),
        };
        Ok(Arc::new(RowNumberExec::new(child, numbers.column.clone(), numbers.numbering, counted, None)))
    }
}

/// The rows of a sort before it; none where nothing is sorted. Parts of a union are sorted one by one.
fn unsorted(plan: &Plan) -> Result<Option<Plan>> {
    if let Some(sort) = plan.downcast_ref::<SortExec>() {
        return Ok(sort.fetch().is_none().then(|| Arc::clone(sort.input())));
    }
    if !plan.is::<UnionExec>() && !plan.is::<ProjectionExec>() {
        return Ok(None);
    }
    let children = plan.children().into_iter().map(unsorted).collect::<Result<Vec<_>>>()?;
    if children.iter().all(Option::is_none) {
        return Ok(None);
    }
    let child = |(child, old): (Option<Plan>, &Plan)| child.unwrap_or_else(|| Arc::clone(old));
    let children = children.into_iter().zip(plan.children()).map(child).collect();
    Ok(Some(replace_children_if_necessary(Arc::clone(plan), children)?))
}

fn sorted(ordering: LexOrdering, input: Plan) -> Plan {
    Arc::new(SortExec::new(ordering, input).with_preserve_partitioning(true))
}

/// The input of an operator. A window demands to know that its rows are sorted. Readers know less of their
/// rows than the operators that they stand for, such as that all values of a column are equal.
fn ordered_for_window(plan: &Plan, child: Plan) -> Result<Plan> {
    if !plan.is::<BoundedWindowAggExec>() && !plan.is::<WindowAggExec>() {
        return Ok(child);
    }
    let required = plan.required_input_ordering().into_iter().next().flatten();
    let Some(required) = required.map(OrderingRequirements::into_single) else { return Ok(child) };
    let known = child.equivalence_properties().ordering_satisfy_requirement(required.iter().cloned())?;
    Ok(if known { child } else { sorted(LexOrdering::from(required), child) })
}

/// Sorts that know of rows that are sorted in part, as sorts of all rows. They have no form as bytes.
fn sort_whole(plan: Plan) -> Result<Plan> {
    let changed = plan.transform_up(|node| {
        let Some(sort) = node.downcast_ref::<PartialSortExec>() else { return Ok(Transformed::no(node)) };
        let whole = SortExec::new(sort.expr().clone(), Arc::clone(sort.input()))
            .with_fetch(sort.fetch())
            .with_preserve_partitioning(sort.preserve_partitioning());
        Ok(Transformed::yes(Arc::new(whole) as Plan))
    })?;
    Ok(changed.data)
}

/// The input that each partition of an operator reads as a whole.
fn shared_input(plan: &Plan) -> Option<usize> {
    if plan.downcast_ref::<AppliedExec>().is_some_and(AppliedExec::shares_second) {
        return Some(1);
    }
    collects_left(plan).then_some(0)
}

/// Whether each partition of a join reads the whole left side.
fn collects_left(plan: &Plan) -> bool {
    match plan.downcast_ref::<HashJoinExec>() {
        Some(join) => *join.partition_mode() == PartitionMode::CollectLeft,
        None => plan.is::<NestedLoopJoinExec>() || plan.is::<CrossJoinExec>(),
    }
}

/// Whether a join of this type gives rows of the left side that the right side decides on. With a collected
/// left side, its partitions would have to agree on them.
fn emits_left(join_type: JoinType) -> bool {
    matches!(
        join_type,
        JoinType::Left | JoinType::Full | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark
    )
}

/// Changes joins whose partitions would have to share state.
fn part_joins(plan: Plan) -> Result<Plan> {
    let changed = plan.transform_up(|node| {
        if node.output_partitioning().partition_count() < 2 {
            return Ok(Transformed::no(node));
        }
        if let Some(join) = node.downcast_ref::<HashJoinExec>()
            && *join.partition_mode() == PartitionMode::CollectLeft
            && emits_left(*join.join_type())
        {
            return Ok(Transformed::yes(part_hash_join(join)?));
        }
        if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>()
            && emits_left(*join.join_type())
        {
            let right: Plan = Arc::new(CoalescePartitionsExec::new(Arc::clone(join.right())));
            let children = vec![Arc::clone(join.left()), right];
            return Ok(Transformed::yes(replace_children_if_necessary(node, children)?));
        }
        Ok(Transformed::no(node))
    })?;
    Ok(changed.data)
}

/// Both sides by the hash of their keys. An anti join that knows nulls has one partition instead: it needs
/// to know of a null anywhere.
fn part_hash_join(join: &HashJoinExec) -> datafusion::common::Result<Plan> {
    if join.null_aware {
        let right: Plan = Arc::new(CoalescePartitionsExec::new(Arc::clone(join.right())));
        let children = vec![Arc::clone(join.left()), right];
        return replace_children_if_necessary(Arc::new(join.builder().build()?), children);
    }
    let count = join.right().output_partitioning().partition_count();
    let left = match join.left().downcast_ref::<CoalescePartitionsExec>() {
        Some(coalesce) if coalesce.fetch().is_none() => Arc::clone(coalesce.input()),
        _ => Arc::clone(join.left()),
    };
    let (on_left, on_right) = join.on().iter().cloned().unzip();
    let left = RepartitionExec::try_new(left, Partitioning::Hash(on_left, count))?;
    let right = RepartitionExec::try_new(Arc::clone(join.right()), Partitioning::Hash(on_right, count))?;
    let parted = join.builder().with_partition_mode(PartitionMode::Partitioned);
    parted.with_new_children(vec![Arc::new(left), Arc::new(right)])?.build_exec()
}

/// Collects the inputs of a partition of a fragment.
fn collect_needs(plan: &Plan, partition: usize, needs: &mut Needs) {
    if let Some(input) = plan.downcast_ref::<InputExec>() {
        needs.pieces.extend(input.pieces(partition));
        return;
    }
    if let Some(counted) = plan.downcast_ref::<RowNumberExec>().and_then(|numbers| numbers.counted) {
        needs.counts.push((counted, partition));
    }
    if plan.is::<UnionExec>() {
        return collect_union(plan, partition, needs);
    }
    let partitions = plan.output_partitioning().partition_count();
    for (at, child) in plan.children().into_iter().enumerate() {
        let children = child.output_partitioning().partition_count();
        let whole = children != partitions || plan.is::<RepartitionExec>() || shared_input(plan) == Some(at);
        if whole {
            (0..children).for_each(|partition| collect_needs(child, partition, needs))
        } else {
            collect_needs(child, partition, needs)
        }
    }
}

/// The partitions of a union are those of its children, one after the other.
fn collect_union(plan: &Plan, mut partition: usize, needs: &mut Needs) {
    for child in plan.children() {
        let count = child.output_partitioning().partition_count();
        if partition < count {
            return collect_needs(child, partition, needs);
        }
        partition -= count;
    }
}
