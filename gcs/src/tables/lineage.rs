//! Incarnations of the tables: whether they are the ones that somebody has seen, or a copy of an earlier
//! state.
//!
//! A file or an etcd that was restored goes back to an earlier revision and then on from there, so the
//! revision that somebody remembers may come again, with other contents. Each start of a control store begins
//! an incarnation: a number, and an id that no other history gives to that number. Whoever remembers a
//! revision beside the last incarnation that had begun by then can be told whether the tables still have that
//! state in their past:
//!
//! - The incarnation of that number has another id, or there is none: a copy from before it was restored.
//! - It is the last one, and the revision is ahead of the tables; or the next one began at or before the
//!   revision: a copy of the same incarnation was restored.
//! - A later one says that a control store which ran on saw the revision go back.
//!
//! Only the last [`KEPT_MAX`] incarnations are kept. Nothing is said of a state before those.

use super::read::ranged;
use crate::backend::{Compare, Op, Txn, TxnResult};
use tharsis_protos::control::TablesState;

/// Incarnations that the tables remember.
const KEPT_MAX: usize = 16;
const PREFIX: &str = "meta/incarnations/";
/// Behind the id of an incarnation that begins because the tables went back.
const RESTORED: &str = " restored";

/// The incarnations of the tables, as of a revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lineage {
    revision: u64,
    /// In order, without gaps unless somebody removed one.
    all: Vec<Incarnation>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Incarnation {
    number: u64,
    id: u64,
    /// The revision that made it.
    began_at: u64,
    is_restored: bool,
}

/// Reads the incarnations of the tables.
#[must_use]
pub fn lineage() -> Txn {
    Txn::always(vec![Op::range(PREFIX)])
}

/// The result of [`lineage`]. What is damaged counts as not there.
#[must_use]
pub fn read_lineage(result: &TxnResult) -> Lineage {
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let read = |key: &[u8], value: &[u8], began_at| {
        let number = hex(std::str::from_utf8(key).ok()?.strip_prefix(PREFIX)?)?;
        let text = std::str::from_utf8(value).ok()?;
        let (id, is_restored) = text.strip_suffix(RESTORED).map_or((text, false), |id| (id, true));
        Some(Incarnation { number, id: hex(id)?, began_at, is_restored })
    };
    let entries = ranged(result, 0).0.iter();
    let all = entries.filter_map(|entry| read(&entry.key, &entry.value, entry.revision)).collect();
    Lineage { revision: result.revision, all }
}

impl Lineage {
    /// Begins the next incarnation, if no other one has begun meanwhile, and forgets the oldest.
    #[must_use]
    pub fn begin(&self, id: u64, is_restored: bool) -> Txn {
        let key = |number: u64| format!("{PREFIX}{number:016x}").into_bytes();
        let number = self.all.last().map_or(1, |last| last.number.saturating_add(1));
        let value = format!("{id:016x}{}", if is_restored { RESTORED } else { "" });
        let mut ops = vec![Op::put(key(number), value)];
        let excess = (self.all.len() + 1).saturating_sub(KEPT_MAX);
        ops.extend(self.all[..excess].iter().map(|oldest| Op::Delete(key(oldest.number))));
        Txn::always(ops).when(Compare::Absent(key(number)))
    }

    /// The state to remember; none before the first incarnation.
    #[must_use]
    pub fn state(&self) -> Option<TablesState> {
        let last = self.all.last()?;
        Some(TablesState { incarnation: (last.number, last.id), revision: self.revision })
    }

    /// Whether the tables are no continuation of a state that they or others were in. It must be older than
    /// this was read.
    #[must_use]
    pub fn contradicts(&self, seen: &TablesState) -> bool {
        let (number, id) = seen.incarnation;
        let Some(first) = self.all.first() else { return true };
        if number < first.number {
            return false;
        }
        let Some(at) = self.all.iter().position(|one| one.number == number) else { return true };
        let mut later = self.all[at + 1..].iter();
        self.all[at].id != id
            || self.revision < seen.revision
            || later.clone().next().is_some_and(|next| next.began_at <= seen.revision)
            || later.any(|one| one.is_restored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyspace::{EmbeddedLimits, KeySpace};
    use tokio::time::Instant;

    /// Tables whose file can be copied.
    #[derive(Clone)]
    struct Store(std::rc::Rc<std::cell::RefCell<Vec<Txn>>>);

    impl Store {
        /// A copy that goes its own way.
        fn copy(&self) -> Store {
            Store(std::rc::Rc::new(std::cell::RefCell::new(self.0.borrow().clone())))
        }

        fn run(&self, txn: Txn) -> TxnResult {
            self.0.borrow_mut().push(txn);
            let now = Instant::now();
            let mut space = KeySpace::empty(EmbeddedLimits::default(), now);
            let mut last = None;
            for txn in self.0.borrow().iter() {
                let (commit, result) = space.plan(txn).unwrap();
                space.apply(commit, now);
                last = Some(result);
            }
            last.unwrap()
        }

        fn lineage(&self) -> Lineage {
            read_lineage(&self.run(lineage()))
        }

        fn begin(&self, id: u64, is_restored: bool) {
            assert!(self.run(self.lineage().begin(id, is_restored)).succeeded);
        }

        fn write(&self, count: usize) {
            (0..count).for_each(|_| drop(self.run(Txn::always(vec![Op::put("kv/a/b", "c")]))));
        }
    }

    fn started(id: u64) -> Store {
        let store = Store(std::rc::Rc::default());
        store.begin(id, false);
        store
    }

    #[test]
    fn tables_that_go_on_contradict_nobody() {
        let store = started(1);
        let mut seen = vec![store.lineage().state().unwrap()];
        for id in 2..2 * KEPT_MAX as u64 {
            store.write(3);
            seen.push(store.lineage().state().unwrap());
            store.begin(id, false);
            seen.push(store.lineage().state().unwrap());
            let now = store.lineage();
            assert!(seen.iter().all(|seen| !now.contradicts(seen)));
            assert!(now.all.len() <= KEPT_MAX);
        }
    }

    #[test]
    fn a_copy_that_was_restored_is_known_however_far_it_has_come() {
        for starts_after_copy in [0, 1, 3] {
            let store = started(1);
            store.write(5);
            let before = store.lineage().state().unwrap();
            let copy = store.copy();
            store.write(5);
            (0..starts_after_copy).for_each(|n| store.begin(10 + n, false));
            let seen = store.lineage().state().unwrap();
            for writes in [0, 1, 5, 50] {
                // It is read as soon as it is there, or after another control store was started on it.
                let restored = copy.copy();
                restored.begin(99, false);
                restored.write(writes);
                let now = restored.lineage();
                assert!(now.contradicts(&seen), "{starts_after_copy} {writes}");
                assert!(!now.contradicts(&before), "it goes on from there");
                (0..3).for_each(|n| restored.begin(100 + n, false));
                assert!(restored.lineage().contradicts(&seen));
            }
        }
    }

    /// etcd may be restored under a control store that runs.
    #[test]
    fn a_control_store_that_saw_the_revision_go_back_tells_it() {
        let store = started(1);
        let seen = store.lineage().state().unwrap();
        store.write(5);
        assert!(!store.lineage().contradicts(&seen));
        store.begin(2, true);
        assert!(store.lineage().contradicts(&seen));
        let later = store.lineage().state().unwrap();
        store.begin(3, false);
        assert!(!store.lineage().contradicts(&later), "it is said once");
    }

    #[test]
    fn tables_that_were_lost_contradict_whoever_saw_them() {
        let seen = started(1).lineage().state().unwrap();
        assert!(started(2).lineage().contradicts(&seen));
        assert!(Lineage::default().contradicts(&seen));
        assert_eq!(Lineage::default().state(), None);
    }

    #[test]
    fn of_two_that_begin_at_once_one_reads_again() {
        let store = started(1);
        let read = store.lineage();
        store.begin(2, false);
        assert!(!store.run(read.begin(3, false)).succeeded);
        assert_eq!(store.lineage().state().unwrap().incarnation, (2, 2));
    }
}
