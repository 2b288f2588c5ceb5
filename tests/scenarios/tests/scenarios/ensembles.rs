//! Actors that work together: pools, queues, and groups with collective operations.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use tharsis::collective::{self, CollectiveError, Member, Reduce};
use tharsis::prelude::*;
use tharsis::{ActorPool, Queue};
use tharsis_scenarios::{Mode, Scenario, await_file, open_gate, scenarios};

pub const ALL: &[Scenario] = scenarios![
    Both:
        a_pool_keeps_the_order_and_every_actor_busy,
        a_lost_item_of_a_pool_is_its_value,
        a_queue_is_first_in_first_out_and_has_a_bound,
        a_queue_carries_references,
        many_producers_and_consumers_share_a_queue,
        members_reduce_small_and_large_arrays,
        members_exchange_values,
        a_member_that_does_not_come_fails_the_others,
        members_that_differ_are_told;
];

struct Doubler {
    calls: u64,
}

#[actor]
impl Doubler {
    fn new() -> Self {
        Self { calls: 0 }
    }

    fn double(&mut self, x: u64) -> u64 {
        self.calls += 1;
        2 * x
    }

    fn double_after(&mut self, x: u64, gate: String) -> u64 {
        await_file(&gate);
        self.double(x)
    }

    fn odd(&mut self, x: u64) -> Result<u64, String> {
        if x % 2 == 1 { Ok(x) } else { Err(format!("{x} is even")) }
    }

    fn calls(&self) -> u64 {
        self.calls
    }
}

fn doublers(count: usize) -> ActorPool<DoublerHandle> {
    ActorPool::new((0..count).map(|_| Doubler::remote()))
}

fn a_pool_keeps_the_order_and_every_actor_busy(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let mut pool = doublers(3);
    let values: Vec<u64> = pool.map(0..100, |actor, x| actor.double(x)).map(Result::unwrap).collect();
    assert_eq!(values, (0..100).map(|x| 2 * x).collect::<Vec<_>>());
    let mut places: Vec<_> = pool
        .map_as_completed(0..100, |actor, x| actor.double(x))
        .map(|(place, x)| (place, x.unwrap()))
        .collect();
    places.sort_unstable();
    assert_eq!(places, (0..100).map(|x| (x, 2 * x as u64)).collect::<Vec<_>>());
    // One actor waits: the others do all the rest.
    let gate = session.path("gate");
    let mut values = pool.map_as_completed(0..50, |actor, x| match x {
        0 => actor.double_after(x, gate.clone()),
        _ => actor.double(x),
    });
    let others: BTreeSet<usize> = values.by_ref().take(49).map(|(place, _)| place).collect();
    assert!(!others.contains(&0) && others.len() == 49);
    open_gate(&gate);
    assert_eq!(values.next().map(|(place, x)| (place, x.unwrap())), Some((0, 0)));
    assert!(values.next().is_none());
    drop(values);
    let calls: u64 = pool.into_actors().iter().map(|actor| actor.calls().get().unwrap()).sum();
    assert_eq!(calls, 250);
    assert_eq!(doublers(0).map(0..3, |actor, x| actor.double(x)).count(), 0, "nobody is there to call");
    session.await_quiet();
}

fn a_lost_item_of_a_pool_is_its_value(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let mut pool = doublers(2);
    let values: Vec<_> = pool.map(0..10, |actor, x| actor.odd(x)).collect();
    assert!(values.iter().enumerate().all(|(x, value)| value.is_ok() == (x % 2 == 1)), "{values:?}");
}

fn a_queue_is_first_in_first_out_and_has_a_bound(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let queue = Queue::new(3);
    for n in 0..3_u64 {
        queue.put(&n).unwrap();
    }
    assert!(!queue.put_timeout(&3, Duration::from_millis(50)).unwrap(), "three is all");
    assert_eq!(queue.len().unwrap(), 3);
    assert_eq!((0..3).map(|_| queue.get().unwrap()).collect::<Vec<_>>(), [0, 1, 2]);
    let started = Instant::now();
    assert_eq!(queue.get_timeout(Duration::from_millis(50)).unwrap(), None);
    assert!(started.elapsed() >= Duration::from_millis(50));
    assert_eq!((queue.try_get().unwrap(), queue.is_empty().unwrap()), (None, true));
    drop(queue);
    session.await_quiet();
}

fn a_queue_carries_references(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let queue = Queue::<u64>::new(0);
    let gate = session.path("gate");
    queue.put_ref(&Doubler::remote().double_after(4, gate.clone())).unwrap();
    queue.put(&7).unwrap();
    open_gate(&gate);
    assert_eq!((queue.get().unwrap(), queue.get().unwrap()), (8, 7));
    let error = Queue::new(0).put(&put(&1_u64).unwrap()).unwrap_err();
    assert_eq!(error.kind(), FailureKind::InvalidArgument, "{error}");
}

#[remote]
fn produce(queue: Queue<u64>, from: u64, to: u64) -> Result<(), Error> {
    (from..to).try_for_each(|n| queue.put(&n))
}

#[remote]
fn consume(queue: Queue<u64>, count: u64) -> Result<Vec<u64>, Error> {
    (0..count).map(|_| queue.get()).collect()
}

fn many_producers_and_consumers_share_a_queue(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let queue = Queue::new(5);
    // All of them wait for each other at times, on two slots.
    let taken: Vec<_> = (0..4).map(|_| consume::remote(queue.clone(), 50)).collect();
    let put: Vec<_> = (0..4).map(|at| produce::remote(queue.clone(), 50 * at, 50 * at + 50)).collect();
    get_all(&put, None).unwrap();
    let taken = get_all(&taken, None).unwrap();
    // Of one producer, each consumer sees the items in order.
    for of_one in &taken {
        for producer in 0..4 {
            let own: Vec<_> = of_one.iter().filter(|n| **n / 50 == producer).collect();
            assert!(own.is_sorted(), "{own:?}");
        }
    }
    let all: BTreeSet<u64> = taken.into_iter().flatten().collect();
    assert_eq!(all, (0..200).collect());
}

struct Worker {
    member: Member,
}

/// Sums, largest values, and the own part of the sums.
type Found = (Vec<f64>, Vec<i64>, Vec<f64>);

#[actor]
impl Worker {
    fn new(member: Member) -> Self {
        Self { member }
    }

    fn wait_at_most(&mut self, seconds: f64) {
        self.member.set_timeout(Duration::from_secs_f64(seconds));
    }

    /// Several operations on arrays of this length, whose element is its place times the rank plus one.
    fn program(&mut self, len: usize) -> Result<Found, Error> {
        let rank = self.member.rank();
        let own: Vec<f64> = (0..len).map(|place| (place * (rank + 1)) as f64).collect();
        let counts: Vec<i64> = own.iter().map(|value| *value as i64).collect();
        let sum = self.member.allreduce(&own, Reduce::Sum)?;
        let largest = self.member.allreduce(&counts, Reduce::Max)?;
        self.member.barrier()?;
        let part = self.member.reduce_scatter(&own, Reduce::Sum)?;
        Ok((sum, largest, part))
    }

    fn exchange(&mut self, root: usize) -> Result<(String, Vec<usize>), Error> {
        let rank = self.member.rank();
        let own = format!("from {rank}");
        let text = self.member.broadcast(root, (rank == root).then_some(&own))?;
        Ok((text, self.member.allgather(&(10 * rank))?))
    }

    /// A broadcast of member 0, which brings nothing, and one that goes well.
    fn nothing(&mut self) -> Result<String, Error> {
        let error = self.member.broadcast::<u64>(0, None).unwrap_err();
        let rank = self.member.rank();
        let value = self.member.broadcast(1, (rank == 1).then_some(&error.to_string()))?;
        if error.kind() == FailureKind::InvalidArgument { Ok(value) } else { Err(error) }
    }

    fn barrier(&mut self) -> Result<(), Error> {
        self.member.barrier()
    }

    fn sum(&mut self, len: usize) -> Result<Vec<f64>, Error> {
        self.member.allreduce(&vec![1.0; len], Reduce::Sum)
    }
}

fn workers(count: usize) -> Vec<WorkerHandle> {
    collective::group(count).unwrap().into_iter().map(Worker::remote).collect()
}

fn members_reduce_small_and_large_arrays(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    for (size, len) in [(1, 5), (3, 0), (3, 2), (3, 1_000), (3, 30_001)] {
        let workers = workers(size);
        let calls: Vec<_> = workers.iter().map(|worker| worker.program(len)).collect();
        let found = get_all(&calls, None).unwrap();
        let times = (size * (size + 1) / 2) as f64;
        let sum: Vec<f64> = (0..len).map(|place| place as f64 * times).collect();
        let largest: Vec<i64> = (0..len).map(|place| (place * size) as i64).collect();
        let mut parts = Vec::new();
        for (of_all, max, part) in found {
            assert!(of_all == sum && max == largest, "{size} members, {len} elements");
            parts.extend(part);
        }
        assert_eq!(parts, sum, "{size} members, {len} elements");
    }
    session.await_quiet();
}

fn members_exchange_values(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let workers = workers(3);
    for root in [2, 0] {
        let calls: Vec<_> = workers.iter().map(|worker| worker.exchange(root)).collect();
        for found in get_all(&calls, None).unwrap() {
            assert_eq!(found, (format!("from {root}"), vec![0, 10, 20]));
        }
    }
    let error = workers[0].exchange(3).get().unwrap_err();
    assert!(error.to_string().contains("a broadcast of member 3, but there are 3"), "{error}");
    let calls: Vec<_> = workers.iter().map(|worker| worker.nothing()).collect();
    for error in get_all(&calls, Some(20.0.into())).unwrap() {
        assert!(error.contains("a broadcast of member 0, which brings no value"), "{error}");
    }
    assert_eq!(collective::group(0).unwrap_err().kind(), FailureKind::InvalidArgument);
    assert_eq!(collective::group(5_000).unwrap_err().kind(), FailureKind::InvalidArgument);
}

/// The error of a member's operation.
fn failure<T: serde::de::DeserializeOwned>(call: &ObjectRef<T>) -> CollectiveError {
    let Err(error) = call.get() else { panic!("the operation should fail") };
    error.downcast::<CollectiveError>().unwrap_or_else(|| panic!("no failure of a group: {error}"))
}

fn a_member_that_does_not_come_fails_the_others(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let workers = workers(3);
    workers.iter().for_each(|worker| drop(worker.wait_at_most(0.3)));
    let calls = [workers[0].barrier(), workers[2].barrier()];
    let missing = CollectiveError::Missing { operation: "barrier".to_owned(), ranks: vec![1] };
    assert_eq!(calls.each_ref().map(failure), [missing.clone(), missing.clone()]);
    assert_eq!(failure(&workers[1].barrier()), missing, "the group has failed for good");
}

fn members_that_differ_are_told(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let workers = workers(2);
    let calls = [workers[0].sum(3), workers[1].sum(4)];
    for call in &calls {
        let CollectiveError::Differ { operation, others } = failure(call) else { panic!("they differ") };
        assert_ne!(operation, others);
        assert!(operation.starts_with("allreduce of") && others.contains("float64 by Sum"));
    }
}
