//! The worker loop: tasks in, results out.
//!
//! One thread executes. While it has nothing to run it leads the reception and so finds its next task itself;
//! while the user's code runs, the pump reads, and answers what cannot wait: it hands back tasks that were
//! sent ahead and are wanted elsewhere, and marks a cancelled one. Each end is reported at once: a report
//! costs two stores, and wakes the node only if it sleeps. Holding a report back until the next task ends
//! would save those stores and could make a caller wait for a task that has nothing to do with it.
//!
//! A task that waits for other tasks lends its slot: everything sent ahead is handed back with the news that
//! it is blocked, and it goes on when the node says so. What the node sent before that news reached it is
//! handed back as it arrives: the task that is waited for may be among it. Threads that a task has started
//! wait like the task itself: the slot is lent when the first waits, and taken back when the last has its
//! value.

use crate::call::{TaskCall, into_failure};
use crate::client::{Client, Core};
use crate::codec::Payload;
use crate::current::{self, TaskState};
use crate::error::{Error, Result, decode_failure, encode_failure};
use crate::memory::ArgumentPin;
use crate::pump::Wish;
use crate::registry::{self, Function};
use parking_lot::Mutex;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use tharsis_protos::records::{ArgumentsView, FromClient, OutcomeView, OutputsView, SlotsView, ValueView};
use tharsis_types::failure::Origin;
use tharsis_types::hash::IdMap;
use tharsis_types::limits::{FAILURE_BYTES_MAX, FAILURE_TEXT_KEPT};
use tharsis_types::{Attempt, Dependency, Extent, Failure, FailureKind, RefId, TaskClass, TaskId};

/// A class of tasks that the node may send, and the function behind it if this program has it.
pub(crate) struct RunClass {
    pub(crate) class: TaskClass,
    function: std::result::Result<Function, Failure>,
}

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

/// A task that waits for its turn in this worker.
struct Run {
    slot: u32,
    attempt: Attempt,
    task: TaskId,
    class: Arc<RunClass>,
    payload: Box<[u8]>,
    arguments: Vec<Argument>,
}

/// What a worker has on its desk.
#[derive(Default)]
pub(crate) struct Desk {
    classes: Mutex<IdMap<u32, Arc<RunClass>>>,
    queue: Mutex<VecDeque<Run>>,
    running: Mutex<Option<Arc<TaskState>>>,
    /// From the news that the running task waits until the node says that it may go on.
    is_lent: AtomicBool,
    lending: Mutex<Lending>,
}

/// Who waits in the running task.
#[derive(Default)]
struct Lending {
    waiting: usize,
    tasks_ended: u64,
}

/// That a thread waits in a task, whose slot is lent meanwhile.
#[derive(Clone, Copy)]
pub(crate) struct Loan {
    /// Tasks that had ended before: a loan is void when its task has ended, although the thread goes on.
    tasks_ended: u64,
}

impl Desk {
    /// Learns a class.
    pub(crate) fn define(&self, number: u32, definition: &[u8]) -> Result<(), Failure> {
        let class: TaskClass = postcard::from_bytes(definition).map_err(|error| {
            Failure::new(FailureKind::DataCorrupt, format!("a task class does not decode: {error}"))
        })?;
        let function = registry::find(class.function, class.signature, &class.function_name);
        self.classes.lock().insert(number, Arc::new(RunClass { class, function }));
        Ok(())
    }

    /// Queues a task.
    pub(crate) fn accept(
        &self,
        slot: u32,
        class: u32,
        attempt: Attempt,
        task: TaskId,
        payload: &[u8],
        arguments: ArgumentsView<'_>,
    ) -> Result<(), Failure> {
        let class = self.classes.lock().get(&class).cloned().ok_or_else(|| {
            Failure::new(
                FailureKind::DataCorrupt,
                format!("the node named class {class} and did not define it"),
            )
        })?;
        let arguments = arguments
            .iter()
            .map(|argument| argument.map(|(parameter, from, value)| Argument::new(parameter, from, value)))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|bad| Failure::new(FailureKind::DataCorrupt, bad.to_string()))?;
        self.queue.lock().push_back(Run { slot, attempt, task, class, payload: payload.into(), arguments });
        Ok(())
    }

    /// The task that runs.
    pub(crate) fn running(&self) -> Option<Arc<TaskState>> {
        self.running.lock().clone()
    }

    pub(crate) fn resume(&self) {
        self.is_lent.store(false, Ordering::SeqCst);
    }

    /// Whether the slot is lent, so that nothing that arrives can be started.
    pub(crate) fn is_lent(&self) -> bool {
        self.is_lent.load(Ordering::SeqCst)
    }

    /// Takes up to `count` tasks that were not started, the last ones first, as packed slots.
    fn take_back(&self, count: usize) -> Vec<u8> {
        let mut queue = self.queue.lock();
        let kept = queue.len().saturating_sub(count);
        let taken = queue.split_off(kept);
        drop(queue);
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
    pub(crate) fn payload(&self, client: &Client) -> Result<&Payload> {
        if let Some(payload) = self.payload.get() {
            return Ok(payload);
        }
        match &self.value {
            ArgumentValue::Failed(failure) => Err(failure.clone().into()),
            ArgumentValue::Inline => Err(Error::internal("an inline argument without bytes")),
            ArgumentValue::Local(extent) => {
                let mapped = self.pin.map(client, *extent)?;
                Ok(self.payload.get_or_init(|| Payload::Mapped(mapped)))
            }
        }
    }

    /// Keeps the bytes in place beyond the task if something still looks at them.
    fn prolong(self, client: &Client) {
        let Self { value, pin, payload, .. } = self;
        drop(payload);
        if let ArgumentValue::Local(extent) = value {
            pin.prolong(client, extent);
        }
    }
}

/// Runs tasks until the node ends the connection.
///
/// # Errors
/// Why it ended, unless it was an orderly shutdown.
pub fn run_worker(client: &Client) -> Result<()> {
    hook_panics();
    let _binding = current::bind(client.clone());
    let core = client.core();
    // A task that was waiting begins when the one before it ends; one look at the clock serves both.
    let mut now = None;
    loop {
        let next = core.desk.queue.lock().pop_front();
        match next {
            Some(run) => now = Some(execute(client, run, now.unwrap_or_else(Instant::now))),
            None => {
                now = None;
                let has_work = || !core.desk.queue.lock().is_empty();
                let mut wish = Wish {
                    is_true: &mut || has_work(),
                    subscribe: &mut || {
                        core.reception.stand_by();
                        has_work()
                    },
                };
                if !core.wait(&mut wish, None) {
                    let loss = core.loss();
                    return if loss.kind() == FailureKind::Shutdown { Ok(()) } else { Err(loss) };
                }
            }
        }
        if core.is_lost() {
            let loss = core.loss();
            return if loss.kind() == FailureKind::Shutdown { Ok(()) } else { Err(loss) };
        }
    }
}

/// Runs a task that starts now, reports its end and says when that was.
fn execute(client: &Client, run: Run, started: Instant) -> Instant {
    let core = client.core();
    let Run { slot, attempt, task, class, payload, arguments } = run;
    let state = Arc::new(TaskState::new(task, attempt, Some(slot), Some(Arc::clone(&class))));
    *core.desk.running.lock() = Some(Arc::clone(&state));
    let outer = current::replace_task(Some((core.serial, state)));
    let outcome = call(client, &class, payload, &arguments);
    core.end_loans();
    let ended = Instant::now();
    let run_ns = u64::try_from(ended.duration_since(started).as_nanos()).unwrap_or(u64::MAX);
    current::replace_task(outer);
    *core.desk.running.lock() = None;
    // Before the report: the node handles records in order, and the arguments' pins end with the task.
    arguments.into_iter().for_each(|argument| argument.prolong(client));
    match outcome {
        Ok(outputs) => {
            let view = OutputsView::new(outputs.count, &outputs.bytes);
            let sent = client.send(&FromClient::Done { slot, run_ns, outcome: OutcomeView::Returned(view) });
            outputs.recycle();
            if let Err(refused) = sent {
                // Without a report its readers would wait for ever; a lost connection is told to nobody.
                let failure = into_failure(refused).at(origin(core, &class, task, attempt));
                core.report_failure(slot, run_ns, failure);
            }
        }
        Err(failure) => core.report_failure(slot, run_ns, failure.at(origin(core, &class, task, attempt))),
    }
    ended
}

fn call(
    client: &Client,
    class: &RunClass,
    payload: Box<[u8]>,
    arguments: &[Argument],
) -> Result<crate::call::Outputs, Failure> {
    let function = class.function.as_ref().map_err(Clone::clone)?;
    let inline;
    let payload = match arguments.iter().find(|argument| argument.parameter == Dependency::WHOLE) {
        Some(whole) => whole.payload(client).map_err(into_failure)?,
        None => {
            inline = Payload::Inline(payload);
            &inline
        }
    };
    let mut call = TaskCall::new(client, class, payload, arguments)?;
    let run = AssertUnwindSafe(|| (function.definition.run)(&mut call));
    match catch_unwind(run) {
        Ok(Ok(())) => Ok(call.outputs),
        Ok(Err(failure)) => Err(failure),
        Err(panic) => Err(panic_failure(panic.as_ref())),
    }
}

fn origin(core: &Core, class: &RunClass, task: TaskId, attempt: Attempt) -> Origin {
    Origin {
        task_name: class.class.name.clone(),
        task: Some(task),
        call_site: class.class.call_site.clone(),
        node: Some(core.node),
        pid: Some(std::process::id()),
        attempt,
    }
}

impl Core {
    fn report_failure(&self, slot: u32, run_ns: u64, failure: Failure) {
        let error_type = match (&failure.kind, &failure.user) {
            (FailureKind::UserError, Some(user)) => user.type_name.clone(),
            _ => String::new(),
        };
        let mut encoded = encode_failure(&failure);
        if FAILURE_BYTES_MAX < encoded.len() {
            encoded = encode_failure(&shortened(failure, encoded.len()));
        }
        let outcome = OutcomeView::Failed { error_type: &error_type, failure: &encoded };
        let _ = self.send(&FromClient::Done { slot, run_ns, outcome });
    }

    /// Marks the running task as cancelled, or ends one that has not started.
    pub(crate) fn cancel_run(&self, slot: u32) {
        if let Some(state) = self.desk.running()
            && state.slot == Some(slot)
        {
            state.is_cancelled.store(true, Ordering::Relaxed);
            return;
        }
        let mut queue = self.desk.queue.lock();
        let found = queue.iter().position(|run| run.slot == slot).and_then(|at| queue.remove(at));
        drop(queue);
        if let Some(run) = found {
            let failure = Failure::new(FailureKind::Cancelled, "cancelled before it started");
            self.report_failure(slot, 0, failure.at(origin(self, &run.class, run.task, run.attempt)));
        }
    }

    /// Hands back tasks that are not started. The answer is sent even if there are none.
    pub(crate) fn give_back(&self, count: u32) {
        let slots = self.desk.take_back(count as usize);
        if let Ok(returned) = SlotsView::new(&slots) {
            let _ = self.send(&FromClient::GiveBack { returned });
        }
    }

    /// A thread of the running task waits: if it is the first, others may use the slot.
    pub(crate) fn lend_slot(&self) -> Result<Loan> {
        let mut lending = self.desk.lending.lock();
        if lending.waiting == 0 {
            self.block()?;
        }
        lending.waiting += 1;
        Ok(Loan { tasks_ended: lending.tasks_ended })
    }

    /// A thread has waited for long enough: if it is the last, it waits until the running task may go on.
    pub(crate) fn reclaim_slot(&self, loan: Loan) -> Result<()> {
        // Held until the slot is back: a thread that begins to wait meanwhile lends it again after that.
        let mut lending = self.desk.lending.lock();
        if lending.tasks_ended != loan.tasks_ended {
            return Ok(());
        }
        lending.waiting = lending.waiting.saturating_sub(1);
        if lending.waiting == 0 { self.unblock() } else { Ok(()) }
    }

    /// The running task has ended, and with it the loans of threads that it leaves behind.
    fn end_loans(&self) {
        let mut lending = self.desk.lending.lock();
        lending.tasks_ended += 1;
        if std::mem::take(&mut lending.waiting) > 0 {
            // Should the connection be gone, the report that follows fails as well.
            let _ = self.unblock();
        }
    }

    /// Says that the running task waits, and hands back everything behind it.
    fn block(&self) -> Result<()> {
        // First the mark, then the queue: a task that is queued meanwhile is either taken here or seen as
        // lent.
        self.desk.is_lent.store(true, Ordering::SeqCst);
        let slots = self.desk.take_back(usize::MAX);
        let returned = SlotsView::new(&slots).map_err(|bad| Error::internal(bad.to_string()))?;
        self.send(&FromClient::Blocked { returned })
    }

    /// Waits until the running task may go on.
    fn unblock(&self) -> Result<()> {
        self.send(&FromClient::Unblock)?;
        let is_resumed = || !self.desk.is_lent();
        let mut wish = Wish {
            is_true: &mut || is_resumed(),
            subscribe: &mut || {
                self.reception.stand_by();
                is_resumed()
            },
        };
        if self.wait(&mut wish, None) { Ok(()) } else { Err(self.loss()) }
    }
}

thread_local! {
    /// Message and place of the last panic of a task on this thread.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
    static RUNTIME: RefCell<Option<tokio::runtime::Runtime>> = const { RefCell::new(None) };
    /// References that futures on this thread await.
    static AWAITED: Cell<usize> = const { Cell::new(0) };
    /// The loan of this thread's task while it awaits.
    static LOAN: Cell<Option<Loan>> = const { Cell::new(None) };
}

/// Notes where a task panics, and why; then does what was done before.
fn hook_panics() {
    static HOOK: std::sync::Once = std::sync::Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if current::any_own_task().is_some() {
                let place = info.location().map(ToString::to_string).unwrap_or_default();
                let backtrace = std::backtrace::Backtrace::capture();
                let mut text = format!("{} at {place}", message_of(info.payload()));
                if backtrace.status() == std::backtrace::BacktraceStatus::Captured {
                    text = format!("{text}\n{backtrace}");
                }
                PANIC.set(Some(text));
            }
            before(info);
        }));
    });
}

/// What is told of a failure that is too long to be told whole.
fn shortened(failure: Failure, len: usize) -> Failure {
    let mut short = Failure { cause: None, user: None, ..failure };
    short.message.truncate(short.message.floor_char_boundary(FAILURE_TEXT_KEPT));
    short.message += &format!(
        " [the error's value and its causes are left out: {len} bytes are above the limit of {FAILURE_BYTES_MAX}]"
    );
    short
}

fn panic_failure(payload: &(dyn std::any::Any + Send)) -> Failure {
    let text = PANIC.take().unwrap_or_else(|| message_of(payload).to_owned());
    Failure::new(FailureKind::Panicked, text)
}

fn message_of(payload: &(dyn std::any::Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message")
}

/// Runs a future of the running task to its end, on a runtime that this thread keeps.
pub(crate) fn block_on<F: Future>(client: &Client, future: F) -> Result<F::Output> {
    // Taken while in use, so that a panic in the future does not leave it borrowed.
    let runtime = match RUNTIME.take() {
        Some(runtime) => runtime,
        None => tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|cause| Error::internal(format!("cannot start an async runtime: {cause}")))?,
    };
    let mut future = std::pin::pin!(future);
    let output = runtime.block_on(std::future::poll_fn(|context| {
        let polled = future.as_mut().poll(context);
        if polled.is_pending() && AWAITED.get() > 0 && client.core().is_worker && LOAN.get().is_none() {
            // Should the connection be gone, the awaited references fail and the future goes on.
            LOAN.set(client.core().lend_slot().ok());
        }
        polled
    }));
    RUNTIME.set(Some(runtime));
    Ok(output)
}

/// A future of this thread begins to wait for a reference.
pub(crate) fn enter_await() {
    AWAITED.set(AWAITED.get() + 1);
}

/// A future of this thread has its value, or gave up; a task that lent its slot takes it back.
pub(crate) fn leave_await(client: &Client) {
    AWAITED.set(AWAITED.get().saturating_sub(1));
    if current::own_task(client).is_some()
        && let Some(loan) = LOAN.take()
    {
        let _ = client.core().reclaim_slot(loan);
    }
}
