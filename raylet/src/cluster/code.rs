//! Programs of jobs: which there are, where they are, how one comes to this node.
//!
//! A driver's executable is the code unit of its job, named by the hash of its bytes. It is hashed when a
//! second node is there (a node alone never needs the hash), off the way of the driver, and then published:
//! the control store knows the hash of the job and the nodes that hold it. What fails is tried again for as
//! long as the job lives. A node that must start a worker of a job that it does not know asks for both,
//! fetches the bytes over the transfer port unless it has them already (a driver here may run the same
//! program, or the node itself: `OwnProgram`), checks the hash, keeps the file in its session folder and
//! is a holder from then on. Programs are looked up and fetched independently, each once at a time.
//!
//! The hash of a job has a table of its own, because it is known only after the job was registered; refused:
//! to hash before a job may start, which costs a first run tens of milliseconds. The entry ends with the job.
//!
//! On the transfer port a program has a key that no object can have: four zero bytes, where an object has its
//! job, which is never 0, and the first sixteen bytes of the hash.

use super::links::Peers;
use super::own_program::{OwnProgram, hash};
use super::pulls::Pulls;
use super::runtime::Tasks;
use crate::executable::{Executable, Identity};
use crate::registry::lock;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::hash::Hash;
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tharsis_core::jobs::JobSet;
use tharsis_gcs::ControlClient;
use tharsis_object_store::transfer::{ObjectKey, ReadAt};
use tharsis_protos::{CallError, RefusalCode};
use tharsis_types::{CodeUnitId, Failure, FailureKind, JobId, NodeId};

/// The longest time that a job's node may take to publish its program.
const PUBLISH_WAIT: Duration = Duration::from_secs(20);
/// Between two looks for it, at first and later.
const LOOK_PAUSE_MIN: Duration = Duration::from_millis(20);
const LOOK_PAUSE_MAX: Duration = Duration::from_millis(500);
/// Before a publication that failed is tried again.
const PUBLISH_PAUSE: Duration = Duration::from_secs(2);
/// Largest program.
const PROGRAM_BYTES_MAX: u64 = 4 << 30;
/// The longest time that a program may take to arrive, all attempts at all holders together.
const FETCH_WAIT: Duration = Duration::from_secs(300);
/// Bytes of a program in memory at a time, while it is fetched.
const STEP_BYTES: usize = 1 << 20;
/// Programs that are kept though no job runs them now: the next job often runs one of them again.
const PROGRAMS_UNUSED_MAX: usize = 4;

/// The programs that a node has.
pub struct Code {
    me: NodeId,
    folder: PathBuf,
    control: ControlClient,
    tasks: Tasks,
    peers: Arc<Peers>,
    pulls: Arc<Pulls>,
    own: OwnProgram,
    state: Mutex<State>,
    /// Jobs whose program is being looked up, and programs that are being fetched: one at a time each.
    looking: Turns<JobId>,
    fetching: Turns<CodeUnitId>,
}

#[derive(Default)]
struct State {
    /// Jobs of drivers here whose programs are not published.
    unpublished: HashMap<JobId, Executable>,
    is_publishing: bool,
    /// Programs of other nodes' jobs.
    found: HashMap<JobId, Executable>,
    /// The nodes of the drivers of jobs that run, of those that have a driver here, or whose programs were
    /// looked up. Nothing is noted of others: the end of a job comes once, perhaps while its program is on
    /// its way.
    driver_nodes: HashMap<JobId, NodeId>,
    /// Jobs that have ended. The control store may say for a while longer that they run, and a start that
    /// waits for its thread may ask for their programs later.
    ended: JobSet,
    /// Programs that others may fetch here.
    programs: HashMap<ObjectKey, Program>,
}

/// A program that is here. The open file stays the same when another one takes its path.
struct Program {
    unit: CodeUnitId,
    executable: Executable,
    len: u64,
    identity: Identity,
    /// The file in the session folder, if it came from another node.
    copy: Option<PathBuf>,
    jobs: HashSet<JobId>,
    /// When a job that runs it last began or ended.
    used: Instant,
}

impl State {
    /// A job runs a program, unless it has ended.
    fn enter(&mut self, job: JobId, unit: CodeUnitId) {
        if !self.driver_nodes.contains_key(&job) {
            return;
        }
        if let Some(program) = self.programs.get_mut(&key_of(unit)) {
            program.jobs.insert(job);
            program.used = Instant::now();
        }
    }

    /// Notes the node of a job's driver; whether it was noted before. None if the job has ended.
    fn note_driver(&mut self, job: JobId, driver: NodeId) -> Option<bool> {
        (!self.ended.contains(job)).then(|| self.driver_nodes.insert(job, driver).is_some())
    }

    /// The program of another node's job is here.
    fn note_found(&mut self, job: JobId, unit: CodeUnitId, executable: &Executable) {
        if self.driver_nodes.contains_key(&job) {
            self.found.insert(job, executable.clone());
        }
        self.enter(job, unit);
    }

    /// A job has ended.
    fn end(&mut self, job: JobId) {
        self.ended.insert(job);
        self.forget(job);
    }

    /// Nothing is noted of a job any more.
    fn forget(&mut self, job: JobId) {
        self.unpublished.remove(&job);
        self.found.remove(&job);
        self.driver_nodes.remove(&job);
        self.leave(job);
    }

    /// A job runs its program no more. Of programs that no job runs, those used last stay.
    fn leave(&mut self, job: JobId) {
        for program in self.programs.values_mut().filter(|program| program.jobs.contains(&job)) {
            program.jobs.remove(&job);
            program.used = Instant::now();
        }
        let unused = self.programs.iter().filter(|(_, program)| program.jobs.is_empty());
        let mut unused: Vec<_> = unused.map(|(key, program)| (program.used, *key)).collect();
        unused.sort_unstable();
        for (_, key) in unused.iter().rev().skip(PROGRAMS_UNUSED_MAX) {
            let copy = self.programs.remove(key).and_then(|program| program.copy);
            if let Some(Err(error)) = copy.map(std::fs::remove_file) {
                tracing::debug!(%error, "a program that nobody needs stays in the session folder");
            }
        }
    }
}

/// One lock per key, for as long as somebody wants it.
struct Turns<K>(Mutex<HashMap<K, Arc<Mutex<()>>>>);

impl<K: Copy + Eq + Hash> Turns<K> {
    fn new() -> Self {
        Self(Mutex::default())
    }

    /// Runs `work` while nobody else does so for this key.
    fn take<T>(&self, key: K, work: impl FnOnce() -> T) -> T {
        let turn = Arc::clone(lock(&self.0).entry(key).or_default());
        let mine = lock(&turn);
        let outcome = work();
        drop(mine);
        let mut turns = lock(&self.0);
        // The table's and ours: nobody else waits.
        if Arc::strong_count(&turn) == 2 {
            turns.remove(&key);
        }
        outcome
    }
}

/// A program that another node reads.
struct ProgramReader {
    file: Arc<File>,
    len: u64,
}

impl ReadAt for ProgramReader {
    fn total_bytes(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, target: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(target, offset)
    }
}

impl Code {
    /// No programs yet; fetched ones go to `folder`.
    #[must_use]
    pub fn new(
        me: NodeId,
        folder: PathBuf,
        control: ControlClient,
        tasks: Tasks,
        peers: Arc<Peers>,
        pulls: Arc<Pulls>,
    ) -> Self {
        let (own, state) = (OwnProgram::default(), Mutex::default());
        let (looking, fetching) = (Turns::new(), Turns::new());
        Self { me, folder, control, tasks, peers, pulls, own, state, looking, fetching }
    }

    /// A driver's job began on this node.
    pub fn job_began(self: &Arc<Self>, job: JobId, executable: Executable) {
        {
            let mut state = lock(&self.state);
            state.driver_nodes.insert(job, self.me);
            state.unpublished.insert(job, executable);
        }
        if !self.peers.is_empty() {
            self.publish();
        }
    }

    /// There is another node: programs must be where it finds them.
    pub fn node_joined(self: &Arc<Self>) {
        self.publish();
    }

    /// A job ended, here or on another node. Whatever a publication under way still does, the control store
    /// takes no program of a job that has ended.
    pub fn job_ended(&self, job: JobId) {
        lock(&self.state).end(job);
    }

    /// The jobs with programs here whose drivers were on `node`.
    #[must_use]
    pub fn jobs_driven_by(&self, node: NodeId) -> Vec<JobId> {
        let state = lock(&self.state);
        state.driver_nodes.iter().filter(|(_, driver)| **driver == node).map(|(job, _)| *job).collect()
    }

    /// Whether the driver of a job is on `node`, as far as is known here: the control store has said so.
    #[must_use]
    pub fn is_driven_by(&self, job: JobId, node: NodeId) -> bool {
        lock(&self.state).driver_nodes.get(&job) == Some(&node)
    }

    /// The jobs of other nodes with programs here.
    #[must_use]
    pub fn jobs_of_others(&self) -> Vec<JobId> {
        let state = lock(&self.state);
        state.driver_nodes.iter().filter(|(_, driver)| **driver != self.me).map(|(job, _)| *job).collect()
    }

    /// Whether a key of the transfer port stands for a program.
    #[must_use]
    pub fn has(&self, key: &ObjectKey) -> bool {
        lock(&self.state).programs.contains_key(key)
    }

    /// The bytes behind a key of the transfer port.
    #[must_use]
    pub fn open(&self, key: &ObjectKey) -> Option<Box<dyn ReadAt>> {
        let state = lock(&self.state);
        let program = state.programs.get(key)?;
        Some(Box::new(ProgramReader { file: program.executable.file(), len: program.len }))
    }

    /// The program of another node's job, fetched if need be. Blocks; not for threads of the runtime.
    ///
    /// # Errors
    /// `WorkerStartFailed` if nobody has it, `DataCorrupt` if what came is not what was published.
    pub fn find(&self, job: JobId) -> Result<Executable, Failure> {
        if let Some(executable) = self.found(job) {
            return Ok(executable);
        }
        self.looking.take(job, || self.found(job).map_or_else(|| self.look_up(job), Ok))
    }

    fn look_up(&self, job: JobId) -> Result<Executable, Failure> {
        let unit = self.await_unit(job)?;
        let executable = self.fetching.take(unit, || match self.executable(unit) {
            Some(executable) => Ok(executable),
            None => self.fetch(job, unit),
        })?;
        lock(&self.state).note_found(job, unit, &executable);
        Ok(executable)
    }

    fn found(&self, job: JobId) -> Option<Executable> {
        lock(&self.state).found.get(&job).cloned()
    }

    /// A program that is here.
    fn executable(&self, unit: CodeUnitId) -> Option<Executable> {
        let state = lock(&self.state);
        state.programs.get(&key_of(unit)).filter(|p| p.unit == unit).map(|p| p.executable.clone())
    }

    /// Hashes and publishes what is not published, on a thread of its own, one program at a time.
    fn publish(self: &Arc<Self>) {
        {
            let mut state = lock(&self.state);
            if state.is_publishing || state.unpublished.is_empty() {
                return;
            }
            state.is_publishing = true;
        }
        let code = Arc::clone(self);
        let started = Tasks::start_blocking(move || {
            let mut failed = HashSet::new();
            while let Some((job, executable)) = code.next_unpublished(&failed) {
                match code.publish_one(job, &executable) {
                    Ok(()) => drop(lock(&code.state).unpublished.remove(&job)),
                    Err(cause) => {
                        tracing::warn!(%job, %executable, cause, "program is not published yet");
                        failed.insert(job);
                    }
                }
            }
            if !failed.is_empty() {
                code.publish_later();
            }
        });
        if let Err(error) = started {
            tracing::warn!(%error, "no thread to publish programs: they are published later");
            lock(&self.state).is_publishing = false;
            self.publish_later();
        }
    }

    /// A job whose program is to be published and was not tried in this round; the round ends with none.
    fn next_unpublished(&self, failed: &HashSet<JobId>) -> Option<(JobId, Executable)> {
        let mut state = lock(&self.state);
        let mut jobs = state.unpublished.iter().filter(|(job, _)| !failed.contains(*job));
        let next = jobs.next().map(|(job, executable)| (*job, executable.clone()));
        state.is_publishing = next.is_some();
        next
    }

    fn publish_later(self: &Arc<Self>) {
        let code = Arc::clone(self);
        self.tasks.start(async move {
            tokio::time::sleep(PUBLISH_PAUSE).await;
            code.publish();
        });
    }

    fn publish_one(&self, job: JobId, executable: &Executable) -> Result<(), String> {
        let identity = executable.identity().map_err(|e| e.to_string())?;
        let known = lock(&self.state).programs.values().find(|p| p.identity == identity).map(|p| p.unit);
        let unit = match known {
            Some(unit) => unit,
            None => {
                let unit = hash(&executable.file()).map_err(|e| e.to_string())?;
                self.keep(job, unit, executable.clone(), identity, None);
                unit
            }
        };
        lock(&self.state).enter(job, unit);
        let (control, me, len) = (self.control.clone(), self.me, identity.len);
        let published = self.tasks.ask(async move {
            control.put_code_unit(unit, len, me).await?;
            control.put_program(job, unit, me).await
        });
        match published.map_err(|f| f.message)? {
            // The job has ended: there is nothing to publish any more.
            Err(error) if error.refusal_code() == Some(RefusalCode::NotFound) => Ok(()),
            outcome => outcome.map_err(|e| e.to_string()),
        }
    }

    /// Notes a program that a job runs.
    fn keep(
        &self,
        job: JobId,
        unit: CodeUnitId,
        executable: Executable,
        identity: Identity,
        copy: Option<PathBuf>,
    ) {
        let (jobs, used) = (HashSet::new(), Instant::now());
        let program = Program { unit, executable, len: identity.len, identity, copy, jobs, used };
        let mut state = lock(&self.state);
        state.programs.insert(key_of(unit), program);
        state.enter(job, unit);
    }

    /// The hash of a job's program, as soon as its node has published it.
    fn await_unit(&self, job: JobId) -> Result<CodeUnitId, Failure> {
        let until = Instant::now() + PUBLISH_WAIT;
        let mut pause = LOOK_PAUSE_MIN;
        loop {
            let control = self.control.clone();
            let found = self.tasks.ask(async move { control.get_program(job).await })?;
            let found = found.map_err(|e| {
                if e.refusal_code() == Some(RefusalCode::NotFound) {
                    lock(&self.state).forget(job);
                }
                unavailable(job, &e)
            })?;
            let is_noted = lock(&self.state).note_driver(job, found.driver_node);
            let Some(is_noted) = is_noted else {
                return Err(Failure::new(FailureKind::WorkerStartFailed, format!("job {job} has ended")));
            };
            if !is_noted {
                // The driver's node may have left before this was noted. An answer from now on says so; a
                // later leave finds the note.
                continue;
            }
            if let Some(unit) = found.unit {
                return Ok(unit);
            }
            if until < Instant::now() {
                let text =
                    format!("the program of job {job} was not published within {} s", PUBLISH_WAIT.as_secs());
                return Err(Failure::new(FailureKind::WorkerStartFailed, text));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(LOOK_PAUSE_MAX);
        }
    }

    fn fetch(&self, job: JobId, unit: CodeUnitId) -> Result<Executable, Failure> {
        let control = self.control.clone();
        let found = self.tasks.ask(async move { control.get_code_unit(unit).await })?;
        let found = found.map_err(|e| unavailable(job, &e))?;
        let failed = |text: String| Failure::new(FailureKind::WorkerStartFailed, text);
        let found = found.ok_or_else(|| failed(format!("no node holds {unit}, the program of job {job}")))?;
        if PROGRAM_BYTES_MAX < found.size_bytes {
            let text =
                format!("program {unit} has {} bytes, the limit is {PROGRAM_BYTES_MAX}", found.size_bytes);
            return Err(failed(text));
        }
        let path = self.folder.join(unit.to_string());
        if let Some(executable) = self.own.if_it_is(unit, found.size_bytes)
            && let Ok(executable) = self.publish_copy(job, unit, executable, None)
        {
            return Ok(executable);
        }
        let until = Instant::now() + FETCH_WAIT;
        let mut problem = failed(format!("no other node holds {unit}, the program of job {job}"));
        for holder in found.holders.into_iter().filter(|holder| *holder != self.me) {
            match self.fetch_from(holder, unit, found.size_bytes, &path, until) {
                Ok(()) => {
                    let opened = File::open(&path).map(|file| Executable::new(file, path.clone()));
                    let kept = opened.and_then(|it| self.publish_copy(job, unit, it, Some(path.clone())));
                    return kept.map_err(|e| failed(at(&path, &e)));
                }
                Err(failure) => problem = failure,
            }
        }
        Err(problem)
    }

    /// Writes down what a node sends as a program, a piece at a time, and checks that it is.
    fn fetch_from(
        &self,
        holder: NodeId,
        unit: CodeUnitId,
        len: u64,
        path: &Path,
        until: Instant,
    ) -> Result<(), Failure> {
        let failed = |cause: String| {
            let text = format!("program {unit} from node {holder}: {cause}");
            Failure::new(FailureKind::WorkerStartFailed, text)
        };
        let partial = path.with_extension("partial");
        let on_disk = |error: io::Error| failed(at(&partial, &error));
        let mut file = File::options()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o700)
            .open(&partial)
            .map_err(on_disk)?;
        let (mut hasher, mut piece) = (blake3::Hasher::new(), vec![0; STEP_BYTES]);
        let mut done = 0;
        while done < len {
            let piece = &mut piece[..(len - done).min(STEP_BYTES as u64) as usize];
            let wait = until.saturating_duration_since(Instant::now());
            let fetched = self.pulls.connections().fetch(holder, &key_of(unit), done, piece, wait);
            fetched.map_err(|unread| failed(unread.cause))?;
            hasher.update(piece);
            file.write_all(piece).map_err(on_disk)?;
            done += piece.len() as u64;
        }
        let hash = hasher.finalize();
        if hash.as_bytes() != &unit.0 {
            let text = format!("what node {holder} sent is not program {unit}: its hash is {hash}");
            return Err(Failure::new(FailureKind::DataCorrupt, text));
        }
        std::fs::rename(&partial, path).map_err(on_disk)
    }

    /// Says that a program that is now here, perhaps as a file in the session folder, can be fetched here as
    /// well.
    fn publish_copy(
        &self,
        job: JobId,
        unit: CodeUnitId,
        executable: Executable,
        copy: Option<PathBuf>,
    ) -> io::Result<Executable> {
        let identity = executable.identity()?;
        self.keep(job, unit, executable.clone(), identity, copy);
        let (control, me, len) = (self.control.clone(), self.me, identity.len);
        self.tasks.start(async move {
            if let Err(error) = control.put_code_unit(unit, len, me).await {
                tracing::debug!(%error, "other nodes do not learn that a program is here");
            }
        });
        Ok(executable)
    }
}

fn at(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}

fn key_of(unit: CodeUnitId) -> ObjectKey {
    let mut key = [0; 20];
    key[4..].copy_from_slice(&unit.0[..16]);
    key
}

fn unavailable(job: JobId, error: &CallError) -> Failure {
    Failure::new(
        FailureKind::WorkerStartFailed,
        format!("the program of job {job} cannot be looked up: {error}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(folder: &Path, number: u8) -> (CodeUnitId, Program) {
        let path = folder.join(number.to_string());
        std::fs::write(&path, [number; 16]).unwrap();
        let executable = Executable::new(File::open(&path).unwrap(), path.clone());
        let identity = executable.identity().unwrap();
        let (unit, len) = (CodeUnitId([number; 32]), identity.len);
        let (copy, jobs, used) = (Some(path), HashSet::new(), Instant::now());
        (unit, Program { unit, executable, len, identity, copy, jobs, used })
    }

    #[test]
    fn programs_go_with_their_jobs_but_for_those_used_last() {
        let folder = tempfile::tempdir().unwrap();
        let files = || std::fs::read_dir(folder.path()).unwrap().count();
        let mut state = State::default();
        for number in 1..=10 {
            let (unit, program) = program(folder.path(), number);
            state.programs.insert(key_of(unit), program);
            state.driver_nodes.insert(JobId(number.into()), NodeId(1));
            state.enter(JobId(number.into()), unit);
        }
        // Two jobs run the first one.
        state.driver_nodes.insert(JobId(11), NodeId(1));
        state.enter(JobId(11), CodeUnitId([1; 32]));
        (1..=9).for_each(|job| state.leave(JobId(job)));
        let mut left: Vec<_> = state.programs.values().map(|program| program.unit.0[0]).collect();
        left.sort_unstable();
        assert_eq!(left, [1, 6, 7, 8, 9, 10]);
        assert_eq!(files(), 6);
        state.leave(JobId(11));
        state.leave(JobId(10));
        assert_eq!((state.programs.len(), files()), (PROGRAMS_UNUSED_MAX, PROGRAMS_UNUSED_MAX));
    }

    /// Nobody hears of the end a second time, so what is noted behind it would stay.
    #[test]
    fn a_job_that_ends_while_its_program_is_fetched_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (mut state, job) = (State::default(), JobId(1));
        let (unit, program) = program(folder.path(), 1);
        let executable = program.executable.clone();
        state.programs.insert(key_of(unit), program);
        assert_eq!(state.note_driver(job, NodeId(2)), Some(false));
        state.end(job);
        // The control store may not know it yet.
        assert_eq!(state.note_driver(job, NodeId(2)), None);
        state.note_found(job, unit, &executable);
        assert!(state.found.is_empty() && state.programs[&key_of(unit)].jobs.is_empty());
        // One that runs is noted.
        state.driver_nodes.insert(JobId(2), NodeId(2));
        state.note_found(JobId(2), unit, &executable);
        assert!(
            state.found.contains_key(&JobId(2)) && state.programs[&key_of(unit)].jobs.contains(&JobId(2))
        );
        state.end(JobId(2));
        assert!(state.found.is_empty() && state.programs[&key_of(unit)].jobs.is_empty());
        // A start of a third one had to wait for a thread, and asks when the job has ended.
        state.end(JobId(3));
        assert_eq!(state.note_driver(JobId(3), NodeId(2)), None);
        state.note_found(JobId(3), unit, &executable);
        assert!(state.found.is_empty() && state.driver_nodes.is_empty());
    }
}
