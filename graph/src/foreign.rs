//! Functions that a plan names but does not contain: a user's function of chunks, reading or writing a file.
//!
//! A plan is sent between processes, functions are not. So a plan has a [`ForeignName`] for each function,
//! and the process that compiles the plan supplies the functions: the process that made the plan has them,
//! another one looks them up by name.

use crate::error::Error;
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_kernels::{Chunk, Place};

/// Name by which another process looks up a function.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ForeignName {
    /// The layer that resolves the name: `remote`, `npy`.
    pub kind: String,
    /// The layer's name for the function, with all that is needed to make it.
    pub name: String,
}

/// A function of chunks that this crate does not know.
///
/// It may be called again for the same chunk, on another thread or in another process, and must return the
/// same result. Its `Debug` text must differ from those of all other functions: equal texts are merged.
pub trait Foreign: fmt::Debug + Send + Sync {
    /// Name by which another process finds it; `None` if it exists in this process only.
    fn name(&self) -> Option<ForeignName>;

    /// Its effect in a word or two, for plans.
    fn describe(&self) -> String;

    /// The most bytes that it holds while it makes a part, beside its arguments and the part: the bounds of
    /// memory count them.
    fn scratch_bytes(&self) -> u64 {
        0
    }

    /// The result for the part of the domain at `place`, from the arguments over that part.
    ///
    /// # Errors
    /// Any error of the function.
    fn run(&self, place: Place<'_>, args: &[Chunk]) -> Result<Chunk, Error>;
}
