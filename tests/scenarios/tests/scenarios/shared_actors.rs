//! F: actors that share a process, one node.

use rustix::process::Signal;
use std::collections::BTreeSet;
use std::time::Duration;
use tharsis::prelude::*;
use tharsis::{Executed, actor, kill};
use tharsis_scenarios::{
    Mode, SOON, Scenario, await_file, await_within, mark, marks, open_gate, processes, scenarios,
};

pub const ALL: &[Scenario] = scenarios![
    Both:
        f_actors_that_share_a_process_are_actors_like_others,
        f_actors_that_share_a_process_take_their_resources,
        f_a_constructor_that_fails_leaves_the_others_of_its_process,
        f_calls_of_actors_that_share_a_process_keep_their_order,
        f_kill_ends_one_actor_of_a_process;
    Processes:
        f_a_shared_process_ends_with_its_last_actor,
        f_a_stuck_actor_ends_with_its_process,
        f_actors_of_a_lost_process_are_started_again,
        f_many_actors_have_few_processes;
];

/// Long enough for what happens at once.
const AT_ONCE: f64 = 20.0;

/// An actor that shares its process; it marks a file when it is dropped.
struct Cell {
    value: i64,
    seen: Vec<u64>,
    dropped: Option<String>,
}

#[actor(shared_process = true)]
impl Cell {
    fn new(value: i64, dropped: Option<String>) -> Result<Self, Negative> {
        if value < 0 {
            return Err(Negative);
        }
        Ok(Self { value, seen: Vec::new(), dropped })
    }

    fn add(&mut self, n: i64) -> i64 {
        self.value += n;
        self.value
    }

    fn add_after(&mut self, n: i64, started: String, gate: String) -> i64 {
        mark(&started);
        await_file(&gate);
        self.add(n)
    }

    fn see(&mut self, entry: u64) {
        self.seen.push(entry);
    }

    fn seen(&self) -> Vec<u64> {
        self.seen.clone()
    }

    /// Waits for another one of its process.
    fn add_of(&mut self, other: CellHandle) -> Result<i64, Error> {
        let n = other.add(1).get()?;
        Ok(self.add(n))
    }

    fn exits(&self) -> i64 {
        std::process::exit(0)
    }

    fn pid(&self) -> u32 {
        std::process::id()
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        if let Some(path) = &self.dropped {
            mark(path);
        }
    }
}

#[derive(Debug, serde::Serialize, serde::Deserialize, thiserror::Error)]
#[error("negative")]
struct Negative;

#[remote]
fn own_pid() -> u32 {
    std::process::id()
}

#[remote]
fn see_often(cell: CellHandle, first: u64, count: u64) -> Result<(), Error> {
    let calls: Vec<_> = (first..first + count).map(|entry| cell.see(entry)).collect();
    get_all(&calls, None).map(drop)
}

fn pids(cells: &[CellHandle]) -> BTreeSet<u32> {
    cells.iter().map(|cell| cell.pid().get_timeout(AT_ONCE).unwrap()).collect()
}

fn f_actors_that_share_a_process_are_actors_like_others(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let dropped = session.path("dropped");
    let cells: Vec<_> = (0..10).map(|n| Cell::remote(n, Some(dropped.clone()))).collect();
    for (cell, n) in cells.iter().zip(0..) {
        assert_eq!(cell.add(100).get_timeout(AT_ONCE).unwrap(), n + 100, "each has a state of its own");
    }
    let of_cells = pids(&cells);
    assert_eq!(of_cells.len(), 1, "{of_cells:?}");
    if mode == Mode::Processes {
        let other = Cell::options().shared_process(false).remote(0, None);
        let others = [other.pid().get().unwrap(), own_pid::remote().get().unwrap()];
        assert!(others.iter().all(|pid| !of_cells.contains(pid)), "{others:?} and {of_cells:?}");
    }
    assert_eq!(cells[0].add_of(cells[1].clone()).get_timeout(AT_ONCE).unwrap(), 202);
    drop(cells);
    await_within(SOON, "all are dropped", || marks(&dropped) == 10);
    session.await_quiet();
}

fn f_actors_that_share_a_process_take_their_resources(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let one = |n| Cell::options().num_cpus(1.0).remote(n, None);
    let (first, second, third) = (one(1), one(2), one(3));
    assert_eq!(get_all(&[first.add(0), second.add(0)], None).unwrap(), [1, 2]);
    assert_eq!(third.add(0).get_timeout(0.3).unwrap_err().kind(), FailureKind::GetTimeout);
    drop(first);
    assert_eq!(third.add(0).get_timeout(AT_ONCE).unwrap(), 3, "it had no room before");
    drop((second, third));
    session.await_quiet();
}

fn f_a_constructor_that_fails_leaves_the_others_of_its_process(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let well = Cell::remote(1, None);
    assert_eq!(well.add(1).get_timeout(AT_ONCE).unwrap(), 2);
    let error = Cell::remote(-1, None).add(1).get_timeout(AT_ONCE).unwrap_err();
    assert_eq!((error.kind(), error.executed()), (FailureKind::ActorDied, Some(Executed::No)));
    assert!(error.downcast::<Negative>().is_some(), "{error}");
    assert_eq!(well.add(1).get_timeout(AT_ONCE).unwrap(), 3);
    drop(well);
    session.await_quiet();
}

fn f_calls_of_actors_that_share_a_process_keep_their_order(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let cells: Vec<_> = (0..4).map(|_| Cell::remote(0, None)).collect();
    let from_tasks: Vec<_> = cells.iter().map(|cell| see_often::remote(cell.clone(), 1_000, 200)).collect();
    let calls: Vec<_> = (0..200).flat_map(|entry| cells.iter().map(move |cell| cell.see(entry))).collect();
    get_all(&calls, None).unwrap();
    get_all(&from_tasks, None).unwrap();
    for cell in &cells {
        let (of_tasks, of_driver): (Vec<u64>, Vec<u64>) =
            cell.seen().get_timeout(AT_ONCE).unwrap().into_iter().partition(|entry| 1_000 <= *entry);
        assert!(of_driver.iter().copied().eq(0..200), "{of_driver:?}");
        assert!(of_tasks.iter().copied().eq(1_000..1_200), "{of_tasks:?}");
    }
    drop((cells, calls, from_tasks));
    session.await_quiet();
}

fn f_kill_ends_one_actor_of_a_process(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let path = |name: &str| session.path(name);
    let (started, gate, dropped) = (path("started"), path("gate"), path("dropped"));
    let busy = Cell::options().max_restarts(-1).remote(0, Some(dropped.clone()));
    let (idle, other) = (Cell::remote(0, Some(dropped.clone())), Cell::remote(0, None));
    assert_eq!(other.add(1).get_timeout(AT_ONCE).unwrap(), 1);
    assert_eq!(idle.add(1).get_timeout(AT_ONCE).unwrap(), 1);
    let pid = other.pid().get().unwrap();
    let running = busy.add_after(1, started.clone(), gate.clone());
    await_within(SOON, "the call runs", || marks(&started) == 1);
    kill(&busy).unwrap();
    kill(&idle).unwrap();
    let error = running.get_timeout(AT_ONCE).unwrap_err();
    let died = (FailureKind::ActorDied, Some(Executed::Unknown));
    assert_eq!((error.kind(), error.executed()), died, "{error}");
    await_within(SOON, "calls fail", || idle.add(1).get().is_err());
    assert_eq!(other.add(1).get_timeout(AT_ONCE).unwrap(), 2, "the others live on");
    assert_eq!(other.pid().get().unwrap(), pid);
    open_gate(&gate);
    await_within(SOON, "both are dropped once their calls have returned", || marks(&dropped) == 2);
    let again = Cell::remote(7, None);
    assert_eq!(again.add(1).get_timeout(AT_ONCE).unwrap(), 8);
    drop((busy, idle, other, again, running));
    session.await_quiet();
}

fn f_a_shared_process_ends_with_its_last_actor(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let (first, second) = (Cell::remote(0, None), Cell::remote(0, None));
    let pid = first.pid().get_timeout(AT_ONCE).unwrap();
    assert_eq!(second.pid().get().unwrap(), pid);
    drop(first);
    session.await_report("one actor is left", |report| report.task_count == 1);
    assert_eq!(second.pid().get().unwrap(), pid);
    drop(second);
    await_within(SOON, "the process ends", || !processes::runs(pid));
    let next = Cell::remote(0, None);
    assert_ne!(next.pid().get_timeout(AT_ONCE).unwrap(), pid);
    kill(&next).unwrap();
    drop(next);
    session.await_quiet();
}

/// A thread that computes cannot be stopped, but a process can, once nobody else is in it.
fn f_a_stuck_actor_ends_with_its_process(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let (started, never) = (session.path("started"), session.path("never"));
    let (stuck, other) = (Cell::options().num_cpus(1.0).remote(0, None), Cell::remote(0, None));
    let pid = other.pid().get_timeout(AT_ONCE).unwrap();
    let running = stuck.add_after(1, started.clone(), never);
    await_within(SOON, "the call runs", || marks(&started) == 1);
    kill(&stuck).unwrap();
    assert_eq!(running.get_timeout(AT_ONCE).unwrap_err().kind(), FailureKind::ActorDied);
    std::thread::sleep(Duration::from_millis(100));
    let row = session.report().nodes[0].clone();
    assert_ne!(row.free, row.total, "what computes keeps its resources");
    assert_eq!(other.add(1).get_timeout(AT_ONCE).unwrap(), 1);
    drop(other);
    await_within(SOON, "the process ends", || !processes::runs(pid));
    drop((stuck, running));
    session.await_quiet();
}

fn f_actors_of_a_lost_process_are_started_again(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let mortal = Cell::remote(0, None);
    let again: Vec<_> = (0..5).map(|n| Cell::options().max_restarts(2).remote(n, None)).collect();
    let first = pids(&again);
    assert_eq!(get_all(&again.iter().map(|cell| cell.add(10)).collect::<Vec<_>>(), None).unwrap()[4], 14);
    let exit = again[0].exits();
    let error = exit.get_timeout(AT_ONCE).unwrap_err();
    let unavailable = (FailureKind::ActorUnavailable, Some(Executed::Unknown));
    assert_eq!((error.kind(), error.executed()), unavailable, "{error}");
    await_within(SOON, "the one without restarts has ended", || mortal.add(0).get().is_err());
    // A call that was on its way when the process died may be lost with it.
    let value = |cell: &CellHandle| cell.add(0).get_timeout(AT_ONCE);
    for (cell, n) in again.iter().zip(0..) {
        await_within(SOON, "it answers again", || value(cell).is_ok_and(|value| value == n));
    }
    let second = pids(&again);
    assert!(second.is_disjoint(&first), "{first:?} and {second:?}");
    second.iter().for_each(|pid| processes::signal(*pid, Signal::KILL));
    for (cell, n) in again.iter().zip(0..) {
        await_within(SOON, "it answers again", || value(cell).is_ok_and(|value| value == n));
    }
    drop((mortal, again, exit));
    session.await_quiet();
}

fn f_many_actors_have_few_processes(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let cells: Vec<_> = (0..100).map(|n| Cell::remote(n, None)).collect();
    let calls: Vec<_> = cells.iter().map(|cell| cell.add(1)).collect();
    assert_eq!(get_all(&calls, None).unwrap(), (1..=100).collect::<Vec<_>>());
    assert_eq!(pids(&cells).len(), 1);
    drop((cells, calls));
    session.await_quiet();
}
