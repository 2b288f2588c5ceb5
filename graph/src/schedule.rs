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
//! a later task: these are counted by walking the order once. Or a running task reads or makes it, which the
//! memory of `threads` of the largest tasks has room for, together with their scratch bytes. Or a task made
//! it that started ahead and has ended: of such a task only its results are left, so that `window` times the
//! most bytes that one task makes are enough.

use crate::chunk_table::ChunkTable;
use crate::error::Error;
use crate::lower::Limits;
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

/// Orders the tasks of a plan and bounds its memory for the threads of these limits.
///
/// # Errors
/// `Internal` if the plan reads a chunk that nothing makes.
///
/// # Memory
/// 12 bytes per task and 4 per chunk.
pub fn schedule(runnable: &Runnable, limits: &Limits) -> Result<Schedule, Error> {
    let order = depth_first(runnable)?;
    let readers = count_readers(runnable, &order);
    let Walk { live, largest, most_made } = walk(runnable, &order, readers.clone(), limits);
    let threads = limits.threads;
    assert!(0 < threads, "tasks in order for nobody to run them");
    let window = threads;
    let running_bytes = largest * threads as u64 + most_made * window as u64;
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
    /// Most bytes of the outputs of one task that are to be read.
    most_made: u64,
}

/// Resident chunks take no memory of a task that reads them in place; others get copies.
fn walk(runnable: &Runnable, order: &[TaskId], mut readers: ChunkTable<u32>, limits: &Limits) -> Walk {
    let plan = runnable.plan();
    let bytes = |chunk: &ChunkId| runnable.chunk_bytes(*chunk);
    let is_free = |chunk: &ChunkId| limits.reads_in_place && plan.resident.contains(&(chunk.tensor as usize));
    let running = |stage| runnable.output_bytes(stage) + runnable.scratch_bytes(stage);
    let running: Vec<u64> = (0..plan.stages.len()).map(running).collect();
    let (mut live, mut most) = (0u64, Walk::default());
    let mut inputs = Vec::new();
    for &task in order {
        let kept = runnable.outputs(task).filter(|chunk| readers[*chunk] != 0);
        let made: u64 = kept.map(|chunk| bytes(&chunk)).sum();
        live += made;
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
        let read: u64 = inputs.iter().filter(|chunk| !is_free(chunk)).map(bytes).sum();
        let task_bytes = running[task.stage as usize] + read;
        most = Walk {
            live: most.live.max(live),
            largest: most.largest.max(task_bytes),
            most_made: most.most_made.max(made),
        };
        assert!(live <= most.live, "more bytes live than were ever seen");
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LocalExecutor;
    use crate::execute::Executor;
    use crate::lower::{Lowered, lower};
    use crate::node::{Node, NodeRef};
    use crate::ops::{Indexed, LinearPart, Rechunk, Reduce};
    use crate::plan::Plan;
    use crate::tiling::Chunks;
    use std::collections::HashMap;
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
    fn the_bound_is_all_results_a_task_for_each_thread_and_a_result_for_each_that_starts_ahead() {
        let runnable = lowered(&[numbers()], |_| {});
        let task_bytes = 128 + runnable.scratch_bytes(0);
        for threads in 1..5 {
            let made = schedule(&runnable, &Limits::new(threads, 64 << 20)).unwrap();
            assert_eq!(made.window, threads);
            assert_eq!(made.bound_bytes, 4 * 128 + (task_bytes + 128) * threads as u64);
            assert_eq!(made.least_bytes, 4 * 128 + task_bytes);
        }
    }

    /// Most bytes in memory of a run that starts and ends tasks in any order that executors may: chunks that
    /// are still to be read, and what those tasks make and need that run.
    fn peak_bytes(runnable: &Runnable, schedule: &Schedule, threads: usize, seed: u64) -> u64 {
        let Schedule { order, window, .. } = schedule;
        let mut readers = schedule.readers.clone();
        let mut held: HashMap<ChunkId, u64> = HashMap::new();
        let (mut is_started, mut running) = (vec![false; order.len()], Vec::<usize>::new());
        let inputs = |at: usize| {
            let mut inputs = Vec::new();
            runnable.inputs(order[at], &mut inputs);
            inputs
        };
        let taken = |at: &usize| {
            let stage = order[*at].stage as usize;
            runnable.output_bytes(stage) + runnable.scratch_bytes(stage)
        };
        let (mut peak, mut random) = (0, seed);
        loop {
            peak = peak.max(held.values().sum::<u64>() + running.iter().map(taken).sum::<u64>());
            let next = is_started.iter().position(|started| !started).unwrap_or(order.len());
            let near = next..(next + window + 1).min(order.len());
            let can_start =
                |at: &usize| !is_started[*at] && inputs(*at).iter().all(|chunk| held.contains_key(chunk));
            let startable: Vec<usize> = near.filter(can_start).collect();
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (choice, starts) = ((random >> 33) as usize, random >> 62 != 0);
            if !startable.is_empty() && running.len() < threads && (starts || running.is_empty()) {
                let at = startable[choice % startable.len()];
                is_started[at] = true;
                running.push(at);
            } else if !running.is_empty() {
                let at = running.swap_remove(choice % running.len());
                let kept = runnable.outputs(order[at]).filter(|chunk| readers[*chunk] != 0);
                held.extend(kept.map(|chunk| (chunk, runnable.chunk_bytes(chunk))));
                for chunk in inputs(at) {
                    readers[chunk] -= 1;
                    if readers[chunk] == 0 {
                        held.remove(&chunk);
                    }
                }
            } else {
                assert_eq!(next, order.len(), "nothing runs, and nothing can start");
                return peak;
            }
        }
    }

    #[test]
    fn no_run_takes_more_than_the_bound() {
        let ramp = Indexed { shape: vec![12, 12], map: IndexMap::Ramp { start: 0.0, step: 1.0 } };
        let source = Node::new(ramp, vec![]).unwrap();
        let cut = Node::new(Rechunk(Chunks::Each(4)), vec![source]).unwrap();
        let factor = |part| Node::new(LinearPart { function: Linear::Lu, part }, vec![cut.clone()]).unwrap();
        let programs = [
            vec![numbers()],
            vec![sum(&numbers())],
            vec![sum(&numbers()), numbers()],
            vec![factor(1), factor(2)],
        ];
        let mut nearest: f64 = 0.0;
        for (program, threads) in programs.iter().flat_map(|program| (1..4).map(move |n| (program, n))) {
            let runnable = lowered(program, |_| {});
            let made = schedule(&runnable, &Limits::new(threads, 64 << 20)).unwrap();
            for seed in 0..50 {
                let peak = peak_bytes(&runnable, &made, threads, seed);
                assert!(peak <= made.bound_bytes, "{peak} of {} bytes", made.bound_bytes);
                nearest = nearest.max(peak as f64 / made.bound_bytes as f64);
            }
        }
        assert!(0.7 < nearest, "no run comes near its bound: {nearest}");
    }

    #[test]
    fn a_partial_sum_is_made_before_the_leaves_of_the_next_one() {
        let ramp = Indexed { shape: vec![150], map: IndexMap::Ramp { start: 0.0, step: 1.0 } };
        let source = Node::new(ramp, vec![]).unwrap();
        let cut = Node::new(Rechunk(Chunks::Each(1)), vec![source]).unwrap();
        let order = schedule(&lowered(&[sum(&cut)], |_| {}), &limits()).unwrap().order;
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
        let all = schedule(&lowered(&roots, |_| {}), &limits()).unwrap();
        let first = lowered(&roots, |plan| plan.results.truncate(1));
        let made = schedule(&first, &limits()).unwrap();
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
        let order = schedule(&runnable, &limits()).unwrap().order;
        assert!(order.is_sorted(), "{order:?}");
        // The lower factor and the order of rows are not needed.
        assert!((order.len() as u64) < runnable.plan().task_count());
    }

    #[test]
    fn a_result_asked_for_twice_is_made_once() {
        let runnable = lowered(&[numbers(), numbers()], |_| {});
        let made = schedule(&runnable, &limits()).unwrap();
        assert_eq!(runnable.plan().results, [0, 0]);
        assert_eq!((made.order.len(), made.readers.of_tensor(0)), (4, &[2; 4][..]));
    }

    #[test]
    fn a_plan_that_reads_what_nothing_makes_is_a_defect() {
        let executor = LocalExecutor::within(limits());
        let made = executor.execute(crate::plan(&[numbers()], limits()).unwrap()).unwrap();
        let kept = Node::new(made.results[0].clone(), vec![]).unwrap();
        assert_eq!(schedule(&lowered(&[sum(&kept)], |_| {}), &limits()).unwrap().order.len(), 6);
        let torn = lowered(&[sum(&kept)], |plan| plan.resident.clear());
        let refused = schedule(&torn, &limits()).unwrap_err();
        assert_eq!(refused, Error::Internal("nothing makes ChunkId { tensor: 0, index: 0 }".to_owned()));
    }
}
