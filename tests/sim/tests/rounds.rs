//! Clusters that do the same amount of work again and again keep nothing of it.

// A test may stop where it fails.
#![allow(clippy::unwrap_used, clippy::panic)]

use tharsis_sim::{Options, Sabotage, run_rounds};

/// Seeds that are tried.
const SEEDS: [u64; 3] = [0, 1, 2];
/// Rounds of each.
const ROUNDS: usize = 12;

#[test]
fn nodes_keep_nothing_of_work_that_is_over() {
    for seed in SEEDS {
        let rounds = run_rounds(&Options { seed, ..Options::default() }, ROUNDS);
        let rounds = rounds.unwrap_or_else(|violation| panic!("seed {seed}: {violation}"));
        assert_eq!(rounds.len(), ROUNDS);
    }
}

#[test]
fn what_is_kept_of_each_call_or_each_job_is_found() {
    for sabotage in [Sabotage::ClassEach, Sabotage::ClassPerJob] {
        // Nodes let classes of ended jobs go at once now and then, which hides one of each round for a while.
        let options = |seed| Options { seed, sabotage, ..Options::default() };
        let broken = |seed| run_rounds(&options(seed), 2 * ROUNDS).err();
        let broken = SEEDS.into_iter().find_map(broken);
        assert_eq!(broken.unwrap().invariant, "nodes keep nothing of work that is over", "{sabotage:?}");
    }
}
