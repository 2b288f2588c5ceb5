//! The cost of an event does not grow with what the event does not touch.

use tharsis_sim::crowd::{Touch, cost};

/// Sizes of crowds.
const FEW: u64 = 250;
const MANY: u64 = 4_000;
/// A touch may cost so many times more beside many: caches hold less of each. One that walks over the crowd
/// costs up to 16 times more.
const TIMES_MAX: u64 = 4;

#[test]
fn what_an_event_costs_does_not_grow_with_what_it_does_not_touch() {
    for touch in Touch::ALL {
        let (few, many) = (cost(touch, FEW, false), cost(touch, MANY, false));
        assert!(many < TIMES_MAX * few, "{touch:?} takes {few} ns beside {FEW}, {many} ns beside {MANY}");
    }
}

#[test]
fn a_walk_over_all_tasks_is_found() {
    let (few, many) = (cost(Touch::Put, FEW, true), cost(Touch::Put, MANY, true));
    assert!(TIMES_MAX * few <= many, "a put takes {few} ns beside {FEW}, {many} ns beside {MANY}");
}
