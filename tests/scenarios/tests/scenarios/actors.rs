//! F: actors, one node.

use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tharsis::prelude::*;
use tharsis::{Executed, actor, kill};
use tharsis_scenarios::restarts::{self, Row};
use tharsis_scenarios::{
    Mode, Scenario, await_file, await_within, mark, marks, open_gate, processes, scenarios,
};

pub const ALL: &[Scenario] = scenarios![
    Both:
        f_an_actor_keeps_its_state_and_its_handle_travels,
        f_a_method_fails_and_the_actor_lives_on,
        f_a_constructor_that_fails_is_the_cause_of_its_calls,
        f_an_actor_calls_another_one,
        f_an_actor_takes_its_resources_while_it_lives,
        f_a_method_is_no_task_of_its_own,
        f1_calls_of_a_caller_run_in_the_order_of_submission,
        f1_a_call_that_waits_does_not_change_the_order,
        f4_the_last_handle_ends_the_actor_after_its_calls,
        f4_a_handle_inside_a_value_keeps_the_actor,
        f_a_cancelled_call_does_not_end_the_actor,
        f_killed_actors_end_at_once;
    Embedded:
        f_more_actors_than_leases_of_a_shape;
    Processes:
        f_a_lost_process_ends_the_actor,
        f2_an_actor_is_started_again,
        f2_the_table_of_restarts;
];

/// Long enough for what happens at once.
const AT_ONCE: f64 = 20.0;

/// An actor that counts; it marks a file when it is dropped.
struct Counter {
    value: i64,
    dropped: Option<String>,
}

#[actor]
impl Counter {
    fn new(value: i64, dropped: Option<String>) -> Self {
        Self { value, dropped }
    }

    fn add(&mut self, n: i64) -> i64 {
        self.value += n;
        self.value
    }

    fn value(&self) -> i64 {
        self.value
    }

    fn add_after(&mut self, n: i64, gate: String) -> i64 {
        await_file(&gate);
        self.add(n)
    }

    fn fail(&mut self) -> Result<i64, NotToday> {
        self.value += 1;
        Err(NotToday(self.value))
    }

    fn panics(&mut self) -> i64 {
        panic!("the counter is at {}", self.value)
    }

    async fn add_slowly(&mut self, n: ObjectRef<i64>) -> Result<i64, Error> {
        let n = n.await?;
        Ok(self.add(n))
    }

    fn exits(&mut self) -> i64 {
        std::process::exit(0)
    }

    fn pid(&self) -> u32 {
        std::process::id()
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        if let Some(path) = &self.dropped {
            mark(path);
        }
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("not today, at {0}")]
struct NotToday(i64);

/// An actor that notes what it was called with.
struct Log {
    entries: Vec<u64>,
}

#[actor]
impl Log {
    fn new() -> Self {
        Self { entries: Vec::new() }
    }

    fn push(&mut self, entry: u64) {
        self.entries.push(entry);
    }

    fn push_with(&mut self, entry: u64, _large: Blob) {
        self.entries.push(entry);
    }

    fn push_when(&mut self, entry: u64, inner: Vec<ObjectRef<u64>>) -> Result<(), Error> {
        // Blocks: the slot is lent meanwhile.
        inner[0].get()?;
        self.entries.push(entry);
        Ok(())
    }

    fn entries(&self) -> Vec<u64> {
        self.entries.clone()
    }
}

/// An actor that cannot be constructed.
struct Broken;

#[actor]
impl Broken {
    fn new(text: String) -> Result<Self, NotToday> {
        if text.is_empty() { Ok(Self) } else { Err(NotToday(7)) }
    }

    fn hello(&self) -> String {
        "hello".to_owned()
    }
}

/// An actor that calls another one.
struct Front {
    counter: CounterHandle,
}

#[actor]
impl Front {
    fn new(counter: CounterHandle) -> Self {
        Self { counter }
    }

    fn add_twice(&mut self, n: i64) -> Result<i64, Error> {
        let _first = self.counter.add(n);
        self.counter.add(n).get()
    }
}

#[remote]
fn add_from_a_task(counter: CounterHandle, n: i64) -> Result<i64, Error> {
    counter.add(n).get()
}

#[remote]
fn after(gate: String, value: u64) -> u64 {
    await_file(&gate);
    value
}

#[remote]
fn slow(value: u64) -> u64 {
    std::thread::sleep(Duration::from_millis(50));
    value
}

fn f_an_actor_keeps_its_state_and_its_handle_travels(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let counter = Counter::remote(10, None);
    assert_eq!(counter.add(1).get_timeout(AT_ONCE).unwrap(), 11);
    assert_eq!(counter.clone().add(2).get().unwrap(), 13);
    assert_eq!(add_from_a_task::remote(counter.clone(), 3).get().unwrap(), 16);
    let kept = put(&vec![counter.clone()]).unwrap();
    assert_eq!(kept.get().unwrap()[0].add(4).get().unwrap(), 20);
    let n = put(&5_i64).unwrap();
    assert_eq!(counter.add(&n).get().unwrap(), 25, "an argument by reference");
    assert_eq!(counter.add_slowly(&n).get().unwrap(), 30);
    let value = counter.value();
    assert_eq!(counter.add(&value).get().unwrap(), 60, "a result is an object like any other");
    let other = Counter::remote(0, None);
    assert_eq!(other.add(1).get().unwrap(), 1, "another actor has another state");
    drop((counter, other, kept, n, value));
    session.await_quiet();
}

fn f_a_method_fails_and_the_actor_lives_on(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let counter = Counter::remote(0, None);
    let error = counter.fail().get().unwrap_err();
    assert_eq!((error.kind(), error.executed()), (FailureKind::UserError, Some(Executed::Yes)));
    assert_eq!(error.downcast::<NotToday>(), Some(NotToday(1)));
    let error = counter.panics().get().unwrap_err();
    assert_eq!((error.kind(), error.executed()), (FailureKind::Panicked, Some(Executed::Yes)));
    assert_eq!(counter.value().get().unwrap(), 1);
}

fn f_a_constructor_that_fails_is_the_cause_of_its_calls(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let broken = Broken::remote("x");
    for _ in 0..2 {
        let error = broken.hello().get_timeout(AT_ONCE).unwrap_err();
        assert_eq!((error.kind(), error.executed()), (FailureKind::ActorDied, Some(Executed::No)));
        assert_eq!(error.downcast::<NotToday>(), Some(NotToday(7)), "{error}");
    }
    assert_eq!(Broken::remote("").hello().get().unwrap(), "hello", "its worker is still used");
    let lost = slow::remote(1);
    cancel(&lost, true, false).unwrap();
    drop((broken, lost));
    session.await_quiet();
}

fn f_an_actor_calls_another_one(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let counter = Counter::remote(0, None);
    let front = Front::remote(counter.clone());
    assert_eq!(front.add_twice(4).get_timeout(AT_ONCE).unwrap(), 8);
    drop(counter);
    assert_eq!(front.add_twice(1).get().unwrap(), 10, "an actor keeps an actor");
    drop(front);
    session.await_quiet();
}

fn f_an_actor_takes_its_resources_while_it_lives(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let counter = Counter::options().num_cpus(1.5).remote(0, None);
    assert_eq!(counter.add(1).get_timeout(AT_ONCE).unwrap(), 1);
    let row = session.report().nodes[0].clone();
    assert_ne!(row.free, row.total);
    let never = Counter::options().num_cpus(1.0).remote(0, None);
    assert_eq!(never.add(1).get_timeout(0.3).unwrap_err().kind(), FailureKind::GetTimeout);
    drop(counter);
    assert_eq!(never.value().get_timeout(AT_ONCE).unwrap(), 1, "it had no room before");
    drop(never);
    session.await_quiet();
}

/// Calls need no resources of their own, so they run while the node is full.
fn f_a_method_is_no_task_of_its_own(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let gate = session.path("gate");
    let counter = Counter::remote(0, None);
    assert_eq!(counter.add(1).get_timeout(AT_ONCE).unwrap(), 1);
    let long = after::remote(gate.clone(), 1);
    assert_eq!(counter.add(1).get_timeout(AT_ONCE).unwrap(), 2);
    open_gate(&gate);
    assert_eq!(long.get().unwrap(), 1);
}

fn f1_calls_of_a_caller_run_in_the_order_of_submission(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let log = Log::remote();
    // The first ones are queued before the actor lives.
    let calls: Vec<_> = (0..2000).map(|entry| log.push(entry)).collect();
    let large = put(&Blob::from(vec![0; 100_000])).unwrap();
    let more: Vec<_> = (2000..2100)
        .map(|entry| match entry % 3 {
            0 => log.push(entry),
            1 => log.push_with(entry, &large),
            _ => log.push_with(entry, Blob::from(vec![1; 50_000])),
        })
        .collect();
    assert_eq!(log.entries().get_timeout(AT_ONCE).unwrap(), (0..2100).collect::<Vec<_>>());
    get_all(&calls, None).unwrap();
    get_all(&more, None).unwrap();
    drop((log, calls, more, large));
    session.await_quiet();
}

fn f1_a_call_that_waits_does_not_change_the_order(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let gate = session.path("gate");
    let log = Log::remote();
    // The second waits for its argument before it is sent, the fourth while it runs.
    let late = after::remote(gate.clone(), 1);
    let calls = [
        log.push(0),
        log.push(&late),
        log.push(2),
        log.push_when(3, vec![slow::remote(3)]),
        log.push(4),
        log.push_when(5, vec![slow::remote(5)]),
        log.push(6),
    ];
    assert_eq!(calls[0].get_timeout(AT_ONCE), Ok(()));
    assert_eq!(calls[2].get_timeout(0.2).unwrap_err().kind(), FailureKind::GetTimeout);
    open_gate(&gate);
    assert_eq!(log.entries().get_timeout(AT_ONCE).unwrap(), (0..7).collect::<Vec<_>>());
    drop((log, calls, late));
    session.await_quiet();
}

fn f4_the_last_handle_ends_the_actor_after_its_calls(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let (gate, dropped) = (session.path("gate"), session.path("dropped"));
    let counter = Counter::remote(0, Some(dropped.clone()));
    let mut calls = vec![counter.add_after(1, gate.clone())];
    calls.extend((0..4).map(|_| counter.add(1)));
    drop(counter);
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(marks(&dropped), 0, "calls wait");
    open_gate(&gate);
    assert_eq!(get_all(&calls, None).unwrap(), [1, 2, 3, 4, 5]);
    await_within(Duration::from_secs(10), "the actor is dropped", || marks(&dropped) == 1);
    drop(calls);
    session.await_quiet();
}

fn f4_a_handle_inside_a_value_keeps_the_actor(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let dropped = session.path("dropped");
    let counter = Counter::remote(0, Some(dropped.clone()));
    let kept = put(&(1, counter)).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let (_, counter) = kept.get().unwrap();
    assert_eq!(counter.add(1).get_timeout(AT_ONCE).unwrap(), 1);
    drop(counter);
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(marks(&dropped), 0, "the value has a handle");
    drop(kept);
    await_within(Duration::from_secs(10), "the actor is dropped", || marks(&dropped) == 1);
    session.await_quiet();
}

fn f_a_cancelled_call_does_not_end_the_actor(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let gate = session.path("gate");
    let counter = Counter::remote(0, None);
    let running = counter.add_after(1, gate.clone());
    let waiting = counter.add(10);
    let last = counter.add(100);
    std::thread::sleep(Duration::from_millis(100));
    cancel(&waiting, false, false).unwrap();
    assert_eq!(waiting.get_timeout(AT_ONCE).unwrap_err().kind(), FailureKind::Cancelled);
    cancel(&running, true, false).unwrap();
    open_gate(&gate);
    assert_eq!(last.get_timeout(AT_ONCE).unwrap(), 101, "force stops no other call");
}

fn f_killed_actors_end_at_once(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let gate = session.path("gate");
    let counter = Counter::options().max_restarts(-1).max_task_retries(-1).remote(0, None);
    let running = counter.add_after(1, gate.clone());
    let waiting = counter.add(1);
    std::thread::sleep(Duration::from_millis(200));
    kill(&counter).unwrap();
    let error = running.get_timeout(AT_ONCE).unwrap_err();
    assert_eq!(
        (error.kind(), error.executed()),
        (FailureKind::ActorDied, Some(Executed::Unknown)),
        "{error}"
    );
    let error = waiting.get_timeout(AT_ONCE).unwrap_err();
    assert_eq!((error.kind(), error.executed()), (FailureKind::ActorDied, Some(Executed::No)), "{error}");
    let error = counter.add(1).get_timeout(AT_ONCE).unwrap_err();
    assert_eq!((error.kind(), error.executed()), (FailureKind::ActorDied, Some(Executed::No)), "{error}");
    kill(&counter).unwrap();
    open_gate(&gate);
    let idle = Counter::remote(5, None);
    assert_eq!(idle.value().get_timeout(AT_ONCE).unwrap(), 5);
    kill(&idle).unwrap();
    await_within(Duration::from_secs(10), "calls fail", || idle.value().get().is_err());
    let unborn = Counter::options().num_cpus(50.0).remote(0, None);
    kill(&unborn).unwrap();
    assert_eq!(unborn.value().get_timeout(AT_ONCE).unwrap_err().kind(), FailureKind::ActorDied);
    drop((counter, running, waiting, idle, unborn));
    session.await_quiet();
}

fn f_more_actors_than_leases_of_a_shape(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let counters: Vec<_> = (0..100).map(|n| Counter::remote(n, None)).collect();
    let values: Vec<_> = counters.iter().map(CounterHandle::value).collect();
    assert_eq!(get_all(&values, None).unwrap(), (0..100).collect::<Vec<_>>());
    drop((counters, values));
    session.await_quiet();
}

fn f_a_lost_process_ends_the_actor(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let counter = Counter::remote(0, None);
    let gate = session.path("gate");
    let before = counter.add_after(1, gate.clone());
    let running = counter.exits();
    let waiting: Vec<_> = (0..3).map(|_| counter.add(1)).collect();
    open_gate(&gate);
    assert_eq!(before.get_timeout(AT_ONCE).unwrap(), 1);
    let error = running.get_timeout(AT_ONCE).unwrap_err();
    assert_eq!(
        (error.kind(), error.executed()),
        (FailureKind::ActorDied, Some(Executed::Unknown)),
        "{error}"
    );
    assert_eq!(error.failure().root().kind, FailureKind::WorkerCrashed);
    for call in waiting.iter().chain(&[counter.add(1)]) {
        let error = call.get_timeout(AT_ONCE).unwrap_err();
        assert_eq!((error.kind(), error.executed()), (FailureKind::ActorDied, Some(Executed::No)), "{error}");
    }
    let idle = Counter::remote(0, None);
    let pid = idle.pid().get().unwrap();
    processes::signal(pid, Signal::KILL);
    await_within(Duration::from_secs(10), "calls fail", || idle.value().get().is_err());
    drop((counter, before, running, waiting, idle));
    session.await_quiet();
}

fn f2_an_actor_is_started_again(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let counter = Counter::options().max_restarts(1).remote(40, None);
    assert_eq!(counter.add(1).get_timeout(AT_ONCE).unwrap(), 41);
    let running = counter.exits();
    let waiting: Vec<_> = (0..3).map(|_| counter.add(1)).collect();
    let error = running.get_timeout(AT_ONCE).unwrap_err();
    let unavailable = (FailureKind::ActorUnavailable, Some(Executed::Unknown));
    assert_eq!((error.kind(), error.executed()), unavailable, "{error}");
    assert_eq!(
        get_all(&waiting, None).unwrap(),
        [41, 42, 43],
        "calls that were not started wait for the restart"
    );
    let pid = counter.pid().get_timeout(AT_ONCE).unwrap();
    processes::signal(pid, Signal::KILL);
    await_within(Duration::from_secs(10), "no restart is left", || counter.value().get().is_err());
    let error = counter.value().get().unwrap_err();
    assert_eq!((error.kind(), error.executed()), (FailureKind::ActorDied, Some(Executed::No)), "{error}");
    drop((counter, running, waiting));
    session.await_quiet();
}

/// An actor that is lost in one of several ways.
struct Mortal;

#[actor]
impl Mortal {
    /// Fails, or exits unless it did so before.
    fn new(fails: bool, exited: Option<String>) -> Result<Self, NotToday> {
        if fails {
            return Err(NotToday(0));
        }
        exited.iter().for_each(|path| exit_once(path));
        Ok(Self)
    }

    fn pid(&self) -> u32 {
        std::process::id()
    }

    fn hello(&self) -> u32 {
        7
    }

    fn hold(&self, started: String, gate: String) -> u32 {
        mark(&started);
        await_file(&gate);
        7
    }

    fn exit_once(&self, exited: String) -> u32 {
        exit_once(&exited);
        7
    }
}

/// Ends the process with success, the first time.
fn exit_once(path: &str) {
    if marks(path) == 0 {
        mark(path);
        std::process::exit(0);
    }
}

fn f2_the_table_of_restarts(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let mut count = 0;
    for (number, row) in
        restarts::rows().iter().enumerate().filter(|(_, row)| row.event != "the node is lost")
    {
        for is_shared in [false, true] {
            let path = |name: &str| session.path(&format!("{name}{number}{is_shared}"));
            let outcomes = lose(row, is_shared, path).map(|result| restarts::outcome(&result));
            assert_eq!(outcomes, row.outcomes, "{row:?}, shared process: {is_shared}");
        }
        count += 1;
    }
    assert!(5 < count, "the table has {count} rows");
    session.await_quiet();
}

/// Loses an actor as a row says; returns what became of a call that ran, one behind it and a later one.
fn lose(row: &Row, is_shared: bool, path: impl Fn(&str) -> String) -> [Result<u32, Error>; 3] {
    let (started, gate, exited) = (path("started"), path("gate"), path("exited"));
    let options = Mortal::options().max_restarts(row.max_restarts).max_task_retries(row.max_task_retries);
    let options = options.shared_process(is_shared);
    let actor = match row.event.as_str() {
        "the constructor fails" => options.remote(true, None),
        "the process exits in the constructor" => options.remote(false, Some(exited.clone())),
        _ => options.remote(false, None),
    };
    let held = || {
        let pid = actor.pid().get_timeout(AT_ONCE).unwrap();
        let running = actor.hold(started.clone(), gate.clone());
        await_within(Duration::from_secs(10), "the call runs", || marks(&started) == 1);
        (pid, running, actor.hello())
    };
    let (running, behind) = match row.event.as_str() {
        "the process is killed" => {
            let (pid, running, behind) = held();
            processes::signal(pid, Signal::KILL);
            await_within(Duration::from_secs(10), "the process ends", || !processes::runs(pid));
            open_gate(&gate);
            (running, behind)
        }
        "`kill`" => {
            let (_, running, behind) = held();
            kill(&actor).unwrap();
            (running, behind)
        }
        "the process exits" => (actor.exit_once(exited), actor.hello()),
        "the constructor fails" | "the process exits in the constructor" => (actor.hello(), actor.hello()),
        other => panic!("the table has a row of an unknown event: {other}"),
    };
    let outcomes = [running.get_timeout(AT_ONCE), behind.get_timeout(AT_ONCE)];
    let [running, behind] = outcomes;
    [running, behind, actor.hello().get_timeout(AT_ONCE)]
}
