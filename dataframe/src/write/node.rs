//! The operator that writes the rows of its partition and gives a row for each file.

use super::encoder::Encoder;
use super::options::FileSpec;
use super::partitions::Partitions;
use super::report::{Written, report, report_schema};
use super::stored::{key_of, upload};
use super::target::unique;
use crate::error::Error;
use crate::scan::{from_store, store_at};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result as EngineResult, internal_err};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SendableRecordBatchStream, SpillFile, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
    PlanProperties, ReplaceChildrenOptions,
};
use futures::StreamExt;
use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// Writes rows to files.
#[derive(Debug)]
pub(crate) struct WriteExec {
    pub(crate) input: Arc<dyn ExecutionPlan>,
    pub(crate) spec: Arc<FileSpec>,
    properties: Arc<PlanProperties>,
}

impl WriteExec {
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>, spec: Arc<FileSpec>) -> WriteExec {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(report_schema()),
            datafusion::physical_expr::Partitioning::UnknownPartitioning(
                input.output_partitioning().partition_count(),
            ),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        WriteExec { input, spec, properties: Arc::new(properties) }
    }
}

impl DisplayAs for WriteExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WriteExec: {}", self.spec.extension())
    }
}

impl ExecutionPlan for WriteExec {
    fn name(&self) -> &'static str {
        "WriteExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> EngineResult<TreeNodeRecursion>,
    ) -> EngineResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        match children.pop() {
            Some(input) => Ok(Arc::new(WriteExec::new(input, Arc::clone(&self.spec)))),
            None => internal_err!("WriteExec without an input"),
        }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> EngineResult<SendableRecordBatchStream> {
        let environment = context.runtime_env();
        let rows = self.input.execute(partition, context)?;
        let files = Files::new(partition, &rows.schema(), Arc::clone(&self.spec), environment)?;
        let reported = futures::stream::once(written(files, rows));
        Ok(Box::pin(RecordBatchStreamAdapter::new(report_schema(), reported)))
    }
}

async fn written(mut files: Files, mut rows: SendableRecordBatchStream) -> EngineResult<RecordBatch> {
    while let Some(batch) = rows.next().await {
        files.write(&batch?).await?;
    }
    report(&files.finish().await?)
}

/// The files of one attempt.
struct Files {
    task: usize,
    spec: Arc<FileSpec>,
    partitions: Partitions,
    schema: SchemaRef,
    open: HashMap<String, Open>,
    /// Number of files that were begun.
    begun: u64,
    written: Vec<Written>,
    environment: Arc<RuntimeEnv>,
}

/// A file that takes rows.
struct Open {
    encoder: Encoder,
    /// The local file, if it is to be brought to a store.
    local: Option<Arc<dyn SpillFile>>,
    name: String,
    number: u64,
    rows: u64,
    /// Number of batches that were written when it last got rows.
    used: u64,
}

impl Files {
    fn new(
        task: usize,
        schema: &SchemaRef,
        spec: Arc<FileSpec>,
        environment: Arc<RuntimeEnv>,
    ) -> EngineResult<Files> {
        let partitions = Partitions::new(schema, &spec.partition_cols);
        let schema = partitions.file_schema(schema)?;
        let (open, written) = (HashMap::new(), Vec::new());
        Ok(Files { task, spec, partitions, schema, open, begun: 0, written, environment })
    }

    async fn write(&mut self, batch: &RecordBatch) -> EngineResult<()> {
        for (folder, rows) in self.partitions.split(batch)? {
            if !self.open.contains_key(&folder) {
                self.make_room().await?;
                self.begin(&folder, &rows)?;
            }
            let used = self.begun + self.open.values().map(|open| open.used).max().unwrap_or(0);
            if let Some(open) = self.open.get_mut(&folder) {
                let failed = |error| failed(&self.spec, error);
                open.encoder.write(&rows).map_err(failed)?;
                open.rows += rows.num_rows() as u64;
                open.used = used + 1;
            }
        }
        while MEMORY_BYTES < self.open.values().map(|open| open.encoder.memory_bytes()).sum() {
            let largest = self.open.values_mut().max_by_key(|open| open.encoder.memory_bytes());
            largest.map_or(Ok(()), |open| open.encoder.flush())?;
        }
        Ok(())
    }

    /// Begins a file of a folder, whose first rows these will be.
    fn begin(&mut self, folder: &str, rows: &RecordBatch) -> EngineResult<()> {
        let name = format!("{:05}-{:05}-{}.{}", self.task, self.begun, unique(), self.spec.extension());
        let failed = |error| failed(&self.spec, error);
        let (file, local) = self.create(&name).map_err(failed)?;
        let header = self.spec.stay || self.task == 0;
        let encoder = Encoder::begin(file, rows, &self.spec, header).map_err(failed)?;
        let open = Open { encoder, local, name, number: self.begun, rows: 0, used: 0 };
        self.open.insert(folder.to_owned(), open);
        self.begun += 1;
        Ok(())
    }

    /// A file of this name in the folder, or one of no name that is to be brought to a store.
    fn create(&self, name: &str) -> EngineResult<(File, Option<Arc<dyn SpillFile>>)> {
        if self.spec.store.is_none() {
            return Ok((File::create_new(Path::new(&self.spec.folder).join(name))?, None));
        }
        let local = self.environment.disk_manager.create_tmp_file("a file for an object store")?;
        let file = File::options().read(true).write(true).open(path_of(&local)?)?;
        Ok((file, Some(local)))
    }

    /// Ends the file that has had no rows for longest if as many are open as may be.
    async fn make_room(&mut self) -> EngineResult<()> {
        if self.open.len() < OPEN_FILES {
            return Ok(());
        }
        let oldest = self.open.iter().min_by_key(|(_, open)| open.used).map(|(folder, _)| folder.clone());
        match oldest {
            Some(folder) => self.end(folder).await,
            None => Ok(()),
        }
    }

    async fn end(&mut self, folder: String) -> EngineResult<()> {
        if let Some(Open { encoder, local, name, number, rows, .. }) = self.open.remove(&folder) {
            let stays = self.spec.stay && local.is_none();
            let bytes = encoder.finish(stays).await.map_err(|error| failed(&self.spec, error))?;
            if let (Some(local), Some(url)) = (local, &self.spec.store) {
                let folder = key_of(&self.spec.folder);
                let key =
                    folder.map_err(|error| DataFusionError::External(Box::new(error)))?.join(name.as_str());
                let stored = upload(&store_at(url)?, path_of(&local)?, key).await;
                stored.map_err(|error| from_store(&format!("{url}{}", self.spec.folder), &error))?;
            }
            self.written.push(Written { task: self.task as u64, number, folder, name, rows, bytes });
        }
        Ok(())
    }

    async fn finish(mut self) -> EngineResult<Vec<Written>> {
        if self.open.is_empty() && self.spec.partition_cols.is_empty() {
            self.begin("", &RecordBatch::new_empty(Arc::clone(&self.schema)))?;
        }
        for folder in self.open.keys().cloned().collect::<Vec<_>>() {
            self.end(folder).await?;
        }
        Ok(self.written)
    }
}

fn path_of(file: &Arc<dyn SpillFile>) -> EngineResult<&Path> {
    file.path().ok_or_else(|| DataFusionError::Internal("a file of this process has no path".to_owned()))
}

/// The error of a file that could not be written. One of the rows stays what it is.
fn failed(spec: &FileSpec, error: DataFusionError) -> DataFusionError {
    let io = match error {
        DataFusionError::IoError(error) => error,
        DataFusionError::ArrowError(inner, context) => match *inner {
            arrow::error::ArrowError::IoError(_, error) => error,
            other => return DataFusionError::ArrowError(Box::new(other), context),
        },
        DataFusionError::ParquetError(inner) => match *inner {
            datafusion::parquet::errors::ParquetError::External(inner) => match inner.downcast() {
                Ok(error) => *error,
                Err(inner) => return DataFusionError::External(inner),
            },
            other => return DataFusionError::ParquetError(Box::new(other)),
        },
        other => return other,
    };
    DataFusionError::External(Box::new(Error::io(&spec.folder, &io)))
}

/// Files that a task has open at a time, at most.
const OPEN_FILES: usize = 64;
/// Bytes of row groups of a task that are not in files yet, at most.
const MEMORY_BYTES: usize = 256 << 20;
