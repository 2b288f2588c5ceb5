//! Clients that live in the process of their node.

use crate::inbox::{Inbox, Input};
use crate::names::Names;
use crate::port::{EmbeddedPart, Facts, Port, function_table};
use crate::registry::Registry;
use std::sync::Arc;
use tharsis_core::Event;
use tharsis_core::event::Remains;
use tharsis_object_store::{Arena, BellBoard, Channel, Segment};
use tharsis_protos::handshake::FunctionEntry;
use tharsis_types::limits::JOB_WEIGHT_DEFAULT;
use tharsis_types::{ClientId, Failure, FailureKind, JobId, NodeId};

/// The client's end of a connection inside one process.
pub struct Embedded {
    /// The client.
    pub client: ClientId,
    /// The node.
    pub node: NodeId,
    /// The job.
    pub job: JobId,
    /// Its rings and bell.
    pub channel: Channel,
    /// The node's board.
    pub board: BellBoard,
    /// Its place there.
    pub board_index: u32,
    /// The node's arena.
    pub arena: Arc<tharsis_object_store::ArenaMap>,
    /// Answers questions about names of actors.
    pub names: Names,
}

/// State that clients inside the node's process share with it.
#[derive(Clone)]
pub struct Shared {
    pub(crate) id: NodeId,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) board: BellBoard,
    pub(crate) arena: Arc<Arena>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) names: Names,
}

impl Shared {
    /// Tells the loop that a client of this process is gone, and which parts of it remain.
    pub fn gone(&self, client: ClientId, remains: Remains, failure: Failure) {
        let failure = Arc::new(failure);
        self.inbox.put(Input::Event(Event::ClientGone { client, remains, failure }));
    }

    /// Tells the loop that a worker could not be started.
    pub fn start_failed(&self, start: u64, failure: Failure) {
        self.inbox.put(Input::Event(Event::WorkerStartFailed { start, failure: Arc::new(failure) }));
    }
}

/// Connects a client that lives in the node's process.
///
/// # Errors
/// If there is no memory for its rings, or no place for it.
pub fn connect_embedded(
    shared: &Shared,
    job: JobId,
    part: EmbeddedPart,
    functions: &[FunctionEntry],
) -> Result<Embedded, Failure> {
    let no_memory = |cause: String| Failure::new(FailureKind::StoreFull, cause);
    let client = shared.registry.new_client();
    let segment = Arc::new(Segment::anonymous(Channel::BYTES).map_err(|e| no_memory(e.to_string()))?);
    let node_side = Channel::node_side(&segment).map_err(|e| no_memory(e.to_string()))?;
    let channel = Channel::client_side(&segment).map_err(|e| no_memory(e.to_string()))?;
    let full = || Failure::new(FailureKind::InvalidArgument, "the node has as many clients as it can");
    let index = shared.registry.take_index().ok_or_else(full)?;
    let facts = Facts { job, functions: function_table(functions), pid: std::process::id() };
    let (event, is_driver) = match part {
        EmbeddedPart::Worker(start) => (Event::WorkerReady { start, client }, false),
        // The only job of its node: its weight has no effect.
        EmbeddedPart::Driver(quota) => {
            (Event::DriverJoined { client, job, weight: JOB_WEIGHT_DEFAULT, quota }, true)
        }
    };
    let port = Box::new(Port::new(client, is_driver, facts, node_side, segment));
    shared.inbox.put(Input::Connected { index, port, event });
    Ok(Embedded {
        client,
        node: shared.id,
        job,
        channel,
        board: shared.board.clone(),
        board_index: index as u32,
        arena: Arc::clone(shared.arena.map()),
        names: Arc::clone(&shared.names),
    })
}
