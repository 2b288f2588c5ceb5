//! Tests of the records.

use super::*;
use tharsis_types::graph::{GraphInput, GraphPart, GraphResult, GraphStep};
use tharsis_types::task::Dependency;
use tharsis_types::{JobId, NodeId, ObjectId, TaskId};

fn reference(n: u64) -> RefId {
    RefId { object: ObjectId::output(TaskId::root(JobId(1)).child(n), n as u32), owner: NodeId(n + 1) }
}

fn from_client_samples() -> Vec<Vec<u8>> {
    let refs = pack::references(&[reference(1), reference(2)]);
    let deps = pack::dependencies(&[Dependency { reference: reference(3), parameter: 4 }]);
    let tokens = 77u64.to_le_bytes();
    let mut outputs = Vec::new();
    pack::output(&mut outputs, &ValueView::Inline(b"abc"), &[reference(9)]);
    pack::output(&mut outputs, &ValueView::Local(Extent { offset: 64, len: 128 }), &[]);
    let task = TaskId::root(JobId(1)).child(5);
    let records = [
        FromClient::Submit {
            run: None,
            class: 3,
            task,
            tokens: TokensView::new(&tokens).unwrap(),
            payload: b"args",
            dependencies: DependenciesView::new(&deps).unwrap(),
            nested: RefsView::new(&refs).unwrap(),
            name: "",
        },
        FromClient::Submit {
            run: Some(u32::MAX),
            class: 3,
            task,
            tokens: TokensView::new(&tokens).unwrap(),
            payload: b"args",
            dependencies: DependenciesView::new(&deps).unwrap(),
            nested: RefsView::new(&refs).unwrap(),
            name: "part 7",
        },
        FromClient::Done {
            slot: 1,
            run_ns: 2,
            outcome: OutcomeView::Returned(OutputsView::new(2, &outputs)),
        },
        FromClient::Done {
            slot: 1,
            run_ns: 2,
            outcome: OutcomeView::Failed { error_type: "E", failure: b"f" },
        },
        FromClient::Put {
            token: 1,
            object: ObjectId::put(task, 0),
            value: ValueView::Ready { len: 9 },
            nested: RefsView::default(),
            site: "src/main.rs:7",
        },
        FromClient::Cancel { reference: reference(1), force: true, recursive: false },
        FromClient::Restart { reference: reference(1) },
        FromClient::RegionWanted { request: 1, bytes: 1 << 40 },
        FromClient::Keep { token: 3, reference: reference(1) },
        FromClient::Locate { request: 7, reference: reference(2) },
        FromClient::Unblock,
        FromClient::ActorEnded,
        FromClient::Checkpoint {
            request: 6,
            value: ValueView::Local(Extent { offset: 64, len: 9 }),
            nested: RefsView::new(&refs).unwrap(),
        },
    ];
    records
        .iter()
        .map(|record| {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            assert_eq!(FromClient::decode(&bytes).as_ref(), Ok(record));
            bytes
        })
        .collect()
}

#[test]
fn records_of_clients_survive_encoding() {
    // Each is compared with what is read of its bytes.
    assert!(!from_client_samples().is_empty());
}

#[test]
fn a_part_of_a_graph_survives_encoding() {
    let step = GraphStep { class: 1, returns: 2, payload_bytes: 3, input_count: 1, priority: -2 };
    let input = GraphInput { source: GraphInput::REFERENCE, index: 0, parameter: u16::MAX };
    let part = GraphPart {
        first: 9,
        is_last: true,
        references: vec![reference(1)],
        steps: vec![step, GraphStep { payload_bytes: 0, priority: i32::MAX, ..step }],
        inputs: vec![input, GraphInput { source: 9, index: 1, parameter: 7 }],
        payload: b"abc".to_vec(),
        results: vec![GraphResult { step: 10, index: 1, token: u64::MAX - 1 }],
    };
    let mut packed = PackedGraph::default();
    packed.reference(&part.references[0]);
    packed.step(&part.steps[0], &part.inputs[..1], &part.payload);
    packed.step(&part.steps[1], &part.inputs[1..], &[]);
    packed.result(&part.results[0]);
    let graph = TaskId::root(JobId(1));
    let record = FromClient::Graph { run: None, graph, part: packed.view(9, true) };
    let mut bytes = Vec::new();
    record.encode(&mut bytes);
    let Ok(FromClient::Graph { run: None, graph: read, part: view }) = FromClient::decode(&bytes) else {
        panic!()
    };
    assert_eq!((read, view.part()), (graph, part));
    for cut in 0..bytes.len() {
        assert!(FromClient::decode(&bytes[..cut]).is_err(), "a record of {cut} bytes");
    }
}

#[test]
fn records_of_nodes_survive_encoding() {
    let nodes = pack::nodes(&[NodeId(5), NodeId(u64::MAX)]);
    assert_eq!(NodesView::new(&nodes).unwrap().iter().collect::<Vec<_>>(), [NodeId(5), NodeId(u64::MAX)]);
    let mut arguments = Vec::new();
    pack::argument(&mut arguments, 2, &reference(4), &ValueView::Failed(b"x"));
    let records = [
        ToClient::Run {
            slot: 1,
            class: 2,
            attempt: 3,
            task: TaskId::root(JobId(1)),
            payload: b"p",
            arguments: ArgumentsView::new(1, &arguments),
            name: "",
        },
        ToClient::Run {
            slot: 1,
            class: 2,
            attempt: 3,
            task: TaskId::root(JobId(1)),
            payload: b"p",
            arguments: ArgumentsView::new(1, &arguments),
            name: "part 7",
        },
        ToClient::Value { token: 5, value: ValueView::Local(Extent { offset: 1, len: 2 }) },
        ToClient::Log { pid: 1, stderr: true, text: b"line\n" },
        ToClient::Region { request: 1, region: Extent { offset: 0, len: 0 }, failure: b"full" },
        ToClient::Resumed,
        ToClient::Grant { calls: u64::MAX },
        ToClient::RetireRegions,
        ToClient::Unmap { token: 9 },
        ToClient::Locations { request: 3, nodes: NodesView::new(&nodes).unwrap() },
        ToClient::CheckpointEnded { request: 3, failure: b"full" },
        ToClient::Shutdown { reason: "bye" },
    ];
    for record in records {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        assert_eq!(ToClient::decode(&bytes), Ok(record));
    }
}

#[test]
fn every_cut_of_a_record_is_refused() {
    for bytes in from_client_samples() {
        for end in 0..bytes.len() {
            assert!(FromClient::decode(&bytes[..end]).is_err(), "{end} of {bytes:?}");
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert!(FromClient::decode(&longer).is_err());
    }
}

#[test]
fn changed_bytes_never_panic() {
    for bytes in from_client_samples() {
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut changed = bytes.clone();
                changed[at] = value;
                if let Ok(FromClient::Done { outcome: OutcomeView::Returned(outputs), .. }) =
                    FromClient::decode(&changed)
                {
                    assert!(outputs.iter().count() <= 2 || outputs.iter().any(|o| o.is_err()));
                }
            }
        }
    }
}

#[test]
fn packed_lists_come_back_in_order() {
    let refs: Vec<RefId> = (0..5).map(reference).collect();
    let bytes = pack::references(&refs);
    let view = RefsView::new(&bytes).unwrap();
    assert_eq!((view.len(), view.is_empty()), (5, false));
    assert!(view.iter().eq(refs));
    let nodes = [NodeId(1), NodeId(u64::MAX)];
    let bytes = pack::nodes(&nodes);
    assert!(NodesView::new(&bytes).unwrap().iter().eq(nodes));
}

#[test]
fn dependencies_keep_their_parameters() {
    let all: Vec<Dependency> =
        [0, 9, u16::MAX].map(|parameter| Dependency { reference: reference(2), parameter }).into();
    let bytes = pack::dependencies(&all);
    let view = DependenciesView::new(&bytes).unwrap();
    assert_eq!((view.len(), view.is_empty()), (3, false));
    assert!(view.iter().eq(all));
}

#[test]
fn tokens_and_slots_are_little_endian() {
    assert!(TokensView::new(&[1, 0, 0, 0, 0, 0, 0, 2]).unwrap().iter().eq([1 | 2 << 56]));
    assert!(SlotsView::new(&[1, 0, 0, 2, 3, 0, 0, 0]).unwrap().iter().eq([1 | 2 << 24, 3]));
}

#[test]
fn a_list_whose_last_item_is_cut_is_refused() {
    let refs = pack::references(&[reference(1), reference(2)]);
    for cut in 1..REF_BYTES {
        let bad = RefsView::new(&refs[..refs.len() - cut]).unwrap_err();
        assert_eq!(bad.problem, "a packed list is cut");
    }
    assert!(TokensView::new(&[0; 7]).is_err() && NodesView::new(&[0; 9]).is_err());
    assert!(SlotsView::new(&[0; 6]).is_err() && DependenciesView::new(&[0; 1]).is_err());
}

#[test]
fn outputs_keep_values_and_nested_references() {
    let mut bytes = Vec::new();
    pack::output(&mut bytes, &ValueView::Inline(b"abc"), &[reference(1), reference(2)]);
    pack::output(&mut bytes, &ValueView::Ready { len: 7 }, &[]);
    let outputs: Vec<_> = OutputsView::new(2, &bytes).iter().collect::<Result<_, _>>().unwrap();
    assert_eq!(outputs[0].0, ValueView::Inline(b"abc"));
    assert!(outputs[0].1.iter().eq([reference(1), reference(2)]));
    assert_eq!((outputs[1].0, outputs[1].1.len()), (ValueView::Ready { len: 7 }, 0));
}

#[test]
fn outputs_end_at_the_first_that_is_malformed() {
    let mut bytes = Vec::new();
    pack::output(&mut bytes, &ValueView::Inline(b"abc"), &[]);
    // Three are promised and one is there.
    let read: Vec<bool> = OutputsView::new(3, &bytes).iter().map(|output| output.is_ok()).collect();
    assert_eq!(read, [true, false]);
    bytes[0] = 99;
    let read: Vec<bool> = OutputsView::new(3, &bytes).iter().map(|output| output.is_ok()).collect();
    assert_eq!(read, [false]);
}

#[test]
fn arguments_keep_parameters_references_and_values() {
    let mut bytes = Vec::new();
    let value = ValueView::Local(Extent { offset: 64, len: 128 });
    pack::argument(&mut bytes, 3, &reference(1), &value);
    pack::argument(&mut bytes, 9, &reference(2), &ValueView::Failed(b"why"));
    let view = ArgumentsView::new(2, &bytes);
    let arguments: Vec<_> = view.iter().collect::<Result<_, _>>().unwrap();
    assert_eq!(arguments, [(3, reference(1), value), (9, reference(2), ValueView::Failed(b"why"))]);
    let cut: Vec<bool> =
        ArgumentsView::new(2, &bytes[..bytes.len() - 1]).iter().map(|argument| argument.is_ok()).collect();
    assert_eq!(cut, [true, false]);
}

#[test]
fn a_record_with_bytes_left_over_is_refused() {
    for mut bytes in from_client_samples() {
        bytes.push(0);
        // A list at the end of a record may take them in; whatever is left is refused.
        if let Err(bad) = FromClient::decode(&bytes) {
            assert_eq!(bad.len, bytes.len(), "{bad}");
        }
    }
    let mut unblock = Vec::new();
    FromClient::Unblock.encode(&mut unblock);
    unblock.push(0);
    assert_eq!(FromClient::decode(&unblock).unwrap_err().problem, "bytes are left over");
}

#[test]
fn an_empty_record_and_an_unknown_kind_are_refused() {
    assert!(FromClient::decode(&[]).is_err() && ToClient::decode(&[]).is_err());
    assert!(FromClient::decode(&[250]).is_err() && ToClient::decode(&[250]).is_err());
}

#[test]
fn text_that_is_no_text_is_refused() {
    let (value, nested) = (ValueView::Inline(b""), RefsView::default());
    let object = ObjectId::put(TaskId::root(JobId(1)), 0);
    let put = FromClient::Put { token: 1, object, value, nested, site: "ab" };
    let mut bytes = Vec::new();
    put.encode(&mut bytes);
    let at = bytes.windows(2).position(|pair| pair == b"ab").unwrap();
    bytes[at] = 0xFF;
    assert_eq!(FromClient::decode(&bytes).unwrap_err().problem, "text is not UTF-8");
}
