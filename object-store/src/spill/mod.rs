//! Files that objects are spilled to, and read back from.
//!
//! A [`SpillSet`] keeps objects by key in a few [directories](SpillDir), each with a quota. Its calls block
//! for as long as the disk takes and are meant for threads of their own; any number of threads may call at
//! once. It knows bytes and keys and nothing of who wants them.
//!
//! * **Segments.** Objects go one behind another into files of 64 to 256 MiB, written front to back and,
//!   where the file system can, directly, without the page cache: that doubles the speed of a disk and takes
//!   no memory from others. Several writers get several segments.
//! * **Nothing is believed.** Every byte on disk is under a checksum (`header.rs` has the layout); the header
//!   is compared with the one in memory, so that files that were swapped or stem from another session are
//!   found too. A range is handed out after its blocks were verified, or not at all.
//! * **Nothing survives its process.** A file is made, never opened again; the index is in memory. What a
//!   killed process left is swept by the next one that uses the directory. So nothing is synced where errors
//!   show without it.
//! * **Compression only where it pays**: [`CodecChoice`] measures the disk and a little of every object.
//! * **Space comes back.** A segment goes with its last object; [`SpillDir::compact`] punches holes or moves
//!   what still lives.
//!
//! Decisions stand apart from I/O, each in its file with its tests: where an object goes, what is compacted,
//! what is compressed.

// In reading order, which the empty lines protect from the formatter.
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

#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) mod mounted;

#[cfg(test)]
mod fault_tests;

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
