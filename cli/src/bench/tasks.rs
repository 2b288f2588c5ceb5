//! Tasks: latency, throughput, memory of a backlog, chains and fans.

use super::statistics::{median, quantile};
use super::{Measurement, Options, floors, memory};
use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tharsis::prelude::*;
use tharsis::{Runtime, observe};
use tharsis_protos::handshake::Question;

/// Number of workers of every bench, that of the cores of the reference machine.
const WORKERS: usize = 2;

/// Time after which the memory of finished tasks must be free.
const GIVE_BACK_WAIT: Duration = Duration::from_secs(3);

#[remote]
fn noop() {}

#[remote]
fn successor(n: u64) -> u64 {
    n + 1
}

#[remote]
fn many(count: u64) -> Returns<u64> {
    (0..count).collect()
}

/// Runs until a file appears; keeps its worker busy meanwhile.
#[remote]
fn gate(opened_by: PathBuf) {
    while !opened_by.exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A runtime with workers, as processes or threads according to the options.
pub fn runtime(options: &Options, workers: usize) -> Result<Runtime> {
    let init = if options.embedded {
        tharsis::init().num_cpus(workers as f64)
    } else {
        tharsis::init().workers(workers)
    };
    Ok(init.start()?)
}

/// No-op round trips, one at a time.
pub fn latency(options: &Options) -> Result<Measurement> {
    let rounds = if options.quick { 2_000 } else { 20_000 };
    let (futex_us, spin_us) = floors::wake_round_trip_us(rounds / 4)?;
    let _runtime = runtime(options, WORKERS)?;
    let mut samples = Vec::with_capacity(rounds);
    for round in 0..rounds + rounds / 10 {
        let started = Instant::now();
        noop::remote().get()?;
        if round >= rounds / 10 {
            samples.push(started.elapsed().as_secs_f64() * 1e6);
        }
    }
    let p50 = median(&mut samples);
    Ok(Measurement::new("task-latency", p50, "us", futex_us)
        .with("p99_us", quantile(&samples, 0.99))
        .with("min_us", quantile(&samples, 0.0))
        .with("spin_floor_us", spin_us))
}

/// No-op tasks per second from one driver that submits all, then reads all.
pub fn throughput(options: &Options) -> Result<Measurement> {
    let tasks = if options.quick { 50_000 } else { 500_000 };
    let floor = floors::socket_echo_per_s(tasks)?;
    let _runtime = runtime(options, WORKERS)?;
    let mut rates = Vec::new();
    let mut submit_ns = Vec::new();
    for run in 0..6 {
        let started = Instant::now();
        let refs: Vec<_> = (0..tasks).map(|_| noop::remote()).collect();
        let submitted = started.elapsed();
        tharsis::get_all(&refs, None)?;
        if run > 0 {
            rates.push(tasks as f64 / started.elapsed().as_secs_f64());
            submit_ns.push(submitted.as_nanos() as f64 / tasks as f64);
        }
    }
    Ok(Measurement::new("task-throughput", median(&mut rates), "tasks/s", floor)
        .with("submit_ns", median(&mut submit_ns))
        .with("best", quantile(&rates, 1.0)))
}

/// Memory of queued no-ops, in all processes together.
pub fn backlog(options: &Options) -> Result<Measurement> {
    let tasks = if options.quick { 100_000 } else { 1_000_000 };
    let runtime = runtime(options, 1)?;
    let pids = processes(&runtime)?;
    for _ in 0..100 {
        noop::remote().get()?;
    }
    // Memory that earlier benches left in the allocator must not hide the memory of tasks.
    crate::allocator::give_back();
    let before = total_pss(&pids)?;
    let file = std::env::temp_dir().join(format!("tharsis-gate-{}", std::process::id()));
    let blocked = gate::remote(file.clone());
    let mut refs = Vec::with_capacity(tasks);
    let mut rates = Vec::new();
    for _ in 0..10 {
        let started = Instant::now();
        refs.extend((0..tasks / 10).map(|_| noop::remote()));
        rates.push(tasks as f64 / 10.0 / started.elapsed().as_secs_f64());
    }
    // The records are in the rings; give the node time to read them.
    wait_for_queue(&runtime, tasks)?;
    let full = total_pss(&pids)?;
    std::fs::write(&file, "")?;
    let drained = tharsis::get_all(&refs, None);
    std::fs::remove_file(&file)?;
    drained?;
    blocked.get()?;
    drop(refs);
    // Memory that the allocator of this driver keeps for its next wave is not held by tasks.
    crate::allocator::give_back();
    std::thread::sleep(GIVE_BACK_WAIT);
    let after = total_pss(&pids)?;
    let half = |part: &[f64]| part.len() as f64 / part.iter().map(|rate| 1.0 / rate).sum::<f64>();
    let (first, last) = (half(&rates[..rates.len() / 2]), half(&rates[rates.len() / 2..]));
    let per_task = |bytes: u64| bytes.saturating_sub(before) as f64 / tasks as f64;
    Ok(Measurement::new("task-backlog", per_task(full), "B/task", 0.0)
        .with("left_over", per_task(after))
        .with("second_half_to_first", last / first))
}

/// Tasks that each need the one before, submitted at once.
pub fn chain(options: &Options) -> Result<Measurement> {
    let hops = if options.quick { 1_000 } else { 10_000 };
    let (futex_us, _) = floors::wake_round_trip_us(1_000)?;
    let _runtime = runtime(options, WORKERS)?;
    let mut per_hop = Vec::new();
    for run in 0..6 {
        let started = Instant::now();
        let mut last = successor::remote(0);
        for _ in 1..hops {
            last = successor::remote(&last);
        }
        if last.get()? != hops {
            bail!("the chain gave a wrong result");
        }
        if run > 0 {
            per_hop.push(started.elapsed().as_secs_f64() * 1e6 / hops as f64);
        }
    }
    Ok(Measurement::new("chain", median(&mut per_hop), "us/hop", futex_us))
}

/// Wide tasks: 10 000 arguments by reference, 3 000 returns, one read of 10 000 objects.
pub fn fan(options: &Options) -> Result<Measurement> {
    let _runtime = runtime(options, WORKERS)?;
    let (arguments, returns) = (10_000, 3_000);
    let (mut wide, mut spread, mut read) = (Vec::new(), Vec::new(), Vec::new());
    let inputs: Vec<_> = (0..arguments).map(|n| put(&n)).collect::<Result<_, _>>()?;
    for run in 0..6 {
        let started = Instant::now();
        let sum = sum_all::remote(&inputs).get()?;
        if sum != arguments * (arguments - 1) / 2 {
            bail!("the sum of the arguments is wrong");
        }
        let with_arguments = started.elapsed();
        let started = Instant::now();
        let outputs = many::options().num_returns(returns).remote(u64::from(returns));
        let values = tharsis::get_all(&outputs, None)?;
        if values.len() != returns as usize {
            bail!("returns are missing");
        }
        let with_returns = started.elapsed();
        let started = Instant::now();
        tharsis::get_all(&inputs, None)?;
        if run > 0 {
            wide.push(with_arguments.as_secs_f64() * 1e3);
            spread.push(with_returns.as_secs_f64() * 1e3);
            read.push(started.elapsed().as_secs_f64() * 1e3);
        }
    }
    let (wide, spread, read) = (median(&mut wide), median(&mut spread), median(&mut read));
    Ok(Measurement::new("fan", wide.max(spread).max(read), "ms", 0.0)
        .with("arguments_ms", wide)
        .with("returns_ms", spread)
        .with("get_ms", read))
}

/// A sum over references whose tasks have not begun when it is submitted; timed from the first of these to
/// the sum.
pub fn fan_in(options: &Options) -> Result<Measurement> {
    let _runtime = runtime(options, WORKERS)?;
    let count = options.size as u64;
    let right = count * (count + 1) / 2;
    let (mut pending, mut calls, mut there) = (Vec::new(), Vec::new(), Vec::new());
    for run in 0..6 {
        let started = Instant::now();
        let inputs: Vec<_> = (0..count).map(|n| successor::remote(n)).collect();
        let sum = sum_all::remote(&inputs);
        let submitted = started.elapsed();
        if sum.get()? != right {
            bail!("the sum of what was pending is wrong");
        }
        let with_pending = started.elapsed();
        let started = Instant::now();
        if sum_all::remote(&inputs).get()? != right {
            bail!("the sum of what was there is wrong");
        }
        if run > 0 {
            pending.push(with_pending.as_secs_f64() * 1e3);
            calls.push(submitted.as_secs_f64() * 1e3);
            there.push(started.elapsed().as_secs_f64() * 1e3);
        }
    }
    Ok(Measurement::new("fan-in", median(&mut pending), "ms", 0.0)
        .with("submit_ms", median(&mut calls))
        .with("there_ms", median(&mut there)))
}

#[remote]
fn sum_all(values: Values<u64>) -> u64 {
    values.into_iter().sum()
}

/// This process, and those of the node and its workers if there are any.
fn processes(runtime: &Runtime) -> Result<Vec<u32>> {
    let mut pids = vec![std::process::id()];
    if let Some(socket) = runtime.socket() {
        let node = observe::ask(socket, Question::Status)?.pid;
        pids.extend(memory::family(node));
    }
    Ok(pids)
}

fn total_pss(pids: &[u32]) -> Result<u64> {
    pids.iter().map(|pid| memory::pss_bytes(*pid)).sum()
}

/// Waits until the node has all tasks in its ledger.
pub fn wait_for_queue(runtime: &Runtime, tasks: usize) -> Result<()> {
    let Some(socket) = runtime.socket() else {
        std::thread::sleep(Duration::from_millis(500));
        return Ok(());
    };
    let until = Instant::now() + Duration::from_secs(30);
    while observe::ask(socket, Question::Status).context("the node with the backlog")?.task_count < tasks {
        if Instant::now() > until {
            bail!("the node did not read all submissions in 30 s");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
