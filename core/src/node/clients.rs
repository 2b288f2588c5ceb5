//! What drivers and workers ask for: references, values, regions.

use super::Node;
use crate::event::{Action, OutputValue, Remains, Value};
use crate::lease;
use crate::pull::{Missing, Purpose};
use crate::slab::Slot;
use std::sync::Arc;
use tharsis_types::{ClientId, Failure, FailureKind, ObjectId, RefId, TaskClass};

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
                Ok(lies) => {
                    self.map(client, token, object);
                    if lies != extent {
                        self.store.keep_double(client, token, extent);
                    }
                    Value::Stored { len: lies.len }
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

    pub(super) fn released(&mut self, client: ClientId, token: u64, reference: RefId, out: &mut Vec<Action>) {
        let object = reference.object;
        self.unmap_all(client, token, object);
        self.refusals.remove(&(client, token));
        if self.reads.remove(&(client, token)).is_some() {
            self.pull_change(out, |pulls, room, effects| {
                pulls.forget(Purpose::Read(client.0, token), room, effects)
            });
        }
        self.owner.released(client, token, object, &mut self.effects);
    }

    /// A client wants a value as soon as there is one.
    pub(super) fn fetch(&mut self, client: ClientId, token: u64, reference: RefId) {
        self.refusals.remove(&(client, token));
        self.owner.fetch(client, token, reference, &mut self.effects);
    }

    /// Sends the bytes of a stored object to a client, from another node if need be.
    pub(super) fn serve(&mut self, client: ClientId, token: u64, object: ObjectId, out: &mut Vec<Action>) {
        if let Some(extent) = self.map(client, token, object) {
            out.push(Action::Deliver { client, token, object, extent: Some(extent) });
            return self.read_ahead(object, out);
        }
        let Some(Value::Stored { len }) = self.owner.value_ref(object) else {
            // Its copies may have been lost since it was decided to serve it.
            match self.owner.reference_of(object).filter(|_| self.owner.is_awaited(object)) {
                Some(reference) => self.owner.fetch(client, token, reference, &mut self.effects),
                None => out.push(Action::Deliver { client, token, object, extent: None }),
            }
            return;
        };
        let missing = Missing { object, len: *len, holders: self.holders(object) };
        self.reads.insert((client, token), object);
        self.want(Purpose::Read(client.0, token), vec![missing], out);
        self.read_ahead(object, out);
    }

    /// What the transfers of a bundle brought is handed on.
    pub(super) fn pulled(&mut self, purpose: Purpose, out: &mut Vec<Action>) {
        match purpose {
            Purpose::Ahead(_) => {}
            Purpose::Arguments(run) => self.arguments_ready(Slot::from_number(run), out),
            Purpose::Read(client, token) => {
                let client = ClientId(client);
                let Some(object) = self.reads.remove(&(client, token)) else { return };
                self.serve(client, token, object, out);
            }
        }
    }

    /// No copy of an object is left where somebody waits for it.
    pub(super) fn pull_lost(
        &mut self,
        purpose: Purpose,
        object: ObjectId,
        cause: Option<&str>,
        out: &mut Vec<Action>,
    ) {
        if matches!(purpose, Purpose::Ahead(_)) {
            // Whoever asks for it finds out.
            return;
        }
        if !self.owner.is_awaited(object) {
            self.owner.lost(object, cause, &mut self.effects);
        }
        let is_awaited = self.owner.is_awaited(object);
        match purpose {
            Purpose::Ahead(_) => {}
            Purpose::Arguments(run) if is_awaited => {
                self.argument_awaited(Slot::from_number(run), object, out)
            }
            Purpose::Arguments(run) => self.arguments_lost(Slot::from_number(run), object, cause, out),
            Purpose::Read(client, token) => {
                let client = ClientId(client);
                self.reads.remove(&(client, token));
                match self.owner.reference_of(object).filter(|_| is_awaited) {
                    Some(reference) => self.owner.fetch(client, token, reference, &mut self.effects),
                    None => out.push(Action::Deliver { client, token, object, extent: None }),
                }
            }
        }
    }

    pub(super) fn client_gone(
        &mut self,
        client: ClientId,
        remains: Remains,
        failure: &Arc<Failure>,
        out: &mut Vec<Action>,
    ) {
        if remains != Remains::Nothing {
            self.keep_arguments(client);
        }
        self.runs_lost(client, failure, out);
        let computes = remains == Remains::Thread;
        self.lease_change(out, |leases, effects| match computes {
            true => leases.worker_cut_off(client, effects),
            false => leases.worker_gone(client, effects),
        });
        self.apply(out);
        self.room_waiters.retain(|w| w.client != client);
        self.regions_asked.remove(&client);
        self.forget_mapped(client);
        let tokens = (client, 0)..=(client, u64::MAX);
        let refused: Vec<_> = self.refusals.range(tokens.clone()).map(|(key, _)| *key).collect();
        refused.into_iter().for_each(|key| drop(self.refusals.remove(&key)));
        let reads: Vec<_> = self.reads.range(tokens).map(|(key, _)| *key).collect();
        for (client, token) in reads {
            self.reads.remove(&(client, token));
            self.pull_change(out, |pulls, room, effects| {
                pulls.forget(Purpose::Read(client.0, token), room, effects)
            });
        }
        if remains == Remains::Nothing {
            self.store.client_gone(client);
        }
        self.owner.client_gone(client, &mut self.effects);
        if let Some(job) = self.drivers.remove(&client) {
            self.owner.drop_job(job, &mut self.effects);
            self.peers.job_ended(job);
            self.job_ended(job, out);
            self.apply(out);
            out.extend(self.store.free_ranges().map(Action::Reclaim));
        }
    }

    /// Forgets which values a client that is gone had mapped.
    fn forget_mapped(&mut self, client: ClientId) {
        let first = (client, 0, ObjectId::from_bytes([0; ObjectId::LEN]));
        let mapped = self.mapped.range(first..).map(|(key, _)| *key).take_while(|(of, ..)| *of == client);
        for (client, token, object) in mapped.collect::<Vec<_>>() {
            self.mapped.remove(&(client, token, object));
            self.unmap_asked.remove(&(client, token));
        }
    }

    /// Workers of a job are not needed any more.
    pub(super) fn job_ended(&mut self, job: tharsis_types::JobId, out: &mut Vec<Action>) {
        self.leases.job_ended(job);
        out.push(Action::ForgetJob { job });
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

    /// Waits for objects of other nodes; those without any holder are lost at once.
    pub(super) fn want(&mut self, purpose: Purpose, missing: Vec<Missing>, out: &mut Vec<Action>) {
        if let Some(lost) = missing.iter().find(|m| m.holders.is_empty()).map(|m| m.object) {
            self.pull_lost(purpose, lost, None, out);
            return;
        }
        self.pull_change(out, |pulls, room, effects| pulls.want(purpose, missing, room, effects));
    }
}
