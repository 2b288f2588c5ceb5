//! Spans of a node's tasks, for a collector of traces.
//!
//! Ids are derived from the submitting task, so a trace needs no context on the wire: every node that sees a
//! task knows its trace (the job) and its span (the task). The node that owns a task reports *submit to
//! result*, the node that runs it reports *run*, a child of the former.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::time::SystemTime;
use tharsis_core::{Action, Event, Node, Record, TaskOutcome, Value};
use tharsis_types::{Attempt, ClientId, NodeId, ObjectId, TaskId};

/// Maximum number of tasks under observation at a time; further tasks have no span.
const OPEN_MAX: usize = 1 << 20;

/// The operation that a span covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// From the start in a worker to its report.
    Run,
    /// From submission to result.
    Task,
}

/// A stage of a task that has ended.
#[derive(Clone, Debug)]
pub struct TaskSpan {
    /// The task.
    pub task: TaskId,
    /// The task that submitted it, if that runs on this node; the driver otherwise.
    pub parent: Option<TaskId>,
    /// The operation that the span covers.
    pub stage: Stage,
    /// Name of the task.
    pub name: String,
    /// The number of the attempt, for runs.
    pub attempt: Attempt,
    /// The node that reports.
    pub node: NodeId,
    /// When it began.
    pub began: SystemTime,
    /// When it ended.
    pub ended: SystemTime,
    /// Whether it failed.
    pub is_failed: bool,
}

/// Takes the spans of a node. Calls must not block: the loop makes them.
pub trait Collector: Send {
    /// A stage of a task has ended.
    fn collect(&mut self, span: TaskSpan);
}

/// Follows tasks through the events and actions of a node.
pub struct Observation {
    collector: Box<dyn Collector>,
    names: HashMap<(ClientId, u32), String>,
    tasks: HashMap<TaskId, Open>,
    runs: HashMap<u32, (TaskId, Attempt, Open)>,
    /// Runs of each worker, oldest first: the first one is the one that submits.
    runs_of: HashMap<ClientId, VecDeque<u32>>,
}

struct Open {
    name: String,
    parent: Option<TaskId>,
    began: SystemTime,
}

impl Observation {
    /// An observer that has seen nothing yet and reports to `collector`.
    #[must_use]
    pub fn new(collector: Box<dyn Collector>) -> Self {
        let (names, tasks) = (HashMap::new(), HashMap::new());
        Self { collector, names, tasks, runs: HashMap::new(), runs_of: HashMap::new() }
    }

    /// Sees an event before the machine takes it.
    pub fn event(&mut self, node: NodeId, event: &Event) {
        match event {
            Event::ClassDefined { client, class, definition: Ok(definition) } => {
                self.names.insert((*client, *class), definition.name.clone());
            }
            Event::ClientGone { client, .. } => self.client_gone(*client),
            Event::Finished { client, run, outcome, .. } => self.run_ended(node, *client, *run, outcome),
            Event::Submitted { client, class, task, args, .. } if self.tasks.len() < OPEN_MAX => {
                let running = self.runs_of.get(client).and_then(|runs| self.runs.get(runs.front()?));
                let parent = running.map(|(task, _, _)| *task);
                let of_class = || self.names.get(&(*client, *class)).cloned().unwrap_or_default();
                let name = args.name.as_deref().map_or_else(of_class, str::to_owned);
                self.tasks.insert(*task, Open { name, parent, began: SystemTime::now() });
            }
            _ => {}
        }
    }

    /// Sees an action before it is performed.
    pub fn action(&mut self, node: &Node, action: &Action) {
        match action {
            Action::Tell { record: Record::Value { object, .. }, .. } => self.delivered(node, *object),
            Action::Tell { client, record: Record::Run { run } } => {
                if let Some(view) = node.run(*run) {
                    let open = Open {
                        name: view.name.unwrap_or(&view.class.name).to_owned(),
                        parent: Some(view.task),
                        began: SystemTime::now(),
                    };
                    self.runs.insert(*run, (view.task, view.attempt, open));
                    self.runs_of.entry(*client).or_default().push_back(*run);
                }
            }
            _ => {}
        }
    }

    fn delivered(&mut self, node: &Node, object: ObjectId) {
        let Some(open) = self.tasks.remove(&object.task) else { return };
        let is_failed = matches!(node.value(object), Some(Value::Failed(_)) | None);
        self.close(node.id(), object.task, Stage::Task, 0, open, is_failed);
    }

    fn run_ended(&mut self, node: NodeId, client: ClientId, run: u32, outcome: &TaskOutcome) {
        if let Some(runs) = self.runs_of.get_mut(&client) {
            runs.retain(|r| *r != run);
        }
        let Some((task, attempt, open)) = self.runs.remove(&run) else { return };
        let is_failed = matches!(outcome, TaskOutcome::Failed { .. });
        self.close(node, task, Stage::Run, attempt, open, is_failed);
    }

    fn client_gone(&mut self, client: ClientId) {
        self.names.retain(|(owner, _), _| *owner != client);
        for run in self.runs_of.remove(&client).unwrap_or_default() {
            self.runs.remove(&run);
        }
    }

    fn close(
        &mut self,
        node: NodeId,
        task: TaskId,
        stage: Stage,
        attempt: Attempt,
        open: Open,
        is_failed: bool,
    ) {
        let Open { name, parent, began } = open;
        let ended = SystemTime::now();
        self.collector.collect(TaskSpan {
            task,
            parent,
            stage,
            name,
            attempt,
            node,
            began,
            ended,
            is_failed,
        });
    }
}
