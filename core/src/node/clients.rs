//! What drivers and workers ask for: references, values, regions.

use super::{Node, RoomWaiter};
use crate::event::{Action, OutputValue, Value};
use crate::lease;
use crate::peer::Message;
use crate::pull::{Missing, Purpose};
use crate::{Now, owner};
use std::sync::Arc;
use tharsis_types::{ClientId, Failure, FailureKind, NodeId, ObjectId, RefId, TaskClass};

impl Node {
    pub(super) fn define_class(
        &mut self,
        client: ClientId,
        class: u32,
        definition: Result<Arc<TaskClass>, Arc<Failure>>,
    ) {
        match definition {
            Ok(definition) => self.owner.define_class(client, class, &definition),
            Err(failure) => self.owner.refuse_class(client, class, failure),
        }
    }

    pub(super) fn put(
        &mut self,
        client: ClientId,
        token: u64,
        object: ObjectId,
        value: OutputValue,
        nested: &[RefId],
        out: &mut Vec<Action>,
    ) {
        let value = match value {
            OutputValue::Inline(bytes) => Value::Inline(bytes),
            OutputValue::Written(extent) => match self.store.seal(client, object, extent) {
                Ok(extent) => {
                    self.map(client, token, object);
                    Value::Stored { len: extent.len }
                }
                Err(failure) => Value::Failed(Arc::new(failure)),
            },
        };
        let failed = matches!(value, Value::Failed(_));
        let written = matches!(value, Value::Stored { .. });
        let fresh = self.owner.put(client, token, object, value, nested, &mut self.effects);
        if !fresh && written && !self.owner.copies(object).contains(&self.id) {
            self.keep_or_free(object);
        }
        if failed {
            out.push(Action::Deliver { client, token, object, extent: None });
        }
    }

    /// A task that runs again wrote a value that the ledger has from before: another copy, or one too many.
    fn keep_or_free(&mut self, object: ObjectId) {
        match self.owner.value_ref(object) {
            Some(Value::Stored { .. }) => self.owner.copy_changed(self.id, object, true, &mut self.effects),
            _ => self.store.free(object),
        }
    }

    pub(super) fn released(&mut self, client: ClientId, token: u64, reference: RefId, out: &mut Vec<Action>) {
        let object = reference.object;
        if self.mapped.remove(&(client, token)) {
            self.store.unpin(client, object);
        }
        self.refusals.remove(&(client, token));
        if self.reads.remove(&(client, token)).is_some() {
            self.pull_change(out, |pulls, room, effects| {
                pulls.forget(Purpose::Read(client.0, token), room, effects)
            });
        }
        self.owner.released(client, token, object, &mut self.effects);
    }

    /// Sends the bytes of a stored object to a client, from another node if need be.
    pub(super) fn serve(&mut self, client: ClientId, token: u64, object: ObjectId, out: &mut Vec<Action>) {
        if let Some(extent) = self.map(client, token, object) {
            out.push(Action::Deliver { client, token, object, extent: Some(extent) });
            return;
        }
        let Some(Value::Stored { len }) = self.owner.value_ref(object) else {
            out.push(Action::Deliver { client, token, object, extent: None });
            return;
        };
        let missing = Missing { object, len: *len, holders: self.holders(object) };
        self.reads.insert((client, token), object);
        self.want(Purpose::Read(client.0, token), vec![missing], out);
    }

    /// What the transfers of a bundle brought is handed on.
    pub(super) fn pulled(&mut self, purpose: Purpose, out: &mut Vec<Action>) {
        match purpose {
            Purpose::Arguments(run) => self.arguments_ready(run, out),
            Purpose::Read(client, token) => {
                let client = ClientId(client);
                let Some(object) = self.reads.remove(&(client, token)) else { return };
                self.serve(client, token, object, out);
            }
        }
    }

    /// No copy of an object is left.
    pub(super) fn pull_lost(&mut self, purpose: Purpose, object: ObjectId, out: &mut Vec<Action>) {
        self.owner.lost(object, &mut self.effects);
        match purpose {
            Purpose::Arguments(run) => self.arguments_lost(run, object, out),
            Purpose::Read(client, token) => {
                let client = ClientId(client);
                self.reads.remove(&(client, token));
                out.push(Action::Deliver { client, token, object, extent: None });
            }
        }
    }

    pub(super) fn region_wanted(
        &mut self,
        now: Now,
        client: ClientId,
        request: u32,
        bytes: u64,
        out: &mut Vec<Action>,
    ) {
        let waiter = RoomWaiter { client, request, bytes, until: now + self.config.create_timeout };
        if !self.room_waiters.is_empty() || !self.try_grant(now, &waiter, out) {
            self.room_waiters.push_back(waiter);
        }
    }

    /// Those who wait for room try again, in order.
    pub(super) fn retry_for_room(&mut self, now: Now, out: &mut Vec<Action>) {
        while let Some(waiter) = self.room_waiters.pop_front() {
            if !self.try_grant(now, &waiter, out) {
                self.room_waiters.push_front(waiter);
                break;
            }
        }
        for pull in std::mem::take(&mut self.stalled_pulls) {
            self.start_pull(pull, out);
        }
    }

    pub(super) fn client_gone(&mut self, client: ClientId, failure: &Arc<Failure>, out: &mut Vec<Action>) {
        self.runs_lost(client, failure, out);
        self.lease_change(out, |leases, effects| leases.worker_gone(client, effects));
        self.apply(out);
        self.room_waiters.retain(|w| w.client != client);
        self.mapped.retain(|(c, _)| *c != client);
        self.refusals.retain(|(c, _), _| *c != client);
        let reads: Vec<_> = self.reads.keys().filter(|(c, _)| *c == client).copied().collect();
        for (client, token) in reads {
            self.reads.remove(&(client, token));
            self.pull_change(out, |pulls, room, effects| {
                pulls.forget(Purpose::Read(client.0, token), room, effects)
            });
        }
        self.store.client_gone(client);
        self.owner.client_gone(client, &mut self.effects);
        if let Some(job) = self.drivers.remove(&client) {
            self.owner.drop_job(job, &mut self.effects);
            if self.ended_jobs.len() == super::ENDED_JOBS_MAX {
                self.ended_jobs.pop_front();
            }
            self.ended_jobs.push_back(job);
            let others: Vec<_> = self.links.keys().copied().collect();
            others.into_iter().for_each(|node| self.send(node, Message::JobEnded { job }));
            self.job_ended(job, out);
            self.apply(out);
            out.extend(self.store.free_ranges().map(Action::Reclaim));
        }
    }

    /// Workers of a job are not needed any more.
    pub(super) fn job_ended(&mut self, job: tharsis_types::JobId, out: &mut Vec<Action>) {
        self.leases.job_ended(job);
        let workers: Vec<_> = self.leases.workers_of(job).collect();
        let reason = Arc::new(Failure::new(FailureKind::Shutdown, "the driver of the job is gone"));
        out.extend(workers.into_iter().map(|client| Action::KillWorker { client, reason: reason.clone() }));
    }

    pub(super) fn blocked(&mut self, client: ClientId, returned: &[u32], out: &mut Vec<Action>) {
        if let Some((owner, lease)) = self.leases.lease_of(client)
            && owner == self.id
        {
            self.owner.lease_paused(lease);
        }
        self.given_back(client, returned, out);
        self.staging_given_back(client, out);
        self.lease_change(out, |leases, effects| leases.blocked(client, effects));
        if self.has_runs_behind(client) {
            // Sent before the node knew: behind a blocked task, they could wait for each other.
            out.push(Action::StealBack { client, count: u32::MAX });
        }
    }

    pub(super) fn steal_back(&mut self, key: lease::LeaseKey, out: &mut Vec<Action>) {
        if let Some(client) = self.leases.worker(key) {
            self.staging_behind_given_back(client, out);
            out.push(Action::StealBack { client, count: u32::MAX });
        }
    }

    /// Nodes other than this one with a copy.
    pub(super) fn holders(&self, object: ObjectId) -> Vec<tharsis_types::NodeId> {
        self.owner.copies(object).iter().copied().filter(|n| *n != self.id && self.view.knows(*n)).collect()
    }

    /// Waits for objects of other nodes; those without any holder are lost at once.
    pub(super) fn want(&mut self, purpose: Purpose, missing: Vec<Missing>, out: &mut Vec<Action>) {
        if let Some(lost) = missing.iter().find(|m| m.holders.is_empty()).map(|m| m.object) {
            self.pull_lost(purpose, lost, out);
            return;
        }
        self.pull_change(out, |pulls, room, effects| pulls.want(purpose, missing, room, effects));
    }

    /// Maps a local object for a reference of a client.
    fn map(&mut self, client: ClientId, token: u64, object: ObjectId) -> Option<crate::event::Extent> {
        if self.mapped.contains(&(client, token)) {
            return self.store.find(object);
        }
        let extent = self.store.pin(client, object)?;
        self.mapped.insert((client, token));
        Some(extent)
    }

    /// Grants or refuses a region; false if the client should wait.
    fn try_grant(&mut self, now: Now, waiter: &RoomWaiter, out: &mut Vec<Action>) -> bool {
        let mut evicted = Vec::new();
        let granted = self.store.grant(waiter.client, waiter.bytes, &mut evicted);
        self.evicted(&evicted);
        let wait = matches!(&granted, Err(f) if f.kind == FailureKind::StoreFull) && now < waiter.until;
        if !wait {
            let region = granted.map_err(Arc::new);
            out.push(Action::GrantRegion { client: waiter.client, request: waiter.request, region });
        }
        !wait
    }

    /// Copies that made room are not here any more.
    pub(super) fn evicted(&mut self, objects: &[ObjectId]) {
        for object in objects {
            self.copy_gone(*object);
        }
    }

    /// The ledger here needs a copy no more. A task that ran again under another owner may have found its output
    /// here: then the copy is that owner's as well, and stays.
    pub(super) fn drop_own_copy(&mut self, object: ObjectId) {
        let knows = |owner: &NodeId| self.view.knows(*owner);
        let claimed = self.copy_owners.get(&object).is_some_and(|owners| owners.iter().any(knows));
        if !claimed {
            self.copy_owners.remove(&object);
            self.store.free(object);
        }
    }

    /// Another owner needs a copy no more; it stays if the ledger here counts on it.
    pub(super) fn drop_lent_copy(&mut self, object: ObjectId, owner: NodeId) {
        if let Some(owners) = self.copy_owners.get_mut(&object) {
            owners.retain(|o| *o != owner);
            if owners.is_empty() {
                self.copy_owners.remove(&object);
            }
        }
        let ours = self.owner.owns(object) && self.owner.copies(object).contains(&self.id);
        if !ours && !self.copy_owners.contains_key(&object) {
            self.store.free(object);
        }
    }

    fn copy_gone(&mut self, object: ObjectId) {
        self.owner.copy_changed(self.id, object, false, &mut self.effects);
        for to in self.copy_owners.remove(&object).unwrap_or_default() {
            self.effects.push(owner::Effect::Send { to, message: Message::HolderRemoved { object } });
        }
    }
}
