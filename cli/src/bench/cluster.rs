//! Many nodes on one machine: how soon they have joined, what they cost when idle, and whether the answers
//! are right while some of them are killed.

use super::{Measurement, Options, memory};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tharsis::prelude::*;
use tharsis::{LocalCluster, LocalNode, Resources, SpillChoice};

/// Bytes of the store of each node: the values are small.
const STORE_BYTES: u64 = 16 << 20;
/// One node in so many is killed.
const KILLED_SHARE: usize = 10;
/// Tasks per node of a run.
const TASKS_PER_NODE: u64 = 1_000;
/// The part of the answers that is awaited before nodes are killed.
const ANSWERS_BEFORE: usize = 4;
/// Time for which the idle nodes are observed, and the time before that in which they come to rest.
const IDLE_LOOK: Duration = Duration::from_secs(10);
const REST: Duration = Duration::from_secs(3);
/// Time limit of a run, far above every expected figure.
const RUN_WAIT: Duration = Duration::from_secs(300);
/// The longest time until the deaths of nodes are known.
const DEATH_WAIT: Duration = Duration::from_secs(30);
/// Processes that start at a time in the floor, as in the cluster.
const STARTING_MAX: usize = 8;

/// A number that depends on another one, and the node that worked it out.
#[remote(max_retries = 5)]
fn scrambled(number: u64) -> (u64, u64) {
    (expected(number), context().map_or(0, |context| context.node().0))
}

fn expected(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(17) ^ number
}

/// Seconds until all nodes see each other, beside the seconds to start as many processes that do nothing.
pub fn cluster(options: &Options) -> Result<Measurement> {
    let count = options.size;
    ensure!(2 <= count, "a cluster has at least two nodes");
    let floor = bare_starts(count)?;
    let node = LocalNode {
        resources: Resources::cpus(1.0)?,
        labels: Vec::new(),
        store_bytes: STORE_BYTES,
        spill: SpillChoice::default(),
    };
    let started = Instant::now();
    let mut cluster = LocalCluster::start_nodes(vec![node; count])?;
    let joined = started.elapsed().as_secs_f64();
    std::thread::sleep(REST);
    let idle_percent = idle_percent(&cluster, if options.quick { IDLE_LOOK / 5 } else { IDLE_LOOK })?;

    let socket = cluster.socket(0).context("the driver's node is gone")?;
    let _runtime = tharsis::init().address(socket.display().to_string()).start()?;
    let tasks = TASKS_PER_NODE * count as u64;
    let spread = run(tasks, || Ok(()))?;
    let again = run(tasks, || Ok(()))?;

    let killed = count.div_ceil(KILLED_SHARE).min(count - 1);
    let left = count - killed;
    let (mut killing, mut known) = (Duration::ZERO, Duration::ZERO);
    let disturbed = run(tasks, || {
        let killed_at = Instant::now();
        // The driver's node is the first one; the others are killed all over the cluster.
        (0..killed).for_each(|nth| cluster.kill(1 + nth * (count - 1) / killed));
        // Beside the tasks, the system takes its time to end a process.
        killing = killed_at.elapsed();
        // All nodes are asked, one after the other.
        cluster.await_count(left, DEATH_WAIT)?;
        known = killed_at.elapsed() - killing;
        Ok(())
    })?;
    let used: BTreeSet<_> = [&spread, &again, &disturbed].into_iter().flat_map(|run| &run.nodes).collect();
    Ok(Measurement::new("cluster", joined, "s", floor)
        .with("nodes", count as f64)
        .with("idle_percent", idle_percent)
        .with("first_tasks_per_s", tasks as f64 / spread.seconds)
        .with("tasks_per_s", tasks as f64 / again.seconds)
        .with("used_nodes", used.len() as f64)
        .with("killed", killed as f64)
        .with("killing_s", killing.as_secs_f64())
        .with("known_s", known.as_secs_f64())
        .with("disturbed_s", disturbed.seconds)
        .with("undisturbed_s", again.seconds))
}

/// One run of tasks.
struct Run {
    seconds: f64,
    nodes: BTreeSet<u64>,
}

/// Submits tasks, does something when part of the answers are there, and checks all answers.
fn run(tasks: u64, meanwhile: impl FnOnce() -> Result<()>) -> Result<Run> {
    let started = Instant::now();
    let refs: Vec<_> = (0..tasks).map(|number| scrambled::options().spread().remote(number)).collect();
    let some =
        Wait { num_returns: refs.len() / ANSWERS_BEFORE, timeout: Some(RUN_WAIT.into()), fetch: false };
    wait(&refs, some)?;
    meanwhile()?;
    let answers = tharsis::get_all(&refs, Some(RUN_WAIT.into()))?;
    let seconds = started.elapsed().as_secs_f64();
    ensure!(answers.len() == refs.len(), "answers are missing");
    let mut nodes = BTreeSet::new();
    for (number, (answer, node)) in (0..).zip(answers) {
        ensure!(
            answer == expected(number),
            "the answer to {number} is {answer} instead of {}",
            expected(number)
        );
        nodes.insert(node);
    }
    Ok(Run { seconds, nodes })
}

/// Processor time of all nodes, in percent of one core.
fn idle_percent(cluster: &LocalCluster, look: Duration) -> Result<f64> {
    let pids: Vec<_> = (0..).map_while(|index| cluster.pid(index)).collect();
    let used = || pids.iter().map(|pid| memory::cpu_time(*pid)).sum::<Result<Duration>>();
    let (before, started) = (used()?, Instant::now());
    std::thread::sleep(look);
    let used = used()?.saturating_sub(before);
    Ok(used.as_secs_f64() / started.elapsed().as_secs_f64() * 100.0)
}

/// Seconds to start processes of this program that end at once, several at a time.
fn bare_starts(count: usize) -> Result<f64> {
    let program = std::env::current_exe()?;
    let started = Instant::now();
    let mut left = count;
    while 0 < left {
        let together = left.min(STARTING_MAX);
        let children: Vec<_> = (0..together)
            .map(|_| Command::new(&program).args(["bench-first", "nothing"]).stdout(Stdio::null()).spawn())
            .collect::<std::io::Result<_>>()?;
        for mut child in children {
            child.wait()?;
        }
        left -= together;
    }
    Ok(started.elapsed().as_secs_f64())
}
