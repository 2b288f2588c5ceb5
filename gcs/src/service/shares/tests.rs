//! Shares of callers: what counts, what is replaced, whose a name is.

use super::*;

use tharsis_protos::control::{ACTORS_NAMESPACE, GROUPS_NAMESPACE};

const HALF: usize = CALLER_BYTES_MAX / 2;
const A: Writer = Writer::Machine(MachineId(1));
const B: Writer = Writer::Node(NodeId(2));

fn write(written: &mut Written, writer: Writer, key: &str, bytes: usize) -> bool {
    let is_fine = written.begin(writer, key.as_bytes(), bytes);
    if is_fine {
        let done = done(written, None, 1);
        written.end(writer, key.into(), bytes, Some(done));
    }
    is_fine
}

/// A write that was answered, and began behind all that have ended.
fn done(written: &Written, node: Option<u64>, revision: u64) -> Done {
    Done { node: node.map(NodeId), made: Made::Revision(revision), after: written.ended }
}

/// A name is claimed by a node, which goes before it is answered.
fn give_up(written: &Mutex<Written>, node: u64, key: &[u8], record: &[u8]) {
    assert!(written.lock().begin(A, key, record.len()));
    let (node, key, value) = (Some(NodeId(node)), Some(key.to_vec()), Bytes::copy_from_slice(record));
    let after = written.lock().ended;
    drop(Counted { written, writer: A, node, key, value, after });
}

#[test]
fn a_caller_has_its_share_whatever_others_write() {
    let mut written = Written::default();
    assert!(write(&mut written, A, "1", HALF));
    assert!(!write(&mut written, A, "2", HALF), "keys and entries count as well");
    assert!(write(&mut written, A, "1", HALF), "what is replaced makes room");
    assert!(write(&mut written, B, "2", HALF));
    // The one who wrote last has it.
    assert!(write(&mut written, B, "1", 10));
    assert!(write(&mut written, A, "3", HALF));
    written.removed(b"3");
    assert_eq!((written.bytes.get(&A), written.keys.len()), (None, 2));
}

#[test]
fn writes_under_way_count_and_those_that_fail_do_not() {
    let mut written = Written::default();
    assert!(written.begin(A, b"1", HALF));
    assert!(!written.begin(A, b"2", HALF), "the first may be written yet");
    written.end(A, b"1".to_vec(), HALF, None);
    assert!(write(&mut written, A, "2", HALF));
    assert_eq!(written.keys.len(), 1);
}

#[test]
fn a_write_whose_caller_has_gone_counts_until_it_is_known_not_to_be_there() {
    let written = Mutex::<Written>::default();
    let begin = |key: &[u8]| {
        assert!(written.lock().begin(A, key, HALF));
        let (node, key, value) = (Some(NodeId(1)), Some(key.to_vec()), Bytes::from(vec![0; HALF]));
        Counted { written: &written, writer: A, node, key, value, after: written.lock().ended }
    };
    drop(begin(b"1"));
    assert!(!written.lock().begin(A, b"2", HALF), "it may be there");
    // The same one again takes no more room, however often.
    (0..100).for_each(|_| drop(begin(b"1")));
    written.lock().keep(&HashSet::new());
    assert!(written.lock().bytes.is_empty());
    begin(b"1").end(None);
    assert!(written.lock().bytes.is_empty(), "it was not written");
    assert!(written.lock().keys.is_empty());
    begin(b"1").end(Some(7));
    assert_eq!(written.lock().keys.len(), 1);
}

#[test]
fn a_smaller_value_is_taken_in_a_share_that_is_used_up() {
    let mut written = Written::default();
    assert!(write(&mut written, A, "1", CALLER_BYTES_MAX - ENTRY_BYTES - 1));
    assert!(!write(&mut written, A, "2", 0));
    assert!(write(&mut written, A, "1", 7));
    assert!(write(&mut written, A, "2", 0));
}

#[test]
fn names_are_those_of_the_node_that_wrote_them_last() {
    let mut written = Written::default();
    let mut write = |key: Vec<u8>, node, revision| {
        assert!(written.begin(A, &key, 1));
        let done = done(&written, Some(node), revision);
        written.end(A, key, 1, Some(done));
    };
    let name = |text: &str| tables::kv_key(ACTORS_NAMESPACE, text.as_bytes());
    write(name("a"), 1, 5);
    write(tables::kv_key(GROUPS_NAMESPACE, b"b"), 1, 6);
    write(tables::kv_key("users", b"c"), 1, 7);
    write(name("d"), 1, 8);
    write(name("d"), 2, 9);
    let names_of = |written: &Written, node| {
        let mut names: Vec<_> = written.names_of(NodeId(node)).into_iter().collect();
        names.sort_by(|a, b| a.0.cmp(&b.0));
        names.into_iter().map(|(key, value)| (key, value.made)).collect::<Vec<_>>()
    };
    let made = Made::Revision;
    let group = tables::kv_key(GROUPS_NAMESPACE, b"b");
    assert_eq!(names_of(&written, 1), [(name("a"), made(5)), (group, made(6))]);
    written.removed(&name("a"));
    assert_eq!(names_of(&written, 2), [(name("d"), made(9))]);
    assert_eq!(names_of(&written, 1).len(), 1);
}

#[test]
fn a_name_whose_write_was_not_answered_is_that_of_its_record() {
    let written = Mutex::<Written>::default();
    let key = tables::kv_key(ACTORS_NAMESPACE, b"a");
    give_up(&written, 1, &key, b"record");
    give_up(&written, 1, &tables::kv_key("users", b"large"), b"record");
    let names = written.lock().names_of(NodeId(1));
    let [(named, value)] = &names[..] else { panic!("{names:?}") };
    let entry = |value: &[u8]| KeyValue {
        key: key.clone(),
        value: value.to_vec(),
        version: 1,
        revision: 7,
        lease: None,
    };
    assert_eq!(*named, key);
    assert!(value.made.is_of(&entry(b"record")), "it was carried out");
    assert!(!value.made.is_of(&entry(b"another's")), "another node has the name");
    let others = written.lock().keys.values().flatten().filter(|v| v.made == Made::Unknown).count();
    assert_eq!(others, 1, "values that are no names are not kept here");
}

#[test]
fn a_claim_that_was_not_answered_leaves_the_name_to_its_holder() {
    let written = Mutex::<Written>::default();
    let key = tables::kv_key(ACTORS_NAMESPACE, b"a");
    let hold = |node, revision| {
        let written = &mut *written.lock();
        assert!(written.begin(A, &key, 6));
        let done = done(written, Some(node), revision);
        written.end(A, key.clone(), 6, Some(done));
    };
    let made_of = |node| written.lock().names_of(NodeId(node)).into_iter().map(|(_, value)| value.made);
    hold(1, 5);
    let held = written.lock().bytes[&A];
    (0..100).for_each(|_| give_up(&written, 2, &key, b"second"));
    assert_eq!(
        made_of(1).collect::<Vec<_>>(),
        [Made::Revision(5)],
        "the claim may not have been carried out"
    );
    assert_eq!(made_of(2).collect::<Vec<_>>(), [Made::Record(Bytes::from_static(b"second"))]);
    assert_eq!(written.lock().bytes[&A], 2 * held, "both count, the same claim once");
    let (key_of_second, second) = written.lock().names_of(NodeId(2)).remove(0);
    written.lock().refuted(&key_of_second, &second);
    assert_eq!((made_of(1).count(), made_of(2).count()), (1, 0));
    // The next write replaces all that was there before.
    give_up(&written, 2, &key, b"second");
    hold(3, 9);
    assert_eq!([1, 2, 3].map(|node| made_of(node).count()), [0, 0, 1]);
    assert_eq!(written.lock().bytes[&A], held);
    // Very many claims of one name are neither remembered nor counted.
    (0..10 * CLAIMS_MAX).for_each(|n| give_up(&written, 2, &key, format!("{n:06}").as_bytes()));
    assert_eq!((made_of(2).count(), made_of(3).count()), (CLAIMS_MAX, 1));
    assert_eq!(written.lock().bytes[&A], (1 + CLAIMS_MAX) * held);
    written.lock().removed(&key);
    let written = written.into_inner();
    assert!(written.bytes.is_empty() && written.keys.is_empty());
}

#[test]
fn a_write_that_was_answered_leaves_a_claim_that_began_later() {
    let written = Mutex::<Written>::default();
    let key = tables::kv_key(ACTORS_NAMESPACE, b"a");
    assert!(written.lock().begin(A, &key, 1));
    let done = done(&written.lock(), Some(1), 5);
    // It replaced the name, or its caller went before it was carried out.
    give_up(&written, 2, &key, b"second");
    written.lock().end(A, key, 1, Some(done));
    assert_eq!([1, 2].map(|node| written.lock().names_of(NodeId(node)).len()), [1, 1]);
}

#[test]
fn answers_in_the_other_order_leave_the_later_name() {
    let mut written = Written::default();
    let key = tables::kv_key(ACTORS_NAMESPACE, b"a");
    assert!(written.begin(A, &key, 1) && written.begin(A, &key, 1));
    let (first, second) = (done(&written, Some(1), 5), done(&written, Some(2), 6));
    written.end(A, key.clone(), 1, Some(second));
    written.end(A, key.clone(), 1, Some(first));
    let of_nodes = |written: &Written| [1, 2, 3].map(|node| written.names_of(NodeId(node)).len());
    assert_eq!(of_nodes(&written), [0, 1, 0]);
    assert_eq!(written.bytes[&A], key.len() + 1 + ENTRY_BYTES);
    // The revisions of a table that was restored begin anew: a write that began later counts.
    assert!(written.begin(A, &key, 1));
    let third = done(&written, Some(3), 4);
    written.end(A, key, 1, Some(third));
    assert_eq!(of_nodes(&written), [0, 0, 1]);
}

#[test]
fn the_answer_of_an_earlier_write_ends_the_claims_that_it_replaced() {
    let written = Mutex::<Written>::default();
    let key = tables::kv_key(ACTORS_NAMESPACE, b"a");
    let begin = |node, revision| {
        assert!(written.lock().begin(A, &key, 1));
        done(&written.lock(), Some(node), revision)
    };
    let later = begin(2, 6);
    give_up(&written, 3, &key, b"a claim that ends before the earlier one begins");
    let earlier = begin(1, 5);
    give_up(&written, 4, &key, b"one that may be there after it");
    written.lock().end(A, key.clone(), 1, Some(later));
    written.lock().end(A, key.clone(), 1, Some(earlier));
    let of_nodes = [1, 2, 3, 4].map(|node| written.lock().names_of(NodeId(node)).len());
    assert_eq!(of_nodes, [0, 1, 0, 1]);
    let counted: usize = written.lock().keys.values().flatten().map(|value| value.bytes).sum();
    assert_eq!(written.lock().bytes[&A], counted);
}

#[test]
fn of_very_many_names_a_few_are_removed_at_a_time_and_all_in_the_end() {
    let mut written = Written::default();
    for number in 0..10 * NAMES_AT_A_TIME {
        let key = tables::kv_key(ACTORS_NAMESPACE, number.to_string().as_bytes());
        assert!(written.begin(A, &key, 1));
        let done = done(&written, Some(1), 1);
        written.end(A, key, 1, Some(done));
    }
    for _ in 0..10 {
        let names = written.names_of(NodeId(1));
        assert_eq!(names.len(), NAMES_AT_A_TIME);
        names.iter().for_each(|(key, _)| written.removed(key));
    }
    assert!(written.names_of(NodeId(1)).is_empty() && written.bytes.is_empty());
}

#[test]
fn what_others_removed_is_forgotten() {
    let mut written = Written::default();
    assert!(write(&mut written, A, "1", HALF) && write(&mut written, B, "2", HALF));
    written.keep(&HashSet::from([b"2".to_vec()]));
    assert_eq!((written.bytes.get(&A), written.keys.len()), (None, 1));
    let now = Instant::now();
    assert_eq!([now, now, now + LOOK_AGAIN].map(|at| written.may_look(at)), [true, false, true]);
    // The first value begins the hour.
    let times = [now, now + SWEEP_EVERY / 2, now + SWEEP_EVERY, now + SWEEP_EVERY];
    assert_eq!(times.map(|at| written.may_sweep(at)), [false, false, true, false]);
}
