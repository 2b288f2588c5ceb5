//! More rows through an exchange than memory holds.
//!
//! The rows are made by tasks, out of two small tables, so that only the exchange moves bytes: each row goes
//! to the task that has its partner of a join. The floor is the disk: each byte written and read back once.

use super::Setup;
use crate::bench::disk_floor::disk_speed;
use crate::bench::{Measurement, Options, Place};
use anyhow::{Context, Result, bail, ensure};
use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use std::sync::Arc;
use std::time::Instant;
use tharsis::frame::{DataFrame, sql};

/// Limit on memory if the user gives none.
const MEMORY_BYTES: u64 = 2_000_000_000;
/// Numbers that each row carries beside its key.
const NUMBERS: usize = 12;
/// Bytes of a row.
const ROW_BYTES: usize = (1 + NUMBERS) * 8;
/// Rows that each seed makes: fewer than there are seeds, since each task gets the whole smaller table.
const SEED_ROWS: i64 = 1_000;
/// Seeds of a task, so that its rows are a hundred megabytes.
const TASK_SEEDS: usize = 1_000;
/// Keys; enough that the planner does not send all of them to each task.
const KEYS: i64 = 1_000_000;
/// Upper bound on the bytes of the disk's floor, measured before and after.
const FLOOR_BYTES: usize = 2_000_000_000;
/// Bytes of a piece of the floor's file.
const PIECE_BYTES: usize = 32_000_000;

/// Gigabytes per second of rows that pass an exchange; `size` is gigabytes.
pub fn shuffle(options: &Options) -> Result<Measurement> {
    if options.on == Place::Threads {
        bail!("threads keep rows between stages in memory; choose --on workers, --on nodes or --on embedded");
    }
    let bytes = (options.scale() * 1e9) as usize;
    let seeds = bytes.div_ceil(ROW_BYTES * SEED_ROWS as usize);
    let options = Options { memory: options.memory.or(Some(MEMORY_BYTES)), ..options.clone() };
    let setup = Setup::start(&options, bytes as u64)?;
    let order: Vec<_> = (0..bytes.min(FLOOR_BYTES).div_ceil(PIECE_BYTES)).collect();
    let before = disk_speed(setup.folder(), PIECE_BYTES, &order)?;
    let tables = [("base", base()), ("seeds", seeds_table(seeds)), ("partners", partners())];
    let tables = tables.map(|(name, table)| table.map(|table| (name, table)));
    let tables = tables.into_iter().collect::<Result<Vec<_>>>()?;
    let refs: Vec<(&str, &DataFrame)> = tables.iter().map(|(name, table)| (*name, table)).collect();
    let started = Instant::now();
    let query = sql(&query(), &refs);
    let ((found, metrics), peak_bytes) =
        setup.peak_bytes(|| Ok(query.collect_with_metrics(setup.executor())?))?;
    let seconds = started.elapsed().as_secs_f64();
    let found = (0..=NUMBERS).map(|number| found.column::<i64>(&format!("n{number}")));
    let found = found.map(|column| column?.first().copied().flatten().context("an empty answer"));
    let found = found.collect::<Result<Vec<i64>>>()?;
    ensure!(found == expected(seeds as i64), "the rows that arrived are not those that were sent");
    let exchanged = metrics.stages.iter().map(|stage| stage.bytes).sum::<usize>();
    let disk = before.mean(disk_speed(setup.folder(), PIECE_BYTES, &order)?);
    let rows_bytes = (seeds * SEED_ROWS as usize * ROW_BYTES) as f64;
    let floor_s = disk.round_trip_s(rows_bytes);
    Ok(Measurement::new("frame-shuffle", rows_bytes / 1e9 / seconds, "GB/s", rows_bytes / 1e9 / floor_s)
        .with("seconds", seconds)
        .with("exchanged_gb", exchanged as f64 / 1e9)
        .with("peak_mb", peak_bytes as f64 / 1e6)
        .with("over_limit_mb", (peak_bytes as f64 - setup.memory_bytes() as f64) / 1e6))
}

/// A number of the row of a seed and a place, which fits 63 bits.
fn number(number: usize, place: i64, seed: i64) -> i64 {
    let (one, two) = factors(number);
    place * one + seed * two
}

fn factors(number: usize) -> (i64, i64) {
    let odd = 2 * number as i64 + 1;
    (0x2545_F491_4F6C % (1 << 45) / odd, 0x9E37_79B9_7F4A % (1 << 45) / (odd + 2))
}

/// The key of the row of a seed and a place.
fn key(place: i64, seed: i64) -> i64 {
    (place * 7_919 + seed * 104_729) % KEYS
}

fn query() -> String {
    let numbers = (0..NUMBERS).map(|number| {
        let (one, two) = factors(number);
        format!("place * {one} + seed * {two} as p{number}")
    });
    let folds = (0..NUMBERS).map(|number| format!("bit_xor(p{number}) as n{number}"));
    format!(
        "select {folds}, bit_xor(p0 + partner) as n{NUMBERS} from \
         (select (place * 7919 + seed * 104729) % {KEYS} as k, {numbers} from base cross join seeds) as made \
         join partners on made.k = partners.k",
        folds = folds.collect::<Vec<_>>().join(", "),
        numbers = numbers.collect::<Vec<_>>().join(", "),
    )
}

/// The answer, by a plain loop.
fn expected(seeds: i64) -> Vec<i64> {
    let mut folds = vec![0; NUMBERS + 1];
    for seed in 0..seeds {
        for place in 0..SEED_ROWS {
            for (at, fold) in folds.iter_mut().take(NUMBERS).enumerate() {
                *fold ^= number(at, place, seed);
            }
            folds[NUMBERS] ^= number(0, place, seed) + partner(key(place, seed));
        }
    }
    folds
}

fn partner(key: i64) -> i64 {
    key * 31 + 7
}

fn base() -> Result<DataFrame> {
    frame(vec![("place", (0..SEED_ROWS).collect())], SEED_ROWS as usize)
}

fn seeds_table(count: usize) -> Result<DataFrame> {
    frame(vec![("seed", (0..count as i64).collect())], TASK_SEEDS)
}

fn partners() -> Result<DataFrame> {
    let keys: Vec<i64> = (0..KEYS).collect();
    let values = keys.iter().map(|key| partner(*key)).collect();
    frame(vec![("k", keys), ("partner", values)], KEYS as usize)
}

/// A table with this many rows a part, each of which is a task of its own.
fn frame(columns: Vec<(&str, Vec<i64>)>, part_rows: usize) -> Result<DataFrame> {
    let columns = columns.into_iter().map(|(name, values)| {
        let values: ArrayRef = Arc::new(Int64Array::from(values));
        (name, values)
    });
    let all = RecordBatch::try_from_iter(columns)?;
    let starts = (0..all.num_rows()).step_by(part_rows);
    let parts = starts.map(|first| all.slice(first, part_rows.min(all.num_rows() - first)));
    Ok(DataFrame::from_batches(all.schema(), parts.collect()))
}
