//! Several times more data than the store holds, put and read back once.

use super::bounded::{Bounded, Folder};
use super::disk_floor::{DiskSpeed, disk_speed};
use super::noise::{Values, shuffled};
use super::resident::Peak;
use super::{Measurement, Options};
use anyhow::{Context, Result};
use std::path::Path;
use std::time::Instant;
use tharsis::SpillChoice;
use tharsis::prelude::*;

/// Bytes of a value.
const VALUE_BYTES: usize = 50_000_000;
/// Default size of the store in bytes.
const STORE_BYTES: u64 = 1_000_000_000;
/// Upper bound on the bytes of the floor, measured before and after: enough for a figure, short compared with
/// the bench.
const FLOOR_BYTES: usize = 3_000_000_000;
/// Upper bound on the megabytes of a job on a throttled device.
const THROTTLED_MB_MAX: usize = 4_000;

/// One way to disk and back.
struct Pass {
    put_s: f64,
    get_s: f64,
    spilled_bytes: u64,
    peak: Peak,
}

/// Rate of bytes through a small store, compared with the disk.
pub fn spill(options: &Options) -> Result<Measurement> {
    if options.compressible {
        return compressed(options);
    }
    let count = (options.size * 1_000_000 / VALUE_BYTES).max(1);
    let folder = Folder::new((count * VALUE_BYTES) as u64)?;
    let values = Values::incompressible(VALUE_BYTES);
    let order = if options.random { shuffled(count) } else { (0..count).collect() };
    let floor_count = count.min(FLOOR_BYTES / VALUE_BYTES);
    let before = floor(options, folder.path(), floor_count)?;
    let choice = SpillChoice { bytes_per_s_max: options.disk_limit, ..folder.spill() };
    let pass = run(options, choice, &values, &order)?;
    let disk = before.mean(floor(options, folder.path(), floor_count)?);
    let bytes = (count * VALUE_BYTES) as f64;
    let rate = |seconds: f64| 2.0 * bytes / 1e9 / seconds;
    let name = if options.random { "spill --random" } else { "spill" };
    let measured =
        Measurement::new(name, rate(pass.put_s + pass.get_s), "GB/s", rate(disk.round_trip_s(bytes)));
    Ok(measured
        .with("put_ratio", disk.write_s * bytes / pass.put_s)
        .with("get_ratio", disk.read_s * bytes / pass.get_s)
        .with("spilled_mb", pass.spilled_bytes as f64 / 1e6)
        .with_peak(pass.peak))
}

/// Gain of compression on a slow device: the same values with and without compression.
fn compressed(options: &Options) -> Result<Measurement> {
    let count = (options.size.min(THROTTLED_MB_MAX) * 1_000_000 / VALUE_BYTES).max(1);
    let folder = Folder::new((count * VALUE_BYTES) as u64)?;
    let values = Values::compressible(VALUE_BYTES);
    let order: Vec<_> = (0..count).collect();
    let pass = |may_compress| {
        let choice = SpillChoice { may_compress, bytes_per_s_max: options.disk_limit, ..folder.spill() };
        run(options, choice, &values, &order)
    };
    let (plain, packed) = (pass(false)?, pass(true)?);
    let rate = |pass: &Pass| 2.0 * (count * VALUE_BYTES) as f64 / 1e9 / (pass.put_s + pass.get_s);
    Ok(Measurement::new("spill --compressible", rate(&packed), "GB/s", rate(&plain))
        .with("put_ratio", plain.put_s / packed.put_s)
        .with("get_ratio", plain.get_s / packed.get_s)
        .with_peak(packed.peak))
}

/// Speed of the disk with as many values as in the bench, up to a bound, read back in order or shuffled.
fn floor(options: &Options, folder: &Path, count: usize) -> Result<DiskSpeed> {
    let order = if options.random { shuffled(count) } else { (0..count).collect() };
    disk_speed(folder, VALUE_BYTES, &order)
}

/// Puts a value for each number, then reads each once, in the given order, and drops it.
fn run(options: &Options, choice: SpillChoice, values: &Values, order: &[usize]) -> Result<Pass> {
    let bounded = Bounded::start(options, options.store.unwrap_or(STORE_BYTES), choice)?;
    let ((put_s, get_s), spilled_bytes) = bounded.spilled_during(|| {
        let started = Instant::now();
        let put_all: Result<Vec<_>, _> = (0..order.len()).map(|n| put(&values.value(n)).map(Some)).collect();
        let mut references = put_all?;
        let put_s = started.elapsed().as_secs_f64();
        let started = Instant::now();
        for number in order {
            let reference: ObjectRef<Blob> =
                references.get_mut(*number).and_then(Option::take).context("a value is read once")?;
            values.check(*number, &reference.get()?)?;
        }
        Ok((put_s, started.elapsed().as_secs_f64()))
    })?;
    Ok(Pass { put_s, get_s, spilled_bytes, peak: bounded.end()? })
}
