//! Tests of the tables over a key space: the effect of each transaction, and its refusals.

use super::*;
use crate::backend::Response;
use crate::journal::Journal;
use crate::keyspace::{Commit, EmbeddedLimits, Entry, KeySpace};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tharsis_protos::control::{ClusterId, JobEnd};
use tharsis_types::Resources;
use tokio::time::Instant;

/// A store for one test, and its file if it has one.
struct Store(KeySpace, Option<Journal>);

impl Store {
    fn new() -> Store {
        Store(KeySpace::empty(EmbeddedLimits::default(), Instant::now()), None)
    }

    fn at(path: &Path) -> Store {
        let (journal, space) = Journal::open(path, EmbeddedLimits::default()).unwrap();
        Store(space, Some(journal))
    }

    fn run(&mut self, txn: &Txn) -> TxnResult {
        let (commit, result) = self.0.plan(txn).unwrap();
        self.apply(commit);
        result
    }

    fn grant(&mut self) -> StoreLease {
        let (commit, lease) = self.0.plan_grant(Duration::from_secs(9)).unwrap();
        self.apply(commit);
        lease
    }

    fn apply(&mut self, commit: Commit) {
        if let Some(journal) = self.1.as_ref().filter(|_| !commit.is_empty()) {
            journal.commit(&commit).unwrap();
        }
        self.0.apply(commit, Instant::now());
    }

    /// All entries, as text.
    fn shown(&mut self) -> String {
        let result = self.run(&Txn::always(vec![Op::range("")]));
        let mut text = String::new();
        for KeyValue { key, value, version, lease, .. } in ranged(&result, 0).0 {
            let value = match String::from_utf8(value.clone()) {
                Ok(text) if text.bytes().all(|byte| b' ' <= byte) => text,
                _ => format!("{value:02x?}"),
            };
            let lease = lease.map_or(String::new(), |lease| format!(", lease {}", lease.0));
            writeln!(text, "{} (version {version}{lease}) {value}", String::from_utf8_lossy(key)).unwrap();
        }
        text
    }

    fn revoke(&mut self, lease: StoreLease) {
        let commit = self.0.plan_revoke(lease).unwrap();
        self.apply(commit);
    }

    fn keys(&mut self) -> Vec<String> {
        let result = self.run(&Txn::always(vec![Op::range("")]));
        ranged(&result, 0).0.iter().map(|entry| String::from_utf8(entry.key.clone()).unwrap()).collect()
    }

    fn counter(&mut self, request: u8) -> JobCounter {
        let result = self.run(&job_counter(&[request; 16]));
        read_job_counter(&result).unwrap()
    }

    fn make(&mut self, request: u8) -> JobRecord {
        let counter = self.counter(request);
        let record = job(counter.next, request);
        assert!(self.run(&make_job(&record, &counter, None).unwrap()).succeeded);
        record
    }

    fn version(&mut self, key: Vec<u8>) -> u64 {
        found(&self.run(&get(key)), 0).unwrap().version
    }
}

fn job(id: u32, request: u8) -> JobRecord {
    JobRecord {
        info: JobInfo {
            id: JobId(id),
            name: String::new(),
            namespace: String::new(),
            code_unit: None,
            driver_node: NodeId(1),
            entrypoint: String::new(),
            started_unix_ms: 0,
            end: None,
            terms: None,
        },
        request: [request; 16],
    }
}

fn node(id: u64) -> NodeRecord {
    let info = NodeInfo {
        id: NodeId(id),
        listen: "127.0.0.1:1".to_owned(),
        host: "host".to_owned(),
        local_socket: "/socket".to_owned(),
        resources: Resources::default(),
        labels: BTreeMap::new(),
    };
    NodeRecord { info, departure: None, machine: None }
}

fn entry(key: &str, value: &[u8]) -> KeyValue {
    KeyValue { key: key.into(), value: value.to_vec(), version: 1, revision: 1, lease: None }
}

#[test]
fn keys_sort_as_ids_and_namespaces_do_not_meet() {
    assert!(job_key(JobId(9)) < job_key(JobId(10)));
    assert_eq!(node_of_key(&node_key(NodeId(77))), Some(NodeId(77)));
    assert!(!kv_key("ab", b"x").starts_with(&kv_key("a", b"")));
}

#[test]
fn a_key_without_a_node_names_none() {
    for key in [b"nodes/".as_slice(), b"nodes/xyz", b"", b"nodes/\xff", b"nodes/11112222333344445"] {
        assert_eq!(node_of_key(key), None, "{key:?}");
    }
}

#[test]
fn a_damaged_record_does_not_hide_the_others() {
    let good = |id| entry("jobs/x", &serde_json::to_vec(&job(id, 0)).unwrap());
    let entries = [good(1), entry("jobs/y", b"{"), good(3)];
    let found: Vec<JobId> = readable::<JobRecord>(&entries).map(|record| record.info.id).collect();
    assert_eq!(found, [JobId(1), JobId(3)]);
}

#[test]
fn damage_is_named() {
    let error = parse::<JobRecord>(&entry("jobs/1", b"{")).unwrap_err().to_string();
    assert!(error.starts_with("stored key \"jobs/1\" is damaged: EOF"), "{error}");
    let found = |key: &str, value: &[u8]| TxnResult {
        succeeded: true,
        revision: 1,
        responses: vec![Response::Found(Some(entry(key, value))); 2],
    };
    for (error, problem) in [
        (owner(&found("meta/cluster", b"short")).unwrap_err(), "is not a cluster id"),
        (read_job_counter(&found("meta/next-job", b"1x")).unwrap_err(), "is not a number"),
        (read_job_counter(&found("meta/next-job", b"4294967296")).unwrap_err(), "is not a number"),
        (read_program(&found("programs/1", b"")).unwrap_err(), "is not a code unit"),
    ] {
        let text = error.to_string();
        assert!(text.contains(problem) && matches!(error, StoreError::Corrupt { .. }), "{text}");
    }
}

#[test]
fn a_key_space_has_one_cluster() {
    let mut store = Store::new();
    let [mine, other] = [ClusterId([1; 16]), ClusterId([2; 16])];
    assert_eq!(owner(&store.run(&claim(mine))).unwrap(), None, "the claim was taken");
    assert_eq!(owner(&store.run(&claim(other))).unwrap(), Some(mine));
    assert_eq!(owner(&store.run(&claim(mine))).unwrap(), Some(mine), "a claim again changes nothing");
}

#[test]
fn a_key_space_has_one_owner_and_becomes_that_of_its_users_authority() {
    let mut store = Store::new();
    let authority = |user| Owner::Authority { name: ClusterId([1; 16]), user };
    let [user, other] = [Owner::User([2; 16]), Owner::User([1; 16])];
    assert_eq!(claimed(&store.run(&claim_for(user, None))), None, "the claim was taken");
    for later in [user, other, authority(None), authority(Some([1; 16]))] {
        let found = claimed(&store.run(&claim_for(later, None))).unwrap();
        assert_eq!((found.clone(), later.follows(&found)), (user.value(), false), "{later:?}");
    }
    let mine = authority(Some([2; 16]));
    assert!(mine.follows(&user.value()));
    assert_eq!(
        claimed(&store.run(&claim_for(mine, Some(other.value())))),
        Some(user.value()),
        "it is another"
    );
    assert_eq!(claimed(&store.run(&claim_for(mine, Some(user.value())))), None);
    let found = claimed(&store.run(&claim_for(user, None))).unwrap();
    assert_eq!((found.clone(), user.follows(&found)), (mine.value(), false), "it stays the authority's");
    assert_eq!(owner_text(&found), format!("authority {}", "01".repeat(16)));
    assert_eq!(owner_text(&user.value()), format!("user {}", "02".repeat(16)));
}

#[test]
fn a_node_joins_once_and_is_a_member_until_it_takes_leave() {
    let mut store = Store::new();
    let lease = store.grant();
    let record = node(7);
    assert!(store.run(&join(&record, lease).unwrap()).succeeded);
    assert!(!store.run(&join(&record, lease).unwrap()).succeeded);
    assert_eq!(members(&store.run(&all_nodes())), vec![record.info.clone()]);
    let leaving = NodeRecord { departure: Some("stopped".to_owned()), ..record };
    assert!(!store.run(&depart(&leaving, 2).unwrap()).succeeded, "the record was read at another version");
    assert!(store.run(&depart(&leaving, 1).unwrap()).succeeded);
    assert!(members(&store.run(&all_nodes())).is_empty());
    assert!(!store.run(&remove(NodeId(7), 1)).succeeded);
    assert!(store.run(&remove(NodeId(7), 2)).succeeded);
    assert!(store.keys().is_empty());
}

#[test]
fn a_node_outlives_its_lease_until_it_is_removed_as_dead() {
    let mut store = Store::new();
    let [first, second] = [store.grant(), store.grant()];
    store.run(&join(&node(7), first).unwrap());
    let read = |store: &mut Store| read_node(&store.run(&node_and_lease(NodeId(7)))).unwrap();
    let without = |store: &mut Store| without_lease(&store.run(&roll_call()));
    assert_eq!(read(&mut store).unwrap().lease, Some(first));
    assert!(without(&mut store).is_empty());
    assert!(!store.run(&remove_dead(NodeId(7), 1)).succeeded, "it has a lease");
    let still = read(&mut store).unwrap();
    store.revoke(first);
    assert!(!store.run(&revive(&still, second)).succeeded, "the lease was read before it ended");
    assert_eq!(without(&mut store), [(NodeId(7), 1)]);
    assert_eq!(read(&mut store).map(|node| (node.version, node.lease)), Some((1, None)));
    let known = read(&mut store).unwrap();
    assert!(store.run(&revive(&known, second)).succeeded);
    let other = store.grant();
    assert!(!store.run(&revive(&known, other)).succeeded, "another renewal was first");
    assert!(without(&mut store).is_empty());
    assert!(!store.run(&remove_dead(NodeId(7), 1)).succeeded, "it was heard of again");
    store.revoke(second);
    assert!(store.run(&remove_dead(NodeId(7), 1)).succeeded);
    assert_eq!(read(&mut store), None);
    assert!(!store.run(&revive(&known, other)).succeeded, "the dead get no lease");
}

#[test]
fn job_ids_count_up_and_one_request_makes_one_job() {
    let mut store = Store::new();
    let stale = store.counter(1);
    assert_eq!(store.make(1).info.id, JobId(1));
    assert_eq!(store.make(2).info.id, JobId(2));
    assert_eq!(store.counter(1).made, Some(JobId(1)));
    assert_eq!((store.counter(3).made, store.counter(3).next), (None, 3));
    let refused = store.run(&make_job(&job(stale.next, 3), &stale, None).unwrap());
    assert!(!refused.succeeded, "another job was made since the counter was read");
}

#[test]
fn the_last_job_id_is_not_used_twice() {
    let last = JobCounter { made: None, next: u32::MAX, version: Some(1) };
    let error = make_job(&job(u32::MAX, 1), &last, None).unwrap_err();
    assert!(matches!(error, StoreError::TooMany { what: "jobs", .. }), "{error}");
}

#[test]
fn a_new_job_takes_an_outdated_one_away() {
    let mut store = Store::new();
    store.make(1);
    let counter = store.counter(2);
    store.run(&make_job(&job(2, 2), &counter, Some(JobId(1))).unwrap());
    let left: Vec<JobId> = readable::<JobRecord>(ranged(&store.run(&jobs_after(JobId(0), 10)), 0).0)
        .map(|r| r.info.id)
        .collect();
    assert_eq!(left, [JobId(2)]);
}

#[test]
fn a_job_that_has_ended_leaves_only_its_record() {
    let mut store = Store::new();
    let mut record = store.make(1);
    let key = job_key(record.info.id);
    let version = store.version(key.clone());
    assert!(store.run(&set_program(JobId(1), CodeUnitId([3; 32]), version)).succeeded);
    assert_eq!(read_program(&store.run(&job_and_program(JobId(1)))).unwrap(), Some(CodeUnitId([3; 32])));
    record.info.end = Some(JobEnd { succeeded: true, message: String::new(), ended_unix_ms: 1 });
    assert!(store.run(&end_job(&record, version).unwrap()).succeeded);
    assert!(!store.run(&end_job(&record, version).unwrap()).succeeded, "it was changed since it was read");
    assert!(!store.run(&set_program(JobId(1), CodeUnitId([4; 32]), version)).succeeded);
    assert_eq!(store.keys(), [String::from_utf8(key).unwrap(), "meta/next-job".to_owned()]);
    assert_eq!(read_program(&store.run(&job_and_program(JobId(1)))).unwrap(), None);
}

#[test]
fn jobs_are_listed_in_pages() {
    let mut store = Store::new();
    (1..=5).for_each(|request| drop(store.make(request)));
    let mut seen = Vec::new();
    let mut last = JobId(0);
    loop {
        let result = store.run(&jobs_after(last, 2));
        let (entries, more) = ranged(&result, 0);
        seen.extend(readable::<JobRecord>(entries).map(|record| record.info.id.0));
        last = JobId(*seen.last().unwrap());
        if !more {
            break;
        }
    }
    assert_eq!(seen, [1, 2, 3, 4, 5]);
}

#[test]
fn code_is_held_for_as_long_as_its_holder_is_a_member() {
    let mut store = Store::new();
    let lease = store.grant();
    for id in [1, 2, 3] {
        assert!(store.run(&join(&node(id), lease).unwrap()).succeeded);
    }
    let [unit, other] = [CodeUnitId([5; 32]), CodeUnitId([6; 32])];
    let read = |store: &mut Store| read_code_holders(&store.run(&code_holders(unit))).unwrap();
    assert_eq!(read(&mut store), None);
    assert!(store.run(&hold_code(unit, 99, NodeId(1), 1)).succeeded);
    assert!(store.run(&hold_code(unit, 99, NodeId(2), 1)).succeeded);
    assert!(store.run(&hold_code(other, 1, NodeId(1), 1)).succeeded);
    assert!(!store.run(&hold_code(unit, 99, NodeId(4), 1)).succeeded, "it is no member");
    assert_eq!(read(&mut store), Some((99, vec![NodeId(1), NodeId(2)])));
    store.run(&remove(NodeId(1), 1));
    assert_eq!(read(&mut store), Some((99, vec![NodeId(2)])));
    let page = store.run(&code_keys(None));
    let forget = forget_code_of(NodeId(1), ranged(&page, 0).0);
    forget.iter().for_each(|txn| drop(store.run(txn)));
    assert_eq!(ranged(&store.run(&code_keys(None)), 0).0.len(), 1, "what node 2 holds");
}

#[test]
fn keys_of_one_namespace_are_listed_by_prefix_after_a_key() {
    let mut store = Store::new();
    for (namespace, key) in [("a", "x1"), ("a", "x2"), ("a", "x3"), ("a", "y"), ("b", "x2"), ("", "x9")] {
        store.run(&Txn::always(vec![Op::put(kv_key(namespace, key.as_bytes()), "value")]));
    }
    let mut keys = |namespace: &str, prefix: &str, after: &str| -> Vec<String> {
        let result = store.run(&kv_keys(namespace, prefix.as_bytes(), after.as_bytes(), 10));
        let text = |entry: &KeyValue| String::from_utf8(entry.key.clone()).unwrap();
        ranged(&result, 0).0.iter().map(text).collect()
    };
    assert_eq!(keys("a", "x", "x1"), ["kv/a/x2", "kv/a/x3"]);
    assert_eq!(keys("a", "", "x3"), ["kv/a/y"]);
    assert_eq!(keys("b", "x", ""), ["kv/b/x2"]);
    assert_eq!(keys("", "", ""), ["kv//x9"]);
}

/// Records as former releases wrote them, and with a field that a later one might add.
#[test]
fn records_of_other_releases_are_read() {
    let entry = |value: &str| KeyValue {
        key: b"nodes/0000000000000001".to_vec(),
        value: value.as_bytes().to_vec(),
        version: 1,
        revision: 1,
        lease: None,
    };
    let info = r#"{"id":1,"listen":"h:1","host":"boot","local_socket":"/s","resources":{"cpu":10000,"gpu":0,"memory":5,"custom":{}},"labels":{}}"#;
    // 0.1, before departures and machines were noted; then with both; then a later one.
    for (record, machine) in [
        (format!(r#"{{"info":{info}}}"#), None),
        (
            format!(r#"{{"info":{info},"departure":null,"machine":"00000000000000aa"}}"#),
            Some("00000000000000aa"),
        ),
        (
            format!(
                r#"{{"info":{},"shape":"round","departure":"x"}}"#,
                info.replace(r#""id":1"#, r#""zone":3,"id":1"#)
            ),
            None,
        ),
    ] {
        let read: NodeRecord = parse(&entry(&record)).unwrap_or_else(|error| panic!("{record}: {error}"));
        assert_eq!((read.info.id, read.machine.as_deref()), (NodeId(1), machine));
    }
    let request = "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]";
    let job = format!(
        r#"{{"info":{{"id":3,"name":"n","namespace":"s","code_unit":null,"driver_node":1,"entrypoint":"e","started_unix_ms":7,"end":{{"succeeded":true,"message":"m","ended_unix_ms":8}}}},"request":{request}}}"#
    );
    let read: JobRecord = parse(&entry(&job)).unwrap();
    assert_eq!((read.info.id, read.info.end.is_some(), read.request[15]), (JobId(3), true, 16));
    assert_eq!(read.info.terms, None, "before they were noted");
    // This release writes what is recorded here.
    assert_eq!(
        serde_json::from_slice::<serde_json::Value>(&json(b"k", &read).unwrap()).unwrap(),
        serde_json::from_str::<serde_json::Value>(&job).unwrap()
    );
}

/// Writes an entry of each kind; returns the lease of some of them.
fn fill(store: &mut Store) -> StoreLease {
    let lease = store.grant();
    let mut member = node(7);
    member.machine = Some("00000000000000aa".to_owned());
    member.info.resources.custom.insert("disk".to_owned(), 10_000);
    member.info.labels.insert("zone".to_owned(), "a".to_owned());
    let leaving = NodeRecord { departure: Some("stopped".to_owned()), ..node(8) };
    let row = Row::new("tokens/0123456789abcdef", "hash node 1800000000").unwrap();
    let all = [
        claim(ClusterId([1; 16])),
        claim_for(Owner::User([2; 16]), None),
        note_format(),
        Lineage::default().begin(0xab, false),
        list_store("10.0.0.1:7600", Some(NodeId(7)), lease),
        join(&member, lease).unwrap(),
        join(&node(8), lease).unwrap(),
        depart(&leaving, 1).unwrap(),
        add_machine_row(&row),
        hold_code(CodeUnitId([5; 32]), 99, NodeId(7), 1),
        Txn::always(vec![Op::put(kv_key(ACTORS_NAMESPACE, b"name"), "value")]),
    ];
    all.iter().for_each(|txn| assert!(store.run(txn).succeeded, "{txn:?}"));
    let mut ended = store.make(3);
    ended.info.end = Some(JobEnd { succeeded: false, message: "why".to_owned(), ended_unix_ms: 8 });
    assert!(store.run(&end_job(&ended, 1).unwrap()).succeeded);
    let running = store.make(4);
    assert!(store.run(&set_program(running.info.id, CodeUnitId([5; 32]), 1)).succeeded);
    lease
}

/// Tables with an entry of each kind, as text.
fn written() -> String {
    let mut store = Store::new();
    let lease = fill(&mut store);
    let mut text = store.shown();
    // The same in a file.
    let entry = Entry { value: b"value".to_vec(), version: 300, revision: 70_000, lease: Some(lease) };
    writeln!(text, "entry of a file: {:02x?}", postcard::to_stdvec(&entry).unwrap()).unwrap();
    text
}

/// A recorded file.
fn recorded(name: &str) -> PathBuf {
    Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("testdata").join(name)
}

#[test]
fn what_this_release_writes_is_what_is_recorded_of_its_version() {
    let file = recorded(&format!("tables-{FORMAT}.txt"));
    let written = written();
    if std::env::var_os("UPDATE_TABLES").is_some() {
        return std::fs::write(file, written).unwrap();
    }
    let recorded = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        written == recorded,
        "other than {}:\n{written}\nFormer releases of this version read what is written. If they read it wrongly, \
         raise FORMAT (tables/meta.rs; journal.rs for entries of a file), and keep reading the former one. Then record: \
         UPDATE_TABLES=1 cargo test -p tharsis-gcs --lib recorded",
        file.display()
    );
}

/// Bytes in a row of a state file as text.
const ROW_BYTES: usize = 32;

/// A state file as text: its length, and each row with other bytes than zeros, after its offset.
fn text_of(bytes: &[u8]) -> String {
    let mut text = format!("{} bytes\n", bytes.len());
    for (index, row) in bytes.chunks(ROW_BYTES).enumerate().filter(|(_, row)| row.iter().any(|b| *b != 0)) {
        let digits: String = row.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(text, "{:x} {digits}", index * ROW_BYTES).unwrap();
    }
    text
}

fn bytes_of(text: &str) -> Vec<u8> {
    let (length, rows) = text.split_once(" bytes\n").unwrap();
    let mut bytes = vec![0; length.parse().unwrap()];
    for row in rows.lines() {
        let (offset, digits) = row.split_once(' ').unwrap();
        let offset = usize::from_str_radix(offset, 16).unwrap();
        for (index, digits) in digits.as_bytes().chunks(2).enumerate() {
            let digits = std::str::from_utf8(digits).unwrap();
            bytes[offset + index] = u8::from_str_radix(digits, 16).unwrap();
        }
    }
    bytes
}

/// A file of `--state` of each version, as a release wrote it that had the version: the tables in it, and the
/// database around them. A recorded file is never written anew.
#[test]
fn recorded_state_files_of_all_versions_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let current = recorded(&format!("state-{FORMAT}.txt"));
    if std::env::var_os("UPDATE_TABLES").is_some() && !current.exists() {
        let path = folder.path().join("written");
        fill(&mut Store::at(&path));
        std::fs::write(&current, text_of(&std::fs::read(&path).unwrap())).unwrap();
    }
    for version in 1..=FORMAT {
        let text = std::fs::read_to_string(recorded(&format!("state-{version}.txt"))).unwrap_or_else(|_| {
            panic!(
                "no state file of version {version}: UPDATE_TABLES=1 cargo test -p tharsis-gcs --lib recorded"
            )
        });
        let path = folder.path().join(format!("state-{version}"));
        std::fs::write(&path, bytes_of(&text)).unwrap();
        let mut store = Store::at(&path);
        let tables = std::fs::read_to_string(recorded(&format!("tables-{version}.txt"))).unwrap();
        let (tables, _) = tables.split_once("entry of a file").unwrap();
        assert_eq!(store.shown(), tables, "version {version}");
        // It is written on as well.
        let value = Txn::always(vec![Op::put(kv_key("later", b"name"), "value")]);
        assert!(store.run(&value).succeeded);
        let shown = store.shown();
        drop(store);
        assert_eq!(Store::at(&path).shown(), shown);
    }
}

#[test]
fn the_page_about_upgrades_names_the_versions_of_this_release() {
    let page = include_str!("../../docs/upgrade.md");
    let (cluster, control) = (tharsis_protos::proof::VERSION, tharsis_protos::control::PROTOCOL);
    let protocol = tharsis_protos::handshake::PROTOCOL_VERSION;
    let line = format!("protocol {protocol}, cluster {cluster}, control {control}, tables {FORMAT}");
    assert!(page.contains(&line), "{line}");
}
