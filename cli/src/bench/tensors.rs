//! Tensors: the headline jobs compared with the same work by hand, on the same number of threads, in turn.
//!
//! They run on threads of this process, or as remote tasks (`--on`); memory is that of all processes
//! together. Every job checks its result.

use super::statistics::median;
use super::tensor_floors::{self as floors, Stored};
use super::{Measurement, Options, memory};
use anyhow::{Result, bail};
use std::time::{Duration, Instant};
use tharsis_graph::Metrics;
use tharsis_numeric::random::default_rng;
use tharsis_numeric::{Chunks, Tensor, arange, execute};

/// Number of threads of job and floor, that of the cores of the reference machine.
pub(super) const THREADS: usize = 2;
const ROUNDS: usize = 3;
/// A job that takes longer is run once.
const LONG_S: f64 = 10.0;
const PI_MEMORY_BYTES: u64 = 200_000_000;
const MEMORY_BYTES: u64 = 1_000_000_000;
/// Memory that a job used is fresh again after this time.
const PAGES_KEPT: Duration = Duration::from_secs(2);
/// Elements of a small chunk.
const SMALL_ELEMENTS: usize = 16;
/// Rows and columns of the floor of products; larger ones are not faster by hand.
const GEMM_FLOOR_N: usize = 2048;
/// Columns of a tall matrix.
const TALL_COLUMNS: usize = 32;
/// Largest error of the product of singular vectors and values, in units of the input.
const TALL_ERROR_MAX: f64 = 1e-12;

/// The number of random points of a square that are in a circle.
pub fn pi(options: &Options) -> Result<Measurement> {
    let n = options.size;
    let side = compare(options, PI_MEMORY_BYTES, || count_inside(n), || floors::pi(n as u64, THREADS))?;
    // The tolerance is six standard deviations of the number of hits.
    let found = 4.0 * side.value / n as f64;
    expect(found, std::f64::consts::PI, 10.0 / (n as f64).sqrt())?;
    Ok(side.measurement("pi", n as f64 / 1e6, "Mpoints/s"))
}

/// `((x + 1) * 2).sum()` of random numbers, and of a range.
pub fn axpb(options: &Options) -> Result<Measurement> {
    let n = options.size;
    let random = || scaled_sum(&default_rng(1).random(&[n]));
    let side = compare(options, MEMORY_BYTES, random, || floors::axpb(n as u64, THREADS))?;
    expect(side.value / n as f64, 3.0, 4.0 / (n as f64).sqrt())?;
    let ramp = || scaled_sum(&arange(n));
    let range = compare(options, MEMORY_BYTES, ramp, || floors::axpb_arange(n as u64, THREADS))?;
    expect(range.value / n as f64, n as f64 + 1.0, 1e-12 * n as f64)?;
    let measured = side.measurement("axpb", n as f64 / 1e6, "Melements/s");
    Ok(measured.with("range_ratio", range.floor_s / range.ours_s).with("range_peak_mb", range.peak_mb))
}

/// `(x + 1) * 2`, kept: of random numbers, of a range, and of numbers that are kept themselves. Floors are
/// the same by hand, with stores that bypass the cache.
///
/// The first run uses fresh pages, later runs reuse those of the run before. Figure and floor are those of
/// later runs.
pub fn axpb_store(options: &Options) -> Result<Measurement> {
    let n = options.size;
    let bytes = (n * size_of::<f64>()) as u64;
    // This runs first, so that neither job nor floor is the first to touch the machine's memory.
    let fill_s = floors::store(Stored::Constant, n, THREADS);
    std::thread::sleep(PAGES_KEPT);
    // Room for the numbers that a job reads, and for those that it keeps.
    let started = options.on.start(THREADS, 2 * bytes + MEMORY_BYTES)?;
    let mut metrics = Metrics::default();
    let mut kept = |x: &Tensor, middle: f64| -> Result<f64> {
        let begun = Instant::now();
        let (results, took) = execute(&[&((x + 1.0) * 2.0)], &*started.executor)?;
        let seconds = begun.elapsed().as_secs_f64();
        let resident = results[0].node()?.op().resident();
        let chunk = resident.and_then(|resident| resident.chunks.last()?.fetch().ok());
        let last = chunk.and_then(|chunk| chunk.as_slice::<f64>()?.last().copied());
        expect(last.unwrap_or(f64::NAN), middle, middle / 3.0)?;
        metrics = took;
        Ok(seconds)
    };
    let random = default_rng(1).random(&[n]);
    let first_s = kept(&random, 3.0)?;
    let again = (0..ROUNDS).map(|_| kept(&random, 3.0)).collect::<Result<Vec<_>>>();
    let range = arange(n);
    let of_range = (0..ROUNDS).map(|_| kept(&range, 2.0 * n as f64)).collect::<Result<Vec<_>>>();
    let (stored, _) = execute(&[&random], &*started.executor)?;
    // The first run takes the pages that are still fresh.
    kept(&stored[0], 3.0)?;
    let of_stored = (0..ROUNDS).map(|_| kept(&stored[0], 3.0)).collect::<Result<Vec<_>>>();
    let (again_s, range_s, stored_s) = (median(&mut again?), median(&mut of_range?), median(&mut of_stored?));
    drop((stored, started));
    // Waits until the pages of the job are released.
    std::thread::sleep(PAGES_KEPT);
    let floor_s = floors::store(Stored::Random, n, THREADS);
    let floor_range_s = floors::store(Stored::Range, n, THREADS);
    let floor_stored_s = floors::scale_stored(n, THREADS);
    let written = bytes as f64 / 1e9;
    Ok(Measurement::new("axpb-store", written / again_s, "GB/s", written / floor_s)
        .with("seconds", again_s)
        .with("first_seconds", first_s)
        .with("range_ratio", floor_range_s / range_s)
        .with("range_seconds", range_s)
        .with("stored_ratio", floor_stored_s / stored_s)
        .with("stored_seconds", stored_s)
        .with("bandwidth", written / fill_s)
        .with("bandwidth_ratio", fill_s / again_s)
        .with("range_bandwidth_ratio", fill_s / range_s)
        .with("tasks", metrics.tasks as f64))
}

/// Sums of small chunks, added in pairs first.
pub fn small_chunks(options: &Options) -> Result<Measurement> {
    let chunks = options.size;
    let started = options.on.start(THREADS, MEMORY_BYTES)?;
    let operand =
        |seed| default_rng(seed).random(&[chunks * SMALL_ELEMENTS]).rechunk(Chunks::Each(SMALL_ELEMENTS));
    let (x, y) = (operand(1), operand(2));
    let mut rates = Vec::new();
    let mut metrics = Metrics::default();
    let ((), peak_bytes) = started.peak_bytes(|| {
        for _ in 0..ROUNDS {
            let begun = Instant::now();
            let (results, took) = execute(&[&(&x + &y).sum(..)], &*started.executor)?;
            rates.push(chunks as f64 / begun.elapsed().as_secs_f64());
            let n = (chunks * SMALL_ELEMENTS) as f64;
            expect(value_of(&results[0])? / n, 1.0, 4.0 / n.sqrt())?;
            metrics = took;
        }
        Ok(())
    })?;
    Ok(Measurement::new("small-chunks", median(&mut rates), "chunks/s", 0.0)
        .with("tasks", metrics.tasks as f64)
        .with("peak_mb", peak_bytes as f64 / 1e6))
}

/// A graph of many chunks, planned, and run as a whole. `driver_s` is the time of the thread that plans and
/// submits it, and takes results; it waits meanwhile for tasks, since their number under way is bounded.
pub fn plan(options: &Options) -> Result<Measurement> {
    let chunks = options.size;
    let started = options.on.start(THREADS, 4 * MEMORY_BYTES)?;
    let x = default_rng(1).random(&[chunks, SMALL_ELEMENTS]);
    let x = x.rechunk(Chunks::PerAxis(vec![1, SMALL_ELEMENTS]));
    let y = (&x + &x.mean(1).expand_dims(1)).sum(..);
    let (mut seconds, mut per_chunk, mut tasks) = (Vec::new(), 0.0, 0);
    for _ in 0..ROUNDS {
        crate::allocator::give_back();
        let before = memory::pss_bytes(std::process::id())?;
        memory::reset_peak()?;
        let begun = Instant::now();
        let job = tharsis_graph::plan(&[y.node()?.clone()], started.executor.limits())?;
        seconds.push(begun.elapsed().as_secs_f64());
        tasks = job.schedule.order.len();
        per_chunk = memory::peak_bytes()?.saturating_sub(before) as f64 / chunks as f64;
    }
    let (begun, driven) = (Instant::now(), memory::thread_time()?);
    let ((results, _), run_bytes) = started.peak_bytes(|| Ok(execute(&[&y], &*started.executor)?))?;
    let (run_s, driver_s) = (begun.elapsed().as_secs_f64(), (memory::thread_time()? - driven).as_secs_f64());
    let n = (chunks * SMALL_ELEMENTS) as f64;
    expect(value_of(&results[0])? / n, 1.0, 6.0 / n.sqrt())?;
    Ok(Measurement::new("plan", median(&mut seconds), "s", 0.0)
        .with("tasks", tasks as f64)
        .with("peak_bytes_per_chunk", per_chunk)
        .with("run_s", run_s)
        .with("driver_s", driver_s)
        .with("run_peak_mb", run_bytes as f64 / 1e6))
}

/// `(a.dot(a.T) - a).std()` of a random matrix; the floor is one product on each thread.
pub fn gemm_std(options: &Options) -> Result<Measurement> {
    let n = options.size;
    let (floor, _) = floors::gemm(GEMM_FLOOR_N, THREADS);
    let started = options.on.start(THREADS, MEMORY_BYTES)?;
    let a = default_rng(7).random(&[n, n]);
    let begun = Instant::now();
    let spread = (a.dot(&a.t()) - &a).std(..);
    let ((results, metrics), peak_bytes) =
        started.peak_bytes(|| Ok(execute(&[&spread], &*started.executor)?))?;
    let rate = 2.0 * (n as f64).powi(3) / begun.elapsed().as_secs_f64() / 1e9;
    let found = value_of(&results[0])?;
    // Variance n * 7/144 off the diagonal; the n entries on it are larger by n/12, which adds n * 1/144.
    let expected = (n as f64 / 18.0).sqrt();
    expect(found, expected, 0.1 * expected)?;
    Ok(Measurement::new("gemm-std", rate, "GFLOP/s", floor)
        .with("n", n as f64)
        .with("bound_mb", metrics.bound_bytes as f64 / 1e6)
        .with("peak_mb", peak_bytes as f64 / 1e6))
}

/// Singular vectors and values of a tall matrix, multiplied and compared with it.
pub fn svd(options: &Options) -> Result<Measurement> {
    let rows = options.size;
    let job = || largest_difference(rows);
    let side = compare(options, MEMORY_BYTES, job, || floors::svd(rows, THREADS).unwrap_or(f64::NAN))?;
    expect(side.value, 0.0, TALL_ERROR_MAX)?;
    let error = side.value;
    Ok(side.measurement("svd", rows as f64 / 1e6, "Mrows/s").with("error", error))
}

fn count_inside(points: usize) -> Tensor {
    let x = default_rng(42).random(&[points, 2]);
    (&x * &x).sum(1).sqrt().less(1.0).count_nonzero(..)
}

fn scaled_sum(x: &Tensor) -> Tensor {
    ((x + 1.0) * 2.0).sum(..)
}

fn largest_difference(rows: usize) -> Tensor {
    let x = default_rng(3).random(&[rows, TALL_COLUMNS]);
    let (u, s, vt) = x.svd();
    ((u * s).matmul(&vt) - x).abs().max(..)
}

/// Times of a job and of the same work by hand.
pub(super) struct SideBySide {
    pub(super) value: f64,
    ours_s: f64,
    floor_s: f64,
    /// Peak of memory while the job ran.
    peak_mb: f64,
    metrics: Metrics,
}

impl SideBySide {
    /// `work` per second.
    pub(super) fn measurement(self, name: &str, work: f64, unit: &'static str) -> Measurement {
        Measurement::new(name, work / self.ours_s, unit, work / self.floor_s)
            .with("seconds", self.ours_s)
            .with("tasks", self.metrics.tasks as f64)
            .with("bound_mb", self.metrics.bound_bytes as f64 / 1e6)
            .with("peak_mb", self.peak_mb)
    }
}

/// Runs job and floor in turn and takes the median of each.
///
/// Memory is measured in a separate run, since measuring disturbs the job. A long job runs only once, and is
/// measured in this run.
pub(super) fn compare(
    options: &Options,
    memory_bytes: u64,
    job: impl Fn() -> Tensor,
    floor: impl Fn() -> f64,
) -> Result<SideBySide> {
    let place = options.on.start(THREADS, memory_bytes)?;
    let (mut value, mut metrics) = (f64::NAN, Metrics::default());
    let mut run = || -> Result<f64> {
        let started = Instant::now();
        let (results, took) = execute(&[&job()], &*place.executor)?;
        metrics = took;
        value = value_of(&results[0])?;
        Ok(started.elapsed().as_secs_f64())
    };
    let (first_s, peak_bytes) = place.peak_bytes(&mut run)?;
    let is_long = LONG_S < first_s;
    let (mut ours, mut floors) = (Vec::new(), Vec::new());
    for _ in 0..if is_long { 1 } else { ROUNDS } {
        ours.push(if is_long { first_s } else { run()? });
        let started = Instant::now();
        std::hint::black_box(floor());
        floors.push(started.elapsed().as_secs_f64());
    }
    let (ours_s, floor_s) = (median(&mut ours), median(&mut floors));
    Ok(SideBySide { value, ours_s, floor_s, peak_mb: peak_bytes as f64 / 1e6, metrics })
}

/// The only element of a computed result.
fn value_of(result: &Tensor) -> Result<f64> {
    Ok(result.item()?.to_f64())
}

pub(super) fn expect(found: f64, expected: f64, tolerance: f64) -> Result<()> {
    if (found - expected).abs() <= tolerance {
        return Ok(());
    }
    bail!("the result is {found}, expected {expected} within {tolerance}")
}
