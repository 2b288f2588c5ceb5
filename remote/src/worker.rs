//! The worker loop, which runs tasks and reports their results.
//!
//! One thread executes tasks. While it has nothing to run, it leads the inbound ring and so finds its next
//! task itself. While the user's code runs, the pump reads, and handles urgent requests: it hands back tasks
//! that were sent ahead and are needed elsewhere, and marks a cancelled task. Each end is reported at once: a
//! report costs two stores, and wakes the node only if it sleeps. Delaying a report until the next task ends
//! would save those stores, but could make a caller wait for an unrelated task.
//!
//! The calls of an actor that runs several at the same time are executed by threads of their groups
//! (`groups.rs`); the thread of the worker then only finds them.

use crate::call::{Outputs, TaskCall, into_failure};
use crate::client::Client;
use crate::codec::Payload;
use crate::current;
use crate::error::Result;
use crate::groups::Groups;
use crate::hosted::Hosted;
use crate::link::Link;
use crate::panics::{drop_payload, hook_panics, panic_failure};
use crate::pump::{Condition, Reader};
use crate::registry;
use crate::task::{self, TaskState};
use crate::work::{Argument, Next, Run, origin, report_failure, unstarted};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tharsis_protos::records::{FromClient, OutcomeView, OutputsView};
use tharsis_types::task::Role;
use tharsis_types::{Dependency, Failure, FailureKind, TaskClass};

/// The time in which an actor whose worker ends may be dropped.
const ACTOR_END_WAIT: Duration = Duration::from_secs(5);

/// Runs tasks until the node ends the connection.
///
/// # Errors
/// The reason of the end, unless it was an orderly shutdown.
pub fn run_worker(client: &Client) -> Result<()> {
    hook_panics();
    let _binding = current::bind(client.clone());
    let hosted = Hosted::default();
    let mut threads = Vec::new();
    let outcome = run_tasks(client, &hosted, &mut threads);
    if let Some(groups) = client.work().groups() {
        groups.end();
    }
    // A call that runs is not stopped: an embedded worker ends after it.
    join_all(threads);
    if client.work().has_idle_actor() {
        end_actor(client, &hosted);
    }
    outcome
}

/// Waits for threads to end.
fn join_all(threads: Vec<JoinHandle<()>>) {
    threads.into_iter().filter_map(|thread| thread.join().err()).for_each(drop_payload);
}

/// Drops the actor of a worker that ends. The process may be killed as soon as the loss of the connection has
/// its consequences, so they wait for this, but not for long.
fn end_actor(client: &Client, hosted: &Hosted) {
    let link = Arc::clone(client.link());
    let watch = std::thread::Builder::new().name("tharsis-end".to_owned());
    let watching = watch.spawn(move || {
        std::thread::park_timeout(ACTOR_END_WAIT);
        link.end_loss();
    });
    hosted.end();
    match watching {
        Ok(watching) => watching.thread().unpark(),
        Err(_) => client.link().end_loss(),
    }
}

fn run_tasks(client: &Client, hosted: &Hosted, threads: &mut Vec<JoinHandle<()>>) -> Result<()> {
    let (link, work) = (client.link(), client.work());
    // A queued task begins when the one before it ends, so the clock is read once for both.
    let mut now = None;
    loop {
        match work.next() {
            Some(Next::Begins(run)) => {
                now = Some(execute(client, hosted, run, now.unwrap_or_else(Instant::now)));
            }
            Some(Next::InGroup { group, needs_thread }) => {
                let groups = work.groups().filter(|_| needs_thread);
                threads.extend(groups.and_then(|groups| start_thread(client, hosted, groups, group)));
            }
            None if work.is_leaving() => return leave(client, hosted, threads),
            None => {
                now = None;
                let has_news = || work.has_next() || work.is_leaving();
                let mut condition = Condition {
                    is_met: &mut || has_news(),
                    subscribe: &mut || {
                        link.inbound.stand_by();
                        has_news()
                    },
                };
                if !link.wait(&mut condition, None) {
                    return end_of(link);
                }
            }
        }
        if link.is_lost() {
            return end_of(link);
        }
    }
}

/// The outcome of a worker whose connection has ended.
fn end_of(link: &Link) -> Result<()> {
    let loss = link.loss();
    if loss.kind() == FailureKind::Shutdown { Ok(()) } else { Err(loss) }
}

/// Ends the actor of a worker: runs its last calls, tells the node, and waits for it to end the connection.
fn leave(client: &Client, hosted: &Hosted, threads: &mut Vec<JoinHandle<()>>) -> Result<()> {
    let (link, work) = (client.link(), client.work());
    for run in work.take_last() {
        match work.groups() {
            Some(groups) => threads.extend(execute_beside(client, hosted, groups, run)),
            None => drop(execute(client, hosted, run, Instant::now())),
        }
    }
    if let Some(groups) = work.groups() {
        groups.leave();
        join_all(std::mem::take(threads));
    }
    link.send(&FromClient::ActorEnded)?;
    let mut condition = Condition {
        is_met: &mut || false,
        subscribe: &mut || {
            link.inbound.stand_by();
            false
        },
    };
    // Calls that arrive until the node has heard of the end go back to their callers.
    link.wait(&mut condition, None);
    end_of(link)
}

/// Queues a call in its group; returns the thread that was started for it, if it needed one.
fn execute_beside(
    client: &Client,
    hosted: &Hosted,
    groups: &Arc<Groups<Run>>,
    run: Run,
) -> Option<JoinHandle<()>> {
    let group = run.class.calls.group;
    if groups.push(group, run) { start_thread(client, hosted, groups, group) } else { None }
}

/// Starts one more thread for the calls of a group; returns it, if that is possible.
fn start_thread(
    client: &Client,
    hosted: &Hosted,
    groups: &Arc<Groups<Run>>,
    group: u16,
) -> Option<JoinHandle<()>> {
    let (of_thread, shared, queues) = (client.clone(), hosted.shared(), Arc::clone(groups));
    let execute_all = move || {
        let _binding = current::bind(of_thread.clone());
        let hosted = Hosted::from(shared);
        while let Some(run) = queues.next(group) {
            execute(&of_thread, &hosted, run, Instant::now());
        }
    };
    match std::thread::Builder::new().name("tharsis-call".to_owned()).spawn(execute_all) {
        Ok(thread) => Some(thread),
        Err(cause) => {
            let failure =
                Failure::new(FailureKind::ResourceExhausted, format!("no thread for a call: {cause}"));
            for run in groups.thread_failed(group) {
                client.work().never_begins(run.slot);
                let at = origin(client.link(), &run.class, run.task, run.attempt);
                report_failure(client.link(), run.slot, 0, failure.clone().at(at));
            }
            None
        }
    }
}

/// Runs a task that starts now, reports its end and returns the time of the end.
fn execute(client: &Client, hosted: &Hosted, run: Run, started: Instant) -> Instant {
    let (link, work) = (client.link(), client.work());
    let Run { slot, attempt, task: id, class, payload, arguments } = run;
    let state = Arc::new(TaskState::new(id, attempt, Some(slot), Some(Arc::clone(&class))));
    let is_cancelled = work.begin(Arc::clone(&state));
    if is_cancelled {
        work.end(slot);
        report_failure(link, slot, 0, unstarted().at(origin(link, &class, id, attempt)));
        return started;
    }
    if link.is_lost() {
        // Whoever noticed the loss may have found nothing running.
        work.end(slot);
        return started;
    }
    let outer = task::replace_task(Some((link.serial, state)));
    let outcome = call(client, hosted, &class, payload, &arguments);
    if class.role == Role::Constructor && outcome.is_ok() {
        let function = registry::find(class.function, class.signature, &class.function_name);
        work.belongs_to_actor(function.map_or(&[] as &[u32], |function| function.definition.groups));
    }
    let is_lent = work.task_ended(link);
    let ended = Instant::now();
    let run_ns = u64::try_from(ended.duration_since(started).as_nanos()).unwrap_or(u64::MAX);
    task::replace_task(outer);
    work.end(slot);
    // Done before the report: the node handles records in order, and the arguments' pins end with the task.
    arguments.into_iter().for_each(|argument| argument.prolong(client.connection()));
    match outcome {
        Ok(mut outputs) => {
            let view = OutputsView::new(outputs.count, &outputs.bytes);
            let sent = link.send(&FromClient::Done { slot, run_ns, outcome: OutcomeView::Returned(view) });
            if sent.is_ok() {
                outputs.sent();
            }
            outputs.recycle();
            if let Err(refused) = sent {
                // Without a report its readers would wait forever. If the connection is lost, this fails too.
                let failure = into_failure(refused).at(origin(link, &class, id, attempt));
                report_failure(link, slot, run_ns, failure);
            }
        }
        Err(failure) => report_failure(link, slot, run_ns, failure.at(origin(link, &class, id, attempt))),
    }
    if is_lent {
        work.reported(link);
    }
    ended
}

fn call(
    client: &Client,
    hosted: &Hosted,
    class: &TaskClass,
    payload: Box<[u8]>,
    arguments: &[Argument],
) -> Result<Outputs, Failure> {
    let function = registry::find(class.function, class.signature, &class.function_name)?;
    let inline;
    let payload = match arguments.iter().find(|argument| argument.parameter == Dependency::WHOLE) {
        Some(whole) => whole.payload(client.connection()).map_err(into_failure)?,
        None => {
            inline = Payload::Inline(payload);
            &inline
        }
    };
    let mut call = TaskCall::new(client.connection(), class, payload, arguments, hosted)?;
    let run = AssertUnwindSafe(|| (function.definition.run)(&mut call));
    match catch_unwind(run) {
        Ok(Ok(())) => Ok(call.outputs),
        Ok(Err(failure)) => Err(failure),
        Err(panic) => {
            let failure = panic_failure(panic.as_ref());
            drop_payload(panic);
            Err(failure)
        }
    }
}
