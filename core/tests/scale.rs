//! Growth of costs: CPU times per item of small and large runs are compared, instead of times on a clock.

#[allow(dead_code, reason = "not every test uses all of it")]
mod bench;

use bench::{Bench, cpu_ns};
use tharsis_types::FailureKind;

/// Nanoseconds per argument of a task that is submitted before any of its arguments is there.
fn fan_in(count: u64) -> f64 {
    let mut bench = Bench::new();
    (0..count).for_each(|n| bench.submit(n));
    bench.submit_with(count, count);
    let start = cpu_ns();
    while bench.finished <= count {
        bench.turn();
    }
    let ns = (cpu_ns() - start) as f64 / count as f64;
    bench.empty();
    ns
}

#[test]
fn a_task_may_wait_for_very_many_others() {
    // Take the best of three: caches are shared with other processes, and the CPU clock of a thread is
    // coarse.
    let best = |count| (0..3).map(|_| fan_in(count)).fold(f64::INFINITY, f64::min);
    let (few, many) = (best(16_000), best(128_000));
    assert!(many < 4.0 * few, "an argument costs {few:.0} ns among 16 000, {many:.0} ns among 128 000");
}

#[test]
fn arguments_that_no_message_holds_fail_their_task() {
    let count = 17_000;
    let mut bench = Bench::new();
    bench.value_bytes = 4_096;
    (0..count).for_each(|n| bench.submit(n));
    bench.submit_with(count, count);
    while bench.finished <= count {
        bench.turn();
    }
    assert_eq!(bench.failures, [FailureKind::InvalidArgument]);
    bench.empty();
}

/// Nanoseconds per actor that is constructed beside the others, and ended when all live.
fn actors(count: u64) -> f64 {
    let mut bench = Bench::new();
    bench.keeps = true;
    let start = cpu_ns();
    (0..count).for_each(|n| bench.construct(n));
    while bench.finished < count {
        bench.turn();
    }
    assert_eq!(bench.failures, []);
    for n in 0..count {
        bench.drop_reference(n);
        if n % 16 == 0 {
            bench.turn();
        }
    }
    bench.turn();
    let ns = (cpu_ns() - start) as f64 / count as f64;
    bench.empty();
    ns
}

#[test]
fn an_actor_costs_the_same_among_many_others() {
    let best = |count| (0..3).map(|_| actors(count)).fold(f64::INFINITY, f64::min);
    let (few, many) = (best(2_000), best(16_000));
    assert!(many < 4.0 * few, "an actor costs {few:.0} ns among 2 000, {many:.0} ns among 16 000");
}

/// Nanoseconds per task of which each needs another amount of memory, and the turns until all have ended.
fn unlike(count: u64) -> (f64, u64) {
    let mut bench = Bench::new();
    let (start, mut turns) = (cpu_ns(), 0);
    (0..count).for_each(|n| bench.submit_unlike(n));
    while bench.finished < count {
        bench.turn();
        bench.tick();
        turns += 1;
    }
    let ns = (cpu_ns() - start) as f64 / count as f64;
    assert_eq!(bench.failures, []);
    bench.empty();
    (ns, turns)
}

/// Each is a shape of its own, and has a lease of its own.
#[test]
fn tasks_that_differ_in_what_they_need_wait_for_each_other_no_longer() {
    let runs = |count: u64| {
        let (ns, turns) = unlike(count);
        // A worker has the next task within the turns after that in which it ended one.
        assert!(turns <= 2 * count, "{count} tasks took {turns} turns");
        ns
    };
    let best = |count| (0..3).map(|_| runs(count)).fold(f64::INFINITY, f64::min);
    let (few, many) = (best(1_000), best(8_000));
    assert!(many < 4.0 * few, "a task costs {few:.0} ns among 1 000, {many:.0} ns among 8 000");
}
