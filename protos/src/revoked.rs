//! The machines that were shut out, as one process knows them.
//!
//! Every door of a port asks here: connections of each purpose, calls, scrapes. Connections that are open are
//! cut as soon as their machine is named. Control stores keep the list as a table and tell it to members with
//! the membership; a member that has not heard it yet lets no machine in.

use crate::proof::Reason;
use std::collections::BTreeSet;
use std::sync::Arc;
use tharsis_identity::{Authority, MachineId};
use tokio::sync::watch;

/// Most machines that are shut out at a time. One is forgotten when its last certificate is over.
pub const REVOKED_MAX: usize = 1 << 16;

/// A list of machines; none before it was heard.
pub type List = Option<Arc<BTreeSet<MachineId>>>;

/// The machines that were shut out. Clones share one list.
#[derive(Clone, Debug)]
pub struct Revoked {
    list: Arc<watch::Sender<List>>,
    /// The authority on this machine, in whose folder commands write.
    authority: Option<Arc<Authority>>,
}

impl Revoked {
    /// Those of a process that has not heard of them yet.
    #[must_use]
    pub fn unheard() -> Revoked {
        Revoked { list: Arc::new(watch::Sender::new(None)), authority: None }
    }

    /// An empty list: no machine was revoked.
    #[must_use]
    pub fn nobody() -> Revoked {
        Revoked { list: Arc::new(watch::Sender::new(Some(Arc::default()))), authority: None }
    }

    /// The same list, beside the word of an authority on this machine.
    #[must_use]
    pub(crate) fn with_authority(&self, authority: Option<Arc<Authority>>) -> Revoked {
        Revoked { list: Arc::clone(&self.list), authority }
    }

    /// Takes a whole list.
    pub fn replace(&self, machines: impl IntoIterator<Item = MachineId>) {
        let machines: BTreeSet<MachineId> = machines.into_iter().collect();
        self.list.send_if_modified(|list| {
            let is_new = list.as_deref() != Some(&machines);
            if is_new {
                *list = Some(Arc::new(machines));
            }
            is_new
        });
    }

    /// Shuts one more machine out. Before a list was heard all are.
    pub fn add(&self, machine: MachineId) {
        self.list.send_if_modified(|list| match list {
            Some(known) if !known.contains(&machine) => {
                Arc::make_mut(known).insert(machine);
                true
            }
            _ => false,
        });
    }

    /// Refuses a machine that was shut out, and all while no list was heard.
    ///
    /// # Errors
    /// `Revoked`, `NotYet`.
    pub fn check(&self, machine: MachineId) -> Result<(), Reason> {
        if self.authority.as_ref().is_some_and(|authority| authority.is_revoked(machine)) {
            // Its other connections are cut, too.
            self.add(machine);
            return Err(Reason::Revoked);
        }
        match &*self.list.borrow() {
            None => Err(Reason::NotYet),
            Some(list) if list.contains(&machine) => Err(Reason::Revoked),
            Some(_) => Ok(()),
        }
    }

    /// The list as it changes.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<List> {
        self.list.subscribe()
    }

    /// The list as it is; empty before it was heard.
    #[must_use]
    pub fn machines(&self) -> Vec<MachineId> {
        self.list.borrow().iter().flat_map(|list| list.iter().copied()).collect()
    }

    /// Waits until a machine is shut out; for ever if it never is.
    pub(crate) fn hits(&self, machine: MachineId) -> impl Future<Output = ()> + Send + Sync + use<> {
        let mut changes = self.changes();
        async move {
            let is_hit = |list: &List| list.as_ref().is_some_and(|list| list.contains(&machine));
            if changes.wait_for(is_hit).await.is_err() {
                // The process ends.
                std::future::pending::<()>().await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nobody_is_let_in_before_the_list_and_a_machine_on_it_is_cut() {
        let revoked = Revoked::unheard();
        let [good, bad] = [1, 2].map(MachineId);
        revoked.add(bad);
        assert_eq!(revoked.check(good), Err(Reason::NotYet));
        revoked.replace([]);
        assert_eq!((revoked.check(good), revoked.check(bad)), (Ok(()), Ok(())));
        let cut = tokio::spawn(revoked.hits(bad));
        revoked.clone().add(bad);
        cut.await.unwrap();
        assert_eq!((revoked.check(good), revoked.check(bad)), (Ok(()), Err(Reason::Revoked)));
        assert_eq!(revoked.machines(), [bad]);
    }
}
