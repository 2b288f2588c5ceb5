//! Tests of the records.

use super::*;
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
            class: 3,
            task,
            tokens: TokensView::new(&tokens).unwrap(),
            payload: b"args",
            dependencies: DependenciesView::new(&deps).unwrap(),
            nested: RefsView::new(&refs).unwrap(),
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
        FromClient::RegionWanted { request: 1, bytes: 1 << 40 },
        FromClient::Keep { token: 3, reference: reference(1) },
        FromClient::Locate { request: 7, reference: reference(2) },
        FromClient::Unblock,
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
    assert_eq!(from_client_samples().len(), 9);
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
        },
        ToClient::Value { token: 5, value: ValueView::Local(Extent { offset: 1, len: 2 }) },
        ToClient::Log { pid: 1, stderr: true, text: b"line\n" },
        ToClient::Region { request: 1, region: Extent { offset: 0, len: 0 }, failure: b"full" },
        ToClient::Resumed,
        ToClient::RetireRegions,
        ToClient::Unmap { token: 9 },
        ToClient::Locations { request: 3, nodes: NodesView::new(&nodes).unwrap() },
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
