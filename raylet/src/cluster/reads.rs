//! The reading of one object: by steps, and on from where it broke off.
//!
//! A value that was put is the same on all nodes. A result may have been made twice, with different bytes, so
//! its reader goes on with the copy of which it has a part, or from the start. The holder tells the *number*
//! of its copy, which no other copy there has or had. It is read as an object is, eight bytes under a key of
//! its own: before the bytes of a result, and again behind them if they came in parts. Between two equal
//! answers there was that copy alone. A node that knows nothing of numbers has no object under such a key;
//! results begin anew there.

use tharsis_object_store::transfer::{CHUNK_BYTES, ObjectKey, TransferError};
use tharsis_object_store::{Arena, StoreError};
use tharsis_types::limits::MIB;
use tharsis_types::{Extent, NodeId, ObjectId};

/// Pages are made for this many bytes, then the bytes are read.
const STEP_BYTES: u64 = 64 * MIB as u64;
/// Byte of a key that is the highest one of the number of a job, and its bit that no job has: they count up
/// from 1.
const NUMBER_BYTE: usize = 3;
const NUMBER_BIT: u8 = 0x80;

/// Fetches what a holder sends under a key, from an offset on; returns over how many connections it came.
pub(super) type Fetch<'a> = dyn Fn(&ObjectKey, u64, &mut [u8]) -> Result<usize, Unread> + 'a;

/// The work of a transfer.
#[derive(Debug)]
pub struct Job {
    /// The object.
    pub object: ObjectId,
    /// The node from which it is read.
    pub from: NodeId,
    into: Extent,
    /// Bytes from the start that are there.
    pub done_bytes: u64,
    /// Number of the copy of which they must be; 0 if that is not known or any copy will do.
    pub copy: u64,
    /// Bytes that have come.
    pub received_bytes: u64,
}

/// Why bytes of another node did not come.
#[derive(Debug, PartialEq, Eq)]
pub struct Unread {
    /// The cause, in words.
    pub cause: String,
    /// Whether the node was not reached, has no place for us, or the connection broke: that says nothing of
    /// what it has.
    pub is_interrupted: bool,
    /// Bytes from the start of the range that had come.
    pub done_bytes: u64,
}

/// Why an object did not come.
#[derive(Debug)]
pub(super) enum Broken {
    /// There are no pages to read it into.
    NoMemory(String),
    /// It could not be read.
    Transfer(Unread),
}

impl Job {
    /// Reads an object from a node into a range of the arena, of which so many bytes from the start are there
    /// already, of the copy with this number.
    #[must_use]
    pub fn new(object: ObjectId, from: NodeId, into: Extent, done_bytes: u64, copy: u64) -> Self {
        Self { object, from, into, done_bytes, copy, received_bytes: 0 }
    }

    /// Reads what is not there yet.
    pub(super) fn read(&mut self, arena: &Arena, fetch: &Fetch<'_>) -> Result<(), Broken> {
        let copy = self.copy_there(fetch).map_err(Broken::Transfer)?;
        if !self.object.is_put() && (copy == 0 || copy != self.copy) {
            self.done_bytes = 0;
        }
        self.copy = copy;
        let mut parts = usize::from(0 < self.done_bytes);
        while self.done_bytes < self.into.len {
            let done = self.done_bytes;
            let step = STEP_BYTES.min(self.into.len - done);
            let offset = self.into.offset + done;
            let no_memory = |cause: StoreError| Broken::NoMemory(cause.to_string());
            arena.map().make_pages(offset, step).map_err(no_memory)?;
            let mut slot = arena.map().write(offset, step).map_err(no_memory)?;
            let fetched = fetch(&self.object.to_bytes(), done, &mut slot);
            let come = come_bytes(step, &fetched);
            (self.done_bytes, self.received_bytes) = (done + come, self.received_bytes + come);
            parts += fetched.map_err(Broken::Transfer)?;
        }
        if 1 < parts && copy != 0 && self.copy_there(fetch).map_err(Broken::Transfer)? != copy {
            (self.done_bytes, self.copy) = (0, 0);
            return Err(Broken::Transfer(Unread::interrupted("its copy has changed while it was read")));
        }
        Ok(())
    }

    /// Number of the copy at the holder now; 0 if it tells none. A value that was put needs none, and of what
    /// is so short nothing is kept.
    fn copy_there(&self, fetch: &Fetch<'_>) -> Result<u64, Unread> {
        if self.object.is_put() || self.into.len <= CHUNK_BYTES as u64 {
            return Ok(0);
        }
        let mut number = [0; 8];
        match fetch(&number_key(self.object), 0, &mut number) {
            Ok(_parts) => Ok(u64::from_le_bytes(number)),
            Err(unread) if unread.is_interrupted => Err(unread),
            Err(_no_copy) => Ok(0),
        }
    }
}

impl Unread {
    /// A node was not reached, and nothing has come.
    pub(super) fn interrupted(cause: impl Into<String>) -> Unread {
        Unread { cause: cause.into(), is_interrupted: true, done_bytes: 0 }
    }

    /// The same, and so many bytes had come before.
    pub(super) fn after(self, done: usize) -> Unread {
        Unread { done_bytes: done as u64, ..self }
    }

    /// A connection that broke, or on which nothing came, says nothing of the object.
    pub(super) fn of(error: &TransferError) -> Unread {
        use TransferError::{Closed, Io, Timeout};
        let is_interrupted = matches!(error, Closed | Io { .. } | Timeout { .. });
        Unread { cause: error.to_string(), is_interrupted, done_bytes: 0 }
    }
}

/// Bytes of a step that have come. Of one that broke off whole chunks count: a sender that gives less each
/// time has sent nothing.
fn come_bytes(step: u64, fetched: &Result<usize, Unread>) -> u64 {
    match fetched {
        Ok(_parts) => step,
        Err(unread) => unread.done_bytes / CHUNK_BYTES as u64 * CHUNK_BYTES as u64,
    }
}

/// The key under which the number of a copy is read.
fn number_key(object: ObjectId) -> ObjectKey {
    let mut key = object.to_bytes();
    key[NUMBER_BYTE] |= NUMBER_BIT;
    key
}

/// The object of which a key asks for the number of the copy, if it does.
pub(super) fn object_of_number(key: &ObjectKey) -> Option<ObjectId> {
    let mut bytes = *key;
    bytes[NUMBER_BYTE] &= !NUMBER_BIT;
    (bytes != *key).then(|| ObjectId::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use tharsis_types::{JobId, TaskId};

    const CHUNK: u64 = CHUNK_BYTES as u64;
    const INTO: Extent = Extent { offset: 4096, len: 5 * CHUNK + 7 };
    const HOLDER: NodeId = NodeId(1);

    /// A node whose copy is full of its number, behind a link that breaks each time after so many bytes.
    struct Holder {
        copy: Cell<u64>,
        bytes_max: usize,
    }

    impl Holder {
        fn fetch(&self, key: &ObjectKey, target: &mut [u8]) -> Result<usize, Unread> {
            let copy = self.copy.get();
            if object_of_number(key).is_some() {
                target.copy_from_slice(&copy.to_le_bytes());
                return Ok(1);
            }
            let come = target.len().min(self.bytes_max);
            target[..come].fill(copy as u8);
            if come == target.len() {
                return Ok(1);
            }
            Err(Unread { done_bytes: come as u64, ..Unread::interrupted("cut") })
        }

        /// Reads once; returns whether all is there.
        fn read(&self, arena: &Arena, job: &mut Job) -> bool {
            job.read(arena, &|key: &ObjectKey, _: u64, target: &mut [u8]| self.fetch(key, target)).is_ok()
        }
    }

    fn holder(copy: u64) -> Holder {
        Holder { copy: Cell::new(copy), bytes_max: 5 * CHUNK_BYTES / 2 }
    }

    fn job(done_bytes: u64, copy: u64) -> Job {
        Job::new(ObjectId::output(TaskId::root(JobId(1)), 0), HOLDER, INTO, done_bytes, copy)
    }

    /// All bytes of the object, if they are the same.
    fn value(arena: &Arena) -> Option<u8> {
        let bytes = arena.map().slice(INTO.offset, INTO.len).unwrap();
        bytes.iter().all(|byte| *byte == bytes[0]).then(|| bytes[0])
    }

    #[test]
    fn a_result_arrives_over_a_link_that_breaks_before_all_of_it_has_come() {
        let (arena, holder) = (Arena::create(8 << 20).unwrap(), holder(7));
        let (mut next, mut seen) = (job(0, 0), Vec::new());
        while !holder.read(&arena, &mut next) {
            seen.push((next.done_bytes, next.copy));
            next = job(next.done_bytes, next.copy);
        }
        assert_eq!(seen, [(2 * CHUNK, 7), (4 * CHUNK, 7)]);
        assert_eq!((value(&arena), next.received_bytes), (Some(7), CHUNK + 7));
    }

    #[test]
    fn a_result_begins_anew_with_another_copy_and_with_one_that_has_no_number() {
        let arena = Arena::create(8 << 20).unwrap();
        for (there, known) in [(8, 7), (8, 0), (0, 7), (0, 0)] {
            let mut job = job(4 * CHUNK, known);
            assert!(!holder(there).read(&arena, &mut job));
            assert_eq!((job.done_bytes, job.copy), (2 * CHUNK, there), "{there}, {known}");
        }
        let mut put = Job { object: ObjectId::put(TaskId::root(JobId(1)), 0), ..job(4 * CHUNK, 0) };
        assert!(holder(8).read(&arena, &mut put), "a value that was put is the same everywhere");
    }

    #[test]
    fn a_copy_that_changes_while_its_parts_are_read_does_not_count() {
        let (arena, holder) = (Arena::create(8 << 20).unwrap(), holder(7));
        let changes = |key: &ObjectKey, _: u64, target: &mut [u8]| {
            let fetched = holder.fetch(key, target);
            holder.copy.set(8);
            fetched
        };
        let mut job = job(4 * CHUNK, 7);
        let broken = job.read(&arena, &changes).unwrap_err();
        assert!(matches!(broken, Broken::Transfer(Unread { is_interrupted: true, .. })), "{broken:?}");
        assert_eq!((job.done_bytes, job.copy), (0, 0));
    }

    #[test]
    fn what_comes_before_a_step_breaks_off_is_counted_by_chunks() {
        let of_step = |done_bytes: u64| {
            come_bytes(STEP_BYTES, &Err(Unread { done_bytes, ..Unread::interrupted("cut") }))
        };
        assert_eq!(come_bytes(STEP_BYTES, &Ok(1)), STEP_BYTES);
        assert_eq!([0, CHUNK - 1, 5 * CHUNK + 1].map(of_step), [0, 0, 5 * CHUNK]);
    }

    #[test]
    fn the_key_of_a_number_is_that_of_no_object() {
        let object = ObjectId::output(TaskId::root(JobId(u32::MAX >> 1)), 3);
        assert_eq!(object_of_number(&object.to_bytes()), None);
        assert_eq!(object_of_number(&number_key(object)), Some(object));
    }
}
