//! One request: its inputs, its steps, its results.

use super::args::Args;
use super::context::{Context, object, text};
use super::further::Tables;
use super::names;
use super::registry::{Operation, find};
use super::value::{self, Value};
use super::{Failure, Places, reply};
use crate::run::with_default;
use serde_json::{Map, Value as Json, json};
use std::collections::HashMap;
use std::path::Path;
use std::time::Instant;
use tharsis_graph::{Metrics, Resident};
use tharsis_programs::{Given, Look, Param, Place, check_keys, check_known};

/// Keys of an input that does not say its kind.
const INPUT_KEYS: &[&str] = &["lit", "raw", "npy", "zarr", "hdf5", "dataset", "dtype", "shape"];

/// Keys of each kind of input, its own first. A key that another kind reads would have no effect.
const KINDS: [&[&str]; 5] =
    [&["lit", "dtype"], &["raw", "dtype", "shape"], &["zarr"], &["hdf5", "dataset"], &["npy"]];

/// The step that failed, and its operation; `None` if the request itself failed.
pub(super) type Step = Option<(usize, String)>;

type Names = HashMap<String, Value>;

/// The reply to a request, without its id.
pub(super) fn evaluate(
    request: &Json,
    folder: &Path,
    places: &dyn Places,
    further: Tables,
) -> Result<Map<String, Json>, (Failure, Step)> {
    let started = Instant::now();
    let outside = |failure: Failure| (failure, None);
    let (context, names) = prepare(request, folder, places, further, started).map_err(outside)?;
    // Sizes that a step needs before it can be built are computed where the program runs.
    with_default(context.executor.clone(), || run_steps(request, &context, names, started))
}

fn run_steps(
    request: &Json,
    context: &Context,
    mut names: Names,
    started: Instant,
) -> Result<Map<String, Json>, (Failure, Step)> {
    let outside = |failure: Failure| (failure, None);
    for (index, step) in list(request, "prog").map_err(outside)?.iter().enumerate() {
        let operation = step.get(1).and_then(Json::as_str).unwrap_or("").to_owned();
        let made = run_step(step, &operation, &names, context);
        let (name, made) = made.map_err(|failure| (failure, Some((index, operation))))?;
        names.insert(name, made);
    }
    finish(request, &names, context, started).map_err(outside)
}

fn prepare(
    request: &Json,
    folder: &Path,
    places: &dyn Places,
    further: Tables,
    started: Instant,
) -> Result<(Context, Names), Failure> {
    let Some(keys) = request.as_object() else {
        return Err(Failure::value(format!("expected a request, found {request}")));
    };
    check_keys(keys.keys().map(String::as_str))?;
    if request.get("v").is_some_and(|v| v != 1) {
        return Err(Failure::value("only version 1 is understood"));
    }
    let mut context = Context::of(request, folder, places, further, started)?;
    let mut names = Names::new();
    for (name, input) in object(request, "in")?.as_object().into_iter().flatten() {
        let keys = input.as_object().into_iter().flat_map(|input| input.keys());
        let kind = KINDS.into_iter().find(|kind| kind.first().is_some_and(|key| input.get(key).is_some()));
        let known = kind.unwrap_or(INPUT_KEYS);
        check_known(&format!("the input {name:?}"), keys.map(String::as_str), known)?;
        let tensor = value::input(input, folder, &mut context.warnings)?;
        names.insert(name.clone(), Value::Tensor(context.chunked(tensor)?));
    }
    Ok((context, names))
}

/// The list under a key, or an empty one.
fn list<'a>(request: &'a Json, key: &str) -> Result<&'a [Json], Failure> {
    match request.get(key) {
        None | Some(Json::Null) => Ok(&[]),
        Some(Json::Array(found)) => Ok(found),
        Some(other) => Err(Failure::value(format!("{key}: expected a list, found {other}"))),
    }
}

fn run_step(
    step: &Json,
    operation: &str,
    values: &Names,
    context: &Context,
) -> Result<(String, Value), Failure> {
    let malformed = || Failure::value(format!("a step is [name, operation, [..], {{..}}], found {step}"));
    let (name, positional, keywords) = match step.as_array().map(Vec::as_slice) {
        Some([Json::String(name), Json::String(_), Json::Array(positional), Json::Object(keywords)]) => {
            (name, positional.as_slice(), Some(keywords))
        }
        Some([Json::String(name), Json::String(_), Json::Array(positional)]) => {
            (name, positional.as_slice(), None)
        }
        Some([Json::String(name), Json::String(_)]) => (name, &[][..], None),
        _ => return Err(malformed()),
    };
    let rows = || context.further.iter().copied().flatten();
    let further = rows().find(|row| row.name == operation);
    let found = if further.is_none() { find(operation) } else { None };
    if further.is_none() && found.is_none() {
        return Err(Failure::missing(names::why_not_of(operation, rows().map(|row| row.name))));
    }
    let positional =
        positional.iter().map(|arg| value::decode(arg, values)).collect::<Result<Vec<_>, _>>()?;
    let keywords = keywords.into_iter().flatten();
    // In the order of the request, so that of several mistakes the same one is told each time.
    let keywords = keywords
        .map(|(name, arg)| Ok((name.clone(), value::decode(arg, values)?)))
        .collect::<Result<Vec<_>, Failure>>()?;
    let made = match (further, found) {
        (Some(row), _) => {
            let given = Given { positional, keywords };
            let given = given_at_hand(row.params, given, context)?;
            row.call(given, &context.scope)?
        }
        (None, Some(found)) => {
            run_operation(&found, operation, positional, keywords.into_iter().collect(), context)?
        }
        (None, None) => return Err(Failure::missing(operation)),
    };
    let made = if context.eager { context.at_hand(made)? } else { made };
    Ok((name.clone(), made))
}

/// Whether a parameter takes numbers, or takes no arrays.
fn takes_number(param: &Param) -> bool {
    let takes = |look: Look<'_>| param.kind.admits(&look);
    takes(Look::Real(0.0)) || takes(Look::Integer(0)) || !takes(Look::Array)
}

/// The arguments of an operation, in which tensors without axes are numbers where a parameter takes
/// these: in Python such results are numbers.
fn given_at_hand(
    params: &'static [Param],
    given: Given<Value>,
    context: &Context,
) -> Result<Given<Value>, Failure> {
    let number = |param: Option<&Param>, value: Value| -> Result<Value, Failure> {
        match &value {
            Value::Tensor(tensor) if param.is_some_and(takes_number) && tensor.ndim()? == 0 => {
                let made = crate::execute(&[tensor], &*context.executor)?.0;
                Ok(made.first().map(|made| made.item()).transpose()?.map_or(value, Value::Number))
            }
            _ => Ok(value),
        }
    };
    let mut positions = params.iter().filter(|param| param.place == Place::Anywhere);
    let Given { positional, keywords } = given;
    let positional =
        positional.into_iter().map(|value| number(positions.next(), value)).collect::<Result<_, _>>()?;
    let named = |name: &str| params.iter().find(|param| param.name == name);
    let keywords = keywords.into_iter().map(|(name, value)| {
        let value = number(named(&name), value)?;
        Ok((name, value))
    });
    let keywords = keywords.collect::<Result<_, Failure>>()?;
    Ok(Given { positional, keywords })
}

/// Runs an operation of tensors.
fn run_operation(
    found: &Operation,
    operation: &str,
    positional: Vec<Value>,
    keywords: HashMap<String, Value>,
    context: &Context,
) -> Result<Value, Failure> {
    let reads_nothing =
        !positional.iter().chain(keywords.values()).any(|arg| matches!(arg, Value::Tensor(_)));
    let run = |positional: Vec<Value>, keywords: HashMap<String, Value>| -> Result<Value, Failure> {
        let mut args = Args::new(positional, keywords, context.generator.clone(), context.chunks.clone());
        let made = (found.run)(operation, &mut args)?;
        context.checks.borrow_mut().append(&mut args.finish()?);
        Ok(made)
    };
    let awaits = positional.iter().chain(keywords.values()).any(Value::awaits_size);
    let mut made = match run(positional.clone(), keywords.clone()) {
        // An operation that cannot be built without a size gets it.
        Err(_) if awaits => {
            let positional = positional.into_iter().map(|arg| context.settled(arg));
            let keywords = keywords.into_iter().map(|(name, arg)| Ok((name, context.settled(arg)?)));
            run(positional.collect::<Result<_, _>>()?, keywords.collect::<Result<_, Failure>>()?)?
        }
        made => made?,
    };
    if let Value::Tensor(tensor) = &made
        && reads_nothing
    {
        made = Value::Tensor(context.chunked(tensor.clone())?);
    }
    Ok(made)
}

fn finish(
    request: &Json,
    names: &Names,
    context: &Context,
    started: Instant,
) -> Result<Map<String, Json>, Failure> {
    let mut wanted = Vec::new();
    let mut nodes = Vec::new();
    for name in list(request, "out")? {
        let name = text(name)?;
        let value =
            names.get(name).ok_or_else(|| Failure::new("KeyError", format!("no value named {name:?}")))?;
        value.tensors(&mut |tensor| nodes.push(tensor.node().cloned()));
        wanted.push((name, value));
    }
    let (nodes, spent) = tharsis_graph::phases::settle(
        &nodes.into_iter().collect::<crate::Result<Vec<_>>>()?,
        &*context.executor,
    )?;
    let raised_before = spent.as_ref().map(|spent| spent.warnings.clone()).unwrap_or_default();
    let job = tharsis_graph::plan(&nodes, context.executor.limits())?;
    let mut reply = Map::new();
    if context.wants.plan {
        // Phases that ran before sizes were known count as well.
        let (tasks, bound) = spent.as_ref().map_or((0, 0), |spent| (spent.tasks, spent.bound_bytes));
        let tasks = tasks + job.schedule.order.len() as u64;
        let bound = context.executor.bound_bytes(&job)?.max(bound);
        reply.insert("plan".to_owned(), json!({"tasks": tasks, "peak_bytes_bound": bound}));
    }
    // A request for the plan alone is answered without running it.
    let mut checked = Default::default();
    if context.wants.values || context.wants.metrics {
        checked = context.checked()?;
        let mut outcome = context.executor.execute(job)?;
        context.raised.borrow_mut().append(&mut outcome.metrics.warnings);
        if context.wants.values {
            reply.insert("out".to_owned(), values(&wanted, outcome.results, context)?);
        }
        if context.wants.metrics {
            let spent = spent.map_or(outcome.metrics.clone(), |spent| outcome.metrics.after(&spent));
            reply.insert("metrics".to_owned(), metrics(&spent, started));
        }
    }
    context.raised.borrow_mut().extend(raised_before);
    let raised = context.errstate.apply(&context.raised.borrow())?;
    let told = checked.into_iter().map(str::to_owned).chain(raised);
    let raised = told.map(|text| format!("RuntimeWarning: {text}"));
    let told = context.warnings.iter().cloned().chain(context.scope.warnings());
    let warnings: Vec<String> = told.chain(raised).collect();
    if !warnings.is_empty() {
        reply.insert("warnings".to_owned(), json!(warnings));
    }
    Ok(reply)
}

fn values(wanted: &[(&str, &Value)], results: Vec<Resident>, context: &Context) -> Result<Json, Failure> {
    let mut encoder = reply::Encoder::new(results, context);
    let mut out = Map::new();
    for (name, value) in wanted {
        out.insert((*name).to_owned(), encoder.encode(name, value)?);
    }
    Ok(Json::Object(out))
}

fn metrics(metrics: &Metrics, started: Instant) -> Json {
    let wall_us = started.elapsed().as_micros() as u64;
    // Threads of one process have no store that could spill.
    json!({"wall_us": wall_us, "peak_bytes": metrics.peak_bytes, "spilled": 0, "retries": metrics.retries})
}
