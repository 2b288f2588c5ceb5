//! Snapshots of actors: from the worker of an actor by way of its node to the owner of the actor.
//!
//! The node names the snapshot and seals its bytes, like those of an output. The worker waits for the answer
//! of the owner ([`crate::owner`], `checkpoints.rs`), so what it reports afterwards is seen by nobody before
//! the snapshot counts.

use super::Node;
use crate::event::{Action, OutputValue, Record};
use crate::lease::Host;
use crate::owner::{Offered, Taken};
use std::sync::Arc;
use tharsis_types::hash::IdMap;
use tharsis_types::peer::{ActorSnapshot, DoneValue, Message};
use tharsis_types::task::Output;
use tharsis_types::{Attempt, ClientId, Failure, FailureKind, NodeId, ObjectId, RefId, TaskId};

/// Children of an actor's task from this number on stand for its attempts: they name snapshots.
const ATTEMPTS: u64 = 1 << 63;

/// Workers whose snapshots are on their way.
#[derive(Debug, Default)]
pub(super) struct Checkpoints {
    /// Each worker, with its number of the request, and the owner of its actor, which answers.
    asked: IdMap<ObjectId, (ClientId, u32, NodeId)>,
    /// Snapshots of each worker named so far. An attempt lives in one worker, so its snapshots have different
    /// names. The numbers start again at the bound; of two that exist at a time, the order is known.
    counts: IdMap<ClientId, u32>,
}

impl Checkpoints {
    fn name(&mut self, client: ClientId, actor: TaskId, attempt: Attempt) -> ObjectId {
        let count = self.counts.entry(client).or_default();
        *count = (*count + 1) % ObjectId::PUT_BASE;
        ObjectId::put(actor.child(ATTEMPTS | u64::from(attempt)), *count)
    }

    /// A worker is gone: nobody waits for its answers.
    pub(super) fn client_gone(&mut self, client: ClientId) {
        self.asked.retain(|_, (asker, ..)| *asker != client);
        self.counts.remove(&client);
    }

    /// Sizes of tables that must be empty when nothing is under way.
    pub(super) fn leftovers(&self) -> [(&'static str, usize); 2] {
        let counted = self.counts.len();
        [("workers that wait for their snapshot", self.asked.len()), ("workers with snapshots", counted)]
    }
}

/// The part of the node of the actor.
impl Node {
    /// The actor of a worker is to continue from a snapshot when it is started again.
    pub(super) fn checkpoint_wanted(
        &mut self,
        client: ClientId,
        request: u32,
        value: OutputValue,
        nested: Vec<RefId>,
        out: &mut Vec<Action>,
    ) {
        let refuse = |failure| Record::CheckpointEnded { request, refusal: Some(Arc::new(failure)) };
        let Some(Host { lease: (owner, lease), actor, attempt }) = self.leases.host(client) else {
            let text = "a checkpoint: no actor lives in this worker yet";
            return out.push(refuse(Failure::new(FailureKind::InvalidArgument, text)).to(client));
        };
        let object = self.checkpoints.name(client, actor, attempt);
        let value = match value {
            OutputValue::Inline(bytes) => DoneValue::Inline(bytes),
            OutputValue::Written(extent) => match self.store.seal(client, object, extent) {
                Ok(lies) => DoneValue::Stored { len: lies.len },
                Err(failure) => return out.push(refuse(failure).to(client)),
            },
        };
        self.checkpoints.asked.insert(object, (client, request, owner));
        let nested = self.hand_over(object, owner, &value, nested);
        let snapshot = Output { value, nested };
        let offered = ActorSnapshot { lease, actor, attempt, object, snapshot };
        self.route(owner, Message::ActorCheckpoint(Box::new(offered)), out);
    }

    /// Hands a snapshot over to the owner of the actor, which frees it and borrows the references inside;
    /// returns these.
    fn hand_over(
        &mut self,
        object: ObjectId,
        owner: NodeId,
        value: &DoneValue,
        nested: Vec<RefId>,
    ) -> Vec<RefId> {
        if owner == self.id {
            return nested;
        }
        let (lives, is_stored) = (self.view.knows(owner), matches!(value, DoneValue::Stored { .. }));
        match (is_stored, lives) {
            (true, true) => self.copy_owners.add(object, owner),
            (true, false) => self.store.free(object),
            (false, _) => {}
        }
        if lives { self.owner.lend_references(&nested, owner) } else { nested }
    }

    /// The owner of an actor keeps its snapshot, or does not. What others say of it is ignored.
    pub(super) fn checkpointed(
        &mut self,
        from: NodeId,
        object: ObjectId,
        refusal: Option<Arc<Failure>>,
        out: &mut Vec<Action>,
    ) {
        let asked = self.checkpoints.asked.get(&object).copied();
        if let Some((client, request, _)) = asked.filter(|(.., owner)| *owner == from) {
            self.checkpoints.asked.remove(&object);
            out.push(Record::CheckpointEnded { request, refusal }.to(client));
        }
    }
}

/// The owner's part.
impl Node {
    /// An actor of this ledger offers a snapshot.
    pub(super) fn checkpoint_offered(&mut self, from: NodeId, offered: ActorSnapshot, out: &mut Vec<Action>) {
        let ActorSnapshot { lease, actor, attempt, object, snapshot } = offered;
        let offered = Offered { from, lease, actor, attempt };
        let refusal = match self.owner.take_snapshot(offered, object, snapshot, &mut self.effects) {
            Taken::Counts => None,
            Taken::Refused(failure) => Some(failure),
            Taken::Comes(len) => {
                // The actor ends with this node: while it drains, the copy there will do.
                let stays_there = self.drain.is_draining();
                if stays_there || !self.read_snapshot(from, object, len, out) {
                    self.snapshot_read(object, stays_there, out);
                }
                return;
            }
        };
        self.apply(out);
        self.route(from, Message::ActorCheckpointed { object, refusal }, out);
    }

    /// A copy that was read to be kept is here, or is not: if it is a snapshot, its actor is told.
    pub(super) fn snapshot_read(&mut self, object: ObjectId, is_here: bool, out: &mut Vec<Action>) {
        let Some((from, refusal)) = self.owner.snapshot_read(object, is_here, &mut self.effects) else {
            return;
        };
        self.apply(out);
        if self.view.knows(from) {
            self.send(from, Message::ActorCheckpointed { object, refusal });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tharsis_types::JobId;

    #[test]
    fn each_worker_counts_its_own_snapshots() {
        let mut checkpoints = Checkpoints::default();
        let actor = TaskId::root(JobId(1)).child(0);
        let [busy, idle] = [ClientId(1), ClientId(2)];
        checkpoints.counts.insert(busy, ObjectId::PUT_BASE - 2);
        let names: Vec<_> = (0..3).map(|_| checkpoints.name(busy, actor, 0)).collect();
        assert!(names.iter().all(ObjectId::is_put) && names[0] != names[1] && names[1] != names[2]);
        assert_eq!(names[2].index, ObjectId::PUT_BASE + 1, "{names:?}");
        assert_eq!(checkpoints.name(idle, actor, 1).index, ObjectId::PUT_BASE + 1);
        checkpoints.client_gone(busy);
        checkpoints.client_gone(idle);
        assert!(checkpoints.leftovers().iter().all(|(_, count)| *count == 0));
    }
}
