//! Placement groups: made and removed.

use super::statistics::{median, quantile};
use super::{Measurement, Options, floors, tasks};
use anyhow::Result;
use std::time::{Duration, Instant};
use tharsis::{Bundle, Runtime, placement_group};

/// Workers, as in the benches of tasks.
const WORKERS: usize = 2;
/// Groups of the second figure that exist at the same time.
const AT_ONCE: usize = 100;
/// The longest time in which the resources of removed groups must be free.
const FREE_WAIT: Duration = Duration::from_secs(10);

/// Groups of two bundles per second that are made, waited for and removed, one after the other; for
/// `at_once_per_s` a hundred are made, then waited for, then removed. The floor is the rate at which two
/// threads can wake each other.
pub fn create_and_remove(options: &Options) -> Result<Measurement> {
    let rounds = if options.quick { 1_000 } else { 10_000 };
    let (futex_us, _) = floors::wake_round_trip_us(5_000)?;
    let runtime = tasks::runtime(options, WORKERS)?;
    let (mut alone, mut at_once) = (Vec::new(), Vec::new());
    for run in 0..6 {
        let of_alone = rate(&runtime, rounds, 1, 1.0)?;
        let of_many = rate(&runtime, rounds, AT_ONCE, 1.0 / AT_ONCE as f64)?;
        if run > 0 {
            alone.push(of_alone);
            at_once.push(of_many);
        }
    }
    Ok(Measurement::new("pg", median(&mut alone), "groups/s", 1e6 / futex_us)
        .with("best", quantile(&alone, 1.0))
        .with("at_once_per_s", median(&mut at_once)))
}

/// Groups per second, so many at the same time, until the resources of all of them are free again.
fn rate(runtime: &Runtime, rounds: usize, at_once: usize, cpus: f64) -> Result<f64> {
    let started = Instant::now();
    for _ in 0..rounds / at_once {
        let bundles = || [Bundle::new().num_cpus(cpus), Bundle::new().num_cpus(cpus)];
        let make = |_| placement_group(bundles()).create();
        let groups = (0..at_once).map(make).collect::<Result<Vec<_>, _>>()?;
        for group in &groups {
            group.ready().get()?;
        }
        groups.iter().try_for_each(|group| group.remove())?;
    }
    let elapsed = started.elapsed();
    let removed = Instant::now();
    loop {
        let node = runtime.report()?.nodes.into_iter().next();
        if node.is_some_and(|node| node.free == node.total) {
            return Ok(rounds as f64 / elapsed.as_secs_f64());
        }
        anyhow::ensure!(removed.elapsed() < FREE_WAIT, "removed groups keep their resources");
        std::thread::sleep(Duration::from_millis(1));
    }
}
