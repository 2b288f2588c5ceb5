//! `tharsis bench`: each figure beside a floor that was measured in the same run.
//!
//! Absolute times on shared machines mean little; the ratio to a bare loop of the same kind is comparable
//! between machines. Every bench is a function from [`Options`] to a [`Measurement`]; this module names them,
//! runs them and prints them.

mod actors;
mod bounded;
mod broadcast;
mod cancels;
mod churn;
mod cluster;
mod disk_floor;
#[cfg(feature = "tensors")]
mod elementwise;
#[cfg(feature = "tensors")]
mod executors;
mod failover;
mod floors;
#[cfg(feature = "frames")]
mod frame_benches;
#[cfg(feature = "frames")]
mod frames;
mod graphs;
mod groups;
mod identities;
mod many_actors;
mod memory;
mod musts;
mod names;
mod nested;
mod noise;
mod objects;
mod places;
mod recompute;
mod recovery;
mod refs;
mod resident;
mod shapes;
mod shuffle;
mod spill;
mod statistics;
mod streams;
mod system;
mod tasks;
#[cfg(feature = "tensors")]
mod tensor_benches;
#[cfg(feature = "tensors")]
mod tensor_floors;
#[cfg(feature = "tensors")]
mod tensor_sort;
#[cfg(feature = "tensors")]
mod tensors;
#[cfg(feature = "frames")]
mod tpch;
mod waits;

pub use floors::serve as serve_floor;
pub use places::Place;
pub use system::first_result;

use crate::refusal::Refusal;
use anyhow::Result;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Settings that all benches share.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Workers as threads of this process instead of processes.
    pub embedded: bool,
    /// A tenth of the work, for a quick look.
    pub quick: bool,
    /// Executor of the tasks of tensors and frames.
    pub on: Place,
    /// The size of a bench that has one.
    pub size: usize,
    /// Read back in random order.
    pub random: bool,
    /// Values that compress well.
    pub compressible: bool,
    /// Upper bound on the bytes per second of the disk.
    pub disk_limit: Option<u64>,
    /// Bytes of the store.
    pub store: Option<u64>,
    /// Number of nodes, where that is the size.
    pub nodes: Option<usize>,
    /// Bytes of memory for operators and store together.
    pub memory: Option<u64>,
    /// Rounds of each job over frames.
    pub rounds: Option<u32>,
    /// The folder that keeps the data.
    pub data: Option<PathBuf>,
}

impl Options {
    /// The size of a bench whose unit is large: `--quick` takes a tenth of one too.
    #[cfg(feature = "frames")]
    fn scale(&self) -> f64 {
        if self.quick { self.size as f64 / 10.0 } else { self.size as f64 }
    }

    /// The given flags, of those that only some benches have.
    fn flags(&self) -> impl Iterator<Item = &'static str> {
        let given = [
            ("--random", self.random),
            ("--compressible", self.compressible),
            ("--disk-limit", self.disk_limit.is_some()),
            ("--store", self.store.is_some()),
            ("--nodes", self.nodes.is_some()),
            ("--memory", self.memory.is_some()),
            ("--rounds", self.rounds.is_some()),
            ("--data", self.data.is_some()),
        ];
        given.into_iter().filter_map(|(flag, is_given)| is_given.then_some(flag))
    }
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
    pub detail: BTreeMap<Cow<'static, str>, f64>,
}

type Bench = fn(&Options) -> Result<Measurement>;

/// A bench with its targets, for the table.
struct Entry {
    name: &'static str,
    bench: Bench,
    must: &'static str,
    aim: &'static str,
    /// Whether it is quick enough for `all`.
    in_all: bool,
    /// Amount of work, where that can be chosen.
    size: Option<Size>,
    /// Flags that only some benches have.
    flags: &'static [&'static str],
}

/// Default amount of work of a bench.
#[derive(Clone, Copy)]
struct Size {
    full: usize,
    quick: usize,
}

const BENCHES: &[Entry] = &[
    row("task-latency", tasks::latency, "<= 30, ratio <= 3", "<= 5"),
    row("task-throughput", tasks::throughput, ">= 400 000", ">= 1 500 000"),
    row("task-backlog", tasks::backlog, "<= 400", "<= 200"),
    row("chain", tasks::chain, "<= 20", "<= 5"),
    row("fan", tasks::fan, "<= 50", "<= 15"),
    row("fan-in", tasks::fan_in, "<= 300", "<= 150").sized(100_000, 10_000),
    row("wait", waits::one_by_one, "<= 20, growth <= 2", "<= 3").sized(1_000, 1_000),
    row("nested", nested::nested, ">= 20 000", ">= 100 000"),
    row("actor-latency", actors::latency, "<= 40, ratio <= 6", "<= 10"),
    row("actor-throughput", actors::throughput, ">= 200 000, n_to_n 300 000", ">= 1 000 000"),
    row("actor-create", actors::create, "<= 10, shared_s 1", "<= 3, shared_s 0.1").sized(1_000, 100),
    row("actors-many", many_actors::many, "<= 60", "").sized(100_000, 10_000).apart(),
    row("cancel-wide", cancels::wide, "<= 2", "").sized(1_000_000, 100_000).apart(),
    row("shapes", shapes::shapes, ">= 100 000", "").sized(100_000, 10_000),
    row("names", names::names, "<= 10", "").sized(100_000, 10_000).apart(),
    row("stream", streams::stream, ">= 200 000, large_ratio 0.5", ""),
    row("pg", groups::create_and_remove, ">= 5 000", ""),
    row("graph", graphs::layers, ">= 200 000, task_bytes <= 300", ">= 500 000").sized(1_000_000, 100_000),
    row("object-small", objects::small, "<= 5, get <= 3", "<= 2, get <= 1"),
    row("object-large", objects::large, "ratio >= 0.8", ">= 0.95"),
    row("transfer", objects::transfer, "ratio >= 0.6", ">= 0.9"),
    row("transfer-tls", identities::transfer, "ratio >= 0.6", ">= 0.9"),
    row("task-throughput-tls", identities::throughput, "ratio >= 0.9", ""),
    row("join", identities::join, "<= 300", "<= 100"),
    row("coldstart", system::coldstart, "<= 150, embedded <= 20", "<= 50, embedded 5"),
    row("idle", system::idle, "<= 30", "<= 15"),
    row("spill", spill::spill, SPILL_MUST, ">= 0.95, 0.9")
        .sized(12_000, 2_000)
        .with_flags(&["--random", "--compressible", "--disk-limit", "--store"])
        .apart(),
    row("put-loop", churn::put_loop, "ratio >= 0.85, small 0.7", ">= 0.95"),
    row("shuffle", shuffle::shuffle, "ratio >= 0.5, --store 0.6", ">= 0.8, 0.9")
        .sized(4_000, 1_000)
        .with_flags(&["--store"])
        .apart(),
    row("refs", refs::refs, "<= 2", "<= 0.5"),
    row("recompute", recompute::recompute, "<= 1.15, spilled 0", "<= 1.05")
        .sized(20_000, 4_000)
        .with_flags(&["--store"])
        .apart(),
    row("recovery", recovery::recovery, "<= 2", "<= 0.5").sized(100, 10).apart(),
    row("failover", failover::failover, "<= 5", "<= 1").apart(),
    row("broadcast", broadcast::broadcast, "<= 2", "").sized(1_000, 100).apart(),
    row("cluster", cluster::cluster, "<= 20, idle <= 10 %", "")
        .sized(100, 20)
        .with_flags(&["--nodes"])
        .apart(),
];

const SPILL_MUST: &str = ">= 0.7, random 0.6, compressible 1.3";

const fn row(name: &'static str, bench: Bench, must: &'static str, aim: &'static str) -> Entry {
    Entry { name, bench, must, aim, in_all: true, size: None, flags: &[] }
}

impl Entry {
    const fn sized(self, full: usize, quick: usize) -> Entry {
        Entry { size: Some(Size { full, quick }), ..self }
    }

    /// Leaves the bench out of `all`, because it takes longer than 20 seconds.
    const fn apart(self) -> Entry {
        Entry { in_all: false, ..self }
    }

    const fn with_flags(self, flags: &'static [&'static str]) -> Entry {
        Entry { flags, ..self }
    }

    /// Refuses flags that this bench does not have.
    fn check_flags(&self, options: &Options) -> Result<(), Refusal> {
        match options.flags().find(|flag| !self.flags.contains(flag)) {
            Some(flag) => Err(Refusal::BenchFlag { flag, bench: self.name }),
            None => Ok(()),
        }
    }

    /// The options with a valid size for this bench.
    fn options(&self, options: Options, size: Option<usize>) -> Result<Options, Refusal> {
        let wrong = |problem: String| Err(Refusal::BenchSize { problem });
        match (size.or(options.nodes), self.size) {
            (Some(0), _) => wrong("0 leaves nothing to measure".to_owned()),
            (Some(_), None) => wrong(format!("the bench {} has none", self.name)),
            (Some(size), Some(_)) => Ok(Options { size, ..options }),
            (None, Some(default)) => {
                let size = if options.quick { default.quick } else { default.full };
                Ok(Options { size, ..options })
            }
            (None, None) => Ok(options),
        }
    }
}

impl Measurement {
    /// A figure with its floor.
    #[must_use]
    pub fn new(name: &str, value: f64, unit: &'static str, floor: f64) -> Self {
        let ratio = if floor > 0.0 { value / floor } else { 0.0 };
        Self { name: name.to_owned(), value, unit, floor, ratio, detail: BTreeMap::new() }
    }

    /// Adds another figure of the same run.
    #[must_use]
    pub fn with(mut self, key: impl Into<Cow<'static, str>>, value: f64) -> Self {
        self.detail.insert(key.into(), value);
        self
    }
}

/// The benches over frames and over tensors; none in a build without them.
#[cfg(feature = "frames")]
const FRAME_BENCHES: &[Entry] = frame_benches::BENCHES;
#[cfg(not(feature = "frames"))]
const FRAME_BENCHES: &[Entry] = &[];
#[cfg(feature = "tensors")]
const TENSOR_BENCHES: &[Entry] = tensor_benches::BENCHES;
#[cfg(not(feature = "tensors"))]
const TENSOR_BENCHES: &[Entry] = &[];

fn entries() -> impl Iterator<Item = &'static Entry> {
    BENCHES.iter().chain(TENSOR_BENCHES).chain(FRAME_BENCHES)
}

/// Names of all benches.
pub fn names() -> impl Iterator<Item = &'static str> {
    entries().map(|e| e.name)
}

/// Runs one bench, or all, and prints a line of JSON each or a table.
///
/// # Errors
/// An unknown name, or an error of a bench.
pub fn run(name: &str, options: Options, size: Option<usize>, json: bool) -> Result<()> {
    let mut rows: Vec<(&Entry, Options)> = Vec::new();
    for entry in entries().filter(|e| (name == "all" && e.in_all) || e.name == name) {
        entry.check_flags(&options)?;
        let options = entry.options(options.clone(), size)?;
        rows.push((entry, options.clone()));
        if name == "all" && entry.name == "task-throughput" {
            rows.push((entry, Options { embedded: true, ..options }));
        }
    }
    if rows.is_empty() {
        let known = names().collect::<Vec<_>>().join(", ");
        return Err(Refusal::NoSuchBench { asked: name.to_owned(), known }.into());
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
        measured.name.push_str(options.on.suffix());
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
    // A word to search for.
    let missed = musts::missed(must, m);
    let missed = if missed.is_empty() { String::new() } else { format!("MISSED {}; ", missed.join(", ")) };
    let detail: Vec<_> = m.detail.iter().map(|(k, v)| format!("{k} {}", rounded(*v))).collect();
    crate::output::line(&format!(
        "{:<28} {:>12} {:<10} {:>12} {:>7.2}  {must:<24} {aim:<18} {missed}{}",
        m.name,
        rounded(m.value),
        m.unit,
        rounded(m.floor),
        m.ratio,
        detail.join(", ")
    ))
}

/// Three significant digits below a thousand, whole numbers above.
fn rounded(value: f64) -> String {
    match value.abs() {
        v if v >= 1000.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}
