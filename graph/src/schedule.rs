//! The order in which tasks start, and a bound on the memory that it takes.
//!
//! The order is depth-first from the results: all inputs of one chunk of a result are made before the next
//! chunk is begun, so intermediate chunks die soon. Stages of `Plan::in_order` are an exception: where a
//! chunk of a result stands at the end of a long chain, its tasks would wait for each other. With the first
//! task of such stages, all of their tasks that are needed follow in the order of the stages. Executors start
//! tasks in this order (looking ahead a little, see [`Schedule::window`]). The bound follows from this:
//!
//! Take the first task not started. At most `threads` tasks are running, and at most `window` tasks have
//! started ahead of it. A chunk in memory either was made by an earlier task and is still to be read by it or
//! a later task: these are counted by walking the order once. Or it belongs to a running task or to one
//! started ahead: at most `threads + window` times the largest task.

use crate::chunk_table::ChunkTable;
use crate::error::Error;
use crate::plan::{ChunkId, TaskId};
use crate::task::Runnable;

/// The order of a plan's tasks and its memory bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// All tasks, each after the tasks that make its inputs.
    pub order: Vec<TaskId>,
    /// Number of tasks that will read each chunk, by tensor and chunk; results count one more.
    pub readers: ChunkTable<u32>,
    /// Number of tasks that may start ahead of the first one that has not started.
    pub window: usize,
    /// Upper bound on the bytes of chunks and registers.
    pub bound_bytes: u64,
    /// The part of the bound that is for tasks: what those that run read, make and need, and what those that
    /// were started ahead have made.
    pub running_bytes: u64,
    /// The bound for one thread that starts no task ahead of its turn.
    pub least_bytes: u64,
}

/// Orders the tasks of a plan and bounds its memory for a number of threads.
///
/// # Errors
/// `Internal` if the plan reads a chunk that nothing makes.
///
/// # Memory
/// 12 bytes per task and 4 per chunk.
pub fn schedule(runnable: &Runnable, threads: usize) -> Result<Schedule, Error> {
    let order = depth_first(runnable)?;
    let readers = count_readers(runnable, &order);
    let Walk { live, largest } = walk(runnable, &order, readers.clone());
    assert!(0 < threads, "tasks in order for nobody to run them");
    let window = threads;
    let running_bytes = largest * (threads + window) as u64;
    let bound_bytes = live + running_bytes;
    Ok(Schedule { order, readers, window, bound_bytes, running_bytes, least_bytes: live + largest })
}

/// Maker of each chunk: a task, by stage offsets.
struct Producers {
    /// For each tensor, the task that makes chunk `i`; `None` for resident ones.
    tasks: ChunkTable<Option<TaskId>>,
}

fn producers(runnable: &Runnable) -> Producers {
    let plan = runnable.plan();
    let mut tasks = ChunkTable::new(plan, None);
    for (stage_index, stage) in plan.stages.iter().enumerate() {
        for index in 0..stage.grid.count() {
            let task = TaskId { stage: stage_index as u32, index: index as u32 };
            for chunk in runnable.outputs(task) {
                let before = tasks[chunk].replace(task);
                assert_eq!(before, None, "{chunk:?} is made by two tasks");
            }
        }
    }
    Producers { tasks }
}

/// The tasks that results need.
fn depth_first(runnable: &Runnable) -> Result<Vec<TaskId>, Error> {
    let plan = runnable.plan();
    let mut walker = Walker::new(runnable);
    for &result in &plan.results {
        walker.enter_makers(result)?;
    }
    assert!(walker.order.len() as u64 <= plan.task_count(), "a task is run twice");
    if plan.in_order.is_empty() {
        return Ok(walker.order);
    }
    // The same again, now that it is known which tasks are needed.
    let needed = walker.seen;
    let mut walker = Walker { needed: Some(&needed), ..Walker::new(runnable) };
    for &result in &plan.results {
        walker.enter_makers(result)?;
    }
    Ok(walker.order)
}

/// A walk from results to what they need.
struct Walker<'a> {
    runnable: &'a Runnable,
    producers: Producers,
    seen: Vec<Vec<bool>>,
    /// Needed tasks, if stages are walked in order.
    needed: Option<&'a [Vec<bool>]>,
    /// Ranges of stages that were begun.
    begun: Vec<bool>,
    order: Vec<TaskId>,
}

impl<'a> Walker<'a> {
    fn new(runnable: &'a Runnable) -> Walker<'a> {
        let plan = runnable.plan();
        Walker {
            runnable,
            producers: producers(runnable),
            seen: plan.stages.iter().map(|stage| vec![false; stage.grid.count()]).collect(),
            needed: None,
            begun: vec![false; plan.in_order.len()],
            order: Vec::with_capacity(plan.task_count() as usize),
        }
    }

    fn enter_makers(&mut self, result: usize) -> Result<(), Error> {
        let makers: Vec<TaskId> = self.producers.tasks.of_tensor(result).iter().flatten().copied().collect();
        makers.into_iter().try_for_each(|maker| self.enter(maker))
    }

    /// A task, after all that it needs.
    fn enter(&mut self, first: TaskId) -> Result<(), Error> {
        let plan = self.runnable.plan().clone();
        let mut inputs = Vec::new();
        let mut stack: Vec<(TaskId, bool)> = vec![(first, false)];
        while let Some((task, ready)) = stack.pop() {
            if ready {
                self.order.push(task);
                continue;
            }
            if self.seen[task.stage as usize][task.index as usize] {
                continue;
            }
            if let Some(tasks) = self.begin_in_order(task) {
                // Behind these, the task itself has been entered.
                stack.extend(tasks.into_iter().rev().map(|task| (task, false)));
                continue;
            }
            self.seen[task.stage as usize][task.index as usize] = true;
            inputs.clear();
            self.runnable.inputs(task, &mut inputs);
            stack.push((task, true));
            // The stack reverses the order, so pushing backwards makes the first input first.
            for chunk in inputs.iter().rev() {
                match self.producers.tasks[*chunk] {
                    Some(producer) => stack.push((producer, false)),
                    None if plan.resident.contains(&(chunk.tensor as usize)) => {}
                    None => return Err(Error::Internal(format!("nothing makes {chunk:?}"))),
                }
            }
        }
        Ok(())
    }

    /// All needed tasks of the stages in order that `task` belongs to, if it is the first of them.
    fn begin_in_order(&mut self, task: TaskId) -> Option<Vec<TaskId>> {
        let needed = self.needed?;
        let ranges = &self.runnable.plan().in_order;
        let stage = task.stage as usize;
        let range = ranges.iter().position(|&(first, end)| (first..end).contains(&stage))?;
        if std::mem::replace(&mut self.begun[range], true) {
            return None;
        }
        let (first, end) = ranges[range];
        let tasks = (first..end).flat_map(|stage| {
            let indices = needed[stage].iter().enumerate().filter(|(_, needed)| **needed);
            indices.map(move |(index, _)| TaskId { stage: stage as u32, index: index as u32 })
        });
        Some(tasks.collect())
    }
}

fn count_readers(runnable: &Runnable, order: &[TaskId]) -> ChunkTable<u32> {
    let plan = runnable.plan();
    let mut readers = ChunkTable::new(plan, 0);
    let mut inputs = Vec::new();
    for &task in order {
        inputs.clear();
        runnable.inputs(task, &mut inputs);
        inputs.iter().for_each(|chunk| readers[*chunk] += 1);
    }
    plan.results
        .iter()
        .chain(&plan.resident)
        .for_each(|&tensor| readers.of_tensor_mut(tensor).iter_mut().for_each(|count| *count += 1));
    readers
}

/// Memory needs found by walking the order once.
#[derive(Clone, Copy, Debug, Default)]
struct Walk {
    /// Peak bytes of chunks that are made and still to be read.
    live: u64,
    /// Most bytes of inputs, outputs and registers of one task.
    largest: u64,
}

fn walk(runnable: &Runnable, order: &[TaskId], mut readers: ChunkTable<u32>) -> Walk {
    let plan = runnable.plan();
    let bytes = |chunk: &ChunkId| runnable.chunk_bytes(*chunk);
    let is_resident = |chunk: &ChunkId| plan.resident.contains(&(chunk.tensor as usize));
    let scratch: Vec<u64> = (0..plan.stages.len()).map(|stage| runnable.scratch_bytes(stage)).collect();
    let (mut live, mut most) = (0u64, Walk::default());
    let mut inputs = Vec::new();
    for &task in order {
        let mut task_bytes = scratch[task.stage as usize];
        for chunk in runnable.outputs(task) {
            task_bytes += bytes(&chunk);
            if readers[chunk] != 0 {
                live += bytes(&chunk);
            }
        }
        inputs.clear();
        runnable.inputs(task, &mut inputs);
        for chunk in &inputs {
            let left = &mut readers[*chunk];
            assert!(0 < *left, "{chunk:?} is read more often than was counted");
            *left -= 1;
            if *left == 0 {
                assert!(bytes(chunk) <= live, "{chunk:?} dies and was never there");
                live -= bytes(chunk);
            }
        }
        task_bytes += inputs.iter().filter(|chunk| !is_resident(chunk)).map(bytes).sum::<u64>();
        most = Walk { live: most.live.max(live), largest: most.largest.max(task_bytes) };
        assert!(live <= most.live, "more bytes live than were ever seen");
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LocalExecutor;
    use crate::execute::Executor;
    use crate::lower::{Limits, Lowered, lower};
    use crate::node::{Node, NodeRef};
    use crate::ops::{Indexed, LinearPart, Rechunk, Reduce};
    use crate::plan::Plan;
    use crate::tiling::Chunks;
    use std::sync::Arc;
    use tharsis_kernels::Fold;
    use tharsis_kernels::linear::Linear;
    use tharsis_kernels::program::IndexMap;

    fn limits() -> Limits {
        Limits::new(2, 64 << 20)
    }

    /// 64 numbers in four chunks of 128 bytes.
    fn numbers() -> NodeRef {
        let ramp = Indexed { shape: vec![64], map: IndexMap::Ramp { start: 0.0, step: 1.0 } };
        let source = Node::new(ramp, vec![]).unwrap();
        Node::new(Rechunk(Chunks::Each(16)), vec![source]).unwrap()
    }

    fn sum(x: &NodeRef) -> NodeRef {
        Node::new(Reduce { fold: Fold::Sum, axes: vec![0], keepdims: false }, vec![x.clone()]).unwrap()
    }

    fn lowered(roots: &[NodeRef], change: impl Fn(&mut Plan)) -> Runnable {
        let Lowered { plan, foreign, .. } = lower(roots, &limits()).unwrap();
        let mut plan = Plan::clone(&plan);
        change(&mut plan);
        Runnable::new(Arc::new(plan), foreign).unwrap()
    }

    #[test]
    fn the_bound_is_all_results_and_a_task_for_each_that_runs_or_starts_ahead() {
        let runnable = lowered(&[numbers()], |_| {});
        let task_bytes = 128 + runnable.scratch_bytes(0);
        for threads in 1..5 {
            let made = schedule(&runnable, threads).unwrap();
            assert_eq!(made.window, threads);
            assert_eq!(made.bound_bytes, 4 * 128 + task_bytes * 2 * threads as u64);
            assert_eq!(made.least_bytes, 4 * 128 + task_bytes);
        }
    }

    #[test]
    fn a_partial_sum_is_made_before_the_leaves_of_the_next_one() {
        let ramp = Indexed { shape: vec![150], map: IndexMap::Ramp { start: 0.0, step: 1.0 } };
        let source = Node::new(ramp, vec![]).unwrap();
        let cut = Node::new(Rechunk(Chunks::Each(1)), vec![source]).unwrap();
        let order = schedule(&lowered(&[sum(&cut)], |_| {}), 2).unwrap().order;
        // Stage and number of its tasks in a row: up to 64 partial sums are merged at a time.
        let mut runs: Vec<(u32, usize)> = Vec::new();
        for task in order {
            match runs.last_mut() {
                Some((stage, count)) if *stage == task.stage => *count += 1,
                _ => runs.push((task.stage, 1)),
            }
        }
        assert_eq!(runs, [(0, 64), (1, 1), (0, 64), (1, 1), (0, 22), (1, 1), (2, 1), (3, 1)]);
    }

    #[test]
    fn tasks_that_no_result_needs_are_left_out() {
        let roots = [numbers(), sum(&numbers())];
        let all = schedule(&lowered(&roots, |_| {}), 2).unwrap();
        let first = lowered(&roots, |plan| plan.results.truncate(1));
        let made = schedule(&first, 2).unwrap();
        assert_eq!((made.order.len(), first.plan().task_count()), (4, all.order.len() as u64));
        let numbers = first.plan().results[0];
        assert!(made.order.iter().all(|&task| first.outputs(task).all(|c| c.tensor as usize == numbers)));
    }

    #[test]
    fn needed_tasks_of_stages_in_order_start_in_the_order_of_the_stages() {
        let ramp = Indexed { shape: vec![12, 12], map: IndexMap::Ramp { start: 0.0, step: 1.0 } };
        let source = Node::new(ramp, vec![]).unwrap();
        let cut = Node::new(Rechunk(Chunks::Each(4)), vec![source]).unwrap();
        let upper = LinearPart { function: Linear::Lu, part: 2 };
        let runnable = lowered(&[Node::new(upper, vec![cut]).unwrap()], |_| {});
        let order = schedule(&runnable, 2).unwrap().order;
        assert!(order.is_sorted(), "{order:?}");
        // The lower factor and the order of rows are not needed.
        assert!((order.len() as u64) < runnable.plan().task_count());
    }

    #[test]
    fn a_result_asked_for_twice_is_made_once() {
        let runnable = lowered(&[numbers(), numbers()], |_| {});
        let made = schedule(&runnable, 2).unwrap();
        assert_eq!(runnable.plan().results, [0, 0]);
        assert_eq!((made.order.len(), made.readers.of_tensor(0)), (4, &[2; 4][..]));
    }

    #[test]
    fn a_plan_that_reads_what_nothing_makes_is_a_defect() {
        let executor = LocalExecutor::within(limits());
        let made = executor.execute(crate::plan(&[numbers()], limits()).unwrap()).unwrap();
        let kept = Node::new(made.results[0].clone(), vec![]).unwrap();
        assert_eq!(schedule(&lowered(&[sum(&kept)], |_| {}), 2).unwrap().order.len(), 6);
        let torn = lowered(&[sum(&kept)], |plan| plan.resident.clear());
        let refused = schedule(&torn, 2).unwrap_err();
        assert_eq!(refused, Error::Internal("nothing makes ChunkId { tensor: 0, index: 0 }".to_owned()));
    }
}
