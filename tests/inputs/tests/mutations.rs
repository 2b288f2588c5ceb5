//! Each entry with its seeds as they are, cut everywhere, and damaged many times over: the same way in every
//! short run, another way in each long one.

// A test may stop where it fails, also in what its functions share.
#![allow(clippy::unwrap_used)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use tharsis_inputs::{ENTRIES, Entry};
use tharsis_trials::{cases, first_seed};

/// Damaged seeds per entry, in a short and in a long run.
const ROUNDS: [u64; 2] = [5_000, 30_000];
/// Begin of the random numbers of a short run.
const FIRST_SEED: u64 = 0x9e37_79b9_7f4a_7c15;
/// Damages of one seed at most.
const DAMAGES_MAX: u64 = 6;

/// The next of a sequence of numbers that look random (xorshift).
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

fn below(state: &mut u64, limit: usize) -> usize {
    (next(state) % limit.max(1) as u64) as usize
}

/// Numbers at which lengths and counts go wrong.
fn awkward(state: &mut u64) -> u64 {
    const EDGES: [u64; 10] =
        [0, 1, 7, 8, 255, 4096, u32::MAX as u64, i64::MAX as u64, u64::MAX, 4_699_037_094_196_886_216];
    EDGES[below(state, EDGES.len())].wrapping_add(next(state) % 3)
}

fn damage(bytes: &mut Vec<u8>, other: &[u8], state: &mut u64) {
    let at = below(state, bytes.len());
    match next(state) % 7 {
        0 if !bytes.is_empty() => bytes[at] ^= 1 << (next(state) % 8),
        1 if !bytes.is_empty() => bytes[at] = next(state) as u8,
        2 => bytes.truncate(at),
        3 => bytes.splice(at..at, next(state).to_le_bytes()).for_each(drop),
        4 => {
            let end = (at + below(state, 40)).min(bytes.len());
            bytes.drain(at..end);
        }
        5 => {
            let from = below(state, other.len());
            let part = &other[from..(from + below(state, 40)).min(other.len())];
            let end = (at + part.len()).min(bytes.len());
            bytes.splice(at..end, part.iter().copied()).for_each(drop);
        }
        _ => {
            // Numbers stand at multiples of four more often than not.
            let (at, width) = (at / 4 * 4, [1, 2, 4, 8][below(state, 4)]);
            let end = (at + width).min(bytes.len());
            let number = awkward(state).to_le_bytes();
            bytes[at.min(end)..end].copy_from_slice(&number[..end - at.min(end)]);
        }
    }
}

/// Runs an entry; a panic names the bytes.
fn feed(entry: &Entry, bytes: &[u8]) {
    let outcome = catch_unwind(AssertUnwindSafe(|| (entry.read)(bytes)));
    assert!(outcome.is_ok(), "{} believed {bytes:02x?}", entry.name);
}

fn mutate(name: &str) {
    let entry = ENTRIES.iter().find(|entry| entry.name == name).unwrap();
    let seeds = (entry.seeds)();
    assert!(2 < seeds.len(), "{name} has seeds");
    for seed in &seeds {
        (0..=seed.len().min(600)).for_each(|len| feed(entry, &seed[..len]));
        feed(entry, seed);
    }
    // Xorshift stays at zero.
    let mut state = first_seed(FIRST_SEED).max(1);
    for _ in 0..cases(ROUNDS[0], ROUNDS[1]) {
        let mut bytes = seeds[below(&mut state, seeds.len())].clone();
        let other = &seeds[below(&mut state, seeds.len())];
        (0..=next(&mut state) % DAMAGES_MAX).for_each(|_| damage(&mut bytes, other, &mut state));
        feed(entry, &bytes);
    }
}

macro_rules! mutations {
    ($($name:ident),*) => {
        $(#[test]
        fn $name() {
            mutate(stringify!($name));
        })*

        const TESTED: &[&str] = &[$(stringify!($name)),*];
    };
}

mutations!(
    frame,
    from_client,
    ring_consumer,
    ring_producer,
    spill_block,
    spill_header,
    to_client,
    transfer_headers
);

#[test]
fn every_entry_is_tested_and_has_a_fuzz_target() {
    let names: Vec<_> = ENTRIES.iter().map(|entry| entry.name).collect();
    assert_eq!(names, TESTED);
    let package = std::env::var_os("CARGO_MANIFEST_DIR").unwrap();
    let fuzz = Path::new(&package).join("../../fuzz");
    let manifest = std::fs::read_to_string(fuzz.join("Cargo.toml")).unwrap();
    for name in names {
        let target = std::fs::read_to_string(fuzz.join(format!("fuzz_targets/{name}.rs"))).unwrap();
        assert!(target.contains(&format!("\"{name}\"")), "{name}");
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
    }
}
