//! Tests of `convert`: every message survives the wire, and no bytes make it panic.

use super::*;
use proptest::prelude::*;
use tharsis_types::peer::Turn;
use tharsis_types::peer::{DrainMessage, QuotaMessage};
use tharsis_types::task::{CallRules, LabelTerm, Role};
use tharsis_types::{FunctionId, JobId, JobQuota, ObjectId, Placement, Resources, RetryOn, TaskId};

fn task_id(n: u64) -> TaskId {
    TaskId::root(JobId(7)).child(n)
}

fn reference_to(n: u64) -> RefId {
    RefId { object: ObjectId::output(task_id(n), 3), owner: NodeId(n + 1) }
}

fn class(name: &str, placement: Placement, retry_on: RetryOn) -> Arc<TaskClass> {
    let mut resources = Resources::cpus(1.5).unwrap();
    resources.set_custom("tpu", 0.5).unwrap();
    Arc::new(TaskClass {
        job: JobId(7),
        function: FunctionId(u64::MAX),
        signature: 12,
        function_name: "crate::path::f".into(),
        name: name.into(),
        call_site: "main.rs:1".into(),
        resources,
        priority: -3,
        returns: 2,
        max_retries: -1,
        retry_on,
        timeout_ms: 1,
        max_calls: 2,
        pure: true,
        placement,
        role: Role::Method,
        calls: CallRules { group: 3, concurrent: true, limit: 6, out_of_order: true, max_pending: 5 },
        detached: true,
        shared_process: true,
    })
}

fn deep_failure(depth: usize) -> Failure {
    let mut root = Failure::new(FailureKind::UserError, "root").at(Origin {
        task_name: "t".into(),
        task: Some(task_id(1)),
        call_site: "here".into(),
        node: Some(NodeId(4)),
        pid: Some(5),
        attempt: 6,
    });
    root.user = Some(UserError { type_name: "E".into(), payload: vec![1, 2] });
    let link = |n: usize| Failure::new(FailureKind::DependencyFailed, n.to_string());
    (0..depth).fold(root, |cause, n| link(n).with_executed(Executed::Unknown).because(cause))
}

/// One message of each kind, and several of those that have choices inside.
fn all_messages() -> Vec<Message> {
    let (lease, object, task) = (LeaseId(9), reference_to(1).object, task_id(2));
    let labels = vec![
        vec![LabelTerm::In("a".into(), vec!["b".into(), "c".into()]), LabelTerm::Exists("d".into())],
        vec![LabelTerm::NotIn("e".into(), Vec::new()), LabelTerm::DoesNotExist("f".into())],
    ];
    let classes = [
        class("one", Placement::Default, RetryOn::Nothing),
        class("two", Placement::Spread, RetryOn::Everything),
        class("three", Placement::Node { node: NodeId(3), soft: true }, RetryOn::Types(vec!["E".into()])),
        class("four", Placement::Labels(labels), RetryOn::Types(Vec::new())),
        class("five", Placement::Group { group: task, bundle: Some(3) }, RetryOn::Nothing),
        class("six", Placement::Group { group: task, bundle: None }, RetryOn::Nothing),
        class("seven", Placement::Bundle { group: task, index: 2 }, RetryOn::Nothing),
    ];
    let inline = SmallBytes::from([1, 2, 3]);
    let states = [
        RemoteState::Failed(Arc::new(deep_failure(3))),
        RemoteState::Freed,
        RemoteState::Inline(inline.clone()),
        RemoteState::Stored { len: 1 << 40, holders: vec![NodeId(1), NodeId(2)] },
    ];
    let pushed = PushedTask {
        task,
        attempt: 4,
        class: classes[0].clone(),
        payload: inline.clone(),
        dependencies: states
            .iter()
            .map(|state| PushedDependency {
                dependency: Dependency { reference: reference_to(5), parameter: Dependency::WHOLE },
                state: state.clone(),
                nested: vec![reference_to(6)],
            })
            .collect(),
        nested: vec![reference_to(7), reference_to(8)],
        name: Some("part 7".into()),
    };
    let returned = DoneOutcome::Returned(
        [
            Output { value: DoneValue::Inline(inline), nested: vec![reference_to(1)] },
            Output { value: DoneValue::Stored { len: 77 }, nested: Vec::new() },
        ]
        .into_iter()
        .collect(),
    );
    let failed = DoneOutcome::Failed { error_type: "E".into(), failure: Arc::new(deep_failure(1)) };
    let mut all = vec![
        Message::ActorAttach { lease, actor: task },
        Message::ActorCheckpoint(Box::new(ActorSnapshot {
            lease,
            actor: task,
            attempt: 3,
            object,
            snapshot: Output { value: DoneValue::Stored { len: 9 }, nested: vec![reference_to(2)] },
        })),
        Message::ActorCheckpointed { object, refusal: None },
        Message::ActorCheckpointed { object, refusal: Some(Arc::new(deep_failure(2))) },
        Message::BorrowAdded { reference: reference_to(1) },
        Message::BorrowReleased { object, count: 3 },
        Message::CopiesUnreadable { object },
        Message::Drain(DrainMessage::Begun),
        Message::Drain(DrainMessage::CopyKept { object }),
        Message::Drain(DrainMessage::CopyLeaving { object }),
        Message::Drain(DrainMessage::CopyMove {
            reference: reference_to(4),
            len: 1 << 40,
            from: NodeId(2),
            others: vec![NodeId(3), NodeId(4)],
        }),
        Message::HolderAdded { object },
        Message::HolderRemoved { object },
        Message::JobEnded { job: JobId(7) },
        Message::LeaseDenied { lease, free: Resources::cpus(0.25).unwrap() },
        Message::LeaseFailed { lease, failure: Arc::new(deep_failure(1)) },
        Message::LeaseGranted { lease },
        Message::LeaseRecall { lease },
        Message::LeaseReturned { lease },
        Message::LeaseRevoked { lease },
        Message::LoadReport { free: Resources::default(), waiting: 3 },
        Message::ObjectFree { object },
        Message::ObjectLocate { object },
        Message::Quota(QuotaMessage::Granted { job: JobId(7), amount: Resources::cpus(1.5).unwrap() }),
        Message::Quota(QuotaMessage::Recalled {
            job: JobId(7),
            amount: Resources::cpus(1.0).unwrap(),
            in_use: true,
            keep: false,
        }),
        Message::Quota(QuotaMessage::Returned { job: JobId(7), amount: Resources::default() }),
        Message::Quota(QuotaMessage::Wanted { job: JobId(7), amount: Resources::default() }),
        Message::ReadEnded { object },
        Message::ReadReply { object, turn: Turn::Now },
        Message::ReadReply { object, turn: Turn::At(NodeId(3)) },
        Message::ReadReply { object, turn: Turn::Never },
        Message::ReadRequest { object, sent: true, failed_at: None },
        Message::ReadRequest { object, sent: false, failed_at: Some(NodeId(4)) },
        Message::TaskCancel { task, force: true, recursive: true },
        Message::ActorRestart { actor: task },
        Message::TaskDone { lease, task, attempt: 1, run_ns: 2, outcome: Box::new(returned) },
        Message::TaskDone { lease, task, attempt: 1, run_ns: 2, outcome: Box::new(failed) },
        Message::TaskGiveBack { lease, tasks: vec![(task, 1), (task_id(3), 0)], started: false },
        Message::TaskGiveBack { lease, tasks: vec![(task, 2)], started: true },
        Message::TaskPush { lease, task: Box::new(pushed) },
        Message::TaskStealBack { lease },
        Message::LeaseRaise { lease, urgency: i32::MIN },
    ];
    all.extend(classes.into_iter().map(|class| Message::LeaseRequest {
        lease,
        class,
        wait: true,
        urgency: -7,
        weight: 250,
        quota: Some(Arc::new(JobQuota { home: NodeId(3), quota: "cpus=0,licences=2".parse().unwrap() })),
    }));
    all.extend(states.into_iter().map(|state| Message::ObjectState {
        object,
        state,
        nested: vec![reference_to(2)],
    }));
    all
}

fn over_the_wire(packet: &wire::Packet) -> wire::Packet {
    wire::Packet::decode(packet.encode_to_vec().as_slice()).unwrap()
}

fn only_packet(packet: &Packet) -> wire::Packet {
    let mut parts = encode(NodeId(1), NodeId(2), packet);
    assert_eq!(parts.len(), 1);
    parts.remove(0)
}

#[test]
fn every_message_survives_the_wire_and_classes_are_sent_once() {
    let packet = Packet::new(40, 12, all_messages());
    let sent = only_packet(&packet);
    assert_eq!(sent.classes.len(), 7, "the task and the first request share one");
    let received = decode(over_the_wire(&sent)).unwrap();
    assert_eq!(received, Received { from: NodeId(1), to: NodeId(2), packet, fault: None });
}

#[test]
fn long_packets_are_split_and_keep_their_numbers() {
    let state = RemoteState::Inline(vec![7; INLINE_BYTES_MAX].into());
    let each =
        |n| Message::ObjectState { object: reference_to(n).object, state: state.clone(), nested: Vec::new() };
    let messages: Vec<_> = (0..3000).map(each).collect();
    let parts = encode(NodeId(1), NodeId(2), &Packet::new(5, 1, messages.clone()));
    assert!(1 < parts.len() && parts.iter().all(|p| p.encoded_len() < 2 * SPLIT_BYTES));
    let mut next = 5;
    let mut all = Vec::new();
    for part in parts {
        let packet = decode(part).unwrap().packet;
        assert_eq!((packet.first, packet.acknowledged), (next, 1));
        next += packet.messages.len() as u64;
        all.extend(packet.messages);
    }
    assert_eq!(all, messages);
}

#[test]
fn a_long_chain_of_causes_keeps_its_ends() {
    let message = Message::ObjectState {
        object: reference_to(1).object,
        state: RemoteState::Failed(Arc::new(deep_failure(500))),
        nested: Vec::new(),
    };
    let sent = only_packet(&Packet::new(0, 0, vec![message]));
    let received = decode(over_the_wire(&sent)).unwrap();
    let Message::ObjectState { state: RemoteState::Failed(failure), .. } = &received.packet.messages[0]
    else {
        panic!("another message");
    };
    assert_eq!((failure.message.as_str(), failure.root().message.as_str()), ("499", "root"));
    assert_eq!(**failure, deep_failure(500), "with the number of those that are left out");
}

#[test]
fn bad_fields_are_named() {
    let good = only_packet(&Packet::new(0, 0, Vec::new()));
    let with = |kind| wire::Packet { messages: vec![wire::Message { kind }], ..good.clone() };
    let short = Bytes::from_static(&[0; 19]);
    let nothing = Bytes::from_static(&[0; 20]);
    let lease_request =
        |class| Some(Kind::LeaseRequest(wire::LeaseRequest { lease: 1, class, ..Default::default() }));
    let no_numbers =
        wire::Packet { first: u64::MAX, ..with(Some(Kind::LeaseRecall(wire::LeaseRecall { lease: 1 }))) };
    for (packet, field) in [
        (wire::Packet { from_node: 0, ..good.clone() }, "from_node"),
        (wire::Packet { to_node: 0, ..good.clone() }, "to_node"),
        (no_numbers, "first"),
    ] {
        assert_eq!(decode(packet).unwrap_err().field, field);
    }
    let cases = [
        (with(None), "messages.kind"),
        (with(Some(Kind::HolderAdded(wire::HolderAdded { object: short }))), "messages.holder_added.object"),
        (
            with(Some(Kind::HolderAdded(wire::HolderAdded { object: nothing }))),
            "messages.holder_added.object",
        ),
        (with(Some(Kind::LoadReport(wire::LoadReport::default()))), "messages.load_report.free"),
        (with(Some(Kind::TaskDone(wire::TaskDone::default()))), "messages.task_done.outcome"),
        (with(Some(Kind::JobEnded(wire::JobEnded { job: 0 }))), "messages.job_ended.job"),
        (with(lease_request(1)), "messages.lease_request.class"),
    ];
    for (packet, field) in cases {
        assert_eq!(fault_of(packet).field, field);
    }
}

/// The fault of the only message of a packet, which is taken nevertheless.
fn fault_of(packet: wire::Packet) -> BadMessage {
    let received = decode(packet).unwrap();
    assert_eq!(received.packet.messages.len(), 1);
    received.fault.unwrap()
}

/// A packet with a request for a lease for a class.
fn request_for(class: wire::TaskClass) -> wire::Packet {
    let request = wire::LeaseRequest { lease: 1, ..Default::default() };
    wire::Packet {
        classes: vec![class],
        messages: vec![wire::Message { kind: Some(Kind::LeaseRequest(request)) }],
        ..hello(NodeId(1), NodeId(2))
    }
}

/// Messages of a node of another version, or of a hostile one, are taken, so that those behind them pass;
/// whoever waits for one hears a failure.
#[test]
fn messages_that_cannot_be_read_are_taken_and_answered() {
    let mut sent = only_packet(&Packet::new(40, 12, all_messages()));
    sent.classes.iter_mut().for_each(|class| class.name = "a line\n".into());
    let count = sent.messages.len();
    let received = decode(over_the_wire(&sent)).unwrap();
    assert_eq!((received.packet.first, received.packet.messages.len()), (40, count));
    let fault = received.fault.unwrap().to_string();
    assert!(fault.contains("name: \"a line\\n\" has control characters"), "{fault}");
    let mut answered = (0, 0);
    for message in received.packet.messages {
        let Message::Unreadable { answer } = message else { continue };
        match *answer.unwrap() {
            Message::LeaseFailed { lease: LeaseId(9), failure } => {
                assert_eq!(failure.kind, FailureKind::InvalidArgument);
                answered.0 += 1;
            }
            Message::TaskDone { lease: LeaseId(9), task, attempt: 4, outcome, .. } => {
                assert!(task == task_id(2) && matches!(*outcome, DoneOutcome::Failed { .. }));
                answered.1 += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(answered, (7, 1));

    let (task, object) = (task_bytes(&task_id(2)), bytes_of(&reference_to(1).object));
    let kinds = [
        Some(Kind::TaskDone(wire::TaskDone { lease: 9, task, ..Default::default() })),
        Some(Kind::ObjectState(wire::ObjectState { object, ..Default::default() })),
        Some(Kind::LeaseFailed(wire::LeaseFailed { lease: 9, failure: None })),
        Some(Kind::LeaseDenied(wire::LeaseDenied { lease: 9, free: None })),
        None,
    ];
    let messages = kinds.map(|kind| wire::Message { kind }).to_vec();
    let received = decode(wire::Packet { messages, ..hello(NodeId(1), NodeId(2)) }).unwrap();
    assert!(
        matches!(
            &received.packet.messages[..],
            [
                Message::TaskDone { .. },
                Message::ObjectState { state: RemoteState::Failed(_), .. },
                Message::LeaseFailed { .. },
                Message::LeaseDenied { .. },
                Message::Unreadable { answer: None },
            ]
        ),
        "{received:?}"
    );
}

#[test]
fn ids_of_another_length_are_refused() {
    let good = only_packet(&Packet::new(0, 0, Vec::new()));
    for len in [0, 15, 17, 1 << 20] {
        let task = Bytes::from(vec![1; len]);
        let push = wire::TaskPush { task: task.clone(), ..wire::TaskPush::default() };
        let kinds = [
            (
                Kind::TaskCancel(wire::TaskCancel { task, force: false, recursive: false }),
                "messages.task_cancel.task",
            ),
            (Kind::TaskPush(push), "messages.task_push.task"),
        ];
        for (kind, field) in kinds {
            let packet = wire::Packet { messages: vec![wire::Message { kind: Some(kind) }], ..good.clone() };
            let bad = fault_of(packet);
            assert_eq!(bad.field, field);
            assert!(bad.to_string().contains(&format!("has {len} bytes and must have 16")), "{bad}");
        }
    }
}

#[test]
fn amounts_names_and_counts_above_the_limits_are_refused() {
    let class = || wire_class(&class("c", Placement::Spread, RetryOn::Nothing));
    let with = |resources| wire::TaskClass { resources: Some(resources), ..class() };
    let custom = |names: Vec<String>| wire::Resources {
        custom_units: names.into_iter().map(|name| (name, 1)).collect(),
        ..wire::Resources::default()
    };
    // Amounts are whole units, so there is none below zero and none that is not a number; the largest that a
    // client of another kind could make of infinity is this one.
    let endless = wire::Resources { cpu_units: u64::MAX, ..wire::Resources::default() };
    let many = custom((0..10_000).map(|n| format!("r{n}")).collect());
    let cases = [
        (with(endless), "resources", "is not a number from 0 to"),
        (with(custom(vec!["a\nb".into()])), "resources", "printable"),
        (with(custom(vec!["x".repeat(10 << 10)])), "resources", "printable"),
        (with(many), "resources", "the limit is 256"),
        (wire::TaskClass { num_returns: 1 << 31, ..class() }, "num_returns", "is not from 1 to"),
        (wire::TaskClass { num_returns: 0, ..class() }, "num_returns", "is not from 1 to"),
        (wire::TaskClass { max_retries: -5, ..class() }, "max_retries", "is less than -1"),
        (wire::TaskClass { job: 0, ..class() }, "job", "missing"),
    ];
    for (class, field, problem) in cases {
        let bad = fault_of(request_for(class));
        assert_eq!(bad.field, format!("messages.lease_request.class.{field}"));
        assert!(bad.to_string().contains(problem) && bad.to_string().len() < 1000, "{bad}");
    }
}

/// No message of ours contains itself; what can be nested without end are groups of a field that we do not
/// know.
#[test]
fn groups_nested_ten_thousand_deep_are_refused_by_their_depth() {
    let start_group_100 = [0xa3, 0x06];
    let error = wire::Packet::decode(start_group_100.repeat(10_000).as_slice()).unwrap_err();
    assert!(error.to_string().contains("recursion limit"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tharsis_trials::cases(256, 2000)))]

    /// Whatever happens to the bytes on the way, there is a packet or an error.
    #[test]
    fn damaged_bytes_never_panic(
        which in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let all = all_messages();
        let message = which.get(&all).clone();
        let sent = only_packet(&Packet::new(1, 0, vec![message]));
        let mut bytes = sent.encode_to_vec();
        for (at, value) in damage {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if is_cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(packet) = wire::Packet::decode(bytes.as_slice()) {
            let _ = decode(packet);
        }
    }

    /// Fields that a newer node adds are passed over.
    #[test]
    fn unknown_fields_are_ignored(number in 100_u32..1000, value in any::<u32>()) {
        let packet = Packet::new(1, 2, all_messages());
        let mut bytes = only_packet(&packet).encode_to_vec();
        prost::encoding::encode_varint(u64::from(number) << 3, &mut bytes);
        prost::encoding::encode_varint(u64::from(value), &mut bytes);
        let received = decode(wire::Packet::decode(bytes.as_slice()).unwrap()).unwrap();
        prop_assert_eq!(received.packet, packet);
    }
}
