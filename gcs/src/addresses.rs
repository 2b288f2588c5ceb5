//! Addresses of the control stores of a cluster, and which of them is called first.
//!
//! Every control store over the same tables can answer every call, so a caller needs one that answers, and
//! stays with it. The addresses that the user gave are never forgotten: they may be names that lead somewhere
//! else tomorrow. Learned addresses are replaced whenever a control store lists them anew.
//!
//! [`Addresses`] decides and does no I/O. [`KnownStores`] is the same list for all callers of a process.

use std::sync::Arc;
use tokio::sync::watch;

/// A list of addresses, one of which is current: the one that answered last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    given: Vec<String>,
    all: Vec<String>,
    current: usize,
}

/// Addresses shared by all that call the control stores from one process. Cheap to clone.
#[derive(Clone, Debug)]
pub struct KnownStores(Arc<watch::Sender<Addresses>>);

impl Addresses {
    /// The addresses that the user gave, in the user's order. The first one is current.
    #[must_use]
    pub fn new(given: impl IntoIterator<Item = String>) -> Self {
        let mut all: Vec<String> = Vec::new();
        for address in given {
            if !all.contains(&address) {
                all.push(address);
            }
        }
        Self { given: all.clone(), all, current: 0 }
    }

    /// The address that is called first; empty if there is none.
    #[must_use]
    pub fn current(&self) -> &str {
        self.all.get(self.current).map_or("", String::as_str)
    }

    /// All addresses in the order in which one call tries them.
    #[must_use]
    pub fn in_turn(&self) -> Vec<String> {
        let (before, from) = self.all.split_at(self.current.min(self.all.len()));
        [from, before].concat()
    }

    /// Notes that a control store answered: it is called first from now on. Returns whether that is a change.
    pub fn answered(&mut self, address: &str) -> bool {
        let found = self.all.iter().position(|known| known == address);
        let is_new = found.is_some_and(|at| at != self.current);
        self.current = found.unwrap_or(self.current);
        is_new
    }

    /// Replaces the learned addresses; returns whether that is a change. The current one stays, because it
    /// answers. A server that lists nothing teaches nothing.
    pub fn learn(&mut self, stores: &[String]) -> bool {
        if stores.is_empty() {
            return false;
        }
        let current = self.current().to_owned();
        let mut all = self.given.clone();
        for address in stores.iter().chain([&current]) {
            if !all.contains(address) {
                all.push(address.clone());
            }
        }
        let is_new = all != self.all;
        self.current = all.iter().position(|known| *known == current).unwrap_or_default();
        self.all = all;
        is_new
    }
}

impl KnownStores {
    /// Begins with the addresses that the user gave.
    #[must_use]
    pub fn new(given: impl IntoIterator<Item = String>) -> Self {
        Self(Arc::new(watch::Sender::new(Addresses::new(given))))
    }

    /// Begins with the addresses in a text, separated by commas.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        Self::new(text.split(',').map(|address| address.trim().to_owned()))
    }

    /// The address that is called first.
    #[must_use]
    pub fn current(&self) -> String {
        self.0.borrow().current().to_owned()
    }

    /// All addresses in the order in which one call tries them.
    #[must_use]
    pub fn in_turn(&self) -> Vec<String> {
        self.0.borrow().in_turn()
    }

    /// Notes that a control store answered.
    pub fn answered(&self, address: &str) {
        if self.0.send_if_modified(|addresses| addresses.answered(address)) {
            tracing::info!(address, "this control store is called from now on");
        }
    }

    /// Takes the list that a control store gave.
    pub fn learn(&self, stores: &[String]) {
        self.0.send_if_modified(|addresses| addresses.learn(stores));
    }

    /// Waits until another address than this one is called first.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn moved_from(&self, address: &str) {
        let mut changes = self.0.subscribe();
        // The sender is in `self`, so the wait cannot fail.
        let _moved = changes.wait_for(|addresses| addresses.current() != address).await.is_ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn addresses(names: &[&str]) -> Addresses {
        Addresses::new(list(names))
    }

    #[test]
    fn a_call_begins_with_the_one_that_answered_last() {
        let mut known = addresses(&["a:1", "b:1", "a:1", "c:1"]);
        assert_eq!(known.in_turn(), list(&["a:1", "b:1", "c:1"]));
        assert!(known.answered("b:1") && !known.answered("b:1"));
        assert_eq!(known.in_turn(), list(&["b:1", "c:1", "a:1"]));
        assert!(!known.answered("elsewhere:1"), "an address that was dropped meanwhile");
        assert_eq!(known.current(), "b:1");
    }

    #[test]
    fn learned_addresses_are_replaced_and_given_ones_stay() {
        let mut known = addresses(&["head:1"]);
        assert!(known.learn(&list(&["10.0.0.1:1", "10.0.0.2:1"])));
        assert!(!known.learn(&list(&["10.0.0.1:1", "10.0.0.2:1"])));
        assert!(known.answered("10.0.0.2:1"));
        assert!(known.learn(&list(&["10.0.0.3:1"])));
        assert_eq!(known.in_turn(), list(&["10.0.0.2:1", "head:1", "10.0.0.3:1"]), "the current one answers");
        assert!(known.answered("head:1") && known.learn(&list(&["10.0.0.3:1"])));
        assert_eq!(known.in_turn(), list(&["head:1", "10.0.0.3:1"]));
        assert!(!known.learn(&[]));
    }

    #[tokio::test]
    async fn a_change_of_the_current_address_is_seen() {
        let known = KnownStores::parse("a:1, b:1");
        let moved = known.moved_from("a:1");
        tokio::pin!(moved);
        assert!(futures::poll!(&mut moved).is_pending());
        known.learn(&list(&["c:1"]));
        assert!(futures::poll!(&mut moved).is_pending(), "a list alone moves nobody");
        known.answered("c:1");
        moved.await;
    }
}
