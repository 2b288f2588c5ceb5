//! A client: one driver or worker connected to its node.
//!
//! A client is a `Connection` (the link, the handles, the regions) and the state for calls: the classes
//! that it has defined, and the root task of threads that run no task.
//!
//! Loss. When the node is gone, or ends this client, every handle without a value fails, all waiting threads
//! are woken, and every later call fails with the same error. Values that are being read stay; the memory is
//! returned when there are no readers left (`uses.rs`).

use crate::classes::Classes;
use crate::dispatch::{Dispatcher, LogSink};
use crate::error::{Error, Result};
use crate::handles::{Connection, Table};
use crate::link::{Link, LinkParts};
use crate::pump::Reader;
use crate::regions::Regions;
use crate::task::TaskState;
use crate::uses::Use;
use crate::work::{Leaving, Work};
use std::sync::Arc;
use tharsis_object_store::channel::Channel;
use tharsis_object_store::{ArenaMap, BellBoard};
use tharsis_protos::handshake::{NameQuestion, Named};
use tharsis_types::{ClientId, Failure, FailureKind, JobId, NodeId, TaskId};

/// A connection to a node. Cloning is cheap; the connection ends with [`Client::close`] or with the node.
#[derive(Clone)]
pub struct Client(Arc<Core>);

/// Asks the node about names of actors.
pub type Names = Box<dyn Fn(NameQuestion) -> Result<Named> + Send + Sync>;

/// Parts of a client; see [`crate::connect()`] for the usual way.
pub struct ClientParts {
    /// Number of the client at its node.
    pub client: ClientId,
    /// The node.
    pub node: NodeId,
    /// The job it works for.
    pub job: JobId,
    /// Whether it runs tasks.
    pub is_worker: bool,
    /// The client's side of the rings, and its bell.
    pub channel: Channel,
    /// The node's board.
    pub board: BellBoard,
    /// The client's index on the board.
    pub board_index: u32,
    /// The node's arena.
    pub arena: Arc<ArenaMap>,
    /// Takes the output of workers; `None` prints it to this process's own output with a prefix.
    pub log_sink: Option<LogSink>,
    /// Asks the node about names of actors.
    pub names: Names,
    /// For a worker: names of the GPUs that it may use.
    pub gpus: Vec<String>,
}

struct Core {
    connection: Arc<Connection>,
    work: Arc<Work>,
    classes: Classes,
    /// The task of threads that run none.
    root: Arc<TaskState>,
    names: Names,
    gpus: Vec<String>,
}

impl Client {
    /// Makes a client from its parts and starts its background reader.
    ///
    /// # Errors
    /// `Internal` if no thread can be started.
    pub fn from_parts(parts: ClientParts) -> Result<Self> {
        let root_task = if parts.is_worker { background_task(&parts) } else { TaskId::root(parts.job) };
        let (table, regions, work) =
            (Arc::<Table>::default(), Arc::<Regions>::default(), Arc::<Work>::default());
        let dispatcher = Dispatcher {
            table: Arc::clone(&table),
            regions: Arc::clone(&regions),
            work: Arc::clone(&work),
            log_sink: parts.log_sink,
        };
        let link = LinkParts {
            client: parts.client,
            node: parts.node,
            job: parts.job,
            is_worker: parts.is_worker,
            channel: parts.channel,
            board: parts.board,
            board_index: parts.board_index,
            arena: parts.arena,
        };
        let link = Link::start(link, Box::new(dispatcher))?;
        let connection = Arc::new(Connection { link, table, regions });
        let root = Arc::new(TaskState::root(root_task));
        let (classes, names, gpus) = (Classes::default(), parts.names, parts.gpus);
        Ok(Self(Arc::new(Core { connection, work, classes, root, names, gpus })))
    }

    /// Number of this client at its node.
    #[must_use]
    pub fn id(&self) -> ClientId {
        self.link().client
    }

    /// The node that this client is connected to.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.link().node
    }

    /// The job it works for.
    #[must_use]
    pub fn job(&self) -> JobId {
        self.link().job
    }

    /// Ends the connection: all waiting calls fail with `Shutdown`. Values that are being read stay where
    /// they are; all others are released.
    pub fn close(&self) {
        let failure = Arc::new(Failure::new(FailureKind::Shutdown, "the runtime was shut down"));
        let Connection { link, table, regions } = &*self.0.connection;
        // As in a dispatch, nothing here waits: a node that hangs must not block this program.
        link.dispatching(|| {
            regions.retire_unused(link);
            table.all().iter().for_each(|handle| handle.leave(&failure));
        });
        link.send_deferred();
        self.lose((*failure).clone());
    }

    /// Ends the connection with a reason; the first reason counts.
    pub fn lose(&self, failure: Failure) {
        self.link().lose(failure);
    }

    /// The reason of the end of the connection, if it has ended.
    #[must_use]
    pub fn loss(&self) -> Option<Error> {
        self.link().reason()
    }

    /// Runs `action` once when the connection ends; at once if it has ended already.
    pub fn on_loss(&self, action: impl FnOnce() + Send + 'static) {
        self.link().on_loss(action);
    }

    /// Runs `action` once when the connection has ended and this client has no readers and writers of the
    /// node's memory left; at once if that is so already.
    pub fn on_disuse(&self, action: impl FnOnce() + Send + 'static) {
        self.link().uses.at_end(Box::new(action));
    }

    /// Keeps the node's memory of this client as long as the returned value lives; `None` if it was returned
    /// to the node.
    #[must_use]
    pub fn use_memory(&self) -> Option<Use> {
        self.link().uses.begin()
    }

    pub(crate) fn connection(&self) -> &Arc<Connection> {
        &self.0.connection
    }

    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.0.connection.link
    }

    pub(crate) fn work(&self) -> &Work {
        &self.0.work
    }

    /// The actor that lives in this worker is to end.
    pub(crate) fn leave(&self, after: Leaving) {
        self.0.work.leave(after);
        self.link().inbound.wake_bystanders();
    }

    pub(crate) fn classes(&self) -> &Classes {
        &self.0.classes
    }

    pub(crate) fn names(&self) -> &Names {
        &self.0.names
    }

    /// Names of the GPUs that this worker may use.
    pub(crate) fn gpus(&self) -> &[String] {
        &self.0.gpus
    }

    pub(crate) fn root(&self) -> &Arc<TaskState> {
        &self.0.root
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Client({} of node {})", self.id().0, self.node())
    }
}

/// The task of a worker's threads that run none. It has its own id, so that these threads never name objects
/// of another task.
fn background_task(parts: &ClientParts) -> TaskId {
    TaskId::root(parts.job).child(parts.node.0).child(u64::from(parts.client.0))
}
