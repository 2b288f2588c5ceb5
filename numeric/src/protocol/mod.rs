//! Programs as data: one JSON object a line in, one a line out, in the same order.
//!
//! A request names inputs, steps (each an operation under its NumPy name with arguments) and the values wanted. Operations are found
//! in the [`registry`]; what is not there is answered `NotImplemented`. A failing program never ends the evaluator.

mod args;
pub mod registry;
mod reply;
mod value;

pub use value::Value;

use crate::error::Error;
use crate::tensor::Tensor;
use args::Args;
use registry::find;
use serde_json::{Map, Value as Json, json};
use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;
use tharsis_graph::{Chunks, Error as GraphError, Executor, LocalExecutor};

/// The longest request line that is read.
pub const LINE_BYTES_MAX: u64 = 256 << 20;

/// Why a request fails: the exception a NumPy user would see, and a message.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Failure {
    pub class: String,
    pub message: String,
}

impl Failure {
    fn new(class: &str, message: impl Into<String>) -> Failure {
        Failure { class: class.to_owned(), message: message.into() }
    }

    /// A value that NumPy answers with `ValueError`.
    pub fn value(message: impl Into<String>) -> Failure {
        Failure::new("ValueError", message)
    }

    /// A type that NumPy answers with `TypeError`.
    pub fn kind(message: impl Into<String>) -> Failure {
        Failure::new("TypeError", message)
    }

    /// What does not exist yet.
    pub fn missing(message: impl Into<String>) -> Failure {
        Failure::new("NotImplemented", message)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::new(error.class(), error.cause().to_string())
    }
}

impl From<GraphError> for Failure {
    fn from(error: GraphError) -> Failure {
        Failure::new(error.class(), error.to_string())
    }
}

/// What a request says about how to run.
struct Context {
    executor: LocalExecutor,
    chunks: Chunks,
    raw: bool,
    want_plan: bool,
    folder: PathBuf,
}

/// Answers requests until the stream ends. File names in requests are taken relative to `folder`.
///
/// # Errors
/// Only those of the streams themselves.
pub fn eval(mut requests: impl BufRead, mut replies: impl Write, folder: &Path) -> std::io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut limited = std::io::Read::take(&mut requests, LINE_BYTES_MAX);
        if limited.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let reply = match serde_json::from_slice::<Json>(&line) {
            Ok(request) => answer(&request, folder),
            Err(error) => {
                json!({"id": null, "ok": false, "err": {"class": "ValueError", "msg": error.to_string()}})
            }
        };
        serde_json::to_writer(&mut replies, &reply)?;
        replies.write_all(b"\n")?;
        replies.flush()?;
    }
}

/// Writes one line per operation: name, signature, what it does.
///
/// # Errors
/// Those of the stream.
pub fn list(mut replies: impl Write) -> std::io::Result<()> {
    for operation in registry::all() {
        let line = json!({"name": operation.name, "signature": operation.signature, "doc": operation.doc});
        serde_json::to_writer(&mut replies, &line)?;
        replies.write_all(b"\n")?;
    }
    Ok(())
}

/// The reply to one request.
pub fn answer(request: &Json, folder: &Path) -> Json {
    let id = request.get("id").cloned().unwrap_or(Json::Null);
    // A defect in one program must not take the evaluator down with it.
    let outcome = std::panic::catch_unwind(|| evaluate(request, folder));
    let crash = |_| Err((Failure::new("Crash", "the evaluator panicked; this is a defect"), None));
    match outcome.unwrap_or_else(crash) {
        Ok(mut reply) => {
            reply.insert("id".to_owned(), id);
            reply.insert("ok".to_owned(), Json::Bool(true));
            Json::Object(reply)
        }
        Err((failure, step)) => {
            let mut err = json!({"class": failure.class, "msg": failure.message});
            if let Some((index, operation)) = step {
                err["step"] = json!(index);
                err["op"] = json!(operation);
            }
            json!({"id": id, "ok": false, "err": err})
        }
    }
}

type Step = Option<(usize, String)>;

fn evaluate(request: &Json, folder: &Path) -> Result<Map<String, Json>, (Failure, Step)> {
    let started = Instant::now();
    let outside = |failure: Failure| (failure, None);
    if request.get("v").is_some_and(|v| v != 1) {
        return Err(outside(Failure::value("only version 1 is understood")));
    }
    let context = context(request, folder).map_err(outside)?;
    let mut names = inputs(request, &context).map_err(outside)?;
    let empty = Vec::new();
    for (index, step) in request.get("prog").and_then(Json::as_array).unwrap_or(&empty).iter().enumerate() {
        let operation = step.get(1).and_then(Json::as_str).unwrap_or("").to_owned();
        let made = run_step(step, &operation, &names, &context).map_err(|f| (f, Some((index, operation))))?;
        let name = step.get(0).and_then(Json::as_str).unwrap_or("_");
        names.insert(name.to_owned(), made);
    }
    finish(request, &names, &context, started).map_err(outside)
}

fn run_step(
    step: &Json,
    operation: &str,
    names: &HashMap<String, Value>,
    context: &Context,
) -> Result<Value, Failure> {
    let found = find(operation).ok_or_else(|| Failure::missing(format!("{operation} is not implemented")))?;
    let positional = step.get(2).and_then(Json::as_array).cloned().unwrap_or_default();
    let positional = positional.iter().map(|arg| value::decode(arg, names)).collect::<Result<Vec<_>, _>>()?;
    let mut keywords = HashMap::new();
    for (name, arg) in step.get(3).and_then(Json::as_object).into_iter().flatten() {
        keywords.insert(name.clone(), value::decode(arg, names)?);
    }
    let made_of_nothing =
        !positional.iter().chain(keywords.values()).any(|arg| matches!(arg, Value::Tensor(_)));
    let mut args = Args::new(positional, keywords);
    let made = (found.run)(operation, &mut args)?;
    args.finish()?;
    match made {
        Value::Tensor(tensor) if made_of_nothing => Ok(Value::Tensor(chunked(tensor, context)?)),
        made => Ok(made),
    }
}

fn context(request: &Json, folder: &Path) -> Result<Context, Failure> {
    let ctx = request.get("ctx").cloned().unwrap_or_else(|| json!({}));
    let workers = ctx.get("workers").and_then(Json::as_u64).unwrap_or(2).clamp(1, 64) as usize;
    let memory = match ctx.get("memory") {
        None => 2 << 30,
        Some(Json::String(text)) => {
            parse_bytes(text).ok_or_else(|| Failure::value(format!("memory {text:?}")))?
        }
        Some(number) => number.as_u64().ok_or_else(|| Failure::value(format!("memory {number}")))?,
    };
    let size = |json: &Json| -> Result<usize, Failure> {
        let size = json.as_i64().filter(|&size| 0 < size);
        Ok(size.ok_or_else(|| Failure::value(format!("chunk sizes must be positive, found {json}")))?
            as usize)
    };
    let chunks = match ctx.get("chunks") {
        None | Some(Json::Null) => Chunks::Auto,
        Some(Json::String(text)) if text == "auto" => Chunks::Auto,
        Some(Json::Array(sizes)) => Chunks::PerAxis(sizes.iter().map(size).collect::<Result<_, _>>()?),
        Some(each) => Chunks::Each(size(each)?),
    };
    let want = request.get("want").and_then(Json::as_array);
    let want_plan = want.is_some_and(|want| want.iter().any(|part| part == "plan"));
    Ok(Context {
        executor: LocalExecutor::new(workers, memory)?,
        chunks,
        raw: ctx.get("inline").is_some_and(|inline| inline == "raw"),
        want_plan,
        folder: folder.to_owned(),
    })
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

fn inputs(request: &Json, context: &Context) -> Result<HashMap<String, Value>, Failure> {
    let mut names = HashMap::new();
    for (name, input) in request.get("in").and_then(Json::as_object).into_iter().flatten() {
        let tensor = value::input(input, &context.folder)?;
        names.insert(name.clone(), Value::Tensor(chunked(tensor, context)?));
    }
    Ok(names)
}

/// A tensor stored in the chunks that the request asks for.
fn chunked(tensor: Tensor, context: &Context) -> Result<Tensor, Failure> {
    let fits = match &context.chunks {
        Chunks::Auto => false,
        Chunks::PerAxis(sizes) => sizes.len() == tensor.ndim(),
        Chunks::Each(_) | Chunks::Lengths(_) => 0 < tensor.ndim(),
    };
    if !fits {
        return Ok(tensor);
    }
    let rechunked = tensor.rechunk(context.chunks.clone())?;
    match tensor.node().op().resident() {
        // Chunks that exist are cut for good, so that what follows meets chunks of this size.
        Some(_) => {
            let (mut made, _) = crate::run::execute(&[&rechunked], &context.executor)?;
            made.pop().ok_or_else(|| Failure::new("Internal", "no result"))
        }
        None => Ok(rechunked),
    }
}

fn finish(
    request: &Json,
    names: &HashMap<String, Value>,
    context: &Context,
    started: Instant,
) -> Result<Map<String, Json>, Failure> {
    let empty = Vec::new();
    let wanted = request.get("out").and_then(Json::as_array).unwrap_or(&empty);
    let wanted: Vec<&str> = wanted.iter().filter_map(Json::as_str).collect();
    let mut tensors = Vec::new();
    for name in &wanted {
        let value =
            names.get(*name).ok_or_else(|| Failure::new("KeyError", format!("no value named {name:?}")))?;
        value.tensors(&mut tensors);
    }
    let nodes: Vec<_> = tensors.iter().map(|tensor: &Tensor| tensor.node().clone()).collect();
    let job = tharsis_graph::plan(&nodes, context.executor.limits())?;
    let mut reply = Map::new();
    if context.want_plan {
        reply.insert(
            "plan".to_owned(),
            json!({"tasks": job.schedule.order.len(), "peak_bytes_bound": job.schedule.bound_bytes}),
        );
    }
    let outcome = context.executor.execute(job)?;
    let mut results = outcome.results.into_iter();
    let mut out = Map::new();
    for name in wanted {
        out.insert(name.to_owned(), reply::encode(&names[name], &mut results, context.raw)?);
    }
    reply.insert("out".to_owned(), Json::Object(out));
    let wall_us = started.elapsed().as_micros() as u64;
    let peak_bytes = outcome.metrics.peak_bytes;
    reply.insert(
        "metrics".to_owned(),
        json!({"wall_us": wall_us, "peak_bytes": peak_bytes, "spilled": 0, "retries": 0}),
    );
    Ok(reply)
}

#[cfg(test)]
mod tests;
