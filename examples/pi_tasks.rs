//! Monte Carlo pi over remote tasks, in this process: `cargo run --release --example pi_tasks`. The example
//! `pi` does it with tensors.
//!
//! Each task draws points in the unit square from a generator seeded by its number and counts those inside
//! the quarter circle. Options: `--points N` (default 1e9), `--tasks N` (default 400), `--workers N` (worker
//! processes instead of threads), `--address auto` (the node that runs on this machine).

use std::io::IsTerminal;
use std::time::Instant;
use tharsis::prelude::*;

/// Points of `count` that fall inside the quarter circle.
#[remote]
fn count_inside(seed: u64, count: u64) -> u64 {
    let mut state = Generator::new(seed);
    (0..count).filter(|_| state.point_is_inside()).count() as u64
}

#[tharsis::main]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = Options::from_args()?;
    let _runtime = options.start()?;
    let started = Instant::now();
    let each = options.points / options.tasks;
    let tasks: Vec<_> = (0..options.tasks).map(|seed| count_inside::remote(seed, each)).collect();
    let mut inside = 0;
    for (done, task) in (1..).zip(tasks) {
        inside += task.get()?;
        show(done, options.tasks);
    }
    let points = each * options.tasks;
    let seconds = started.elapsed().as_secs_f64();
    let estimate = 4.0 * inside as f64 / points as f64;
    println!("pi is about   {estimate:.8}");
    println!(
        "error         {:+.2e} (expected about {:.0e})",
        estimate - std::f64::consts::PI,
        1.64 / (points as f64).sqrt()
    );
    println!("points        {points} in {} tasks", options.tasks);
    println!("rate          {:.0} million points/s", points as f64 / seconds / 1e6);
    println!("peak memory   {} MiB", peak_memory_kib()? / 1024);
    Ok(())
}

/// Shows how far it is, if there is a terminal to show it on.
fn show(done: u64, tasks: u64) {
    if std::io::stderr().is_terminal() {
        let end = if done < tasks { "" } else { "\r\x1b[2K" };
        eprint!("\r{:3} % of {tasks} tasks{end}", 100 * done / tasks);
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): two words make a point.
struct Generator(u64);

impl Generator {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0xD1B5_4A32_D192_ED03))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn point_is_inside(&mut self) -> bool {
        let unit = |word: u64| (word >> 11) as f64 * (1.0 / (1u64 << 53) as f64);
        let (x, y) = (unit(self.next()), unit(self.next()));
        x * x + y * y < 1.0
    }
}

struct Options {
    points: u64,
    tasks: u64,
    workers: Option<usize>,
    address: Option<String>,
}

impl Options {
    fn from_args() -> Result<Self, Box<dyn std::error::Error>> {
        let mut options = Self { points: 1_000_000_000, tasks: 400, workers: None, address: None };
        let mut args = std::env::args().skip(1);
        while let Some(flag) = args.next() {
            let value = args.next().ok_or_else(|| format!("{flag} needs a value"))?;
            match flag.as_str() {
                "--points" => options.points = value.parse::<f64>()? as u64,
                "--tasks" => options.tasks = value.parse::<u64>()?.max(1),
                "--workers" => options.workers = Some(value.parse()?),
                "--address" => options.address = Some(value),
                _ => return Err(format!("unknown option {flag}").into()),
            }
        }
        Ok(options)
    }

    fn start(&self) -> tharsis::Result<tharsis::Runtime> {
        let init = match self.workers {
            Some(count) => init().workers(count),
            None => init(),
        };
        match &self.address {
            Some(address) => init.address(address).start(),
            None => init.start(),
        }
    }
}

/// Largest resident memory of this process, in KiB.
fn peak_memory_kib() -> Result<u64, Box<dyn std::error::Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:")).ok_or("no VmHWM in /proc/self/status")?;
    Ok(line.split_whitespace().nth(1).ok_or("VmHWM has no value")?.parse()?)
}
