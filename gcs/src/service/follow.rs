//! Tables that a control store keeps a copy of: read whole, and then change by change.

use super::Shared;
use crate::backend::{WatchEvent, WatchItem};
use crate::error::StoreError;
use futures::StreamExt;
use futures::future::BoxFuture;
use std::sync::Weak;
use std::time::Duration;
use tokio::time::sleep;

/// Pause between attempts while the back end cannot be reached.
const RETRY: Duration = Duration::from_millis(250);

/// Takes a whole table.
pub(super) type Read = for<'a> fn(&'a Shared) -> BoxFuture<'a, Result<u64, StoreError>>;
/// Takes changes of a table.
pub(super) type Take = for<'a> fn(&'a Shared, Vec<WatchEvent>) -> BoxFuture<'a, Result<(), StoreError>>;

/// Follows the table with this prefix until the control store stops or is dropped: `read` takes all of it and
/// returns the revision from which on changes are missing, `take` takes the changes of a revision.
pub(super) async fn follow(shared: Weak<Shared>, prefix: &'static str, read: Read, take: Take) {
    loop {
        match until_error(&shared, prefix, read, take).await {
            Ok(()) | Err(StoreError::Closed) => return,
            Err(error) => tracing::debug!(%error, prefix, "a table is not followed"),
        }
        sleep(RETRY).await;
    }
}

/// As [`follow`], until an error. The control store is not kept alive by the wait for a change.
async fn until_error(
    shared: &Weak<Shared>,
    prefix: &'static str,
    read: Read,
    take: Take,
) -> Result<(), StoreError> {
    let Some(open) = shared.upgrade() else { return Ok(()) };
    let mut stopping = open.stopping.subscribe();
    drop(open);
    loop {
        let Some(open) = shared.upgrade() else { return Ok(()) };
        let from = read(&open).await?;
        let mut changes = open.backend.watch(prefix.into(), from).await?;
        drop(open);
        loop {
            let change = tokio::select! {
                biased;
                _ = stopping.wait_for(|stop| *stop) => return Ok(()),
                change = changes.next() => change.transpose()?,
            };
            let Some(open) = shared.upgrade() else { return Ok(()) };
            // Otherwise the history does not reach back far enough, or the watch has ended: all is read
            // again.
            let Some(WatchItem::Changed { events, .. }) = change else { break };
            take(&open, events).await?;
        }
    }
}
