//! Compares `copy_large` with the best plain copy with two threads.
//!
//! `cargo run --release -p tharsis-object-store --example copy_floor`

// The example exists to print its results.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::thread;
use std::time::Instant;
use tharsis_object_store::{Arena, copy_large};

const BYTES: usize = 1 << 30;
const ROUNDS: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let arena = Arena::create(BYTES as u64)?;
    arena.map().make_pages(0, BYTES as u64)?;
    let mut slot = arena.map().write(0, BYTES as u64)?;
    let source = vec![7_u8; BYTES];
    let (low, high) = source.split_at(BYTES / 2);
    let mut best = [f64::INFINITY; 3];
    for _ in 0..=ROUNDS {
        let plain = time(|| {
            let (to_low, to_high) = slot.split_at_mut(BYTES / 2);
            thread::scope(|scope| {
                scope.spawn(|| to_high.copy_from_slice(high));
                to_low.copy_from_slice(low);
            });
        });
        let single = time(|| slot.copy_from_slice(&source));
        let large = time(|| copy_large(&mut slot, &[low, high]).unwrap_or_else(|e| println!("{e}")));
        for (best, seconds) in best.iter_mut().zip([single, plain, large]) {
            *best = best.min(seconds);
        }
    }
    for (name, seconds) in ["plain, 1 thread", "plain, 2 threads", "copy_large"].iter().zip(best) {
        println!("{name:18} {:6.2} GB/s", BYTES as f64 / seconds / 1e9);
    }
    println!("copy_large / best plain with 2 threads: {:.2}", best[1] / best[2]);
    Ok(())
}

fn time(work: impl FnOnce()) -> f64 {
    let started = Instant::now();
    work();
    started.elapsed().as_secs_f64()
}
