//! The calls. Each reads, decides, and writes if nothing changed in between, or else starts again.

use super::shares::JOBS_PER_NODE_MAX;
use super::{ATTEMPTS_MAX, CALL_DEADLINE, Shared, refusal, unix_ms};
use crate::backend::{Compare, Op, Response, StoreLease, Txn, TxnResult};
use crate::error::StoreError;
use crate::tables::{self, JOBS_KEPT_MAX, JobRecord, NodeRecord, StoredNode};
use bytes::Bytes;
use std::future::Future;
use tharsis_protos::caller::Who;
use tharsis_protos::control::{
    ClusterInfo, CodeUnit, DRIVERS_MAX, EventStream, JobEnd, JobInfo, JobPage, JobProgram, JobRequest,
    KeyPage, Members, NODES_MAX, NODES_PER_MACHINE_MAX, NodeInfo, PROTOCOL, PutIf, Registered, Renewed,
    Service, TablesState,
};
use tharsis_protos::{Refusal, RefusalCode};
use tharsis_types::{CodeUnitId, JobId, NodeId, Resources};
use tokio::time::Instant;

/// A job that runs.
struct Running {
    info: JobInfo,
    /// Version of its record.
    version: u64,
    /// The program that it runs; `None` until its node has reported it.
    program: Option<CodeUnitId>,
}

impl Service for Shared {
    async fn cluster_info(&self) -> Result<ClusterInfo, Refusal> {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let stores = self.listed_stores();
        let revoked = self.revoked.machines();
        Ok(ClusterInfo { cluster: self.cluster, protocol: PROTOCOL, version, stores, revoked })
    }

    async fn register_node(
        &self,
        who: Who,
        node: NodeInfo,
        clock_unix_ms: u64,
    ) -> Result<Registered, Refusal> {
        within("register node", self.register(who, node, clock_unix_ms)).await
    }

    async fn keep_alive(&self, node: NodeId, seen: Option<TablesState>) -> Result<Renewed, Refusal> {
        // Heard of, whatever becomes of the lease.
        self.silences.lock().heard(node, Instant::now());
        let known = within("keep alive", self.renew(node)).await?;
        if !known {
            self.silences.lock().forget(node);
        }
        let is_restored = match &seen {
            // If they cannot be read, the next renewal asks again.
            Some(seen) => self.is_restored_since(seen).await.unwrap_or(false),
            None => false,
        };
        Ok(Renewed { known, stores: self.listed_stores(), tables: self.tables_state(), is_restored })
    }

    async fn unregister_node(&self, node: NodeId, reason: String) -> Result<bool, Refusal> {
        within("unregister node", self.unregister(node, reason)).await
    }

    async fn suspect_node(&self, node: NodeId) -> Result<bool, Refusal> {
        within("suspect node", self.suspect(node)).await
    }

    async fn list_nodes(&self) -> Result<Members, Refusal> {
        within("list nodes", async { self.members().await.map_err(refusal) }).await
    }

    async fn watch_nodes(&self, who: Who, from_revision: u64) -> Result<EventStream, Refusal> {
        within("watch nodes", self.watch(who, from_revision)).await
    }

    async fn register_job(&self, job: JobRequest) -> Result<JobId, Refusal> {
        within("register job", async { self.make_job(job).await.map_err(refusal) }).await
    }

    async fn finish_job(
        &self,
        who: Who,
        job: JobId,
        succeeded: bool,
        message: String,
    ) -> Result<bool, Refusal> {
        let end = JobEnd { succeeded, message, ended_unix_ms: unix_ms() };
        let finish = async {
            let known = self.job(job).await.map_err(refusal)?;
            if let Some((record, _)) = known.filter(|_| !who.is_operator()) {
                who.check_speaks_for(record.info.driver_node)
                    .map_err(|reason| Refusal::new(RefusalCode::PermissionDenied, reason))?;
            }
            self.end_job(job, end).await.map_err(refusal)
        };
        within("finish job", finish).await
    }

    async fn list_jobs(&self, after: JobId, limit: usize) -> Result<JobPage, Refusal> {
        let result = self.ask("list jobs", tables::jobs_after(after, limit)).await?;
        let (entries, more) = tables::ranged(&result, 0);
        let jobs = tables::readable::<JobRecord>(entries).map(|record| record.info).collect();
        Ok(JobPage { jobs, more })
    }

    async fn put_code_unit(&self, unit: CodeUnitId, size_bytes: u64, holder: NodeId) -> Result<(), Refusal> {
        within("put code unit", self.hold_code(unit, size_bytes, holder)).await
    }

    async fn get_code_unit(&self, unit: CodeUnitId) -> Result<CodeUnit, Refusal> {
        let result = self.ask("get code unit", tables::code_holders(unit)).await?;
        match tables::read_code_holders(&result).map_err(refusal)? {
            Some((size_bytes, holders)) => Ok(CodeUnit { size_bytes, holders }),
            None => Err(Refusal::new(RefusalCode::NotFound, format!("no member holds code unit {unit}"))),
        }
    }

    async fn put_program(&self, job: JobId, unit: CodeUnitId, node: NodeId) -> Result<(), Refusal> {
        within("put program", self.set_program(job, unit, node)).await
    }

    async fn get_program(&self, job: JobId) -> Result<JobProgram, Refusal> {
        let ask = async {
            let Running { info, program, .. } = self.running(job).await?;
            if self.node(info.driver_node).await.map_err(refusal)?.is_none() {
                let reason = format!("job {job} ends with node {}, which has left", info.driver_node);
                return Err(Refusal::new(RefusalCode::NotFound, reason));
            }
            Ok(JobProgram { unit: program, driver_node: info.driver_node })
        };
        within("get program", ask).await
    }

    async fn kv_put(
        &self,
        who: Who,
        namespace: String,
        key: Bytes,
        value: Bytes,
        condition: PutIf,
    ) -> Result<bool, Refusal> {
        let key = tables::kv_key(&namespace, &key);
        let txn = Txn::always(vec![Op::put(key.clone(), value.clone())]);
        let txn = match condition {
            PutIf::Always => txn,
            PutIf::Absent => txn.when(Compare::Absent(key.clone())),
            PutIf::Value(old) => txn.when(Compare::Value(key.clone(), old.to_vec())),
        };
        let counted = within("kv put", self.begin_value(who, &key, &value)).await?;
        let done = within("kv put", async { Ok(self.backend.txn(txn).await) }).await?;
        match &done {
            Ok(done) => counted.end(done.succeeded.then_some(done.revision)),
            // It may be there all the same.
            Err(error) if error.is_transient() => drop(counted),
            Err(_) => counted.end(None),
        }
        Ok(done.map_err(refusal)?.succeeded)
    }

    async fn kv_get(&self, namespace: String, key: Bytes) -> Result<Option<Bytes>, Refusal> {
        let result = self.ask("kv get", tables::get(tables::kv_key(&namespace, &key))).await?;
        Ok(tables::found(&result, 0).map(|entry| Bytes::copy_from_slice(&entry.value)))
    }

    async fn kv_delete(&self, namespace: String, key: Bytes, value: Option<Bytes>) -> Result<bool, Refusal> {
        let key = tables::kv_key(&namespace, &key);
        let txn = Txn::always(vec![Op::Delete(key.clone())]);
        let txn = match value {
            Some(value) => txn.when(Compare::Value(key.clone(), value.to_vec())),
            None => txn,
        };
        let result = self.ask("kv delete", txn).await?;
        if result.succeeded {
            self.written.lock().removed(&key);
        }
        Ok(matches!(result.responses.first(), Some(Response::Deleted { existed: true })))
    }

    async fn kv_list(
        &self,
        namespace: String,
        prefix: Bytes,
        after: Bytes,
        limit: usize,
    ) -> Result<KeyPage, Refusal> {
        let result = self.ask("kv list", tables::kv_keys(&namespace, &prefix, &after, limit)).await?;
        let (entries, more) = tables::ranged(&result, 0);
        let own = tables::kv_key(&namespace, b"").len();
        let keys =
            entries.iter().map(|entry| Bytes::copy_from_slice(entry.key.get(own..).unwrap_or_default()));
        Ok(KeyPage { keys: keys.collect(), more })
    }
}

impl Shared {
    pub(super) async fn members(&self) -> Result<Members, StoreError> {
        let result = self.backend.txn(tables::all_nodes()).await?;
        Ok(Members { nodes: tables::members(&result), revision: result.revision })
    }

    async fn ask(&self, call: &'static str, txn: Txn) -> Result<TxnResult, Refusal> {
        within(call, async { self.backend.txn(txn).await.map_err(refusal) }).await
    }

    async fn register(&self, who: Who, node: NodeInfo, clock_unix_ms: u64) -> Result<Registered, Refusal> {
        let clock_skew_ms =
            i64::try_from(i128::from(unix_ms()) - i128::from(clock_unix_ms)).unwrap_or(i64::MAX);
        let count = tables::node_count(&self.backend.txn(tables::count_nodes()).await.map_err(refusal)?);
        // One that asks again, because it was not answered, is there already.
        if NODES_MAX <= count && self.node(node.id).await.map_err(refusal)?.is_none() {
            let reason = format!("the cluster has {count} nodes, the limit is {NODES_MAX}");
            return Err(Refusal::new(RefusalCode::ResourceExhausted, reason));
        }
        let machine = who.machine().map(|machine| machine.to_string());
        if let Some(machine) = &machine {
            self.check_share(machine, &node, who.is_driver()).await?;
        }
        for _ in 0..ATTEMPTS_MAX {
            if let Some(lease) = self.join(&node, machine.clone()).await? {
                self.leases.lock().insert(node.id, lease);
                self.silences.lock().heard(node.id, Instant::now());
                self.knock_at(node.id, &node.listen);
                let stores = self.listed_stores();
                return Ok(Registered { lease_ttl: self.lease_ttl, clock_skew_ms, stores });
            }
        }
        Err(refusal(StoreError::Contention { what: "register node", attempts: ATTEMPTS_MAX }))
    }

    /// Ends nodes of the machine that were at the address of a new one. Refuses a node above the share of its
    /// machine, or one of a driver above that of all nodes without resources. Heads have none either, and
    /// always come in.
    async fn check_share(&self, machine: &str, node: &NodeInfo, is_driver: bool) -> Result<(), Refusal> {
        let result = self.backend.txn(tables::all_nodes()).await.map_err(refusal)?;
        let others = tables::readable::<NodeRecord>(tables::ranged(&result, 0).0)
            .filter(|record| record.info.id != node.id);
        let (mut of_machine, mut drivers, mut former) = (0, 0, Vec::new());
        for record in others {
            let is_its = record.machine.as_deref() == Some(machine);
            if is_its && (&record.info.listen, &record.info.host) == (&node.listen, &node.host) {
                former.push(record.info.id);
                continue;
            }
            of_machine += usize::from(is_its);
            drivers += usize::from(record.info.resources == Resources::default());
        }
        let reason = if NODES_PER_MACHINE_MAX <= of_machine {
            format!("machine {machine} has {of_machine} nodes, the limit is {NODES_PER_MACHINE_MAX}")
        } else if is_driver && DRIVERS_MAX <= drivers {
            format!("{drivers} nodes without resources are members, the limit is {DRIVERS_MAX}")
        } else {
            // A port has one listener: the one before has ended, and what ran there need not wait for its
            // lease.
            for node in former {
                self.unregister(node, "another node of its machine has its address".to_owned()).await?;
            }
            return Ok(());
        };
        Err(Refusal::new(RefusalCode::ResourceExhausted, reason))
    }

    /// One attempt: the node's lease, or `None` if the record was changed meanwhile.
    async fn join(&self, node: &NodeInfo, machine: Option<String>) -> Result<Option<StoreLease>, Refusal> {
        if let Some(known) = self.node(node.id).await.map_err(refusal)? {
            if known.record.info != *node || known.record.departure.is_some() {
                let is_leaving = known.record.departure.is_some();
                let state = if is_leaving { "has left" } else { "is a member with other properties" };
                let reason = format!("node {} {state}: start again with a new id", node.id);
                return Err(Refusal::new(RefusalCode::AlreadyExists, reason));
            }
            return self.keep(&known).await.map_err(refusal);
        }
        let record = NodeRecord { info: node.clone(), departure: None, machine };
        self.under_new_lease(|lease| tables::join(&record, lease)).await.map_err(refusal)
    }

    async fn renew(&self, node: NodeId) -> Result<bool, Refusal> {
        let remembered = self.leases.lock().get(&node).copied();
        if let Some(lease) = remembered {
            match self.backend.lease_keep_alive(lease).await {
                Ok(()) => return Ok(true),
                Err(StoreError::LeaseNotFound { .. }) => drop(self.leases.lock().remove(&node)),
                Err(error) => return Err(refusal(error)),
            }
        }
        for _ in 0..ATTEMPTS_MAX {
            let known = self.node(node).await.map_err(refusal)?;
            let Some(known) = known.filter(|known| known.record.departure.is_none()) else {
                return Ok(false);
            };
            if let Some(lease) = self.keep(&known).await.map_err(refusal)? {
                self.leases.lock().insert(node, lease);
                return Ok(true);
            }
        }
        Err(refusal(StoreError::Contention { what: "keep alive", attempts: ATTEMPTS_MAX }))
    }

    /// Renews the lease of a member, or gives it a new one: as long as the record exists, no watcher was told
    /// that the node is dead. `None` if the record or the lease changed since they were read.
    async fn keep(&self, known: &StoredNode) -> Result<Option<StoreLease>, StoreError> {
        if let Some(lease) = known.lease {
            match self.backend.lease_keep_alive(lease).await {
                Ok(()) => return Ok(Some(lease)),
                Err(StoreError::LeaseNotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.under_new_lease(|lease| Ok(tables::revive(known, lease))).await
    }

    /// Carries out a transaction that puts a node under a new lease; `None` if its comparisons do not hold.
    async fn under_new_lease(
        &self,
        txn: impl FnOnce(StoreLease) -> Result<Txn, StoreError>,
    ) -> Result<Option<StoreLease>, StoreError> {
        let (lease, _) = self.backend.lease_grant(self.lease_ttl).await?;
        let done = match txn(lease) {
            Ok(txn) => self.backend.txn(txn).await,
            Err(error) => Err(error),
        };
        match done {
            Ok(result) if result.succeeded => Ok(Some(lease)),
            other => {
                // If this fails too, the lease expires by itself.
                let _ = self.backend.lease_revoke(lease).await;
                other.map(|_| None)
            }
        }
    }

    /// Whether the back end grants leases now: one that is full refuses them.
    pub(super) async fn grants_leases(&self) -> Result<(), StoreError> {
        let (lease, _) = self.backend.lease_grant(self.lease_ttl).await?;
        // If this fails, the lease expires by itself.
        let _ = self.backend.lease_revoke(lease).await;
        Ok(())
    }

    pub(super) async fn unregister(&self, node: NodeId, reason: String) -> Result<bool, Refusal> {
        self.leases.lock().remove(&node);
        self.silences.lock().forget(node);
        for _ in 0..ATTEMPTS_MAX {
            let Some(known) = self.node(node).await.map_err(refusal)? else { return Ok(false) };
            let record = known.record;
            let leaving =
                NodeRecord { departure: Some(record.departure.unwrap_or_else(|| reason.clone())), ..record };
            let txn = tables::depart(&leaving, known.version).map_err(refusal)?;
            let version = match self.backend.txn(txn).await {
                Ok(done) if done.succeeded => known.version + 1,
                Ok(_) => continue,
                // A full store still deletes: the leave is shown without its reason.
                Err(StoreError::OutOfSpace { .. }) => known.version,
                Err(error) => return Err(refusal(error)),
            };
            self.backend.txn(tables::remove(node, version)).await.map_err(refusal)?;
            self.forget_code_of(node).await.map_err(refusal)?;
            if let Some(lease) = known.lease {
                // If this fails, the lease expires by itself.
                let _ = self.backend.lease_revoke(lease).await;
            }
            return Ok(true);
        }
        Err(refusal(StoreError::Contention { what: "unregister node", attempts: ATTEMPTS_MAX }))
    }

    /// Removes the code units of a node that has left from the tables. Until then readers skip them.
    pub(super) async fn forget_code_of(&self, node: NodeId) -> Result<(), StoreError> {
        self.holders.lock().remove(&node);
        let mut after = None;
        loop {
            let result = self.backend.txn(tables::code_keys(after)).await?;
            let (entries, more) = tables::ranged(&result, 0);
            for txn in tables::forget_code_of(node, entries) {
                self.backend.txn(txn).await?;
            }
            after = entries.last().map(|entry| entry.key.clone());
            if !more {
                return Ok(());
            }
        }
    }

    pub(super) async fn node(&self, node: NodeId) -> Result<Option<StoredNode>, StoreError> {
        tables::read_node(&self.backend.txn(tables::node_and_lease(node)).await?)
    }

    async fn make_job(&self, job: JobRequest) -> Result<JobId, StoreError> {
        for _ in 0..ATTEMPTS_MAX {
            let counter =
                tables::read_job_counter(&self.backend.txn(tables::job_counter(&job.request)).await?)?;
            if let Some(made) = counter.made {
                return Ok(made);
            }
            let running = self.backend.txn(tables::jobs_driven_by(job.driver_node)).await?;
            let count = tables::ranged(&running, 0).0.len();
            if JOBS_PER_NODE_MAX <= count {
                let what = "jobs that run on the node of their driver";
                return Err(StoreError::TooMany { what, count: count + 1, limit: JOBS_PER_NODE_MAX });
            }
            let info = JobInfo {
                id: JobId(counter.next),
                name: job.name.clone(),
                namespace: job.namespace.clone(),
                code_unit: job.code_unit,
                driver_node: job.driver_node,
                entrypoint: job.entrypoint.clone(),
                started_unix_ms: unix_ms(),
                end: None,
                terms: job.terms.clone(),
            };
            let outdated = self.outdated_job(counter.next).await?;
            let record = JobRecord { info, request: job.request };
            if self.backend.txn(tables::make_job(&record, &counter, outdated)?).await?.succeeded {
                // So that the job's node remembers a state of the tables that has it. The judge looks again.
                let _looked = self.look_at_lineage().await;
                return Ok(record.info.id);
            }
        }
        Err(StoreError::Contention { what: "register job", attempts: ATTEMPTS_MAX })
    }

    /// The job that is dropped when a job with id `next` is made, if it has ended.
    async fn outdated_job(&self, next: u32) -> Result<Option<JobId>, StoreError> {
        let Some(old) = next.checked_sub(JOBS_KEPT_MAX).filter(|old| 0 < *old).map(JobId) else {
            return Ok(None);
        };
        let ended = self.job(old).await?.is_some_and(|(record, _)| record.info.end.is_some());
        Ok(ended.then_some(old))
    }

    pub(super) async fn end_job(&self, job: JobId, end: JobEnd) -> Result<bool, StoreError> {
        for _ in 0..ATTEMPTS_MAX {
            let Some((mut record, version)) = self.job(job).await? else { return Ok(false) };
            if record.info.end.is_some() {
                return Ok(true);
            }
            record.info.end = Some(end.clone());
            if self.backend.txn(tables::end_job(&record, version)?).await?.succeeded {
                return Ok(true);
            }
        }
        Err(StoreError::Contention { what: "finish job", attempts: ATTEMPTS_MAX })
    }

    async fn job(&self, job: JobId) -> Result<Option<(JobRecord, u64)>, StoreError> {
        let result = self.backend.txn(tables::get(tables::job_key(job))).await?;
        let Some(entry) = tables::found(&result, 0) else { return Ok(None) };
        Ok(Some((tables::parse(entry)?, entry.version)))
    }

    /// A running job, and its program if that is known.
    async fn running(&self, job: JobId) -> Result<Running, Refusal> {
        let result = self.backend.txn(tables::job_and_program(job)).await.map_err(refusal)?;
        let gone = |how| Refusal::new(RefusalCode::NotFound, format!("job {job} {how}"));
        let entry = tables::found(&result, 0).ok_or_else(|| gone("is not known"))?;
        let record: JobRecord = tables::parse(entry).map_err(refusal)?;
        if record.info.end.is_some() {
            return Err(gone("has ended"));
        }
        let program = tables::read_program(&result).map_err(refusal)?;
        Ok(Running { info: record.info, version: entry.version, program })
    }

    /// Stores a job's program if the job runs, and `node` is its driver's node and holds the program. A job
    /// has one program for its life.
    async fn set_program(&self, job: JobId, unit: CodeUnitId, node: NodeId) -> Result<(), Refusal> {
        for _ in 0..ATTEMPTS_MAX {
            let running = self.running(job).await?;
            if running.info.driver_node != node {
                let reason =
                    format!("job {job} is one of node {}, not of node {node}", running.info.driver_node);
                return Err(Refusal::new(RefusalCode::PermissionDenied, reason));
            }
            match running.program {
                Some(known) if known == unit => return Ok(()),
                Some(known) => {
                    let reason = format!("job {job} runs code unit {known}, it cannot become {unit}");
                    return Err(Refusal::new(RefusalCode::AlreadyExists, reason));
                }
                None => {}
            }
            let holders = self.backend.txn(tables::code_holders(unit)).await.map_err(refusal)?;
            let held = tables::read_code_holders(&holders).map_err(refusal)?;
            if !held.is_some_and(|(_, holders)| holders.contains(&node)) {
                let reason = format!("node {node} has not said that it holds code unit {unit}");
                return Err(Refusal::new(RefusalCode::FailedPrecondition, reason));
            }
            let txn = tables::set_program(job, unit, running.version);
            if self.backend.txn(txn).await.map_err(refusal)?.succeeded {
                return Ok(());
            }
        }
        Err(refusal(StoreError::Contention { what: "put program", attempts: ATTEMPTS_MAX }))
    }

    async fn hold_code(&self, unit: CodeUnitId, size_bytes: u64, holder: NodeId) -> Result<(), Refusal> {
        let not_member = || {
            let reason = format!("node {holder} is not a member, so it cannot hold code units");
            Refusal::new(RefusalCode::FailedPrecondition, reason)
        };
        let known = self.backend.txn(tables::code_holders(unit)).await.map_err(refusal)?;
        if let Some((found, _)) = tables::read_code_holders(&known).map_err(refusal)?
            && found != size_bytes
        {
            let reason =
                format!("code unit {unit} has {found} bytes, not {size_bytes}: one of the hashes is wrong");
            return Err(Refusal::new(RefusalCode::FailedPrecondition, reason));
        }
        for _ in 0..ATTEMPTS_MAX {
            let member = self.node(holder).await.map_err(refusal)?;
            let member = member.filter(|known| known.record.departure.is_none()).ok_or_else(not_member)?;
            let txn = tables::hold_code(unit, size_bytes, holder, member.version);
            if self.backend.txn(txn).await.map_err(refusal)?.succeeded {
                return self.note_held(holder).await.map_err(refusal);
            }
        }
        Err(refusal(StoreError::Contention { what: "put code unit", attempts: ATTEMPTS_MAX }))
    }
}

async fn within<T>(
    call: &'static str,
    answer: impl Future<Output = Result<T, Refusal>>,
) -> Result<T, Refusal> {
    match tokio::time::timeout(CALL_DEADLINE, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(refusal(StoreError::Deadline { what: call, deadline: CALL_DEADLINE })),
    }
}
