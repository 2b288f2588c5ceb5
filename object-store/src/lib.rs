//! Memory shared between processes, and bytes moved between machines.
//!
//! This crate exists to keep every hazard of shared memory in one place. It knows ranges of bytes and nothing
//! of what they mean: no tasks, no owners, no dtypes, no wire messages, no async runtime. Decisions (which
//! object lives where, what is evicted, who may write) belong to the layers above; this one makes them safe
//! to carry out.
//!
//! | question | module |
//! |---|---|
//! | where does shared memory come from, and who removes it | [`segment`] |
//! | how do two processes exchange messages without a system call | [`ring`] |
//! | how does the one sleep and the other wake it | [`bell`] |
//! | what of a client must not be overtaken | [`deferred`] |
//! | how do its threads share a range to write to | [`carve`] |
//! | what a client and its node share of these | [`channel`] |
//! | where do object bytes live | [`arena`] |
//! | and those that are larger than memory | [`annex`] |
//! | who may read and write them | [`map`] |
//! | how are large values copied at memory speed | [`copy`] |
//! | how does a client meet its node | [`local_socket`] |
//! | how do object bytes reach another node | [`transfer`] |
//! | where do they go when memory is short | [`spill`] |
//!
//! `unsafe` is allowed in `segment`, `ring_place`, `ring`, `bell`, `map` and `copy` only (see
//! the `allow` at each); every block states why it is sound.

#![deny(unsafe_code)]
#![warn(missing_docs)]
// `loom` is a build flag of the model tests, not a feature that cargo could declare.
#![allow(unexpected_cfgs)]

// In reading order, which the empty lines protect from the formatter.
pub mod error;

pub mod segment;

mod sync;

mod positions;

mod record;

mod ring_place;

pub mod ring;

pub mod bell;

pub mod deferred;

pub mod carve;

pub mod channel;

mod huge_pages;

mod ranges;

pub mod map;

pub mod annex;

pub mod arena;

pub mod copy;

pub mod local_socket;

mod transfer_frame;

pub mod transfer;

pub mod spill;

#[cfg(feature = "inputs")]
pub mod inputs;

pub use annex::{AnnexFile, AnnexReader};
pub use arena::Arena;
pub use bell::{Bell, BellBoard, SpinPolicy};
pub use channel::Channel;
pub use copy::copy_large;
pub use error::{NoSpace, StoreError};
pub use map::{ArenaMap, ArenaSlice, WriteSlot};
pub use ring::{Consumer, PendingLarge, Producer, PushError, RingCorrupt, RingPlace};
pub use segment::Segment;
pub use spill::{SpillError, SpillSet};
