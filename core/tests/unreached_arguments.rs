//! Tasks whose argument lies on a node that lives and is not reached: they are placed anew.

// A test may panic where it fails, also in shared functions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code, reason = "not every test uses all of it")]
mod host;

use host::{Host, config, member};
use std::sync::Arc;
use tharsis_core::event::{OutputValue, TaskOutcome};
use tharsis_core::pull::Interrupted;
use tharsis_core::{Action, Event, MS, Operation, Value};
use tharsis_types::peer::{DoneOutcome, DoneValue, Message, PushedDependency, PushedTask, RemoteState};
use tharsis_types::task::Output;
use tharsis_types::{
    ClientId, Dependency, FailureKind, FunctionId, JobId, LeaseId, NodeId, ObjectId, RefId, Resources,
    TaskArgs, TaskClass, TaskId,
};

const ME: NodeId = NodeId(1);
const OWNER: NodeId = NodeId(2);
const HOLDER: NodeId = NodeId(3);
const OTHER: NodeId = NodeId(4);
const THIRD: NodeId = NodeId(5);
const JOB: JobId = JobId(1);
const DRIVER: ClientId = ClientId(1);
const LEN: u64 = 64;

/// Times that a run waits for the next try before it goes back.
const TRIES: usize = 4;

fn task(n: u64) -> TaskId {
    TaskId::root(JOB).child(n)
}

/// The object of the owner that only the holder has.
fn argument() -> RefId {
    RefId { object: ObjectId::put(task(100), 0), owner: OWNER }
}

fn class(cpus: f64, priority: i32, timeout_ms: u64) -> Arc<TaskClass> {
    let resources = Resources::cpus(cpus).unwrap();
    Arc::new(TaskClass { resources, priority, timeout_ms, ..TaskClass::new(JOB, FunctionId(1), "f") })
}

fn submitted(n: u64, class: u32, arguments: impl IntoIterator<Item = RefId>) -> Event {
    let numbered = (0..).zip(arguments);
    let dependencies = numbered.map(|(parameter, reference)| Dependency { reference, parameter }).collect();
    let args = TaskArgs { payload: [1].into(), dependencies, ..TaskArgs::default() };
    let (task, tokens) = (task(n), [n].into_iter().collect());
    Event::Submitted { client: DRIVER, run: None, class, task, tokens, args }
}

fn is_read(said: &[Action]) -> bool {
    said.iter().any(|action| matches!(action, Action::Do(Operation::Pull { from: HOLDER, .. })))
}

/// Time passes, and the owner and the holder live.
fn pass(host: &mut Host) -> Vec<Action> {
    let load = || Message::LoadReport { free: Resources::default(), waiting: 0 };
    let mut said: Vec<_> = [OWNER, HOLDER].iter().flat_map(|node| host.hear(*node, load())).collect();
    said.extend(host.feed(Event::Tick));
    said
}

fn interrupt(host: &mut Host) {
    let (object, cause) = (argument().object, "cut".to_owned());
    let ended = Interrupted { object, from: HOLDER, done_bytes: 0, copy: 0, cause };
    host.feed(Event::PullInterrupted(ended));
}

/// The times that pass until the argument is read again.
fn try_again(host: &mut Host) -> usize {
    (0..1_000).position(|_| is_read(&pass(host))).unwrap()
}

fn failure(host: &Host, n: u64) -> Option<FailureKind> {
    match host.node.value(ObjectId::output(task(n), 0)) {
        Some(Value::Failed(failure)) => Some(failure.kind),
        _ => None,
    }
}

/// Another object of the owner that only the holder has.
fn second() -> RefId {
    RefId { object: ObjectId::put(task(100), 1), owner: OWNER }
}

/// A node with a driver; the owner of the argument and its holder run nothing.
fn alone() -> Host {
    let mut host = Host::new(config(member(ME, 4.0)), MS, 10 * MS);
    for node in [OWNER, HOLDER] {
        host.feed(Event::MemberJoined(Arc::new(member(node, 0.0))));
    }
    host.feed(Event::DriverJoined { client: DRIVER, job: JOB, weight: 100, quota: None });
    host
}

/// A task of the driver takes all CPUs of the node, and reads its argument.
fn reading(timeout_ms: u64) -> Host {
    let mut host = alone();
    let definition = Ok(class(4.0, 0, timeout_ms));
    host.feed(Event::ClassDefined { client: DRIVER, class: 0, definition });
    host.feed(Event::Held { client: DRIVER, token: 100, reference: argument() });
    host.feed(submitted(1, 0, Some(argument())));
    let state = RemoteState::Stored { len: LEN, holders: vec![HOLDER] };
    host.hear(OWNER, Message::ObjectState { object: argument().object, state, nested: Vec::new() });
    let ready = host.ready(ClientId(2));
    let said = host.feed(ready);
    assert!(is_read(&said), "{said:?}");
    host
}

#[test]
fn a_task_behind_a_cut_leaves_its_place_to_others_and_runs_once_the_way_is_back() {
    let mut host = reading(0);
    host.feed(submitted(2, 0, None));
    for _ in 0..TRIES {
        interrupt(&mut host);
        assert!(8 <= try_again(&mut host), "250 ms are 8 times");
        assert!(host.runs.is_empty(), "{:?}", host.runs);
    }
    interrupt(&mut host);
    assert!(host.runs.contains_key(&task(2)), "it waits behind the other one");
    let output = Output { value: OutputValue::Inline([7].into()), nested: Vec::new() };
    let ended = host.finished(task(2), TaskOutcome::Returned([output].into_iter().collect()));
    host.feed(ended);
    for _ in 0..2 * TRIES {
        assert!(8 <= try_again(&mut host), "no other node can run it, and it comes back after pauses");
        interrupt(&mut host);
    }
    try_again(&mut host);
    host.feed(Event::PullDone { object: argument().object });
    assert!(host.runs.contains_key(&task(1)), "the way is back");
}

#[test]
fn a_timeout_ends_a_task_while_no_holder_of_its_argument_is_reached() {
    let mut host = reading(1_000);
    for _ in 0..2 {
        interrupt(&mut host);
        try_again(&mut host);
    }
    interrupt(&mut host);
    let ends = (0..30).any(|_| {
        let said = pass(&mut host);
        assert!(!is_read(&said), "{said:?}");
        failure(&host, 1).is_some()
    });
    assert!(ends);
    assert_eq!(failure(&host, 1), Some(FailureKind::TimedOut));
}

#[test]
fn a_timeout_does_not_end_a_task_whose_argument_comes_again() {
    let mut host = reading(1_000);
    interrupt(&mut host);
    try_again(&mut host);
    (0..100).for_each(|_| drop(pass(&mut host)));
    assert_eq!(failure(&host, 1), None);
    host.feed(Event::PullDone { object: argument().object });
    assert!(host.runs.contains_key(&task(1)));
}

#[test]
fn the_time_of_a_timeout_begins_anew_when_one_of_the_arguments_comes() {
    let mut host = alone();
    let definition = Ok(class(4.0, 0, 1_000));
    host.feed(Event::ClassDefined { client: DRIVER, class: 0, definition });
    for (token, reference) in [(100, argument()), (101, second())] {
        host.feed(Event::Held { client: DRIVER, token, reference });
    }
    host.feed(submitted(1, 0, [argument(), second()]));
    for reference in [argument(), second()] {
        let state = RemoteState::Stored { len: LEN, holders: vec![HOLDER] };
        host.hear(OWNER, Message::ObjectState { object: reference.object, state, nested: Vec::new() });
    }
    let ready = host.ready(ClientId(2));
    assert!(is_read(&host.feed(ready)));
    interrupt(&mut host);
    try_again(&mut host);
    host.feed(Event::PullDone { object: second().object });
    (0..20).for_each(|_| drop(pass(&mut host)));
    interrupt(&mut host);
    // More than a second after the first interruption, and 250 ms after this one.
    assert!(8 <= try_again(&mut host));
    assert_eq!(failure(&host, 1), None);
    host.feed(Event::PullDone { object: argument().object });
    assert!(host.runs.contains_key(&task(1)));
}

#[test]
fn a_run_of_another_node_goes_back_and_its_lease_is_free() {
    let (mut host, lease) = (alone(), LeaseId(1));
    let wanted = class(4.0, 0, 0);
    let class = Arc::clone(&wanted);
    let asks = Message::LeaseRequest { lease, class, wait: true, urgency: 0, weight: 100, quota: None };
    host.hear(OWNER, asks);
    let ready = host.ready(ClientId(2));
    host.feed(ready);
    let state = RemoteState::Stored { len: LEN, holders: vec![HOLDER] };
    let dependency = Dependency { reference: argument(), parameter: 0 };
    let pushed = PushedTask {
        task: task(1),
        attempt: 0,
        class: wanted,
        payload: [1].into(),
        dependencies: vec![PushedDependency { dependency, state, nested: Vec::new() }],
        nested: Vec::new(),
        name: None,
    };
    assert!(is_read(&host.hear(OWNER, Message::TaskPush { lease, task: Box::new(pushed) })));
    let back = Message::TaskGiveBack { lease, tasks: vec![(task(1), 0)], started: false };
    for _ in 0..TRIES {
        interrupt(&mut host);
        try_again(&mut host);
        assert!(!host.sent.contains(&back));
    }
    interrupt(&mut host);
    let at = |wanted: &Message| host.sent.iter().position(|message| message == wanted).unwrap();
    assert!(at(&Message::CopiesUnreadable { object: argument().object }) < at(&back), "{:?}", host.sent);
    host.hear(OWNER, Message::LeaseReturned { lease });
    let left = host.node.leftovers();
    assert!(!left.iter().any(|(table, _)| ["runs", "leases given"].contains(table)), "{left:?}");
}

/// The leases that were asked for, and the nodes that were asked.
fn asked(said: &[Action]) -> Vec<(NodeId, LeaseId)> {
    let mut asked = Vec::new();
    for action in said {
        let Action::Do(Operation::Send { to, packet }) = action else { continue };
        asked.extend(packet.messages.iter().filter_map(|message| match message {
            Message::LeaseRequest { lease, .. } => Some((*to, *lease)),
            _ => None,
        }));
    }
    asked
}

fn is_pushed(host: &Host) -> bool {
    host.sent.iter().any(|message| matches!(message, Message::TaskPush { .. }))
}

/// A task of the driver was sent to another node than the one that has its argument: the lease, and the
/// argument.
fn sent_elsewhere(timeout_ms: u64) -> (Host, LeaseId, ObjectId) {
    let mut host = Host::new(config(member(ME, 1.0)), MS, 100 * MS);
    for node in [HOLDER, OTHER, THIRD] {
        host.feed(Event::MemberJoined(Arc::new(member(node, 2.0))));
    }
    host.feed(Event::DriverJoined { client: DRIVER, job: JOB, weight: 100, quota: None });
    for (number, priority) in [(0, 0), (1, 1)] {
        let definition = Ok(class(2.0, priority, timeout_ms));
        host.feed(Event::ClassDefined { client: DRIVER, class: number, definition });
    }
    let makes = asked(&host.feed(submitted(1, 0, None)));
    let [(HOLDER, lease)] = makes[..] else { panic!("{makes:?}") };
    host.hear(HOLDER, Message::LeaseGranted { lease });
    let output = Output { value: DoneValue::Stored { len: LEN }, nested: Vec::new() };
    let outcome = Box::new(DoneOutcome::Returned([output].into_iter().collect()));
    host.hear(HOLDER, Message::TaskDone { lease, task: task(1), attempt: 0, run_ns: 1, outcome });
    let reference = RefId { object: ObjectId::output(task(1), 0), owner: ME };
    let takes = asked(&host.feed(submitted(2, 1, Some(reference))));
    let [(OTHER, lease)] = takes[..] else { panic!("{takes:?}") };
    host.hear(OTHER, Message::LeaseGranted { lease });
    (host, lease, reference.object)
}

fn has_free(host: &mut Host, node: NodeId, cpus: f64) {
    host.hear(node, Message::LoadReport { free: Resources::cpus(cpus).unwrap(), waiting: 0 });
}

fn comes_back(host: &mut Host, lease: LeaseId, object: ObjectId) -> Vec<(NodeId, LeaseId)> {
    host.hear(OTHER, Message::CopiesUnreadable { object });
    host.sent.clear();
    asked(&host.hear(OTHER, Message::TaskGiveBack { lease, tasks: vec![(task(2), 0)], started: false }))
}

#[test]
fn a_task_comes_to_another_node_than_the_one_that_does_not_reach_its_argument() {
    for (of_holder, of_third, expected) in [(2.0, 2.0, HOLDER), (0.0, 2.0, THIRD)] {
        let (mut host, lease, object) = sent_elsewhere(0);
        has_free(&mut host, HOLDER, of_holder);
        has_free(&mut host, THIRD, of_third);
        let asked = comes_back(&mut host, lease, object);
        let [(node, lease)] = asked[..] else { panic!("{asked:?}") };
        assert_eq!(node, expected);
        assert!(!is_pushed(&host));
        host.hear(node, Message::LeaseGranted { lease });
        assert!(is_pushed(&host), "{:?}", host.sent);
    }
}

#[test]
fn a_task_comes_to_the_same_node_again_if_no_other_has_room_and_its_timeout_goes_on() {
    let (mut host, lease, object) = sent_elsewhere(1_000);
    has_free(&mut host, HOLDER, 0.0);
    has_free(&mut host, THIRD, 0.0);
    assert!(comes_back(&mut host, lease, object).is_empty());
    assert!(is_pushed(&host), "{:?}", host.sent);
    assert_eq!(failure(&host, 2), None);
    (0..10).for_each(|_| drop(host.feed(Event::Tick)));
    comes_back(&mut host, lease, object);
    assert!(!is_pushed(&host));
    assert_eq!(failure(&host, 2), Some(FailureKind::TimedOut));
}

/// The only lease that is asked for, of this node, which grants it.
fn granted(host: &mut Host, node: NodeId, event: Event) -> LeaseId {
    let asked = asked(&host.feed(event));
    let [(of, lease)] = asked[..] else { panic!("{asked:?}") };
    assert_eq!(of, node);
    host.hear(node, Message::LeaseGranted { lease });
    lease
}

fn done(host: &mut Host, node: NodeId, lease: LeaseId, n: u64) {
    let output = Output { value: DoneValue::Stored { len: LEN }, nested: Vec::new() };
    let outcome = Box::new(DoneOutcome::Returned([output].into_iter().collect()));
    host.hear(node, Message::TaskDone { lease, task: task(n), attempt: 0, run_ns: 1_000, outcome });
}

/// The tasks that were sent to other nodes since the last look.
fn pushed(host: &mut Host) -> Vec<TaskId> {
    let task = |message| match message {
        Message::TaskPush { task, .. } => Some(task.task),
        _ => None,
    };
    host.sent.drain(..).filter_map(task).collect()
}

/// Other nodes have no more than one of them at a time, however brief they are.
#[test]
fn a_task_without_retries_waits_for_another_node_than_the_one_that_does_not_reach_its_argument() {
    let mut host = Host::new(config(member(ME, 1.0)), MS, MS);
    for node in [HOLDER, OTHER, THIRD] {
        host.feed(Event::MemberJoined(Arc::new(member(node, 2.0))));
    }
    host.feed(Event::DriverJoined { client: DRIVER, job: JOB, weight: 100, quota: None });
    for (number, priority) in [(0, 0), (1, 1)] {
        let definition = class(2.0, priority, 0);
        assert_eq!(definition.max_retries, 0);
        host.feed(Event::ClassDefined { client: DRIVER, class: number, definition: Ok(definition) });
    }
    let lease = granted(&mut host, HOLDER, submitted(1, 0, None));
    done(&mut host, HOLDER, lease, 1);
    let cut_off = granted(&mut host, OTHER, submitted(2, 1, None));
    done(&mut host, OTHER, cut_off, 2);
    let reference = RefId { object: ObjectId::output(task(1), 0), owner: ME };
    assert!(asked(&host.feed(submitted(3, 1, Some(reference)))).is_empty());
    granted(&mut host, THIRD, submitted(4, 1, None));
    let next = asked(&host.feed(submitted(5, 1, None)));
    let [(HOLDER, lease)] = next[..] else { panic!("{next:?}") };
    host.hear(OTHER, Message::CopiesUnreadable { object: reference.object });
    let tasks = vec![(task(3), 0)];
    host.hear(OTHER, Message::TaskGiveBack { lease: cut_off, tasks, started: false });
    assert_eq!(pushed(&mut host).last(), Some(&task(5)));
    done(&mut host, OTHER, cut_off, 5);
    assert_eq!(pushed(&mut host), []);
    host.hear(HOLDER, Message::LeaseGranted { lease });
    assert_eq!(pushed(&mut host), [task(3)]);
}
