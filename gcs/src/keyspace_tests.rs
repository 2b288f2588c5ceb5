//! Random programs of transactions, leases and watches against a model that keeps everything, and the limits
//! of the key space one by one.

use super::*;
use crate::backend::{RANGE_ENTRIES_MAX, STORE_KEY_BYTES_MAX, TXN_PARTS_MAX};
use proptest::prelude::*;

const TTL: Duration = Duration::from_secs(10);
const KEYS: [&str; 5] = ["a", "ab", "abc", "b", "ba"];

/// A store with one lease that was renewed at `start`.
fn with_lease(start: Instant) -> (KeySpace, StoreLease) {
    let mut space = KeySpace::empty(EmbeddedLimits::default(), start);
    let lease = grant(&mut space, TTL, start);
    (space, lease)
}

fn grant(space: &mut KeySpace, ttl: Duration, now: Instant) -> StoreLease {
    let (commit, lease) = space.plan_grant(ttl).unwrap();
    space.apply(commit, now);
    lease
}

fn done(space: &mut KeySpace, txn: &Txn) -> TxnResult {
    let (commit, result) = space.plan(txn).unwrap();
    space.apply(commit, Instant::now());
    result
}

fn limited(limits: EmbeddedLimits) -> KeySpace {
    KeySpace::empty(limits, Instant::now())
}

#[test]
fn a_lease_ends_when_nobody_renews_it() {
    let start = Instant::now();
    let (mut space, lease) = with_lease(start);
    let mut now = start;
    while now < start + TTL {
        now += LOOK_EVERY;
        space.look_at_clock(now);
    }
    assert!(!space.plan_expiry(now).is_empty());
    assert!(space.keep_alive(lease, now).is_err());
}

#[test]
fn the_time_in_which_the_store_was_stopped_does_not_count() {
    let start = Instant::now();
    let (mut space, lease) = with_lease(start);
    space.look_at_clock(start + LOOK_EVERY);
    let resumed = start + LOOK_EVERY + 5 * TTL;
    // The order does not matter: after the pause, either the renewal or the end of leases may come first.
    let (mut other, _) = with_lease(start);
    other.look_at_clock(start + LOOK_EVERY);
    other.look_at_clock(resumed);
    assert!(other.plan_expiry(resumed).is_empty());
    space.keep_alive(lease, resumed).unwrap();
    assert_eq!(space.next_expiry(), Some(resumed + TTL));
}

#[test]
fn a_restored_space_begins_leases_anew_with_their_keys() {
    let now = Instant::now();
    let entry = Entry { value: vec![1], version: 3, revision: 7, lease: Some(StoreLease(4)) };
    let entries = BTreeMap::from([(b"k".to_vec(), entry)]);
    let leases = BTreeMap::from([(4, TTL)]);
    let mut space = KeySpace::restored(EmbeddedLimits::default(), entries, leases, (9, 5), now);
    assert_eq!((space.revision(), space.next_expiry()), (9, Some(now + TTL)));
    let commit = space.plan_revoke(StoreLease(4)).unwrap();
    assert_eq!(commit.keys, BTreeMap::from([(b"k".to_vec(), None)]));
    space.apply(commit, now);
    assert_eq!((space.revision(), space.used_bytes), (10, 0));
    assert_eq!(grant(&mut space, TTL, now), StoreLease(5), "the number of an ended lease is not used again");
}

#[test]
fn a_lease_ends_with_the_keys_that_it_still_has() {
    let start = Instant::now();
    let (mut space, lease) = with_lease(start);
    let under = |key: &str| Op::Put { key: key.into(), value: vec![], lease: Some(lease) };
    done(&mut space, &Txn::always(vec![under("kept"), under("freed"), under("removed")]));
    done(&mut space, &Txn::always(vec![Op::put("freed", "mine"), Op::Delete(b"removed".to_vec())]));
    let commit = space.plan_expiry(start + TTL);
    assert_eq!(commit.keys, BTreeMap::from([(b"kept".to_vec(), None)]));
}

#[test]
fn a_put_under_a_lease_that_does_not_exist_changes_nothing() {
    let mut space = limited(EmbeddedLimits::default());
    let put = Op::Put { key: b"k".to_vec(), value: vec![], lease: Some(StoreLease(9)) };
    let refused = space.plan(&Txn::always(vec![Op::put("first", ""), put])).unwrap_err();
    assert_eq!(refused, StoreError::LeaseNotFound { lease: 9 });
    assert_eq!(done(&mut space, &Txn::always(vec![Op::range("")])).revision, 1);
}

#[test]
fn the_limit_on_leases_and_on_their_length_is_kept() {
    let space = limited(EmbeddedLimits { leases_max: 0, ..EmbeddedLimits::default() });
    assert_eq!(
        space.plan_grant(TTL).unwrap_err(),
        StoreError::TooMany { what: "leases", count: 1, limit: 0 }
    );
    for ttl in [Duration::ZERO, Duration::from_millis(99), Duration::from_secs(86_401)] {
        assert!(matches!(space.plan_grant(ttl), Err(StoreError::LeaseTtl { .. })), "{ttl:?}");
    }
}

#[test]
fn a_full_space_takes_what_makes_it_smaller() {
    let entry_bytes = 1 + 100 + ENTRY_OVERHEAD_BYTES;
    let mut space = limited(EmbeddedLimits { bytes_max: entry_bytes, ..EmbeddedLimits::default() });
    done(&mut space, &Txn::always(vec![Op::put("a", vec![0; 100])]));
    let more = space.plan(&Txn::always(vec![Op::put("b", "")])).unwrap_err();
    let needed_bytes = entry_bytes + 1 + ENTRY_OVERHEAD_BYTES;
    assert_eq!(more, StoreError::NoSpace { needed_bytes, limit_bytes: entry_bytes });
    // Only the difference to the replaced value counts.
    done(&mut space, &Txn::always(vec![Op::Delete(b"a".to_vec()), Op::put("b", vec![0; 100])]));
    done(&mut space, &Txn::always(vec![Op::put("b", vec![0; 50])]));
    assert_eq!(space.used_bytes, entry_bytes - 50);
}

#[test]
fn values_of_users_leave_room_for_the_rest() {
    let value_bytes = "kv/a/1".len() + 100 + ENTRY_OVERHEAD_BYTES;
    let limits = EmbeddedLimits {
        bytes_max: 10 * value_bytes,
        values_bytes_max: 2 * value_bytes,
        ..EmbeddedLimits::default()
    };
    let put = |key: &str, len| Txn::always(vec![Op::put(key, vec![0; len])]);
    let mut space = limited(limits);
    for key in ["kv/a/1", "kv/b/2"] {
        done(&mut space, &put(key, 100));
    }
    assert!(matches!(space.plan(&put("kv/c/3", 0)), Err(StoreError::NoSpace { .. })));
    assert!(matches!(space.plan(&put("kv/a/1", 101)), Err(StoreError::NoSpace { .. })));
    for number in 0..5 {
        done(&mut space, &put(&format!("nodes/{number}"), 50));
    }
    // Restored from a file, it counts the same.
    let (entries, counters) = (space.entries.clone(), (space.revision, space.next_lease));
    let mut space = KeySpace::restored(limits, entries, BTreeMap::new(), counters, Instant::now());
    assert!(space.plan(&put("kv/c/3", 0)).is_err());
    done(&mut space, &Txn::always(vec![Op::Delete(b"kv/a/1".to_vec())]));
    done(&mut space, &put("kv/c/3", 100));
    assert_eq!(space.values_bytes, 2 * value_bytes);
}

#[test]
fn old_changes_go_when_there_are_too_many_or_too_large_ones() {
    for limits in [
        EmbeddedLimits { history_events_max: 2, ..EmbeddedLimits::default() },
        EmbeddedLimits { history_bytes_max: 2 * (2 + ENTRY_OVERHEAD_BYTES), ..EmbeddedLimits::default() },
    ] {
        let mut space = limited(limits);
        for value in ["1", "2", "3"] {
            done(&mut space, &Txn::always(vec![Op::put("k", value)]));
        }
        assert_eq!(space.next_change(b"", 2), Next::Compacted(2));
        assert!(matches!(space.next_change(b"", 3), Next::Changed(3, _)));
        assert_eq!(space.next_change(b"other", 3), Next::Wait(5));
    }
}

#[test]
fn what_is_compacted_beyond_the_present_is_cut_at_the_present() {
    let mut space = limited(EmbeddedLimits::default());
    done(&mut space, &Txn::always(vec![Op::put("k", "1")]));
    space.compact(1000);
    assert_eq!(space.next_change(b"", 2), Next::Compacted(2));
    done(&mut space, &Txn::always(vec![Op::put("k", "2")]));
    assert!(matches!(space.next_change(b"", 3), Next::Changed(3, _)));
}

#[test]
fn a_range_is_cut_after_deletions_and_says_that_there_is_more() {
    let mut space = limited(EmbeddedLimits::default());
    done(&mut space, &Txn::always(KEYS.map(|key| Op::put(key, key)).to_vec()));
    let first = Range { prefix: vec![], after: None, limit: 2, keys_only: true };
    let txn = Txn::always(vec![Op::Delete(b"a".to_vec()), Op::Range(first)]);
    let result = done(&mut space, &txn);
    let Response::Range { entries, more } = &result.responses[1] else { panic!("{result:?}") };
    let keys: Vec<&[u8]> = entries.iter().map(|entry| entry.key.as_slice()).collect();
    assert_eq!((keys, *more), (vec![b"ab".as_slice(), b"abc"], true));
    assert!(entries.iter().all(|entry| entry.value.is_empty()));
    let rest = Range { prefix: b"b".to_vec(), after: Some(b"abc".to_vec()), limit: 2, keys_only: false };
    let result = done(&mut space, &Txn::always(vec![Op::Range(rest)]));
    let Response::Range { entries, more } = &result.responses[0] else { panic!("{result:?}") };
    assert_eq!((entries.len(), *more), (2, false));
}

#[test]
fn what_is_over_a_limit_of_all_back_ends_is_refused_with_the_limit() {
    let space = limited(EmbeddedLimits::default());
    let many = vec![Op::Get(b"k".to_vec()); TXN_PARTS_MAX + 1];
    let wide = Range { prefix: vec![], after: None, limit: RANGE_ENTRIES_MAX + 1, keys_only: true };
    let compare = Txn::default().when(Compare::Absent(vec![]));
    let cases = [
        (Txn::always(many), "129 parts of one transaction, the limit is 128"),
        (Txn::always(vec![Op::Range(wide)]), "2049 entries of one range, the limit is 2048"),
        (compare, "a key has 0 bytes"),
        (Txn::always(vec![Op::Get(vec![0; STORE_KEY_BYTES_MAX + 1])]), "it must have 1 to"),
        (Txn::always(vec![Op::put("k", "1"), Op::Delete(b"k".to_vec())]), "key \"k\" is written twice"),
        (Txn::default().otherwise(Op::put("", "")), "a key has 0 bytes"),
    ];
    for (txn, text) in cases {
        let refused = space.plan(&txn).unwrap_err().to_string();
        assert!(refused.contains(text), "{refused}");
    }
}

/// A step of a random program.
#[derive(Clone, Debug)]
enum Step {
    Txn { compare: Option<Compare>, success: Vec<Change>, failure: Vec<Change> },
    Grant { ttl_ms: u64 },
    Revoke { lease: usize },
    KeepAlive { lease: usize },
    Pass { ms: u64 },
    Compact { back: u64 },
}

/// A write of a random program; `lease` counts among all that were ever granted.
#[derive(Clone, Debug)]
enum Change {
    Delete(&'static str),
    Put { key: &'static str, value: u8, lease: Option<usize> },
}

fn any_key() -> impl Strategy<Value = &'static str> {
    prop::sample::select(KEYS.to_vec())
}

fn any_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        any_key().prop_map(Change::Delete),
        (any_key(), 0..3_u8, prop::option::of(0..4_usize)).prop_map(|(key, value, lease)| Change::Put {
            key,
            value,
            lease
        }),
    ]
}

fn any_compare() -> impl Strategy<Value = Compare> {
    prop_oneof![
        any_key().prop_map(|key| Compare::Absent(key.into())),
        (any_key(), 0..3_u8).prop_map(|(key, value)| Compare::Value(key.into(), vec![value])),
        (any_key(), 1..4_u64).prop_map(|(key, version)| Compare::Version(key.into(), version)),
    ]
}

fn any_step() -> impl Strategy<Value = Step> {
    let changes = || prop::collection::vec(any_change(), 0..3);
    prop_oneof![
        6 => (prop::option::of(any_compare()), changes(), changes())
            .prop_map(|(compare, success, failure)| Step::Txn { compare, success, failure }),
        2 => (100..3000_u64).prop_map(|ttl_ms| Step::Grant { ttl_ms }),
        1 => (0..4_usize).prop_map(|lease| Step::Revoke { lease }),
        1 => (0..4_usize).prop_map(|lease| Step::KeepAlive { lease }),
        2 => (1..500_u64).prop_map(|ms| Step::Pass { ms }),
        1 => (0..4_u64).prop_map(|back| Step::Compact { back }),
    ]
}

/// A model of the store with its full history, by the definitions at the head of `backend.rs`.
#[derive(Default)]
struct Model {
    entries: BTreeMap<Vec<u8>, Entry>,
    /// Length and end of each granted lease; no end once the lease has ended.
    leases: Vec<(Duration, Option<Instant>)>,
    revision: u64,
}

impl Model {
    fn holds(&self, compare: &Compare) -> bool {
        let entry = self.entries.get(compare.key());
        match compare {
            Compare::Absent(_) => entry.is_none(),
            Compare::Value(_, value) => entry.is_some_and(|entry| entry.value == *value),
            Compare::Version(_, version) => entry.is_some_and(|entry| entry.version == *version),
        }
    }

    fn is_live(&self, lease: usize) -> bool {
        self.leases.get(lease).is_some_and(|(_, end)| end.is_some())
    }

    /// Carries out one branch; only changes make a new revision.
    fn change(&mut self, changes: &[Op]) {
        let revision = self.revision + 1;
        let mut changed = false;
        for change in changes {
            match change {
                Op::Delete(key) => changed |= self.entries.remove(key).is_some(),
                Op::Put { key, value, lease } => {
                    let version = self.entries.get(key).map_or(1, |entry| entry.version + 1);
                    let entry = Entry { value: value.clone(), version, revision, lease: *lease };
                    self.entries.insert(key.clone(), entry);
                    changed = true;
                }
                Op::Get(_) | Op::Range(_) => {}
            }
        }
        self.revision += u64::from(changed);
    }

    fn end(&mut self, leases: &[usize]) {
        let ended = |entry: &Entry| entry.lease.is_some_and(|l| leases.contains(&(l.0 as usize - 1)));
        let keys: Vec<Op> = self
            .entries
            .iter()
            .filter(|(_, entry)| ended(entry))
            .map(|(key, _)| Op::Delete(key.clone()))
            .collect();
        self.change(&keys);
        leases.iter().for_each(|&lease| self.leases[lease].1 = None);
    }
}

/// A watcher that keeps a copy of the keys under a prefix, and lists them again when it is told to.
struct Replica {
    prefix: &'static str,
    from: u64,
    values: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Replica {
    fn catch_up(&mut self, space: &KeySpace) {
        loop {
            match space.next_change(self.prefix.as_bytes(), self.from) {
                Next::Wait(from) => {
                    self.from = from;
                    return;
                }
                Next::Compacted(_) => {
                    self.values = values(&space.entries, self.prefix);
                    self.from = space.revision() + 1;
                }
                Next::Changed(revision, events) => {
                    assert!(self.from <= revision, "no revision is shown twice");
                    self.from = revision + 1;
                    for event in events {
                        match event {
                            WatchEvent::Put(entry) => self.values.insert(entry.key, entry.value),
                            WatchEvent::Deleted(key) => self.values.remove(&key),
                        };
                    }
                }
            }
        }
    }
}

fn values(entries: &BTreeMap<Vec<u8>, Entry>, prefix: &str) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let under = entries.iter().filter(|(key, _)| key.starts_with(prefix.as_bytes()));
    under.map(|(key, entry)| (key.clone(), entry.value.clone())).collect()
}

/// The operations of a branch, each key once, as transactions require.
fn ops(changes: &[Change]) -> Vec<Op> {
    let mut written = BTreeSet::new();
    let op = |change: &Change| match *change {
        Change::Delete(key) => (key, Op::Delete(key.into())),
        Change::Put { key, value, lease } => {
            let lease = lease.map(|lease| StoreLease(lease as u64 + 1));
            (key, Op::Put { key: key.into(), value: vec![value], lease })
        }
    };
    changes.iter().map(op).filter(|(key, _)| written.insert(*key)).map(|(_, op)| op).collect()
}

/// Carries out one step in both; both must refuse the same steps.
fn step(space: &mut KeySpace, model: &mut Model, now: &mut Instant, step: &Step) {
    match step {
        Step::Txn { compare, success, failure } => {
            let txn = Txn {
                compare: compare.iter().cloned().collect(),
                success: ops(success),
                failure: ops(failure),
            };
            let holds = txn.compare.iter().all(|compare| model.holds(compare));
            let branch = if holds { &txn.success } else { &txn.failure };
            let is_known = |op: &Op| match op {
                Op::Put { lease: Some(lease), .. } => model.is_live(lease.0 as usize - 1),
                _ => true,
            };
            if !branch.iter().all(is_known) {
                assert!(matches!(space.plan(&txn), Err(StoreError::LeaseNotFound { .. })));
                return;
            }
            let (commit, result) = space.plan(&txn).unwrap();
            space.apply(commit, *now);
            model.change(branch);
            assert_eq!((result.succeeded, result.revision), (holds, model.revision));
        }
        Step::Grant { ttl_ms } => {
            let ttl = Duration::from_millis(*ttl_ms);
            assert_eq!(grant(space, ttl, *now), StoreLease(model.leases.len() as u64 + 1));
            model.leases.push((ttl, Some(*now + ttl)));
        }
        Step::Revoke { lease } => {
            let planned = space.plan_revoke(StoreLease(*lease as u64 + 1));
            assert_eq!(planned.is_ok(), model.is_live(*lease));
            if let Ok(commit) = planned {
                space.apply(commit, *now);
                model.end(&[*lease]);
            }
        }
        Step::KeepAlive { lease } => {
            let is_kept = space.keep_alive(StoreLease(*lease as u64 + 1), *now).is_ok();
            assert_eq!(is_kept, model.is_live(*lease));
            if is_kept {
                let (ttl, end) = &mut model.leases[*lease];
                *end = Some(*now + *ttl);
            }
        }
        Step::Pass { ms } => {
            *now += Duration::from_millis(*ms);
            space.look_at_clock(*now);
            let commit = space.plan_expiry(*now);
            space.apply(commit, *now);
            let over = |lease: &usize| model.leases[*lease].1.is_some_and(|end| end <= *now);
            let ended: Vec<usize> = (0..model.leases.len()).filter(over).collect();
            model.end(&ended);
        }
        Step::Compact { back } => space.compact(space.revision().saturating_sub(*back)),
    }
}

proptest! {
    #[test]
    fn random_programs_do_what_the_model_does(steps in prop::collection::vec(any_step(), 1..60)) {
        let mut now = Instant::now();
        let mut space = limited(EmbeddedLimits { history_events_max: 12, ..EmbeddedLimits::default() });
        let mut model = Model { revision: 1, ..Model::default() };
        let mut replicas = ["", "a", "ab", "b"].map(|prefix| Replica { prefix, from: 1, values: BTreeMap::new() });
        for (index, one) in steps.iter().enumerate() {
            step(&mut space, &mut model, &mut now, one);
            prop_assert_eq!(&space.entries, &model.entries);
            prop_assert_eq!(space.revision(), model.revision);
            let used: usize = model.entries.iter().map(|(key, entry)| size(key, entry)).sum();
            prop_assert_eq!(space.used_bytes, used);
            // Slow watchers read only now and then, so that the history overtakes them.
            for (place, replica) in replicas.iter_mut().enumerate() {
                if index.is_multiple_of(1 + 3 * place) {
                    replica.catch_up(&space);
                    prop_assert_eq!(&replica.values, &values(&model.entries, replica.prefix));
                }
            }
        }
    }
}
