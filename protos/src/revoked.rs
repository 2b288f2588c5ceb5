//! The machines that were shut out, as one process knows them.
//!
//! Every door of a port asks here: connections of each purpose, calls, scrapes. Connections that are open are
//! cut as soon as their machine is named. Control stores keep the list as a table and tell it to members with
//! the membership; a member that has not heard it yet lets no machine in.
//!
//! A process takes no revocation back. A list that it hears may be older than what it knows: read from the
//! table while a row was written, or told by another control store. A machine that a newer list has forgotten
//! has no certificate that is good, so nobody is kept out by mistake.

use crate::proof::Reason;
use std::collections::BTreeSet;
use std::sync::Arc;
use tharsis_identity::{Authority, MachineId};
use tokio::sync::watch;

/// Most machines that are shut out at a time. One is forgotten when its last certificate is over.
pub const REVOKED_MAX: usize = 1 << 16;

/// The machines that a process has heard of.
#[derive(Clone, Debug, Default)]
pub struct List {
    machines: Arc<BTreeSet<MachineId>>,
    /// Whether a whole list was heard.
    is_whole: bool,
}

/// The machines that were shut out. Clones share one list.
#[derive(Clone, Debug)]
pub struct Revoked {
    list: Arc<watch::Sender<List>>,
    /// The authority on this machine, in whose folder commands write.
    authority: Option<Arc<Authority>>,
}

impl List {
    /// Adds machines; whether one of them was not known.
    fn shut_out(&mut self, machines: impl IntoIterator<Item = MachineId>) -> bool {
        let new: Vec<MachineId> =
            machines.into_iter().filter(|machine| !self.machines.contains(machine)).collect();
        if !new.is_empty() {
            Arc::make_mut(&mut self.machines).extend(&new);
        }
        !new.is_empty()
    }

    /// The machines; none before a whole list was heard.
    #[must_use]
    pub fn whole(&self) -> Option<&BTreeSet<MachineId>> {
        self.is_whole.then_some(&*self.machines)
    }
}

impl Revoked {
    /// Those of a process that has not heard of them yet.
    #[must_use]
    pub fn unheard() -> Revoked {
        Revoked { list: Arc::default(), authority: None }
    }

    /// An empty list: no machine was revoked.
    #[must_use]
    pub fn nobody() -> Revoked {
        let revoked = Revoked::unheard();
        revoked.hear([]);
        revoked
    }

    /// The same list, beside the word of an authority on this machine.
    #[must_use]
    pub(crate) fn with_authority(&self, authority: Option<Arc<Authority>>) -> Revoked {
        Revoked { list: Arc::clone(&self.list), authority }
    }

    /// Takes a whole list, beside what is known already.
    pub fn hear(&self, machines: impl IntoIterator<Item = MachineId>) {
        self.list.send_if_modified(|list| {
            let is_first = !std::mem::replace(&mut list.is_whole, true);
            list.shut_out(machines) || is_first
        });
    }

    /// Shuts one more machine out. Before a list was heard all are.
    pub fn add(&self, machine: MachineId) {
        self.list.send_if_modified(|list| list.shut_out([machine]));
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
        match self.list.borrow().whole() {
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

    /// The machines that are known to be shut out.
    #[must_use]
    pub fn machines(&self) -> Vec<MachineId> {
        self.list.borrow().machines.iter().copied().collect()
    }

    /// Waits until a machine is shut out; for ever if it never is.
    pub(crate) fn hits(&self, machine: MachineId) -> impl Future<Output = ()> + Send + Sync + use<> {
        let mut changes = self.changes();
        async move {
            if changes.wait_for(|list| list.machines.contains(&machine)).await.is_err() {
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
        let [good, bad, early] = [1, 2, 3].map(MachineId);
        revoked.add(early);
        assert_eq!(revoked.check(good), Err(Reason::NotYet));
        revoked.hear([]);
        assert_eq!((revoked.check(good), revoked.check(early)), (Ok(()), Err(Reason::Revoked)));
        let cut = tokio::spawn(revoked.hits(bad));
        assert_eq!(revoked.check(bad), Ok(()));
        revoked.clone().add(bad);
        cut.await.unwrap();
        assert_eq!((revoked.check(good), revoked.check(bad)), (Ok(()), Err(Reason::Revoked)));
        assert_eq!(revoked.machines(), [bad, early]);
    }

    #[test]
    fn a_list_that_is_older_takes_no_revocation_back() {
        let revoked = Revoked::nobody();
        let mut changes = revoked.changes();
        let [first, second, third] = [1, 2, 3].map(MachineId);
        revoked.hear([first]);
        revoked.add(second);
        assert!(changes.has_changed().unwrap());
        changes.mark_unchanged();
        // One that was read before the second was shut out, and one of a store that has not heard of it.
        revoked.hear([first]);
        revoked.hear([]);
        assert!(!changes.has_changed().unwrap());
        revoked.hear([third]);
        assert_eq!(revoked.machines(), [first, second, third]);
        assert!(revoked.machines().iter().all(|machine| revoked.check(*machine) == Err(Reason::Revoked)));
    }
}
