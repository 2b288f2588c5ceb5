//! One suite for every back end of the control store, and what tests need to run it: an etcd process, ports,
//! folders.
//!
//! A check is a function that takes a [`Subject`] and panics when the back end is not what
//! `tharsis_gcs::backend` says. The program `tests/conformance` runs all of them against memory, a file and a
//! real etcd, and tests the service and who may call it. A missing etcd fails: nothing is skipped.

#![forbid(unsafe_code)]

pub mod certificates;
pub mod etcd;
pub mod raw;
pub mod relay;
pub mod suite;

use futures::future::BoxFuture;
use std::sync::Arc;
use tharsis_gcs::Backend;

/// A back end under test.
pub trait Subject: Send + Sync {
    /// The back end.
    fn backend(&self) -> Arc<dyn Backend>;

    /// Makes it forget its history up to and with a revision.
    fn compact(&self, at: u64) -> BoxFuture<'_, ()>;
}
