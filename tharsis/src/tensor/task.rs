//! Body of a remote call: a batch of tasks of a plan, on chunks in the store.

use super::fault::Fault;
use super::plans;
use super::report::Report;
use super::stored::{self, Bundle, Stored};
#[cfg(feature = "dataframe")]
use crate::between::convert::View;
#[cfg(feature = "dataframe")]
use crate::between::errors::to_tensors;
use crate::object::TaskOutput;
use crate::remote;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::HashMap;
use std::panic::Location;
use std::sync::Arc;
use std::time::Instant;
use tharsis_graph::Runnable;
use tharsis_graph::plan::{ChunkId, TaskId};
use tharsis_kernels::{Chunk, Scratch};
use tharsis_remote::generated::{Call, Remote};
use tharsis_remote::{Blob, ObjectRef, Options, RefId, Returns, Values, context};

/// The part of a plan that one call does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Batch {
    /// Runs of consecutive tasks: the first of each, and their number.
    pub(super) runs: Vec<(TaskId, u32)>,
    /// Storage of each chunk that the tasks make, in their order.
    pub(super) fates: Vec<ChunkStorage>,
    /// Inputs with one chunk of an earlier job: their position, and the chunk's id in this plan.
    pub(super) renamed: Vec<(usize, ChunkId)>,
    /// Inputs with rows of frames: their position, the chunk's id, and the rows that it is made of.
    #[cfg(feature = "dataframe")]
    pub(super) viewed: Vec<(usize, ChunkId, View)>,
}

/// Storage of a chunk that a batch makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ChunkStorage {
    /// No other batch reads it.
    Dropped,
    /// It is small and stored with others in one object, the bundle of this number.
    Bundled(u32),
    /// It is stored as a separate object.
    Apart,
}

impl Batch {
    /// The batch of these tasks.
    pub(super) fn new(tasks: &[TaskId], fates: Vec<ChunkStorage>, renamed: Vec<(usize, ChunkId)>) -> Batch {
        let mut runs: Vec<(TaskId, u32)> = Vec::new();
        for &task in tasks {
            match runs.last_mut() {
                Some((first, count)) if first.stage == task.stage && first.index + *count == task.index => {
                    *count += 1;
                }
                _ => runs.push((task, 1)),
            }
        }
        Batch {
            runs,
            fates,
            renamed,
            #[cfg(feature = "dataframe")]
            viewed: Vec::new(),
        }
    }

    fn tasks(&self) -> impl Iterator<Item = TaskId> + '_ {
        let of_run = |&(first, count): &(TaskId, u32)| {
            (0..count).map(move |i| TaskId { stage: first.stage, index: first.index.saturating_add(i) })
        };
        self.runs.iter().flat_map(of_run)
    }
}

thread_local! {
    /// Registers of programs, kept from batch to batch.
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::new());
}

/// Submits a batch with these options, which include the number of returned objects.
pub(super) fn call(
    options: Options,
    plan: &ObjectRef<Blob>,
    batch: &Batch,
    inputs: &[ObjectRef<TaskOutput>],
) -> Vec<ObjectRef<TaskOutput>> {
    let call = Call {
        definition: <run_batch as Remote>::DEFINITION,
        // The result of a batch depends on the plan alone.
        options: Some(options.pure(true)),
        site: Location::caller(),
        arguments: &mut |arguments| {
            arguments.push::<RefId, _>(0, plan.id())?;
            arguments.push::<Blob, _>(1, plan)?;
            arguments.push::<Batch, _>(2, batch.clone())?;
            arguments.push::<Values<TaskOutput>, _>(3, inputs)
        },
    };
    call.many()
}

/// Runs a batch. `object` is the reference of `plan`.
#[remote]
pub(super) fn run_batch(
    object: RefId,
    plan: Blob,
    batch: Batch,
    inputs: Values<TaskOutput>,
) -> Result<Returns<TaskOutput>, Fault> {
    let runnable = plans::find_or_compile(object, &plan)?;
    let mut scratch = SCRATCH.take();
    // The results of a batch are copied to the store when it ends.
    scratch.share_pieces();
    let made = Made::of(inputs, &batch).and_then(|made| made.run(&runnable, &batch, &mut scratch));
    SCRATCH.set(scratch);
    made
}

/// The chunks that a batch has read or made.
struct Made {
    chunks: HashMap<ChunkId, Arc<Chunk>>,
    bundles: Vec<Bundle>,
    apart: Vec<TaskOutput>,
    report: Report,
}

impl Made {
    fn of(inputs: Values<TaskOutput>, batch: &Batch) -> Result<Made, Fault> {
        let mut chunks = HashMap::new();
        let mut renamed = batch.renamed.iter().peekable();
        #[cfg(feature = "dataframe")]
        let mut viewed = batch.viewed.iter().peekable();
        for (place, input) in inputs.into_iter().enumerate() {
            if let Some((_, id)) = renamed.next_if(|(at, _)| *at == place) {
                chunks.insert(*id, Arc::new(input.into_single()?));
                continue;
            }
            #[cfg(feature = "dataframe")]
            if let Some((_, id, view)) = viewed.next_if(|(at, _, _)| *at == place) {
                let chunk = view.chunk_in(input).map_err(to_tensors)?;
                chunks.insert(*id, Arc::new(chunk));
                continue;
            }
            let TaskOutput::Chunks(bundle) = input else {
                return Err(Fault::Internal("a report was given for a chunk".to_owned()));
            };
            for (id, stored) in bundle {
                chunks.insert(id, Arc::new(stored.into_chunk()?));
            }
        }
        let attempt = context().map_or(0, |context| context.attempt());
        let report = Report { attempt, ..Report::default() };
        Ok(Made { chunks, bundles: Vec::new(), apart: Vec::new(), report })
    }

    fn run(
        mut self,
        runnable: &Runnable,
        batch: &Batch,
        scratch: &mut Scratch,
    ) -> Result<Returns<TaskOutput>, Fault> {
        // Warnings left by a failed batch do not belong to this one.
        scratch.take_warnings();
        let mut fates = batch.fates.iter().copied();
        let mut ids = Vec::new();
        let mut reads_left = reads(runnable, batch);
        for task in batch.tasks() {
            ids.clear();
            runnable.inputs(task, &mut ids);
            let inputs = ids.iter().map(|id| Ok((*id, self.find(*id, &mut reads_left)?)));
            let inputs = inputs.collect::<Result<Vec<_>, Fault>>()?;
            let started = Instant::now();
            if runnable.takes_places(task.stage as usize) {
                let apart = runnable
                    .outputs(task)
                    .zip(fates.clone())
                    .filter(|(_, fate)| *fate == ChunkStorage::Apart);
                apart
                    .filter_map(|(id, _)| stored::place(runnable.exact_chunk_bytes(id)))
                    .for_each(|place| scratch.offer(place));
            }
            let made = runnable.run(task, &inputs, scratch);
            scratch.take_offers();
            let made = made?;
            self.report.add(task.stage, started.elapsed().as_nanos() as u64);
            for (id, chunk) in runnable.outputs(task).zip(made) {
                let fate =
                    fates.next().ok_or_else(|| Fault::Internal("a chunk without a fate".to_owned()))?;
                self.keep(id, chunk, fate, &reads_left)?;
            }
        }
        self.report.warnings = scratch.take_warnings();
        let mut given = vec![TaskOutput::BatchReport(self.report)];
        given.extend(self.bundles.into_iter().map(TaskOutput::Chunks));
        given.append(&mut self.apart);
        Ok(Returns(given))
    }

    /// A chunk for one of its readers. The last reader gets the only handle, so that the memory, which is
    /// still in the cache, is free for the next result.
    fn find(&mut self, id: ChunkId, reads_left: &mut HashMap<ChunkId, u32>) -> Result<Arc<Chunk>, Fault> {
        let left = reads_left.get_mut(&id).map_or(0, |left| {
            *left -= 1;
            *left
        });
        let found = if left == 0 { self.chunks.remove(&id) } else { self.chunks.get(&id).cloned() };
        found.ok_or_else(|| Fault::Internal(format!("{id:?} was not given")))
    }

    fn keep(
        &mut self,
        id: ChunkId,
        chunk: Chunk,
        fate: ChunkStorage,
        reads_left: &HashMap<ChunkId, u32>,
    ) -> Result<(), Fault> {
        match fate {
            ChunkStorage::Dropped => {}
            ChunkStorage::Bundled(bundle) => {
                let bundle = bundle as usize;
                if self.bundles.len() <= bundle {
                    self.bundles.resize_with(bundle + 1, Bundle::new);
                }
                self.bundles[bundle].push((id, Stored::new(&chunk)?));
            }
            ChunkStorage::Apart => self.apart.push(TaskOutput::Chunks(vec![(id, Stored::new(&chunk)?)])),
        }
        if reads_left.contains_key(&id) {
            self.chunks.insert(id, Arc::new(chunk));
        }
        Ok(())
    }
}

/// Number of reads of each chunk by the tasks of a batch.
fn reads(runnable: &Runnable, batch: &Batch) -> HashMap<ChunkId, u32> {
    let (mut counts, mut ids) = (HashMap::new(), Vec::new());
    for task in batch.tasks() {
        ids.clear();
        runnable.inputs(task, &mut ids);
        ids.iter().for_each(|id| *counts.entry(*id).or_default() += 1);
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_travel_as_one_run() {
        let task = |stage, index| TaskId { stage, index };
        let tasks = [task(0, 3), task(0, 4), task(0, 5), task(1, 6), task(0, 7), task(0, 9)];
        let batch = Batch::new(&tasks, Vec::new(), Vec::new());
        assert_eq!(batch.runs.len(), 4);
        assert_eq!(batch.tasks().collect::<Vec<_>>(), tasks);
    }
}
