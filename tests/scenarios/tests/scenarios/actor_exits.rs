//! F: actors that end after their calls, one node.

use std::time::Duration;
use tharsis::prelude::*;
use tharsis::{Executed, actor, context, exit};
use tharsis_scenarios::{Mode, SOON, Scenario, await_file, await_within, mark, marks, open_gate, scenarios};

pub const ALL: &[Scenario] = scenarios![
    Both:
        f_exit_ends_an_actor_after_the_calls_before_it,
        f_exit_is_in_line_with_calls_that_wait,
        f_an_actor_ends_itself_after_the_calls_that_have_reached_it,
        f_an_actor_with_several_calls_at_the_same_time_ends_after_them,
        f_the_name_of_an_actor_that_has_ended_itself_is_free,
        f_only_a_method_ends_its_actor;
];

/// Long enough for what happens at once.
const AT_ONCE: f64 = 20.0;

/// An actor that counts; it marks a file when it is dropped.
struct Tally {
    value: u64,
    dropped: String,
}

#[actor]
impl Tally {
    fn new(dropped: String) -> Self {
        Self { value: 0, dropped }
    }

    fn add(&mut self, n: u64) -> u64 {
        self.value += n;
        self.value
    }

    /// Ends the actor once the gate is open.
    fn finish(&mut self, gate: String) -> Result<u64, Error> {
        await_file(&gate);
        context()?.exit_actor()?;
        Ok(self.value)
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        mark(&self.dropped);
    }
}

/// An actor that runs several calls at the same time.
struct Desk;

#[actor(max_concurrency = 4)]
impl Desk {
    fn new() -> Self {
        Self
    }

    fn hold(&self, started: String, gate: String) -> u64 {
        mark(&started);
        await_file(&gate);
        7
    }
}

#[remote]
fn later(gate: String) -> u64 {
    await_file(&gate);
    10
}

#[remote]
fn exit_here() -> bool {
    context().and_then(|context| context.exit_actor()).is_err()
}

#[track_caller]
fn assert_ended(call: &ObjectRef<u64>) {
    let error = call.get_timeout(AT_ONCE).unwrap_err();
    assert_eq!((error.kind(), error.executed()), (FailureKind::ActorDied, Some(Executed::No)), "{error}");
}

fn f_exit_ends_an_actor_after_the_calls_before_it(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let dropped = session.path("dropped");
    for is_shared in [false, true] {
        let options = Tally::options().max_restarts(-1).max_task_retries(-1);
        let tally = options.shared_process(is_shared).remote(dropped.clone());
        let before: Vec<_> = (0..500).map(|_| tally.add(1)).collect();
        let ended = exit(&tally);
        let behind: Vec<_> = (0..10).map(|_| tally.add(1)).collect();
        assert_eq!(ended.get_timeout(AT_ONCE), Ok(()));
        assert_eq!(get_all(&before, None).unwrap(), (1..=500).collect::<Vec<_>>());
        behind.iter().for_each(assert_ended);
        assert_ended(&tally.add(1));
        let again = exit(&tally).get_timeout(AT_ONCE).unwrap_err();
        assert_eq!(again.kind(), FailureKind::ActorDied, "{again}");
        // The handle is still there.
        await_within(SOON, "it is dropped", || marks(&dropped) == 1 + usize::from(is_shared));
        session.await_report("nothing is left of it", |report| report.task_count == 0);
    }
    session.await_quiet();
}

fn f_exit_is_in_line_with_calls_that_wait(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let (dropped, gate) = (session.path("dropped"), session.path("gate"));
    let tally = Tally::remote(dropped);
    let n = later::remote(gate.clone());
    let (waiting, ended) = (tally.add(&n), exit(&tally));
    assert_eq!(ended.get_timeout(0.2).unwrap_err().kind(), FailureKind::GetTimeout);
    open_gate(&gate);
    assert_eq!(waiting.get_timeout(AT_ONCE), Ok(10));
    assert_eq!(ended.get_timeout(AT_ONCE), Ok(()));
    drop((tally, waiting, ended, n));
    session.await_quiet();
}

fn f_an_actor_ends_itself_after_the_calls_that_have_reached_it(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let (dropped, gate) = (session.path("dropped"), session.path("gate"));
    let tally = Tally::options().max_restarts(-1).remote(dropped.clone());
    assert_eq!(tally.add(1).get_timeout(AT_ONCE), Ok(1));
    let finish = tally.finish(gate.clone());
    let queued: Vec<_> = (0..5).map(|_| tally.add(1)).collect();
    // They reach the actor meanwhile.
    std::thread::sleep(Duration::from_millis(300));
    open_gate(&gate);
    assert_eq!(finish.get_timeout(AT_ONCE), Ok(1));
    let late = tally.add(1);
    assert_eq!(get_all(&queued, None).unwrap(), [2, 3, 4, 5, 6]);
    assert_ended(&late);
    await_within(SOON, "it is dropped", || marks(&dropped) == 1);
    drop((tally, finish, queued, late));
    session.await_quiet();
}

fn f_an_actor_with_several_calls_at_the_same_time_ends_after_them(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let (started, gate) = (session.path("started"), session.path("gate"));
    let desk = Desk::remote();
    let held: Vec<_> = (0..3).map(|_| desk.hold(started.clone(), gate.clone())).collect();
    await_within(SOON, "all of them run", || marks(&started) == 3);
    assert_eq!(exit(&desk).get_timeout(AT_ONCE), Ok(()));
    let late = desk.hold(started.clone(), gate.clone());
    std::thread::sleep(Duration::from_millis(100));
    open_gate(&gate);
    assert_eq!(get_all(&held, None).unwrap(), [7, 7, 7]);
    assert_ended(&late);
    drop((desk, held, late));
    session.await_quiet();
}

fn f_the_name_of_an_actor_that_has_ended_itself_is_free(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let (dropped, gate) = (session.path("dropped"), session.path("gate"));
    open_gate(&gate);
    let tally = Tally::options().detached(true).create("tally", dropped.clone()).unwrap();
    assert_eq!(tally.finish(gate).get_timeout(AT_ONCE), Ok(0));
    await_within(SOON, "the name is free", || Tally::options().find("tally").is_err());
    let next = Tally::options().create("tally", dropped).unwrap();
    assert_eq!(next.add(1).get_timeout(AT_ONCE), Ok(1));
    drop((tally, next));
    session.await_quiet();
}

fn f_only_a_method_ends_its_actor(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    assert!(exit_here::remote().get_timeout(AT_ONCE).unwrap());
    assert_eq!(context().unwrap().exit_actor().unwrap_err().kind(), FailureKind::InvalidArgument);
}
