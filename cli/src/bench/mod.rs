//! `tharsis bench`: each figure beside a floor that was measured in the same run.
//!
//! Absolute times on shared machines mean little; a ratio to a bare loop of the same kind travels. Every bench is a
//! function from [`Options`] to a [`Measurement`]; this module names them, runs them and prints them.

mod floors;
mod memory;
mod objects;
mod statistics;
mod system;
mod tasks;

pub use floors::serve as serve_floor;
pub use system::first_result;

use anyhow::{Result, bail};
use serde::Serialize;
use std::collections::BTreeMap;

/// What all benches share.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Workers as threads of this process instead of processes.
    pub embedded: bool,
    /// A tenth of the work, for a quick look.
    pub quick: bool,
}

/// One figure.
#[derive(Clone, Debug, Serialize)]
pub struct Measurement {
    /// Name of the bench.
    pub name: String,
    /// The figure.
    pub value: f64,
    /// Its unit.
    pub unit: &'static str,
    /// The floor, in the same unit; 0 if there is none.
    pub floor: f64,
    /// `value / floor`; 0 if there is no floor.
    pub ratio: f64,
    /// More figures of the same run.
    pub detail: BTreeMap<&'static str, f64>,
}

type Bench = fn(&Options) -> Result<Measurement>;

/// A bench with what it must reach, for the table.
struct Entry {
    name: &'static str,
    bench: Bench,
    must: &'static str,
    aim: &'static str,
}

const BENCHES: &[Entry] = &[
    Entry { name: "task-latency", bench: tasks::latency, must: "<= 30, ratio <= 3", aim: "<= 5" },
    Entry { name: "task-throughput", bench: tasks::throughput, must: ">= 400 000", aim: ">= 1 500 000" },
    Entry { name: "task-backlog", bench: tasks::backlog, must: "<= 400", aim: "<= 200" },
    Entry { name: "chain", bench: tasks::chain, must: "<= 20", aim: "<= 5" },
    Entry { name: "fan", bench: tasks::fan, must: "<= 50", aim: "<= 15" },
    Entry { name: "object-small", bench: objects::small, must: "<= 5, get <= 3", aim: "<= 2, get <= 1" },
    Entry { name: "object-large", bench: objects::large, must: "ratio >= 0.8", aim: ">= 0.95" },
    Entry { name: "transfer", bench: objects::transfer, must: "ratio >= 0.6", aim: ">= 0.9" },
    Entry {
        name: "coldstart",
        bench: system::coldstart,
        must: "<= 150, embedded <= 20",
        aim: "<= 50, embedded 5",
    },
    Entry { name: "idle", bench: system::idle, must: "<= 30", aim: "<= 15" },
];

impl Measurement {
    /// A figure with its floor.
    #[must_use]
    pub fn new(name: &str, value: f64, unit: &'static str, floor: f64) -> Self {
        let ratio = if floor > 0.0 { value / floor } else { 0.0 };
        Self { name: name.to_owned(), value, unit, floor, ratio, detail: BTreeMap::new() }
    }

    /// Adds another figure of the same run.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: f64) -> Self {
        self.detail.insert(key, value);
        self
    }
}

/// Names of all benches.
pub fn names() -> impl Iterator<Item = &'static str> {
    BENCHES.iter().map(|e| e.name)
}

/// Runs one bench, or all, and prints a line of JSON each or a table.
///
/// # Errors
/// An unknown name, or whatever went wrong in a bench.
pub fn run(name: &str, options: Options, json: bool) -> Result<()> {
    let mut rows: Vec<(&Entry, Options)> = Vec::new();
    for entry in BENCHES.iter().filter(|e| name == "all" || e.name == name) {
        rows.push((entry, options));
        if name == "all" && entry.name == "task-throughput" {
            rows.push((entry, Options { embedded: true, ..options }));
        }
    }
    if rows.is_empty() {
        bail!("unknown bench {name:?}; there are: all, {}", names().collect::<Vec<_>>().join(", "));
    }
    if !json {
        crate::output::line(&format!(
            "{:<28} {:>12} {:<10} {:>12} {:>7}  {:<24} {:<18} detail",
            "bench", "value", "unit", "floor", "ratio", "must", "aim"
        ))?;
    }
    for (entry, options) in rows {
        let mut measured = (entry.bench)(&options)?;
        if options.embedded {
            measured.name.push_str(" --embedded");
        }
        if json {
            crate::output::line(&serde_json::to_string(&measured)?)?;
        } else {
            print_row(&measured, entry)?;
        }
    }
    Ok(())
}

fn print_row(m: &Measurement, entry: &Entry) -> Result<()> {
    let embedded_throughput = m.name == "task-throughput --embedded";
    let (must, aim) =
        if embedded_throughput { (">= 1 000 000", ">= 3 000 000") } else { (entry.must, entry.aim) };
    let detail: Vec<_> = m.detail.iter().map(|(k, v)| format!("{k} {}", rounded(*v))).collect();
    crate::output::line(&format!(
        "{:<28} {:>12} {:<10} {:>12} {:>7.2}  {must:<24} {aim:<18} {}",
        m.name,
        rounded(m.value),
        m.unit,
        rounded(m.floor),
        m.ratio,
        detail.join(", ")
    ))
}

/// Three significant places below a thousand, whole numbers above.
fn rounded(value: f64) -> String {
    match value.abs() {
        v if v >= 1000.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}
