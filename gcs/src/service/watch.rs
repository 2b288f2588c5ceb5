//! Watches of the membership: changes of node records, turned into joins and leaves, and of the list of
//! control stores.
//!
//! The stream does not end if the back end's history does not reach back far enough: the watcher then gets a
//! whole list and the changes after it. While the back end cannot be reached, the stream waits, and continues
//! from the last revision that it delivered.

use super::stores::Listing;
use super::watchers::Watchers;
use super::{Shared, refusal};
use crate::backend::{Backend, Watch, WatchEvent, WatchItem};
use crate::error::StoreError;
use crate::tables::{self, NODES, NodeRecord};
use futures::StreamExt;
use parking_lot::Mutex;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tharsis_protos::caller::Who;
use tharsis_protos::control::{EventStream, LeftReason, Members, NodeChange, NodeEvent};
use tharsis_protos::revoked::{List, REVOKED_MAX};
use tharsis_protos::{Refusal, RefusalCode};
use tharsis_types::NodeId;
use tokio::sync::watch;

/// Pause between attempts to watch again while the back end cannot be reached.
const RETRY: Duration = Duration::from_millis(250);

struct NodeWatch {
    backend: Arc<dyn Backend>,
    /// The watch; `None` if it must be opened again, from `next`.
    changes: Option<Watch>,
    /// The first revision that was not delivered yet.
    next: u64,
    stopping: watch::Receiver<bool>,
    stores: watch::Receiver<Listing>,
    /// Nodes whose leave was delivered with its announcement, and whose records are not deleted yet.
    departed: BTreeSet<NodeId>,
    queue: VecDeque<NodeEvent>,
    done: bool,
    revoked: watch::Receiver<List>,
    ended: watch::Receiver<bool>,
    _seat: Seat,
}

/// The place of one watch; it is given back when this is dropped.
struct Seat {
    watchers: Arc<Mutex<Watchers>>,
    number: u64,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.watchers.lock().leave(self.number);
    }
}

enum Wake {
    Revoked,
    Stores,
    Change(Option<Result<WatchItem, StoreError>>),
    Nothing,
    Stop,
}

impl Shared {
    pub(super) async fn watch(&self, who: Who, from_revision: u64) -> Result<EventStream, Refusal> {
        let (number, ended) = self
            .watchers
            .lock()
            .enter(&who)
            .map_err(|reason| Refusal::new(RefusalCode::ResourceExhausted, reason))?;
        let seat = Seat { watchers: Arc::clone(&self.watchers), number };
        let now = self.members().await.map_err(refusal)?;
        let mut state = NodeWatch {
            backend: self.backend.clone(),
            changes: None,
            next: from_revision,
            stopping: self.stopping.subscribe(),
            stores: self.stores.subscribe(),
            departed: BTreeSet::new(),
            queue: VecDeque::new(),
            done: false,
            revoked: self.revoked.changes(),
            ended,
            _seat: seat,
        };
        // A revision in the future belongs to another store, so the watcher gets a whole list.
        if from_revision == 0 || now.revision + 1 < from_revision {
            state.show_list(now);
        }
        state.stores.mark_changed();
        // A watcher that must know has asked for an empty list, too.
        if !self.revoked.machines().is_empty() {
            state.revoked.mark_changed();
        }
        Ok(futures::stream::unfold(state, NodeWatch::next_event).boxed())
    }
}

impl NodeWatch {
    async fn next_event(mut self) -> Option<(Result<NodeEvent, Refusal>, Self)> {
        loop {
            if let Some(event) = self.queue.pop_front() {
                return Some((Ok(event), self));
            }
            if self.done || *self.stopping.borrow() {
                return None;
            }
            if let Err(error) = self.step().await {
                if matches!(error, StoreError::Closed) {
                    return None;
                }
                if !error.is_transient() {
                    self.done = true;
                    return Some((Err(refusal(error)), self));
                }
                tracing::warn!(%error, "watching nodes: waiting for the store");
                self.changes = None;
                self.pause().await;
            }
        }
    }

    /// Waits for one input and queues its events.
    async fn step(&mut self) -> Result<(), StoreError> {
        if self.changes.is_none() {
            self.changes = Some(self.backend.watch(NODES.into(), self.next).await?);
        }
        match self.wake().await {
            Wake::Stop => self.done = true,
            Wake::Nothing => {}
            Wake::Revoked => self.show_revoked(),
            Wake::Stores => self.show_stores(),
            Wake::Change(None) => {
                self.changes = None;
                self.pause().await;
            }
            Wake::Change(Some(item)) => match item? {
                WatchItem::Changed { revision, events } => {
                    for event in events {
                        self.show(revision, event)?;
                    }
                    self.next = revision + 1;
                }
                WatchItem::Compacted { .. } => {
                    self.changes = None;
                    let result = self.backend.txn(tables::all_nodes()).await?;
                    self.show_list(Members { nodes: tables::members(&result), revision: result.revision });
                }
            },
        }
        Ok(())
    }

    async fn wake(&mut self) -> Wake {
        let Some(changes) = &mut self.changes else { return Wake::Nothing };
        tokio::select! {
            biased;
            _ = self.stopping.wait_for(|stop| *stop) => Wake::Stop,
            _ = self.ended.wait_for(|ended| *ended) => Wake::Stop,
            change = changes.next() => Wake::Change(change),
            Ok(()) = self.revoked.changed() => Wake::Revoked,
            Ok(()) = self.stores.changed() => Wake::Stores,
        }
    }

    async fn pause(&mut self) {
        let stop = self.stopping.wait_for(|stop| *stop);
        // Either the pause is over, or the server stops, which the loop checks next.
        let _ = tokio::time::timeout(RETRY, stop).await;
    }

    fn show_list(&mut self, members: Members) {
        self.departed.clear();
        self.next = members.revision + 1;
        let change = NodeChange::Listed(members.nodes);
        self.queue.push_back(NodeEvent { revision: members.revision, change });
    }

    fn show_revoked(&mut self) {
        let list = self.revoked.borrow_and_update().clone();
        let Some(machines) = list.whole() else { return };
        let change = NodeChange::Revoked(machines.iter().copied().take(REVOKED_MAX).collect());
        self.queue.push_back(NodeEvent { revision: self.next.saturating_sub(1), change });
    }

    fn show_stores(&mut self) {
        let addresses = self.stores.borrow_and_update().addresses.clone();
        if addresses.is_empty() {
            return;
        }
        let change = NodeChange::Stores(addresses);
        self.queue.push_back(NodeEvent { revision: self.next.saturating_sub(1), change });
    }

    fn show(&mut self, revision: u64, event: WatchEvent) -> Result<(), StoreError> {
        let change = match event {
            WatchEvent::Put(entry) => {
                let entries = std::slice::from_ref(&entry);
                let Some(record) = tables::readable::<NodeRecord>(entries).next() else { return Ok(()) };
                let node = record.info.id;
                match record.departure {
                    None => NodeChange::Joined(record.info),
                    Some(_) if !self.departed.insert(node) => return Ok(()),
                    Some(reason) => NodeChange::Left { node, reason: LeftReason::Unregistered(reason) },
                }
            }
            WatchEvent::Deleted(key) => match tables::node_of_key(&key) {
                Some(node) if !self.departed.remove(&node) => {
                    NodeChange::Left { node, reason: LeftReason::Expired }
                }
                _ => return Ok(()),
            },
        };
        self.queue.push_back(NodeEvent { revision, change });
        Ok(())
    }
}
