//! Calls that differ in what they need.

use super::statistics::{median, quantile};
use super::{Measurement, Options};
use anyhow::Result;
use std::time::Instant;
use tharsis::prelude::*;

/// Workers, as in the benches of tasks.
const WORKERS: usize = 2;
/// Runs that count, after one that warms up.
const RUNS: usize = 3;
/// A resource of which the node has more than all calls together need: that they wait is due to the CPUs.
const PLENTY: &str = "plenty";
const PLENTY_AMOUNT: f64 = 1e11;

#[remote]
fn noop() {}

/// Calls per second that all need another amount of a resource, so that none of them shares its place in the
/// queue, or its lease of a worker, with another one. Amounts do not come again in a later run. The floor is
/// the rate of as many calls that need the same.
pub fn shapes(options: &Options) -> Result<Measurement> {
    let calls = options.size;
    let init = tharsis::init().resource(PLENTY, PLENTY_AMOUNT);
    let init = if options.embedded { init.num_cpus(WORKERS as f64) } else { init.workers(WORKERS) };
    let _runtime = init.start()?;
    let (mut differing, mut alike, mut submit_us) = (Vec::new(), Vec::new(), Vec::new());
    for run in 0..RUNS + 1 {
        let first = run * calls + 1;
        let (rate, submitted) = rate(calls, |call| (first + call) as f64)?;
        let (floor, _) = self::rate(calls, |_| 1.0)?;
        if run > 0 {
            differing.push(rate);
            alike.push(floor);
            submit_us.push(submitted * 1e6 / calls as f64);
        }
    }
    Ok(Measurement::new("shapes", median(&mut differing), "calls/s", median(&mut alike))
        .with("best", quantile(&differing, 1.0))
        .with("submit_us", median(&mut submit_us)))
}

/// Calls per second until all have ended, and the seconds until all were submitted.
fn rate(calls: usize, amount: impl Fn(usize) -> f64) -> Result<(f64, f64)> {
    let started = Instant::now();
    let call = |number| noop::options().resource(PLENTY, amount(number)).remote();
    let references: Vec<_> = (0..calls).map(call).collect();
    let submitted = started.elapsed().as_secs_f64();
    get_all(&references, None)?;
    Ok((calls as f64 / started.elapsed().as_secs_f64(), submitted))
}
