//! Programs of the simulated tasks: scripts and values that depend on ids alone.
//!
//! A task's result is a pure function of its id and its arguments: every attempt on any node must come to the
//! same value, which is what the checks compare. So is its script, except that in some clusters a later
//! attempt does the same in another order, or puts other values: what it calls then, and what that returns,
//! is its own. Only the time that work takes, and who dies when, is left to the seed.

use crate::rng::{Rng, mix};
use std::sync::Arc;
use tharsis_types::task::Role;
use tharsis_types::{
    FunctionId, GroupSpec, JobId, NodeId, ObjectId, Placement, Quota, RefId, Resources, RetryOn, SmallBytes,
    Strategy, TaskClass, TaskId,
};

/// Kinds of task classes; see [`class`].
pub const CLASS_COUNT: u32 = 14;
/// The kind of tasks of which some take very long.
pub const LONG: u32 = 3;
/// The kind of tasks with a timeout, which their children have as well.
pub const TIMED: u32 = 12;
/// The kind of constructors of actors.
pub const CONSTRUCTOR: u32 = 14;
/// The kind of methods of actors.
pub const METHOD: u32 = 15;
/// The first kind of placement groups: one for each strategy.
pub const GROUP: u32 = 16;
/// The kind of tasks inside of a placement group.
pub const INSIDE: u32 = GROUP + GROUP_KINDS;
/// Kinds of placement groups.
pub const GROUP_KINDS: u32 = 4;
/// The kind of methods of an actor that runs several calls at the same time, of those that take turns.
pub const TURN: u32 = INSIDE + 1;
/// The kind of its methods that run beside others.
pub const BESIDE: u32 = INSIDE + 2;
/// Calls of the kind [`BESIDE`] that an actor runs at the same time.
pub const BESIDE_MAX: u32 = 3;
/// Set in the number of a class whose actors or groups live without handles.
pub const DETACHED: u32 = 1 << 6;
/// A group that the cluster cannot hold fails after this time.
const GROUP_PATIENCE_MS: u64 = 300;
/// Children of children are submitted down to here.
pub const DEPTH_MAX: u8 = 3;
/// Type name of the error that some tasks raise a few times.
pub const FLAKY: &str = "Flaky";
/// Type name of the error that some tasks raise at every attempt.
pub const FATAL: &str = "Fatal";

/// The quota of a job: of the CPUs, more than any task needs.
#[must_use]
pub fn quota_of(job: JobId) -> Option<Quota> {
    let cpu = Some(3 * Resources::UNIT / 2);
    job.0.is_multiple_of(2).then(|| Quota { cpu, ..Quota::default() })
}

/// The name of a call, if it has one of its own: a third of them. It comes with the task each time.
#[must_use]
pub fn call_name(task: TaskId) -> Option<Arc<str>> {
    let text = format!("call {task}");
    let sum = text.bytes().fold(0, |sum, byte| mix(sum, u64::from(byte)));
    sum.is_multiple_of(3).then(|| text.into())
}

/// Content of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// The value itself, as far as anyone looks.
    pub hash: u64,
    /// References inside it.
    pub nested: Vec<RefId>,
}

/// The arguments that a task gets by value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    /// Depth in the tree of calls.
    pub depth: u8,
    /// References inside.
    pub nested: Vec<RefId>,
}

/// One step of a task.
#[derive(Clone, Debug)]
pub enum Step {
    /// Compute.
    Work {
        /// For how long, at most, in microseconds.
        us: u64,
    },
    /// Call a function.
    Submit {
        /// Kind of the class.
        class: u32,
        /// Choices of references passed by value of the object.
        dependencies: Vec<u64>,
        /// Choices of references passed as such.
        nested: Vec<u64>,
    },
    /// Submit a graph, which the seed decides.
    Graph {
        /// The seed.
        seed: u64,
    },
    /// Put a value.
    Put {
        /// Bytes if it goes to the store, else inline.
        stored: Option<u64>,
        /// Choices of references inside.
        nested: Vec<u64>,
    },
    /// Wait until all references that the task has are readable.
    Wait,
}

/// One output of a task.
#[derive(Clone, Debug)]
pub struct OutputPlan {
    /// Bytes if it goes to the store, else inline.
    pub stored: Option<u64>,
    /// Choices of references inside.
    pub nested: Vec<u64>,
}

/// All that a task does.
#[derive(Clone, Debug)]
pub struct Script {
    /// In order.
    pub steps: Vec<Step>,
    /// Outputs that it returns.
    pub outputs: Vec<OutputPlan>,
    /// Number of times that it raises [`FLAKY`] before it succeeds.
    pub flaky_raises: u32,
    /// Raises [`FATAL`] always.
    pub fatal: bool,
}

/// The class of a kind, for a job, which may be [`DETACHED`]; some kinds wish for one of `nodes`. Tasks
/// inside of a group are told which by [`inside`].
#[must_use]
pub fn class(job: JobId, number: u32, nodes: &[NodeId]) -> Arc<TaskClass> {
    let kind = number & !DETACHED;
    let cpu = |quarters: u64| Resources { cpu: quarters * Resources::UNIT / 4, ..Resources::default() };
    let node = |n: usize, soft| Placement::Node { node: nodes[n % nodes.len()], soft };
    let mut class = TaskClass {
        resources: cpu(4),
        max_retries: 3,
        // Runs of the others are counted: they run again for a failure only.
        pure: matches!(kind, 0 | 6 | 7 | 10),
        detached: kind != number,
        ..TaskClass::new(job, FunctionId(u64::from(kind)), &format!("f{kind}"))
    };
    match kind {
        0 => {}
        1 => class.resources = cpu(1),
        2 => class.resources = cpu(0),
        LONG => class.max_retries = 0,
        4 => class.max_retries = -1,
        5 => {
            class.retry_on = RetryOn::Types(vec![FLAKY.to_owned()]);
            class.resources = cpu(2);
        }
        6 => class.returns = 3,
        7 => class.placement = Placement::Spread,
        8 => class.placement = node(0, true),
        9 => class.placement = node(1, false),
        10 => class.max_calls = 2,
        11 => {
            class.priority = 5;
            class.returns = 2;
        }
        TIMED => class.timeout_ms = 40,
        CONSTRUCTOR => {
            // An actor keeps its resources for long: others would wait for them.
            (class.resources, class.max_retries) = (cpu(0), 2);
            class.role = Role::Constructor;
            class.shared_process = nodes.len().is_multiple_of(2);
        }
        METHOD | TURN | BESIDE => {
            (class.resources, class.max_retries) = (cpu(0), 1);
            class.role = Role::Method;
            class.calls.out_of_order = overtakes(job);
            class.calls.max_pending = max_pending(job);
            class.calls.concurrent = kind != METHOD;
            class.calls.group = u16::from(kind == BESIDE);
            class.calls.limit = if kind == BESIDE { BESIDE_MAX } else { 1 };
        }
        GROUP..INSIDE => {
            class.resources = cpu(0);
            class.placement = Placement::Reserve(group_spec(kind));
        }
        INSIDE => (class.resources, class.max_retries) = (cpu(1), 2),
        // Leaves only: what is not CPU is not lent, so a nest of these would wait for itself.
        _ => {
            class.resources = cpu(1);
            class.resources.custom.insert("disk".to_owned(), Resources::UNIT);
        }
    }
    Arc::new(class)
}

/// Whether calls of a kind are methods of actors.
#[must_use]
pub fn is_method(kind: u32) -> bool {
    matches!(kind, METHOD | TURN | BESIDE)
}

/// Whether an actor, named by its constructor, runs several calls at the same time: its methods are in two
/// groups.
#[must_use]
pub fn runs_several(actor: TaskId) -> bool {
    mix(actor.mixed(), 5).is_multiple_of(3)
}

/// The kind of a method of an actor.
#[must_use]
pub fn method_of(actor: TaskId, choice: u64) -> u32 {
    match (runs_several(actor), choice.is_multiple_of(3)) {
        (false, _) => METHOD,
        (true, true) => TURN,
        (true, false) => BESIDE,
    }
}

/// Whether the calls of a job overtake those that wait for arguments.
#[must_use]
pub fn overtakes(job: JobId) -> bool {
    job.0 % 3 == 1
}

/// Calls of an actor that a caller of a job may have unfinished; 0 for any number.
#[must_use]
pub fn max_pending(job: JobId) -> u32 {
    if job.0 % 3 == 2 { 6 } else { 0 }
}

/// A placement group of a kind. Together its bundles are within the quota of any job.
#[must_use]
pub fn group_spec(kind: u32) -> GroupSpec {
    let (strategy, quarters) = match kind - GROUP {
        0 => (Strategy::Pack, 1),
        1 => (Strategy::Spread, 2),
        2 => (Strategy::StrictPack, 2),
        _ => (Strategy::StrictSpread, 1),
    };
    let bundle = Resources { cpu: quarters * Resources::UNIT / 4, ..Resources::default() };
    GroupSpec { bundles: vec![bundle; 2], strategy, patience_ms: GROUP_PATIENCE_MS }
}

/// The class of tasks inside of a group.
#[must_use]
pub fn inside(job: JobId, group: TaskId, bundle: Option<u32>) -> Arc<TaskClass> {
    let placement = Placement::Group { group, bundle };
    Arc::new(TaskClass { placement, ..TaskClass::clone(&class(job, INSIDE, &[])) })
}

/// Outputs of a class of a kind.
#[must_use]
pub fn returns(kind: u32) -> u32 {
    match kind {
        6 => 3,
        11 => 2,
        _ => 1,
    }
}

/// The script of a task, the same for every attempt.
#[must_use]
pub fn script(task: TaskId, kind: u32, depth: u8) -> Script {
    let mut rng = Rng::new(mix(task.mixed(), u64::from(kind)));
    if matches!(kind, CONSTRUCTOR | INSIDE) || is_method(kind) {
        return actor_script(&mut rng, kind);
    }
    let mut steps = vec![Step::Work { us: work_us(&mut rng, kind) }];
    if depth < DEPTH_MAX && kind != 13 {
        let count = if rng.chance(500) { 0 } else { rng.range(1, 5) };
        for _ in 0..count {
            steps.push(step(&mut rng, kind));
        }
    }
    let outputs =
        (0..returns(kind)).map(|_| OutputPlan { stored: stored(&mut rng), nested: choices(&mut rng, 200) });
    Script {
        outputs: outputs.collect(),
        flaky_raises: if kind == 5 { rng.range(0, 3) as u32 } else { 0 },
        fatal: rng.chance(15),
        steps,
    }
}

/// A method waits for nothing but tasks of its own, which take nothing: what it waited for otherwise might
/// wait for the actor. One that runs beside others only computes. The same holds for a task inside of a
/// group, whose resources others may wait for.
fn actor_script(rng: &mut Rng, kind: u32) -> Script {
    let mut steps = vec![Step::Work { us: work_us(rng, kind) }];
    if !matches!(kind, CONSTRUCTOR | BESIDE) && rng.chance(300) {
        let (dependencies, nested) = (Vec::new(), Vec::new());
        steps.extend([Step::Submit { class: 2, dependencies, nested }, Step::Wait]);
    }
    let stored = if matches!(kind, CONSTRUCTOR | BESIDE) { None } else { stored(rng) };
    let outputs = vec![OutputPlan { stored, nested: Vec::new() }];
    Script { steps, outputs, flaky_raises: 0, fatal: rng.chance(15) }
}

impl Script {
    /// The script of an attempt that does not do quite what the first one did, as where it goes through a
    /// hash map.
    pub fn diverge(&mut self, task: TaskId, attempt: u32) {
        let mut rng = Rng::new(mix(task.mixed(), u64::from(attempt) << 32));
        for at in (2..self.steps.len()).rev() {
            self.steps.swap(at, 1 + rng.index(at));
        }
    }
}

fn step(rng: &mut Rng, kind: u32) -> Step {
    match rng.range(0, 10) {
        0..5 => submit(rng),
        5 => Step::Put { stored: stored(rng), nested: choices(rng, 300) },
        6..9 => Step::Wait,
        _ if rng.chance(500) => Step::Graph { seed: rng.next() },
        _ => Step::Work { us: work_us(rng, kind) },
    }
}

/// A call with a random class and arguments.
pub fn submit(rng: &mut Rng) -> Step {
    let class = rng.range(0, u64::from(CLASS_COUNT)) as u32;
    Step::Submit { class, dependencies: choices(rng, 400), nested: choices(rng, 300) }
}

/// Bytes of a value that goes to the store, if it does.
pub fn stored(rng: &mut Rng) -> Option<u64> {
    rng.chance(350).then(|| rng.range(5_000, 40_000))
}

/// Up to three choices among references.
pub fn choices(rng: &mut Rng, permille: u64) -> Vec<u64> {
    if !rng.chance(permille) {
        return Vec::new();
    }
    let count = rng.range(1, 4);
    (0..count).map(|_| rng.next()).collect()
}

fn work_us(rng: &mut Rng, kind: u32) -> u64 {
    match rng.range(0, 20) {
        0 if kind == TIMED => 200_000,
        // Long enough that nobody should wait for its end beside a node that is free.
        0 if kind == LONG => 5_000_000,
        0 => 30_000,
        1..4 => 3_000,
        _ => 50,
    }
}

/// The value that a task puts; `salt` is not 0 for attempts that put others than the first one.
#[must_use]
pub fn put_value(task: TaskId, number: u32, salt: u32) -> u64 {
    mix(mix(task.mixed(), u64::from(number)), u64::from(salt))
}

/// Hash that distinguishes a call from other calls of its task, from function and arguments.
#[must_use]
pub fn call_content(kind: u32, payload: &[u8], dependencies: &[RefId]) -> u128 {
    let mut hash = content_hash(payload, u64::from(kind));
    for dependency in dependencies {
        hash = content_hash(&dependency.object.to_bytes(), hash);
    }
    u128::from(hash)
}

/// A hash over bytes.
#[must_use]
pub fn content_hash(bytes: &[u8], seed: u64) -> u64 {
    bytes.iter().fold(mix(seed, bytes.len() as u64), |hash, byte| mix(hash, u64::from(*byte)))
}

/// The value that an output must have, given those of the arguments.
#[must_use]
pub fn output_value(task: TaskId, index: u32, arguments: &[u64]) -> u64 {
    arguments.iter().fold(mix(task.mixed(), u64::from(index) + 1), |hash, argument| mix(hash, *argument))
}

impl Content {
    /// As bytes of an inline value.
    #[must_use]
    pub fn encode(&self) -> SmallBytes {
        let mut out = self.hash.to_le_bytes().to_vec();
        encode_refs(&mut out, &self.nested);
        out.into()
    }

    /// From bytes; `None` if they are not what [`Content::encode`] made.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (hash, rest) = bytes.split_first_chunk::<8>()?;
        Some(Self { hash: u64::from_le_bytes(*hash), nested: decode_refs(rest)? })
    }
}

impl Payload {
    /// As bytes.
    #[must_use]
    pub fn encode(&self) -> Box<[u8]> {
        let mut out = vec![self.depth];
        encode_refs(&mut out, &self.nested);
        out.into()
    }

    /// From bytes; `None` if they are not what [`Payload::encode`] made.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (depth, rest) = bytes.split_first()?;
        Some(Self { depth: *depth, nested: decode_refs(rest)? })
    }
}

fn encode_refs(out: &mut Vec<u8>, refs: &[RefId]) {
    for reference in refs {
        out.extend_from_slice(&reference.object.to_bytes());
        out.extend_from_slice(&reference.owner.0.to_le_bytes());
    }
}

fn decode_refs(bytes: &[u8]) -> Option<Vec<RefId>> {
    let chunks = bytes.chunks(ObjectId::LEN + 8);
    chunks
        .map(|chunk| {
            let (object, owner) = chunk.split_at_checked(ObjectId::LEN)?;
            let object = ObjectId::from_bytes(object.try_into().ok()?);
            Some(RefId { object, owner: NodeId(u64::from_le_bytes(owner.try_into().ok()?)) })
        })
        .collect()
}
