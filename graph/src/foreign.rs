//! Functions that a plan names and does not hold: a user's function of chunks, a file that is read or
//! written.
//!
//! A plan travels, functions do not. So a plan has a [`ForeignName`] for each, and whoever compiles it brings
//! the functions: the process that made the plan has them at hand, another one finds them by name.

use crate::error::Error;
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_kernels::{Chunk, Place};

/// By what another process finds a function.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ForeignName {
    /// The layer that knows such functions: `remote`, `npy`.
    pub kind: String,
    /// That layer's name for it, with all that it needs.
    pub name: String,
}

/// A function of chunks that this crate does not know.
///
/// It may be called again for the same chunk, on another thread or in another process, and must then give the
/// same. Its `Debug` text must tell it from all others: equal texts are merged.
pub trait Foreign: fmt::Debug + Send + Sync {
    /// Name by which another process finds it; `None` if it is in this one only.
    fn name(&self) -> Option<ForeignName>;

    /// Its effect in a word or two, for plans.
    fn describe(&self) -> String;

    /// The result for the part of the domain at `place`, from the arguments over that part.
    ///
    /// # Errors
    /// Whatever it refuses.
    fn run(&self, place: Place<'_>, args: &[Chunk]) -> Result<Chunk, Error>;
}
