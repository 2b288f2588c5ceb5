//! The checks that every back end passes.

use crate::Subject;
use futures::StreamExt;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tharsis_gcs::backend::{KeyValue, Range, StoreLease, TXN_PARTS_MAX, Watch, WatchEvent};
use tharsis_gcs::{Backend, Compare, Op, Response, StoreError, Txn, TxnResult, WatchItem};

/// Longer than anything here takes; a check that waits for it has failed.
const LONG: Duration = Duration::from_secs(20);

type Check = for<'a> fn(&'a dyn Subject) -> futures::future::BoxFuture<'a, ()>;

macro_rules! checks {
    ($($name:ident),* $(,)?) => {
        /// All checks, by name.
        pub const CHECKS: &[(&str, Check)] = &[$((stringify!($name), |subject| Box::pin($name(subject)))),*];
    };
}

checks!(
    a_put_is_read_back_with_its_versions,
    absent_compares_to_missing_keys_only,
    versions_and_values_decide_the_branch,
    a_transaction_is_done_whole_or_not_at_all,
    operations_see_what_those_before_them_did,
    bad_transactions_are_refused_alike,
    ranges_are_ordered_and_paged,
    reading_makes_no_revision,
    a_watch_brings_each_revision_once_in_order,
    a_watch_keeps_to_its_prefix,
    a_watch_of_what_is_compacted_says_so_and_a_list_converges,
    a_deletion_at_the_compacted_revision_is_not_lost,
    a_slow_watcher_loses_nothing_or_is_told,
    a_lease_that_runs_out_takes_its_keys_along,
    a_lease_that_is_renewed_stays,
    a_lease_that_is_ended_is_gone_at_once,
    a_key_written_again_leaves_its_lease,
    twenty_at_once_make_one,
    twenty_counters_lose_no_step,
);

fn put(key: &str, value: &str) -> Op {
    Op::put(key, value)
}

fn under(key: &str, value: &str, lease: StoreLease) -> Op {
    Op::Put { key: key.into(), value: value.into(), lease: Some(lease) }
}

fn get(key: &str) -> Op {
    Op::Get(key.into())
}

fn delete(key: &str) -> Op {
    Op::Delete(key.into())
}

async fn always(store: &Arc<dyn Backend>, ops: Vec<Op>) -> TxnResult {
    store.txn(Txn::always(ops)).await.unwrap()
}

async fn read(store: &Arc<dyn Backend>, key: &str) -> Option<KeyValue> {
    match always(store, vec![get(key)]).await.responses.remove(0) {
        Response::Found(entry) => entry,
        other => panic!("{other:?} is no answer to a get"),
    }
}

async fn value(store: &Arc<dyn Backend>, key: &str) -> Option<String> {
    read(store, key).await.map(|entry| String::from_utf8(entry.value).unwrap())
}

fn entries(response: &Response) -> (Vec<String>, bool) {
    let Response::Range { entries, more } = response else { panic!("{response:?} is no answer to a range") };
    (entries.iter().map(|entry| String::from_utf8(entry.key.clone()).unwrap()).collect(), *more)
}

async fn next(watch: &mut Watch) -> WatchItem {
    let item = tokio::time::timeout(LONG, watch.next()).await.expect("the watch brings something in time");
    item.expect("the watch goes on").unwrap()
}

async fn silent(watch: &mut Watch) {
    let item = tokio::time::timeout(Duration::from_millis(300), watch.next()).await;
    assert!(item.is_err(), "the watch is silent, but: {item:?}");
}

/// A change as text: `+key=value` or `-key`.
fn told(event: &WatchEvent) -> String {
    match event {
        WatchEvent::Deleted(key) => format!("-{}", String::from_utf8_lossy(key)),
        WatchEvent::Put(entry) => {
            format!("+{}={}", String::from_utf8_lossy(&entry.key), String::from_utf8_lossy(&entry.value))
        }
    }
}

fn changes(item: WatchItem) -> (u64, BTreeSet<String>) {
    match item {
        WatchItem::Changed { revision, events } => (revision, events.iter().map(told).collect()),
        WatchItem::Compacted { at } => panic!("compacted at {at}"),
    }
}

fn set<const N: usize>(texts: [&str; N]) -> BTreeSet<String> {
    texts.into_iter().map(str::to_owned).collect()
}

async fn a_put_is_read_back_with_its_versions(subject: &dyn Subject) {
    let store = subject.backend();
    assert_eq!(read(&store, "v/a").await, None);
    let first = always(&store, vec![put("v/a", "1")]).await.revision;
    let entry = read(&store, "v/a").await.unwrap();
    assert_eq!((entry.version, entry.revision, entry.lease), (1, first, None));
    let second = always(&store, vec![put("v/a", "2")]).await.revision;
    assert_eq!(second, first + 1);
    let entry = read(&store, "v/a").await.unwrap();
    assert_eq!((entry.version, entry.revision, entry.value.as_slice()), (2, second, b"2".as_slice()));
    always(&store, vec![delete("v/a")]).await;
    always(&store, vec![put("v/a", "3")]).await;
    assert_eq!(read(&store, "v/a").await.unwrap().version, 1, "versions begin anew");
    always(&store, vec![put("v/empty", "")]).await;
    assert_eq!(value(&store, "v/empty").await.as_deref(), Some(""), "an empty value is a value");
}

async fn absent_compares_to_missing_keys_only(subject: &dyn Subject) {
    let store = subject.backend();
    let make =
        || Txn::always(vec![put("ab/a", "mine")]).when(Compare::Absent("ab/a".into())).otherwise(get("ab/a"));
    let made = store.txn(make()).await.unwrap();
    assert!(made.succeeded);
    assert_eq!(made.responses, [Response::Put]);
    let again = store.txn(make()).await.unwrap();
    assert!(!again.succeeded);
    assert!(matches!(&again.responses[..], [Response::Found(Some(entry))] if entry.value == b"mine"));
    always(&store, vec![delete("ab/a")]).await;
    assert!(store.txn(make()).await.unwrap().succeeded);
}

async fn versions_and_values_decide_the_branch(subject: &dyn Subject) {
    let store = subject.backend();
    always(&store, vec![put("cmp/a", "1")]).await;
    always(&store, vec![put("cmp/a", "2")]).await;
    let cases = [
        (Compare::Version("cmp/a".into(), 2), true),
        (Compare::Version("cmp/a".into(), 1), false),
        (Compare::Version("cmp/none".into(), 1), false),
        (Compare::Value("cmp/a".into(), b"2".to_vec()), true),
        (Compare::Value("cmp/a".into(), b"1".to_vec()), false),
        (Compare::Value("cmp/none".into(), b"".to_vec()), false),
        (Compare::Absent("cmp/none".into()), true),
        (Compare::Absent("cmp/a".into()), false),
    ];
    for (compare, holds) in cases {
        let txn = Txn::always(vec![get("cmp/a")]).when(compare.clone());
        assert_eq!(store.txn(txn).await.unwrap().succeeded, holds, "{compare:?}");
    }
    let both = Txn::always(vec![])
        .when(Compare::Version("cmp/a".into(), 2))
        .when(Compare::Value("cmp/a".into(), b"1".to_vec()));
    assert!(!store.txn(both).await.unwrap().succeeded, "all comparisons must hold");
}

async fn a_transaction_is_done_whole_or_not_at_all(subject: &dyn Subject) {
    let store = subject.backend();
    always(&store, vec![put("whole/a", "0"), put("whole/b", "0")]).await;
    let gone = StoreLease(0x7fff_0000_0000_0001);
    let refused = store.txn(Txn::always(vec![put("whole/a", "1"), under("whole/b", "1", gone)])).await;
    assert_eq!(refused, Err(StoreError::LeaseNotFound { lease: gone.0 }));
    assert_eq!(value(&store, "whole/a").await.as_deref(), Some("0"));
    let done = always(&store, vec![put("whole/a", "2"), delete("whole/b"), put("whole/c", "2")]).await;
    assert_eq!(done.responses, [Response::Put, Response::Deleted { existed: true }, Response::Put]);
    assert_eq!(read(&store, "whole/a").await.unwrap().revision, done.revision);
    assert_eq!(read(&store, "whole/c").await.unwrap().revision, done.revision);
    assert_eq!(read(&store, "whole/b").await, None);
}

async fn operations_see_what_those_before_them_did(subject: &dyn Subject) {
    let store = subject.backend();
    always(&store, vec![put("see/a", "1"), put("see/b", "1")]).await;
    let done = always(
        &store,
        vec![
            put("see/c", "new"),
            get("see/c"),
            delete("see/a"),
            Op::range("see/"),
            get("see/a"),
            delete("see/none"),
        ],
    )
    .await;
    assert!(
        matches!(&done.responses[1], Response::Found(Some(entry)) if entry.value == b"new" && entry.version == 1)
    );
    assert_eq!(entries(&done.responses[3]).0, ["see/b", "see/c"]);
    assert_eq!(done.responses[4], Response::Found(None));
    assert_eq!(done.responses[5], Response::Deleted { existed: false });
}

async fn bad_transactions_are_refused_alike(subject: &dyn Subject) {
    let store = subject.backend();
    let twice = store.txn(Txn::always(vec![put("bad/a", "1"), put("bad/a", "2")])).await;
    assert_eq!(twice, Err(StoreError::DuplicateKey { key: "bad/a".to_owned() }));
    let nameless = store.txn(Txn::always(vec![put("", "1")])).await;
    assert!(matches!(nameless, Err(StoreError::KeyLength { len_bytes: 0, .. })));
    let long = store.txn(Txn::always(vec![get(&"k".repeat(5000))])).await;
    assert!(matches!(long, Err(StoreError::KeyLength { len_bytes: 5000, .. })));
    let large = store.txn(Txn::always(vec![Op::put("bad/large", vec![0; (1 << 20) + 1])])).await;
    assert!(matches!(large, Err(StoreError::ValueLength { .. })));
    let many = store.txn(Txn::always((0..=TXN_PARTS_MAX).map(|n| get(&format!("bad/{n}"))).collect())).await;
    assert!(matches!(many, Err(StoreError::TooMany { count: 129, limit: 128, .. })));
    let largest = store.txn(Txn::always(vec![Op::put("bad/largest", vec![7; 1 << 20])])).await;
    assert!(largest.is_ok(), "a value at the limit is taken: {largest:?}");
    assert_eq!(read(&store, "bad/a").await, None);
}

async fn ranges_are_ordered_and_paged(subject: &dyn Subject) {
    let store = subject.backend();
    for n in [5, 3, 1, 4, 2] {
        always(&store, vec![put(&format!("page/{n}"), "x"), put(&format!("pagf/{n}"), "x")]).await;
    }
    let all = always(&store, vec![Op::range("page/")]).await;
    assert_eq!(
        entries(&all.responses[0]),
        (["page/1", "page/2", "page/3", "page/4", "page/5"].map(str::to_owned).to_vec(), false)
    );
    let page = |after: Option<&str>, limit| {
        let after = after.map(|key| key.as_bytes().to_vec());
        Op::Range(Range { prefix: b"page/".to_vec(), after, limit, keys_only: true })
    };
    let first = always(&store, vec![page(None, 2)]).await;
    assert_eq!(entries(&first.responses[0]), (["page/1", "page/2"].map(str::to_owned).to_vec(), true));
    let Response::Range { entries: found, .. } = &first.responses[0] else { unreachable!() };
    assert!(found.iter().all(|entry| entry.value.is_empty()), "only keys were asked for");
    let rest = always(&store, vec![page(Some("page/2"), 3)]).await;
    assert_eq!(
        entries(&rest.responses[0]),
        (["page/3", "page/4", "page/5"].map(str::to_owned).to_vec(), false)
    );
    let none = always(&store, vec![page(Some("page/5"), 3)]).await;
    assert_eq!(entries(&none.responses[0]), (Vec::new(), false));
}

async fn reading_makes_no_revision(subject: &dyn Subject) {
    let store = subject.backend();
    let before = always(&store, vec![put("still/a", "1")]).await.revision;
    for _ in 0..3 {
        assert_eq!(always(&store, vec![get("still/a"), delete("still/none")]).await.revision, before);
    }
    let failed = Txn::always(vec![put("still/a", "2")]).when(Compare::Absent("still/a".into()));
    assert_eq!(store.txn(failed).await.unwrap().revision, before);
}

async fn a_watch_brings_each_revision_once_in_order(subject: &dyn Subject) {
    let store = subject.backend();
    let first = always(&store, vec![put("w/a", "1"), put("w/b", "1")]).await.revision;
    always(&store, vec![delete("w/a")]).await;
    let mut watch = store.watch(b"w/".to_vec(), first).await.unwrap();
    assert_eq!(changes(next(&mut watch).await), (first, set(["+w/a=1", "+w/b=1"])), "one item per revision");
    assert_eq!(changes(next(&mut watch).await), (first + 1, set(["-w/a"])));
    silent(&mut watch).await;
    let writer = store.clone();
    let writing = tokio::spawn(async move {
        for n in 0..100 {
            always(&writer, vec![put("w/n", &n.to_string())]).await;
        }
    });
    for n in 0..100 {
        let (revision, events) = changes(next(&mut watch).await);
        assert_eq!((revision, events), (first + 2 + n, set([&format!("+w/n={n}")])));
    }
    writing.await.unwrap();
    let mut later = store.watch(b"w/".to_vec(), first + 51).await.unwrap();
    assert_eq!(
        changes(next(&mut later).await),
        (first + 51, set(["+w/n=49"])),
        "from the revision that was asked for"
    );
    let mut future = store.watch(b"w/".to_vec(), first + 103).await.unwrap();
    always(&store, vec![put("w/early", "")]).await;
    always(&store, vec![put("w/due", "")]).await;
    assert_eq!(changes(next(&mut future).await), (first + 103, set(["+w/due="])), "not before that revision");
}

async fn a_watch_keeps_to_its_prefix(subject: &dyn Subject) {
    let store = subject.backend();
    let from = always(&store, vec![put("px/0", "")]).await.revision + 1;
    let mut watch = store.watch(b"px/a".to_vec(), from).await.unwrap();
    always(&store, vec![put("px/b", "1"), put("px/a1", "1")]).await;
    always(&store, vec![put("px/b", "2")]).await;
    always(&store, vec![put("px/a2", "2")]).await;
    assert_eq!(changes(next(&mut watch).await).1, set(["+px/a1=1"]));
    assert_eq!(changes(next(&mut watch).await).1, set(["+px/a2=2"]));
}

async fn a_watch_of_what_is_compacted_says_so_and_a_list_converges(subject: &dyn Subject) {
    let store = subject.backend();
    let first = always(&store, vec![put("co/gone", "1")]).await.revision;
    for n in 0..1000 {
        always(&store, vec![put(&format!("co/{}", n % 7), &n.to_string())]).await;
    }
    let last = always(&store, vec![delete("co/gone")]).await.revision;
    subject.compact(last).await;
    let mut watch = store.watch(b"co/".to_vec(), first).await.unwrap();
    let WatchItem::Compacted { at } = next(&mut watch).await else { panic!("not told") };
    assert!(first <= at && at <= last, "{first} <= {at} <= {last}");
    assert!(tokio::time::timeout(LONG, watch.next()).await.unwrap().is_none(), "and that is the end of it");

    let list = always(&store, vec![Op::range("co/")]).await;
    let Response::Range { entries, .. } = &list.responses[0] else { unreachable!() };
    let mut known: BTreeMap<Vec<u8>, Vec<u8>> =
        entries.iter().map(|entry| (entry.key.clone(), entry.value.clone())).collect();
    assert!(!known.contains_key(b"co/gone".as_slice()));
    let mut watch = store.watch(b"co/".to_vec(), list.revision + 1).await.unwrap();
    always(&store, vec![put("co/3", "end"), delete("co/4")]).await;
    let WatchItem::Changed { events, .. } = next(&mut watch).await else { panic!("compacted") };
    for event in events {
        match event {
            WatchEvent::Deleted(key) => known.remove(&key),
            WatchEvent::Put(entry) => known.insert(entry.key, entry.value),
        };
    }
    let now = always(&store, vec![Op::range("co/")]).await;
    let Response::Range { entries, .. } = &now.responses[0] else { unreachable!() };
    assert!(entries.iter().map(|entry| (&entry.key, &entry.value)).eq(known.iter()));
}

async fn a_deletion_at_the_compacted_revision_is_not_lost(subject: &dyn Subject) {
    let store = subject.backend();
    always(&store, vec![put("cd/a", "1")]).await;
    let deleted = always(&store, vec![delete("cd/a")]).await.revision;
    subject.compact(deleted).await;
    let mut watch = store.watch(b"cd/".to_vec(), deleted).await.unwrap();
    always(&store, vec![put("cd/b", "1")]).await;
    match next(&mut watch).await {
        WatchItem::Compacted { .. } => {}
        WatchItem::Changed { events, .. } => {
            assert_eq!(told(&events[0]), "-cd/a", "shown, or said to be gone")
        }
    }
    let mut after = store.watch(b"cd/".to_vec(), deleted + 1).await.unwrap();
    assert_eq!(changes(next(&mut after).await).1, set(["+cd/b=1"]), "what comes after is there");
}

async fn a_slow_watcher_loses_nothing_or_is_told(subject: &dyn Subject) {
    let store = subject.backend();
    let from = always(&store, vec![put("slow/0", "")]).await.revision + 1;
    let mut watch = store.watch(b"slow/".to_vec(), from).await.unwrap();
    for n in 0..300 {
        always(&store, vec![Op::put("slow/n", vec![n as u8; 4096])]).await;
    }
    let mut seen = 0;
    while seen < 300 {
        match next(&mut watch).await {
            WatchItem::Changed { revision, .. } => {
                assert_eq!(revision, from + seen);
                seen += 1;
            }
            WatchItem::Compacted { .. } => return,
        }
    }
}

async fn a_lease_that_runs_out_takes_its_keys_along(subject: &dyn Subject) {
    let store = subject.backend();
    let from = always(&store, vec![put("le/0", "")]).await.revision + 1;
    let mut watch = store.watch(b"le/".to_vec(), from).await.unwrap();
    let (lease, ttl) = store.lease_grant(Duration::from_secs(1)).await.unwrap();
    assert!(Duration::from_secs(1) <= ttl);
    always(&store, vec![under("le/a", "1", lease), under("le/b", "1", lease), put("le/c", "1")]).await;
    assert_eq!(read(&store, "le/a").await.unwrap().lease, Some(lease));
    assert_eq!(changes(next(&mut watch).await).1, set(["+le/a=1", "+le/b=1", "+le/c=1"]));
    let mut gone = BTreeSet::new();
    while gone.len() < 2 {
        gone.extend(changes(next(&mut watch).await).1);
    }
    assert_eq!(gone, set(["-le/a", "-le/b"]));
    assert_eq!(read(&store, "le/a").await, None);
    assert_eq!(value(&store, "le/c").await.as_deref(), Some("1"));
    assert_eq!(store.lease_keep_alive(lease).await, Err(StoreError::LeaseNotFound { lease: lease.0 }));
    assert_eq!(store.lease_revoke(lease).await, Err(StoreError::LeaseNotFound { lease: lease.0 }));
    let late = store.txn(Txn::always(vec![under("le/late", "1", lease)])).await;
    assert_eq!(late, Err(StoreError::LeaseNotFound { lease: lease.0 }));
}

async fn a_lease_that_is_renewed_stays(subject: &dyn Subject) {
    let store = subject.backend();
    let (lease, ttl) = store.lease_grant(Duration::from_secs(1)).await.unwrap();
    always(&store, vec![under("ka/a", "1", lease)]).await;
    let end = tokio::time::Instant::now() + ttl * 2;
    while tokio::time::Instant::now() < end {
        store.lease_keep_alive(lease).await.unwrap();
        tokio::time::sleep(ttl / 5).await;
    }
    assert_eq!(value(&store, "ka/a").await.as_deref(), Some("1"));
    store.lease_revoke(lease).await.unwrap();
}

async fn a_lease_that_is_ended_is_gone_at_once(subject: &dyn Subject) {
    let store = subject.backend();
    let (lease, _) = store.lease_grant(Duration::from_secs(60)).await.unwrap();
    let (other, _) = store.lease_grant(Duration::from_secs(60)).await.unwrap();
    assert_ne!(lease, other);
    let made = always(&store, vec![under("end/a", "1", lease), under("end/b", "1", other)]).await.revision;
    let mut watch = store.watch(b"end/".to_vec(), made + 1).await.unwrap();
    store.lease_revoke(lease).await.unwrap();
    assert_eq!(changes(next(&mut watch).await).1, set(["-end/a"]));
    assert_eq!(value(&store, "end/b").await.as_deref(), Some("1"));
    store.lease_revoke(other).await.unwrap();
}

async fn a_key_written_again_leaves_its_lease(subject: &dyn Subject) {
    let store = subject.backend();
    let (lease, _) = store.lease_grant(Duration::from_secs(60)).await.unwrap();
    always(&store, vec![under("free/a", "1", lease), under("free/b", "1", lease)]).await;
    always(&store, vec![put("free/a", "2"), under("free/b", "2", lease)]).await;
    store.lease_revoke(lease).await.unwrap();
    assert_eq!(value(&store, "free/a").await.as_deref(), Some("2"), "written under no lease, it is free");
    assert_eq!(value(&store, "free/b").await, None);
}

async fn twenty_at_once_make_one(subject: &dyn Subject) {
    let store = subject.backend();
    let attempts = (0..20).map(|n| {
        let store = store.clone();
        tokio::spawn(async move {
            let mine = n.to_string();
            let key = || b"one/a".to_vec();
            let txn = Txn::always(vec![Op::put(key(), mine.clone())]).when(Compare::Absent(key()));
            let done = store.txn(txn.otherwise(Op::Get(key()))).await.unwrap();
            match done.responses.first() {
                Some(Response::Found(Some(entry))) => {
                    (false, String::from_utf8(entry.value.clone()).unwrap())
                }
                _ => (true, mine),
            }
        })
    });
    let outcomes: Vec<(bool, String)> =
        futures::future::join_all(attempts).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(outcomes.iter().filter(|(won, _)| *won).count(), 1);
    assert_eq!(
        outcomes.iter().map(|(_, value)| value).collect::<BTreeSet<_>>().len(),
        1,
        "all see the winner's"
    );
}

async fn twenty_counters_lose_no_step(subject: &dyn Subject) {
    let store = subject.backend();
    always(&store, vec![put("count/n", "0")]).await;
    let steps = (0..20).map(|_| {
        let store = store.clone();
        tokio::spawn(async move {
            loop {
                let now = read(&store, "count/n").await.unwrap();
                let n: u64 = String::from_utf8(now.value).unwrap().parse().unwrap();
                let step = Txn::always(vec![put("count/n", &(n + 1).to_string())]);
                let step = step.when(Compare::Version("count/n".into(), now.version));
                if store.txn(step).await.unwrap().succeeded {
                    return n;
                }
            }
        })
    });
    let seen: BTreeSet<u64> =
        futures::future::join_all(steps).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(seen, (0..20).collect());
}
