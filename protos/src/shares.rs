//! Shares of a port: connections that each machine has open, so that one of them does not take all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tharsis_identity::MachineId;

/// Open connections by machine. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shares(Arc<Mutex<HashMap<MachineId, usize>>>);

/// The part of one connection; it is given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Part {
    shares: Shares,
    machine: MachineId,
}

impl Shares {
    /// Whether a machine has as many as it may.
    pub(crate) fn is_full(&self, machine: MachineId, max: usize) -> bool {
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.get(&machine).is_some_and(|open| max <= *open)
    }

    /// Counts a connection.
    pub(crate) fn enter(&self, machine: MachineId) -> Part {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *open.entry(machine).or_default() += 1;
        Part { shares: self.clone(), machine }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let mut open = self.shares.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&self.machine) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.machine);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_its_share_and_takes_none_of_others() {
        let shares = Shares::default();
        let [greedy, other] = [1, 2].map(MachineId);
        let parts: Vec<Part> = (0..3).map(|_| shares.enter(greedy)).collect();
        assert!(shares.is_full(greedy, 3) && !shares.is_full(other, 3));
        drop(parts);
        assert!(!shares.is_full(greedy, 1) && shares.0.lock().unwrap().is_empty());
    }
}
