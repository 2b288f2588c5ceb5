//! E: leases, and wishes about nodes, as far as one node shows them.

use std::collections::HashSet;
use std::time::{Duration, Instant};
use tharsis::prelude::*;
use tharsis::{LabelTerm, NodeId};
use tharsis_scenarios::{Mode, Scenario, await_file, await_within, open_gate, scenarios};

pub const ALL: &[Scenario] = scenarios![
    Both:
        e3_hard_affinity_to_an_unknown_node,
        e3_soft_affinity_and_fallback_labels,
        e3_labels_nobody_has_wait_with_a_reason,
        e5_idle_lease_goes_back,
        e5_a_task_after_a_pause_starts_at_once,
        e5_shapes_share_no_lease,
        parents_resume_as_soon_as_their_children_are_done,
        a_chain_of_nested_calls_ends,
        a_wide_task_starts_among_narrow_ones;
    Processes:
        e5_lease_reuse,
        threads_of_a_task_lend_its_slot,
        two_drivers_share_a_node,
        a_single_task_starts_beside_a_backlog;
];

#[remote]
fn answer() -> u32 {
    42
}

fn exists(label: &str) -> Vec<LabelTerm> {
    vec![LabelTerm::Exists(label.to_owned())]
}

/// A hard wish for a node that is not there fails, and at once.
fn e3_hard_affinity_to_an_unknown_node(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let unknown = NodeId(4711);
    let error = answer::options().node(unknown, false).remote().get_timeout(10.0).unwrap_err();
    assert_eq!(error.kind(), FailureKind::NodeNotFound, "{error}");
    assert!(error.to_string().contains(&unknown.to_string()), "{error}");
    assert!(error.failure().origin.is_some(), "it names the call");
    let here = session.runtime().node();
    assert_eq!(answer::options().node(here, false).remote().get().unwrap(), 42);
    session.await_quiet();
}

/// A soft wish falls back, and so does a list of label selectors.
fn e3_soft_affinity_and_fallback_labels(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    assert_eq!(answer::options().node(NodeId(4711), true).remote().get_timeout(10.0).unwrap(), 42);
    assert_eq!(answer::options().spread().remote().get_timeout(10.0).unwrap(), 42);
    let none = |label: &str| vec![LabelTerm::DoesNotExist(label.to_owned())];
    let other = |label: &str| vec![LabelTerm::NotIn(label.to_owned(), vec!["a".to_owned()])];
    for second in [none("zone"), other("zone")] {
        let fallback = answer::options().labels([exists("zone"), second]);
        assert_eq!(fallback.remote().get_timeout(10.0).unwrap(), 42);
    }
}

/// Labels that no node has are waited for, visibly.
fn e3_labels_nobody_has_wait_with_a_reason(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let waiting = answer::options().labels([exists("zone")]).remote();
    let report = session.await_report("it is listed", |r| !r.pending.is_empty());
    assert!(report.pending[0].reason.contains("label"), "{:?}", report.pending);
    assert_eq!(waiting.get_timeout(0.05).unwrap_err().kind(), FailureKind::GetTimeout);
    cancel(&waiting, false, false).unwrap();
    assert_eq!(waiting.get_timeout(10.0).unwrap_err().kind(), FailureKind::Cancelled);
    drop(waiting);
    session.await_quiet();
}

#[remote]
fn pid() -> u32 {
    std::process::id()
}

/// A thousand equal tasks on four CPUs: four workers, not a thousand.
fn e5_lease_reuse(mode: Mode) {
    let session = mode.start(4);
    let _entered = session.enter();
    let all: Vec<_> = (0..1_000).map(|_| pid::remote()).collect();
    let pids: HashSet<_> = get_all(&all, None).unwrap().into_iter().collect();
    assert!((1..=4).contains(&pids.len()), "{} processes", pids.len());
    let again: HashSet<_> = (0..20).map(|_| pid::remote().get().unwrap()).collect();
    assert!(again.len() <= 4 && session.report().worker_count <= 4, "workers are used again");
}

/// With nothing to do, a lease is given back within half a second.
fn e5_idle_lease_goes_back(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let returned = || {
        assert_eq!(answer::remote().get().unwrap(), 42);
        let started = Instant::now();
        session.await_report("the CPU is free", |r| r.nodes[0].free == r.nodes[0].total);
        started.elapsed()
    };
    // The best of a few: other tests share the CPUs, and what the report takes itself comes on top.
    let best = (0..3).map(|_| returned()).min().unwrap();
    assert!(best < Duration::from_millis(800), "{best:?}");
}

/// When all leases have gone back, the next task need not wait for anything but a worker that is at hand.
fn e5_a_task_after_a_pause_starts_at_once(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let after_a_pause = || {
        assert_eq!(answer::remote().get().unwrap(), 42);
        session.await_report("the CPU is free", |r| r.nodes[0].free == r.nodes[0].total);
        let started = Instant::now();
        assert_eq!(answer::remote().get().unwrap(), 42);
        started.elapsed()
    };
    // The machine is shared: one of them is on time.
    let quickest = (0..5).map(|_| after_a_pause()).min().unwrap();
    assert!(quickest < Duration::from_millis(100), "{quickest:?}");
}

#[remote]
fn busy(gate: String) -> u32 {
    await_file(&gate);
    1
}

/// A task of half a CPU takes half a CPU, also right after one that took a whole.
fn e5_shapes_share_no_lease(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let gate = session.path("gate");
    assert_eq!(answer::remote().get().unwrap(), 42);
    let half = busy::options().num_cpus(0.5).remote(gate.clone());
    let mut free = String::new();
    await_within(Duration::from_secs(10), "half a CPU is taken", || {
        let report = session.report();
        free.clone_from(&report.nodes[0].free);
        report.running_count == 1 && free.contains("1.5")
    });
    open_gate(&gate);
    assert_eq!(half.get().unwrap(), 1);
}

#[remote]
fn child(n: u64) -> u64 {
    n + 1
}

#[remote]
fn parent(children: u64) -> Result<u64, Error> {
    let children: Vec<_> = (0..children).map(child::remote).collect();
    Ok(get_all(&children, None)?.iter().sum())
}

/// A hundred parents of three children on two CPUs: few of them are blocked at a time, and none waits for an
/// idle lease.
fn parents_resume_as_soon_as_their_children_are_done(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    assert_eq!(parent::remote(3).get().unwrap(), 6);
    let started = Instant::now();
    let parents: Vec<_> = (0..100).map(|_| parent::remote(3)).collect();
    assert_eq!(get_all(&parents, None).unwrap(), [6; 100]);
    // At eight a second, as where each waits until a lease has been idle for long, it takes twelve seconds.
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    let workers = session.report().worker_count;
    assert!(workers <= 20, "{workers} workers for parents of one level");
}

#[remote]
fn nested(depth: u32) -> Result<u32, Error> {
    if depth == 0 { Ok(0) } else { Ok(nested::remote(depth - 1).get()? + 1) }
}

/// Each of the chain blocks a worker. It ends, or is refused when there can be no more workers.
fn a_chain_of_nested_calls_ends(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let depth = if mode == Mode::Embedded { 2_000 } else { 200 };
    match nested::options().max_retries(0).remote(depth).get() {
        Ok(reached) => assert_eq!(reached, depth),
        Err(refused) => assert!(refused.to_string().contains("WorkerStartFailed"), "{refused}"),
    }
}

#[remote]
fn sleeps(ms: u64) -> u64 {
    std::thread::sleep(Duration::from_millis(ms));
    ms
}

/// Narrow tasks keep coming, of several shapes; the wide one has its turn.
fn a_wide_task_starts_among_narrow_ones(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let narrow = |n: u64| match n % 2 {
        0 => sleeps::remote(2),
        _ => sleeps::options().num_cpus(0.9).remote(2),
    };
    let mut stream: std::collections::VecDeque<_> = (0..64).map(narrow).collect();
    let wide = sleeps::options().num_cpus(2.0).remote(1);
    let started = Instant::now();
    let mut n = 64;
    while wait(std::slice::from_ref(&wide), Wait { timeout: Some(0.0.into()), ..Wait::default() })
        .unwrap()
        .0
        .is_empty()
    {
        assert!(started.elapsed() < Duration::from_secs(10), "the wide task starves behind {n} narrow ones");
        assert_eq!(stream.pop_front().unwrap().get().unwrap(), 2);
        stream.push_back(narrow(n));
        n += 1;
    }
    assert_eq!(wide.get().unwrap(), 1);
}

#[remote]
fn parent_with_threads() -> Result<u64, Error> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|n| scope.spawn(move || child::remote(n).get())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}

/// One CPU, and a task whose own threads wait for children.
fn threads_of_a_task_lend_its_slot(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let parents: Vec<_> = (0..3).map(|_| parent_with_threads::remote()).collect();
    for parent in parents {
        assert_eq!(parent.get_timeout(20.0).unwrap(), 3);
    }
    session.await_quiet();
}

/// Two drivers with more than enough tasks: each gets about half of the node.
fn two_drivers_share_a_node(mode: Mode) {
    let session = mode.start(2);
    let socket = session.runtime().socket().unwrap().to_owned();
    let other = tharsis::init().address(socket.display().to_string()).start_local().unwrap();
    let start = std::sync::Barrier::new(2);
    let done_in = |time: Duration| {
        let tasks: Vec<_> = (0..20_000).map(|_| sleeps::remote(1)).collect();
        start.wait();
        let warm = Instant::now() + Duration::from_millis(500);
        let done = |until: Instant, from: usize| {
            let mut count = from;
            while Instant::now() < until && count < tasks.len() {
                tasks[count].get().unwrap();
                count += 1;
            }
            count
        };
        let before = done(warm, 0);
        done(warm + time, before) - before
    };
    let (mine, theirs) = std::thread::scope(|scope| {
        let theirs = scope.spawn(|| {
            let _entered = other.enter();
            done_in(Duration::from_secs(2))
        });
        let _entered = session.enter();
        let mine = done_in(Duration::from_secs(2));
        (mine, theirs.join().unwrap())
    });
    let share = mine as f64 / (mine + theirs) as f64;
    assert!((0.4..=0.6).contains(&share), "{mine} and {theirs} tasks");
}

/// One driver has queued very many tasks; the single one of another starts soon.
fn a_single_task_starts_beside_a_backlog(mode: Mode) {
    let session = mode.start(1);
    let socket = session.runtime().socket().unwrap().to_owned();
    let entered = session.enter();
    let backlog: Vec<_> = (0..50_000).map(|_| sleeps::remote(1)).collect();
    assert_eq!(backlog[0].get().unwrap(), 1);
    drop(entered);
    let other = tharsis::init().address(socket.display().to_string()).start_local().unwrap();
    let _entered = other.enter();
    // The first waits for its worker process.
    assert_eq!(sleeps::remote(1).get_timeout(20.0).unwrap(), 1);
    let timed = |_| {
        std::thread::sleep(Duration::from_millis(300));
        let started = Instant::now();
        assert_eq!(sleeps::remote(1).get_timeout(20.0).unwrap(), 1);
        started.elapsed()
    };
    // The machine is shared: one of them is on time.
    let quickest = (0..5).map(timed).min().unwrap();
    assert!(quickest < Duration::from_millis(100), "{quickest:?}");
}
