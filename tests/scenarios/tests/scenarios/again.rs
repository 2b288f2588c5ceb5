//! F38: a parent that runs again calls what it calls now, whatever its first attempt called.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tharsis::prelude::*;
use tharsis_scenarios::{Mode, Scenario, await_file, mark, marks, scenarios};

pub const ALL: &[Scenario] = scenarios![
    Processes:
        f38_calls_in_another_order_get_their_own_values,
        f38_values_put_in_another_order_keep_their_own_bytes,
        f38_the_same_calls_are_shared_with_the_first_attempt,
        f38_a_thread_that_is_left_over_takes_no_numbers_away,
        f38_a_task_ends_while_a_thread_of_its_process_waits,
        f38_a_thread_that_has_entered_its_task_acts_for_no_other;
];

/// Entries of the maps.
const COUNT: i64 = 24;

fn values() -> HashMap<String, i64> {
    (0..COUNT).map(|n| (format!("key {n}"), n)).collect()
}

fn plain(of: impl Fn(i64) -> i64) -> BTreeMap<String, i64> {
    values().into_iter().map(|(key, value)| (key, of(value))).collect()
}

/// The first attempt ends here, without a word.
fn die_once(path: &str) {
    if marks(path) == 0 {
        mark(path);
        let me = rustix::process::getpid();
        rustix::process::kill_process(me, rustix::process::Signal::KILL).unwrap();
    }
}

#[remote]
fn slow_square(value: i64) -> i64 {
    std::thread::sleep(Duration::from_millis(20));
    value * value
}

/// Ends when the second attempt of its parent has made its calls.
#[remote(num_cpus = 0.1)]
fn gated_square(value: i64, runs: String, gate: String) -> i64 {
    mark(&runs);
    await_file(&gate);
    value * value
}

/// The order of the map is another one in each process.
#[remote(max_retries = 3)]
fn squares(values: HashMap<String, i64>, died: String) -> BTreeMap<String, i64> {
    let calls: Vec<_> = values.into_iter().map(|(key, value)| (key, slow_square::remote(value))).collect();
    die_once(&died);
    calls.into_iter().map(|(key, square)| (key, square.get().unwrap())).collect()
}

fn f38_calls_in_another_order_get_their_own_values(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    for round in 0..5 {
        let died = session.path(&format!("died {round}"));
        let found = squares::remote(values(), died.clone()).get_timeout(30.0).unwrap();
        assert_eq!(found, plain(|value| value * value));
        assert_eq!(marks(&died), 1, "the first attempt was killed");
    }
    session.await_quiet();
}

/// Longer than what travels in messages, and some longer than what is named by its bytes.
fn long(value: i64) -> Vec<i64> {
    vec![value; if value % 3 == 0 { 20_000 } else { 1_000 }]
}

#[remote]
fn sum(values: Vec<i64>) -> i64 {
    std::thread::sleep(Duration::from_millis(10));
    values.iter().sum()
}

/// Gives away what it puts before it dies.
#[remote(max_retries = 3)]
fn sums(values: HashMap<String, i64>, died: String) -> BTreeMap<String, i64> {
    let calls: Vec<_> = values
        .into_iter()
        .map(|(key, value)| {
            let stored = put(&long(value)).unwrap();
            let inside = put(&vec![value]).unwrap();
            (key, value, sum::remote(&stored), sum::remote(&inside), stored)
        })
        .collect();
    die_once(&died);
    let total =
        |(key, value, long_sum, one, stored): (_, _, ObjectRef<i64>, ObjectRef<i64>, ObjectRef<Vec<i64>>)| {
            assert!(stored.get().unwrap() == long(value), "what was put is what is read");
            (key, long_sum.get().unwrap() + one.get().unwrap())
        };
    calls.into_iter().map(total).collect()
}

fn f38_values_put_in_another_order_keep_their_own_bytes(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    for round in 0..3 {
        let died = session.path(&format!("died {round}"));
        let found = sums::remote(values(), died.clone()).get_timeout(30.0).unwrap();
        assert_eq!(found, plain(|value| long(value).iter().sum::<i64>() + value));
        assert_eq!(marks(&died), 1, "the first attempt was killed");
    }
    session.await_quiet();
}

/// Calls the same in each attempt; its calls wait for the second one.
fn call_twice(count: i64, runs: &str, gate: &str, died: &str, pause: Duration) -> Vec<i64> {
    let call = |n| {
        std::thread::sleep(pause);
        gated_square::remote(n, runs, gate)
    };
    let calls: Vec<_> = (0..count).map(call).collect();
    die_once(died);
    // Rings are read in any order: once this is answered, the node has heard of the calls before it, and not
    // only that they may end.
    assert_eq!(quick_square::remote(3).get().unwrap(), 9);
    mark(gate);
    calls.iter().map(|call| call.get().unwrap()).collect()
}

#[remote(max_retries = 3, num_cpus = 0.5)]
fn in_order(count: i64, runs: String, gate: String, died: String) -> Vec<i64> {
    call_twice(count, &runs, &gate, &died, Duration::ZERO)
}

fn f38_the_same_calls_are_shared_with_the_first_attempt(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let (runs, gate, died) = (session.path("runs"), session.path("gate"), session.path("died"));
    let found = in_order::remote(4, &*runs, &*gate, &*died).get_timeout(30.0).unwrap();
    assert_eq!(found, [0, 1, 4, 9]);
    assert_eq!((marks(&died), marks(&runs)), (1, 4), "each call ran once, for both attempts");
    session.await_quiet();
}

/// Whether a thread was left over in this process.
static HAS_THREAD: AtomicBool = AtomicBool::new(false);

#[remote(num_cpus = 0.1)]
fn quick_square(value: i64) -> i64 {
    value * value
}

/// Leaves a thread that goes on calling until the file is there. Its lease serves the next task, which needs
/// as much.
#[remote(num_cpus = 0.5)]
fn leave_a_thread(until: String) {
    HAS_THREAD.store(true, Ordering::Relaxed);
    std::thread::spawn(move || {
        for n in 1_000.. {
            if Path::new(&until).exists() {
                return;
            }
            let squared = quick_square::remote(n).get();
            if squared.is_ok_and(|squared| squared != n * n) {
                mark(&format!("{until} wrong"));
            }
        }
    });
}

#[remote(max_retries = 3, num_cpus = 0.5)]
fn beside_a_thread(count: i64, runs: String, gate: String, died: String) -> Vec<i64> {
    if HAS_THREAD.load(Ordering::Relaxed) {
        mark(&format!("{died} beside it"));
    }
    call_twice(count, &runs, &gate, &died, Duration::from_millis(5))
}

fn f38_a_thread_that_is_left_over_takes_no_numbers_away(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let (runs, gate) = (session.path("runs"), session.path("gate"));
    let (died, until) = (session.path("died"), session.path("until"));
    leave_a_thread::remote(&*until).get_timeout(10.0).unwrap();
    let found = beside_a_thread::remote(4, &*runs, &*gate, &*died).get_timeout(30.0).unwrap();
    assert_eq!(found, [0, 1, 4, 9]);
    assert_eq!((marks(&died), marks(&runs)), (1, 4), "each call ran once, for both attempts");
    assert_eq!(marks(&format!("{died} beside it")), 1, "the first attempt ran beside the thread");
    mark(&until);
    assert_eq!(marks(&format!("{until} wrong")), 0);
}

#[remote]
fn until(started: String, gate: String) {
    mark(&started);
    await_file(&gate);
}

/// Leaves a thread that waits for a task of its own once the file is there.
#[remote]
fn leave_a_waiting_thread(begin: String, started: String, gate: String) {
    HAS_THREAD.store(true, Ordering::Relaxed);
    std::thread::spawn(move || {
        await_file(&begin);
        let _over = until::remote(started, gate).get();
    });
}

/// Returns when the thread that an earlier task left here waits, and has lent the CPU to what it waits for.
#[remote]
fn beside_a_waiting_thread(begin: String, started: String) -> bool {
    mark(&begin);
    let has_thread = HAS_THREAD.load(Ordering::Relaxed);
    if has_thread {
        await_file(&started);
    }
    has_thread
}

fn f38_a_task_ends_while_a_thread_of_its_process_waits(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let (begin, started) = (session.path("begin"), session.path("started"));
    let gate = session.path("gate");
    leave_a_waiting_thread::remote(&*begin, &*started, &*gate).get_timeout(20.0).unwrap();
    let beside = beside_a_waiting_thread::remote(&*begin, &*started);
    assert!(beside.get_timeout(60.0).unwrap(), "it ran in another process");
    drop(beside);
    mark(&gate);
    assert_eq!(quick_square::remote(3).get_timeout(60.0).unwrap(), 9, "the CPU is there again");
    session.await_quiet();
}

/// Leaves a thread that is part of this task, and goes on with calls when the file is there.
#[remote]
fn leave_a_thread_of_its_own(begin: String, refused: String) {
    let context = context().unwrap();
    let called = format!("{begin} called");
    let told = called.clone();
    std::thread::spawn(move || {
        let _entered = context.enter();
        assert_eq!(quick_square::remote(2).get().ok(), Some(4), "the task waits for this");
        mark(&told);
        await_file(&begin);
        let kind = quick_square::remote(3).get().map_err(|error| error.kind());
        if kind == Err(FailureKind::Cancelled) && put(&1).is_err() {
            mark(&refused);
        }
    });
    await_file(&called);
}

fn f38_a_thread_that_has_entered_its_task_acts_for_no_other(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let (begin, refused) = (session.path("begin"), session.path("refused"));
    leave_a_thread_of_its_own::remote(&*begin, &*refused).get_timeout(60.0).unwrap();
    mark(&begin);
    await_file(&refused);
    session.await_quiet();
}
