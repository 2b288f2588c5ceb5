//! Memory shared between processes, and bytes moved between machines.
//!
//! This crate exists to keep every hazard of shared memory in one place. It knows ranges of bytes and not
//! their meaning: no tasks, no owners, no dtypes, no wire messages, no async runtime. Decisions (placement of
//! objects, eviction, write access) belong to the layers above; this crate makes them safe to carry out.
//!
//! | concern | module |
//! |---|---|
//! | creation and removal of shared memory | [`segment`] |
//! | messages between two processes without a system call | [`ring`] |
//! | sleeping and waking across processes | [`bell`] |
//! | records of a client that must not be overtaken | [`deferred`] |
//! | sharing of a writable range between the threads of a client | [`carve`] |
//! | the connection of a client and its node: two rings and a bell | [`channel`] |
//! | memory for object bytes | [`arena`] |
//! | file for values larger than this memory | [`annex`] |
//! | read and write access to object bytes | [`map`] |
//! | copies of large values at memory speed | [`copy`] |
//! | handshake of a client and its node | [`local_socket`] |
//! | transfer of object bytes to another node | [`transfer`] |
//! | files for objects when memory is short | [`spill`] |
//!
//! `unsafe` is allowed in `forks`, `segment`, `ring_place`, `ring`, `bell`, `map` and `copy` only (see
//! the `allow` at each); every block states why it is sound.

#![deny(unsafe_code)]
#![warn(missing_docs)]

// In reading order; the empty lines keep the formatter from sorting them.
pub mod error;

mod forks;

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

mod grants;
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
pub use huge_pages::{huge_pages_available, private_huge_pages_available};
pub use map::{ArenaMap, ArenaSlice, WriteSlot};
pub use ring::{Consumer, PendingLarge, Producer, PushError, RingCorrupt, RingPlace};
pub use segment::Segment;
pub use spill::{SpillError, SpillSet};
