//! Rate of tasks that wait for their child tasks.

use super::statistics::{median, quantile};
use super::{Measurement, Options, floors, tasks};
use anyhow::{Result, bail};
use std::time::Instant;
use tharsis::prelude::*;

/// Workers, as in the benches of tasks.
const WORKERS: usize = 2;
/// Children of each parent.
const CHILDREN: u64 = 3;

#[remote]
fn child(n: u64) -> u64 {
    n + 1
}

/// The sum of what its children return; `None` if one failed.
#[remote]
fn parent() -> Option<u64> {
    let children: Vec<_> = (0..CHILDREN).map(child::remote).collect();
    tharsis::get_all(&children, None).ok().map(|values| values.iter().sum())
}

/// Parents per second that wait for three children each and continue. The floor is the rate at which two
/// threads can wake each other.
pub fn nested(options: &Options) -> Result<Measurement> {
    let parents = if options.quick { 2_000 } else { 20_000 };
    let (futex_us, _) = floors::wake_round_trip_us(5_000)?;
    let runtime = tasks::runtime(options, WORKERS)?;
    let (mut rates, mut most_workers) = (Vec::new(), 0);
    for run in 0..6 {
        let started = Instant::now();
        let refs: Vec<_> = (0..parents).map(|_| parent::remote()).collect();
        let sums = tharsis::get_all(&refs, None)?;
        if sums.iter().any(|sum| *sum != Some(CHILDREN * (CHILDREN + 1) / 2)) {
            bail!("a parent has a wrong sum");
        }
        if run > 0 {
            rates.push(parents as f64 / started.elapsed().as_secs_f64());
        }
        most_workers = most_workers.max(runtime.report()?.worker_count);
    }
    Ok(Measurement::new("nested", median(&mut rates), "resumes/s", 1e6 / futex_us)
        .with("best", quantile(&rates, 1.0))
        .with("workers", most_workers as f64))
}
