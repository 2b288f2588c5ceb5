//! The loop of a node: records and inputs in, events to the machine, actions out.
//!
//! One thread owns the machine and all rings. It visits the clients that left a mark on the board, then takes
//! the inputs that other threads put into the inbox, then lets the machine settle, performs its actions and
//! rings the bells of the clients that it wrote to: one wake-up per client and round, however many records.
//! With nothing to do, it spins for a moment (a closed loop of small tasks never sleeps), then sleeps until a
//! mark, an input or the machine's next timeout.

mod remembered;

use crate::credit::Grant;
use crate::drain::Drain;
use crate::effects::Effects;
use crate::inbox::{Counts, Inbox, Input};
use crate::inventory;
use crate::lists;
use crate::logs::unix_ms;
use crate::observe::Observation;
use crate::port::{Drained, Port, Taken};
use crate::record_codec;
use crate::runs::RunBook;
use remembered::outcome_of;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tharsis_core::event::Remains;
use tharsis_core::{Action, Event, Node, Now, Operation, Record};
use tharsis_object_store::{BellBoard, SpinPolicy};
use tharsis_protos::records::{FromClient, ToClient};
use tharsis_protos::report::{NodeRow, PendingRow, Report};
use tharsis_types::hash::IdMap;
use tharsis_types::{ClientId, Failure, FailureKind, JobId};

/// Maximum number of records taken from one client before the next one gets its turn.
const VISIT_RECORDS: usize = 1024;
/// The time for which the loop spins before it sleeps.
const SPIN: SpinPolicy = SpinPolicy { spin_us: 50, bursts_per_yield: 1 };
/// The machine's clock when the loop starts.
const CLOCK_START: Now = 1_000 * tharsis_core::MS;
/// Interval at which the progress of a drain is noted.
const NOTE_DRAIN_EVERY: Now = 50 * tharsis_core::MS;
/// A full ring of a client is looked at again after this long, in case its bell was missed.
const OVERFLOW_RETRY: Duration = Duration::from_millis(2);

/// The loop's state.
pub struct Engine {
    node: Node,
    ports: Vec<Option<Port>>,
    index_of: IdMap<ClientId, usize>,
    board: BellBoard,
    inbox: Arc<Inbox>,
    effects: Effects,
    observation: Option<Observation>,
    started: Instant,
    /// The same for people, in ms since 1970.
    started_unix_ms: u64,
    runs: RunBook,
    actions: Vec<Action>,
    /// Clients to which records were written, or for which some wait: no others are flushed.
    unflushed: Vec<usize>,
    /// Clients with more records than one visit takes.
    unfinished: Vec<usize>,
    /// Drivers that go on although they have sent all calls that they may: their next one is not read until
    /// their job has fewer tasks.
    held: Vec<usize>,
    /// Drivers that are granted no more calls until their job has fewer tasks.
    short: Vec<usize>,
    /// When one of these is granted less than it would be later.
    grant_at: Option<Now>,
    stopping: bool,
    drain: Arc<Drain>,
    /// When the progress of the drain is noted next.
    note_drain_at: Now,
}

impl Engine {
    /// A loop around a machine.
    #[must_use]
    pub fn new(
        node: Node,
        board: BellBoard,
        inbox: Arc<Inbox>,
        effects: Effects,
        observation: Option<Observation>,
        drain: Arc<Drain>,
    ) -> Self {
        Self {
            node,
            ports: Vec::new(),
            index_of: IdMap::default(),
            board,
            inbox,
            effects,
            observation,
            started: Instant::now(),
            started_unix_ms: unix_ms(),
            runs: RunBook::default(),
            actions: Vec::new(),
            unflushed: Vec::new(),
            unfinished: Vec::new(),
            held: Vec::new(),
            short: Vec::new(),
            grant_at: None,
            stopping: false,
            drain,
            note_drain_at: 0,
        }
    }

    /// Runs until it is told to stop, then tells all clients.
    pub fn run(mut self) {
        while !self.stopping {
            let busy = self.round();
            if !busy {
                self.sleep();
            }
        }
        for port in self.ports.iter_mut().flatten() {
            port.shutdown("the node stops");
        }
        self.inbox.close();
        if self.drain.has_begun() {
            self.drain.await_told();
        }
        self.effects.stop();
    }

    /// One round; false if there was nothing to do.
    fn round(&mut self) -> bool {
        let now = self.now();
        self.release_held(now);
        let mut marked = std::mem::take(&mut self.unfinished);
        self.board.take_marked(|index| marked.push(index));
        let mut busy = !marked.is_empty();
        for index in marked {
            self.visit(now, index);
        }
        while let Some(input) = self.inbox.take() {
            busy = true;
            self.input(now, input);
        }
        if self.node.next_timeout(now).is_some_and(|at| at <= now) {
            self.node.handle(now, Event::Tick, &mut self.actions);
            busy = true;
        }
        if busy {
            self.node.settle(now, &mut self.actions);
            self.perform();
            self.note_drain(now);
        }
        self.flush();
        busy
    }

    fn begin_drain(&mut self, now: Now, within: Duration) {
        let within = Now::try_from(within.as_nanos()).unwrap_or(Now::MAX);
        self.node.handle(now, Event::DrainWanted { within }, &mut self.actions);
    }

    /// Tells those who wait for the end of a drain how far it is.
    fn note_drain(&mut self, now: Now) {
        if !self.node.is_draining() || (now < self.note_drain_at && !self.stopping) {
            return;
        }
        self.note_drain_at = now + NOTE_DRAIN_EVERY;
        if let Some(state) = self.node.drain_state() {
            self.drain.note(&state);
        }
    }

    fn visit(&mut self, now: Now, index: usize) {
        let Some(port) = self.ports.get_mut(index).and_then(Option::as_mut) else { return };
        let mut reader = Reader {
            now,
            node: &mut self.node,
            actions: &mut self.actions,
            effects: &self.effects,
            observation: &mut self.observation,
            runs: &mut self.runs,
        };
        match reader.drain(port, VISIT_RECORDS, port.is_driver) {
            Ok(Drained::All) => {}
            Ok(Drained::Some) => self.unfinished.push(index),
            // The ring of the driver fills up, and its calls wait.
            Ok(Drained::UntilLeft) if self.held.contains(&index) => {}
            Ok(Drained::UntilLeft) => self.held.push(index),
            Err(problem) => self.expel(now, index, &problem),
        }
        if !self.grant(now, index) && !self.short.contains(&index) {
            self.short.push(index);
        }
    }

    /// Tells a driver how many calls it may send. False if there is no room for more.
    fn grant(&mut self, now: Now, index: usize) -> bool {
        let port = self.ports.get_mut(index).and_then(Option::as_mut);
        let Some(port) = port.filter(|port| port.is_driver) else { return true };
        let (room, most) = (self.node.room_for_calls(port.facts.job), self.node.queued_tasks_max());
        match port.credit.grant(now, room as u64, most as u64) {
            Grant::Enough => true,
            Grant::More(calls) => {
                port.write(&ToClient::Grant { calls });
                note_unflushed(&mut self.unflushed, index, port);
                true
            }
            Grant::Short => false,
            Grant::Later(at) => {
                self.grant_at = Some(self.grant_at.map_or(at, |before| before.min(at)));
                false
            }
        }
    }

    /// Lets drivers go on whose jobs have fewer tasks.
    fn release_held(&mut self, now: Now) {
        self.grant_at = None;
        let mut short = std::mem::take(&mut self.short);
        short.retain(|index| !self.grant(now, *index));
        self.short = short;
        let (node, ports, unfinished) = (&self.node, &self.ports, &mut self.unfinished);
        self.held.retain(|index| {
            let port = ports.get(*index).and_then(Option::as_ref);
            let is_full = port.is_some_and(|port| node.is_full(port.facts.job));
            if !is_full {
                unfinished.push(*index);
            }
            is_full
        });
    }

    /// Cuts off a client that does not keep to the protocol.
    fn expel(&mut self, now: Now, index: usize, problem: &str) {
        let Some(port) = self.ports.get_mut(index).and_then(Option::as_mut) else { return };
        let client = port.client;
        tracing::warn!(client = client.0, problem, "client is cut off");
        port.shutdown(problem);
        let failure =
            Failure::new(FailureKind::DataCorrupt, format!("client {} was cut off: {problem}", client.0));
        self.effects.kill(client, &failure);
        // The thread that sees its end reports it; until then the client may still write.
        self.client_gone(now, client, Remains::Thread, Arc::new(failure));
    }

    fn input(&mut self, now: Now, input: Input) {
        match input {
            Input::Event(Event::ClientGone { client, remains, failure }) => {
                self.client_gone(now, client, remains, failure)
            }
            Input::Event(event) => self.node.handle(now, event, &mut self.actions),
            Input::AreOver { objects, reply } => {
                // Whoever asks may be gone.
                let _gone = reply.send(objects.iter().map(|object| self.node.is_over(*object)).collect());
            }
            Input::Connected { index, port, event } => self.connected(now, index, *port, event),
            Input::CopyNumber { object, reply } => {
                let _gone = reply.send(self.node.copy_number(object));
            }
            Input::Drain { within } => self.begin_drain(now, within),
            Input::JobsOfOthers { reply } => {
                let _gone = reply.send(self.node.jobs_of_others().into_iter().collect());
            }
            Input::List { listing, reply } => {
                // Settle first: a client that came in this round has no lease yet.
                self.node.settle(now, &mut self.actions);
                let (ports, registry) = (self.ports.iter().flatten(), self.effects.registry());
                let _gone = reply.send(lists::table(now, &self.node, ports, registry, &listing));
            }
            Input::Log { job, pid, stderr, text, room: _occupied } => self.pass_on(job, pid, stderr, &text),
            Input::Metrics { reply } => {
                // The scraper may have gone.
                let _gone = reply.send(self.counts());
            }
            Input::Packet { from, packet, room: _occupied } => {
                self.node.handle(now, Event::PacketReceived { from, packet }, &mut self.actions);
            }
            Input::OpenForTransfer { object, reply } => {
                let place = self.node.pin_for_transfer(crate::TRANSFER_CLIENT, object);
                let _gone = reply.send(place);
            }
            Input::CloseTransfer { object } => self.node.unpin_after_transfer(crate::TRANSFER_CLIENT, object),
            Input::Inventory { reply } => {
                let clients = self.ports.iter().flatten();
                let _gone = reply.send(inventory::of(&self.node, clients));
            }
            Input::RegionReady { client, request, region, failure } => {
                if failure.is_some() {
                    self.node.handle(now, Event::RegionRetired { client, region }, &mut self.actions);
                }
                let region = failure.map_or(Ok(region), Err);
                self.tell(client, &Record::Region { request, region });
            }
            Input::Report { reply } => {
                // Settle first: a request that came in this round has no lease and no reason to wait yet.
                self.node.settle(now, &mut self.actions);
                let _gone = reply.send(self.report());
            }
            Input::RunPage { query, place, reply } => {
                // The reader may have gone.
                let _gone = reply.send(self.run_page(now, &query, place));
            }
            Input::RunTimes { task, reply } => {
                // The reader may have gone.
                let _gone = reply.send(self.run_times(task));
            }
            Input::Stop => self.stopping = true,
            Input::Story { about, reply } => {
                // Settle first: a request that came in this round has no lease and no reason to wait yet.
                self.node.settle(now, &mut self.actions);
                let _gone = reply.send(self.node.story(now, about));
            }
        }
    }

    fn connected(&mut self, now: Now, index: usize, port: Port, event: Event) {
        self.index_of.insert(port.client, index);
        if self.ports.len() <= index {
            self.ports.resize_with(index + 1, || None);
        }
        self.ports[index] = Some(port);
        self.node.handle(now, event, &mut self.actions);
        // The client may have written records before it was known here.
        self.unfinished.push(index);
    }

    fn counts(&self) -> Counts {
        let (sent_bytes, received_bytes) = self.effects.transfer_bytes();
        Counts { gauges: self.node.gauges(), sent_bytes, received_bytes }
    }

    /// Passes output of a worker on to the drivers of its job.
    fn pass_on(&mut self, job: JobId, pid: u32, stderr: bool, text: &[u8]) {
        for (index, port) in self.ports.iter_mut().enumerate() {
            let Some(port) = port.as_mut().filter(|p| p.is_driver && p.facts.job == job) else { continue };
            port.log(pid, stderr, text);
            note_unflushed(&mut self.unflushed, index, port);
        }
    }

    fn client_gone(&mut self, now: Now, client: ClientId, remains: Remains, failure: Arc<Failure>) {
        if let Some(index) = self.index_of.remove(&client) {
            // Records that it wrote before it died are still in its ring.
            if let Some(pid) = self.drain_last(now, index) {
                self.note_crashed(now, client, pid);
            }
            self.ports[index] = None;
            self.board.clear(index);
            self.effects.release_index(index);
        }
        let event = Event::ClientGone { client, remains, failure };
        if let Some(observation) = &mut self.observation {
            observation.event(self.node.id(), &event);
        }
        self.node.handle(now, event, &mut self.actions);
    }

    /// Takes the last records of a client; tells its process.
    fn drain_last(&mut self, now: Now, index: usize) -> Option<u32> {
        let mut port = self.ports.get_mut(index).and_then(Option::take)?;
        let mut reader = Reader {
            now,
            node: &mut self.node,
            actions: &mut self.actions,
            effects: &self.effects,
            observation: &mut self.observation,
            runs: &mut self.runs,
        };
        if let Err(problem) = reader.drain(&mut port, usize::MAX, false) {
            tracing::debug!(client = port.client.0, problem, "the last records of a client end here");
        }
        Some(port.facts.pid)
    }

    fn perform(&mut self) {
        let actions = std::mem::take(&mut self.actions);
        for action in &actions {
            if let Some(observation) = &mut self.observation {
                observation.action(&self.node, action);
            }
            self.perform_one(action);
        }
        self.actions = actions;
        self.actions.clear();
    }

    fn perform_one(&mut self, action: &Action) {
        match action {
            Action::Do(operation) => {
                self.effects.perform(operation);
                self.stopping |= *operation == Operation::Leave;
                if let Operation::KillWorker { client, reason } = operation {
                    self.shut_down(*client, &reason.message);
                }
            }
            Action::Tell { client, record: Record::Region { request, region: Ok(region) } }
                if self.effects.needs_blocks(*region) =>
            {
                self.effects.make_blocks(*client, *request, *region);
            }
            Action::Tell { client, record } => self.tell(*client, record),
        }
    }

    /// Writes a record to a client, if it is still there.
    fn tell(&mut self, client: ClientId, record: &Record) {
        let Some(index) = self.index_of.get(&client) else { return };
        if let Some(port) = self.ports.get_mut(*index).and_then(Option::as_mut) {
            record_codec::write(&self.node, port, record);
            note_unflushed(&mut self.unflushed, *index, port);
        }
    }

    /// Tells a client to end, if it is still there.
    fn shut_down(&mut self, client: ClientId, reason: &str) {
        let Some(index) = self.index_of.get(&client) else { return };
        if let Some(port) = self.ports.get_mut(*index).and_then(Option::as_mut) {
            port.shutdown(reason);
            note_unflushed(&mut self.unflushed, *index, port);
        }
    }

    /// Publishes the written records to the clients and wakes those that sleep.
    fn flush(&mut self) {
        for index in std::mem::take(&mut self.unflushed) {
            let Some(port) = self.ports.get_mut(index).and_then(Option::as_mut) else { continue };
            port.is_noted = false;
            port.flush();
            while let Some((token, object)) = port.next_late() {
                // The client may have released it meanwhile.
                if self.node.value_for(port.client, token, object).is_some() {
                    record_codec::deliver(&self.node, port, token, object);
                    port.flush();
                }
            }
            if port.is_overfull() {
                note_unflushed(&mut self.unflushed, index, port);
            }
        }
    }

    fn sleep(&mut self) {
        let now = self.now();
        let next = [self.node.next_timeout(now), self.grant_at].into_iter().flatten().min();
        let mut wait = next.map(|at| Duration::from_nanos(at.saturating_sub(now)));
        if !self.unflushed.is_empty() {
            wait = Some(wait.map_or(OVERFLOW_RETRY, |w| w.min(OVERFLOW_RETRY)));
        }
        let inbox = &self.inbox;
        self.board.wait(SPIN, wait, || !inbox.is_empty());
    }

    fn now(&self) -> Now {
        // The machine's clock starts well above zero, so that subtractions of intervals stay positive.
        self.started.elapsed().as_nanos() as Now + CLOCK_START
    }

    fn report(&self) -> Report {
        let snapshot = self.node.snapshot();
        let mine = NodeRow {
            node: self.node.id().0,
            address: self.effects.address().unwrap_or_default(),
            total: snapshot.total.to_string(),
            free: snapshot.free.to_string(),
            labels: self.node.labels().to_vec(),
            is_draining: self.node.is_draining(),
        };
        let others = self.node.members().filter(|(m, _)| m.node != self.node.id()).map(|(m, load)| NodeRow {
            node: m.node.0,
            address: self.effects.address_of(m.node).unwrap_or_default(),
            total: m.resources.to_string(),
            free: load.free.to_string(),
            labels: m.labels.clone(),
            is_draining: self.node.drains(m.node),
        });
        Report {
            node: self.node.id().0,
            pid: std::process::id(),
            address: self.effects.address().unwrap_or_default(),
            control: self.effects.control_address().unwrap_or_default(),
            is_head: self.effects.is_head(),
            nodes: std::iter::once(mine).chain(others).collect(),
            store: inventory::store_row(&snapshot.store),
            spill_quota_bytes: self.effects.spill_quota_bytes(),
            sent_bytes: self.effects.transfer_bytes().0,
            object_count: snapshot.object_count,
            task_count: snapshot.task_count,
            running_count: snapshot.running_count,
            worker_count: snapshot.worker_count,
            driver_count: self.ports.iter().flatten().filter(|p| p.is_driver).count(),
            pending: snapshot
                .pending
                .into_iter()
                .map(|p| PendingRow {
                    name: p.name,
                    resources: p.resources.to_string(),
                    count: p.count,
                    reason: p.reason,
                    task: p.task.map(|task| task.to_string()).unwrap_or_default(),
                })
                .collect(),
        }
    }
}

/// Notes that a client has records to be published.
fn note_unflushed(unflushed: &mut Vec<usize>, index: usize, port: &mut Port) {
    if !std::mem::replace(&mut port.is_noted, true) {
        unflushed.push(index);
    }
}

/// Takes the records of clients into the machine.
struct Reader<'a> {
    now: Now,
    node: &'a mut Node,
    actions: &'a mut Vec<Action>,
    effects: &'a Effects,
    observation: &'a mut Option<Observation>,
    runs: &'a mut RunBook,
}

impl Reader<'_> {
    /// Takes records from a client's ring. With `holds_back`, calls beyond those that it may send stay in the
    /// ring while the job is full.
    ///
    /// # Errors
    /// The problem with a record that does not keep to the protocol.
    fn drain(&mut self, port: &mut Port, records_max: usize, holds_back: bool) -> Result<Drained, String> {
        let (client, mut credit) = (port.client, port.credit);
        let drained = port.drain(records_max, |facts, record| {
            let decoded = FromClient::decode(record).map_err(|bad| bad.to_string())?;
            let calls = calls_of(&decoded);
            if holds_back && 0 < calls && credit.is_overdrawn() && self.node.is_full(facts.job) {
                return Ok(Taken::Left);
            }
            credit.spend(calls);
            if let Some(event) = record_codec::event(client, facts, self.effects, decoded)? {
                if let Some(observation) = self.observation {
                    observation.event(self.node.id(), &event);
                }
                if let Event::Finished { client, run, run_ns, outcome } = &event
                    && let Some(ended) = self.node.run_in(*client, *run)
                {
                    self.runs.ended(self.now, &ended, facts.pid, *run_ns, outcome_of(outcome));
                }
                self.node.handle(self.now, event, self.actions);
            }
            Ok(Taken::Taken)
        });
        port.credit = credit;
        drained
    }
}

/// Calls in a record.
fn calls_of(record: &FromClient<'_>) -> u64 {
    match record {
        FromClient::Submit { .. } => 1,
        FromClient::Graph { part, .. } => part.step_count() as u64,
        _ => 0,
    }
}
