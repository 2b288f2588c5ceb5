//! The control stores over one back end list each other, so that members know all of them.
//!
//! Each writes its address under a lease of its own: an address whose control store is gone disappears from
//! the list when that lease runs out. The list is read with the judge's roll call and sent with each answer
//! to a member. A member that has an old list loses nothing: it calls whichever address answers.

use super::Shared;
use crate::backend::StoreLease;
use crate::error::StoreError;
use crate::tables;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval, timeout};

/// Renewals within the time of one lease.
const RENEWALS_PER_LEASE: u32 = 4;
/// Longest time that a control store that stops takes to remove its address.
const REMOVAL_WAIT: Duration = Duration::from_millis(500);

impl Shared {
    /// Writes the address at which members reach this control store, and keeps it there.
    pub(super) async fn announce(self: &Arc<Self>, address: String) -> Result<(), StoreError> {
        let lease = self.list(&address).await?;
        *self.own_lease.lock() = Some(lease);
        let result = self.backend.txn(tables::roll_call()).await?;
        *self.stores.lock() = tables::stores(&result);
        tokio::spawn(stay_listed(Arc::downgrade(self), address));
        Ok(())
    }

    /// Removes the address, if the back end answers.
    pub(super) async fn withdraw(&self) {
        let lease = self.own_lease.lock().take();
        if let Some(lease) = lease {
            // Otherwise it disappears with the lease.
            let _removed = timeout(REMOVAL_WAIT, self.backend.lease_revoke(lease)).await;
        }
    }

    async fn list(&self, address: &str) -> Result<StoreLease, StoreError> {
        let (lease, _) = self.backend.lease_grant(self.lease_ttl).await?;
        self.backend.txn(tables::list_store(address, lease)).await?;
        Ok(lease)
    }

    async fn renew_listing(&self, address: &str) -> Result<(), StoreError> {
        let Some(lease) = *self.own_lease.lock() else { return Ok(()) };
        match self.backend.lease_keep_alive(lease).await {
            Err(StoreError::LeaseNotFound { .. }) => {
                let renewed = self.list(address).await?;
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

async fn stay_listed(shared: Weak<Shared>, address: String) {
    let Some(lease_ttl) = shared.upgrade().map(|shared| shared.lease_ttl) else { return };
    let mut ticks = interval(lease_ttl / RENEWALS_PER_LEASE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(shared) = shared.upgrade().filter(|shared| !*shared.stopping.borrow()) else { return };
        match shared.renew_listing(&address).await {
            Ok(()) => {}
            Err(StoreError::Closed) => return,
            Err(error) => tracing::debug!(%error, "the address of this control store is not renewed"),
        }
    }
}
