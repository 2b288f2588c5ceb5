//! The books of one directory: where its objects are, and whether it takes more. No I/O.

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
    /// Space was given back to the file system: if it was full it may not be any more.
    pub(super) fn file_system_has_more(&mut self) {
        if matches!(self.failure, Some(Failure::Full { .. })) {
            self.failure = None;
        }
    }

    /// A write has ended, in one way or the other.
    pub(super) fn write_ended(&mut self) {
        assert!(0 < self.writers_count, "a write ends that was not counted");
        self.writers_count -= 1;
    }

    /// Whether the object is still the one that was seen: not removed, nor removed and written again.
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

/// Why a directory takes no objects.
#[derive(Clone, Copy)]
pub(super) enum Failure {
    /// Until the file system says that it has this much.
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
            // Descriptors and memory that are short now say nothing about the disk, and something that
            // somebody put where a file should go is not in the way of the next one.
            SpillError::Io { cause, .. } if is_passing(cause) => None,
            // One is enough, of a sync above all: the kernel has dropped the pages that it could not write,
            // and a second sync would succeed without them.
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
