//! One suite for every back end of the control store, and what tests need to run it: an etcd process, ports,
//! folders.
//!
//! A check is a function that takes a [`Subject`] and panics when the back end is not what
//! `tharsis_gcs::backend` says. `tests/backends.rs` runs all of them against memory, a file and a real etcd;
//! `tests/service.rs` tests the service over
//! loopback, `tests/identity.rs` who may call it. A missing etcd fails: nothing is skipped.

#![forbid(unsafe_code)]
// A suite says what is wrong by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::missing_panics_doc)]

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
