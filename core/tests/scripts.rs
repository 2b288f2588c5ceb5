//! Text files as tests: the events of nodes and their actions, readable without Rust.
//!
//! A file in `testdata/` is a list of blocks: commands, a line `----`, the actions that follow. Each command
//! is one event (and the end of its batch) one millisecond after the one before. `UPDATE_SCRIPTS=1 cargo test
//! -p tharsis-core --test scripts` writes the actions anew; read the difference before you keep it.
//!
//! | command | event |
//! |---|---|
//! | `node a [cpu=2] [gpu=0] [memory=MIB] [store=65536]` | a node joins those before it |
//! | `class f [cpu=1] [gpu=0] [retries=0] [returns=1] [retry_on=T] [timeout=MS] [priority=N] [memory=MIB] [pure=1] [node=b] [actor=1] [method=1] [concurrent=1] [group=CPUS,..] [inside=g1] [job=1]` | a class for later calls; one inside of the group `g1` takes it as its first argument |
//! | `driver d a [job=1] [quota=cpus=N]` | a driver joins a node |
//! | `submit d t1 f [again] [deps=t0,..] [nested=..] [run=t0]` | a call (of that run), or the same `again`; `t1` names its outputs, `t1.1` the second |
//! | `ready a w1`, `start-fails a` | the oldest start ends |
//! | `done w1 t1 inline:x \| written:LEN \| error:Kind \| user:Type [nested=..] [ns=N]` | a run ends |
//! | `blocked w1 [returned=t2,..]`, `unblocked w1`, `giveback w1 [t2,..]` | a worker waits, goes on, hands back, as the answer to the oldest question |
//! | `call d t1 m a1 [deps=p1,..] [run=t0]` | a call of the actor `a1`, whose class is `m` |
//! | `fetch d t1`, `hold d t1`, `release d t1`, `cancel d t1 [force] [recursive]`, `restart d a1` | operations of clients on references |
//! | `keep w1 p1`, `unmapped d p1` | a worker keeps an argument mapped, a client unmaps a value |
//! | `put d p1 inline:x \| written:LEN [nested=..]`, `region d BYTES`, `retire d` | values of clients |
//! | `checkpoint w1 a1 s1 inline:x \| written:LEN [attempt=0] [number=1] [nested=..]` | the actor of a worker offers the snapshot `s1`, the `number`-th of its worker |
//! | `gone w1 [Kind] [remains=memory \| thread]` | a client is gone |
//! | `pulled a t1`, `pull-fails a t1` | a transfer ends |
//! | `memory a USED/LIMIT w1=MIB ..` | a reading of the memory of a node and its workers, in MiB |
//! | `forge c a grant \| deny \| recall \| revoke LEASE` | a node sends this message about another node's lease, even if it was not asked for it |
//! | `forge c a end JOB`, `forge c a cancel \| restart t1` | a node says that a job has ended, or that a task or actor of another node is to stop |
//! | `net`, `lose` | all packets on their way arrive, or are lost |
//! | `drain b MS`, `isolated b`, `reached b` | a node is to leave within this time; reaches nobody; reaches somebody again |
//! | `programs b N` | as many submitted programs run at a node now |
//! | `tick MS` | time passes |
//! | `die b [unheard]` | a node dies, and the others are told, or not yet |
//! | `hear a b` | node `a` is told that node `b` is dead |
//! | `show a`, `why a t1`, `why a t1.0` | the report of the node on itself, a task or an object |

// A test may panic where it fails, also in shared functions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods, reason = "a variable says whether to write the files anew")]

#[allow(dead_code, reason = "not every test uses all of it")]
mod host;

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use tharsis_core::event::{Member, OutputValue, Remains, TaskOutcome, Value};
use tharsis_core::journal::About;
use tharsis_core::memory::{MemoryGauge, MemoryReading, WorkerMemory};
use tharsis_core::node::{ArgumentValue, Config};
use tharsis_core::{Action, Event, MS, Node, Now, Operation, Record};
use tharsis_types::peer::{
    DoneOutcome, DoneValue, DrainMessage, Message, Packet, QuotaMessage, RemoteState, Turn,
};
use tharsis_types::task::{CallRules, Output, Role};
use tharsis_types::{
    ClientId, Dependency, Extent, Failure, FailureKind, FunctionId, GroupSpec, JobId, JobTerms, LeaseId,
    NodeId, ObjectId, Placement, Quota, RefId, Resources, RetryOn, Strategy, TaskArgs, TaskClass, TaskId,
};

#[test]
fn scripts() {
    // Not `env!`: another clone may have built this program.
    let folder = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("testdata");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    let mut wrong = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let actual = play(&text);
        if std::env::var_os("UPDATE_SCRIPTS").is_some() {
            std::fs::write(&file, &actual).unwrap();
        } else if actual != text {
            wrong.push(format!("{}:\n{}", file.display(), difference(&text, &actual)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Plays a file; returns it with the actual actions.
fn play(text: &str) -> String {
    let mut world = World::default();
    let mut out = String::new();
    for block in text.trim_end().split("\n\n") {
        let commands = block.split("\n----").next().unwrap_or("");
        let mut done = String::new();
        for line in commands.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            world.command(line);
            world.hosts.values().for_each(|host| host.node.check());
            done.push_str(&std::mem::take(&mut world.said));
        }
        if commands.lines().all(|line| line.starts_with('#')) {
            write!(out, "{commands}\n\n").unwrap()
        } else {
            write!(out, "{commands}\n----\n{done}\n").unwrap()
        }
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

fn difference(expected: &str, actual: &str) -> String {
    let mut pairs = expected.lines().zip(actual.lines()).enumerate();
    match pairs.find(|(_, (a, b))| a != b) {
        Some((n, (a, b))) => format!("  line {}\n  - {a}\n  + {b}", n + 1),
        None => "  one is longer than the other".to_owned(),
    }
}

#[derive(Default)]
struct World {
    now: Now,
    hosts: BTreeMap<String, Host>,
    clients: BTreeMap<String, Client>,
    classes: BTreeMap<String, (u32, TaskClass)>,
    /// Names of objects; `refs` has the objects of names.
    names: BTreeMap<ObjectId, String>,
    refs: BTreeMap<String, RefId>,
    packets: Vec<(String, String, Packet)>,
    /// Number of messages that one node has received from another.
    heard: BTreeMap<(String, String), u64>,
    /// The nodes of the drivers of jobs that run, and the terms that these gave.
    driven: BTreeMap<JobId, (String, JobTerms)>,
    said: String,
}

struct Host {
    node: Node,
    starts: Vec<u64>,
    pulls: BTreeMap<ObjectId, NodeId>,
    next_client: u32,
}

struct Client {
    id: ClientId,
    host: String,
    job: JobId,
    tokens: BTreeMap<ObjectId, u64>,
    runs: BTreeMap<TaskId, u32>,
    questions: VecDeque<u32>,
    region: Option<Extent>,
    used: u64,
    submitted: u64,
    put_count: u32,
}

impl World {
    fn command(&mut self, line: &str) {
        self.now += MS;
        let mut words = line.split_whitespace();
        let verb = words.next().unwrap();
        let (named, plain): (Vec<&str>, Vec<&str>) = words.partition(|word| word.contains('='));
        let options: BTreeMap<_, _> = named.iter().filter_map(|word| word.split_once('=')).collect();
        match (verb, plain.as_slice()) {
            ("node", [name]) => self.add_node(name, &options),
            ("class", [name]) => self.add_class(name, &options),
            ("driver", [name, host]) => {
                let job = JobId(number(&options, "job", 1) as u32);
                let client = self.add_client(name, host, job);
                let quota: Option<Quota> = options.get("quota").map(|quota| quota.parse().unwrap());
                let terms = JobTerms { weight: 100, quota: quota.clone() };
                self.driven.insert(job, (host.to_string(), terms));
                self.feed(host, Event::DriverJoined { client, job, weight: 100, quota });
            }
            ("submit", [client, task, class]) => {
                let id = self.next_task(client);
                self.submit(client, task, id, class, &options);
            }
            ("submit", [client, task, class, "again"]) => {
                let id = self.refs[*task].object.task;
                self.submit(client, task, id, class, &options);
            }
            ("call", [client, task, class, actor]) => {
                let id = self.next_task(client);
                let parameters = [Dependency::ACTOR].into_iter().chain(0..);
                let others = self.list(options.get("deps").copied());
                let objects = [self.refs[*actor]].into_iter().chain(others).zip(parameters);
                let deps = objects.map(|(reference, parameter)| Dependency { reference, parameter });
                self.submit_with(client, task, id, class, deps.collect(), &options);
            }
            ("ready", [host, worker]) => {
                let start = self.hosts.get_mut(*host).unwrap().starts.remove(0);
                let client = self.add_client(worker, host, JobId(1));
                self.feed(host, Event::WorkerReady { start, client });
            }
            ("start-fails", [host]) => {
                let start = self.hosts.get_mut(*host).unwrap().starts.remove(0);
                let failure = Arc::new(Failure::new(FailureKind::WorkerStartFailed, "no process"));
                self.feed(host, Event::WorkerStartFailed { start, failure });
            }
            ("done", [worker, task, what]) => self.done(worker, task, what, &options),
            ("blocked", [worker]) => {
                let returned = self.runs(worker, options.get("returned").copied());
                self.client_event(worker, |client| Event::Blocked { client, returned });
            }
            ("unblocked", [worker]) => self.client_event(worker, |client| Event::Unblocked { client }),
            ("giveback", [worker, tasks @ ..]) => {
                let returned = self.runs(worker, tasks.first().copied());
                let question = self.clients.get_mut(*worker).unwrap().questions.pop_front().unwrap_or(0);
                self.client_event(worker, |client| Event::GivenBack { client, question, returned });
            }
            ("fetch", [name, object]) => {
                let (token, reference) = self.token(name, object);
                self.client_event(name, |client| Event::Fetch { client, token, reference });
            }
            ("hold", [name, object]) => {
                let (token, reference) = self.token(name, object);
                self.client_event(name, |client| Event::Held { client, token, reference });
            }
            ("keep", [name, object]) => {
                let (token, reference) = self.token(name, object);
                self.client_event(name, |client| Event::Kept { client, token, reference });
            }
            ("release", [name, object]) => {
                let (token, reference) = self.token(name, object);
                self.clients.get_mut(*name).unwrap().tokens.remove(&reference.object);
                self.client_event(name, |client| Event::Released { client, token, reference });
            }
            ("cancel", [name, object, rest @ ..]) => {
                let (reference, host) = (self.refs[*object], self.clients[*name].host.clone());
                let (force, recursive) = (rest.contains(&"force"), rest.contains(&"recursive"));
                self.feed(&host, Event::CancelRequested { reference, force, recursive });
            }
            ("restart", [name, actor]) => {
                let (reference, host) = (self.refs[*actor], self.clients[*name].host.clone());
                self.feed(&host, Event::RestartRequested { reference });
            }
            ("put", [name, object, what]) => self.put(name, object, what, &options),
            ("checkpoint", [worker, actor, name, what]) => {
                self.checkpoint(worker, actor, name, what, &options)
            }
            ("region", [name, bytes]) => {
                let bytes = bytes.parse().unwrap();
                self.client_event(name, |client| Event::RegionWanted { client, request: 1, bytes });
            }
            ("retire", [name]) => {
                let region = self.clients.get_mut(*name).unwrap().region.take().unwrap();
                self.client_event(name, |client| Event::RegionRetired { client, region });
            }
            ("gone", [name, kind @ ..]) => {
                let remains = match options.get("remains") {
                    Some(&"thread") => Remains::Thread,
                    Some(&"memory") => Remains::Memory,
                    _ => Remains::Nothing,
                };
                let kind = kind.first().map_or(FailureKind::WorkerCrashed, |kind| self::kind(kind));
                let failure = Arc::new(Failure::new(kind, "gone"));
                self.client_event(name, |client| Event::ClientGone { client, remains, failure });
            }
            ("spilled", [host, object, refusal @ ..]) => {
                let (object, refusal) = (self.refs[*object].object, refusal.first().map(ToString::to_string));
                self.feed(host, Event::Spilled { object, refusal, write_ns: 0 });
            }
            ("blocks_freed", [host, offset, len]) => {
                let (offset, len) = (offset.parse().unwrap(), len.parse().unwrap());
                self.feed(host, Event::BlocksFreed(Extent { offset, len }));
            }
            ("unmapped", [name, object]) => {
                let (token, reference) = self.token(name, object);
                let object = reference.object;
                self.client_event(name, |client| Event::Unmapped { client, token, object });
            }
            ("pulled", [host, object]) => {
                let object = self.refs[*object].object;
                self.hosts.get_mut(*host).unwrap().pulls.remove(&object).unwrap();
                self.feed(host, Event::PullDone { object });
            }
            ("pull-fails", [host, object, done @ ..]) => {
                let object = self.refs[*object].object;
                let from = self.hosts.get_mut(*host).unwrap().pulls.remove(&object).unwrap();
                let done_bytes = done.first().map_or(0, |bytes| bytes.parse().unwrap());
                let cause = "broke off".to_owned();
                self.feed(host, Event::PullFailed { object, from, done_bytes, cause });
            }
            ("pull-refused", [host, object]) => {
                let object = self.refs[*object].object;
                self.hosts.get_mut(*host).unwrap().pulls.remove(&object).unwrap();
                self.feed(host, Event::PullRefused { object, cause: "no pages".into() });
            }
            ("memory", [host, gauge]) => self.memory(host, gauge, &options),
            ("net", []) => self.deliver(),
            ("forge", [from, to, what, about]) => self.forge(from, to, what, about),
            ("lose", []) => self.packets.clear(),
            ("programs", [host, count]) => {
                self.feed(host, Event::ProgramsRun { count: count.parse().unwrap() });
            }
            ("drain", [host, ms]) => {
                let within = ms.parse::<u64>().unwrap() * MS;
                self.feed(host, Event::DrainWanted { within });
            }
            ("isolated", [host]) => self.feed(host, Event::IsolationChanged { is_isolated: true }),
            ("reached", [host]) => self.feed(host, Event::IsolationChanged { is_isolated: false }),
            ("tick", [ms]) => self.tick(ms.parse().unwrap()),
            ("die", [host, rest @ ..]) => self.die(host, rest != ["unheard"]),
            ("hear", [host, gone]) => self.feed(host, Event::MemberLeft { node: node_id(gone) }),
            ("show", [host]) => self.show(host),
            ("why", [host, name]) => self.why(host, name),
            _ => panic!("no such command: {line}"),
        }
    }

    fn feed(&mut self, host: &str, event: Event) {
        let Some(at) = self.hosts.get_mut(host) else { return };
        let mut out = Vec::new();
        at.node.handle(self.now, event, &mut out);
        at.node.settle(self.now, &mut out);
        out.into_iter().for_each(|action| self.say(host, action));
    }

    fn client_event(&mut self, name: &str, event: impl FnOnce(ClientId) -> Event) {
        let client = &self.clients[name];
        let (id, host) = (client.id, client.host.clone());
        self.feed(&host, event(id));
    }

    fn add_node(&mut self, name: &str, options: &BTreeMap<&str, &str>) {
        let node = node_id(name);
        let memory = number(options, "memory", 0) << 20;
        let member = |node, cpus: f64| {
            let resources = Resources { memory, gpu: gpus(options), ..Resources::cpus(cpus).unwrap() };
            Member { node, resources, labels: Vec::new() }
        };
        let cpus = options.get("cpu").map_or(2.0, |n| n.parse().unwrap());
        let config = Config {
            store_bytes: number(options, "store", 1 << 20),
            annex_bytes: number(options, "annex", 0),
            can_spill: options.contains_key("spill"),
            relay_bytes_min: number(options, "relay", 1 << 20),
            lineage_bytes_max: number(options, "lineage", 64 << 20) as usize,
            ..host::config(member(node, cpus))
        };
        let host =
            Host { node: Node::new(config), starts: Vec::new(), pulls: BTreeMap::new(), next_client: 0 };
        self.hosts.insert(name.to_owned(), host);
        let others: Vec<_> = self.hosts.keys().filter(|other| *other != name).cloned().collect();
        for other in others {
            let known = self.hosts[&other].node.snapshot().total;
            self.feed(&other, Event::MemberJoined(Arc::new(member(node, cpus))));
            let resources = Member { resources: known, ..member(node_id(&other), 0.0) };
            self.feed(name, Event::MemberJoined(Arc::new(resources)));
        }
        self.deliver();
    }

    fn add_class(&mut self, name: &str, options: &BTreeMap<&str, &str>) {
        let number_of = self.classes.len() as u32;
        let class = TaskClass {
            resources: Resources {
                memory: number(options, "memory", 0) << 20,
                gpu: gpus(options),
                ..Resources::cpus(options.get("cpu").map_or(1.0, |n| n.parse().unwrap())).unwrap()
            },
            priority: number(options, "priority", 0) as i32,
            returns: number(options, "returns", 1) as u32,
            max_retries: number(options, "retries", 0) as i32,
            retry_on: options
                .get("retry_on")
                .map_or(RetryOn::Nothing, |t| RetryOn::Types(vec![(*t).to_owned()])),
            timeout_ms: number(options, "timeout", 0),
            max_calls: number(options, "max_calls", 0) as u32,
            pure: number(options, "pure", 0) == 1,
            role: role(options),
            calls: CallRules { concurrent: number(options, "concurrent", 0) == 1, ..CallRules::default() },
            placement: self.placement(options),
            ..TaskClass::new(JobId(number(options, "job", 1) as u32), FunctionId(u64::from(number_of)), name)
        };
        self.classes.insert(name.to_owned(), (number_of, class));
    }

    fn placement(&self, options: &BTreeMap<&str, &str>) -> Placement {
        if let Some(group) = options.get("inside") {
            return Placement::Group { group: self.refs[*group].object.task, bundle: None };
        }
        if let Some(cpus) = options.get("group") {
            let bundles: Vec<_> =
                cpus.split(',').map(|cpus| Resources::cpus(cpus.parse().unwrap()).unwrap()).collect();
            let strategy = if bundles.len() == 1 { Strategy::Pack } else { Strategy::StrictSpread };
            return Placement::Reserve(GroupSpec { bundles, strategy, patience_ms: 1000 });
        }
        options.get("node").map_or(Placement::Default, |n| Placement::Node { node: node_id(n), soft: false })
    }

    fn add_client(&mut self, name: &str, host: &str, job: JobId) -> ClientId {
        let at = self.hosts.get_mut(host).unwrap();
        at.next_client += 1;
        let id = ClientId(at.next_client);
        let client = Client {
            id,
            host: host.to_owned(),
            job,
            tokens: BTreeMap::new(),
            runs: BTreeMap::new(),
            questions: VecDeque::new(),
            region: None,
            used: 0,
            submitted: 0,
            put_count: 0,
        };
        self.clients.insert(name.to_owned(), client);
        id
    }

    /// The id of a task contains its client and node, so that no two ids collide.
    fn next_task(&mut self, name: &str) -> TaskId {
        let client = self.clients.get_mut(name).unwrap();
        client.submitted += 1;
        TaskId::root(client.job)
            .child(u64::from(client.id.0))
            .child(node_id(&client.host).0)
            .child(client.submitted - 1)
    }

    fn submit(
        &mut self,
        name: &str,
        task_name: &str,
        task: TaskId,
        class: &str,
        options: &BTreeMap<&str, &str>,
    ) {
        let is_inside = matches!(self.classes[class].1.placement, Placement::Group { .. });
        let number = |(parameter, reference)| {
            let parameter = if is_inside && parameter == 0 { Dependency::GROUP } else { parameter as u16 };
            Dependency { reference, parameter }
        };
        let dependencies = self.list(options.get("deps").copied()).into_iter().enumerate().map(number);
        self.submit_with(name, task_name, task, class, dependencies.collect(), options);
    }

    fn submit_with(
        &mut self,
        name: &str,
        task_name: &str,
        task: TaskId,
        class: &str,
        dependencies: Vec<Dependency>,
        options: &BTreeMap<&str, &str>,
    ) {
        let (class, definition) = self.classes[class].clone();
        let client = &self.clients[name];
        let (host, id, owner) = (client.host.clone(), client.id, node_id(&client.host));
        let mut tokens = smallvec::SmallVec::new();
        for index in 0..definition.returns {
            let object = ObjectId::output(task, index);
            let output_name = if index == 0 { task_name.to_owned() } else { format!("{task_name}.{index}") };
            self.names.insert(object, output_name.clone());
            self.refs.insert(output_name.clone(), RefId { object, owner });
            tokens.push(self.token(name, &output_name).0);
        }
        let nested = self.list(options.get("nested").copied()).into();
        let args = TaskArgs { payload: [1].into(), dependencies: dependencies.into(), nested, name: None };
        self.feed(&host, Event::ClassDefined { client: id, class, definition: Ok(Arc::new(definition)) });
        let run = options.get("run").map(|of| self.runs_of(name, of));
        self.feed(&host, Event::Submitted { client: id, run, class, task, tokens, args });
    }

    fn done(&mut self, worker: &str, task: &str, what: &str, options: &BTreeMap<&str, &str>) {
        let id = self.refs[task].object.task;
        let run = self.clients.get_mut(worker).unwrap().runs.remove(&id).unwrap();
        let nested = self.list(options.get("nested").copied());
        let run_ns = number(options, "ns", 10_000_000);
        let failed = |kind, error_type: &str| TaskOutcome::Failed {
            error_type: error_type.to_owned(),
            failure: Arc::new(Failure::new(kind, "from the function")),
        };
        let outcome = match what.split_once(':').unwrap() {
            ("error", name) => failed(kind(name), ""),
            ("user", name) => failed(FailureKind::UserError, name),
            _ => {
                let values = what.split(',').map(|what| self.value(worker, what)).collect::<Vec<_>>();
                let outputs = values.into_iter().map(|value| Output { value, nested: nested.clone() });
                TaskOutcome::Returned(outputs.collect())
            }
        };
        self.client_event(worker, |client| Event::Finished { client, run, run_ns, outcome });
    }

    fn memory(&mut self, host: &str, gauge: &str, workers: &BTreeMap<&str, &str>) {
        let mib = |text: &str| text.parse::<u64>().unwrap() << 20;
        let (used, limits) = gauge.split_once('/').unwrap();
        let (limit, soft) = limits.split_once('/').unwrap_or((limits, "0"));
        let node = MemoryGauge { used_bytes: mib(used), limit_bytes: mib(limit) };
        let worker = |(name, bytes): (&&str, &&str)| {
            let client = self.clients[*name].id;
            WorkerMemory { client, pid: 100 + client.0, bytes: mib(bytes) }
        };
        let workers = workers.iter().map(worker).collect();
        let reading =
            MemoryReading { node, workers, soft_limit_bytes: mib(soft), ..MemoryReading::default() };
        self.feed(host, Event::MemoryRead(reading));
    }

    fn put(&mut self, name: &str, object_name: &str, what: &str, options: &BTreeMap<&str, &str>) {
        let client = self.clients.get_mut(name).unwrap();
        let task = TaskId::root(client.job).child(u64::from(client.id.0));
        let object = ObjectId::put(task, client.put_count);
        client.put_count += 1;
        let owner = node_id(&client.host);
        self.names.insert(object, object_name.to_owned());
        self.refs.insert(object_name.to_owned(), RefId { object, owner });
        let (token, _) = self.token(name, object_name);
        let value = self.value(name, what);
        let nested = self.list(options.get("nested").copied());
        self.client_event(name, |client| Event::Put {
            client,
            token,
            object,
            value,
            nested,
            site: "".into(),
        });
    }

    fn checkpoint(
        &mut self,
        worker: &str,
        actor: &str,
        name: &str,
        what: &str,
        options: &BTreeMap<&str, &str>,
    ) {
        let (attempt, count) = (number(options, "attempt", 0), number(options, "number", 1) as u32);
        let object = ObjectId::put(self.refs[actor].object.task.child(1 << 63 | attempt), count);
        self.names.insert(object, name.to_owned());
        self.refs.insert(name.to_owned(), RefId { object, owner: self.refs[actor].owner });
        let (value, nested) = (self.value(worker, what), self.list(options.get("nested").copied()));
        self.client_event(worker, |client| Event::CheckpointWanted { client, request: 1, value, nested });
    }

    fn value(&mut self, client: &str, what: &str) -> OutputValue {
        match what.split_once(':').unwrap() {
            ("inline", text) => OutputValue::Inline(text.as_bytes().into()),
            (_, len) => {
                let client = self.clients.get_mut(client).unwrap();
                let region = client.region.unwrap();
                let extent = Extent { offset: region.offset + client.used, len: len.parse().unwrap() };
                client.used += extent.len.next_multiple_of(64);
                OutputValue::Written(extent)
            }
        }
    }

    fn token(&mut self, client: &str, object: &str) -> (u64, RefId) {
        let reference = self.refs[object];
        let client = self.clients.get_mut(client).unwrap();
        let next = client.tokens.values().max().copied().unwrap_or(0) + 1;
        (*client.tokens.entry(reference.object).or_insert(next), reference)
    }

    fn runs(&mut self, worker: &str, tasks: Option<&str>) -> Vec<u32> {
        let ids: Vec<_> = self.list(tasks).iter().map(|r| r.object.task).collect();
        let runs = &mut self.clients.get_mut(worker).unwrap().runs;
        ids.iter().map(|task| runs.remove(task).unwrap()).collect()
    }

    /// The run of a task in a worker.
    fn runs_of(&self, worker: &str, task: &str) -> u32 {
        self.clients[worker].runs[&self.refs[task].object.task]
    }

    fn list(&self, names: Option<&str>) -> Vec<RefId> {
        names.into_iter().flat_map(|names| names.split(',')).map(|name| self.refs[name]).collect()
    }

    /// Delivers all packets, and those that are sent in response.
    fn deliver(&mut self) {
        for _ in 0..100 {
            for (from, to, packet) in std::mem::take(&mut self.packets) {
                let heard = self.heard.entry((from.clone(), to.clone())).or_default();
                *heard = (*heard).max(packet.first + packet.messages.len() as u64);
                self.feed(&to, Event::PacketReceived { from: node_id(&from), packet });
            }
        }
        assert!(self.packets.is_empty(), "the nodes never stop talking");
    }

    fn forge(&mut self, from: &str, to: &str, what: &str, about: &str) {
        let lease = LeaseId(about.parse().unwrap_or_default());
        let task = || self.refs[about].object.task;
        let message = match what {
            "cancel" => Message::TaskCancel { task: task(), force: true, recursive: true },
            "restart" => Message::ActorRestart { actor: task() },
            "grant" => Message::LeaseGranted { lease },
            "deny" => Message::LeaseDenied { lease, free: Resources::default() },
            "recall" => Message::LeaseRecall { lease },
            "revoke" => Message::LeaseRevoked { lease },
            "end" => Message::JobEnded { job: JobId(lease.0 as u32) },
            _ => panic!("nobody says {what}"),
        };
        let first = self.heard.entry((from.to_owned(), to.to_owned())).or_default();
        let packet = Packet::new(*first, 0, vec![message]);
        *first += 1;
        self.feed(to, Event::PacketReceived { from: node_id(from), packet });
    }

    /// Lets time pass, from one timeout to the next.
    fn tick(&mut self, ms: u64) {
        let end = self.now + ms * MS;
        for _ in 0..1000 {
            let due = self
                .hosts
                .iter()
                .filter_map(|(name, host)| Some((host.node.next_timeout(self.now)?, name.clone())));
            let Some((at, name)) = due.filter(|(at, _)| *at <= end).min() else { break };
            self.now = self.now.max(at);
            self.feed(&name, Event::Tick);
        }
        self.now = end;
    }

    fn die(&mut self, host: &str, is_heard: bool) {
        self.hosts.remove(host);
        self.driven.retain(|_, (of, _)| of != host);
        self.packets.retain(|(from, to, _)| from != host && to != host);
        for other in self.hosts.keys().filter(|_| is_heard).cloned().collect::<Vec<_>>() {
            self.feed(&other, Event::MemberLeft { node: node_id(host) });
        }
    }

    fn show(&mut self, host: &str) {
        let s = self.hosts[host].node.snapshot();
        let (object_count, task_count, run_count) = (s.object_count, s.task_count, s.running_count);
        let (lease_count, leased_count, used) = (s.lease_count, s.leased_count, s.store.used_bytes);
        writeln!(
            self.said,
            "{host}: {object_count} objects, {task_count} tasks, {run_count} runs, {lease_count} leases given, \
             {leased_count} held, {used} bytes, free {}",
            s.free
        )
        .unwrap();
        for pending in s.pending {
            writeln!(self.said, "{host}: {} of {} wait: {}", pending.count, pending.name, pending.reason)
                .unwrap();
        }
    }

    /// A node's story of a task, or of an object if an output is named; ids are replaced by the names of the
    /// script.
    fn why(&mut self, host: &str, name: &str) {
        let about = match name.strip_suffix(".0").or(name.contains('.').then_some(name)) {
            Some(output) => About::Object(self.refs[output].object),
            None if self.refs[name].object.is_put() => About::Object(self.refs[name].object),
            None => About::Task(self.refs[name].object.task),
        };
        let Some(story) = self.hosts[host].node.story(self.now, about) else {
            return writeln!(self.said, "{host}: knows nothing of {name}").unwrap();
        };
        let past = story.past.iter().map(|past| format!("{} ms ago: {}", past.ago / MS, past.what));
        let text: String =
            story.present.into_iter().chain(past).map(|line| format!("{host}:   {line}\n")).collect();
        self.said.push_str(&self.with_names(text));
    }

    fn with_names(&self, mut text: String) -> String {
        for (object, name) in &self.names {
            text = text.replace(&object.to_string(), &name.replace(".0", ""));
        }
        for (object, name) in self.names.iter().filter(|(object, _)| !object.is_put()) {
            text = text.replace(&object.task.to_string(), name.split('.').next().unwrap());
        }
        for name in self.hosts.keys() {
            text = text.replace(&node_id(name).to_string(), name);
        }
        text
    }

    fn say(&mut self, host: &str, action: Action) {
        let text = match action {
            Action::Do(operation) => self.operation_text(host, operation),
            Action::Tell { client, record } => self.record_text(host, client, record),
        };
        if let Some(text) = text {
            writeln!(self.said, "{host}: {text}").unwrap();
        }
    }

    fn operation_text(&mut self, host: &str, operation: Operation) -> Option<String> {
        Some(match operation {
            Operation::ConfirmEnd { job, from } => {
                let says = format!("{} says that job {} has ended", node_name(from), job.0);
                if self.driven.contains_key(&job) {
                    return Some(format!("{says}, and it runs"));
                }
                writeln!(self.said, "{host}: {says}").unwrap();
                self.feed(host, Event::JobEnded { job });
                return None;
            }
            Operation::Discard(object) => format!("discard {}", self.name(object)),
            Operation::FindDriver { job, .. } => {
                let found = self.driven.get(&job).map(|(host, terms)| (node_id(host), terms.clone()));
                let (driver, terms) = found.unzip();
                self.feed(host, Event::DriverFound { job, driver, terms });
                return None;
            }
            Operation::FreeBlocks(extent) => format!("free blocks {}+{}", extent.offset, extent.len),
            Operation::FindMember(node) => format!("ask whether {} is a member", node_name(node)),
            Operation::ForgetJob { job } => {
                if self.driven.get(&job).is_some_and(|(of, _)| of == host) {
                    self.driven.remove(&job);
                }
                format!("forget job {}", job.0)
            }
            Operation::KillWorker { client, reason } => {
                let why = if reason.kind == FailureKind::OutOfMemory { &reason.message } else { "" };
                format!("kill {}: {:?} {why}", self.who(host, client), reason.kind).trim_end().to_owned()
            }
            Operation::Leave => "leave".to_owned(),
            Operation::MemoryFreed | Operation::Reclaim(_) => return None,
            Operation::Pull { object, from, done_bytes, .. } => {
                self.hosts.get_mut(host).unwrap().pulls.insert(object, from);
                let done = if done_bytes > 0 { format!(" at {done_bytes}") } else { String::new() };
                format!("pull {} from {}{done}", self.name(object), node_name(from))
            }
            Operation::ReadMemory { within_ms } => format!("look at the memory within {within_ms} ms"),
            Operation::Restore { object, .. } => {
                let from = self.hosts[host].node.id();
                self.hosts.get_mut(host).unwrap().pulls.insert(object, from);
                format!("restore {}", self.name(object))
            }
            Operation::Send { to, packet } => {
                self.say_packet(host, to, packet);
                return None;
            }
            Operation::Spill { object, .. } => format!("spill {}", self.name(object)),
            Operation::StartWorker { start, gpus, .. } => {
                self.hosts.get_mut(host).unwrap().starts.push(start);
                let gpus: Vec<_> = gpus.iter().map(|gpu| format!(" GPU {gpu}")).collect();
                format!("start a worker{}{}", if gpus.is_empty() { "" } else { " with" }, gpus.join(" and"))
            }
        })
    }

    fn record_text(&mut self, host: &str, client: ClientId, record: Record) -> Option<String> {
        let who = self.who(host, client);
        Some(match record {
            Record::CancelRun { run } => format!("cancel {} in {who}", self.task_of(host, client, run)),
            Record::CheckpointEnded { refusal, .. } => match refusal {
                None => format!("{who} has its checkpoint"),
                Some(failure) => format!("refuse {who} its checkpoint: {:?}", failure.kind),
            },
            Record::Locations { .. } => return None,
            Record::Region { region: Ok(region), .. } => {
                let client = self.clients.get_mut(&who).unwrap();
                (client.region, client.used) = (Some(region), 0);
                format!("grant {who} {}+{}", region.offset, region.len)
            }
            Record::Region { region: Err(failure), .. } => {
                format!("refuse {who} a region: {:?}", failure.kind)
            }
            Record::Resumed => format!("resume {who}"),
            Record::RetireRegions => format!("ask {who} for its regions"),
            Record::Run { run } => self.say_run(host, client, run),
            Record::StealBack { question, .. } => {
                self.clients.get_mut(&who).unwrap().questions.push_back(question);
                format!("steal back from {who}")
            }
            Record::Stop => format!("stop {who}"),
            Record::Unmap { token } => {
                let (object, _) = self.clients[&who].tokens.iter().find(|(_, t)| **t == token).unwrap();
                format!("unmap {}", self.name(*object))
            }
            Record::Value { token, object, extent } => {
                let value = self.hosts[host].node.value_for(client, token, object).cloned();
                let at = extent.map_or(String::new(), |e| format!(" mapped at {}", e.offset));
                format!("deliver {} to {who}: {}{at}", self.name(object), tell(value.as_ref()))
            }
        })
    }

    fn say_run(&mut self, host: &str, client: ClientId, run: u32) -> String {
        let who = self.who(host, client);
        let view = self.hosts[host].node.run(run).unwrap();
        let argument = |value: &ArgumentValue<'_>| match value {
            ArgumentValue::Inline(bytes) => format!("inline:{}", String::from_utf8_lossy(bytes)),
            ArgumentValue::Local(extent) => format!("mapped at {}", extent.offset),
        };
        let arguments = view
            .arguments
            .iter()
            .map(|(_, r, value)| format!(" {}={}", self.name(r.object), argument(value)));
        let arguments: String = arguments.collect();
        let (task, attempt) = (view.task, view.attempt);
        self.clients.get_mut(&who).unwrap().runs.insert(task, run);
        format!("run {} attempt {attempt} in {who}{arguments}", self.name(ObjectId::output(task, 0)))
    }

    fn say_packet(&mut self, host: &str, to: NodeId, packet: Packet) {
        let to = node_name(to);
        for message in &packet.messages {
            if let Some(text) = self.tell_message(message) {
                writeln!(self.said, "{host} -> {to}: {text}").unwrap();
            }
        }
        if self.hosts.contains_key(&to) {
            self.packets.push((host.to_owned(), to, packet));
        }
    }

    /// A message in a few words; reports of load are left out.
    fn tell_message(&self, message: &Message) -> Option<String> {
        Some(match message {
            Message::LoadReport { .. } => return None,
            Message::ActorRestart { actor } => {
                format!("start {} again", self.name(ObjectId::output(*actor, 0)))
            }
            Message::ActorAttach { lease, actor } => format!("attach lease {} to {actor}", lease.0),
            Message::ActorCheckpoint(offered) => {
                let object = &offered.object;
                let value = match &offered.snapshot.value {
                    DoneValue::Inline(bytes) => format!("inline:{}", String::from_utf8_lossy(bytes)),
                    DoneValue::Stored { len } => format!("stored:{len}"),
                };
                format!("snapshot {} of an actor: {value}", self.name(*object))
            }
            Message::ActorCheckpointed { object, refusal: None } => {
                format!("snapshot {} is kept", self.name(*object))
            }
            Message::ActorCheckpointed { object, refusal: Some(failure) } => {
                format!("snapshot {} is refused: {:?}", self.name(*object), failure.kind)
            }
            Message::BorrowAdded { reference } => format!("borrow {}", self.name(reference.object)),
            Message::BorrowReleased { object, count } => {
                format!("give back {count} of {}", self.name(*object))
            }
            Message::CopiesUnreadable { object } => format!("no copy of {} can be read", self.name(*object)),
            Message::Drain(message) => self.tell_drain(message),
            Message::HolderAdded { object } => format!("have a copy of {}", self.name(*object)),
            Message::HolderRemoved { object } => format!("have no copy of {}", self.name(*object)),
            Message::JobEnded { job } => format!("job {} ended", job.0),
            Message::LeaseDenied { lease, .. } => format!("deny lease {}", lease.0),
            Message::LeaseFailed { lease, failure } => format!("fail lease {}: {}", lease.0, failure.message),
            Message::LeaseGranted { lease } => format!("grant lease {}", lease.0),
            Message::LeaseRecall { lease } => format!("recall lease {}", lease.0),
            Message::LeaseRaise { lease, urgency } => format!("raise lease {} to {urgency}", lease.0),
            Message::LeaseRequest { lease, class, .. } => {
                format!("want lease {} for {}", lease.0, class.name)
            }
            Message::LeaseReturned { lease } => format!("return lease {}", lease.0),
            Message::LeaseRevoked { lease } => format!("revoke lease {}", lease.0),
            Message::ObjectFree { object } => format!("free {}", self.name(*object)),
            Message::ObjectLocate { object } => format!("locate {}", self.name(*object)),
            Message::ObjectState { object, state, .. } => {
                format!("{} is {}", self.name(*object), tell_state(state))
            }
            Message::Quota(message) => tell_quota(message),
            Message::ReadEnded { object } => format!("read {} no more", self.name(*object)),
            Message::ReadReply { object, turn } => {
                let turn = match turn {
                    Turn::Now => "now".to_owned(),
                    Turn::At(node) => format!("at {}", node_name(*node)),
                    Turn::Never => "never".to_owned(),
                };
                format!("read {} {turn}", self.name(*object))
            }
            Message::ReadRequest { object, sent, failed_at } => {
                let sent = if *sent { ", sent" } else { "" };
                let failed_at = failed_at.map(|node| format!(", not at {}", node_name(node)));
                format!("may I read {}{sent}{}", self.name(*object), failed_at.unwrap_or_default())
            }
            Message::TaskCancel { task, .. } => format!("cancel {}", self.name(ObjectId::output(*task, 0))),
            Message::TaskDone { task, attempt, outcome, .. } => {
                format!(
                    "done {} attempt {attempt}: {}",
                    self.name(ObjectId::output(*task, 0)),
                    tell_outcome(outcome)
                )
            }
            Message::TaskGiveBack { tasks, started, .. } => {
                let names: Vec<_> =
                    tasks.iter().map(|(task, _)| self.name(ObjectId::output(*task, 0))).collect();
                format!("{}: {}", if *started { "given up" } else { "not started" }, names.join(", "))
            }
            Message::TaskPush { task, .. } => {
                let states = task.dependencies.iter();
                let given = states.map(|d| {
                    format!(" {}={}", self.name(d.dependency.reference.object), tell_state(&d.state))
                });
                let given: String = given.collect();
                format!("push {} attempt {}{given}", self.name(ObjectId::output(task.task, 0)), task.attempt)
            }
            Message::TaskStealBack { lease } => format!("steal back from lease {}", lease.0),
            Message::Unreadable { .. } => "what cannot be read".to_owned(),
        })
    }

    fn tell_drain(&self, message: &DrainMessage) -> String {
        match message {
            DrainMessage::Begun => "drain".to_owned(),
            DrainMessage::CopyKept { object } => format!("keep a copy of {}", self.name(*object)),
            DrainMessage::CopyLeaving { object } => format!("leave with a copy of {}", self.name(*object)),
            DrainMessage::CopyMove { reference, len, from, others } => {
                let others: Vec<_> = others.iter().map(|node| node_name(*node)).collect();
                let (object, from) = (self.name(reference.object), node_name(*from));
                format!(
                    "keep the {len} bytes of {object} from {from}, or pass it on to [{}]",
                    others.join(" ")
                )
            }
        }
    }

    fn name(&self, object: ObjectId) -> String {
        self.names.get(&object).cloned().unwrap_or_else(|| object.to_string())
    }

    fn who(&self, host: &str, id: ClientId) -> String {
        let found = self.clients.iter().find(|(_, c)| c.host == host && c.id == id);
        found.map_or_else(|| format!("client {}", id.0), |(name, _)| name.clone())
    }

    fn task_of(&self, host: &str, client: ClientId, run: u32) -> String {
        let runs = &self.clients[&self.who(host, client)].runs;
        let task = runs.iter().find(|(_, r)| **r == run).map(|(task, _)| *task).unwrap();
        self.name(ObjectId::output(task, 0))
    }
}

fn node_id(name: &str) -> NodeId {
    NodeId(u64::from(name.bytes().next().unwrap()))
}

fn tell_quota(message: &QuotaMessage) -> String {
    match message {
        QuotaMessage::Granted { job, amount } => format!("have {amount} of the quota of job {}", job.0),
        QuotaMessage::Recalled { job, amount, .. } => {
            format!("want back {amount} of the quota of job {}", job.0)
        }
        QuotaMessage::Returned { job, amount } => format!("return {amount} of the quota of job {}", job.0),
        QuotaMessage::Wanted { job, amount } => format!("lack {amount} of the quota of job {}", job.0),
    }
}

fn role(options: &BTreeMap<&str, &str>) -> Role {
    match (number(options, "actor", 0), number(options, "method", 0)) {
        (1, _) => Role::Constructor,
        (_, 1) => Role::Method,
        _ => Role::Task,
    }
}

fn gpus(options: &BTreeMap<&str, &str>) -> u64 {
    options.get("gpu").map_or(0, |n| tharsis_types::resources::units("GPU", n.parse().unwrap()).unwrap())
}

fn node_name(id: NodeId) -> String {
    char::from(id.0 as u8).to_string()
}

fn number(options: &BTreeMap<&str, &str>, key: &str, default: u64) -> u64 {
    options.get(key).map_or(default, |n| n.parse::<i64>().unwrap() as u64)
}

fn kind(name: &str) -> FailureKind {
    *FailureKind::ALL.iter().find(|kind| kind.to_string() == name).unwrap()
}

fn tell(value: Option<&Value>) -> String {
    match value {
        None => "unknown".to_owned(),
        Some(Value::Failed(failure)) => tell_failure(failure),
        Some(Value::Inline(bytes)) => format!("inline:{}", String::from_utf8_lossy(bytes)),
        Some(Value::Stored { len }) => format!("stored:{len}"),
    }
}

fn tell_failure(failure: &Failure) -> String {
    let attempt =
        failure.root().origin.as_ref().map_or(String::new(), |o| format!(" in attempt {}", o.attempt));
    let is_lost = matches!(failure.kind, FailureKind::ObjectLost | FailureKind::RetriesExhausted);
    match (failure.behind(), failure.message.split_once(": ")) {
        (None, Some((_, cause))) if is_lost => format!("{:?}{attempt}: {cause}", failure.kind),
        (None, _) => format!("{:?}{attempt}", failure.kind),
        (Some(_), _) => format!("{:?} because of {:?}{attempt}", failure.kind, failure.root().kind),
    }
}

fn tell_state(state: &RemoteState) -> String {
    match state {
        RemoteState::Failed(failure) => tell_failure(failure),
        RemoteState::Freed => "freed".to_owned(),
        RemoteState::Inline(bytes) => format!("inline:{}", String::from_utf8_lossy(bytes)),
        RemoteState::Stored { len, holders } => {
            let holders: Vec<_> = holders.iter().map(|n| node_name(*n)).collect();
            format!("stored:{len} on {}", holders.join("+"))
        }
    }
}

fn tell_outcome(outcome: &DoneOutcome) -> String {
    let value = |value: &DoneValue| match value {
        DoneValue::Inline(bytes) => format!("inline:{}", String::from_utf8_lossy(bytes)),
        DoneValue::Stored { len } => format!("stored:{len}"),
    };
    match outcome {
        DoneOutcome::Returned(outputs) => {
            outputs.iter().map(|o| value(&o.value)).collect::<Vec<_>>().join(", ")
        }
        DoneOutcome::Failed { failure, .. } => tell_failure(failure),
    }
}
