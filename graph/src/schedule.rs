//! In what order tasks start, and what memory that can take.
//!
//! The order is depth-first from the results: what is needed for one chunk of a result is made before the next is begun, so
//! that intermediate chunks die soon. Executors start tasks in this order (looking ahead a little, see
//! [`Schedule::window`]), which is what the bound rests on:
//!
//! With at most `threads` tasks running and at most `window` tasks started ahead of the first one not started, every
//! chunk in memory was either made before that task and is still to be read by it or a later one (counted by walking
//! the order once), or belongs to a running task or to one started ahead (at most `threads + window` times
//! the largest task).

use crate::error::Error;
use crate::plan::{ChunkId, TaskId};
use crate::task::Runnable;

/// The order of a plan's tasks and its memory bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// All tasks, each after those that make what it reads.
    pub order: Vec<TaskId>,
    /// How many tasks will read each chunk, by tensor and chunk; results count one more.
    pub readers: Vec<Vec<u32>>,
    /// How many tasks may start ahead of the first one that has not started.
    pub window: usize,
    /// Bytes of chunks and registers that are never exceeded.
    pub bound_bytes: u64,
    /// The least number of bytes that one thread could do with.
    pub least_bytes: u64,
}

/// Orders the tasks of a plan and bounds its memory for so many threads.
///
/// # Errors
/// `Internal` if the plan reads what nothing makes.
///
/// # Memory
/// 12 bytes per task and 4 per chunk.
pub fn schedule(runnable: &Runnable, threads: usize) -> Result<Schedule, Error> {
    let order = depth_first(runnable)?;
    let readers = count_readers(runnable, &order);
    let live = live_bytes_max(runnable, &order, readers.clone());
    let largest = largest_task_bytes(runnable);
    let window = threads;
    let bound_bytes = live + largest * (threads + window) as u64;
    Ok(Schedule { order, readers, window, bound_bytes, least_bytes: live + largest })
}

/// Which task makes each chunk, by stage offsets.
struct Producers {
    /// For each tensor, the task that makes chunk `i`; `None` for resident ones.
    tasks: Vec<Vec<Option<TaskId>>>,
}

fn producers(runnable: &Runnable) -> Producers {
    let plan = runnable.plan();
    let mut tasks: Vec<Vec<Option<TaskId>>> =
        plan.tensors.iter().map(|spec| vec![None; spec.tiling.count()]).collect();
    for (stage_index, stage) in plan.stages.iter().enumerate() {
        for index in 0..stage.grid.count() {
            let task = TaskId { stage: stage_index as u32, index: index as u32 };
            for chunk in runnable.outputs(task) {
                tasks[chunk.tensor as usize][chunk.index as usize] = Some(task);
            }
        }
    }
    Producers { tasks }
}

fn depth_first(runnable: &Runnable) -> Result<Vec<TaskId>, Error> {
    let plan = runnable.plan();
    let producers = producers(runnable);
    let mut seen: Vec<Vec<bool>> = plan.stages.iter().map(|stage| vec![false; stage.grid.count()]).collect();
    let mut order = Vec::with_capacity(plan.task_count() as usize);
    let mut inputs = Vec::new();
    let mut stack: Vec<(TaskId, bool)> = Vec::new();
    for &result in &plan.results {
        for producer in producers.tasks[result].iter().flatten() {
            stack.push((*producer, false));
            while let Some((task, ready)) = stack.pop() {
                let seen = &mut seen[task.stage as usize][task.index as usize];
                if ready {
                    order.push(task);
                    continue;
                }
                if std::mem::replace(seen, true) {
                    continue;
                }
                inputs.clear();
                runnable.inputs(task, &mut inputs);
                stack.push((task, true));
                // The stack reverses, so the first input is made first.
                for chunk in inputs.iter().rev() {
                    match producers.tasks[chunk.tensor as usize][chunk.index as usize] {
                        Some(producer) => stack.push((producer, false)),
                        None if plan.resident.contains(&(chunk.tensor as usize)) => {}
                        None => return Err(Error::Internal(format!("nothing makes {chunk:?}"))),
                    }
                }
            }
        }
    }
    Ok(order)
}

fn count_readers(runnable: &Runnable, order: &[TaskId]) -> Vec<Vec<u32>> {
    let plan = runnable.plan();
    let mut readers: Vec<Vec<u32>> = plan.tensors.iter().map(|spec| vec![0; spec.tiling.count()]).collect();
    let mut inputs = Vec::new();
    for &task in order {
        inputs.clear();
        runnable.inputs(task, &mut inputs);
        inputs.iter().for_each(|chunk| readers[chunk.tensor as usize][chunk.index as usize] += 1);
    }
    plan.results
        .iter()
        .chain(&plan.resident)
        .for_each(|&tensor| readers[tensor].iter_mut().for_each(|count| *count += 1));
    readers
}

/// The most bytes of chunks that are made and still to be read, over all points of the order.
fn live_bytes_max(runnable: &Runnable, order: &[TaskId], mut readers: Vec<Vec<u32>>) -> u64 {
    let plan = runnable.plan();
    let bytes = |chunk: &ChunkId| plan.tensors[chunk.tensor as usize].chunk_bytes_max();
    let (mut live, mut most) = (0u64, 0u64);
    let mut inputs = Vec::new();
    for &task in order {
        for chunk in runnable.outputs(task) {
            if readers[chunk.tensor as usize][chunk.index as usize] != 0 {
                live += bytes(&chunk);
            }
        }
        inputs.clear();
        runnable.inputs(task, &mut inputs);
        for chunk in &inputs {
            let left = &mut readers[chunk.tensor as usize][chunk.index as usize];
            *left -= 1;
            if *left == 0 {
                live -= bytes(chunk);
            }
        }
        most = most.max(live);
    }
    most
}

/// Bytes of inputs, outputs and registers of the largest task.
fn largest_task_bytes(runnable: &Runnable) -> u64 {
    let plan = runnable.plan();
    let of_stage = |index: usize| {
        let stage = &plan.stages[index];
        let outputs: u64 =
            stage.outputs.iter().map(|output| plan.tensors[output.tensor].chunk_bytes_max()).sum();
        let last = stage.grid.count() - 1;
        let mut inputs = Vec::new();
        // Ends differ from the middle; the middle of the grid reads the most.
        [0, last / 2, last]
            .map(|index_in_stage| {
                inputs.clear();
                runnable.inputs(TaskId { stage: index as u32, index: index_in_stage as u32 }, &mut inputs);
                let made = inputs.iter().filter(|chunk| !plan.resident.contains(&(chunk.tensor as usize)));
                made.map(|chunk| plan.tensors[chunk.tensor as usize].chunk_bytes_max()).sum::<u64>()
            })
            .into_iter()
            .max()
            .unwrap_or(0)
            + outputs
            + runnable.scratch_bytes(index)
    };
    (0..plan.stages.len()).map(of_stage).max().unwrap_or(0)
}
