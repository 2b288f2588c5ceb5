//! Messages of members that have no say in what they are about: a table over all kinds of messages.
//!
//! A member is believed in what concerns itself, and may ask for what any member may have. All else counts
//! only from the node that has a say in it: the owner of an object, a task or an actor, the node that was
//! asked for a lease, the home of a quota. Here a node has something of each kind with member `A`. Member `C`
//! has no part in any of it: whatever it says, the node is as it was before.
//!
//! A task or an actor is cancelled or started again at its owner by any member: one of its clients may have
//! the reference, and references go from hand to hand. That is open to whoever is a member. The value of an
//! argument comes with the task that takes it, from a member that has borrowed it, and counts for that task.

// A test may panic where it fails, also in shared functions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code, reason = "not every test uses all of it")]
mod host;

use host::{Host, member};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tharsis_core::event::{OutputValue, TaskOutcome, Value};
use tharsis_core::node::{ArgumentValue, Config};
use tharsis_core::{Action, Event, MS, Now, Operation, Record};
use tharsis_types::peer::{
    ActorSnapshot, DoneOutcome, DoneValue, DrainMessage, Message, PushedDependency, PushedTask, QuotaMessage,
    RemoteState, Turn,
};
use tharsis_types::task::{Output, Role};
use tharsis_types::{
    ClientId, Dependency, Extent, Failure, FailureKind, FunctionId, JobId, JobQuota, JobTerms, LeaseId,
    NodeId, ObjectId, Placement, RefId, Resources, TaskArgs, TaskClass, TaskId,
};

const A: NodeId = NodeId(1);
const ME: NodeId = NodeId(2);
const C: NodeId = NodeId(3);
const NOW: Now = 1_000 * MS;

/// The job of a driver at `A`.
const THEIRS: JobId = JobId(1);
/// That of the driver here.
const OURS: JobId = JobId(2);
/// One at `A` that has a quota.
const BOUNDED: JobId = JobId(3);
/// One that `C` makes up.
const CLAIMED: JobId = JobId(4);
const DRIVER: ClientId = ClientId(1);

/// The member whose word counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counts {
    /// That of any, as it is about the sender, or asks for what any member may have.
    OfAny,
    /// That of the one that has a say in it.
    OfOne,
}

/// A new kind of message has to be entered here, and in [`World::messages`].
fn counts(message: &Message) -> (&'static str, Counts) {
    use Counts::{OfAny, OfOne};
    match message {
        // Whoever has a handle calls an actor.
        Message::ActorAttach { .. } => ("ActorAttach", OfAny),
        Message::ActorCheckpoint(_) => ("ActorCheckpoint", OfOne),
        Message::ActorCheckpointed { .. } => ("ActorCheckpointed", OfOne),
        Message::ActorRestart { .. } => ("ActorRestart", OfOne),
        Message::BorrowAdded { .. } => ("BorrowAdded", OfAny),
        Message::BorrowReleased { .. } => ("BorrowReleased", OfOne),
        // The owner is asked once more, which knows.
        Message::CopiesUnreadable { .. } => ("CopiesUnreadable", OfAny),
        // The sender drains, has a copy, or offers one, of which the owner hears.
        Message::Drain(_) => ("Drain", OfAny),
        Message::HolderAdded { .. } => ("HolderAdded", OfAny),
        Message::HolderRemoved { .. } => ("HolderRemoved", OfAny),
        Message::JobEnded { .. } => ("JobEnded", OfOne),
        Message::LeaseDenied { .. } => ("LeaseDenied", OfOne),
        Message::LeaseFailed { .. } => ("LeaseFailed", OfOne),
        Message::LeaseGranted { .. } => ("LeaseGranted", OfOne),
        Message::LeaseRaise { .. } => ("LeaseRaise", OfOne),
        Message::LeaseRecall { .. } => ("LeaseRecall", OfOne),
        Message::LeaseRequest { .. } => ("LeaseRequest", OfAny),
        Message::LeaseReturned { .. } => ("LeaseReturned", OfOne),
        Message::LeaseRevoked { .. } => ("LeaseRevoked", OfOne),
        Message::LoadReport { .. } => ("LoadReport", OfAny),
        Message::ObjectFree { .. } => ("ObjectFree", OfOne),
        Message::ObjectLocate { .. } => ("ObjectLocate", OfAny),
        Message::ObjectState { .. } => ("ObjectState", OfOne),
        Message::Quota(QuotaMessage::Granted { .. }) => ("Granted", OfOne),
        Message::Quota(QuotaMessage::Recalled { .. }) => ("Recalled", OfOne),
        Message::Quota(QuotaMessage::Returned { .. }) => ("Returned", OfOne),
        Message::Quota(QuotaMessage::Wanted { .. }) => ("Wanted", OfAny),
        Message::ReadEnded { .. } => ("ReadEnded", OfAny),
        Message::ReadReply { .. } => ("ReadReply", OfOne),
        Message::ReadRequest { .. } => ("ReadRequest", OfAny),
        Message::TaskCancel { .. } => ("TaskCancel", OfOne),
        Message::TaskDone { .. } => ("TaskDone", OfOne),
        Message::TaskGiveBack { .. } => ("TaskGiveBack", OfOne),
        Message::TaskPush { .. } => ("TaskPush", OfOne),
        Message::TaskStealBack { .. } => ("TaskStealBack", OfOne),
        // The decoder makes it of what it cannot read.
        Message::Unreadable { .. } => ("Unreadable", OfAny),
    }
}

/// Kinds of messages in the table; those about quotas are four.
const KINDS: usize = 36;

#[test]
fn a_member_has_no_say_in_what_is_not_its_own() {
    let count = World::new().messages().len();
    let mut kinds = BTreeSet::new();
    for at in 0..count {
        let mut world = World::new();
        let message = world.messages().swap_remove(at);
        let (kind, whose) = counts(&message);
        kinds.insert(kind);
        let before = world.state();
        let said = world.hear(C, message.clone());
        if whose == Counts::OfAny {
            continue;
        }
        let asks = |action: &Action| matches!(action, Action::Do(Operation::ConfirmEnd { from: C, .. }));
        assert!(said.iter().all(asks), "{kind} of a stranger: {said:?}");
        let after = world.state();
        let changed = before.lines().zip(after.lines()).find(|(before, after)| before != after);
        assert!(before == after, "{kind} of a stranger: {changed:?}");
        // The same counts from the one that has a say in it.
        let said = world.hear(A, message);
        assert!(!said.is_empty() || world.state() != before, "{kind} changes nothing");
    }
    assert_eq!(kinds.len(), KINDS, "{kinds:?}");
}

#[test]
fn a_node_knows_of_which_jobs_it_has_something() {
    let mut world = World::new();
    assert_eq!(world.host.node.jobs_of_others(), BTreeSet::from([THEIRS, BOUNDED]), "one has only a request");
    world.feed(Event::JobEnded { job: THEIRS });
    assert_eq!(world.host.node.jobs_of_others(), BTreeSet::from([BOUNDED]));
}

#[test]
fn a_member_gives_no_quota_to_a_job_that_has_none() {
    for job in [THEIRS, CLAIMED] {
        let mut world = World::new();
        world.feed(Event::DriverJoined { client: ClientId(5), job: CLAIMED, weight: 300, quota: None });
        world.hear(C, claim(job));
        assert_eq!(world.host.node.held_of_quota(job), None, "{job}");
        // All that it holds is given back as if nothing had been said.
        world.finish(task(THEIRS, 2), inline());
        world.hear(A, Message::LeaseReturned { lease: LeaseId(1) });
    }
}

#[test]
fn the_driver_of_a_job_says_whether_it_has_a_quota() {
    let one = Resources::cpus(1.0).unwrap();
    for quota in [None, Some("cpus=2")] {
        let mut world = World::new();
        world.hear(A, Message::LeaseReturned { lease: LeaseId(3) });
        // A member has a lease for a job that has not begun, with a part that it gave itself.
        world.hear(C, claim(CLAIMED));
        world.hear(C, Message::Quota(QuotaMessage::Granted { job: CLAIMED, amount: one.clone() }));
        assert_eq!(world.host.node.held_of_quota(CLAIMED), Some(&one));
        let said = quota.map(|text| text.parse().unwrap());
        world.feed(Event::DriverJoined { client: ClientId(5), job: CLAIMED, weight: 100, quota: said });
        let nothing = Resources::default();
        assert_eq!(world.host.node.held_of_quota(CLAIMED), quota.map(|_| &nothing), "that lease has ended");
        world.hear(C, Message::LeaseReturned { lease: LeaseId(9) });
        assert_eq!(world.host.node.held_of_quota(CLAIMED), quota.map(|_| &nothing));
    }
}

#[test]
fn the_node_of_the_driver_is_asked_for_where_others_give_a_job_a_quota() {
    let mut world = World::new();
    let find = Action::Do(Operation::FindDriver { job: CLAIMED, from: C });
    let said = world.hear(C, claim(CLAIMED));
    assert!(said.contains(&find), "{said:?}");
    assert!(world.host.node.held_of_quota(CLAIMED).is_some(), "nobody has said otherwise");
    // The request of the node of the driver comes second, before it is known which node that is.
    let class = Arc::new(class(CLAIMED, 1.0));
    let message =
        Message::LeaseRequest { lease: LeaseId(5), class, wait: true, urgency: 0, weight: 100, quota: None };
    let said = world.hear(A, message);
    assert!(!said.contains(&find), "{said:?}");
    world.hear(A, Message::LeaseReturned { lease: LeaseId(3) });
    assert!(world.host.starts.is_empty(), "they wait for parts of the quota");
    let terms = Some(JobTerms { weight: 100, quota: None });
    world.feed(Event::DriverFound { job: CLAIMED, driver: Some(A), terms });
    assert_eq!(world.host.node.held_of_quota(CLAIMED), None);
    assert_eq!(world.host.starts.len(), 2, "they are placed");
    world.hear(C, claim(CLAIMED));
    assert_eq!(world.host.node.held_of_quota(CLAIMED), None);
}

#[test]
fn nothing_stays_of_jobs_that_never_come() {
    let mut world = World::new();
    for number in 100..500 {
        world.hear(C, claim(JobId(number)));
        // A part that nobody uses.
        let amount = Resources::cpus(1.0).unwrap();
        world.hear(C, Message::Quota(QuotaMessage::Granted { job: JobId(number), amount }));
        world.hear(C, Message::LeaseReturned { lease: LeaseId(9) });
    }
    let jobs = world.host.node.jobs_of_others();
    assert!(jobs.len() < 100, "{} jobs are kept", jobs.len());
    assert!(jobs.is_superset(&BTreeSet::from([THEIRS, BOUNDED])), "something is here of them");
    let back = |message: &&Message| matches!(message, Message::Quota(QuotaMessage::Returned { .. }));
    assert!(300 < world.host.sent.iter().filter(back).count(), "their parts go back");
}

/// All that a member may tell of an object of another one.
fn states() -> [RemoteState; 4] {
    let failure = Arc::new(Failure::new(FailureKind::WorkerCrashed, "no"));
    let stored = RemoteState::Stored { len: 64, holders: vec![C] };
    [RemoteState::Inline([6].into()), RemoteState::Failed(failure), RemoteState::Freed, stored]
}

#[test]
fn a_member_tells_the_value_of_an_argument_to_its_own_task() {
    // The driver here waits for the first; the other is not known here.
    for (state, object) in states().into_iter().flat_map(|s| [20, 30].map(|n| (s.clone(), put(THEIRS, n)))) {
        let mut world = World::new();
        world.has_lease(C, 9);
        let is_inline = matches!(state, RemoteState::Inline(_));
        let push = pushed(9, task(CLAIMED, 1), class(CLAIMED, 1.0));
        let said = world.hear(C, reads(push, object, state));
        assert_eq!(world.host.node.value(object), None, "{object}");
        let is_for_driver = |action: &Action| matches!(action, Action::Tell { client: DRIVER, .. });
        assert!(!said.iter().any(is_for_driver), "{said:?}");
        if is_inline {
            let run = world.host.node.run(world.host.runs[&task(CLAIMED, 1)].1).unwrap();
            assert_eq!(run.arguments, [(0, theirs(object), ArgumentValue::Inline(&[6]))]);
        }
        // Whoever wants it here asks its owner, whose word counts.
        let reference = theirs(object);
        world.host.sent.clear();
        world.feed(Event::Held { client: DRIVER, token: 73, reference });
        world.feed(Event::Fetch { client: DRIVER, token: 73, reference });
        let asks = world.host.sent.contains(&Message::ObjectLocate { object });
        assert_eq!(asks, object == put(THEIRS, 30), "once, and for the first it was asked before");
        let state = RemoteState::Inline([7].into());
        let said = world.hear(A, Message::ObjectState { object, state, nested: Vec::new() });
        assert!(said.iter().any(is_for_driver), "{said:?}");
        assert_eq!(world.host.node.value(object), Some(&Value::Inline([7].into())));
        if is_inline {
            world.finish(task(CLAIMED, 1), inline());
        }
    }
}

#[test]
fn copies_that_a_member_made_up_say_nothing_of_those_that_are_there() {
    let mut world = World::new();
    world.has_lease(C, 9);
    let object = put(THEIRS, 20);
    let [.., stored] = states();
    world.hear(C, reads(pushed(9, task(CLAIMED, 1), class(CLAIMED, 1.0)), object, stored));
    world.host.sent.clear();
    for _ in 0..3 {
        let cause = "not there".to_owned();
        world.feed(Event::PullFailed { object, from: C, done_bytes: 0, cause });
    }
    assert!(world.host.sent.contains(&Message::CopiesUnreadable { object }), "{:?}", world.host.sent);
    let tasks = vec![(task(CLAIMED, 1), 0)];
    let back = Message::TaskGiveBack { lease: LeaseId(9), tasks, started: false };
    assert!(world.host.sent.contains(&back), "{:?}", world.host.sent);
    let state = RemoteState::Stored { len: 64, holders: vec![A] };
    let said = world.hear(A, Message::ObjectState { object, state, nested: Vec::new() });
    let is_read = |action: &Action| matches!(action, Action::Do(Operation::Pull { from: A, .. }));
    assert!(said.iter().any(is_read), "{said:?}");
}

#[test]
fn a_member_names_itself_a_holder_at_the_owner_alone() {
    let mut world = World::new();
    // The driver here reads it from a copy that its owner has named.
    let object = put(THEIRS, 21);
    let before = world.state();
    let said = world.hear(C, Message::HolderAdded { object });
    assert!(said.is_empty(), "{said:?}");
    assert!(before == world.state(), "it is not read from there");
}

#[test]
fn references_go_back_that_came_with_a_task_without_a_lease() {
    let mut world = World::new();
    world.host.sent.clear();
    let [inline, ..] = states();
    let push = pushed(9, task(CLAIMED, 1), class(CLAIMED, 1.0));
    world.hear(C, reads(reads(push, put(THEIRS, 20), inline.clone()), put(THEIRS, 30), inline));
    let mut back = BTreeMap::<ObjectId, u32>::new();
    for message in &world.host.sent {
        if let Message::BorrowReleased { object, count } = message {
            *back.entry(*object).or_default() += count;
        }
    }
    let expected = [(put(THEIRS, 20), 1), (put(THEIRS, 22), 2), (put(THEIRS, 30), 1)];
    assert_eq!(back, BTreeMap::from(expected));
}

/// A node that has something of each kind with `A`.
struct World {
    host: Host,
    /// A lease at `A` with a task, one that was asked for, and that of a living actor.
    leases: [LeaseId; 3],
}

fn task(job: JobId, number: u64) -> TaskId {
    TaskId::root(job).child(number)
}

fn put(job: JobId, number: u64) -> ObjectId {
    ObjectId::put(task(job, number), 0)
}

fn class(job: JobId, cpus: f64) -> TaskClass {
    let resources = Resources::cpus(cpus).unwrap();
    TaskClass { resources, ..TaskClass::new(job, FunctionId(1), "f") }
}

/// The output of a run that returns one value.
fn output<V>(value: V) -> Output<V> {
    Output { value, nested: Vec::new() }
}

fn inline() -> TaskOutcome {
    TaskOutcome::Returned([output(OutputValue::Inline([7].into()))].into_iter().collect())
}

/// An object of `A`.
fn theirs(object: ObjectId) -> RefId {
    RefId { object, owner: A }
}

impl World {
    fn new() -> Self {
        let config = Config { relay_bytes_min: 1024, ..host::config(member(ME, 16.0)) };
        let mut world = Self { host: Host::new(config, NOW, 0), leases: [LeaseId(0); 3] };
        for node in [A, C] {
            world.feed(Event::MemberJoined(Arc::new(member(node, 4.0))));
        }
        let quota = Some("cpus=8".parse().unwrap());
        world.feed(Event::DriverJoined { client: DRIVER, job: OURS, weight: 100, quota });
        world.worker_starts(ClientId(2));
        world.runs_for_others();
        world.runs_at_others();
        world.reads();
        // Requests that wait come last: they stand before all others.
        world.wants_lease(3, class(THEIRS, 16.0), None);
        let quota = JobQuota { home: A, quota: "cpus=2".parse().unwrap() };
        world.wants_lease(4, class(BOUNDED, 1.0), Some(Arc::new(quota)));
        world
    }

    /// Returns the actions, without the answers to the stranger.
    fn feed(&mut self, event: Event) -> Vec<Action> {
        let mut said = self.host.feed(event);
        said.retain(|action| match action {
            Action::Do(Operation::Send { to, packet }) => *to != C && !packet.messages.is_empty(),
            _ => true,
        });
        said
    }

    /// A message arrives; returns the actions, without the answers to the stranger.
    fn hear(&mut self, from: NodeId, message: Message) -> Vec<Action> {
        let packet = self.host.next_packet(from, message);
        self.feed(Event::PacketReceived { from, packet })
    }

    /// All that the node knows, without its links.
    fn state(&self) -> String {
        let text = format!("{:#?}", self.host.node);
        let is_field = |line: &&str| line.starts_with("    ") && !line.starts_with("     ");
        let mut is_link = false;
        let mut rest = Vec::new();
        for line in text.lines() {
            if is_field(&line) && !line.trim().starts_with(['}', ']', ')']) {
                is_link = line.trim().starts_with("peers:");
            }
            if !is_link {
                rest.push(line);
            }
        }
        rest.join("\n")
    }

    fn worker_starts(&mut self, client: ClientId) {
        let event = self.host.ready(client);
        self.feed(event);
    }

    fn wants_lease(&mut self, lease: u64, class: TaskClass, quota: Option<Arc<JobQuota>>) {
        let (lease, class) = (LeaseId(lease), Arc::new(class));
        self.hear(A, Message::LeaseRequest { lease, class, wait: true, urgency: 0, weight: 100, quota });
    }

    /// A member gets a lease for a job that it makes up.
    fn has_lease(&mut self, of: NodeId, lease: u64) {
        self.hear(A, Message::LeaseReturned { lease: LeaseId(3) });
        let (lease, class) = (LeaseId(lease), Arc::new(class(CLAIMED, 1.0)));
        self.hear(
            of,
            Message::LeaseRequest { lease, class, wait: true, urgency: 0, weight: 100, quota: None },
        );
        self.worker_starts(ClientId(12));
    }

    fn finish(&mut self, task: TaskId, outcome: TaskOutcome) {
        let event = self.host.finished(task, outcome);
        self.feed(event);
    }

    /// `A` has a worker with a run, whose former run has left a copy here, and one with an actor, which waits
    /// until its snapshot is kept.
    fn runs_for_others(&mut self) {
        let [worker, host] = [ClientId(10), ClientId(11)];
        self.wants_lease(1, class(THEIRS, 1.0), None);
        self.worker_starts(worker);
        self.hear(A, pushed(1, task(THEIRS, 1), class(THEIRS, 1.0)));
        let said = self.feed(Event::RegionWanted { client: worker, request: 1, bytes: 4_096 });
        let granted = said.iter().find_map(|action| match action {
            Action::Tell { record: Record::Region { region: Ok(region), .. }, .. } => Some(*region),
            _ => None,
        });
        let written = Extent { len: 64, ..granted.unwrap() };
        let outputs = [output(OutputValue::Written(written))].into_iter().collect();
        self.finish(task(THEIRS, 1), TaskOutcome::Returned(outputs));
        self.hear(A, pushed(1, task(THEIRS, 2), class(THEIRS, 1.0)));
        assert!(self.host.runs.contains_key(&task(THEIRS, 2)));
        let actor = TaskClass { role: Role::Constructor, ..class(THEIRS, 0.0) };
        self.wants_lease(2, actor.clone(), None);
        self.worker_starts(host);
        self.hear(A, pushed(2, task(THEIRS, 3), actor));
        self.finish(task(THEIRS, 3), inline());
        let value = OutputValue::Inline([7].into());
        self.feed(Event::CheckpointWanted { client: host, request: 1, value, nested: Vec::new() });
    }

    /// The driver here has a task at `A`, a request for a lease there, and an actor that lives there.
    fn runs_at_others(&mut self) {
        let at = Placement::Node { node: A, soft: false };
        let classes = [
            TaskClass { placement: at.clone(), ..class(OURS, 1.0) },
            TaskClass { placement: at.clone(), ..class(OURS, 2.0) },
            TaskClass { placement: at, role: Role::Constructor, ..class(OURS, 0.0) },
        ];
        for (number, class) in (0..).zip(classes) {
            let definition = Ok(Arc::new(class));
            self.feed(Event::ClassDefined { client: DRIVER, class: number, definition });
            let (task, tokens) = (task(OURS, u64::from(number)), [u64::from(number)].into_iter().collect());
            let args = TaskArgs::default();
            self.feed(Event::Submitted { client: DRIVER, run: None, class: number, task, tokens, args });
            let asked = self.host.sent.iter().rev().find_map(|message| match message {
                Message::LeaseRequest { lease, .. } => Some(*lease),
                _ => None,
            });
            self.leases[number as usize] = asked.unwrap();
        }
        let [with_task, _, of_actor] = self.leases;
        for lease in [with_task, of_actor] {
            self.hear(A, Message::LeaseGranted { lease });
        }
        self.hear(A, done(of_actor, task(OURS, 2)));
        let amount = Resources::cpus(1.0).unwrap();
        self.hear(A, Message::Quota(QuotaMessage::Wanted { job: OURS, amount }));
    }

    /// The driver here waits for an object of `A`, reads a large one from there, and has lent one of its own.
    fn reads(&mut self) {
        for (token, object) in [(70, put(THEIRS, 20)), (71, put(THEIRS, 21))] {
            let reference = theirs(object);
            self.feed(Event::Held { client: DRIVER, token, reference });
            self.feed(Event::Fetch { client: DRIVER, token, reference });
        }
        let object = put(THEIRS, 21);
        let state = RemoteState::Stored { len: 4_096, holders: vec![A] };
        self.hear(A, Message::ObjectState { object, state, nested: Vec::new() });
        self.feed(Event::Fetch { client: DRIVER, token: 71, reference: theirs(object) });
        assert!(self.host.sent.iter().any(|message| matches!(message, Message::ReadRequest { .. })));
        let (object, value) = (put(OURS, 20), OutputValue::Inline([7].into()));
        let (nested, site) = (Vec::new(), "".into());
        self.feed(Event::Put { client: DRIVER, token: 72, object, value, nested, site });
        self.hear(A, Message::BorrowAdded { reference: RefId { object, owner: ME } });
    }

    /// One message of each kind, as `A` could send it.
    fn messages(&self) -> Vec<Message> {
        let [with_task, asked, of_actor] = self.leases;
        let (own, ours) = (put(OURS, 20), task(OURS, 0));
        let amount = || Resources::cpus(1.0).unwrap();
        let failure = || Arc::new(Failure::new(FailureKind::WorkerStartFailed, "no process"));
        let snapshot_of = |actor: TaskId| ObjectId::put(actor.child(1 << 63), 1);
        let mut all = self.requests();
        all.extend([
            Message::ActorCheckpoint(Box::new(ActorSnapshot {
                lease: of_actor,
                actor: task(OURS, 2),
                attempt: 0,
                object: snapshot_of(task(OURS, 2)),
                snapshot: output(DoneValue::Inline([7].into())),
            })),
            Message::ActorCheckpointed { object: snapshot_of(task(THEIRS, 3)), refusal: None },
            Message::ActorRestart { actor: task(THEIRS, 3) },
            Message::BorrowReleased { object: own, count: 1 },
            Message::JobEnded { job: THEIRS },
            Message::LeaseDenied { lease: asked, free: Resources::default() },
            Message::LeaseFailed { lease: asked, failure: failure() },
            Message::LeaseGranted { lease: asked },
            Message::LeaseRaise { lease: LeaseId(3), urgency: 5 },
            Message::LeaseRecall { lease: with_task },
            Message::LeaseReturned { lease: LeaseId(3) },
            Message::LeaseRevoked { lease: with_task },
            Message::ObjectFree { object: ObjectId::output(task(THEIRS, 1), 0) },
            Message::ObjectState {
                object: put(THEIRS, 20),
                state: RemoteState::Inline([7].into()),
                nested: vec![theirs(put(THEIRS, 22))],
            },
            Message::Quota(QuotaMessage::Granted { job: BOUNDED, amount: amount() }),
            Message::Quota(QuotaMessage::Recalled {
                job: BOUNDED,
                amount: amount(),
                in_use: false,
                keep: false,
            }),
            Message::Quota(QuotaMessage::Returned { job: OURS, amount: amount() }),
            Message::ReadReply { object: put(THEIRS, 21), turn: Turn::Now },
            Message::TaskCancel { task: task(THEIRS, 2), force: true, recursive: true },
            done(with_task, ours),
            Message::TaskGiveBack { lease: with_task, tasks: vec![(ours, 0)], started: false },
            reads(
                pushed(1, task(THEIRS, 4), class(THEIRS, 1.0)),
                put(THEIRS, 20),
                RemoteState::Inline([7].into()),
            ),
            Message::TaskStealBack { lease: LeaseId(1) },
        ]);
        all
    }

    /// The messages that any member may send.
    fn requests(&self) -> Vec<Message> {
        let (own, reference) = (put(OURS, 20), RefId { object: put(OURS, 20), owner: ME });
        let class = Arc::new(class(THEIRS, 1.0));
        vec![
            Message::ActorAttach { lease: LeaseId(9), actor: task(THEIRS, 3) },
            Message::BorrowAdded { reference },
            Message::CopiesUnreadable { object: put(THEIRS, 20) },
            Message::Drain(DrainMessage::Begun),
            Message::Drain(DrainMessage::CopyKept { object: own }),
            Message::Drain(DrainMessage::CopyLeaving { object: own }),
            Message::Drain(DrainMessage::CopyMove {
                reference: theirs(put(THEIRS, 23)),
                len: 64,
                from: C,
                others: Vec::new(),
            }),
            Message::HolderAdded { object: own },
            Message::HolderRemoved { object: own },
            Message::LeaseRequest {
                lease: LeaseId(9),
                class,
                wait: true,
                urgency: 0,
                weight: 100,
                quota: None,
            },
            Message::LoadReport { free: Resources::default(), waiting: 3 },
            Message::ObjectLocate { object: own },
            Message::Quota(QuotaMessage::Wanted { job: OURS, amount: Resources::cpus(1.0).unwrap() }),
            Message::ReadEnded { object: own },
            Message::ReadRequest { object: own, sent: false, failed_at: None },
            Message::Unreadable { answer: None },
        ]
    }
}

/// A request for a lease by which `C` gives a job a quota.
fn claim(job: JobId) -> Message {
    let quota = Some(Arc::new(JobQuota { home: C, quota: "cpus=1".parse().unwrap() }));
    let (lease, class) = (LeaseId(9), Arc::new(class(job, 1.0)));
    Message::LeaseRequest { lease, class, wait: true, urgency: 0, weight: 7, quota }
}

fn pushed(lease: u64, task: TaskId, class: TaskClass) -> Message {
    let pushed = PushedTask {
        task,
        attempt: 0,
        class: Arc::new(class),
        payload: [7].into(),
        dependencies: Vec::new(),
        nested: Vec::new(),
        name: None,
    };
    Message::TaskPush { lease: LeaseId(lease), task: Box::new(pushed) }
}

/// The same push with an argument of `A`, in whose value another reference stands.
fn reads(push: Message, object: ObjectId, state: RemoteState) -> Message {
    let Message::TaskPush { lease, mut task } = push else { panic!("{push:?}") };
    let dependency = Dependency { reference: theirs(object), parameter: 0 };
    let nested = vec![theirs(put(THEIRS, 22))];
    task.dependencies.push(PushedDependency { dependency, state, nested });
    Message::TaskPush { lease, task }
}

fn done(lease: LeaseId, task: TaskId) -> Message {
    let outputs = [output(DoneValue::Inline([7].into()))].into_iter().collect();
    let outcome = Box::new(DoneOutcome::Returned(outputs));
    Message::TaskDone { lease, task, attempt: 0, run_ns: 1, outcome }
}
