//! Files in a task: errors of one name it.

use super::old_times;
use super::storage::{cause, from_store, is_on_disk, store};
use crate::error::{Error, FileFault};
use crate::leaf_plan::{Leaf, LeafPlan};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DataFusionError, Result, internal_err};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::parquet::errors::ParquetError;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, PlanProperties};
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryStreamExt};
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use std::any::Any;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// The same plan, which reads each file by itself. It is made where a task runs: neither planning nor the
/// way to a worker knows of it.
pub(crate) fn by_file(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let changed = plan.transform_up(|node| {
        let Some(scan) = node.downcast_ref::<DataSourceExec>() else { return Ok(Transformed::no(node)) };
        match scan.data_source().downcast_ref::<FileScanConfig>() {
            Some(config) => Ok(Transformed::yes(Arc::new(LeafPlan(Files {
                config: config.clone(),
                properties: Arc::clone(node.properties()),
            })) as Arc<dyn ExecutionPlan>)),
            None => Ok(Transformed::no(node)),
        }
    })?;
    Ok(changed.data)
}

/// Reads the files of a partition one after the other.
#[derive(Clone, Debug)]
struct Files {
    config: FileScanConfig,
    properties: Arc<PlanProperties>,
}

impl Files {
    /// Whether to ask about a file costs no request.
    fn is_local(&self) -> bool {
        is_on_disk(&self.config.object_store_url)
    }

    /// The rows of one file, and no more than these.
    fn open(
        &self,
        file: PartitionedFile,
        limit: Option<usize>,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let config = FileScanConfigBuilder::from(self.config.clone())
            .with_file_groups(vec![FileGroup::new(vec![file])])
            .with_limit(limit)
            .build();
        DataSourceExec::from_data_source(config).execute(0, context)
    }
}

impl Leaf for Files {
    const NAME: &'static str = "FilesExec";

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} groups", self.config.file_groups.len())
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let Some(group) = self.config.file_groups.get(partition) else {
            return internal_err!(
                "partition {partition} of a scan of {} groups",
                self.config.file_groups.len()
            );
        };
        let store = store(&context.runtime_env(), &self.config.object_store_url)?;
        let files = group.files().to_vec().into_iter();
        let schema = self.schema();
        let state =
            Reading { scan: self.clone(), store, files, open: None, left: self.config.limit, context };
        let rows = futures::stream::try_unfold(state, Reading::next);
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

/// The files that are left, and the one that is read.
struct Reading {
    scan: Files,
    store: Arc<dyn ObjectStore>,
    files: std::vec::IntoIter<PartitionedFile>,
    open: Option<Open>,
    /// Rows that may still be given, if there is a limit.
    left: Option<usize>,
    context: Arc<TaskContext>,
}

/// A file that is read.
struct Open {
    version: Version,
    rows: BoxStream<'static, Result<RecordBatch>>,
}

impl Reading {
    async fn next(mut self) -> Result<Option<(RecordBatch, Reading)>> {
        while self.left != Some(0) {
            if let Some(open) = &mut self.open {
                match open.rows.try_next().await {
                    Ok(Some(batch)) => {
                        let rows = self.left.map_or(batch.num_rows(), |left| left.min(batch.num_rows()));
                        self.left = self.left.map(|left| left - rows);
                        return Ok(Some((batch.slice(0, rows), self)));
                    }
                    Ok(None) => open.version.check(&*self.store).await?,
                    // Bytes of two files make no sense to the reader of one.
                    Err(error) => return Err(open.version.cause(&*self.store, error).await),
                }
                self.open = None;
            }
            let Some(file) = self.files.next() else { return Ok(None) };
            let path = shown_path(&self.scan.config, &file);
            let is_local = self.scan.is_local();
            let version = Version { path: path.clone(), meta: file.object_meta.clone(), is_local };
            if is_local {
                version.check(&*self.store).await?;
            }
            let scan = &self.scan.config;
            let times = old_times::check(scan, &file, &path, &self.store, &self.context);
            named_async(&path, times).await?;
            let rows = named(&path, || self.scan.open(file, self.left, Arc::clone(&self.context)))?;
            self.open = Some(Open { version, rows: named_stream(path, rows) });
        }
        Ok(None)
    }
}

/// A file as it was when the plan was made: its tasks are ranges of these bytes, and its statistics are of
/// these rows. Tasks run at any time, some of them again, so that a file that changes meanwhile would give
/// rows of both, or parts of rows.
struct Version {
    path: String,
    meta: ObjectMeta,
    /// Whether each machine may have a copy of its own, with a tag of its own.
    is_local: bool,
}

impl Version {
    /// Refuses another file of this name.
    async fn check(&self, store: &dyn ObjectStore) -> Result<()> {
        let found = store.head(&self.meta.location).await;
        let found = found.map_err(|error| DataFusionError::from(from_store(&self.path, &error)))?;
        if is_same_version(&self.meta, &found) && (self.is_local || has_same_tags(&self.meta, &found)) {
            return Ok(());
        }
        let reason = "it has changed since the plan was made, while its rows were read";
        Err(Error::file(&self.path, FileFault::Changed, reason).into())
    }

    /// The error of a reader, or the change of the file that is behind it.
    async fn cause(&self, store: &dyn ObjectStore, error: DataFusionError) -> DataFusionError {
        match self.check(store).await {
            Err(DataFusionError::External(changed))
                if matches!(
                    changed.downcast_ref::<Error>(),
                    Some(Error::File { fault: FileFault::Changed, .. })
                ) =>
            {
                DataFusionError::External(changed)
            }
            _ => error,
        }
    }
}

/// Whether a file has the size and the time of change that were noted. Lists of some stores have fractions of
/// seconds that answers about one object do not have.
fn is_same_version(noted: &ObjectMeta, found: &ObjectMeta) -> bool {
    let (one, other) = (noted.last_modified, found.last_modified);
    let whole = one.timestamp_subsec_nanos() == 0 || other.timestamp_subsec_nanos() == 0;
    let same_time = if whole { one.timestamp() == other.timestamp() } else { one == other };
    noted.size == found.size && same_time
}

/// Whether a file has the tag and the version that were noted, as far as its place gives them. Tags are
/// compared as HTTP's weak ones: servers call a tag weak or not from one answer to the next, for a file that
/// is new, or that they compress on the way.
fn has_same_tags(noted: &ObjectMeta, found: &ObjectMeta) -> bool {
    fn plain(tag: &str) -> &str {
        tag.strip_prefix("W/").unwrap_or(tag)
    }
    let same = |noted: &Option<String>, found: &Option<String>| {
        let both = noted.as_deref().zip(found.as_deref());
        both.is_none_or(|(noted, found)| plain(noted) == plain(found))
    };
    same(&noted.e_tag, &found.e_tag) && same(&noted.version, &found.version)
}

/// The path of a file as users write it.
fn shown_path(config: &FileScanConfig, file: &PartitionedFile) -> String {
    shown(config.object_store_url.as_str(), &file.object_meta.location)
}

/// A path in a place as users write it.
pub(crate) fn shown(place: &str, location: &object_store::path::Path) -> String {
    match place.strip_prefix("file://") {
        Some(root) => format!("{root}{location}"),
        None => format!("{place}{location}"),
    }
}

/// The result of a step with a file; an error names the file.
fn named<T>(path: &str, step: impl FnOnce() -> Result<T>) -> Result<T> {
    let made = std::panic::catch_unwind(AssertUnwindSafe(step));
    made.unwrap_or_else(|panic| Err(of_panic(path, &*panic).into())).map_err(|error| with_path(path, error))
}

/// The result of a future with a file; an error names the file.
pub(crate) async fn named_async<T>(path: &str, step: impl Future<Output = Result<T>>) -> crate::Result<T> {
    let made = AssertUnwindSafe(step).catch_unwind().await;
    let made = made.unwrap_or_else(|panic| Err(of_panic(path, &*panic).into()));
    made.map_err(|error| with_path(path, error).into())
}

/// The rows of a file; an error names the file.
fn named_stream(path: String, rows: SendableRecordBatchStream) -> BoxStream<'static, Result<RecordBatch>> {
    // Decoders of the libraries panic on some crafted files. Nothing of such a file is used afterwards.
    let rows = AssertUnwindSafe(rows).catch_unwind();
    let named = rows.map(move |batch| match batch {
        Ok(batch) => batch.map_err(|error| with_path(&path, error)),
        Err(panic) => Err(of_panic(&path, &*panic).into()),
    });
    named.boxed()
}

fn of_panic(path: &str, panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason");
    Error::file(path, FileFault::Corrupt, format!("its reader panicked: {text}"))
}

/// The error with the file that it is about, if it is about the file.
fn with_path(path: &str, error: DataFusionError) -> DataFusionError {
    match fault(&error) {
        None => error,
        Some(fault) => match error {
            DataFusionError::ObjectStore(inner) => from_store(path, &inner).into(),
            error => Error::file(path, fault, text(&error)).into(),
        },
    }
}

/// The kind of failure of a file; `None` for an error that names its file, and for one of an expression
/// that was evaluated on its rows.
fn fault(error: &DataFusionError) -> Option<FileFault> {
    match error {
        DataFusionError::ParquetError(inner) => Some(match &**inner {
            ParquetError::NYI(_) => FileFault::Unsupported,
            ParquetError::External(inner) => cause(&**inner).unwrap_or(FileFault::Corrupt),
            other if is_unsupported(&other.to_string()) => FileFault::Unsupported,
            _ => FileFault::Corrupt,
        }),
        DataFusionError::ArrowError(inner, _) => match &**inner {
            ArrowError::ArithmeticOverflow(_)
            | ArrowError::CastError(_)
            | ArrowError::ComputeError(_)
            | ArrowError::DivideByZero => None,
            ArrowError::ExternalError(inner) => match inner.downcast_ref::<DataFusionError>() {
                Some(inner) => fault(inner),
                None if inner.is::<Error>() => None,
                None => Some(cause(&**inner).unwrap_or(FileFault::Corrupt)),
            },
            ArrowError::IoError(_, inner) => Some(FileFault::of_io(inner)),
            ArrowError::NotYetImplemented(_) => Some(FileFault::Unsupported),
            other if is_unsupported(&other.to_string()) => Some(FileFault::Unsupported),
            _ => Some(FileFault::Corrupt),
        },
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => fault(inner),
        DataFusionError::Shared(inner) => fault(inner),
        DataFusionError::External(inner) => match inner.downcast_ref::<Error>() {
            Some(_) => None,
            None => Some(cause(&**inner).unwrap_or(FileFault::Failed)),
        },
        DataFusionError::IoError(inner) => Some(FileFault::of_io(inner)),
        DataFusionError::ObjectStore(inner) => Some(cause(&**inner).unwrap_or(FileFault::Failed)),
        DataFusionError::NotImplemented(_) => Some(FileFault::Unsupported),
        DataFusionError::Execution(_) | DataFusionError::Plan(_) | DataFusionError::SchemaError(..) => {
            Some(FileFault::Corrupt)
        }
        _ => None,
    }
}

/// Whether a library says with a text that it could read the file if only it were built so.
fn is_unsupported(text: &str) -> bool {
    let text = text.to_lowercase();
    ["encrypt", "not supported", "unsupported", "disabled at compile time"]
        .iter()
        .any(|part| text.contains(part))
}

/// The text of an error, without the names of the libraries that passed it on.
fn text(error: &DataFusionError) -> String {
    match error {
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => text(inner),
        DataFusionError::Shared(inner) => text(inner),
        DataFusionError::ParquetError(inner) => inner.to_string(),
        DataFusionError::ArrowError(inner, _) => inner.to_string(),
        other => other.strip_backtrace(),
    }
}

/// The columns of a file's rows are those of the scan.
pub(crate) fn same_columns(one: &SchemaRef, other: &SchemaRef) -> Option<String> {
    for (at, field) in one.fields().iter().enumerate() {
        match other.fields().get(at) {
            Some(found) if found.name() == field.name() && found.data_type() == field.data_type() => {}
            Some(found) if found.name() == field.name() => {
                let (found, first) = (found.data_type(), field.data_type());
                return Some(format!(
                    "column {:?} is {found}, in the first file it is {first}",
                    field.name()
                ));
            }
            _ if other.column_with_name(field.name()).is_none() => {
                return Some(format!("there is no column {:?}, which the first file has", field.name()));
            }
            _ => return Some(format!("column {:?} is not at its place in the first file", field.name())),
        }
    }
    let more = other.fields().get(one.fields().len())?;
    Some(format!("column {:?} is not in the first file", more.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_the_same_whether_weak_or_not() {
        let meta = |tag: Option<&str>, version: Option<&str>| ObjectMeta {
            location: object_store::path::Path::from("t.csv"),
            last_modified: Default::default(),
            size: 3,
            e_tag: tag.map(str::to_owned),
            version: version.map(str::to_owned),
        };
        for (noted, found, same) in [
            (Some("\"1\""), Some("\"1\""), true),
            (Some("\"1\""), Some("\"2\""), false),
            (Some("W/\"1\""), Some("\"1\""), true),
            (Some("\"1\""), Some("W/\"1\""), true),
            (Some("W/\"1\""), Some("W/\"2\""), false),
            (Some("W/\"1\""), Some("\"2\""), false),
            (Some("\"1\""), None, true),
        ] {
            assert_eq!(has_same_tags(&meta(noted, None), &meta(found, None)), same, "{noted:?} {found:?}");
        }
        assert!(!has_same_tags(&meta(None, Some("1")), &meta(None, Some("2"))));
    }
}
