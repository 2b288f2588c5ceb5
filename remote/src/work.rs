//! The work that a node sends to a worker: classes, queued tasks, the running task, and its slot.
//!
//! A task that waits for other tasks lends its slot: the worker reports it as blocked and hands back all
//! tasks sent ahead, and the task continues when the node resumes it. Tasks that the node sent before it got
//! this report are handed back as they arrive: the awaited task may be among them. Threads that a task has
//! started wait like the task itself: the slot is lent when the first thread waits, and taken back when the
//! last one has its value.
//!
//! The calls that an actor was sent are for no other worker: they are not handed back for the sake of one
//! that waits. A node that asks for them may not have them begun now, and sends them again later.
//!
//! `worker.rs` runs the tasks. A driver gets no work from its node.

use crate::codec::Payload;
use crate::error::{Error, Result, decode_failure, encode_failure};
use crate::groups::Groups;
use crate::handles::Connection;
use crate::link::{LentSlot, Link};
use crate::memory::ArgumentPin;
use crate::pump::Condition;
use crate::task::{TaskState, own_task};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use tharsis_protos::records::{ArgumentsView, FromClient, OutcomeView, SlotsView, ValueView};
use tharsis_types::failure::Origin;
use tharsis_types::hash::IdMap;
use tharsis_types::limits::{FAILURE_BYTES_MAX, FAILURE_TEXT_KEPT};
use tharsis_types::{Attempt, Extent, Failure, FailureKind, RefId, TaskClass, TaskId};

/// One argument that was given by reference.
pub(crate) struct Argument {
    pub(crate) parameter: u16,
    value: ArgumentValue,
    pin: Arc<ArgumentPin>,
    payload: OnceLock<Payload>,
}

enum ArgumentValue {
    Failed(Failure),
    Inline,
    Local(Extent),
}

/// A task in the queue of this worker.
pub(crate) struct Run {
    pub(crate) slot: u32,
    pub(crate) attempt: Attempt,
    pub(crate) task: TaskId,
    pub(crate) class: Arc<TaskClass>,
    pub(crate) payload: Box<[u8]>,
    pub(crate) arguments: Vec<Argument>,
}

/// The work of one worker.
#[derive(Default)]
pub(crate) struct Work {
    classes: Mutex<IdMap<u32, Arc<TaskClass>>>,
    queue: Mutex<VecDeque<Run>>,
    running: Mutex<Running>,
    /// Whether the slot is lent: from the report that the running task is blocked until the node resumes it.
    is_lent: AtomicBool,
    lending: Mutex<Lending>,
    /// Whether this worker belongs to an actor: its tasks are calls, which only it can run, in their order.
    hosts: AtomicBool,
    /// Set when the actor that lives here is to end: how many calls of the queue it runs before.
    last_calls: OnceLock<usize>,
    /// The groups of the actor that lives here, if it runs several calls at the same time.
    groups: OnceLock<Arc<Groups<Run>>>,
}

/// Tasks that run, and those that are to run no more. Whoever looks for a task in all places where it may be
/// holds the lock: on its way from one to the next a task is in none of them.
#[derive(Default)]
struct Running {
    /// The running task; several if they are calls of an actor that runs them at the same time.
    tasks: Vec<Arc<TaskState>>,
    /// Slots of tasks that have arrived and not ended or gone back, and whether one was cancelled on its way
    /// from one place to the next. A cancellation that comes too late finds no slot here and leaves none.
    at_hand: IdMap<u32, bool>,
}

/// The task that came next in the queue.
pub(crate) enum Next {
    /// It begins.
    Begins(Run),
    /// It is in the queue of its group.
    InGroup {
        /// The number of the group.
        group: u16,
        /// Whether the group needs another thread for it.
        needs_thread: bool,
    },
}

/// The fate of a task that is cancelled.
enum Cancelled {
    /// It runs, and is marked.
    Told(Arc<TaskState>),
    /// It will begin with the mark, or is over.
    Marked,
    /// It was taken out of its queue.
    Taken(Run),
}

/// When an actor that is to end does so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// Before the calls that wait in the queue.
    AtOnce,
    /// After them.
    AfterQueue,
}

/// Counts of waiting threads and of ended tasks.
#[derive(Default)]
struct Lending {
    waiting: usize,
    tasks_ended: u64,
}

/// Records from the node.
impl Work {
    /// Stores the definition of a class.
    pub(crate) fn define(&self, number: u32, definition: &[u8]) -> Result<(), Failure> {
        let class: TaskClass = postcard::from_bytes(definition).map_err(|error| {
            Failure::new(FailureKind::DataCorrupt, format!("a task class does not decode: {error}"))
        })?;
        self.classes.lock().insert(number, Arc::new(class));
        Ok(())
    }

    /// Queues a task.
    pub(crate) fn accept(
        &self,
        slot: u32,
        class: u32,
        attempt: Attempt,
        (task, name): (TaskId, &str),
        payload: &[u8],
        arguments: ArgumentsView<'_>,
    ) -> Result<(), Failure> {
        let mut class = self.classes.lock().get(&class).cloned().ok_or_else(|| {
            Failure::new(
                FailureKind::DataCorrupt,
                format!("the node named class {class} and did not define it"),
            )
        })?;
        if !name.is_empty() {
            class = Arc::new(TaskClass { name: name.to_owned(), ..(*class).clone() });
        }
        let arguments = arguments
            .iter()
            .map(|argument| argument.map(|(parameter, from, value)| Argument::new(parameter, from, value)))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|bad| Failure::new(FailureKind::DataCorrupt, bad.to_string()))?;
        self.running.lock().at_hand.insert(slot, false);
        self.queue.lock().push_back(Run { slot, attempt, task, class, payload: payload.into(), arguments });
        Ok(())
    }

    /// The running task; none if the worker runs several at the same time.
    pub(crate) fn running(&self) -> Option<Arc<TaskState>> {
        match self.running.lock().tasks.as_slice() {
            [one] if self.groups.get().is_none() => Some(Arc::clone(one)),
            _ => None,
        }
    }

    /// The task of this thread: the one that it runs or has [entered](crate::Context::enter), else the one
    /// that the worker runs.
    pub(crate) fn task_of_thread(&self, link: &Link) -> Option<Arc<TaskState>> {
        match own_task(link.serial) {
            // It has ended: what runs now is another one, with which this thread has nothing to do.
            Some(task) if task.has_ended() => None,
            None => self.running(),
            own => own,
        }
    }

    /// A task begins. Returns whether it was cancelled on its way here.
    pub(crate) fn begin(&self, task: Arc<TaskState>) -> bool {
        let mut running = self.running.lock();
        let is_cancelled = task.slot.and_then(|slot| running.at_hand.get(&slot).copied()).unwrap_or(false);
        if is_cancelled {
            task.is_cancelled.store(true, Ordering::Relaxed);
        }
        running.tasks.push(task);
        is_cancelled
    }

    /// A task that has begun ends.
    pub(crate) fn end(&self, slot: u32) {
        let mut running = self.running.lock();
        running.tasks.retain(|task| {
            let stays = task.slot != Some(slot);
            if !stays {
                task.set_ended();
            }
            stays
        });
        running.at_hand.remove(&slot);
    }

    /// A task that has not begun never will.
    pub(crate) fn never_begins(&self, slot: u32) {
        self.running.lock().at_hand.remove(&slot);
    }

    /// Takes the next task.
    pub(crate) fn next(&self) -> Option<Next> {
        let mut queue = self.queue.lock();
        let run = if self.is_leaving() { None } else { queue.pop_front() };
        Some(match (run?, self.groups.get()) {
            (run, None) => Next::Begins(run),
            // Under the lock of the queue: whoever asks for its calls meanwhile finds this one too.
            (run, Some(groups)) => {
                let group = run.class.calls.group;
                Next::InGroup { group, needs_thread: groups.push(group, run) }
            }
        })
    }

    /// Whether the queue has a task.
    pub(crate) fn has_next(&self) -> bool {
        !self.queue.lock().is_empty()
    }

    pub(crate) fn resume(&self) {
        self.is_lent.store(false, Ordering::SeqCst);
    }

    /// Whether the slot is lent, so that arriving tasks cannot be started.
    pub(crate) fn is_lent(&self) -> bool {
        self.is_lent.load(Ordering::SeqCst)
    }

    /// From now on all tasks are calls of the actor that lives here: none is handed back unasked. `limits`
    /// are those of its groups, if it runs several calls at the same time.
    pub(crate) fn belongs_to_actor(&self, limits: &[u32]) {
        if !limits.is_empty() {
            self.groups.get_or_init(|| Arc::new(Groups::new(limits)));
        }
        self.hosts.store(true, Ordering::SeqCst);
    }

    /// The groups of the actor that lives here, if it runs several calls at the same time.
    pub(crate) fn groups(&self) -> Option<&Arc<Groups<Run>>> {
        self.groups.get()
    }

    /// The actor that lives here ends: after the calls that have arrived, or without starting one more.
    pub(crate) fn leave(&self, after: Leaving) {
        let queue = self.queue.lock();
        let count = match after {
            Leaving::AtOnce => 0,
            Leaving::AfterQueue => queue.len(),
        };
        // The first one counts.
        let _ = self.last_calls.set(count);
    }

    /// Whether the actor that lives here ends.
    pub(crate) fn is_leaving(&self) -> bool {
        self.last_calls.get().is_some()
    }

    /// Takes the calls of the queue that an actor runs before it ends.
    pub(crate) fn take_last(&self) -> Vec<Run> {
        let mut queue = self.queue.lock();
        let count = self.last_calls.get().copied().unwrap_or(0).min(queue.len());
        queue.drain(..count).collect()
    }

    /// Whether an actor lives here that runs no call.
    pub(crate) fn has_idle_actor(&self) -> bool {
        self.hosts.load(Ordering::SeqCst) && self.running.lock().tasks.is_empty()
    }

    /// Removes up to `count` tasks that were not started, the last ones first; returns their packed slots.
    fn take_back(&self, count: usize) -> Vec<u8> {
        let mut running = self.running.lock();
        let mut queue = self.queue.lock();
        let kept = queue.len().saturating_sub(count);
        let mut taken = Vec::from(queue.split_off(kept));
        // Nobody asks an actor for some of its calls.
        if let Some(groups) = self.groups.get().filter(|_| taken.len() < count) {
            taken.extend(groups.take_all());
        }
        for run in &taken {
            running.at_hand.remove(&run.slot);
        }
        taken.iter().flat_map(|run| run.slot.to_le_bytes()).collect()
    }
}

impl Argument {
    fn new(parameter: u16, from: RefId, value: ValueView<'_>) -> Self {
        let payload = OnceLock::new();
        let value = match value {
            ValueView::Inline(bytes) => {
                let _ = payload.set(Payload::Inline(bytes.into()));
                ArgumentValue::Inline
            }
            ValueView::Local(extent) => ArgumentValue::Local(extent),
            ValueView::Failed(failure) => ArgumentValue::Failed(decode_failure(failure)),
            ValueView::Ready { len } => ArgumentValue::Failed(Failure::new(
                FailureKind::Internal,
                format!("the node started a task whose argument of {len} bytes is not mapped"),
            )),
        };
        Self { parameter, value, pin: ArgumentPin::new(from), payload }
    }

    /// The bytes of the argument.
    pub(crate) fn payload(&self, connection: &Arc<Connection>) -> Result<&Payload> {
        if let Some(payload) = self.payload.get() {
            return Ok(payload);
        }
        match &self.value {
            ArgumentValue::Failed(failure) => Err(failure.clone().into()),
            ArgumentValue::Inline => Err(Error::internal("an inline argument without bytes")),
            ArgumentValue::Local(extent) => {
                let mapped = self.pin.map(connection, *extent)?;
                Ok(self.payload.get_or_init(|| Payload::Mapped(mapped)))
            }
        }
    }

    /// Keeps the bytes in place beyond the task if they still have readers.
    pub(crate) fn prolong(self, connection: &Arc<Connection>) {
        let Self { value, pin, payload, .. } = self;
        drop(payload);
        if let ArgumentValue::Local(extent) = value {
            pin.prolong(connection, extent);
        }
    }
}

/// Records to the node.
impl Work {
    /// Marks the running task as cancelled, and wakes its threads and futures that wait; or ends one that has
    /// not started.
    pub(crate) fn cancel_run(&self, link: &Link, slot: u32) {
        match self.cancel(slot) {
            Cancelled::Taken(run) => report_unstarted(link, &run),
            Cancelled::Marked => {}
            Cancelled::Told(task) => task.wake_sleepers(),
        }
    }

    fn cancel(&self, slot: u32) -> Cancelled {
        let mut running = self.running.lock();
        if let Some(state) = running.tasks.iter().find(|state| state.slot == Some(slot)) {
            state.is_cancelled.store(true, Ordering::Relaxed);
            return Cancelled::Told(Arc::clone(state));
        }
        let mut queue = self.queue.lock();
        let found = queue.iter().position(|run| run.slot == slot).and_then(|at| queue.remove(at));
        drop(queue);
        if let Some(run) = found.or_else(|| self.groups.get()?.take(|run| run.slot == slot)) {
            running.at_hand.remove(&slot);
            return Cancelled::Taken(run);
        }
        if let Some(is_cancelled) = running.at_hand.get_mut(&slot) {
            *is_cancelled = true;
        }
        Cancelled::Marked
    }

    /// Hands back the tasks that have arrived while the slot is lent. Those of an actor wait here.
    pub(crate) fn give_back_arrived(&self, link: &Link) {
        if self.is_lent() && !self.hosts.load(Ordering::SeqCst) {
            self.give_back(link, u32::MAX, 0);
        }
    }

    /// Hands back tasks that were not started, with the number of the question. The answer is sent even if
    /// there are none.
    pub(crate) fn give_back(&self, link: &Link, count: u32, question: u32) {
        let slots = self.take_back(count as usize);
        if let Ok(returned) = SlotsView::new(&slots) {
            let _ = link.send(&FromClient::GiveBack { question, returned });
        }
    }

    /// Notes that a thread of the running task waits. The first one lends the slot.
    pub(crate) fn lend_slot(&self, link: &Link) -> Result<LentSlot> {
        let mut lending = self.lending.lock();
        if self.groups.get().is_some() {
            // Others run in the slot. A loan of an earlier task is void when it is reclaimed.
            return Ok(LentSlot { tasks_ended: u64::MAX });
        }
        if lending.waiting == 0 {
            self.block(link)?;
        }
        lending.waiting += 1;
        Ok(LentSlot { tasks_ended: lending.tasks_ended })
    }

    /// Ends the wait of a thread. The last one waits until the running task may continue.
    pub(crate) fn reclaim_slot(&self, link: &Link, lent: LentSlot) -> Result<()> {
        // The lock is held until the slot is back: a thread that begins to wait meanwhile lends it again
        // after that.
        let mut lending = self.lending.lock();
        if lending.tasks_ended != lent.tasks_ended {
            return Ok(());
        }
        lending.waiting = lending.waiting.saturating_sub(1);
        if lending.waiting == 0 { self.unblock(link) } else { Ok(()) }
    }

    /// Notes that the running task has ended, and with it the waits of its remaining threads. Returns whether
    /// its slot is lent: then it goes back with the report, which [`Work::reported`] follows.
    pub(crate) fn task_ended(&self, link: &Link) -> bool {
        let mut lending = self.lending.lock();
        lending.tasks_ended += 1;
        if std::mem::take(&mut lending.waiting) == 0 {
            return false;
        }
        if self.hosts.load(Ordering::SeqCst) {
            // The worker stays that of the actor. If the connection is gone, the report that follows fails
            // too.
            let _ = self.unblock(link);
            return false;
        }
        true
    }

    /// The end of a task whose slot was lent is reported. Tasks that were sent under its lease are handed
    /// back until the node answers.
    pub(crate) fn reported(&self, link: &Link) {
        // If the connection is gone, nothing arrives any more.
        let _ = link.send(&FromClient::Unblock);
    }

    /// Reports the running task as blocked, and hands back all queued tasks.
    fn block(&self, link: &Link) -> Result<()> {
        // The mark is set before the queue is emptied, so a task that is queued meanwhile is either taken
        // here or handed back on arrival.
        self.is_lent.store(true, Ordering::SeqCst);
        let hosts = self.hosts.load(Ordering::SeqCst);
        let slots = if hosts { Vec::new() } else { self.take_back(usize::MAX) };
        let returned = SlotsView::new(&slots).map_err(|bad| Error::internal(bad.to_string()))?;
        link.send(&FromClient::Blocked { returned })
    }

    /// Waits until the running task may continue.
    fn unblock(&self, link: &Link) -> Result<()> {
        link.send(&FromClient::Unblock)?;
        let is_resumed = || !self.is_lent();
        let mut condition = Condition {
            is_met: &mut || is_resumed(),
            subscribe: &mut || {
                link.inbound.stand_by();
                is_resumed()
            },
        };
        if link.wait(&mut condition, None) { Ok(()) } else { Err(link.loss()) }
    }
}

/// Reports the end of a task that was cancelled before it started.
fn report_unstarted(link: &Link, run: &Run) {
    let at = origin(link, &run.class, run.task, run.attempt);
    report_failure(link, run.slot, 0, unstarted().at(at));
}

/// Failure of a task that was cancelled before it started.
pub(crate) fn unstarted() -> Failure {
    Failure::new(FailureKind::Cancelled, "cancelled before it started")
}

/// Reports that a task has failed.
pub(crate) fn report_failure(link: &Link, slot: u32, run_ns: u64, failure: Failure) {
    let error_type = match (&failure.kind, &failure.user) {
        (FailureKind::UserError, Some(user)) => user.type_name.clone(),
        _ => String::new(),
    };
    let mut encoded = encode_failure(&failure);
    if FAILURE_BYTES_MAX < encoded.len() {
        encoded = encode_failure(&shortened(failure, encoded.len()));
    }
    let outcome = OutcomeView::Failed { error_type: &error_type, failure: &encoded };
    let _ = link.send(&FromClient::Done { slot, run_ns, outcome });
}

/// Origin of a failure of a task.
pub(crate) fn origin(link: &Link, class: &TaskClass, task: TaskId, attempt: Attempt) -> Origin {
    Origin {
        task_name: class.name.clone(),
        task: Some(task),
        call_site: class.call_site.clone(),
        node: Some(link.node),
        pid: Some(std::process::id()),
        attempt,
    }
}

/// Shortened form of a failure that is too long to be reported whole.
fn shortened(failure: Failure, len: usize) -> Failure {
    let mut short = failure.without_cause();
    short.user = None;
    short.message.truncate(short.message.floor_char_boundary(FAILURE_TEXT_KEPT));
    short.message += &format!(
        " [the error's value and its causes are left out: {len} bytes are above the limit of {FAILURE_BYTES_MAX}]"
    );
    short
}

#[cfg(test)]
mod tests;
