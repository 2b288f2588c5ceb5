//! A graph that is cancelled, and submitted again by its submitter, which runs again.
//!
//! A task that was cancelled and has not ended is the same task for whoever submits it again: it shares the
//! cancellation, alone or as a step of a graph. Whoever cancelled it need not be its submitter, whose crash
//! must not undo that. Once nothing of the first submission is left, all of it is entered anew.

// A test may panic where it fails, also in shared functions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code, reason = "not every test uses all of it")]
mod host;

use host::{Host, config, member};
use std::sync::Arc;
use tharsis_core::event::{OutputValue, Remains, TaskOutcome};
use tharsis_core::{Action, Event, MS, Record, Value};
use tharsis_types::graph::{GraphInput, GraphPart, GraphResult, GraphStep, step_task};
use tharsis_types::task::Output;
use tharsis_types::{
    ClientId, Failure, FailureKind, FunctionId, JobId, NodeId, ObjectId, RefId, Resources, TaskArgs,
    TaskClass, TaskId,
};

const ME: NodeId = NodeId(1);
const JOB: JobId = JobId(1);
const DRIVER: ClientId = ClientId(1);
const RESULT: u64 = 5;

struct World {
    host: Host,
    /// Tasks whose workers were told to stop them.
    told: Vec<u32>,
    /// Values that clients were told.
    values: Vec<(ClientId, u64, Value)>,
}

impl World {
    fn new() -> Self {
        let host = Host::new(config(member(ME, 4.0)), MS, MS);
        let mut world = Self { host, told: Vec::new(), values: Vec::new() };
        world.feed(Event::DriverJoined { client: DRIVER, job: JOB, weight: 100, quota: None });
        world
    }

    fn feed(&mut self, event: Event) {
        for action in self.host.feed(event) {
            match action {
                Action::Tell { record: Record::CancelRun { run }, .. } => self.told.push(run),
                Action::Tell { client, record: Record::Value { token, object, .. } } => {
                    let value = self.host.node.value_for(client, token, object).unwrap().clone();
                    self.values.push((client, token, value));
                }
                _ => {}
            }
        }
    }

    fn define(&mut self, client: ClientId, max_retries: i32) {
        let resources = Resources::cpus(1.0).unwrap();
        let class = TaskClass { resources, max_retries, ..TaskClass::new(JOB, FunctionId(1), "f") };
        self.feed(Event::ClassDefined { client, class: 0, definition: Ok(Arc::new(class)) });
    }

    fn worker_starts(&mut self, client: ClientId) {
        let event = self.host.ready(client);
        self.feed(event);
    }

    /// Submits a graph of two steps, of which the second takes what the first makes.
    fn submit(&mut self, client: ClientId, graph: TaskId) {
        let step =
            |input_count| GraphStep { class: 0, returns: 1, payload_bytes: 0, input_count, priority: 0 };
        let part = GraphPart {
            is_last: true,
            steps: vec![step(0), step(1)],
            inputs: vec![GraphInput { source: 0, index: 0, parameter: 0 }],
            results: vec![GraphResult { step: 1, index: 0, token: RESULT }],
            ..GraphPart::default()
        };
        self.feed(Event::GraphSubmitted { client, run: None, graph, part: Box::new(part) });
    }

    fn finish(&mut self, task: TaskId, outcome: TaskOutcome) {
        let event = self.host.finished(task, outcome);
        self.feed(event);
    }

    /// The client that was last told that the result has failed, and the cause.
    fn failure(&self) -> (ClientId, FailureKind) {
        match self.values.last() {
            Some((client, RESULT, Value::Failed(failure))) => (*client, failure.root().kind),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_graph_that_is_submitted_again_shares_the_cancellation_of_its_tasks() {
    let mut world = World::new();
    world.define(DRIVER, 1);
    let parent = TaskId::root(JOB).child(0);
    let tokens = [1].into_iter().collect();
    let args = TaskArgs::default();
    world.feed(Event::Submitted { client: DRIVER, run: None, class: 0, task: parent, tokens, args });
    let [first, second, again] = [2, 3, 4].map(ClientId);
    world.worker_starts(first);
    let graph = parent.child(0);
    let [head, tail] = [0, 1].map(|step| step_task(graph, step));
    world.define(first, 0);
    world.submit(first, graph);
    world.worker_starts(second);
    let (_, run) = world.host.runs[&head];
    let reference = RefId { object: ObjectId::output(tail, 0), owner: ME };
    world.feed(Event::CancelRequested { reference, force: false, recursive: false });
    assert_eq!(world.told, [run], "nothing else of the graph is wanted");
    assert_eq!(world.failure(), (first, FailureKind::Cancelled));

    let failure = Arc::new(Failure::new(FailureKind::WorkerCrashed, "gone"));
    world.host.runs.remove(&parent);
    world.feed(Event::ClientGone { client: first, remains: Remains::Nothing, failure });
    world.worker_starts(again);
    assert_eq!(world.host.runs[&parent].0, again, "its submitter runs again");
    world.define(again, 0);
    world.submit(again, graph);
    assert!(!world.host.runs.contains_key(&tail) && world.host.runs[&head].1 == run, "the head is under way");
    assert_eq!(world.failure(), (again, FailureKind::Cancelled));
    let failure = Arc::new(Failure::new(FailureKind::Cancelled, "told to stop"));
    world.finish(head, TaskOutcome::Failed { error_type: String::new(), failure });
    assert!(!world.host.runs.contains_key(&tail) && !world.host.runs.contains_key(&head));

    // Nothing is left of it: the next one is a graph like any other.
    world.feed(Event::Released { client: again, token: RESULT, reference });
    world.submit(again, graph);
    for task in [head, tail] {
        let value = OutputValue::Inline([7].into());
        let outputs = [Output { value, nested: Vec::new() }].into_iter().collect();
        world.finish(task, TaskOutcome::Returned(outputs));
    }
    assert!(matches!(world.values.last(), Some((_, RESULT, Value::Inline(_)))), "{:?}", world.values.last());
}
