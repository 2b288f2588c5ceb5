//! The context of a request: the parts that say how it runs.

use super::Failure;
use serde_json::{Value as Json, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tharsis_dataframe::{Executor, LocalExecutor};
use tharsis_programs::check_context;

/// The place that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlaceRequest {
    /// Number of nodes; one is a node with worker processes.
    pub nodes: usize,
    /// Workers of each node.
    pub workers: usize,
    /// Bytes of memory for rows.
    pub memory_bytes: u64,
    /// Time at which plans are given up.
    pub deadline: Option<Instant>,
}

/// Source of executors with worker processes and nodes.
pub trait Places: Sync {
    /// An executor on worker processes.
    ///
    /// # Errors
    /// `NotImplemented` if there are none.
    fn executor(&self, request: &PlaceRequest) -> Result<Arc<dyn Executor>, Failure>;
}

/// This process alone, without worker processes.
#[derive(Clone, Copy, Debug)]
pub struct Here;

impl Places for Here {
    fn executor(&self, _: &PlaceRequest) -> Result<Arc<dyn Executor>, Failure> {
        Err(Failure::missing("worker processes for frames are not implemented here"))
    }
}

/// Executor and form of answers of a request.
pub(super) struct Context {
    pub(super) executor: Arc<dyn Executor>,
    /// Whether each step is computed before the next one is built.
    pub(super) eager: bool,
    pub(super) deadline: Option<Instant>,
    pub(super) values: bool,
    pub(super) plan: bool,
    pub(super) metrics: bool,
    /// Folder of the files that the request names.
    pub(super) folder: PathBuf,
    /// Folder for large results; without it they are part of the reply.
    pub(super) results: Option<PathBuf>,
    /// Rows of a part of each input, if the request cuts them.
    pub(super) part_rows: Option<usize>,
}

impl Context {
    pub(super) fn of(request: &Json, folder: &Path, places: &dyn Places) -> Result<Context, Failure> {
        let ctx = object(request, "ctx")?;
        check_context(ctx.as_object().into_iter().flatten().map(|(key, _)| key.as_str()))?;
        let results = match request.get("dir") {
            None | Some(Json::Null) => None,
            Some(Json::String(dir)) => Some(folder.join(dir)),
            Some(other) => return Err(Failure::value(format!("dir: expected text, found {other}"))),
        };
        let deadline = deadline(&ctx)?;
        let mut context = Context {
            executor: executor(&ctx, places, deadline)?,
            eager: ctx.get("mode").is_some_and(|mode| mode == "eager"),
            deadline,
            values: true,
            plan: false,
            metrics: true,
            folder: folder.to_owned(),
            results,
            part_rows: part_rows(&ctx)?,
        };
        if let Some(want) = request.get("want") {
            context.want(want)?;
        }
        Ok(context)
    }

    fn want(&mut self, want: &Json) -> Result<(), Failure> {
        let parts = want.as_array().ok_or_else(|| Failure::value(format!("want: {want} is not a list")))?;
        (self.values, self.plan, self.metrics) = (false, false, false);
        for part in parts {
            match part.as_str() {
                Some("values") => self.values = true,
                Some("plan") => self.plan = true,
                Some("metrics") => self.metrics = true,
                _ => return Err(Failure::value(format!("want: {part}; there are values, plan, metrics"))),
            }
        }
        Ok(())
    }

    /// Refuses to go on after the time that the request allows.
    pub(super) fn check_time(&self) -> Result<(), Failure> {
        if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            Err(Failure::new("Timeout", "the time of the request is over"))
        } else {
            Ok(())
        }
    }
}

/// The object under a key, or an empty one.
pub(super) fn object(json: &Json, key: &str) -> Result<Json, Failure> {
    match json.get(key) {
        None | Some(Json::Null) => Ok(json!({})),
        Some(found) if found.is_object() => Ok(found.clone()),
        Some(other) => Err(Failure::value(format!("{key}: expected an object, found {other}"))),
    }
}

/// The whole number under a key, which is not negative.
fn whole(ctx: &Json, key: &str, default: u64) -> Result<u64, Failure> {
    let Some(found) = ctx.get(key).filter(|found| !found.is_null()) else { return Ok(default) };
    found.as_u64().ok_or_else(|| Failure::value(format!("{key}: expected a whole number, found {found}")))
}

fn executor(
    ctx: &Json,
    places: &dyn Places,
    deadline: Option<Instant>,
) -> Result<Arc<dyn Executor>, Failure> {
    let workers = whole(ctx, "workers", THREADS_DEFAULT)?;
    let nodes = whole(ctx, "nodes", 1)?;
    if THREADS_MAX < workers || NODES_MAX < nodes {
        return Err(Failure::value(format!(
            "at most {THREADS_MAX} workers on {NODES_MAX} nodes are started"
        )));
    }
    let (workers, nodes) = (workers as usize, nodes as usize);
    let memory_bytes = match ctx.get("memory") {
        Some(Json::String(text)) => {
            parse_bytes(text).ok_or_else(|| Failure::value(format!("memory: {text:?} is not a size")))?
        }
        _ => whole(ctx, "memory", MEMORY_DEFAULT_BYTES)?,
    };
    let mode = ctx.get("mode").map(|mode| mode.as_str().unwrap_or(""));
    match mode {
        Some("cluster") => {}
        Some("workers") | None | Some("lazy" | "eager") if 1 < nodes => {
            return Err(Failure::value("nodes: more than one needs the mode cluster"));
        }
        Some("workers") => {}
        None | Some("lazy" | "eager") => {
            let executor = LocalExecutor::sized(workers, memory_bytes);
            return Ok(match deadline {
                Some(deadline) => Arc::new(executor.until(deadline)),
                None => Arc::new(executor),
            });
        }
        Some(_) => return Err(Failure::value("mode: there are eager, lazy, workers, cluster")),
    }
    places.executor(&PlaceRequest { nodes: nodes.max(1), workers, memory_bytes, deadline })
}

/// The deadline of the request; a timeout too large to represent is no limit.
fn deadline(ctx: &Json) -> Result<Option<Instant>, Failure> {
    let Some(limit) = ctx.get("timeout_s").filter(|limit| !limit.is_null()) else { return Ok(None) };
    let seconds = limit.as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let seconds = seconds.ok_or_else(|| Failure::value(format!("timeout_s: {limit}")))?;
    Ok(Instant::now().checked_add(seconds))
}

/// Rows of a part: the first of the sizes of chunks.
fn part_rows(ctx: &Json) -> Result<Option<usize>, Failure> {
    let size = match ctx.get("chunks") {
        None | Some(Json::Null) => return Ok(None),
        Some(Json::String(text)) if text == "auto" => return Ok(None),
        Some(Json::Array(sizes)) => sizes.first().cloned().unwrap_or(Json::Null),
        Some(size) => size.clone(),
    };
    let rows = size.as_u64().filter(|&rows| 0 < rows).map(|rows| rows as usize);
    rows.map(Some).ok_or_else(|| Failure::value(format!("chunk sizes must be positive, found {size}")))
}

/// `2GiB`, `512MB`, `1000`.
fn parse_bytes(text: &str) -> Option<u64> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let scale = match unit.trim() {
        "" | "B" => 1u64,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        "kB" | "KB" => 1000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        _ => return None,
    };
    Some((number.parse::<f64>().ok()? * scale as f64) as u64)
}

const MEMORY_DEFAULT_BYTES: u64 = 2 << 30;
const THREADS_DEFAULT: u64 = 2;
const THREADS_MAX: u64 = 64;
const NODES_MAX: u64 = 8;
