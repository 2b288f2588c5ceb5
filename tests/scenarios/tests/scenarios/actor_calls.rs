//! F1, F3, F6, F7: calls of an actor that wait, run at the same time or lose their connection, one node.

use std::sync::atomic::{AtomicU64, Ordering};
use tharsis::prelude::*;
use tharsis::{Executed, actor};
use tharsis_scenarios::{
    Mode, SOON, Scenario, await_file, await_within, mark, marks, open_gate, processes, scenarios,
};

pub const ALL: &[Scenario] = scenarios![
    Both:
        f1_calls_overtake_where_that_is_allowed,
        f6_a_call_too_many_fails_at_once,
        f7_the_limits_of_groups_hold,
        f7_a_blocked_group_does_not_starve_another,
        f7_async_methods_interleave,
        f7_a_method_that_changes_the_actor_runs_alone,
        f7_calls_are_cancelled_one_by_one,
        f7_the_last_handle_ends_the_actor_after_its_calls;
    Processes:
        f3_a_cut_connection_repeats_no_call,
        f7_each_call_that_was_sent_may_have_run;
];

/// Long enough for what happens at once.
const AT_ONCE: f64 = 20.0;
/// More calls than are sent ahead to a worker.
const MANY: usize = 600;

/// An actor that counts the calls that run.
#[derive(Default)]
struct Gauge {
    running: [AtomicU64; 2],
    peak: [AtomicU64; 2],
    changes: u64,
}

impl Gauge {
    fn inside<T>(&self, group: usize, call: impl FnOnce() -> T) -> T {
        let now = self.running[group].fetch_add(1, Ordering::SeqCst) + 1;
        self.peak[group].fetch_max(now, Ordering::SeqCst);
        let value = call();
        self.running[group].fetch_sub(1, Ordering::SeqCst);
        value
    }
}

#[actor(max_concurrency = 2, groups(io = 3))]
impl Gauge {
    fn new() -> Self {
        Self::default()
    }

    fn hold(&self, gate: String) {
        self.inside(0, || await_file(&gate));
    }

    #[method(group = io)]
    fn hold_io(&self, gate: String) {
        self.inside(1, || await_file(&gate));
    }

    fn running(&self) -> Vec<u64> {
        self.running.iter().map(|count| count.load(Ordering::SeqCst)).collect()
    }

    #[method(group = io)]
    fn peak(&self) -> Vec<u64> {
        self.peak.iter().map(|count| count.load(Ordering::SeqCst)).collect()
    }

    fn change(&mut self) -> Vec<u64> {
        self.changes += 1;
        self.running()
    }

    fn changes(&self) -> u64 {
        self.inside(0, || self.changes)
    }

    async fn await_it(&self, value: ObjectRef<u64>) -> Result<u64, Error> {
        value.await
    }

    async fn open(&self, gate: String) {
        open_gate(&gate);
    }

    #[method(group = io)]
    fn exits(&self) {
        std::process::exit(0)
    }
}

/// An actor whose calls run one by one.
#[derive(Default)]
struct Log(Vec<u64>);

#[actor]
impl Log {
    fn new() -> Self {
        Self::default()
    }

    fn push(&mut self, entry: u64) -> u64 {
        self.0.push(entry);
        entry
    }

    fn push_after(&mut self, gate: String, entry: u64) -> u64 {
        await_file(&gate);
        self.push(entry)
    }

    fn entries(&self) -> Vec<u64> {
        self.0.clone()
    }
}

#[remote]
fn after(gate: String, value: u64) -> u64 {
    await_file(&gate);
    value
}

#[remote]
fn push_from_a_task(log: LogHandle, entry: u64) -> Result<u64, Error> {
    log.push(entry).get()
}

fn f1_calls_overtake_where_that_is_allowed(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let gate = session.path("gate");
    let log = Log::options().allow_out_of_order(true).remote();
    let late = after::remote(gate.clone(), 1);
    let calls = [log.push(0), log.push(&late), log.push(2)];
    assert_eq!(calls[2].get_timeout(AT_ONCE).unwrap(), 2, "the one before it waits");
    assert_eq!(calls[0].get_timeout(AT_ONCE).unwrap(), 0);
    open_gate(&gate);
    assert_eq!(calls[1].get_timeout(AT_ONCE).unwrap(), 1);
    assert_eq!(log.entries().get().unwrap().last(), Some(&1));
    drop((log, calls, late));
    session.await_quiet();
}

/// An actor whose calls leave marks.
struct Marker;

#[actor(max_restarts = -1)]
impl Marker {
    fn new() -> Self {
        Self
    }

    fn pid(&self) -> u32 {
        std::process::id()
    }

    fn mark(&self, path: String) {
        mark(&path);
    }

    fn mark_and_wait(&self, path: String, gate: String) {
        mark(&path);
        await_file(&gate);
    }
}

/// The process of the actor lives when its connection is cut: before a call is sent, and after.
fn f3_a_cut_connection_repeats_no_call(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let (sent, unsent, gate) = (session.path("sent"), session.path("unsent"), session.path("gate"));
    let marker = Marker::remote();
    let pid = marker.pid().get_timeout(AT_ONCE).unwrap();
    let running = marker.mark_and_wait(sent.clone(), gate.clone());
    await_within(SOON, "it runs", || marks(&sent) == 1);
    let behind = marker.mark(unsent.clone());
    processes::cut_connections(pid);
    let error = running.get_timeout(AT_ONCE).unwrap_err();
    let outcome = (error.kind(), error.executed());
    assert_eq!(outcome, (FailureKind::ActorUnavailable, Some(Executed::Unknown)), "{error}");
    behind.get_timeout(AT_ONCE).unwrap();
    open_gate(&gate);
    let second = marker.pid().get_timeout(AT_ONCE).unwrap();
    assert_ne!(second, pid, "the actor was started again");
    processes::cut_connections(second);
    // Whether it was sent before the loss was known or not, it has an outcome, which is true.
    let outcome = marker.mark(unsent.clone()).get_timeout(AT_ONCE);
    let ran = match &outcome {
        Ok(()) => 2..=2,
        Err(error) if error.executed() == Some(Executed::No) => 1..=1,
        Err(error) => {
            assert_eq!(error.kind(), FailureKind::ActorUnavailable, "{error}");
            1..=2
        }
    };
    // A call that was answered before the loss was known may be followed by one that meets it.
    let is_back = || marker.pid().get_timeout(AT_ONCE).is_ok_and(|pid| pid != second);
    await_within(SOON, "the actor is started again", is_back);
    let last = session.path("last");
    marker.mark(last.clone()).get_timeout(AT_ONCE).unwrap();
    assert_eq!((marks(&sent), marks(&last)), (1, 1), "each ran once");
    assert!(ran.contains(&marks(&unsent)), "{outcome:?}, {} marks", marks(&unsent));
    drop((marker, running, behind));
    session.await_quiet();
}

fn f6_a_call_too_many_fails_at_once(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let gate = session.path("gate");
    let log = Log::options().max_pending_calls(5).remote();
    let mut calls = vec![log.push_after(gate.clone(), 0)];
    calls.extend((1..5).map(|entry| log.push(entry)));
    let error = log.push(5).get_timeout(AT_ONCE).unwrap_err();
    assert_eq!(
        (error.kind(), error.executed()),
        (FailureKind::TooManyPendingCalls, Some(Executed::No)),
        "{error}"
    );
    assert!(error.to_string().contains("max_pending_calls is 5"), "{error}");
    let other = push_from_a_task::remote(log.clone(), 6);
    assert_eq!(other.get_timeout(0.2).unwrap_err().kind(), FailureKind::GetTimeout, "another caller");
    open_gate(&gate);
    assert_eq!(get_all(&calls, None).unwrap(), [0, 1, 2, 3, 4]);
    assert_eq!(other.get_timeout(AT_ONCE).unwrap(), 6);
    assert_eq!(log.push(7).get_timeout(AT_ONCE).unwrap(), 7, "there is room again");
    let mut entries = log.entries().get().unwrap();
    // The two callers have an order each, and none together.
    entries.sort_unstable();
    assert_eq!(entries, [0, 1, 2, 3, 4, 6, 7]);
    drop((log, calls, other));
    session.await_quiet();
}

fn f7_the_limits_of_groups_hold(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let gates = [session.path("gate"), session.path("gate_io")];
    let gauge = Gauge::remote();
    let calls: Vec<_> = (0..6).map(|_| gauge.hold(gates[0].clone())).collect();
    let calls_io: Vec<_> = (0..6).map(|_| gauge.hold_io(gates[1].clone())).collect();
    // Nothing answers before one of the six is done: five run.
    assert_eq!(gauge.peak().get_timeout(0.3).unwrap_err().kind(), FailureKind::GetTimeout);
    open_gate(&gates[1]);
    assert_eq!(gauge.peak().get_timeout(AT_ONCE).unwrap(), [2, 3]);
    open_gate(&gates[0]);
    get_all(&calls, None).unwrap();
    get_all(&calls_io, None).unwrap();
    assert_eq!(gauge.peak().get_timeout(AT_ONCE).unwrap(), [2, 3]);
    drop((gauge, calls, calls_io));
    session.await_quiet();
}

fn f7_a_blocked_group_does_not_starve_another(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let gate = session.path("gate");
    let gauge = Gauge::remote();
    let blocked: Vec<_> = (0..MANY).map(|_| gauge.hold_io(gate.clone())).collect();
    for _ in 0..20 {
        assert_eq!(gauge.changes().get_timeout(AT_ONCE).unwrap(), 0);
    }
    assert_eq!(blocked[0].get_timeout(0.0).unwrap_err().kind(), FailureKind::GetTimeout);
    open_gate(&gate);
    get_all(&blocked, None).unwrap();
    drop((gauge, blocked));
    session.await_quiet();
}

fn f7_async_methods_interleave(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let gate = session.path("gate");
    let gauge = Gauge::remote();
    let value = after::remote(gate.clone(), 7);
    // The first waits for what the second does.
    let waits = gauge.await_it(value);
    gauge.open(gate).get_timeout(AT_ONCE).unwrap();
    assert_eq!(waits.get_timeout(AT_ONCE).unwrap(), 7);
    drop((gauge, waits));
    session.await_quiet();
}

fn f7_a_method_that_changes_the_actor_runs_alone(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let gauge = Gauge::remote();
    let mut others = Vec::new();
    let changes: Vec<_> = (0..100)
        .map(|_| {
            others.push(gauge.changes());
            gauge.change()
        })
        .collect();
    for running in get_all(&changes, None).unwrap() {
        assert_eq!(running, [0, 0], "no call runs beside it");
    }
    get_all(&others, None).unwrap();
    assert_eq!(gauge.changes().get().unwrap(), 100);
}

fn f7_calls_are_cancelled_one_by_one(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let gate = session.path("gate");
    let gauge = Gauge::remote();
    let calls: Vec<_> = (0..3).map(|_| gauge.hold(gate.clone())).collect();
    assert_eq!(gauge.peak().get_timeout(AT_ONCE).map(|peak| peak.len()), Ok(2));
    std::thread::sleep(std::time::Duration::from_millis(100));
    cancel(&calls[2], false, false).unwrap();
    let error = calls[2].get_timeout(AT_ONCE).unwrap_err();
    assert_eq!(error.kind(), FailureKind::Cancelled, "{error}");
    open_gate(&gate);
    for call in &calls[..2] {
        call.get_timeout(AT_ONCE).unwrap();
    }
    drop((gauge, calls));
    session.await_quiet();
}

fn f7_the_last_handle_ends_the_actor_after_its_calls(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let gate = session.path("gate");
    let gauge = Gauge::options().num_cpus(1.0).remote();
    let calls: Vec<_> = (0..5).map(|_| gauge.hold(gate.clone())).collect();
    drop(gauge);
    open_gate(&gate);
    get_all(&calls, None).unwrap();
    drop(calls);
    await_within(SOON, "the actor has ended", || {
        let report = session.report();
        report.nodes[0].free == report.nodes[0].total
    });
    session.await_quiet();
}

fn f7_each_call_that_was_sent_may_have_run(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let gate = session.path("gate");
    let gauge = Gauge::remote();
    let mut calls: Vec<_> = (0..4).map(|_| gauge.hold(gate.clone())).collect();
    assert_eq!(gauge.peak().get_timeout(AT_ONCE).map(|peak| peak.len()), Ok(2));
    calls.push(gauge.exits());
    for call in &calls {
        let error = call.get_timeout(AT_ONCE).unwrap_err();
        let outcome = (error.kind(), error.executed());
        assert_eq!(outcome, (FailureKind::ActorDied, Some(Executed::Unknown)), "{error}");
    }
    drop((gauge, calls));
    session.await_quiet();
}
