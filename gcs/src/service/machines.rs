//! The machines of a cluster with certificates: what its authority noted, as a table.
//!
//! Each head has the authority's folder, where commands write. What is new there becomes rows of the table,
//! and new rows go into the folder, so all heads over one back end know the same tokens, the same machines
//! of nodes, and the same machines that were shut out. The latter are also told to members with the
//! membership, and their nodes are removed. A node is given to a machine by a transaction: of two machines
//! that ask two heads for it, one gets it.

use super::follow::follow;
use super::{Shared, refusal};
use crate::backend::WatchEvent;
use crate::error::StoreError;
use crate::tables::{self, MACHINES, NodeRecord};
use futures::future::BoxFuture;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};
use tharsis_protos::connection::Signer;
use tharsis_protos::control::MachineId;
use tharsis_protos::owners::{Claimed, Owners};
use tharsis_protos::rows::Row;
use tharsis_types::NodeId;
use tokio::time::{Instant, sleep};

/// Between two looks into the authority's folder, where commands write.
const FOLDER_LOOKS: Duration = Duration::from_millis(250);
/// More than the tick of a clock of files.
const TICK: Duration = Duration::from_secs(1);
/// So many rows are looked for one by one.
const FEW: usize = 16;
/// Between two rounds in which rows that are over are removed.
const ROUNDS: Duration = Duration::from_secs(3600);

impl Shared {
    /// Reads the table: its rows, and the revision from which on changes are missing.
    pub(super) async fn read_machines(&self) -> Result<(Vec<Row>, u64), StoreError> {
        let (mut rows, mut after, mut from) = (Vec::new(), None, None);
        loop {
            let result = self.backend.txn(tables::machine_rows(after)).await?;
            // Rows that change in a page that was read come with the changes.
            let from = *from.get_or_insert(result.revision + 1);
            let (entries, more) = tables::ranged(&result, 0);
            rows.extend(entries.iter().filter_map(tables::machine_row));
            after = entries.last().map(|entry| entry.key.clone());
            if !more {
                self.revoked.hear(rows.iter().filter(|row| !row.is_over()).filter_map(Row::revoked));
                return Ok((rows, from));
            }
        }
    }

    /// Takes the whole table up; returns the revision from which on changes are missing.
    async fn read_all(&self) -> Result<u64, StoreError> {
        let (rows, from) = self.read_machines().await?;
        self.owned.lock().replace(&rows);
        self.take_rows(rows).await.map(|()| from)
    }

    async fn take_changes(&self, events: Vec<WatchEvent>) -> Result<(), StoreError> {
        let mut rows = Vec::new();
        for event in events {
            match event {
                WatchEvent::Put(entry) => rows.extend(tables::machine_row(&entry)),
                WatchEvent::Deleted(key) => {
                    tables::machine_row_name(&key)
                        .into_iter()
                        .for_each(|name| self.owned.lock().forget(name));
                }
            }
        }
        self.take_rows(rows).await
    }

    /// Takes rows up that others wrote: into the authority's folder, and to the doors.
    async fn take_rows(&self, rows: Vec<Row>) -> Result<(), StoreError> {
        let revoked: Vec<MachineId> = rows.iter().filter_map(Row::revoked).collect();
        revoked.iter().for_each(|machine| self.revoked.add(*machine));
        rows.iter().for_each(|row| self.owned.lock().note(row));
        if let Some(signer) = self.signer.get().cloned() {
            // Each file is synced.
            let noted = tokio::task::spawn_blocking(move || note(&signer, &rows)).await;
            noted.unwrap_or_else(|error| tracing::error!(%error, "the authority's folder is not written"));
        }
        if revoked.is_empty() { Ok(()) } else { self.remove_revoked().await }
    }

    /// Removes the nodes of machines that were shut out.
    async fn remove_revoked(&self) -> Result<(), StoreError> {
        let revoked: HashSet<String> =
            self.revoked.machines().iter().map(|machine| machine.to_string()).collect();
        let result = self.backend.txn(tables::all_nodes()).await?;
        let records: Vec<NodeRecord> = tables::readable(tables::ranged(&result, 0).0).collect();
        for record in records {
            if record.machine.is_some_and(|machine| revoked.contains(&machine)) {
                let node = record.info.id;
                if let Err(error) = self.unregister(node, "its machine was revoked".to_owned()).await {
                    tracing::warn!(%error, %node, "the node of a revoked machine is not removed yet");
                }
            }
        }
        Ok(())
    }

    /// Makes rows of what is in the authority's folder, but for those that are in the table already. False if
    /// the folder could not be read.
    async fn add_rows(&self, signer: &Signer, known: &mut HashSet<String>) -> Result<bool, StoreError> {
        let (authority, named) = (Arc::clone(&signer.authority), std::mem::take(known));
        let read = tokio::task::spawn_blocking(move || (authority.rows(&named), named)).await;
        let read = read.map(|(rows, named)| {
            *known = named;
            rows
        });
        let failed = match read {
            Ok(Ok(rows)) => return self.add_all(rows, known).await.map(|()| true),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        tracing::warn!(cause = failed, "the authority's folder is not read");
        Ok(false)
    }

    /// Adds rows that the table lacks. If there are many it is read first: of all rows, at which a head looks
    /// each hour, nearly none is new.
    async fn add_all(&self, rows: Vec<Row>, known: &mut HashSet<String>) -> Result<(), StoreError> {
        let read = if FEW < rows.len() { self.read_machines().await?.0 } else { Vec::new() };
        let there: HashMap<String, Row> = read.into_iter().map(|row| (row.name.clone(), row)).collect();
        for row in rows {
            let name = row.name.clone();
            let found = there.get(&name);
            if row.machine().is_some() {
                // Also renews the row of a node that renewed its certificate here: a head's own.
                let is_there = found.is_some_and(|found| found.lasts_as_long_as(&row));
                if !is_there && !self.claim_node(&row, |found| found.lasts_as_long_as(&row)).await? {
                    tracing::warn!(name, "a node belongs to another machine in the table of machines");
                }
            } else if found.is_none() && self.backend.txn(tables::add_machine_row(&row)).await?.succeeded {
                // Also without a watch that says so.
                self.take_rows(vec![row]).await?;
            }
            known.insert(name);
        }
        Ok(())
    }

    /// Removes rows that are over.
    async fn drop_rows(&self, signer: &Signer) -> Result<(), StoreError> {
        let (rows, _) = self.read_machines().await?;
        for row in rows.iter().filter(|row| row.is_over()) {
            self.backend.txn(tables::drop_machine_row(row)).await?;
        }
        let authority = Arc::clone(&signer.authority);
        match tokio::task::spawn_blocking(move || authority.forget_over()).await {
            Ok(Err(error)) => tracing::warn!(%error, "notes of the authority that are over stay"),
            Ok(Ok(())) => {}
            Err(error) => tracing::error!(%error, "notes of the authority that are over stay"),
        }
        Ok(())
    }

    /// Gives a node to the machine of a row, unless its row there is enough; whether the machine has it.
    async fn claim_node(&self, row: &Row, is_enough: impl Fn(&Row) -> bool) -> Result<bool, StoreError> {
        loop {
            let result = self.backend.txn(tables::claim_node(row)).await?;
            let Some(entry) = tables::found(&result, 0) else {
                self.owned.lock().note(row);
                return Ok(true);
            };
            let found = tables::machine_row(entry);
            if found.as_ref().and_then(Row::machine) != row.machine() {
                return Ok(false);
            }
            if found.is_some_and(|found| is_enough(&found))
                || self.backend.txn(tables::claim_again(row, &entry.value)).await?.succeeded
            {
                return Ok(true);
            }
        }
    }
}

impl Owners for Shared {
    fn claim(
        &self,
        node: NodeId,
        machine: MachineId,
        lifetime: Duration,
    ) -> BoxFuture<'_, Result<Claimed, String>> {
        Box::pin(async move {
            let row = Row::owner(node.0, machine, lifetime);
            if let Some(limit) = self.owned.lock().limit(&row) {
                return Ok(Claimed::TooMany(limit));
            }
            match self.claim_node(&row, |found| found.outlasts(lifetime)).await {
                Ok(true) => Ok(Claimed::Given),
                Ok(false) => Ok(Claimed::ByAnother),
                Err(error) => Err(refusal(error).to_string()),
            }
        })
    }
}

fn note(signer: &Signer, rows: &[Row]) {
    for row in rows {
        if let Err(error) = signer.authority.take_row(row) {
            tracing::warn!(%error, "the authority's folder does not take a note of another head");
        }
    }
}

/// Whether the last change is so long ago that another one would show.
fn is_settled(stamp: &[Option<SystemTime>]) -> bool {
    let is_old = |time: &SystemTime| time.elapsed().is_ok_and(|age| TICK <= age);
    stamp.iter().flatten().all(is_old)
}

/// Takes up what others write, until the control store stops or is dropped.
pub(super) async fn follow_machines(shared: Weak<Shared>) {
    follow(
        shared,
        MACHINES,
        |shared| Box::pin(shared.read_all()),
        |shared, events| Box::pin(shared.take_changes(events)),
    )
    .await
}

/// Makes rows of what commands write into the authority's folder, until the control store stops.
pub(super) async fn keep_rows(shared: Weak<Shared>) {
    let (mut seen, mut known, mut round) = (None, HashSet::new(), Instant::now());
    let mut is_first = true;
    loop {
        let Some(open) = shared.upgrade().filter(|open| !*open.stopping.borrow()) else { return };
        let Some(signer) = open.signer.get().cloned() else { return };
        if is_first {
            // Rows that were there before this head: its folder lacks them.
            let there = match open.read_machines().await {
                Ok((rows, _)) => open.take_rows(rows).await,
                Err(error) => Err(error),
            };
            match there {
                Ok(()) => is_first = false,
                Err(error) => tracing::debug!(%error, "the table of machines is not read"),
            }
        }
        let stamp = signer.authority.rows_stamp();
        if seen != Some(stamp) {
            match open.add_rows(&signer, &mut known).await {
                // Files that are written within one tick of the clock leave the same stamp.
                Ok(is_read) => seen = (is_read && is_settled(&stamp)).then_some(stamp),
                Err(error) => tracing::debug!(%error, "notes of the authority are not in the table yet"),
            }
        }
        if ROUNDS <= round.elapsed() {
            round = Instant::now();
            known.clear();
            if let Err(error) = open.drop_rows(&signer).await {
                tracing::debug!(%error, "rows that are over stay in the table of machines");
            }
        }
        drop(open);
        sleep(FOLDER_LOOKS).await;
    }
}
