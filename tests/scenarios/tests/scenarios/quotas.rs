//! Quotas of jobs, as far as one node shows them.

use std::time::Duration;
use tharsis::prelude::*;
use tharsis::{Bundle, placement_group};
use tharsis_scenarios::{Mode, SOON, Scenario, await_file, await_within, mark, marks, open_gate, scenarios};

pub const ALL: &[Scenario] = scenarios![
    Both:
        a_job_holds_no_more_than_its_quota,
        what_needs_more_than_the_quota_fails_at_once,
        actors_and_groups_count,
        tasks_that_wait_for_others_go_on_within_a_quota,
        two_kinds_of_tasks_share_a_quota,
        a_text_that_is_no_quota_is_refused;
];

/// Long enough for what happens at once.
const AT_ONCE: f64 = 20.0;

/// Marks a file, and waits for a gate.
#[remote(max_retries = 0)]
fn hold(marked: String, gate: String) -> u32 {
    mark(&marked);
    await_file(&gate);
    7
}

#[remote]
fn answer() -> u32 {
    42
}

/// The number of leaves of a tree of calls, each of which waits for those below it.
#[remote]
fn leaves(depth: u32) -> Result<u32, Error> {
    if depth == 0 {
        return Ok(1);
    }
    let below: Vec<_> = (0..2).map(|_| leaves::remote(depth - 1)).collect();
    Ok(get_all(&below, None)?.iter().sum())
}

#[remote]
fn sleep(ms: u64) -> u64 {
    std::thread::sleep(Duration::from_millis(ms));
    ms
}

struct Idle;

#[actor]
impl Idle {
    fn new() -> Self {
        Self
    }

    fn hello(&self) -> u32 {
        1
    }
}

fn a_job_holds_no_more_than_its_quota(mode: Mode) {
    let session = mode.start_with(4, |init| init.job_quota("cpus=2"));
    let _entered = session.enter();
    let (marked, gate) = (session.path("marked"), session.path("gate"));
    let tasks: Vec<_> = (0..6).map(|_| hold::remote(marked.clone(), gate.clone())).collect();
    await_within(SOON, "two run", || marks(&marked) == 2);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(marks(&marked), 2, "more run than the quota allows");
    let report = session.report();
    assert!(report.nodes[0].free.starts_with("2 CPU"), "{report:?}");
    assert!(report.pending.iter().any(|row| row.reason.contains("quota")), "{:?}", report.pending);
    // A resource that the quota does not name has no bound.
    assert_eq!(answer::options().num_cpus(0.0).remote().get_timeout(AT_ONCE).unwrap(), 42);
    open_gate(&gate);
    assert_eq!(get_all(&tasks, Some(AT_ONCE.into())).unwrap(), [7; 6]);
    drop(tasks);
    session.await_quiet();
}

fn what_needs_more_than_the_quota_fails_at_once(mode: Mode) {
    let session = mode.start_with(4, |init| init.job_quota("cpus=2,memory=1GiB"));
    let _entered = session.enter();
    let large = [
        answer::options().num_cpus(3.0).remote().get_timeout(AT_ONCE).map(|_| ()),
        answer::options().memory_bytes(2 << 30).remote().get_timeout(AT_ONCE).map(|_| ()),
        Idle::options().num_cpus(3.0).remote().hello().get_timeout(AT_ONCE).map(|_| ()),
        placement_group([Bundle::new().num_cpus(1.5), Bundle::new().num_cpus(1.5)])
            .create()
            .unwrap()
            .ready()
            .get_timeout(AT_ONCE)
            .map(|_| ()),
    ];
    for outcome in large {
        let error = outcome.unwrap_err();
        assert_eq!(error.failure().root().kind, FailureKind::Infeasible, "{error}");
        assert!(error.failure().root().message.contains("quota of the job is cpus=2"), "{error}");
    }
    assert_eq!(answer::options().num_cpus(2.0).remote().get_timeout(AT_ONCE).unwrap(), 42);
}

fn actors_and_groups_count(mode: Mode) {
    let session = mode.start_with(4, |init| init.job_quota("cpus=2"));
    let _entered = session.enter();
    let idle = Idle::options().num_cpus(1.0).remote();
    assert_eq!(idle.hello().get_timeout(AT_ONCE).unwrap(), 1);
    let group = placement_group([Bundle::new().num_cpus(1.0)]).create().unwrap();
    group.ready().get_timeout(AT_ONCE).unwrap();
    let outside = answer::remote();
    let second = placement_group([Bundle::new().num_cpus(1.0)]).create().unwrap();
    assert_eq!(outside.get_timeout(0.5).unwrap_err().kind(), FailureKind::GetTimeout);
    assert_eq!(second.ready().get_timeout(0.1).unwrap_err().kind(), FailureKind::GetTimeout);
    // A task inside takes its CPUs from the group.
    assert_eq!(answer::options().placement_group(&group).remote().get_timeout(AT_ONCE).unwrap(), 42);
    kill(&idle).unwrap();
    group.remove().unwrap();
    assert_eq!(outside.get_timeout(AT_ONCE).unwrap(), 42);
    second.ready().get_timeout(AT_ONCE).unwrap();
}

fn tasks_that_wait_for_others_go_on_within_a_quota(mode: Mode) {
    let session = mode.start_with(4, |init| init.job_quota("cpus=1"));
    let _entered = session.enter();
    assert_eq!(leaves::remote(4).get_timeout(3.0 * AT_ONCE).unwrap(), 16);
    session.await_quiet();
}

fn two_kinds_of_tasks_share_a_quota(mode: Mode) {
    let session = mode.start_with(4, |init| init.job_quota("cpus=1"));
    let _entered = session.enter();
    let backlog: Vec<_> = (0..2_000).map(|_| sleep::remote(5)).collect();
    assert_eq!(backlog[0].get_timeout(AT_ONCE).unwrap(), 5);
    let other = sleep::options().num_cpus(0.5).remote(1);
    assert_eq!(other.get_timeout(5.0).unwrap(), 1, "it need not wait for all of the others");
    assert!(!backlog.last().unwrap().is_ready());
}

fn a_text_that_is_no_quota_is_refused(_: Mode) {
    for bad in ["", "cpus", "cpus=-1", "memory=lots"] {
        let error = init().job_quota(bad).start().map(drop).unwrap_err();
        assert_eq!(error.kind(), FailureKind::InvalidArgument, "{error}");
        assert!(error.to_string().contains("quota"), "{error}");
    }
}
