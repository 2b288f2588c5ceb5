//! A graph of tasks in layers, submitted in one call: `cargo run --release --example layers`.
//!
//! Each task takes the results of two tasks of the layer before, drawn at random. Options: `--tasks N`
//! (default 1e6), `--layers N` (default 100), `--workers N` (worker processes instead of threads),
//! `--rounds N` (how often, default 3). It prints how many tasks run in a second, and the memory that a task
//! takes at most.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tharsis::prelude::*;

/// Result of the example.
type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

#[remote]
fn first() {}

#[remote]
fn next(_: (), _: ()) {}

#[remote]
fn last(_: Values<()>) {}

#[tharsis::main]
fn main() -> Outcome<()> {
    let options = Options::from_args()?;
    let init = match options.workers {
        Some(count) => init().workers(count),
        None => init(),
    };
    let _runtime = init.start()?;
    // Workers start with the first task.
    first::remote().get()?;
    for _ in 0..options.rounds {
        run(&options)?;
    }
    Ok(())
}

/// Builds the graph, submits it and waits for its last task.
fn run(options: &Options) -> Outcome<()> {
    let memory = Memory::watch()?;
    let started = Instant::now();
    let width = options.tasks.div_ceil(options.layers).max(1);
    let (graph, end) = build(options.layers, width);
    let (tasks, built) = (graph.len() as f64, started.elapsed().as_secs_f64());
    let end = graph.submit(end)?;
    let submitted = started.elapsed().as_secs_f64() - built;
    end.get()?;
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{:.0} tasks/s: {tasks} tasks in {seconds:.2} s, of which building took {built:.2} s and submitting \
         {submitted:.2} s; at most {:.0} bytes a task",
        tasks / seconds,
        memory.peak_bytes()? as f64 / tasks
    );
    Ok(())
}

/// The graph, and the result of its last task.
fn build(layers: usize, width: usize) -> (TaskGraph, Planned<()>) {
    let mut graph = TaskGraph::new();
    let mut random = Random(1);
    let mut before: Vec<_> = (0..width).map(|_| first::add_to(&mut graph)).collect();
    for _ in 1..layers {
        let mut layer = Vec::with_capacity(width);
        for _ in 0..width {
            let [a, b] = [(); 2].map(|()| before[random.below(width)]);
            layer.push(next::add_to(&mut graph, a, b));
        }
        before = layer;
    }
    let end = last::add_to(&mut graph, before);
    (graph, end)
}

/// SplitMix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % end as u64) as usize
    }
}

/// Watches the memory of this process and of those that it started.
struct Memory {
    before: u64,
    peak: Arc<AtomicU64>,
    ends: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<()>,
}

impl Memory {
    fn watch() -> Outcome<Self> {
        let before = family_bytes()?;
        let (peak, ends) = (Arc::new(AtomicU64::new(before)), Arc::new(AtomicBool::new(false)));
        let (seen, over) = (Arc::clone(&peak), Arc::clone(&ends));
        let thread = std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                seen.fetch_max(family_bytes().unwrap_or(0), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        Ok(Self { before, peak, ends, thread })
    }

    /// The most that was taken beyond what there was.
    fn peak_bytes(self) -> Outcome<u64> {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| "the thread that measures memory has ended")?;
        Ok(self.peak.load(Ordering::Relaxed).saturating_sub(self.before))
    }
}

/// Memory of this process and its children: their private pages, and their parts of shared ones.
fn family_bytes() -> Outcome<u64> {
    let (mut family, mut at, mut sum) = (vec!["self".to_owned()], 0, 0);
    while let Some(process) = family.get(at).cloned() {
        at += 1;
        // A process may have ended meanwhile.
        let Ok(text) = fs::read_to_string(format!("/proc/{process}/smaps_rollup")) else { continue };
        let line = text.lines().find_map(|line| line.strip_prefix("Pss:")).ok_or("no Pss in smaps_rollup")?;
        sum += line.split_whitespace().next().ok_or("Pss has no value")?.parse::<u64>()? << 10;
        for thread in fs::read_dir(format!("/proc/{process}/task"))?.flatten() {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            family.extend(children.split_whitespace().map(str::to_owned));
        }
    }
    Ok(sum)
}

struct Options {
    tasks: usize,
    layers: usize,
    rounds: usize,
    workers: Option<usize>,
}

impl Options {
    fn from_args() -> Outcome<Self> {
        let mut options = Self { tasks: 1_000_000, layers: 100, rounds: 3, workers: None };
        let mut args = std::env::args().skip(1);
        while let Some(flag) = args.next() {
            let value = args.next().ok_or_else(|| format!("{flag} needs a value"))?;
            match flag.as_str() {
                "--tasks" => options.tasks = value.parse::<f64>()? as usize,
                "--layers" => options.layers = value.parse::<usize>()?.max(1),
                "--rounds" => options.rounds = value.parse()?,
                "--workers" => options.workers = Some(value.parse()?),
                _ => return Err(format!("unknown option {flag}").into()),
            }
        }
        Ok(options)
    }
}
