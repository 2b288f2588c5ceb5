//! The headline jobs beside what they would cost by hand, in the same run: value and floor.
//!
//! `cargo run --release -p tharsis-numeric --example headline -- pi 1000000000`. Jobs: `pi`, `axpb`, `arange`, `small-chunks`, `plan`,
//! `gemm-std`, `svd` (rows of 32).

mod floors;

use std::time::Instant;
use tharsis_graph::Executor;
use tharsis_numeric::random::default_rng;
use tharsis_numeric::{Chunks, LocalExecutor, Result, Tensor, arange, execute};

const THREADS: usize = 2;
const ROUNDS: usize = 3;

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let job = args.next().unwrap_or_else(|| "pi".to_owned());
    let n: usize = args.next().map_or(Ok(100_000_000), |text| text.parse())?;
    match job.as_str() {
        "pi" => compare(&job, 200 << 20, || pi(n), || floors::pi(n as u64, THREADS))?,
        "axpb" => {
            compare(&job, 1 << 30, || axpb(default_rng(1).random(&[n])?), || floors::axpb(n as u64, THREADS))?
        }
        "arange" => compare(&job, 1 << 30, || axpb(arange(n)?), || floors::axpb_arange(n as u64, THREADS))?,
        "small-chunks" => small_chunks(n)?,
        "plan" => plan(n)?,
        "gemm-std" => gemm_std(n)?,
        "svd" => compare(&job, 1 << 30, || svd(n), || floors::svd(n, THREADS).unwrap_or(f64::NAN))?,
        other => return Err(format!("no job named {other}").into()),
    }
    Ok(())
}

fn pi(points: usize) -> Result<Tensor> {
    let x = default_rng(42).random(&[points, 2])?;
    (&x * &x)?.sum(1)?.sqrt()?.less(1.0)?.count_nonzero(())
}

fn axpb(x: Tensor) -> Result<Tensor> {
    ((x + 1.0)? * 2.0)?.sum(())
}

/// The largest difference between a matrix of 32 columns and what its singular vectors and values multiply back to.
fn svd(rows: usize) -> Result<Tensor> {
    let x = default_rng(3).random(&[rows, 32])?;
    let (u, s, vt) = x.svd()?;
    ((u * s)?.matmul(&vt)? - x)?.abs()?.max(())
}

/// Runs job and floor in turn and prints the median of each.
fn compare(name: &str, memory: u64, job: impl Fn() -> Result<Tensor>, floor: impl Fn() -> f64) -> Result<()> {
    let executor = LocalExecutor::sized(THREADS, memory);
    let (mut ours, mut floors) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let started = Instant::now();
        let (results, metrics) = execute(&[&job()?], &executor)?;
        ours.push(started.elapsed().as_secs_f64());
        let started = Instant::now();
        let by_hand = floor();
        floors.push(started.elapsed().as_secs_f64());
        let value = if results[0].size() == 1 { results[0].item()?.to_f64() } else { f64::NAN };
        println!(
            "{name}: {value} by hand {by_hand}; {} tasks, peak {} of bound {} bytes",
            metrics.tasks, metrics.peak_bytes, metrics.bound_bytes
        );
    }
    let (ours, floor) = (median(ours), median(floors));
    println!("{name}: {ours:.3} s, floor {floor:.3} s, floor/value {:.2}", floor / ours);
    Ok(())
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

fn small_chunks(chunks: usize) -> Result<()> {
    let executor = LocalExecutor::sized(THREADS, 4 << 30);
    let x = default_rng(1).random(&[chunks * 16])?.rechunk(Chunks::Each(16))?;
    let y = default_rng(2).random(&[chunks * 16])?.rechunk(Chunks::Each(16))?;
    for _ in 0..ROUNDS {
        let started = Instant::now();
        let (_, metrics) = execute(&[&(&x + &y)?.sum(())?], &executor)?;
        let seconds = started.elapsed().as_secs_f64();
        println!(
            "small-chunks: {} tasks, {:.3} s, {:.0} chunks/s",
            metrics.tasks,
            seconds,
            chunks as f64 / seconds
        );
    }
    Ok(())
}

fn plan(chunks: usize) -> Result<()> {
    let executor = LocalExecutor::sized(THREADS, 16 << 30);
    let x = default_rng(1).random(&[chunks, 1000])?.rechunk(Chunks::PerAxis(vec![1, 1000]))?;
    let y = (&x + &x.mean(1)?.expand_dims(1)?)?.sum(())?;
    for _ in 0..ROUNDS {
        let started = Instant::now();
        let job = tharsis_graph::plan(&[y.node().clone()], executor.limits())
            .map_err(tharsis_numeric::Error::here)?;
        println!("plan: {} tasks, {:.3} s", job.schedule.order.len(), started.elapsed().as_secs_f64());
    }
    Ok(())
}

fn gemm_std(n: usize) -> Result<()> {
    let (rate, small) = floors::gemm(2048, THREADS);
    println!(
        "floor: one product of n = 2048 on each of {THREADS} threads, {rate:.1} GFLOP/s together ({small:.3} s)"
    );
    let executor = LocalExecutor::sized(THREADS, 1 << 30);
    let a = default_rng(7).random(&[n, n])?;
    let started = Instant::now();
    let spread = (a.dot(&a.t()?)? - &a)?.std(())?;
    let (results, metrics) = execute(&[&spread], &executor)?;
    let seconds = started.elapsed().as_secs_f64();
    let ours = 2.0 * (n as f64).powi(3) / seconds / 1e9;
    println!(
        "gemm-std: {:?} in {seconds:.2} s, {ours:.1} GFLOP/s, value/floor {:.2}; peak {} of bound {} bytes",
        results[0].item()?,
        ours / rate,
        metrics.peak_bytes,
        metrics.bound_bytes
    );
    Ok(())
}
