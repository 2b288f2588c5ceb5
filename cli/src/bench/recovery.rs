//! Time until a value is recomputed and read after the node with its only copy was killed.

use super::{Measurement, Options};
use anyhow::{Context, Result, ensure};
use std::time::{Duration, Instant};
use tharsis::prelude::*;
use tharsis::{LocalCluster, LocalNode, NodeId, Resources, SpillChoice};

/// Number of kills of a run.
const DEATHS: usize = 30;
const DEATHS_QUICK: usize = 5;
/// Time limit of a read, far above every expected figure.
const GET_WAIT: Duration = Duration::from_secs(60);

/// Bytes that depend on a seed.
#[remote(max_retries = 3)]
fn value(bytes: usize, seed: u8) -> Blob {
    Blob::from(vec![seed; bytes])
}

/// Seconds from the kill of a node until its value was read, as the median of many kills, beside the seconds
/// to make and read such a value on a living node.
pub fn recovery(options: &Options) -> Result<Measurement> {
    let bytes = options.size * 1_000_000;
    let deaths = if options.quick { DEATHS_QUICK } else { DEATHS };
    let store_bytes = 4 * bytes as u64 + (64 << 20);
    let mut cluster = LocalCluster::start(1, 1.0, store_bytes)?;
    let socket = cluster.socket(0).context("the driver's node is gone")?;
    let _runtime = tharsis::init().address(socket.display().to_string()).start()?;
    let home = cluster.node(0).context("the driver's node is gone")?;
    let (mut recovered, mut undisturbed) = (Vec::new(), Vec::new());
    for round in 0..deaths {
        let seed = round as u8;
        let started = Instant::now();
        read(&made_on(home, bytes, seed), bytes, seed)?;
        undisturbed.push(started.elapsed().as_secs_f64());

        let index = cluster.add(LocalNode {
            resources: Resources::cpus(1.0)?,
            labels: Vec::new(),
            store_bytes,
            spill: SpillChoice::default(),
        })?;
        let victim = cluster.node(index).context("a node that was added is gone")?;
        let object = made_on(victim, bytes, !seed);
        let options = Wait { num_returns: 1, timeout: Some(GET_WAIT.into()), fetch: false };
        ensure!(wait(std::slice::from_ref(&object), options)?.0.len() == 1, "the value was not made");
        let killed = Instant::now();
        cluster.kill(index);
        read(&object, bytes, !seed)?;
        recovered.push(killed.elapsed().as_secs_f64());
    }
    recovered.sort_by(f64::total_cmp);
    undisturbed.sort_by(f64::total_cmp);
    let median = |sorted: &[f64]| sorted.get(sorted.len() / 2).copied().unwrap_or_default();
    let worst = recovered.last().copied().unwrap_or_default();
    Ok(Measurement::new("recovery", median(&recovered), "s", median(&undisturbed))
        .with("worst_s", worst)
        .with("deaths", deaths as f64))
}

/// A value that is made on one node, or on another one if that node is gone.
fn made_on(node: NodeId, bytes: usize, seed: u8) -> ObjectRef<Blob> {
    value::options().node(node, true).remote(bytes, seed)
}

fn read(object: &ObjectRef<Blob>, bytes: usize, seed: u8) -> Result<()> {
    let blob = object.get_timeout(GET_WAIT)?;
    ensure!(blob.len() == bytes && blob.last() == Some(&seed), "a value is another one");
    Ok(())
}
