//! The world: hosts, network, clocks, and what goes wrong when.
//!
//! All that will happen stands in one agenda, ordered by virtual time, then by entry. Records between client
//! and node keep their order and survive the client's death, like rings do; packets keep nothing.

use crate::client::{Argument, Client, Driver, Phase, RunRecord};
use crate::oracle::Oracle;
use crate::program::{self, BESIDE, CLASS_COUNT, CONSTRUCTOR, Content, DETACHED, quota_of};
use crate::rates::{Faults, faults};
use crate::remembered::{Cut, Groups, Waiting};
use crate::rng::{Rng, mix};
use crate::trace::{action_number, tell_person_of};
use crate::{Options, Sabotage, Summary, Violation};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tharsis_core::event::{Member, Remains, Value};
use tharsis_core::lease::ProcessNumber;
use tharsis_core::node::{ArgumentValue, Config, Place};
use tharsis_core::{Action, Event, MS, Node, Now, Operation, Record};
use tharsis_types::peer::{Message, Packet};
use tharsis_types::{
    ClientId, Extent, Failure, FailureKind, JobId, NodeId, ObjectId, RefId, Resources, SmallBytes,
};

/// Nanoseconds in a microsecond.
pub(crate) const US: Now = 1_000;
/// A run that needs more virtual time than this hangs.
const TIME_MAX: Now = 600_000 * MS;
/// A run with more events than this does not settle.
const EVENTS_MAX: u64 = 400_000;
/// Events at one moment of virtual time; more is a machine that keeps itself awake.
const EVENTS_AT_ONCE_MAX: u32 = 20_000;
/// Ids of transfers as pinners start here, above those of clients.
const PINNERS: u32 = 1 << 31;

/// Something that will happen.
#[derive(Debug)]
pub(crate) enum SimEvent {
    BlocksFreed { host: usize, extent: Extent },
    Continue { host: usize, client: ClientId, epoch: u64 },
    Crash { host: usize },
    Drain { host: usize, within: Now },
    CrashClient { host: usize, client: ClientId, failure: Arc<Failure> },
    Cut { hosts: (usize, usize), length: Now, is_of_transfers: bool },
    DriverFound { host: usize, job: JobId },
    Drop { host: usize, client: ClientId, token: u64 },
    Gone { host: usize, client: ClientId, remains: Remains, failure: Arc<Failure> },
    IsolationChanged { host: usize, until: Option<Now> },
    Isolate { host: usize },
    Join,
    Jump { host: usize },
    KillNamed { reference: RefId },
    LastSteps { host: usize, client: ClientId, steps: LastSteps },
    MemoryEnds { host: usize },
    Packet { from: usize, to: usize, packet: Packet },
    Partition,
    Pause { host: usize },
    PullEnds { host: usize, transfer: Transfer },
    Record { host: usize, event: Event },
    RestoreEnds { host: usize, object: ObjectId, into: Extent },
    Settle { host: usize },
    SideEnds { host: usize, client: ClientId, run: u32 },
    SpillEnds { host: usize, object: ObjectId, extent: Extent, content: Content },
    Think { host: usize, client: ClientId },
    Tick { host: usize },
    ToClient { host: usize, client: ClientId, record: ClientRecord },
    ToldEnded { host: usize, job: JobId },
    ToldJoined { host: usize, about: usize },
    ToldLeft { host: usize, about: usize, jobs: Vec<JobId> },
    Unmap { host: usize, client: ClientId, token: u64 },
    WorkerStarts { host: usize, start: u64, job: JobId, process: Option<ProcessNumber> },
    Woken { host: usize, slept: Now },
}

/// Last steps of a worker that was cut off: it still computes and reads the values it has mapped.
#[derive(Debug)]
pub(crate) struct LastSteps {
    cpu: u64,
    disk: u64,
    mapped: Vec<(Extent, Content)>,
    failure: Arc<Failure>,
}

/// An object on its way from arena to arena.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub(crate) object: ObjectId,
    pub(crate) from: NodeId,
    /// Its place at the source; pinned if that is the arena.
    source: Option<Place>,
    pub(crate) into: Extent,
    /// Number of the copy there; 0 for values that were put, which need none.
    pub(crate) copy: u64,
    pinner: ClientId,
}

/// A message from a node to a client.
#[derive(Clone, Debug)]
pub(crate) enum ClientRecord {
    Cancel(u32),
    Region(Result<Extent, Arc<Failure>>),
    Resumed,
    Run(RunRecord),
    StealBack { count: u32, question: u32 },
    Stop,
    RetireRegions,
    Unmap(u64),
    Value { token: u64, value: Seen },
}

/// A value as a client is told of it.
#[derive(Clone, Debug)]
pub(crate) enum Seen {
    Failed(Arc<Failure>),
    Inline(SmallBytes),
    Local(Extent),
    Ready,
}

/// One machine.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) node: Node,
    pub(crate) id: NodeId,
    pub(crate) alive: bool,
    pub(crate) member: Arc<Member>,
    pub(crate) clients: BTreeMap<ClientId, Client>,
    /// Contents of the arena, by offset: (bytes, value).
    pub(crate) arena: BTreeMap<u64, (u64, Content)>,
    /// Contents of its disk.
    pub(crate) disk: BTreeMap<ObjectId, Content>,
    /// Resources that tasks use right now: units of CPU and of the custom resource.
    pub(crate) used_cpu: u64,
    pub(crate) used_disk: u64,
    next_client: u32,
    settles: bool,
    pub(crate) tick_at: Option<Now>,
    /// Its process stands still until then.
    pub(crate) paused_until: Now,
    /// Its clock is so much ahead of the time.
    pub(crate) ahead: Now,
    /// And so much behind it.
    pub(crate) behind: Now,
    /// Jobs whose drivers are or were here.
    pub(crate) driven: Vec<JobId>,
    /// Since when its node has known that it reaches nobody, and until when that is so.
    pub(crate) isolated: Option<(Now, Now)>,
    /// Number of copies that its node had given up at the last look.
    pub(crate) given_up: u64,
}

/// All machines and what is on its way between them.
pub(crate) struct Cluster {
    pub(crate) rng: Rng,
    pub(crate) now: Now,
    pub(crate) faults: Faults,
    pub(crate) hosts: Vec<Host>,
    pub(crate) oracle: Oracle,
    pub(crate) nodes_at_start: Vec<NodeId>,
    /// Later attempts do things in another order, as programs do whose hash maps or threads have another one.
    pub(crate) attempts_diverge: bool,
    /// Some calls construct actors, and others are calls of them.
    pub(crate) has_actors: bool,
    /// Some calls make placement groups, and others run inside of them.
    pub(crate) has_groups: bool,
    /// Some actors and groups have names.
    pub(crate) has_names: bool,
    pub(crate) groups: Groups,
    /// The actors and groups that have a name now.
    pub(crate) names: Vec<RefId>,
    /// Things that were killed, and the host at which the operator asked for it.
    pub(crate) kills: Vec<(usize, RefId)>,
    /// Nodes that may refer to what has ended and was forgotten: somebody there knows its name.
    pub(crate) doubted: BTreeSet<(NodeId, ObjectId)>,
    /// The driver that kills what has a name.
    pub(crate) operator: Option<(usize, ClientId)>,
    /// Tasks that wait although they need not.
    pub(crate) waiting: Waiting,
    pub(crate) sabotage: Sabotage,
    pub(crate) summary: Summary,
    verbose: bool,
    agenda: BTreeMap<(Now, u64), SimEvent>,
    order: u64,
    trace: u64,
    violation: Option<Violation>,
    /// Pairs of hosts that cannot reach each other.
    pub(crate) cuts: Vec<Cut>,
    next_pinner: u32,
    pub(crate) next_job: u32,
    pub(crate) store_bytes: u64,
    annex_bytes: u64,
    small_cluster_max: usize,
    high_water_bytes: u64,
    at_once: u32,
    sabotage_at: u64,
    /// The time and the number of events when the present round began.
    stage: (Now, u64),
}

impl Cluster {
    /// A cluster with its drivers, as the seed has it.
    pub(crate) fn new(options: &Options) -> Self {
        let mut rng = Rng::new(options.seed);
        let small = rng.chance(300);
        let faults = faults(&mut rng);
        // In a few small stores half of the values, and every region, are larger than the memory; in a few
        // others one row of values goes for the next one.
        let tiny = small && options.seed.is_multiple_of(4);
        let store_bytes: u64 = match (small, options.seed % 4) {
            (true, 0) => 20 << 10,
            (true, 1 | 2) => 300 << 10,
            (true, _) => 1 << 20,
            (false, _) => 64 << 20,
        };
        // A low mark spills all that nobody maps, whatever the size of the store.
        let high_water_bytes = if rng.chance(500) { 64 << 10 } else { store_bytes / 5 * 4 };
        let node_count = options.nodes.unwrap_or_else(|| rng.range(1, 5) as usize).max(1);
        let mut cluster = Self {
            rng,
            now: MS,
            faults,
            hosts: Vec::new(),
            oracle: Oracle { small_store: small, ..Oracle::default() },
            nodes_at_start: Vec::new(),
            attempts_diverge: mix(options.seed, 0).is_multiple_of(3),
            has_actors: mix(options.seed, 2).is_multiple_of(3),
            has_groups: mix(options.seed, 3).is_multiple_of(3),
            has_names: mix(options.seed, 4).is_multiple_of(2),
            groups: Groups::default(),
            names: Vec::new(),
            kills: Vec::new(),
            doubted: BTreeSet::new(),
            operator: None,
            waiting: Waiting::default(),
            sabotage: options.sabotage,
            summary: Summary { seed: options.seed, ..Summary::default() },
            verbose: options.verbose,
            agenda: BTreeMap::new(),
            order: 0,
            trace: options.seed,
            violation: None,
            cuts: Vec::new(),
            next_pinner: PINNERS,
            next_job: 1,
            store_bytes,
            // Some clusters are large, some become so or cease to be, and some are small.
            small_cluster_max: [0, 2, 3, 16][mix(options.seed, 1) as usize % 4],
            annex_bytes: if tiny { 1 << 20 } else { 0 },
            high_water_bytes,
            at_once: 0,
            sabotage_at: 0,
            stage: (0, 0),
        };
        cluster.sabotage_at = cluster.rng.range(5, 30);
        for _ in 0..node_count {
            cluster.add_host();
        }
        cluster.oracle.nodes_at_start = node_count;
        cluster.nodes_at_start = cluster.hosts.iter().map(|h| h.id).collect();
        for about in 0..node_count {
            for host in (0..node_count).filter(|host| *host != about) {
                let member = Arc::clone(&cluster.hosts[about].member);
                cluster.feed(host, Event::MemberJoined(member));
            }
        }
        cluster.add_drivers(node_count);
        cluster.plan_faults();
        let drains = cluster.plan_drains(options.seed);
        cluster.plan_cuts(options.seed, drains == 0 && cluster.faults.node_crashes == 0);
        cluster
    }

    /// Runs until nothing is left to happen, through all stages.
    ///
    /// # Errors
    /// The first violation.
    pub(crate) fn run(&mut self) -> Result<Summary, Violation> {
        self.run_dry()?;
        self.check_quiet("work is done");
        self.finish_step()?;
        self.retire_all();
        self.run_dry()?;
        self.check_empty("references are dropped");
        self.finish_step()?;
        self.end_drivers();
        self.run_dry()?;
        self.check_empty("drivers are gone");
        self.check_no_workers();
        self.finish_step()?;
        self.summary.node_count = self.hosts.len();
        self.summary.task_count = self.oracle.tasks.len();
        self.summary.start_count =
            self.oracle.tasks.values().map(|t| t.started.values().sum::<u32>() as usize).sum();
        self.summary.virtual_ms = self.now / MS;
        self.summary.trace_hash = self.trace;
        Ok(self.summary.clone())
    }

    /// Time and events of a run are counted from now on.
    pub(crate) fn begin_stage(&mut self) {
        self.stage = (self.now, self.summary.event_count);
    }

    /// Events so far.
    pub(crate) fn event_count(&self) -> u64 {
        self.summary.event_count
    }

    /// Virtual time.
    pub(crate) fn time(&self) -> Now {
        self.now
    }

    /// Enters something into the agenda.
    pub(crate) fn at(&mut self, when: Now, happening: SimEvent) {
        self.order += 1;
        self.agenda.insert((when.max(self.now), self.order), happening);
    }

    /// Notes the first violation; the run ends with it.
    pub(crate) fn fail(&mut self, invariant: &'static str, detail: impl Into<String>) {
        let at = self.now;
        let event = self.summary.event_count;
        let stories = String::new();
        self.violation.get_or_insert_with(|| Violation {
            event,
            at,
            invariant,
            detail: detail.into(),
            stories,
        });
    }

    /// Mixes something into the hash of the trace.
    pub(crate) fn note(&mut self, what: u64) {
        self.trace = mix(self.trace, what);
    }

    /// Sends a record of a client to its node, in order.
    pub(crate) fn send(&mut self, host: usize, client: ClientId, event: Event) {
        let delay = self.rng.range(US, 30 * US);
        let Some(sender) = self.hosts[host].clients.get_mut(&client) else { return };
        sender.to_node_at = sender.to_node_at.max(self.now + delay);
        let when = sender.to_node_at;
        self.at(when, SimEvent::Record { host, event });
    }

    /// A client's process ends, at once and without a word.
    pub(crate) fn crash_client(&mut self, host: usize, client: ClientId, failure: Arc<Failure>) {
        let Some(gone) = self.hosts[host].clients.remove(&client) else { return };
        if gone.driver.is_some() {
            self.oracle.ended_jobs.insert(gone.job);
        }
        self.oracle.lost_actors.extend(gone.actor);
        // Its node cannot know whether the first run that it sent has started, and takes it that it has.
        let next = gone.queue.front().map(|record| record.task).or(gone.announced.front().copied());
        if let Some(task) = next.filter(|_| gone.current.is_none()) {
            self.oracle.tasks.entry(task).or_default().ended_by(failure.kind);
        }
        let when = gone.to_node_at.max(self.now) + self.rng.range(0, 3 * MS);
        let lent = matches!(gone.phase, Phase::Blocked | Phase::Resuming);
        let mut remains = Remains::Nothing;
        if let Some(current) = &gone.current {
            let cpu = if lent { 0 } else { current.cpu };
            if self.rng.chance(300) {
                // A thread: it cannot be killed.
                remains = Remains::Thread;
                let mapped = gone.refs.values().filter_map(|held| held.mapped.clone());
                let mapped = mapped.chain(current.mapped.iter().cloned()).collect();
                let (disk, failure) = (current.disk, failure.clone());
                let ends_at = when + self.rng.range(0, 100 * MS);
                let steps = LastSteps { cpu, disk, mapped, failure };
                self.at(ends_at, SimEvent::LastSteps { host, client, steps });
            } else {
                self.stop_using(host, cpu, current.disk);
            }
            let facts = self.oracle.tasks.entry(current.record.task).or_default();
            facts.ended_by(failure.kind);
        }
        for side in &gone.sides {
            self.oracle.tasks.entry(side.record.task).or_default().ended_by(failure.kind);
        }
        self.summary.crash_count += u32::from(failure.kind == FailureKind::WorkerCrashed);
        self.at(when, SimEvent::Gone { host, client, remains, failure });
    }

    /// A worker that was cut off ends: first it stops to compute, later nothing looks at its memory any more.
    fn last_steps(&mut self, host: usize, client: ClientId, steps: LastSteps) {
        let LastSteps { cpu, disk, mapped, failure } = steps;
        if !self.hosts[host].alive {
            return;
        }
        mapped.iter().for_each(|(extent, content)| self.still(host, *extent, content));
        if cpu > 0 || disk > 0 {
            self.stop_using(host, cpu, disk);
            self.feed(host, Event::ClientGone { client, remains: Remains::Memory, failure: failure.clone() });
            let ends_at = self.now + self.rng.range(0, 100 * MS);
            let steps = LastSteps { cpu: 0, disk: 0, mapped, failure };
            return self.at(ends_at, SimEvent::LastSteps { host, client, steps });
        }
        self.feed(host, Event::ClientGone { client, remains: Remains::Nothing, failure });
    }

    /// A task has stopped using resources.
    pub(crate) fn stop_using(&mut self, host: usize, cpu: u64, disk: u64) {
        let host = &mut self.hosts[host];
        host.used_cpu -= cpu;
        host.used_disk -= disk;
    }

    /// A task uses resources from now on: never more than there are.
    pub(crate) fn start_using(&mut self, at: usize, cpu: u64, disk: u64) {
        let host = &mut self.hosts[at];
        host.used_cpu += cpu;
        host.used_disk += disk;
        let total = &host.member.resources;
        let disk_total = total.custom.get("disk").copied().unwrap_or(0);
        if host.used_cpu > total.cpu || host.used_disk > disk_total {
            let text = format!("node {} uses {} CPU units of {}", host.id, host.used_cpu, total.cpu);
            self.fail("resources are never oversubscribed", text);
        }
    }

    /// Writes a value into an arena; whatever stood there is gone.
    pub(crate) fn write(&mut self, host: usize, extent: Extent, content: Content) {
        let arena = &mut self.hosts[host].arena;
        let end = extent.offset + extent.len;
        let overlapped: Vec<_> = arena
            .range(..end)
            .rev()
            .take_while(|(offset, (len, _))| {
                **offset + len.max(&1) > extent.offset || **offset + (1 << 17) > extent.offset
            })
            .filter(|(offset, (len, _))| **offset + len > extent.offset)
            .map(|(offset, _)| *offset)
            .collect();
        overlapped.into_iter().for_each(|offset| drop(arena.remove(&offset)));
        arena.insert(extent.offset, (extent.len, content));
    }

    /// Reads a value from an arena.
    pub(crate) fn read(&self, host: usize, extent: Extent) -> Option<&Content> {
        let (len, content) = self.hosts[host].arena.get(&extent.offset)?;
        (*len == extent.len).then_some(content)
    }

    pub(crate) fn finish_step(&mut self) -> Result<(), Violation> {
        self.violation.take().map_or(Ok(()), Err)
    }

    pub(crate) fn run_dry(&mut self) -> Result<(), Violation> {
        while let Some(((when, _), happening)) = self.agenda.pop_first() {
            // A node that goes on at once asks for the next nanosecond.
            self.at_once = if when > self.now + 1 { 0 } else { self.at_once + 1 };
            self.now = when;
            self.summary.event_count += 1;
            if self.verbose {
                self.tell_person(&happening);
            }
            self.look_who_waits();
            self.happen(happening);
            if self.now > self.stage.0 + TIME_MAX
                || self.summary.event_count > self.stage.1 + EVENTS_MAX
                || self.at_once > EVENTS_AT_ONCE_MAX
            {
                let pending = self.pending();
                self.fail("everything ends", format!("no end in sight; {pending}"));
            }
            if self.summary.event_count.is_multiple_of(16) {
                self.check_often();
            }
            self.finish_step()?;
        }
        Ok(())
    }

    #[allow(clippy::print_stdout, reason = "asked for on the command line")]
    fn tell_person(&self, happening: &SimEvent) {
        println!("{:>9} {:>12} {happening:?}", self.summary.event_count, self.now / US);
    }

    fn happen(&mut self, happening: SimEvent) {
        if let Some(until) = self.waits_for_process(&happening) {
            if let SimEvent::Tick { host } = happening {
                let is_due = self.hosts[host].tick_at == Some(self.now);
                self.hosts[host].tick_at = self.hosts[host].tick_at.map(|at| if is_due { until } else { at });
                if !is_due {
                    return;
                }
            }
            return self.at(until, happening);
        }
        self.note(self.now);
        match happening {
            SimEvent::Continue { host, client, epoch } => self.resume_work(host, client, epoch),
            SimEvent::Crash { host } => self.crash_host(host),
            SimEvent::Drain { host, within } => self.drain_host(host, within),
            SimEvent::CrashClient { host, client, failure } => self.crash_process(host, client, &failure),
            SimEvent::Cut { hosts, length, is_of_transfers } => self.cut(hosts, length, is_of_transfers),
            SimEvent::DriverFound { host, job } => self.driver_found(host, job),
            SimEvent::Drop { host, client, token } => self.release(host, client, token),
            SimEvent::Gone { host, client, remains, failure } => {
                self.feed(host, Event::ClientGone { client, remains, failure })
            }
            SimEvent::Join => self.join(),
            SimEvent::Jump { host } => self.jump(host),
            SimEvent::KillNamed { reference } => self.kill_named(reference),
            SimEvent::LastSteps { host, client, steps } => self.last_steps(host, client, steps),
            SimEvent::MemoryEnds { host } => self.memory_ends(host),
            SimEvent::Packet { from, to, packet } => {
                let from = self.hosts[from].id;
                self.feed(to, Event::PacketReceived { from, packet });
            }
            SimEvent::IsolationChanged { host, until } => self.isolation_changed(host, until),
            SimEvent::Isolate { host } => self.isolate(host),
            SimEvent::Partition => self.partition(),
            SimEvent::Pause { host } => self.pause(host),
            SimEvent::PullEnds { host, transfer } => self.pull_ends(host, &transfer),
            SimEvent::Record { host, event } => self.feed_record(host, event),
            SimEvent::RestoreEnds { host, object, into } => self.restore_ends(host, object, into),
            SimEvent::Settle { host } => self.settle(host),
            SimEvent::SideEnds { host, client, run } => self.side_ends(host, client, run),
            SimEvent::SpillEnds { host, object, extent, content } => {
                self.spill_ends(host, object, extent, content)
            }
            SimEvent::BlocksFreed { host, extent } => self.blocks_freed(host, extent),
            SimEvent::Unmap { host, client, token } => self.unmap(host, client, token),
            SimEvent::Think { host, client } => self.think(host, client),
            SimEvent::Tick { host } => {
                if self.hosts[host].tick_at == Some(self.now) {
                    self.hosts[host].tick_at = None;
                    self.feed(host, Event::Tick);
                    self.settle(host);
                }
            }
            SimEvent::ToClient { host, client, record } => self.told(host, client, record),
            SimEvent::ToldJoined { host, about } => {
                if self.hosts[about].alive {
                    let member = Arc::clone(&self.hosts[about].member);
                    self.feed(host, Event::MemberJoined(member));
                }
            }
            SimEvent::ToldLeft { host, about, jobs } => {
                let node = self.hosts[about].id;
                self.feed(host, Event::MemberLeft { node });
                jobs.into_iter().for_each(|job| self.feed(host, Event::JobEnded { job }));
            }
            SimEvent::ToldEnded { host, job } => self.feed(host, Event::JobEnded { job }),
            SimEvent::WorkerStarts { host, start, job, process } => {
                self.worker_starts(host, start, job, process)
            }
            SimEvent::Woken { host, slept } => self.woken(host, slept),
        }
    }

    fn feed_record(&mut self, host: usize, event: Event) {
        if self.sabotage == Sabotage::LoseRelease && matches!(event, Event::Released { .. }) && self.strikes()
        {
            return;
        }
        self.feed(host, event);
    }

    /// Whether the planted fault strikes now: once per run.
    fn strikes(&mut self) -> bool {
        self.sabotage_at = self.sabotage_at.saturating_sub(1);
        let strikes = self.sabotage_at == 0;
        if strikes {
            self.sabotage_at = u64::MAX;
        }
        strikes
    }

    /// One event for one node, and what follows.
    pub(crate) fn feed(&mut self, host: usize, event: Event) {
        if !self.hosts[host].alive {
            return;
        }
        self.note(host as u64 + 1);
        let mut out = Vec::new();
        let clock = self.clock(host);
        self.hosts[host].node.handle(clock, event, &mut out);
        self.check_given_up(host);
        self.perform(host, out);
        if !self.hosts[host].settles {
            self.hosts[host].settles = true;
            let when = self.now + self.rng.range(0, 20 * US);
            self.at(when, SimEvent::Settle { host });
        }
        if self.rng.chance(100) {
            self.hosts[host].node.check();
        }
    }

    fn settle(&mut self, host: usize) {
        if !self.hosts[host].alive {
            return;
        }
        self.hosts[host].settles = false;
        let mut out = Vec::new();
        let clock = self.clock(host);
        self.hosts[host].node.settle(clock, &mut out);
        self.check_given_up(host);
        self.perform(host, out);
        let next = self.hosts[host].node.next_timeout(clock).map(|next| self.by_clock(host, next));
        let known = self.hosts[host].tick_at;
        if let Some(next) = next
            && known.is_none_or(|known| next < known)
        {
            let when = next.max(self.now + 1);
            self.hosts[host].tick_at = Some(when);
            self.at(when, SimEvent::Tick { host });
        }
    }

    fn perform(&mut self, host: usize, actions: Vec<Action>) {
        for action in actions {
            if self.verbose {
                tell_person_of(host, &action);
            }
            self.note(action_number(&action));
            self.perform_one(host, action);
        }
    }

    fn perform_one(&mut self, host: usize, action: Action) {
        match action {
            Action::Do(operation) => self.carry_out(host, operation),
            Action::Tell { client, record } => self.tell_record(host, client, record),
        }
    }

    fn carry_out(&mut self, host: usize, operation: Operation) {
        match operation {
            Operation::ConfirmEnd { job, .. } => self.confirm_end(host, job),
            Operation::Discard(object) => self.discard(host, object),
            Operation::FindDriver { job, .. } => self.at(self.now + MS, SimEvent::DriverFound { host, job }),
            Operation::FreeBlocks(extent) => self.free_blocks(host, extent),
            Operation::FindMember(node) => self.find_member(host, node),
            Operation::ForgetJob { .. }
            | Operation::MemoryFreed
            | Operation::ReadMemory { .. }
            | Operation::Reclaim(_) => {}
            Operation::KillWorker { client, reason } => self.kill_worker(host, client, reason),
            Operation::Leave => self.leave(host),
            Operation::Pull { object, from, into, .. } => self.start_pull(host, object, from, into),
            Operation::Restore { object, into } => self.start_restore(host, object, into),
            Operation::Send { to, packet } => self.send_packet(host, to, packet),
            Operation::Spill { object, extent } => self.start_spill(host, object, extent),
            Operation::StartWorker { start, job, process, .. } => {
                let when = self.now + self.rng.range(MS, 20 * MS);
                self.at(when, SimEvent::WorkerStarts { host, start, job, process });
            }
        }
    }

    fn tell_record(&mut self, host: usize, client: ClientId, record: Record) {
        let told = match record {
            Record::CancelRun { run } => ClientRecord::Cancel(run),
            Record::CheckpointEnded { .. } => return self.snapshot_answered(host, client, &record),
            Record::Locations { .. } => return,
            Record::Region { region, .. } => {
                ClientRecord::Region(region.and_then(|region| self.make_blocks(host, client, region)))
            }
            Record::Resumed => ClientRecord::Resumed,
            Record::RetireRegions => ClientRecord::RetireRegions,
            Record::Run { run } => return self.send_run(host, client, run),
            Record::StealBack { count, question } => ClientRecord::StealBack { count, question },
            Record::Stop => ClientRecord::Stop,
            Record::Unmap { token } => ClientRecord::Unmap(token),
            Record::Value { token, object, extent } => {
                ClientRecord::Value { token, value: self.seen(host, (client, token), object, extent) }
            }
        };
        self.tell(host, client, told);
    }

    fn seen(&self, host: usize, to: (ClientId, u64), object: ObjectId, extent: Option<Extent>) -> Seen {
        match (self.hosts[host].node.value_for(to.0, to.1, object), extent) {
            (_, Some(extent)) => Seen::Local(extent),
            (Some(Value::Failed(failure)), None) => Seen::Failed(failure.clone()),
            (Some(Value::Inline(bytes)), None) => Seen::Inline(bytes.clone()),
            (Some(Value::Stored { .. }), None) => Seen::Ready,
            (None, None) if self.hosts[host].node.is_made_anew(to.0, to.1, object) => Seen::Ready,
            (None, None) => {
                let text = format!("{object} is unknown to node {}", self.hosts[host].id);
                Seen::Failed(Arc::new(Failure::new(FailureKind::ObjectFreed, text)))
            }
        }
    }

    fn send_run(&mut self, host: usize, client: ClientId, run: u32) {
        let Some(view) = self.hosts[host].node.run(run) else {
            return self.fail("a run that was announced can be read", format!("run {run} of {}", client.0));
        };
        let argument = |value: &ArgumentValue<'_>| match value {
            ArgumentValue::Inline(bytes) => Argument::Inline(bytes.to_vec()),
            ArgumentValue::Local(extent) => Argument::Local(*extent),
        };
        let given = self.oracle.tasks.get(&view.task).and_then(|facts| facts.name.clone());
        if view.name != given.as_deref() {
            let text = format!("run {run} of {} is called {:?}, not {given:?}", view.task, view.name);
            return self.fail("a call keeps its name", text);
        }
        let record = RunRecord {
            run,
            task: view.task,
            attempt: view.attempt,
            kind: view.class.function.0 as u32,
            job: view.class.job,
            payload: view.payload.to_vec(),
            arguments: view.arguments.iter().map(|(parameter, r, v)| (*parameter, *r, argument(v))).collect(),
        };
        self.summary.run_count += 1;
        self.oracle.came_to(record.task, self.hosts[host].id);
        match self.hosts[host].clients.get_mut(&client) {
            Some(receiver) => receiver.announced.push_back(record.task),
            None => self.oracle.tasks.entry(record.task).or_default().crashes += 1,
        }
        let planted = matches!(self.sabotage, Sabotage::LoseRun | Sabotage::RepeatRun) && self.strikes();
        if planted && self.sabotage == Sabotage::LoseRun {
            return;
        }
        if planted {
            self.tell(host, client, ClientRecord::Run(record.clone()));
        }
        self.tell(host, client, ClientRecord::Run(record));
    }

    fn tell(&mut self, host: usize, client: ClientId, record: ClientRecord) {
        let delay = self.rng.range(US, 30 * US);
        let Some(receiver) = self.hosts[host].clients.get_mut(&client) else { return };
        receiver.to_client_at = receiver.to_client_at.max(self.now + delay);
        let when = receiver.to_client_at;
        self.at(when, SimEvent::ToClient { host, client, record });
    }

    fn send_packet(&mut self, from: usize, to: NodeId, mut packet: Packet) {
        if self.sabotage == Sabotage::HideRoom {
            for message in &mut packet.messages {
                match message {
                    Message::LoadReport { free, .. } => *free = Resources::default(),
                    // A request that is made all the same is for more than is left.
                    Message::LeaseRequest { class, .. } => Arc::make_mut(class).resources.cpu *= 64,
                    _ => {}
                }
            }
        }
        self.summary.packet_count += 1;
        self.summary.message_count += packet.messages.len() as u64;
        for message in &packet.messages {
            self.note_denial(from, message);
            if let Message::TaskPush { task, .. } = message {
                self.oracle.came_to(task.task, to);
            }
        }
        let Some(to) = self.hosts.iter().position(|h| h.id == to) else { return };
        let now = self.now;
        self.cuts.retain(|cut| now < cut.until);
        if self.is_cut(from, to) || self.rng.chance(self.faults.loss) {
            return;
        }
        let copies = 1 + u64::from(self.rng.chance(self.faults.double));
        for _ in 0..copies {
            let slow = if self.rng.chance(30) { 20 * MS } else { 0 };
            let when = self.now + slow + self.rng.range(30 * US, 400 * US);
            self.at(when, SimEvent::Packet { from, to, packet: packet.clone() });
        }
    }

    fn start_pull(&mut self, host: usize, object: ObjectId, from: NodeId, into: Extent) {
        self.summary.pull_count += 1;
        self.next_pinner += 1;
        let pinner = ClientId(self.next_pinner);
        let mut holder = self.hosts.iter_mut().find(|h| h.id == from && h.alive);
        let source = holder.as_mut().and_then(|h| h.node.pin_for_transfer(pinner, object));
        let copy = holder.filter(|_| !object.is_put()).and_then(|h| h.node.copy_number(object)).unwrap_or(0);
        let when = self.now + self.rng.range(100 * US, 3 * MS);
        let transfer = Transfer { object, from, source, into, copy, pinner };
        self.at(when, SimEvent::PullEnds { host, transfer });
    }

    fn pull_ends(&mut self, host: usize, transfer: &Transfer) {
        let Transfer { object, from, into, pinner, .. } = *transfer;
        let source = self.hosts.iter().position(|h| h.id == from && h.alive);
        let content = source.zip(transfer.source).and_then(|(s, place)| match place {
            Place::Arena(extent) => self.read(s, extent).cloned(),
            Place::Disk { .. } => self.hosts[s].disk.get(&object).cloned(),
        });
        if let Some(source) = source {
            self.hosts[source].node.unpin_after_transfer(pinner, object);
            let when = self.now + self.rng.range(0, 20 * US);
            self.at(when, SimEvent::Settle { host: source });
        }
        let breaks = self.breaks_off(host, source);
        if !self.hosts[host].alive {
            return;
        }
        if let Some(done_bytes) = breaks {
            return self.pull_interrupted(host, transfer, done_bytes);
        }
        if content.is_some() && self.is_denied(host, object) {
            self.feed(host, Event::PullFailed { object, from, done_bytes: 0, cause: "denied".into() });
            return;
        }
        let Some(mut content) = content else {
            self.oracle.absent.insert((object, from));
            let done_bytes = self.rng.range(0, into.len + 1);
            self.feed(host, Event::PullFailed { object, from, done_bytes, cause: "not there".into() });
            return;
        };
        if self.sabotage == Sabotage::CorruptPull && self.strikes() {
            content.hash ^= 1;
        }
        self.write(host, into, content);
        self.oracle.came_to(object.task, self.hosts[host].id);
        self.feed(host, Event::PullDone { object });
    }

    fn worker_starts(&mut self, host: usize, start: u64, job: JobId, process: Option<ProcessNumber>) {
        if !self.hosts[host].alive {
            return;
        }
        // The control store gives no program of a job whose driver's node is gone.
        let is_orphan = self.hosts.iter().any(|h| !h.alive && h.driven.contains(&job));
        if is_orphan || self.rng.chance(self.faults.start_failure) {
            *self.oracle.start_failures.entry(job).or_default() += 1;
            // After a few of these the node is left out for ten seconds.
            self.upset(host, self.now + 10_000 * MS);
            let failure = Arc::new(Failure::new(FailureKind::WorkerStartFailed, "no process"));
            self.feed(host, Event::WorkerStartFailed { start, failure });
            return;
        }
        let client = self.new_client(host, job, None);
        self.summary.worker_count += 1;
        if let Some(client) = self.hosts[host].clients.get_mut(&client) {
            client.process = process;
        }
        self.feed(host, Event::WorkerReady { start, client });
        if self.rng.chance(self.faults.worker_crash) {
            let when = self.now + self.rng.range(0, 400 * MS);
            let failure = Arc::new(Failure::new(FailureKind::WorkerCrashed, "killed while idle or not"));
            self.at(when, SimEvent::CrashClient { host, client, failure });
        }
    }

    /// A client of a host: a driver, or a worker.
    pub(crate) fn new_client(&mut self, host: usize, job: JobId, driver: Option<Driver>) -> ClientId {
        let host = &mut self.hosts[host];
        host.next_client += 1;
        let id = ClientId(host.next_client);
        host.clients.insert(id, Client::new(id, job, driver));
        id
    }

    fn add_host(&mut self) -> usize {
        let cpus = self.rng.range(2, 5);
        let mut resources = Resources { cpu: cpus * Resources::UNIT, ..Resources::default() };
        resources.custom.insert("disk".to_owned(), Resources::UNIT);
        let id = NodeId(self.rng.next() | 1);
        let member = Arc::new(Member { node: id, resources, labels: Vec::new() });
        let config = Config {
            member: Member::clone(&member),
            store_bytes: self.store_bytes,
            annex_bytes: self.annex_bytes,
            create_timeout: 500 * MS,
            queued_tasks_max: usize::MAX,
            small_cluster_max: self.small_cluster_max,
            can_spill: true,
            high_water_bytes: self.high_water_bytes,
            low_water_bytes: self.high_water_bytes / 4 * 3,
            // Most of what is transferred here is small.
            relay_bytes_min: if self.faults.uses_relays { 1 } else { u64::MAX },
            lineage_bytes_max: 64 << 20,
        };
        self.hosts.push(Host {
            node: Node::new(config),
            id,
            alive: true,
            member,
            clients: BTreeMap::new(),
            arena: BTreeMap::new(),
            disk: BTreeMap::new(),
            used_cpu: 0,
            used_disk: 0,
            next_client: 0,
            settles: false,
            tick_at: None,
            paused_until: 0,
            ahead: 0,
            behind: 0,
            driven: Vec::new(),
            isolated: None,
            given_up: 0,
        });
        self.hosts.len() - 1
    }

    fn add_drivers(&mut self, node_count: usize) {
        for _ in 0..self.rng.range(1, 4) {
            let host = self.rng.index(node_count);
            let client = self.add_driver(host);
            if self.rng.chance(self.faults.driver_crash) {
                let when = self.now + self.rng.range(0, 300 * MS);
                let failure = Arc::new(Failure::new(FailureKind::Shutdown, "the driver died"));
                self.at(when, SimEvent::CrashClient { host, client, failure });
            }
        }
    }

    /// A driver with a job of its own, which begins to work.
    pub(crate) fn add_driver(&mut self, host: usize) -> ClientId {
        let job = self.new_job();
        self.hosts[host].driven.push(job);
        let ops_left = self.rng.range(10, 80) as u32;
        let client = self.new_client(host, job, Some(Driver { ops_left, ..Driver::default() }));
        self.feed(host, Event::DriverJoined { client, job, weight: 100, quota: quota_of(job) });
        let when = self.now + self.rng.range(0, 5 * MS);
        self.at(when, SimEvent::Think { host, client });
        client
    }

    fn tell_joined(&mut self, host: usize, about: usize) {
        let when = self.now + self.rng.range(0, 20 * MS);
        self.at(when, SimEvent::ToldJoined { host, about });
    }

    fn join(&mut self) {
        let about = self.add_host();
        for host in 0..about {
            if self.hosts[host].alive {
                self.tell_joined(host, about);
                self.tell_joined(about, host);
            }
        }
    }

    pub(crate) fn crash_host(&mut self, host: usize) {
        let living = self.hosts.iter().filter(|h| h.alive).count();
        if living < 2 || !self.hosts[host].alive {
            return;
        }
        self.oracle.dead.insert(self.hosts[host].id);
        self.summary.node_death_count += 1;
        self.hosts[host].alive = false;
        let clients = std::mem::take(&mut self.hosts[host].clients);
        let drivers = clients.into_values().filter(|client| client.driver.is_some());
        self.oracle.ended_jobs.extend(drivers.map(|driver| driver.job));
        self.tell_left(host, 25 * MS, 300 * MS);
        self.kill_again(host);
    }

    /// Every client gives its regions back.
    pub(crate) fn retire_all(&mut self) {
        for host in 0..self.hosts.len() {
            let clients: Vec<_> = self.hosts[host].clients.keys().copied().collect();
            for client in clients {
                let tokens: Vec<_> = self.hosts[host].clients[&client].refs.keys().copied().collect();
                tokens.into_iter().for_each(|token| self.release(host, client, token));
                self.retire_regions(host, client);
            }
        }
    }

    fn end_drivers(&mut self) {
        for host in 0..self.hosts.len() {
            let drivers = self.hosts[host].clients.values().filter(|c| c.driver.is_some());
            let drivers: Vec<_> = drivers.map(|c| (c.id, c.job)).collect();
            for (client, job) in drivers {
                self.oracle.ended_jobs.insert(job);
                let failure = Arc::new(Failure::new(FailureKind::Shutdown, "the driver ended"));
                self.crash_client(host, client, failure);
            }
        }
    }
}

/// The class of a kind as clients of this cluster name it.
pub(crate) fn class_of(cluster: &Cluster, job: JobId, kind: u32) -> Arc<tharsis_types::TaskClass> {
    let is_counted = kind & !DETACHED < CLASS_COUNT || (CONSTRUCTOR..=BESIDE).contains(&(kind & !DETACHED));
    debug_assert!(is_counted, "kinds are counted");
    program::class(job, kind, &cluster.nodes_at_start)
}
