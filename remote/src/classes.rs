//! Task classes that a client has defined, by the properties that the calls of a class share.

use crate::error::Result;
use crate::options::Options;
use parking_lot::Mutex;
use std::collections::HashMap;

/// The classes of a client.
#[derive(Default)]
pub(crate) struct Classes {
    numbers: Mutex<HashMap<ClassKey, u32>>,
}

/// Addresses of the definition and of the call site, and the options of the call if it has its own.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct ClassKey {
    pub(crate) definition: usize,
    pub(crate) site: usize,
    pub(crate) options: Option<Options>,
}

impl Classes {
    /// The number of a class. For a new class, `define` sends its definition.
    ///
    /// # Errors
    /// Errors of `define`; the class then stays new.
    pub(crate) fn number(
        &self,
        key: ClassKey,
        define: impl FnOnce(&ClassKey, u32) -> Result<()>,
    ) -> Result<u32> {
        // Held while the definition is sent, so that no thread uses a number that the node does not know.
        let mut numbers = self.numbers.lock();
        if let Some(number) = numbers.get(&key) {
            return Ok(*number);
        }
        let number = numbers.len() as u32;
        define(&key, number)?;
        numbers.insert(key, number);
        Ok(number)
    }
}
