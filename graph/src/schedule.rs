//! The order in which tasks start, and a bound on the memory that it takes.
//!
//! The order is depth-first from the results: all inputs of one chunk of a result are made before the next
//! chunk is begun, so intermediate chunks die soon. Executors start tasks in this order (looking ahead a
//! little, see [`Schedule::window`]). The bound follows from this:
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
    let bound_bytes = live + largest * (threads + window) as u64;
    Ok(Schedule { order, readers, window, bound_bytes, least_bytes: live + largest })
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

fn depth_first(runnable: &Runnable) -> Result<Vec<TaskId>, Error> {
    let plan = runnable.plan();
    let producers = producers(runnable);
    let mut seen: Vec<Vec<bool>> = plan.stages.iter().map(|stage| vec![false; stage.grid.count()]).collect();
    let mut order = Vec::with_capacity(plan.task_count() as usize);
    let mut inputs = Vec::new();
    let mut stack: Vec<(TaskId, bool)> = Vec::new();
    for &result in &plan.results {
        for producer in producers.tasks.of_tensor(result).iter().flatten() {
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
                // The stack reverses the order, so pushing backwards makes the first input first.
                for chunk in inputs.iter().rev() {
                    match producers.tasks[*chunk] {
                        Some(producer) => stack.push((producer, false)),
                        None if plan.resident.contains(&(chunk.tensor as usize)) => {}
                        None => return Err(Error::Internal(format!("nothing makes {chunk:?}"))),
                    }
                }
            }
        }
    }
    assert!(order.len() as u64 <= plan.task_count(), "a task is run twice");
    Ok(order)
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
    let bytes = |chunk: &ChunkId| plan.tensors[chunk.tensor as usize].chunk_bytes_max();
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
