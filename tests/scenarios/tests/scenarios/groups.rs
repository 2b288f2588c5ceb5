//! E: placement groups, as far as one node shows them.

use std::time::Duration;
use tharsis::prelude::*;
use tharsis::{Bundle, PlacementGroup, Strategy, placement_group};
use tharsis_scenarios::{
    Mode, SOON, Scenario, Session, await_file, await_within, mark, marks, open_gate, scenarios,
};

pub const ALL: &[Scenario] = scenarios![
    Both:
        e_tasks_inside_a_group_take_what_it_has_and_no_more,
        e_a_group_waits_for_room_and_holds_it_against_others,
        e_a_group_that_never_fits_says_why_and_fails,
        e_the_last_handle_removes_the_group,
        e_a_handle_travels_and_is_used_where_it_comes,
        e_wrong_groups_are_refused,
        e_many_groups_one_after_the_other_leave_nothing_behind,
        e10_a_group_that_is_removed_fails_what_is_inside,
        e10_actors_end_with_their_group,
        e_a_name_finds_its_group,
        e_the_name_of_a_group_that_has_ended_is_free,
        e_a_detached_group_needs_no_handle;
    Processes:
        e_twenty_at_once_get_one_group;
];

/// Callers that make the same group.
const RACERS: usize = 20;
/// Long enough for what happens at once.
const AT_ONCE: f64 = 20.0;

#[remote]
fn answer() -> u32 {
    42
}

/// Marks a file, and waits for a gate.
#[remote(max_retries = 0)]
fn hold(marked: String, gate: String) -> u32 {
    mark(&marked);
    await_file(&gate);
    7
}

/// Calls a function inside a group, from a task inside.
#[remote]
fn call_inside(group: PlacementGroup) -> Result<u32, Error> {
    answer::options().placement_group(&group).remote().get()
}

#[remote]
fn race(ready: String, gate: String) -> Result<PlacementGroup, Error> {
    mark(&ready);
    await_file(&gate);
    placement_group([cpus(0.5)]).get_or_create("shared")
}

#[remote]
fn detach() -> Result<(), Error> {
    placement_group([cpus(0.5)]).detached(true).create().map(drop)
}

fn cpus(count: f64) -> Bundle {
    Bundle::new().num_cpus(count)
}

/// The resources that are not in use, and all.
fn free(session: &Session) -> (String, String) {
    let report = session.report();
    (report.nodes[0].free.clone(), report.nodes[0].total.clone())
}

fn await_all_free(session: &Session) {
    session.await_report("everything is free", |report| report.nodes[0].free == report.nodes[0].total);
}

fn e_tasks_inside_a_group_take_what_it_has_and_no_more(mode: Mode) {
    let session = mode.start(4);
    let _entered = session.enter();
    let group = placement_group([cpus(1.0), cpus(2.0)]).strategy(Strategy::StrictPack).create().unwrap();
    let here = session.runtime().node();
    assert_eq!(group.ready().get_timeout(AT_ONCE).unwrap().0, [Some(here), Some(here)]);
    assert_eq!(group.nodes().unwrap(), [Some(here), Some(here)]);
    session.await_report("the group has its CPUs", |report| report.nodes[0].free.starts_with("1 CPU"));
    let (marked, gate) = (session.path("marked"), session.path("gate"));
    let inside = |_| hold::options().bundle(&group, 1).remote(marked.clone(), gate.clone());
    let held: Vec<_> = (0..4).map(inside).collect();
    await_within(SOON, "two run", || marks(&marked) == 2);
    // The other bundle and the rest of the node are not theirs, and are free for others.
    assert_eq!(answer::options().bundle(&group, 0).remote().get_timeout(AT_ONCE).unwrap(), 42);
    assert_eq!(answer::remote().get_timeout(AT_ONCE).unwrap(), 42);
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(marks(&marked), 2, "more run than the bundle has CPUs");
    open_gate(&gate);
    assert_eq!(get_all(&held, Some(AT_ONCE.into())).unwrap(), [7; 4]);
    drop((held, group));
    await_all_free(&session);
    session.await_quiet();
}

fn e_a_group_waits_for_room_and_holds_it_against_others(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let (marked, gate) = (session.path("marked"), session.path("gate"));
    let first = hold::options().num_cpus(2.0).remote(marked.clone(), gate.clone());
    await_within(SOON, "it runs", || marks(&marked) == 1);
    let group = placement_group([cpus(1.0), cpus(1.0)]).name("late").create().unwrap();
    assert_eq!(group.ready().get_timeout(0.3).unwrap_err().kind(), FailureKind::GetTimeout);
    let report = session.await_report("it is listed", |r| r.pending.iter().any(|row| row.name == "late"));
    assert!(report.pending.iter().any(|row| row.reason.contains("in use")), "{:?}", report.pending);
    let inside = answer::options().placement_group(&group).remote();
    open_gate(&gate);
    assert_eq!(first.get_timeout(AT_ONCE).unwrap(), 7);
    group.ready().get_timeout(AT_ONCE).unwrap();
    assert_eq!(inside.get_timeout(AT_ONCE).unwrap(), 42);
    let outside = answer::remote();
    assert_eq!(outside.get_timeout(0.3).unwrap_err().kind(), FailureKind::GetTimeout);
    group.remove().unwrap();
    assert_eq!(outside.get_timeout(AT_ONCE).unwrap(), 42);
}

fn e_a_group_that_never_fits_says_why_and_fails(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let patience = Duration::from_millis(1_000);
    let group = placement_group([cpus(1.0), cpus(64.0)]).infeasible_after(patience).create().unwrap();
    let inside = answer::options().bundle(&group, 0).remote();
    let report = session.await_report("it is listed at once", |r| !r.pending.is_empty());
    assert!(report.pending[0].reason.contains("64 CPU"), "{:?}", report.pending);
    let error = group.ready().get_timeout(AT_ONCE).unwrap_err();
    assert_eq!(error.kind(), FailureKind::Infeasible, "{error}");
    assert!(error.to_string().contains("64 CPU"), "{error}");
    let error = inside.get_timeout(AT_ONCE).unwrap_err();
    assert_eq!(error.kind(), FailureKind::Infeasible, "{error}");
    let late = answer::options().bundle(&group, 0).remote().get_timeout(AT_ONCE).unwrap_err();
    assert_eq!(late.kind(), FailureKind::Infeasible, "{late}");
    let (free, all) = free(&session);
    assert_eq!(free, all, "nothing stays reserved");
}

fn e_the_last_handle_removes_the_group(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let group = placement_group([cpus(2.0)]).create().unwrap();
    group.ready().get_timeout(AT_ONCE).unwrap();
    let clone = group.clone();
    drop(group);
    let inside = answer::options().placement_group(&clone).remote();
    drop(clone);
    // The task inside keeps it.
    assert_eq!(inside.get_timeout(AT_ONCE).unwrap(), 42);
    await_all_free(&session);
    // A handle that goes before the group is placed leaves nothing behind either.
    drop(placement_group([cpus(1.0)]).create().unwrap());
    await_all_free(&session);
    drop(inside);
    session.await_quiet();
}

fn e_a_handle_travels_and_is_used_where_it_comes(mode: Mode) {
    let session = mode.start(3);
    let _entered = session.enter();
    let group = placement_group([cpus(1.0)]).create().unwrap();
    // From outside, and from a task that holds the only bundle and lends it.
    assert_eq!(call_inside::remote(group.clone()).get_timeout(AT_ONCE).unwrap(), 42);
    let inside = call_inside::options().placement_group(&group).remote(group.clone());
    assert_eq!(inside.get_timeout(AT_ONCE).unwrap(), 42);
}

fn e_wrong_groups_are_refused(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    for bad in [vec![], vec![Bundle::new()], vec![cpus(-1.0)], vec![cpus(1.0); 300]] {
        let error = placement_group(bad).create().unwrap_err();
        assert_eq!(error.kind(), FailureKind::InvalidArgument, "{error}");
    }
    let group = placement_group([cpus(0.5)]).create().unwrap();
    let too_large = answer::options().bundle(&group, 0).remote().get_timeout(AT_ONCE).unwrap_err();
    assert_eq!(too_large.kind(), FailureKind::Infeasible, "{too_large}");
    let none = answer::options().num_cpus(0.5).bundle(&group, 1).remote().get_timeout(AT_ONCE).unwrap_err();
    assert_eq!(none.kind(), FailureKind::InvalidArgument, "{none}");
    let fits = answer::options().num_cpus(0.5).bundle(&group, 0).remote();
    assert_eq!(fits.get_timeout(AT_ONCE).unwrap(), 42);
}

fn e_many_groups_one_after_the_other_leave_nothing_behind(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    for round in 0..1_000 {
        let group = placement_group([cpus(1.0), cpus(1.0)]).create().unwrap();
        group.ready().get_timeout(AT_ONCE).unwrap();
        // Removed, or only let go.
        if round % 2 == 0 {
            group.remove().unwrap();
        }
    }
    await_all_free(&session);
    session.await_quiet();
}

fn e10_a_group_that_is_removed_fails_what_is_inside(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let (marked, gate) = (session.path("marked"), session.path("gate"));
    let group = placement_group([cpus(1.0)]).create().unwrap();
    let inside = |_| hold::options().placement_group(&group).remote(marked.clone(), gate.clone());
    let tasks: Vec<_> = (0..3).map(inside).collect();
    await_within(SOON, "one runs", || marks(&marked) == 1);
    group.remove().unwrap();
    for task in &tasks {
        let error = task.get_timeout(AT_ONCE).unwrap_err();
        assert_eq!(error.kind(), FailureKind::GroupRemoved, "{error}");
    }
    let late = answer::options().placement_group(&group).remote().get_timeout(AT_ONCE).unwrap_err();
    assert_eq!(late.kind(), FailureKind::GroupRemoved, "{late}");
    assert_eq!(group.nodes().unwrap_err().kind(), FailureKind::GroupRemoved);
    group.remove().unwrap();
    // A thread cannot be killed: its resources are free when it has ended.
    open_gate(&gate);
    await_all_free(&session);
    assert_eq!(marks(&marked), 1, "nothing more was started");
}

/// Counts, and lives in a group.
struct Counter(i64);

#[actor]
impl Counter {
    fn new() -> Self {
        Self(0)
    }

    fn add(&mut self) -> i64 {
        self.0 += 1;
        self.0
    }

    fn hold(&mut self, marked: String, gate: String) -> i64 {
        mark(&marked);
        await_file(&gate);
        self.0
    }
}

fn e10_actors_end_with_their_group(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let (marked, gate) = (session.path("marked"), session.path("gate"));
    let group = placement_group([cpus(1.0), cpus(1.0)]).create().unwrap();
    let counter = |index| Counter::options().num_cpus(1.0).max_restarts(5).bundle(&group, index).remote();
    let (idle, busy) = (counter(0), counter(1));
    assert_eq!(idle.add().get_timeout(AT_ONCE).unwrap(), 1);
    let held = busy.hold(marked.clone(), gate.clone());
    await_within(SOON, "it runs", || marks(&marked) == 1);
    group.remove().unwrap();
    for (what, error) in [("runs", held.get_timeout(AT_ONCE)), ("is late", idle.add().get_timeout(AT_ONCE))] {
        let error = error.unwrap_err();
        let root = error.failure().root().kind;
        assert_eq!(root, FailureKind::GroupRemoved, "the call that {what}: {error}");
    }
    open_gate(&gate);
    await_all_free(&session);
}

fn e_a_name_finds_its_group(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let not_found = |name: &str| {
        let error = PlacementGroup::find(name).unwrap_err();
        assert_eq!(error.kind(), FailureKind::GroupNotFound, "{error}");
        error.to_string()
    };
    not_found("gang");
    let gang = placement_group([cpus(1.0)]).create_named("gang").unwrap();
    gang.ready().get_timeout(AT_ONCE).unwrap();
    let found = PlacementGroup::find("gang").unwrap();
    assert_eq!((&found, found.bundles()), (&gang, gang.bundles()));
    assert_eq!(answer::options().bundle(&found, 0).remote().get_timeout(AT_ONCE).unwrap(), 42);
    assert_eq!(placement_group([cpus(1.0)]).get_or_create("gang").unwrap(), gang);
    let error = placement_group([cpus(1.0)]).create_named("gang").unwrap_err();
    assert_eq!(error.kind(), FailureKind::NameTaken, "{error}");
    let error = placement_group([cpus(0.5)]).get_or_create("gang").unwrap_err();
    assert_eq!(error.kind(), FailureKind::InvalidArgument, "{error}");
    assert!(not_found("gagn").contains("there is gang"));
    for bad in [String::new(), "x".repeat(300)] {
        let error = placement_group([cpus(1.0)]).create_named(&bad).unwrap_err();
        assert_eq!(error.kind(), FailureKind::InvalidArgument, "{error}");
    }
    // Names of actors are others.
    let counter = Counter::options().create("gang").unwrap();
    assert_eq!(counter.add().get_timeout(AT_ONCE).unwrap(), 1);
    drop((counter, gang, found));
    await_all_free(&session);
    session.await_quiet();
}

fn e_the_name_of_a_group_that_has_ended_is_free(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let make = || placement_group([cpus(1.0)]).create_named("gang");
    let is_free = || {
        await_within(SOON, "it has ended", || {
            PlacementGroup::find("gang").is_err_and(|error| error.kind() == FailureKind::GroupNotFound)
        });
    };
    let first = make().unwrap();
    first.remove().unwrap();
    is_free();
    let second = make().unwrap();
    assert_ne!(first, second);
    second.ready().get_timeout(AT_ONCE).unwrap();
    drop(second);
    is_free();
    let never = placement_group([cpus(64.0)]).infeasible_after(Duration::from_millis(200));
    let never = never.create_named("gang").unwrap();
    assert_eq!(never.ready().get_timeout(AT_ONCE).unwrap_err().kind(), FailureKind::Infeasible);
    make().unwrap().ready().get_timeout(AT_ONCE).unwrap();
    drop((first, never));
    session.await_quiet();
}

fn e_a_detached_group_needs_no_handle(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let gang = placement_group([cpus(1.0)]).detached(true).create_named("gang").unwrap();
    gang.ready().get_timeout(AT_ONCE).unwrap();
    drop(gang);
    std::thread::sleep(Duration::from_millis(200));
    let found = PlacementGroup::find("gang").unwrap();
    assert_eq!(answer::options().bundle(&found, 0).remote().get_timeout(AT_ONCE).unwrap(), 42);
    let error = detach::remote().get_timeout(AT_ONCE).unwrap_err();
    assert!(error.to_string().contains("created by a driver"), "{error}");
    found.remove().unwrap();
    drop(found);
    await_all_free(&session);
    session.await_quiet();
    assert_eq!(PlacementGroup::find("gang").unwrap_err().kind(), FailureKind::GroupNotFound);
}

fn e_twenty_at_once_get_one_group(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let (ready, gate) = (session.path("ready"), session.path("gate"));
    let racers: Vec<_> =
        (0..RACERS).map(|_| race::options().num_cpus(0.05).remote(ready.clone(), gate.clone())).collect();
    await_within(6 * SOON, "all run", || marks(&ready) == RACERS);
    open_gate(&gate);
    let groups = get_all(&racers, None).unwrap();
    assert!(groups.iter().all(|group| *group == groups[0]), "{groups:?}");
    groups[0].ready().get_timeout(AT_ONCE).unwrap();
    drop((racers, groups));
    await_all_free(&session);
    session.await_quiet();
}
