//! Names that are claimed and found.

use super::{Measurement, Options, tasks};
use anyhow::{Context, Result, bail, ensure};
use std::time::Instant;
use tharsis::{Bundle, LocalCluster, PlacementGroup, Runtime, placement_group};

/// Threads of the driver that claim names at the same time.
const THREADS: usize = 4;
/// Workers, as in the benches of tasks.
const WORKERS: usize = 2;
const STORE_BYTES: u64 = 64 << 20;
/// CPUs of each group: so many groups fit a node with one CPU for each worker.
const CPUS_EACH: f64 = 0.0001;
/// Groups at the same time.
const ALIVE_MAX: usize = 10_000;

/// Seconds in which names of placement groups are claimed in the control store of a cluster, by four threads
/// of a driver; with `find_s`, those in which as many are found. Groups need no process, so what is measured
/// are the names. `own_s` is the same where a node keeps the names itself. The floor is the time of as many
/// groups without names.
pub fn names(options: &Options) -> Result<Measurement> {
    let count = options.size;
    let cluster = LocalCluster::start(1, WORKERS as f64, STORE_BYTES)?;
    let socket = cluster.socket(0).context("the head is gone")?.display().to_string();
    let runtime = tharsis::init().address(&socket).start()?;
    let floor_s = seconds(&runtime, count, |_| Ok(group().create()?))?;
    let (claimed_s, find_s) = claimed_and_found(&runtime, count)?;
    drop((runtime, cluster));
    let runtime = tasks::runtime(options, WORKERS)?;
    let (own_s, own_find_s) = claimed_and_found(&runtime, count)?;
    Ok(Measurement::new("names", claimed_s, "s", floor_s)
        .with("names", count as f64)
        .with("find_s", find_s)
        .with("own_s", own_s)
        .with("own_find_s", own_find_s))
}

fn group() -> tharsis::NewGroup {
    placement_group([Bundle::new().num_cpus(CPUS_EACH)])
}

/// Seconds in which names are claimed, and in which the last of them are found.
fn claimed_and_found(runtime: &Runtime, count: usize) -> Result<(f64, f64)> {
    let name = |number: usize| format!("group {number}");
    let claimed = seconds(runtime, count, |number| Ok(group().create_named(&name(number))?))?;
    // Groups whose names are sought live.
    let lives = count.min(ALIVE_MAX);
    let kept = (0..lives).map(|number| Ok(group().get_or_create(&format!("kept {number}"))?));
    let kept = kept.collect::<Result<Vec<_>>>()?;
    kept.last().context("no groups")?.ready().get()?;
    let find = |number: usize| Ok(PlacementGroup::find(&format!("kept {}", number % lives))?);
    Ok((claimed, seconds(runtime, count, find)?))
}

/// Seconds in which so many groups are made or found by several threads.
fn seconds(
    runtime: &Runtime,
    count: usize,
    make: impl Fn(usize) -> Result<PlacementGroup> + Sync,
) -> Result<f64> {
    let started = Instant::now();
    let made = std::thread::scope(|scope| {
        let make = &make;
        let work = move |thread: usize| {
            let _entered = runtime.enter();
            let mut kept = Vec::with_capacity(ALIVE_MAX / THREADS);
            for number in (thread..count).step_by(THREADS) {
                if kept.len() == ALIVE_MAX / THREADS {
                    kept.clear();
                }
                kept.push(make(number)?);
            }
            kept.last().map_or(Ok(0), |last| Ok(last.nodes()?.len()))
        };
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || work(thread))).collect();
        let ends = threads.into_iter().map(|thread| match thread.join() {
            Ok(made) => made,
            Err(_) => bail!("a thread that makes groups panicked"),
        });
        ends.sum::<Result<usize>>()
    })?;
    ensure!(made == THREADS.min(count), "the last groups of the threads are placed on {made} nodes");
    Ok(started.elapsed().as_secs_f64())
}
