//! Outputs of tasks in blocks: objects of their own, which a reader takes one after the other.
//!
//! An output with few rows is one object, which all its readers have in memory as long as they run. One with
//! more is a list of blocks, each of which a task has put as soon as it had the rows. So neither the maker
//! nor a reader needs room for all of them.
//!
//! The list is an object of the task, so its task runs again if it is lost. Blocks are not: they were put,
//! and nobody knows how to make one. They are on the node of the task. So the list is stored there too,
//! whatever its size: with the node both are lost, and the next reader of the list has both made again.

use super::failure::from_engine;
use crate::object::{Block, Blocks, TaskOutput};
use arrow_array::RecordBatch;
use std::sync::Arc;
use std::time::Duration;
use tharsis_cancel::RunEnds;
use tharsis_dataframe::{KeptPart, LocalPart, PartBatches, Result};
use tharsis_remote::{FailureKind, ObjectRef};
use tharsis_types::limits::INLINE_BYTES_MAX;

/// Time between two looks for a block that is read from a disk or comes from another node.
const LOOK_EVERY: Duration = Duration::from_millis(1);

impl Blocks {
    pub(super) fn new(blocks: Vec<Block>) -> Blocks {
        Blocks { blocks, padding: vec![0; INLINE_BYTES_MAX] }
    }

    /// The blocks as parts, which read them when they are asked.
    pub(crate) fn into_parts(self) -> Vec<Arc<dyn KeptPart>> {
        let mut parts: Vec<Arc<dyn KeptPart>> = Vec::with_capacity(self.blocks.len());
        let mut blocks = self.blocks.into_iter().peekable();
        while let Some(block) = blocks.next() {
            let next = blocks.peek().map(|next| next.object.clone());
            parts.push(Arc::new(BlockPart { block, next }));
        }
        parts
    }
}

/// A block as a part of a frame.
#[derive(Debug)]
struct BlockPart {
    block: Block,
    /// The block after it, which is on its way while this one is used.
    next: Option<ObjectRef<TaskOutput>>,
}

impl KeptPart for BlockPart {
    fn fetch(&self) -> Result<Vec<RecordBatch>> {
        let value = wait(&self.block.object)?;
        // One who asks for a value has it sent.
        let _asked = self.next.as_ref().map(ObjectRef::is_ready);
        value.into_rows()
    }

    fn rows(&self) -> usize {
        self.block.rows
    }

    fn bytes(&self) -> usize {
        self.block.bytes
    }
}

/// Waits for a value that exists. The task keeps its slot meanwhile: in a lent one another task would gather
/// rows, beside those of this one.
fn wait(object: &ObjectRef<TaskOutput>) -> Result<TaskOutput> {
    let ends = RunEnds::of(None);
    loop {
        ends.check()?;
        match object.get_timeout(Duration::ZERO) {
            Err(error) if error.kind() == FailureKind::GetTimeout => std::thread::sleep(LOOK_EVERY),
            other => return other.map_err(from_engine),
        }
    }
}

impl TaskOutput {
    /// The rows of an object, in parts that are read when they are asked.
    pub(crate) fn into_parts(self) -> Result<Vec<Arc<dyn KeptPart>>> {
        match self {
            TaskOutput::Blocks(blocks) => Ok(blocks.into_parts()),
            other => Ok(vec![Arc::new(LocalPart(other.into_rows()?))]),
        }
    }
}

/// The batches of parts, each of which is opened when those before it were read.
pub(super) fn batches(parts: Vec<Arc<dyn KeptPart>>) -> PartBatches<'static> {
    Box::new(parts.into_iter().flat_map(|part| match part.batches() {
        Ok(batches) => batches,
        Err(error) => Box::new(std::iter::once(Err(error))),
    }))
}
