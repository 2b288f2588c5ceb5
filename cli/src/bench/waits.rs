//! References taken one by one as they are ready.

use super::statistics::median;
use super::{Measurement, Options, tasks};
use anyhow::{Result, ensure};
use std::time::Instant;
use tharsis::prelude::*;

/// Workers, as in the benches of tasks.
const WORKERS: usize = 2;
const ROUNDS: usize = 30;
/// References of the second figure, as a multiple of those of the first.
const MANY: usize = 10;

#[remote]
fn noop() {}

/// `wait` for the references to no-op tasks until none are left, in milliseconds with the calls. The floor is
/// the same calls with one `get_all`. `growth` is how much more time a reference takes among ten times as
/// many. For `slice_ms` each `wait` is given what is left as a slice.
pub fn one_by_one(options: &Options) -> Result<Measurement> {
    let rounds = if options.quick { ROUNDS / 5 } else { ROUNDS };
    let _runtime = tasks::runtime(options, WORKERS)?;
    let (mut few, mut many, mut slices, mut floors) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds + 1 {
        let (of_few, of_many) = (wait_ms(options.size)?, wait_ms(options.size * MANY)?);
        let (of_slice, floor) = (wait_slices_ms(options.size)?, get_ms(options.size)?);
        if round > 0 {
            few.push(of_few);
            many.push(of_many);
            slices.push(of_slice);
            floors.push(floor);
        }
    }
    let (few, many) = (median(&mut few), median(&mut many));
    Ok(Measurement::new("wait", few, "ms", median(&mut floors))
        .with("ten_times_as_many_ms", many)
        .with("growth", many / few / MANY as f64)
        .with("slice_ms", median(&mut slices)))
}

fn wait_ms(count: usize) -> Result<f64> {
    let started = Instant::now();
    let mut open: Awaited<()> = (0..count).map(|_| noop::remote()).collect();
    let mut taken = 0;
    while !open.is_empty() {
        let (ready, rest) = wait(open, Wait::default())?;
        taken += ready.len();
        open = rest;
    }
    ensure!(taken == count, "{taken} of {count} references were ready");
    Ok(started.elapsed().as_secs_f64() * 1e3)
}

fn wait_slices_ms(count: usize) -> Result<f64> {
    let started = Instant::now();
    let mut open: Vec<_> = (0..count).map(|_| noop::remote()).collect();
    let mut taken = 0;
    while !open.is_empty() {
        let (ready, rest) = wait(&open, Wait::default())?;
        taken += ready.len();
        open = rest.to_vec();
    }
    ensure!(taken == count, "{taken} of {count} references were ready");
    Ok(started.elapsed().as_secs_f64() * 1e3)
}

fn get_ms(count: usize) -> Result<f64> {
    let started = Instant::now();
    let references: Vec<_> = (0..count).map(|_| noop::remote()).collect();
    get_all(&references, None)?;
    Ok(started.elapsed().as_secs_f64() * 1e3)
}
