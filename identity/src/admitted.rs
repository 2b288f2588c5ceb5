//! The machines that an authority has admitted, by the tokens that they showed: whoever has a token could
//! fill the disk of the head with them, and with all places of machines keep out those of other tokens.

use crate::{IdentityError, MachineId};
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Machines of an authority.
const MACHINES_MAX: usize = 1 << 16;
/// Machines of one token.
const MACHINES_PER_TOKEN_MAX: usize = 1 << 14;

/// Machines and the numbers of their tokens, as their files said when they were first seen. Files of machines
/// are never changed.
#[derive(Debug)]
pub(crate) struct Admitted {
    tokens: HashMap<MachineId, Option<u64>>,
    pub(crate) machines_max: usize,
    pub(crate) per_token_max: usize,
}

impl Default for Admitted {
    fn default() -> Admitted {
        let (machines_max, per_token_max) = (MACHINES_MAX, MACHINES_PER_TOKEN_MAX);
        Admitted { tokens: HashMap::new(), machines_max, per_token_max }
    }
}

impl Admitted {
    /// Takes up the machines that are there now; `token_of` reads the file of one that was not seen before.
    pub(crate) fn look(&mut self, there: HashSet<MachineId>, token_of: impl Fn(MachineId) -> Option<u64>) {
        self.tokens.retain(|machine, _| there.contains(machine));
        for machine in there {
            self.tokens.entry(machine).or_insert_with(|| token_of(machine));
        }
    }

    /// Refuses one more machine of a token if the token or the authority has as many as it may.
    ///
    /// # Errors
    /// `TooManyMachines`, `TooManyOfToken`.
    pub(crate) fn check(&self, token: u64, folder: &Path) -> Result<(), IdentityError> {
        if self.machines_max <= self.tokens.len() {
            let (limit, folder) = (self.machines_max, folder.to_owned());
            return Err(IdentityError::TooManyMachines { limit, folder });
        }
        let of_token = self.tokens.values().filter(|of| **of == Some(token)).count();
        if self.per_token_max <= of_token {
            return Err(IdentityError::TooManyOfToken { token, limit: self.per_token_max });
        }
        Ok(())
    }
}
