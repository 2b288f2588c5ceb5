//! Drivers and workers as the simulator sees them: what a client process keeps.

use crate::program::{self, Content, OutputPlan, Script};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tharsis_core::Now;
use tharsis_core::event::OutputValue;
use tharsis_core::lease::ProcessNumber;
use tharsis_types::task::Output;
use tharsis_types::{ClientId, Extent, JobId, NodeId, ObjectId, RefId, TaskId};

/// Bytes of a region that a client asks for.
const REGION_BYTES: u64 = 64 << 10;
/// Values of tasks up to this size are named by what is in them.
const HASHED_BYTES_MAX: u64 = 20_000;

/// A driver or worker.
#[derive(Debug)]
pub struct Client {
    /// Its id in its node.
    pub id: ClientId,
    /// Its job.
    pub job: JobId,
    /// The process that it shares with others, if it does.
    pub process: Option<ProcessNumber>,
    /// Classes it has named.
    pub classes: BTreeSet<u32>,
    /// Its numbers of the classes of tasks inside of groups.
    pub inside: BTreeMap<(TaskId, Option<u32>), u32>,
    /// References that it has told its node of and not released.
    pub refs: BTreeMap<u64, Held>,
    /// The part of these that it has found by name, and does not know yet whether they live.
    pub looks: BTreeSet<u64>,
    /// Next token.
    pub next_token: u64,
    /// Values put so far whose ids name this client.
    pub own_puts: u32,
    /// Regions it may write to, and how much of each is used.
    pub regions: Vec<(Extent, u64)>,
    /// Values that the current task (a driver's: its root) has made so far.
    pub context: Context,
    /// The phase of its work.
    pub phase: Phase,
    /// Counts starts of work, so that an old alarm is told from a new one.
    pub epoch: u64,
    /// Set for drivers.
    pub driver: Option<Driver>,
    /// Tasks of runs that are on their way here.
    pub announced: VecDeque<TaskId>,
    /// Runs that are here and not started.
    pub queue: VecDeque<RunRecord>,
    /// The run that has started.
    pub current: Option<Current>,
    /// Calls that its actor runs beside the others.
    pub sides: Vec<Side>,
    /// Calls that will run so when there is room for them.
    pub side_queue: VecDeque<RunRecord>,
    /// The task that constructed the actor that lives here.
    pub actor: Option<TaskId>,
    /// The actor that lived here has ended by itself: nothing starts any more.
    pub has_left: bool,
    /// The last call of each caller that has started here.
    pub last_calls: BTreeMap<Caller, u64>,
    /// Times of the last records in either direction: rings keep order.
    pub to_node_at: Now,
    /// As `to_node_at`.
    pub to_client_at: Now,
}

/// A caller, whose calls of an actor keep their order: the host, the client and its task.
pub type Caller = (usize, ClientId, TaskId);

/// Working state of a task.
#[derive(Debug)]
pub struct Context {
    /// Its id; a driver's is the root of its job.
    pub task: TaskId,
    /// Depth of what it submits.
    pub depth: u8,
    /// Tasks submitted so far.
    pub children: u64,
    /// Values put so far.
    pub puts: u32,
    /// Not 0 in an attempt that puts other values than the first one.
    pub salt: u32,
    /// References in the order in which every attempt gets them.
    pub locals: Vec<u64>,
    /// References found inside values.
    pub found: Vec<u64>,
}

/// A reference of a client.
#[derive(Debug)]
pub struct Held {
    /// The object.
    pub reference: RefId,
    /// A get waits for it.
    pub pending: bool,
    /// The value was seen, or its failure.
    pub ended: bool,
    /// It was a failure.
    pub failed: bool,
    /// Mapped bytes, and what stood there at first.
    pub mapped: Option<(Extent, Content)>,
}

/// The phase of a client's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing.
    Idle,
    /// Steps of a task.
    Working,
    /// Waiting for a region, or for the answer that there is none.
    Region,
    /// Waiting for values, slot lent.
    Blocked,
    /// Has its values, waits for its slot.
    Resuming,
}

/// The program of a driver.
#[derive(Debug, Default)]
pub struct Driver {
    /// Operations to go.
    pub ops_left: u32,
    /// Waits for its last gets.
    pub draining: bool,
    /// Bytes of the values of a row that it has asked for room for.
    pub planned: Vec<u64>,
    /// Values that it put one after the other.
    pub row: Vec<u64>,
    /// The part of these that it is about to read, one after the other.
    pub reading: VecDeque<u64>,
    /// Streams that it consumes.
    pub streams: Vec<Stream>,
}

/// A stream that a driver consumes.
#[derive(Debug)]
pub struct Stream {
    /// Its token.
    pub actor: u64,
    /// Tokens of the items that were asked for and not taken.
    pub window: VecDeque<u64>,
    /// Items that the consumer wants beside these.
    pub left: u64,
}

/// A run as it was sent.
#[derive(Clone, Debug)]
pub struct RunRecord {
    /// Its number.
    pub run: u32,
    /// The task.
    pub task: TaskId,
    /// Number of the attempt.
    pub attempt: u32,
    /// Kind of its class.
    pub kind: u32,
    /// The job of its class.
    pub job: JobId,
    /// Arguments by value.
    pub payload: Vec<u8>,
    /// Arguments by reference.
    pub arguments: Vec<(u16, RefId, Argument)>,
}

/// An argument as it was sent.
#[derive(Clone, Debug)]
pub enum Argument {
    /// Sent along.
    Inline(Vec<u8>),
    /// Mapped.
    Local(Extent),
}

/// The run that has started.
#[derive(Debug)]
pub struct Current {
    /// As it was sent.
    pub record: RunRecord,
    /// The steps of the task.
    pub script: Script,
    /// Next step.
    pub step: usize,
    /// Values of the arguments, in order.
    pub arguments: Vec<u64>,
    /// Mapped arguments, and what stood there at the start.
    pub mapped: Vec<(Extent, Content)>,
    /// Outputs so far.
    pub outputs: Vec<Output<OutputValue>>,
    /// It was asked to stop.
    pub cancelled: bool,
    /// It ends by the death of the worker.
    pub doomed: bool,
    /// No region was granted: what would be stored goes inline.
    pub refused: bool,
    /// Its demand, as units of CPU and of everything else.
    pub cpu: u64,
    /// Units of the custom resource.
    pub disk: u64,
}

/// A call that has started beside others of its actor.
#[derive(Debug)]
pub struct Side {
    /// As it was sent.
    pub record: RunRecord,
    /// Values of the arguments, in order.
    pub arguments: Vec<u64>,
    /// Mapped arguments, and what stood there at the start.
    pub mapped: Vec<(Extent, Content)>,
    /// It was asked to stop.
    pub is_cancelled: bool,
}

impl Client {
    /// A client without anything.
    #[must_use]
    pub fn new(id: ClientId, job: JobId, driver: Option<Driver>) -> Self {
        Self {
            id,
            job,
            process: None,
            classes: BTreeSet::new(),
            inside: BTreeMap::new(),
            refs: BTreeMap::new(),
            looks: BTreeSet::new(),
            next_token: 1,
            own_puts: 0,
            regions: Vec::new(),
            context: Context::new(TaskId::root(job), 0),
            phase: if driver.is_some() { Phase::Working } else { Phase::Idle },
            epoch: 0,
            driver,
            announced: VecDeque::new(),
            queue: VecDeque::new(),
            current: None,
            sides: Vec::new(),
            side_queue: VecDeque::new(),
            actor: None,
            has_left: false,
            last_calls: BTreeMap::new(),
            to_node_at: 0,
            to_client_at: 0,
        }
    }

    /// A new token for a reference.
    pub fn hold(&mut self, reference: RefId) -> u64 {
        let token = self.next_token;
        self.next_token += 1;
        self.refs
            .insert(token, Held { reference, pending: false, ended: false, failed: false, mapped: None });
        token
    }

    /// The id of a value: a driver numbers them, a task names them by what is in them, and large ones by its
    /// worker.
    pub fn put_id(
        &mut self,
        number: u32,
        extent: Option<Extent>,
        content: &Content,
        node: NodeId,
    ) -> ObjectId {
        if self.driver.is_some() {
            return ObjectId::put(self.context.task, number);
        }
        if extent.is_some_and(|extent| HASHED_BYTES_MAX < extent.len) {
            self.own_puts += 1;
            let worker = TaskId::root(self.job).child(node.0).child(u64::from(self.id.0));
            return ObjectId::put(worker, self.own_puts);
        }
        let content = program::content_hash(&content.encode(), 0);
        let task = self.context.task.in_job(self.job);
        ObjectId::put(task.call(u64::from(number), content.into()), number)
    }

    /// A range for a value, if a region has room; behind the memory, pages belong to one value each.
    pub fn carve(&mut self, len: u64, memory_bytes: u64) -> Option<Extent> {
        let align = |region: &Extent| if region.offset < memory_bytes { 64 } else { 4096 };
        let (region, used) = self
            .regions
            .iter_mut()
            .find(|(region, used)| used.next_multiple_of(align(region)) + len <= region.len)?;
        let offset = region.offset + used.next_multiple_of(align(region));
        *used = offset - region.offset + len;
        Some(Extent { offset, len })
    }

    /// Bytes to ask for, so that `len` fit.
    #[must_use]
    pub fn region_bytes(len: u64) -> u64 {
        REGION_BYTES.max(len)
    }

    /// References that the choices name, among those at hand.
    #[must_use]
    pub fn chosen(&self, choices: &[u64]) -> Vec<RefId> {
        let locals = &self.context.locals;
        let tokens = choices
            .iter()
            .filter(|_| !locals.is_empty())
            .map(|c| locals[(*c % locals.len() as u64) as usize]);
        tokens.filter_map(|token| self.refs.get(&token)).map(|held| held.reference).collect()
    }

    /// Whether a run is here, started or not.
    #[must_use]
    pub fn has_runs(&self) -> bool {
        self.current.is_some()
            || !(self.queue.is_empty() && self.sides.is_empty() && self.side_queue.is_empty())
    }

    /// Whether a get is under way.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.refs.values().any(|held| held.pending)
    }
}

impl Context {
    /// The context of a task that has done nothing yet.
    #[must_use]
    pub fn new(task: TaskId, depth: u8) -> Self {
        Self { task, depth, children: 0, puts: 0, salt: 0, locals: Vec::new(), found: Vec::new() }
    }
}

impl Current {
    /// The plan of the next output.
    #[must_use]
    pub fn next_output(&self) -> Option<&OutputPlan> {
        self.script.outputs.get(self.outputs.len())
    }
}
