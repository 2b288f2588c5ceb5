//! Ids that a client may put: a client that puts others is cut off, and is told the reason.

// A test may panic where it fails, also in shared functions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::{Duration, Instant};
use tharsis_protos::records::{FromClient, RefsView, ToClient, ValueView};
use tharsis_raylet::{
    Embedded, EmbeddedPart, NodeHandle, NodeOptions, ProcessNumber, Shared, SpillChoice, Workforce,
    connect_embedded,
};
use tharsis_types::limits::SMALL_CLUSTER_MAX;
use tharsis_types::{ClientId, Failure, JobId, ObjectId, Resources, TaskId};

/// No workers: nothing here runs.
struct Nobody;

impl Workforce for Nobody {
    fn start(&self, _start: u64, _job: JobId, _process: Option<ProcessNumber>, _gpus: Vec<u32>) {}
    fn kill(&self, _client: ClientId, _reason: &Failure) {}
    fn stop(&self) {}
}

fn node() -> NodeHandle {
    let options = NodeOptions {
        resources: Resources::cpus(1.0).unwrap(),
        labels: Vec::new(),
        store_bytes: 16 << 20,
        spill: SpillChoice::default(),
        memory_limit_bytes: 0,
        memory_soft_limit_bytes: 0,
        min_free_bytes: 0,
        lineage_bytes: 0,
        queued_tasks_max: usize::MAX,
        small_cluster_max: SMALL_CLUSTER_MAX,
        worker_start_timeout: Duration::from_secs(1),
    };
    NodeHandle::embedded(options, |_shared| Box::new(Nobody)).unwrap()
}

/// Puts a value under an id; returns the reason if the node cuts the client off.
fn put(shared: &Shared, job: JobId, object: ObjectId) -> Option<String> {
    let Embedded { mut channel, board, board_index, .. } =
        connect_embedded(shared, job, EmbeddedPart::Driver(None), &[]).unwrap();
    let value = ValueView::Inline(b"value");
    let put = FromClient::Put { token: 1, object, value, nested: RefsView::default(), site: "" };
    // The answer to the second record shows that the first was taken.
    let ask = FromClient::RegionWanted { request: 1, bytes: 4096 };
    for record in [put, ask] {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        channel.producer.try_push(&[&bytes]).unwrap();
    }
    channel.producer.publish();
    board.mark_and_ring(board_index as usize);
    let until = Instant::now() + Duration::from_secs(10);
    while Instant::now() < until {
        let Some(record) = channel.consumer.peek().unwrap() else {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        };
        let reason = match ToClient::decode(record).unwrap() {
            ToClient::Grant { .. } => {
                channel.consumer.advance();
                continue;
            }
            ToClient::Region { .. } => None,
            ToClient::Shutdown { reason } => Some(reason.to_owned()),
            other => panic!("{other:?}"),
        };
        return reason;
    }
    panic!("no answer");
}

#[test]
fn a_client_puts_what_its_own_job_puts() {
    let node = node();
    let (job, other) = (node.new_job(), node.new_job());
    let task = TaskId::root(job).child(0);
    assert_eq!(put(&node.shared(), job, ObjectId::put(task, 0)), None);
    let of_another_job = put(&node.shared(), other, ObjectId::put(task, 1)).unwrap();
    assert!(of_another_job.contains("cannot put"), "{of_another_job}");
    let an_output = put(&node.shared(), job, ObjectId::output(task, 0)).unwrap();
    assert!(an_output.contains("cannot put"), "{an_output}");
    node.stop();
}
