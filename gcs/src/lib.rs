//! The control store: tables of nodes, jobs and code units, and a small key-value table.
//!
//! Tables ([`tables`]) are built on a small trait, [`Backend`]: transactions, watches from a revision,
//! leases. Three back ends implement it: memory and one file on disk ([`Embedded`]; the file with feature
//! `file`), and an etcd cluster (`Etcd`, feature `etcd`). [`Control`] is the service over any of them and
//! [`serve`] puts it on a port; [`ControlClient`] calls it.
//!
//! This crate stores nothing per task and nothing per object, and knows neither tensors nor object bytes.
//! The tables change when nodes and jobs come and go. The load of a node passes through and is never stored.
//!
//! Read [`backend`] first, then [`tables`] and [`service`].
//!
//! # Invariants
//! 1. All writes of a transaction become visible, durable and watchable together, or not at all.
//! 2. A watcher sees each revision once and in order, or is told that it must list again.
//! 3. A node is a member exactly as long as the key under its lease exists. Only the clock of the back end
//!    decides that, never a time in a message.

#![forbid(unsafe_code)]

pub mod addresses;
pub mod backend;
pub mod choice;
pub mod client;
pub mod embedded;
pub mod error;
#[cfg(feature = "etcd")]
pub mod etcd;
pub mod server;
pub mod service;
pub mod tables;

#[cfg_attr(not(feature = "file"), path = "no_journal.rs")]
mod journal;
mod keyspace;

pub use addresses::{Addresses, KnownStores};
pub use backend::{Answer, Backend, Compare, Op, Response, StoreLease, Txn, TxnResult, Watch, WatchItem};
pub use choice::{BackendChoice, EtcdAccess};
pub use client::{ClientOptions, ControlClient, Membership};
pub use embedded::Embedded;
pub use error::StoreError;
#[cfg(feature = "etcd")]
pub use etcd::{Etcd, EtcdOptions, EtcdTls, EtcdUser};
pub use keyspace::EmbeddedLimits;
pub use server::{ServeError, Server, serve};
pub use service::{Control, ControlOptions, renewal_pace};
pub use tables::Owner;
