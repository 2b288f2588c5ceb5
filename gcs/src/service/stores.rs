//! The control stores over one back end list each other, so that members know all of them.
//!
//! Each writes its address under a lease of its own: an address whose control store is gone disappears from
//! the list when that lease runs out. Each control store watches the list, reads it with the judge's roll
//! call as well, and tells it to the members that watch the membership: they must know the other addresses
//! before the one that they call is gone. A member that has an old list loses nothing: it calls whichever
//! address answers.

use super::Shared;
use super::follow::follow;
use crate::backend::{StoreLease, TxnResult};
use crate::error::StoreError;
use crate::tables::{self, STORES};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tharsis_types::NodeId;
use tokio::time::{MissedTickBehavior, interval, timeout};

/// Renewals within the time of one lease.
const RENEWALS_PER_LEASE: u32 = 4;
/// Longest time that a control store that stops takes to remove its address.
const REMOVAL_WAIT: Duration = Duration::from_millis(500);

/// The addresses of all control stores at a revision.
#[derive(Debug, Default)]
pub(super) struct Listing {
    revision: u64,
    pub(super) addresses: Vec<String>,
}

impl Shared {
    /// Writes the address at which members reach this control store, and keeps it there.
    pub(super) async fn announce(
        self: &Arc<Self>,
        address: String,
        head: Option<NodeId>,
    ) -> Result<(), StoreError> {
        let lease = self.list(&address, head).await?;
        *self.own_lease.lock() = Some(lease);
        self.read_list().await?;
        tokio::spawn(stay_listed(Arc::downgrade(self), address, head));
        Ok(())
    }

    /// Addresses of all control stores.
    pub(super) fn listed_stores(&self) -> Vec<String> {
        self.stores.borrow().addresses.clone()
    }

    /// Takes the list from a roll call, unless a later one has been taken.
    pub(super) fn note_stores(&self, roll_call: &TxnResult) {
        let (revision, addresses) = (roll_call.revision, tables::stores(roll_call));
        self.stores.send_if_modified(|listing| {
            let is_new = listing.revision <= revision && listing.addresses != addresses;
            if is_new {
                *listing = Listing { revision, addresses };
            }
            is_new
        });
    }

    /// Reads the list; returns the revision that it shows.
    async fn read_list(&self) -> Result<u64, StoreError> {
        let roll_call = self.backend.txn(tables::roll_call()).await?;
        self.note_stores(&roll_call);
        Ok(roll_call.revision)
    }

    /// Removes the address, if the back end answers.
    pub(super) async fn withdraw(&self) {
        let lease = self.own_lease.lock().take();
        if let Some(lease) = lease {
            // Otherwise it disappears with the lease.
            let _removed = timeout(REMOVAL_WAIT, self.backend.lease_revoke(lease)).await;
        }
    }

    async fn list(&self, address: &str, head: Option<NodeId>) -> Result<StoreLease, StoreError> {
        let (lease, _) = self.backend.lease_grant(self.lease_ttl).await?;
        self.backend.txn(tables::list_store(address, head, lease)).await?;
        Ok(lease)
    }

    async fn renew_listing(&self, address: &str, head: Option<NodeId>) -> Result<(), StoreError> {
        let Some(lease) = *self.own_lease.lock() else { return Ok(()) };
        match self.backend.lease_keep_alive(lease).await {
            Err(StoreError::LeaseNotFound { .. }) => {
                let renewed = self.list(address, head).await?;
                // None: it stops, and what was just written goes with its lease.
                if let Some(lease) = self.own_lease.lock().as_mut() {
                    *lease = renewed;
                }
                Ok(())
            }
            other => other,
        }
    }
}

/// Reads the list whenever it changes, until the control store stops or is dropped.
pub(super) async fn follow_list(shared: Weak<Shared>) {
    follow(
        shared,
        STORES,
        |shared| Box::pin(async move { shared.read_list().await.map(|shown| shown + 1) }),
        |shared, _| Box::pin(async move { shared.read_list().await.map(drop) }),
    )
    .await
}

async fn stay_listed(shared: Weak<Shared>, address: String, head: Option<NodeId>) {
    let Some(lease_ttl) = shared.upgrade().map(|shared| shared.lease_ttl) else { return };
    let mut ticks = interval(lease_ttl / RENEWALS_PER_LEASE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(shared) = shared.upgrade().filter(|shared| !*shared.stopping.borrow()) else { return };
        match shared.renew_listing(&address, head).await {
            Ok(()) => {}
            Err(StoreError::Closed) => return,
            Err(error) => tracing::debug!(%error, "the address of this control store is not renewed"),
        }
    }
}
