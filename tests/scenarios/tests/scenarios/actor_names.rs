//! F5: actors with names, one node.

use tharsis::prelude::*;
use tharsis::{Namespaces, list_named_actors};
use tharsis_scenarios::{Mode, SOON, Scenario, await_file, await_within, mark, marks, open_gate, scenarios};

pub const ALL: &[Scenario] = scenarios![
    Both:
        f5_a_name_finds_its_actor,
        f5_the_name_of_an_actor_that_has_ended_is_free,
        f5_a_constructor_whose_name_is_taken_does_not_run,
        f5_a_detached_actor_needs_no_handle,
        f5_names_of_living_actors_are_listed;
    Processes:
        f5_twenty_at_once_get_one;
];

/// Long enough for what happens at once.
const AT_ONCE: f64 = 20.0;
/// Callers that create the same actor.
const RACERS: usize = 20;

/// Counts, and marks a file when it is constructed.
struct Counter(i64);

#[actor]
impl Counter {
    fn new(made: String) -> Self {
        mark(&made);
        Self(0)
    }

    fn add(&mut self, n: i64) -> i64 {
        self.0 += n;
        self.0
    }
}

struct Other;

#[actor]
impl Other {
    fn new() -> Self {
        Self
    }

    fn hello(&self) -> String {
        "hello".to_owned()
    }
}

#[remote]
fn race(ready: String, gate: String, made: String) -> Result<CounterHandle, Error> {
    mark(&ready);
    await_file(&gate);
    Counter::options().get_or_create("shared", made)
}

#[remote]
fn detach(made: String) -> Result<(), Error> {
    Counter::options().detached(true).create("of a task", made).map(|_| ())
}

fn find() -> Result<CounterHandle, Error> {
    Counter::options().find("counter")
}

fn listed(namespaces: Namespaces) -> Vec<String> {
    let names = list_named_actors(namespaces).unwrap();
    names.into_iter().map(|actor| format!("{}/{}", actor.namespace, actor.name)).collect()
}

fn f5_names_of_living_actors_are_listed(mode: Mode) {
    let session = mode.start_with(2, |init| init.namespace("team"));
    let _entered = session.enter();
    assert_eq!(listed(Namespaces::All), [] as [String; 0]);
    let made = session.path("made");
    let actors = ["b", "a"].map(|name| Counter::options().create(name, made.clone()).unwrap());
    // The job of an embedded node is the only one there: it needs no namespace.
    let of_team = |name: &str| format!("{}/{name}", if mode == Mode::Embedded { "" } else { "team" });
    assert_eq!(listed(Namespaces::Own), [of_team("a"), of_team("b")]);
    assert_eq!(listed(Namespaces::All), listed(Namespaces::Own));
    let shown: Vec<_> = session.runtime().actors().unwrap().into_iter().map(|actor| actor.name).collect();
    assert!(shown.contains(&"a".to_owned()) && shown.contains(&"b".to_owned()), "{shown:?}");
    let [b, a] = actors;
    kill(&a).unwrap();
    await_within(SOON, "a is gone", || listed(Namespaces::All) == [of_team("b")]);
    drop((a, b));
    session.await_quiet();
}

fn f5_a_name_finds_its_actor(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let made = session.path("made");
    assert_eq!(find().unwrap_err().kind(), FailureKind::ActorNotFound);
    let counter = Counter::options().create("counter", made.clone()).unwrap();
    assert_eq!(counter.add(1).get_timeout(AT_ONCE).unwrap(), 1);
    assert_eq!(find().unwrap().add(2).get_timeout(AT_ONCE).unwrap(), 3);
    let got = Counter::options().get_or_create("counter", made.clone()).unwrap();
    assert_eq!(got.add(3).get_timeout(AT_ONCE).unwrap(), 6);
    assert_eq!(marks(&made), 1);
    let error = Counter::options().find("cuonter").unwrap_err();
    assert_eq!(error.kind(), FailureKind::ActorNotFound);
    assert!(error.to_string().contains("there is counter"), "{error}");
    let error = Other::options().find("counter").unwrap_err();
    assert_eq!(error.kind(), FailureKind::InvalidArgument);
    assert!(error.to_string().contains("Counter::new"), "{error}");
    for bad in [String::new(), "x".repeat(300)] {
        assert_eq!(Other::options().find(&bad).unwrap_err().kind(), FailureKind::InvalidArgument);
    }
    let other = Other::options().create("other").unwrap();
    assert_eq!(other.hello().get_timeout(AT_ONCE).unwrap(), "hello");
    drop((counter, got, other));
    session.await_quiet();
}

fn f5_the_name_of_an_actor_that_has_ended_is_free(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let made = session.path("made");
    let counter = Counter::options().create("counter", made.clone()).unwrap();
    assert_eq!(counter.add(1).get_timeout(AT_ONCE).unwrap(), 1);
    kill(&counter).unwrap();
    await_within(SOON, "it has ended", || {
        find().is_err_and(|error| error.kind() == FailureKind::ActorNotFound)
    });
    let second = Counter::options().create("counter", made.clone()).unwrap();
    assert_eq!(second.add(5).get_timeout(AT_ONCE).unwrap(), 5, "another actor");
    drop((counter, second));
    await_within(SOON, "nobody has a handle", || find().is_err());
    let third = Counter::options().get_or_create("counter", made.clone()).unwrap();
    assert_eq!(third.add(7).get_timeout(AT_ONCE).unwrap(), 7);
    assert_eq!(marks(&made), 3);
    drop(third);
    session.await_quiet();
}

fn f5_a_constructor_whose_name_is_taken_does_not_run(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let (made, again) = (session.path("made"), session.path("again"));
    let counter = Counter::options().create("counter", made).unwrap();
    assert_eq!(counter.add(1).get_timeout(AT_ONCE).unwrap(), 1);
    for _ in 0..3 {
        let error = Counter::options().create("counter", again.clone()).unwrap_err();
        assert_eq!(error.kind(), FailureKind::NameTaken, "{error}");
    }
    assert_eq!(counter.add(1).get_timeout(AT_ONCE).unwrap(), 2);
    drop(counter);
    session.await_quiet();
    assert_eq!(marks(&again), 0);
}

fn f5_a_detached_actor_needs_no_handle(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let made = session.path("made");
    let counter = Counter::options().detached(true).num_cpus(1.0).create("counter", made.clone()).unwrap();
    assert_eq!(counter.add(1).get_timeout(AT_ONCE).unwrap(), 1);
    drop(counter);
    std::thread::sleep(std::time::Duration::from_millis(200));
    let found = find().unwrap();
    assert_eq!(found.add(1).get_timeout(AT_ONCE).unwrap(), 2);
    let error = detach::remote(made).get_timeout(AT_ONCE).unwrap_err();
    assert!(error.to_string().contains("created by a driver"), "{error}");
    kill(&found).unwrap();
    drop(found);
    session.await_quiet();
    assert_eq!(find().unwrap_err().kind(), FailureKind::ActorNotFound);
}

fn f5_twenty_at_once_get_one(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let (ready, gate, made) = (session.path("ready"), session.path("gate"), session.path("made"));
    let racers: Vec<_> = (0..RACERS)
        .map(|_| race::options().num_cpus(0.05).remote(ready.clone(), gate.clone(), made.clone()))
        .collect();
    await_within(6 * SOON, "all run", || marks(&ready) == RACERS);
    open_gate(&gate);
    let handles = get_all(&racers, None).unwrap();
    let counts: Vec<_> = handles.iter().map(|handle| handle.add(1)).collect();
    assert_eq!(get_all(&counts, None).unwrap(), (1..=RACERS as i64).collect::<Vec<_>>());
    assert_eq!(marks(&made), 1, "one constructor runs");
    drop((racers, handles, counts));
    session.await_quiet();
}
