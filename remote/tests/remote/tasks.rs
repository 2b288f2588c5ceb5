//! Calls, values and waiting, against a node in a thread.

use crate::loopback::{Plan, start};
use serde::{Deserialize, Serialize};
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tharsis_macros::remote;
use tharsis_remote::*;

#[remote]
fn add(x: i64, y: i64) -> i64 {
    x + y
}

#[remote]
async fn add_async(x: i64, y: i64) -> i64 {
    x + y
}

#[remote]
fn total(values: Values<i64>) -> i64 {
    values.iter().sum()
}

#[remote]
fn shout(text: String) -> String {
    text.to_uppercase()
}

#[remote]
fn doubled(array: Array<f64>) -> Array<f64> {
    (array.into_owned() * 2.0).into()
}

#[derive(Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("no shard {shard}")]
struct NoShard {
    shard: u32,
}

#[remote(max_retries = 2, retry_on(NoShard), resources(tpu = 0.5))]
fn load(shard: u32) -> Result<String, NoShard> {
    if shard == 7 { Err(NoShard { shard }) } else { Ok(format!("shard {shard}")) }
}

#[remote]
fn panics(x: i64) -> i64 {
    assert_eq!(x, 0, "x must be nothing");
    x
}

#[remote(num_returns = 2)]
fn divide(a: i64, b: i64) -> Result<(i64, i64), String> {
    if b == 0 { Err("division by zero".to_owned()) } else { Ok((a / b, a % b)) }
}

#[remote]
fn count_to(n: u32) -> Returns<u32> {
    (0..n).collect()
}

#[remote]
fn depth(n: u32) -> Result<u32> {
    if n == 0 { Ok(0) } else { Ok(depth::remote(n - 1).get()? + 1) }
}

#[remote]
async fn depth_async(n: u32) -> Result<u32> {
    if n == 0 { Ok(0) } else { Ok(depth_async::remote(n - 1).await? + 1) }
}

#[remote]
fn live(reference: ObjectRef<i64>, all: Vec<ObjectRef<i64>>) -> Result<i64> {
    Ok(reference.get()? + get_all(&all, None)?.iter().sum::<i64>())
}

#[remote]
fn forward(reference: ObjectRef<i64>) -> ObjectRef<i64> {
    reference
}

#[remote]
fn sleep_ms(ms: u64) -> u64 {
    std::thread::sleep(Duration::from_millis(ms));
    ms
}

#[remote]
fn until_cancelled() -> bool {
    let context = context().unwrap();
    while !context.is_cancelled() {
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

static KEPT: Mutex<Vec<Blob>> = Mutex::new(Vec::new());

#[remote]
fn keep(blob: Blob) -> usize {
    let len = blob.len();
    KEPT.lock().unwrap().push(blob);
    len
}

#[test]
fn calls_take_values_and_references() {
    let node = start(Plan::default());
    let _entered = node.enter();
    assert_eq!(add(1, 2), 3);
    let a = add::remote(1, 2);
    let b = add::remote(&a, 10);
    assert_eq!(add::remote(b.clone(), a).get().unwrap(), 16);
    assert_eq!(b.get().unwrap(), 13);
    assert_eq!(add_async::remote(2, &b).get().unwrap(), 15);
    assert_eq!(shout::remote("hi").get().unwrap(), "HI");
    assert_eq!(shout::options().num_cpus(0.5).name("call").remote("x".to_owned()).get().unwrap(), "X");
    let many: Vec<_> = (0..1000).map(|i| add::remote(i, 0)).collect();
    assert_eq!(total::remote(&many).get().unwrap(), 499_500);
    assert_eq!(get_all(&many, None).unwrap(), (0..1000).collect::<Vec<_>>());
}

#[test]
fn a_parameter_that_is_a_reference_gets_a_live_one() {
    let node = start(Plan { workers: 2, slots: 1, ahead: 4, ..Plan::default() });
    let _entered = node.enter();
    let (one, two) = (add::remote(1, 0), put(&2_i64).unwrap());
    assert_eq!(live::remote(&one, vec![two.clone(), one.clone()]).get().unwrap(), 4);
    let same = forward::remote(&two).get().unwrap();
    assert_eq!(same.id(), two.id());
    assert_eq!(same.get().unwrap(), 2);
}

#[test]
fn values_of_any_size_come_back() {
    let node = start(Plan::default());
    let _entered = node.enter();
    for len in [0, 1, 1000, 4000, 4095, 4096, 5000, 300_000, 3_000_000, 20_000_000] {
        let blob = Blob::from((0..len).map(|i| i as u8).collect::<Vec<_>>());
        let reference = put(&blob).unwrap();
        assert!(reference.get().unwrap() == blob, "{len} bytes, own put");
        assert_eq!(keep::remote(&reference).get().unwrap(), len);
        assert_eq!(keep::remote(blob.clone()).get().unwrap(), len);
        let array =
            Array::from(ndarray::Array::from_shape_fn((len / 10, 2), |(i, j)| (i + j) as f64).into_dyn());
        let back = doubled::remote(array.clone()).get().unwrap();
        assert!(back.into_owned() == array.into_owned() * 2.0, "array of {len}");
    }
    let kept = std::mem::take(&mut *KEPT.lock().unwrap());
    assert!(kept.iter().all(|blob| blob.iter().enumerate().all(|(i, b)| *b == i as u8)));
}

#[test]
fn an_argument_that_is_kept_takes_a_reference() {
    let node = start(Plan::default());
    let _entered = node.enter();
    let before = node.counts.holds.load(Ordering::SeqCst);
    let blob = put(&Blob::from(vec![1; 100_000])).unwrap();
    keep::remote(&blob).get().unwrap();
    assert!(node.counts.holds.load(Ordering::SeqCst) > before);
    let releases = node.counts.releases.load(Ordering::SeqCst);
    KEPT.lock().unwrap().clear();
    wait_until(|| node.counts.releases.load(Ordering::SeqCst) > releases);
}

#[test]
fn no_wish_for_a_value_overtakes_that_it_was_let_go_of() {
    let node = start(Plan { asks_back: Some(40), ..Plan::default() });
    let entered = node.enter();
    let reference = doubled::remote(Array::from(ndarray::Array::zeros(10_000).into_dyn()));
    reference.get().unwrap();
    let started = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let _entered = node.enter();
                while node.counts.unmapped.load(Ordering::SeqCst) < 200 {
                    assert!(started.elapsed() < Duration::from_secs(20), "it is not asked for often enough");
                    assert_eq!(reference.get().unwrap().len(), 10_000);
                    // Most of the time the value has no reader, so a request to unmap it is granted inside a
                    // dispatch.
                    std::thread::sleep(Duration::from_micros(50));
                }
            });
        }
    });
    drop(entered);
    assert_eq!(node.counts.overtaken.load(Ordering::SeqCst), 0);
}

fn wait_until(is_true: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_true() {
        assert!(started.elapsed() < Duration::from_secs(10), "it does not come true");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn errors_keep_their_type_and_place() {
    let node = start(Plan::default());
    let _entered = node.enter();
    assert_eq!(load::remote(1).get().unwrap(), "shard 1");
    let failed = load::remote(7);
    let error = failed.get().unwrap_err();
    assert_eq!(
        (error.kind(), error.downcast::<NoShard>()),
        (FailureKind::UserError, Some(NoShard { shard: 7 }))
    );
    let origin = error.failure().origin.clone().unwrap();
    assert!(origin.call_site.contains("tasks.rs") && origin.task_name.ends_with("load"), "{origin:?}");
    let after = shout::remote(&failed).get().unwrap_err();
    assert_eq!((after.kind(), after.downcast()), (FailureKind::DependencyFailed, Some(NoShard { shard: 7 })));
    let panicked = panics::remote(3).get().unwrap_err();
    assert_eq!(panicked.kind(), FailureKind::Panicked);
    assert!(panicked.to_string().contains("x must be nothing") && panicked.to_string().contains("tasks.rs:"));
    assert_eq!(panics::remote(0).get().unwrap(), 0, "the worker goes on");
    let refused = add::options().num_cpus(-1.0).remote(1, 2).get().unwrap_err();
    assert_eq!(refused.kind(), FailureKind::InvalidArgument);
}

#[test]
fn several_returns() {
    let node = start(Plan::default());
    let _entered = node.enter();
    let (quotient, rest) = divide::remote(17, 5);
    assert_eq!((quotient.get().unwrap(), rest.get().unwrap()), (3, 2));
    let (quotient, rest) = divide::remote(1, 0);
    assert!(quotient.get().unwrap_err().to_string().contains("division by zero"));
    assert_eq!(rest.get().unwrap_err().downcast::<String>(), Some("division by zero".to_owned()));
    let three = count_to::options().num_returns(3).remote(3);
    assert_eq!(get_all(&three, None).unwrap(), [0, 1, 2]);
    for reference in count_to::options().num_returns(3).remote(2) {
        assert_eq!(reference.get().unwrap_err().kind(), FailureKind::ReturnsMismatch);
    }
    let many = count_to::options().num_returns(3000).remote(3000);
    assert_eq!(get_all(&many, None).unwrap().len(), 3000);
}

#[test]
fn nested_calls_on_one_slot() {
    let node = start(Plan { workers: 24, slots: 1, ahead: 3, ..Plan::default() });
    let _entered = node.enter();
    assert_eq!(depth::remote(20).get().unwrap(), 20);
    assert_eq!(depth_async::remote(20).get().unwrap(), 20);
    assert!(node.counts.blocked.load(Ordering::SeqCst) >= 20);
}

#[test]
fn timeouts_and_wait() {
    let node = start(Plan { workers: 4, slots: 4, ahead: 1, ..Plan::default() });
    let _entered = node.enter();
    let slow = sleep_ms::remote(3_000);
    let started = Instant::now();
    assert_eq!(slow.get_timeout(0.05).unwrap_err().kind(), FailureKind::GetTimeout);
    // Far from both ends: other tests share the CPUs.
    assert!(started.elapsed() < Duration::from_millis(1_500), "it gave up long before the value was there");
    assert_eq!(slow.get_timeout(0.0).unwrap_err().kind(), FailureKind::GetTimeout);
    for bad in [-1.0, f64::NAN] {
        assert_eq!(slow.get_timeout(bad).unwrap_err().kind(), FailureKind::InvalidArgument);
    }
    let quick: Vec<_> = (0..3).map(|i| sleep_ms::remote(i)).collect();
    let all = [slow.clone(), quick[2].clone(), quick[0].clone(), quick[1].clone()];
    let (ready, rest) = wait(&all, Wait { num_returns: 3, ..Wait::default() }).unwrap();
    assert_eq!(
        ready.iter().map(ObjectRef::id).collect::<Vec<_>>(),
        all[1..].iter().map(ObjectRef::id).collect::<Vec<_>>()
    );
    assert_eq!(rest[0].id(), slow.id());
    let polled = Wait { num_returns: 4, timeout: Some(0.0.into()), fetch: false };
    assert_eq!(wait(&all, polled).unwrap().0.len(), 3);
    let none = wait(&all[..1], Wait { timeout: Some(0.01.into()), ..Wait::default() }).unwrap();
    assert_eq!((none.0.len(), none.1.len()), (0, 1));
    assert_eq!(
        wait(&all, Wait { num_returns: 5, ..Wait::default() }).unwrap_err().kind(),
        FailureKind::InvalidArgument
    );
    let twice = [slow.clone(), slow.clone()];
    assert_eq!(wait(&twice, Wait::default()).unwrap_err().kind(), FailureKind::InvalidArgument);
    assert_eq!(slow.get().unwrap(), 3_000);
}

#[test]
fn fetch_false_pulls_no_bytes() {
    let node = start(Plan::default());
    let _entered = node.enter();
    let large = doubled::remote(Array::from(ndarray::Array::zeros(100_000).into_dyn()));
    let options = Wait { fetch: false, ..Wait::default() };
    wait(std::slice::from_ref(&large), options).unwrap();
    assert_eq!(node.counts.fetches.load(Ordering::SeqCst), 0);
    assert_eq!(large.get().unwrap().len(), 100_000);
    assert_eq!(node.counts.fetches.load(Ordering::SeqCst), 1);
}

#[test]
fn references_are_awaited() {
    let node = start(Plan { workers: 2, slots: 2, ahead: 4, ..Plan::default() });
    let _entered = node.enter();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let references: Vec<_> = (0..100).map(|i| add::remote(i, 1)).collect();
        for (i, reference) in references.iter().enumerate() {
            assert_eq!(reference.await.unwrap(), i as i64 + 1);
        }
        let slow = sleep_ms::remote(100);
        assert!(tokio::time::timeout(Duration::from_millis(10), &slow).await.is_err());
        assert_eq!(slow.await.unwrap(), 100);
    });
}

#[test]
fn many_threads_wait_at_once() {
    let node = start(Plan { workers: 2, slots: 2, ahead: 16, ..Plan::default() });
    std::thread::scope(|scope| {
        for t in 0..8 {
            let node = &node;
            scope.spawn(move || {
                let _entered = node.enter();
                for i in 0..300 {
                    assert_eq!(add::remote(t, i).get().unwrap(), t + i);
                }
            });
        }
    });
}

#[test]
fn references_refuse_other_ways_out() {
    let node = start(Plan::default());
    let _entered = node.enter();
    let reference = add::remote(1, 2);
    let refused = serde_json::to_string(&reference).unwrap_err().to_string();
    assert!(refused.contains("references can only travel in task arguments"), "{refused}");
}

#[test]
fn every_reference_is_released() {
    let node = start(Plan { workers: 1, slots: 1, ahead: 64, ..Plan::default() });
    let _entered = node.enter();
    let references: Vec<_> = (0..5000).map(|i| add::remote(i, 1)).collect();
    let copies = references.clone();
    get_all(&references, None).unwrap();
    drop(references);
    std::thread::sleep(Duration::from_millis(10));
    assert_eq!(node.counts.releases.load(Ordering::SeqCst), 0);
    drop(copies);
    wait_until(|| node.counts.releases.load(Ordering::SeqCst) == 5000);
}

#[test]
fn a_cancelled_task_can_know() {
    let node = start(Plan::default());
    let _entered = node.enter();
    let reference = until_cancelled::remote();
    std::thread::sleep(Duration::from_millis(20));
    cancel(&reference, false, false).unwrap();
    assert!(reference.get_timeout(10.0).unwrap());
}

/// Waits for a value that does not come, on threads of its own and then by itself; returns what came instead.
#[remote]
fn waits(threads: u64, absent: ObjectRef<bool>) -> Result<Vec<String>> {
    let context = context()?;
    let kind_of = |error: Error| error.kind().to_string();
    let mut kinds = std::thread::scope(|scope| {
        let in_thread = || {
            let _entered = context.enter();
            kind_of(absent.get().unwrap_err())
        };
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(in_thread)).collect();
        all.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    kinds.push(kind_of(wait(std::slice::from_ref(&absent), Wait::default()).unwrap_err()));
    Ok(kinds)
}

#[remote]
async fn awaits(absent: ObjectRef<bool>) -> Vec<String> {
    absent.await.err().iter().map(|error| error.kind().to_string()).collect()
}

/// Goes on at failures, one call at a time: numbers of calls and of values.
#[remote]
fn goes_on(way: u32, absent: ObjectRef<bool>) -> [usize; 2] {
    let (mut calls, items) = (0, 0..1_000_000_u32);
    let mut pool = ActorPool::new([()]);
    let mut call = |_: u32| {
        calls += 1;
        absent.clone()
    };
    let values = match way {
        0 => map(items, 1, call).count(),
        1 => map_as_completed(items, 1, call).count(),
        2 => map_speculating(items, 1, 2.0, call).count(),
        3 => pool.map(items, |(), item| call(item)).count(),
        _ => pool.map_as_completed(items, |(), item| call(item)).count(),
    };
    [calls, values]
}

#[test]
fn a_cancelled_task_that_goes_on_at_failures_makes_no_calls_any_more() {
    let node = start(Plan { workers: 2, slots: 2, ahead: 1, ..Plan::default() });
    let _entered = node.enter();
    let absent = until_cancelled::remote();
    let mut ended = Vec::new();
    for way in 0..5 {
        let before = node.counts.blocked.load(Ordering::SeqCst);
        let task = goes_on::remote(way, absent.clone());
        wait_until(|| node.counts.blocked.load(Ordering::SeqCst) > before);
        cancel(&task, false, false).unwrap();
        ended.push(task.get_timeout(10.0));
    }
    cancel(&absent, false, false).unwrap();
    assert!(absent.get_timeout(10.0).unwrap());
    for (way, counts) in ended.into_iter().enumerate() {
        assert_eq!(counts.unwrap(), [1, 2], "{way}: one that waits, and one that is not called");
    }
}

#[test]
fn a_cancelled_task_waits_for_nothing_any_more() {
    let node = start(Plan { workers: 2, slots: 2, ahead: 1, ..Plan::default() });
    let _entered = node.enter();
    let absent = until_cancelled::remote();
    let cancelled = |task: &ObjectRef<Vec<String>>, before: usize| {
        wait_until(|| node.counts.blocked.load(Ordering::SeqCst) > before);
        cancel(task, false, false).unwrap();
        task.get_timeout(10.0)
    };
    let blocked = || node.counts.blocked.load(Ordering::SeqCst);
    let mut ended = Vec::new();
    for threads in [1, 3] {
        let before = blocked();
        ended.push(cancelled(&waits::remote(threads, absent.clone()), before));
    }
    let before = blocked();
    ended.push(cancelled(&awaits::remote(absent.clone()), before));
    let is_there = absent.is_ready();
    // Looked at when nothing waits any more: a worker that does keeps the test from its end.
    cancel(&absent, false, false).unwrap();
    assert!(absent.get_timeout(10.0).unwrap() && !is_there);
    for (ended, count) in ended.into_iter().zip([2, 4, 1]) {
        assert_eq!(ended.unwrap(), vec!["Cancelled".to_owned(); count]);
    }
}

#[test]
fn nothing_hangs_when_the_node_goes() {
    let node = start(Plan::default());
    let client = node.driver.clone();
    let _entered = node.enter();
    let pending = sleep_ms::remote(200);
    let waiting = {
        let (client, pending) = (client.clone(), pending.clone());
        std::thread::spawn(move || {
            let _bound = current::bind(client);
            pending.get()
        })
    };
    std::thread::sleep(Duration::from_millis(20));
    client.close();
    assert_eq!(waiting.join().unwrap().unwrap_err().kind(), FailureKind::Shutdown);
    assert_eq!(add::remote(1, 2).get().unwrap_err().kind(), FailureKind::Shutdown);
    assert_eq!(put(&1).unwrap_err().kind(), FailureKind::Shutdown);
}

/// Between the claim and the submission the owner does not know what has the name: a node that looks for
/// names of what has ended removes it.
#[test]
fn a_name_that_was_removed_before_the_submission_is_claimed_again() {
    let node = start(Plan { workers: 0, forgets_names: true, ..Plan::default() });
    let _entered = node.enter();
    let group = placement_group([Bundle::new().num_cpus(1.0)]);
    let (made, found) = (group.create_named("g"), PlacementGroup::find("g"));
    assert!(made.is_ok(), "{:?}", made.err());
    assert_eq!(found.map(drop).unwrap_err().kind(), FailureKind::GroupNotFound, "it is forgotten");
}

#[test]
fn without_a_runtime_a_call_says_so() {
    let error = add::remote(1, 2).get().unwrap_err();
    assert!(error.to_string().contains("tharsis::init()"), "{error}");
}

#[test]
fn small_puts_share_regions() {
    let node = start(Plan::default());
    let _entered = node.enter();
    let references: Vec<_> = (0..2000).map(|i| put(&Blob::from(vec![i as u8; 5000])).unwrap()).collect();
    for (i, reference) in references.iter().enumerate() {
        assert_eq!(reference.get().unwrap()[..], vec![i as u8; 5000][..]);
    }
    assert!(node.counts.regions.load(Ordering::SeqCst) < 10);
}
