//! One spill directory: its quota, its segments and the objects in them.
//!
//! A lock guards the books ([`Placement`], the index of objects); no lock is held while the disk works, so
//! any number of threads read and write at once, each writer in its own segment.

use super::books::{Books, FULL_MARGIN_BYTES, Failure, Slot, Stored};
use super::buffer::BufferPool;
use super::codec::{CodecAdvice, CodecChoice};
use super::error::SpillError;
use super::file::{Device, SegmentFile};
use super::header::{ALIGN, BLOCK_BYTES, Codec, Header, OBJECT_BYTES_MAX, extent_bytes_max};
use super::options::{DirCondition, DirUsage, SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN, SpillOptions, Written};
use super::placement::{Claim, Fate, OverQuota, Placement};
use super::read::Extent;
use super::session::Session;
use super::write::{Parts, sample, write_object};
use crate::annex::{AnnexFile, Quota};
use crate::error::{NoSpace, StoreError};
use crate::transfer::ObjectKey;
use rustix::fs::AtFlags;
use rustix::io::Errno;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// This process's part of a directory for spilled objects. Dropping it removes that part.
pub struct SpillDir {
    pub(super) books: Mutex<Books>,
    pub(super) pool: BufferPool,
    device: Arc<Device>,
    path: PathBuf,
    quota_bytes: u64,
    may_compress: bool,
    /// Last, so that files are closed before their folder goes.
    session: Session,
}

impl SpillDir {
    /// Opens a directory, makes it if it is missing, and removes files that dead processes left in it.
    ///
    /// # Errors
    /// `InsecureDirectory` if other users could replace our files, `ReadOnly` or `Io` if the system refuses.
    pub fn open(path: &Path, quota_bytes: u64, options: &SpillOptions) -> Result<SpillDir, SpillError> {
        let session = Session::open(path)?;
        let device = Device::probe(session.dir(), options.bytes_per_s_max, options.faults.clone()).map_err(
            |cause| SpillError::Io { action: "probe spill directory", path: path.to_owned(), cause },
        )?;
        let segment_bytes = if options.small_segments {
            options.segment_bytes
        } else {
            options.segment_bytes.clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX)
        };
        let books = Books {
            placement: Placement::new(quota_bytes, segment_bytes),
            files: HashMap::new(),
            objects: HashMap::new(),
            codec: CodecChoice::new(),
            failure: None,
            writers_count: 0,
            next_sequence: 0,
            can_punch: true,
        };
        Ok(SpillDir {
            books: Mutex::new(books),
            pool: BufferPool::default(),
            device: Arc::new(device),
            path: path.to_owned(),
            quota_bytes,
            may_compress: options.may_compress,
            session,
        })
    }

    /// Bytes that it may use.
    pub fn quota_bytes(&self) -> u64 {
        self.quota_bytes
    }

    /// A file for values that are larger than memory, as long as the quota. Its blocks count against the
    /// quota too.
    ///
    /// # Errors
    /// `BadSize` if there is no room for an annex, `System` if the file system has no sparse files, or cannot
    /// allocate blocks before a write and free them.
    pub fn annex(self: &Arc<Self>) -> Result<AnnexFile, StoreError> {
        let quota = AnnexQuota { dir: Arc::downgrade(self) };
        AnnexFile::create(self.session.dir(), self.quota_bytes, Box::new(quota))
    }

    /// Writes an object, given in one or several parts. Blocks for as long as the disk takes.
    ///
    /// # Errors
    /// `Exists`, `TooLarge`, `Quota`, `NoSpace`, `ReadOnly`, `Removed`, `Io`; after each of them nothing of
    /// the object is on disk. After the last three the directory takes no more objects.
    pub fn write(&self, key: &ObjectKey, parts: &[&[u8]]) -> Result<Written, SpillError> {
        let mut has_punched = false;
        loop {
            match self.write_once(key, parts) {
                // Another process removed the file of an open segment; the write is tried again in another
                // segment.
                Err(WriteError { error: SpillError::Removed { .. }, was_in_use: true }) => {}
                // Removed objects may still take space.
                Err(WriteError { error: SpillError::NoSpace { .. } | SpillError::Quota { .. }, .. })
                    if !has_punched && self.punch_all() =>
                {
                    has_punched = true;
                    self.books().file_system_has_more();
                }
                result => return result.map_err(|failed| failed.error),
            }
        }
    }

    fn write_once(&self, key: &ObjectKey, parts: &[&[u8]]) -> Result<Written, WriteError> {
        let object = Parts::new(parts);
        if OBJECT_BYTES_MAX < object.len() {
            return Err(SpillError::TooLarge { bytes: object.len(), max_bytes: OBJECT_BYTES_MAX }.into());
        }
        let bytes = extent_bytes_max(object.len());
        let (claim, sequence, advice) = self.claim(key, object.len(), bytes)?;
        let codec = match advice {
            CodecAdvice::Sample if self.may_compress => {
                let sample = sample(&self.pool, &object);
                self.books().codec.judge(&sample)
            }
            _ => Codec::Raw,
        };
        let mut header = Header {
            key: *key,
            session: self.session.number(),
            sequence,
            len: object.len(),
            block_bytes: BLOCK_BYTES,
            codec,
            blocks: Box::default(),
        };
        match self.write_claimed(&claim, &object, &mut header) {
            Ok(stored_bytes) => {
                self.commit(key, claim, header, stored_bytes);
                Ok(Written { object_bytes: object.len(), stored_bytes, codec })
            }
            Err(error) => {
                self.abort(key, claim, &error);
                Err(WriteError { error, was_in_use: !claim.fresh })
            }
        }
    }

    /// Reads `target.len()` bytes of an object from `offset` on, verified. On an error the contents of
    /// `target` are unspecified.
    ///
    /// Whole blocks of [`READ_BYTES`](super::READ_BYTES) are read and verified: ranges along their multiples
    /// cost the least.
    ///
    /// # Errors
    /// `NotFound`, `OutOfRange`, `Corrupt`, `ShortRead`, `Io`.
    pub fn read_into(&self, key: &ObjectKey, offset: u64, target: &mut [u8]) -> Result<(), SpillError> {
        let (stored, file) = self.find(key).ok_or(SpillError::NotFound { key: *key })?;
        let result = self.extent(&stored, &file).read(offset, target);
        if matches!(result, Err(SpillError::Corrupt { .. } | SpillError::ShortRead { .. })) {
            if !self.books().is_current(key, &stored) {
                // The object was removed while it was read, and its space freed: the disk is not at fault.
                return Err(SpillError::NotFound { key: *key });
            }
            // A segment with a corrupt object takes no other object.
            self.books().placement.seal(stored.segment);
        }
        result
    }

    /// Length of an object, if it is here.
    pub fn len_of(&self, key: &ObjectKey) -> Option<u64> {
        self.find(key).map(|(stored, _)| stored.header.len)
    }

    /// Removes an object, and returns whether it was here. An object that is being written is not here yet.
    ///
    /// A segment without living objects is deleted at once; other space comes back by compaction.
    pub fn remove(&self, key: &ObjectKey) -> bool {
        let mut books = self.books();
        match books.objects.get(key) {
            Some(Slot::Stored(stored)) => {
                let stored = stored.clone();
                books.objects.remove(key);
                let fate = books.placement.remove(stored.segment, stored.offset);
                self.carry_out(books, stored.segment, fate);
                true
            }
            _ => false,
        }
    }

    /// The current usage of the directory.
    pub fn usage(&self) -> DirUsage {
        let books = self.books();
        DirUsage {
            path: self.path.clone(),
            quota_bytes: self.quota_bytes,
            used_bytes: books.placement.used_bytes(),
            annex_bytes: books.placement.aside_bytes(),
            dead_bytes: books.placement.fills().iter().map(|fill| fill.dead_bytes).sum(),
            file_system_free_bytes: self.session.file_system_free_bytes(),
            objects_count: books.objects.len() as u64,
            segments_count: books.files.len() as u64,
            is_direct: self.device.is_direct(),
            condition: match books.failure {
                None => DirCondition::Usable,
                Some(Failure::Full { .. }) => DirCondition::Full,
                Some(_) => DirCondition::Failed,
            },
        }
    }

    /// Writers at work and bytes that may still be written, for the choice between directories.
    pub(super) fn load(&self) -> (usize, u64) {
        let books = self.books();
        let free_bytes = books.placement.free_bytes().min(self.session.file_system_free_bytes());
        (books.writers_count, free_bytes)
    }

    pub(super) fn books(&self) -> MutexGuard<'_, Books> {
        // Every change of the books is complete before anything can panic, so poison is ignored.
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn find(&self, key: &ObjectKey) -> Option<(Stored, Arc<SegmentFile>)> {
        let books = self.books();
        match books.objects.get(key) {
            Some(Slot::Stored(stored)) => {
                Some((stored.clone(), Arc::clone(books.files.get(&stored.segment)?)))
            }
            _ => None,
        }
    }

    pub(super) fn extent<'a>(&'a self, stored: &'a Stored, file: &'a SegmentFile) -> Extent<'a> {
        Extent { file, pool: &self.pool, header: &stored.header, offset: stored.offset }
    }

    /// The file of a claim; makes the file if the claim begins a segment.
    pub(super) fn file_of(&self, claim: &Claim) -> Result<Arc<SegmentFile>, SpillError> {
        if !claim.fresh {
            let file = self.books().files.get(&claim.segment).map(Arc::clone);
            let file = file.ok_or_else(|| SpillError::Removed { path: self.path.clone() })?;
            // A removed file would accept the write, but its space could never be freed.
            return if file.is_removed() { Err(SpillError::Removed { path: file.path() }) } else { Ok(file) };
        }
        let name = format!("segment-{}", claim.segment);
        let path = self.session.path().join(&name);
        let file = SegmentFile::create(self.session.dir(), name, path.clone(), &self.device)
            .map_err(|cause| self.write_error("make spill file", path, cause, claim.bytes))?;
        let file = Arc::new(file);
        let replaced = self.books().files.insert(claim.segment, Arc::clone(&file));
        assert!(replaced.is_none(), "{claim:?} has a file and makes one");
        Ok(file)
    }

    pub(super) fn write_error(
        &self,
        action: &'static str,
        path: PathBuf,
        cause: io::Error,
        needed_bytes: u64,
    ) -> SpillError {
        match cause.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::NOSPC | Errno::DQUOT) => {
                let available_bytes = self.session.file_system_free_bytes();
                let cause = NoSpace { needed_bytes, available_bytes, place: "the file system" };
                SpillError::NoSpace { path: self.path.clone(), cause }
            }
            Some(Errno::ROFS) => SpillError::ReadOnly { path, cause },
            Some(Errno::NOENT) => SpillError::Removed { path },
            _ => SpillError::Io { action, path, cause },
        }
    }

    /// Deletes a segment's file if its fate is `Delete`.
    pub(super) fn carry_out(&self, mut books: MutexGuard<'_, Books>, segment: u64, fate: Fate) {
        if fate == Fate::Keep {
            return;
        }
        let file = books.files.remove(&segment);
        books.file_system_has_more();
        drop(books);
        if let Some(file) = file {
            // Its space is freed with its last reader. A name that is gone already is no error.
            let _ = rustix::fs::unlinkat(self.session.dir(), file.name(), AtFlags::empty());
            file.free_at_end();
        }
    }

    fn claim(&self, key: &ObjectKey, len: u64, bytes: u64) -> Result<(Claim, u64, CodecAdvice), SpillError> {
        let mut books = self.books();
        if books.objects.contains_key(key) {
            return Err(SpillError::Exists { key: *key });
        }
        if let Some(failure) = books.failure {
            self.check_failure(failure, bytes)?;
            books.failure = None;
        }
        let claim = books.placement.claim(bytes);
        let claim =
            claim.map_err(|over| SpillError::Quota { path: self.path.clone(), cause: over.into() })?;
        books.objects.insert(*key, Slot::Writing);
        books.writers_count += 1;
        let sequence = books.next_sequence;
        books.next_sequence += 1;
        Ok((claim, sequence, books.codec.advise(len)))
    }

    fn check_failure(&self, failure: Failure, bytes: u64) -> Result<(), SpillError> {
        let free_bytes = self.session.file_system_free_bytes();
        let cause = match failure {
            Failure::Full { resume_free_bytes }
                if bytes.saturating_add(FULL_MARGIN_BYTES).max(resume_free_bytes) <= free_bytes =>
            {
                return Ok(());
            }
            Failure::Full { .. } => Errno::NOSPC,
            Failure::Removed => Errno::NOENT,
            Failure::Io(errno) => errno,
        };
        Err(self.write_error("write to failed spill directory", self.path.clone(), cause.into(), bytes))
    }

    fn write_claimed(
        &self,
        claim: &Claim,
        object: &Parts<'_>,
        header: &mut Header,
    ) -> Result<u64, SpillError> {
        let file = self.file_of(claim)?;
        let failed = |cause| self.write_error("write spill file", file.path(), cause, claim.bytes);
        let result = write_object(&file, &self.pool, object, header, claim.offset).and_then(|disk_time| {
            let stored_bytes = header.stored_bytes() + header.blocks_bytes();
            file.settle(claim.offset, stored_bytes)?;
            Ok((stored_bytes, disk_time))
        });
        match result {
            Ok((stored_bytes, disk_time)) => {
                self.books().codec.wrote(stored_bytes, disk_time.as_nanos() as u64);
                Ok(stored_bytes)
            }
            Err(cause) => {
                // Frees the space of the torn write. If that fails too, the quota is already right without
                // it.
                let _ = file.truncate(claim.offset);
                Err(failed(cause))
            }
        }
    }

    fn commit(&self, key: &ObjectKey, claim: Claim, header: Header, stored_bytes: u64) {
        assert!(stored_bytes.is_multiple_of(ALIGN as u64), "an object ends inside a page");
        let mut books = self.books();
        books.write_ended();
        books.placement.commit(claim, stored_bytes);
        let stored = Stored { segment: claim.segment, offset: claim.offset, header: Arc::new(header) };
        let was = books.objects.insert(*key, Slot::Stored(stored));
        assert!(matches!(was, Some(Slot::Writing)), "an object is stored that was not being written");
    }

    fn abort(&self, key: &ObjectKey, claim: Claim, error: &SpillError) {
        let mut books = self.books();
        books.write_ended();
        let was = books.objects.remove(key);
        assert!(matches!(was, Some(Slot::Writing)), "a write ends that was not under way");
        // A removed file does not mean that the directory is gone: if it is, making the next file will fail.
        let is_of_file = matches!(error, SpillError::Removed { .. }) && !claim.fresh;
        books.failure = Failure::after(error).filter(|_| !is_of_file).or(books.failure);
        let failure = books.failure;
        let fate = books.placement.abort(claim);
        self.carry_out(books, claim.segment, fate);
        // The space freed by the torn write does not count as room for the next try.
        self.books().failure = failure;
    }
}

/// Error of a write.
struct WriteError {
    error: SpillError,
    /// Whether the file of the write was in use before.
    was_in_use: bool,
}

impl From<SpillError> for WriteError {
    fn from(error: SpillError) -> WriteError {
        WriteError { error, was_in_use: false }
    }
}

/// The quota of a directory, for its annex. The annex lives as long as a process maps it, the directory as
/// long as its node. After the node has ended, nothing is counted.
struct AnnexQuota {
    dir: Weak<SpillDir>,
}

impl Quota for AnnexQuota {
    fn take(&self, bytes: u64) -> Result<(), NoSpace> {
        let Some(dir) = self.dir.upgrade() else { return Ok(()) };
        let taken = dir.books().placement.set_aside(bytes);
        match taken {
            // Removed objects may still take space.
            Err(_) if dir.punch_all() => Ok(dir.books().placement.set_aside(bytes)?),
            outcome => Ok(outcome?),
        }
    }

    fn give(&self, bytes: u64) {
        let Some(dir) = self.dir.upgrade() else { return };
        let mut books = dir.books();
        books.placement.give_back(bytes);
        books.file_system_has_more();
    }

    fn make_room(&self) -> bool {
        self.dir.upgrade().is_some_and(|dir| dir.punch_all())
    }
}

impl From<OverQuota> for NoSpace {
    fn from(over: OverQuota) -> NoSpace {
        let OverQuota { needed_bytes, available_bytes } = over;
        NoSpace { needed_bytes, available_bytes, place: "the quota of the spill directory" }
    }
}
