//! Submitted programs: started as children of the node, supervised until they end, stopped with it.
//!
//! Each has a thread. It starts the program in a process group of its own, tells the control store what
//! becomes of it, and kills what is left of the group when the program has ended. The output goes to files in
//! the node's folder (`output`), which outlive the node.
//!
//! The record of a program is changed only where it is still the one that was written last: a node that was
//! away for long may have been declared dead meanwhile, and the name given to another program. Then the
//! program is killed, and the record of the other one stays as it is.
//!
//! If the node is killed, the kernel kills the program ([`PROGRAM_VARIABLE`]); nobody tells the control store
//! then. The record names the node, so that readers see that it is gone.

mod output;
mod program;

pub use program::{PROGRAM_VARIABLE, told_program};

use crate::claim::claim;
use crate::cluster::runtime::Tasks;
use crate::inbox::{Inbox, Input};
use crate::logs::unix_ms;
use crate::registry::lock;
use futures::StreamExt;
use futures::stream::BoxStream;
use output::{OutputFile, OutputReader};
use program::Running;
use prost::bytes::Bytes;
use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tharsis_core::Event;
use tharsis_gcs::ControlClient;
use tharsis_protos::control::NodeInfo;
use tharsis_protos::submission::{NAMESPACE, NewSubmission, OutputQuery, State, Submission, check_name};
use tharsis_protos::{CallError, Refusal, RefusalCode};
use tharsis_types::NodeId;
use tokio::sync::{mpsc, oneshot};

/// Programs that one node runs at a time.
const RUNNING_MAX: usize = 128;
/// Programs whose output a node keeps after their end.
const KEPT_MAX: usize = 200;
/// Pause between attempts to tell a control store that is away what has become of a program.
const STORE_PAUSE: Duration = Duration::from_millis(500);
/// The longest time after which a control store still carries out a call that was given up here.
const CALL_WAIT: Duration = Duration::from_secs(15);
/// Time that programs have to end by themselves when their node stops.
const STOP_GRACE: Duration = Duration::from_secs(2);
/// The longest time that a node which stops waits for programs that it killed.
const KILL_WAIT: Duration = Duration::from_secs(1);
/// Output that a process outside the program's group may still write is waited for at most for this long.
const OUTPUT_WAIT: Duration = Duration::from_secs(1);
/// Pause between two looks at something that changes soon.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Bytes of output that are read at once.
const PART_BYTES: usize = 64 << 10;
/// Parts of output on their way to one reader.
const PARTS_MAX: usize = 4;

/// The node, as records name it.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its id.
    pub node: NodeId,
    /// Boot id of its machine.
    pub host: String,
    /// Its socket.
    pub socket: PathBuf,
}

/// The submitted programs of a node.
pub struct Submissions {
    shared: Arc<Shared>,
}

struct Shared {
    place: Place,
    folder: PathBuf,
    control: ControlClient,
    tasks: Tasks,
    /// The loop, which waits for the programs when it drains.
    inbox: Arc<Inbox>,
    table: Mutex<Table>,
}

/// Programs that run.
#[derive(Default)]
struct Table {
    stopping: bool,
    by_name: BTreeMap<String, Arc<Entry>>,
}

/// A program that runs, or is about to.
#[derive(Default)]
struct Entry {
    running: Running,
    is_stopped: AtomicBool,
    output_is_over: AtomicBool,
}

impl Submissions {
    /// None yet. Their output will be in a folder of the node's own.
    #[must_use]
    pub fn new(
        place: Place,
        node_folder: PathBuf,
        control: ControlClient,
        tasks: Tasks,
        inbox: Arc<Inbox>,
    ) -> Self {
        let folder = node_folder.join("submissions");
        Self { shared: Arc::new(Shared { place, folder, control, tasks, inbox, table: Mutex::default() }) }
    }

    /// Starts a program: the id of its process.
    ///
    /// # Errors
    /// `AlreadyExists` for a name that is taken, `NotFound` if the program or its folder is not there,
    /// `ResourceExhausted` if as many run as may, `Unavailable` if the control store or the node stops.
    pub async fn submit(&self, new: NewSubmission) -> Result<u32, Refusal> {
        new.check()?;
        let (reply, answer) = oneshot::channel();
        let shared = Arc::clone(&self.shared);
        // A task of its own: a call that its caller gives up would leave the name taken half-way.
        self.shared.tasks.start(async move {
            let _told = reply.send(submit(shared, new).await);
        });
        answer.await.map_err(|_| stops())?
    }

    /// Tells a program to end (SIGTERM to its group), and kills it after `grace`. False if it has ended.
    ///
    /// # Errors
    /// `NotFound` if this node never ran it.
    pub fn stop(&self, name: &str, grace: Duration) -> Result<bool, Refusal> {
        check_name(name)?;
        let Some(entry) = lock(&self.shared.table).by_name.get(name).cloned() else {
            return if output::exists(&self.shared.folder, name) {
                Ok(false)
            } else {
                Err(self.unknown(name))
            };
        };
        entry.is_stopped.store(true, Ordering::Release);
        entry.running.tell_to_end();
        self.shared.tasks.start(async move {
            tokio::time::sleep(grace).await;
            entry.running.kill();
        });
        Ok(true)
    }

    /// Output of a program, from some lines before its end. Ends with it, or with the program if what comes
    /// is wanted as well.
    ///
    /// # Errors
    /// `NotFound` if there is none here, `ResourceExhausted` if there is no thread to read it.
    pub fn output(&self, query: &OutputQuery) -> Result<BoxStream<'static, Bytes>, Refusal> {
        check_name(&query.name)?;
        let reader = OutputReader::open(&self.shared.folder, &query.name, query.tail);
        let reader = reader.map_err(|_| self.unknown(&query.name))?;
        let (sender, receiver) = mpsc::channel(PARTS_MAX);
        let (shared, query) = (Arc::clone(&self.shared), query.clone());
        let thread = std::thread::Builder::new().name("output".into());
        let spawned = thread.spawn(move || send_output(&shared, &query, reader, &sender));
        spawned
            .map_err(|cause| Refusal::new(RefusalCode::ResourceExhausted, format!("no thread: {cause}")))?;
        let parts = futures::stream::unfold(receiver, |mut receiver| async move {
            Some((receiver.recv().await?, receiver))
        });
        Ok(parts.boxed())
    }

    /// Ends all programs, and waits until the control store knows.
    pub fn stop_all(&self) {
        let entries: Vec<_> = {
            let mut table = lock(&self.shared.table);
            table.stopping = true;
            table.by_name.values().cloned().collect()
        };
        for entry in &entries {
            entry.is_stopped.store(true, Ordering::Release);
            entry.running.tell_to_end();
        }
        if !self.shared.are_gone_within(STOP_GRACE) {
            entries.iter().for_each(|entry| entry.running.kill());
            self.shared.are_gone_within(KILL_WAIT);
        }
    }

    fn unknown(&self, name: &str) -> Refusal {
        let node = self.shared.place.node;
        Refusal::new(RefusalCode::NotFound, format!("node {node} has no output of a program {name:?}"))
    }
}

impl Shared {
    fn enter(&self, name: &str) -> Result<Arc<Entry>, Refusal> {
        let mut table = lock(&self.table);
        if table.stopping {
            return Err(stops());
        }
        if table.by_name.contains_key(name) {
            return Err(taken(name));
        }
        if RUNNING_MAX <= table.by_name.len() {
            let text =
                format!("TooManyPrograms: node {} runs {RUNNING_MAX} of them already", self.place.node);
            return Err(Refusal::new(RefusalCode::ResourceExhausted, text));
        }
        let entry = Arc::new(Entry::default());
        table.by_name.insert(name.to_owned(), Arc::clone(&entry));
        self.tell_count(&table);
        Ok(entry)
    }

    fn leave(&self, name: &str) {
        let mut table = lock(&self.table);
        table.by_name.remove(name);
        self.tell_count(&table);
    }

    /// Tells the loop how many programs run, in the order of the changes.
    fn tell_count(&self, table: &Table) {
        let count = table.by_name.len() as u64;
        self.inbox.put(Input::Event(Event::ProgramsRun { count }));
    }

    fn is_live(&self, name: &str) -> bool {
        let table = lock(&self.table);
        table.by_name.get(name).is_some_and(|entry| !entry.output_is_over.load(Ordering::Acquire))
    }

    fn are_gone_within(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        loop {
            if lock(&self.table).by_name.is_empty() {
                return true;
            }
            if until < Instant::now() {
                return false;
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    fn record(&self, new: &NewSubmission) -> Submission {
        Submission {
            name: new.name.clone(),
            words: new.words.clone(),
            folder: new.folder.clone(),
            node: self.place.node.to_string(),
            host: self.place.host.clone(),
            socket: self.place.socket.display().to_string(),
            state: State::Starting,
            pid: None,
            submitted_unix_ms: unix_ms(),
            ended_unix_ms: None,
            status: None,
            signal: None,
        }
    }

    /// Stores a record in the place of the one before it, as soon as the control store answers. False if
    /// another one is there, or none; if the node stops first nobody knows.
    fn replace(&self, before: &Submission, record: &Submission) -> bool {
        let (Ok(old), Ok(value)) = (json(before), json(record)) else { return true };
        let key = Bytes::from(record.name.clone().into_bytes());
        loop {
            let (control, key, old, value) = (self.control.clone(), key.clone(), old.clone(), value.clone());
            let stored =
                self.tasks.ask(async move { claim(&control, (NAMESPACE, &key), &value, Some(old)).await });
            match stored {
                Ok(Ok(other)) => return other.is_none(),
                Ok(Err(error)) if !lock(&self.table).stopping => {
                    tracing::info!(%error, name = record.name, "what became of a program is not stored");
                    std::thread::sleep(STORE_PAUSE);
                }
                _ => return true,
            }
        }
    }

    /// Removes the output of the programs that ended longest ago, and their records.
    fn forget_oldest(&self) {
        let live: Vec<String> = lock(&self.table).by_name.keys().cloned().collect();
        for name in output::remove_oldest(&self.folder, KEPT_MAX, &live) {
            let (control, place) = (self.control.clone(), self.place.clone());
            self.tasks.start(async move {
                let key = Bytes::from(name.into_bytes());
                let Ok(Some(found)) = control.kv_get(NAMESPACE, key.clone()).await else { return };
                let record = serde_json::from_slice::<Submission>(&found);
                let socket = place.socket.display().to_string();
                if record.is_ok_and(|record| record.host == place.host && record.socket == socket) {
                    // One that stays is removed with the next.
                    let _removed = control.kv_delete(NAMESPACE, key).await;
                }
            });
        }
    }
}

/// Starts a program and waits until it runs: the id of its process.
async fn submit(shared: Arc<Shared>, new: NewSubmission) -> Result<u32, Refusal> {
    let path = program::find(&new)?;
    let record = shared.record(&new);
    let claimed = Claimed::new(&record)?;
    let entry = shared.enter(&new.name)?;
    match claim_name(&shared.control, &claimed.key, &claimed.stored).await {
        Ok(true) => {}
        Ok(false) => {
            shared.leave(&new.name);
            return Err(taken(&new.name));
        }
        Err(error) => {
            // The record may be there all the same.
            shared.tasks.start(withdraw(Arc::clone(&shared), claimed));
            shared.leave(&new.name);
            return Err(Refusal::new(RefusalCode::Unavailable, format!("the control store: {error}")));
        }
    }
    let (reply, answer) = oneshot::channel();
    let name = new.name.clone();
    let supervisor = Arc::clone(&shared);
    let spawned = std::thread::Builder::new().name("submission".into()).spawn(move || {
        let started = start(&supervisor, &entry, &new, &path);
        // Whoever submitted it may be gone, in both cases.
        match started {
            Ok(pid) => {
                let running = Submission { pid: Some(pid), state: State::Running, ..record.clone() };
                if supervisor.replace(&record, &running) {
                    let _told = reply.send(Ok(pid));
                    await_end(&supervisor, &entry, running);
                    supervisor.leave(&new.name);
                } else {
                    end_nameless(&supervisor, &entry, &new.name);
                    supervisor.leave(&new.name);
                    let _told = reply.send(Err(taken(&new.name)));
                }
            }
            Err(refusal) => {
                supervisor.leave(&new.name);
                let _told = reply.send(Err(refusal));
            }
        }
    });
    let failed = match spawned {
        Ok(_detached) => match answer.await {
            Ok(Ok(pid)) => return Ok(pid),
            Ok(Err(refusal)) => refusal,
            Err(_) => stops(),
        },
        Err(cause) => {
            shared.leave(&name);
            Refusal::new(RefusalCode::ResourceExhausted, format!("no thread: {cause}"))
        }
    };
    // The program never ran: its name is free again.
    if let Err(error) = claimed.remove(&shared.control).await {
        tracing::info!(%error, name, "the record of a program that did not start is removed later");
        shared.tasks.start(withdraw(Arc::clone(&shared), claimed));
    }
    Err(failed)
}

/// Claims the name of a program; false if another one has it.
async fn claim_name(control: &ControlClient, key: &Bytes, record: &Bytes) -> Result<bool, CallError> {
    let Some(there) = claim(control, (NAMESPACE, key), record, None).await? else { return Ok(true) };
    let Ok(other) = serde_json::from_slice::<Submission>(&there) else { return Ok(false) };
    if other.state != State::Starting || !never_runs(&other, &control.list_nodes().await?.nodes) {
        return Ok(false);
    }
    Ok(claim(control, (NAMESPACE, key), record, Some(there)).await?.is_none())
}

/// Whether a program was never started and never will be: its node died between its claim of the name and the
/// start, and has left a record that keeps the name.
fn never_runs(record: &Submission, members: &[NodeInfo]) -> bool {
    record.state == State::Starting && members.iter().all(|member| member.id.to_string() != record.node)
}

/// A name that was claimed for a program.
struct Claimed {
    key: Bytes,
    /// The record of the claim.
    stored: Bytes,
    /// The one in its place before it is removed.
    withdrawn: Bytes,
}

impl Claimed {
    fn new(record: &Submission) -> Result<Claimed, Refusal> {
        let (state, ended_unix_ms) = (State::Failed, Some(record.submitted_unix_ms));
        Ok(Claimed {
            key: Bytes::from(record.name.clone().into_bytes()),
            stored: json(record)?,
            withdrawn: json(&Submission { state, ended_unix_ms, ..record.clone() })?,
        })
    }

    /// Removes the record of a program that did not start, unless another one has the name. Values are
    /// replaced where they are known, and removed whatever they are: so the claim is replaced first by a
    /// record that nobody takes over.
    async fn remove(&self, control: &ControlClient) -> Result<(), CallError> {
        let Claimed { key, stored, withdrawn } = self;
        match control.kv_get(NAMESPACE, key.clone()).await? {
            Some(found) if found == *stored => {
                if claim(control, (NAMESPACE, key), withdrawn, Some(found)).await?.is_some() {
                    return Ok(());
                }
            }
            Some(found) if found == *withdrawn => {}
            _ => return Ok(()),
        }
        control.kv_delete(NAMESPACE, key.clone()).await.map(drop)
    }
}

/// Removes a claim ([`Claimed::remove`]) as soon as the control store answers, and once more when no call
/// that was given up can be carried out any more.
async fn withdraw(shared: Arc<Shared>, claimed: Claimed) {
    let mut is_again = false;
    while !lock(&shared.table).stopping {
        match claimed.remove(&shared.control).await {
            Ok(()) if is_again => return,
            Ok(()) => {
                is_again = true;
                tokio::time::sleep(CALL_WAIT).await;
            }
            Err(_) => tokio::time::sleep(STORE_PAUSE).await,
        }
    }
}

/// Starts a program, and a thread that keeps its output: the id of its process.
fn start(shared: &Shared, entry: &Arc<Entry>, new: &NewSubmission, path: &Path) -> Result<u32, Refusal> {
    let file = OutputFile::create(&shared.folder, &new.name);
    let file = file.map_err(|cause| {
        let text = format!("folder {} for output: {cause}", shared.folder.display());
        Refusal::new(RefusalCode::ResourceExhausted, text)
    })?;
    let started = entry.running.start(new, path, &shared.place.socket);
    let (pid, output) = started.inspect_err(|_| output::remove(&shared.folder, &new.name))?;
    // A stop that came meanwhile found no process.
    if lock(&shared.table).stopping || entry.is_stopped.load(Ordering::Acquire) {
        entry.running.tell_to_end();
    }
    let copied = {
        let entry = Arc::clone(entry);
        std::thread::Builder::new().name("output".into()).spawn(move || {
            copy_output(output, file);
            entry.output_is_over.store(true, Ordering::Release);
        })
    };
    if let Err(error) = copied {
        tracing::warn!(%error, name = new.name, "no thread for the output of a program");
        entry.output_is_over.store(true, Ordering::Release);
    }
    Ok(pid)
}

/// Ends a program whose name is another one's by now.
fn end_nameless(shared: &Shared, entry: &Entry, name: &str) {
    tracing::warn!(name, "the name of a program was given to another one: it is killed");
    entry.running.kill();
    if let Err(error) = entry.running.await_end() {
        tracing::warn!(%error, name, "a program that was killed is not waited for");
    }
    output::remove(&shared.folder, name);
}

/// Waits until a program and its output have ended, and tells the control store.
fn await_end(shared: &Shared, entry: &Entry, running: Submission) {
    let mut record = running.clone();
    let ended = entry.running.await_end();
    let until = Instant::now() + OUTPUT_WAIT;
    while !entry.output_is_over.load(Ordering::Acquire) && Instant::now() < until {
        std::thread::sleep(LOOK_AGAIN);
    }
    record.ended_unix_ms = Some(unix_ms());
    if let Ok(status) = &ended {
        (record.status, record.signal) = (status.code(), status.signal());
    }
    record.state = match ended {
        _ if entry.is_stopped.load(Ordering::Acquire) => State::Stopped,
        Ok(status) if status.success() => State::Succeeded,
        _ => State::Failed,
    };
    if !shared.replace(&running, &record) {
        tracing::warn!(name = record.name, "the record of a program was removed or replaced while it ran");
    }
    shared.forget_oldest();
}

fn copy_output(mut from: impl Read, mut to: OutputFile) {
    let mut part = vec![0; PART_BYTES];
    let mut is_written = true;
    while let Ok(len @ 1..) = from.read(&mut part) {
        // A program is not to fail because there is no room for its output.
        if let Err(error) = to.write(&part[..len])
            && is_written
        {
            tracing::warn!(%error, "output of a submitted program is lost");
            is_written = false;
        }
    }
}

fn send_output(shared: &Shared, query: &OutputQuery, mut reader: OutputReader, to: &mpsc::Sender<Bytes>) {
    loop {
        // Looked at before the output: all that it wrote is read once it has ended.
        let is_live = shared.is_live(&query.name);
        match reader.read(PART_BYTES) {
            Ok(bytes) if bytes.is_empty() => {
                if !query.follow || !is_live || to.is_closed() {
                    return;
                }
                std::thread::sleep(LOOK_AGAIN);
            }
            Ok(bytes) => {
                if to.blocking_send(bytes.into()).is_err() {
                    return;
                }
            }
            Err(error) => {
                tracing::info!(%error, name = query.name, "the output of a program is not readable");
                return;
            }
        }
    }
}

fn json(record: &Submission) -> Result<Bytes, Refusal> {
    let text = serde_json::to_vec(record);
    text.map(Bytes::from).map_err(|cause| Refusal::new(RefusalCode::Internal, cause.to_string()))
}

fn taken(name: &str) -> Refusal {
    Refusal::new(
        RefusalCode::AlreadyExists,
        format!("NameTaken: a program with the name {name:?} was submitted before"),
    )
}

fn stops() -> Refusal {
    Refusal::new(RefusalCode::Unavailable, "the node stops")
}

#[cfg(test)]
mod tests;
