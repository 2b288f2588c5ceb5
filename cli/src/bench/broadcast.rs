//! One object to several nodes at once.

use super::noise::Values;
use super::resident::Watch;
use super::{Measurement, Options, floors};
use anyhow::{Context, Result, ensure};
use std::time::Instant;
use tharsis::LocalCluster;
use tharsis::prelude::*;

/// Number of nodes that read the object, beside the one that has it.
const READERS: usize = 4;
/// Room in a store beside the object, as a divisor of its size.
const SPARE: u64 = 4;

/// The length of an object, and its last byte.
#[remote]
fn read(object: Blob) -> (usize, Option<u8>) {
    (object.len(), object.last().copied())
}

/// Bytes that the source sends for an object that all other nodes read at the same time, as a multiple of its
/// size.
pub fn broadcast(options: &Options) -> Result<Measurement> {
    let bytes = options.size * 1_000_000;
    let floor = floors::tcp_gb_s(bytes)?;
    let store_bytes = bytes as u64 + bytes as u64 / SPARE;
    let value = Values::incompressible(bytes).value(0);
    let watch = Watch::begin(store_bytes * (READERS as u64 + 1));
    let cluster = LocalCluster::start(READERS + 1, 1.0, store_bytes)?;
    let socket = cluster.socket(0).context("the source is gone")?;
    let _runtime = tharsis::init().address(socket.display().to_string()).start()?;
    let object = put(&value)?;
    let started = Instant::now();
    let nodes: Vec<_> = (1..=READERS).filter_map(|index| cluster.node(index)).collect();
    let answers: Vec<_> = nodes.iter().map(|n| read::options().node(*n, false).remote(&object)).collect();
    for (length, last) in tharsis::get_all(&answers, None)? {
        ensure!(length == bytes && last == value.last().copied(), "a node read something else");
    }
    let seconds = started.elapsed().as_secs_f64();
    let sent = cluster.report(0)?.sent_bytes;
    let peak = watch.end()?;
    let total = (bytes * READERS) as f64;
    Ok(Measurement::new("broadcast", sent as f64 / bytes as f64, "objects", 0.0)
        .with("gb_s", total / 1e9 / seconds)
        .with("tcp_ratio", total / 1e9 / seconds / floor)
        .with_peak(peak))
}
