//! Errors between memory and a spill file.

use crate::error::NoSpace;
use crate::transfer::ObjectKey;
use std::io;
use std::path::PathBuf;

/// Error of writing or reading a spilled object.
#[derive(Debug, thiserror::Error)]
pub enum SpillError {
    /// The bytes on disk differ from those that were written. The object is lost unless another copy exists.
    #[error("object {} is corrupt on disk: {part} at {offset} of {path:?}", hex(.key))]
    Corrupt {
        /// The object.
        key: ObjectKey,
        /// The part in which the damage was found.
        part: CorruptPart,
        /// Offset of that part in the file.
        offset: u64,
        /// The segment file.
        path: PathBuf,
    },
    /// The object is on disk already; objects never change, so there is nothing to write.
    #[error("object {} is spilled already", hex(.key))]
    Exists {
        /// The object.
        key: ObjectKey,
    },
    /// Other users could replace our files.
    #[error("spill directory {path:?} is insecure: {reason}; give one that belongs to you, with mode 0700")]
    InsecureDirectory {
        /// The directory.
        path: PathBuf,
        /// The reason why it cannot be used.
        reason: &'static str,
    },
    /// The operating system refused.
    #[error("cannot {action} {path:?}: {cause}")]
    Io {
        /// The action that failed.
        action: &'static str,
        /// The path it was tried on.
        path: PathBuf,
        /// The system's reason.
        #[source]
        cause: io::Error,
    },
    /// No object of this key is spilled here.
    #[error("object {} is not spilled here", hex(.key))]
    NotFound {
        /// The object.
        key: ObjectKey,
    },
    /// The file system is full; the object stays in memory.
    #[error("spill directory {path:?} is full: {cause}")]
    NoSpace {
        /// The directory.
        path: PathBuf,
        /// Needed and available bytes.
        #[source]
        cause: NoSpace,
    },
    /// A range that leaves the object.
    #[error("range {offset}+{len} leaves the object of {object_bytes} bytes")]
    OutOfRange {
        /// First byte asked for.
        offset: u64,
        /// Bytes asked for.
        len: u64,
        /// Bytes of the object.
        object_bytes: u64,
    },
    /// The user's quota is reached; the object stays in memory.
    #[error("quota of spill directory {path:?} is reached: {cause}")]
    Quota {
        /// The directory.
        path: PathBuf,
        /// Needed and available bytes.
        #[source]
        cause: NoSpace,
    },
    /// The file system takes no writes.
    #[error("spill directory {path:?} is read-only: {cause}")]
    ReadOnly {
        /// The directory.
        path: PathBuf,
        /// The system's reason.
        #[source]
        cause: io::Error,
    },
    /// Somebody removed the directory while it was in use.
    #[error("{path:?} was removed while it was in use; objects in it can still be read, none be added")]
    Removed {
        /// The path that is gone.
        path: PathBuf,
    },
    /// The file ends before the object does.
    #[error("object {} is cut off: {read_bytes} of {wanted_bytes} bytes at {offset} of {path:?}", hex(.key))]
    ShortRead {
        /// The object.
        key: ObjectKey,
        /// Offset at which the read began.
        offset: u64,
        /// Bytes that the object needs there.
        wanted_bytes: u64,
        /// Bytes that were there.
        read_bytes: u64,
        /// The segment file.
        path: PathBuf,
    },
    /// More than one object can be.
    #[error("object of {bytes} bytes is outside 0..={max_bytes}")]
    TooLarge {
        /// Bytes of the object.
        bytes: u64,
        /// Largest that is spilled.
        max_bytes: u64,
    },
}

/// The part of an object on disk that is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CorruptPart {
    /// A block whose checksum differs.
    #[error("checksum of block {index}")]
    Block {
        /// Index of the block.
        index: u32,
    },
    /// A block that matches its checksum and does not decompress to its length.
    #[error("compression of block {index}")]
    Compression {
        /// Index of the block.
        index: u32,
    },
    /// The header cannot be one.
    #[error("header: {0}")]
    Header(#[from] HeaderError),
    /// A sound header of another object.
    #[error("header of another object")]
    WrongObject,
}

/// Why bytes are not the header of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The checksum of the header differs.
    #[error("its checksum differs")]
    Checksum,
    /// A codec of no known number.
    #[error("codec {found} is unknown")]
    Codec {
        /// The number found.
        found: u32,
    },
    /// Lengths that do not fit each other.
    #[error("its {what} does not fit the rest")]
    Length {
        /// Name of the length.
        what: &'static str,
    },
    /// Not the first bytes of a header.
    #[error("it does not begin with the magic bytes")]
    Magic,
    /// Fewer bytes than the header says that it has.
    #[error("{needed_bytes} bytes needed, {found_bytes} found")]
    Short {
        /// Bytes of the whole header.
        needed_bytes: u64,
        /// Bytes given.
        found_bytes: u64,
    },
    /// Written by another version.
    #[error("version {found} is unknown")]
    Version {
        /// The version found.
        found: u32,
    },
}

impl SpillError {
    /// Whether another directory may take the object that this one refused.
    pub fn is_of_directory(&self) -> bool {
        matches!(
            self,
            SpillError::Io { .. }
                | SpillError::NoSpace { .. }
                | SpillError::Quota { .. }
                | SpillError::ReadOnly { .. }
                | SpillError::Removed { .. }
        )
    }

    /// Whether the object cannot be read back from here any more, however often one tries.
    pub fn is_lost(&self) -> bool {
        matches!(
            self,
            SpillError::Corrupt { .. } | SpillError::NotFound { .. } | SpillError::ShortRead { .. }
        )
    }
}

fn hex(key: &ObjectKey) -> String {
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}
