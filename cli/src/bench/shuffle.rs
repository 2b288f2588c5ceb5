//! A shuffle: every map task has an output for every reduce task.

use super::bounded::{Bounded, Folder, WORKERS};
use super::disk_floor::disk_speed;
use super::noise::Values;
use super::{Measurement, Options};
use anyhow::{Result, bail, ensure};
use std::sync::OnceLock;
use std::time::Instant;
use tharsis::SpillChoice;
use tharsis::prelude::*;
use tharsis_object_store::Arena;

/// Number of map tasks, and of reduce tasks.
const PARTITIONS: usize = 32;
/// Upper bound on the bytes of the disk's floor, measured before and after.
const FLOOR_BYTES: usize = 2_000_000_000;
/// Room in a store beside its values when it holds them all, as a divisor.
const SPARE: u64 = 4;
/// Rounds in memory; the first one makes the pages.
const ROUNDS: usize = 4;

/// Output of a map task for each reduce task. They share one buffer, so making them costs nothing.
#[remote]
fn spread(map: usize, bytes: usize) -> Returns<Blob> {
    (0..PARTITIONS).map(|reduce| values(bytes).value(map * PARTITIONS + reduce)).collect()
}

/// Result of a reduce task from all its inputs: a number that depends on every byte.
#[remote]
fn gather(parts: tharsis::Values<Blob>) -> u64 {
    parts.iter().fold(0, |sum, part| sum.wrapping_add(digest(part)))
}

/// Bytes from every map task to every reduce task, in memory or through a small store.
pub fn shuffle(options: &Options) -> Result<Measurement> {
    let part_bytes = (options.size * 1_000_000).div_ceil(PARTITIONS * PARTITIONS);
    match options.store {
        Some(store_bytes) => through_disk(options, part_bytes, store_bytes),
        None => in_memory(options, part_bytes),
    }
}

fn in_memory(options: &Options, part_bytes: usize) -> Result<Measurement> {
    let bytes = (part_bytes * PARTITIONS * PARTITIONS) as u64;
    let by_hand = by_hand_s(part_bytes)?;
    let bounded = Bounded::start(options, bytes + bytes / SPARE, SpillChoice::default())?;
    let first_s = run(part_bytes)?;
    let mut best_s = f64::INFINITY;
    for _ in 1..ROUNDS {
        best_s = best_s.min(run(part_bytes)?);
    }
    let rate = |seconds: f64| bytes as f64 / 1e9 / seconds;
    Ok(Measurement::new("shuffle", rate(best_s), "GB/s", rate(by_hand.warm_s))
        .with("cold_gb_s", rate(first_s))
        .with("cold_ratio", by_hand.cold_s / first_s)
        .with_peak(bounded.end()?))
}

fn through_disk(options: &Options, part_bytes: usize, store_bytes: u64) -> Result<Measurement> {
    let bytes = part_bytes * PARTITIONS * PARTITIONS;
    let folder = Folder::new(bytes as u64)?;
    let order: Vec<_> = (0..bytes.min(FLOOR_BYTES).div_ceil(part_bytes)).collect();
    let before = disk_speed(folder.path(), part_bytes, &order)?;
    let bounded = Bounded::start(options, store_bytes, folder.spill())?;
    let (seconds, spilled_bytes) = bounded.spilled_during(|| run(part_bytes))?;
    let peak = bounded.end()?;
    let disk = before.mean(disk_speed(folder.path(), part_bytes, &order)?);
    let rate = |seconds: f64| bytes as f64 / 1e9 / seconds;
    let floor_s = disk.round_trip_s(bytes as f64);
    Ok(Measurement::new("shuffle --store", rate(seconds), "GB/s", rate(floor_s))
        .with("spilled_mb", spilled_bytes as f64 / 1e6)
        .with_peak(peak))
}

/// Seconds of one shuffle, its result checked.
fn run(part_bytes: usize) -> Result<f64> {
    let started = Instant::now();
    let mut columns: Vec<Vec<ObjectRef<Blob>>> = (0..PARTITIONS).map(|_| Vec::new()).collect();
    for map in 0..PARTITIONS {
        let parts = spread::options().num_returns(PARTITIONS as u32).remote(map, part_bytes);
        columns.iter_mut().zip(parts).for_each(|(column, part)| column.push(part));
    }
    let sums: Vec<_> = columns.into_iter().map(|column| gather::remote(column)).collect();
    let found = tharsis::get_all(&sums, None)?;
    let seconds = started.elapsed().as_secs_f64();
    let expected = |reduce| {
        let parts = (0..PARTITIONS).map(|map| digest(&values(part_bytes).value(map * PARTITIONS + reduce)));
        parts.fold(0_u64, u64::wrapping_add)
    };
    // Only one column is checked: the others are made the same way, and checking all takes as long as the
    // bench.
    ensure!(found.first() == Some(&expected(0)), "the first reduce task got something else");
    if found.len() != PARTITIONS {
        bail!("{} reduce tasks answered", found.len());
    }
    Ok(seconds)
}

/// The copies that a shuffle needs at least: each byte is written to shared memory, and read there once.
struct ByHand {
    cold_s: f64,
    warm_s: f64,
}

fn by_hand_s(part_bytes: usize) -> Result<ByHand> {
    let bytes = part_bytes * PARTITIONS * PARTITIONS;
    let arena = Arena::create(bytes as u64)?;
    let mut seconds = Vec::new();
    for _ in 0..ROUNDS {
        let started = Instant::now();
        let mut target = arena.map().write(0, bytes as u64)?;
        let half = target.len() / WORKERS;
        std::thread::scope(|scope| {
            for part in target.chunks_mut(half) {
                scope.spawn(move || copy_and_read(part, part_bytes));
            }
        });
        seconds.push(started.elapsed().as_secs_f64());
    }
    let warm_s = seconds.iter().skip(1).copied().fold(f64::INFINITY, f64::min);
    Ok(ByHand { cold_s: seconds.first().copied().unwrap_or(0.0), warm_s })
}

fn copy_and_read(target: &mut [u8], part_bytes: usize) {
    for (number, part) in target.chunks_mut(part_bytes).enumerate() {
        part.copy_from_slice(&values(part_bytes).value(number)[..part.len()]);
    }
    std::hint::black_box(target.chunks(part_bytes).fold(0, |sum, part| digest(part).wrapping_add(sum)));
}

/// The values that this process puts.
fn values(bytes: usize) -> &'static Values {
    static VALUES: OnceLock<Values> = OnceLock::new();
    VALUES.get_or_init(|| Values::incompressible(bytes))
}

/// A number that depends on every byte and costs no more than reading them.
fn digest(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let sum = words.iter().fold(0_u64, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)));
    rest.iter().fold(sum, |sum, byte| sum.wrapping_add(u64::from(*byte)))
}
