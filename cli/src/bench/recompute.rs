//! Many times more intermediate data than the store holds. All of it is cheap to recompute, so nothing needs
//! to go to disk.

use super::bounded::{Bounded, Folder};
use super::resident::Peak;
use super::{Measurement, Options};
use anyhow::{Result, ensure};
use std::collections::VecDeque;
use std::time::Instant;
use tharsis::prelude::*;

/// Bytes of a block.
const BLOCK_BYTES: usize = 32_000_000;
/// Default size of the small store in bytes.
const STORE_BYTES: u64 = 500_000_000;
/// Bytes of the store that is never full.
const AMPLE_BYTES: u64 = 3_000_000_000;
/// Blocks in flight in the ample store, which holds twice as many, so that memory does not matter.
const WINDOW: usize = 48;

/// Numbers that depend on a seed.
#[remote(pure = true)]
fn block(seed: usize) -> Blob {
    let mut bytes = vec![0; BLOCK_BYTES];
    for (word, index) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(0_u64..) {
        *word = (index ^ seed as u64).to_le_bytes();
    }
    Blob::from(bytes)
}

/// The sum of a block.
#[remote]
fn total(block: Blob) -> u64 {
    let (words, _none) = block.as_chunks::<8>();
    words.iter().fold(0, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)))
}

/// One reduction.
struct Pass {
    seconds: f64,
    spilled_bytes: u64,
    peak: Peak,
}

/// A reduction over blocks that do not fit the store, beside the same one with an ample store.
pub fn recompute(options: &Options) -> Result<Measurement> {
    let count = (options.size * 1_000_000 / BLOCK_BYTES).max(1);
    let folder = Folder::new(0)?;
    let store_bytes = options.store.unwrap_or(STORE_BYTES);
    let ample = pass(options, &folder, AMPLE_BYTES, count, WINDOW)?;
    let windowed = pass(options, &folder, store_bytes, count, WINDOW)?;
    let small = pass(options, &folder, store_bytes, count, count)?;
    Ok(Measurement::new("recompute", small.seconds, "s", ample.seconds)
        .with("windowed_ratio", windowed.seconds / ample.seconds)
        .with("spilled_mb", small.spilled_bytes.max(windowed.spilled_bytes) as f64 / 1e6)
        .with_peak(small.peak))
}

/// Makes and sums blocks, at most `window` of them in flight.
fn pass(options: &Options, folder: &Folder, store_bytes: u64, count: usize, window: usize) -> Result<Pass> {
    let bounded = Bounded::start(options, store_bytes, folder.spill())?;
    let (seconds, spilled_bytes) = bounded.spilled_during(|| {
        let started = Instant::now();
        let mut under_way: VecDeque<ObjectRef<u64>> = VecDeque::new();
        let mut sum = 0_u64;
        for seed in 0..count {
            if under_way.len() == window
                && let Some(oldest) = under_way.pop_front()
            {
                sum = sum.wrapping_add(oldest.get()?);
            }
            under_way.push_back(total::remote(block::remote(seed)));
        }
        for rest in under_way {
            sum = sum.wrapping_add(rest.get()?);
        }
        let seconds = started.elapsed().as_secs_f64();
        ensure!(sum == expected(count), "the sum is {sum} instead of {}", expected(count));
        Ok(seconds)
    })?;
    Ok(Pass { seconds, spilled_bytes, peak: bounded.end()? })
}

/// Sum of the blocks, computed bit by bit: a bit of the seed flips this bit of all indices.
fn expected(count: usize) -> u64 {
    let indices = BLOCK_BYTES as u64 / 8;
    let ones: Vec<u64> =
        (0..u64::BITS).map(|bit| (0..indices).filter(|i| i >> bit & 1 == 1).count() as u64).collect();
    let of_block = |seed: u64| {
        (0..u64::BITS).zip(&ones).fold(0_u64, |sum, (bit, ones)| {
            let set = if seed >> bit & 1 == 1 { indices - ones } else { *ones };
            sum.wrapping_add(set.wrapping_shl(bit))
        })
    };
    (0..count as u64).fold(0, |sum, seed| sum.wrapping_add(of_block(seed)))
}
