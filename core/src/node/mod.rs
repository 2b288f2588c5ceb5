//! One node's decisions: the machines of this crate acting together.
//!
//! [`Node::handle`] takes one event; [`Node::settle`] decides what can wait until a batch of events is in
//! (sending tasks to leases, packing packets). The caller performs the actions and feeds their outcomes back.
//!
//! `Node` keeps the configuration, its id, the time, and the effects that are to be passed on. All else is
//! owned by machines, none of which reaches into another: they interact through `Node`, by effects or by
//! arguments of methods. Each has a `check` of its relations, its part of `leftovers`, and a `next_timeout`
//! where time matters to it.
//!
//! | machine | owns | file | driven by |
//! |---|---|---|---|
//! | `Owner` | the ledger: objects, tasks, queues, leases elsewhere | [`crate::owner`] | clients, runs, messages |
//! | `Leases` | workers and resources here | [`crate::lease`] | `effects`, `workers`, `pressure`, messages |
//! | `Store` | the arena, its annex, spilled copies | [`crate::store`] | all that pins, makes or frees a copy |
//! | `Pulls` | bundles of objects that are needed here | [`crate::pull`] | `pulls`, through `pull_change` |
//! | `View` | the members and their load | [`crate::place`] | messages, rounds of scheduling |
//! | `Peers` | links, unknown peers | `peers.rs` | `route` and `send`, messages, `settle` |
//! | `Listeners` | nodes that are told the load of this one | `listeners.rs` | messages, `settle` |
//! | `Budgets` | quotas of jobs with drivers here, and the parts of other nodes | `budgets.rs` | `quotas`, `clients` |
//! | `Terms` | weights and quotas of jobs, as nodes say them | `terms.rs` | messages, `clients`, the control store |
//! | `Involved` | nodes that must hear of the end of a job | `involved.rs` | `effects`, messages, `clients` |
//! | `Transfers` | large objects asked for and read, readers here | `transfers.rs` | messages, `pulls`, `making_room` |
//! | `CopyOwners` | other nodes that own a copy here | `copies.rs` | `copies`, `ends` |
//! | `Room` | waiters for room, the speed and refusals of the disk | `room/` | `making_room`, `clients` |
//! | `Mappings` | values that clients keep mapped, requests to unmap | `mappings.rs` | `mappings`, `making_room`, `clients` |
//! | `Clients` | drivers, reads under way, refused reads | `clients.rs` | events of clients, `pulls` |
//! | `Runs` | runs, the lines of workers, children | `runs/` | `starts`, `arguments`, `ends`, `workers` |
//! | `Pressure` | memory of workers, kills | `pressure.rs` | readings of the memory, `arguments`, `workers` |
//! | `Streams` | readers of spilled values in order | `ahead.rs` | `clients` |
//! | `Checkpoints` | workers that wait until the snapshot of their actor is kept | `checkpoints.rs` | workers, messages |
//! | `Drain` | the deadline by which the node leaves, owners that were told of copies here | `drain.rs` | `settle` |
//! | `Moves` | copies of nodes that drain, which are read here to be kept | `moves.rs` | messages, `pulls` |
//!
//! | file between them | concern |
//! |---|---|
//! | `mod.rs` | events, time, snapshots for people |
//! | `effects.rs` | effects of the ledger and the leases, here or on another node: `Node::route` |
//! | `messages.rs` | members that come and go, messages between nodes |
//! | `clients.rs` | references, values, clients that are gone |
//! | `mappings.rs` | values that are mapped and unmapped |
//! | `starts.rs` | starts of runs |
//! | `arguments.rs` | arguments of runs: pinned, awaited, or unavailable |
//! | `workers.rs` | runs that come back, that are stopped, or whose worker is gone |
//! | `ends.rs` | ends of runs, and their outputs |
//! | `pulls.rs` | arrival, loss and refusal of objects that somebody waits for |
//! | `transfers.rs` | objects that are read from other nodes |
//! | `copies.rs` | copies that come and go |
//! | `making_room.rs` | regions and places in the arena, and the room for them |
//! | `checkpoints.rs` | snapshots of actors, on their way to the owner of the actor |
//! | `ahead.rs` | read-ahead of spilled values |
//! | `drain.rs` | the end of work here, and the departure |
//! | `moves.rs` | copies that other nodes keep instead of one that drains |
//! | `pressure.rs` | choice of the worker that is killed when memory is short |
//! | `inventory.rs` | contents of the store and their holders, for people |
//! | `story.rs` | state and history of a task or an object, for people |
//! | `circles.rs` | actors that wait for each other, for people |
//! | `lists.rs` | unfinished tasks and workers, for people |
//! | `leftovers.rs` | sizes of tables that must be empty in the end, for tests |
//!
//! # Ids that may be gone
//!
//! An id that a client or another node names may be gone, or may never have been theirs: it is looked up, and
//! ignored if it is not there. An earlier effect of the same step may have ended a run; comments say where
//! this can happen. Everything else that a machine names must exist: a defect stops the node at once, in
//! release builds too, instead of going on with wrong counts.

mod ahead;
mod arguments;
mod budgets;
mod checkpoints;
mod circles;
mod clients;
mod copies;
mod drain;
mod effects;
mod ends;
mod inventory;
mod involved;
mod isolation;
mod kills;
mod leftovers;
mod listeners;
mod lists;
mod making_room;
mod mappings;
mod messages;
mod moves;
mod peers;
mod pressure;
mod pulls;
mod quotas;
mod room;
mod runs;
mod snapshot;
mod starts;
mod story;
mod terms;
mod transfers;
mod workers;

pub use crate::owner::{ActorItem, ActorStage, GraphItem, GroupItem, GroupStage, StepTally};
pub use drain::DrainState;
pub use inventory::{Inventory, Item, Others};
pub use lists::{RunItem, TaskItem, TaskList, TaskStage, WorkerItem};
pub use runs::{ArgumentValue, RunView};
pub use snapshot::{Gauges, Snapshot};
pub use story::{Past, Story};

use crate::event::{Action, Event, Member, Record, Value};
use crate::lease::Leases;
use crate::owner::{self, Owner};
use crate::place::Load;
use crate::place::View;
use crate::pull::Purpose;
use crate::slab::Slot;
use crate::store::Store;
use crate::{MS, Now};
use ahead::Streams;
use budgets::Budgets;
use checkpoints::Checkpoints;
use clients::Clients;
use copies::CopyOwners;
use drain::Drain;
use involved::Involved;
use kills::Kills;
use listeners::Listeners;
use mappings::Mappings;
use moves::Moves;
use peers::Peers;
use pressure::Pressure;
use pulls::Pulls;
use room::Room;
use runs::Runs;
use std::collections::VecDeque;
use terms::Terms;
use tharsis_types::peer::{Message, QuotaMessage};
use tharsis_types::{ClientId, Extent, JobId, NodeId, ObjectId, RefId};
use transfers::Transfers;

/// Interval at which leases are asked back for waiting requests and for workers that wait to resume.
const RECALL_EVERY: Now = 10 * MS;
/// Maximum number of rounds of scheduling in a row. Each round acts on the grants of the one before. After
/// the last one, the node takes events of its clients before it goes on.
const SCHEDULE_ROUNDS_MAX: usize = 32;

/// The configuration of a node.
#[derive(Clone, Debug)]
pub struct Config {
    /// Itself as a member of the cluster.
    pub member: Member,
    /// Bytes of its arena's memory.
    pub store_bytes: u64,
    /// Bytes of the annex behind it, for objects that are larger; 0 without one.
    pub annex_bytes: u64,
    /// The time for which a client waits for room in the store.
    pub create_timeout: Now,
    /// Whether there is a disk to spill to.
    pub can_spill: bool,
    /// Copies are spilled when the only copies of objects take more bytes of the arena than this.
    pub high_water_bytes: u64,
    /// Spilling goes on until the only copies of objects take no more bytes of the arena than this.
    pub low_water_bytes: u64,
    /// Objects of this size and above are read from other nodes in a tree, smaller ones from a holder at
    /// once.
    pub relay_bytes_min: u64,
    /// Maximum memory for the calls of finished tasks, which are kept so that their outputs can be computed
    /// again.
    pub lineage_bytes_max: usize,
    /// Unfinished tasks that one job may have here before its driver has to wait.
    pub queued_tasks_max: usize,
    /// Maximum number of nodes of a small cluster. There every node tells every other its load, and all are
    /// compared when work is placed. In a larger one both are done with a few.
    pub small_cluster_max: usize,
}

/// One node.
#[derive(Debug)]
pub struct Node {
    id: NodeId,
    config: Config,
    /// Time of the event being handled.
    now: Now,
    /// When leases were last asked back for waiting requests and workers.
    recalled_at: Now,
    /// When scheduling goes on, if it stopped before everything was decided.
    schedule_again_at: Option<Now>,
    /// The effects that the ledger asked for and that are not carried out yet.
    effects: Vec<owner::Effect>,
    /// Spare memory for a batch of effects.
    spare: Vec<owner::Effect>,

    owner: Owner,
    leases: Leases,
    store: Store,
    pulls: Pulls,
    view: View,
    peers: Peers,
    listeners: Listeners,
    involved: Involved,
    budgets: Budgets,
    terms: Terms,
    /// Messages about quotas of this node to itself.
    quota_messages: VecDeque<QuotaMessage>,
    transfers: Transfers,
    copy_owners: CopyOwners,
    room: Room,
    mappings: Mappings,
    clients: Clients,
    runs: Runs,
    kills: Kills,
    pressure: Pressure,
    streams: Streams,
    drain: Drain,
    moves: Moves,
    checkpoints: Checkpoints,
}

/// The location of an object's bytes on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the arena.
    Arena(Extent),
    /// On disk.
    Disk {
        /// Bytes.
        len: u64,
    },
}

impl Node {
    /// A node without clients, alone in its cluster.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let id = config.member.node;
        let load = Load { free: config.member.resources.clone(), waiting: 0 };
        let mut leases = Leases::new(config.member.resources.clone());
        if !config.member.serves_others() {
            leases.serve_own_only(id);
        }
        Self {
            id,
            now: 0,
            recalled_at: 0,
            schedule_again_at: None,
            effects: Vec::new(),
            spare: Vec::new(),
            owner: Owner::new(id, config.lineage_bytes_max),
            leases,
            store: Store::with_annex(config.store_bytes, config.annex_bytes),
            pulls: Pulls::beside((config.annex_bytes > 0).then_some(config.store_bytes)),
            view: View::new(config.member.clone(), config.small_cluster_max),
            peers: Peers::default(),
            listeners: Listeners::new(load),
            involved: Involved::default(),
            budgets: Budgets::default(),
            terms: Terms::default(),
            quota_messages: VecDeque::new(),
            transfers: Transfers::default(),
            copy_owners: CopyOwners::default(),
            room: Room::new(config.store_bytes, config.create_timeout),
            mappings: Mappings::default(),
            clients: Clients::default(),
            runs: Runs::default(),
            kills: Kills::default(),
            pressure: Pressure::default(),
            streams: Streams::default(),
            drain: Drain::default(),
            moves: Moves::default(),
            checkpoints: Checkpoints::default(),
            config,
        }
    }

    /// The id of this node.
    #[must_use]
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// Sets the time of everything that follows.
    fn tell_time(&mut self, now: Now) {
        if self.now != now {
            self.now = now;
            self.leases.advance(now);
            self.owner.tell_time(now);
            self.pulls.tell_time(now);
            self.peers.tell_time(now);
            self.budgets.tell_time(now);
            self.room.tell_time(now);
            self.runs.tell_time(now);
            self.store.tell_time(now);
            self.transfers.tell_time(now);
        }
    }

    /// Takes an event and appends the actions that follow at once.
    pub fn handle(&mut self, now: Now, event: Event, out: &mut Vec<Action>) {
        self.tell_time(now);
        match event {
            Event::Submitted { client, run, class, task, tokens, args } => {
                self.submitted(client, run, class, task, tokens, args)
            }
            Event::GraphSubmitted { client, run, graph, part } => {
                self.submit_graph(client, run, graph, &part)
            }
            Event::Finished { client, run, run_ns, outcome } => {
                self.finished(client, Slot::from_number(run), run_ns, outcome, out)
            }
            Event::Released { client, token, reference } => self.released(client, token, reference, out),
            Event::Fetch { client, token, reference } => self.fetch(client, token, reference),
            Event::Held { client, reference, .. } => self.owner.held(client, reference, &mut self.effects),
            Event::Kept { client, token, reference } => self.kept(client, token, reference),
            Event::Put { client, token, object, value, nested, site } => {
                self.put(client, token, object, value, &nested, out);
                self.owner.put_at(object, site);
            }
            Event::RegionWanted { client, request, bytes } => self.region_wanted(client, request, bytes, out),
            Event::RegionRetired { client, region } => self.region_retired(client, region),
            Event::BlocksFreed(extent) => self.store.blocks_freed(extent),
            Event::Spilled { object, refusal, write_ns } => self.spilled(now, object, refusal, write_ns),
            Event::Unmapped { client, token, object } => self.unmapped(client, token, object),
            Event::ActorEnded { client } => self.actor_ended(client, out),
            Event::Blocked { client, returned } => self.blocked(client, &returned, out),
            Event::Unblocked { client } => self.unblocked(client, out),
            Event::GivenBack { client, question, returned } => {
                self.given_back(client, question, &returned, out)
            }
            Event::CancelRequested { reference, force, recursive } => {
                self.cancel(reference, force, recursive)
            }
            Event::RestartRequested { reference } => self.restart_actor(reference),
            Event::CheckpointWanted { client, request, value, nested } => {
                self.checkpoint_wanted(client, request, value, nested, out)
            }
            Event::ClassDefined { client, class, definition } => self.define_class(client, class, definition),
            Event::ClientGone { client, remains, failure } => {
                self.client_gone(client, remains, &failure, out)
            }
            Event::CopyLost { object } => self.copy_lost(object, out),
            Event::DrainWanted { within } => self.begin_drain(now, within, out),
            Event::DriverFound { job, driver, terms } => self.driver_found(job, driver, terms, out),
            Event::DriverJoined { client, job, weight, quota } => {
                self.joined(client, job, weight, quota, out)
            }
            Event::WorkerReady { start, client } => self.worker_ready(start, client, out),
            Event::WorkerStartFailed { start, failure } => self.start_failed(start, &failure, out),
            Event::LocationsWanted { client, request, reference } => {
                out.push(Record::Locations { request, reference }.to(client));
            }
            Event::IsolationChanged { is_isolated } => self.isolation_changed(is_isolated, out),
            Event::JobEnded { job } => self.job_ended(job, None, out),
            Event::MemberJoined(member) => self.member_joined(member),
            Event::MemberLeft { node } => self.member_left(now, node, out),
            Event::MemoryRead(reading) => self.memory_read(&reading, out),
            Event::PacketReceived { from, packet } => self.packet(now, from, packet, out),
            Event::ProgramsRun { count } => self.programs_run(count),
            Event::PullDone { object } => self.pull_done(object, out),
            Event::PullFailed { object, from, done_bytes, cause } => {
                self.pull_failed(object, from, done_bytes, &cause, out)
            }
            Event::PullInterrupted(ended) => self.pull_interrupted(ended, out),
            Event::PullRefused { object, cause } => self.no_memory_for(object, &cause, out),
            Event::Tick => self.tick(now, out),
        }
        self.apply(out);
    }

    /// Makes the decisions that were left for the end of a batch of events.
    pub fn settle(&mut self, now: Now, out: &mut Vec<Action>) {
        self.tell_time(now);
        if self.owner.take_undetached() {
            self.end_outlived(out);
        }
        self.retry_for_room(now, out);
        self.refresh_view();
        self.schedule(now, out);
        self.go_on_draining(now, out);
        self.report_load(now);
        out.extend(self.pressure.take_request());
        self.peers.transmit(now, out);
    }

    /// Schedules until no shape has changed: a lease that was granted here in this step needs tasks, and one
    /// whose task waits for arguments has room for the next.
    fn schedule(&mut self, now: Now, out: &mut Vec<Action>) {
        self.schedule_again_at = None;
        for _ in 0..SCHEDULE_ROUNDS_MAX {
            self.owner.schedule(now, &mut self.view, &mut self.effects);
            self.apply(out);
            self.settle_quotas(out);
            if !self.owner.has_changed_shapes() {
                return;
            }
        }
        self.schedule_again_at = Some(now + 1);
    }

    /// When to send [`Event::Tick`].
    #[must_use]
    pub fn next_timeout(&self, now: Now) -> Option<Now> {
        let recall = self.leases.has_waiters().then(|| self.recalled_at + RECALL_EVERY);
        let all = [
            self.peers.next_timeout(),
            self.listeners.next_timeout(&self.load()),
            recall,
            self.room.next_timeout(self.now, self.mappings.ask_next_at()),
            self.owner.next_timeout(),
            self.schedule_again_at,
            self.view.next_timeout(now),
            self.runs.next_timeout(),
            self.kills.next_timeout(),
            self.pressure.next_timeout(),
            self.leases.next_timeout(),
            self.budgets.next_timeout(),
            self.drain.next_timeout(),
            self.pulls.next_timeout(),
            self.transfers.next_timeout(|node| self.peers.silent_at(node)),
        ];
        all.into_iter().flatten().min()
    }

    /// Whether a job has too many unfinished tasks here, so that its driver has to wait.
    #[must_use]
    pub fn is_full(&self, job: JobId) -> bool {
        self.room_for_calls(job) == 0
    }

    /// Calls that the driver of a job may add to its unfinished tasks here.
    #[must_use]
    pub fn room_for_calls(&self, job: JobId) -> usize {
        self.config.queued_tasks_max.saturating_sub(self.owner.unfinished_of(job))
    }

    /// Unfinished tasks that a job may have here.
    #[must_use]
    pub fn queued_tasks_max(&self) -> usize {
        self.config.queued_tasks_max
    }

    /// State of an object, as far as the ledger knows.
    #[must_use]
    pub fn value(&self, object: ObjectId) -> Option<&crate::Value> {
        self.owner.value_ref(object)
    }

    /// Whether an object of this node has ended without a value, or is not known: an actor or a placement
    /// group that will not be there again.
    #[must_use]
    pub fn is_over(&self, object: ObjectId) -> bool {
        self.owner.is_over(object)
    }

    /// The content of a [`Record::Value`]: the value, or the reason why this client cannot have it.
    #[must_use]
    pub fn value_for(&self, client: ClientId, token: u64, object: ObjectId) -> Option<&Value> {
        self.clients.refusal(client, token).or_else(|| self.owner.value_named(client, token, object))
    }

    /// Whether a value that this client was told of is being made anew: what it was told holds again when it
    /// fetches the value.
    #[must_use]
    pub fn is_made_anew(&self, client: ClientId, token: u64, object: ObjectId) -> bool {
        self.value_for(client, token, object).is_none() && self.owner.has_named(client, token, object)
    }

    /// The location of an object in the local arena, for a reader on another node.
    #[must_use]
    pub fn local_extent(&self, object: ObjectId) -> Option<Extent> {
        self.store.find(object)
    }

    /// The place from which another node can read an object. In the arena, the object is pinned; `pinner` is
    /// a client id reserved by the caller.
    pub fn pin_for_transfer(&mut self, pinner: ClientId, object: ObjectId) -> Option<Place> {
        let pinned = self.store.pin(pinner, object).map(Place::Arena);
        pinned.or_else(|| self.store.spilled_len(object).map(|len| Place::Disk { len }))
    }

    /// Removes the pin of [`Node::pin_for_transfer`].
    pub fn unpin_after_transfer(&mut self, pinner: ClientId, object: ObjectId) {
        self.store.unpin(pinner, object);
    }

    /// Nodes that hold a value, as far as this node knows; for a value that is kept in a ledger, its owner.
    /// For a placement group that this node made, the node of each bundle, or 0 for one that has none.
    #[must_use]
    pub fn locations(&self, reference: RefId) -> Vec<NodeId> {
        if let Some(nodes) = self.owner.bundle_nodes(reference.object) {
            return nodes.0.into_iter().map(|node| node.unwrap_or(NodeId(0))).collect();
        }
        match self.owner.value_ref(reference.object) {
            Some(Value::Stored { .. }) => self.owner.copies(reference.object).to_vec(),
            Some(Value::Inline(_)) => vec![reference.owner],
            Some(Value::Failed(_)) | None => Vec::new(),
        }
    }

    /// The labels that this node offers.
    #[must_use]
    pub fn labels(&self) -> &[(String, String)] {
        &self.config.member.labels
    }

    /// The nodes that it knows, itself included, and their load as far as this node has heard it.
    pub fn members(&self) -> impl Iterator<Item = (&Member, Load)> {
        self.view.members()
    }

    /// Whether a node takes no new work, as far as this one was told.
    #[must_use]
    pub fn drains(&self, node: NodeId) -> bool {
        self.view.is_draining(node)
    }

    /// Every object in the ledger, with its owner; for tests and the simulator.
    pub fn references(&self) -> impl Iterator<Item = RefId> {
        self.owner.references()
    }

    /// Tasks in the ledger that wait for a lease, for back-pressure.
    #[must_use]
    pub fn queued_count(&self) -> usize {
        self.owner.queued_count()
    }

    /// Asserts the invariants; for tests and the simulator.
    pub fn check(&self) {
        self.owner.check(self.runs.lent_slots());
        self.leases.check();
        self.pulls.check();
        self.store.check();
        self.view.check();
        self.peers.check(|node| self.view.knows(node));
        self.listeners.check(|node| self.view.knows(node));
        self.budgets.check(|node| node == self.id || self.view.knows(node));
        self.check_terms();
        self.involved.check(|node| self.view.knows(node), |job| self.owner.has_ended(job));
        self.transfers.check();
        self.copy_owners.check(self.id);
        self.room.check(|object| self.pulls.is_running(object));
        self.mappings.check(&self.store);
        self.clients.check(|purpose| self.pulls.has_bundle(purpose));
        self.check_inventory();
        self.check_lists();
        self.runs.check();
        self.pressure.check();
        self.drain.check();
        self.moves.check(|object| self.pulls.has_bundle(Purpose::Move(object)));
        self.owner.check_checkpoints(|object| self.moves.is_under_way(object));
    }

    fn tick(&mut self, now: Now, out: &mut Vec<Action>) {
        self.owner.expire(now, &mut self.effects);
        self.expire_quotas();
        self.ask_for_unknown_peers(now, out);
        self.kill_overdue(now, out);
        self.end_hold(now, out);
        self.leave_silent(out);
        self.end_pull_pauses(out);
        if self.leases.has_waiters() && now >= self.recalled_at + RECALL_EVERY {
            self.recalled_at = now;
            let runs = &self.runs;
            let mut effects = Vec::new();
            let is_idle = |client| !runs.is_busy(client);
            self.leases.make_way(is_idle, true, &mut effects);
            self.leases.recall(is_idle, &mut effects);
            self.leases.end_reservations(&mut effects);
            self.apply_leases(effects, out);
        }
        self.lease_change(out, |leases, effects| leases.stop_surplus(effects));
        self.owner.time_passed();
    }

    fn load(&self) -> Load {
        load_of(&self.leases)
    }

    fn refresh_view(&mut self) {
        self.view.reported(self.now, self.id, self.load());
    }

    /// Tells the load of this node to those that listen and do not know it.
    fn report_load(&mut self, now: Now) {
        let load = self.load();
        for node in self.listeners.report(now, self.view.is_small(), load.clone()) {
            self.send(node, Message::LoadReport { free: load.free.clone(), waiting: load.waiting });
        }
    }
}

/// The load of a node.
fn load_of(leases: &Leases) -> Load {
    Load { free: leases.free().clone(), waiting: leases.waiting_count() as u32 }
}
