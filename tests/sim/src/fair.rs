//! Jobs that share a node which all of them keep busy: the CPU time that each gets, over some seconds.
//!
//! A world of its own, without faults: one node, drivers that each keep calls of one class under way, workers
//! that take as long as the class says.

use std::collections::BTreeMap;
use std::sync::Arc;
use tharsis_core::event::{Member, OutputValue, TaskOutcome};
use tharsis_core::node::Config;
use tharsis_core::{Action, Event, MS, Node, Now, Operation, Record};
use tharsis_types::task::Output;
use tharsis_types::{ClientId, FunctionId, JobId, NodeId, RefId, Resources, TaskArgs, TaskClass, TaskId};

/// CPUs of the node.
const CPUS: u64 = 4;
/// Calls that a driver keeps under way.
const UNDER_WAY: u64 = 16;
/// The time that a worker takes to start.
const START: Now = 5 * MS;

/// A job that always has more to do.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// Its weight.
    pub weight: u32,
    /// The priority of its tasks.
    pub priority: i32,
    /// The time that each takes, in microseconds.
    pub task_us: u64,
}

/// The CPU time that each of some jobs gets of a node within `time`, in nanoseconds.
#[must_use]
pub fn shares(jobs: &[Job], time: Now) -> Vec<u64> {
    let mut world = World::new(jobs);
    for at in 0..jobs.len() {
        (0..UNDER_WAY).for_each(|_| world.submit(at));
    }
    world.settle();
    while let Some(((when, _), due)) = world.agenda.pop_first()
        && when <= time
    {
        world.now = when;
        match due {
            Due::Event(event) => world.feed(event),
            Due::Tick if world.tick_at == Some(when) => {
                world.tick_at = None;
                world.feed(Event::Tick);
            }
            Due::Tick => continue,
            Due::Finish(at, event) => {
                world.used[at] += world.jobs[at].task_us * 1_000;
                world.feed(event);
            }
        }
        world.settle();
    }
    world.used
}

enum Due {
    Event(Event),
    Finish(usize, Event),
    Tick,
}

struct World {
    node: Node,
    now: Now,
    jobs: Vec<Job>,
    used: Vec<u64>,
    submitted: Vec<u64>,
    agenda: BTreeMap<(Now, u64), Due>,
    order: u64,
    tick_at: Option<Now>,
    next_client: u32,
    out: Vec<Action>,
}

impl World {
    fn new(jobs: &[Job]) -> Self {
        let resources = Resources { cpu: CPUS * Resources::UNIT, ..Resources::default() };
        let config = Config {
            member: Member { node: NodeId(1), resources, labels: Vec::new() },
            store_bytes: 1 << 20,
            annex_bytes: 0,
            create_timeout: 1_000 * MS,
            queued_tasks_max: usize::MAX,
            small_cluster_max: 16,
            can_spill: false,
            high_water_bytes: u64::MAX,
            low_water_bytes: u64::MAX,
            relay_bytes_min: 1 << 20,
            lineage_bytes_max: 0,
        };
        let mut world = Self {
            node: Node::new(config),
            now: MS,
            jobs: jobs.to_vec(),
            used: vec![0; jobs.len()],
            submitted: vec![0; jobs.len()],
            agenda: BTreeMap::new(),
            order: 0,
            tick_at: None,
            next_client: 1_000,
            out: Vec::new(),
        };
        for (at, job) in jobs.iter().enumerate() {
            let (client, id) = (driver(at), job_id(at));
            world.feed(Event::DriverJoined { client, job: id, weight: job.weight, quota: None });
            let class = TaskClass {
                resources: Resources { cpu: Resources::UNIT, ..Resources::default() },
                priority: job.priority,
                ..TaskClass::new(id, FunctionId(1), "busy")
            };
            world.feed(Event::ClassDefined { client, class: 0, definition: Ok(Arc::new(class)) });
        }
        world
    }

    fn submit(&mut self, at: usize) {
        let token = self.submitted[at];
        self.submitted[at] += 1;
        let task = TaskId::root(job_id(at)).child(token);
        let (client, tokens) = (driver(at), [token].into_iter().collect());
        self.feed(Event::Submitted { client, run: None, class: 0, task, tokens, args: TaskArgs::default() });
    }

    fn feed(&mut self, event: Event) {
        self.node.handle(self.now, event, &mut self.out);
    }

    fn at(&mut self, when: Now, due: Due) {
        self.order += 1;
        self.agenda.insert((when, self.order), due);
    }

    /// Settles until nothing is left to be done at once, and asks for the next tick.
    fn settle(&mut self) {
        loop {
            self.node.settle(self.now, &mut self.out);
            let actions = std::mem::take(&mut self.out);
            if actions.is_empty() {
                break;
            }
            actions.into_iter().for_each(|action| self.act(action));
        }
        let next = self.node.next_timeout(self.now).map(|next| next.max(self.now + 1));
        if let Some(next) = next.filter(|next| self.tick_at.is_none_or(|known| *next < known)) {
            self.tick_at = Some(next);
            self.at(next, Due::Tick);
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Do(Operation::StartWorker { start, .. }) => {
                self.next_client += 1;
                let client = ClientId(self.next_client);
                self.at(self.now + START, Due::Event(Event::WorkerReady { start, client }));
            }
            Action::Tell { client, record: Record::Run { run } } => {
                let Some(view) = self.node.run(run) else { return };
                let at = view.task.job().0 as usize - 1;
                let run_ns = self.jobs[at].task_us * 1_000;
                // A worker has one task at a time: the next one starts when this one has ended.
                let value = OutputValue::Inline([1].as_slice().into());
                let outputs = [Output { value, nested: Vec::new() }].into_iter().collect();
                let outcome = TaskOutcome::Returned(outputs);
                let free_at = self.free_at(client) + run_ns;
                self.at(free_at, Due::Finish(at, Event::Finished { client, run, run_ns, outcome }));
            }
            Action::Tell { client, record: Record::StealBack { question, .. } } => {
                self.feed(Event::GivenBack { client, question, returned: Vec::new() });
            }
            Action::Tell { client, record: Record::Value { token, object, .. } } => {
                let reference = RefId { object, owner: self.node.id() };
                self.feed(Event::Released { client, token, reference });
                self.submit(client.0 as usize - 1);
            }
            Action::Tell { client, record: Record::Stop }
            | Action::Do(Operation::KillWorker { client, .. }) => {
                let failure = tharsis_types::Failure::new(tharsis_types::FailureKind::Shutdown, "stopped");
                let remains = tharsis_core::event::Remains::Nothing;
                self.feed(Event::ClientGone { client, remains, failure: Arc::new(failure) });
            }
            _ => {}
        }
    }

    /// The moment at which a worker has ended all that it was sent.
    fn free_at(&self, worker: ClientId) -> Now {
        let ends = self.agenda.iter().filter_map(|((when, _), due)| match due {
            Due::Finish(_, Event::Finished { client, .. }) if *client == worker => Some(*when),
            _ => None,
        });
        ends.max().unwrap_or(self.now)
    }
}

fn driver(at: usize) -> ClientId {
    ClientId(at as u32 + 1)
}

fn job_id(at: usize) -> JobId {
    JobId(at as u32 + 1)
}
