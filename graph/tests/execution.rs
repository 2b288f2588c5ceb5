//! Relations that hold for every plan: its order, its readers, its bound and its batches, and that values do
//! not depend on chunks, threads or memory.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{HashMap, HashSet};
use std::slice::from_ref;
use tharsis_graph::ops::{Binary, Cumulative, Full, Indexed, MatMul, Rechunk, Reduce, Reshape, Unary};
use tharsis_graph::plan::{ChunkId, TaskId};
use tharsis_graph::{
    BatchLimits, Batches, Chunks, Executor, Job, LocalExecutor, Metrics, Node, NodeRef, Operator, plan,
};
use tharsis_kernels::chunkwise::Scan;
use tharsis_kernels::program::IndexMap;
use tharsis_kernels::{BinaryOp, DType, Fold, Key, Scalar, UnaryOp};

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
