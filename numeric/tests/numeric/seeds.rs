//! Seeds of random programs: the same ones in a usual run, and fresh ones beside them in a long run.
//!
//! `THARSIS_SEED=..` tries programs from that seed on, `THARSIS_PROGRAMS=..` another number of them. A
//! failure prints its seed.

use proptest::prelude::ProptestConfig;
use proptest::test_runner::RngSeed;
use tharsis_trials::{cases, first_seed, given_number, given_seed};

/// The seeds of one of several tests that share them: `usual` of them from `first` on. A long run adds fresh
/// ones, `long` in all.
pub fn seeds(first: u64, [usual, long]: [u64; 2], [part, parts]: [u64; 2]) -> impl Iterator<Item = u64> {
    let count = given_number("THARSIS_PROGRAMS").unwrap_or_else(|| cases(usual, long));
    let known = if given_seed().is_some() { 0 } else { usual };
    let fresh = first_seed(first);
    let seed = move |at: u64| if at < known { first + at } else { fresh.wrapping_add(at) };
    (part..count).step_by(parts as usize).map(seed)
}

/// The amount of cases of a property. In a usual run they are the same each time, because the variable of the
/// library's own seed is set.
pub fn properties(usual: u32, long: u32) -> ProptestConfig {
    let config = ProptestConfig::with_cases(cases(usual, long));
    match given_seed() {
        Some(seed) => ProptestConfig { rng_seed: RngSeed::Fixed(seed), ..config },
        None => config,
    }
}

/// Four tests that each run a function on their part: `[0, 4]` to `[3, 4]`. One test keeps one core only.
macro_rules! quarters {
    ($name:ident, $run:expr) => {
        mod $name {
            use super::*;

            const RUN: fn([u64; 2]) = $run;

            #[test]
            fn first_quarter() {
                RUN([0, 4]);
            }

            #[test]
            fn second_quarter() {
                RUN([1, 4]);
            }

            #[test]
            fn third_quarter() {
                RUN([2, 4]);
            }

            #[test]
            fn fourth_quarter() {
                RUN([3, 4]);
            }
        }
    };
}
pub(crate) use quarters;
