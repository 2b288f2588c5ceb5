//! F: actors on several nodes: who calls them from where, and what ends or starts again with a node.

use std::time::Duration;
use tharsis::prelude::*;
use tharsis::{Checkpoint, Executed, NodeId, checkpoint, exit};
use tharsis_cluster_tests::{SOON, Scenario, await_that, driver, scenarios, small_cluster, small_node};
use tharsis_scenarios::restarts;

pub const ALL: &[Scenario] = scenarios![
    an_actor_is_called_from_every_node,
    f1_calls_keep_their_order_over_nodes,
    f4_the_last_handle_of_any_node_ends_the_actor,
    f2_the_table_of_restarts_when_a_node_is_lost,
    f2_an_actor_moves_when_its_node_dies,
    actors_that_share_a_process_live_and_end_on_every_node,
    an_actor_ends_with_the_node_that_owns_it,
    f2_an_actor_continues_on_another_node_from_its_last_checkpoint,
    killed_from_another_node,
    f5_a_name_finds_its_actor_from_every_node,
    f5_a_detached_actor_outlives_its_driver,
    f5_a_name_whose_owner_has_died_is_free_on_a_node_that_joins_later,
];

struct Log {
    entries: Vec<u64>,
}

#[actor]
impl Log {
    fn new() -> Self {
        Self { entries: Vec::new() }
    }

    fn push(&mut self, entry: u64) -> usize {
        self.entries.push(entry);
        self.entries.len()
    }

    fn push_with(&mut self, entry: u64, large: Blob) -> usize {
        self.entries.push(entry);
        large.len()
    }

    fn sleep(&self, ms: u64) {
        std::thread::sleep(Duration::from_millis(ms));
    }

    fn hold(&self, gate: String) -> usize {
        while !std::path::Path::new(&gate).exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.entries.len()
    }

    fn entries(&self) -> Vec<u64> {
        self.entries.clone()
    }

    fn node(&self) -> Result<NodeId, Error> {
        Ok(context()?.node())
    }

    /// Calls a task with a value that it puts.
    fn made(&self, len: usize) -> Result<usize, Error> {
        let value = put(&len)?;
        Ok(make::remote(&value).get()?.len())
    }
}

/// Calls an actor ten times from the node on which it runs.
#[remote]
fn push_ten(log: LogHandle, from: u64) -> Result<Vec<usize>, Error> {
    let calls: Vec<_> = (from..from + 10).map(|entry| log.push(entry)).collect();
    get_all(&calls, None)
}

#[remote]
fn make(len: usize) -> Blob {
    Blob::from(vec![1; len])
}

#[remote]
fn make_an_actor() -> Result<LogHandle, Error> {
    let log = Log::remote();
    log.push(1).get()?;
    Ok(log)
}

#[remote]
fn keep_for(_log: LogHandle, ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

fn an_actor_is_called_from_every_node() {
    let cluster = small_cluster(2, 2.0);
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    for home in [0, 1].map(|index| cluster.node(index).unwrap()) {
        let log = Log::options().node(home, false).remote();
        assert_eq!(log.node().get_timeout(SOON).unwrap(), home);
        for (number, caller) in [0, 1].map(|index| cluster.node(index).unwrap()).into_iter().enumerate() {
            let call = push_ten::options().node(caller, false).remote(log.clone(), 10 * number as u64);
            let lens = call.get_timeout(SOON).unwrap();
            assert_eq!(lens, (1..=10).map(|n| 10 * number + n).collect::<Vec<_>>());
        }
        assert_eq!(log.entries().get().unwrap(), (0..20).collect::<Vec<_>>());
    }
}

fn f1_calls_keep_their_order_over_nodes() {
    let cluster = small_cluster(2, 2.0);
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    let [here, there] = [0, 1].map(|index| cluster.node(index).unwrap());
    let log = Log::options().node(there, false).remote();
    // Some arguments have to be read from the other node, and some must be made first.
    let calls: Vec<_> = (0..200)
        .map(|entry| match entry % 4 {
            0 => log.push_with(entry, make::options().node(here, false).remote(200_000)),
            1 => log.push_with(entry, make::options().node(there, false).remote(200_000)),
            _ => log.push(entry),
        })
        .collect();
    assert_eq!(log.entries().get_timeout(SOON).unwrap(), (0..200).collect::<Vec<_>>());
    get_all(&calls, None).unwrap();
}

fn f4_the_last_handle_of_any_node_ends_the_actor() {
    let cluster = small_cluster(2, 2.0);
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    let there = cluster.node(1).unwrap();
    let log = Log::options().node(there, false).num_cpus(1.0).remote();
    log.push(1).get_timeout(SOON).unwrap();
    let kept = keep_for::options().node(there, false).remote(log.clone(), 1_000);
    drop(log);
    std::thread::sleep(Duration::from_millis(300));
    let free = |index: usize| {
        let report = cluster.report(index).unwrap();
        let row = report.nodes.iter().find(|row| row.node == there.0);
        row.map(|row| (row.free.clone(), row.total.clone()))
    };
    assert!(free(1).is_some_and(|(free, total)| free != total), "a task there has a handle");
    kept.get_timeout(SOON).unwrap();
    drop(kept);
    await_that("its resources are free", || free(1).is_some_and(|(free, total)| free == total));
}

fn f2_the_table_of_restarts_when_a_node_is_lost() {
    let mut cluster = small_cluster(2, 2.0);
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    let there = cluster.node(1).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("gate").display().to_string();
    let rows: Vec<_> = restarts::rows().into_iter().filter(|row| row.event == "the node is lost").collect();
    assert_eq!(rows.len(), 3, "rows of the table");
    let lost: Vec<_> = rows
        .iter()
        .map(|row| {
            let options =
                Log::options().max_restarts(row.max_restarts).max_task_retries(row.max_task_retries);
            let actor = options.node(there, true).remote();
            assert_eq!(actor.node().get_timeout(SOON).unwrap(), there);
            let running = actor.hold(gate.clone());
            (actor.clone(), running, actor.push(1))
        })
        .collect();
    std::thread::sleep(Duration::from_millis(300));
    cluster.kill(1);
    std::fs::write(&gate, b"").unwrap();
    for (row, (actor, running, behind)) in rows.iter().zip(lost) {
        let outcomes = [running.get_timeout(SOON), behind.get_timeout(SOON)];
        let [running, behind] = outcomes.map(|outcome| restarts::outcome(&outcome));
        let later = restarts::outcome(&actor.push(2).get_timeout(SOON));
        assert_eq!([running, behind, later], row.outcomes, "{row:?}");
    }
}

fn f2_an_actor_moves_when_its_node_dies() {
    let mut cluster = small_cluster(2, 2.0);
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    let [here, there] = [0, 1].map(|index| cluster.node(index).unwrap());
    let moves = Log::options().node(there, true).max_restarts(1).remote();
    let ends = Log::options().node(there, false).remote();
    assert_eq!(moves.node().get_timeout(SOON).unwrap(), there);
    assert_eq!(ends.push(1).get_timeout(SOON).unwrap(), 1);
    let running = [moves.sleep(3_600_000), ends.sleep(3_600_000)];
    std::thread::sleep(Duration::from_millis(300));
    cluster.kill(1);
    let kinds = [FailureKind::ActorUnavailable, FailureKind::ActorDied];
    for (call, kind) in running.iter().zip(kinds) {
        let error = call.get_timeout(SOON).unwrap_err();
        assert_eq!((error.kind(), error.executed()), (kind, Some(Executed::Unknown)), "{error}");
        assert_eq!(error.failure().root().kind, FailureKind::NodeDied, "{error}");
    }
    assert_eq!(moves.node().get_timeout(SOON).unwrap(), here);
    let error = ends.push(2).get_timeout(SOON).unwrap_err();
    assert_eq!((error.kind(), error.executed()), (FailureKind::ActorDied, Some(Executed::No)), "{error}");
}

fn actors_that_share_a_process_live_and_end_on_every_node() {
    let mut cluster = small_cluster(2, 2.0);
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    let [here, there] = [0, 1].map(|index| cluster.node(index).unwrap());
    let options = || Log::options().shared_process(true).max_restarts(1);
    for (home, other) in [(here, there), (there, here)] {
        let logs: Vec<_> = (0..5).map(|_| options().node(home, false).remote()).collect();
        let calls: Vec<_> =
            logs.iter().map(|log| push_ten::options().node(other, false).remote(log.clone(), 0)).collect();
        for (call, log) in calls.iter().zip(&logs) {
            assert_eq!(call.get_timeout(SOON).unwrap(), (1..=10).collect::<Vec<_>>());
            assert_eq!(log.node().get_timeout(SOON).unwrap(), home);
        }
        kill(&logs[0]).unwrap();
        let before = logs[1].push(10);
        assert_eq!(exit(&logs[1]).get_timeout(SOON), Ok(()));
        assert_eq!(before.get_timeout(SOON), Ok(11));
        await_that("the killed one is gone", || logs[0].push(10).get().is_err());
        let error = logs[1].push(11).get_timeout(SOON).unwrap_err();
        let ended = (FailureKind::ActorDied, Some(Executed::No));
        assert_eq!((error.kind(), error.executed()), ended, "{error}");
        let others = logs[2..].iter().map(|log| log.push(10)).collect::<Vec<_>>();
        assert_eq!(get_all(&others, None).unwrap(), [11, 11, 11]);
    }
    let moves: Vec<_> = (0..3).map(|_| options().node(there, true).remote()).collect();
    for log in &moves {
        assert_eq!(log.node().get_timeout(SOON).unwrap(), there);
    }
    cluster.kill(1);
    for log in &moves {
        // The calls that are made before the death is known may have been on their way.
        await_that("it answers from the other node", || log.node().get().is_ok_and(|node| node == here));
    }
}

#[remote]
fn push_to(name: String, entry: u64) -> Result<usize, Error> {
    Log::options().find(&name)?.push(entry).get()
}

fn f5_a_name_finds_its_actor_from_every_node() {
    let cluster = small_cluster(2, 2.0);
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    let [here, there] = [0, 1].map(|index| cluster.node(index).unwrap());
    let log = Log::options().node(there, false).create("log").unwrap();
    for (entry, node) in [here, there].into_iter().enumerate() {
        let call = push_to::options().node(node, false).remote("log", entry as u64);
        assert_eq!(call.get_timeout(SOON).unwrap(), entry + 1);
    }
    let other = init().address(cluster.socket(1).unwrap().display().to_string()).namespace("other");
    let other = other.start_local().unwrap();
    {
        let _entered = other.enter();
        let error = Log::options().find("log").unwrap_err();
        assert_eq!(error.kind(), FailureKind::ActorNotFound, "another namespace: {error}");
    }
    assert_eq!(log.entries().get().unwrap(), [0, 1]);
}

fn f5_a_detached_actor_outlives_its_driver() {
    let cluster = small_cluster(2, 2.0);
    let there = cluster.node(1).unwrap();
    {
        let runtime = driver(&cluster, 0);
        let _entered = runtime.enter();
        let log = Log::options().detached(true).num_cpus(1.0).node(there, false).create("kept").unwrap();
        assert_eq!(log.push(1).get_timeout(SOON).unwrap(), 1);
        let left = Log::options().create("left").unwrap();
        assert_eq!(left.push(1).get_timeout(SOON).unwrap(), 1);
    }
    for index in [1, 0] {
        let runtime = driver(&cluster, index);
        let _entered = runtime.enter();
        let log = Log::options().find("kept").unwrap();
        log.push(2).get_timeout(SOON).unwrap();
        // The calls of an actor, made for another job than its own.
        assert_eq!(log.made(5).get_timeout(SOON).unwrap(), 5);
        await_that("the other one has ended with its driver", || {
            Log::options().find("left").is_err_and(|error| error.kind() == FailureKind::ActorNotFound)
        });
    }
    let runtime = driver(&cluster, 1);
    let _entered = runtime.enter();
    let log = Log::options().find("kept").unwrap();
    assert_eq!(log.entries().get_timeout(SOON).unwrap(), [1, 2, 2]);
    kill(&log).unwrap();
    drop(log);
    await_that("its resources are free", || {
        let report = cluster.report(1).unwrap();
        report.nodes.iter().all(|row| row.free == row.total)
    });
    await_that("its name is free", || Log::options().find("kept").is_err());
    assert_eq!(Log::options().create("kept").unwrap().push(7).get_timeout(SOON).unwrap(), 1);
}

/// The actor lives on, for a while, on another node than that of its owner. A node that joins after the death
/// of the owner has never heard of that one.
fn f5_a_name_whose_owner_has_died_is_free_on_a_node_that_joins_later() {
    let mut cluster = small_cluster(2, 2.0);
    let here = cluster.node(0).unwrap();
    {
        let runtime = driver(&cluster, 1);
        let _entered = runtime.enter();
        let log = Log::options().detached(true).node(here, false).create("lost").unwrap();
        assert_eq!(log.push(1).get_timeout(SOON).unwrap(), 1);
    }
    cluster.kill(1);
    cluster.await_count(1, Duration::from_secs(30)).unwrap();
    let index = cluster.add(small_node(2.0)).unwrap();
    let runtime = driver(&cluster, index);
    let _entered = runtime.enter();
    let found = Log::options().find("lost").map(drop);
    assert_eq!(found.unwrap_err().kind(), FailureKind::ActorNotFound, "the one that has ended is not given");
    let log = Log::options().get_or_create("lost").unwrap();
    assert_eq!(log.push(2).get_timeout(SOON).unwrap(), 1, "the first call is one of a new actor");
}

/// The actor lives on one node and is called from another one, and the third owns it.
fn an_actor_ends_with_the_node_that_owns_it() {
    let mut cluster = small_cluster(2, 2.0);
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    let there = cluster.node(1).unwrap();
    let log = make_an_actor::options().node(there, false).remote().get_timeout(SOON).unwrap();
    assert_eq!(log.push(2).get_timeout(SOON).unwrap(), 2);
    cluster.kill(1);
    await_that("calls fail", || log.push(3).get_timeout(SOON).is_err());
    let error = log.push(4).get_timeout(SOON).unwrap_err();
    assert_eq!((error.kind(), error.executed()), (FailureKind::ActorDied, Some(Executed::No)), "{error}");
}

fn killed_from_another_node() {
    let cluster = small_cluster(2, 2.0);
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    let there = cluster.node(1).unwrap();
    let log = make_an_actor::options().node(there, false).remote().get_timeout(SOON).unwrap();
    let running = log.sleep(3_600_000);
    let waiting = log.push(5);
    std::thread::sleep(Duration::from_millis(300));
    kill(&log).unwrap();
    let error = running.get_timeout(SOON).unwrap_err();
    assert_eq!(
        (error.kind(), error.executed()),
        (FailureKind::ActorDied, Some(Executed::Unknown)),
        "{error}"
    );
    let error = waiting.get_timeout(SOON).unwrap_err();
    assert_eq!((error.kind(), error.executed()), (FailureKind::ActorDied, Some(Executed::No)), "{error}");
}

/// An actor with a state of any size.
struct Page {
    count: u64,
    text: Vec<u8>,
    inside: Option<ObjectRef<Blob>>,
}

#[actor(max_restarts = -1)]
impl Page {
    fn new() -> Self {
        Self { count: 0, text: Vec::new(), inside: None }
    }

    fn write(&mut self, len: usize, inside: Vec<ObjectRef<Blob>>) -> Result<u64, Error> {
        self.count += 1;
        (self.text, self.inside) = (vec![7; len], inside.into_iter().next());
        checkpoint(self)?;
        Ok(self.count)
    }

    fn read(&self) -> Result<(u64, usize, usize), Error> {
        let inside = self.inside.as_ref().map(ObjectRef::get).transpose()?.map_or(0, |blob| blob.len());
        Ok((self.count, self.text.len(), inside))
    }

    fn node(&self) -> Result<NodeId, Error> {
        Ok(context()?.node())
    }
}

impl Checkpoint for Page {
    type Snapshot = (u64, Vec<u8>, Option<ObjectRef<Blob>>);

    fn snapshot(&self) -> Self::Snapshot {
        (self.count, self.text.clone(), self.inside.clone())
    }

    fn restore(&mut self, snapshot: Self::Snapshot) {
        (self.count, self.text, self.inside) = snapshot;
    }
}

/// The caller sees the result of a call after its checkpoint is kept on the node that owns the actor, so the
/// node on which the actor lives may die at once.
fn f2_an_actor_continues_on_another_node_from_its_last_checkpoint() {
    let mut cluster = small_cluster(2, 2.0);
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    let [here, there] = [0, 1].map(|index| cluster.node(index).unwrap());
    let inside = put(&Blob::from(vec![1; 300_000])).unwrap();
    let pages: Vec<_> = [10, 3 << 20]
        .into_iter()
        .map(|len| {
            let page = Page::options().node(there, true).remote();
            assert_eq!(page.node().get_timeout(SOON).unwrap(), there);
            assert_eq!(page.write(len / 2, Vec::new()).get_timeout(SOON).unwrap(), 1);
            assert_eq!(page.write(len, vec![inside.clone()]).get_timeout(SOON).unwrap(), 2);
            (page, len)
        })
        .collect();
    drop(inside);
    cluster.kill(1);
    for (page, len) in &pages {
        await_that("it answers from the other node", || page.node().get().is_ok_and(|node| node == here));
        assert_eq!(page.read().get_timeout(SOON).unwrap(), (2, *len, 300_000));
        assert_eq!(page.write(1, Vec::new()).get_timeout(SOON).unwrap(), 3, "it takes others");
    }
}
