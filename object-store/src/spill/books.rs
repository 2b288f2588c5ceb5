//! The books of one directory: where its objects are, and whether it takes more. No I/O.

use super::codec::CodecChoice;
use super::error::SpillError;
use super::file::SegmentFile;
use super::header::Header;
use super::placement::Placement;
use crate::transfer::ObjectKey;
use rustix::io::Errno;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

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

/// Where an object is.
#[derive(Clone)]
pub(super) struct Stored {
    pub(super) segment: u64,
    pub(super) offset: u64,
    pub(super) header: Arc<Header>,
}

/// Why a directory takes no objects.
#[derive(Clone, Copy)]
pub(super) enum Failure {
    Full,
    Removed,
    Io(Errno),
}

impl Failure {
    /// What the directory is after a write that failed so; none if it is as good as before.
    pub(super) fn after(error: &SpillError) -> Option<Failure> {
        match error {
            SpillError::NoSpace { .. } => Some(Failure::Full),
            SpillError::Removed { .. } => Some(Failure::Removed),
            // Descriptors and memory that are short now say nothing about the disk.
            SpillError::Io { cause, .. } if is_of_process(cause) => None,
            // One is enough, of a sync above all: the kernel has dropped the pages that it could not write, and
            // a second sync would succeed without them.
            SpillError::Io { cause, .. } | SpillError::ReadOnly { cause, .. } => {
                Some(Failure::Io(cause.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)))
            }
            _ => None,
        }
    }
}

fn is_of_process(cause: &io::Error) -> bool {
    let errno = cause.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, None | Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN))
}
