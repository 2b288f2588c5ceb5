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
        e5_shapes_share_no_lease;
    Processes:
        e5_lease_reuse;
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
    assert_eq!(answer::remote().get().unwrap(), 42);
    let started = Instant::now();
    session.await_report("the CPU is free", |r| r.nodes[0].free == r.nodes[0].total);
    // The machine is shared: what the report takes itself comes on top.
    assert!(started.elapsed() < Duration::from_millis(800), "{:?}", started.elapsed());
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
