//! Where actions leave the loop: workers, transfers, peers, pages.

use crate::cluster::Cluster;
use crate::inbox::{Inbox, Input};
use crate::registry::Registry;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tharsis_core::event::Extent;
use tharsis_core::peer::Packet;
use tharsis_object_store::Arena;
use tharsis_types::limits::MIB;
use tharsis_types::{ClientId, Failure, FailureKind, JobId, NodeId, ObjectId};

/// Fresh pages of a grant up to this are made by the loop itself; more by a thread, so that the loop goes on.
const POPULATE_INLINE_BYTES: u64 = 4 * MIB as u64;

/// Starts and kills workers. Its calls return at once; outcomes come through the inbox.
pub trait Workforce: Send {
    /// Starts a worker of a job.
    fn start(&self, start: u64, job: JobId);
    /// Ends a worker now; `reason` becomes what is said of its death.
    fn kill(&self, client: ClientId, reason: &Failure);
    /// Ends all workers.
    fn stop(&self);
}

/// All that the loop's actions need.
pub struct Rim {
    arena: Arc<Arena>,
    inbox: Arc<Inbox>,
    registry: Arc<Registry>,
    workforce: Box<dyn Workforce>,
    cluster: Option<Cluster>,
    /// Pages below this exist; the allocator fills the arena from below.
    populated_to: AtomicU64,
}

impl Rim {
    /// The rim of a node.
    #[must_use]
    pub fn new(
        arena: Arc<Arena>,
        inbox: Arc<Inbox>,
        registry: Arc<Registry>,
        workforce: Box<dyn Workforce>,
        cluster: Option<Cluster>,
    ) -> Self {
        Self { arena, inbox, registry, workforce, cluster, populated_to: AtomicU64::new(0) }
    }

    /// Bytes of the arena.
    #[must_use]
    pub fn arena_bytes(&self) -> u64 {
        self.arena.len()
    }

    /// Where other nodes reach this one.
    #[must_use]
    pub fn address(&self) -> Option<String> {
        self.cluster.as_ref().map(|c| c.address().to_owned())
    }

    /// Makes the pages of a region exist before anyone writes there, so that a lack of memory is an error and not a
    /// signal. `None` if a thread does it; `finish` then makes the input that says how it went.
    pub fn populate(
        &self,
        region: Extent,
        finish: impl FnOnce(Result<(), Failure>) -> Input + Send + 'static,
    ) -> Option<Result<(), Failure>> {
        let known = self.populated_to.load(Ordering::Relaxed);
        let end = region.offset + region.len;
        if end <= known {
            return Some(Ok(()));
        }
        let from = region.offset.max(known.min(end));
        self.note_populated(region.offset, end);
        if end - from <= POPULATE_INLINE_BYTES {
            return Some(populate(&self.arena, from, end - from));
        }
        let (arena, inbox) = (Arc::clone(&self.arena), Arc::clone(&self.inbox));
        let thread = std::thread::Builder::new().name("populate".into());
        let spawned = thread.spawn(move || inbox.put(finish(populate(&arena, from, end - from))));
        spawned.err().map(|cause| {
            Err(Failure::new(FailureKind::StoreFull, format!("no thread to make pages: {cause}")))
        })
    }

    /// Pages of a free range go back to the system.
    pub fn reclaim(&self, extent: Extent) {
        self.populated_to.fetch_min(extent.offset, Ordering::Relaxed);
        if let Err(error) = self.arena.punch(extent.offset, extent.len) {
            tracing::warn!(%error, "free pages stay with the store");
        }
    }

    /// Starts a worker.
    pub fn start_worker(&self, start: u64, job: JobId) {
        self.workforce.start(start, job);
    }

    /// Ends a worker now.
    pub fn kill(&self, client: ClientId, reason: &Failure) {
        self.workforce.kill(client, reason);
    }

    /// A place on the board is free again.
    pub fn release_index(&self, index: usize) {
        self.registry.release_index(index);
    }

    /// Reads an object from another node.
    pub fn pull(&self, object: ObjectId, from: NodeId, into: Extent) {
        match &self.cluster {
            Some(cluster) => {
                let end = (into.offset + into.len).next_multiple_of(self.arena.map().page_bytes());
                let is_fresh = self.populated_to.load(Ordering::Relaxed) < end;
                self.note_populated(into.offset, end);
                cluster.pull(object, from, into, is_fresh);
            }
            None => {
                let cause = "this node is alone".to_owned();
                self.inbox.put(Input::Event(tharsis_core::Event::PullFailed { object, from, cause }));
            }
        }
    }

    /// Sends a packet to another node.
    pub fn send(&self, to: NodeId, packet: &Packet) {
        if let Some(cluster) = &self.cluster {
            cluster.send(to, packet);
        }
    }

    /// Ends workers and connections.
    pub fn stop(self) {
        self.workforce.stop();
        if let Some(cluster) = self.cluster {
            cluster.stop();
        }
    }

    fn note_populated(&self, from: u64, to: u64) {
        // A region that starts above leaves a gap that is made when it is granted.
        let known = self.populated_to.load(Ordering::Relaxed);
        if from <= known && known < to {
            self.populated_to.store(to, Ordering::Relaxed);
        }
    }
}

fn populate(arena: &Arena, offset: u64, len: u64) -> Result<(), Failure> {
    arena
        .populate(offset, len)
        .map_err(|cause| Failure::new(FailureKind::StoreFull, format!("{len} bytes of the store: {cause}")))
}
