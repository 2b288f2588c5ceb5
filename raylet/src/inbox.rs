//! Messages of other threads to the loop.

use crate::port::Port;
use crate::windows::RunTime;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tharsis_core::Event;
use tharsis_core::journal::About;
use tharsis_core::node::{Gauges, Place, Story};
use tharsis_object_store::BellBoard;
use tharsis_protos::inventory::Inventory;
use tharsis_protos::listing::{Listing, Table};
use tharsis_protos::report::Report;
use tharsis_types::{ClientId, Extent, Failure, JobId, ObjectId, TaskId};
use tokio::sync::oneshot;

/// An input of the loop.
pub enum Input {
    /// It is asked which of these objects of this node have ended, or are not known.
    AreOver {
        /// The objects.
        objects: Vec<ObjectId>,
        /// Takes an answer for each.
        reply: oneshot::Sender<Vec<bool>>,
    },
    /// An object was sent to another node: its pin is removed.
    CloseTransfer {
        /// The object.
        object: ObjectId,
    },
    /// A client connected.
    Connected {
        /// Its place on the board.
        index: usize,
        /// The node's end of the connection.
        port: Box<Port>,
        /// The event that tells the machine of it.
        event: Event,
    },
    /// The node is to leave without loss.
    Drain {
        /// It leaves after this time, whatever is left.
        within: Duration,
    },
    /// An event for the machine.
    Event(Event),
    /// A request for the contents of the store.
    Inventory {
        /// Takes the answer.
        reply: SyncSender<Inventory>,
    },
    /// A request for a list.
    List {
        /// The list that is wanted.
        listing: Listing,
        /// Takes the answer.
        reply: SyncSender<Table>,
    },
    /// Output of a worker.
    Log {
        /// The worker's job.
        job: JobId,
        /// Its process.
        pid: u32,
        /// Whether it was written to stderr.
        stderr: bool,
        /// Complete lines.
        text: Vec<u8>,
    },
    /// A monitor asks for the counts of the node.
    Metrics {
        /// Takes the answer.
        reply: oneshot::Sender<Counts>,
    },
    /// Another node reads an object: its place is wanted, and it is pinned if that is in the arena.
    OpenForTransfer {
        /// The object.
        object: ObjectId,
        /// Takes the answer.
        reply: SyncSender<Option<Place>>,
    },
    /// The blocks of a region in the annex were allocated, or could not be.
    RegionReady {
        /// The client that asked for it.
        client: ClientId,
        /// Its request.
        request: u32,
        /// The region.
        region: Extent,
        /// The reason if it has no blocks.
        failure: Option<Arc<Failure>>,
    },
    /// A request for the state of the node.
    Report {
        /// Takes the answer.
        reply: SyncSender<Report>,
    },
    /// A reader of logs asks when a task ran.
    RunTimes {
        /// The task.
        task: TaskId,
        /// Takes the answer.
        reply: oneshot::Sender<Vec<RunTime>>,
    },
    /// The loop must end.
    Stop,
    /// A request for the story of a task or an object.
    Story {
        /// The task or the object.
        about: About,
        /// Takes the answer: nothing if the node does not know it.
        reply: SyncSender<Option<Story>>,
    },
}

/// Numbers that the loop knows.
#[derive(Clone, Debug)]
pub struct Counts {
    /// Those of the machine.
    pub gauges: Gauges,
    /// Bytes of objects that were sent to other nodes.
    pub sent_bytes: u64,
    /// Bytes of objects that were read from other nodes.
    pub received_bytes: u64,
}

/// A queue into the loop. Producers are few (sockets, transfers, peers) and each waits for its own answers,
/// so its length is bounded by their requests under way; packets of peers are bounded by the window of their
/// link.
pub struct Inbox {
    queue: Mutex<VecDeque<Input>>,
    len: AtomicUsize,
    board: BellBoard,
}

impl Inbox {
    /// An empty queue that wakes the loop through the board.
    #[must_use]
    pub fn new(board: BellBoard) -> Self {
        Self { queue: Mutex::new(VecDeque::new()), len: AtomicUsize::new(0), board }
    }

    /// Adds an input and wakes the loop.
    pub fn put(&self, input: Input) {
        {
            let mut queue = self.queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            queue.push_back(input);
            self.len.store(queue.len(), Ordering::Release);
        }
        self.board.ring();
    }

    /// The next input, if any.
    pub fn take(&self) -> Option<Input> {
        if self.is_empty() {
            return None;
        }
        let mut queue = self.queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let input = queue.pop_front();
        self.len.store(queue.len(), Ordering::Release);
        input
    }

    /// Whether the queue was empty at this moment.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len.load(Ordering::Acquire) == 0
    }
}
