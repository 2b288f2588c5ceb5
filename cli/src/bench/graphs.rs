//! Graphs of tasks that are submitted in one call.

use super::statistics::{median, quantile};
use super::{Measurement, Options, Place, floors, noise, places, tasks};
use anyhow::Result;
use std::time::Instant;
use tharsis::prelude::*;

/// Workers, as in the benches of tasks.
const WORKERS: usize = 2;
const LAYERS: usize = 100;
/// Runs that count, after one that warms up.
const RUNS: usize = 5;

#[remote]
fn first() {}

#[remote]
fn next(_: (), _: ()) {}

#[remote]
fn last(_: Values<()>) {}

/// Tasks per second of a graph in layers, each of whose tasks takes two random results of the layer before,
/// from the first call that builds it to the last result. `task_bytes` is the most memory that a task takes
/// in all processes together, in a run apart. The floor is the rate of messages over a socket.
pub fn layers(options: &Options) -> Result<Measurement> {
    let width = options.size.div_ceil(LAYERS);
    let floor = floors::socket_echo_per_s(options.size)?;
    let _runtime = tasks::runtime(options, WORKERS)?;
    let (mut rates, mut building) = (Vec::new(), Vec::new());
    for run in 0..RUNS + 1 {
        let begun = Instant::now();
        let (graph, end) = build(width);
        let (count, built) = (graph.len(), begun.elapsed());
        graph.submit(end)?.get()?;
        if run > 0 {
            rates.push(count as f64 / begun.elapsed().as_secs_f64());
            building.push(built.as_secs_f64());
        }
    }
    let tasks = (width * LAYERS) as f64;
    Ok(Measurement::new("graph", median(&mut rates), "tasks/s", floor)
        .with("best", quantile(&rates, 1.0))
        .with("build_s", median(&mut building))
        .with("task_bytes", bytes(width)? as f64 / tasks))
}

/// Memory that a graph of this width takes at most, in all processes.
fn bytes(width: usize) -> Result<u64> {
    let before = places::family_bytes();
    let run = || {
        let (graph, end) = build(width);
        Ok(graph.submit(end)?.get()?)
    };
    let ((), peak) = places::peak_bytes(Place::Workers, run)?;
    Ok(peak.saturating_sub(before))
}

/// The graph, and the result of its last task.
fn build(width: usize) -> (TaskGraph, Planned<()>) {
    let mut graph = TaskGraph::new();
    let mut draws = vec![0; width * 8];
    let mut before: Vec<_> = (0..width).map(|_| first::add_to(&mut graph)).collect();
    for layer in 1..LAYERS {
        noise::fill(&mut draws, layer as u64);
        let tasks = draws.chunks_exact(8).map(|draw| {
            let [a, b] = [&draw[..4], &draw[4..]].map(|half| before[below(half, width)]);
            next::add_to(&mut graph, a, b)
        });
        before = tasks.collect();
    }
    let end = last::add_to(&mut graph, before);
    (graph, end)
}

/// A number below `end` from four random bytes.
fn below(draw: &[u8], end: usize) -> usize {
    draw.iter().fold(0, |number, byte| number << 8 | usize::from(*byte)) % end
}
