//! The actor in which members of a group exchange references.

use crate::{ObjectRef, actor};
use parking_lot::{Condvar, Mutex};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Members of a group, at most: each that waits has a thread of the actor.
pub(super) const MEMBERS_MAX: usize = 1024;

/// Why an operation of a group failed. It is the error value of the operation, see
/// [`Error::downcast`](crate::Error::downcast).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum CollectiveError {
    /// Members did not come in time.
    Missing {
        /// The operation of the others.
        operation: String,
        /// The ranks of those that did not come.
        ranks: Vec<usize>,
    },
    /// Members do different things, or have arrays of different lengths.
    Differ {
        /// The operation of this member.
        operation: String,
        /// The operation of the others.
        others: String,
    },
    /// A member comes twice, or to an operation that is over: two have the same rank, or one was started
    /// again.
    Twice {
        /// The rank of the member.
        rank: usize,
    },
}

impl fmt::Display for CollectiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CollectiveError::Missing { operation, ranks } => {
                write!(f, "{operation}: the members {ranks:?} did not come in time")
            }
            CollectiveError::Differ { operation, others } => {
                write!(f, "{operation}: other members do {others}")
            }
            CollectiveError::Twice { rank } => write!(f, "the member {rank} came twice"),
        }
    }
}

impl std::error::Error for CollectiveError {}

/// Brought by a member to a round: references by the rank of the member that they are for, or one for all.
pub(super) type Brought = Vec<ObjectRef<()>>;

/// References that a member takes from a round: from each member, by rank, what it brought for this one. A
/// group of n hands out n references to each member, and not all n² of them.
pub(super) type Taken = Vec<Option<ObjectRef<()>>>;

/// References that all have brought for the member `rank`.
fn for_member<R: Clone>(all: &[Vec<R>], rank: usize) -> Vec<Option<R>> {
    all.iter().map(|brought| brought.get(if brought.len() == 1 { 0 } else { rank }).cloned()).collect()
}

/// The place where members meet, round by round.
pub(super) struct Meeting {
    rounds: Mutex<Rounds<Brought>>,
    changed: Condvar,
}

#[actor(max_concurrency = 1024)]
impl Meeting {
    pub(super) fn new(size: usize) -> Self {
        Self { rounds: Mutex::new(Rounds::new(size)), changed: Condvar::new() }
    }

    /// Gives what members have brought for this one, by rank, as soon as all have come.
    pub(super) fn meet(
        &self,
        round: u64,
        rank: usize,
        operation: String,
        brought: Brought,
        timeout: Duration,
    ) -> Result<Taken, CollectiveError> {
        let deadline = Instant::now().checked_add(timeout);
        let mut rounds = self.rounds.lock();
        let came = rounds.come(round, rank, operation, brought);
        // Nobody else has anything to do before all are here.
        if *came.as_ref().unwrap_or(&true) {
            self.changed.notify_all();
        }
        came?;
        loop {
            if let Some(all) = rounds.leave(round)? {
                drop(rounds);
                return Ok(for_member(&all, rank));
            }
            let is_late = match deadline {
                Some(deadline) => self.changed.wait_until(&mut rounds, deadline).timed_out(),
                None => {
                    self.changed.wait(&mut rounds);
                    false
                }
            };
            if is_late {
                rounds.give_up(round);
                self.changed.notify_all();
            }
        }
    }
}

/// The rounds that are not over.
struct Rounds<B> {
    size: usize,
    open: HashMap<u64, Round<B>>,
    /// The rounds before this one are over.
    first: u64,
    failed: Option<CollectiveError>,
}

struct Round<B> {
    operation: String,
    brought: Vec<Option<B>>,
    /// Number of members that have not come.
    missing: usize,
    /// All that was brought, when all have come.
    all: Option<Arc<Vec<B>>>,
    /// Number of members that have it.
    left: usize,
}

impl<B> Rounds<B> {
    fn new(size: usize) -> Rounds<B> {
        Rounds { size, open: HashMap::new(), first: 0, failed: None }
    }

    /// Notes what a member brings to a round. Returns whether all have come.
    fn come(
        &mut self,
        round: u64,
        rank: usize,
        operation: String,
        brought: B,
    ) -> Result<bool, CollectiveError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let size = self.size;
        let entry = self.open.entry(round).or_insert_with(|| Round {
            operation: operation.clone(),
            brought: std::iter::repeat_with(|| None).take(size).collect(),
            missing: size,
            all: None,
            left: 0,
        });
        if entry.operation != operation {
            let others = entry.operation.clone();
            return self.fail(CollectiveError::Differ { operation, others });
        }
        let is_new = self.first <= round && entry.all.is_none();
        match entry.brought.get_mut(rank).filter(|place| is_new && place.is_none()) {
            Some(place) => *place = Some(brought),
            None => return self.fail(CollectiveError::Twice { rank }),
        }
        entry.missing -= 1;
        let is_complete = entry.missing == 0;
        if is_complete {
            entry.all = Some(Arc::new(entry.brought.drain(..).flatten().collect()));
        }
        Ok(is_complete)
    }

    /// All that was brought to a round, for one of the members; `None` while some are missing.
    fn leave(&mut self, round: u64) -> Result<Option<Arc<Vec<B>>>, CollectiveError> {
        let all = self.open.get(&round).and_then(|entry| entry.all.clone());
        let (Some(all), Some(entry)) = (all, self.open.get_mut(&round)) else {
            return self.failed.clone().map_or(Ok(None), Err);
        };
        entry.left += 1;
        if entry.left == self.size {
            self.open.remove(&round);
            self.first = self.first.max(round + 1);
        }
        Ok(Some(all))
    }

    /// Fails a round to which somebody did not come in time.
    fn give_up(&mut self, round: u64) {
        let Some(entry) = self.open.get(&round).filter(|entry| entry.all.is_none()) else { return };
        let missing = entry.brought.iter().enumerate().filter(|(_, brought)| brought.is_none());
        let ranks = missing.map(|(rank, _)| rank).collect();
        let error = CollectiveError::Missing { operation: entry.operation.clone(), ranks };
        let _noted = self.fail(error);
    }

    /// Fails this round and all later ones. A round to which all have come has succeeded, also for those that
    /// have not left it yet.
    fn fail(&mut self, error: CollectiveError) -> Result<bool, CollectiveError> {
        self.open.retain(|_, round| round.all.is_some());
        self.failed = Some(error.clone());
        Err(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum() -> String {
        "sum".to_owned()
    }

    #[test]
    fn a_member_takes_what_is_for_it() {
        let all = [vec!["a0", "a1", "a2"], vec!["b"], vec![]];
        assert_eq!(for_member(&all, 0), [Some("a0"), Some("b"), None]);
        assert_eq!(for_member(&all, 2), [Some("a2"), Some("b"), None]);
    }

    #[test]
    fn all_leave_with_what_all_brought() {
        let mut rounds = Rounds::new(2);
        rounds.come(0, 1, sum(), "b").unwrap();
        assert_eq!(rounds.leave(0), Ok(None));
        rounds.come(0, 0, sum(), "a").unwrap();
        assert_eq!(rounds.leave(0).unwrap().unwrap()[..], ["a", "b"]);
        // One member is in the next round before the other has left this one.
        rounds.come(1, 0, sum(), "c").unwrap();
        assert_eq!(rounds.leave(1), Ok(None));
        assert_eq!(rounds.leave(0).unwrap().unwrap()[..], ["a", "b"]);
        assert_eq!((rounds.open.len(), rounds.first), (1, 1));
    }

    #[test]
    fn a_round_that_is_complete_stays_so_when_a_later_one_fails() {
        let mut rounds = Rounds::new(2);
        assert_eq!(rounds.come(0, 0, sum(), "a"), Ok(false));
        assert_eq!(rounds.come(0, 1, sum(), "b"), Ok(true));
        assert!(rounds.leave(0).unwrap().is_some());
        rounds.come(1, 0, sum(), "c").unwrap();
        rounds.give_up(1);
        let missing = CollectiveError::Missing { operation: sum(), ranks: vec![1] };
        assert_eq!(rounds.leave(1), Err(missing.clone()));
        assert_eq!(rounds.leave(0).unwrap().unwrap()[..], ["a", "b"], "for the other one");
        assert_eq!(rounds.come(1, 1, sum(), "d"), Err(missing));
        assert!(rounds.open.is_empty());
    }

    #[test]
    fn a_group_that_failed_stays_so() {
        let mut rounds = Rounds::new(3);
        rounds.come(0, 1, sum(), "b").unwrap();
        rounds.give_up(0);
        let missing = CollectiveError::Missing { operation: sum(), ranks: vec![0, 2] };
        assert_eq!(rounds.leave(0), Err(missing.clone()));
        assert_eq!(rounds.come(0, 0, sum(), "a"), Err(missing));

        let mut rounds = Rounds::new(2);
        rounds.come(0, 0, sum(), "a").unwrap();
        assert_eq!(rounds.come(0, 0, sum(), "a"), Err(CollectiveError::Twice { rank: 0 }));
        let mut rounds = Rounds::new(2);
        rounds.come(0, 0, sum(), "a").unwrap();
        let differ = CollectiveError::Differ { operation: "barrier".to_owned(), others: sum() };
        assert_eq!(rounds.come(0, 1, "barrier".to_owned(), "b"), Err(differ));
        // A member that was started again comes to a round that is over.
        let mut rounds = Rounds::new(1);
        rounds.come(0, 0, sum(), "a").unwrap();
        assert!(rounds.leave(0).unwrap().is_some());
        assert_eq!(rounds.come(0, 0, sum(), "a"), Err(CollectiveError::Twice { rank: 0 }));
    }
}
