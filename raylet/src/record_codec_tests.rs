//! Tests of `record_codec`: what it takes of a client, other nodes take as well.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use tharsis_protos::handshake::FunctionEntry;
use tharsis_protos::peer::convert;
use tharsis_types::check::LIST_BYTES_MAX;
use tharsis_types::limits::{NAME_BYTES_MAX, RESOURCE_NAMES_MAX, RETURNS_MAX};
use tharsis_types::peer::{Message, Packet, PushedTask};
use tharsis_types::task::{CallRules, LabelTerm};
use tharsis_types::{FunctionId, JobId, LeaseId, Resources, RetryOn, TaskId};

const JOB: JobId = JobId(7);

fn facts() -> Facts {
    let entry = FunctionEntry { id: FunctionId(1), signature: 2, name: "f".to_owned() };
    Facts { job: JOB, functions: crate::port::function_table(&[entry]), pid: 1 }
}

/// Text of a length at a border, or with characters that some would refuse.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z]{0,8}",
        1 => ".{0,12}",
        1 => Just("a line\n".to_owned()),
        1 => Just("a\tb".to_owned()),
        1 => Just("\u{9b}".to_owned()),
        1 => (0..3_usize).prop_map(|more| "x".repeat(NAME_BYTES_MAX - 1 + more)),
        1 => (0..3_usize).prop_map(|more| "ä".repeat((LIST_BYTES_MAX - 1) / 2 + more)),
    ]
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..40_000_u64, 1 => any::<u64>(), 1 => Just(u64::MAX), 1 => Just(10_000_000_000_000_001)]
}

fn resources() -> impl Strategy<Value = Resources> {
    let few = prop::collection::btree_map(text(), number(), 0..2);
    let many = (RESOURCE_NAMES_MAX - 1..RESOURCE_NAMES_MAX + 2)
        .prop_map(|count| (0..count).map(|n| (format!("r{n}"), 1)).collect::<BTreeMap<_, _>>());
    let custom = prop_oneof![8 => few, 1 => many];
    let amount = || prop_oneof![8 => 0..40_000_u64, 1 => number()];
    (amount(), amount(), any::<u64>(), custom).prop_map(|(cpu, gpu, memory, custom)| Resources {
        cpu,
        gpu,
        memory,
        custom,
    })
}

fn placement() -> impl Strategy<Value = Placement> {
    let group = TaskId::root(JOB).child(3);
    let term = prop_oneof![
        (text(), prop::collection::vec(text(), 0..3)).prop_map(|(key, values)| LabelTerm::In(key, values)),
        text().prop_map(LabelTerm::Exists),
    ];
    let labels = prop::collection::vec(prop::collection::vec(term, 0..3), 0..3);
    prop_oneof![
        Just(Placement::Default),
        Just(Placement::Spread),
        (0..3_u64, any::<bool>()).prop_map(|(node, soft)| Placement::Node { node: NodeId(node), soft }),
        labels.prop_map(Placement::Labels),
        any::<Option<u32>>().prop_map(move |bundle| Placement::Group { group, bundle }),
        any::<u32>().prop_map(move |index| Placement::Bundle { group, index }),
    ]
}

prop_compose! {
    fn class()(
        texts in [text(), text(), text()],
        resources in resources(),
        placement in placement(),
        retry_types in prop::collection::vec(text(), 0..3),
        numbers in (any::<i32>(), -3..3_i32, any::<u64>(), any::<u32>()),
        returns in prop_oneof![4 => 0..3_u32, 1 => RETURNS_MAX - 1..RETURNS_MAX + 2],
        role in prop_oneof![Just(Role::Task), Just(Role::Constructor), Just(Role::Method)],
        job in prop_oneof![8 => Just(JOB), 1 => Just(JobId(0))],
        flags in any::<[bool; 3]>(),
    ) -> TaskClass {
        let [function_name, name, call_site] = texts;
        let (priority, max_retries, timeout_ms, max_calls) = numbers;
        TaskClass {
            signature: 2, function_name, name, call_site, resources, priority, returns, max_retries,
            retry_on: RetryOn::Types(retry_types), timeout_ms, max_calls, pure: flags[0], placement, role,
            calls: CallRules { group: 3, ..CallRules::default() }, detached: flags[1],
            shared_process: flags[2], ..TaskClass::new(job, FunctionId(1), "f")
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// A class that a node takes of its driver is one that other nodes take of the node: if they did not, no
    /// task of the class would ever run there.
    #[test]
    fn a_class_that_is_taken_of_a_driver_is_taken_by_other_nodes(class in class()) {
        let definition = postcard::to_stdvec(&class).unwrap();
        let Ok(taken) = task_class(&facts(), &definition) else { return Ok(()) };
        let class = Arc::new(taken);
        let request = Message::LeaseRequest {
            lease: LeaseId(1), class: class.clone(), wait: true, urgency: 0, weight: 1, quota: None,
        };
        let (task, payload) = (TaskId::root(JOB).child(1), vec![0].into());
        let task = PushedTask { task, attempt: 0, class, payload, dependencies: Vec::new(), nested: Vec::new(), name: None };
        let push = Message::TaskPush { lease: LeaseId(1), task: Box::new(task) };
        let packet = Packet::new(0, 0, vec![request, push]);
        for part in convert::encode(NodeId(1), NodeId(2), &packet) {
            let received = convert::decode(part).unwrap();
            prop_assert_eq!(received.fault, None);
        }
    }
}

#[test]
fn references_to_nothing_are_refused() {
    let task = TaskId::root(JOB).child(1);
    let good = RefId { object: ObjectId::output(task, 0), owner: NodeId(1) };
    assert_eq!(check_reference(good), Ok(good));
    let nobodys = RefId { owner: NodeId(0), ..good };
    let nothing = RefId { object: ObjectId::from_bytes([0; ObjectId::LEN]), ..good };
    let packed: Vec<u8> = [good, nobodys].iter().flat_map(|reference| reference.to_bytes()).collect();
    assert!(check_reference(nobodys).is_err() && check_reference(nothing).is_err());
    assert!(references::<Vec<_>>(RefsView::new(&packed).unwrap()).is_err());
}
