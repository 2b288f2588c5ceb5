//! get of a value with many references.

use super::bounded::Bounded;
use super::statistics::median;
use super::{Measurement, Options};
use anyhow::{Result, ensure};
use std::collections::HashMap;
use std::time::Instant;
use tharsis::prelude::*;
use tharsis::{RefId, SpillChoice};

/// References in the value.
const REFERENCES: usize = 10_000;
/// Size of the store in bytes: the referenced values fit easily.
const STORE_BYTES: u64 = 100_000_000;
const ROUNDS: usize = 30;

/// References to numbers that a worker put and that are not known elsewhere.
#[remote]
fn hand_out(count: usize) -> Result<Vec<ObjectRef<usize>>, Error> {
    (0..count).map(|number| put(&number)).collect()
}

/// get of a value with many references, in milliseconds: of references to the reader's own values, and of
/// references that a task returned.
pub fn refs(options: &Options) -> Result<Measurement> {
    let bounded = Bounded::start(options, STORE_BYTES, SpillChoice::default())?;
    let own: Vec<_> = (0..REFERENCES).map(|number| put(&number)).collect::<Result<_, _>>()?;
    let rounds = if options.quick { ROUNDS / 5 } else { ROUNDS };
    let (mut known, mut strange, mut floors) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let holder = put(&own)?;
        known.push(get_ms(&holder)?);
        let handed_out = hand_out::remote(REFERENCES);
        tharsis::wait(std::slice::from_ref(&handed_out), Wait { fetch: false, ..Wait::default() })?;
        strange.push(get_ms(&handed_out)?);
        floors.push(by_hand_ms(&own));
    }
    Ok(Measurement::new("refs", median(&mut strange), "ms", median(&mut floors))
        .with("known_ms", median(&mut known))
        .with_peak(bounded.end()?))
}

/// Milliseconds of a get, with a check of its first and last reference.
fn get_ms(holder: &ObjectRef<Vec<ObjectRef<usize>>>) -> Result<f64> {
    let started = Instant::now();
    let read = holder.get()?;
    let elapsed = started.elapsed();
    ensure!(read.len() == REFERENCES, "{} references came", read.len());
    for number in [0, REFERENCES - 1] {
        ensure!(read[number].get()? == number, "reference {number} is to something else");
    }
    Ok(elapsed.as_secs_f64() * 1e3)
}

/// Milliseconds to insert as many ids into a table.
fn by_hand_ms(references: &[ObjectRef<usize>]) -> f64 {
    let ids: Vec<RefId> = references.iter().map(ObjectRef::id).collect();
    let started = Instant::now();
    let table: HashMap<_, _> = ids.into_iter().map(|id| (id, 1_u32)).collect();
    std::hint::black_box(&table);
    started.elapsed().as_secs_f64() * 1e3
}
