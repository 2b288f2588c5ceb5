//! The context of a request: the parts that say how it runs.

use super::args::Check;
use super::further::{Scope, Tables};
use super::value::Value;
use super::{Failure, PlaceRequest, Places};
use crate::errstate::{ErrState, Reaction};
use crate::random::{Generator, default_rng};
use crate::sparse::Sparse;
use crate::tensor::Tensor;
use serde_json::{Value as Json, json};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tharsis_graph::{Chunks, Executor, LocalExecutor};
use tharsis_kernels::Warnings;
use tharsis_programs::check_context;

/// Executor and form of answers of a request.
pub(super) struct Context {
    pub executor: Arc<dyn Executor>,
    pub chunks: Chunks,
    /// Whether each step is computed before the next one is built.
    pub eager: bool,
    /// The generator of random steps that name none.
    pub generator: Arc<Generator>,
    /// Whether values are returned as base64 of their bytes.
    pub raw: bool,
    pub wants: Wants,
    pub errstate: ErrState,
    /// NumPy's warnings of eager steps.
    pub raised: RefCell<Warnings>,
    /// Operations of other crates.
    pub further: Tables,
    /// The request as these operations see it.
    pub scope: Scope,
    /// Harmless irregularities of the inputs.
    pub warnings: Vec<String>,
    /// Conditions that steps asked for.
    pub checks: RefCell<Vec<Check>>,
    /// Folder for large results; without it they are part of the reply.
    pub results: Option<PathBuf>,
}

/// The parts of the reply.
pub(super) struct Wants {
    pub values: bool,
    pub plan: bool,
    pub metrics: bool,
}

impl Context {
    pub fn of(
        request: &Json,
        folder: &Path,
        places: &dyn Places,
        further: Tables,
        started: Instant,
    ) -> Result<Context, Failure> {
        let ctx = object(request, "ctx")?;
        check_context(ctx.as_object().into_iter().flatten().map(|(key, _)| key.as_str()))?;
        let seed = whole(&ctx, "seed", 0)?;
        let raw = ctx.get("inline").is_some_and(|inline| inline == "raw");
        let results = match request.get("dir") {
            None | Some(Json::Null) => None,
            Some(dir) => Some(folder.join(text(dir)?)),
        };
        let executor: Arc<dyn Executor> = Arc::from(executor(&ctx, places, started)?);
        Ok(Context {
            scope: Scope::new(executor.clone()),
            executor,
            further,
            chunks: chunks(&ctx)?,
            eager: eager(&ctx),
            generator: Arc::new(default_rng(seed)),
            raw,
            wants: Wants::of(request)?,
            errstate: errstate(&ctx)?,
            raised: RefCell::default(),
            warnings: Vec::new(),
            checks: RefCell::default(),
            results,
        })
    }

    /// A tensor in the chunks that the request asks for.
    pub fn chunked(&self, tensor: Tensor) -> Result<Tensor, Failure> {
        let fits = match &self.chunks {
            Chunks::Auto => false,
            Chunks::PerAxis(sizes) => sizes.len() == tensor.ndim()?,
            Chunks::Each(_) | Chunks::Lengths(_) => 0 < tensor.ndim()?,
        };
        if !fits {
            return Ok(tensor);
        }
        let rechunked = tensor.rechunk(self.chunks.clone());
        rechunked.check()?;
        match tensor.node()?.op().resident() {
            // Computed tensors are rechunked at once, so that later steps read chunks of this size.
            Some(_) => self.tensor_at_hand(&rechunked),
            None => Ok(rechunked),
        }
    }

    /// A value whose tensors are computed.
    pub fn at_hand(&self, value: Value) -> Result<Value, Failure> {
        Ok(match value {
            Value::Tensor(tensor) => Value::Tensor(self.tensor_at_hand(&tensor)?),
            Value::Sparse(matrix) => Value::Sparse(Box::new(self.sparse_at_hand(&matrix)?)),
            Value::List(parts) => Value::List(self.all_at_hand(parts)?),
            Value::Tuple(parts) => Value::Tuple(self.all_at_hand(parts)?),
            Value::Fields(names, parts) => Value::Fields(names, self.all_at_hand(parts)?),
            Value::Dictionary(entries) => {
                let computed = entries.into_iter().map(|(key, value)| Ok((key, self.at_hand(value)?)));
                Value::Dictionary(computed.collect::<Result<_, Failure>>()?)
            }
            other => other,
        })
    }

    /// A value whose sizes are known: what they depend on is run.
    pub fn settled(&self, value: Value) -> Result<Value, Failure> {
        let all = |parts: Vec<Value>| -> Result<Vec<Value>, Failure> {
            parts.into_iter().map(|part| self.settled(part)).collect()
        };
        Ok(match value {
            Value::Tensor(tensor) if !tensor.is_known()? => {
                let (mut settled, metrics) = crate::run::settle(&[&tensor], &*self.executor)?;
                if let Some(mut metrics) = metrics {
                    self.raised.borrow_mut().append(&mut metrics.warnings);
                }
                Value::Tensor(settled.pop().ok_or_else(|| Failure::new("Internal", "no result"))?)
            }
            Value::Sparse(matrix) => Value::Sparse(Box::new(self.sparse_at_hand(&matrix)?)),
            Value::List(parts) => Value::List(all(parts)?),
            Value::Tuple(parts) => Value::Tuple(all(parts)?),
            Value::Fields(names, parts) => Value::Fields(names, all(parts)?),
            Value::Dictionary(entries) => {
                let settled = entries.into_iter().map(|(key, value)| Ok((key, self.settled(value)?)));
                Value::Dictionary(settled.collect::<Result<_, Failure>>()?)
            }
            other => other,
        })
    }

    /// The warnings of conditions that do not hold, each once.
    pub fn checked(&self) -> Result<BTreeSet<&'static str>, Failure> {
        let mut warnings = BTreeSet::new();
        for Check { holds, warning } in self.checks.borrow().iter() {
            if !self.tensor_at_hand(holds)?.item()?.is_true() {
                warnings.insert(*warning);
            }
        }
        Ok(warnings)
    }

    fn all_at_hand(&self, parts: Vec<Value>) -> Result<Vec<Value>, Failure> {
        parts.into_iter().map(|part| self.at_hand(part)).collect()
    }

    fn sparse_at_hand(&self, matrix: &Sparse) -> Result<Sparse, Failure> {
        let (computed, mut metrics) = matrix.persist_on(&*self.executor)?;
        self.raised.borrow_mut().append(&mut metrics.warnings);
        Ok(computed)
    }

    fn tensor_at_hand(&self, tensor: &Tensor) -> Result<Tensor, Failure> {
        let (mut made, mut metrics) = crate::run::execute(&[tensor], &*self.executor)?;
        self.raised.borrow_mut().append(&mut metrics.warnings);
        made.pop().ok_or_else(|| Failure::new("Internal", "no result"))
    }
}

impl Wants {
    fn of(request: &Json) -> Result<Wants, Failure> {
        let Some(want) = request.get("want") else {
            return Ok(Wants { values: true, plan: false, metrics: true });
        };
        let want = want.as_array().ok_or_else(|| Failure::value(format!("want: {want} is not a list")))?;
        let mut wants = Wants { values: false, plan: false, metrics: false };
        for part in want {
            match part.as_str() {
                Some("values") => wants.values = true,
                Some("plan") => wants.plan = true,
                Some("metrics") => wants.metrics = true,
                _ => return Err(Failure::value(format!("want: {part}; there are values, plan, metrics"))),
            }
        }
        Ok(wants)
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

/// The text in a value.
pub(super) fn text(json: &Json) -> Result<&str, Failure> {
    json.as_str().ok_or_else(|| Failure::value(format!("expected text, found {json}")))
}

/// The whole number under a key, which is not negative.
fn whole(ctx: &Json, key: &str, default: u64) -> Result<u64, Failure> {
    let Some(found) = ctx.get(key).filter(|found| !found.is_null()) else { return Ok(default) };
    found.as_u64().ok_or_else(|| Failure::value(format!("{key}: expected a whole number, found {found}")))
}

fn executor(ctx: &Json, places: &dyn Places, started: Instant) -> Result<Box<dyn Executor>, Failure> {
    let workers = whole(ctx, "workers", THREADS_DEFAULT)?;
    if THREADS_MAX < workers {
        return Err(Failure::value(format!("workers: {workers}; at most {THREADS_MAX} are started")));
    }
    let workers = workers as usize;
    let memory_bytes = match ctx.get("memory") {
        Some(Json::String(text)) => {
            parse_bytes(text).ok_or_else(|| Failure::value(format!("memory: {text:?} is not a size")))?
        }
        _ => whole(ctx, "memory", MEMORY_DEFAULT_BYTES)?,
    };
    let local = LocalExecutor::new(workers, memory_bytes)?;
    let deadline = deadline(ctx, started)?;
    let nodes = whole(ctx, "nodes", 1)?;
    let nodes = match mode(ctx)? {
        Mode::Here if nodes <= 1 => {
            return Ok(Box::new(deadline.map_or(local, |deadline| local.until(deadline))));
        }
        Mode::Workers if nodes <= 1 => 1,
        Mode::Here | Mode::Workers => {
            return Err(Failure::value("nodes: more than one needs the mode cluster"));
        }
        Mode::Cluster if NODES_MAX < nodes => {
            return Err(Failure::value(format!("nodes: {nodes}; at most {NODES_MAX} are started")));
        }
        Mode::Cluster => nodes.max(1) as usize,
    };
    places.executor(&PlaceRequest { nodes, workers, memory_bytes, deadline })
}

/// The deadline of the request; a timeout too large to represent is no limit.
fn deadline(ctx: &Json, started: Instant) -> Result<Option<Instant>, Failure> {
    let Some(limit) = ctx.get("timeout_s").filter(|limit| !limit.is_null()) else { return Ok(None) };
    let seconds = limit.as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let seconds = seconds.ok_or_else(|| Failure::value(format!("timeout_s: {limit}")))?;
    Ok(started.checked_add(seconds))
}

fn chunks(ctx: &Json) -> Result<Chunks, Failure> {
    let size = |json: &Json| -> Result<usize, Failure> {
        let size = json.as_u64().filter(|&size| 0 < size).and_then(|size| usize::try_from(size).ok());
        size.ok_or_else(|| Failure::value(format!("chunk sizes must be positive, found {json}")))
    };
    Ok(match ctx.get("chunks") {
        None | Some(Json::Null) => Chunks::Auto,
        Some(Json::String(text)) if text == "auto" => Chunks::Auto,
        Some(Json::Array(sizes)) => Chunks::PerAxis(sizes.iter().map(size).collect::<Result<_, _>>()?),
        Some(each) => Chunks::Each(size(each)?),
    })
}

/// `"raise"` for all conditions, or `{"divide": "ignore", "over": "warn"}`.
fn errstate(ctx: &Json) -> Result<ErrState, Failure> {
    let reaction = |json: &Json| match json.as_str() {
        Some("ignore") => Ok(Reaction::Ignore),
        Some("raise") => Ok(Reaction::Raise),
        Some("warn") => Ok(Reaction::Warn),
        _ => Err(Failure::value(format!("errstate: {json}; there are ignore, raise, warn"))),
    };
    let conditions = match ctx.get("errstate") {
        None | Some(Json::Null) => return Ok(ErrState::default()),
        Some(Json::Object(conditions)) => conditions,
        Some(all) => return Ok(ErrState::all(reaction(all)?)),
    };
    let all = conditions.get("all").map_or(Ok(Reaction::default()), reaction)?;
    let mut state = ErrState::all(all);
    for (condition, json) in conditions {
        match condition.as_str() {
            "all" => {}
            "divide" => state.divide = reaction(json)?,
            "invalid" => state.invalid = reaction(json)?,
            "over" => state.over = reaction(json)?,
            other => {
                let known = "all, divide, invalid, over";
                return Err(Failure::value(format!("errstate: no condition {other:?}; there are {known}")));
            }
        }
    }
    Ok(state)
}

/// Executor of programs.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Here,
    Workers,
    Cluster,
}

fn mode(ctx: &Json) -> Result<Mode, Failure> {
    match ctx.get("mode").map(|mode| mode.as_str().unwrap_or("")) {
        None | Some("lazy" | "eager") => Ok(Mode::Here),
        Some("workers") => Ok(Mode::Workers),
        Some("cluster") => Ok(Mode::Cluster),
        Some(_) => Err(Failure::value("mode: there are eager, lazy, workers, cluster")),
    }
}

fn eager(ctx: &Json) -> bool {
    ctx.get("mode").is_some_and(|mode| mode == "eager")
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
