//! Tables that were restored to an earlier state: told to each member that saw a later one.
//!
//! A member remembers a state of the tables, which the answer to each renewal tells, and says it with the
//! next one ([`crate::tables::Lineage`] decides). The answer comes from what this control store last read,
//! unless that contradicts the member: then the tables are read anew, because the member may have heard of a
//! later state elsewhere.

use super::{ATTEMPTS_MAX, Shared, new_id};
use crate::error::StoreError;
use crate::tables::{self, Lineage};
use tharsis_protos::control::TablesState;

impl Shared {
    /// Begins an incarnation of the tables. In one that is full there is no room to note it.
    pub(super) async fn begin_incarnation(&self, is_restored: bool) -> Result<(), StoreError> {
        for _ in 0..ATTEMPTS_MAX {
            let known = self.read_lineage().await?;
            match self.backend.txn(known.begin(new_id(), is_restored)).await {
                Ok(done) if done.succeeded => return self.read_lineage().await.map(drop),
                Ok(_) => {}
                Err(
                    error @ (StoreError::NoSpace { .. }
                    | StoreError::OutOfSpace { .. }
                    | StoreError::Io { .. }),
                ) => {
                    tracing::warn!(%error, "a restore of the tables to the state of now may not be noticed");
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        Err(StoreError::Contention { what: "begin incarnation", attempts: ATTEMPTS_MAX })
    }

    /// Reads the incarnations of the tables, and begins one if their revision went back under this control
    /// store.
    pub(super) async fn look_at_lineage(&self) -> Result<(), StoreError> {
        self.read_lineage().await?;
        if !self.noted.went_back() {
            return Ok(());
        }
        tracing::error!("the tables went back to an earlier state: members that saw a later one end");
        self.begin_incarnation(true).await?;
        self.noted.went_on();
        Ok(())
    }

    /// A state of the tables, of now or of a moment ago.
    pub(super) fn tables_state(&self) -> Option<TablesState> {
        self.lineage.lock().state()
    }

    /// Whether the tables are no continuation of a state that a member has seen.
    pub(super) async fn is_restored_since(&self, seen: &TablesState) -> Result<bool, StoreError> {
        if !self.lineage.lock().contradicts(seen) {
            return Ok(false);
        }
        Ok(self.read_lineage().await?.contradicts(seen))
    }

    async fn read_lineage(&self) -> Result<Lineage, StoreError> {
        let read = tables::read_lineage(&self.backend.txn(tables::lineage()).await?);
        self.lineage.lock().clone_from(&read);
        Ok(read)
    }
}
