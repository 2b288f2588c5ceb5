//! A: tasks and values.

use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant, SystemTime};
use tharsis::prelude::*;
use tharsis_scenarios::{
    Mode, Scenario, await_file, await_within, mark, marks, open_gate, processes, scenarios,
};
use tharsis_types::limits::INLINE_BYTES_MAX;
use tharsis_types::payload::{FrameLayout, PayloadKind};

pub const ALL: &[Scenario] = scenarios![
    Both:
        a1_inline_boundary,
        a2_top_level_and_nested_references,
        a3_error_chain,
        a4_wait,
        a5_get_with_deadline,
        a6_num_returns_mismatch,
        a7_wide_fan,
        a8_nested_get_on_one_slot,
        a9_fractional_resources,
        a9_unknown_resource_waits_with_a_reason,
        a10_max_calls,
        a11_retry_of_listed_errors;
    Processes:
        a3_failures_name_the_calls_that_have_names,
        a10_retired_workers_hold_nothing,
        a12_crash_retry;
];

#[derive(Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("shard {shard} is broken")]
struct Broken {
    shard: u32,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("not now")]
struct NotNow;

#[remote]
fn bytes_of(len: usize) -> String {
    "x".repeat(len)
}

#[remote]
fn length(text: String) -> usize {
    text.len()
}

#[remote]
fn length_borrowed(texts: Vec<ObjectRef<String>>) -> Result<usize, Error> {
    Ok(texts[0].get()?.len())
}

/// Results around the largest inline size: read by their owner, by a borrower, and as an argument.
fn a1_inline_boundary(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    // The length of a string that is encoded to exactly `frame` bytes; its own length takes two.
    let len_for = |frame: usize| {
        let fits = |len: &usize| layout_of(2 + len) == frame;
        (INLINE_BYTES_MAX / 2..INLINE_BYTES_MAX * 2).find(fits).expect("a length for each frame")
    };
    for (frame, stored) in [(INLINE_BYTES_MAX - 1, 0), (INLINE_BYTES_MAX, 0), (INLINE_BYTES_MAX + 1, 1)] {
        let len = len_for(frame);
        let text = bytes_of::remote(len);
        assert_eq!(length::remote(&text).get().unwrap(), len);
        assert_eq!(session.store().object_count, stored, "a value of {frame} bytes");
        assert_eq!(length_borrowed::remote(vec![text.clone()]).get().unwrap(), len);
        assert_eq!(text.get().unwrap(), "x".repeat(len));
        drop(text);
        session.await_quiet();
    }
}

fn layout_of(in_band_len: usize) -> usize {
    FrameLayout::new(PayloadKind::Serde, 0, in_band_len, []).unwrap().total_len()
}

#[remote]
fn twice(x: i64) -> i64 {
    2 * x
}

#[remote]
fn live(references: Vec<ObjectRef<i64>>) -> Result<i64, Error> {
    let own = references[0].get()?;
    // Forwarded as an argument as well.
    Ok(own + twice::remote(&references[0]).get()?)
}

#[remote]
fn passed_on(references: Vec<ObjectRef<i64>>) -> ObjectRef<i64> {
    references[0].clone()
}

/// A reference as an argument is its value; inside one it stays a live reference.
fn a2_top_level_and_nested_references(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let one = twice::remote(21);
    assert_eq!(twice::remote(&one).get().unwrap(), 84);
    assert_eq!(live::remote(vec![one.clone()]).get().unwrap(), 42 + 84);
    let same = passed_on::remote(vec![one.clone()]).get().unwrap();
    assert_eq!((same.id(), same.get().unwrap()), (one.id(), 42));
    drop((one, same));
    session.await_quiet();
}

#[remote]
fn breaks(shard: u32) -> Result<u32, Broken> {
    Err(Broken { shard })
}

#[remote]
fn panics(shard: u32) -> u32 {
    panic!("shard {shard} is on fire")
}

#[remote]
fn goes_on(shard: u32, marks: String) -> u32 {
    mark(&marks);
    shard
}

/// The name travels with its call, to the worker and back; a call of the same function without one has none.
fn a3_failures_name_the_calls_that_have_names(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let part = breaks::options().name("part 7").remote(7);
    let other = breaks::remote(8);
    let name = |error: Error| error.failure().root().origin.as_ref().map(|origin| origin.task_name.clone());
    assert_eq!(name(part.get().unwrap_err()).as_deref(), Some("part 7"));
    let other_name = name(other.get().unwrap_err()).unwrap_or_default();
    assert!(other_name.ends_with("breaks"), "{other_name}");
    drop((part, other));
}

/// If the first of three fails, the others never run, and its error is what all of them give.
fn a3_error_chain(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let ran = session.path("ran");
    let a = breaks::remote(7);
    let c = goes_on::remote(goes_on::remote(&a, ran.clone()), ran.clone());
    let error = c.get().unwrap_err();
    assert_eq!(
        (error.kind(), error.downcast::<Broken>()),
        (FailureKind::DependencyFailed, Some(Broken { shard: 7 }))
    );
    let root = error.failure().root();
    assert_eq!((root.kind, root.message.as_str()), (FailureKind::UserError, "shard 7 is broken"));
    let origin = root.origin.as_ref().expect("where it failed");
    assert!(origin.task_name.ends_with("breaks") && origin.call_site.contains("values.rs:"), "{origin:?}");
    assert!(origin.node.is_some() && origin.pid.is_some(), "{origin:?}");
    let b = panics::remote(8);
    let error = goes_on::remote(goes_on::remote(&b, ran.clone()), ran.clone()).get().unwrap_err();
    let root = error.failure().root();
    assert_eq!(root.kind, FailureKind::Panicked);
    assert!(root.message.contains("shard 8 is on fire") && root.message.contains("values.rs:"), "{root}");
    assert_eq!(marks(&ran), 0, "nothing runs whose argument failed");
    drop((a, b, c));
    session.await_quiet();
}

#[remote]
fn after(gate: String) -> String {
    await_file(&gate);
    "x".repeat(100_000)
}

/// `wait`: order, duplicates, polling, and no bytes where none are asked for.
fn a4_wait(mode: Mode) {
    let session = mode.start(10);
    let _entered = session.enter();
    let (open, shut) = (session.path("open"), session.path("shut"));
    open_gate(&open);
    let gates = (0..10).map(|n| if [2, 5, 8].contains(&n) { open.clone() } else { shut.clone() });
    let all: Vec<_> = gates.map(after::remote).collect();
    let some = |num_returns, timeout: f64| Wait { num_returns, timeout: Some(timeout.into()), fetch: false };
    let (ready, rest) = wait(&all, some(3, 30.0)).unwrap();
    let ids = |refs: &[ObjectRef<String>]| refs.iter().map(ObjectRef::id).collect::<Vec<_>>();
    assert_eq!(ids(&ready), [all[2].id(), all[5].id(), all[8].id()]);
    let others: Vec<_> = all.iter().filter(|r| !ids(&ready).contains(&r.id())).map(ObjectRef::id).collect();
    assert_eq!(ids(&rest), others, "both parts keep the given order");
    let here = context().unwrap().node();
    assert!(ready.iter().all(|r| tharsis::locations(r).unwrap() == [here]), "what is ready lies somewhere");
    assert!(rest.iter().all(|r| tharsis::locations(r).unwrap().is_empty()), "what is not ready lies nowhere");
    let looked = || {
        let started = Instant::now();
        assert_eq!(wait(&all, some(4, 0.0)).unwrap().0.len(), 3, "a timeout of 0 looks once");
        started.elapsed()
    };
    // The best of a few: other tests share the CPUs.
    let best = (0..5).map(|_| looked()).min().unwrap();
    assert!(best < Duration::from_millis(200), "{best:?}");
    assert_eq!(wait(&all, some(4, 0.05)).unwrap().0.len(), 3);
    let twice = [all[0].clone(), all[0].clone()];
    assert_eq!(wait(&twice, Wait::default()).unwrap_err().kind(), FailureKind::InvalidArgument);
    open_gate(&shut);
    assert_eq!(wait(&all, some(10, 30.0)).unwrap().0.len(), 10);
    assert_eq!(get_all(&all, None).unwrap()[9].len(), 100_000);
}

/// `get` gives up in time, and a later one succeeds.
fn a5_get_with_deadline(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let gate = session.path("gate");
    let slow = after::remote(gate.clone());
    let waited = || {
        let started = Instant::now();
        let error = slow.get_timeout(0.1).unwrap_err();
        assert_eq!(error.kind(), FailureKind::GetTimeout);
        assert!(started.elapsed() >= Duration::from_millis(100));
        started.elapsed()
    };
    // The best of a few: other tests share the CPUs.
    let best = (0..5).map(|_| waited()).min().unwrap();
    assert!(best < Duration::from_millis(200), "{best:?}");
    open_gate(&gate);
    assert_eq!(slow.get().unwrap().len(), 100_000);
}

#[remote]
fn two_values() -> Returns<u32> {
    [1, 2].into_iter().collect()
}

/// One value too few: every reference says so.
fn a6_num_returns_mismatch(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let three = two_values::options().num_returns(3).remote();
    assert_eq!(three.len(), 3);
    let errors: Vec<_> = three.iter().map(|r| r.get().unwrap_err()).collect();
    assert!(errors.iter().all(|e| e.kind() == FailureKind::ReturnsMismatch && *e == errors[0]), "{errors:?}");
    let text = errors[0].to_string();
    assert!(text.contains("num_returns is 3") && text.contains("2 values"), "{text}");
    assert_eq!(get_all(&two_values::options().num_returns(2).remote(), None).unwrap(), [1, 2]);
}

#[remote]
fn total(values: Values<i64>) -> i64 {
    values.iter().sum()
}

#[remote]
fn numbers(count: u32) -> Returns<u32> {
    (0..count).collect()
}

/// Ten thousand arguments, three thousand returns, ten thousand stored objects in one `get`.
fn a7_wide_fan(mode: Mode) {
    let session = mode.start_with(2, |init| init.store_bytes(256 << 20));
    let _entered = session.enter();
    let many: Vec<_> = (0..10_000).map(|n| twice::remote(n)).collect();
    assert_eq!(total::remote(&many).get().unwrap(), 2 * (0..10_000).sum::<i64>());
    let returns = numbers::options().num_returns(3_000).remote(3_000);
    assert_eq!(get_all(&returns, None).unwrap(), (0..3_000).collect::<Vec<_>>());
    let blobs: Vec<_> = (0..10_000_u32).map(|n| put(&Blob::from(vec![n as u8; 5_000])).unwrap()).collect();
    let nested = put(&blobs).unwrap();
    drop(blobs);
    let blobs = nested.get().unwrap();
    let values = get_all(&blobs, Some(30.0.into())).unwrap();
    assert!(values.iter().enumerate().all(|(n, blob)| blob[..] == vec![n as u8; 5_000][..]));
    drop((many, returns, nested, blobs, values));
    session.await_quiet();
}

#[remote]
fn depth(n: u32) -> Result<u32, Error> {
    if n == 0 { Ok(0) } else { Ok(depth::remote(n - 1).get()? + 1) }
}

#[remote]
async fn depth_async(n: u32) -> Result<u32, Error> {
    if n == 0 { Ok(0) } else { Ok(depth_async::remote(n - 1).await? + 1) }
}

/// Twenty tasks deep on one CPU, each waiting for the next.
fn a8_nested_get_on_one_slot(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    assert_eq!(depth::remote(20).get().unwrap(), 20);
    assert_eq!(depth_async::remote(5).get().unwrap(), 5);
    let workers = session.report().worker_count;
    assert!(workers <= 22, "{workers} workers for a chain of 21 tasks");
    session.await_quiet();
    session.await_report("surplus workers end", |r| r.worker_count <= 1);
}

#[remote(num_cpus = 0.25)]
fn stamped(ms: u64) -> (u128, u128) {
    let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos();
    let start = now();
    std::thread::sleep(Duration::from_millis(ms));
    (start, now())
}

/// Quarters of one CPU: four at a time and no more.
fn a9_fractional_resources(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let all: Vec<_> = (0..8).map(|_| stamped::remote(150)).collect();
    let spans = get_all(&all, None).unwrap();
    let overlap = |at: u128| spans.iter().filter(|(start, end)| *start <= at && at < *end).count();
    let most = spans.iter().map(|(start, _)| overlap(*start)).max().unwrap();
    assert!((2..=4).contains(&most), "{most} at a time: {spans:?}");
    drop(all);
    session.await_quiet();
}

#[remote(resources(tpu = 1.0))]
fn on_tpu() -> u32 {
    1
}

/// A value that no node has is waited for, visibly. (A node that brings it is another test's.)
fn a9_unknown_resource_waits_with_a_reason(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let waiting = on_tpu::remote();
    let report = session.await_report("it is listed", |r| !r.pending.is_empty());
    let row = &report.pending[0];
    assert!(row.name.ends_with("on_tpu") && row.count == 1 && row.reason.contains("tpu"), "{row:?}");
    assert_eq!(waiting.get_timeout(0.05).unwrap_err().kind(), FailureKind::GetTimeout);
    assert_eq!(twice::remote(1).get().unwrap(), 2, "others are not held up");
    cancel(&waiting, false, false).unwrap();
    assert_eq!(waiting.get_timeout(10.0).unwrap_err().kind(), FailureKind::Cancelled);
    drop(waiting);
    session.await_quiet();
}

/// The node that serves: a process, or a thread of the program.
fn worker_name() -> String {
    format!("{} {:?}", std::process::id(), std::thread::current().id())
}

#[remote(max_calls = 2)]
fn served_by() -> String {
    worker_name()
}

/// Five calls, two for each worker.
fn a10_max_calls(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let mut names: Vec<_> = (0..5).map(|_| served_by::remote().get().unwrap()).collect();
    names.dedup();
    assert_eq!(names.len(), 3, "{names:?}");
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 3, "a retired worker came back");
}

static HOARD: std::sync::Mutex<Vec<Blob>> = std::sync::Mutex::new(Vec::new());

#[remote(max_calls = 2)]
fn hoard(blob: Blob) -> u32 {
    HOARD.lock().unwrap().push(blob);
    std::process::id()
}

/// References that a worker kept go when it is retired.
fn a10_retired_workers_hold_nothing(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let blob = put(&Blob::from(vec![7; 200_000])).unwrap();
    let first = hoard::remote(&blob).get().unwrap();
    drop(blob);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(session.store().object_count, 1, "the worker still has it");
    assert_eq!(hoard::remote(Blob::default()).get().unwrap(), first);
    session.await_quiet();
    await_within(Duration::from_secs(5), "the worker ends", || !processes::runs(first));
}

#[remote]
fn fails_until(attempt: u32, marks: String) -> Result<u32, NotNow> {
    mark(&marks);
    let now = context().unwrap().attempt();
    if now < attempt { Err(NotNow) } else { Ok(now) }
}

#[remote(max_retries = 2, retry_on(NotNow))]
fn fails_otherwise(marks: String) -> Result<u32, Broken> {
    mark(&marks);
    Err(Broken { shard: 1 })
}

/// Listed errors are retried as often as allowed, others not at all.
fn a11_retry_of_listed_errors(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let ran = |name: &str| session.path(name);
    let listed = fails_until::options().max_retries(2).retry_on::<NotNow>();
    assert_eq!(listed.remote(2, ran("listed")).get().unwrap(), 2);
    assert_eq!(marks(&ran("listed")), 3);
    let never =
        fails_until::options().max_retries(2).retry_on::<NotNow>().remote(9, ran("never")).get().unwrap_err();
    assert_eq!((never.downcast::<NotNow>(), marks(&ran("never"))), (Some(NotNow), 3));
    assert_eq!(never.failure().origin.as_ref().unwrap().attempt, 2);
    let other = fails_otherwise::remote(ran("other")).get().unwrap_err();
    assert_eq!((other.downcast::<Broken>(), marks(&ran("other"))), (Some(Broken { shard: 1 }), 1));
    let plain = fails_until::options().max_retries(2).remote(1, ran("plain")).get().unwrap_err();
    assert_eq!((plain.kind(), marks(&ran("plain"))), (FailureKind::UserError, 1));
}

#[remote(max_retries = 2)]
fn killed_once(marks: String) -> u32 {
    mark(&marks);
    let attempt = context().unwrap().attempt();
    if attempt == 0 {
        processes::signal(std::process::id(), rustix::process::Signal::KILL);
        await_file("never made");
    }
    attempt
}

/// A worker that is killed in the middle of a task: the task runs once more.
fn a12_crash_retry(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let ran = session.path("ran");
    assert_eq!(killed_once::remote(ran.clone()).get().unwrap(), 1, "the second attempt");
    assert_eq!(marks(&ran), 2);
    session.await_quiet();
}
