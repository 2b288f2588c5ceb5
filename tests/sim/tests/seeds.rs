//! The simulator finds nothing in the nodes, the same thing each time, and something where something is
//! planted.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use tharsis_sim::{Options, Sabotage, Summary, Violation, run};

/// Seeds of one run of the tests.
const SEED_COUNT: u64 = 500;
/// Seeds in which a planted fault has its chance.
const PLANTED_SEEDS: u64 = 40;

fn seed(seed: u64) -> Result<Summary, Violation> {
    run(&Options { seed, ..Options::default() })
}

#[test]
fn five_hundred_clusters_keep_every_rule() {
    let next = AtomicU64::new(0);
    let work = || {
        let mut broken = Vec::new();
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            if SEED_COUNT <= n {
                return broken;
            }
            if let Err(violation) = seed(n) {
                broken.push(format!("seed {n}: {violation}"));
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let broken: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn a_seed_replays_to_the_same_trace() {
    for n in [3, 17, 29] {
        assert_eq!(seed(n), seed(n));
    }
}

#[test]
fn different_seeds_take_different_courses() {
    let hashes: std::collections::BTreeSet<_> = (0..8).map(|n| seed(n).unwrap().trace_hash).collect();
    assert_eq!(hashes.len(), 8);
}

#[test]
fn disks_are_written_to_and_read_from_also_ahead_of_readers() {
    let all: Vec<_> = (0..40).map(|n| seed(n).unwrap()).collect();
    let count = |of: fn(&Summary) -> u64| all.iter().filter(|summary| of(summary) > 0).count();
    let counts = [count(|s| s.spill_count), count(|s| s.restore_count), count(|s| s.ahead_count)];
    assert!(counts.iter().all(|clusters| 2 <= *clusters), "{counts:?} clusters write, read, read ahead");
}

#[test]
fn nodes_drain_in_time_and_not_in_time() {
    let all: Vec<_> = (0..60).map(|n| seed(n).unwrap()).collect();
    let count = |of: fn(&Summary) -> bool| all.iter().filter(|summary| of(summary)).count();
    let in_time = count(|s| 0 < s.departure_count);
    let late = count(|s| s.departure_count < s.drain_count);
    assert!(5 <= in_time && 2 <= late, "{in_time} clusters have nodes that leave in time, {late} others");
}

#[test]
fn actors_are_called_in_some_clusters() {
    let all: Vec<_> = (0..120).map(|n| seed(n).unwrap()).collect();
    let many = all.iter().filter(|summary| 20 <= summary.call_count).count();
    assert!(5 <= many, "{many} clusters call actors often");
}

#[test]
fn attempts_diverge_in_some_clusters() {
    let clusters = (0..40).filter(|n| seed(*n).unwrap().divergence_count > 0).count();
    assert!((2..30).contains(&clusters), "{clusters} of 40");
}

/// The rule that a planted fault breaks first, in any of a few seeds.
fn found(sabotage: Sabotage) -> Vec<&'static str> {
    let runs = (0..PLANTED_SEEDS).map(|seed| run(&Options { seed, sabotage, ..Options::default() }));
    let mut rules: Vec<_> =
        runs.filter_map(|outcome| outcome.err().map(|violation| violation.invariant)).collect();
    rules.sort_unstable();
    rules.dedup();
    rules
}

#[test]
fn a_reference_that_is_not_released_is_found() {
    assert!(found(Sabotage::LoseRelease).contains(&"nothing leaks"));
}

#[test]
fn a_run_that_is_not_sent_is_found() {
    assert!(found(Sabotage::LoseRun).contains(&"every get ends and every blocked worker resumes"));
}

#[test]
fn a_run_that_is_sent_twice_is_found() {
    assert!(found(Sabotage::RepeatRun).contains(&"an attempt starts at most once"));
}

#[test]
fn a_broken_rule_comes_with_what_the_nodes_tell_of_its_task() {
    let sabotage = Sabotage::RepeatRun;
    let mut broken = (0..PLANTED_SEEDS).filter_map(|seed| {
        let violation = run(&Options { seed, sabotage, ..Options::default() }).err();
        violation.filter(|violation| violation.invariant == "an attempt starts at most once")
    });
    let text = broken.next().unwrap().to_string();
    let is_where = text.contains("in worker") || text.contains("sent to worker");
    assert!(text.contains(" called at ") && is_where, "{text}");
}

#[test]
fn bytes_that_change_on_the_way_are_found() {
    let rules = found(Sabotage::CorruptPull);
    assert!(
        rules.contains(&"a value is the expected one")
            || rules.contains(&"arguments are the expected values")
    );
}
