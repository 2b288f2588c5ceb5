//! Programs of jobs: which there are, where they are, how one comes to this node.
//!
//! A driver's executable is the code unit of its job, named by the hash of its bytes. It is hashed when a second node is
//! there (a node alone never needs the hash), off the way of the driver, and then published: the control store knows the
//! hash of the job and the nodes that hold it. A node that must start a worker of a job that it does not know asks for both,
//! fetches the bytes over the transfer port, checks the hash, keeps the file in its session folder and is a holder from then
//! on.
//!
//! The hash of a job has a table of its own, because it is known only after the job was registered; refused: to hash before a
//! job may start, which costs a first run tens of milliseconds. The entry ends with the job.
//!
//! On the transfer port a program has a key that no object can have: four zero bytes, where an object has its job, which is
//! never 0, and the first sixteen bytes of the hash.

use super::links::Peers;
use super::pulls::Pulls;
use super::runtime::Tasks;
use crate::registry::lock;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tharsis_gcs::ControlClient;
use tharsis_object_store::transfer::{ObjectKey, ReadAt};
use tharsis_protos::CallError;
use tharsis_types::{CodeUnitId, Failure, FailureKind, JobId, NodeId};

/// How long a job's node may take to publish its program.
const PUBLISH_WAIT: Duration = Duration::from_secs(20);
/// Between two looks for it.
const PUBLISH_POLL: Duration = Duration::from_millis(20);
/// Largest program.
const PROGRAM_BYTES_MAX: u64 = 4 << 30;
/// How long a program may take to arrive.
const FETCH_WAIT: Duration = Duration::from_secs(300);
/// Bytes of a program in memory at a time, while it is hashed or fetched.
const STEP_BYTES: usize = 1 << 20;

/// The programs that a node has.
pub struct Code {
    me: NodeId,
    folder: PathBuf,
    control: ControlClient,
    tasks: Tasks,
    peers: Arc<Peers>,
    pulls: Arc<Pulls>,
    state: Mutex<State>,
    /// One program is hashed, and one fetched, at a time.
    hashing: Mutex<()>,
    fetching: Mutex<()>,
}

#[derive(Default)]
struct State {
    /// Jobs of drivers here whose programs are not published.
    unpublished: HashMap<JobId, PathBuf>,
    /// Programs of other nodes' jobs that were fetched.
    fetched: HashMap<JobId, PathBuf>,
    /// Programs that others may fetch here.
    programs: HashMap<ObjectKey, Program>,
}

/// A program that is here. The open file stays the same when another one takes its path.
struct Program {
    unit: CodeUnitId,
    file: Arc<File>,
    len: u64,
    identity: Identity,
}

/// What tells whether a file is still the one that was hashed.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    len: u64,
    modified_ns: (i64, i64),
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
        let (state, hashing, fetching) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self { me, folder, control, tasks, peers, pulls, state, hashing, fetching }
    }

    /// A driver's job began on this node.
    pub fn job_began(self: &Arc<Self>, job: JobId, executable: PathBuf) {
        lock(&self.state).unpublished.insert(job, executable);
        if !self.peers.is_empty() {
            self.publish();
        }
    }

    /// There is another node: programs must be where it finds them.
    pub fn node_joined(self: &Arc<Self>) {
        self.publish();
    }

    /// A driver's job ended.
    pub fn job_ended(&self, job: JobId) {
        lock(&self.state).unpublished.remove(&job);
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
        Some(Box::new(ProgramReader { file: Arc::clone(&program.file), len: program.len }))
    }

    /// The program of another node's job, fetched if need be. Blocks; not for threads of the runtime.
    ///
    /// # Errors
    /// `WorkerStartFailed` if nobody has it, `DataCorrupt` if what came is not what was published.
    pub fn find(&self, job: JobId) -> Result<PathBuf, Failure> {
        let _one_at_a_time = lock(&self.fetching);
        if let Some(path) = lock(&self.state).fetched.get(&job) {
            return Ok(path.clone());
        }
        let unit = self.await_unit(job)?;
        let path = self.folder.join(unit.to_string());
        if !lock(&self.state).programs.contains_key(&key_of(unit)) {
            self.fetch(job, unit, &path)?;
        }
        lock(&self.state).fetched.insert(job, path.clone());
        Ok(path)
    }

    /// Hashes and publishes what is not published, on a thread of its own.
    fn publish(self: &Arc<Self>) {
        if lock(&self.state).unpublished.is_empty() {
            return;
        }
        let code = Arc::clone(self);
        self.tasks.start_blocking(move || {
            let _one_at_a_time = lock(&code.hashing);
            let jobs: Vec<_> = lock(&code.state).unpublished.drain().collect();
            for (job, executable) in jobs {
                if let Err(cause) = code.publish_one(job, &executable) {
                    tracing::warn!(job = %job, executable = %executable.display(), cause, "program is not published");
                    lock(&code.state).unpublished.insert(job, executable);
                }
            }
        });
    }

    fn publish_one(&self, job: JobId, executable: &Path) -> Result<(), String> {
        let file = File::open(executable).map_err(|e| e.to_string())?;
        let identity = Identity::of(&file).map_err(|e| e.to_string())?;
        let known = lock(&self.state).programs.values().find(|p| p.identity == identity).map(|p| p.unit);
        let unit = match known {
            Some(unit) => unit,
            None => {
                let unit = hash(&file).map_err(|e| e.to_string())?;
                self.keep(unit, file, identity);
                unit
            }
        };
        let (control, me) = (self.control.clone(), self.me);
        let published = self.tasks.ask(async move {
            control.put_code_unit(unit, identity.len, me).await?;
            control.put_program(job, unit, me).await
        });
        published.map_err(|f| f.message)?.map_err(|e| e.to_string())
    }

    fn keep(&self, unit: CodeUnitId, file: File, identity: Identity) {
        let program = Program { unit, file: Arc::new(file), len: identity.len, identity };
        lock(&self.state).programs.insert(key_of(unit), program);
    }

    /// The hash of a job's program, as soon as its node has published it.
    fn await_unit(&self, job: JobId) -> Result<CodeUnitId, Failure> {
        let until = Instant::now() + PUBLISH_WAIT;
        loop {
            let control = self.control.clone();
            let found = self.tasks.ask(async move { control.get_program(job).await })?;
            if let Some(unit) = found.map_err(|e| unavailable(job, &e))? {
                return Ok(unit);
            }
            if until < Instant::now() {
                let text =
                    format!("the program of job {job} was not published within {} s", PUBLISH_WAIT.as_secs());
                return Err(Failure::new(FailureKind::WorkerStartFailed, text));
            }
            std::thread::sleep(PUBLISH_POLL);
        }
    }

    fn fetch(&self, job: JobId, unit: CodeUnitId, path: &Path) -> Result<(), Failure> {
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
        let mut problem = failed(format!("no other node holds {unit}, the program of job {job}"));
        for holder in found.holders.into_iter().filter(|holder| *holder != self.me) {
            match self.fetch_from(holder, unit, found.size_bytes, path) {
                Ok(()) => return self.publish_copy(unit, path).map_err(|e| failed(at(path, &e))),
                Err(failure) => problem = failure,
            }
        }
        Err(problem)
    }

    /// Writes down what a node sends as a program, a piece at a time, and checks that it is.
    fn fetch_from(&self, holder: NodeId, unit: CodeUnitId, len: u64, path: &Path) -> Result<(), Failure> {
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
        let (mut done, until) = (0, Instant::now() + FETCH_WAIT);
        while done < len {
            let piece = &mut piece[..(len - done).min(STEP_BYTES as u64) as usize];
            let wait = until.saturating_duration_since(Instant::now());
            self.pulls.connections().fetch(holder, &key_of(unit), done, piece, wait).map_err(failed)?;
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

    /// Says that a program that came here can be fetched here as well.
    fn publish_copy(&self, unit: CodeUnitId, path: &Path) -> io::Result<()> {
        let file = File::open(path)?;
        let identity = Identity::of(&file)?;
        self.keep(unit, file, identity);
        let (control, me, len) = (self.control.clone(), self.me, identity.len);
        self.tasks.start(async move {
            if let Err(error) = control.put_code_unit(unit, len, me).await {
                tracing::debug!(%error, "other nodes do not learn that a program is here");
            }
        });
        Ok(())
    }
}

impl Identity {
    fn of(file: &File) -> io::Result<Self> {
        let data = file.metadata()?;
        let modified_ns = (data.mtime(), data.mtime_nsec());
        Ok(Self { device: data.dev(), inode: data.ino(), len: data.len(), modified_ns })
    }
}

fn hash(mut file: &File) -> io::Result<CodeUnitId> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; STEP_BYTES];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(CodeUnitId(*hasher.finalize().as_bytes())),
            len => drop(hasher.update(&buffer[..len])),
        }
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
