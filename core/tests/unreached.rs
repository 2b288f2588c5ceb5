//! An object of another node whose holder lives and is not reached.

// A test may panic where it fails, also in shared functions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code, reason = "not every test uses all of it")]
mod host;

use host::{Host, config, member};
use std::sync::Arc;
use tharsis_core::event::OutputValue;
use tharsis_core::pull::Interrupted;
use tharsis_core::{Action, Event, MS, Operation, Record, Value};
use tharsis_types::peer::{DoneOutcome, DoneValue, Message, PushedDependency, PushedTask, RemoteState, Turn};
use tharsis_types::task::Output;
use tharsis_types::{
    ClientId, Dependency, Extent, Failure, FailureKind, FunctionId, JobId, LeaseId, NodeId, ObjectId, RefId,
    Resources, TaskArgs, TaskClass, TaskId,
};

const ME: NodeId = NodeId(1);
const OWNER: NodeId = NodeId(2);
const FIRST: NodeId = NodeId(3);
const SECOND: NodeId = NodeId(4);
const DRIVER: ClientId = ClientId(1);

/// One with more room than the others.
const LARGER: NodeId = NodeId(5);

/// Bytes of a small object and of one that its holder is asked for.
const SMALL: u64 = 64;
const LARGE: u64 = 256;

fn object(n: u64) -> ObjectId {
    ObjectId::put(TaskId::root(JobId(1)).child(n), 0)
}

fn stored_at(n: u64, len: u64, holders: &[NodeId]) -> Message {
    let state = RemoteState::Stored { len, holders: holders.to_vec() };
    Message::ObjectState { object: object(n), state, nested: Vec::new() }
}

fn reads_from(said: &[Action], node: NodeId) -> bool {
    said.iter().any(|action| matches!(action, Action::Do(Operation::Pull { from, .. }) if *from == node))
}

fn is_told(said: &[Action]) -> bool {
    said.iter().any(|action| matches!(action, Action::Tell { record: Record::Value { .. }, .. }))
}

fn request(n: u64) -> Message {
    Message::ReadRequest { object: object(n), sent: false, failed_at: None }
}

/// A node with a driver among three others.
fn host() -> Host {
    let config = tharsis_core::node::Config { relay_bytes_min: LARGE, ..config(member(ME, 4.0)) };
    let mut host = Host::new(config, MS, 100 * MS);
    for node in [OWNER, FIRST, SECOND] {
        host.feed(Event::MemberJoined(Arc::new(member(node, 4.0))));
    }
    host.feed(Event::DriverJoined { client: DRIVER, job: JobId(1), weight: 100, quota: None });
    host
}

/// The driver reads an object, whose owner answers.
fn read(host: &mut Host, n: u64, len: u64, holders: &[NodeId]) -> Vec<Action> {
    let reference = RefId { object: object(n), owner: OWNER };
    host.feed(Event::Held { client: DRIVER, token: n, reference });
    host.feed(Event::Fetch { client: DRIVER, token: n, reference });
    host.sent.clear();
    host.hear(OWNER, stored_at(n, len, holders))
}

/// Time passes, and these members live.
fn pass(host: &mut Host, living: &[NodeId]) -> Vec<Action> {
    let load = || Message::LoadReport { free: Resources::default(), waiting: 0 };
    let mut said: Vec<_> = living.iter().flat_map(|node| host.hear(*node, load())).collect();
    said.extend(host.feed(Event::Tick));
    said
}

fn interrupted(n: u64, done_bytes: u64) -> Event {
    let (copy, cause) = (0, "cut".to_owned());
    Event::PullInterrupted(Interrupted { object: object(n), from: FIRST, done_bytes, copy, cause })
}

#[test]
fn the_owner_is_asked_for_other_copies_and_the_value_is_not_lost() {
    let mut host = host();
    assert!(reads_from(&read(&mut host, 1, SMALL, &[FIRST]), FIRST));
    let said = host.feed(interrupted(1, 0));
    assert!(!is_told(&said) && !reads_from(&said, FIRST), "{said:?}");
    assert!(host.sent.contains(&Message::ObjectLocate { object: object(1) }), "{:?}", host.sent);
    host.hear(OWNER, stored_at(1, SMALL, &[FIRST, SECOND]));
    let said = host.feed(Event::Tick);
    assert!(reads_from(&said, SECOND), "{said:?}");
    assert_eq!(host.node.value(object(1)), Some(&Value::Stored { len: SMALL }));
}

#[test]
fn a_living_copy_is_not_lost_however_often_its_holder_is_not_reached() {
    let mut host = host();
    read(&mut host, 1, SMALL, &[FIRST]);
    for _ in 0..20 {
        let said = host.feed(interrupted(1, 0));
        assert!(!is_told(&said) && !reads_from(&said, FIRST), "{said:?}");
        let is_tried_again = (0..100).any(|_| reads_from(&pass(&mut host, &[OWNER, FIRST]), FIRST));
        assert!(is_tried_again);
    }
    assert_eq!(host.node.value(object(1)), Some(&Value::Stored { len: SMALL }));
}

#[test]
fn a_holder_that_dies_is_waited_for_no_longer() {
    let mut host = host();
    read(&mut host, 1, SMALL, &[FIRST]);
    host.feed(interrupted(1, 0));
    host.hear(OWNER, stored_at(1, SMALL, &[FIRST]));
    host.sent.clear();
    host.feed(Event::MemberLeft { node: FIRST });
    host.feed(Event::Tick);
    assert!(host.sent.contains(&Message::ObjectLocate { object: object(1) }), "{:?}", host.sent);
    let said = host.hear(OWNER, stored_at(1, SMALL, &[SECOND]));
    assert!(reads_from(&said, SECOND), "{said:?}");
}

/// The owner has computed it anew, and it is small this time.
#[test]
fn a_value_that_its_owner_tells_ends_the_wait_for_its_copy() {
    let mut host = host();
    read(&mut host, 1, SMALL, &[FIRST]);
    host.feed(interrupted(1, 0));
    let state = RemoteState::Inline([7].into());
    let said = host.hear(OWNER, Message::ObjectState { object: object(1), state, nested: Vec::new() });
    assert!(is_told(&said), "{said:?}");
    assert_eq!(host.node.value(object(1)), Some(&Value::Inline([7].into())));
}

/// All transfers are taken, so it has not begun.
#[test]
fn a_value_that_its_owner_tells_ends_the_wait_for_a_turn_as_well() {
    let mut host = host();
    for n in 1..=8 {
        assert!(reads_from(&read(&mut host, n, SMALL, &[SECOND]), SECOND));
    }
    assert!(!reads_from(&read(&mut host, 9, SMALL, &[FIRST]), FIRST));
    let state = RemoteState::Inline([7].into());
    let said = host.hear(OWNER, Message::ObjectState { object: object(9), state, nested: Vec::new() });
    assert!(is_told(&said), "{said:?}");
    let said = host.feed(Event::PullDone { object: object(1) });
    assert!(!reads_from(&said, FIRST), "{said:?}");
}

/// A task of the driver runs on another node, where its value stays: the value, and that node.
fn made_elsewhere(host: &mut Host) -> (ObjectId, NodeId) {
    let (task, resources) = (TaskId::root(JobId(1)).child(40), Resources::cpus(8.0).unwrap());
    let class = TaskClass { resources, ..TaskClass::new(JobId(1), FunctionId(1), "f") };
    host.feed(Event::MemberJoined(Arc::new(member(LARGER, 8.0))));
    host.feed(Event::ClassDefined { client: DRIVER, class: 0, definition: Ok(Arc::new(class)) });
    let (tokens, args) = ([40].into_iter().collect(), TaskArgs::default());
    host.feed(Event::Submitted { client: DRIVER, run: None, class: 0, task, tokens, args });
    let asked = host.sent.iter().find_map(|message| match message {
        Message::LeaseRequest { lease, .. } => Some(*lease),
        _ => None,
    });
    let lease = asked.unwrap();
    host.hear(LARGER, Message::LeaseGranted { lease });
    let output = Output { value: DoneValue::Stored { len: SMALL }, nested: Vec::new() };
    let outcome = Box::new(DoneOutcome::Returned([output].into_iter().collect()));
    host.hear(LARGER, Message::TaskDone { lease, task, attempt: 0, run_ns: 1, outcome });
    (ObjectId::output(task, 0), LARGER)
}

/// The other holder says that its copy is gone, so nobody asks it in vain.
#[test]
fn an_own_value_behind_a_cut_is_neither_lost_nor_freed_when_another_copy_goes() {
    let mut host = host();
    let (object, maker) = made_elsewhere(&mut host);
    host.hear(SECOND, Message::HolderAdded { object });
    let said = host.feed(Event::Fetch { client: DRIVER, token: 40, reference: RefId { object, owner: ME } });
    assert!(reads_from(&said, maker), "{said:?}");
    host.hear(SECOND, Message::HolderRemoved { object });
    let ended = Interrupted { object, from: maker, done_bytes: 0, copy: 0, cause: "cut".to_owned() };
    let said = host.feed(Event::PullInterrupted(ended));
    assert!(!is_told(&said) && !reads_from(&said, SECOND), "{said:?}");
    assert!(!host.sent.contains(&Message::ObjectFree { object }), "{:?}", host.sent);
    assert_eq!(host.node.value(object), Some(&Value::Stored { len: SMALL }));
}

/// A member has this node run a task, and tells where the task's argument lies, which another one owns.
fn pushed_with_hearsay(host: &mut Host) -> Vec<Action> {
    let resources = Resources::cpus(1.0).unwrap();
    let class = Arc::new(TaskClass { resources, ..TaskClass::new(JobId(1), FunctionId(1), "f") });
    let (lease, wanted) = (LeaseId(1), Arc::clone(&class));
    let message =
        Message::LeaseRequest { lease, class: wanted, wait: true, urgency: 0, weight: 100, quota: None };
    host.hear(SECOND, message);
    let ready = host.ready(ClientId(2));
    host.feed(ready);
    let reference = RefId { object: object(1), owner: OWNER };
    let state = RemoteState::Stored { len: SMALL, holders: vec![FIRST] };
    let dependency = Dependency { reference, parameter: 0 };
    let task = PushedTask {
        task: TaskId::root(JobId(1)).child(9),
        attempt: 0,
        class,
        payload: [1].into(),
        dependencies: vec![PushedDependency { dependency, state, nested: Vec::new() }],
        nested: Vec::new(),
        name: None,
    };
    host.hear(SECOND, Message::TaskPush { lease, task: Box::new(task) })
}

#[test]
fn a_run_takes_what_the_owner_tells_instead_of_a_copy_that_its_sender_told() {
    let failure = Arc::new(Failure::new(FailureKind::UserError, "its task has failed"));
    for state in [RemoteState::Inline([7].into()), RemoteState::Failed(failure)] {
        let mut host = host();
        assert!(reads_from(&pushed_with_hearsay(&mut host), FIRST));
        host.feed(interrupted(1, 0));
        let asks = Message::ObjectLocate { object: object(1) };
        assert!(host.sent.contains(&asks), "{:?}", host.sent);
        host.sent.clear();
        let is_failed = matches!(state, RemoteState::Failed(_));
        host.hear(OWNER, Message::ObjectState { object: object(1), state, nested: Vec::new() });
        assert!(!host.sent.contains(&asks), "{:?}", host.sent);
        let given_back = |message: &Message| matches!(message, Message::TaskGiveBack { .. });
        assert!(!host.sent.iter().any(given_back), "{:?}", host.sent);
        let has_failed = host.sent.iter().find_map(|message| match message {
            Message::TaskDone { outcome, .. } => Some(&**outcome),
            _ => None,
        });
        match has_failed {
            Some(DoneOutcome::Failed { failure, .. }) => {
                assert_eq!(failure.kind, FailureKind::DependencyFailed);
                assert_eq!(failure.root().kind, FailureKind::UserError, "the owner's own word: {failure:?}");
            }
            ended => assert!(ended.is_none() && host.runs.len() == 1, "it runs with the value"),
        }
        assert_eq!(has_failed.is_some(), is_failed);
    }
}

/// More reads than there are transfers at a time ask a holder behind a cut, and one is of another holder.
#[test]
fn a_holder_that_does_not_answer_leaves_its_place_to_others() {
    let mut host = host();
    for n in 1..=9 {
        read(&mut host, n, LARGE, &[FIRST]);
    }
    read(&mut host, 10, LARGE, &[SECOND]);
    let is_asked = (0..60).any(|_| {
        let said = pass(&mut host, &[OWNER, SECOND]);
        assert!(!is_told(&said), "{said:?}");
        host.sent.contains(&request(10))
    });
    assert!(is_asked, "it waits for what is behind the cut");
    let said = host.hear(SECOND, Message::ReadReply { object: object(10), turn: Turn::Now });
    assert!(reads_from(&said, SECOND), "{said:?}");
    host.sent.clear();
    let is_asked = (0..60).any(|_| {
        pass(&mut host, &[OWNER, FIRST, SECOND]);
        (1..=9).any(|n| host.sent.contains(&request(n)))
    });
    assert!(is_asked, "the cut is over");
    assert!((1..=9).all(|n| host.node.value(object(n)) == Some(&Value::Stored { len: LARGE })));
}

/// It has a place at the holder for as long as it likes.
#[test]
fn a_reader_that_a_holder_names_and_that_is_not_reached_says_nothing_of_the_holder() {
    let mut host = host();
    read(&mut host, 1, LARGE, &[FIRST]);
    host.hear(FIRST, Message::ReadReply { object: object(1), turn: Turn::At(SECOND) });
    let said = host.hear(SECOND, Message::ReadReply { object: object(1), turn: Turn::Now });
    assert!(reads_from(&said, SECOND), "{said:?}");
    host.sent.clear();
    let (done_bytes, copy, cause) = (100, 0, "cut".to_owned());
    let ended = Interrupted { object: object(1), from: SECOND, done_bytes, copy, cause };
    host.feed(Event::PullInterrupted(ended));
    let again = Message::ReadRequest { object: object(1), sent: false, failed_at: Some(SECOND) };
    assert!(host.sent.contains(&again), "{:?}", host.sent);
    assert!(host.sent.contains(&Message::ReadEnded { object: object(1) }), "{:?}", host.sent);
    let said = host.hear(FIRST, Message::ReadReply { object: object(1), turn: Turn::Now });
    let goes_on =
        |action: &Action| matches!(action, Action::Do(Operation::Pull { from: FIRST, done_bytes: 100, .. }));
    assert!(said.iter().any(goes_on), "{said:?}");
    read(&mut host, 2, LARGE, &[FIRST]);
    host.feed(Event::Tick);
    assert!(host.node.asked_for().any(|asked| asked == (object(2), FIRST)), "the holder is reached");
}

/// It says each time that it has all of the object, and has nothing.
#[test]
fn an_object_is_not_lost_because_a_reader_that_its_holder_names_does_not_have_it() {
    let mut host = host();
    read(&mut host, 1, LARGE, &[FIRST]);
    for _ in 0..3 {
        for _ in 0..4 {
            host.hear(FIRST, Message::ReadReply { object: object(1), turn: Turn::At(SECOND) });
            let said = host.hear(SECOND, Message::ReadReply { object: object(1), turn: Turn::Now });
            assert!(reads_from(&said, SECOND), "{said:?}");
            let (object, cause) = (object(1), "not there".to_owned());
            host.feed(Event::PullFailed { object, from: SECOND, done_bytes: 0, cause });
        }
        host.sent.clear();
        let is_asked_again = (0..100).any(|_| {
            pass(&mut host, &[OWNER, FIRST, SECOND]);
            host.sent.contains(&request(1))
        });
        assert!(is_asked_again);
    }
    assert_eq!(host.node.value(object(1)), Some(&Value::Stored { len: LARGE }));
}

/// A value that was put, as all of these are, is the same on all its holders.
#[test]
fn what_has_come_before_a_cut_is_kept_for_the_next_try_at_once() {
    let mut host = host();
    read(&mut host, 1, SMALL, &[FIRST]);
    let said = host.feed(interrupted(1, 48));
    let goes_on =
        |action: &Action| matches!(action, Action::Do(Operation::Pull { from: FIRST, done_bytes: 48, .. }));
    assert!(said.iter().any(goes_on), "{said:?}");
    let said = host.feed(interrupted(1, 48));
    assert!(!reads_from(&said, FIRST), "nothing has come this time: {said:?}");
}

/// The link to its holder breaks each time, and each time a part more has come.
#[test]
fn a_result_goes_on_with_the_copy_of_which_it_has_a_part() {
    let mut host = host();
    let object = ObjectId::output(TaskId::root(JobId(1)).child(1), 0);
    let reference = RefId { object, owner: OWNER };
    host.feed(Event::Held { client: DRIVER, token: 1, reference });
    host.feed(Event::Fetch { client: DRIVER, token: 1, reference });
    let state = RemoteState::Stored { len: SMALL, holders: vec![FIRST, SECOND] };
    let told = host.hear(OWNER, Message::ObjectState { object, state, nested: Vec::new() });
    let (first, other) = if reads_from(&told, FIRST) { (FIRST, SECOND) } else { (SECOND, FIRST) };
    assert!(reads_from(&told, first), "{told:?}");
    let mut broken = |done_bytes: u64, copy: u64| {
        let cause = "cut".to_owned();
        host.feed(Event::PullInterrupted(Interrupted { object, from: first, done_bytes, copy, cause }))
    };
    let goes_on = |said: &[Action], node: NodeId, done: u64, number: u64| {
        said.iter().any(|action| {
            matches!(action, Action::Do(Operation::Pull { from, done_bytes, copy, .. })
                if (*from, *done_bytes, *copy) == (node, done, number))
        })
    };
    for done_bytes in [16, 32, 48] {
        let said = broken(done_bytes, 5);
        assert!(goes_on(&said, first, done_bytes, 5), "{said:?}");
    }
    let said = broken(48, 5);
    assert!(goes_on(&said, other, 0, 0), "nothing came, and that one has another copy: {said:?}");
}

/// Its task ran again, for another of its values, and the transfer that was under way went on.
#[test]
fn an_own_value_that_is_written_here_while_it_is_read_is_not_lost_with_its_other_copy() {
    let mut host = host();
    let (object, maker) = made_elsewhere(&mut host);
    let said = host.feed(Event::Fetch { client: DRIVER, token: 40, reference: RefId { object, owner: ME } });
    assert!(reads_from(&said, maker), "{said:?}");
    let fails = || Event::PullFailed { object, from: maker, done_bytes: 0, cause: "not there".to_owned() };
    for _ in 0..2 {
        let said = host.feed(fails());
        assert!(reads_from(&said, maker), "{said:?}");
    }
    let said = host.feed(Event::RegionWanted { client: DRIVER, request: 1, bytes: 4_096 });
    let granted = said.iter().find_map(|action| match action {
        Action::Tell { record: Record::Region { region: Ok(region), .. }, .. } => Some(*region),
        _ => None,
    });
    let value = OutputValue::Written(Extent { len: SMALL, ..granted.unwrap() });
    let (nested, site) = (Vec::new(), "".into());
    host.feed(Event::Put { client: DRIVER, token: 41, object, value, nested, site });
    let said = host.feed(fails());
    assert!(is_told(&said), "{said:?}");
    assert_eq!(host.node.value(object), Some(&Value::Stored { len: SMALL }));
    assert!(host.node.local_extent(object).is_some());
}
