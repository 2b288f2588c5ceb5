//! The books of one directory: the places of its objects, and whether it takes more. No I/O.

use super::codec::CodecChoice;
use super::error::SpillError;
use super::file::SegmentFile;
use super::header::Header;
use super::placement::Placement;
use crate::error::NoSpace;
use crate::transfer::ObjectKey;
use rustix::io::Errno;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

/// Free space of the file system below which a full directory is not tried again.
pub(super) const FULL_MARGIN_BYTES: u64 = 16 << 20;

pub(super) struct Books {
    pub(super) placement: Placement,
    pub(super) files: HashMap<u64, Arc<SegmentFile>>,
    pub(super) objects: HashMap<ObjectKey, Slot>,
    pub(super) codec: CodecChoice,
    pub(super) failure: Option<Failure>,
    pub(super) writers_count: usize,
    pub(super) next_sequence: u64,
    pub(super) can_punch: bool,
}

impl Books {
    /// Notes that space was freed: a file system that was full may not be full any more.
    pub(super) fn file_system_has_more(&mut self) {
        if matches!(self.failure, Some(Failure::Full { .. })) {
            self.failure = None;
        }
    }

    /// Notes that a write has succeeded or failed.
    pub(super) fn write_ended(&mut self) {
        assert!(0 < self.writers_count, "a write ends that was not counted");
        self.writers_count -= 1;
    }

    /// Whether the object is still the one in `seen`: not removed, nor removed and written again.
    pub(super) fn is_current(&self, key: &ObjectKey, seen: &Stored) -> bool {
        match self.objects.get(key) {
            Some(Slot::Stored(now)) => now.header.sequence == seen.header.sequence,
            _ => false,
        }
    }
}

pub(super) enum Slot {
    Writing,
    Stored(Stored),
}

/// The location of a stored object.
#[derive(Clone)]
pub(super) struct Stored {
    pub(super) segment: u64,
    pub(super) offset: u64,
    pub(super) header: Arc<Header>,
}

/// Reason for which a directory takes no objects.
#[derive(Clone, Copy)]
pub(super) enum Failure {
    /// The file system is full, until it reports this many free bytes.
    Full {
        resume_free_bytes: u64,
    },
    Removed,
    Io(Errno),
}

impl Failure {
    /// The state of the directory after a write failed with `error`; `None` if it can be used as before.
    pub(super) fn after(error: &SpillError) -> Option<Failure> {
        match error {
            SpillError::NoSpace { cause, .. } => Some(Failure::full(cause)),
            SpillError::Removed { .. } => Some(Failure::Removed),
            // A shortage of descriptors or memory says nothing about the disk, and a foreign file in the
            // place of ours does not prevent the next one.
            SpillError::Io { cause, .. } if is_passing(cause) => None,
            // One error is enough, above all of a sync: the kernel has dropped the pages that it could not
            // write, and a second sync would succeed without them.
            SpillError::Io { cause, .. } | SpillError::ReadOnly { cause, .. } => {
                Some(Failure::Io(cause.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)))
            }
            _ => None,
        }
    }

    /// The reported free space does not count if the file system refused a write while it reported that
    /// space: the user's quota is used up, or the disk below has less than it promised. It must then report
    /// more than before, including the space that the torn write gave back. Otherwise the directory would be
    /// tried for every object without success.
    fn full(cause: &NoSpace) -> Failure {
        let seen_bytes = cause.available_bytes.saturating_add(cause.needed_bytes);
        let is_promised = cause.needed_bytes <= cause.available_bytes;
        Failure::Full { resume_free_bytes: if is_promised { seen_bytes + FULL_MARGIN_BYTES } else { 0 } }
    }
}

fn is_passing(cause: &io::Error) -> bool {
    let errno = cause.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, None | Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN | Errno::EXIST))
}
