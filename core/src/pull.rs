//! Which objects are read from other nodes, in what order.
//!
//! A *bundle* is a set of objects that somebody needs together: the arguments of a run, or the value of a `get`.
//! Bundles are admitted whole or not at all, so that a full store never holds halves of several; reads of values
//! come before arguments. An object that several bundles need is read once. When a source fails, the next holder is
//! tried; when none is left, the bundle fails.

use std::collections::{BTreeMap, BTreeSet};
use tharsis_types::hash::IdMap;
use tharsis_types::{NodeId, ObjectId};

/// Transfers of one node at a time.
const TRANSFERS_MAX: usize = 8;

/// Transfers of one object that may break off, for each holder.
const TRIES_PER_HOLDER: usize = 3;

/// Who waits for a bundle; also decides its rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Purpose {
    /// A client reads a value: (client, token).
    Read(u32, u64),
    /// A run needs its arguments: the run's number.
    Arguments(u32),
    /// Nobody waits for it yet; somebody is expected to.
    Ahead(ObjectId),
}

/// What follows from a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Everything the bundle needs is here.
    Ready(Purpose),
    /// Start a transfer.
    Start {
        /// The object.
        object: ObjectId,
        /// Its size.
        len: u64,
        /// The source.
        from: NodeId,
    },
    /// An object of the bundle has no holder left.
    Lost {
        /// The bundle.
        purpose: Purpose,
        /// The object.
        object: ObjectId,
        /// Why the last transfer broke off, if one began.
        cause: Option<String>,
    },
}

/// Transfers of one node.
#[derive(Debug, Default)]
pub struct Pulls {
    bundles: IdMap<Purpose, Bundle>,
    /// Bundles that are not admitted, most urgent first: (rank, order of arrival).
    queue: BTreeMap<(u8, u64), Purpose>,
    pulls: IdMap<ObjectId, Pull>,
    admitted_bytes: u64,
    /// Objects above this need no room in memory.
    in_memory_max: Option<u64>,
    clock: u64,
}

#[derive(Debug)]
struct Bundle {
    missing: BTreeSet<ObjectId>,
    bytes: u64,
    admitted: bool,
    order: (u8, u64),
}

#[derive(Debug)]
struct Pull {
    len: u64,
    /// Holders, the next to try first.
    holders: Vec<NodeId>,
    /// Transfers that broke off.
    failures: usize,
    /// Why the last of them did.
    cause: Option<String>,
    running: bool,
    needed_by: BTreeSet<Purpose>,
}

/// An object that is not here, and who has it.
#[derive(Clone, Debug)]
pub struct Missing {
    /// The object.
    pub object: ObjectId,
    /// Its size.
    pub len: u64,
    /// Nodes with a copy, nearest first.
    pub holders: Vec<NodeId>,
}

impl Pulls {
    /// None yet, with room elsewhere for objects above so many bytes.
    #[must_use]
    pub fn beside(in_memory_max: Option<u64>) -> Self {
        Self { in_memory_max, ..Self::default() }
    }

    /// Somebody needs objects that are not here.
    pub fn want(&mut self, purpose: Purpose, missing: Vec<Missing>, room_bytes: u64, out: &mut Vec<Effect>) {
        if self.bundles.contains_key(&purpose) {
            return;
        }
        self.clock += 1;
        let rank = match purpose {
            Purpose::Read(..) => 0,
            Purpose::Arguments(_) => 1,
            Purpose::Ahead(_) => 2,
        };
        let order = (rank, self.clock);
        let in_memory = |len: &u64| self.in_memory_max.is_none_or(|max| *len <= max);
        let bytes = missing.iter().map(|m| m.len).filter(in_memory).sum();
        let objects = missing.iter().map(|m| m.object).collect();
        for m in missing {
            let pull = self.pulls.entry(m.object).or_insert_with(|| Pull {
                len: m.len,
                holders: Vec::new(),
                failures: 0,
                cause: None,
                running: false,
                needed_by: BTreeSet::new(),
            });
            pull.needed_by.insert(purpose);
            for holder in m.holders {
                if !pull.holders.contains(&holder) {
                    pull.holders.push(holder);
                }
            }
        }
        self.bundles.insert(purpose, Bundle { missing: objects, bytes, admitted: false, order });
        self.queue.insert(order, purpose);
        self.advance(room_bytes, out);
    }

    /// Nobody waits for a bundle any more; running transfers end by themselves.
    pub fn forget(&mut self, purpose: Purpose, room_bytes: u64, out: &mut Vec<Effect>) {
        self.remove(purpose);
        self.advance(room_bytes, out);
    }

    /// Room may have changed.
    pub fn resume(&mut self, room_bytes: u64, out: &mut Vec<Effect>) {
        self.advance(room_bytes, out);
    }

    /// An object is here.
    pub fn arrived(&mut self, object: ObjectId, room_bytes: u64, out: &mut Vec<Effect>) {
        let Some(pull) = self.pulls.remove(&object) else { return };
        for purpose in pull.needed_by {
            let Some(bundle) = self.bundles.get_mut(&purpose) else { continue };
            bundle.missing.remove(&object);
            if bundle.missing.is_empty() {
                self.remove(purpose);
                out.push(Effect::Ready(purpose));
            }
        }
        self.advance(room_bytes, out);
    }

    /// A transfer broke off (or its node left): the next holder, or the end of the bundles that need it.
    pub fn failed(
        &mut self,
        object: ObjectId,
        from: NodeId,
        cause: String,
        room_bytes: u64,
        out: &mut Vec<Effect>,
    ) {
        let Some(pull) = self.pulls.get_mut(&object) else { return };
        pull.running = false;
        pull.failures += 1;
        pull.cause = Some(cause);
        if let Some(at) = pull.holders.iter().position(|h| *h == from) {
            pull.holders[at..].rotate_left(1);
        }
        let hopeless = TRIES_PER_HOLDER * pull.holders.len() <= pull.failures;
        if hopeless || pull.needed_by.is_empty() {
            self.give_up(object, out);
        }
        self.advance(room_bytes, out);
    }

    /// A node is gone: nothing can be read from it any more. Running transfers fail by themselves.
    pub fn holder_gone(&mut self, node: NodeId) {
        for pull in self.pulls.values_mut() {
            pull.holders.retain(|h| *h != node);
        }
    }

    /// A node has lost its copy of an object.
    pub fn copy_gone(&mut self, object: ObjectId, node: NodeId) {
        if let Some(pull) = self.pulls.get_mut(&object) {
            pull.holders.retain(|h| *h != node);
        }
    }

    /// A transfer could not start for want of room: the bundles that need it, which end.
    pub fn refused(&mut self, object: ObjectId) -> Vec<Purpose> {
        let Some(pull) = self.pulls.get_mut(&object) else { return Vec::new() };
        pull.running = false;
        let bundles: Vec<_> = pull.needed_by.iter().copied().collect();
        for purpose in &bundles {
            self.remove(*purpose);
        }
        self.pulls.remove(&object);
        bundles
    }

    /// Runs that wait for an object.
    #[must_use]
    pub fn runs_that_need(&self, object: ObjectId) -> Vec<u32> {
        let needed_by = self.pulls.get(&object).map(|p| &p.needed_by);
        let run = |purpose: &Purpose| match purpose {
            Purpose::Arguments(run) => Some(*run),
            Purpose::Read(..) | Purpose::Ahead(_) => None,
        };
        needed_by.into_iter().flatten().filter_map(run).collect()
    }

    /// Whether a transfer of the object runs.
    #[must_use]
    pub fn is_running(&self, object: ObjectId) -> bool {
        self.pulls.get(&object).is_some_and(|p| p.running)
    }

    /// Whether somebody waits for the object or expects to be asked for it.
    #[must_use]
    pub fn is_wanted(&self, object: ObjectId) -> bool {
        self.pulls.contains_key(&object)
    }

    /// Whether nobody waits for the object, whatever is expected.
    #[must_use]
    pub fn is_only_ahead(&self, object: ObjectId) -> bool {
        let needed_by = self.pulls.get(&object).map(|pull| &pull.needed_by);
        needed_by.is_some_and(|all| all.iter().all(|purpose| matches!(purpose, Purpose::Ahead(_))))
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

    /// Whether nobody waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bundles.is_empty()
    }

    /// Asserts that books agree.
    pub fn check(&self) {
        let admitted: u64 = self.bundles.values().filter(|b| b.admitted).map(|b| b.bytes).sum();
        assert_eq!(admitted, self.admitted_bytes, "bytes of admitted bundles");
        for (purpose, bundle) in &self.bundles {
            assert_eq!(
                bundle.admitted,
                !self.queue.contains_key(&bundle.order),
                "{purpose:?} admitted and queued"
            );
            assert!(
                bundle.missing.iter().all(|o| self.pulls.contains_key(o)),
                "{purpose:?} waits for nothing"
            );
        }
    }

    fn remove(&mut self, purpose: Purpose) -> bool {
        let Some(bundle) = self.bundles.remove(&purpose) else { return false };
        self.queue.remove(&bundle.order);
        if bundle.admitted {
            self.admitted_bytes -= bundle.bytes;
        }
        for object in bundle.missing {
            if let Some(pull) = self.pulls.get_mut(&object) {
                pull.needed_by.remove(&purpose);
                if pull.needed_by.is_empty() && !pull.running {
                    self.pulls.remove(&object);
                }
            }
        }
        true
    }

    /// Admits bundles while they fit (one always may), then starts transfers.
    fn advance(&mut self, room_bytes: u64, out: &mut Vec<Effect>) {
        while let Some((order, purpose)) = self.queue.first_key_value().map(|(o, p)| (*o, *p)) {
            let Some(bundle) = self.bundles.get_mut(&purpose) else { break };
            if self.admitted_bytes > 0 && self.admitted_bytes + bundle.bytes > room_bytes {
                break;
            }
            bundle.admitted = true;
            self.admitted_bytes += bundle.bytes;
            self.queue.remove(&order);
        }
        let mut running = self.pulls.values().filter(|p| p.running).count();
        let mut ready: Vec<_> = self
            .pulls
            .iter()
            .filter(|(_, p)| !p.running)
            .filter_map(|(object, p)| {
                let admitted = p.needed_by.iter().filter_map(|b| self.bundles.get(b)).filter(|b| b.admitted);
                Some((admitted.map(|b| b.order).min()?, *object))
            })
            .collect();
        ready.sort_unstable();
        let mut unreadable = Vec::new();
        for (_, object) in ready {
            if running >= TRANSFERS_MAX {
                break;
            }
            let Some(pull) = self.pulls.get_mut(&object) else { continue };
            let Some(from) = pull.holders.first().copied() else {
                // Its last holder went before its turn came: nobody would ever start it.
                unreadable.push(object);
                continue;
            };
            pull.running = true;
            running += 1;
            out.push(Effect::Start { object, len: pull.len, from });
        }
        if !unreadable.is_empty() {
            unreadable.into_iter().for_each(|object| self.give_up(object, out));
            self.advance(room_bytes, out);
        }
    }

    /// An object cannot be read anywhere: the bundles that need it end.
    fn give_up(&mut self, object: ObjectId, out: &mut Vec<Effect>) {
        let Some(pull) = self.pulls.remove(&object) else { return };
        for purpose in pull.needed_by {
            if self.remove(purpose) {
                out.push(Effect::Lost { purpose, object, cause: pull.cause.clone() });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tharsis_types::{JobId, TaskId};

    fn object(n: u32) -> ObjectId {
        ObjectId::put(TaskId::root(JobId(1)), n)
    }

    fn missing(n: u32, len: u64, holders: &[u64]) -> Missing {
        Missing { object: object(n), len, holders: holders.iter().map(|h| NodeId(*h)).collect() }
    }

    #[test]
    fn d8_whole_bundles_are_admitted_and_reads_come_first() {
        let mut pulls = Pulls::default();
        let mut out = Vec::new();
        pulls.want(Purpose::Arguments(1), vec![missing(1, 3, &[7]), missing(2, 3, &[7])], 10, &mut out);
        pulls.want(Purpose::Arguments(2), vec![missing(3, 3, &[7]), missing(4, 3, &[7])], 10, &mut out);
        assert_eq!(out.len(), 2, "the second bundle does not fit");
        pulls.want(Purpose::Read(1, 1), vec![missing(5, 6, &[7])], 10, &mut out);
        pulls.check();
        out.clear();
        pulls.arrived(object(1), 10, &mut out);
        pulls.arrived(object(2), 10, &mut out);
        let start = Effect::Start { object: object(5), len: 6, from: NodeId(7) };
        assert_eq!(out, [Effect::Ready(Purpose::Arguments(1)), start], "the read overtakes the arguments");
        pulls.check();
    }

    #[test]
    fn d9_one_transfer_for_many_readers_and_the_next_holder_when_one_dies() {
        let mut pulls = Pulls::default();
        let mut out = Vec::new();
        for client in 0..20 {
            pulls.want(Purpose::Read(client, 0), vec![missing(1, 100, &[7, 8])], 1000, &mut out);
        }
        assert_eq!(out, [Effect::Start { object: object(1), len: 100, from: NodeId(7) }]);
        out.clear();
        pulls.failed(object(1), NodeId(7), "broke off".into(), 1000, &mut out);
        assert_eq!(out, [Effect::Start { object: object(1), len: 100, from: NodeId(8) }]);
        out.clear();
        pulls.arrived(object(1), 1000, &mut out);
        assert_eq!(out.len(), 20);
        assert!(pulls.is_empty());
        pulls.check();
    }

    #[test]
    fn an_object_that_nobody_has_is_lost_at_once_and_one_whose_holder_went_when_its_turn_comes() {
        let mut pulls = Pulls::default();
        let mut out = Vec::new();
        pulls.want(Purpose::Read(1, 1), vec![missing(1, 3, &[])], 10, &mut out);
        assert_eq!(out, [Effect::Lost { purpose: Purpose::Read(1, 1), object: object(1), cause: None }]);
        out.clear();
        pulls.want(Purpose::Arguments(1), vec![missing(2, 8, &[7])], 10, &mut out);
        pulls.want(Purpose::Arguments(2), vec![missing(3, 8, &[9])], 10, &mut out);
        pulls.holder_gone(NodeId(9));
        out.clear();
        pulls.arrived(object(2), 10, &mut out);
        assert_eq!(
            out,
            [
                Effect::Ready(Purpose::Arguments(1)),
                Effect::Lost { purpose: Purpose::Arguments(2), object: object(3), cause: None }
            ]
        );
        assert!(pulls.is_empty());
        pulls.check();
    }

    #[test]
    fn d8_a_lost_source_gives_its_place_to_the_next_bundle_and_cancelling_leaks_no_quota() {
        let mut pulls = Pulls::default();
        let mut out = Vec::new();
        pulls.want(Purpose::Arguments(1), vec![missing(1, 8, &[7])], 10, &mut out);
        pulls.want(Purpose::Arguments(2), vec![missing(2, 8, &[7])], 10, &mut out);
        out.clear();
        for n in 0..TRIES_PER_HOLDER {
            pulls.failed(object(1), NodeId(7), format!("break {n}"), 10, &mut out);
        }
        out.retain(|effect| !matches!(effect, Effect::Start { object: again, .. } if *again == object(1)));
        let next = Effect::Start { object: object(2), len: 8, from: NodeId(7) };
        let cause = Some("break 2".to_owned());
        let lost = Effect::Lost { purpose: Purpose::Arguments(1), object: object(1), cause };
        assert_eq!(out, [lost, next], "the last of the breaks is told");
        pulls.forget(Purpose::Arguments(2), 10, &mut out);
        pulls.check();
        assert!(pulls.is_empty());
    }
}
