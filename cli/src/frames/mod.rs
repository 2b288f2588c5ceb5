//! Commands over frames: queries, and programs as data.
//!
//! A build without the feature `frames` has `absent` in place of [`present`], with the same functions: it
//! contains no DataFusion, and refuses what needs it. The nodes of a cluster need no frames; the programs
//! that they run bring their own.

#[cfg(feature = "frames")]
mod executors;
#[cfg(feature = "frames")]
mod present;
#[cfg(feature = "frames")]
mod sql;

#[cfg(not(feature = "frames"))]
mod absent;

#[cfg(not(feature = "frames"))]
pub use absent::{STORAGE_VARIABLES, query, statements};
#[cfg(all(feature = "tensors", not(feature = "frames")))]
pub use absent::{answer, list};
#[cfg(feature = "frames")]
pub use present::{STORAGE_VARIABLES, answer, list, statements};
#[cfg(feature = "frames")]
pub use sql::{clean, run as query};
