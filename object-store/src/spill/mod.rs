//! Files that objects are spilled to, and read back from.
//!
//! A [`SpillSet`] keeps objects by key in a few [directories](SpillDir), each with a quota. Its calls block
//! for as long as the disk takes and are meant for dedicated threads; any number of threads may call at once.
//! It knows bytes and keys, not their users.
//!
//! * **Segments.** Objects are appended to files of 64 to 256 MiB. If the file system supports it, they are
//!   written directly, without the page cache: that doubles the speed of a disk and takes no memory from
//!   others. Several writers get several segments.
//! * **Nothing is trusted.** A checksum covers every byte on disk (`header.rs` has the layout); the header
//!   is compared with the one in memory, so that files that were swapped or stem from another session are
//!   found too. A range is returned only after its blocks were verified.
//! * **Nothing survives its process.** Files of an earlier process are never opened; the index is in memory.
//!   The next process that uses the directory removes files of a killed one. So writes are synced only where
//!   errors would not show otherwise.
//! * **Compression only where it pays**: [`CodecChoice`] measures the disk and a little of every object.
//! * **Space comes back.** A segment goes with its last object; [`SpillDir::compact`] punches holes or moves
//!   living objects.
//!
//! Decisions are separate from I/O, each in its file with its tests: placement, compaction, compression.

// In reading order; the empty lines keep the formatter from sorting them.
mod error;

mod header;

mod placement;

mod compaction;

mod codec;

mod buffer;

mod file;

mod session;

mod write;

mod read;

mod options;

mod books;

mod dir;

mod compact;

mod set;

#[cfg(feature = "inputs")]
pub(crate) mod inputs;

#[cfg(not(models))]
#[cfg(test)]
mod tests;

#[cfg(not(models))]
#[cfg(test)]
pub(crate) mod mounted;

#[cfg(not(models))]
#[cfg(test)]
mod fault_tests;

#[cfg(not(models))]
#[cfg(test)]
mod disk_tests;

pub use buffer::DirectBuffer;
pub use codec::{CodecAdvice, CodecChoice, CompressedSample};
pub use compact::Compacted;
pub use compaction::{CompactionLimits, CompactionStep, SegmentFill, plan_compaction};
pub use dir::SpillDir;
pub use error::{CorruptPart, HeaderError, SpillError};
pub use header::Codec;
pub use options::{DirCondition, DirUsage, SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN, SpillOptions, Written};
pub use set::{SpillPlace, SpillSet};

/// Bytes that are read and verified together; ranges along multiples of it cost the least.
pub const READ_BYTES: u64 = header::BLOCK_BYTES as u64;
