//! The parts of a submitted task: task class, arguments, dependencies, placement hint.
//!
//! Everything that calls of one function with the same options share is a [`TaskClass`], sent to the node
//! once and named by a number afterwards, so that a queued call costs little more than its id and its
//! arguments.

use crate::{Failure, FunctionId, GroupSpec, JobId, NodeId, ObjectId, Resources, SmallBytes, TaskId};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::sync::Arc;

/// Properties shared by all calls of one function with the same options.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TaskClass {
    /// The job that submits.
    pub job: JobId,
    /// The remote function.
    pub function: FunctionId,
    /// Hash of its argument and result types, compared before the body runs.
    pub signature: u64,
    /// Its path, for messages to users.
    pub function_name: String,
    /// The name given by options; the function's path if none was given.
    pub name: String,
    /// `file:line` of the call, shown in failures.
    pub call_site: String,
    /// Resources that must be free on a node to run it.
    pub resources: Resources,
    /// Higher runs first.
    pub priority: i32,
    /// Number of objects that a call returns.
    pub returns: u32,
    /// Retries after a crash or a listed error; negative means without end.
    pub max_retries: i32,
    /// The error values of the function that are retried.
    pub retry_on: RetryOn,
    /// Time one attempt may run, in milliseconds; 0 means no bound.
    pub timeout_ms: u64,
    /// Calls one worker process serves before it is replaced; 0 means no bound.
    pub max_calls: u32,
    /// Whether another run has no effect except the same values, so that values may be dropped and recomputed
    /// to save memory.
    pub pure: bool,
    /// The nodes on which it should run.
    pub placement: Placement,
    /// Whether its calls are tasks of their own, or concern an actor.
    pub role: Role,
    /// For methods: how calls stand in line.
    pub calls: CallRules,
    /// For constructors and placement groups: whether the actor or group lives on without handles and without
    /// its driver.
    pub detached: bool,
    /// For constructors: whether the actor shares its process with others of its job.
    pub shared_process: bool,
}

/// Rules by which the calls of a class stand in line before their actor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CallRules {
    /// Number of their group: each group of an actor has lines of its own.
    pub group: u16,
    /// Whether the actor runs several calls at the same time: each call that was sent may have started.
    pub concurrent: bool,
    /// Number of calls of the group that the actor runs at the same time; 0 if that is unknown. So many more
    /// may be sent to it than to an actor that runs one at a time: each may wait for one of the next.
    pub limit: u32,
    /// Whether a call overtakes earlier ones of its caller that wait for arguments.
    pub out_of_order: bool,
    /// Calls of one caller that may be unfinished at the same time; 0 means no bound.
    pub max_pending: u32,
}

impl CallRules {
    /// Whether a call that comes back unstarted holds up those that were sent after it.
    #[must_use]
    pub fn keep_order(&self) -> bool {
        !self.concurrent && !self.out_of_order
    }
}

/// The part that the calls of a class play.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Role {
    /// A task: any worker of the job runs it.
    #[default]
    Task,
    /// The constructor of an actor. The worker that runs it belongs to the actor until the actor ends;
    /// `max_retries` is the number of restarts.
    Constructor,
    /// A method of an actor. The first dependency, with the parameter [`Dependency::ACTOR`], is the actor.
    Method,
}

impl TaskClass {
    /// The class of calls without options: they need no resources, return one value, and run once.
    #[must_use]
    pub fn new(job: JobId, function: FunctionId, name: &str) -> Self {
        Self {
            job,
            function,
            signature: 0,
            function_name: name.to_owned(),
            name: name.to_owned(),
            call_site: String::new(),
            resources: Resources::default(),
            priority: 0,
            returns: 1,
            max_retries: 0,
            retry_on: RetryOn::Nothing,
            timeout_ms: 0,
            max_calls: 0,
            pure: false,
            placement: Placement::Default,
            role: Role::Task,
            calls: CallRules::default(),
            detached: false,
            shared_process: false,
        }
    }
}

/// The error values (not crashes) that make a task run again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RetryOn {
    /// An error value is a result like any other.
    #[default]
    Nothing,
    /// Every error value.
    Everything,
    /// Error types by name, as `std::any::type_name` has them.
    Types(Vec<String>),
}

impl RetryOn {
    /// Whether an error of this type is retried.
    #[must_use]
    pub fn includes(&self, type_name: &str) -> bool {
        match self {
            Self::Nothing => false,
            Self::Everything => true,
            Self::Types(names) => names.iter().any(|n| n == type_name),
        }
    }
}

/// A preference or a demand about the node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Placement {
    /// Near the arguments, the local node first until it is half full.
    #[default]
    Default,
    /// The least loaded node.
    Spread,
    /// One node; `soft` allows others when it is gone.
    Node {
        /// Id of the node.
        node: NodeId,
        /// Whether another node will do.
        soft: bool,
    },
    /// Nodes whose labels match every term; lists are tried in order.
    Labels(Vec<LabelSelector>),
    /// The calls make placement groups: they reserve bundles instead of running.
    Reserve(GroupSpec),
    /// A bundle of a placement group: the lease takes its resources on a node, and no worker.
    Bundle {
        /// The task that made the group.
        group: TaskId,
        /// Index of the bundle.
        index: u32,
    },
    /// Inside a placement group. The first dependency, with the parameter [`Dependency::GROUP`], is the
    /// group.
    Group {
        /// The task that made the group.
        group: TaskId,
        /// The bundle; any if none is named.
        bundle: Option<u32>,
    },
}

/// Terms that must all hold for a node's labels.
pub type LabelSelector = Vec<LabelTerm>;

/// One condition on a node's labels.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LabelTerm {
    /// The label exists and has one of the values.
    In(String, Vec<String>),
    /// The label is absent or has none of the values.
    NotIn(String, Vec<String>),
    /// The label exists.
    Exists(String),
    /// The label is absent.
    DoesNotExist(String),
}

/// An object and the node that answers for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RefId {
    /// The object.
    pub object: ObjectId,
    /// Its owner.
    pub owner: NodeId,
}

impl RefId {
    /// Bytes of a reference in records and values.
    pub const LEN: usize = ObjectId::LEN + size_of::<NodeId>();

    /// The reference as bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let mut out = [0; Self::LEN];
        out[..ObjectId::LEN].copy_from_slice(&self.object.to_bytes());
        out[ObjectId::LEN..].copy_from_slice(&self.owner.0.to_le_bytes());
        out
    }

    /// A reference from its bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        let mut object = [0; ObjectId::LEN];
        let mut owner = [0; size_of::<NodeId>()];
        object.copy_from_slice(&bytes[..ObjectId::LEN]);
        owner.copy_from_slice(&bytes[ObjectId::LEN..]);
        Self { object: ObjectId::from_bytes(object), owner: NodeId(u64::from_le_bytes(owner)) }
    }
}

/// As bytes, which are taken as a whole: a value may hold thousands.
impl Serialize for RefId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.to_bytes())
    }
}

impl<'de> Deserialize<'de> for RefId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(RefIdBytes)
    }
}

struct RefIdBytes;

impl Visitor<'_> for RefIdBytes {
    type Value = RefId;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {} bytes of a reference", RefId::LEN)
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<RefId, E> {
        bytes.try_into().map(RefId::from_bytes).map_err(|_wrong_len| E::invalid_length(bytes.len(), &self))
    }
}

/// An object that a task needs before it can run: the value of one parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dependency {
    /// The object.
    pub reference: RefId,
    /// Index of the parameter, or [`Dependency::WHOLE`] if the object holds all arguments, which were too
    /// large to be sent.
    pub parameter: u16,
}

impl Dependency {
    /// The dependency holds the encoded arguments themselves.
    pub const WHOLE: u16 = u16::MAX;
    /// The dependency is the actor whose method is called.
    pub const ACTOR: u16 = u16::MAX - 1;
    /// The dependency is the placement group in which the task runs.
    pub const GROUP: u16 = u16::MAX - 2;
    /// In a graph: the reference stands inside another argument.
    pub const NESTED: u16 = u16::MAX - 3;
    /// The dependency is the snapshot from which an actor that is started again continues.
    pub const SNAPSHOT: u16 = u16::MAX - 4;
}

/// The arguments of one call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskArgs {
    /// Arguments given by value, encoded one after the other.
    pub payload: SmallBytes,
    /// Arguments given by reference.
    pub dependencies: Box<[Dependency]>,
    /// References that stand inside the payload and must live until the task ends.
    pub nested: Box<[RefId]>,
    /// The name of this call, for people; the others of its class have that of the class.
    pub name: Option<Arc<str>>,
}

/// The end of an attempt. `V` is an output, as the holder of this value sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<V> {
    /// With outputs.
    Returned(Outputs<V>),
    /// With a failure, and the type name of the user's error (else empty).
    Failed {
        /// Type name of a user's error value.
        error_type: String,
        /// The failure of the attempt.
        failure: Arc<Failure>,
    },
}

/// One output of a finished task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output<V> {
    /// The value, or where it is.
    pub value: V,
    /// References inside the value.
    pub nested: Vec<RefId>,
}

/// The outputs of a task; nearly always one.
pub type Outputs<V> = smallvec::SmallVec<[Output<V>; 1]>;

impl<V> Outcome<V> {
    /// The same outcome with each value converted.
    #[must_use]
    pub fn map<W>(self, convert: impl Fn(V) -> W) -> Outcome<W> {
        let output = |output: Output<V>| Output { value: convert(output.value), nested: output.nested };
        match self {
            Self::Returned(outputs) => Outcome::Returned(outputs.into_iter().map(output).collect()),
            Self::Failed { error_type, failure } => Outcome::Failed { error_type, failure },
        }
    }
}
