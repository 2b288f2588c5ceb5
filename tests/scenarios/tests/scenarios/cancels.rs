//! G: cancellation, and the time that tasks have from their callers; one node.

use std::time::{Duration, Instant};
use tharsis::prelude::*;
use tharsis_scenarios::{Mode, Scenario, await_file, await_within, mark, marks, open_gate, scenarios};

pub const ALL: &[Scenario] = scenarios![
    Both:
        g1_cancelling_the_head_of_a_chain_fails_the_rest,
        g1_cancelling_the_middle_leaves_the_head_running,
        g2_a_running_task_is_told,
        g2_a_task_that_waits_is_told,
        g2_a_thread_of_an_actor_waits_on_when_a_call_is_cancelled,
        g3_children_go_on_unless_they_are_asked_for,
        g3_grandchildren_are_cancelled_too,
        g3_children_of_one_of_several_calls_are_cancelled,
        g_a_child_has_the_rest_of_its_parents_time,
        g_a_child_that_waits_ends_with_its_parents_time,
        g_the_shorter_time_counts;
    Processes:
        g2_a_running_task_is_killed_by_force,
        g_grandchildren_end_with_the_time;
];

/// Long enough for what happens at once.
const AT_ONCE: f64 = 20.0;

#[remote(max_retries = 0)]
fn after(gate: String, x: u64) -> u64 {
    await_file(&gate);
    x
}

#[remote(max_retries = 0)]
fn marked(path: String, x: u64) -> u64 {
    mark(&path);
    x
}

/// Runs until it is told to stop, and then gives a value or none; marks files when it begins and ends.
#[remote(max_retries = 0)]
fn until_told(began: String, ended: String, gives: bool) -> Result<u64, String> {
    mark(&began);
    let until = Instant::now() + Duration::from_secs(30);
    let is_told = || context().is_ok_and(|context| context.is_cancelled());
    while !is_told() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(2));
    }
    mark(&ended);
    if gives { Ok(1) } else { Err("told to stop".to_owned()) }
}

fn await_marks(path: &str) {
    await_within(Duration::from_secs(20), path, || marks(path) == 1);
}

fn g1_cancelling_the_head_of_a_chain_fails_the_rest(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let (began, ended, ran) = (session.path("began"), session.path("ended"), session.path("ran"));
    let head = until_told::remote(began.clone(), ended.clone(), false);
    let middle = marked::remote(ran.clone(), &head);
    let last = marked::remote(ran.clone(), &middle);
    await_marks(&began);
    cancel(&head, false, false).unwrap();
    await_marks(&ended);
    for failed in [&head, &middle, &last] {
        let error = failed.get_timeout(AT_ONCE).unwrap_err();
        assert_eq!(error.failure().root().kind, FailureKind::UserError, "{error}");
        assert!(error.to_string().contains("told to stop"), "{error}");
    }
    assert_eq!(head.get().unwrap_err().kind(), FailureKind::Cancelled);
    assert_eq!(marks(&ran), 0);
    // One that has not begun never does.
    let gate = session.path("gate");
    let busy = after::remote(gate.clone(), 1);
    let head = marked::remote(ran.clone(), 2);
    let middle = marked::remote(ran.clone(), &head);
    let last = marked::remote(ran.clone(), &middle);
    cancel(&head, false, false).unwrap();
    for dependent in [&head, &middle, &last] {
        let error = dependent.get_timeout(AT_ONCE).unwrap_err();
        assert_eq!(error.failure().root().kind, FailureKind::Cancelled, "{error}");
    }
    open_gate(&gate);
    assert_eq!((busy.get().unwrap(), marks(&ran)), (1, 0));
    drop((head, middle, last, busy));
}

fn g1_cancelling_the_middle_leaves_the_head_running(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let (gate, ran) = (session.path("gate"), session.path("ran"));
    let head = after::remote(gate.clone(), 5);
    let middle = marked::remote(ran.clone(), &head);
    let last = marked::remote(ran.clone(), &middle);
    cancel(&middle, true, true).unwrap();
    for dependent in [&middle, &last] {
        let error = dependent.get_timeout(AT_ONCE).unwrap_err();
        assert_eq!(error.failure().root().kind, FailureKind::Cancelled, "{error}");
    }
    assert!(!head.is_ready(), "it runs");
    open_gate(&gate);
    assert_eq!((head.get_timeout(AT_ONCE).unwrap(), marks(&ran)), (5, 0));
    drop((head, middle, last));
    session.await_quiet();
}

fn g2_a_running_task_is_told(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let (began, ended) = (session.path("began"), session.path("ended"));
    let task = until_told::remote(began.clone(), ended.clone(), true);
    await_marks(&began);
    let started = Instant::now();
    cancel(&task, false, false).unwrap();
    await_marks(&ended);
    assert!(started.elapsed() < Duration::from_secs(15), "it was told");
    // It had the choice: it returned a value, which stays readable.
    assert_eq!(task.get_timeout(AT_ONCE).unwrap(), 1);
    cancel(&task, true, true).unwrap();
    assert_eq!(task.get().unwrap(), 1, "of one that has ended nothing changes");
    drop(task);
    session.await_quiet();
}

fn g2_a_running_task_is_killed_by_force(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let (gate, began) = (session.path("gate"), session.path("began"));
    let task = begins_and_waits::remote(began.clone(), gate);
    await_marks(&began);
    cancel(&task, true, false).unwrap();
    assert_eq!(task.get_timeout(AT_ONCE).unwrap_err().kind(), FailureKind::Cancelled);
    assert_eq!(marked::remote(session.path("after"), 3).get_timeout(AT_ONCE).unwrap(), 3);
    drop(task);
    session.await_quiet();
}

#[remote(max_retries = 0)]
fn begins_and_waits(began: String, gate: String) -> u64 {
    mark(&began);
    await_file(&gate);
    1
}

/// Waits for a child in a way of its own; marks a file when it begins.
#[remote(max_retries = 0)]
fn waits(way: u32, began: String, gate: String) -> Result<u64, Error> {
    let child = begins_and_waits::remote(began, gate);
    match way {
        0 => child.get(),
        1 => wait(std::slice::from_ref(&child), Wait::default()).map(|(ready, _)| ready.len() as u64),
        2 => tharsis::as_completed([child]).next().map_or(Ok(0), |ready| ready.map(|_| 1)),
        _ => {
            let context = context()?;
            let in_thread = move || {
                let _entered = context.enter();
                child.get()
            };
            std::thread::spawn(in_thread).join().unwrap_or(Ok(0))
        }
    }
}

#[remote(max_retries = 0)]
async fn awaits(began: String, gate: String) -> Result<u64, Error> {
    begins_and_waits::remote(began, gate).await
}

/// Without force and without what it has called: the wait ends, the child goes on.
fn g2_a_task_that_waits_is_told(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    for way in 0..5 {
        let (began, gate) = (session.path(&format!("began{way}")), session.path(&format!("gate{way}")));
        let task = match way {
            4 => awaits::remote(began.clone(), gate.clone()),
            _ => waits::remote(way, began.clone(), gate.clone()),
        };
        await_marks(&began);
        cancel(&task, false, false).unwrap();
        let error = task.get_timeout(AT_ONCE).unwrap_err();
        assert_eq!(error.kind(), FailureKind::Cancelled, "{way}: {error}");
        assert_eq!(session.report().running_count, 1, "{way}: the child goes on");
        open_gate(&gate);
        drop(task);
        session.await_quiet();
    }
}

/// An actor with a thread that begins to wait for a value during a call.
struct Ahead {
    thread: Option<std::thread::JoinHandle<Result<u64, Error>>>,
}

#[actor]
impl Ahead {
    fn new(value: ObjectRef<u64>, began: String, waits: String) -> Self {
        let wait = move || {
            while marks(&began) == 0 {
                std::thread::sleep(Duration::from_millis(2));
            }
            mark(&waits);
            value.get()
        };
        Self { thread: Some(std::thread::spawn(wait)) }
    }

    fn until_told(&mut self, began: String) -> u64 {
        mark(&began);
        let until = Instant::now() + Duration::from_secs(30);
        while !context().is_ok_and(|context| context.is_cancelled()) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
        1
    }

    fn value(&mut self) -> Result<u64, Error> {
        self.thread.take().map_or(Ok(0), |thread| thread.join().unwrap_or(Ok(0)))
    }
}

fn g2_a_thread_of_an_actor_waits_on_when_a_call_is_cancelled(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let (gate, began, waits) = (session.path("gate"), session.path("began"), session.path("waits"));
    let value = after::remote(gate.clone(), 7);
    let ahead = Ahead::remote(value.clone(), began.clone(), waits.clone());
    let call = ahead.until_told(began.clone());
    await_marks(&waits);
    cancel(&call, false, false).unwrap();
    assert_eq!(call.get_timeout(AT_ONCE).unwrap(), 1);
    open_gate(&gate);
    assert_eq!(ahead.value().get_timeout(AT_ONCE).unwrap(), 7);
    drop((ahead, call, value));
    session.await_quiet();
}

/// Calls a child that runs until it is told, and looks whether it has ended.
#[remote(max_retries = 0)]
fn looks(began: String, ended: String) -> Result<u64, Error> {
    let child = until_told::remote(began, ended, true);
    let until = Instant::now() + Duration::from_secs(30);
    while !child.is_ready() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(2));
    }
    child.get()
}

/// Calls a child that runs until it is told, and waits for it.
#[remote(max_retries = 0)]
fn parent(began: String, ended: String) -> Result<u64, Error> {
    until_told::remote(began, ended, true).get()
}

#[remote(max_retries = 0)]
fn grandparent(began: String, ended: String) -> Result<u64, Error> {
    parent::remote(began, ended).get()
}

fn g3_children_go_on_unless_they_are_asked_for(mode: Mode) {
    let session = mode.start(3);
    let _entered = session.enter();
    let (began, ended) = (session.path("began"), session.path("ended"));
    let task = looks::remote(began.clone(), ended.clone());
    await_marks(&began);
    cancel(&task, false, false).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(marks(&ended), 0, "the child was not told");
    cancel(&task, false, true).unwrap();
    await_marks(&ended);
    drop(task);
    session.await_quiet();
}

fn g3_grandchildren_are_cancelled_too(mode: Mode) {
    let session = mode.start(4);
    let _entered = session.enter();
    let (began, ended) = (session.path("began"), session.path("ended"));
    let task = grandparent::remote(began.clone(), ended.clone());
    await_marks(&began);
    cancel(&task, false, true).unwrap();
    await_marks(&ended);
    drop(task);
    session.await_quiet();
}

/// An actor that runs several calls at the same time, each of which calls a child and waits for it.
struct Desk;

#[actor(max_concurrency = 4)]
impl Desk {
    fn new() -> Self {
        Self
    }

    fn parent(&self, began: String, ended: String) -> Result<u64, Error> {
        until_told::remote(began, ended, true).get()
    }

    fn parent_on_a_thread(&self, began: String, ended: String) -> Result<u64, Error> {
        let context = context()?;
        let call = move || {
            let _entered = context.enter();
            until_told::remote(began, ended, true).get()
        };
        std::thread::spawn(call).join().unwrap_or(Ok(0))
    }
}

fn g3_children_of_one_of_several_calls_are_cancelled(mode: Mode) {
    let session = mode.start(4);
    let _entered = session.enter();
    let path = |name: &str, n: usize| session.path(&format!("{name}{n}"));
    let desk = Desk::remote();
    let calls = [
        desk.parent(path("began", 0), path("ended", 0)),
        desk.parent(path("began", 1), path("ended", 1)),
        desk.parent_on_a_thread(path("began", 2), path("ended", 2)),
    ];
    (0..3).for_each(|n| await_marks(&path("began", n)));
    for (n, others) in [(1, [0, 2].as_slice()), (2, &[0])] {
        cancel(&calls[n], false, true).unwrap();
        await_marks(&path("ended", n));
        std::thread::sleep(Duration::from_millis(100));
        others.iter().for_each(|other| assert_eq!(marks(&path("ended", *other)), 0, "of another call"));
    }
    cancel(&calls[0], false, true).unwrap();
    await_marks(&path("ended", 0));
    drop((calls, desk));
    session.await_quiet();
}

/// Returns at once, with a reference to a child that runs on.
#[remote(max_retries = 0)]
fn leaves_a_child(began: String, gate: String) -> Vec<ObjectRef<u64>> {
    vec![begins_and_waits::remote(began, gate)]
}

fn g_a_child_has_the_rest_of_its_parents_time(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let (began, gate) = (session.path("began"), session.path("gate"));
    let options = leaves_a_child::options().timeout(Duration::from_millis(1_500));
    let child = options.remote(began.clone(), gate.clone()).get_timeout(AT_ONCE).unwrap().remove(0);
    await_marks(&began);
    let error = child.get_timeout(AT_ONCE).unwrap_err();
    assert_eq!(error.kind(), FailureKind::TimedOut, "{error}");
    open_gate(&gate);
    // Without a timeout there is none to inherit.
    let child = leaves_a_child::remote(began, gate).get_timeout(AT_ONCE).unwrap().remove(0);
    assert_eq!(child.get_timeout(AT_ONCE).unwrap(), 1);
}

/// A child that waits for a slot, and one that waits for an argument.
#[remote(max_retries = 0)]
fn leaves_waiting_children(gate: String, ran: String) -> Vec<ObjectRef<u64>> {
    let blocked = after::options().num_cpus(4.0).remote(gate, 1);
    let next = marked::remote(ran, &blocked);
    vec![blocked, next]
}

fn g_a_child_that_waits_ends_with_its_parents_time(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let (gate, ran) = (session.path("gate"), session.path("ran"));
    let options = leaves_waiting_children::options().timeout(Duration::from_millis(500));
    let children = options.remote(gate, ran.clone()).get_timeout(AT_ONCE).unwrap();
    for child in &children {
        let error = child.get_timeout(AT_ONCE).unwrap_err();
        assert_eq!(error.failure().root().kind, FailureKind::TimedOut, "{error}");
    }
    assert_eq!(marks(&ran), 0);
    drop(children);
    session.await_quiet();
}

/// Calls a child with a timeout of its own.
#[remote(max_retries = 0)]
fn hurries(gate: String) -> Result<u64, Error> {
    after::options().timeout(Duration::from_millis(200)).remote(gate, 1).get()
}

fn g_the_shorter_time_counts(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let gate = session.path("gate");
    let started = Instant::now();
    let error = hurries::options().timeout(Duration::from_secs(60)).remote(gate.clone()).get_timeout(AT_ONCE);
    let error = error.unwrap_err();
    assert_eq!(error.failure().root().kind, FailureKind::TimedOut, "{error}");
    assert!(started.elapsed() < Duration::from_secs(15));
    open_gate(&gate);
}

/// A parent that times out while its grandchild runs.
fn g_grandchildren_end_with_the_time(mode: Mode) {
    let session = mode.start(4);
    let _entered = session.enter();
    let (began, ended) = (session.path("began"), session.path("ended"));
    let options = grandparent::options().timeout(Duration::from_millis(1_500));
    let task = options.remote(began.clone(), ended.clone());
    await_marks(&began);
    assert_eq!(task.get_timeout(AT_ONCE).unwrap_err().kind(), FailureKind::TimedOut);
    await_within(Duration::from_secs(10), "nothing runs", || session.report().running_count == 0);
    assert_eq!(marks(&ended), 0, "it was killed");
    drop(task);
    session.await_quiet();
}
