//! Objects put and dropped at once: their pages are reused, so the cost is that of the copy.

use super::bounded::{Bounded, WORKERS};
use super::noise::Values;
use super::resident::Peak;
use super::statistics::median;
use super::{Measurement, Options};
use anyhow::{Result, bail};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tharsis::SpillChoice;
use tharsis::prelude::*;

/// Bytes of the two kinds of objects, and their number per round.
const KINDS: [(usize, usize); 2] = [(1_000_000, 1_000), (100_000_000, 20)];
/// Ten objects of the larger kind, so that objects that are freed late leave room.
const STORE_BYTES: u64 = 1_000_000_000;
/// Rounds, of floor and engine in turn: the speed of a shared machine changes from second to second.
const ROUNDS: usize = 5;

/// Objects of 1 MB and of 100 MB.
pub fn put_loop(options: &Options) -> Result<Measurement> {
    let [small, large] = KINDS.map(|kind| in_turn(options, kind));
    let (small, large) = (small?, large?);
    Ok(Measurement::new("put-loop", large.puts, "GB/s", large.best_copies())
        .with("one_thread_ratio", large.puts / large.copies[0])
        .with("small_gb_s", small.puts)
        .with("small_floor_gb_s", small.best_copies())
        .with("small_ratio", small.puts / small.best_copies())
        .with("small_one_thread_ratio", small.puts / small.copies[0])
        .with_peak(large.peak))
}

/// Rates in GB/s.
struct Rates {
    puts: f64,
    /// Bare copies by one thread, by two, and so on.
    copies: [f64; WORKERS],
    peak: Peak,
}

impl Rates {
    fn best_copies(&self) -> f64 {
        self.copies.into_iter().fold(0.0, f64::max)
    }
}

/// Puts and bare copies, with the peak of memory of the puts.
fn in_turn(options: &Options, (bytes, count): (usize, usize)) -> Result<Rates> {
    let count = if options.quick { count / 4 } else { count };
    let values = Values::incompressible(bytes);
    let mut target = vec![1; bytes];
    let bounded = Bounded::start(options, STORE_BYTES, SpillChoice::default())?;
    let (mut rates, mut floors) = (Vec::new(), [const { Vec::new() }; WORKERS]);
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
        // The first round makes the pages.
        if 0 < round {
            rates.push(put_rate);
        }
        for (threads, floors) in (1..).zip(&mut floors) {
            let started = Instant::now();
            copy_all(threads, &mut target, &values, count);
            if 0 < round {
                floors.push(rate(started));
            }
        }
    }
    Ok(Rates {
        puts: median(&mut rates),
        copies: floors.map(|mut rates| median(&mut rates)),
        peak: bounded.end()?,
    })
}

/// Copies values to one target, which stays in the caches if it fits there. Each thread copies its part of
/// every value and is started once; as with puts, a value is copied to its end before the next one begins.
fn copy_all(threads: usize, target: &mut [u8], values: &Values, count: usize) {
    let part_bytes = target.len().div_ceil(threads);
    let copied = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for (index, part) in target.chunks_mut(part_bytes).enumerate() {
            let copied = &copied;
            scope.spawn(move || {
                for number in 0..count {
                    let start = index * part_bytes;
                    part.copy_from_slice(&values.value(number)[start..start + part.len()]);
                    std::hint::black_box(&part);
                    copied.fetch_add(1, Ordering::AcqRel);
                    wait_for(copied, (number + 1) * threads);
                }
            });
        }
    });
}

/// Spins until a count is reached, and yields to other threads now and then.
fn wait_for(count: &AtomicUsize, reached: usize) {
    const LOOKS: u32 = 4096;
    let mut looks = 0_u32;
    while count.load(Ordering::Acquire) < reached {
        std::hint::spin_loop();
        looks = looks.wrapping_add(1);
        if looks.is_multiple_of(LOOKS) {
            std::thread::yield_now();
        }
    }
}
