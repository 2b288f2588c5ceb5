//! Effects of the machine's actions on the world outside the loop: workers, transfers, peers, pages, disk.

use crate::annex::Blocks;
use crate::cluster::Cluster;
use crate::cluster::reads::Job;
use crate::inbox::{Inbox, Input};
use crate::local::FinishJob;
use crate::pressure::MemoryWatch;
use crate::registry::Registry;
use crate::spill::Spill;
use crate::workers::Workforce;
use std::sync::Arc;
use std::time::Duration;
use tharsis_core::{Event, Operation};
use tharsis_object_store::Arena;
use tharsis_types::{ClientId, Extent, Failure, JobId, NodeId, ObjectId};

/// Time after the start of a worker within which its memory is read.
const FIRST_LOOK_WAIT: Duration = Duration::from_millis(500);

/// The resources that operations of the machine work on.
pub struct Effects {
    arena: Arc<Arena>,
    inbox: Arc<Inbox>,
    registry: Arc<Registry>,
    workforce: Box<dyn Workforce>,
    cluster: Option<Cluster>,
    spill: Option<Arc<Spill>>,
    blocks: Option<Blocks>,
    give_back_memory: fn(),
    memory_watch: Option<MemoryWatch>,
    /// Called when a job has ended whose driver was connected to this node.
    finish_job: Option<FinishJob>,
}

impl Effects {
    /// The effects of a node.
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
            finish_job: None,
        }
    }

    /// The same, with a thread that allocates blocks of the annex.
    #[must_use]
    pub fn with_blocks(mut self, blocks: Option<Blocks>) -> Self {
        self.blocks = blocks;
        self
    }

    /// The same, with a thread that reads the memory.
    #[must_use]
    pub fn watching(mut self, memory_watch: Option<MemoryWatch>) -> Self {
        self.memory_watch = memory_watch;
        self
    }

    /// The same, where ends of jobs are told to the cluster.
    #[must_use]
    pub fn finishing(mut self, finish_job: Option<FinishJob>) -> Self {
        self.finish_job = finish_job;
        self
    }

    /// Bytes of the arena, the annex included.
    #[must_use]
    pub fn arena_bytes(&self) -> u64 {
        self.arena.map().len()
    }

    /// Whether disk blocks must be allocated for a region before it is granted.
    #[must_use]
    pub fn needs_blocks(&self, region: Extent) -> bool {
        self.arena.len() <= region.offset
    }

    /// Allocates the blocks of such a region.
    pub fn make_blocks(&self, client: ClientId, request: u32, region: Extent) {
        if let Some(blocks) = &self.blocks {
            blocks.make(client, request, region);
        }
    }

    /// The address at which other nodes reach this one.
    #[must_use]
    pub fn address(&self) -> Option<String> {
        self.cluster.as_ref().map(|c| c.address().to_owned())
    }

    /// The address of another member; none if it has left.
    #[must_use]
    pub fn address_of(&self, node: NodeId) -> Option<String> {
        self.cluster.as_ref()?.address_of(node)
    }

    /// The address of the control store that this node uses.
    #[must_use]
    pub fn control_address(&self) -> Option<String> {
        self.cluster.as_ref().map(Cluster::control_address)
    }

    /// Whether this node serves a control store.
    #[must_use]
    pub fn is_head(&self) -> bool {
        self.cluster.as_ref().is_some_and(Cluster::is_head)
    }

    /// Bytes that objects may take on disk; 0 if nothing is spilled.
    #[must_use]
    pub fn spill_quota_bytes(&self) -> u64 {
        self.spill.as_ref().map_or(0, |spill| spill.quota_bytes())
    }

    /// Bytes of objects that were sent to other nodes and read from them so far.
    #[must_use]
    pub fn transfer_bytes(&self) -> (u64, u64) {
        self.cluster.as_ref().map_or((0, 0), |c| (c.sent_bytes(), c.received_bytes()))
    }

    /// Ends a worker now.
    pub fn kill(&self, client: ClientId, reason: &Failure) {
        self.workforce.kill(client, reason);
    }

    /// The registry that threads of the node share.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Frees a place on the board.
    pub fn release_index(&self, index: usize) {
        self.registry.release_index(index);
    }

    /// Begins an operation. Its outcome arrives as an input.
    pub fn perform(&self, operation: &Operation) {
        match operation {
            Operation::ConfirmEnd { job, from } => {
                // A node that is alone hears nothing from others.
                if let Some(cluster) = &self.cluster {
                    cluster.ends().told(*job, *from);
                }
            }
            Operation::Discard(object) => {
                if let Some(spill) = &self.spill {
                    spill.discard(*object);
                }
            }
            Operation::FindDriver { job, from } => {
                if let Some(cluster) = &self.cluster {
                    cluster.ends().driver_wanted(*job, *from);
                }
            }
            Operation::FindMember(node) => self.find_member(*node),
            Operation::ForgetJob { job } => self.forget_job(*job),
            Operation::FreeBlocks(extent) => {
                if let Some(blocks) = &self.blocks {
                    blocks.free(*extent);
                }
            }
            Operation::KillWorker { client, reason } => self.kill(*client, reason),
            // The loop ends itself.
            Operation::Leave => {}
            // The allocator need not keep the memory.
            Operation::MemoryFreed => (self.give_back_memory)(),
            Operation::Pull { object, from, into, done_bytes, copy } => {
                self.pull(Job::new(*object, *from, *into, *done_bytes, *copy));
            }
            Operation::ReadMemory { within_ms } => {
                // There is no watch if the workers are threads.
                if let Some(watch) = &self.memory_watch {
                    watch.look_within(Duration::from_millis(*within_ms));
                }
            }
            Operation::Reclaim(extent) => self.reclaim(*extent),
            Operation::Restore { object, into } => {
                if let Some(spill) = &self.spill {
                    spill.read(*object, *into);
                }
            }
            Operation::Send { to, packet } => {
                if let Some(cluster) = &self.cluster {
                    cluster.send(*to, packet);
                }
            }
            Operation::Spill { object, extent } => self.spill(*object, *extent),
            Operation::StartWorker { start, job, process, gpus } => {
                // While there are no workers, readings are rare.
                if let Some(watch) = &self.memory_watch {
                    watch.look_within(FIRST_LOOK_WAIT);
                }
                self.workforce.start(*start, *job, *process, gpus.clone());
            }
        }
    }

    fn reclaim(&self, extent: Extent) {
        if let Err(error) = self.arena.punch(extent.offset, extent.len) {
            tracing::warn!(%error, "free pages stay with the store");
        }
    }

    fn find_member(&self, node: NodeId) {
        match &self.cluster {
            Some(cluster) => cluster.find_member(node),
            // This node is alone.
            None => self.inbox.put(Input::Event(Event::MemberLeft { node })),
        }
    }

    fn forget_job(&self, job: JobId) {
        if self.registry.remove_job(job)
            && let Some(finish) = &self.finish_job
        {
            finish(job);
        }
        if let Some(cluster) = &self.cluster {
            cluster.forget_job(job);
        }
    }

    fn pull(&self, job: Job) {
        match &self.cluster {
            Some(cluster) => cluster.pull(job),
            None => {
                let Job { object, from, done_bytes, .. } = job;
                let cause = "this node is alone".to_owned();
                self.inbox.put(Input::Event(Event::PullFailed { object, from, done_bytes, cause }));
            }
        }
    }

    fn spill(&self, object: ObjectId, extent: Extent) {
        match &self.spill {
            Some(spill) => spill.write(object, extent),
            None => {
                let refusal = Some("this node has no spill directory".to_owned());
                self.inbox.put(Input::Event(Event::Spilled { object, refusal, write_ns: 0 }));
            }
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
