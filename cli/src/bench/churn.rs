//! Objects put and dropped as they go: pages are used again, so only the copy is left.

use super::bounded::{Bounded, WORKERS};
use super::noise::Values;
use super::resident::Peak;
use super::statistics::median;
use super::{Measurement, Options};
use anyhow::{Result, bail};
use std::time::Instant;
use tharsis::SpillChoice;
use tharsis::prelude::*;

/// Bytes of the two kinds of objects, and how many make a round.
const KINDS: [(usize, usize); 2] = [(1_000_000, 1_000), (100_000_000, 20)];
/// Ten objects of the larger kind: what is given back late still leaves room.
const STORE_BYTES: u64 = 1_000_000_000;
/// Rounds, of floor and engine in turn: the speed of a shared machine changes from second to second.
const ROUNDS: usize = 5;

/// Objects of 1 MB and of 100 MB.
pub fn put_loop(options: &Options) -> Result<Measurement> {
    let [small, large] = KINDS.map(|kind| in_turn(options, kind));
    let ((small, small_floor, _), (large, large_floor, peak)) = (small?, large?);
    Ok(Measurement::new("put-loop", large, "GB/s", large_floor)
        .with("small_gb_s", small)
        .with("small_floor_gb_s", small_floor)
        .with("small_ratio", small / small_floor)
        .with_peak(peak))
}

/// Rate of puts and of bare copies, with what memory the puts took.
fn in_turn(options: &Options, (bytes, count): (usize, usize)) -> Result<(f64, f64, Peak)> {
    let count = if options.quick { count / 4 } else { count };
    let values = Values::incompressible(bytes);
    let mut target = vec![1; bytes];
    let bounded = Bounded::start(options, STORE_BYTES, SpillChoice::default())?;
    let (mut rates, mut floors) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let rate = |started: Instant| (bytes * count) as f64 / 1e9 / started.elapsed().as_secs_f64();
        let started = Instant::now();
        for number in 0..count {
            let reference = put(&values.value(number))?;
            if number + 1 == count && reference.get()?.len() != bytes {
                bail!("the object is not what was put");
            }
        }
        let put_rate = rate(started);
        let copied = (1..=WORKERS).map(|threads| {
            let started = Instant::now();
            copy_all(threads, &mut target, &values, count);
            rate(started)
        });
        let copied = copied.fold(0.0, f64::max);
        // The first round makes the pages.
        if 0 < round {
            rates.push(put_rate);
            floors.push(copied);
        }
    }
    Ok((median(&mut rates), median(&mut floors), bounded.end()?))
}

/// Copies values to one place, each thread its part of all of them: none waits for another or is started anew.
fn copy_all(threads: usize, target: &mut [u8], values: &Values, count: usize) {
    let part_bytes = target.len().div_ceil(threads);
    std::thread::scope(|scope| {
        for (index, part) in target.chunks_mut(part_bytes).enumerate() {
            scope.spawn(move || {
                for number in 0..count {
                    let start = index * part_bytes;
                    part.copy_from_slice(&values.value(number)[start..start + part.len()]);
                    std::hint::black_box(&part);
                }
            });
        }
    });
}
