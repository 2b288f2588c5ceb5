//! Messages of other threads to the loop.

use crate::port::Port;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};
use tharsis_core::Event;
use tharsis_core::journal::About;
use tharsis_core::node::{Place, Story};
use tharsis_object_store::BellBoard;
use tharsis_protos::inventory::Inventory;
use tharsis_protos::listing::{Listing, Table};
use tharsis_protos::report::Report;
use tharsis_types::{ClientId, Extent, Failure, JobId, ObjectId};

/// One thing the loop should know or do.
pub enum Input {
    /// An object was sent; its pin goes.
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
        /// Kind of client.
        event: Event,
    },
    /// Something for the machine.
    Event(Event),
    /// Somebody asks what lies in the store.
    Inventory {
        /// Takes the answer.
        reply: SyncSender<Inventory>,
    },
    /// Somebody asks for a list.
    List {
        /// Which.
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
    /// Another node reads an object: say where it is, and keep it there if that is the arena.
    OpenForTransfer {
        /// The object.
        object: ObjectId,
        /// Takes the answer.
        reply: SyncSender<Option<Place>>,
    },
    /// The blocks of a region in the annex were made, or could not be.
    RegionReady {
        /// Node that asked for it.
        client: ClientId,
        /// Its request.
        request: u32,
        /// The region.
        region: Extent,
        /// Why it has no blocks.
        failure: Option<Arc<Failure>>,
    },
    /// Somebody asks how the node is.
    Report {
        /// Takes the answer.
        reply: SyncSender<Report>,
    },
    /// End.
    Stop,
    /// Somebody asks about a task or an object.
    Story {
        /// Which.
        about: About,
        /// Takes the answer: nothing if the node does not know it.
        reply: SyncSender<Option<Story>>,
    },
}

/// A queue into the loop. Producers are few (sockets, transfers, peers) and each waits for its own answers,
/// so its length is bounded by what they have under way; packets of peers are bounded by the window of their
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

    /// Tells the loop something.
    pub fn put(&self, input: Input) {
        {
            let mut queue = self.queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            queue.push_back(input);
            self.len.store(queue.len(), Ordering::Release);
        }
        self.board.ring();
    }

    /// The next thing, if any.
    pub fn take(&self) -> Option<Input> {
        if self.is_empty() {
            return None;
        }
        let mut queue = self.queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let input = queue.pop_front();
        self.len.store(queue.len(), Ordering::Release);
        input
    }

    /// Whether there is nothing, as far as one look tells.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len.load(Ordering::Acquire) == 0
    }
}
