//! Tests of requests that wait behind others: recalls look at each in its turn, and what is kept for one that
//! cannot be served is for the others.

use super::*;

/// Others get what is kept for a request as soon as an actor has a part of it, inside groups and outside,
/// though nothing else happens.
#[test]
fn an_actor_that_lives_ends_what_was_kept_for_a_request_that_needs_its_resources() {
    for is_inside in [false, true] {
        let mut bench = Bench::new(2.0);
        if is_inside {
            bench.reserve(0, 2.0);
        }
        let ask = |bench: &mut Bench, cpus| {
            if is_inside { bench.ask_inside(Some(0), cpus) } else { bench.ask(1, cpus) }
        };
        let actor = ask(&mut bench, 1.0);
        bench.pass(100);
        let wide = ask(&mut bench, 2.0);
        bench.pass(500);
        let narrow = ask(&mut bench, 1.0);
        assert!(!bench.is_active(narrow), "what the wide one needs is kept for it");
        let host = bench.leases.worker(actor).unwrap();
        bench.constructed(host);
        assert!(bench.is_active(narrow) && !bench.is_active(wide), "inside: {is_inside}");
    }
}

/// Of a group with more requests than one call of a recall looks at, all are looked at in turn.
#[test]
fn a_request_inside_behind_many_others_is_looked_at_in_its_turn() {
    for bundles in [10, 63, 64, 65, 200] {
        let mut bench = Bench::new(f64::from(bundles));
        for index in 0..bundles {
            bench.reserve(index, 1.0);
        }
        // Each bundle is held, and a request of the same shape waits for it: none makes way for another.
        for index in (0..bundles).chain(0..bundles) {
            bench.ask_inside(Some(index), 1.0);
        }
        let held = bench.active.last().copied().unwrap();
        bench.ask_inside(Some(bundles - 1), 0.5);
        let calls =
            (1..40).find_map(|calls| Some((calls, bench.recall())).filter(|(_, all)| !all.is_empty()));
        let (calls, recalled) = calls.unwrap_or_else(|| panic!("none of {bundles} is asked back"));
        assert_eq!(recalled, [held]);
        assert!(calls <= 1 + bundles / 32, "{calls} calls for {bundles} bundles");
    }
}

/// However many requests wait that nothing helps, one behind them that a lease would help is found.
#[test]
fn a_request_behind_many_others_is_looked_at_in_its_turn() {
    const BEFORE: usize = 300;
    let mut bench = Bench::new(4.0);
    let actor = bench.ask(1, 3.0);
    let host = bench.leases.worker(actor).unwrap();
    bench.constructed(host);
    let busy = bench.ask(1, 1.0);
    (0..BEFORE).for_each(|_| {
        bench.ask(1, 2.0);
    });
    let small = bench.ask(1, 0.5);
    let calls = (1..20).find(|_| !bench.recall().is_empty());
    assert!(calls.is_some_and(|calls| 1 < calls && calls <= BEFORE / 64 + 1), "{calls:?}");
    bench.end(busy);
    assert!(bench.is_active(small));
}
