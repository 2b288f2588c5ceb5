//! The cost of identities: transfers and tasks under TLS, and how soon a program has joined.

use super::objects::{LARGE_BYTES, transfer_rates};
use super::statistics::{median, quantile};
use super::{Measurement, Options, floors};
use anyhow::{Context, Result, ensure};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tharsis::prelude::*;
use tharsis::process::authority_folder;
use tharsis::{LocalCluster, LocalNode, Resources, SpillChoice};
use tharsis_identity::{Authority, Role};

/// Lifetime of certificates and tokens, above the time of every bench.
const LIFETIME: Duration = Duration::from_secs(3600);
const STORE_BYTES: u64 = 64 << 20;
/// Joins of a run.
const JOINS: usize = 15;
/// Runs of a throughput, of which the first is not counted.
const RUNS: usize = 6;

#[remote]
fn nothing() {}

/// A gigabyte that a task made on one node, read by a driver on another under TLS; beside TLS of the same
/// library between two processes.
pub fn transfer(options: &Options) -> Result<Measurement> {
    let bytes = if options.quick { LARGE_BYTES / 10 } else { LARGE_BYTES };
    let floor = floors::tls_gb_s(bytes)?;
    let (cluster, _folder) = cluster(2, bytes as u64 * 5 / 2)?;
    let (mut rates, cold) = transfer_rates(&cluster, bytes)?;
    Ok(Measurement::new("transfer --tls", median(&mut rates), "GB/s", floor).with("cold_gb_s", cold))
}

/// No-op tasks per second that run on another node, with identities; beside the same without.
pub fn throughput(options: &Options) -> Result<Measurement> {
    let tasks = if options.quick { 20_000 } else { 200_000 };
    let clear = far_rate(&LocalCluster::start(2, 1.0, STORE_BYTES)?, tasks)?;
    let (cluster, _folder) = cluster(2, STORE_BYTES)?;
    let sealed = far_rate(&cluster, tasks)?;
    Ok(Measurement::new("task-throughput --tls", sealed, "tasks/s", clear))
}

/// Milliseconds from the start of a program's runtime until its first remote task has ended, when it joins a
/// cluster with its identity; beside the same for a program whose node runs already.
pub fn join(options: &Options) -> Result<Measurement> {
    let joins = if options.quick { JOINS / 3 } else { JOINS };
    let (cluster, folder) = cluster(1, STORE_BYTES)?;
    let authority = Authority::load(&authority_folder(&folder.path().join("machine-0")))?;
    let token = authority.make_token(Role::Driver, LIFETIME)?.to_string();
    let head = cluster.address(0).context("the head is gone")?.to_owned();
    let socket = cluster.socket(0).context("the head is gone")?.display().to_string();
    let identities = folder.path().join("driver");
    let (mut joined, mut beside) = (Vec::new(), Vec::new());
    for _ in 0..joins {
        let local = tharsis::init().address(&socket);
        beside.push(first_task_ms(local)?);
        let far = tharsis::init().address(&head).token(&token).identity_dir(&identities);
        joined.push(first_task_ms(far.store_bytes(STORE_BYTES))?);
    }
    joined.sort_by(f64::total_cmp);
    Ok(Measurement::new("join", median(&mut joined), "ms", median(&mut beside))
        .with("worst_ms", quantile(&joined, 1.0)))
}

fn first_task_ms(init: tharsis::Init) -> Result<f64> {
    let started = Instant::now();
    let runtime = init.start_local()?;
    let entered = runtime.enter();
    nothing::remote().get()?;
    let elapsed = started.elapsed().as_secs_f64() * 1e3;
    drop(entered);
    Ok(elapsed)
}

/// Tasks per second on the second node of a cluster, for a driver on the first.
fn far_rate(cluster: &LocalCluster, tasks: usize) -> Result<f64> {
    let socket = cluster.socket(0).context("the first node is gone")?;
    let far = cluster.node(1).context("the second node is gone")?;
    let runtime = tharsis::init().address(socket.display().to_string()).start_local()?;
    let _entered = runtime.enter();
    let mut rates = Vec::new();
    for run in 0..RUNS {
        let started = Instant::now();
        let refs: Vec<_> = (0..tasks).map(|_| nothing::options().node(far, false).remote()).collect();
        let ended = tharsis::get_all(&refs, None)?;
        ensure!(ended.len() == tasks, "tasks are missing");
        if run > 0 {
            rates.push(tasks as f64 / started.elapsed().as_secs_f64());
        }
    }
    Ok(median(&mut rates))
}

/// Nodes that know each other by certificates, and the folder of these.
fn cluster(nodes: usize, store_bytes: u64) -> Result<(LocalCluster, TempDir)> {
    let folder = tempfile::tempdir()?;
    let mut cluster = LocalCluster::empty().identities(folder.path(), LIFETIME);
    for _ in 0..nodes {
        let resources = Resources::cpus(1.0)?;
        let spill = SpillChoice::default();
        cluster.add(LocalNode { resources, labels: Vec::new(), store_bytes, spill })?;
    }
    Ok((cluster, folder))
}
