//! Requests of drivers and workers, references and values, and the replies to them.
//!
//! | state of a reference that a client wants to read | where | enters by | leaves by |
//! |---|---|---|---|
//! | its value is on its way here | `reads`, a bundle of [`crate::pull`] | `begin_read` | `end_read` |
//! | its value exists and cannot be brought here | `refusals` | `refuse` | `forget_refusal`: asked again, or released |
//!
//! Clients are from outside: the ids that they name may be gone, or may never have been theirs.

use super::Node;
use super::runs::Run;
use super::starts::Parent;
use crate::event::{Action, Operation, OutputValue, Record, Remains, Tokens, Value};
use crate::owner::{GraphSubmitter, Submission};
use crate::pull::{Missing, Purpose};
use crate::slab::Slot;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tharsis_types::hash::IdMap;
use tharsis_types::peer::Message;
use tharsis_types::{
    ClientId, Failure, FailureKind, GraphPart, JobId, NodeId, ObjectId, Quota, RefId, TaskArgs, TaskClass,
    TaskId,
};

/// Drivers, and the values that clients wait to read.
#[derive(Debug, Default)]
pub(super) struct Clients {
    drivers: IdMap<ClientId, JobId>,
    /// Jobs without a driver, which end with their last detached actor or placement group.
    outlived: BTreeSet<JobId>,
    /// Objects that clients are waiting to read.
    reads: BTreeMap<(ClientId, u64), ObjectId>,
    /// Reads that were refused although the value exists.
    refusals: BTreeMap<(ClientId, u64), Value>,
}

impl Clients {
    pub(super) fn driver_joined(&mut self, client: ClientId, job: JobId) {
        let before = self.drivers.insert(client, job);
        assert!(before.is_none(), "driver {} joins twice", client.0);
    }

    /// The jobs of the drivers.
    pub(super) fn driven_jobs(&self) -> BTreeSet<JobId> {
        self.drivers.values().chain(&self.outlived).copied().collect()
    }

    /// Whether a job has a driver here, or had one and lives on.
    pub(super) fn is_driven_here(&self, job: JobId) -> bool {
        self.outlived.contains(&job) || self.drivers.values().any(|of| *of == job)
    }

    /// Number of drivers.
    pub(super) fn driver_count(&self) -> usize {
        self.drivers.len()
    }

    /// The job of a driver that is gone.
    fn driver_gone(&mut self, client: ClientId) -> Option<JobId> {
        self.drivers.remove(&client)
    }

    /// A client waits for the value of a reference; it may have asked before.
    fn begin_read(&mut self, client: ClientId, token: u64, object: ObjectId) {
        self.reads.insert((client, token), object);
    }

    /// Ends the wait of a client for the value of a reference; returns the object if the client waited.
    fn end_read(&mut self, client: ClientId, token: u64) -> Option<ObjectId> {
        self.reads.remove(&(client, token))
    }

    /// The value that a client waits for is here.
    fn read_is_here(&mut self, client: ClientId, token: u64) -> ObjectId {
        let object = self.reads[&(client, token)];
        self.reads.remove(&(client, token));
        object
    }

    /// Notes the reason why a value cannot be brought here, for the reply to the client.
    fn refuse(&mut self, client: ClientId, token: u64, failure: Arc<Failure>) {
        let is_read = self.reads.contains_key(&(client, token));
        assert!(!is_read, "client {} waits to read what it is refused", client.0);
        self.refusals.insert((client, token), Value::Failed(failure));
    }

    /// The failure with which the read of a client was refused, if it was.
    pub(super) fn refusal(&self, client: ClientId, token: u64) -> Option<&Value> {
        self.refusals.get(&(client, token))
    }

    /// Forgets a refusal: the client asks again, or released the reference.
    fn forget_refusal(&mut self, client: ClientId, token: u64) {
        self.refusals.remove(&(client, token));
    }

    /// Forgets the refusals of a client that is gone; returns its names for the values that it waits to read.
    fn reads_of_gone(&mut self, client: ClientId) -> Vec<u64> {
        let tokens = (client, 0)..=(client, u64::MAX);
        let refused: Vec<_> = self.refusals.range(tokens.clone()).map(|(key, _)| *key).collect();
        refused.into_iter().for_each(|key| drop(self.refusals.remove(&key)));
        self.reads.range(tokens).map(|((_, token), _)| *token).collect()
    }

    /// Asserts that every waiting read has a bundle; `is_wanted` says which bundles there are.
    pub(super) fn check(&self, is_wanted: impl Fn(Purpose<Slot<Run>>) -> bool) {
        for (client, token) in self.reads.keys() {
            assert!(is_wanted(Purpose::Read(*client, *token)), "client {} waits for nothing", client.0);
        }
        let is_failed = |value: &Value| matches!(value, Value::Failed(_));
        assert!(self.refusals.values().all(is_failed), "a read was refused with a value");
    }

    /// Sizes of tables that must be empty when nothing is under way.
    pub(super) fn leftovers(&self) -> [(&'static str, usize); 2] {
        [("clients that wait to read", self.reads.len()), ("reads that were refused", self.refusals.len())]
    }
}

/// References and values.
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
            out.push(Record::Value { token, object, extent: None }.to(client));
        }
    }

    pub(super) fn released(&mut self, client: ClientId, token: u64, reference: RefId, out: &mut Vec<Action>) {
        let object = reference.object;
        self.unmap_all(client, token, object);
        self.clients.forget_refusal(client, token);
        if self.clients.end_read(client, token).is_some() {
            self.forget_read(client, token, out);
        }
        self.owner.released(client, token, object, &mut self.effects);
    }

    /// A client wants a value as soon as there is one.
    pub(super) fn fetch(&mut self, client: ClientId, token: u64, reference: RefId) {
        self.clients.forget_refusal(client, token);
        self.owner.fetch(client, token, reference, &mut self.effects);
    }

    /// A client wants a task stopped.
    pub(super) fn cancel(&mut self, reference: RefId, force: bool, recursive: bool) {
        // The client takes this node for the owner of everything that it submitted, even if the task ran
        // before for another owner: the ledger knows the owner.
        let reference = self.owner.reference_of(reference.object).unwrap_or(reference);
        if reference.owner == self.id {
            self.owner.cancel(reference.object, force, recursive, &mut self.effects);
        } else {
            let task = reference.object.task;
            self.send(reference.owner, Message::TaskCancel { task, force, recursive });
        }
    }

    /// A client wants an actor started again.
    pub(super) fn restart_actor(&mut self, reference: RefId) {
        let reference = self.owner.reference_of(reference.object).unwrap_or(reference);
        if reference.owner == self.id {
            self.owner.restart_actor(reference.object, &mut self.effects);
        } else {
            self.send(reference.owner, Message::ActorRestart { actor: reference.object.task });
        }
    }
}

/// Calls and graphs.
impl Node {
    /// A client calls a function.
    pub(super) fn submitted(
        &mut self,
        client: ClientId,
        run: Option<u32>,
        class: u32,
        task: TaskId,
        tokens: Tokens,
        args: TaskArgs,
    ) {
        let Parent { task: parent, depth, deadline } = self.note_parent(client, run, task);
        let parent = parent.filter(|_| !self.leases.is_host(client));
        let new = Submission { client, parent, depth, deadline, class, task, tokens, args };
        self.owner.submit(new, &mut self.effects);
    }

    /// A client submits the next part of a graph: with the first, the graph is a call of the client's task.
    pub(super) fn submit_graph(
        &mut self,
        client: ClientId,
        run: Option<u32>,
        graph: TaskId,
        part: &GraphPart,
    ) {
        let submitter = if self.owner.awaits_part(client, graph) {
            GraphSubmitter::default()
        } else {
            let Parent { task, depth, deadline } = self.note_parent(client, run, graph);
            GraphSubmitter { is_task: task.is_some(), depth, deadline }
        };
        self.owner.submit_graph(client, graph, submitter, part, &mut self.effects);
    }
}

/// Values that clients wait to read.
impl Node {
    /// Sends the bytes of a stored object to a client, from another node if need be.
    pub(super) fn serve(&mut self, client: ClientId, token: u64, object: ObjectId, out: &mut Vec<Action>) {
        if let Some(extent) = self.map(client, token, object) {
            out.push(Record::Value { token, object, extent: Some(extent) }.to(client));
            return self.read_ahead(object, out);
        }
        let Some(Value::Stored { len }) = self.owner.value_ref(object) else {
            // Its copies may have been lost after the decision to serve it.
            return self.fetch_or_deliver(client, token, object, out);
        };
        let missing = Missing { object, len: *len, holders: self.holders(object) };
        self.clients.begin_read(client, token, object);
        self.want(Purpose::Read(client, token), vec![missing], out);
        self.read_ahead(object, out);
    }

    /// Makes a client wait for a value that is being computed again, or tells it the present state.
    fn fetch_or_deliver(&mut self, client: ClientId, token: u64, object: ObjectId, out: &mut Vec<Action>) {
        match self.owner.reference_of(object).filter(|_| self.owner.is_awaited(object)) {
            Some(reference) => self.owner.fetch(client, token, reference, &mut self.effects),
            None => out.push(Record::Value { token, object, extent: None }.to(client)),
        }
    }

    /// A value that a client waits to read is here.
    pub(super) fn read_arrived(&mut self, client: ClientId, token: u64, out: &mut Vec<Action>) {
        let object = self.clients.read_is_here(client, token);
        self.serve(client, token, object, out);
    }

    /// A value that a client waits to read has no copy left.
    pub(super) fn read_lost(
        &mut self,
        client: ClientId,
        token: u64,
        object: ObjectId,
        out: &mut Vec<Action>,
    ) {
        self.clients.end_read(client, token);
        self.fetch_or_deliver(client, token, object, out);
    }

    /// A value that a client waits to read cannot be brought here, because there is no room.
    pub(super) fn read_refused(
        &mut self,
        client: ClientId,
        token: u64,
        object: ObjectId,
        failure: &Arc<Failure>,
        out: &mut Vec<Action>,
    ) {
        self.clients.end_read(client, token);
        self.clients.refuse(client, token, failure.clone());
        out.push(Record::Value { token, object, extent: None }.to(client));
    }

    /// Drops the bundle of a read that a client does not wait for any more.
    fn forget_read(&mut self, client: ClientId, token: u64, out: &mut Vec<Action>) {
        let purpose = Purpose::Read(client, token);
        self.pull_change(out, |pulls, room, effects| pulls.forget(purpose, room, effects));
    }
}

/// Clients that come and go.
impl Node {
    /// A driver joined: a worker is started for its job before anything asks for one.
    pub(super) fn joined(
        &mut self,
        client: ClientId,
        job: JobId,
        weight: u32,
        quota: Option<Quota>,
        out: &mut Vec<Action>,
    ) {
        self.clients.driver_joined(client, job);
        self.end_made_up(job, out);
        self.begin_job(job, weight, quota);
        self.leases.serve_also(job);
        self.lease_change(out, |leases, effects| leases.prestart(job, effects));
    }

    /// Ends what members have asked for in the name of a job that begins now: jobs are numbered one after the
    /// other.
    fn end_made_up(&mut self, job: JobId, out: &mut Vec<Action>) {
        let (mut busy, mut effects) = (Vec::new(), Vec::new());
        let runs = &self.runs;
        self.leases.end_made_up(job, |client| runs.is_busy(client), &mut busy, &mut effects);
        self.apply_leases(effects, out);
        let text = "it ran in the name of a job that had not begun";
        let reason = Arc::new(Failure::new(FailureKind::Shutdown, text));
        let kill = |client| Action::Do(Operation::KillWorker { client, reason: reason.clone() });
        out.extend(busy.into_iter().map(kill));
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
        self.lease_change(out, |leases, effects| {
            if computes {
                leases.worker_cut_off(client, effects)
            } else {
                leases.worker_gone(client, effects)
            }
        });
        self.apply(out);
        self.room.client_gone(client);
        self.checkpoints.client_gone(client);
        self.mappings.client_gone(client);
        for token in self.clients.reads_of_gone(client) {
            self.clients.end_read(client, token);
            self.forget_read(client, token, out);
        }
        if remains == Remains::Nothing {
            self.store.client_gone(client);
        }
        self.owner.client_gone(client, &mut self.effects);
        if let Some(job) = self.clients.driver_gone(client) {
            self.clients.outlived.insert(job);
            self.end_outlived(out);
        }
    }

    /// Ends the jobs that have neither a driver nor an actor or a placement group that lives without one.
    pub(super) fn end_outlived(&mut self, out: &mut Vec<Action>) {
        while let Some(job) = self.clients.outlived.iter().copied().find(|job| !self.owner.has_detached(*job))
        {
            self.clients.outlived.remove(&job);
            self.job_ended(job, None, out);
            self.apply(out);
            out.extend(self.store.free_ranges().map(|range| Action::Do(Operation::Reclaim(range))));
        }
    }

    /// The jobs of other nodes' drivers of which this node has anything that goes with their end.
    #[must_use]
    pub fn jobs_of_others(&self) -> BTreeSet<JobId> {
        let all = self.leases.jobs().chain(self.owner.jobs()).chain(self.involved.jobs());
        all.filter(|job| !self.clients.is_driven_here(*job) && !self.owner.has_ended(*job)).collect()
    }

    /// Another node says that a job has ended. Each member can say so of each job, and the end goes a long
    /// way: only the node of the driver is believed, and the control store, which are not known here.
    pub(super) fn job_end_told(&mut self, job: JobId, from: NodeId, out: &mut Vec<Action>) {
        if self.owner.has_ended(job) {
            // Something of it may have come since.
            self.job_ended(job, Some(from), out);
        } else if !self.clients.is_driven_here(job) {
            out.push(Action::Do(Operation::ConfirmEnd { job, from }));
        }
    }

    /// Ends the tasks and the workers of a job that has ended, and tells the nodes that this one has involved
    /// in it. `from` is the node that told this one.
    pub(super) fn job_ended(&mut self, job: JobId, from: Option<NodeId>, out: &mut Vec<Action>) {
        self.clients.outlived.remove(&job);
        self.owner.drop_job(job, &mut self.effects);
        let asked = self.involved.end(job);
        let to: Vec<_> =
            if asked.some_gone { self.view.others().collect() } else { asked.nodes.into_iter().collect() };
        for node in to.into_iter().filter(|node| Some(*node) != from) {
            self.send(node, Message::JobEnded { job });
        }
        self.leases.job_ended(job);
        self.budgets.end(job);
        self.terms.forget(job);
        out.push(Action::Do(Operation::ForgetJob { job }));
        let workers: Vec<_> = self.leases.workers_of(job).collect();
        let reason = Arc::new(Failure::new(FailureKind::Shutdown, "the driver of the job is gone"));
        out.extend(
            workers
                .into_iter()
                .map(|client| Action::Do(Operation::KillWorker { client, reason: reason.clone() })),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tharsis_types::TaskId;

    #[test]
    fn what_a_client_waits_for_goes_with_it() {
        let (client, other) = (ClientId(1), ClientId(2));
        let object = ObjectId::put(TaskId::root(JobId(1)), 0);
        let mut clients = Clients::default();
        clients.driver_joined(client, JobId(1));
        for reader in [client, other] {
            clients.begin_read(reader, 7, object);
            clients.refuse(reader, 8, Arc::new(Failure::new(FailureKind::OutOfMemory, "full")));
        }
        clients.check(|_| true);
        assert_eq!(clients.reads_of_gone(client), [7]);
        assert_eq!(clients.end_read(client, 7), Some(object));
        assert!(clients.refusal(client, 8).is_none() && clients.refusal(other, 8).is_some());
        assert_eq!((clients.driver_gone(client), clients.driver_gone(other)), (Some(JobId(1)), None));
        assert_eq!(clients.read_is_here(other, 7), object);
        clients.check(|_| false);
    }

    #[test]
    #[should_panic(expected = "waits for nothing")]
    fn whoever_waits_to_read_waits_for_something() {
        let mut clients = Clients::default();
        clients.begin_read(ClientId(1), 7, ObjectId::put(TaskId::root(JobId(1)), 0));
        clients.check(|_| false);
    }
}
