//! Tasks with far more rows than others, and tasks without rows: several calls do one of the first, each with
//! a part of its rows, and none does one of the others.
//!
//! The rows of one input are parted. That is right where the operators above treat each of its rows by
//! itself: then the calls together make what the task would have made. What they have made, one after the
//! other, is the output of the task, so readers do not know of it.

use super::input::{InputExec, Pattern, Source};
use super::piece::{Needs, Piece, PieceSource};
use super::ranges::RangeExec;
use datafusion::common::JoinType;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use std::ops::Range;
use std::sync::Arc;

type Plan = Arc<dyn ExecutionPlan>;

/// Calls that do one task, at most: each reads all of the other inputs.
const CALLS_MAX: usize = 64;
/// Bytes of rows that are never worth another call.
const CALL_BYTES_MIN: usize = 4 << 20;
/// A task is parted if it has more bytes than an average one, by this factor.
const HEAVY: f64 = 1.5;

/// An input whose rows may be parted.
#[derive(Clone, Debug)]
pub(crate) struct Splittable {
    /// The stage that makes its rows.
    pub(crate) source: usize,
    pattern: Pattern,
    tasks: usize,
    /// Whether nothing is made of no rows.
    none_of_none: bool,
}

/// Rows of the outputs of a stage's tasks.
#[derive(Clone, Debug)]
pub(super) struct Sizes {
    /// By task and output; none for tasks that have not ended.
    rows: Vec<Vec<usize>>,
    all_rows: usize,
    all_bytes: usize,
}

impl Sizes {
    pub(super) fn new(tasks: usize) -> Sizes {
        Sizes { rows: vec![Vec::new(); tasks], all_rows: 0, all_bytes: 0 }
    }

    /// Notes rows and bytes of each output of a task.
    pub(super) fn note(&mut self, task: usize, outputs: &[(usize, usize)]) {
        self.rows[task] = outputs.iter().map(|(rows, _)| *rows).collect();
        self.all_rows += outputs.iter().map(|(rows, _)| rows).sum::<usize>();
        self.all_bytes += outputs.iter().map(|(_, bytes)| bytes).sum::<usize>();
    }

    /// Bytes of so many average rows: those of a piece may be few rows in a large buffer.
    fn bytes(&self, rows: usize) -> usize {
        (rows as u128 * self.all_bytes as u128 / self.all_rows.max(1) as u128) as usize
    }
}

impl Splittable {
    /// Those inputs of a fragment.
    pub(super) fn inputs_of(fragment: &Plan) -> Vec<Splittable> {
        let mut leaves = Vec::new();
        // Rows in an order are merged by readers that rely on it.
        if fragment.output_ordering().is_some() || !collect_leaves(fragment, &mut leaves) {
            return Vec::new();
        }
        let mut found = Vec::new();
        collect(fragment, &mut found);
        let partitions = fragment.output_partitioning().partition_count();
        found.retain(|input| {
            // Otherwise it is read as a whole by each task, or by several operators.
            let readers = leaves.iter().filter(|source| **source == input.source).count();
            readers == 1 && input.partitions() == partitions
        });
        found
    }

    fn partitions(&self) -> usize {
        match self.pattern {
            Pattern::Each => self.tasks,
            Pattern::Gather => 1,
            Pattern::Shuffle(outputs) => outputs,
        }
    }

    /// The pieces of a task, each with its rows.
    fn pieces<'a>(&self, task: usize, sizes: &'a Sizes) -> impl Iterator<Item = (Piece, usize)> + use<'a> {
        let source = PieceSource::Stage(self.source);
        let (tasks, output) = match self.pattern {
            Pattern::Each => (task..self.tasks.min(task + 1), 0),
            Pattern::Gather | Pattern::Shuffle(_) => (0..self.tasks, task),
        };
        tasks.map(move |task| {
            let rows = sizes.rows[task].get(output).copied().unwrap_or(0);
            (Piece { source, task, output }, rows)
        })
    }

    fn rows(&self, task: usize, sizes: &Sizes) -> usize {
        self.pieces(task, sizes).map(|(_, rows)| rows).sum()
    }
}

/// Adds the stages that a fragment reads; false if it reads anything else, which each call would read anew.
fn collect_leaves(plan: &Plan, found: &mut Vec<usize>) -> bool {
    if let Some(input) = plan.downcast_ref::<InputExec>() {
        if let Source::Stage(stage) = input.source {
            found.push(stage);
        }
        return true;
    }
    let children = plan.children();
    !children.is_empty() && children.into_iter().all(|child| collect_leaves(child, found))
}

/// Adds the inputs of whose rows each operator on the way up makes its own rows.
fn collect(plan: &Plan, found: &mut Vec<Splittable>) {
    if plan.fetch().is_some() {
        return;
    }
    if let Some(input) = plan.downcast_ref::<InputExec>() {
        let is_parted = matches!(input.pattern, Pattern::Each | Pattern::Shuffle(_));
        if let Source::Stage(source) = input.source
            && is_parted
        {
            found.push(Splittable { source, pattern: input.pattern, tasks: input.tasks, none_of_none: true });
        }
        return;
    }
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        let (left, right) = if join.null_aware { (false, false) } else { by_row(*join.join_type()) };
        if left {
            collect(join.left(), found);
        }
        if right {
            collect(join.right(), found);
        }
        return;
    }
    if let Some(ranges) = plan.downcast_ref::<RangeExec>() {
        return collect(&ranges.input, found);
    }
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        if *aggregate.mode() == AggregateMode::Partial && aggregate.limit_options().is_none() {
            let first = found.len();
            collect(aggregate.input(), found);
            // Without groups there is a row for no rows, too.
            let groups = aggregate.group_expr();
            let has_groups = !groups.is_empty() && groups.is_single();
            found[first..].iter_mut().for_each(|input| input.none_of_none &= has_groups);
        }
        return;
    }
    if plan.is::<ProjectionExec>() || plan.is::<FilterExec>() {
        collect(plan.children()[0], found);
    }
}

/// Whether a join makes rows of each left row by itself, and of each right row.
fn by_row(join_type: JoinType) -> (bool, bool) {
    match join_type {
        JoinType::Inner => (true, true),
        JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => (true, false),
        JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => (false, true),
        JoinType::Full => (false, false),
    }
}

/// The inputs of the calls that do one of the tasks of a stage: of several ones if it has far more rows
/// than others, of none if it has no rows.
pub(super) fn calls<'a>(
    inputs: &[Splittable],
    tasks: usize,
    task: usize,
    needs: Needs,
    sizes: impl Fn(usize) -> Option<&'a Sizes>,
) -> Vec<Needs> {
    let measured = || inputs.iter().filter_map(|input| Some((input, sizes(input.source)?)));
    if measured().any(|(input, sizes)| input.none_of_none && input.rows(task, sizes) == 0) {
        return Vec::new();
    }
    let loads = measured().map(|(input, sizes)| (sizes.bytes(input.rows(task, sizes)), input, sizes));
    let Some((bytes, input, sizes)) = loads.max_by_key(|(bytes, ..)| *bytes) else { return vec![needs] };
    let share = (sizes.all_bytes / tasks.max(1)).max(CALL_BYTES_MIN);
    if bytes as f64 <= HEAVY * share as f64 {
        return vec![needs];
    }
    let count = bytes.div_ceil(share).min(CALLS_MAX);
    let pieces: Vec<(Piece, usize)> = input.pieces(task, sizes).collect();
    let rows: usize = pieces.iter().map(|(_, rows)| rows).sum();
    (0..count).map(|call| part(&needs, &pieces, rows * call / count..rows * (call + 1) / count)).collect()
}

/// The same inputs, but of these pieces only a part of the rows.
fn part(needs: &Needs, pieces: &[(Piece, usize)], wanted: Range<usize>) -> Needs {
    let mut part = needs.clone();
    let mut from = 0;
    for &(piece, rows) in pieces {
        let to = from + rows;
        let start = wanted.start.clamp(from, to) - from;
        let end = wanted.end.clamp(from, to) - from;
        match end - start {
            taken if taken == rows => {}
            0 => {
                part.pieces.retain(|other| *other != piece);
                part.skipped.push(piece);
            }
            _ => part.slices.push((piece, start, end)),
        }
        from = to;
    }
    part
}
