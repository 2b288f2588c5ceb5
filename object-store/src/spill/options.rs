//! Options that a caller sets for spill directories, and the usage that the directories report.

use super::file::Faults;
use super::header::Codec;
use std::path::PathBuf;
use std::sync::Arc;

/// Smallest segment: below it, making and deleting files costs more than it gains.
pub const SEGMENT_BYTES_MIN: u64 = 64 << 20;
/// Largest segment: above it, one living object would keep too many dead bytes.
pub const SEGMENT_BYTES_MAX: u64 = 256 << 20;

/// Options of a spill directory.
#[derive(Clone)]
pub struct SpillOptions {
    /// Bytes of a segment, clamped to [`SEGMENT_BYTES_MIN`]`..=`[`SEGMENT_BYTES_MAX`]. A larger object gets
    /// its own segment.
    pub segment_bytes: u64,
    /// Whether the directory may compress where that pays.
    pub may_compress: bool,
    /// Upper bound on the bytes read and written per second; `None` for the speed of the device.
    pub bytes_per_s_max: Option<u64>,
    pub(crate) faults: Option<Arc<dyn Faults>>,
    pub(crate) small_segments: bool,
}

impl Default for SpillOptions {
    fn default() -> SpillOptions {
        SpillOptions {
            segment_bytes: 128 << 20,
            may_compress: true,
            bytes_per_s_max: None,
            faults: None,
            small_segments: false,
        }
    }
}

/// Whether a directory takes objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirCondition {
    /// It takes objects.
    Usable,
    /// Its file system was full; tried again once there is space.
    Full,
    /// A write failed for another reason; stored objects can still be read.
    Failed,
}

/// The usage of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirUsage {
    /// The directory.
    pub path: PathBuf,
    /// Bytes that it may use.
    pub quota_bytes: u64,
    /// Bytes that it uses: objects with their headers and padding, writes under way, removed objects not
    /// given back yet, the annex.
    pub used_bytes: u64,
    /// The part of these bytes that belongs to values larger than memory.
    pub annex_bytes: u64,
    /// The part of these bytes that belongs to removed objects.
    pub dead_bytes: u64,
    /// Bytes that its file system has left.
    pub file_system_free_bytes: u64,
    /// Objects in it.
    pub objects_count: u64,
    /// Files in it.
    pub segments_count: u64,
    /// Whether it is read and written without the page cache.
    pub is_direct: bool,
    /// Whether it takes objects.
    pub condition: DirCondition,
}

/// The result of one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Bytes of the object.
    pub object_bytes: u64,
    /// Bytes that it takes on disk.
    pub stored_bytes: u64,
    /// The encoding on disk.
    pub codec: Codec,
}
