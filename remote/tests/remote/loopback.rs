//! A minimal node in a thread: it runs tasks when their arguments exist, keeps every object forever, and
//! counts the records of clients. It checks the client's side of the protocol without the real node.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tharsis_object_store::channel::Channel;
use tharsis_object_store::{Arena, Bell, BellBoard, Consumer, PendingLarge, Producer, Segment, SpinPolicy};
use tharsis_protos::handshake::{NameAct, Named};
use tharsis_protos::records::*;
use tharsis_remote::{Client, ClientParts, current, run_worker};
use tharsis_types::{
    ClientId, Dependency, Extent, Failure, FailureKind, JobId, NodeId, ObjectId, RefId, TaskClass, TaskId,
};

pub struct Loopback {
    pub driver: Client,
    pub counts: Arc<Counts>,
    stop: Arc<AtomicBool>,
    board: BellBoard,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
pub struct Counts {
    pub releases: AtomicUsize,
    pub holds: AtomicUsize,
    pub blocked: AtomicUsize,
    pub fetches: AtomicUsize,
    pub regions: AtomicUsize,
    pub retired: AtomicUsize,
    pub given_back: AtomicUsize,
    /// Values that a client has unmapped.
    pub unmapped: AtomicUsize,
    /// Requests for a value that came before the client had unmapped it.
    pub overtaken: AtomicUsize,
}

#[derive(Clone, Copy)]
pub struct Plan {
    pub workers: usize,
    pub slots: usize,
    pub ahead: usize,
    /// Takes each value back as soon as it was sent, and then writes this number of lines of output.
    pub asks_back: Option<usize>,
    /// Names are claimed slowly, and forgotten at once.
    pub forgets_names: bool,
}

impl Default for Plan {
    fn default() -> Self {
        Self { workers: 1, slots: 1, ahead: 1, asks_back: None, forgets_names: false }
    }
}

struct Peer {
    producer: Producer,
    consumer: Consumer,
    bell: Bell,
    is_worker: bool,
    is_blocked: bool,
    classes: HashMap<u32, u32>,
    known: HashSet<u32>,
    running: Vec<u32>,
}

#[derive(Clone)]
enum Val {
    Inline(Vec<u8>),
    Local(Extent),
    Failed(Vec<u8>),
}

struct Task {
    class: u32,
    task: TaskId,
    payload: Vec<u8>,
    dependencies: Vec<Dependency>,
}

struct Node {
    peers: Vec<Peer>,
    arena_next: u64,
    arena_end: u64,
    classes: Vec<TaskClass>,
    values: HashMap<ObjectId, Val>,
    watchers: HashMap<ObjectId, Vec<(usize, Token)>>,
    waiting: VecDeque<Task>,
    running: HashMap<u32, (usize, Task)>,
    /// Values that clients have mapped because they fetched them.
    mapped: HashSet<(usize, Token)>,
    next_slot: u32,
    plan: Plan,
    counts: Arc<Counts>,
}

pub fn start(plan: Plan) -> Loopback {
    let arena = Arena::create(256 << 20).unwrap();
    let board_segment = Arc::new(Segment::anonymous(tharsis_object_store::bell::BELL_BOARD_BYTES).unwrap());
    let board = BellBoard::at(&board_segment, 0).unwrap();
    let counts = Arc::new(Counts::default());
    let mut node = Node {
        peers: Vec::new(),
        arena_next: 0,
        arena_end: arena.len(),
        classes: Vec::new(),
        values: HashMap::new(),
        watchers: HashMap::new(),
        waiting: VecDeque::new(),
        running: HashMap::new(),
        mapped: HashSet::new(),
        next_slot: 0,
        plan,
        counts: Arc::clone(&counts),
    };
    let clients: Vec<Client> = (0..=plan.workers)
        .map(|index| {
            let segment = Arc::new(Segment::anonymous(Channel::BYTES).unwrap());
            let ours = Channel::node_side(&segment).unwrap();
            node.peers.push(Peer {
                producer: ours.producer,
                consumer: ours.consumer,
                bell: ours.bell,
                is_worker: index > 0,
                is_blocked: false,
                classes: HashMap::new(),
                known: HashSet::new(),
                running: Vec::new(),
            });
            Client::from_parts(ClientParts {
                gpus: Vec::new(),
                client: ClientId(index as u32),
                node: NodeId(7),
                job: JobId(1),
                is_worker: index > 0,
                channel: Channel::client_side(&segment).unwrap(),
                board: board.clone(),
                board_index: index as u32,
                arena: Arc::clone(arena.map()),
                log_sink: Some(Box::new(|_, _, _| {})),
                names: Box::new(move |question| Ok(answer_name(&question.act, plan))),
            })
            .unwrap()
        })
        .collect();
    let stop = Arc::new(AtomicBool::new(false));
    let mut threads: Vec<_> = clients[1..]
        .iter()
        .map(|client| {
            let client = client.clone();
            thread::spawn(move || run_worker(&client).unwrap())
        })
        .collect();
    let (stopped, node_board) = (Arc::clone(&stop), board.clone());
    threads.push(thread::spawn(move || {
        let spin = SpinPolicy { spin_us: 50, bursts_per_yield: 1 };
        node.send(0, &ToClient::Grant { calls: u64::MAX });
        while !stopped.load(Ordering::Acquire) {
            node_board.wait(spin, Some(Duration::from_millis(100)), || stopped.load(Ordering::Acquire));
            let mut marked = Vec::new();
            node_board.take_marked(|index| marked.push(index));
            for index in marked {
                node.read(index);
            }
            node.schedule();
        }
        for index in 0..node.peers.len() {
            node.send(index, &ToClient::Shutdown { reason: "the test is over" });
        }
        drop(arena);
    }));
    Loopback { driver: clients[0].clone(), counts, stop, board, threads }
}

fn answer_name(act: &NameAct, plan: Plan) -> Named {
    if plan.forgets_names && matches!(act, NameAct::Claim { .. }) {
        thread::sleep(Duration::from_millis(600));
        return Named::Claimed;
    }
    Named::Missing { nearest: None }
}

impl Loopback {
    /// Binds the test's thread to the driver's client.
    pub fn enter(&self) -> current::Binding {
        current::bind(self.driver.clone())
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.board.ring();
        for thread in self.threads.drain(..) {
            let ended = thread.join();
            if !thread::panicking() {
                ended.unwrap();
            }
        }
    }
}

impl Node {
    fn send(&mut self, index: usize, record: &ToClient<'_>) {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        let peer = &mut self.peers[index];
        let mut message = PendingLarge::new(bytes);
        while !peer.producer.try_push_large(&mut message).unwrap() {
            peer.bell.ring();
            thread::sleep(Duration::from_micros(50));
        }
        peer.bell.ring();
    }

    fn read(&mut self, index: usize) {
        let mut records = Vec::new();
        self.peers[index].consumer.drain(usize::MAX, |record| records.push(record.to_vec())).unwrap();
        for record in records {
            self.act(index, FromClient::decode(&record).unwrap());
        }
    }

    fn act(&mut self, index: usize, record: FromClient<'_>) {
        let counts = Arc::clone(&self.counts);
        let add = |count: &AtomicUsize| count.fetch_add(1, Ordering::SeqCst);
        match record {
            FromClient::ActorEnded => {}
            FromClient::Blocked { returned } => {
                add(&counts.blocked);
                self.peers[index].is_blocked = true;
                self.take_back(index, returned);
            }
            FromClient::GiveBack { returned, .. } => self.take_back(index, returned),
            FromClient::Unmapped { token, .. } => {
                add(&counts.unmapped);
                self.mapped.remove(&(index, token));
            }
            FromClient::Cancel { reference, .. } => self.cancel(reference),
            FromClient::DefineClass { class, definition } => {
                self.classes.push(postcard_class(definition));
                self.peers[index].classes.insert(class, self.classes.len() as u32 - 1);
            }
            FromClient::Done { slot, outcome, .. } => self.done(slot, outcome),
            FromClient::Fetch { token, reference } => {
                add(&counts.fetches);
                let value = self.values.get(&reference.object).cloned();
                match value {
                    Some(Val::Local(extent)) => {
                        if !self.mapped.insert((index, token)) {
                            add(&counts.overtaken);
                        }
                        self.send(index, &ToClient::Value { token, value: ValueView::Local(extent) });
                        self.ask_back(index, token);
                    }
                    Some(_) => self.tell(index, token, reference.object),
                    None => self.watch(index, token, reference.object),
                }
            }
            FromClient::Checkpoint { .. } | FromClient::Restart { .. } => panic!("actors need a node"),
            FromClient::Graph { .. } => panic!("graphs need a node"),
            FromClient::Hold { .. } | FromClient::Keep { .. } => {
                add(&counts.holds);
            }
            FromClient::Locate { request, .. } => {
                let nodes = tharsis_protos::records::NodesView::default();
                self.send(index, &ToClient::Locations { request, nodes });
            }
            FromClient::Put { object, value, .. } => {
                let value = owned(&value);
                self.finish(object, value);
            }
            FromClient::RegionWanted { request, bytes } => {
                add(&counts.regions);
                let len = bytes.next_multiple_of(4096);
                let fits = self.arena_next + len <= self.arena_end;
                let region =
                    if fits { Extent { offset: self.arena_next, len } } else { Extent { offset: 0, len: 0 } };
                self.arena_next += region.len;
                let failure = encoded(&Failure::new(FailureKind::StoreFull, "the arena is full"));
                self.send(index, &ToClient::Region { request, region, failure: &failure });
            }
            FromClient::RegionRetired { .. } => {
                add(&counts.retired);
            }
            FromClient::Release { .. } => {
                add(&counts.releases);
            }
            FromClient::Submit { class, task, tokens, payload, dependencies, .. } => {
                for (output, token) in tokens.iter().enumerate() {
                    self.watch(index, token, ObjectId::output(task, output as u32));
                }
                let class = self.peers[index].classes[&class];
                let dependencies = dependencies.iter().collect();
                self.waiting.push_back(Task { class, task, payload: payload.to_vec(), dependencies });
            }
            FromClient::Unblock => {
                self.peers[index].is_blocked = false;
                self.send(index, &ToClient::Resumed);
            }
        }
    }

    fn ask_back(&mut self, index: usize, token: Token) {
        let Some(line_count) = self.plan.asks_back else { return };
        self.send(index, &ToClient::Unmap { token });
        for _ in 0..line_count {
            self.send(index, &ToClient::Log { pid: 1, stderr: false, text: b"line" });
        }
    }

    fn take_back(&mut self, index: usize, returned: SlotsView<'_>) {
        for slot in returned.iter() {
            self.counts.given_back.fetch_add(1, Ordering::SeqCst);
            let (_, task) = self.running.remove(&slot).unwrap();
            self.peers[index].running.retain(|s| *s != slot);
            self.waiting.push_front(task);
        }
    }

    fn cancel(&mut self, reference: RefId) {
        let task = reference.object.task;
        let found =
            self.running.iter().find(|(_, (_, t))| t.task == task).map(|(slot, (at, _))| (*slot, *at));
        if let Some((slot, at)) = found {
            self.send(at, &ToClient::CancelRun { slot });
        }
    }

    fn watch(&mut self, index: usize, token: Token, object: ObjectId) {
        if self.values.contains_key(&object) {
            self.tell(index, token, object);
        } else {
            self.watchers.entry(object).or_default().push((index, token));
        }
    }

    fn tell(&mut self, index: usize, token: Token, object: ObjectId) {
        let value = self.values[&object].clone();
        let value = match &value {
            Val::Inline(bytes) => ValueView::Inline(bytes),
            Val::Local(extent) => ValueView::Ready { len: extent.len },
            Val::Failed(failure) => ValueView::Failed(failure),
        };
        self.send(index, &ToClient::Value { token, value });
    }

    fn finish(&mut self, object: ObjectId, value: Val) {
        self.values.insert(object, value);
        for (index, token) in self.watchers.remove(&object).unwrap_or_default() {
            self.tell(index, token, object);
        }
    }

    fn done(&mut self, slot: u32, outcome: OutcomeView<'_>) {
        let (index, task) = self.running.remove(&slot).unwrap();
        self.peers[index].running.retain(|s| *s != slot);
        match outcome {
            OutcomeView::Returned(outputs) => {
                let outputs: Vec<_> = outputs.iter().map(|o| owned(&o.unwrap().0)).collect();
                for (i, value) in outputs.into_iter().enumerate() {
                    self.finish(ObjectId::output(task.task, i as u32), value);
                }
            }
            OutcomeView::Failed { failure, .. } => self.fail(&task, failure.to_vec()),
        }
    }

    fn fail(&mut self, task: &Task, failure: Vec<u8>) {
        for i in 0..self.classes[task.class as usize].returns {
            self.finish(ObjectId::output(task.task, i), Val::Failed(failure.clone()));
        }
    }

    fn schedule(&mut self) {
        let mut kept = VecDeque::new();
        while let Some(task) = self.waiting.pop_front() {
            let values: Vec<_> =
                task.dependencies.iter().map(|d| self.values.get(&d.reference.object)).collect();
            if values.iter().any(Option::is_none) {
                kept.push_back(task);
                continue;
            }
            if let Some(Val::Failed(cause)) = values.iter().flatten().find(|v| matches!(v, Val::Failed(_))) {
                let cause: Failure = postcard_failure(cause);
                let failure =
                    Failure::new(FailureKind::DependencyFailed, "an argument failed").because(cause);
                self.fail(&task, encoded(&failure));
                continue;
            }
            match self.worker() {
                Some(index) => self.run(index, task),
                None => kept.push_back(task),
            }
            if kept.len() > 64 && self.worker().is_none() {
                break;
            }
        }
        kept.append(&mut self.waiting);
        self.waiting = kept;
    }

    fn worker(&self) -> Option<usize> {
        let active = |peer: &&Peer| peer.is_worker && !peer.is_blocked && !peer.running.is_empty();
        let active_count = self.peers.iter().filter(active).count();
        let candidates = self.peers.iter().enumerate().filter(|(_, peer)| {
            let has_room = if peer.running.is_empty() { active_count < self.plan.slots } else { true };
            peer.is_worker && !peer.is_blocked && peer.running.len() < self.plan.ahead && has_room
        });
        candidates.min_by_key(|(_, peer)| peer.running.len()).map(|(index, _)| index)
    }

    fn run(&mut self, index: usize, task: Task) {
        if self.peers[index].known.insert(task.class) {
            let definition = encoded_class(&self.classes[task.class as usize]);
            self.send(index, &ToClient::DefineClass { class: task.class, definition: &definition });
        }
        self.next_slot += 1;
        let slot = self.next_slot;
        let mut arguments = Vec::new();
        for dependency in &task.dependencies {
            let value = match &self.values[&dependency.reference.object] {
                Val::Inline(bytes) => ValueView::Inline(bytes),
                Val::Local(extent) => ValueView::Local(*extent),
                Val::Failed(failure) => ValueView::Failed(failure),
            };
            pack::argument(&mut arguments, dependency.parameter, &dependency.reference, &value);
        }
        let arguments = ArgumentsView::new(task.dependencies.len() as u32, &arguments);
        let record = ToClient::Run {
            slot,
            class: task.class,
            attempt: 0,
            task: task.task,
            payload: &task.payload,
            arguments,
            name: "",
        };
        self.send(index, &record);
        self.peers[index].running.push(slot);
        self.running.insert(slot, (index, task));
    }
}

fn owned(value: &ValueView<'_>) -> Val {
    match value {
        ValueView::Inline(bytes) => Val::Inline(bytes.to_vec()),
        ValueView::Local(extent) => Val::Local(*extent),
        other => panic!("a client cannot send {other:?}"),
    }
}

fn encoded(failure: &Failure) -> Vec<u8> {
    postcard::to_allocvec(failure).unwrap()
}

fn encoded_class(class: &TaskClass) -> Vec<u8> {
    postcard::to_allocvec(class).unwrap()
}

fn postcard_class(bytes: &[u8]) -> TaskClass {
    postcard::from_bytes(bytes).unwrap()
}

fn postcard_failure(bytes: &[u8]) -> Failure {
    postcard::from_bytes(bytes).unwrap()
}
