//! Mistakes of users with tasks: each has a typed error, and the next task runs.

use std::panic::Location;
use std::time::{Duration, Instant};
use tharsis::SpillChoice;
use tharsis::generated::{Arguments, Call, Definition, Remote};
use tharsis::prelude::*;
use tharsis::{Options, RefId};
use tharsis_scenarios::{Mode, Scenario, await_within, mark, marks, open_gate, processes, scenarios};

pub const ALL: &[Scenario] = scenarios![
    Both:
        task_function_not_registered,
        task_of_another_version,
        task_with_other_arguments,
        task_payload_above_the_store,
        task_result_above_the_store,
        task_panics,
        task_loops_for_ever,
        task_of_a_failed_argument,
        task_with_too_many_references,
        task_that_no_node_can_run,
        task_with_bad_options,
        task_is_cancelled_after_its_end,
        task_is_cancelled_before_its_start,
        task_is_cancelled_with_its_children,
        task_runs_out_of_time,
        get_with_odd_timeouts,
        wait_for_more_than_there_is,
        reference_of_another_session,
        store_is_full;
    Processes:
        task_aborts,
        task_segfaults,
        task_exits;
];

#[remote]
fn add(x: i64, y: i64) -> i64 {
    x + y
}

/// Requests to the engine for which generated code would not compile.
#[track_caller]
fn call<T>(
    definition: &'static Definition,
    mut arguments: impl FnMut(&mut Arguments) -> tharsis::Result<()>,
) -> ObjectRef<T> {
    Call { definition, options: None, site: Location::caller(), arguments: &mut arguments }.one()
}

const fn definition(module: &'static str, name: &'static str) -> Definition {
    Definition {
        module,
        name,
        signature: "(u8) -> u8",
        file: file!(),
        line: line!(),
        column: 1,
        returns: 1,
        options: Options::default,
        role: tharsis::generated::Role::Task,
        group: 0,
        groups: &[],
        run: |_| Ok(()),
        plain: &(),
    }
}

static GONE: Definition = definition("elsewhere", "gone");
static STALE: Definition = definition(module_path!(), "add");

/// A function that no program has.
fn task_function_not_registered(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let error = call::<u8>(&GONE, |_| Ok(())).get().unwrap_err();
    assert_eq!(error.kind(), FailureKind::FunctionNotFound);
    assert!(error.to_string().contains("elsewhere::gone"), "{error}");
    assert_eq!(add::remote(1, 2).get().unwrap(), 3);
}

/// A function that has other types there.
fn task_of_another_version(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let error = call::<u8>(&STALE, |arguments| arguments.push::<u8, _>(0, 1)).get().unwrap_err();
    assert_eq!(error.kind(), FailureKind::VersionMismatch);
    assert!(error.to_string().contains("::add"), "{error}");
}

/// Too few, too many, and others than the function has.
fn task_with_other_arguments(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let add = <add as Remote>::DEFINITION;
    let few = call::<i64>(add, |arguments| arguments.push::<i64, _>(0, 1));
    let many = call::<i64>(add, |a| (0..3).try_for_each(|n| a.push::<i64, _>(n, 1)));
    let other = call::<i64>(add, |a| (0..2).try_for_each(|n| a.push::<String, _>(n, "four")));
    let text = put(&vec![300_000_u64; 3]).unwrap();
    let reference = call::<i64>(add, |a| {
        a.push::<Vec<u64>, _>(0, &text)?;
        a.push::<i64, _>(1, 1)
    });
    for bad in [few, many, other, reference] {
        let error = bad.get().unwrap_err();
        assert_eq!(error.kind(), FailureKind::InvalidArgument, "{error}");
        assert!(error.to_string().contains("::add"), "{error}");
    }
}

#[remote]
fn length(blob: Blob) -> usize {
    blob.len()
}

#[remote]
fn text_length(text: String) -> usize {
    text.len()
}

/// Two gibibytes by value: the store is too small for it, which is said at once.
fn task_payload_above_the_store(mode: Mode) {
    // With a disk it would go there.
    let session = mode.start_with(1, |init| init.spill(SpillChoice::default()));
    let _entered = session.enter();
    let error = length::remote(Blob::from(vec![0; 2 << 30])).get().unwrap_err();
    assert_eq!(error.kind(), FailureKind::ObjectTooLarge);
    assert!(error.to_string().contains(&(64 << 20).to_string()), "both sizes: {error}");
    assert_eq!(put(&Blob::from(vec![0; 2 << 30])).unwrap_err().kind(), FailureKind::ObjectTooLarge);
    assert_eq!(
        text_length::remote("x".repeat(3_000_000)).get().unwrap(),
        3_000_000,
        "by value, through the store"
    );
    session.await_quiet();
}

#[remote]
fn zeros(len: usize) -> Blob {
    Blob::from(vec![0; len])
}

/// A result that the store cannot hold.
fn task_result_above_the_store(mode: Mode) {
    // With a disk it would go there.
    let session = mode.start_with(1, |init| init.spill(SpillChoice::default()));
    let _entered = session.enter();
    let error = zeros::remote(65 << 20).get().unwrap_err();
    assert_eq!(error.kind(), FailureKind::ObjectTooLarge, "{error}");
    assert_eq!(zeros::remote(5 << 20).get().unwrap().len(), 5 << 20);
    session.await_quiet();
}

#[remote]
fn who(panics: bool) -> String {
    assert!(!panics, "the roof is on fire");
    format!("{} {:?}", std::process::id(), std::thread::current().id())
}

/// A panic: message, place, and the same worker afterwards.
fn task_panics(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let before = who::remote(false).get().unwrap();
    let error = who::remote(true).get().unwrap_err();
    assert_eq!(error.kind(), FailureKind::Panicked);
    let text = error.to_string();
    assert!(text.contains("the roof is on fire") && text.contains("bad_input.rs:"), "{text}");
    assert_eq!(who::remote(false).get().unwrap(), before);
}

#[remote]
fn ends_itself(how: String, marks: String) -> u32 {
    mark(&marks);
    eprintln!("last words of {how}");
    match how.as_str() {
        "abort" => std::process::abort(),
        "exit" => std::process::exit(3),
        // The first may be taken for a stack overflow by the handler of the standard library.
        _ => loop {
            processes::signal(std::process::id(), rustix::process::Signal::SEGV);
        },
    }
}

/// The task that ends its worker is retried, and its error tells how the worker ended.
fn check_crash(mode: Mode, how: &str, shown: &str) {
    let session = mode.start(1);
    let _entered = session.enter();
    let ran = session.path("ran");
    let error = ends_itself::options().max_retries(2).remote(how, ran.clone()).get().unwrap_err();
    assert_eq!(error.kind(), FailureKind::WorkerCrashed);
    let failure = error.failure();
    assert!(failure.message.contains(shown), "{error}");
    assert!(failure.log_tail.contains(&format!("last words of {how}")), "{error}");
    let origin = failure.origin.as_ref().unwrap();
    assert!(
        origin.attempt == 2 && origin.pid.is_some() && origin.task_name.ends_with("ends_itself"),
        "{origin:?}"
    );
    assert_eq!(marks(&ran), 3);
    assert_eq!(add::remote(1, 2).get().unwrap(), 3);
    session.await_quiet();
}

/// `abort()` in a task.
fn task_aborts(mode: Mode) {
    check_crash(mode, "abort", "SIGABRT");
}

/// A segmentation fault in a task.
fn task_segfaults(mode: Mode) {
    check_crash(mode, "segfault", "SIGSEGV");
}

/// `exit()` in a task.
fn task_exits(mode: Mode) {
    check_crash(mode, "exit", "status 3");
}

#[remote]
fn loops(started: String, until: String) -> u32 {
    open_gate(&started);
    // Ends one day, because a thread cannot be killed.
    while !std::path::Path::new(&until).exists() {}
    7
}

/// An endless task is stopped by force within a second; its neighbour goes on.
fn task_loops_for_ever(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let path = |name: &str| session.path(name);
    let runs = |name: &str| std::path::Path::new(&path(name)).exists();
    let neighbour = loops::remote(path("neighbour"), path("end"));
    await_within(Duration::from_secs(20), "the neighbour runs", || runs("neighbour"));
    let stopped = |number: u32| {
        let (name, end) = (format!("endless {number}"), format!("end {number}"));
        let endless = loops::options().max_retries(5).remote(path(&name), path(&end));
        await_within(Duration::from_secs(20), "it runs", || runs(&name));
        let started = Instant::now();
        cancel(&endless, true, false).unwrap();
        let error = endless.get_timeout(10.0).unwrap_err();
        assert_eq!(error.kind(), FailureKind::Cancelled);
        let took = started.elapsed();
        assert!(!neighbour.is_ready());
        open_gate(&path(&end));
        took
    };
    // The best of a few: other tests share the CPUs.
    let best = (0..3).map(stopped).min().unwrap();
    assert!(best < Duration::from_secs(1), "{best:?}");
    open_gate(&path("end"));
    assert_eq!(neighbour.get().unwrap(), 7);
    assert_eq!(add::remote(1, 2).get().unwrap(), 3);
    drop(neighbour);
    session.await_quiet();
}

/// A task that runs longer than its timeout.
fn task_runs_out_of_time(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let path = |name| session.path(name);
    let late = loops::options().timeout(Duration::from_millis(300)).remote(path("started"), path("end"));
    let error = late.get_timeout(10.0).unwrap_err();
    assert_eq!(error.kind(), FailureKind::TimedOut);
    assert!(error.to_string().contains("300 ms"), "{error}");
    open_gate(&path("end"));
    assert_eq!(add::remote(1, 2).get().unwrap(), 3);
}

#[remote]
fn marked(x: i64, marks: String) -> i64 {
    mark(&marks);
    x
}

/// The body of a task whose argument failed never runs.
fn task_of_a_failed_argument(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let ran = session.path("ran");
    let root = call::<i64>(&GONE, |_| Ok(()));
    for failed in [root.clone(), marked::remote(&root, ran.clone())] {
        let error = marked::remote(&failed, ran.clone()).get().unwrap_err();
        assert_eq!(error.kind(), FailureKind::DependencyFailed);
        assert_eq!(error.failure().root().kind, FailureKind::FunctionNotFound);
    }
    let unsent = add::options().num_cpus(-1.0).remote(1, 2);
    let error = marked::remote(&unsent, ran.clone()).get().unwrap_err();
    assert_eq!(error.failure().root().kind, FailureKind::InvalidArgument, "{error}");
    assert_eq!(marks(&ran), 0);
}

#[remote]
fn total(values: Values<i64>) -> i64 {
    values.iter().sum()
}

/// More references than a task may have.
fn task_with_too_many_references(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let one = put(&1_i64).unwrap();
    let error = total::remote(vec![one.clone(); (1 << 20) + 1]).get().unwrap_err();
    assert_eq!(error.kind(), FailureKind::InvalidArgument);
    assert!(error.to_string().contains("1048576"), "{error}");
    assert_eq!(total::remote(vec![one; 50_000]).get().unwrap(), 50_000);
}

/// Eight GPUs on a machine without any: listed with the reason, never silent.
fn task_that_no_node_can_run(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let waiting = add::options().num_gpus(8.0).remote(1, 2);
    let report = session.await_report("it is listed", |r| !r.pending.is_empty());
    let reason = &report.pending[0].reason;
    assert!(reason.contains("no node can ever run it") && reason.contains("0 of 8 GPU"), "{reason}");
    cancel(&waiting, false, false).unwrap();
    assert_eq!(waiting.get_timeout(10.0).unwrap_err().kind(), FailureKind::Cancelled);
}

/// Options out of bounds name the option and the value.
fn task_with_bad_options(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let bad = [
        (add::options().num_cpus(-1.0), "num_cpus"),
        (add::options().num_cpus(f64::NAN), "num_cpus"),
        (add::options().resource("CPU", 1.0), "CPU"),
        (add::options().num_cpus(0.000_01), "num_cpus"),
        (add::options().resource("press", 0.000_01), "press"),
        (add::options().name(""), "name"),
        (add::options().timeout(Duration::ZERO), "timeout"),
    ];
    for (options, named) in bad {
        let error = options.remote(1, 2).get().unwrap_err();
        assert_eq!(error.kind(), FailureKind::InvalidArgument);
        assert!(error.to_string().contains(named), "{error}");
    }
}

/// Cancelling what has ended changes nothing.
fn task_is_cancelled_after_its_end(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let (sum, value) = (add::remote(1, 2), put(&5).unwrap());
    assert_eq!(sum.get().unwrap(), 3);
    for force in [false, true] {
        cancel(&sum, force, false).unwrap();
        cancel(&value, force, false).unwrap();
    }
    assert_eq!((sum.get().unwrap(), add::remote(&sum, 1).get().unwrap()), (3, 4));
}

/// A task that waits for its turn is cancelled without a trace.
fn task_is_cancelled_before_its_start(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let (ran, path) = (session.path("ran"), |name| session.path(name));
    let first = loops::remote(path("started"), path("end"));
    let second = marked::remote(1, ran.clone());
    cancel(&second, false, false).unwrap();
    let after = marked::remote(&second, ran.clone());
    open_gate(&path("end"));
    assert_eq!(second.get_timeout(10.0).unwrap_err().kind(), FailureKind::Cancelled);
    assert_eq!(after.get_timeout(10.0).unwrap_err().failure().root().kind, FailureKind::Cancelled);
    assert_eq!((first.get().unwrap(), marks(&ran)), (7, 0));
    drop((first, second, after));
    session.await_quiet();
}

#[remote]
fn has_a_child(started: String, until: String) -> Result<u32, Error> {
    loops::options().max_retries(0).remote(started, until).get()
}

/// A task that is cancelled with all it submitted takes its running child along.
fn task_is_cancelled_with_its_children(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let (started, end) = (session.path("started"), session.path("end"));
    let parent = has_a_child::options().max_retries(0).remote(started.clone(), end.clone());
    await_within(Duration::from_secs(20), "the child runs", || std::path::Path::new(&started).exists());
    cancel(&parent, true, true).unwrap();
    assert_eq!(parent.get_timeout(10.0).unwrap_err().kind(), FailureKind::Cancelled);
    let until = Instant::now() + Duration::from_secs(2);
    while session.report().running_count > 0 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    let running = session.report().running_count;
    open_gate(&end);
    assert_eq!(running, 0, "the child goes on");
}

/// Timeouts of 0, below 0, and not a number.
fn get_with_odd_timeouts(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let (path, sum) = (|name| session.path(name), add::remote(1, 2));
    assert_eq!(sum.get().unwrap(), 3);
    assert_eq!(sum.get_timeout(0.0).unwrap(), 3, "what is here is given");
    let large = zeros::remote(100_000);
    wait(std::slice::from_ref(&large), Wait { fetch: false, ..Wait::default() }).unwrap();
    // The node is asked where it lies and given a moment to answer, which may pass on a busy machine.
    let found = (0..100).find_map(|_| large.get_timeout(0.0).ok());
    assert_eq!(found.expect("so is what lies in the store").len(), 100_000);
    let slow = loops::remote(path("started"), path("end"));
    assert_eq!(slow.get_timeout(0.0).unwrap_err().kind(), FailureKind::GetTimeout);
    for bad in [-1.0, f64::NAN, f64::NEG_INFINITY] {
        for reference in [&slow.clone(), &loops::remote(path("started"), path("end"))] {
            assert_eq!(reference.get_timeout(bad).unwrap_err().kind(), FailureKind::InvalidArgument);
        }
        assert_eq!(
            sum.get_timeout(bad).unwrap_err().kind(),
            FailureKind::InvalidArgument,
            "of a ready one as well"
        );
        let options = Wait { timeout: Some(bad.into()), ..Wait::default() };
        assert_eq!(
            wait(std::slice::from_ref(&slow), options).unwrap_err().kind(),
            FailureKind::InvalidArgument
        );
    }
    open_gate(&path("end"));
    assert_eq!(slow.get_timeout(f64::INFINITY).unwrap(), 7);
}

/// More than there are references.
fn wait_for_more_than_there_is(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let sum = add::remote(1, 2);
    let options = Wait { num_returns: 2, ..Wait::default() };
    let error = wait(std::slice::from_ref(&sum), options).unwrap_err();
    assert_eq!(error.kind(), FailureKind::InvalidArgument);
    assert!(error.to_string().contains("num_returns is 2"), "{error}");
}

#[remote]
fn read(references: Vec<ObjectRef<i64>>) -> Result<i64, Error> {
    references[0].get_timeout(20.0)
}

/// References are of use only in the session that made them: as an argument, inside one, inside a put value.
fn reference_of_another_session(mode: Mode) {
    let (other, session) = (mode.start(1), mode.start(1));
    let foreign = {
        let _entered = other.enter();
        put(&5_i64).unwrap()
    };
    let _entered = session.enter();
    let kind = |error: Error| error.failure().root().kind;
    assert_eq!(kind(add::remote(&foreign, 1).get_timeout(20.0).unwrap_err()), FailureKind::InvalidReference);
    let inside = read::remote(vec![foreign.clone()]).get_timeout(20.0).unwrap_err();
    assert!(inside.to_string().contains("session"), "{inside}");
    assert!(put(&vec![foreign.clone()]).is_err());
    assert_eq!(foreign.get().unwrap(), 5, "its own session still reads it");
    assert_ne!(foreign.id(), RefId { owner: session.runtime().node(), ..foreign.id() });
    assert_eq!(add::remote(1, 2).get().unwrap(), 3);
}

/// A store full of what somebody looks at: an error in time that says who, and room again afterwards.
fn store_is_full(mode: Mode) {
    let session = mode.start_with(1, |init| init.store_bytes(16 << 20));
    let _entered = session.enter();
    let all: Vec<_> = (0..3).map(|n| put(&Blob::from(vec![n; 5 << 20])).unwrap()).collect();
    let views: Vec<_> = all.iter().map(|blob| blob.get().unwrap()).collect();
    let started = Instant::now();
    let error = put(&Blob::from(vec![9; 5 << 20])).unwrap_err();
    assert_eq!(error.kind(), FailureKind::StoreFull);
    assert!(error.to_string().contains("mapped by client"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    assert!(views.iter().enumerate().all(|(n, blob)| blob[0] == n as u8));
    drop((all, views));
    assert_eq!(put(&Blob::from(vec![9; 5 << 20])).unwrap().get().unwrap()[0], 9);
    session.await_quiet();
}
