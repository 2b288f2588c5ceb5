//! Simulates whole clusters in one thread. The decisions are the product's own; the clock, the network and
//! the clients are simulated.
//!
//! A seed decides how many nodes and drivers there are, what the programs do, how long everything takes,
//! which packets are lost, doubled or late, who dies when. The nodes are [`tharsis_core::Node`], unchanged.
//! After every event the rules below are checked; the first that is broken ends the run with its name and the
//! number of the event, and the same seed breaks it again at the same place.
//!
//! | # | rule | where |
//! |---|---|---|
//! | 1 | the machine's own books agree | `Node::check` |
//! | 2 | resources are never oversubscribed, counted from what workers do | `Cluster::start_using` |
//! | 3 | no object is freed while a client refers to it | `Cluster::check_held` |
//! | 4 | no object is freed while a node refers to it | `Cluster::check_owners` |
//! | 5 | an attempt starts at most once | `Cluster::note_start` |
//! | 6 | side effects happen at most 1 + retries times (and once more per dead node) | `Cluster::note_start` |
//! | 7 | every get ends, every blocked worker resumes | `Cluster::check_quiet` |
//! | 8 | a value is the expected one | `Cluster::value_told` |
//! | 9 | a failure has a cause, so tasks with retries left survive | `Oracle::excuse` |
//! | 10 | arguments are the expected values, in order | `Cluster::read_arguments` |
//! | 11 | mapped bytes never change, delivered bytes are there | `Cluster::still` |
//! | 12 | nothing leaks: objects, bytes, tasks, and whatever else `Node::leftovers` counts | `Cluster::check_empty` |
//! | 13 | all resources come back | `Cluster::check_empty` |
//! | 14 | workers are bounded and end with their job | `Cluster::check_worker_counts`, `check_no_workers` |
//! | 15 | what is sent ahead to a worker is bounded, and of its job | `Cluster::told`, `start_next` |
//! | 16 | a run that is announced can be read | `Cluster::send_run` |
//! | 17 | only idle workers are stopped | `Cluster::told` |
//! | 18 | one id is one call, with its arguments, or one value put | `Oracle::submitted` |
//! | 19 | an isolated node starts no work of others | `Cluster::check_isolated` |
//! | 20 | calls of an actor run where it lives, and those of a caller in order | `Cluster::check_call` |
//! | 21 | an actor that is started again continues from its last snapshot | `Cluster::read_snapshot` |
//! | 22 | no job holds more than its quota | `Cluster::check_quotas` |
//! | 23 | everything ends: virtual time, events in all and at one moment are bounded | `Cluster::run_dry` |
//! | 24 | tasks inside of a group run where it has bundles, which lie as its strategy asks | `Cluster::check_inside`, `check_groups` |
//! | 25 | what a group has reserved is left to what runs inside | `Cluster::check_set_aside` |
//! | 26 | nobody waits long for what is free: tasks, groups, workers that resume | `Cluster::look_who_waits` |
//! | 27 | nodes keep nothing of work that is over, also while they run on | `Cluster::look_at_growth` |
//! | 28 | a transfer leaves a holder that is not reached | `Cluster::look_at_asked` |
//! | 29 | no copy is given up that can be read | `Cluster::check_given_up` |
//!
//! | file | is |
//! |---|---|
//! | `program.rs` | what tasks do and what values must come out |
//! | `client.rs`, `acts.rs` | drivers and workers: what they keep, what they do |
//! | `actors.rs` | calls of actors: who makes them, where and in which order they start |
//! | `sides.rs` | calls that an actor runs beside others |
//! | `cluster.rs` | hosts, network, agenda, faults |
//! | `rates.rs`, `faults.rs` | how often things go wrong; accidents |
//! | `cuts.rs` | hosts that do not reach each other |
//! | `drains.rs` | nodes that drain |
//! | `losses.rs` | copies that their owners give up |
//! | `isolation.rs` | hosts that reach nobody |
//! | `pauses.rs` | processes and clocks that stand still, clocks that run ahead |
//! | `processes.rs` | processes that actors share |
//! | `groups.rs` | placement groups, and the tasks inside of them |
//! | `names.rs` | what is found by name, and lives without handles |
//! | `streams.rs` | consumers of streams |
//! | `waiting.rs` | who waits, and for how long beside what is free |
//! | `quotas.rs` | quotas of jobs |
//! | `oracle.rs`, `check.rs` | the rules |
//! | `rounds.rs` | the same amount of work again and again |
//! | `remembered.rs` | the memory of checks from one look to the next |
//! | `crowd.rs` | the cost of an event beside much that it does not touch |
//! | `fair.rs` | jobs that keep one node busy: what each of them gets |
//! | `growth.rs` | thousands of nodes without faults: what each of them sends |
//! | `trace.rs` | the course of a run as a number, and as lines |
//! | `report.rs` | what the nodes tell of the tasks and objects that a broken rule names |

#![forbid(unsafe_code)]

mod actors;
mod acts;
mod check;
mod client;
mod cluster;
pub mod crowd;
mod cuts;
mod disk;
mod drains;
pub mod fair;
mod faults;
mod graphs;
mod groups;
pub mod growth;
mod isolation;
mod losses;
mod names;
mod oracle;
mod pauses;
mod processes;
mod program;
mod quotas;
mod rates;
mod remembered;
mod report;
mod rng;
mod rounds;
mod sides;
mod streams;
mod trace;
mod waiting;

pub use rounds::Round;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tharsis_core::Now;

/// Options of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Decides everything.
    pub seed: u64,
    /// Nodes at the start; by seed if not given.
    pub nodes: Option<usize>,
    /// Print every event.
    pub verbose: bool,
    /// A fault that no node may survive unnoticed, to test the rules.
    pub sabotage: Sabotage,
}

/// A planted fault: each breaks a rule, most of them once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sabotage {
    /// None.
    #[default]
    Nothing,
    /// A transfer delivers other bytes.
    CorruptPull,
    /// Owners that read their objects from other nodes are told that these do not have them.
    DenyCopies,
    /// A dropped reference is not reported.
    LoseRelease,
    /// A run is not sent to its worker.
    LoseRun,
    /// A run is sent twice.
    RepeatRun,
    /// Nodes tell each other that nothing is free, and take requests for larger ones.
    HideRoom,
    /// Tasks start inside of groups that have no bundle there, and take what is reserved.
    MoveInside,
    /// Each call has a class of its own, which its node keeps as long as the client lives.
    ClassEach,
    /// With each job that comes, another client has one more class.
    ClassPerJob,
}

/// Counts of a run without violations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The seed.
    pub seed: u64,
    /// Nodes, those that joined later included.
    pub node_count: usize,
    /// Nodes that died.
    pub node_death_count: u32,
    /// Nodes that began to drain.
    pub drain_count: u32,
    /// Nodes that drained and left nothing behind.
    pub departure_count: u32,
    /// Tasks.
    pub task_count: usize,
    /// Attempts that started.
    pub start_count: usize,
    /// The part of these that differed from the first attempt.
    pub divergence_count: u32,
    /// Runs sent to workers.
    pub run_count: u64,
    /// Workers started.
    pub worker_count: u32,
    /// Workers that died by accident.
    pub crash_count: u32,
    /// Waits of tasks with their slot lent.
    pub block_count: u64,
    /// Calls of actors.
    pub call_count: u64,
    /// Calls that started beside others of their actor.
    pub beside_count: u64,
    /// Placement groups that were asked for.
    pub group_count: u64,
    /// Tasks that started inside of one.
    pub inside_count: u64,
    /// Actors and groups that got a name.
    pub name_count: u64,
    /// The times that something was found by its name.
    pub find_count: u64,
    /// Streams that were consumed.
    pub stream_count: u64,
    /// Items taken from them.
    pub item_count: u64,
    /// Nodes whose process stood still for a while.
    pub pause_count: u32,
    /// Clocks that ran ahead.
    pub jump_count: u32,
    /// Accidents that ended several workers at once.
    pub shared_crash_count: u32,
    /// The longest time for which a task waited beside what was free for it, in milliseconds.
    pub longest_wait_ms: u64,
    /// Copies written to disk.
    pub spill_count: u64,
    /// Copies read back.
    pub restore_count: u64,
    /// The part of these that nobody waited for.
    pub ahead_count: u64,
    /// Gets.
    pub get_count: u64,
    /// Failures read.
    pub failure_count: u64,
    /// Transfers between nodes.
    pub pull_count: u64,
    /// The part of these that broke off.
    pub interruption_count: u64,
    /// Packets between nodes.
    pub packet_count: u64,
    /// Messages in them.
    pub message_count: u64,
    /// Events.
    pub event_count: u64,
    /// Virtual time, in milliseconds.
    pub virtual_ms: u64,
    /// Hash over all events and actions.
    pub trace_hash: u64,
}

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Number of the event.
    pub event: u64,
    /// Virtual time.
    pub at: Now,
    /// The rule.
    pub invariant: &'static str,
    /// The facts.
    pub detail: String,
    /// Stories of the nodes about the tasks and objects that the facts name.
    pub stories: String,
}

/// Runs one seed to its end.
///
/// # Errors
/// The first rule that was broken.
pub fn run(options: &Options) -> Result<Summary, Violation> {
    watched(options, cluster::Cluster::run)
}

/// Runs one seed through so many rounds of work, with the state of the cluster after each.
///
/// # Errors
/// The first rule that was broken.
pub fn run_rounds(options: &Options, count: usize) -> Result<Vec<Round>, Violation> {
    watched(options, |cluster| cluster.run_rounds(count))
}

/// Runs a cluster; a node that panics breaks a rule.
fn watched<T>(
    options: &Options,
    work: impl FnOnce(&mut cluster::Cluster) -> Result<T, Violation>,
) -> Result<T, Violation> {
    let mut cluster = cluster::Cluster::new(options);
    let outcome = catch_unwind(AssertUnwindSafe(|| work(&mut cluster)));
    let outcome = outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
        Err(Violation {
            event: cluster.event_count(),
            at: cluster.time(),
            invariant: "the machine's own books agree",
            detail: text.unwrap_or_default(),
            stories: String::new(),
        })
    });
    outcome.map_err(|broken| Violation { stories: report::stories(&cluster, &broken.detail), ..broken })
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "seed {}: {} ms of virtual time, {} events",
            self.seed, self.virtual_ms, self.event_count
        )?;
        let (nodes, deaths) = (self.node_count, self.node_death_count);
        let (drains, departures) = (self.drain_count, self.departure_count);
        writeln!(f, "  nodes    {nodes}, of which {deaths} died; {drains} drained, {departures} in time")?;
        writeln!(
            f,
            "  tasks    {}, {} attempts, {} runs sent",
            self.task_count, self.start_count, self.run_count
        )?;
        writeln!(
            f,
            "  workers  {}, of which {} crashed; {} waits",
            self.worker_count, self.crash_count, self.block_count
        )?;
        let (gets, failures, wait) = (self.get_count, self.failure_count, self.longest_wait_ms);
        writeln!(f, "  gets     {gets}, {failures} failures read; nobody waited longer than {wait} ms")?;
        let (groups, names, streams) = (self.group_count, self.name_count, self.stream_count);
        writeln!(
            f,
            "  places   {groups} groups, {names} names; {streams} streams, {} items",
            self.item_count
        )?;
        let (spills, restores, ahead) = (self.spill_count, self.restore_count, self.ahead_count);
        writeln!(f, "  disks    {spills} copies written, {restores} read back, {ahead} of them ahead")?;
        writeln!(
            f,
            "  network  {} messages in {} packets, {} transfers",
            self.message_count, self.packet_count, self.pull_count
        )?;
        write!(f, "  trace    {:016x}", self.trace_hash)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { event, at, invariant, detail, stories } = self;
        write!(f, "broken at event {event}, {} us: {invariant}\n  {detail}{stories}", at / 1000)
    }
}
