//! F: calls that are repeated for their errors, actors that are started again on demand, and their pauses.

use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use tharsis::prelude::*;
use tharsis::{ActorState, Executed, actor, restart};
use tharsis_scenarios::{Mode, SOON, Scenario, await_file, await_within, mark, marks, scenarios};

pub const ALL: &[Scenario] = scenarios![
    Both:
        f_a_listed_error_of_a_method_is_repeated,
        f_any_error_of_a_method_is_repeated,
        f_a_constructor_is_not_repeated_for_its_error,
        f_a_named_actor_keeps_its_errors_to_repeat,
        f_retries_wait_longer_each_time;
    Processes:
        f_an_actor_is_started_again_on_demand,
        f_an_actor_without_restarts_ends_on_demand;
];

/// Long enough for what happens at once.
const AT_ONCE: f64 = 20.0;

#[derive(Debug, Serialize, Deserialize, thiserror::Error)]
#[error("flaky")]
struct Flaky;

#[derive(Debug, Serialize, Deserialize, thiserror::Error)]
#[error("wrong")]
struct Wrong;

/// An actor whose methods fail some times before they succeed.
struct Service {
    calls: u64,
}

#[actor]
impl Service {
    fn new() -> Self {
        Self { calls: 0 }
    }

    fn flaky(&mut self, failures: u64) -> Result<u64, Flaky> {
        self.calls += 1;
        if self.calls <= failures { Err(Flaky) } else { Ok(self.calls) }
    }

    fn wrong(&mut self) -> Result<u64, Wrong> {
        self.calls += 1;
        Err(Wrong)
    }

    fn calls(&self) -> u64 {
        self.calls
    }

    fn hold(&mut self, began: String, gate: String) -> u64 {
        self.calls += 1;
        mark(&began);
        await_file(&gate);
        self.calls
    }
}

/// An actor whose constructor fails with an error that its methods would be repeated for.
struct Unmade;

#[actor(max_restarts = -1, max_task_retries = -1, retry_on(Flaky))]
impl Unmade {
    fn new(made: String) -> Result<Self, Flaky> {
        mark(&made);
        if made.is_empty() { Ok(Self) } else { Err(Flaky) }
    }

    fn hello(&self) -> u64 {
        1
    }
}

#[remote(retry_on = true, max_retries = 4)]
fn fails(ran: String) -> Result<u64, Flaky> {
    mark(&ran);
    Err(Flaky)
}

fn f_a_listed_error_of_a_method_is_repeated(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let service = Service::options().max_task_retries(2).retry_on::<Flaky>().remote();
    assert_eq!(service.flaky(2).get_timeout(AT_ONCE).unwrap(), 3, "it runs three times");
    let error = service.flaky(u64::MAX).get_timeout(AT_ONCE).unwrap_err();
    assert!(error.downcast::<Flaky>().is_some(), "{error}");
    assert_eq!((error.executed(), service.calls().get().unwrap()), (Some(Executed::Yes), 6));
    let error = service.wrong().get_timeout(AT_ONCE).unwrap_err();
    assert!(error.downcast::<Wrong>().is_some(), "{error}");
    assert_eq!(service.calls().get().unwrap(), 7, "another error is a result");
    let plain = Service::options().max_task_retries(2).remote();
    plain.flaky(1).get_timeout(AT_ONCE).unwrap_err();
    assert_eq!(plain.calls().get().unwrap(), 1, "no error is listed");
    drop((service, plain));
    session.await_quiet();
}

fn f_any_error_of_a_method_is_repeated(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let service = Service::options().max_task_retries(1).retry_on_any().remote();
    service.wrong().get_timeout(AT_ONCE).unwrap_err();
    assert_eq!(service.calls().get().unwrap(), 2);
    // A handle keeps it where it goes.
    let travelled = put(&service).unwrap().get().unwrap();
    travelled.wrong().get_timeout(AT_ONCE).unwrap_err();
    assert_eq!(service.calls().get().unwrap(), 4);
    drop((service, travelled));
    session.await_quiet();
}

fn f_a_constructor_is_not_repeated_for_its_error(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let made = session.path("made");
    let unmade = Unmade::remote(made.clone());
    let error = unmade.hello().get_timeout(AT_ONCE).unwrap_err();
    assert_eq!((error.kind(), marks(&made)), (FailureKind::ActorDied, 1), "{error}");
    drop(unmade);
    session.await_quiet();
}

fn f_a_named_actor_keeps_its_errors_to_repeat(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let options = || Service::options().max_task_retries(3).retry_on::<Flaky>();
    let service = options().create("service").unwrap();
    let found = Service::options().find("service").unwrap();
    assert_eq!(found.flaky(3).get_timeout(AT_ONCE).unwrap(), 4);
    drop((service, found));
    session.await_quiet();
}

fn f_retries_wait_longer_each_time(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let ran = session.path("ran");
    let started = Instant::now();
    let task = fails::remote(ran.clone());
    task.get_timeout(AT_ONCE).unwrap_err();
    // The first retry comes at once; then there are pauses of at least 25, 50 and 100 ms.
    assert!(Duration::from_millis(175) <= started.elapsed(), "{:?}", started.elapsed());
    assert_eq!(marks(&ran), 5);
    drop(task);
    session.await_quiet();
}

fn f_an_actor_is_started_again_on_demand(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let (began, gate) = (session.path("began"), session.path("gate"));
    let service = Service::options().max_restarts(1).name("service").remote();
    assert_eq!(service.flaky(0).get_timeout(AT_ONCE).unwrap(), 1);
    let running = service.hold(began.clone(), gate);
    await_within(SOON, "it runs", || marks(&began) == 1);
    let behind = service.flaky(0);
    restart(&service).unwrap();
    let error = running.get_timeout(AT_ONCE).unwrap_err();
    let expected = (FailureKind::ActorUnavailable, Some(Executed::Unknown));
    assert_eq!((error.kind(), error.executed()), expected, "{error}");
    assert_eq!(behind.get_timeout(AT_ONCE).unwrap(), 1, "of an actor that was made anew");
    let actors = session.runtime().actors().unwrap();
    let [actor] = &actors[..] else { panic!("{actors:?}") };
    assert_eq!((actor.name.as_str(), actor.state, actor.restarts), ("service", ActorState::Alive, 1));
    assert_eq!((actor.node, actor.is_detached), (Some(session.runtime().node()), false));
    drop((service, running, behind));
    session.await_quiet();
    assert_eq!(session.runtime().actors().unwrap(), []);
}

fn f_an_actor_without_restarts_ends_on_demand(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let service = Service::remote();
    assert_eq!(service.flaky(0).get_timeout(AT_ONCE).unwrap(), 1);
    restart(&service).unwrap();
    await_within(SOON, "it ends", || service.calls().get().is_err());
    assert_eq!(service.calls().get().unwrap_err().kind(), FailureKind::ActorDied);
    restart(&service).unwrap();
    drop(service);
    session.await_quiet();
}
