//! Tasks that run here, for this node's ledger or another's.
//!
//! A run is *staging* until all its arguments are in the local arena, then *sent* to its worker. A worker
//! runs what it is sent in order, so the first sent run of a worker is the one that has started, as far as
//! anyone can know.
//!
//! | file | concern |
//! |---|---|
//! | `mod.rs` | runs and their workers: starts, what is first, what takes too long |
//! | `arguments.rs` | arguments: pinned, waited for, or not to be had |
//! | `ends.rs` | ends: reported, handed back, lost with the worker |

mod arguments;
mod ends;

use super::Node;
use super::pressure::Running;
use crate::event::{Action, Extent, TaskOutcome, Value};
use crate::lease::LeaseKey;
use crate::owner::{Object, Owner, Task};
use crate::peer::{Message, PushedTask};
use crate::slab::Slot;
use crate::{MS, Now};
use std::sync::Arc;
use tharsis_types::hash::IdSet;
use tharsis_types::{
    Attempt, ClientId, Dependency, Failure, FailureKind, LeaseId, NodeId, ObjectId, RefId, SmallBytes,
    TaskClass, TaskId,
};

/// A task on its way to a worker of this node, or in it.
#[derive(Debug)]
pub(super) struct Run {
    client: ClientId,
    lease: LeaseKey,
    task: TaskId,
    attempt: Attempt,
    timeout_ms: u64,
    /// What its task said it needs; 0 if nothing.
    memory_bytes: u64,
    max_calls: u32,
    origin: Origin,
    stage: Stage,
    /// Objects pinned for the time of the run: a set, as a task may take a hundred thousand.
    pins: IdSet<ObjectId>,
}

#[derive(Debug)]
enum Origin {
    /// Of this node's ledger: the task's place there.
    Own(Slot<Task>),
    /// Of another node's.
    Lent(Box<Lent>),
}

/// What another node sent with its task.
#[derive(Debug)]
struct Lent {
    class: Arc<TaskClass>,
    class_number: u32,
    payload: SmallBytes,
    dependencies: Vec<(Dependency, Slot<Object>)>,
    /// References that were lent with it, by place in this node's ledger.
    references: Vec<Slot<Object>>,
}

/// What to call, with what.
struct Call<'a> {
    class: &'a Arc<TaskClass>,
    class_number: u32,
    payload: &'a [u8],
    dependencies: &'a [(Dependency, Slot<Object>)],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Staging,
    Sent {
        /// When it became the first of its worker.
        first_since: Option<Now>,
    },
    /// Its worker is being killed because of it.
    Doomed,
}

/// A run as its worker needs it.
#[derive(Debug)]
pub struct RunView<'a> {
    /// Id of the task.
    pub task: TaskId,
    /// Which attempt.
    pub attempt: Attempt,
    /// Number of the class in this node.
    pub class_number: u32,
    /// The class.
    pub class: &'a Arc<TaskClass>,
    /// Arguments by value.
    pub payload: &'a [u8],
    /// Arguments by reference.
    pub arguments: Vec<(u16, RefId, ArgumentValue<'a>)>,
}

/// A readable argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentValue<'a> {
    /// The encoded value.
    Inline(&'a [u8]),
    /// In the arena, pinned.
    Local(Extent),
}

impl Node {
    /// What a worker needs to start a run; `None` if the run was taken back meanwhile.
    #[must_use]
    pub fn run(&self, run: u32) -> Option<RunView<'_>> {
        let entry = self.runs.get(Slot::from_number(run))?;
        let call = entry.origin.call(&self.owner, entry.lease.1)?;
        let arguments = call.dependencies.iter().map(|(dependency, slot)| {
            let (object, value) = self.owner.entry(*slot)?;
            let value = match value? {
                Value::Inline(bytes) => ArgumentValue::Inline(bytes),
                Value::Stored { .. } => ArgumentValue::Local(self.store.find(object)?),
                Value::Failed(_) => return None,
            };
            Some((dependency.parameter, dependency.reference, value))
        });
        Some(RunView {
            task: entry.task,
            attempt: entry.attempt,
            class_number: call.class_number,
            class: call.class,
            payload: call.payload,
            arguments: arguments.collect::<Option<_>>()?,
        })
    }

    /// The ledger starts one of its tasks.
    pub(super) fn start(&mut self, to: NodeId, lease: LeaseId, task: Slot<Task>, out: &mut Vec<Action>) {
        if self.owner.refuse_oversized(self.now, to, lease, task, &mut self.effects) {
            return;
        }
        if to == self.id {
            return self.start_local(lease, task, out);
        }
        match self.owner.push_view(task, to) {
            Some(pushed) => self.send(to, Message::TaskPush { lease, task: Box::new(pushed) }),
            None => self.owner.not_sent(lease, task, &mut self.effects),
        }
    }

    /// One of them starts under a lease of this node.
    fn start_local(&mut self, lease: LeaseId, task: Slot<Task>, out: &mut Vec<Action>) {
        let key = (self.id, lease);
        let Some(view) = self.owner.start_view(task, lease) else { return };
        let Some(client) = self.leases.worker(key) else { return };
        let run = Run {
            client,
            lease: key,
            task: view.id,
            attempt: view.attempt,
            timeout_ms: view.class.timeout_ms,
            memory_bytes: view.class.resources.memory,
            max_calls: view.class.max_calls,
            origin: Origin::Own(task),
            stage: Stage::Staging,
            pins: IdSet::default(),
        };
        self.stage(run, out);
    }

    /// Another node's task arrived under a lease.
    pub(super) fn start_pushed(
        &mut self,
        from: NodeId,
        lease: LeaseId,
        pushed: PushedTask,
        out: &mut Vec<Action>,
    ) {
        let key = (from, lease);
        let mut references = Vec::new();
        let mut dependencies = Vec::new();
        let mut freed = None;
        for needed in pushed.dependencies {
            let reference = needed.dependency.reference;
            let Some(slot) = self.owner.adopt(reference, Some(from), &mut self.effects) else {
                freed = Some(reference.object);
                continue;
            };
            references.push(slot);
            dependencies.push((needed.dependency, slot));
            let object = needed.dependency.reference.object;
            self.owner.located(from, object, needed.state, &needed.nested, &mut self.effects);
        }
        for reference in &pushed.nested {
            references.extend(self.owner.adopt(*reference, Some(from), &mut self.effects));
        }
        let Some(client) = self.leases.worker(key) else {
            references.into_iter().for_each(|slot| self.owner.unuse(slot, &mut self.effects));
            let tasks = vec![(pushed.task, pushed.attempt)];
            self.send(from, Message::TaskGiveBack { lease, tasks, started: false });
            return;
        };
        let class_number = self.owner.intern_class(&pushed.class).number();
        let run = Run {
            client,
            lease: key,
            task: pushed.task,
            attempt: pushed.attempt,
            timeout_ms: pushed.class.timeout_ms,
            memory_bytes: pushed.class.resources.memory,
            max_calls: pushed.class.max_calls,
            origin: Origin::Lent(Box::new(Lent {
                class: pushed.class,
                class_number,
                payload: pushed.payload,
                dependencies,
                references,
            })),
            stage: Stage::Staging,
            pins: IdSet::default(),
        };
        match freed {
            None => self.stage(run, out),
            Some(object) => {
                let number = self.runs.insert(run);
                self.runs_of.entry(client).or_default().push_back(number);
                self.arguments_lost(number, object, None, out);
            }
        }
    }

    /// What runs in a worker, as far as anyone can know.
    pub(super) fn running(&self, client: ClientId) -> Option<Running> {
        let number = *self.runs_of.get(&client)?.front()?;
        let run = self.runs.get(number)?;
        let Stage::Sent { first_since: Some(since) } = run.stage else { return None };
        let call = run.origin.call(&self.owner, run.lease.1)?;
        Some(Running {
            task: run.task,
            attempt: run.attempt,
            name: call.class.name.clone(),
            since,
            memory_bytes: run.memory_bytes,
            has_retries: call.class.max_retries != 0,
        })
    }

    /// Whether a run's task may run more than once.
    fn has_retries(&self, number: Slot<Run>) -> bool {
        let call = self.runs.get(number).and_then(|run| run.origin.call(&self.owner, run.lease.1));
        call.is_some_and(|call| call.class.max_retries != 0)
    }

    /// Notes which task submits another: the first run of a worker is the one that has started. Returns how
    /// deep the new one is nested, as far as this node knows.
    pub(super) fn note_parent(&mut self, client: ClientId, child: TaskId) -> u16 {
        let first = self.runs_of.get(&client).and_then(|runs| self.runs.get(*runs.front()?));
        let Some(parent) = first else { return 0 };
        self.children.entry(parent.task).or_default().push(child);
        let depth = match parent.origin {
            Origin::Own(place) => self.owner.depth(place),
            Origin::Lent(_) => 0,
        };
        depth.saturating_add(1)
    }

    /// Stops the run of a task, and with `recursive` what it has submitted.
    pub(super) fn cancel_run(&mut self, task: TaskId, force: bool, recursive: bool, out: &mut Vec<Action>) {
        let children = self.children.get(&task).filter(|_| recursive).cloned();
        for child in children.unwrap_or_default() {
            self.owner.cancel(ObjectId::output(child, 0), force, recursive, &mut self.effects);
        }
        let Some((number, run)) = self.runs.iter().find(|(_, r)| r.task == task) else { return };
        let (client, first) =
            (run.client, matches!(run.stage, Stage::Doomed | Stage::Sent { first_since: Some(_) }));
        let failure = Arc::new(Failure::new(FailureKind::Cancelled, "cancelled"));
        if run.stage == Stage::Staging {
            self.end_run(number, 0, TaskOutcome::Failed { error_type: String::new(), failure }, out);
        } else if force && first {
            if let Some(run) = self.runs.get_mut(number) {
                run.stage = Stage::Doomed;
            }
            out.push(Action::KillWorker { client, reason: failure });
        } else {
            out.push(Action::CancelRun { client, run: number.number() });
        }
    }

    /// Kills workers whose task has run longer than it may.
    pub(super) fn kill_overdue(&mut self, now: Now, out: &mut Vec<Action>) {
        for number in self.runs_of.values().filter_map(|runs| runs.front().copied()) {
            let Some(run) = self.runs.get_mut(number) else { continue };
            if run.due().is_some_and(|due| due <= now) {
                run.stage = Stage::Doomed;
                let text = format!("ran longer than its timeout of {} ms", run.timeout_ms);
                let reason = Arc::new(Failure::new(FailureKind::TimedOut, text));
                out.push(Action::KillWorker { client: run.client, reason });
            }
        }
    }

    /// When [`Node::kill_overdue`] has something to do.
    pub(super) fn run_timeout(&self) -> Option<Now> {
        self.runs_of.values().filter_map(|runs| self.runs.get(*runs.front()?)?.due()).min()
    }

    /// References that runs of other nodes' tasks keep, by place in the ledger.
    pub(super) fn lent_slots(&self) -> impl Iterator<Item = Slot<Object>> {
        self.runs
            .iter()
            .flat_map(|(_, run)| match &run.origin {
                Origin::Own(_) => [].iter(),
                Origin::Lent(lent) => lent.references.iter(),
            })
            .copied()
    }

    pub(super) fn check_runs(&self) {
        let listed: usize = self.runs_of.values().map(std::collections::VecDeque::len).sum();
        assert_eq!(listed, self.runs.len(), "a run without a worker, or listed twice");
        for (number, run) in self.runs.iter() {
            let runs = &self.runs_of[&run.client];
            assert!(runs.contains(&number), "{number:?} is not with its worker");
            let staging = |n: &Slot<Run>| self.runs.get(*n).is_some_and(|r| r.stage == Stage::Staging);
            assert!(
                runs.iter().is_sorted_by_key(staging),
                "a run that is not sent stands before one that is"
            );
            // Another owner's task of the same name is another task: its parent ran again elsewhere.
            let same = |r: &Run| r.task == run.task && r.attempt == run.attempt && r.lease.0 == run.lease.0;
            let started = self.runs.iter().filter(|(_, r)| same(r)).count();
            assert_eq!(started, 1, "an attempt of {} is started twice", run.task);
        }
    }

    fn stage(&mut self, run: Run, out: &mut Vec<Action>) {
        let client = run.client;
        let number = self.runs.insert(run);
        self.runs_of.entry(client).or_default().push_back(number);
        if self.leases.is_blocked(client) {
            self.return_run(number, out);
        } else {
            self.arguments_ready(number, out);
        }
    }

    /// The task of a worker waits for values.
    pub(super) fn blocked(&mut self, client: ClientId, returned: &[u32], out: &mut Vec<Action>) {
        if let Some((owner, lease)) = self.leases.lease_of(client)
            && owner == self.id
        {
            self.owner.lease_paused(lease);
        }
        self.given_back(client, returned, out);
        self.staging_given_back(client, out);
        self.lease_change(out, |leases, effects| leases.blocked(client, effects));
        if self.has_runs_behind(client) {
            // Sent before the node knew: behind a blocked task, they could wait for each other.
            out.push(Action::StealBack { client, count: u32::MAX });
        }
    }

    /// The owner of a lease wants back what has not started under it.
    pub(super) fn steal_back(&mut self, key: LeaseKey, out: &mut Vec<Action>) {
        if let Some(client) = self.leases.worker(key) {
            self.staging_behind_given_back(client, out);
            out.push(Action::StealBack { client, count: u32::MAX });
        }
    }

    /// Whether more than one run is with a worker.
    pub(super) fn has_runs_behind(&self, client: ClientId) -> bool {
        self.runs_of.get(&client).is_some_and(|runs| 1 < runs.len())
    }

    /// A run that is sent overtakes those of its worker that still wait for arguments: the worker has it
    /// first.
    fn line_up(&mut self, client: ClientId, run: Slot<Run>) {
        let Some(runs) = self.runs_of.get_mut(&client) else { return };
        let Some(mut at) = runs.iter().rposition(|n| *n == run) else { return };
        while 0 < at && self.runs.get(runs[at - 1]).is_some_and(|r| r.stage == Stage::Staging) {
            runs.swap(at - 1, at);
            at -= 1;
        }
        let first = runs.front().copied();
        self.mark_first(first);
    }

    /// Notes since when the first run of a worker can have run.
    fn mark_first(&mut self, first: Option<Slot<Run>>) {
        if let Some(run) = first.and_then(|n| self.runs.get_mut(n))
            && run.stage == (Stage::Sent { first_since: None })
        {
            run.stage = Stage::Sent { first_since: Some(self.now) };
            if 0 < run.memory_bytes {
                self.pressure.look_now();
            }
        }
    }
}

impl Origin {
    /// What the run calls; `None` if its task is not under its lease any more.
    fn call<'a>(&'a self, owner: &'a Owner, lease: LeaseId) -> Option<Call<'a>> {
        match self {
            Self::Own(place) => {
                let view = owner.start_view(*place, lease)?;
                let (class, class_number) = (view.class, view.class_number);
                Some(Call { class, class_number, payload: view.payload, dependencies: view.dependencies })
            }
            Self::Lent(lent) => {
                let (class, class_number) = (&lent.class, lent.class_number);
                Some(Call { class, class_number, payload: &lent.payload, dependencies: &lent.dependencies })
            }
        }
    }
}

impl Run {
    fn due(&self) -> Option<Now> {
        match self.stage {
            Stage::Sent { first_since: Some(since) } if self.timeout_ms > 0 => {
                Some(since + self.timeout_ms * MS)
            }
            _ => None,
        }
    }
}
