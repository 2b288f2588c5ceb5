//! Everything that reads bytes of another process or of a disk, by name: an entry takes any bytes and panics
//! where they were believed.
//!
//! `tests/mutations.rs` feeds each entry with damaged seeds, the same ones in every short run; `fuzz/`
//! searches further with the same entries, for as long as one likes.

use tharsis_object_store::inputs as store;
use tharsis_protos::records::{
    ArgumentsView, DependenciesView, FromClient, GraphView, NodesView, OutcomeView, OutputsView, PackedGraph,
    RefsView, SlotsView, ToClient, TokensView, ValueView, pack,
};
use tharsis_types::graph::{GraphInput, GraphResult, GraphStep};
use tharsis_types::payload::{Frame, FrameLayout, PayloadKind, seal_checksum};
use tharsis_types::task::Dependency;
use tharsis_types::{Extent, JobId, NodeId, ObjectId, RefId, TaskId};

/// A reader of foreign bytes.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name, which is that of its fuzz target.
    pub name: &'static str,
    /// Reads.
    pub read: fn(&[u8]),
    /// Messages that sound peers write.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All of them.
pub const ENTRIES: &[Entry] = &[
    Entry { name: "frame", read: frame, seeds: frame_seeds },
    Entry { name: "from_client", read: from_client, seeds: from_client_seeds },
    Entry { name: "ring_consumer", read: store::ring_consumer, seeds: store::ring_seeds },
    Entry { name: "ring_producer", read: store::ring_producer, seeds: store::ring_seeds },
    Entry { name: "spill_block", read: store::spill_block, seeds: store::spill_block_seeds },
    Entry { name: "spill_header", read: store::spill_header, seeds: store::spill_header_seeds },
    Entry { name: "to_client", read: to_client, seeds: to_client_seeds },
    Entry { name: "transfer_headers", read: store::transfer_headers, seeds: store::transfer_header_seeds },
];

/// Runs the entry of a name; for fuzz targets.
pub fn run(name: &str, bytes: &[u8]) {
    for entry in ENTRIES.iter().filter(|entry| entry.name == name) {
        (entry.read)(bytes);
    }
}

/// Reads an object of the arena.
fn frame(bytes: &[u8]) {
    let Ok(frame) = Frame::parse(bytes) else { return };
    assert!(frame.in_band().len() <= bytes.len());
    for index in 0..frame.buffer_count() {
        let (range, buffer) = (frame.buffer_range(index), frame.buffer(index));
        assert!(range.is_some_and(|range| bytes.get(range) == buffer), "buffer {index} lies in the frame");
    }
    let _ = frame.verify();
}

fn frame_seeds() -> Vec<Vec<u8>> {
    let layouts = [
        FrameLayout::new(PayloadKind::Serde, 0, 3, []),
        FrameLayout::new(PayloadKind::Bytes, 0, 0, [100]),
        FrameLayout::new(PayloadKind::Tensor, 7, 3, [5, 0, 70]),
    ];
    let mut seeds = Vec::new();
    for layout in layouts.into_iter().flatten() {
        let mut bytes = layout.head();
        bytes.resize(layout.total_len(), 9);
        seeds.push(bytes.clone());
        if !layout.is_compact() {
            seal_checksum(&mut bytes);
            seeds.push(bytes);
        }
    }
    seeds
}

/// Reads a record of a client, as its node does.
fn from_client(bytes: &[u8]) {
    let Ok(record) = FromClient::decode(bytes) else { return };
    match &record {
        FromClient::Done { outcome: OutcomeView::Returned(outputs), .. } => {
            let read = outputs.iter().take_while(Result::is_ok).count();
            assert!(read <= bytes.len(), "more outputs than bytes");
        }
        FromClient::Submit { tokens, dependencies, nested, .. } => {
            let read = tokens.iter().count() + dependencies.iter().count() + nested.iter().count();
            assert!(read <= bytes.len(), "more items than bytes");
        }
        FromClient::Graph { part, .. } => {
            let part = part.part();
            let read = part.steps.len() + part.inputs.len() + part.results.len();
            assert!(read <= bytes.len(), "more items than bytes");
            if part.check().is_ok() {
                assert!(part.payload.len() <= bytes.len(), "more arguments than bytes");
            }
        }
        _ => {}
    }
    let mut again = Vec::new();
    record.encode(&mut again);
    assert_eq!(FromClient::decode(&again), Ok(record));
}

fn from_client_seeds() -> Vec<Vec<u8>> {
    let references = pack::references(&[reference(1), reference(2)]);
    let dependencies = pack::dependencies(&[Dependency { reference: reference(3), parameter: 4 }]);
    let (tokens, slots) = (77_u64.to_le_bytes(), 5_u32.to_le_bytes());
    let mut outputs = Vec::new();
    pack::output(&mut outputs, &ValueView::Inline(b"abc"), &[reference(9)]);
    pack::output(&mut outputs, &ValueView::Local(Extent { offset: 64, len: 128 }), &[]);
    let lists = (
        TokensView::new(&tokens),
        DependenciesView::new(&dependencies),
        RefsView::new(&references),
        SlotsView::new(&slots),
    );
    let (Ok(tokens), Ok(dependencies), Ok(nested), Ok(returned)) = lists else { return Vec::new() };
    let task = TaskId::root(JobId(1)).child(5);
    let object = ObjectId::output(task, 0);
    let failed = OutcomeView::Failed { error_type: "E", failure: b"why" };
    let mut packed = PackedGraph::default();
    let records = [
        FromClient::Submit {
            run: None,
            class: 3,
            task,
            tokens,
            payload: b"payload",
            dependencies,
            nested,
            name: "",
        },
        FromClient::Submit {
            run: None,
            class: 3,
            task,
            tokens,
            payload: b"",
            dependencies,
            nested,
            name: "part 7",
        },
        FromClient::Submit {
            run: Some(7),
            class: 3,
            task,
            tokens,
            payload: b"",
            dependencies,
            nested,
            name: "",
        },
        FromClient::Done {
            slot: 1,
            run_ns: 9,
            outcome: OutcomeView::Returned(OutputsView::new(2, &outputs)),
        },
        FromClient::Done { slot: 1, run_ns: 9, outcome: failed },
        FromClient::Put { token: 8, object, value: ValueView::Ready { len: 7 }, nested, site: "main.rs:1" },
        FromClient::Blocked { returned },
        FromClient::Cancel { reference: reference(4), force: true, recursive: true },
        FromClient::Restart { reference: reference(4) },
        FromClient::RegionWanted { request: 1, bytes: 1 << 20 },
        FromClient::RegionRetired { region: Extent { offset: 4096, len: 8192 } },
        FromClient::Keep { token: 6, reference: reference(6) },
        FromClient::Locate { request: 2, reference: reference(5) },
        FromClient::Graph { run: None, graph: task, part: graph_part(&mut packed) },
        FromClient::Unblock,
        FromClient::ActorEnded,
        FromClient::Checkpoint { request: 4, value: ValueView::Inline(b"state"), nested },
    ];
    let encode = |record: &FromClient<'_>| {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        bytes
    };
    records.iter().map(encode).collect()
}

/// Two tasks of a graph, one of which takes the result of the other.
fn graph_part(packed: &mut PackedGraph) -> GraphView<'_> {
    let input = GraphInput { source: GraphInput::REFERENCE, index: 0, parameter: 1 };
    let step = GraphStep { class: 1, returns: 1, payload_bytes: 3, input_count: 1, priority: -2 };
    packed.reference(&reference(8));
    packed.step(&step, &[input], b"abc");
    packed.step(&GraphStep { payload_bytes: 0, ..step }, &[GraphInput { source: 0, ..input }], b"");
    packed.result(&GraphResult { step: 1, index: 0, token: 5 });
    packed.view(0, true)
}

/// Reads a record of a node, as its clients do.
fn to_client(bytes: &[u8]) {
    let Ok(record) = ToClient::decode(bytes) else { return };
    if let ToClient::Run { arguments, .. } = &record {
        let read = arguments.iter().take_while(Result::is_ok).count();
        assert!(read <= bytes.len(), "more arguments than bytes");
    }
    let mut again = Vec::new();
    record.encode(&mut again);
    assert_eq!(ToClient::decode(&again), Ok(record));
}

fn to_client_seeds() -> Vec<Vec<u8>> {
    let mut arguments = Vec::new();
    pack::argument(&mut arguments, 0, &reference(1), &ValueView::Inline(b"abc"));
    pack::argument(&mut arguments, 1, &reference(2), &ValueView::Failed(b"failure"));
    let nodes = pack::nodes(&[NodeId(1), NodeId(2)]);
    let Ok(nodes) = NodesView::new(&nodes) else { return Vec::new() };
    let task = TaskId::root(JobId(1)).child(5);
    let arguments = ArgumentsView::new(2, &arguments);
    let region = Extent { offset: 4096, len: 8192 };
    let records = [
        ToClient::Run { slot: 1, class: 2, attempt: 3, task, payload: b"payload", arguments, name: "" },
        ToClient::Run { slot: 1, class: 2, attempt: 3, task, payload: b"", arguments, name: "part 7" },
        ToClient::DefineClass { class: 1, definition: b"definition" },
        ToClient::Locations { request: 3, nodes },
        ToClient::Log { pid: 1, stderr: true, text: b"line\n" },
        ToClient::Region { request: 1, region, failure: b"" },
        ToClient::Value { token: 5, value: ValueView::Local(region) },
        ToClient::Shutdown { reason: "bye" },
        ToClient::Resumed,
        ToClient::Grant { calls: 1 << 40 },
        ToClient::RetireRegions,
        ToClient::CheckpointEnded { request: 4, failure: b"why" },
    ];
    let encode = |record: &ToClient<'_>| {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        bytes
    };
    records.iter().map(encode).collect()
}

fn reference(n: u32) -> RefId {
    let object = ObjectId::output(TaskId::root(JobId(1)).child(n.into()), n);
    RefId { object, owner: NodeId(u64::from(n) + 1) }
}
