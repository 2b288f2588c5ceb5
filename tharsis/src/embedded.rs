//! The embedded node: the whole engine in the user's process, with threads as workers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tharsis_raylet::gpus::GpuNames;
use tharsis_raylet::{
    Embedded, EmbeddedPart, NodeHandle, NodeOptions, ProcessNumber, Remains, Shared, Workforce,
    connect_embedded,
};
use tharsis_remote::{Client, ClientParts, Error, FailureKind, Result, current, function_table, run_worker};
use tharsis_types::{ClientId, Failure, JobId, Quota};

/// Longest wait for workers at the end of the runtime; a worker that still runs user code then is abandoned.
const JOIN_WAIT: Duration = Duration::from_secs(2);

/// Starts a node in this process and connects its driver.
pub(crate) fn start(options: NodeOptions, quota: Option<Quota>) -> Result<(Client, NodeHandle)> {
    let gpus = GpuNames::of_node(&options.resources)?;
    let node = NodeHandle::embedded(options, |shared| Box::new(Threads::new(shared, gpus)))?;
    let job = node.new_job();
    let driver = node.connect(job, EmbeddedPart::Driver(quota), &function_table())?;
    let (id, shared) = (driver.client, node.shared());
    let client = client(driver, None)?;
    client.on_disuse(move || {
        shared.gone(id, Remains::Nothing, Failure::new(FailureKind::Disconnected, "the driver has ended"));
    });
    Ok((client, node))
}

/// Workers that are threads of this process.
struct Threads {
    shared: Shared,
    gpus: GpuNames,
    running: Arc<Mutex<HashMap<u64, JoinHandle<()>>>>,
}

impl Threads {
    fn new(shared: Shared, gpus: GpuNames) -> Self {
        Self { shared, gpus, running: Arc::default() }
    }
}

impl Workforce for Threads {
    /// All of them share this process, whatever was asked for.
    fn start(&self, start: u64, job: JobId, _: Option<ProcessNumber>, gpus: Vec<u32>) {
        let gpus = self.gpus.names(&gpus);
        let (shared, running) = (self.shared.clone(), Arc::clone(&self.running));
        let mut threads = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let spawned = std::thread::Builder::new().name(format!("worker-{start}")).spawn(move || {
            work(&shared, start, job, gpus);
            running.lock().unwrap_or_else(PoisonError::into_inner).remove(&start);
        });
        match spawned {
            Ok(thread) => drop(threads.insert(start, thread)),
            Err(cause) => {
                let text = format!("no thread for a worker: {cause}");
                self.shared.start_failed(start, Failure::new(FailureKind::WorkerStartFailed, text));
            }
        }
    }

    /// A thread cannot be killed: it is cut off, and its results are dropped. It keeps its CPUs and its
    /// memory until it has ended.
    fn kill(&self, client: ClientId, reason: &Failure) {
        self.shared.gone(client, Remains::Thread, reason.clone());
    }

    fn stop(&self) {
        let until = Instant::now() + JOIN_WAIT;
        let still_running = || !self.running.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        while still_running() && Instant::now() < until {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

/// The life of one worker thread.
fn work(shared: &Shared, start: u64, job: JobId, gpus: Vec<String>) {
    let connected = connect_embedded(shared, job, EmbeddedPart::Worker(start), &function_table());
    let embedded = match connected {
        Ok(embedded) => embedded,
        Err(failure) => return shared.start_failed(start, failure),
    };
    let id = embedded.client;
    let gone = |remains, text: &str| {
        shared.gone(id, remains, Failure::new(FailureKind::WorkerCrashed, text));
    };
    let client = match client(embedded, Some(gpus)) {
        Ok(client) => client,
        Err(error) => return gone(Remains::Nothing, &error.to_string()),
    };
    // This thread uses the memory until it has reported that it has stopped computing.
    let in_use = client.use_memory();
    let later = shared.clone();
    client.on_disuse(move || {
        let failure = Failure::new(FailureKind::WorkerCrashed, "the worker has ended");
        later.gone(id, Remains::Nothing, failure);
    });
    let outcome = {
        let _binding = current::bind(client.clone());
        run_worker(&client)
    };
    client.close();
    let text = outcome.err().map_or_else(|| "the worker has ended".to_owned(), |error| error.to_string());
    gone(Remains::Memory, &text);
    drop(in_use);
}

/// A client: a worker with its GPUs, or the driver.
fn client(embedded: Embedded, worker: Option<Vec<String>>) -> Result<Client, Error> {
    let Embedded { client, node, job, channel, board, board_index, arena, names } = embedded;
    let log_sink = None;
    let names = Box::new(move |question| Ok(names(question)?));
    Client::from_parts(ClientParts {
        client,
        node,
        job,
        is_worker: worker.is_some(),
        channel,
        board,
        board_index,
        arena,
        log_sink,
        names,
        gpus: worker.unwrap_or_default(),
    })
}
