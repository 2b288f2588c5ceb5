//! A sort of several times more numbers than the store holds.

use super::bounded::{Bounded, Folder};
use super::disk_floor::disk_speed;
use super::{Measurement, Options};
use anyhow::{Context, Result, ensure};
use std::time::Instant;
use tharsis::tensor::random::default_rng;
use tharsis::tensor::{Tensor, execute};

/// Default size of the store in bytes.
const STORE_BYTES: u64 = 2_000_000_000;
/// Bytes of a piece of the floor.
const PIECE_BYTES: usize = 50_000_000;
/// Upper bound on the bytes of the floor, measured before and after.
const FLOOR_BYTES: usize = 3_000_000_000;
/// Share of the store that tasks may use, as a divisor; the rest is for what is on its way.
const MEMORY_SHARE: u64 = 2;

/// Rate of a sort of random float64 whose result stays in the store, compared with a disk to which each byte
/// is written, read back and written again in order.
pub fn sort(options: &Options) -> Result<Measurement> {
    let count = options.size;
    let bytes = count * size_of::<f64>();
    let folder = Folder::new(3 * bytes as u64)?;
    let order: Vec<usize> = (0..bytes.min(FLOOR_BYTES) / PIECE_BYTES).collect();
    let before = disk_speed(folder.path(), PIECE_BYTES, &order)?;
    let store_bytes = options.store.unwrap_or(STORE_BYTES);
    let bounded = Bounded::start(options, store_bytes, folder.spill())?;
    let executor = bounded.executor().memory_bytes(store_bytes / MEMORY_SHARE).stored_bytes(u64::MAX / 2);
    let ((sorted, seconds, metrics), spilled_bytes) = bounded.spilled_during(|| {
        let started = Instant::now();
        let (mut sorted, metrics) = execute(&[&default_rng(1).random(&[count]).sort(0)], &executor)?;
        let sorted = sorted.pop().context("a sort without a result")?;
        Ok((sorted, started.elapsed().as_secs_f64(), metrics))
    })?;
    let checked = Instant::now();
    check(&sorted, count, &executor)?;
    let check_s = checked.elapsed().as_secs_f64();
    drop(sorted);
    let peak = bounded.end()?;
    let disk = before.mean(disk_speed(folder.path(), PIECE_BYTES, &order)?);
    let disk_s = disk.round_trip_s(bytes as f64) + disk.write_s * bytes as f64;
    let rate = |seconds: f64| count as f64 / 1e6 / seconds;
    Ok(Measurement::new("sort", rate(seconds), "Melements/s", rate(disk_s))
        .with("seconds", seconds)
        .with("check_s", check_s)
        .with("disk_s", disk_s)
        .with("spilled_mb", spilled_bytes as f64 / 1e6)
        .with("tasks", metrics.tasks as f64)
        .with_peak(peak))
}

/// The numbers are in order, and their sum is that of as many random numbers.
fn check(sorted: &Tensor, count: usize, executor: &dyn tharsis::tensor::Executor) -> Result<()> {
    let (checks, _) = execute(&[&sorted.diff(1, 0).min(..), &sorted.sum(..)], executor)?;
    let value = |at: usize| -> Result<f64> { Ok(checks[at].to_chunk(executor)?.to_vec::<f64>()?[0]) };
    ensure!(0.0 <= value(0)?, "the numbers are not in order");
    // Ten standard deviations of the sum.
    let (sum, expected) = (value(1)?, count as f64 / 2.0);
    ensure!(
        (sum - expected).abs() <= 10.0 * (count as f64 / 12.0).sqrt(),
        "a sum of {sum}, not of {expected}"
    );
    Ok(())
}
