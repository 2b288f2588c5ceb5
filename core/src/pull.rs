//! Objects that are read from other nodes, and their order.
//!
//! A *bundle* is a set of objects that are needed together: the arguments of a run, or the value of a `get`.
//! Bundles are admitted whole or not at all, so that a full store never holds halves of several. Reads of
//! values come before arguments. An object that several bundles need is read once. When a source fails, the
//! next holder is tried; when none is left, the bundle fails (`pull/failures.rs`). A holder that is not
//! reached has not failed (`pull/reach.rs`): bundles that need an object of which no holder is reached are
//! set *aside*, without room and without transfers, until one is.
//!
//! Every change takes time logarithmic in the number of waiting bundles: the transfers that may start stand
//! in an ordered set of which only the front is looked at, or a few behind the last try of a node that is not
//! reached. A node that is reached again, or is gone, costs a look at each bundle that was set aside.

mod aside;
mod failures;
mod reach;

pub use reach::Interrupted;

use crate::journal::{About, Entry, Fact, Journal};
use crate::{MS, Now};
use failures::Failures;
use reach::Unreached;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::hash::Hash;
use tharsis_types::hash::IdMap;
use tharsis_types::{ClientId, NodeId, ObjectId};

/// Maximum number of transfers of one node at a time.
const TRANSFERS_MAX: usize = 8;

/// Rank of read-ahead: after everything that somebody waits for.
const RANK_AHEAD: u8 = 3;

/// Rank of a bundle and its number in the order of arrival: the smaller goes first.
type Order = (u8, u64);

/// Name of a run: this machine knows nothing else of it.
pub trait RunName: Copy + Debug + Ord + Hash {}

impl<T: Copy + Debug + Ord + Hash> RunName for T {}

/// Requester of a bundle; also decides its rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Purpose<R> {
    /// A client reads a value, which it names by this token.
    Read(ClientId, u64),
    /// A run needs its arguments.
    Arguments(R),
    /// A node that drains has the only copy: it is to be kept here.
    Move(ObjectId),
    /// Read-ahead: nobody waits for it yet.
    Ahead(ObjectId),
}

/// The consequences of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect<R> {
    /// The arguments of a run are set aside.
    Aside(R),
    /// They were set aside so often that the run is to go back, because of this one.
    Late(R, ObjectId),
    /// All objects of the bundle are here.
    Ready(Purpose<R>),
    /// Start a transfer.
    Start {
        /// The object.
        object: ObjectId,
        /// Its size.
        len: u64,
        /// The source.
        from: NodeId,
    },
    /// No holder of the object is reached.
    Unreached {
        /// The object.
        object: ObjectId,
        /// Whether its owner is to be asked for other copies.
        asks: bool,
    },
    /// An object of the bundle has no holder left.
    Lost {
        /// The bundle.
        purpose: Purpose<R>,
        /// The object.
        object: ObjectId,
        /// The reason why the last transfer failed, if one began.
        cause: Option<String>,
    },
}

/// Transfers of one node.
#[derive(Debug)]
pub struct Pulls<R> {
    bundles: IdMap<Purpose<R>, Bundle>,
    /// Bundles that are not admitted, most urgent first.
    queue: BTreeMap<Order, Purpose<R>>,
    pulls: IdMap<ObjectId, Pull<R>>,
    /// Objects of admitted bundles whose transfer does not run, by the most urgent of these bundles.
    startable: BTreeSet<(Order, ObjectId)>,
    /// Bundles that are set aside, by the time at which they are queued again.
    aside: BTreeMap<(Now, Order), Purpose<R>>,
    unreached: Unreached,
    running_count: usize,
    admitted_bytes: u64,
    /// Objects larger than this need no room in memory.
    in_memory_max: Option<u64>,
    clock: u64,
    journal: Journal,
}

#[derive(Debug)]
struct Bundle {
    missing: BTreeSet<ObjectId>,
    bytes: u64,
    stage: Stage,
    /// Number of times that it was set aside since one of its objects came.
    asides: u32,
    /// When the first of these times was.
    aside_since: Option<Now>,
    order: Order,
}

/// The way of a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Room.
    Queued,
    /// Its transfers.
    Admitted,
    /// No holder of an object was reached: it is queued again at this time.
    Aside(Now),
}

#[derive(Debug)]
struct Pull<R> {
    len: u64,
    /// Holders, in the order in which they are tried.
    holders: Vec<NodeId>,
    /// Transfers that failed.
    failures: Failures,
    /// Number of transfers that were interrupted.
    interruptions: usize,
    /// The reason why the last of these did not end.
    cause: Option<String>,
    /// When its owner was to be asked for other copies, unless a transfer was interrupted since then.
    asked_at: Option<Now>,
    /// The most bytes that had come when a transfer was interrupted, since the object was set aside.
    done_bytes: u64,
    /// The holder from which it is being read.
    running: Option<NodeId>,
    /// Bundles that wait for it.
    needed_by: BTreeMap<Order, Purpose<R>>,
    /// The admitted ones of these bundles.
    admitted: BTreeSet<Order>,
}

impl<R> Pull<R> {
    /// Its place among the transfers that may start.
    fn startable_at(&self) -> Option<Order> {
        self.admitted.first().copied().filter(|_| self.running.is_none())
    }

    /// A node is named as a holder; true if that is news.
    fn add_holder(&mut self, node: NodeId, now: Now) -> bool {
        let is_news = !self.holders.contains(&node) && self.failures.believes(node, now);
        if is_news {
            self.holders.push(node);
        }
        is_news
    }

    /// A transfer has ended without the object: the other holders are tried before this one.
    fn broke_off(&mut self, from: NodeId, cause: String) {
        self.cause = Some(cause);
        if let Some(at) = self.holders.iter().position(|h| *h == from) {
            self.holders[at..].rotate_left(1);
        }
    }

    /// Whether it is only read ahead: nobody waits for it.
    fn is_only_ahead(&self) -> bool {
        self.needed_by.first_key_value().is_none_or(|((rank, _), _)| *rank == RANK_AHEAD)
    }
}

/// An object that is not here, and its holders.
#[derive(Clone, Debug)]
pub struct Missing {
    /// The object.
    pub object: ObjectId,
    /// Its size.
    pub len: u64,
    /// Nodes with a copy, nearest first.
    pub holders: Vec<NodeId>,
}

impl<R: RunName> Pulls<R> {
    /// No pulls yet; objects larger than `in_memory_max` have their room elsewhere.
    #[must_use]
    pub fn beside(in_memory_max: Option<u64>) -> Self {
        Self {
            bundles: IdMap::default(),
            queue: BTreeMap::new(),
            pulls: IdMap::default(),
            startable: BTreeSet::new(),
            aside: BTreeMap::new(),
            unreached: Unreached::default(),
            running_count: 0,
            admitted_bytes: 0,
            in_memory_max,
            clock: 0,
            journal: Journal::default(),
        }
    }

    /// Sets the time at which the changes that follow happen.
    pub fn tell_time(&mut self, now: Now) {
        self.journal.tell_time(now);
    }

    /// The remembered history of an object that was needed here.
    pub fn past(&self, object: ObjectId) -> impl Iterator<Item = Entry> {
        self.journal.about(About::Object(object))
    }

    /// State of the transfer of an object that is needed here, in words.
    #[must_use]
    pub fn describe(&self, object: ObjectId) -> Option<String> {
        let pull = self.pulls.get(&object)?;
        let from = pull.holders.first().map_or_else(|| "nobody".to_owned(), |node| format!("node {node}"));
        let failures = match &pull.cause {
            Some(cause) => {
                let count = pull.failures.count + pull.interruptions;
                format!("; {count} transfers broke off, the last one: {cause}")
            }
            None => String::new(),
        };
        if let Some(until) = self.aside_until(pull) {
            let ms = until.saturating_sub(self.journal.now()) / MS;
            return Some(format!("none of its holders is reached; to be tried again in {ms} ms{failures}"));
        }
        Some(match (pull.running.is_some(), pull.admitted.is_empty()) {
            (true, _) => format!("being read from {from}{failures}"),
            (false, true) => {
                let (running, max) = (self.running_count, TRANSFERS_MAX);
                let bytes = self.admitted_bytes;
                format!(
                    "waits its turn to be read from {from}: {bytes} bytes are on their way here, {running} of \
                     {max} transfers run{failures}"
                )
            }
            (false, false) => format!("is next to be read from {from}{failures}"),
        })
    }

    fn note(&mut self, object: ObjectId, fact: Fact) {
        self.journal.note(About::Object(object), fact);
    }

    /// Adds a bundle of objects that are needed and not here.
    pub fn want(
        &mut self,
        purpose: Purpose<R>,
        missing: Vec<Missing>,
        room_bytes: u64,
        out: &mut Vec<Effect<R>>,
    ) {
        if self.bundles.contains_key(&purpose) {
            return;
        }
        self.clock += 1;
        let rank = match purpose {
            Purpose::Read(..) => 0,
            Purpose::Arguments(_) => 1,
            Purpose::Move(_) => 2,
            Purpose::Ahead(_) => RANK_AHEAD,
        };
        let order = (rank, self.clock);
        let in_memory = |len: &u64| self.in_memory_max.is_none_or(|max| *len <= max);
        let bytes = missing.iter().map(|m| m.len).filter(in_memory).sum();
        let objects = missing.iter().map(|m| m.object).collect();
        for m in missing {
            let pull = self.pulls.entry(m.object).or_insert_with(|| Pull {
                len: m.len,
                holders: Vec::new(),
                failures: Failures::default(),
                interruptions: 0,
                cause: None,
                asked_at: None,
                done_bytes: 0,
                running: None,
                needed_by: BTreeMap::new(),
                admitted: BTreeSet::new(),
            });
            pull.needed_by.insert(order, purpose);
            self.journal.note(About::Object(m.object), Fact::PullWanted);
            for holder in m.holders {
                pull.add_holder(holder, self.journal.now());
            }
        }
        let (stage, asides, aside_since) = (Stage::Queued, 0, None);
        self.bundles.insert(purpose, Bundle { missing: objects, bytes, stage, asides, aside_since, order });
        let before = self.queue.insert(order, purpose);
        assert!(before.is_none(), "two bundles have one place in the queue");
        self.advance(room_bytes, out);
    }

    /// Removes a bundle that nobody waits for any more; running transfers end by themselves.
    pub fn forget(&mut self, purpose: Purpose<R>, room_bytes: u64, out: &mut Vec<Effect<R>>) {
        self.remove(purpose);
        self.advance(room_bytes, out);
    }

    /// Goes on, because the room may have changed.
    pub fn resume(&mut self, room_bytes: u64, out: &mut Vec<Effect<R>>) {
        self.advance(room_bytes, out);
    }

    /// An object is here.
    pub fn arrived(&mut self, object: ObjectId, room_bytes: u64, out: &mut Vec<Effect<R>>) {
        let Some(pull) = self.take_pull(object) else { return };
        self.note(object, Fact::PullArrived);
        if let Some(from) = pull.running {
            self.reached(from);
        }
        for purpose in pull.needed_by.into_values() {
            let bundle = known_mut(&mut self.bundles, &purpose);
            let was_missing = bundle.missing.remove(&object);
            assert!(was_missing, "{object} arrives for {purpose:?}, which does not miss it");
            (bundle.asides, bundle.aside_since) = (0, None);
            if bundle.missing.is_empty() {
                self.remove(purpose);
                out.push(Effect::Ready(purpose));
            }
        }
        self.advance(room_bytes, out);
    }

    /// A node is gone: nothing can be read from it any more. Running transfers fail by themselves.
    pub fn holder_gone(&mut self, node: NodeId) {
        for pull in self.pulls.values_mut() {
            pull.holders.retain(|h| *h != node);
        }
        self.reached(node);
    }

    /// A node has lost its copy of an object.
    pub fn copy_gone(&mut self, object: ObjectId, node: NodeId) {
        if let Some(pull) = self.pulls.get_mut(&object) {
            pull.holders.retain(|h| *h != node);
            pull.failures.forget(node);
            self.hurry(object);
        }
    }

    /// A node has got a copy of an object: it is tried after those that were known before.
    pub fn copy_added(&mut self, object: ObjectId, node: NodeId) {
        let now = self.journal.now();
        if self.pulls.get_mut(&object).is_some_and(|pull| pull.add_holder(node, now)) {
            self.hurry(object);
        }
    }

    /// The object need not be read, or cannot be for want of room: ends the bundles that need it, and returns
    /// them.
    pub fn refused(&mut self, object: ObjectId) -> Vec<Purpose<R>> {
        let Some(pull) = self.take_pull(object) else { return Vec::new() };
        if let Some(from) = pull.running {
            self.left(from);
        }
        let bundles: Vec<_> = pull.needed_by.into_values().collect();
        for purpose in &bundles {
            self.remove(*purpose);
        }
        bundles
    }

    /// Runs that wait for an object.
    #[must_use]
    pub fn runs_that_need(&self, object: ObjectId) -> Vec<R> {
        let needed_by = self.pulls.get(&object).map(|p| &p.needed_by);
        let run = |wanted: &Purpose<R>| if let Purpose::Arguments(run) = wanted { Some(*run) } else { None };
        needed_by.into_iter().flat_map(BTreeMap::values).filter_map(run).collect()
    }

    /// Whether somebody waits for a bundle.
    #[must_use]
    pub fn has_bundle(&self, purpose: Purpose<R>) -> bool {
        self.bundles.contains_key(&purpose)
    }

    /// Whether a transfer of the object runs.
    #[must_use]
    pub fn is_running(&self, object: ObjectId) -> bool {
        self.pulls.get(&object).is_some_and(|p| p.running.is_some())
    }

    /// Whether somebody waits for the object or it is read ahead.
    #[must_use]
    pub fn is_wanted(&self, object: ObjectId) -> bool {
        self.pulls.contains_key(&object)
    }

    /// Whether the object is only read ahead: nobody waits for it.
    #[must_use]
    pub fn is_only_ahead(&self, object: ObjectId) -> bool {
        self.pulls.get(&object).is_some_and(Pull::is_only_ahead)
    }

    /// Bundles that wait or are under way.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bundles.len()
    }

    /// Objects that somebody waits for, or whose transfer still runs.
    #[must_use]
    pub fn object_count(&self) -> usize {
        self.pulls.len()
    }

    /// Whether there are no bundles.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bundles.is_empty()
    }

    /// Asserts that the tables agree.
    pub fn check(&self) {
        let admitted = self.bundles.values().filter(|b| b.stage == Stage::Admitted);
        assert_eq!(admitted.map(|b| b.bytes).sum::<u64>(), self.admitted_bytes, "bytes of admitted bundles");
        let mut aside = BTreeSet::new();
        for (purpose, bundle) in &self.bundles {
            let is_queued = self.queue.contains_key(&bundle.order);
            assert_eq!(bundle.stage == Stage::Queued, is_queued, "{purpose:?} queued");
            if let Stage::Aside(until) = bundle.stage {
                aside.insert((until, bundle.order));
            }
            assert!(
                bundle.missing.iter().all(|o| self.pulls.contains_key(o)),
                "{purpose:?} waits for nothing"
            );
        }
        assert!(aside.iter().eq(self.aside.keys()), "bundles that are set aside");
        let startable = self.pulls.iter().filter_map(|(object, p)| Some((p.startable_at()?, *object)));
        assert_eq!(startable.collect::<BTreeSet<_>>(), self.startable, "transfers that may start");
        assert_eq!(
            self.running_count,
            self.pulls.values().filter(|p| p.running.is_some()).count(),
            "running transfers"
        );
        for pull in self.pulls.values() {
            let is_admitted = |order: &Order| {
                pull.needed_by
                    .get(order)
                    .and_then(|b| self.bundles.get(b))
                    .map(|b| b.stage == Stage::Admitted)
            };
            assert!(pull.admitted.iter().all(|order| is_admitted(order) == Some(true)), "admitted bundles");
            let count = pull.needed_by.keys().filter(|order| is_admitted(order) == Some(true)).count();
            assert_eq!(count, pull.admitted.len(), "bundles that are admitted and need the object");
        }
    }

    fn remove(&mut self, purpose: Purpose<R>) -> bool {
        let Some(bundle) = self.bundles.remove(&purpose) else { return false };
        let was_queued = self.queue.remove(&bundle.order).is_some();
        assert_eq!(was_queued, bundle.stage == Stage::Queued, "{purpose:?} is queued, or it is not");
        match bundle.stage {
            Stage::Queued => {}
            Stage::Admitted => self.give_back(bundle.bytes),
            Stage::Aside(until) => {
                let was_aside = self.aside.remove(&(until, bundle.order)).is_some();
                assert!(was_aside, "{purpose:?} is set aside and not listed");
            }
        }
        for object in bundle.missing {
            // The pull of an object that has just arrived, or is given up, is already removed.
            let Some(pull) = self.pulls.get_mut(&object) else { continue };
            let was_startable_at = pull.startable_at();
            let needed = pull.needed_by.remove(&bundle.order);
            assert_eq!(needed, Some(purpose), "{object} is not needed by who waits for it");
            pull.admitted.remove(&bundle.order);
            let is_needed = !pull.needed_by.is_empty() || pull.running.is_some();
            let startable_at = pull.startable_at();
            self.move_startable(object, was_startable_at, startable_at);
            if !is_needed {
                self.pulls.remove(&object);
            }
        }
        true
    }

    /// Removes a pull; its bundles still name the object.
    fn take_pull(&mut self, object: ObjectId) -> Option<Pull<R>> {
        let running = self.pulls.get(&object)?.running;
        self.set_running(object, None);
        let pull = self.pulls.remove(&object)?;
        self.move_startable(object, pull.startable_at(), None);
        Some(Pull { running, ..pull })
    }

    fn set_running(&mut self, object: ObjectId, running: Option<NodeId>) {
        let Some(pull) = self.pulls.get_mut(&object).filter(|p| p.running != running) else { return };
        let was_startable_at = pull.startable_at();
        assert!(pull.running.is_none() || running.is_none(), "{object} is read from two nodes");
        pull.running = running;
        let startable_at = pull.startable_at();
        self.running_count = if running.is_some() { self.running_count + 1 } else { self.running_count - 1 };
        self.move_startable(object, was_startable_at, startable_at);
    }

    /// The room of a bundle is for others.
    fn give_back(&mut self, bytes: u64) {
        assert!(bytes <= self.admitted_bytes, "fewer bytes are admitted than a bundle has");
        self.admitted_bytes -= bytes;
    }

    fn move_startable(&mut self, object: ObjectId, from: Option<Order>, to: Option<Order>) {
        if from == to {
            return;
        }
        if let Some(order) = from {
            let was_there = self.startable.remove(&(order, object));
            assert!(was_there, "{object} could start and was not among those that may");
        }
        if let Some(order) = to {
            let is_new = self.startable.insert((order, object));
            assert!(is_new, "{object} may start twice");
        }
    }

    /// Admits bundles while they fit (one always may), then starts transfers.
    fn advance(&mut self, room_bytes: u64, out: &mut Vec<Effect<R>>) {
        loop {
            self.admit(room_bytes);
            if TRANSFERS_MAX <= self.running_count {
                return;
            }
            let Some(place) = self.next_to_start() else { return };
            let object = place.1;
            let next = self.pulls.get(&object).and_then(|pull| Some((pull.len, self.next_holder(pull)?)));
            let now = self.journal.now();
            match next {
                Some((_, (_, until))) if now < until => self.set_aside(object, until, out),
                Some((len, (from, _))) => {
                    self.unreached.tried(from, now, place);
                    self.set_running(object, Some(from));
                    self.note(object, Fact::PullStarted(from));
                    out.push(Effect::Start { object, len, from });
                }
                // Its last holder left before its turn came: it could never start.
                None => self.give_up(object, out),
            }
        }
    }

    fn admit(&mut self, room_bytes: u64) {
        while let Some((order, purpose)) = self.queue.first_key_value().map(|(o, p)| (*o, *p)) {
            let bundle = known_mut(&mut self.bundles, &purpose);
            assert_eq!(bundle.stage, Stage::Queued, "{purpose:?} is queued");
            if self.admitted_bytes > 0 && self.admitted_bytes + bundle.bytes > room_bytes {
                return;
            }
            bundle.stage = Stage::Admitted;
            self.admitted_bytes += bundle.bytes;
            self.queue.remove(&order);
            for object in bundle.missing.iter().copied().collect::<Vec<_>>() {
                let pull = known_mut(&mut self.pulls, &object);
                let was_startable_at = pull.startable_at();
                let is_new = pull.admitted.insert(order);
                assert!(is_new, "{purpose:?} is admitted twice");
                let startable_at = pull.startable_at();
                self.move_startable(object, was_startable_at, startable_at);
            }
        }
    }

    /// An object cannot be read anywhere: the bundles that need it end.
    fn give_up(&mut self, object: ObjectId, out: &mut Vec<Effect<R>>) {
        let Some(pull) = self.take_pull(object) else { return };
        self.note(object, Fact::PullGivenUp);
        for purpose in pull.needed_by.into_values() {
            if self.remove(purpose) {
                out.push(Effect::Lost { purpose, object, cause: pull.cause.clone() });
            }
        }
    }
}

/// The bundle or pull that another table names; it must exist.
#[allow(clippy::expect_used, reason = "a name of our own for something that is gone is a defect here")]
fn known_mut<'a, K: Eq + Hash, V>(all: &'a mut IdMap<K, V>, key: &K) -> &'a mut V {
    all.get_mut(key).expect("a bundle and a pull name each other and one of them is gone")
}

#[cfg(test)]
mod tests;
