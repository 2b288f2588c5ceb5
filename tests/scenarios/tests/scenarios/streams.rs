//! I3: streams, one node.

use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use tharsis::ObjectRefStream;
use tharsis::prelude::*;
use tharsis_scenarios::{Mode, Scenario, await_within, mark, marks, processes, scenarios};

pub const ALL: &[Scenario] = scenarios![
    Both:
        i3_items_come_in_their_order,
        i3_at_most_so_many_items_exist,
        i3_dropping_the_consumer_ends_the_producer,
        i3_an_error_is_the_last_item,
        i3_a_panic_is_the_last_item,
        i3_a_function_that_refuses_to_begin,
        i3_a_stream_is_given_to_a_task,
        i3_items_are_arguments_of_tasks,
        i3_a_stream_is_read_by_futures,
        i3_large_items_stay_in_the_store,
        i3_a_timeout_loses_no_item,
        i3_a_graph_has_a_stream_when_it_is_submitted,
        i3_odd_bounds_are_refused;
    Processes:
        i3_a_lost_producer_delivers_nothing_twice,
        i3_a_lost_producer_without_retries_is_the_last_item,
        i3_a_lost_consumer_ends_the_producer;
];

/// Long enough for what happens at once.
const AT_ONCE: Duration = Duration::from_secs(20);

#[remote]
fn numbers(count: u64) -> impl Iterator<Item = u64> {
    0..count
}

/// Marks a file when it is dropped.
struct Ends(String);

impl Drop for Ends {
    fn drop(&mut self) {
        mark(&self.0);
    }
}

/// Numbers without end; marks a file for each, and another one when it is dropped.
#[remote]
fn counted(made: String, ended: String) -> impl Iterator<Item = u64> {
    let ends = Ends(ended);
    (0..).inspect(move |_| {
        let _kept = &ends;
        mark(&made);
    })
}

#[derive(Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{0} is too much")]
struct TooMuch(u64);

#[remote]
fn up_to(count: u64) -> impl Iterator<Item = Result<u64, TooMuch>> {
    (0..).map(move |n| if n < count { Ok(n) } else { Err(TooMuch(n)) })
}

#[remote]
fn panics_at(count: u64) -> impl Iterator<Item = u64> {
    (0..).inspect(move |n| assert!(*n < count, "{n} is too much"))
}

#[remote]
fn refuses(n: u64) -> Result<impl Iterator<Item = u64>, TooMuch> {
    if n < 10 { Ok(0..n) } else { Err(TooMuch(n)) }
}

fn values(stream: impl Iterator<Item = ObjectRef<u64>>) -> Result<Vec<u64>, Error> {
    stream.map(|item| item.get()).collect()
}

#[remote]
fn sum_of(stream: ObjectRefStream<u64>) -> Result<u64, Error> {
    Ok(values(stream)?.iter().sum())
}

#[remote]
fn add(x: u64, y: u64) -> u64 {
    x + y
}

fn i3_items_come_in_their_order(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    assert!(numbers(3).eq(0..3), "the function stays what it is");
    for count in [0, 1, 15, 16, 17, 300] {
        let mut stream = numbers::remote(count);
        assert_eq!(values(stream.by_ref()).unwrap(), (0..count).collect::<Vec<_>>());
        assert!(stream.next().is_none(), "nor later");
    }
    session.await_quiet();
}

fn i3_at_most_so_many_items_exist(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let (made, ended) = (session.path("made"), session.path("ended"));
    let mut stream = counted::options().unconsumed_max(3).remote(made.clone(), ended.clone());
    for taken in 0..10 {
        await_within(AT_ONCE, "as many as may exist are made", || marks(&made) == taken + 3);
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(marks(&made), taken + 3, "and no more");
        assert_eq!(stream.next().unwrap().get().unwrap(), taken as u64);
    }
    assert_eq!(marks(&ended), 0);
}

fn i3_dropping_the_consumer_ends_the_producer(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let (made, ended) = (session.path("made"), session.path("ended"));
    let mut stream = counted::remote(made, ended.clone());
    let kept = stream.next().unwrap();
    drop(stream);
    await_within(AT_ONCE, "the iterator is dropped", || marks(&ended) == 1);
    assert_eq!(kept.get().unwrap(), 0, "an item outlives its stream");
    drop(kept);
    session.await_quiet();
}

fn i3_an_error_is_the_last_item(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let items: Vec<_> = up_to::remote(20).collect();
    assert_eq!(items.len(), 21);
    assert!((0..20).all(|n| items[n].get().unwrap() == n as u64));
    assert_eq!(items[20].get().unwrap_err().downcast::<TooMuch>(), Some(TooMuch(20)));
    drop(items);
    session.await_quiet();
}

fn i3_a_panic_is_the_last_item(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let items: Vec<_> = panics_at::remote(3).collect();
    assert_eq!(items.len(), 4);
    let error = items[3].get().unwrap_err();
    assert_eq!(error.failure().root().kind, FailureKind::Panicked, "{error}");
    assert!(error.to_string().contains("3 is too much"), "{error}");
    drop(items);
    session.await_quiet();
}

fn i3_a_function_that_refuses_to_begin(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    assert_eq!(values(refuses::remote(3)).unwrap(), [0, 1, 2]);
    let items: Vec<_> = refuses::remote(10).collect();
    assert_eq!(items.len(), 1);
    assert_eq!(items[0].get().unwrap_err().downcast::<TooMuch>(), Some(TooMuch(10)));
    drop(items);
    session.await_quiet();
}

fn i3_a_stream_is_given_to_a_task(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let mut stream = numbers::options().unconsumed_max(4).remote(100);
    let first: u64 = values(stream.by_ref().take(10)).unwrap().iter().sum();
    assert_eq!(first, 45);
    assert_eq!(sum_of::remote(stream).get().unwrap(), 4950 - 45, "it goes on where it was");
    // A stream inside a value that nobody reads ends with the value.
    let (made, ended) = (session.path("made"), session.path("ended"));
    let kept = put(&(1, counted::remote(made, ended.clone()))).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(marks(&ended), 0);
    drop(kept);
    await_within(AT_ONCE, "the iterator is dropped", || marks(&ended) == 1);
    session.await_quiet();
}

fn i3_items_are_arguments_of_tasks(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let sums: Vec<_> = numbers::remote(50).map(|item| add::remote(&item, 1)).collect();
    assert_eq!(get_all(&sums, None).unwrap(), (1..51).collect::<Vec<_>>());
    drop(sums);
    session.await_quiet();
}

#[remote]
async fn sum_by_futures(count: u64) -> Result<u64, Error> {
    let mut stream = numbers::remote(count);
    let mut sum = 0;
    while let Some(item) = futures::StreamExt::next(&mut stream).await {
        sum += item.await?;
    }
    Ok(sum)
}

fn i3_a_stream_is_read_by_futures(mode: Mode) {
    // The task waits for the stream on the only slot.
    let session = mode.start(1);
    let _entered = session.enter();
    assert_eq!(sum_by_futures::remote(100).get().unwrap(), 4950);
    session.await_quiet();
}

#[remote]
fn blobs(count: u8, len: usize) -> impl Iterator<Item = Blob> {
    (0..count).map(move |n| Blob::from(vec![n; len]))
}

fn i3_large_items_stay_in_the_store(mode: Mode) {
    const LEN: usize = 1 << 20;
    let session = mode.start(1);
    let _entered = session.enter();
    let mut most = 0;
    for (n, item) in blobs::options().unconsumed_max(4).remote(40, LEN).enumerate() {
        let blob = item.get().unwrap();
        assert!(blob.len() == LEN && blob.iter().all(|byte| usize::from(*byte) == n));
        most = most.max(session.store().object_count);
    }
    assert!(
        (1..=8).contains(&most),
        "{most} items at a time: four, the one that is read, and what just goes"
    );
    session.await_quiet();
}

#[remote]
fn slow_numbers(ms: u64) -> impl Iterator<Item = u64> {
    (0..3).inspect(move |_| std::thread::sleep(Duration::from_millis(ms)))
}

fn i3_a_timeout_loses_no_item(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let mut stream = slow_numbers::remote(1_000);
    let started = Instant::now();
    assert_eq!(stream.next_timeout(0.05).unwrap_err().kind(), FailureKind::GetTimeout);
    assert_eq!(stream.next_timeout(0.0).unwrap_err().kind(), FailureKind::GetTimeout);
    assert!(started.elapsed() < Duration::from_millis(900), "it gave up in time");
    assert_eq!(stream.next_timeout(-1.0).unwrap_err().kind(), FailureKind::InvalidArgument);
    assert_eq!(values(stream).unwrap(), [0, 1, 2]);
    session.await_quiet();
}

fn i3_odd_bounds_are_refused(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let items: Vec<_> = numbers::options().unconsumed_max(0).remote(3).collect();
    assert_eq!(items.len(), 1);
    let error = items[0].get().unwrap_err();
    assert_eq!(error.failure().root().kind, FailureKind::InvalidArgument, "{error}");
    assert!(error.to_string().contains("unconsumed_max"), "{error}");
    assert_eq!(values(numbers::options().unconsumed_max(1).remote(3)).unwrap(), [0, 1, 2]);
    session.await_quiet();
}

/// Numbers, each with the process that made it.
#[remote]
fn with_pids(count: u64) -> impl Iterator<Item = (u64, u32)> {
    (0..count).map(|n| (n, std::process::id()))
}

fn i3_a_lost_producer_delivers_nothing_twice(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let mut pids = Vec::new();
    let mut numbers = Vec::new();
    for item in with_pids::options().unconsumed_max(8).remote(60) {
        let (n, pid) = item.get().unwrap();
        numbers.push(n);
        if !pids.contains(&pid) {
            pids.push(pid);
        }
        if n == 10 || n == 40 {
            processes::signal(pids[pids.len() - 1], Signal::KILL);
        }
    }
    assert_eq!(numbers, (0..60).collect::<Vec<_>>(), "each item once, in order");
    assert!(pids.len() >= 2, "the killed process made some of them");
    session.await_quiet();
}

fn i3_a_lost_producer_without_retries_is_the_last_item(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let mut stream = with_pids::options().max_retries(0).unconsumed_max(2).remote(1_000_000);
    let (_, pid) = stream.next().unwrap().get().unwrap();
    processes::signal(pid, Signal::KILL);
    let rest: Vec<_> = stream.map(|item| item.get()).collect();
    let (last, before) = rest.split_last().unwrap();
    assert!(before.len() <= 3 && before.iter().all(Result::is_ok), "what was made is given");
    assert_eq!(last.as_ref().unwrap_err().kind(), FailureKind::ActorDied);
    drop(rest);
    session.await_quiet();
}

#[remote]
fn takes_two_and_exits(made: String, ended: String) -> u64 {
    let mut stream = counted::options().unconsumed_max(2).remote(made, ended);
    assert_eq!(values(stream.by_ref().take(2)).unwrap(), [0, 1]);
    std::process::exit(1)
}

fn i3_a_lost_consumer_ends_the_producer(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let (made, ended) = (session.path("made"), session.path("ended"));
    let consumer = takes_two_and_exits::options().max_retries(0).remote(made.clone(), ended.clone());
    assert_eq!(consumer.get().unwrap_err().kind(), FailureKind::WorkerCrashed);
    await_within(AT_ONCE, "the iterator is dropped", || marks(&ended) == 1);
    assert!((2..=4).contains(&marks(&made)));
    drop(consumer);
    session.await_quiet();
}

#[remote]
fn sum_of_some(stream: ObjectRefStream<u64>, count: usize) -> u64 {
    stream.take(count).map(|item| item.get().unwrap()).sum()
}

fn i3_a_graph_has_a_stream_when_it_is_submitted(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    // One that is never submitted ends the stream that it was given.
    let mut graph = TaskGraph::new();
    let _sum = sum_of_some::add_to(&mut graph, numbers::remote(10), 3);
    drop(graph);
    let mut stream = numbers::remote(10);
    assert_eq!(stream.next().unwrap().get().unwrap(), 0);
    let mut graph = TaskGraph::new();
    let sum = sum_of_some::add_to(&mut graph, stream, 3);
    assert_eq!(graph.submit(sum).unwrap().get_timeout(AT_ONCE).unwrap(), 1 + 2 + 3);
    session.await_quiet();
}
