//! Identifiers. All are plain values that can be copied, hashed, ordered and printed.
//!
//! Task ids are *derived*. What a driver submits is numbered: hash(root of the job, submission index), since
//! a driver runs once. What a task submits is named by its content as well: hash(parent task, submission
//! index, function, arguments). A task that runs again and calls the same submits children with the same ids,
//! so finished work is found by id and not repeated; where it calls anything else, that is another task,
//! however its calls are ordered. Object ids name one output of a task or one `put` of it.
//!
//! The first four bytes of a task id are the job, so that a reference of another job is recognised without a
//! look-up; the next eight tell apart calls with the same number; the last four are the *family*, sixteen
//! siblings in a row, and in their last four bits which of them it is: a table that wants siblings side by
//! side can have them so.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

/// One driver run. Unique within a cluster; 0 is never used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct JobId(pub u32);

/// One node process, for the time it lives: a restarted node has a new id. Random and never 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeId(pub u64);

/// One driver or worker connected to a node; counts up within that node and is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ClientId(pub u32);

/// One lease of a worker, named by the node that asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LeaseId(pub u64);

/// A remote function: hash of crate, path and signature.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FunctionId(pub u64);

/// The driver's executable, named by the BLAKE3 hash of its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CodeUnitId(pub [u8; 32]);

/// One call of a remote function, the same id for every attempt.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TaskId([u8; 16]);

/// One word: ids are mixed, and tables by task are asked several times for each.
impl Hash for TaskId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // The byte in which siblings of a driver's differ comes first, from where the product carries it on.
        state.write_u64(self.mixed().rotate_left(8));
    }
}

/// Number of a try of a task; the first is 0.
pub type Attempt = u32;

/// One immutable value: an output of a task (`index` below [`ObjectId::PUT_BASE`]) or something it put.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ObjectId {
    /// The task that returned or put the value.
    pub task: TaskId,
    /// Index of the output, or `PUT_BASE` plus the index of the put.
    pub index: u32,
}

impl TaskId {
    /// Bytes of an id.
    pub const LEN: usize = 16;
    /// Number of consecutive siblings whose ids differ only in [`TaskId::sibling`].
    pub const SIBLINGS: u8 = 16;

    /// The root of a job: the parent of everything its driver submits.
    #[must_use]
    pub fn root(job: JobId) -> Self {
        Self::hashed(job, &[0; 16], u64::MAX)
    }

    /// The id of the `index`-th task that this one submits, if it never runs again: the root of a driver's
    /// job.
    #[must_use]
    pub fn child(&self, index: u64) -> Self {
        let mut child = Self::hashed(self.job(), &self.0, index / u64::from(Self::SIBLINGS));
        let [.., last] = &mut child.0;
        *last = *last / Self::SIBLINGS * Self::SIBLINGS + (index % u64::from(Self::SIBLINGS)) as u8;
        child
    }

    /// The id of the `index`-th call (or put) of this task, whose function and arguments (or value) hash to
    /// `content`.
    #[must_use]
    pub fn call(&self, index: u64, content: u128) -> Self {
        let mut input = [0; 40];
        input[..16].copy_from_slice(&self.0);
        input[16..24].copy_from_slice(&index.to_le_bytes());
        input[24..].copy_from_slice(&content.to_le_bytes());
        let mut call = self.child(index);
        call.0[4..12].copy_from_slice(&twox_hash::XxHash3_64::oneshot(&input).to_le_bytes());
        call
    }

    /// This id among those of another job. An actor's calls belong to its own job, whichever job called it,
    /// and are named after the method that makes them.
    #[must_use]
    pub fn in_job(mut self, job: JobId) -> Self {
        self.0[..4].copy_from_slice(&job.0.to_le_bytes());
        self
    }

    /// The job this task belongs to.
    #[must_use]
    pub fn job(&self) -> JobId {
        let [a, b, c, d, ..] = self.0;
        JobId(u32::from_le_bytes([a, b, c, d]))
    }

    /// The id as bytes, for records and messages.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; Self::LEN] {
        self.0
    }

    /// An id from its bytes; any sixteen bytes are an id.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        Self(bytes)
    }

    /// Position of a task among consecutive siblings, below [`TaskId::SIBLINGS`].
    #[must_use]
    pub fn sibling(&self) -> u8 {
        let [.., last] = self.0;
        last % Self::SIBLINGS
    }

    /// Twenty-eight bits, well mixed, that a task shares with its siblings in a row.
    #[must_use]
    pub fn family(&self) -> u32 {
        let [.., a, b, c, d] = self.0;
        u32::from_le_bytes([a, b, c, d / Self::SIBLINGS])
    }

    /// Eight bytes, well mixed and apart from [`TaskId::family`], that calls with different content do not
    /// share. Those of a driver do within a family.
    #[must_use]
    pub fn content(&self) -> u64 {
        let [_, _, _, _, a, b, c, d, e, f, g, h, ..] = self.0;
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }

    /// Eight bytes, well mixed but for siblings of a driver's, of which only the highest one differs.
    #[must_use]
    pub fn mixed(&self) -> u64 {
        let [.., a, b, c, d, e, f, g, h] = self.0;
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }

    fn hashed(job: JobId, parent: &[u8; 16], index: u64) -> Self {
        let mut input = [0; 24];
        input[..16].copy_from_slice(parent);
        input[16..].copy_from_slice(&index.to_le_bytes());
        let mut id = twox_hash::XxHash3_128::oneshot(&input).to_le_bytes();
        id[..4].copy_from_slice(&job.0.to_le_bytes());
        Self(id)
    }
}

impl ObjectId {
    /// Bytes of an id in records and messages.
    pub const LEN: usize = 20;
    /// Indexes from here on are puts, below are outputs.
    pub const PUT_BASE: u32 = 1 << 31;

    /// The `index`-th output of a task.
    #[must_use]
    pub const fn output(task: TaskId, index: u32) -> Self {
        Self { task, index }
    }

    /// The `count`-th value put by a task.
    #[must_use]
    pub const fn put(task: TaskId, count: u32) -> Self {
        Self { task, index: Self::PUT_BASE | count }
    }

    /// Whether the value was put, not returned.
    #[must_use]
    pub const fn is_put(&self) -> bool {
        self.index >= Self::PUT_BASE
    }

    /// The id as bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let mut out = [0; Self::LEN];
        out[..16].copy_from_slice(&self.task.0);
        out[16..].copy_from_slice(&self.index.to_le_bytes());
        out
    }

    /// An id from its bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        let mut task = [0; 16];
        let mut index = [0; 4];
        task.copy_from_slice(&bytes[..16]);
        index.copy_from_slice(&bytes[16..]);
        Self { task: TaskId(task), index: u32::from_le_bytes(index) }
    }
}

fn hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|b| write!(f, "{b:02x}"))
}

/// Text that is no id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAnId {
    /// The text.
    pub text: String,
}

impl fmt::Display for NotAnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = &self.text;
        write!(
            f,
            "`{text}` is no id: a task is 32 hexadecimal digits, an object a task with `/0` for its first output \
             or `/put0` for the first value that it put"
        )
    }
}

impl std::error::Error for NotAnId {}

/// As [`TaskId`] is printed.
impl FromStr for TaskId {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let wrong = || NotAnId { text: text.to_owned() };
        let is_hex = text.len() == 2 * Self::LEN && text.bytes().all(|b| b.is_ascii_hexdigit());
        let number = u128::from_str_radix(text, 16).ok().filter(|_| is_hex).ok_or_else(wrong)?;
        Ok(Self(number.to_be_bytes()))
    }
}

/// As [`ObjectId`] is printed.
impl FromStr for ObjectId {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let wrong = || NotAnId { text: text.to_owned() };
        let (task, index) = text.split_once('/').ok_or_else(wrong)?;
        let task = task.parse().map_err(|_| wrong())?;
        let (digits, base) = match index.strip_prefix("put") {
            Some(count) => (count, Self::PUT_BASE),
            None => (index, 0),
        };
        let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        let number = digits.parse::<u32>().ok().filter(|n| is_number && *n < Self::PUT_BASE);
        Ok(Self { task, index: base | number.ok_or_else(wrong)? })
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(f, &self.0)
    }
}

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Task({self})")
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_put() {
            write!(f, "{}/put{}", self.task, self.index - Self::PUT_BASE)
        } else {
            write!(f, "{}/{}", self.task, self.index)
        }
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Object({self})")
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Node({self})")
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

impl fmt::Display for FunctionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for FunctionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Function({self})")
    }
}

impl fmt::Display for CodeUnitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(f, &self.0)
    }
}

impl fmt::Debug for CodeUnitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CodeUnit(")?;
        hex(f, &self.0[..6])?;
        write!(f, ")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_are_derived_and_keep_their_job() {
        let root = TaskId::root(JobId(7));
        assert_eq!(root.child(3), TaskId::root(JobId(7)).child(3));
        assert_ne!(root.child(3), root.child(4));
        assert_ne!(root.child(3), TaskId::root(JobId(8)).child(3));
        assert_eq!(root.child(3).child(9).job(), JobId(7));
    }

    #[test]
    fn siblings_in_a_row_are_told_by_their_last_bits() {
        let root = TaskId::root(JobId(7));
        let ids: Vec<_> = (0..1000).map(|index| root.child(index)).collect();
        let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
        assert_eq!(distinct.len(), ids.len());
        for (index, id) in ids.iter().enumerate() {
            assert_eq!(usize::from(id.sibling()), index % 16);
            assert_eq!(id.to_bytes()[..15], ids[index / 16 * 16].to_bytes()[..15]);
        }
    }

    #[test]
    fn calls_are_named_by_their_number_and_their_content() {
        let task = TaskId::root(JobId(7)).child(3);
        let call = task.call(5, 40);
        assert_eq!(call, task.call(5, 40));
        for other in [task.call(6, 40), task.call(5, 41), task.child(4).call(5, 40), task.child(5)] {
            assert_ne!(call, other);
        }
        assert_eq!(call.job(), JobId(7));
        let siblings: Vec<_> = (0..32).map(|index| task.call(index, index.into())).collect();
        for (index, id) in siblings.iter().enumerate() {
            assert_eq!(usize::from(id.sibling()), index % 16);
            assert_eq!(id.family(), siblings[index / 16 * 16].family(), "siblings stand side by side");
        }
        assert_ne!(siblings[0].family(), siblings[16].family());
    }

    #[test]
    fn object_ids_survive_bytes_and_tell_puts_from_outputs() {
        let task = TaskId::root(JobId(1)).child(0);
        for id in [ObjectId::output(task, 0), ObjectId::output(task, 65_535), ObjectId::put(task, 12)] {
            assert_eq!(ObjectId::from_bytes(id.to_bytes()), id);
        }
        for id in [ObjectId::output(task, 0), ObjectId::output(task, 7), ObjectId::put(task, 12)] {
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        assert_eq!(task.to_string().parse(), Ok(task));
        let long = format!("{task}0");
        for wrong in ["", "12", "/0", &long, &long.replace('0', "+")] {
            assert_eq!(wrong.parse::<TaskId>(), Err(NotAnId { text: wrong.to_owned() }));
        }
        for end in ["", "/", "/put", "/-1", "/+1", "/put2147483648", "/0/0", "/x"] {
            assert!(format!("{task}{end}").parse::<ObjectId>().is_err(), "{end}");
        }
        assert!(ObjectId::put(task, 0).is_put());
        assert!(!ObjectId::output(task, 0).is_put());
    }
}
