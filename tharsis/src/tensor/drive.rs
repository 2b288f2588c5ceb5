//! Drives a job: submits its batches in order, as many as the memory bound allows, and frees chunks after
//! their last read.
//!
//! Chunks are counted before they exist. A batch in flight counts with its outputs (twice: in the worker, and
//! in the store), its scratch memory, and the chunks that it is the last to read. Chunks that later batches
//! read count until the last of these is submitted. A batch is submitted only if the sum stays below the
//! bound. With nothing in flight there is always room for one, since the bound was computed for the same
//! order.
//!
//! The bound may be more than the memory if the store spills. Then all that batches in flight read has to fit
//! into the memory, together with what those that run make and need.

use super::bundles::{Bundles, Key, bundle_count};
use super::failure::{from_engine, not_given};
use super::in_use::{InUse, Use};
use super::kept::InStore;
#[cfg(feature = "dataframe")]
use super::kept::{ColumnInStore, is_same};
use super::plans;
use super::report::Report;
use super::stored::Stored;
use super::task::{self, Batch, ChunkStorage};
#[cfg(feature = "dataframe")]
use crate::between::convert::View;
use crate::object::{TaskOutput, wait_for};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tharsis_cancel::{Ended, RunEnds};
use tharsis_graph::batch::Batches;
use tharsis_graph::execute::StageMetrics;
use tharsis_graph::plan::{ChunkId, TensorId};
use tharsis_graph::{Error, Job, Metrics, Outcome, Resident, ResidentChunk};
use tharsis_kernels::Chunk;
use tharsis_remote::{Blob, Client, FailureKind, NodeId, ObjectRef, Options, cancel, put};

/// Most batches in flight per thread: enough that no worker waits for the driver.
const FLIGHTS_PER_THREAD: usize = 32;
/// Time for batches of a failed job to end.
const STOP_TIME: Duration = Duration::from_secs(10);
/// The same after a cancellation, whose caller is to wait no longer than a second.
const CANCEL_TIME: Duration = Duration::from_millis(500);

/// An executor's settings for driving its jobs.
pub(super) struct DriveOptions {
    /// The runtime that the calls go to.
    pub client: Client,
    /// Options of each remote call.
    pub call: Options,
    /// No batch is submitted after these ends.
    pub ends: RunEnds,
    /// The nodes to which homes are assigned in turn; empty if batches may run anywhere.
    pub home_slots: Vec<NodeId>,
    /// Upper bound on the bytes of chunks and registers.
    pub bound_bytes: u64,
    /// Upper bound on the bytes that batches in flight use.
    pub in_use_bytes: u64,
    /// Upper bound on the batches that run at a time.
    pub running_max: usize,
    /// CPUs that the job can use.
    pub threads: usize,
}

/// A running job.
pub(super) struct Drive<'a> {
    options: DriveOptions,
    job: &'a Job,
    batches: &'a Batches,
    plan: ObjectRef<Blob>,
    objects: HashMap<Key, Held>,
    bundles: Bundles<'a>,
    in_use: InUse<Key>,
    flights: VecDeque<Flight>,
    flights_max: usize,
    held_bytes: u64,
    flying_bytes: u64,
    metrics: Metrics,
}

/// An object that later batches will read.
struct Held {
    object: ObjectRef<TaskOutput>,
    /// Number of times its chunks will be read.
    reads_left: u32,
    /// Bytes of the object; 0 if it existed before this job.
    bytes: u64,
    /// The id in this plan of the only chunk of an object of an earlier job.
    renamed: Option<ChunkId>,
    /// The chunk of an object with rows of frames, and the rows that it is made of.
    #[cfg(feature = "dataframe")]
    viewed: Option<(ChunkId, View)>,
}

impl Held {
    fn new(object: ObjectRef<TaskOutput>, reads_left: u32, bytes: u64) -> Held {
        Held {
            object,
            reads_left,
            bytes,
            renamed: None,
            #[cfg(feature = "dataframe")]
            viewed: None,
        }
    }
}

/// Inputs of a batch.
#[derive(Default)]
struct Arguments {
    objects: Vec<ObjectRef<TaskOutput>>,
    /// See [`Batch`].
    renamed: Vec<(usize, ChunkId)>,
    #[cfg(feature = "dataframe")]
    viewed: Vec<(usize, ChunkId, View)>,
}

/// A batch that was submitted.
struct Flight {
    report: ObjectRef<TaskOutput>,
    tasks: u64,
    bytes: u64,
    uses: Use<Key>,
}

impl Flight {
    fn cancel(&self) {
        // Without a connection there is nobody to tell.
        let _ignored = cancel(&self.report, false, false);
    }
}

impl<'a> Drive<'a> {
    /// Puts the plan into the store.
    pub(super) fn new(options: DriveOptions, job: &'a Job, batches: &'a Batches) -> Result<Drive<'a>, Error> {
        let plan = postcard::to_allocvec(&**job.runnable.plan())
            .map_err(|error| Error::Internal(format!("a plan cannot be encoded: {error}")))?;
        let plan = put(&Blob::from(plan)).map_err(from_engine)?;
        // So workers that are threads of this process need not compile it again.
        plans::remember(plan.id(), job.runnable.clone());
        let metrics = Metrics {
            bound_bytes: options.bound_bytes,
            stages: vec![StageMetrics::default(); job.runnable.plan().stages.len()],
            ..Metrics::default()
        };
        Ok(Drive {
            job,
            batches,
            plan,
            objects: HashMap::new(),
            bundles: Bundles::new(job, batches, options.in_use_bytes, options.threads),
            in_use: InUse::new(options.running_max),
            flights: VecDeque::new(),
            flights_max: FLIGHTS_PER_THREAD * options.threads,
            options,
            held_bytes: 0,
            flying_bytes: 0,
            metrics,
        })
    }

    /// Runs the whole job.
    pub(super) fn run(&mut self) -> Result<Outcome, Error> {
        let mut inputs = Vec::new();
        for batch in 0..self.batches.len() {
            inputs.clear();
            self.batches.inputs(&self.job.runnable, batch, &mut inputs);
            let bytes = self.batches.bytes(&self.job.runnable, batch);
            let stored = self.batches.resident_bytes(&self.job.runnable, &inputs);
            let read = self.objects_of(&inputs);
            // This overestimates if resident chunks are in the store already.
            while !self.has_room(bytes + stored, &read, bytes) {
                self.land()?;
            }
            self.submit(batch, &inputs, &read, bytes)?;
        }
        while !self.flights.is_empty() {
            self.land()?;
        }
        let results = self.job.runnable.plan().results.iter().map(|&tensor| self.gather(tensor));
        let results = results.collect::<Result<_, Error>>()?;
        Ok(Outcome { results, metrics: std::mem::take(&mut self.metrics) })
    }

    /// Stops the batches in flight of a job that has failed, and waits a while for those that run. Whether
    /// all of them are over: so it is known of those that have an end of their own, whereas one whose worker
    /// or node is gone, or that does not answer in time, may go on.
    pub(super) fn stop(&mut self) -> bool {
        self.flights.iter().for_each(Flight::cancel);
        let is_cancelled = self.options.ends.check() == Err(Ended::Cancelled);
        let end = Instant::now() + if is_cancelled { CANCEL_TIME } else { STOP_TIME };
        let end = self.options.ends.deadline().map_or(end, |deadline| end.min(deadline));
        self.flights.drain(..).all(|flight| {
            match flight.report.get_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(_) => true,
                Err(error) => {
                    let own = [FailureKind::Cancelled, FailureKind::Panicked, FailureKind::UserError];
                    let is_own = own.contains(&error.failure().root().kind);
                    // Without an origin it is the end of this wait: the task that waits was cancelled.
                    let is_of_task = error.failure().origin.is_some();
                    error.kind() == FailureKind::DependencyFailed || is_own && is_of_task
                }
            }
        })
    }

    /// Whether a batch may start that adds these bytes, reads these objects and takes `own_bytes` beside
    /// them.
    fn has_room(&self, bytes: u64, read: &[(Key, u64)], own_bytes: u64) -> bool {
        self.flights.is_empty()
            || (self.flights.len() < self.flights_max
                && self.held_bytes + self.flying_bytes + bytes <= self.metrics.bound_bytes
                && self.in_use.bytes_with(read, own_bytes) <= self.options.in_use_bytes)
    }

    fn submit(
        &mut self,
        batch: usize,
        inputs: &[ChunkId],
        read: &[(Key, u64)],
        bytes: u64,
    ) -> Result<(), Error> {
        self.options.ends.check()?;
        let tasks = self.batches.tasks(batch);
        let arguments = self.arguments(read)?;
        let (outputs, fates) = self.bundles.assign(tasks);
        let objects =
            bundle_count(&fates) + fates.iter().filter(|&&fate| fate == ChunkStorage::Apart).count();
        let options = self.call_options(batch, 1 + objects);
        let work = Batch {
            #[cfg(feature = "dataframe")]
            viewed: arguments.viewed,
            ..Batch::new(tasks, fates.clone(), arguments.renamed)
        };
        let given = task::call(options, &self.plan, &work, &arguments.objects);
        let uses = self.in_use.begin(read, bytes);
        let held_before = self.held_bytes;
        let report = self.enter(batch, &outputs, &fates, given)?;
        let kept = self.held_bytes - held_before;
        // Kept chunks count as held from now on; chunks with their last read in this batch count until it has
        // ended.
        let bytes = bytes - kept + self.release(inputs);
        self.flying_bytes += bytes;
        self.flights.push_back(Flight { report, tasks: tasks.len() as u64, bytes, uses });
        let now = self.held_bytes + self.flying_bytes;
        self.metrics.peak_bytes = self.metrics.peak_bytes.max(now);
        Ok(())
    }

    /// Options of a batch's call. They set no memory: `bound_bytes` already limits the batches in flight, and
    /// a memory option would end a worker whose kernel needs more than its chunks.
    fn call_options(&self, batch: usize, returns: usize) -> Options {
        let options = self.options.call.clone().num_returns(returns as u32);
        let slots = &self.options.home_slots;
        match self.batches.home(batch) {
            Some(home) if !slots.is_empty() => options.node(slots[home as usize % slots.len()], true),
            _ => options,
        }
    }

    /// These objects, as inputs of a batch.
    fn arguments(&mut self, read: &[(Key, u64)]) -> Result<Arguments, Error> {
        let mut arguments = Arguments::default();
        for (at, &(key, _)) in read.iter().enumerate() {
            let held = self.object(key)?;
            arguments.renamed.extend(held.renamed.map(|id| (at, id)));
            #[cfg(feature = "dataframe")]
            arguments.viewed.extend(held.viewed.map(|(id, view)| (at, id, view)));
            arguments.objects.push(held.object.clone());
        }
        Ok(arguments)
    }

    /// The objects that hold these chunks, each once, and their bytes.
    fn objects_of(&self, inputs: &[ChunkId]) -> Vec<(Key, u64)> {
        let mut seen = HashSet::new();
        let keys = inputs.iter().map(|&id| self.bundles.key(id)).filter(|key| seen.insert(*key));
        let bytes = |key| match key {
            Key::Bundle(..) => (key, self.objects.get(&key).map_or(0, |held| held.bytes)),
            Key::Chunk(id) => (key, self.job.runnable.chunk_bytes(id)),
        };
        keys.map(bytes).collect()
    }

    /// The object under a key. A resident chunk is put when it is first read, unless it is in the store.
    fn object(&mut self, key: Key) -> Result<&Held, Error> {
        if let Key::Chunk(id) = key
            && !self.objects.contains_key(&key)
        {
            let held = self.hold_resident(id)?;
            self.held_bytes += held.bytes;
            self.objects.insert(key, held);
        }
        self.held(key)
    }

    fn hold_resident(&self, id: ChunkId) -> Result<Held, Error> {
        let (resident, reads_left) = (self.resident(id)?, self.batches.readers(id));
        let kept = resident.kept::<InStore>().and_then(|kept| kept.object(&self.options.client));
        if let Some(object) = kept {
            return Ok(Held { renamed: Some(id), ..Held::new(object.clone(), reads_left, 0) });
        }
        #[cfg(feature = "dataframe")]
        if let Some(column) = resident.kept::<ColumnInStore>()
            && is_same(&column.client, &self.options.client)
        {
            let held = Held::new(column.object.clone(), reads_left, 0);
            return Ok(Held { viewed: Some((id, column.view)), ..held });
        }
        let stored = Stored::new(&*resident.fetch()?)?;
        let object = put(&TaskOutput::Chunks(vec![(id, stored)])).map_err(from_engine)?;
        Ok(Held::new(object, reads_left, self.job.runnable.chunk_bytes(id)))
    }

    /// A resident chunk of the job.
    fn resident(&self, id: ChunkId) -> Result<ResidentChunk, Error> {
        let tensors = &self.job.runnable.plan().resident;
        let found = tensors.iter().position(|&tensor| tensor == id.tensor as usize);
        let chunk = found.and_then(|at| self.job.resident[at].get(id.index as usize));
        chunk.cloned().ok_or_else(|| Error::Internal(format!("{id:?} is not at hand")))
    }

    /// Registers the objects that a batch makes; returns its report.
    fn enter(
        &mut self,
        batch: usize,
        outputs: &[ChunkId],
        fates: &[ChunkStorage],
        given: Vec<ObjectRef<TaskOutput>>,
    ) -> Result<ObjectRef<TaskOutput>, Error> {
        let missing = || Error::Internal("a call gave fewer objects than it was asked for".to_owned());
        let mut given = given.into_iter();
        let report = given.next().ok_or_else(missing)?;
        for bundle in 0..bundle_count(fates) {
            let object = given.next().ok_or_else(missing)?;
            self.objects.insert(Key::Bundle(batch, bundle as u32), Held::new(object, 0, 0));
        }
        for (&id, fate) in outputs.iter().zip(fates) {
            // As the bound counts them: pieces of one tensor may differ much.
            let bytes = self.job.runnable.chunk_bytes(id);
            let reads = self.batches.readers(id);
            match fate {
                ChunkStorage::Dropped => continue,
                ChunkStorage::Bundled(bundle) => {
                    if let Some(held) = self.objects.get_mut(&Key::Bundle(batch, *bundle)) {
                        held.reads_left += reads;
                        held.bytes += bytes;
                    }
                }
                ChunkStorage::Apart => {
                    let object = given.next().ok_or_else(missing)?;
                    self.objects.insert(Key::Chunk(id), Held::new(object, reads, bytes));
                }
            }
            self.held_bytes += bytes;
        }
        Ok(report)
    }

    /// Counts one read of each chunk, drops objects after their last read, and returns the bytes of these.
    fn release(&mut self, inputs: &[ChunkId]) -> u64 {
        let mut released = 0;
        for &id in inputs {
            let key = self.bundles.key(id);
            let Entry::Occupied(mut entry) = self.objects.entry(key) else { continue };
            entry.get_mut().reads_left -= 1;
            if entry.get().reads_left == 0 {
                released += entry.remove().bytes;
            }
        }
        self.held_bytes -= released;
        released
    }

    /// Waits for the oldest batch in flight.
    fn land(&mut self) -> Result<(), Error> {
        let Some(flight) = self.flights.front() else { return Ok(()) };
        let TaskOutput::BatchReport(report) = self.read(&flight.report)? else {
            return Err(Error::Internal("a batch gave no report".to_owned()));
        };
        if let Some(flight) = self.flights.pop_front() {
            self.flying_bytes -= flight.bytes;
            self.in_use.end(flight.uses);
            self.note(flight.tasks, &report);
        }
        Ok(())
    }

    fn note(&mut self, tasks: u64, report: &Report) {
        self.metrics.tasks += tasks;
        self.metrics.retries += u64::from(report.attempt);
        self.metrics.warnings.extend(&report.warnings);
        self.job.progress.add(tasks);
        for stage in &report.stages {
            let Some(metrics) = self.metrics.stages.get_mut(stage.stage as usize) else { continue };
            metrics.tasks += u64::from(stage.tasks);
            metrics.busy += Duration::from_nanos(stage.busy_ns);
            metrics.slowest = metrics.slowest.max(Duration::from_nanos(stage.slowest_ns));
            metrics.retries += u64::from(report.attempt);
        }
    }

    /// Waits for a value until the job is given up.
    fn read(&self, object: &ObjectRef<TaskOutput>) -> Result<TaskOutput, Error> {
        wait_for(object, &self.options.ends).map_err(not_given)
    }

    /// The chunks of a result: small ones are fetched, large ones stay in the store.
    fn gather(&self, tensor: TensorId) -> Result<Resident, Error> {
        let spec = &self.job.runnable.plan().tensors[tensor];
        let mut bundles: HashMap<Key, HashMap<ChunkId, Arc<Chunk>>> = HashMap::new();
        let mut chunks = Vec::with_capacity(spec.tiling.count());
        for index in 0..spec.tiling.count() {
            let id = ChunkId { tensor: tensor as u32, index: index as u32 };
            if self.batches.maker(id).is_none() {
                chunks.push(self.resident(id)?);
                continue;
            }
            let key = self.bundles.key(id);
            if key == Key::Chunk(id) {
                let object = self.held(key)?.object.clone();
                chunks.push(ResidentChunk::Kept(Arc::new(InStore::new(object, &self.options.client))));
                continue;
            }
            let bundle = match bundles.entry(key) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => entry.insert(self.fetch(key)?),
            };
            let chunk = bundle.get(&id).cloned();
            let chunk = chunk.ok_or_else(|| Error::Internal(format!("{id:?} of a result was not made")))?;
            chunks.push(ResidentChunk::Here(chunk));
        }
        Ok(Resident { dtype: spec.dtype, tiling: spec.tiling.clone(), chunks: Arc::new(chunks) })
    }

    fn held(&self, key: Key) -> Result<&Held, Error> {
        self.objects.get(&key).ok_or_else(|| Error::Internal(format!("{key:?} was let go")))
    }

    /// Fetches a bundle.
    fn fetch(&self, key: Key) -> Result<HashMap<ChunkId, Arc<Chunk>>, Error> {
        let TaskOutput::Chunks(bundle) = self.read(&self.held(key)?.object)? else {
            return Err(Error::Internal("a report was given for a result".to_owned()));
        };
        bundle.into_iter().map(|(id, stored)| Ok((id, Arc::new(stored.into_chunk()?)))).collect()
    }
}

impl Drop for Drive<'_> {
    fn drop(&mut self) {
        plans::forget(self.plan.id());
        // Flights are left only after a failure. A batch that cannot be stopped ends by itself, and its
        // objects are freed.
        self.flights.iter().for_each(Flight::cancel);
    }
}
