//! Records from a node to its drivers and workers.

use super::bytes::{Reader, put_bytes, put_extent, put_u32, put_u64, put_value};
use super::{ArgumentsView, BadRecord, NodesView, Token, ValueView};
use tharsis_types::{Extent, TaskId};

/// Calls that a driver may send before it has heard of more.
pub const CALLS_AT_FIRST: u64 = 1024;

/// From a node to one of its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToClient<'a> {
    /// Stop a task at its next check, or now.
    CancelRun {
        /// Its slot.
        slot: u32,
    },
    /// The owner of the actor keeps the snapshot that this worker has sent, or an encoded `Failure` says why
    /// it does not.
    CheckpointEnded {
        /// As asked.
        request: u32,
        /// Encoded `Failure` if refused, else empty.
        failure: &'a [u8],
    },
    /// A class used by later [`ToClient::Run`] records: an encoded `TaskClass`.
    DefineClass {
        /// Number chosen by the node.
        class: u32,
        /// Encoded `TaskClass`.
        definition: &'a [u8],
    },
    /// Calls that a driver may send, those that it has sent among them; beyond them its threads wait. Until
    /// the first of these records they are [`CALLS_AT_FIRST`].
    Grant {
        /// All of them together since it connected. Of a graph, each task is one.
        calls: u64,
    },
    /// Place of a value, as far as the node knows.
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
    /// Retire the regions that nothing is being written to: the node needs the room.
    RetireRegions,
    /// Start a task.
    Run {
        /// Names the start until its end is reported.
        slot: u32,
        /// Defined before.
        class: u32,
        /// The number of the attempt.
        attempt: u32,
        /// Id of the task.
        task: TaskId,
        /// Arguments by value.
        payload: &'a [u8],
        /// Arguments by reference, all readable.
        arguments: ArgumentsView<'a>,
        /// The name of this call; empty if it has that of its class.
        name: &'a str,
    },
    /// The node goes away, or this client must.
    Shutdown {
        /// Why, for people.
        reason: &'a str,
    },
    /// Hand back tasks that are not started yet.
    StealBack {
        /// Most tasks that are wanted.
        count: u32,
        /// Number that the answer repeats.
        question: u32,
    },
    /// The state of a reference.
    Value {
        /// The reference.
        token: Token,
        /// Its value.
        value: ValueView<'a>,
    },
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
    const RETIRE_REGIONS: u8 = 75;
    const CHECKPOINT_ENDED: u8 = 76;
    /// As `RUN`, with a name behind all else.
    const RUN_NAMED: u8 = 77;
    const GRANT: u8 = 78;

    /// Appends the record to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::CancelRun { slot } => {
                out.push(Self::CANCEL_RUN);
                put_u32(out, *slot);
            }
            Self::CheckpointEnded { request, failure } => {
                out.push(Self::CHECKPOINT_ENDED);
                put_u32(out, *request);
                put_bytes(out, failure);
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
            Self::RetireRegions => out.push(Self::RETIRE_REGIONS),
            Self::Grant { calls: number } | Self::Unmap { token: number } => {
                out.push(if matches!(self, Self::Grant { .. }) { Self::GRANT } else { Self::UNMAP });
                put_u64(out, *number);
            }
            Self::Run { slot, class, attempt, task, payload, arguments, name } => {
                out.push(if name.is_empty() { Self::RUN } else { Self::RUN_NAMED });
                put_u32(out, *slot);
                put_u32(out, *class);
                put_u32(out, *attempt);
                out.extend_from_slice(&task.to_bytes());
                put_bytes(out, payload);
                put_u32(out, arguments.count);
                put_bytes(out, arguments.bytes);
                if !name.is_empty() {
                    put_bytes(out, name.as_bytes());
                }
            }
            Self::Shutdown { reason } => {
                out.push(Self::SHUTDOWN);
                put_bytes(out, reason.as_bytes());
            }
            Self::StealBack { count, question } => {
                out.push(Self::STEAL_BACK);
                put_u32(out, *count);
                put_u32(out, *question);
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
            Self::CHECKPOINT_ENDED => Self::CheckpointEnded { request: r.u32()?, failure: r.bytes()? },
            Self::DEFINE_CLASS => Self::DefineClass { class: r.u32()?, definition: r.bytes()? },
            Self::GRANT => Self::Grant { calls: r.u64()? },
            Self::LOCATIONS => Self::Locations { request: r.u32()?, nodes: NodesView::new(r.bytes()?)? },
            Self::LOG => Self::Log { pid: r.u32()?, stderr: r.u8()? != 0, text: r.bytes()? },
            Self::REGION => Self::Region { request: r.u32()?, region: r.extent()?, failure: r.bytes()? },
            Self::RESUMED => Self::Resumed,
            Self::RETIRE_REGIONS => Self::RetireRegions,
            Self::UNMAP => Self::Unmap { token: r.u64()? },
            Self::RUN | Self::RUN_NAMED => Self::Run {
                slot: r.u32()?,
                class: r.u32()?,
                attempt: r.u32()?,
                task: r.task()?,
                payload: r.bytes()?,
                arguments: ArgumentsView::new(r.u32()?, r.bytes()?),
                name: if kind == Self::RUN_NAMED { r.text()? } else { "" },
            },
            Self::SHUTDOWN => Self::Shutdown { reason: r.text()? },
            Self::STEAL_BACK => Self::StealBack { count: r.u32()?, question: r.u32()? },
            Self::VALUE => Self::Value { token: r.u64()?, value: r.value()? },
            _ => return Err(r.bad("unknown kind")),
        };
        r.finish(decoded)
    }
}
