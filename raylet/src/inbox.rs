//! Messages of other threads to the loop.
//!
//! Most producers wait for an answer before they put the next message in, so their number bounds those of
//! their messages. Two kinds do not: other nodes, and the output of workers. What these send takes a part of
//! a [`Room`], which the loop gives back when it has dealt with it. Who finds no room waits, and no more is
//! read of its connection or its pipe meanwhile: so a sender that is faster than the loop is slowed down in
//! the end, and takes no memory here.

use crate::port::Port;
use crate::runs::{RunPage, RunPlace, RunTime};
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
use tharsis_protos::runs::RunQuery;
use tharsis_types::peer::Packet;
use tharsis_types::{ClientId, Extent, Failure, JobId, NodeId, ObjectId, TaskId};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Room is counted in parts of so many bytes.
const PART_BYTES: usize = 1024;

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
    /// Another node reads an object, and wants the number of the copy here.
    CopyNumber {
        /// The object.
        object: ObjectId,
        /// Takes the answer.
        reply: SyncSender<Option<u64>>,
    },
    /// The node is to leave without loss.
    Drain {
        /// It leaves after this time, whatever is left.
        within: Duration,
    },
    /// An event for the machine.
    Event(Event),
    /// It is asked of which jobs of other nodes' drivers this node has anything.
    JobsOfOthers {
        /// Takes the answer.
        reply: oneshot::Sender<Vec<JobId>>,
    },
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
        /// The room that it takes.
        room: Occupied,
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
    /// Another node has sent a packet.
    Packet {
        /// The node.
        from: NodeId,
        /// The packet.
        packet: Packet,
        /// The room that it takes.
        room: Occupied,
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
    /// A reader asks for runs.
    RunPage {
        /// The runs that are wanted.
        query: RunQuery,
        /// The way on, as the page before told it; none for the first page.
        place: Option<RunPlace>,
        /// Takes the answer.
        reply: oneshot::Sender<RunPage>,
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

/// Room in the queue for what one sender, or several together, send without waiting for answers.
#[derive(Clone, Debug)]
pub struct Room {
    free: Arc<Semaphore>,
    parts: u32,
}

/// A part of a [`Room`] that is in use until this is dropped.
#[derive(Debug)]
#[must_use]
pub struct Occupied {
    _parts: Option<OwnedSemaphorePermit>,
}

impl Room {
    /// Room for so many bytes.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        let parts = bytes.div_ceil(PART_BYTES).max(1);
        Self { free: Arc::new(Semaphore::new(parts)), parts: parts as u32 }
    }

    /// Waits for room for so many bytes, behind those who wait already. What is larger than the whole room
    /// takes all of it.
    pub async fn take(&self, bytes: usize) -> Occupied {
        let parts = u32::try_from(bytes / PART_BYTES + 1).unwrap_or(u32::MAX).min(self.parts);
        // Nobody closes it.
        Occupied { _parts: Arc::clone(&self.free).acquire_many_owned(parts).await.ok() }
    }

    /// As [`Room::take`], on a thread that may wait.
    pub fn take_on_thread(&self, bytes: usize) -> Occupied {
        futures::executor::block_on(self.take(bytes))
    }
}

#[derive(Default)]
struct Queue {
    inputs: VecDeque<Input>,
    is_closed: bool,
}

/// A queue into the loop.
pub struct Inbox {
    queue: Mutex<Queue>,
    len: AtomicUsize,
    board: BellBoard,
}

impl Inbox {
    /// An empty queue that wakes the loop through the board.
    #[must_use]
    pub fn new(board: BellBoard) -> Self {
        Self { queue: Mutex::default(), len: AtomicUsize::new(0), board }
    }

    /// Adds an input and wakes the loop.
    pub fn put(&self, input: Input) {
        {
            let mut queue = self.queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if queue.is_closed {
                return;
            }
            queue.inputs.push_back(input);
            self.len.store(queue.inputs.len(), Ordering::Release);
        }
        self.board.ring();
    }

    /// The next input, if any.
    pub fn take(&self) -> Option<Input> {
        if self.is_empty() {
            return None;
        }
        let mut queue = self.queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let input = queue.inputs.pop_front();
        self.len.store(queue.inputs.len(), Ordering::Release);
        input
    }

    /// The loop has ended: drops what nobody takes any more, now and later. Who waits for an answer or for
    /// room goes on.
    pub fn close(&self) {
        let mut queue = self.queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        queue.is_closed = true;
        let left = std::mem::take(&mut queue.inputs);
        self.len.store(0, Ordering::Release);
        drop(queue);
        drop(left);
    }

    /// Whether the loop has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner).is_closed
    }

    /// Whether the queue was empty at this moment.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len.load(Ordering::Acquire) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::poll;
    use std::pin::pin;
    use tharsis_object_store::Segment;
    use tharsis_object_store::bell::BELL_BOARD_BYTES;

    fn inbox() -> Inbox {
        let segment = Arc::new(Segment::anonymous(BELL_BOARD_BYTES).unwrap());
        Inbox::new(BellBoard::at(&segment, 0).unwrap())
    }

    fn line(text: &[u8], room: Occupied) -> Input {
        Input::Log { job: JobId(1), pid: 1, stderr: false, text: text.to_vec(), room }
    }

    #[tokio::test]
    async fn who_finds_no_room_waits_until_the_loop_has_dealt_with_what_it_sent() {
        let (inbox, room) = (inbox(), Room::new(4 * PART_BYTES));
        for _ in 0..4 {
            inbox.put(line(b"1", room.take(1).await));
        }
        let mut next = pin!(room.take(1));
        assert!(poll!(&mut next).is_pending(), "four are waiting");
        let first = inbox.take();
        assert!(poll!(&mut next).is_pending(), "the loop is at it");
        drop(first);
        assert!(poll!(&mut next).is_ready());
    }

    #[tokio::test]
    async fn what_is_larger_than_the_room_has_all_of_it() {
        let room = Room::new(4 * PART_BYTES);
        let small = room.take(1).await;
        let mut large = pin!(room.take(usize::MAX));
        assert!(poll!(&mut large).is_pending());
        drop(small);
        let Some(large) = futures::FutureExt::now_or_never(large) else { panic!("the room is empty") };
        assert!(poll!(pin!(room.take(1))).is_pending());
        drop(large);
        assert!(poll!(pin!(room.take(1))).is_ready());
    }

    #[tokio::test]
    async fn nobody_waits_for_a_loop_that_has_ended() {
        let (inbox, room) = (inbox(), Room::new(PART_BYTES));
        inbox.put(line(b"1", room.take(1).await));
        let (reply, answer) = oneshot::channel();
        inbox.put(Input::Metrics { reply });
        let mut next = pin!(room.take(1));
        assert!(poll!(&mut next).is_pending());
        inbox.close();
        assert!(answer.await.is_err() && inbox.is_empty());
        let Some(room) = futures::FutureExt::now_or_never(next) else { panic!("the room is empty") };
        inbox.put(line(b"2", room));
        assert!(inbox.take().is_none() && inbox.is_closed());
    }
}
