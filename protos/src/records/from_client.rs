//! Records from a driver or worker to its node.

use super::bytes::{Reader, put_bytes, put_extent, put_token_ref, put_u32, put_u64, put_value};
use super::{
    BadRecord, DependenciesView, GraphView, OutputsView, RefsView, SlotsView, Token, TokensView, ValueView,
    pack,
};
use tharsis_types::{Extent, ObjectId, RefId, TaskId};

/// From a client to its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FromClient<'a> {
    /// The actor of this worker has ended by itself: no call that is not reported is started any more.
    ActorEnded,
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
    /// The actor of this worker is to continue from this snapshot when it is started again; answered by
    /// [`ToClient::CheckpointEnded`](super::ToClient::CheckpointEnded).
    Checkpoint {
        /// Echoed in the answer.
        request: u32,
        /// `Inline` or `Local`.
        value: ValueView<'a>,
        /// References inside it.
        nested: RefsView<'a>,
    },
    /// Names a task class for later submissions: an encoded `TaskClass`.
    DefineClass {
        /// Number chosen by the client, counting up from 0. One that is named again means the new class for
        /// what is sent from then on.
        class: u32,
        /// Encoded `TaskClass`.
        definition: &'a [u8],
    },
    /// A started task ended.
    Done {
        /// Slot given by [`ToClient::Run`](super::ToClient::Run).
        slot: u32,
        /// Time in the function, in nanoseconds.
        run_ns: u64,
        /// Outputs of the run.
        outcome: OutcomeView<'a>,
    },
    /// Make a value readable here and send it.
    Fetch {
        /// The reference.
        token: Token,
        /// References inside the value.
        reference: RefId,
    },
    /// Hands back tasks that were sent ahead and not started.
    GiveBack {
        /// Number of the question that it answers; 0 if nobody asked, or of one without a number.
        question: u32,
        /// Their slots.
        returned: SlotsView<'a>,
    },
    /// The next steps of a graph that the client submits.
    Graph {
        /// The slot of the run that submits it, from a worker that runs several at the same time.
        run: Option<u32>,
        /// The id from which those of its tasks are derived.
        graph: TaskId,
        /// The steps.
        part: GraphView<'a>,
    },
    /// The client now has a reference that it found inside a value. It is told of the value once it sends
    /// Fetch.
    Hold {
        /// The reference.
        token: Token,
        /// References inside the value.
        reference: RefId,
    },
    /// The client goes on looking at an argument of its running task when that has ended, under a reference
    /// of its own. To be sent before [`FromClient::Done`], with which the task's own pins go.
    Keep {
        /// The reference.
        token: Token,
        /// References inside the value.
        reference: RefId,
    },
    /// Asks where a value lies; answered by [`ToClient::Locations`](super::ToClient::Locations).
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
        /// `file:line` of the call; empty for small values, which nobody looks for.
        site: &'a str,
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
        /// References that were inside the value.
        reference: RefId,
    },
    /// Kill the worker of an actor, which is started again if its options allow it.
    Restart {
        /// The actor.
        reference: RefId,
    },
    /// Calls a remote function.
    Submit {
        /// The slot of the run that calls, from a worker that runs several at the same time.
        run: Option<u32>,
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
        /// The name of this call; empty if it has that of its class.
        name: &'a str,
    },
    /// The client's current task has its values and wants its slot back; answered by
    /// [`ToClient::Resumed`](super::ToClient::Resumed).
    Unblock,
    /// Nothing looks at a mapped value any more, as [`ToClient::Unmap`](super::ToClient::Unmap) asked; the
    /// reference stays.
    Unmapped {
        /// The reference.
        token: Token,
        /// References inside the value.
        reference: RefId,
    },
}

/// End of a task in its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutcomeView<'a> {
    /// Its outputs.
    Returned(OutputsView<'a>),
    /// It failed: an encoded `Failure`, and the type name of a user's error (else empty) for the retry
    /// decision.
    Failed {
        /// Type name of the user's error.
        error_type: &'a str,
        /// Encoded `Failure`.
        failure: &'a [u8],
    },
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
    const KEEP: u8 = 17;
    const GRAPH: u8 = 18;
    const ACTOR_ENDED: u8 = 19;
    const CHECKPOINT: u8 = 20;
    /// As `SUBMIT`, with a name behind all else.
    const SUBMIT_NAMED: u8 = 21;
    const RESTART: u8 = 22;
    /// As `SUBMIT_NAMED`, where the name may be empty, with the run before all else.
    const SUBMIT_BY: u8 = 23;
    /// As `GRAPH`, with the run before all else.
    const GRAPH_BY: u8 = 24;

    /// Appends the record to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::ActorEnded => out.push(Self::ACTOR_ENDED),
            Self::Blocked { returned } => {
                out.push(Self::BLOCKED);
                put_bytes(out, returned.0);
            }
            Self::Cancel { reference, force, recursive } => {
                out.push(Self::CANCEL);
                pack::reference(out, reference);
                out.push(u8::from(*force) | u8::from(*recursive) << 1);
            }
            Self::Checkpoint { request, value, nested } => put_checkpoint(out, *request, value, nested),
            Self::DefineClass { class, definition } => put_class(out, *class, definition),
            Self::Done { slot, run_ns, outcome } => put_done(out, *slot, *run_ns, outcome),
            Self::Fetch { token, reference } => put_token_ref(out, Self::FETCH, *token, reference),
            Self::GiveBack { question, returned } => {
                out.push(Self::GIVE_BACK);
                put_u32(out, *question);
                put_bytes(out, returned.0);
            }
            Self::Graph { run, graph, part } => {
                put_run(out, Self::GRAPH, Self::GRAPH_BY, *run);
                out.extend_from_slice(&graph.to_bytes());
                part.encode(out);
            }
            Self::Hold { token, reference } => put_token_ref(out, Self::HOLD, *token, reference),
            Self::Keep { token, reference } => put_token_ref(out, Self::KEEP, *token, reference),
            Self::Locate { request, reference } => {
                out.push(Self::LOCATE);
                put_u32(out, *request);
                pack::reference(out, reference);
            }
            Self::Put { token, object, value, nested, site } => {
                out.push(Self::PUT);
                put_u64(out, *token);
                out.extend_from_slice(&object.to_bytes());
                put_value(out, value);
                put_bytes(out, nested.0);
                put_bytes(out, site.as_bytes());
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
            Self::Restart { reference } => put_restart(out, reference),
            Self::Submit { run, class, task, tokens, payload, dependencies, nested, name } => {
                let kind = if name.is_empty() { Self::SUBMIT } else { Self::SUBMIT_NAMED };
                put_run(out, kind, Self::SUBMIT_BY, *run);
                put_u32(out, *class);
                out.extend_from_slice(&task.to_bytes());
                put_bytes(out, tokens.0);
                put_bytes(out, payload);
                put_bytes(out, dependencies.0);
                put_bytes(out, nested.0);
                if !name.is_empty() || run.is_some() {
                    put_bytes(out, name.as_bytes());
                }
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
            Self::DONE => Self::Done { slot: r.u32()?, run_ns: r.u64()?, outcome: returned(&mut r)? },
            Self::DONE_FAILED => Self::Done { slot: r.u32()?, run_ns: r.u64()?, outcome: failed(&mut r)? },
            Self::FETCH => Self::Fetch { token: r.u64()?, reference: r.reference()? },
            Self::GIVE_BACK => Self::GiveBack { question: r.u32()?, returned: SlotsView::new(r.bytes()?)? },
            Self::HOLD => Self::Hold { token: r.u64()?, reference: r.reference()? },
            Self::LOCATE => Self::Locate { request: r.u32()?, reference: r.reference()? },
            Self::PUT => Self::Put {
                token: r.u64()?,
                object: r.object()?,
                value: r.value()?,
                nested: RefsView::new(r.bytes()?)?,
                site: r.text()?,
            },
            Self::REGION_WANTED => Self::RegionWanted { request: r.u32()?, bytes: r.u64()? },
            Self::REGION_RETIRED => Self::RegionRetired { region: r.extent()? },
            Self::RELEASE => Self::Release { token: r.u64()?, reference: r.reference()? },
            Self::RESTART => Self::Restart { reference: r.reference()? },
            Self::SUBMIT | Self::SUBMIT_NAMED | Self::SUBMIT_BY => Self::Submit {
                run: if kind == Self::SUBMIT_BY { Some(r.u32()?) } else { None },
                class: r.u32()?,
                task: r.task()?,
                tokens: TokensView::new(r.bytes()?)?,
                payload: r.bytes()?,
                dependencies: DependenciesView::new(r.bytes()?)?,
                nested: RefsView::new(r.bytes()?)?,
                name: if kind == Self::SUBMIT { "" } else { r.text()? },
            },
            Self::UNBLOCK => Self::Unblock,
            Self::GRAPH | Self::GRAPH_BY => {
                let run = if kind == Self::GRAPH_BY { Some(r.u32()?) } else { None };
                Self::Graph { run, graph: r.task()?, part: GraphView::decode(&mut r)? }
            }
            Self::ACTOR_ENDED => Self::ActorEnded,
            Self::CHECKPOINT => {
                let (request, value) = (r.u32()?, r.value()?);
                Self::Checkpoint { request, value, nested: RefsView::new(r.bytes()?)? }
            }
            Self::KEEP => Self::Keep { token: r.u64()?, reference: r.reference()? },
            Self::UNMAPPED => Self::Unmapped { token: r.u64()?, reference: r.reference()? },
            _ => return Err(r.bad("unknown kind")),
        };
        r.finish(decoded)
    }
}

/// The kind of a record, or another one and the run that it is of.
fn put_run(out: &mut Vec<u8>, kind: u8, of_run: u8, run: Option<u32>) {
    out.push(run.map_or(kind, |_| of_run));
    run.into_iter().for_each(|run| put_u32(out, run));
}

fn put_class(out: &mut Vec<u8>, class: u32, definition: &[u8]) {
    out.push(FromClient::DEFINE_CLASS);
    put_u32(out, class);
    put_bytes(out, definition);
}

fn put_restart(out: &mut Vec<u8>, actor: &RefId) {
    out.push(FromClient::RESTART);
    pack::reference(out, actor);
}

fn put_checkpoint(out: &mut Vec<u8>, request: u32, value: &ValueView<'_>, nested: &RefsView<'_>) {
    out.push(FromClient::CHECKPOINT);
    put_u32(out, request);
    put_value(out, value);
    put_bytes(out, nested.0);
}

fn put_done(out: &mut Vec<u8>, slot: u32, run_ns: u64, outcome: &OutcomeView<'_>) {
    let kind = match outcome {
        OutcomeView::Returned(_) => FromClient::DONE,
        OutcomeView::Failed { .. } => FromClient::DONE_FAILED,
    };
    out.push(kind);
    put_u32(out, slot);
    put_u64(out, run_ns);
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

/// Reads the outputs of a task.
fn returned<'a>(r: &mut Reader<'a>) -> Result<OutcomeView<'a>, BadRecord> {
    Ok(OutcomeView::Returned(OutputsView { count: r.u32()?, bytes: r.bytes()? }))
}

/// Reads why a task has none.
fn failed<'a>(r: &mut Reader<'a>) -> Result<OutcomeView<'a>, BadRecord> {
    Ok(OutcomeView::Failed { error_type: r.text()?, failure: r.bytes()? })
}
