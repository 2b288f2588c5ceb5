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
    /// Counts a connection; none if the machine has as many as it may. It is looked at and counted under one
    /// lock: of several that come at once none passes beside the bound.
    pub(crate) fn enter(&self, machine: MachineId, max: usize) -> Option<Part> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.get(&machine).copied().unwrap_or(0);
        if max <= count {
            return None;
        }
        open.insert(machine, count + 1);
        Some(Part { shares: self.clone(), machine })
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
        let parts: Vec<Part> = (0..3).map(|_| shares.enter(greedy, 3).unwrap()).collect();
        assert!(shares.enter(greedy, 3).is_none() && shares.enter(other, 3).is_some());
        drop(parts);
        assert!(shares.enter(greedy, 1).is_some() && shares.0.lock().unwrap().is_empty());
    }

    #[test]
    fn those_that_come_at_once_do_not_pass_beside_the_bound() {
        const MAX: usize = 3;
        let shares = Shares::default();
        let begin = std::sync::Barrier::new(8);
        let parts: Vec<_> = std::thread::scope(|scope| {
            let one = || {
                begin.wait();
                (0..100).filter_map(|_| shares.enter(MachineId(1), MAX)).collect::<Vec<_>>()
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(one)).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(parts.len(), MAX);
    }
}
