//! Errors of shared memory; each carries the numbers concerned.

use std::io;

/// The memory behind a segment or an arena is exhausted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no space in {place}: {needed_bytes} bytes needed, {available_bytes} available; free some or make it larger"
)]
pub struct NoSpace {
    /// Bytes that were asked for.
    pub needed_bytes: u64,
    /// Bytes that the place reports as available.
    pub available_bytes: u64,
    /// The memory or file that lacks the space.
    pub place: &'static str,
}

/// Failure of a segment, an arena or of anything placed inside them.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A range does not start or end where this operation needs it.
    #[error("range {offset}+{len} is not aligned to {align} bytes")]
    Misaligned {
        /// First byte of the range.
        offset: u64,
        /// Bytes of the range.
        len: u64,
        /// Alignment that was needed.
        align: u64,
    },
    /// A segment name that this crate would not have made.
    #[error("segment name {name:?} is not of the form tharsis-PID-PREFIX-NUMBER")]
    BadName {
        /// The name as given.
        name: String,
    },
    /// A size outside the accepted range.
    #[error("{what} of {bytes} bytes is outside {min_bytes}..={max_bytes} or not of the right form")]
    BadSize {
        /// The thing for which this size was asked.
        what: &'static str,
        /// The size asked for.
        bytes: u64,
        /// Smallest accepted size.
        min_bytes: u64,
        /// Largest accepted size.
        max_bytes: u64,
    },
    /// The content of shared memory differs from the expected one.
    #[error("{what} in shared memory does not match: found {found:#x}, expected {expected:#x}")]
    Mismatch {
        /// The field that differs.
        what: &'static str,
        /// The value that was found.
        found: u64,
        /// The value that was expected.
        expected: u64,
    },
    /// The memory behind it is exhausted.
    #[error(transparent)]
    NoSpace(#[from] NoSpace),
    /// A write outside the ranges granted to this client.
    #[error("range {offset}+{len} is not granted to this client for writing")]
    NotGranted {
        /// First byte of the range.
        offset: u64,
        /// Bytes of the range.
        len: u64,
    },
    /// A range that leaves the memory it refers to.
    #[error("range {offset}+{len} leaves the {limit_bytes} bytes of {what}")]
    OutOfBounds {
        /// The memory that the range refers to.
        what: &'static str,
        /// First byte of the range.
        offset: u64,
        /// Bytes of the range.
        len: u64,
        /// Size of that memory.
        limit_bytes: u64,
    },
    /// The operating system refused.
    #[error("cannot {action}: {cause}")]
    System {
        /// The action that failed.
        action: &'static str,
        /// The system's reason.
        #[source]
        cause: io::Error,
    },
    /// The range is being written through another slot of this process.
    #[error("range {offset}+{len} overlaps a slot that is being written")]
    WriteUnderway {
        /// First byte of the range.
        offset: u64,
        /// Bytes of the range.
        len: u64,
    },
}

impl StoreError {
    pub(crate) fn system(action: &'static str, cause: impl Into<io::Error>) -> StoreError {
        StoreError::System { action, cause: cause.into() }
    }
}

/// Checks that `offset..offset + len` lies inside `limit_bytes`.
pub(crate) fn check_range(
    what: &'static str,
    limit_bytes: u64,
    offset: u64,
    len: u64,
) -> Result<(), StoreError> {
    match offset.checked_add(len) {
        Some(end) if end <= limit_bytes => Ok(()),
        _ => Err(StoreError::OutOfBounds { what, offset, len, limit_bytes }),
    }
}
