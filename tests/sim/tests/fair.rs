//! Jobs that keep a node busy share it by their weights, whatever the priority and the length of their tasks.

use tharsis_core::MS;
use tharsis_sim::fair::{Job, shares};

/// The time for which they compute.
const TIME: u64 = 4_000 * MS;
/// A job gets at least this part of its share.
const LEAST: f64 = 0.75;

/// Checks that each job gets about what its weight says, and that the node is busy.
fn fair(jobs: &[Job]) {
    let used = shares(jobs, TIME);
    let (all, weights) = (used.iter().sum::<u64>() as f64, jobs.iter().map(|job| job.weight).sum::<u32>());
    for (job, used) in jobs.iter().zip(&used) {
        let share = all * f64::from(job.weight) / f64::from(weights);
        assert!(LEAST * share <= *used as f64, "{job:?} got {used} of {all}, its share is {share}");
    }
    assert!(0.8 * (4 * TIME) as f64 <= all, "the node was busy for {all} ns of {}", 4 * TIME);
}

fn job(weight: u32, priority: i32, task_us: u64) -> Job {
    Job { weight, priority, task_us }
}

#[test]
fn equal_jobs_get_equal_parts() {
    fair(&[job(100, 0, 3_000), job(100, 0, 3_000)]);
}

#[test]
fn a_job_of_more_weight_gets_more() {
    fair(&[job(100, 0, 3_000), job(300, 0, 3_000)]);
}

#[test]
fn urgent_tasks_take_nothing_from_other_jobs() {
    fair(&[job(100, 0, 3_000), job(100, 9, 3_000), job(100, -9, 3_000)]);
}

#[test]
fn long_tasks_take_no_more_than_short_ones() {
    fair(&[job(100, 0, 500), job(100, 0, 40_000)]);
}
