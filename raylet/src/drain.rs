//! The drain of a node, as the threads beside the loop see it: who may begin it, and how far it is.
//!
//! A drain begins once, by a call on the node's port, a question on its socket, or a signal. The loop notes
//! its progress here; whoever asked for it waits for the changes.

use crate::inbox::{Inbox, Input};
use futures::Stream;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tharsis_core::MS;
use tharsis_core::node::DrainState;
use tharsis_protos::report::DrainRow;
use tharsis_types::{Failure, FailureKind, NodeId};
use tokio::sync::watch;

/// The longest time that a node waits before it ends until its last report was sent.
const TOLD_WAIT: Duration = Duration::from_millis(300);
/// Pause between two looks at that.
const TOLD_PAUSE: Duration = Duration::from_millis(1);

/// The drain of one node.
pub struct Drain {
    node: NodeId,
    inbox: Arc<Inbox>,
    progress: watch::Sender<Option<DrainRow>>,
}

impl Drain {
    /// A node that serves.
    #[must_use]
    pub fn new(node: NodeId, inbox: Arc<Inbox>) -> Self {
        Self { node, inbox, progress: watch::Sender::new(None) }
    }

    /// Begins to drain the node. It leaves when nothing is left there, or after `within`.
    ///
    /// # Errors
    /// `InUse` if it drains already.
    pub fn begin(&self, within: Duration) -> Result<watch::Receiver<Option<DrainRow>>, Failure> {
        let remaining_ms = millis(within);
        let is_new = self.progress.send_if_modified(|progress| {
            let is_new = progress.is_none();
            progress.get_or_insert(DrainRow { remaining_ms, ..DrainRow::default() });
            is_new
        });
        if !is_new {
            let text = format!("AlreadyDraining: node {} drains already", self.node);
            return Err(Failure::new(FailureKind::InUse, text));
        }
        self.inbox.put(Input::Drain { within });
        Ok(self.progress.subscribe())
    }

    /// Whether the node takes no new work any more.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.progress.borrow().is_some()
    }

    /// Waits until the drain begins.
    pub async fn begun(&self) {
        // The sender is here, so it does not end before.
        let mut progress = self.progress.subscribe();
        let _begun = progress.wait_for(Option::is_some).await;
    }

    /// Waits until everybody who is told of the drain knows that it is over, at most for a moment.
    pub fn await_told(&self) {
        let until = Instant::now() + TOLD_WAIT;
        while 0 < self.progress.receiver_count() && Instant::now() < until {
            std::thread::sleep(TOLD_PAUSE);
        }
    }

    /// Notes how far the drain is.
    pub fn note(&self, state: &DrainState) {
        let row = row(state);
        self.progress.send_if_modified(|progress| progress.replace(row) != Some(row));
    }
}

/// Changes of a drain, the last one included.
pub fn rows(progress: watch::Receiver<Option<DrainRow>>) -> impl Stream<Item = DrainRow> {
    futures::stream::unfold((progress, false), |(mut progress, is_over)| async move {
        if is_over {
            return None;
        }
        progress.changed().await.ok()?;
        let row = progress.borrow_and_update().unwrap_or_default();
        Some((row, (progress, row.is_over)))
    })
}

fn row(state: &DrainState) -> DrainRow {
    DrainRow {
        remaining_ms: state.remaining / MS,
        is_over: state.is_over,
        is_clean: state.is_clean,
        runs: state.runs,
        leases: state.leases,
        jobs: state.jobs,
        tasks: state.tasks,
        objects: state.objects,
        copies: state.copies,
        put_copies: state.put_copies,
        copy_bytes: state.copy_bytes,
        messages: state.messages,
        moved: state.moved,
        moved_bytes: state.moved_bytes,
        programs: state.programs,
    }
}

/// Milliseconds of a time, for messages.
fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
