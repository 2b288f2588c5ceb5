//! Records in the rings between a client (driver or worker) and its node.
//!
//! This is the hot path: one record per submitted task, per started task, per finished task. Records are plain
//! little-endian bytes: a kind, fixed fields, then variable parts with their lengths in front. Decoding borrows
//! from the ring and checks every length; whatever does not fit is a [`BadRecord`], and the peer that sent it is
//! cut off. Neither side ever trusts the other's bytes.
//!
//! Both sides are always built from one source (a worker is the driver's executable; a node refuses another
//! protocol version at the handshake), so records carry no version.
//!
//! A *token* names a reference inside its client: slot number in the low half, generation in the high half, so
//! that an answer to a dropped reference is told from one to its successor.

use tharsis_types::task::Dependency;
use tharsis_types::{NodeId, ObjectId, RefId, TaskId};

/// Names a reference inside its client.
pub type Token = u64;

/// Bytes of a packed [`RefId`].
pub const REF_BYTES: usize = ObjectId::LEN + 8;
/// Bytes of a packed [`Dependency`].
pub const DEPENDENCY_BYTES: usize = REF_BYTES + 2;
/// Bytes of a packed [`Token`].
pub const TOKEN_BYTES: usize = 8;
const NODE_BYTES: usize = 8;

/// A record that is not what its kind says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("record of {len} bytes, kind {kind}: {problem}")]
pub struct BadRecord {
    /// The first byte.
    pub kind: u8,
    /// Length of the record.
    pub len: usize,
    /// What is wrong.
    pub problem: &'static str,
}

/// A range of the node's arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Extent {
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
}

/// A value on its way between node and client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueView<'a> {
    /// The encoded value itself.
    Inline(&'a [u8]),
    /// In the local arena. Towards a client: pinned for it until it releases the reference or ends the task.
    Local(Extent),
    /// Exists, but is not mapped for this client: ask with [`FromClient::Fetch`].
    Ready {
        /// Bytes of the value.
        len: u64,
    },
    /// There is no value: an encoded `Failure`.
    Failed(&'a [u8]),
}

/// A packed list of references.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefsView<'a>(&'a [u8]);

/// A packed list of dependencies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DependenciesView<'a>(&'a [u8]);

/// A packed list of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokensView<'a>(&'a [u8]);

/// A packed list of nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodesView<'a>(&'a [u8]);

/// A packed list of run slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotsView<'a>(&'a [u8]);

/// The outputs of a finished task: a sequence of (value, nested references).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputsView<'a> {
    count: u32,
    bytes: &'a [u8],
}

/// The values of a task's by-reference parameters: a sequence of (parameter, reference, value).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgumentsView<'a> {
    count: u32,
    bytes: &'a [u8],
}

/// How a task ended in its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutcomeView<'a> {
    /// Its outputs.
    Returned(OutputsView<'a>),
    /// It failed: an encoded `Failure`, and the type name of a user's error (else empty) for the retry decision.
    Failed {
        /// Type name of the user's error.
        error_type: &'a str,
        /// Encoded `Failure`.
        failure: &'a [u8],
    },
}

/// From a client to its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FromClient<'a> {
    /// The client's current task waits for values; `returned` are tasks sent ahead that it will not start.
    Blocked {
        /// Slots of tasks handed back.
        returned: SlotsView<'a>,
    },
    /// Cancel the task behind an output.
    Cancel {
        /// Any output of the task.
        reference: RefId,
        /// Kill the worker if the task does not stop.
        force: bool,
        /// Cancel its children as well.
        recursive: bool,
    },
    /// Names a task class for later submissions: an encoded `TaskClass`.
    DefineClass {
        /// Number chosen by the client, counting up from 0.
        class: u32,
        /// Encoded `TaskClass`.
        definition: &'a [u8],
    },
    /// A started task ended.
    Done {
        /// Slot given by [`ToClient::Run`].
        slot: u32,
        /// Time in the function, in nanoseconds, saturating.
        run_ns: u32,
        /// What came out.
        outcome: OutcomeView<'a>,
    },
    /// Make a value readable here and send it.
    Fetch {
        /// The reference.
        token: Token,
        /// What it refers to.
        reference: RefId,
    },
    /// Hands back tasks that were sent ahead and not started.
    GiveBack {
        /// Their slots.
        returned: SlotsView<'a>,
    },
    /// The client now has a reference that it found inside a value. It is told of the value once it sends Fetch.
    Hold {
        /// The reference.
        token: Token,
        /// What it refers to.
        reference: RefId,
    },
    /// Asks where a value lies; answered by [`ToClient::Locations`].
    Locate {
        /// Echoed in the answer.
        request: u32,
        /// The value.
        reference: RefId,
    },
    /// A value was written (or is sent along) and is complete.
    Put {
        /// The reference to it.
        token: Token,
        /// Its id.
        object: ObjectId,
        /// `Inline` or `Local`.
        value: ValueView<'a>,
        /// References inside it.
        nested: RefsView<'a>,
    },
    /// Asks for a writable region of the arena.
    RegionWanted {
        /// Echoed in the answer.
        request: u32,
        /// Bytes wanted.
        bytes: u64,
    },
    /// A region will not be written any more; what was not sealed in it is free again.
    RegionRetired {
        /// The region as it was granted.
        region: Extent,
    },
    /// A reference is gone.
    Release {
        /// The reference.
        token: Token,
        /// What it referred to.
        reference: RefId,
    },
    /// Calls a remote function.
    Submit {
        /// Class defined before.
        class: u32,
        /// Id of the task.
        task: TaskId,
        /// One per output.
        tokens: TokensView<'a>,
        /// Arguments by value.
        payload: &'a [u8],
        /// Arguments by reference.
        dependencies: DependenciesView<'a>,
        /// References inside `payload`.
        nested: RefsView<'a>,
    },
    /// The client's current task has its values and wants its slot back; answered by [`ToClient::Resumed`].
    Unblock,
    /// Nothing looks at a mapped value any more, as [`ToClient::Unmap`] asked; the reference stays.
    Unmapped {
        /// The reference.
        token: Token,
        /// What it refers to.
        reference: RefId,
    },
}

/// From a node to one of its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToClient<'a> {
    /// Stop a task at its next check, or now.
    CancelRun {
        /// Its slot.
        slot: u32,
    },
    /// A class used by later [`ToClient::Run`] records: an encoded `TaskClass`.
    DefineClass {
        /// Number chosen by the node.
        class: u32,
        /// Encoded `TaskClass`.
        definition: &'a [u8],
    },
    /// Where a value lies, as far as the node knows.
    Locations {
        /// As asked.
        request: u32,
        /// The nodes.
        nodes: NodesView<'a>,
    },
    /// Output of a worker of the client's job.
    Log {
        /// Its process.
        pid: u32,
        /// Whether it was written to stderr.
        stderr: bool,
        /// Complete lines.
        text: &'a [u8],
    },
    /// A granted region, or an empty one with an encoded `Failure`.
    Region {
        /// As asked.
        request: u32,
        /// The region; length 0 if refused.
        region: Extent,
        /// Encoded `Failure` if refused.
        failure: &'a [u8],
    },
    /// Let go of a mapped value as soon as nothing looks at it: the node needs the room.
    Unmap {
        /// The reference.
        token: Token,
    },
    /// The blocked task has its slot again.
    Resumed,
    /// Start a task.
    Run {
        /// Names the start until its end is reported.
        slot: u32,
        /// Defined before.
        class: u32,
        /// Which attempt.
        attempt: u32,
        /// Id of the task.
        task: TaskId,
        /// Arguments by value.
        payload: &'a [u8],
        /// Arguments by reference, all readable.
        arguments: ArgumentsView<'a>,
    },
    /// The node goes away, or this client must.
    Shutdown {
        /// Why, for people.
        reason: &'a str,
    },
    /// Hand back tasks that are not started yet.
    StealBack {
        /// How many are wanted at most.
        count: u32,
    },
    /// The state of a reference.
    Value {
        /// The reference.
        token: Token,
        /// Its value.
        value: ValueView<'a>,
    },
}

/// Builds the packed parts of records.
pub mod pack {
    use super::*;

    /// Appends a reference.
    pub fn reference(out: &mut Vec<u8>, reference: &RefId) {
        out.extend_from_slice(&reference.object.to_bytes());
        out.extend_from_slice(&reference.owner.0.to_le_bytes());
    }

    /// Packs nodes.
    #[must_use]
    pub fn nodes<'a>(list: impl IntoIterator<Item = &'a NodeId>) -> Vec<u8> {
        list.into_iter().flat_map(|node| node.0.to_le_bytes()).collect()
    }

    /// Packs references.
    #[must_use]
    pub fn references<'a>(list: impl IntoIterator<Item = &'a RefId>) -> Vec<u8> {
        let mut out = Vec::new();
        list.into_iter().for_each(|r| reference(&mut out, r));
        out
    }

    /// Packs dependencies.
    #[must_use]
    pub fn dependencies<'a>(list: impl IntoIterator<Item = &'a Dependency>) -> Vec<u8> {
        let mut out = Vec::new();
        for dependency in list {
            reference(&mut out, &dependency.reference);
            out.extend_from_slice(&dependency.parameter.to_le_bytes());
        }
        out
    }

    /// Appends one output of a finished task.
    pub fn output(out: &mut Vec<u8>, value: &ValueView<'_>, nested: &[RefId]) {
        put_value(out, value);
        put_len(out, nested.len() * REF_BYTES);
        nested.iter().for_each(|r| reference(out, r));
    }

    /// Appends one argument of a task to start.
    pub fn argument(out: &mut Vec<u8>, parameter: u16, from: &RefId, value: &ValueView<'_>) {
        out.extend_from_slice(&parameter.to_le_bytes());
        reference(out, from);
        put_value(out, value);
    }
}

impl<'a> RefsView<'a> {
    /// A view of packed references.
    ///
    /// # Errors
    /// [`BadRecord`] if the length is not a multiple of one reference.
    pub fn new(bytes: &'a [u8]) -> Result<Self, BadRecord> {
        packed(bytes, REF_BYTES).map(Self)
    }

    /// The references.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = RefId> + use<'a> {
        self.0.chunks_exact(REF_BYTES).map(read_ref)
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len() / REF_BYTES
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> DependenciesView<'a> {
    /// A view of packed dependencies.
    ///
    /// # Errors
    /// [`BadRecord`] if the length is not a multiple of one dependency.
    pub fn new(bytes: &'a [u8]) -> Result<Self, BadRecord> {
        packed(bytes, DEPENDENCY_BYTES).map(Self)
    }

    /// The dependencies.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Dependency> + use<'a> {
        self.0.chunks_exact(DEPENDENCY_BYTES).map(|bytes| Dependency {
            reference: read_ref(&bytes[..REF_BYTES]),
            parameter: u16::from_le_bytes([bytes[REF_BYTES], bytes[REF_BYTES + 1]]),
        })
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len() / DEPENDENCY_BYTES
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> NodesView<'a> {
    /// A view of packed nodes.
    ///
    /// # Errors
    /// [`BadRecord`] if the length is not a multiple of one id.
    pub fn new(bytes: &'a [u8]) -> Result<Self, BadRecord> {
        packed(bytes, NODE_BYTES).map(Self)
    }

    /// The nodes.
    pub fn iter(&self) -> impl Iterator<Item = NodeId> + use<'a> {
        self.0.as_chunks::<NODE_BYTES>().0.iter().map(|bytes| NodeId(u64::from_le_bytes(*bytes)))
    }
}

impl<'a> TokensView<'a> {
    /// A view of packed little-endian tokens.
    ///
    /// # Errors
    /// [`BadRecord`] if the length is not a multiple of one token.
    pub fn new(bytes: &'a [u8]) -> Result<Self, BadRecord> {
        packed(bytes, TOKEN_BYTES).map(Self)
    }

    /// The tokens.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Token> + use<'a> {
        self.0
            .chunks_exact(TOKEN_BYTES)
            .map(|b| u64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]))
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len() / TOKEN_BYTES
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> SlotsView<'a> {
    /// A view of packed little-endian slots.
    ///
    /// # Errors
    /// [`BadRecord`] if the length is not a multiple of one slot.
    pub fn new(bytes: &'a [u8]) -> Result<Self, BadRecord> {
        packed(bytes, 4).map(Self)
    }

    /// The slots.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u32> + use<'a> {
        self.0.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
    }
}

impl<'a> OutputsView<'a> {
    /// A view of `count` outputs packed by [`pack::output`].
    #[must_use]
    pub fn new(count: u32, bytes: &'a [u8]) -> Self {
        Self { count, bytes }
    }

    /// How many.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The outputs; ends early with an error at the first one that is malformed.
    pub fn iter(&self) -> impl Iterator<Item = Result<(ValueView<'a>, RefsView<'a>), BadRecord>> + use<'a> {
        let mut reader = Reader::new(self.bytes);
        let mut left = self.count;
        std::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            let item = reader.value().and_then(|value| Ok((value, RefsView::new(reader.bytes()?)?)));
            if item.is_err() {
                left = 0;
            }
            Some(item)
        })
    }
}

impl<'a> ArgumentsView<'a> {
    /// A view of `count` arguments packed by [`pack::argument`].
    #[must_use]
    pub fn new(count: u32, bytes: &'a [u8]) -> Self {
        Self { count, bytes }
    }

    /// How many.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The arguments; ends early with an error at the first one that is malformed.
    pub fn iter(&self) -> impl Iterator<Item = Result<(u16, RefId, ValueView<'a>), BadRecord>> + use<'a> {
        let mut reader = Reader::new(self.bytes);
        let mut left = self.count;
        std::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            let item = reader.argument();
            if item.is_err() {
                left = 0;
            }
            Some(item)
        })
    }
}

impl<'a> FromClient<'a> {
    const BLOCKED: u8 = 1;
    const CANCEL: u8 = 2;
    const DEFINE_CLASS: u8 = 3;
    const DONE: u8 = 4;
    const DONE_FAILED: u8 = 5;
    const FETCH: u8 = 6;
    const GIVE_BACK: u8 = 7;
    const HOLD: u8 = 8;
    const PUT: u8 = 9;
    const REGION_WANTED: u8 = 10;
    const REGION_RETIRED: u8 = 11;
    const RELEASE: u8 = 12;
    const SUBMIT: u8 = 13;
    const UNBLOCK: u8 = 14;
    const LOCATE: u8 = 15;
    const UNMAPPED: u8 = 16;

    /// Appends the record to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Blocked { returned } => {
                out.push(Self::BLOCKED);
                put_bytes(out, returned.0);
            }
            Self::Cancel { reference, force, recursive } => {
                out.push(Self::CANCEL);
                pack::reference(out, reference);
                out.push(u8::from(*force) | u8::from(*recursive) << 1);
            }
            Self::DefineClass { class, definition } => {
                out.push(Self::DEFINE_CLASS);
                put_u32(out, *class);
                put_bytes(out, definition);
            }
            Self::Done { slot, run_ns, outcome } => put_done(out, *slot, *run_ns, outcome),
            Self::Fetch { token, reference } => put_token_ref(out, Self::FETCH, *token, reference),
            Self::GiveBack { returned } => {
                out.push(Self::GIVE_BACK);
                put_bytes(out, returned.0);
            }
            Self::Hold { token, reference } => put_token_ref(out, Self::HOLD, *token, reference),
            Self::Locate { request, reference } => {
                out.push(Self::LOCATE);
                put_u32(out, *request);
                pack::reference(out, reference);
            }
            Self::Put { token, object, value, nested } => {
                out.push(Self::PUT);
                put_u64(out, *token);
                out.extend_from_slice(&object.to_bytes());
                put_value(out, value);
                put_bytes(out, nested.0);
            }
            Self::RegionWanted { request, bytes } => {
                out.push(Self::REGION_WANTED);
                put_u32(out, *request);
                put_u64(out, *bytes);
            }
            Self::RegionRetired { region } => {
                out.push(Self::REGION_RETIRED);
                put_extent(out, region);
            }
            Self::Release { token, reference } => put_token_ref(out, Self::RELEASE, *token, reference),
            Self::Submit { class, task, tokens, payload, dependencies, nested } => {
                out.push(Self::SUBMIT);
                put_u32(out, *class);
                out.extend_from_slice(&task.to_bytes());
                put_bytes(out, tokens.0);
                put_bytes(out, payload);
                put_bytes(out, dependencies.0);
                put_bytes(out, nested.0);
            }
            Self::Unblock => out.push(Self::UNBLOCK),
            Self::Unmapped { token, reference } => put_token_ref(out, Self::UNMAPPED, *token, reference),
        }
    }

    /// Reads a record.
    ///
    /// # Errors
    /// [`BadRecord`] for an unknown kind or lengths that do not fit.
    pub fn decode(record: &'a [u8]) -> Result<Self, BadRecord> {
        let mut r = Reader::new(record);
        let kind = r.u8()?;
        let decoded = match kind {
            Self::BLOCKED => Self::Blocked { returned: SlotsView::new(r.bytes()?)? },
            Self::CANCEL => {
                let reference = r.reference()?;
                let flags = r.u8()?;
                Self::Cancel { reference, force: flags & 1 != 0, recursive: flags & 2 != 0 }
            }
            Self::DEFINE_CLASS => Self::DefineClass { class: r.u32()?, definition: r.bytes()? },
            Self::DONE => Self::Done { slot: r.u32()?, run_ns: r.u32()?, outcome: r.returned()? },
            Self::DONE_FAILED => Self::Done { slot: r.u32()?, run_ns: r.u32()?, outcome: r.failed()? },
            Self::FETCH => Self::Fetch { token: r.u64()?, reference: r.reference()? },
            Self::GIVE_BACK => Self::GiveBack { returned: SlotsView::new(r.bytes()?)? },
            Self::HOLD => Self::Hold { token: r.u64()?, reference: r.reference()? },
            Self::LOCATE => Self::Locate { request: r.u32()?, reference: r.reference()? },
            Self::PUT => Self::Put {
                token: r.u64()?,
                object: r.object()?,
                value: r.value()?,
                nested: RefsView::new(r.bytes()?)?,
            },
            Self::REGION_WANTED => Self::RegionWanted { request: r.u32()?, bytes: r.u64()? },
            Self::REGION_RETIRED => Self::RegionRetired { region: r.extent()? },
            Self::RELEASE => Self::Release { token: r.u64()?, reference: r.reference()? },
            Self::SUBMIT => Self::Submit {
                class: r.u32()?,
                task: r.task()?,
                tokens: TokensView::new(r.bytes()?)?,
                payload: r.bytes()?,
                dependencies: DependenciesView::new(r.bytes()?)?,
                nested: RefsView::new(r.bytes()?)?,
            },
            Self::UNBLOCK => Self::Unblock,
            Self::UNMAPPED => Self::Unmapped { token: r.u64()?, reference: r.reference()? },
            _ => return Err(r.bad("unknown kind")),
        };
        r.finish(decoded)
    }
}

impl<'a> ToClient<'a> {
    const CANCEL_RUN: u8 = 64;
    const DEFINE_CLASS: u8 = 65;
    const LOG: u8 = 66;
    const REGION: u8 = 67;
    const RESUMED: u8 = 68;
    const RUN: u8 = 69;
    const SHUTDOWN: u8 = 70;
    const STEAL_BACK: u8 = 71;
    const VALUE: u8 = 72;
    const LOCATIONS: u8 = 73;
    const UNMAP: u8 = 74;

    /// Appends the record to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::CancelRun { slot } => {
                out.push(Self::CANCEL_RUN);
                put_u32(out, *slot);
            }
            Self::DefineClass { class, definition } => {
                out.push(Self::DEFINE_CLASS);
                put_u32(out, *class);
                put_bytes(out, definition);
            }
            Self::Locations { request, nodes } => {
                out.push(Self::LOCATIONS);
                put_u32(out, *request);
                put_bytes(out, nodes.0);
            }
            Self::Log { pid, stderr, text } => {
                out.push(Self::LOG);
                put_u32(out, *pid);
                out.push(u8::from(*stderr));
                put_bytes(out, text);
            }
            Self::Region { request, region, failure } => {
                out.push(Self::REGION);
                put_u32(out, *request);
                put_extent(out, region);
                put_bytes(out, failure);
            }
            Self::Resumed => out.push(Self::RESUMED),
            Self::Unmap { token } => {
                out.push(Self::UNMAP);
                put_u64(out, *token);
            }
            Self::Run { slot, class, attempt, task, payload, arguments } => {
                out.push(Self::RUN);
                put_u32(out, *slot);
                put_u32(out, *class);
                put_u32(out, *attempt);
                out.extend_from_slice(&task.to_bytes());
                put_bytes(out, payload);
                put_u32(out, arguments.count);
                put_bytes(out, arguments.bytes);
            }
            Self::Shutdown { reason } => {
                out.push(Self::SHUTDOWN);
                put_bytes(out, reason.as_bytes());
            }
            Self::StealBack { count } => {
                out.push(Self::STEAL_BACK);
                put_u32(out, *count);
            }
            Self::Value { token, value } => {
                out.push(Self::VALUE);
                put_u64(out, *token);
                put_value(out, value);
            }
        }
    }

    /// Reads a record.
    ///
    /// # Errors
    /// [`BadRecord`] for an unknown kind or lengths that do not fit.
    pub fn decode(record: &'a [u8]) -> Result<Self, BadRecord> {
        let mut r = Reader::new(record);
        let kind = r.u8()?;
        let decoded = match kind {
            Self::CANCEL_RUN => Self::CancelRun { slot: r.u32()? },
            Self::DEFINE_CLASS => Self::DefineClass { class: r.u32()?, definition: r.bytes()? },
            Self::LOCATIONS => Self::Locations { request: r.u32()?, nodes: NodesView::new(r.bytes()?)? },
            Self::LOG => Self::Log { pid: r.u32()?, stderr: r.u8()? != 0, text: r.bytes()? },
            Self::REGION => Self::Region { request: r.u32()?, region: r.extent()?, failure: r.bytes()? },
            Self::RESUMED => Self::Resumed,
            Self::UNMAP => Self::Unmap { token: r.u64()? },
            Self::RUN => Self::Run {
                slot: r.u32()?,
                class: r.u32()?,
                attempt: r.u32()?,
                task: r.task()?,
                payload: r.bytes()?,
                arguments: ArgumentsView::new(r.u32()?, r.bytes()?),
            },
            Self::SHUTDOWN => Self::Shutdown { reason: r.text()? },
            Self::STEAL_BACK => Self::StealBack { count: r.u32()? },
            Self::VALUE => Self::Value { token: r.u64()?, value: r.value()? },
            _ => return Err(r.bad("unknown kind")),
        };
        r.finish(decoded)
    }
}

const VALUE_INLINE: u8 = 0;
const VALUE_LOCAL: u8 = 1;
const VALUE_READY: u8 = 2;
const VALUE_FAILED: u8 = 3;

fn put_u32(out: &mut Vec<u8>, n: u32) {
    out.extend_from_slice(&n.to_le_bytes());
}

fn put_u64(out: &mut Vec<u8>, n: u64) {
    out.extend_from_slice(&n.to_le_bytes());
}

/// Lengths fit 32 bits: the largest record is far below 4 GiB, and the ring refuses larger ones.
fn put_len(out: &mut Vec<u8>, len: usize) {
    put_u32(out, u32::try_from(len).unwrap_or(u32::MAX));
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_len(out, bytes.len());
    out.extend_from_slice(bytes);
}

fn put_extent(out: &mut Vec<u8>, extent: &Extent) {
    put_u64(out, extent.offset);
    put_u64(out, extent.len);
}

fn put_token_ref(out: &mut Vec<u8>, kind: u8, token: Token, reference: &RefId) {
    out.push(kind);
    put_u64(out, token);
    pack::reference(out, reference);
}

fn put_value(out: &mut Vec<u8>, value: &ValueView<'_>) {
    match value {
        ValueView::Inline(bytes) => {
            out.push(VALUE_INLINE);
            put_bytes(out, bytes);
        }
        ValueView::Local(extent) => {
            out.push(VALUE_LOCAL);
            put_extent(out, extent);
        }
        ValueView::Ready { len } => {
            out.push(VALUE_READY);
            put_u64(out, *len);
        }
        ValueView::Failed(failure) => {
            out.push(VALUE_FAILED);
            put_bytes(out, failure);
        }
    }
}

fn put_done(out: &mut Vec<u8>, slot: u32, run_ns: u32, outcome: &OutcomeView<'_>) {
    let kind = match outcome {
        OutcomeView::Returned(_) => FromClient::DONE,
        OutcomeView::Failed { .. } => FromClient::DONE_FAILED,
    };
    out.push(kind);
    put_u32(out, slot);
    put_u32(out, run_ns);
    match outcome {
        OutcomeView::Returned(outputs) => {
            put_u32(out, outputs.count);
            put_bytes(out, outputs.bytes);
        }
        OutcomeView::Failed { error_type, failure } => {
            put_bytes(out, error_type.as_bytes());
            put_bytes(out, failure);
        }
    }
}

fn packed(bytes: &[u8], each: usize) -> Result<&[u8], BadRecord> {
    if bytes.len().is_multiple_of(each) {
        Ok(bytes)
    } else {
        Err(BadRecord { kind: 0, len: bytes.len(), problem: "a packed list is cut" })
    }
}

/// Reads a packed reference from a chunk that `chunks_exact` or [`Reader::take`] has sized.
fn read_ref(bytes: &[u8]) -> RefId {
    let mut object = [0; ObjectId::LEN];
    let mut owner = [0; 8];
    object.copy_from_slice(&bytes[..ObjectId::LEN]);
    owner.copy_from_slice(&bytes[ObjectId::LEN..REF_BYTES]);
    RefId { object: ObjectId::from_bytes(object), owner: tharsis_types::NodeId(u64::from_le_bytes(owner)) }
}

struct Reader<'a> {
    record: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn new(record: &'a [u8]) -> Self {
        Self { record, at: 0 }
    }

    fn bad(&self, problem: &'static str) -> BadRecord {
        BadRecord { kind: self.record.first().copied().unwrap_or(0), len: self.record.len(), problem }
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], BadRecord> {
        let end = self.at.checked_add(len).ok_or_else(|| self.bad("a length overflows"))?;
        let bytes = self.record.get(self.at..end).ok_or_else(|| self.bad("the record is cut"))?;
        self.at = end;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], BadRecord> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    fn u8(&mut self) -> Result<u8, BadRecord> {
        self.array::<1>().map(|[b]| b)
    }

    fn u32(&mut self) -> Result<u32, BadRecord> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, BadRecord> {
        self.array().map(u64::from_le_bytes)
    }

    fn bytes(&mut self) -> Result<&'a [u8], BadRecord> {
        let len = self.u32()? as usize;
        self.take(len)
    }

    fn text(&mut self) -> Result<&'a str, BadRecord> {
        let bytes = self.bytes()?;
        std::str::from_utf8(bytes).map_err(|_| self.bad("text is not UTF-8"))
    }

    fn task(&mut self) -> Result<TaskId, BadRecord> {
        self.array().map(TaskId::from_bytes)
    }

    fn object(&mut self) -> Result<ObjectId, BadRecord> {
        self.array().map(ObjectId::from_bytes)
    }

    fn reference(&mut self) -> Result<RefId, BadRecord> {
        self.take(REF_BYTES).map(read_ref)
    }

    fn extent(&mut self) -> Result<Extent, BadRecord> {
        Ok(Extent { offset: self.u64()?, len: self.u64()? })
    }

    fn value(&mut self) -> Result<ValueView<'a>, BadRecord> {
        match self.u8()? {
            VALUE_INLINE => self.bytes().map(ValueView::Inline),
            VALUE_LOCAL => self.extent().map(ValueView::Local),
            VALUE_READY => self.u64().map(|len| ValueView::Ready { len }),
            VALUE_FAILED => self.bytes().map(ValueView::Failed),
            _ => Err(self.bad("unknown kind of value")),
        }
    }

    fn argument(&mut self) -> Result<(u16, RefId, ValueView<'a>), BadRecord> {
        Ok((self.array().map(u16::from_le_bytes)?, self.reference()?, self.value()?))
    }

    fn returned(&mut self) -> Result<OutcomeView<'a>, BadRecord> {
        Ok(OutcomeView::Returned(OutputsView { count: self.u32()?, bytes: self.bytes()? }))
    }

    fn failed(&mut self) -> Result<OutcomeView<'a>, BadRecord> {
        Ok(OutcomeView::Failed { error_type: self.text()?, failure: self.bytes()? })
    }

    fn finish<T>(&self, decoded: T) -> Result<T, BadRecord> {
        if self.at == self.record.len() { Ok(decoded) } else { Err(self.bad("bytes are left over")) }
    }
}

#[cfg(test)]
#[path = "records_tests.rs"]
mod tests;
