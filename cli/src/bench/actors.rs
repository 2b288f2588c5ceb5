//! Actors: latency and throughput of calls, and creation.

use super::statistics::{median, quantile};
use super::{Measurement, Options, floors, tasks};
use anyhow::{Result, bail};
use std::time::{Duration, Instant};
use tharsis::Runtime;
use tharsis::prelude::*;

/// Workers for tasks, as in the benches of tasks; an actor has a worker of its own.
const WORKERS: usize = 2;
/// Callers and actors of the figure `n_to_n`.
const PAIRS: usize = 2;
/// The longest time in which actors without handles must have ended.
const END_WAIT: Duration = Duration::from_secs(30);

/// An actor whose calls cost nothing.
struct Count(u64);

#[actor]
impl Count {
    fn new() -> Self {
        Self(0)
    }

    fn next(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }
}

/// Calls an actor `calls` times; the number of its last call.
#[remote]
fn call_often(count: CountHandle, calls: usize) -> Option<u64> {
    let refs: Vec<_> = (0..calls).map(|_| count.next()).collect();
    tharsis::get_all(&refs, None).ok()?.last().copied()
}

/// Calls of one actor, one at a time.
pub fn latency(options: &Options) -> Result<Measurement> {
    let rounds = if options.quick { 2_000 } else { 20_000 };
    let (futex_us, spin_us) = floors::wake_round_trip_us(rounds / 4)?;
    let _runtime = tasks::runtime(options, WORKERS)?;
    let count = Count::remote();
    let mut samples = Vec::with_capacity(rounds);
    for round in 0..rounds + rounds / 10 {
        let started = Instant::now();
        count.next().get()?;
        if round >= rounds / 10 {
            samples.push(started.elapsed().as_secs_f64() * 1e6);
        }
    }
    let p50 = median(&mut samples);
    Ok(Measurement::new("actor-latency", p50, "us", futex_us)
        .with("p99_us", quantile(&samples, 0.99))
        .with("min_us", quantile(&samples, 0.0))
        .with("spin_floor_us", spin_us))
}

/// Calls per second from one driver to one actor; `n_to_n`: from two tasks to an actor each.
pub fn throughput(options: &Options) -> Result<Measurement> {
    let calls = if options.quick { 20_000 } else { 200_000 };
    let floor = floors::socket_echo_per_s(calls)?;
    let _runtime = tasks::runtime(options, WORKERS)?;
    let count = Count::remote();
    let mut one_to_one = Vec::new();
    for run in 0..6 {
        let started = Instant::now();
        let refs: Vec<_> = (0..calls).map(|_| count.next()).collect();
        tharsis::get_all(&refs, None)?;
        if run > 0 {
            one_to_one.push(calls as f64 / started.elapsed().as_secs_f64());
        }
    }
    drop(count);
    let counts: Vec<_> = (0..PAIRS).map(|_| Count::remote()).collect();
    let mut n_to_n = Vec::new();
    for run in 0..6 {
        let started = Instant::now();
        let callers: Vec<_> = counts.iter().map(|count| call_often::remote(count.clone(), calls)).collect();
        let last = Some((calls * (run + 1)) as u64);
        if tharsis::get_all(&callers, None)?.iter().any(|counted| *counted != last) {
            bail!("an actor counted its calls wrongly");
        }
        if run > 0 {
            n_to_n.push((PAIRS * calls) as f64 / started.elapsed().as_secs_f64());
        }
    }
    Ok(Measurement::new("actor-throughput", median(&mut one_to_one), "calls/s", floor)
        .with("best", quantile(&one_to_one, 1.0))
        .with("n_to_n", median(&mut n_to_n)))
}

/// Seconds until actors that are created at once have answered a call each: in processes of their own, and in
/// shared ones (`shared_s`). With `--embedded` all of them are threads of this process. The floor is that of
/// as many bare processes, or threads.
pub fn create(options: &Options) -> Result<Measurement> {
    let actors = options.size;
    let floor_s = if options.embedded { threads_s(actors)? } else { processes_s(actors)? };
    let runtime = tasks::runtime(options, WORKERS)?;
    // The first process of a program takes longer.
    create_s(&runtime, WORKERS, true)?;
    let (shared_s, shared_end_s) = create_s(&runtime, actors, true)?;
    let (own_s, own_end_s) = create_s(&runtime, actors, false)?;
    Ok(Measurement::new("actor-create", own_s, "s", floor_s)
        .with("actors", actors as f64)
        .with("end_s", own_end_s)
        .with("shared_s", shared_s)
        .with("shared_end_s", shared_end_s))
}

/// Seconds until so many actors have answered, and until they have ended.
fn create_s(runtime: &Runtime, actors: usize, is_shared: bool) -> Result<(f64, f64)> {
    let started = Instant::now();
    let create = |_| Count::options().shared_process(is_shared).remote();
    let counts: Vec<_> = (0..actors).map(create).collect();
    let first: Vec<_> = counts.iter().map(CountHandle::next).collect();
    if tharsis::get_all(&first, None)?.iter().any(|number| *number != 1) {
        bail!("an actor was called before");
    }
    let created_s = started.elapsed().as_secs_f64();
    let ending = Instant::now();
    drop((counts, first));
    while runtime.report()?.task_count > 0 {
        if ending.elapsed() > END_WAIT {
            bail!("actors without handles live on");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok((created_s, ending.elapsed().as_secs_f64()))
}

/// Time to start bare processes one after the other, as a node does.
fn processes_s(count: usize) -> Result<f64> {
    let started = Instant::now();
    let mut processes = Vec::with_capacity(count);
    for _ in 0..count {
        processes.push(std::process::Command::new("/bin/true").spawn()?);
    }
    for mut process in processes {
        process.wait()?;
    }
    Ok(started.elapsed().as_secs_f64())
}

/// Seconds in which so many threads begin and end.
pub fn threads_s(count: usize) -> Result<f64> {
    let started = Instant::now();
    let spawn = |_| std::thread::Builder::new().spawn(|| ());
    let threads = (0..count).map(spawn).collect::<std::io::Result<Vec<_>>>()?;
    for thread in threads {
        if thread.join().is_err() {
            bail!("a thread that does nothing has panicked");
        }
    }
    Ok(started.elapsed().as_secs_f64())
}
