//! Actors in a ledger: order, loss, restart and end.

use crate::event::{Member, Value};
use crate::owner::{Effect, Ended, Owner, Submission};
use crate::place::View;
use std::sync::Arc;
use tharsis_types::failure::Executed;
use tharsis_types::limits::PIPELINE_DEPTH_MAX;
use tharsis_types::peer::{DoneOutcome, DoneValue};
use tharsis_types::task::{CallRules, Output, Role};
use tharsis_types::{
    ClientId, Dependency, Failure, FailureKind, FunctionId, JobId, LeaseId, NodeId, ObjectId, RefId,
    Resources, TaskArgs, TaskClass, TaskId,
};

const ME: NodeId = NodeId(1);
const DRIVER: ClientId = ClientId(1);
const WORKER: ClientId = ClientId(2);

const TASK: u32 = 0;
const CONSTRUCTOR: u32 = 1;
const METHOD: u32 = 2;
/// Methods by their rules.
const OUT_OF_ORDER: u32 = 3;
const BOUNDED: u32 = 4;
const GROUP_0: u32 = 5;
const GROUP_1: u32 = 6;
const DETACHED: u32 = 7;
const WIDE: u32 = 8;
/// Calls of `WIDE` that run at the same time.
const WIDE_LIMIT: u32 = 1000;

/// A ledger with an actor that lives, and the effects since.
struct Ledger {
    owner: Owner,
    view: View,
    out: Vec<Effect>,
    next: u64,
    home: LeaseId,
    constructor: TaskId,
}

/// A call that was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Started {
    lease: LeaseId,
    task: TaskId,
}

impl Ledger {
    fn new(max_restarts: i32, max_task_retries: i32) -> Self {
        let member = Member { node: ME, resources: Resources::default(), labels: Vec::new() };
        let mut ledger = Self {
            owner: Owner::new(ME, 0),
            view: View::new(member, usize::MAX),
            out: Vec::new(),
            next: 0,
            home: LeaseId(0),
            constructor: TaskId::root(JobId(1)),
        };
        let class = |role, max_retries| {
            Arc::new(TaskClass { role, max_retries, ..TaskClass::new(JobId(1), FunctionId(1), "f") })
        };
        for client in [DRIVER, WORKER] {
            ledger.owner.define_class(client, TASK, &class(Role::Task, 0));
            ledger.owner.define_class(client, CONSTRUCTOR, &class(Role::Constructor, max_restarts));
            ledger.owner.define_class(client, METHOD, &class(Role::Method, max_task_retries));
            let detached = TaskClass { detached: true, ..TaskClass::clone(&class(Role::Constructor, 0)) };
            ledger.owner.define_class(client, DETACHED, &Arc::new(detached));
            let usual = CallRules::default();
            let rules = [
                (OUT_OF_ORDER, CallRules { out_of_order: true, ..usual }),
                (BOUNDED, CallRules { max_pending: 2, ..usual }),
                (GROUP_0, CallRules { concurrent: true, ..usual }),
                (GROUP_1, CallRules { concurrent: true, group: 1, ..usual }),
                (WIDE, CallRules { concurrent: true, group: 2, limit: WIDE_LIMIT, ..usual }),
            ];
            for (number, calls) in rules {
                let class = TaskClass { calls, ..TaskClass::clone(&class(Role::Method, 0)) };
                ledger.owner.define_class(client, number, &Arc::new(class));
            }
        }
        ledger.constructor = ledger.submit(DRIVER, CONSTRUCTOR, &[]);
        ledger.construct();
        ledger
    }

    fn actor(&self) -> ObjectId {
        ObjectId::output(self.constructor, 0)
    }

    fn submit(&mut self, client: ClientId, class: u32, dependencies: &[(u16, ObjectId)]) -> TaskId {
        self.next += 1;
        let task = TaskId::root(JobId(1)).child(self.next);
        let dependencies = dependencies.iter().map(|(parameter, object)| Dependency {
            reference: RefId { object: *object, owner: ME },
            parameter: *parameter,
        });
        let args =
            TaskArgs { payload: [1].into(), dependencies: dependencies.collect(), ..TaskArgs::default() };
        let tokens = [self.next].into_iter().collect();
        self.owner.submit(
            Submission { client, parent: None, depth: 0, deadline: None, class, task, tokens, args },
            &mut self.out,
        );
        self.round();
        task
    }

    fn call(&mut self, client: ClientId) -> TaskId {
        self.submit(client, METHOD, &[(Dependency::ACTOR, self.actor())])
    }

    fn round(&mut self) {
        self.owner.schedule(1, &mut self.view, &mut self.out);
        self.owner.check(std::iter::empty());
    }

    /// Grants the lease that was asked for, and lets the constructor return.
    fn construct(&mut self) {
        self.home = self.asked();
        self.owner.lease_granted(1, self.home, ME, &mut self.out);
        self.round();
        let started = self.take_started();
        assert_eq!(started.iter().map(|s| s.task).collect::<Vec<_>>(), [self.constructor]);
        self.returns(started[0]);
    }

    /// The lease that was asked for.
    fn asked(&mut self) -> LeaseId {
        let asked = self.out.iter().find_map(|effect| match effect {
            Effect::RequestLease { lease, .. } => Some(*lease),
            _ => None,
        });
        let asked = asked.unwrap_or_else(|| panic!("no lease was asked for: {:?}", self.out));
        self.out.clear();
        asked
    }

    /// Grants the attachment that was asked for.
    fn attach(&mut self) -> LeaseId {
        let asked = self.out.iter().find_map(|effect| match effect {
            Effect::Attach { to, lease, actor } => Some((*to, *lease, *actor)),
            _ => None,
        });
        let Some((to, lease, actor)) = asked else { panic!("nothing was attached to: {:?}", self.out) };
        assert_eq!((to, actor), (ME, self.constructor));
        self.out.clear();
        self.owner.lease_granted(1, lease, ME, &mut self.out);
        self.round();
        lease
    }

    fn take_started(&mut self) -> Vec<Started> {
        let started = std::mem::take(&mut self.out).into_iter().filter_map(|effect| match effect {
            Effect::Start { lease, task, .. } => {
                Some(Started { lease, task: self.owner.start_view(task, lease).unwrap().id })
            }
            _ => None,
        });
        started.collect()
    }

    fn ends(&mut self, started: Started, outcome: DoneOutcome) {
        let attempt = self.attempt(started.task);
        let ended = Ended { lease: started.lease, task: started.task, attempt, run_ns: 1, node: ME };
        assert!(self.owner.ended(1, &ended, outcome, &mut self.out), "it was awaited");
        self.round();
    }

    fn attempt(&self, task: TaskId) -> u32 {
        let found = self.owner.tasks.iter().find(|(_, known)| known.id() == task);
        found.map_or(0, |(_, task)| task.attempt())
    }

    fn returns(&mut self, started: Started) {
        let output = Output { value: DoneValue::Inline([7].as_slice().into()), nested: Vec::new() };
        self.ends(started, DoneOutcome::Returned([output].into_iter().collect()));
    }

    fn crashes(&mut self, started: Started) {
        let failure = Arc::new(Failure::new(FailureKind::WorkerCrashed, "gone"));
        self.ends(started, DoneOutcome::Failed { error_type: String::new(), failure });
    }

    /// The worker of the actor is gone, as its node reports it.
    fn worker_lost(&mut self, running: Option<Started>, attachment: LeaseId) {
        if let Some(running) = running {
            self.crashes(running);
        }
        self.crashes(Started { lease: self.home, task: self.constructor });
        for lease in [self.home, attachment] {
            self.owner.lease_revoked(lease, &mut self.out);
            self.round();
        }
    }

    fn failure(&self, task: TaskId) -> (FailureKind, Option<Executed>) {
        match self.owner.value_ref(ObjectId::output(task, 0)) {
            Some(Value::Failed(failure)) => (failure.kind, failure.executed),
            other => panic!("{task} has not failed: {other:?}"),
        }
    }

    fn release(&mut self, client: ClientId, task: TaskId, token: u64) {
        self.owner.released(client, token, ObjectId::output(task, 0), &mut self.out);
        self.round();
    }
}

fn tasks(started: &[Started]) -> Vec<TaskId> {
    started.iter().map(|started| started.task).collect()
}

#[test]
fn a_call_waits_for_those_before_it_of_its_caller_only() {
    let mut ledger = Ledger::new(0, 0);
    let made = ledger.submit(DRIVER, TASK, &[]);
    let asked = ledger.asked();
    let late = ObjectId::output(made, 0);
    let actor = (Dependency::ACTOR, ledger.actor());
    let first = ledger.submit(DRIVER, METHOD, &[actor, (0, late)]);
    let second = ledger.call(DRIVER);
    assert!(!ledger.out.iter().any(|effect| matches!(effect, Effect::Attach { .. })), "nothing can be sent");
    let other = ledger.call(WORKER);
    ledger.attach();
    assert_eq!(tasks(&ledger.take_started()), [other], "the other caller does not wait");
    ledger.owner.lease_granted(1, asked, ME, &mut ledger.out);
    ledger.round();
    let started = ledger.take_started();
    assert_eq!(tasks(&started), [made]);
    ledger.returns(started[0]);
    assert_eq!(tasks(&ledger.take_started()), [first, second]);
}

#[test]
fn a_call_overtakes_those_that_wait_where_that_is_allowed() {
    let mut ledger = Ledger::new(0, 0);
    let made = ledger.submit(DRIVER, TASK, &[]);
    let late = ObjectId::output(made, 0);
    ledger.out.clear();
    let actor = (Dependency::ACTOR, ledger.actor());
    ledger.submit(DRIVER, OUT_OF_ORDER, &[actor, (0, late)]);
    let second = ledger.submit(DRIVER, OUT_OF_ORDER, &[actor]);
    let lease = ledger.attach();
    assert_eq!(tasks(&ledger.take_started()), [second]);
    let attempt = ledger.attempt(second);
    ledger.owner.given_back(lease, &[(second, attempt)], false, &mut ledger.out);
    assert!(!ledger.owner.is_closed(lease), "a call that comes back holds up no other");
    ledger.round();
    assert_eq!(tasks(&ledger.take_started()), [second]);
}

/// Each of these calls has a line of its own, and most wait for an argument.
#[test]
fn a_call_costs_the_same_however_many_lines_wait() {
    const COUNT: usize = 200;
    let mut ledger = Ledger::new(0, 0);
    let made = ledger.submit(DRIVER, TASK, &[]);
    let late = ObjectId::output(made, 0);
    let actor = (Dependency::ACTOR, ledger.actor());
    ledger.submit(DRIVER, OUT_OF_ORDER, &[actor]);
    ledger.round();
    ledger.attach();
    for _ in 0..COUNT {
        ledger.submit(DRIVER, OUT_OF_ORDER, &[actor, (0, late)]);
    }
    for _ in 0..COUNT {
        ledger.submit(DRIVER, OUT_OF_ORDER, &[actor]);
        let started = ledger.take_started();
        started.into_iter().for_each(|started| ledger.returns(started));
    }
    let steps: usize = ledger.owner.actors.called.values().map(|called| called.steps).sum();
    assert!(steps < 8 * COUNT, "{steps} steps");
}

#[test]
fn a_caller_has_no_more_unfinished_calls_than_it_may() {
    let mut ledger = Ledger::new(0, 0);
    let actor = (Dependency::ACTOR, ledger.actor());
    let calls = [0, 1].map(|_| ledger.submit(DRIVER, BOUNDED, &[actor]));
    let refused = ledger.submit(DRIVER, BOUNDED, &[actor]);
    assert_eq!(ledger.failure(refused), (FailureKind::TooManyPendingCalls, Some(Executed::No)));
    let other = ledger.submit(WORKER, BOUNDED, &[actor]);
    ledger.attach();
    let started = ledger.take_started();
    assert_eq!(tasks(&started), [calls[0], other, calls[1]], "each caller has its own bound");
    ledger.returns(started[0]);
    let next = ledger.submit(DRIVER, BOUNDED, &[actor]);
    assert_eq!(tasks(&ledger.take_started()), [next]);
}

#[test]
fn an_actor_keeps_the_order_of_calls_that_come_after_others_without_one() {
    let mut ledger = Ledger::new(0, 0);
    let actor = (Dependency::ACTOR, ledger.actor());
    ledger.submit(DRIVER, OUT_OF_ORDER, &[actor]);
    let attachment = ledger.attach();
    ledger.owner.actors.close(attachment);
    assert!(!ledger.owner.actors.is_closed(attachment), "no call waits for another one");
    ledger.call(DRIVER);
    ledger.owner.actors.close(attachment);
    assert!(ledger.owner.actors.is_closed(attachment));
}

#[test]
fn a_group_that_is_full_does_not_hold_up_another() {
    let mut ledger = Ledger::new(0, 0);
    let actor = (Dependency::ACTOR, ledger.actor());
    for _ in 0..PIPELINE_DEPTH_MAX + 1 {
        ledger.submit(DRIVER, GROUP_1, &[actor]);
    }
    ledger.attach();
    assert_eq!(ledger.take_started().len(), PIPELINE_DEPTH_MAX);
    let other = ledger.submit(DRIVER, GROUP_0, &[actor]);
    assert_eq!(tasks(&ledger.take_started()), [other]);
}

/// A call may wait in the actor for a later one: all that the actor runs at the same time are sent.
#[test]
fn an_actor_gets_as_many_calls_as_it_runs_at_the_same_time() {
    let mut ledger = Ledger::new(0, 0);
    let actor = (Dependency::ACTOR, ledger.actor());
    for _ in 0..WIDE_LIMIT as usize + PIPELINE_DEPTH_MAX + 1 {
        ledger.submit(DRIVER, WIDE, &[actor]);
    }
    ledger.attach();
    assert_eq!(ledger.take_started().len(), WIDE_LIMIT as usize + PIPELINE_DEPTH_MAX);
}

#[test]
fn an_actor_without_restarts_ends_with_its_worker() {
    let mut ledger = Ledger::new(0, 3);
    let calls = [0, 1, 2].map(|_| ledger.call(DRIVER));
    let attachment = ledger.attach();
    let started = ledger.take_started();
    assert_eq!(tasks(&started), calls);
    ledger.returns(started[0]);
    let waiting = ledger.call(WORKER);
    ledger.take_started();
    ledger.worker_lost(Some(started[1]), attachment);
    assert_eq!(ledger.failure(calls[1]), (FailureKind::ActorDied, Some(Executed::Unknown)));
    for call in [calls[2], waiting, ledger.call(DRIVER)] {
        assert_eq!(ledger.failure(call), (FailureKind::ActorDied, Some(Executed::No)));
    }
}

#[test]
fn an_actor_with_restarts_lives_again_and_its_calls_keep_their_order() {
    let mut ledger = Ledger::new(1, 0);
    let calls = [0, 1, 2].map(|_| ledger.call(DRIVER));
    let attachment = ledger.attach();
    let started = ledger.take_started();
    ledger.worker_lost(Some(started[0]), attachment);
    assert_eq!(ledger.failure(calls[0]), (FailureKind::ActorUnavailable, Some(Executed::Unknown)));
    let later = ledger.call(DRIVER);
    ledger.construct();
    let attachment = ledger.attach();
    let started = ledger.take_started();
    assert_eq!(tasks(&started), [calls[1], calls[2], later]);
    ledger.worker_lost(None, attachment);
    for call in [calls[1], calls[2], later] {
        assert_eq!(ledger.failure(call), (FailureKind::ActorDied, Some(Executed::No)), "no restart is left");
    }
}

#[test]
fn a_call_with_retries_runs_again_in_its_place() {
    let mut ledger = Ledger::new(1, 1);
    let calls = [0, 1].map(|_| ledger.call(DRIVER));
    let attachment = ledger.attach();
    let started = ledger.take_started();
    ledger.worker_lost(Some(started[0]), attachment);
    ledger.construct();
    let attachment = ledger.attach();
    assert_eq!(tasks(&ledger.take_started()), calls);
    ledger.worker_lost(None, attachment);
    assert_eq!(
        ledger.failure(calls[0]),
        (FailureKind::ActorDied, Some(Executed::Unknown)),
        "its first attempt may have run"
    );
    assert_eq!(ledger.failure(calls[1]), (FailureKind::ActorDied, Some(Executed::No)));
}

#[test]
fn the_last_handle_and_the_last_call_end_the_actor() {
    let mut ledger = Ledger::new(0, 0);
    let call = ledger.call(DRIVER);
    let token = ledger.next;
    let attachment = ledger.attach();
    let started = ledger.take_started();
    let (constructor, home) = (ledger.constructor, ledger.home);
    ledger.release(DRIVER, constructor, 1);
    assert!(ledger.out.is_empty(), "a call runs: {:?}", ledger.out);
    ledger.returns(started[0]);
    for lease in [attachment, home] {
        assert!(ledger.out.contains(&Effect::ReturnLease { to: ME, lease }), "{:?}", ledger.out);
    }
    ledger.release(DRIVER, call, token);
    let left: Vec<_> = ledger.owner.leftovers().filter(|(_, count)| 0 < *count).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_killed_actor_is_not_started_again() {
    let mut ledger = Ledger::new(-1, -1);
    let (running, waiting) = (ledger.call(DRIVER), ledger.call(DRIVER));
    let attachment = ledger.attach();
    let started = ledger.take_started();
    ledger.owner.cancel(ledger.actor(), true, false, &mut ledger.out);
    let kill = Effect::Cancel { to: ME, task: ledger.constructor, force: true, recursive: false };
    assert!(ledger.out.contains(&kill), "{:?}", ledger.out);
    let cancelled = Failure::new(FailureKind::Cancelled, "killed");
    let failure = Arc::new(Failure::new(FailureKind::WorkerCrashed, "gone").because(cancelled));
    ledger.ends(started[0], DoneOutcome::Failed { error_type: String::new(), failure });
    ledger.worker_lost(None, attachment);
    assert_eq!(ledger.failure(running), (FailureKind::ActorDied, Some(Executed::Unknown)));
    assert_eq!(ledger.failure(waiting), (FailureKind::ActorDied, Some(Executed::No)));
}

/// The actor may be that of another job, which does not die with who called it.
#[test]
fn a_call_whose_job_has_ended_is_told_and_its_worker_is_not_killed_for_it() {
    let mut ledger = Ledger::new(0, 0);
    let call = ledger.call(DRIVER);
    ledger.attach();
    ledger.take_started();
    ledger.owner.drop_job(JobId(1), &mut ledger.out);
    let cancel = |task, force| Effect::Cancel { to: ME, task, force, recursive: false };
    assert!(ledger.out.contains(&cancel(call, false)), "{:?}", ledger.out);
    assert!(ledger.out.contains(&cancel(ledger.constructor, true)), "its own actors end");
}

#[test]
fn a_detached_actor_needs_no_handle_and_ends_when_it_is_killed() {
    let mut ledger = Ledger::new(0, 0);
    let constructor = ledger.submit(DRIVER, DETACHED, &[]);
    let (token, lease, actor) = (ledger.next, ledger.asked(), ObjectId::output(constructor, 0));
    ledger.owner.lease_granted(1, lease, ME, &mut ledger.out);
    ledger.round();
    let started = ledger.take_started();
    ledger.returns(started[0]);
    ledger.release(DRIVER, constructor, token);
    assert!(ledger.owner.has_detached(JobId(1)) && ledger.owner.value_ref(actor).is_some());
    assert!(!ledger.out.contains(&Effect::ReturnLease { to: ME, lease }), "{:?}", ledger.out);
    ledger.owner.cancel(actor, true, false, &mut ledger.out);
    let kill = Effect::Cancel { to: ME, task: constructor, force: true, recursive: false };
    assert!(ledger.out.contains(&kill), "{:?}", ledger.out);
    ledger.crashes(started[0]);
    assert!(!ledger.owner.has_detached(JobId(1)) && ledger.owner.value_ref(actor).is_none());
}

#[test]
fn a_method_needs_an_actor() {
    let mut ledger = Ledger::new(0, 0);
    let without = ledger.submit(DRIVER, METHOD, &[]);
    assert_eq!(ledger.failure(without).0, FailureKind::InvalidArgument);
    let value = ObjectId::put(TaskId::root(JobId(1)), 0);
    let inline = Value::Inline([1, 2].as_slice().into());
    ledger.owner.put(DRIVER, 77, value, inline, &[], &mut ledger.out);
    let wrong = ledger.submit(DRIVER, METHOD, &[(Dependency::ACTOR, value)]);
    assert_eq!(ledger.failure(wrong), (FailureKind::InvalidArgument, Some(Executed::No)));
}
