//! Many calls at a time: `map`, and references in the order in which they are ready.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tharsis::prelude::*;
use tharsis::{as_completed, get_any, map, map_as_completed, map_speculating};
use tharsis_scenarios::{Mode, Scenario, await_file, open_gate, scenarios};

pub const ALL: &[Scenario] = scenarios![
    Both:
        map_keeps_the_order_and_the_bound,
        map_of_an_endless_iterator_takes_what_is_needed,
        map_as_completed_yields_each_place_once,
        a_failure_is_the_value_of_its_item,
        references_come_as_they_are_ready,
        any_value_is_the_first_one,
        a_call_that_hangs_is_made_again,
        a_failure_counts_when_no_other_attempt_is_left,
        few_calls_are_made_once;
];

#[remote]
fn double(x: u64) -> u64 {
    2 * x
}

#[remote(max_retries = 0)]
fn odd(x: u64) -> Result<u64, String> {
    if x % 2 == 1 { Ok(x) } else { Err(format!("{x} is even")) }
}

#[remote]
fn after(gate: String, x: u64) -> u64 {
    await_file(&gate);
    x
}

fn map_keeps_the_order_and_the_bound(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let called = Cell::new(0_usize);
    let call = |x| {
        called.set(called.get() + 1);
        double::remote(x)
    };
    let mut values = map(0..500_u64, 8, call);
    assert_eq!(called.get(), 0, "nothing is called before a value is asked for");
    for taken in 0..500_usize {
        assert_eq!(values.next().unwrap().unwrap(), 2 * taken as u64);
        assert!(called.get() <= taken + 8, "{} calls for {taken} values", called.get());
    }
    assert!(values.next().is_none());
    drop(values);
    session.await_quiet();
}

fn map_of_an_endless_iterator_takes_what_is_needed(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let taken = AtomicUsize::new(0);
    let items = (0_u64..).inspect(|_| {
        taken.fetch_add(1, Ordering::Relaxed);
    });
    let sum: u64 = map(items, 0, double::remote).take(10).map(Result::unwrap).sum();
    assert_eq!((sum, taken.into_inner()), (90, 10), "a bound of 0 is one of 1");
    session.await_quiet();
}

fn map_as_completed_yields_each_place_once(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let gate = session.path("gate");
    // The first item is held back until all others have come.
    let call = |x: u64| if x == 0 { after::remote(gate.clone(), x) } else { double::remote(x) };
    let mut values = map_as_completed(0..100, 10, call);
    let mut places: Vec<usize> = (1..100)
        .map(|_| {
            let (place, value) = values.next().unwrap();
            assert_eq!(value.unwrap(), 2 * place as u64);
            place
        })
        .collect();
    places.sort_unstable();
    assert!(places.into_iter().eq(1..100), "each place once");
    open_gate(&gate);
    let (place, value) = values.next().unwrap();
    assert_eq!((place, value.unwrap()), (0, 0));
    assert!(values.next().is_none());
}

fn a_failure_is_the_value_of_its_item(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let good: Vec<bool> = map(0..6, 3, odd::remote).map(|value| value.is_ok()).collect();
    assert_eq!(good, [false, true, false, true, false, true]);
    for (place, value) in map_as_completed(0..6, 3, odd::remote) {
        assert_eq!(value.is_ok(), place % 2 == 1, "{place}");
    }
}

fn references_come_as_they_are_ready(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let gate = session.path("gate");
    let references = [after::remote(gate.clone(), 7), double::remote(1), odd::remote(2)];
    let mut ready = as_completed(references);
    let mut first: Vec<usize> = ready.by_ref().take(2).map(|found| found.unwrap().0).collect();
    first.sort_unstable();
    assert_eq!(first, [1, 2], "one that failed is ready as well");
    open_gate(&gate);
    let (place, last) = ready.next().unwrap().unwrap();
    assert_eq!((place, last.get().unwrap()), (0, 7));
    assert!(ready.next().is_none() && as_completed::<u64>([]).next().is_none());
}

fn any_value_is_the_first_one(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let gate = session.path("gate");
    let slow = after::remote(gate.clone(), 9);
    assert_eq!(get_any(&[slow.clone(), odd::remote(2), odd::remote(5)]).unwrap(), (2, 5));
    open_gate(&gate);
    assert_eq!(slow.get().unwrap(), 9, "the others go on");
    let error = get_any(&[odd::remote(2), odd::remote(4)]).unwrap_err();
    assert_eq!(error.kind(), FailureKind::UserError, "{error}");
    assert_eq!(get_any::<u64>(&[]).unwrap_err().kind(), FailureKind::InvalidArgument);
}

/// Doubles, at once but for 3: its first attempt waits for the file `gate`.
#[remote]
fn double_unless_first(folder: String, x: u64) -> u64 {
    if x == 3 && is_first(&folder) {
        await_file(&format!("{folder}/gate"));
    }
    2 * x
}

/// As above, but the first attempt for 3 fails once the second one has begun, which goes on.
#[remote(max_retries = 0)]
fn double_unless_failed(folder: String, x: u64) -> Result<u64, String> {
    if x == 3 && is_first(&folder) {
        await_file(&format!("{folder}/second"));
        return Err("the first attempt".to_owned());
    }
    if x == 3 {
        open_gate(&format!("{folder}/second"));
        std::thread::sleep(Duration::from_millis(300));
    }
    Ok(2 * x)
}

#[remote]
fn double_later(x: u64) -> u64 {
    std::thread::sleep(Duration::from_millis(100 * x));
    2 * x
}

fn is_first(folder: &str) -> bool {
    std::fs::File::create_new(format!("{folder}/first")).is_ok()
}

fn a_call_that_hangs_is_made_again(mode: Mode) {
    let session = mode.start(4);
    let _entered = session.enter();
    let mut made = [0; 30];
    let call = |x: u64| {
        made[x as usize] += 1;
        double_unless_first::remote(session.path(""), x)
    };
    let values: Vec<u64> = map_speculating(0..30, 4, 3.0, call).map(Result::unwrap).collect();
    assert!(values.into_iter().eq((0..30).map(|x| 2 * x)), "in order, once each");
    assert_eq!(made[3], 2, "the call whose first attempt hangs");
    assert!(made.iter().all(|count| (1..=2).contains(count)), "{made:?}");
    open_gate(&session.path("gate"));
    session.await_quiet();
}

fn a_failure_counts_when_no_other_attempt_is_left(mode: Mode) {
    let session = mode.start(4);
    let _entered = session.enter();
    let call = |x| double_unless_failed::remote(session.path(""), x);
    let values: Vec<u64> = map_speculating(0..10, 4, 3.0, call).map(Result::unwrap).collect();
    assert!(values.into_iter().eq((0..10).map(|x| 2 * x)));
    let good: Vec<bool> = map_speculating(0..6, 3, 3.0, odd::remote).map(|value| value.is_ok()).collect();
    assert_eq!(good, [false, true, false, true, false, true]);
}

fn few_calls_are_made_once(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let mut count = 0;
    let call = |x| {
        count += 1;
        double_later::remote(x)
    };
    let sum: u64 = map_speculating(0..4, 4, f64::INFINITY, call).map(Result::unwrap).sum();
    assert_eq!((sum, count), (12, 4), "four ended calls say nothing of others");
}
