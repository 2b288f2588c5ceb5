//! Nodes that die, hang or are merely busy: who is declared dead, how soon, and what ends with a node.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tharsis::prelude::*;
use tharsis::{LocalCluster, NodeId};
use tharsis_cluster_tests::{SOON, Scenario, await_that, await_within, driver, scenarios, small_node};

/// So long that no lease runs out in a test.
const NEVER: Duration = Duration::from_secs(600);
/// Lease of the nodes if nothing else is said. A node that hangs is looked at after a quarter of it.
const USUAL: Duration = Duration::from_secs(10);
/// A node that hangs is known to be dead within this time.
const HANG_MAX: Duration = Duration::from_secs(5);
/// Seconds within which a node has read the program on a machine that is much too busy, and run a task.
const FOUND_MAX: f64 = 4.0 * SOON;
/// Threads that compute for nothing beside a cluster on one processor: the load of a machine that is much too
/// busy.
const SPINNERS: usize = 10;

pub const ALL: &[Scenario] = scenarios![
    the_job_of_a_driver_ends_everywhere_with_its_node,
    a_job_ends_at_another_node_while_the_head_stands_still;
    alone:
        h4_a_node_that_hangs_is_dead_and_ends_when_it_goes_on,
        h4_a_node_with_a_long_lease_may_stand_still,
        h5_a_busy_machine_kills_nobody,
];

fn cluster(count: usize, lease_ttl: Duration) -> LocalCluster {
    let mut cluster = LocalCluster::empty().lease_ttl(lease_ttl);
    for _ in 0..count {
        cluster.add(small_node(2.0)).unwrap();
    }
    cluster
}

#[remote]
fn here_after(ms: u64) -> NodeId {
    std::thread::sleep(Duration::from_millis(ms));
    context().unwrap().node()
}

/// Submits a task of its own that does not end.
#[remote]
fn begin_a_long_task() -> ObjectRef<NodeId> {
    here_after::options().node(context().unwrap().node(), false).remote(3_600_000)
}

fn signal(pid: u32, signal: &str) {
    let sent = std::process::Command::new("kill").args([signal, &pid.to_string()]).status().unwrap();
    assert!(sent.success(), "kill {signal} {pid}");
}

/// Whether a process has ended. A child of this process stays a zombie until it is waited for.
fn has_ended(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_none_or(|rest| rest.is_empty() || rest.starts_with(" Z"))
}

/// The node that knows of a driver's end dies with the driver. Elsewhere the workers of the job end all the
/// same: an idle one, and one whose task belongs to the node on which it runs.
fn the_job_of_a_driver_ends_everywhere_with_its_node() {
    let mut cluster = cluster(2, NEVER);
    let head = cluster.node(0).unwrap();
    let runtime = driver(&cluster, 1);
    let entered = runtime.enter();
    let idle = here_after::options().node(head, false).remote(0);
    assert_eq!(idle.get_timeout(SOON).unwrap(), head);
    let long = begin_a_long_task::options().node(head, false).remote().get_timeout(SOON).unwrap();
    await_that("the long task runs", || cluster.report(0).unwrap().running_count == 1);
    assert!(2 <= cluster.report(0).unwrap().worker_count, "one computes, one is idle");
    cluster.kill(1);
    let took = await_within(Duration::from_secs_f64(SOON), "nobody works for the job", || {
        let report = cluster.report(0).unwrap();
        report.worker_count == 0 && report.task_count == 0
    });
    println!("its workers elsewhere ended after {took:?}");
    drop(long);
    drop(entered);
}

/// The node of the driver says so, and nobody else need confirm it.
fn a_job_ends_at_another_node_while_the_head_stands_still() {
    let cluster = cluster(3, NEVER);
    let there = cluster.node(2).unwrap();
    let head = cluster.pid(0).unwrap();
    let runtime = driver(&cluster, 1);
    {
        let _entered = runtime.enter();
        let long = here_after::options().node(there, false).remote(3_600_000);
        await_that("the task runs", || cluster.report(2).unwrap().running_count == 1);
        signal(head, "-STOP");
        drop(long);
    }
    drop(runtime);
    let took = await_within(Duration::from_secs_f64(SOON), "nobody works for the job", || {
        cluster.report(2).unwrap().worker_count == 0
    });
    signal(head, "-CONT");
    println!("its worker on another node ended after {took:?}");
}

fn h4_a_node_that_hangs_is_dead_and_ends_when_it_goes_on() {
    let mut cluster = cluster(3, USUAL);
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    let pid = cluster.pid(2).unwrap();
    let tasks: Vec<_> = (0..12).map(|_| here_after::options().spread().max_retries(3).remote(300)).collect();
    std::thread::sleep(Duration::from_millis(100));
    signal(pid, "-STOP");
    let took = await_within(HANG_MAX, "everybody knows", || {
        [0, 1].iter().all(|index| cluster.report(*index).unwrap().nodes.len() == 2)
    });
    println!("a node of 3 that hangs: everybody knows after {took:?}");
    let hung = cluster.node(2).unwrap();
    for task in &tasks {
        task.get_timeout(SOON).unwrap();
    }
    assert_ne!(here_after::options().node(hung, true).remote(0).get_timeout(SOON).unwrap(), hung);
    signal(pid, "-CONT");
    await_that("it ends", || has_ended(pid));
    cluster.kill(2);
    cluster.await_count(2, Duration::from_secs(1)).unwrap();
}

fn h4_a_node_with_a_long_lease_may_stand_still() {
    let cluster = cluster(3, 4 * USUAL);
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    let (pid, there) = (cluster.pid(2).unwrap(), cluster.node(2).unwrap());
    signal(pid, "-STOP");
    std::thread::sleep(HANG_MAX + Duration::from_secs(1));
    let count = cluster.report(0).unwrap().nodes.len();
    signal(pid, "-CONT");
    assert_eq!(count, 3, "it has a quarter of its lease");
    let task = here_after::options().node(there, false).max_retries(0).remote(0);
    assert_eq!(task.get_timeout(SOON).unwrap(), there);
}

/// Has this thread, and what it starts from now on, run on one processor.
fn stay_on_one_processor() {
    let allowed = sched_getaffinity(None).unwrap();
    let first = (0..CpuSet::MAX_CPU).find(|number| allowed.is_set(*number)).unwrap();
    let mut one = CpuSet::new();
    one.set(first);
    sched_setaffinity(None, &one).unwrap();
}

/// Ten threads compete with all nodes for a processor, for `THARSIS_BUSY_SECONDS`; if nothing is said, for
/// longer than a lease lasts, and in a long run for a minute.
fn h5_a_busy_machine_kills_nobody() {
    let given = tharsis_trials::given_number("THARSIS_BUSY_SECONDS");
    let seconds = given.unwrap_or_else(|| tharsis_trials::cases(11, 60));
    stay_on_one_processor();
    let cluster = cluster(4, USUAL);
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    let nodes: Vec<NodeId> = (0..4).map(|index| cluster.node(index).unwrap()).collect();
    let run_on = |there: NodeId, seconds: f64| {
        let task = here_after::options().node(there, false).max_retries(0).remote(1);
        assert_eq!(task.get_timeout(seconds).unwrap(), there);
    };
    // Before the load each node reads the program, hundreds of megabytes, and starts a worker; the last one
    // does so under it.
    let (last, others) = nodes.split_last().unwrap();
    others.iter().for_each(|there| run_on(*there, SOON));
    let is_over = AtomicBool::new(false);
    let mut count = 0;
    std::thread::scope(|scope| {
        for _ in 0..SPINNERS {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        // A panic ends the spinners too, or the scope would wait for them.
        let work = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            run_on(*last, FOUND_MAX);
            let until = Instant::now() + Duration::from_secs(seconds);
            while Instant::now() < until {
                nodes.iter().for_each(|there| run_on(*there, SOON));
                count += nodes.len();
            }
        }));
        is_over.store(true, Ordering::Relaxed);
        work.unwrap();
    });
    for index in 0..4 {
        assert_eq!(cluster.report(index).unwrap().nodes.len(), 4, "nobody is declared dead");
    }
    println!("{count} tasks on 4 nodes in {seconds} s at a load of {SPINNERS}");
}
