//! Operations that all members of a group do together: each brings a part, each gets a result.
//!
//! ```
//! use tharsis::collective::{self, Member, Reduce};
//! use tharsis::prelude::*;
//!
//! struct Trainer {
//!     member: Member,
//! }
//!
//! #[actor]
//! impl Trainer {
//!     fn new(member: Member) -> Self {
//!         Self { member }
//!     }
//!
//!     fn step(&mut self, gradient: Vec<f64>) -> Result<Vec<f64>, Error> {
//!         self.member.allreduce(&gradient, Reduce::Sum)
//!     }
//! }
//!
//! # fn main() -> Result<(), Error> {
//! let _runtime = init().num_cpus(2.0).start()?;
//! let trainers: Vec<_> = collective::group(2)?.into_iter().map(Trainer::remote).collect();
//! let sums: Vec<_> = trainers.iter().map(|trainer| trainer.step(vec![1.0, 2.0])).collect();
//! assert_eq!(get_all(&sums, None)?, [[2.0, 4.0], [2.0, 4.0]]);
//! # Ok(())
//! # }
//! ```
//!
//! Members meet in an actor that belongs to the group. Only references go through it: the numbers go from the
//! store of one member to those of the others. Of a large array each member reduces a part and reads the
//! parts of the others, so it moves about twice the array, however many members there are.
//!
//! A member that does not come within the [timeout](Member::set_timeout) fails the operation for all others,
//! and all later ones of the group: make a new group then.

mod meeting;
mod number;

pub use meeting::CollectiveError;
pub use number::{Number, Reduce};

use crate::{Array, Element, Error, FailureKind, ObjectRef, Result, get_all, put};
use meeting::{Brought, MEMBERS_MAX, Meeting, MeetingHandle, Taken};
use ndarray::Ix1;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::time::Duration;

/// Arrays of at most so many bytes are reduced by each member as a whole: that takes one meeting, not two.
const SMALL_BYTES: usize = 64 << 10;
/// The time that members wait for each other unless they are told another one.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A member of a group. It is a value: give it to the actor or task that is the member.
#[derive(Debug, Serialize, Deserialize)]
pub struct Member {
    meeting: MeetingHandle,
    rank: usize,
    size: usize,
    round: u64,
    timeout: Duration,
}

/// Makes a group: its members, by rank.
///
/// # Errors
/// `InvalidArgument` for no members, or more than 1 024.
pub fn group(size: usize) -> Result<Vec<Member>> {
    if size == 0 || MEMBERS_MAX < size {
        let text = format!("a group of {size} members: there may be 1 to {MEMBERS_MAX}");
        return Err(Error::new(FailureKind::InvalidArgument, text));
    }
    let meeting = Meeting::remote(size);
    let member = |rank| Member { meeting: meeting.clone(), rank, size, round: 0, timeout: TIMEOUT };
    Ok((0..size).map(member).collect())
}

impl Member {
    /// The number of this member, from 0.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The number of members.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Sets the time that this member waits for others; 60 s by default.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// Waits until all members are here.
    ///
    /// # Errors
    /// As [`Member::allreduce`].
    pub fn barrier(&mut self) -> Result<()> {
        self.meet("barrier".to_owned(), Vec::new()).map(|_| ())
    }

    /// The value of the member `root`, for all. The others bring `None`.
    ///
    /// # Errors
    /// `InvalidArgument` for all if the root brings nothing, or if there is no such member, else as
    /// [`Member::allreduce`].
    pub fn broadcast<T: Serialize + DeserializeOwned>(
        &mut self,
        root: usize,
        value: Option<&T>,
    ) -> Result<T> {
        let wrong = |what: &str| {
            Error::new(FailureKind::InvalidArgument, format!("a broadcast of member {root}, {what}"))
        };
        if self.size <= root {
            return Err(wrong(&format!("but there are {}", self.size)));
        }
        let own = value.filter(|_| self.rank == root).map(put).transpose()?;
        // A root without a value comes all the same: so the others know, and need not wait for it.
        let brought = own.into_iter().map(ObjectRef::cast).collect();
        let mut all = self.meet(format!("broadcast from {root}"), brought)?;
        let value = all.swap_remove(root).ok_or_else(|| wrong("which brings no value"))?;
        value.cast::<T>().get()
    }

    /// The values of all members, by rank.
    ///
    /// # Errors
    /// As [`Member::allreduce`].
    pub fn allgather<T: Serialize + DeserializeOwned>(&mut self, value: &T) -> Result<Vec<T>> {
        let brought = vec![put(value)?.cast()];
        let all = self.meet("allgather".to_owned(), brought)?;
        let values: Vec<ObjectRef<T>> = all.into_iter().flatten().map(ObjectRef::cast).collect();
        get_all(&values, None)
    }

    /// The arrays of all members, reduced element by element, for all. All members get the same bits.
    ///
    /// # Errors
    /// A [`CollectiveError`] if a member did not come in time, does something else, or has an array of
    /// another length; the failure of an actor that died.
    pub fn allreduce<T: Number>(&mut self, values: &[T], reduce: Reduce) -> Result<Vec<T>> {
        let operation = described::<T>("allreduce", values.len(), reduce);
        if size_of_val(values) <= SMALL_BYTES {
            let all = self.meet(operation, vec![stored(values)?])?;
            return reduced(all.into_iter().flatten(), reduce);
        }
        let own = self.reduce_part(operation, values, reduce)?;
        let parts = self.meet("the parts of an allreduce".to_owned(), vec![stored(&own)?])?;
        let parts: Vec<ObjectRef<Array<T, Ix1>>> = parts.into_iter().flatten().map(ObjectRef::cast).collect();
        let mut whole = Vec::with_capacity(values.len());
        for part in get_all(&parts, None)? {
            whole.extend_from_slice(part.as_slice());
        }
        Ok(whole)
    }

    /// The part of this member of the arrays of all members, reduced element by element. The parts follow
    /// each other by rank, and the first ones have one element more if the length cannot be divided.
    ///
    /// # Errors
    /// As [`Member::allreduce`].
    pub fn reduce_scatter<T: Number>(&mut self, values: &[T], reduce: Reduce) -> Result<Vec<T>> {
        self.reduce_part(described::<T>("reduce_scatter", values.len(), reduce), values, reduce)
    }

    fn reduce_part<T: Number>(&mut self, operation: String, values: &[T], reduce: Reduce) -> Result<Vec<T>> {
        let parts = (0..self.size).map(|rank| stored(&values[part(values.len(), self.size, rank)]));
        let brought = parts.collect::<Result<Vec<_>>>()?;
        reduced(self.meet(operation, brought)?.into_iter().flatten(), reduce)
    }

    /// Gives what all members bring for this one to the next round.
    fn meet(&mut self, operation: String, brought: Brought) -> Result<Taken> {
        let round = self.round;
        self.round += 1;
        let all = self.meeting.meet(round, self.rank, operation, brought, self.timeout).get()?;
        if all.len() == self.size { Ok(all) } else { Err(misshaped()) }
    }
}

/// Describes what a member does, so that others can compare.
fn described<T: Number>(name: &str, len: usize, reduce: Reduce) -> String {
    format!("{name} of {len} {} by {reduce:?}", T::NAME)
}

/// The elements of a member's part.
fn part(len: usize, size: usize, rank: usize) -> Range<usize> {
    let (each, more) = (len / size, len % size);
    let start = rank * each + rank.min(more);
    start..start + each + usize::from(rank < more)
}

fn stored<T: Element>(values: &[T]) -> Result<ObjectRef<()>> {
    let array = Array::from(ndarray::Array1::from_vec(values.to_vec()));
    Ok(put(&array)?.cast())
}

/// The arrays of members by rank as one.
fn reduced<T: Number>(all: impl Iterator<Item = ObjectRef<()>>, reduce: Reduce) -> Result<Vec<T>> {
    let all: Vec<ObjectRef<Array<T, Ix1>>> = all.map(ObjectRef::cast).collect();
    let mut arrays = get_all(&all, None)?.into_iter();
    let mut sum = arrays.next().ok_or_else(misshaped)?.as_slice().to_vec();
    for array in arrays {
        for (sum, value) in sum.iter_mut().zip(array.as_slice()) {
            *sum = sum.reduce(*value, reduce);
        }
    }
    Ok(sum)
}

fn misshaped() -> Error {
    Error::new(FailureKind::Internal, "a meeting gave less than all members brought")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_members_follow_each_other() {
        for (len, size) in [(0, 3), (2, 3), (10, 3), (12, 4), (7, 1)] {
            let parts: Vec<_> = (0..size).map(|rank| part(len, size, rank)).collect();
            let elements: Vec<usize> = parts.iter().cloned().flatten().collect();
            assert_eq!(elements, (0..len).collect::<Vec<_>>());
            let lens: Vec<_> = parts.iter().map(ExactSizeIterator::len).collect();
            assert!(lens[0] - lens[size - 1] <= 1, "{lens:?}");
        }
    }
}
