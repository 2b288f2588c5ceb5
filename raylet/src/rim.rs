//! Where actions leave the loop: workers, transfers, peers, pages.

use crate::annex::Blocks;
use crate::cluster::Cluster;
use crate::inbox::{Inbox, Input};
use crate::pressure::MemoryWatch;
use crate::registry::Registry;
use crate::spill::Spill;
use crate::workers::Workforce;
use std::sync::Arc;
use std::time::Duration;
use tharsis_core::Event;
use tharsis_core::event::Extent;
use tharsis_core::peer::Packet;
use tharsis_object_store::Arena;
use tharsis_types::{ClientId, Failure, JobId, NodeId, ObjectId};

/// All that the loop's actions need.
pub struct Rim {
    arena: Arc<Arena>,
    inbox: Arc<Inbox>,
    registry: Arc<Registry>,
    workforce: Box<dyn Workforce>,
    cluster: Option<Cluster>,
    spill: Option<Arc<Spill>>,
    blocks: Option<Blocks>,
    give_back_memory: fn(),
    memory_watch: Option<MemoryWatch>,
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
        spill: Option<Arc<Spill>>,
        give_back_memory: fn(),
    ) -> Self {
        Self {
            arena,
            inbox,
            registry,
            workforce,
            cluster,
            spill,
            blocks: None,
            give_back_memory,
            memory_watch: None,
        }
    }

    /// The same, with somebody who makes blocks of the annex.
    #[must_use]
    pub fn with_blocks(mut self, blocks: Option<Blocks>) -> Self {
        self.blocks = blocks;
        self
    }

    /// The same, with somebody who looks at the memory.
    #[must_use]
    pub fn watching(mut self, memory_watch: Option<MemoryWatch>) -> Self {
        self.memory_watch = memory_watch;
        self
    }

    /// Bytes of the arena, the annex included.
    #[must_use]
    pub fn arena_bytes(&self) -> u64 {
        self.arena.map().len()
    }

    /// Whether a region must have blocks of the disk before it is granted.
    #[must_use]
    pub fn needs_blocks(&self, region: Extent) -> bool {
        self.arena.len() <= region.offset
    }

    /// Makes the blocks of such a region.
    pub fn make_blocks(&self, client: ClientId, request: u32, region: Extent) {
        if let Some(blocks) = &self.blocks {
            blocks.make(client, request, region);
        }
    }

    /// Gives the blocks of a range of the annex back.
    pub fn free_blocks(&self, extent: Extent) {
        if let Some(blocks) = &self.blocks {
            blocks.free(extent);
        }
    }

    /// Where other nodes reach this one.
    #[must_use]
    pub fn address(&self) -> Option<String> {
        self.cluster.as_ref().map(|c| c.address().to_owned())
    }

    /// Bytes of objects that other nodes were sent so far.
    #[must_use]
    pub fn sent_bytes(&self) -> u64 {
        self.cluster.as_ref().map_or(0, Cluster::sent_bytes)
    }

    /// Pages of a free range go back to the system.
    pub fn reclaim(&self, extent: Extent) {
        if let Err(error) = self.arena.punch(extent.offset, extent.len) {
            tracing::warn!(%error, "free pages stay with the store");
        }
    }

    /// Memory of the machine was freed: the allocator need not keep it.
    pub fn give_back_memory(&self) {
        (self.give_back_memory)();
    }

    /// Has somebody look at the memory; nobody where the workers are threads.
    pub fn read_memory(&self, within_ms: u64) {
        if let Some(watch) = &self.memory_watch {
            watch.look_within(Duration::from_millis(within_ms));
        }
    }

    /// Lets go of what is kept for a job that has ended.
    pub fn forget_job(&self, job: JobId) {
        self.registry.remove_job(job);
        if let Some(cluster) = &self.cluster {
            cluster.forget_job(job);
        }
    }

    /// Starts a worker process for a job; its end, or why it did not start, arrives as an input.
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
    pub fn pull(&self, object: ObjectId, from: NodeId, into: Extent, done_bytes: u64) {
        match &self.cluster {
            Some(cluster) => {
                cluster.pull(object, from, into, done_bytes);
            }
            None => {
                let cause = "this node is alone".to_owned();
                self.inbox.put(Input::Event(Event::PullFailed { object, from, done_bytes, cause }));
            }
        }
    }

    /// Writes a copy to disk.
    pub fn spill(&self, object: ObjectId, extent: Extent) {
        match &self.spill {
            Some(spill) => spill.write(object, extent),
            None => {
                let refusal = Some("this node has no spill directory".to_owned());
                self.inbox.put(Input::Event(Event::Spilled { object, refusal, write_ns: 0 }));
            }
        }
    }

    /// Reads a copy from disk into the arena.
    pub fn restore(&self, object: ObjectId, into: Extent) {
        if let Some(spill) = &self.spill {
            spill.read(object, into);
        }
    }

    /// Removes a copy from disk.
    pub fn discard(&self, object: ObjectId) {
        if let Some(spill) = &self.spill {
            spill.discard(object);
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
        if let Some(spill) = self.spill {
            spill.stop();
        }
        if let Some(blocks) = self.blocks {
            blocks.stop();
        }
    }
}
