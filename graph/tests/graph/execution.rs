//! Relations that hold for every plan: its order, its readers, its bound and its batches, and that values do
//! not depend on chunks, threads or memory.

use std::collections::{HashMap, HashSet};
use std::slice::from_ref;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};
use tharsis_cancel::Cancel;
use tharsis_graph::lower::lower;
use tharsis_graph::ops::{
    Binary, Cumulative, Full, Indexed, MapChunk, MatMul, Rechunk, Reduce, Reshape, Unary,
};
use tharsis_graph::plan::{ChunkId, TaskId};
use tharsis_graph::tiling::TASKS_MAX;
use tharsis_graph::{
    BatchLimits, Batches, Chunks, Error, Executor, Foreign, ForeignName, Job, Limits, LocalExecutor, Metrics,
    Node, NodeRef, Operator, plan, tasks_left_behind,
};
use tharsis_kernels::chunkwise::Scan;
use tharsis_kernels::program::IndexMap;
use tharsis_kernels::{BinaryOp, Chunk, DType, Fold, Key, Place, Scalar, Scratch, UnaryOp};

fn apply(op: impl Operator + 'static, inputs: &[&NodeRef]) -> NodeRef {
    Node::new(op, inputs.iter().map(|&node| node.clone()).collect()).unwrap()
}

/// Small whole numbers, whose sums are exact in any order.
fn numbers(shape: &[usize], chunk: usize) -> NodeRef {
    let random = apply(Indexed { shape: shape.to_vec(), map: IndexMap::Uniform(Key::new(7, 0)) }, &[]);
    let ten = apply(Full { shape: vec![], value: Scalar::Float(10.0), dtype: DType::F64 }, &[]);
    let whole = apply(Unary(UnaryOp::Floor), &[&apply(Binary(BinaryOp::Multiply), &[&random, &ten])]);
    apply(Rechunk(Chunks::Each(chunk)), &[&whole])
}

/// Expressions of every kind of stage, over chunks of this length.
fn expressions(chunk: usize) -> Vec<(&'static str, NodeRef)> {
    let x = numbers(&[24, 18], chunk);
    let y = numbers(&[18, 24], chunk);
    let sum = |axes: &[usize]| apply(Reduce { fold: Fold::Sum, axes: axes.to_vec(), keepdims: false }, &[&x]);
    let centred = apply(Binary(BinaryOp::Subtract), &[&x, &sum(&[0])]);
    vec![
        ("sum", sum(&[0, 1])),
        ("sum of rows", sum(&[1])),
        ("centred", apply(Binary(BinaryOp::Multiply), &[&centred, &centred])),
        ("product", apply(MatMul, &[&x, &y])),
        ("reshape", apply(Reshape { shape: vec![18, 24] }, &[&x])),
        ("running sum", apply(Cumulative { scan: Scan::Sum, axis: 0 }, &[&x])),
    ]
}

fn jobs(chunk: usize, threads: usize) -> Vec<(String, Job)> {
    let executor = LocalExecutor::sized(threads, 64 << 20);
    let of = |(name, root): (&str, NodeRef)| {
        let job = plan(&[root], executor.limits()).unwrap();
        (format!("{name}, chunks of {chunk}, {threads} threads"), job)
    };
    expressions(chunk).into_iter().map(of).collect()
}

fn inputs(job: &Job, task: TaskId) -> Vec<ChunkId> {
    let mut inputs = Vec::new();
    job.runnable.inputs(task, &mut inputs);
    inputs
}

/// The elements of the only result, in C order, and the metrics of the run.
fn run(root: &NodeRef, threads: usize) -> (Vec<f64>, Metrics) {
    let executor = LocalExecutor::sized(threads, 64 << 20);
    let outcome = executor.execute(plan(from_ref(root), executor.limits()).unwrap()).unwrap();
    let result = &outcome.results[0];
    let shape = result.tiling.shape();
    let mut elements = vec![f64::NAN; shape.iter().product()];
    let (mut origin, mut extents) = (Vec::new(), Vec::new());
    for (index, chunk) in result.chunks.iter().enumerate() {
        result.tiling.chunk(index, &mut origin, &mut extents);
        let chunk = chunk.fetch().unwrap().to_contiguous().unwrap();
        for (at, value) in chunk.as_slice::<f64>().unwrap().iter().enumerate() {
            let (mut left, mut place, mut stride) = (at, 0, 1);
            for axis in (0..shape.len()).rev() {
                place += (origin[axis] + left % extents[axis]) * stride;
                left /= extents[axis];
                stride *= shape[axis];
            }
            elements[place] = *value;
        }
    }
    (elements, outcome.metrics)
}

#[test]
fn a_task_comes_behind_those_that_make_what_it_reads() {
    for (name, job) in jobs(5, 2) {
        let resident: HashSet<usize> = job.runnable.plan().resident.iter().copied().collect();
        let mut made = HashSet::new();
        for &task in &job.schedule.order {
            for chunk in inputs(&job, task) {
                assert!(made.contains(&chunk) || resident.contains(&(chunk.tensor as usize)), "{name}");
            }
            made.extend(job.runnable.outputs(task));
        }
    }
}

#[test]
fn every_task_is_in_the_order_once() {
    for (name, job) in jobs(4, 2) {
        let distinct: HashSet<TaskId> = job.schedule.order.iter().copied().collect();
        assert_eq!(distinct.len(), job.schedule.order.len(), "{name}");
    }
}

#[test]
fn every_chunk_of_a_result_is_made() {
    for (name, job) in jobs(7, 2) {
        let made: HashSet<ChunkId> =
            job.schedule.order.iter().flat_map(|&task| job.runnable.outputs(task)).collect();
        let plan = job.runnable.plan();
        for &tensor in &plan.results {
            for index in 0..plan.tensors[tensor].tiling.count() as u32 {
                assert!(made.contains(&ChunkId { tensor: tensor as u32, index }), "{name}");
            }
        }
    }
}

#[test]
fn readers_are_those_that_read_and_one_for_a_result() {
    for (name, job) in jobs(5, 2) {
        let plan = job.runnable.plan();
        let mut readers: HashMap<ChunkId, u32> = HashMap::new();
        for &task in &job.schedule.order {
            inputs(&job, task).into_iter().for_each(|chunk| *readers.entry(chunk).or_default() += 1);
        }
        for (tensor, spec) in plan.tensors.iter().enumerate() {
            for index in 0..spec.tiling.count() as u32 {
                let chunk = ChunkId { tensor: tensor as u32, index };
                let kept = plan.results.iter().chain(&plan.resident).filter(|&&kept| kept == tensor).count();
                let expected = readers.get(&chunk).copied().unwrap_or(0) + kept as u32;
                assert_eq!(job.schedule.readers[chunk], expected, "{name}: {chunk:?}");
            }
        }
    }
}

#[test]
fn a_task_reads_no_chunk_twice() {
    for (name, job) in jobs(3, 2) {
        for &task in &job.schedule.order {
            let read = inputs(&job, task);
            let distinct: HashSet<&ChunkId> = read.iter().collect();
            assert_eq!(distinct.len(), read.len(), "{name}: {task:?}");
        }
    }
}

#[test]
fn no_run_takes_more_than_its_bound() {
    for threads in [1, 2, 4] {
        for (name, root) in expressions(5) {
            let (_, metrics) = run(&root, threads);
            assert!(metrics.peak_bytes <= metrics.bound_bytes, "{name} on {threads} threads: {metrics:?}");
        }
    }
}

#[test]
fn values_do_not_depend_on_chunks_or_threads() {
    let expected: Vec<Vec<f64>> = expressions(100).iter().map(|(_, root)| run(root, 1).0).collect();
    for chunk in [1, 4, 7, 23] {
        for threads in [1, 3] {
            for ((name, root), expected) in expressions(chunk).iter().zip(&expected) {
                let (found, _) = run(root, threads);
                assert_eq!(&found, expected, "{name}, chunks of {chunk}, {threads} threads");
            }
        }
    }
}

#[test]
fn every_task_is_in_one_batch_behind_those_it_reads_from() {
    for limits in [
        BatchLimits { cost: 1.0, tasks: 1, bytes: 1 },
        BatchLimits { cost: 1e9, tasks: 5, bytes: 1 << 30 },
        BatchLimits { cost: 1e9, tasks: 1000, bytes: 1 << 30 },
    ] {
        for (name, job) in jobs(4, 2) {
            let batches = Batches::new(&job.runnable, &job.schedule, limits).unwrap();
            let resident: HashSet<usize> = job.runnable.plan().resident.iter().copied().collect();
            let (mut made, mut seen) = (HashSet::new(), HashSet::new());
            for batch in 0..batches.len() {
                for &task in batches.tasks(batch) {
                    assert!(seen.insert(task), "{name}: {task:?} is in two batches");
                    for chunk in inputs(&job, task) {
                        let is_there = made.contains(&chunk) || resident.contains(&(chunk.tensor as usize));
                        assert!(is_there, "{name}: {task:?} waits for a later batch");
                    }
                    made.extend(job.runnable.outputs(task));
                }
            }
            assert_eq!(seen.len(), job.schedule.order.len(), "{name}");
        }
    }
}

#[test]
fn what_was_computed_is_read_and_not_made_again() {
    let executor = LocalExecutor::sized(2, 64 << 20);
    let x = numbers(&[24, 18], 5);
    let first = executor.execute(plan(from_ref(&x), executor.limits()).unwrap()).unwrap();
    let kept = Node::new(first.results[0].clone(), vec![]).unwrap();
    let sum = |of: &NodeRef| apply(Reduce { fold: Fold::Sum, axes: vec![0, 1], keepdims: false }, &[of]);
    let (expected, from_sources) = run(&sum(&x), 2);
    let (found, from_kept) = run(&sum(&kept), 2);
    assert_eq!(found, expected);
    assert!(from_kept.tasks <= from_sources.tasks, "{} tasks", from_kept.tasks);
}

#[test]
fn stages_read_what_stages_before_them_make() {
    for (name, job) in jobs(5, 2) {
        let plan = job.runnable.plan();
        let mut made: HashSet<usize> = plan.resident.iter().copied().collect();
        for (stage, template) in (0..).zip(&plan.stages) {
            for index in 0..template.grid.count() as u32 {
                let read = inputs(&job, TaskId { stage, index });
                assert!(read.iter().all(|chunk| made.contains(&(chunk.tensor as usize))), "{name}");
            }
            made.extend(template.outputs.iter().map(|output| output.tensor));
        }
        assert_eq!(made.len(), plan.tensors.len(), "{name}: a tensor that nothing makes");
    }
}

#[test]
fn makers_and_readers_of_batches_are_those_of_their_tasks() {
    let limits = BatchLimits { cost: 1e9, tasks: 3, bytes: 1 << 30 };
    for (name, job) in jobs(5, 2) {
        let (runnable, plan) = (&job.runnable, job.runnable.plan());
        let batches = Batches::new(runnable, &job.schedule, limits).unwrap();
        let batch_of: HashMap<TaskId, usize> = (0..batches.len())
            .flat_map(|batch| batches.tasks(batch).iter().map(move |&task| (task, batch)))
            .collect();
        let mut makers = HashMap::new();
        let mut readers: HashMap<ChunkId, HashSet<usize>> = HashMap::new();
        for (&task, &batch) in &batch_of {
            makers.extend(runnable.outputs(task).map(|chunk| (chunk, batch)));
            inputs(&job, task).into_iter().for_each(|chunk| {
                readers.entry(chunk).or_default().insert(batch);
            });
        }
        for (&chunk, &maker) in &makers {
            assert_eq!(batches.maker(chunk), Some(maker), "{name}: {chunk:?}");
            let others =
                readers.get(&chunk).map_or(0, |of| of.iter().filter(|&&batch| batch != maker).count());
            let results = plan.results.iter().filter(|&&result| result == chunk.tensor as usize).count();
            assert_eq!(batches.readers(chunk) as usize, others + results, "{name}: {chunk:?}");
        }
    }
}

#[test]
fn no_batch_takes_more_than_the_largest_or_holds_more_tasks_than_allowed() {
    for tasks in [1, 2, 7] {
        let limits = BatchLimits { cost: f64::MAX, tasks, bytes: u64::MAX };
        for (name, job) in jobs(4, 2) {
            let batches = Batches::new(&job.runnable, &job.schedule, limits).unwrap();
            let bytes = |batch: usize| {
                let mut chunks = Vec::new();
                batches.inputs(&job.runnable, batch, &mut chunks);
                let resident = batches.resident_bytes(&job.runnable, &chunks);
                batches.bytes(&job.runnable, batch) + resident
            };
            let most = (0..batches.len()).map(bytes).max().unwrap();
            assert_eq!(batches.largest_bytes, most, "{name}");
            // A run of so many tasks may join a batch that lacks one.
            let longest = (0..batches.len()).map(|batch| batches.tasks(batch).len()).max().unwrap();
            assert!(longest < 2 * tasks, "{name}: {longest} tasks, {tasks} are allowed");
        }
    }
}

#[test]
fn sums_of_any_floats_are_the_same_to_the_bit_on_any_number_of_threads() {
    let random = apply(Indexed { shape: vec![1009], map: IndexMap::Uniform(Key::new(3, 0)) }, &[]);
    let x = apply(Rechunk(Chunks::Each(7)), &[&apply(Unary(UnaryOp::Log), &[&random])]);
    let sum = apply(Reduce { fold: Fold::Sum, axes: vec![0], keepdims: false }, &[&x]);
    let bits: HashSet<u64> = [1, 2, 3, 5].map(|threads| run(&sum, threads).0[0].to_bits()).into();
    assert_eq!(bits.len(), 1, "{bits:?}");
    // In another order of addition the bits differ, so that the order is what was compared.
    let (elements, _) = run(&x, 1);
    let forwards: f64 = elements.iter().sum();
    let backwards: f64 = elements.iter().rev().sum();
    assert_ne!(forwards.to_bits(), backwards.to_bits());
}

#[test]
fn metrics_and_progress_count_each_task_once() {
    for (name, job) in jobs(5, 3) {
        let (tasks, progress) = (job.schedule.order.len() as u64, job.progress.clone());
        let grids: Vec<u64> =
            job.runnable.plan().stages.iter().map(|stage| stage.grid.count() as u64).collect();
        let result = job.runnable.plan().results[0];
        let result_bytes = job.runnable.plan().tensors[result].bytes();
        let metrics = LocalExecutor::sized(3, 64 << 20).execute(job).unwrap().metrics;
        assert_eq!((metrics.tasks, progress.done()), (tasks, tasks), "{name}");
        assert_eq!(metrics.stages.iter().map(|stage| stage.tasks).collect::<Vec<u64>>(), grids, "{name}");
        assert!(result_bytes <= metrics.peak_bytes, "{name}: the result was there at the end");
    }
}

#[test]
fn the_memory_that_a_refusal_names_is_enough() {
    let x = apply(Indexed { shape: vec![100_003], map: IndexMap::Uniform(Key::new(1, 0)) }, &[]);
    let log = apply(Unary(UnaryOp::Log), &[&x]);
    let sums = apply(Cumulative { scan: Scan::Sum, axis: 0 }, &[&log]);
    for (root, memory_bytes) in [(&log, 1 << 10), (&log, 810_000), (&sums, 1 << 16), (&sums, 850_000)] {
        for threads in [1, 3] {
            let limits = LocalExecutor::sized(threads, memory_bytes).limits();
            let refused = plan(from_ref(root), limits).unwrap_err();
            let Error::Memory { needed_bytes, limit_bytes } = refused else { panic!("{refused:?}") };
            assert!(limit_bytes == memory_bytes && memory_bytes < needed_bytes, "{refused:?}");
            let executor = LocalExecutor::sized(threads, needed_bytes);
            let job = plan(from_ref(root), executor.limits()).unwrap();
            assert!(job.schedule.bound_bytes <= needed_bytes);
        }
    }
}

#[test]
fn a_plan_beyond_its_memory_and_its_disk_is_refused_with_what_is_enough() {
    let x = apply(Indexed { shape: vec![100_003], map: IndexMap::Uniform(Key::new(1, 0)) }, &[]);
    let log = apply(Unary(UnaryOp::Log), &[&x]);
    for (memory_bytes, stored_bytes) in [(1, 2), (1 << 8, 810_000), (1 << 8, 1 << 30)] {
        let limits = Limits { stored_bytes, ..LocalExecutor::sized(3, memory_bytes).limits() };
        let refused = plan(from_ref(&log), limits).unwrap_err();
        let Error::Memory { needed_bytes, limit_bytes } = refused else { panic!("{refused:?}") };
        assert!([memory_bytes, stored_bytes].contains(&limit_bytes) && limit_bytes < needed_bytes);
        let enough =
            Limits { memory_bytes: needed_bytes, stored_bytes: stored_bytes.max(needed_bytes), ..limits };
        let schedule = plan(from_ref(&log), enough).unwrap().schedule;
        assert!(schedule.running_bytes <= enough.memory_bytes && schedule.bound_bytes <= enough.stored_bytes);
    }
}

#[test]
fn a_result_asked_for_twice_takes_its_memory_once() {
    // 800 kB in 1 MiB.
    let log = |seed| {
        let x = apply(Indexed { shape: vec![100_003], map: IndexMap::Uniform(Key::new(seed, 0)) }, &[]);
        apply(Unary(UnaryOp::Log), &[&x])
    };
    let limits = LocalExecutor::sized(2, 1 << 20).limits();
    assert!(plan(&[log(1), log(1), log(1)], limits).unwrap().schedule.bound_bytes <= 1 << 20);
    assert!(matches!(plan(&[log(1), log(2)], limits).unwrap_err(), Error::Memory { .. }));
}

#[test]
fn plans_of_many_chunks_are_as_small_as_plans_of_few() {
    let plan_of = |chunk: usize| {
        let root = apply(Unary(UnaryOp::Square), &[&numbers(&[10_000], chunk)]);
        let job = plan(&[root], LocalExecutor::sized(2, 64 << 20).limits()).unwrap();
        (job.runnable.plan().stages.len(), job.runnable.plan().tensors.len(), job.schedule.order.len())
    };
    assert_eq!(plan_of(1000), (1, 1, 10));
    assert_eq!(plan_of(1), (1, 1, 10_000));
}

#[test]
fn each_step_of_a_fold_merges_up_to_64_partial_results() {
    let grids = |shape: &[usize]| {
        let axes: Vec<usize> = (0..shape.len()).collect();
        let root = apply(Reduce { fold: Fold::Max, axes, keepdims: true }, &[&numbers(shape, 1)]);
        let job = plan(&[root], LocalExecutor::sized(2, 64 << 20).limits()).unwrap();
        job.runnable.plan().stages.iter().map(|stage| stage.grid.grid()).collect::<Vec<_>>()
    };
    assert_eq!(grids(&[1000]), [[1000], [16], [1]]);
    assert_eq!(grids(&[64]), [[64], [1]]);
    assert_eq!(grids(&[65]), [[65], [2], [1]]);
    // The last axis is merged first.
    assert_eq!(grids(&[40, 40]), [[40, 40], [40, 1], [1, 1]]);
}

#[test]
fn more_tasks_than_a_plan_may_have_are_refused_with_their_number() {
    let each = |shape: usize| {
        let ramp = apply(Indexed { shape: vec![shape], map: IndexMap::Position }, &[]);
        apply(Rechunk(Chunks::Each(1)), &[&ramp])
    };
    let limits = LocalExecutor::sized(1, 1 << 40).limits();
    let tasks = |roots: &[NodeRef]| lower(roots, &limits).map(|lowered| lowered.plan.task_count());
    assert_eq!(tasks(&[each(9_999_999), each(1)]), Ok(TASKS_MAX));
    let refused = tasks(&[each(9_999_999), each(2)]);
    assert_eq!(refused, Err(Error::TooManyTasks { tasks: TASKS_MAX + 1, limit: TASKS_MAX }));
}

/// Counts its calls and fails in the call of this number.
#[derive(Debug)]
struct FailsAt {
    call: u64,
    calls: Arc<AtomicU64>,
}

impl Foreign for FailsAt {
    fn name(&self) -> Option<ForeignName> {
        None
    }

    fn describe(&self) -> String {
        "fails".to_owned()
    }

    fn run(&self, _: Place<'_>, args: &[Chunk]) -> Result<Chunk, Error> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        if call == self.call {
            return Err(Error::Function { function: "f".to_owned(), reason: format!("call {call}") });
        }
        // Time for a thread that was set aside to report the failure.
        std::thread::sleep(Duration::from_millis(2));
        Ok(args[0].clone())
    }
}

#[test]
fn no_task_starts_after_the_first_that_failed() {
    for threads in [1, 2, 4] {
        let calls = Arc::new(AtomicU64::new(0));
        let function = Arc::new(FailsAt { call: 5, calls: calls.clone() });
        let op = MapChunk { function, dtype: DType::F64, extents: vec![None] };
        let root = apply(op, &[&numbers(&[200], 1)]);
        let executor = LocalExecutor::sized(threads, 64 << 20);
        let refused = executor.execute(plan(&[root], executor.limits()).unwrap()).unwrap_err();
        assert_eq!(refused, Error::Function { function: "f".to_owned(), reason: "call 5".to_owned() });
        // Those that start before the failure is reported end, which are few: a report takes no 100 ms.
        let calls = calls.load(Ordering::Relaxed);
        assert!(calls < if threads == 1 { 6 } else { 150 }, "{calls} calls on {threads} threads");
    }
}

#[test]
fn a_run_whose_time_is_over_starts_no_task() {
    let job = jobs(5, 2).remove(0).1;
    let progress = job.progress.clone();
    let late = LocalExecutor::sized(2, 64 << 20).until(Instant::now());
    assert_eq!(late.execute(job).unwrap_err(), Error::Timeout);
    assert_eq!(progress.done(), 0);
}

/// Waits for what is held.
#[derive(Debug)]
struct Waits(Arc<Mutex<()>>);

impl Foreign for Waits {
    fn name(&self) -> Option<ForeignName> {
        None
    }

    fn describe(&self) -> String {
        "waits".to_owned()
    }

    fn run(&self, _: Place<'_>, args: &[Chunk]) -> Result<Chunk, Error> {
        let _held = self.0.lock().unwrap();
        Ok(args[0].clone())
    }
}

#[test]
fn a_task_that_takes_longer_than_the_time_is_left_behind() {
    for threads in [1, 3] {
        let gate = Arc::new(Mutex::new(()));
        let op = MapChunk { function: Arc::new(Waits(gate.clone())), dtype: DType::F64, extents: vec![None] };
        let root = apply(op, &[&numbers(&[8], 4)]);
        let held = gate.lock().unwrap();
        let soon = Instant::now() + Duration::from_millis(500);
        let executor = LocalExecutor::sized(threads, 64 << 20).until(soon);
        let job = plan(&[root], executor.limits()).unwrap();
        let progress = job.progress.clone();
        assert_eq!(executor.execute(job).unwrap_err(), Error::Timeout, "while the task still waits");
        assert_eq!(progress.done(), 0);
        assert!(0 < tasks_left_behind(), "it is counted");
        drop(held);
        let end = Instant::now() + Duration::from_secs(10);
        while 0 < tasks_left_behind() {
            assert!(Instant::now() < end, "it has ended");
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_cancelled_run_leaves_the_task_that_runs_and_begins_no_other() {
    for threads in [1, 3] {
        let gate = Arc::new(Mutex::new(()));
        let op = MapChunk { function: Arc::new(Waits(gate.clone())), dtype: DType::F64, extents: vec![None] };
        let root = apply(op, &[&numbers(&[8], 4)]);
        let executor = LocalExecutor::sized(threads, 64 << 20);
        let job = |root: &NodeRef| plan(std::slice::from_ref(root), executor.limits()).unwrap();
        let cancel = Cancel::new();
        let held = gate.lock().unwrap();
        let waiting = job(&root);
        let progress = waiting.progress.clone();
        let error = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(100));
                cancel.cancel();
            });
            cancel.run(|| executor.execute(waiting)).unwrap_err()
        });
        assert_eq!((&error, progress.done()), (&Error::Cancelled, 0), "while the task still waits");
        assert!(executor.leaves_tasks(&error));
        let late = job(&numbers(&[8], 4));
        let progress = late.progress.clone();
        assert_eq!(cancel.run(|| executor.execute(late)).unwrap_err(), Error::Cancelled);
        assert_eq!(progress.done(), 0, "it has not begun");
        let next = Cancel::new();
        assert!(next.run(|| executor.execute(job(&numbers(&[8], 4)))).is_ok(), "the next run");
        drop(held);
        assert!(executor.execute(job(&root)).is_ok());
    }
}

#[test]
fn a_run_that_ends_in_time_gives_what_one_without_a_time_does() {
    let (expected, job) = jobs(5, 2).remove(0);
    let later = Instant::now() + Duration::from_secs(3600);
    let outcome = LocalExecutor::sized(2, 64 << 20).until(later).execute(job).unwrap();
    let (_, again) = jobs(5, 2).remove(0);
    let without = LocalExecutor::sized(2, 64 << 20).execute(again).unwrap();
    assert_eq!(outcome.metrics.tasks, without.metrics.tasks, "{expected:?}");
}

/// Notes how many threads of this process have the name of its own, as those have that it begins.
#[derive(Debug)]
struct CountsThreads {
    #[allow(dead_code, reason = "its text differs from those of others")]
    number: usize,
    most: Arc<AtomicUsize>,
}

impl Foreign for CountsThreads {
    fn name(&self) -> Option<ForeignName> {
        None
    }

    fn describe(&self) -> String {
        "counts threads".to_owned()
    }

    fn run(&self, _: Place<'_>, args: &[Chunk]) -> Result<Chunk, Error> {
        let own = std::fs::read_to_string("/proc/thread-self/comm").unwrap();
        // Some of other tests end meanwhile.
        let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
        let names = tasks.flat_map(|task| std::fs::read_to_string(task.path().join("comm")));
        self.most.fetch_max(names.filter(|name| *name == own).count(), Ordering::Relaxed);
        Ok(args[0].clone())
    }
}

/// A thread that begins and ends costs more than a small task.
#[test]
fn a_chain_of_tasks_begins_no_thread() {
    let count = || {
        let most = Arc::new(AtomicUsize::new(0));
        let chain = (0..5).fold(numbers(&[8], 8), |last, number| {
            let function = Arc::new(CountsThreads { number, most: most.clone() });
            apply(MapChunk { function, dtype: DType::F64, extents: vec![None] }, &[&last])
        });
        let (_, metrics) = run(&chain, 4);
        (metrics.tasks, most.load(Ordering::Relaxed))
    };
    // No other thread of this process has this name.
    let (tasks, threads) =
        std::thread::Builder::new().name("chain-of-tasks".to_owned()).spawn(count).unwrap().join().unwrap();
    assert!(5 <= tasks, "{tasks}");
    assert_eq!(threads, 1);
}

/// Ends when so many of its calls run at the same time.
#[derive(Debug)]
struct Meets {
    count: usize,
    here: Arc<(Mutex<usize>, Condvar)>,
}

impl Foreign for Meets {
    fn name(&self) -> Option<ForeignName> {
        None
    }

    fn describe(&self) -> String {
        "meets".to_owned()
    }

    fn run(&self, _: Place<'_>, args: &[Chunk]) -> Result<Chunk, Error> {
        let (here, changed) = &*self.here;
        let mut here = here.lock().unwrap();
        *here += 1;
        changed.notify_all();
        let (_here, waited) =
            changed.wait_timeout_while(here, Duration::from_secs(60), |here| *here < self.count).unwrap();
        assert!(!waited.timed_out(), "a task runs without the others");
        Ok(args[0].clone())
    }
}

#[test]
fn as_many_tasks_run_at_once_as_there_are_threads() {
    let later = Instant::now() + Duration::from_secs(3600);
    let threads = 3;
    let executor = LocalExecutor::sized(threads, 64 << 20);
    for executor in [executor, executor.until(later)] {
        let function = Arc::new(Meets { count: threads, here: Arc::default() });
        let op = MapChunk { function, dtype: DType::F64, extents: vec![None] };
        let root = apply(op, &[&numbers(&[threads], 1)]);
        executor.execute(plan(&[root], executor.limits()).unwrap()).unwrap();
    }
}

#[test]
fn an_executor_of_no_threads_or_no_memory_is_refused() {
    assert!(matches!(LocalExecutor::new(0, 1), Err(Error::Value(_))));
    assert!(matches!(LocalExecutor::new(1, 0), Err(Error::Value(_))));
    let limits = LocalExecutor::new(1, 1).unwrap().limits();
    assert_eq!((limits.threads, limits.memory_bytes), (1, 1));
    assert_eq!(LocalExecutor::sized(0, 0).limits(), limits);
}

#[test]
fn a_task_without_one_of_its_chunks_names_it() {
    let (x, y) = (run_kept(&numbers(&[10], 3)), run_kept(&numbers(&[10], 5)));
    let job = plan(&[apply(Binary(BinaryOp::Add), &[&x, &y])], LocalExecutor::sized(1, 64 << 20).limits());
    let job = job.unwrap();
    let task = job.schedule.order[0];
    let chunks: Vec<_> = inputs(&job, task)
        .into_iter()
        .map(|id| (id, job.resident[id.tensor as usize][id.index as usize].fetch().unwrap()))
        .collect();
    assert_eq!(chunks.len(), 2);
    let run = |chunks| job.runnable.run(task, chunks, &mut Scratch::new());
    assert_eq!(run(&chunks).unwrap().len(), 1);
    let refused = run(&chunks[..1]).unwrap_err();
    assert_eq!(refused, Error::Internal("chunk 0 of tensor 1 is missing".to_owned()));
}

/// The same tensor as chunks that exist.
fn run_kept(root: &NodeRef) -> NodeRef {
    let executor = LocalExecutor::sized(2, 64 << 20);
    let outcome = executor.execute(plan(from_ref(root), executor.limits()).unwrap()).unwrap();
    Node::new(outcome.results[0].clone(), vec![]).unwrap()
}

#[test]
fn chunks_of_a_tensor_have_its_bytes_and_fit_their_places() {
    for (name, job) in jobs(5, 2) {
        for (tensor, spec) in (0..).zip(&job.runnable.plan().tensors) {
            let chunks = (0..spec.tiling.count() as u32).map(|index| ChunkId { tensor, index });
            let exact: Vec<u64> =
                chunks.clone().map(|chunk| job.runnable.exact_chunk_bytes(chunk) as u64).collect();
            assert_eq!(exact.iter().sum::<u64>(), spec.bytes(), "{name}");
            for (chunk, exact) in chunks.zip(exact) {
                let most = job.runnable.chunk_bytes(chunk);
                assert!(exact <= most && most % 64 == 0, "{name}: {exact} bytes in {most}");
            }
        }
    }
}

#[test]
fn what_is_too_large_to_keep_is_computed_again_for_each_user() {
    // 2.4 MB: more than a quarter of 8 MiB.
    let x = apply(Unary(UnaryOp::Log), &[&apply(Unary(UnaryOp::Exp), &[&numbers(&[300_007], 20_000)])]);
    let least = apply(Reduce { fold: Fold::Min, axes: vec![0], keepdims: false }, &[&x]);
    let above = apply(Binary(BinaryOp::Subtract), &[&x, &least]);
    let root = apply(Reduce { fold: Fold::Max, axes: vec![0], keepdims: false }, &[&above]);
    let compute = |memory_bytes: u64| {
        let executor = LocalExecutor::sized(2, memory_bytes);
        let outcome = executor.execute(plan(from_ref(&root), executor.limits()).unwrap()).unwrap();
        let chunk = outcome.results[0].chunks[0].fetch().unwrap();
        (chunk.to_vec::<f64>().unwrap()[0], outcome.metrics.peak_bytes)
    };
    let (roomy, all) = compute(64 << 20);
    let (tight, part) = compute(8 << 20);
    assert_eq!(roomy, tight);
    assert!(2_400_000 < all && part < 2_400_000, "{all} and {part} bytes");
}
