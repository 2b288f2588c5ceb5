//! Batches: every task runs once, after its inputs, and batches do not wait for each other in a row.

use std::collections::HashSet;
use tharsis_graph::batch::{BatchLimits, Batches};
use tharsis_graph::lower::Limits;
use tharsis_graph::{Job, plan};
use tharsis_numeric::random::default_rng;
use tharsis_numeric::{Chunks, Tensor};

fn job(tensor: &Tensor) -> Job {
    plan(&[tensor.node().unwrap().clone()], Limits::new(2, 1 << 30)).unwrap()
}

fn batches(job: &Job, tasks: usize) -> Batches {
    let limits = BatchLimits { cost: f64::INFINITY, tasks, bytes: u64::MAX };
    Batches::new(&job.runnable, &job.schedule, limits).unwrap()
}

fn inputs(job: &Job, batches: &Batches, batch: usize) -> Vec<usize> {
    let mut chunks = Vec::new();
    batches.inputs(&job.runnable, batch, &mut chunks);
    chunks.into_iter().filter_map(|chunk| batches.maker(chunk)).collect()
}

fn programs() -> Vec<Tensor> {
    let x = default_rng(1).random(&[64, 60]).rechunk(Chunks::PerAxis(vec![3, 7]));
    let row_means = x.mean(1).expand_dims(1);
    vec![x.sum(..), (&x - &row_means).std(..), x.matmul(&x.t()).cumsum(0)]
}

#[test]
fn every_task_is_in_one_batch_after_those_it_reads_from() {
    for program in programs() {
        let job = job(&program);
        for tasks in [1, 5, 1000] {
            let batches = batches(&job, tasks);
            let all: Vec<_> = (0..batches.len()).flat_map(|batch| batches.tasks(batch)).collect();
            let distinct: HashSet<_> = all.iter().collect();
            assert_eq!((all.len(), distinct.len()), (job.schedule.order.len(), job.schedule.order.len()));
            for batch in 0..batches.len() {
                assert!(inputs(&job, &batches, batch).iter().all(|&maker| maker < batch));
            }
        }
    }
}

#[test]
fn single_tasks_keep_the_order_of_the_schedule() {
    for program in programs() {
        let job = job(&program);
        let batches = batches(&job, 1);
        let order: Vec<_> = (0..batches.len()).flat_map(|batch| batches.tasks(batch).to_vec()).collect();
        assert_eq!(order, job.schedule.order);
    }
}

#[test]
fn the_batches_of_a_sum_do_not_wait_for_one_another() {
    let x = default_rng(1).random(&[10_000]).rechunk(Chunks::Each(2));
    let y = default_rng(2).random(&[10_000]).rechunk(Chunks::Each(2));
    let job = job(&(&x + &y).sum(..));
    let batches = batches(&job, 50);
    let mut depths: Vec<usize> = Vec::new();
    for batch in 0..batches.len() {
        let below = inputs(&job, &batches, batch).into_iter().map(|maker| depths[maker] + 1);
        depths.push(below.max().unwrap_or(0));
    }
    let deepest = depths.iter().max().unwrap();
    assert!(100 < batches.len() && *deepest < 8, "{} batches, {deepest} in a row", batches.len());
}

#[test]
fn what_only_the_next_task_reads_stays_in_the_batch() {
    let x = default_rng(1).random(&[100_000, 32]);
    let (u, s, vt) = x.svd();
    let back = (u * s).matmul(&vt);
    let error = (back - x).abs().max(..);
    // So little memory that tensors used by several passes are computed in each.
    let job = plan(&[error.node().unwrap().clone()], Limits::new(2, 64 << 20)).unwrap();
    let limits = BatchLimits { cost: 1.0, tasks: 256, bytes: 1 << 20 };
    let large = |batches: &Batches| {
        let plan = job.runnable.plan();
        let tensors = (0..plan.tensors.len() as u32).flat_map(|tensor| {
            let count = plan.tensors[tensor as usize].tiling.count() as u32;
            (0..count).map(move |index| tharsis_graph::plan::ChunkId { tensor, index })
        });
        let bytes = |id: &_| job.runnable.chunk_bytes(*id);
        tensors.filter(|id| 100_000 < bytes(id) && batches.readers(*id) != 0).count()
    };
    let cut = Batches::new(&job.runnable, &job.schedule, limits).unwrap();
    let limits = BatchLimits { cost: 1e6, ..limits };
    let joined = Batches::new(&job.runnable, &job.schedule, limits).unwrap();
    // Of each block of rows one factor waits for those of the other blocks.
    let (apart, together) = (large(&cut), large(&joined));
    assert!(3 * together <= apart, "few large chunks leave a batch: {together} of {apart}");
}

#[test]
fn sources_that_meet_have_one_home_and_there_are_enough_homes() {
    // Scans store their inputs, so that each sum reads a batch of either side.
    let stored = |seed| {
        let x = default_rng(seed).random(&[256, 64]).rechunk(Chunks::PerAxis(vec![1, 64]));
        x.cumsum(1)
    };
    let job = job(&(stored(1) + stored(2)).exp());
    let batches = batches(&job, 1);
    assert_eq!(batches.source_count(), (512, 256));
    for batch in 0..batches.len() {
        let makers = inputs(&job, &batches, batch);
        let homes: HashSet<_> = makers.iter().map(|&maker| batches.home(maker)).collect();
        assert!(batches.home(batch).is_some() && homes.len() <= 1);
        assert!(homes.into_iter().all(|home| home == batches.home(batch)), "what they make stays there");
    }
}

#[test]
fn a_sum_of_everything_has_many_homes() {
    let x = default_rng(1).random(&[10_000]).rechunk(Chunks::Each(2));
    let (sources, homes) = batches(&job(&x.sum(..)), 10).source_count();
    assert!(sources == 500 && 64 <= homes, "{sources} sources, {homes} homes");
}
